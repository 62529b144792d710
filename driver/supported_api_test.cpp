// The list of what is supported is consistent, and is what applications see and can enable.
#include "driver/supported_api.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <string>

#include "driver/test_device.h"

namespace fornax::driver_test {
namespace {

using driver::AllDeviceExtensions;
using driver::AllFeatureStructs;
using driver::AllInstanceExtensions;
using driver::FeatureSet;
using driver::FeatureStructInfo;
using driver::SupportedApi;
using driver::SupportedFeatures;

TEST(SupportedApiTest, DependenciesOfExtensionsAreSupported) {
    for (const auto& extension : AllInstanceExtensions()) {
        if (SupportedApi().instance.*extension.member) {
            EXPECT_TRUE(extension.dependencies_met(SupportedApi())) << extension.name;
        }
    }
    for (const auto& extension : AllDeviceExtensions()) {
        if (SupportedApi().device.*extension.member) {
            EXPECT_TRUE(extension.dependencies_met(SupportedApi())) << extension.name;
        }
    }
}

TEST(SupportedApiTest, TablesAreSorted) {
    const auto by_name = [](const auto& a, const auto& b) {
        return std::string_view(a.name) < b.name;
    };
    EXPECT_TRUE(std::ranges::is_sorted(AllInstanceExtensions(), by_name));
    EXPECT_TRUE(std::ranges::is_sorted(AllDeviceExtensions(), by_name));
    EXPECT_TRUE(std::ranges::is_sorted(AllFeatureStructs(), {}, &FeatureStructInfo::s_type));
}

// A feature that no structure of a supported version or extension holds could never be seen.
TEST(SupportedApiTest, SupportedFeaturesCanBeQueried) {
    std::set<size_t> visible;
    const auto offset_of = [](bool FeatureSet::* member) {
        FeatureSet probe;
        return static_cast<size_t>(&(probe.*member) - reinterpret_cast<bool*>(&probe));
    };
    for (const auto& feature : driver::Vulkan10Features()) {
        visible.insert(offset_of(feature.member));
    }
    for (const FeatureStructInfo& info : AllFeatureStructs()) {
        if (info.provided(SupportedApi())) {
            for (const auto& feature : info.members) {
                visible.insert(offset_of(feature.member));
            }
        }
    }
    const FeatureSet& features = SupportedFeatures();
    const auto* values = reinterpret_cast<const bool*>(&features);
    for (size_t i = 0; i < sizeof(FeatureSet); ++i) {
        if (values[i]) {
            EXPECT_TRUE(visible.contains(i)) << "feature at offset " << i;
        }
    }
}

// The features that an extension demands of whoever supports it (chapter "Features", "Feature
// Requirements").
TEST(SupportedApiTest, ExtensionsBringTheirMandatoryFeatures) {
    const auto& device = SupportedApi().device;
    const FeatureSet& features = SupportedFeatures();
    EXPECT_TRUE(features.robustBufferAccess);
    EXPECT_TRUE(!device.KHR_compute_shader_derivatives || features.computeDerivativeGroupQuads ||
                features.computeDerivativeGroupLinear);
    EXPECT_TRUE(!device.EXT_conditional_rendering || features.conditionalRendering);
    EXPECT_TRUE(!device.KHR_cooperative_matrix || features.cooperativeMatrix);
    EXPECT_TRUE(!device.KHR_copy_memory_indirect || features.indirectMemoryCopy);
    EXPECT_TRUE(!device.KHR_device_address_commands || features.deviceAddressCommands);
    EXPECT_TRUE(!device.EXT_descriptor_buffer || features.descriptorBuffer);
    EXPECT_TRUE(!device.EXT_descriptor_heap || features.descriptorHeap);
    EXPECT_TRUE(!device.EXT_host_query_reset || features.hostQueryReset);
    EXPECT_TRUE(!device.EXT_image_robustness || features.robustImageAccess);
    EXPECT_TRUE(!device.EXT_pipeline_creation_cache_control ||
                features.pipelineCreationCacheControl);
    EXPECT_TRUE(!device.EXT_private_data || features.privateData);
    EXPECT_TRUE(!device.EXT_scalar_block_layout || features.scalarBlockLayout);
    EXPECT_TRUE(!device.KHR_shader_float_controls2 || features.shaderFloatControls2);
    EXPECT_TRUE(!device.KHR_shader_integer_dot_product || features.shaderIntegerDotProduct);
    EXPECT_TRUE(!device.KHR_workgroup_memory_explicit_layout ||
                features.workgroupMemoryExplicitLayout);
    EXPECT_TRUE(!device.KHR_zero_initialize_workgroup_memory ||
                features.shaderZeroInitializeWorkgroupMemory);
    EXPECT_TRUE(!device.KHR_16bit_storage || features.storageBuffer16BitAccess);
    EXPECT_TRUE(!device.KHR_8bit_storage || features.storageBuffer8BitAccess);
    EXPECT_TRUE(!device.KHR_shader_float16_int8 || features.shaderFloat16 || features.shaderInt8);
    EXPECT_TRUE(!device.KHR_shader_maximal_reconvergence || features.shaderMaximalReconvergence);
    EXPECT_TRUE(!device.KHR_shader_quad_control || features.shaderQuadControl);
    EXPECT_TRUE(!device.KHR_shader_subgroup_extended_types || features.shaderSubgroupExtendedTypes);
    EXPECT_TRUE(!device.KHR_shader_subgroup_rotate || features.shaderSubgroupRotate);
    EXPECT_TRUE(!device.KHR_shader_subgroup_uniform_control_flow ||
                features.shaderSubgroupUniformControlFlow);
    EXPECT_TRUE(!device.EXT_shader_subgroup_partitioned || features.shaderSubgroupPartitioned);
    EXPECT_TRUE(!device.EXT_subgroup_size_control ||
                (features.subgroupSizeControl && features.computeFullSubgroups));
    EXPECT_TRUE(!device.KHR_synchronization2 || features.synchronization2);
    EXPECT_TRUE(!device.KHR_timeline_semaphore || features.timelineSemaphore);
    EXPECT_TRUE(!device.KHR_uniform_buffer_standard_layout || features.uniformBufferStandardLayout);
}

// A structure of features as bytes, as large as the table says, with a guard behind it.
class FeatureBlock {
  public:
    explicit FeatureBlock(const FeatureStructInfo& info, VkBool32 value)
        : words_(sizeof(VkBaseOutStructure) / 4 + info.members.size() + 1, value) {
        header().sType = info.s_type;
        header().pNext = nullptr;
        words_.back() = kGuard;
    }

