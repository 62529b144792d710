// Kernel IR to LLVM IR: vectorisation over the lanes of a subgroup happens here.
#pragma once

#include <llvm/IR/Module.h>

#include "base/result.h"
#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

struct KernelExplanation;

struct EmitOptions {
    uint32_t vector_bits = 512;            // of the target
    uint32_t force_lanes = 0;              // 0: the emitter chooses the width
    bool prefetch = true;                  // the next iteration's tile, while this one is computed
    bool compact = false;                  // few instructions rather than fast ones
    KernelExplanation* explain = nullptr;  // takes what is decided, if not null
};

struct EmittedKernel {
    uint32_t lanes = 0;          // invocations a vector
    uint32_t scratch_bytes = 0;  // hal::KernelDesc::scratch_bytes
};

// Adds a function of type hal::KernelEntry named `symbol` to the module.
Result<EmittedKernel> EmitKernel(const ir::Kernel& kernel,
                                 const EmitOptions& options,
                                 const std::string& symbol,
                                 llvm::Module& module);

}  // namespace fornax::kernel
