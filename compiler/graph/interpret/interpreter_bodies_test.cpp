// Whole graphs: symbols, guards, bodies, host calls, state, and how long tensors live.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/graph/interpret/interpreter.h"

namespace fornax::graph {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Tensor Integers(std::vector<int64_t> dims, std::vector<int64_t> values) {
    return Tensor::FromIntegers(std::move(dims), values);
}

Tensor Bool(bool value) {
    uint8_t* data = nullptr;
    Tensor tensor = Tensor::Zeros(ElementType::kBool, {}, &data);
    *data = value ? 1 : 0;
    return tensor;
}

std::vector<int64_t> Values(const Tensor& tensor) {
    std::vector<int64_t> values;
    for (int64_t i = 0; i < tensor.count(); ++i) {
        values.push_back(tensor.At(i).integer);
    }
    return values;
}

TensorType I64(Shape shape) {
    return {ElementType::kI64, std::move(shape)};
}

// The node's first result.
ValueId Add(Graph& graph,
            Operation operation,
            std::vector<ValueId> operands,
            std::vector<Body> bodies = {}) {
    Result<NodeId> node =
        graph.AddNode("node", std::move(operation), std::move(operands), std::move(bodies));
    if (!node.ok()) {
        ADD_FAILURE() << node.error().message;
        return ValueId(0);
    }
    return graph[*node].results.empty() ? ValueId() : graph[*node].results[0];
}

std::vector<Tensor> OutputsOf(const Graph& graph,
                              std::vector<Tensor> inputs,
                              const InterpretOptions& options = {}) {
    Result<std::vector<Tensor>> outputs = Interpret(graph, inputs, options);
    if (!outputs.ok()) {
        ADD_FAILURE() << outputs.error().message;
        return {Integers({0}, {})};
    }
    return std::move(outputs).value();
}

std::string ErrorOf(const Graph& graph,
                    std::vector<Tensor> inputs,
                    const InterpretOptions& options = {}) {
    Result<std::vector<Tensor>> outputs = Interpret(graph, inputs, options);
    return outputs.ok() ? "no error" : outputs.error().message;
}

TEST(InterpretGraph, BindsSymbolsByInputs) {
    Graph graph("sizes");
    const Symbol n = graph.sizes().Declare("n", 4);
    const ValueId x = graph.AddInput("x", I64({Expr(n) + 1}));
    const ValueId y = graph.AddInput("y", I64({n}));
    graph.AddOutput("size", Add(graph, op::SizeOf{Expr(n) * 10}, {}));
    graph.AddOutput("joined", Add(graph, op::Concat{0}, {x, y}));
    const std::vector<Tensor> outputs =
        OutputsOf(graph, {Integers({3}, {1, 2, 3}), Integers({2}, {4, 5})});
    EXPECT_THAT(Values(outputs[0]), ElementsAre(20));
    EXPECT_THAT(Values(outputs[1]), ElementsAre(1, 2, 3, 4, 5));
    EXPECT_THAT(
        ErrorOf(graph, {Integers({4}, {1, 2, 3, 4}), Integers({2}, {4, 5})}),
        HasSubstr("The input x of the graph sizes does not fit: it is i64[4], not i64[n + 1]."));
    EXPECT_THAT(ErrorOf(graph, {Integers({1}, {1})}), HasSubstr("has 2 inputs, 1 are given"));
}

TEST(InterpretGraph, RefusesInputsOfAnotherType) {
    Graph graph("types");
    graph.AddInput("x", I64({2}));
    EXPECT_THAT(ErrorOf(graph, {Integers({3}, {1, 2, 3})}), HasSubstr("it is i64[3], not i64[2]"));
    const std::vector<float> floats = {1, 2};
    EXPECT_THAT(ErrorOf(graph, {Tensor::FromFloats({2}, floats)}), HasSubstr("it is f32[2]"));
    Tensor damaged = Integers({2}, {1, 2});
    damaged.data = std::make_shared<const std::vector<uint8_t>>(8);
    EXPECT_THAT(ErrorOf(graph, {damaged}), HasSubstr("it holds 8 bytes, its type has 16"));
}

TEST(InterpretGraph, SymbolsThatNoInputBindsHaveTheirHint) {
    Graph graph;
    const Symbol n = graph.sizes().Declare("n", 3);
    graph.AddOutput("out", Add(graph, op::Iota{ElementType::kI64, {n}, 0}, {}));
    EXPECT_THAT(Values(OutputsOf(graph, {})[0]), ElementsAre(0, 1, 2));
}

TEST(InterpretGraph, ChecksGuards) {
    Graph graph("guarded");
    const Symbol n = graph.sizes().Declare("n", 3);
    graph.AddInput("x", I64({n}));
    graph.sizes().AddGuard({Relation::kLessEqual, n, 4});
    EXPECT_EQ(ErrorOf(graph, {Integers({4}, {1, 2, 3, 4})}), "no error");
    EXPECT_EQ(ErrorOf(graph, {Integers({5}, {1, 2, 3, 4, 5})}),
              "The guard n <= 4 of the graph guarded does not hold.");
}

TEST(InterpretGraph, ErrorsNameTheNode) {
    Graph graph("g");
    const ValueId x = graph.AddInput("x", I64({2}));
    InterpretOptions options;
    options.max_bytes = 10;
    graph.AddOutput("out", Add(graph, op::Map{ScalarFunction::kNeg}, {x}));
    EXPECT_EQ(ErrorOf(graph, {Integers({2}, {1, 2})}, options),
              "The node node (map) of the graph g cannot be computed: 16 bytes beside the 0 in use "
              "exceed the limit of 10.");
}

TEST(InterpretGraph, FreesWhatIsNotUsedAgain) {
    Graph graph;
    ValueId value = graph.AddInput("x", I64({100}));
    for (int i = 0; i < 50; ++i) {
        value = Add(graph, op::Map{ScalarFunction::kNeg}, {value});
    }
    graph.AddOutput("out", value);
    InterpretOptions options;
    options.max_bytes = 1600;  // an operand and a result
    EXPECT_EQ(
        Values(OutputsOf(graph, {Integers({100}, std::vector<int64_t>(100, 1))}, options)[0])[0],
        1);
    options.max_bytes = 1599;
    EXPECT_THAT(ErrorOf(graph, {Integers({100}, std::vector<int64_t>(100, 1))}, options),
                HasSubstr("800 bytes beside the 800 in use"));
}

// x + y, or their difference.
Body BinaryBody(ScalarFunction function) {
    Graph body(std::string(Name(function)));
    const ValueId x = body.AddInput("x", I64({2})), y = body.AddInput("y", I64({2}));
    body.AddOutput("out", Add(body, op::Map{function}, {x, y}));
    return std::make_shared<const Graph>(std::move(body));
}

TEST(InterpretGraph, IfChoosesABody) {
    Graph graph;
    const ValueId condition = graph.AddInput("condition", {ElementType::kBool, {}});
    const ValueId x = graph.AddInput("x", I64({2})), y = graph.AddInput("y", I64({2}));
    graph.AddOutput("out",
                    Add(graph, op::If{}, {condition, x, y},
                        {BinaryBody(ScalarFunction::kAdd), BinaryBody(ScalarFunction::kSub)}));
    const Tensor a = Integers({2}, {5, 6}), b = Integers({2}, {1, 2});
    EXPECT_THAT(Values(OutputsOf(graph, {Bool(true), a, b})[0]), ElementsAre(6, 8));
    EXPECT_THAT(Values(OutputsOf(graph, {Bool(false), a, b})[0]), ElementsAre(4, 4));
}

TEST(InterpretGraph, CompositesAreTheirBodies) {
    Graph graph;
    const ValueId x = graph.AddInput("x", I64({2}));
    graph.AddOutput(
        "out", Add(graph, op::Composite{"twice", {}}, {x, x}, {BinaryBody(ScalarFunction::kAdd)}));
    EXPECT_THAT(Values(OutputsOf(graph, {Integers({2}, {3, 4})})[0]), ElementsAre(6, 8));
}

TEST(InterpretGraph, BodiesBindTheirOwnSymbols) {
    Graph body("count");
    const Symbol m = body.sizes().Declare("m", 2);
    body.AddInput("x", I64({m}));
    body.AddOutput("out", Add(body, op::SizeOf{m}, {}));
    const auto shared = std::make_shared<const Graph>(std::move(body));
    Graph graph;
    const Symbol n = graph.sizes().Declare("n", 2);
    graph.sizes().Declare("m", 2);
    const ValueId x = graph.AddInput("x", I64({n}));
    graph.AddOutput("out", Add(graph, op::Composite{"count", {}}, {x}, {shared}));
    EXPECT_THAT(Values(OutputsOf(graph, {Integers({5}, {1, 2, 3, 4, 5})})[0]), ElementsAre(5));
}

// Carries a sum to which it adds iteration * scale, and goes on while the sum is below 10.
Body LoopBody() {
    Graph body("loop");
    const ValueId iteration = body.AddInput("iteration", I64({}));
    const ValueId sum = body.AddInput("sum", I64({}));
    const ValueId scale = body.AddInput("scale", I64({}));
    const ValueId product = Add(body, op::Map{ScalarFunction::kMul}, {iteration, scale});
    const ValueId next = Add(body, op::Map{ScalarFunction::kAdd}, {sum, product});
    const ValueId bound = body.AddConstant("bound", Integers({}, {10}));
    body.AddOutput("go_on", Add(body, op::Map{ScalarFunction::kLess}, {next, bound}));
    body.AddOutput("sum", next);
    return std::make_shared<const Graph>(std::move(body));
}

TEST(InterpretGraph, LoopsEndByCountOrCondition) {
    Graph graph;
    const ValueId count = graph.AddInput("count", I64({}));
    const ValueId begin = graph.AddInput("begin", {ElementType::kBool, {}});
    const ValueId sum = graph.AddInput("sum", I64({})), scale = graph.AddInput("scale", I64({}));
    graph.AddOutput("out", Add(graph, op::Loop{1}, {count, begin, sum, scale}, {LoopBody()}));
    const auto run = [&](int64_t most, bool go_on, int64_t by) {
        return Values(OutputsOf(graph, {Integers({}, {most}), Bool(go_on), Integers({}, {1}),
                                        Integers({}, {by})})[0])[0];
    };
    EXPECT_EQ(run(3, true, 1), 1 + 0 + 1 + 2);
    EXPECT_EQ(run(INT64_MAX, true, 2), 1 + 2 * (0 + 1 + 2 + 3));  // 13 ends it
    EXPECT_EQ(run(5, false, 1), 1);
    EXPECT_EQ(run(0, true, 1), 1);
    EXPECT_EQ(run(-1, true, 1), 1);
}

TEST(InterpretGraph, EndlessLoopsReachTheLimitOfSteps) {
    Graph body("endless");
    body.AddInput("iteration", I64({}));
    const ValueId go_on = body.AddInput("go_on", {ElementType::kBool, {}});
    body.AddOutput("go_on", go_on);
    Graph graph;
    const ValueId count = graph.AddInput("count", I64({}));
    const ValueId begin = graph.AddInput("begin", {ElementType::kBool, {}});
    Add(graph, op::Loop{0}, {count, begin, begin},
        {std::make_shared<const Graph>(std::move(body))});
    InterpretOptions options;
    options.max_steps = 1000;
    EXPECT_THAT(ErrorOf(graph, {Integers({}, {INT64_MAX}), Bool(true)}, options),
                HasSubstr("exceed the limit of 1000"));
}

TEST(InterpretGraph, ErrorsInBodiesNameTheBodysNode) {
    Graph graph("outer");
    const ValueId x = graph.AddInput("x", I64({2}));
    graph.AddOutput(
        "out", Add(graph, op::Composite{"twice", {}}, {x, x}, {BinaryBody(ScalarFunction::kAdd)}));
    InterpretOptions options;
    options.max_bytes = 10;
    EXPECT_THAT(ErrorOf(graph, {Integers({2}, {3, 4})}, options),
                HasSubstr("The node node (map) of the graph add cannot be computed"));
}

// Positions of values that are not 0: their number is known only then.
Result<std::vector<Tensor>> Nonzero(const op::HostCall&, std::span<const Tensor> operands) {
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < operands[0].count(); ++i) {
        if (operands[0].At(i).integer != 0) {
            positions.push_back(i);
        }
    }
    const auto count = static_cast<int64_t>(positions.size());
    return std::vector<Tensor>{Integers({count}, std::move(positions))};
}

