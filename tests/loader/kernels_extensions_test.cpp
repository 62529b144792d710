// Small extensions of SPIR-V through the loader: expect and assume, replicated composites,
// bfloat16, fast-math flags.
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "tests/loader/shaders/bfloat16.spv.h"
#include "tests/loader/shaders/decorated.spv.h"
#include "tests/loader/shaders/float_controls2.spv.h"
#include "tests/loader/shaders/forward_references.spv.h"
#include "tests/loader/shaders/hints.spv.h"
#include "tests/loader/shaders/long_vectors.spv.h"
#include "tests/loader/shaders/replicated.spv.h"
#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

class KernelsExtensionsTest : public VulkanTest {
  protected:
    void SetUp() override {
        more_extensions_ = {VK_KHR_SHADER_EXPECT_ASSUME_EXTENSION_NAME,
                            VK_EXT_SHADER_REPLICATED_COMPOSITES_EXTENSION_NAME};
        more_features_ = &expect_;
        VulkanTest::SetUp();
    }

    VkPhysicalDeviceShaderReplicatedCompositesFeaturesEXT replicated_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_REPLICATED_COMPOSITES_FEATURES_EXT,
        .shaderReplicatedComposites = VK_TRUE};
    VkPhysicalDeviceShaderExpectAssumeFeatures expect_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_EXPECT_ASSUME_FEATURES,
        .pNext = &replicated_,
        .shaderExpectAssume = VK_TRUE};
};

TEST_F(KernelsExtensionsTest, ExpectationsChangeNoResult) {
    std::array buffers = {MakeBuffer(256)};
    Run(MakePipeline(spirv::kHints, buffers), 4);
    for (uint32_t i = 0; i < 256; ++i) {
        const uint32_t r = i % 3 == 1 ? i * 7 : i % 3;
        ASSERT_EQ(buffers[0].words[i], i + 1000 * r) << i;
    }
}

TEST_F(KernelsExtensionsTest, CompositesOfOneValue) {
    const uint32_t special = 40;
    const VkSpecializationMapEntry entry = {3, 0, 4};
    const VkSpecializationInfo specialization{1, &entry, sizeof(special), &special};
    std::array buffers = {MakeBuffer(64)};
    Run(MakePipeline(spirv::kReplicated, buffers, &specialization), 2);
    for (uint32_t i = 0; i < 64; ++i) {
        ASSERT_EQ(buffers[0].words[i], 5 + special + i * i) << i;
    }
}

class KernelsDecoratedTest : public VulkanTest {
  protected:
    void SetUp() override {
        more_extensions_ = {VK_GOOGLE_DECORATE_STRING_EXTENSION_NAME,
                            VK_GOOGLE_HLSL_FUNCTIONALITY_1_EXTENSION_NAME,
                            VK_GOOGLE_USER_TYPE_EXTENSION_NAME};
        VulkanTest::SetUp();
    }
};

TEST_F(KernelsDecoratedTest, DecorationsOfOtherLanguagesMeanNothing) {
    std::array buffers = {MakeBuffer(64), MakeBuffer(1)};
    Run(MakePipeline(spirv::kDecorated, buffers), 2);
    for (uint32_t i = 0; i < 64; ++i) {
        ASSERT_EQ(buffers[0].words[i], 3 * i) << i;
    }
}

class KernelsForwardReferencesTest : public VulkanTest {
  protected:
    void SetUp() override {
        more_extensions_ = {VK_KHR_SHADER_NON_SEMANTIC_INFO_EXTENSION_NAME,
                            VK_KHR_SHADER_RELAXED_EXTENDED_INSTRUCTION_EXTENSION_NAME};
        more_features_ = &relaxed_;
        VulkanTest::SetUp();
    }

    VkPhysicalDeviceShaderRelaxedExtendedInstructionFeaturesKHR relaxed_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_RELAXED_EXTENDED_INSTRUCTION_FEATURES_KHR,
        .shaderRelaxedExtendedInstruction = VK_TRUE};
};

TEST_F(KernelsForwardReferencesTest, InstructionsWithoutMeaningMayNameWhatComesLater) {
    std::array buffers = {MakeBuffer(64)};
    Run(MakePipeline(spirv::kForwardReferences, buffers), 2);
    for (uint32_t i = 0; i < 64; ++i) {
        ASSERT_EQ(buffers[0].words[i], i);
    }
}

