// Memory: regions, bounds, and loads and stores. An access is planned first (access/access_plan.h):
// one to one address is emitted here, one by runs of memory in emit_plan.cpp; anything else is
// tried as a speculation (emit_speculated.cpp) or becomes a gather or scatter.
#include <algorithm>

#include <llvm/IR/IntrinsicsX86.h>

#include "compiler/kernel/codegen/emitter.h"
#include "compiler/kernel/codegen/pure_ops.h"
#include "hal/kernel_abi.h"

namespace fornax::kernel {

using ir::Op;
using llvm::BasicBlock;
using llvm::Value;
using Bounds = MemoryRegion::Bounds;

namespace {

constexpr uint64_t kZeroBytes = 256;  // what an out-of-range uniform load reads instead

}  // namespace

MemoryRegion Emitter::BufferRegion(const ir::Instruction& inst, ir::ValueId buffer) {
    const Descriptor& descriptor = held_[buffer.index].descriptor;
    MemoryRegion region;
    if (descriptor.by_lane()) {
        region.lane_bases = descriptor.address;
        region.lane_sizes = descriptor.size;
        region.by_lane = true;
    } else {
        region.base = descriptor.address;
        region.size = descriptor.size;
    }
    region.bounds = kernel_.robust_buffer_access ? Bounds::kChecked : Bounds::kTrusted;
    region.may_pass_2gib = true;
    region.is_volatile = inst.flags & ir::kVolatile;
    region.align = inst.imm;
    region.scope = scopes_[0];
    region.noalias = noalias_[0];
    return region;
}

MemoryRegion Emitter::SharedRegion(const ir::Instruction& inst) {
    MemoryRegion region;
    region.base = shared_;
    region.known_size = kernel_.shared_bytes;
    region.size = builder_.getInt64(region.known_size);
    region.bounds = Bounds::kClamped;
    region.has_margins = true;
    region.is_volatile = inst.flags & ir::kVolatile;
    region.align = inst.imm;
    region.scope = scopes_[1];
    region.noalias = noalias_[1];
    return region;
}

MemoryRegion Emitter::DescriptorRegion(uint64_t index) {
    const ir::Binding& binding = kernel_.bindings[index];
    Value*& memory = descriptor_memory_[index];
    if (!memory) {
        llvm::IRBuilder<>::InsertPointGuard guard(builder_);
        builder_.SetInsertPoint(entry_->getTerminator());
        memory = DescriptorMemory(binding);
    }
    MemoryRegion region;
    region.base = memory;
    region.known_size = uint64_t{binding.layout.count} * binding.layout.Stride();
    region.size = builder_.getInt64(region.known_size);
    region.bounds = Bounds::kClamped;
    region.invariant = true;
    region.scope = scopes_[3];
    region.noalias = noalias_[3];
    return region;
}

MemoryRegion Emitter::PushRegion() {
    MemoryRegion region;
    region.base = push_constants_;
    region.known_size = hal::kPushConstantBytes;
    region.ends_exactly = true;
    region.size = builder_.getInt64(region.known_size);
    region.bounds = Bounds::kClamped;
    region.invariant = true;
    region.scope = scopes_[3];
    region.noalias = noalias_[3];
    return region;
}

MemoryRegion Emitter::ConstantRegion() {
    if (!constant_data_) {
        // Margins like those of workgroup memory, because lanes that are not active may point
        // outside.
        std::vector<uint8_t> bytes(hal::kSharedMemoryMargin, 0);
        bytes.insert(bytes.end(), kernel_.constant_data.begin(), kernel_.constant_data.end());
        bytes.resize(bytes.size() + hal::kSharedMemoryMargin, 0);
        llvm::Constant* data = llvm::ConstantDataArray::get(context_, bytes);
        constant_data_ =
            new llvm::GlobalVariable(module_, data->getType(), true,
                                     llvm::GlobalValue::PrivateLinkage, data, "constant_data");
        constant_data_->setAlignment(llvm::Align(64));
    }
    MemoryRegion region;
    region.base = builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), constant_data_,
                                                      hal::kSharedMemoryMargin);
    region.known_size = kernel_.constant_data.size();
    region.size = builder_.getInt64(region.known_size);
    region.bounds = Bounds::kClamped;
    region.has_margins = true;
    region.invariant = true;
    region.scope = scopes_[3];
    region.noalias = noalias_[3];
    return region;
}

