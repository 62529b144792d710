// Has kernels compiled and keeps what came out: kernels that are in use are shared, native code is
// kept on disk between processes. Nothing here needs LLVM's compiler: see backend.h.
#include "compiler/kernel/kernel_compiler.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "base/environment.h"
#include "base/log.h"
#include "base/per_process.h"
#include "compiler/kernel/backend/backend.h"
#include "compiler/kernel/cache/cache_entry.h"
#include "compiler/kernel/cache/cache_key.h"
#include "compiler/kernel/cache/stored_kernels.h"
#include "compiler/kernel/codegen/jit_loader.h"
#include "compiler/kernel/codegen/target.h"
#include "compiler/kernel/interpreting_compiler.h"
#include "compiler/kernel/tiers/compile_ahead.h"
#include "compiler/kernel/tiers/scratch.h"
#include "compiler/kernel/tiers/specialized_kernel.h"
#include "compiler/kernel/tiers/tiered_kernel.h"

namespace fornax::kernel {

namespace {

using KernelPtr = std::shared_ptr<const CompiledKernel>;

class Compiler final : public KernelCompiler {
  public:
    Compiler(const std::string& cache_directory,
             TargetInfo target,
             const UserSecret& secret,
             CompileTier tier,
             const BackendSource& backend)
        : target_(std::move(target)),
          tier_(tier),
          build_(BuildIdentity() + " " + backend.identity() +
                 (tier == CompileTier::kBaseline ? " baseline" : "")),
          secret_(secret),
          max_running_(std::max(1u, std::thread::hardware_concurrency())),
          state_([this,
                  directory = BuildIdentity().empty() ? std::string() : cache_directory,
                  backend] { return std::make_unique<State>(*this, directory, backend); }) {}

    std::string Key(const CompileRequest& request) const override { return Hash(request).ToHex(); }
    Result<KernelPtr> Compile(const CompileRequest& request) override;
    Result<KernelPtr> Lookup(const CompileRequest& request) override;
    Result<KernelPtr> Load(const std::string& key, std::span<const uint8_t> serialized) override;
    KernelPtr Specialize(const CompileRequest& request, KernelPtr kernel) override;
    const TargetInfo& target() const override { return target_; }

  private:
    // A request that owns what it refers to.
    struct OwnRequest {
        explicit OwnRequest(const CompileRequest& other)
            : spirv(other.spirv.begin(), other.spirv.end()), request(other) {
            request.spirv = spirv;
        }
        OwnRequest(const OwnRequest&) = delete;
        OwnRequest& operator=(const OwnRequest&) = delete;

        const std::vector<uint32_t> spirv;
        CompileRequest request;
    };
    struct Specialized {
        std::weak_ptr<SpecializedKernel> kernel;
        std::shared_ptr<const OwnRequest> source;
    };

    // What the threads of one process share. A child process begins with nothing: what its parent's
    // threads were compiling will not come there.
    struct State {
        State(const Compiler& compiler, const std::string& directory, BackendSource source)
            : owner(compiler),
              stored(directory, compiler.secret_),
              backend(std::make_shared<LazyBackend>(std::move(source))) {}
        ~State();

        // The kernel if it is in use somewhere. `mutex` is held.
        KernelPtr FindLive(const Hash128& key);
        std::shared_ptr<SpecializedKernel> FindSpecialized(const Hash128& key);
        // Keeps the kernel findable while it lives; gives the one that came first if there is one.
        KernelPtr Publish(const Hash128& key, KernelPtr kernel);

        const Compiler& owner;
        StoredKernels stored;
        const std::shared_ptr<LazyBackend> backend;

        std::mutex mutex;  // guards what follows
        std::condition_variable changed;
        std::unordered_map<Hash128, std::weak_ptr<const CompiledKernel>> live;
        // By SpecializedKey.
        std::unordered_map<Hash128, Specialized> specialized;
        std::unordered_set<Hash128> in_flight;  // being looked up or compiled by some thread
        unsigned running = 0;                   // compilations, which cost memory and a CPU each

        BackgroundQueue background;  // its jobs use the members before it
        CompileAhead ahead;          // the last member: its jobs use the others
    };

