// The Vulkan objects of one dispatch, made and destroyed for each.
#include "tests/graph/kernel_runner.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>

#include <fmt/format.h>
#include <volk.h>

namespace fornax::test {

namespace {

// Around each buffer in its memory.
constexpr VkDeviceSize kMargin = 4096;
constexpr uint8_t kPoison = 0xA5;
constexpr uint32_t kTimedDispatches = 2;

Error Failed(const char* what, VkResult result) {
    return {ErrorCode::kInternal,
            fmt::format("{} returned VkResult {}.", what, static_cast<int>(result))};
}

}  // namespace

#define RETURN_IF_FAILED(call)                   \
    do {                                         \
        const VkResult vulkan_result = (call);   \
        if (vulkan_result != VK_SUCCESS)         \
            return Failed(#call, vulkan_result); \
    } while (false)

struct KernelRunner::Handles {
    VkInstance instance = VK_NULL_HANDLE;
    VkPhysicalDevice physical = VK_NULL_HANDLE;
    VkDevice device = VK_NULL_HANDLE;
    VkQueue queue = VK_NULL_HANDLE;
    VkCommandPool pool = VK_NULL_HANDLE;
    VkPhysicalDeviceProperties properties = {};
    VkPhysicalDeviceMemoryProperties memory = {};
};

struct KernelRunner::Objects {
    struct Bound {
        VkBuffer buffer = VK_NULL_HANDLE;
        VkDeviceMemory memory = VK_NULL_HANDLE;
        uint8_t* mapped = nullptr;
        size_t size_bytes = 0;
    };
    std::vector<Bound> buffers;
    VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
    VkPipelineLayout layout = VK_NULL_HANDLE;
    VkShaderModule module = VK_NULL_HANDLE;
    VkPipeline pipeline = VK_NULL_HANDLE;
    VkDescriptorPool descriptors = VK_NULL_HANDLE;
    VkDescriptorSet set = VK_NULL_HANDLE;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkFence fence = VK_NULL_HANDLE;
};

KernelRunner::KernelRunner() : handles_(std::make_unique<Handles>()) {}

Result<std::unique_ptr<KernelRunner>> KernelRunner::Open() {
    std::unique_ptr<KernelRunner> runner(new KernelRunner);
    Handles& h = *runner->handles_;
    RETURN_IF_FAILED(volkInitialize());
    VkApplicationInfo application = {VK_STRUCTURE_TYPE_APPLICATION_INFO};
    application.apiVersion = VK_API_VERSION_1_3;
    VkInstanceCreateInfo instance_info = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    instance_info.pApplicationInfo = &application;
    RETURN_IF_FAILED(vkCreateInstance(&instance_info, nullptr, &h.instance));
    volkLoadInstanceOnly(h.instance);
    uint32_t count = 1;
    const VkResult listed = vkEnumeratePhysicalDevices(h.instance, &count, &h.physical);
    if (count == 0 || (listed != VK_SUCCESS && listed != VK_INCOMPLETE)) {
        return Error{ErrorCode::kNotFound, "The Vulkan loader offers no device."};
    }
    vkGetPhysicalDeviceProperties(h.physical, &h.properties);
    vkGetPhysicalDeviceMemoryProperties(h.physical, &h.memory);

    VkPhysicalDeviceVulkan12Features has12 = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceVulkan11Features has11 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
                                              &has12};
    VkPhysicalDeviceFeatures2 has = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &has11};
    vkGetPhysicalDeviceFeatures2(h.physical, &has);
    VkPhysicalDeviceVulkan12Properties properties12 = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES};
    VkPhysicalDeviceVulkan11Properties properties11 = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES, &properties12};
    VkPhysicalDeviceProperties2 properties = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                              &properties11};
    vkGetPhysicalDeviceProperties2(h.physical, &properties);

    graph::loop::Target& target = runner->target_;
    target.subgroup_size = properties11.subgroupSize;
    target.max_workgroup_count = h.properties.limits.maxComputeWorkGroupCount[0];
    target.int64 = has.features.shaderInt64 != VK_FALSE;
    target.float64 = has.features.shaderFloat64 != VK_FALSE;
    target.storage_8bit = has12.storageBuffer8BitAccess != VK_FALSE;
    target.storage_16bit = has11.storageBuffer16BitAccess != VK_FALSE;
    constexpr VkSubgroupFeatureFlags kNeeded = VK_SUBGROUP_FEATURE_BASIC_BIT |
                                               VK_SUBGROUP_FEATURE_VOTE_BIT |
                                               VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
    target.subgroup_arithmetic = (properties11.subgroupSupportedOperations & kNeeded) == kNeeded &&
                                 has12.shaderSubgroupExtendedTypes != VK_FALSE;
    target.signed_zero_inf_nan_preserve =
        properties12.shaderSignedZeroInfNanPreserveFloat32 != VK_FALSE;

    VkPhysicalDeviceVulkan12Features use12 = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    use12.storageBuffer8BitAccess = has12.storageBuffer8BitAccess;
    use12.shaderSubgroupExtendedTypes = has12.shaderSubgroupExtendedTypes;
    VkPhysicalDeviceVulkan11Features use11 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
                                              &use12};
    use11.storageBuffer16BitAccess = has11.storageBuffer16BitAccess;
    VkPhysicalDeviceFeatures2 use = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &use11};
    use.features.shaderInt64 = has.features.shaderInt64;
    use.features.shaderFloat64 = has.features.shaderFloat64;

    const float priority = 1;
    VkDeviceQueueCreateInfo queue_info = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    queue_info.queueCount = 1;
    queue_info.pQueuePriorities = &priority;
    VkDeviceCreateInfo device_info = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &use};
    device_info.queueCreateInfoCount = 1;
    device_info.pQueueCreateInfos = &queue_info;
    RETURN_IF_FAILED(vkCreateDevice(h.physical, &device_info, nullptr, &h.device));
    volkLoadDevice(h.device);
    vkGetDeviceQueue(h.device, 0, 0, &h.queue);
    VkCommandPoolCreateInfo pool_info = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    RETURN_IF_FAILED(vkCreateCommandPool(h.device, &pool_info, nullptr, &h.pool));
    return runner;
}

