// Dear values that several loops of one kernel compute alike: the scores of an attention under its
// maximum, under its sum and beside the values; the exponentials of a softmax. They are computed
// once, into a table.
#pragma once

#include <span>
#include <vector>

#include "compiler/graph/c/tables.h"
#include "compiler/graph/loop/kernel.h"
#include "compiler/graph/loop/scope.h"

namespace fornax::graph::c {

// A scalar that depends on one loop that is not bound, as far as it is not known.
struct ValueOfLoop {
    loop::ScalarId scalar;
    loop::Loop loop;
};

// All have one value where their loops' variables have one. The first is to be computed; it needs
// nothing of later groups.
using SharedValues = std::vector<ValueOfLoop>;

// The groups in the order in which they are to be computed. `inner` may be empty.
std::vector<SharedValues> FindSharedValues(const TableChoice& choice);

}  // namespace fornax::graph::c
