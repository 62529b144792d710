// For tests: one pure operation compiled to a function over arrays.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compiler/kernel/codegen/jit.h"
#include "compiler/kernel/codegen/jit_loader.h"
#include "compiler/kernel/codegen/target_machine.h"
#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

struct OpSignature {
    ir::Op op;
    std::vector<ir::Type> operands;
    std::vector<ir::Type> results;
    // Operands given here are constants of the code (bits), like a shift by 3; the others are
    // inputs.
    std::vector<std::pair<size_t, uint64_t>> constants;
    uint8_t flags = 0;  // ir::InstructionFlags
};

// Runs an operation over arrays; bools are bytes 0 or 1.
class CompiledOp {
  public:
    // lanes 0: scalar code.
    static Result<CompiledOp> Create(const TargetInfo& target,
                                     const OpSignature& signature,
                                     uint32_t lanes);

    // Arrays of `count` elements, a multiple of 64 (the widest vector), 64-byte aligned or not.
    void Run(std::span<const void* const> inputs,
             std::span<void* const> outputs,
             uint64_t count) const;

    const std::string& assembly() const { return assembly_; }

  private:
    CompiledOp() = default;
    std::unique_ptr<LoadedObject> object_;
    std::string assembly_;
};

}  // namespace fornax::kernel
