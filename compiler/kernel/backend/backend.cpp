// Drives a kernel through the compiler: reader, passes, LLVM; or reader and interpreter.
#include "compiler/kernel/backend/backend.h"

#include <time.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/large_stack.h"
#include "base/log.h"
#include "base/per_process.h"
#include "compiler/kernel/analysis/streams.h"
#include "compiler/kernel/backend/kernel_dump.h"
#include "compiler/kernel/codegen/function_code.h"
#include "compiler/kernel/codegen/jit_kernel.h"
#include "compiler/kernel/codegen/pure_ops.h"
#include "compiler/kernel/codegen/scratch_bound.h"
#include "compiler/kernel/codegen/target_machine.h"
#include "compiler/kernel/cost/add_costs.h"
#include "compiler/kernel/interpret/interpret.h"
#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/spirv/reader.h"
#include "compiler/kernel/spirv/source_map.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {

namespace {

// A binding exists in the IR once the reader has seen its variable used, which is what Vulkan calls
// statically used: the set must be bound, whatever the passes find out.
uint32_t UsedSets(const ir::Kernel& kernel) {
    uint32_t mask = 0;
    for (uint32_t i = 0; i < kernel.num_insts(); ++i) {
        const ir::Instruction& inst = kernel.inst(ir::InstId{i});
        if (inst.op == ir::Op::kBuffer || inst.op == ir::Op::kLoadDescriptor) {
            mask |= 1u << kernel.bindings[inst.imm].set;
        }
    }
    return mask;
}

// As fornax_kernel_compiler_bench takes them.
std::string ConstantsText(std::span<const SpecializationValue> constants) {
    std::string text;
    for (const SpecializationValue& constant : constants) {
        text += (text.empty() ? "" : ",") + std::to_string(constant.constant_id) + "=" +
                std::to_string(constant.bits);
    }
    return text;
}

// The cost of a timed kernel, to which it adds the counting instructions; else null. After the
// first passes, before the tiers part, so that both count alike.
std::shared_ptr<const KernelCost> CostOf(const CompileRequest& request, ir::Kernel& kernel) {
    if (!request.options.timed) {
        return nullptr;
    }
    const Result<spirv::Module> module = spirv::Module::Parse(request.spirv);
    if (!module.ok()) {  // it has been read, so that it can be parsed
        return std::make_shared<const KernelCost>(AddCosts(kernel));
    }
    const spirv::SourceMap map(*module);
    return std::make_shared<const KernelCost>(AddCosts(kernel, [&](uint32_t word) {
        // The folders of a path are left out: records do not say where somebody's sources lie.
        std::string line = map.Source(word);
        line.erase(0, line.rfind('/') + 1);
        const std::string instruction = line.empty() ? map.Instruction(word) : "";
        return instruction.empty() ? line : fmt::format("{} at word {}", instruction, word);
    }));
}

// --- Interpreted kernels -------------------------------------------------------------------------

class InterpretedKernel : public CompiledKernel {
  public:
    InterpretedKernel(ir::Kernel kernel, std::shared_ptr<const KernelCost> costs)
        : kernel_(std::move(kernel)) {
        cost = std::move(costs);
        entry = Run;
        context = this;
        workgroup_size = kernel_.workgroup_size;
        shared_bytes = kernel_.shared_bytes;
        used_sets = UsedSets(kernel_);
        independent_workgroups = IndependentWorkgroups(kernel_);
        name = kernel_.name;
    }

  private:
    static void Run(const hal::DispatchFrame* dispatch,
                    hal::WorkerFrame* worker,
                    uint64_t first_workgroup,
                    uint64_t count) {
        const auto* self = static_cast<const InterpretedKernel*>(dispatch->kernel_context);
        const Status status =
            Interpret(self->kernel_, *dispatch, first_workgroup, count, {.worker = worker});
        // A device that asks for the end says itself why.
        if (status.ok() || worker->stop_request != 0) {
            return;
        }
        LogError("{}", status.error().message);
        worker->fault = static_cast<uint32_t>(hal::KernelFault::kInterpreter);
    }

