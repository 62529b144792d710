// The table of commands is complete and in order, and functions are found where the specification
// says and nowhere else.
#include "icd/entry_point.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <string>

#include "driver/supported_api.h"
#include "driver/test_device.h"
#include "driver/test_objects.h"
#include "icd/icd.h"

namespace fornax::icd {
namespace {

using driver::SupportedApi;
using driver_test::TestDevice;
using driver_test::TestDeviceOptions;

TEST(EntryPoints, TableIsSortedWithoutDuplicates) {
    const auto all = AllEntryPoints();
    ASSERT_GT(all.size(), 500u);
    for (size_t i = 1; i < all.size(); ++i) {
        EXPECT_LT(std::string_view(all[i - 1].name), all[i].name);
    }
}

// Whoever adds an extension to driver/supported_api.cpp learns here what is left to write.
TEST(EntryPoints, EveryAdvertisedCommandIsImplemented) {
    std::vector<std::string> missing;
    for (const EntryPoint& entry : AllEntryPoints()) {
        if (entry.available(SupportedApi()) && !entry.function) {
            missing.emplace_back(entry.name);
        }
    }
    EXPECT_THAT(missing, ::testing::IsEmpty());
}

// What is implemented can also be had, or it is dead code.
TEST(EntryPoints, EveryImplementedCommandIsAdvertisedUnderSomeName) {
    driver::ApiSet api = SupportedApi();
    api.device.KHR_pipeline_executable_properties = true;  // FORNAX_PIPELINE_STATISTICS
    api.device.KHR_swapchain = true;                       // FORNAX_COMPAT=graphics
    for (const EntryPoint& entry : AllEntryPoints()) {
        if (!entry.function) {
            continue;
        }
        const bool available = std::ranges::any_of(AllEntryPoints(), [&](const EntryPoint& other) {
            return other.function == entry.function && other.available(api);
        });
        EXPECT_TRUE(available) << entry.name;
    }
}

// Whoever adds a command that creates something learns here that test_objects.h has no case of it.
TEST(EntryPoints, WhatIsCreatedHasACaseOfFailingAllocations) {
    driver_test::ObjectFactory factory(VK_NULL_HANDLE, VK_NULL_HANDLE, nullptr);
    std::set<PFN_vkVoidFunction> tested;  // aliases share their function
    for (const auto& step : factory.Steps()) {
        const EntryPoint* entry = FindEntryPoint(step.command);
        ASSERT_TRUE(entry && entry->function) << step.command;
        tested.insert(entry->function);
    }
    // Two have tests of their own, and one never creates anything (absent.cpp).
    for (const char* own_test :
         {"vkCreateInstance", "vkCreateDevice", "vkCreateGraphicsPipelines"}) {
        tested.insert(FindEntryPoint(own_test)->function);
    }
    for (const EntryPoint& entry : AllEntryPoints()) {
        const std::string_view name = entry.name;
        if (!name.starts_with("vkCreate") && !name.starts_with("vkAllocate")) {
            continue;
        }
        if (entry.function && !entry.absent && entry.available(SupportedApi())) {
            EXPECT_TRUE(tested.contains(entry.function)) << name;
        }
    }
}

TEST(EntryPoints, AliasesShareTheirFunction) {
    const auto* core = FindEntryPoint("vkGetPhysicalDeviceProperties2");
    const auto* alias = FindEntryPoint("vkGetPhysicalDeviceProperties2KHR");
    ASSERT_TRUE(core && alias);
    EXPECT_EQ(core->function, alias->function);
}

TEST(EntryPoints, ScopesFollowTheFirstParameter) {
    EXPECT_EQ(FindEntryPoint("vkCreateInstance")->scope, Scope::kGlobal);
    EXPECT_EQ(FindEntryPoint("vkDestroyInstance")->scope, Scope::kInstance);
    EXPECT_EQ(FindEntryPoint("vkCreateDevice")->scope, Scope::kPhysicalDevice);
    EXPECT_EQ(FindEntryPoint("vkQueueSubmit")->scope, Scope::kDevice);
    EXPECT_EQ(FindEntryPoint("vkCmdDispatch")->scope, Scope::kDevice);
    EXPECT_EQ(FindEntryPoint("vkNoSuchCommand"), nullptr);
    EXPECT_EQ(FindEntryPoint(""), nullptr);
}

// Table "vkGetInstanceProcAddr behavior".
using GetInstanceProcAddr = TestDevice;

TEST_F(GetInstanceProcAddr, WithoutInstanceFindsGlobalCommandsOnly) {
    const auto find = [](const char* name) { return vk_icdGetInstanceProcAddr(nullptr, name); };
    EXPECT_TRUE(find("vkCreateInstance"));
    EXPECT_TRUE(find("vkEnumerateInstanceVersion"));
    EXPECT_TRUE(find("vkEnumerateInstanceExtensionProperties"));
    EXPECT_TRUE(find("vkEnumerateInstanceLayerProperties"));
    EXPECT_TRUE(find("vkGetInstanceProcAddr"));
    EXPECT_FALSE(find("vkDestroyInstance"));
    EXPECT_FALSE(find("vkCreateDevice"));
    EXPECT_FALSE(find("vkCreateBuffer"));
    EXPECT_FALSE(find("vkGetDeviceProcAddr"));
}

TEST_F(GetInstanceProcAddr, WithInstanceFollowsVersionAndExtensions) {
    ASSERT_EQ(CreateInstance({.instance_extensions = {}, .api_version = VK_API_VERSION_1_0}),
              VK_SUCCESS);
    const auto find = [&](const char* name) { return vk_icdGetInstanceProcAddr(instance_, name); };
    EXPECT_FALSE(find("vkCreateInstance"));
    EXPECT_TRUE(find("vkGetInstanceProcAddr"));
    EXPECT_TRUE(find("vkDestroyInstance"));
    EXPECT_TRUE(find("vkCreateBuffer"));
    // Core 1.1, which the application did not ask for.
    EXPECT_FALSE(find("vkGetPhysicalDeviceProperties2"));
    // An instance extension that was not enabled.
    EXPECT_FALSE(find("vkGetPhysicalDeviceProperties2KHR"));
    EXPECT_FALSE(find("vkCreateDebugUtilsMessengerEXT"));
    // A device extension that is available; and one that is not.
    EXPECT_TRUE(find("vkCmdPushDescriptorSetKHR"));
    EXPECT_FALSE(find("vkCreateSwapchainKHR"));
}

TEST_F(GetInstanceProcAddr, FindsEnabledInstanceExtensions) {
    ASSERT_EQ(CreateInstance({.instance_extensions = {"VK_KHR_get_physical_device_properties2"},
                              .api_version = VK_API_VERSION_1_0}),
              VK_SUCCESS);
    EXPECT_TRUE(vk_icdGetInstanceProcAddr(instance_, "vkGetPhysicalDeviceProperties2KHR"));
    EXPECT_FALSE(vk_icdGetInstanceProcAddr(instance_, "vkGetPhysicalDeviceProperties2"));
}

// Table "vkGetDeviceProcAddr behavior".
using GetDeviceProcAddr = TestDevice;

TEST_F(GetDeviceProcAddr, FindsDeviceCommandsOfWhatIsEnabled) {
    CreateAll({.instance_extensions = {}, .device_extensions = {"VK_KHR_synchronization2"}});
    const auto find = [&](const char* name) { return vkGetDeviceProcAddr(device_, name); };
    EXPECT_TRUE(find("vkCreateBuffer"));
    EXPECT_TRUE(find("vkGetDeviceProcAddr"));
    EXPECT_TRUE(find("vkGetDeviceQueue2"));
    EXPECT_TRUE(find("vkQueueSubmit2KHR"));
    // Core 1.3 under its core name.
    EXPECT_FALSE(find("vkQueueSubmit2"));
    // Not enabled, though available.
    EXPECT_FALSE(find("vkCmdPushDescriptorSetKHR"));
    EXPECT_FALSE(find("vkSetDebugUtilsObjectNameEXT"));
    // Not of a device.
    EXPECT_FALSE(find("vkCreateInstance"));
    EXPECT_FALSE(find("vkDestroyInstance"));
    EXPECT_FALSE(find("vkCreateDevice"));
    EXPECT_FALSE(find("vkEnumerateDeviceExtensionProperties"));
    EXPECT_FALSE(find("vkGetInstanceProcAddr"));
    EXPECT_FALSE(find("nonsense"));
}

// Commands of an instance extension that are called on a device (VK_EXT_debug_utils).
TEST_F(GetDeviceProcAddr, FindsDeviceCommandsOfInstanceExtensions) {
    CreateAll();
    EXPECT_TRUE(vkGetDeviceProcAddr(device_, "vkSetDebugUtilsObjectNameEXT"));
}

// A command whose requirement names two extensions or a version.
TEST_F(GetDeviceProcAddr, CombinedRequirements) {
    CreateAll({.instance_extensions = {},
               .device_extensions = {"VK_KHR_push_descriptor"},
               .api_version = VK_API_VERSION_1_0});
    EXPECT_TRUE(vkGetDeviceProcAddr(device_, "vkCmdPushDescriptorSetKHR"));
    EXPECT_FALSE(vkGetDeviceProcAddr(device_, "vkCmdPushDescriptorSetWithTemplateKHR"));
}

// LoaderDriverInterface.md, "vk_icdNegotiateLoaderICDInterfaceVersion".
TEST(LoaderInterface, NegotiatesDownToWhatBothKnow) {
    uint32_t version = 5;
    EXPECT_EQ(vk_icdNegotiateLoaderICDInterfaceVersion(&version), VK_SUCCESS);
    EXPECT_EQ(version, 5u);
    version = 1000;
    EXPECT_EQ(vk_icdNegotiateLoaderICDInterfaceVersion(&version), VK_SUCCESS);
    EXPECT_GE(version, 5u);
    EXPECT_LT(version, 1000u);
    version = 0;
    EXPECT_EQ(vk_icdNegotiateLoaderICDInterfaceVersion(&version), VK_ERROR_INCOMPATIBLE_DRIVER);
}

using PhysicalDeviceProcAddr = TestDevice;

TEST_F(PhysicalDeviceProcAddr, KnowsWhichCommandsTakeAPhysicalDevice) {
    ASSERT_EQ(CreateInstance(), VK_SUCCESS);
    const auto find = [&](const char* name) {
        return vk_icdGetPhysicalDeviceProcAddr(instance_, name);
    };
    EXPECT_TRUE(find("vkGetPhysicalDeviceProperties"));
    EXPECT_TRUE(find("vkCreateDevice"));
    EXPECT_FALSE(find("vkDestroyInstance"));
    EXPECT_FALSE(find("vkCreateBuffer"));
    EXPECT_FALSE(find("vkSomeNewCommand"));
}

}  // namespace
}  // namespace fornax::icd
