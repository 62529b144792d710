// A device with one command buffer, and short ways to make what commands need. Everything made here
// is destroyed with the test.
#pragma once

#include <array>
#include <cstring>
#include <functional>
#include <vector>

#include "driver/test_device.h"
#include "driver/test_kernel_compiler.h"

namespace fornax::driver_test {

// A buffer that starts and ends inside its allocation, between poisoned neighbours.
struct TestBuffer {
    static constexpr VkDeviceSize kMargin = 256;
    static constexpr uint8_t kPoison = 0xa5;

    VkBuffer buffer = VK_NULL_HANDLE;
    VkDeviceMemory memory = VK_NULL_HANDLE;
    uint8_t* allocation = nullptr;
    size_t allocation_bytes = 0;
    size_t size_bytes = 0;

    template <typename T = uint8_t>
    T* as() const {
        return reinterpret_cast<T*>(allocation + kMargin);
    }
    bool NeighboursAreIntact() const {
        for (size_t i = 0; i < allocation_bytes; ++i) {
            if ((i < kMargin || i >= kMargin + size_bytes) && allocation[i] != kPoison) {
                return false;
            }
        }
        return true;
    }
};

class TestCommands : public TestDevice {
  protected:
    void SetUp() override { SetUpWith({}); }

    void SetUpWith(std::vector<const char*> extensions) {
        VkPhysicalDeviceTimelineSemaphoreFeatures timeline{
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
            .timelineSemaphore = VK_TRUE};
        VkPhysicalDeviceSynchronization2Features synchronization2{
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SYNCHRONIZATION_2_FEATURES,
            .pNext = &timeline,
            .synchronization2 = VK_TRUE};
        VkPhysicalDeviceHostQueryResetFeatures query_reset{
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_HOST_QUERY_RESET_FEATURES,
            .pNext = &synchronization2,
            .hostQueryReset = VK_TRUE};
        for (const char* name : {"VK_KHR_timeline_semaphore", "VK_KHR_synchronization2",
                                 "VK_EXT_host_query_reset", "VK_KHR_push_descriptor"}) {
            extensions.push_back(name);
        }
        CreateAll({.device_extensions = extensions, .device_chain = &query_reset});
        MakeCommandPool();
    }

    // For tests that make the device themselves.
    void MakeCommandPool() {
        const VkCommandPoolCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
            .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT};
        ASSERT_EQ(vkCreateCommandPool(device_, &info, nullptr, &command_pool_), VK_SUCCESS);
        AtEnd([this] { vkDestroyCommandPool(device_, command_pool_, nullptr); });
        commands_ = AllocateCommands();
    }

    void TearDown() override {
        if (device_) {
            vkDeviceWaitIdle(device_);
        }
        for (auto destroy = at_end_.rbegin(); destroy != at_end_.rend(); ++destroy) {
            (*destroy)();
        }
        at_end_.clear();
        TestDevice::TearDown();
    }

    void AtEnd(std::function<void()> destroy) { at_end_.push_back(std::move(destroy)); }

    VkCommandBuffer AllocateCommands(VkCommandBufferLevel level = VK_COMMAND_BUFFER_LEVEL_PRIMARY) {
        const VkCommandBufferAllocateInfo info{
            .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
            .commandPool = command_pool_,
            .level = level,
            .commandBufferCount = 1};
        VkCommandBuffer commands = VK_NULL_HANDLE;
        EXPECT_EQ(vkAllocateCommandBuffers(device_, &info, &commands), VK_SUCCESS);
        return commands;
    }

    static void Begin(VkCommandBuffer commands) {
        const VkCommandBufferInheritanceInfo inheritance{
            .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO};
        const VkCommandBufferBeginInfo info{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                            .pInheritanceInfo = &inheritance};
        EXPECT_EQ(vkBeginCommandBuffer(commands, &info), VK_SUCCESS);
    }

    VkResult Submit(VkCommandBuffer commands, VkFence fence = VK_NULL_HANDLE) {
        const VkSubmitInfo info{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                .commandBufferCount = 1,
                                .pCommandBuffers = &commands};
        return vkQueueSubmit(queue_, 1, &info, fence);
    }

    // Records with `record`, submits and waits.
    void Run(const std::function<void(VkCommandBuffer)>& record) {
        Begin(commands_);
        record(commands_);
        ASSERT_EQ(vkEndCommandBuffer(commands_), VK_SUCCESS);
        ASSERT_EQ(Submit(commands_), VK_SUCCESS);
        ASSERT_EQ(vkQueueWaitIdle(queue_), VK_SUCCESS);
    }

    TestBuffer MakeBuffer(size_t size_bytes) {
        TestBuffer result{.size_bytes = size_bytes};
        const VkBufferCreateInfo buffer_info{
            .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
            .size = size_bytes,
            .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                     VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT};
        EXPECT_EQ(vkCreateBuffer(device_, &buffer_info, nullptr, &result.buffer), VK_SUCCESS);
        VkMemoryRequirements requirements;
        vkGetBufferMemoryRequirements(device_, result.buffer, &requirements);
        result.allocation_bytes = requirements.size + 2 * TestBuffer::kMargin;
        const VkMemoryAllocateInfo info{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                        .allocationSize = result.allocation_bytes};
        EXPECT_EQ(vkAllocateMemory(device_, &info, nullptr, &result.memory), VK_SUCCESS);
        void* mapped = nullptr;
        EXPECT_EQ(vkMapMemory(device_, result.memory, 0, VK_WHOLE_SIZE, 0, &mapped), VK_SUCCESS);
        result.allocation = static_cast<uint8_t*>(mapped);
        std::memset(mapped, TestBuffer::kPoison, result.allocation_bytes);
        std::memset(result.as(), 0, size_bytes);
        EXPECT_EQ(vkBindBufferMemory(device_, result.buffer, result.memory, TestBuffer::kMargin),
                  VK_SUCCESS);
        AtEnd([this, result] {
            EXPECT_TRUE(result.NeighboursAreIntact());
            vkDestroyBuffer(device_, result.buffer, nullptr);
            vkFreeMemory(device_, result.memory, nullptr);
        });
        return result;
    }

