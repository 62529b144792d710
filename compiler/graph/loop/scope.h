// Which loop variables a kernel has, and on which of them each scalar depends.
//
// The free variables of a scalar are the loop variables that its value depends on:
//   - of an expression its variables, and for "$v7" the free variables of scalar 7;
//   - of a scalar those of its operands and expressions;
//   - of a load from a buffer that the kernel writes also all parallel and sequential variables,
//     because it sees what its own point stored before; of a load from a local tensor also all
//     parallel ones, and what it gives is not the same in two phases;
//   - of a reduction those of its body and of its loops' extents, without the variables of its
//     loops.
// A scalar has one value for each binding of its free variables. So it may be computed once
// wherever they are bound: outside of every loop whose variable it lacks, and again in each
// reduction over one that it has. Stores see parallel and sequential variables only, those of
// phases their lanes' too.
//
// All reductions that have a variable in common give it the same extent, so that a variable has one
// range in the whole kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "compiler/graph/loop/kernel.h"

namespace fornax::graph::loop {

// Bit i is variable i of the Scope.
using VariableSet = uint64_t;
inline constexpr size_t kMaxVariables = 64;

struct Scope {
    // Each loop once: the parallel ones, then the sequential ones, those of phases, of reductions.
    std::vector<Loop> variables;
    VariableSet parallel = 0;
    VariableSet sequential = 0;
    VariableSet lanes = 0;          // of all phases
    std::vector<VariableSet> free;  // of each scalar

    std::optional<size_t> Find(const Symbol& variable) const;
    // The loops' variables. Loops that code has made are none of the kernel's.
    VariableSet VariablesOf(std::span<const Loop> loops) const;
    VariableSet VariablesOf(const Loop& loop) const { return VariablesOf({&loop, 1}); }
    // Those of the scalars that depend on any of the variables.
    std::vector<bool> VaryingWith(VariableSet set, std::vector<bool> scalars) const;
    // The free variables of an expression. It holds only known variables and earlier scalars.
    VariableSet FreeIn(const Expr& expr) const;
};

// The scalar that "$v7" names; nullopt for every other symbol.
std::optional<ScalarId> ScalarOfSymbol(const Symbol& symbol);
// "$v7".
Symbol SymbolOfScalar(ScalarId scalar);

// Verify() must accept the kernel.
Scope FindScope(const Kernel& kernel);

// The kernel's stores and those of its phases.
std::vector<const Store*> StoresOf(const Kernel& kernel);
std::vector<const Store*> StoresOf(const Phase& phase);
// Whether the kernel loads from a buffer that it stores to.
bool LoadsWhatIsWritten(const Kernel& kernel);
// The loops of a reduction, else none.
std::span<const Loop> LoopsOf(const ScalarNode& node);
// The scalars that the node takes directly, without those of expressions.
std::vector<ScalarId> OperandsOf(const ScalarNode& node);
// The expressions of the node: indices, values, extents.
std::vector<Expr> ExpressionsOf(const ScalarNode& node);
// The scalars that stores name: values, conditions and indices.
std::vector<ScalarId> RootsOf(std::span<const Store* const> stores);

// How many points loops have together.
Expr PointsOf(std::span<const Loop> loops);

// The scalars that `roots` need, themselves included; not what those of `given` need.
std::vector<bool> Needed(const Kernel& kernel,
                         std::span<const ScalarId> roots,
                         std::span<const ScalarId> given = {});

}  // namespace fornax::graph::loop
