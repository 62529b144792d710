// Loads, stores and copies. Values in memory with bytes are taken in runs of adjacent elements of
// one type; private memory is taken scalar by scalar.
#include <algorithm>
#include <bit>

#include "compiler/kernel/spirv/translator.h"

namespace fornax::kernel::spirv {

using spv::Op;

namespace {

// What tells an invocation of its subgroup.
bool IsOfSubgroup(spv::BuiltIn builtin) {
    switch (builtin) {
        case spv::BuiltIn::NumWorkgroups:
        case spv::BuiltIn::WorkgroupId:
        case spv::BuiltIn::LocalInvocationId:
        case spv::BuiltIn::WorkgroupSize:
        case spv::BuiltIn::GlobalInvocationId:
        case spv::BuiltIn::LocalInvocationIndex:
        case spv::BuiltIn::DeviceIndex:
            return false;
        default:
            return true;
    }
}

}  // namespace

Status Translator::CheckComposite(const Inst& inst, const Type& type) {
    if (type.scalars == 0 && !type.empty) {
        return Invalid(inst, "has a type that has no value");
    }
    if (type.scalars > kReaderLimits.composite_scalars) {
        return Unsupported(inst, "has a value of " + std::to_string(type.scalars) +
                                     " scalars, and the limit is " +
                                     std::to_string(kReaderLimits.composite_scalars));
    }
    return OkStatus();
}

// Elements that one load or store moves: as many as neighbouring ones are joined to later. A longer
// vector of each lane would be one vector of all lanes' elements, which LLVM takes apart slowly.
constexpr uint32_t kLongestRun = 16;

template <typename Visit>
Status Translator::VisitRuns(const Inst& inst,
                             const Pointer& pointer,
                             const Type& type,
                             uint64_t at,
                             bool row_major,
                             uint32_t matrix_stride,
                             Visit&& visit) {
    if (pointer.space == Pointer::Space::kHeap) {
        return Invalid(inst, "accesses the bytes of a descriptor heap");
    }
    if (type.empty) {
        return OkStatus();
    }
    switch (type.kind) {
        case Type::Kind::kScalar:
            return visit(at, type.scalar, 1u);
        case Type::Kind::kPointer:
            if (type.storage != spv::StorageClass::PhysicalStorageBuffer) {
                return Invalid(inst, "accesses a pointer that is no device address in memory");
            }
            return visit(at, type.scalar, 1u);
        case Type::Kind::kVector: {
            const ir::Type scalar = types_.ScalarOf(type);
            const uint64_t element = ir::ByteSize(scalar);
            if (pointer.component_stride == 0 || pointer.component_stride == element) {
                for (uint32_t i = 0; i < type.count; i += kLongestRun) {
                    FORNAX_RETURN_IF_ERROR(
                        visit(at + i * element, scalar, std::min(type.count - i, kLongestRun)));
                }
                return OkStatus();
            }
            for (uint32_t i = 0; i < type.count; ++i) {
                FORNAX_RETURN_IF_ERROR(visit(at + i * pointer.component_stride, scalar, 1u));
            }
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

// Device addresses are computed in 64 bits, offsets in buffers as the kernel's mode says
// ("64-Bit Indexing"), and those of texels and of all other memory in 32.
ir::Type Translator::OffsetType(const Pointer& pointer) const {
    if (pointer.offset.valid()) {
        return kernel_.type(pointer.offset);
    }
    if (pointer.space == Pointer::Space::kAddress) {
        return ir::Type::kI64;
    }
    return pointer.space == Pointer::Space::kBuffer ? types_.buffer_offset() : ir::Type::kI32;
}

ir::ValueId Translator::ByteOffset(const Pointer& pointer, uint64_t constant) {
    const ir::Type type = OffsetType(pointer);
    ir::ValueId offset =
        builder_.Const(type, type == ir::Type::kI64 ? constant : static_cast<uint32_t>(constant));
    if (!pointer.offset.valid()) {
        return offset;
    }
    return constant == 0 ? pointer.offset : Emit(ir::Op::kIAdd, type, {pointer.offset, offset});
}

// What is known of an access `at` bytes from the pointer's dynamic part. A device address is known
// to be aligned as a whole.
uint64_t Translator::AlignAt(const Pointer& pointer, uint64_t at) const {
    if (pointer.space == Pointer::Space::kAddress) {
        at -= pointer.const_offset;
    }
    return at == 0 ? pointer.align : std::min<uint64_t>(pointer.align, at & -at);
}

ir::ValueId Translator::BufferOf(const Pointer& pointer) {
    if (pointer.mapping) {
        return MappedBuffer(pointer);
    }
    if (pointer.view_address.valid()) {
        return Emit(ir::Op::kBufferFrom, ir::Type::kBuffer,
                    {pointer.view_address, pointer.view_size});
    }
    ir::ValueId element = pointer.element.valid() ? pointer.element : Int(0);
    return Emit(ir::Op::kBuffer, ir::Type::kBuffer, {element},
                pointer.nonuniform ? ir::kNonUniform : 0, pointer.binding);
}

template <typename Visit>
void Translator::VisitSlots(const Type& type,
                            uint32_t leaf,
                            const std::vector<uint64_t>& slots,
                            Visit&& visit) {
    if (type.empty) {
        return;
    }
    // `slots` holds the constant slot reached so far in each leaf of the type.
    switch (type.kind) {
        case Type::Kind::kScalar:
            visit(leaf, slots[0]);
            return;
        case Type::Kind::kPointer:
            for (uint32_t i = 0; i < type.leaves; ++i) {
                visit(leaf + i, slots[i]);
            }
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
            for (uint32_t i = 0; i < element.leaves; ++i) {
                steps.push_back(SlotsOfLeaf(element, i));
            }
            std::vector<uint64_t> at = slots;
            for (uint32_t i = 0; i < type.count; ++i) {
                VisitSlots(element, leaf, at, visit);
                for (size_t k = 0; k < at.size(); ++k) {
                    at[k] += steps[k];
                }
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
        if (step != 1) {
            part = Emit(ir::Op::kIMul, ir::Type::kI32, {part, Int(static_cast<uint32_t>(step))});
        }
        index = index.valid() ? Emit(ir::Op::kIAdd, ir::Type::kI32, {index, part}) : part;
    }
    ir::ValueId last = Int(static_cast<uint32_t>(constant));
    if (!index.valid()) {
        return last;
    }
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
        for (int i = 0; i < 3; ++i) {
            tuple.push_back(one(static_cast<BuiltinId>(static_cast<int>(first) + i)));
        }
        return tuple;
    };
    Tuple tuple;
    sees_subgroups_ |= IsOfSubgroup(pointer.builtin);
    switch (pointer.builtin) {
        case spv::BuiltIn::NumWorkgroups:
            tuple = three(BuiltinId::kNumWorkgroupsX);
            break;
        case spv::BuiltIn::WorkgroupId:
            tuple = three(BuiltinId::kWorkgroupIdX);
            break;
        case spv::BuiltIn::LocalInvocationId:
            tuple = LocalInvocationId();
            break;
        case spv::BuiltIn::WorkgroupSize:
            for (uint32_t size : workgroup_size_) {
                tuple.push_back(Int(size));
            }
            break;
        case spv::BuiltIn::GlobalInvocationId: {
            Tuple group = three(BuiltinId::kWorkgroupIdX);
            Tuple local = LocalInvocationId();
            for (int i = 0; i < 3; ++i) {
                ir::ValueId start = Emit(ir::Op::kIMul, i32, {group[i], Int(workgroup_size_[i])});
                tuple.push_back(Emit(ir::Op::kIAdd, i32, {start, local[i]}));
            }
            break;
        }
        case spv::BuiltIn::LocalInvocationIndex:
            tuple = {LocalInvocationIndex()};
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
    if (!pointer.component.valid()) {
        return tuple;
    }
    if (tuple.size() == 1) {
        return Invalid(inst, "takes a component of a scalar");
    }
    return Tuple{SelectComponent(tuple, pointer.component)};
}

Result<Tuple> Translator::LoadFrom(const Inst& inst, const Pointer& pointer) {
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, pointer.type));
    FORNAX_RETURN_IF_ERROR(CheckComposite(inst, *type));
    if (type->empty) {
        return Tuple{};
    }
    if (pointer.space == Pointer::Space::kBuiltin) {
        return LoadBuiltin(inst, pointer);
    }
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
    if (pointer.needs_element) {
        return Invalid(inst, "loads an array of buffer blocks");
    }
    FORNAX_RETURN_IF_ERROR(VisitRuns(inst, pointer, *type, pointer.const_offset, pointer.row_major,
                                     pointer.matrix_stride,
                                     [&](uint64_t at, ir::Type scalar, uint32_t count) {
                                         return LoadRun(inst, pointer, scalar, count, at, tuple);
                                     }));
    return tuple;
}

// Appends `count` neighbours from `at` on.
Status Translator::LoadRun(const Inst& inst,
                           const Pointer& pointer,
                           ir::Type scalar,
                           uint32_t count,
                           uint64_t at,
                           Tuple& out) {
    if (scalar == ir::Type::kBool && pointer.space != Pointer::Space::kShared) {
        return Invalid(inst, "loads a boolean from a buffer");
    }
    const ir::Type stored = scalar == ir::Type::kBool ? ir::Type::kI32 : scalar;
    std::vector<ir::ValueId> operands;
    ir::Op op = ir::Op::kLoadShared;
    if (pointer.space == Pointer::Space::kBuffer) {
        op = ir::Op::kLoadBuffer;
        operands.push_back(BufferOf(pointer));
    } else if (pointer.space == Pointer::Space::kAddress) {
        op = ir::Op::kLoadGlobal;
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
    ir::InstId load = builder_.Append(op, operands, results, AlignAt(pointer, at),
                                      pointer.is_volatile ? ir::kVolatile : 0);
    const std::vector<ir::ValueId> loaded = kernel_.inst(load).results;
    for (ir::ValueId value : loaded) {
        out.push_back(scalar == ir::Type::kBool
                          ? Emit(ir::Op::kINe, ir::Type::kBool, {value, Int(0)})
                          : value);
    }
    return OkStatus();
}

Status Translator::StoreTo(const Inst& inst, const Pointer& pointer, const Tuple& value) {
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, pointer.type));
    FORNAX_RETURN_IF_ERROR(CheckComposite(inst, *type));
    if (type->scalars != value.size()) {
        return Invalid(inst, "stores a value of another type than its pointer's");
    }
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
    FORNAX_RETURN_IF_ERROR(CheckWritable(inst, pointer));
    return VisitRuns(
        inst, pointer, *type, pointer.const_offset, pointer.row_major, pointer.matrix_stride,
        [&](uint64_t at, ir::Type scalar, uint32_t count) -> Status {
            for (uint32_t i = 0; i < count; ++i) {
                if (kernel_.type(value[next + i]) != scalar) {
                    return Invalid(inst, "stores a value of another type than its pointer's");
                }
            }
            next += count;
            return StoreRun(inst, pointer, {&value[next - count], count}, at);
        });
}

Status Translator::CheckWritable(const Inst& inst, const Pointer& pointer) {
    const bool buffer = pointer.space == Pointer::Space::kBuffer;
    if ((!buffer && pointer.space != Pointer::Space::kShared &&
         pointer.space != Pointer::Space::kAddress) ||
        pointer.needs_element) {
        return Invalid(inst, "stores to what cannot be written");
    }
    if (!buffer || pointer.view_address.valid()) {
        return OkStatus();
    }
    ir::Binding& binding = kernel_.bindings[pointer.binding];
    if (binding.layout.kind != BindingLayout::Kind::kStorageBuffer) {
        return Invalid(inst, "stores to a uniform buffer");
    }
    // Modules exist that write what they decorate with NonWritable; what is done counts.
    binding.writable = true;
    return OkStatus();
}

Status Translator::StoreRun(const Inst& inst,
                            const Pointer& pointer,
                            std::span<const ir::ValueId> values,
                            uint64_t at) {
    const bool shared = pointer.space == Pointer::Space::kShared;
    const bool buffer = pointer.space == Pointer::Space::kBuffer;
    std::vector<ir::ValueId> operands;
    if (buffer) {
        operands.push_back(BufferOf(pointer));
    }
    operands.push_back(ByteOffset(pointer, at));
    for (ir::ValueId element : values) {
        const bool boolean = kernel_.type(element) == ir::Type::kBool;
        if (boolean && !shared) {
            return Invalid(inst, "stores a boolean to a buffer");
        }
        operands.push_back(
            boolean ? Emit(ir::Op::kSelect, ir::Type::kI32, {element, Int(1), Int(0)}) : element);
    }
    const ir::Op op = buffer   ? ir::Op::kStoreBuffer
                      : shared ? ir::Op::kStoreShared
                               : ir::Op::kStoreGlobal;
    builder_.Append(op, operands, {}, AlignAt(pointer, at),
                    pointer.is_volatile ? ir::kVolatile : 0);
    return OkStatus();
}

// The operand `index` on, where there are any. What the Vulkan memory model adds (availability and
// visibility) needs nothing on a coherent host.
Status Translator::MemoryOperands(const Inst& inst, size_t index, Pointer& pointer) {
    if (inst.size() <= index) {
        return OkStatus();
    }
    const uint32_t mask = inst[index];
    pointer.is_volatile |= (mask & static_cast<uint32_t>(spv::MemoryAccessMask::Volatile)) != 0;
    if ((mask & static_cast<uint32_t>(spv::MemoryAccessMask::Aligned)) != 0) {
        if (inst.size() <= index + 1 || !std::has_single_bit(inst[index + 1])) {
            return Invalid(inst, "has an alignment that is no power of two");
        }
        if (pointer.space == Pointer::Space::kAddress) {
            pointer.align = std::min(inst[index + 1], 64u);
        }
    }
    return OkStatus();
}

Status Translator::Load(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Pointer pointer, UsePointer(inst, inst[0]));
    FORNAX_RETURN_IF_ERROR(MemoryOperands(inst, 1, pointer));
    if (pointer.untyped) {
        FORNAX_RETURN_IF_ERROR(Retype(inst, pointer, inst.type));
    }
    if (inst.type != pointer.type) {
        return Invalid(inst, "has another result type than its pointer's");
    }
    if (pointer.space == Pointer::Space::kHeap) {
        FORNAX_RETURN_IF_ERROR(LoadHeapDescriptor(inst, pointer, inst.type));
        return DefinePointer(inst, std::move(pointer));
    }
    if (pointer.space == Pointer::Space::kImage) {
        // What is loaded is the place of the descriptor.
        if (pointer.needs_element) {
            return Invalid(inst, "loads an array of images or samplers");
        }
        pointer.nonuniform |=
            module_.FindDecoration(inst.result, spv::Decoration::NonUniform) != nullptr;
        ResolveHeap(pointer);
        return DefinePointer(inst, std::move(pointer));
    }
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, pointer.type));
    if (IsLarge(*type)) {
        FORNAX_RETURN_IF_ERROR(CheckComposite(inst, *type));
        return LoadLarge(inst, pointer);
    }
    FORNAX_ASSIGN_OR_RETURN(Tuple tuple, LoadFrom(inst, pointer));
    return Define(inst, std::move(tuple));
}

