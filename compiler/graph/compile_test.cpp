// Random graphs: what the passes and the scheduler make of them computes the same.
//
// FORNAX_RANDOM_GRAPHS: how many, from seed FORNAX_RANDOM_SEED on.
#include "compiler/graph/compile.h"

#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/environment.h"
#include "compiler/graph/build/product.h"
#include "compiler/graph/build/recurrent.h"
#include "compiler/graph/interpret/interpreter.h"
#include "compiler/graph/plan/plan_file.h"
#include "compiler/graph/testing/compare_tensors.h"
#include "compiler/graph/testing/interpret_plan.h"
#include "compiler/graph/testing/random_graph.h"

namespace fornax::graph {
namespace {

uint64_t Setting(const char* name, uint64_t otherwise) {
    const std::optional<std::string> text = EnvironmentText(name);
    return text ? std::strtoull(text->c_str(), nullptr, 10) : otherwise;
}

// What the plan of a graph computes in runs one after the other is what the interpreter does.
// `steps`: how many the plan has, if not 0.
void ExpectTheSame(std::string_view text,
                   const std::vector<Tensor>& inputs,
                   int runs = 1,
                   size_t steps = 0) {
    const Result<Graph> graph = ParseGraph(text);
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const Result<Plan> plan = Compile(*graph, {});
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_TRUE(ValidatePlan(*plan).ok()) << ValidatePlan(*plan).error().message;
    if (steps != 0) {
        EXPECT_EQ(plan->steps.size(), steps) << ToText(*plan);
    }
    States states;
    testing::PlanStates plan_states;
    for (int run = 0; run < runs; ++run) {
        const Result<std::vector<Tensor>> expected = Interpret(*graph, inputs, {.states = &states});
        ASSERT_TRUE(expected.ok()) << expected.error().message;
        const Result<std::vector<Tensor>> actual =
            testing::InterpretPlan(*plan, inputs, {}, {}, &plan_states);
        ASSERT_TRUE(actual.ok()) << actual.error().message;
        for (size_t i = 0; i < expected->size(); ++i) {
            EXPECT_EQ(testing::Difference((*actual)[i], (*expected)[i], 0), "")
                << "output " << i << " of run " << run;
        }
    }
}

// So that the tests of random graphs are also some of results in the bytes of operands.
TEST(Compile, RandomGraphsHaveStepsInPlace) {
    size_t in_place = 0;
    for (uint64_t seed = 1; seed <= 100; ++seed) {
        const testing::RandomGraph random = testing::MakeRandomGraph(seed, 0);
        const Result<Plan> plan = Compile(random.graph, {.dynamic_sizes = random.dynamic_sizes});
        ASSERT_TRUE(plan.ok()) << plan.error().message;
        for (const PlanStep& step : plan->steps) {
            if (const auto* dispatch = std::get_if<DispatchStep>(&step)) {
                const std::set<BlockId> blocks(dispatch->bindings.begin(),
                                               dispatch->bindings.end());
                in_place += blocks.size() < dispatch->bindings.size() ? 1 : 0;
            }
        }
    }
    EXPECT_GT(in_place, 10U);
}

// A NaN is no other constant of its kernel, nor is -0.
TEST(Compile, ConstantsOfAKernelAreDistinguishedByTheirBits) {
    ExpectTheSame(R"(graph "example" {
    %0 = input "x" f32[4]
    %1 = constant "bound" f32[] {2}
    %2 = constant "none" f32[] {nan}
    %3 = constant "zero" f32[] {0}
    %4 = constant "below zero" f32[] {-0}
    %5 = reshape "one bound" (%1) {shape = [1]} : f32[1]
    %6 = broadcast "bounds" (%5) {shape = [4]} : f32[4]
    %7 = reshape "one nan" (%2) {shape = [1]} : f32[1]
    %8 = broadcast "nans" (%7) {shape = [4]} : f32[4]
    %9 = reshape "one zero" (%3) {shape = [1]} : f32[1]
    %10 = broadcast "zeros" (%9) {shape = [4]} : f32[4]
    %11 = reshape "one below" (%4) {shape = [1]} : f32[1]
    %12 = broadcast "all below" (%11) {shape = [4]} : f32[4]
    %13 = map "less" (%0, %6) {function = lt} : bool[4]
    %14 = map "marked" (%13, %0, %8) {function = select} : f32[4]
    %15 = map "signs" (%13, %10, %12) {function = select} : f32[4]
    output "marked" %14
    output "signs" %15
})",
                  {Tensor::FromFloats({4}, std::vector<float>{1, 2, 3, -4})});
}

