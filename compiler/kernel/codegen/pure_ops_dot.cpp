// Dot products of what two words hold, added onto a third. Of four bytes: one instruction with
// VNNI, else two multiplications of 16-bit pairs. Of two bfloat16: VDPBF16PS, else two
// multiply-adds.
#include <algorithm>

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include "compiler/kernel/codegen/pure_ops_internal.h"

namespace fornax::kernel {

using ir::Op;

namespace {

class DotEmitter {
  public:
    DotEmitter(llvm::IRBuilderBase& builder, Op op, uint32_t bits)
        : b_(builder), signed_a_(op != Op::kUDot4), signed_b_(op == Op::kSDot4), bits_(bits) {}

    llvm::Value* Vector(llvm::Value* a, llvm::Value* b, llvm::Value* sum) {
        return HasVnni(b_) ? ByVnni(a, b, sum) : ByPairs(a, b, sum);
    }
    llvm::Value* Scalar(llvm::Value* a, llvm::Value* b, llvm::Value* sum);

  private:
    llvm::Value* Splat(llvm::Value* like, uint32_t value) const {
        return llvm::ConstantInt::get(like->getType(), value);
    }
    // sum + unsigned bytes * signed bytes.
    llvm::Value* DotUnsignedSigned(llvm::Value* sum, llvm::Value* u, llvm::Value* s) {
        return b_.CreateIntrinsic(Intrinsic(), {}, {sum, u, s});
    }
    llvm::Intrinsic::ID Intrinsic() const {
        return bits_ == 512   ? llvm::Intrinsic::x86_avx512_vpdpbusd_512
               : bits_ == 256 ? llvm::Intrinsic::x86_avx512_vpdpbusd_256
                              : llvm::Intrinsic::x86_avx512_vpdpbusd_128;
    }
    llvm::Value* TakenOff(llvm::Value* sum) const;
    static constexpr uint32_t kHighBits = 0x80808080;

    bool HighBitsAreClear(const llvm::Value* bytes) const;
    llvm::Value* ByVnni(llvm::Value* a, llvm::Value* b, llvm::Value* sum);
    llvm::Value* ByPairs(llvm::Value* a, llvm::Value* b, llvm::Value* sum);