Offset Emitter::OffsetOf(ir::ValueId value) {
    Offset offset;
    offset.shape = &shapes_.shape(value);
    if (offset.shape->scalar() || lanes_ == 1) {
        offset.scalar = Raw(value);
    }
    return offset;
}

llvm::Type* Emitter::MemoryType(ir::Type type) {
    return type == ir::Type::kBool ? builder_.getInt32Ty() : ScalarType(context_, type);
}

Value* Emitter::ToMemory(Value* value) {
    llvm::Type* type = value->getType();
    if (!type->getScalarType()->isIntegerTy(1)) {
        return value;
    }
    return builder_.CreateZExt(value, type->getWithNewType(builder_.getInt32Ty()));
}

Value* Emitter::FromMemory(Value* value, ir::Type type) {
    if (type != ir::Type::kBool) {
        return value;
    }
    return builder_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
}

void Emitter::CompilerFence() {
    builder_.CreateFence(llvm::AtomicOrdering::AcquireRelease, llvm::SyncScope::SingleThread);
}

// The time stamp counter, which the processors of a machine share and which runs at one rate. It
// may be read before instructions that come before it are done, earlier readings included, but for
// the first fence (Intel SDM, vol. 2, RDTSC); the second one keeps what follows behind it.
Value* Emitter::ReadClock() {
    CompilerFence();
    builder_.CreateIntrinsic(llvm::Intrinsic::x86_sse2_lfence, {}, {});
    Value* time = builder_.CreateIntrinsic(llvm::Intrinsic::readcyclecounter, {}, {});
    builder_.CreateIntrinsic(llvm::Intrinsic::x86_sse2_lfence, {}, {});
    CompilerFence();
    return Splat(time);
}

Value* Emitter::Annotate(const MemoryRegion& region, Value* access) {
    auto* inst = llvm::dyn_cast<llvm::Instruction>(access);
    if (!inst) {
        return access;
    }
    inst->setMetadata(llvm::LLVMContext::MD_alias_scope, region.scope);
    inst->setMetadata(llvm::LLVMContext::MD_noalias, region.noalias);
    if (region.invariant && llvm::isa<llvm::LoadInst>(inst)) {
        inst->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
    }
    return access;
}

Value* Emitter::ByteAddress(const MemoryRegion& region, Value* offset) {
    if (region.is_global) {
        return builder_.CreateIntToPtr(offset, builder_.getPtrTy());
    }
    offset = builder_.CreateZExt(offset, builder_.getInt64Ty());
    return builder_.CreateGEP(builder_.getInt8Ty(), region.base, offset);
}

Value* Emitter::InBounds(const MemoryRegion& region, Value* offset, uint64_t bytes) {
    llvm::Type* i64 = builder_.getInt64Ty();
    Value* size = region.size;
    if (offset->getType()->isIntegerTy(32)) {
        Value* end = builder_.CreateAdd(builder_.CreateZExt(offset, i64), builder_.getInt64(bytes));
        return builder_.CreateICmpULE(end, size);
    }
    Value* holds = builder_.CreateICmpUGE(size, builder_.getInt64(bytes));
    Value* last = builder_.CreateSub(size, builder_.getInt64(bytes));
    return builder_.CreateAnd(holds, builder_.CreateICmpULE(offset, last));
}

Value* Emitter::LanesInBounds(const MemoryRegion& region, Value* offsets, uint64_t bytes) {
    llvm::Type* type = offsets->getType()->getScalarType();
    Value* size = region.size;
    if (type->isIntegerTy(32)) {
        size = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, size,
                                              builder_.getInt64(UINT32_MAX));
        size = builder_.CreateTrunc(size, type);
    }
    Value* width = llvm::ConstantInt::get(type, bytes);
    Value* holds = builder_.CreateICmpUGE(size, width);
    Value* last = builder_.CreateSub(size, width);
    return builder_.CreateAnd(builder_.CreateICmpULE(offsets, Splat(last)), Splat(holds));
}

