// Values that a row's reductions and stores have in common: which are found, and rows on a device
// against the interpreter.
#include "compiler/graph/loop/kept_values.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/graph/kernel_check.h"

namespace fornax::graph::loop {
namespace {

class KeptValuesTest : public test::KernelCheck {
  protected:
    static std::vector<KeptValue> Find(const std::string& text) {
        const Kernel kernel = Parse(text);
        return FindKeptValues(kernel, FindScope(kernel));
    }
};

// A softmax; `summed` and `stored` are what the two exponentials are of.
std::string Softmax(int64_t points,
                    std::string_view summed = "sub %3, %2",
                    std::string_view stored = "sub %5, %2",
                    std::string_view function = "exp") {
    return fmt::format(
        "kernel softmax(in x: f32[9,{0}], in z: f32[9,{0}], out y: f32[9,{0}])\n"
        "  parallel $i < 9, $j < {0}\n"
        "  rows 1\n"
        "%0 = load x[$i,$r]\n"
        "%1 = load z[$i,$j]\n"
        "%2 = reduce max $r < {0} of %0\n"
        "%3 = load x[$i,$s]\n"
        "%4 = {1}\n"
        "%5 = load x[$i,$j]\n"
        "%6 = {2}\n"
        "%7 = exp %4\n"
        "%8 = reduce sum $s < {0} of %7\n"
        "%9 = {3} %6\n"
        "%10 = div %9, %8\n"
        "store y[$i,$j] = %10\n",
        points, summed, stored, function);
}

TEST_F(KeptValuesTest, ExponentialsOfASoftmax) {
    const std::vector<KeptValue> kept = Find(Softmax(100));
    ASSERT_EQ(kept.size(), 1U);
    EXPECT_EQ(kept[0].reduced, ScalarId(7));
    EXPECT_EQ(kept[0].stored, ScalarId(9));
    EXPECT_EQ(kept[0].point, Symbol("$s"));
}

TEST_F(KeptValuesTest, WhatIsNotTheSame) {
    EXPECT_TRUE(Find(Softmax(100, "sub %3, %2", "add %5, %2")).empty());
    EXPECT_TRUE(Find(Softmax(100, "sub %3, %2", "sub %1, %2")).empty());  // of another buffer
    EXPECT_TRUE(Find(Softmax(100, "sub %3, %2", "sub %5, %2", "tanh")).empty());
    EXPECT_TRUE(Find(Softmax(100, "sub %2, %2", "sub %2, %2")).empty());  // one value a row
    EXPECT_TRUE(Find(Softmax(100000)).empty());                           // too many to keep
}

TEST_F(KeptValuesTest, RowsOfAllLengths) {
    for (const int64_t points : {1, 7, 31, 32, 33, 77, 128, 1000, 4096}) {
        ASSERT_FALSE(Find(Softmax(points)).empty());
        Check(Softmax(points), {}, {1e-5, 1e-6});
    }
    Check(Softmax(50, "sub %3, %2", "sub %1, %2"), {}, {1e-5, 1e-6});
}

}  // namespace
}  // namespace fornax::graph::loop
