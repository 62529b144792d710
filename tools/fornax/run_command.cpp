// `fornax run`: runs a network on a Vulkan device, writes its outputs, and prints what it took.
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "npu/description/read.h"
#include "npu/replay/record_file.h"
#include "tools/fornax/command.h"
#include "tools/fornax/network.h"
#include "tools/fornax/network_inputs.h"
#include "tools/fornax/network_run.h"
#include "tools/fornax/npu_report.h"
#include "tools/fornax/plan_report.h"
#include "tools/fornax/predictions.h"
#include "tools/fornax/progress.h"
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
    bool explain = false;
    bool profile = false;
    size_t top_steps = 20;
    std::string report_dir;
    std::string records;
    std::string json;
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

NetworkRun RunWithProgress(const Options& options,
                           const Network& network,
                           const NetworkData& data,
                           const std::map<std::string, int64_t>& dims) {
    ProgressLine line;
    RunOptions run = options.run;
    run.use_cache = !options.no_cache;
    run.with_profile = options.profile;
    run.with_boundaries = options.explain || !options.report_dir.empty();
    run.progress = [&line](const runtime::LoadProgress& progress) {
        line.Show(progress.stage, progress.done, progress.total);
    };
    return ValueOrExit(RunNetwork(options.network, data, network.inputs, dims, run));
}

// What --explain, --profile and --write-report ask for.
void ShowPlan(const Options& options,
              const NetworkRun& run,
              const std::optional<bench::HostLimits>& limits,
              const std::optional<runtime::Modelled>& modelled) {
    const std::vector<graph::Boundary>& boundaries = run.plan->boundaries;
    if (options.explain && boundaries.empty()) {
        fmt::print("\nThe plan is of a file, which does not hold why its kernels are.\n");
    } else if (options.explain) {
        fmt::print("\nvalues in memory between kernels\n{}",
                   BoundaryTable(boundaries, run.bindings));
    }
    std::string profile;
    if (options.profile) {
        profile =
            ProfileTable(run.graph_plan(), run.bindings, run.times, *limits, options.top_steps);
        fmt::print("\ntimes of one run, step by step\n{}", profile);
    }
    if (modelled) {
        const std::string table = ModelledTable(*modelled, options.top_steps);
        fmt::print("\nthe same steps on the machine that FORNAX_NPU describes\n{}", table);
        profile += "\n" + table;
    }
    if (!options.report_dir.empty()) {
        ExitIfError(WritePlanReport(
            options.report_dir, {run.graph_plan(), boundaries, run.bindings, run.memory, profile}));
        fmt::print("written    {}/nodes.txt and what is beside it\n", options.report_dir);
    }
}

runtime::PlanRecords RecordsOfRun(const NetworkRun& run) {
    return runtime::RecordsOf(run.graph_plan(), run.bindings, run.memory,
                              run.plan->program->kernels());
}

// The run's plan on the machine that FORNAX_NPU describes, for --profile.
std::optional<runtime::Modelled> ModelRun(const std::optional<npu::Description>& description,
                                          const NetworkRun& run) {
    if (!description) {
        return std::nullopt;
    }
    return ValueOrExit(runtime::ReplayPlan(*description, RecordsOfRun(run)));
}

void WriteRecords(const std::string& path, const NetworkRun& run) {
    const runtime::PlanRecords made = RecordsOfRun(run);
    ExitIfError(npu::WriteRecordFile(path, made.records));
    fmt::print("written    {}: {} cost records of one run", path, made.records.size());
    if (made.host_steps + made.unknown_steps > 0) {
        fmt::print(", without {} steps on the host and {} of unknown sizes", made.host_steps,
                   made.unknown_steps);
    }
    fmt::print("\n");
}

void Run(const Options& options) {
    // Before the work, so that a description that is wrong costs nothing.
    const std::optional<npu::Description> description =
        options.profile ? ValueOrExit(npu::DescriptionOfEnvironment()) : std::nullopt;
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
    const NetworkRun run = RunWithProgress(options, network, data, dims);

    fmt::print("{}{}{}{}{}", PlanSummary(options.network, run), HostStepList(run.graph_plan()),
               PortList(data, run), TimeSummary(run), MemorySummary(run.graph_plan(), run.memory));
    const std::vector<tensors::NamedTensor> outputs = Named(run.graph_plan().outputs, run.outputs);
    if (!options.output_dir.empty()) {
        ExitIfError(WriteOutputs(options, outputs));
    }
    if (!options.records.empty()) {
        WriteRecords(options.records, run);
    }
    const auto limits =
        options.profile ? std::optional(bench::MeasureHostLimits(/*quick=*/false)) : std::nullopt;
    const std::optional<runtime::Modelled> modelled = ModelRun(description, run);
    ShowPlan(options, run, limits, modelled);
    if (!options.json.empty()) {
        ExitIfError(
            WriteOutputFile(options.json, RunToJson(options.network, run, limits, modelled)));
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
    run->add_flag("--explain", options->explain,
                  "Print why each value between kernels lies in memory, and how large it is");
    run->add_flag("--profile", options->profile,
                  "Print the time of each step of a further run beside the machine's limits");
    run->add_option("--top-steps", options->top_steps, "How many steps --profile lists")
        ->capture_default_str();
    run->add_option("--write-report", options->report_dir,
                    "A directory for text files: nodes.txt (which kernel computes a node), "
                    "boundaries.txt, plan.txt, memory.txt, profile.txt");
    run->add_option("--records", options->records,
                    "Write the cost records of a run to this file, for fornax profile and sweep");
    run->add_option("--json", options->json, "Write times and sizes to this file");
    run->add_flag("--no-cache", options->no_cache, "Neither look into the cache nor write to it");
    run->callback([options] { Run(*options); });
}

}  // namespace fornax::tool
