// Conversions between colour models. No format needs one and the feature samplerYcbcrConversion is
// off, so a conversion is only a handle that nothing may use; Khronos' tests of devices without
// queues make one without asking.
#include "driver/device.h"
#include "driver/entry_point.h"

namespace fornax::driver {
namespace {

class YcbcrConversion : public DeviceObject {
  public:
    using Handle = VkSamplerYcbcrConversion;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_SAMPLER_YCBCR_CONVERSION;

    explicit YcbcrConversion(Device& device) : DeviceObject(device, kObjectType) {}
    VkResult Init(const VkSamplerYcbcrConversionCreateInfo& info) {
        // VUID-VkSamplerYcbcrConversionCreateInfo-ycbcrModel-01655 and its neighbours: what only
        // hands components on is harmless, and nothing else is there.
        if (info.ycbcrModel == VK_SAMPLER_YCBCR_MODEL_CONVERSION_RGB_IDENTITY) {
            return VK_SUCCESS;
        }
        return Fail(device(), VK_ERROR_UNKNOWN,
                    "A conversion between colour models was asked for, which Fornax does not have "
                    "(samplerYcbcrConversion).");
    }
};

}  // namespace

FORNAX_ENTRY_POINT(VkResult)
vkCreateSamplerYcbcrConversion(VkDevice device,
                               const VkSamplerYcbcrConversionCreateInfo* info,
                               const VkAllocationCallbacks* callbacks,
                               VkSamplerYcbcrConversion* conversion) {
    *conversion = VK_NULL_HANDLE;
    return CreateObject<YcbcrConversion>(device, callbacks, conversion, *info);
}

FORNAX_ENTRY_POINT(void)
vkDestroySamplerYcbcrConversion(VkDevice device,
                                VkSamplerYcbcrConversion conversion,
                                const VkAllocationCallbacks* callbacks) {
    DestroyObject<YcbcrConversion>(device, callbacks, conversion);
}

}  // namespace fornax::driver
