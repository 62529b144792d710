// Reductions across the memory on a device against the interpreter, and which kernels go row by
// row.
#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/graph/loop/emit_spirv.h"
#include "tests/graph/kernel_check.h"

namespace fornax::graph::loop {
namespace {

class EmitAcrossTest : public test::KernelCheck {
  protected:
    static int64_t Workgroups(const std::string& text) {
        const Result<Module> module = EmitSpirv(Parse(text), runner_->target());
        EXPECT_TRUE(module.ok()) << module.error().message;
        return module.ok() ? module->workgroups[0].constant().value_or(0) : 0;
    }
};

std::string Reduction(std::string_view combine,
                      int64_t outer,
                      int64_t rows,
                      int64_t columns,
                      std::string_view type = "f32") {
    return fmt::format(
        "kernel reduce(in x: {4}[{1},{2},{3}], out y: {4}[{1},{3}])\n"
        "  parallel $b < {1}, $c < {3}\n"
        "%0 = load x[$b,$r,$c]\n"
        "%1 = reduce {0} $r < {2} of %0\n"
        "store y[$b,$c] = %1\n",
        combine, outer, rows, columns, type);
}

// Sums are added up in another order.
constexpr test::Tolerance kSums = {.relative = 1e-4, .floor = 1};

std::string Softmax(int64_t outer, int64_t rows, int64_t columns) {
    return fmt::format(
        "kernel softmax(in x: f32[{0},{1},{2}], out y: f32[{0},{1},{2}])\n"
        "  parallel $b < {0}, $c < {2}\n"
        "  sequential $s < {1}\n"
        "%0 = load x[$b,$s,$c]\n"
        "%1 = load x[$b,$r,$c]\n"
        "%2 = reduce max $r < {1} of %1\n"
        "%3 = sub %0, %2\n"
        "%4 = exp %3\n"
        "%5 = load x[$b,$q,$c]\n"
        "%6 = sub %5, %2\n"
        "%7 = exp %6\n"
        "%8 = reduce sum $q < {1} of %7\n"
        "%9 = div %4, %8\n"
        "store y[$b,$s,$c] = %9\n",
        outer, rows, columns);
}

TEST_F(EmitAcrossTest, ReductionsOfAllEdges) {
    for (const int64_t rows : {16, 21, 37, 64}) {
        for (const int64_t columns : {256, 257, 300, 1021, 1024, 2500}) {
            for (const std::string_view combine : {"sum", "max", "min"}) {
                Check(Reduction(combine, 2, rows, columns), {}, kSums);
            }
        }
    }
}

TEST_F(EmitAcrossTest, ReductionsOfAllTypes) {
    for (const std::string_view type : {"f16", "bf16", "i8", "u8", "i16", "i32", "u32"}) {
        Check(Reduction("max", 3, 19, 301, type));
    }
    for (const std::string_view type : {"i8", "u8", "i16", "i32"}) {
        Check(Reduction("sum", 3, 40, 301, type));
    }
    // Kept by nobody: those go down their columns.
    for (const std::string_view type : {"i64", "f64"}) {
        Check(Reduction("sum", 2, 20, 300, type), {}, kSums);
    }
}

TEST_F(EmitAcrossTest, Softmax) {
    for (const int64_t rows : {16, 21, 130}) {
        for (const int64_t columns : {256, 1021, 1300}) {
            Check(Softmax(2, rows, columns), {}, {.relative = 2e-5});
        }
    }
}

TEST_F(EmitAcrossTest, PositionsAndSeveralLoops) {
    for (const std::string_view which : {"max", "max last", "min"}) {
        for (const int64_t rows : {16, 21}) {
            Check(
                fmt::format("kernel position(in x: f32[3,{0},515], out y: i64[3,515])\n"
                            "  parallel $b < 3, $c < 515\n"
                            "%0 = load x[$b,$r,$c]\n"
                            "%1 = position {1} $r < {0} of %0\n"
                            "store y[$b,$c] = %1\n",
                            rows, which));
        }
    }
    // Padding, an operand that all rows share, and two loops that do not become one.
    Check(
        "kernel padded(in x: f32[5,9,400], in w: f32[400], in v: f32[5,9], out y: f32[400])\n"
        "  parallel $c < 400\n"
        "%0 = load x[$r - 1,$q,$c - 3]\n"
        "%1 = load w[$c]\n"
        "%2 = load v[$r,$q]\n"
        "%3 = mul %0, %1\n"
        "%4 = mul %3, %2\n"
        "%5 = reduce sum $r < 7, $q < 9 of %4\n"
        "%6 = add %5, %1\n"
        "store y[$c] = %6\n",
        {}, kSums);
}

TEST_F(EmitAcrossTest, KeepsNan) {
    constexpr size_t kRows = 20, kColumns = 300;
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float infinity = std::numeric_limits<float>::infinity();
    for (const std::string_view combine : {"max", "min"}) {
        const Kernel kernel = Parse(Reduction(combine, 1, kRows, kColumns));
        test::Buffers buffers = RandomBuffers(kernel, {});
        // Column c has its odd number in row c % 21, which for some is none.
        for (size_t column = 0; column < kColumns; ++column) {
            const float odd = column % 3 == 0 ? nan : column % 3 == 1 ? -nan : infinity;
            if (column % (kRows + 1) < kRows) {
                const size_t place = column % (kRows + 1) * kColumns + column;
                std::memcpy(buffers[0].data() + place * sizeof(float), &odd, sizeof(float));
            }
        }
        CheckOn(kernel, {}, buffers, {});
    }
}

TEST_F(EmitAcrossTest, TilesOfColumns) {
    // 40 times 1000 columns are many tiles of 1024; of few, each is narrower.
    EXPECT_EQ(Workgroups(Reduction("sum", 40, 20, 1000)), 40);
    EXPECT_EQ(Workgroups(Reduction("sum", 1, 20, 8192)), 32);
    EXPECT_EQ(Workgroups(Reduction("sum", 1, 20, 1024)), 4);
    // What is read three times stays in the second cache.
    EXPECT_EQ(Workgroups(Softmax(40, 128, 1024)), 40 * 2);
    // Too few columns.
    const int64_t local = 256;
    EXPECT_EQ(Workgroups(Reduction("sum", 32, 20, 128)), 32 * 128 / local * 2);
}

}  // namespace
}  // namespace fornax::graph::loop