    llvm::IRBuilderBase& b_;
    bool signed_a_;
    bool signed_b_;
    uint32_t bits_;
};

// Whether every byte is the same number read as signed and as unsigned.
bool DotEmitter::HighBitsAreClear(const llvm::Value* bytes) const {
    const llvm::DataLayout& layout = b_.GetInsertBlock()->getModule()->getDataLayout();
    return llvm::MaskedValueIsZero(bytes, llvm::APInt(32, 0x80808080), layout);
}

// What another product of signed bytes has taken off this sum; null if it is none.
llvm::Value* DotEmitter::TakenOff(llvm::Value* sum) const {
    auto* difference = llvm::dyn_cast<llvm::BinaryOperator>(sum);
    if (!difference || difference->getOpcode() != llvm::Instruction::Sub) {
        return nullptr;
    }
    auto* product = llvm::dyn_cast<llvm::IntrinsicInst>(difference->getOperand(1));
    const bool found = product && product->getIntrinsicID() == Intrinsic() &&
                       product->getArgOperand(1) == Splat(sum, kHighBits);
    return found ? product : nullptr;
}

// The instruction takes unsigned bytes times signed ones: others are moved by 128, and the products
// of what they were moved by taken off again.
llvm::Value* DotEmitter::ByVnni(llvm::Value* a, llvm::Value* b, llvm::Value* sum) {
    llvm::Value* high_bits = Splat(a, kHighBits);
    llvm::Value* zero = Splat(a, 0);
    if (signed_a_ && !signed_b_) {
        return DotUnsignedSigned(sum, b, a);
    }
    // Nibbles, for instance.
    if (HighBitsAreClear(signed_a_ ? a : b)) {
        return DotUnsignedSigned(sum, a, b);
    }
    if (HighBitsAreClear(signed_a_ ? b : a)) {
        return DotUnsignedSigned(sum, b, a);
    }
    if (signed_a_) {
        // In a chain of sums all of that is taken off at its end.
        llvm::Value* taken_off = zero;
        if (llvm::Value* before = TakenOff(sum)) {
            taken_off = before;
            sum = llvm::cast<llvm::Instruction>(sum)->getOperand(0);
        }
        llvm::Value* moved = DotUnsignedSigned(sum, b_.CreateXor(a, high_bits), b);
        return b_.CreateSub(moved, DotUnsignedSigned(taken_off, high_bits, b));
    }
    llvm::Value* moved = DotUnsignedSigned(sum, a, b_.CreateXor(b, high_bits));
    llvm::Value* bytes = DotUnsignedSigned(zero, a, Splat(a, 0x01010101));
    return b_.CreateAdd(moved, b_.CreateShl(bytes, Splat(a, 7)));
}

// Even and odd bytes as 16-bit integers; products of two pairs do not pass 32 bits.
llvm::Value* DotEmitter::ByPairs(llvm::Value* a, llvm::Value* b, llvm::Value* sum) {
    auto* words = llvm::cast<llvm::FixedVectorType>(a->getType());
    auto* halves = llvm::FixedVectorType::get(b_.getInt16Ty(), words->getNumElements() * 2);
    llvm::Value* eight = llvm::ConstantInt::get(halves, 8);
    auto bytes = [&](llvm::Value* value, bool is_signed, bool odd) {
        value = b_.CreateBitCast(value, halves);
        if (!odd) {
            value = b_.CreateShl(value, eight);
        }
        return is_signed ? b_.CreateAShr(value, eight) : b_.CreateLShr(value, eight);
    };
    const llvm::Intrinsic::ID id = bits_ == 512   ? llvm::Intrinsic::x86_avx512_pmaddw_d_512
                                   : bits_ == 256 ? llvm::Intrinsic::x86_avx2_pmadd_wd
                                                  : llvm::Intrinsic::x86_sse2_pmadd_wd;
    for (bool odd : {false, true}) {
        llvm::Value* pairs =
            b_.CreateIntrinsic(id, {}, {bytes(a, signed_a_, odd), bytes(b, signed_b_, odd)});
        sum = b_.CreateAdd(sum, pairs);
    }
    return sum;
}

llvm::Value* DotEmitter::Scalar(llvm::Value* a, llvm::Value* b, llvm::Value* sum) {
    auto byte = [&](llvm::Value* word, uint32_t i, bool is_signed) {
        llvm::Value* value =
            b_.CreateTrunc(b_.CreateLShr(word, Splat(word, 8 * i)), b_.getInt8Ty());
        return is_signed ? b_.CreateSExt(value, word->getType())
                         : b_.CreateZExt(value, word->getType());
    };
    for (uint32_t i = 0; i < 4; ++i) {
        sum = b_.CreateAdd(sum, b_.CreateMul(byte(a, i, signed_a_), byte(b, i, signed_b_)));
    }
    return sum;
}

llvm::Value* Part(llvm::IRBuilderBase& builder,
                  llvm::Value* vector,
                  unsigned first,
                  unsigned count) {
    // One that was just joined has it.
    auto* joined = llvm::dyn_cast<llvm::ShuffleVectorInst>(vector);
    if (joined && joined->isConcat()) {
        llvm::Value* half = joined->getOperand(0);
        const auto half_width =
            llvm::cast<llvm::FixedVectorType>(half->getType())->getNumElements();
        if (half_width == count && first % count == 0) {
            return joined->getOperand(first == 0 ? 0 : 1);
        }
        if (half_width > count) {
            return Part(builder, joined->getOperand(first < half_width ? 0 : 1), first % half_width,
                        count);
        }
    }
    const auto width = llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
    llvm::SmallVector<int, 64> pick;
    for (unsigned i = 0; i < count; ++i) {
        pick.push_back(first + i < width ? static_cast<int>(first + i) : -1);
    }
    return builder.CreateShuffleVector(vector, pick);
}

// `dot` of a register at a time; the last one may be partly used.
template <typename Dot>
llvm::Value* ByRegisters(const PureOp& op, Dot&& dot) {
    const unsigned width = llvm::cast<llvm::FixedVectorType>(op.in[0]->getType())->getNumElements();
    const unsigned part = VectorBitsOf(op.builder) / 32;
    llvm::SmallVector<llvm::Value*, 16> parts;
    for (unsigned at = 0; at < width; at += part) {
        llvm::Value* operands[3];
        for (int i = 0; i < 3; ++i) {
            operands[i] = width == part ? op.in[i] : Part(op.builder, op.in[i], at, part);
        }
        parts.push_back(dot(operands[0], operands[1], operands[2]));
    }
    while (parts.size() > 1) {
        llvm::SmallVector<llvm::Value*, 16> joined;
        const auto half = llvm::cast<llvm::FixedVectorType>(parts[0]->getType())->getNumElements();
        llvm::SmallVector<int, 64> all;
        for (unsigned i = 0; i < 2 * half; ++i) {
            all.push_back(static_cast<int>(i));
        }
        for (size_t i = 0; i < parts.size(); i += 2) {
            joined.push_back(op.builder.CreateShuffleVector(parts[i], parts[i + 1], all));
        }
        parts = joined;
    }
    return width < part ? Part(op.builder, parts[0], 0, width) : parts[0];
}

}  // namespace

llvm::Value* EmitDot4(const PureOp& op) {
    if (!op.in[0]->getType()->isVectorTy()) {
        return DotEmitter(op.builder, op.op, 0).Scalar(op.in[0], op.in[1], op.in[2]);
    }
    DotEmitter emitter(op.builder, op.op, VectorBitsOf(op.builder));
    return ByRegisters(op, [&](llvm::Value* a, llvm::Value* b, llvm::Value* sum) {
        return emitter.Vector(a, b, sum);
    });
}

llvm::Value* EmitBFloatDot2(const PureOp& op) {
    llvm::IRBuilderBase& b = op.builder;
    llvm::Type* type = op.in[0]->getType();
    if (type->isVectorTy() && HasBFloatDot(b)) {
        return ByRegisters(op, [&](llvm::Value* x, llvm::Value* y, llvm::Value* sum) {
            const auto count = llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements();
            auto* pairs = llvm::FixedVectorType::get(b.getBFloatTy(), count * 2);
            return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512, {},
                                     {sum, b.CreateBitCast(x, pairs), b.CreateBitCast(y, pairs)});
        });
    }
    llvm::Value* sum = op.in[2];
    for (const bool upper : {false, true}) {
        const auto half = [&](llvm::Value* word) {
            word = upper ? b.CreateAnd(word, llvm::ConstantInt::get(type, 0xffff0000U))
                         : b.CreateShl(word, llvm::ConstantInt::get(type, 16));
            return b.CreateBitCast(word, sum->getType());
        };
        llvm::Value* const operands[] = {half(op.in[0]), half(op.in[1]), sum};
        sum = EmitFloatOp({b, Op::kFma, operands, op.result})[0];
    }
    return sum;
}

}  // namespace fornax::kernel
