// The dispatches of nodes that are no scalar per element: concatenations, scans, sorts, scatters.
#pragma once

#include <vector>

#include "compiler/graph/schedule/plan_builder.h"

namespace fornax::graph {

// Whether rows of this length are sorted by comparing all elements with each other: if they are
// short, and no other size that the plan serves makes them long. Others are sorted by a kernel
// template, which takes each element twice: for its key and as a result.
bool IsSortedByComparing(const SizeFacts& sizes, const Expr& length);

// An index or a shape with the axis behind all others.
std::vector<Expr> AxisLast(std::vector<Expr> index, size_t axis);

void AddConcat(const Graph& graph,
               std::vector<bool>& realized,
               const Node& node,
               PlanBuilder& plan);
void AddScan(const Graph& graph, std::vector<bool>& realized, const Node& node, PlanBuilder& plan);
// A composite that is named after a template: for InlineComposites() to keep.
bool IsOfTemplate(const Graph& graph, const Node& node);
void AddOfTemplate(const Graph& graph,
                   const std::vector<bool>& realized,
                   const Node& node,
                   PlanBuilder& plan);
void AddSort(const Graph& graph, std::vector<bool>& realized, const Node& node, PlanBuilder& plan);
// `in_place`: the result lies where the data do, and only the updates are stored.
void AddScatter(const Graph& graph,
                std::vector<bool>& realized,
                const Node& node,
                PlanBuilder& plan,
                bool in_place);

}  // namespace fornax::graph
