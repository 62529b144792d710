// Sampled images through the loader, against a reference in double precision.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

#include "tests/loader/image_fixture.h"
#include "tests/loader/sampling_dimensions.h"
#include "tests/loader/sampling_reference.h"
#include "tests/loader/shaders/image_sample_int.spv.h"
#include "tests/loader/shaders/image_sample_plain.spv.h"
#include "tests/loader/shaders/image_sample_uint.spv.h"
#include "tests/loader/shaders/image_separate.spv.h"

namespace fornax::test {

using namespace sampling;

namespace {

class SamplingTest : public ImageTest {
  protected:
    void SetUp() override {
        core_features_.imageCubeArray = VK_TRUE;
        core_features_.shaderImageGatherExtended = VK_TRUE;
        more_extensions_ = {VK_KHR_SAMPLER_MIRROR_CLAMP_TO_EDGE_EXTENSION_NAME};
        is_peer_ = std::getenv("FORNAX_TEST_DEVICE") != nullptr;
        core_features_.shaderSampledImageArrayDynamicIndexing = !is_peer_;
        if (!is_peer_) {
            EnableYoungFormats();
        }
        ImageTest::SetUp();
    }

    // Other drivers filter with eight bits of weight.
    double Tolerance() const { return is_peer_ ? 0.02 : 2e-4; }

    struct Sampled {
        TestImage image;
        ReferenceImage reference;
        VkImageView view = VK_NULL_HANDLE;
    };
    Sampled MakeSampled(const Dimension& dimension,
                        VkFormat format,
                        uint32_t levels,
                        VkComponentMapping components = {}) {
        Sampled made;
        made.reference = {.type = dimension.view,
                          .format = FindTexelReference(format),
                          .extent = dimension.extent,
                          .layers = dimension.layers,
                          .levels = {},
                          .components = components};
        made.image =
            MakeImage({.type = dimension.type,
                       .format = format,
                       .extent = dimension.extent,
                       .levels = levels,
                       .layers = dimension.layers,
                       .usage = VK_IMAGE_USAGE_SAMPLED_BIT,
                       .flags = made.reference.IsCube()
                                    ? VkImageCreateFlags{VK_IMAGE_CREATE_CUBE_COMPATIBLE_BIT}
                                    : 0});
        for (uint32_t level = 0; level < levels; ++level) {
            auto texels = Noise(made.image.LevelBytes(level), 17 + level);
            if (made.reference.format->kind == TexelReference::Kind::kFloat ||
                made.reference.format->kind == TexelReference::Kind::kUfloat) {
                MakeModest(*made.reference.format, texels);
            }
            Upload(made.image, texels, level);
            made.reference.levels.push_back(std::move(texels));
        }
        made.view = MakeView(made.image, VkImageViewCreateInfo{.viewType = dimension.view,
                                                               .components = components});
        return made;
    }

    // Floats from 1/2 to 2, so that tolerances are one for all formats.
    static void MakeModest(const TexelReference& format, std::vector<uint8_t>& texels) {
        for (size_t at = 0; at < texels.size(); at += format.bytes()) {
            for (size_t i = 0; i < 4; ++i) {
                if (format.bits[i] == 32) {
                    uint32_t word = 0;
                    std::memcpy(&word, texels.data() + at + i * 4, 4);
                    word = (word & 0x00ffffff) | 0x3f000000;
                    std::memcpy(texels.data() + at + i * 4, &word, 4);
                } else if (format.bits[i] == 16) {
                    uint8_t& high = texels[at + i * 2 + 1];
                    high = (high & 0x07) | 0x38;
                }
            }
            if (format.kind == TexelReference::Kind::kUfloat) {
                // Exponents of 14 and 15 in each component.
                uint32_t word = 0;
                std::memcpy(&word, texels.data() + at, 4);
                word = (word & ~0xf83e07c0u) | 14u << 6 | 14u << 17 | 14u << 27;
                std::memcpy(texels.data() + at, &word, 4);
            }
        }
    }

