// Creates the benchmark's Vulkan objects, checks every result and destroys the objects again.
#include "tools/bench/device.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace fornax::bench {
namespace {

// Returns the Error of a Vulkan call that did not succeed from the enclosing function.
#define RETURN_IF_VK_ERROR(function, ...)                 \
    do {                                                  \
        const VkResult vk_result = function(__VA_ARGS__); \
        if (vk_result != VK_SUCCESS)                      \
            return VulkanError(#function, vk_result);     \
    } while (false)

constexpr VkPipelineStageFlags kDeviceStages =
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;

double SecondsSince(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Results that the functions used here may return; others print as their number alone.
const char* VkResultName(VkResult result) {
    switch (result) {
        case VK_ERROR_OUT_OF_HOST_MEMORY:
            return "VK_ERROR_OUT_OF_HOST_MEMORY";
        case VK_ERROR_OUT_OF_DEVICE_MEMORY:
            return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
        case VK_ERROR_INITIALIZATION_FAILED:
            return "VK_ERROR_INITIALIZATION_FAILED";
        case VK_ERROR_DEVICE_LOST:
            return "VK_ERROR_DEVICE_LOST";
        case VK_ERROR_MEMORY_MAP_FAILED:
            return "VK_ERROR_MEMORY_MAP_FAILED";
        case VK_ERROR_LAYER_NOT_PRESENT:
            return "VK_ERROR_LAYER_NOT_PRESENT";
        case VK_ERROR_EXTENSION_NOT_PRESENT:
            return "VK_ERROR_EXTENSION_NOT_PRESENT";
        case VK_ERROR_FEATURE_NOT_PRESENT:
            return "VK_ERROR_FEATURE_NOT_PRESENT";
        case VK_ERROR_INCOMPATIBLE_DRIVER:
            return "VK_ERROR_INCOMPATIBLE_DRIVER";
        case VK_ERROR_UNKNOWN:
            return "VK_ERROR_UNKNOWN";
        default:
            return "VkResult";
    }
}

VKAPI_ATTR VkBool32 VKAPI_CALL CollectMessage(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                              VkDebugUtilsMessageTypeFlagsEXT,
                                              const VkDebugUtilsMessengerCallbackDataEXT* data,
                                              void* messages) {
    static_cast<std::vector<std::string>*>(messages)->push_back(data->pMessage);
    return VK_FALSE;
}

}  // namespace

Error VulkanError(const char* function, VkResult result) {
    const ErrorCode code = result == VK_ERROR_DEVICE_LOST            ? ErrorCode::kDeviceLost
                           : result == VK_ERROR_OUT_OF_HOST_MEMORY   ? ErrorCode::kOutOfHostMemory
                           : result == VK_ERROR_OUT_OF_DEVICE_MEMORY ? ErrorCode::kOutOfDeviceMemory
                                                                     : ErrorCode::kInternal;
    return Error{code, fmt::format("{} returned {} ({}).", function, VkResultName(result),
                                   static_cast<int>(result))};
}

Buffer::Buffer(Buffer&& other) noexcept {
    *this = std::move(other);
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    std::swap(memory_, other.memory_);
    std::swap(mapped_, other.mapped_);
    std::swap(size_bytes_, other.size_bytes_);
    return *this;
}

Buffer::~Buffer() {
    if (device_ == VK_NULL_HANDLE) {
        return;
    }
    vkDestroyBuffer(device_, handle_, nullptr);
    vkFreeMemory(device_, memory_, nullptr);
}

Kernel::Kernel(Kernel&& other) noexcept {
    *this = std::move(other);
}

Kernel& Kernel::operator=(Kernel&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(buffer_count_, other.buffer_count_);
    std::swap(set_layout_, other.set_layout_);
    std::swap(pool_, other.pool_);
    std::swap(descriptor_set_, other.descriptor_set_);
    std::swap(layout_, other.layout_);
    std::swap(pipeline_, other.pipeline_);
    return *this;
}

Kernel::~Kernel() {
    if (device_ == VK_NULL_HANDLE) {
        return;
    }
    vkDestroyPipeline(device_, pipeline_, nullptr);
    vkDestroyPipelineLayout(device_, layout_, nullptr);
    vkDestroyDescriptorPool(device_, pool_, nullptr);
    vkDestroyDescriptorSetLayout(device_, set_layout_, nullptr);
}

Result<std::unique_ptr<Device>> Device::Create(bool validate) {
    if (volkInitialize() != VK_SUCCESS) {
        return Error{ErrorCode::kNotFound,
                     "The Vulkan loader libvulkan.so.1 is not installed; on Debian its package is "
                     "libvulkan1."};
    }
    std::unique_ptr<Device> device(new Device);
    const auto start = std::chrono::steady_clock::now();
    FORNAX_RETURN_IF_ERROR(device->CreateInstance(validate));
    FORNAX_RETURN_IF_ERROR(device->CreateDevice());
    device->start_seconds_ = SecondsSince(start);
    FORNAX_RETURN_IF_ERROR(device->CreateHelpers());
    return device;
}

Device::~Device() {
    if (device_ != VK_NULL_HANDLE) {
        vkDestroyFence(device_, fence_, nullptr);
        vkDestroyCommandPool(device_, command_pool_, nullptr);
        vkDestroyDevice(device_, nullptr);
    }
    if (messenger_ != VK_NULL_HANDLE) {
        vkDestroyDebugUtilsMessengerEXT(instance_, messenger_, nullptr);
    }
    if (instance_ != VK_NULL_HANDLE) {
        vkDestroyInstance(instance_, nullptr);
    }
}

Status Device::CreateInstance(bool validate) {
    static constexpr const char* kLayers[] = {"VK_LAYER_KHRONOS_validation"};
    static constexpr const char* kExtensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};
    static constexpr VkValidationFeatureEnableEXT kEnables[] = {
        VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};

    VkValidationFeaturesEXT validation_features = {VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT};
    validation_features.enabledValidationFeatureCount = std::size(kEnables);
    validation_features.pEnabledValidationFeatures = kEnables;
    VkDebugUtilsMessengerCreateInfoEXT messenger = {
        VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
    messenger.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                                VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    // The loader's own remarks about the machine's other drivers are of type GENERAL.
    messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
    messenger.pfnUserCallback = CollectMessage;
    messenger.pUserData = validation_messages_.get();
    messenger.pNext = &validation_features;

    if (validate) {
        uint32_t count = 0;
        vkEnumerateInstanceLayerProperties(&count, nullptr);
        std::vector<VkLayerProperties> layers(count);
        vkEnumerateInstanceLayerProperties(&count, layers.data());
        // The version that VK_KHR_cooperative_matrix came with.
        constexpr uint32_t kFirst = VK_MAKE_API_VERSION(0, 1, 3, 255);
        layer_knows_matrices_ = std::ranges::any_of(layers, [&](const VkLayerProperties& layer) {
            return std::strcmp(layer.layerName, kLayers[0]) == 0 && layer.specVersion >= kFirst;
        });
    }
    VkApplicationInfo application = {VK_STRUCTURE_TYPE_APPLICATION_INFO};
    application.pApplicationName = "fornax bench";
    application.apiVersion = VK_API_VERSION_1_3;
    VkInstanceCreateInfo create_info = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    create_info.pApplicationInfo = &application;
    if (validate) {
        create_info.pNext = &messenger;
        create_info.enabledLayerCount = std::size(kLayers);
        create_info.ppEnabledLayerNames = kLayers;
        create_info.enabledExtensionCount = std::size(kExtensions);
        create_info.ppEnabledExtensionNames = kExtensions;
    }
    RETURN_IF_VK_ERROR(vkCreateInstance, &create_info, nullptr, &instance_);
    volkLoadInstanceOnly(instance_);
    if (validate) {
        messenger.pNext = nullptr;
        RETURN_IF_VK_ERROR(vkCreateDebugUtilsMessengerEXT, instance_, &messenger, nullptr,
                           &messenger_);
    }
    return OkStatus();
}

Status Device::CreateDevice() {
    uint32_t device_count = 1;
    const VkResult enumerated = vkEnumeratePhysicalDevices(instance_, &device_count, &physical_);
    if (enumerated != VK_SUCCESS && enumerated != VK_INCOMPLETE) {
        return VulkanError("vkEnumeratePhysicalDevices", enumerated);
    }
    if (device_count == 0) {
        return Error{ErrorCode::kNotFound, "The driver offers no device."};
    }

    uint32_t family_count = 0;
    vkGetPhysicalDeviceQueueFamilyProperties(physical_, &family_count, nullptr);
    std::vector<VkQueueFamilyProperties> families(family_count);
    vkGetPhysicalDeviceQueueFamilyProperties(physical_, &family_count, families.data());
    while (queue_family_ < family_count &&
           (families[queue_family_].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) {
        ++queue_family_;
    }
    if (queue_family_ == family_count) {
        return Error{ErrorCode::kUnsupported, "The device has no queue family that can compute."};
    }

    const float priority = 1.0f;
    VkDeviceQueueCreateInfo queue = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    queue.queueFamilyIndex = queue_family_;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    VkDeviceCreateInfo create_info = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
    create_info.queueCreateInfoCount = 1;
    create_info.pQueueCreateInfos = &queue;
    std::vector<const char*> extensions;
    VkPhysicalDeviceShaderFloat16Int8Features arithmetic = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES};
    VkPhysicalDevice8BitStorageFeatures storage8 = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES};
    VkPhysicalDevice16BitStorageFeatures storage16 = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES};
    VkPhysicalDeviceFeatures2 features = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    features.pNext = &storage16;
    // Kernels on narrow types need these; whatever the device lacks is not enabled.
    void** next = &storage16.pNext;
    if (HasExtension(VK_KHR_8BIT_STORAGE_EXTENSION_NAME)) {
        extensions.push_back(VK_KHR_8BIT_STORAGE_EXTENSION_NAME);
        *next = &storage8;
        next = &storage8.pNext;
    }
    if (HasExtension(VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME)) {
        extensions.push_back(VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME);
        *next = &arithmetic;
    }
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrices = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR};
    VkPhysicalDeviceVulkanMemoryModelFeatures memory_model = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES};
    if (MultipliesFloatMatrices()) {
        extensions.push_back(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
        extensions.push_back(VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME);
        matrices.pNext = features.pNext;
        memory_model.pNext = &matrices;
        features.pNext = &memory_model;
    }
    vkGetPhysicalDeviceFeatures2(physical_, &features);
    VkPhysicalDeviceFeatures core = {};
    core.shaderFloat64 = features.features.shaderFloat64;
    core.shaderInt64 = features.features.shaderInt64;
    core.shaderInt16 = features.features.shaderInt16;
    features.features = core;
    matrices.cooperativeMatrixRobustBufferAccess = VK_FALSE;
    create_info.pNext = &features;
    create_info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
    create_info.ppEnabledExtensionNames = extensions.data();
    RETURN_IF_VK_ERROR(vkCreateDevice, physical_, &create_info, nullptr, &device_);
    volkLoadDevice(device_);
    vkGetDeviceQueue(device_, queue_family_, 0, &queue_);
    return OkStatus();
}

