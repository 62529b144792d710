// Images, samplers and texel buffers in arrays of descriptors: chosen by each invocation, updated
// after they were bound, and null.
#include <cstring>

#include "tests/loader/image_fixture.h"
#include "tests/loader/sampling_reference.h"
#include "tests/loader/shaders/image_nonuniform.spv.h"
#include "tests/loader/shaders/image_nonuniform_more.spv.h"

namespace fornax::test {
namespace {

class ImageIndexingTest : public ImageTest {
  protected:
    void SetUp() override {
        core_features_.shaderStorageImageExtendedFormats = VK_TRUE;
        core_features_.robustBufferAccess = VK_TRUE;
        robust_ = true;
        more_extensions_ = {VK_EXT_DESCRIPTOR_INDEXING_EXTENSION_NAME,
                            VK_EXT_ROBUSTNESS_2_EXTENSION_NAME};
        more_features_ = &indexing_;
        ImageTest::SetUp();
    }

    VkPhysicalDeviceRobustness2FeaturesEXT robustness_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT,
        .robustBufferAccess2 = VK_TRUE,
        .robustImageAccess2 = VK_TRUE,
        .nullDescriptor = VK_TRUE};
    VkPhysicalDeviceDescriptorIndexingFeatures indexing_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DESCRIPTOR_INDEXING_FEATURES,
        .pNext = &robustness_,
        .shaderUniformTexelBufferArrayDynamicIndexing = VK_TRUE,
        .shaderStorageTexelBufferArrayDynamicIndexing = VK_TRUE,
        .shaderSampledImageArrayNonUniformIndexing = VK_TRUE,
        .shaderStorageImageArrayNonUniformIndexing = VK_TRUE,
        .shaderUniformTexelBufferArrayNonUniformIndexing = VK_TRUE,
        .shaderStorageTexelBufferArrayNonUniformIndexing = VK_TRUE,
        .descriptorBindingSampledImageUpdateAfterBind = VK_TRUE,
        .descriptorBindingStorageImageUpdateAfterBind = VK_TRUE,
        .descriptorBindingStorageBufferUpdateAfterBind = VK_TRUE,
        .descriptorBindingUniformTexelBufferUpdateAfterBind = VK_TRUE,
        .descriptorBindingStorageTexelBufferUpdateAfterBind = VK_TRUE,
        .runtimeDescriptorArray = VK_TRUE};
};

