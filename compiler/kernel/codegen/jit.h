// LLVM IR to a relocatable ELF object in memory: optimisation and emission. The cache stores the
// object as it is, and jit_loader.h maps it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include "base/result.h"
#include "compiler/kernel/interface/code_tier.h"

namespace fornax::kernel {

// Runs the IR passes: short, because the emitter's output is already wide and the kernel IR's
// passes have folded and unrolled it. kInternal if the module is not valid. `lanes` are those of
// the kernel's vectors; 0 if it has none.
Status OptimizeModule(llvm::Module& module,
                      llvm::TargetMachine& machine,
                      CodeTier tier = CodeTier::kOptimized,
                      unsigned lanes = 0);

// The module's object file. Consumes the module's function bodies. kInternal if the backend reports
// an error.
Result<std::vector<uint8_t>> EmitObject(llvm::Module& module, llvm::TargetMachine& machine);

// The module's assembly text, for FORNAX_DUMP. Consumes the module's function bodies.
Result<std::string> EmitAssembly(llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace fornax::kernel
