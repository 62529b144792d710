// Convolutions of 3 x 3 in Winograd's form, and others by weights of a run with channels last,
// where that is faster.
#include <optional>

#include "compiler/graph/build/build_error.h"
#include "compiler/graph/build/channels_last.h"
#include "compiler/graph/build/winograd.h"
#include "compiler/graph/passes/cloner.h"
#include "compiler/graph/passes/passes.h"

namespace fornax::graph {
namespace {

class Rewriter {
  public:
    Rewriter(const Graph& from, Cloner& cloner, Graph& to)
        : from_(from), cloner_(cloner), to_(to) {}

    Status Visit(const Node& node) {
        const std::optional<SpatialWindow> window = WindowOf(node);
        const bool is_of_winograd = window && HasWinograd(node, *window) && IsFaster(node);
        if (!window || (!is_of_winograd && !IsChannelsLast(node))) {
            return cloner_.CopyNode(node);
        }
        try {
            Builder builder(to_);
            builder.SetName(node.name);
            const Val x(builder, cloner_.Map(node.operands[0]));
            Val y;
            if (HasConstantWeights(node)) {
                y = ConvolveWinograd(x, from_[node.operands[1]].constant, *window);
            } else {
                const Val weights(builder, cloner_.Map(node.operands[1]));
                y = is_of_winograd ? ConvolveWinograd(x, weights, OrderOf(node), *window)
                                   : ConvolveChannelsLast(x, weights, *window);
            }
            if (node.operands.size() > 2) {
                const Val bias(builder, cloner_.Map(node.operands[2]));
                y = y + Reshape(bias, Shape{bias.dim(0), 1, 1});
            }
            cloner_.Set(node.results[0], y.id());
        } catch (const BuildError& error) {
            return Error{ErrorCode::kInternal, error.what()};
        }
        return OkStatus();
    }

  private:
    bool HasConstantWeights(const Node& node) const {
        return from_[node.operands[1]].kind == ValueKind::kConstant;
    }

    static WeightOrder OrderOf(const Node& node) {
        return std::get<op::Composite>(node.operation).name == "conv" ? WeightOrder::kConvolution
                                                                      : WeightOrder::kTransposed;
    }

    // The window of a convolution of images of f32 and of one group.
    std::optional<SpatialWindow> WindowOf(const Node& node) const {
        const auto* composite = std::get_if<op::Composite>(&node.operation);
        if (composite == nullptr ||
            (composite->name != "conv" && composite->name != "conv_transpose")) {
            return std::nullopt;
        }
        const auto list = [&](const char* name) {
            return std::get<std::vector<int64_t>>(composite->attributes.at(name));
        };
        const Shape& weights = from_.ShapeOf(node.operands[1]);
        if (weights.rank() != 4 || !weights.Constants() ||
            std::get<int64_t>(composite->attributes.at("groups")) != 1) {
            return std::nullopt;
        }
        for (const ValueId value : {node.operands[0], node.operands[1], node.results[0]}) {
            if (from_.TypeOf(value).element != ElementType::kF32) {
                return std::nullopt;
            }
        }
        // The attributes have the paddings' hints, which hold for sizes that are constants.
        const Shape& image = from_.ShapeOf(node.operands[0]);
        if (!image[2].constant() || !image[3].constant()) {
            return std::nullopt;
        }
        SpatialWindow window;
        window.strides = list("strides");
        window.dilations = list("dilations");
        window.size = {weights[2], weights[3]};
        const std::vector<int64_t> low = list("low"), high = list("high");
        const bool is_transposed = OrderOf(node) == WeightOrder::kTransposed;
        for (size_t i = 0; i < low.size(); ++i) {
            // A transposed convolution is one by mirrored weights of what reaches into the result.
            window.low.emplace_back(is_transposed ? 2 - low[i] : low[i]);
            window.high.emplace_back(is_transposed ? 2 - high[i] + list("extra")[i] : high[i]);
        }
        return window;
    }

    // A transposed convolution, which gradients by the input are, has Winograd's form if its
    // weights are not constant.
    bool HasWinograd(const Node& node, const SpatialWindow& window) const {
        const std::vector<int64_t> ones = {1, 1};
        return window.size == std::vector<Expr>{3, 3} && window.strides == ones &&
               window.dilations == ones &&
               (OrderOf(node) == WeightOrder::kConvolution || !HasConstantWeights(node));
    }

    bool IsChannelsLast(const Node& node) const {
        const Shape& result = from_.ShapeOf(node.results[0]);
        const Shape& weights = from_.ShapeOf(node.operands[1]);
        const auto hint = [&](const Expr& expr) {
            return static_cast<double>(from_.sizes().Hint(expr));
        };
        return OrderOf(node) == WeightOrder::kConvolution && !HasConstantWeights(node) &&
               IsChannelsLastFaster(hint(result[0] * result[2] * result[3]), hint(result[1]),
                                    hint(weights[1] * weights[2] * weights[3]));
    }

    bool IsFaster(const Node& node) const {
        const auto hint = [&](const Expr& expr) {
            return static_cast<double>(from_.sizes().Hint(expr));
        };
        const Shape& result = from_.ShapeOf(node.results[0]);
        const double channels = hint(from_.ShapeOf(node.operands[0])[1]);
        const double outputs = hint(result[1]);
        const double tiles = hint(result[0] * CeilDiv(result[2], 2) * CeilDiv(result[3], 2));
        return IsWinogradFaster(
            tiles, channels, outputs,
            HasConstantWeights(node) ? WeightSource::kConstant : WeightSource::kRun);
    }

    const Graph& from_;
    Cloner& cloner_;
    Graph& to_;
};

}  // namespace

Result<Graph> MultiplyLess(const Graph& graph) {
    std::optional<Rewriter> rewriter;
    return RewriteGraph(graph, [&](const Node& node, Cloner& cloner, Graph& to) {
        if (!rewriter) {
            rewriter.emplace(graph, cloner, to);
        }
        return rewriter->Visit(node);
    });
}

}  // namespace fornax::graph
