#include "compiler/kernel/codegen/emit_memory.h"

#include <algorithm>

#include "compiler/kernel/codegen/pure_ops.h"

namespace fornax::kernel {

using ir::Op;
using llvm::Value;

void AccessEmitter::EmitLoad(const ir::Instruction& inst,
                             const MemoryRegion& region,
                             ir::ValueId offset_id) {
    ir::Type ir_type = kernel_.type(inst.results[0]);
    llvm::Type* type = memory_.MemoryType(ir_type);
    Offset offset = values_.OffsetOf(offset_id);
    if (region.is_volatile) {
        memory_.CompilerFence();
    }
    Values values;
    Value* packed = nullptr;
    const size_t count = inst.results.size();
    const auto offsets = [&] { return values_.Vector(offset_id); };
    const AccessPlan plan =
        PlanOf(region, *offset.pattern, type, count, false, code_.mask != nullptr);
    const bool scalar = plan.method == AccessPlan::Method::kOneAddress;
    if (scalar) {
        values = memory_.LoadUniform(region, offset.scalar, type, count);
    } else if (!plan.by_lane()) {
        values = LoadPlanned({region, offset, plan, offsets}, type, count, packed);
    } else if (region.by_lane || !LoadSpeculated(region, offset_id, type, count, values, packed)) {
        values = memory_.GatherRuns(region, offsets(), type, count);
    }
    if (region.is_volatile) {
        memory_.CompilerFence();
    }
    for (size_t i = 0; i < inst.results.size(); ++i) {
        Value* value = memory_.FromMemory(values[i], ir_type);
        if (scalar && !patterns_.pattern(inst.results[i]).scalar()) {
            value = code_.Splat(value);
        }
        values_.Set(inst.results[i], value);
    }
    packed_.KeepPacked(inst, packed);
}

void AccessEmitter::EmitStore(const MemoryRegion& region,
                              ir::ValueId offset_id,
                              std::span<const ir::ValueId> values) {
    Offset offset = values_.OffsetOf(offset_id);
    if (region.is_volatile) {
        memory_.CompilerFence();
    }
    const AccessPlan plan =
        PlanOf(region, *offset.pattern, memory_.MemoryType(kernel_.type(values[0])), values.size(),
               true, code_.mask != nullptr);
    if (plan.method == AccessPlan::Method::kOneAddress) {
        Values scalars;
        for (ir::ValueId value : values) {
            scalars.push_back(memory_.ToMemory(values_.FromFirstActive(value)));
        }
        memory_.StoreUniform(region, offset.scalar, scalars);
    } else {
        Values vectors;
        for (ir::ValueId value : values) {
            vectors.push_back(memory_.ToMemory(values_.Vector(value)));
        }
        const auto offsets = [&] { return values_.Vector(offset_id); };
        if (!plan.by_lane()) {
            Value* packed = plan.is_packed ? packed_.Packed(values) : nullptr;
            StorePlanned({region, offset, plan, offsets}, vectors, packed);
        } else if (region.by_lane || !StoreSpeculated(region, offset_id, vectors)) {
            memory_.Scatter(region, offsets(), vectors);
        }
    }
    if (region.is_volatile) {
        memory_.CompilerFence();
    }
}

void AccessEmitter::EmitPure(const ir::Instruction& inst) {
    switch (inst.op) {
        case Op::kBuffer:
        case Op::kBufferFrom:
        case Op::kBufferAddress:
        case Op::kBufferSize:
            memory_regions_.EmitBuffer(inst);
            return;
        case Op::kLoadDescriptor:
            EmitGivenLoad(inst, memory_regions_.DescriptorRegion(inst.imm), true);
            return;
        case Op::kLoadPush:
            // The baseline tier has no registers for values that live so long.
            EmitGivenLoad(inst, memory_regions_.PushRegion(), !code_.compact);
            return;
        case Op::kLoadConstant:
            EmitLoad(inst, memory_regions_.ConstantRegion(), inst.operands[0]);
            return;
        default:
            values_.EmitOperation(inst);
            return;
    }
}

// A load of what nothing writes. Where its place is known at compile time it may stand in the entry
// block, once for all workgroups of a call, under whatever condition the kernel reads it. LLVM
// would only move it out of the innermost loop, because what it moves no longer says that nothing
// writes it.
void AccessEmitter::EmitGivenLoad(const ir::Instruction& inst,
                                  const MemoryRegion& region,
                                  bool once_per_call) {
    if (!once_per_call || !kernel_.IsConst(inst.operands[0])) {
        EmitLoad(inst, region, inst.operands[0]);
        return;
    }
    // Restores the block, so only where the load makes no blocks of its own.
    const llvm::IRBuilder<>::InsertPointGuard guard(builder_);
    builder_.SetInsertPoint(code_.entry->getTerminator());
    EmitLoad(inst, region, inst.operands[0]);
}

// What the access prefetches. The baseline tier runs too briefly to wait for memory much.
void AccessEmitter::PlanPrefetches(const ir::Instruction& inst, MemoryRegion& region) {
    if (code_.compact || region.is_volatile) {
        return;
    }
    switch (inst.op) {
        case Op::kLoadBuffer:
            if (prefetch_.FollowsProducts()) {
                region.prefetch.distance = prefetch_.WorkgroupDistance(inst.operands[1]);
            } else if (prefetch_.RereadsRow(inst)) {
                region.prefetch = prefetch_.NextWorkgroup(inst.operands[1]);
            }
            if (!region.prefetch.distance) {
                region.prefetch = {.distance = prefetch_.NextTileDistance(inst)};
                region.each_lane = region.prefetch.distance != nullptr;
            }
            region.prefetches =
                region.prefetch.distance ||
                ((fetches_loads_ || prefetch_.ComputesMuch()) && !prefetch_.IsPrefetchedRow(inst));
            return;
        case Op::kStoreBuffer:
            region.prefetches = !prefetch_.IsLoaded(inst) && !prefetch_.IsPrefetchedRow(inst);
            if (prefetch_.FollowsProducts()) {
                region.prefetch.distance = prefetch_.WorkgroupDistance(inst.operands[1]);
            }
            return;
        case Op::kLoadGlobal:
            region.prefetches = fetches_loads_ || prefetch_.ComputesMuch();
            return;
        default:
            region.prefetches = !prefetch_.IsLoaded(inst);
            return;
    }
}

void AccessEmitter::EmitMemory(const ir::Instruction& inst) {
    std::span<const ir::ValueId> operands = inst.operands;
    switch (inst.op) {
        case Op::kLoadBuffer: {
            MemoryRegion region = memory_regions_.BufferRegion(inst, operands[0]);
            PlanPrefetches(inst, region);
            EmitLoad(inst, region, operands[1]);
            return;
        }
        case Op::kStoreBuffer: {
            MemoryRegion region = memory_regions_.BufferRegion(inst, operands[0]);
            PlanPrefetches(inst, region);
            region.stream_mask = prefetch_.StreamMask(inst, region);
            EmitStore(region, operands[1], operands.subspan(2));
            return;
        }
        case Op::kLoadGlobal: {
            MemoryRegion region = memory_regions_.GlobalRegion(inst);
            PlanPrefetches(inst, region);
            EmitLoad(inst, region, operands[0]);
            return;
        }
        case Op::kStoreGlobal: {
            MemoryRegion region = memory_regions_.GlobalRegion(inst);
            PlanPrefetches(inst, region);
            EmitStore(region, operands[0], operands.subspan(1));
            return;
        }
        case Op::kLoadShared:
            EmitLoad(inst, memory_regions_.SharedRegion(inst), operands[0]);
            return;
        default:
            EmitStore(memory_regions_.SharedRegion(inst), operands[0], operands.subspan(1));
            return;
    }
}

// The local's elements have no index that differs between lanes, so none is gathered.
bool AccessEmitter::HasRowsOnly(uint32_t local) {
    if (rows_only_.empty()) {
        rows_only_.resize(kernel_.locals.size(), true);
        for (uint32_t i = 0; i < kernel_.num_insts(); ++i) {
            const ir::Instruction& inst = kernel_.inst(ir::InstId{i});
            if ((inst.op == Op::kLoadLocal || inst.op == Op::kStoreLocal) &&
                !patterns_.pattern(inst.operands[0]).uniform()) {
                rows_only_[inst.imm] = false;
            }
        }
    }
    return rows_only_[local];
}

// Private arrays lie in scratch, element by element, the lanes of an element side by side: an index
// that is the same for all lanes reaches one vector. Elements narrower than 32 bits take 32, for
// gathers, if there may be any.
void AccessEmitter::EmitLocal(const ir::Instruction& inst) {
    const auto local_index = static_cast<uint32_t>(inst.imm);
    const ir::Local& local = kernel_.locals[local_index];
    const bool load = inst.op == Op::kLoadLocal;
    llvm::Type* value_type = ScalarType(code_.context, local.type);
    const bool as_is = ir::BitWidth(local.type) >= 32 ||
                       (local.type != ir::Type::kBool && HasRowsOnly(local_index));
    const uint32_t width = as_is ? ir::BitWidth(local.type) : 32;
    llvm::Type* type = as_is ? value_type : builder_.getInt32Ty();
    const uint64_t element = width / 8;
    const uint64_t row = element * code_.lanes;
    if (local_offsets_.empty()) {
        local_offsets_.resize(kernel_.locals.size(), UINT32_MAX);
    }
    const bool per_subgroup = regions_.num_regions() > 1 && code_.subgroups > 1;
    const uint64_t bytes = (row * local.count + 63) & ~uint64_t{63};
    if (local_offsets_[local_index] == UINT32_MAX) {
        local_offsets_[local_index] =
            code_.AllocateScratch(bytes * (per_subgroup ? code_.subgroups : 1));
    }

    llvm::Type* i8 = builder_.getInt8Ty();
    llvm::Type* i64 = builder_.getInt64Ty();
    MemoryRegion region;
    region.base =
        builder_.CreateConstInBoundsGEP1_64(i8, code_.scratch, local_offsets_[local_index]);
    if (per_subgroup) {
        Value* offset =
            builder_.CreateMul(builder_.CreateZExt(code_.subgroup, i64), builder_.getInt64(bytes));
        region.base = builder_.CreateInBoundsGEP(i8, region.base, offset);
    }
    region.known_size = bytes;
    region.scope = code_.scopes[2];
    region.noalias = code_.noalias[2];

    auto narrow = [&](Value* value) -> Value* {
        if (type == value_type) {
            return value;
        }
        llvm::Type* bits = builder_.getIntNTy(ir::BitWidth(local.type));
        value = builder_.CreateTrunc(value, value->getType()->getWithNewType(bits));
        return builder_.CreateBitCast(value, value->getType()->getWithNewType(value_type));
    };
    auto widen = [&](Value* value) -> Value* {
        if (type == value_type) {
            return value;
        }
        llvm::Type* bits = builder_.getIntNTy(ir::BitWidth(local.type));
        value = builder_.CreateBitCast(value, value->getType()->getWithNewType(bits));
        return builder_.CreateZExt(value, value->getType()->getWithNewType(type));
    };
    ir::ValueId index_id = inst.operands[0];
    const LanePattern& index_pattern = patterns_.pattern(index_id);
    llvm::Value* last = builder_.getInt32(local.count - 1);
    const bool proven = index_pattern.max < local.count && code_.invocations % code_.lanes == 0;
    if (index_pattern.uniform() || code_.lanes == 1) {
        recorder_.Form(AccessForm::kRow, proven ? AccessCheck::kProven : AccessCheck::kScalar);
        Value* index = values_.Raw(index_id);
        Value* inside = nullptr;
        if (!proven) {
            inside = builder_.CreateICmpULE(index, last);
            index = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, index, last);
        }
        Value* offset = builder_.CreateMul(builder_.CreateZExt(index, i64), builder_.getInt64(row));
        Value* address = builder_.CreateInBoundsGEP(i8, region.base, offset);
        llvm::Align align(element);
        if (load) {
            Value* value = memory_.Annotate(
                region, builder_.CreateAlignedLoad(code_.VectorOf(type), address, align));
            values_.Set(inst.results[0], narrow(value));
            return;
        }
        Value* value = widen(values_.Vector(inst.operands[1]));
        if (!code_.mask && !inside) {
            memory_.Annotate(region, builder_.CreateAlignedStore(value, address, align));
            return;
        }
        Value* mask = code_.Mask();
        if (inside) {
            mask = builder_.CreateAnd(mask, code_.Splat(inside));
        }
        Value* old = memory_.Annotate(
            region, builder_.CreateAlignedLoad(code_.VectorOf(type), address, align));
        memory_.Annotate(region, builder_.CreateAlignedStore(
                                     builder_.CreateSelect(mask, value, old), address, align));
        return;
    }
    llvm::SmallVector<int64_t, 64> lane_bytes;
    for (uint32_t lane = 0; lane < code_.lanes; ++lane) {
        lane_bytes.push_back(static_cast<int64_t>(lane * element));
    }
    Value* index = values_.Vector(index_id);
    Value* mask = code_.mask;
    if (!proven) {
        if (!load) {
            mask =
                builder_.CreateAnd(code_.Mask(), builder_.CreateICmpULE(index, code_.Splat(last)));
        }
        index = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, index, code_.Splat(last));
    }
    Value* row_bytes = code_.Splat(builder_.getInt32(static_cast<uint32_t>(row)));
    Value* offsets = builder_.CreateAdd(builder_.CreateMul(index, row_bytes),
                                        code_.LaneConstants(builder_.getInt32Ty(), lane_bytes));
    const MaskScope in_rows(code_, mask);
    if (load) {
        values_.Set(inst.results[0], narrow(memory_.Gather(region, offsets, type, 1)[0]));
    } else {
        Value* value = widen(values_.Vector(inst.operands[1]));
        memory_.Scatter(region, offsets, {value});
    }
}

}  // namespace fornax::kernel
