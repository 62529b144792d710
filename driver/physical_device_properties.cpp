// VkPhysicalDeviceProperties and the structures that extend VkPhysicalDeviceProperties2. To add
// one: add its row to kRows.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "base/hash.h"
#include "compiler/kernel/interface/resource_layout.h"
#include "driver/chain.h"
#include "driver/compat.h"
#include "driver/entry_point.h"
#include "driver/host_cpu.h"
#include "driver/kernel_binary.h"
#include "driver/limits.h"
#include "driver/physical_device.h"
#include "driver/report.h"
#include "driver/supported_api.h"
#include "hal/command_stream.h"

namespace fornax::driver {
namespace {

constexpr uint32_t kDriverVersion =
    VK_MAKE_API_VERSION(0, FORNAX_VERSION_MAJOR, FORNAX_VERSION_MINOR, FORNAX_VERSION_PATCH);

// Fornax is nobody's PCI device. "If the vendor has no PCI vendor ID, vendorID must be a Khronos
// vendor ID"; Khronos' own is the neutral one.
constexpr uint32_t kVendorId = VK_VENDOR_ID_KHRONOS;
constexpr uint32_t kDeviceId = 0x464e5801;  // "FNX", 1: the software model

void CopyText(std::string_view text, std::span<char> destination) {
    const size_t size = std::min(text.size(), destination.size() - 1);
    std::ranges::copy(text.substr(0, size), destination.begin());
    destination[size] = '\0';
}

void CopyUuid(const Hash128& hash, uint8_t (&uuid)[VK_UUID_SIZE]) {
    static_assert(sizeof(hash) == VK_UUID_SIZE);
    std::memcpy(uuid, &hash, VK_UUID_SIZE);
}

// Changes when cached pipelines of another driver or machine would be of no use.
Hash128 PipelineCacheUuid() {
    return Hasher()
        .Append("pipeline cache")
        .Append(kDriverVersion)
        .Append(hal::kKernelAbiVersion)
        .Append(HostCpuName())
        .Finish();
}

void FillIds(VkPhysicalDeviceIDProperties& properties) {
    // The same device for every process, API and version of the driver.
    CopyUuid(Hasher().Append("device").Append(kVendorId).Append(kDeviceId).Finish(),
             properties.deviceUUID);
    CopyUuid(Hasher().Append("driver").Append(kDriverVersion).Finish(), properties.driverUUID);
    // Not of Windows. What is said to be invalid is zeros, so that queries agree.
    properties.deviceLUIDValid = VK_FALSE;
    std::ranges::fill(properties.deviceLUID, uint8_t{0});
    properties.deviceNodeMask = 0;
}

void FillSubgroup(VkPhysicalDeviceSubgroupProperties& properties) {
    properties.subgroupSize = kSubgroupSize;
    properties.supportedStages = VK_SHADER_STAGE_COMPUTE_BIT;
    if (GetCompatModes().graphics) {
        properties.supportedStages |= VK_SHADER_STAGE_VERTEX_BIT | VK_SHADER_STAGE_FRAGMENT_BIT;
    }
    properties.supportedOperations = kSubgroupOperations;
    properties.quadOperationsInAllStages = VK_FALSE;
}

void FillSubgroupSizeControl(const PhysicalDevice& device,
                             VkPhysicalDeviceSubgroupSizeControlProperties& properties) {
    properties.minSubgroupSize = kMinSubgroupSize;
    properties.maxSubgroupSize = kMaxSubgroupSize;
    properties.maxComputeWorkgroupSubgroups =
        device.properties().limits.maxComputeWorkGroupInvocations / kMinSubgroupSize;
    properties.requiredSubgroupSizeStages = VK_SHADER_STAGE_COMPUTE_BIT;
}

void FillDriver(VkPhysicalDeviceDriverProperties& properties) {
    // No number of VkDriverId is assigned to Fornax, and there is none for "another".
    properties.driverID = static_cast<VkDriverId>(0);
    CopyText("Fornax", properties.driverName);
    CopyText(std::string(FORNAX_VERSION) + ", " + HostCpuName(), properties.driverInfo);
    // No conformance was submitted; who wants a version to be shown says so.
    properties.conformanceVersion = {0, 0, 0, 0};
    if (GetCompatModes().conformance) {
        properties.conformanceVersion = {VK_API_VERSION_MAJOR(kApiVersion),
                                         VK_API_VERSION_MINOR(kApiVersion), 0, 0};
    }
}

// Descriptors are read when a kernel runs, so that updates after binding cost nothing; all kinds
// share one limit. Where lanes have buffers of their own, each lane's address is computed.
void FillDescriptorIndexing(VkBaseOutStructure& header) {
    FillStruct(
        header,
        VkPhysicalDeviceDescriptorIndexingProperties{
            .maxUpdateAfterBindDescriptorsInAllPools = kMaxDescriptors,
            .robustBufferAccessUpdateAfterBind = VK_TRUE,
            .maxPerStageDescriptorUpdateAfterBindSamplers = kMaxDescriptors,
            .maxPerStageDescriptorUpdateAfterBindUniformBuffers = kMaxDescriptors,
            .maxPerStageDescriptorUpdateAfterBindStorageBuffers = kMaxDescriptors,
            .maxPerStageDescriptorUpdateAfterBindSampledImages = kMaxDescriptors,
            .maxPerStageDescriptorUpdateAfterBindStorageImages = kMaxDescriptors,
            .maxPerStageDescriptorUpdateAfterBindInputAttachments = kMaxDescriptors,
            .maxPerStageUpdateAfterBindResources = kMaxDescriptors,
            .maxDescriptorSetUpdateAfterBindSamplers = kMaxDescriptors,
            .maxDescriptorSetUpdateAfterBindUniformBuffers = kMaxDescriptors,
            .maxDescriptorSetUpdateAfterBindUniformBuffersDynamic = kMaxDynamicUniformBuffers,
            .maxDescriptorSetUpdateAfterBindStorageBuffers = kMaxDescriptors,
            .maxDescriptorSetUpdateAfterBindStorageBuffersDynamic = kMaxDynamicStorageBuffers,
            .maxDescriptorSetUpdateAfterBindSampledImages = kMaxDescriptors,
            .maxDescriptorSetUpdateAfterBindStorageImages = kMaxDescriptors,
            .maxDescriptorSetUpdateAfterBindInputAttachments = kMaxDescriptors});
}

// As many as the kernel compiler takes (kReaderLimits).
constexpr uint32_t kMaxVectorComponents = 1024;

// The limits of a pipeline layout; both kinds of update share the limits of a set.
void FillMaintenance7(VkBaseOutStructure& header) {
    constexpr uint32_t kTotal = kMaxDynamicUniformBuffers + kMaxDynamicStorageBuffers;
    FillStruct(
        header,
        VkPhysicalDeviceMaintenance7PropertiesKHR{
            .robustFragmentShadingRateAttachmentAccess = VK_FALSE,
            .separateDepthStencilAttachmentAccess = VK_FALSE,
            .maxDescriptorSetTotalUniformBuffersDynamic = kMaxDynamicUniformBuffers,
            .maxDescriptorSetTotalStorageBuffersDynamic = kMaxDynamicStorageBuffers,
            .maxDescriptorSetTotalBuffersDynamic = kTotal,
            .maxDescriptorSetUpdateAfterBindTotalUniformBuffersDynamic = kMaxDynamicUniformBuffers,
            .maxDescriptorSetUpdateAfterBindTotalStorageBuffersDynamic = kMaxDynamicStorageBuffers,
            .maxDescriptorSetUpdateAfterBindTotalBuffersDynamic = kTotal});
}

// Descriptors are as in any set; what robustness is asked for does not change them. Descriptors
// hold all of a sampler or view, so either may be made after a submission (of a set that is written
// then).
constexpr VkPhysicalDeviceDescriptorBufferPropertiesEXT kDescriptorBufferProperties{
    .combinedImageSamplerDescriptorSingleArray = VK_TRUE,
    .bufferlessPushDescriptors = VK_TRUE,
    .allowSamplerImageViewPostSubmitCreation = VK_TRUE,
    .descriptorBufferOffsetAlignment = alignof(hal::BufferDescriptor),
    .maxDescriptorBufferBindings = kMaxDescriptorBuffers,
    .maxResourceDescriptorBufferBindings = kMaxDescriptorBuffers,
    .maxSamplerDescriptorBufferBindings = kMaxDescriptorBuffers,
    .maxEmbeddedImmutableSamplerBindings = hal::kMaxDescriptorSets,
    .maxEmbeddedImmutableSamplers = kMaxDescriptors,
    .samplerDescriptorSize = sizeof(hal::SamplerDescriptor),
    .combinedImageSamplerDescriptorSize = sizeof(hal::CombinedImageSamplerDescriptor),
    .sampledImageDescriptorSize = sizeof(hal::SampledImageDescriptor),
    .storageImageDescriptorSize = sizeof(hal::ImageDescriptor),
    .uniformTexelBufferDescriptorSize = sizeof(hal::ImageDescriptor),
    .robustUniformTexelBufferDescriptorSize = sizeof(hal::ImageDescriptor),
    .storageTexelBufferDescriptorSize = sizeof(hal::ImageDescriptor),
    .robustStorageTexelBufferDescriptorSize = sizeof(hal::ImageDescriptor),
    .uniformBufferDescriptorSize = sizeof(hal::BufferDescriptor),
    .robustUniformBufferDescriptorSize = sizeof(hal::BufferDescriptor),
    .storageBufferDescriptorSize = sizeof(hal::BufferDescriptor),
    .robustStorageBufferDescriptorSize = sizeof(hal::BufferDescriptor),
    .maxSamplerDescriptorBufferRange = UINT32_MAX,
    .maxResourceDescriptorBufferRange = UINT32_MAX,
    .samplerDescriptorBufferAddressSpaceSize = kDescriptorAddressSpaceBytes,
    .resourceDescriptorBufferAddressSpaceSize = kDescriptorAddressSpaceBytes,
    .descriptorBufferAddressSpaceSize = kDescriptorAddressSpaceBytes,
};

// Layouts mean nothing, so the host copies in all; with unifiedImageLayouts also in those of
// attachments, which no image here ever has ("Unified Image Layouts").
void FillHostImageCopy(VkBaseOutStructure& header) {
    static constexpr VkImageLayout kLayouts[] = {
        VK_IMAGE_LAYOUT_GENERAL,
        VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL,
        VK_IMAGE_LAYOUT_DEPTH_STENCIL_ATTACHMENT_OPTIMAL,
        VK_IMAGE_LAYOUT_DEPTH_STENCIL_READ_ONLY_OPTIMAL,
        VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL,
        VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL,
        VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL,
        VK_IMAGE_LAYOUT_PREINITIALIZED,
        VK_IMAGE_LAYOUT_DEPTH_READ_ONLY_STENCIL_ATTACHMENT_OPTIMAL,
        VK_IMAGE_LAYOUT_DEPTH_ATTACHMENT_STENCIL_READ_ONLY_OPTIMAL,
        VK_IMAGE_LAYOUT_DEPTH_ATTACHMENT_OPTIMAL,
        VK_IMAGE_LAYOUT_DEPTH_READ_ONLY_OPTIMAL,
        VK_IMAGE_LAYOUT_STENCIL_ATTACHMENT_OPTIMAL,
        VK_IMAGE_LAYOUT_STENCIL_READ_ONLY_OPTIMAL,
        VK_IMAGE_LAYOUT_READ_ONLY_OPTIMAL,
        VK_IMAGE_LAYOUT_ATTACHMENT_OPTIMAL,
        VK_IMAGE_LAYOUT_RENDERING_LOCAL_READ,
    };
    auto& properties = reinterpret_cast<VkPhysicalDeviceHostImageCopyProperties&>(header);
    const auto write = [](VkImageLayout& layout, uint32_t i) { layout = kLayouts[i]; };
    // What does not fit is left out without a word.
    static_cast<void>(WriteArray(std::size(kLayouts), &properties.copySrcLayoutCount,
                                 properties.pCopySrcLayouts, write));
    static_cast<void>(WriteArray(std::size(kLayouts), &properties.copyDstLayoutCount,
                                 properties.pCopyDstLayouts, write));
    // Changes with how images lie in memory.
    CopyUuid(Hasher().Append("image layout").Append(hal::kKernelAbiVersion).Finish(),
             properties.optimalTilingLayoutUUID);
    properties.identicalMemoryTypeRequirements = VK_TRUE;
}

// Nothing is reserved in a heap: what the driver adds to it lies elsewhere.
constexpr VkPhysicalDeviceDescriptorHeapPropertiesEXT kDescriptorHeapProperties{
    .samplerHeapAlignment = kernel::ResourceLayout::kHeapGranularity,
    .resourceHeapAlignment = kernel::ResourceLayout::kHeapGranularity,
    .maxSamplerHeapSize = kMaxDescriptorHeapBytes,
    .maxResourceHeapSize = kMaxDescriptorHeapBytes,
    .samplerDescriptorSize = sizeof(hal::SamplerDescriptor),
    .imageDescriptorSize = sizeof(hal::ImageDescriptor),
    .bufferDescriptorSize = sizeof(hal::BufferDescriptor),
    .samplerDescriptorAlignment = kernel::ResourceLayout::kHeapGranularity,
    .imageDescriptorAlignment = kernel::ResourceLayout::kHeapGranularity,
    .bufferDescriptorAlignment = kernel::ResourceLayout::kHeapGranularity,
    .maxPushDataSize = hal::kMaxPushConstantBytes,
    .maxDescriptorHeapEmbeddedSamplers = kMaxDescriptors,
    .samplerYcbcrConversionCount = 1,
};

void FillProperties(const PhysicalDevice& device, VkBaseOutStructure& header);

// VkPhysicalDeviceVulkan1xProperties: each member has the value of the structure it came from.
// Members are copied both ways, because some are arrays of the application that are to be filled.
void FillAggregate(const PhysicalDevice& device,
                   const AggregateProperties& aggregate,
                   VkBaseOutStructure& header) {
    auto* to = reinterpret_cast<std::byte*>(&header);
    for (const PropertySource& source : aggregate.sources) {
        std::vector<uint64_t> storage((source.size_bytes + 7) / 8);  // as aligned as any structure
        auto* from = reinterpret_cast<std::byte*>(storage.data());
        auto& source_header = *new (from) VkBaseOutStructure{.sType = source.s_type};
        for (const PropertyMember& m : source.members) {
            std::memcpy(from + m.source_offset, to + m.aggregate_offset, m.size_bytes);
        }
        FillProperties(device, source_header);
        for (const PropertyMember& m : source.members) {
            std::memcpy(to + m.aggregate_offset, from + m.source_offset, m.size_bytes);
        }
    }
    // What came with the version itself.
    if (header.sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES) {
        reinterpret_cast<VkPhysicalDeviceVulkan12Properties&>(header)
            .framebufferIntegerColorSampleCounts = VK_SAMPLE_COUNT_1_BIT;
    } else if (header.sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES) {
        auto& properties = reinterpret_cast<VkPhysicalDeviceVulkan13Properties&>(header);
        properties.maxInlineUniformTotalSize = kMaxInlineUniformBytes;
    } else if (header.sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_4_PROPERTIES) {
        auto& properties = reinterpret_cast<VkPhysicalDeviceVulkan14Properties&>(header);
        properties.dynamicRenderingLocalReadDepthStencilAttachments = VK_FALSE;
        properties.dynamicRenderingLocalReadMultisampledAttachments = VK_FALSE;
    }
}

struct PropertyRow {
    VkStructureType type;
    void (*fill)(const PhysicalDevice& device, VkBaseOutStructure& header);
};

// The function makes all of the structure.
template <typename Make>
constexpr PropertyRow Row(VkStructureType type, Make) {
    return {type, [](const PhysicalDevice& device, VkBaseOutStructure& header) {
                FillStruct(header, Make{}(device));
            }};
}

// A structure a row.
constexpr PropertyRow kRows[] = {
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES,
     [](const PhysicalDevice&, VkBaseOutStructure& header) {
         FillIds(reinterpret_cast<VkPhysicalDeviceIDProperties&>(header));
     }},
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES,
     [](const PhysicalDevice&, VkBaseOutStructure& header) {
         FillSubgroup(reinterpret_cast<VkPhysicalDeviceSubgroupProperties&>(header));
     }},
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES,
     [](const PhysicalDevice& device, VkBaseOutStructure& header) {
         FillSubgroupSizeControl(
             device, reinterpret_cast<VkPhysicalDeviceSubgroupSizeControlProperties&>(header));
     }},
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES,
     [](const PhysicalDevice&, VkBaseOutStructure& header) {
         FillDriver(reinterpret_cast<VkPhysicalDeviceDriverProperties&>(header));
     }},
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_POINT_CLIPPING_PROPERTIES,
        [](const PhysicalDevice&) {
            return VkPhysicalDevicePointClippingProperties{
                .pointClippingBehavior = VK_POINT_CLIPPING_BEHAVIOR_ALL_CLIP_PLANES};
        }),
    // There is no multiview; the least values that the specification allows.
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MULTIVIEW_PROPERTIES,
        [](const PhysicalDevice&) {
            return VkPhysicalDeviceMultiviewProperties{.maxMultiviewViewCount = 6,
                                                       .maxMultiviewInstanceIndex = (1u << 27) - 1};
        }),
    // There is no protected memory.
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROTECTED_MEMORY_PROPERTIES,
        [](const PhysicalDevice&) { return VkPhysicalDeviceProtectedMemoryProperties{}; }),
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES,
        [](const PhysicalDevice& device) {
            return VkPhysicalDeviceMaintenance3Properties{
                .maxPerSetDescriptors = kMaxDescriptors,
                .maxMemoryAllocationSize = device.capabilities().max_allocation_bytes};
        }),
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES,
        [](const PhysicalDevice& device) {
            return VkPhysicalDeviceMaintenance4Properties{
                .maxBufferSize = device.capabilities().max_allocation_bytes};
        }),
    // The others describe rasterisation.
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_5_PROPERTIES,
        [](const PhysicalDevice&) {
            return VkPhysicalDeviceMaintenance5Properties{.depthStencilSwizzleOneSupport = VK_TRUE};
        }),
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_6_PROPERTIES,
        [](const PhysicalDevice&) {
            return VkPhysicalDeviceMaintenance6Properties{
                .blockTexelViewCompatibleMultipleLayers = VK_TRUE,
                .maxCombinedImageSamplerDescriptorCount = 1};
        }),
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DESCRIPTOR_HEAP_PROPERTIES_EXT,
        [](const PhysicalDevice&) { return kDescriptorHeapProperties; }),
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DESCRIPTOR_BUFFER_PROPERTIES_EXT,
        [](const PhysicalDevice&) { return kDescriptorBufferProperties; }),
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COPY_MEMORY_INDIRECT_PROPERTIES_KHR,
        [](const PhysicalDevice&) {
            return VkPhysicalDeviceCopyMemoryIndirectPropertiesKHR{
                .supportedQueues = VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT};
        }),
    // Calls from secondaries: neither the primary's stream nor the innermost one makes one.
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_NESTED_COMMAND_BUFFER_PROPERTIES_EXT,
        [](const PhysicalDevice&) {
            return VkPhysicalDeviceNestedCommandBufferPropertiesEXT{.maxCommandBufferNestingLevel =
                                                                        hal::kMaxChainDepth - 2};
        }),
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_7_PROPERTIES_KHR,
     [](const PhysicalDevice&, VkBaseOutStructure& header) { FillMaintenance7(header); }},
    // No implementation of another interface lies below.
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_LAYERED_API_PROPERTIES_LIST_KHR,
     [](const PhysicalDevice&, VkBaseOutStructure& header) {
         reinterpret_cast<VkPhysicalDeviceLayeredApiPropertiesListKHR&>(header).layeredApiCount = 0;
     }},
    // About sparse images and vertices.
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_9_PROPERTIES_KHR,
        [](const PhysicalDevice&) { return VkPhysicalDeviceMaintenance9PropertiesKHR{}; }),
    // Nothing is resolved, and borders do not see the swizzle of a format.
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_10_PROPERTIES_KHR,
        [](const PhysicalDevice&) { return VkPhysicalDeviceMaintenance10PropertiesKHR{}; }),
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_HOST_IMAGE_COPY_PROPERTIES,
     [](const PhysicalDevice&, VkBaseOutStructure& header) { FillHostImageCopy(header); }},
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_CUSTOM_BORDER_COLOR_PROPERTIES_EXT,
        [](const PhysicalDevice&) {
            return VkPhysicalDeviceCustomBorderColorPropertiesEXT{.maxCustomBorderColorSamplers =
                                                                      kMaxDescriptors};
        }),
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SAMPLER_FILTER_MINMAX_PROPERTIES,
        [](const PhysicalDevice&) {
            return VkPhysicalDeviceSamplerFilterMinmaxProperties{
                .filterMinmaxSingleComponentFormats = VK_TRUE,
                .filterMinmaxImageComponentMapping = VK_TRUE};
        }),
    // "Required" even of a device that resolves nothing.
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DEPTH_STENCIL_RESOLVE_PROPERTIES,
        [](const PhysicalDevice&) {
            return VkPhysicalDeviceDepthStencilResolveProperties{
                .supportedDepthResolveModes = VK_RESOLVE_MODE_SAMPLE_ZERO_BIT,
                .supportedStencilResolveModes = VK_RESOLVE_MODE_SAMPLE_ZERO_BIT};
        }),
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_LINE_RASTERIZATION_PROPERTIES,
        [](const PhysicalDevice&) {
            return VkPhysicalDeviceLineRasterizationProperties{.lineSubPixelPrecisionBits = 4};
        }),
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VERTEX_ATTRIBUTE_DIVISOR_PROPERTIES,
        [](const PhysicalDevice&) {
            return VkPhysicalDeviceVertexAttributeDivisorProperties{.maxVertexAttribDivisor =
                                                                        65535};
        }),
    // Kernels compute by IEEE 754: nothing is flushed, and results are rounded to nearest
    // even. Other modes are written out by the kernel compiler for each width by itself.
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES,
        [](const PhysicalDevice&) {
            return VkPhysicalDeviceFloatControlsProperties{
                .denormBehaviorIndependence = VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL,
                .roundingModeIndependence = VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL,
                .shaderSignedZeroInfNanPreserveFloat16 = VK_TRUE,
                .shaderSignedZeroInfNanPreserveFloat32 = VK_TRUE,
                .shaderSignedZeroInfNanPreserveFloat64 = VK_TRUE,
                .shaderDenormPreserveFloat16 = VK_TRUE,
                .shaderDenormPreserveFloat32 = VK_TRUE,
                .shaderDenormPreserveFloat64 = VK_TRUE,
                .shaderDenormFlushToZeroFloat16 = VK_TRUE,
                .shaderDenormFlushToZeroFloat32 = VK_TRUE,
                .shaderDenormFlushToZeroFloat64 = VK_TRUE,
                .shaderRoundingModeRTEFloat16 = VK_TRUE,
                .shaderRoundingModeRTEFloat32 = VK_TRUE,
                .shaderRoundingModeRTEFloat64 = VK_TRUE,
                .shaderRoundingModeRTZFloat16 = VK_TRUE,
                .shaderRoundingModeRTZFloat32 = VK_TRUE,
                .shaderRoundingModeRTZFloat64 = VK_TRUE};
        }),
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FAULT_PROPERTIES_KHR,
        [](const PhysicalDevice&) {
            return VkPhysicalDeviceFaultPropertiesKHR{.maxDeviceFaultCount = 1};
        }),
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PERFORMANCE_QUERY_PROPERTIES_KHR,
        [](const PhysicalDevice&) {
            return VkPhysicalDevicePerformanceQueryPropertiesKHR{.allowCommandBufferQueryCopies =
                                                                     VK_TRUE};
        }),
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COMPUTE_SHADER_DERIVATIVES_PROPERTIES_KHR,
        [](const PhysicalDevice&) {
            return VkPhysicalDeviceComputeShaderDerivativesPropertiesKHR{
                .meshAndTaskShaderDerivatives = VK_FALSE};
        }),
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_PROPERTIES_KHR,
        [](const PhysicalDevice&) {
            return VkPhysicalDeviceCooperativeMatrixPropertiesKHR{
                .cooperativeMatrixSupportedStages = VK_SHADER_STAGE_COMPUTE_BIT};
        }),
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_LONG_VECTOR_PROPERTIES_EXT,
        [](const PhysicalDevice&) {
            return VkPhysicalDeviceShaderLongVectorPropertiesEXT{.maxVectorComponents =
                                                                     kMaxVectorComponents};
        }),
    // What VPDPBUSD, or else VPMADDWD, does; other forms are multiplications and additions.
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES,
        [](const PhysicalDevice&) {
            return VkPhysicalDeviceShaderIntegerDotProductProperties{
                .integerDotProduct4x8BitPackedUnsignedAccelerated = VK_TRUE,
                .integerDotProduct4x8BitPackedSignedAccelerated = VK_TRUE,
                .integerDotProduct4x8BitPackedMixedSignednessAccelerated = VK_TRUE,
                .integerDotProductAccumulatingSaturating4x8BitPackedUnsignedAccelerated = VK_TRUE,
                .integerDotProductAccumulatingSaturating4x8BitPackedSignedAccelerated = VK_TRUE,
                .integerDotProductAccumulatingSaturating4x8BitPackedMixedSignednessAccelerated =
                    VK_TRUE};
        }),
    // Timelines are 64-bit counters of which no difference is ever taken.
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_PROPERTIES,
        [](const PhysicalDevice&) {
            return VkPhysicalDeviceTimelineSemaphoreProperties{
                .maxTimelineSemaphoreValueDifference = UINT64_MAX};
        }),
    // A texel is read from wherever its view begins, so a texel's alignment would do; the
    // limit of all is kept to.
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TEXEL_BUFFER_ALIGNMENT_PROPERTIES,
        [](const PhysicalDevice&) {
            return VkPhysicalDeviceTexelBufferAlignmentProperties{
                .storageTexelBufferOffsetAlignmentBytes = kMinOffsetAlignment,
                .storageTexelBufferOffsetSingleTexelAlignment = VK_TRUE,
                .uniformTexelBufferOffsetAlignmentBytes = kMinOffsetAlignment,
                .uniformTexelBufferOffsetSingleTexelAlignment = VK_TRUE};
        }),
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT,
        [](const PhysicalDevice&) {
            return VkPhysicalDeviceExternalMemoryHostPropertiesEXT{
                .minImportedHostPointerAlignment = hal::kMemoryPageBytes};
        }),
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAP_MEMORY_PLACED_PROPERTIES_EXT,
        [](const PhysicalDevice&) {
            return VkPhysicalDeviceMapMemoryPlacedPropertiesEXT{.minPlacedMemoryMapAlignment =
                                                                    hal::kMemoryPageBytes};
        }),
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PUSH_DESCRIPTOR_PROPERTIES,
        [](const PhysicalDevice&) {
            return VkPhysicalDevicePushDescriptorProperties{.maxPushDescriptors =
                                                                kMaxPushDescriptors};
        }),
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DESCRIPTOR_INDEXING_PROPERTIES,
     [](const PhysicalDevice&, VkBaseOutStructure& header) { FillDescriptorIndexing(header); }},
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_INLINE_UNIFORM_BLOCK_PROPERTIES,
        [](const PhysicalDevice&) {
            return VkPhysicalDeviceInlineUniformBlockProperties{
                .maxInlineUniformBlockSize = kMaxInlineUniformBlockBytes,
                .maxPerStageDescriptorInlineUniformBlocks = kMaxInlineBlocks,
                .maxPerStageDescriptorUpdateAfterBindInlineUniformBlocks = kMaxInlineBlocks,
                .maxDescriptorSetInlineUniformBlocks = kMaxInlineBlocks,
                .maxDescriptorSetUpdateAfterBindInlineUniformBlocks = kMaxInlineBlocks};
        }),
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_MODULE_IDENTIFIER_PROPERTIES_EXT,
     [](const PhysicalDevice&, VkBaseOutStructure& header) {
         CopyUuid(Hasher().Append("XXH3-128 of SPIR-V").Finish(),
                  reinterpret_cast<VkPhysicalDeviceShaderModuleIdentifierPropertiesEXT&>(header)
                      .shaderModuleIdentifierAlgorithmUUID);
     }},
    // The cache on disk, which serves an application as well as its own would.
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_BINARY_PROPERTIES_KHR,
        [](const PhysicalDevice&) {
            return VkPhysicalDevicePipelineBinaryPropertiesKHR{
                .pipelineBinaryInternalCache = VK_TRUE,
                .pipelineBinaryInternalCacheControl = VK_TRUE,
                .pipelineBinaryPrefersInternalCache = VK_TRUE,
                .pipelineBinaryPrecompiledInternalCache = VK_FALSE,
                .pipelineBinaryCompressedData = VK_FALSE};
        }),
    // The UUID names the format, which any driver that knows it can compile from.
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_OBJECT_PROPERTIES_EXT,
     [](const PhysicalDevice&, VkBaseOutStructure& header) {
         auto& properties = reinterpret_cast<VkPhysicalDeviceShaderObjectPropertiesEXT&>(header);
         CopyUuid(Hasher().Append("shader binary").Append(kKernelBinaryVersion).Finish(),
                  properties.shaderBinaryUUID);
         properties.shaderBinaryVersion = 1;
     }},
    // Bounds are exact to the byte.
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ROBUSTNESS_2_PROPERTIES_EXT,
        [](const PhysicalDevice&) {
            return VkPhysicalDeviceRobustness2PropertiesEXT{
                .robustStorageBufferAccessSizeAlignment = 1,
                .robustUniformBufferAccessSizeAlignment = 1};
        }),
    Row(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_ROBUSTNESS_PROPERTIES,
        [](const PhysicalDevice&) {
            return VkPhysicalDevicePipelineRobustnessProperties{
                .defaultRobustnessStorageBuffers = VK_PIPELINE_ROBUSTNESS_BUFFER_BEHAVIOR_DISABLED,
                .defaultRobustnessUniformBuffers = VK_PIPELINE_ROBUSTNESS_BUFFER_BEHAVIOR_DISABLED,
                .defaultRobustnessVertexInputs = VK_PIPELINE_ROBUSTNESS_BUFFER_BEHAVIOR_DISABLED,
                .defaultRobustnessImages = VK_PIPELINE_ROBUSTNESS_IMAGE_BEHAVIOR_DISABLED};
        }),
};

