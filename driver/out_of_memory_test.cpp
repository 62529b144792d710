// The driver's own memory, which does not go through the application's callbacks: every operator
// new and aligned_alloc fails once, the nth one for every n, in every command that creates
// something, in recording and in submission. Each gives VK_ERROR_OUT_OF_HOST_MEMORY or does
// without; nothing leaks, and what failed works the next time. The program replaces operator new,
// so it is one of its own.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/failing_new.h"
#include "driver/test_commands.h"
#include "driver/test_objects.h"

namespace fornax::driver_test {
namespace {

class OutOfMemoryTest : public TestCommands {
  protected:
    void SetUp() override {}

    static constexpr int kMost = 2000;

    // For n = 0, 1, ..., until no allocation fails: `create` gives VK_SUCCESS or
    // VK_ERROR_OUT_OF_HOST_MEMORY. `destroy` follows the former, and nothing is left. Returns n.
    static int FailEveryNew(const std::function<VkResult()>& create,
                            const std::function<void()>& destroy) {
        // What is made once in a process is made now.
        EXPECT_EQ(create(), VK_SUCCESS);
        destroy();
        for (int n = 0; n < kMost; ++n) {
            SCOPED_TRACE("allocation " + std::to_string(n));
            const int before = LiveAllocations();
            VkResult result = VK_ERROR_UNKNOWN;
            const bool failed = FailsAt(n, [&] { result = create(); });
            if (result == VK_SUCCESS) {
                destroy();
            } else if (result != VK_ERROR_OUT_OF_DEVICE_MEMORY || !AlignedAllocationFailed()) {
                // Device memory comes out of aligned_alloc, too.
                EXPECT_EQ(result, VK_ERROR_OUT_OF_HOST_MEMORY);
            }
            EXPECT_EQ(LiveAllocations(), before) << "leaked";
            if (!failed) {
                EXPECT_EQ(result, VK_SUCCESS);
                return n;
            }
            if (::testing::Test::HasFailure()) {
                return n;
            }
        }
        ADD_FAILURE() << kMost << " allocations are too many.";
        return kMost;
    }
};

TEST_F(OutOfMemoryTest, Instances) {
    const TestDeviceOptions options;
    FailEveryNew([&] { return CreateInstance(options); }, [&] { DestroyAll(); });
}

TEST_F(OutOfMemoryTest, PhysicalDevices) {
    const TestDeviceOptions options;
    FailEveryNew(
        [&] {
            const bool counting = CountAllocations(false);
            EXPECT_EQ(CreateInstance(options), VK_SUCCESS);
            CountAllocations(counting);
            uint32_t count = 1;
            const VkResult result =
                vkEnumeratePhysicalDevices(instance_, &count, &physical_device_);
            if (result != VK_SUCCESS) {
                DestroyAll();
            }
            return result;
        },
        [&] { DestroyAll(); });
}

TEST_F(OutOfMemoryTest, Devices) {
    const TestDeviceOptions options{.device_extensions = {"VK_KHR_synchronization2"}};
    ASSERT_EQ(CreateInstance(options), VK_SUCCESS);
    FailEveryNew([&] { return CreateDevice(options); },
                 [&] {
                     vkDestroyDevice(device_, nullptr);
                     device_ = VK_NULL_HANDLE;
                 });
}

TEST_F(OutOfMemoryTest, Objects) {
    CreateAll(
        {.instance_extensions = kFactoryExtensions, .device_extensions = {"VK_EXT_private_data"}});
    ObjectFactory factory(instance_, device_, nullptr);
    const auto steps = factory.Steps();
    for (const auto& step : steps) {
        SCOPED_TRACE(step.command);
        FailEveryNew(step.create, step.destroy);
        ASSERT_EQ(step.create(), VK_SUCCESS);  // later steps need it
    }
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
        step->destroy();
    }
}

// What cannot be recorded is told at the end, and the command buffer can be used again.
TEST_F(OutOfMemoryTest, Recording) {
    SetUpWith({});
    const TestBuffer from = MakeBuffer(8192);
    const TestBuffer to = MakeBuffer(8192);
    const VkDescriptorSetLayout layout = MakeSetLayout(
        VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT);
    const VkPipelineLayout pipeline_layout = MakePipelineLayout({layout});
    const VkPipeline pipeline = MakePipeline({kSpirvMagic, 1}, pipeline_layout);
    const std::vector<uint8_t> data(5000, 0x5a);
    const VkDescriptorBufferInfo buffer_info{from.buffer, 0, 8192};
    const VkWriteDescriptorSet write{.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                     .descriptorCount = 1,
                                     .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                     .pBufferInfo = &buffer_info};
    const uint32_t constants[4] = {1, 2, 0, 4};
    int reported = 0;
    for (int n = 0; n < kMost; ++n) {
        SCOPED_TRACE("allocation " + std::to_string(n));
        // Nothing is left of the recording before.
        ASSERT_EQ(vkResetCommandBuffer(commands_, VK_COMMAND_BUFFER_RESET_RELEASE_RESOURCES_BIT),
                  VK_SUCCESS);
        VkResult result = VK_ERROR_UNKNOWN;
        const bool failed = FailsAt(n, [&] {
            Begin(commands_);
            vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
            vkCmdPushConstants(commands_, pipeline_layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                               sizeof(constants), constants);
            for (int i = 0; i < 40; ++i) {
                vkCmdPushDescriptorSetKHR(commands_, VK_PIPELINE_BIND_POINT_COMPUTE,
                                          pipeline_layout, 0, 1, &write);
                vkCmdDispatch(commands_, 1, 1, 1);
            }
            const VkBufferCopy region{0, 0, 4096};
            vkCmdCopyBuffer(commands_, from.buffer, to.buffer, 1, &region);
            vkCmdUpdateBuffer(commands_, to.buffer, 0, data.size(), data.data());
            vkCmdFillBuffer(commands_, to.buffer, 0, 64, 7);
            result = vkEndCommandBuffer(commands_);
        });
        if (!failed) {
            EXPECT_EQ(result, VK_SUCCESS);
            EXPECT_GT(reported, 3);
            ASSERT_EQ(Submit(commands_), VK_SUCCESS);
            ASSERT_EQ(vkQueueWaitIdle(queue_), VK_SUCCESS);
            EXPECT_EQ(to.as()[4999], 0x5a);
            return;
        }
        if (result != VK_SUCCESS) {
            EXPECT_EQ(result, VK_ERROR_OUT_OF_HOST_MEMORY);
            ++reported;
        }
    }
    FAIL();
}

// The first submission starts the device's threads. What fails can be submitted again.
TEST_F(OutOfMemoryTest, Submission) {
    int reported = 0;
    for (int n = 0; n < kMost; ++n) {
        SCOPED_TRACE("allocation " + std::to_string(n));
        SetUpWith({});
        const TestBuffer buffer = MakeBuffer(64);
        Begin(commands_);
        vkCmdFillBuffer(commands_, buffer.buffer, 0, 64, 0x01010101);
        ASSERT_EQ(vkEndCommandBuffer(commands_), VK_SUCCESS);
        const VkFenceCreateInfo fence_info{.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
        VkFence fence = VK_NULL_HANDLE;
        ASSERT_EQ(vkCreateFence(device_, &fence_info, nullptr, &fence), VK_SUCCESS);
        AtEnd([this, fence] { vkDestroyFence(device_, fence, nullptr); });
        VkResult result = VK_ERROR_UNKNOWN;
        const bool failed = FailsAt(n, [&] { result = Submit(commands_, fence); });
        if (result != VK_SUCCESS) {
            EXPECT_EQ(result, VK_ERROR_OUT_OF_HOST_MEMORY);
            ++reported;
            // "Any resources are as they were before the call", so the fence is not signalled.
            EXPECT_EQ(vkGetFenceStatus(device_, fence), VK_NOT_READY);
            ASSERT_EQ(Submit(commands_, fence), VK_SUCCESS);
        }
        ASSERT_EQ(vkWaitForFences(device_, 1, &fence, VK_TRUE, 10'000'000'000), VK_SUCCESS);
        EXPECT_EQ(buffer.as()[63], 1);
        TestCommands::TearDown();
        if (!failed) {
            EXPECT_GT(reported, 0);
            return;
        }
    }
    FAIL();
}

}  // namespace
}  // namespace fornax::driver_test
