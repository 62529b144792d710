// Loads for the very inputs that are run, so that one plan is compiled and no more.
#include "tools/fornax/network_run.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "tools/fornax/manifest.h"

namespace fornax::tool {
namespace {

using graph::Tensor;

class Stopwatch {
  public:
    double milliseconds() const {
        return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_)
            .count();
    }

  private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

Status SetInputs(runtime::Instance& instance, const std::vector<Tensor>& tensors) {
    for (size_t i = 0; i < tensors.size(); ++i) {
        if (tensors[i].element == graph::ElementType::kString) {
            FORNAX_RETURN_IF_ERROR(instance.SetInputStrings(i, tensors[i].strings));
        } else if (!tensors[i].data->empty()) {
            std::memcpy(instance.InputBytes(i).data(), tensors[i].data->data(),
                        tensors[i].data->size());
        }
    }
    return OkStatus();
}

std::vector<Tensor> Outputs(const runtime::Instance& instance, const graph::Plan& plan) {
    std::vector<Tensor> outputs;
    for (size_t i = 0; i < plan.outputs.size(); ++i) {
        const graph::ElementType element = plan.outputs[i].type.element;
        const runtime::Dims dims = instance.OutputDims(i).value_or(runtime::Dims());
        if (element == graph::ElementType::kString) {
            outputs.push_back({element, dims, nullptr, instance.OutputStrings(i)});
            continue;
        }
        uint8_t* data = nullptr;
        outputs.push_back(Tensor::Zeros(element, dims, &data));
        std::ranges::copy(instance.OutputBytes(i), data);
    }
    return outputs;
}

Status Measure(runtime::Instance& instance, const RunOptions& options, NetworkRun& run) {
    const Stopwatch all;
    FORNAX_RETURN_IF_ERROR(instance.Run());
    run.first_run_ms = all.milliseconds();
    run.milliseconds = {run.first_run_ms};
    while (all.milliseconds() < 1e3 * options.warm_up_seconds) {
        FORNAX_RETURN_IF_ERROR(instance.Run());
    }
    if (options.repeat > 1 || options.warm_up_seconds > 0) {
        run.milliseconds.clear();
    }
    while (run.milliseconds.size() < options.repeat) {
        const Stopwatch one;
        FORNAX_RETURN_IF_ERROR(instance.Run());
        run.milliseconds.push_back(one.milliseconds());
    }
    if (options.with_profile) {
        FORNAX_RETURN_IF_ERROR(instance.Run(&run.times));
    }
    return OkStatus();
}

}  // namespace

double NetworkRun::median_ms() const {
    std::vector<double> sorted = milliseconds;
    std::ranges::sort(sorted);
    return sorted[sorted.size() / 2];
}

double NetworkRun::least_ms() const {
    return *std::ranges::min_element(milliseconds);
}

void SelectDrivers(const std::string& device) {
    if (std::getenv("VK_DRIVER_FILES") != nullptr || std::getenv("VK_ICD_FILENAMES") != nullptr) {
        return;
    }
    const Result<std::filesystem::path> manifest = FindManifest();
    if (!manifest.ok()) {
        return;
    }
    if (device.empty()) {
        SelectDriver(*manifest);
    } else {
        setenv("VK_ADD_DRIVER_FILES", manifest->c_str(), 1);
    }
}

Result<NetworkRun> RunNetwork(const NetworkOptions& network,
                              const NetworkData& data,
                              const std::vector<NetworkInput>& inputs,
                              const std::map<std::string, int64_t>& dims,
                              const RunOptions& options) {
    const Stopwatch load;
    SelectDrivers(options.device);
    runtime::ModelOptions model_options;
    model_options.device = options.device;
    model_options.dims = dims;
    model_options.dynamic_sizes.names = {network.dynamic.begin(), network.dynamic.end()};
    for (size_t i = 0; i < inputs.size(); ++i) {
        model_options.input_shapes[inputs[i].name] = data.tensors[i].dims;
        model_options.input_values[inputs[i].name] = data.tensors[i];
    }
    model_options.strict = network.strict;
    model_options.precision = network.ParsedPrecision();
    model_options.cache = options.use_cache ? "" : "none";
    model_options.progress = options.progress;
    model_options.with_boundaries = options.with_boundaries;
    NetworkRun run;
    FORNAX_ASSIGN_OR_RETURN(
        run.model, runtime::Model::Load(network.path, model_options, runtime::LinkedCompiler()));
    runtime::ModelSession session(run.model);
    FORNAX_RETURN_IF_ERROR(session.With(
        data.tensors, [&](runtime::Instance& instance, const runtime::ModelPlan&) -> Status {
            FORNAX_RETURN_IF_ERROR(SetInputs(instance, data.tensors));
            run.load_ms = load.milliseconds();
            FORNAX_RETURN_IF_ERROR(Measure(instance, options, run));
            FORNAX_ASSIGN_OR_RETURN(run.plan, run.model->PlanFor(data.tensors));
            run.outputs = Outputs(instance, run.graph_plan());
            run.memory = instance.memory();
            run.bindings = instance.bindings();
            return OkStatus();
        }));
    return run;
}

}  // namespace fornax::tool