    // Texels by their numbers.
    void CompareFetches(const TestPipeline& pipeline,
                        const Sampled& sampled,
                        uint32_t seed,
                        std::vector<Query> queries,
                        const TestBuffer& in,
                        const TestBuffer& out) {
        std::mt19937 numbers(seed);
        const ReferenceImage& reference = sampled.reference;
        for (Query& query : queries) {
            const uint32_t level = numbers() % 3;
            const VkExtent3D extent = reference.LevelExtent(level);
            const uint32_t limits[] = {extent.width, extent.height, extent.depth};
            query.lod[0] = static_cast<float>(level);
            for (int i = 0; i < reference.Axes(); ++i) {
                query.position[i] = static_cast<float>(numbers() % limits[i]);
            }
            if (reference.IsArray()) {
                query.position[reference.Axes()] = static_cast<float>(numbers() % reference.layers);
            }
        }
        std::memcpy(in.words, queries.data(), in.size);
        RunQueries(pipeline, kFetch);
        for (uint32_t i = 0; i < kQueries; ++i) {
            const auto at = [&](int axis) { return static_cast<int>(queries[i].position[axis]); };
            const int axes = reference.Axes();
            const Vec4 expected = reference.Texel(static_cast<uint32_t>(queries[i].lod[0]), at(0),
                                                  axes > 1 ? at(1) : 0,
                                                  axes > 2              ? at(2)
                                                  : reference.IsArray() ? at(axes)
                                                                        : 0);
            for (size_t k = 0; k < 4; ++k) {
                ASSERT_NEAR(std::bit_cast<float>(out.words[i * 4 + k]), expected[k], 1e-6);
            }
        }
    }

    std::vector<Query> MakeQueries(const Dimension& dimension, uint32_t seed, float range) {
        std::mt19937 random(seed);
        const auto uniform = [&](float low, float high) {
            return std::uniform_real_distribution<float>(low, high)(random);
        };
        std::vector<Query> queries(kQueries);
        const bool cube = dimension.view == VK_IMAGE_VIEW_TYPE_CUBE ||
                          dimension.view == VK_IMAGE_VIEW_TYPE_CUBE_ARRAY;
        for (Query& query : queries) {
            query = {};
            for (size_t i = 0; i < 4; ++i) {
                query.position[i] = cube ? uniform(-1, 1) : uniform(-range, 1 + range);
                query.gradient_x[i] = uniform(-0.3f, 0.3f);
                query.gradient_y[i] = uniform(-0.3f, 0.3f);
            }
            const ReferenceImage shape{.type = dimension.view};
            if (shape.IsArray()) {
                const auto layers =
                    static_cast<float>(cube ? dimension.layers / 6 : dimension.layers);
                query.position[shape.Axes()] = uniform(-1, layers + 1);
            }
            query.lod[0] = uniform(-1.5f, 5);
        }
        return queries;
    }

    void Compare(const Sampled& sampled,
                 const Dimension& dimension,
                 const VkSamplerCreateInfo& sampler,
                 Operation operation,
                 std::span<Query> queries,
                 const TestBuffer& out) {
        uint32_t compared = 0;
        for (uint32_t i = 0; i < queries.size(); ++i) {
            const Query& query = queries[i];
            ReferenceQuery wanted;
            std::copy_n(query.position, 4, wanted.position);
            std::copy_n(query.gradient_x, 3, wanted.gradient_x);
            std::copy_n(query.gradient_y, 3, wanted.gradient_y);
            wanted.lod = query.lod[0];
            wanted.has_gradients = operation == kGrad;
            if (operation == kOffset) {
                std::copy_n(dimension.offset, 3, wanted.offset);
            }
            const auto expected = operation == kGather
                                      ? GatherReference(sampled.reference, sampler, wanted, 2)
                                      : SampleReference(sampled.reference, sampler, wanted);
            if (!expected) {
                continue;
            }
            ++compared;
            for (size_t k = 0; k < 4; ++k) {
                const uint32_t word = out.words[i * 4 + k];
                const double value = sampled.reference.format->integer()
                                         ? double{static_cast<double>(word)}
                                         : double{std::bit_cast<float>(word)};
                // Levels of detail from logarithms of gradients are not exact anywhere.
                const double tolerance = sampled.reference.format->integer() ? 0
                                         : operation == kGrad || sampler.mipLodBias != 0
                                             ? 10 * Tolerance()
                                             : Tolerance();
                ASSERT_NEAR(value, (*expected)[k], tolerance)
                    << "query " << i << " component " << k << " operation " << operation << " at "
                    << query.position[0] << ", " << query.position[1] << ", " << query.position[2]
                    << ", " << query.position[3] << " lod " << query.lod[0];
            }
        }
        EXPECT_GT(compared, queries.size() / 3);
    }