    VkBaseOutStructure& header() { return *reinterpret_cast<VkBaseOutStructure*>(words_.data()); }
    VkBool32& operator[](size_t i) { return words_[sizeof(VkBaseOutStructure) / 4 + i]; }
    bool guard_is_intact() const { return words_.back() == kGuard; }

  private:
    static constexpr uint32_t kGuard = 0xa5a5a5a5;
    std::vector<uint32_t> words_;
};

class FeatureTest : public TestDevice {
  protected:
    void SetUp() override {
        ASSERT_EQ(CreateInstance(), VK_SUCCESS);
        uint32_t count = 1;
        ASSERT_EQ(vkEnumeratePhysicalDevices(instance_, &count, &physical_device_), VK_SUCCESS);
    }

    VkResult TryDevice(const void* chain) {
        const VkResult result = CreateDevice({.device_chain = chain});
        if (result == VK_SUCCESS) {
            vkDestroyDevice(device_, nullptr);
            device_ = VK_NULL_HANDLE;
        }
        return result;
    }
};

TEST_F(FeatureTest, EveryStructureIsFilledAndDecidesDeviceCreation) {
    for (const FeatureStructInfo& info : AllFeatureStructs()) {
        SCOPED_TRACE(info.name);
        FeatureBlock queried(info, 0xcdcdcdcd);
        VkPhysicalDeviceFeatures2 features{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                           .pNext = &queried.header()};
        vkGetPhysicalDeviceFeatures2(physical_device_, &features);
        EXPECT_TRUE(queried.guard_is_intact());
        EXPECT_EQ(queried.header().sType, info.s_type);

        FeatureBlock supported(info, VK_FALSE);
        for (size_t i = 0; i < info.members.size(); ++i) {
            const bool expected =
                info.provided(SupportedApi()) && SupportedFeatures().*info.members[i].member;
            EXPECT_EQ(queried[i], expected ? VK_TRUE : VK_FALSE) << "member " << i;
            supported[i] = expected;
            if (!expected) {
                FeatureBlock wrong(info, VK_FALSE);
                wrong[i] = VK_TRUE;
                EXPECT_EQ(TryDevice(&wrong.header()), VK_ERROR_FEATURE_NOT_PRESENT) << i;
            }
        }
        EXPECT_EQ(TryDevice(&supported.header()), VK_SUCCESS);
    }
}

// Both ways of enabling the features of Vulkan 1.0.
TEST_F(FeatureTest, Vulkan10FeaturesAreChecked) {
    VkPhysicalDeviceFeatures2 features{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    vkGetPhysicalDeviceFeatures(physical_device_, &features.features);
    EXPECT_TRUE(features.features.robustBufferAccess);
    EXPECT_FALSE(features.features.geometryShader);
    EXPECT_EQ(TryDevice(&features), VK_SUCCESS);
    features.features.variableMultisampleRate = VK_TRUE;  // the last but one
    EXPECT_EQ(TryDevice(&features), VK_ERROR_FEATURE_NOT_PRESENT);

    const VkDeviceCreateInfo info{.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                  .pEnabledFeatures = &features.features};
    VkDevice device = VK_NULL_HANDLE;
    EXPECT_EQ(vkCreateDevice(physical_device_, &info, nullptr, &device),
              VK_ERROR_FEATURE_NOT_PRESENT);
}

class ExtensionTest : public TestDevice {};

std::vector<VkExtensionProperties> DeviceExtensionsOf(VkPhysicalDevice physical_device) {
    uint32_t count = 0;
    EXPECT_EQ(vkEnumerateDeviceExtensionProperties(physical_device, nullptr, &count, nullptr),
              VK_SUCCESS);
    std::vector<VkExtensionProperties> properties(count);
    EXPECT_EQ(
        vkEnumerateDeviceExtensionProperties(physical_device, nullptr, &count, properties.data()),
        VK_SUCCESS);
    return properties;
}

TEST_F(ExtensionTest, EveryListedExtensionCanBeEnabledEvenTwice) {
    CreateAll();
    TestDeviceOptions options;
    const auto properties = DeviceExtensionsOf(physical_device_);
    EXPECT_GE(properties.size(), 20u);
    for (const auto& extension : properties) {
        EXPECT_GT(extension.specVersion, 0u) << extension.extensionName;
        options.device_extensions.push_back(extension.extensionName);
        options.device_extensions.push_back(extension.extensionName);
    }
    vkDestroyDevice(device_, nullptr);
    EXPECT_EQ(CreateDevice(options), VK_SUCCESS);
}

TEST_F(ExtensionTest, OthersAreRefused) {
    EXPECT_EQ(CreateInstance({.instance_extensions = {"VK_KHR_display"}}),
              VK_ERROR_EXTENSION_NOT_PRESENT);
    EXPECT_EQ(CreateInstance({.instance_extensions = {"VK_KHR_xlib_surface"}}),
              VK_ERROR_EXTENSION_NOT_PRESENT);
    EXPECT_EQ(CreateInstance({.instance_extensions = {"VK_NO_such"}}),
              VK_ERROR_EXTENSION_NOT_PRESENT);
    ASSERT_EQ(CreateInstance(), VK_SUCCESS);
    EXPECT_EQ(CreateDevice({.device_extensions = {"VK_KHR_swapchain"}}),
              VK_ERROR_EXTENSION_NOT_PRESENT);
    EXPECT_EQ(CreateDevice({.device_extensions = {""}}), VK_ERROR_EXTENSION_NOT_PRESENT);
}

TEST_F(ExtensionTest, EnumerationSaysWhenItIsIncomplete) {
    CreateAll();
    const auto all = DeviceExtensionsOf(physical_device_);
    std::vector<VkExtensionProperties> some(all.size());
    uint32_t count = 2;
    EXPECT_EQ(vkEnumerateDeviceExtensionProperties(physical_device_, nullptr, &count, some.data()),
              VK_INCOMPLETE);
    EXPECT_EQ(count, 2u);
    EXPECT_STREQ(some[1].extensionName, all[1].extensionName);
    EXPECT_STREQ(some[2].extensionName, "");
    count = static_cast<uint32_t>(all.size()) + 5;
    some.resize(count);
    EXPECT_EQ(vkEnumerateDeviceExtensionProperties(physical_device_, nullptr, &count, some.data()),
              VK_SUCCESS);
    EXPECT_EQ(count, all.size());
    EXPECT_EQ(vkEnumerateDeviceExtensionProperties(physical_device_, "layer", &count, nullptr),
              VK_ERROR_LAYER_NOT_PRESENT);
}

}  // namespace
}  // namespace fornax::driver_test
