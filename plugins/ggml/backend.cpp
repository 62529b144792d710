// A stream of the host: computes graphs, and plans of graphs, one after the other.
//
// All of it happens before a function returns, so that events and asynchronous copies have nothing
// left to wait for. A graph that does not run here is computed by ggml's CPU backend, which works
// in the same memory.
#include <cstring>

#include "base/log.h"
#include "plugins/ggml/device.h"
#include "plugins/ggml/fault.h"
#include "plugins/ggml/trace.h"

namespace fornax::ggml_plugin {
namespace {

// "fornax ggml" and a number: how the host tells backends apart.
constexpr uint8_t kGuid[16] = {'f', 'o', 'r', 'n', 'a', 'x', ' ', 'g',
                               'g', 'm', 'l', 0,   0,   0,   0,   1};

struct Stream {
    PluginDevice* device = nullptr;
    std::shared_ptr<Executor> executor;
    abi::Backend* cpu = nullptr;  // made when a graph first fails
};

Stream& StreamOf(const abi::Backend* backend) {
    return *static_cast<Stream*>(backend->context);
}

const char* GetName(abi::Backend* backend) {
    return StreamOf(backend).device->name().c_str();
}

void Free(abi::Backend* backend) {
    const Stream& stream = StreamOf(backend);
    if (stream.cpu != nullptr) {
        stream.device->host().backend_free(stream.cpu);
    }
    delete &stream;
    delete backend;
}

std::span<abi::Tensor* const> NodesOf(const Host& host, const abi::Graph* graph) {
    return {host.graph_nodes(graph), static_cast<size_t>(host.graph_n_nodes(graph))};
}

Result<std::shared_ptr<BoundGraph>> Prepare(Stream& stream, const abi::Graph* graph) {
    FORNAX_RETURN_IF_ERROR(InjectedFault("prepare"));
    const Host& host = stream.device->host();
    return stream.executor->Prepare(NodesOf(host, graph), host.IdentifierOf(*graph));
}

Status Run(BoundGraph& bound) {
    FORNAX_RETURN_IF_ERROR(InjectedFault("run"));
    return bound.Run();
}

abi::Status StatusOf(const Status& status) {
    if (status.ok()) {
        return abi::kStatusSuccess;
    }
    LogError("ggml: a graph did not run: {}", status.error().message);
    const ErrorCode code = status.error().code;
    return code == ErrorCode::kOutOfHostMemory || code == ErrorCode::kOutOfDeviceMemory
               ? abi::kStatusAllocFailed
               : abi::kStatusFailed;
}

// Nothing may be thrown into the host.
template <typename Function>
abi::Status Guarded(const Function& function) {
    try {
        return StatusOf(function());
    } catch (const std::bad_alloc&) {
        return StatusOf(Error{ErrorCode::kOutOfHostMemory, "There is no memory left."});
    } catch (const std::exception& error) {
        return StatusOf(Error{ErrorCode::kInternal, error.what()});
    }
}

// Computes a graph that failed with ggml's CPU backend. The status of the failure if there is none.
// What the graph writes in place (caches) it writes again, from the same sources.
abi::Status ComputeOnCpu(Stream& stream, abi::Graph* graph, abi::Status failure) {
    const Host& host = stream.device->host();
    if (stream.cpu == nullptr && host.backend_init_by_type != nullptr) {
        stream.cpu = host.backend_init_by_type(abi::kDeviceTypeCpu, nullptr);
    }
    if (stream.cpu == nullptr || host.backend_graph_compute == nullptr) {
        LogError("ggml: there is no CPU backend that could compute the graph.");
        return failure;
    }
    LogWarning("ggml: the CPU backend computes the graph.");
    return host.backend_graph_compute(stream.cpu, graph);
}

abi::Status Compute(abi::Backend* backend, abi::Graph* graph) {
    Stream& stream = StreamOf(backend);
    const abi::Status status = Guarded([&]() -> Status {
        FORNAX_ASSIGN_OR_RETURN(const std::shared_ptr<BoundGraph> bound, Prepare(stream, graph));
        return Run(*bound);
    });
    return status == abi::kStatusSuccess ? status : ComputeOnCpu(stream, graph, status);
}

// --- Copies and events ---------------------------------------------------------------------------

void SetTensorAsync(abi::Backend*,
                    abi::Tensor* tensor,
                    const void* data,
                    size_t offset,
                    size_t size) {
    abi::Buffer* buffer = BufferOf(*tensor);
    buffer->functions.set_tensor(buffer, tensor, data, offset, size);
}

void GetTensorAsync(abi::Backend*,
                    const abi::Tensor* tensor,
                    void* data,
                    size_t offset,
                    size_t size) {
    abi::Buffer* buffer = BufferOf(*tensor);
    buffer->functions.get_tensor(buffer, tensor, data, offset, size);
}

// False: the host copies by itself.
bool CopyTensorAsync(abi::Backend*,
                     abi::Backend* to,
                     const abi::Tensor* source,
                     abi::Tensor* target) {
    abi::Buffer* buffer = BufferOf(*target);
    return to->device == DeviceHandleOf(buffer) && buffer->functions.cpy_tensor != nullptr &&
           buffer->functions.cpy_tensor(buffer, source, target);
}

void Synchronize(abi::Backend*) {}
void RecordEvent(abi::Backend*, abi::Event*) {}
void WaitForEvent(abi::Backend*, abi::Event*) {}

// --- Plans ---------------------------------------------------------------------------------------

// What the host holds of a plan. Its graph was prepared when it was made, and outlives it.
struct HostPlan {
    std::shared_ptr<BoundGraph> bound;
    abi::Graph* graph = nullptr;
};

void* CreatePlan(abi::Backend* backend, const abi::Graph* graph) {
    auto plan = std::make_unique<HostPlan>();
    plan->graph = const_cast<abi::Graph*>(graph);
    // A plan without a bound graph is computed by the CPU backend.
    Guarded([&]() -> Status {
        FORNAX_ASSIGN_OR_RETURN(plan->bound, Prepare(StreamOf(backend), graph));
        return OkStatus();
    });
    return plan.release();
}

void UpdatePlan(abi::Backend* backend, void* plan, const abi::Graph* graph) {
    auto& host_plan = *static_cast<HostPlan*>(plan);
    host_plan.bound = nullptr;
    host_plan.graph = const_cast<abi::Graph*>(graph);
    Guarded([&]() -> Status {
        FORNAX_ASSIGN_OR_RETURN(host_plan.bound, Prepare(StreamOf(backend), graph));
        return OkStatus();
    });
}

void FreePlan(abi::Backend*, void* plan) {
    delete static_cast<HostPlan*>(plan);
}

abi::Status ComputePlan(abi::Backend* backend, void* plan) {
    auto& host_plan = *static_cast<HostPlan*>(plan);
    // Weights that were written since have other packs.
    if (host_plan.bound != nullptr && host_plan.bound->IsOutdated()) {
        UpdatePlan(backend, plan, host_plan.graph);
    }
    abi::Status status = abi::kStatusFailed;
    if (host_plan.bound != nullptr) {
        status = Guarded([&] { return Run(*host_plan.bound); });
    }
    return status == abi::kStatusSuccess ? status
                                         : ComputeOnCpu(StreamOf(backend), host_plan.graph, status);
}

}  // namespace

abi::Backend* NewBackend(PluginDevice& device) {
    auto stream = std::make_unique<Stream>();
    stream->device = &device;
    stream->executor = device.AddExecutor();
    auto* backend = new abi::Backend();
    backend->guid = kGuid;
    abi::BackendFunctions& functions = backend->functions;
    functions.get_name = kTraced<"backend_get_name", GetName>;
    functions.free = kTraced<"backend_free", Free>;
    functions.set_tensor_async = kTraced<"set_tensor_async", SetTensorAsync>;
    functions.get_tensor_async = kTraced<"get_tensor_async", GetTensorAsync>;
    functions.cpy_tensor_async = kTraced<"cpy_tensor_async", CopyTensorAsync>;
    functions.synchronize = kTraced<"synchronize", Synchronize>;
    functions.graph_plan_create = kTraced<"graph_plan_create", CreatePlan>;
    functions.graph_plan_free = kTraced<"graph_plan_free", FreePlan>;
    functions.graph_plan_update = kTraced<"graph_plan_update", UpdatePlan>;
    functions.graph_plan_compute = kTraced<"graph_plan_compute", ComputePlan>;
    functions.graph_compute = kTraced<"graph_compute", Compute>;
    functions.event_record = kTraced<"event_record", RecordEvent>;
    functions.event_wait = kTraced<"event_wait", WaitForEvent>;
    backend->device = device.handle();
    backend->context = stream.release();
    return backend;
}

}  // namespace fornax::ggml_plugin
