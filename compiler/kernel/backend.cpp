// Drives a kernel through the compiler: reader, passes, LLVM; or reader and interpreter.
#include "compiler/kernel/backend.h"

#include <algorithm>
#include <mutex>

#include "base/log.h"
#include "compiler/kernel/codegen/jit_kernel.h"
#include "compiler/kernel/codegen/target_machine.h"
#include "compiler/kernel/interpret/interpret.h"
#include "compiler/kernel/kernel_dump.h"
#include "compiler/kernel/spirv/reader.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {

namespace {

// A binding exists in the IR once the reader has seen its variable used, which is what Vulkan calls
// statically used: the set must be bound, whatever the passes find out.
uint32_t UsedSets(const ir::Kernel& kernel) {
    uint32_t mask = 0;
    for (const ir::Binding& binding : kernel.bindings)
        mask |= 1u << binding.set;
    return mask;
}

// --- Interpreted kernels -------------------------------------------------------------------------

class InterpretedKernel : public CompiledKernel {
  public:
    explicit InterpretedKernel(ir::Kernel kernel) : kernel_(std::move(kernel)) {
        entry = Run;
        context = this;
        workgroup_size = kernel_.workgroup_size;
        shared_bytes = kernel_.shared_bytes;
        used_sets = UsedSets(kernel_);
        name = kernel_.name;
    }

  private:
    static void Run(const hal::DispatchFrame* dispatch,
                    hal::WorkerFrame* worker,
                    uint64_t first_workgroup,
                    uint64_t count) {
        const auto* self = static_cast<const InterpretedKernel*>(dispatch->kernel_context);
        const Status status = Interpret(self->kernel_, *dispatch, first_workgroup, count);
        if (status.ok())
            return;
        LogError("{}", status.error().message);
        worker->fault = static_cast<uint32_t>(hal::KernelFault::kInterpreter);
    }

    const ir::Kernel kernel_;
};

// --- Compiled kernels ----------------------------------------------------------------------------

class Backend final : public KernelBackend {
  public:
    Result<CompiledObject> Compile(const CompileRequest& request,
                                   const TargetInfo& target,
                                   const Hash128& key) override;
    Result<std::shared_ptr<const CompiledKernel>> MakeInterpreted(
        const CompileRequest& request) override {
        FORNAX_ASSIGN_OR_RETURN(ir::Kernel kernel, ReadSpirv(request));
        return std::shared_ptr<const CompiledKernel>(
            std::make_shared<InterpretedKernel>(std::move(kernel)));
    }

  private:
    // Machines are made for one target and cost as much as a small kernel, so they are kept.
    struct IdleMachine {
        std::string cpu;
        std::string features;
        std::unique_ptr<llvm::TargetMachine> machine;
    };
    Result<std::unique_ptr<llvm::TargetMachine>> TakeMachine(const TargetInfo& target);

    std::mutex mutex_;
    std::vector<IdleMachine> idle_machines_;
};

Result<std::unique_ptr<llvm::TargetMachine>> Backend::TakeMachine(const TargetInfo& target) {
    {
        std::lock_guard lock(mutex_);
        auto found = std::ranges::find_if(idle_machines_, [&](const IdleMachine& idle) {
            return idle.cpu == target.cpu_name && idle.features == target.features;
        });
        if (found != idle_machines_.end()) {
            auto machine = std::move(found->machine);
            idle_machines_.erase(found);
            return machine;
        }
    }
    return CreateTargetMachine(target, llvm::CodeGenOptLevel::Default);
}

Result<CompiledObject> Backend::Compile(const CompileRequest& request,
                                        const TargetInfo& target,
                                        const Hash128& key) {
    KernelDump dump(request.entry_point, key);
    dump.WriteWords("spv", request.spirv);
    FORNAX_ASSIGN_OR_RETURN(ir::Kernel kernel, ReadSpirv(request));
    const uint32_t used_sets = UsedSets(kernel);
    if (dump.enabled())
        dump.Write("read.ir", ir::PrintKernel(kernel));
    RunPipeline(kernel);
    StageSink sink;
    if (dump.enabled()) {
        dump.Write("ir", ir::PrintKernel(kernel));
        sink = [&](std::string_view extension, std::string_view text) {
            dump.Write(extension, text);
        };
    }
    FORNAX_ASSIGN_OR_RETURN(auto machine, TakeMachine(target));
    Result<NativeKernel> native = CompileToNative(kernel, target, *machine, sink);
    {
        std::lock_guard lock(mutex_);
        idle_machines_.push_back({target.cpu_name, target.features, std::move(machine)});
    }
    if (!native.ok())
        return std::move(native).error();
    CompiledObject compiled;
    compiled.facts = {.workgroup_size = kernel.workgroup_size,
                      .shared_bytes = kernel.shared_bytes,
                      .scratch_bytes = native->scratch_bytes,
                      .used_sets = used_sets,
                      .name = kernel.name};
    compiled.object = std::move(native->object);
    return compiled;
}

}  // namespace

std::shared_ptr<KernelBackend> MakeKernelBackend() {
    return std::make_shared<Backend>();
}

}  // namespace fornax::kernel