TEST_F(ImageIndexingTest, EachInvocationChooses) {
    update_after_bind_ = true;
    constexpr uint32_t kInvocations = 64;
    // The third of each image, and the second of each texel buffer, are null in the second round.
    std::vector<std::vector<Slot>> slots(6);
    std::vector<TestImage> storage;
    std::vector<ReferenceImage> sampled;
    for (uint32_t i = 0; i < 3; ++i) {
        storage.push_back(MakeImage({.format = VK_FORMAT_R32_UINT, .extent = {8 + i, 8, 1}}));
        Upload(storage[i], std::vector<uint8_t>(storage[i].LevelBytes(0), static_cast<uint8_t>(i)));
        slots[0].push_back(Slot::Storage(MakeView(storage[i], VK_IMAGE_VIEW_TYPE_2D)));
        const VkFormat format = i == 1 ? VK_FORMAT_R8G8B8A8_UNORM : VK_FORMAT_R16G16_UNORM;
        const TestImage image = MakeImage(
            {.format = format, .extent = {5 + 3 * i, 6, 1}, .usage = VK_IMAGE_USAGE_SAMPLED_BIT});
        const auto texels = Noise(image.LevelBytes(0), i);
        Upload(image, texels);
        sampled.push_back({.type = VK_IMAGE_VIEW_TYPE_2D,
                           .format = FindTexelReference(format),
                           .extent = image.spec.extent,
                           .levels = {texels}});
        slots[1].push_back(Slot::Sampled(MakeView(image, VK_IMAGE_VIEW_TYPE_2D)));
    }
    VkSamplerCreateInfo samplers[2];
    std::vector<TestBuffer> texels;
    for (uint32_t i = 0; i < 2; ++i) {
        const VkFilter filter = i ? VK_FILTER_LINEAR : VK_FILTER_NEAREST;
        samplers[i] = {.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO,
                       .magFilter = filter,
                       .minFilter = filter};
        slots[2].push_back(Slot::Sampler(MakeSampler(samplers[i])));
        for (VkBufferUsageFlags usage :
             {VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT, VK_BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT}) {
            TestBuffer& buffer = texels.emplace_back(MakeBuffer(kInvocations, usage));
            for (uint32_t k = 0; k < kInvocations; ++k) {
                buffer.floats()[k] = static_cast<float>(texels.size() * 100 + k);
            }
            const bool uniform = usage == VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT;
            slots[uniform ? 3 : 4].push_back(
                Slot::Texels(uniform ? VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER
                                     : VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER,
                             MakeTexels(buffer, VK_FORMAT_R32_SFLOAT)));
        }
    }
    TestBuffer out = MakeBuffer(kInvocations * 12);
    slots[5].push_back(Slot::Buffer(out));
    const TestPipeline pipeline = MakeImagePipeline(spirv::kImageNonuniform, slots);
    for (bool with_nulls : {false, true}) {
        SCOPED_TRACE(with_nulls);
        std::vector<std::vector<uint8_t>> before;
        for (const TestImage& image : storage) {
            before.push_back(Download(image));
        }
        std::vector<std::vector<float>> floats_before;
        for (const TestBuffer& buffer : texels) {
            floats_before.emplace_back(buffer.floats(), buffer.floats() + kInvocations);
        }
        VkCommandBuffer commands = Begin();
        Bind(commands, pipeline);
        vkCmdDispatch(commands, 1, 1, 1);
        if (with_nulls) {
            slots[0][2].image.imageView = VK_NULL_HANDLE;
            slots[1][2].image.imageView = VK_NULL_HANDLE;
            slots[3][1].texels = VK_NULL_HANDLE;
            slots[4][1].texels = VK_NULL_HANDLE;
            WriteSlots(pipeline.set, slots);
        }
        Run(commands);
        std::vector<std::vector<uint8_t>> after;
        for (const TestImage& image : storage) {
            after.push_back(Download(image));
        }
        for (uint32_t i = 0; i < kInvocations; ++i) {
            SCOPED_TRACE(i);
            const uint32_t which = i % 3;
            const size_t at = (size_t{i / 8} * (8 + which) + i % 8) * 4;
            uint32_t old = 0;
            uint32_t now = 0;
            std::memcpy(&old, before[which].data() + at, 4);
            std::memcpy(&now, after[which].data() + at, 4);
            const bool is_null = with_nulls && which == 2;
            EXPECT_EQ(now, is_null ? old : old + i);

            ReferenceQuery query;
            query.position[0] = (i % 8 + 0.25) / 8;
            query.position[1] = (i / 8 + 0.25) / 8;
            const uint32_t image = i * 5 % 3;
            const auto expected = SampleReference(sampled[image], samplers[i / 3 % 2], query);
            for (size_t k = 0; k < 4 && (expected || (with_nulls && image == 2)); ++k) {
                const double wanted = with_nulls && image == 2 ? 0 : (*expected)[k];
                EXPECT_NEAR(out.floats()[12 * i + k], wanted, 2e-4) << "component " << k;
            }
            const bool null_texels = with_nulls && i % 2 == 1;
            EXPECT_EQ(out.floats()[12 * i + 4], null_texels ? 0 : floats_before[i % 2 * 2][i]);
            const bool null_storage = with_nulls && i / 2 % 2 == 1;
            const size_t from = i / 2 % 2 * 2 + 1;
            EXPECT_EQ(out.floats()[12 * i + 8], null_storage ? 0 : floats_before[from][i]);
            EXPECT_EQ(texels[from].floats()[i],
                      null_storage ? floats_before[from][i] : static_cast<float>(i));
        }
    }
}

