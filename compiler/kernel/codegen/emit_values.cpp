#include "compiler/kernel/codegen/emit_values.h"

#include <algorithm>
#include <cassert>

#include "compiler/kernel/codegen/pure_ops.h"

namespace fornax::kernel {

using ir::BuiltinId;
using ir::Op;
using llvm::Value;

ValueCode::ValueCode(FunctionCode& code, const BarrierRegions& regions)
    : FunctionPart(code),
      regions_(regions),
      held_(code.kernel.num_values()),
      uses_(code.kernel.num_values(), 0),
      fusable_(code.kernel.num_values(), false),
      address_only_(FindAddressValues(code.kernel)) {
    for (uint32_t i = 0; i < kernel_.num_insts(); ++i) {
        for (ir::ValueId operand : kernel_.inst(ir::InstId{i}).operands) {
            ++uses_[operand.value()];
        }
    }
    FindFusable();
}

llvm::Type* ValueCode::RawType(ir::ValueId value) const {
    llvm::Type* scalar = ScalarType(code_.context, kernel_.type(value));
    return patterns_.pattern(value).scalar() ? scalar : code_.VectorOf(scalar);
}

void ValueCode::Set(ir::ValueId value, Value* raw) {
    HeldValue& held = held_[value.value()];
    held.raw = raw;
    held.epoch = code_.epoch;
    held.late = false;
}

void ValueCode::SetDescriptor(ir::ValueId buffer, const Descriptor& descriptor) {
    HeldValue& held = held_[buffer.value()];
    held.raw = builder_.getInt32(0);
    held.descriptor = descriptor;
    held.epoch = code_.epoch;
}

bool ValueCode::IsHere(ir::ValueId value) const {
    const HeldValue& held = held_[value.value()];
    return (held.raw != nullptr || held.late) && (held.epoch == code_.epoch || held.epoch == 0);
}

Value* ValueCode::Raw(ir::ValueId value) {
    if (held_[value.value()].late) {
        return EmitLate(value);
    }
    assert(held_[value.value()].raw && "a value is used before it is emitted");
    return held_[value.value()].raw;
}

Value* ValueCode::Scalar(ir::ValueId value) {
    if (patterns_.pattern(value).uniform() || code_.lanes == 1) {
        return Raw(value);
    }
    // Only dead code uses a varying value where a uniform one is expected.
    return builder_.CreateExtractElement(Vector(value), uint64_t{0});
}

namespace {

// Multiples of a pattern's stride as numbers of its type. `multiples`: a constant or lanes' ones,
// of the stride's type, beside as many strides.
Value* RowOffsets(llvm::IRBuilder<>& builder,
                  const LanePattern& pattern,
                  Value* multiples,
                  Value* strides,
                  llvm::Type* type) {
    Value* offsets = builder.CreateMul(strides, multiples);
    if (pattern.narrow_scale == 0) {
        return offsets;
    }
    return builder.CreateMul(builder.CreateSExt(offsets, type),
                             llvm::ConstantInt::get(type, pattern.narrow_scale));
}

}  // namespace

Value* ValueCode::RowOffset(const Offset& offset, const LayoutRow& row, llvm::Type* type) {
    const LanePattern& pattern = *offset.pattern;
    Value* stride = offset.stride ? offset.stride : Raw(pattern.stride);
    if (!pattern.groups.empty()) {
        stride = builder_.CreateExtractElement(stride, row.lane);
    }
    return RowOffsets(builder_, pattern,
                      llvm::ConstantInt::getSigned(stride->getType(), row.multiple), stride, type);
}

Value* ValueCode::Vector(ir::ValueId value) {
    const LanePattern& pattern = patterns_.pattern(value);
    Value* raw = Raw(value);
    if (pattern.varying() || code_.lanes == 1) {
        return raw;
    }
    Value* vector = code_.Splat(raw);
    if (pattern.has_rows()) {
        Value* strides = Vector(pattern.stride);
        llvm::Type* scalar = strides->getType()->getScalarType();
        Value* rows = RowOffsets(builder_, pattern, code_.LaneConstants(scalar, pattern.rows),
                                 strides, vector->getType());
        vector = builder_.CreateAdd(vector, rows);
    }
    if (!pattern.uniform()) {
        vector = builder_.CreateAdd(vector, code_.LaneConstants(raw->getType(), pattern.offsets));
    }
    return vector;
}

Value* ValueCode::Convert(ir::ValueId from, ir::ValueId into) {
    const LanePattern& pattern = patterns_.pattern(into);
    if (!pattern.scalar()) {
        return Vector(from);
    }
    return patterns_.pattern(from).scalar() ? Raw(from) : Scalar(from);
}

Value* ValueCode::FromFirstActive(ir::ValueId value) {
    if (patterns_.pattern(value).uniform() || code_.lanes == 1) {
        return Raw(value);
    }
    return builder_.CreateExtractElement(Vector(value), code_.FirstActive());
}

Value* ValueCode::LocalIdBase(uint32_t dimension) {
    // The position of the subgroup's first lane; a workgroup of one vector starts at 0.
    if (code_.subgroups == 1) {
        return builder_.getInt32(0);
    }
    const auto& size = kernel_.workgroup_size;
    if (const uint32_t tile = patterns_.map().tile_width; tile != 0) {
        const uint32_t across = size[0] / tile;
        const uint32_t height = code_.lanes / tile;
        const uint32_t down = size[1] / height;
        auto constant = [&](uint32_t value) { return builder_.getInt32(value); };
        Value* row = builder_.CreateUDiv(code_.subgroup, constant(across));
        switch (dimension) {
            case 0:
                return builder_.CreateMul(builder_.CreateURem(code_.subgroup, constant(across)),
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
            return builder_.CreateURem(code_.lane_base, builder_.getInt32(size[0]));
        case 1:
            return builder_.CreateURem(
                builder_.CreateUDiv(code_.lane_base, builder_.getInt32(size[0])),
                builder_.getInt32(size[1]));
        default:
            return builder_.CreateUDiv(code_.lane_base, builder_.getInt32(size[0] * size[1]));
    }
}

Value* ValueCode::LocalIdVector(uint32_t dimension) {
    const auto& size = kernel_.workgroup_size;
    llvm::SmallVector<int64_t, 64> numbers;
    for (uint32_t lane = 0; lane < code_.lanes; ++lane) {
        numbers.push_back(lane);
    }
    Value* index = builder_.CreateAdd(code_.Splat(code_.lane_base),
                                      code_.LaneConstants(builder_.getInt32Ty(), numbers));
    auto constant = [&](uint32_t value) { return code_.Splat(builder_.getInt32(value)); };
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

Value* ValueCode::EmitBuiltin(BuiltinId builtin, ir::ValueId result) {
    const LanePattern& pattern = patterns_.pattern(result);
    if (pattern.scalar() && pattern.base_zeros >= 64) {
        return builder_.getInt32(0);  // known even where there is no current subgroup
    }
    auto local_id = [&](uint32_t dimension) {
        return pattern.scalar() ? LocalIdBase(dimension) : LocalIdVector(dimension);
    };
    switch (builtin) {
        case BuiltinId::kWorkgroupIdX:
        case BuiltinId::kWorkgroupIdY:
        case BuiltinId::kWorkgroupIdZ:
            return code_.workgroup_id[static_cast<int>(builtin) -
                                      static_cast<int>(BuiltinId::kWorkgroupIdX)];
        case BuiltinId::kNumWorkgroupsX:
        case BuiltinId::kNumWorkgroupsY:
        case BuiltinId::kNumWorkgroupsZ:
            return code_.num_workgroups[static_cast<int>(builtin) -
                                        static_cast<int>(BuiltinId::kNumWorkgroupsX)];
        case BuiltinId::kLocalIdX:
            return local_id(0);
        case BuiltinId::kLocalIdY:
            return local_id(1);
        case BuiltinId::kLocalIdZ:
            return local_id(2);
        case BuiltinId::kLocalIndex: {
            if (code_.subgroups == 1 || patterns_.map().tile_width == 0) {
                return code_.subgroups == 1 ? builder_.getInt32(0) : code_.lane_base;
            }
            const auto& size = kernel_.workgroup_size;
            Value* row = builder_.CreateAdd(
                builder_.CreateMul(LocalIdBase(2), builder_.getInt32(size[1])), LocalIdBase(1));
            return builder_.CreateAdd(builder_.CreateMul(row, builder_.getInt32(size[0])),
                                      LocalIdBase(0));
        }
        case BuiltinId::kSubgroupId:
            return code_.subgroups == 1 ? builder_.getInt32(0) : code_.subgroup;
        case BuiltinId::kSubgroupLane:
            return builder_.getInt32(0);
        case BuiltinId::kNumSubgroups:
            return builder_.getInt32(code_.subgroups);
        case BuiltinId::kSubgroupSize:
            return builder_.getInt32(kernel_.subgroup_size);
    }
    return builder_.getInt32(0);
}

void ValueCode::FindFusable() {
    std::vector<uint32_t> in_sums(kernel_.num_values(), 0);
    for (uint32_t i = 0; i < kernel_.num_insts(); ++i) {
        const ir::Instruction& inst = kernel_.inst(ir::InstId{i});
        const bool sum = inst.op == Op::kFAdd || inst.op == Op::kFSub;
        if (!sum || (inst.flags & ir::kNoContraction) != 0 ||
            inst.operands[0] == inst.operands[1]) {
            continue;
        }
        for (ir::ValueId operand : inst.operands) {
            ++in_sums[operand.value()];
        }
    }
    for (uint32_t i = 0; i < kernel_.num_insts(); ++i) {
        const ir::Instruction& inst = kernel_.inst(ir::InstId{i});
        if (inst.op != Op::kFMul || (inst.flags & ir::kNoContraction) != 0 ||
            kernel_.type(inst.results[0]) == ir::Type::kF16) {
            continue;
        }
        const uint32_t result = inst.results[0].value();
        fusable_[result] = uses_[result] > 1 && in_sums[result] == uses_[result];
    }
}

// A product with several uses, all of them sums: fused into each, where LLVM would keep it apart.
Value* ValueCode::EmitFused(const ir::Instruction& inst, bool scalar) {
    // An operand from outside of the region may have another pattern under its map.
    if (!code_.own_map || (inst.op != Op::kFAdd && inst.op != Op::kFSub) ||
        (inst.flags & ir::kNoContraction) != 0 || inst.operands[0] == inst.operands[1]) {
        return nullptr;
    }
    const bool first = fusable_[inst.operands[0].value()];
    if (!first && !fusable_[inst.operands[1].value()]) {
        return nullptr;
    }
    const ir::Instruction& product = *kernel_.Definition(inst.operands[first ? 0 : 1]);
    ir::ValueId other_id = inst.operands[first ? 1 : 0];
    // After a barrier the product is there and its operands may not be.
    for (ir::ValueId operand : product.operands) {
        const uint32_t epoch = held_[operand.value()].epoch;
        if (epoch != code_.epoch && epoch != 0) {
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

// What it is made of is there, or comes late itself: both belong to this region.
Value* ValueCode::EmitLate(ir::ValueId value) {
    const auto found = late_.find(value.value());
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
        late_[value.value()] = result;
    }
    return result;
}

// Different numbers by one that is the same for the workgroup.
bool ValueCode::DividesByInverse(const ir::Instruction& inst) const {
    return (inst.op == Op::kUDiv || inst.op == Op::kURem) && code_.lanes > 1 && !code_.compact &&
           kernel_.type(inst.results[0]) == ir::Type::kI32 && !kernel_.IsConst(inst.operands[1]) &&
           patterns_.pattern(inst.operands[1]).workgroup &&
           !patterns_.pattern(inst.operands[0]).workgroup;
}

void ValueCode::EmitLaneRange(const ir::Instruction& inst) {
    const ir::ValueId of = inst.operands[0];
    const LanePattern& pattern = patterns_.pattern(of);
    Value* low = Scalar(of);
    llvm::Type* type = low->getType();
    llvm::Constant* span = llvm::ConstantInt::get(type, 0);
    if (pattern.constant_offsets()) {
        const auto [lowest, highest] =
            std::minmax_element(pattern.offsets.begin(), pattern.offsets.end());
        low = builder_.CreateAdd(Raw(of), llvm::ConstantInt::getSigned(type, *lowest));
        // Offsets wrap with the type, so those of 64 bits may lie anywhere.
        const auto distance = static_cast<uint64_t>(*highest) - static_cast<uint64_t>(*lowest);
        span = llvm::ConstantInt::get(type, distance);
    } else if (!pattern.uniform() && code_.lanes > 1) {
        span = llvm::Constant::getAllOnesValue(type);
    }
    Set(inst.results[0], low);
    Set(inst.results[1], span);
}

void ValueCode::EmitOperation(const ir::Instruction& inst) {
    switch (inst.op) {
        case Op::kConst: {
            ir::ValueId result = inst.results[0];
            ir::Type type = kernel_.type(result);
            uint32_t bits = ir::BitWidth(type);
            llvm::Constant* constant = llvm::ConstantInt::get(
                code_.context, llvm::APInt(bits, inst.imm & lane_patterns::TypeMax(bits)));
            llvm::Type* scalar = ScalarType(code_.context, type);
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
        case Op::kLaneRange:
            EmitLaneRange(inst);
            return;
        default:
            break;
    }
    const LanePattern& pattern = patterns_.pattern(inst.results[0]);
    const bool scalar = pattern.scalar();
    if (!code_.compact && address_only_[inst.results[0].value()] && !scalar && code_.lanes > 1 &&
        regions_.storage(inst.results[0]) == BarrierRegions::Storage::kRegion) {
        Set(inst.results[0], nullptr);
        held_[inst.results[0].value()].late = true;
        return;
    }
    llvm::SmallVector<Value*, 4> operands;
    bool lanes_differ = false;
    for (ir::ValueId operand : inst.operands) {
        lanes_differ |= !patterns_.pattern(operand).uniform();
        if (scalar && patterns_.pattern(operand).varying()) {
            continue;  // the stride of a sum (LaneAnalysis::PurePattern), not a part of its base
        }
        operands.push_back(scalar ? Raw(operand) : Vector(operand));
    }
    if (scalar && lanes_differ && (inst.op == Op::kOr || inst.op == Op::kXor)) {
        // The pattern rules proved the operands' bits disjoint; bases and lane offsets add.
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
    if (code_.compact && !scalar && code_.lanes > 1 &&
        (inst.op == Op::kSDot4 || inst.op == Op::kUDot4 || inst.op == Op::kSUDot4)) {
        Value* zero = llvm::Constant::getNullValue(operands[2]->getType());
        Value* dot =
            code_.ShareCode(std::string("dot") + std::to_string(static_cast<int>(inst.op)),
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

Offset ValueCode::OffsetOf(ir::ValueId value) {
    Offset offset;
    offset.pattern = &patterns_.pattern(value);
    if (offset.pattern->scalar() || code_.lanes == 1) {
        offset.scalar = Raw(value);
    }
    return offset;
}

}  // namespace fornax::kernel
