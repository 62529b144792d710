// Image instructions in the interpreter: a format that a shader names gives what the same format
// gives when only the descriptor knows it; what is not covered is said.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>

#include "compiler/kernel/interpret/interpret.h"
#include "compiler/kernel/spirv/reader.h"
#include "compiler/kernel/spirv/shader_harness.h"
#include "compiler/kernel/spirv/source_map.h"

namespace fornax::kernel {

namespace {

using hal::TexelClass;
using hal::TexelLayout;

struct NamedFormat {
    const char* name;
    TexelLayout layout;
    TexelClass texel_class;
};

using L = TexelLayout;
using C = TexelClass;
constexpr NamedFormat kFormats[] = {
    {"rgba32f", L::k32x4, C::kFloat},
    {"rgba16f", L::k16x4, C::kHalf},
    {"rg32f", L::k32x2, C::kFloat},
    {"rg16f", L::k16x2, C::kHalf},
    {"r11f_g11f_b10f", L::k11_11_10, C::kHalf},
    {"r32f", L::k32, C::kFloat},
    {"r16f", L::k16, C::kHalf},
    {"rgba16", L::k16x4, C::kUnorm},
    {"rgb10_a2", L::k10_10_10_2, C::kUnorm},
    {"rgba8", L::k8x4, C::kUnorm},
    {"rg16", L::k16x2, C::kUnorm},
    {"rg8", L::k8x2, C::kUnorm},
    {"r16", L::k16, C::kUnorm},
    {"r8", L::k8, C::kUnorm},
    {"rgba16_snorm", L::k16x4, C::kSnorm},
    {"rgba8_snorm", L::k8x4, C::kSnorm},
    {"rg16_snorm", L::k16x2, C::kSnorm},
    {"rg8_snorm", L::k8x2, C::kSnorm},
    {"r16_snorm", L::k16, C::kSnorm},
    {"r8_snorm", L::k8, C::kSnorm},
    {"rgba32i", L::k32x4, C::kSint},
    {"rgba16i", L::k16x4, C::kSint},
    {"rgba8i", L::k8x4, C::kSint},
    {"rg32i", L::k32x2, C::kSint},
    {"rg16i", L::k16x2, C::kSint},
    {"rg8i", L::k8x2, C::kSint},
    {"r32i", L::k32, C::kSint},
    {"r16i", L::k16, C::kSint},
    {"r8i", L::k8, C::kSint},
    {"rgba32ui", L::k32x4, C::kUint},
    {"rgba16ui", L::k16x4, C::kUint},
    {"rgb10_a2ui", L::k10_10_10_2, C::kUint},
    {"rgba8ui", L::k8x4, C::kUint},
    {"rg32ui", L::k32x2, C::kUint},
    {"rg16ui", L::k16x2, C::kUint},
    {"rg8ui", L::k8x2, C::kUint},
    {"r32ui", L::k32, C::kUint},
    {"r16ui", L::k16, C::kUint},
    {"r8ui", L::k8, C::kUint},
};

constexpr uint32_t kTexels = 16;

std::string ImageShader(const NamedFormat& format, bool named) {
    const bool is_uint = format.texel_class == C::kUint;
    const std::string kind = is_uint ? "u" : format.texel_class == C::kSint ? "i" : "";
    const std::string qualifier = named ? std::string(", ") + format.name : "";
    return R"(#version 460
#extension GL_EXT_shader_image_load_formatted : require
layout(local_size_x = 16) in;
layout(set = 0, binding = 0) buffer Out { uvec4 texels[]; };
layout(set = 0, binding = 1)" +
           qualifier + ") uniform " + kind + R"(image1D from;
layout(set = 0, binding = 2)" +
           qualifier + ") uniform " + kind + R"(image1D to;
void main() {
    int i = int(gl_LocalInvocationIndex);
    )" + kind +
           R"(vec4 texel = imageLoad(from, i);
    texels[i] = )" +
           (kind.empty() ? "floatBitsToUint(texel)" : "uvec4(texel)") + R"(;
    imageStore(to, 15 - i, )" +
           // Halfway between two steps of a normalized format a bit of its scale decides.
           (kind.empty() ? "texel * 0.5" : "texel") + R"();
})";
}

