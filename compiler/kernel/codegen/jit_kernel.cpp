#include "compiler/kernel/codegen/jit_kernel.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include "compiler/kernel/codegen/emit.h"
#include "compiler/kernel/codegen/jit.h"
#include "compiler/kernel/codegen/pure_ops.h"
#include "compiler/kernel/codegen/target_machine.h"

namespace fornax::kernel {

namespace {

// LLVM's time grows faster than its input. Above the first number of LLVM instructions code is made
// by the quick, linear code generator (about 20 us an instruction); above the second, which takes
// some 20 s, not at all.
constexpr unsigned kQuickInstructions = 100'000;
constexpr unsigned kMaxInstructions = 1'000'000;

std::string TextOf(const llvm::Module& module) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module.print(stream, nullptr);
    return text;
}

}  // namespace

Result<NativeKernel> CompileToNative(const ir::Kernel& kernel,
                                     const TargetInfo& target,
                                     llvm::TargetMachine& machine,
                                     const StageSink& sink,
                                     uint32_t force_lanes) {
    FORNAX_RETURN_IF_ERROR(CheckPureOps(kernel));
    llvm::LLVMContext context;
    context.setDiscardValueNames(!sink);
    llvm::Module module(kernel.name, context);
    PrepareModule(module, machine, target);
    EmitOptions options;
    options.vector_bits = target.vector_bits;
    options.force_lanes = force_lanes;
    FORNAX_ASSIGN_OR_RETURN(EmittedKernel emitted,
                            EmitKernel(kernel, options, kKernelSymbol, module));
    unsigned size = module.getInstructionCount();
    if (size > kMaxInstructions) {
        return Error{ErrorCode::kUnsupported, "The kernel has " + std::to_string(size) +
                                                  " LLVM instructions, and the limit is " +
                                                  std::to_string(kMaxInstructions) + "."};
    }
    machine.setOptLevel(size > kQuickInstructions ? llvm::CodeGenOptLevel::None
                                                  : llvm::CodeGenOptLevel::Default);
    SetFunctionAttributes(module, target);
    if (sink)
        sink("llvm", TextOf(module));
    FORNAX_RETURN_IF_ERROR(OptimizeModule(module, machine));
    if (sink) {
        sink("opt.llvm", TextOf(module));
        std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
        FORNAX_ASSIGN_OR_RETURN(std::string assembly, EmitAssembly(*copy, machine));
        sink("s", assembly);
    }
    NativeKernel native;
    native.lanes = emitted.lanes;
    native.scratch_bytes = emitted.scratch_bytes;
    FORNAX_ASSIGN_OR_RETURN(native.object, EmitObject(module, machine));
    return native;
}

}  // namespace fornax::kernel
