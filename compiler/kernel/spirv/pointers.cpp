// Steps through what pointers lead to, and arithmetic on pointers.
#include "compiler/kernel/spirv/pointers.h"

#include <algorithm>

namespace fornax::kernel::spirv {

using spv::Op;

// Indices are signed ("Access Chain": "treated as a signed integer").
Status Pointers::AddIndex(const Inst& inst, Pointer& pointer, uint32_t index_id, uint64_t stride) {
    if (const Constant* constant = constants_.Find(index_id)) {
        if (constant->bits.size() != 1) {
            return Invalid(inst, "has an index that is no scalar");
        }
        const Type& type = types_.Get(constant->type);
        uint64_t index = constant->bits[0];
        const uint32_t bits = ir::BitWidth(type.scalar);
        if (bits < 64 && (index >> (bits - 1)) != 0) {
            index |= ~((uint64_t{1} << bits) - 1);
        }
        pointer.const_offset += index * stride;
        return OkStatus();
    }
    FORNAX_ASSIGN_OR_RETURN(ir::ValueId index, values_.UseScalar(inst, index_id));
    if (!ir::IsInteger(kernel_.type(index))) {
        return Invalid(inst, "has an index that is no integer");
    }
    places_.AddRuntimeIndex(pointer, index, stride);
    return OkStatus();
}

Status Pointers::StepBytes(const Inst& inst,
                           Pointer& pointer,
                           const Type& type,
                           uint32_t index_id) {
    switch (type.kind) {
        case Type::Kind::kStruct: {
            FORNAX_ASSIGN_OR_RETURN(uint64_t member, constants_.Integer(inst, index_id));
            if (member >= type.members.size()) {
                return Invalid(inst, "names member " + std::to_string(member) +
                                         " of a structure of " +
                                         std::to_string(type.members.size()));
            }
            const auto number = static_cast<uint32_t>(member);
            if (const Decoration* offset =
                    module_.FindDecoration(type.id, spv::Decoration::OffsetIdEXT, number)) {
                FORNAX_ASSIGN_OR_RETURN(const uint64_t bytes,
                                        constants_.Integer(inst, offset->params[0]));
                pointer.const_offset += bytes;
            } else {
                pointer.const_offset += type.offsets[number];
            }
            pointer.type = type.members[number];
            const Decoration* stride =
                module_.FindDecoration(type.id, spv::Decoration::MatrixStride, number);
            pointer.matrix_stride = stride ? stride->params[0] : 0;
            pointer.row_major =
                module_.FindDecoration(type.id, spv::Decoration::RowMajor, number) != nullptr;
            for (spv::Decoration kind : {spv::Decoration::Volatile, spv::Decoration::Coherent}) {
                pointer.is_volatile |= module_.FindDecoration(type.id, kind, number) != nullptr;
            }
            return OkStatus();
        }
        case Type::Kind::kArray:
        case Type::Kind::kRuntimeArray:
            pointer.type = type.element;
            if (const Decoration* stride =
                    module_.FindDecoration(type.id, spv::Decoration::ArrayStrideIdEXT)) {
                FORNAX_ASSIGN_OR_RETURN(const uint64_t bytes,
                                        constants_.Integer(inst, stride->params[0]));
                return AddIndex(inst, pointer, index_id, bytes);
            }
            return AddIndex(inst, pointer, index_id, type.stride);
        case Type::Kind::kMatrix: {
            const Type& column = types_.Get(type.element);
            const uint64_t element = types_.Get(column.element).layout.size;
            pointer.type = type.element;
            if (pointer.row_major) {
                pointer.component_stride = pointer.matrix_stride;
                return AddIndex(inst, pointer, index_id, element);
            }
            return AddIndex(inst, pointer, index_id,
                            pointer.matrix_stride ? pointer.matrix_stride : column.layout.size);
        }
        case Type::Kind::kVector: {
            const uint64_t element = types_.Get(type.element).layout.size;
            pointer.type = type.element;
            return AddIndex(inst, pointer, index_id,
                            pointer.component_stride ? pointer.component_stride : element);
        }
        default:
            return Invalid(inst, "has more indices than its base has levels");
    }
}

Status Pointers::Step(const Inst& inst, Pointer& pointer, uint32_t index_id) {
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, pointer.type));
    if (pointer.space == Pointer::Space::kBuiltin) {
        if (type->kind != Type::Kind::kVector || pointer.component.valid()) {
            return Invalid(inst, "has more indices than its base has levels");
        }
        FORNAX_ASSIGN_OR_RETURN(pointer.component, values_.UseScalar(inst, index_id));
        pointer.type = type->element;
        return OkStatus();
    }
    if (pointer.space != Pointer::Space::kLocal) {
        if (pointer.needs_element) {
            FORNAX_ASSIGN_OR_RETURN(ir::ValueId index, values_.UseScalar(inst, index_id));
            if (!ir::IsInteger(kernel_.type(index))) {
                return Invalid(inst, "has an index that is no integer");
            }
            pointer.element = ToI32(index, true);
            pointer.nonuniform |=
                module_.FindDecoration(index_id, spv::Decoration::NonUniform) != nullptr;
            pointer.needs_element = false;
            pointer.type = type->element;
            return OkStatus();
        }
        if (pointer.space == Pointer::Space::kImage) {
            return Invalid(inst, "has more indices than its base has levels");
        }
        return StepBytes(inst, pointer, *type, index_id);
    }
    if (type->kind == Type::Kind::kStruct) {
        FORNAX_ASSIGN_OR_RETURN(uint64_t member, constants_.Integer(inst, index_id));
        if (member >= type->members.size()) {
            return Invalid(inst, "names member " + std::to_string(member) + " of a structure of " +
                                     std::to_string(type->members.size()));
        }
        for (uint64_t i = 0; i < member; ++i) {
            pointer.leaf += types_.Get(type->members[i]).leaves;
        }
        pointer.type = type->members[member];
        return OkStatus();
    }
    if (type->kind != Type::Kind::kArray && type->kind != Type::Kind::kMatrix &&
        type->kind != Type::Kind::kVector && type->kind != Type::Kind::kCooperativeMatrix) {
        return Invalid(inst, "has more indices than its base has levels");
    }
    FORNAX_ASSIGN_OR_RETURN(ir::ValueId index, values_.UseScalar(inst, index_id));
    if (!ir::IsInteger(kernel_.type(index))) {
        return Invalid(inst, "has an index that is no integer");
    }
    pointer.terms.push_back({ToI32(index, true), type->element, pointer.leaf});
    pointer.type = type->element;
    return OkStatus();
}

