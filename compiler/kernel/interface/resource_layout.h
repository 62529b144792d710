// Everything that a kernel finds by its pipeline layout: descriptor sets or descriptor heaps, and
// push constants. The driver's objects become one of these, and a compilation takes it.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/kernel/interface/binding_layout.h"
#include "hal/image_abi.h"

namespace fornax::kernel {

// With descriptor heaps: where variables that are decorated with a set and bindings find their
// descriptors, or their data. Of several that fit a variable the first counts.
struct HeapMapping {
    enum class Source : uint32_t {
        kConstantOffset,
        kPushIndex,
        kIndirectIndex,
        kIndirectIndexArray,
        // Buffers alone, whose bytes lie there.
        kHeapData,
        kPushData,
        kPushAddress,
        kIndirectAddress,
    };
    // Kinds of variables: bits of `resources`.
    static constexpr uint32_t kSampler = 1;
    static constexpr uint32_t kSampledImage = 2;
    static constexpr uint32_t kReadOnlyImage = 4;
    static constexpr uint32_t kReadWriteImage = 8;
    static constexpr uint32_t kCombinedImage = 16;
    static constexpr uint32_t kUniformBuffer = 32;
    static constexpr uint32_t kReadOnlyBuffer = 64;
    static constexpr uint32_t kReadWriteBuffer = 128;

    // Bytes: of the heap, in push data, and behind an address that push data holds. What is not of
    // the source is 0.
    struct Place {
        uint32_t heap_offset = 0;
        uint32_t push_offset = 0;
        uint32_t address_offset = 0;
        uint32_t index_stride = 0;
        uint32_t array_stride = 0;
    };
    static constexpr uint32_t kNoSampler = UINT32_MAX;

    uint32_t set = 0;
    uint32_t first_binding = 0;
    uint32_t binding_count = 0;
    uint32_t resources = 0;
    Source source = Source::kConstantOffset;
    Place place;
    Place sampler;              // of a combined image's sampler
    uint32_t packed_index = 0;  // of a combined image, if 1: 20 bits for it, 12 for its sampler
    uint32_t embedded_sampler = kNoSampler;  // of ResourceLayout::embedded_samplers
};

// How large the bound heaps are: kernels cut what would read beyond them. Elements of heaps are
// kHeapGranularity apart.
struct HeapBounds {
    uint32_t last_buffer = 0;
    uint32_t last_image = 0;
    uint32_t last_sampler = 0;
    uint32_t resource_bytes = 0;
};

struct ResourceLayout {
    // Sets of kernels with heaps: what lies at these addresses are the heaps, a HeapBounds and the
    // embedded samplers.
    static constexpr uint32_t kResourceHeapSet = 0;
    static constexpr uint32_t kSamplerHeapSet = 1;
    static constexpr uint32_t kHeapBoundsSet = 2;
    static constexpr uint32_t kEmbeddedSamplerSet = 3;
    static constexpr uint32_t kHeapSets = 4;
    // Descriptors in heaps begin at multiples of it.
    static constexpr uint32_t kHeapGranularity = 16;

    std::vector<SetLayout> sets;       // by set number
    uint32_t push_constant_bytes = 0;  // highest byte of any range of the compute stage
    // In place of sets: heaps (SPV_EXT_descriptor_heap, VK_EXT_descriptor_heap).
    bool heaps = false;
    std::vector<HeapMapping> mappings;
    std::vector<hal::SamplerDescriptor> embedded_samplers;  // that mappings name
};

}  // namespace fornax::kernel
