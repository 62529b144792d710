// Descriptors whose type is decided when they are written (VK_EXT_mutable_descriptor_type).
#include <algorithm>
#include <array>
#include <cstring>

#include "tests/loader/image_fixture.h"
#include "tests/loader/shaders/mutable_descriptors.spv.h"

namespace fornax::test {
namespace {

constexpr uint32_t kElements = 8;
constexpr VkDescriptorType kTypes[] = {VK_DESCRIPTOR_TYPE_SAMPLER,
                                       VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                       VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER,
                                       VK_DESCRIPTOR_TYPE_STORAGE_IMAGE,
                                       VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE,
                                       VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER,
                                       VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER};

class MutableDescriptorsTest : public ImageTest {
  protected:
    void SetUp() override {
        core_features_.shaderStorageBufferArrayDynamicIndexing = VK_TRUE;
        core_features_.shaderUniformBufferArrayDynamicIndexing = VK_TRUE;
        core_features_.shaderSampledImageArrayDynamicIndexing = VK_TRUE;
        core_features_.shaderStorageImageArrayDynamicIndexing = VK_TRUE;
        more_extensions_ = {VK_EXT_DESCRIPTOR_INDEXING_EXTENSION_NAME,
                            VK_EXT_MUTABLE_DESCRIPTOR_TYPE_EXTENSION_NAME};
        more_features_ = &mutable_;
        ImageTest::SetUp();
    }

    // A set layout of the mutable binding 0 and a storage buffer at 1.
    TestPipeline MakeMutable() {
        const VkMutableDescriptorTypeListEXT lists[] = {{std::size(kTypes), kTypes}, {}};
        const VkMutableDescriptorTypeCreateInfoEXT types{
            .sType = VK_STRUCTURE_TYPE_MUTABLE_DESCRIPTOR_TYPE_CREATE_INFO_EXT,
            .mutableDescriptorTypeListCount = 2,
            .pMutableDescriptorTypeLists = lists};
        const VkDescriptorSetLayoutBinding bindings[] = {
            {0, VK_DESCRIPTOR_TYPE_MUTABLE_EXT, kElements, VK_SHADER_STAGE_COMPUTE_BIT, nullptr},
            {1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr}};
        TestPipeline pipeline =
            MakePipelineWith(spirv::kMutableDescriptors,
                             {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                              .pNext = &types,
                              .bindingCount = 2,
                              .pBindings = bindings});
        const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_MUTABLE_EXT, 2 * kElements},
                                              {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2}};
        const VkDescriptorPoolCreateInfo pool{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
            .pNext = &types,
            .maxSets = 2,
            .poolSizeCount = 2,
            .pPoolSizes = sizes};
        EXPECT_VK(vkCreateDescriptorPool(device_, &pool, nullptr, &pool_of_sets_));
        AtEnd([this] { vkDestroyDescriptorPool(device_, pool_of_sets_, nullptr); });
        for (VkDescriptorSet& set : sets_) {
            const VkDescriptorSetAllocateInfo allocate{
                .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                .descriptorPool = pool_of_sets_,
                .descriptorSetCount = 1,
                .pSetLayouts = &pipeline.set_layout};
            EXPECT_VK(vkAllocateDescriptorSets(device_, &allocate, &set));
        }
        return pipeline;
    }

    void MakeResources() {
        const auto image = [&](VkFormat format, VkImageUsageFlags usage) {
            const TestImage made =
                MakeImage({.format = format, .extent = {2, 1, 1}, .usage = usage});
            std::vector<uint8_t> bytes(8);
            const float value = 41;
            const uint32_t word = 31;
            std::memcpy(bytes.data() + 4,
                        format == VK_FORMAT_R32_UINT ? static_cast<const void*>(&word) : &value, 4);
            Upload(made, bytes);
            return made;
        };
        storage_ = image(VK_FORMAT_R32_UINT, VK_IMAGE_USAGE_STORAGE_BIT);
        const TestImage sampled = image(VK_FORMAT_R32_SFLOAT, VK_IMAGE_USAGE_SAMPLED_BIT);
        block_ = MakeBuffer(4);
        block_.words[1] = 11;
        out_ = MakeBuffer(kElements);
        TestBuffer uniform = MakeBuffer(4, VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT);
        uniform.words[1] = 21;
        TestBuffer texels = MakeBuffer(2, VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT);
        texels.words[1] = 61;
        const VkSampler sampler = MakeSampler({});
        const VkImageView view = MakeView(sampled, VK_IMAGE_VIEW_TYPE_2D);
        slots_ = {Slot::Sampler(sampler),
                  Slot::Buffer(block_),
                  {.type = VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, .buffer = uniform},
                  Slot::Storage(MakeView(storage_, VK_IMAGE_VIEW_TYPE_2D)),
                  Slot::Sampled(view),
                  Slot::Combined(view, sampler),
                  Slot::Texels(VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER,
                               MakeTexels(texels, VK_FORMAT_R32_UINT))};
    }

    void RunKinds(TestPipeline pipeline, VkDescriptorSet set, std::array<uint32_t, 8> kinds) {
        pipeline.set = set;
        std::ranges::fill(out_.span(), 0);
        VkCommandBuffer commands = Begin();
        Bind(commands, pipeline);
        vkCmdPushConstants(commands, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(kinds),
                           kinds.data());
        vkCmdDispatch(commands, kElements, 1, 1);
        Run(commands);
    }

