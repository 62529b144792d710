#include "runtime/vulkan/commands.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/vulkan/result.h"

namespace fornax::vulkan {
namespace {

// An hour: above what a watchdog lets a workgroup take, so that a hanging device is an error and no
// hang.
constexpr uint64_t kTimeoutNanoseconds = 3'600'000'000'000;

}  // namespace

Result<std::unique_ptr<DescriptorSets>> DescriptorSets::Create(std::shared_ptr<Device> device,
                                                               std::span<const Set> sets) {
    std::unique_ptr<DescriptorSets> made(new DescriptorSets(std::move(device)));
    const Device& on = *made->device_;
    if (sets.empty()) {
        return made;
    }
    size_t buffer_count = 0;
    for (const Set& set : sets) {
        buffer_count += set.buffers.size();
    }
    const VkDescriptorPoolSize pool_size = {
        VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
        static_cast<uint32_t>(std::max<size_t>(buffer_count, 1))};
    VkDescriptorPoolCreateInfo pool_info = {VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    pool_info.maxSets = static_cast<uint32_t>(sets.size());
    pool_info.poolSizeCount = 1;
    pool_info.pPoolSizes = &pool_size;
    FORNAX_RETURN_IF_FAILED(
        "vkCreateDescriptorPool",
        on.vk().vkCreateDescriptorPool(on.handle(), &pool_info, nullptr, &made->pool_));
    std::vector<VkDescriptorSetLayout> layouts;
    for (const Set& set : sets) {
        layouts.push_back(set.layout);
    }
    VkDescriptorSetAllocateInfo allocate_info = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    allocate_info.descriptorPool = made->pool_;
    allocate_info.descriptorSetCount = static_cast<uint32_t>(layouts.size());
    allocate_info.pSetLayouts = layouts.data();
    made->sets_.resize(sets.size());
    FORNAX_RETURN_IF_FAILED(
        "vkAllocateDescriptorSets",
        on.vk().vkAllocateDescriptorSets(on.handle(), &allocate_info, made->sets_.data()));
    std::vector<VkWriteDescriptorSet> writes;
    for (size_t i = 0; i < sets.size(); ++i) {
        if (sets[i].buffers.empty()) {
            continue;
        }
        // Consecutive bindings of one kind are written as one array (Vulkan 14.2.4).
        VkWriteDescriptorSet write = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
        write.dstSet = made->sets_[i];
        write.descriptorCount = static_cast<uint32_t>(sets[i].buffers.size());
        write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        write.pBufferInfo = sets[i].buffers.data();
        writes.push_back(write);
    }
    on.vk().vkUpdateDescriptorSets(on.handle(), static_cast<uint32_t>(writes.size()), writes.data(),
                                   0, nullptr);
    return made;
}

DescriptorSets::~DescriptorSets() {
    device_->vk().vkDestroyDescriptorPool(device_->handle(), pool_, nullptr);
}

Result<std::unique_ptr<Commands>> Commands::Create(std::shared_ptr<Device> device,
                                                   uint32_t timestamp_count) {
    std::unique_ptr<Commands> made(new Commands(std::move(device)));
    const Device& on = *made->device_;
    VkCommandPoolCreateInfo pool_info = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool_info.queueFamilyIndex = on.queue_family();
    FORNAX_RETURN_IF_FAILED(
        "vkCreateCommandPool",
        on.vk().vkCreateCommandPool(on.handle(), &pool_info, nullptr, &made->pool_));
    VkCommandBufferAllocateInfo allocate_info = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate_info.commandPool = made->pool_;
    allocate_info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    allocate_info.commandBufferCount = 1;
    FORNAX_RETURN_IF_FAILED(
        "vkAllocateCommandBuffers",
        on.vk().vkAllocateCommandBuffers(on.handle(), &allocate_info, &made->commands_));
    const VkFenceCreateInfo fence_info = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    FORNAX_RETURN_IF_FAILED(
        "vkCreateFence", on.vk().vkCreateFence(on.handle(), &fence_info, nullptr, &made->fence_));
    if (timestamp_count != 0 && on.timestamp_bits() != 0) {
        made->query_count_ = timestamp_count;
        VkQueryPoolCreateInfo query_info = {VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
        query_info.queryType = VK_QUERY_TYPE_TIMESTAMP;
        query_info.queryCount = timestamp_count;
        FORNAX_RETURN_IF_FAILED(
            "vkCreateQueryPool",
            on.vk().vkCreateQueryPool(on.handle(), &query_info, nullptr, &made->queries_));
    }
    return made;
}

Commands::~Commands() {
    const VolkDeviceTable& vk = device_->vk();
    const VkDevice device = device_->handle();
    if (submitted_) {
        vk.vkWaitForFences(device, 1, &fence_, VK_TRUE, kTimeoutNanoseconds);
    }
    vk.vkDestroyQueryPool(device, queries_, nullptr);
    vk.vkDestroyFence(device, fence_, nullptr);
    vk.vkDestroyCommandPool(device, pool_, nullptr);
}

Status Commands::Begin() {
    const VkCommandBufferBeginInfo begin_info = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    FORNAX_RETURN_IF_FAILED("vkBeginCommandBuffer",
                            device_->vk().vkBeginCommandBuffer(commands_, &begin_info));
    if (queries_ != VK_NULL_HANDLE) {
        device_->vk().vkCmdResetQueryPool(commands_, queries_, 0, query_count_);
    }
    return OkStatus();
}

Status Commands::End() {
    FORNAX_RETURN_IF_FAILED("vkEndCommandBuffer", device_->vk().vkEndCommandBuffer(commands_));
    return OkStatus();
}

void Commands::WriteTimestamp(uint32_t index) {
    if (queries_ != VK_NULL_HANDLE) {
        device_->vk().vkCmdWriteTimestamp(commands_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_,
                                          index);
    }
}

Status Commands::Submit() {
    FORNAX_RETURN_IF_ERROR(device_->Submit(commands_, fence_));
    submitted_ = true;
    return OkStatus();
}

Status Commands::Wait() {
    const Result<bool> done = WaitFor(kTimeoutNanoseconds);
    return done.ok() ? OkStatus() : done.error();
}

Result<bool> Commands::WaitFor(uint64_t timeout_nanoseconds) {
    const VolkDeviceTable& vk = device_->vk();
    const VkResult result = vk.vkWaitForFences(device_->handle(), 1, &fence_, VK_TRUE,
                                               std::min(timeout_nanoseconds, kTimeoutNanoseconds));
    if (result == VK_TIMEOUT && timeout_nanoseconds < kTimeoutNanoseconds) {
        return false;
    }
    if (result == VK_TIMEOUT) {
        return Error{ErrorCode::kDeviceLost,
                     fmt::format("The device {} has not finished what it was given within an hour.",
                                 device_->name())};
    }
    FORNAX_RETURN_IF_FAILED("vkWaitForFences", result);
    submitted_ = false;
    FORNAX_RETURN_IF_FAILED("vkResetFences", vk.vkResetFences(device_->handle(), 1, &fence_));
    return true;
}

Result<std::vector<double>> Commands::Timestamps() const {
    if (query_count_ == 0) {
        return std::vector<double>();
    }
    std::vector<uint64_t> ticks(query_count_);
    FORNAX_RETURN_IF_FAILED(
        "vkGetQueryPoolResults",
        device_->vk().vkGetQueryPoolResults(device_->handle(), queries_, 0, query_count_,
                                            ticks.size() * sizeof(uint64_t), ticks.data(),
                                            sizeof(uint64_t), VK_QUERY_RESULT_64_BIT));
    const uint32_t bits = device_->timestamp_bits();
    const uint64_t mask = bits < 64 ? (uint64_t{1} << bits) - 1 : UINT64_MAX;
    std::vector<double> nanoseconds;
    for (const uint64_t tick : ticks) {
        // From the first on, so that a counter that starts anew does no harm.
        nanoseconds.push_back(static_cast<double>((tick - ticks[0]) & mask) *
                              static_cast<double>(device_->limits().timestampPeriod));
    }
    return nanoseconds;
}

namespace {

void Barrier(const VolkDeviceTable& vk,
             VkCommandBuffer commands,
             VkPipelineStageFlags stages,
             VkAccessFlags accesses) {
    VkMemoryBarrier barrier = {VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
    barrier.dstAccessMask = accesses;
    vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, stages, 0, 1, &barrier,
                            0, nullptr, 0, nullptr);
}

}  // namespace

void ComputeBarrier(const VolkDeviceTable& vk, VkCommandBuffer commands) {
    Barrier(vk, commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
            VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT);
}

void FinalBarrier(const VolkDeviceTable& vk, VkCommandBuffer commands) {
    Barrier(vk, commands,
            VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT |
                VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_HOST_READ_BIT | VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                VK_ACCESS_TRANSFER_READ_BIT);
}

}  // namespace fornax::vulkan
