// Constant folding and algebraic identities of single expressions.
//
// Integer rules use arithmetic modulo 2^width. Float rules hold for every operand, NaN, infinities
// and signed zero included.
#include <bit>
#include <cmath>
#include <utility>

#include "compiler/kernel/ir/evaluate.h"
#include "compiler/kernel/transform/bounds.h"
#include "compiler/kernel/transform/expression.h"

namespace fornax::kernel {

using namespace ir;

namespace {

// Indices of one object that are at most this far apart do not wrap against one another.
constexpr uint64_t kNearIndices = uint64_t{1} << 30;

class Algebra {
  public:
    Algebra(ExpressionBuilder& builder, Expression& e)
        : builder_(builder), kernel_(builder.kernel()), e_(e) {}

    ValueId Fold();

  private:
    static constexpr ValueId kStays{};

    ValueId A() const { return e_.operands[0]; }
    ValueId B() const { return e_.operands[1]; }
    uint32_t Width() const { return BitWidth(kernel_.type(A())); }
    uint64_t Ones() const { return ~uint64_t{0} >> (64 - Width()); }

    bool IsConst(ValueId id, uint64_t* bits) const { return kernel_.IsConst(id, bits); }
    bool IsConst(ValueId id) const { return kernel_.IsConst(id); }
    // The defining instruction, if it is of this operation.
    const Instruction* As(ValueId id, Op op) const {
        const Instruction* inst = kernel_.Definition(id);
        return inst && inst->op == op ? inst : nullptr;
    }
    // For a value of the form x op constant.
    bool AsWithConst(ValueId id, Op op, ValueId* x, uint64_t* constant) const {
        const Instruction* inst = As(id, op);
        if (!inst || !IsConst(inst->operands[1], constant)) {
            return false;
        }
        *x = inst->operands[0];
        return true;
    }
    // No value of the integer, read as unsigned, exceeds this.
    uint64_t Bound(ValueId id) const { return UpperBound(kernel_, id); }
    bool IsNonNegative(ValueId id) const {
        return Bound(id) >> (BitWidth(kernel_.type(id)) - 1) == 0;
    }
    // For a value x + constant that does not wrap.
    bool AsSumWithConst(ValueId id, ValueId* x, uint64_t* constant) const {
        return AsWithConst(id, Op::kIAdd, x, constant) && Bound(*x) <= Ones() &&
               *constant <= Ones() - Bound(*x);
    }
    ValueId Const(uint64_t bits) { return builder_.Const(e_.type, bits); }
    ValueId Const(Type type, uint64_t bits) { return builder_.Const(type, bits); }
    ValueId Build(Op op, std::initializer_list<ValueId> operands) {
        return builder_.Build({op, e_.type, operands});
    }
    // A wider integer of which is known what the expression's flags say.
    ValueId BuildWide(Op op, ValueId x) { return builder_.Build({op, e_.type, {x}, 0, e_.flags}); }
    ValueId BuildNot(ValueId condition) {
        return builder_.Build({Op::kNot, Type::kBool, {condition}});
    }

    ValueId FoldConstants();
    void OrderOperands();
    ValueId FoldAdd();
    ValueId FoldSub();
    ValueId FoldMul();
    ValueId FoldDivision();
    ValueId FoldShift();
    ValueId FoldLogic();
    ValueId FoldNot();
    ValueId FoldEquality();
    ValueId FoldOrder();
    ValueId FoldSelect();
    ValueId FoldConversion();
    ValueId FoldBitField();
    ValueId FoldDivisionByPower();
    ValueId FoldFloat();

