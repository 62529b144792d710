// Samples with implicit levels of detail, against the reference of sampling: what a quad's
// positions differ by gives the gradients.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "tests/loader/image_fixture.h"
#include "tests/loader/sampling_reference.h"
#include "tests/loader/shaders/image_derivatives_cube.spv.h"
#include "tests/loader/shaders/image_derivatives_cube_array.spv.h"
#include "tests/loader/shaders/image_derivatives_line.spv.h"
#include "tests/loader/shaders/image_derivatives_linear.spv.h"
#include "tests/loader/shaders/image_derivatives_lines.spv.h"
#include "tests/loader/shaders/image_derivatives_plane.spv.h"
#include "tests/loader/shaders/image_derivatives_planes.spv.h"
#include "tests/loader/shaders/image_derivatives_shadow.spv.h"
#include "tests/loader/shaders/image_derivatives_space.spv.h"

namespace fornax::test {
namespace {

constexpr uint32_t kQueries = 256;
constexpr uint32_t kWorkgroup = 32;
constexpr uint32_t kLevels = 4;
enum Operation : uint32_t { kPlain, kGrad, kBias, kLeast, kLod, kOffset, kProjected };

// As the shader's structure.
struct Query {
    float position[4];
    float bias;
    float least;
    float divisor;
    float unused;
};

struct Dimension {
    VkImageViewType view;
    VkImageType type;
    std::span<const uint32_t> spirv;
    VkExtent3D extent;
    uint32_t layers;
    int offset[3];
    bool offsets;
    bool projects;
    bool linear = false;  // linear groups, not quads
};

const Dimension kDimensions[] = {
    {VK_IMAGE_VIEW_TYPE_1D,
     VK_IMAGE_TYPE_1D,
     spirv::kImageDerivativesLine,
     {64, 1, 1},
     1,
     {3, 0, 0},
     true,
     true},
    {VK_IMAGE_VIEW_TYPE_1D_ARRAY,
     VK_IMAGE_TYPE_1D,
     spirv::kImageDerivativesLines,
     {32, 1, 1},
     5,
     {-2, 0, 0},
     true,
     false},
    {VK_IMAGE_VIEW_TYPE_2D,
     VK_IMAGE_TYPE_2D,
     spirv::kImageDerivativesPlane,
     {46, 28, 1},
     1,
     {3, -2, 0},
     true,
     true},
    {VK_IMAGE_VIEW_TYPE_2D,
     VK_IMAGE_TYPE_2D,
     spirv::kImageDerivativesLinear,
     {46, 28, 1},
     1,
     {3, -2, 0},
     true,
     true,
     true},
    {VK_IMAGE_VIEW_TYPE_2D_ARRAY,
     VK_IMAGE_TYPE_2D,
     spirv::kImageDerivativesPlanes,
     {16, 32, 1},
     4,
     {-8, 7, 0},
     true,
     false},
    {VK_IMAGE_VIEW_TYPE_3D,
     VK_IMAGE_TYPE_3D,
     spirv::kImageDerivativesSpace,
     {18, 12, 14},
     1,
     {1, -1, 2},
     true,
     true},
    {VK_IMAGE_VIEW_TYPE_CUBE,
     VK_IMAGE_TYPE_2D,
     spirv::kImageDerivativesCube,
     {24, 24, 1},
     6,
     {},
     false,
     false},
    {VK_IMAGE_VIEW_TYPE_CUBE_ARRAY,
     VK_IMAGE_TYPE_2D,
     spirv::kImageDerivativesCubeArray,
     {16, 16, 1},
     12,
     {},
     false,
     false},
};

// The queries of the quad that query i is in, and which of them it is.
struct Quad {
    uint32_t members[4];
    uint32_t at;
};

Quad QuadOf(uint32_t i, bool linear) {
    const uint32_t start = i - i % kWorkgroup;
    const uint32_t index = i % kWorkgroup;
    if (linear) {
        const uint32_t first = i & ~3u;
        return {{first, first + 1, first + 2, first + 3}, i & 3};
    }
    const uint32_t x = index % 8;
    const uint32_t y = index / 8;
    const uint32_t first = start + (x & ~1u) + 8 * (y & ~1u);
    return {{first, first + 1, first + 8, first + 9}, (x & 1) + 2 * (y & 1)};
}

class SamplingDerivativesTest : public ImageTest {
  protected:
    void SetUp() override {
        core_features_.imageCubeArray = VK_TRUE;
        core_features_.shaderResourceMinLod = VK_TRUE;
        more_extensions_ = {VK_KHR_COMPUTE_SHADER_DERIVATIVES_EXTENSION_NAME,
                            VK_KHR_SAMPLER_MIRROR_CLAMP_TO_EDGE_EXTENSION_NAME};
        more_features_ = &derivatives_;
        ImageTest::SetUp();
    }

