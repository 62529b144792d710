// Opening the loader, choosing a device.
#include "runtime/vulkan/instance.h"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include <fmt/format.h>

#include "base/host_clock.h"
#include "runtime/vulkan/result.h"

namespace fornax::vulkan {
namespace {

// volk fills its tables through global pointers, which are set for the time of a call.
std::mutex& VolkMutex() {
    static std::mutex mutex;
    return mutex;
}

// Null if there is none.
PFN_vkGetInstanceProcAddr Loader() {
    const std::lock_guard lock(VolkMutex());
    if (vkGetInstanceProcAddr == nullptr && volkInitialize() != VK_SUCCESS) {
        return nullptr;
    }
    return vkGetInstanceProcAddr;
}

// The number that the whole text is, or -1.
int ToIndex(const std::string& text) {
    int index = -1;
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, index);
    return parsed.ec == std::errc() && parsed.ptr == end ? index : -1;
}

VKAPI_ATTR VkBool32 VKAPI_CALL OnMessage(VkDebugUtilsMessageSeverityFlagBitsEXT /*severity*/,
                                         VkDebugUtilsMessageTypeFlagsEXT /*types*/,
                                         const VkDebugUtilsMessengerCallbackDataEXT* data,
                                         void* options) {
    static_cast<const InstanceOptions*>(options)->on_message(data->pMessage);
    return VK_FALSE;
}

bool HasExtension(PFN_vkGetInstanceProcAddr loader, std::string_view name) {
    const auto enumerate = reinterpret_cast<PFN_vkEnumerateInstanceExtensionProperties>(
        loader(nullptr, "vkEnumerateInstanceExtensionProperties"));
    uint32_t count = 0;
    if (enumerate == nullptr || enumerate(nullptr, &count, nullptr) != VK_SUCCESS) {
        return false;
    }
    std::vector<VkExtensionProperties> extensions(count);
    enumerate(nullptr, &count, extensions.data());
    return std::any_of(extensions.begin(), extensions.end(),
                       [&](const auto& extension) { return name == extension.extensionName; });
}

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";

// The Vulkan version of the validation layer, or 0 without it.
uint32_t ValidationLayerVersion(PFN_vkGetInstanceProcAddr loader) {
    const auto enumerate = reinterpret_cast<PFN_vkEnumerateInstanceLayerProperties>(
        loader(nullptr, "vkEnumerateInstanceLayerProperties"));
    uint32_t count = 0;
    if (enumerate == nullptr || enumerate(&count, nullptr) != VK_SUCCESS) {
        return 0;
    }
    std::vector<VkLayerProperties> layers(count);
    enumerate(&count, layers.data());
    for (const VkLayerProperties& layer : layers) {
        if (layer.layerName == std::string_view(kValidationLayer)) {
            return layer.specVersion;
        }
    }
    return 0;
}

// The functions of a driver without a loader in between. The library stays loaded.
Result<PFN_vkGetInstanceProcAddr> OpenDriver(const std::string& path) {
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* const reason = ::dlerror();
        return Error{ErrorCode::kNotFound,
                     fmt::format("The Vulkan driver {} cannot be loaded: {}.", path,
                                 reason == nullptr ? "no reason is given" : reason)};
    }
    const auto functions =
        reinterpret_cast<PFN_vkGetInstanceProcAddr>(::dlsym(library, "vk_icdGetInstanceProcAddr"));
    const auto negotiate = reinterpret_cast<VkResult (*)(uint32_t*)>(
        ::dlsym(library, "vk_icdNegotiateLoaderICDInterfaceVersion"));
    if (functions == nullptr || negotiate == nullptr) {
        return Error{
            ErrorCode::kInvalidArgument,
            fmt::format("{} is no Vulkan driver: it has no vk_icdGetInstanceProcAddr.", path)};
    }
    // With version 5 the driver takes any version of the API.
    constexpr uint32_t kInterface = 5;
    uint32_t version = kInterface;
    if (negotiate(&version) != VK_SUCCESS || version < kInterface) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("The Vulkan driver {} is older than what is known here.", path)};
    }
    return functions;
}