Status Pointers::AccessChain(const Inst& inst) {
    const bool untyped =
        inst.op == Op::OpUntypedAccessChainKHR || inst.op == Op::OpUntypedInBoundsAccessChainKHR;
    const size_t base = untyped ? 1 : 0;  // the type that the indices step through comes first
    FORNAX_ASSIGN_OR_RETURN(Pointer pointer, values_.UsePointer(inst, inst[base]));
    if (untyped) {
        FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, inst[0]));
        FORNAX_RETURN_IF_ERROR(places_.Retype(inst, pointer, type->id));
    }
    for (size_t i = base + 1; i < inst.size(); ++i) {
        FORNAX_RETURN_IF_ERROR(Step(inst, pointer, inst[i]));
    }
    return DefineStepped(inst, std::move(pointer));
}

Status Pointers::DefineStepped(const Inst& inst, Pointer pointer) {
    FORNAX_ASSIGN_OR_RETURN(const Type* result, TypeOf(inst, inst.type));
    if (result->kind != Type::Kind::kPointer ||
        (result->element != 0 && result->element != pointer.type)) {
        return Invalid(inst, "has a result type that is not what its indices lead to");
    }
    pointer.untyped = result->element == 0;
    pointer.nonuniform |=
        module_.FindDecoration(inst.result, spv::Decoration::NonUniform) != nullptr;
    return values_.DefinePointer(inst, std::move(pointer));
}

// The first index steps from element to element of the array that the base points into.
Status Pointers::PtrAccessChain(const Inst& inst) {
    const bool untyped = inst.op == Op::OpUntypedPtrAccessChainKHR ||
                         inst.op == Op::OpUntypedInBoundsPtrAccessChainKHR;
    const size_t base = untyped ? 1 : 0;
    FORNAX_ASSIGN_OR_RETURN(Pointer pointer, values_.UsePointer(inst, inst[base]));
    FORNAX_ASSIGN_OR_RETURN(const Type* pointer_type, values_.ValueType(inst, inst[base]));
    if (untyped) {
        FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, inst[0]));
        FORNAX_RETURN_IF_ERROR(places_.Retype(inst, pointer, type->id));
    }
    if ((pointer.space != Pointer::Space::kBuffer && pointer.space != Pointer::Space::kShared &&
         pointer.space != Pointer::Space::kAddress) ||
        pointer.needs_element) {
        return Unsupported(inst,
                           "steps from a pointer that is not to an element of an array in a "
                           "storage buffer, workgroup memory or at a device address");
    }
    FORNAX_ASSIGN_OR_RETURN(uint64_t stride, StrideOf(inst, *pointer_type, pointer.type));
    FORNAX_RETURN_IF_ERROR(AddIndex(inst, pointer, inst[base + 1], stride));
    for (size_t i = base + 2; i < inst.size(); ++i) {
        FORNAX_RETURN_IF_ERROR(Step(inst, pointer, inst[i]));
    }
    return DefineStepped(inst, std::move(pointer));
}

