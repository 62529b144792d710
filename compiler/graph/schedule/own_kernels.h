// The dispatches of nodes that are no scalar per element: concatenations, scans, sorts, scatters.
#pragma once

#include <vector>

#include "compiler/graph/schedule/plan_builder.h"

namespace fornax::graph {

void AddConcat(const Graph& graph,
               std::vector<bool>& realized,
               const Node& node,
               PlanBuilder& plan);
void AddScan(const Graph& graph, std::vector<bool>& realized, const Node& node, PlanBuilder& plan);
void AddSort(const Graph& graph, std::vector<bool>& realized, const Node& node, PlanBuilder& plan);
// `in_place`: the result lies where the data do, and only the updates are stored.
void AddScatter(const Graph& graph,
                std::vector<bool>& realized,
                const Node& node,
                PlanBuilder& plan,
                bool in_place);

}  // namespace fornax::graph
