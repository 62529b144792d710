// Values in their two forms: held in a scalar register (uniform, or the base of a pattern) or a
// lane each.
#include <algorithm>
#include <cassert>

#include "compiler/kernel/codegen/emitter.h"
#include "compiler/kernel/codegen/pure_ops.h"

namespace fornax::kernel {

using ir::BuiltinId;
using ir::Op;
using llvm::Value;

llvm::Type* Emitter::VectorOf(llvm::Type* scalar) const {
    return lanes_ == 1 ? scalar : llvm::FixedVectorType::get(scalar, lanes_);
}

llvm::Type* Emitter::RawType(ir::ValueId value) const {
    llvm::Type* scalar = ScalarType(context_, kernel_.type(value));
    return shapes_.shape(value).scalar() ? scalar : VectorOf(scalar);
}

void Emitter::Set(ir::ValueId value, Value* raw) {
    Held& held = held_[value.index];
    held.raw = raw;
    held.epoch = epoch_;
    held.late = false;
}

Value* Emitter::Raw(ir::ValueId value) {
    if (held_[value.index].late) {
        return EmitLate(value);
    }
    assert(held_[value.index].raw && "a value is used before it is emitted");
    return held_[value.index].raw;
}

Value* Emitter::Scalar(ir::ValueId value) {
    if (shapes_.shape(value).uniform() || lanes_ == 1) {
        return Raw(value);
    }
    // Only dead code uses a varying value where a uniform one is expected.
    return builder_.CreateExtractElement(Vector(value), uint64_t{0});
}

Value* Emitter::Splat(Value* scalar) {
    return lanes_ == 1 ? scalar : builder_.CreateVectorSplat(lanes_, scalar);
}

llvm::Constant* Emitter::LaneConstants(llvm::Type* scalar, llvm::ArrayRef<int64_t> values) const {
    if (lanes_ == 1) {
        return llvm::ConstantInt::getSigned(scalar, values[0]);
    }
    llvm::SmallVector<llvm::Constant*, 64> constants;
    for (int64_t value : values) {
        constants.push_back(llvm::ConstantInt::get(scalar, static_cast<uint64_t>(value), true));
    }
    return llvm::ConstantVector::get(constants);
}

namespace {

// Multiples of a shape's stride as numbers of its type. `multiples`: a constant or lanes' ones, of
// the stride's type, beside as many strides.
Value* RowOffsets(llvm::IRBuilder<>& builder,
                  const Shape& shape,
                  Value* multiples,
                  Value* strides,
                  llvm::Type* type) {
    Value* offsets = builder.CreateMul(strides, multiples);
    if (shape.narrow_scale == 0) {
        return offsets;
    }
    return builder.CreateMul(builder.CreateSExt(offsets, type),
                             llvm::ConstantInt::get(type, shape.narrow_scale));
}

}  // namespace

Value* Emitter::RowOffset(const Offset& offset, const LayoutRow& row, llvm::Type* type) {
    const Shape& shape = *offset.shape;
    Value* stride = offset.stride ? offset.stride : Raw(shape.stride);
    if (!shape.groups.empty()) {
        stride = builder_.CreateExtractElement(stride, row.lane);
    }
    return RowOffsets(builder_, shape,
                      llvm::ConstantInt::getSigned(stride->getType(), row.multiple), stride, type);
}

Value* Emitter::Vector(ir::ValueId value) {
    const Shape& shape = shapes_.shape(value);
    Value* raw = Raw(value);
    if (shape.varying() || lanes_ == 1) {
        return raw;
    }
    Value* vector = Splat(raw);
    if (shape.has_rows()) {
        Value* strides = Vector(shape.stride);
        llvm::Type* scalar = strides->getType()->getScalarType();
        Value* rows = RowOffsets(builder_, shape, LaneConstants(scalar, shape.rows), strides,
                                 vector->getType());
        vector = builder_.CreateAdd(vector, rows);
    }
    if (!shape.uniform()) {
        vector = builder_.CreateAdd(vector, LaneConstants(raw->getType(), shape.offsets));
    }
    return vector;
}

Value* Emitter::Convert(ir::ValueId from, ir::ValueId into) {
    const Shape& shape = shapes_.shape(into);
    if (!shape.scalar()) {
        return Vector(from);
    }
    return shapes_.shape(from).scalar() ? Raw(from) : Scalar(from);
}

Value* Emitter::Mask() {
    if (mask_) {
        return mask_;
    }
    return llvm::Constant::getAllOnesValue(VectorOf(builder_.getInt1Ty()));
}

Value* Emitter::MaskBits(Value* mask) {
    return builder_.CreateBitCast(mask, builder_.getIntNTy(lanes_));
}

Value* Emitter::Any(Value* mask) {
    if (lanes_ == 1) {
        return mask;
    }
    Value* bits = MaskBits(mask);
    return builder_.CreateICmpNE(bits, llvm::ConstantInt::get(bits->getType(), 0));
}

Value* Emitter::AllActive() {
    Value* bits = MaskBits(mask_);
    return builder_.CreateICmpEQ(bits, llvm::Constant::getAllOnesValue(bits->getType()));
}

Value* Emitter::FirstActive() {
    if (!mask_ || lanes_ == 1) {
        return builder_.getInt32(0);
    }
    // With no lane active the count is the width: clamped, because the extract that follows must
    // stay inside.
    Value* bits = MaskBits(mask_);
    Value* count = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, bits, builder_.getFalse());
    Value* lane = builder_.CreateZExtOrTrunc(count, builder_.getInt32Ty());
    return builder_.CreateAnd(lane, builder_.getInt32(lanes_ - 1));
}

