// Creating and binding shader objects, and their binaries.
#include "driver/shader_object.h"

#include <algorithm>
#include <cstring>

#include "compiler/kernel/interface/heap_mappings.h"
#include "compiler/kernel/kernel_compiler.h"
#include "driver/command_buffer.h"
#include "driver/device.h"
#include "driver/entry_point.h"
#include "driver/heap_layout.h"
#include "driver/kernel_request.h"
#include "driver/pipeline_layout.h"

namespace fornax::driver {

// Fills source_, from SPIR-V or from a binary, which is then given too.
VkResult Shader::ReadCode(const VkShaderCreateInfoEXT& info, std::optional<KernelBinary>& binary) {
    const std::span code(static_cast<const std::byte*>(info.pCode), info.codeSize);
    if (info.codeType == VK_SHADER_CODE_TYPE_BINARY_EXT) {
        auto read = ReadKernelBinary(code);
        if (!read || read->source.stage != info.stage) {
            return VK_INCOMPATIBLE_SHADER_BINARY_EXT;
        }
        binary = std::move(*read);
        source_ = std::move(binary->source);
        return VK_SUCCESS;
    }
    source_.stage = info.stage;
    source_.spirv.resize(code.size() / sizeof(uint32_t));
    std::memcpy(source_.spirv.data(), code.data(), source_.spirv.size() * sizeof(uint32_t));
    source_.entry_point = info.pName;
    source_.specialization = ReadSpecialization(info.pSpecializationInfo);
    source_.subgroup_size = SubgroupSizeOf(info.pNext);
    source_.wide_indexing = info.flags & VK_SHADER_CREATE_64_BIT_INDEXING_BIT_EXT;
    if (info.flags & VK_SHADER_CREATE_DESCRIPTOR_HEAP_BIT_EXT) {
        auto heap = std::make_shared<kernel::ResourceLayout>();
        FORNAX_RETURN_IF_FAILED(ReadHeapLayout(device(), info.pNext, *heap));
        kernel::KeepUsedMappings(source_.spirv, *heap);
        source_.heap = std::move(heap);
    }
    return VK_SUCCESS;
}

VkResult Shader::Compile(const VkShaderCreateInfoEXT& info,
                         const std::optional<KernelBinary>& binary,
                         const Allocator& allocator) {
    auto compiler = device().physical_device().compiler();
    if (!compiler) {
        return Fail(device(), compiler.error());
    }
    const VkPipelineLayoutCreateInfo layout_info{
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = info.setLayoutCount,
        .pSetLayouts = info.pSetLayouts,
        .pushConstantRangeCount = info.pushConstantRangeCount,
        .pPushConstantRanges = info.pPushConstantRanges,
    };
    PipelineLayout* made =
        source_.heap ? allocator.New<PipelineLayout>(VK_SYSTEM_ALLOCATION_SCOPE_COMMAND, 0,
                                                     device(), source_.heap)
                     : allocator.New<PipelineLayout>(VK_SYSTEM_ALLOCATION_SCOPE_COMMAND,
                                                     PipelineLayout::TrailingBytes(layout_info),
                                                     device(), layout_info);
    const Owned layout(allocator, made);
    if (!layout) {
        return FailOutOfHostMemory(device());
    }
    const auto request = source_.MakeRequest(device(), *layout, DefaultBounds(device()));
    key_ = (*compiler)->Key(request);
    if (binary) {
        compiled_ = binary->Load(**compiler, request);
    }
    if (!compiled_) {
        auto compiled = (*compiler)->Compile(request);
        if (!compiled) {
            return Fail(device(), compiled.error());
        }
        compiled_ = std::move(*compiled);
    }
    return kernel_.Init(device(), compiled_, *layout);
}

VkResult Shader::Init(const VkShaderCreateInfoEXT& info, const Allocator& allocator) {
    std::optional<KernelBinary> binary;
    FORNAX_RETURN_IF_FAILED(ReadCode(info, binary));
    return info.stage == VK_SHADER_STAGE_COMPUTE_BIT ? Compile(info, binary, allocator)
                                                     : VK_SUCCESS;
}

VkResult Shader::GetBinary(size_t* size_bytes, void* data) const {
    const auto binary = WriteKernelBinary(source_, key_, compiled_.get());
    if (!data) {
        *size_bytes = binary.size();
        return VK_SUCCESS;
    }
    // "nothing is written unless pDataSize is large enough to fit the data in its entirety".
    const bool fits = *size_bytes >= binary.size();
    *size_bytes = fits ? binary.size() : 0;
    std::memcpy(data, binary.data(), *size_bytes);
    return fits ? VK_SUCCESS : VK_INCOMPLETE;
}

FORNAX_ENTRY_POINT(VkResult)
vkCreateShadersEXT(VkDevice device,
                   uint32_t count,
                   const VkShaderCreateInfoEXT* infos,
                   const VkAllocationCallbacks* callbacks,
                   VkShaderEXT* shaders) {
    // "the application can determine which shader the returned error pertains to by locating the
    // first VK_NULL_HANDLE".
    std::fill_n(shaders, count, VkShaderEXT(VK_NULL_HANDLE));
    const Allocator allocator(callbacks, FromHandle<Device>(device)->allocator());
    for (uint32_t i = 0; i < count; ++i) {
        FORNAX_RETURN_IF_FAILED(
            CreateObject<Shader>(device, callbacks, &shaders[i], infos[i], allocator));
    }
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(void)
vkDestroyShaderEXT(VkDevice device, VkShaderEXT shader, const VkAllocationCallbacks* callbacks) {
    DestroyObject<Shader>(device, callbacks, shader);
}

FORNAX_ENTRY_POINT(VkResult)
vkGetShaderBinaryDataEXT(VkDevice, VkShaderEXT shader, size_t* size_bytes, void* data) {
    return FromHandle<Shader>(shader)->GetBinary(size_bytes, data);
}

FORNAX_ENTRY_POINT(void)
vkCmdBindShadersEXT(VkCommandBuffer command_buffer,
                    uint32_t count,
                    const VkShaderStageFlagBits* stages,
                    const VkShaderEXT* shaders) {
    for (uint32_t i = 0; i < count; ++i) {
        if (stages[i] != VK_SHADER_STAGE_COMPUTE_BIT) {
            continue;
        }
        // "If pShaders is NULL, the command behaves as if it were an array of VK_NULL_HANDLE."
        const auto* shader = shaders ? FromHandle<Shader>(shaders[i]) : nullptr;
        FromHandle<CommandBuffer>(command_buffer)->BindKernel(shader ? shader->kernel() : nullptr);
    }
}

}  // namespace fornax::driver
