// Products of few rows with a matrix whose columns lie along k on a device, against the
// interpreter.
#include <tuple>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/graph/loop/few_dots.h"
#include "tests/graph/kernel_check.h"

namespace fornax::graph::loop {
namespace {

class EmitFewDotsTest : public test::KernelCheck {
  protected:
    static bool IsOfFewDots(const std::string& text) {
        const Kernel kernel = Parse(text);
        const Scope scope = FindScope(kernel);
        const std::optional<Product> product = FindProduct(kernel, scope);
        return product && HasFewDots(kernel, scope, *product);
    }
};

// m x n of rows of k elements, with an epilogue.
std::string Rows(int m, const std::string& n, int k, const std::string& type) {
    return fmt::format(
        "kernel rows(in x: f32[{0},{2}], in w: {3}[{1},{2}], in c: f32[{1}], out y: f32[{0},{1}])\n"
        "  parallel $i < {0}, $j < {1}\n"
        "  product\n"
        "%0 = load x[$i,$r]\n"
        "%1 = load w[$j,$r]\n"
        "%2 = cast f32 %1\n"
        "%3 = mul %0, %2\n"
        "%4 = reduce sum $r < {2} of %3\n"
        "%5 = load c[$j]\n"
        "%6 = add %4, %5\n"
        "store y[$i,$j] = %6\n",
        m, n, k, type);
}

TEST_F(EmitFewDotsTest, AllSizes) {
    for (const char* type : {"f16", "bf16"}) {
        for (const auto& [m, n, k] : {std::tuple(1, 64, 256),
                                      {1, 7, 300},
                                      {2, 5, 2048},
                                      {3, 4, 257},
                                      {5, 6, 320},
                                      {9, 8, 288},
                                      {16, 3, 512},
                                      {16, 6, 512}}) {
            SCOPED_TRACE(fmt::format("{} {} {} {}", type, m, n, k));
            const std::string text = Rows(m, std::to_string(n), k, type);
            EXPECT_TRUE(IsOfFewDots(text));
            Check(text, {}, {.relative = 1e-4, .floor = 1});
        }
    }
}

// Columns that are known at run time only, in a batch.
TEST_F(EmitFewDotsTest, SymbolicColumnsOfABatch) {
    const std::string text =
        "kernel batch(in x: f32[3,2,256], in w: f16[3,n,256], out y: f32[3,2,n])\n"
        "  sizes n in 1..100\n"
        "  parallel $h < 3, $i < 2, $j < n\n"
        "  product\n"
        "%0 = load x[$h,$i,$r]\n"
        "%1 = load w[$h,$j,$r]\n"
        "%2 = cast f32 %1\n"
        "%3 = mul %0, %2\n"
        "%4 = reduce sum $r < 256 of %3\n"
        "store y[$h,$i,$j] = %4\n";
    EXPECT_TRUE(IsOfFewDots(text));
    for (const int64_t n : {1, 4, 19}) {
        Check(text, {{Symbol("n"), n}}, {.relative = 1e-4, .floor = 1});
    }
}

// Blocks of 34 bytes: a scale, and 32 of which each is an element.
TEST_F(EmitFewDotsTest, BlocksOfBytes) {
    for (const int m : {1, 4, 9}) {
        const std::string text = fmt::format(
            "kernel blocks(in x: f32[{0},9,32], in w: i8[6,9,34], out y: f32[{0},6])\n"
            "  parallel $i < {0}, $j < 6\n"
            "  product\n"
            "%0 = load x[$i,$c,$r]\n"
            "%1 = load w[$j,$c,$r + 2]\n"
            "%2 = cast f32 %1\n"
            "%3 = load w[$j,$c,1]\n"
            "%4 = cast f32 %3\n"
            "%5 = mul %2, %4\n"
            "%6 = mul %0, %5\n"
            "%7 = reduce sum $c < 9, $r < 32 of %6\n"
            "store y[$i,$j] = %7\n",
            m);
        EXPECT_TRUE(IsOfFewDots(text));
        Check(text, {}, {.relative = 1e-4, .floor = 10});
    }
}

// Many rows are tiles; short sums and columns that lie side by side are others' work.
TEST_F(EmitFewDotsTest, OthersAreNot) {
    EXPECT_FALSE(IsOfFewDots(Rows(17, "64", 256, "f16")));
    EXPECT_FALSE(IsOfFewDots(Rows(1, "64", 128, "f16")));
    EXPECT_FALSE(
        IsOfFewDots("kernel columns(in x: f32[1,256], in w: f16[256,64], out y: f32[1,64])\n"
                    "  parallel $i < 1, $j < 64\n"
                    "  product\n"
                    "%0 = load x[$i,$r]\n"
                    "%1 = load w[$r,$j]\n"
                    "%2 = cast f32 %1\n"
                    "%3 = mul %0, %2\n"
                    "%4 = reduce sum $r < 256 of %3\n"
                    "store y[$i,$j] = %4\n"));
}

}  // namespace
}  // namespace fornax::graph::loop
