// Creating a device with what it has of the features that kernels use.
#include "runtime/vulkan/device.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "runtime/vulkan/result.h"

namespace fornax::vulkan {
namespace {

std::vector<VkExtensionProperties> ExtensionsOf(const Instance& instance, VkPhysicalDevice device) {
    uint32_t count = 0;
    const auto& vk = instance.vk();
    if (vk.vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr) != VK_SUCCESS) {
        return {};
    }
    std::vector<VkExtensionProperties> extensions(count);
    vk.vkEnumerateDeviceExtensionProperties(device, nullptr, &count, extensions.data());
    extensions.resize(count);
    return extensions;
}

// Whether cooperative matrices of 16 x 16 f32 are multiplied.
bool HasMatricesOfF32(const Instance& instance, VkPhysicalDevice device) {
    const auto& vk = instance.vk();
    uint32_t count = 0;
    vk.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(device, &count, nullptr);
    std::vector<VkCooperativeMatrixPropertiesKHR> kinds(
        count, {VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR});
    vk.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(device, &count, kinds.data());
    return std::any_of(kinds.begin(), kinds.end(), [](const auto& kind) {
        const auto is_f32 = [](VkComponentTypeKHR type) {
            return type == VK_COMPONENT_TYPE_FLOAT32_KHR;
        };
        return kind.MSize == 16 && kind.NSize == 16 && kind.KSize == 16 && is_f32(kind.AType) &&
               is_f32(kind.BType) && is_f32(kind.CType) && is_f32(kind.ResultType) &&
               kind.scope == VK_SCOPE_SUBGROUP_KHR;
    });
}

constexpr VkSubgroupFeatureFlags kSubgroupOperations = VK_SUBGROUP_FEATURE_BASIC_BIT |
                                                       VK_SUBGROUP_FEATURE_VOTE_BIT |
                                                       VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;

// The features that kernels may use, as one chain.
struct Features {
    VkPhysicalDeviceFeatures2 core = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    VkPhysicalDeviceVulkan11Features v11 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
    VkPhysicalDeviceVulkan12Features v12 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR};
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16 = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR};

    // With the structures of the extensions that the device has.
    VkPhysicalDeviceShaderIntegerDotProductFeaturesKHR integer_dot = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES_KHR};

    VkPhysicalDeviceShaderMixedFloatDotProductFeaturesVALVE mixed_dot = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_MIXED_FLOAT_DOT_PRODUCT_FEATURES_VALVE};

    void Chain(bool has_matrix, bool has_bfloat16, bool has_integer_dot, bool has_mixed_dot) {
        core.pNext = &v11;
        v11.pNext = &v12;
        void** end = &v12.pNext;
        if (has_matrix) {
            *end = &matrix;
            end = &matrix.pNext;
        }
        if (has_bfloat16) {
            *end = &bfloat16;
            end = &bfloat16.pNext;
        }
        if (has_integer_dot) {
            *end = &integer_dot;
            end = &integer_dot.pNext;
        }
        if (has_mixed_dot) {
            *end = &mixed_dot;
        }
    }
};

