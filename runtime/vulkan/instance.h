// The Vulkan loader and an instance of it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <volk.h>

#include "base/result.h"

namespace fornax::vulkan {

struct InstanceOptions {
    // Switches the Khronos validation layer on. Its synchronisation validation is on here and where
    // VK_INSTANCE_LAYERS names the layer.
    bool validate = false;
    uint32_t api_version = VK_API_VERSION_1_3;  // at least 1.1
    // The path of a driver's library, which then is called without the loader: loading the drivers
    // of all devices takes long. Where layers are asked for, and with "", the loader does it.
    std::string driver;
    // Times are the host's even if FORNAX_NPU describes a machine (base/host_clock.h).
    bool host_clock = false;
    // Receives the warnings and errors of validation layers, on any thread.
    std::function<void(const std::string& message)> on_message;
    // Whether it also receives those of drivers, once the instance is there.
    bool driver_messages = false;
};

// An instance with its own table of functions: several of them, and those of other libraries, live
// side by side in a process. Immutable, so safe to use from several threads.
class Instance {
  public:
    // Loads the Vulkan loader if need be. The error says what is missing on the machine.
    static Result<std::shared_ptr<const Instance>> Create(InstanceOptions options = {});
    // Around an instance of somebody else, who keeps it alive.
    static std::shared_ptr<const Instance> Wrap(VkInstance instance,
                                                PFN_vkGetInstanceProcAddr functions);
    ~Instance();

    Instance(const Instance&) = delete;
    Instance& operator=(const Instance&) = delete;

    VkInstance handle() const { return handle_; }
    const VolkInstanceTable& vk() const { return *table_; }
    PFN_vkGetDeviceProcAddr device_functions() const { return device_functions_; }
    // No where the validation layer is on, by `validate` or VK_INSTANCE_LAYERS, and is from before
    // VK_KHR_cooperative_matrix, which it would reject.
    bool layer_knows_matrices() const { return layer_knows_matrices_; }
    std::vector<VkPhysicalDevice> PhysicalDevices() const;
    VkPhysicalDeviceProperties PropertiesOf(VkPhysicalDevice device) const;

    // The device that `choice` names: an index into the loader's list, or a part of the device's
    // name. Without a choice, a device of Fornax comes first, then the loader's first. The error of
    // a choice that does not fit lists the devices.
    Result<VkPhysicalDevice> Choose(const std::string& choice) const;

  private:
    Instance() = default;
    void Load(PFN_vkGetInstanceProcAddr functions);

    InstanceOptions options_;
    VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
    VkInstance handle_ = VK_NULL_HANDLE;
    bool owned_ = false;
    bool layer_knows_matrices_ = true;
    std::unique_ptr<VolkInstanceTable> table_;
    PFN_vkGetDeviceProcAddr device_functions_ = nullptr;
};

// Makes volk's global functions those of the loader, which serve all instances and devices: for
// programs that call Vulkan by its functions' names. Thread-safe.
void LoadGlobalFunctions(const Instance& instance);

// The functions of a device, taken from `functions`. Thread-safe.
void LoadDeviceTable(PFN_vkGetDeviceProcAddr functions, VkDevice device, VolkDeviceTable& table);

}  // namespace fornax::vulkan
