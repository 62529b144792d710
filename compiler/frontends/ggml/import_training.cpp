// Gradients, losses and the steps of optimisers.
#include "compiler/frontends/ggml/node.h"
#include "compiler/graph/build/normalise.h"

namespace fornax::ggml_frontend {
namespace {

using graph::Combine;
using graph::ElementType;
using graph::Shape;
using graph::Val;

// The gradient of x in y = softmax(scale * x + mask), from y and its gradient.
Val SoftmaxGradient(const Node& node) {
    const Val dy = node.Float(0), y = node.Float(1);
    return (dy - Sum(dy * y, {3})) * y * node.number(0);
}

// From the gradient of the result and the operand.
Val RmsNormGradient(const Node& node) {
    const Val dz = node.Float(0), x = node.Float(1);
    const auto size = static_cast<double>(node.tensor().ne[0]);
    const double epsilon = node.number(0);
    const Val squares = Sum(x * x, {3});
    const Val share = Sum(x * dz, {3}) / (squares + epsilon * size);
    return (dz - x * share) * map::Rsqrt(squares / size + epsilon);
}

Val SiluGradient(const Node& node) {
    const Val dy = node.Float(0), x = node.Float(1);
    const Val s = map::Sigmoid(x);
    return dy * s * ((1.0 - s) * x + 1.0);
}

double RowsOf(const Tensor& tensor) {
    return static_cast<double>(tensor.ne[1] * tensor.ne[2] * tensor.ne[3]);
}

Val CrossEntropy(const Node& node) {
    const Val logits = node.Float(0), target = node.Float(1);
    const Val sum = Sum(graph::LogSoftmax(logits, 3) * target, {0, 1, 2, 3});
    return Reshape(sum / -RowsOf(node.source(0)), node.shape());
}

Val CrossEntropyGradient(const Node& node) {
    const Val gradient = node.Float(0), logits = node.Float(1), target = node.Float(2);
    return (graph::Softmax(logits, 3) - target) * (gradient / RowsOf(node.source(1)));
}

// Rows that were read are added to where they came from.
Val GetRowsGradient(const Node& node) {
    const Val rows = node.Float(0), index = node.Integer(1);
    const Tensor &of_rows = node.source(0), &of_index = node.source(1);
    if (of_rows.ne[2] != 1 || of_rows.ne[3] != 1 || of_index.count() != of_rows.ne[1]) {
        graph::FailUnsupported("more than one matrix is not covered");
    }
    const Shape shape({of_rows.ne[1], of_rows.ne[0]});
    const Val zeros = node.builder().Full(ElementType::kF32,
                                          Shape({node.tensor().ne[1], node.tensor().ne[0]}), 0);
    const Val result = Scatter(zeros, Reshape(rows, shape), {-1, 1},
                               {Reshape(index, Shape({of_rows.ne[1], 1}))}, Combine::kSum);
    return Reshape(result, node.shape());
}

// The sum of the copies that REPEAT made.
Val RepeatGradient(const Node& node) {
    const Tensor &from = node.source(0), &to = node.tensor();
    std::vector<graph::Expr> split;
    for (size_t d = kDims; d-- > 0;) {
        if (to.ne[d] == 0 || from.ne[d] % to.ne[d] != 0) {
            graph::FailInvalid("the operand is no repetition of the result");
        }
        split.emplace_back(from.ne[d] / to.ne[d]);
        split.emplace_back(to.ne[d]);
    }
    return Reshape(Sum(Reshape(node.Float(0), Shape(split)), {0, 2, 4, 6}, false), node.shape());
}

// --- Steps of optimisers -------------------------------------------------------------------------

// One number of the tensor of parameters, without dimensions.
Val Parameter(Val parameters, int64_t index) {
    return Reshape(SliceAxis(parameters, 3, index, 1), Shape());
}

// Writes the moments too, which are sources 2 and 3.
Val AdamStep(const Node& node) {
    const Val weight = node.Float(0), gradient = node.Float(1), p = node.Float(4);
    if (node.source(4).count() < 7) {
        graph::FailInvalid("the parameters of the optimiser are not seven numbers");
    }
    const Val rate = Parameter(p, 0), beta1 = Parameter(p, 1), beta2 = Parameter(p, 2),
              epsilon = Parameter(p, 3), decay = Parameter(p, 4), beta1h = Parameter(p, 5),
              beta2h = Parameter(p, 6);
    const Val first = node.Float(2) * beta1 + gradient * (1.0 - beta1);
    const Val second = node.Float(3) * beta2 + gradient * gradient * (1.0 - beta2);
    node.WriteSource(2, first);
    node.WriteSource(3, second);
    const Val step = first * beta1h / (map::Sqrt(second * beta2h) + epsilon);
    return weight * (1.0 - rate * decay) - step * rate;
}

Val GradientStep(const Node& node) {
    const Val weight = node.Float(0), gradient = node.Float(1), p = node.Float(2);
    if (node.source(2).count() < 2) {
        graph::FailInvalid("the parameters of the optimiser are not two numbers");
    }
    const Val rate = Parameter(p, 0), decay = Parameter(p, 1);
    return weight * (1.0 - rate * decay) - gradient * rate;
}

constexpr Operator kOperators[] = {
    {"SOFT_MAX_BACK", SoftmaxGradient},
    {"RMS_NORM_BACK", RmsNormGradient},
    {"SILU_BACK", SiluGradient},
    {"CROSS_ENTROPY_LOSS", CrossEntropy},
    {"CROSS_ENTROPY_LOSS_BACK", CrossEntropyGradient},
    {"GET_ROWS_BACK", GetRowsGradient},
    {"REPEAT_BACK", RepeatGradient},
    {"OPT_STEP_ADAMW", AdamStep},
    {"OPT_STEP_SGD", GradientStep},
};

}  // namespace

std::span<const Operator> TrainingOperators() {
    return kOperators;
}

}  // namespace fornax::ggml_frontend
