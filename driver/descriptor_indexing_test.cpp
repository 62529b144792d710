// What descriptor indexing, inline uniform blocks and device addresses add to the driver's objects:
// how sets of variable count lie in their pool, what never written descriptors are, bytes in sets,
// and which addresses are refused.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "compiler/kernel/kernel_compiler.h"
#include "driver/descriptor_set.h"
#include "driver/limits.h"
#include "driver/test_device.h"

namespace fornax::driver_test {
namespace {

using driver::FromHandle;
using hal::BufferDescriptor;

constexpr auto kStorage = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
constexpr auto kUniform = VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
constexpr auto kInline = VK_DESCRIPTOR_TYPE_INLINE_UNIFORM_BLOCK;

class DescriptorIndexingTest : public TestDevice {
  protected:
    void SetUp() override {
        CreateAll(
            {.device_extensions = {"VK_EXT_descriptor_indexing", "VK_EXT_inline_uniform_block",
                                   "VK_KHR_buffer_device_address"}});
    }
    void TearDown() override {
        vkDestroyDescriptorPool(device_, pool_, nullptr);
        for (VkDescriptorSetLayout layout : layouts_) {
            vkDestroyDescriptorSetLayout(device_, layout, nullptr);
        }
        vkDestroyBuffer(device_, buffer_, nullptr);
        vkFreeMemory(device_, memory_, nullptr);
        TestDevice::TearDown();
    }

