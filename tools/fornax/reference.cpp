// Arrays go through files in a directory that is removed afterwards.
#include "tools/fornax/reference.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "base/file.h"
#include "base/scratch_directory.h"
#include "tools/bench/process.h"

namespace fornax::tool {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxLogBytes = size_t{1} << 24;
constexpr double kSecondsToImport = 120;
constexpr double kSecondsToCompare = 3600;

struct Finished {
    int code = 0;
    std::string output;  // both streams
};

Result<Finished> Execute(const ScratchDirectory& scratch,
                         std::vector<std::string> arguments,
                         double seconds) {
    bench::ProcessOptions process;
    process.arguments = std::move(arguments);
    process.environment = {{"PYTHONPATH", FORNAX_SOURCE_TREE}, {"PYTHONDONTWRITEBYTECODE", "1"}};
    process.log = scratch / "log";
    process.timeout_seconds = seconds;
    Finished finished;
    FORNAX_ASSIGN_OR_RETURN(finished.code, bench::RunProcess(process));
    FORNAX_ASSIGN_OR_RETURN(finished.output, ReadTextFile(scratch / "log", kMaxLogBytes));
    return finished;
}

// The path of a program in the search path; "" if there is none.
std::string Which(const std::string& name) {
    const char* list = std::getenv("PATH");
    std::string_view rest = list == nullptr ? "" : list;
    while (!rest.empty()) {
        const size_t end = std::min(rest.find(':'), rest.size());
        const std::string path = fmt::format("{}/{}", rest.substr(0, end), name);
        if (::access(path.c_str(), X_OK) == 0) {
            return path;
        }
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return "";
}

// The last line, where Python says what went wrong.
std::string LastLine(std::string text) {
    while (!text.empty() && text.back() == '\n') {
        text.pop_back();
    }
    const size_t start = text.rfind('\n');
    return start == std::string::npos ? text : text.substr(start + 1);
}

}  // namespace

Result<std::string> FindPython(const std::string& chosen, const std::string& modules) {
    std::vector<std::string> candidates = {chosen};
    if (chosen.empty()) {
        candidates = {FORNAX_SOURCE_TREE "/.venv/bin/python3", Which("python3"), Which("python")};
    } else if (chosen.find('/') == std::string::npos) {
        candidates = {Which(chosen)};
    }
    FORNAX_ASSIGN_OR_RETURN(const ScratchDirectory scratch, ScratchDirectory::Create("run"));
    std::string tried;
    for (const std::string& candidate : candidates) {
        if (candidate.empty() || ::access(candidate.c_str(), X_OK) != 0) {
            continue;
        }
        const Result<Finished> finished =
            Execute(scratch, {candidate, "-c", "import " + modules}, kSecondsToImport);
        if (finished.ok() && finished->code == 0) {
            return candidate;
        }
        tried += fmt::format("{}{} ({})", tried.empty() ? "" : ", ", candidate,
                             finished.ok() ? LastLine(finished->output) : finished.error().message);
    }
    return Error{ErrorCode::kNotFound,
                 fmt::format("No Python with {} was found; tried: {}. --python names one.", modules,
                             tried.empty() ? "none" : tried)};
}

Result<std::string> SourceTree() {
    const std::string tree = FORNAX_SOURCE_TREE;
    if (!fs::exists(tree + "/tools/models/__main__.py")) {
        return Error{ErrorCode::kNotFound,
                     fmt::format("{} is gone: this needs the source tree that the command was "
                                 "built from.",
                                 tree)};
    }
    return tree;
}

Result<Comparison> CompareWithOnnxruntime(const std::string& python,
                                          const std::string& model,
                                          const std::vector<tensors::NamedTensor>& inputs,
                                          const std::vector<tensors::NamedTensor>& outputs,
                                          const Tolerances& tolerances) {
    FORNAX_RETURN_IF_ERROR(SourceTree());
    FORNAX_ASSIGN_OR_RETURN(const ScratchDirectory scratch, ScratchDirectory::Create("run"));
    FORNAX_RETURN_IF_ERROR(tensors::WriteTensorFile(scratch / "inputs.npz", inputs));
    FORNAX_RETURN_IF_ERROR(tensors::WriteTensorFile(scratch / "outputs.npz", outputs));
    FORNAX_ASSIGN_OR_RETURN(
        Finished finished,
        Execute(scratch,
                {python, "-m", "tools.models", "compare", model, scratch / "inputs.npz",
                 scratch / "outputs.npz", "--absolute", fmt::format("{}", tolerances.absolute),
                 "--relative", fmt::format("{}", tolerances.relative), "--norm",
                 fmt::format("{}", tolerances.norm)},
                kSecondsToCompare));
    // 0: all within, 1: not all; but Python's own errors end with 1, too.
    const bool failed = finished.code > 1 || finished.output.starts_with("Traceback") ||
                        finished.output.find("\nTraceback") != std::string::npos;
    if (failed) {
        return Error{ErrorCode::kInternal, fmt::format("The comparison with onnxruntime failed: {}",
                                                       LastLine(finished.output))};
    }
    return Comparison{std::move(finished.output), finished.code == 0};
}

}  // namespace fornax::tool
