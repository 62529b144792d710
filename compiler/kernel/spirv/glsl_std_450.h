// The GLSL.std.450 instructions; those on matrices are in glsl_matrix.cpp.
#pragma once

#include <vector>

#include "compiler/kernel/spirv/debug_printf.h"
#include "compiler/kernel/spirv/place_access.h"
#include "compiler/kernel/spirv/values.h"

namespace fornax::kernel::spirv {

class GlslInstructions : TranslationPart {
  public:
    GlslInstructions(Translation& code, PlaceAccess& access, Values& values, PrintfCode& printf)
        : TranslationPart(code), access_(access), values_(values), printf_(printf) {}

    Status ExtInst(const Inst& inst);

  private:
    Status GlslInst(const Inst& inst, uint32_t number);
    ir::ValueId LdexpExponent(ir::ValueId exponent);
    Status GlslPack(const Inst& inst, uint32_t number, const Tuple& a);
    Status GlslMatrix(const Inst& inst, uint32_t number, const Tuple& a);
    Result<Tuple> GlslGeometry(const Inst& inst,
                               uint32_t number,
                               const std::vector<Tuple>& args,
                               ir::Type type);
    ir::ValueId Clamp(ir::ValueId x,
                      ir::ValueId low,
                      ir::ValueId high,
                      ir::Op max,
                      ir::Op min,
                      ir::Type type,
                      bool zero_signs = false);

    PlaceAccess& access_;
    Values& values_;
    PrintfCode& printf_;
};

}  // namespace fornax::kernel::spirv
