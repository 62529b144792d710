#include "tools/soak/client.h"

#include <algorithm>
#include <cstdio>

#include "tools/soak/shaders/count.spv.h"

namespace fornax::soak {

bool Client::Check(VkResult result, const char* what) {
    if (result == VK_SUCCESS) {
        return true;
    }
    if (error_.empty()) {
        error_ = std::string(what) + " gave " + std::to_string(result);
    }
    return false;
}

Client::Client() {
    Init();
}

Status Client::Open() {
    FORNAX_ASSIGN_OR_RETURN(instance_, vulkan::Instance::Create({
                                           .on_message =
                                               [this](const std::string& message) {
                                                   const std::lock_guard lock(message_mutex_);
                                                   messages.push_back(message);
                                               },
                                           .driver_messages = true,
                                       }));
    instance = instance_->handle();
    static const bool loaded = [this] {
        vulkan::LoadGlobalFunctions(*instance_);
        return true;
    }();
    (void)loaded;
    FORNAX_ASSIGN_OR_RETURN(physical, instance_->Choose("Fornax"));
    const float priority = 1.0f;
    const VkDeviceQueueCreateInfo queues{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                         .queueCount = 1,
                                         .pQueuePriorities = &priority};
    VkPhysicalDeviceFaultFeaturesEXT fault{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FAULT_FEATURES_EXT, .deviceFault = VK_TRUE};
    VkPhysicalDeviceFaultFeaturesKHR fault_khr{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FAULT_FEATURES_KHR,
        .pNext = &fault,
        .deviceFault = VK_TRUE};
    VkPhysicalDeviceVulkan12Features features{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
        .pNext = &fault_khr,
        .timelineSemaphore = VK_TRUE,
        .bufferDeviceAddress = VK_TRUE};
    const char* device_extensions[] = {
        VK_EXT_DEVICE_FAULT_EXTENSION_NAME, VK_KHR_DEVICE_FAULT_EXTENSION_NAME,
        VK_EXT_MEMORY_BUDGET_EXTENSION_NAME, VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME};
    const VkDeviceCreateInfo device_info{.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                         .pNext = &features,
                                         .queueCreateInfoCount = 1,
                                         .pQueueCreateInfos = &queues,
                                         .enabledExtensionCount = std::size(device_extensions),
                                         .ppEnabledExtensionNames = device_extensions};
    FORNAX_ASSIGN_OR_RETURN(device_, vulkan::Device::Open(instance_, physical, device_info));
    device = device_->handle();
    queue = device_->queue();
    return OkStatus();
}

void Client::Init() {
    if (const Status opened = Open(); !opened.ok()) {
        error_ = opened.error().message;
        return;
    }
    pool = MakePool();
    const VkDescriptorSetLayoutBinding binding{0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1,
                                               VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
    const VkDescriptorSetLayoutCreateInfo set_info{
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .flags = VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR,
        .bindingCount = 1,
        .pBindings = &binding};
    if (!Check(vkCreateDescriptorSetLayout(device, &set_info, nullptr, &set_layout),
               "vkCreateDescriptorSetLayout")) {
        return;
    }
    const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, 64};
    const VkPipelineLayoutCreateInfo layout_info{
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = 1,
        .pSetLayouts = &set_layout,
        .pushConstantRangeCount = 1,
        .pPushConstantRanges = &range};
    Check(vkCreatePipelineLayout(device, &layout_info, nullptr, &layout), "vkCreatePipelineLayout");
}

Client::~Client() {
    if (device) {
        vkDeviceWaitIdle(device);
        vkDestroyPipelineLayout(device, layout, nullptr);
        vkDestroyDescriptorSetLayout(device, set_layout, nullptr);
        vkDestroyCommandPool(device, pool, nullptr);
    }
}

VkCommandPool Client::MakePool() {
    const VkCommandPoolCreateInfo info{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                       .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT};
    VkCommandPool made = VK_NULL_HANDLE;
    Check(vkCreateCommandPool(device, &info, nullptr, &made), "vkCreateCommandPool");
    return made;
}

ClientBuffer Client::MakeBuffer(size_t words, VkResult* result) {
    ClientBuffer made{.count = words};
    const VkBufferCreateInfo info{
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = words * sizeof(uint32_t),
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT};
    VkResult status = vkCreateBuffer(device, &info, nullptr, &made.handle);
    if (status == VK_SUCCESS) {
        VkMemoryRequirements needs;
        vkGetBufferMemoryRequirements(device, made.handle, &needs);
        const VkMemoryAllocateFlagsInfo flags{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                              .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
        const VkMemoryAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                            .pNext = &flags,
                                            .allocationSize = needs.size};
        status = vkAllocateMemory(device, &allocate, nullptr, &made.memory);
    }
    if (status == VK_SUCCESS) {
        status = vkBindBufferMemory(device, made.handle, made.memory, 0);
    }
    void* mapped = nullptr;
    if (status == VK_SUCCESS) {
        status = vkMapMemory(device, made.memory, 0, VK_WHOLE_SIZE, 0, &mapped);
    }
    made.words = static_cast<uint32_t*>(mapped);
    if (result) {
        *result = status;
    } else {
        Check(status, "A buffer");
    }
    if (status != VK_SUCCESS) {
        Free(made);
        return {};
    }
    return made;
}

void Client::Free(const ClientBuffer& buffer) {
    vkDestroyBuffer(device, buffer.handle, nullptr);
    vkFreeMemory(device, buffer.memory, nullptr);
}

ClientPipeline Client::MakePipeline(std::span<const uint32_t> spirv,
                                    uint32_t constant,
                                    VkPipelineCache cache,
                                    VkResult* result,
                                    VkPipelineLayout other_layout) {
    ClientPipeline made;
    const VkShaderModuleCreateInfo module{.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                          .codeSize = spirv.size_bytes(),
                                          .pCode = spirv.data()};
    VkResult status = vkCreateShaderModule(device, &module, nullptr, &made.module);
    const VkSpecializationMapEntry entry{.constantID = 0, .offset = 0, .size = sizeof(constant)};
    const VkSpecializationInfo specialization{.mapEntryCount = 1,
                                              .pMapEntries = &entry,
                                              .dataSize = sizeof(constant),
                                              .pData = &constant};
    const VkComputePipelineCreateInfo info{
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = made.module,
                  .pName = "main",
                  .pSpecializationInfo = &specialization},
        .layout = other_layout ? other_layout : layout};
    if (status == VK_SUCCESS) {
        status = vkCreateComputePipelines(device, cache, 1, &info, nullptr, &made.handle);
    }
    if (result) {
        *result = status;
    } else {
        Check(status, "A pipeline");
    }
    return made;
}

