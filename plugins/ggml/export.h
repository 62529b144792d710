// Captured graphs as files for other programs.
#pragma once

#include <map>
#include <string>

#include "plugins/ggml/capture.h"

namespace fornax::ggml_plugin {

// Writes the graph into the directory FORNAX_GGML_EXPORT, in each format of
// FORNAX_GGML_EXPORT_FORMATS that is for other programs (onnx: graph_HASH.onnx, torch:
// graph_HASH.py), unless this process has done so. Weights are those in memory. What fails costs a
// warning. The second graph that differs from an earlier one in its sizes alone is also written
// with open sizes, as family_HASH.
void ExportOnce(const Capture& capture);

// A name for each storage of a graph, by the name that the importer gives it: of a tensor in it,
// made an identifier of programming languages, no two alike.
std::map<std::string, std::string> PortNames(const ggml_frontend::Graph& graph);

}  // namespace fornax::ggml_plugin
