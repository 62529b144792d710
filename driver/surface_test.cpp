// Headless surfaces: they are made and supported by no queue family.
#include <gtest/gtest.h>

#include "driver/test_device.h"

namespace fornax::driver_test {
namespace {

class SurfaceTest : public TestDevice {
  protected:
    void SetUp() override {
        CreateAll({.instance_extensions = {VK_KHR_SURFACE_EXTENSION_NAME,
                                           VK_EXT_HEADLESS_SURFACE_EXTENSION_NAME,
                                           VK_EXT_DEBUG_UTILS_EXTENSION_NAME}});
        const VkHeadlessSurfaceCreateInfoEXT info{
            .sType = VK_STRUCTURE_TYPE_HEADLESS_SURFACE_CREATE_INFO_EXT};
        ASSERT_EQ(vkCreateHeadlessSurfaceEXT(instance_, &info, nullptr, &surface_), VK_SUCCESS);
        ASSERT_NE(surface_, VkSurfaceKHR(VK_NULL_HANDLE));
    }
    void TearDown() override {
        vkDestroySurfaceKHR(instance_, surface_, nullptr);
        vkDestroySurfaceKHR(instance_, VK_NULL_HANDLE, nullptr);
        TestDevice::TearDown();
    }

    VkSurfaceKHR surface_ = VK_NULL_HANDLE;
};

TEST_F(SurfaceTest, NoQueueFamilyPresents) {
    uint32_t families = 0;
    vkGetPhysicalDeviceQueueFamilyProperties(physical_device_, &families, nullptr);
    ASSERT_GT(families, 0u);
    for (uint32_t family = 0; family < families; ++family) {
        VkBool32 supported = VK_TRUE;
        EXPECT_EQ(
            vkGetPhysicalDeviceSurfaceSupportKHR(physical_device_, family, surface_, &supported),
            VK_SUCCESS);
        EXPECT_FALSE(supported);
    }
    VkDeviceGroupPresentCapabilitiesKHR group{
        .sType = VK_STRUCTURE_TYPE_DEVICE_GROUP_PRESENT_CAPABILITIES_KHR,
        .presentMask = {1, 2},
        .modes = 1};
    EXPECT_EQ(vkGetDeviceGroupPresentCapabilitiesKHR(device_, &group), VK_SUCCESS);
    EXPECT_EQ(group.presentMask[0], 0u);
    EXPECT_EQ(group.modes, 0u);
}

// Who asks all the same, also with a surface of a window system, is told and gets nothing.
TEST_F(SurfaceTest, OtherQueriesFail) {
    for (const VkSurfaceKHR surface : {surface_, reinterpret_cast<VkSurfaceKHR>(uintptr_t{64})}) {
        VkSurfaceCapabilitiesKHR capabilities;
        EXPECT_EQ(
            vkGetPhysicalDeviceSurfaceCapabilitiesKHR(physical_device_, surface, &capabilities),
            VK_ERROR_SURFACE_LOST_KHR);
        uint32_t count = 7;
        EXPECT_EQ(vkGetPhysicalDeviceSurfaceFormatsKHR(physical_device_, surface, &count, nullptr),
                  VK_ERROR_SURFACE_LOST_KHR);
        EXPECT_EQ(count, 0u);
        count = 7;
        EXPECT_EQ(
            vkGetPhysicalDeviceSurfacePresentModesKHR(physical_device_, surface, &count, nullptr),
            VK_ERROR_SURFACE_LOST_KHR);
        EXPECT_EQ(count, 0u);
        count = 7;
        EXPECT_EQ(
            vkGetPhysicalDevicePresentRectanglesKHR(physical_device_, surface, &count, nullptr),
            VK_ERROR_SURFACE_LOST_KHR);
        EXPECT_EQ(count, 0u);
        VkDeviceGroupPresentModeFlagsKHR modes = 1;
        EXPECT_EQ(vkGetDeviceGroupSurfacePresentModesKHR(device_, surface, &modes),
                  VK_ERROR_SURFACE_LOST_KHR);
        EXPECT_EQ(modes, 0u);
    }
}

// The loader hands on surfaces of its own here.
TEST_F(SurfaceTest, NamesOfSurfacesAreNotLookedAt) {
    const VkDebugUtilsObjectNameInfoEXT name{
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
        .objectType = VK_OBJECT_TYPE_SURFACE_KHR,
        .objectHandle = 64,
        .pObjectName = "window"};
    EXPECT_EQ(vkSetDebugUtilsObjectNameEXT(device_, &name), VK_SUCCESS);
}

}  // namespace
}  // namespace fornax::driver_test
