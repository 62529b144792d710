// One kernel from kernel IR to an object file: emission, LLVM's passes, the backend.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <llvm/Target/TargetMachine.h>

#include "base/result.h"
#include "compiler/kernel/codegen/jit_loader.h"
#include "compiler/kernel/ir/ir.h"
#include "compiler/kernel/kernel_compiler.h"

namespace fornax::kernel {

struct NativeKernel {
    std::vector<uint8_t> object;  // for LoadedObject::Load with kKernelSymbol
    uint32_t lanes = 0;
    uint32_t scratch_bytes = 0;
};

// Takes the text of a stage ("llvm", "opt.llvm", "s"), to be written beside the kernel's other
// stages.
using StageSink = std::function<void(std::string_view extension, std::string_view text)>;

// `machine` belongs to the calling thread while this runs. `sink` may be empty; texts are only made
// if it is not. kUnsupported names what cannot be compiled. Bounded in time: the quality of the
// code falls for very large kernels, and beyond a limit they are refused. `force_lanes`: see
// EmitOptions.
Result<NativeKernel> CompileToNative(const ir::Kernel& kernel,
                                     const TargetInfo& target,
                                     llvm::TargetMachine& machine,
                                     const StageSink& sink,
                                     uint32_t force_lanes = 0);

}  // namespace fornax::kernel
