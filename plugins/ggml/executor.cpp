// What is found again is recognised by the bytes of the host's structures: nodes and leaves with
// their shapes, parameters, edges and addresses. That is all a plan and its bindings depend on.
#include "plugins/ggml/executor.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "plugins/ggml/export.h"
#include "plugins/ggml/fault.h"

namespace fornax::ggml_plugin {
namespace {

// The part of a tensor before its name, into bytes that are hashed in one go.
constexpr size_t kHashedBytes = offsetof(abi::Tensor, name);

template <typename Tensors>
Hash128 HashTensors(const Tensors& tensors, std::vector<std::byte>& bytes) {
    bytes.resize(tensors.size() * kHashedBytes);
    std::byte* to = bytes.data();
    for (const abi::Tensor* tensor : tensors) {
        std::memcpy(to, tensor, kHashedBytes);
        to += kHashedBytes;
    }
    return HashBytes(bytes);
}

WeightMatrix MatrixOf(const Capture& capture, uint32_t storage) {
    const ggml_frontend::Storage& matrix = capture.graph.storages[storage];
    return {matrix.type, capture.addresses[storage], capture.sizes[storage], matrix.ne[0],
            matrix.ne[1]};
}

// Whether the graph reads matrices of weights where they lie, as their packs are put off.
bool MayReadInPlace(const Capture& capture, WeightStore& weights) {
    std::vector<WeightMatrix> matrices;
    for (const uint32_t storage : ggml_frontend::MatricesInPlace(capture.graph)) {
        if (capture.addresses[storage] != nullptr) {
            matrices.push_back(MatrixOf(capture, storage));
        }
    }
    const bool is_prompt = ggml_frontend::MostRowsOfWeights(capture.graph) > 1;
    return !matrices.empty() && weights.PutOff(matrices, is_prompt);
}

}  // namespace

// --- Compiler ------------------------------------------------------------------------------------

Compiler::Compiler(std::shared_ptr<vulkan::Device> device)
    : device_(device), programs_(std::move(device)) {}

Result<std::shared_ptr<const CompiledGraph>> Compiler::Compile(const ggml_frontend::Graph& graph) {
    const Hash128 hash = HashOf(graph);
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(kept_.begin(), kept_.end(),
                                    [&](const Entry& entry) { return entry.hash == hash; });
    if (found != kept_.end()) {
        kept_.splice(kept_.begin(), kept_, found);
        return kept_.front().compiled;
    }
    FORNAX_RETURN_IF_ERROR(InjectedFault("compile"));
    FORNAX_ASSIGN_OR_RETURN(
        ggml_frontend::ImportedGraph imported,
        ggml_frontend::Import(graph, fmt::format("graph {}", hash.ToHex().substr(0, 16))));
    FORNAX_RETURN_IF_ERROR(graph::Verify(imported.graph));
    const std::string what = fmt::format("graph {} of {} nodes", hash.ToHex(), graph.nodes.size());
    auto compiled = std::make_shared<CompiledGraph>();
    std::vector<graph::WeightInput> weights;
    for (size_t i = 0; i < imported.inputs.size(); ++i) {
        const ggml_frontend::ImportedGraph::Input& input = imported.inputs[i];
        const ggml_frontend::Storage& storage = graph.storages[input.storage];
        const bool is_packed = input.part != ggml_frontend::Part::kWhole;
        if (is_packed || storage.is_weights) {
            // Kernels of packed blocks know no number of rows; those of floats do.
            const bool has_blocks = is_packed && storage.type->is_quantised();
            weights.push_back({static_cast<uint32_t>(i), has_blocks});
        }
        compiled->dims.push_back(*imported.graph.ShapeOf(imported.graph.inputs()[i]).Constants());
    }
    FORNAX_ASSIGN_OR_RETURN(
        compiled->program, programs_.Get(std::move(imported.graph), compiled->dims, weights, what));
    compiled->inputs = std::move(imported.inputs);
    compiled->outputs = std::move(imported.outputs);
    compiled->states = std::move(imported.states);
    kept_.push_front({hash, compiled});
    if (kept_.size() > kMaxKept) {
        kept_.pop_back();
    }
    return kept_.front().compiled;
}

bool Compiler::IsSupported(const ggml_frontend::Graph& graph) {
    const Hash128 hash = HashOf(graph);
    const std::lock_guard lock(supported_mutex_);
    const auto found = supported_.find(hash);
    if (found != supported_.end()) {
        return found->second;
    }
    const Result<ggml_frontend::ImportedGraph> imported = ggml_frontend::Import(graph, "operator");
    if (!imported.ok()) {
        ReportRefused(imported.error().message);
    }
    supported_[hash] = imported.ok();
    return imported.ok();
}

// --- BoundGraph ----------------------------------------------------------------------------------

Result<std::shared_ptr<BoundGraph>> BoundGraph::Create(
    std::shared_ptr<const CompiledGraph> compiled,
    const Capture& capture,
    WeightStore& weights) {
    FORNAX_RETURN_IF_ERROR(InjectedFault("bind"));
    std::shared_ptr<BoundGraph> bound(new BoundGraph());
    bound->put_off_in_ = capture.graph.in_place ? &weights : nullptr;
    const auto use = [&](uint32_t storage) -> Status {
        void* address = capture.addresses[storage];
        if (address == nullptr) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("Storage {} of {} bytes has no memory.", storage,
                                     capture.sizes[storage])};
        }
        bound->memory_.push_back({static_cast<const uint8_t*>(address), capture.sizes[storage]});
        return OkStatus();
    };
    runtime::SessionOptions options;
    options.kept_sizes = 1;
    options.states = std::make_shared<runtime::StateStore>(compiled->program->device());
    for (const ggml_frontend::ImportedGraph::State& state : compiled->states) {
        FORNAX_RETURN_IF_ERROR(use(state.storage));
        FORNAX_ASSIGN_OR_RETURN(
            std::unique_ptr<vulkan::Buffer> buffer,
            vulkan::Buffer::Import(compiled->program->device(), capture.addresses[state.storage],
                                   capture.sizes[state.storage]));
        options.states->Set(state.name, capture.sizes[state.storage], std::move(buffer));
    }
    bound->session_ = std::make_unique<runtime::Session>(compiled->program, options);
    runtime::Fit fit;
    FORNAX_ASSIGN_OR_RETURN(bound->instance_, bound->session_->For(compiled->dims, fit));
    if (bound->instance_ == nullptr) {
        return Error{ErrorCode::kInternal, fit.reason};
    }
    for (size_t i = 0; i < compiled->inputs.size(); ++i) {
        const auto& [storage, part] = compiled->inputs[i];
        FORNAX_RETURN_IF_ERROR(use(storage));
        const void* data = capture.addresses[storage];
        uint64_t size = capture.sizes[storage];
        if (part != ggml_frontend::Part::kWhole) {
            FORNAX_ASSIGN_OR_RETURN(std::shared_ptr<const PackedWeights> pack,
                                    weights.Get(MatrixOf(capture, storage)));
            data = pack->part(part)->data();
            size = pack->part(part)->size_bytes();
            bound->weights_.push_back(std::move(pack));
        }
        FORNAX_ASSIGN_OR_RETURN([[maybe_unused]] const bool in_place,
                                bound->instance_->BindInput(i, data, size));
    }
    for (size_t i = 0; i < compiled->outputs.size(); ++i) {
        const uint32_t storage = compiled->outputs[i];
        FORNAX_RETURN_IF_ERROR(use(storage));
        FORNAX_ASSIGN_OR_RETURN(
            [[maybe_unused]] const bool in_place,
            bound->instance_->BindOutput(i, capture.addresses[storage], capture.sizes[storage]));
    }
    bound->compiled_ = std::move(compiled);
    return bound;
}

