// Images of several samples: written and counted by shaders, cleared, copied, and read in every way
// that compute shaders have.
#include <cstdlib>
#include <cstring>

#include "tests/loader/image_fixture.h"
#include "tests/loader/shaders/image_samples_read.spv.h"
#include "tests/loader/shaders/image_samples_write.spv.h"

namespace fornax::test {
namespace {

class ImageMultisampleTest : public ImageTest {
  protected:
    void SetUp() override {
        core_features_.shaderStorageImageMultisample = VK_TRUE;
        ImageTest::SetUp();
    }
    void TearDown() override {
        // No format can be an attachment, so queries must deny several samples, and the layers ask
        // them (driver/image.cpp). That the images work is what this is about.
        std::erase_if(messages_, [](const std::string& message) {
            return message.find("VUID-VkImageCreateInfo-samples-02258") != std::string::npos;
        });
        ImageTest::TearDown();
    }
};

TEST_F(ImageMultisampleTest, EverySampleIsATexel) {
    constexpr uint32_t kWidth = 13;
    constexpr uint32_t kHeight = 6;
    constexpr uint32_t kLayers = 3;
    constexpr uint32_t kGroups[] = {2, 2, 3};
    constexpr uint32_t kInvocations[] = {16, 8, 12};
    constexpr size_t kEnd = 10 * 16 * 8 * 12;
    for (VkSampleCountFlagBits count :
         {VK_SAMPLE_COUNT_2_BIT, VK_SAMPLE_COUNT_4_BIT, VK_SAMPLE_COUNT_8_BIT}) {
        SCOPED_TRACE(count);
        const auto samples = static_cast<uint32_t>(count);
        const VkImageUsageFlags usage = VK_IMAGE_USAGE_STORAGE_BIT | VK_IMAGE_USAGE_SAMPLED_BIT;
        const ImageSpec plane_spec{.format = VK_FORMAT_R32_UINT,
                                   .extent = {kWidth, kHeight, 1},
                                   .usage = usage,
                                   .samples = count};
        const ImageSpec planes_spec{.format = VK_FORMAT_R8G8B8A8_UNORM,
                                    .extent = {kWidth, kHeight, 1},
                                    .layers = kLayers,
                                    .usage = usage,
                                    .samples = count};
        const TestImage plane = MakeImage(plane_spec);
        const TestImage planes = MakeImage(planes_spec);
        const TestImage copy = MakeImage(plane_spec);
        TestBuffer out = MakeBuffer(kEnd + 4);
        const VkImageView plane_view = MakeView(plane, VK_IMAGE_VIEW_TYPE_2D);
        const VkImageView planes_view = MakeView(planes, VK_IMAGE_VIEW_TYPE_2D_ARRAY);
        Run(MakeImagePipeline(
                spirv::kImageSamplesWrite,
                {Slot::Storage(plane_view), Slot::Storage(planes_view), Slot::Buffer(out)}),
            kGroups[0], kGroups[1], kGroups[2]);
        // The copy has a frame of what it was cleared to.
        VkCommandBuffer commands = Begin();
        const VkClearColorValue color{.uint32 = {77}};
        const VkImageSubresourceRange all{VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
        vkCmdClearColorImage(commands, copy.handle, VK_IMAGE_LAYOUT_GENERAL, &color, 1, &all);
        Barrier(commands);
        const VkImageCopy region{.srcSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1},
                                 .srcOffset = {1, 2, 0},
                                 .dstSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1},
                                 .dstOffset = {2, 1, 0},
                                 .extent = {kWidth - 3, kHeight - 2, 1}};
        vkCmdCopyImage(commands, plane.handle, VK_IMAGE_LAYOUT_GENERAL, copy.handle,
                       VK_IMAGE_LAYOUT_GENERAL, 1, &region);
        Run(commands);
        Run(MakeImagePipeline(
                spirv::kImageSamplesRead,
                {Slot::Storage(plane_view), Slot::Storage(planes_view), Slot::Buffer(out),
                 Slot::Combined(MakeView(copy, VK_IMAGE_VIEW_TYPE_2D), MakeSampler({})),
                 Slot::Sampled(planes_view)}),
            kGroups[0], kGroups[1], kGroups[2]);
        const auto stored = [](uint32_t x, uint32_t y, uint32_t sample) {
            return x + 100 * y + 10000 * sample + 1000000;
        };
        for (uint32_t i = 0; i < kEnd / 10; ++i) {
            const uint32_t x = i % kInvocations[0];
            const uint32_t y = i / kInvocations[0] % kInvocations[1];
            const uint32_t sample = i / kInvocations[0] / kInvocations[1];
            const bool inside = x < kWidth && y < kHeight && sample < samples;
            const bool copied = x >= 2 && x < kWidth - 1 && y >= 1 && y < kHeight - 1;
            const uint32_t* word = out.words + 10 * size_t{i};
            ASSERT_EQ(word[0], inside ? stored(x, y, sample) : 0) << x << " " << y << " " << sample;
            ASSERT_EQ(word[1], !inside  ? 0
                               : copied ? stored(x - 1, y + 1, sample)
                                        : 77)
                << x << " " << y << " " << sample;
            for (uint32_t layer = 0; layer < 4; ++layer) {
                const uint32_t expected = x | y << 8 | sample << 16 | layer << 24;
                const bool exists = inside && layer < kLayers;
                ASSERT_EQ(word[2 + layer], exists ? expected : 0);
                ASSERT_EQ(word[6 + layer], exists ? expected : 0);
            }
        }
        EXPECT_EQ(out.words[kEnd], samples);
        EXPECT_EQ(out.words[kEnd + 1], samples);
        EXPECT_EQ(out.words[kEnd + 2], kWidth * 10000 + kHeight * 100 + kLayers);
        EXPECT_EQ(out.words[kEnd + 3], kWidth * 100 + kHeight);
    }
}

// A command of graphics that works on any queue: every texel becomes its first sample, in a part of
// some layers.
TEST_F(ImageMultisampleTest, ResolvesTakeTheFirstSample) {
    if (Validated()) {
        GTEST_SKIP() << "The layers know that the queue is none for graphics.";
    }
    constexpr VkExtent3D kExtent{13, 6, 1};
    const ImageSpec spec{.format = VK_FORMAT_R8G8B8A8_UNORM,
                         .extent = kExtent,
                         .layers = 3,
                         .samples = VK_SAMPLE_COUNT_4_BIT};
    const TestImage plane = MakeImage(
        {.format = VK_FORMAT_R32_UINT, .extent = kExtent, .samples = VK_SAMPLE_COUNT_4_BIT});
    const TestImage planes = MakeImage(spec);
    Run(MakeImagePipeline(spirv::kImageSamplesWrite,
                          {Slot::Storage(MakeView(plane, VK_IMAGE_VIEW_TYPE_2D)),
                           Slot::Storage(MakeView(planes, VK_IMAGE_VIEW_TYPE_2D_ARRAY)),
                           Slot::Buffer(MakeBuffer(1))}),
        2, 2, 3);
    const TestImage target =
        MakeImage({.format = VK_FORMAT_R8G8B8A8_UNORM, .extent = kExtent, .layers = 2});
    Upload(target, std::vector<uint8_t>(target.LevelBytes(0), 0xee));
    VkCommandBuffer commands = Begin();
    const VkImageResolve region{.srcSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 2},
                                .srcOffset = {2, 1, 0},
                                .dstSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 2},
                                .dstOffset = {1, 2, 0},
                                .extent = {11, 4, 1}};
    vkCmdResolveImage(commands, planes.handle, VK_IMAGE_LAYOUT_GENERAL, target.handle,
                      VK_IMAGE_LAYOUT_GENERAL, 1, &region);
    Run(commands);
    const std::vector<uint8_t> bytes = Download(target);
    for (uint32_t i = 0; i < kExtent.width * kExtent.height * 2; ++i) {
        const uint32_t x = i % kExtent.width;
        const uint32_t y = i / kExtent.width % kExtent.height;
        const uint32_t layer = i / kExtent.width / kExtent.height;
        const bool resolved = x >= 1 && x < 12 && y >= 2;
        uint32_t texel = 0;
        std::memcpy(&texel, bytes.data() + 4 * size_t{i}, 4);
        // The shader's texels are their place: of sample 0 here.
        ASSERT_EQ(texel, resolved ? (x + 1) | (y - 1) << 8 | (layer + 1) << 24 : 0xeeeeeeee)
            << x << " " << y << " " << layer;
    }
}

