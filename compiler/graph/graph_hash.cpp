// Feeds a graph to the hash, field by field.
#include "compiler/graph/graph_hash.h"

#include "compiler/graph/compiler_sources.h"
#include "compiler/graph/ir/operation_key.h"
#include "compiler/graph/plan/plan_file.h"

namespace fornax::graph {
namespace {

class GraphHasher {
  public:
    explicit GraphHasher(uint64_t max_constant) : max_constant_(max_constant) {
        hasher_.Append("fornax graph");
        hasher_.Append(CompilerDigest());
    }

    void Append(const CompileOptions& options) {
        // Names all fields: with another one, this does not compile until it is hashed too.
        const auto& [strict, dynamic_sizes, precision, bfloat16_products, serial] = options;
        hasher_.Append(strict)
            .Append(precision)
            .Append(bfloat16_products)
            .Append(serial)
            .AppendListSize(dynamic_sizes.size());
        for (const std::string& name : dynamic_sizes) {
            hasher_.Append(name);
        }
    }

    void Append(const Graph& graph) {
        hasher_.Append(graph.name());
        AppendSizes(graph.sizes());
        hasher_.AppendListSize(graph.values().size());
        for (const Value& value : graph.values()) {
            AppendValue(value);
        }
        hasher_.AppendListSize(graph.nodes().size());
        for (const Node& node : graph.nodes()) {
            AppendNode(node);
        }
        AppendIds(graph.inputs());
        hasher_.AppendListSize(graph.outputs().size());
        for (const Output& output : graph.outputs()) {
            hasher_.Append(output.name).Append(output.value.value());
        }
    }

    Hash128 Finish() const { return hasher_.Finish(); }

  private:
    void AppendIds(std::span<const ValueId> ids) {
        hasher_.AppendListSize(ids.size());
        for (const ValueId id : ids) {
            hasher_.Append(id.value());
        }
    }

    void AppendSizes(const SizeFacts& sizes) {
        hasher_.AppendListSize(sizes.hints().size());
        for (const auto& [symbol, hint] : sizes.hints()) {
            hasher_.Append(symbol.name()).Append(hint);
        }
        hasher_.AppendListSize(sizes.ranges().size());
        for (const auto& [symbol, range] : sizes.ranges()) {
            hasher_.Append(symbol.name()).Append(range.low).Append(range.high);
        }
        hasher_.AppendListSize(sizes.guards().size());
        for (const Guard& guard : sizes.guards()) {
            hasher_.Append(guard.relation);
            hasher_.Append(guard.a.ToString()).Append(guard.b.ToString());
        }
    }

    void AppendValue(const Value& value) {
        hasher_.Append(value.name);
        hasher_.Append(value.kind);
        hasher_.Append(value.type.element);
        hasher_.AppendListSize(value.type.shape.rank());
        for (const Expr& dim : value.type.shape.dims()) {
            hasher_.Append(dim.ToString());
        }
        hasher_.Append(value.producer.value()).Append(value.result_index);
        if (value.kind == ValueKind::kConstant) {
            AppendConstant(value.constant);
        }
    }

    void AppendConstant(const Tensor& tensor) {
        if (tensor.strings != nullptr) {
            hasher_.AppendListSize(tensor.strings->size());
            for (const std::string& text : *tensor.strings) {
                hasher_.Append(text);
            }
        }
        if (tensor.data) {
            hasher_.Append(uint64_t{tensor.data->size()});
            if (tensor.data->size() <= max_constant_) {
                hasher_.AppendBytes(std::as_bytes(*tensor.data));
            }
        }
    }

    void AppendNode(const Node& node) {
        hasher_.Append(node.name);
        hasher_.Append(OperationKey(node.operation));
        AppendIds(node.operands);
        AppendIds(node.results);
        hasher_.AppendListSize(node.bodies.size());
        for (const Body& body : node.bodies) {
            Append(*body);
        }
    }

    Hasher hasher_;
    const uint64_t max_constant_;
};

Hash128 Hash(const Graph& graph, const CompileOptions& options, uint64_t max_constant) {
    GraphHasher hasher(max_constant);
    hasher.Append(options);
    hasher.Append(graph);
    return hasher.Finish();
}

}  // namespace

Hash128 CompilerDigest() {
    Hasher hasher;
    hasher.Append("fornax compiler " FORNAX_VERSION);
    hasher.Append(kPlanFormatVersion);
    hasher.Append(kCompilerSources);
    return hasher.Finish();
}

Hash128 HashGraph(const Graph& graph, const CompileOptions& options) {
    return Hash(graph, options, UINT64_MAX);
}

Hash128 HashStructure(const Graph& graph, const CompileOptions& options) {
    return Hash(graph, options, kMaxStructureConstant);
}

}  // namespace fornax::graph