Status BoundGraph::Run() {
    if (put_off_in_ != nullptr && std::exchange(has_run_, true)) {
        const Status packed = put_off_in_->PackSome();
        if (!packed.ok()) {
            LogWarningOnce("ggml.packs", "ggml: weights stay where they are. {}",
                           packed.error().message);
        }
    }
    if (!LogEnabled(LogLevel::kDebug)) {
        return instance_->Run();
    }
    std::vector<runtime::StepTime> times;
    FORNAX_RETURN_IF_ERROR(instance_->Run(&times));
    constexpr size_t kShown = 20;
    double total = 0;
    for (const runtime::StepTime& time : times) {
        total += time.nanoseconds;
    }
    std::sort(times.begin(), times.end(),
              [](const auto& a, const auto& b) { return a.nanoseconds > b.nanoseconds; });
    LogDebug("ggml: {} steps in {:.3f} ms", times.size(), total / 1e6);
    for (size_t i = 0; i < std::min(kShown, times.size()); ++i) {
        const graph::PlanStep& step = compiled_->program->plan().steps[times[i].step];
        const auto* dispatch = std::get_if<graph::DispatchStep>(&step);
        LogDebug("ggml: {:9.3f} ms step {} {}", times[i].nanoseconds / 1e6, times[i].step,
                 dispatch == nullptr ? "on the host" : dispatch->name);
    }
    return OkStatus();
}

