// Every operation of a subgroup through the loader, at every size that the device offers, and what
// the device says of its subgroups.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "compiler/kernel/spirv/reconvergence.h"
#include "compiler/kernel/spirv/shader_harness.h"
#include "compiler/kernel/spirv/subgroup_cases.h"
#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

using kernel::SubgroupRun;
using Needs = kernel::SubgroupCase::Needs;

class SubgroupsTest : public VulkanTest {
  protected:
    void SetUp() override {
        core_features_.shaderFloat64 = VK_TRUE;
        core_features_.shaderInt64 = VK_TRUE;
        core_features_.shaderInt16 = VK_TRUE;
        more_extensions_ = {
            VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME,
            VK_EXT_SHADER_SUBGROUP_BALLOT_EXTENSION_NAME,
            VK_EXT_SHADER_SUBGROUP_VOTE_EXTENSION_NAME,
            VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME,
            VK_KHR_SHADER_SUBGROUP_EXTENDED_TYPES_EXTENSION_NAME,
            VK_KHR_SHADER_SUBGROUP_UNIFORM_CONTROL_FLOW_EXTENSION_NAME,
            VK_NV_SHADER_SUBGROUP_PARTITIONED_EXTENSION_NAME,
        };
        more_features_ = &uniform_control_flow_;
        Extend();
        VulkanTest::SetUp();
    }
    virtual void Extend() {}
    void CheckReconvergence(const std::string& attribute);

    void Check(Needs needs, uint32_t condition, uint32_t size);
    void CheckSizes(Needs needs) {
        uint32_t condition = 0;
        for (uint32_t size : {8u, 16u, 32u, 64u}) {
            Check(needs, condition++ % SubgroupRun::kConditions, size);
        }
        for (condition = 0; condition < SubgroupRun::kConditions; ++condition) {
            Check(needs, condition, 0);
        }
    }

    VkPhysicalDeviceShaderFloat16Int8Features arithmetic_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES,
        .shaderFloat16 = VK_TRUE,
        .shaderInt8 = VK_TRUE};
    VkPhysicalDeviceShaderSubgroupExtendedTypesFeatures types_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SUBGROUP_EXTENDED_TYPES_FEATURES,
        .pNext = &arithmetic_,
        .shaderSubgroupExtendedTypes = VK_TRUE};
    VkPhysicalDeviceSubgroupSizeControlFeatures size_control_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES,
        .pNext = &types_,
        .subgroupSizeControl = VK_TRUE,
        .computeFullSubgroups = VK_TRUE};
    VkPhysicalDeviceShaderSubgroupUniformControlFlowFeaturesKHR uniform_control_flow_{
        .sType =
            VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SUBGROUP_UNIFORM_CONTROL_FLOW_FEATURES_KHR,
        .pNext = &size_control_,
        .shaderSubgroupUniformControlFlow = VK_TRUE};
};

class YoungSubgroupsTest : public SubgroupsTest {
  protected:
    void Extend() override {
        more_extensions_.push_back(VK_KHR_SHADER_SUBGROUP_ROTATE_EXTENSION_NAME);
        more_extensions_.push_back(VK_KHR_SHADER_MAXIMAL_RECONVERGENCE_EXTENSION_NAME);
        more_extensions_.push_back(VK_KHR_SHADER_QUAD_CONTROL_EXTENSION_NAME);
        more_extensions_.push_back(VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME);
        size_control_.pNext = &rotate_;
    }

    VkPhysicalDeviceShaderQuadControlFeaturesKHR quads_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_QUAD_CONTROL_FEATURES_KHR,
        .pNext = &types_,
        .shaderQuadControl = VK_TRUE};
    VkPhysicalDeviceShaderMaximalReconvergenceFeaturesKHR reconvergence_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_MAXIMAL_RECONVERGENCE_FEATURES_KHR,
        .pNext = &quads_,
        .shaderMaximalReconvergence = VK_TRUE};
    VkPhysicalDeviceShaderSubgroupRotateFeatures rotate_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SUBGROUP_ROTATE_FEATURES,
        .pNext = &reconvergence_,
        .shaderSubgroupRotate = VK_TRUE,
        .shaderSubgroupRotateClustered = VK_TRUE};
};

// What is core since Vulkan 1.2 and has no extension.
class CoreSubgroupsTest : public YoungSubgroupsTest {
  protected:
    void Extend() override {
        YoungSubgroupsTest::Extend();
        api_version_ = VK_API_VERSION_1_2;
        quads_.pNext = nullptr;  // What follows is in the structure of Vulkan 1.2.
        core12_.pNext = more_features_;
        more_features_ = &core12_;
    }
    VkPhysicalDeviceVulkan12Features core12_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
        .shaderFloat16 = VK_TRUE,
        .shaderInt8 = VK_TRUE,
        .shaderSubgroupExtendedTypes = VK_TRUE,
        .hostQueryReset = VK_TRUE,
        .timelineSemaphore = VK_TRUE,
        .subgroupBroadcastDynamicId = VK_TRUE};
};