struct Outcome {
    std::vector<uint32_t> texels = std::vector<uint32_t>(kTexels * 4);
    std::vector<uint8_t> stored = std::vector<uint8_t>(kTexels * 16);
};

// How a shader comes to know a format.
enum class Knowledge { kNamed, kDescriptor, kRequest };

// What the request can tell of the descriptors in a set's memory.
std::vector<DescriptorWord> WordsOf(const ir::Kernel& kernel, const void* set) {
    std::vector<DescriptorWord> words;
    for (const DescriptorPlace& place : kernel.deciding_words) {
        DescriptorWord word{.place = place};
        std::memcpy(&word.value, static_cast<const std::byte*>(set) + place.offset_bytes,
                    sizeof(word.value));
        words.push_back(word);
    }
    return words;
}

uint32_t CountOf(const ir::Kernel& kernel, ir::Op op) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < kernel.num_insts(); ++i) {
        count += kernel.inst(ir::InstId{i}).op == op ? 1 : 0;
    }
    return count;
}

void RunImages(const NamedFormat& format, Knowledge knowledge, Outcome& outcome) {
    std::vector<uint8_t> from(kTexels * 16);
    for (size_t i = 0; i < from.size(); ++i) {
        from[i] = static_cast<uint8_t>(i * 37 + i / 16 * 11);
    }
    struct {
        hal::BufferDescriptor out;
        hal::ImageDescriptor images[2];
    } set;
    set.out = {reinterpret_cast<uint64_t>(outcome.texels.data()), outcome.texels.size() * 4};
    uint8_t* memory[] = {from.data(), outcome.stored.data()};
    const auto bits = hal::ComponentBits(format.layout);
    for (size_t i = 0; i < 2; ++i) {
        hal::ImageDescriptor& image = set.images[i];
        image.memory = {reinterpret_cast<uint64_t>(memory[i]), kTexels * 16};
        image.format = hal::MakeTexelFormat(format.layout, format.texel_class);
        image.width = kTexels - 3;  // some are outside
        image.height = image.depth = image.levels = 1;
        image.swizzle = 0;
        for (uint32_t k = 0; k < 4; ++k) {
            const auto missing = k == 3 ? hal::Swizzle::kOne : hal::Swizzle::kZero;
            image.swizzle |= (bits[k] ? k : static_cast<uint32_t>(missing))
                             << (k * hal::kSwizzleBits);
            image.scale[k] = hal::NormalizedScale(format.texel_class, bits[k]);
        }
    }
    const Words module = CompileGlsl(ImageShader(format, knowledge == Knowledge::kNamed));
    CompileRequest request;
    request.spirv = module;
    request.layout.sets.resize(1);
    for (uint32_t i = 0; i < 3; ++i) {
        BindingLayout binding;
        binding.binding = i;
        binding.kind =
            i == 0 ? BindingLayout::Kind::kStorageBuffer : BindingLayout::Kind::kStorageImage;
        binding.offset_bytes = i == 0 ? 0 : 16 + (i - 1) * 64;
        request.layout.sets[0].bindings.push_back(binding);
    }
    Result<ir::Kernel> kernel = ReadSpirv(request);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_EQ(kernel->deciding_words.empty(), knowledge == Knowledge::kNamed);
    if (knowledge == Knowledge::kRequest) {
        request.known_words = WordsOf(*kernel, &set);
        kernel = ReadSpirv(request);
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        EXPECT_TRUE(kernel->deciding_words.empty());
        EXPECT_EQ(CountOf(*kernel, ir::Op::kSwitch), 0u);
    }
    const void* sets[] = {&set};
    hal::DispatchFrame frame;
    frame.descriptor_sets = sets;
    for (uint32_t& count : frame.workgroup_count) {
        count = 1;
    }
    const Status status = Interpret(*kernel, frame, 0, 1, {.steps = 1'000'000});
    ASSERT_TRUE(status.ok()) << status.error().message;
}

