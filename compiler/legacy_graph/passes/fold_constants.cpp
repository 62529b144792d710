// FoldConstants: computes on the host what does not depend on inputs.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "compiler/legacy_graph/passes/passes.h"

namespace fornax::legacy_graph {
namespace {

// Folding must not make the plan much larger than the model: by this much in all.
constexpr uint64_t kMaxGrowthBytes = 1 << 20;

float Apply(const Activation& activation, float x) {
    switch (activation.function) {
        case UnaryFunction::kIdentity:
            return x;
        case UnaryFunction::kRelu:
            return std::max(x, 0.0f);
        case UnaryFunction::kClip:
            return std::min(std::max(x, activation.a), activation.b);
        case UnaryFunction::kSigmoid:
            return 1 / (1 + std::exp(-x));
        case UnaryFunction::kTanh:
            return std::tanh(x);
        case UnaryFunction::kExp:
            return std::exp(x);
        case UnaryFunction::kSqrt:
            return std::sqrt(x);
        case UnaryFunction::kNegate:
            return -x;
        case UnaryFunction::kAbs:
            return std::abs(x);
        case UnaryFunction::kErf:
            return std::erf(x);
        case UnaryFunction::kLeakyRelu:
            return x < 0 ? activation.a * x : x;
        case UnaryFunction::kLog:
            return std::log(x);
        case UnaryFunction::kReciprocal:
            return 1 / x;
        case UnaryFunction::kSilu:
            return x / (1 + std::exp(-x));
    }
    return x;
}

float Apply(BinaryFunction function, float a, float b) {
    switch (function) {
        case BinaryFunction::kAdd:
            return a + b;
        case BinaryFunction::kSub:
            return a - b;
        case BinaryFunction::kMul:
            return a * b;
        case BinaryFunction::kDiv:
            return a / b;
        case BinaryFunction::kMax:
            return std::max(a, b);
        case BinaryFunction::kMin:
            return std::min(a, b);
        case BinaryFunction::kPow:
            return std::pow(a, b);
    }
    return a;
}

// Walks the elements of `shape` in order and calls visit(offset) with each one's position in an
// operand that has these strides along the axes of `shape`.
template <typename Visit>
void ForEachOffset(const Shape& shape, const std::vector<uint32_t>& strides, Visit visit) {
    std::vector<uint32_t> coordinates(shape.rank(), 0);
    uint64_t offset = 0;
    for (uint32_t i = 0; i < shape.elements(); ++i) {
        visit(offset);
        for (size_t axis = shape.rank(); axis-- > 0;) {
            offset += strides[axis];
            if (++coordinates[axis] < shape[axis]) {
                break;
            }
            offset -= uint64_t{strides[axis]} * shape[axis];
            coordinates[axis] = 0;
        }
    }
}

std::vector<uint8_t> ToBytes(std::span<const float> values) {
    std::vector<uint8_t> bytes(values.size_bytes());
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

std::vector<uint8_t> FoldTranspose(const op::Transpose& transpose,
                                   const Value& operand,
                                   const Shape& result) {
    const Shape& shape = operand.type.shape;
    std::vector<uint32_t> strides;
    for (uint32_t axis : transpose.permutation) {
        strides.push_back(shape.ElementsBetween(axis + 1, shape.rank()));
    }
    const size_t size = SizeBytes(operand.type.type);
    std::vector<uint8_t> bytes;
    bytes.reserve(operand.data->size());
    ForEachOffset(result, strides, [&](uint64_t offset) {
        const uint8_t* element = operand.data->data() + offset * size;
        bytes.insert(bytes.end(), element, element + size);
    });
    return bytes;
}

std::vector<uint8_t> FoldUnary(const op::Unary& unary, const Value& operand) {
    std::vector<float> values;
    for (float x : Floats(operand)) {
        values.push_back(Apply(unary.activation, x));
    }
    return ToBytes(values);
}

std::vector<uint8_t> FoldBinary(const op::Binary& binary,
                                const Value& a,
                                const Value& b,
                                const Shape& result) {
    std::vector<float> values;
    ForEachOffset(result, BroadcastStrides(a.type.shape, result),
                  [&](uint64_t offset) { values.push_back(Floats(a)[offset]); });
    size_t i = 0;
    ForEachOffset(result, BroadcastStrides(b.type.shape, result), [&](uint64_t offset) {
        values[i] = Apply(binary.activation, Apply(binary.function, values[i], Floats(b)[offset]));
        ++i;
    });
    return ToBytes(values);
}

}  // namespace

void FoldConstants(Graph& graph) {
    uint64_t growth_left = kMaxGrowthBytes;
    for (uint32_t i = 0; i < graph.nodes().size(); ++i) {
        const Node& node = graph.nodes()[i];
        uint64_t operand_bytes = 0;
        bool constant = true;
        for (ValueId operand : node.operands) {
            constant = constant && graph[operand].kind == ValueKind::kConstant;
            operand_bytes += graph[operand].type.size_bytes();
        }
        const Value& result = graph[node.result];
        const uint64_t size = result.type.size_bytes();
        if (!constant || size > operand_bytes + growth_left) {
            continue;
        }
        growth_left -= size > operand_bytes ? size - operand_bytes : 0;
        const Value& first = graph[node.operands[0]];
        const Shape& shape = result.type.shape;
        if (std::holds_alternative<op::Reshape>(node.operation)) {
            graph.MakeConstant(node.result, *first.data);
        } else if (const auto* transpose = std::get_if<op::Transpose>(&node.operation)) {
            graph.MakeConstant(node.result, FoldTranspose(*transpose, first, shape));
        } else if (const auto* unary = std::get_if<op::Unary>(&node.operation)) {
            graph.MakeConstant(node.result, FoldUnary(*unary, first));
        } else if (const auto* binary = std::get_if<op::Binary>(&node.operation)) {
            graph.MakeConstant(node.result,
                               FoldBinary(*binary, first, graph[node.operands[1]], shape));
        }
    }
}

}  // namespace fornax::legacy_graph
