// Descriptor sets, command buffers, and waiting for them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "runtime/vulkan/device.h"

namespace fornax::vulkan {

// Descriptor sets of storage buffers, all made at once and freed together. Not thread-safe.
class DescriptorSets {
  public:
    struct Set {
        VkDescriptorSetLayout layout = VK_NULL_HANDLE;
        std::vector<VkDescriptorBufferInfo> buffers;  // binding 0, 1, ...
    };

    static Result<std::unique_ptr<DescriptorSets>> Create(std::shared_ptr<Device> device,
                                                          std::span<const Set> sets);
    ~DescriptorSets();

    DescriptorSets(const DescriptorSets&) = delete;
    DescriptorSets& operator=(const DescriptorSets&) = delete;

    // As given.
    VkDescriptorSet operator[](size_t index) const { return sets_[index]; }

  private:
    explicit DescriptorSets(std::shared_ptr<Device> device) : device_(std::move(device)) {}

    std::shared_ptr<Device> device_;
    VkDescriptorPool pool_ = VK_NULL_HANDLE;
    std::vector<VkDescriptorSet> sets_;
};

// A primary command buffer that is recorded once and submitted often, with its fence and its
// timestamps. Not thread-safe.
class Commands {
  public:
    // `timestamp_count` is taken as 0 if the queue has none.
    static Result<std::unique_ptr<Commands>> Create(std::shared_ptr<Device> device,
                                                    uint32_t timestamp_count);
    // Waits for what was submitted.
    ~Commands();

    Commands(const Commands&) = delete;
    Commands& operator=(const Commands&) = delete;

    Status Begin();
    Status End();
    VkCommandBuffer handle() const { return commands_; }
    // Marks when everything before it is done.
    void WriteTimestamp(uint32_t index);

    Status Submit();
    // For the last Submit().
    Status Wait();
    // False if it is not done after the time. A device that takes longer than any work does is an
    // error, however long the time is.
    Result<bool> WaitFor(uint64_t timeout_nanoseconds);
    // After Wait(), what WriteTimestamp() marked, in nanoseconds since some moment; empty without
    // timestamps.
    Result<std::vector<double>> Timestamps() const;

  private:
    explicit Commands(std::shared_ptr<Device> device) : device_(std::move(device)) {}

    std::shared_ptr<Device> device_;
    VkCommandPool pool_ = VK_NULL_HANDLE;
    VkCommandBuffer commands_ = VK_NULL_HANDLE;
    VkFence fence_ = VK_NULL_HANDLE;
    VkQueryPool queries_ = VK_NULL_HANDLE;
    uint32_t query_count_ = 0;
    bool submitted_ = false;
};

// What compute shaders wrote becomes visible to later ones, and the later ones wait for the
// earlier.
void ComputeBarrier(const VolkDeviceTable& vk, VkCommandBuffer commands);
// What compute shaders wrote becomes visible to the host, to later compute shaders and copies.
void FinalBarrier(const VolkDeviceTable& vk, VkCommandBuffer commands);

}  // namespace fornax::vulkan