// What is not read later is updated without a copy of it: two products and an update.
TEST(Compile, RowsOfWhatIsNotReadLaterAreUpdatedInPlace) {
    std::vector<float> ones(16 * 16, 1);
    ExpectTheSame(
        R"(graph "example" {
    %0 = input "x" f32[16,16]
    %1 = input "rows" f32[2,16]
    %2 = input "at" i64[2,16]
    %3 = contract "p" (%0, %0) {a = "ik", b = "kj", result = "ij", accumulate = f32} : f32[16,16]
    %4 = scatter "update" (%3, %1, %2) {sources = [-1, 1], combine = sum} : f32[16,16]
    %5 = contract "q" (%4, %0) {a = "ik", b = "kj", result = "ij", accumulate = f32} : f32[16,16]
    output "q" %5
})",
        {Tensor::FromFloats({16, 16}, ones), Tensor::FromFloats({2, 16}, std::vector<float>(32, 3)),
         Tensor::FromIntegers({2, 16}, std::vector<int64_t>(32, 5))},
        1, 3);
}

TEST(Compile, StatesChangePlaces) {
    ExpectTheSame(R"(graph "example" {
    %0 = input "x" f32[2]
    %1 = read_state "a" () {state = "a", type = f32[2]}
    %2 = read_state "b" () {state = "b", type = f32[2]}
    %3 = read_state "c" () {state = "c", type = f32[2]}
    %4 = map "sum" (%2, %0) {function = add}
    write_state "to c" (%4) {state = "c"}
    write_state "to b" (%1) {state = "b"}
    write_state "to a" (%3) {state = "a"}
    output "a" %1
    output "b" %2
})",
                  {Tensor::FromFloats({2}, std::vector<float>{1, 2})}, 4);
}

TEST(Compile, AStateMayKeepItsValue) {
    ExpectTheSame(R"(graph "example" {
    %0 = read_state "a" () {state = "a", type = f32[2]}
    write_state "the same" (%0) {state = "a"}
    output "a" %0
})",
                  {});
}

// A cache of keys: the rows are written to the state itself, without copies of it.
TEST(Compile, RowsOfAStateAreUpdatedInPlace) {
    ExpectTheSame(R"(graph "example" {
    %0 = input "rows" f32[2,4]
    %1 = input "at" i64[2,4]
    %2 = read_state "a" () {state = "a", type = f32[3,2,4]}
    %3 = reshape "as rows" (%2) {shape = [6,4]} : f32[6,4]
    %4 = scatter "first" (%3, %0, %1) {sources = [-1, 1], combine = replace} : f32[6,4]
    %5 = map "sum" (%0, %0) {function = add} : f32[2,4]
    %6 = scatter "second" (%4, %5, %1) {sources = [-1, 1], combine = sum} : f32[6,4]
    %7 = reshape "back" (%6) {shape = [3,2,4]} : f32[3,2,4]
    write_state "to a" (%7) {state = "a"}
    %8 = map "after" (%6, %6) {function = add} : f32[6,4]
    output "after" %8
})",
                  {Tensor::FromFloats({2, 4}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}),
                   Tensor::FromIntegers({2, 4}, std::vector<int64_t>{1, 1, 1, 1, 4, 4, 4, 4})},
                  3, 3);
}

