#include "compiler/kernel/codegen/jit_kernel.h"

#include <algorithm>

#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include "compiler/kernel/codegen/emit.h"
#include "compiler/kernel/codegen/jit.h"
#include "compiler/kernel/codegen/pure_ops.h"
#include "compiler/kernel/codegen/target_machine.h"
#include "compiler/kernel/explain/explain.h"

namespace fornax::kernel {

namespace {

// LLVM's time grows faster than its input. Above this number of LLVM instructions, or of basic
// blocks of a function, code is made by the fast code generator, in linear time (about 20 us an
// instruction); what comes before it takes some 10 s at most.
constexpr unsigned kMaxOptimizedInstructions = 100'000;
constexpr size_t kMaxOptimizedBlocks = 6000;
// Above this number, which takes some 20 s, no code is made.
constexpr unsigned kMaxInstructions = 1'000'000;

std::string TextOf(const llvm::Module& module) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module.print(stream, nullptr);
    return text;
}

}  // namespace

Result<std::unique_ptr<PreparedKernel>> PreparedKernel::Prepare(const ir::Kernel& kernel,
                                                                const TargetInfo& target,
                                                                llvm::TargetMachine& machine,
                                                                const StageSink& sink,
                                                                CodeTier tier,
                                                                uint32_t force_lanes,
                                                                KernelExplanation* explain) {
    StageClock clock(explain);
    FORNAX_RETURN_IF_ERROR(CheckPureOps(kernel));
    std::unique_ptr<PreparedKernel> prepared(new PreparedKernel);
    prepared->tier_ = tier;
    prepared->context_.setDiscardValueNames(!sink);
    prepared->module_ = std::make_unique<llvm::Module>(kernel.name, prepared->context_);
    llvm::Module& module = *prepared->module_;
    PrepareModule(module, machine, target);
    EmitOptions options;
    options.vector_bits = target.vector_bits;
    options.force_lanes = force_lanes;
    options.prefetch = tier == CodeTier::kOptimized;
    options.compact = tier == CodeTier::kBaseline;
    options.explain = explain;
    FORNAX_ASSIGN_OR_RETURN(EmittedKernel emitted,
                            EmitKernel(kernel, options, kKernelSymbol, module));
    prepared->lanes_ = emitted.lanes;
    prepared->scratch_bytes_ = emitted.scratch_bytes;
    unsigned size = module.getInstructionCount();
    clock.End("emission");
    if (explain) {
        explain->llvm_instructions = size;
    }
    if (size > kMaxInstructions) {
        return Error{ErrorCode::kUnsupported, "The kernel has " + std::to_string(size) +
                                                  " LLVM instructions, and the limit is " +
                                                  std::to_string(kMaxInstructions) + "."};
    }
    SetFunctionAttributes(module, target);
    if (sink) {
        sink("llvm", TextOf(module));
    }
    FORNAX_RETURN_IF_ERROR(OptimizeModule(module, machine, tier, emitted.lanes));
    prepared->instructions_ = module.getInstructionCount();
    clock.End("LLVM passes");
    if (sink) {
        sink("opt.llvm", TextOf(module));
        std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
        machine.setOptLevel(prepared->Level());
        Result<std::string> assembly = EmitAssembly(*copy, machine);
        machine.setOptLevel(llvm::CodeGenOptLevel::Default);
        if (!assembly.ok()) {
            return assembly.error();
        }
        sink("s", *assembly);
    }
    return prepared;
}

llvm::CodeGenOptLevel PreparedKernel::Level() const {
    const bool fast = tier_ == CodeTier::kBaseline || instructions_ > kMaxOptimizedInstructions ||
                      std::ranges::any_of(*module_, [](const llvm::Function& function) {
                          return function.size() > kMaxOptimizedBlocks;
                      });
    return fast ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Default;
}

Result<std::vector<uint8_t>> PreparedKernel::Generate(llvm::TargetMachine& machine) {
    machine.setOptLevel(Level());
    Result<std::vector<uint8_t>> object = EmitObject(*module_, machine);
    machine.setOptLevel(llvm::CodeGenOptLevel::Default);
    return object;
}

Result<NativeKernel> CompileToNative(const ir::Kernel& kernel,
                                     const TargetInfo& target,
                                     llvm::TargetMachine& machine,
                                     const StageSink& sink,
                                     uint32_t force_lanes,
                                     KernelExplanation* explain,
                                     CodeTier tier) {
    FORNAX_ASSIGN_OR_RETURN(
        std::unique_ptr<PreparedKernel> prepared,
        PreparedKernel::Prepare(kernel, target, machine, sink, tier, force_lanes, explain));
    StageClock clock(explain);
    NativeKernel native;
    native.lanes = prepared->lanes();
    native.scratch_bytes = prepared->scratch_bytes();
    FORNAX_ASSIGN_OR_RETURN(native.object, prepared->Generate(machine));
    clock.End("code generation");
    if (explain) {
        explain->code_bytes = static_cast<uint32_t>(native.object.size());
    }
    return native;
}

}  // namespace fornax::kernel
