// The slow interpreter of the graph IR: what kernels and passes are compared with, and what folds
// constants.
//
// It says what each primitive means, one function a structure of operation.h: elementwise.cpp,
// views.cpp, reductions.cpp, indexing.cpp, contract.cpp and sources.cpp compute, interpreter.cpp
// runs graphs and bodies. Sums of f32 and narrower floats are computed in double and rounded once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/graph/ir/graph.h"

namespace fornax::graph {

// What computes a HostCall: from its operands the results, of the call's element types and ranks.
using HostFunction =
    std::function<Result<std::vector<Tensor>>(const op::HostCall&, std::span<const Tensor>)>;
using HostFunctions = std::map<std::string, HostFunction, std::less<>>;

// Values of states by name.
using States = std::map<std::string, Tensor, std::less<>>;

struct InterpretOptions {
    // The limit for all tensors that are alive at one time, without inputs and constants.
    uint64_t max_bytes = uint64_t{4} << 30;
    // Elements read, written and multiplied.
    uint64_t max_steps = uint64_t{1} << 40;
    const HostFunctions* host_functions = nullptr;
    // Read and changed; keeps state between calls. Without it states begin anew in each call. A
    // state that was never written is 0.
    States* states = nullptr;
};

// The graph's outputs for its inputs, in order. An input's dimension that is a symbol gives the
// symbol its value, and so does a result's whose size is only known then; other symbols have their
// hint's. Dimensions that differ from the graph's types are errors, and so are guards that do not
// hold. Safe for graphs that pass Verify(), whatever their sizes. Errors are sentences.
Result<std::vector<Tensor>> Interpret(const Graph& graph,
                                      std::span<const Tensor> inputs,
                                      const InterpretOptions& options = {});

// The results of one node, whose operands fit (see InferTypes). `bindings` has a value for each
// symbol that the operation uses. States are refused unless the options have them.
Result<std::vector<Tensor>> EvaluateNode(const Operation& operation,
                                         std::span<const Tensor> operands,
                                         std::span<const Body> bodies,
                                         const Bindings& bindings,
                                         const InterpretOptions& options = {});

}  // namespace fornax::graph
