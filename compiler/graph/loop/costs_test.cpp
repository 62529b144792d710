// What kernels compute and move.
#include "compiler/graph/loop/costs.h"

#include <string>

#include <gtest/gtest.h>

namespace fornax::graph::loop {
namespace {

struct Numbers {
    int64_t operations, read, written;
    bool operator==(const Numbers&) const = default;
};

Numbers CostsOf(const std::string& text, const Bindings& sizes = {}) {
    const Result<Kernel> kernel = ParseKernel(text);
    if (!kernel.ok()) {
        ADD_FAILURE() << kernel.error().message;
        return {};
    }
    const KernelCosts costs = EstimateCosts(*kernel);
    return {costs.operations.Evaluate(sizes).value_or(-1),
            costs.bytes_read.Evaluate(sizes).value_or(-1),
            costs.bytes_written.Evaluate(sizes).value_or(-1)};
}

TEST(LoopCosts, OfAProductAreTwoOperationsAStep) {
    EXPECT_EQ(CostsOf(R"(kernel product(in a: f32[4,8], in b: f32[8,16], out y: f32[4,16])
  parallel $i0 < 4, $i1 < 16
  %0 = load a[$i0, $r0]
  %1 = load b[$r0, $i1]
  %2 = mul %0, %1
  %3 = reduce sum $r0 < 8 of %2
  store y[$i0, $i1] = %3
)"),
              (Numbers{2 * 4 * 8 * 16, 4 * (4 * 8 + 8 * 16), 4 * 4 * 16}));
}

// A table of which two rows are read has not been read as a whole.
TEST(LoopCosts, CountRowsThatAreGathered) {
    EXPECT_EQ(CostsOf(R"(kernel gather(in t: f32[1000,8], in i: i64[2], out y: f32[2,8])
  parallel $i0 < 2, $i1 < 8
  %0 = load i[$i0]
  %1 = load t[$v0, $i1]
  store y[$i0, $i1] = %1
)"),
              (Numbers{0, 2 * 8 + 2 * 8 * 4, 2 * 8 * 4}));
}

// A window's overlapping places, and an operand for all rows, are read once.
TEST(LoopCosts, CountElementsOnce) {
    EXPECT_EQ(CostsOf(R"(kernel window(in x: f32[n + 2], in c: f32[], out y: f32[n])
  sizes n in 1..100
  parallel $i0 < n
  %0 = load x[$i0 + $r0]
  %1 = reduce max $r0 < 3 of %0
  %2 = load c[]
  %3 = mul %1, %2
  store y[$i0] = %3
)",
                      {{Symbol("n"), 10}}),
              (Numbers{3 * 10 + 10, 4 * 12 + 4, 4 * 10}));
}

// What is stored into a part of a buffer.
TEST(LoopCosts, CountWhatIsStored) {
    EXPECT_EQ(CostsOf(R"(kernel append(in x: f16[8], in p: i64[], out cache: f16[4096,8])
  parallel $i0 < 8
  %0 = load x[$i0]
  %1 = load p[]
  store cache[$v1, $i0] = %0
)"),
              (Numbers{0, 8 * 2 + 8, 8 * 2}));
}

// Two rows of a state, each multiplied by a matrix in each of three iterations.
TEST(LoopCosts, CountIterationsOfPhasesOnce) {
    EXPECT_EQ(CostsOf(R"(kernel rnn(in r: f32[8,8], in x: f32[3,2,8], out y: f32[2,8])
  local h: f32[2,8]
  parallel $g < 2
  sequential $t < 3
  %0 = constant f32 0
  %1 = load h[mod($t, 2),$k]
  %2 = load r[$k,$i]
  %3 = mul %1, %2
  %4 = reduce sum $k < 8 of %3
  %5 = load x[$t,$g,$i]
  %6 = add %4, %5
  %7 = load h[1,$z]
  %8 = neg %7
  before $a < 8
  store h[0,$a] = %0
  each $i < 8
  store h[mod($t + 1, 2),$i] = %6
  after $z < 8
  store y[$g,$z] = %8
)"),
              (Numbers{2 * 3 * 8 * (2 * 8 + 1) + 2 * 8, 4 * (8 * 8 + 3 * 2 * 8), 4 * 2 * 8}));
}

KernelWork WorkOfText(const std::string& text) {
    const Result<Kernel> kernel = ParseKernel(text);
    EXPECT_TRUE(kernel.ok()) << kernel.error().message;
    return WorkOf(*kernel);
}

// With narrow operands, and functions of the sum that are counted beside it.
TEST(LoopWork, NamesTheProductAndWhatIsBesideIt) {
    const KernelWork work = WorkOfText(
        R"(kernel product(in a: bf16[4,8], in b: bf16[8,16], in c: f32[16], out y: f32[4,16])
  parallel $i0 < 4, $i1 < 16
  %0 = load a[$i0, $r0]
  %1 = cast f32 %0
  %2 = load b[$r0, $i1]
  %3 = cast f32 %2
  %4 = mul %1, %3
  %5 = reduce sum $r0 < 8 of %4
  %6 = load c[$i1]
  %7 = div %5, %6
  %8 = tanh %7
  %9 = add %8, %6
  store y[$i0, $i1] = %9
)");
    ASSERT_EQ(work.products.size(), 1U);
    const ProductWork& product = work.products[0];
    EXPECT_EQ(product.batch, Expr(1));
    EXPECT_EQ(product.m, Expr(4));
    EXPECT_EQ(product.n, Expr(16));
    EXPECT_EQ(product.k, Expr(8));
    EXPECT_EQ(product.a, ElementType::kBF16);
    EXPECT_EQ(product.b, ElementType::kBF16);
    EXPECT_EQ(product.a_bytes, Expr(2 * 4 * 8));
    EXPECT_EQ(product.b_bytes, Expr(2 * 8 * 16));
    EXPECT_EQ(work.simple, Expr(64));
    EXPECT_EQ(work.division, Expr(64));
    EXPECT_EQ(work.special, Expr(64));
    ASSERT_EQ(work.accesses.size(), 4U);
    EXPECT_EQ(work.accesses[2].bytes, Expr(4 * 16));
    EXPECT_TRUE(work.accesses[3].writes);
}

// What an array of multipliers would have one column for is no product.
TEST(LoopWork, BatchesOfColumnsAreVectorOperations) {
    const KernelWork work = WorkOfText(R"(kernel dots(in a: f32[4,8], in b: f32[4,8], out y: f32[4])
  parallel $i0 < 4
  %0 = load a[$i0, $r0]
  %1 = load b[$i0, $r0]
  %2 = mul %0, %1
  %3 = reduce sum $r0 < 8 of %2
  store y[$i0] = %3
)");
    EXPECT_TRUE(work.products.empty());
    EXPECT_EQ(work.simple, Expr(2 * 4 * 8));
}

TEST(LoopWork, SaysWhichBuffersAreAccessedByData) {
    const KernelWork work =
        WorkOfText(R"(kernel gather(in t: f32[1000,8], in i: i64[2], out y: f32[2,8])
  parallel $i0 < 2, $i1 < 8
  %0 = load i[$i0]
  %1 = load t[$v0, $i1]
  store y[$i0, $i1] = %1
)");
    ASSERT_EQ(work.accesses.size(), 3U);
    EXPECT_TRUE(work.accesses[0].by_data);
    EXPECT_EQ(work.accesses[0].bytes, Expr(2 * 8 * 4));
    EXPECT_FALSE(work.accesses[1].by_data);
    EXPECT_FALSE(work.accesses[2].by_data);
}

}  // namespace
}  // namespace fornax::graph::loop