// Bytes from one element to the next of the array that a pointer steps through. What its type is
// decorated with counts for memory that is explicitly laid out; "for all other objects, the
// implementation calculates the element's address or location" (OpPtrAccessChain).
Result<uint64_t> Pointers::StrideOf(const Inst& inst, const Type& pointer, uint32_t pointee) {
    if (pointer.storage == spv::StorageClass::Workgroup && pointer.element != 0) {
        if (const std::optional<uint64_t> stride = variables_.WorkgroupStride(pointee)) {
            return *stride;
        }
    }
    if (const Decoration* stride =
            module_.FindDecoration(pointer.id, spv::Decoration::ArrayStride)) {
        return uint64_t{stride->params[0]};
    }
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, pointee));
    const uint64_t align = std::max<uint64_t>(type->layout.align, 1);
    return (type->layout.size + align - 1) / align * align;
}

Status Pointers::PointerToInteger(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(const Tuple place, values_.UsePlace(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, inst.type));
    if (place.size() != 1) {
        return Invalid(inst, "uses id " + std::to_string(inst[0]) + " as a scalar");
    }
    ir::ValueId address = place[0];
    if (kernel_.type(address) != ir::Type::kI64 || !ir::IsInteger(type->scalar)) {
        return Invalid(inst, "does not make an integer of a device address");
    }
    if (type->scalar != ir::Type::kI64) {
        address = Emit(ir::Op::kTrunc, type->scalar, {address});
    }
    return values_.Define(inst, {address});
}

Status Pointers::IntegerToPointer(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(ir::ValueId address, values_.UseScalar(inst, inst[0]));
    if (!ir::IsInteger(kernel_.type(address))) {
        return Invalid(inst, "does not make a pointer of an integer");
    }
    if (kernel_.type(address) != ir::Type::kI64) {
        address = Emit(ir::Op::kZExt, ir::Type::kI64, {address});
    }
    return values_.Define(inst, {address});
}

// What tells pointers of one storage class apart, as a number.
Result<ir::ValueId> Pointers::PointerNumber(const Inst& inst, uint32_t id) {
    FORNAX_ASSIGN_OR_RETURN(const Tuple scalars, values_.UsePlace(inst, id));
    if (scalars.size() == 1) {
        return scalars[0];
    }
    if (scalars.size() != 3) {
        return Invalid(inst, "compares what is no pointer");
    }
    const ir::Type i64 = ir::Type::kI64;
    ir::ValueId offset = scalars[2];
    if (kernel_.type(offset) != i64) {
        offset = Emit(ir::Op::kZExt, i64, {offset});
    }
    return Emit(ir::Op::kIAdd, i64, {scalars[0], offset});
}

Status Pointers::ComparePointers(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(ir::ValueId a, PointerNumber(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(ir::ValueId b, PointerNumber(inst, inst[1]));
    const ir::Type number = kernel_.type(a);
    if (number != kernel_.type(b) || !ir::IsInteger(number)) {
        return Invalid(inst, "compares pointers of different kinds");
    }
    if (inst.op != Op::OpPtrDiff) {
        const ir::Op op = inst.op == Op::OpPtrEqual ? ir::Op::kIEq : ir::Op::kINe;
        return values_.Define(inst, {Emit(op, ir::Type::kBool, {a, b})});
    }
    FORNAX_ASSIGN_OR_RETURN(const Type* type, values_.ValueType(inst, inst[0]));
    // Untyped pointers are counted as pointers into an array of bytes (SPV_KHR_untyped_pointers).
    uint64_t stride = 1;
    if (type->element != 0) {
        FORNAX_ASSIGN_OR_RETURN(stride, StrideOf(inst, *type, type->element));
    }
    FORNAX_ASSIGN_OR_RETURN(const Type* result, TypeOf(inst, inst.type));
    if (stride == 0 || !ir::IsInteger(result->scalar)) {
        return Invalid(inst, "has no stride, or no integer for its result");
    }
    ir::ValueId bytes = Emit(ir::Op::kISub, number, {a, b});
    ir::ValueId elements = Emit(ir::Op::kSDiv, number, {bytes, builder_.Const(number, stride)});
    const uint32_t wanted = ir::BitWidth(result->scalar);
    if (wanted != ir::BitWidth(number)) {
        elements = Emit(wanted < ir::BitWidth(number) ? ir::Op::kTrunc : ir::Op::kSExt,
                        result->scalar, {elements});
    }
    return values_.Define(inst, {elements});
}

Status Pointers::CopyObject(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Value value, values_.Use(inst, inst[0]));
    if (value.is_large) {
        FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, inst.type));
        FORNAX_ASSIGN_OR_RETURN(const Type* from, TypeOf(inst, value.type));
        if (type->scalars != from->scalars || type->leaves != from->leaves) {
            return Invalid(inst, "has operands that do not fit its result type");
        }
        return values_.DefineLarge(inst, std::move(*value.pointer));
    }
    if (value.pointer) {
        value.pointer->nonuniform |=
            module_.FindDecoration(inst.result, spv::Decoration::NonUniform) != nullptr;
        return values_.DefinePointer(inst, std::move(*value.pointer));
    }
    return values_.Define(inst, std::move(value.scalars));
}

