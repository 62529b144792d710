// Constant folding and algebraic identities of single expressions.
//
// Integer rules use arithmetic modulo 2^width. Float rules hold for every operand, NaN, infinities
// and signed zero included.
#include <bit>
#include <cmath>
#include <utility>

#include "compiler/kernel/ir/evaluate.h"
#include "compiler/kernel/transform/algebra.h"

namespace fornax::kernel {

using namespace ir;

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

// Clamped indices: shaders of WebGPU are full of them.
ValueId Algebra::FoldExtreme() {
    if (A() == B()) {
        return A();
    }
    uint64_t c = 0;
    const bool is_signed = e_.op == Op::kSMin || e_.op == Op::kSMax;
    if (!IsConst(B(), &c) || Bound(A()) > c || (is_signed && !IsNonNegative(B()))) {
        return kStays;
    }
    // What is at most c, and not negative where that matters.
    return e_.op == Op::kUMin || e_.op == Op::kSMin ? A() : B();
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
            return FoldExtreme();
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
        case Op::kPow:
            return FoldPow();
        case Op::kFOLt:
        case Op::kFOLe:
        case Op::kFULt:
        case Op::kFULe:
            return FoldRootOrder();
        default:
            return kStays;
    }
}

ValueId FoldExpression(ExpressionBuilder& builder, Expression& expression) {
    return Algebra(builder, expression).Fold();
}

}  // namespace fornax::kernel
