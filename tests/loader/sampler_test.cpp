// What samplers do at their edges: the least and greatest of texels, clamps of levels, the edges of
// cubes' faces, and samplers that a layout holds. Beside sampling_test.cpp, which tries the rest at
// random.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "tests/loader/image_fixture.h"
#include "tests/loader/sampling_reference.h"
#include "tests/loader/shaders/image_sample_cube.spv.h"
#include "tests/loader/shaders/image_sample_cube_uint.spv.h"
#include "tests/loader/shaders/image_sample_plane.spv.h"
#include "tests/loader/shaders/image_separate.spv.h"

namespace fornax::test {
namespace {

constexpr uint32_t kQueries = 128;

// As image_sample.comp has it.
struct Query {
    float position[4] = {};
    float gradient_x[4] = {};
    float gradient_y[4] = {};
    float lod[4] = {};
};

class SamplerTest : public ImageTest {
  protected:
    void SetUp() override {
        core_features_.shaderImageGatherExtended = VK_TRUE;
        core_features_.shaderSampledImageArrayDynamicIndexing = VK_TRUE;
        more_extensions_ = {VK_EXT_SAMPLER_FILTER_MINMAX_EXTENSION_NAME};
        ImageTest::SetUp();
    }

    ReferenceImage MakeReference(const TestImage& image, VkImageViewType type, uint32_t seed) {
        ReferenceImage reference{.type = type,
                                 .format = FindTexelReference(image.spec.format),
                                 .extent = image.spec.extent,
                                 .layers = image.spec.layers,
                                 .levels = {}};
        for (uint32_t level = 0; level < image.spec.levels; ++level) {
            auto texels = Noise(image.LevelBytes(level), seed + level);
            Upload(image, texels, level);
            reference.levels.push_back(std::move(texels));
        }
        return reference;
    }

