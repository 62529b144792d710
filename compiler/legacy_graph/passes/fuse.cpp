// Fuse: one walk over the nodes; each looks at the node that computes its operand.
#include <algorithm>
#include <optional>

#include "compiler/legacy_graph/passes/passes.h"
#include "compiler/legacy_graph/passes/rewrite.h"

namespace fornax::legacy_graph {
namespace {

// The activation of an operator that can carry one.
Activation* ActivationOf(Operator& operation) {
    if (auto* conv = std::get_if<op::Conv>(&operation)) {
        return &conv->activation;
    }
    if (auto* matmul = std::get_if<op::MatMul>(&operation)) {
        return &matmul->activation;
    }
    if (auto* binary = std::get_if<op::Binary>(&operation)) {
        return &binary->activation;
    }
    return nullptr;
}

class Fuser {
  public:
    explicit Fuser(Graph& graph) : graph_(graph), uses_(graph.CountUses()), replacements_(graph) {}

    void Run() {
        for (uint32_t i = 0; i < graph_.nodes().size(); ++i) {
            Node& node = graph_.MutableNode(NodeId(i));
            replacements_.Update(node);
            if (graph_[node.result].kind != ValueKind::kNodeResult) {
                continue;  // folded to a constant
            }
            if (std::holds_alternative<op::Unary>(node.operation)) {
                FuseActivation(node);
            } else if (std::holds_alternative<op::Binary>(node.operation)) {
                FuseConstantOperand(node);
            }
        }
        replacements_.Finish(graph_);
    }

  private:
    // The producer of a value if nothing else uses the value and no activation is in between.
    Node* OpenProducer(ValueId id) {
        if (graph_[id].kind != ValueKind::kNodeResult || uses_[id.value()] != 1) {
            return nullptr;
        }
        Node& producer = graph_.MutableNode(graph_[id].producer);
        const Activation* activation = ActivationOf(producer.operation);
        return activation != nullptr && activation->function == UnaryFunction::kIdentity ? &producer
                                                                                         : nullptr;
    }

    // `node` is done by `producer` from now on.
    void Absorb(Node& producer, const Node& node) {
        producer.name += "+" + node.name;
        graph_.Rename(producer.result, graph_[node.result].name);
        uses_[producer.result.value()] = uses_[node.result.value()];
        replacements_.Replace(node.result, producer.result);
    }

    void FuseActivation(const Node& node) {
        if (Node* producer = OpenProducer(node.operands[0])) {
            *ActivationOf(producer->operation) = std::get<op::Unary>(node.operation).activation;
            Absorb(*producer, node);
        }
    }

    void FuseConstantOperand(const Node& node) {
        const op::Binary& binary = std::get<op::Binary>(node.operation);
        const bool add = binary.function == BinaryFunction::kAdd;
        if ((!add && binary.function != BinaryFunction::kMul) ||
            binary.activation.function != UnaryFunction::kIdentity) {
            return;
        }
        for (size_t side = 0; side < 2; ++side) {
            const ValueId constant = node.operands[1 - side];
            Node* producer = OpenProducer(node.operands[side]);
            if (producer == nullptr || graph_[constant].kind != ValueKind::kConstant ||
                !(graph_[producer->result].type == graph_[node.result].type)) {
                continue;
            }
            bool done = false;
            if (std::holds_alternative<op::Conv>(producer->operation)) {
                done = add ? AddToConv(*producer, constant) : ScaleConv(*producer, constant);
            } else if (std::holds_alternative<op::MatMul>(producer->operation)) {
                done = add && AddToMatMul(*producer, constant);
            }
            if (done) {
                Absorb(*producer, node);
                return;
            }
        }
    }

    // The constant's values, one a channel, if it broadcasts along everything but the axis that
    // lies `axis_from_right` before the last, where the tensor has `channels`.
    std::optional<std::vector<float>> PerChannel(ValueId constant,
                                                 size_t axis_from_right,
                                                 uint32_t channels) {
        const Value& value = graph_[constant];
        const Shape& shape = value.type.shape;
        if (shape.elements() == 1) {
            return std::vector<float>(channels, Floats(value)[0]);
        }
        if (shape.elements() != channels || shape.rank() <= axis_from_right ||
            shape[shape.rank() - 1 - axis_from_right] != channels) {
            return std::nullopt;
        }
        return std::vector<float>(Floats(value).begin(), Floats(value).end());
    }

    ValueId NewBias(const Node& node, const std::vector<float>& values) {
        const std::array<int64_t, 1> dims = {static_cast<int64_t>(values.size())};
        return graph_.AddFloats(node.name + ".bias", *Shape::Make(dims), values);
    }

    // Makes the bias the present one plus `values`. False when the present one is not a constant.
    bool AddToBias(Node& node, std::vector<float> values) {
        if (node.operands.size() == 3) {
            const Value& bias = graph_[node.operands[2]];
            if (bias.kind != ValueKind::kConstant) {
                return false;
            }
            for (size_t i = 0; i < values.size(); ++i) {
                values[i] += Floats(bias)[i];
            }
            node.operands.pop_back();
        }
        node.operands.push_back(NewBias(node, values));
        return true;
    }

    bool AddToConv(Node& conv, ValueId constant) {
        std::optional<std::vector<float>> values =
            PerChannel(constant, 2, graph_[conv.result].type.shape[1]);
        return values && AddToBias(conv, std::move(*values));
    }

    bool AddToMatMul(Node& matmul, ValueId constant) {
        const Shape& shape = graph_[matmul.result].type.shape;
        std::optional<std::vector<float>> values = PerChannel(constant, 0, shape[shape.rank() - 1]);
        return values && AddToBias(matmul, std::move(*values));
    }

    bool ScaleConv(Node& conv, ValueId constant) {
        const uint32_t channels = graph_[conv.result].type.shape[1];
        const std::optional<std::vector<float>> factors = PerChannel(constant, 2, channels);
        const bool constant_bias =
            conv.operands.size() < 3 || graph_[conv.operands[2]].kind == ValueKind::kConstant;
        if (!factors || graph_[conv.operands[1]].kind != ValueKind::kConstant || !constant_bias) {
            return false;
        }
        conv.operands[1] = Scaled(conv.operands[1], *factors);
        if (conv.operands.size() == 3) {
            conv.operands[2] = Scaled(conv.operands[2], *factors);
        }
        return true;
    }

    // A new constant: slice i of the old one along its outermost axis times factors[i].
    ValueId Scaled(ValueId constant, const std::vector<float>& factors) {
        const Value old = graph_[constant];  // a copy: values move when one is added
        std::vector<float> values(Floats(old).begin(), Floats(old).end());
        const size_t slice = values.size() / factors.size();
        for (size_t i = 0; i < values.size(); ++i) {
            values[i] *= factors[i / slice];
        }
        return graph_.AddFloats(old.name + ".scaled", old.type.shape, values);
    }

    Graph& graph_;
    std::vector<uint32_t> uses_;
    Replacements replacements_;
};

}  // namespace

void Fuse(Graph& graph) {
    Fuser(graph).Run();
}

}  // namespace fornax::legacy_graph
