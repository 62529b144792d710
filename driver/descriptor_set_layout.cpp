// Creating descriptor set layouts, and saying which can be.
#include "driver/descriptor_set_layout.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "compiler/kernel/interface/binding_layout.h"
#include "driver/chain.h"
#include "driver/descriptor_pool.h"
#include "driver/device.h"
#include "driver/entry_point.h"
#include "driver/limits.h"
#include "driver/sampler.h"

namespace fornax::driver {
namespace {

constexpr uint32_t kHeaderBytes = kernel::BindingLayout::kVariableHeaderBytes;

VkDescriptorBindingFlags FlagsOf(const VkDescriptorSetLayoutCreateInfo& info, uint32_t index) {
    const auto* flags = FindInChain<VkDescriptorSetLayoutBindingFlagsCreateInfo>(
        info.pNext, VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_BINDING_FLAGS_CREATE_INFO);
    return flags && index < flags->bindingCount ? flags->pBindingFlags[index] : 0;
}

// The binding's immutable samplers, or null. "pImmutableSamplers is ignored for other types."
const VkSampler* ImmutableSamplersOf(const VkDescriptorSetLayoutBinding& binding) {
    const bool holds_samplers = binding.descriptorType == VK_DESCRIPTOR_TYPE_SAMPLER ||
                                binding.descriptorType == VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER;
    return holds_samplers ? binding.pImmutableSamplers : nullptr;
}

// The types that a mutable descriptor may be of; null without a list.
const VkMutableDescriptorTypeListEXT* MutableTypes(const void* chain, uint32_t index) {
    const auto* lists = FindInChain<VkMutableDescriptorTypeCreateInfoEXT>(
        chain, VK_STRUCTURE_TYPE_MUTABLE_DESCRIPTOR_TYPE_CREATE_INFO_EXT);
    return lists && index < lists->mutableDescriptorTypeListCount
               ? &lists->pMutableDescriptorTypeLists[index]
               : nullptr;
}

// Descriptors that lie in a set by themselves, with nothing beside them.
bool MayBeMutable(VkDescriptorType type) {
    return DescriptorKind(type) && type != VK_DESCRIPTOR_TYPE_MUTABLE_EXT &&
           type != VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC &&
           type != VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC &&
           type != VK_DESCRIPTOR_TYPE_INLINE_UNIFORM_BLOCK;
}

// What keeps the layout from being created, or OK. Counts within the limits cannot overflow
// 32 bits of set memory.
Status CheckLayout(const VkDescriptorSetLayoutCreateInfo& info) {
    uint64_t total = 0;
    uint64_t inline_bytes = 0;
    for (uint32_t i = 0; i < info.bindingCount; ++i) {
        const VkDescriptorSetLayoutBinding& binding = info.pBindings[i];
        // The type of an empty binding is ignored.
        if (binding.descriptorCount > 0 && !DescriptorKind(binding.descriptorType)) {
            return Error{ErrorCode::kUnsupported,
                         fmt::format("Binding {} has descriptors of type {}, which Fornax does not "
                                     "have.",
                                     binding.binding, static_cast<int>(binding.descriptorType))};
        }
        if (binding.descriptorCount > 0 &&
            binding.descriptorType == VK_DESCRIPTOR_TYPE_MUTABLE_EXT) {
            // VUID-VkDescriptorSetLayoutCreateInfo-pBindings-07303.
            const auto* types = MutableTypes(info.pNext, i);
            const uint32_t type_count = types ? types->descriptorTypeCount : 0;
            if (type_count == 0 ||
                !std::all_of(types->pDescriptorTypes, types->pDescriptorTypes + type_count,
                             MayBeMutable)) {
                return Error{ErrorCode::kUnsupported,
                             fmt::format("Binding {} is mutable and has no list of types that "
                                         "Fornax can have there.",
                                         binding.binding)};
            }
        }
        if (binding.descriptorType == VK_DESCRIPTOR_TYPE_INLINE_UNIFORM_BLOCK) {
            if (binding.descriptorCount > kMaxInlineUniformBlockBytes) {
                return Error{ErrorCode::kOutOfDeviceMemory,
                             fmt::format("An inline uniform block of {} bytes was asked for; the "
                                         "limit is {} (maxInlineUniformBlockSize).",
                                         binding.descriptorCount, kMaxInlineUniformBlockBytes)};
            }
            // "A descriptor" each; what their bytes take is limited by itself.
            ++total;
            inline_bytes += (binding.descriptorCount + 15) / 16 * 16;
            continue;
        }
        total += binding.descriptorCount;
    }
    if (total > kMaxDescriptors) {
        return Error{ErrorCode::kOutOfDeviceMemory,
                     fmt::format("A descriptor set of {} descriptors was asked for; the limit is "
                                 "{} (maxPerSetDescriptors).",
                                 total, kMaxDescriptors)};
    }
    if (inline_bytes > kMaxInlineUniformBytes) {
        return Error{
            ErrorCode::kOutOfDeviceMemory,
            fmt::format("A descriptor set with {} bytes of inline uniform blocks was asked "
                        "for; the limit is {} (maxInlineUniformTotalSize).",
                        inline_bytes, kMaxInlineUniformBytes)};
    }
    static_assert(uint64_t{kMaxDescriptors} * sizeof(hal::CombinedImageSamplerDescriptor) +
                      kMaxInlineUniformBytes <=
                  UINT32_MAX);
    return OkStatus();
}

}  // namespace

std::optional<kernel::BindingLayout::Kind> DescriptorKind(VkDescriptorType type) {
    using Kind = kernel::BindingLayout::Kind;
    switch (type) {
        case VK_DESCRIPTOR_TYPE_STORAGE_BUFFER:
        case VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC:
            return Kind::kStorageBuffer;
        case VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER:
        case VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC:
        case VK_DESCRIPTOR_TYPE_INLINE_UNIFORM_BLOCK:
            return Kind::kUniformBuffer;
        case VK_DESCRIPTOR_TYPE_STORAGE_IMAGE:
            return Kind::kStorageImage;
        case VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE:
        // Compute shaders cannot use these, but sets and pools that others share may hold them.
        case VK_DESCRIPTOR_TYPE_INPUT_ATTACHMENT:
            return Kind::kSampledImage;
        case VK_DESCRIPTOR_TYPE_SAMPLER:
            return Kind::kSampler;
        case VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER:
            return Kind::kCombinedImageSampler;
        case VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER:
            return Kind::kStorageTexelBuffer;
        case VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER:
            return Kind::kUniformTexelBuffer;
        case VK_DESCRIPTOR_TYPE_MUTABLE_EXT:
            return Kind::kMutable;
        default:
            return std::nullopt;
    }
}

uint32_t DescriptorBytes(VkDescriptorType type, const void* chain, uint32_t index) {
    if (type != VK_DESCRIPTOR_TYPE_MUTABLE_EXT) {
        const auto kind = DescriptorKind(type);
        return kind ? kernel::DescriptorBytes(*kind) : 0;
    }
    const auto* types = MutableTypes(chain, index);
    if (!types || types->descriptorTypeCount == 0) {
        return kernel::DescriptorBytes(kernel::BindingLayout::Kind::kCombinedImageSampler);
    }
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < types->descriptorTypeCount; ++i) {
        bytes = std::max(bytes, DescriptorBytes(types->pDescriptorTypes[i], nullptr, 0));
    }
    return bytes;
}

