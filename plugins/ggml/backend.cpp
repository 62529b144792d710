// A stream of the host: computes graphs, and plans of graphs, one after the other.
#include "base/log.h"
#include "plugins/ggml/device.h"

namespace fornax::ggml_plugin {
namespace {

// "fornax ggml" and a number: how the host tells backends apart.
constexpr uint8_t kGuid[16] = {'f', 'o', 'r', 'n', 'a', 'x', ' ', 'g',
                               'g', 'm', 'l', 0,   0,   0,   0,   1};

struct Stream {
    PluginDevice* device = nullptr;
    std::shared_ptr<Executor> executor;
};

Stream& StreamOf(const abi::Backend* backend) {
    return *static_cast<Stream*>(backend->context);
}

const char* GetName(abi::Backend* backend) {
    return StreamOf(backend).device->name().c_str();
}

void Free(abi::Backend* backend) {
    delete &StreamOf(backend);
    delete backend;
}

std::span<abi::Tensor* const> NodesOf(const Host& host, const abi::Graph* graph) {
    return {host.graph_nodes(graph), static_cast<size_t>(host.graph_n_nodes(graph))};
}

Result<std::shared_ptr<BoundGraph>> Prepare(Stream& stream, const abi::Graph* graph) {
    return stream.executor->Prepare(NodesOf(stream.device->host(), graph));
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

abi::Status Compute(abi::Backend* backend, abi::Graph* graph) {
    return Guarded([&]() -> Status {
        FORNAX_ASSIGN_OR_RETURN(const std::shared_ptr<BoundGraph> bound,
                                Prepare(StreamOf(backend), graph));
        return bound->Run();
    });
}

// --- Plans ---------------------------------------------------------------------------------------

// What the host holds of a plan. Its graph was prepared when it was made.
struct HostPlan {
    std::shared_ptr<BoundGraph> bound;
};

void* CreatePlan(abi::Backend* backend, const abi::Graph* graph) {
    auto plan = std::make_unique<HostPlan>();
    const abi::Status status = Guarded([&]() -> Status {
        FORNAX_ASSIGN_OR_RETURN(plan->bound, Prepare(StreamOf(backend), graph));
        return OkStatus();
    });
    return status == abi::kStatusSuccess ? plan.release() : nullptr;
}

void FreePlan(abi::Backend*, void* plan) {
    delete static_cast<HostPlan*>(plan);
}

abi::Status ComputePlan(abi::Backend*, void* plan) {
    return Guarded([&]() -> Status {
        if (plan == nullptr) {
            return Error{ErrorCode::kInvalidArgument, "The plan could not be made."};
        }
        return static_cast<HostPlan*>(plan)->bound->Run();
    });
}

}  // namespace

abi::Backend* NewBackend(PluginDevice& device) {
    auto stream = std::make_unique<Stream>();
    stream->device = &device;
    stream->executor = device.AddExecutor();
    auto* backend = new abi::Backend();
    backend->guid = kGuid;
    backend->functions.get_name = GetName;
    backend->functions.free = Free;
    backend->functions.graph_plan_create = CreatePlan;
    backend->functions.graph_plan_free = FreePlan;
    backend->functions.graph_plan_compute = ComputePlan;
    backend->functions.graph_compute = Compute;
    backend->device = device.handle();
    backend->context = stream.release();
    return backend;
}

}  // namespace fornax::ggml_plugin