// What the state held before is read once more, so it is not updated in place.
TEST(Compile, AStateWhoseOldValueIsReadIsCopied) {
    ExpectTheSame(R"(graph "example" {
    %0 = input "rows" f32[1,2]
    %1 = input "at" i64[1,2]
    %2 = read_state "a" () {state = "a", type = f32[3,2]}
    %3 = scatter "new" (%2, %0, %1) {sources = [-1, 1], combine = replace} : f32[3,2]
    write_state "to a" (%3) {state = "a"}
    %4 = map "both" (%2, %3) {function = add} : f32[3,2]
    output "both" %4
})",
                  {Tensor::FromFloats({1, 2}, std::vector<float>{1, 2}),
                   Tensor::FromIntegers({1, 2}, std::vector<int64_t>{2, 2})},
                  3);
}

// A loop that is no kernel in primitives, and whose body has composites: it was taken for a kernel.
// f8e8m0 has no 0 for what lies outside.
TEST(Compile, RowsOfATypeWithoutZero) {
    ExpectTheSame(R"(graph "example" {
    %0 = input "x" f32[4]
    %1 = input "at" i64[3]
    %2 = cast "codes" (%0) {to = f8e8m0}
    %3 = gather "rows" (%2, %1) {sources = [-1], shape = [3]}
    output "y" %3
})",
                  {Tensor::FromFloats({4}, std::vector<float>{1, 2, 4, 8}),
                   Tensor::FromIntegers({3}, std::vector<int64_t>{3, 0, 2})});
}

TEST(Compile, LoopsOfCompositesRunOnTheHost) {
    uint64_t runs = 0;
    EXPECT_EQ(testing::CheckRandomGraphOnHost(4011174, &runs), "");
}

// Panels of 64 ks are 4 KiB, those of 40 are not: an invocation reads one of each gate at once, so
// the first have a line more, lest they compete for the same sets of the first cache.
TEST(Compile, PanelsOfGatesDoNotShareCacheSets) {
    for (const auto& [hidden, stored] : {std::pair(64, 65), {48, 48}}) {
        const auto numbers = [](std::vector<int64_t> dims) {
            std::vector<float> values(static_cast<size_t>(
                std::accumulate(dims.begin(), dims.end(), 1, std::multiplies())));
            for (size_t i = 0; i < values.size(); ++i) {
                values[i] = static_cast<float>(i * 7 % 33) / 64 - 0.25F;
            }
            return Tensor::FromFloats(std::move(dims), values);
        };
        const Tensor x = numbers({3, 1, 8});
        Graph graph;
        Builder b(graph);
        RecurrentOperands operands;
        operands.x = b.Input("x", x.type());
        operands.w = b.Constant(numbers({1, 3 * hidden, 8}));
        operands.r = b.Constant(numbers({1, 3 * hidden, hidden}));
        RecurrentOptions options;
        options.kind = RecurrentKind::kGru;
        options.reversed = {false};
        options.activations = {{"sigmoid"}, {"tanh"}};
        options.linear_before_reset = true;
        graph.AddOutput("y", Recurrent(operands, options).y.id());
        const Result<Plan> plan = Compile(graph, {});
        ASSERT_TRUE(plan.ok()) << plan.error().message;
        EXPECT_THAT(ToText(*plan),
                    ::testing::HasSubstr("constant f32[1," + std::to_string(3 * hidden / 16) + "," +
                                         std::to_string(stored) + ",16]"));
        const Result<std::vector<Tensor>> expected = Interpret(graph, std::vector{x});
        const Result<std::vector<Tensor>> actual =
            testing::InterpretPlan(*plan, std::vector{x}, {});
        ASSERT_TRUE(expected.ok() && actual.ok());
        EXPECT_EQ(testing::Difference((*actual)[0], (*expected)[0], 1e-5), "");
    }
}