Value* Emitter::ClampScalar(const MemoryRegion& region, Value* offset, uint64_t bytes) {
    uint64_t last = region.known_size > bytes ? region.known_size - bytes : 0;
    Value* limit = llvm::ConstantInt::get(offset->getType()->getScalarType(), last);
    if (offset->getType()->isVectorTy()) {
        limit = Splat(limit);
    }
    return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, offset, limit);
}

Value* Emitter::Zeros() {
    if (!zeros_) {
        auto* array = llvm::ArrayType::get(builder_.getInt8Ty(), kZeroBytes);
        zeros_ = new llvm::GlobalVariable(module_, array, true, llvm::GlobalValue::PrivateLinkage,
                                          llvm::Constant::getNullValue(array), "zeros");
        zeros_->setAlignment(llvm::Align(16));
    }
    return zeros_;
}

Emitter::Values Emitter::LoadUniform(const MemoryRegion& region,
                                     Value* offset,
                                     llvm::Type* type,
                                     size_t count) {
    recorder_.Form(AccessForm::kScalar, CheckOf(region, AccessCheck::kScalar));
    const uint64_t element = type->getPrimitiveSizeInBits() / 8;
    if (region.bounds == Bounds::kClamped) {
        offset = ClampScalar(region, offset, element * count);
    }
    auto load_from = [&](Value* address, size_t i) {
        Value* at = builder_.CreateConstGEP1_64(type, address, i);
        return Annotate(region, builder_.CreateAlignedLoad(type, at, llvm::Align(element)));
    };
    Values results;
    if (region.bounds != Bounds::kChecked) {
        Value* address = ByteAddress(region, offset);
        for (size_t i = 0; i < count; ++i) {
            results.push_back(load_from(address, i));
        }
        return results;
    }
    auto or_zeros = [&](Value* from, uint64_t bytes) {
        return builder_.CreateSelect(InBounds(region, from, bytes), ByteAddress(region, from),
                                     Zeros());
    };
    if (count == 1) {
        results.push_back(load_from(or_zeros(offset, element), 0));
        return results;
    }
    // All of it is inside: nearly always. Otherwise each element goes by itself.
    BasicBlock* whole = NewBlock("load_inside");
    BasicBlock* parts = NewBlock("load_edge");
    BasicBlock* end = NewBlock("load_end");
    EmitMaybe(InBounds(region, offset, element * count), whole, parts, true);
    builder_.SetInsertPoint(whole);
    Value* address = ByteAddress(region, offset);
    Values inside;
    for (size_t i = 0; i < count; ++i) {
        inside.push_back(load_from(address, i));
    }
    builder_.CreateBr(end);
    builder_.SetInsertPoint(parts);
    Values edge;
    for (size_t i = 0; i < count; ++i) {
        Value* at =
            builder_.CreateAdd(offset, llvm::ConstantInt::get(offset->getType(), i * element));
        edge.push_back(load_from(or_zeros(at, element), 0));
    }
    builder_.CreateBr(end);
    builder_.SetInsertPoint(end);
    for (size_t i = 0; i < count; ++i) {
        auto* phi = builder_.CreatePHI(type, 2);
        phi->addIncoming(inside[i], whole);
        phi->addIncoming(edge[i], parts);
        results.push_back(phi);
    }
    return results;
}

