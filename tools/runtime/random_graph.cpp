// Grows a graph by applying random operators to random values that they fit.
#include "tools/runtime/random_graph.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <string>

namespace fornax::runtime {
namespace {

using legacy_graph::Shape;
using legacy_graph::UnaryFunction;
using legacy_graph::ValueId;
namespace op = legacy_graph::op;

constexpr int kAttempts = 60;
constexpr size_t kNodes = 20;
constexpr uint32_t kMaxElements = 4096;

class Grower {
  public:
    explicit Grower(uint32_t seed) : generator_(seed), graph_("random " + std::to_string(seed)) {}

    legacy_graph::Graph Grow() {
        const uint32_t inputs = 1 + Random(2);
        for (uint32_t i = 0; i < inputs; ++i) {
            values_.push_back(graph_.AddInput("in" + std::to_string(i),
                                              {legacy_graph::DataType::kF32, RandomShape(4)}));
        }
        for (int i = 0; i < kAttempts && graph_.nodes().size() < kNodes; ++i) {
            Attempt();
        }
        // The last value, so that most of the graph is used, and two others.
        graph_.AddOutput("last", values_.back());
        graph_.AddOutput("some", Any());
        graph_.AddOutput("other", Any());
        return std::move(graph_);
    }

  private:
    uint32_t Random(uint32_t bound) { return static_cast<uint32_t>(generator_() % bound); }
    // Later values are likelier, so that graphs grow deep.
    ValueId Any() {
        const auto count = static_cast<uint32_t>(values_.size());
        return values_[count - 1 - std::min(Random(count), Random(count))];
    }
    const Shape& ShapeOf(ValueId id) const { return graph_[id].type.shape; }

    Shape RandomShape(size_t rank) {
        std::vector<int64_t> dims;
        for (size_t i = 0; i < rank; ++i) {
            dims.push_back(1 + Random(7));
        }
        return Shape::Make(dims).value();
    }

    ValueId Constant(const std::vector<int64_t>& dims, float scale) {
        std::uniform_real_distribution<float> uniform(-scale, scale);
        const Shape shape = Shape::Make(dims).value();
        std::vector<float> values(shape.elements());
        for (float& value : values) {
            value = uniform(generator_);
        }
        return graph_.AddFloats("constant", shape, values);
    }

    // Functions that keep small values small.
    legacy_graph::Activation RandomActivation() {
        static constexpr UnaryFunction kFunctions[] = {
            UnaryFunction::kRelu, UnaryFunction::kClip,      UnaryFunction::kSigmoid,
            UnaryFunction::kTanh, UnaryFunction::kNegate,    UnaryFunction::kAbs,
            UnaryFunction::kErf,  UnaryFunction::kLeakyRelu, UnaryFunction::kIdentity};
        return {kFunctions[Random(std::size(kFunctions))], -0.5f, 0.75f};
    }

    std::vector<uint32_t> RandomPermutation(size_t rank) {
        std::vector<uint32_t> permutation(rank);
        std::iota(permutation.begin(), permutation.end(), 0);
        for (size_t i = rank; i > 1; --i) {
            std::swap(permutation[i - 1], permutation[Random(static_cast<uint32_t>(i))]);
        }
        return permutation;
    }

    op::Conv RandomConv(const Shape& x) {
        op::Conv conv;
        for (size_t axis = 0; axis < 2; ++axis) {
            conv.window.kernel[axis] = 1 + Random(3);
            conv.window.strides[axis] = 1 + Random(2);
            conv.window.dilations[axis] = 1 + Random(2);
            conv.window.pads[axis] = Random(3);
            conv.window.pads[axis + 2] = Random(3);
        }
        if (Random(3) == 0) {
            conv.group = x[1];
        }
        return conv;
    }

    // Adds a node if its operands fit; a random choice that does not fit is simply dropped.
    void Add(legacy_graph::Operator operation, std::vector<ValueId> operands) {
        Result<ValueId> result = graph_.AddNode("n" + std::to_string(graph_.nodes().size()),
                                                std::move(operation), std::move(operands));
        if (result.ok()) {
            values_.push_back(*result);
        }
    }

    void Attempt() {
        const ValueId x = Any();
        const Shape shape = ShapeOf(x);
        const auto rank = static_cast<uint32_t>(shape.rank());
        const uint32_t choice = Random(10);
        if (shape.elements() > kMaxElements) {
            Add(op::Reduce{op::ReduceKind::kMean, Random(rank), 1}, {x});
            return;
        }
        switch (choice) {
            case 0:
            case 1: {
                if (rank != 4) {
                    return;
                }
                const op::Conv conv = RandomConv(shape);
                const int64_t out = conv.group == 1 ? 1 + Random(10) : shape[1] * (1 + Random(2));
                const ValueId weight = Constant(
                    {out, shape[1] / conv.group, conv.window.kernel[0], conv.window.kernel[1]},
                    0.3f);
                Add(conv, {x, weight});
                return;
            }
            case 2: {
                op::Pool pool;
                pool.kind = Random(2) == 0 ? op::PoolKind::kMax : op::PoolKind::kAverage;
                pool.window = RandomConv(shape).window;
                pool.ceil_mode = Random(2) == 0;
                pool.count_include_pad = Random(2) == 0;
                Add(pool, {x});
                return;
            }
            case 3: {
                if (rank < 1) {
                    return;
                }
                const int64_t depth = shape[rank - 1];
                Add(op::MatMul{},
                    {x, Random(2) == 0 ? Constant({depth, 1 + Random(12)}, 0.3f) : Any()});
                return;
            }
            case 4:
                Add(op::Unary{RandomActivation()}, {x});
                return;
            case 5:
            case 6: {
                static constexpr legacy_graph::BinaryFunction kFunctions[] = {
                    legacy_graph::BinaryFunction::kAdd, legacy_graph::BinaryFunction::kSub,
                    legacy_graph::BinaryFunction::kMax, legacy_graph::BinaryFunction::kMin,
                    legacy_graph::BinaryFunction::kMul};
                const auto function = kFunctions[Random(std::size(kFunctions))];
                // A bias or factor per channel, or another value that may or may not fit.
                const int64_t channels = rank >= 3 ? shape[rank - 3] : 1;
                const ValueId other = Random(2) == 0 ? Constant({channels, 1, 1}, 0.9f) : Any();
                Add(op::Binary{function, {}}, {x, other});
                return;
            }
            case 7:
                Add(op::Transpose{RandomPermutation(rank)}, {x});
                return;
            case 8:
                Add(op::Softmax{Random(std::max(rank, 1u))}, {x});
                return;
            default:
                Add(op::Concat{Random(std::max(rank, 1u))}, {x, x, Any()});
                return;
        }
    }

    std::mt19937 generator_;
    legacy_graph::Graph graph_;
    std::vector<ValueId> values_;
};

}  // namespace

legacy_graph::Graph RandomGraph(uint32_t seed) {
    return Grower(seed).Grow();
}

}  // namespace fornax::runtime
