// The Vulkan objects that the benchmark's workloads are made of, owned by C++ objects.
//
// Only the child process of a measurement uses them. volk's function pointers are global, so a
// process has one Device at a time. Nothing here is thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <volk.h>

#include "base/result.h"
#include "runtime/vulkan/buffer.h"
#include "runtime/vulkan/commands.h"
#include "runtime/vulkan/device.h"
#include "runtime/vulkan/pipeline.h"

namespace fornax::bench {

// A storage and transfer buffer in memory of its own, mapped for as long as it lives.
class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(std::unique_ptr<vulkan::Buffer> buffer) : buffer_(std::move(buffer)) {}

    VkBuffer handle() const { return buffer_->handle(); }

    // The contents as an array of T. The host may touch them while no submission uses the buffer.
    template <typename T>
    std::span<T> As() const {
        return {reinterpret_cast<T*>(buffer_->data()), buffer_->size_bytes() / sizeof(T)};
    }

  private:
    std::unique_ptr<vulkan::Buffer> buffer_;
};

// A compute pipeline over one descriptor set of storage buffers and a block of push constants. The
// pipeline belongs to the device.
class Kernel {
  public:
    Kernel() = default;
    Kernel(vulkan::ComputePipeline pipeline, std::unique_ptr<vulkan::DescriptorSets> sets)
        : pipeline_(pipeline), sets_(std::move(sets)) {}

    VkPipeline pipeline() const { return pipeline_.pipeline; }
    VkPipelineLayout layout() const { return pipeline_.layout; }
    VkDescriptorSet descriptor_set() const { return (*sets_)[0]; }
    VkDescriptorSetLayout set_layout() const { return pipeline_.set_layout; }

  private:
    vulkan::ComputePipeline pipeline_;
    std::unique_ptr<vulkan::DescriptorSets> sets_;
};

// The first device that the loader offers, with one queue that can compute.
class Device {
  public:
    // With `validate`, the Khronos validation layer with synchronisation validation is on, and
    // validation_messages() collects what it says. The layer must be installed then.
    static Result<std::unique_ptr<Device>> Create(bool validate);
    ~Device();

    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    // How long it took from vkCreateInstance to the first queue.
    double start_seconds() const { return start_seconds_; }
    const vulkan::Device& vulkan() const { return *device_; }
    VkDevice handle() const { return device_->handle(); }
    // Whether a subgroup of 32, which is the size that shaders get, multiplies matrices of f32 of
    // 16 x 16.
    bool MultipliesFloatMatrices() const;
    const std::vector<std::string>& validation_messages() const { return messages_; }

    // The buffer's contents are undefined.
    Result<Buffer> CreateBuffer(size_t size_bytes);

    // Binding i of the kernel's set 0 is buffers[i]. The buffers must outlive the kernel's use.
    Result<Kernel> CreateKernel(std::span<const uint32_t> spirv,
                                std::span<const Buffer> buffers,
                                uint32_t push_constant_bytes);

    // A command buffer in the recording state, which belongs to the device.
    Result<VkCommandBuffer> BeginCommands();

    // Brings a command buffer of BeginCommands that is not in use back into the recording state.
    Status BeginAgain(VkCommandBuffer commands);

    // `count` sets of the kernel's layout with the buffers.
    Result<std::unique_ptr<vulkan::DescriptorSets>> CreateSets(const Kernel& kernel,
                                                               std::span<const Buffer> buffers,
                                                               uint32_t count);

    // Makes what the commands write visible to the host, and ends the recording.
    Status EndCommands(VkCommandBuffer commands);

    // Submits and waits. Returns the seconds from before vkQueueSubmit to after vkWaitForFences.
    Result<double> Submit(VkCommandBuffer commands);

  private:
    Device() = default;
    Status CreateHelpers();

    double start_seconds_ = 0;
    std::vector<std::string> messages_;
    std::shared_ptr<vulkan::Device> device_;
    std::unique_ptr<vulkan::PipelineFactory> pipelines_;
    VkCommandPool command_pool_ = VK_NULL_HANDLE;
    VkFence fence_ = VK_NULL_HANDLE;
};

// Makes everything before it in the queue visible to everything after it, for dispatches and
// copies.
void RecordBarrier(VkCommandBuffer commands);

}  // namespace fornax::bench
