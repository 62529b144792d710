// A graph of the host as the frontend reads it, and where its storages lie.
#pragma once

#include <span>
#include <vector>

#include "base/hash.h"
#include "compiler/frontends/ggml/graph.h"
#include "plugins/ggml/host.h"

namespace fornax::ggml_plugin {

struct Capture {
    ggml_frontend::Graph graph;
    // By storage. Null where nothing is allocated yet.
    std::vector<void*> addresses;
    std::vector<uint64_t> sizes;  // in bytes
    // The tensors that are no nodes but are read: with the nodes, all that the capture looked at.
    std::vector<const abi::Tensor*> leaves;
};

// The nodes that are to be computed, with what they read. Nothing is kept of ggml's structures but
// their addresses.
Capture CaptureNodes(const Host& host, std::span<abi::Tensor* const> nodes);

// Covers everything but names and addresses.
Hash128 HashOf(const ggml_frontend::Graph& graph);

// At level debug, a line for each node: name, operator, type, sizes, sources.
void LogNodes(const Capture& capture);

// At level debug, why an operator is left to other backends. With FORNAX_GGML_REPORT also a line in
// the file of that name.
void ReportRefused(const std::string& reason);

}  // namespace fornax::ggml_plugin