class KernelsLongVectorsTest : public VulkanTest {
  protected:
    void SetUp() override {
        api_version_ = VK_API_VERSION_1_2;
        more_extensions_ = {VK_EXT_SHADER_LONG_VECTOR_EXTENSION_NAME,
                            VK_EXT_SHADER_REPLICATED_COMPOSITES_EXTENSION_NAME};
        more_features_ = &vectors_;
        VulkanTest::SetUp();
    }

    VkPhysicalDeviceScalarBlockLayoutFeatures scalar_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SCALAR_BLOCK_LAYOUT_FEATURES,
        .scalarBlockLayout = VK_TRUE};
    VkPhysicalDeviceShaderReplicatedCompositesFeaturesEXT replicated_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_REPLICATED_COMPOSITES_FEATURES_EXT,
        .pNext = &scalar_,
        .shaderReplicatedComposites = VK_TRUE};
    VkPhysicalDeviceShaderLongVectorFeaturesEXT vectors_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_LONG_VECTOR_FEATURES_EXT,
        .pNext = &replicated_,
        .longVector = VK_TRUE};
};

TEST_F(KernelsLongVectorsTest, VectorsOfAnyLength) {
    const uint32_t length = 9;
    const VkSpecializationMapEntry entry = {0, 0, 4};
    const VkSpecializationInfo specialization{1, &entry, sizeof(length), &length};
    std::array buffers = {MakeBuffer(64 * 11), MakeBuffer(64 * 11), MakeBuffer(64)};
    for (uint32_t i = 0; i < 64 * 11; ++i) {
        buffers[0].floats()[i] = static_cast<float>(i * 7 % 29) * 0.25f;
    }
    Run(MakePipeline(spirv::kLongVectors, buffers, &specialization), 2);
    for (uint32_t i = 0; i < 64; ++i) {
        float sum = 0;
        for (uint32_t k = 0; k < 11; ++k) {
            const float v = buffers[0].floats()[i * 11 + k];
            const float w = std::max(v * 2 - 3, v) + (k == i % 11 ? 0.5f : 0.0f);
            ASSERT_EQ(buffers[1].floats()[i * 11 + k], w) << i << " " << k;
            sum += v;
        }
        uint32_t special = static_cast<uint32_t>(sum);
        for (uint32_t k = 0; k < length; ++k) {
            special += k == i % length ? 0 : (i + 1) * (k + 1);
        }
        ASSERT_EQ(buffers[2].words[i], special) << i;
    }
}

class KernelsBFloat16Test : public VulkanTest {
  protected:
    void SetUp() override {
        more_extensions_ = {VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME,
                            VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME,
                            VK_KHR_16BIT_STORAGE_EXTENSION_NAME};
        more_features_ = &storage_;
        VulkanTest::SetUp();
    }

    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR,
        .shaderBFloat16Type = VK_TRUE,
        .shaderBFloat16DotProduct = VK_TRUE};
    // glslang declares Float16 as well.
    VkPhysicalDeviceShaderFloat16Int8Features float16_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES,
        .pNext = &bfloat16_,
        .shaderFloat16 = VK_TRUE};
    VkPhysicalDevice16BitStorageFeatures storage_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES,
        .pNext = &float16_,
        .storageBuffer16BitAccess = VK_TRUE};
};