    // What is compiled ahead by few threads keeps nobody waiting who needs code now.
    Result<KernelPtr> CompileAt(const CompileRequest& request, CodeTime time, bool ahead = false);
    Result<KernelPtr> CompileNew(State& state,
                                 const CompileRequest& request,
                                 const Hash128& key,
                                 CodeTime time);
    Result<KernelPtr> AddTiered(State& state,
                                std::shared_ptr<KernelBackend> backend,
                                const Hash128& key,
                                CompiledObject compiled,
                                bool lasts);
    Status FinishTiered(State& state,
                        const Hash128& key,
                        PendingObject& pending,
                        const std::shared_ptr<TieredKernel>& kernel,
                        bool lasts);

    bool IsSpecialized(const CompileRequest& request) const;
    std::shared_ptr<SpecializedKernel> GetSpecialized(State& state,
                                                      const CompileRequest& request,
                                                      const KernelPtr& kernel);

    // A job of State::ahead.
    void MakeAhead(const OwnRequest& source,
                   const std::weak_ptr<const SpecializedKernel>& weak,
                   const std::vector<DescriptorWord>& words);

    Hash128 Hash(const CompileRequest& request) const {
        return HashRequest(request, target_, build_);
    }
    // Whether variants are stored is the request's.
    Hash128 SpecializedKey(const CompileRequest& request) const {
        return Hasher().Append(Hash(request)).Append(static_cast<uint32_t>(request.disk)).Finish();
    }