static_assert(std::ranges::all_of(kRows, [](const PropertyRow& row) {
    return std::ranges::count(kRows, row.type, &PropertyRow::type) == 1;
}));

void FillProperties(const PhysicalDevice& device, VkBaseOutStructure& header) {
    const auto aggregate =
        std::ranges::find(AllAggregateProperties(), header.sType, &AggregateProperties::s_type);
    if (aggregate != AllAggregateProperties().end()) {
        return FillAggregate(device, *aggregate, header);
    }
    const auto* row = std::ranges::find(kRows, header.sType, &PropertyRow::type);
    if (row != std::end(kRows)) {  // "must ignore" structures of extensions that are not supported
        row->fill(device, header);
    }
}

}  // namespace

VkResult MakeProperties(const Object& origin,
                        const hal::DeviceCapabilities& capabilities,
                        VkPhysicalDeviceProperties& properties) {
    properties.apiVersion = kApiVersion;
    properties.driverVersion = kDriverVersion;
    properties.vendorID = kVendorId;
    properties.deviceID = kDeviceId;
    properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
    if (const auto wanted = EnvironmentText("FORNAX_DEVICE_TYPE")) {
        constexpr std::pair<std::string_view, VkPhysicalDeviceType> kTypes[] = {
            {"other", VK_PHYSICAL_DEVICE_TYPE_OTHER},
            {"integrated", VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU},
            {"discrete", VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU},
            {"virtual", VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU},
            {"cpu", VK_PHYSICAL_DEVICE_TYPE_CPU},
        };
        const auto* type =
            std::ranges::find(kTypes, std::string_view(*wanted),
                              &std::pair<std::string_view, VkPhysicalDeviceType>::first);
        if (type == std::end(kTypes)) {
            return Fail(origin, VK_ERROR_INITIALIZATION_FAILED,
                        "FORNAX_DEVICE_TYPE is \"{}\", which is none of other, integrated, "
                        "discrete, virtual and cpu.",
                        *wanted);
        }
        properties.deviceType = type->second;
    }
    CopyText(fmt::format("Fornax ({})", capabilities.name), properties.deviceName);
    CopyUuid(PipelineCacheUuid(), properties.pipelineCacheUUID);
    properties.limits = MakeLimits(capabilities);
    properties.sparseProperties = {};  // no sparse resources
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(void)
vkGetPhysicalDeviceProperties(VkPhysicalDevice physical_device,
                              VkPhysicalDeviceProperties* properties) {
    *properties = FromHandle<PhysicalDevice>(physical_device)->properties();
}

FORNAX_ENTRY_POINT(void)
vkGetPhysicalDeviceProperties2(VkPhysicalDevice physical_device,
                               VkPhysicalDeviceProperties2* properties) {
    const auto& device = *FromHandle<PhysicalDevice>(physical_device);
    properties->properties = device.properties();
    ForEachInChain(properties->pNext,
                   [&](VkBaseOutStructure& header) { FillProperties(device, header); });
}

}  // namespace fornax::driver
