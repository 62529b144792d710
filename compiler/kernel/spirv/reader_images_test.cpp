// Image instructions in the interpreter: a format that a shader names gives what the same format
// gives when only the descriptor knows it; what is not covered is said.
#include <gtest/gtest.h>

#include <cstring>

#include "compiler/kernel/interpret/interpret.h"
#include "compiler/kernel/spirv/reader.h"
#include "compiler/kernel/spirv/shader_harness.h"

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
    imageStore(to, 15 - i, texel);
})";
}

struct Outcome {
    std::vector<uint32_t> texels = std::vector<uint32_t>(kTexels * 4);
    std::vector<uint8_t> stored = std::vector<uint8_t>(kTexels * 16);
};

void RunImages(const NamedFormat& format, bool named, Outcome& outcome) {
    std::vector<uint8_t> from(kTexels * 16);
    for (size_t i = 0; i < from.size(); ++i)
        from[i] = static_cast<uint8_t>(i * 37 + i / 16 * 11);
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
    const Words module = CompileGlsl(ImageShader(format, named));
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
    const void* sets[] = {&set};
    hal::DispatchFrame frame;
    frame.descriptor_sets = sets;
    for (uint32_t& count : frame.workgroup_count)
        count = 1;
    const Status status = Interpret(*kernel, frame, 0, 1, {.steps = 1'000'000});
    ASSERT_TRUE(status.ok()) << status.error().message;
}

TEST(ReaderImages, NamedFormatsAreThoseOfDescriptors) {
    for (const NamedFormat& format : kFormats) {
        SCOPED_TRACE(format.name);
        Outcome named;
        Outcome unnamed;
        RunImages(format, true, named);
        RunImages(format, false, unnamed);
        EXPECT_EQ(named.texels, unnamed.texels);
        EXPECT_EQ(named.stored, unnamed.stored);
        EXPECT_NE(named.stored, Outcome().stored);
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

}  // namespace

}  // namespace fornax::kernel
