// Loads, stores and atomics. Values in memory with bytes are taken in runs of adjacent elements of
// one type; private memory is taken scalar by scalar.
#include <algorithm>

#include "compiler/kernel/spirv/translator.h"

namespace fornax::kernel::spirv {

using spv::Op;

Status Translator::CheckComposite(const Inst& inst, const Type& type) {
    if (type.scalars == 0)
        return Invalid(inst, "has a type that has no value");
    if (type.scalars > kReaderLimits.composite_scalars) {
        return Unsupported(inst, "has a value of " + std::to_string(type.scalars) +
                                     " scalars, and the limit is " +
                                     std::to_string(kReaderLimits.composite_scalars));
    }
    return OkStatus();
}

template <typename Visit>
Status Translator::VisitRuns(const Inst& inst,
                             const Pointer& pointer,
                             const Type& type,
                             uint64_t at,
                             bool row_major,
                             uint32_t matrix_stride,
                             Visit&& visit) {
    switch (type.kind) {
        case Type::Kind::kScalar:
            return visit(at, type.scalar, 1u);
        case Type::Kind::kVector: {
            const ir::Type scalar = types_.ScalarOf(type);
            const uint64_t element = ir::ByteSize(scalar);
            if (pointer.component_stride == 0 || pointer.component_stride == element)
                return visit(at, scalar, type.count);
            for (uint32_t i = 0; i < type.count; ++i)
                FORNAX_RETURN_IF_ERROR(visit(at + i * pointer.component_stride, scalar, 1u));
            return OkStatus();
        }
        case Type::Kind::kMatrix: {
            const Type& column = types_.Get(type.element);
            const ir::Type scalar = types_.ScalarOf(column);
            const uint64_t element = ir::ByteSize(scalar);
            for (uint32_t c = 0; c < type.count; ++c) {
                if (!row_major) {
                    const uint64_t stride = matrix_stride ? matrix_stride : column.layout.size;
                    FORNAX_RETURN_IF_ERROR(visit(at + c * stride, scalar, column.count));
                    continue;
                }
                for (uint32_t r = 0; r < column.count; ++r) {
                    FORNAX_RETURN_IF_ERROR(
                        visit(at + r * uint64_t{matrix_stride} + c * element, scalar, 1u));
                }
            }
            return OkStatus();
        }
        case Type::Kind::kArray:
            for (uint32_t i = 0; i < type.count; ++i) {
                FORNAX_RETURN_IF_ERROR(VisitRuns(inst, pointer, types_.Get(type.element),
                                                 at + i * type.stride, row_major, matrix_stride,
                                                 visit));
            }
            return OkStatus();
        case Type::Kind::kStruct:
            for (uint32_t i = 0; i < type.members.size(); ++i) {
                const Decoration* stride =
                    module_.FindDecoration(type.id, spv::Decoration::MatrixStride, i);
                FORNAX_RETURN_IF_ERROR(VisitRuns(
                    inst, pointer, types_.Get(type.members[i]), at + type.offsets[i],
                    module_.FindDecoration(type.id, spv::Decoration::RowMajor, i) != nullptr,
                    stride ? stride->params[0] : 0, visit));
            }
            return OkStatus();
        default:
            return Invalid(inst, "accesses a value of a type that has none");
    }
}

ir::ValueId Translator::ByteOffset(const Pointer& pointer, uint64_t constant) {
    ir::ValueId offset = Int(static_cast<uint32_t>(constant));
    if (!pointer.offset.valid())
        return offset;
    return constant == 0 ? pointer.offset
                         : Emit(ir::Op::kIAdd, ir::Type::kI32, {pointer.offset, offset});
}

ir::ValueId Translator::BufferOf(const Pointer& pointer) {
    ir::ValueId element = pointer.element.valid() ? pointer.element : Int(0);
    return Emit(ir::Op::kBuffer, ir::Type::kBuffer, {element},
                pointer.nonuniform ? ir::kNonUniform : 0, pointer.binding);
}

template <typename Visit>
void Translator::VisitSlots(const Type& type,
                            uint32_t leaf,
                            const std::vector<uint64_t>& slots,
                            Visit&& visit) {
    // `slots` holds the constant slot reached so far in each leaf of the type.
    switch (type.kind) {
        case Type::Kind::kScalar:
            visit(leaf, slots[0]);
            return;
        case Type::Kind::kStruct: {
            size_t first = 0;
            for (uint32_t member : type.members) {
                const Type& part = types_.Get(member);
                VisitSlots(part, leaf + static_cast<uint32_t>(first),
                           {slots.begin() + static_cast<ptrdiff_t>(first),
                            slots.begin() + static_cast<ptrdiff_t>(first + part.leaves)},
                           visit);
                first += part.leaves;
            }
            return;
        }
        default: {
            const Type& element = types_.Get(type.element);
            std::vector<uint64_t> steps;
            for (uint32_t i = 0; i < element.leaves; ++i)
                steps.push_back(SlotsOfLeaf(element, i));
            std::vector<uint64_t> at = slots;
            for (uint32_t i = 0; i < type.count; ++i) {
                VisitSlots(element, leaf, at, visit);
                for (size_t k = 0; k < at.size(); ++k)
                    at[k] += steps[k];
            }
            return;
        }
    }
}

ir::ValueId Translator::SlotIndex(const Pointer& pointer, uint32_t leaf, uint64_t constant) {
    ir::ValueId index;
    for (const Pointer::Term& term : pointer.terms) {
        const uint64_t step = SlotsOfLeaf(types_.Get(term.element), leaf - term.leaf);
        ir::ValueId part = term.index;
        if (step != 1)
            part = Emit(ir::Op::kIMul, ir::Type::kI32, {part, Int(static_cast<uint32_t>(step))});
        index = index.valid() ? Emit(ir::Op::kIAdd, ir::Type::kI32, {index, part}) : part;
    }
    ir::ValueId last = Int(static_cast<uint32_t>(constant));
    if (!index.valid())
        return last;
    return constant == 0 ? index : Emit(ir::Op::kIAdd, ir::Type::kI32, {index, last});
}

Result<Tuple> Translator::LoadBuiltin(const Inst& inst, const Pointer& pointer) {
    using ir::BuiltinId;
    const ir::Type i32 = ir::Type::kI32;
    auto one = [&](BuiltinId id) {
        return Emit(ir::Op::kBuiltin, i32, {}, 0, static_cast<uint64_t>(id));
    };
    auto three = [&](BuiltinId first) {
        Tuple tuple;
        for (int i = 0; i < 3; ++i)
            tuple.push_back(one(static_cast<BuiltinId>(static_cast<int>(first) + i)));
        return tuple;
    };
    Tuple tuple;
    switch (pointer.builtin) {
        case spv::BuiltIn::NumWorkgroups:
            tuple = three(BuiltinId::kNumWorkgroupsX);
            break;
        case spv::BuiltIn::WorkgroupId:
            tuple = three(BuiltinId::kWorkgroupIdX);
            break;
        case spv::BuiltIn::LocalInvocationId:
            tuple = three(BuiltinId::kLocalIdX);
            break;
        case spv::BuiltIn::WorkgroupSize:
            for (uint32_t size : kernel_.workgroup_size)
                tuple.push_back(Int(size));
            break;
        case spv::BuiltIn::GlobalInvocationId: {
            Tuple group = three(BuiltinId::kWorkgroupIdX);
            Tuple local = three(BuiltinId::kLocalIdX);
            for (int i = 0; i < 3; ++i) {
                ir::ValueId start =
                    Emit(ir::Op::kIMul, i32, {group[i], Int(kernel_.workgroup_size[i])});
                tuple.push_back(Emit(ir::Op::kIAdd, i32, {start, local[i]}));
            }
            break;
        }
        case spv::BuiltIn::LocalInvocationIndex:
            tuple = {one(BuiltinId::kLocalIndex)};
            break;
        case spv::BuiltIn::SubgroupId:
            tuple = {one(BuiltinId::kSubgroupId)};
            break;
        case spv::BuiltIn::SubgroupLocalInvocationId:
            tuple = {one(BuiltinId::kSubgroupLane)};
            break;
        case spv::BuiltIn::NumSubgroups:
            tuple = {one(BuiltinId::kNumSubgroups)};
            break;
        case spv::BuiltIn::DeviceIndex:
            tuple = {Int(0)};  // Vulkan 36.7: every device group has one device
            break;
        case spv::BuiltIn::SubgroupEqMask:
        case spv::BuiltIn::SubgroupGeMask:
        case spv::BuiltIn::SubgroupGtMask:
        case spv::BuiltIn::SubgroupLeMask:
        case spv::BuiltIn::SubgroupLtMask:
            tuple = LaneSetToVector(LanesAround(pointer.builtin));
            break;
        default:
            tuple = {one(BuiltinId::kSubgroupSize)};
            break;
    }
    if (!pointer.component.valid())
        return tuple;
    if (tuple.size() == 1)
        return Invalid(inst, "takes a component of a scalar");
    return Tuple{SelectComponent(tuple, pointer.component)};
}

Result<Tuple> Translator::LoadFrom(const Inst& inst, const Pointer& pointer) {
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, pointer.type));
    FORNAX_RETURN_IF_ERROR(CheckComposite(inst, *type));
    if (pointer.space == Pointer::Space::kBuiltin)
        return LoadBuiltin(inst, pointer);
    Tuple tuple;
    if (pointer.space == Pointer::Space::kLocal) {
        VisitSlots(*type, pointer.leaf, std::vector<uint64_t>(type->leaves, 0),
                   [&](uint32_t leaf, uint64_t slot) {
                       const uint32_t local = variables_[pointer.variable].locals[leaf];
                       tuple.push_back(Emit(ir::Op::kLoadLocal, kernel_.locals[local].type,
                                            {SlotIndex(pointer, leaf, slot)}, 0, local));
                   });
        return tuple;
    }
    if (pointer.needs_element)
        return Invalid(inst, "loads an array of buffer blocks");
    const bool buffer = pointer.space == Pointer::Space::kBuffer;
    const uint8_t flags = pointer.is_volatile ? ir::kVolatile : 0;
    FORNAX_RETURN_IF_ERROR(VisitRuns(
        inst, pointer, *type, pointer.const_offset, pointer.row_major, pointer.matrix_stride,
        [&](uint64_t at, ir::Type scalar, uint32_t count) -> Status {
            if (scalar == ir::Type::kBool && pointer.space != Pointer::Space::kShared)
                return Invalid(inst, "loads a boolean from a buffer");
            const ir::Type stored = scalar == ir::Type::kBool ? ir::Type::kI32 : scalar;
            std::vector<ir::ValueId> operands;
            ir::Op op = ir::Op::kLoadShared;
            if (buffer) {
                op = ir::Op::kLoadBuffer;
                operands.push_back(BufferOf(pointer));
            } else if (pointer.space == Pointer::Space::kPush) {
                op = ir::Op::kLoadPush;
                const uint64_t end = at + uint64_t{count} * ir::ByteSize(stored);
                if (!pointer.offset.valid() && end > kernel_.push_constant_bytes) {
                    return Invalid(inst, "reads push constants up to byte " + std::to_string(end) +
                                             ", and the pipeline layout has " +
                                             std::to_string(kernel_.push_constant_bytes));
                }
            }
            operands.push_back(ByteOffset(pointer, at));
            const std::vector<ir::Type> results(count, stored);
            const uint64_t align =
                at == 0 ? pointer.align : std::min<uint64_t>(pointer.align, at & -at);
            ir::InstId load = builder_.Append(op, operands, results, align, flags);
            const std::vector<ir::ValueId> loaded = kernel_.inst(load).results;
            for (ir::ValueId value : loaded) {
                tuple.push_back(scalar == ir::Type::kBool
                                    ? Emit(ir::Op::kINe, ir::Type::kBool, {value, Int(0)})
                                    : value);
            }
            return OkStatus();
        }));
    return tuple;
}

