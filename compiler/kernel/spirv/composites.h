// Vectors, matrices, arrays and structures as tuples of scalars.
#pragma once

#include <span>
#include <utility>

#include "compiler/kernel/spirv/large_values.h"
#include "compiler/kernel/spirv/values.h"

namespace fornax::kernel::spirv {

class Composites : TranslationPart {
  public:
    Composites(Translation& code, Values& values, LargeValues& large)
        : TranslationPart(code), values_(values), large_(large) {}

    Status CompositeConstruct(const Inst& inst);
    Status CompositeExtract(const Inst& inst);
    Status CompositeInsert(const Inst& inst);
    Status VectorShuffle(const Inst& inst);
    Status VectorExtractDynamic(const Inst& inst);
    Status VectorInsertDynamic(const Inst& inst);
    Status Transpose(const Inst& inst);
    Status MatrixTimes(const Inst& inst);
    Status OuterProduct(const Inst& inst);
    Status Dot(const Inst& inst);

  private:
    Result<std::pair<uint64_t, const Type*>> Locate(const Inst& inst,
                                                    const Type& type,
                                                    std::span<const uint32_t> indices);

    Values& values_;
    LargeValues& large_;
};

}  // namespace fornax::kernel::spirv