    ExpressionBuilder& builder_;
    const Kernel& kernel_;
    Expression& e_;
};

ValueId Algebra::FoldConstants() {
    if (e_.type == Type::kBuffer) {
        return kStays;
    }
    std::array<uint64_t, 4> bits = {};
    for (size_t i = 0; i < e_.count; ++i) {
        if (!IsConst(e_.operands[i], &bits[i])) {
            return kStays;
        }
    }
    // Evaluate wants an instruction: this one is in no kernel. Its result's type is asked for by
    // value, so a constant of the type stands in.
    Instruction inst;
    inst.op = e_.op;
    inst.operands.assign(e_.operands.begin(), e_.operands.begin() + e_.count);
    inst.results = {Const(0)};
    uint64_t result = 0;
    if (!IsExact(kernel_, inst) ||
        !Evaluate(kernel_, inst, {bits.data(), e_.count}, {&result, 1})) {
        return kStays;
    }
    return Const(result);
}

// Constants right; else the older value left, so that equal expressions look equal.
void Algebra::OrderOperands() {
    if (!IsCommutative(e_.op)) {
        return;
    }
    bool const_a = IsConst(A());
    bool const_b = IsConst(B());
    if (const_a != const_b ? const_a : B() < A()) {
        std::swap(e_.operands[0], e_.operands[1]);
    }
}

ValueId Algebra::FoldAdd() {
    uint64_t c = 0, d = 0;
    ValueId x;
    // A dot product without an accumulator takes the other operand as one.
    for (bool second : {false, true}) {
        const Instruction* dot = kernel_.Definition(second ? B() : A());
        if (dot && dot->op >= Op::kSDot4 && dot->op <= Op::kSUDot4 &&
            IsConst(dot->operands[2], &c) && c == 0) {
            const ValueId a = dot->operands[0];
            const ValueId b = dot->operands[1];
            return Build(dot->op, {a, b, second ? A() : B()});
        }
    }
    if (IsConst(B(), &c)) {
        if (c == 0) {
            return A();
        }
        if (AsWithConst(A(), Op::kIAdd, &x, &d)) {
            return Build(Op::kIAdd, {x, Const(c + d)});
        }
        return kStays;
    }
    if (AsWithConst(A(), Op::kIAdd, &x, &c)) {
        return Build(Op::kIAdd, {Build(Op::kIAdd, {x, B()}), Const(c)});
    }
    if (AsWithConst(B(), Op::kIAdd, &x, &c)) {
        return Build(Op::kIAdd, {Build(Op::kIAdd, {A(), x}), Const(c)});
    }
    // x + -y, and x + (y - x) as index arithmetic leaves it behind.
    if (const Instruction* negated = As(B(), Op::kINeg)) {
        return Build(Op::kISub, {A(), negated->operands[0]});
    }
    if (const Instruction* sub = As(B(), Op::kISub); sub && sub->operands[1] == A()) {
        return sub->operands[0];
    }
    if (const Instruction* sub = As(A(), Op::kISub); sub && sub->operands[1] == B()) {
        return sub->operands[0];
    }
    return kStays;
}

ValueId Algebra::FoldSub() {
    uint64_t c = 0;
    ValueId x;
    if (A() == B()) {
        return Const(0);
    }
    if (IsConst(B(), &c)) {
        return Build(Op::kIAdd, {A(), Const(0 - c)});
    }
    if (IsConst(A(), &c) && c == 0) {
        return Build(Op::kINeg, {B()});
    }
    if (AsWithConst(A(), Op::kIAdd, &x, &c)) {
        return Build(Op::kIAdd, {Build(Op::kISub, {x, B()}), Const(c)});
    }
    if (AsWithConst(B(), Op::kIAdd, &x, &c)) {
        return Build(Op::kIAdd, {Build(Op::kISub, {A(), x}), Const(0 - c)});
    }
    if (const Instruction* add = As(A(), Op::kIAdd)) {
        if (add->operands[0] == B()) {
            return add->operands[1];
        }
        if (add->operands[1] == B()) {
            return add->operands[0];
        }
    }
    return kStays;
}

ValueId Algebra::FoldMul() {
    uint64_t c = 0, d = 0;
    ValueId x;
    if (IsConst(B(), &c)) {
        if (c == 0) {
            return B();
        }
        if (c == 1) {
            return A();
        }
        if (AsWithConst(A(), Op::kIMul, &x, &d)) {
            return Build(Op::kIMul, {x, Const(c * d)});
        }
        if (AsWithConst(A(), Op::kIAdd, &x, &d)) {
            return Build(Op::kIAdd, {Build(Op::kIMul, {x, B()}), Const(c * d)});
        }
        return kStays;
    }
    if (AsWithConst(A(), Op::kIMul, &x, &c)) {
        return Build(Op::kIMul, {Build(Op::kIMul, {x, B()}), Const(c)});
    }
    if (AsWithConst(B(), Op::kIMul, &x, &c)) {
        return Build(Op::kIMul, {Build(Op::kIMul, {A(), x}), Const(c)});
    }
    return kStays;
}

ValueId Algebra::FoldDivision() {
    uint64_t c = 0, d = 0;
    ValueId x;
    bool quotient = e_.op == Op::kUDiv || e_.op == Op::kSDiv;
    bool is_signed = e_.op != Op::kUDiv && e_.op != Op::kURem;
    if (is_signed && IsNonNegative(A()) && IsNonNegative(B())) {
        return Build(quotient ? Op::kUDiv : Op::kURem, {A(), B()});
    }
    if (!IsConst(B(), &c) || c == 0) {
        return kStays;
    }
    if (c == 1) {
        return quotient ? A() : Const(0);
    }
    if (is_signed) {
        return kStays;
    }
    if (Bound(A()) < c) {
        return quotient ? Const(0) : A();
    }
    if (AsSumWithConst(A(), &x, &d) && d % c == 0) {
        ValueId part = Build(e_.op, {x, B()});
        return quotient ? Build(Op::kIAdd, {part, Const(d / c)}) : part;
    }
    if (!std::has_single_bit(c)) {
        return kStays;
    }
    if (quotient) {
        return Build(Op::kLShr, {A(), Const(static_cast<uint64_t>(std::countr_zero(c)))});
    }
    return Build(Op::kAnd, {A(), Const(c - 1)});
}

ValueId Algebra::FoldShift() {
    uint64_t c = 0, d = 0;
    ValueId x;
    if (!IsConst(B(), &c) || c >= Width()) {
        return kStays;
    }
    if (c == 0) {
        return A();
    }
    if (e_.op == Op::kShl) {
        return Build(Op::kIMul, {A(), Const(uint64_t{1} << c)});
    }
    if (e_.op == Op::kAShr && IsNonNegative(A())) {
        return Build(Op::kLShr, {A(), B()});
    }
    if (e_.op == Op::kLShr) {
        if (Bound(A()) >> c == 0) {
            return Const(0);
        }
        uint64_t power = uint64_t{1} << c;
        if (AsSumWithConst(A(), &x, &d) && d % power == 0) {
            return Build(Op::kIAdd, {Build(Op::kLShr, {x, B()}), Const(d >> c)});
        }
        if (AsWithConst(A(), Op::kIMul, &x, &d) && d % power == 0 && Bound(x) <= Ones() / d) {
            return Build(Op::kIMul, {x, Const(d >> c)});
        }
    }
    if (!AsWithConst(A(), e_.op, &x, &d) || d >= Width()) {
        return kStays;
    }
    if (c + d < Width()) {
        return Build(e_.op, {x, Const(kernel_.type(B()), c + d)});
    }
    return e_.op == Op::kLShr ? Const(0) : Build(e_.op, {x, Const(kernel_.type(B()), Width() - 1)});
}

ValueId Algebra::FoldLogic() {
    uint64_t c = 0, d = 0;
    ValueId x;
    if (A() == B()) {
        return e_.op == Op::kXor ? Const(0) : A();
    }
    if (!IsConst(B(), &c)) {
        return kStays;
    }
    if (c == 0) {
        return e_.op == Op::kAnd ? B() : A();
    }
    if (c == Ones()) {
        if (e_.op == Op::kXor) {
            return Build(Op::kNot, {A()});
        }
        return e_.op == Op::kAnd ? A() : B();
    }
    if (e_.op == Op::kAnd && e_.type != Type::kBool && std::has_single_bit(c + 1)) {
        // The low bits of a sum or product depend on the low bits of its parts.
        if (Bound(A()) <= c) {
            return A();
        }
        if (AsWithConst(A(), Op::kIAdd, &x, &d) && (d & c) != d) {
            return Build(Op::kAnd, {Build(Op::kIAdd, {x, Const(d & c)}), B()});
        }
        if (AsWithConst(A(), Op::kIMul, &x, &d) && (d & c) == 0) {
            return Const(0);
        }
    }
    if (AsWithConst(A(), e_.op, &x, &d)) {
        return Build(e_.op, {x, Const(e_.op == Op::kAnd  ? c & d
                                      : e_.op == Op::kOr ? c | d
                                                         : c ^ d)});
    }
    return kStays;
}

ValueId Algebra::FoldNot() {
    const Instruction* inner = kernel_.Definition(A());
    if (!inner || inner->operands.empty()) {
        return kStays;
    }
    ValueId a = inner->operands[0];
    ValueId b = inner->operands.back();
    switch (inner->op) {
        case Op::kNot:
            return a;
        case Op::kIEq:
            return Build(Op::kINe, {a, b});
        case Op::kINe:
            return Build(Op::kIEq, {a, b});
        case Op::kULt:
            return Build(Op::kULe, {b, a});
        case Op::kULe:
            return Build(Op::kULt, {b, a});
        case Op::kSLt:
            return Build(Op::kSLe, {b, a});
        case Op::kSLe:
            return Build(Op::kSLt, {b, a});
        case Op::kFOEq:
            return Build(Op::kFUNe, {a, b});
        case Op::kFUNe:
            return Build(Op::kFOEq, {a, b});
        case Op::kFONe:
            return Build(Op::kFUEq, {a, b});
        case Op::kFUEq:
            return Build(Op::kFONe, {a, b});
        case Op::kFOLt:
            return Build(Op::kFULe, {b, a});
        case Op::kFULe:
            return Build(Op::kFOLt, {b, a});
        case Op::kFOLe:
            return Build(Op::kFULt, {b, a});
        case Op::kFULt:
            return Build(Op::kFOLe, {b, a});
        default:
            return kStays;
    }
}

ValueId Algebra::FoldEquality() {
    bool equal = e_.op == Op::kIEq;
    uint64_t c = 0, d = 0, f = 0;
    ValueId x;
    if (A() == B()) {
        return Const(equal);
    }
    if (!IsConst(B(), &c)) {
        return kStays;
    }
    if (kernel_.type(A()) == Type::kBool) {
        return (c != 0) == equal ? A() : BuildNot(A());
    }
    if (Bound(A()) < c) {
        return Const(!equal);
    }
    if (AsWithConst(A(), Op::kIAdd, &x, &d)) {
        return Build(e_.op, {x, Const(kernel_.type(x), c - d)});
    }
    // A bool that went through an integer: (condition ? d : f) == c.
    const Instruction* select = As(A(), Op::kSelect);
    if (select && IsConst(select->operands[1], &d) && IsConst(select->operands[2], &f)) {
        bool if_true = (d == c) == equal;
        bool if_false = (f == c) == equal;
        if (if_true == if_false) {
            return Const(if_true);
        }
        return if_true ? select->operands[0] : BuildNot(select->operands[0]);
    }
    return kStays;
}

ValueId Algebra::FoldOrder() {
    bool or_equal = e_.op == Op::kULe || e_.op == Op::kSLe;
    uint64_t c = 0;
    if (A() == B()) {
        return Const(or_equal);
    }
    bool is_signed = e_.op == Op::kSLt || e_.op == Op::kSLe;
    if (is_signed) {
        if (IsNonNegative(A()) && IsNonNegative(B())) {
            return Build(or_equal ? Op::kULe : Op::kULt, {A(), B()});
        }
        return kStays;
    }
    ValueId zero = Const(kernel_.type(A()), 0);
    if (IsConst(B(), &c)) {
        if (or_equal ? Bound(A()) <= c : Bound(A()) < c) {
            return Const(1);
        }
        if (c == 0) {
            return or_equal ? Build(Op::kIEq, {A(), zero}) : Const(0);
        }
        if (c == 1 && !or_equal) {
            return Build(Op::kIEq, {A(), zero});
        }
    }
    if (IsConst(A(), &c)) {
        if (or_equal ? Bound(B()) < c : Bound(B()) <= c) {
            return Const(0);
        }
        if (c == 0) {
            return or_equal ? Const(1) : Build(Op::kINe, {B(), zero});
        }
    }
    return kStays;
}

ValueId Algebra::FoldSelect() {
    ValueId condition = e_.operands[0], a = e_.operands[1], b = e_.operands[2];
    uint64_t c = 0, d = 0;
    if (IsConst(condition, &c)) {
        return c ? a : b;
    }
    if (a == b) {
        return a;
    }
    if (const Instruction* inverse = As(condition, Op::kNot)) {
        return builder_.Build({Op::kSelect, e_.type, {inverse->operands[0], b, a}});
    }
    if (e_.type == Type::kBool) {
        bool const_a = IsConst(a, &c), const_b = IsConst(b, &d);
        if (const_a && const_b) {
            return c ? condition : BuildNot(condition);
        }
        if (const_a) {
            return c ? Build(Op::kOr, {condition, b}) : Build(Op::kAnd, {BuildNot(condition), b});
        }
        if (const_b) {
            return d ? Build(Op::kOr, {BuildNot(condition), a}) : Build(Op::kAnd, {condition, a});
        }
    }
    return kStays;
}

ValueId Algebra::FoldConversion() {
    const Instruction* inner = kernel_.Definition(A());
    if (e_.op == Op::kBitcast && kernel_.type(A()) == e_.type) {
        return A();
    }
    if (e_.op == Op::kFConvert && kernel_.type(A()) == e_.type) {
        return kStays;  // quiets a NaN
    }
    uint64_t c = 0;
    if (ValueId x; e_.op == Op::kSExt && (e_.flags & kNoLaneWrap) && Width() == 32 &&
                   AsWithConst(A(), Op::kIAdd, &x, &c) && c < kNearIndices) {
        return Build(Op::kIAdd, {BuildWide(Op::kSExt, x), Const(c)});
    }
    if (e_.op == Op::kSExt && IsNonNegative(A())) {
        return BuildWide(Op::kZExt, A());
    }
    if (!inner || inner->operands.empty()) {
        return kStays;
    }
    ValueId x = inner->operands[0];
    Type type = kernel_.type(x);
    switch (e_.op) {
        case Op::kBitcast:
            return inner->op == Op::kBitcast ? Build(Op::kBitcast, {x}) : kStays;
        case Op::kTrunc:
            if (inner->op == Op::kTrunc) {
                return Build(Op::kTrunc, {x});
            }
            if (inner->op != Op::kZExt && inner->op != Op::kSExt) {
                return kStays;
            }
            if (type == e_.type) {
                return x;
            }
            return BitWidth(type) > BitWidth(e_.type) ? Build(Op::kTrunc, {x})
                                                      : Build(inner->op, {x});
        case Op::kZExt:
            return inner->op == Op::kZExt ? Build(Op::kZExt, {x}) : kStays;
        case Op::kSExt:
            return inner->op == Op::kSExt || inner->op == Op::kZExt ? Build(inner->op, {x})
                                                                    : kStays;
        default:
            return kStays;
    }
}

// Fields at known places are shifts and masks, which analyses understand.
ValueId Algebra::FoldBitField() {
    uint64_t offset = 0, count = 0;
    if (!IsConst(e_.operands[1], &offset) || !IsConst(e_.operands[2], &count) || count == 0 ||
        offset + count > Width()) {
        return kStays;
    }
    ValueId shifted = Build(Op::kLShr, {A(), Const(offset)});
    return Build(Op::kAnd, {shifted, Const(~uint64_t{0} >> (64 - count))});
}

// x / 2^k is x * 2^-k, both being the same number rounded once; where 2^-k is normal.
ValueId Algebra::FoldDivisionByPower() {
    uint64_t bits = 0;
    if (e_.type == Type::kF16 || !IsConst(B(), &bits)) {
        return kStays;
    }
    uint32_t digits = e_.type == Type::kF32 ? 23 : 52;
    uint64_t exponent_mask = e_.type == Type::kF32 ? 0xff : 0x7ff;
    uint64_t exponent = bits >> digits & exponent_mask;
    uint64_t bias = exponent_mask / 2;
    bool power_of_two = (bits & ((uint64_t{1} << digits) - 1)) == 0;
    if (!power_of_two || exponent == 0 || exponent >= 2 * bias) {
        return kStays;
    }
    uint64_t sign = bits >> (digits + std::bit_width(exponent_mask));
    uint64_t inverse = (sign << std::bit_width(exponent_mask) | (2 * bias - exponent)) << digits;
    return builder_.Build({Op::kFMul, e_.type, {A(), Const(inverse)}, 0, e_.flags});
}

ValueId Algebra::FoldFloat() {
    auto is = [&](ValueId id, double value) {
        uint64_t bits = 0;
        if (!IsConst(id, &bits)) {
            return false;
        }
        switch (e_.type) {
            case Type::kF16:
                return bits == (value == 1 ? 0x3c00u : std::signbit(value) ? 0x8000u : 0u);
            case Type::kF32:
                return bits == std::bit_cast<uint32_t>(static_cast<float>(value));
            default:
                return bits == std::bit_cast<uint64_t>(value);
        }
    };
    switch (e_.op) {
        case Op::kFAdd:  // x + -0 is x; x + 0 is not, for x = -0
            return is(B(), -0.0) ? A() : kStays;
        case Op::kFSub:
            return is(B(), 0.0) ? A() : kStays;
        case Op::kFMul:
            return is(B(), 1.0) ? A() : kStays;
        case Op::kFDiv:
            return is(B(), 1.0) ? A() : FoldDivisionByPower();
        case Op::kFNeg:
        case Op::kFAbs: {
            const Instruction* inner = kernel_.Definition(A());
            if (!inner || (inner->op != Op::kFNeg && inner->op != Op::kFAbs)) {
                return kStays;
            }
            if (e_.op == Op::kFAbs) {
                return Build(Op::kFAbs, {inner->operands[0]});
            }
            return inner->op == Op::kFNeg ? inner->operands[0] : kStays;
        }
        default:
            return kStays;
    }
}

ValueId Algebra::Fold() {
    if (e_.count == 0) {
        return kStays;
    }
    if (ValueId constant = FoldConstants(); constant.valid()) {
        return constant;
    }
    OrderOperands();
    switch (e_.op) {
        case Op::kIAdd:
            return FoldAdd();
        case Op::kISub:
            return FoldSub();
        case Op::kIMul:
            return FoldMul();
        case Op::kUDiv:
        case Op::kSDiv:
        case Op::kURem:
        case Op::kSRem:
        case Op::kSMod:
            return FoldDivision();
        case Op::kINeg:
            if (const Instruction* inner = As(A(), Op::kINeg)) {
                return inner->operands[0];
            }
            return kStays;
        case Op::kShl:
        case Op::kLShr:
        case Op::kAShr:
            return FoldShift();
        case Op::kAnd:
        case Op::kOr:
        case Op::kXor:
            return FoldLogic();
        case Op::kNot:
            return FoldNot();
        case Op::kUMin:
        case Op::kUMax:
        case Op::kSMin:
        case Op::kSMax:
            return A() == B() ? A() : kStays;
        case Op::kIEq:
        case Op::kINe:
            return FoldEquality();
        case Op::kULt:
        case Op::kULe:
        case Op::kSLt:
        case Op::kSLe:
            return FoldOrder();
        case Op::kSelect:
            return FoldSelect();
        case Op::kTrunc:
        case Op::kZExt:
        case Op::kSExt:
        case Op::kFConvert:
        case Op::kBitcast:
            return FoldConversion();
        case Op::kBitFieldUExtract:
            return FoldBitField();
        case Op::kFAdd:
        case Op::kFSub:
        case Op::kFMul:
        case Op::kFDiv:
        case Op::kFNeg:
        case Op::kFAbs:
            return FoldFloat();
        default:
            return kStays;
    }
}

}  // namespace

ValueId FoldExpression(ExpressionBuilder& builder, Expression& expression) {
    return Algebra(builder, expression).Fold();
}

}  // namespace fornax::kernel
