#include "compiler/kernel/codegen/memory_regions.h"

#include <algorithm>

#include "hal/kernel_abi.h"

namespace fornax::kernel {

using ir::Op;
using llvm::Value;
using Bounds = MemoryRegion::Bounds;

// Addresses may point into any buffer, so they share the buffers' alias scope. Nothing is known of
// where the memory ends: the access itself has to be valid for every active lane.
MemoryRegion MemoryRegions::GlobalRegion(const ir::Instruction& inst) {
    MemoryRegion region;
    region.is_global = true;
    region.ends_exactly = true;
    region.is_volatile = inst.flags & ir::kVolatile;
    region.scope = code_.scopes[0];
    region.noalias = code_.noalias[0];
    return region;
}

// A descriptor a lane. Indices are moved inside for all lanes, so that none reads beyond the set.
Descriptor MemoryRegions::LoadDescriptorLanes(const ir::Binding& binding, Value* elements) {
    const BindingLayout& layout = binding.layout;
    llvm::Type* i8 = builder_.getInt8Ty();
    llvm::Type* i64 = builder_.getInt64Ty();
    llvm::Type* ptr = builder_.getPtrTy();
    auto gather = [&](llvm::Type* type, Value* addresses) {
        auto* value = builder_.CreateMaskedGather(
            code_.VectorOf(type), addresses, llvm::Align(type->getPrimitiveSizeInBits() / 8),
            llvm::Constant::getAllOnesValue(code_.VectorOf(builder_.getInt1Ty())),
            llvm::Constant::getNullValue(code_.VectorOf(type)));
        value->setMetadata(llvm::LLVMContext::MD_invariant_load,
                           llvm::MDNode::get(code_.context, {}));
        return value;
    };
    if (layout.inline_bytes != 0) {
        Value* address = builder_.CreatePtrToInt(DescriptorMemory(binding), i64);
        return {code_.Splat(address), code_.Splat(builder_.getInt64(layout.inline_bytes))};
    }
    elements = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, elements,
                                              code_.Splat(LastElement(binding)));
    Value* wide = builder_.CreateZExt(elements, code_.VectorOf(i64));
    Value* slots = builder_.CreateGEP(
        i8, DescriptorMemory(binding),
        builder_.CreateMul(wide, code_.Splat(builder_.getInt64(layout.Stride()))));
    Descriptor descriptor;
    descriptor.address = gather(i64, slots);
    descriptor.size = gather(i64, builder_.CreateGEP(i8, slots, builder_.getInt64(8)));
    if (layout.first_dynamic_offset != BindingLayout::kNotDynamic) {
        auto* offsets =
            builder_.CreateLoad(ptr, builder_.CreateConstInBoundsGEP1_64(i8, code_.dispatch, 8));
        Value* index =
            builder_.CreateAdd(wide, code_.Splat(builder_.getInt64(layout.first_dynamic_offset)));
        Value* dynamic = gather(builder_.getInt32Ty(),
                                builder_.CreateGEP(builder_.getInt32Ty(), offsets, index));
        descriptor.address = builder_.CreateAdd(descriptor.address,
                                                builder_.CreateZExt(dynamic, code_.VectorOf(i64)));
    }
    return descriptor;
}

MemoryRegion MemoryRegions::BufferRegion(const ir::Instruction& inst, ir::ValueId buffer) {
    const Descriptor& descriptor = values_.held(buffer).descriptor;
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
    region.scope = code_.scopes[0];
    region.noalias = code_.noalias[0];
    return region;
}

MemoryRegion MemoryRegions::SharedRegion(const ir::Instruction& inst) {
    MemoryRegion region;
    region.base = code_.shared;
    region.known_size = kernel_.shared_bytes;
    region.size = builder_.getInt64(region.known_size);
    region.bounds = Bounds::kClamped;
    region.has_margins = true;
    region.is_volatile = inst.flags & ir::kVolatile;
    region.align = inst.imm;
    region.scope = code_.scopes[1];
    region.noalias = code_.noalias[1];
    return region;
}