// Whether the user asks the loader for layers.
bool EnvironmentHasLayers() {
    for (const char* name : {"VK_INSTANCE_LAYERS", "VK_LOADER_LAYERS_ENABLE"}) {
        const char* const layers = std::getenv(name);
        if (layers != nullptr && *layers != '\0') {
            return true;
        }
    }
    return false;
}

// Whether the user asks the loader for the validation layer.
bool EnvironmentValidates() {
    const char* const layers = std::getenv("VK_INSTANCE_LAYERS");
    return layers != nullptr &&
           std::string_view(layers).find(kValidationLayer) != std::string_view::npos;
}

}  // namespace

void LoadDeviceTable(PFN_vkGetDeviceProcAddr functions, VkDevice device, VolkDeviceTable& table) {
    const std::lock_guard lock(VolkMutex());
    const PFN_vkGetDeviceProcAddr before = vkGetDeviceProcAddr;
    vkGetDeviceProcAddr = functions;
    volkLoadDeviceTable(&table, device);
    vkGetDeviceProcAddr = before;
}

void LoadGlobalFunctions(const Instance& instance) {
    const std::lock_guard lock(VolkMutex());
    volkLoadInstance(instance.handle());
}

void Instance::Load(PFN_vkGetInstanceProcAddr functions) {
    const std::lock_guard lock(VolkMutex());
    const PFN_vkGetDeviceProcAddr device_before = vkGetDeviceProcAddr;
    const PFN_vkGetInstanceProcAddr before = vkGetInstanceProcAddr;
    vkGetInstanceProcAddr = functions;
    table_ = std::make_unique<VolkInstanceTable>();
    volkLoadInstanceTable(table_.get(), handle_);
    device_functions_ = vkGetDeviceProcAddr;
    vkGetInstanceProcAddr = before;
    vkGetDeviceProcAddr = device_before;
}

