// All structures of features are a header and VkBool32s, so tables generated from vk.xml do for
// all.
#include "driver/features.h"

#include <algorithm>

#include "driver/chain.h"
#include "driver/report.h"
#include "driver/supported_api.h"

namespace fornax::driver {
namespace {

const FeatureStructInfo* FindStruct(VkStructureType s_type) {
    const auto all = AllFeatureStructs();
    const auto found = std::ranges::lower_bound(all, s_type, {}, &FeatureStructInfo::s_type);
    return found != all.end() && found->s_type == s_type ? &*found : nullptr;
}

// The truth values that follow sType and pNext.
template <typename Base>
auto* ValuesOf(Base& header) {
    return reinterpret_cast<std::conditional_t<std::is_const_v<Base>, const VkBool32, VkBool32>*>(
        &header + 1);
}
static_assert(offsetof(VkPhysicalDeviceTimelineSemaphoreFeatures, timelineSemaphore) ==
              sizeof(VkBaseOutStructure));

VkResult Enable(const Object& origin,
                std::span<const FeatureInfo> members,
                const VkBool32* values,
                const char* struct_name,
                bool provided,
                FeatureSet& enabled) {
    for (size_t i = 0; i < members.size(); ++i) {
        if (!values[i]) {
            continue;
        }
        if (!provided || !(SupportedFeatures().*members[i].member)) {
            return Fail(origin, VK_ERROR_FEATURE_NOT_PRESENT,
                        "The feature {} of {} was enabled, but the device does not have it.",
                        members[i].name, struct_name);
        }
        enabled.*members[i].member = true;
    }
    return VK_SUCCESS;
}

}  // namespace

void WriteFeatures(const FeatureSet& features, VkPhysicalDeviceFeatures& out) {
    auto* values = reinterpret_cast<VkBool32*>(&out);
    for (const FeatureInfo& feature : Vulkan10Features()) {
        *values++ = features.*feature.member;
    }
}

void WriteFeatureChain(const FeatureSet& features, void* chain) {
    ForEachInChain(chain, [&](VkBaseOutStructure& header) {
        const FeatureStructInfo* info = FindStruct(header.sType);
        if (!info) {
            return;
        }
        const bool provided = info->provided(SupportedApi());
        VkBool32* values = ValuesOf(header);
        for (const FeatureInfo& feature : info->members) {
            *values++ = provided && features.*feature.member;
        }
    });
}

VkResult ReadEnabledFeatures(const Object& origin,
                             const VkDeviceCreateInfo& info,
                             FeatureSet& enabled) {
    const VkPhysicalDeviceFeatures* features10 = info.pEnabledFeatures;
    for (auto* s = static_cast<const VkBaseInStructure*>(info.pNext); s; s = s->pNext) {
        if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2) {
            features10 = &reinterpret_cast<const VkPhysicalDeviceFeatures2*>(s)->features;
        } else if (const FeatureStructInfo* known = FindStruct(s->sType)) {
            FORNAX_RETURN_IF_FAILED(Enable(origin, known->members, ValuesOf(*s), known->name,
                                           known->provided(SupportedApi()), enabled));
        }
    }
    if (!features10) {
        return VK_SUCCESS;
    }
    return Enable(origin, Vulkan10Features(), reinterpret_cast<const VkBool32*>(features10),
                  "VkPhysicalDeviceFeatures", true, enabled);
}

}  // namespace fornax::driver
