// One Evaluate overload an operator, as plain loops over coordinates.
#include "tools/runtime/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace fornax::runtime {
namespace {

using legacy_graph::Shape;
namespace op = legacy_graph::op;
using Coordinates = std::vector<uint32_t>;

struct Tensor {
    Shape shape;
    std::vector<double> values;

    double At(const Coordinates& at) const { return values[Index(at)]; }
    double& At(const Coordinates& at) { return values[Index(at)]; }
    // The element of a tensor that broadcasts to the one that `at` points into.
    double Broadcast(const Coordinates& at) const {
        Coordinates own(at.end() - static_cast<ptrdiff_t>(shape.rank()), at.end());
        for (size_t axis = 0; axis < own.size(); ++axis) {
            own[axis] = shape[axis] == 1 ? 0 : own[axis];
        }
        return At(own);
    }

  private:
    size_t Index(const Coordinates& at) const {
        size_t index = 0;
        for (size_t axis = 0; axis < shape.rank(); ++axis) {
            index = index * shape[axis] + at[axis];
        }
        return index;
    }
};

// Calls visit(coordinates) for every element of the shape, in order.
template <typename Visit>
void ForEach(const Shape& shape, Visit visit) {
    Coordinates at(shape.rank(), 0);
    for (uint32_t i = 0; i < shape.elements(); ++i) {
        visit(at);
        for (size_t axis = shape.rank(); axis != 0; --axis) {
            if (++at[axis - 1] != shape[axis - 1]) {
                break;
            }
            at[axis - 1] = 0;
        }
    }
}

double Apply(const legacy_graph::Activation& activation, double x) {
    switch (activation.function) {
        case legacy_graph::UnaryFunction::kIdentity:
            return x;
        case legacy_graph::UnaryFunction::kRelu:
            return x > 0 ? x : 0;
        case legacy_graph::UnaryFunction::kClip:
            return std::clamp<double>(x, activation.a, activation.b);
        case legacy_graph::UnaryFunction::kSigmoid:
            return 1 / (1 + std::exp(-x));
        case legacy_graph::UnaryFunction::kTanh:
            return std::tanh(x);
        case legacy_graph::UnaryFunction::kExp:
            return std::exp(x);
        case legacy_graph::UnaryFunction::kSqrt:
            return std::sqrt(x);
        case legacy_graph::UnaryFunction::kNegate:
            return -x;
        case legacy_graph::UnaryFunction::kAbs:
            return std::fabs(x);
        case legacy_graph::UnaryFunction::kErf:
            return std::erf(x);
        case legacy_graph::UnaryFunction::kLeakyRelu:
            return x < 0 ? activation.a * x : x;
        case legacy_graph::UnaryFunction::kLog:
            return std::log(x);
        case legacy_graph::UnaryFunction::kReciprocal:
            return 1 / x;
        case legacy_graph::UnaryFunction::kSilu:
            return x / (1 + std::exp(-x));
    }
    return std::numeric_limits<double>::quiet_NaN();
}

double Apply(legacy_graph::BinaryFunction function, double a, double b) {
    switch (function) {
        case legacy_graph::BinaryFunction::kAdd:
            return a + b;
        case legacy_graph::BinaryFunction::kSub:
            return a - b;
        case legacy_graph::BinaryFunction::kMul:
            return a * b;
        case legacy_graph::BinaryFunction::kDiv:
            return a / b;
        case legacy_graph::BinaryFunction::kMax:
            return std::fmax(a, b);
        case legacy_graph::BinaryFunction::kMin:
            return std::fmin(a, b);
        case legacy_graph::BinaryFunction::kPow:
            return std::pow(a, b);
    }
    return std::numeric_limits<double>::quiet_NaN();
}

using Operands = std::vector<const Tensor*>;

// Where element (ky, kx) of the window at output position (oy, ox) lies in the input, padding
// included.
struct Position {
    int64_t y, x;
    bool Inside(const Shape& shape) const {
        return y >= 0 && x >= 0 && y < int64_t{shape[2]} && x < int64_t{shape[3]};
    }
};

Position WindowPosition(const legacy_graph::Window& w,
                        uint32_t oy,
                        uint32_t ox,
                        uint32_t ky,
                        uint32_t kx) {
    return {int64_t{oy} * w.strides[0] - w.pads[0] + int64_t{ky} * w.dilations[0],
            int64_t{ox} * w.strides[1] - w.pads[1] + int64_t{kx} * w.dilations[1]};
}

void Evaluate(const op::Conv& conv, const Operands& operands, Tensor& result) {
    const Tensor &x = *operands[0], &weight = *operands[1];
    const uint32_t group_in = weight.shape[1], group_out = weight.shape[0] / conv.group;
    ForEach(result.shape, [&](const Coordinates& at) {
        double sum = operands.size() == 3 ? operands[2]->values[at[1]] : 0;
        for (uint32_t c = 0; c < group_in; ++c) {
            for (uint32_t ky = 0; ky < weight.shape[2]; ++ky) {
                for (uint32_t kx = 0; kx < weight.shape[3]; ++kx) {
                    const Position p = WindowPosition(conv.window, at[2], at[3], ky, kx);
                    if (p.Inside(x.shape)) {
                        sum += weight.At({at[1], c, ky, kx}) *
                               x.At({at[0], at[1] / group_out * group_in + c,
                                     static_cast<uint32_t>(p.y), static_cast<uint32_t>(p.x)});
                    }
                }
            }
        }
        result.At(at) = Apply(conv.activation, sum);
    });
}

void Evaluate(const op::Pool& pool, const Operands& operands, Tensor& result) {
    const Tensor& x = *operands[0];
    const legacy_graph::Window& w = pool.window;
    ForEach(result.shape, [&](const Coordinates& at) {
        double greatest = -std::numeric_limits<double>::infinity(), sum = 0;
        int inside = 0, padded = 0;
        for (uint32_t ky = 0; ky < w.kernel[0]; ++ky) {
            for (uint32_t kx = 0; kx < w.kernel[1]; ++kx) {
                const Position p = WindowPosition(w, at[2], at[3], ky, kx);
                if (p.Inside(x.shape)) {
                    const double value = x.At(
                        {at[0], at[1], static_cast<uint32_t>(p.y), static_cast<uint32_t>(p.x)});
                    greatest = std::fmax(greatest, value);
                    sum += value;
                    ++inside;
                }
                padded +=
                    p.y < int64_t{x.shape[2]} + w.pads[2] && p.x < int64_t{x.shape[3]} + w.pads[3];
            }
        }
        const bool maximum = pool.kind == op::PoolKind::kMax;
        result.At(at) = maximum ? greatest : sum / (pool.count_include_pad ? padded : inside);
    });
}

void Evaluate(const op::MatMul& matmul, const Operands& operands, Tensor& result) {
    const Tensor &a = *operands[0], &b = *operands[1];
    const uint32_t depth = a.shape[a.shape.rank() - 1];
    ForEach(result.shape, [&](const Coordinates& at) {
        double sum = operands.size() == 3 ? operands[2]->values[at.back()] : 0;
        Coordinates left = at, right = at;
        for (uint32_t k = 0; k < depth; ++k) {
            left.back() = k;
            right[right.size() - 2] = k;
            sum += a.Broadcast(left) * b.Broadcast(right);
        }
        result.At(at) = Apply(matmul.activation, sum);
    });
}

void Evaluate(const op::Unary& unary, const Operands& operands, Tensor& result) {
    for (size_t i = 0; i < result.values.size(); ++i) {
        result.values[i] = Apply(unary.activation, operands[0]->values[i]);
    }
}

void Evaluate(const op::Binary& binary, const Operands& operands, Tensor& result) {
    ForEach(result.shape, [&](const Coordinates& at) {
        result.At(at) = Apply(binary.activation, Apply(binary.function, operands[0]->Broadcast(at),
                                                       operands[1]->Broadcast(at)));
    });
}

void Evaluate(const op::Softmax& softmax, const Operands& operands, Tensor& result) {
    const Tensor& x = *operands[0];
    ForEach(result.shape, [&](const Coordinates& at) {
        Coordinates other = at;
        double sum = 0;
        for (uint32_t i = 0; i < x.shape[softmax.axis]; ++i) {
            other[softmax.axis] = i;
            sum += std::exp(x.At(other) - x.At(at));
        }
        result.At(at) = 1 / sum;
    });
}

void Evaluate(const op::Reduce& reduce, const Operands& operands, Tensor& result) {
    const Tensor& x = *operands[0];
    std::vector<std::vector<double>> lines(result.values.size());
    Tensor numbers = result;  // each element's own index
    for (size_t i = 0; i < numbers.values.size(); ++i) {
        numbers.values[i] = static_cast<double>(i);
    }
    ForEach(x.shape, [&](const Coordinates& at) {
        lines[static_cast<size_t>(numbers.Broadcast(at))].push_back(x.At(at));
    });
    for (size_t i = 0; i < lines.size(); ++i) {
        double sum = 0;
        for (double value : lines[i]) {
            sum += value;
        }
        const auto [least, greatest] = std::minmax_element(lines[i].begin(), lines[i].end());
        switch (reduce.kind) {
            case op::ReduceKind::kSum:
                result.values[i] = sum;
                break;
            case op::ReduceKind::kMean:
                result.values[i] = sum / static_cast<double>(lines[i].size());
                break;
            case op::ReduceKind::kMax:
                result.values[i] = *greatest;
                break;
            case op::ReduceKind::kMin:
                result.values[i] = *least;
                break;
        }
    }
}

void Evaluate(const op::Reshape&, const Operands& operands, Tensor& result) {
    result.values = operands[0]->values;
}

void Evaluate(const op::Transpose& transpose, const Operands& operands, Tensor& result) {
    ForEach(result.shape, [&](const Coordinates& at) {
        Coordinates source(at.size());
        for (size_t axis = 0; axis < at.size(); ++axis) {
            source[transpose.permutation[axis]] = at[axis];
        }
        result.At(at) = operands[0]->At(source);
    });
}

void Evaluate(const op::Concat& concat, const Operands& operands, Tensor& result) {
    uint32_t first = 0;
    for (const Tensor* operand : operands) {
        ForEach(operand->shape, [&](const Coordinates& at) {
            Coordinates place = at;
            place[concat.axis] += first;
            result.At(place) = operand->At(at);
        });
        first += operand->shape[concat.axis];
    }
}

}  // namespace