    const ir::Kernel kernel_;
};

// --- Compiled kernels ----------------------------------------------------------------------------

// Instructions of LLVM. Below the first number two codes take longer than one; above the second,
// the frames of the baseline tier, where every value has its place, become too large for stacks.
constexpr uint32_t kLeastTiered = 100;
constexpr uint32_t kMostTiered = 50'000;

// How many times as long as the baseline tier the optimized tier takes to make (5 to 7 times where
// kernels of attentions were measured, 2 to 3 times with the shortest).
constexpr int kOptimizedToBaseline = 6;

// What this thread has taken of a processor.
std::chrono::nanoseconds ThreadTime() {
    timespec time = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// LLVM's static objects are destroyed when a program that links it ends, and a thread may be
// compiling then, in the background. So the end waits for what is running and lets nothing begin.
// In libfornax_compiler.so nothing is destroyed, and std::atexit does nothing (backend_export.cpp).
class RunningCompilation {
  public:
    static Result<RunningCompilation> Begin() {
        static std::once_flag registered;
        std::call_once(registered, [] { std::atexit(End); });
        State& state = OfThisProcess();
        std::lock_guard lock(state.mutex);
        if (state.ended) {
            return Error{ErrorCode::kInternal, "No kernel is compiled while the process ends."};
        }
        ++state.running;
        return RunningCompilation(true);
    }
    RunningCompilation(RunningCompilation&& other) noexcept
        : counts_(std::exchange(other.counts_, false)) {}
    RunningCompilation& operator=(RunningCompilation&&) = delete;
    ~RunningCompilation() {
        if (!counts_) {
            return;
        }
        // Again after the first, because LLVM has made more static objects meanwhile: the end goes
        // through them from the last.
        static std::once_flag registered_again;
        std::call_once(registered_again, [] { std::atexit(End); });
        State& state = OfThisProcess();
        std::lock_guard lock(state.mutex);
        --state.running;
        state.changed.notify_all();
    }

  private:
    explicit RunningCompilation(bool counts) : counts_(counts) {}

    struct State {
        std::mutex mutex;
        std::condition_variable changed;
        unsigned running = 0;
        bool ended = false;
    };
    // A child process has none of its parent's compilations. Never destroyed, so that it outlives
    // the last of them.
    static PerProcess<State>* const states_;
    static State& OfThisProcess() { return states_->Get(); }

    static void End() {
        State& state = OfThisProcess();
        std::unique_lock lock(state.mutex);
        state.ended = true;
        state.changed.wait(lock, [&] { return state.running == 0; });
    }

    bool counts_;
};
PerProcess<RunningCompilation::State>* const RunningCompilation::states_ =
    new PerProcess<RunningCompilation::State>;

class Backend final : public KernelBackend {
  public:
    // LLVM recurses as deeply as a module makes it.
    Result<CompiledObject> Compile(const CompileRequest& request,
                                   const TargetInfo& target,
                                   const Hash128& key,
                                   CompileTier tier,
                                   CodeTime time) override {
        return OnLargeStack([&] { return CompileHere(request, target, key, tier, time); });
    }
    Result<std::shared_ptr<const CompiledKernel>> MakeInterpreted(
        const CompileRequest& request) override {
        FORNAX_ASSIGN_OR_RETURN(ir::Kernel kernel, ReadSpirv(request));
        std::shared_ptr<const KernelCost> cost;
        if (request.options.timed) {
            // The same text as compiled kernels' costs have.
            RunFirstPasses(kernel);
            cost = CostOf(request, kernel);
        }
        return std::shared_ptr<const CompiledKernel>(
            std::make_shared<InterpretedKernel>(std::move(kernel), std::move(cost)));
    }

    Result<ResourceLayout> LayoutOf(std::span<const uint32_t> spirv) override {
        FORNAX_ASSIGN_OR_RETURN(const spirv::Module module, spirv::Module::Parse(spirv));
        return spirv::LayoutOf(module);
    }
    Result<KernelExplanation> Explain(const CompileRequest& request,
                                      const TargetInfo& target) override {
        return OnLargeStack([&] { return ExplainHere(request, target); });
    }

  private:
    class Pending;

    Result<CompiledObject> CompileHere(const CompileRequest& request,
                                       const TargetInfo& target,
                                       const Hash128& key,
                                       CompileTier tier,
                                       CodeTime time);
    Result<KernelExplanation> ExplainHere(const CompileRequest& request, const TargetInfo& target);

    // Machines are made for one target and cost as much as a small kernel, so they are kept.
    struct IdleMachine {
        std::string cpu;
        std::string features;
        std::unique_ptr<llvm::TargetMachine> machine;
    };
    // A machine for one thread, while it lives.
    class MachineLease {
      public:
        static Result<MachineLease> Take(Backend& backend, const TargetInfo& target);
        MachineLease(MachineLease&&) = default;
        MachineLease& operator=(MachineLease&&) = delete;
        ~MachineLease();
        llvm::TargetMachine& operator*() const { return *machine_; }

      private:
        MachineLease(Backend& backend, const TargetInfo& target)
            : backend_(backend), target_(target) {}

        Backend& backend_;
        const TargetInfo& target_;
        std::unique_ptr<llvm::TargetMachine> machine_;
    };

    struct IdleMachines {
        std::mutex mutex;
        std::vector<IdleMachine> machines;
    };
    PerProcess<IdleMachines> idle_machines_;
};

Result<Backend::MachineLease> Backend::MachineLease::Take(Backend& backend,
                                                          const TargetInfo& target) {
    MachineLease lease(backend, target);
    {
        IdleMachines& all = backend.idle_machines_.Get();
        std::lock_guard lock(all.mutex);
        auto& idle = all.machines;
        auto found = std::ranges::find_if(idle, [&](const IdleMachine& machine) {
            return machine.cpu == target.cpu_name && machine.features == target.features;
        });
        if (found != idle.end()) {
            lease.machine_ = std::move(found->machine);
            idle.erase(found);
            return lease;
        }
    }
    FORNAX_ASSIGN_OR_RETURN(lease.machine_,
                            CreateTargetMachine(target, llvm::CodeGenOptLevel::Default));
    return lease;
}

Backend::MachineLease::~MachineLease() {
    if (!machine_) {
        return;
    }
    IdleMachines& all = backend_.idle_machines_.Get();
    std::lock_guard lock(all.mutex);
    all.machines.push_back({target_.cpu_name, target_.features, std::move(machine_)});
}

// From the second half of the passes on.
Result<std::unique_ptr<PreparedKernel>> Prepare(ir::Kernel& kernel,
                                                const TargetInfo& target,
                                                llvm::TargetMachine& machine,
                                                const KernelDump& dump,
                                                CodeTier tier) {
    RunOtherPasses(kernel, tier, VectorRegisters(target), JoinedMmasFor(target));
    StageSink sink;
    if (dump.enabled()) {
        const std::string prefix = tier == CodeTier::kBaseline ? "baseline." : "";
        dump.Write(prefix + "ir", ir::PrintKernel(kernel));
        sink = [&dump, prefix](std::string_view extension, std::string_view text) {
            dump.Write(prefix + std::string(extension), text);
        };
    }
    return PreparedKernel::Prepare(kernel, target, machine, sink, tier);
}

// What both tiers of a kernel say alike.
struct SharedFacts {
    std::string label;
    uint32_t used_sets = 0;
    std::vector<DescriptorPlace> deciding_words;
    std::shared_ptr<const KernelCost> cost;
    // What is set aside for the kernel is enough for the baseline tier of its variants, too
    // (specialized_kernel.h), which have private arrays where the optimized tier has none.
    uint32_t least_scratch_bytes = 0;
};

CacheEntryFacts FactsOf(const ir::Kernel& kernel,
                        const SharedFacts& facts,
                        uint32_t scratch_bytes = 0) {
    return {.workgroup_size = kernel.workgroup_size,
            .shared_bytes = kernel.shared_bytes,
            .scratch_bytes = std::max(scratch_bytes, facts.least_scratch_bytes),
            .used_sets = facts.used_sets,
            .independent_workgroups = IndependentWorkgroups(kernel),
            .name = facts.label,
            .deciding_words = facts.deciding_words,
            .cost = facts.cost};
}

Result<CompiledObject> ObjectOf(const ir::Kernel& kernel,
                                const SharedFacts& facts,
                                PreparedKernel& prepared,
                                llvm::TargetMachine& machine) {
    CompiledObject compiled;
    compiled.facts = FactsOf(kernel, facts, prepared.scratch_bytes());
    FORNAX_ASSIGN_OR_RETURN(compiled.object, prepared.Generate(machine));
    return compiled;
}

// Whether it is certain enough, before it is tried, that code can be made of the kernel.
bool MayBePutOff(const ir::Kernel& kernel) {
    constexpr uint32_t kMostInstructions = 20'000;
    if (kernel.deciding_words.empty() || kernel.num_insts() > kMostInstructions) {
        return false;
    }
    const std::optional<uint64_t> scratch_bound = ScratchBound(kernel);
    return scratch_bound && *scratch_bound <= FunctionCode::kMaxScratchBytes &&
           CheckPureOps(kernel).ok();
}

// SharedFacts::least_scratch_bytes.
uint32_t LeastScratch(const ir::Kernel& kernel) {
    if (kernel.deciding_words.empty()) {
        return 0;
    }
    return static_cast<uint32_t>(
        std::min(ScratchBound(kernel).value_or(0), FunctionCode::kMaxScratchBytes));
}

// Before private variables are promoted their bound says little: kernels with more than this have
// their first passes before they are put off.
constexpr uint32_t kMostScratchUnpromoted = 1u << 20;

class Backend::Pending final : public PendingObject {
  public:
    // `kernel` has been through the first passes.
    Pending(Backend& backend,
            TargetInfo target,
            KernelDump dump,
            ir::Kernel kernel,
            SharedFacts facts)
        : backend_(backend),
          target_(std::move(target)),
          dump_(std::move(dump)),
          kernel_(std::move(kernel)),
          facts_(std::move(facts)) {}

    Result<CompiledObject> Finish() override {
        return OnLargeStack([&] { return FinishHere(); });
    }

  private:
    Result<CompiledObject> FinishHere() {
        FORNAX_ASSIGN_OR_RETURN(const RunningCompilation running, RunningCompilation::Begin());
        FORNAX_ASSIGN_OR_RETURN(const MachineLease machine, MachineLease::Take(backend_, target_));
        FORNAX_ASSIGN_OR_RETURN(auto prepared,
                                Prepare(kernel_, target_, *machine, dump_, CodeTier::kOptimized));
        return ObjectOf(kernel_, facts_, *prepared, *machine);
    }

    Backend& backend_;
    const TargetInfo target_;
    const KernelDump dump_;
    ir::Kernel kernel_;
    const SharedFacts facts_;
};

Result<CompiledObject> Backend::CompileHere(const CompileRequest& request,
                                            const TargetInfo& target,
                                            const Hash128& key,
                                            CompileTier tier,
                                            CodeTime time) {
    FORNAX_ASSIGN_OR_RETURN(const RunningCompilation running, RunningCompilation::Begin());
    SharedFacts facts{.label = KernelLabel(request.entry_point, key)};
    KernelDump dump(request.entry_point, key);
    dump.WriteWords("spv", request.spirv);
    if (dump.enabled() && !request.specialization.empty()) {
        dump.Write("constants", ConstantsText(request.specialization));
    }
    FORNAX_ASSIGN_OR_RETURN(ir::Kernel kernel, ReadSpirv(request));
    facts.used_sets = UsedSets(kernel);
    facts.deciding_words = kernel.deciding_words;
    if (dump.enabled()) {
        dump.Write("read.ir", ir::PrintKernel(kernel));
    }
    // The passes take twice as long as the reader does, and make the facts only better.
    if (time == CodeTime::kWhenBound && IndependentWorkgroups(kernel) &&
        LeastScratch(kernel) <= kMostScratchUnpromoted && MayBePutOff(kernel)) {
        facts.least_scratch_bytes = LeastScratch(kernel);
        return CompiledObject{.facts = FactsOf(kernel, facts)};
    }
    RunFirstPasses(kernel, VectorRegisters(target));
    facts.cost = CostOf(request, kernel);
    if (dump.enabled() && facts.cost) {
        dump.Write("cost", CostText(*facts.cost));
    }
    facts.least_scratch_bytes = LeastScratch(kernel);
    if (time == CodeTime::kWhenBound && MayBePutOff(kernel)) {
        return CompiledObject{.facts = FactsOf(kernel, facts)};
    }
    FORNAX_ASSIGN_OR_RETURN(const MachineLease machine, MachineLease::Take(*this, target));
    if (tier != CompileTier::kOptimized) {
        const std::chrono::nanoseconds start = ThreadTime();
        ir::Kernel copy = kernel;
        auto baseline = Prepare(copy, target, *machine, dump, CodeTier::kBaseline);
        // What is too large with its loops may still be possible without them.
        const uint32_t size = baseline.ok() ? (*baseline)->instructions() : 0;
        if (size > 0 &&
            (tier == CompileTier::kBaseline || (size >= kLeastTiered && size <= kMostTiered))) {
            FORNAX_ASSIGN_OR_RETURN(CompiledObject compiled,
                                    ObjectOf(copy, facts, **baseline, *machine));
            if (tier == CompileTier::kBaselineThenOptimized) {
                if (!kernel.deciding_words.empty()) {
                    facts.least_scratch_bytes = compiled.facts.scratch_bytes;
                }
                compiled.better = std::make_unique<Pending>(*this, target, std::move(dump),
                                                            std::move(kernel), facts);
                compiled.better_takes = (ThreadTime() - start) * kOptimizedToBaseline;
            }
            return compiled;
        }
    }
    FORNAX_ASSIGN_OR_RETURN(auto prepared,
                            Prepare(kernel, target, *machine, dump, CodeTier::kOptimized));
    return ObjectOf(kernel, facts, *prepared, *machine);
}

Result<KernelExplanation> Backend::ExplainHere(const CompileRequest& request,
                                               const TargetInfo& target) {
    FORNAX_ASSIGN_OR_RETURN(const RunningCompilation running, RunningCompilation::Begin());
    KernelExplanation explanation;
    StageClock clock(&explanation);
    FORNAX_ASSIGN_OR_RETURN(ir::Kernel kernel, ReadSpirv(request));
    explanation.instructions_read = kernel.num_insts();
    clock.End("reader");
    RunPipeline(kernel, VectorRegisters(target), JoinedMmasFor(target));
    explanation.instructions = kernel.num_insts();
    clock.End("passes");
    explanation.cpu = target.cpu_name;
    explanation.vector_bits = target.vector_bits;
    FORNAX_ASSIGN_OR_RETURN(const MachineLease machine, MachineLease::Take(*this, target));
    FORNAX_ASSIGN_OR_RETURN(NativeKernel native,
                            CompileToNative(kernel, target, *machine, {}, 0, &explanation));
    explanation.scratch_bytes = native.scratch_bytes;

    FORNAX_ASSIGN_OR_RETURN(const spirv::Module module, spirv::Module::Parse(request.spirv));
    const spirv::SourceMap sources(module);
    auto locate = [&](auto& records) {
        for (auto& record : records) {
            record.place.instruction = sources.Instruction(record.place.word);
            record.place.source = sources.Source(record.place.word);
        }
    };
    locate(explanation.kept);
    locate(explanation.constructs);
    locate(explanation.accesses);
    locate(explanation.matrix);
    return explanation;
}

}  // namespace

std::shared_ptr<KernelBackend> MakeKernelBackend() {
    return std::make_shared<Backend>();
}

}  // namespace fornax::kernel
