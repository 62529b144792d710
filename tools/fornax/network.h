// The file that `run` and `compile` take: an ONNX model, an FX graph of PyTorch or a plan file, and
// what it says of itself.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/graph/compile.h"
#include "compiler/graph/ir/types.h"
#include "tools/fornax/command.h"

namespace fornax::tool {

struct NetworkInput {
    std::string name;
    graph::TensorType type;  // sizes that the network leaves open are symbols
    bool has_shape = true;   // else the rank is open, too
};

struct Network {
    std::string path;
    bool is_plan = false;
    std::vector<NetworkInput> inputs;
};

// Reads what is needed of the file, and not its weights.
Result<Network> DescribeNetwork(const std::string& path);

// Options that `run` and `compile` share.
struct NetworkOptions {
    std::string path;
    std::vector<std::string> dims;
    std::vector<std::string> dynamic;
    bool strict = false;
    std::string precision = "highest";

    void AddTo(CLI::App& command);
    // The sizes of --dim by name. Fails when one does not have its form.
    Result<std::map<std::string, int64_t>> ParseDims() const;
    graph::Precision ParsedPrecision() const;
};

}  // namespace fornax::tool
