// The driver's own memory, which does not go through the application's callbacks: every operator
// new and aligned_alloc fails once, the nth one for every n, in every command that creates
// something, in recording and in submission. Each gives VK_ERROR_OUT_OF_HOST_MEMORY or does
// without; nothing leaks, and what failed works the next time. The program replaces operator new,
// so it is one of its own.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "driver/test_commands.h"
#include "driver/test_objects.h"

namespace {

// Only what the thread of the test allocates while it says so is counted and may fail.
thread_local bool t_counting = false;
thread_local int t_next = 0;
thread_local int t_fail_at = -1;
thread_local bool t_aligned_failed = false;
std::atomic<int> g_live = 0;  // allocations of counting threads that are not freed

constexpr uint64_t kCounted = 0x636f756e74656421;

bool MayAllocate() {
    return !t_counting || t_next++ != t_fail_at;
}

// A header before the memory tells whether it was counted.
void* Allocate(size_t size, size_t alignment) {
    if (!MayAllocate())
        return nullptr;
    const size_t header = std::max(alignment, size_t{16});
    void* memory = nullptr;
    if (posix_memalign(&memory, header, header + size) != 0)
        return nullptr;
    auto* start = static_cast<std::byte*>(memory) + header;
    const uint64_t mark = t_counting ? kCounted : 0;
    std::memcpy(start - sizeof(mark), &mark, sizeof(mark));
    g_live += t_counting;
    return start;
}

void Free(void* start, size_t alignment) {
    if (!start)
        return;
    uint64_t mark;
    std::memcpy(&mark, static_cast<std::byte*>(start) - sizeof(mark), sizeof(mark));
    g_live -= mark == kCounted;
    std::free(static_cast<std::byte*>(start) - std::max(alignment, size_t{16}));
}

void* AllocateOrThrow(size_t size, size_t alignment) {
    void* memory = Allocate(size, alignment);
    if (!memory)
        throw std::bad_alloc();
    return memory;
}

}  // namespace

void* operator new(size_t size) {
    return AllocateOrThrow(size, 16);
}
void* operator new[](size_t size) {
    return AllocateOrThrow(size, 16);
}
void* operator new(size_t size, std::align_val_t alignment) {
    return AllocateOrThrow(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
    return AllocateOrThrow(size, static_cast<size_t>(alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
    return Allocate(size, 16);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
    return Allocate(size, 16);
}
void operator delete(void* memory) noexcept {
    Free(memory, 16);
}
void operator delete[](void* memory) noexcept {
    Free(memory, 16);
}
void operator delete(void* memory, size_t) noexcept {
    Free(memory, 16);
}
void operator delete[](void* memory, size_t) noexcept {
    Free(memory, 16);
}
void operator delete(void* memory, std::align_val_t alignment) noexcept {
    Free(memory, static_cast<size_t>(alignment));
}
void operator delete[](void* memory, std::align_val_t alignment) noexcept {
    Free(memory, static_cast<size_t>(alignment));
}
void operator delete(void* memory, size_t, std::align_val_t alignment) noexcept {
    Free(memory, static_cast<size_t>(alignment));
}
void operator delete[](void* memory, size_t, std::align_val_t alignment) noexcept {
    Free(memory, static_cast<size_t>(alignment));
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
    Free(memory, 16);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
    Free(memory, 16);
}

// What command streams and objects without callbacks live in.
extern "C" void* aligned_alloc(size_t alignment, size_t size) noexcept {
    void* memory = nullptr;
    if (!MayAllocate() || posix_memalign(&memory, std::max(alignment, sizeof(void*)), size) != 0) {
        t_aligned_failed = true;
        errno = ENOMEM;
        return nullptr;
    }
    return memory;
}

namespace fornax::driver_test {
namespace {

// Runs `action` with the nth allocation failing; whether one did.
bool FailsAt(int n, const std::function<void()>& action) {
    t_next = 0;
    t_fail_at = n;
    t_aligned_failed = false;
    t_counting = true;
    action();
    t_counting = false;
    return t_next > n;
}

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
            const int before = g_live;
            VkResult result = VK_ERROR_UNKNOWN;
            const bool failed = FailsAt(n, [&] { result = create(); });
            if (result == VK_SUCCESS) {
                destroy();
            } else if (result != VK_ERROR_OUT_OF_DEVICE_MEMORY || !t_aligned_failed) {
                // Device memory comes out of aligned_alloc, too.
                EXPECT_EQ(result, VK_ERROR_OUT_OF_HOST_MEMORY);
            }
            EXPECT_EQ(g_live, before) << "leaked";
            if (!failed) {
                EXPECT_EQ(result, VK_SUCCESS);
                return n;
            }
            if (::testing::Test::HasFailure())
                return n;
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
            const bool counting = std::exchange(t_counting, false);
            EXPECT_EQ(CreateInstance(options), VK_SUCCESS);
            t_counting = counting;
            uint32_t count = 1;
            const VkResult result =
                vkEnumeratePhysicalDevices(instance_, &count, &physical_device_);
            if (result != VK_SUCCESS)
                DestroyAll();
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
    for (auto step = steps.rbegin(); step != steps.rend(); ++step)
        step->destroy();
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