// (bound range - start of the array) / stride, rounded down; 0 where the range ends before the
// array, and what a 32-bit result cannot hold is its greatest value.
Status Pointers::ArrayLength(const Inst& inst) {
    const bool untyped = inst.op == Op::OpUntypedArrayLengthKHR;
    FORNAX_ASSIGN_OR_RETURN(Pointer pointer, values_.UsePointer(inst, inst[untyped ? 1 : 0]));
    if (untyped) {
        FORNAX_RETURN_IF_ERROR(places_.Retype(inst, pointer, inst[0]));
    }
    const uint32_t member = inst[untyped ? 2 : 1];
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, pointer.type));
    if (pointer.space != Pointer::Space::kBuffer || pointer.needs_element ||
        type->kind != Type::Kind::kStruct || member >= type->members.size()) {
        return Invalid(inst, "does not name a member of a buffer block");
    }
    const Type& array = types_.Get(type->members[member]);
    if (array.kind != Type::Kind::kRuntimeArray || array.stride == 0) {
        return Invalid(inst, "does not name a run-time array");
    }
    const uint64_t start = pointer.const_offset + type->offsets[member];
    FORNAX_ASSIGN_OR_RETURN(const Type* result, TypeOf(inst, inst.type));
    const ir::Type wide = ir::Type::kI64;
    const ir::Type offset = places_.OffsetType(pointer);
    if (result->scalar == wide && offset != wide) {
        // VUID-RuntimeSpirv-OpArrayLength-11807
        return Invalid(inst, "has a result of 64 bits without 64-bit indexing");
    }
    ir::ValueId size = Emit(ir::Op::kBufferSize, offset, {access_.BufferOf(pointer)});
    // A pointer that was chosen at run time may be to any offset.
    ir::ValueId first = places_.ByteOffset(pointer, start);
    ir::ValueId rest =
        Emit(ir::Op::kISub, offset, {Emit(ir::Op::kUMax, offset, {size, first}), first});
    ir::ValueId length = Emit(ir::Op::kUDiv, offset, {rest, builder_.Const(offset, array.stride)});
    if (result->scalar != wide && offset == wide) {
        length = Emit(ir::Op::kUMin, wide, {length, builder_.Const(wide, UINT32_MAX)});
        length = Emit(ir::Op::kTrunc, ir::Type::kI32, {length});
    }
    return values_.Define(inst, {length});
}

Status Pointers::BufferPointer(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Pointer heap, values_.UsePointer(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(const Type* result, TypeOf(inst, inst.type));
    if (heap.space != Pointer::Space::kHeap || heap.binding != ResourceLayout::kResourceHeapSet ||
        result->kind != Type::Kind::kPointer) {
        return Invalid(inst, "does not make a pointer of a place in the resource heap");
    }
    const bool uniform = result->storage == spv::StorageClass::Uniform;
    if (!uniform && result->storage != spv::StorageClass::StorageBuffer) {
        return Invalid(inst, "makes a pointer to what is no buffer");
    }
    Pointer pointer;
    pointer.space = Pointer::Space::kBuffer;
    pointer.type = result->element;
    pointer.untyped = result->element == 0;
    pointer.nonuniform =
        heap.nonuniform ||
        module_.FindDecoration(inst.result, spv::Decoration::NonUniform) != nullptr;
    for (auto kind : {spv::Decoration::Volatile, spv::Decoration::Coherent}) {
        pointer.is_volatile |= module_.FindDecoration(inst.result, kind) != nullptr;
    }
    using Kind = BindingLayout::Kind;
    const Kind kind = uniform ? Kind::kUniformBuffer : Kind::kStorageBuffer;
    pointer.element = heaps_.HeapElement(places_.ByteOffset(heap, heap.const_offset), kind);
    pointer.binding = heaps_.AddHeapBinding(kind, !uniform);
    return values_.DefinePointer(inst, std::move(pointer));
}

}  // namespace fornax::kernel::spirv