TEST_F(ImageIndexingTest, CombinedSamplersQueriesAndAtomics) {
    constexpr uint32_t kInvocations = 64;
    std::vector<std::vector<Slot>> slots(4);
    std::vector<ReferenceImage> images;
    std::vector<VkSamplerCreateInfo> samplers;
    std::vector<TestImage> counters;
    for (uint32_t i = 0; i < 3; ++i) {
        const VkFormat format = i == 1 ? VK_FORMAT_R8G8B8A8_UNORM : VK_FORMAT_R16G16_UNORM;
        const TestImage image = MakeImage({.format = format,
                                           .extent = {8 + i, 7, 1},
                                           .levels = 1 + i,
                                           .usage = VK_IMAGE_USAGE_SAMPLED_BIT});
        const auto texels = Noise(image.LevelBytes(0), 20 + i);
        Upload(image, texels);
        images.push_back({.type = VK_IMAGE_VIEW_TYPE_2D,
                          .format = FindTexelReference(format),
                          .extent = image.spec.extent,
                          .levels = {texels}});
        samplers.push_back({.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO,
                            .magFilter = i == 2 ? VK_FILTER_NEAREST : VK_FILTER_LINEAR,
                            .minFilter = VK_FILTER_LINEAR});
        slots[0].push_back(
            Slot::Combined(MakeView(image, VK_IMAGE_VIEW_TYPE_2D), MakeSampler(samplers[i])));
        counters.push_back(MakeImage({.format = VK_FORMAT_R32_UINT, .extent = {8, 1 + i, 1}}));
        Upload(counters[i], std::vector<uint8_t>(counters[i].LevelBytes(0)));
        slots[1].push_back(Slot::Storage(MakeView(counters[i], VK_IMAGE_VIEW_TYPE_2D)));
    }
    std::vector<TestBuffer> texels;
    for (uint32_t i = 0; i < 2; ++i) {
        texels.push_back(MakeBuffer(4 + i, VK_BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT));
        slots[2].push_back(Slot::Texels(VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER,
                                        MakeTexels(texels[i], VK_FORMAT_R32_UINT)));
    }
    TestBuffer out = MakeBuffer(kInvocations * 16);
    slots[3].push_back(Slot::Buffer(out));
    Run(MakeImagePipeline(spirv::kImageNonuniformMore, slots), 1);
    uint32_t sums[3][8] = {};
    uint32_t largest[2][4] = {};
    for (uint32_t i = 0; i < kInvocations; ++i) {
        SCOPED_TRACE(i);
        const uint32_t which = i * 5 % 3;
        ReferenceQuery query;
        query.position[0] = (i % 8 + 0.25) / 8;
        query.position[1] = (i / 8 + 0.25) / 8;
        const std::optional<Vec4> expected[] = {
            SampleReference(images[which], samplers[which], query),
            GatherReference(images[which], samplers[which], query, 1)};
        for (size_t part = 0; part < 2; ++part) {
            for (size_t k = 0; k < 4 && expected[part]; ++k) {
                EXPECT_NEAR(out.floats()[16 * i + 4 * part + k], (*expected[part])[k], 2e-4);
            }
        }
        const float facts[] = {8.0f + static_cast<float>(which),
                               7,
                               8,
                               1.0f + static_cast<float>(i % 3),
                               1.0f + static_cast<float>(which),
                               4.0f + static_cast<float>(i % 2)};
        for (size_t k = 0; k < 6; ++k) {
            EXPECT_EQ(out.floats()[16 * i + 8 + k], facts[k]) << k;
        }
        sums[i % 3][i / 3 % 8] += i;
        largest[i % 2][i / 2 % 4] = i;
    }
    for (uint32_t i = 0; i < 3; ++i) {
        const auto bytes = Download(counters[i]);
        EXPECT_EQ(std::memcmp(bytes.data(), sums[i], sizeof(sums[i])), 0) << "image " << i;
    }
    for (uint32_t i = 0; i < 2; ++i) {
        for (uint32_t k = 0; k < 4; ++k) {
            EXPECT_EQ(texels[i].words[k], largest[i][k]);
        }
    }
}

}  // namespace
}  // namespace fornax::test
