// The passes of the kernel IR, in the order in which the kernel compiler runs them (pipeline.cpp).
// A pass is one function: it takes a verified kernel and leaves a verified kernel.
#pragma once

#include "compiler/kernel/interface/code_tier.h"
#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

// Makes tests false that end a loop after 2^64 iterations, as naga gives to every loop. Before
// PromoteLocals.
void RemoveEndlessBounds(ir::Kernel& kernel);

// Splits private arrays that are only indexed by constants and turns one-element ones into SSA
// values, carried through if, switch, loop and scope as results and parameters.
void PromoteLocals(ir::Kernel& kernel);

// Folds constants and algebraic identities, merges equal pure instructions (dominating scope), and
// deletes what nothing uses. Keeps IEEE results: no float identity that changes NaN, infinities or
// signed zero.
void Simplify(ir::Kernel& kernel);

// Makes 1 + tanh(x) a quotient of which only an exponential is hard. For targets of 512 bits.
void ReplaceTanhSums(ir::Kernel& kernel);

// Makes products and the sums that they go into multiply-adds where both may be contracted, and
// forbids it for all other sums.
void FuseSums(ir::Kernel& kernel);

// Fully unrolls loops with constant trip counts: those hinted, those whose counter indexes private
// arrays, and small ones. Bounded by `max_instructions` for the whole kernel. True if it unrolled
// any; Simplify should follow. For the baseline tier loops stay loops, unless they are tiny.
bool UnrollLoops(ir::Kernel& kernel,
                 uint32_t max_instructions,
                 CodeTier tier = CodeTier::kOptimized);

// Makes loads of elements that are known at run time only choose between all elements, where an
// array has few of them and every store names its own. True if there were any; PromoteLocals should
// follow.
bool SelectElements(ir::Kernel& kernel);

// Turns private arrays that only ever hold constants into tables in Kernel::constant_data.
void MakeConstantTables(ir::Kernel& kernel);

// Gives what loads neighbouring elements if numbers that the kernel is given are 1 a specialization
// for that. True if there was any; Simplify should follow.
bool VersionStrides(ir::Kernel& kernel);

// Makes one branch of those in a block that each load neighbouring elements under a condition of
// their own, so that the next pass finds the loads in one block. True if there were any; Simplify
// should follow.
bool JoinGuards(ir::Kernel& kernel);

// Joins loads and stores of neighbouring elements of one block into runs, where no other access may
// come between.
void CombineMemoryAccesses(ir::Kernel& kernel);

// Gives what follows the last barrier of a construct a scope of its own where it exits from the
// construct, so that constructs with barriers are only left uniformly.
void IsolateBarrierTails(ir::Kernel& kernel);

// Where a branch that holds a barrier may go different ways, gives the workgroup two forms of it:
// the branch as it is where all invocations agree, and one without barriers where they do not. If
// that made the kernel longer by `max_growth` instructions or more, every construct that holds a
// barrier is rewritten instead, into code that is no longer but slower (barrier_states.h).
void SplitBarrierBranches(ir::Kernel& kernel);
void SplitBarrierBranches(ir::Kernel& kernel, uint32_t max_growth);

// Runs a loop that carries more independent values than the target has vector registers once for
// each part of them. True if it split any; Simplify should follow.
bool SplitLoops(ir::Kernel& kernel, uint32_t vector_registers);

// Loops that carry at least so many values and run a known number of times take up to four
// iterations at once. True if there were any; Simplify should follow.
bool UnrollPartly(ir::Kernel& kernel, uint32_t least_carried);

// Loops that bring operands of these matrix MMAs into workgroup memory and multiply them take
// several iterations at once. True if there were any; Simplify should follow.
bool JoinIterations(ir::Kernel& kernel, JoinedMmas joined = JoinedMmas::kAll);

// Accumulators of f16, which the device does not list but ggml's attention uses, are f32 for an
// MMA. Where they go from one MMA straight to the next they stay f32, as if both were one MMA of
// more steps; what else looks at such an accumulator sees it rounded. True if there were any;
// Simplify should follow.
bool ChainHalfSums(ir::Kernel& kernel);

// Gives code that divides indices by sizes which are known at run time only a specialization, for
// vectors whose lanes share every quotient. True if there was any; Simplify should follow.
bool VersionDivisions(ir::Kernel& kernel);

// Gives what follows a loop a copy for subgroups of which no lane enters the loop, where it goes on
// by what the loop carries. Kernels with operations of subgroups only. True if there was any;
// Simplify should follow.
bool BypassLoops(ir::Kernel& kernel);

// Gives each invocation one iteration of loops that all invocations run alike and whose iterations
// have nothing to do with each other. True if there were any; PromoteLocals should follow.
bool DistributeLoops(ir::Kernel& kernel);

// All of the above, bounded. Kernels that went through the first half together compute the same, to
// the last bit, whatever the second is made for. Values and instructions are numbered in the order
// of the text afterwards.
void RunFirstPasses(ir::Kernel& kernel, uint32_t vector_registers = 32);
void RunOtherPasses(ir::Kernel& kernel,
                    CodeTier tier,
                    uint32_t vector_registers = 32,
                    JoinedMmas joined = JoinedMmas::kNone);
void RunPipeline(ir::Kernel& kernel,
                 uint32_t vector_registers = 32,
                 JoinedMmas joined = JoinedMmas::kNone);

}  // namespace fornax::kernel
