// Small extensions of SPIR-V through the loader: expect and assume, replicated composites.
#include <array>

#include "tests/loader/shaders/hints.spv.h"
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
    for (uint32_t i = 0; i < 64; ++i)
        ASSERT_EQ(buffers[0].words[i], 5 + special + i * i) << i;
}

}  // namespace
}  // namespace fornax::test