std::vector<std::vector<float>> Interpret(const legacy_graph::Graph& graph,
                                          const std::vector<std::vector<float>>& inputs) {
    std::vector<Tensor> tensors;
    size_t next_input = 0;
    for (const legacy_graph::Value& value : graph.values()) {
        Tensor tensor{value.type.shape, std::vector<double>(value.type.shape.elements(), 0)};
        if (value.kind == legacy_graph::ValueKind::kInput) {
            tensor.values.assign(inputs[next_input].begin(), inputs[next_input].end()),
                ++next_input;
        } else if (value.kind == legacy_graph::ValueKind::kConstant) {
            tensor.values.assign(legacy_graph::Floats(value).begin(),
                                 legacy_graph::Floats(value).end());
        }
        tensors.push_back(std::move(tensor));
    }
    for (const legacy_graph::Node& node : graph.nodes()) {
        Operands operands;
        for (legacy_graph::ValueId operand : node.operands) {
            operands.push_back(&tensors[operand.value()]);
        }
        Tensor& result = tensors[node.result.value()];
        std::visit([&](const auto& operation) { Evaluate(operation, operands, result); },
                   node.operation);
        for (double& value : result.values) {
            value = static_cast<float>(value);  // as the device stores it
        }
    }
    std::vector<std::vector<float>> outputs;
    for (const legacy_graph::Output& output : graph.outputs()) {
        const std::vector<double>& values = tensors[output.value.value()].values;
        outputs.emplace_back(values.begin(), values.end());
    }
    return outputs;
}

}  // namespace fornax::runtime
