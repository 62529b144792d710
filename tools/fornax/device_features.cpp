// Which of the features that compute programs ask for a device has.
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
    // What devices of Vulkan 1.1 have as extensions; from 1.2 on the structures above hold it.
    VkPhysicalDevice16BitStorageFeatures storage_16bit = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES};
    VkPhysicalDeviceVariablePointersFeatures variable_pointers = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VARIABLE_POINTERS_FEATURES};
    VkPhysicalDevice8BitStorageFeatures storage_8bit = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES};
    VkPhysicalDeviceShaderFloat16Int8Features float16_int8 = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES};
    VkPhysicalDeviceVulkanMemoryModelFeatures memory_model = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES};
    VkPhysicalDeviceBufferDeviceAddressFeatures buffer_address = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES};
    VkPhysicalDeviceScalarBlockLayoutFeatures scalar_layout = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SCALAR_BLOCK_LAYOUT_FEATURES};
    VkPhysicalDeviceUniformBufferStandardLayoutFeatures uniform_layout = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_UNIFORM_BUFFER_STANDARD_LAYOUT_FEATURES};
    VkPhysicalDeviceHostQueryResetFeatures host_query_reset = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_HOST_QUERY_RESET_FEATURES};
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES};
    // The same for devices before Vulkan 1.3.
    VkPhysicalDeviceSubgroupSizeControlFeatures size_control = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES};
    VkPhysicalDeviceShaderIntegerDotProductFeatures dot_product = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES};
    VkPhysicalDeviceSynchronization2Features synchronization2 = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SYNCHRONIZATION_2_FEATURES};
    VkPhysicalDeviceMaintenance4Features maintenance4 = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES};
    VkPhysicalDevicePipelineCreationCacheControlFeatures cache_control = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_CREATION_CACHE_CONTROL_FEATURES};
    // Extensions of every version.
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
    FeatureQuery query;
    auto chain_if = [&](const char* extension, auto& structure) {
        if (HasExtension(extensions, extension)) {
            query.Chain(structure);
        }
    };
    if (api_version >= VK_API_VERSION_1_2) {
        query.Chain(query.v11);
        query.Chain(query.v12);
    } else {
        query.Chain(query.storage_16bit);
        query.Chain(query.variable_pointers);
        chain_if(VK_KHR_8BIT_STORAGE_EXTENSION_NAME, query.storage_8bit);
        chain_if(VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME, query.float16_int8);
        chain_if(VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME, query.memory_model);
        chain_if(VK_KHR_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME, query.buffer_address);
        chain_if(VK_EXT_SCALAR_BLOCK_LAYOUT_EXTENSION_NAME, query.scalar_layout);
        chain_if(VK_KHR_UNIFORM_BUFFER_STANDARD_LAYOUT_EXTENSION_NAME, query.uniform_layout);
        chain_if(VK_EXT_HOST_QUERY_RESET_EXTENSION_NAME, query.host_query_reset);
        chain_if(VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME, query.timeline);
    }
    if (api_version >= VK_API_VERSION_1_3) {
        query.Chain(query.v13);
    } else {
        chain_if(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME, query.size_control);
        chain_if(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME, query.dot_product);
        chain_if(VK_KHR_SYNCHRONIZATION_2_EXTENSION_NAME, query.synchronization2);
        chain_if(VK_KHR_MAINTENANCE_4_EXTENSION_NAME, query.maintenance4);
        chain_if(VK_EXT_PIPELINE_CREATION_CACHE_CONTROL_EXTENSION_NAME, query.cache_control);
    }
    chain_if(VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME, query.atomic_float);
    chain_if(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME, query.cooperative_matrix);
    chain_if(VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME, query.bfloat16);
    chain_if(VK_ARM_TENSORS_EXTENSION_NAME, query.tensors);
    chain_if(VK_ARM_DATA_GRAPH_EXTENSION_NAME, query.data_graph);
    vkGetPhysicalDeviceFeatures2(device, &query.core);

    // A structure that was not chained is all zeros, so its features read as missing.
    const VkPhysicalDeviceFeatures& core = query.core.features;
    const std::pair<const char*, VkBool32> features[] = {
        {"robustBufferAccess", core.robustBufferAccess},
        {"shaderFloat64", core.shaderFloat64},
        {"shaderInt64", core.shaderInt64},
        {"shaderInt16", core.shaderInt16},
        {"shaderFloat16", query.v12.shaderFloat16 | query.float16_int8.shaderFloat16},
        {"shaderInt8", query.v12.shaderInt8 | query.float16_int8.shaderInt8},
        {"storageBuffer16BitAccess",
         query.v11.storageBuffer16BitAccess | query.storage_16bit.storageBuffer16BitAccess},
        {"uniformAndStorageBuffer16BitAccess",
         query.v11.uniformAndStorageBuffer16BitAccess |
             query.storage_16bit.uniformAndStorageBuffer16BitAccess},
        {"storagePushConstant16",
         query.v11.storagePushConstant16 | query.storage_16bit.storagePushConstant16},
        {"storageBuffer8BitAccess",
         query.v12.storageBuffer8BitAccess | query.storage_8bit.storageBuffer8BitAccess},
        {"variablePointersStorageBuffer",
         query.v11.variablePointersStorageBuffer |
             query.variable_pointers.variablePointersStorageBuffer},
        {"variablePointers", query.v11.variablePointers | query.variable_pointers.variablePointers},
        {"shaderBufferInt64Atomics", query.v12.shaderBufferInt64Atomics},
        {"shaderSharedInt64Atomics", query.v12.shaderSharedInt64Atomics},
        {"shaderBufferFloat32AtomicAdd", query.atomic_float.shaderBufferFloat32AtomicAdd},
        {"vulkanMemoryModel", query.v12.vulkanMemoryModel | query.memory_model.vulkanMemoryModel},
        {"bufferDeviceAddress",
         query.v12.bufferDeviceAddress | query.buffer_address.bufferDeviceAddress},
        {"scalarBlockLayout", query.v12.scalarBlockLayout | query.scalar_layout.scalarBlockLayout},
        {"uniformBufferStandardLayout",
         query.v12.uniformBufferStandardLayout | query.uniform_layout.uniformBufferStandardLayout},
        {"descriptorIndexing", query.v12.descriptorIndexing},
        {"runtimeDescriptorArray", query.v12.runtimeDescriptorArray},
        {"hostQueryReset", query.v12.hostQueryReset | query.host_query_reset.hostQueryReset},
        {"timelineSemaphore", query.v12.timelineSemaphore | query.timeline.timelineSemaphore},
        {"shaderSubgroupExtendedTypes", query.v12.shaderSubgroupExtendedTypes},
        {"subgroupSizeControl",
         query.v13.subgroupSizeControl | query.size_control.subgroupSizeControl},
        {"computeFullSubgroups",
         query.v13.computeFullSubgroups | query.size_control.computeFullSubgroups},
        {"shaderIntegerDotProduct",
         query.v13.shaderIntegerDotProduct | query.dot_product.shaderIntegerDotProduct},
        {"shaderZeroInitializeWorkgroupMemory", query.v13.shaderZeroInitializeWorkgroupMemory},
        {"synchronization2", query.v13.synchronization2 | query.synchronization2.synchronization2},
        {"maintenance4", query.v13.maintenance4 | query.maintenance4.maintenance4},
        {"pipelineCreationCacheControl",
         query.v13.pipelineCreationCacheControl | query.cache_control.pipelineCreationCacheControl},
        {"cooperativeMatrix", query.cooperative_matrix.cooperativeMatrix},
        {"shaderBFloat16Type", query.bfloat16.shaderBFloat16Type},
        {"tensors", query.tensors.tensors},
        {"dataGraph", query.data_graph.dataGraph},
    };
    std::vector<FeatureState> states;
    for (const auto& [name, value] : features) {
        states.push_back({name, value == VK_TRUE});
    }
    return states;
}

}  // namespace fornax::tool