Status Translator::StoreTo(const Inst& inst, const Pointer& pointer, const Tuple& value) {
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, pointer.type));
    FORNAX_RETURN_IF_ERROR(CheckComposite(inst, *type));
    if (type->scalars != value.size())
        return Invalid(inst, "stores a value of another type than its pointer's");
    size_t next = 0;
    if (pointer.space == Pointer::Space::kLocal) {
        Status status;
        VisitSlots(*type, pointer.leaf, std::vector<uint64_t>(type->leaves, 0),
                   [&](uint32_t leaf, uint64_t slot) {
                       const uint32_t local = variables_[pointer.variable].locals[leaf];
                       if (kernel_.locals[local].type != kernel_.type(value[next])) {
                           status =
                               Invalid(inst, "stores a value of another type than its pointer's");
                           return;
                       }
                       ir::ValueId operands[] = {SlotIndex(pointer, leaf, slot), value[next++]};
                       builder_.Append(ir::Op::kStoreLocal, operands, {}, local);
                   });
        return status;
    }
    const bool buffer = pointer.space == Pointer::Space::kBuffer;
    if ((!buffer && pointer.space != Pointer::Space::kShared) || pointer.needs_element)
        return Invalid(inst, "stores to what cannot be written");
    if (buffer &&
        kernel_.bindings[pointer.binding].layout.kind != BindingLayout::Kind::kStorageBuffer)
        return Invalid(inst, "stores to a uniform buffer");
    const uint8_t flags = pointer.is_volatile ? ir::kVolatile : 0;
    return VisitRuns(
        inst, pointer, *type, pointer.const_offset, pointer.row_major, pointer.matrix_stride,
        [&](uint64_t at, ir::Type scalar, uint32_t count) -> Status {
            if (scalar == ir::Type::kBool && buffer)
                return Invalid(inst, "stores a boolean to a buffer");
            std::vector<ir::ValueId> operands;
            if (buffer)
                operands.push_back(BufferOf(pointer));
            operands.push_back(ByteOffset(pointer, at));
            for (uint32_t i = 0; i < count; ++i) {
                ir::ValueId element = value[next++];
                if (kernel_.type(element) != scalar)
                    return Invalid(inst, "stores a value of another type than its pointer's");
                operands.push_back(scalar == ir::Type::kBool ? Emit(ir::Op::kSelect, ir::Type::kI32,
                                                                    {element, Int(1), Int(0)})
                                                             : element);
            }
            const uint64_t align =
                at == 0 ? pointer.align : std::min<uint64_t>(pointer.align, at & -at);
            builder_.Append(buffer ? ir::Op::kStoreBuffer : ir::Op::kStoreShared, operands, {},
                            align, flags);
            return OkStatus();
        });
}

