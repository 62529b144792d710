// `fornax run`: runs a network on a Vulkan device, writes its outputs, and prints what it took.
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "tools/fornax/command.h"
#include "tools/fornax/network.h"
#include "tools/fornax/network_inputs.h"
#include "tools/fornax/network_run.h"
#include "tools/fornax/predictions.h"
#include "tools/fornax/reference.h"
#include "tools/fornax/run_report.h"
#include "tools/tensors/tensor_file.h"

namespace fornax::tool {
namespace {

constexpr const char* kExamples =
    "Inputs without a file get random numbers: floats in [-1, 1), integers 0 or 1. Sizes that the\n"
    "model leaves open are those of the files, else of --dim, else 1.\n"
    "\n"
    "Examples:\n"
    "  fornax run models/digits.onnx --input models/digits_test_images.pb \\\n"
    "             --truth models/digits_test_labels.pb\n"
    "  fornax run model.onnx --input tokens=tokens.npy --output-dir results --format npz\n"
    "  fornax run model.onnx --dim batch=4 --repeat 20 --compare onnxruntime\n"
    "  fornax run model.plan --input image.npy --device llvmpipe";

struct Options {
    NetworkOptions network;
    InputOptions inputs;
    std::string output_dir;
    std::string format = "npy";
    std::string compare;
    std::string python;
    Tolerances tolerances;
    PredictionOptions predictions;
    RunOptions run;
    bool no_cache = false;
};

std::vector<tensors::NamedTensor> Named(const std::vector<graph::PlanPort>& ports,
                                        const std::vector<graph::Tensor>& values) {
    std::vector<tensors::NamedTensor> named;
    for (size_t i = 0; i < values.size(); ++i) {
        named.push_back({ports[i].name, values[i]});
    }
    return named;
}

// A name as a part of a path: what does not serve everywhere becomes '_', and no two are the same.
std::string FileName(const std::string& name, std::set<std::string>& taken) {
    std::string file;
    for (const char c : name) {
        const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                           (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';
        file.push_back(plain ? c : '_');
    }
    file = file.empty() || file[0] == '.' ? "_" + file : file.substr(0, 200);
    std::string unique = file;
    for (int i = 1; !taken.insert(unique).second; ++i) {
        unique = fmt::format("{}_{}", file, i);
    }
    return unique;
}

Status WriteOutputs(const Options& options, const std::vector<tensors::NamedTensor>& outputs) {
    FORNAX_RETURN_IF_ERROR(CreateDirectories(options.output_dir, 0777));
    if (options.format == "npz") {
        const std::string path = options.output_dir + "/outputs.npz";
        FORNAX_RETURN_IF_ERROR(tensors::WriteTensorFile(path, outputs));
        fmt::print("written    {}\n", path);
        return OkStatus();
    }
    std::set<std::string> taken;
    for (const tensors::NamedTensor& output : outputs) {
        const std::string path = fmt::format("{}/{}.{}", options.output_dir,
                                             FileName(output.name, taken), options.format);
        FORNAX_RETURN_IF_ERROR(tensors::WriteTensorFile(path, {output}));
        fmt::print("written    {}\n", path);
    }
    return OkStatus();
}

void Run(Options options) {
    const std::map<std::string, int64_t> dims =
        ValueOrExit(options.network.ParseDims(), kExitUsage);
    const Network network = ValueOrExit(DescribeNetwork(options.network.path));
    if (!options.compare.empty() && network.is_plan) {
        ExitWithError({ErrorCode::kInvalidArgument,
                       fmt::format("{} is a plan file, and --compare needs the model that it was "
                                   "made of.",
                                   network.path)},
                      kExitUsage);
    }
    const NetworkData data = ValueOrExit(PrepareInputs(network, options.inputs, dims));
    const std::string python =
        options.compare.empty() ? "" : ValueOrExit(FindPython(options.python));
    options.run.use_cache = !options.no_cache;
    const NetworkRun run =
        ValueOrExit(RunNetwork(options.network, data, network.inputs, dims, options.run));

    fmt::print("{}{}{}{}{}", PlanSummary(options.network, run), HostStepList(run.graph_plan()),
               PortList(data, run), TimeSummary(run), MemorySummary(run.graph_plan(), run.memory));
    const std::vector<tensors::NamedTensor> outputs = Named(run.graph_plan().outputs, run.outputs);
    if (!options.output_dir.empty()) {
        ExitIfError(WriteOutputs(options, outputs));
    }
    fmt::print("{}", ValueOrExit(DescribePredictions(options.predictions, run.outputs)));
    if (!options.compare.empty()) {
        std::fflush(stdout);
        const Comparison comparison = ValueOrExit(CompareWithOnnxruntime(
            python, network.path, Named(run.graph_plan().inputs, data.tensors), outputs,
            options.tolerances));
        fmt::print("\ndifferences from onnxruntime\n{}", comparison.text);
        if (!comparison.is_within) {
            ExitWithError({ErrorCode::kInternal,
                           "An output differs from onnxruntime's by more than all of the "
                           "tolerances."});
        }
    }
}

}  // namespace

void AddRunCommand(CLI::App& app) {
    CLI::App* run = app.add_subcommand("run", "Run a neural network on the Fornax device");
    run->footer(kExamples);
    auto options = std::make_shared<Options>();
    options->network.AddTo(*run);
    options->inputs.AddTo(*run);
    run->add_option("-o,--output-dir", options->output_dir,
                    "A directory for the outputs, a file each, named as they are");
    run->add_option("--format", options->format, "Of the outputs: npy, npz (one file) or pb")
        ->check(CLI::IsMember({"npy", "npz", "pb"}))
        ->capture_default_str();
    options->predictions.AddTo(*run);
    run->add_option("--repeat", options->run.repeat, "How often it is run; the median counts")
        ->check(CLI::Range(1, 1'000'000))
        ->capture_default_str();
    run->add_option("--warm-up", options->run.warm_up_seconds,
                    "Seconds of runs before those that count")
        ->check(CLI::Range(0.0, 3600.0))
        ->capture_default_str();
    run->add_option("--compare", options->compare,
                    "onnxruntime: print how far each output is from its; exit with 1 if an output "
                    "is outside of all of the tolerances")
        ->check(CLI::IsMember({"onnxruntime"}));
    run->add_option("--absolute", options->tolerances.absolute, "Tolerance of --compare")
        ->capture_default_str();
    run->add_option("--relative", options->tolerances.relative, "Tolerance of --compare")
        ->capture_default_str();
    run->add_option("--norm", options->tolerances.norm,
                    "Tolerance of --compare: of the difference, in proportion to the output's")
        ->capture_default_str();
    run->add_option("--python", options->python,
                    "The Python that has onnxruntime (else the source tree's, else python3)");
    run->add_option(
        "--device", options->run.device,
        "A Vulkan device by index or part of its name (default: Fornax, else the first)");
    run->add_flag("--no-cache", options->no_cache, "Neither look into the cache nor write to it");
    run->callback([options] { Run(*options); });
}

}  // namespace fornax::tool
