// `fornax npu`: describes NPUs, and gives the equations of a unit by themselves.
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/printable.h"
#include "npu/description/fields.h"
#include "npu/description/read.h"
#include "npu/replay/invariants.h"
#include "npu/replay/record_file.h"
#include "npu/units/matrix_unit.h"
#include "tools/bench/host_limits.h"
#include "tools/fornax/command.h"
#include "tools/fornax/manifest.h"
#include "tools/fornax/npu_host.h"
#include "tools/fornax/npu_report.h"

namespace fornax::tool {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  fornax npu describe laptop-45\n"
    "  fornax npu print edge-4 > mine.toml      a description to change\n"
    "  FORNAX_NPU=mine.toml fornax run models/digits.onnx --profile\n"
    "  fornax npu host -o host.toml              this machine, measured\n"
    "  fornax npu matrix --rows 32 --columns 32 -m 256 -n 128 -k 256\n"
    "\n"
    "A machine is a preset (edge-4, laptop-45, dc-400) or a TOML file; without one it is that of "
    "FORNAX_NPU.";

npu::Description MachineOf(const std::string& name) {
    if (!name.empty()) {
        return ValueOrExit(npu::LoadDescription(name));
    }
    auto described = ValueOrExit(npu::DescriptionOfEnvironment());
    if (!described) {
        ExitWithError({ErrorCode::kInvalidArgument,
                       "No machine is named, and FORNAX_NPU is not set; fornax npu describe NAME "
                       "takes edge-4, laptop-45, dc-400 or a file."},
                      kExitUsage);
    }
    return *described;
}

void Describe(const std::string& name, bool as_json) {
    const npu::Description description = MachineOf(name);
    if (!as_json) {
        fmt::print("{}", DescribeMachine(description));
        return;
    }
    nlohmann::json json = {{"name", description.name},
                           {"hash", description.Hash().ToHex()},
                           {"model_version", npu::kModelVersion}};
    json["fields"] = nlohmann::json::array();
    for (const npu::Field& field : npu::Fields()) {
        json["fields"].push_back(
            {{"table", field.table},
             {"key", field.key},
             {"unit", field.unit},
             {"meaning", field.meaning},
             {"faster", npu::kFasterNames[static_cast<size_t>(field.faster)]}});
        const double value = field.get(description);
        nlohmann::json& into = json[std::string(field.table)][std::string(field.key)];
        if (field.kind == npu::FieldKind::kWord) {
            into = field.words[static_cast<size_t>(value)];
        } else if (field.kind == npu::FieldKind::kInteger) {
            into = static_cast<uint64_t>(value);
        } else {
            into = value;
        }
    }
    fmt::print("{}\n", json.dump(2));
}

void Print(const std::string& name) {
    for (const npu::Preset& preset : npu::Presets()) {
        if (preset.name == name) {
            fmt::print("{}", preset.text);
            return;
        }
    }
    ExitWithError(
        {ErrorCode::kNotFound,
         fmt::format("There is no preset {}; there are edge-4, laptop-45 and dc-400.", name)},
        kExitUsage);
}

void Host(const HostMeasurement& how, const std::string& output) {
    SelectDriver(ValueOrExit(FindManifest()));
    const npu::Description host = ValueOrExit(MeasureHostDescription(how));
    const std::string text = DescriptionText(
        host, fmt::format("This machine as a device, measured by fornax npu host: {}.",
                          Printable(bench::HostProcessorName())));
    if (output.empty()) {
        fmt::print("{}", text);
        return;
    }
    ExitIfError(WriteOutputFile(output, text));
    fmt::print("written    {}, description {}\n", output, host.Hash().ToHex().substr(0, 16));
}

struct MatrixOptions {
    npu::ArrayShape array = {32, 32};
    npu::ProductShape product = {1, 1, 1};
    bool as_json = false;
};

void Matrix(const MatrixOptions& options) {
    const auto& [m, n, k] = options.product;
    const double macs = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    const double elements =
        static_cast<double>(options.array.rows) * static_cast<double>(options.array.columns);
    nlohmann::json json;
    for (const npu::Dataflow dataflow :
         {npu::Dataflow::kWeightStationary, npu::Dataflow::kOutputStationary,
          npu::Dataflow::kInputStationary}) {
        const std::string name(npu::kDataflowNames[static_cast<size_t>(dataflow)]);
        const npu::ProductCycles cycles =
            npu::CyclesOfProduct(options.array, options.product, dataflow);
        const double used = 100 * macs / (static_cast<double>(cycles.cycles) * elements);
        json[name] = {{"cycles", cycles.cycles}, {"folds", cycles.folds}, {"utilisation", used}};
        if (!options.as_json) {
            fmt::print("{:<17} {} cycles, {} folds, {:.1f} % of the array used\n", name,
                       cycles.cycles, cycles.folds, used);
        }
    }
    if (options.as_json) {
        fmt::print("{}\n", json.dump());
    }
}

// Checks each file on each machine; the first that does not hold ends the command.
void Check(const std::vector<std::string>& files, const std::vector<std::string>& machines) {
    std::vector<npu::Description> descriptions;
    for (const std::string& machine : machines) {
        descriptions.push_back(ValueOrExit(npu::LoadDescription(machine)));
    }
    for (const std::string& file : files) {
        const std::vector<npu::Record> records = ValueOrExit(npu::ReadRecordFile(file));
        for (const npu::Description& description : descriptions) {
            const Status holds = npu::CheckInvariants(description, records);
            if (!holds.ok()) {
                ExitWithError({holds.error().code,
                               fmt::format("{} on {}: {}", Printable(file),
                                           Printable(description.name), holds.error().message)});
            }
            fmt::print("{}: {} records, {} invariants hold; {}\n", Printable(file), records.size(),
                       npu::Invariants().size(), npu::StampOf(description));
        }
    }
}

}  // namespace

