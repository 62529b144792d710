// Compiled partitions in models of onnxruntime: nodes EPContext, whose contents are data that are
// checked when they are read, never code (context_bytes.h). Weights of partitions with open sizes
// are inputs of the node.
#pragma once

#include <string>

#include "base/result.h"
#include "plugins/onnxruntime/api.h"
#include "plugins/onnxruntime/options.h"

namespace fornax::onnxruntime_plugin {

inline constexpr char kContextOperator[] = "EPContext";
inline constexpr char kContextDomain[] = "com.microsoft";

// An attribute that is a text; "" if there is none.
Result<std::string> TextAttribute(const Api& api, const OrtNode* node, const char* name);

// The contents of the node, in it or in a file beside the model.
Result<std::string> ReadContext(const Api& api, const OrtGraph* graph, const OrtNode* node);

// The node that stands for a compiled partition; onnxruntime takes it.
Result<OrtNode*> MakeContextNode(const Api& api,
                                 const Options& options,
                                 const OrtGraph* graph,
                                 const OrtNode* fused,
                                 const std::string& contents,
                                 bool is_first);

}  // namespace fornax::onnxruntime_plugin