    const TargetInfo target_;
    const CompileTier tier_;
    const std::string build_;
    const UserSecret secret_;
    const unsigned max_running_;
    PerProcess<State> state_;  // the last member: its jobs use the others
};

KernelPtr Compiler::State::FindLive(const Hash128& key) {
    auto it = live.find(key);
    if (it == live.end()) {
        return nullptr;
    }
    KernelPtr kernel = it->second.lock();
    if (!kernel) {
        live.erase(it);
    }
    return kernel;
}

KernelPtr Compiler::State::Publish(const Hash128& key, KernelPtr kernel) {
    std::lock_guard lock(mutex);
    if (KernelPtr first = FindLive(key)) {
        return first;
    }
    // Entries of dead kernels are swept when they outnumber the living.
    if (live.size() >= 64 && (live.size() & (live.size() - 1)) == 0) {
        std::erase_if(live, [](const auto& item) { return item.second.expired(); });
    }
    live[key] = kernel;
    return kernel;
}

Result<KernelPtr> Compiler::CompileNew(State& state,
                                       const CompileRequest& request,
                                       const Hash128& key,
                                       CodeTime time) {
    FORNAX_ASSIGN_OR_RETURN(std::shared_ptr<KernelBackend> backend, state.backend->Get());
    FORNAX_ASSIGN_OR_RETURN(CompiledObject compiled,
                            backend->Compile(request, target_, key, tier_, time));
    // A kernel that holds an address of this process is of no use to another.
    const bool lasts =
        request.options.printf_address == 0 && request.disk == DiskUse::kReadAndWrite;
    if (compiled.better) {
        return AddTiered(state, std::move(backend), key, std::move(compiled), lasts);
    }
    std::vector<uint8_t> bytes = SerializeEntry(secret_, key, compiled.facts, compiled.object);
    if (tier_ != CompileTier::kBaseline && lasts) {
        state.stored.Write(key, bytes);
    }
    return LoadKernel(secret_, key, std::move(bytes), /*from_disk_cache=*/false);
}

// Runs the baseline tier and has the optimized tier made in the background. Only that is stored.
Result<KernelPtr> Compiler::AddTiered(State& state,
                                      std::shared_ptr<KernelBackend> backend,
                                      const Hash128& key,
                                      CompiledObject compiled,
                                      bool lasts) {
    FORNAX_ASSIGN_OR_RETURN(std::unique_ptr<LoadedObject> baseline,
                            LoadedObject::Load(compiled.object, kKernelSymbol));
    // What the optimized tier will need is not known yet.
    compiled.facts.scratch_bytes = ScratchForBoth(compiled.facts.scratch_bytes);
    auto kernel = std::make_shared<TieredKernel>(compiled.facts, std::move(baseline));
    // A job must be copyable. The pending object's code is the backend's, so it goes first.
    struct Work {
        std::shared_ptr<KernelBackend> backend;
        std::unique_ptr<PendingObject> pending;
    };
    auto work = std::make_shared<Work>(Work{std::move(backend), std::move(compiled.better)});
    const auto weak = std::weak_ptr(kernel);
    const auto run_time = [weak]() -> std::optional<std::chrono::nanoseconds> {
        const std::shared_ptr<TieredKernel> alive = weak.lock();
        return alive ? std::optional(alive->baseline_time()) : std::nullopt;
    };
    const auto job = [this, &state, key, work, lasts, weak](bool run) {
        Status status = run ? FinishTiered(state, key, *work->pending, weak.lock(), lasts)
                            : Status(Error{ErrorCode::kInternal, "It was not waited for."});
        if (status.ok()) {
            return;
        }
        LogDebug("A kernel keeps its baseline tier: {}", status.error().message);
        if (auto abandoned = weak.lock()) {
            abandoned->Abandon();
        }
    };
    state.background.Add({run_time, job, compiled.better_takes});
    return KernelPtr(std::move(kernel));
}

Status Compiler::FinishTiered(State& state,
                              const Hash128& key,
                              PendingObject& pending,
                              const std::shared_ptr<TieredKernel>& kernel,
                              bool lasts) {
    FORNAX_ASSIGN_OR_RETURN(const CompiledObject optimized, pending.Finish());
    std::vector<uint8_t> bytes = SerializeEntry(secret_, key, optimized.facts, optimized.object);
    if (lasts) {
        state.stored.Write(key, bytes);
    }
    if (kernel) {
        if (optimized.facts.scratch_bytes > kernel->scratch_bytes) {
            return Error{ErrorCode::kInternal, "Its optimized tier needs " +
                                                   std::to_string(optimized.facts.scratch_bytes) +
                                                   " bytes of scratch, and " +
                                                   std::to_string(kernel->scratch_bytes) +
                                                   " are set aside."};
        }
        FORNAX_ASSIGN_OR_RETURN(std::unique_ptr<LoadedObject> object,
                                LoadedObject::Load(optimized.object, kKernelSymbol));
        kernel->Install(std::move(object), std::move(bytes));
    }
    return OkStatus();
}

Result<KernelPtr> Compiler::Compile(const CompileRequest& request) {
    if (!IsSpecialized(request)) {
        return CompileAt(request, CodeTime::kNow);
    }
    State& state = state_.Get();
    {
        std::lock_guard lock(state.mutex);
        if (auto found = state.FindSpecialized(SpecializedKey(request))) {
            return KernelPtr(std::move(found));
        }
    }
    FORNAX_ASSIGN_OR_RETURN(KernelPtr kernel, CompileAt(request, CodeTime::kWhenBound));
    return Specialize(request, std::move(kernel));
}

// Without kWhenBound the kernel has code.
Result<KernelPtr> Compiler::CompileAt(const CompileRequest& request, CodeTime time, bool ahead) {
    const Hash128 key = Hash(request);
    State& state = state_.Get();
    {
        // One thread works on a key; others wait for its kernel. If it fails they try themselves,
        // so that each has the error.
        std::unique_lock lock(state.mutex);
        while (true) {
            if (KernelPtr kernel = state.FindLive(key)) {
                return kernel;
            }
            if (!state.in_flight.contains(key) && (ahead || state.running < max_running_)) {
                break;
            }
            state.changed.wait(lock);
        }
        state.in_flight.insert(key);
        state.running += ahead ? 0 : 1;
    }
    // Also when memory runs out on the way: others wait for the key.
    const struct Turn {
        ~Turn() {
            {
                std::lock_guard lock(state.mutex);
                state.in_flight.erase(key);
                state.running -= ahead ? 0 : 1;
            }
            state.changed.notify_all();
        }
        State& state;
        const Hash128& key;
        const bool ahead;
    } turn{state, key, ahead};
    KernelPtr cached = request.disk == DiskUse::kNone ? nullptr : state.stored.Read(key);
    if (cached && !cached->entry && time == CodeTime::kNow) {
        cached = nullptr;
    }
    Result<KernelPtr> kernel =
        cached ? Result<KernelPtr>(cached) : CompileNew(state, request, key, time);
    if (kernel.ok() && (*kernel)->entry) {
        kernel = state.Publish(key, *kernel);
    }
    return kernel;
}

Result<KernelPtr> Compiler::Lookup(const CompileRequest& request) {
    const Hash128 key = Hash(request);
    State& state = state_.Get();
    KernelPtr kernel;
    {
        std::lock_guard lock(state.mutex);
        if (auto found = state.FindSpecialized(SpecializedKey(request))) {
            return KernelPtr(std::move(found));
        }
        kernel = state.FindLive(key);
    }
    if (!kernel && request.disk != DiskUse::kNone) {
        kernel = state.stored.Read(key);
        if (kernel && kernel->entry) {
            kernel = state.Publish(key, std::move(kernel));
        }
    }
    // Without SPIR-V no code can be made.
    if (!kernel || (!kernel->entry && !IsSpecialized(request))) {
        return KernelPtr();
    }
    return Specialize(request, std::move(kernel));
}

Result<KernelPtr> Compiler::Load(const std::string& key, std::span<const uint8_t> serialized) {
    std::optional<Hash128> hash = Hash128::FromHex(key);
    if (!hash) {
        return Error{ErrorCode::kInvalidArgument, "\"" + key + "\" is not the key of a kernel."};
    }
    FORNAX_ASSIGN_OR_RETURN(
        KernelPtr kernel,
        LoadKernel(secret_, *hash, {serialized.begin(), serialized.end()}, false));
    if (!kernel->entry) {
        return Error{ErrorCode::kDataLoss, "A stored kernel is not usable: it has no code."};
    }
    return state_.Get().Publish(*hash, std::move(kernel));
}

// --- Code for what is bound ----------------------------------------------------------------------

// Kernels that outlive the compiler go on with what they have, or with common code.
Compiler::State::~State() {
    for (const auto& item : specialized) {
        const auto& [weak, source] = item.second;
        const std::shared_ptr<SpecializedKernel> kernel = weak.lock();
        if (!kernel) {
            continue;
        }
        kernel->SetMakeCode([source = source, opener = backend, target = owner.target_,
                             secret = owner.secret_, key = owner.Hash(source->request)](
                                const std::vector<DescriptorWord>& words) -> Result<KernelPtr> {
            if (!words.empty()) {
                return Error{ErrorCode::kInternal, "The compiler is gone."};
            }
            FORNAX_ASSIGN_OR_RETURN(std::shared_ptr<KernelBackend> compiler, opener->Get());
            FORNAX_ASSIGN_OR_RETURN(const CompiledObject compiled,
                                    compiler->Compile(source->request, target, key,
                                                      CompileTier::kOptimized, CodeTime::kNow));
            return LoadKernel(secret, key,
                              SerializeEntry(secret, key, compiled.facts, compiled.object),
                              /*from_disk_cache=*/false);
        });
    }
}

// Whether its kernel, if it has deciding words, is compiled for what is bound. What counts its
// regions is not made for speed, and FORNAX_TIER=0 is there to look for faults of the baseline
// tier.
bool Compiler::IsSpecialized(const CompileRequest& request) const {
    return !request.spirv.empty() && !request.options.timed && tier_ != CompileTier::kBaseline;
}

std::shared_ptr<SpecializedKernel> Compiler::State::FindSpecialized(const Hash128& key) {
    const auto found = specialized.find(key);
    return found == specialized.end() ? nullptr : found->second.kernel.lock();
}

KernelPtr Compiler::Specialize(const CompileRequest& request, KernelPtr kernel) {
    if (kernel->deciding_words.empty() || !IsSpecialized(request)) {
        return kernel;
    }
    // It may have been specialized for a request with another use of the disk.
    if (const auto* other = dynamic_cast<const SpecializedKernel*>(kernel.get())) {
        kernel = other->CommonOrFacts();
    }
    std::shared_ptr<SpecializedKernel> specialized = GetSpecialized(state_.Get(), request, kernel);
    // It may have been made without code.
    if (kernel->entry) {
        specialized->SetCommon(std::move(kernel));
    }
    return specialized;
}

std::shared_ptr<SpecializedKernel> Compiler::GetSpecialized(State& state,
                                                            const CompileRequest& request,
                                                            const KernelPtr& kernel) {
    const Hash128 key = SpecializedKey(request);
    std::lock_guard lock(state.mutex);
    if (auto found = state.FindSpecialized(key)) {
        return found;
    }
    std::erase_if(state.specialized, [](const auto& item) { return item.second.kernel.expired(); });
    auto source = std::make_shared<const OwnRequest>(request);
    // It is the background queue's business when optimized tiers come.
    const auto make = [this, source](std::vector<DescriptorWord> words) {
        CompileRequest wanted = source->request;
        wanted.known_words = std::move(words);
        return CompileAt(wanted, CodeTime::kNow);
    };
    const auto ahead = [this, source](const std::weak_ptr<const SpecializedKernel>& weak,
                                      const std::vector<DescriptorWord>& words) {
        state_.Get().ahead.Add([=, this] { MakeAhead(*source, weak, words); });
    };
    auto made = std::make_shared<SpecializedKernel>(kernel, make, ahead);
    state.specialized[key] = {made, std::move(source)};
    return made;
}

void Compiler::MakeAhead(const OwnRequest& source,
                         const std::weak_ptr<const SpecializedKernel>& weak,
                         const std::vector<DescriptorWord>& words) try {
    const std::shared_ptr<const SpecializedKernel> kernel = weak.lock();
    if (!kernel || kernel->HasVariant(words)) {
        return;
    }
    CompileRequest wanted = source.request;
    wanted.known_words = words;
    {
        // Whoever makes it already needs no help.
        State& state = state_.Get();
        std::lock_guard lock(state.mutex);
        if (state.in_flight.contains(Hash(wanted))) {
            return;
        }
    }
    Result<KernelPtr> code = CompileAt(wanted, CodeTime::kNow, /*ahead=*/true);
    if (code.ok()) {
        kernel->Offer(words, std::move(code).value());
    }
} catch (const std::exception&) {
    // There is no memory, so the dispatch has to see.
}

// --- Tiers ---------------------------------------------------------------------------------------

Result<CompileTier> ChooseTier() {
    const std::optional<std::string> tier = EnvironmentText("FORNAX_TIER");
    if (!tier) {
        return CompileTier::kBaselineThenOptimized;
    }
    if (*tier == "0") {
        return CompileTier::kBaseline;
    }
    if (*tier == "1") {
        return CompileTier::kOptimized;
    }
    return Error{ErrorCode::kUnsupported,
                 "FORNAX_TIER is \"" + *tier +
                     "\"; it can be 0 (baseline tier), 1 (optimized tier) or "
                     "unset."};
}

}  // namespace

bool KernelCompiler::HasBFloatDotProducts() {
    const Result<TargetInfo> target = DetectTarget(EnvironmentText("FORNAX_CPU").value_or(""));
    return target.ok() && HasBFloatDot(*target);
}

Result<std::unique_ptr<KernelCompiler>> KernelCompiler::Create(const std::string& cache_directory) {
    FORNAX_ASSIGN_OR_RETURN(TargetInfo target,
                            DetectTarget(EnvironmentText("FORNAX_CPU").value_or("")));
    LogDebug("Kernels are compiled for {} with {}-bit vectors.", target.cpu_name,
             target.vector_bits);
    FORNAX_ASSIGN_OR_RETURN(BackendSource backend, BackendSource::Find());
    const std::string form = EnvironmentText("FORNAX_KERNEL").value_or("compile");
    if (form == "interpret") {
        return MakeInterpretingCompiler(std::move(target), backend);
    }
    if (form != "compile") {
        return Error{ErrorCode::kUnsupported,
                     "FORNAX_KERNEL is \"" + form + "\"; it can be \"compile\" or \"interpret\"."};
    }
    FORNAX_ASSIGN_OR_RETURN(const CompileTier tier, ChooseTier());
    FORNAX_ASSIGN_OR_RETURN(UserSecret secret, SigningSecret(cache_directory));
    return std::unique_ptr<KernelCompiler>(
        std::make_unique<Compiler>(cache_directory, std::move(target), secret, tier, backend));
}

}  // namespace fornax::kernel
