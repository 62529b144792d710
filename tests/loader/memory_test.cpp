// Memory with priorities, memory that begins as zeros, and barriers to and from queues of others.
#include <algorithm>

#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

class MemoryTest : public VulkanTest {
  protected:
    void SetUp() override {
        more_extensions_ = {VK_EXT_MEMORY_PRIORITY_EXTENSION_NAME,
                            VK_EXT_PAGEABLE_DEVICE_LOCAL_MEMORY_EXTENSION_NAME,
                            VK_EXT_ZERO_INITIALIZE_DEVICE_MEMORY_EXTENSION_NAME,
                            VK_EXT_QUEUE_FAMILY_FOREIGN_EXTENSION_NAME,
                            VK_EXT_EXTERNAL_MEMORY_ACQUIRE_UNMODIFIED_EXTENSION_NAME};
        more_features_ = &priority_;
        VulkanTest::SetUp();
    }

    // With its whole content seen by the host.
    VkDeviceMemory Allocate(VkDeviceSize size, const void* chain, void** bytes) {
        const VkMemoryAllocateInfo info{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                        .pNext = chain,
                                        .allocationSize = size};
        VkDeviceMemory memory = VK_NULL_HANDLE;
        EXPECT_VK(vkAllocateMemory(device_, &info, nullptr, &memory));
        EXPECT_VK(vkMapMemory(device_, memory, 0, VK_WHOLE_SIZE, 0, bytes));
        return memory;
    }

    VkPhysicalDeviceZeroInitializeDeviceMemoryFeaturesEXT zero_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ZERO_INITIALIZE_DEVICE_MEMORY_FEATURES_EXT,
        .zeroInitializeDeviceMemory = VK_TRUE};
    VkPhysicalDevicePageableDeviceLocalMemoryFeaturesEXT pageable_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PAGEABLE_DEVICE_LOCAL_MEMORY_FEATURES_EXT,
        .pNext = &zero_,
        .pageableDeviceLocalMemory = VK_TRUE};
    VkPhysicalDeviceMemoryPriorityFeaturesEXT priority_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PRIORITY_FEATURES_EXT,
        .pNext = &pageable_,
        .memoryPriority = VK_TRUE};
};

TEST_F(MemoryTest, PrioritiesAreGivenAndChanged) {
    for (float priority : {0.0f, 0.5f, 1.0f}) {
        const VkMemoryPriorityAllocateInfoEXT info{
            .sType = VK_STRUCTURE_TYPE_MEMORY_PRIORITY_ALLOCATE_INFO_EXT, .priority = priority};
        void* bytes = nullptr;
        VkDeviceMemory memory = Allocate(1 << 16, &info, &bytes);
        std::memset(bytes, 0x5a, 1 << 16);
        vkSetDeviceMemoryPriorityEXT(device_, memory, 1 - priority);
        EXPECT_EQ(static_cast<const uint8_t*>(bytes)[(1 << 16) - 1], 0x5a);
        vkFreeMemory(device_, memory, nullptr);
    }
}

