// Reading mappings of descriptor heaps.
#include "driver/heap_layout.h"

#include "driver/chain.h"
#include "driver/device.h"
#include "driver/sampler.h"

namespace fornax::driver {
namespace {

using kernel::HeapMapping;

static_assert(VK_SPIRV_RESOURCE_TYPE_SAMPLER_BIT_EXT == HeapMapping::kSampler);
static_assert(VK_SPIRV_RESOURCE_TYPE_SAMPLED_IMAGE_BIT_EXT == HeapMapping::kSampledImage);
static_assert(VK_SPIRV_RESOURCE_TYPE_READ_ONLY_IMAGE_BIT_EXT == HeapMapping::kReadOnlyImage);
static_assert(VK_SPIRV_RESOURCE_TYPE_READ_WRITE_IMAGE_BIT_EXT == HeapMapping::kReadWriteImage);
static_assert(VK_SPIRV_RESOURCE_TYPE_COMBINED_SAMPLED_IMAGE_BIT_EXT == HeapMapping::kCombinedImage);
static_assert(VK_SPIRV_RESOURCE_TYPE_UNIFORM_BUFFER_BIT_EXT == HeapMapping::kUniformBuffer);
static_assert(VK_SPIRV_RESOURCE_TYPE_READ_ONLY_STORAGE_BUFFER_BIT_EXT ==
              HeapMapping::kReadOnlyBuffer);
static_assert(VK_SPIRV_RESOURCE_TYPE_READ_WRITE_STORAGE_BUFFER_BIT_EXT ==
              HeapMapping::kReadWriteBuffer);

// The source and its places; the sampler to embed, or null.
Result<const VkSamplerCreateInfo*> ReadSource(const VkDescriptorSetAndBindingMappingEXT& from,
                                              HeapMapping& to) {
    using Source = HeapMapping::Source;
    const VkDescriptorMappingSourceDataEXT& data = from.sourceData;
    switch (from.source) {
        case VK_DESCRIPTOR_MAPPING_SOURCE_HEAP_WITH_CONSTANT_OFFSET_EXT: {
            const auto& source = data.constantOffset;
            to.source = Source::kConstantOffset;
            to.place = {.heap_offset = source.heapOffset, .array_stride = source.heapArrayStride};
            to.sampler = {.heap_offset = source.samplerHeapOffset,
                          .array_stride = source.samplerHeapArrayStride};
            return source.pEmbeddedSampler;
        }
        case VK_DESCRIPTOR_MAPPING_SOURCE_HEAP_WITH_PUSH_INDEX_EXT: {
            const auto& source = data.pushIndex;
            to.source = Source::kPushIndex;
            to.place = {.heap_offset = source.heapOffset,
                        .push_offset = source.pushOffset,
                        .index_stride = source.heapIndexStride,
                        .array_stride = source.heapArrayStride};
            to.sampler = {.heap_offset = source.samplerHeapOffset,
                          .push_offset = source.samplerPushOffset,
                          .index_stride = source.samplerHeapIndexStride,
                          .array_stride = source.samplerHeapArrayStride};
            to.packed_index = source.useCombinedImageSamplerIndex ? 1 : 0;
            return source.pEmbeddedSampler;
        }
        case VK_DESCRIPTOR_MAPPING_SOURCE_HEAP_WITH_INDIRECT_INDEX_EXT: {
            const auto& source = data.indirectIndex;
            to.source = Source::kIndirectIndex;
            to.place = {.heap_offset = source.heapOffset,
                        .push_offset = source.pushOffset,
                        .address_offset = source.addressOffset,
                        .index_stride = source.heapIndexStride,
                        .array_stride = source.heapArrayStride};
            to.sampler = {.heap_offset = source.samplerHeapOffset,
                          .push_offset = source.samplerPushOffset,
                          .address_offset = source.samplerAddressOffset,
                          .index_stride = source.samplerHeapIndexStride,
                          .array_stride = source.samplerHeapArrayStride};
            to.packed_index = source.useCombinedImageSamplerIndex ? 1 : 0;
            return source.pEmbeddedSampler;
        }
        case VK_DESCRIPTOR_MAPPING_SOURCE_HEAP_WITH_INDIRECT_INDEX_ARRAY_EXT: {
            const auto& source = data.indirectIndexArray;
            to.source = Source::kIndirectIndexArray;
            to.place = {.heap_offset = source.heapOffset,
                        .push_offset = source.pushOffset,
                        .address_offset = source.addressOffset,
                        .index_stride = source.heapIndexStride};
            to.sampler = {.heap_offset = source.samplerHeapOffset,
                          .push_offset = source.samplerPushOffset,
                          .address_offset = source.samplerAddressOffset,
                          .index_stride = source.samplerHeapIndexStride};
            to.packed_index = source.useCombinedImageSamplerIndex ? 1 : 0;
            return source.pEmbeddedSampler;
        }
        case VK_DESCRIPTOR_MAPPING_SOURCE_RESOURCE_HEAP_DATA_EXT:
            to.source = Source::kHeapData;
            to.place = {.heap_offset = data.heapData.heapOffset,
                        .push_offset = data.heapData.pushOffset};
            return nullptr;
        case VK_DESCRIPTOR_MAPPING_SOURCE_PUSH_DATA_EXT:
            to.source = Source::kPushData;
            to.place = {.push_offset = data.pushDataOffset};
            return nullptr;
        case VK_DESCRIPTOR_MAPPING_SOURCE_PUSH_ADDRESS_EXT:
            to.source = Source::kPushAddress;
            to.place = {.push_offset = data.pushAddressOffset};
            return nullptr;
        case VK_DESCRIPTOR_MAPPING_SOURCE_INDIRECT_ADDRESS_EXT:
            to.source = Source::kIndirectAddress;
            to.place = {.push_offset = data.indirectAddress.pushOffset,
                        .address_offset = data.indirectAddress.addressOffset};
            return nullptr;
        default:
            return Error{
                ErrorCode::kUnsupported,
                fmt::format("Set {}, binding {} is mapped from the source {}; compute "
                            "shaders have no shader records.",
                            from.descriptorSet, from.firstBinding, static_cast<int>(from.source))};
    }
}

}  // namespace

kernel::ResourceLayout MakeHeapLayout() {
    kernel::ResourceLayout layout;
    layout.push_constant_bytes = hal::kPushConstantBytes;
    layout.heaps = true;
    return layout;
}

Status CheckHeapLayout(const kernel::ResourceLayout& layout) {
    using Source = HeapMapping::Source;
    for (const HeapMapping& mapping : layout.mappings) {
        // VUID-VkDescriptorMappingSourcePushIndexEXT-pushOffset-11259 and those like it. A
        // sampler's place may be anything where none is used, and reads are inside push data
        // always.
        const bool word = mapping.source == Source::kPushIndex ||
                          mapping.source == Source::kHeapData ||
                          mapping.source == Source::kPushData;
        const uint32_t last = hal::kPushConstantBytes - (word ? 4 : 8);
        const uint32_t offset = mapping.place.push_offset;
        if (mapping.source != Source::kConstantOffset && (offset > last || offset % 4 != 0)) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("Set {}, binding {} is mapped through push data at the offset "
                                     "{}, which must be a multiple of 4 and at most {}.",
                                     mapping.set, mapping.first_binding, offset, last)};
        }
        if (mapping.source > Source::kIndirectAddress ||
            (mapping.embedded_sampler != HeapMapping::kNoSampler &&
             mapping.embedded_sampler >= layout.embedded_samplers.size())) {
            return Error{ErrorCode::kInvalidArgument, "A mapping of descriptors is damaged."};
        }
    }
    return OkStatus();
}