TEST(InterpretGraph, HostCallsBindSymbols) {
    Graph graph("host");
    const Symbol k = graph.sizes().Declare("k", 7);
    const ValueId x = graph.AddInput("x", I64({4}));
    const ValueId found = Add(graph, op::HostCall{"nonzero", {}, {I64({k})}}, {x});
    graph.AddOutput("found", found);
    graph.AddOutput("numbers", Add(graph, op::Iota{ElementType::kI64, {k}, 0}, {}));
    const Tensor input = Integers({4}, {0, 3, 0, 1});
    EXPECT_THAT(ErrorOf(graph, {input}), HasSubstr("there is no host function nonzero"));
    const HostFunctions functions = {{"nonzero", Nonzero}};
    InterpretOptions options;
    options.host_functions = &functions;
    const std::vector<Tensor> outputs = OutputsOf(graph, {input}, options);
    EXPECT_THAT(Values(outputs[0]), ElementsAre(1, 3));
    EXPECT_THAT(Values(outputs[1]), ElementsAre(0, 1));
    EXPECT_THAT(Values(OutputsOf(graph, {Integers({4}, {0, 0, 0, 0})}, options)[0]), IsEmpty());
    graph.sizes().AddGuard({Relation::kLess, 1, k});
    EXPECT_THAT(ErrorOf(graph, {Integers({4}, {0, 0, 0, 0})}, options), HasSubstr("does not hold"));
}

