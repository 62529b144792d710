// Sorts and scans on a device, by the templates and without, against the interpreter.
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/graph/build/builder.h"
#include "compiler/graph/compile.h"
#include "compiler/graph/interpret/interpreter.h"
#include "compiler/graph/plan/plan_file.h"
#include "compiler/graph/testing/compare_tensors.h"
#include "compiler/graph/testing/interpret_plan.h"
#include "compiler/graph/testing/random_tensor.h"
#include "runtime/player_fixture.h"

namespace fornax::runtime {
namespace {

using graph::ElementType;
using graph::Expr;
using graph::Graph;
using graph::Scalar;
using graph::Tensor;

class Templates : public PlayerTest {
  protected:
    // Elements of `distinct` values, among them zeros of both signs, infinities and NaNs; with 0,
    // of any bits.
    Tensor Random(ElementType type, const std::vector<int64_t>& dims, uint64_t distinct) {
        uint8_t* data = nullptr;
        Tensor tensor = Tensor::Zeros(type, dims, &data);
        for (int64_t i = 0; i < tensor.count(); ++i) {
            uint8_t* const element = data + i * BytesOf(type);
            const uint64_t bits = random_();
            if (distinct == 0 && type != ElementType::kBool) {
                graph::WriteElement(ElementType::kU64, Scalar::Integer(static_cast<int64_t>(bits)),
                                    wide_.data());
                std::copy_n(wide_.begin(), BytesOf(type), element);
                // Types of fewer bits than bytes have them alone.
                graph::WriteElement(type, graph::ReadElement(type, element), element);
                continue;
            }
            const auto value = static_cast<int64_t>(bits % std::max<uint64_t>(distinct, 2));
            if (!graph::IsFloat(type)) {
                graph::WriteElement(type, Scalar::Integer(value - (IsSigned(type) ? 3 : 0)),
                                    element);
                continue;
            }
            const double numbers[] = {0.0, -0.0, NAN, INFINITY, -INFINITY, 1e-40};
            graph::WriteElement(
                type,
                Scalar::Float(value < 6 ? numbers[value] : static_cast<double>(value) / 4 - 8),
                element);
        }
        return tensor;
    }

    // What the device computes is what the interpreter does, bit for bit. `of_template`: the
    // template that is to be used, or nothing.
    void CheckSort(const Tensor& input,
                   int64_t axis,
                   bool descending,
                   int64_t count,
                   const std::string& of_template) {
        SCOPED_TRACE(fmt::format("{} axis {} {} first {}", input.type().ToString(), axis,
                                 descending ? "down" : "up", count));
        Graph graph;
        graph::Builder builder(graph);
        const graph::Sorted sorted =
            graph::Sort(builder.Input("x", input.type()), axis, descending, count);
        graph.AddOutput("values", sorted.values.id());
        graph.AddOutput("positions", sorted.positions.id());
        Check(graph, {input}, of_template, 0);
    }

    // The same for a scan of the input as it is, and of one that is not in memory.
    void CheckScan(const Tensor& input,
                   const graph::op::Scan& scan,
                   const std::string& of_template) {
        SCOPED_TRACE(fmt::format("{} {} axis {}{}{}", input.type().ToString(), Name(scan.combine),
                                 scan.axis, scan.exclusive ? " exclusive" : "",
                                 scan.reverse ? " reverse" : ""));
        Graph graph;
        graph::Builder builder(graph);
        const graph::Val x = builder.Input("x", input.type());
        const auto scanned = [&](graph::Val value) {
            return graph::Scan(scan.combine, value, scan.axis, scan.exclusive, scan.reverse);
        };
        graph.AddOutput("y", scanned(x).id());
        graph.AddOutput("of_reverse", scanned(graph::Reverse(x, scan.axis)).id());
        Check(graph, {input}, of_template + of_template, 0);
    }