// DequantizeLinear in blocks before a product has the kernels of MatMulNBits, and nothing else is
// left.
TEST(Compile, ADequantisedMatrixInBlocksHasTheKernelsOfBlocks) {
    constexpr int64_t kDepth = 128, kColumns = 48, kBlock = 32, kBlocks = kDepth / kBlock;
    for (const int64_t rows : {1, 20}) {
        const auto kernels_of = [&](bool dequantised) {
            Graph graph;
            Builder b(graph);
            const Val x = b.Input("x", {ElementType::kF32, {rows, kDepth}});
            std::vector<float> scales(static_cast<size_t>(kBlocks * kColumns));
            for (size_t i = 0; i < scales.size(); ++i) {
                scales[i] = static_cast<float>(i + 1);
            }
            const auto numbers = [](ElementType type, const std::vector<int64_t>& dims) {
                uint8_t* data = nullptr;
                Tensor codes = Tensor::Zeros(type, dims, &data);
                for (int64_t i = 0; i < codes.count(); ++i) {
                    WriteElement(type, Scalar::Integer(i % 7), data + i);
                }
                return codes;
            };
            Val y;
            if (dequantised) {
                const Tensor codes = numbers(ElementType::kI4, {kDepth, kColumns});
                y = MatMul(x,
                           Dequantise(b.Constant(codes),
                                      b.Constant(Tensor::FromFloats({kBlocks, kColumns}, scales)),
                                      Val(), {0, kBlock}, ElementType::kF32));
            } else {
                const Tensor codes = numbers(ElementType::kU8, {kColumns, kBlocks, kBlock / 2});
                y = MatMulBlocks(x, b.Constant(codes),
                                 b.Constant(Tensor::FromFloats({kColumns, kBlocks}, scales)), Val(),
                                 Val(), {kDepth, kColumns, 4, kBlock});
            }
            graph.AddOutput("y", y.id());
            const Result<Plan> plan = Compile(graph, {});
            EXPECT_TRUE(plan.ok()) << plan.error().message;
            std::vector<std::string> kernels;
            for (size_t i = 0; plan.ok() && i < plan->kernels.size(); ++i) {
                kernels.push_back(loop::ToText(plan->kernels[i].loop));
            }
            return kernels;
        };
        const std::vector<std::string> kernels = kernels_of(true);
        EXPECT_EQ(kernels, kernels_of(false));
        EXPECT_EQ(kernels.size(), rows == 1 ? 1U : 2U);
    }
}

// An LSTM with weights of bytes: the input is multiplied by bytes, the state by floats that are
// made here.
TEST(Compile, InputsOfAnLstmAreMultipliedAsBytes) {
    for (const int64_t hidden : {64, 18}) {
        SCOPED_TRACE(hidden);
        constexpr int64_t kDirections = 2, kInputs = 10;
        const auto numbers = [](const std::vector<int64_t>& dims, ElementType type, double scale) {
            uint8_t* data = nullptr;
            Tensor tensor = Tensor::Zeros(type, dims, &data);
            for (int64_t i = 0; i < tensor.count(); ++i) {
                const int64_t code = i * 37 % 251 - 125;
                WriteElement(type,
                             IsFloat(type) ? Scalar::Float(static_cast<double>(code) * scale)
                                           : Scalar::Integer(code),
                             data + i * BytesOf(type));
            }
            return tensor;
        };
        const auto spread = [&](double scale, int64_t count) {
            std::vector<float> values(static_cast<size_t>(kDirections * count));
            for (size_t i = 0; i < values.size(); ++i) {
                values[i] = static_cast<float>(scale * (1 + 0.1 * static_cast<double>(i % 5)));
            }
            return count == 1 ? Tensor::FromFloats({kDirections}, values)
                              : Tensor::FromFloats({kDirections, count}, values);
        };
        const Tensor x = numbers({5, 3, kInputs}, ElementType::kF32, 0.01);
        RecurrentOptions options;
        options.reversed = {false, true};
        options.activations = {{"sigmoid"}, {"tanh"}, {"tanh"}, {"sigmoid"}, {"tanh"}, {"tanh"}};
        const auto built = [&](bool constant) {
            Graph graph;
            Builder b(graph);
            RecurrentOperands operands;
            operands.x = b.Input("x", x.type());
            operands.bias = b.Constant(numbers({kDirections, 8 * hidden}, ElementType::kF32, 1e-3));
            std::vector<Val> weights;
            for (const int64_t inputs : {kInputs, hidden}) {
                const Tensor codes =
                    numbers({kDirections, inputs, 4 * hidden}, ElementType::kI8, 1);
                weights.push_back(constant ? b.Constant(codes) : b.Input("w", codes.type()));
            }
            graph.AddOutput(
                "y",
                QuantisedLstm({weights[0], b.Constant(spread(0.002, 4 * hidden)), Val()},
                              {weights[1], b.Constant(spread(0.001, 1)), Val()}, operands, options)
                    .y.id());
            return graph;
        };
        const Graph graph = built(true);
        const Result<Plan> plan = Compile(graph, {});
        ASSERT_TRUE(plan.ok()) << plan.error().message;
        EXPECT_TRUE(ValidatePlan(*plan).ok()) << ValidatePlan(*plan).error().message;
        // The bytes of w, and those of r as floats.
        const std::string text = ToText(*plan);
        EXPECT_THAT(text, ::testing::HasSubstr("constant i8["));
        EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("i8[2,")));
        const Result<std::vector<Tensor>> expected = Interpret(graph, std::vector{x});
        const Result<std::vector<Tensor>> actual =
            testing::InterpretPlan(*plan, std::vector{x}, {});
        ASSERT_TRUE(expected.ok() && actual.ok());
        EXPECT_EQ(testing::Difference((*actual)[0], (*expected)[0], 1e-4), "");
        // Weights that are no constants are multiplied as floats.
        const Result<std::vector<Tensor>> floats = Interpret(
            built(false),
            std::vector{x, numbers({kDirections, kInputs, 4 * hidden}, ElementType::kI8, 1),
                        numbers({kDirections, hidden, 4 * hidden}, ElementType::kI8, 1)});
        ASSERT_TRUE(floats.ok()) << floats.error().message;
        for (int64_t i = 0; i < (*floats)[0].count(); ++i) {
            EXPECT_NEAR((*actual)[0].At(i).number, (*floats)[0].At(i).number, 0.03) << i;
        }
    }
}

