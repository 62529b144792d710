// Has kernels compiled and keeps what came out: kernels that are in use are shared, native code is
// kept on disk between processes. Nothing here needs LLVM's compiler: see backend.h.
#include "compiler/kernel/kernel_compiler.h"

#include <sys/random.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "base/disk_cache.h"
#include "base/environment.h"
#include "base/log.h"
#include "base/per_process.h"
#include "compiler/kernel/backend.h"
#include "compiler/kernel/cache_entry.h"
#include "compiler/kernel/cache_key.h"
#include "compiler/kernel/codegen/jit_loader.h"
#include "compiler/kernel/codegen/target.h"
#include "compiler/kernel/scratch.h"
#include "compiler/kernel/specialized_kernel.h"
#include "compiler/kernel/tiered_kernel.h"

namespace fornax::kernel {

namespace {

constexpr CacheKind kDiskKind = {.name = "kernel",
                                 .extension = "bin",
                                 .version = kCacheEntryVersion,
                                 .executable = true};

using KernelPtr = std::shared_ptr<const CompiledKernel>;

class LoadedKernel : public CompiledKernel {
  public:
    explicit LoadedKernel(std::unique_ptr<LoadedObject> object) : object_(std::move(object)) {
        entry = reinterpret_cast<hal::KernelEntry>(const_cast<void*>(object_->entry()));
        interruptible = true;
    }

  private:
    std::unique_ptr<LoadedObject> object_;
};

// Checks the bytes and maps their code.
Result<KernelPtr> LoadEntry(const UserSecret& secret,
                            const Hash128& key,
                            std::vector<uint8_t> bytes,
                            bool from_disk_cache) {
    FORNAX_ASSIGN_OR_RETURN(ParsedEntry entry, ParseEntry(secret, key, bytes));
    FORNAX_ASSIGN_OR_RETURN(std::unique_ptr<LoadedObject> object,
                            LoadedObject::Load(entry.object, kKernelSymbol));
    auto kernel = std::make_shared<LoadedKernel>(std::move(object));
    kernel->workgroup_size = entry.facts.workgroup_size;
    kernel->shared_bytes = entry.facts.shared_bytes;
    kernel->scratch_bytes = entry.facts.scratch_bytes;
    kernel->used_sets = entry.facts.used_sets;
    kernel->independent_workgroups = entry.facts.independent_workgroups;
    kernel->name = entry.facts.name;
    kernel->deciding_words = entry.facts.deciding_words;
    kernel->cost = entry.facts.cost;
    kernel->from_disk_cache = from_disk_cache;
    kernel->serialized = std::move(bytes);
    return KernelPtr(std::move(kernel));
}

// The secret that stored kernels are signed with: the cache directory's, so that other processes
// accept them, or without one a secret that dies with this process.
Result<UserSecret> SigningSecret(const std::string& directory) {
    if (!directory.empty()) {
        Result<UserSecret> secret = LoadOrCreateUserSecret(directory);
        if (secret.ok()) {
            return secret;
        }
        LogDebug("Stored kernels are signed for this process only: {}", secret.error().message);
    }
    UserSecret secret;
    if (getrandom(secret.bytes.data(), secret.bytes.size(), 0) !=
        static_cast<ssize_t>(secret.bytes.size())) {
        return Error{ErrorCode::kInternal, "The system gives no random numbers."};
    }
    return secret;
}

// Opens the backend when it is first asked for. Thread-safe. Of one process.
class LazyBackend {
  public:
    explicit LazyBackend(BackendSource source) : source_(std::move(source)) {}

    Result<std::shared_ptr<KernelBackend>> Get() {
        std::lock_guard lock(mutex_);
        if (!backend_) {
            FORNAX_ASSIGN_OR_RETURN(backend_, source_.Open());
        }
        return backend_;
    }

  private:
    const BackendSource source_;
    std::mutex mutex_;
    std::shared_ptr<KernelBackend> backend_;
};

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
                 (tier == CompileTier::kQuick ? " quick" : "")),
          secret_(secret),
          max_running_(std::max(1u, std::thread::hardware_concurrency())),
          state_([directory = BuildIdentity().empty() ? std::string() : cache_directory, backend] {
              return std::make_unique<State>(directory, backend);
          }) {}

    std::string Key(const CompileRequest& request) const override { return Hash(request).ToHex(); }
    Result<KernelPtr> Compile(const CompileRequest& request) override;
    Result<KernelPtr> Lookup(const CompileRequest& request) override;
    Result<KernelPtr> Load(const std::string& key, std::span<const uint8_t> serialized) override;
    KernelPtr Specialize(const CompileRequest& request, KernelPtr kernel) override;
    const TargetInfo& target() const override { return target_; }

