// Loads and stores of the place that a pointer leads to, and pointers as tuples of scalars. Values
// in memory with bytes are taken in runs of adjacent elements of one type; private memory is taken
// scalar by scalar.
#pragma once

#include <span>

#include "compiler/kernel/spirv/heaps.h"
#include "compiler/kernel/spirv/invocation_code.h"
#include "compiler/kernel/spirv/place_code.h"

namespace fornax::kernel::spirv {

class PlaceAccess : TranslationPart {
  public:
    PlaceAccess(Translation& code, PlaceCode& places, Heaps& heaps, InvocationCode& invocation)
        : TranslationPart(code), places_(places), heaps_(heaps), invocation_(invocation) {}

    Result<Tuple> LoadFrom(const Inst& inst, const Pointer& pointer);
    Status StoreTo(const Inst& inst, const Pointer& pointer, const Tuple& value);
    Status LoadRun(const Inst& inst,
                   const Pointer& pointer,
                   ir::Type scalar,
                   uint32_t count,
                   uint64_t at,
                   Tuple& out);
    Status StoreRun(const Inst& inst,
                    const Pointer& pointer,
                    std::span<const ir::ValueId> values,
                    uint64_t at);
    Status CheckWritable(const Inst& inst, const Pointer& pointer);
    Status MemoryOperands(const Inst& inst, size_t index, Pointer& pointer);
    ir::ValueId BufferOf(const Pointer& pointer);
    Result<Pointer> PrivatePlace(const Inst& inst, const Type& type);
    Result<Pointer> PointerFromScalars(const Inst& inst, const Value& value);
    Result<Tuple> PointerScalars(const Inst& inst, const Pointer& pointer);
    Result<Tuple> PlaceScalars(const Inst& inst, const Pointer& pointer);

  private:
    // Visits the runs of adjacent elements of a value in byte-addressed memory, in order.
    template <typename Visit>
    Status VisitRuns(const Inst& inst,
                     const Pointer& pointer,
                     const Type& type,
                     uint64_t at,
                     bool row_major,
                     uint32_t matrix_stride,
                     Visit&& visit);
    // Visits the scalars of a private variable's part: leaf and constant slot.
    template <typename Visit>
    void VisitSlots(const Type& type,
                    uint32_t leaf,
                    const std::vector<uint64_t>& slots,
                    Visit&& visit);

    PlaceCode& places_;
    Heaps& heaps_;
    InvocationCode& invocation_;
};

}  // namespace fornax::kernel::spirv
