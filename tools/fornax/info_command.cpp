// `fornax info`: prints what the Fornax device is, as a Vulkan program sees it through the loader.
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "npu/description/read.h"
#include "tools/fornax/command.h"
#include "tools/fornax/device_report.h"
#include "tools/fornax/manifest.h"
#include "tools/fornax/npu_report.h"

namespace fornax::tool {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  fornax info          the Fornax device\n"
    "  fornax info --all    every Vulkan device of this machine, Fornax among them";

// An instance that lives as long as the object. One at a time, because volk's functions are global.
class Instance {
  public:
    static Result<Instance> Create() {
        if (volkInitialize() != VK_SUCCESS) {
            return Error{ErrorCode::kNotFound,
                         "The Vulkan loader libvulkan.so.1 is not installed; on Debian its package "
                         "is libvulkan1."};
        }
        if (volkGetInstanceVersion() < VK_API_VERSION_1_1) {
            return Error{ErrorCode::kUnsupported,
                         "The Vulkan loader is of version 1.0; version 1.1 or later is needed."};
        }
        VkApplicationInfo application = {VK_STRUCTURE_TYPE_APPLICATION_INFO};
        application.pApplicationName = "fornax info";
        application.apiVersion = VK_API_VERSION_1_3;
        VkInstanceCreateInfo create_info = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
        create_info.pApplicationInfo = &application;
        VkInstance instance = VK_NULL_HANDLE;
        const VkResult result = vkCreateInstance(&create_info, nullptr, &instance);
        if (result != VK_SUCCESS) {
            return Error{ErrorCode::kInternal,
                         fmt::format("The Vulkan loader can use no driver (vkCreateInstance "
                                     "returned {}); with VK_LOADER_DEBUG=all it says why.",
                                     static_cast<int>(result))};
        }
        volkLoadInstanceOnly(instance);
        return Instance(instance);
    }

    Instance(Instance&& other) noexcept : instance_(std::exchange(other.instance_, nullptr)) {}
    Instance& operator=(Instance&&) = delete;
    ~Instance() {
        if (instance_ != VK_NULL_HANDLE) {
            vkDestroyInstance(instance_, nullptr);
        }
    }

    std::vector<VkPhysicalDevice> Devices() const {
        uint32_t count = 0;
        vkEnumeratePhysicalDevices(instance_, &count, nullptr);
        std::vector<VkPhysicalDevice> devices(count);
        vkEnumeratePhysicalDevices(instance_, &count, devices.data());
        devices.resize(count);
        return devices;
    }

  private:
    explicit Instance(VkInstance instance) : instance_(instance) {}

    VkInstance instance_;
};

void SelectDrivers(bool all) {
    Result<std::filesystem::path> manifest = FindManifest();
    if (!all) {
        SelectDriver(ValueOrExit(std::move(manifest)));
        return;
    }
    if (manifest.ok()) {
        setenv("VK_ADD_DRIVER_FILES", manifest->c_str(), 1);
    } else {
        fmt::print(stderr, "fornax: {}\n", manifest.error().message);
    }
}

void Info(bool all) {
    const std::optional<npu::Description> machine = ValueOrExit(npu::DescriptionOfEnvironment());
    SelectDrivers(all);
    const Instance instance = ValueOrExit(Instance::Create());
    const std::vector<VkPhysicalDevice> devices = instance.Devices();
    if (devices.empty()) {
        ExitWithError({ErrorCode::kNotFound, "The Vulkan loader offers no device."});
    }
    const char* separator = "";
    for (VkPhysicalDevice device : devices) {
        VkPhysicalDeviceProperties properties = {};
        vkGetPhysicalDeviceProperties(device, &properties);
        fmt::print("{}", separator);
        if (properties.apiVersion < VK_API_VERSION_1_1) {
            fmt::print("{}\n  of Vulkan {}, too old to describe\n", properties.deviceName,
                       FormatVersion(properties.apiVersion));
        } else {
            fmt::print("{}", DescribeDevice(device));
        }
        separator = "\n";
    }
    if (machine) {
        fmt::print("\nthe machine that FORNAX_NPU describes, for modelled times: {}",
                   DescribeMachine(*machine));
    }
}

}  // namespace

void AddInfoCommand(CLI::App& app) {
    CLI::App* info = app.add_subcommand("info", "Print what the Fornax device is");
    info->footer(kExamples);
    auto all = std::make_shared<bool>(false);
    info->add_flag("--all", *all, "Show every Vulkan device present");
    info->callback([all] { Info(*all); });
}

}  // namespace fornax::tool
