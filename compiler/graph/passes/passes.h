// The passes over graphs, in the order in which Compile() runs them.
//
// A pass takes a graph by value and gives another one that computes the same; each keeps what
// Verify() checks.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "base/result.h"
#include "compiler/graph/ir/graph.h"

namespace fornax::graph {

// Gives the symbols of the inputs' sizes their hints, but for the `dynamic` ones: the plan is for
// these sizes alone then, and its kernels need no arithmetic for them.
Result<Graph> SpecializeSizes(Graph graph, const std::set<std::string>& dynamic);

// Gives convolutions with constant weights a form with fewer multiplications where that is faster.
// Before InlineComposites(), because it finds them by their names.
Result<Graph> MultiplyLess(const Graph& graph);

// Makes Fourier transforms of known lengths composites that are named after a template. Before
// InlineComposites(), too.
Result<Graph> TransformFast(const Graph& graph);

// Puts bodies in the place of composites, but for those that `keep` says a template takes.
Result<Graph> InlineComposites(const Graph& graph,
                               const std::function<bool(const Graph&, const Node&)>& keep);

// Reads of state after a write become the written value, and one write of each state is left, the
// last.
Result<Graph> ForwardState(const Graph& graph);

// Whether a loop stays, because it becomes a kernel as it is.
using KeepLoop = std::function<bool(const Graph&, const Node&)>;

// Makes dispatches of control flow where that is possible: a loop whose number of iterations is
// known is unrolled, unless `keep` says that it stays; both branches of a condition are computed
// and the results selected. What is too large, or calls the host, stays.
Result<Graph> LowerControlFlow(const Graph& graph, const KeepLoop& keep);

// Folds what depends on constants only (up to a size), joins equal nodes, and removes nodes that
// change nothing: views of views, casts to the same type, additions of 0.
Result<Graph> Simplify(const Graph& graph);

// Moves the permutations behind products of integers through elementwise nodes, so that images
// between such products keep the products' order in memory.
Result<Graph> SinkPermutations(const Graph& graph);

// Copies the bytes that a product of integers reads in another order than memory has. Simplify()
// would remove the copies.
Result<Graph> OrderBytes(const Graph& graph);

// Gives the activations around convolutions with constant weights an order with channels last, and
// inserts views where another order is needed.
Result<Graph> ChooseLayouts(const Graph& graph);

// Makes one product of those that multiply the same value by constant matrices.
Result<Graph> JoinProducts(const Graph& graph);

// Rounds the constant matrices of products of at most kMostFewRows rows to bf16: for
// Precision::kMedium.
Result<Graph> NarrowWeights(const Graph& graph);

// Makes products of more rows products of bf16, added in f32: for devices that multiply bf16 faster
// than f32. Those of f32 are among them only if they may be rounded: for Precision::kMedium.
Result<Graph> NarrowProducts(const Graph& graph, bool may_round);

// Puts constant operands of products into the layout that the products' kernels read; takes the
// graph, whose weights are let go of one after the other. The last pass: Simplify() would fold the
// views that it leaves.
Result<Graph> PackWeights(Graph graph);

}  // namespace fornax::graph