    VkPhysicalDeviceDescriptorIndexingFeatures indexing_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DESCRIPTOR_INDEXING_FEATURES,
        .shaderUniformTexelBufferArrayDynamicIndexing = VK_TRUE};
    VkPhysicalDeviceMutableDescriptorTypeFeaturesEXT mutable_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MUTABLE_DESCRIPTOR_TYPE_FEATURES_EXT,
        .pNext = &indexing_,
        .mutableDescriptorType = VK_TRUE};
    VkDescriptorPool pool_of_sets_ = VK_NULL_HANDLE;
    VkDescriptorSet sets_[2] = {};
    TestImage storage_;
    TestBuffer block_;
    TestBuffer out_;
    std::vector<Slot> slots_;  // of each kind
};

TEST_F(MutableDescriptorsTest, EachIsWhatWasWritten) {
    const TestPipeline pipeline = MakeMutable();
    MakeResources();
    constexpr uint32_t kValues[] = {0, 11, 21, 31, 41, 41, 61};
    uint32_t written[7] = {};
    // Each element is of another kind each time; the sampler stays, others use it.
    for (uint32_t round = 0; round < 6; ++round) {
        SCOPED_TRACE(round);
        std::array<uint32_t, 8> kinds{};
        std::vector<Slot> elements = {slots_[0]};
        for (uint32_t i = 1; i < kElements; ++i) {
            // Only one element has a kind that is written to.
            kinds[i] = 1 + (i + round) % 6;
            if (i == 7 && (kinds[i] == 1 || kinds[i] == 3)) {
                kinds[i] = 2;
            }
            elements.push_back(slots_[kinds[i]]);
        }
        WriteSlots(sets_[0], {elements, {Slot::Buffer(out_)}});
        RunKinds(pipeline, sets_[0], kinds);
        for (uint32_t i = 1; i < kElements; ++i) {
            EXPECT_EQ(out_.words[i], kValues[kinds[i]] + written[kinds[i]])
                << "element " << i << " of kind " << kinds[i];
        }
        written[1] += 1000;
        written[3] += 1000;
    }
}

TEST_F(MutableDescriptorsTest, Copies) {
    const TestPipeline pipeline = MakeMutable();
    MakeResources();
    TestBuffer other = MakeBuffer(kElements);
    std::array<uint32_t, 8> kinds{};
    std::vector<Slot> elements = {slots_[0]};
    for (uint32_t i = 1; i < kElements; ++i) {
        kinds[i] = i == 7 ? 1 : 8 - i - 1;
        elements.push_back(i == 7 ? Slot::Buffer(other) : slots_[kinds[i]]);
    }
    kinds[7] = 0;
    WriteSlots(sets_[0], {elements, {Slot::Buffer(out_)}});
    const auto copy = [&](uint32_t from, uint32_t element, uint32_t to, uint32_t to_element,
                          uint32_t count) {
        return VkCopyDescriptorSet{.sType = VK_STRUCTURE_TYPE_COPY_DESCRIPTOR_SET,
                                   .srcSet = sets_[0],
                                   .srcBinding = from,
                                   .srcArrayElement = element,
                                   .dstSet = sets_[1],
                                   .dstBinding = to,
                                   .dstArrayElement = to_element,
                                   .descriptorCount = count};
    };
    // Mutable to mutable, and one of them to the other binding and back.
    const VkCopyDescriptorSet copies[] = {copy(0, 0, 0, 0, kElements), copy(0, 7, 1, 0, 1),
                                          copy(1, 0, 0, 7, 1)};
    vkUpdateDescriptorSets(device_, 0, nullptr, 3, copies);
    kinds[7] = 1;
    RunKinds(pipeline, sets_[1], kinds);
    constexpr uint32_t kValues[] = {0, 11, 21, 31, 41, 41, 61};
    for (uint32_t i = 1; i < 7; ++i) {
        EXPECT_EQ(other.words[i], kValues[kinds[i]]) << "element " << i;
    }
    EXPECT_EQ(other.words[7], 0u);
    // Element 7 is what binding 1 was.
    EXPECT_EQ(out_.words[1], 1000u);
}

TEST_F(MutableDescriptorsTest, SupportIsTold) {
    const auto supported = [&](std::vector<VkDescriptorType> types) {
        const VkMutableDescriptorTypeListEXT list{static_cast<uint32_t>(types.size()),
                                                  types.data()};
        const VkMutableDescriptorTypeCreateInfoEXT lists{
            .sType = VK_STRUCTURE_TYPE_MUTABLE_DESCRIPTOR_TYPE_CREATE_INFO_EXT,
            .mutableDescriptorTypeListCount = 1,
            .pMutableDescriptorTypeLists = &list};
        const VkDescriptorSetLayoutBinding binding{0, VK_DESCRIPTOR_TYPE_MUTABLE_EXT, 4,
                                                   VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
        const VkDescriptorSetLayoutCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
            .pNext = &lists,
            .bindingCount = 1,
            .pBindings = &binding};
        VkDescriptorSetLayoutSupport support{.sType =
                                                 VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_SUPPORT};
        vkGetDescriptorSetLayoutSupport(device_, &info, &support);
        return support.supported == VK_TRUE;
    };
    EXPECT_TRUE(supported({std::begin(kTypes), std::end(kTypes)}));
    EXPECT_TRUE(supported({VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER}));
    EXPECT_FALSE(supported(
        {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, VK_DESCRIPTOR_TYPE_ACCELERATION_STRUCTURE_KHR}));
    messages_.clear();
}

}  // namespace
}  // namespace fornax::test
