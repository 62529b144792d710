// Fourier transforms by the template for them, where that is faster than a product.
#include <optional>

#include "compiler/graph/build/activations.h"
#include "compiler/graph/build/build_error.h"
#include "compiler/graph/build/fourier.h"
#include "compiler/graph/passes/cloner.h"
#include "compiler/graph/passes/passes.h"

namespace fornax::graph {
namespace {

// The constant that a composite's second operand is.
std::optional<int64_t> LengthOf(const Graph& graph, const Node& node) {
    const Value& value = graph[node.operands[1]];
    if (value.kind == ValueKind::kConstant) {
        return value.constant.At(0).integer;
    }
    const auto* size = graph.ProducerAs<op::SizeOf>(node.operands[1]);
    return size == nullptr ? std::nullopt : size->value.constant();
}

// Along the axis before the last, cut or extended to what the transform takes.
Val Transformed(Val x, int64_t axis, int64_t length, Transform transform) {
    const int64_t taken = transform == Transform::kInverseHalf ? length / 2 + 1 : length;
    std::vector<Expr> low(static_cast<size_t>(x.rank()), Expr(0)), high = low;
    high[static_cast<size_t>(axis)] = taken - x.dim(axis);
    const Val padded = Cast(Pad(x, 0, low, high), ElementType::kF32);
    const int64_t last = x.rank() - 2;
    const Val y = FastTransform(MoveAxis(padded, axis, last), length, transform);
    return Cast(MoveAxis(y, last, axis), x.element());
}

}  // namespace

Result<Graph> TransformFast(const Graph& graph) {
    return RewriteGraph(graph, [&](const Node& node, Cloner& cloner, Graph& to) -> Status {
        const auto* composite = std::get_if<op::Composite>(&node.operation);
        if (composite == nullptr || composite->name != "dft") {
            return cloner.CopyNode(node);
        }
        const std::optional<int64_t> length = LengthOf(graph, node);
        const TensorType& type = graph.TypeOf(node.operands[0]);
        const auto axis = static_cast<size_t>(std::get<int64_t>(composite->attributes.at("axis")));
        Expr rows(1);
        for (size_t i = 0; i + 1 < type.shape.rank(); ++i) {
            rows *= i == axis ? Expr(1) : type.shape[i];
        }
        const bool real = type.shape.dims().back() == Expr(1);
        if (!length || ComputeType(type.element) != ElementType::kF32 ||
            !HasFastTransform(*length, graph.sizes().Hint(rows), real)) {
            return cloner.CopyNode(node);
        }
        try {
            const auto transform =
                static_cast<Transform>(std::get<int64_t>(composite->attributes.at("transform")));
            Builder builder(to);
            builder.SetName(node.name);
            const Val x(builder, cloner.Map(node.operands[0]));
            cloner.Set(node.results[0],
                       Transformed(x, static_cast<int64_t>(axis), *length, transform).id());
        } catch (const BuildError& error) {
            return Error{ErrorCode::kInternal, error.what()};
        }
        return OkStatus();
    });
}

}  // namespace fornax::graph
