// Command buffer: records a HAL command stream.
//
// Binds and push constants are kept here and written to the stream before the dispatch that needs
// them. An error while recording sticks and is what vkEndCommandBuffer returns. The commands
// themselves are in cmd_*.cpp, by family.
#pragma once

#include <array>
#include <bitset>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <vulkan/vulkan_core.h>

#include "driver/limits.h"
#include "driver/object.h"
#include "driver/report.h"
#include "hal/command_stream_builder.h"

namespace fornax::driver {

class CommandPool;
class ComputeKernel;
class DescriptorSet;
class DescriptorUpdateTemplate;
class PipelineLayout;

class CommandBuffer : public DeviceObject {
  public:
    using Handle = VkCommandBuffer;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_COMMAND_BUFFER;

    CommandBuffer(Device& device, CommandPool& pool, VkCommandBufferLevel level)
        : DeviceObject(device, kObjectType), pool_(&pool), level_(level) {}

    CommandPool& pool() const { return *pool_; }

    void Begin(const VkCommandBufferBeginInfo& info);
    VkResult End();
    void Reset(bool release_resources);

    // The recorded stream; null unless recording ended well.
    const std::shared_ptr<const hal::CommandStream>& stream() const { return stream_; }

    hal::CommandStreamBuilder& builder() { return builder_; }

    // What dispatches run from here on, of a pipeline or a shader object; null unbinds. `name`:
    // what the application calls it, or null.
    void BindKernel(const ComputeKernel* kernel, const char* name = nullptr);
    // Labels name dispatches for cost records.
    void BeginLabel(const char* label);
    void EndLabel();
    void BindDescriptorSet(uint32_t index,
                           const DescriptorSet& set,
                           std::span<const uint32_t> dynamic_offsets);
    // A set that lies in memory of the application's, or 0 for none.
    void BindSetAddress(uint32_t index, uint64_t address);
    // The heap that a kernel finds as this set (kernel::ResourceLayout).
    void BindHeap(uint32_t set, const VkBindHeapInfoEXT& info);
    // Addresses of descriptor buffers, which sets are offsets into.
    std::span<uint64_t> descriptor_buffers() { return descriptor_buffers_; }
    // The host copy of set `index`'s pushed descriptors, to be written to.
    std::byte* PushDescriptors(const PipelineLayout& layout, uint32_t index);
    // `total_bytes`: of all push constants that the layout has.
    void PushConstants(uint32_t offset_bytes,
                       std::span<const std::byte> data,
                       uint32_t total_bytes);
    // Brings the stream's bindings up to date; false after an error.
    bool PrepareDispatch();

    void Execute(const CommandBuffer& secondary);

    VkResult result() const { return result_; }
    // Remembers the first error of the recording.
    void Error(VkResult result) {
        if (result_ == VK_SUCCESS) {
            result_ = result;
        }
    }

  private:
    friend class CommandPool;

    struct BoundSet {
        uint64_t address = 0;
        uint32_t dynamic_offset_count = 0;
        std::array<uint32_t, hal::kMaxDynamicOffsets> dynamic_offsets;
        std::vector<std::byte> pushed;  // host copy of pushed descriptors
        bool pushed_changed = false;
    };

    void ForgetBindings();
    bool RenewConstants(uint32_t size_bytes, uint32_t from, uint32_t to);
    bool PrepareHeaps();
    bool PrepareSets();
    // The kernel's, under the name that cost records show.
    const std::shared_ptr<const hal::Executable>& NamedExecutable() const;

    CommandPool* pool_;
    CommandBuffer* previous_ = nullptr;
    CommandBuffer* next_ = nullptr;
    VkCommandBufferLevel level_;
    VkResult result_ = VK_SUCCESS;
    hal::CommandStreamBuilder builder_;
    std::shared_ptr<const hal::CommandStream> stream_;

    const ComputeKernel* kernel_ = nullptr;
    // What the application calls it, and the labels that are open, if anybody reads them.
    std::string kernel_name_;
    std::vector<std::string> labels_;
    std::array<BoundSet, hal::kMaxDescriptorSets> sets_;
    std::array<uint64_t, kMaxDescriptorBuffers> descriptor_buffers_ = {};
    std::array<VkDeviceAddressRangeEXT, 2> heaps_ = {};
    uint32_t used_sets_ = 0;  // highest set number ever bound in this recording + 1
    // The push constants: a piece of the stream's side data, which no dispatch has yet or, once
    // `constants_recorded_`, does not change any more.
    std::byte* constants_ = nullptr;
    uint32_t constant_bytes_ = 0;
    bool constants_recorded_ = false;
    bool bindings_changed_ = false;
    bool constants_changed_ = false;
    uint32_t recorded_constant_bytes_ = 0;  // that the stream has, until they change
};

// For a command that could not be recorded.
void FailRecording(VkCommandBuffer command_buffer, VkResult result);

}  // namespace fornax::driver
