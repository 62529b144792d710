// Operations between the invocations of a subgroup. Sets of lanes are integers of 32 or 64 bits,
// for SPIR-V vectors of four words.
#pragma once

#include "compiler/kernel/spirv/invocation_code.h"
#include "compiler/kernel/spirv/values.h"

namespace fornax::kernel::spirv {

class Subgroups : TranslationPart {
  public:
    Subgroups(Translation& code, InvocationCode& invocation, Values& values)
        : TranslationPart(code), invocation_(invocation), values_(values) {}

    static bool IsSubgroupOp(spv::Op op);
    Status Subgroup(const Inst& inst);

  private:
    Status SubgroupArithmetic(const Inst& inst);
    Status DefineShuffle(const Inst& inst, Tuple values, ir::ValueId lane);
    ir::ValueId LanesWhere(ir::ValueId condition);
    ir::ValueId ClusterLanes(uint32_t cluster);
    Result<ir::ValueId> GroupLanes(const Inst& inst, uint32_t operation, uint32_t extra);
    Result<uint32_t> ClusterSize(const Inst& inst, uint32_t id);
    Result<ir::ValueId> UseLaneSet(const Inst& inst, uint32_t id);
    ir::ValueId LaneSetNumber(ir::Op op, ir::ValueId set);
    ir::ValueId HasLane(ir::ValueId set, ir::ValueId lane);
    ir::ValueId IsEmpty(ir::ValueId set);

    InvocationCode& invocation_;
    Values& values_;
};

}  // namespace fornax::kernel::spirv
