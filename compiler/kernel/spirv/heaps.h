// Descriptor heaps: the bindings that stand for them, and which of their elements are meant.
#pragma once

#include <optional>

#include "compiler/kernel/spirv/place_code.h"

namespace fornax::kernel::spirv {

// What the descriptor of an OpTypeImage is by itself, without a sampler.
BindingLayout::Kind DescriptorKindOf(const Inst& image);

class Heaps : TranslationPart {
  public:
    Heaps(Translation& code, PlaceCode& places) : TranslationPart(code), places_(places) {}

    uint32_t AddHeapBinding(BindingLayout::Kind kind, bool writable);
    Status MapBuffer(const Inst& inst, Pointer& pointer, BindingLayout::Kind kind, bool writable);
    Status MapImage(const Inst& inst, Pointer& pointer, BindingLayout::Kind kind, bool combined);
    Status HeapVariable(const Inst& inst, spv::BuiltIn builtin);
    void ResolveHeap(Pointer& pointer);
    ir::ValueId HeapElement(ir::ValueId offset, BindingLayout::Kind kind);
    ir::ValueId MappedBuffer(const Pointer& pointer);
    Status LoadHeapDescriptor(const Inst& inst, Pointer& pointer, uint32_t type);

  private:
    Result<const HeapMapping*> FindMapping(const Inst& inst, uint32_t resource, uint32_t* binding);
    ir::ValueId MappedElement(const Pointer& pointer, bool sampler);
    ir::ValueId HeapBound(size_t at);
    ir::ValueId PushWord(uint32_t offset, ir::Type type);
    ir::ValueId WordBehind(ir::ValueId address, ir::ValueId offset, ir::Type type);

    PlaceCode& places_;
    std::optional<uint32_t> heap_bounds_;  // the binding of them, once they are used
};

}  // namespace fornax::kernel::spirv