// `size` 0: the device's own.
void SubgroupsTest::Check(Needs needs, uint32_t condition, uint32_t size) {
    const SubgroupRun run{needs, condition};
    const std::vector<uint32_t> input = run.Input();
    const std::vector<uint32_t> fresh = run.FreshOutput();
    std::array buffers = {MakeBuffer(fresh.size()), MakeBuffer(input.size())};
    std::ranges::copy(fresh, buffers[0].words);
    std::ranges::copy(input, buffers[1].words);
    required_subgroup_size_ = size;
    const std::string options = needs == Needs::kSpirv15 ? "--target-env spirv1.5" : "";
    Run(MakePipeline(kernel::CompileGlsl(run.Shader(), options), buffers),
        SubgroupRun::kWorkgroups);
    EXPECT_EQ(run.FirstWrong(size == 0 ? 32 : size, buffers[0].span()), "");
}

TEST_F(SubgroupsTest, CoreOperations) {
    CheckSizes(Needs::kCore);
}
TEST_F(SubgroupsTest, KhrForms) {
    CheckSizes(Needs::kKhrForms);
}
TEST_F(CoreSubgroupsTest, LanesNamedAtRunTime) {
    CheckSizes(Needs::kSpirv15);
}
TEST_F(YoungSubgroupsTest, QuadControl) {
    CheckSizes(Needs::kQuadControl);
}
TEST_F(YoungSubgroupsTest, Rotate) {
    CheckSizes(Needs::kRotate);
}
TEST_F(SubgroupsTest, Partitioned) {
    CheckSizes(Needs::kPartitioned);
}
TEST_F(SubgroupsTest, OtherWidths) {
    CheckSizes(Needs::kSmallTypes);
}

TEST_F(SubgroupsTest, PropertiesSayWhatIsThere) {
    VkPhysicalDeviceSubgroupSizeControlProperties sizes{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
    VkPhysicalDeviceSubgroupProperties subgroup{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES, .pNext = &sizes};
    VkPhysicalDeviceProperties2 properties{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                           .pNext = &subgroup};
    vkGetPhysicalDeviceProperties2(physical_, &properties);
    EXPECT_EQ(subgroup.subgroupSize, 32u);
    EXPECT_EQ(subgroup.supportedStages, VK_SHADER_STAGE_COMPUTE_BIT);
    EXPECT_EQ(subgroup.supportedOperations & 0xffu, 0xffu);
    EXPECT_EQ(sizes.minSubgroupSize, 8u);
    EXPECT_EQ(sizes.maxSubgroupSize, 64u);
    EXPECT_EQ(sizes.requiredSubgroupSizeStages, VK_SHADER_STAGE_COMPUTE_BIT);
    EXPECT_EQ(sizes.maxComputeWorkgroupSubgroups,
              properties.properties.limits.maxComputeWorkGroupInvocations / 8);
}

// FORNAX_RECONVERGENCE_SEEDS=from:to runs others and more.
void SubgroupsTest::CheckReconvergence(const std::string& attribute) {
    uint64_t from = 1;
    uint64_t to = 25;
    if (const char* text = std::getenv("FORNAX_RECONVERGENCE_SEEDS")) {
        char* end = nullptr;
        from = std::strtoull(text, &end, 10);
        to = *end == ':' ? std::strtoull(end + 1, nullptr, 10) : from + 1;
    }
    const TestBuffer output = MakeBuffer(kernel::ReconvergenceProgram::kLanes *
                                         kernel::ReconvergenceProgram::kMaxRecords);
    const TestBuffer input = MakeBuffer(4);
    for (uint32_t i = 0; i < 4; ++i) {
        input.words[i] = i;
    }
    const std::array buffers = {output, input};
    size_t compared = 0;
    for (uint64_t seed = from; seed < to; ++seed) {
        const kernel::ReconvergenceProgram program(seed);
        required_subgroup_size_ = 8u << seed % 4;
        const std::vector<uint32_t> expected = program.Expected(required_subgroup_size_);
        if (expected.empty()) {
            continue;
        }
        ++compared;
        std::ranges::fill(output.span(), 0u);
        const std::string shader = program.Shader(attribute);
        Run(MakePipeline(kernel::CompileGlsl(shader), buffers), 1);
        ASSERT_TRUE(std::ranges::equal(output.span(), expected))
            << "seed " << seed << ", subgroups of " << required_subgroup_size_ << "\n"
            << shader;
    }
    EXPECT_GT(compared, 0u);
}

TEST_F(SubgroupsTest, SubgroupUniformControlFlow) {
    CheckReconvergence("subgroup_uniform_control_flow");
}
TEST_F(YoungSubgroupsTest, MaximalReconvergence) {
    CheckReconvergence("maximally_reconverges");
}

// Workgroups of whole subgroups have all lanes in all of them.
TEST_F(SubgroupsTest, FullSubgroups) {
    const char* source = R"(#version 450
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
layout(local_size_x = 64, local_size_y = 3) in;
layout(set = 0, binding = 0) buffer Out { uint o[]; };
void main() {
    uint lanes = subgroupBallotBitCount(subgroupBallot(true));
    o[gl_LocalInvocationIndex] = lanes | gl_NumSubgroups << 8 | gl_SubgroupID << 16;
}
)";
    for (uint32_t size : {8u, 16u, 32u, 64u}) {
        std::array buffers = {MakeBuffer(192)};
        required_subgroup_size_ = size;
        Run(MakePipeline(kernel::CompileGlsl(source), buffers), 1);
        for (uint32_t i = 0; i < 192; ++i) {
            ASSERT_EQ(buffers[0].words[i], size | 192 / size << 8 | i / size << 16) << i;
        }
    }
}

}  // namespace
}  // namespace fornax::test
