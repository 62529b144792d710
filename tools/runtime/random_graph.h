// Random valid graphs for tests of the graph compiler as a whole.
#pragma once

#include <cstdint>

#include "compiler/legacy_graph/graph.h"

namespace fornax::runtime {

// A graph of some twenty nodes with values that stay small. The same seed gives the same graph.
legacy_graph::Graph RandomGraph(uint32_t seed);

}  // namespace fornax::runtime
