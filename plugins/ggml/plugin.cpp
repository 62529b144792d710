// What the host's loader of backends calls: a registry with the devices that were chosen, or none,
// with a sentence.
#include <optional>
#include <string>
#include <vector>

#include "base/disk_cache.h"
#include "base/environment.h"
#include "base/log.h"
#include "plugins/ggml/device.h"
#include "plugins/ggml/trace.h"

namespace fornax::ggml_plugin {
namespace {

// Made once and kept as long as the process: the host never gives a registry back.
struct Plugin {
    std::optional<Host> host;
    std::vector<std::unique_ptr<PluginDevice>> devices;
    abi::Registry registry = {};
};

Plugin& ThePlugin() {
    static auto* const plugin = new Plugin();
    return *plugin;
}

const char* GetName(abi::Registry*) {
    return "FORNAX";
}

size_t GetDeviceCount(abi::Registry*) {
    return ThePlugin().devices.size();
}

abi::Device* GetDevice(abi::Registry*, size_t index) {
    const auto& devices = ThePlugin().devices;
    return index < devices.size() ? devices[index]->handle() : nullptr;
}

void* GetProcAddress(abi::Registry*, const char*) {
    return nullptr;
}

// What FORNAX_GGML_DEVICE names, separated by commas; else one, of Fornax.
std::vector<std::string> ChosenDevices() {
    std::vector<std::string> chosen(1);
    for (const char c : EnvironmentText("FORNAX_GGML_DEVICE").value_or("")) {
        if (c == ',') {
            chosen.emplace_back();
        } else {
            chosen.back() += c;
        }
    }
    return chosen;
}

// FORNAX_LOG_LEVEL says how much is told; else GGML_LOG_LEVEL, by the same names; else
// FORNAX_GGML_VERBOSE, for info.
void ChooseLogLevel() {
    if (EnvironmentText("FORNAX_LOG_LEVEL")) {
        return;
    }
    LogLevel level = LogLevel::kInfo;
    const std::optional<std::string> name = EnvironmentText("GGML_LOG_LEVEL");
    if ((name && ParseLogLevel(*name, &level)) ||
        (!name && EnvironmentFlag("FORNAX_GGML_VERBOSE"))) {
        SetLogLevel(level);
    }
}

// FORNAX_GGML_CLEAR_CACHE: 1, true, TRUE or on. Only entries of Fornax are removed.
void ClearCacheIfAsked() {
    const std::string asked = EnvironmentText("FORNAX_GGML_CLEAR_CACHE").value_or("");
    if (asked != "1" && asked != "true" && asked != "TRUE" && asked != "on") {
        return;
    }
    const CacheClearResult cleared = DiskCache::OpenDefault().Clear();
    LogInfo("ggml: {} entries of the cache were removed.", cleared.removed_count);
}

abi::Registry* Start() {
    Plugin& plugin = ThePlugin();
    if (plugin.host) {
        return &plugin.registry;
    }
    Result<Host> host = Host::Find();
    if (!host.ok()) {
        LogError("ggml: the backend is not loaded. {}", host.error().message);
        return nullptr;
    }
    plugin.host = std::move(*host);
    plugin.registry.api_version = plugin.host->layout().api_version;
    plugin.registry.functions = {
        kTraced<"registry_get_name", GetName>, kTraced<"get_device_count", GetDeviceCount>,
        kTraced<"get_device", GetDevice>, kTraced<"get_proc_address", GetProcAddress>};
    ClearCacheIfAsked();
    for (const std::string& choice : ChosenDevices()) {
        Result<std::unique_ptr<PluginDevice>> device =
            PluginDevice::Open(*plugin.host, &plugin.registry, choice, plugin.devices.size());
        if (!device.ok()) {
            LogError("ggml: the backend has no device{}. {}",
                     choice.empty() ? "" : " \"" + choice + "\"", device.error().message);
            continue;
        }
        plugin.devices.push_back(std::move(*device));
    }
    return &plugin.registry;
}

}  // namespace
}  // namespace fornax::ggml_plugin

extern "C" __attribute__((visibility("default"))) fornax::ggml_plugin::abi::Registry*
ggml_backend_init() {
    try {
        fornax::ggml_plugin::ChooseLogLevel();
        return fornax::ggml_plugin::kTraced<"ggml_backend_init", fornax::ggml_plugin::Start>();
    } catch (const std::exception& error) {
        fornax::LogError("ggml: the backend is not loaded. {}", error.what());
        return nullptr;
    }
}