    // textureLod of each query: four words a query.
    std::vector<uint32_t> Lookup(std::span<const uint32_t> spirv,
                                 VkImageView view,
                                 const VkSamplerCreateInfo& sampler,
                                 std::vector<Query> queries) {
        queries.resize(kQueries);
        TestBuffer in = MakeBuffer(kQueries * sizeof(Query) / 4);
        TestBuffer out = MakeBuffer(kQueries * 4);
        std::memcpy(in.words, queries.data(), in.size);
        const TestPipeline pipeline = MakeImagePipeline(
            spirv,
            {Slot::Combined(view, MakeSampler(sampler)), Slot::Buffer(in), Slot::Buffer(out)});
        VkCommandBuffer commands = Begin();
        Bind(commands, pipeline);
        const uint32_t operation = 0;
        vkCmdPushConstants(commands, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 4,
                           &operation);
        vkCmdDispatch(commands, kQueries / 64, 1, 1);
        Run(commands);
        return {out.words, out.words + kQueries * 4};
    }
};

// "The component-wise minimum (maximum) of the texels with non-zero weight", of all levels.
TEST_F(SamplerTest, LeastAndGreatestTexels) {
    VkFormatProperties properties;
    vkGetPhysicalDeviceFormatProperties(physical_, VK_FORMAT_R8G8B8A8_UNORM, &properties);
    ASSERT_TRUE(properties.optimalTilingFeatures &
                VK_FORMAT_FEATURE_SAMPLED_IMAGE_FILTER_MINMAX_BIT);
    const TestImage image = MakeImage({.format = VK_FORMAT_R8G8B8A8_UNORM,
                                       .extent = {23, 14, 1},
                                       .levels = 3,
                                       .usage = VK_IMAGE_USAGE_SAMPLED_BIT});
    const ReferenceImage reference = MakeReference(image, VK_IMAGE_VIEW_TYPE_2D, 5);
    const VkImageView view = MakeView(image, VK_IMAGE_VIEW_TYPE_2D);
    std::mt19937 random(8);
    const auto uniform = [&](float low, float high) {
        return std::uniform_real_distribution<float>(low, high)(random);
    };
    for (VkSamplerReductionMode mode :
         {VK_SAMPLER_REDUCTION_MODE_MIN, VK_SAMPLER_REDUCTION_MODE_MAX}) {
        for (VkSamplerMipmapMode mips :
             {VK_SAMPLER_MIPMAP_MODE_NEAREST, VK_SAMPLER_MIPMAP_MODE_LINEAR}) {
            SCOPED_TRACE(testing::Message() << "mode " << mode << " mips " << mips);
            const VkSamplerReductionModeCreateInfo reduction{
                .sType = VK_STRUCTURE_TYPE_SAMPLER_REDUCTION_MODE_CREATE_INFO,
                .reductionMode = mode};
            const VkSamplerCreateInfo sampler{.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO,
                                              .pNext = &reduction,
                                              .magFilter = VK_FILTER_LINEAR,
                                              .minFilter = VK_FILTER_LINEAR,
                                              .mipmapMode = mips,
                                              .addressModeU = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE,
                                              .addressModeV = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE,
                                              .maxLod = VK_LOD_CLAMP_NONE};
            std::vector<Query> queries(kQueries);
            for (Query& query : queries) {
                query.position[0] = uniform(-0.2f, 1.2f);
                query.position[1] = uniform(-0.2f, 1.2f);
                query.lod[0] = uniform(0.1f, 1.9f);
            }
            const auto words = Lookup(spirv::kImageSamplePlane, view, sampler, queries);
            uint32_t compared = 0;
            for (uint32_t i = 0; i < kQueries; ++i) {
                const double lod = queries[i].lod[0];
                std::vector<uint32_t> levels = {static_cast<uint32_t>(std::floor(lod))};
                if (mips == VK_SAMPLER_MIPMAP_MODE_LINEAR) {
                    levels.push_back(levels[0] + 1);
                } else {
                    levels[0] = static_cast<uint32_t>(std::ceil(lod + 0.5) - 1);
                }
                const double worst = mode == VK_SAMPLER_REDUCTION_MODE_MIN ? 2 : -2;
                Vec4 expected{worst, worst, worst, worst};
                // Where a weight or a level is all but nothing, rounding decides.
                bool tie = std::fabs(lod - std::nearbyint(lod)) < 1e-3 ||
                           std::fabs(lod * 2 - std::nearbyint(lod * 2)) < 1e-3;
                for (uint32_t level : levels) {
                    const VkExtent3D extent = reference.LevelExtent(level);
                    const auto width = static_cast<int>(extent.width);
                    const auto height = static_cast<int>(extent.height);
                    const double u = queries[i].position[0] * double{extent.width * 1.0} - 0.5;
                    const double v = queries[i].position[1] * double{extent.height * 1.0} - 0.5;
                    tie |= std::fabs(u - std::nearbyint(u)) < 1e-3 ||
                           std::fabs(v - std::nearbyint(v)) < 1e-3;
                    for (int tap = 0; tap < 4; ++tap) {
                        const int x = static_cast<int>(std::floor(u)) + tap % 2;
                        const int y = static_cast<int>(std::floor(v)) + tap / 2;
                        const Vec4 texel = reference.Texel(level, std::clamp(x, 0, width - 1),
                                                           std::clamp(y, 0, height - 1), 0);
                        for (size_t k = 0; k < 4; ++k) {
                            expected[k] = mode == VK_SAMPLER_REDUCTION_MODE_MIN
                                              ? std::min(expected[k], texel[k])
                                              : std::max(expected[k], texel[k]);
                        }
                    }
                }
                for (size_t k = 0; k < 4 && !tie; ++k) {
                    ++compared;
                    ASSERT_NEAR(std::bit_cast<float>(words[i * 4 + k]), expected[k], 1e-6) << i;
                }
            }
            EXPECT_GT(compared, kQueries * 2);
        }
    }
}

// "Level-of-Detail Operation" and "Image Level(s) Selection": clamps, and which filter follows.
TEST_F(SamplerTest, LevelsAreClamped) {
    const TestImage image = MakeImage({.format = VK_FORMAT_R32_SFLOAT,
                                       .extent = {16, 16, 1},
                                       .levels = 4,
                                       .usage = VK_IMAGE_USAGE_SAMPLED_BIT});
    for (uint32_t level = 0; level < 4; ++level) {
        std::vector<float> texels(image.LevelBytes(level) / 4);
        // Columns are 0 and 1 in turn, so that filters differ.
        for (size_t i = 0; i < texels.size(); ++i) {
            texels[i] = 10.0f * static_cast<float>(level) + static_cast<float>(i % 2);
        }
        std::vector<uint8_t> bytes(texels.size() * 4);
        std::memcpy(bytes.data(), texels.data(), bytes.size());
        Upload(image, bytes, level);
    }
    const VkImageView view = MakeView(image, VK_IMAGE_VIEW_TYPE_2D);
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    struct Case {
        float bias, least, most, lod;
        VkSamplerMipmapMode mips;
        float expected;
    };
    constexpr auto kNearest = VK_SAMPLER_MIPMAP_MODE_NEAREST;
    constexpr auto kLinear = VK_SAMPLER_MIPMAP_MODE_LINEAR;
    // The position is a texel's centre for the magnifying filter, which is nearest: 0 of column 0;
    // and a quarter of a texel beside it, which the minifying, linear one sees.
    const Case cases[] = {
        {0, 0, VK_LOD_CLAMP_NONE, 0, kNearest, 0},   // magnified
        {0, 0, VK_LOD_CLAMP_NONE, -3, kNearest, 0},  //
        {0, 0, 0, 2, kNearest, 0},                   // clamped to 0: magnified
        {0, 0, 0.25f, 2, kNearest, 0.25f},           // level 0, minified
        {0, 0.25f, 0.25f, -9, kNearest, 0.25f},      //
        {0, 0.5f, 0.5f, 0, kNearest, 0.25f},         // half way: the finer level
        {0, 1, 1, 0, kNearest, 10},                  // one level, whatever is asked
        {0, 1.5f, 1.5f, 0, kLinear, 15},             //
        {0, 1, 2, 7, kLinear, 20},                   //
        {0, 9, 12, 0, kLinear, 30},                  // beyond the last level
        {0, 0, VK_LOD_CLAMP_NONE, 99, kLinear, 30},  //
        {0, 0, VK_LOD_CLAMP_NONE, kInfinity, kLinear, 30},
        {0, 0, VK_LOD_CLAMP_NONE, -kInfinity, kLinear, 0},
        {0, 2, VK_LOD_CLAMP_NONE, -kInfinity, kLinear, 20},
        {16, 0, VK_LOD_CLAMP_NONE, -14, kLinear, 20},  // the bias counts before the clamp
        {-16, 1, VK_LOD_CLAMP_NONE, 14, kLinear, 10},  //
        {0, -5, -1, 0, kLinear, 0},                    // below all: magnified
    };
    for (const Case& one : cases) {
        SCOPED_TRACE(testing::Message() << "clamp " << one.least << " to " << one.most << ", level "
                                        << one.lod << ", bias " << one.bias);
        const VkSamplerCreateInfo sampler{.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO,
                                          .magFilter = VK_FILTER_NEAREST,
                                          .minFilter = VK_FILTER_LINEAR,
                                          .mipmapMode = one.mips,
                                          .addressModeU = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE,
                                          .addressModeV = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE,
                                          .mipLodBias = one.bias,
                                          .minLod = one.least,
                                          .maxLod = one.most};
        Query query;
        query.position[0] = 0.75f / 16;  // a quarter of the way from column 0 to column 1
        query.position[1] = 0.5f / 16;
        query.lod[0] = one.lod;
        const auto words = Lookup(spirv::kImageSamplePlane, view, sampler, {query});
        EXPECT_NEAR(std::bit_cast<float>(words[0]), one.expected, 1e-5);
    }
}

// "Cube Map Edge Handling": nearest texels are clamped to the edge of the face, also where the
// direction meets the edge itself.
TEST_F(SamplerTest, NearestTexelsOfCubesStayOnTheFace) {
    constexpr int kSize = 12;
    for (VkFormat format : {VK_FORMAT_R32_UINT, VK_FORMAT_R8G8B8A8_UNORM}) {
        SCOPED_TRACE(format);
        const TestImage image = MakeImage({.format = format,
                                           .extent = {kSize, kSize, 1},
                                           .layers = 6,
                                           .usage = VK_IMAGE_USAGE_SAMPLED_BIT,
                                           .flags = VK_IMAGE_CREATE_CUBE_COMPATIBLE_BIT});
        const ReferenceImage reference = MakeReference(image, VK_IMAGE_VIEW_TYPE_CUBE, 3);
        struct Place {
            int face, x, y;
        };
        std::vector<Query> queries;
        std::vector<Place> places;
        for (int i = 0; i < kSize; ++i) {
            // The centre of a texel, along an edge of two faces; z goes before y before x.
            const float t = (2 * static_cast<float>(i) + 1) / kSize - 1;
            const int back = kSize - 1 - i;
            const auto add = [&](float x, float y, float z, Place place) {
                queries.push_back({.position = {x, y, z, 0}});
                places.push_back(place);
            };
            add(1, t, 1, {4, kSize - 1, back});
            add(-1, t, 1, {4, 0, back});
            add(t, 1, 1, {4, i, 0});
            add(t, -1, 1, {4, i, kSize - 1});
            add(1, t, -1, {5, 0, back});
            add(-1, t, -1, {5, kSize - 1, back});
            add(1, 1, t, {2, kSize - 1, i});
            add(1, -1, t, {3, kSize - 1, back});
        }
        const bool integer = format == VK_FORMAT_R32_UINT;
        const auto words = Lookup(integer ? std::span<const uint32_t>(spirv::kImageSampleCubeUint)
                                          : std::span<const uint32_t>(spirv::kImageSampleCube),
                                  MakeView(image, VK_IMAGE_VIEW_TYPE_CUBE),
                                  {.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO}, queries);
        for (size_t i = 0; i < places.size(); ++i) {
            const Vec4 expected = reference.Texel(0, places[i].x, places[i].y, places[i].face);
            const uint32_t word = words[i * 4];
            const double value =
                integer ? double{static_cast<double>(word)} : double{std::bit_cast<float>(word)};
            ASSERT_NEAR(value, expected[0], 1e-6)
                << queries[i].position[0] << ", " << queries[i].position[1] << ", "
                << queries[i].position[2];
        }
    }
}

// The layout's samplers count, whatever the updates say, and after the application destroyed them.
TEST_F(SamplerTest, SamplersOfTheLayout) {
    const TestImage image = MakeImage({.format = VK_FORMAT_R8G8B8A8_UNORM,
                                       .extent = {9, 7, 1},
                                       .usage = VK_IMAGE_USAGE_SAMPLED_BIT});
    const ReferenceImage reference = MakeReference(image, VK_IMAGE_VIEW_TYPE_2D, 6);
    const VkImageView view = MakeView(image, VK_IMAGE_VIEW_TYPE_2D);
    VkSamplerCreateInfo infos[3];
    std::vector<Slot> separate;
    for (uint32_t i = 0; i < 3; ++i) {
        infos[i] = {.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO,
                    .magFilter = i == 1 ? VK_FILTER_NEAREST : VK_FILTER_LINEAR,
                    .addressModeU = i == 0 ? VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER
                                           : VK_SAMPLER_ADDRESS_MODE_MIRRORED_REPEAT,
                    .borderColor = VK_BORDER_COLOR_FLOAT_OPAQUE_WHITE};
    }
    for (uint32_t i = 0; i < 2; ++i) {
        Slot slot = Slot::Sampler(VK_NULL_HANDLE);
        slot.immutable = MakeSampler(infos[i]);
        separate.push_back(slot);
    }
    Slot combined = Slot::Combined(view, MakeSampler(infos[1]));
    combined.immutable = MakeSampler(infos[2]);
    std::mt19937 random(3);
    TestBuffer in = MakeBuffer(64 * 2);
    for (size_t i = 0; i < 128; ++i) {
        in.floats()[i] = std::uniform_real_distribution<float>(-1, 2)(random);
    }
    TestBuffer out = MakeBuffer(64 * 8);
    const TestPipeline pipeline =
        MakeImagePipeline(spirv::kImageSeparate,
                          std::vector<std::vector<Slot>>{{Slot::Sampled(view), Slot::Sampled(view)},
                                                         separate,
                                                         {combined},
                                                         {Slot::Buffer(in)},
                                                         {Slot::Buffer(out)}});
    for (uint32_t sampler = 0; sampler < 2; ++sampler) {
        VkCommandBuffer commands = Begin();
        Bind(commands, pipeline);
        const uint32_t push[] = {sampler, sampler};
        vkCmdPushConstants(commands, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 8, push);
        vkCmdDispatch(commands, 1, 1, 1);
        Run(commands);
        for (uint32_t i = 0; i < 64; ++i) {
            ReferenceQuery query;
            query.position[0] = in.floats()[2 * i];
            query.position[1] = in.floats()[2 * i + 1];
            const std::optional<Vec4> expected[] = {
                SampleReference(reference, infos[sampler], query),
                SampleReference(reference, infos[2], query)};
            for (uint32_t which = 0; which < 2; ++which) {
                for (uint32_t k = 0; k < 4 && expected[which]; ++k) {
                    ASSERT_NEAR(out.floats()[(2 * i + which) * 4 + k], (*expected[which])[k], 2e-4)
                        << "sampler " << sampler << " query " << i << " which " << which;
                }
            }
        }
    }
}

}  // namespace
}  // namespace fornax::test