  private:
    // What the threads of one process share. A child process begins with nothing: what its parent's
    // threads were compiling will not come there.
    struct State {
        State(const std::string& directory, BackendSource source)
            : disk(directory), backend(std::move(source)) {}
        ~State();

        // The kernel if it is in use somewhere. `mutex` is held.
        KernelPtr FindLive(const Hash128& key);
        // Keeps the kernel findable while it lives; gives the one that came first if there is one.
        KernelPtr Publish(const Hash128& key, KernelPtr kernel);

        DiskCache disk;
        LazyBackend backend;

        std::mutex mutex;  // guards what follows
        std::condition_variable changed;
        std::unordered_map<Hash128, std::weak_ptr<const CompiledKernel>> live;
        // Those of `live` that are compiled for what they find bound.
        std::unordered_map<Hash128, std::weak_ptr<SpecializedKernel>> specialized;
        std::unordered_set<Hash128> in_flight;  // being looked up or compiled by some thread
        unsigned running = 0;                   // compilations, which cost memory and a CPU each

        BackgroundQueue background;  // the last member: its jobs use the others
    };

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

    KernelPtr ReadDisk(State& state, const Hash128& key);
    Result<KernelPtr> CompileNew(State& state,
                                 const CompileRequest& request,
                                 const Hash128& key,
                                 CompileTier tier);
    Result<KernelPtr> CompileCommon(const CompileRequest& request);
    void AddVariant(State& state,
                    const std::shared_ptr<const OwnRequest>& source,
                    const std::weak_ptr<SpecializedKernel>& kernel,
                    uint32_t variant);
    Status MakeVariant(State& state,
                       const CompileRequest& request,
                       SpecializedKernel* kernel,
                       uint32_t variant);
    Hash128 Hash(const CompileRequest& request) const {
        return HashRequest(request, target_, build_);
    }

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

KernelPtr Compiler::ReadDisk(State& state, const Hash128& key) {
    std::optional<std::vector<std::byte>> payload = state.disk.Get(kDiskKind, key);
    if (!payload) {
        return nullptr;
    }
    std::vector<uint8_t> bytes(payload->size());
    if (!bytes.empty()) {
        std::memcpy(bytes.data(), payload->data(), bytes.size());
    }
    Result<KernelPtr> kernel = LoadEntry(secret_, key, std::move(bytes), /*from_disk_cache=*/true);
    if (!kernel.ok()) {
        LogWarning("{} It is compiled anew.", kernel.error().message);
        return nullptr;
    }
    return std::move(kernel).value();
}

Result<KernelPtr> Compiler::CompileNew(State& state,
                                       const CompileRequest& request,
                                       const Hash128& key,
                                       CompileTier tier) {
    FORNAX_ASSIGN_OR_RETURN(std::shared_ptr<KernelBackend> backend, state.backend.Get());
    FORNAX_ASSIGN_OR_RETURN(CompiledObject compiled, backend->Compile(request, target_, key, tier));
    // A kernel that holds an address of this process is of no use to another.
    const bool lasts =
        request.options.printf_address == 0 && request.disk == DiskUse::kReadAndWrite;
    if (compiled.better) {
        return AddTiered(state, std::move(backend), key, std::move(compiled), lasts);
    }
    std::vector<uint8_t> bytes = SerializeEntry(secret_, key, compiled.facts, compiled.object);
    if (tier != CompileTier::kQuick && lasts) {
        state.disk.Put(kDiskKind, key, std::as_bytes(std::span(bytes)));
    }
    return LoadEntry(secret_, key, std::move(bytes), /*from_disk_cache=*/false);
}

// Runs the baseline tier and has the optimized tier made in the background. Only that is stored.
Result<KernelPtr> Compiler::AddTiered(State& state,
                                      std::shared_ptr<KernelBackend> backend,
                                      const Hash128& key,
                                      CompiledObject compiled,
                                      bool lasts) {
    FORNAX_ASSIGN_OR_RETURN(std::unique_ptr<LoadedObject> quick,
                            LoadedObject::Load(compiled.object, kKernelSymbol));
    // What the optimized tier will need is not known yet.
    compiled.facts.scratch_bytes = ScratchForBoth(compiled.facts.scratch_bytes);
    auto kernel = std::make_shared<TieredKernel>(compiled.facts, std::move(quick));
    // A job must be copyable. The pending object's code is the backend's, so it goes first.
    struct Work {
        std::shared_ptr<KernelBackend> backend;
        std::unique_ptr<PendingObject> pending;
    };
    auto work = std::make_shared<Work>(Work{std::move(backend), std::move(compiled.better)});
    const auto weak = std::weak_ptr(kernel);
    const auto run_time = [weak]() -> std::optional<std::chrono::nanoseconds> {
        const std::shared_ptr<TieredKernel> alive = weak.lock();
        return alive ? std::optional(alive->quick_time()) : std::nullopt;
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
    FORNAX_ASSIGN_OR_RETURN(const CompiledObject full, pending.Finish());
    std::vector<uint8_t> bytes = SerializeEntry(secret_, key, full.facts, full.object);
    if (lasts) {
        state.disk.Put(kDiskKind, key, std::as_bytes(std::span(bytes)));
    }
    if (kernel) {
        if (full.facts.scratch_bytes > kernel->scratch_bytes) {
            return Error{ErrorCode::kInternal,
                         "Its optimized tier needs " + std::to_string(full.facts.scratch_bytes) +
                             " bytes of scratch, and " + std::to_string(kernel->scratch_bytes) +
                             " are set aside."};
        }
        FORNAX_ASSIGN_OR_RETURN(std::unique_ptr<LoadedObject> object,
                                LoadedObject::Load(full.object, kKernelSymbol));
        kernel->Install(std::move(object), std::move(bytes));
    }
    return OkStatus();
}

// --- Code for what is bound ----------------------------------------------------------------------

Compiler::State::~State() {
    for (auto& [key, weak] : specialized) {
        if (auto kernel = weak.lock()) {
            kernel->SetRequest({});
        }
    }
}

KernelPtr Compiler::Specialize(const CompileRequest& request, KernelPtr kernel) {
    // What counts its regions is not made for speed, and FORNAX_TIER=0 is there to look for faults
    // of the baseline tier.
    if (kernel->deciding_words.empty() || request.spirv.empty() || request.options.timed ||
        tier_ == CompileTier::kQuick) {
        return kernel;
    }
    // Whether variants are stored is the request's.
    const Hash128 key =
        Hasher().Append(Hash(request)).Append(static_cast<uint32_t>(request.disk)).Finish();
    State& state = state_.Get();
    std::lock_guard lock(state.mutex);
    if (auto found = state.specialized.find(key); found != state.specialized.end()) {
        if (auto specialized = found->second.lock()) {
            return specialized;
        }
    }
    std::erase_if(state.specialized, [](const auto& item) { return item.second.expired(); });
    auto specialized =
        std::make_shared<SpecializedKernel>(std::move(kernel), tier_ == CompileTier::kFull);
    state.specialized[key] = specialized;
    specialized->SetRequest([this, &state, source = std::make_shared<const OwnRequest>(request),
                             weak = std::weak_ptr(specialized)](uint32_t variant) {
        AddVariant(state, source, weak, variant);
    });
    return specialized;
}

void Compiler::AddVariant(State& state,
                          const std::shared_ptr<const OwnRequest>& source,
                          const std::weak_ptr<SpecializedKernel>& kernel,
                          uint32_t variant) {
    const std::shared_ptr<SpecializedKernel> now = kernel.lock();
    if (!now) {
        return;
    }
    const auto run_time = [kernel, variant]() -> std::optional<std::chrono::nanoseconds> {
        const std::shared_ptr<SpecializedKernel> alive = kernel.lock();
        return alive ? std::optional(alive->CommonTime(variant)) : std::nullopt;
    };
    const auto job = [this, &state, source, kernel, variant,
                      words = now->WordsOf(variant)](bool run) {
        const std::shared_ptr<SpecializedKernel> alive = kernel.lock();
        Status status = Error{ErrorCode::kInternal, "It was not waited for."};
        if (run) {
            CompileRequest request = source->request;
            request.known_words = words;
            status = MakeVariant(state, request, alive.get(), variant);
        }
        if (!status.ok()) {
            LogDebug("A kernel keeps its code for all formats: {}", status.error().message);
            if (alive) {
                alive->Abandon(variant);
            }
        }
    };
    // No baseline tier of it tells how long it takes.
    constexpr std::chrono::milliseconds kUsually{100};
    state.background.Add({run_time, job, kUsually});
}

// `kernel` may be null: then the cache is filled.
Status Compiler::MakeVariant(State& state,
                             const CompileRequest& request,
                             SpecializedKernel* kernel,
                             uint32_t variant) {
    const Hash128 key = Hash(request);
    KernelPtr code = request.disk == DiskUse::kNone ? nullptr : ReadDisk(state, key);
    if (!code) {
        FORNAX_ASSIGN_OR_RETURN(code, CompileNew(state, request, key, CompileTier::kFull));
    }
    if (kernel && !kernel->Install(variant, code)) {
        return Error{ErrorCode::kInternal,
                     "Its own code needs " + std::to_string(code->scratch_bytes) +
                         " bytes of scratch, and " + std::to_string(kernel->scratch_bytes) +
                         " are set aside."};
    }
    return OkStatus();
}

Result<KernelPtr> Compiler::Compile(const CompileRequest& request) {
    FORNAX_ASSIGN_OR_RETURN(KernelPtr kernel, CompileCommon(request));
    return Specialize(request, std::move(kernel));
}

Result<KernelPtr> Compiler::CompileCommon(const CompileRequest& request) {
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
            if (!state.in_flight.contains(key) && state.running < max_running_) {
                break;
            }
            state.changed.wait(lock);
        }
        state.in_flight.insert(key);
        ++state.running;
    }
    // Also when memory runs out on the way: others wait for the key.
    const struct Turn {
        ~Turn() {
            {
                std::lock_guard lock(state.mutex);
                state.in_flight.erase(key);
                --state.running;
            }
            state.changed.notify_all();
        }
        State& state;
        const Hash128& key;
    } turn{state, key};
    KernelPtr cached = request.disk == DiskUse::kNone ? nullptr : ReadDisk(state, key);
    Result<KernelPtr> kernel =
        cached ? Result<KernelPtr>(cached) : CompileNew(state, request, key, tier_);
    if (kernel.ok()) {
        kernel = state.Publish(key, *kernel);
    }
    return kernel;
}

