// Comparison with onnxruntime, through tools/models of the source tree.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/graph/ir/types.h"
#include "tools/tensors/tensor_file.h"

namespace fornax::tool {

// A Python that has the modules: `chosen` if not empty, else the source tree's, else those of the
// search path. The error says what was tried.
Result<std::string> FindPython(const std::string& chosen,
                               const std::string& modules = "numpy, onnx, onnxruntime");

// The folder of the source tree that the command was built from; an error if it is gone.
Result<std::string> SourceTree();

struct Tolerances {
    double absolute = 1e-5;
    double relative = 1e-3;
    double norm = 1e-5;  // of the difference, in proportion to the output's
};

struct Comparison {
    std::string text;  // a line for each output
    bool is_within = false;
};

// Runs the model in onnxruntime with the inputs and compares its outputs with ours; an output
// within one of the tolerances is good (docs/models.md).
Result<Comparison> CompareWithOnnxruntime(const std::string& python,
                                          const std::string& model,
                                          const std::vector<tensors::NamedTensor>& inputs,
                                          const std::vector<tensors::NamedTensor>& outputs,
                                          const Tolerances& tolerances);

}  // namespace fornax::tool