void WriteImmutableSamplers(std::span<const DescriptorBinding> bindings,
                            std::span<const hal::SamplerDescriptor> samplers,
                            std::byte* set_memory,
                            uint32_t variable_count) {
    for (const DescriptorBinding& binding : bindings) {
        if (!binding.has_immutable_samplers()) {
            continue;
        }
        const uint32_t count =
            binding.variable_count ? std::min(binding.count, variable_count) : binding.count;
        std::byte* at = set_memory + binding.offset_bytes;
        if (binding.type == VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER) {
            at += offsetof(hal::CombinedImageSamplerDescriptor, sampler);
        }
        for (uint32_t i = 0; i < count; ++i, at += binding.descriptor_bytes()) {
            std::memcpy(at, &samplers[binding.first_immutable_sampler + i],
                        sizeof(hal::SamplerDescriptor));
        }
    }
}

const DescriptorBinding* BindingOrNull(std::span<const DescriptorBinding> bindings,
                                       uint32_t binding) {
    const auto found = std::ranges::lower_bound(bindings, binding, {}, &DescriptorBinding::binding);
    return found != bindings.end() && found->binding == binding ? &*found : nullptr;
}

const DescriptorBinding& SearchBinding(std::span<const DescriptorBinding> bindings,
                                       uint32_t binding) {
    const DescriptorBinding* found = BindingOrNull(bindings, binding);
    assert(found && "The binding is in no layout.");
    return *found;
}

std::optional<uint64_t> EndOfWrite(std::span<const DescriptorBinding> bindings,
                                   uint32_t binding,
                                   VkDescriptorType type,
                                   uint32_t array_element,
                                   uint32_t count) {
    const DescriptorBinding* found = BindingOrNull(bindings, binding);
    if (!found) {
        return std::nullopt;
    }
    const bool holds = found->is_mutable()
                           ? DescriptorBytes(type, nullptr, 0) <= found->descriptor_bytes()
                           : found->type == type;
    if (!holds) {
        return std::nullopt;
    }
    return found->offset_bytes + found->SizeOf(uint64_t{array_element} + count);
}

size_t DescriptorSetLayout::TrailingBytes(const VkDescriptorSetLayoutCreateInfo& info) {
    size_t bytes = info.bindingCount * sizeof(DescriptorBinding);
    for (uint32_t i = 0; i < info.bindingCount; ++i) {
        if (ImmutableSamplersOf(info.pBindings[i])) {
            bytes += info.pBindings[i].descriptorCount * sizeof(hal::SamplerDescriptor);
        }
    }
    return bytes;
}