Status Translator::Load(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Pointer pointer, UsePointer(inst, inst[0]));
    pointer.is_volatile |= inst.size() > 1 && (inst[1] & 1);
    if (inst.type != pointer.type)
        return Invalid(inst, "has another result type than its pointer's");
    if (pointer.space == Pointer::Space::kImage) {
        // What is loaded is the place of the descriptor.
        if (pointer.needs_element)
            return Invalid(inst, "loads an array of images or samplers");
        pointer.nonuniform |=
            module_.FindDecoration(inst.result, spv::Decoration::NonUniform) != nullptr;
        return DefinePointer(inst, std::move(pointer));
    }
    FORNAX_ASSIGN_OR_RETURN(Tuple tuple, LoadFrom(inst, pointer));
    return Define(inst, std::move(tuple));
}

Status Translator::Store(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Pointer pointer, UsePointer(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(Tuple value, UseTuple(inst, inst[1]));
    pointer.is_volatile |= inst.size() > 2 && (inst[2] & 1);
    return StoreTo(inst, pointer, value);
}

Status Translator::CopyMemory(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Pointer to, UsePointer(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(Pointer from, UsePointer(inst, inst[1]));
    FORNAX_ASSIGN_OR_RETURN(Tuple value, LoadFrom(inst, from));
    return StoreTo(inst, to, value);
}

Status Translator::Atomic(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Pointer pointer, UsePointer(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, pointer.type));
    if (type->kind != Type::Kind::kScalar || type->scalar != ir::Type::kI32)
        return Unsupported(inst, "is on another type than a 32-bit integer");
    if ((pointer.space != Pointer::Space::kBuffer && pointer.space != Pointer::Space::kShared) ||
        pointer.needs_element) {
        return Unsupported(inst, "is on memory that is no storage buffer or workgroup memory");
    }
    ir::AtomicOp op = ir::AtomicOp::kLoad;
    size_t value_at = 3;  // pointer, scope, semantics, value
    ir::ValueId value;
    switch (inst.op) {
        case Op::OpAtomicLoad:
            value = Int(0);
            break;
        case Op::OpAtomicStore:
            op = ir::AtomicOp::kStore;
            break;
        case Op::OpAtomicExchange:
            op = ir::AtomicOp::kExchange;
            break;
        case Op::OpAtomicCompareExchange:
            op = ir::AtomicOp::kCompareExchange;
            value_at = 4;  // two semantics
            break;
        case Op::OpAtomicIIncrement:
            op = ir::AtomicOp::kAdd;
            value = Int(1);
            break;
        case Op::OpAtomicIDecrement:
            op = ir::AtomicOp::kSub;
            value = Int(1);
            break;
        case Op::OpAtomicIAdd:
            op = ir::AtomicOp::kAdd;
            break;
        case Op::OpAtomicISub:
            op = ir::AtomicOp::kSub;
            break;
        case Op::OpAtomicSMin:
            op = ir::AtomicOp::kSMin;
            break;
        case Op::OpAtomicUMin:
            op = ir::AtomicOp::kUMin;
            break;
        case Op::OpAtomicSMax:
            op = ir::AtomicOp::kSMax;
            break;
        case Op::OpAtomicUMax:
            op = ir::AtomicOp::kUMax;
            break;
        case Op::OpAtomicAnd:
            op = ir::AtomicOp::kAnd;
            break;
        case Op::OpAtomicOr:
            op = ir::AtomicOp::kOr;
            break;
        default:
            op = ir::AtomicOp::kXor;
            break;
    }
    if (!value.valid()) {
        FORNAX_ASSIGN_OR_RETURN(value, UseScalar(inst, inst[value_at]));
    }
    if (kernel_.type(value) != ir::Type::kI32)
        return Invalid(inst, "has a value of another type than its pointer's");
    std::vector<ir::ValueId> operands;
    const bool buffer = pointer.space == Pointer::Space::kBuffer;
    if (buffer)
        operands.push_back(BufferOf(pointer));
    operands.push_back(ByteOffset(pointer, pointer.const_offset));
    operands.push_back(value);
    if (op == ir::AtomicOp::kCompareExchange) {
        FORNAX_ASSIGN_OR_RETURN(ir::ValueId comparand, UseScalar(inst, inst[value_at + 1]));
        if (kernel_.type(comparand) != ir::Type::kI32)
            return Invalid(inst, "has a comparator of another type than its pointer's");
        operands.push_back(comparand);
    }
    const ir::Type i32 = ir::Type::kI32;
    ir::InstId atomic = builder_.Append(buffer ? ir::Op::kAtomicBuffer : ir::Op::kAtomicShared,
                                        operands, {&i32, 1}, static_cast<uint64_t>(op));
    return inst.result != 0 ? Define(inst, {kernel_.inst(atomic).results[0]}) : OkStatus();
}

}  // namespace fornax::kernel::spirv
