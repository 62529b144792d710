// Which scalars inside of reductions are worth to be computed before a loop that they do not depend
// on, for all points of the reductions at once: the scores of an attention, for example, which are
// the same for every element of a value.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/graph/loop/kernel.h"
#include "compiler/graph/loop/scope.h"

namespace fornax::graph::c {

struct Table {
    loop::ScalarId scalar;
    std::vector<loop::Loop> loops;  // those that it depends on, of constant extents
    int64_t count = 1;              // points of the loops
};

struct TableChoice {
    const loop::Kernel& kernel;
    const loop::Scope& scope;
    const std::vector<bool>& needed;    // scalars
    const std::vector<bool>& computed;  // scalars
    loop::VariableSet bound = 0;
    std::span<const loop::Loop> inner;  // the loops that follow, of which the first matters
    const std::vector<bool>& excluded;  // scalars
    std::span<const loop::ScalarId> roots;
};

// Scalars of which what is not known yet takes a reduction or a function that is a series.
std::vector<bool> DearScalars(const TableChoice& choice);

std::vector<Table> ChooseTables(const TableChoice& choice);

}  // namespace fornax::graph::c