    void RunQueries(const TestPipeline& pipeline, Operation operation) {
        VkCommandBuffer commands = Begin();
        Bind(commands, pipeline);
        vkCmdPushConstants(commands, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 4,
                           &operation);
        vkCmdDispatch(commands, kQueries / 64, 1, 1);
        Run(commands);
    }

    // Gathers with an offset for each texel, and with one that is no constant.
    void CompareGathers(const TestPipeline& pipeline,
                        const Sampled& sampled,
                        const VkSamplerCreateInfo& sampler,
                        std::span<const Query> queries,
                        const TestBuffer& out) {
        constexpr int kOffsets[4][2] = {{1, 0}, {-3, 2}, {0, -1}, {4, 4}};
        for (Operation operation : {kGatherOffsets, kGatherOffset}) {
            RunQueries(pipeline, operation);
            for (uint32_t i = 0; i < kQueries; ++i) {
                ReferenceQuery query;
                std::copy_n(queries[i].position, 4, query.position);
                for (size_t k = 0; k < 4; ++k) {
                    std::optional<Vec4> expected;
                    if (operation == kGatherOffsets) {
                        std::copy_n(kOffsets[k], 2, query.offset);
                        expected = GatherReference(sampled.reference, sampler, query, 1);
                    } else {
                        query.offset[0] = static_cast<int>(i % 5);
                        query.offset[1] = -static_cast<int>(i % 3);
                        expected = GatherReference(sampled.reference, sampler, query, 0);
                    }
                    if (!expected) {
                        continue;
                    }
                    // The last of the four is the texel at the offset itself.
                    const size_t which = operation == kGatherOffsets ? 3 : k;
                    ASSERT_NEAR(std::bit_cast<float>(out.words[i * 4 + k]), (*expected)[which],
                                Tolerance())
                        << "operation " << operation << " query " << i << " texel " << k;
                }
            }
        }
    }