bool BoundGraph::Uses(const void* begin, uint64_t size) const {
    return std::any_of(memory_.begin(), memory_.end(), [&](const Range& range) {
        return Overlap(range.begin, range.size, begin, size);
    });
}

// --- Executor ------------------------------------------------------------------------------------

Result<std::shared_ptr<BoundGraph>> Executor::Prepare(std::span<abi::Tensor* const> nodes,
                                                      uint64_t identifier) {
    const auto start = std::chrono::steady_clock::now();
    const auto microseconds = [&] {
        using Microseconds = std::chrono::duration<double, std::micro>;
        return Microseconds(std::chrono::steady_clock::now() - start).count();
    };
    const auto found = [&](std::string_view by) {
        LogDebug("ggml: a graph of {} nodes is found by {} in {:.1f} us", nodes.size(), by,
                 microseconds());
        return kept_.front().bound;
    };
    thread_local std::vector<std::byte> bytes;
    std::unique_lock lock(mutex_);
    for (auto entry = kept_.begin(); entry != kept_.end(); ++entry) {
        if (identifier != 0 && entry->identifier == identifier &&
            entry->place.data() == nodes.data() && entry->place.size() == nodes.size()) {
            if (entry->bound->IsOutdated()) {
                kept_.erase(entry);
                break;
            }
            kept_.splice(kept_.begin(), kept_, entry);
            return found("its identifier");
        }
    }
    const Hash128 hash = HashTensors(nodes, bytes);
    for (auto entry = kept_.begin(); entry != kept_.end(); ++entry) {
        // Equal nodes read the same leaves, which so are known to exist.
        if (entry->nodes == hash && entry->leaves == HashTensors(entry->leaf_tensors, bytes)) {
            if (entry->bound->IsOutdated()) {
                kept_.erase(entry);
                break;
            }
            kept_.splice(kept_.begin(), kept_, entry);
            entry->identifier = identifier;
            entry->place = nodes;
            return found("its contents");
        }
    }
    lock.unlock();
    Capture capture = CaptureNodes(host_, nodes);
    LogNodes(capture);
    ExportOnce(capture);
    capture.graph.in_place = MayReadInPlace(capture, compiler_->weights());
    auto found_plan = compiler_->Compile(capture.graph);
    if (!found_plan.ok() && capture.graph.in_place) {  // a directory of kernels may have the other
        capture.graph.in_place = false;
        found_plan = compiler_->Compile(capture.graph);
    }
    FORNAX_ASSIGN_OR_RETURN(std::shared_ptr<const CompiledGraph> compiled, std::move(found_plan));
    FORNAX_ASSIGN_OR_RETURN(std::shared_ptr<BoundGraph> bound,
                            BoundGraph::Create(std::move(compiled), capture, compiler_->weights()));
    lock.lock();
    const Hash128 leaves = HashTensors(capture.leaves, bytes);
    kept_.push_front({identifier, nodes, hash, leaves, std::move(capture.leaves), bound});
    std::erase_if(bound_, [](const auto& other) { return other.expired(); });
    bound_.push_back(bound);
    if (kept_.size() > kMaxKept) {
        kept_.pop_back();
    }
    LogDebug("ggml: a graph of {} nodes is ready after {:.1f} ms", nodes.size(),
             microseconds() / 1e3);
    return bound;
}

void Executor::Forget(const void* begin, uint64_t size) {
    const std::lock_guard lock(mutex_);
    for (const std::weak_ptr<BoundGraph>& weak : bound_) {
        const std::shared_ptr<BoundGraph> bound = weak.lock();
        if (bound != nullptr && bound->Uses(begin, size)) {
            bound->LetGo();
        }
    }
    std::erase_if(kept_, [](const Entry& entry) { return entry.bound->IsOutdated(); });
}

}  // namespace fornax::ggml_plugin