VkResult ReadHeapLayout(Device& device, const void* stage_chain, kernel::ResourceLayout& layout) {
    layout = MakeHeapLayout();
    const auto* info = FindInChain<VkShaderDescriptorSetAndBindingMappingInfoEXT>(
        stage_chain, VK_STRUCTURE_TYPE_SHADER_DESCRIPTOR_SET_AND_BINDING_MAPPING_INFO_EXT);
    for (uint32_t i = 0; info && i < info->mappingCount; ++i) {
        const VkDescriptorSetAndBindingMappingEXT& from = info->pMappings[i];
        HeapMapping mapping{.set = from.descriptorSet,
                            .first_binding = from.firstBinding,
                            .binding_count = from.bindingCount,
                            .resources = from.resourceMask};
        const auto embedded = ReadSource(from, mapping);
        if (!embedded) {
            return Fail(device, embedded.error());
        }
        if (*embedded) {
            Sampler sampler(device);
            FORNAX_RETURN_IF_FAILED(sampler.Init(**embedded));
            mapping.embedded_sampler = static_cast<uint32_t>(layout.embedded_samplers.size());
            layout.embedded_samplers.push_back(sampler.descriptor());
        }
        layout.mappings.push_back(mapping);
    }
    const Status checked = CheckHeapLayout(layout);
    return checked.ok() ? VK_SUCCESS : Fail(device, checked.error());
}

}  // namespace fornax::driver
