// Pipeline binaries from captured pipelines, from the driver's own cache and from the application.
#include "driver/pipeline_binary.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "compiler/kernel/kernel_compiler.h"
#include "driver/chain.h"
#include "driver/compute_pipeline.h"
#include "driver/device.h"
#include "driver/entry_point.h"
#include "driver/kernel_binary.h"

namespace fornax::driver {
namespace {

// "pNext of VkPipelineCreateInfoKHR must be the creation structure of a pipeline"; those of
// graphics have no binaries here.
const VkComputePipelineCreateInfo* ComputeInfoOf(const VkPipelineCreateInfoKHR* info) {
    return FindInChain<VkComputePipelineCreateInfo>(info->pNext,
                                                    VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
}

// Makes one binary and its handle.
VkResult Make(Device& device,
              const VkAllocationCallbacks* callbacks,
              const VkPipelineBinaryKeyKHR& key,
              std::vector<std::byte> block,
              VkPipelineBinaryKHR* handle) {
    auto* binary = NewObject<PipelineBinary>(device, callbacks, 0, key, std::move(block));
    if (!binary) {
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    *handle = ToHandle(binary);
    return VK_SUCCESS;
}

VkResult MakeFromData(Device& device,
                      const VkAllocationCallbacks* callbacks,
                      const VkPipelineBinaryKeyKHR& key,
                      const VkPipelineBinaryDataKHR& data,
                      VkPipelineBinaryKHR* handle) {
    const auto* bytes = static_cast<const std::byte*>(data.pData);
    if (const auto binary = ReadKernelBinary({bytes, data.dataSize}); !binary) {
        return FailWith(device, VK_ERROR_INITIALIZATION_FAILED, binary.error().message);
    }
    return Make(device, callbacks, key, {bytes, bytes + data.dataSize}, handle);
}

// The pipeline's captured data, or what the driver's cache has for a pipeline yet to be made.
VkResult MakeFromPipeline(Device& device,
                          const VkAllocationCallbacks* callbacks,
                          const VkPipelineBinaryCreateInfoKHR& info,
                          VkPipelineBinaryKHR* handle) {
    CapturedKernel found;
    const CapturedKernel* captured = &found;
    if (info.pipeline) {
        captured = FromHandle<ComputePipeline>(info.pipeline)->captured();
        if (!captured) {
            // VUID-VkPipelineBinaryCreateInfoKHR-pipeline-09604 and -09605.
            return FailWith(device, VK_ERROR_VALIDATION_FAILED_EXT,
                            "Binaries were asked of a pipeline that was not created to capture its "
                            "data, or that released it.");
        }
    } else {
        const auto* compute = ComputeInfoOf(info.pPipelineCreateInfo);
        if (!compute) {
            return VK_PIPELINE_BINARY_MISSING_KHR;
        }
        FORNAX_RETURN_IF_FAILED(FindCachedKernel(device, *compute, found));
    }
    return Make(device, callbacks, MakeBinaryKey(captured->key),
                WriteKernelBinary(captured->source, captured->key, captured->kernel.get()), handle);
}

}  // namespace

VkPipelineBinaryKeyKHR MakeBinaryKey(std::string_view kernel_key) {
    const Hash128 hash = HashBytes(std::as_bytes(std::span(kernel_key)));
    VkPipelineBinaryKeyKHR key{.sType = VK_STRUCTURE_TYPE_PIPELINE_BINARY_KEY_KHR,
                               .keySize = sizeof(hash)};
    static_assert(sizeof(hash) <= VK_MAX_PIPELINE_BINARY_KEY_SIZE_KHR);
    std::memcpy(key.key, &hash, sizeof(hash));
    return key;
}

VkResult PipelineBinary::Get(VkPipelineBinaryKeyKHR& key, size_t* size_bytes, void* data) const {
    key.keySize = key_.keySize;
    std::ranges::copy(key_.key, key.key);
    const size_t room = *size_bytes;
    *size_bytes = block_.size();
    if (!data) {
        return VK_SUCCESS;
    }
    if (room < block_.size()) {
        return VK_ERROR_NOT_ENOUGH_SPACE_KHR;
    }
    std::ranges::copy(block_, static_cast<std::byte*>(data));
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(VkResult)
vkCreatePipelineBinariesKHR(VkDevice device_handle,
                            const VkPipelineBinaryCreateInfoKHR* info,
                            const VkAllocationCallbacks* callbacks,
                            VkPipelineBinaryHandlesInfoKHR* binaries) {
    auto& device = *FromHandle<Device>(device_handle);
    const VkPipelineBinaryKeysAndDataKHR* data = info->pKeysAndDataInfo;
    const uint32_t available = data ? data->binaryCount : 1;
    if (!binaries->pPipelineBinaries) {
        binaries->pipelineBinaryCount = available;
        return VK_SUCCESS;
    }
    const uint32_t count = std::min(available, binaries->pipelineBinaryCount);
    binaries->pipelineBinaryCount = count;
    // "attempt to create all ... the result is that of the first null entry".
    VkResult result = count < available ? VK_INCOMPLETE : VK_SUCCESS;
    bool failed = false;
    for (uint32_t i = 0; i < count; ++i) {
        VkPipelineBinaryKHR* handle = &binaries->pPipelineBinaries[i];
        *handle = VK_NULL_HANDLE;
        const VkResult one = data ? MakeFromData(device, callbacks, data->pPipelineBinaryKeys[i],
                                                 data->pPipelineBinaryData[i], handle)
                                  : MakeFromPipeline(device, callbacks, *info, handle);
        if (one != VK_SUCCESS && !failed) {
            failed = true;
            result = one;
        }
    }
    return result;
}

FORNAX_ENTRY_POINT(void)
vkDestroyPipelineBinaryKHR(VkDevice device,
                           VkPipelineBinaryKHR binary,
                           const VkAllocationCallbacks* callbacks) {
    DestroyObject<PipelineBinary>(device, callbacks, binary);
}

FORNAX_ENTRY_POINT(VkResult)
vkGetPipelineKeyKHR(VkDevice device_handle,
                    const VkPipelineCreateInfoKHR* info,
                    VkPipelineBinaryKeyKHR* key) {
    auto& device = *FromHandle<Device>(device_handle);
    std::string kernel_key;
    if (!info) {
        // "the global key": binaries of another one are of no use. That of no kernel holds the
        // driver's build and the processor.
        auto compiler = device.physical_device().compiler();
        if (!compiler) {
            return Fail(device, compiler.error());
        }
        kernel_key = (*compiler)->Key({}) + " global";
    } else if (const auto* compute = ComputeInfoOf(info)) {
        FORNAX_RETURN_IF_FAILED(GetKernelKey(device, *compute, kernel_key));
    } else {
        return FailWith(device, VK_ERROR_UNKNOWN,
                        "The key of a pipeline was asked that is no compute pipeline.");
    }
    const VkPipelineBinaryKeyKHR made = MakeBinaryKey(kernel_key);
    key->keySize = made.keySize;
    std::ranges::copy(made.key, key->key);
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(VkResult)
vkGetPipelineBinaryDataKHR(VkDevice,
                           const VkPipelineBinaryDataInfoKHR* info,
                           VkPipelineBinaryKeyKHR* key,
                           size_t* size_bytes,
                           void* data) {
    return FromHandle<PipelineBinary>(info->pipelineBinary)->Get(*key, size_bytes, data);
}

FORNAX_ENTRY_POINT(VkResult)
vkReleaseCapturedPipelineDataKHR(VkDevice,
                                 const VkReleaseCapturedPipelineDataInfoKHR* info,
                                 const VkAllocationCallbacks*) {
    FromHandle<ComputePipeline>(info->pipeline)->ReleaseCaptured();
    return VK_SUCCESS;
}

}  // namespace fornax::driver