bool Device::HasExtension(const char* name) const {
    uint32_t count = 0;
    vkEnumerateDeviceExtensionProperties(physical_, nullptr, &count, nullptr);
    std::vector<VkExtensionProperties> extensions(count);
    vkEnumerateDeviceExtensionProperties(physical_, nullptr, &count, extensions.data());
    return std::any_of(extensions.begin(), extensions.end(), [&](const auto& extension) {
        return std::strcmp(extension.extensionName, name) == 0;
    });
}

bool Device::MultipliesFloatMatrices() const {
    if (!layer_knows_matrices_ || !HasExtension(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME) ||
        !HasExtension(VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME)) {
        return false;
    }
    VkPhysicalDeviceSubgroupProperties subgroups = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
    VkPhysicalDeviceProperties2 properties = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    properties.pNext = &subgroups;
    vkGetPhysicalDeviceProperties2(physical_, &properties);
    uint32_t count = 0;
    vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(physical_, &count, nullptr);
    std::vector<VkCooperativeMatrixPropertiesKHR> listed(
        count, {VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR});
    vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(physical_, &count, listed.data());
    constexpr uint32_t kSize = 16;
    return properties.properties.apiVersion >= VK_API_VERSION_1_3 && subgroups.subgroupSize == 32 &&
           std::ranges::any_of(listed, [](const VkCooperativeMatrixPropertiesKHR& matrix) {
               return matrix.MSize == kSize && matrix.NSize == kSize && matrix.KSize == kSize &&
                      matrix.scope == VK_SCOPE_SUBGROUP_KHR &&
                      matrix.AType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
                      matrix.BType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
                      matrix.CType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
                      matrix.ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR;
           });
}

