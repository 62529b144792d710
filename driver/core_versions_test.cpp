// What the versions 1.2 to 1.4 brought beside new objects: structures of properties that collect
// those of extensions, and the commands and structures of VK_KHR_maintenance4 to 6.
#include <gmock/gmock.h>

#include <cstring>

#include "driver/supported_api.h"
#include "driver/test_commands.h"

namespace fornax::driver_test {
namespace {

using ::testing::ElementsAre;

class CoreVersionsTest : public TestCommands {
  protected:
    void SetUp() override {
        VkPhysicalDeviceVulkan14Features features{
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_4_FEATURES,
            .maintenance5 = VK_TRUE,
            .maintenance6 = VK_TRUE,
            .pushDescriptor = VK_TRUE};
        CreateAll({.device_chain = &features, .api_version = VK_API_VERSION_1_4});
        MakeCommandPool();
    }

    template <typename T>
    T Properties(VkStructureType s_type) {
        T properties;
        std::memset(static_cast<void*>(&properties), 0, sizeof(properties));
        properties.sType = s_type;
        VkPhysicalDeviceProperties2 all{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                        .pNext = &properties};
        vkGetPhysicalDeviceProperties2(physical_device_, &all);
        return properties;
    }
};

// Every member, by the table that the driver itself does not fill them from by hand.
TEST_F(CoreVersionsTest, CollectedPropertiesAreThoseOfTheOriginalStructures) {
    for (const driver::AggregateProperties& aggregate : driver::AllAggregateProperties()) {
        alignas(16) std::byte collected[1024] = {};
        reinterpret_cast<VkBaseOutStructure*>(collected)->sType = aggregate.s_type;
        VkPhysicalDeviceProperties2 all{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                        .pNext = collected};
        vkGetPhysicalDeviceProperties2(physical_device_, &all);
        for (const driver::PropertySource& source : aggregate.sources) {
            alignas(16) std::byte single[1024] = {};
            ASSERT_LE(source.size_bytes, sizeof(single));
            reinterpret_cast<VkBaseOutStructure*>(single)->sType = source.s_type;
            all.pNext = single;
            vkGetPhysicalDeviceProperties2(physical_device_, &all);
            for (const driver::PropertyMember& m : source.members) {
                EXPECT_EQ(std::memcmp(collected + m.aggregate_offset, single + m.source_offset,
                                      m.size_bytes),
                          0)
                    << "structure " << source.s_type << ", offset " << m.source_offset;
            }
        }
    }
    const auto v11 = Properties<VkPhysicalDeviceVulkan11Properties>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES);
    EXPECT_EQ(v11.subgroupSize, 32u);
    EXPECT_EQ(v11.subgroupSupportedStages, VkShaderStageFlags(VK_SHADER_STAGE_COMPUTE_BIT));
    const auto v12 = Properties<VkPhysicalDeviceVulkan12Properties>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES);
    EXPECT_STREQ(v12.driverName, "Fornax");
    const auto v13 = Properties<VkPhysicalDeviceVulkan13Properties>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES);
    EXPECT_GE(v13.maxBufferSize, VkDeviceSize{1} << 30);  // table "Required Limits"
    const auto v14 = Properties<VkPhysicalDeviceVulkan14Properties>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_4_PROPERTIES);
    EXPECT_GE(v14.maxPushDescriptors, 32u);
}

