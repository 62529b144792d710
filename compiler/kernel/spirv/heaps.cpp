// Descriptor heaps: SPV_EXT_descriptor_heap, and the variables of other modules that the API maps
// to heaps (HeapMapping). A heap is to the rest of the compiler a set with one array of descriptors
// of each kind, kHeapGranularity apart, of which it is an element that a descriptor begins at.
#include "compiler/kernel/spirv/heaps.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <optional>

namespace fornax::kernel::spirv {

using ir::Op;
using ir::ValueId;
using Kind = BindingLayout::Kind;
using Source = HeapMapping::Source;

namespace {

constexpr uint32_t kGranularity = ResourceLayout::kHeapGranularity;
// The most that a heap has, 2 GiB.
constexpr uint32_t kMaxElements = (uint32_t{1} << 31) / kGranularity;

// Whether what is mapped is the bytes of a buffer, not its descriptor.
bool IsData(Source source) {
    return source == Source::kHeapData || source == Source::kPushAddress ||
           source == Source::kIndirectAddress;
}

}  // namespace

Kind DescriptorKindOf(const Inst& image) {
    // Operands of OpTypeImage.
    constexpr size_t kDim = 1;
    constexpr size_t kSampled = 5;
    const bool storage = image[kSampled] == 2;
    if (static_cast<spv::Dim>(image[kDim]) == spv::Dim::Buffer) {
        return storage ? Kind::kStorageTexelBuffer : Kind::kUniformTexelBuffer;
    }
    return storage ? Kind::kStorageImage : Kind::kSampledImage;
}

std::optional<uint32_t> HeapDescriptorBytes(const Inst* type) {
    if (!type) {
        return std::nullopt;
    }
    switch (type->op) {
        case spv::Op::OpTypeBufferEXT:
            return sizeof(hal::BufferDescriptor);
        case spv::Op::OpTypeSampler:
            return sizeof(hal::SamplerDescriptor);
        case spv::Op::OpTypeImage:
            return sizeof(hal::ImageDescriptor);
        default:
            return std::nullopt;
    }
}

Result<const HeapMapping*> Heaps::FindMapping(const Inst& inst,
                                              uint32_t resource,
                                              uint32_t* binding) {
    const Decoration* set = module_.FindDecoration(inst.result, spv::Decoration::DescriptorSet);
    const Decoration* number = module_.FindDecoration(inst.result, spv::Decoration::Binding);
    if (!set || !number) {
        return Invalid(inst, "has no DescriptorSet and Binding decorations");
    }
    for (const HeapMapping& mapping : request_.layout.mappings) {
        if (mapping.set != set->params[0] || !(mapping.resources & resource) ||
            number->params[0] < mapping.first_binding ||
            number->params[0] - mapping.first_binding >= mapping.binding_count) {
            continue;
        }
        *binding = number->params[0] - mapping.first_binding;
        return &mapping;
    }
    return Invalid(inst, "is used at set " + std::to_string(set->params[0]) + ", binding " +
                             std::to_string(number->params[0]) +
                             ", which nothing maps to a descriptor heap");
}

uint32_t Heaps::AddHeapBinding(Kind kind, bool writable) {
    ir::Binding entry;
    entry.set =
        kind == Kind::kSampler ? ResourceLayout::kSamplerHeapSet : ResourceLayout::kResourceHeapSet;
    entry.layout = {.kind = kind, .count = kMaxElements, .stride_bytes = kGranularity};
    entry.writable = writable;
    for (uint32_t i = 0; i < kernel_.bindings.size(); ++i) {
        const ir::Binding& other = kernel_.bindings[i];
        if (other.set == entry.set && other.layout.kind == kind && other.writable == writable &&
            other.layout.inline_bytes == 0) {
            return i;
        }
    }
    kernel_.bindings.push_back(entry);
    return static_cast<uint32_t>(kernel_.bindings.size() - 1);
}

Status Heaps::MapBuffer(const Inst& inst, Pointer& pointer, Kind kind, bool writable) {
    // Where only a block's members are NonWritable, either bit says something.
    const bool read_only =
        module_.FindDecoration(inst.result, spv::Decoration::NonWritable) != nullptr;
    const uint32_t resource = kind == Kind::kUniformBuffer ? HeapMapping::kUniformBuffer
                              : read_only                  ? HeapMapping::kReadOnlyBuffer
                              : writable
                                  ? HeapMapping::kReadWriteBuffer
                                  : HeapMapping::kReadOnlyBuffer | HeapMapping::kReadWriteBuffer;
    FORNAX_ASSIGN_OR_RETURN(pointer.mapping, FindMapping(inst, resource, &pointer.mapped_binding));
    const HeapMapping& mapping = *pointer.mapping;
    if (mapping.source == Source::kPushData) {
        if (pointer.needs_element) {
            return Unsupported(inst, "is an array, and is mapped to push data");
        }
        pointer.space = Pointer::Space::kPush;
        pointer.const_offset += mapping.place.push_offset;
        pointer.mapping = nullptr;
        return OkStatus();
    }
    if (IsData(mapping.source) && pointer.needs_element) {
        return Unsupported(inst, "is an array, and is mapped to the data of a buffer");
    }
    if (mapping.source == Source::kHeapData) {
        // The bytes of the heap itself, of which the address is taken.
        ir::Binding entry;
        entry.set = ResourceLayout::kResourceHeapSet;
        entry.layout = {.kind = Kind::kUniformBuffer, .inline_bytes = UINT32_MAX};
        entry.writable = false;
        pointer.binding = static_cast<uint32_t>(kernel_.bindings.size());
        kernel_.bindings.push_back(entry);
        return OkStatus();
    }
    if (IsData(mapping.source)) {
        // The binding of data at an address only says what the buffer is.
        ir::Binding entry;
        entry.set = ResourceLayout::kHeapBoundsSet;
        entry.layout = {.kind = kind};
        entry.writable = writable;
        pointer.binding = static_cast<uint32_t>(kernel_.bindings.size());
        kernel_.bindings.push_back(entry);
        return OkStatus();
    }
    pointer.binding = AddHeapBinding(kind, writable);
    return OkStatus();
}

// What keeps an element inside its heap.
ValueId Heaps::HeapElement(ValueId offset, Kind kind) {
    const bool buffer = kind == Kind::kStorageBuffer || kind == Kind::kUniformBuffer;
    const size_t at = buffer                   ? offsetof(HeapBounds, last_buffer)
                      : kind == Kind::kSampler ? offsetof(HeapBounds, last_sampler)
                                               : offsetof(HeapBounds, last_image);
    const ValueId element =
        Emit(Op::kLShr, ir::Type::kI32, {offset, Int(std::countr_zero(kGranularity))});
    return Emit(Op::kUMin, ir::Type::kI32, {element, HeapBound(at)});
}

ValueId Heaps::HeapBound(size_t at) {
    if (!heap_bounds_) {
        ir::Binding entry;
        entry.set = ResourceLayout::kHeapBoundsSet;
        entry.layout = {.kind = Kind::kUniformBuffer, .stride_bytes = sizeof(HeapBounds)};
        entry.writable = false;
        heap_bounds_ = static_cast<uint32_t>(kernel_.bindings.size());
        kernel_.bindings.push_back(entry);
    }
    return Emit(Op::kLoadDescriptor, ir::Type::kI32, {Int(static_cast<uint32_t>(at))}, 0,
                *heap_bounds_);
}

Status Heaps::MapImage(const Inst& inst, Pointer& pointer, Kind kind, bool combined) {
    const bool storage = kind == Kind::kStorageImage || kind == Kind::kStorageTexelBuffer;
    const bool read_only =
        module_.FindDecoration(inst.result, spv::Decoration::NonWritable) != nullptr;
    const uint32_t resource = combined                 ? HeapMapping::kCombinedImage
                              : kind == Kind::kSampler ? HeapMapping::kSampler
                              : !storage               ? HeapMapping::kSampledImage
                              : read_only              ? HeapMapping::kReadOnlyImage
                                                       : HeapMapping::kReadWriteImage;
    FORNAX_ASSIGN_OR_RETURN(pointer.mapping, FindMapping(inst, resource, &pointer.mapped_binding));
    if (pointer.mapping->source >= Source::kHeapData) {
        return Invalid(inst, "is no buffer, and is mapped to the data of one");
    }
    const bool embedded = pointer.mapping->embedded_sampler != HeapMapping::kNoSampler;
    const auto sampler = [&]() -> uint32_t {
        if (!embedded) {
            return AddHeapBinding(Kind::kSampler, false);
        }
        ir::Binding entry;
        entry.set = ResourceLayout::kEmbeddedSamplerSet;
        entry.layout = {.kind = Kind::kSampler, .count = pointer.mapping->embedded_sampler + 1};
        entry.writable = false;
        kernel_.bindings.push_back(entry);
        return static_cast<uint32_t>(kernel_.bindings.size() - 1);
    };
    if (kind == Kind::kSampler) {
        pointer.binding = sampler();
        return OkStatus();
    }
    if (kind == Kind::kCombinedImageSampler) {
        kind = Kind::kSampledImage;
    }
    pointer.binding = AddHeapBinding(kind, storage && !read_only);
    // The texels of a buffer are not sampled, whatever their variable's type says.
    if (combined && kind == Kind::kSampledImage) {
        pointer.has_sampler = true;
        pointer.sampler_binding = sampler();
    }
    return OkStatus();
}

Status Heaps::HeapVariable(const Inst& inst, spv::BuiltIn builtin) {
    if (builtin != spv::BuiltIn::ResourceHeapEXT && builtin != spv::BuiltIn::SamplerHeapEXT) {
        return Unsupported(inst, "is a built-in that is no descriptor heap");
    }
    if (!request_.layout.heaps || inst.op != spv::Op::OpUntypedVariableKHR) {
        return Invalid(inst, "is a descriptor heap, which its pipeline does not use, or is typed");
    }
    Pointer pointer;
    pointer.space = Pointer::Space::kHeap;
    pointer.untyped = true;
    pointer.binding = builtin == spv::BuiltIn::SamplerHeapEXT ? ResourceLayout::kSamplerHeapSet
                                                              : ResourceLayout::kResourceHeapSet;
    code_.globals[inst.result] = {inst.type, {}, pointer, kernel_.body};
    return OkStatus();
}

ValueId Heaps::PushWord(uint32_t offset, ir::Type type) {
    const ValueId at = Int(offset);
    const uint32_t align =
        std::min<uint32_t>(ir::ByteSize(type), 1u << std::countr_zero(offset | 16));
    const ir::InstId load = builder_.Append(Op::kLoadPush, {&at, 1}, {&type, 1}, align, 0);
    return kernel_.inst(load).results[0];
}

ValueId Heaps::WordBehind(ValueId address, ValueId offset, ir::Type type) {
    const ValueId wide = Emit(Op::kZExt, ir::Type::kI64, {offset});
    const ValueId at = Emit(Op::kIAdd, ir::Type::kI64, {address, wide});
    const ir::InstId load = builder_.Append(Op::kLoadGlobal, {&at, 1}, {&type, 1}, 4, 0);
    return kernel_.inst(load).results[0];
}

// The formulas of the structures of VkDescriptorMappingSourceDataEXT.
ValueId Heaps::MappedElement(const Pointer& pointer, bool sampler) {
    const HeapMapping& mapping = *pointer.mapping;
    const HeapMapping::Place& place = sampler ? mapping.sampler : mapping.place;
    // With a packed index, which combined images have alone, the sampler's is where the image's is.
    const bool packed = mapping.packed_index != 0 && pointer.has_sampler;
    const HeapMapping::Place& index_place = packed ? mapping.place : place;
    const auto add = [&](ValueId a, ValueId b) { return Emit(Op::kIAdd, ir::Type::kI32, {a, b}); };
    const auto times = [&](ValueId a, uint32_t b) {
        return Emit(Op::kIMul, ir::Type::kI32, {a, Int(b)});
    };
    ValueId shader_index = Int(pointer.mapped_binding);
    if (pointer.element.valid()) {
        shader_index = add(shader_index, pointer.element);
    }
    ValueId offset = Int(place.heap_offset);
    if (mapping.source != Source::kIndirectIndexArray) {
        offset = add(offset, times(shader_index, place.array_stride));
    }
    ValueId index;
    if (mapping.source == Source::kPushIndex) {
        index = PushWord(index_place.push_offset, ir::Type::kI32);
    } else if (mapping.source != Source::kConstantOffset) {
        ValueId behind = Int(index_place.address_offset);
        if (mapping.source == Source::kIndirectIndexArray) {
            behind = add(behind, times(shader_index, sizeof(uint32_t)));
        }
        index =
            WordBehind(PushWord(index_place.push_offset, ir::Type::kI64), behind, ir::Type::kI32);
    }
    if (index.valid()) {
        constexpr uint32_t kImageBits = 20;
        if (packed && sampler) {
            index = Emit(Op::kLShr, ir::Type::kI32, {index, Int(kImageBits)});
        } else if (packed) {
            index = Emit(Op::kAnd, ir::Type::kI32, {index, Int((1u << kImageBits) - 1)});
        }
        offset = add(offset, times(index, place.index_stride));
    }
    const bool is_sampler =
        sampler || kernel_.bindings[pointer.binding].layout.kind == Kind::kSampler;
    return HeapElement(offset,
                       is_sampler ? Kind::kSampler : kernel_.bindings[pointer.binding].layout.kind);
}

void Heaps::ResolveHeap(Pointer& pointer) {
    if (!pointer.mapping || pointer.space != Pointer::Space::kImage) {
        return;
    }
    const HeapMapping& mapping = *pointer.mapping;
    const bool embedded = mapping.embedded_sampler != HeapMapping::kNoSampler;
    const auto element = [&](bool sampler) {
        return sampler && embedded ? Int(mapping.embedded_sampler)
                                   : MappedElement(pointer, sampler);
    };
    const bool is_sampler = kernel_.bindings[pointer.binding].layout.kind == Kind::kSampler;
    const bool combined = pointer.has_sampler;
    if (combined) {
        pointer.sampler_element = element(true);
        pointer.sampler_nonuniform = pointer.nonuniform;
    }
    // A sampler by itself is where the mapping's resource is; only of combined ones there are two
    // places.
    pointer.element = is_sampler && embedded ? element(true) : element(false);
    pointer.mapping = nullptr;
}

ValueId Heaps::MappedBuffer(const Pointer& pointer) {
    const HeapMapping& mapping = *pointer.mapping;
    if (!IsData(mapping.source)) {
        return Emit(Op::kBuffer, ir::Type::kBuffer, {MappedElement(pointer, false)},
                    pointer.nonuniform ? ir::kNonUniform : 0, pointer.binding);
    }
    // "Not subject to robustness guarantees": of what is at an address, nothing says the size.
    const bool wide = types_.buffer_offset() == ir::Type::kI64;
    ValueId size = builder_.Const(ir::Type::kI64, wide ? uint64_t{1} << 46 : UINT32_MAX);
    ValueId address;
    if (mapping.source == Source::kHeapData) {
        const ValueId heap = Emit(Op::kBuffer, ir::Type::kBuffer, {Int(0)}, 0, pointer.binding);
        const ValueId bytes = HeapBound(offsetof(HeapBounds, resource_bytes));
        ValueId offset = Emit(
            Op::kIAdd, ir::Type::kI32,
            {PushWord(mapping.place.push_offset, ir::Type::kI32), Int(mapping.place.heap_offset)});
        offset = Emit(Op::kUMin, ir::Type::kI32, {offset, bytes});
        size = Emit(Op::kZExt, ir::Type::kI64, {Emit(Op::kISub, ir::Type::kI32, {bytes, offset})});
        address = Emit(Op::kIAdd, ir::Type::kI64,
                       {Emit(Op::kBufferAddress, ir::Type::kI64, {heap}),
                        Emit(Op::kZExt, ir::Type::kI64, {offset})});
    } else {
        address = PushWord(mapping.place.push_offset, ir::Type::kI64);
        if (mapping.source == Source::kIndirectAddress) {
            address = WordBehind(address, Int(mapping.place.address_offset), ir::Type::kI64);
        }
    }
    return Emit(Op::kBufferFrom, ir::Type::kBuffer, {address, size});
}

// Turns a place in a heap into that of the image or sampler whose descriptor is there.
Status Heaps::LoadHeapDescriptor(const Inst& inst, Pointer& pointer, uint32_t type) {
    const Inst* declaration = module_.Find(type);
    const bool sampler = declaration && declaration->op == spv::Op::OpTypeSampler;
    if (!sampler && (!declaration || declaration->op != spv::Op::OpTypeImage)) {
        return Invalid(inst, "loads from a descriptor heap what is neither image nor sampler");
    }
    if (sampler != (pointer.binding == ResourceLayout::kSamplerHeapSet)) {
        return Invalid(inst, "loads a descriptor from the heap that does not hold its kind");
    }
    const Kind kind = sampler ? Kind::kSampler : DescriptorKindOf(*declaration);
    const bool storage = kind == Kind::kStorageImage || kind == Kind::kStorageTexelBuffer;
    Pointer place;
    place.space = Pointer::Space::kImage;
    place.type = type;
    place.is_volatile = pointer.is_volatile;
    place.nonuniform = pointer.nonuniform ||
                       module_.FindDecoration(inst.result, spv::Decoration::NonUniform) != nullptr;
    place.element = HeapElement(places_.ByteOffset(pointer, pointer.const_offset), kind);
    place.binding = AddHeapBinding(kind, storage);
    pointer = std::move(place);
    return OkStatus();
}

}  // namespace fornax::kernel::spirv
