// What the host's loader of backends calls: a registry with one device, or none, with a sentence.
#include <optional>

#include "base/log.h"
#include "plugins/ggml/device.h"

namespace fornax::ggml_plugin {
namespace {

// Made once and kept as long as the process: the host never gives a registry back.
struct Plugin {
    std::optional<Host> host;
    std::unique_ptr<PluginDevice> device;
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
    return ThePlugin().device == nullptr ? 0 : 1;
}

abi::Device* GetDevice(abi::Registry*, size_t) {
    return ThePlugin().device->handle();
}

void* GetProcAddress(abi::Registry*, const char*) {
    return nullptr;
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
    plugin.registry.functions = {GetName, GetDeviceCount, GetDevice, GetProcAddress};
    Result<std::unique_ptr<PluginDevice>> device =
        PluginDevice::Open(*plugin.host, &plugin.registry);
    if (!device.ok()) {
        LogError("ggml: the backend has no device. {}", device.error().message);
        return &plugin.registry;
    }
    plugin.device = std::move(*device);
    return &plugin.registry;
}

}  // namespace
}  // namespace fornax::ggml_plugin

extern "C" __attribute__((visibility("default"))) fornax::ggml_plugin::abi::Registry*
ggml_backend_init() {
    try {
        return fornax::ggml_plugin::Start();
    } catch (const std::exception& error) {
        fornax::LogError("ggml: the backend is not loaded. {}", error.what());
        return nullptr;
    }
}