    void Check(const Graph& graph,
               const std::vector<Tensor>& inputs,
               const std::string& of_template,
               double tolerance) {
        const Result<std::vector<Tensor>> expected = graph::Interpret(graph, inputs);
        ASSERT_TRUE(expected.ok()) << expected.error().message;
        Result<graph::Plan> plan = graph::Compile(graph, {});
        ASSERT_TRUE(plan.ok()) << plan.error().message;
        std::string used;
        for (const graph::PlanStep& step : plan->steps) {
            const auto& kernel = plan->kernels[std::get<graph::DispatchStep>(step).kernel.value()];
            used += kernel.of_template ? kernel.of_template->name() : "";
        }
        EXPECT_EQ(used, of_template);
        // The plan passes the rules of plans from files, also as what is read from a file.
        const Result<std::vector<std::byte>> file = graph::SerializePlan(*plan);
        ASSERT_TRUE(file.ok()) << file.error().message;
        Result<graph::Plan> read = graph::ParsePlan(*file);
        ASSERT_TRUE(read.ok()) << read.error().message;
        const Result<std::vector<Tensor>> on_host =
            graph::testing::InterpretPlan(*read, inputs, {});
        ASSERT_TRUE(on_host.ok()) << on_host.error().message;
        Session session(Make(*std::move(read)));
        const std::vector<Tensor> actual = Run(session, inputs);
        ASSERT_EQ(actual.size(), expected->size());
        for (size_t i = 0; i < actual.size(); ++i) {
            EXPECT_EQ(graph::testing::Difference((*on_host)[i], (*expected)[i], tolerance), "");
            EXPECT_EQ(graph::testing::Difference(actual[i], (*expected)[i], tolerance), "") << i;
        }
    }

