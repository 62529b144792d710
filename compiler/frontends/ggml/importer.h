// Builds graph IR of a graph of ggml.
//
// Each tensor becomes a value [i3, i2, i1, i0]. What ggml does by writing to memory (views that are
// written to, operators in place, key-value caches) becomes a sequence of values of the storage.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/frontends/ggml/graph.h"
#include "compiler/frontends/ggml/pack.h"
#include "compiler/graph/ir/graph.h"

namespace fornax::ggml_frontend {

struct ImportedGraph {
    graph::Graph graph;
    // A storage, or a part of the pack of one.
    struct Input {
        uint32_t storage = 0;
        Part part = Part::kWhole;
        bool operator==(const Input&) const = default;
    };
    // What the graph's inputs are, and the storages that its outputs are, in order.
    std::vector<Input> inputs;
    std::vector<uint32_t> outputs;
    // Storages that are read and written in place: states of the graph, by name.
    struct State {
        std::string name;
        uint32_t storage = 0;
    };
    std::vector<State> states;
};

// The matrices of weights of which products may read packs, or the matrix where it lies if the
// graph says so: those of 16 bits and of q8_0, where the graph multiplies weights by few rows
// alone.
std::vector<uint32_t> MatricesInPlace(const Graph& graph);
// The most rows that a graph multiplies by a matrix of weights.
int64_t MostRowsOfWeights(const Graph& graph);

// Inputs that are whole storages, outputs and states have the type and dimensions of their storage,
// quantised ones as bytes [i3, i2, i1, bytes of a row]. kUnsupported, with a sentence that names
// the node, for operators, types and forms that are not covered.
Result<ImportedGraph> Import(const Graph& graph, const std::string& name);

}  // namespace fornax::ggml_frontend
