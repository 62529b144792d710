// Runs of points on a device against the interpreter: transpositions of all edges and types, and
// which kernels have runs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/graph/loop/emit_spirv.h"
#include "tests/graph/kernel_check.h"

namespace fornax::graph::loop {
namespace {

class EmitRunsTest : public test::KernelCheck {
  protected:
    // The workgroups of the kernel's code: each has a run for so many lanes.
    static int64_t Workgroups(const std::string& text) {
        const Result<Module> module = EmitSpirv(Parse(text), runner_->target());
        EXPECT_TRUE(module.ok()) << module.error().message;
        return module.ok() ? module->workgroups[0].constant().value_or(0) : 0;
    }
};

std::string Transposition(int64_t outer,
                          const std::string& rows,
                          const std::string& columns,
                          std::string_view type = "f32",
                          std::string_view sizes = "") {
    return fmt::format(
        "kernel transpose(in x: {3}[{0},{1},{2}], out y: {3}[{0},{2},{1}])\n{4}"
        "  parallel $i < {0}, $c < {2}, $r < {1}\n"
        "%0 = load x[$i,$r,$c]\n"
        "store y[$i,$c,$r] = %0\n",
        outer, rows, columns, type, sizes);
}

TEST_F(EmitRunsTest, TranspositionsOfAllEdges) {
    for (const int64_t rows : {2, 3, 15, 16, 17, 33, 64, 77}) {
        for (const int64_t columns : {1, 2, 5, 16, 31, 48, 300}) {
            Check(Transposition(3, fmt::to_string(rows), fmt::to_string(columns)));
        }
    }
}

TEST_F(EmitRunsTest, TranspositionsOfAllTypes) {
    for (const std::string_view type : {"f16", "bf16", "i8", "u16", "i64", "f64", "bool"}) {
        Check(Transposition(2, "35", "53", type));
        Check(Transposition(2, "3", "53", type));
    }
}

TEST_F(EmitRunsTest, SizesThatAreKnownAtRunTime) {
    for (const int64_t rows : {1, 16, 37}) {
        for (const int64_t columns : {0, 1, 40, 256}) {
            Check(Transposition(2, "n", "m", "f32", "  sizes n in 1..100, m in 0..300\n"),
                  {{Symbol("n"), rows}, {Symbol("m"), columns}});
        }
    }
}

// What is computed between, several results, checks that some points of a run fail, and conditions.
TEST_F(EmitRunsTest, ComputesAtEachPoint) {
    Check(
        "kernel both(in x: f32[40,50], in z: f32[50,40], in k: bool[50], out y: f32[50,40], "
        "out s: f32[47,40])\n"
        "  parallel $c < 50, $r < 40\n"
        "%0 = load x[$r - 2,$c + 1]\n"
        "%1 = load z[$c,$r]\n"
        "%2 = mul %0, %1\n"
        "%3 = load k[$c]\n"
        "store y[$c,$r] = %2\n"
        "store s[$c - 3,$r] = %1 if %3\n");
}

TEST_F(EmitRunsTest, LanesFillVectors) {
    // 320 rows are five workgroups of 64, 37 columns three runs.
    EXPECT_EQ(Workgroups(Transposition(2, "320", "37")), 2 * 5 * 3);
    EXPECT_EQ(Workgroups(Transposition(2, "37", "320")), 2 * 5 * 3);
    // All three columns are a run for 256 rows.
    EXPECT_EQ(Workgroups(Transposition(2, "1024", "3")), 2 * 4);
    EXPECT_EQ(Workgroups(Transposition(2, "3", "1024")), 2 * 4);
}

}  // namespace
}  // namespace fornax::graph::loop
