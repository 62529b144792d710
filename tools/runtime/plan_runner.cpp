// Memory, descriptor sets, recording and running. Pipelines are in plan_pipelines.cpp.
#include "tools/runtime/plan_runner.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include <fmt/format.h>

namespace fornax::runtime {
namespace {

constexpr uint64_t kTimeoutNanoseconds = 600'000'000'000;

void ComputeBarrier(VkCommandBuffer commands,
                    VkPipelineStageFlags later_stage,
                    VkAccessFlags later_access) {
    VkMemoryBarrier barrier = {VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
    barrier.dstAccessMask = later_access;
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, later_stage, 0, 1,
                         &barrier, 0, nullptr, 0, nullptr);
}

}  // namespace

Result<std::unique_ptr<PlanRunner>> PlanRunner::Create(const VulkanDevice& device,
                                                       const legacy_graph::Plan& plan,
                                                       std::span<const std::byte> pipeline_cache) {
    std::unique_ptr<PlanRunner> runner(new PlanRunner(device, plan));
    FORNAX_RETURN_IF_ERROR(runner->CreateRegion());
    FORNAX_RETURN_IF_ERROR(runner->CreateSets());
    FORNAX_RETURN_IF_ERROR(runner->CreatePipelines(pipeline_cache));
    FORNAX_RETURN_IF_ERROR(runner->RecordCommands());
    return runner;
}

PlanRunner::~PlanRunner() {
    const VkDevice device = device_.handle();
    vkDeviceWaitIdle(device);
    vkDestroyFence(device, fence_, nullptr);
    vkDestroyCommandPool(device, command_pool_, nullptr);
    vkDestroyQueryPool(device, timestamps_, nullptr);
    for (VkPipeline pipeline : pipelines_) {
        vkDestroyPipeline(device, pipeline, nullptr);
    }
    vkDestroyPipelineCache(device, pipeline_cache_, nullptr);
    for (VkPipelineLayout layout : pipeline_layouts_) {
        vkDestroyPipelineLayout(device, layout, nullptr);
    }
    vkDestroyDescriptorPool(device, descriptor_pool_, nullptr);
    for (VkDescriptorSetLayout layout : set_layouts_) {
        vkDestroyDescriptorSetLayout(device, layout, nullptr);
    }
    vkDestroyBuffer(device, region_, nullptr);
    vkFreeMemory(device, memory_, nullptr);
}

Status PlanRunner::CreateRegion() {
    const uint32_t range_limit = device_.properties().limits.maxStorageBufferRange;
    for (const legacy_graph::PlanTensor& tensor : plan_.tensors) {
        if (tensor.type.size_bytes() > range_limit) {
            return Error{
                ErrorCode::kUnsupported,
                fmt::format("The tensor {} has {} bytes; the device {} binds at most {}.",
                            tensor.name, tensor.type.size_bytes(), device_.name(), range_limit)};
        }
    }
    const VkDevice device = device_.handle();
    VkBufferCreateInfo buffer_info = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    buffer_info.size = std::max<uint64_t>(plan_.region_bytes(), legacy_graph::kTensorAlignment);
    buffer_info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
    VkResult result = vkCreateBuffer(device, &buffer_info, nullptr, &region_);
    if (result != VK_SUCCESS) {
        return VulkanError("vkCreateBuffer", result);
    }
    VkMemoryRequirements requirements;
    vkGetBufferMemoryRequirements(device, region_, &requirements);
    VkMemoryAllocateInfo allocate_info = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    allocate_info.allocationSize = requirements.size;
    FORNAX_ASSIGN_OR_RETURN(allocate_info.memoryTypeIndex,
                            device_.HostMemoryType(requirements.memoryTypeBits));
    result = vkAllocateMemory(device, &allocate_info, nullptr, &memory_);
    if (result != VK_SUCCESS) {
        return Error{ErrorCode::kOutOfDeviceMemory,
                     fmt::format("The device {} did not give the plan's {} bytes: "
                                 "vkAllocateMemory returned {}.",
                                 device_.name(), requirements.size, ResultName(result))};
    }
    result = vkBindBufferMemory(device, region_, memory_, 0);
    if (result != VK_SUCCESS) {
        return VulkanError("vkBindBufferMemory", result);
    }
    void* mapped = nullptr;
    result = vkMapMemory(device, memory_, 0, VK_WHOLE_SIZE, 0, &mapped);
    if (result != VK_SUCCESS) {
        return VulkanError("vkMapMemory", result);
    }
    mapped_ = static_cast<std::byte*>(mapped);
    if (!plan_.weights.empty()) {
        std::memcpy(mapped_, plan_.weights.data(), plan_.weights.size());
    }
    return OkStatus();
}

Status PlanRunner::CreateSets() {
    const VkDevice device = device_.handle();
    size_t most_bindings = 0, all_bindings = 0;
    for (const legacy_graph::PlanSet& set : plan_.sets) {
        most_bindings = std::max(most_bindings, set.tensors.size());
        all_bindings += set.tensors.size();
    }
    for (uint32_t count = 0; count <= most_bindings; ++count) {
        std::vector<VkDescriptorSetLayoutBinding> bindings(count);
        for (uint32_t i = 0; i < count; ++i) {
            bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT};
        }
        VkDescriptorSetLayoutCreateInfo set_info = {
            VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
        set_info.bindingCount = count;
        set_info.pBindings = bindings.data();
        VkResult result =
            vkCreateDescriptorSetLayout(device, &set_info, nullptr, &set_layouts_.emplace_back());
        if (result != VK_SUCCESS) {
            return VulkanError("vkCreateDescriptorSetLayout", result);
        }
        VkPipelineLayoutCreateInfo layout_info = {VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
        layout_info.setLayoutCount = 1;
        layout_info.pSetLayouts = &set_layouts_.back();
        result = vkCreatePipelineLayout(device, &layout_info, nullptr,
                                        &pipeline_layouts_.emplace_back());
        if (result != VK_SUCCESS) {
            return VulkanError("vkCreatePipelineLayout", result);
        }
    }
    if (all_bindings == 0) {
        return OkStatus();
    }

    const VkDescriptorPoolSize pool_size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                            static_cast<uint32_t>(all_bindings)};
    VkDescriptorPoolCreateInfo pool_info = {VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    pool_info.maxSets = static_cast<uint32_t>(plan_.sets.size());
    pool_info.poolSizeCount = 1;
    pool_info.pPoolSizes = &pool_size;
    VkResult result = vkCreateDescriptorPool(device, &pool_info, nullptr, &descriptor_pool_);
    if (result != VK_SUCCESS) {
        return VulkanError("vkCreateDescriptorPool", result);
    }

    std::vector<VkDescriptorSetLayout> layouts;
    for (const legacy_graph::PlanSet& set : plan_.sets) {
        layouts.push_back(set_layouts_[set.tensors.size()]);
    }
    VkDescriptorSetAllocateInfo allocate_info = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    allocate_info.descriptorPool = descriptor_pool_;
    allocate_info.descriptorSetCount = static_cast<uint32_t>(layouts.size());
    allocate_info.pSetLayouts = layouts.data();
    sets_.resize(layouts.size());
    result = vkAllocateDescriptorSets(device, &allocate_info, sets_.data());
    if (result != VK_SUCCESS) {
        return VulkanError("vkAllocateDescriptorSets", result);
    }

    std::vector<VkDescriptorBufferInfo> buffers;
    buffers.reserve(all_bindings);  // the writes point into it
    std::vector<VkWriteDescriptorSet> writes;
    for (size_t s = 0; s < sets_.size(); ++s) {
        for (size_t binding = 0; binding < plan_.sets[s].tensors.size(); ++binding) {
            const legacy_graph::PlanTensor& tensor = plan_.tensors[plan_.sets[s].tensors[binding]];
            buffers.push_back({region_, tensor.offset_bytes, tensor.type.size_bytes()});
            VkWriteDescriptorSet write = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
            write.dstSet = sets_[s];
            write.dstBinding = static_cast<uint32_t>(binding);
            write.descriptorCount = 1;
            write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
            write.pBufferInfo = &buffers.back();
            writes.push_back(write);
        }
    }
    vkUpdateDescriptorSets(device, static_cast<uint32_t>(writes.size()), writes.data(), 0, nullptr);
    return OkStatus();
}

Status PlanRunner::RecordCommands() {
    const VkDevice device = device_.handle();
    VkCommandPoolCreateInfo pool_info = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool_info.queueFamilyIndex = device_.queue_family();
    VkResult result = vkCreateCommandPool(device, &pool_info, nullptr, &command_pool_);
    if (result != VK_SUCCESS) {
        return VulkanError("vkCreateCommandPool", result);
    }
    VkCommandBufferAllocateInfo allocate_info = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate_info.commandPool = command_pool_;
    allocate_info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    allocate_info.commandBufferCount = 1;
    result = vkAllocateCommandBuffers(device, &allocate_info, &commands_);
    if (result != VK_SUCCESS) {
        return VulkanError("vkAllocateCommandBuffers", result);
    }
    const VkFenceCreateInfo fence_info = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    result = vkCreateFence(device, &fence_info, nullptr, &fence_);
    if (result != VK_SUCCESS) {
        return VulkanError("vkCreateFence", result);
    }
    const auto queries = static_cast<uint32_t>(2 * plan_.dispatches.size());
    if (device_.timestamp_bits() != 0 && queries != 0) {
        VkQueryPoolCreateInfo query_info = {VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
        query_info.queryType = VK_QUERY_TYPE_TIMESTAMP;
        query_info.queryCount = queries;
        result = vkCreateQueryPool(device, &query_info, nullptr, &timestamps_);
        if (result != VK_SUCCESS) {
            return VulkanError("vkCreateQueryPool", result);
        }
    }

    const VkCommandBufferBeginInfo begin_info = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    result = vkBeginCommandBuffer(commands_, &begin_info);
    if (result != VK_SUCCESS) {
        return VulkanError("vkBeginCommandBuffer", result);
    }
    if (timestamps_ != VK_NULL_HANDLE) {
        vkCmdResetQueryPool(commands_, timestamps_, 0, queries);
    }
    for (uint32_t i = 0; i < plan_.dispatches.size(); ++i) {
        const legacy_graph::PlanDispatch& dispatch = plan_.dispatches[i];
        if (dispatch.barrier_before) {
            ComputeBarrier(commands_, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                           VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT);
        }
        vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE,
                          pipelines_[pipeline_of_dispatch_[i]]);
        vkCmdBindDescriptorSets(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, LayoutOf(dispatch), 0, 1,
                                &sets_[dispatch.set], 0, nullptr);
        // Both at the end of the pipe: the first marks when what was before is done.
        if (timestamps_ != VK_NULL_HANDLE) {
            vkCmdWriteTimestamp(commands_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, timestamps_,
                                2 * i);
        }
        vkCmdDispatch(commands_, dispatch.grid[0], dispatch.grid[1], dispatch.grid[2]);
        if (timestamps_ != VK_NULL_HANDLE) {
            vkCmdWriteTimestamp(commands_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, timestamps_,
                                2 * i + 1);
        }
    }
    ComputeBarrier(commands_, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    result = vkEndCommandBuffer(commands_);
    if (result != VK_SUCCESS) {
        return VulkanError("vkEndCommandBuffer", result);
    }
    return OkStatus();
}

Status PlanRunner::Run(std::span<const std::span<const float>> inputs,
                       std::span<const std::span<float>> outputs) {
    for (size_t i = 0; i < plan_.inputs.size(); ++i) {
        std::memcpy(mapped_ + plan_.tensors[plan_.inputs[i].tensor].offset_bytes, inputs[i].data(),
                    inputs[i].size_bytes());
    }

    const auto start = std::chrono::steady_clock::now();
    VkSubmitInfo submit_info = {VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submit_info.commandBufferCount = 1;
    submit_info.pCommandBuffers = &commands_;
    VkResult result = vkQueueSubmit(device_.queue(), 1, &submit_info, fence_);
    if (result != VK_SUCCESS) {
        return VulkanError("vkQueueSubmit", result);
    }
    result = vkWaitForFences(device_.handle(), 1, &fence_, VK_TRUE, kTimeoutNanoseconds);
    if (result != VK_SUCCESS) {
        return VulkanError("vkWaitForFences", result);
    }
    submit_nanoseconds_ =
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
    result = vkResetFences(device_.handle(), 1, &fence_);
    if (result != VK_SUCCESS) {
        return VulkanError("vkResetFences", result);
    }

    for (size_t i = 0; i < plan_.outputs.size(); ++i) {
        std::memcpy(outputs[i].data(),
                    mapped_ + plan_.tensors[plan_.outputs[i].tensor].offset_bytes,
                    outputs[i].size_bytes());
    }
    return ReadTimestamps();
}

Status PlanRunner::ReadTimestamps() {
    if (timestamps_ == VK_NULL_HANDLE) {
        return OkStatus();
    }
    std::vector<uint64_t> ticks(2 * plan_.dispatches.size());
    const VkResult result = vkGetQueryPoolResults(
        device_.handle(), timestamps_, 0, static_cast<uint32_t>(ticks.size()),
        ticks.size() * sizeof(uint64_t), ticks.data(), sizeof(uint64_t), VK_QUERY_RESULT_64_BIT);
    if (result != VK_SUCCESS) {
        return VulkanError("vkGetQueryPoolResults", result);
    }
    const uint32_t bits = device_.timestamp_bits();
    const uint64_t mask = bits < 64 ? (uint64_t{1} << bits) - 1 : UINT64_MAX;
    dispatch_nanoseconds_.resize(plan_.dispatches.size());
    for (size_t i = 0; i < dispatch_nanoseconds_.size(); ++i) {
        dispatch_nanoseconds_[i] = static_cast<double>((ticks[2 * i + 1] - ticks[2 * i]) & mask) *
                                   device_.properties().limits.timestampPeriod;
    }
    return OkStatus();
}

}  // namespace fornax::runtime
