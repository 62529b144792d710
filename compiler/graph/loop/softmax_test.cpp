// What is known of a softmax's reductions, and rows with NaN and infinities on a device.
#include "compiler/graph/loop/softmax.h"

#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graph/kernel_check.h"

namespace fornax::graph::loop {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class SoftmaxTest : public test::KernelCheck {
  protected:
    static SoftmaxReductions Find(const std::string& text) {
        const Kernel kernel = Parse(text);
        return FindSoftmaxReductions(kernel, FindScope(kernel));
    }

    // Rows with special values beside ordinary ones, as rows and as points.
    static void CheckSpecial(const std::string& text) {
        Kernel kernel = Parse(text);
        test::Buffers buffers = RandomBuffers(kernel, {});
        const int64_t points = *kernel.buffers[0].type.shape[1].constant();
        const auto set = [&](int64_t row, int64_t point, float value) {
            std::memcpy(buffers[0].data() + (row * points + point) * sizeof(float), &value,
                        sizeof(float));
        };
        for (int64_t i = 0; i < points; ++i) {
            set(0, i, -kInfinity);
            set(1, i, i == points / 2 ? 1.5F : -kInfinity);
            set(2, i, kNan);
            set(8, i, i % 2 == 0 ? -3e38F : -2e38F);
        }
        set(3, 0, kNan);
        set(4, points - 1, kNan);
        set(5, points / 2, kInfinity);
        set(6, points / 3, -kInfinity);
        set(7, points / 2, 90.0F);
        CheckOn(kernel, {}, buffers, {1e-5, 1e-6});
        kernel.mapping = Mapping::kFlat;
        kernel.row_loops = 0;
        CheckOn(kernel, {}, buffers, {1e-5, 1e-6});
    }
};

std::string Softmax(int64_t points,
                    std::string_view rest,
                    std::string_view summed = "sub %2, %1",
                    int64_t rows = 9) {
    return fmt::format(
        "kernel softmax(in x: f32[{3},{0}], in z: f32[{3},{0}], out y: f32[{3},{0}], out m: "
        "f32[{3}])\n"
        "  parallel $i < {3}, $j < {0}\n"
        "  rows 1\n"
        "%0 = load x[$i,$r]\n"
        "%1 = reduce max $r < {0} of %0\n"
        "%2 = load x[$i,$s]\n"
        "%3 = {2}\n"
        "%4 = exp %3\n"
        "%5 = reduce sum $s < {0} of %4\n"
        "%6 = load x[$i,$j]\n"
        "%7 = sub %6, %1\n"
        "{1}",
        points, rest, summed, rows);
}

constexpr char kQuotient[] =
    "%8 = exp %7\n"
    "%9 = div %8, %5\n"
    "store y[$i,$j] = %9\n";
constexpr char kLogarithm[] =
    "%8 = log %5\n"
    "%9 = sub %7, %8\n"
    "store y[$i,$j] = %9\n";

TEST_F(SoftmaxTest, ReductionsOfASoftmax) {
    for (const char* rest : {kQuotient, kLogarithm}) {
        const SoftmaxReductions found = Find(Softmax(100, rest));
        EXPECT_THAT(found.maxima, ElementsAre(ScalarId(1)));
        EXPECT_THAT(found.sums, ElementsAre(ScalarId(5)));
    }
}

// The sum is what it is, but the maximum is told to others.
TEST_F(SoftmaxTest, MaximaThatAreUsedOtherwise) {
    for (const std::string& rest : {
             std::string(kQuotient) + "store m[$i] = %1\n",
             std::string(kLogarithm) + "store y[$i,$j] = %7\n",
             std::string("%8 = exp %7\n%9 = div %8, %5\nstore y[$i,$j] = %8\n"),
             std::string("%8 = exp %7\n%9 = max %8, %5\nstore y[$i,$j] = %9\n"),
             std::string("%8 = exp %7\n%9 = div %5, %8\nstore y[$i,$j] = %9\n"),
             std::string("%8 = exp %7\n%9 = mul %1, %1\nstore y[$i,$j] = %9\n"),
         }) {
        const SoftmaxReductions found = Find(Softmax(100, rest));
        EXPECT_THAT(found.maxima, IsEmpty()) << rest;
        EXPECT_THAT(found.sums, ElementsAre(ScalarId(5))) << rest;
    }
}

TEST_F(SoftmaxTest, OtherSums) {
    EXPECT_THAT(Find(Softmax(100, kQuotient, "add %2, %1")).sums, IsEmpty());
    EXPECT_THAT(Find(Softmax(100, kQuotient, "sub %1, %2")).sums, IsEmpty());
    std::string text = Softmax(100, kQuotient);
    text.replace(text.find("x[$i,$s]"), 8, "z[$i,$s]");
    EXPECT_THAT(Find(text).sums, IsEmpty());
    text = Softmax(100, kQuotient);
    text.replace(text.find("$s < 100"), 8, "$s < 99");
    EXPECT_THAT(Find(text).sums, IsEmpty());
    text = Softmax(100, kQuotient);
    text.replace(text.find("reduce max"), 10, "reduce min");
    EXPECT_THAT(Find(text).sums, IsEmpty());
}

// A point sees what it stored before, so equal scalars may differ.
TEST_F(SoftmaxTest, BuffersThatAreWritten) {
    std::string text = Softmax(100, kQuotient);
    text.replace(text.find("in x"), 4, "out x");
    EXPECT_THAT(Find(text).sums, IsEmpty());
}

TEST_F(SoftmaxTest, NanAndInfinities) {
    for (const int64_t points : {3, 32, 77, 300, 1024, 5000}) {
        CheckSpecial(Softmax(points, kQuotient));
        CheckSpecial(Softmax(points, kLogarithm));
        CheckSpecial(Softmax(points, std::string(kQuotient) + "store m[$i] = %1\n"));
    }
}

// All that is made of loops over a row: of several points at once, the rest, what not all
// invocations have.
TEST_F(SoftmaxTest, RowsOfAllLengths) {
    for (const int64_t points : {1, 31, 32, 33, 64, 127, 128, 129, 160, 161, 256, 300, 416, 1000}) {
        Check(Softmax(points, kQuotient), {}, {1e-5, 1e-6});
        Check(Softmax(points, std::string(kLogarithm) + "store m[$i] = %1\n"), {}, {1e-5, 1e-5});
    }
}

// So many rows that workgroups have two.
TEST_F(SoftmaxTest, RowsInPairs) {
    for (const int64_t points : {1, 20, 32, 77, 128, 200, 512}) {
        CheckSpecial(Softmax(points, kQuotient, "sub %2, %1", 256));
        CheckSpecial(
            Softmax(points, std::string(kLogarithm) + "store m[$i] = %1\n", "sub %2, %1", 258));
    }
}

// A normalisation with row values of its own, what all rows share, and loops of two variables.
TEST_F(SoftmaxTest, NormalisationsInPairs) {
    for (const int64_t points : {2, 48, 96, 130, 768, 1000}) {
        Check(
            fmt::format("kernel norm(in x: f32[16,24,{0},2], in g: f32[24], in a: f32[100], out y: "
                        "f32[16,24,{0},2], out m: f32[16,24], out n: i32[16,24])\n"
                        "  parallel $i < 16, $c < 24, $j < {0}, $k < 2\n"
                        "  rows 2\n"
                        "%0 = load x[$i,$c,$r,$s]\n"
                        "%1 = reduce sum $r < {0}, $s < 2 of %0\n"
                        "%2 = constant f32 0.015625\n"
                        "%3 = mul %1, %2\n"
                        "%4 = load x[$i,$c,$t,$u]\n"
                        "%5 = sub %4, %3\n"
                        "%6 = mul %5, %5\n"
                        "%7 = reduce sum $t < {0}, $u < 2 of %6\n"
                        "%8 = add %7, %2\n"
                        "%9 = sqrt %8\n"
                        "%10 = load a[$q]\n"
                        "%11 = reduce sum $q < 100 of %10\n"
                        "%12 = load x[$i,$c,$j,$k]\n"
                        "%13 = sub %12, %3\n"
                        "%14 = div %13, %9\n"
                        "%15 = load g[$c]\n"
                        "%16 = mul %14, %15\n"
                        "%17 = add %16, %11\n"
                        "%18 = constant f32 0\n"
                        "%19 = lt %18, %4\n"
                        "%20 = cast i32 %19\n"
                        "%21 = reduce sum $t < {0}, $u < 2 of %20\n"
                        "store y[$i,$c,$j,$k] = %17\n"
                        "store m[$i,$c] = %3\n"
                        "store n[$i,$c] = %21\n",
                        points),
            {}, {1e-4, 1e-2});
    }
}

}  // namespace
}  // namespace fornax::graph::loop
