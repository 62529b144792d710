// Atomics on buffers, texels, workgroup memory and device addresses. Scopes and semantics ask for
// nothing more than the IR's atomics give: each is one access in a single order of all of its
// address, and none is moved over another memory access.
#include "compiler/kernel/spirv/atomics.h"

namespace fornax::kernel::spirv {

using hal::TexelLayout;
using ir::ValueId;
using spv::Op;

namespace {

struct AtomicForm {
    ir::AtomicOp op = ir::AtomicOp::kLoad;
    size_t value_at = 3;  // pointer, scope, semantics, value
    bool by_one = false;  // the value is 1
};

AtomicForm FormOf(Op op) {
    using ir::AtomicOp;
    switch (op) {
        case Op::OpAtomicLoad:
            return {AtomicOp::kLoad, 0};
        case Op::OpAtomicStore:
            return {AtomicOp::kStore};
        case Op::OpAtomicExchange:
            return {AtomicOp::kExchange};
        case Op::OpAtomicCompareExchange:
            return {AtomicOp::kCompareExchange, 4};  // two semantics
        case Op::OpAtomicIIncrement:
            return {AtomicOp::kAdd, 0, true};
        case Op::OpAtomicIDecrement:
            return {AtomicOp::kSub, 0, true};
        case Op::OpAtomicIAdd:
            return {AtomicOp::kAdd};
        case Op::OpAtomicISub:
            return {AtomicOp::kSub};
        case Op::OpAtomicSMin:
            return {AtomicOp::kSMin};
        case Op::OpAtomicUMin:
            return {AtomicOp::kUMin};
        case Op::OpAtomicSMax:
            return {AtomicOp::kSMax};
        case Op::OpAtomicUMax:
            return {AtomicOp::kUMax};
        case Op::OpAtomicAnd:
            return {AtomicOp::kAnd};
        case Op::OpAtomicOr:
            return {AtomicOp::kOr};
        case Op::OpAtomicFAddEXT:
            return {AtomicOp::kFAdd};
        case Op::OpAtomicFMinEXT:
            return {AtomicOp::kFMin};
        case Op::OpAtomicFMaxEXT:
            return {AtomicOp::kFMax};
        default:
            return {AtomicOp::kXor};
    }
}

}  // namespace

Status Atomics::Atomic(const Inst& inst) {
    const AtomicForm form = FormOf(inst.op);
    FORNAX_ASSIGN_OR_RETURN(Pointer pointer, values_.UsePointer(inst, inst[0]));
    if (pointer.untyped) {
        FORNAX_ASSIGN_OR_RETURN(const Type* type,
                                inst.type != 0 ? TypeOf(inst, inst.type)
                                               : values_.ValueType(inst, inst[form.value_at]));
        FORNAX_RETURN_IF_ERROR(places_.Retype(inst, pointer, type->id));
    }
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, pointer.type));
    const ir::Type scalar = type->scalar;
    const bool on_floats = form.op >= ir::AtomicOp::kFAdd;
    const bool moves = form.op == ir::AtomicOp::kLoad || form.op == ir::AtomicOp::kStore ||
                       form.op == ir::AtomicOp::kExchange;
    const bool integer = ir::IsInteger(scalar) && ir::BitWidth(scalar) >= 32;
    if (type->kind != Type::Kind::kScalar ||
        !(ir::IsFloat(scalar) ? on_floats || moves : integer && !on_floats)) {
        return Unsupported(inst,
                           "is on another type than an integer of 32 or 64 bits, or a float "
                           "for what there is for floats");
    }
    const bool shared = pointer.space == Pointer::Space::kShared;
    const bool buffer = pointer.space == Pointer::Space::kBuffer;
    if ((!buffer && !shared && pointer.space != Pointer::Space::kAddress) ||
        pointer.needs_element) {
        return Unsupported(inst,
                           "is on memory that is no storage buffer, workgroup memory or "
                           "device address");
    }
    std::vector<ir::ValueId> operands;
    if (buffer) {
        operands.push_back(access_.BufferOf(pointer));
    }
    operands.push_back(places_.ByteOffset(pointer, pointer.const_offset));
    if (form.value_at == 0) {
        operands.push_back(builder_.Const(scalar, form.by_one ? 1 : 0));
    } else {
        FORNAX_ASSIGN_OR_RETURN(ir::ValueId value, values_.UseScalar(inst, inst[form.value_at]));
        operands.push_back(value);
    }
    if (form.op == ir::AtomicOp::kCompareExchange) {
        FORNAX_ASSIGN_OR_RETURN(ir::ValueId comparand,
                                values_.UseScalar(inst, inst[form.value_at + 1]));
        operands.push_back(comparand);
        if (kernel_.type(comparand) != scalar) {
            return Invalid(inst, "has a comparator of another type than its pointer's");
        }
    }
    if (kernel_.type(operands[buffer ? 2 : 1]) != scalar) {
        return Invalid(inst, "has a value of another type than its pointer's");
    }
    const ir::Op op = buffer   ? ir::Op::kAtomicBuffer
                      : shared ? ir::Op::kAtomicShared
                               : ir::Op::kAtomicGlobal;
    ir::InstId atomic = builder_.Append(op, operands, {&scalar, 1}, static_cast<uint64_t>(form.op));
    return inst.result != 0 ? values_.Define(inst, {kernel_.inst(atomic).results[0]}) : OkStatus();
}

