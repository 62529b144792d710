// The Vulkan objects that the benchmark's workloads are made of, owned by C++ objects.
//
// Only the child process of a measurement uses them. volk's function pointers are global, so a
// process has one Device at a time. Nothing here is thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <volk.h>

#include "base/result.h"

namespace fornax::bench {

// "vkCreateDevice returned VK_ERROR_INITIALIZATION_FAILED (-3)." as an Error.
Error VulkanError(const char* function, VkResult result);

class Device;

// A storage and transfer buffer in memory of its own, mapped for as long as it lives.
class Buffer {
  public:
    Buffer() = default;
    Buffer(Buffer&& other) noexcept;
    Buffer& operator=(Buffer&& other) noexcept;
    ~Buffer();

    VkBuffer handle() const { return handle_; }
    size_t size_bytes() const { return size_bytes_; }

    // The contents as an array of T. The host may touch them while no submission uses the buffer.
    template <typename T>
    std::span<T> As() const {
        return {static_cast<T*>(mapped_), size_bytes_ / sizeof(T)};
    }

  private:
    friend class Device;

    VkDevice device_ = VK_NULL_HANDLE;
    VkBuffer handle_ = VK_NULL_HANDLE;
    VkDeviceMemory memory_ = VK_NULL_HANDLE;
    void* mapped_ = nullptr;
    size_t size_bytes_ = 0;
};

// A compute pipeline over one descriptor set of storage buffers and a block of push constants.
class Kernel {
  public:
    Kernel() = default;
    Kernel(Kernel&& other) noexcept;
    Kernel& operator=(Kernel&& other) noexcept;
    ~Kernel();

    VkPipeline pipeline() const { return pipeline_; }
    VkPipelineLayout layout() const { return layout_; }
    VkDescriptorSet descriptor_set() const { return descriptor_set_; }
    VkDescriptorSetLayout set_layout() const { return set_layout_; }

  private:
    friend class Device;

    VkDevice device_ = VK_NULL_HANDLE;
    uint32_t buffer_count_ = 0;
    VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
    VkDescriptorPool pool_ = VK_NULL_HANDLE;
    VkDescriptorSet descriptor_set_ = VK_NULL_HANDLE;
    VkPipelineLayout layout_ = VK_NULL_HANDLE;
    VkPipeline pipeline_ = VK_NULL_HANDLE;
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
    VkPhysicalDevice physical() const { return physical_; }
    VkDevice handle() const { return device_; }
    // Whether the device offers the extension.
    bool HasExtension(const char* name) const;
    // Whether a subgroup of 32, which is the size that shaders get, multiplies matrices of f32 of
    // 16 x 16. No where a validation layer that is too old for the extension is on.
    bool MultipliesFloatMatrices() const;
    const std::vector<std::string>& validation_messages() const { return *validation_messages_; }

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

    // Fills `sets` with sets of the kernel's layout, from a pool that the caller destroys.
    Status AllocateSets(const Kernel& kernel,
                        std::span<VkDescriptorSet> sets,
                        VkDescriptorPool* pool);

    // Makes what the commands write visible to the host, and ends the recording.
    Status EndCommands(VkCommandBuffer commands);

    // Submits and waits. Returns the seconds from before vkQueueSubmit to after vkWaitForFences.
    Result<double> Submit(VkCommandBuffer commands);

  private:
    Device() = default;
    Status CreateInstance(bool validate);
    Status CreateDevice();
    Status CreateHelpers();

    double start_seconds_ = 0;
    bool layer_knows_matrices_ = true;
    // On the heap, because the layer's callback holds its address.
    std::unique_ptr<std::vector<std::string>> validation_messages_ =
        std::make_unique<std::vector<std::string>>();
    VkInstance instance_ = VK_NULL_HANDLE;
    VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
    VkPhysicalDevice physical_ = VK_NULL_HANDLE;
    VkDevice device_ = VK_NULL_HANDLE;
    uint32_t queue_family_ = 0;
    VkQueue queue_ = VK_NULL_HANDLE;
    VkCommandPool command_pool_ = VK_NULL_HANDLE;
    VkFence fence_ = VK_NULL_HANDLE;
};

// Makes everything before it in the queue visible to everything after it, for dispatches and
// copies.
void RecordBarrier(VkCommandBuffer commands);

}  // namespace fornax::bench
