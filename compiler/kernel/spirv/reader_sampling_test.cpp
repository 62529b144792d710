// Samples in the interpreter: code that is made for what is bound gives what the common code gives,
// wherever the position is, and loads without a test what wrapping keeps inside.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>

#include "compiler/kernel/interpret/interpret.h"
#include "compiler/kernel/spirv/reader.h"
#include "compiler/kernel/spirv/shader_harness.h"

namespace fornax::kernel {
namespace {

using hal::AddressMode;
using C = hal::TexelClass;
using L = hal::TexelLayout;

constexpr AddressMode kModes[] = {AddressMode::kRepeat, AddressMode::kMirroredRepeat,
                                  AddressMode::kClampToEdge, AddressMode::kClampToBorder,
                                  AddressMode::kMirrorClampToEdge};

struct Bound {
    hal::BufferDescriptor out;
    hal::CombinedImageSamplerDescriptor texture;
};

// An image of random texels with a linear filter.
struct Texture {
    std::vector<uint8_t> texels;
    Bound set;
};

Texture MakeTexture(hal::TexelFormat format, std::span<const uint32_t> extent, AddressMode mode) {
    Texture made;
    hal::ImageDescriptor& image = made.set.texture.image.image;
    image.format = format;
    image.width = extent[0];
    image.height = extent[1];
    image.depth = extent[2];
    image.row_pitch = static_cast<uint32_t>(hal::RowPitch(image.width, format.bytes));
    image.slice_pitch = image.row_pitch * image.height;
    image.levels = 1;
    image.swizzle |= hal::kIdentitySwizzle << hal::kSwizzleOrderShift;
    for (size_t i = 0; i < 4; ++i) {
        image.scale[i] = hal::ComponentScale(format, i);
    }
    std::mt19937 random(5);
    made.texels.resize(size_t{image.slice_pitch} * image.depth);
    for (uint8_t& byte : made.texels) {
        byte = static_cast<uint8_t>(random());
    }
    image.memory = {reinterpret_cast<uint64_t>(made.texels.data()), made.texels.size()};
    hal::SamplerDescriptor& sampler = made.set.texture.sampler;
    sampler.flags = hal::kSamplerMagLinear | hal::kSamplerMinLinear;
    for (uint32_t axis = 0; axis < 3; ++axis) {
        sampler.flags |= static_cast<uint32_t>(mode) << (hal::kSamplerAddressShift + 4 * axis);
    }
    return made;
}

// Positions are where the results will be.
CompileRequest SampleRequest(Words& module, uint32_t dimensions) {
    const std::string n = std::to_string(dimensions);
    module = CompileGlsl(
        "#version 460\nlayout(local_size_x = 8) in;\n"
        "layout(set = 0, binding = 0) buffer Out { vec4 o[]; };\n"
        "layout(set = 0, binding = 1) uniform sampler" +
        n +
        "D image;\nvoid main() {\n  uint i = gl_GlobalInvocationID.x;\n"
        "  o[i] = textureLod(image, o[i].xy" +
        (dimensions == 3 ? "z" : "") + ", 0.0);\n}\n");
    CompileRequest request;
    request.spirv = module;
    request.layout.sets.resize(1);
    request.layout.sets[0].bindings = {{.binding = 0},
                                       {.binding = 1,
                                        .kind = BindingLayout::Kind::kCombinedImageSampler,
                                        .offset_bytes = offsetof(Bound, texture)}};
    return request;
}

void Know(CompileRequest& request, const ir::Kernel& common, const Bound& set) {
    request.known_words.clear();
    for (const DescriptorPlace& place : common.deciding_words) {
        DescriptorWord word{.place = place};
        std::memcpy(&word.value, reinterpret_cast<const std::byte*>(&set) + place.offset_bytes,
                    sizeof(word.value));
        request.known_words.push_back(word);
    }
}

uint32_t CountOf(const ir::Kernel& kernel, ir::Op op) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < kernel.num_insts(); ++i) {
        count += kernel.inst(ir::InstId{i}).op == op ? 1 : 0;
    }
    return count;
}

