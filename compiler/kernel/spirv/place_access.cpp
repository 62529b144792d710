// Loads and stores by runs and by slots; pointers as tuples of scalars.
#include "compiler/kernel/spirv/place_access.h"

#include <algorithm>
#include <bit>

namespace fornax::kernel::spirv {

namespace {

// Elements that one load or store moves: as many as neighbouring ones are joined to later. A longer
// vector of each lane would be one vector of all lanes' elements, which LLVM takes apart slowly.
constexpr uint32_t kLongestRun = 16;
// Marks the offset of a pointer to workgroup memory, so that none is null.
constexpr uint32_t kSharedTag = 0x80000000u;

}  // namespace

template <typename Visit>
Status PlaceAccess::VisitRuns(const Inst& inst,
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

ir::ValueId PlaceAccess::BufferOf(const Pointer& pointer) {
    if (pointer.mapping) {
        return heaps_.MappedBuffer(pointer);
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
void PlaceAccess::VisitSlots(const Type& type,
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
                steps.push_back(places_.SlotsOfLeaf(element, i));
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

Result<Tuple> PlaceAccess::LoadFrom(const Inst& inst, const Pointer& pointer) {
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, pointer.type));
    FORNAX_RETURN_IF_ERROR(CheckComposite(inst, *type));
    if (type->empty) {
        return Tuple{};
    }
    if (pointer.space == Pointer::Space::kBuiltin) {
        return invocation_.LoadBuiltin(inst, pointer);
    }
    Tuple tuple;
    if (pointer.space == Pointer::Space::kLocal) {
        VisitSlots(*type, pointer.leaf, std::vector<uint64_t>(type->leaves, 0),
                   [&](uint32_t leaf, uint64_t slot) {
                       const uint32_t local = code_.variables[pointer.variable].locals[leaf];
                       tuple.push_back(Emit(ir::Op::kLoadLocal, kernel_.locals[local].type,
                                            {places_.SlotIndex(pointer, leaf, slot)}, 0, local));
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
Status PlaceAccess::LoadRun(const Inst& inst,
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
    operands.push_back(places_.ByteOffset(pointer, at));
    const std::vector<ir::Type> results(count, stored);
    ir::InstId load = builder_.Append(op, operands, results, places_.AlignAt(pointer, at),
                                      pointer.is_volatile ? ir::kVolatile : 0);
    const std::vector<ir::ValueId> loaded = kernel_.inst(load).results;
    for (ir::ValueId value : loaded) {
        out.push_back(scalar == ir::Type::kBool
                          ? Emit(ir::Op::kINe, ir::Type::kBool, {value, Int(0)})
                          : value);
    }
    return OkStatus();
}

Status PlaceAccess::StoreTo(const Inst& inst, const Pointer& pointer, const Tuple& value) {
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, pointer.type));
    FORNAX_RETURN_IF_ERROR(CheckComposite(inst, *type));
    if (type->scalars != value.size()) {
        return Invalid(inst, "stores a value of another type than its pointer's");
    }
    size_t next = 0;
    if (pointer.space == Pointer::Space::kLocal) {
        Status status;
        VisitSlots(
            *type, pointer.leaf, std::vector<uint64_t>(type->leaves, 0),
            [&](uint32_t leaf, uint64_t slot) {
                const uint32_t local = code_.variables[pointer.variable].locals[leaf];
                if (kernel_.locals[local].type != kernel_.type(value[next])) {
                    status = Invalid(inst, "stores a value of another type than its pointer's");
                    return;
                }
                ir::ValueId operands[] = {places_.SlotIndex(pointer, leaf, slot), value[next++]};
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

Status PlaceAccess::CheckWritable(const Inst& inst, const Pointer& pointer) {
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

Status PlaceAccess::StoreRun(const Inst& inst,
                             const Pointer& pointer,
                             std::span<const ir::ValueId> values,
                             uint64_t at) {
    const bool shared = pointer.space == Pointer::Space::kShared;
    const bool buffer = pointer.space == Pointer::Space::kBuffer;
    std::vector<ir::ValueId> operands;
    if (buffer) {
        operands.push_back(BufferOf(pointer));
    }
    operands.push_back(places_.ByteOffset(pointer, at));
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
    builder_.Append(op, operands, {}, places_.AlignAt(pointer, at),
                    pointer.is_volatile ? ir::kVolatile : 0);
    return OkStatus();
}

// The operand `index` on, where there are any. What the Vulkan memory model adds (availability and
// visibility) needs nothing on a coherent host.
Status PlaceAccess::MemoryOperands(const Inst& inst, size_t index, Pointer& pointer) {
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

Result<Pointer> PlaceAccess::PointerFromScalars(const Inst& inst, const Value& value) {
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, value.type));
    if (type->kind != Type::Kind::kPointer ||
        value.scalars.size() != type->pointer_scalars.size() || value.scalars.empty()) {
        return Invalid(inst, "uses as a pointer what is none");
    }
    Pointer pointer;
    pointer.type = type->element;
    pointer.untyped = type->element == 0;
    const Type* pointee = types_.Find(type->element);
    pointer.align =
        pointee ? static_cast<uint32_t>(std::clamp<uint64_t>(pointee->layout.align, 1, kMaxAlign))
                : 1;
    pointer.offset = value.scalars.back();
    if (type->storage == spv::StorageClass::PhysicalStorageBuffer) {
        pointer.space = Pointer::Space::kAddress;
    } else if (type->storage == spv::StorageClass::Workgroup) {
        pointer.space = Pointer::Space::kShared;
        pointer.offset = Emit(ir::Op::kISub, ir::Type::kI32, {pointer.offset, Int(kSharedTag)});
    } else {
        pointer.space = Pointer::Space::kBuffer;
        pointer.view_address = value.scalars[0];
        pointer.view_size = value.scalars[1];
    }
    return pointer;
}

// "A variable pointer must not point to an object that is or contains an OpTypeMatrix, [or] to a
// column, or a component in a column, within an OpTypeMatrix" (SPIR-V, 2.16.1): its layout is its
// structure's, which the pointer does not carry.
Result<Tuple> PlaceAccess::PointerScalars(const Inst& inst, const Pointer& pointer) {
    const Type* part = types_.Find(pointer.type);
    while (part && (part->kind == Type::Kind::kArray || part->kind == Type::Kind::kRuntimeArray)) {
        part = types_.Find(part->element);
    }
    if (pointer.component_stride != 0 || (part && part->kind == Type::Kind::kMatrix)) {
        return Unsupported(inst, "uses a pointer to a part of a matrix as a value");
    }
    return PlaceScalars(inst, pointer);
}

// The same for what only looks at where the pointer points to, of whatever layout that is.
Result<Tuple> PlaceAccess::PlaceScalars(const Inst& inst, const Pointer& pointer) {
    const ir::ValueId offset =
        pointer.needs_element ? ir::ValueId{} : places_.ByteOffset(pointer, pointer.const_offset);
    const ir::Type i64 = ir::Type::kI64;
    switch (pointer.space) {
        case Pointer::Space::kAddress:
            return Tuple{offset};
        case Pointer::Space::kShared:
            return Tuple{Emit(ir::Op::kIAdd, ir::Type::kI32, {offset, Int(kSharedTag)})};
        case Pointer::Space::kBuffer: {
            if (pointer.needs_element) {
                break;
            }
            if (pointer.view_address.valid()) {
                return Tuple{pointer.view_address, pointer.view_size, offset};
            }
            const ir::ValueId buffer = BufferOf(pointer);
            return Tuple{Emit(ir::Op::kBufferAddress, i64, {buffer}),
                         Emit(ir::Op::kBufferSize, i64, {buffer}), offset};
        }
        default:
            break;
    }
    return Unsupported(inst,
                       "uses as a value a pointer that is not to a storage buffer, workgroup "
                       "memory or a device address");
}

Result<Pointer> PlaceAccess::PrivatePlace(const Inst& inst, const Type& type) {
    FORNAX_RETURN_IF_ERROR(CheckComposite(inst, type));
    FORNAX_RETURN_IF_ERROR(Spend(inst, type.scalars));
    LocalVariable variable;
    auto visit = [&](auto& self, const Type& part, uint64_t count) -> bool {
        if (part.empty) {
            return true;
        }
        switch (part.kind) {
            case Type::Kind::kScalar:
                variable.locals.push_back(NewLocal(part.scalar, static_cast<uint32_t>(count)));
                return true;
            case Type::Kind::kPointer:
                for (ir::Type scalar : part.pointer_scalars) {
                    variable.locals.push_back(NewLocal(scalar, static_cast<uint32_t>(count)));
                }
                return true;
            case Type::Kind::kStruct:
                return std::ranges::all_of(part.members, [&](uint32_t member) {
                    return self(self, types_.Get(member), count);
                });
            case Type::Kind::kVector:
            case Type::Kind::kMatrix:
            case Type::Kind::kCooperativeMatrix:
            case Type::Kind::kArray:
                return self(self, types_.Get(part.element), count * part.count);
            default:
                return false;
        }
    };
    if (!visit(visit, type, 1)) {
        return Invalid(inst, "holds a part of a type that no variable has");
    }
    Pointer pointer;
    pointer.space = Pointer::Space::kLocal;
    pointer.type = type.id;
    pointer.variable = static_cast<uint32_t>(code_.variables.size());
    code_.variables.push_back(std::move(variable));
    return pointer;
}

}  // namespace fornax::kernel::spirv