Value* Emitter::FromFirstActive(ir::ValueId value) {
    if (shapes_.shape(value).uniform() || lanes_ == 1) {
        return Raw(value);
    }
    return builder_.CreateExtractElement(Vector(value), FirstActive());
}

Value* Emitter::LocalIdBase(uint32_t dimension) {
    // The position of the subgroup's first lane; a workgroup of one vector starts at 0.
    if (subgroups_ == 1) {
        return builder_.getInt32(0);
    }
    const auto& size = kernel_.workgroup_size;
    if (const uint32_t tile = shapes_.map().tile_width; tile != 0) {
        const uint32_t across = size[0] / tile;
        const uint32_t height = lanes_ / tile;
        const uint32_t down = size[1] / height;
        auto constant = [&](uint32_t value) { return builder_.getInt32(value); };
        Value* row = builder_.CreateUDiv(subgroup_, constant(across));
        switch (dimension) {
            case 0:
                return builder_.CreateMul(builder_.CreateURem(subgroup_, constant(across)),
                                          constant(tile));
            case 1:
                return builder_.CreateMul(builder_.CreateURem(row, constant(down)),
                                          constant(height));
            default:
                return builder_.CreateUDiv(row, constant(down));
        }
    }
    switch (dimension) {
        case 0:
            return builder_.CreateURem(lane_base_, builder_.getInt32(size[0]));
        case 1:
            return builder_.CreateURem(builder_.CreateUDiv(lane_base_, builder_.getInt32(size[0])),
                                       builder_.getInt32(size[1]));
        default:
            return builder_.CreateUDiv(lane_base_, builder_.getInt32(size[0] * size[1]));
    }
}

Value* Emitter::LocalIdVector(uint32_t dimension) {
    const auto& size = kernel_.workgroup_size;
    llvm::SmallVector<int64_t, 64> numbers;
    for (uint32_t lane = 0; lane < lanes_; ++lane) {
        numbers.push_back(lane);
    }
    Value* index =
        builder_.CreateAdd(Splat(lane_base_), LaneConstants(builder_.getInt32Ty(), numbers));
    auto constant = [&](uint32_t value) { return Splat(builder_.getInt32(value)); };
    switch (dimension) {
        case 0:
            return builder_.CreateURem(index, constant(size[0]));
        case 1:
            return builder_.CreateURem(builder_.CreateUDiv(index, constant(size[0])),
                                       constant(size[1]));
        default:
            return builder_.CreateUDiv(index, constant(size[0] * size[1]));
    }
}

