// Looks for driver manifests where the Vulkan loader would, and where Chromium keeps SwiftShader's.
#include "tools/bench/drivers.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>
#include <system_error>

#include <fmt/format.h>

namespace fornax::bench {
namespace fs = std::filesystem;
namespace {

std::string LowerCase(std::string text) {
    for (char& c : text) {
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return text;
}

// The loader's order, from "Driver Discovery on Linux" of its documentation, without the fallbacks
// that only apply inside sandboxes.
std::vector<fs::path> LoaderFolders() {
    std::vector<fs::path> bases;
    auto add_list = [&](const char* variable, const char* fallback) {
        const char* value = std::getenv(variable);
        std::string list = value != nullptr && *value != '\0' ? value : fallback;
        while (!list.empty()) {
            const size_t colon = list.find(':');
            if (colon != 0) {
                bases.push_back(list.substr(0, colon));
            }
            list = colon == std::string::npos ? "" : list.substr(colon + 1);
        }
    };
    const char* home = std::getenv("HOME");
    const std::string home_folder = home != nullptr ? home : "";
    add_list("XDG_CONFIG_HOME", (home_folder + "/.config").c_str());
    add_list("XDG_CONFIG_DIRS", "/etc/xdg");
    bases.push_back("/etc");
    add_list("XDG_DATA_HOME", (home_folder + "/.local/share").c_str());
    add_list("XDG_DATA_DIRS", "/usr/local/share:/usr/share");
    for (fs::path& base : bases) {
        base = base / "vulkan" / "icd.d";
    }
    return bases;
}

}  // namespace

std::vector<fs::path> CandidateManifests() {
    std::set<fs::path> manifests;
    std::error_code error;
    auto add = [&](const fs::path& manifest) {
        std::error_code missing;
        const fs::path canonical = fs::canonical(manifest, missing);
        if (!missing) {
            manifests.insert(canonical);
        }
    };
    for (const fs::path& folder : LoaderFolders()) {
        for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
             entry.increment(error)) {
            if (entry->path().extension() == ".json") {
                add(entry->path());
            }
        }
    }
    for (const char* folder : {"/usr/lib/chromium", "/usr/lib/chromium-browser",
                               "/usr/lib64/chromium-browser", "/opt/google/chrome"}) {
        add(fs::path(folder) / "vk_swiftshader_icd.json");
    }
    return {manifests.begin(), manifests.end()};
}

std::string ShortDriverName(const std::string& reported_name) {
    const std::string lower = LowerCase(reported_name);
    if (lower.find("fornax") != std::string::npos) {
        return "Fornax";
    }
    if (lower.find("llvmpipe") != std::string::npos ||
        lower.find("lavapipe") != std::string::npos) {
        return "lavapipe";
    }
    if (lower.find("swiftshader") != std::string::npos) {
        return "SwiftShader";
    }
    return reported_name;
}

std::string OtherBuildName(const std::vector<Driver>& drivers) {
    for (int number = 2;; ++number) {
        std::string name = fmt::format("Fornax build {}", number);
        if (std::none_of(drivers.begin(), drivers.end(),
                         [&](const Driver& driver) { return driver.name == name; })) {
            return name;
        }
    }
}

Result<std::vector<Driver>> SelectDrivers(std::vector<Driver> drivers,
                                          const std::vector<std::string>& wanted) {
    if (wanted.empty()) {
        return drivers;
    }
    std::vector<bool> is_kept(drivers.size());
    for (const std::string& name : wanted) {
        bool is_found = false;
        for (size_t i = 0; i < drivers.size(); ++i) {
            if (LowerCase(drivers[i].name).find(LowerCase(name)) == std::string::npos &&
                drivers[i].manifest != fs::path(name)) {
                continue;
            }
            is_kept[i] = is_found = true;
        }
        if (!is_found) {
            std::string present;
            for (const Driver& driver : drivers) {
                present += (present.empty() ? "" : ", ") + driver.name;
            }
            return Error{ErrorCode::kNotFound,
                         fmt::format("No driver is called {}; present are: {}.", name,
                                     present.empty() ? "none" : present)};
        }
    }
    std::vector<Driver> kept;
    for (size_t i = 0; i < drivers.size(); ++i) {
        if (is_kept[i]) {
            kept.push_back(std::move(drivers[i]));
        }
    }
    return kept;
}

}  // namespace fornax::bench
