// For tests: kernel IR text to native code, and one dispatch of it over plain vectors.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/kernel/codegen/jit.h"
#include "compiler/kernel/codegen/jit_loader.h"
#include "compiler/kernel/ir/kernel.h"
#include "hal/kernel_abi.h"
#include "hal/matrix_unit.h"

namespace fornax::kernel {

class RunnableKernel {
  public:
    // `lanes` 0 lets the emitter choose. `cpu` as FORNAX_CPU.
    static Result<RunnableKernel> Create(const ir::Kernel& kernel,
                                         uint32_t lanes,
                                         const std::string& cpu = "");

    // Runs `groups` workgroups. Buffers are by binding index of set 0; what lies around each is
    // filled with a pattern that is checked afterwards. Buffers begin `misaligned_words` behind a
    // cache line, or, if that is kAtTheEnd, end where memory does, at most 12 bytes before.
    // `matrix` becomes what the matrix unit did.
    static constexpr uint32_t kAtTheEnd = ~0u;
    Status Run(std::vector<std::vector<uint32_t>>& buffers,
               std::vector<uint32_t> push_constants,
               const uint32_t (&groups)[3],
               uint32_t misaligned_words = 4,
               hal::MatrixCounts* matrix = nullptr) const;

    uint32_t lanes() const { return lanes_; }
    const std::string& llvm_ir() const { return llvm_ir_; }  // as emitted
    const std::string& optimized_llvm_ir() const { return optimized_llvm_ir_; }

  private:
    std::unique_ptr<LoadedObject> object_;
    uint32_t lanes_ = 0;
    uint32_t scratch_bytes_ = 0;
    uint32_t shared_bytes_ = 0;
    std::string llvm_ir_;
    std::string optimized_llvm_ir_;
};

}  // namespace fornax::kernel
