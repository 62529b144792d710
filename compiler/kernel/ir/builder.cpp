#include "compiler/kernel/ir/builder.h"

#include <bit>
#include <cassert>

namespace fornax::kernel::ir {

InstId Builder::Append(Op op,
                       std::span<const ValueId> operands,
                       std::span<const Type> result_types,
                       uint64_t imm,
                       uint8_t flags) {
    assert(!Terminated());
    InstId id = kernel_->NewInst(op, operands, result_types);
    Instruction& instruction = kernel_->inst(id);
    instruction.imm = imm;
    instruction.flags = flags;
    instruction.origin = origin_;
    kernel_->block(block_).insts.push_back(id);
    return id;
}

ValueId Builder::Emit(Op op,
                      Type type,
                      std::initializer_list<ValueId> operands,
                      uint64_t imm,
                      uint8_t flags) {
    InstId id = Append(op, {operands.begin(), operands.size()}, {&type, 1}, imm, flags);
    return kernel_->inst(id).results[0];
}

ValueId Builder::Const(Type type, uint64_t bits) {
    uint32_t width = BitWidth(type);
    if (width < 64) {
        bits &= (uint64_t{1} << width) - 1;
    }
    return Emit(Op::kConst, type, {}, bits);
}

ValueId Builder::ConstF32(float value) {
    return Const(Type::kF32, std::bit_cast<uint32_t>(value));
}

bool Builder::Terminated() const {
    const auto& insts = kernel_->block(block_).insts;
    return !insts.empty() && (InfoOf(kernel_->inst(insts.back()).op).properties & kTerminator);
}

}  // namespace fornax::kernel::ir
