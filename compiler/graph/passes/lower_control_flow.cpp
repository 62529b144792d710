// Conditions become selections, loops of known length their iterations.
#include <algorithm>

#include "compiler/graph/passes/cloner.h"
#include "compiler/graph/passes/passes.h"

namespace fornax::graph {
namespace {

constexpr int64_t kMaxIterations = 1024;
// A limit for all loops of a graph together. It counts primitives, as a composite may be hundreds
// of them.
constexpr size_t kMaxUnrolledNodes = 20000;

// Whether nothing in the graph has to run exactly when it is reached.
bool IsPure(const Graph& graph) {
    return std::all_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) {
        const bool effect = Is<op::HostCall>(node.operation) || Is<op::ReadState>(node.operation) ||
                            Is<op::WriteState>(node.operation);
        return !effect && std::all_of(node.bodies.begin(), node.bodies.end(),
                                      [](const Body& body) { return IsPure(*body); });
    });
}

bool HasStrings(const Graph& graph) {
    return std::any_of(graph.values().begin(), graph.values().end(), [](const Value& value) {
        return value.type.element == ElementType::kString;
    });
}

std::optional<int64_t> ConstantInteger(const Graph& graph, ValueId value) {
    const Value& source = graph[value];
    if (source.kind != ValueKind::kConstant || source.type.shape.rank() != 0) {
        return std::nullopt;
    }
    return source.constant.At(0).integer;
}

// Whether a loop body goes on whatever it computes: its condition is a constant true.
bool AlwaysGoesOn(const Graph& body) {
    return ConstantInteger(body, body.outputs()[0].value) == 1;
}

class ControlFlowLowering {
  public:
    ControlFlowLowering(Cloner& cloner, Graph& to, const KeepLoop& keep, size_t& unrolled_nodes)
        : cloner_(cloner), to_(to), keep_(keep), unrolled_nodes_(unrolled_nodes) {}

    Status Lower(const Node& node) {
        if (Is<op::If>(node.operation)) {
            return LowerIf(node);
        }
        if (const auto* loop = std::get_if<op::Loop>(&node.operation)) {
            return LowerLoop(node, *loop);
        }
        return cloner_.CopyNode(node);
    }

  private:
    void SetResults(const Node& node, const std::vector<ValueId>& results) {
        for (size_t i = 0; i < node.results.size(); ++i) {
            cloner_.Set(node.results[i], results[i]);
        }
    }

    Result<std::vector<ValueId>> Inline(const Graph& body, const std::vector<ValueId>& operands) {
        FORNAX_ASSIGN_OR_RETURN(const Graph lowered, LowerControlFlow(body, keep_));
        return InlineBody(lowered, operands, to_);
    }

    Status LowerIf(const Node& node) {
        const std::vector<ValueId> operands = cloner_.Map(node.operands);
        const std::vector<ValueId> inputs(operands.begin() + 1, operands.end());
        if (const auto condition = ConstantInteger(to_, operands[0])) {
            FORNAX_ASSIGN_OR_RETURN(const std::vector<ValueId> results,
                                    Inline(*node.bodies[*condition != 0 ? 0 : 1], inputs));
            SetResults(node, results);
            return OkStatus();
        }
        if (!std::all_of(node.bodies.begin(), node.bodies.end(),
                         [](const Body& body) { return IsPure(*body) && !HasStrings(*body); })) {
            return cloner_.CopyNode(node);
        }
        FORNAX_ASSIGN_OR_RETURN(const std::vector<ValueId> taken, Inline(*node.bodies[0], inputs));
        FORNAX_ASSIGN_OR_RETURN(const std::vector<ValueId> other, Inline(*node.bodies[1], inputs));
        std::vector<ValueId> results;
        for (size_t i = 0; i < taken.size(); ++i) {
            FORNAX_ASSIGN_OR_RETURN(const ValueId selected,
                                    Select(node.name, operands[0], taken[i], other[i]));
            results.push_back(selected);
        }
        SetResults(node, results);
        return OkStatus();
    }

