// Stack slots of the emitter to SSA values, before LLVM's passes.
#pragma once

#include <llvm/IR/Module.h>

namespace fornax::kernel {

// Replaces slots that are only loaded and stored as a whole. LLVM's own pass looks for places of
// phis in everything that follows a store, which for a kernel of n loops, one after the other, is
// n slots times n blocks; this one goes from a load back to the stores that it sees. So the emitter
// stores something to each slot where its construct begins.
void PromoteSlots(llvm::Module& module);

}  // namespace fornax::kernel
