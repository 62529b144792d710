// One kernel from kernel IR to an object file: emission, LLVM's passes, the backend.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include "base/result.h"
#include "compiler/kernel/codegen/jit_loader.h"
#include "compiler/kernel/interface/code_tier.h"
#include "compiler/kernel/interface/target_info.h"
#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

struct KernelExplanation;

// Takes the text of a stage ("llvm", "opt.llvm", "s"), to be written beside the kernel's other
// stages.
using StageSink = std::function<void(std::string_view extension, std::string_view text)>;

// A kernel's LLVM IR after LLVM's passes. Both tiers compute the same, to the last bit.
class PreparedKernel {
  public:
    // `machine` belongs to the calling thread while this runs. `sink` may be empty; texts are only
    // made if it is not. kUnsupported names what cannot be compiled. `force_lanes` and `explain`:
    // see EmitOptions; the latter also takes the times of the stages.
    static Result<std::unique_ptr<PreparedKernel>> Prepare(const ir::Kernel& kernel,
                                                           const TargetInfo& target,
                                                           llvm::TargetMachine& machine,
                                                           const StageSink& sink,
                                                           CodeTier tier,
                                                           uint32_t force_lanes = 0,
                                                           KernelExplanation* explain = nullptr);

    // The object for LoadedObject::Load with kKernelSymbol. The kernel is used up. Bounded in time:
    // the quality of the code falls for very large kernels.
    Result<std::vector<uint8_t>> Generate(llvm::TargetMachine& machine);

    uint32_t lanes() const { return lanes_; }
    uint32_t scratch_bytes() const { return scratch_bytes_; }
    // LLVM's instructions after its passes, for which code generation takes time.
    uint32_t instructions() const { return instructions_; }

  private:
    PreparedKernel() = default;
    llvm::CodeGenOptLevel Level() const;

    llvm::LLVMContext context_;
    std::unique_ptr<llvm::Module> module_;
    CodeTier tier_ = CodeTier::kOptimized;
    uint32_t lanes_ = 0;
    uint32_t scratch_bytes_ = 0;
    uint32_t instructions_ = 0;
};

struct NativeKernel {
    std::vector<uint8_t> object;  // for LoadedObject::Load with kKernelSymbol
    uint32_t lanes = 0;
    uint32_t scratch_bytes = 0;
};

// Both steps.
Result<NativeKernel> CompileToNative(const ir::Kernel& kernel,
                                     const TargetInfo& target,
                                     llvm::TargetMachine& machine,
                                     const StageSink& sink,
                                     uint32_t force_lanes = 0,
                                     KernelExplanation* explain = nullptr,
                                     CodeTier tier = CodeTier::kOptimized);

}  // namespace fornax::kernel
