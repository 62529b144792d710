// Creating descriptor set layouts, and saying which can be.
#include "driver/descriptor_set_layout.h"

#include <algorithm>

#include "driver/device.h"
#include "driver/entry_point.h"
#include "driver/limits.h"

namespace fornax::driver {
namespace {

constexpr uint32_t kDescriptorBytes = sizeof(hal::BufferDescriptor);

// What keeps the layout from being created, or OK. Counts within the limits cannot overflow
// 32 bits of set memory.
Status CheckLayout(const VkDescriptorSetLayoutCreateInfo& info) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < info.bindingCount; ++i) {
        const VkDescriptorSetLayoutBinding& binding = info.pBindings[i];
        // The type of an empty binding is ignored.
        if (binding.descriptorCount > 0 && !IsSupportedDescriptor(binding.descriptorType)) {
            return Error{ErrorCode::kUnsupported,
                         fmt::format("Binding {} has descriptors of type {}; Fornax has storage "
                                     "buffers (7, 9) and uniform buffers (6, 8) only.",
                                     binding.binding, static_cast<int>(binding.descriptorType))};
        }
        total += binding.descriptorCount;
    }
    if (total > kMaxDescriptors) {
        return Error{ErrorCode::kOutOfDeviceMemory,
                     fmt::format("A descriptor set of {} descriptors was asked for; the limit is "
                                 "{} (maxPerSetDescriptors).",
                                 total, kMaxDescriptors)};
    }
    static_assert(uint64_t{kMaxDescriptors} * kDescriptorBytes <= UINT32_MAX);
    return OkStatus();
}

}  // namespace

bool IsSupportedDescriptor(VkDescriptorType type) {
    switch (type) {
        case VK_DESCRIPTOR_TYPE_STORAGE_BUFFER:
        case VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC:
        case VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER:
        case VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC:
            return true;
        default:
            return false;
    }
}

const DescriptorBinding& FindBinding(std::span<const DescriptorBinding> bindings,
                                     uint32_t binding) {
    // Most layouts number their bindings without gaps.
    if (binding < bindings.size() && bindings[binding].binding == binding)
        return bindings[binding];
    const auto found = std::ranges::lower_bound(bindings, binding, {}, &DescriptorBinding::binding);
    assert(found != bindings.end() && found->binding == binding && "The binding is in no layout.");
    return *found;
}

DescriptorSetLayout::DescriptorSetLayout(Device& device,
                                         const VkDescriptorSetLayoutCreateInfo& info)
    : DeviceObject(device, kObjectType),
      binding_count_(info.bindingCount),
      is_push_(info.flags & VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT) {
    const auto bindings = TrailingOf<DescriptorBinding>(this, binding_count_);
    std::transform(info.pBindings, info.pBindings + info.bindingCount, bindings.begin(),
                   [](const VkDescriptorSetLayoutBinding& from) {
                       return DescriptorBinding{.binding = from.binding,
                                                .type = from.descriptorType,
                                                .count = from.descriptorCount,
                                                .offset_bytes = 0,
                                                .first_dynamic_offset = 0};
                   });
    // "Dynamic offsets are taken in order of bindings", and so is memory.
    std::ranges::sort(bindings, {}, &DescriptorBinding::binding);
    for (DescriptorBinding& binding : bindings) {
        binding.offset_bytes = size_bytes_;
        binding.first_dynamic_offset = dynamic_offset_count_;
        size_bytes_ += binding.count * kDescriptorBytes;
        if (binding.dynamic())
            dynamic_offset_count_ += binding.count;
    }
}

FORNAX_ENTRY_POINT(VkResult)
vkCreateDescriptorSetLayout(VkDevice device_handle,
                            const VkDescriptorSetLayoutCreateInfo* info,
                            const VkAllocationCallbacks* callbacks,
                            VkDescriptorSetLayout* handle) {
    auto& device = *FromHandle<Device>(device_handle);
    if (const Status status = CheckLayout(*info); !status)
        return Fail(device, status.error());
    auto* layout = NewObject<DescriptorSetLayout>(
        device, callbacks, info->bindingCount * sizeof(DescriptorBinding), *info);
    if (!layout)
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    *handle = ToHandle(layout);
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(void)
vkDestroyDescriptorSetLayout(VkDevice device,
                             VkDescriptorSetLayout layout,
                             const VkAllocationCallbacks* callbacks) {
    DestroyObject<DescriptorSetLayout>(device, callbacks, layout);
}

FORNAX_ENTRY_POINT(void)
vkGetDescriptorSetLayoutSupport(VkDevice,
                                const VkDescriptorSetLayoutCreateInfo* info,
                                VkDescriptorSetLayoutSupport* support) {
    support->supported = CheckLayout(*info).ok();
}

}  // namespace fornax::driver