// A pointer to a texel of one component, for atomics.
Status Atomics::TexelPointer(const Inst& inst) {
    // SPV_EXT_descriptor_heap: the type of an untyped pointer's image comes first.
    const size_t base = inst.op == Op::OpUntypedImageTexelPointerEXT ? 1 : 0;
    FORNAX_ASSIGN_OR_RETURN(Pointer place, values_.UsePointer(inst, inst[base]));
    if (place.space == Pointer::Space::kHeap) {
        FORNAX_RETURN_IF_ERROR(heaps_.LoadHeapDescriptor(inst, place, inst[0]));
    }
    FORNAX_ASSIGN_OR_RETURN(const Image image, images_.UseImageAt(inst, std::move(place)));
    FORNAX_ASSIGN_OR_RETURN(const Tuple coordinates,
                            images_.TexelCoordinates(inst, image, inst[base + 1]));
    FORNAX_ASSIGN_OR_RETURN(const Type* result, TypeOf(inst, inst.type));
    if (result->kind != Type::Kind::kPointer || !image.storage || !image.known_format) {
        return Invalid(inst, "does not point into a storage image of a known format");
    }
    const bool wide = image.component == ir::Type::kI64;
    const TexelLayout layout = wide ? TexelLayout::k32x2 : TexelLayout::k32;
    if (images_.KnownLayout(image) != layout) {
        return Unsupported(inst,
                           "points to texels that are neither 32-bit integers or floats nor "
                           "64-bit integers");
    }
    ValueId sample;
    if (image.multisampled) {
        FORNAX_ASSIGN_OR_RETURN(sample, values_.UseScalar(inst, inst[base + 2]));
    }
    FORNAX_ASSIGN_OR_RETURN(sample, images_.SampleNumber(inst, image, sample));
    Pointer pointer;
    pointer.space = Pointer::Space::kBuffer;
    pointer.type = result->element;
    pointer.untyped = result->element == 0;
    pointer.binding = image.pointer.binding;
    pointer.element = image.pointer.element;
    pointer.nonuniform = image.pointer.nonuniform;
    pointer.is_volatile = image.pointer.is_volatile;
    pointer.align = wide ? 8 : 4;
    const ImageCode::Texel texel =
        images_.TexelPlace(image, coordinates, {}, sample, pointer.guard);
    pointer.offset = ImageCode(builder_).TexelOffset(texel, layout);
    return values_.DefinePointer(inst, std::move(pointer));
}

// An atomic on a texel that may be outside of its image gives 0 then, and does nothing.
Status Atomics::GuardedAtomic(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(const Pointer pointer, values_.UsePointer(inst, inst[0]));
    if (!pointer.guard.valid()) {
        return Atomic(inst);
    }
    std::vector<ir::Type> types;
    if (inst.result != 0) {
        FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, inst.type));
        types_.Flatten(*type, types);
    }
    ImageCode code(builder_);
    const ir::InstId branch = builder_.Append(ir::Op::kIf, {&pointer.guard, 1}, types);
    const ir::BlockId then_block = NewChild(branch);
    const ir::BlockId else_block = NewChild(branch);
    kernel_.inst(branch).blocks = {then_block, else_block};
    const ir::BlockId before = builder_.block();
    builder_.SetBlock(then_block);
    FORNAX_RETURN_IF_ERROR(Atomic(inst));
    Tuple inner;
    if (inst.result != 0) {
        inner = code_.frame->values.at(inst.result).scalars;
    }
    builder_.Append(ir::Op::kYield, inner, {});
    builder_.SetBlock(else_block);
    builder_.Append(ir::Op::kYield, code.Zeros(types), {});
    builder_.SetBlock(before);
    if (inst.result == 0) {
        return OkStatus();
    }
    // What Atomic defined is the result inside; outside it is the branch's.
    Value& value = code_.frame->values.at(inst.result);
    value.scalars = kernel_.inst(branch).results;
    value.block = before;
    if (auto slots = code_.frame->spill_slots.find(inst.result);
        slots != code_.frame->spill_slots.end()) {
        values_.StoreSpilled(value, slots->second);
    }
    return OkStatus();
}

}  // namespace fornax::kernel::spirv