TEST(ReaderImages, NamedFormatsAreThoseOfDescriptors) {
    for (const NamedFormat& format : kFormats) {
        SCOPED_TRACE(format.name);
        Outcome named;
        RunImages(format, Knowledge::kNamed, named);
        for (const Knowledge other : {Knowledge::kDescriptor, Knowledge::kRequest}) {
            Outcome unnamed;
            RunImages(format, other, unnamed);
            EXPECT_EQ(named.texels, unnamed.texels);
            EXPECT_EQ(named.stored, unnamed.stored);
        }
        EXPECT_NE(named.stored, Outcome().stored);
    }
}

// A loop over an array of images: their format is known where all of them have it.
TEST(ReaderImages, FormatsOfArraysAreKnownIfAllAreTheSame) {
    const Words module = CompileGlsl(R"(#version 460
#extension GL_EXT_shader_image_load_formatted : require
layout(local_size_x = 16) in;
layout(set = 0, binding = 0) buffer Out { uint texels[]; };
layout(set = 0, binding = 1) uniform uimage1D planes[3];
void main() {
    for (int i = 0; i < 3; ++i) {
        texels[i * 16 + gl_LocalInvocationIndex] = imageLoad(planes[i], int(gl_LocalInvocationIndex)).x;
    }
})");
    std::array<uint8_t, 64> memory;
    for (size_t i = 0; i < memory.size(); ++i) {
        memory[i] = static_cast<uint8_t>(i * 53 + 7);
    }
    std::array<uint32_t, 3 * kTexels> out;
    struct {
        hal::BufferDescriptor out;
        hal::ImageDescriptor planes[3];
    } set = {};
    set.out = {reinterpret_cast<uint64_t>(out.data()), sizeof(out)};
    CompileRequest request;
    request.spirv = module;
    request.layout.sets.resize(1);
    request.layout.sets[0].bindings = {
        {.binding = 0},
        {.binding = 1, .kind = BindingLayout::Kind::kStorageImage, .count = 3, .offset_bytes = 16}};
    const Result<ir::Kernel> common = ReadSpirv(request);
    ASSERT_TRUE(common.ok()) << common.error().message;
    for (const L second : {L::k8, L::k16}) {
        SCOPED_TRACE(static_cast<int>(second));
        for (uint32_t i = 0; i < 3; ++i) {
            hal::ImageDescriptor& plane = set.planes[i];
            plane.memory = {reinterpret_cast<uint64_t>(&memory[i]), kTexels * 2};
            plane.format = hal::MakeTexelFormat(i == 1 ? second : L::k8, C::kUint);
            plane.width = kTexels;
            plane.height = plane.depth = plane.levels = 1;
        }
        request.known_words = WordsOf(*common, &set);
        const Result<ir::Kernel> known = ReadSpirv(request);
        ASSERT_TRUE(known.ok()) << known.error().message;
        EXPECT_EQ(CountOf(*known, ir::Op::kSwitch) == 0, second == L::k8);
        for (const ir::Kernel* kernel : {&*common, &*known}) {
            out = {};
            const void* sets[] = {&set};
            hal::DispatchFrame frame;
            frame.descriptor_sets = sets;
            std::ranges::fill(frame.workgroup_count, 1u);
            const Status status = Interpret(*kernel, frame, 0, 1, {.steps = 1'000'000});
            ASSERT_TRUE(status.ok()) << status.error().message;
            for (uint32_t i = 0; i < out.size(); ++i) {
                const uint32_t plane = i / kTexels;
                const uint32_t x = i % kTexels;
                const bool wide = plane == 1 && second == L::k16;
                const uint32_t texel = wide ? memory[plane + 2 * x] | memory[plane + 2 * x + 1] << 8
                                            : memory[plane + x];
                EXPECT_EQ(out[i], texel) << i;
            }
        }
    }
}