Value* Emitter::EmitBuiltin(BuiltinId builtin, ir::ValueId result) {
    const Shape& shape = shapes_.shape(result);
    if (shape.scalar() && shape.base_zeros >= 64) {
        return builder_.getInt32(0);  // known even where there is no current subgroup
    }
    auto local_id = [&](uint32_t dimension) {
        return shape.scalar() ? LocalIdBase(dimension) : LocalIdVector(dimension);
    };
    switch (builtin) {
        case BuiltinId::kWorkgroupIdX:
        case BuiltinId::kWorkgroupIdY:
        case BuiltinId::kWorkgroupIdZ:
            return workgroup_id_[static_cast<int>(builtin) -
                                 static_cast<int>(BuiltinId::kWorkgroupIdX)];
        case BuiltinId::kNumWorkgroupsX:
        case BuiltinId::kNumWorkgroupsY:
        case BuiltinId::kNumWorkgroupsZ:
            return num_workgroups_[static_cast<int>(builtin) -
                                   static_cast<int>(BuiltinId::kNumWorkgroupsX)];
        case BuiltinId::kLocalIdX:
            return local_id(0);
        case BuiltinId::kLocalIdY:
            return local_id(1);
        case BuiltinId::kLocalIdZ:
            return local_id(2);
        case BuiltinId::kLocalIndex: {
            if (subgroups_ == 1 || shapes_.map().tile_width == 0) {
                return subgroups_ == 1 ? builder_.getInt32(0) : lane_base_;
            }
            const auto& size = kernel_.workgroup_size;
            Value* row = builder_.CreateAdd(
                builder_.CreateMul(LocalIdBase(2), builder_.getInt32(size[1])), LocalIdBase(1));
            return builder_.CreateAdd(builder_.CreateMul(row, builder_.getInt32(size[0])),
                                      LocalIdBase(0));
        }
        case BuiltinId::kSubgroupId:
            return subgroups_ == 1 ? builder_.getInt32(0) : subgroup_;
        case BuiltinId::kSubgroupLane:
            return builder_.getInt32(0);
        case BuiltinId::kNumSubgroups:
            return builder_.getInt32(subgroups_);
        case BuiltinId::kSubgroupSize:
            return builder_.getInt32(kernel_.subgroup_size);
    }
    return builder_.getInt32(0);
}

// Element 0 of the binding in its set's memory.
Value* Emitter::DescriptorMemory(const ir::Binding& binding) {
    llvm::Type* ptr = builder_.getPtrTy();
    llvm::MDNode* empty = llvm::MDNode::get(context_, {});
    auto load = [&](Value* address, const char* name) {
        auto* value = builder_.CreateLoad(ptr, address, name);
        value->setMetadata(llvm::LLVMContext::MD_invariant_load, empty);
        return value;
    };
    Value* sets = load(dispatch_, "sets");
    Value* set = load(builder_.CreateConstInBoundsGEP1_64(ptr, sets, binding.set), "set");
    return builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), set,
                                               binding.layout.offset_bytes);
}

// An index outside the array must not read beyond the set's memory.
Value* Emitter::LastElement(const ir::Binding& binding) {
    if (!binding.layout.variable_count) {
        return builder_.getInt32(binding.layout.count - 1);
    }
    Value* header = builder_.CreateConstInBoundsGEP1_64(
        builder_.getInt8Ty(), DescriptorMemory(binding),
        static_cast<uint64_t>(-int64_t{BindingLayout::kVariableHeaderBytes}));
    return builder_.CreateLoad(builder_.getInt32Ty(), header, "last_element");
}