void Emitter::StoreUniform(const MemoryRegion& region,
                           Value* offset,
                           std::span<const ir::ValueId> values) {
    recorder_.Form(AccessForm::kOneLane, CheckOf(region, AccessCheck::kScalar));
    Values scalars;
    for (ir::ValueId value : values) {
        scalars.push_back(ToMemory(FromFirstActive(value)));
    }
    const uint64_t element = scalars[0]->getType()->getPrimitiveSizeInBits() / 8;
    if (region.bounds == Bounds::kClamped) {
        offset = ClampScalar(region, offset, element * values.size());
    }
    auto store_run = [&](Value* address, size_t first, size_t count) {
        for (size_t i = first; i < first + count; ++i) {
            Value* at = builder_.CreateConstGEP1_64(scalars[i]->getType(), address, i - first);
            Annotate(region, builder_.CreateAlignedStore(scalars[i], at, llvm::Align(element)));
        }
    };
    if (region.bounds != Bounds::kChecked) {
        store_run(ByteAddress(region, offset), 0, scalars.size());
        return;
    }
    BasicBlock* whole = NewBlock("store");
    BasicBlock* parts = scalars.size() == 1 ? nullptr : NewBlock("store_edge");
    BasicBlock* end = NewBlock("store_end");
    EmitMaybe(InBounds(region, offset, element * scalars.size()), whole, parts ? parts : end, true);
    builder_.SetInsertPoint(whole);
    store_run(ByteAddress(region, offset), 0, scalars.size());
    builder_.CreateBr(end);
    if (parts) {
        builder_.SetInsertPoint(parts);
        for (size_t i = 0; i < scalars.size(); ++i) {
            Value* at =
                builder_.CreateAdd(offset, llvm::ConstantInt::get(offset->getType(), i * element));
            BasicBlock* one = NewBlock("store_one");
            BasicBlock* next = NewBlock("store_next");
            builder_.CreateCondBr(InBounds(region, at, element), one, next);
            builder_.SetInsertPoint(one);
            store_run(ByteAddress(region, at), i, 1);
            builder_.CreateBr(next);
            builder_.SetInsertPoint(next);
        }
        builder_.CreateBr(end);
    }
    builder_.SetInsertPoint(end);
}

Emitter::Values Emitter::EitherWay(Value* condition,
                                   const std::string& name,
                                   llvm::function_ref<Values()> usual,
                                   llvm::function_ref<Values()> other) {
    BasicBlock* first = NewBlock(name.c_str());
    BasicBlock* second = NewBlock((name + "_apart").c_str());
    BasicBlock* end = NewBlock((name + "_end").c_str());
    EmitMaybe(condition, first, second, true);
    builder_.SetInsertPoint(first);
    const Values here = usual();
    BasicBlock* first_end = builder_.GetInsertBlock();
    builder_.CreateBr(end);
    builder_.SetInsertPoint(second);
    const Values there = other();
    BasicBlock* second_end = builder_.GetInsertBlock();
    builder_.CreateBr(end);
    builder_.SetInsertPoint(end);
    Values values;
    for (size_t i = 0; i < here.size(); ++i) {
        auto* phi = builder_.CreatePHI(here[i]->getType(), 2);
        phi->addIncoming(here[i], first_end);
        phi->addIncoming(there[i], second_end);
        values.push_back(phi);
    }
    return values;
}

void Emitter::EmitLoad(const ir::Instruction& inst,
                       const MemoryRegion& region,
                       ir::ValueId offset_id) {
    ir::Type ir_type = kernel_.type(inst.results[0]);
    llvm::Type* type = MemoryType(ir_type);
    Offset offset = OffsetOf(offset_id);
    if (region.is_volatile) {
        CompilerFence();
    }
    Values values;
    Value* packed = nullptr;
    const size_t count = inst.results.size();
    const auto offsets = [&] { return Vector(offset_id); };
    const AccessPlan plan = PlanOf(region, *offset.shape, type, count, false, mask_ != nullptr);
    const bool scalar = plan.method == AccessPlan::Method::kOneAddress;
    if (scalar) {
        values = LoadUniform(region, offset.scalar, type, count);
    } else if (!plan.by_lane()) {
        values = LoadPlanned({region, offset, plan, offsets}, type, count, packed);
    } else if (region.by_lane || !LoadSpeculated(region, offset_id, type, count, values, packed)) {
        values = Gather(region, offsets(), type, count);
    }
    if (region.is_volatile) {
        CompilerFence();
    }
    for (size_t i = 0; i < inst.results.size(); ++i) {
        Value* value = FromMemory(values[i], ir_type);
        if (scalar && !shapes_.shape(inst.results[i]).scalar()) {
            value = Splat(value);
        }
        Set(inst.results[i], value);
    }
    KeepPacked(inst, packed);
}

