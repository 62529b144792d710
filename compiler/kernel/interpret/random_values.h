// The part of the random kernels' generator that makes values: random_kernel.cpp adds memory and
// control flow to it.
#pragma once

#include <array>
#include <initializer_list>
#include <span>
#include <vector>

#include "compiler/kernel/interpret/random_kernel.h"
#include "compiler/kernel/ir/builder.h"
#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

class RandomValues {
  protected:
    static constexpr uint32_t kNumTypes = static_cast<uint32_t>(ir::Type::kBuffer);

    RandomValues(uint64_t seed, const RandomKernelOptions& options)
        : random_(seed), options_(options), b_(kernel_, ir::BlockId{}) {}

    ir::Type AnyType();
    ir::Type AnyFloat();

    // Makes a value visible to Pick.
    void Add(ir::ValueId value);
    // Float operations that could be contracted are marked not to be.
    ir::ValueId Emit(ir::Op op,
                     ir::Type type,
                     std::initializer_list<ir::ValueId> operands,
                     uint64_t imm = 0);

    ir::ValueId RandomConst(ir::Type type);
    ir::ValueId FloatConst(ir::Type type, double value);
    // A visible value of the type, rather a recent one, or a constant.
    ir::ValueId Pick(ir::Type type);
    // A float whose bits every implementation agrees on: no NaN.
    ir::ValueId Observable(ir::ValueId value);
    ir::ValueId Masked(ir::Type type, uint32_t mask);

    // An offset in a buffer, of 32 or 64 bits; of these some lie far outside.
    ir::ValueId AnyWidth(ir::ValueId offset);
    // An offset of either width: that of element `index`, which is small.
    ir::ValueId ElementOffset(ir::ValueId index, uint32_t bytes);

    // One pure operation more.
    void PureStatement();
    // One operation between the lanes of the subgroup more (random_subgroups.cpp).
    void SubgroupStatement();

    Random random_;
    const RandomKernelOptions options_;
    ir::Kernel kernel_;
    ir::Builder b_;
    std::array<std::vector<ir::ValueId>, kNumTypes> pool_;  // visible values by type

  private:
    ir::ValueId Binary(ir::Type type, std::span<const ir::Op> ops);
    ir::ValueId Unary(ir::Type type, std::span<const ir::Op> ops);
    ir::ValueId IntegerOperation(ir::Type type);
    ir::ValueId Conversion(ir::Type type);
    ir::ValueId FloatOperation(ir::Type type);
    ir::ValueId BoolOperation();
    ir::ValueId Shuffled(ir::ValueId value);
    ir::ValueId Grouped();
};

}  // namespace fornax::kernel
