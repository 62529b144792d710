// Clean-up steps that several passes end with. Each takes and leaves a verified kernel.
#pragma once

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

// Deletes every instruction, construct result, parameter and local that contributes neither to
// memory nor to control flow that matters. A loop without effects is taken to end. May renumber.
void EliminateDeadCode(ir::Kernel& kernel);

// Replaces construct results and parameters by the one value that all their incoming edges give,
// where that value is visible: a loop parameter whose next value is itself becomes its initial one.
void ForwardSingleValues(ir::Kernel& kernel);

}  // namespace fornax::kernel
