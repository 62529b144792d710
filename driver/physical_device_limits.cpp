// VkPhysicalDeviceLimits. Every limit that compute and transfers can reach is what the HAL and the
// driver really bear. Graphics cannot be reached at all; its limits are the least values that the
// specification allows ("Required Limits"), because applications size by them. With
// FORNAX_COMPAT=graphics they are those of usual GPUs, which programs compare with what they want.
#include "driver/compat.h"
#include "driver/limits.h"
#include "driver/physical_device.h"

namespace fornax::driver {
namespace {

void FillGraphicsLimits(VkPhysicalDeviceLimits& limits) {
    limits.maxPerStageDescriptorInputAttachments = 4;
    limits.maxDescriptorSetInputAttachments = 4;
    limits.maxVertexInputAttributes = 16;
    limits.maxVertexInputBindings = 16;
    limits.maxVertexInputAttributeOffset = 2047;
    limits.maxVertexInputBindingStride = 2048;
    limits.maxVertexOutputComponents = 64;
    limits.maxFragmentInputComponents = 64;
    limits.maxFragmentOutputAttachments = 4;
    limits.maxFragmentCombinedOutputResources = 4;
    limits.subPixelPrecisionBits = 4;
    limits.maxDrawIndexedIndexValue = (1u << 24) - 1;
    limits.maxDrawIndirectCount = 1;
    limits.maxViewports = 1;
    limits.maxViewportDimensions[0] = 4096;
    limits.maxViewportDimensions[1] = 4096;
    limits.viewportBoundsRange[0] = -8192;
    limits.viewportBoundsRange[1] = 8191;
    limits.maxFramebufferWidth = 4096;
    limits.maxFramebufferHeight = 4096;
    limits.maxFramebufferLayers = 256;
    constexpr VkSampleCountFlags kSamples = VK_SAMPLE_COUNT_1_BIT | VK_SAMPLE_COUNT_4_BIT;
    limits.framebufferColorSampleCounts = kSamples;
    limits.framebufferDepthSampleCounts = kSamples;
    limits.framebufferStencilSampleCounts = kSamples;
    limits.framebufferNoAttachmentsSampleCounts = kSamples;
    limits.maxColorAttachments = 4;
    limits.maxSampleMaskWords = 1;
    limits.pointSizeRange[0] = 1;
    limits.pointSizeRange[1] = 1;
    limits.lineWidthRange[0] = 1;
    limits.lineWidthRange[1] = 1;
    limits.strictLines = VK_FALSE;
    limits.standardSampleLocations = VK_TRUE;
    // Features that are off fix these limits to 0 or 1.
    limits.maxClipDistances = 0;
    limits.maxCullDistances = 0;
    limits.maxCombinedClipAndCullDistances = 0;
}

void FillCompatLimits(VkPhysicalDeviceLimits& limits) {
    limits.maxPerStageDescriptorInputAttachments = 8;
    limits.maxDescriptorSetInputAttachments = 8;
    limits.maxVertexInputAttributes = 32;
    limits.maxVertexInputBindings = 32;
    limits.maxVertexInputAttributeOffset = 4095;
    limits.maxVertexInputBindingStride = 4096;
    limits.maxVertexOutputComponents = 128;
    limits.maxFragmentInputComponents = 128;
    limits.maxFragmentOutputAttachments = 8;
    limits.maxColorAttachments = 8;
    // wgpu takes half of them for the storage buffers of any stage.
    limits.maxFragmentCombinedOutputResources = kMaxDescriptors;
    limits.subPixelPrecisionBits = 8;
    limits.maxDrawIndexedIndexValue = UINT32_MAX;  // fullDrawIndexUint32
    // WebGPU bounds textures by the sizes of viewports and framebuffers.
    limits.maxViewportDimensions[0] = kMaxImageDimension;
    limits.maxViewportDimensions[1] = kMaxImageDimension;
    limits.viewportBoundsRange[0] = -2.0f * kMaxImageDimension;
    limits.viewportBoundsRange[1] = 2.0f * kMaxImageDimension - 1;
    limits.maxFramebufferWidth = kMaxImageDimension;
    limits.maxFramebufferHeight = kMaxImageDimension;
    limits.maxFramebufferLayers = kMaxImageLayers;
    limits.framebufferColorSampleCounts = kSampleCounts;
    limits.framebufferDepthSampleCounts = kSampleCounts;
    limits.framebufferStencilSampleCounts = kSampleCounts;
    limits.framebufferNoAttachmentsSampleCounts = kSampleCounts;
}

}  // namespace

VkPhysicalDeviceLimits MakeLimits(const hal::DeviceCapabilities& capabilities) {
    VkPhysicalDeviceLimits limits = {};
    FillGraphicsLimits(limits);
    if (GetCompatModes().graphics) {
        FillCompatLimits(limits);
    }

    // Memory.
    limits.maxMemoryAllocationCount = kMaxMemoryAllocations;
    limits.bufferImageGranularity = 1;
    limits.minMemoryMapAlignment = hal::kMemoryAlignment;
    limits.nonCoherentAtomSize = kNonCoherentAtomSize;
    static_assert(hal::kMemoryAlignment >= 64, "minMemoryMapAlignment must be at least 64.");

    // Images and samplers.
    limits.maxImageDimension1D = kMaxImageDimension;
    limits.maxImageDimension2D = kMaxImageDimension;
    limits.maxImageDimension3D = kMaxImageDimension;
    limits.maxImageDimensionCube = kMaxImageDimension;
    limits.maxImageArrayLayers = kMaxImageLayers;
    limits.maxTexelBufferElements = kMaxTexelBufferElements;
    limits.minTexelBufferOffsetAlignment = kMinOffsetAlignment;
    limits.maxSamplerAllocationCount = kMaxDescriptors;
    limits.maxSamplerLodBias = hal::kMaxSamplerLodBias;
    limits.maxSamplerAnisotropy = 1;
    limits.subTexelPrecisionBits = 8;
    limits.mipmapPrecisionBits = 8;
    limits.minTexelOffset = -8;
    limits.maxTexelOffset = 7;
    // Offsets of gathers are added to the texel's place; any that an image has room for would do.
    limits.minTexelGatherOffset = -8;
    limits.maxTexelGatherOffset = 7;
    limits.sampledImageColorSampleCounts = kSampleCounts;
    limits.sampledImageIntegerSampleCounts = kSampleCounts;
    limits.sampledImageDepthSampleCounts = kSampleCounts;
    limits.sampledImageStencilSampleCounts = kSampleCounts;
    limits.storageImageSampleCounts = kSampleCounts;

    // Buffers and descriptors.
    limits.maxPerStageDescriptorSamplers = kMaxDescriptors;
    limits.maxPerStageDescriptorSampledImages = kMaxDescriptors;
    limits.maxPerStageDescriptorStorageImages = kMaxDescriptors;
    limits.maxDescriptorSetSamplers = kMaxDescriptors;
    limits.maxDescriptorSetSampledImages = kMaxDescriptors;
    limits.maxDescriptorSetStorageImages = kMaxDescriptors;
    limits.maxUniformBufferRange = 0xffffffff;
    limits.maxStorageBufferRange = 0xffffffff;
    limits.minUniformBufferOffsetAlignment = kMinOffsetAlignment;
    limits.minStorageBufferOffsetAlignment = kMinOffsetAlignment;
    limits.maxPushConstantsSize = capabilities.max_push_constant_bytes;
    limits.maxBoundDescriptorSets = hal::kMaxDescriptorSets;
    limits.maxPerStageDescriptorUniformBuffers = kMaxDescriptors;
    limits.maxPerStageDescriptorStorageBuffers = kMaxDescriptors;
    limits.maxPerStageResources = kMaxDescriptors;
    limits.maxDescriptorSetUniformBuffers = kMaxDescriptors;
    limits.maxDescriptorSetUniformBuffersDynamic = kMaxDynamicUniformBuffers;
    limits.maxDescriptorSetStorageBuffers = kMaxDescriptors;
    limits.maxDescriptorSetStorageBuffersDynamic = kMaxDynamicStorageBuffers;

    // Compute.
    limits.maxComputeSharedMemorySize = capabilities.max_shared_bytes;
    limits.maxComputeWorkGroupInvocations = capabilities.max_workgroup_invocations;
    for (int i = 0; i < 3; ++i) {
        limits.maxComputeWorkGroupCount[i] = hal::kMaxWorkgroupCount[i];
        limits.maxComputeWorkGroupSize[i] = hal::kMaxWorkgroupSize[i];
    }

    // Queues, queries and copies.
    limits.timestampComputeAndGraphics = capabilities.timestamp_valid_bits > 0;
    limits.timestampPeriod = static_cast<float>(capabilities.timestamp_period_ns);
    limits.discreteQueuePriorities = 2;
    limits.optimalBufferCopyOffsetAlignment = 64;
    limits.optimalBufferCopyRowPitchAlignment = 64;
    return limits;
}

}  // namespace fornax::driver
