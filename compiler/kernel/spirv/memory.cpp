// Loads, stores and copies.
#include "compiler/kernel/spirv/memory.h"

#include <algorithm>

namespace fornax::kernel::spirv {

Status MemoryInstructions::Load(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Pointer pointer, values_.UsePointer(inst, inst[0]));
    FORNAX_RETURN_IF_ERROR(access_.MemoryOperands(inst, 1, pointer));
    if (pointer.untyped) {
        FORNAX_RETURN_IF_ERROR(places_.Retype(inst, pointer, inst.type));
    }
    if (inst.type != pointer.type) {
        return Invalid(inst, "has another result type than its pointer's");
    }
    if (pointer.space == Pointer::Space::kHeap) {
        FORNAX_RETURN_IF_ERROR(heaps_.LoadHeapDescriptor(inst, pointer, inst.type));
        return values_.DefinePointer(inst, std::move(pointer));
    }
    if (pointer.space == Pointer::Space::kImage) {
        // What is loaded is the place of the descriptor.
        if (pointer.needs_element) {
            return Invalid(inst, "loads an array of images or samplers");
        }
        pointer.nonuniform |=
            module_.FindDecoration(inst.result, spv::Decoration::NonUniform) != nullptr;
        heaps_.ResolveHeap(pointer);
        return values_.DefinePointer(inst, std::move(pointer));
    }
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, pointer.type));
    if (large_.IsLarge(*type)) {
        FORNAX_RETURN_IF_ERROR(CheckComposite(inst, *type));
        return large_.LoadLarge(inst, pointer);
    }
    FORNAX_ASSIGN_OR_RETURN(Tuple tuple, access_.LoadFrom(inst, pointer));
    return values_.Define(inst, std::move(tuple));
}

Status MemoryInstructions::Store(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Pointer pointer, values_.UsePointer(inst, inst[0]));
    FORNAX_RETURN_IF_ERROR(access_.MemoryOperands(inst, 2, pointer));
    if (pointer.untyped) {
        FORNAX_ASSIGN_OR_RETURN(const Type* type, values_.ValueType(inst, inst[1]));
        FORNAX_RETURN_IF_ERROR(places_.Retype(inst, pointer, type->id));
    }
    return large_.StoreValue(inst, pointer, inst[1]);
}

// Where the second set of memory operands begins: behind the first one and what its bits bring, or
// at the first one where that is all.
size_t MemoryInstructions::SecondMemoryOperands(const Inst& inst, size_t index) const {
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
Status MemoryInstructions::CopyMemorySized(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Pointer to, values_.UsePointer(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(Pointer from, values_.UsePointer(inst, inst[1]));
    const Constant* size = constants_.Find(inst[2]);
    if (!size || size->bits.size() != 1) {
        return Unsupported(inst, "has a size that is no constant");
    }
    FORNAX_RETURN_IF_ERROR(access_.MemoryOperands(inst, 3, to));
    FORNAX_RETURN_IF_ERROR(access_.MemoryOperands(inst, SecondMemoryOperands(inst, 3), from));
    FORNAX_RETURN_IF_ERROR(access_.CheckWritable(inst, to));
    if (from.space == Pointer::Space::kLocal || from.space == Pointer::Space::kBuiltin ||
        from.space == Pointer::Space::kImage || from.needs_element) {
        return Unsupported(inst, "copies from memory without a layout");
    }
    uint64_t align = 4;
    for (const Pointer* pointer : {&to, &from}) {
        align = std::min(align, places_.AlignAt(*pointer, pointer->const_offset));
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
        FORNAX_RETURN_IF_ERROR(access_.LoadRun(inst, from, type, 1, from.const_offset + at, value));
    }
    for (uint64_t at = 0; at < bytes; at += align) {
        FORNAX_RETURN_IF_ERROR(
            access_.StoreRun(inst, to, {&value[at / align], 1}, to.const_offset + at));
    }
    return OkStatus();
}

Status MemoryInstructions::CopyMemory(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Pointer to, values_.UsePointer(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(Pointer from, values_.UsePointer(inst, inst[1]));
    // One set of operands is for both; of two, the first is the target's (since SPIR-V 1.4).
    FORNAX_RETURN_IF_ERROR(access_.MemoryOperands(inst, 2, to));
    FORNAX_RETURN_IF_ERROR(access_.MemoryOperands(inst, SecondMemoryOperands(inst, 2), from));
    if (to.untyped && from.untyped) {
        return Invalid(inst, "copies between untyped pointers without a size");
    }
    if (to.untyped) {
        FORNAX_RETURN_IF_ERROR(places_.Retype(inst, to, from.type));
    }
    if (from.untyped) {
        FORNAX_RETURN_IF_ERROR(places_.Retype(inst, from, to.type));
    }
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, from.type));
    if (large_.IsLarge(*type) && from.space != Pointer::Space::kBuiltin) {
        return large_.CopyLarge(inst, to, from);
    }
    FORNAX_ASSIGN_OR_RETURN(Tuple value, access_.LoadFrom(inst, from));
    return access_.StoreTo(inst, to, value);
}

}  // namespace fornax::kernel::spirv
