// Storage images and texel buffers through the loader: formats, dimensions, arrays, texels outside.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "tests/loader/image_fixture.h"
#include "tests/loader/shaders/image_arrays.spv.h"
#include "tests/loader/shaders/image_atomics.spv.h"
#include "tests/loader/shaders/image_dimensions.spv.h"
#include "tests/loader/shaders/image_known_formats.spv.h"
#include "tests/loader/shaders/image_long_axes.spv.h"
#include "tests/loader/shaders/image_texel_buffers.spv.h"
#include "tests/loader/shaders/image_texels_float.spv.h"
#include "tests/loader/shaders/image_texels_int.spv.h"
#include "tests/loader/shaders/image_texels_uint.spv.h"
#include "tests/loader/shaders/image_uniform_texels_float.spv.h"
#include "tests/loader/shaders/image_uniform_texels_int.spv.h"
#include "tests/loader/shaders/image_uniform_texels_uint.spv.h"
#include "tests/loader/texel_reference.h"

namespace fornax::test {
namespace {

class ImagesTest : public ImageTest {
  protected:
    void SetUp() override {
        core_features_.shaderStorageImageExtendedFormats = VK_TRUE;
        core_features_.shaderStorageImageReadWithoutFormat = VK_TRUE;
        core_features_.shaderStorageImageWriteWithoutFormat = VK_TRUE;
        core_features_.shaderStorageImageArrayDynamicIndexing = VK_TRUE;
        core_features_.imageCubeArray = VK_TRUE;
        more_extensions_ = {VK_EXT_IMAGE_ROBUSTNESS_EXTENSION_NAME,
                            VK_EXT_TEXEL_BUFFER_ALIGNMENT_EXTENSION_NAME};
        more_features_ = &robustness_;
        EnableYoungFormats();
        ImageTest::SetUp();
    }

    VkPhysicalDeviceTexelBufferAlignmentFeaturesEXT alignment_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TEXEL_BUFFER_ALIGNMENT_FEATURES_EXT,
        .texelBufferAlignment = VK_TRUE};
    VkPhysicalDeviceImageRobustnessFeatures robustness_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_IMAGE_ROBUSTNESS_FEATURES,
        .pNext = &alignment_,
        .robustImageAccess = VK_TRUE};
    bool Has(VkFormat format, VkFormatFeatureFlags feature) {
        VkFormatProperties properties;
        vkGetPhysicalDeviceFormatProperties(physical_, format, &properties);
        return properties.optimalTilingFeatures & feature;
    }
    bool BufferHas(VkFormat format, VkFormatFeatureFlags feature) {
        VkFormatProperties properties;
        vkGetPhysicalDeviceFormatProperties(physical_, format, &properties);
        return properties.bufferFeatures & feature;
    }
};

void ExpectTexel(const TexelReference& format,
                 const uint8_t* texel,
                 const uint32_t* got,
                 double extra_tolerance = 0) {
    const auto expected = format.Decode(texel);
    for (size_t i = 0; i < 4; ++i) {
        if (format.integer()) {
            ASSERT_EQ(got[i], expected[i]) << "component " << i;
            continue;
        }
        const auto wanted = std::bit_cast<float>(expected[i]);
        const auto value = std::bit_cast<float>(got[i]);
        if (std::isnan(wanted)) {
            ASSERT_TRUE(std::isnan(value)) << "component " << i;
        } else if (value != wanted) {
            ASSERT_NEAR(value, wanted, format.Tolerance() + extra_tolerance) << "component " << i;
        }
    }
}

// A texel whose conversion there and back is not the texel: a NaN, or the second code of -1.
bool IsAmbiguous(const TexelReference& format, const uint8_t* texel) {
    const auto values = format.Decode(texel);
    for (size_t i = 0; i < 4; ++i) {
        const auto value = std::bit_cast<float>(values[i]);
        if (!format.integer() && (std::isnan(value) || value == -1)) {
            return true;
        }
    }
    return false;
}

