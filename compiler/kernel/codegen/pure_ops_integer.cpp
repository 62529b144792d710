// Integer and boolean operations.
//
// LLVM's division is undefined for a zero divisor and for INT_MIN / -1, and x86 traps on both, so
// every division is guarded or done in floating point. There is no vector division in x86: 32-bit
// quotients come out of f64 exactly, narrower ones out of f32. Constant divisors stay LLVM's
// business, which multiplies instead.
#include <cassert>

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/PatternMatch.h>

#include "compiler/kernel/codegen/pure_ops_internal.h"

namespace fornax::kernel {

using ir::Op;
using llvm::Intrinsic::ID;

namespace {

// An inverse of an integer by which quotients are never too small (QuotientByFloat).
llvm::Value* InverseAbove(llvm::IRBuilderBase& builder, llvm::Value* number) {
    llvm::Type* type = number->getType();
    const double above = type->isDoubleTy() ? 0x1.0000000000002p0 : 0x1.000004p0;
    return builder.CreateFMul(builder.CreateFDiv(llvm::ConstantFP::get(type, 1), number),
                              llvm::ConstantFP::get(type, above));
}

class IntegerEmitter {
  public:
    explicit IntegerEmitter(const PureOp& op)
        : b_(op.builder), op_(op.op), in_(op.in), type_(in_[0]->getType()), result_(op.result) {}

    Values Emit();

  private:
    uint32_t bits() const { return type_->getScalarSizeInBits(); }
    llvm::Value* Int(uint64_t value) const { return llvm::ConstantInt::get(type_, value); }
    llvm::Value* MinusOne() const { return llvm::Constant::getAllOnesValue(type_); }
    llvm::Value* Binary(ID id) { return b_.CreateBinaryIntrinsic(id, in_[0], in_[1]); }
    // An operand of another integer width, as this operation's type.
    llvm::Value* Resize(llvm::Value* value) { return b_.CreateZExtOrTrunc(value, type_); }

    llvm::Value* Shift(llvm::Instruction::BinaryOps shift);
    llvm::Value* Quotient(bool is_signed);
    llvm::Value* Product(llvm::Value* a, llvm::Value* c);
    llvm::Value* Remainder(bool is_signed);
    llvm::Value* DivisorWithoutTraps(bool is_signed);
    llvm::Value* QuotientByFloat(bool is_signed);
    llvm::Value* FloorModulo();
    Values MultiplyExtended(bool is_signed);
    llvm::Value* InsertBits();
    llvm::Value* ExtractBits(bool is_signed);
    llvm::Value* LowestBit();
    llvm::Value* HighestBit(llvm::Value* value);