// A descriptor that is not used, as one of another type in its place, may hold any format.
TEST(ReaderImages, FormatsThatAnImageCannotHaveAreRead) {
    const Words module = CompileGlsl(ImageShader({"", L::k32, C::kUint}, false));
    CompileRequest request;
    request.spirv = module;
    request.layout.sets.resize(1);
    request.layout.sets[0].bindings = {
        {.binding = 0},
        {.binding = 1, .kind = BindingLayout::Kind::kStorageImage, .offset_bytes = 16},
        {.binding = 2, .kind = BindingLayout::Kind::kStorageImage, .offset_bytes = 80}};
    const Result<ir::Kernel> common = ReadSpirv(request);
    ASSERT_TRUE(common.ok()) << common.error().message;
    for (uint32_t layout = 0; layout < 256; ++layout) {
        SCOPED_TRACE(layout);
        request.known_words.clear();
        for (const DescriptorPlace& place : common->deciding_words) {
            request.known_words.push_back(
                {.place = place, .value = layout << hal::kTexelLayoutShift});
        }
        const Result<ir::Kernel> known = ReadSpirv(request);
        EXPECT_TRUE(known.ok()) << known.error().message;
    }
}

// Runs one workgroup of a shader with words at binding 0 and one descriptor of the kind at
// binding 1.
template <typename Descriptor>
void RunWith(const Words& module,
             BindingLayout::Kind kind,
             const Descriptor& descriptor,
             std::span<uint32_t> words) {
    struct {
        hal::BufferDescriptor out;
        Descriptor descriptor;
    } set;
    set.out = {reinterpret_cast<uint64_t>(words.data()), words.size_bytes()};
    set.descriptor = descriptor;
    CompileRequest request;
    request.spirv = module;
    request.layout.sets.resize(1);
    request.layout.sets[0].bindings = {
        {.binding = 0},
        {.binding = 1, .kind = kind, .offset_bytes = sizeof(hal::BufferDescriptor)}};
    Result<ir::Kernel> kernel = ReadSpirv(request);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    const void* sets[] = {&set};
    hal::DispatchFrame frame;
    frame.descriptor_sets = sets;
    for (uint32_t& count : frame.workgroup_count) {
        count = 1;
    }
    const Status status = Interpret(*kernel, frame, 0, 1, {.steps = 1'000'000});
    ASSERT_TRUE(status.ok()) << status.error().message;
}

void RunOneImage(const Words& module,
                 const hal::ImageDescriptor& image,
                 std::span<uint32_t> words) {
    RunWith(module, BindingLayout::Kind::kStorageImage, image, words);
}

void RunOneImage(const std::string& source,
                 const hal::ImageDescriptor& image,
                 std::span<uint32_t> words) {
    RunOneImage(CompileGlsl(source), image, words);
}

// Sample s of the texel x is at x * samples + s; what is outside, a sample too, reads as 0.
TEST(ReaderImages, SamplesLieSideBySide) {
    constexpr uint32_t kSamples = 4;
    std::vector<uint32_t> texels(3 * kSamples);
    for (uint32_t i = 0; i < texels.size(); ++i) {
        texels[i] = 100 + i;
    }
    hal::ImageDescriptor image{.memory = {reinterpret_cast<uint64_t>(texels.data()), 48},
                               .format = hal::MakeTexelFormat(L::k32, C::kUint)};
    image.width = 3;
    image.height = image.depth = 1;
    image.row_pitch = image.slice_pitch = 48;
    image.levels = kSamples;
    std::vector<uint32_t> out(33);
    RunOneImage(R"(#version 460
#extension GL_ARB_shader_texture_image_samples : require
layout(local_size_x = 4, local_size_y = 8) in;
layout(set = 0, binding = 0) buffer Out { uint results[]; };
layout(set = 0, binding = 1, r32ui) uniform uimage2DMS image;
void main() {
    ivec2 texel = ivec2(gl_LocalInvocationID.x, 0);
    int s = int(gl_LocalInvocationID.y);
    uint old = imageLoad(image, texel, s).x;
    imageStore(image, texel, s, uvec4(old * 2));
    results[gl_LocalInvocationIndex] = old + imageAtomicAdd(image, texel, s, 5u);
    results[32] = imageSamples(image);
})",
                image, out);
    for (uint32_t i = 0; i < 32; ++i) {
        const uint32_t x = i % 4;
        const uint32_t sample = i / 4;
        const bool inside = x < 3 && sample < kSamples;
        EXPECT_EQ(out[i], inside ? 3 * (100 + x * kSamples + sample) : 0) << i;
        if (inside) {
            EXPECT_EQ(texels[x * kSamples + sample], 2 * (100 + x * kSamples + sample) + 5);
        }
    }
    EXPECT_EQ(out[32], kSamples);
}