Status Device::CreateHelpers() {
    VkCommandPoolCreateInfo pool = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    pool.queueFamilyIndex = queue_family_;
    RETURN_IF_VK_ERROR(vkCreateCommandPool, device_, &pool, nullptr, &command_pool_);
    VkFenceCreateInfo fence = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    RETURN_IF_VK_ERROR(vkCreateFence, device_, &fence, nullptr, &fence_);
    return OkStatus();
}

Result<Buffer> Device::CreateBuffer(size_t size_bytes) {
    Buffer buffer;
    buffer.device_ = device_;
    buffer.size_bytes_ = size_bytes;
    VkBufferCreateInfo create_info = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    create_info.size = size_bytes;
    create_info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                        VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    RETURN_IF_VK_ERROR(vkCreateBuffer, device_, &create_info, nullptr, &buffer.handle_);

    VkMemoryRequirements requirements = {};
    vkGetBufferMemoryRequirements(device_, buffer.handle_, &requirements);
    VkPhysicalDeviceMemoryProperties memory = {};
    vkGetPhysicalDeviceMemoryProperties(physical_, &memory);
    constexpr VkMemoryPropertyFlags kWanted =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    uint32_t type = 0;
    while (type < memory.memoryTypeCount &&
           ((requirements.memoryTypeBits >> type & 1) == 0 ||
            (memory.memoryTypes[type].propertyFlags & kWanted) != kWanted)) {
        ++type;
    }
    if (type == memory.memoryTypeCount) {
        return Error{ErrorCode::kUnsupported,
                     "The device has no host-visible, coherent memory for storage buffers."};
    }

    VkMemoryAllocateInfo allocate_info = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    allocate_info.allocationSize = requirements.size;
    allocate_info.memoryTypeIndex = type;
    RETURN_IF_VK_ERROR(vkAllocateMemory, device_, &allocate_info, nullptr, &buffer.memory_);
    RETURN_IF_VK_ERROR(vkBindBufferMemory, device_, buffer.handle_, buffer.memory_, 0);
    RETURN_IF_VK_ERROR(vkMapMemory, device_, buffer.memory_, 0, VK_WHOLE_SIZE, 0, &buffer.mapped_);
    return buffer;
}