    Result<ValueId> AddNode(const std::string& name,
                            Operation operation,
                            std::vector<ValueId> operands) {
        FORNAX_ASSIGN_OR_RETURN(const NodeId node,
                                to_.AddNode(name, std::move(operation), std::move(operands)));
        return to_[node].results[0];
    }

    // One value of a or b by a condition without dimensions.
    Result<ValueId> Select(const std::string& name, ValueId condition, ValueId a, ValueId b) {
        const Shape shape = to_.ShapeOf(a);
        Shape ones;
        ones.mutable_dims().assign(shape.rank(), Expr(1));
        if (shape.rank() > 0) {
            FORNAX_ASSIGN_OR_RETURN(condition, AddNode(name, op::Reshape{ones}, {condition}));
            FORNAX_ASSIGN_OR_RETURN(condition, AddNode(name, op::Broadcast{shape}, {condition}));
        }
        return AddNode(name, op::Map{ScalarFunction::kSelect}, {condition, a, b});
    }

    // The body is lowered once, whatever becomes of the loop: else each loop inside of it would be
    // lowered twice for each one around it.
    Status LowerLoop(const Node& node, const op::Loop& loop) {
        const std::vector<ValueId> operands = cloner_.Map(node.operands);
        const std::optional<int64_t> count = ConstantInteger(to_, operands[0]);
        const bool known = count && *count >= 0 && *count <= kMaxIterations &&
                           ConstantInteger(to_, operands[1]) == 1 && !HasStrings(*node.bodies[0]) &&
                           // Each iteration would tell the same symbols.
                           SizesToldWithin(*node.bodies[0]).empty();
        const bool pure = IsPure(*node.bodies[0]);
        if (!known && !pure) {
            return cloner_.CopyNode(node);
        }
        FORNAX_ASSIGN_OR_RETURN(Graph body, LowerBody(*node.bodies[0], pure));
        if (pure) {
            FORNAX_ASSIGN_OR_RETURN(
                const NodeId kept,
                to_.AddNode(node.name, loop, operands, {std::make_shared<const Graph>(body)}));
            if (keep_(to_, to_[kept])) {
                to_.sizes().Merge(to_[kept].bodies[0]->sizes());
                SetResults(node, to_[kept].results);
                return OkStatus();
            }
            // What nobody uses is removed.
        }
        const size_t nodes = known ? static_cast<size_t>(*count) * body.nodes().size() : 0;
        if (!known || !AlwaysGoesOn(body) || nodes > kMaxUnrolledNodes - unrolled_nodes_) {
            return cloner_.CopyNode(node);
        }
        unrolled_nodes_ += nodes;
        std::vector<ValueId> inputs(operands.begin() + 1, operands.end());
        for (int64_t i = 0; i < *count; ++i) {
            inputs[0] = to_.AddConstant(node.name, Tensor::FromIntegers({}, std::span(&i, 1)));
            FORNAX_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                                    InlineBody(body, inputs, to_));
            std::copy(outputs.begin() + 1, outputs.end(), inputs.begin() + 1);
        }
        SetResults(node, {inputs.begin() + 1, inputs.begin() + 1 + loop.carried});
        return OkStatus();
    }

    // A loop's body in primitives.
    Result<Graph> LowerBody(const Graph& source, bool pure) {
        const auto keep_none = [](const Graph&, const Node&) { return false; };
        FORNAX_ASSIGN_OR_RETURN(Graph body, InlineComposites(source, keep_none));
        if (!pure) {
            return LowerControlFlow(body, keep_);
        }
        FORNAX_ASSIGN_OR_RETURN(body, Simplify(body));
        FORNAX_ASSIGN_OR_RETURN(body, LowerControlFlow(body, keep_));
        return Simplify(body);
    }

    Cloner& cloner_;
    Graph& to_;
    const KeepLoop& keep_;
    size_t& unrolled_nodes_;
};

}  // namespace

Result<Graph> LowerControlFlow(const Graph& graph, const KeepLoop& keep) {
    size_t unrolled_nodes = 0;
    return RewriteGraph(graph, [&](const Node& node, Cloner& cloner, Graph& to) {
        return ControlFlowLowering(cloner, to, keep, unrolled_nodes).Lower(node);
    });
}

}  // namespace fornax::graph
