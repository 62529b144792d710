// Which cooperative matrices there are: what the device's matrix unit multiplies, or that of the
// described machine if that is less.
#include "driver/entry_point.h"
#include "driver/npu_settings.h"
#include "driver/physical_device.h"
#include "hal/matrix_unit.h"

namespace fornax::driver {

namespace {

VkComponentTypeKHR TypeOf(hal::MatrixElement element) {
    switch (element) {
        case hal::MatrixElement::kF16:
            return VK_COMPONENT_TYPE_FLOAT16_KHR;
        case hal::MatrixElement::kBF16:
            return VK_COMPONENT_TYPE_BFLOAT16_KHR;
        case hal::MatrixElement::kF32:
            return VK_COMPONENT_TYPE_FLOAT32_KHR;
        case hal::MatrixElement::kS8:
            return VK_COMPONENT_TYPE_SINT8_KHR;
        case hal::MatrixElement::kU8:
            return VK_COMPONENT_TYPE_UINT8_KHR;
        case hal::MatrixElement::kS32:
            return VK_COMPONENT_TYPE_SINT32_KHR;
        case hal::MatrixElement::kU32:
            break;
    }
    return VK_COMPONENT_TYPE_UINT32_KHR;
}

VkCooperativeMatrixPropertiesKHR Properties(const hal::MmaTypes& types, void* next) {
    return {.sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR,
            .pNext = next,
            .MSize = hal::kMatrixUnitSize,
            .NSize = hal::kMatrixUnitSize,
            .KSize = hal::kMatrixUnitSize,
            .AType = TypeOf(types.a),
            .BType = TypeOf(types.b),
            .CType = TypeOf(types.accumulator),
            .ResultType = TypeOf(types.accumulator),
            .saturatingAccumulation = types.saturates,
            .scope = VK_SCOPE_SUBGROUP_KHR};
}

}  // namespace

FORNAX_ENTRY_POINT(VkResult)
vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(VkPhysicalDevice physical_device,
                                                  uint32_t* count,
                                                  VkCooperativeMatrixPropertiesKHR* properties) {
    const auto& machine = FromHandle<PhysicalDevice>(physical_device)->machine();
    uint32_t found = 0;
    bool all = true;
    for (const hal::MmaTypes& types : hal::kMmaTypes) {
        if (machine && !HasMma(*machine, types)) {
            continue;
        }
        if (properties && found == *count) {
            all = false;
            break;
        }
        if (properties) {
            properties[found] = Properties(types, properties[found].pNext);
        }
        ++found;
    }
    *count = found;
    return all ? VK_SUCCESS : VK_INCOMPLETE;
}

}  // namespace fornax::driver
