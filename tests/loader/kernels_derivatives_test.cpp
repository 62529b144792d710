// Derivatives and quads of compute shaders through the loader, at every size of subgroup.
#include <algorithm>
#include <array>

#include "compiler/kernel/spirv/derivative_cases.h"
#include "compiler/kernel/spirv/shader_harness.h"
#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

using kernel::DerivativeRun;

class KernelsDerivativesTest : public VulkanTest {
  protected:
    void SetUp() override {
        more_extensions_ = {VK_KHR_COMPUTE_SHADER_DERIVATIVES_EXTENSION_NAME,
                            VK_NV_COMPUTE_SHADER_DERIVATIVES_EXTENSION_NAME,
                            VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME};
        more_features_ = &sizes_;
        VulkanTest::SetUp();
    }

    VkPhysicalDeviceComputeShaderDerivativesFeaturesKHR derivatives_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COMPUTE_SHADER_DERIVATIVES_FEATURES_KHR,
        .computeDerivativeGroupQuads = VK_TRUE,
        .computeDerivativeGroupLinear = VK_TRUE};
    VkPhysicalDeviceSubgroupSizeControlFeatures sizes_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES,
        .pNext = &derivatives_,
        .subgroupSizeControl = VK_TRUE,
        .computeFullSubgroups = VK_TRUE};
};

TEST_F(KernelsDerivativesTest, EveryKindOfGroup) {
    constexpr uint32_t kSizes[] = {0, 8, 16, 32, 64};
    size_t at = 0;
    for (const DerivativeRun& run : kernel::DerivativeRuns()) {
        const std::vector<uint32_t> input = run.Input();
        const std::vector<uint32_t> fresh = run.FreshOutput();
        std::array buffers = {MakeBuffer(fresh.size()), MakeBuffer(input.size())};
        std::ranges::copy(fresh, buffers[0].words);
        std::ranges::copy(input, buffers[1].words);
        required_subgroup_size_ = kSizes[at++ % std::size(kSizes)];
        Run(MakePipeline(kernel::CompileGlsl(run.Shader()), buffers), DerivativeRun::kWorkgroups);
        ASSERT_EQ(run.FirstWrong(buffers[0].span()), "");
    }
}

TEST_F(KernelsDerivativesTest, PropertiesSayWhatIsThere) {
    VkPhysicalDeviceComputeShaderDerivativesPropertiesKHR derivatives{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COMPUTE_SHADER_DERIVATIVES_PROPERTIES_KHR,
        .meshAndTaskShaderDerivatives = VK_TRUE};
    VkPhysicalDeviceProperties2 properties{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                           .pNext = &derivatives};
    vkGetPhysicalDeviceProperties2(physical_, &properties);
    EXPECT_EQ(derivatives.meshAndTaskShaderDerivatives, VK_FALSE);
}

}  // namespace
}  // namespace fornax::test