// Memory of every size that heaps treat in ways of their own, and where others were a moment ago.
TEST_F(MemoryTest, MemoryBeginsAsZeros) {
    const VkMemoryAllocateFlagsInfo zeros{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                          .flags = VK_MEMORY_ALLOCATE_ZERO_INITIALIZE_BIT_EXT};
    for (VkDeviceSize size : {64u, 1000u, 4096u, 70'000u, 3u << 20, 40u << 20}) {
        for (int round = 0; round < 3; ++round) {
            void* bytes = nullptr;
            VkDeviceMemory memory = Allocate(size, &zeros, &bytes);
            auto* first = static_cast<uint8_t*>(bytes);
            EXPECT_TRUE(std::all_of(first, first + size, [](uint8_t b) { return b == 0; })) << size;
            std::memset(bytes, 0xff, size);
            vkFreeMemory(device_, memory, nullptr);
        }
    }
}

TEST_F(MemoryTest, ImagesBeginAsZeros) {
    constexpr VkExtent3D kExtent{37, 11, 1};
    const VkImageCreateInfo info{.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
                                 .imageType = VK_IMAGE_TYPE_2D,
                                 .format = VK_FORMAT_R8G8B8A8_UNORM,
                                 .extent = kExtent,
                                 .mipLevels = 1,
                                 .arrayLayers = 1,
                                 .samples = VK_SAMPLE_COUNT_1_BIT,
                                 .usage = VK_IMAGE_USAGE_TRANSFER_SRC_BIT,
                                 .initialLayout = VK_IMAGE_LAYOUT_ZERO_INITIALIZED_EXT};
    VkImage image = VK_NULL_HANDLE;
    ASSERT_VK(vkCreateImage(device_, &info, nullptr, &image));
    VkMemoryRequirements needs;
    vkGetImageMemoryRequirements(device_, image, &needs);
    const VkMemoryAllocateFlagsInfo zeros{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                          .flags = VK_MEMORY_ALLOCATE_ZERO_INITIALIZE_BIT_EXT};
    void* bytes = nullptr;
    VkDeviceMemory memory = Allocate(needs.size, &zeros, &bytes);
    ASSERT_VK(vkBindImageMemory(device_, image, memory, 0));
    AtEnd([this, image, memory] {
        vkDestroyImage(device_, image, nullptr);
        vkFreeMemory(device_, memory, nullptr);
    });
    TestBuffer texels = MakeBuffer(size_t{kExtent.width} * kExtent.height);
    std::ranges::fill(texels.span(), 0xabcdefu);
    VkCommandBuffer commands = Begin();
    const VkImageMemoryBarrier barrier{.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
                                       .dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT,
                                       .oldLayout = VK_IMAGE_LAYOUT_ZERO_INITIALIZED_EXT,
                                       .newLayout = VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL,
                                       .srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
                                       .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
                                       .image = image,
                                       .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1}};
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT,
                         VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0, nullptr, 0, nullptr, 1, &barrier);
    const VkBufferImageCopy region{.bufferOffset = texels.offset,
                                   .imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1},
                                   .imageExtent = kExtent};
    vkCmdCopyImageToBuffer(commands, image, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, texels.handle, 1,
                           &region);
    Run(commands);
    for (uint32_t texel : texels.span()) {
        ASSERT_EQ(texel, 0u);
    }
}

// Released to a foreign queue and acquired again, told that nobody wrote it: it holds what it held.
TEST_F(MemoryTest, ForeignQueuesGiveBackWhatTheyGot) {
    TestBuffer buffer = MakeBuffer(256);
    TestBuffer copy = MakeBuffer(256);
    for (uint32_t i = 0; i < 256; ++i) {
        buffer.words[i] = 3 * i + 1;
    }
    const VkExternalMemoryAcquireUnmodifiedEXT unmodified{
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_ACQUIRE_UNMODIFIED_EXT,
        .acquireUnmodifiedMemory = VK_TRUE};
    VkBufferMemoryBarrier barrier{.sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER,
                                  .srcQueueFamilyIndex = 0,
                                  .dstQueueFamilyIndex = VK_QUEUE_FAMILY_FOREIGN_EXT,
                                  .buffer = buffer.handle,
                                  .size = VK_WHOLE_SIZE};
    VkCommandBuffer commands = Begin();
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT,
                         VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, 0, 0, nullptr, 1, &barrier, 0,
                         nullptr);
    barrier.pNext = &unmodified;
    barrier.dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT;
    std::swap(barrier.srcQueueFamilyIndex, barrier.dstQueueFamilyIndex);
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT,
                         VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0, nullptr, 1, &barrier, 0, nullptr);
    const VkBufferCopy region{buffer.offset, copy.offset, buffer.size};
    vkCmdCopyBuffer(commands, buffer.handle, copy.handle, 1, &region);
    Run(commands);
    for (uint32_t i = 0; i < 256; ++i) {
        ASSERT_EQ(copy.words[i], 3 * i + 1);
    }
}

}  // namespace
}  // namespace fornax::test