    VkDescriptorSetLayout MakeSetLayout(VkDescriptorType type,
                                        uint32_t count,
                                        VkDescriptorSetLayoutCreateFlags flags = 0) {
        const VkDescriptorSetLayoutBinding binding{.descriptorType = type,
                                                   .descriptorCount = count,
                                                   .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
        const VkDescriptorSetLayoutCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
            .flags = flags,
            .bindingCount = 1,
            .pBindings = &binding};
        VkDescriptorSetLayout layout = VK_NULL_HANDLE;
        EXPECT_EQ(vkCreateDescriptorSetLayout(device_, &info, nullptr, &layout), VK_SUCCESS);
        AtEnd([this, layout] { vkDestroyDescriptorSetLayout(device_, layout, nullptr); });
        return layout;
    }

    VkPipelineLayout MakePipelineLayout(const std::vector<VkDescriptorSetLayout>& sets) {
        const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, 16};
        const VkPipelineLayoutCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
            .setLayoutCount = static_cast<uint32_t>(sets.size()),
            .pSetLayouts = sets.data(),
            .pushConstantRangeCount = 1,
            .pPushConstantRanges = &range};
        VkPipelineLayout layout = VK_NULL_HANDLE;
        EXPECT_EQ(vkCreatePipelineLayout(device_, &info, nullptr, &layout), VK_SUCCESS);
        AtEnd([this, layout] { vkDestroyPipelineLayout(device_, layout, nullptr); });
        return layout;
    }

    VkPipeline MakePipeline(const TestProgram& program, VkPipelineLayout layout) {
        const VkShaderModuleCreateInfo module_info{
            .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
            .codeSize = sizeof(program),
            .pCode = program.data()};
        VkShaderModule shader_module = VK_NULL_HANDLE;
        EXPECT_EQ(vkCreateShaderModule(device_, &module_info, nullptr, &shader_module), VK_SUCCESS);
        const VkComputePipelineCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
            .flags = VK_PIPELINE_CREATE_DISPATCH_BASE_BIT,
            .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                      .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                      .module = shader_module,
                      .pName = "main"},
            .layout = layout};
        VkPipeline pipeline = VK_NULL_HANDLE;
        EXPECT_EQ(vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline),
                  VK_SUCCESS);
        vkDestroyShaderModule(device_, shader_module, nullptr);
        AtEnd([this, pipeline] { vkDestroyPipeline(device_, pipeline, nullptr); });
        return pipeline;
    }

    // A set of the layout whose descriptors all name the same range.
    VkDescriptorSet MakeSet(VkDescriptorSetLayout layout,
                            VkDescriptorType type,
                            const VkDescriptorBufferInfo& range,
                            uint32_t count = 1) {
        const VkDescriptorPoolSize size{type, count};
        const VkDescriptorPoolCreateInfo pool_info{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
            .maxSets = 1,
            .poolSizeCount = 1,
            .pPoolSizes = &size};
        VkDescriptorPool pool = VK_NULL_HANDLE;
        EXPECT_EQ(vkCreateDescriptorPool(device_, &pool_info, nullptr, &pool), VK_SUCCESS);
        AtEnd([this, pool] { vkDestroyDescriptorPool(device_, pool, nullptr); });
        const VkDescriptorSetAllocateInfo info{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
            .descriptorPool = pool,
            .descriptorSetCount = 1,
            .pSetLayouts = &layout};
        VkDescriptorSet set = VK_NULL_HANDLE;
        EXPECT_EQ(vkAllocateDescriptorSets(device_, &info, &set), VK_SUCCESS);
        const std::vector<VkDescriptorBufferInfo> ranges(count, range);
        const VkWriteDescriptorSet write{.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                         .dstSet = set,
                                         .descriptorCount = count,
                                         .descriptorType = type,
                                         .pBufferInfo = ranges.data()};
        vkUpdateDescriptorSets(device_, 1, &write, 0, nullptr);
        return set;
    }

    VkFence MakeFence(VkFenceCreateFlags flags = 0) {
        const VkFenceCreateInfo info{.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, .flags = flags};
        VkFence fence = VK_NULL_HANDLE;
        EXPECT_EQ(vkCreateFence(device_, &info, nullptr, &fence), VK_SUCCESS);
        AtEnd([this, fence] { vkDestroyFence(device_, fence, nullptr); });
        return fence;
    }

    VkCommandPool command_pool_ = VK_NULL_HANDLE;
    VkCommandBuffer commands_ = VK_NULL_HANDLE;

  private:
    std::vector<std::function<void()>> at_end_;
};

}  // namespace fornax::driver_test