Emitter::Descriptor Emitter::LoadDescriptor(const ir::Binding& binding, Value* element) {
    const BindingLayout& layout = binding.layout;
    llvm::Type* ptr = builder_.getPtrTy();
    llvm::Type* i64 = builder_.getInt64Ty();
    llvm::Type* i8 = builder_.getInt8Ty();
    llvm::MDNode* empty = llvm::MDNode::get(context_, {});
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
        Value* offsets =
            load(ptr, builder_.CreateConstInBoundsGEP1_64(i8, dispatch_, 8), "dynamic_offsets");
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

void Emitter::EmitDescriptor(const ir::Instruction& inst) {
    Held& held = held_[inst.results[0].index];
    held.raw = builder_.getInt32(0);
    held.epoch = epoch_;
    const bool by_lane = shapes_.shape(inst.results[0]).varying() && lanes_ > 1;
    if (inst.op == Op::kBufferFrom) {
        if (by_lane) {
            held.descriptor = {Vector(inst.operands[0]), Vector(inst.operands[1])};
        } else {
            held.descriptor = {
                builder_.CreateIntToPtr(Scalar(inst.operands[0]), builder_.getPtrTy()),
                Scalar(inst.operands[1])};
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
            builder_.SetInsertPoint(entry_->getTerminator());
            Value* index = builder_.getInt32(static_cast<uint32_t>(element));
            if (binding.layout.variable_count) {
                index = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, index,
                                                       LastElement(binding));
            }
            cached = LoadDescriptor(binding, index);
        }
        held.descriptor = cached;
        return;
    }
    if (by_lane) {
        held.descriptor = LoadDescriptorLanes(binding, Vector(inst.operands[0]));
        return;
    }
    Value* index = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, Scalar(inst.operands[0]),
                                                  LastElement(binding));
    held.descriptor = LoadDescriptor(binding, index);
}

void Emitter::FindFusable() {
    std::vector<uint32_t> in_sums(kernel_.num_values(), 0);
    for (uint32_t i = 0; i < kernel_.num_insts(); ++i) {
        const ir::Instruction& inst = kernel_.inst(ir::InstId{i});
        const bool sum = inst.op == Op::kFAdd || inst.op == Op::kFSub;
        if (!sum || (inst.flags & ir::kNoContraction) != 0 ||
            inst.operands[0] == inst.operands[1]) {
            continue;
        }
        for (ir::ValueId operand : inst.operands) {
            ++in_sums[operand.index];
        }
    }
    for (uint32_t i = 0; i < kernel_.num_insts(); ++i) {
        const ir::Instruction& inst = kernel_.inst(ir::InstId{i});
        if (inst.op != Op::kFMul || (inst.flags & ir::kNoContraction) != 0 ||
            kernel_.type(inst.results[0]) == ir::Type::kF16) {
            continue;
        }
        const uint32_t result = inst.results[0].index;
        fusable_[result] = uses_[result] > 1 && in_sums[result] == uses_[result];
    }
}

// A product with several uses, all of them sums: fused into each, where LLVM would keep it apart.
Value* Emitter::EmitFused(const ir::Instruction& inst, bool scalar) {
    // A factor from outside of the segment may have another form under its map.
    if (!own_map_ || (inst.op != Op::kFAdd && inst.op != Op::kFSub) ||
        (inst.flags & ir::kNoContraction) != 0 || inst.operands[0] == inst.operands[1]) {
        return nullptr;
    }
    const bool first = fusable_[inst.operands[0].index];
    if (!first && !fusable_[inst.operands[1].index]) {
        return nullptr;
    }
    const ir::Instruction& product = *kernel_.Definition(inst.operands[first ? 0 : 1]);
    ir::ValueId other_id = inst.operands[first ? 1 : 0];
    // After a barrier the product is there and its factors may not be.
    for (ir::ValueId factor : product.operands) {
        const uint32_t epoch = held_[factor.index].epoch;
        if (epoch != epoch_ && epoch != 0) {
            return nullptr;
        }
    }
    auto form = [&](ir::ValueId value) { return scalar ? Raw(value) : Vector(value); };
    Value* a = form(product.operands[0]);
    Value* b = form(product.operands[1]);
    Value* other = form(other_id);
    if (inst.op == Op::kFSub && first) {
        other = builder_.CreateFNeg(other);
    }
    if (inst.op == Op::kFSub && !first) {
        a = builder_.CreateFNeg(a);
    }
    return builder_.CreateIntrinsic(llvm::Intrinsic::fmuladd, {a->getType()}, {a, b, other});
}