TEST(ReaderImages, TexelsOf64Bits) {
    std::vector<uint64_t> texels(6);
    for (uint32_t i = 0; i < texels.size(); ++i) {
        texels[i] = i * 0x123456789u;
    }
    hal::ImageDescriptor image{.memory = {reinterpret_cast<uint64_t>(texels.data()), 48},
                               .format = hal::MakeTexelFormat(L::k32x2, C::kUint)};
    image.width = 6;
    image.height = image.depth = image.levels = 1;
    std::vector<uint32_t> out(8 * 4);
    RunOneImage(R"(#version 460
#extension GL_EXT_shader_image_int64 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(local_size_x = 8) in;
layout(set = 0, binding = 0) buffer Out { u64vec2 results[]; };
layout(set = 0, binding = 1, r64ui) uniform u64image1D image;
void main() {
    int i = int(gl_LocalInvocationIndex);
    u64vec4 texel = imageLoad(image, i);
    imageStore(image, i, u64vec4(texel.x + 1ul));
    results[i] = u64vec2(texel.x + texel.y + texel.z * 2ul + texel.w * 10ul,
                         imageAtomicMax(image, i, 0x200000000ul));
})",
                image, out);
    for (uint64_t i = 0; i < 8; ++i) {
        const uint64_t texel = i < 6 ? i * 0x123456789u : 0;
        uint64_t results[2];
        std::memcpy(results, out.data() + 4 * i, sizeof(results));
        EXPECT_EQ(results[0], texel + 10);
        EXPECT_EQ(results[1], i < 6 ? texel + 1 : 0);
        if (i < 6) {
            EXPECT_EQ(texels[i], std::max<uint64_t>(texel + 1, 0x200000000));
        }
    }
}

// One that the shader does not name can only be of that layout.
TEST(ReaderImages, UnnamedTexelsOf64Bits) {
    std::vector<uint64_t> texels(8);
    for (uint32_t i = 0; i < texels.size(); ++i) {
        texels[i] = i * 0x123456789u;
    }
    hal::ImageDescriptor image{.memory = {reinterpret_cast<uint64_t>(texels.data()), 64},
                               .format = hal::MakeTexelFormat(L::k32x2, C::kSint)};
    image.width = 6;
    image.height = image.depth = image.levels = 1;
    std::vector<uint32_t> out(16);
    const char* source = R"(#version 460
#extension GL_EXT_shader_image_load_formatted : require
#extension GL_EXT_shader_image_int64 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(local_size_x = 8) in;
layout(set = 0, binding = 0) buffer Out { int64_t results[]; };
layout(set = 0, binding = 1) uniform i64image1D image;
void main() {
    int i = int(gl_LocalInvocationIndex);
    i64vec4 texel = imageLoad(image, i);
    results[i] = texel.x + 7l * texel.w;
    imageStore(image, i, i64vec4(-results[i] - 1l));
})";
    RunOneImage(source, image, out);
    for (uint64_t i = 0; i < 8; ++i) {
        const uint64_t texel = i * 0x123456789u;
        uint64_t result = 0;
        std::memcpy(&result, out.data() + 2 * i, sizeof(result));
        EXPECT_EQ(result, i < 6 ? texel + 7 : 7);
        EXPECT_EQ(texels[i], i < 6 ? ~(texel + 7) : texel);
    }
    // A null descriptor has no component that is 1.
    RunOneImage(source, {}, out);
    EXPECT_EQ(out, std::vector<uint32_t>(16));
}

