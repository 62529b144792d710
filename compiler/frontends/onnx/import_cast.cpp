// Conversions, and constants of all kinds.
#include <fmt/format.h>

#include "compiler/frontends/onnx/graph_importer.h"
#include "compiler/frontends/onnx/operator_families.h"
#include "compiler/frontends/onnx/tensor_proto.h"

namespace fornax::onnx_frontend {
namespace {

using graph::Overflow;
using graph::Rounding;

bool IsFloat8(ElementType type) {
    switch (type) {
        case ElementType::kF8E4M3FN:
        case ElementType::kF8E4M3FNUZ:
        case ElementType::kF8E5M2:
        case ElementType::kF8E5M2FNUZ:
        case ElementType::kF8E8M0:
        case ElementType::kF4E2M1:
            return true;
        default:
            return false;
    }
}

void Convert(Node& node, ElementType to) {
    const Val x = node.In(0);
    if (x.element() == ElementType::kString || to == ElementType::kString) {
        if (x.element() == to) {
            node.Out(x);
            return;
        }
        node.Out(node.builder().HostCall(to == ElementType::kString ? "to_string" : "from_string",
                                         {}, {x}, {{to, x.shape()}})[0]);
        return;
    }
    // Numbers that narrow integers do not hold keep their low bits.
    if (graph::IsInteger(to) && graph::BitsOf(to) < 8 && graph::IsFloat(x.element())) {
        node.Out(graph::Cast(graph::Cast(x, ElementType::kI32), to));
        return;
    }
    const bool saturate = node.Int("saturate", 1) != 0 || to == ElementType::kF4E2M1;
    Rounding rounding = Rounding::kNearestEven;
    if (to == ElementType::kF8E8M0) {
        const std::string mode = node.Text("round_mode", "up");
        rounding = mode == "up"     ? Rounding::kUp
                   : mode == "down" ? Rounding::kDown
                                    : Rounding::kNearestEven;
    }
    node.Out(graph::Cast(x, to, IsFloat8(to) && saturate ? Overflow::kSaturate : Overflow::kSpecial,
                         rounding));
}

void ImportCast(Node& node) {
    Convert(node, ElementTypeOf(node.Int("to")));
}
void ImportCastLike(Node& node) {
    Convert(node, node.In(1).element());
}
void ImportBitCast(Node& node) {
    node.Out(graph::Bitcast(node.In(0), ElementTypeOf(node.Int("to"))));
}
void ImportIdentity(Node& node) {
    node.Out(0, node.InItem(0));
}

Tensor FromNumbers(ElementType element, std::vector<int64_t> dims, std::span<const double> values) {
    uint8_t* data = nullptr;
    Tensor tensor = Tensor::Zeros(element, std::move(dims), &data);
    for (size_t i = 0; i < values.size(); ++i) {
        graph::WriteElement(element, graph::Scalar::Float(values[i]),
                            data + i * graph::BytesOf(element));
    }
    return tensor;
}

Tensor FromTexts(std::vector<int64_t> dims, std::vector<std::string> texts) {
    Tensor tensor{ElementType::kString, std::move(dims), nullptr, nullptr};
    tensor.strings = std::make_shared<const std::vector<std::string>>(std::move(texts));
    return tensor;
}

void ImportConstant(Node& node) {
    Builder& b = node.builder();
    if (node.HasAttribute("value")) {
        node.Out(b.Constant(node.TensorAttribute("value")));
    } else if (const auto* sparse = node.Find("sparse_value")) {
        node.Out(b.Constant(
            ReadSparseTensor(sparse->sparse_tensor(), node.importer().context().directory)));
    } else if (node.HasAttribute("value_int")) {
        node.Out(b.Integer(ElementType::kI64, node.Int("value_int")));
    } else if (node.HasAttribute("value_ints")) {
        node.Out(b.Integers(node.Ints("value_ints")));
    } else if (node.HasAttribute("value_float")) {
        node.Out(b.Scalar(ElementType::kF32, node.Float("value_float", 0)));
    } else if (node.HasAttribute("value_floats")) {
        const std::vector<double> values = node.Floats("value_floats");
        node.Out(b.Constant(
            FromNumbers(ElementType::kF32, {static_cast<int64_t>(values.size())}, values)));
    } else if (node.HasAttribute("value_string")) {
        node.Out(b.Text(node.Text("value_string", "")));
    } else if (node.HasAttribute("value_strings")) {
        std::vector<std::string> texts = node.Texts("value_strings");
        const int64_t count = static_cast<int64_t>(texts.size());
        node.Out(b.Constant(FromTexts({count}, std::move(texts))));
    } else {
        FailInvalid("it has no value");
    }
}

void ImportConstantOfShape(Node& node) {
    Builder& b = node.builder();
    const std::vector<Expr> dims = node.Sizes(0, "the shape");
    Val value;
    if (node.HasAttribute("value")) {
        const Tensor tensor = node.TensorAttribute("value");
        if (tensor.count() != 1) {
            FailInvalid(fmt::format("its value has {} elements, not 1", tensor.count()));
        }
        value = graph::Reshape(b.Constant(tensor), Shape{});
    } else {
        value = b.Scalar(ElementType::kF32, 0);
    }
    // A short tensor of integers may be a shape, so what is known of its elements is kept.
    const Shape shape{dims};
    const auto volume = shape.Volume().constant();
    const auto known = b.KnownIntegers(value);
    if (known.has_value() && volume.value_or(1000) <= 64) {
        node.Out(b.FromContents(value.element(), shape,
                                std::vector<Expr>(static_cast<size_t>(*volume), (*known)[0])));
        return;
    }
    node.Out(graph::BroadcastTo(value, shape));
}

void ImportEyeLike(Node& node) {
    Builder& b = node.builder();
    const Val x = node.In(0);
    if (x.rank() != 2) {
        FailInvalid(fmt::format("the input {} is not a matrix", x.shape().ToString()));
    }
    const Val row = b.Iota(ElementType::kI64, x.shape(), 0);
    const Val column = b.Iota(ElementType::kI64, x.shape(), 1);
    const Val one = graph::map::Equal(row + b.Integer(ElementType::kI64, node.Int("k", 0)), column);
    node.Out(graph::Cast(one, node.Type("dtype", x.element())));
}

constexpr OperatorEntry kOperators[] = {
    {"BitCast", 1, ImportBitCast},
    {"Cast", 1, ImportCast},
    {"CastLike", 2, ImportCastLike},
    {"Constant", 0, ImportConstant},
    {"ConstantOfShape", 1, ImportConstantOfShape},
    {"EyeLike", 1, ImportEyeLike},
    {"Identity", 0, ImportIdentity},
};

}  // namespace

std::span<const OperatorEntry> CastOperators() {
    return kOperators;
}

}  // namespace fornax::onnx_frontend
