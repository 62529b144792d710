// Which cooperative matrices there are: what the kernel compiler's reader takes
// (compiler/kernel/spirv/cooperative_matrix.cpp).
#include <algorithm>
#include <iterator>

#include "driver/entry_point.h"

namespace fornax::driver {

namespace {

constexpr VkCooperativeMatrixPropertiesKHR Matrix(VkComponentTypeKHR a,
                                                  VkComponentTypeKHR b,
                                                  VkComponentTypeKHR sum,
                                                  bool saturating = false) {
    return {.sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR,
            .MSize = 16,
            .NSize = 16,
            .KSize = 16,
            .AType = a,
            .BType = b,
            .CType = sum,
            .ResultType = sum,
            .saturatingAccumulation = saturating,
            .scope = VK_SCOPE_SUBGROUP_KHR};
}

constexpr VkComponentTypeKHR kF16 = VK_COMPONENT_TYPE_FLOAT16_KHR;
constexpr VkComponentTypeKHR kBF16 = VK_COMPONENT_TYPE_BFLOAT16_KHR;
constexpr VkComponentTypeKHR kF32 = VK_COMPONENT_TYPE_FLOAT32_KHR;
constexpr VkComponentTypeKHR kS8 = VK_COMPONENT_TYPE_SINT8_KHR;
constexpr VkComponentTypeKHR kU8 = VK_COMPONENT_TYPE_UINT8_KHR;
constexpr VkComponentTypeKHR kS32 = VK_COMPONENT_TYPE_SINT32_KHR;
constexpr VkComponentTypeKHR kU32 = VK_COMPONENT_TYPE_UINT32_KHR;

// Some clients take the first of a type that they know.
constexpr VkCooperativeMatrixPropertiesKHR kMatrices[] = {
    Matrix(kF16, kF16, kF32),     Matrix(kBF16, kBF16, kF32),   Matrix(kS8, kS8, kS32),
    Matrix(kU8, kU8, kU32),       Matrix(kU8, kU8, kS32),       Matrix(kS8, kU8, kS32),
    Matrix(kU8, kS8, kS32),       Matrix(kS8, kS8, kS32, true), Matrix(kU8, kU8, kU32, true),
    Matrix(kU8, kU8, kS32, true), Matrix(kS8, kU8, kS32, true), Matrix(kU8, kS8, kS32, true),
};

}  // namespace

FORNAX_ENTRY_POINT(VkResult)
vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(VkPhysicalDevice,
                                                  uint32_t* count,
                                                  VkCooperativeMatrixPropertiesKHR* properties) {
    constexpr auto kCount = static_cast<uint32_t>(std::size(kMatrices));
    if (!properties) {
        *count = kCount;
        return VK_SUCCESS;
    }
    const bool all = *count >= kCount;
    *count = std::min(*count, kCount);
    for (uint32_t i = 0; i < *count; ++i) {
        void* const next = properties[i].pNext;
        properties[i] = kMatrices[i];
        properties[i].pNext = next;
    }
    return all ? VK_SUCCESS : VK_INCOMPLETE;
}

}  // namespace fornax::driver
