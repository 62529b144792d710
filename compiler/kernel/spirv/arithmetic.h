// Everything that works component by component, conversions; dot products of integers, and of
// bfloat16 added to floats (dot_product.cpp).
#pragma once

#include "compiler/kernel/spirv/values.h"

namespace fornax::kernel::spirv {

class Arithmetic : TranslationPart {
  public:
    Arithmetic(Translation& code, Values& values) : TranslationPart(code), values_(values) {}

    Status Componentwise(const Inst& inst);
    Status Convert(const Inst& inst);
    Status Bitcast(const Inst& inst);
    Status Select(const Inst& inst);
    Status AnyAll(const Inst& inst);
    Status TwoResults(const Inst& inst);
    Status VectorTimesScalar(const Inst& inst);
    Status Shift(const Inst& inst);
    Status BitField(const Inst& inst);
    Status IntegerDot(const Inst& inst);
    Status MixedFloatDot(const Inst& inst);

  private:
    ir::ValueId WordOfHalves(const Tuple& halves);
    ir::ValueId AddSaturating(ir::ValueId a, ir::ValueId b, bool is_signed);

    Values& values_;
};

}  // namespace fornax::kernel::spirv
