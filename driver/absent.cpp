// The list of core commands that the device has no use for (driver/absent.h says why), each with
// what would make it useful. When one becomes real, its line goes and FORNAX_ENTRY_POINT comes.
#include "driver/absent.h"

#include <algorithm>

#include "driver/command_buffer.h"
#include "driver/compat.h"
#include "driver/device.h"
#include "driver/entry_point.h"
#include "driver/report.h"

namespace fornax::driver {
namespace {

VkResult FailAbsentFrom(const Object& origin, const char* name) {
    if (GetCompatModes().graphics) {
        return Fail(origin, VK_ERROR_FEATURE_NOT_PRESENT,
                    "{} was called, but Fornax draws and presents nothing: the graphics queue is "
                    "only shown because FORNAX_COMPAT=graphics asks for it.",
                    name);
    }
    return Fail(origin, VK_ERROR_UNKNOWN,
                "{} was called, but Fornax has no graphics queue, sparse memory or colour models.",
                name);
}

}  // namespace

VkResult FailAbsent(VkDevice device, const char* name) {
    return FailAbsentFrom(*FromHandle<Device>(device), name);
}

VkResult FailAbsent(VkQueue queue, const char* name) {
    return FailAbsentFrom(*FromHandle<Queue>(queue), name);
}

VkResult FailAbsent(VkCommandBuffer command_buffer, const char* name) {
    auto& recording = *FromHandle<CommandBuffer>(command_buffer);
    if (!GetCompatModes().graphics) {
        return FailAbsentFrom(recording, name);
    }
    // A program that was shown a graphics queue takes what it records for drawn, so the recording
    // fails. One sentence is enough: draws come with dozens of state commands.
    if (recording.result() == VK_SUCCESS) {
        recording.Error(FailAbsentFrom(recording, name));
    }
    return recording.result();
}

// clang-format off
// Sparse memory.
FORNAX_ABSENT_ENTRY_POINT(vkQueueBindSparse)

// Graphics.
FORNAX_ABSENT_ENTRY_POINT(vkCmdBeginRenderPass)
FORNAX_ABSENT_ENTRY_POINT(vkCmdBeginRenderPass2)
FORNAX_ABSENT_ENTRY_POINT(vkCmdBeginRendering)
FORNAX_ABSENT_ENTRY_POINT(vkCmdBindIndexBuffer)
FORNAX_ABSENT_ENTRY_POINT(vkCmdBindIndexBuffer2)
FORNAX_ABSENT_ENTRY_POINT(vkCmdBindIndexBuffer3KHR)
FORNAX_ABSENT_ENTRY_POINT(vkCmdBindVertexBuffers)
FORNAX_ABSENT_ENTRY_POINT(vkCmdBindVertexBuffers2)
FORNAX_ABSENT_ENTRY_POINT(vkCmdBindVertexBuffers3KHR)
FORNAX_ABSENT_ENTRY_POINT(vkCmdBlitImage)
FORNAX_ABSENT_ENTRY_POINT(vkCmdBlitImage2)
FORNAX_ABSENT_ENTRY_POINT(vkCmdClearAttachments)
FORNAX_ABSENT_ENTRY_POINT(vkCmdDraw)
FORNAX_ABSENT_ENTRY_POINT(vkCmdDrawIndexed)
FORNAX_ABSENT_ENTRY_POINT(vkCmdDrawIndexedIndirect)
FORNAX_ABSENT_ENTRY_POINT(vkCmdDrawIndexedIndirect2KHR)
FORNAX_ABSENT_ENTRY_POINT(vkCmdDrawIndexedIndirectCount)
FORNAX_ABSENT_ENTRY_POINT(vkCmdDrawIndexedIndirectCount2KHR)
FORNAX_ABSENT_ENTRY_POINT(vkCmdDrawIndirect)
FORNAX_ABSENT_ENTRY_POINT(vkCmdDrawIndirect2KHR)
FORNAX_ABSENT_ENTRY_POINT(vkCmdDrawIndirectCount)
FORNAX_ABSENT_ENTRY_POINT(vkCmdDrawIndirectCount2KHR)
FORNAX_ABSENT_ENTRY_POINT(vkCmdEndRenderPass)
FORNAX_ABSENT_ENTRY_POINT(vkCmdEndRenderPass2)
FORNAX_ABSENT_ENTRY_POINT(vkCmdEndRendering)
FORNAX_ABSENT_ENTRY_POINT(vkCmdEndRendering2KHR)
FORNAX_ABSENT_ENTRY_POINT(vkCmdNextSubpass)
FORNAX_ABSENT_ENTRY_POINT(vkCmdNextSubpass2)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetBlendConstants)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetCullMode)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetDepthBias)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetDepthBiasEnable)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetDepthBounds)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetDepthBoundsTestEnable)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetDepthCompareOp)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetDepthTestEnable)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetDepthWriteEnable)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetFrontFace)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetLineStipple)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetLineWidth)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetPrimitiveRestartEnable)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetPrimitiveTopology)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetRasterizerDiscardEnable)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetRenderingAttachmentLocations)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetRenderingInputAttachmentIndices)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetScissor)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetScissorWithCount)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetStencilCompareMask)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetStencilOp)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetStencilReference)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetStencilTestEnable)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetStencilWriteMask)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetViewport)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetViewportWithCount)
FORNAX_ABSENT_ENTRY_POINT(vkCreateFramebuffer)
FORNAX_ABSENT_ENTRY_POINT(vkCreateRenderPass)
FORNAX_ABSENT_ENTRY_POINT(vkCreateRenderPass2)
FORNAX_ABSENT_ENTRY_POINT(vkDestroyFramebuffer)
FORNAX_ABSENT_ENTRY_POINT(vkDestroyRenderPass)
FORNAX_ABSENT_ENTRY_POINT(vkGetRenderAreaGranularity)
FORNAX_ABSENT_ENTRY_POINT(vkGetRenderingAreaGranularity)

