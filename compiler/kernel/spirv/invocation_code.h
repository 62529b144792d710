// What an invocation knows of itself: the built-in inputs, and sets of lanes.
#pragma once

#include "compiler/kernel/spirv/translation.h"

namespace fornax::kernel::spirv {

class InvocationCode : TranslationPart {
  public:
    explicit InvocationCode(Translation& code) : TranslationPart(code) {}

    Result<Tuple> LoadBuiltin(const Inst& inst, const Pointer& pointer);
    ir::ValueId SubgroupLane();
    // Sets of lanes are integers of 32 or 64 bits, for SPIR-V vectors of four words.
    ir::Type LaneSetType() const;
    ir::ValueId AllLanes();
    ir::ValueId LanesAround(spv::BuiltIn which);
    Tuple LaneSetToVector(ir::ValueId set);

  private:
    Tuple LocalInvocationId();
    ir::ValueId LocalInvocationIndex();
};

}  // namespace fornax::kernel::spirv
