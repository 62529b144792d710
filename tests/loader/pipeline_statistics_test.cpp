// VK_KHR_pipeline_executable_properties, which is only there with FORNAX_PIPELINE_STATISTICS.
#include <array>
#include <cstdlib>
#include <map>
#include <string>

#include "tests/loader/shaders/shared_sums.spv.h"
#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

class PipelineStatisticsTest : public VulkanTest {
  protected:
    void SetUp() override {
        if (!std::getenv("FORNAX_PIPELINE_STATISTICS")) {
            return;
        }
        more_extensions_ = {VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME};
        more_features_ = &features_;
        VulkanTest::SetUp();
    }
    void TearDown() override {
        if (device_) {
            VulkanTest::TearDown();
        }
    }

    VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR features_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR,
        .pipelineExecutableInfo = VK_TRUE};
};

TEST_F(PipelineStatisticsTest, AreThereWhenAskedFor) {
    if (!std::getenv("FORNAX_PIPELINE_STATISTICS")) {
        more_extensions_ = {};
        VulkanTest::SetUp();
        uint32_t count = 0;
        EXPECT_VK(vkEnumerateDeviceExtensionProperties(physical_, nullptr, &count, nullptr));
        std::vector<VkExtensionProperties> all(count);
        EXPECT_VK(vkEnumerateDeviceExtensionProperties(physical_, nullptr, &count, all.data()));
        for (const auto& extension : all) {
            EXPECT_STRNE(extension.extensionName,
                         VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
        }
        return;
    }
    std::array buffers = {MakeBuffer(1024), MakeBuffer(1024), MakeBuffer(1024)};
    const TestPipeline pipeline = MakePipeline(spirv::kSharedSums, buffers);
    const VkPipelineInfoKHR info{.sType = VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR,
                                 .pipeline = pipeline.pipeline};
    VkPipelineExecutablePropertiesKHR properties{
        .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR};
    uint32_t count = 1;
    ASSERT_VK(vkGetPipelineExecutablePropertiesKHR(device_, &info, &count, &properties));
    ASSERT_EQ(count, 1u);
    EXPECT_EQ(properties.stages, VkFlags{VK_SHADER_STAGE_COMPUTE_BIT});
    EXPECT_EQ(properties.subgroupSize, 32u);
    EXPECT_STRNE(properties.name, "");

    const VkPipelineExecutableInfoKHR executable{
        .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, .pipeline = pipeline.pipeline};
    ASSERT_VK(vkGetPipelineExecutableStatisticsKHR(device_, &executable, &count, nullptr));
    std::vector<VkPipelineExecutableStatisticKHR> statistics(
        count, {.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR});
    ASSERT_VK(
        vkGetPipelineExecutableStatisticsKHR(device_, &executable, &count, statistics.data()));
    std::map<std::string, uint64_t> values;
    for (const auto& statistic : statistics) {
        EXPECT_EQ(statistic.format, VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR);
        EXPECT_STRNE(statistic.description, "");
        values[statistic.name] = statistic.value.u64;
    }
    EXPECT_GT(values["Native code"], 100u);
    EXPECT_GT(values["Workgroup memory"], 0u);
    EXPECT_GT(values["Invocations"], 1u);
    count = 7;
    EXPECT_VK(
        vkGetPipelineExecutableInternalRepresentationsKHR(device_, &executable, &count, nullptr));
    EXPECT_EQ(count, 0u);
}

}  // namespace
}  // namespace fornax::test
