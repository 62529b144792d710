// `fornax run`: runs a network on a Vulkan device and prints its results, its times and its memory.
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/hash.h"
#include "tools/fornax/command.h"
#include "tools/fornax/graph_options.h"
#include "tools/fornax/graph_report.h"
#include "tools/fornax/graph_samples.h"
#include "tools/fornax/manifest.h"
#include "tools/runtime/plan_runner.h"

namespace fornax::tool {
namespace {

constexpr const char* kExamples =
    "The data of inputs and labels are ONNX tensors (.pb), as ONNX's own test data are. An input "
    "of\n"
    "more samples than the network takes at a time is run in batches. Without --input, the "
    "network\n"
    "runs on random numbers.\n"
    "\n"
    "Examples:\n"
    "  fornax run models/digits.onnx --input models/digits_test_images.pb \\\n"
    "             --labels models/digits_test_labels.pb\n"
    "  fornax run digits.plan --input image.pb --output scores.pb --device llvmpipe";

constexpr CacheKind kPipelineCacheKind = {"pipelines", "bin", 1, true};

struct Options {
    GraphOptions graph;
    std::vector<std::string> inputs;
    std::vector<std::string> outputs;
    std::string labels;
    std::string device;
    bool explain = false;
};

// Makes the loader see the Fornax driver: alone, or, when a device is asked for by name, beside the
// others. Without a Fornax driver, or when the user has chosen drivers, the loader's list is used
// as it is.
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

// Numbers in [-1, 1), the same in every run.
std::vector<HostTensor> RandomInputs(const legacy_graph::Plan& plan) {
    std::mt19937 generator(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<HostTensor> inputs;
    for (const legacy_graph::PlanPort& port : plan.inputs) {
        HostTensor tensor;
        tensor.dims.assign(port.type.shape.dims().begin(), port.type.shape.dims().end());
        tensor.floats.resize(port.type.shape.elements());
        for (float& value : tensor.floats) {
            value = uniform(generator);
        }
        inputs.push_back(std::move(tensor));
    }
    return inputs;
}

std::vector<HostTensor> ReadInputs(const std::vector<std::string>& paths) {
    std::vector<HostTensor> inputs;
    for (const std::string& path : paths) {
        inputs.push_back(ValueOrExit(legacy_onnx::ReadTensorFile(path)));
    }
    return inputs;
}

std::vector<int64_t> ReadLabels(const std::string& path, size_t samples) {
    HostTensor labels = ValueOrExit(legacy_onnx::ReadTensorFile(path));
    if (labels.is_float()) {
        ExitWithError(
            {ErrorCode::kInvalidArgument, fmt::format("The labels in {} are not integers.", path)});
    }
    if (labels.integers.size() != samples) {
        ExitWithError(
            {ErrorCode::kInvalidArgument, fmt::format("The file {} holds {} labels for {} samples.",
                                                      path, labels.integers.size(), samples)});
    }
    return std::move(labels.integers);
}

// The key of the driver's pipeline cache for this plan: another driver build has another one.
Hash128 PipelineCacheKey(const runtime::VulkanDevice& device, const legacy_graph::Plan& plan) {
    const VkPhysicalDeviceProperties& properties = device.properties();
    return Hasher()
        .Append("pipelines")
        .Append(plan.graph_hash)
        .Append(device.name())
        .Append(properties.vendorID)
        .Append(properties.deviceID)
        .Append(properties.driverVersion)
        .AppendArray(std::span<const uint8_t>(properties.pipelineCacheUUID))
        .Finish();
}

std::unique_ptr<runtime::PlanRunner> MakeRunner(const runtime::VulkanDevice& device,
                                                const legacy_graph::Plan& plan,
                                                bool use_cache,
                                                DiskCache& cache) {
    const Hash128 key = PipelineCacheKey(device, plan);
    std::optional<std::vector<std::byte>> stored;
    if (use_cache) {
        stored = cache.Get(kPipelineCacheKind, key);
    }
    auto runner = ValueOrExit(runtime::PlanRunner::Create(
        device, plan, stored ? std::span<const std::byte>(*stored) : std::span<const std::byte>()));
    const runtime::PipelineReport& report = runner->pipelines();
    if (use_cache && (!stored || report.from_cache < report.pipelines)) {
        const std::vector<std::byte> data = runner->PipelineCacheData();
        if (!data.empty() && data != stored) {
            cache.Put(kPipelineCacheKind, key, data);
        }
    }
    fmt::print("kernels    {} in {:.1f} ms", report.pipelines, report.milliseconds);
    if (report.cache_known) {
        fmt::print(", {} of them found in the cache", report.from_cache);
    } else if (stored) {
        fmt::print(", with the driver's data found in the cache");
    }
    fmt::print("\n");
    return runner;
}

void Run(const Options& options) {
    std::vector<HostTensor> inputs = ReadInputs(options.inputs);
    // Few samples should not be filled up to the default batch.
    const bool few =
        !inputs.empty() && !inputs[0].dims.empty() && inputs[0].dims[0] < kDefaultBatch;
    const PlanRequest request =
        ValueOrExit(options.graph.ToRequest(few ? inputs[0].dims[0] : kDefaultBatch), kExitUsage);
    DiskCache cache = DiskCache::OpenDefault();
    const LoadedPlan loaded = ValueOrExit(LoadPlan(request, cache));
    const legacy_graph::Plan& plan = loaded.plan;
    if (inputs.empty()) {
        inputs = RandomInputs(plan);
    }
    const Batching batching = ValueOrExit(PlanBatches(plan, inputs));
    const std::vector<int64_t> labels = options.labels.empty()
                                            ? std::vector<int64_t>()
                                            : ReadLabels(options.labels, batching.samples);
    if (options.outputs.size() > plan.outputs.size()) {
        ExitWithError({ErrorCode::kInvalidArgument,
                       fmt::format("{} output files are given, and the network has {} outputs.",
                                   options.outputs.size(), plan.outputs.size())});
    }

    fmt::print("model      {} from {}\n", plan.name, options.graph.path);
    fmt::print("plan       {}, graph {}\n", loaded.Describe(), plan.graph_hash);
    if (options.explain) {
        fmt::print("\n{}\n", legacy_graph::ToText(plan));
    }
    SelectDrivers(options.device);
    const auto device = ValueOrExit(runtime::VulkanDevice::Open(options.device));
    fmt::print("device     {}\n", device->name());
    const auto runner = MakeRunner(*device, plan, request.use_cache, cache);

    std::vector<double> nanoseconds(plan.dispatches.size(), 0);
    double submit_nanoseconds = 0;
    const std::vector<HostTensor> results = ValueOrExit(
        RunBatches(plan, batching, inputs,
                   [&](std::span<const std::span<const float>> in,
                       std::span<const std::span<float>> out) -> Status {
                       FORNAX_RETURN_IF_ERROR(runner->Run(in, out));
                       const std::vector<double>& times = runner->dispatch_nanoseconds();
                       for (size_t i = 0; i < times.size(); ++i) {
                           nanoseconds[i] += times[i] / static_cast<double>(batching.runs);
                       }
                       submit_nanoseconds += runner->submit_nanoseconds();
                       return OkStatus();
                   }));
    if (runner->dispatch_nanoseconds().empty()) {
        nanoseconds.clear();
    }
    for (size_t i = 0; i < options.outputs.size(); ++i) {
        ExitIfError(
            legacy_onnx::WriteTensorFile(options.outputs[i], plan.outputs[i].name, results[i]));
    }

    fmt::print("runs       {} of {} samples each, {:.1f} us a run from submission to fence\n\n",
               batching.runs, batching.per_run,
               submit_nanoseconds / 1e3 / static_cast<double>(batching.runs));
    fmt::print("dispatches (times are means of {} runs)\n{}\n", batching.runs,
               DispatchTable(plan, nanoseconds));
    fmt::print("memory\n{}\n", MemoryTable(plan));
    if (!options.inputs.empty()) {
        fmt::print("{}", PredictionReport(results[0], labels));
    }
}

}  // namespace

void AddRunCommand(CLI::App& app) {
    CLI::App* run = app.add_subcommand("run", "Run a neural network on the Fornax device");
    run->footer(kExamples);
    auto options = std::make_shared<Options>();
    options->graph.AddTo(*run);
    run->add_option("--input", options->inputs, "Data of an input, in the order of the inputs");
    run->add_option("--output", options->outputs,
                    "Where to write an output, in the order of the outputs");
    run->add_option("--labels", options->labels, "The right class of every sample");
    run->add_option(
        "--device", options->device,
        "A Vulkan device by index or part of its name (default: Fornax, else the first)");
    run->add_flag("--explain", options->explain, "Print the plan");
    run->callback([options] { Run(*options); });
}

}  // namespace fornax::tool
