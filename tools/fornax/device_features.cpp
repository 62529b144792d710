// Which of the features that compute programs ask for a device has.
#include <cstring>

#include "tools/fornax/device_report.h"

namespace fornax::tool {
namespace {

// The feature structures of one query, chained only where the device knows them: drivers must
// ignore structures they do not know, but validation layers rightly complain about them.
struct FeatureQuery {
    VkPhysicalDeviceFeatures2 core = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    VkPhysicalDeviceVulkan11Features v11 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
    VkPhysicalDeviceVulkan12Features v12 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceVulkan13Features v13 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
    VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomic_float = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT};
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR cooperative_matrix = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR};
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16 = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR};
    VkPhysicalDeviceTensorFeaturesARM tensors = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TENSOR_FEATURES_ARM};
    VkPhysicalDeviceDataGraphFeaturesARM data_graph = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DATA_GRAPH_FEATURES_ARM};

    template <typename Structure>
    void Chain(Structure& structure) {
        structure.pNext = core.pNext;
        core.pNext = &structure;
    }
};

}  // namespace

std::vector<FeatureState> ComputeFeatures(VkPhysicalDevice device,
                                          uint32_t api_version,
                                          const std::vector<VkExtensionProperties>& extensions) {
    auto has = [&](const char* name) {
        for (const VkExtensionProperties& extension : extensions) {
            if (std::strcmp(extension.extensionName, name) == 0)
                return true;
        }
        return false;
    };
    FeatureQuery query;
    if (api_version >= VK_API_VERSION_1_2) {
        query.Chain(query.v11);
        query.Chain(query.v12);
    }
    if (api_version >= VK_API_VERSION_1_3)
        query.Chain(query.v13);
    if (has(VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME))
        query.Chain(query.atomic_float);
    if (has(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME))
        query.Chain(query.cooperative_matrix);
    if (has(VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME))
        query.Chain(query.bfloat16);
    if (has(VK_ARM_TENSORS_EXTENSION_NAME))
        query.Chain(query.tensors);
    if (has(VK_ARM_DATA_GRAPH_EXTENSION_NAME))
        query.Chain(query.data_graph);
    vkGetPhysicalDeviceFeatures2(device, &query.core);

    // A structure that was not chained is all zeros, so its features read as missing.
    const VkPhysicalDeviceFeatures& core = query.core.features;
    const std::pair<const char*, VkBool32> features[] = {
        {"robustBufferAccess", core.robustBufferAccess},
        {"shaderFloat64", core.shaderFloat64},
        {"shaderInt64", core.shaderInt64},
        {"shaderInt16", core.shaderInt16},
        {"shaderFloat16", query.v12.shaderFloat16},
        {"shaderInt8", query.v12.shaderInt8},
        {"storageBuffer16BitAccess", query.v11.storageBuffer16BitAccess},
        {"uniformAndStorageBuffer16BitAccess", query.v11.uniformAndStorageBuffer16BitAccess},
        {"storagePushConstant16", query.v11.storagePushConstant16},
        {"storageBuffer8BitAccess", query.v12.storageBuffer8BitAccess},
        {"variablePointersStorageBuffer", query.v11.variablePointersStorageBuffer},
        {"variablePointers", query.v11.variablePointers},
        {"shaderBufferInt64Atomics", query.v12.shaderBufferInt64Atomics},
        {"shaderSharedInt64Atomics", query.v12.shaderSharedInt64Atomics},
        {"shaderBufferFloat32AtomicAdd", query.atomic_float.shaderBufferFloat32AtomicAdd},
        {"vulkanMemoryModel", query.v12.vulkanMemoryModel},
        {"bufferDeviceAddress", query.v12.bufferDeviceAddress},
        {"scalarBlockLayout", query.v12.scalarBlockLayout},
        {"uniformBufferStandardLayout", query.v12.uniformBufferStandardLayout},
        {"descriptorIndexing", query.v12.descriptorIndexing},
        {"runtimeDescriptorArray", query.v12.runtimeDescriptorArray},
        {"hostQueryReset", query.v12.hostQueryReset},
        {"timelineSemaphore", query.v12.timelineSemaphore},
        {"shaderSubgroupExtendedTypes", query.v12.shaderSubgroupExtendedTypes},
        {"subgroupSizeControl", query.v13.subgroupSizeControl},
        {"computeFullSubgroups", query.v13.computeFullSubgroups},
        {"shaderIntegerDotProduct", query.v13.shaderIntegerDotProduct},
        {"shaderZeroInitializeWorkgroupMemory", query.v13.shaderZeroInitializeWorkgroupMemory},
        {"synchronization2", query.v13.synchronization2},
        {"maintenance4", query.v13.maintenance4},
        {"pipelineCreationCacheControl", query.v13.pipelineCreationCacheControl},
        {"cooperativeMatrix", query.cooperative_matrix.cooperativeMatrix},
        {"shaderBFloat16Type", query.bfloat16.shaderBFloat16Type},
        {"tensors", query.tensors.tensors},
        {"dataGraph", query.data_graph.dataGraph},
    };
    std::vector<FeatureState> states;
    for (const auto& [name, value] : features)
        states.push_back({name, value == VK_TRUE});
    return states;
}

}  // namespace fornax::tool
