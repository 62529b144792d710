#include "compiler/kernel/codegen/emit_lane_reads.h"

#include <llvm/IR/IntrinsicsX86.h>

namespace fornax::kernel {

using llvm::Value;

namespace {

// By parts of `part_lanes`.
Value* PermuteRegisters(FunctionCode& code, Value* words, Value* lanes, uint32_t part_lanes) {
    const bool wide = part_lanes == 16;
    const uint32_t parts = code.lanes / part_lanes;
    auto part = [&](Value* vector, uint32_t index) {
        llvm::SmallVector<int, 16> numbers;
        for (uint32_t i = 0; i < part_lanes; ++i) {
            numbers.push_back(static_cast<int>(index * part_lanes + i));
        }
        return parts == 1 ? vector : code.builder.CreateShuffleVector(vector, numbers);
    };
    llvm::SmallVector<Value*, 4> sources;
    for (uint32_t i = 0; i < parts; ++i) {
        sources.push_back(part(words, i));
    }
    llvm::Type* part_type = llvm::FixedVectorType::get(code.builder.getInt32Ty(), part_lanes);
    llvm::SmallVector<Value*, 4> results;
    for (uint32_t i = 0; i < parts; ++i) {
        Value* from = part(lanes, i);
        // One instruction serves one source register, or two of 512 bits; selects join them.
        llvm::SmallVector<Value*, 4> found;
        for (uint32_t k = 0; k < parts; ++k) {
            if (!wide) {
                found.push_back(code.builder.CreateIntrinsic(llvm::Intrinsic::x86_avx2_permd, {},
                                                             {sources[k], from}));
            } else if (parts == 1) {
                found.push_back(code.builder.CreateIntrinsic(
                    llvm::Intrinsic::x86_avx512_permvar_si_512, {}, {sources[k], from}));
            } else if (k % 2 == 0) {
                found.push_back(
                    code.builder.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpermi2var_d_512, {},
                                                 {sources[k], from, sources[k + 1]}));
            }
        }
        uint32_t bit = code.lanes / static_cast<uint32_t>(found.size());
        for (; found.size() > 1; bit *= 2) {
            Value* test = code.builder.CreateAnd(from, llvm::ConstantInt::get(part_type, bit));
            Value* upper = code.builder.CreateICmpNE(test, llvm::Constant::getNullValue(part_type));
            llvm::SmallVector<Value*, 4> joined;
            for (size_t k = 0; k < found.size(); k += 2) {
                joined.push_back(code.builder.CreateSelect(upper, found[k + 1], found[k]));
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
            joined.push_back(code.builder.CreateShuffleVector(results[k], results[k + 1], numbers));
        }
        results = joined;
    }
    return results[0];
}

Value* PermuteWords(FunctionCode& code, Value* words, Value* lanes) {
    // The instructions look at no more bits of a lane's number than they need.
    const bool wide = code.vector_bits >= 512 && code.lanes >= 16;
    const uint32_t part_lanes = wide ? 16 : 8;
    const uint32_t parts = code.lanes / part_lanes;
    if (code.vector_bits < 256 || parts == 0 || parts > 4) {
        // Through memory. A register written whole is forwarded to loads inside it.
        llvm::AllocaInst* slot = code.NewAlloca(words->getType(), "lanes");
        code.builder.CreateStore(words, slot);
        lanes = code.builder.CreateAnd(lanes, code.Splat(code.builder.getInt32(code.lanes - 1)));
        Value* addresses = code.builder.CreateGEP(code.builder.getInt32Ty(), slot, lanes);
        return code.builder.CreateMaskedGather(words->getType(), addresses, llvm::Align(4));
    }
    return code.ShareCode("permute", {words, lanes}, [&](llvm::ArrayRef<Value*> in) {
        return PermuteRegisters(code, in[0], in[1], part_lanes);
    });
}

}  // namespace

Value* PermuteLanes(FunctionCode& code, Value* vector, Value* lanes) {
    llvm::Type* type = vector->getType();
    const uint32_t bits = type->getScalarSizeInBits();
    llvm::Type* integer = code.VectorOf(code.builder.getIntNTy(bits));
    llvm::Type* words = code.VectorOf(code.builder.getInt32Ty());
    vector = code.builder.CreateBitCast(vector, integer);
    if (bits <= 32) {
        vector = PermuteWords(code, code.builder.CreateZExt(vector, words), lanes);
        return code.builder.CreateBitCast(code.builder.CreateTrunc(vector, integer), type);
    }
    Value* shift = llvm::ConstantInt::get(integer, 32);
    Value* low = PermuteWords(code, code.builder.CreateTrunc(vector, words), lanes);
    Value* high = code.builder.CreateTrunc(code.builder.CreateLShr(vector, shift), words);
    high = PermuteWords(code, high, lanes);
    vector = code.builder.CreateOr(
        code.builder.CreateZExt(low, integer),
        code.builder.CreateShl(code.builder.CreateZExt(high, integer), shift));
    return code.builder.CreateBitCast(vector, type);
}

}  // namespace fornax::kernel
