// Imports the nodes of one graph, subgraph or function body into a builder.
#pragma once

#include <onnx/onnx_pb.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/frontends/onnx/importer.h"
#include "compiler/frontends/onnx/model_message.h"
#include "compiler/frontends/onnx/node.h"

namespace fornax::onnx_frontend {

// What all graphs of one model share.
struct ModelContext {
    const onnx::ModelProto& model;
    const ImportOptions& options;
    std::string file;
    std::string directory;
    std::map<std::string, int64_t> versions;  // of the operator sets, by domain
    std::map<std::string, const onnx::FunctionProto*> functions;
    // Nodes imported so far, unrolled and inlined ones again each time, in primitives of graphs
    // where they are more than one.
    size_t imported_nodes = 0;
    int64_t depth = 0;
    // Finds the data of initializers that hold none; null if all do.
    const InitializerValues* values = nullptr;
};

// "ai.onnx" is the empty domain.
std::string NormalDomain(const std::string& domain);
std::string FunctionKey(const std::string& domain, const std::string& name);
// The functions of the model, by key.
std::map<std::string, const onnx::FunctionProto*> FunctionsOf(const onnx::ModelProto& model);

// The names that a subgraph reads from the graphs around it.
std::set<std::string> OuterNames(const onnx::GraphProto& graph);

using AttributeMap = std::map<std::string, const onnx::AttributeProto*>;

class GraphImporter {
  public:
    // `outer` is the graph around a subgraph; its names can be used. `attributes` are what a
    // function was called with.
    GraphImporter(ModelContext& context,
                  Builder& builder,
                  GraphImporter* outer = nullptr,
                  const AttributeMap* attributes = nullptr)
        : context_(context), builder_(builder), outer_(outer), attributes_(attributes) {}

    ModelContext& context() { return context_; }
    Builder& builder() { return builder_; }
    // What a ref_attr_name stands for, or null.
    const onnx::AttributeProto* FunctionAttribute(const std::string& name) const;

    void Name(const std::string& name, Item item);
    // Null if there is none.
    const Item* Lookup(const std::string& name) const;

    // `taken`, if not null, is the same graph, which is imported only once and loses its weights.
    void ImportInitializers(const onnx::GraphProto& graph, onnx::GraphProto* taken = nullptr);
    // What stands for a value of a node that cannot be imported, if there is something.
    using Replacement = std::function<std::optional<Item>(const std::string& name)>;
    // Where a node is not supported, those behind it are imported before this throws NodeErrors, as
    // far as they do not depend on it or its values have a replacement.
    void ImportNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                     const Replacement& replacement = {});
    // CheckNodes() of the nodes of the model, with replacements for values of nodes that are not
    // taken.
    NodeCheck CheckModelNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                              const NodeFilter& filter,
                              const Replacement& replacement);
    // Imports a subgraph in place, with these as its inputs; gives its outputs.
    std::vector<Item> Inline(const onnx::GraphProto& graph, const std::vector<Item>& inputs);
    // The values of outer names that a body takes as operands, in the order of the body's inputs
    // behind its own. Constants are copied, which costs nothing, and are not among them.
    struct Captures {
        struct Entry {
            std::string name;
            Item item;
            size_t first = 0;  // place in `operands` of the first tensor in the item
        };
        std::vector<Entry> entries;
        Vals operands;
    };
    Captures Capture(const std::set<std::string>& names) const;
    // Makes the body of a node: its inputs are like `inputs`, then like the captures' operands. The
    // function gets an importer into the body, which knows the captured names.
    graph::Body MakeBody(
        const std::string& name,
        const Vals& inputs,
        const Captures& captures,
        size_t varying,
        const std::function<Vals(GraphImporter& body, const Vals& inputs)>& function);

  private:
    // With errors that name the node.
    void ImportNamedNode(const onnx::NodeProto& node);
    void ImportNode(const onnx::NodeProto& node);
    void ImportFunction(const onnx::NodeProto& node, const onnx::FunctionProto& function);
    // Fails if the model has too many with these.
    void CountNodes(size_t count);

    ModelContext& context_;
    Builder& builder_;
    GraphImporter* outer_;
    const AttributeMap* attributes_;
    std::unordered_map<std::string, Item> items_;
};

}  // namespace fornax::onnx_frontend
