// Quantised tensors: the operators of PT2E, and products by constant integers.
//
// A product by weights that are dequantised is one by the integers: of bytes where its other
// operand is quantised too, else by weights that are decoded as they are read.
#include <algorithm>

#include <fmt/format.h>

#include "compiler/frontends/torch/import_quantised.h"
#include "compiler/graph/build/activations.h"
#include "compiler/graph/build/byte_product.h"
#include "compiler/graph/build/index.h"
#include "compiler/graph/build/product.h"

namespace fornax::torch_frontend {
namespace {

namespace map = graph::map;
namespace op = graph::op;

// Smaller matrices stay in a cache as floats.
constexpr int64_t kLeastCodes = 1 << 14;
constexpr int64_t kMostBlock = 256, kLeastBlock = 16;

// --- Constants -----------------------------------------------------------------------------------

// The tensor in another type and shape.
Tensor ConvertedTensor(const Tensor& from, ElementType to, std::vector<int64_t> dims) {
    uint8_t* data = nullptr;
    Tensor result = Tensor::Zeros(to, std::move(dims), &data);
    for (int64_t i = 0; i < result.count(); ++i) {
        graph::WriteElement(to, graph::ConvertScalar(from.At(i), from.element, to),
                            data + i * graph::BytesOf(to));
    }
    return result;
}

// The value in another type and shape. A constant of any size stays one; the builder computes only
// small ones.
Val Converted(Val value, ElementType to, const Shape& shape) {
    Builder& builder = value.builder();
    const Tensor* constant = builder.ConstantOf(value);
    const std::optional<std::vector<int64_t>> dims = shape.Constants();
    if (constant == nullptr || !dims || value.shape().Volume() != shape.Volume()) {
        return graph::Reshape(graph::Cast(value, to), shape);
    }
    return builder.Constant(ConvertedTensor(*constant, to, *dims));
}

// Codes in four bits if they are constants that fit. Their bounds are no proof: torch does not
// check them.
Val InFourBits(Val codes) {
    const Tensor* known = codes.builder().ConstantOf(codes);
    if (known == nullptr || !graph::IsInteger(codes.element())) {
        return codes;
    }
    for (int64_t i = 0; i < known->count(); ++i) {
        const int64_t code = known->At(i).integer;
        if (code < -8 || code > 7) {
            return codes;
        }
    }
    return codes.builder().Constant(ConvertedTensor(*known, ElementType::kI4, known->dims));
}

// --- Quantising ----------------------------------------------------------------------------------

// round(x * inverse) + zero between the operator's bounds, where `inverse` is 1 / scale in the type
// in which torch divides.
void OutQuantised(Node& node, Val inverse, Val zero, graph::QuantAxis axis) {
    const Val x = graph::Cast(node.In("input"), ElementType::kF32);
    const ElementType to = node.ResultType().element;
    inverse = graph::Cast(inverse, ElementType::kF32);
    Val y = map::Round(x * graph::SpreadScale(inverse, x, axis));
    if (zero) {
        y = y + graph::SpreadScale(graph::Cast(zero, ElementType::kF32), x, axis);
    }
    const auto low = static_cast<double>(node.Int("quant_min"));
    const auto high = static_cast<double>(node.Int("quant_max"));
    y = graph::Min(graph::Max(y, low), high);
    const Val codes = graph::Cast(y, ElementType::kI32);
    // Signed bytes are held as unsigned ones, which is what products multiply.
    node.Out(to == ElementType::kI8
                 ? graph::FlipSign(graph::Cast(codes + 128, ElementType::kU8), to)
                 : codes);
}

// The zero points, in the codes' type if it holds them, as products ask for; nothing if all are 0.
Val ZeroPoints(Val zero, Val codes) {
    if (!zero) {
        return Val();
    }
    if (!graph::IsInteger(zero.element())) {
        FailUnsupported(fmt::format("its zero points are of {}", graph::Name(zero.element())));
    }
    Builder& builder = zero.builder();
    const std::optional<Tensor> known = builder.TryEvaluate(zero);
    if (!known) {
        return zero;
    }
    const Tensor narrow = ConvertedTensor(*known, codes.element(), known->dims);
    bool all_zero = true, unchanged = true;
    for (int64_t i = 0; i < known->count(); ++i) {
        const int64_t point = known->At(i).integer;
        all_zero = all_zero && point == 0;
        unchanged = unchanged && narrow.At(i).integer == point;
    }
    return all_zero ? Val() : builder.Constant(unchanged ? narrow : *known);
}

void OutDequantised(Node& node, Val codes, Val scale, Val zero, graph::QuantAxis axis) {
    const ElementType to = node.ResultType().element;
    node.Out(graph::Dequantise(codes, graph::Cast(scale, to), ZeroPoints(zero, codes), axis, to));
}

Val NumberScale(Node& node) {
    return node.builder().Scalar(ElementType::kF32, node.Float("scale"));
}

Val NumberZero(Node& node) {
    return node.builder().Integer(ElementType::kI64, node.Int("zero_point"));
}

void ImportQuantise(Node& node) {
    const Val inverse = node.builder().Scalar(ElementType::kF32, 1.0 / node.Float("scale"));
    OutQuantised(node, inverse, NumberZero(node), {});
}

void ImportQuantiseByTensors(Node& node) {
    // torch divides in f64 and rounds to f32, which is f32's quotient unless the scale is of f64.
    Val scale = node.In("scale");
    scale = scale.element() == ElementType::kF64 ? scale : graph::Cast(scale, ElementType::kF32);
    OutQuantised(node, 1.0 / scale, node.In("zero_point"), {});
}

void ImportQuantiseChannels(Node& node) {
    Val scales = node.In("scales");
    scales = graph::IsFloat(scales.element()) ? scales : graph::Cast(scales, ElementType::kF32);
    OutQuantised(node, 1.0 / scales, node.In("zero_points"), {.axis = node.Int("axis")});
}

void ImportDequantise(Node& node) {
    OutDequantised(node, node.In("input"), NumberScale(node), NumberZero(node), {});
}

void ImportDequantiseByTensors(Node& node) {
    OutDequantised(node, node.In("input"), node.In("scale"), node.In("zero_point"), {});
}

void ImportDequantiseChannels(Node& node) {
    OutDequantised(node, node.In("input"), node.In("scales"), node.Opt("zero_points"),
                   {.axis = node.Int("axis")});
}

// Rows of groups that have a scale each. Codes of four bits come in bytes.
void ImportDequantiseGroups(Node& node) {
    Val codes = node.In("input");
    int64_t group = node.Int("group_size");
    if (codes.rank() == 2) {
        // A row that is shorter than a group is one.
        group = std::min(group, codes.dim(1).constant().value_or(group));
    }
    if (codes.rank() != 2 || group < 1) {
        FailInvalid(fmt::format("the codes {} have groups of {}", codes.shape().ToString(), group));
    }
    const Shape groups{codes.dim(0), graph::FloorDiv(codes.dim(1), group)};
    Val zero = ZeroPoints(node.Opt("zero_points"), codes);
    zero = zero ? Converted(zero, zero.element(), groups) : zero;
    const bool is_known = !zero || node.builder().ConstantOf(zero) != nullptr;
    if (is_known && node.Int("quant_min") >= -8 && node.Int("quant_max") <= 7) {
        codes = InFourBits(codes);
    }
    const ElementType to = node.ResultType().element;
    const Val scales = Converted(node.In("scales"), to, groups);
    node.Out(graph::Dequantise(codes, scales, zero, {.axis = 1, .block = group}, to));
}

// Bytes of weights with a scale for each column, times x.
void ImportMultiplyBytes(Node& node) {
    const Val x = graph::Cast(node.In("self"), ElementType::kF32);
    const Val scales = graph::Cast(node.In("scales"), ElementType::kF32);
    const Val weights = graph::TransposeMatrix(
        graph::Dequantise(node.In("mat2"), scales, Val(), {.axis = 0}, ElementType::kF32));
    const std::optional<Val> y = ProductOfIntegers(x, weights);
    node.Out(y ? *y : graph::MatMul(x, weights));
}

// --- Products ------------------------------------------------------------------------------------

// A constant matrix of bytes times scales that run along its columns, or are one number.
struct Codes {
    Tensor codes, scale;
    std::optional<Tensor> zero, factor;  // the latter multiplies the scale
    bool transposed = false;             // [n, k]
    Val value;                           // not transposed back