TEST_F(ImagesTest, EveryFormatIsReadAndWritten) {
    constexpr VkExtent3D kExtent{21, 11, 1};
    int formats = 0;
    for (const TexelReference& format : AllTexelReferences()) {
        if (!Has(format.format, VK_FORMAT_FEATURE_STORAGE_IMAGE_BIT)) {
            continue;
        }
        SCOPED_TRACE(format.format);
        ++formats;
        const TestImage from = MakeImage({.format = format.format, .extent = kExtent});
        const TestImage to = MakeImage({.format = format.format, .extent = kExtent});
        const std::vector<uint8_t> texels = Noise(from.LevelBytes(0), 7);
        Upload(from, texels);
        Upload(to, std::vector<uint8_t>(texels.size(), 0x55));
        TestBuffer out = MakeBuffer(24 * 12 * 4);
        const auto spirv = format.kind == TexelReference::Kind::kUint
                               ? std::span<const uint32_t>(spirv::kImageTexelsUint)
                           : format.kind == TexelReference::Kind::kSint
                               ? std::span<const uint32_t>(spirv::kImageTexelsInt)
                               : std::span<const uint32_t>(spirv::kImageTexelsFloat);
        Run(MakeImagePipeline(
                spirv, {Slot::Storage(MakeView(from, VK_IMAGE_VIEW_TYPE_2D)),
                        Slot::Storage(MakeView(to, VK_IMAGE_VIEW_TYPE_2D)), Slot::Buffer(out)}),
            3, 3);
        const std::vector<uint8_t> written = Download(to);
        const uint32_t size = format.bytes();
        for (uint32_t y = 0; y < 12; ++y) {
            for (uint32_t x = 0; x < 24; ++x) {
                SCOPED_TRACE(testing::Message() << "texel " << x << ", " << y);
                const uint32_t* got = out.words + (y * 24 + x) * 4;
                const uint8_t nothing[16] = {};
                if (x >= kExtent.width || y >= kExtent.height) {
                    ExpectTexel(format, nothing, got);  // zeros, and ones for what is missing
                    continue;
                }
                const uint8_t* texel = texels.data() + (y * kExtent.width + x) * size;
                ExpectTexel(format, texel, got);
                if (!IsAmbiguous(format, texel)) {
                    ASSERT_EQ(
                        std::memcmp(written.data() + (y * kExtent.width + x) * size, texel, size),
                        0);
                }
            }
            if (HasFatalFailure()) {
                return;
            }
        }
    }
    EXPECT_GE(formats, 25);
}

