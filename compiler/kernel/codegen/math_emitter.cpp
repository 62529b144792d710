// What functions of the maths library share, and those that are only arithmetic.
#include "compiler/kernel/codegen/math_emitter.h"

#include <cassert>

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "compiler/kernel/codegen/pure_ops_internal.h"

namespace fornax::kernel {

namespace Intrinsic = llvm::Intrinsic;

namespace {

constexpr uint32_t kRoundingOfMxcsr = 4;  // as the last operand of intrinsics of 512 bits
constexpr double kLeastExponentOfAnything = -150;

}  // namespace

MathEmitter::MathEmitter(llvm::IRBuilderBase& builder, llvm::Type* type)
    : FloatCode(builder, type), avx512_(VectorBitsOf(builder) >= 512) {}

template <typename Call>
llvm::Value* MathEmitter::OnRegisters(std::initializer_list<V> operands, const Call& call) {
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type_);
    unsigned lanes = vector ? vector->getNumElements() : 1;
    unsigned part = std::min(std::max(lanes, 4u), 16u);
    llvm::SmallVector<V, 4> parts;
    for (unsigned first = 0; first < lanes; first += part) {
        llvm::SmallVector<V, 4> arguments;
        for (V operand : operands) {
            llvm::Type* register_type = llvm::FixedVectorType::get(b_.getFloatTy(), part);
            if (!vector) {
                operand = b_.CreateInsertElement(llvm::Constant::getNullValue(register_type),
                                                 operand, uint64_t{0});
            } else if (lanes != part) {
                llvm::SmallVector<int, 16> mask(part);
                for (unsigned i = 0; i < part; ++i) {
                    mask[i] = static_cast<int>(std::min(first + i, lanes - 1));
                }
                operand = b_.CreateShuffleVector(operand, mask);
            }
            arguments.push_back(operand);
        }
        parts.push_back(call(part, arguments));
    }
    if (!vector) {
        return b_.CreateExtractElement(parts[0], uint64_t{0});
    }
    while (parts.size() > 1) {
        llvm::SmallVector<V, 4> joined;
        for (size_t i = 0; i < parts.size(); i += 2) {
            unsigned length =
                llvm::cast<llvm::FixedVectorType>(parts[i]->getType())->getNumElements();
            llvm::SmallVector<int, 64> mask(2 * length);
            for (unsigned k = 0; k < 2 * length; ++k) {
                mask[k] = static_cast<int>(k);
            }
            joined.push_back(b_.CreateShuffleVector(parts[i], parts[i + 1], mask));
        }
        parts = std::move(joined);
    }
    if (lanes < 4) {
        llvm::SmallVector<int, 4> mask(lanes);
        for (unsigned k = 0; k < lanes; ++k) {
            mask[k] = static_cast<int>(k);
        }
        return b_.CreateShuffleVector(parts[0], mask);
    }
    return parts[0];
}

// As the operand of AVX-512's operations, which takes eight bits for four lanes, too.
llvm::Value* MathEmitter::MaskBits(V mask) {
    const unsigned lanes = llvm::cast<llvm::FixedVectorType>(mask->getType())->getNumElements();
    if (lanes == 4) {
        V none = llvm::Constant::getNullValue(mask->getType());
        mask = b_.CreateShuffleVector(mask, none, {0, 1, 2, 3, 4, 4, 4, 4});
    }
    return b_.CreateBitCast(mask, b_.getIntNTy(lanes == 16 ? 16 : 8));
}

// Significands are 2 at the most, and half of the smallest f32 is 2^-150. The processor takes a
// fifth of a microsecond to find that a number is too small, so lanes where nothing is left are
// left out.
llvm::Value* MathEmitter::ScaleByFloor(V significand, V exponent) {
    return OnRegisters({significand, exponent}, [&](unsigned lanes, auto& arguments) -> V {
        llvm::Type* type = arguments[0]->getType();
        V zero = llvm::Constant::getNullValue(type);
        Intrinsic::ID id = lanes == 4   ? Intrinsic::x86_avx512_mask_scalef_ps_128
                           : lanes == 8 ? Intrinsic::x86_avx512_mask_scalef_ps_256
                                        : Intrinsic::x86_avx512_mask_scalef_ps_512;
        llvm::SmallVector<V, 5> list = {arguments[0], arguments[1], zero};
        list.push_back(MaskBits(
            b_.CreateFCmpUGE(arguments[1], llvm::ConstantFP::get(type, kLeastExponentOfAnything))));
        if (lanes == 16) {
            list.push_back(b_.getInt32(kRoundingOfMxcsr));
        }
        return b_.CreateIntrinsic(id, {}, list);
    });
}

