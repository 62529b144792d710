// Atomics on buffers, workgroup memory and device addresses. Scopes and semantics ask for nothing
// more than the IR's atomics give: each is one access in a single order of all of its address, and
// none is moved over another memory access.
#include "compiler/kernel/spirv/translator.h"

namespace fornax::kernel::spirv {

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

Status Translator::Atomic(const Inst& inst) {
    const AtomicForm form = FormOf(inst.op);
    FORNAX_ASSIGN_OR_RETURN(Pointer pointer, UsePointer(inst, inst[0]));
    if (pointer.untyped) {
        FORNAX_ASSIGN_OR_RETURN(const Type* type, inst.type != 0
                                                      ? TypeOf(inst, inst.type)
                                                      : ValueType(inst, inst[form.value_at]));
        FORNAX_RETURN_IF_ERROR(Retype(inst, pointer, type->id));
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
    if (buffer)
        operands.push_back(BufferOf(pointer));
    operands.push_back(ByteOffset(pointer, pointer.const_offset));
    if (form.value_at == 0) {
        operands.push_back(builder_.Const(scalar, form.by_one ? 1 : 0));
    } else {
        FORNAX_ASSIGN_OR_RETURN(ir::ValueId value, UseScalar(inst, inst[form.value_at]));
        operands.push_back(value);
    }
    if (form.op == ir::AtomicOp::kCompareExchange) {
        FORNAX_ASSIGN_OR_RETURN(ir::ValueId comparand, UseScalar(inst, inst[form.value_at + 1]));
        operands.push_back(comparand);
        if (kernel_.type(comparand) != scalar)
            return Invalid(inst, "has a comparator of another type than its pointer's");
    }
    if (kernel_.type(operands[buffer ? 2 : 1]) != scalar)
        return Invalid(inst, "has a value of another type than its pointer's");
    const ir::Op op = buffer   ? ir::Op::kAtomicBuffer
                      : shared ? ir::Op::kAtomicShared
                               : ir::Op::kAtomicGlobal;
    ir::InstId atomic = builder_.Append(op, operands, {&scalar, 1}, static_cast<uint64_t>(form.op));
    return inst.result != 0 ? Define(inst, {kernel_.inst(atomic).results[0]}) : OkStatus();
}

}  // namespace fornax::kernel::spirv
