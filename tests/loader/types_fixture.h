// A device with the features of 8-, 16- and 64-bit types, dot products, float controls and
// workgroup memory enabled through the structures of their extensions.
#pragma once

#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {

class TypesTest : public VulkanTest {
  protected:
    void SetUp() override {
        core_features_.shaderFloat64 = VK_TRUE;
        core_features_.shaderInt64 = VK_TRUE;
        core_features_.shaderInt16 = VK_TRUE;
        more_extensions_ = {VK_KHR_16BIT_STORAGE_EXTENSION_NAME,
                            VK_KHR_8BIT_STORAGE_EXTENSION_NAME,
                            VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME,
                            VK_EXT_SCALAR_BLOCK_LAYOUT_EXTENSION_NAME,
                            VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME,
                            VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME,
                            VK_KHR_SPIRV_1_4_EXTENSION_NAME,
                            VK_KHR_WORKGROUP_MEMORY_EXPLICIT_LAYOUT_EXTENSION_NAME,
                            VK_KHR_ZERO_INITIALIZE_WORKGROUP_MEMORY_EXTENSION_NAME};
        more_extensions_.insert(more_extensions_.end(), extra_extensions_.begin(),
                                extra_extensions_.end());
        more_features_ = &storage16_;
        VulkanTest::SetUp();
    }

    // What a derived fixture asks for, set before SetUp; its features follow dot_.
    std::vector<const char*> extra_extensions_;

    VkPhysicalDeviceShaderIntegerDotProductFeatures dot_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES,
        .shaderIntegerDotProduct = VK_TRUE};
    VkPhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR shared_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_WORKGROUP_MEMORY_EXPLICIT_LAYOUT_FEATURES_KHR,
        .pNext = &dot_,
        .workgroupMemoryExplicitLayout = VK_TRUE,
        .workgroupMemoryExplicitLayoutScalarBlockLayout = VK_TRUE,
        .workgroupMemoryExplicitLayout8BitAccess = VK_TRUE,
        .workgroupMemoryExplicitLayout16BitAccess = VK_TRUE};
    VkPhysicalDeviceZeroInitializeWorkgroupMemoryFeatures zero_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ZERO_INITIALIZE_WORKGROUP_MEMORY_FEATURES,
        .pNext = &shared_,
        .shaderZeroInitializeWorkgroupMemory = VK_TRUE};
    VkPhysicalDeviceScalarBlockLayoutFeatures scalar_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SCALAR_BLOCK_LAYOUT_FEATURES,
        .pNext = &zero_,
        .scalarBlockLayout = VK_TRUE};
    VkPhysicalDeviceShaderFloat16Int8Features arithmetic_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES,
        .pNext = &scalar_,
        .shaderFloat16 = VK_TRUE,
        .shaderInt8 = VK_TRUE};
    VkPhysicalDevice8BitStorageFeatures storage8_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES,
        .pNext = &arithmetic_,
        .storageBuffer8BitAccess = VK_TRUE,
        .uniformAndStorageBuffer8BitAccess = VK_TRUE,
        .storagePushConstant8 = VK_TRUE};
    VkPhysicalDevice16BitStorageFeatures storage16_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES,
        .pNext = &storage8_,
        .storageBuffer16BitAccess = VK_TRUE,
        .uniformAndStorageBuffer16BitAccess = VK_TRUE,
        .storagePushConstant16 = VK_TRUE};
};

}  // namespace fornax::test