DescriptorSetLayout::DescriptorSetLayout(Device& device,
                                         const VkDescriptorSetLayoutCreateInfo& info)
    : DeviceObject(device, kObjectType),
      binding_count_(info.bindingCount),
      is_push_(info.flags & VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT),
      in_buffer_(info.flags & VK_DESCRIPTOR_SET_LAYOUT_CREATE_DESCRIPTOR_BUFFER_BIT_EXT) {
    const auto bindings = TrailingOf<DescriptorBinding>(this, binding_count_);
    for (uint32_t i = 0; i < binding_count_; ++i) {
        const VkDescriptorSetLayoutBinding& from = info.pBindings[i];
        const bool variable =
            !in_buffer_ && (FlagsOf(info, i) & VK_DESCRIPTOR_BINDING_VARIABLE_DESCRIPTOR_COUNT_BIT);
        bindings[i] = {.binding = from.binding,
                       .type = from.descriptorType,
                       .count = from.descriptorCount,
                       .offset_bytes = 0,
                       .first_dynamic_offset = 0,
                       .first_immutable_sampler = DescriptorBinding::kNone,
                       .variable_count = variable,
                       .in_buffer = in_buffer_,
                       .element_bytes = DescriptorBytes(from.descriptorType, info.pNext, i)};
        if (const VkSampler* samplers = ImmutableSamplersOf(from)) {
            bindings[i].first_immutable_sampler = immutable_sampler_count_;
            // The samplers themselves may be destroyed before the layout is used.
            immutable_sampler_count_ += from.descriptorCount;
            const auto copies = TrailingOf<hal::SamplerDescriptor>(this, immutable_sampler_count_,
                                                                   bindings.size_bytes());
            for (uint32_t k = 0; k < from.descriptorCount; ++k) {
                copies[bindings[i].first_immutable_sampler + k] =
                    FromHandle<Sampler>(samplers[k])->descriptor();
            }
        }
    }
    // "Dynamic offsets are taken in order of bindings", and so is memory.
    std::ranges::sort(bindings, {}, &DescriptorBinding::binding);
    for (DescriptorBinding& binding : bindings) {
        // VUID-VkDescriptorSetLayoutBindingFlagsCreateInfo-pBindingFlags-03004: it is the last.
        binding.variable_count &= &binding == &bindings.back();
        if (binding.variable_count && !binding.inline_block()) {
            size_bytes_ += kHeaderBytes;
        }
        binding.offset_bytes = size_bytes_;
        binding.first_dynamic_offset = dynamic_offset_count_;
        size_bytes_ += static_cast<uint32_t>(binding.SizeOf(binding.count));
        if (binding.dynamic()) {
            dynamic_offset_count_ += binding.count;
        }
    }
}

FORNAX_ENTRY_POINT(VkResult)
vkCreateDescriptorSetLayout(VkDevice device_handle,
                            const VkDescriptorSetLayoutCreateInfo* info,
                            const VkAllocationCallbacks* callbacks,
                            VkDescriptorSetLayout* handle) {
    auto& device = *FromHandle<Device>(device_handle);
    if (const Status status = CheckLayout(*info); !status) {
        return Fail(device, status.error());
    }
    auto* layout = NewObject<DescriptorSetLayout>(device, callbacks,
                                                  DescriptorSetLayout::TrailingBytes(*info), *info);
    if (!layout) {
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
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
    auto* variable = FindInChain<VkDescriptorSetVariableDescriptorCountLayoutSupport>(
        support->pNext, VK_STRUCTURE_TYPE_DESCRIPTOR_SET_VARIABLE_DESCRIPTOR_COUNT_LAYOUT_SUPPORT);
    if (!variable) {
        return;
    }
    // As if the binding of variable count were not there: the rest is for it. 0 without one.
    variable->maxVariableDescriptorCount = 0;
    uint64_t others = 0;
    const VkDescriptorSetLayoutBinding* last = nullptr;
    for (uint32_t i = 0; i < info->bindingCount; ++i) {
        if (FlagsOf(*info, i) & VK_DESCRIPTOR_BINDING_VARIABLE_DESCRIPTOR_COUNT_BIT) {
            last = &info->pBindings[i];
        } else {
            others += info->pBindings[i].descriptorCount;
        }
    }
    if (!last || !DescriptorKind(last->descriptorType) || others >= kMaxDescriptors) {
        return;
    }
    const auto rest = static_cast<uint32_t>(kMaxDescriptors - others);
    variable->maxVariableDescriptorCount =
        last->descriptorType == VK_DESCRIPTOR_TYPE_INLINE_UNIFORM_BLOCK
            ? std::min(rest, kMaxInlineUniformBlockBytes)
            : rest;
}

}  // namespace fornax::driver
