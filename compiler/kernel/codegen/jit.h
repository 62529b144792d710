// LLVM IR to memory that runs: optimisation, object emission and loading.
//
// A module becomes a relocatable ELF object in memory (which the cache stores as it is), and a
// small strict loader maps the object. The loader takes only what the emitter makes: code and
// constants, relocated against each other. An object that names anything outside itself is refused,
// so a kernel can never call a library.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include "base/result.h"

namespace fornax::kernel {

// Runs the IR passes: short, because the emitter's output is already wide and the kernel IR's
// passes have folded and unrolled it. kInternal if the module is not valid.
Status OptimizeModule(llvm::Module& module, llvm::TargetMachine& machine);

// The module's object file. Consumes the module's function bodies. kInternal if the backend reports
// an error.
Result<std::vector<uint8_t>> EmitObject(llvm::Module& module, llvm::TargetMachine& machine);

// The module's assembly text, for FORNAX_DUMP. Consumes the module's function bodies.
Result<std::string> EmitAssembly(llvm::Module& module, llvm::TargetMachine& machine);

// An object in memory: code is read-only and executable, constants read-only; nothing was ever
// writable and executable at once. Immutable.
class LoadedObject {
  public:
    // Maps `object` and finds the function `symbol`. kDataLoss if it is not an object that
    // EmitObject makes.
    static Result<std::unique_ptr<LoadedObject>> Load(std::span<const uint8_t> object,
                                                      const std::string& symbol);
    ~LoadedObject();
    LoadedObject(const LoadedObject&) = delete;
    LoadedObject& operator=(const LoadedObject&) = delete;

    const void* entry() const { return entry_; }
    size_t mapped_bytes() const { return mapped_bytes_; }

  private:
    LoadedObject() = default;

    void* base_ = nullptr;
    size_t mapped_bytes_ = 0;
    const void* entry_ = nullptr;
};

}  // namespace fornax::kernel