// A pipeline's code for what is bound is made when it is dispatched, but a cache of it has code for
// all formats, which needs no SPIR-V.
TEST_F(ImagesTest, PipelineCachesHoldCodeForAllFormats) {
    constexpr VkExtent3D kExtent{24, 12, 1};
    const TestImage from = MakeImage({.format = VK_FORMAT_R32_UINT, .extent = kExtent});
    const TestImage to = MakeImage({.format = VK_FORMAT_R32_UINT, .extent = kExtent});
    const TestBuffer out = MakeBuffer(kExtent.width * kExtent.height * 4);
    const std::vector<uint8_t> texels = Noise(from.LevelBytes(0), 8);
    Upload(from, texels);
    TestPipeline pipeline =
        MakeImagePipeline(spirv::kImageTexelsUint,
                          {Slot::Storage(MakeView(from, VK_IMAGE_VIEW_TYPE_2D)),
                           Slot::Storage(MakeView(to, VK_IMAGE_VIEW_TYPE_2D)), Slot::Buffer(out)});
    VkPipelineCreationFeedback feedback = {};
    const VkPipelineCreationFeedbackCreateInfo feedback_info{
        .sType = VK_STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO,
        .pPipelineCreationFeedback = &feedback};
    const VkComputePipelineCreateInfo info{
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .pNext = &feedback_info,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = pipeline.module,
                  .pName = "main"},
        .layout = pipeline.layout};
    std::vector<uint8_t> data;
    for (const bool again : {false, true}) {
        const VkPipelineCacheCreateInfo cache_info{
            .sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
            .initialDataSize = data.size(),
            .pInitialData = data.data()};
        VkPipelineCache cache = VK_NULL_HANDLE;
        ASSERT_VK(vkCreatePipelineCache(device_, &cache_info, nullptr, &cache));
        AtEnd([this, cache] { vkDestroyPipelineCache(device_, cache, nullptr); });
        ASSERT_VK(vkCreateComputePipelines(device_, cache, 1, &info, nullptr, &pipeline.pipeline));
        AtEnd([this, made = pipeline.pipeline] { vkDestroyPipeline(device_, made, nullptr); });
        EXPECT_TRUE(feedback.flags & VK_PIPELINE_CREATION_FEEDBACK_VALID_BIT);
        EXPECT_EQ((feedback.flags &
                   VK_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT) != 0,
                  again);
        Upload(to, std::vector<uint8_t>(texels.size(), 0x55));
        Run(pipeline, 3, 3);
        EXPECT_EQ(Download(to), texels);
        size_t bytes = 0;
        ASSERT_VK(vkGetPipelineCacheData(device_, cache, &bytes, nullptr));
        EXPECT_GT(bytes, sizeof(VkPipelineCacheHeaderVersionOne) + 1000);
        data.resize(bytes);
        ASSERT_VK(vkGetPipelineCacheData(device_, cache, &bytes, data.data()));
        EXPECT_EQ(bytes, data.size());
    }
}

TEST_F(ImagesTest, FormatsThatTheShaderNames) {
    constexpr VkExtent3D kExtent{37, 5, 1};
    constexpr VkFormat kFormats[] = {VK_FORMAT_R32_SFLOAT, VK_FORMAT_R32G32B32A32_SFLOAT,
                                     VK_FORMAT_R8G8B8A8_UNORM, VK_FORMAT_R16G16B16A16_SFLOAT};
    std::vector<Slot> slots;
    std::vector<TestImage> images;
    std::vector<std::vector<uint8_t>> contents;
    for (int i = 0; i < 8; ++i) {
        images.push_back(MakeImage({.format = kFormats[i % 4], .extent = kExtent}));
        slots.push_back(Slot::Storage(MakeView(images.back(), VK_IMAGE_VIEW_TYPE_2D)));
        contents.push_back(Noise(images.back().LevelBytes(0), static_cast<uint32_t>(i)));
        if (i % 4 == 3) {
            for (size_t k = 1; k < contents.back().size(); k += 2) {
                contents.back()[k] &= 0xbb;  // no NaN, which may be another one afterwards
            }
        }
        Upload(images.back(), contents.back());
    }
    Run(MakeImagePipeline(spirv::kImageKnownFormats, slots), 3, 6);
    for (size_t i = 0; i < 4; ++i) {
        SCOPED_TRACE(i);
        const auto result = Download(images[i + 4]);
        const uint32_t size = images[i].texel_bytes;
        const uint32_t component = i == 0 ? 4 : size / 4;
        const size_t texels = result.size() / size;
        for (size_t t = 0; t < texels; ++t) {
            const uint8_t* from = contents[i].data() + (texels - 1 - t) * size;
            for (size_t byte = 0; byte < size; ++byte) {
                const size_t reversed = (size / component - 1 - byte / component) * component;
                ASSERT_EQ(result[t * size + byte], from[reversed + byte % component])
                    << "texel " << t << " byte " << byte;
            }
        }
    }
}