    llvm::IRBuilderBase& b_;
    Op op_;
    llvm::ArrayRef<llvm::Value*> in_;
    llvm::Type* type_;
    llvm::Type* result_;
};

// A shift by the width or more is poison in LLVM and "any value" here.
llvm::Value* IntegerEmitter::Shift(llvm::Instruction::BinaryOps shift) {
    return AnyValue(b_, b_.CreateBinOp(shift, in_[0], Resize(in_[1])));
}

// A divisor for which the machine's division instruction has a result; others keep their value.
llvm::Value* IntegerEmitter::DivisorWithoutTraps(bool is_signed) {
    if (!is_signed) {
        return b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, in_[1], Int(1));
    }
    llvm::Value* overflow = b_.CreateAnd(b_.CreateICmpEQ(in_[0], Int(uint64_t{1} << (bits() - 1))),
                                         b_.CreateICmpEQ(in_[1], MinusOne()));
    llvm::Value* trap = b_.CreateOr(overflow, b_.CreateICmpEQ(in_[1], Int(0)));
    return b_.CreateSelect(trap, Int(1), in_[1]);
}

// For n-bit operands and a float format of more than 2n - 2 digits... more simply: a quotient below
// 2^n with a fractional part differs from the next integer by at least 1/divisor, and rounding to p
// digits moves it by at most quotient * 2^-p < 2^(n-p) / divisor. So p > n makes truncation exact:
// 53 > 32 and 24 > 16.
//
// A divisor that is the same for all lanes is inverted once. Its inverse is taken two units of the
// last place too large, so that the product, which rounds once more, is never below the quotient,
// and above it by less than quotient * 2^(3-p) <= 2^(n+3-p) / divisor: still not at the next
// integer.
llvm::Value* IntegerEmitter::QuotientByFloat(bool is_signed) {
    llvm::FastMathFlags none;
    b_.setFastMathFlags(none);
    if (llvm::Value* divisor = llvm::getSplatValue(in_[1]); divisor && bits() >= 16) {
        llvm::Type* scalar = bits() == 32 ? b_.getDoubleTy() : b_.getFloatTy();
        llvm::Value* inverse = InverseAbove(
            b_, is_signed ? b_.CreateSIToFP(divisor, scalar) : b_.CreateUIToFP(divisor, scalar));
        const unsigned lanes = llvm::cast<llvm::FixedVectorType>(type_)->getNumElements();
        inverse = b_.CreateVectorSplat(lanes, inverse);
        llvm::Type* wide = SameShape(type_, scalar);
        llvm::Value* value =
            is_signed ? b_.CreateSIToFP(in_[0], wide) : b_.CreateUIToFP(in_[0], wide);
        value = b_.CreateFMul(value, inverse);
        return AnyValue(b_,
                        is_signed ? b_.CreateFPToSI(value, type_) : b_.CreateFPToUI(value, type_));
    }
    llvm::Type* format = SameShape(type_, bits() == 32 ? b_.getDoubleTy() : b_.getFloatTy());
    if (is_signed) {
        llvm::Value* quotient =
            b_.CreateFDiv(b_.CreateSIToFP(in_[0], format), b_.CreateSIToFP(in_[1], format));
        return AnyValue(b_, b_.CreateFPToSI(quotient, type_));
    }
    llvm::Value* quotient =
        b_.CreateFDiv(b_.CreateUIToFP(in_[0], format), b_.CreateUIToFP(in_[1], format));
    return AnyValue(b_, b_.CreateFPToUI(quotient, type_));
}

llvm::Value* IntegerEmitter::Quotient(bool is_signed) {
    bool by_float = type_->isVectorTy() && bits() <= 32 && !llvm::isa<llvm::Constant>(in_[1]);
    if (by_float) {
        return QuotientByFloat(is_signed);
    }
    llvm::Value* divisor = DivisorWithoutTraps(is_signed);
    return is_signed ? b_.CreateSDiv(in_[0], divisor) : b_.CreateUDiv(in_[0], divisor);
}

llvm::Value* IntegerEmitter::Remainder(bool is_signed) {
    bool by_float = type_->isVectorTy() && bits() <= 32 && !llvm::isa<llvm::Constant>(in_[1]);
    if (by_float) {
        return b_.CreateSub(in_[0], b_.CreateMul(QuotientByFloat(is_signed), in_[1]));
    }
    llvm::Value* divisor = DivisorWithoutTraps(is_signed);
    return is_signed ? b_.CreateSRem(in_[0], divisor) : b_.CreateURem(in_[0], divisor);
}

// The truncated remainder moves by the divisor where its sign is the other one.
llvm::Value* IntegerEmitter::FloorModulo() {
    llvm::Value* remainder = Remainder(/*is_signed=*/true);
    llvm::Value* signs_differ = b_.CreateICmpSLT(b_.CreateXor(remainder, in_[1]), Int(0));
    llvm::Value* adjust = b_.CreateAnd(signs_differ, b_.CreateICmpNE(remainder, Int(0)));
    return b_.CreateSelect(adjust, b_.CreateAdd(remainder, in_[1]), remainder);
}

Values IntegerEmitter::MultiplyExtended(bool is_signed) {
    llvm::Type* wide = SameShape(type_, b_.getIntNTy(2 * bits()));
    auto extend = [&](llvm::Value* value) {
        return is_signed ? b_.CreateSExt(value, wide) : b_.CreateZExt(value, wide);
    };
    llvm::Value* product = b_.CreateMul(extend(in_[0]), extend(in_[1]));
    llvm::Value* high = b_.CreateLShr(product, llvm::ConstantInt::get(wide, bits()));
    return {b_.CreateMul(in_[0], in_[1]), b_.CreateTrunc(high, type_)};
}

// Offsets and counts outside the word are undefined in SPIR-V; here they wrap. A count of 0 and one
// of the whole word are ordinary.
llvm::Value* IntegerEmitter::InsertBits() {
    llvm::Value* width = Int(bits());
    llvm::Value* last = Int(bits() - 1);
    llvm::Value* offset = b_.CreateAnd(Resize(in_[2]), last);
    llvm::Value* count = Resize(in_[3]);
    llvm::Value* ones = b_.CreateLShr(MinusOne(), b_.CreateAnd(b_.CreateSub(width, count), last));
    llvm::Value* mask = b_.CreateShl(ones, offset);
    mask = b_.CreateSelect(b_.CreateICmpEQ(count, Int(0)), Int(0), mask);
    llvm::Value* moved = b_.CreateShl(in_[1], offset);
    return b_.CreateOr(b_.CreateAnd(moved, mask), b_.CreateAnd(in_[0], b_.CreateNot(mask)));
}

llvm::Value* IntegerEmitter::ExtractBits(bool is_signed) {
    llvm::Value* width = Int(bits());
    llvm::Value* last = Int(bits() - 1);
    llvm::Value* offset = Resize(in_[1]);
    llvm::Value* count = Resize(in_[2]);
    llvm::Value* up = b_.CreateAnd(b_.CreateSub(width, b_.CreateAdd(offset, count)), last);
    llvm::Value* down = b_.CreateAnd(b_.CreateSub(width, count), last);
    llvm::Value* top = b_.CreateShl(in_[0], up);
    llvm::Value* field = is_signed ? b_.CreateAShr(top, down) : b_.CreateLShr(top, down);
    return b_.CreateSelect(b_.CreateICmpEQ(count, Int(0)), Int(0), field);
}

llvm::Value* IntegerEmitter::LowestBit() {
    llvm::Value* index =
        b_.CreateIntrinsic(llvm::Intrinsic::cttz, {type_}, {in_[0], b_.getFalse()});
    return b_.CreateSelect(b_.CreateICmpEQ(in_[0], Int(0)), MinusOne(), index);
}

// ctlz counts `bits` for 0, which makes the -1.
llvm::Value* IntegerEmitter::HighestBit(llvm::Value* value) {
    llvm::Value* zeros = b_.CreateIntrinsic(llvm::Intrinsic::ctlz, {type_}, {value, b_.getFalse()});
    return b_.CreateSub(Int(bits() - 1), zeros);
}

// LLVM knows more bits of a shift than of a product by a power of two, such as that a bit which is
// moved up leaves the highest bit of its byte clear (pure_ops_dot.cpp).
llvm::Value* IntegerEmitter::Product(llvm::Value* a, llvm::Value* c) {
    const llvm::APInt* power = nullptr;
    return llvm::PatternMatch::match(c, llvm::PatternMatch::m_Power2(power))
               ? b_.CreateShl(a, power->logBase2())
               : b_.CreateMul(a, c);
}

Values IntegerEmitter::Emit() {
    llvm::Value* a = in_[0];
    llvm::Value* c = in_.size() > 1 ? in_[1] : nullptr;
    switch (op_) {
        case Op::kIAdd:
            return {b_.CreateAdd(a, c)};
        case Op::kISub:
            return {b_.CreateSub(a, c)};
        case Op::kIMul:
            return {Product(a, c)};
        case Op::kUDiv:
            return {Quotient(false)};
        case Op::kSDiv:
            return {Quotient(true)};
        case Op::kURem:
            return {Remainder(false)};
        case Op::kSRem:
            return {Remainder(true)};
        case Op::kSMod:
            return {FloorModulo()};
        case Op::kINeg:
            return {b_.CreateNeg(a)};
        case Op::kUAddCarry: {
            llvm::Value* sum = b_.CreateAdd(a, c);
            return {sum, b_.CreateZExt(b_.CreateICmpULT(sum, a), type_)};
        }
        case Op::kUSubBorrow:
            return {b_.CreateSub(a, c), b_.CreateZExt(b_.CreateICmpULT(a, c), type_)};
        case Op::kUMulExtended:
            return MultiplyExtended(false);
        case Op::kSMulExtended:
            return MultiplyExtended(true);
        case Op::kShl:
            return {Shift(llvm::Instruction::Shl)};
        case Op::kLShr:
            return {Shift(llvm::Instruction::LShr)};
        case Op::kAShr:
            return {Shift(llvm::Instruction::AShr)};
        case Op::kAnd:
            return {b_.CreateAnd(a, c)};
        case Op::kOr:
            return {b_.CreateOr(a, c)};
        case Op::kXor:
            return {b_.CreateXor(a, c)};
        case Op::kNot:
            return {b_.CreateNot(a)};
        case Op::kBitFieldInsert:
            return {InsertBits()};
        case Op::kBitFieldSExtract:
            return {ExtractBits(true)};
        case Op::kBitFieldUExtract:
            return {ExtractBits(false)};
        case Op::kBitReverse:
            return {b_.CreateUnaryIntrinsic(llvm::Intrinsic::bitreverse, a)};
        case Op::kBitCount:
            return {
                b_.CreateZExtOrTrunc(b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, a), result_)};
        case Op::kFindLsb:
            return {b_.CreateSExtOrTrunc(LowestBit(), result_)};
        case Op::kFindUMsb:
            return {b_.CreateSExtOrTrunc(HighestBit(a), result_)};
        case Op::kFindSMsb:
            // The highest bit that differs from the sign.
            return {b_.CreateSExtOrTrunc(
                HighestBit(b_.CreateXor(a, b_.CreateAShr(a, Int(bits() - 1)))), result_)};
        case Op::kUMin:
            return {Binary(llvm::Intrinsic::umin)};
        case Op::kUMax:
            return {Binary(llvm::Intrinsic::umax)};
        case Op::kSMin:
            return {Binary(llvm::Intrinsic::smin)};
        case Op::kSMax:
            return {Binary(llvm::Intrinsic::smax)};
        case Op::kSAbs:
            return {b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, a, b_.getFalse())};
        case Op::kSSign: {
            llvm::Value* bounded = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, Int(1));
            return {b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, bounded, MinusOne())};
        }
        case Op::kSDot4:
        case Op::kUDot4:
        case Op::kSUDot4:
            return {EmitDot4({b_, op_, in_, result_})};
        case Op::kBFloatDot2:
            return {EmitBFloatDot2({b_, op_, in_, result_})};
        case Op::kLaneRange:
            // Each lane has a range by itself; the emitter knows more (ValueCode::EmitLaneRange).
            return {a, Int(0)};
        case Op::kIEq:
            return {b_.CreateICmpEQ(a, c)};
        case Op::kINe:
            return {b_.CreateICmpNE(a, c)};
        case Op::kULt:
            return {b_.CreateICmpULT(a, c)};
        case Op::kULe:
            return {b_.CreateICmpULE(a, c)};
        case Op::kSLt:
            return {b_.CreateICmpSLT(a, c)};
        case Op::kSLe:
            return {b_.CreateICmpSLE(a, c)};
        default:
            break;
    }
    assert(false && "not a pure integer operation");
    return {};
}

}  // namespace

llvm::Value* EmitQuotientByInverse(llvm::IRBuilderBase& builder, llvm::Value* a, llvm::Value* b) {
    llvm::IRBuilderBase::FastMathFlagGuard guard(builder);
    builder.setFastMathFlags({});
    llvm::Type* number = builder.getDoubleTy();
    llvm::Value* inverse = InverseAbove(builder, builder.CreateUIToFP(b, number));
    llvm::Value* product = builder.CreateFMul(builder.CreateUIToFP(a, number), inverse);
    return AnyValue(builder, builder.CreateFPToUI(product, a->getType()));
}

Values EmitIntegerOp(const PureOp& op) {
    return IntegerEmitter(op).Emit();
}

}  // namespace fornax::kernel
