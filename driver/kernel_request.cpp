// Reading what pipelines and shader objects say about their stage.
#include "driver/kernel_request.h"

#include <algorithm>
#include <cstring>

#include "compiler/kernel/interface/debug_printf.h"
#include "driver/chain.h"
#include "driver/device.h"

namespace fornax::driver {

std::vector<kernel::SpecializationValue> ReadSpecialization(const VkSpecializationInfo* info) {
    std::vector<kernel::SpecializationValue> values;
    if (!info) {
        return values;
    }
    values.reserve(info->mapEntryCount);
    for (uint32_t i = 0; i < info->mapEntryCount; ++i) {
        const VkSpecializationMapEntry& entry = info->pMapEntries[i];
        kernel::SpecializationValue value{
            .constant_id = entry.constantID,
            .size_bytes = static_cast<uint32_t>(entry.size),
            .bits = 0,
        };
        // VUID-VkSpecializationMapEntry-constantID-00776: the constant's size, so at most 8 bytes.
        // An entry for a constant that does not exist may have any size and has no effect.
        std::memcpy(&value.bits, static_cast<const std::byte*>(info->pData) + entry.offset,
                    std::min(entry.size, sizeof(value.bits)));
        values.push_back(value);
    }
    return values;
}

uint32_t SubgroupSizeOf(const void* stage_chain) {
    const auto* required = FindInChain<VkPipelineShaderStageRequiredSubgroupSizeCreateInfo>(
        stage_chain, VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO);
    return required ? required->requiredSubgroupSize : kSubgroupSize;
}

bool DefaultBounds(const Device& device) {
    // What is caught is exact for robustBufferAccess2, so there is one way to do it; null
    // descriptors have a range of 0 bytes.
    return device.features().robustBufferAccess || device.features().nullDescriptor;
}

kernel::DiskUse DiskUseOf(const Device& device) {
    return device.internal_cache_disabled() ? kernel::DiskUse::kNone
                                            : kernel::DiskUse::kReadAndWrite;
}

void SetDeviceOptions(const Device& device, kernel::CompileRequest& request) {
    request.options.timed = device.timed();
    const DebugPrintf* printf = kernel::MayPrint(request.spirv) ? device.debug_printf() : nullptr;
    request.options.printf_address = printf ? printf->address() : 0;
    request.options.printf_words = printf ? printf->capacity_words() : 0;
}

}  // namespace fornax::driver