TEST_F(ImagesTest, EveryDimension) {
    struct Case {
        ImageSpec spec;
        VkImageViewType view;
        bool layers_in_y;
    };
    const VkFormat format = VK_FORMAT_R32_UINT;
    const Case cases[] = {
        {{.type = VK_IMAGE_TYPE_1D, .format = format, .extent = {9, 1, 1}},
         VK_IMAGE_VIEW_TYPE_1D,
         false},
        {{.type = VK_IMAGE_TYPE_1D, .format = format, .extent = {7, 1, 1}, .layers = 5},
         VK_IMAGE_VIEW_TYPE_1D_ARRAY,
         true},
        {{.format = format, .extent = {10, 6, 1}}, VK_IMAGE_VIEW_TYPE_2D, false},
        {{.format = format, .extent = {5, 3, 1}, .layers = 7}, VK_IMAGE_VIEW_TYPE_2D_ARRAY, false},
        {{.type = VK_IMAGE_TYPE_3D, .format = format, .extent = {6, 5, 9}},
         VK_IMAGE_VIEW_TYPE_3D,
         false},
        {{.format = format,
          .extent = {5, 5, 1},
          .layers = 6,
          .flags = VK_IMAGE_CREATE_CUBE_COMPATIBLE_BIT},
         VK_IMAGE_VIEW_TYPE_CUBE,
         false},
        {{.format = format,
          .extent = {3, 3, 1},
          .layers = 12,
          .flags = VK_IMAGE_CREATE_CUBE_COMPATIBLE_BIT},
         VK_IMAGE_VIEW_TYPE_CUBE_ARRAY,
         false},
    };
    std::vector<TestImage> images;
    std::vector<Slot> slots;
    for (const Case& one : cases) {
        images.push_back(MakeImage(one.spec));
        std::vector<uint8_t> contents(images.back().LevelBytes(0));
        for (size_t i = 0; i < contents.size() / 4; ++i) {
            const auto value = static_cast<uint32_t>(i * 1000000);
            std::memcpy(contents.data() + i * 4, &value, 4);
        }
        Upload(images.back(), contents);
        slots.push_back(Slot::Storage(MakeView(images.back(), one.view)));
    }
    TestBuffer out = MakeBuffer(16);
    slots.push_back(Slot::Buffer(out));
    Run(MakeImagePipeline(spirv::kImageDimensions, slots), 3, 3, 3);
    for (size_t i = 0; i < images.size(); ++i) {
        SCOPED_TRACE(i);
        const auto bytes = Download(images[i]);
        const VkExtent3D extent = images[i].spec.extent;
        for (uint32_t t = 0; t < bytes.size() / 4; ++t) {
            uint32_t value = 0;
            std::memcpy(&value, bytes.data() + t * 4, 4);
            const uint32_t x = t % extent.width;
            const uint32_t y =
                cases[i].layers_in_y ? t / extent.width : t / extent.width % extent.height;
            const uint32_t z = cases[i].layers_in_y ? 0 : t / extent.width / extent.height;
            ASSERT_EQ(value, t * 1000000 + x + 100 * y + 10000 * z) << "texel " << t;
        }
    }
    const uint32_t sizes[] = {9, 7, 5, 10, 6, 5, 3, 7, 6, 5, 9, 5, 5, 3, 3, 2};
    for (size_t i = 0; i < 16; ++i) {
        EXPECT_EQ(out.words[i], sizes[i]) << i;
    }
}