// Swapchains (FORNAX_COMPAT=graphics): no surface can have one.
FORNAX_ABSENT_ENTRY_POINT(vkAcquireNextImage2KHR)
FORNAX_ABSENT_ENTRY_POINT(vkAcquireNextImageKHR)
FORNAX_ABSENT_ENTRY_POINT(vkCreateSwapchainKHR)
FORNAX_ABSENT_ENTRY_POINT(vkDestroySwapchainKHR)
FORNAX_ABSENT_ENTRY_POINT(vkGetSwapchainImagesKHR)
FORNAX_ABSENT_ENTRY_POINT(vkQueuePresentKHR)

// State of graphics that comes with VK_EXT_shader_object.
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetAlphaToCoverageEnableEXT)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetAlphaToOneEnableEXT)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetColorBlendAdvancedEXT)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetColorBlendEnableEXT)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetColorBlendEquationEXT)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetColorWriteMaskEXT)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetConservativeRasterizationModeEXT)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetCoverageModulationModeNV)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetCoverageModulationTableEnableNV)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetCoverageModulationTableNV)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetCoverageReductionModeNV)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetCoverageToColorEnableNV)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetCoverageToColorLocationNV)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetDepthClampEnableEXT)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetDepthClampRangeEXT)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetDepthClipEnableEXT)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetDepthClipNegativeOneToOneEXT)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetExtraPrimitiveOverestimationSizeEXT)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetLineRasterizationModeEXT)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetLineStippleEnableEXT)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetLogicOpEXT)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetLogicOpEnableEXT)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetPatchControlPointsEXT)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetPolygonModeEXT)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetProvokingVertexModeEXT)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetRasterizationSamplesEXT)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetRasterizationStreamEXT)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetRepresentativeFragmentTestEnableNV)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetSampleLocationsEnableEXT)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetSampleMaskEXT)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetShadingRateImageEnableNV)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetTessellationDomainOriginEXT)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetVertexInputEXT)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetViewportSwizzleNV)
FORNAX_ABSENT_ENTRY_POINT(vkCmdSetViewportWScalingEnableNV)
// clang-format on

// Makes several handles, all of which must be null when it fails.
FORNAX_ENTRY_POINT(VkResult)
vkCreateGraphicsPipelines(VkDevice device,
                          VkPipelineCache,
                          uint32_t count,
                          const VkGraphicsPipelineCreateInfo*,
                          const VkAllocationCallbacks*,
                          VkPipeline* pipelines) {
    std::fill_n(pipelines, count, VkPipeline(VK_NULL_HANDLE));
    return FailAbsent(device, "vkCreateGraphicsPipelines");
}

}  // namespace fornax::driver