    struct Part {
        VkDescriptorType type;
        uint32_t count;
        bool variable = false;
    };
    // Bindings 0.. in order.
    VkDescriptorSetLayout MakeLayout(const std::vector<Part>& parts) {
        VkDescriptorSetLayout layout = VK_NULL_HANDLE;
        WithInfo(parts, [&](const VkDescriptorSetLayoutCreateInfo& info) {
            EXPECT_EQ(vkCreateDescriptorSetLayout(device_, &info, nullptr, &layout), VK_SUCCESS);
        });
        layouts_.push_back(layout);
        return layout;
    }
    template <typename Use>
    void WithInfo(const std::vector<Part>& parts, Use use) {
        std::vector<VkDescriptorSetLayoutBinding> bindings;
        std::vector<VkDescriptorBindingFlags> flags;
        for (const Part& part : parts) {
            bindings.push_back({static_cast<uint32_t>(bindings.size()), part.type, part.count,
                                VK_SHADER_STAGE_COMPUTE_BIT});
            flags.push_back(part.variable ? VK_DESCRIPTOR_BINDING_VARIABLE_DESCRIPTOR_COUNT_BIT
                                          : 0);
        }
        const VkDescriptorSetLayoutBindingFlagsCreateInfo binding_flags{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_BINDING_FLAGS_CREATE_INFO,
            .bindingCount = static_cast<uint32_t>(flags.size()),
            .pBindingFlags = flags.data()};
        const VkDescriptorSetLayoutCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
            .pNext = &binding_flags,
            .bindingCount = static_cast<uint32_t>(bindings.size()),
            .pBindings = bindings.data()};
        use(info);
    }
    void MakePool(uint32_t max_sets, std::vector<VkDescriptorPoolSize> sizes, uint32_t blocks = 0) {
        const VkDescriptorPoolInlineUniformBlockCreateInfo inline_blocks{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_INLINE_UNIFORM_BLOCK_CREATE_INFO,
            .maxInlineUniformBlockBindings = blocks};
        const VkDescriptorPoolCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
            .pNext = &inline_blocks,
            .flags = VK_DESCRIPTOR_POOL_CREATE_FREE_DESCRIPTOR_SET_BIT,
            .maxSets = max_sets,
            .poolSizeCount = static_cast<uint32_t>(sizes.size()),
            .pPoolSizes = sizes.data()};
        ASSERT_EQ(vkCreateDescriptorPool(device_, &info, nullptr, &pool_), VK_SUCCESS);
    }
    VkResult Allocate(VkDescriptorSetLayout layout, uint32_t count, VkDescriptorSet* set) {
        const VkDescriptorSetVariableDescriptorCountAllocateInfo variable{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_VARIABLE_DESCRIPTOR_COUNT_ALLOCATE_INFO,
            .descriptorSetCount = 1,
            .pDescriptorCounts = &count};
        const VkDescriptorSetAllocateInfo info{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
            .pNext = &variable,
            .descriptorPool = pool_,
            .descriptorSetCount = 1,
            .pSetLayouts = &layout};
        return vkAllocateDescriptorSets(device_, &info, set);
    }
    void MakeBuffer() {
        const VkBufferCreateInfo buffer_info{.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                             .size = 4096,
                                             .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                                      VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT};
        ASSERT_EQ(vkCreateBuffer(device_, &buffer_info, nullptr, &buffer_), VK_SUCCESS);
        const VkMemoryAllocateFlagsInfo flags{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                              .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
        const VkMemoryAllocateInfo memory_info{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                               .pNext = &flags,
                                               .allocationSize = 8192};
        ASSERT_EQ(vkAllocateMemory(device_, &memory_info, nullptr, &memory_), VK_SUCCESS);
        ASSERT_EQ(vkBindBufferMemory(device_, buffer_, memory_, 256), VK_SUCCESS);
    }
    VkDeviceAddress Address() const {
        const VkBufferDeviceAddressInfo info{.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                             .buffer = buffer_};
        return vkGetBufferDeviceAddressKHR(device_, &info);
    }
    void Write(VkDescriptorSet set, uint32_t binding, uint32_t element, VkDeviceSize offset) {
        const VkDescriptorBufferInfo buffer{buffer_, offset, 16};
        const VkWriteDescriptorSet write{.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                         .dstSet = set,
                                         .dstBinding = binding,
                                         .dstArrayElement = element,
                                         .descriptorCount = 1,
                                         .descriptorType = kStorage,
                                         .pBufferInfo = &buffer};
        vkUpdateDescriptorSets(device_, 1, &write, 0, nullptr);
    }
    static const std::byte* MemoryOf(VkDescriptorSet set) {
        return reinterpret_cast<const std::byte*>(
            FromHandle<driver::DescriptorSet>(set)->address());
    }
    template <typename T>
    static T Read(const std::byte* at) {
        T value;
        std::memcpy(&value, at, sizeof(value));
        return value;
    }

    VkDescriptorPool pool_ = VK_NULL_HANDLE;
    VkBuffer buffer_ = VK_NULL_HANDLE;
    VkDeviceMemory memory_ = VK_NULL_HANDLE;
    std::vector<VkDescriptorSetLayout> layouts_;
};

TEST_F(DescriptorIndexingTest, SetsHaveTheDescriptorsThatTheyAskFor) {
    constexpr uint32_t kHeader = kernel::BindingLayout::kVariableHeaderBytes;
    const VkDescriptorSetLayout layout = MakeLayout({{kUniform, 1}, {kStorage, 8, true}});
    MakeBuffer();
    MakePool(5, {{kUniform, 4}, {kStorage, 5}});
    VkDescriptorSet sets[4] = {};
    const uint32_t counts[] = {3, 0, 2};
    for (int i = 0; i < 3; ++i) {
        ASSERT_EQ(Allocate(layout, counts[i], &sets[i]), VK_SUCCESS) << i;
    }
    // One uniform buffer is left, which may be any descriptor, and no more.
    EXPECT_EQ(Allocate(layout, 1, &sets[3]), VK_ERROR_OUT_OF_POOL_MEMORY);
    EXPECT_EQ(Allocate(layout, 0, &sets[3]), VK_SUCCESS);
    for (int i = 0; i < 3; ++i) {
        const std::byte* memory = MemoryOf(sets[i]);
        EXPECT_EQ(Read<uint32_t>(memory + sizeof(BufferDescriptor)), std::max(counts[i], 1u) - 1);
        for (uint32_t k = 0; k < counts[i]; ++k) {
            Write(sets[i], 1, k, 64 * (10 * i + k));
        }
    }
    for (int i = 0; i < 3; ++i) {
        for (uint32_t k = 0; k < counts[i]; ++k) {
            const auto descriptor = Read<BufferDescriptor>(
                MemoryOf(sets[i]) + sizeof(BufferDescriptor) * (1 + k) + kHeader);
            EXPECT_EQ(descriptor.size_bytes, 16u);
            EXPECT_EQ(descriptor.address - Address(), 64u * (10 * i + k));
        }
    }
    // Without counts there are none.
    ASSERT_EQ(vkResetDescriptorPool(device_, pool_, 0), VK_SUCCESS);
    const VkDescriptorSetAllocateInfo info{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                           .descriptorPool = pool_,
                                           .descriptorSetCount = 1,
                                           .pSetLayouts = &layout};
    ASSERT_EQ(vkAllocateDescriptorSets(device_, &info, sets), VK_SUCCESS);
    EXPECT_EQ(Read<uint32_t>(MemoryOf(sets[0]) + sizeof(BufferDescriptor)), 0u);
}

TEST_F(DescriptorIndexingTest, DescriptorsThatAreNeverWrittenAreNull) {
    const VkDescriptorSetLayout layout = MakeLayout({{kStorage, 4}});
    MakeBuffer();
    MakePool(2, {{kStorage, 8}});
    VkDescriptorSet sets[2] = {};
    for (VkDescriptorSet& set : sets) {
        ASSERT_EQ(Allocate(layout, 0, &set), VK_SUCCESS);
        for (uint32_t k = 0; k < 4; ++k) {
            Write(set, 0, k, 64 * k);
        }
    }
    ASSERT_EQ(vkFreeDescriptorSets(device_, pool_, 1, &sets[0]), VK_SUCCESS);
    ASSERT_EQ(Allocate(layout, 0, &sets[0]), VK_SUCCESS);
    for (uint32_t k = 0; k < 4; ++k) {
        const std::byte* at = MemoryOf(sets[0]) + k * sizeof(BufferDescriptor);
        EXPECT_EQ(Read<BufferDescriptor>(at).size_bytes, 0u) << k;
        EXPECT_EQ(Read<BufferDescriptor>(at).address, 0u) << k;
    }
    EXPECT_EQ(Read<BufferDescriptor>(MemoryOf(sets[1])).size_bytes, 16u);
}

TEST_F(DescriptorIndexingTest, InlineBlocksHoldTheirBytes) {
    const VkDescriptorSetLayout layout = MakeLayout({{kStorage, 1}, {kInline, 24}, {kStorage, 1}});
    MakePool(2, {{kStorage, 4}, {kInline, 48}}, 2);
    VkDescriptorSet sets[2] = {};
    for (VkDescriptorSet& set : sets) {
        ASSERT_EQ(Allocate(layout, 0, &set), VK_SUCCESS);
    }
    const auto block = [&](VkDescriptorSet set) {
        return Read<BufferDescriptor>(MemoryOf(set) + sizeof(BufferDescriptor));
    };
    EXPECT_EQ(block(sets[0]).size_bytes, 24u);
    EXPECT_EQ(block(sets[0]).address % 16, 0u);
    const uint32_t all[6] = {1, 2, 3, 4, 5, 6};
    const uint32_t middle[2] = {30, 40};
    const auto write = [&](uint32_t offset, const uint32_t* data, uint32_t bytes) {
        const VkWriteDescriptorSetInlineUniformBlock info{
            .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET_INLINE_UNIFORM_BLOCK,
            .dataSize = bytes,
            .pData = data};
        const VkWriteDescriptorSet set_write{.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                             .pNext = &info,
                                             .dstSet = sets[0],
                                             .dstBinding = 1,
                                             .dstArrayElement = offset,
                                             .descriptorCount = bytes,
                                             .descriptorType = kInline};
        vkUpdateDescriptorSets(device_, 1, &set_write, 0, nullptr);
    };
    write(0, all, sizeof(all));
    write(8, middle, sizeof(middle));
    const VkCopyDescriptorSet copy{.sType = VK_STRUCTURE_TYPE_COPY_DESCRIPTOR_SET,
                                   .srcSet = sets[0],
                                   .srcBinding = 1,
                                   .srcArrayElement = 4,
                                   .dstSet = sets[1],
                                   .dstBinding = 1,
                                   .dstArrayElement = 12,
                                   .descriptorCount = 12};
    vkUpdateDescriptorSets(device_, 0, nullptr, 1, &copy);
    const auto words = [&](VkDescriptorSet set) {
        return Read<std::array<uint32_t, 6>>(
            reinterpret_cast<const std::byte*>(block(set).address));
    };
    EXPECT_THAT(words(sets[0]), ::testing::ElementsAre(1, 2, 30, 40, 5, 6));
    EXPECT_THAT(words(sets[1]), ::testing::ElementsAre(0, 0, 0, 2, 30, 40));
    // The descriptor itself and the neighbours are as they were.
    EXPECT_EQ(block(sets[1]).size_bytes, 24u);
    EXPECT_EQ(Read<BufferDescriptor>(MemoryOf(sets[0]) + 16 + 16 + 32).size_bytes, 0u);
}

TEST_F(DescriptorIndexingTest, LayoutsTellHowManyDescriptorsTheyBear) {
    const auto most = [&](const std::vector<Part>& parts, bool supported) {
        VkDescriptorSetVariableDescriptorCountLayoutSupport variable{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_VARIABLE_DESCRIPTOR_COUNT_LAYOUT_SUPPORT,
            .maxVariableDescriptorCount = 12345};
        VkDescriptorSetLayoutSupport support{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_SUPPORT, .pNext = &variable};
        WithInfo(parts, [&](const VkDescriptorSetLayoutCreateInfo& info) {
            vkGetDescriptorSetLayoutSupport(device_, &info, &support);
        });
        EXPECT_EQ(support.supported, supported ? VK_TRUE : VK_FALSE);
        return variable.maxVariableDescriptorCount;
    };
    EXPECT_EQ(most({{kStorage, 5}}, true), 0u);
    EXPECT_EQ(most({{kStorage, 5}, {kStorage, 10, true}}, true), driver::kMaxDescriptors - 5);
    EXPECT_EQ(most({{kStorage, 5}, {kStorage, driver::kMaxDescriptors, true}}, false),
              driver::kMaxDescriptors - 5);
    EXPECT_EQ(most({{kInline, 16, true}}, true), driver::kMaxInlineUniformBlockBytes);
    EXPECT_EQ(most({{kInline, driver::kMaxInlineUniformBlockBytes + 4}}, false), 0u);
    // A block is one descriptor, whatever it holds.
    EXPECT_EQ(most({{kStorage, driver::kMaxDescriptors - 1},
                    {kInline, driver::kMaxInlineUniformBlockBytes}},
                   true),
              0u);
}

TEST_F(DescriptorIndexingTest, AddressesAreTheHostsAndCannotBeReplayed) {
    MakeBuffer();
    void* mapped = nullptr;
    ASSERT_EQ(vkMapMemory(device_, memory_, 0, VK_WHOLE_SIZE, 0, &mapped), VK_SUCCESS);
    EXPECT_EQ(Address(), reinterpret_cast<uint64_t>(mapped) + 256);
    const VkBufferDeviceAddressInfo info{.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                         .buffer = buffer_};
    EXPECT_EQ(vkGetBufferOpaqueCaptureAddressKHR(device_, &info), 0u);

    const VkBufferOpaqueCaptureAddressCreateInfo capture{
        .sType = VK_STRUCTURE_TYPE_BUFFER_OPAQUE_CAPTURE_ADDRESS_CREATE_INFO,
        .opaqueCaptureAddress = 0x1000};
    const VkBufferCreateInfo buffer_info{.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                         .pNext = &capture,
                                         .size = 4096,
                                         .usage = VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT};
    VkBuffer buffer = VK_NULL_HANDLE;
    EXPECT_EQ(vkCreateBuffer(device_, &buffer_info, nullptr, &buffer),
              VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS);
    const VkMemoryOpaqueCaptureAddressAllocateInfo memory_capture{
        .sType = VK_STRUCTURE_TYPE_MEMORY_OPAQUE_CAPTURE_ADDRESS_ALLOCATE_INFO,
        .opaqueCaptureAddress = 0x1000};
    const VkMemoryAllocateInfo memory_info{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                           .pNext = &memory_capture,
                                           .allocationSize = 4096};
    VkDeviceMemory memory = VK_NULL_HANDLE;
    EXPECT_EQ(vkAllocateMemory(device_, &memory_info, nullptr, &memory),
              VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS);
}

}  // namespace
}  // namespace fornax::driver_test
