// Finds the Fornax manifest relative to the executable and selects it for the Vulkan loader.
#include "tools/fornax/manifest.h"

#include <cstdlib>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <sys/utsname.h>

#include "base/environment.h"

namespace fornax::tool {
namespace fs = std::filesystem;

Result<fs::path> ExecutablePath() {
    std::error_code error;
    fs::path executable = fs::read_symlink("/proc/self/exe", error);
    if (error) {
        return Error{ErrorCode::kIo, fmt::format("The path of this program cannot be read from "
                                                 "/proc/self/exe: {}.",
                                                 error.message())};
    }
    return executable;
}

fs::path ManifestFileName() {
    utsname machine = {};
    uname(&machine);
    return fmt::format("fornax_icd.{}.json", machine.machine);
}

Result<fs::path> FindManifest(const fs::path& executable, const char* override_path) {
    std::error_code ignored;
    if (override_path != nullptr && *override_path != '\0') {
        fs::path path = fs::absolute(override_path, ignored);
        if (!fs::is_regular_file(path, ignored)) {
            return Error{
                ErrorCode::kNotFound,
                fmt::format("FORNAX_MANIFEST is set to {}, which is not a file.", override_path)};
        }
        return path;
    }
    const fs::path prefix = executable.parent_path().parent_path();
    const std::vector<fs::path> candidates = {
        prefix / "icd" / ManifestFileName(),
        prefix / "share" / "vulkan" / "icd.d" / ManifestFileName(),
    };
    for (const fs::path& candidate : candidates) {
        if (fs::is_regular_file(candidate, ignored)) {
            return candidate;
        }
    }
    return Error{ErrorCode::kNotFound,
                 fmt::format("The Fornax driver's manifest is neither {} nor {}; build the driver, "
                             "or set FORNAX_MANIFEST to its manifest.",
                             candidates[0].string(), candidates[1].string())};
}

Result<fs::path> FindManifest() {
    FORNAX_ASSIGN_OR_RETURN(const fs::path executable, ExecutablePath());
    const std::optional<std::string> chosen = EnvironmentText("FORNAX_MANIFEST");
    return FindManifest(executable, chosen ? chosen->c_str() : nullptr);
}

void SelectDriver(const fs::path& manifest) {
    // Loaders before 1.3.207 know only the second name; newer ones prefer the first.
    setenv("VK_DRIVER_FILES", manifest.c_str(), 1);
    setenv("VK_ICD_FILENAMES", manifest.c_str(), 1);
    // Filters that the user has set for other runs would hide the driver again.
    unsetenv("VK_LOADER_DRIVERS_SELECT");
    unsetenv("VK_LOADER_DRIVERS_DISABLE");
}

Result<fs::path> FindGgmlBackend() {
    FORNAX_ASSIGN_OR_RETURN(const fs::path executable, ExecutablePath());
    const fs::path prefix = executable.parent_path().parent_path();
    utsname machine = {};
    uname(&machine);
    const char* const name = "libggml-fornax.so";
    const std::vector<fs::path> candidates = {
        prefix / "plugins" / "ggml" / name,
        prefix / "lib" / name,
        prefix / "lib" / fmt::format("{}-linux-gnu", machine.machine) / name,
    };
    std::error_code ignored;
    for (const fs::path& candidate : candidates) {
        if (fs::is_regular_file(candidate, ignored)) {
            return candidate;
        }
    }
    return Error{
        ErrorCode::kNotFound,
        fmt::format("The backend of ggml is neither {} nor {} nor {}. The Python package comes "
                    "without it.",
                    candidates[0].string(), candidates[1].string(), candidates[2].string())};
}

void SelectGgmlBackend(const fs::path& backend) {
    setenv("GGML_BACKEND_PATH", backend.c_str(), 1);
    setenv("GGML_VK_VISIBLE_DEVICES", "", 1);
}

}  // namespace fornax::tool