TEST(InterpretGraph, HostCallsThatBreakTheirTypesAreErrors) {
    Graph graph("host");
    graph.AddOutput("out", Add(graph, op::HostCall{"f", {}, {I64({2})}}, {}));
    std::vector<Tensor> answer;
    const HostFunctions functions = {{"f", [&](const op::HostCall&, std::span<const Tensor>) {
                                          return Result<std::vector<Tensor>>(answer);
                                      }}};
    InterpretOptions options;
    options.host_functions = &functions;
    EXPECT_THAT(ErrorOf(graph, {}, options), HasSubstr("gave 0 results, not 1"));
    answer = {Integers({3}, {1, 2, 3})};
    EXPECT_THAT(ErrorOf(graph, {}, options), HasSubstr("it is i64[3], not i64[2]"));
    answer = {Tensor{ElementType::kI64, {2}, nullptr, nullptr}};
    EXPECT_THAT(ErrorOf(graph, {}, options), HasSubstr("it holds 0 bytes"));
}

TEST(InterpretGraph, StatesPersist) {
    Graph graph;
    const ValueId x = graph.AddInput("x", I64({2}));
    const ValueId before = Add(graph, op::ReadState{"sum", I64({2})}, {});
    const ValueId after = Add(graph, op::Map{ScalarFunction::kAdd}, {before, x});
    Add(graph, op::WriteState{"sum"}, {after});
    graph.AddOutput("now", Add(graph, op::ReadState{"sum", I64({2})}, {}));
    graph.AddOutput("before", before);
    const Tensor input = Integers({2}, {1, 2});
    // Without a place for them, states last for one call.
    EXPECT_THAT(Values(OutputsOf(graph, {input})[0]), ElementsAre(1, 2));
    EXPECT_THAT(Values(OutputsOf(graph, {input})[0]), ElementsAre(1, 2));
    States states;
    InterpretOptions options;
    options.states = &states;
    OutputsOf(graph, {input}, options);
    const std::vector<Tensor> outputs = OutputsOf(graph, {input}, options);
    EXPECT_THAT(Values(outputs[0]), ElementsAre(2, 4));
    EXPECT_THAT(Values(outputs[1]), ElementsAre(1, 2));
    EXPECT_THAT(Values(states.at("sum")), ElementsAre(2, 4));
    states["sum"] = Integers({3}, {1, 2, 3});
    EXPECT_THAT(ErrorOf(graph, {input}, options), HasSubstr("it is i64[3], not i64[2]"));
}

