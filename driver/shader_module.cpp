// Shader modules are not looked into before a pipeline names an entry point: only then are
// specialisation constants and the layout known.
#include "driver/shader_module.h"

#include <algorithm>
#include <cstring>

#include "compiler/kernel/interface/compile_request.h"
#include "driver/device.h"
#include "driver/entry_point.h"

namespace fornax::driver {

ShaderModule::ShaderModule(Device& device, const VkShaderModuleCreateInfo& info)
    : DeviceObject(device, kObjectType), word_count_(info.codeSize / sizeof(uint32_t)) {
    std::copy_n(info.pCode, word_count_, TrailingOf<uint32_t>(this, word_count_).begin());
}

namespace {

// "identifiers of equal code must be equal"; what pipelines are cached by.
void WriteIdentifier(std::span<const uint32_t> spirv, VkShaderModuleIdentifierEXT& identifier) {
    const Hash128 digest = kernel::SpirvDigest(spirv);
    static_assert(sizeof(digest) <= VK_MAX_SHADER_MODULE_IDENTIFIER_SIZE_EXT);
    identifier.identifierSize = sizeof(digest);
    std::memcpy(identifier.identifier, &digest, sizeof(digest));
}

}  // namespace

FORNAX_ENTRY_POINT(void)
vkGetShaderModuleIdentifierEXT(VkDevice,
                               VkShaderModule shader_module,
                               VkShaderModuleIdentifierEXT* identifier) {
    WriteIdentifier(FromHandle<ShaderModule>(shader_module)->spirv(), *identifier);
}

FORNAX_ENTRY_POINT(void)
vkGetShaderModuleCreateInfoIdentifierEXT(VkDevice,
                                         const VkShaderModuleCreateInfo* info,
                                         VkShaderModuleIdentifierEXT* identifier) {
    WriteIdentifier({info->pCode, info->codeSize / sizeof(uint32_t)}, *identifier);
}

FORNAX_ENTRY_POINT(VkResult)
vkCreateShaderModule(VkDevice device,
                     const VkShaderModuleCreateInfo* info,
                     const VkAllocationCallbacks* callbacks,
                     VkShaderModule* handle) {
    auto* shader_module =
        NewObject<ShaderModule>(*FromHandle<Device>(device), callbacks, info->codeSize, *info);
    if (!shader_module) {
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    *handle = ToHandle(shader_module);
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(void)
vkDestroyShaderModule(VkDevice device,
                      VkShaderModule shader_module,
                      const VkAllocationCallbacks* callbacks) {
    DestroyObject<ShaderModule>(device, callbacks, shader_module);
}

}  // namespace fornax::driver
