// Descriptor sets: what updates write into a set's memory, and how pools hand memory out. Sets are
// looked at through the driver's own objects, as a kernel would through their addresses.
#include "driver/descriptor_set.h"

#include <gmock/gmock.h>

#include <random>

#include "driver/buffer.h"
#include "driver/compute_pipeline.h"
#include "driver/pipeline_layout.h"
#include "driver/test_device.h"

namespace fornax::driver_test {
namespace {

using driver::FromHandle;
using hal::BufferDescriptor;
using ::testing::ElementsAre;

constexpr auto kStorage = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
constexpr auto kUniform = VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
constexpr auto kDynamic = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC;

VkDescriptorSetLayoutBinding Binding(uint32_t binding, VkDescriptorType type, uint32_t count) {
    return {.binding = binding,
            .descriptorType = type,
            .descriptorCount = count,
            .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
}

class DescriptorSetTest : public TestDevice {
  protected:
    static constexpr VkDeviceSize kBufferBytes = 4096;

    void SetUp() override {
        CreateAll({.device_extensions = {"VK_KHR_push_descriptor"}});
        const VkBufferCreateInfo buffer_info{.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                             .size = kBufferBytes,
                                             .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
        ASSERT_EQ(vkCreateBuffer(device_, &buffer_info, nullptr, &buffer_), VK_SUCCESS);
        VkMemoryRequirements requirements;
        vkGetBufferMemoryRequirements(device_, buffer_, &requirements);
        EXPECT_EQ(requirements.memoryTypeBits, 1u);
        const VkMemoryAllocateInfo memory_info{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                               .allocationSize = requirements.size + 256};
        ASSERT_EQ(vkAllocateMemory(device_, &memory_info, nullptr, &memory_), VK_SUCCESS);
        ASSERT_EQ(vkBindBufferMemory(device_, buffer_, memory_, 256), VK_SUCCESS);
        void* mapped = nullptr;
        ASSERT_EQ(vkMapMemory(device_, memory_, 0, VK_WHOLE_SIZE, 0, &mapped), VK_SUCCESS);
        address_ = reinterpret_cast<uint64_t>(mapped) + 256;
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

    VkDescriptorSetLayout MakeLayout(const std::vector<VkDescriptorSetLayoutBinding>& bindings,
                                     VkDescriptorSetLayoutCreateFlags flags = 0) {
        const VkDescriptorSetLayoutCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
            .flags = flags,
            .bindingCount = static_cast<uint32_t>(bindings.size()),
            .pBindings = bindings.data()};
        VkDescriptorSetLayout layout = VK_NULL_HANDLE;
        EXPECT_EQ(vkCreateDescriptorSetLayout(device_, &info, nullptr, &layout), VK_SUCCESS);
        layouts_.push_back(layout);
        return layout;
    }

    void MakePool(uint32_t max_sets, std::vector<VkDescriptorPoolSize> sizes) {
        const VkDescriptorPoolCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
            .flags = VK_DESCRIPTOR_POOL_CREATE_FREE_DESCRIPTOR_SET_BIT,
            .maxSets = max_sets,
            .poolSizeCount = static_cast<uint32_t>(sizes.size()),
            .pPoolSizes = sizes.data()};
        ASSERT_EQ(vkCreateDescriptorPool(device_, &info, nullptr, &pool_), VK_SUCCESS);
    }

    VkResult Allocate(const std::vector<VkDescriptorSetLayout>& layouts, VkDescriptorSet* sets) {
        const VkDescriptorSetAllocateInfo info{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
            .descriptorPool = pool_,
            .descriptorSetCount = static_cast<uint32_t>(layouts.size()),
            .pSetLayouts = layouts.data()};
        return vkAllocateDescriptorSets(device_, &info, sets);
    }

    VkDescriptorSet AllocateOne(VkDescriptorSetLayout layout) {
        VkDescriptorSet set = VK_NULL_HANDLE;
        EXPECT_EQ(Allocate({layout}, &set), VK_SUCCESS);
        return set;
    }

    void Write(VkDescriptorSet set,
               uint32_t binding,
               uint32_t element,
               VkDescriptorType type,
               const std::vector<VkDescriptorBufferInfo>& buffers) {
        const VkWriteDescriptorSet write{.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                         .dstSet = set,
                                         .dstBinding = binding,
                                         .dstArrayElement = element,
                                         .descriptorCount = static_cast<uint32_t>(buffers.size()),
                                         .descriptorType = type,
                                         .pBufferInfo = buffers.data()};
        vkUpdateDescriptorSets(device_, 1, &write, 0, nullptr);
    }

    // The offsets (in the buffer) that the set's descriptors have; -1 for a null descriptor.
    std::vector<int64_t> OffsetsIn(VkDescriptorSet handle, size_t count) {
        const auto& set = *FromHandle<driver::DescriptorSet>(handle);
        const auto* descriptors = reinterpret_cast<const BufferDescriptor*>(set.address());
        std::vector<int64_t> offsets;
        for (size_t i = 0; i < count; ++i) {
            offsets.push_back(descriptors[i].size_bytes == 0
                                  ? -1
                                  : static_cast<int64_t>(descriptors[i].address - address_));
        }
        return offsets;
    }

    VkDescriptorBufferInfo At(VkDeviceSize offset, VkDeviceSize range = 16) const {
        return {buffer_, offset, range};
    }

    VkBuffer buffer_ = VK_NULL_HANDLE;
    VkDeviceMemory memory_ = VK_NULL_HANDLE;
    uint64_t address_ = 0;
    std::vector<VkDescriptorSetLayout> layouts_;
    VkDescriptorPool pool_ = VK_NULL_HANDLE;
};

TEST_F(DescriptorSetTest, WritesAddressAndRange) {
    auto layout = MakeLayout({Binding(0, kStorage, 1), Binding(1, kUniform, 1)});
    MakePool(1, {{kStorage, 1}, {kUniform, 1}});
    VkDescriptorSet set = AllocateOne(layout);
    Write(set, 0, 0, kStorage, {At(64, VK_WHOLE_SIZE)});
    Write(set, 1, 0, kUniform, {At(128, 32)});
    const auto* descriptors = reinterpret_cast<const BufferDescriptor*>(
        FromHandle<driver::DescriptorSet>(set)->address());
    EXPECT_EQ(descriptors[0].address, address_ + 64);
    EXPECT_EQ(descriptors[0].size_bytes, kBufferBytes - 64);
    EXPECT_EQ(descriptors[1].address, address_ + 128);
    EXPECT_EQ(descriptors[1].size_bytes, 32u);
}

// "Consecutive binding updates": a write goes on in the next binding, past empty ones, whatever the
// order in which the layout listed them.
TEST_F(DescriptorSetTest, WritesSpanBindings) {
    auto layout = MakeLayout({Binding(5, kStorage, 3), Binding(0, kStorage, 2),
                              Binding(4, kStorage, 0), Binding(2, kStorage, 1)});
    MakePool(1, {{kStorage, 6}});
    VkDescriptorSet set = AllocateOne(layout);
    Write(set, 0, 1, kStorage, {At(16), At(32), At(48), At(64)});
    Write(set, 0, 0, kStorage, {At(0)});
    Write(set, 5, 2, kStorage, {At(80)});
    EXPECT_THAT(OffsetsIn(set, 6), ElementsAre(0, 16, 32, 48, 64, 80));
}

TEST_F(DescriptorSetTest, CopiesFollowWritesAndSpanBindings) {
    auto layout = MakeLayout({Binding(0, kStorage, 2), Binding(1, kStorage, 2)});
    MakePool(2, {{kStorage, 8}});
    VkDescriptorSet sets[2];
    ASSERT_EQ(Allocate({layout, layout}, sets), VK_SUCCESS);
    Write(sets[1], 0, 0, kStorage, {At(0), At(0), At(0), At(0)});
    const VkDescriptorBufferInfo infos[] = {At(16), At(32), At(48), At(64)};
    const VkWriteDescriptorSet write{.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                     .dstSet = sets[0],
                                     .descriptorCount = 4,
                                     .descriptorType = kStorage,
                                     .pBufferInfo = infos};
    const VkCopyDescriptorSet copy{.sType = VK_STRUCTURE_TYPE_COPY_DESCRIPTOR_SET,
                                   .srcSet = sets[0],
                                   .srcArrayElement = 1,
                                   .dstSet = sets[1],
                                   .dstArrayElement = 1,
                                   .descriptorCount = 3};
    vkUpdateDescriptorSets(device_, 1, &write, 1, &copy);
    EXPECT_THAT(OffsetsIn(sets[1], 4), ElementsAre(0, 32, 48, 64));
}

TEST_F(DescriptorSetTest, TemplatesReadTheApplicationsMemory) {
    auto layout = MakeLayout({Binding(0, kStorage, 1), Binding(3, kStorage, 3)});
    MakePool(1, {{kStorage, 4}});
    VkDescriptorSet set = AllocateOne(layout);
    struct Data {
        uint64_t unrelated;
        struct {
            VkDescriptorBufferInfo info;
            uint64_t unrelated;
        } strided[2];
        VkDescriptorBufferInfo spanning[2];
    };
    const VkDescriptorUpdateTemplateEntry entries[] = {{.dstBinding = 3,
                                                        .dstArrayElement = 1,
                                                        .descriptorCount = 2,
                                                        .descriptorType = kStorage,
                                                        .offset = offsetof(Data, strided),
                                                        .stride = sizeof(Data::strided[0])},
                                                       {.dstBinding = 0,
                                                        .descriptorCount = 2,
                                                        .descriptorType = kStorage,
                                                        .offset = offsetof(Data, spanning),
                                                        .stride = sizeof(VkDescriptorBufferInfo)}};
    const VkDescriptorUpdateTemplateCreateInfo info{
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_UPDATE_TEMPLATE_CREATE_INFO,
        .descriptorUpdateEntryCount = 2,
        .pDescriptorUpdateEntries = entries,
        .templateType = VK_DESCRIPTOR_UPDATE_TEMPLATE_TYPE_DESCRIPTOR_SET,
        .descriptorSetLayout = layout};
    VkDescriptorUpdateTemplate update = VK_NULL_HANDLE;
    ASSERT_EQ(vkCreateDescriptorUpdateTemplate(device_, &info, nullptr, &update), VK_SUCCESS);
    const Data data{1, {{At(48), 2}, {At(64), 3}}, {At(16), At(32)}};
    vkUpdateDescriptorSetWithTemplate(device_, set, update, &data);
    EXPECT_THAT(OffsetsIn(set, 4), ElementsAre(16, 32, 48, 64));
    vkDestroyDescriptorUpdateTemplate(device_, update, nullptr);
}

// A pipeline layout outlives its set layouts, and numbers dynamic offsets over all sets.
TEST_F(DescriptorSetTest, PipelineLayoutsCopyWhatTheyNeed) {
    const VkDescriptorSetLayout sets[] = {
        MakeLayout({Binding(1, kDynamic, 2), Binding(0, kStorage, 1)}), MakeLayout({}),
        MakeLayout({Binding(0, VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC, 1),
                    Binding(1, kStorage, 4), Binding(2, kDynamic, 1)})};
    const VkPushConstantRange ranges[] = {{VK_SHADER_STAGE_COMPUTE_BIT, 16, 32},
                                          {VK_SHADER_STAGE_VERTEX_BIT, 0, 128}};
    const VkPipelineLayoutCreateInfo info{.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                          .setLayoutCount = 3,
                                          .pSetLayouts = sets,
                                          .pushConstantRangeCount = 2,
                                          .pPushConstantRanges = ranges};
    VkPipelineLayout handle = VK_NULL_HANDLE;
    ASSERT_EQ(vkCreatePipelineLayout(device_, &info, nullptr, &handle), VK_SUCCESS);
    for (VkDescriptorSetLayout layout : layouts_) {
        vkDestroyDescriptorSetLayout(device_, layout, nullptr);
    }
    layouts_.clear();

    const auto resources = FromHandle<driver::PipelineLayout>(handle)->MakeResourceLayout();
    EXPECT_EQ(resources.push_constant_bytes, 48u);
    ASSERT_EQ(resources.sets.size(), 3u);
    const auto& first = resources.sets[0].bindings;
    ASSERT_EQ(first.size(), 2u);
    EXPECT_EQ(first[0].binding, 0u);
    EXPECT_EQ(first[0].first_dynamic_offset, kernel::BindingLayout::kNotDynamic);
    EXPECT_EQ(first[1].offset_bytes, 16u);
    EXPECT_EQ(first[1].first_dynamic_offset, 0u);
    EXPECT_TRUE(resources.sets[1].bindings.empty());
    const auto& third = resources.sets[2].bindings;
    EXPECT_EQ(third[0].kind, kernel::BindingLayout::Kind::kUniformBuffer);
    EXPECT_EQ(third[0].first_dynamic_offset, 2u);
    EXPECT_EQ(third[1].kind, kernel::BindingLayout::Kind::kStorageBuffer);
    EXPECT_EQ(third[2].first_dynamic_offset, 3u);
    EXPECT_EQ(third[2].offset_bytes, 80u);
    vkDestroyPipelineLayout(device_, handle, nullptr);
}

// No compute shader reads them, but layouts and pools may count on them.
TEST_F(DescriptorSetTest, InputAttachmentsTakeTheirPlace) {
    auto layout = MakeLayout({Binding(0, VK_DESCRIPTOR_TYPE_INPUT_ATTACHMENT, 2)});
    MakePool(2, {{VK_DESCRIPTOR_TYPE_INPUT_ATTACHMENT, 3}});
    VkDescriptorSet sets[2] = {};
    EXPECT_EQ(Allocate({layout, layout}, sets), VK_ERROR_OUT_OF_POOL_MEMORY);
    ASSERT_EQ(Allocate({layout}, sets), VK_SUCCESS);
    const VkDescriptorImageInfo none[2] = {};
    const VkWriteDescriptorSet write{.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                     .dstSet = sets[0],
                                     .descriptorCount = 2,
                                     .descriptorType = VK_DESCRIPTOR_TYPE_INPUT_ATTACHMENT,
                                     .pImageInfo = none};
    vkUpdateDescriptorSets(device_, 1, &write, 0, nullptr);
}

TEST_F(DescriptorSetTest, UnsupportedTypesAreSaidToBe) {
    const auto binding = Binding(0, VK_DESCRIPTOR_TYPE_ACCELERATION_STRUCTURE_KHR, 1);
    const VkDescriptorSetLayoutCreateInfo info{
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = 1,
        .pBindings = &binding};
    VkDescriptorSetLayoutSupport support{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_SUPPORT,
                                         .supported = VK_TRUE};
    vkGetDescriptorSetLayoutSupport(device_, &info, &support);
    EXPECT_FALSE(support.supported);
    VkDescriptorSetLayout layout = VK_NULL_HANDLE;
    EXPECT_LT(vkCreateDescriptorSetLayout(device_, &info, nullptr, &layout), VK_SUCCESS);

    const auto large = Binding(0, kStorage, 1u << 20);
    const VkDescriptorSetLayoutCreateInfo large_info{
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = 1,
        .pBindings = &large};
    vkGetDescriptorSetLayoutSupport(device_, &large_info, &support);
    EXPECT_TRUE(support.supported);
}

TEST_F(DescriptorSetTest, PoolsRunOutOfSetsAndOfDescriptors) {
    auto one = MakeLayout({Binding(0, kStorage, 1)});
    auto three = MakeLayout({Binding(0, kStorage, 3)});
    MakePool(3, {{kStorage, 4}});
    VkDescriptorSet sets[4] = {};
    // "If one fails, all are null", and the pool is as before.
    EXPECT_EQ(Allocate({one, one, three}, sets), VK_ERROR_OUT_OF_POOL_MEMORY);
    EXPECT_THAT(sets, ::testing::Each(VkDescriptorSet(VK_NULL_HANDLE)));
    EXPECT_EQ(Allocate({one, one, one, one}, sets), VK_ERROR_OUT_OF_POOL_MEMORY);
    EXPECT_EQ(Allocate({three, one}, sets), VK_SUCCESS);
    VkDescriptorSet more = VK_NULL_HANDLE;
    EXPECT_EQ(Allocate({one}, &more), VK_ERROR_OUT_OF_POOL_MEMORY);
    ASSERT_EQ(vkResetDescriptorPool(device_, pool_, 0), VK_SUCCESS);
    EXPECT_EQ(Allocate({one, three}, sets), VK_SUCCESS);
}

TEST_F(DescriptorSetTest, FreedMemoryIsFoundAgainOrFragmented) {
    auto one = MakeLayout({Binding(0, kStorage, 1)});
    auto two = MakeLayout({Binding(0, kStorage, 2)});
    MakePool(8, {{kStorage, 4}});
    VkDescriptorSet sets[4];
    ASSERT_EQ(Allocate({one, one, one, one}, sets), VK_SUCCESS);
    ASSERT_EQ(vkFreeDescriptorSets(device_, pool_, 1, &sets[0]), VK_SUCCESS);
    ASSERT_EQ(vkFreeDescriptorSets(device_, pool_, 1, &sets[2]), VK_SUCCESS);
    VkDescriptorSet set = VK_NULL_HANDLE;
    EXPECT_EQ(Allocate({two}, &set), VK_ERROR_FRAGMENTED_POOL);
    EXPECT_EQ(Allocate({one, one}, sets), VK_SUCCESS);
    EXPECT_EQ(Allocate({one}, &set), VK_ERROR_OUT_OF_POOL_MEMORY);
    const VkDescriptorSet neighbours[] = {sets[0], VK_NULL_HANDLE, sets[1]};
    EXPECT_EQ(vkFreeDescriptorSets(device_, pool_, 3, neighbours), VK_SUCCESS);
}

// Random allocation and freeing against a model: sets never overlap, and whatever fits in a gap is
// allocated.
TEST_F(DescriptorSetTest, LiveSetsNeverOverlap) {
    std::vector<VkDescriptorSetLayout> layouts;
    for (uint32_t count = 0; count < 6; ++count) {
        layouts.push_back(MakeLayout({Binding(0, kStorage, count)}));
    }
    constexpr uint32_t kDescriptors = 40;
    MakePool(30, {{kStorage, kDescriptors}});
    std::mt19937 random(7);
    struct Live {
        VkDescriptorSet set;
        uint32_t count;
    };
    std::vector<Live> live;
    for (int step = 0; step < 3000; ++step) {
        if (random() % 2 == 0 && !live.empty()) {
            const size_t index = random() % live.size();
            ASSERT_EQ(vkFreeDescriptorSets(device_, pool_, 1, &live[index].set), VK_SUCCESS);
            live.erase(live.begin() + static_cast<ptrdiff_t>(index));
            continue;
        }
        const uint32_t count = random() % layouts.size();
        uint32_t used = 0;
        for (const Live& entry : live) {
            used += entry.count;
        }
        VkDescriptorSet set = VK_NULL_HANDLE;
        const VkResult result = Allocate({layouts[count]}, &set);
        if (live.size() == 30 || used + count > kDescriptors) {
            ASSERT_EQ(result, VK_ERROR_OUT_OF_POOL_MEMORY);
        } else if (result == VK_SUCCESS) {
            const std::vector<VkDescriptorBufferInfo> infos(count, At(0));
            if (count > 0) {
                Write(set, 0, 0, kStorage, infos);
            }
            live.push_back({set, count});
            std::vector<std::pair<uint64_t, uint64_t>> ranges;
            for (const Live& entry : live) {
                const uint64_t start = FromHandle<driver::DescriptorSet>(entry.set)->address();
                if (entry.count > 0) {
                    ranges.emplace_back(start, start + entry.count * sizeof(BufferDescriptor));
                }
            }
            std::ranges::sort(ranges);
            for (size_t i = 1; i < ranges.size(); ++i) {
                ASSERT_LE(ranges[i - 1].second, ranges[i].first);
            }
        } else {
            ASSERT_EQ(result, VK_ERROR_FRAGMENTED_POOL);
        }
    }
}

}  // namespace
}  // namespace fornax::driver_test
