// What the tests through the Vulkan loader share: a device with two queues, buffers that are
// sub-allocated between poisoned neighbours, pipelines from embedded SPIR-V, and a messenger that
// turns whatever the validation layers say into a failure.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <volk.h>

#include "runtime/vulkan/device.h"
#include "runtime/vulkan/instance.h"

namespace fornax::test {

#define ASSERT_VK(call) ASSERT_EQ(call, VK_SUCCESS)
#define EXPECT_VK(call) EXPECT_EQ(call, VK_SUCCESS)

// A range of a larger buffer and memory; the words around it must keep their poison.
struct TestBuffer {
    VkBuffer handle = VK_NULL_HANDLE;
    VkDeviceMemory memory = VK_NULL_HANDLE;
    VkDeviceSize offset = 0;  // of the range in the buffer
    VkDeviceSize size = 0;
    uint32_t* words = nullptr;  // the range, mapped

    VkDescriptorBufferInfo info() const { return {handle, offset, size}; }
    std::span<uint32_t> span() const { return {words, static_cast<size_t>(size / 4)}; }
    float* floats() const { return reinterpret_cast<float*>(words); }
};

// One binding of set 0: an array of as many descriptors as it has buffers.
struct TestBinding {
    VkDescriptorType type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    std::vector<TestBuffer> buffers;
};

struct TestPipeline {
    VkShaderModule module = VK_NULL_HANDLE;
    VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
    VkPipelineLayout layout = VK_NULL_HANDLE;
    VkPipeline pipeline = VK_NULL_HANDLE;
    VkDescriptorPool pool = VK_NULL_HANDLE;
    VkDescriptorSet set = VK_NULL_HANDLE;
};

class VulkanTest : public testing::Test {
  protected:
    void SetUp() override;
    void TearDown() override;

    TestBuffer MakeBuffer(size_t words, VkBufferUsageFlags more_usage = 0);
    // Storage buffers at bindings 0.. of set 0, and 128 bytes of push constants.
    TestPipeline MakePipeline(std::span<const uint32_t> spirv,
                              std::span<const TestBuffer> buffers,
                              const VkSpecializationInfo* specialization = nullptr);
    TestPipeline MakePipeline(std::span<const uint32_t> spirv,
                              std::span<const TestBinding> bindings,
                              const VkSpecializationInfo* specialization = nullptr);

    // For a set layout of the test's own: no set is made.
    TestPipeline MakePipelineWith(std::span<const uint32_t> spirv,
                                  const VkDescriptorSetLayoutCreateInfo& set_layout,
                                  const VkSpecializationInfo* specialization = nullptr);

    VkCommandBuffer Begin(VkCommandBufferUsageFlags flags = 0,
                          VkCommandBufferLevel level = VK_COMMAND_BUFFER_LEVEL_PRIMARY);
    void Bind(VkCommandBuffer commands, const TestPipeline& pipeline);
    // A barrier from all commands to all commands and the host.
    void Barrier(VkCommandBuffer commands);
    // Ends, submits to queue 0 and waits.
    void Run(VkCommandBuffer commands);
    void Run(const TestPipeline& pipeline, uint32_t x, uint32_t y = 1, uint32_t z = 1);
    VkFence MakeFence(bool signalled = false);
    VkSemaphore MakeSemaphore(std::optional<uint64_t> timeline_value = std::nullopt);
    VkResult Submit(VkCommandBuffer commands, VkFence fence, uint32_t queue = 0);

    // Runs at the end of the test, last added first.
    void AtEnd(std::function<void()> action) { at_end_.push_back(std::move(action)); }

    VkInstance instance_ = VK_NULL_HANDLE;
    VkPhysicalDevice physical_ = VK_NULL_HANDLE;
    VkDevice device_ = VK_NULL_HANDLE;
    VkQueue queues_[2] = {};  // null where queue_infos_ has none
    VkCommandPool pool_ = VK_NULL_HANDLE;
    // What else the device is created with: to be set before VulkanTest::SetUp.
    bool robust_ = false;
    VkPhysicalDeviceFeatures core_features_ = {};
    uint32_t api_version_ = VK_API_VERSION_1_1;  // set before SetUp
    std::vector<const char*> more_extensions_;
    // Instead of two queues of family 0.
    std::vector<VkDeviceQueueCreateInfo> queue_infos_;
    void* more_features_ = nullptr;        // a chain of structures
    uint32_t required_subgroup_size_ = 0;  // of pipelines; 0: the device's own
    std::vector<std::string> messages_;
    // Whether the validation layer listens: what breaks its rules on purpose is left out then.
    static bool Validated() { return std::getenv("VK_INSTANCE_LAYERS") != nullptr; }
    // What pipelines and their stages are created with.
    const void* pipeline_chain_ = nullptr;
    const void* stage_chain_ = nullptr;

  private:
    std::shared_ptr<const vulkan::Instance> owned_instance_;
    std::shared_ptr<vulkan::Device> owned_device_;
    std::vector<std::function<void()>> at_end_;
    std::vector<TestBuffer> buffers_;
};

}  // namespace fornax::test