// Memory behind the image stays as it is, whatever the atomic is on.
TEST(ReaderImages, FloatAtomicsOutsideDoNothing) {
    for (const char* atomic :
         {"imageAtomicAdd(image, i, 2.0)", "imageAtomicMax(image, i, 7.0)",
          "imageAtomicMin(image, i, -1.0)", "imageAtomicExchange(image, i, 3.0)"}) {
        SCOPED_TRACE(atomic);
        std::vector<float> texels(8, 0.5f);
        hal::ImageDescriptor image{.memory = {reinterpret_cast<uint64_t>(texels.data()), 32},
                                   .format = hal::MakeTexelFormat(L::k32, C::kFloat)};
        image.width = 5;
        image.height = image.depth = image.levels = 1;
        std::vector<uint32_t> out(8);
        RunOneImage(std::string(R"(#version 460
#extension GL_EXT_shader_atomic_float : require
#extension GL_EXT_shader_atomic_float2 : require
layout(local_size_x = 8) in;
layout(set = 0, binding = 0) buffer Out { float results[]; };
layout(set = 0, binding = 1, r32f) uniform image1D image;
void main() {
    int i = int(gl_LocalInvocationIndex);
    results[i] = )") + atomic +
                        ";\n}",
                    image, out);
        for (size_t i = 0; i < 8; ++i) {
            EXPECT_EQ(out[i], i < 5 ? std::bit_cast<uint32_t>(0.5f) : 0) << i;
            EXPECT_EQ(texels[i] != 0.5f, i < 5) << i;
        }
    }
}

// "It must have at least as many components as" the image's texels: long vectors may have more.
TEST(ReaderImages, ComponentsThatATexelLacksAreNotStored) {
    std::vector<uint32_t> texels(4);
    hal::ImageDescriptor image{.memory = {reinterpret_cast<uint64_t>(texels.data()), 16},
                               .format = hal::MakeTexelFormat(L::k32x4, C::kUint)};
    image.width = image.height = image.depth = image.levels = 1;
    image.swizzle = 0x3210;  // the components in their order
    std::array<uint32_t, 1> unused = {};
    RunOneImage(AssembleSpirv(R"(
        OpCapability Shader
        OpCapability LongVectorEXT
        OpExtension "SPV_EXT_long_vector"
        OpMemoryModel Logical GLSL450
        OpEntryPoint GLCompute %main "main"
        OpExecutionMode %main LocalSize 1 1 1
        OpDecorate %to DescriptorSet 0
        OpDecorate %to Binding 1
        %void = OpTypeVoid
        %main_type = OpTypeFunction %void
        %uint = OpTypeInt 32 0
        %int = OpTypeInt 32 1
        %image = OpTypeImage %uint 1D 0 0 0 2 Rgba32ui
        %pointer = OpTypePointer UniformConstant %image
        %to = OpVariable %pointer UniformConstant
        %zero = OpConstant %int 0
        %five = OpConstant %uint 5
        %n11 = OpConstant %uint 11
        %n12 = OpConstant %uint 12
        %n13 = OpConstant %uint 13
        %n14 = OpConstant %uint 14
        %n15 = OpConstant %uint 15
        %vector = OpTypeVectorIdEXT %uint %five
        %texel = OpConstantComposite %vector %n11 %n12 %n13 %n14 %n15
        %main = OpFunction %void None %main_type
        %entry = OpLabel
        %loaded = OpLoad %image %to
        OpImageWrite %loaded %zero %texel
        OpReturn
        OpFunctionEnd)"),
                image, unused);
    EXPECT_EQ(texels, (std::vector<uint32_t>{11, 12, 13, 14}));
}

// A shift of 32 or more gives any value, so levels that no image has must not be shifted by; what
// has no texels (a null descriptor) has none in any level.
TEST(ReaderImages, LevelsBeyondTheLastAreOneTexel) {
    const Words module = CompileGlsl(
        Shader("o[i] = uint(textureSize(image, int(33 + i * 1000)).x) + "
               "uint(textureSize(image, 2147483647).y) * 16 + uint(textureSize(image, 2).x) * 256;",
               "layout(set = 0, binding = 1) uniform sampler2D image;"));
    for (const uint32_t width : {0u, 8u}) {
        std::array<uint32_t, 8> out = {};
        hal::CombinedImageSamplerDescriptor descriptor;
        descriptor.image.image.width = descriptor.image.image.height = width;
        RunWith(module, BindingLayout::Kind::kCombinedImageSampler, descriptor, out);
        for (uint32_t value : out) {
            EXPECT_EQ(value, width ? 1 + 16 + 2 * 256 : 0u) << width;
        }
    }
}

TEST(ReaderImages, WhatTheLayoutDoesNotHaveIsNamed) {
    auto message = [](const Words& module) {
        Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(module));
        EXPECT_FALSE(kernel.ok());
        return kernel.ok() ? "" : kernel.error().message;
    };
    // Binding 1 is a storage buffer.
    const std::string other_kind =
        message(CompileGlsl(Shader("o[i] = imageLoad(image, ivec2(i)).x;",
                                   "layout(set = 0, binding = 1, r32ui) uniform uimage2D image;")));
    EXPECT_NE(other_kind.find("storage_image"), std::string::npos) << other_kind;
    EXPECT_NE(other_kind.find("storage_buffer"), std::string::npos) << other_kind;
}

