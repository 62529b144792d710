// Sampling as the Vulkan specification describes it, in double precision and plainly: what tests of
// sampling compare with. Tried on other drivers, too (tests/loader/CMakeLists.txt).
#pragma once

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <vulkan/vulkan_core.h>

#include "tests/loader/texel_reference.h"

namespace fornax::test {

using Vec4 = std::array<double, 4>;

struct ReferenceImage {
    VkImageViewType type = VK_IMAGE_VIEW_TYPE_2D;
    const TexelReference* format = nullptr;
    VkExtent3D extent = {1, 1, 1};
    uint32_t layers = 1;
    std::vector<std::vector<uint8_t>> levels;  // without gaps
    VkComponentMapping components = {};

    int Axes() const;  // of positions; 3 for cubes
    bool IsCube() const;
    bool IsArray() const;
    VkExtent3D LevelExtent(uint32_t level) const;
    // A texel that exists.
    Vec4 Texel(uint32_t level, int x, int y, int z) const;
    Vec4 Swizzled(const Vec4& color) const;
};

struct ReferenceQuery {
    double position[4] = {};  // with the layer last
    double lod = 0;
    double bias = 0;   // of the instruction
    double least = 0;  // MinLod of the instruction
    double gradient_x[3] = {};
    double gradient_y[3] = {};
    bool has_gradients = false;
    int offset[3] = {};
    std::optional<double> reference;  // of a depth comparison
};

// None where rounding decides: a nearest texel or level that is all but a tie.
std::optional<Vec4> SampleReference(const ReferenceImage& image,
                                    const VkSamplerCreateInfo& sampler,
                                    const ReferenceQuery& query);
// The level that a sample takes, and the level of detail before it is clamped (OpImageQueryLod).
std::optional<std::pair<double, double>> LodReference(const ReferenceImage& image,
                                                      const VkSamplerCreateInfo& sampler,
                                                      const ReferenceQuery& query);
std::optional<Vec4> GatherReference(const ReferenceImage& image,
                                    const VkSamplerCreateInfo& sampler,
                                    const ReferenceQuery& query,
                                    uint32_t component);

}  // namespace fornax::test