void Emitter::EmitStore(const MemoryRegion& region,
                        ir::ValueId offset_id,
                        std::span<const ir::ValueId> values) {
    Offset offset = OffsetOf(offset_id);
    if (region.is_volatile) {
        CompilerFence();
    }
    const AccessPlan plan = PlanOf(region, *offset.shape, MemoryType(kernel_.type(values[0])),
                                   values.size(), true, mask_ != nullptr);
    if (plan.method == AccessPlan::Method::kOneAddress) {
        StoreUniform(region, offset.scalar, values);
    } else {
        Values vectors;
        for (ir::ValueId value : values) {
            vectors.push_back(ToMemory(Vector(value)));
        }
        const auto offsets = [&] { return Vector(offset_id); };
        if (!plan.by_lane()) {
            Value* packed = plan.is_packed ? Packed(values) : nullptr;
            StorePlanned({region, offset, plan, offsets}, vectors, packed);
        } else if (region.by_lane || !StoreSpeculated(region, offset_id, vectors)) {
            Scatter(region, offsets(), vectors);
        }
    }
    if (region.is_volatile) {
        CompilerFence();
    }
}

void Emitter::EmitMemory(const ir::Instruction& inst) {
    std::span<const ir::ValueId> operands = inst.operands;
    switch (inst.op) {
        case Op::kLoadBuffer: {
            MemoryRegion region = BufferRegion(inst, operands[0]);
            region.prefetch_distance =
                FollowsProducts() ? WorkgroupDistance(operands[1]) : NextWorkgroupDistance(inst);
            if (!region.prefetch_distance) {
                region.prefetch_distance = NextTileDistance(inst);
                region.each_lane = region.prefetch_distance != nullptr;
            }
            region.prefetches = !region.is_volatile &&
                                (fetches_loads_ || ComputesMuch() || region.prefetch_distance);
            EmitLoad(inst, region, operands[1]);
            return;
        }
        case Op::kStoreBuffer: {
            MemoryRegion region = BufferRegion(inst, operands[0]);
            region.prefetches = !region.is_volatile && !IsLoaded(inst);
            if (FollowsProducts()) {
                region.prefetch_distance = WorkgroupDistance(operands[1]);
            }
            region.stream_mask = StreamMask(inst, region);
            EmitStore(region, operands[1], operands.subspan(2));
            return;
        }
        case Op::kLoadGlobal: {
            MemoryRegion region = GlobalRegion(inst);
            region.prefetches = !region.is_volatile && (fetches_loads_ || ComputesMuch());
            EmitLoad(inst, region, operands[0]);
            return;
        }
        case Op::kStoreGlobal: {
            MemoryRegion region = GlobalRegion(inst);
            region.prefetches = !region.is_volatile && !IsLoaded(inst);
            EmitStore(region, operands[0], operands.subspan(1));
            return;
        }
        case Op::kLoadShared:
            EmitLoad(inst, SharedRegion(inst), operands[0]);
            return;
        default:
            EmitStore(SharedRegion(inst), operands[0], operands.subspan(1));
            return;
    }
}

// The local's elements have no index that differs between lanes, so none is gathered.
bool Emitter::HasRowsOnly(uint32_t local) {
    if (rows_only_.empty()) {
        rows_only_.resize(kernel_.locals.size(), true);
        for (uint32_t i = 0; i < kernel_.num_insts(); ++i) {
            const ir::Instruction& inst = kernel_.inst(ir::InstId{i});
            if ((inst.op == Op::kLoadLocal || inst.op == Op::kStoreLocal) &&
                !shapes_.shape(inst.operands[0]).uniform()) {
                rows_only_[inst.imm] = false;
            }
        }
    }
    return rows_only_[local];
}

