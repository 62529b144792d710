// VkPhysicalDeviceLimits. Every limit that compute and transfers can reach is what the HAL and the
// driver really bear. Images and graphics cannot be reached at all; they are given the least
// values that the specification allows ("Required Limits"), because applications size by them.
#include "driver/limits.h"
#include "driver/physical_device.h"

namespace fornax::driver {
namespace {

void FillImageAndGraphicsLimits(VkPhysicalDeviceLimits& limits) {
    limits.maxImageDimension1D = 4096;
    limits.maxImageDimension2D = 4096;
    limits.maxImageDimension3D = 256;
    limits.maxImageDimensionCube = 4096;
    limits.maxImageArrayLayers = 256;
    limits.maxTexelBufferElements = 65536;
    limits.maxSamplerAllocationCount = 4000;
    limits.maxPerStageDescriptorSamplers = 16;
    limits.maxPerStageDescriptorSampledImages = 16;
    limits.maxPerStageDescriptorStorageImages = 4;
    limits.maxPerStageDescriptorInputAttachments = 4;
    limits.maxDescriptorSetSamplers = 96;
    limits.maxDescriptorSetSampledImages = 96;
    limits.maxDescriptorSetStorageImages = 24;
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
    limits.subTexelPrecisionBits = 4;
    limits.mipmapPrecisionBits = 4;
    limits.maxDrawIndexedIndexValue = (1u << 24) - 1;
    limits.maxDrawIndirectCount = 1;
    limits.maxSamplerLodBias = 2;
    limits.maxSamplerAnisotropy = 1;
    limits.maxViewports = 1;
    limits.maxViewportDimensions[0] = 4096;
    limits.maxViewportDimensions[1] = 4096;
    limits.viewportBoundsRange[0] = -8192;
    limits.viewportBoundsRange[1] = 8191;
    limits.minTexelBufferOffsetAlignment = 16;
    limits.minTexelOffset = -8;
    limits.maxTexelOffset = 7;
    limits.maxFramebufferWidth = 4096;
    limits.maxFramebufferHeight = 4096;
    limits.maxFramebufferLayers = 256;
    constexpr VkSampleCountFlags kSamples = VK_SAMPLE_COUNT_1_BIT | VK_SAMPLE_COUNT_4_BIT;
    limits.framebufferColorSampleCounts = kSamples;
    limits.framebufferDepthSampleCounts = kSamples;
    limits.framebufferStencilSampleCounts = kSamples;
    limits.framebufferNoAttachmentsSampleCounts = kSamples;
    limits.maxColorAttachments = 4;
    limits.sampledImageColorSampleCounts = kSamples;
    limits.sampledImageIntegerSampleCounts = VK_SAMPLE_COUNT_1_BIT;
    limits.sampledImageDepthSampleCounts = kSamples;
    limits.sampledImageStencilSampleCounts = kSamples;
    limits.storageImageSampleCounts = VK_SAMPLE_COUNT_1_BIT;
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

}  // namespace

VkPhysicalDeviceLimits MakeLimits(const hal::DeviceCapabilities& capabilities) {
    VkPhysicalDeviceLimits limits = {};
    FillImageAndGraphicsLimits(limits);

    // Memory.
    limits.maxMemoryAllocationCount = kMaxMemoryAllocations;
    limits.bufferImageGranularity = 1;
    limits.minMemoryMapAlignment = hal::kMemoryAlignment;
    limits.nonCoherentAtomSize = kNonCoherentAtomSize;
    static_assert(hal::kMemoryAlignment >= 64, "minMemoryMapAlignment must be at least 64.");

    // Buffers and descriptors.
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