Result<Kernel> Device::CreateKernel(std::span<const uint32_t> spirv,
                                    std::span<const Buffer> buffers,
                                    uint32_t push_constant_bytes) {
    Kernel kernel;
    kernel.device_ = device_;
    const uint32_t buffer_count = static_cast<uint32_t>(buffers.size());
    kernel.buffer_count_ = buffer_count;

    std::vector<VkDescriptorSetLayoutBinding> bindings(buffer_count);
    std::vector<VkDescriptorBufferInfo> infos(buffer_count);
    for (uint32_t i = 0; i < buffer_count; ++i) {
        bindings[i].binding = i;
        bindings[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        bindings[i].descriptorCount = 1;
        bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
        infos[i] = {buffers[i].handle(), 0, VK_WHOLE_SIZE};
    }
    VkDescriptorSetLayoutCreateInfo set_layout = {
        VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    set_layout.bindingCount = buffer_count;
    set_layout.pBindings = bindings.data();
    RETURN_IF_VK_ERROR(vkCreateDescriptorSetLayout, device_, &set_layout, nullptr,
                       &kernel.set_layout_);

    const VkDescriptorPoolSize pool_size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, buffer_count};
    VkDescriptorPoolCreateInfo pool = {VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    pool.maxSets = 1;
    pool.poolSizeCount = 1;
    pool.pPoolSizes = &pool_size;
    RETURN_IF_VK_ERROR(vkCreateDescriptorPool, device_, &pool, nullptr, &kernel.pool_);
    VkDescriptorSetAllocateInfo allocate_info = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    allocate_info.descriptorPool = kernel.pool_;
    allocate_info.descriptorSetCount = 1;
    allocate_info.pSetLayouts = &kernel.set_layout_;
    RETURN_IF_VK_ERROR(vkAllocateDescriptorSets, device_, &allocate_info, &kernel.descriptor_set_);
    for (uint32_t i = 0; i < buffer_count; ++i) {
        VkWriteDescriptorSet write = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
        write.dstSet = kernel.descriptor_set_;
        write.dstBinding = i;
        write.descriptorCount = 1;
        write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        write.pBufferInfo = &infos[i];
        vkUpdateDescriptorSets(device_, 1, &write, 0, nullptr);
    }

    const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, push_constant_bytes};
    VkPipelineLayoutCreateInfo layout = {VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    layout.setLayoutCount = 1;
    layout.pSetLayouts = &kernel.set_layout_;
    layout.pushConstantRangeCount = push_constant_bytes == 0 ? 0 : 1;
    layout.pPushConstantRanges = &range;
    RETURN_IF_VK_ERROR(vkCreatePipelineLayout, device_, &layout, nullptr, &kernel.layout_);

    VkShaderModuleCreateInfo module_info = {VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    module_info.codeSize = spirv.size_bytes();
    module_info.pCode = spirv.data();
    VkShaderModule module = VK_NULL_HANDLE;
    RETURN_IF_VK_ERROR(vkCreateShaderModule, device_, &module_info, nullptr, &module);
    VkComputePipelineCreateInfo pipeline = {VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    pipeline.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    pipeline.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    pipeline.stage.module = module;
    pipeline.stage.pName = "main";
    pipeline.layout = kernel.layout_;
    const VkResult created =
        vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &pipeline, nullptr, &kernel.pipeline_);
    vkDestroyShaderModule(device_, module, nullptr);
    if (created != VK_SUCCESS) {
        return VulkanError("vkCreateComputePipelines", created);
    }
    return kernel;
}

Result<VkCommandBuffer> Device::BeginCommands() {
    VkCommandBufferAllocateInfo allocate_info = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate_info.commandPool = command_pool_;
    allocate_info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    allocate_info.commandBufferCount = 1;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    RETURN_IF_VK_ERROR(vkAllocateCommandBuffers, device_, &allocate_info, &commands);
    FORNAX_RETURN_IF_ERROR(BeginAgain(commands));
    return commands;
}

Status Device::BeginAgain(VkCommandBuffer commands) {
    VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    RETURN_IF_VK_ERROR(vkBeginCommandBuffer, commands, &begin);
    return OkStatus();
}

Status Device::AllocateSets(const Kernel& kernel,
                            std::span<VkDescriptorSet> sets,
                            VkDescriptorPool* pool) {
    const auto set_count = static_cast<uint32_t>(sets.size());
    const VkDescriptorPoolSize pool_size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                            kernel.buffer_count_ * set_count};
    VkDescriptorPoolCreateInfo create_info = {VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    create_info.maxSets = set_count;
    create_info.poolSizeCount = 1;
    create_info.pPoolSizes = &pool_size;
    RETURN_IF_VK_ERROR(vkCreateDescriptorPool, device_, &create_info, nullptr, pool);
    const std::vector<VkDescriptorSetLayout> layouts(set_count, kernel.set_layout_);
    VkDescriptorSetAllocateInfo allocate_info = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    allocate_info.descriptorPool = *pool;
    allocate_info.descriptorSetCount = set_count;
    allocate_info.pSetLayouts = layouts.data();
    RETURN_IF_VK_ERROR(vkAllocateDescriptorSets, device_, &allocate_info, sets.data());
    return OkStatus();
}

Status Device::EndCommands(VkCommandBuffer commands) {
    // A fence alone does not make device writes visible to the host: "Host Access to Device
    // Memory".
    VkMemoryBarrier barrier = {VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    vkCmdPipelineBarrier(commands, kDeviceStages, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0,
                         nullptr, 0, nullptr);
    RETURN_IF_VK_ERROR(vkEndCommandBuffer, commands);
    return OkStatus();
}

Result<double> Device::Submit(VkCommandBuffer commands) {
    VkSubmitInfo submit = {VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands;
    const auto start = std::chrono::steady_clock::now();
    RETURN_IF_VK_ERROR(vkQueueSubmit, queue_, 1, &submit, fence_);
    RETURN_IF_VK_ERROR(vkWaitForFences, device_, 1, &fence_, VK_TRUE, UINT64_MAX);
    const double seconds = SecondsSince(start);
    RETURN_IF_VK_ERROR(vkResetFences, device_, 1, &fence_);
    return seconds;
}

void RecordBarrier(VkCommandBuffer commands) {
    VkMemoryBarrier barrier = {VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                            VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    vkCmdPipelineBarrier(commands, kDeviceStages, kDeviceStages, 0, 1, &barrier, 0, nullptr, 0,
                         nullptr);
}

}  // namespace fornax::bench