TEST(EvaluateNode, RefusesStatesAndRunsBodies) {
    Result<std::vector<Tensor>> read = EvaluateNode(op::ReadState{"s", I64({})}, {}, {}, {});
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.error().message,
              "The operation read_state cannot be computed: states have no values here.");
    const std::vector<Body> bodies = {BinaryBody(ScalarFunction::kMul)};
    const std::vector<Tensor> operands = {Integers({2}, {2, 3}), Integers({2}, {4, 5})};
    Result<std::vector<Tensor>> product =
        EvaluateNode(op::Composite{"product", {}}, operands, bodies, {});
    ASSERT_TRUE(product.ok());
    EXPECT_THAT(Values((*product)[0]), ElementsAre(8, 15));
}

TEST(InterpretGraph, FoldedResultsAreConstants) {
    Graph graph;
    const ValueId x = graph.AddInput("x", I64({2}));
    const ValueId sorted = Add(graph, op::Sort{0, false, 2}, {x});
    const ValueId positions(sorted.value() + 1);
    graph.AddOutput("values", sorted);
    graph.AddOutput("positions", positions);
    graph.MakeConstant(positions, Integers({2}, {7, 8}));
    const std::vector<Tensor> outputs = OutputsOf(graph, {Integers({2}, {2, 1})});
    EXPECT_THAT(Values(outputs[0]), ElementsAre(1, 2));
    EXPECT_THAT(Values(outputs[1]), ElementsAre(7, 8));
}

}  // namespace
}  // namespace fornax::graph