MemoryRegion MemoryRegions::DescriptorRegion(uint64_t index) {
    const ir::Binding& binding = kernel_.bindings[index];
    Value*& memory = descriptor_memory_[index];
    if (!memory) {
        llvm::IRBuilder<>::InsertPointGuard guard(builder_);
        builder_.SetInsertPoint(code_.entry->getTerminator());
        memory = DescriptorMemory(binding);
    }
    return InvariantRegion(memory, uint64_t{binding.layout.count} * binding.layout.Stride());
}

MemoryRegion MemoryRegions::PushRegion() {
    MemoryRegion region = InvariantRegion(code_.push_constants, hal::kPushConstantBytes);
    region.ends_exactly = true;
    return region;
}

// What no kernel writes, of a size that is known.
MemoryRegion MemoryRegions::InvariantRegion(Value* base, uint64_t bytes) {
    MemoryRegion region;
    region.base = base;
    region.known_size = bytes;
    region.size = builder_.getInt64(bytes);
    region.bounds = Bounds::kClamped;
    region.invariant = true;
    region.scope = code_.scopes[3];
    region.noalias = code_.noalias[3];
    return region;
}

MemoryRegion MemoryRegions::ConstantRegion() {
    if (!constant_data_) {
        // Margins like those of workgroup memory, because lanes that are not active may point
        // outside.
        std::vector<uint8_t> bytes(hal::kSharedMemoryMargin, 0);
        bytes.insert(bytes.end(), kernel_.constant_data.begin(), kernel_.constant_data.end());
        bytes.resize(bytes.size() + hal::kSharedMemoryMargin, 0);
        llvm::Constant* data = llvm::ConstantDataArray::get(code_.context, bytes);
        constant_data_ =
            new llvm::GlobalVariable(code_.module, data->getType(), true,
                                     llvm::GlobalValue::PrivateLinkage, data, "constant_data");
        constant_data_->setAlignment(llvm::Align(64));
    }
    Value* base = builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), constant_data_,
                                                      hal::kSharedMemoryMargin);
    MemoryRegion region = InvariantRegion(base, kernel_.constant_data.size());
    region.has_margins = true;
    return region;
}

// Element 0 of the binding in its set's memory.
Value* MemoryRegions::DescriptorMemory(const ir::Binding& binding) {
    llvm::Type* ptr = builder_.getPtrTy();
    llvm::MDNode* empty = llvm::MDNode::get(code_.context, {});
    auto load = [&](Value* address, const char* name) {
        auto* value = builder_.CreateLoad(ptr, address, name);
        value->setMetadata(llvm::LLVMContext::MD_invariant_load, empty);
        return value;
    };
    Value* sets = load(code_.dispatch, "sets");
    Value* set = load(builder_.CreateConstInBoundsGEP1_64(ptr, sets, binding.set), "set");
    return builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), set,
                                               binding.layout.offset_bytes);
}

// An index outside the array must not read beyond the set's memory.
Value* MemoryRegions::LastElement(const ir::Binding& binding) {
    if (!binding.layout.variable_count) {
        return builder_.getInt32(binding.layout.count - 1);
    }
    Value* header = builder_.CreateConstInBoundsGEP1_64(
        builder_.getInt8Ty(), DescriptorMemory(binding),
        static_cast<uint64_t>(-int64_t{BindingLayout::kVariableHeaderBytes}));
    return builder_.CreateLoad(builder_.getInt32Ty(), header, "last_element");
}

