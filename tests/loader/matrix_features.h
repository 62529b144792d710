// The features that shaders with cooperative matrices are made with, as a chain.
#pragma once

#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {

class MatrixFeatures {
  public:
    // `next`: what follows in the chain, not owned.
    explicit MatrixFeatures(void* next = nullptr) { bfloat16_.pNext = next; }
    MatrixFeatures(const MatrixFeatures&) = delete;
    MatrixFeatures& operator=(const MatrixFeatures&) = delete;

    void* first() { return &storage16_; }

  private:
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR,
        .shaderBFloat16Type = VK_TRUE,
        .shaderBFloat16CooperativeMatrix = VK_TRUE};
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrices_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR,
        .pNext = &bfloat16_,
        .cooperativeMatrix = VK_TRUE};
    // Sizes of workgroups that are specialization constants.
    VkPhysicalDeviceMaintenance4Features maintenance_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES,
        .pNext = &matrices_,
        .maintenance4 = VK_TRUE};
    VkPhysicalDeviceVulkanMemoryModelFeatures model_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES,
        .pNext = &maintenance_,
        .vulkanMemoryModel = VK_TRUE,
        .vulkanMemoryModelDeviceScope = VK_TRUE};
    VkPhysicalDeviceSubgroupSizeControlFeatures sizes_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES,
        .pNext = &model_,
        .subgroupSizeControl = VK_TRUE,
        .computeFullSubgroups = VK_TRUE};
    VkPhysicalDeviceShaderFloat16Int8Features small_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES,
        .pNext = &sizes_,
        .shaderFloat16 = VK_TRUE,
        .shaderInt8 = VK_TRUE};
    VkPhysicalDevice8BitStorageFeatures storage8_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES,
        .pNext = &small_,
        .storageBuffer8BitAccess = VK_TRUE};
    VkPhysicalDevice16BitStorageFeatures storage16_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES,
        .pNext = &storage8_,
        .storageBuffer16BitAccess = VK_TRUE};
};

}  // namespace fornax::test