TEST_F(ImagesTest, LongVolumes) {
    VkPhysicalDeviceProperties properties;
    vkGetPhysicalDeviceProperties(physical_, &properties);
    const uint32_t length = properties.limits.maxImageDimension3D;
    EXPECT_GE(length, 4096u);  // ExecuTorch makes tensors of more than 2048 texels without asking
    const VkExtent3D extents[] = {{length, 2, 1}, {2, length, 1}, {1, 2, length}};
    std::vector<TestImage> images;
    std::vector<Slot> slots;
    std::vector<uint8_t> contents(size_t{length} * 2 * 4);
    for (uint32_t i = 0; i < contents.size() / 4; ++i) {
        const uint32_t value = i * 1000;
        std::memcpy(contents.data() + i * 4, &value, 4);
    }
    for (const VkExtent3D& extent : extents) {
        images.push_back(
            MakeImage({.type = VK_IMAGE_TYPE_3D, .format = VK_FORMAT_R32_UINT, .extent = extent}));
        Upload(images.back(), contents);
        slots.push_back(Slot::Storage(MakeView(images.back(), VK_IMAGE_VIEW_TYPE_3D)));
    }
    Run(MakeImagePipeline(spirv::kImageLongAxes, slots), length / 64, 2, 1);
    for (const TestImage& image : images) {
        const auto bytes = Download(image);
        const VkExtent3D extent = image.spec.extent;
        SCOPED_TRACE(extent.width);
        for (uint32_t t = 0; t < bytes.size() / 4; ++t) {
            uint32_t value = 0;
            std::memcpy(&value, bytes.data() + t * 4, 4);
            const uint32_t x = t % extent.width;
            const uint32_t y = t / extent.width % extent.height;
            const uint32_t z = t / extent.width / extent.height;
            ASSERT_EQ(value, t * 1000 + x + 3 * y + 5 * z) << "texel " << t;
        }
    }
}

TEST_F(ImagesTest, TexelBuffers) {
    constexpr uint32_t kTexels = 50;
    int formats = 0;
    for (const TexelReference& format : AllTexelReferences()) {
        if (format.integer() ||
            !BufferHas(format.format, VK_FORMAT_FEATURE_UNIFORM_TEXEL_BUFFER_BIT) ||
            !BufferHas(format.format, VK_FORMAT_FEATURE_STORAGE_TEXEL_BUFFER_BIT)) {
            continue;
        }
        SCOPED_TRACE(format.format);
        ++formats;
        const uint32_t size = format.bytes();
        const size_t words = (kTexels * size + 3) / 4;
        const VkBufferUsageFlags usage =
            VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT | VK_BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT;
        // Views begin at any texel (VK_EXT_texel_buffer_alignment): these at the second and fourth.
        const size_t more_words = (3 * size + 3) / 4;
        TestBuffer from = MakeBuffer(words + more_words, usage);
        TestBuffer to = MakeBuffer(words + more_words, usage);
        from.size = to.size = kTexels * size;
        from.offset += size;
        to.offset += 3 * size;
        const auto noise = Noise(kTexels * size, 3);
        std::memcpy(reinterpret_cast<uint8_t*>(from.words) + size, noise.data(), noise.size());
        TestBuffer out = MakeBuffer(64 * 4 + 2);
        Run(MakeImagePipeline(spirv::kImageTexelBuffers,
                              {Slot::Texels(VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER,
                                            MakeTexels(from, format.format)),
                               Slot::Texels(VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER,
                                            MakeTexels(to, format.format)),
                               Slot::Buffer(out)}),
            2);
        EXPECT_EQ(out.words[256], kTexels);
        EXPECT_EQ(out.words[257], kTexels);
        const auto* result = reinterpret_cast<const uint8_t*>(to.words) + 3 * size;
        for (uint32_t i = 0; i < 64; ++i) {
            SCOPED_TRACE(i);
            const uint8_t nothing[16] = {};
            ExpectTexel(format, i < kTexels ? noise.data() + i * size : nothing, out.words + i * 4);
            if (i >= kTexels) {
                continue;
            }
            // A quarter of the texel, as near as the format comes.
            const auto whole = format.Decode(noise.data() + i * size);
            const auto quarter = format.Decode(result + i * size);
            for (size_t k = 0; k < 4; ++k) {
                const auto wanted = std::bit_cast<float>(whole[k]) / 4;
                const auto value = std::bit_cast<float>(quarter[k]);
                if (format.bits[k] == 0 || !std::isfinite(wanted)) {
                    continue;
                }
                // A float's precision, or a step of a fixed-point number.
                double tolerance = 1e-6 + std::fabs(wanted) * std::exp2(5 - format.bits[k]);
                if (format.kind == TexelReference::Kind::kUnorm ||
                    format.kind == TexelReference::Kind::kSnorm) {
                    tolerance = std::exp2(1 - format.bits[k]);
                }
                ASSERT_NEAR(value, wanted, tolerance) << "component " << k;
            }
        }
    }
    EXPECT_GE(formats, 14);
}