Descriptor MemoryRegions::LoadDescriptor(const ir::Binding& binding, Value* element) {
    const BindingLayout& layout = binding.layout;
    llvm::Type* ptr = builder_.getPtrTy();
    llvm::Type* i64 = builder_.getInt64Ty();
    llvm::Type* i8 = builder_.getInt8Ty();
    llvm::MDNode* empty = llvm::MDNode::get(code_.context, {});
    if (layout.inline_bytes != 0) {
        return {DescriptorMemory(binding), builder_.getInt64(layout.inline_bytes)};
    }
    auto load = [&](llvm::Type* type, Value* address, const char* name) {
        auto* value = builder_.CreateLoad(type, address, name);
        value->setMetadata(llvm::LLVMContext::MD_invariant_load, empty);
        return value;
    };
    Value* offset =
        builder_.CreateMul(builder_.CreateZExt(element, i64), builder_.getInt64(layout.Stride()));
    Value* slot = builder_.CreateInBoundsGEP(i8, DescriptorMemory(binding), offset);
    Descriptor descriptor;
    descriptor.address = load(ptr, slot, "address");
    descriptor.size = load(i64, builder_.CreateConstInBoundsGEP1_64(i8, slot, 8), "size");
    if (layout.first_dynamic_offset != BindingLayout::kNotDynamic) {
        Value* offsets = load(ptr, builder_.CreateConstInBoundsGEP1_64(i8, code_.dispatch, 8),
                              "dynamic_offsets");
        Value* index = builder_.CreateAdd(element, builder_.getInt32(layout.first_dynamic_offset));
        Value* dynamic = load(builder_.getInt32Ty(),
                              builder_.CreateInBoundsGEP(builder_.getInt32Ty(), offsets,
                                                         builder_.CreateZExt(index, i64)),
                              "dynamic_offset");
        descriptor.address =
            builder_.CreateGEP(i8, descriptor.address, builder_.CreateZExt(dynamic, i64));
    }
    return descriptor;
}

void MemoryRegions::EmitDescriptor(const ir::Instruction& inst) {
    const ir::ValueId buffer = inst.results[0];
    const bool by_lane = patterns_.pattern(inst.results[0]).varying() && code_.lanes > 1;
    if (inst.op == Op::kBufferFrom) {
        if (by_lane) {
            values_.SetDescriptor(
                buffer, {values_.Vector(inst.operands[0]), values_.Vector(inst.operands[1])});
        } else {
            Value* address =
                builder_.CreateIntToPtr(values_.Scalar(inst.operands[0]), builder_.getPtrTy());
            values_.SetDescriptor(buffer, {address, values_.Scalar(inst.operands[1])});
        }
        return;
    }
    const ir::Binding& binding = kernel_.bindings[inst.imm];
    uint64_t element = 0;
    if (kernel_.IsConst(inst.operands[0], &element)) {
        element = std::min<uint64_t>(element, binding.layout.count - 1);
        Descriptor& cached = constant_descriptors_[{inst.imm, element}];
        if (!cached.address) {
            // In the entry block: one load for all workgroups of a call.
            llvm::IRBuilder<>::InsertPointGuard guard(builder_);
            builder_.SetInsertPoint(code_.entry->getTerminator());
            Value* index = builder_.getInt32(static_cast<uint32_t>(element));
            if (binding.layout.variable_count) {
                index = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, index,
                                                       LastElement(binding));
            }
            cached = LoadDescriptor(binding, index);
        }
        values_.SetDescriptor(buffer, cached);
        return;
    }
    if (by_lane) {
        values_.SetDescriptor(buffer,
                              LoadDescriptorLanes(binding, values_.Vector(inst.operands[0])));
        return;
    }
    Value* index = builder_.CreateBinaryIntrinsic(
        llvm::Intrinsic::umin, values_.Scalar(inst.operands[0]), LastElement(binding));
    values_.SetDescriptor(buffer, LoadDescriptor(binding, index));
}

void MemoryRegions::EmitBuffer(const ir::Instruction& inst) {
    switch (inst.op) {
        case Op::kBufferAddress: {
            Value* address = values_.held(inst.operands[0]).descriptor.address;
            if (!address->getType()->isVectorTy()) {
                address = builder_.CreatePtrToInt(address, builder_.getInt64Ty());
            }
            values_.Set(inst.results[0], address);
            return;
        }
        case Op::kBufferSize: {
            Value* size = values_.held(inst.operands[0]).descriptor.size;
            if (kernel_.type(inst.results[0]) == ir::Type::kI32) {
                Value* limit = llvm::ConstantInt::get(size->getType(), UINT32_MAX);
                size = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, size, limit);
                size = builder_.CreateTrunc(size,
                                            size->getType()->getWithNewType(builder_.getInt32Ty()));
            }
            values_.Set(inst.results[0], size);
            return;
        }
        default:
            EmitDescriptor(inst);
            return;
    }
}

}  // namespace fornax::kernel