// Private arrays lie in scratch, element by element, the lanes of an element side by side: an index
// that is the same for all lanes reaches one vector. Elements narrower than 32 bits take 32, for
// gathers, if there may be any.
void Emitter::EmitLocal(const ir::Instruction& inst) {
    const auto local_index = static_cast<uint32_t>(inst.imm);
    const ir::Local& local = kernel_.locals[local_index];
    const bool load = inst.op == Op::kLoadLocal;
    llvm::Type* value_type = ScalarType(context_, local.type);
    const bool as_is = ir::BitWidth(local.type) >= 32 ||
                       (local.type != ir::Type::kBool && HasRowsOnly(local_index));
    const uint32_t width = as_is ? ir::BitWidth(local.type) : 32;
    llvm::Type* type = as_is ? value_type : builder_.getInt32Ty();
    const uint64_t element = width / 8;
    const uint64_t row = element * lanes_;
    if (local_offsets_.empty()) {
        local_offsets_.resize(kernel_.locals.size(), UINT32_MAX);
    }
    const bool per_subgroup = regions_.num_segments() > 1 && subgroups_ > 1;
    const uint64_t bytes = (row * local.count + 63) & ~uint64_t{63};
    if (local_offsets_[local_index] == UINT32_MAX) {
        local_offsets_[local_index] = AllocateScratch(bytes * (per_subgroup ? subgroups_ : 1));
    }

    llvm::Type* i8 = builder_.getInt8Ty();
    llvm::Type* i64 = builder_.getInt64Ty();
    MemoryRegion region;
    region.base = builder_.CreateConstInBoundsGEP1_64(i8, scratch_, local_offsets_[local_index]);
    if (per_subgroup) {
        Value* offset =
            builder_.CreateMul(builder_.CreateZExt(subgroup_, i64), builder_.getInt64(bytes));
        region.base = builder_.CreateInBoundsGEP(i8, region.base, offset);
    }
    region.known_size = bytes;
    region.scope = scopes_[2];
    region.noalias = noalias_[2];

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
    const Shape& index_shape = shapes_.shape(index_id);
    llvm::Value* last = builder_.getInt32(local.count - 1);
    const bool proven = index_shape.max < local.count && invocations_ % lanes_ == 0;
    if (index_shape.uniform() || lanes_ == 1) {
        recorder_.Form(AccessForm::kRow, proven ? AccessCheck::kProven : AccessCheck::kScalar);
        Value* index = Raw(index_id);
        Value* inside = nullptr;
        if (!proven) {
            inside = builder_.CreateICmpULE(index, last);
            index = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, index, last);
        }
        Value* offset = builder_.CreateMul(builder_.CreateZExt(index, i64), builder_.getInt64(row));
        Value* address = builder_.CreateInBoundsGEP(i8, region.base, offset);
        llvm::Align align(element);
        if (load) {
            Value* value =
                Annotate(region, builder_.CreateAlignedLoad(VectorOf(type), address, align));
            Set(inst.results[0], narrow(value));
            return;
        }
        Value* value = widen(Vector(inst.operands[1]));
        if (!mask_ && !inside) {
            Annotate(region, builder_.CreateAlignedStore(value, address, align));
            return;
        }
        Value* mask = Mask();
        if (inside) {
            mask = builder_.CreateAnd(mask, Splat(inside));
        }
        Value* old = Annotate(region, builder_.CreateAlignedLoad(VectorOf(type), address, align));
        Annotate(region, builder_.CreateAlignedStore(builder_.CreateSelect(mask, value, old),
                                                     address, align));
        return;
    }
    llvm::SmallVector<int64_t, 64> lane_bytes;
    for (uint32_t lane = 0; lane < lanes_; ++lane) {
        lane_bytes.push_back(static_cast<int64_t>(lane * element));
    }
    Value* index = Vector(index_id);
    Value* mask = mask_;
    if (!proven) {
        if (!load) {
            mask = builder_.CreateAnd(Mask(), builder_.CreateICmpULE(index, Splat(last)));
        }
        index = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, index, Splat(last));
    }
    Value* row_bytes = Splat(builder_.getInt32(static_cast<uint32_t>(row)));
    Value* offsets = builder_.CreateAdd(builder_.CreateMul(index, row_bytes),
                                        LaneConstants(builder_.getInt32Ty(), lane_bytes));
    const MaskScope in_rows(*this, mask);
    if (load) {
        Set(inst.results[0], narrow(Gather(region, offsets, type, 1)[0]));
    } else {
        Value* value = widen(Vector(inst.operands[1]));
        Scatter(region, offsets, {value});
    }
}

}  // namespace fornax::kernel