    // Positions that change by steps of all sizes in a quad, not quite evenly.
    static std::vector<Query> MakeQueries(const Dimension& dimension, uint32_t seed) {
        std::mt19937 random(seed);
        const auto uniform = [&](float low, float high) {
            return std::uniform_real_distribution<float>(low, high)(random);
        };
        const ReferenceImage shape{.type = dimension.view};
        std::vector<Query> queries(kQueries);
        for (uint32_t i = 0; i < kQueries; ++i) {
            const Quad quad = QuadOf(i, dimension.linear);
            if (quad.at != 0) {
                continue;
            }
            const float scale = std::exp2(uniform(-7, 0));
            float step[2][4];
            for (auto& steps : step) {
                for (float& component : steps) {
                    component = uniform(-scale, scale);
                }
            }
            float first[4];
            for (float& component : first) {
                component = shape.IsCube() ? uniform(-1, 1) : uniform(-1, 2);
            }
            for (uint32_t k = 0; k < 4; ++k) {
                Query& query = queries[quad.members[k]];
                query = {};
                for (size_t c = 0; c < 4; ++c) {
                    query.position[c] = first[c] + static_cast<float>(k & 1) * step[0][c] +
                                        static_cast<float>(k >> 1) * step[1][c] +
                                        uniform(0, scale / 4);
                }
                if (shape.IsArray()) {
                    const uint32_t layers =
                        shape.IsCube() ? dimension.layers / 6 : dimension.layers;
                    query.position[shape.Axes()] = uniform(-1, static_cast<float>(layers) + 1);
                }
                query.bias = uniform(-3, 3);
                query.least = uniform(0, 3);
                query.divisor = k % 2 ? 0.5f : 4;
            }
        }
        return queries;
    }

    static ReferenceQuery WantedOf(const Dimension& dimension,
                                   std::span<const Query> queries,
                                   uint32_t i,
                                   uint32_t operation) {
        ReferenceQuery wanted;
        std::copy_n(queries[i].position, 4, wanted.position);
        const Quad quad = QuadOf(i, dimension.linear);
        const auto position = [&](uint32_t member, size_t axis) {
            return double{queries[quad.members[member]].position[axis]};
        };
        for (size_t axis = 0; axis < 3; ++axis) {
            const uint32_t row = quad.at & 2;
            const uint32_t column = quad.at & 1;
            wanted.gradient_x[axis] = position(row + 1, axis) - position(row, axis);
            wanted.gradient_y[axis] = position(column + 2, axis) - position(column, axis);
        }
        wanted.has_gradients = true;
        if (operation == kBias) {
            wanted.bias = queries[i].bias;
        }
        if (operation == kLeast) {
            wanted.least = queries[i].least;
        }
        if (operation == kOffset) {
            std::copy_n(dimension.offset, 3, wanted.offset);
        }
        return wanted;
    }