TEST_F(ImagesTest, UniformTexelsOfEveryFormat) {
    constexpr uint32_t kTexels = 50;
    int formats = 0;
    for (const TexelReference& format : AllTexelReferences()) {
        if (!BufferHas(format.format, VK_FORMAT_FEATURE_UNIFORM_TEXEL_BUFFER_BIT)) {
            continue;
        }
        SCOPED_TRACE(format.format);
        ++formats;
        const uint32_t size = format.bytes();
        // The view begins at the second texel, and the buffer ends in the middle of one.
        TestBuffer from =
            MakeBuffer((kTexels + 2) * size / 4 + 1, VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT);
        const auto noise = Noise(kTexels * size, 5);
        std::memcpy(reinterpret_cast<uint8_t*>(from.words) + size, noise.data(), noise.size());
        from.offset += size;
        from.size = kTexels * size;
        TestBuffer out = MakeBuffer(64 * 4);
        const auto spirv = format.kind == TexelReference::Kind::kUint
                               ? std::span<const uint32_t>(spirv::kImageUniformTexelsUint)
                           : format.kind == TexelReference::Kind::kSint
                               ? std::span<const uint32_t>(spirv::kImageUniformTexelsInt)
                               : std::span<const uint32_t>(spirv::kImageUniformTexelsFloat);
        Run(MakeImagePipeline(spirv, {Slot::Texels(VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER,
                                                   MakeTexels(from, format.format)),
                                      Slot::Buffer(out)}),
            2);
        for (uint32_t i = 0; i < 64; ++i) {
            SCOPED_TRACE(i);
            const uint8_t nothing[16] = {};
            ExpectTexel(format, i < kTexels ? noise.data() + i * size : nothing, out.words + i * 4);
        }
        if (HasFatalFailure()) {
            return;
        }
    }
    EXPECT_GE(formats, 45);
}

TEST_F(ImagesTest, ArraysOfImagesAndLevels) {
    constexpr uint32_t kLevels = 3;
    const TestImage leveled = MakeImage(
        {.format = VK_FORMAT_R32_UINT, .extent = {20, 12, 1}, .levels = kLevels, .layers = 3});
    std::vector<Slot> views;
    for (uint32_t level = 0; level < kLevels; ++level) {
        Upload(leveled, std::vector<uint8_t>(leveled.LevelBytes(level), 0x10), level);
        views.push_back(Slot::Storage(
            MakeView(leveled, {.viewType = VK_IMAGE_VIEW_TYPE_2D,
                               .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, level, 1, 1, 1}})));
    }
    const TestImage source = MakeImage({.format = VK_FORMAT_R32_UINT, .extent = {9, 9, 1}});
    const auto noise = Noise(source.LevelBytes(0), 1);
    Upload(source, noise);
    views.push_back(Slot::Storage(MakeView(source, VK_IMAGE_VIEW_TYPE_2D)));
    const TestPipeline pipeline =
        MakeImagePipeline(spirv::kImageArrays, std::vector<std::vector<Slot>>{views});
    VkCommandBuffer commands = Begin();
    Bind(commands, pipeline);
    for (uint32_t level = 0; level < kLevels; ++level) {
        const uint32_t push[] = {3, level};
        vkCmdPushConstants(commands, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 8, push);
        vkCmdDispatch(commands, 4, 4, 1);
        Barrier(commands);
    }
    Run(commands);
    for (uint32_t level = 0; level < kLevels; ++level) {
        const auto bytes = Download(leveled, level);
        const VkExtent3D extent = leveled.LevelExtent(level);
        for (uint32_t i = 0; i < bytes.size() / 4; ++i) {
            const uint32_t x = i % extent.width;
            const uint32_t y = i / extent.width % extent.height;
            const uint32_t layer = i / extent.width / extent.height;
            uint32_t value = 0;
            uint32_t from = 0;
            std::memcpy(&value, bytes.data() + i * 4, 4);
            if (x < 9 && y < 9) {
                std::memcpy(&from, noise.data() + (y * 9 + x) * 4, 4);
            }
            ASSERT_EQ(value, layer == 1 ? from + 1 : 0x10101010u)
                << "level " << level << " texel " << i;
        }
    }
}

