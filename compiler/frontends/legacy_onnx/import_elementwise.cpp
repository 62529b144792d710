// Elementwise operators: their import functions, one template for the functions of one and of two
// values.
#include <limits>

#include <fmt/format.h>

#include "compiler/frontends/legacy_onnx/node_importer.h"

namespace fornax::legacy_onnx {

using legacy_graph::Activation;
using legacy_graph::BinaryFunction;
using legacy_graph::UnaryFunction;
using legacy_graph::ValueId;

template <UnaryFunction function>
Status ImportUnary(NodeImporter& node) {
    return node.SetOutput(node.Add(legacy_graph::op::Unary{{function}}, {node.Input(0)}));
}
template Status ImportUnary<UnaryFunction::kAbs>(NodeImporter&);
template Status ImportUnary<UnaryFunction::kErf>(NodeImporter&);
template Status ImportUnary<UnaryFunction::kExp>(NodeImporter&);
template Status ImportUnary<UnaryFunction::kLog>(NodeImporter&);
template Status ImportUnary<UnaryFunction::kNegate>(NodeImporter&);
template Status ImportUnary<UnaryFunction::kReciprocal>(NodeImporter&);
template Status ImportUnary<UnaryFunction::kRelu>(NodeImporter&);
template Status ImportUnary<UnaryFunction::kSigmoid>(NodeImporter&);
template Status ImportUnary<UnaryFunction::kSqrt>(NodeImporter&);
template Status ImportUnary<UnaryFunction::kTanh>(NodeImporter&);

// Max, Min and Sum take any number of inputs, the others two.
template <BinaryFunction function>
Status ImportBinary(NodeImporter& node) {
    ValueId result = node.Input(0);
    for (size_t i = 1; i < node.input_count(); ++i) {
        if (!node.HasInput(i)) {
            return Error{ErrorCode::kInvalidArgument, fmt::format("its input {} is missing", i)};
        }
        FORNAX_ASSIGN_OR_RETURN(
            result, node.Add(legacy_graph::op::Binary{function, {}}, {result, node.Input(i)}));
    }
    return node.SetOutput(result);
}
template Status ImportBinary<BinaryFunction::kAdd>(NodeImporter&);
template Status ImportBinary<BinaryFunction::kSub>(NodeImporter&);
template Status ImportBinary<BinaryFunction::kMul>(NodeImporter&);
template Status ImportBinary<BinaryFunction::kDiv>(NodeImporter&);
template Status ImportBinary<BinaryFunction::kMax>(NodeImporter&);
template Status ImportBinary<BinaryFunction::kMin>(NodeImporter&);
template Status ImportBinary<BinaryFunction::kPow>(NodeImporter&);

namespace {

// A bound of Clip: an attribute before version 11, a scalar input since.
Result<float> ClipBound(NodeImporter& node, size_t input, const char* attribute, float otherwise) {
    if (node.opset() < 11) {
        return node.Float(attribute, otherwise);
    }
    if (!node.HasInput(input)) {
        return otherwise;
    }
    FORNAX_ASSIGN_OR_RETURN(const std::vector<float> bound, node.ConstantFloats(input, attribute));
    if (bound.size() != 1) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("its {} has {} elements instead of one", attribute, bound.size())};
    }
    return bound[0];
}

}  // namespace

Status ImportClip(NodeImporter& node) {
    Activation clip{UnaryFunction::kClip};
    constexpr float kInfinity = std::numeric_limits<float>::max();
    FORNAX_ASSIGN_OR_RETURN(clip.a, ClipBound(node, 1, "min", -kInfinity));
    FORNAX_ASSIGN_OR_RETURN(clip.b, ClipBound(node, 2, "max", kInfinity));
    return node.SetOutput(node.Add(legacy_graph::op::Unary{clip}, {node.Input(0)}));
}

Status ImportLeakyRelu(NodeImporter& node) {
    const Activation leaky{UnaryFunction::kLeakyRelu, node.Float("alpha", 0.01f)};
    return node.SetOutput(node.Add(legacy_graph::op::Unary{leaky}, {node.Input(0)}));
}

Status ImportIdentity(NodeImporter& node) {
    return node.SetOutput(node.Input(0));
}

}  // namespace fornax::legacy_onnx
