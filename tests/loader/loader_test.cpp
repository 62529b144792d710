// The driver beside others under one loader, without a loader at all, and what it refuses.
#include <dlfcn.h>

#include <array>
#include <cstdlib>

#include "tests/loader/shaders/robust.spv.h"
#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

class RobustTest : public VulkanTest {
  protected:
    void SetUp() override {
        robust_ = true;
        VulkanTest::SetUp();
    }
};

TEST_F(RobustTest, AccessesOutsideReadZeroAndWriteNothing) {
    TestBuffer in = MakeBuffer(50);
    TestBuffer out = MakeBuffer(70);
    std::fill_n(in.words, 50, 3u);
    std::array buffers = {in, out};
    Run(MakePipeline(spirv::kRobust, buffers), 2);
    // in[i] is inside for 50 of them and in[i * 1000] for i = 0 only.
    for (uint32_t i = 0; i < 70; ++i) {
        uint32_t expected = (i < 50 ? 3 : 0) + (i == 0 ? 3 : 0);
        if (i == 64) {
            expected =
                2;  // i * 65536 + 64 for i = 0; which of the writes comes last is not defined
        }
        if (i != 64) {
            EXPECT_EQ(out.words[i], expected) << i;
        }
    }
}

using RefusalTest = VulkanTest;

TEST_F(RefusalTest, UnsupportedSpirvIsNamedInOneSentence) {
    // OpCapability Geometry; OpMemoryModel Logical GLSL450; OpEntryPoint GLCompute %1 "main"; an
    // empty function.
    const uint32_t words[] = {0x07230203,
                              0x00010300,
                              0,
                              6,
                              0,
                              (2 << 16) | 17,
                              1,
                              (2 << 16) | 17,
                              2,
                              (3 << 16) | 14,
                              0,
                              1,
                              (5 << 16) | 15,
                              5,
                              1,
                              0x6e69616d,
                              0,
                              (6 << 16) | 16,
                              1,
                              17,
                              1,
                              1,
                              1,
                              (2 << 16) | 19,
                              2,
                              (3 << 16) | 33,
                              3,
                              2,
                              (5 << 16) | 54,
                              2,
                              1,
                              0,
                              3,
                              (2 << 16) | 248,
                              4,
                              (1 << 16) | 253,
                              (1 << 16) | 56};
    VkShaderModuleCreateInfo module_info{.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                         .codeSize = sizeof(words),
                                         .pCode = words};
    if (Validated()) {
        GTEST_SKIP() << "The validation layer rightly complains of this module.";
    }
    VkShaderModule module;
    ASSERT_VK(vkCreateShaderModule(device_, &module_info, nullptr, &module));
    VkPipelineLayoutCreateInfo layout_info{.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    VkPipelineLayout layout;
    ASSERT_VK(vkCreatePipelineLayout(device_, &layout_info, nullptr, &layout));
    VkComputePipelineCreateInfo info{
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main"},
        .layout = layout};
    VkPipeline pipeline = VK_NULL_HANDLE;
    EXPECT_LT(vkCreateComputePipelines(device_, {}, 1, &info, nullptr, &pipeline), 0);
    EXPECT_EQ(pipeline, VkPipeline(VK_NULL_HANDLE));
    ASSERT_EQ(messages_.size(), 1u);
    EXPECT_NE(messages_[0].find("Geometry"), std::string::npos) << messages_[0];
    messages_.clear();
    vkDestroyPipelineLayout(device_, layout, nullptr);
    vkDestroyShaderModule(device_, module, nullptr);
}

TEST(BesideOthersTest, TheLoaderOffersFornaxAndLavapipe) {
    const char* both = std::getenv("FORNAX_TEST_ALL_MANIFESTS");
    ASSERT_NE(both, nullptr);
    setenv("VK_ICD_FILENAMES", both, 1);
    setenv("VK_DRIVER_FILES", both, 1);
    ASSERT_VK(volkInitialize());
    VkInstanceCreateInfo info{.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    VkInstance instance;
    ASSERT_VK(vkCreateInstance(&info, nullptr, &instance));
    volkLoadInstance(instance);
    uint32_t count = 0;
    ASSERT_VK(vkEnumeratePhysicalDevices(instance, &count, nullptr));
    std::vector<VkPhysicalDevice> devices(count);
    ASSERT_VK(vkEnumeratePhysicalDevices(instance, &count, devices.data()));
    uint32_t ours = 0;
    for (VkPhysicalDevice device : devices) {
        VkPhysicalDeviceProperties properties;
        vkGetPhysicalDeviceProperties(device, &properties);
        ours += std::string(properties.deviceName).starts_with("Fornax");
    }
    EXPECT_EQ(ours, 1u);
    EXPECT_GE(count, 1u);
    vkDestroyInstance(instance, nullptr);
}

// An instance through the loader with these extensions, destroyed at the end.
class SurfacesOfTheLoaderTest : public testing::Test {
  protected:
    void TearDown() override {
        if (instance_) {
            vkDestroyInstance(instance_, nullptr);
        }
    }

    VkResult CreateInstance(const std::vector<const char*>& extensions) {
        const VkResult loaded = volkInitialize();
        if (loaded != VK_SUCCESS) {
            return loaded;
        }
        const VkInstanceCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
            .enabledExtensionCount = static_cast<uint32_t>(extensions.size()),
            .ppEnabledExtensionNames = extensions.data()};
        const VkResult created = vkCreateInstance(&info, nullptr, &instance_);
        if (created == VK_SUCCESS) {
            volkLoadInstance(instance_);
        }
        return created;
    }

    // An earlier test may have brought another driver into the process.
    VkPhysicalDevice OurDevice() {
        VkPhysicalDevice devices[4] = {};
        uint32_t count = 4;
        vkEnumeratePhysicalDevices(instance_, &count, devices);
        for (uint32_t i = 0; i < count; ++i) {
            VkPhysicalDeviceProperties properties;
            vkGetPhysicalDeviceProperties(devices[i], &properties);
            if (std::string(properties.deviceName).starts_with("Fornax")) {
                return devices[i];
            }
        }
        return VK_NULL_HANDLE;
    }

    VkInstance instance_ = VK_NULL_HANDLE;
};

TEST_F(SurfacesOfTheLoaderTest, HeadlessOnesAreMadeAndNotPresentedTo) {
    ASSERT_VK(
        CreateInstance({VK_KHR_SURFACE_EXTENSION_NAME, VK_EXT_HEADLESS_SURFACE_EXTENSION_NAME}));
    const VkHeadlessSurfaceCreateInfoEXT info{
        .sType = VK_STRUCTURE_TYPE_HEADLESS_SURFACE_CREATE_INFO_EXT};
    VkSurfaceKHR surface = VK_NULL_HANDLE;
    ASSERT_VK(vkCreateHeadlessSurfaceEXT(instance_, &info, nullptr, &surface));
    VkPhysicalDevice device = OurDevice();
    uint32_t families = 0;
    vkGetPhysicalDeviceQueueFamilyProperties(device, &families, nullptr);
    EXPECT_GT(families, 0u);
    for (uint32_t family = 0; family < families; ++family) {
        VkBool32 supported = VK_TRUE;
        EXPECT_VK(vkGetPhysicalDeviceSurfaceSupportKHR(device, family, surface, &supported));
        EXPECT_FALSE(supported);
    }
    vkDestroySurfaceKHR(instance_, surface, nullptr);
}

// The names that SlangPy and other programs ask for (ctest's loader.compat).
TEST_F(SurfacesOfTheLoaderTest, WindowSystemsAreNamedForThoseWhoAsk) {
    if (!std::getenv("FORNAX_COMPAT")) {
        GTEST_SKIP() << "By default nobody is told of window systems.";
    }
    ASSERT_VK(CreateInstance(
        {VK_KHR_SURFACE_EXTENSION_NAME, "VK_KHR_xcb_surface", "VK_KHR_xlib_surface"}));
    VkPhysicalDevice device = OurDevice();
    uint32_t families = 1;
    VkQueueFamilyProperties family;
    vkGetPhysicalDeviceQueueFamilyProperties(device, &families, &family);
    EXPECT_TRUE(family.queueFlags & VK_QUEUE_GRAPHICS_BIT);
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                        .queueCount = 1,
                                        .pQueuePriorities = &priority};
    const char* swapchain = VK_KHR_SWAPCHAIN_EXTENSION_NAME;
    const VkDeviceCreateInfo info{.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                  .queueCreateInfoCount = 1,
                                  .pQueueCreateInfos = &queue,
                                  .enabledExtensionCount = 1,
                                  .ppEnabledExtensionNames = &swapchain};
    VkDevice logical = VK_NULL_HANDLE;
    ASSERT_VK(vkCreateDevice(device, &info, nullptr, &logical));
    EXPECT_NE(vkGetDeviceProcAddr(logical, "vkCreateSwapchainKHR"), nullptr);
    vkDestroyDevice(logical, nullptr);
}

