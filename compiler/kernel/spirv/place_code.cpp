// Byte offsets, slots of private variables, and parts of what is pointed to.
#include "compiler/kernel/spirv/place_code.h"

#include <algorithm>

namespace fornax::kernel::spirv {

namespace {

uint32_t AlignOf(uint64_t bytes) {
    return bytes == 0 ? kMaxAlign
                      : static_cast<uint32_t>(std::min<uint64_t>(kMaxAlign, bytes & -bytes));
}

}  // namespace

Pointer PlaceCode::PartOf(const Pointer& whole, const Type& type, uint32_t index) {
    Pointer part = whole;
    if (type.kind != Type::Kind::kStruct) {
        return ElementOf(whole, type, Int(index));
    }
    part.type = type.members[index];
    if (whole.space == Pointer::Space::kLocal) {
        for (uint32_t i = 0; i < index; ++i) {
            part.leaf += types_.Get(type.members[i]).leaves;
        }
        return part;
    }
    const Decoration* stride =
        module_.FindDecoration(type.id, spv::Decoration::MatrixStride, index);
    part.const_offset += type.offsets[index];
    part.row_major = module_.FindDecoration(type.id, spv::Decoration::RowMajor, index) != nullptr;
    part.matrix_stride = stride ? stride->params[0] : 0;
    for (spv::Decoration kind : {spv::Decoration::Volatile, spv::Decoration::Coherent}) {
        part.is_volatile |= module_.FindDecoration(type.id, kind, index) != nullptr;
    }
    return part;
}

// An array's element.
Pointer PlaceCode::ElementOf(const Pointer& whole, const Type& type, ir::ValueId index) {
    Pointer part = whole;
    part.type = type.element;
    uint64_t known = 0;
    if (whole.space == Pointer::Space::kLocal) {
        part.terms.push_back({index, type.element, whole.leaf});
    } else if (kernel_.IsConst(index, &known)) {
        part.const_offset += known * type.stride;
    } else {
        AddRuntimeIndex(part, index, type.stride);
    }
    return part;
}

// The part that literal indices lead to.
Result<Pointer> PlaceCode::PartAt(const Inst& inst,
                                  Pointer part,
                                  std::span<const uint32_t> indices) {
    for (uint32_t index : indices) {
        FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, part.type));
        const bool is_struct = type->kind == Type::Kind::kStruct;
        const uint64_t count = is_struct ? type->members.size() : type->count;
        if (index >= count) {
            return Invalid(inst, "has the index " + std::to_string(index) + " into " +
                                     std::to_string(count) + " parts");
        }
        part = PartOf(part, *type, index);
    }
    return part;
}

// Device addresses are computed in 64 bits, offsets in buffers as the kernel's mode says
// ("64-Bit Indexing"), and those of texels and of all other memory in 32.
ir::Type PlaceCode::OffsetType(const Pointer& pointer) const {
    if (pointer.offset.valid()) {
        return kernel_.type(pointer.offset);
    }
    if (pointer.space == Pointer::Space::kAddress) {
        return ir::Type::kI64;
    }
    return pointer.space == Pointer::Space::kBuffer ? types_.buffer_offset() : ir::Type::kI32;
}

ir::ValueId PlaceCode::ByteOffset(const Pointer& pointer, uint64_t constant) {
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
uint64_t PlaceCode::AlignAt(const Pointer& pointer, uint64_t at) const {
    if (pointer.space == Pointer::Space::kAddress) {
        at -= pointer.const_offset;
    }
    return at == 0 ? pointer.align : std::min<uint64_t>(pointer.align, at & -at);
}

ir::ValueId PlaceCode::SlotIndex(const Pointer& pointer, uint32_t leaf, uint64_t constant) {
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

void PlaceCode::AddRuntimeIndex(Pointer& pointer, ir::ValueId index, uint64_t stride) {
    const ir::Type type = OffsetType(pointer);
    if (type == ir::Type::kI64) {
        // Lanes side by side index one object, which no narrower index can leave and reach again.
        // For a buffer this holds for 32 bits only: less may well be left, and reads 0 then.
        const ir::Type narrow = kernel_.type(index);
        const bool one_object =
            pointer.space == Pointer::Space::kAddress || narrow == ir::Type::kI32;
        if (narrow != type) {
            index = Emit(ir::Op::kSExt, type, {index}, one_object ? ir::kNoLaneWrap : 0);
        }
    } else {
        index = ToI32(index, true);
    }
    ir::ValueId bytes = Emit(ir::Op::kIMul, type, {index, builder_.Const(type, stride)});
    pointer.align = std::min(pointer.align, AlignOf(stride));
    pointer.offset =
        pointer.offset.valid() ? Emit(ir::Op::kIAdd, type, {pointer.offset, bytes}) : bytes;
}

// The type that an untyped pointer's user sees.
Status PlaceCode::Retype(const Inst& inst, Pointer& pointer, uint32_t type) {
    // An untyped variable of images or samplers is only ever taken for what it is.
    if (pointer.space == Pointer::Space::kImage && pointer.type == type) {
        return OkStatus();
    }
    if (pointer.space == Pointer::Space::kLocal || pointer.space == Pointer::Space::kBuiltin ||
        pointer.space == Pointer::Space::kImage) {
        return Invalid(inst, "takes a pointer to memory without a layout for untyped");
    }
    if (pointer.needs_element && pointer.type != type) {
        return Unsupported(inst, "takes an array of descriptors for another type");
    }
    if (pointer.type != type) {
        pointer.type = type;
        pointer.row_major = false;
        pointer.matrix_stride = pointer.component_stride = 0;
    }
    return OkStatus();
}

uint64_t PlaceCode::SlotsOfLeaf(const Type& type, uint32_t leaf) const {
    switch (type.kind) {
        case Type::Kind::kVector:
        case Type::Kind::kMatrix:
        case Type::Kind::kCooperativeMatrix:
        case Type::Kind::kArray:
            return type.count * SlotsOfLeaf(types_.Get(type.element), leaf);
        case Type::Kind::kStruct:
            for (uint32_t member : type.members) {
                const Type& part = types_.Get(member);
                if (leaf < part.leaves) {
                    return SlotsOfLeaf(part, leaf);
                }
                leaf -= part.leaves;
            }
            return 0;
        default:
            return 1;
    }
}

}  // namespace fornax::kernel::spirv