Result<KernelPtr> Compiler::Lookup(const CompileRequest& request) {
    const Hash128 key = Hash(request);
    State& state = state_.Get();
    KernelPtr live;
    {
        std::lock_guard lock(state.mutex);
        live = state.FindLive(key);
    }
    if (!live) {
        KernelPtr kernel = request.disk == DiskUse::kNone ? nullptr : ReadDisk(state, key);
        live = kernel ? state.Publish(key, kernel) : KernelPtr();
    }
    return live ? Specialize(request, std::move(live)) : KernelPtr();
}

Result<KernelPtr> Compiler::Load(const std::string& key, std::span<const uint8_t> serialized) {
    std::optional<Hash128> hash = Hash128::FromHex(key);
    if (!hash) {
        return Error{ErrorCode::kInvalidArgument, "\"" + key + "\" is not the key of a kernel."};
    }
    FORNAX_ASSIGN_OR_RETURN(
        KernelPtr kernel, LoadEntry(secret_, *hash, {serialized.begin(), serialized.end()}, false));
    return state_.Get().Publish(*hash, std::move(kernel));
}

// --- FORNAX_KERNEL=interpret
// -----------------------------------------------------------------------

// An interpreted kernel and the backend that its code belongs to.
class HeldKernel : public CompiledKernel {
  public:
    HeldKernel(std::shared_ptr<KernelBackend> backend, KernelPtr kernel)
        : CompiledKernel(*kernel), backend_(std::move(backend)), kernel_(std::move(kernel)) {
        storable = false;
    }

