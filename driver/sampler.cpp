// Samplers as kernels read them (hal/image_abi.h).
#include "driver/sampler.h"

#include <algorithm>
#include <bit>

#include "driver/chain.h"
#include "driver/device.h"
#include "driver/entry_point.h"
#include "driver/report.h"

namespace fornax::driver {
namespace {

static_assert(VK_SAMPLER_ADDRESS_MODE_REPEAT == static_cast<int>(hal::AddressMode::kRepeat));
static_assert(VK_SAMPLER_ADDRESS_MODE_MIRRORED_REPEAT ==
              static_cast<int>(hal::AddressMode::kMirroredRepeat));
static_assert(VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE ==
              static_cast<int>(hal::AddressMode::kClampToEdge));
static_assert(VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER ==
              static_cast<int>(hal::AddressMode::kClampToBorder));
static_assert(VK_SAMPLER_ADDRESS_MODE_MIRROR_CLAMP_TO_EDGE ==
              static_cast<int>(hal::AddressMode::kMirrorClampToEdge));
static_assert(VK_COMPARE_OP_NEVER == static_cast<int>(hal::Compare::kNever));
static_assert(VK_COMPARE_OP_LESS_OR_EQUAL == static_cast<int>(hal::Compare::kLessOrEqual));
static_assert(VK_COMPARE_OP_NOT_EQUAL == static_cast<int>(hal::Compare::kNotEqual));
static_assert(VK_COMPARE_OP_ALWAYS == static_cast<int>(hal::Compare::kAlways));

void SetBorder(VkBorderColor color, uint32_t (&border)[4]) {
    const auto fill = [&](uint32_t rgb, uint32_t alpha) {
        std::fill_n(border, 3, rgb);
        border[3] = alpha;
    };
    constexpr auto kOne = std::bit_cast<uint32_t>(1.0f);
    switch (color) {
        case VK_BORDER_COLOR_FLOAT_OPAQUE_BLACK:
            return fill(0, kOne);
        case VK_BORDER_COLOR_INT_OPAQUE_BLACK:
            return fill(0, 1);
        case VK_BORDER_COLOR_FLOAT_OPAQUE_WHITE:
            return fill(kOne, kOne);
        case VK_BORDER_COLOR_INT_OPAQUE_WHITE:
            return fill(1, 1);
        default:
            return fill(0, 0);
    }
}

}  // namespace

VkResult Sampler::Init(const VkSamplerCreateInfo& info) {
    if (info.anisotropyEnable) {
        return Fail(device(), VK_ERROR_FEATURE_NOT_PRESENT,
                    "A sampler with anisotropy was asked for, which Fornax does not have "
                    "(samplerAnisotropy).");
    }
    for (VkFilter filter : {info.magFilter, info.minFilter}) {
        if (filter != VK_FILTER_NEAREST && filter != VK_FILTER_LINEAR) {
            return Fail(device(), VK_ERROR_FEATURE_NOT_PRESENT,
                        "A sampler with the filter {} was asked for; Fornax has nearest (0) and "
                        "linear (1).",
                        static_cast<int>(filter));
        }
    }
    uint32_t& flags = descriptor_.flags;
    flags = (info.magFilter == VK_FILTER_LINEAR ? hal::kSamplerMagLinear : 0) |
            (info.minFilter == VK_FILTER_LINEAR ? hal::kSamplerMinLinear : 0) |
            (info.mipmapMode == VK_SAMPLER_MIPMAP_MODE_LINEAR ? hal::kSamplerMipLinear : 0) |
            (info.unnormalizedCoordinates ? hal::kSamplerUnnormalized : 0) |
            (info.flags & VK_SAMPLER_CREATE_NON_SEAMLESS_CUBE_MAP_BIT_EXT ? hal::kSamplerNonSeamless
                                                                          : 0);
    const VkSamplerAddressMode modes[] = {info.addressModeU, info.addressModeV, info.addressModeW};
    for (uint32_t i = 0; i < 3; ++i) {
        flags |= static_cast<uint32_t>(modes[i]) << (hal::kSamplerAddressShift + 4 * i);
    }
    if (info.compareEnable) {
        flags |= static_cast<uint32_t>(info.compareOp) << hal::kSamplerCompareShift;
    }
    const auto* reduction = FindInChain<VkSamplerReductionModeCreateInfo>(
        info.pNext, VK_STRUCTURE_TYPE_SAMPLER_REDUCTION_MODE_CREATE_INFO);
    if (reduction) {
        const hal::Reduction mode =
            reduction->reductionMode == VK_SAMPLER_REDUCTION_MODE_MIN   ? hal::Reduction::kMin
            : reduction->reductionMode == VK_SAMPLER_REDUCTION_MODE_MAX ? hal::Reduction::kMax
                                                                        : hal::Reduction::kAverage;
        flags |= static_cast<uint32_t>(mode) << hal::kSamplerReductionShift;
    }
    descriptor_.lod_bias = info.mipLodBias;
    descriptor_.min_lod = info.minLod;
    descriptor_.max_lod = info.maxLod;
    SetBorder(info.borderColor, descriptor_.border);
    // Kernels put a border's components where the view has them, so a format says nothing more
    // (customBorderColorWithoutFormat), nor does a mapping (VK_EXT_border_color_swizzle).
    const auto* custom = FindInChain<VkSamplerCustomBorderColorCreateInfoEXT>(
        info.pNext, VK_STRUCTURE_TYPE_SAMPLER_CUSTOM_BORDER_COLOR_CREATE_INFO_EXT);
    if (custom && (info.borderColor == VK_BORDER_COLOR_FLOAT_CUSTOM_EXT ||
                   info.borderColor == VK_BORDER_COLOR_INT_CUSTOM_EXT)) {
        std::ranges::copy(custom->customBorderColor.uint32, descriptor_.border);
    }
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(VkResult)
vkCreateSampler(VkDevice device,
                const VkSamplerCreateInfo* info,
                const VkAllocationCallbacks* callbacks,
                VkSampler* sampler) {
    return CreateObject<Sampler>(device, callbacks, sampler, *info);
}

FORNAX_ENTRY_POINT(void)
vkDestroySampler(VkDevice device, VkSampler sampler, const VkAllocationCallbacks* callbacks) {
    DestroyObject<Sampler>(device, callbacks, sampler);
}

}  // namespace fornax::driver
