// A core's scalar unit: what is one for a workgroup, addresses of rows and conditions of loops.
//
// Source: a pipeline without stalls that issues in order, J. Hennessy and D. Patterson, "Computer
// Architecture", appendix C: operations times the cycles between two of them. It works beside the
// other units, as overlap says (core.h).
#pragma once

#include "npu/description/description.h"
#include "npu/units/cycles.h"

namespace fornax::npu {

Cycles CyclesOnScalarUnit(const Description& description, uint64_t operations);

}  // namespace fornax::npu
