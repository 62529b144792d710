// Gathers and scatters: an element a lane, at places that no pattern tells.
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>

#include "compiler/kernel/codegen/memory_code.h"

namespace fornax::kernel {

using llvm::Value;
using Bounds = MemoryRegion::Bounds;

// A run of elements a lane: row by row where that is faster.
MemoryCode::Values MemoryCode::GatherRuns(const MemoryRegion& region,
                                          Value* offsets,
                                          llvm::Type* type,
                                          size_t count) {
    const uint64_t bytes = type->getPrimitiveSizeInBits() / 8 * count;
    if (region.lane_bases || !MovesRows(type, count)) {
        return Gather(region, offsets, type, count);
    }
    Value* holds = nullptr;
    if (region.bounds == Bounds::kChecked) {
        Value* outside = builder_.CreateNot(LanesInBounds(region, offsets, bytes));
        holds = builder_.CreateNot(code_.Any(builder_.CreateAnd(code_.Mask(), outside)));
    }
    if (code_.mask && !region.is_global && region.known_size < bytes) {
        // Lanes that are not active read a run at the beginning.
        if (!region.size) {
            return Gather(region, offsets, type, count);
        }
        Value* has_one = builder_.CreateICmpUGE(region.size, builder_.getInt64(bytes));
        holds = holds ? builder_.CreateAnd(holds, has_one) : has_one;
    }
    recorder_.Form(AccessForm::kLaneRows, CheckOf(region, AccessCheck::kLanes));
    if (!holds) {
        return GatherRows(region, offsets, type, count);
    }
    return EitherWay(
        holds, "gather_rows", [&] { return GatherRows(region, offsets, type, count); },
        [&] { return Gather(region, offsets, type, count); });
}

MemoryCode::Values MemoryCode::Gather(const MemoryRegion& region,
                                      Value* offsets,
                                      llvm::Type* type,
                                      size_t count) {
    const uint64_t element = type->getPrimitiveSizeInBits() / 8;
    const bool by_lane = code_.vector_bits < kLeastGatherBits;
    recorder_.Form(by_lane ? AccessForm::kLaneLoop : AccessForm::kGather,
                   CheckOf(region, AccessCheck::kLanes));
    if (region.is_global || region.lane_bases) {
        return GatherLanes(region, offsets, type, count);
    }
    if (element < 4) {
        return GatherNarrow(region, offsets, type, count);
    }
    if (by_lane) {
        if (region.bounds == Bounds::kClamped) {
            offsets = ClampScalar(region, offsets, element * count);
        }
        return GatherByLane(region, offsets, type, count);
    }
    Values masks;
    for (size_t i = 0; i < count; ++i) {
        masks.push_back(ElementMask(region, offsets, i * element, element));
    }
    if (region.bounds == Bounds::kClamped) {
        offsets = ClampScalar(region, offsets, element * count);
    }
    Values results;
    for (size_t i = 0; i < count; ++i) {
        const auto [base, at] = ElementPlaces(region, offsets, i * element);
        results.push_back(MaskedGather(region, code_.VectorOf(type), base, at, masks[i]));
    }
    return results;
}

// Where an element lies that is so many bytes behind others: a base for all lanes, and the lanes'
// offsets from it, which the instructions take as signed.
std::pair<Value*, Value*> MemoryCode::ElementPlaces(const MemoryRegion& region,
                                                    Value* offsets,
                                                    uint64_t behind) {
    Value* base = region.base;
    if (region.bounds == Bounds::kChecked) {
        // An offset of 32 bits wraps, as in the test of the element's place.
        offsets = builder_.CreateAdd(offsets, vectors::Same(offsets->getType(), behind));
    } else if (behind != 0) {
        base = builder_.CreateConstGEP1_64(builder_.getInt8Ty(), base, behind);
    }
    if (region.may_pass_2gib && offsets->getType()->getScalarType()->isIntegerTy(32)) {
        // Move the base to the middle of the 4 GiB.
        base = builder_.CreateConstGEP1_64(builder_.getInt8Ty(), base, uint64_t{1} << 31);
        offsets = builder_.CreateXor(offsets, code_.Splat(builder_.getInt32(0x80000000u)));
    }
    return {base, offsets};
}

// An element a lane, of `type`, which has 32 or 64 bits a lane; zero where the mask is not set. The
// offsets, in bytes, are signed.
Value* MemoryCode::MaskedGather(const MemoryRegion& region,
                                llvm::Type* type,
                                Value* base,
                                Value* offsets,
                                Value* mask) {
    const unsigned bits = type->getScalarSizeInBits();
    const unsigned offset_bits = offsets->getType()->getScalarSizeInBits();
    const uint32_t part_lanes = 256 / std::max(bits, offset_bits);
    if (code_.vector_bits != 256 || code_.lanes % part_lanes != 0) {
        Value* addresses = builder_.CreateGEP(builder_.getInt8Ty(), base, offsets);
        return Annotate(region,
                        builder_.CreateMaskedGather(type, addresses, llvm::Align(bits / 8), mask,
                                                    llvm::Constant::getNullValue(type)));
    }
    // LLVM scalarizes a gather into branches for the processors on which the instruction is no
    // faster than that, which is many times as much code.
    const llvm::Intrinsic::ID instruction =
        bits == 32 ? (offset_bits == 32 ? llvm::Intrinsic::x86_avx2_gather_d_d_256
                                        : llvm::Intrinsic::x86_avx2_gather_q_d_256)
                   : (offset_bits == 32 ? llvm::Intrinsic::x86_avx2_gather_d_q_256
                                        : llvm::Intrinsic::x86_avx2_gather_q_q_256);
    llvm::Type* integer = builder_.getIntNTy(bits);
    llvm::Type* part_type = llvm::FixedVectorType::get(integer, part_lanes);
    auto part = [&](Value* vector, uint32_t first) -> Value* {
        auto* length = llvm::FixedVectorType::get(vector->getType()->getScalarType(), part_lanes);
        return code_.lanes == part_lanes
                   ? vector
                   : builder_.CreateExtractVector(length, vector, builder_.getInt64(first));
    };
    Value* signs = builder_.CreateSExt(mask, code_.VectorOf(integer));
    Value* all = llvm::PoisonValue::get(code_.VectorOf(integer));
    for (uint32_t first = 0; first < code_.lanes; first += part_lanes) {
        Value* gathered = builder_.CreateIntrinsic(
            instruction, {},
            {llvm::Constant::getNullValue(part_type), base, part(offsets, first),
             part(signs, first), builder_.getInt8(1)});
        Annotate(region, gathered);
        all = code_.lanes == part_lanes ? gathered
                                        : builder_.CreateInsertVector(all->getType(), all, gathered,
                                                                      builder_.getInt64(first));
    }
    return builder_.CreateBitCast(all, type);
}

void MemoryCode::Scatter(const MemoryRegion& region,
                         Value* offsets,
                         llvm::ArrayRef<Value*> values) {
    if (!region.lane_bases && MovesRows(values[0]->getType(), values.size())) {
        ScatterRows(region, offsets, values);
        return;
    }
    ScatterElements(region, offsets, values);
}

// Each element by itself.
void MemoryCode::ScatterElements(const MemoryRegion& region,
                                 Value* offsets,
                                 llvm::ArrayRef<Value*> values) {
    const uint64_t element = values[0]->getType()->getScalarSizeInBits() / 8;
    const bool by_lane =
        code_.vector_bits < kLeastScatterBits || (element < 4 && element * values.size() % 4 != 0);
    recorder_.Form(by_lane ? AccessForm::kLaneLoop : AccessForm::kGather,
                   CheckOf(region, AccessCheck::kLanes));
    if (region.is_global || region.lane_bases) {
        ScatterLanes(region, offsets, values);
        return;
    }
    if (element < 4) {
        ScatterNarrow(region, offsets, values);
        return;
    }
    Values masks;
    for (size_t i = 0; i < values.size(); ++i) {
        masks.push_back(ElementMask(region, offsets, i * element, element));
    }
    if (region.bounds == Bounds::kClamped) {
        offsets = ClampScalar(region, offsets, element * values.size());
    }
    if (by_lane) {
        for (size_t i = 0; i < values.size(); ++i) {
            Value* at = builder_.CreateAdd(offsets, vectors::Same(offsets->getType(), i * element));
            StoreByLane(region, at, values[i], masks[i]);
        }
        return;
    }
    for (size_t i = 0; i < values.size(); ++i) {
        const auto [base, at] = ElementPlaces(region, offsets, i * element);
        Value* addresses = builder_.CreateGEP(builder_.getInt8Ty(), base, at);
        Annotate(region, builder_.CreateMaskedScatter(values[i], addresses, llvm::Align(element),
                                                      masks[i]));
    }
}

}  // namespace fornax::kernel
