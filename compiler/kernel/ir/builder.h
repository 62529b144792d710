// Appends instructions to kernels.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel::ir {

// Appends instructions to a block. Cheap to make; several may work on one kernel in turn.
class Builder {
  public:
    Builder(Kernel& kernel, BlockId block) : kernel_(&kernel), block_(block) {}

    Kernel& kernel() { return *kernel_; }
    BlockId block() const { return block_; }
    void SetBlock(BlockId block) { block_ = block; }
    void SetOrigin(uint32_t word_offset) { origin_ = word_offset; }

    InstId Append(Op op,
                  std::span<const ValueId> operands,
                  std::span<const Type> result_types,
                  uint64_t imm = 0,
                  uint8_t flags = 0);
    // One-result form: gives the result.
    ValueId Emit(Op op,
                 Type type,
                 std::initializer_list<ValueId> operands,
                 uint64_t imm = 0,
                 uint8_t flags = 0);
    ValueId Const(Type type, uint64_t bits);  // bits are truncated to the type's width
    ValueId ConstI32(uint32_t value) { return Const(Type::kI32, value); }
    ValueId ConstF32(float value);
    ValueId ConstBool(bool value) { return Const(Type::kBool, value ? 1 : 0); }
    // The block ends with a terminator already.
    bool Terminated() const;

  private:
    Kernel* kernel_;
    BlockId block_;
    uint32_t origin_ = 0;
};

}  // namespace fornax::kernel::ir