// Random ones in and around the image, and all pairs of what is not usual.
std::vector<float> Positions() {
    const float inf = std::numeric_limits<float>::infinity();
    const float unusual[] = {0,     1,    0.5f, -0.0f, 1e-9f, -1e-9f, 1e30f,
                             -1e9f, 3e9f, inf,  -inf,  NAN,   2.5f,   -1.5f};
    std::vector<float> positions;
    for (float x : unusual) {
        for (float y : unusual) {
            positions.insert(positions.end(), {x, y, x, 0});
        }
    }
    std::mt19937 random(9);
    std::uniform_real_distribution<float> around(-1.5f, 2.5f);
    while (positions.size() % 32 != 0 || positions.size() < size_t{4} * 256) {
        positions.push_back(around(random));
    }
    return positions;
}

// `data` has a multiple of eight positions.
std::vector<float> RunSamples(const ir::Kernel& kernel,
                              Bound set,
                              std::vector<float> data = Positions()) {
    set.out = {reinterpret_cast<uint64_t>(data.data()), data.size() * sizeof(float)};
    const void* sets[] = {&set};
    hal::DispatchFrame frame;
    frame.descriptor_sets = sets;
    frame.workgroup_count[0] = static_cast<uint32_t>(data.size() / 32);
    frame.workgroup_count[1] = frame.workgroup_count[2] = 1;
    const Status status =
        Interpret(kernel, frame, 0, frame.workgroup_count[0], {.steps = 100'000'000});
    EXPECT_TRUE(status.ok()) << status.error().message;
    return data;
}

void ExpectSame(const std::vector<float>& wanted, const std::vector<float>& found) {
    const std::vector<float> at = Positions();
    for (size_t i = 0; i < wanted.size(); ++i) {
        if (std::isnan(wanted[i]) || std::isinf(wanted[i])) {
            ASSERT_EQ(std::isnan(wanted[i]), std::isnan(found[i])) << at[i / 4 * 4];
            ASSERT_TRUE(std::isnan(wanted[i]) || wanted[i] == found[i]) << at[i / 4 * 4];
            continue;
        }
        ASSERT_NEAR(wanted[i], found[i], 4e-6 * std::fmax(1.0, std::fabs(wanted[i])))
            << "component " << i % 4 << " at " << at[i / 4 * 4] << ", " << at[i / 4 * 4 + 1];
    }
}