// Selects what is to be switched on from what the device has.
void Select(const Features& has, Features& wanted) {
    wanted.core.features.shaderInt16 = has.core.features.shaderInt16;
    wanted.core.features.shaderInt64 = has.core.features.shaderInt64;
    wanted.core.features.shaderFloat64 = has.core.features.shaderFloat64;
    wanted.v11.storageBuffer16BitAccess = has.v11.storageBuffer16BitAccess;
    wanted.v12.storageBuffer8BitAccess = has.v12.storageBuffer8BitAccess;
    wanted.v12.shaderInt8 = has.v12.shaderInt8;
    wanted.v12.shaderFloat16 = has.v12.shaderFloat16;
    wanted.v12.shaderSubgroupExtendedTypes = has.v12.shaderSubgroupExtendedTypes;
    wanted.v12.vulkanMemoryModel = has.v12.vulkanMemoryModel;
    wanted.v12.vulkanMemoryModelDeviceScope = has.v12.vulkanMemoryModelDeviceScope;
    wanted.matrix.cooperativeMatrix = has.matrix.cooperativeMatrix;
    wanted.bfloat16.shaderBFloat16Type = has.bfloat16.shaderBFloat16Type;
    wanted.integer_dot.shaderIntegerDotProduct = has.integer_dot.shaderIntegerDotProduct;
    wanted.mixed_dot.shaderMixedFloatDotProductBFloat16Acc =
        has.mixed_dot.shaderMixedFloatDotProductBFloat16Acc;
    wanted.bfloat16.shaderBFloat16CooperativeMatrix = has.bfloat16.shaderBFloat16CooperativeMatrix;
}

}  // namespace

Result<std::shared_ptr<Device>> Device::Open(const std::string& choice, const std::string& driver) {
    InstanceOptions options;
    options.host_clock = true;
    options.driver = driver;
    FORNAX_ASSIGN_OR_RETURN(std::shared_ptr<const Instance> instance,
                            Instance::Create(std::move(options)));
    FORNAX_ASSIGN_OR_RETURN(const VkPhysicalDevice physical, instance->Choose(choice));
    return Open(std::move(instance), physical);
}

Result<std::shared_ptr<Device>> Device::Open(std::shared_ptr<const Instance> instance,
                                             VkPhysicalDevice physical_device) {
    std::shared_ptr<Device> device(new Device);
    device->instance_ = std::move(instance);
    device->physical_ = physical_device;
    device->Describe();
    FORNAX_RETURN_IF_ERROR(device->Create());
    return device;
}

Result<std::shared_ptr<Device>> Device::Open(std::shared_ptr<const Instance> instance,
                                             VkPhysicalDevice physical_device,
                                             const VkDeviceCreateInfo& info) {
    std::shared_ptr<Device> device(new Device);
    device->instance_ = std::move(instance);
    device->physical_ = physical_device;
    device->Describe();
    device->features_ = {};
    FORNAX_RETURN_IF_ERROR(device->CreateWith(info));
    return device;
}

std::shared_ptr<Device> Device::Wrap(const ForeignDevice& foreign) {
    std::shared_ptr<Device> device(new Device);
    device->instance_ = Instance::Wrap(foreign.instance, foreign.functions);
    device->physical_ = foreign.physical_device;
    device->Describe();
    const DeviceFeatures described = device->features_;
    device->features_ = foreign.features;
    device->features_.subgroup_arithmetic =
        foreign.features.subgroup_arithmetic && described.subgroup_arithmetic;
    device->features_.signed_zero_inf_nan_preserve = described.signed_zero_inf_nan_preserve;
    device->features_.host_import_alignment =
        foreign.host_import ? described.host_import_alignment : 0;
    device->device_ = foreign.device;
    device->table_ = std::make_unique<VolkDeviceTable>();
    LoadDeviceTable(device->instance_->device_functions(), foreign.device, *device->table_);
    device->queue_family_ = foreign.queue_family;
    device->queue_ = foreign.queue;
    return device;
}

Device::~Device() {
    if (owned_) {
        table_->vkDeviceWaitIdle(device_);
        table_->vkDestroyDevice(device_, nullptr);
    }
}