KernelRunner::~KernelRunner() {
    if (handles_->device != VK_NULL_HANDLE) {
        vkDestroyCommandPool(handles_->device, handles_->pool, nullptr);
        vkDestroyDevice(handles_->device, nullptr);
    }
    if (handles_->instance != VK_NULL_HANDLE) {
        vkDestroyInstance(handles_->instance, nullptr);
    }
}

std::string KernelRunner::device_name() const {
    return handles_->properties.deviceName;
}

Status KernelRunner::Prepare(const Dispatch& dispatch,
                             std::span<std::vector<uint8_t>> buffers,
                             Objects* o) {
    const VkDevice device = handles_->device;
    std::vector<VkDescriptorBufferInfo> infos;
    for (const std::vector<uint8_t>& bytes : buffers) {
        Objects::Bound& bound = o->buffers.emplace_back();
        bound.size_bytes = bytes.size();
        const VkDeviceSize size = (bytes.size() + 3) / 4 * 4;
        VkBufferCreateInfo info = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
        info.size = size + 2 * kMargin;
        info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
        RETURN_IF_FAILED(vkCreateBuffer(device, &info, nullptr, &bound.buffer));
        VkMemoryRequirements needs;
        vkGetBufferMemoryRequirements(device, bound.buffer, &needs);
        VkMemoryAllocateInfo allocate = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
        allocate.allocationSize = needs.size;
        constexpr VkMemoryPropertyFlags kHost =
            VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
        while ((needs.memoryTypeBits >> allocate.memoryTypeIndex & 1) == 0 ||
               (handles_->memory.memoryTypes[allocate.memoryTypeIndex].propertyFlags & kHost) !=
                   kHost) {
            ++allocate.memoryTypeIndex;
        }
        RETURN_IF_FAILED(vkAllocateMemory(device, &allocate, nullptr, &bound.memory));
        RETURN_IF_FAILED(vkBindBufferMemory(device, bound.buffer, bound.memory, 0));
        void* mapped = nullptr;
        RETURN_IF_FAILED(vkMapMemory(device, bound.memory, 0, VK_WHOLE_SIZE, 0, &mapped));
        bound.mapped = static_cast<uint8_t*>(mapped);
        std::memset(bound.mapped, kPoison, info.size);
        std::memcpy(bound.mapped + kMargin, bytes.data(), bytes.size());
        infos.push_back({bound.buffer, kMargin, std::max<VkDeviceSize>(size, 4)});
    }
    std::vector<VkDescriptorSetLayoutBinding> bindings;
    for (uint32_t i = 0; i < buffers.size(); ++i) {
        bindings.push_back(
            {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
    }
    VkDescriptorSetLayoutCreateInfo set_info = {
        VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    set_info.bindingCount = static_cast<uint32_t>(bindings.size());
    set_info.pBindings = bindings.data();
    RETURN_IF_FAILED(vkCreateDescriptorSetLayout(device, &set_info, nullptr, &o->set_layout));
    const VkPushConstantRange range = {
        VK_SHADER_STAGE_COMPUTE_BIT, 0,
        static_cast<uint32_t>(dispatch.push_constants.size() * sizeof(uint32_t))};
    VkPipelineLayoutCreateInfo layout_info = {VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    layout_info.setLayoutCount = 1;
    layout_info.pSetLayouts = &o->set_layout;
    layout_info.pushConstantRangeCount = dispatch.push_constants.empty() ? 0 : 1;
    layout_info.pPushConstantRanges = &range;
    RETURN_IF_FAILED(vkCreatePipelineLayout(device, &layout_info, nullptr, &o->layout));
    VkShaderModuleCreateInfo module_info = {VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    module_info.codeSize = dispatch.words.size_bytes();
    module_info.pCode = dispatch.words.data();
    RETURN_IF_FAILED(vkCreateShaderModule(device, &module_info, nullptr, &o->module));
    VkComputePipelineCreateInfo pipeline_info = {VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    pipeline_info.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO};
    pipeline_info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    pipeline_info.stage.module = o->module;
    pipeline_info.stage.pName = "main";
    pipeline_info.layout = o->layout;
    RETURN_IF_FAILED(
        vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &pipeline_info, nullptr, &o->pipeline));
    const VkDescriptorPoolSize pool_size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                            std::max<uint32_t>(set_info.bindingCount, 1)};
    VkDescriptorPoolCreateInfo pool_info = {VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    pool_info.maxSets = 1;
    pool_info.poolSizeCount = 1;
    pool_info.pPoolSizes = &pool_size;
    RETURN_IF_FAILED(vkCreateDescriptorPool(device, &pool_info, nullptr, &o->descriptors));
    VkDescriptorSetAllocateInfo allocate = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    allocate.descriptorPool = o->descriptors;
    allocate.descriptorSetCount = 1;
    allocate.pSetLayouts = &o->set_layout;
    RETURN_IF_FAILED(vkAllocateDescriptorSets(device, &allocate, &o->set));
    for (uint32_t i = 0; i < infos.size(); ++i) {
        VkWriteDescriptorSet write = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
        write.dstSet = o->set;
        write.dstBinding = i;
        write.descriptorCount = 1;
        write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        write.pBufferInfo = &infos[i];
        vkUpdateDescriptorSets(device, 1, &write, 0, nullptr);
    }
    VkFenceCreateInfo fence_info = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    RETURN_IF_FAILED(vkCreateFence(device, &fence_info, nullptr, &o->fence));
    VkCommandBufferAllocateInfo commands_info = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    commands_info.commandPool = handles_->pool;
    commands_info.commandBufferCount = 1;
    RETURN_IF_FAILED(vkAllocateCommandBuffers(device, &commands_info, &o->commands));
    return OkStatus();
}

namespace {

void Record(VkCommandBuffer commands,
            VkPipeline pipeline,
            VkPipelineLayout layout,
            VkDescriptorSet set,
            const KernelRunner::Dispatch& dispatch,
            uint32_t count) {
    const VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    vkBeginCommandBuffer(commands, &begin);
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &set, 0,
                            nullptr);
    if (!dispatch.push_constants.empty()) {
        vkCmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                           static_cast<uint32_t>(dispatch.push_constants.size() * 4),
                           dispatch.push_constants.data());
    }
    VkMemoryBarrier barrier = {VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
    barrier.dstAccessMask =
        VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_HOST_READ_BIT;
    const auto& [x, y, z] = dispatch.workgroups;
    for (uint32_t i = 0; i < count; ++i) {
        vkCmdDispatch(commands, x, y, z);
        vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                             VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0,
                             1, &barrier, 0, nullptr, 0, nullptr);
    }
    vkEndCommandBuffer(commands);
}

}  // namespace

Status KernelRunner::Submit(Objects* o) {
    VkSubmitInfo submit = {VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &o->commands;
    RETURN_IF_FAILED(vkResetFences(handles_->device, 1, &o->fence));
    RETURN_IF_FAILED(vkQueueSubmit(handles_->queue, 1, &submit, o->fence));
    RETURN_IF_FAILED(vkWaitForFences(handles_->device, 1, &o->fence, VK_TRUE, UINT64_MAX));
    return OkStatus();
}

void KernelRunner::Destroy(Objects* o) {
    const VkDevice device = handles_->device;
    vkDeviceWaitIdle(device);
    vkDestroyFence(device, o->fence, nullptr);
    vkDestroyDescriptorPool(device, o->descriptors, nullptr);
    vkDestroyPipeline(device, o->pipeline, nullptr);
    vkDestroyShaderModule(device, o->module, nullptr);
    vkDestroyPipelineLayout(device, o->layout, nullptr);
    vkDestroyDescriptorSetLayout(device, o->set_layout, nullptr);
    for (const Objects::Bound& bound : o->buffers) {
        vkDestroyBuffer(device, bound.buffer, nullptr);
        vkFreeMemory(device, bound.memory, nullptr);
    }
    if (o->commands != VK_NULL_HANDLE) {
        vkFreeCommandBuffers(device, handles_->pool, 1, &o->commands);
    }
}

Status KernelRunner::Run(const Dispatch& dispatch, std::span<std::vector<uint8_t>> buffers) {
    Objects objects;
    Status status = Prepare(dispatch, buffers, &objects);
    if (status.ok()) {
        Record(objects.commands, objects.pipeline, objects.layout, objects.set, dispatch, 1);
        status = Submit(&objects);
    }
    for (size_t i = 0; i < buffers.size() && status.ok(); ++i) {
        const Objects::Bound& bound = objects.buffers[i];
        std::memcpy(buffers[i].data(), bound.mapped + kMargin, bound.size_bytes);
        const auto poisoned = [](const uint8_t* begin, size_t count) {
            return std::all_of(begin, begin + count, [](uint8_t b) { return b == kPoison; });
        };
        const uint8_t* const end = bound.mapped + kMargin + bound.size_bytes;
        if (!poisoned(bound.mapped, kMargin) || !poisoned(end, kMargin)) {
            status = Error{ErrorCode::kInternal,
                           fmt::format("The kernel wrote outside of buffer {}.", i)};
        }
    }
    Destroy(&objects);
    return status;
}

namespace {

double CpuTime() {
    timespec time = {};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

}  // namespace

Result<KernelRunner::Timing> KernelRunner::Time(const Dispatch& dispatch,
                                                std::span<std::vector<uint8_t>> buffers,
                                                uint32_t repeats) {
    using Clock = std::chrono::steady_clock;
    Objects objects;
    Status status = Prepare(dispatch, buffers, &objects);
    Timing least;
    if (status.ok()) {
        Record(objects.commands, objects.pipeline, objects.layout, objects.set, dispatch,
               kTimedDispatches);
        for (uint32_t i = 0; i < repeats && status.ok(); ++i) {
            const double cpu_start = CpuTime();
            const Clock::time_point start = Clock::now();
            status = Submit(&objects);
            const std::chrono::duration<double, std::nano> time = Clock::now() - start;
            least.wall_ns = std::min(least.wall_ns, time.count() / kTimedDispatches);
            least.cpu_ns = std::min(least.cpu_ns, (CpuTime() - cpu_start) / kTimedDispatches);
        }
    }
    Destroy(&objects);
    if (!status.ok()) {
        return status.error();
    }
    return least;
}

Result<KernelRunner::Dispatch> DispatchOf(const graph::loop::Kernel& kernel,
                                          const graph::loop::Module& module,
                                          const graph::Bindings& sizes) {
    KernelRunner::Dispatch dispatch;
    dispatch.words = module.words;
    for (const graph::Symbol& symbol : SizeSymbols(kernel)) {
        dispatch.push_constants.push_back(static_cast<uint32_t>(sizes.at(symbol)));
    }
    for (size_t i = 0; i < 3; ++i) {
        const std::optional<int64_t> count = module.workgroups[i].Evaluate(sizes);
        if (!count || *count < 0 || *count > UINT32_MAX) {
            return Error{ErrorCode::kInvalidArgument, fmt::format("{} is no number of workgroups.",
                                                                  module.workgroups[i].ToString())};
        }
        dispatch.workgroups[i] = static_cast<uint32_t>(*count);
    }
    return dispatch;
}

}  // namespace fornax::test