  private:
    // In this order: the kernel goes first.
    std::shared_ptr<KernelBackend> backend_;
    KernelPtr kernel_;
};

// Stores nothing and finds nothing stored.
class InterpretingCompiler final : public KernelCompiler {
  public:
    InterpretingCompiler(TargetInfo target, const BackendSource& backend)
        : target_(std::move(target)),
          backend_([backend] { return std::make_unique<LazyBackend>(backend); }) {}

    std::string Key(const CompileRequest& request) const override {
        return HashRequest(request, target_, "interpreted").ToHex();
    }
    Result<KernelPtr> Compile(const CompileRequest& request) override {
        FORNAX_ASSIGN_OR_RETURN(std::shared_ptr<KernelBackend> backend, backend_.Get().Get());
        FORNAX_ASSIGN_OR_RETURN(KernelPtr kernel, backend->MakeInterpreted(request));
        return KernelPtr(std::make_shared<HeldKernel>(std::move(backend), std::move(kernel)));
    }
    Result<KernelPtr> Lookup(const CompileRequest&) override { return KernelPtr(); }
    Result<KernelPtr> Load(const std::string&, std::span<const uint8_t>) override {
        return Error{ErrorCode::kDataLoss,
                     "FORNAX_KERNEL asks for the interpreter, so stored kernels are not used."};
    }
    const TargetInfo& target() const override { return target_; }

  private:
    const TargetInfo target_;
    PerProcess<LazyBackend> backend_;
};

Result<CompileTier> ChooseTier() {
    const std::optional<std::string> tier = EnvironmentText("FORNAX_TIER");
    if (!tier) {
        return CompileTier::kQuickThenFull;
    }
    if (*tier == "0") {
        return CompileTier::kQuick;
    }
    if (*tier == "1") {
        return CompileTier::kFull;
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
        return std::unique_ptr<KernelCompiler>(
            std::make_unique<InterpretingCompiler>(std::move(target), backend));
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