    int64_t depth() const { return codes.dims[transposed ? 1 : 0]; }
    int64_t columns() const { return codes.dims[transposed ? 0 : 1]; }
};

// Whether it makes floats of integers, with one scale for each index at the most.
bool MakesFloats(const graph::Operation& operation) {
    const auto* composite = std::get_if<op::Composite>(&operation);
    return composite != nullptr && composite->name == "dequantise" &&
           std::get<int64_t>(composite->attributes.at("block")) == 0;
}

// The constant that is repeated along the other axis of a matrix; null if the value is no such.
const Tensor* RepeatedAcross(Val value, size_t axis) {
    Builder& builder = value.builder();
    const graph::Graph& graph = builder.graph();
    if (graph.ProducerAs<op::Broadcast>(value.id()) != nullptr) {
        value = Val(builder, graph.Producer(value.id())->operands[0]);
    }
    const Tensor* constant = builder.ConstantOf(value);
    return constant != nullptr && value.rank() == 2 && constant->dims[1 - axis] == 1 ? constant
                                                                                     : nullptr;
}

std::optional<Codes> CodesOf(Val b) {
    Builder& builder = b.builder();
    const graph::Graph& graph = builder.graph();
    if (b.rank() != 2 || b.element() != ElementType::kF32) {
        return std::nullopt;
    }
    Codes result;
    result.value = b;
    const auto* permute = graph.ProducerAs<op::Permute>(b.id());
    if (permute != nullptr && permute->order == std::vector<int64_t>{1, 0}) {
        result.value = Val(builder, graph.Producer(b.id())->operands[0]);
        result.transposed = true;
    }
    const size_t column_axis = result.transposed ? 0 : 1;
    const graph::Node* producer = graph.Producer(result.value.id());
    const auto* product =
        producer == nullptr ? nullptr : std::get_if<op::Map>(&producer->operation);
    if (product != nullptr && product->function == graph::ScalarFunction::kMul) {
        for (const size_t side : {0, 1}) {
            const graph::Node* codes = graph.Producer(producer->operands[side]);
            const Tensor* factor =
                RepeatedAcross(Val(builder, producer->operands[1 - side]), column_axis);
            if (codes != nullptr && factor != nullptr && MakesFloats(codes->operation)) {
                producer = codes;
                result.factor = *factor;
                break;
            }
        }
    }
    if (producer == nullptr || !MakesFloats(producer->operation)) {
        return std::nullopt;
    }
    const Tensor* codes = builder.ConstantOf(Val(builder, producer->operands[0]));
    if (codes == nullptr ||
        (codes->element != ElementType::kI8 && codes->element != ElementType::kU8)) {
        return std::nullopt;
    }
    result.codes = *codes;
    const int64_t axis =
        std::get<int64_t>(std::get<op::Composite>(producer->operation).attributes.at("axis"));
    const auto numbers = [&](size_t operand) -> const Tensor* {
        const Tensor* tensor = builder.ConstantOf(Val(builder, producer->operands[operand]));
        const bool fits = tensor != nullptr &&
                          (tensor->count() == 1 ||
                           (tensor->count() == result.columns() && (axis == 0 || axis == 1) &&
                            static_cast<size_t>(axis) == column_axis));
        return fits ? tensor : nullptr;
    };
    const bool has_zero = producer->operands.size() > 2;
    const Tensor* scale = numbers(1);
    const Tensor* zero = has_zero ? numbers(2) : nullptr;
    if (scale == nullptr || (has_zero && zero == nullptr)) {
        return std::nullopt;
    }
    result.scale = *scale;
    if (zero != nullptr) {
        result.zero = *zero;
    }
    return result;
}

// One number, or one a column, for each block of a column.
Tensor Spread(const Codes& codes, const Tensor& numbers, int64_t blocks) {
    uint8_t* data = nullptr;
    const ElementType element = numbers.element;
    const int64_t columns = codes.columns();
    Tensor spread = Tensor::Zeros(element,
                                  codes.transposed ? std::vector<int64_t>{columns, blocks}
                                                   : std::vector<int64_t>{blocks, columns},
                                  &data);
    for (int64_t i = 0; i < columns * blocks; ++i) {
        const int64_t column = codes.transposed ? i / blocks : i % columns;
        graph::WriteElement(element, numbers.At(numbers.count() == 1 ? 0 : column),
                            data + i * graph::BytesOf(element));
    }
    return spread;
}

// The scales of the columns, or the one of all, with the factors.
Tensor ScalesOf(const Codes& codes) {
    if (!codes.factor) {
        return codes.scale;
    }
    const auto at = [](const Tensor& tensor, int64_t i) {
        return tensor.At(tensor.count() == 1 ? 0 : i).number;
    };
    const int64_t count = std::max(codes.scale.count(), codes.factor->count());
    std::vector<float> products;
    for (int64_t i = 0; i < count; ++i) {
        products.push_back(static_cast<float>(at(codes.scale, i) * at(*codes.factor, i)));
    }
    return Tensor::FromFloats({count}, products);
}

}  // namespace

Val FloatsOfCodes(Val x, ElementType to) {
    const Tensor* codes = x.builder().ConstantOf(x);
    const bool may_be_weights =
        to == ElementType::kF32 && x.rank() == 2 && codes != nullptr &&
        codes->count() >= kLeastCodes &&
        (x.element() == ElementType::kI8 || x.element() == ElementType::kU8);
    return may_be_weights ? graph::Dequantise(x, x.builder().Scalar(to, 1), Val(), {}, to) : x;
}

std::optional<Val> ProductOfIntegers(Val a, Val b) {
    const std::optional<Codes> weights =
        a.element() == ElementType::kF32 && a.rank() > 0 ? CodesOf(b) : std::nullopt;
    if (!weights) {
        return graph::MultiplyBlocks(a, b, false);
    }
    if (!weights->factor) {
        if (const auto y = graph::MultiplyBytes(a, weights->value, weights->transposed)) {
            return y;
        }
    }
    const int64_t depth = weights->depth();
    if (weights->codes.count() < kLeastCodes || !(a.dim(-1) == Expr(depth))) {
        return std::nullopt;
    }
    int64_t block = kMostBlock;
    while (block > kLeastBlock && depth % block != 0) {
        block /= 2;
    }
    const int64_t blocks = (depth + block - 1) / block;
    Builder& builder = a.builder();
    const Val scales = builder.Constant(Spread(*weights, ScalesOf(*weights), blocks));
    const Val zeros =
        weights->zero ? builder.Constant(Spread(*weights, *weights->zero, blocks)) : Val();
    return graph::MultiplyBlocks(
        a,
        graph::Dequantise(builder.Constant(weights->codes), scales, zeros,
                          {.axis = weights->transposed ? 1 : 0, .block = block}, ElementType::kF32),
        weights->transposed);
}

namespace {

constexpr OperatorEntry kOperators[] = {
    {"_weight_int8pack_mm.default", ImportMultiplyBytes},
    {"quantized_decomposed.dequantize_per_channel.default", ImportDequantiseChannels},
    {"quantized_decomposed.dequantize_per_channel_group.default", ImportDequantiseGroups},
    {"quantized_decomposed.dequantize_per_tensor.default", ImportDequantise},
    {"quantized_decomposed.dequantize_per_tensor.tensor", ImportDequantiseByTensors},
    {"quantized_decomposed.quantize_per_channel.default", ImportQuantiseChannels},
    {"quantized_decomposed.quantize_per_tensor.default", ImportQuantise},
    {"quantized_decomposed.quantize_per_tensor.tensor", ImportQuantiseByTensors},
};

}  // namespace

std::span<const OperatorEntry> QuantisedOperators() {
    return kOperators;
}

}  // namespace fornax::torch_frontend
