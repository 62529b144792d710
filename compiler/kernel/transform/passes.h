// The passes of the kernel IR, in the order in which the kernel compiler runs them (pipeline.cpp).
// A pass is one function: it takes a verified kernel and leaves a verified kernel.
#pragma once

#include "compiler/kernel/ir/ir.h"

namespace fornax::kernel {

// Splits private arrays that are only indexed by constants and turns one-element ones into SSA
// values, carried through if, switch, loop and scope as results and parameters.
void PromoteLocals(ir::Kernel& kernel);

// Folds constants and algebraic identities, merges equal pure instructions (dominating scope), and
// deletes what nothing uses. Keeps IEEE results: no float identity that changes NaN, infinities or
// signed zero.
void Simplify(ir::Kernel& kernel);

// Fully unrolls loops with constant trip counts: those hinted, those whose counter indexes private
// arrays, and small ones. Bounded by `max_instructions` for the whole kernel. True if it unrolled
// any; Simplify should follow.
bool UnrollLoops(ir::Kernel& kernel, uint32_t max_instructions);

// Turns private arrays that only ever hold constants into tables in Kernel::constant_data.
void MakeConstantTables(ir::Kernel& kernel);

// Joins loads and stores of neighbouring elements of one block into runs, where no other access may
// come between.
void CombineMemoryAccesses(ir::Kernel& kernel);

// Gives what follows the last barrier of a construct a scope of its own where it exits from the
// construct, so that constructs with barriers are only left uniformly.
void IsolateBarrierTails(ir::Kernel& kernel);

// Where a branch that holds a barrier may go different ways, gives the workgroup two forms of it: the
// branch as it is where all invocations agree, and one without barriers where they do not.
void SplitBarrierBranches(ir::Kernel& kernel);

// Runs all of the above until nothing more is to be gained; bounded. Values and instructions are
// numbered in the order of the text afterwards.
void RunPipeline(ir::Kernel& kernel);

}  // namespace fornax::kernel
