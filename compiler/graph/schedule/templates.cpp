// Composites that are named after a template: a dispatch of it.
//
// The template's buffers are the composite's operands and results in order. Its parameters are the
// composite's attributes, but for `rows`, which is what the first operand has before its last two
// dimensions.
#include <cassert>

#include "compiler/graph/schedule/own_kernels.h"
#include "compiler/graph/schedule/realize.h"

namespace fornax::graph {
namespace {

// The block of an operand, which a kernel makes unless it is in memory as it is.
BlockId BlockOfOperand(const Graph& graph,
                       const std::vector<bool>& realized,
                       const Node& node,
                       ValueId operand,
                       PlanBuilder& plan) {
    const ValueId storage = StorageOf(graph, operand);
    if (realized[storage.value()]) {
        return plan.BlockOf(storage);
    }
    const TensorType& type = graph.TypeOf(operand);
    const BlockId block = plan.AddBlock(node.name + ".rows", type, BlockKind::kTemporary);
    KernelBuilder builder(graph, realized, "rows");
    const std::vector<Expr> index = builder.AddParallel(type.shape);
    const loop::ScalarId value = builder.At(operand, index);
    builder.Store(builder.AddBuffer(type), index, value);
    plan.AddDispatch(node.name, builder, {block});
    return block;
}

}  // namespace

bool IsOfTemplate(const Graph&, const Node& node) {
    const auto* composite = std::get_if<op::Composite>(&node.operation);
    return composite != nullptr && FindTemplate(composite->name) != nullptr;
}

void AddOfTemplate(const Graph& graph,
                   const std::vector<bool>& realized,
                   const Node& node,
                   PlanBuilder& plan) {
    const auto& composite = std::get<op::Composite>(node.operation);
    const Shape& shape = graph.ShapeOf(node.operands[0]);
    Expr rows(1);
    for (size_t i = 0; i + 2 < shape.rank(); ++i) {
        rows *= shape[i];
    }
    std::vector<Expr> arguments;
    for (const TemplateParameter& parameter : FindTemplate(composite.name)->parameters) {
        const auto attribute = composite.attributes.find(std::string(parameter.name));
        arguments.push_back(attribute == composite.attributes.end()
                                ? rows
                                : Expr(std::get<int64_t>(attribute->second)));
    }
    Result<TemplateKernel> kernel =
        TemplateKernel::Make(composite.name, std::move(arguments), graph.sizes().ranges());
    assert(kernel.ok());
    std::vector<BlockId> blocks;
    for (const ValueId operand : node.operands) {
        blocks.push_back(BlockOfOperand(graph, realized, node, operand, plan));
    }
    for (const ValueId result : node.results) {
        blocks.push_back(plan.BlockOf(result));
    }
    plan.AddTemplate(node.name, *std::move(kernel), std::move(blocks));
}

}  // namespace fornax::graph
