// A graph in ONNX's operators, before it becomes a file: plain data that every writer reads.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "compiler/graph/ir/graph.h"

namespace fornax::graph {

// Operators are those of this version of ONNX.
inline constexpr int64_t kExportedOpset = 23;

struct ExportedNode {
    using Attribute = std::variant<int64_t, std::vector<int64_t>, std::string>;
    std::string op;
    std::vector<std::string> inputs;
    std::vector<std::string> outputs;
    std::map<std::string, Attribute> attributes;
};

struct ExportedPort {
    std::string name;
    ElementType element = ElementType::kF32;
    std::vector<Expr> dims;
};

// A symbol of sizes, which an input's dimension tells: that is scale times the symbol, plus offset.
struct ExportedSymbol {
    Symbol symbol;
    std::string input;
    int64_t axis = 0;
    int64_t scale = 1, offset = 0;
    int64_t hint = 0;
};

// Integers that follow from symbols; nodes name them as they name weights.
struct ExportedSizes {
    std::string name;
    bool is_number = false;  // one value without dimensions, else a vector
    std::vector<Expr> values;
};

struct ExportedModel {
    std::string name;
    // States are the last inputs, and the last outputs have their new values.
    std::vector<ExportedPort> inputs, outputs;
    std::vector<std::pair<std::string, Tensor>> weights;
    std::vector<ExportedSymbol> symbols;
    std::vector<ExportedSizes> sizes;
    // What has to hold of symbols, as sentences without an end ("n <= 512").
    std::vector<std::string> conditions;
    std::vector<ExportedNode> nodes;
};

struct ExportOptions {
    // What inputs hold that are weights, by number.
    std::map<size_t, Tensor> weights;
    // Other names for inputs, outputs and states.
    std::map<std::string, std::string> names;
};

// A graph that passes Verify(), without composites, control flow and host calls (see
// LowerToPrimitives). Sizes may hold symbols that inputs' dimensions tell. What depends on weights
// and constants alone is computed, but for views. kUnsupported, with a sentence that names the
// node, for what has no operator.
Result<ExportedModel> ExportGraph(const Graph& graph, const ExportOptions& options = {});

// The same model with operators in place of sizes: what files of ONNX hold.
ExportedModel WithSizeOperators(ExportedModel model);

// TensorProto.DataType.
Result<int32_t> OnnxTypeOf(ElementType element);

// Writes an ONNX file. Weights beyond `inline_bytes` together, of which a file may hold 2 GiB, go
// into a second file beside it, `path` and ".data".
Status WriteOnnx(const ExportedModel& model,
                 const std::string& path,
                 uint64_t inline_bytes = uint64_t{1} << 30);

// A name of letters, digits and underscores that Python and the script leave free.
std::string PythonIdentifier(std::string_view name);
// Such names for all inputs, outputs and states.
std::map<std::string, std::string> PythonNames(const Graph& graph);

// Writes a Python script with the model as a torch.nn.Module, whose weights are in a file beside
// it, `path` and ".weights". Names of ports must be identifiers of Python.
Status WriteTorch(const ExportedModel& model, const std::string& path);

}  // namespace fornax::graph