void Device::Describe() {
    const auto& vk = instance_->vk();
    properties_ = instance_->PropertiesOf(physical_);
    vk.vkGetPhysicalDeviceMemoryProperties(physical_, &memory_);
    VkPhysicalDeviceSubgroupProperties subgroups = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
    VkPhysicalDeviceFloatControlsProperties floats = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES, &subgroups};
    VkPhysicalDeviceMaintenance3Properties maintenance3 = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES, &subgroups};
    if (properties_.apiVersion >= VK_API_VERSION_1_2) {
        maintenance3.pNext = &floats;
    }
    VkPhysicalDeviceExternalMemoryHostPropertiesEXT host = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT};
    for (const VkExtensionProperties& extension : ExtensionsOf(*instance_, physical_)) {
        if (extension.extensionName ==
            std::string_view(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME)) {
            subgroups.pNext = &host;
        }
    }
    VkPhysicalDeviceProperties2 properties = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                              &maintenance3};
    if (properties_.apiVersion >= VK_API_VERSION_1_1) {
        vk.vkGetPhysicalDeviceProperties2(physical_, &properties);
    }
    subgroup_size_ = std::max(subgroups.subgroupSize, 1u);
    features_.subgroup_arithmetic =
        (subgroups.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
        (subgroups.supportedOperations & kSubgroupOperations) == kSubgroupOperations;
    features_.signed_zero_inf_nan_preserve = floats.shaderSignedZeroInfNanPreserveFloat32 != 0;
    max_allocation_bytes_ = maintenance3.maxMemoryAllocationSize;
    features_.host_import_alignment = host.minImportedHostPointerAlignment;
}

Status Device::Create() {
    if (properties_.apiVersion < VK_API_VERSION_1_2) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("The device {} has Vulkan {}.{}; 1.2 is needed.", name(),
                                 VK_API_VERSION_MAJOR(properties_.apiVersion),
                                 VK_API_VERSION_MINOR(properties_.apiVersion))};
    }
    const auto& vk = instance_->vk();
    uint32_t count = 0;
    vk.vkGetPhysicalDeviceQueueFamilyProperties(physical_, &count, nullptr);
    std::vector<VkQueueFamilyProperties> families(count);
    vk.vkGetPhysicalDeviceQueueFamilyProperties(physical_, &count, families.data());
    const auto family = std::find_if(families.begin(), families.end(), [](const auto& properties) {
        return (properties.queueFlags & VK_QUEUE_COMPUTE_BIT) != 0;
    });
    if (family == families.end()) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("The device {} has no queue that can compute.", name())};
    }
    queue_family_ = static_cast<uint32_t>(family - families.begin());
    timestamp_bits_ = family->timestampValidBits;

    const std::vector<VkExtensionProperties> extensions = ExtensionsOf(*instance_, physical_);
    std::vector<const char*> enabled;
    const auto enable = [&](const char* name) {
        const bool has = std::any_of(extensions.begin(), extensions.end(), [&](const auto& e) {
            return e.extensionName == std::string_view(name);
        });
        if (has) {
            enabled.push_back(name);
        }
        return has;
    };
    const bool has_matrix =
        instance_->layer_knows_matrices() && enable(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
    const bool has_bfloat16 =
        instance_->layer_knows_matrices() && enable(VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME);
    const bool has_integer_dot = enable(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
    const bool has_mixed_dot =
        has_bfloat16 && enable(VK_VALVE_SHADER_MIXED_FLOAT_DOT_PRODUCT_EXTENSION_NAME);
    if (!enable(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME)) {
        features_.host_import_alignment = 0;
    }
    features_.creation_feedback = properties_.apiVersion >= VK_API_VERSION_1_3 ||
                                  enable(VK_EXT_PIPELINE_CREATION_FEEDBACK_EXTENSION_NAME);
    Features has, wanted;
    has.Chain(has_matrix, has_bfloat16, has_integer_dot, has_mixed_dot);
    vk.vkGetPhysicalDeviceFeatures2(physical_, &has.core);
    wanted.Chain(has_matrix, has_bfloat16, has_integer_dot, has_mixed_dot);
    Select(has, wanted);
    features_.int64 = wanted.core.features.shaderInt64 != 0;
    features_.float64 = wanted.core.features.shaderFloat64 != 0;
    features_.storage_8bit = wanted.v12.storageBuffer8BitAccess != 0 && wanted.v12.shaderInt8 != 0;
    features_.storage_16bit =
        wanted.v11.storageBuffer16BitAccess != 0 && wanted.core.features.shaderInt16 != 0;
    // Kernels combine elements of all types.
    features_.subgroup_arithmetic =
        features_.subgroup_arithmetic && wanted.v12.shaderSubgroupExtendedTypes != 0;
    features_.cooperative_matrix =
        wanted.matrix.cooperativeMatrix != 0 && wanted.v12.vulkanMemoryModel != 0;
    features_.matrices_f32 =
        features_.cooperative_matrix && HasMatricesOfF32(*instance_, physical_);
    features_.integer_dot = wanted.integer_dot.shaderIntegerDotProduct != 0;
    features_.bfloat16 = wanted.bfloat16.shaderBFloat16Type != 0;
    features_.bfloat16_dot =
        features_.bfloat16 && wanted.mixed_dot.shaderMixedFloatDotProductBFloat16Acc != 0;

    const float priority = 1;
    VkDeviceQueueCreateInfo queue_info = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    queue_info.queueFamilyIndex = queue_family_;
    queue_info.queueCount = 1;
    queue_info.pQueuePriorities = &priority;
    VkDeviceCreateInfo device_info = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &wanted.core};
    device_info.queueCreateInfoCount = 1;
    device_info.pQueueCreateInfos = &queue_info;
    device_info.enabledExtensionCount = static_cast<uint32_t>(enabled.size());
    device_info.ppEnabledExtensionNames = enabled.data();
    return CreateWith(device_info);
}