TEST(ReaderSampling, WhatIsBoundDecidesNoResult) {
    constexpr hal::TexelFormat kFormats[] = {
        hal::MakeTexelFormat(L::k8x4, C::kUnorm),   hal::MakeTexelFormat(L::k16x2, C::kUnorm),
        hal::MakeTexelFormat(L::k5_6_5, C::kUnorm), hal::MakeTexelFormat(L::k8x4, C::kSnorm),
        hal::MakeTexelFormat(L::k16x4, C::kHalf),   hal::MakeTexelFormat(L::k32, C::kFloat)};
    constexpr uint32_t kExtents[][3] = {{1, 1, 1}, {7, 3, 2}, {1, 5, 1}};
    for (const uint32_t dimensions : {2u, 3u}) {
        Words module;
        CompileRequest request = SampleRequest(module, dimensions);
        const Result<ir::Kernel> common = ReadSpirv(request);
        ASSERT_TRUE(common.ok()) << common.error().message;
        for (const hal::TexelFormat& format : kFormats) {
            for (const auto& extent : kExtents) {
                for (AddressMode mode : kModes) {
                    SCOPED_TRACE(testing::Message()
                                 << dimensions << "D, layout " << static_cast<int>(format.layout)
                                 << ", " << extent[0] << " texels, mode "
                                 << static_cast<int>(mode));
                    Texture texture = MakeTexture(format, extent, mode);
                    std::ranges::fill(texture.set.texture.sampler.border, 0x3f000000u);
                    Know(request, *common, texture.set);
                    const Result<ir::Kernel> known = ReadSpirv(request);
                    ASSERT_TRUE(known.ok()) << known.error().message;
                    ExpectSame(RunSamples(*common, texture.set), RunSamples(*known, texture.set));
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

// Only at a border may texels be outside, and in a null descriptor, which has no level.
TEST(ReaderSampling, WhatIsInsideIsLoadedWithoutATest) {
    constexpr uint32_t kExtent[] = {7, 3, 2};
    for (const uint32_t dimensions : {2u, 3u}) {
        Words module;
        CompileRequest request = SampleRequest(module, dimensions);
        const Result<ir::Kernel> common = ReadSpirv(request);
        ASSERT_TRUE(common.ok()) << common.error().message;
        for (AddressMode mode : kModes) {
            for (const bool is_null : {false, true}) {
                SCOPED_TRACE(testing::Message() << dimensions << "D, mode "
                                                << static_cast<int>(mode) << ", " << is_null);
                Texture texture =
                    MakeTexture(hal::MakeTexelFormat(L::k16x4, C::kHalf), kExtent, mode);
                if (is_null) {
                    texture.set.texture.image = {};
                    texture.set.texture.image.image.swizzle = 0;
                }
                Know(request, *common, texture.set);
                const Result<ir::Kernel> known = ReadSpirv(request);
                ASSERT_TRUE(known.ok()) << known.error().message;
                const uint32_t taps = 1u << dimensions;
                const bool tests = is_null || mode == AddressMode::kClampToBorder;
                EXPECT_EQ(CountOf(*known, ir::Op::kIf), tests ? taps : 0u);
                EXPECT_EQ(CountOf(*known, ir::Op::kLoop), 0u);
                if (is_null) {
                    ExpectSame(RunSamples(*common, texture.set), RunSamples(*known, texture.set));
                }
            }
        }
    }
}

// An infinite texel has its weight, and none where the other one has it all.
TEST(ReaderSampling, InfiniteTexels) {
    constexpr uint32_t kExtent[] = {2, 1, 1};
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    Words module;
    CompileRequest request = SampleRequest(module, 2);
    const Result<ir::Kernel> common = ReadSpirv(request);
    ASSERT_TRUE(common.ok()) << common.error().message;
    for (const bool is_first : {false, true}) {
        Texture texture = MakeTexture(hal::MakeTexelFormat(L::k32, C::kFloat), kExtent,
                                      AddressMode::kClampToEdge);
        const float texels[] = {is_first ? kInfinity : 3.0f, is_first ? 3.0f : kInfinity};
        std::memcpy(texture.texels.data(), texels, sizeof(texels));
        Know(request, *common, texture.set);
        const Result<ir::Kernel> known = ReadSpirv(request);
        ASSERT_TRUE(known.ok()) << known.error().message;
        // Nothing but a sum of products for each axis.
        EXPECT_EQ(CountOf(*known, ir::Op::kFAbs), 0u);
        std::vector<float> positions(size_t{4} * 8, 0.5f);
        const float x[] = {0.25f, 0.75f, 0.5f, 0.250001f, 0.749999f, 0.24f, 0.76f, -1e-9f};
        for (size_t i = 0; i < std::size(x); ++i) {
            positions[4 * i] = x[i];
        }
        const std::vector<float> found = RunSamples(*known, texture.set, positions);
        for (size_t i = 0; i < std::size(x); ++i) {
            const bool between = x[i] > 0.25f && x[i] < 0.75f;
            const float expected = between ? kInfinity : texels[x[i] < 0.5f ? 0 : 1];
            EXPECT_EQ(found[4 * i], expected) << x[i];
        }
    }
}

}  // namespace
}  // namespace fornax::kernel