    VkPhysicalDeviceComputeShaderDerivativesFeaturesKHR derivatives_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COMPUTE_SHADER_DERIVATIVES_FEATURES_KHR,
        .computeDerivativeGroupQuads = VK_TRUE,
        .computeDerivativeGroupLinear = VK_TRUE};
};

TEST_F(SamplingDerivativesTest, EveryDimension) {
    uint32_t seed = 0;
    for (const Dimension& dimension : kDimensions) {
        SCOPED_TRACE(testing::Message()
                     << "view type " << dimension.view << " linear " << dimension.linear);
        ReferenceImage reference{.type = dimension.view,
                                 .format = FindTexelReference(VK_FORMAT_R8G8B8A8_UNORM),
                                 .extent = dimension.extent,
                                 .layers = dimension.layers,
                                 .levels = {},
                                 .components = {}};
        const VkImageCreateFlags flags =
            reference.IsCube() ? VkImageCreateFlags{VK_IMAGE_CREATE_CUBE_COMPATIBLE_BIT} : 0;
        const TestImage image = MakeImage({.type = dimension.type,
                                           .format = VK_FORMAT_R8G8B8A8_UNORM,
                                           .extent = dimension.extent,
                                           .levels = kLevels,
                                           .layers = dimension.layers,
                                           .usage = VK_IMAGE_USAGE_SAMPLED_BIT,
                                           .flags = flags});
        for (uint32_t level = 0; level < kLevels; ++level) {
            reference.levels.push_back(Noise(image.LevelBytes(level), 31 + level));
            Upload(image, reference.levels.back(), level);
        }
        const VkImageView view = MakeView(image, dimension.view);
        TestBuffer in = MakeBuffer(kQueries * sizeof(Query) / 4);
        TestBuffer out = MakeBuffer(kQueries * 4);
        for (uint32_t round = 0; round < 4; ++round) {
            const VkFilter filter = round % 2 ? VK_FILTER_LINEAR : VK_FILTER_NEAREST;
            const VkSamplerCreateInfo sampler{
                .sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO,
                .magFilter = VK_FILTER_NEAREST,
                .minFilter = filter,
                .mipmapMode =
                    round < 2 ? VK_SAMPLER_MIPMAP_MODE_NEAREST : VK_SAMPLER_MIPMAP_MODE_LINEAR,
                .addressModeU = VK_SAMPLER_ADDRESS_MODE_REPEAT,
                .addressModeV = VK_SAMPLER_ADDRESS_MODE_MIRRORED_REPEAT,
                .addressModeW = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE,
                .mipLodBias = round == 1 ? 15 : 0.25f * static_cast<float>(round),
                .minLod = round == 2 ? 1.25f : 0,
                .maxLod = round == 3 ? 2.5f : VK_LOD_CLAMP_NONE};
            const std::vector<Query> queries = MakeQueries(dimension, ++seed);
            std::memcpy(in.words, queries.data(), in.size);
            const TestPipeline pipeline = MakeImagePipeline(
                dimension.spirv,
                {Slot::Combined(view, MakeSampler(sampler)), Slot::Buffer(in), Slot::Buffer(out)});
            for (uint32_t operation : {kPlain, kGrad, kBias, kLeast, kLod, kOffset, kProjected}) {
                if ((operation == kOffset && !dimension.offsets) ||
                    (operation == kProjected && !dimension.projects)) {
                    continue;
                }
                VkCommandBuffer commands = Begin();
                Bind(commands, pipeline);
                vkCmdPushConstants(commands, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 4,
                                   &operation);
                vkCmdDispatch(commands, kQueries / kWorkgroup, 1, 1);
                Run(commands);
                uint32_t compared = 0;
                for (uint32_t i = 0; i < kQueries; ++i) {
                    const ReferenceQuery wanted = WantedOf(dimension, queries, i, operation);
                    std::optional<Vec4> expected;
                    if (operation != kLod) {
                        expected = SampleReference(reference, sampler, wanted);
                    } else if (const auto lod = LodReference(reference, sampler, wanted)) {
                        expected = Vec4{lod->first, lod->second, 0, 0};
                    }
                    if (!expected) {
                        continue;
                    }
                    ++compared;
                    for (size_t k = 0; k < 4; ++k) {
                        ASSERT_NEAR(out.floats()[i * 4 + k], (*expected)[k], 4e-3)
                            << "sampler " << round << " operation " << operation << " query " << i
                            << " component " << k;
                    }
                }
                EXPECT_GT(compared, kQueries / 3) << "operation " << operation;
            }
        }
    }
}

// One level: the level of detail chooses between the two filters.
TEST_F(SamplingDerivativesTest, Comparisons) {
    const Dimension& plane = kDimensions[2];
    ReferenceImage reference{.type = plane.view,
                             .format = FindTexelReference(VK_FORMAT_D32_SFLOAT),
                             .extent = plane.extent,
                             .layers = 1,
                             .levels = {},
                             .components = {}};
    const TestImage image = MakeImage({.format = VK_FORMAT_D32_SFLOAT,
                                       .extent = plane.extent,
                                       .usage = VK_IMAGE_USAGE_SAMPLED_BIT,
                                       .tiling = VK_IMAGE_TILING_LINEAR});
    std::mt19937 random(3);
    std::vector<uint8_t> bytes(image.LevelBytes(0));
    for (size_t at = 0; at < bytes.size(); at += 4) {
        const float depth = static_cast<float>(random() % 9) / 8;
        std::memcpy(bytes.data() + at, &depth, 4);
    }
    WriteLinear(image, bytes);
    reference.levels = {bytes};
    const VkSamplerCreateInfo sampler{.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO,
                                      .magFilter = VK_FILTER_NEAREST,
                                      .minFilter = VK_FILTER_LINEAR,
                                      .addressModeU = VK_SAMPLER_ADDRESS_MODE_REPEAT,
                                      .addressModeV = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE,
                                      .compareEnable = VK_TRUE,
                                      .compareOp = VK_COMPARE_OP_LESS_OR_EQUAL,
                                      .maxLod = VK_LOD_CLAMP_NONE};
    std::vector<Query> queries = MakeQueries(plane, 77);
    TestBuffer in = MakeBuffer(kQueries * 4);
    TestBuffer out = MakeBuffer(kQueries * 4);
    for (uint32_t i = 0; i < kQueries; ++i) {
        queries[i].position[2] = static_cast<float>(random() % 11) / 8 - 0.125f;
        queries[i].position[3] = queries[i].divisor;
        std::memcpy(in.words + i * 4, queries[i].position, 16);
    }
    Run(MakeImagePipeline(spirv::kImageDerivativesShadow,
                          {Slot::Combined(MakeView(image, plane.view), MakeSampler(sampler)),
                           Slot::Buffer(in), Slot::Buffer(out)}),
        kQueries / kWorkgroup);
    uint32_t compared = 0;
    for (uint32_t i = 0; i < kQueries; ++i) {
        for (size_t k = 0; k < 3; ++k) {
            ReferenceQuery wanted = WantedOf(plane, queries, i, kPlain);
            wanted.reference = queries[i].position[2];
            wanted.bias = k == 1 ? 0.5 : 0;
            const auto expected = SampleReference(reference, sampler, wanted);
            if (!expected) {
                continue;
            }
            ++compared;
            ASSERT_NEAR(out.floats()[i * 4 + k], (*expected)[0], 1e-5)
                << "query " << i << " kind " << k;
        }
    }
    EXPECT_GT(compared, kQueries);
}

}  // namespace
}  // namespace fornax::test
