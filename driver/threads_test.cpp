// Threads that record, submit and create side by side, each with what the specification lets one
// thread have: a command pool, a descriptor pool, objects. They share the device, a layout, a
// pipeline cache and, taking turns, a queue. Made for the thread sanitiser; the results are checked
// anyway.
#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "driver/test_commands.h"

namespace fornax::driver_test {
namespace {

class ThreadsTest : public TestCommands {
  protected:
    static constexpr uint32_t kThreads = 6;
    static constexpr uint32_t kRounds = 40;

    static void InThreads(const std::function<void(uint32_t)>& work) {
        std::vector<std::thread> threads;
        for (uint32_t i = 0; i < kThreads; ++i) {
            threads.emplace_back(work, i);
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
    }
};

// A thread's own pool, command buffer and fence.
struct Recorder {
    explicit Recorder(VkDevice device) : device(device) {
        const VkCommandPoolCreateInfo pool_info{
            .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
            .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT};
        EXPECT_EQ(vkCreateCommandPool(device, &pool_info, nullptr, &pool), VK_SUCCESS);
        const VkCommandBufferAllocateInfo info{
            .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
            .commandPool = pool,
            .commandBufferCount = 1};
        EXPECT_EQ(vkAllocateCommandBuffers(device, &info, &commands), VK_SUCCESS);
        const VkFenceCreateInfo fence_info{.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
        EXPECT_EQ(vkCreateFence(device, &fence_info, nullptr, &fence), VK_SUCCESS);
    }
    ~Recorder() {
        vkDestroyFence(device, fence, nullptr);
        vkDestroyCommandPool(device, pool, nullptr);
    }
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    VkDevice device;
    VkCommandPool pool = VK_NULL_HANDLE;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkFence fence = VK_NULL_HANDLE;
};

TEST_F(ThreadsTest, RecordAndSubmitSideBySide) {
    const VkDescriptorSetLayout layout = MakeSetLayout(
        VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT);
    const VkPipelineLayout pipeline_layout = MakePipelineLayout({layout});
    const VkPipeline pipeline = MakePipeline(kRecordingProgram, pipeline_layout);
    std::vector<TestBuffer> buffers;
    for (uint32_t i = 0; i < kThreads; ++i) {
        buffers.push_back(MakeBuffer(sizeof(DispatchRecord) + 64));
    }
    std::mutex queue_mutex;  // "external synchronization" of the queue
    InThreads([&](uint32_t index) {
        Recorder recorder(device_);
        const TestBuffer& buffer = buffers[index];
        for (uint32_t round = 0; round < kRounds; ++round) {
            Begin(recorder.commands);
            vkCmdBindPipeline(recorder.commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
            const VkDescriptorBufferInfo info{buffer.buffer, 0, VK_WHOLE_SIZE};
            const VkWriteDescriptorSet write{.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                             .descriptorCount = 1,
                                             .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                             .pBufferInfo = &info};
            vkCmdPushDescriptorSetKHR(recorder.commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                                      pipeline_layout, 0, 1, &write);
            const uint32_t constants[4] = {index, round, 0, 0};
            vkCmdPushConstants(recorder.commands, pipeline_layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                               sizeof(constants), constants);
            vkCmdDispatch(recorder.commands, 1, 1, 1);
            ASSERT_EQ(vkEndCommandBuffer(recorder.commands), VK_SUCCESS);
            {
                std::lock_guard lock(queue_mutex);
                ASSERT_EQ(Submit(recorder.commands, recorder.fence), VK_SUCCESS);
            }
            ASSERT_EQ(vkWaitForFences(device_, 1, &recorder.fence, VK_TRUE, 60'000'000'000),
                      VK_SUCCESS);
            ASSERT_EQ(vkResetFences(device_, 1, &recorder.fence), VK_SUCCESS);
            ASSERT_EQ(buffer.as<DispatchRecord>()->constants[1], round);
        }
        EXPECT_EQ(buffer.as<DispatchRecord>()->runs, kRounds);
    });
}

TEST_F(ThreadsTest, CreateUpdateAndDestroySideBySide) {
    const VkDescriptorSetLayout layout = MakeSetLayout(VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 4);
    const VkPipelineLayout pipeline_layout = MakePipelineLayout({layout});
    const VkPipelineCacheCreateInfo cache_info{.sType =
                                                   VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    VkPipelineCache cache = VK_NULL_HANDLE;
    ASSERT_EQ(vkCreatePipelineCache(device_, &cache_info, nullptr, &cache), VK_SUCCESS);
    AtEnd([this, cache] { vkDestroyPipelineCache(device_, cache, nullptr); });
    const TestBuffer buffer = MakeBuffer(256);
    InThreads([&](uint32_t index) {
        const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 4};
        const VkDescriptorPoolCreateInfo pool_info{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
            .maxSets = 1,
            .poolSizeCount = 1,
            .pPoolSizes = &size};
        VkDescriptorPool pool = VK_NULL_HANDLE;
        ASSERT_EQ(vkCreateDescriptorPool(device_, &pool_info, nullptr, &pool), VK_SUCCESS);
        for (uint32_t round = 0; round < kRounds; ++round) {
            const VkDescriptorSetAllocateInfo info{
                .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                .descriptorPool = pool,
                .descriptorSetCount = 1,
                .pSetLayouts = &layout};
            VkDescriptorSet set = VK_NULL_HANDLE;
            ASSERT_EQ(vkAllocateDescriptorSets(device_, &info, &set), VK_SUCCESS);
            const VkDescriptorBufferInfo range{buffer.buffer, 0, VK_WHOLE_SIZE};
            const VkWriteDescriptorSet write{.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                             .dstSet = set,
                                             .dstArrayElement = round % 4,
                                             .descriptorCount = 1,
                                             .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                             .pBufferInfo = &range};
            vkUpdateDescriptorSets(device_, 1, &write, 0, nullptr);
            ASSERT_EQ(vkResetDescriptorPool(device_, pool, 0), VK_SUCCESS);

            const TestProgram program = {kSpirvMagic, (index + round) % 5 + 1};
            const VkShaderModuleCreateInfo module_info{
                .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                .codeSize = sizeof(program),
                .pCode = program.data()};
            VkShaderModule module = VK_NULL_HANDLE;
            ASSERT_EQ(vkCreateShaderModule(device_, &module_info, nullptr, &module), VK_SUCCESS);
            const VkComputePipelineCreateInfo pipeline_info{
                .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                          .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                          .module = module,
                          .pName = "main"},
                .layout = pipeline_layout};
            VkPipeline pipeline = VK_NULL_HANDLE;
            ASSERT_EQ(
                vkCreateComputePipelines(device_, cache, 1, &pipeline_info, nullptr, &pipeline),
                VK_SUCCESS);
            vkDestroyShaderModule(device_, module, nullptr);
            vkDestroyPipeline(device_, pipeline, nullptr);

            const VkMemoryAllocateInfo memory_info{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                                   .allocationSize = 4096};
            VkDeviceMemory memory = VK_NULL_HANDLE;
            ASSERT_EQ(vkAllocateMemory(device_, &memory_info, nullptr, &memory), VK_SUCCESS);
            vkFreeMemory(device_, memory, nullptr);
        }
        vkDestroyDescriptorPool(device_, pool, nullptr);
    });
}

}  // namespace
}  // namespace fornax::driver_test