void AddNpuCommand(CLI::App& app) {
    CLI::App* npu = app.add_subcommand("npu", "Describe an NPU whose time is modelled");
    npu->footer(kExamples);
    npu->require_subcommand(1);

    auto name = std::make_shared<std::string>();
    auto as_json = std::make_shared<bool>(false);
    CLI::App* describe =
        npu->add_subcommand("describe", "Print a machine as a picture and a table");
    describe->add_option("machine", *name, "A preset or a file (default: FORNAX_NPU)");
    describe->add_flag("--json", *as_json, "Print it for programs");
    describe->callback([name, as_json] { Describe(*name, *as_json); });

    auto preset = std::make_shared<std::string>();
    CLI::App* print = npu->add_subcommand("print", "Print the text of a preset, to be changed");
    print->add_option("preset", *preset, "edge-4, laptop-45 or dc-400")->required();
    print->callback([preset] { Print(*preset); });

    auto how = std::make_shared<HostMeasurement>();
    auto output = std::make_shared<std::string>();
    CLI::App* host =
        npu->add_subcommand("host", "Measure this machine and print it as a description");
    host->add_option("-o,--output", *output, "Write the description to this file");
    host->add_flag("--quick", how->quick, "Shorter measurements: less exact");
    host->add_option("--passes", how->passes, "How often all is measured; the fastest counts")
        ->check(CLI::Range(1U, 100U))
        ->capture_default_str();
    host->callback([how, output] { Host(*how, *output); });

    CLI::App* reality = npu->add_subcommand(
        "reality", "Compare modelled with measured times on this machine (--help: its options)");
    AddModuleCallback(*reality, {"tools.replay.reality"});

    auto files = std::make_shared<std::vector<std::string>>();
    auto machines = std::make_shared<std::vector<std::string>>(
        std::vector<std::string>{"edge-4", "laptop-45", "dc-400"});
    CLI::App* check = npu->add_subcommand(
        "check", "Replay records and check what holds for every program on every machine");
    check->add_option("records", *files, "Files of cost records")->required();
    check->add_option("--npu", *machines, "Presets or files (default: all presets)");
    check->callback([files, machines] { Check(*files, *machines); });

    auto options = std::make_shared<MatrixOptions>();
    CLI::App* matrix =
        npu->add_subcommand("matrix", "Print the cycles of a product on one matrix unit");
    const CLI::Range side(1, 4096), size(1, 1 << 20);
    matrix->add_option("--rows", options->array.rows, "Of the array")
        ->check(side)
        ->capture_default_str();
    matrix->add_option("--columns", options->array.columns, "Of the array")
        ->check(side)
        ->capture_default_str();
    matrix->add_option("-m", options->product.m, "Rows of the result")->check(size)->required();
    matrix->add_option("-n", options->product.n, "Columns of the result")->check(size)->required();
    matrix->add_option("-k", options->product.k, "Terms of each sum")->check(size)->required();
    matrix->add_flag("--json", options->as_json, "Print them for programs");
    matrix->callback([options] { Matrix(*options); });
}

}  // namespace fornax::tool