// What it is made of is there, or comes late itself: both belong to this segment.
Value* Emitter::EmitLate(ir::ValueId value) {
    const auto found = late_.find(value.index);
    if (found != late_.end()) {
        return found->second;
    }
    ++late_depth_;
    const ir::Instruction& inst = *kernel_.Definition(value);
    llvm::SmallVector<Value*, 2> operands;
    for (ir::ValueId operand : inst.operands) {
        operands.push_back(Vector(operand));
    }
    Value* result = EmitPureOp(builder_, kernel_, inst, operands)[0];
    if (--late_depth_ == 0) {
        late_.clear();
    } else {
        late_[value.index] = result;
    }
    return result;
}

// Different numbers by one that is the same for the workgroup.
bool Emitter::DividesByInverse(const ir::Instruction& inst) const {
    return (inst.op == Op::kUDiv || inst.op == Op::kURem) && lanes_ > 1 && !compact_ &&
           kernel_.type(inst.results[0]) == ir::Type::kI32 && !kernel_.IsConst(inst.operands[1]) &&
           shapes_.shape(inst.operands[1]).workgroup && !shapes_.shape(inst.operands[0]).workgroup;
}

void Emitter::EmitLaneRange(const ir::Instruction& inst) {
    const ir::ValueId of = inst.operands[0];
    const Shape& shape = shapes_.shape(of);
    Value* low = Scalar(of);
    llvm::Type* type = low->getType();
    llvm::Constant* span = llvm::ConstantInt::get(type, 0);
    if (shape.pattern()) {
        const auto [lowest, highest] =
            std::minmax_element(shape.offsets.begin(), shape.offsets.end());
        low = builder_.CreateAdd(Raw(of), llvm::ConstantInt::getSigned(type, *lowest));
        // Offsets wrap with the type, so those of 64 bits may lie anywhere.
        const auto distance = static_cast<uint64_t>(*highest) - static_cast<uint64_t>(*lowest);
        span = llvm::ConstantInt::get(type, distance);
    } else if (!shape.uniform() && lanes_ > 1) {
        span = llvm::Constant::getAllOnesValue(type);
    }
    Set(inst.results[0], low);
    Set(inst.results[1], span);
}

