// Images of 64-bit integers, and atomics on texels of 64-bit integers and floats
// (VK_EXT_shader_image_atomic_int64, VK_EXT_shader_atomic_float and its second part).
#include <algorithm>
#include <cstring>

#include "tests/loader/image_fixture.h"
#include "tests/loader/shaders/image_wide_atomics.spv.h"

namespace fornax::test {
namespace {

class ImageWideAtomicsTest : public ImageTest {
  protected:
    void SetUp() override {
        core_features_.shaderInt64 = VK_TRUE;
        api_version_ = VK_API_VERSION_1_2;
        more_extensions_ = {VK_EXT_SHADER_IMAGE_ATOMIC_INT64_EXTENSION_NAME,
                            VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME,
                            VK_EXT_SHADER_ATOMIC_FLOAT_2_EXTENSION_NAME};
        more_features_ = &wide_;
        ImageTest::SetUp();
    }

    // Words of 64 bits, which have the layout of two words of 32.
    TestImage MakeWide(VkExtent3D extent, uint32_t layers) {
        return MakeImage({.format = VK_FORMAT_R32G32_UINT,
                          .extent = extent,
                          .layers = layers,
                          .flags = VK_IMAGE_CREATE_MUTABLE_FORMAT_BIT});
    }
    VkImageView MakeWideView(const TestImage& image, VkImageViewType type, VkFormat format) {
        return MakeView(image, VkImageViewCreateInfo{.viewType = type, .format = format});
    }
    template <typename T>
    std::vector<T> Texels(const TestImage& image) {
        const auto bytes = Download(image);
        std::vector<T> texels(bytes.size() / sizeof(T));
        std::memcpy(texels.data(), bytes.data(), bytes.size());
        return texels;
    }
    void Clear(const TestImage& image) { Upload(image, std::vector<uint8_t>(image.LevelBytes(0))); }

    VkPhysicalDeviceShaderAtomicFloat2FeaturesEXT floats2_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_2_FEATURES_EXT,
        .shaderImageFloat32AtomicMinMax = VK_TRUE};
    VkPhysicalDeviceShaderAtomicFloatFeaturesEXT floats_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT,
        .pNext = &floats2_,
        .shaderImageFloat32Atomics = VK_TRUE,
        .shaderImageFloat32AtomicAdd = VK_TRUE};
    VkPhysicalDeviceShaderImageAtomicInt64FeaturesEXT wide_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_IMAGE_ATOMIC_INT64_FEATURES_EXT,
        .pNext = &floats_,
        .shaderImageInt64Atomics = VK_TRUE};
};