TEST_F(ImagesTest, AtomicsOnTexels) {
    const TestImage sums = MakeImage({.format = VK_FORMAT_R32_UINT, .extent = {13, 20, 1}});
    const TestImage extremes =
        MakeImage({.format = VK_FORMAT_R32_SINT, .extent = {4, 2, 1}, .layers = 3});
    TestBuffer counters = MakeBuffer(12, VK_BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT);
    TestBuffer old = MakeBuffer(32 * 24);
    Upload(sums, std::vector<uint8_t>(sums.LevelBytes(0)));
    Upload(extremes, std::vector<uint8_t>(extremes.LevelBytes(0)));
    Run(MakeImagePipeline(spirv::kImageAtomics,
                          {Slot::Storage(MakeView(sums, VK_IMAGE_VIEW_TYPE_2D)),
                           Slot::Storage(MakeView(extremes, VK_IMAGE_VIEW_TYPE_2D_ARRAY)),
                           Slot::Texels(VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER,
                                        MakeTexels(counters, VK_FORMAT_R32_UINT)),
                           Slot::Buffer(old)}),
        4, 3);
    std::vector<uint32_t> expected_sums(13 * 20);
    std::vector<int32_t> expected_extremes(4 * 2 * 3);
    for (uint32_t y = 0; y < 24; ++y) {
        for (uint32_t x = 0; x < 32; ++x) {
            const uint32_t i = y * 32 + x;
            if (x / 2 < 13 && y < 20) {
                expected_sums[y * 13 + x / 2] += i;
            }
            if (y % 4 >= 3) {
                continue;
            }
            int32_t& largest = expected_extremes[y % 4 * 8 + x % 4];
            int32_t& least = expected_extremes[y % 4 * 8 + 4 + x % 4];
            largest = std::max(largest, static_cast<int32_t>(i) - 500);
            least = std::min(least, static_cast<int32_t>(i) - 500);
        }
    }
    const auto sum_bytes = Download(sums);
    const auto extreme_bytes = Download(extremes);
    EXPECT_EQ(std::memcmp(sum_bytes.data(), expected_sums.data(), sum_bytes.size()), 0);
    EXPECT_EQ(std::memcmp(extreme_bytes.data(), expected_extremes.data(), extreme_bytes.size()), 0);
    // Each count was given once; texels outside give 0.
    for (uint32_t texel = 0; texel < 16; ++texel) {
        std::vector<uint32_t> seen;
        for (uint32_t i = texel; i < 32 * 24; i += 16) {
            seen.push_back(old.words[i]);
        }
        std::ranges::sort(seen);
        for (uint32_t i = 0; i < seen.size(); ++i) {
            ASSERT_EQ(seen[i], texel < 12 ? i : 0) << "texel " << texel;
        }
    }
    for (uint32_t texel = 0; texel < 12; ++texel) {
        EXPECT_EQ(counters.words[texel], 48u);
    }
}

}  // namespace
}  // namespace fornax::test
