// Accesses that have no one base for all lanes: device addresses, and buffers that differ between
// lanes (descriptors chosen by an index that is not uniform, pointers chosen at run time).
//
// A device address with a uniform base and lane constants goes the way of any other access
// (emit_plan.cpp); here is what is left over: a full address a lane.
#include "compiler/kernel/codegen/memory_code.h"
#include "hal/kernel_abi.h"

namespace fornax::kernel {

using llvm::BasicBlock;
using llvm::Value;
using Bounds = MemoryRegion::Bounds;

// The address of the element for each lane; `mask` loses the lanes that are out of bounds.
Value* MemoryCode::LaneAddresses(const MemoryRegion& region,
                                 Value* offsets,
                                 uint64_t element,
                                 uint64_t index,
                                 Value*& mask) {
    llvm::Type* type = offsets->getType()->getScalarType();
    if (index != 0) {
        offsets =
            builder_.CreateAdd(offsets, code_.Splat(llvm::ConstantInt::get(type, index * element)));
    }
    if (!region.lane_bases) {
        return offsets;
    }
    llvm::Type* i64 = builder_.getInt64Ty();
    offsets = builder_.CreateZExt(offsets, code_.VectorOf(i64));
    if (region.bounds == Bounds::kChecked) {
        Value* bytes = code_.Splat(builder_.getInt64(element));
        Value* holds = builder_.CreateICmpUGE(region.lane_sizes, bytes);
        Value* last = builder_.CreateSub(region.lane_sizes, bytes);
        mask = builder_.CreateAnd(mask, holds);
        mask = builder_.CreateAnd(mask, builder_.CreateICmpULE(offsets, last));
    }
    return builder_.CreateAdd(region.lane_bases, offsets);
}

MemoryCode::Values MemoryCode::GatherLanes(const MemoryRegion& region,
                                           Value* offsets,
                                           llvm::Type* type,
                                           size_t count) {
    const uint64_t element = type->getPrimitiveSizeInBits() / 8;
    llvm::Type* ptrs = code_.VectorOf(builder_.getPtrTy());
    Values results;
    for (size_t i = 0; i < count; ++i) {
        Value* mask = code_.Mask();
        Value* addresses = LaneAddresses(region, offsets, element, i, mask);
        llvm::Type* loaded = type;
        Value* shift = nullptr;
        if (element < 4) {
            // There is no gather of narrow elements: take the word that holds it, which lies in the
            // same page.
            Value* inside = builder_.CreateAnd(addresses, code_.Splat(builder_.getInt64(3)));
            addresses = builder_.CreateSub(addresses, inside);
            loaded = builder_.getInt32Ty();
            shift =
                builder_.CreateTrunc(builder_.CreateShl(inside, code_.Splat(builder_.getInt64(3))),
                                     code_.VectorOf(loaded));
        }
        Value* value =
            Annotate(region, builder_.CreateMaskedGather(
                                 code_.VectorOf(loaded), builder_.CreateIntToPtr(addresses, ptrs),
                                 llvm::Align(std::max<uint64_t>(element, 4)), mask,
                                 llvm::Constant::getNullValue(code_.VectorOf(loaded))));
        if (shift) {
            value = builder_.CreateTrunc(
                builder_.CreateLShr(value, shift),
                code_.VectorOf(builder_.getIntNTy(static_cast<unsigned>(element * 8))));
            value = builder_.CreateBitCast(value, code_.VectorOf(type));
        }
        results.push_back(value);
    }
    return results;
}

void MemoryCode::ScatterLanes(const MemoryRegion& region,
                              Value* offsets,
                              llvm::ArrayRef<Value*> values) {
    llvm::Type* type = values[0]->getType()->getScalarType();
    const uint64_t element = type->getPrimitiveSizeInBits() / 8;
    for (size_t i = 0; i < values.size(); ++i) {
        Value* mask = code_.Mask();
        Value* addresses = LaneAddresses(region, offsets, element, i, mask);
        if (element < 4 || code_.vector_bits < kLeastScatterBits) {
            // There is no scatter of narrow elements either.
            LaneArray address_of = SpillLanes(addresses);
            LaneArray value_of = SpillLanes(values[i]);
            EmitLaneLoop(mask, [&](Value* lane) {
                Value* at =
                    builder_.CreateIntToPtr(LoadLane(address_of, lane), builder_.getPtrTy());
                Annotate(region, builder_.CreateAlignedStore(LoadLane(value_of, lane), at,
                                                             llvm::Align(element)));
            });
            continue;
        }
        Value* pointers = builder_.CreateIntToPtr(addresses, code_.VectorOf(builder_.getPtrTy()));
        Annotate(region,
                 builder_.CreateMaskedScatter(values[i], pointers, llvm::Align(element), mask));
    }
}

MemoryCode::LaneArray MemoryCode::SpillLanes(Value* vector) {
    LaneArray array;
    array.element = vector->getType()->getScalarType();
    array.slot = code_.NewAlloca(vector->getType(), "lanes");
    builder_.CreateStore(vector, array.slot);
    return array;
}

Value* MemoryCode::LoadLane(const LaneArray& array, Value* lane) {
    return builder_.CreateLoad(array.element,
                               builder_.CreateInBoundsGEP(array.element, array.slot, lane));
}

void MemoryCode::StoreLane(const LaneArray& array, Value* lane, Value* value) {
    builder_.CreateStore(value, builder_.CreateInBoundsGEP(array.element, array.slot, lane));
}

// Runs `body` for each lane of the mask in order; a loop, so that the code stays small.
void MemoryCode::EmitLaneLoop(Value* mask, llvm::function_ref<void(Value* lane)> body) {
    llvm::Type* i64 = builder_.getInt64Ty();
    auto* constant = llvm::dyn_cast<llvm::Constant>(mask);
    BasicBlock* before = builder_.GetInsertBlock();
    BasicBlock* loop = code_.NewBlock("lane");
    BasicBlock* end = code_.NewBlock("lane_end");
    if (constant && constant->isAllOnesValue()) {
        const uint32_t step = code_.compact ? 1 : std::min(4u, code_.lanes);
        builder_.CreateBr(loop);
        builder_.SetInsertPoint(loop);
        auto* lane = builder_.CreatePHI(i64, 2);
        lane->addIncoming(builder_.getInt64(0), before);
        for (uint32_t i = 0; i < step; ++i) {
            body(builder_.CreateAdd(lane, builder_.getInt64(i), "", true, true));
        }
        Value* next = builder_.CreateAdd(lane, builder_.getInt64(step), "", true, true);
        lane->addIncoming(next, builder_.GetInsertBlock());
        builder_.CreateCondBr(builder_.CreateICmpULT(next, builder_.getInt64(code_.lanes)), loop,
                              end);
        builder_.SetInsertPoint(end);
        return;
    }
    Value* bits = code_.MaskBits(mask);
    Value* none = llvm::Constant::getNullValue(bits->getType());
    builder_.CreateCondBr(builder_.CreateICmpNE(bits, none), loop, end);
    builder_.SetInsertPoint(loop);
    auto* remaining = builder_.CreatePHI(bits->getType(), 2);
    remaining->addIncoming(bits, before);
    Value* lane =
        builder_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, remaining, builder_.getTrue());
    body(builder_.CreateZExtOrTrunc(lane, i64));
    Value* next = builder_.CreateAnd(
        remaining, builder_.CreateSub(remaining, llvm::ConstantInt::get(remaining->getType(), 1)));
    remaining->addIncoming(next, builder_.GetInsertBlock());
    builder_.CreateCondBr(builder_.CreateICmpNE(next, none), loop, end);
    builder_.SetInsertPoint(end);
}

}  // namespace fornax::kernel