TEST_F(CoreVersionsTest, RequirementsOfABufferThatDoesNotExistYet) {
    const VkBufferCreateInfo info{.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                  .size = 1001,
                                  .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
    const VkDeviceBufferMemoryRequirements query{
        .sType = VK_STRUCTURE_TYPE_DEVICE_BUFFER_MEMORY_REQUIREMENTS, .pCreateInfo = &info};
    VkMemoryRequirements2 before{.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2};
    vkGetDeviceBufferMemoryRequirements(device_, &query, &before);
    VkBuffer buffer = VK_NULL_HANDLE;
    ASSERT_EQ(vkCreateBuffer(device_, &info, nullptr, &buffer), VK_SUCCESS);
    VkMemoryRequirements after;
    vkGetBufferMemoryRequirements(device_, buffer, &after);
    EXPECT_EQ(std::memcmp(&before.memoryRequirements, &after, sizeof(after)), 0);
    EXPECT_GE(after.size, info.size);
    vkDestroyBuffer(device_, buffer, nullptr);
}

TEST_F(CoreVersionsTest, RequirementsOfAnImageThatDoesNotExistYet) {
    const VkImageCreateInfo info{.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
                                 .imageType = VK_IMAGE_TYPE_2D,
                                 .format = VK_FORMAT_R8G8B8A8_UNORM,
                                 .extent = {33, 17, 1},
                                 .mipLevels = 3,
                                 .arrayLayers = 2,
                                 .samples = VK_SAMPLE_COUNT_1_BIT,
                                 .tiling = VK_IMAGE_TILING_OPTIMAL,
                                 .usage = VK_IMAGE_USAGE_STORAGE_BIT};
    const VkImageSubresource2 subresource{.sType = VK_STRUCTURE_TYPE_IMAGE_SUBRESOURCE_2,
                                          .imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 1, 1}};
    const VkDeviceImageMemoryRequirements query{
        .sType = VK_STRUCTURE_TYPE_DEVICE_IMAGE_MEMORY_REQUIREMENTS, .pCreateInfo = &info};
    const VkDeviceImageSubresourceInfo layout_query{
        .sType = VK_STRUCTURE_TYPE_DEVICE_IMAGE_SUBRESOURCE_INFO,
        .pCreateInfo = &info,
        .pSubresource = &subresource};
    VkMemoryRequirements2 before{.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2};
    VkSubresourceLayout2 layout_before{.sType = VK_STRUCTURE_TYPE_SUBRESOURCE_LAYOUT_2};
    vkGetDeviceImageMemoryRequirements(device_, &query, &before);
    vkGetDeviceImageSubresourceLayout(device_, &layout_query, &layout_before);
    uint32_t sparse = 7;
    vkGetDeviceImageSparseMemoryRequirements(device_, &query, &sparse, nullptr);
    EXPECT_EQ(sparse, 0u);

    VkImage image = VK_NULL_HANDLE;
    ASSERT_EQ(vkCreateImage(device_, &info, nullptr, &image), VK_SUCCESS);
    VkMemoryRequirements after;
    VkSubresourceLayout2 layout_after{.sType = VK_STRUCTURE_TYPE_SUBRESOURCE_LAYOUT_2};
    vkGetImageMemoryRequirements(device_, image, &after);
    vkGetImageSubresourceLayout2(device_, image, &subresource, &layout_after);
    EXPECT_EQ(std::memcmp(&before.memoryRequirements, &after, sizeof(after)), 0);
    EXPECT_EQ(std::memcmp(&layout_before.subresourceLayout, &layout_after.subresourceLayout,
                          sizeof(VkSubresourceLayout)),
              0);
    EXPECT_GT(layout_after.subresourceLayout.offset, 0u);
    EXPECT_GE(layout_after.subresourceLayout.rowPitch, 16u * 4);
    vkDestroyImage(device_, image, nullptr);
}

// Rows of a base level lie in different sets of a cache, unless the application lays them out.
TEST_F(CoreVersionsTest, RowsOfImagesAreNoPowerOfTwoApart) {
    const auto pitch_of = [&](uint32_t width, VkImageTiling tiling, uint32_t level) {
        const VkImageCreateInfo info{.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
                                     .imageType = VK_IMAGE_TYPE_2D,
                                     .format = VK_FORMAT_R8G8B8A8_UNORM,
                                     .extent = {width, 16, 1},
                                     .mipLevels = 2,
                                     .arrayLayers = 1,
                                     .samples = VK_SAMPLE_COUNT_1_BIT,
                                     .tiling = tiling,
                                     .usage = VK_IMAGE_USAGE_STORAGE_BIT};
        const VkImageSubresource2 subresource{
            .sType = VK_STRUCTURE_TYPE_IMAGE_SUBRESOURCE_2,
            .imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, level, 0}};
        const VkDeviceImageSubresourceInfo query{
            .sType = VK_STRUCTURE_TYPE_DEVICE_IMAGE_SUBRESOURCE_INFO,
            .pCreateInfo = &info,
            .pSubresource = &subresource};
        VkSubresourceLayout2 layout{.sType = VK_STRUCTURE_TYPE_SUBRESOURCE_LAYOUT_2};
        vkGetDeviceImageSubresourceLayout(device_, &query, &layout);
        return layout.subresourceLayout.rowPitch;
    };
    EXPECT_EQ(pitch_of(2048, VK_IMAGE_TILING_OPTIMAL, 0), 8192u + 64);
    EXPECT_EQ(pitch_of(2048, VK_IMAGE_TILING_OPTIMAL, 1), 4096u);
    EXPECT_EQ(pitch_of(2048, VK_IMAGE_TILING_LINEAR, 0), 8192u);
    EXPECT_EQ(pitch_of(2000, VK_IMAGE_TILING_OPTIMAL, 0), 8000u);
}