TEST(ReaderImages, ALayoutIsTakenFromTheVariables) {
    const Words words = CompileGlsl(
        Shader("o[i] = uint(texelFetch(sampler2D(image, state), ivec2(i), 0).x + texture(both, "
               "vec2(0)).x + "
               "imageLoad(stored[1], ivec2(i)).x + texelFetch(texels, int(i)).x + factor) + "
               "imageLoad(words, int(i)).x;",
               "layout(set = 1, binding = 4) uniform texture2D image;\n"
               "layout(set = 1, binding = 0) uniform sampler state;\n"
               "layout(set = 1, binding = 1) uniform sampler2D both;\n"
               "layout(set = 1, binding = 2, r32f) uniform image2D stored[3];\n"
               "layout(set = 1, binding = 3) uniform samplerBuffer texels;\n"
               "layout(set = 1, binding = 5, r32ui) uniform uimageBuffer words;\n"
               "layout(set = 1, binding = 6) uniform Block { float factor; };\n"));
    Result<spirv::Module> module = spirv::Module::Parse(words);
    ASSERT_TRUE(module.ok()) << module.error().message;
    const ResourceLayout layout = spirv::LayoutOf(*module);
    using Kind = BindingLayout::Kind;
    constexpr Kind kKinds[] = {Kind::kSampler,      Kind::kCombinedImageSampler,
                               Kind::kStorageImage, Kind::kUniformTexelBuffer,
                               Kind::kSampledImage, Kind::kStorageTexelBuffer,
                               Kind::kUniformBuffer};
    ASSERT_EQ(layout.sets.size(), 2u);
    EXPECT_EQ(layout.sets[0].bindings.at(0).kind, Kind::kStorageBuffer);
    ASSERT_EQ(layout.sets[1].bindings.size(), std::size(kKinds));
    uint32_t offset = 0;
    for (size_t i = 0; i < std::size(kKinds); ++i) {
        const BindingLayout& binding = layout.sets[1].bindings[i];
        EXPECT_EQ(binding.binding, i);
        EXPECT_EQ(binding.kind, kKinds[i]) << i;
        EXPECT_EQ(binding.count, i == 2 ? 3u : 1u);
        EXPECT_EQ(binding.offset_bytes, offset) << i;
        offset += binding.count * DescriptorBytes(binding.kind);
    }
    CompileRequest request = MakeRequest(words);
    request.layout = layout;
    const Result<ir::Kernel> kernel = ReadSpirv(request);
    EXPECT_TRUE(kernel.ok()) << kernel.error().message;
}

}  // namespace

}  // namespace fornax::kernel