TEST_F(ImageWideAtomicsTest, AtomicsOnTexels) {
    constexpr uint32_t kWidth = 32;
    constexpr uint32_t kHeight = 24;
    const TestImage sums = MakeWide({13, 20, 1}, 1);
    const TestImage extremes = MakeWide({4, 2, 1}, 3);
    const TestImage texels = MakeWide({kWidth - 3, 2 * kHeight, 1}, 1);
    // The lower part is exchanged for ones.
    const TestImage float_sums = MakeImage({.format = VK_FORMAT_R32_SFLOAT, .extent = {13, 40, 1}});
    const TestImage float_extremes =
        MakeImage({.format = VK_FORMAT_R32_SFLOAT, .extent = {4, 2, 1}, .layers = 3});
    for (const TestImage* image : {&sums, &extremes, &float_sums, &float_extremes}) {
        Clear(*image);
    }
    const auto noise = Noise(texels.LevelBytes(0), 9);
    Upload(texels, noise);
    TestBuffer counters = MakeBuffer(24, VK_BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT);
    std::ranges::fill(counters.span(), 0);
    TestBuffer old = MakeBuffer(2 * 2 * kWidth * kHeight);
    TestBuffer taken = MakeBuffer(kWidth * kHeight);
    Run(MakeImagePipeline(
            spirv::kImageWideAtomics,
            {Slot::Storage(MakeWideView(sums, VK_IMAGE_VIEW_TYPE_2D, VK_FORMAT_R64_UINT)),
             Slot::Storage(MakeWideView(extremes, VK_IMAGE_VIEW_TYPE_2D_ARRAY, VK_FORMAT_R64_SINT)),
             Slot::Texels(VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER,
                          MakeTexels(counters, VK_FORMAT_R64_UINT)),
             Slot::Storage(MakeView(float_sums, VK_IMAGE_VIEW_TYPE_2D)),
             Slot::Storage(MakeView(float_extremes, VK_IMAGE_VIEW_TYPE_2D_ARRAY)),
             Slot::Storage(MakeWideView(texels, VK_IMAGE_VIEW_TYPE_2D, VK_FORMAT_R64_UINT)),
             Slot::Buffer(old), Slot::Buffer(taken)}),
        kWidth / 8, kHeight / 8);

    std::vector<uint64_t> expected_sums(13 * 20);
    std::vector<int64_t> expected_extremes(4 * 2 * 3);
    std::vector<float> expected_float_sums(13 * 40);
    std::vector<float> expected_float_extremes(4 * 2 * 3);
    std::vector<uint64_t> expected_texels(size_t{kWidth - 3} * 2 * kHeight);
    std::memcpy(expected_texels.data(), noise.data(), noise.size());
    const auto old_at = [&](size_t i) {
        uint64_t value = 0;
        std::memcpy(&value, old.words + 2 * i, sizeof(value));
        return value;
    };
    for (uint32_t y = 0; y < kHeight; ++y) {
        for (uint32_t x = 0; x < kWidth; ++x) {
            const uint32_t i = y * kWidth + x;
            const uint64_t large = uint64_t{i} * 0x100000001u;
            if (x / 2 < 13 && y < 20) {
                expected_sums[y * 13 + x / 2] += large;
                expected_float_sums[y * 13 + x / 2] += static_cast<float>(i);
            }
            if (x < 13 && y < 20) {
                expected_float_sums[(y + 20) * 13 + x] = 1;
            }
            if (x < kWidth - 3) {
                uint64_t& texel = expected_texels[y * (kWidth - 3) + x];
                texel = texel * 3 + large;
                expected_texels[(y + kHeight) * (kWidth - 3) + x] = large;
            }
            EXPECT_EQ(old_at(i + size_t{kWidth} * kHeight), x < kWidth - 3 ? large : 0);
            if (y >= 20 || x >= 13) {
                // Rows that both parts reach are not looked at: who comes first is open.
                EXPECT_EQ(taken.floats()[i], 0) << x << ", " << y;
            }
            if (y % 4 >= 3) {
                continue;
            }
            const size_t place = y % 4 * 8 + x % 4;
            const int64_t wide = static_cast<int64_t>(large) - 0x1f400000000;
            const float narrow = static_cast<float>(i) - 500.5f;
            expected_extremes[place] = std::max(expected_extremes[place], wide);
            expected_extremes[place + 4] = std::min(expected_extremes[place + 4], wide);
            expected_float_extremes[place] = std::max(expected_float_extremes[place], narrow);
            expected_float_extremes[place + 4] =
                std::min(expected_float_extremes[place + 4], narrow);
        }
    }
    EXPECT_EQ(Texels<uint64_t>(sums), expected_sums);
    EXPECT_EQ(Texels<int64_t>(extremes), expected_extremes);
    EXPECT_EQ(Texels<uint64_t>(texels), expected_texels);
    EXPECT_EQ(Texels<float>(float_extremes), expected_float_extremes);
    // Rows 20 to 23 are sums first and ones later, or the other way around.
    auto float_texels = Texels<float>(float_sums);
    for (uint32_t y = 20; y < kHeight; ++y) {
        std::fill_n(float_texels.begin() + y * 13, 13, 0.0f);
        std::fill_n(expected_float_sums.begin() + y * 13, 13, 0.0f);
    }
    EXPECT_EQ(float_texels, expected_float_sums);
    // Each count was given once; texels outside give 0.
    for (uint32_t texel = 0; texel < 16; ++texel) {
        std::vector<uint64_t> seen;
        for (uint32_t i = texel; i < kWidth * kHeight; i += 16) {
            seen.push_back(old_at(i));
        }
        std::ranges::sort(seen);
        for (uint32_t i = 0; i < seen.size(); ++i) {
            ASSERT_EQ(seen[i], texel < 12 ? uint64_t{i} << 32 : 0) << "texel " << texel;
        }
    }
}

TEST_F(ImageWideAtomicsTest, WideColors) {
    VkImageCreateInfo info{.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
                           .imageType = VK_IMAGE_TYPE_2D,
                           .format = VK_FORMAT_R64_UINT,
                           .extent = {5, 3, 1},
                           .mipLevels = 1,
                           .arrayLayers = 1,
                           .samples = VK_SAMPLE_COUNT_1_BIT,
                           .usage = VK_IMAGE_USAGE_STORAGE_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT |
                                    VK_IMAGE_USAGE_TRANSFER_DST_BIT};
    TestImage image{.spec = {.format = info.format, .extent = info.extent}, .texel_bytes = 8};
    CreateBound(info, image);
    ToGeneral(image.handle, VK_IMAGE_ASPECT_COLOR_BIT);
    VkCommandBuffer commands = Begin();
    // "The first 2 array elements are reinterpreted as a single 64-bit element."
    const VkClearColorValue color{.uint32 = {0x89abcdef, 0x01234567, 5, 6}};
    const VkImageSubresourceRange all{VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
    vkCmdClearColorImage(commands, image.handle, VK_IMAGE_LAYOUT_GENERAL, &color, 1, &all);
    Run(commands);
    EXPECT_EQ(Texels<uint64_t>(image), std::vector<uint64_t>(15, 0x0123456789abcdef));
}

}  // namespace
}  // namespace fornax::test
