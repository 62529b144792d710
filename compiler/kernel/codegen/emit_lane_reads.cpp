// Every lane reads the lane that it names: the host's permutations of 32-bit words.
#include <llvm/IR/IntrinsicsX86.h>

#include "compiler/kernel/codegen/emitter.h"

namespace fornax::kernel {

using llvm::Value;

Value* Emitter::Permute(Value* vector, Value* lanes) {
    llvm::Type* type = vector->getType();
    const uint32_t bits = type->getScalarSizeInBits();
    llvm::Type* integer = VectorOf(builder_.getIntNTy(bits));
    llvm::Type* words = VectorOf(builder_.getInt32Ty());
    vector = builder_.CreateBitCast(vector, integer);
    if (bits <= 32) {
        vector = PermuteWords(builder_.CreateZExt(vector, words), lanes);
        return builder_.CreateBitCast(builder_.CreateTrunc(vector, integer), type);
    }
    Value* shift = llvm::ConstantInt::get(integer, 32);
    Value* low = PermuteWords(builder_.CreateTrunc(vector, words), lanes);
    Value* high = builder_.CreateTrunc(builder_.CreateLShr(vector, shift), words);
    high = PermuteWords(high, lanes);
    vector = builder_.CreateOr(builder_.CreateZExt(low, integer),
                               builder_.CreateShl(builder_.CreateZExt(high, integer), shift));
    return builder_.CreateBitCast(vector, type);
}

Value* Emitter::PermuteWords(Value* words, Value* lanes) {
    // The instructions look at no more bits of a lane's number than they need.
    const bool wide = vector_bits_ >= 512 && lanes_ >= 16;
    const uint32_t part_lanes = wide ? 16 : 8;
    const uint32_t parts = lanes_ / part_lanes;
    if (vector_bits_ < 256 || parts == 0 || parts > 4) {
        // Through memory. A register written whole is forwarded to loads inside it.
        llvm::AllocaInst* slot = NewAlloca(words->getType(), "lanes");
        builder_.CreateStore(words, slot);
        lanes = builder_.CreateAnd(lanes, Splat(builder_.getInt32(lanes_ - 1)));
        Value* addresses = builder_.CreateGEP(builder_.getInt32Ty(), slot, lanes);
        return builder_.CreateMaskedGather(words->getType(), addresses, llvm::Align(4));
    }
    return ShareCode("permute", {words, lanes}, [&](llvm::ArrayRef<Value*> in) {
        return PermuteRegisters(in[0], in[1], part_lanes);
    });
}

// By parts of `part_lanes`.
Value* Emitter::PermuteRegisters(Value* words, Value* lanes, uint32_t part_lanes) {
    const bool wide = part_lanes == 16;
    const uint32_t parts = lanes_ / part_lanes;
    auto part = [&](Value* vector, uint32_t index) {
        llvm::SmallVector<int, 16> numbers;
        for (uint32_t i = 0; i < part_lanes; ++i) {
            numbers.push_back(static_cast<int>(index * part_lanes + i));
        }
        return parts == 1 ? vector : builder_.CreateShuffleVector(vector, numbers);
    };
    llvm::SmallVector<Value*, 4> sources;
    for (uint32_t i = 0; i < parts; ++i) {
        sources.push_back(part(words, i));
    }
    llvm::Type* part_type = llvm::FixedVectorType::get(builder_.getInt32Ty(), part_lanes);
    llvm::SmallVector<Value*, 4> results;
    for (uint32_t i = 0; i < parts; ++i) {
        Value* from = part(lanes, i);
        // One instruction serves one source register, or two of 512 bits; selects join them.
        llvm::SmallVector<Value*, 4> found;
        for (uint32_t k = 0; k < parts; ++k) {
            if (!wide) {
                found.push_back(builder_.CreateIntrinsic(llvm::Intrinsic::x86_avx2_permd, {},
                                                         {sources[k], from}));
            } else if (parts == 1) {
                found.push_back(builder_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_si_512,
                                                         {}, {sources[k], from}));
            } else if (k % 2 == 0) {
                found.push_back(
                    builder_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpermi2var_d_512, {},
                                             {sources[k], from, sources[k + 1]}));
            }
        }
        uint32_t bit = lanes_ / static_cast<uint32_t>(found.size());
        for (; found.size() > 1; bit *= 2) {
            Value* test = builder_.CreateAnd(from, llvm::ConstantInt::get(part_type, bit));
            Value* upper = builder_.CreateICmpNE(test, llvm::Constant::getNullValue(part_type));
            llvm::SmallVector<Value*, 4> joined;
            for (size_t k = 0; k < found.size(); k += 2) {
                joined.push_back(builder_.CreateSelect(upper, found[k + 1], found[k]));
            }
            found = joined;
        }
        results.push_back(found[0]);
    }
    for (; results.size() > 1;) {
        llvm::SmallVector<Value*, 4> joined;
        for (size_t k = 0; k < results.size(); k += 2) {
            auto* type = llvm::cast<llvm::FixedVectorType>(results[k]->getType());
            llvm::SmallVector<int, 64> numbers;
            for (unsigned i = 0; i < 2 * type->getNumElements(); ++i) {
                numbers.push_back(static_cast<int>(i));
            }
            joined.push_back(builder_.CreateShuffleVector(results[k], results[k + 1], numbers));
        }
        results = joined;
    }
    return results[0];
}

}  // namespace fornax::kernel