void Emitter::EmitPure(const ir::Instruction& inst) {
    switch (inst.op) {
        case Op::kConst: {
            ir::ValueId result = inst.results[0];
            ir::Type type = kernel_.type(result);
            uint32_t bits = ir::BitWidth(type);
            llvm::Constant* constant = llvm::ConstantInt::get(
                context_, llvm::APInt(bits, inst.imm & shape_rules::TypeMax(bits)));
            llvm::Type* scalar = ScalarType(context_, type);
            if (ir::IsFloat(type)) {
                constant = llvm::ConstantExpr::getBitCast(constant, scalar);
            }
            Set(result, constant);
            return;
        }
        case Op::kUndef:
            Set(inst.results[0], llvm::Constant::getNullValue(RawType(inst.results[0])));
            return;
        case Op::kBuiltin:
            Set(inst.results[0], EmitBuiltin(static_cast<BuiltinId>(inst.imm), inst.results[0]));
            return;
        case Op::kBuffer:
        case Op::kBufferFrom:
            EmitDescriptor(inst);
            return;
        case Op::kBufferAddress: {
            Value* address = held_[inst.operands[0].index].descriptor.address;
            if (!address->getType()->isVectorTy()) {
                address = builder_.CreatePtrToInt(address, builder_.getInt64Ty());
            }
            Set(inst.results[0], address);
            return;
        }
        case Op::kBufferSize: {
            Value* size = held_[inst.operands[0].index].descriptor.size;
            if (kernel_.type(inst.results[0]) == ir::Type::kI32) {
                Value* limit = llvm::ConstantInt::get(size->getType(), UINT32_MAX);
                size = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, size, limit);
                size = builder_.CreateTrunc(size,
                                            size->getType()->getWithNewType(builder_.getInt32Ty()));
            }
            Set(inst.results[0], size);
            return;
        }
        case Op::kLoadDescriptor: {
            const MemoryRegion region = DescriptorRegion(inst.imm);
            if (!kernel_.IsConst(inst.operands[0])) {
                EmitLoad(inst, region, inst.operands[0]);
                return;
            }
            // In the entry block: one load for all workgroups of a call.
            const llvm::IRBuilder<>::InsertPoint here = builder_.saveIP();
            builder_.SetInsertPoint(entry_->getTerminator());
            const Values values = LoadUniform(region, Raw(inst.operands[0]), builder_.getInt32Ty(),
                                              inst.results.size());
            builder_.restoreIP(here);
            for (size_t i = 0; i < values.size(); ++i) {
                Set(inst.results[i], values[i]);
            }
            return;
        }
        case Op::kLaneRange:
            EmitLaneRange(inst);
            return;
        case Op::kLoadPush:
            EmitLoad(inst, PushRegion(), inst.operands[0]);
            return;
        case Op::kLoadConstant:
            EmitLoad(inst, ConstantRegion(), inst.operands[0]);
            return;
        default:
            break;
    }
    const Shape& shape = shapes_.shape(inst.results[0]);
    const bool scalar = shape.scalar();
    if (!compact_ && address_only_[inst.results[0].index] && !scalar && lanes_ > 1 &&
        regions_.home(inst.results[0]) == Regions::Home::kSegment) {
        Set(inst.results[0], nullptr);
        held_[inst.results[0].index].late = true;
        return;
    }
    llvm::SmallVector<Value*, 4> operands;
    bool lanes_differ = false;
    for (ir::ValueId operand : inst.operands) {
        lanes_differ |= !shapes_.shape(operand).uniform();
        if (scalar && shapes_.shape(operand).varying()) {
            continue;  // the stride of a sum (shape_rules::AddGroups), not a part of its base
        }
        operands.push_back(scalar ? Raw(operand) : Vector(operand));
    }
    if (scalar && lanes_differ && (inst.op == Op::kOr || inst.op == Op::kXor)) {
        // The shape rules proved the operands' bits disjoint; bases and lane offsets add.
        Set(inst.results[0], builder_.CreateAdd(operands[0], operands[1]));
        return;
    }
    if (operands.size() < inst.operands.size()) {
        Set(inst.results[0], operands[0]);
        return;
    }
    if (scalar && DividesByInverse(inst)) {
        Value* result = EmitQuotientByInverse(builder_, operands[0], operands[1]);
        if (inst.op == Op::kURem) {
            result = builder_.CreateSub(operands[0], builder_.CreateMul(result, operands[1]));
        }
        Set(inst.results[0], result);
        return;
    }
    if (Value* fused = EmitFused(inst, scalar)) {
        Set(inst.results[0], fused);
        return;
    }
    if (compact_ && !scalar && lanes_ > 1 &&
        (inst.op == Op::kSDot4 || inst.op == Op::kUDot4 || inst.op == Op::kSUDot4)) {
        Value* zero = llvm::Constant::getNullValue(operands[2]->getType());
        Value* dot =
            ShareCode(std::string("dot") + std::to_string(static_cast<int>(inst.op)),
                      {operands[0], operands[1]}, [&](llvm::ArrayRef<Value*> in) {
                          return EmitPureOp(builder_, kernel_, inst, {in[0], in[1], zero})[0];
                      });
        Set(inst.results[0], builder_.CreateAdd(dot, operands[2]));
        return;
    }
    llvm::SmallVector<Value*, 2> results = EmitPureOp(builder_, kernel_, inst, operands);
    for (size_t i = 0; i < results.size(); ++i) {
        Set(inst.results[i], results[i]);
    }
}

}  // namespace fornax::kernel