Status Device::CreateWith(const VkDeviceCreateInfo& info) {
    FORNAX_RETURN_IF_FAILED("vkCreateDevice",
                            instance_->vk().vkCreateDevice(physical_, &info, nullptr, &device_));
    owned_ = true;
    const VkDeviceQueueCreateInfo& first = info.pQueueCreateInfos[0];
    queue_family_ = first.queueFamilyIndex;
    table_ = std::make_unique<VolkDeviceTable>();
    LoadDeviceTable(instance_->device_functions(), device_, *table_);
    // vkGetDeviceQueue wants no flags at any queue of the family
    // (VUID-vkGetDeviceQueue-flags-01841).
    VkDeviceQueueInfo2 queue_info = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_INFO_2};
    queue_info.flags = first.flags;
    queue_info.queueFamilyIndex = queue_family_;
    table_->vkGetDeviceQueue2(device_, &queue_info, &queue_);
    return OkStatus();
}

Result<uint32_t> Device::HostMemoryType(uint32_t allowed_types) const {
    constexpr VkMemoryPropertyFlags kNeeded =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    for (const VkMemoryPropertyFlags wanted :
         {kNeeded | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, kNeeded}) {
        for (uint32_t i = 0; i < memory_.memoryTypeCount; ++i) {
            if ((allowed_types >> i & 1) != 0 &&
                (memory_.memoryTypes[i].propertyFlags & wanted) == wanted) {
                return i;
            }
        }
    }
    // Vulkan 11.2.1 promises such a type for every buffer that is not protected.
    return Error{ErrorCode::kUnsupported,
                 fmt::format("The device {} has no memory that the host can map.", name())};
}

Status Device::Submit(VkCommandBuffer commands, VkFence fence) {
    if (queue_ == VK_NULL_HANDLE) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("The device {} was given with no queue, so that plans on it are "
                                 "recorded only.",
                                 name())};
    }
    VkSubmitInfo submit_info = {VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submit_info.commandBufferCount = 1;
    submit_info.pCommandBuffers = &commands;
    const std::lock_guard lock(queue_mutex_);
    FORNAX_RETURN_IF_FAILED("vkQueueSubmit", vk().vkQueueSubmit(queue_, 1, &submit_info, fence));
    return OkStatus();
}

}  // namespace fornax::vulkan
