// What the physical device says of itself is what the specification demands and what the device
// below can do.
#include "driver/physical_device.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>

#include "driver/supported_api.h"
#include "driver/test_device.h"

namespace fornax::driver_test {
namespace {

class PhysicalDeviceTest : public TestDevice {
  protected:
    void SetUp() override { Open(); }

    void Open() {
        ASSERT_EQ(CreateInstance(), VK_SUCCESS);
        uint32_t count = 1;
        ASSERT_EQ(vkEnumeratePhysicalDevices(instance_, &count, &physical_device_), VK_SUCCESS);
        ASSERT_EQ(count, 1u);
        vkGetPhysicalDeviceProperties(physical_device_, &properties_);
    }

    VkPhysicalDeviceProperties properties_ = {};
};

TEST_F(PhysicalDeviceTest, IsIdentifiedStably) {
    EXPECT_EQ(properties_.apiVersion, driver::kApiVersion);
    EXPECT_EQ(properties_.deviceType, VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU);
    // "Vendors without a PCI id use a Khronos vendor id": above 16 bits.
    EXPECT_GE(properties_.vendorID, 0x10000u);
    EXPECT_GT(std::strlen(properties_.deviceName), 0u);

    VkPhysicalDeviceDriverProperties driver{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceIDProperties ids{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES,
                                     .pNext = &driver};
    VkPhysicalDeviceProperties2 properties2{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                            .pNext = &ids};
    vkGetPhysicalDeviceProperties2(physical_device_, &properties2);
    EXPECT_EQ(std::memcmp(&properties2.properties, &properties_, sizeof(properties_)), 0);
    EXPECT_STREQ(driver.driverName, "Fornax");
    EXPECT_GT(std::strlen(driver.driverInfo), 0u);
    EXPECT_EQ(driver.conformanceVersion.major, 0);
    EXPECT_EQ(ids.sType, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES);
    EXPECT_EQ(ids.pNext, &driver);
    EXPECT_FALSE(ids.deviceLUIDValid);

    DestroyAll();
    Open();
    VkPhysicalDeviceIDProperties again{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
    properties2.pNext = &again;
    vkGetPhysicalDeviceProperties2(physical_device_, &properties2);
    EXPECT_EQ(std::memcmp(again.deviceUUID, ids.deviceUUID, VK_UUID_SIZE), 0);
    EXPECT_EQ(std::memcmp(again.driverUUID, ids.driverUUID, VK_UUID_SIZE), 0);
    EXPECT_NE(std::memcmp(again.deviceUUID, again.driverUUID, VK_UUID_SIZE), 0);
}

// "Required Limits", for what compute can reach.
TEST_F(PhysicalDeviceTest, LimitsAreAtLeastTheRequiredOnes) {
    const VkPhysicalDeviceLimits& limits = properties_.limits;
    EXPECT_EQ(limits.maxComputeWorkGroupInvocations, 1024u);
    EXPECT_EQ(limits.maxComputeSharedMemorySize, 65536u);
    EXPECT_EQ(limits.maxPushConstantsSize, 256u);
    EXPECT_EQ(limits.maxStorageBufferRange, 0xffffffffu);
    EXPECT_GE(limits.maxPerStageDescriptorStorageBuffers, 12u);
    EXPECT_GE(limits.maxPerStageDescriptorUniformBuffers, 12u);
    EXPECT_GE(limits.maxPerStageResources, 128u);
    EXPECT_GE(limits.maxDescriptorSetUniformBuffersDynamic, 8u);
    EXPECT_GE(limits.maxDescriptorSetStorageBuffersDynamic, 4u);
    EXPECT_GE(limits.maxBoundDescriptorSets, 4u);
    EXPECT_GE(limits.maxMemoryAllocationCount, 4096u);
    EXPECT_GE(limits.minMemoryMapAlignment, 64u);
    EXPECT_LE(limits.nonCoherentAtomSize, 256u);
    EXPECT_LE(limits.minStorageBufferOffsetAlignment, 256u);
    for (int i = 0; i < 3; ++i) {
        EXPECT_GE(limits.maxComputeWorkGroupCount[i], 65535u);
        EXPECT_GE(limits.maxComputeWorkGroupSize[i], i == 2 ? 64u : 128u);
    }
    EXPECT_TRUE(limits.timestampComputeAndGraphics);
    EXPECT_EQ(limits.timestampPeriod, 1.0f);
}

TEST_F(PhysicalDeviceTest, SaysWhatArithmeticIsLike) {
    VkPhysicalDeviceShaderIntegerDotProductProperties dot{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES};
    VkPhysicalDeviceFloatControlsProperties floats{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES, .pNext = &dot};
    VkPhysicalDeviceProperties2 properties2{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                            .pNext = &floats};
    vkGetPhysicalDeviceProperties2(physical_device_, &properties2);
    EXPECT_TRUE(floats.shaderRoundingModeRTEFloat16);
    EXPECT_TRUE(floats.shaderDenormPreserveFloat32);
    EXPECT_TRUE(floats.shaderSignedZeroInfNanPreserveFloat64);
    EXPECT_TRUE(floats.shaderDenormFlushToZeroFloat32);
    EXPECT_TRUE(floats.shaderRoundingModeRTZFloat16);
    EXPECT_EQ(floats.roundingModeIndependence, VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL);
    EXPECT_TRUE(dot.integerDotProduct4x8BitPackedSignedAccelerated);
    EXPECT_TRUE(dot.integerDotProductAccumulatingSaturating4x8BitPackedUnsignedAccelerated);
    EXPECT_FALSE(dot.integerDotProduct16BitSignedAccelerated);
}

TEST_F(PhysicalDeviceTest, HasAFamilyForComputeAndOneForTransfers) {
    uint32_t count = 0;
    vkGetPhysicalDeviceQueueFamilyProperties(physical_device_, &count, nullptr);
    ASSERT_EQ(count, 2u);
    VkQueueFamilyProperties families[2];
    vkGetPhysicalDeviceQueueFamilyProperties(physical_device_, &count, families);
    EXPECT_EQ(families[0].queueFlags, VkQueueFlags{VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT});
    EXPECT_EQ(families[0].timestampValidBits, 64u);
    EXPECT_EQ(families[1].queueFlags, VkQueueFlags{VK_QUEUE_TRANSFER_BIT});
    EXPECT_EQ(families[1].minImageTransferGranularity.width, 1u);
    // Room for one: the first.
    count = 1;
    families[0].queueCount = 77;
    vkGetPhysicalDeviceQueueFamilyProperties(physical_device_, &count, families);
    EXPECT_EQ(count, 1u);
    EXPECT_NE(families[0].queueCount, 77u);
    // No room: nothing is written.
    count = 0;
    families[0].queueCount = 77;
    vkGetPhysicalDeviceQueueFamilyProperties(physical_device_, &count, families);
    EXPECT_EQ(count, 0u);
    EXPECT_EQ(families[0].queueCount, 77u);
}

TEST_F(PhysicalDeviceTest, QueuesHaveOneGlobalPriority) {
    const auto create = [&](VkQueueGlobalPriority priority, uint32_t family, uint32_t count,
                            VkBool32 query) {
        const VkPhysicalDeviceGlobalPriorityQueryFeatures feature{
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_GLOBAL_PRIORITY_QUERY_FEATURES,
            .globalPriorityQuery = query};
        const VkDeviceQueueGlobalPriorityCreateInfo global{
            .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_GLOBAL_PRIORITY_CREATE_INFO,
            .globalPriority = priority};
        const std::vector<float> priorities(count, 0.5f);
        const VkDeviceQueueCreateInfo queues{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                             .pNext = &global,
                                             .queueFamilyIndex = family,
                                             .queueCount = count,
                                             .pQueuePriorities = priorities.data()};
        const char* extension = VK_KHR_GLOBAL_PRIORITY_EXTENSION_NAME;
        const VkDeviceCreateInfo info{.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                      .pNext = &feature,
                                      .queueCreateInfoCount = 1,
                                      .pQueueCreateInfos = &queues,
                                      .enabledExtensionCount = 1,
                                      .ppEnabledExtensionNames = &extension};
        VkDevice device = VK_NULL_HANDLE;
        const VkResult result = vkCreateDevice(physical_device_, &info, nullptr, &device);
        if (result == VK_SUCCESS) {
            vkDestroyDevice(device, nullptr);
        }
        return result;
    };
    EXPECT_EQ(create(VK_QUEUE_GLOBAL_PRIORITY_MEDIUM, 1, 2, VK_TRUE), VK_SUCCESS);
    EXPECT_EQ(create(VK_QUEUE_GLOBAL_PRIORITY_LOW, 0, 4, VK_FALSE), VK_SUCCESS);
    EXPECT_EQ(create(VK_QUEUE_GLOBAL_PRIORITY_LOW, 0, 1, VK_TRUE), VK_ERROR_INITIALIZATION_FAILED);
    EXPECT_EQ(create(VK_QUEUE_GLOBAL_PRIORITY_HIGH, 0, 1, VK_TRUE), VK_ERROR_INITIALIZATION_FAILED);
    EXPECT_EQ(create(VK_QUEUE_GLOBAL_PRIORITY_HIGH, 0, 1, VK_FALSE), VK_ERROR_NOT_PERMITTED);
    // More queues than there are, and a family that is not there.
    EXPECT_EQ(create(VK_QUEUE_GLOBAL_PRIORITY_MEDIUM, 0, 5, VK_FALSE),
              VK_ERROR_INITIALIZATION_FAILED);
    EXPECT_EQ(create(VK_QUEUE_GLOBAL_PRIORITY_MEDIUM, 2, 1, VK_FALSE),
              VK_ERROR_INITIALIZATION_FAILED);
}

TEST_F(PhysicalDeviceTest, BudgetFollowsAllocations) {
    ASSERT_EQ(CreateDevice({}), VK_SUCCESS);
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 properties{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, .pNext = &budget};
    vkGetPhysicalDeviceMemoryProperties2(physical_device_, &properties);
    const auto& memory = properties.memoryProperties;
    ASSERT_EQ(memory.memoryHeapCount, 1u);
    ASSERT_EQ(memory.memoryTypeCount, 1u);
    EXPECT_EQ(memory.memoryTypes[0].propertyFlags, driver::kMemoryTypeFlags);
    EXPECT_GT(budget.heapBudget[0], 0u);
    EXPECT_LE(budget.heapBudget[0], memory.memoryHeaps[0].size);
    EXPECT_EQ(budget.heapUsage[0], 0u);

    const VkMemoryAllocateInfo info{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                    .allocationSize = 1 << 20};
    VkDeviceMemory allocation = VK_NULL_HANDLE;
    ASSERT_EQ(vkAllocateMemory(device_, &info, nullptr, &allocation), VK_SUCCESS);
    vkGetPhysicalDeviceMemoryProperties2(physical_device_, &properties);
    EXPECT_GE(budget.heapUsage[0], 1u << 20);
    vkFreeMemory(device_, allocation, nullptr);
    vkGetPhysicalDeviceMemoryProperties2(physical_device_, &properties);
    EXPECT_EQ(budget.heapUsage[0], 0u);

    // More than the heap.
    const VkMemoryAllocateInfo too_much{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                        .allocationSize = memory.memoryHeaps[0].size + 4096};
    EXPECT_EQ(vkAllocateMemory(device_, &too_much, nullptr, &allocation),
              VK_ERROR_OUT_OF_DEVICE_MEMORY);
}

// "heapUsage: how much memory the process is currently using": other instances see it too.
TEST_F(PhysicalDeviceTest, UsageIsThatOfTheProcess) {
    ASSERT_EQ(CreateDevice({}), VK_SUCCESS);
    const VkMemoryAllocateInfo info{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                    .allocationSize = 1 << 20};
    VkDeviceMemory allocation = VK_NULL_HANDLE;
    ASSERT_EQ(vkAllocateMemory(device_, &info, nullptr, &allocation), VK_SUCCESS);
    const VkInstanceCreateInfo instance_info{.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    VkInstance other = VK_NULL_HANDLE;
    ASSERT_EQ(vkCreateInstance(&instance_info, nullptr, &other), VK_SUCCESS);
    uint32_t count = 1;
    VkPhysicalDevice other_device = VK_NULL_HANDLE;
    ASSERT_EQ(vkEnumeratePhysicalDevices(other, &count, &other_device), VK_SUCCESS);
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 properties{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, .pNext = &budget};
    vkGetPhysicalDeviceMemoryProperties2(other_device, &properties);
    EXPECT_EQ(budget.heapUsage[0], 1u << 20);
    vkDestroyInstance(other, nullptr);
    vkFreeMemory(device_, allocation, nullptr);
}

// "Implementations that support Vulkan 1.1 must not return VK_ERROR_INCOMPATIBLE_DRIVER for any
// value of apiVersion."
TEST_F(PhysicalDeviceTest, EveryApiVersionGetsAnInstance) {
    DestroyAll();
    for (const uint32_t version :
         {VK_MAKE_API_VERSION(7, 127, 4, 0), VK_MAKE_API_VERSION(0, 1, 99, 0)}) {
        EXPECT_EQ(CreateInstance({.api_version = version}), VK_SUCCESS);
        DestroyAll();
    }
}

TEST_F(PhysicalDeviceTest, FormatsSayWhatTheyCan) {
    VkFormatProperties properties = {1, 1, 1};
    vkGetPhysicalDeviceFormatProperties(physical_device_, VK_FORMAT_PVRTC1_2BPP_UNORM_BLOCK_IMG,
                                        &properties);
    EXPECT_EQ(properties.optimalTilingFeatures | properties.linearTilingFeatures |
                  properties.bufferFeatures,
              0u);
    vkGetPhysicalDeviceFormatProperties(physical_device_, VK_FORMAT_R32_UINT, &properties);
    EXPECT_TRUE(properties.optimalTilingFeatures & VK_FORMAT_FEATURE_STORAGE_IMAGE_ATOMIC_BIT);
    EXPECT_FALSE(properties.optimalTilingFeatures &
                 VK_FORMAT_FEATURE_SAMPLED_IMAGE_FILTER_LINEAR_BIT);
    EXPECT_FALSE(properties.optimalTilingFeatures & VK_FORMAT_FEATURE_COLOR_ATTACHMENT_BIT);
    // "bufferFeatures must not support any features" of depth and stencil.
    vkGetPhysicalDeviceFormatProperties(physical_device_, VK_FORMAT_D24_UNORM_S8_UINT, &properties);
    EXPECT_TRUE(properties.optimalTilingFeatures & VK_FORMAT_FEATURE_SAMPLED_IMAGE_BIT);
    EXPECT_EQ(properties.bufferFeatures, 0u);
    // Three components are read, and not written.
    vkGetPhysicalDeviceFormatProperties(physical_device_, VK_FORMAT_R32G32B32_SFLOAT, &properties);
    EXPECT_TRUE(properties.optimalTilingFeatures & VK_FORMAT_FEATURE_SAMPLED_IMAGE_BIT);
    EXPECT_FALSE(properties.optimalTilingFeatures & VK_FORMAT_FEATURE_STORAGE_IMAGE_BIT);
    EXPECT_EQ(properties.bufferFeatures,
              VkFormatFeatureFlags{VK_FORMAT_FEATURE_VERTEX_BUFFER_BIT |
                                   VK_FORMAT_FEATURE_UNIFORM_TEXEL_BUFFER_BIT});

    const auto query = [&](VkFormat format, VkImageType type, VkImageUsageFlags usage,
                           VkImageCreateFlags flags, VkImageFormatProperties& image) {
        return vkGetPhysicalDeviceImageFormatProperties(
            physical_device_, format, type, VK_IMAGE_TILING_OPTIMAL, usage, flags, &image);
    };
    VkImageFormatProperties image;
    EXPECT_EQ(query(VK_FORMAT_R32_SFLOAT, VK_IMAGE_TYPE_3D, VK_IMAGE_USAGE_STORAGE_BIT, 0, image),
              VK_SUCCESS);
    EXPECT_EQ(image.maxExtent.depth, 16384u);
    EXPECT_EQ(image.maxMipLevels, 15u);
    EXPECT_EQ(image.maxArrayLayers, 1u);
    EXPECT_GE(image.maxResourceSize, VkDeviceSize{1} << 31);
    EXPECT_EQ(query(VK_FORMAT_R8_UNORM, VK_IMAGE_TYPE_1D, VK_IMAGE_USAGE_STORAGE_BIT, 0, image),
              VK_SUCCESS);
    EXPECT_EQ(image.maxExtent.height, 1u);
    EXPECT_EQ(image.maxMipLevels, 15u);
    // What is refused: usages and flags that nothing has, and those that the format lacks.
    EXPECT_EQ(query(VK_FORMAT_R32_SFLOAT, VK_IMAGE_TYPE_2D, VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT, 0,
                    image),
              VK_ERROR_FORMAT_NOT_SUPPORTED);
    EXPECT_EQ(image.maxMipLevels, 0u);
    EXPECT_EQ(
        query(VK_FORMAT_R8G8B8A8_SRGB, VK_IMAGE_TYPE_2D, VK_IMAGE_USAGE_STORAGE_BIT, 0, image),
        VK_ERROR_FORMAT_NOT_SUPPORTED);
    EXPECT_EQ(query(VK_FORMAT_R8G8B8A8_SRGB, VK_IMAGE_TYPE_2D, VK_IMAGE_USAGE_STORAGE_BIT,
                    VK_IMAGE_CREATE_MUTABLE_FORMAT_BIT | VK_IMAGE_CREATE_EXTENDED_USAGE_BIT, image),
              VK_SUCCESS);
    EXPECT_EQ(query(VK_FORMAT_R32_SFLOAT, VK_IMAGE_TYPE_2D, VK_IMAGE_USAGE_STORAGE_BIT,
                    VK_IMAGE_CREATE_SPARSE_BINDING_BIT, image),
              VK_ERROR_FORMAT_NOT_SUPPORTED);

    ASSERT_EQ(CreateDevice({}), VK_SUCCESS);
    VkImageCreateInfo info{.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
                           .imageType = VK_IMAGE_TYPE_2D,
                           .format = VK_FORMAT_R32G32B32A32_SFLOAT,
                           .extent = {16384, 16384, 1},
                           .mipLevels = 1,
                           .arrayLayers = 1,
                           .samples = VK_SAMPLE_COUNT_1_BIT,
                           .usage = VK_IMAGE_USAGE_STORAGE_BIT};
    VkImage made = VK_NULL_HANDLE;
    EXPECT_EQ(vkCreateImage(device_, &info, nullptr, &made), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    info.usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT;
    EXPECT_EQ(vkCreateImage(device_, &info, nullptr, &made), VK_ERROR_VALIDATION_FAILED_EXT);
    // Beside a usage that there is, one as an attachment does no harm.
    info.extent = {16, 16, 1};
    info.usage |= VK_IMAGE_USAGE_STORAGE_BIT | VK_IMAGE_USAGE_INPUT_ATTACHMENT_BIT;
    EXPECT_EQ(vkCreateImage(device_, &info, nullptr, &made), VK_SUCCESS);
    vkDestroyImage(device_, made, nullptr);
    info.usage |= VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT;
    EXPECT_EQ(vkCreateImage(device_, &info, nullptr, &made), VK_ERROR_VALIDATION_FAILED_EXT);
}

// Core commands that the device has no use for exist and say so.
TEST_F(PhysicalDeviceTest, AbsentCommandsFailAndGiveNull) {
    ASSERT_EQ(CreateDevice({}), VK_SUCCESS);
    const VkFramebufferCreateInfo info{.sType = VK_STRUCTURE_TYPE_FRAMEBUFFER_CREATE_INFO};
    auto framebuffer = reinterpret_cast<VkFramebuffer>(uintptr_t{0xdead});
    EXPECT_LT(vkCreateFramebuffer(device_, &info, nullptr, &framebuffer), VK_SUCCESS);
    EXPECT_EQ(framebuffer, VkFramebuffer(VK_NULL_HANDLE));
    vkDestroyFramebuffer(device_, framebuffer, nullptr);

    VkPipeline pipelines[2] = {reinterpret_cast<VkPipeline>(uintptr_t{0xdead}),
                               reinterpret_cast<VkPipeline>(uintptr_t{0xdead})};
    const VkGraphicsPipelineCreateInfo graphics[2] = {};
    EXPECT_LT(vkCreateGraphicsPipelines(device_, VK_NULL_HANDLE, 2, graphics, nullptr, pipelines),
              VK_SUCCESS);
    EXPECT_THAT(pipelines, ::testing::Each(VkPipeline(VK_NULL_HANDLE)));
}

// The environment is read when the physical device is first asked for.
TEST(DeviceTypeTest, CanBeOverridden) {
    const auto type_of = [](const char* name) -> int {
        setenv("FORNAX_DEVICE_TYPE", name, 1);
        volkInitializeCustom(vk_icdGetInstanceProcAddr);
        const VkInstanceCreateInfo info{.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
        VkInstance instance = VK_NULL_HANDLE;
        EXPECT_EQ(vkCreateInstance(&info, nullptr, &instance), VK_SUCCESS);
        volkLoadInstance(instance);
        VkPhysicalDevice physical_device = VK_NULL_HANDLE;
        uint32_t count = 1;
        const VkResult result = vkEnumeratePhysicalDevices(instance, &count, &physical_device);
        VkPhysicalDeviceProperties properties = {};
        if (result == VK_SUCCESS) {
            vkGetPhysicalDeviceProperties(physical_device, &properties);
        }
        vkDestroyInstance(instance, nullptr);
        unsetenv("FORNAX_DEVICE_TYPE");
        return result == VK_SUCCESS ? static_cast<int>(properties.deviceType) : result;
    };
    EXPECT_EQ(type_of("cpu"), VK_PHYSICAL_DEVICE_TYPE_CPU);
    EXPECT_EQ(type_of("discrete"), VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU);
    EXPECT_EQ(type_of("toaster"), VK_ERROR_INITIALIZATION_FAILED);
}

}  // namespace
}  // namespace fornax::driver_test