    bool is_peer_ = false;
};

VkSamplerCreateInfo RandomSampler(std::mt19937& random) {
    const auto below = [&](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
    constexpr VkSamplerAddressMode kModes[] = {
        VK_SAMPLER_ADDRESS_MODE_REPEAT, VK_SAMPLER_ADDRESS_MODE_MIRRORED_REPEAT,
        VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE, VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER,
        VK_SAMPLER_ADDRESS_MODE_MIRROR_CLAMP_TO_EDGE};
    constexpr VkBorderColor kColors[] = {VK_BORDER_COLOR_FLOAT_TRANSPARENT_BLACK,
                                         VK_BORDER_COLOR_FLOAT_OPAQUE_BLACK,
                                         VK_BORDER_COLOR_FLOAT_OPAQUE_WHITE};
    return {.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO,
            .magFilter = below(2) ? VK_FILTER_LINEAR : VK_FILTER_NEAREST,
            .minFilter = below(2) ? VK_FILTER_LINEAR : VK_FILTER_NEAREST,
            .mipmapMode = below(2) ? VK_SAMPLER_MIPMAP_MODE_LINEAR : VK_SAMPLER_MIPMAP_MODE_NEAREST,
            .addressModeU = kModes[below(5)],
            .addressModeV = kModes[below(5)],
            .addressModeW = kModes[below(5)],
            .mipLodBias = below(3) ? 0 : 0.75f,
            .minLod = below(3) ? 0 : 1.25f,
            .maxLod = below(3) ? VK_LOD_CLAMP_NONE : 1.75f,
            .borderColor = kColors[below(3)]};
}

TEST_F(SamplingTest, EveryDimensionAndSampler) {
    std::mt19937 random(1);
    for (const Dimension& dimension : kDimensions) {
        SCOPED_TRACE(testing::Message() << "view type " << dimension.view);
        const Sampled sampled = MakeSampled(dimension, VK_FORMAT_R8G8B8A8_UNORM, 3);
        TestBuffer in = MakeBuffer(kQueries * sizeof(Query) / 4);
        TestBuffer out = MakeBuffer(kQueries * 4);
        for (uint32_t round = 0; round < 6; ++round) {
            SCOPED_TRACE(testing::Message() << "sampler " << round);
            const VkSamplerCreateInfo sampler = RandomSampler(random);
            std::vector<Query> queries = MakeQueries(dimension, round, 1.5f);
            std::memcpy(in.words, queries.data(), in.size);
            const TestPipeline pipeline = MakeImagePipeline(
                dimension.spirv, {Slot::Combined(sampled.view, MakeSampler(sampler)),
                                  Slot::Buffer(in), Slot::Buffer(out)});
            for (Operation operation : {kLod, kGrad, kOffset, kGather}) {
                if ((operation == kOffset && !dimension.offsets) ||
                    (operation == kGather && !dimension.gathers)) {
                    continue;
                }
                // The peer has a level of detail of its own for gradients, as it may.
                if (operation == kGrad && is_peer_) {
                    continue;
                }
                RunQueries(pipeline, operation);
                Compare(sampled, dimension, sampler, operation, queries, out);
                if (HasFatalFailure()) {
                    return;
                }
            }
            if (dimension.view == VK_IMAGE_VIEW_TYPE_2D) {
                CompareGathers(pipeline, sampled, sampler, queries, out);
                if (HasFatalFailure()) {
                    return;
                }
            }
            RunQueries(pipeline, kSizes);
            // The peer answers for one level only where the lanes ask for several.
            for (uint32_t i = 0; i < kQueries && !is_peer_; ++i) {
                ASSERT_EQ(out.words[i * 4], 3u);
                const int level = std::max(0, static_cast<int>(queries[i].lod[0]));
                if (level < 3) {
                    ASSERT_EQ(out.words[i * 4 + 1],
                              sampled.image.LevelExtent(static_cast<uint32_t>(level)).width);
                }
            }
            if (!dimension.offsets) {
                continue;
            }
            CompareFetches(pipeline, sampled, round, queries, in, out);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

// Rows of 1024 and more bytes, which the base level has further apart than they are long.
TEST_F(SamplingTest, RowsThatWouldBeInOneCacheSet) {
    for (const size_t which : {size_t{2}, size_t{3}, size_t{4}}) {
        Dimension dimension = kDimensions[which];
        SCOPED_TRACE(testing::Message() << "view type " << dimension.view);
        dimension.extent.width = 512;
        const Sampled sampled = MakeSampled(dimension, VK_FORMAT_R8G8B8A8_UNORM, 3);
        TestBuffer in = MakeBuffer(kQueries * sizeof(Query) / 4);
        TestBuffer out = MakeBuffer(kQueries * 4);
        const VkSamplerCreateInfo sampler{.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO,
                                          .magFilter = VK_FILTER_NEAREST,
                                          .minFilter = VK_FILTER_LINEAR,
                                          .maxLod = VK_LOD_CLAMP_NONE};
        std::vector<Query> queries = MakeQueries(dimension, 7, 0.5f);
        std::memcpy(in.words, queries.data(), in.size);
        const TestPipeline pipeline =
            MakeImagePipeline(dimension.spirv, {Slot::Combined(sampled.view, MakeSampler(sampler)),
                                                Slot::Buffer(in), Slot::Buffer(out)});
        RunQueries(pipeline, kLod);
        Compare(sampled, dimension, sampler, kLod, queries, out);
        if (!HasFatalFailure()) {
            CompareFetches(pipeline, sampled, 7, queries, in, out);
        }
        if (HasFatalFailure()) {
            return;
        }
    }
}

TEST_F(SamplingTest, EveryFormat) {
    int formats = 0;
    for (const TexelReference& format : AllTexelReferences()) {
        VkFormatProperties properties;
        vkGetPhysicalDeviceFormatProperties(physical_, format.format, &properties);
        const VkFormatFeatureFlags features = properties.optimalTilingFeatures;
        if (!(features & VK_FORMAT_FEATURE_SAMPLED_IMAGE_BIT) || format.depth || format.stencil) {
            continue;
        }
        SCOPED_TRACE(format.format);
        ++formats;
        Dimension plane = kDimensions[2];
        if (format.integer()) {
            plane.spirv = format.kind == TexelReference::Kind::kUint
                              ? std::span<const uint32_t>(spirv::kImageSampleUint)
                              : std::span<const uint32_t>(spirv::kImageSampleInt);
        }
        const bool linear = features & VK_FORMAT_FEATURE_SAMPLED_IMAGE_FILTER_LINEAR_BIT;
        const Sampled sampled = MakeSampled(plane, format.format, 1,
                                            {VK_COMPONENT_SWIZZLE_B, VK_COMPONENT_SWIZZLE_IDENTITY,
                                             VK_COMPONENT_SWIZZLE_A, VK_COMPONENT_SWIZZLE_R});
        const VkSamplerCreateInfo sampler{
            .sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO,
            .magFilter = linear ? VK_FILTER_LINEAR : VK_FILTER_NEAREST,
            .minFilter = linear ? VK_FILTER_LINEAR : VK_FILTER_NEAREST,
            .addressModeU = VK_SAMPLER_ADDRESS_MODE_MIRRORED_REPEAT,
            .addressModeV = VK_SAMPLER_ADDRESS_MODE_REPEAT,
            .addressModeW = VK_SAMPLER_ADDRESS_MODE_REPEAT};
        std::vector<Query> queries = MakeQueries(plane, 3, 1.5f);
        TestBuffer in = MakeBuffer(kQueries * sizeof(Query) / 4);
        TestBuffer out = MakeBuffer(kQueries * 4);
        std::memcpy(in.words, queries.data(), in.size);
        // The range of shared exponents is not modest.
        if (format.kind == TexelReference::Kind::kSharedExponent) {
            continue;
        }
        const TestPipeline pipeline =
            MakeImagePipeline(plane.spirv, {Slot::Combined(sampled.view, MakeSampler(sampler)),
                                            Slot::Buffer(in), Slot::Buffer(out)});
        RunQueries(pipeline, kLod);
        Compare(sampled, plane, sampler, kLod, queries, out);
        if (HasFatalFailure()) {
            return;
        }
    }
    EXPECT_GE(formats, 30);
}

TEST_F(SamplingTest, SharedExponents) {
    const Dimension& plane = kDimensions[2];
    Sampled sampled = MakeSampled(plane, VK_FORMAT_E5B9G9R9_UFLOAT_PACK32, 1);
    const VkSamplerCreateInfo sampler{.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO};
    std::vector<Query> queries = MakeQueries(plane, 4, 0);
    TestBuffer in = MakeBuffer(kQueries * sizeof(Query) / 4);
    TestBuffer out = MakeBuffer(kQueries * 4);
    std::memcpy(in.words, queries.data(), in.size);
    RunQueries(MakeImagePipeline(plane.spirv, {Slot::Combined(sampled.view, MakeSampler(sampler)),
                                               Slot::Buffer(in), Slot::Buffer(out)}),
               kLod);
    Compare(sampled, plane, sampler, kLod, queries, out);
}

// The average of equal texels is that texel, to the last bit and where it is infinite.
TEST_F(SamplingTest, EqualTexelsStayWhatTheyAre) {
    const Dimension& plane = kDimensions[2];
    const float color[] = {0.7529411764705882f, -1.1e-30f, 3.3e38f, INFINITY};
    const TestImage image = MakeImage({.format = VK_FORMAT_R32G32B32A32_SFLOAT,
                                       .extent = plane.extent,
                                       .levels = 3,
                                       .usage = VK_IMAGE_USAGE_SAMPLED_BIT});
    for (uint32_t level = 0; level < 3; ++level) {
        std::vector<uint8_t> texels(image.LevelBytes(level));
        for (size_t at = 0; at < texels.size(); at += sizeof(color)) {
            std::memcpy(texels.data() + at, color, sizeof(color));
        }
        Upload(image, texels, level);
    }
    const VkSamplerCreateInfo sampler{.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO,
                                      .magFilter = VK_FILTER_LINEAR,
                                      .minFilter = VK_FILTER_LINEAR,
                                      .mipmapMode = VK_SAMPLER_MIPMAP_MODE_LINEAR,
                                      .maxLod = VK_LOD_CLAMP_NONE};
    std::vector<Query> queries = MakeQueries(plane, 6, 1);
    TestBuffer in = MakeBuffer(kQueries * sizeof(Query) / 4);
    TestBuffer out = MakeBuffer(kQueries * 4);
    std::memcpy(in.words, queries.data(), in.size);
    const VkImageView view = MakeView(image, plane.view);
    RunQueries(MakeImagePipeline(plane.spirv, {Slot::Combined(view, MakeSampler(sampler)),
                                               Slot::Buffer(in), Slot::Buffer(out)}),
               kLod);
    const size_t exact = is_peer_ ? 1 : 4;
    for (size_t i = 0; i < kQueries; ++i) {
        for (size_t k = 0; k < exact; ++k) {
            ASSERT_EQ(out.floats()[4 * i + k], color[k]) << i;
        }
    }
}

TEST_F(SamplingTest, UnnormalizedCoordinates) {
    const Dimension& plane = kDimensions[2];
    const Sampled sampled = MakeSampled(plane, VK_FORMAT_R32_SFLOAT, 1);
    std::vector<Query> queries = MakeQueries(plane, 5, 0.5f);
    for (Query& query : queries) {
        query.position[0] *= 23;
        query.position[1] *= 14;
        query.lod[0] = 0;
    }
    TestBuffer in = MakeBuffer(kQueries * sizeof(Query) / 4);
    TestBuffer out = MakeBuffer(kQueries * 4);
    std::memcpy(in.words, queries.data(), in.size);
    for (VkFilter filter : {VK_FILTER_NEAREST, VK_FILTER_LINEAR}) {
        const VkSamplerCreateInfo sampler{.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO,
                                          .magFilter = filter,
                                          .minFilter = filter,
                                          .addressModeU = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE,
                                          .addressModeV = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER,
                                          .borderColor = VK_BORDER_COLOR_FLOAT_OPAQUE_WHITE,
                                          .unnormalizedCoordinates = VK_TRUE};
        RunQueries(MakeImagePipeline(spirv::kImageSamplePlain,
                                     {Slot::Combined(sampled.view, MakeSampler(sampler)),
                                      Slot::Buffer(in), Slot::Buffer(out)}),
                   kLod);
        Compare(sampled, plane, sampler, kLod, queries, out);
    }
}

TEST_F(SamplingTest, ImagesAndSamplersApart) {
    if (is_peer_) {
        GTEST_SKIP() << "The peer has no dynamic indexing.";
    }
    const Dimension& plane = kDimensions[2];
    const Sampled images[] = {MakeSampled(plane, VK_FORMAT_R8G8B8A8_UNORM, 1),
                              MakeSampled(plane, VK_FORMAT_R16G16_UNORM, 1)};
    VkSamplerCreateInfo infos[2];
    VkSampler samplers[2];
    for (uint32_t i = 0; i < 2; ++i) {
        infos[i] = {.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO,
                    .magFilter = i ? VK_FILTER_LINEAR : VK_FILTER_NEAREST,
                    .minFilter = i ? VK_FILTER_LINEAR : VK_FILTER_NEAREST};
        samplers[i] = MakeSampler(infos[i]);
    }
    std::mt19937 random(3);
    TestBuffer in = MakeBuffer(64 * 2);
    for (size_t i = 0; i < 128; ++i) {
        in.floats()[i] = std::uniform_real_distribution<float>(-1, 2)(random);
    }
    TestBuffer out = MakeBuffer(64 * 8);
    const TestPipeline pipeline = MakeImagePipeline(
        spirv::kImageSeparate, std::vector<std::vector<Slot>>{
                                   {Slot::Sampled(images[0].view), Slot::Sampled(images[1].view)},
                                   {Slot::Sampler(samplers[0]), Slot::Sampler(samplers[1])},
                                   {Slot::Combined(images[1].view, samplers[1])},
                                   {Slot::Buffer(in)},
                                   {Slot::Buffer(out)}});
    for (uint32_t image = 0; image < 2; ++image) {
        for (uint32_t sampler = 0; sampler < 2; ++sampler) {
            VkCommandBuffer commands = Begin();
            Bind(commands, pipeline);
            const uint32_t push[] = {image, sampler};
            vkCmdPushConstants(commands, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 8, push);
            vkCmdDispatch(commands, 1, 1, 1);
            Run(commands);
            for (uint32_t i = 0; i < 64; ++i) {
                ReferenceQuery query;
                query.position[0] = in.floats()[2 * i];
                query.position[1] = in.floats()[2 * i + 1];
                const std::optional<Vec4> expected[] = {
                    SampleReference(images[image].reference, infos[sampler], query),
                    SampleReference(images[1].reference, infos[1], query)};
                for (uint32_t which = 0; which < 2; ++which) {
                    for (uint32_t k = 0; k < 4 && expected[which]; ++k) {
                        ASSERT_NEAR(out.floats()[(2 * i + which) * 4 + k], (*expected[which])[k],
                                    Tolerance())
                            << "image " << image << " sampler " << sampler << " query " << i;
                    }
                }
            }
        }
    }
}

}  // namespace
}  // namespace fornax::test