Status Translator::Store(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Pointer pointer, UsePointer(inst, inst[0]));
    FORNAX_RETURN_IF_ERROR(MemoryOperands(inst, 2, pointer));
    if (pointer.untyped) {
        FORNAX_ASSIGN_OR_RETURN(const Type* type, ValueType(inst, inst[1]));
        FORNAX_RETURN_IF_ERROR(Retype(inst, pointer, type->id));
    }
    return StoreValue(inst, pointer, inst[1]);
}

// Where the second set of memory operands begins: behind the first one and what its bits bring, or
// at the first one where that is all.
size_t Translator::SecondMemoryOperands(const Inst& inst, size_t index) const {
    if (inst.size() <= index) {
        return index;
    }
    size_t next = index + 1;
    for (auto mask : {spv::MemoryAccessMask::Aligned, spv::MemoryAccessMask::MakePointerAvailable,
                      spv::MemoryAccessMask::MakePointerVisible}) {
        next += (inst[index] & static_cast<uint32_t>(mask)) != 0;
    }
    return next < inst.size() ? next : index;
}

// A copy of bytes between untyped pointers, word by word where the size allows.
Status Translator::CopyMemorySized(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Pointer to, UsePointer(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(Pointer from, UsePointer(inst, inst[1]));
    const Constant* size = constants_.Find(inst[2]);
    if (!size || size->bits.size() != 1) {
        return Unsupported(inst, "has a size that is no constant");
    }
    FORNAX_RETURN_IF_ERROR(MemoryOperands(inst, 3, to));
    FORNAX_RETURN_IF_ERROR(MemoryOperands(inst, SecondMemoryOperands(inst, 3), from));
    FORNAX_RETURN_IF_ERROR(CheckWritable(inst, to));
    if (from.space == Pointer::Space::kLocal || from.space == Pointer::Space::kBuiltin ||
        from.space == Pointer::Space::kImage || from.needs_element) {
        return Unsupported(inst, "copies from memory without a layout");
    }
    uint64_t align = 4;
    for (const Pointer* pointer : {&to, &from}) {
        align = std::min(align, AlignAt(*pointer, pointer->const_offset));
    }
    const uint64_t bytes = size->bits[0];
    while (bytes % align != 0) {
        align /= 2;
    }
    const ir::Type type = ir::IntegerType(static_cast<uint32_t>(align * 8));
    if (bytes == 0 || bytes / align > kReaderLimits.composite_scalars) {
        return Unsupported(inst, "copies " + std::to_string(bytes) + " bytes; the limit is " +
                                     std::to_string(kReaderLimits.composite_scalars) +
                                     " elements of " + std::to_string(align) + " bytes");
    }
    FORNAX_RETURN_IF_ERROR(Spend(inst, bytes / align));
    Tuple value;
    for (uint64_t at = 0; at < bytes; at += align) {
        FORNAX_RETURN_IF_ERROR(LoadRun(inst, from, type, 1, from.const_offset + at, value));
    }
    for (uint64_t at = 0; at < bytes; at += align) {
        FORNAX_RETURN_IF_ERROR(StoreRun(inst, to, {&value[at / align], 1}, to.const_offset + at));
    }
    return OkStatus();
}

Status Translator::CopyMemory(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Pointer to, UsePointer(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(Pointer from, UsePointer(inst, inst[1]));
    // One set of operands is for both; of two, the first is the target's (since SPIR-V 1.4).
    FORNAX_RETURN_IF_ERROR(MemoryOperands(inst, 2, to));
    FORNAX_RETURN_IF_ERROR(MemoryOperands(inst, SecondMemoryOperands(inst, 2), from));
    if (to.untyped && from.untyped) {
        return Invalid(inst, "copies between untyped pointers without a size");
    }
    if (to.untyped) {
        FORNAX_RETURN_IF_ERROR(Retype(inst, to, from.type));
    }
    if (from.untyped) {
        FORNAX_RETURN_IF_ERROR(Retype(inst, from, to.type));
    }
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, from.type));
    if (IsLarge(*type) && from.space != Pointer::Space::kBuiltin) {
        return CopyLarge(inst, to, from);
    }
    FORNAX_ASSIGN_OR_RETURN(Tuple value, LoadFrom(inst, from));
    return StoreTo(inst, to, value);
}

}  // namespace fornax::kernel::spirv