void Client::Free(const ClientPipeline& pipeline) {
    vkDestroyPipeline(device, pipeline.handle, nullptr);
    vkDestroyShaderModule(device, pipeline.module, nullptr);
}

VkCommandBuffer Client::Record(VkCommandPool from,
                               const ClientPipeline& pipeline,
                               const ClientBuffer& buffer,
                               std::span<const uint32_t> constants,
                               uint32_t workgroups) {
    return Record(from, pipeline, buffer, constants, {workgroups, 1, 1});
}

VkCommandBuffer Client::Record(VkCommandPool from,
                               const ClientPipeline& pipeline,
                               const ClientBuffer& buffer,
                               std::span<const uint32_t> constants,
                               std::array<uint32_t, 3> workgroups) {
    const VkCommandBufferAllocateInfo allocate{
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = from,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1};
    VkCommandBuffer commands = VK_NULL_HANDLE;
    if (!Check(vkAllocateCommandBuffers(device, &allocate, &commands),
               "vkAllocateCommandBuffers")) {
        return VK_NULL_HANDLE;
    }
    const VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                         .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT};
    Check(vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
    const VkDescriptorBufferInfo whole{buffer.handle, 0, VK_WHOLE_SIZE};
    const VkWriteDescriptorSet write{.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                     .descriptorCount = 1,
                                     .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                     .pBufferInfo = &whole};
    const VkMemoryBarrier all{
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT};
    const auto barrier = [&] {
        vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                             VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                             &all, 0, nullptr, 0, nullptr);
    };
    barrier();
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.handle);
    vkCmdPushDescriptorSetKHR(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &write);
    vkCmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                       static_cast<uint32_t>(constants.size_bytes()), constants.data());
    vkCmdDispatch(commands, workgroups[0], workgroups[1], workgroups[2]);
    barrier();
    Check(vkEndCommandBuffer(commands), "vkEndCommandBuffer");
    return commands;
}

VkResult Client::Submit(VkCommandBuffer commands, VkFence fence) {
    const VkSubmitInfo submit{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                              .commandBufferCount = 1,
                              .pCommandBuffers = &commands};
    const std::lock_guard lock(queue_mutex_);
    return vkQueueSubmit(queue, 1, &submit, fence);
}

VkResult Client::Run(VkCommandBuffer commands) {
    const VkFenceCreateInfo info{.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VkFence fence = VK_NULL_HANDLE;
    VkResult result = vkCreateFence(device, &info, nullptr, &fence);
    if (result == VK_SUCCESS) {
        result = Submit(commands, fence);
    }
    if (result == VK_SUCCESS) {
        result = vkWaitForFences(device, 1, &fence, VK_TRUE, 60'000'000'000);
    }
    vkDestroyFence(device, fence, nullptr);
    return result;
}

VkResult Client::Run(const ClientPipeline& pipeline,
                     const ClientBuffer& buffer,
                     std::span<const uint32_t> constants,
                     uint32_t workgroups) {
    VkCommandBuffer commands = Record(pool, pipeline, buffer, constants, workgroups);
    const VkResult result = Run(commands);
    vkFreeCommandBuffers(device, pool, 1, &commands);
    return result;
}

std::string RunAndCheck(uint32_t kernels) {
    Client client;
    const ClientBuffer buffer = client.valid() ? client.MakeBuffer(256) : ClientBuffer{};
    for (uint32_t constant = 1; constant <= kernels && client.valid(); ++constant) {
        const ClientPipeline pipeline = client.MakePipeline(spirv::kCount, constant);
        if (!client.valid()) {
            break;
        }
        std::fill_n(buffer.words, buffer.count, 7u);
        const uint32_t addend = 3;
        const VkResult result = client.Run(pipeline, buffer, {&addend, 1}, 4);
        if (result != VK_SUCCESS) {
            return "The dispatch gave " + std::to_string(result);
        }
        for (uint32_t i = 0; i < buffer.count; ++i) {
            const uint32_t expected = 7 + 3 * (i + constant);
            if (buffer.words[i] != expected) {
                return "Word " + std::to_string(i) + " is " + std::to_string(buffer.words[i]) +
                       " instead of " + std::to_string(expected);
            }
        }
        client.Free(pipeline);
    }
    if (client.device) {
        client.Free(buffer);
    }
    for (const std::string& message : client.messages) {
        std::fprintf(stderr, "%s\n", message.c_str());
    }
    return client.error();
}

uint64_t ResidentKib() {
    uint64_t kib = 0;
    if (FILE* file = fopen("/proc/self/status", "r")) {
        char line[256];
        while (fgets(line, sizeof(line), file)) {
            if (sscanf(line, "VmRSS: %lu kB", &kib) == 1) {
                break;
            }
        }
        fclose(file);
    }
    return kib;
}

}  // namespace fornax::soak
