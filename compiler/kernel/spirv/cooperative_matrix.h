// Matrices that a subgroup holds together.
#pragma once

#include "compiler/kernel/spirv/invocation_code.h"
#include "compiler/kernel/spirv/place_access.h"
#include "compiler/kernel/spirv/place_code.h"
#include "compiler/kernel/spirv/values.h"

namespace fornax::kernel::spirv {

class CooperativeMatrices : TranslationPart {
  public:
    CooperativeMatrices(Translation& code,
                        PlaceCode& places,
                        PlaceAccess& access,
                        InvocationCode& invocation,
                        Values& values)
        : TranslationPart(code),
          places_(places),
          access_(access),
          invocation_(invocation),
          values_(values) {}

    Status MatrixLoad(const Inst& inst);
    Status MatrixStore(const Inst& inst);
    Status MatrixMulAdd(const Inst& inst);
    Status MatrixLength(const Inst& inst);

  private:
    struct MatrixPlace;
    Result<const Type*> MatrixType(const Inst& inst, uint32_t type_id);
    Status CheckPlace(const Inst& inst, const Type& matrix, size_t first, MatrixPlace& at);
    template <typename Visit>
    Status VisitMatrix(const Type& matrix, const MatrixPlace& at, Visit&& visit);
    ir::ValueId RowBytes(const MatrixPlace& at);
    Tuple LoadWholeMatrix(const Type& matrix, const MatrixPlace& at);
    Tuple TransposeMatrix(const Tuple& tuple);

    PlaceCode& places_;
    PlaceAccess& access_;
    InvocationCode& invocation_;
    Values& values_;
};

}  // namespace fornax::kernel::spirv