Result<std::shared_ptr<const Instance>> Instance::Create(InstanceOptions options) {
    PFN_vkGetInstanceProcAddr loader = nullptr;
    if (options.driver.empty() || options.validate || EnvironmentHasLayers()) {
        loader = Loader();
    } else {
        FORNAX_ASSIGN_OR_RETURN(loader, OpenDriver(options.driver));
    }
    if (loader == nullptr) {
        return Error{ErrorCode::kNotFound,
                     "The Vulkan loader libvulkan.so.1 is not installed; on Debian its package is "
                     "libvulkan1."};
    }
    const auto version_of = reinterpret_cast<PFN_vkEnumerateInstanceVersion>(
        loader(nullptr, "vkEnumerateInstanceVersion"));
    uint32_t version = VK_API_VERSION_1_0;
    if (version_of == nullptr || version_of(&version) != VK_SUCCESS ||
        version < VK_API_VERSION_1_1) {
        return Error{ErrorCode::kUnsupported,
                     "The Vulkan loader is of version 1.0; version 1.1 or later is needed."};
    }
    VkApplicationInfo application = {VK_STRUCTURE_TYPE_APPLICATION_INFO};
    application.pApplicationName = "fornax";
    application.pEngineName = options.host_clock ? kHostClockEngine : nullptr;
    application.apiVersion = options.api_version;
    VkInstanceCreateInfo create_info = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    create_info.pApplicationInfo = &application;
    std::shared_ptr<Instance> instance(new Instance);
    instance->options_ = std::move(options);
    VkDebugUtilsMessengerCreateInfoEXT messenger_info = {
        VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
    messenger_info.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                                     VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    messenger_info.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
    messenger_info.pfnUserCallback = OnMessage;
    messenger_info.pUserData = &instance->options_;
    VkDebugUtilsMessengerCreateInfoEXT early_messenger_info = messenger_info;
    if (instance->options_.driver_messages) {
        messenger_info.messageType |= VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT;
    }
    std::vector<const char*> extensions;
    const bool with_messages = instance->options_.on_message != nullptr &&
                               HasExtension(loader, VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
    if (with_messages) {
        create_info.pNext = &early_messenger_info;  // while the instance comes and goes
        extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
    }
    constexpr VkValidationFeatureEnableEXT kSynchronization =
        VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
    VkValidationFeaturesEXT validation_info = {VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT};
    validation_info.enabledValidationFeatureCount = 1;
    validation_info.pEnabledValidationFeatures = &kSynchronization;
    if (instance->options_.validate || EnvironmentValidates()) {
        // The version that the extension came with.
        constexpr uint32_t kFirstWithMatrices = VK_MAKE_API_VERSION(0, 1, 3, 255);
        const uint32_t layer = ValidationLayerVersion(loader);
        if (layer == 0 && instance->options_.validate) {
            return Error{ErrorCode::kNotFound,
                         "The Vulkan validation layer is not installed; on Debian its package is "
                         "vulkan-validationlayers."};
        }
        instance->layer_knows_matrices_ = layer == 0 || layer >= kFirstWithMatrices;
        // Read by the layer and by nobody else.
        validation_info.pNext = create_info.pNext;
        create_info.pNext = &validation_info;
    }
    if (instance->options_.validate) {
        create_info.enabledLayerCount = 1;
        create_info.ppEnabledLayerNames = &kValidationLayer;
    }
    const auto create = reinterpret_cast<PFN_vkCreateInstance>(loader(nullptr, "vkCreateInstance"));
    create_info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
    create_info.ppEnabledExtensionNames = extensions.data();
    const VkResult result = create(&create_info, nullptr, &instance->handle_);
    if (result != VK_SUCCESS) {
        return Error{ErrorCode::kNotFound,
                     fmt::format("The Vulkan loader found no usable driver: vkCreateInstance "
                                 "returned {}.",
                                 ResultName(result))};
    }
    instance->owned_ = true;
    instance->Load(loader);
    if (with_messages) {
        instance->vk().vkCreateDebugUtilsMessengerEXT(instance->handle_, &messenger_info, nullptr,
                                                      &instance->messenger_);
    }
    return std::shared_ptr<const Instance>(std::move(instance));
}

std::shared_ptr<const Instance> Instance::Wrap(VkInstance instance,
                                               PFN_vkGetInstanceProcAddr functions) {
    std::shared_ptr<Instance> wrapped(new Instance);
    wrapped->handle_ = instance;
    wrapped->Load(functions);
    return wrapped;
}

Instance::~Instance() {
    if (messenger_ != VK_NULL_HANDLE) {
        table_->vkDestroyDebugUtilsMessengerEXT(handle_, messenger_, nullptr);
    }
    if (owned_) {
        table_->vkDestroyInstance(handle_, nullptr);
    }
}

std::vector<VkPhysicalDevice> Instance::PhysicalDevices() const {
    uint32_t count = 0;
    if (vk().vkEnumeratePhysicalDevices(handle_, &count, nullptr) != VK_SUCCESS) {
        return {};
    }
    std::vector<VkPhysicalDevice> devices(count);
    vk().vkEnumeratePhysicalDevices(handle_, &count, devices.data());
    devices.resize(count);
    return devices;
}

VkPhysicalDeviceProperties Instance::PropertiesOf(VkPhysicalDevice device) const {
    VkPhysicalDeviceProperties properties;
    vk().vkGetPhysicalDeviceProperties(device, &properties);
    return properties;
}

Result<VkPhysicalDevice> Instance::Choose(const std::string& choice) const {
    const std::vector<VkPhysicalDevice> devices = PhysicalDevices();
    if (devices.empty()) {
        return Error{ErrorCode::kNotFound, "The Vulkan loader offers no device."};
    }
    const int index = ToIndex(choice);
    const std::string wanted = choice.empty() ? "Fornax" : choice;
    std::string list;
    for (size_t i = 0; i < devices.size(); ++i) {
        const std::string name = PropertiesOf(devices[i]).deviceName;
        if (index >= 0 ? static_cast<size_t>(index) == i : name.find(wanted) != std::string::npos) {
            return devices[i];
        }
        fmt::format_to(std::back_inserter(list), "{}{} {}", list.empty() ? "" : ", ", i, name);
    }
    if (choice.empty()) {
        return devices[0];
    }
    return Error{ErrorCode::kNotFound,
                 fmt::format("There is no Vulkan device {}; there are: {}.", choice, list)};
}

}  // namespace fornax::vulkan