llvm::Value* MathEmitter::FractionAboveFloor(V x) {
    return OnRegisters({x}, [&](unsigned lanes, auto& arguments) -> V {
        V zero = llvm::Constant::getNullValue(arguments[0]->getType());
        Intrinsic::ID id = lanes == 4   ? Intrinsic::x86_avx512_mask_reduce_ps_128
                           : lanes == 8 ? Intrinsic::x86_avx512_mask_reduce_ps_256
                                        : Intrinsic::x86_avx512_mask_reduce_ps_512;
        constexpr uint32_t kFloor = 1;  // to no digit behind the point
        llvm::SmallVector<V, 5> list = {arguments[0], b_.getInt32(kFloor), zero};
        list.push_back(lanes == 16 ? b_.getInt16(0xffff) : b_.getInt8(0xff));
        if (lanes == 16) {
            list.push_back(b_.getInt32(kRoundingOfMxcsr));
        }
        return b_.CreateIntrinsic(id, {}, list);
    });
}

llvm::Value* MathEmitter::Scale(V significand, V shifted) {
    if (has_avx512()) {
        return ScaleByFloor(significand, Sub(shifted, F(kExponentShift)));
    }
    // Two factors, because 2^-150 and 2^128 are no f32. The product of significand and the first
    // is exact, so only the second multiplication rounds. The lowest nine bits are the exponent and
    // twice the bias of f32: halved, with a bias each.
    V bits = Bits(shifted);
    V first = b_.CreateAnd(b_.CreateShl(bits, I(22)), I(0x7f800000));
    V second = b_.CreateSub(b_.CreateShl(bits, I(23)), first);
    return Mul(Mul(significand, FromBits(first)), FromBits(second));
}

llvm::Value* MathEmitter::Estimate(V x, std::array<Intrinsic::ID, 3> of_128_256_512) {
    return OnRegisters({x}, [&](unsigned lanes, auto& arguments) -> V {
        V zero = llvm::Constant::getNullValue(arguments[0]->getType());
        V all = lanes == 16 ? b_.getInt16(0xffff) : b_.getInt8(0xff);
        return b_.CreateIntrinsic(of_128_256_512[lanes / 8], {}, {arguments[0], zero, all});
    });
}

// AVX-512's estimate has 14 bits; one step of Newton's method doubles them. For 0 and infinity the
// estimate is exact and the step makes NaN.
llvm::Value* MathEmitter::RSqrt(V x) {
    if (!has_avx512()) {
        return Div(F(1.0), Sqrt(x));
    }
    V estimate =
        Estimate(x, {Intrinsic::x86_avx512_rsqrt14_ps_128, Intrinsic::x86_avx512_rsqrt14_ps_256,
                     Intrinsic::x86_avx512_rsqrt14_ps_512});
    V error = Fma(Neg(Mul(x, estimate)), estimate, F(1.0));
    V refined = Fma(Mul(estimate, F(0.5)), error, estimate);
    return Select(b_.CreateFCmpUNO(refined, refined), estimate, refined);
}

// The error of the estimate, 2^-14, is squared by one step. A division of 512 bits keeps its unit
// busy for as long as 20 other operations take.
llvm::Value* MathEmitter::Quotient(V over, V under) {
    if (!has_avx512()) {
        return Div(over, under);
    }
    V estimate =
        Estimate(under, {Intrinsic::x86_avx512_rcp14_ps_128, Intrinsic::x86_avx512_rcp14_ps_256,
                         Intrinsic::x86_avx512_rcp14_ps_512});
    V error = Fma(Neg(under), estimate, F(1.0));
    V quotient = Mul(over, estimate);
    return Fma(quotient, error, quotient);
}

// In f64 every product of an f32 and a power of two that matters is exact, so the conversion back
// rounds once, as ldexp must.
llvm::Value* MathEmitter::Ldexp(V x, V exponent) {
    V bounded = b_.CreateBinaryIntrinsic(Intrinsic::smin, exponent, I(300));
    bounded = b_.CreateBinaryIntrinsic(Intrinsic::smax, bounded, I(-300));
    llvm::Type* int64 = SameShape(type_, b_.getInt64Ty());
    V biased = b_.CreateZExt(b_.CreateAdd(bounded, I(1023)), int64);
    V power =
        b_.CreateBitCast(b_.CreateShl(biased, llvm::ConstantInt::get(int64, 52)), double_type_);
    return b_.CreateFPTrunc(b_.CreateFMul(b_.CreateFPExt(x, double_type_), power), type_);
}

}  // namespace fornax::kernel