TEST(WithoutLoaderTest, TheDriverServesItselfThroughItsExports) {
    const char* path = std::getenv("FORNAX_TEST_DRIVER");
    ASSERT_NE(path, nullptr);
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    auto get =
        reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vk_icdGetInstanceProcAddr"));
    ASSERT_NE(get, nullptr);
    auto create = reinterpret_cast<PFN_vkCreateInstance>(get(nullptr, "vkCreateInstance"));
    ASSERT_NE(create, nullptr);
    VkInstanceCreateInfo info{.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    VkInstance instance;
    ASSERT_VK(create(&info, nullptr, &instance));
    auto enumerate = reinterpret_cast<PFN_vkEnumeratePhysicalDevices>(
        get(instance, "vkEnumeratePhysicalDevices"));
    uint32_t count = 1;
    VkPhysicalDevice device = VK_NULL_HANDLE;
    ASSERT_VK(enumerate(instance, &count, &device));
    EXPECT_EQ(count, 1u);
    auto create_device = reinterpret_cast<PFN_vkCreateDevice>(get(instance, "vkCreateDevice"));
    const float priority = 1;
    VkDeviceQueueCreateInfo queue{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                  .queueCount = 1,
                                  .pQueuePriorities = &priority};
    VkDeviceCreateInfo device_info{.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                   .queueCreateInfoCount = 1,
                                   .pQueueCreateInfos = &queue};
    VkDevice logical;
    ASSERT_VK(create_device(device, &device_info, nullptr, &logical));
    reinterpret_cast<PFN_vkDestroyDevice>(get(instance, "vkDestroyDevice"))(logical, nullptr);
    reinterpret_cast<PFN_vkDestroyInstance>(get(instance, "vkDestroyInstance"))(instance, nullptr);
    dlclose(library);
}

}  // namespace
}  // namespace fornax::test
