// Random composites, conditions and loops: nodes with bodies.
#include <algorithm>

#include "compiler/graph/build/build_error.h"
#include "compiler/graph/build/normalise.h"
#include "compiler/graph/testing/random_nodes.h"
#include "compiler/graph/testing/random_tensor.h"

namespace fornax::graph::testing {
namespace {

constexpr int kMaxDepth = 2;
constexpr int64_t kCarriedBound = 4;

}  // namespace

struct RandomNodes::OpenBody {
    std::shared_ptr<Graph> graph;
    std::unique_ptr<RandomNodes> nodes;
};

RandomNodes::OpenBody RandomNodes::BeginBody(const std::vector<Known>& inputs) {
    OpenBody body;
    body.graph = std::make_shared<Graph>("body");
    body.graph->sizes().Merge(graph_.sizes());
    body.nodes = std::make_unique<RandomNodes>(random_, *body.graph);
    for (size_t i = 0; i < inputs.size(); ++i) {
        Known known = inputs[i];
        known.id = body.graph->AddInput("i" + std::to_string(i), graph_.TypeOf(inputs[i].id));
        body.nodes->pool_.push_back(known);
    }
    return body;
}

bool RandomNodes::AddComposite() {
    if (random_.depth >= kMaxDepth) {
        return false;
    }
    std::vector<Known> inputs;
    std::vector<ValueId> operands;
    for (int64_t i = random_.Between(1, 3); i > 0; --i) {
        inputs.push_back(Pick());
        operands.push_back(inputs.back().id);
    }
    OpenBody body = BeginBody(inputs);
    ++random_.depth;
    body.nodes->AddNodes(random_.Between(1, 5));
    --random_.depth;
    std::vector<Known> results;
    for (int64_t i = random_.Between(1, 3); i > 0; --i) {
        results.push_back(i == 1 ? body.nodes->pool_.back() : body.nodes->Any());
        body.graph->AddOutput("o" + std::to_string(results.size()), results.back().id);
    }
    Result<NodeId> node = graph_.AddNode("n" + std::to_string(pool_.size()),
                                         op::Composite{"random", {}}, operands, {body.graph});
    if (!node.ok()) {
        return false;
    }
    for (size_t i = 0; i < results.size(); ++i) {
        results[i].id = graph_[*node].results[i];
        pool_.push_back(results[i]);
    }
    return true;
}

// What frontends build: composites with long bodies.
bool RandomNodes::AddNetworkFunction() {
    const Known a = Pick();
    const ElementType type = ElementOf(a.id);
    // The mean of no elements is NaN, and no function here bounds what follows from that.
    const std::vector<Expr> dims(ShapeOf(a.id).dims().begin(), ShapeOf(a.id).dims().end());
    const bool empty = std::any_of(dims.begin(), dims.end(), [](const Expr& dim) {
        return !dim.is_constant() || dim.constant_part() == 0;
    });
    if (dims.empty() || type != ElementType::kF32 || a.bound > 20 || empty) {
        return false;
    }
    Builder builder(graph_);
    builder.SetName("n" + std::to_string(pool_.size()));
    const int64_t axis = RandomAxis(a.id);
    Known known = {{}, 1, false, a.error * 2 + 1e-5};
    try {
        if (random_.OneIn(2)) {
            known.id = Softmax(Val(builder, a.id), axis).id();
        } else {
            const Shape tail(std::vector<Expr>(dims.begin() + axis, dims.end()));
            const Val scale(builder, Numbers(type, tail));
            known.id =
                LayerNorm(Val(builder, a.id), scale, {}, axis, 0.5, ElementType::kF32).y.id();
            known.bound = 200;
            known.error = a.error * 20 + 1e-3;
        }
    } catch (const BuildError&) {
        return false;
    }
    return Keep(known);
}

ValueId RandomNodes::Condition() {
    for (int attempt = 0; attempt < 4; ++attempt) {
        const Known value = Pick();
        if (graph_.TypeOf(value.id) == TensorType{ElementType::kBool, {}}) {
            return value.id;
        }
    }
    if (!random_.symbols.empty() && random_.OneIn(2)) {
        const ValueId size =
            graph_[*graph_.AddNode("size", op::SizeOf{RandomDim()}, {})].results[0];
        const ValueId limit =
            graph_.AddConstant("limit", RandomTensor(ElementType::kI64, {}, 0, 12));
        return graph_[*graph_.AddNode("below", op::Map{ScalarFunction::kLess}, {size, limit})]
            .results[0];
    }
    return graph_.AddConstant("condition", RandomTensor(ElementType::kBool, {}, 0, 1));
}

bool RandomNodes::AddIf() {
    if (random_.depth >= kMaxDepth) {
        return false;
    }
    const ValueId condition = Condition();
    std::vector<Known> inputs;
    std::vector<ValueId> operands = {condition};
    for (int64_t i = random_.Between(1, 3); i > 0; --i) {
        inputs.push_back(Pick());
        operands.push_back(inputs.back().id);
    }
    OpenBody taken = BeginBody(inputs), other = BeginBody(inputs);
    ++random_.depth;
    taken.nodes->AddNodes(random_.Between(1, 4));
    other.nodes->AddNodes(random_.Between(0, 3));
    --random_.depth;
    std::vector<Known> results;
    for (int64_t i = random_.Between(1, 2); i > 0; --i) {
        Known known = i == 1 ? taken.nodes->pool_.back() : taken.nodes->Any();
        const TensorType type = taken.graph->TypeOf(known.id);
        Known same;
        for (const Known& candidate : other.nodes->pool_) {
            if (other.graph->TypeOf(candidate.id) == type) {
                same = candidate;
            }
        }
        if (!same.id.valid()) {
            same = {other.nodes->Numbers(type.element, type.shape), 4, true, 0};
        }
        taken.graph->AddOutput("o" + std::to_string(i), known.id);
        other.graph->AddOutput("o" + std::to_string(i), same.id);
        known.bound = std::max(known.bound, same.bound);
        known.error = std::max(known.error, same.error);
        known.exact = known.exact && same.exact;
        results.push_back(known);
    }
    Result<NodeId> node = graph_.AddNode("n" + std::to_string(pool_.size()), op::If{}, operands,
                                         {taken.graph, other.graph});
    if (!node.ok()) {
        return false;
    }
    for (size_t i = 0; i < results.size(); ++i) {
        results[i].id = graph_[*node].results[i];
        pool_.push_back(results[i]);
    }
    return true;
}

ValueId RandomNodes::Clip(RandomNodes& nodes, ValueId value, int64_t bound) {
    Graph& graph = nodes.graph_;
    const TensorType type = graph.TypeOf(value);
    if (type.element == ElementType::kBool) {
        return value;
    }
    const ValueId high = nodes.Number(type.element, type.shape, bound);
    value = graph[*graph.AddNode("clip", op::Map{ScalarFunction::kMin}, {value, high})].results[0];
    if (IsSigned(type.element)) {
        const ValueId low = nodes.Number(type.element, type.shape, -bound);
        value =
            graph[*graph.AddNode("clip", op::Map{ScalarFunction::kMax}, {value, low})].results[0];
    }
    return value;
}

bool RandomNodes::AddLoop() {
    if (random_.depth >= kMaxDepth) {
        return false;
    }
    // The iteration, then what is carried, then what is only read.
    std::vector<Known> inputs = {
        {graph_.AddConstant("zero", RandomTensor(ElementType::kI64, {}, 0, 0)), 100, true, 0}};
    std::vector<ValueId> operands;
    op::Loop loop;
    loop.carried = random_.Between(1, 2);
    const int64_t count = loop.carried + random_.Between(0, 2);
    for (int64_t i = 0; i < count; ++i) {
        Known value = Pick();
        if (i < loop.carried) {
            // Two bits hold no more than 1.
            if (!value.exact || value.bound > kCarriedBound || BitsOf(ElementOf(value.id)) == 2) {
                return false;
            }
            value.bound = std::max<double>(value.bound, kCarriedBound);
        }
        inputs.push_back(value);
        operands.push_back(value.id);
    }
    OpenBody body = BeginBody(inputs);
    RandomNodes& nodes = *body.nodes;
    ++random_.depth;
    nodes.AddNodes(random_.Between(1, 4));
    --random_.depth;
    // Whether to go on: always, or until the iteration.
    ValueId goes_on = body.graph->AddConstant("true", RandomTensor(ElementType::kBool, {}, 1, 1));
    if (random_.OneIn(3)) {
        const ValueId limit =
            body.graph->AddConstant("limit", RandomTensor(ElementType::kI64, {}, 0, 3));
        goes_on = (*body.graph)[*body.graph->AddNode("below", op::Map{ScalarFunction::kLess},
                                                     {nodes.pool_[0].id, limit})]
                      .results[0];
    }
    body.graph->AddOutput("on", goes_on);
    for (int64_t i = 0; i < loop.carried; ++i) {
        Known next = nodes.pool_[static_cast<size_t>(i) + 1];
        const TensorType type = body.graph->TypeOf(next.id);
        for (const Known& candidate : nodes.pool_) {
            if (body.graph->TypeOf(candidate.id) == type && candidate.exact && random_.OneIn(2)) {
                next = candidate;
            }
        }
        body.graph->AddOutput("c" + std::to_string(i), Clip(nodes, next.id, kCarriedBound));
    }
    const ValueId trips =
        random_.OneIn(3) && !random_.symbols.empty()
            ? graph_[*graph_.AddNode("trips", op::SizeOf{random_.symbols[0]}, {})].results[0]
            : graph_.AddConstant("trips", RandomTensor(ElementType::kI64, {}, 0, 4));
    const ValueId begin =
        random_.OneIn(3) ? Condition()
                         : graph_.AddConstant("true", RandomTensor(ElementType::kBool, {}, 1, 1));
    operands.insert(operands.begin(), {trips, begin});
    Result<NodeId> node =
        graph_.AddNode("n" + std::to_string(pool_.size()), loop, std::move(operands), {body.graph});
    if (!node.ok()) {
        return false;
    }
    for (int64_t i = 0; i < loop.carried; ++i) {
        pool_.push_back({graph_[*node].results[static_cast<size_t>(i)], kCarriedBound, true, 0});
    }
    return true;
}

}  // namespace fornax::graph::testing
