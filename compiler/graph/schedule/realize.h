// Chooses which values of a graph lie in memory: the borders between kernels.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/graph/ir/graph.h"

namespace fornax::graph {

// How a node comes to its results.
enum class NodeClass : uint8_t {
    kInline,     // a scalar per element: it may be part of any kernel that needs it
    kReduction,  // a loop per element
    kOwnKernel,  // kernels of its own form: scans, sorts, scatters, concatenations of many
    kHost,       // not on the device
    kState,      // memory that is there already, or is written at the end
};

// The class, and for kHost the reason as a clause. `serial`: for a plan of one processor, which has
// all functions of f64.
struct Classification {
    NodeClass node_class = NodeClass::kInline;
    std::string reason;
};
Classification Classify(const Graph& graph, const Node& node, bool serial = false);

// The value whose memory holds this one's elements in the same order: what a reshape looks at.
ValueId StorageOf(const Graph& graph, ValueId value);

// Why a value is in memory, for --explain.
enum class RealizeReason : uint8_t {
    kInlined,      // it is not
    kGiven,        // an input or a constant
    kOutput,       // of the graph
    kOwnKernel,    // its node has a kernel of its own
    kHostOperand,  // the host reads it
    kLoopOperand,  // a loop over time, which is one kernel, reads it
    kState,        // it is written to a state
    kReadOften,    // computing it again for each read costs more than keeping it
    kReduction,    // a reduction that could not join the kernels that read it
    kTooLarge,     // the kernel would hold too many operations
};
std::string_view Name(RealizeReason reason);

// What would happen to a reduction in the one kernel that reads it, so that it did not join it.
enum class Obstacle : uint8_t {
    kNone,            // it was not tried
    kTooLarge,        // the kernel would hold too many operations
    kTooManyBuffers,  // it would read more from memory, or have more loops, than one kernel may
    kRepeated,        // the kernel would compute it more than once
    kLosesTiles,      // a product in tiles would be none
    kNoRow,           // only the kernel of a row computes it once
};

struct Realization {
    std::vector<bool> realized;          // by value index
    std::vector<RealizeReason> reasons;  // by value index
    std::vector<Obstacle> obstacles;     // by value index
    bool serial = false;
};

Realization ChooseRealized(const Graph& graph, bool serial = false);

// The simple operations that a scalar function takes.
double FunctionCost(ScalarFunction function);

}  // namespace fornax::graph
