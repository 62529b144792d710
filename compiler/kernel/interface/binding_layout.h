// How descriptor sets lie in memory: what the IR keeps of each binding, and what the driver lays
// out.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "hal/image_abi.h"
#include "hal/kernel_abi.h"

namespace fornax::kernel {

// How one binding of a descriptor set lies in the set's memory.
struct BindingLayout {
    enum class Kind : uint8_t {
        kStorageBuffer,
        kUniformBuffer,
        kStorageImage,
        kSampledImage,
        kSampler,
        kCombinedImageSampler,
        kStorageTexelBuffer,
        kUniformTexelBuffer,
        kMutable,  // of a layout: any of the others, which the shader's declaration decides
    };
    static constexpr uint32_t kNotDynamic = UINT32_MAX;

    uint32_t binding = 0;
    Kind kind = Kind::kStorageBuffer;
    uint32_t count = 1;         // array elements, Stride() apart
    uint32_t offset_bytes = 0;  // of element 0 in the set's memory
    // Index of element 0 in DispatchFrame::dynamic_offsets; elements follow one another.
    uint32_t first_dynamic_offset = kNotDynamic;
    // `count` is only the most that a set can have: the number of its last element is the u32 that
    // lies kVariableHeaderBytes before element 0.
    bool variable_count = false;
    static constexpr uint32_t kVariableHeaderBytes = 16;
    // The distance between elements, where it is larger than their kind needs; else 0.
    uint32_t stride_bytes = 0;
    // The set's memory has no descriptor but these many bytes of the uniform buffer itself; 0 for
    // all others.
    uint32_t inline_bytes = 0;

    constexpr uint32_t Stride() const;
};

// The size of one descriptor in a set's memory (hal/kernel_abi.h, hal/image_abi.h).
constexpr uint32_t DescriptorBytes(BindingLayout::Kind kind) {
    switch (kind) {
        case BindingLayout::Kind::kStorageBuffer:
        case BindingLayout::Kind::kUniformBuffer:
            return sizeof(hal::BufferDescriptor);
        case BindingLayout::Kind::kStorageImage:
        case BindingLayout::Kind::kStorageTexelBuffer:
        case BindingLayout::Kind::kUniformTexelBuffer:
            return sizeof(hal::ImageDescriptor);
        case BindingLayout::Kind::kSampledImage:
            return sizeof(hal::SampledImageDescriptor);
        case BindingLayout::Kind::kSampler:
            return sizeof(hal::SamplerDescriptor);
        case BindingLayout::Kind::kCombinedImageSampler:
            return sizeof(hal::CombinedImageSamplerDescriptor);
        case BindingLayout::Kind::kMutable:
            break;  // Stride() says it
    }
    return 0;
}
constexpr uint32_t BindingLayout::Stride() const {
    return stride_bytes != 0 ? stride_bytes : DescriptorBytes(kind);
}

// A word of a descriptor, in the memory of its set.
struct DescriptorPlace {
    uint32_t set = 0;
    uint32_t offset_bytes = 0;

    friend auto operator<=>(const DescriptorPlace&, const DescriptorPlace&) = default;
};
struct DescriptorWord {
    DescriptorPlace place;
    uint32_t value = 0;
};
// Kernels that depend on more words are not specialized.
inline constexpr uint32_t kMaxDecidingWords = 192;

struct SetLayout {
    std::vector<BindingLayout> bindings;  // sorted by binding
};

}  // namespace fornax::kernel
