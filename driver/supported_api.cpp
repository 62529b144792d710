// The list. To add an extension: implement it, then set its member here; tests fail when a command
// of an extension listed here is missing, or an extension that it depends on.
#include "driver/supported_api.h"

#include "base/environment.h"
#include "compiler/kernel/kernel_compiler.h"
#include "driver/compat.h"

namespace fornax::driver {
namespace {

constexpr ApiSet kSupportedApi = [] {
    ApiSet api{.version = kApiVersion};

    auto& instance = api.instance;
    instance.EXT_debug_report = true;
    instance.EXT_debug_utils = true;
    instance.EXT_headless_surface = true;
    instance.KHR_device_group_creation = true;
    instance.KHR_external_fence_capabilities = true;
    instance.KHR_external_memory_capabilities = true;
    instance.KHR_external_semaphore_capabilities = true;
    instance.KHR_get_physical_device_properties2 = true;
    instance.KHR_surface = true;  // none is supported

    auto& device = api.device;
    device.EXT_4444_formats = true;
    device.EXT_border_color_swizzle = true;
    device.EXT_buffer_device_address = true;
    device.EXT_calibrated_timestamps = true;
    device.EXT_conditional_rendering = true;
    device.EXT_custom_border_color = true;
    device.EXT_descriptor_buffer = true;
    device.EXT_descriptor_heap = true;
    device.EXT_descriptor_indexing = true;
    device.EXT_external_memory_acquire_unmodified = true;  // acquiring does nothing
    device.EXT_external_memory_host = true;
    device.EXT_global_priority = true;
    device.EXT_global_priority_query = true;
    device.EXT_device_address_binding_report = true;
    device.EXT_device_fault = true;
    device.EXT_device_memory_report = true;
    device.EXT_host_image_copy = true;
    device.EXT_host_query_reset = true;
    device.EXT_image_2d_view_of_3d = true;
    device.EXT_image_robustness = true;
    device.EXT_image_sliced_view_of_3d = true;
    device.EXT_inline_uniform_block = true;
    device.EXT_map_memory_placed = true;
    device.EXT_memory_budget = true;
    device.EXT_memory_priority = true;
    device.EXT_mutable_descriptor_type = true;
    device.EXT_nested_command_buffer = true;
    device.EXT_non_seamless_cube_map = true;
    device.EXT_pageable_device_local_memory = true;
    device.EXT_pipeline_creation_cache_control = true;
    device.EXT_pipeline_creation_feedback = true;
    device.EXT_pipeline_robustness = true;
    device.EXT_private_data = true;
    device.EXT_queue_family_foreign = true;
    device.EXT_robustness2 = true;
    device.EXT_separate_stencil_usage = true;
    device.EXT_shader_demote_to_helper_invocation = true;  // fragment shaders only
    device.EXT_shader_64bit_indexing = true;
    device.EXT_shader_long_vector = true;
    device.EXT_shader_module_identifier = true;
    device.EXT_shader_object = true;
    device.EXT_shader_replicated_composites = true;
    device.EXT_sampler_filter_minmax = true;
    device.EXT_scalar_block_layout = true;  // kernels address by the offsets that SPIR-V gives
    device.EXT_shader_atomic_float = true;
    device.EXT_shader_atomic_float2 = true;
    device.EXT_shader_image_atomic_int64 = true;
    device.EXT_shader_subgroup_ballot = true;
    device.EXT_shader_subgroup_partitioned = true;
    device.EXT_shader_subgroup_vote = true;
    device.EXT_subgroup_size_control = true;
    device.EXT_texel_buffer_alignment = true;
    device.EXT_tooling_info = true;
    device.EXT_zero_initialize_device_memory = true;  // all memory begins as zeros
    device.GOOGLE_decorate_string = true;             // decorations that mean nothing to a kernel
    device.GOOGLE_hlsl_functionality1 = true;
    device.GOOGLE_user_type = true;
    device.KHR_16bit_storage = true;
    device.KHR_8bit_storage = true;
    device.KHR_bind_memory2 = true;
    device.KHR_buffer_device_address = true;
    device.KHR_calibrated_timestamps = true;
    device.KHR_compute_shader_derivatives = true;
    device.KHR_copy_commands2 = true;
    device.KHR_copy_memory_indirect = true;
    device.KHR_dedicated_allocation = true;
    device.KHR_deferred_host_operations = true;  // nothing is deferred
    device.KHR_descriptor_update_template = true;
    device.KHR_device_address_commands = true;
    device.KHR_device_fault = true;
    device.KHR_device_group = true;
    device.KHR_driver_properties = true;
    device.KHR_extended_flags = true;
    device.KHR_format_feature_flags2 = true;
    device.KHR_external_fence = true;
    device.KHR_external_fence_fd = true;
    device.KHR_external_memory = true;
    device.KHR_external_memory_fd = true;
    device.KHR_external_semaphore = true;
    device.KHR_external_semaphore_fd = true;
    device.KHR_get_memory_requirements2 = true;
    device.KHR_global_priority = true;  // all queues have the same
    device.KHR_image_format_list = true;
    device.KHR_internally_synchronized_queues = true;
    device.KHR_maintenance1 = true;
    device.KHR_maintenance2 = true;
    device.KHR_maintenance3 = true;
    device.KHR_maintenance4 = true;
    device.KHR_maintenance5 = true;
    device.KHR_maintenance6 = true;
    device.KHR_maintenance7 = true;
    device.KHR_maintenance8 = true;
    device.KHR_maintenance9 = true;
    device.KHR_maintenance10 = true;
    device.KHR_maintenance11 = true;
    device.KHR_map_memory2 = true;
    device.KHR_performance_query = true;
    device.KHR_pipeline_binary = true;
    device.KHR_push_descriptor = true;
    device.KHR_relaxed_block_layout = true;
    device.KHR_robustness2 = true;
    device.KHR_sampler_mirror_clamp_to_edge = true;
    device.KHR_shader_atomic_int64 = true;
    device.KHR_shader_float16_int8 = true;
    device.KHR_shader_float_controls = true;
    device.KHR_shader_float_controls2 = true;
    device.KHR_shader_integer_dot_product = true;
    device.KHR_shader_maximal_reconvergence = true;
    device.KHR_cooperative_matrix = true;
    device.KHR_shader_bfloat16 = true;  // stored, converted, in dot products and matrices
    device.KHR_shader_clock = true;
    device.KHR_shader_expect_assume = true;
    device.KHR_shader_fma = true;
    device.KHR_shader_non_semantic_info = true;
    device.KHR_shader_quad_control = true;
    device.KHR_shader_relaxed_extended_instruction = true;  // those are without meaning
    device.KHR_shader_subgroup_extended_types = true;
    device.KHR_shader_subgroup_rotate = true;
    device.KHR_shader_subgroup_uniform_control_flow = true;
    device.KHR_shader_untyped_pointers = true;
    device.KHR_shader_terminate_invocation = true;  // fragment shaders only
    device.KHR_spirv_1_4 = true;
    device.KHR_storage_buffer_storage_class = true;
    device.KHR_synchronization2 = true;
    device.KHR_timeline_semaphore = true;
    device.KHR_unified_image_layouts = true;  // layouts mean nothing here
    device.KHR_uniform_buffer_standard_layout = true;
    device.KHR_workgroup_memory_explicit_layout = true;
    device.KHR_zero_initialize_workgroup_memory = true;
    device.NV_compute_shader_derivatives = true;
    device.NV_shader_subgroup_partitioned = true;
    device.KHR_variable_pointers = true;
    device.KHR_vulkan_memory_model = true;
    return api;
}();

constexpr FeatureSet kSupportedFeatures = [] {
    FeatureSet features;
    features.robustBufferAccess = true;
    features.inheritedQueries = true;
    features.pipelineStatisticsQuery = true;  // of compute shaders
    features.performanceCounterQueryPools = true;
    features.performanceCounterMultipleQueryPools = true;
    features.imageCubeArray = true;
    features.robustImageAccess = true;
    features.samplerFilterMinmax = true;
    features.samplerMirrorClampToEdge = true;
    features.shaderImageGatherExtended = true;
    features.shaderSampledImageArrayDynamicIndexing = true;
    features.shaderStorageImageArrayDynamicIndexing = true;
    features.shaderStorageImageExtendedFormats = true;
    features.shaderStorageImageMultisample = true;
    features.shaderStorageImageReadWithoutFormat = true;
    features.shaderStorageImageWriteWithoutFormat = true;
    features.shaderResourceMinLod = true;
    features.shaderFloat64 = true;
    features.shaderInt16 = true;
    features.shaderInt64 = true;
    features.shaderStorageBufferArrayDynamicIndexing = true;
    features.shaderUniformBufferArrayDynamicIndexing = true;

    features.borderColorSwizzle = true;
    features.borderColorSwizzleFromImage = true;
    features.customBorderColors = true;
    features.customBorderColorWithoutFormat = true;
    features.formatA4B4G4R4 = true;
    features.formatA4R4G4B4 = true;
    features.hostImageCopy = true;
    features.image2DViewOf3D = true;
    features.imageSlicedViewOf3D = true;
    features.nonSeamlessCubeMap = true;
    features.sampler2DViewOf3D = true;
    features.separateDepthStencilLayouts = true;  // layouts mean nothing
    features.texelBufferAlignment = true;
    features.textureCompressionBC = true;
    features.textureCompressionETC2 = true;

    features.storageBuffer16BitAccess = true;
    features.storagePushConstant16 = true;
    features.uniformAndStorageBuffer16BitAccess = true;

    features.computeDerivativeGroupLinear = true;
    features.computeDerivativeGroupQuads = true;
    features.computeFullSubgroups = true;
    features.bufferDeviceAddress = true;  // no capture and replay
    features.conditionalRendering = true;
    features.inheritedConditionalRendering = true;
    features.deviceAddressCommands = true;
    features.indirectMemoryCopy = true;
    features.indirectMemoryToImageCopy = true;
    features.dynamicRendering = true;  // its commands need a graphics queue, and so never run
    features.descriptorBuffer = true;  // no capture and replay
    features.descriptorBufferPushDescriptors = true;
    features.descriptorHeap = true;  // no capture and replay
    features.descriptorBindingInlineUniformBlockUpdateAfterBind = true;
    features.descriptorBindingPartiallyBound = true;
    features.descriptorBindingSampledImageUpdateAfterBind = true;
    features.descriptorBindingStorageBufferUpdateAfterBind = true;
    features.descriptorBindingStorageImageUpdateAfterBind = true;
    features.descriptorBindingStorageTexelBufferUpdateAfterBind = true;
    features.descriptorBindingUniformBufferUpdateAfterBind = true;
    features.descriptorBindingUniformTexelBufferUpdateAfterBind = true;
    features.descriptorBindingUpdateUnusedWhilePending = true;
    features.descriptorBindingVariableDescriptorCount = true;
    features.descriptorIndexing = true;  // all that Vulkan 1.2 puts under this name
    features.globalPriorityQuery = true;
    features.deviceFault = true;
    features.deviceMemoryReport = true;
    features.reportAddressBinding = true;
    features.extendedFlags = true;
    features.hostQueryReset = true;
    features.internallySynchronizedQueues = true;
    features.inlineUniformBlock = true;
    features.maintenance4 = true;
    features.maintenance5 = true;
    features.maintenance6 = true;
    features.maintenance7 = true;
    features.maintenance8 = true;
    features.maintenance9 = true;
    features.maintenance10 = true;
    features.maintenance11 = true;
    features.memoryPriority = true;
    features.mutableDescriptorType = true;
    features.nestedCommandBuffer = true;
    features.nestedCommandBufferSimultaneousUse = true;
    features.pageableDeviceLocalMemory = true;
    features.pipelineBinaries = true;
    features.memoryMapPlaced = true;
    features.memoryMapRangePlaced = true;
    features.memoryUnmapReserve = true;
    features.pipelineCreationCacheControl = true;
    features.pipelineRobustness = true;
    features.privateData = true;
    features.runtimeDescriptorArray = true;
    features.pushDescriptor = true;
    features.scalarBlockLayout = true;
    features.shaderBufferInt64Atomics = true;
    features.shaderSharedInt64Atomics = true;
    features.shaderSampledImageArrayNonUniformIndexing = true;
    features.shaderStorageBufferArrayNonUniformIndexing = true;
    features.shaderStorageImageArrayNonUniformIndexing = true;
    features.shaderStorageTexelBufferArrayDynamicIndexing = true;
    features.shaderStorageTexelBufferArrayNonUniformIndexing = true;
    features.shaderUniformBufferArrayNonUniformIndexing = true;
    features.shaderUniformTexelBufferArrayDynamicIndexing = true;
    features.shaderUniformTexelBufferArrayNonUniformIndexing = true;
    // Promises about fragment shaders, of which there are none: a module may hold one beside the
    // compute shader that is used.
    features.shaderDemoteToHelperInvocation = true;
    features.shaderTerminateInvocation = true;
    features.shader64BitIndexing = true;
    features.cooperativeMatrix = true;
    features.shaderBFloat16CooperativeMatrix = true;
    features.shaderBFloat16DotProduct = true;
    features.shaderBFloat16Type = true;
    features.longVector = true;
    features.shaderDeviceClock = true;
    features.shaderExpectAssume = true;
    features.shaderSubgroupClock = true;
    features.shaderModuleIdentifier = true;
    features.shaderObject = true;  // of compute
    features.shaderReplicatedComposites = true;
    features.shaderFloat16 = true;
    features.shaderFloatControls2 = true;
    features.shaderFmaFloat16 = true;
    features.shaderFmaFloat32 = true;
    features.shaderFmaFloat64 = true;
    features.shaderInt8 = true;
    features.shaderMaximalReconvergence = true;
    features.shaderQuadControl = true;
    features.shaderRelaxedExtendedInstruction = true;
    features.shaderSubgroupExtendedTypes = true;
    features.shaderSubgroupPartitioned = true;
    features.shaderSubgroupRotate = true;
    features.shaderSubgroupRotateClustered = true;
    features.shaderIntegerDotProduct = true;
    features.shaderZeroInitializeWorkgroupMemory = true;
    features.shaderSubgroupUniformControlFlow = true;
    features.storageBuffer8BitAccess = true;
    features.storagePushConstant8 = true;
    features.subgroupBroadcastDynamicId = true;
    features.subgroupSizeControl = true;
    features.synchronization2 = true;
    features.timelineSemaphore = true;
    features.uniformAndStorageBuffer8BitAccess = true;
    features.unifiedImageLayouts = true;
    features.uniformBufferStandardLayout = true;
    features.workgroupMemoryExplicitLayout = true;
    features.workgroupMemoryExplicitLayout16BitAccess = true;
    features.workgroupMemoryExplicitLayout8BitAccess = true;
    features.workgroupMemoryExplicitLayoutScalarBlockLayout = true;
    features.zeroInitializeDeviceMemory = true;
    features.variablePointers = true;
    features.variablePointersStorageBuffer = true;
    features.vulkanMemoryModel = true;
    features.vulkanMemoryModelAvailabilityVisibilityChains = true;
    features.vulkanMemoryModelDeviceScope = true;

    features.shaderUntypedPointers = true;
    features.nullDescriptor = true;
    features.robustBufferAccess2 = true;
    features.robustImageAccess2 = true;

    features.shaderBufferFloat16AtomicAdd = true;
    features.shaderBufferFloat16AtomicMinMax = true;
    features.shaderBufferFloat16Atomics = true;
    features.shaderBufferFloat32AtomicAdd = true;
    features.shaderBufferFloat32AtomicMinMax = true;
    features.shaderBufferFloat32Atomics = true;
    features.shaderBufferFloat64AtomicAdd = true;
    features.shaderBufferFloat64AtomicMinMax = true;
    features.shaderBufferFloat64Atomics = true;
    features.shaderImageFloat32AtomicAdd = true;
    features.shaderImageFloat32AtomicMinMax = true;
    features.shaderImageFloat32Atomics = true;
    features.shaderImageInt64Atomics = true;
    features.shaderSharedFloat16AtomicAdd = true;
    features.shaderSharedFloat16AtomicMinMax = true;
    features.shaderSharedFloat16Atomics = true;
    features.shaderSharedFloat32AtomicAdd = true;
    features.shaderSharedFloat32AtomicMinMax = true;
    features.shaderSharedFloat32Atomics = true;
    features.shaderSharedFloat64AtomicAdd = true;
    features.shaderSharedFloat64AtomicMinMax = true;
    features.shaderSharedFloat64Atomics = true;
    return features;
}();

// Not by default: a program that sees the extension may ask for the statistics of every pipeline,
// which waits for its code.
bool OffersStatistics() {
    return EnvironmentFlag("FORNAX_PIPELINE_STATISTICS");
}

// Only where that is faster than multiplying floats: programs ask so which to use.
bool OffersBFloatDotProducts() {
    return kernel::KernelCompiler::HasBFloatDotProducts();
}

}  // namespace

const ApiSet& SupportedApi() {
    static const ApiSet api = [] {
        ApiSet supported = kSupportedApi;
        supported.device.KHR_pipeline_executable_properties = OffersStatistics();
        supported.device.VALVE_shader_mixed_float_dot_product = OffersBFloatDotProducts();
        // The loader makes surfaces of window systems, so names are all that there is of them.
        const bool graphics = GetCompatModes().graphics;
        supported.instance.KHR_wayland_surface = graphics;
        supported.instance.KHR_xcb_surface = graphics;
        supported.instance.KHR_xlib_surface = graphics;
        supported.device.KHR_swapchain = graphics;
        return supported;
    }();
    return api;
}

const FeatureSet& SupportedFeatures() {
    static const FeatureSet features = [] {
        FeatureSet supported = kSupportedFeatures;
        supported.pipelineExecutableInfo = OffersStatistics();
        supported.shaderMixedFloatDotProductBFloat16Acc = OffersBFloatDotProducts();
        // What WebGPU, Taichi and Slang demand of graphics (docs/clients.md).
        const bool graphics = GetCompatModes().graphics;
        supported.depthBiasClamp = graphics;
        supported.fragmentStoresAndAtomics = graphics;
        supported.fullDrawIndexUint32 = graphics;
        supported.independentBlend = graphics;
        supported.sampleRateShading = graphics;
        supported.vertexPipelineStoresAndAtomics = graphics;
        return supported;
    }();
    return features;
}

}  // namespace fornax::driver
