// What FORNAX_COMPAT=graphics,conformance shows, and how what draws or presents is refused.
#include "driver/compat.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/log.h"
#include "driver/supported_api.h"
#include "driver/test_device.h"
#include "icd/entry_point.h"

namespace fornax::driver_test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> g_messages;

// Before anything reads the variable.
class CompatEnvironment : public ::testing::Environment {
  public:
    void SetUp() override {
        setenv("FORNAX_COMPAT", "graphics,conformance,grafics", 1);
        SetLogSink([](LogLevel, std::string_view message) { g_messages.emplace_back(message); });
    }
};
const ::testing::Environment* const kEnvironment =
    ::testing::AddGlobalTestEnvironment(new CompatEnvironment);

class CompatTest : public TestDevice {
  protected:
    void SetUp() override {
        ASSERT_NE(kEnvironment, nullptr);
        CreateAll({.instance_extensions = {VK_KHR_SURFACE_EXTENSION_NAME, "VK_KHR_xlib_surface",
                                           "VK_KHR_xcb_surface", "VK_KHR_wayland_surface"},
                   .device_extensions = {VK_KHR_SWAPCHAIN_EXTENSION_NAME},
                   .api_version = VK_API_VERSION_1_3});
    }

    // A command buffer that is recording, freed with its pool.
    VkCommandBuffer Record() {
        const VkCommandPoolCreateInfo pool_info{.sType =
                                                    VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
        EXPECT_EQ(vkCreateCommandPool(device_, &pool_info, nullptr, &pool_), VK_SUCCESS);
        const VkCommandBufferAllocateInfo info{
            .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
            .commandPool = pool_,
            .commandBufferCount = 1};
        VkCommandBuffer commands = VK_NULL_HANDLE;
        EXPECT_EQ(vkAllocateCommandBuffers(device_, &info, &commands), VK_SUCCESS);
        const VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
        EXPECT_EQ(vkBeginCommandBuffer(commands, &begin), VK_SUCCESS);
        g_messages.clear();
        return commands;
    }

    void TearDown() override {
        if (pool_) {
            vkDestroyCommandPool(device_, pool_, nullptr);
        }
        TestDevice::TearDown();
    }

    VkCommandPool pool_ = VK_NULL_HANDLE;
};

TEST_F(CompatTest, UnknownWordsAreToldOnce) {
    driver::GetCompatModes();
    const auto told = std::ranges::count_if(g_messages, [](const std::string& message) {
        return message.find("FORNAX_COMPAT has the unknown word 'grafics'") != std::string::npos;
    });
    EXPECT_EQ(told, 1);
}

TEST_F(CompatTest, AQueueFamilyIsForGraphicsAndCompute) {
    uint32_t count = 2;
    VkQueueFamilyProperties families[2];
    vkGetPhysicalDeviceQueueFamilyProperties(physical_device_, &count, families);
    EXPECT_EQ(families[0].queueFlags,
              VkQueueFlags{VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT});
    EXPECT_EQ(families[1].queueFlags, VkQueueFlags{VK_QUEUE_TRANSFER_BIT});
}

TEST_F(CompatTest, FeaturesLimitsAndPropertiesThatProgramsDemand) {
    VkPhysicalDeviceDriverProperties driver{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceSubgroupProperties subgroup{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES, .pNext = &driver};
    VkPhysicalDeviceProperties2 properties{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                           .pNext = &subgroup};
    vkGetPhysicalDeviceProperties2(physical_device_, &properties);
    const VkPhysicalDeviceLimits& limits = properties.properties.limits;
    EXPECT_GE(limits.maxFragmentCombinedOutputResources, 64u);
    EXPECT_GE(limits.maxFramebufferWidth, limits.maxImageDimension2D);
    EXPECT_GE(limits.maxViewportDimensions[0], limits.maxFramebufferWidth);
    EXPECT_EQ(limits.maxDrawIndexedIndexValue, UINT32_MAX);
    EXPECT_GE(limits.maxColorAttachments, 8u);
    EXPECT_EQ(subgroup.supportedStages,
              VkShaderStageFlags{VK_SHADER_STAGE_VERTEX_BIT | VK_SHADER_STAGE_FRAGMENT_BIT |
                                 VK_SHADER_STAGE_COMPUTE_BIT});
    EXPECT_EQ(driver.conformanceVersion.major, 1u);

    VkPhysicalDeviceFeatures features;
    vkGetPhysicalDeviceFeatures(physical_device_, &features);
    EXPECT_TRUE(features.depthBiasClamp);
    EXPECT_TRUE(features.fragmentStoresAndAtomics);
    EXPECT_TRUE(features.fullDrawIndexUint32);
    EXPECT_TRUE(features.independentBlend);
    EXPECT_TRUE(features.sampleRateShading);
    EXPECT_TRUE(features.vertexPipelineStoresAndAtomics);
    EXPECT_FALSE(features.geometryShader);
}

TEST_F(CompatTest, DepthAttachmentsCanBeMade) {
    VkFormatProperties format;
    vkGetPhysicalDeviceFormatProperties(physical_device_, VK_FORMAT_D32_SFLOAT_S8_UINT, &format);
    EXPECT_TRUE(format.optimalTilingFeatures & VK_FORMAT_FEATURE_DEPTH_STENCIL_ATTACHMENT_BIT);
    EXPECT_FALSE(format.linearTilingFeatures & VK_FORMAT_FEATURE_DEPTH_STENCIL_ATTACHMENT_BIT);
    vkGetPhysicalDeviceFormatProperties(physical_device_, VK_FORMAT_R8G8B8A8_UNORM, &format);
    EXPECT_FALSE(format.optimalTilingFeatures & VK_FORMAT_FEATURE_COLOR_ATTACHMENT_BIT);

    struct {
        VkFormat format;
        VkImageUsageFlags usage;
        VkSampleCountFlagBits samples;
    } const cases[] = {
        {VK_FORMAT_D32_SFLOAT, VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT, VK_SAMPLE_COUNT_1_BIT},
        {VK_FORMAT_D24_UNORM_S8_UINT,
         VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT | VK_IMAGE_USAGE_SAMPLED_BIT,
         VK_SAMPLE_COUNT_4_BIT},
        {VK_FORMAT_S8_UINT,
         VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT | VK_IMAGE_USAGE_TRANSIENT_ATTACHMENT_BIT |
             VK_IMAGE_USAGE_INPUT_ATTACHMENT_BIT,
         VK_SAMPLE_COUNT_1_BIT},
    };
    for (const auto& c : cases) {
        SCOPED_TRACE(c.format);
        VkImageFormatProperties allowed;
        EXPECT_EQ(
            vkGetPhysicalDeviceImageFormatProperties(physical_device_, c.format, VK_IMAGE_TYPE_2D,
                                                     VK_IMAGE_TILING_OPTIMAL, c.usage, 0, &allowed),
            VK_SUCCESS);
        EXPECT_TRUE(allowed.sampleCounts & c.samples);
        const VkImageCreateInfo info{.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
                                     .imageType = VK_IMAGE_TYPE_2D,
                                     .format = c.format,
                                     .extent = {64, 64, 1},
                                     .mipLevels = 1,
                                     .arrayLayers = 1,
                                     .samples = c.samples,
                                     .usage = c.usage};
        VkImage image = VK_NULL_HANDLE;
        EXPECT_EQ(vkCreateImage(device_, &info, nullptr, &image), VK_SUCCESS);
        vkDestroyImage(device_, image, nullptr);
    }
    VkImageFormatProperties refused;
    EXPECT_EQ(vkGetPhysicalDeviceImageFormatProperties(physical_device_, VK_FORMAT_R8G8B8A8_UNORM,
                                                       VK_IMAGE_TYPE_2D, VK_IMAGE_TILING_OPTIMAL,
                                                       VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT,
                                                       0, &refused),
              VK_ERROR_FORMAT_NOT_SUPPORTED);
}

TEST_F(CompatTest, ObjectsOfGraphicsAreRefusedByName) {
    g_messages.clear();
    VkPipeline pipelines[2] = {reinterpret_cast<VkPipeline>(uintptr_t{0xdead}),
                               reinterpret_cast<VkPipeline>(uintptr_t{0xdead})};
    const VkGraphicsPipelineCreateInfo graphics[2] = {};
    EXPECT_EQ(vkCreateGraphicsPipelines(device_, VK_NULL_HANDLE, 2, graphics, nullptr, pipelines),
              VK_ERROR_FEATURE_NOT_PRESENT);
    EXPECT_THAT(pipelines, Each(VkPipeline(VK_NULL_HANDLE)));
    EXPECT_THAT(g_messages, ElementsAre(AllOf(HasSubstr("vkCreateGraphicsPipelines"),
                                              HasSubstr("draws and presents nothing"))));

    const VkRenderPassCreateInfo pass{.sType = VK_STRUCTURE_TYPE_RENDER_PASS_CREATE_INFO};
    auto render_pass = reinterpret_cast<VkRenderPass>(uintptr_t{0xdead});
    EXPECT_EQ(vkCreateRenderPass(device_, &pass, nullptr, &render_pass),
              VK_ERROR_FEATURE_NOT_PRESENT);
    EXPECT_EQ(render_pass, VkRenderPass(VK_NULL_HANDLE));
    vkDestroyRenderPass(device_, render_pass, nullptr);
}

TEST_F(CompatTest, SwapchainsAreRefusedByName) {
    g_messages.clear();
    const VkSwapchainCreateInfoKHR info{.sType = VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR};
    auto swapchain = reinterpret_cast<VkSwapchainKHR>(uintptr_t{0xdead});
    EXPECT_EQ(vkCreateSwapchainKHR(device_, &info, nullptr, &swapchain),
              VK_ERROR_FEATURE_NOT_PRESENT);
    EXPECT_EQ(swapchain, VkSwapchainKHR(VK_NULL_HANDLE));
    EXPECT_THAT(g_messages, ElementsAre(HasSubstr("vkCreateSwapchainKHR")));
    uint32_t count = 0;
    EXPECT_EQ(vkGetSwapchainImagesKHR(device_, swapchain, &count, nullptr),
              VK_ERROR_FEATURE_NOT_PRESENT);
    vkDestroySwapchainKHR(device_, swapchain, nullptr);
}

// Draws are one error at the end of the recording, told in one sentence.
TEST_F(CompatTest, RecordingsThatDrawFail) {
    VkCommandBuffer commands = Record();
    const VkRenderingInfo rendering{.sType = VK_STRUCTURE_TYPE_RENDERING_INFO};
    vkCmdBeginRendering(commands, &rendering);
    vkCmdDraw(commands, 3, 1, 0, 0);
    vkCmdEndRendering(commands);
    EXPECT_THAT(g_messages, ElementsAre(HasSubstr("vkCmdBeginRendering")));
    EXPECT_EQ(vkEndCommandBuffer(commands), VK_ERROR_FEATURE_NOT_PRESENT);

    // The next recording is another one.
    const VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    EXPECT_EQ(vkResetCommandPool(device_, pool_, 0), VK_SUCCESS);
    EXPECT_EQ(vkBeginCommandBuffer(commands, &begin), VK_SUCCESS);
    EXPECT_EQ(vkEndCommandBuffer(commands), VK_SUCCESS);
}

TEST_F(CompatTest, EveryAdvertisedCommandIsImplemented) {
    std::vector<std::string> missing;
    for (const icd::EntryPoint& entry : icd::AllEntryPoints()) {
        if (entry.available(driver::SupportedApi()) && !entry.function) {
            missing.emplace_back(entry.name);
        }
    }
    EXPECT_THAT(missing, IsEmpty());
    for (const auto& extension : driver::AllInstanceExtensions()) {
        if (driver::SupportedApi().instance.*extension.member) {
            EXPECT_TRUE(extension.dependencies_met(driver::SupportedApi())) << extension.name;
        }
    }
    for (const auto& extension : driver::AllDeviceExtensions()) {
        if (driver::SupportedApi().device.*extension.member) {
            EXPECT_TRUE(extension.dependencies_met(driver::SupportedApi())) << extension.name;
        }
    }
}

}  // namespace
}  // namespace fornax::driver_test