TEST_F(ImageMultisampleTest, WhatCannotHaveSamplesIsRefused) {
    const auto result = [&](VkImageType type, uint32_t levels, VkSampleCountFlagBits samples) {
        const VkImageCreateInfo info{.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
                                     .imageType = type,
                                     .format = VK_FORMAT_R32_UINT,
                                     .extent = {8, type == VK_IMAGE_TYPE_1D ? 1u : 8u, 1},
                                     .mipLevels = levels,
                                     .arrayLayers = 1,
                                     .samples = samples,
                                     .tiling = VK_IMAGE_TILING_OPTIMAL,
                                     .usage = VK_IMAGE_USAGE_STORAGE_BIT};
        VkImage image = VK_NULL_HANDLE;
        const VkResult made = vkCreateImage(device_, &info, nullptr, &image);
        vkDestroyImage(device_, image, nullptr);
        return made;
    };
    EXPECT_EQ(result(VK_IMAGE_TYPE_2D, 1, VK_SAMPLE_COUNT_4_BIT), VK_SUCCESS);
    EXPECT_NE(result(VK_IMAGE_TYPE_2D, 2, VK_SAMPLE_COUNT_4_BIT), VK_SUCCESS);
    EXPECT_NE(result(VK_IMAGE_TYPE_1D, 1, VK_SAMPLE_COUNT_4_BIT), VK_SUCCESS);
    EXPECT_NE(result(VK_IMAGE_TYPE_2D, 1, VK_SAMPLE_COUNT_16_BIT), VK_SUCCESS);
    messages_.clear();  // these were wrong on purpose
}

}  // namespace
}  // namespace fornax::test