    std::mt19937_64 random_{7};
    std::array<uint8_t, 8> wide_ = {};
};

// Every element type, with few distinct values and with any bits.
TEST_F(Templates, SortAllTypes) {
    for (size_t i = 0; i <= static_cast<size_t>(graph::kLastElementType); ++i) {
        const auto type = static_cast<ElementType>(i);
        if (type == ElementType::kString) {
            continue;
        }
        const bool wide = BytesOf(type) == 8;
        CheckSort(Random(type, {2, 400}, 40), 1, i % 2 == 0, 400, "sort_rows");
        CheckSort(Random(type, {2, 400}, 0), 1, i % 2 != 0, 17, wide ? "sort_rows" : "select_rows");
        CheckSort(Random(type, {2, 40}, 40), 1, i % 2 == 0, 40, "");
    }
}

// Any axis, lengths about those of runs, counts of none to all.
TEST_F(Templates, SortAllShapes) {
    for (const int64_t length : {129, 144, 1000, 5003}) {
        for (const int64_t count : {int64_t{0}, int64_t{1}, length / 9, length - 1, length}) {
            const std::string of_template = count <= length / 8 ? "select_rows" : "sort_rows";
            CheckSort(Random(ElementType::kF32, {length}, 0), 0, false, count, of_template);
            CheckSort(Random(ElementType::kI32, {3, length, 2}, 50), 1, true, count, of_template);
            CheckSort(Random(ElementType::kI64, {length, 3}, 0), 0, true, count, "sort_rows");
        }
    }
}

// Rows in which far more keys than are wanted are equal, or that are in order already.
TEST_F(Templates, SelectAmongEqualAndSortedKeys) {
    for (const int64_t count : {1, 100, 1024}) {
        Tensor same = Random(ElementType::kU8, {2, 9000}, 2);
        CheckSort(same, 1, true, count, "select_rows");
        CheckSort(Random(ElementType::kI32, {9000}, 1), 0, false, count, "select_rows");
        uint8_t* data = nullptr;
        const Tensor ordered = Tensor::Zeros(ElementType::kI32, {9000}, &data);
        for (int64_t i = 0; i < 9000; ++i) {
            graph::WriteElement(ElementType::kI32, Scalar::Integer(i), data + 4 * i);
        }
        CheckSort(ordered, 0, false, count, "select_rows");
        CheckSort(ordered, 0, true, count, "select_rows");
    }
}

TEST_F(Templates, SortNothing) {
    CheckSort(Random(ElementType::kF32, {0, 400}, 0), 1, false, 400, "sort_rows");
    CheckSort(Random(ElementType::kF32, {3, 400, 0}, 0), 1, false, 3, "select_rows");
    CheckSort(Random(ElementType::kF32, {1, 1}, 0), 1, false, 1, "");
    CheckSort(Random(ElementType::kF32, {2, 0}, 0), 1, false, 0, "");
}

// One plan for several sizes; what the keys are made of needs not be in memory.
TEST_F(Templates, SortSymbolicSizesOfComputedValues) {
    Graph graph;
    const graph::Symbol n = graph.sizes().Declare("n", 300);
    const graph::Symbol m = graph.sizes().Declare("m", 3);
    graph::Builder builder(graph);
    const graph::Val x = builder.Input("x", {ElementType::kF32, graph::Shape{m, Expr(n)}});
    const graph::Sorted sorted = graph::Sort(-x, 1, true, n);
    const graph::Sorted first = graph::Sort(x, 1, true, 5);
    graph.AddOutput("values", sorted.values.id());
    graph.AddOutput("first", first.positions.id());
    Result<graph::Plan> plan = graph::Compile(graph, {.dynamic_sizes = {"m", "n"}});
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    ASSERT_TRUE(graph::ValidatePlan(*plan).ok());
    Session session(Make(*std::move(plan)));
    for (const auto& [rows, length] : {std::pair{3, 300}, {1, 5}, {7, 64}, {2, 2000}}) {
        SCOPED_TRACE(length);
        const std::vector<Tensor> inputs = {Random(ElementType::kF32, {rows, length}, 60)};
        const Result<std::vector<Tensor>> expected = graph::Interpret(graph, inputs);
        ASSERT_TRUE(expected.ok()) << expected.error().message;
        const std::vector<Tensor> actual = Run(session, inputs);
        for (size_t i = 0; i < actual.size(); ++i) {
            EXPECT_EQ(graph::testing::Difference(actual[i], (*expected)[i], 0), "") << i;
        }
    }
}

// Small whole numbers, of which all sums are exact.
TEST_F(Templates, ScanAllTypes) {
    for (size_t i = 0; i <= static_cast<size_t>(graph::kLastElementType); ++i) {
        const auto type = static_cast<ElementType>(i);
        if (type == ElementType::kString || type == ElementType::kBool) {
            continue;
        }
        const std::string of_template = fmt::format(
            "scan_rows_{}{}", graph::IsFloat(type) ? "f" : "i", BytesOf(type) == 8 ? 64 : 32);
        const bool keeps_order = BytesOf(type) < 4 || graph::IsSigned(type);
        const bool is_narrow = BytesOf(type) < 4;
        const Tensor x = graph::testing::MakeRandomTensor(random_, type, {2, 300},
                                                          graph::IsSigned(type) ? -1 : 0, 1);
        CheckScan(x, {graph::Combine::kSum, 1, i % 2 == 0, i % 3 == 0}, of_template);
        CheckScan(x, {graph::Combine::kMax, 1, true, i % 2 == 0},
                  keeps_order && !is_narrow ? of_template : "");
        CheckScan(Random(type, {2, 300}, 40), {graph::Combine::kMin, 1, false, i % 2 == 0},
                  keeps_order ? of_template : "");
    }
}

// Any axis, lengths about those of tiles and runs, all four directions.
TEST_F(Templates, ScanAllShapes) {
    for (const int64_t length : {65, 256, 257, 1000, 5003}) {
        for (const int64_t way : {0, 1, 2, 3}) {
            const bool exclusive = way % 2 != 0, reverse = way >= 2;
            const auto whole = [&](const std::vector<int64_t>& dims) {
                return graph::testing::MakeRandomTensor(random_, ElementType::kF32, dims, -8, 8);
            };
            CheckScan(whole({length}), {graph::Combine::kSum, 0, exclusive, reverse},
                      "scan_rows_f32");
            CheckScan(whole({3, length}), {graph::Combine::kSum, 1, exclusive, reverse},
                      "scan_rows_f32");
            CheckScan(whole({2, length, 3}), {graph::Combine::kSum, 1, exclusive, reverse},
                      "scan_rows_f32");
        }
        CheckScan(Random(ElementType::kI64, {length, 20}, 0), {graph::Combine::kProduct, 0}, "");
        CheckScan(Random(ElementType::kI32, {length, 2}, 0), {graph::Combine::kProduct, 0},
                  "scan_rows_i32");
    }
    CheckScan(Random(ElementType::kF32, {0, 300}, 40), {graph::Combine::kSum, 1}, "scan_rows_f32");
    CheckScan(Random(ElementType::kF32, {3, 1}, 40), {graph::Combine::kMax, 1}, "");
    CheckScan(Random(ElementType::kF32, {3, 0}, 40), {graph::Combine::kMax, 1}, "");
}

}  // namespace
}  // namespace fornax::runtime