// To nearest, ties to even; the specification leaves the choice between that and towards zero.
uint32_t BFloat16(float value) {
    if (std::isnan(value)) {
        return 0x7fc0;
    }
    const auto bits = std::bit_cast<uint32_t>(value);
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

TEST_F(KernelsBFloat16Test, ConvertsAndStores) {
    constexpr uint32_t kCount = 4096;
    std::array buffers = {MakeBuffer(kCount), MakeBuffer(kCount), MakeBuffer(2 * kCount),
                          MakeBuffer(kCount)};
    std::mt19937 random(11);
    for (uint32_t i = 0; i < kCount; ++i) {
        buffers[0].words[i] = static_cast<uint32_t>(random());
    }
    const float special[] = {0.0f,
                             -0.0f,
                             1.00390625f,
                             1.01171875f,
                             -3.40e38f,
                             1e-40f,
                             std::numeric_limits<float>::infinity(),
                             3.3895314e38f};
    std::copy(std::begin(special), std::end(special), buffers[0].floats());
    buffers[0].words[8] = 0x7f800001;  // a NaN whose upper half is infinity's
    Run(MakePipeline(spirv::kBfloat16, buffers), kCount / 32);
    for (uint32_t i = 0; i < kCount; ++i) {
        const float value = buffers[0].floats()[i];
        const uint32_t stored = buffers[1].words[i] & 0xffff;
        if (std::isnan(value)) {
            ASSERT_GT(stored & 0x7fff, 0x7f80u) << i;
        } else {
            ASSERT_EQ(stored, BFloat16(value)) << i << ": " << value;
            const float sum = std::bit_cast<float>(stored << 16) + 1.5f;
            ASSERT_EQ(std::bit_cast<uint32_t>(sum), buffers[2].words[2 * i]) << i;
        }
        ASSERT_EQ(buffers[1].words[i] >> 16, 0x3fc0u) << i;
        const uint32_t whole = BFloat16(static_cast<float>(i * 1000 + 7));
        ASSERT_EQ(buffers[2].words[2 * i + 1], whole << 16) << i;
        const float rounded = std::bit_cast<float>(BFloat16(static_cast<float>(i)) << 16);
        const float dot =
            rounded * 1.5f + 3.0f * static_cast<float>(i & 255) + -0.5f * 7.0f + 0.25f;
        ASSERT_EQ(buffers[3].words[i], BFloat16(dot) << 16) << i;
    }
}

class KernelsFloatControls2Test : public VulkanTest {
  protected:
    void SetUp() override {
        more_extensions_ = {VK_KHR_SHADER_FLOAT_CONTROLS_2_EXTENSION_NAME,
                            VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME};
        more_features_ = &controls_;
        VulkanTest::SetUp();
    }

    VkPhysicalDeviceShaderFloatControls2Features controls_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT_CONTROLS_2_FEATURES,
        .shaderFloatControls2 = VK_TRUE};
};

// Without a flag every operation is its own, and NaN, infinities and signs of zeros count.
TEST_F(KernelsFloatControls2Test, WhatNoFlagAllowsIsNotDone) {
    constexpr uint32_t kCount = 1024;
    std::array buffers = {MakeBuffer(4 * kCount), MakeBuffer(4 * kCount)};
    std::mt19937 random(5);
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const float special[] = {0.0f, -0.0f, kInfinity, -kInfinity,
                             std::numeric_limits<float>::quiet_NaN()};
    for (uint32_t i = 0; i < kCount; ++i) {
        float* in = buffers[0].floats() + 4 * size_t{i};
        std::uniform_real_distribution<float> draw(-8, 8);
        in[0] = i < std::size(special) ? special[i] : draw(random);
        in[1] = draw(random);
        // A fused sum gives the product's rounding error here, others give 0.
        in[2] = i % 2 ? draw(random) : -(in[0] * in[1]);
    }
    Run(MakePipeline(spirv::kFloatControls2, buffers), kCount / 64);
    const auto same = [](float a, float b) {
        return std::isnan(a) ? std::isnan(b)
                             : std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
    };
    for (uint32_t i = 0; i < kCount; ++i) {
        const float* in = buffers[0].floats() + 4 * size_t{i};
        const float* out = buffers[1].floats() + 4 * size_t{i};
        volatile float product = in[0] * in[1];
        const float apart = product + in[2];
        const float fused = std::fma(in[0], in[1], in[2]);
        volatile float zero = 0;
        ASSERT_TRUE(same(apart, out[0])) << i << ": " << out[0] << " is not " << apart;
        ASSERT_TRUE(same(apart, out[1]) || same(fused, out[1])) << i << ": " << out[1];
        ASSERT_TRUE(same(in[0] - in[0], out[2])) << i << ": " << out[2];
        ASSERT_TRUE(same(in[0] * zero, out[3])) << i << ": " << out[3];
    }
}

}  // namespace
}  // namespace fornax::test