TEST(Compile, RandomGraphsComputeTheSame) {
    const uint64_t first = Setting("FORNAX_RANDOM_SEED", 1);
    const uint64_t count = Setting("FORNAX_RANDOM_GRAPHS", 400);
    size_t all_runs = 0;
    for (uint64_t seed = first; seed < first + count; ++seed) {
        size_t runs = 0;
        EXPECT_EQ(testing::CheckRandomGraphOnHost(seed, &runs), "");
        all_runs += runs;
    }
    // Symbols are there, and plans serve more than the sizes that they were made for.
    EXPECT_GT(all_runs, count * 3 / 2);
}

TEST(Compile, GeneralizedGraphsComputeWhatTheInterpreterDoes) {
    const uint64_t count = Setting("FORNAX_RANDOM_GRAPHS", 300);
    const uint64_t first = Setting("FORNAX_RANDOM_SEED", 1);
    size_t served = 0;
    for (uint64_t seed = first; seed < first + count; ++seed) {
        EXPECT_EQ(testing::CheckGeneralizedOnHost(seed, &served), "");
    }
    EXPECT_GT(served, count / 4);
}

// Whatever the compiler makes passes ValidatePlan, and its file gives it back.
TEST(Compile, PlansPassTheRulesAndFilesGiveThemBack) {
    for (uint64_t seed = 1; seed <= 300; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Result<Plan> plan = Compile(testing::MakeRandomGraph(seed).graph, {});
        ASSERT_TRUE(plan.ok()) << plan.error().message;
        const Status valid = ValidatePlan(*plan);
        ASSERT_TRUE(valid.ok()) << valid.error().message << "\n" << ToText(*plan);
        const Result<std::vector<std::byte>> file = SerializePlan(*plan);
        ASSERT_TRUE(file.ok()) << file.error().message;
        const Result<Plan> read = ParsePlan(*file);
        ASSERT_TRUE(read.ok()) << read.error().message;
        EXPECT_EQ(ToText(*read), ToText(*plan));
    }
}

}  // namespace
}  // namespace fornax::graph