TEST_F(CoreVersionsTest, BindingTellsItsStatus) {
    const TestBuffer memory = MakeBuffer(4096);
    const VkBufferCreateInfo info{.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                  .size = 64,
                                  .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
    VkBuffer buffer = VK_NULL_HANDLE;
    ASSERT_EQ(vkCreateBuffer(device_, &info, nullptr, &buffer), VK_SUCCESS);
    VkResult result = VK_ERROR_UNKNOWN;
    const VkBindMemoryStatus status{.sType = VK_STRUCTURE_TYPE_BIND_MEMORY_STATUS,
                                    .pResult = &result};
    const VkBindBufferMemoryInfo bind{.sType = VK_STRUCTURE_TYPE_BIND_BUFFER_MEMORY_INFO,
                                      .pNext = &status,
                                      .buffer = buffer,
                                      .memory = memory.memory};
    EXPECT_EQ(vkBindBufferMemory2(device_, 1, &bind), VK_SUCCESS);
    EXPECT_EQ(result, VK_SUCCESS);
    vkDestroyBuffer(device_, buffer, nullptr);
}

// Code in the stage's chain instead of a module, and flags of 64 bits.
TEST_F(CoreVersionsTest, PipelinesWithoutAModuleAndTheSecondFormOfEveryBinding) {
    constexpr auto kStorage = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    const VkDescriptorSetLayout set_layout = MakeSetLayout(kStorage, 1);
    const VkPipelineLayout layout = MakePipelineLayout({set_layout});
    const VkShaderModuleCreateInfo code{.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                        .codeSize = sizeof(kRecordingProgram),
                                        .pCode = kRecordingProgram.data()};
    const VkPipelineCreateFlags2CreateInfo flags{
        .sType = VK_STRUCTURE_TYPE_PIPELINE_CREATE_FLAGS_2_CREATE_INFO,
        .flags = VK_PIPELINE_CREATE_2_DISPATCH_BASE_BIT};
    const VkComputePipelineCreateInfo info{
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .pNext = &flags,
        .flags = VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT,  // has no effect
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .pNext = &code,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .pName = "main"},
        .layout = layout};
    VkPipeline pipeline = VK_NULL_HANDLE;
    ASSERT_EQ(vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline),
              VK_SUCCESS);
    AtEnd([this, pipeline] { vkDestroyPipeline(device_, pipeline, nullptr); });

    const TestBuffer records = MakeBuffer(64 * sizeof(DispatchRecord));
    const VkDescriptorSet sets[] = {
        MakeSet(set_layout, kStorage, {records.buffer, 0, VK_WHOLE_SIZE})};
    const uint32_t constants[4] = {1, 2, 0, 4};
    const VkPushConstantsInfo push{.sType = VK_STRUCTURE_TYPE_PUSH_CONSTANTS_INFO,
                                   .layout = layout,
                                   .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
                                   .size = sizeof(constants),
                                   .pValues = constants};
    VkBindDescriptorSetsInfo bind{.sType = VK_STRUCTURE_TYPE_BIND_DESCRIPTOR_SETS_INFO,
                                  .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
                                  .layout = layout,
                                  .descriptorSetCount = 1,
                                  .pDescriptorSets = sets};
    Run([&](VkCommandBuffer commands) {
        vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
        vkCmdPushConstants2(commands, &push);
        vkCmdBindDescriptorSets2(commands, &bind);
        // Other stages' bindings leave those of compute alone; null sets change nothing.
        const VkDescriptorSet none[] = {VK_NULL_HANDLE};
        bind.pDescriptorSets = none;
        vkCmdBindDescriptorSets2(commands, &bind);
        vkCmdDispatch(commands, 1, 1, 1);
    });
    EXPECT_EQ(records.as<DispatchRecord>()->runs, 1u);
    EXPECT_THAT(records.as<DispatchRecord>()->constants, ElementsAre(1, 2, 0, 4));
}

}  // namespace
}  // namespace fornax::driver_test
