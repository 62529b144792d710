// `fornax explain-kernel`: what the kernel compiler makes of a SPIR-V file, and why.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/environment.h"
#include "base/file.h"
#include "compiler/kernel/backend/backend.h"
#include "compiler/kernel/codegen/target.h"
#include "tools/fornax/command.h"
#include "tools/fornax/explain_kernel_report.h"
#include "tools/fornax/manifest.h"

namespace fornax::tool {
namespace {

constexpr const char* kNotes =
    "forms of an access, from cheap to dear:\n"
    "  scalar          one access serves all lanes       contiguous  one vector access\n"
    "  one lane        a store of one lane's value       strided     vectors at a symbolic stride\n"
    "  runs + shuffle  a few vector accesses             reduced     lanes combined, one atomic\n"
    "  row             private memory, lane by lane      gather      a gather or scatter\n"
    "  speculated      vectors if a test allows it       lane loop   one lane after the other\n"
    "  lane rows       a vector access of each lane's run, transposed\n"
    "checks: none, proven (needs none), span (one test for the vector), scalar, lanes (one each),\n"
    "clamped (moved inside)\n"
    "\n"
    "Examples:\n"
    "  fornax explain-kernel shader.spv\n"
    "  fornax explain-kernel shader.spv --robust --constant 0=128 --json\n"
    "  FORNAX_CPU=haswell fornax explain-kernel shader.spv";

struct Options {
    std::string file;
    std::string entry = "main";
    uint32_t subgroup_size = 32;
    bool robust = false;
    bool wide_indexing = false;
    bool json = false;
    std::vector<std::string> constants;
};

std::vector<uint32_t> ReadWords(const std::string& file) {
    const std::vector<std::byte> bytes = ValueOrExit(ReadFile(file, size_t{256} << 20));
    std::vector<uint32_t> words(bytes.size() / 4);
    if (!words.empty()) {
        std::memcpy(words.data(), bytes.data(), words.size() * 4);
    }
    return words;
}

// "3=128", "3=1.5": an integer's value or a float's.
kernel::SpecializationValue ParseConstant(const std::string& text) {
    const size_t equals = text.find('=');
    kernel::SpecializationValue value;
    try {
        if (equals == std::string::npos) {
            throw std::invalid_argument(text);
        }
        value.constant_id = static_cast<uint32_t>(std::stoul(text.substr(0, equals)));
        const std::string number = text.substr(equals + 1);
        if (number.find_first_of(".") != std::string::npos) {
            const float real = std::stof(number);
            uint32_t bits;
            std::memcpy(&bits, &real, sizeof(bits));
            value.bits = bits;
        } else {
            value.bits = static_cast<uint64_t>(std::stoll(number, nullptr, 0));
        }
    } catch (const std::exception&) {
        ExitWithError({ErrorCode::kInvalidArgument,
                       fmt::format("{} is no constant; one is written ID=VALUE.", text)},
                      kExitUsage);
    }
    return value;
}

// The folder of the driver's libraries, the kernel compiler's among them: the manifest names one
// relative to itself.
std::filesystem::path LibraryFolder() {
    const std::filesystem::path manifest = ValueOrExit(FindManifest());
    const nlohmann::json json =
        nlohmann::json::parse(std::ifstream(manifest), nullptr, /*allow_exceptions=*/false);
    const nlohmann::json::json_pointer path("/ICD/library_path");
    if (json.is_discarded() || !json.contains(path) || !json[path].is_string()) {
        ExitWithError(
            {ErrorCode::kDataLoss, fmt::format("{} names no driver library.", manifest.string())});
    }
    return (manifest.parent_path() / json[path].get<std::string>()).parent_path();
}

void Explain(const Options& options) {
    const std::vector<uint32_t> words = ReadWords(options.file);
    kernel::CompileRequest request;
    request.spirv = words;
    request.entry_point = options.entry;
    request.options.robust_buffer_access = options.robust;
    request.options.wide_indexing = options.wide_indexing;
    request.options.subgroup_size = options.subgroup_size;
    for (const std::string& constant : options.constants) {
        request.specialization.push_back(ParseConstant(constant));
    }
    const kernel::TargetInfo target =
        ValueOrExit(kernel::DetectTarget(EnvironmentText("FORNAX_CPU").value_or("")));
    const auto source = ValueOrExit(kernel::BackendSource::FindIn(LibraryFolder()));
    const auto backend = ValueOrExit(source.Open());
    request.layout = ValueOrExit(backend->LayoutOf(words));
    const kernel::KernelExplanation explanation = ValueOrExit(backend->Explain(request, target));
    if (options.json) {
        fmt::print("{}\n", ExplanationToJson(explanation).dump(2));
    } else {
        fmt::print("{}", FormatExplanation(explanation));
    }
}

}  // namespace

void AddExplainKernelCommand(CLI::App& app) {
    CLI::App* command =
        app.add_subcommand("explain-kernel", "Show what the kernel compiler makes of a shader");
    command->footer(kNotes);
    auto options = std::make_shared<Options>();
    command->add_option("FILE", options->file, "A SPIR-V file")->required();
    command->add_option("--entry", options->entry, "The compute entry point")
        ->capture_default_str();
    command->add_option("--subgroup-size", options->subgroup_size, "The subgroup size it sees")
        ->check(CLI::IsMember({8, 16, 32, 64}))
        ->capture_default_str();
    command->add_flag("--robust", options->robust, "With robustBufferAccess");
    command->add_flag("--64-bit-indexing", options->wide_indexing,
                      "As a pipeline with 64-bit indexing");
    command->add_option("--constant", options->constants,
                        "A specialisation constant, ID=VALUE (may be repeated)");
    command->add_flag("--json", options->json, "Print the record as JSON");
    command->callback([options] { Explain(*options); });
}

}  // namespace fornax::tool
