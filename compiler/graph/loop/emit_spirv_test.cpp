// Kernels on a device against the interpreter: mappings, loops, reductions, checks of indices.
#include "compiler/graph/loop/emit_spirv.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/graph/kernel_check.h"

namespace fornax::graph::loop {
namespace {

using EmitSpirvTest = test::KernelCheck;
using test::Tolerance;

const Symbol kM("m"), kN("n");

constexpr char kAdd[] =
    "kernel add(in x: f32[m,n], in b: f32[n], out y: f32[m,n])\n"
    "  sizes m in 0..2147483647, n in 0..2147483647\n"
    "  parallel $i < m, $j < n\n"
    "%0 = load x[$i,$j]\n"
    "%1 = load b[$j]\n"
    "%2 = add %0, %1\n"
    "store y[$i,$j] = %2\n";

TEST_F(EmitSpirvTest, ElementwiseOfAnySize) {
    for (const auto& [m, n] : {std::pair(3, 5), {1, 1}, {7, 300}, {300, 7}, {0, 4}, {4, 0}}) {
        Check(kAdd, {{kM, m}, {kN, n}});
    }
}

TEST_F(EmitSpirvTest, ElementwiseOfFixedSizes) {
    for (const int n : {1, 5, 16, 49, 64, 100, 256, 257, 1000}) {
        Check(
            fmt::format("kernel add(in x: f32[6,{0}], in b: f32[6,1], out y: f32[6,{0}])\n"
                        "  parallel $i < 6, $j < {0}\n"
                        "%0 = load x[$i,$j]\n"
                        "%1 = load b[$i,0]\n"
                        "%2 = mul %0, %1\n"
                        "store y[$i,$j] = %2\n",
                        n));
    }
}

TEST_F(EmitSpirvTest, MoreWorkgroupsThanOneAxisHas) {
    Check(
        "kernel many(in x: u8[65536,16], in y: u8[65536], out z: u8[65536,16])\n"
        "  parallel $i < 65536, $j < 16\n"
        "%0 = load x[$i,$j]\n"
        "%1 = load y[65535 - $i]\n"
        "%2 = add %0, %1\n"
        "store z[$i,$j] = %2\n");
}

// 20 points lie in 32 lanes, so that vectors begin with rows; 40 and 16 points need no such care.
TEST_F(EmitSpirvTest, ShortRowsThatAreReadWithAStride) {
    const auto half = [](int64_t columns, int64_t stride) {
        return fmt::format(
            "kernel half(in x: f32[7,5,{0}], out y: f32[7,5,{1}])\n"
            "  parallel $i < 7, $j < 5, $k < {1}\n"
            "%0 = load x[$i, $j, {2} * $k]\n%1 = load x[$i, $j, {2} * $k + 1]\n%2 = add %0, %1\n"
            "store y[$i, $j, $k] = %2\n",
            columns * stride + 1, columns, stride);  // rows that do not join
    };
    for (const int64_t columns : {7, 9, 15, 16, 17, 20, 31, 32, 40}) {
        for (const int64_t stride : {2, 3, 5}) {
            Check(half(columns, stride));
        }
    }
    const auto workgroups = [&](int64_t columns) {
        return EmitSpirv(Parse(half(columns, 2)), runner_->target())->workgroups[0];
    };
    EXPECT_EQ(workgroups(20), Expr((7 * 5 * 32 + 255) / 256));
    EXPECT_EQ(workgroups(12), Expr((7 * 5 * 16 + 255) / 256));
    EXPECT_EQ(workgroups(40), Expr(7 * 5));
}

TEST_F(EmitSpirvTest, ViewsOfAllKinds) {
    // A transposition, a reshape, a slice with a stride, a flip, padding.
    Check(
        "kernel views(in x: f32[6,20], out t: f32[20,6], out r: f32[8,15], out s: f32[3,7], "
        "out f: f32[6,20], out p: f32[8,24])\n"
        "  parallel $i < 24, $j < 24\n"
        "%0 = load x[$j,$i]\n"
        "%1 = load x[floor(15*$i + $j, 20),mod(15*$i + $j, 20)]\n"
        "%2 = load x[2*$i,3*$j]\n"
        "%3 = load x[5 - $i,19 - $j]\n"
        "%4 = constant f32 3.5\n"
        "%5 = load x[$i - 1,$j - 2] otherwise %4\n"
        "%6 = inrange $j < 15\n"
        "store t[$i,$j] = %0\n"
        "store r[$i,$j] = %1 if %6\n"
        "store s[$i,$j] = %2\n"
        "store f[$i,$j] = %3\n"
        "store p[$i,$j] = %5\n");
}

TEST_F(EmitSpirvTest, IndicesThatAreScalars) {
    Check(
        "kernel gather(in x: f32[9,33], in i: i64[5], in k: i32[5], out y: f32[5,33], "
        "out z: f32[5,33])\n"
        "  parallel $i < 5, $j < 33\n"
        "%0 = load i[$i]\n"
        "%1 = load x[$v0,$j]\n"
        "%2 = load k[$i]\n"
        "%3 = load x[2*$v2 + $v0,mod($j + $v2, 33)]\n"
        "store y[$i,$j] = %1\n"
        "store z[$i,$j] = %3\n");
}

TEST_F(EmitSpirvTest, SequentialLoopsSeeWhatWasStored) {
    Check(
        "kernel scan(in x: f32[40,9], out y: f32[40,9])\n"
        "  parallel $i < 40\n"
        "  sequential $s < 9\n"
        "%0 = load x[$i,$s]\n"
        "%1 = load y[$i,$s - 1]\n"
        "%2 = add %0, %1\n"
        "store y[$i,$s] = %2\n");
}

TEST_F(EmitSpirvTest, Softmax) {
    for (const int n : {1, 31, 32, 33, 128, 1000, 1024}) {
        Check(fmt::format("kernel softmax(in x: f32[5,{0}], out y: f32[5,{0}])\n"
                          "  parallel $i < 5, $j < {0}\n"
                          "  rows 1\n"
                          "%0 = load x[$i,$r]\n"
                          "%1 = reduce max $r < {0} of %0\n"
                          "%2 = sub %0, %1\n"
                          "%3 = exp %2\n"
                          "%4 = reduce sum $r < {0} of %3\n"
                          "%5 = load x[$i,$j]\n"
                          "%6 = sub %5, %1\n"
                          "%7 = exp %6\n"
                          "%8 = div %7, %4\n"
                          "store y[$i,$j] = %8\n",
                          n),
              {}, Tolerance{1e-5, 1e-9});
    }
}

constexpr char kLayerNorm[] =
    "kernel norm(in x: f32[m,n], out y: f32[m,n], out s: f32[m])\n"
    "  sizes m in 0..2147483647, n in 0..2147483647\n"
    "  parallel $i < m, $j < n\n"
    "  rows 1\n"
    "%0 = load x[$i,$r]\n"
    "%1 = reduce sum $r < n of %0\n"
    "%2 = index n\n"
    "%3 = cast f32 %2\n"
    "%4 = div %1, %3\n"
    "%5 = sub %0, %4\n"
    "%6 = mul %5, %5\n"
    "%7 = reduce sum $r < n of %6\n"
    "%8 = div %7, %3\n"
    "%9 = rsqrt %8\n"
    "%10 = load x[$i,$j]\n"
    "%11 = sub %10, %4\n"
    "%12 = mul %11, %9\n"
    "store y[$i,$j] = %12\n"
    "store s[$i] = %4\n";

TEST_F(EmitSpirvTest, LayerNormOfAnySize) {
    for (const auto& [m, n] : {std::pair(3, 5), {2, 32}, {7, 300}, {0, 4}, {4, 0}}) {
        Check(kLayerNorm, {{kM, m}, {kN, n}}, Tolerance{2e-4, 1e-2});
    }
}

TEST_F(EmitSpirvTest, ReductionsOverSeveralLoops) {
    for (const char* rows : {"", "  rows 1\n"}) {
        Check(fmt::format("kernel reduce(in x: f32[9,7,5,7], out a: f32[9], out b: f32[9])\n"
                          "  parallel $i < 9\n{}"
                          "%0 = load x[$i,$r,$s,$t]\n"
                          "%1 = reduce sum $r < 7, $s < 5, $t < 7 of %0\n"
                          "%2 = load x[$i,$r,2,$t]\n"
                          "%3 = reduce product $r < 7, $t < 7 of %2\n"
                          "store a[$i] = %1\n"
                          "store b[$i] = %3\n",
                          rows),
              {}, Tolerance{1e-4, 1e-6});
    }
}

TEST_F(EmitSpirvTest, MaxPoolingWithPadding) {
    Check(
        "kernel pool(in x: f32[1,6,14,14], out y: f32[1,6,7,7])\n"
        "  parallel $b < 1, $c < 6, $i < 7, $j < 7\n"
        "%0 = constant f32 -inf\n"
        "%1 = load x[$b,$c,2*$i + $r - 1,2*$j + $s - 1] otherwise %0\n"
        "%2 = reduce max $r < 3, $s < 3 of %1\n"
        "store y[$b,$c,$i,$j] = %2\n");
}

TEST_F(EmitSpirvTest, NestedReductions) {
    Check(
        "kernel k(in x: i32[4,50], out y: i32[4])\n"
        "  parallel $i < 4\n"
        "  rows 1\n"
        "%0 = load x[$i,$r]\n"
        "%1 = reduce max $r < $q + 1 of %0\n"
        "%2 = reduce sum $q < 50 of %1\n"
        "store y[$i] = %2\n");
}

TEST_F(EmitSpirvTest, EveryCombination) {
    for (const char* type : {"i8", "u8", "i32", "u32", "i64", "u64", "f32", "f16"}) {
        for (const char* combine : {"sum", "product", "min", "max"}) {
            Check(fmt::format("kernel k(in x: {0}[3,41], out y: {0}[3])\n"
                              "  parallel $i < 3\n"
                              "  rows 1\n"
                              "%0 = load x[$i,$r]\n"
                              "%1 = reduce {1} $r < 41 of %0\n"
                              "store y[$i] = %1\n",
                              type, combine),
                  {}, Tolerance{2e-3, 1e-3});
        }
    }
    for (const char* type : {"bool", "i32", "u8"}) {
        for (const char* combine : {"and", "or", "xor"}) {
            Check(
                fmt::format("kernel k(in x: {0}[3,41], out y: {0}[3])\n"
                            "  parallel $i < 3\n"
                            "  rows 1\n"
                            "%0 = load x[$i,$r]\n"
                            "%1 = reduce {1} $r < 41 of %0\n"
                            "store y[$i] = %1\n",
                            type, combine));
        }
    }
}

TEST_F(EmitSpirvTest, Positions) {
    for (const char* type : {"i8", "f32"}) {
        for (const char* which : {"max", "min", "max last", "min last"}) {
            for (const int n : {1, 7, 100}) {
                Check(
                    fmt::format("kernel k(in x: {0}[6,{2}], out y: i64[6], out z: i64[6])\n"
                                "  parallel $i < 6\n"
                                "  rows 1\n"
                                "%0 = load x[$i,$r]\n"
                                "%1 = position {1} $r < {2} of %0\n"
                                "%2 = mul %0, %0\n"
                                "%3 = position {1} $r < {2} of %2\n"
                                "store y[$i] = %1\n"
                                "store z[$i] = %3\n",
                                type, which, n));
            }
        }
    }
}

TEST_F(EmitSpirvTest, TheSameKernelGivesTheSameWords) {
    const Kernel kernel = Parse(kLayerNorm);
    const Result<Module> a = EmitSpirv(kernel, Target()), b = EmitSpirv(kernel, Target());
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_EQ(a->words, b->words);
}

TEST_F(EmitSpirvTest, BuffersThatAreTooLargeAreRefused) {
    const Kernel kernel = Parse(
        "kernel large(in x: u8[65536,65536], out y: u8[4])\n"
        "  parallel $i < 4\n"
        "%0 = load x[$i,$i]\n"
        "store y[$i] = %0\n");
    const Result<Module> module = EmitSpirv(kernel, Target());
    ASSERT_FALSE(module.ok());
    EXPECT_EQ(module.error().code, ErrorCode::kUnsupported);
    EXPECT_EQ(module.error().message,
              "The buffer x of the kernel large has 4294967296 elements, more than 2147483647.");
}

TEST_F(EmitSpirvTest, CodeThatWouldBeTooLongIsRefused) {
    // Each of the reductions has the whole chain of scalars in its body.
    std::string text =
        "kernel long(in x: f32[4,100], out y: f32[4])\n"
        "  parallel $i < 4\n"
        "%0 = load x[$i,$r]\n";
    int next = 1;
    for (; next < 2000; ++next) {
        text += fmt::format("%{} = add %{}, %0\n", next, next - 1);
    }
    const int body = next - 1;
    int sum = body;
    for (int i = 0; i < 200; ++i) {
        text += fmt::format("%{} = reduce {} $r < 100 of %{}\n", next, i % 2 == 0 ? "sum" : "max",
                            body);
        text += i == 0 ? "" : fmt::format("%{} = add %{}, %{}\n", next + 1, sum, next);
        sum = i == 0 ? next : next + 1;
        next = sum + 1;
    }
    text += fmt::format("store y[$i] = %{}\n", sum);
    const Result<Module> module = EmitSpirv(Parse(text), Target());
    ASSERT_FALSE(module.ok());
    EXPECT_EQ(module.error().message,
              "The kernel long is not for the device: its code is longer than 1048576 words.");
}

TEST_F(EmitSpirvTest, LimitsOfSymbolicSizes) {
    const Result<Module> module = EmitSpirv(Parse(kAdd), Target());
    ASSERT_TRUE(module.ok());
    const auto within = [&](int64_t m, int64_t n) {
        return std::all_of(module->limits.begin(), module->limits.end(), [&](const Expr& limit) {
            return limit.Evaluate({{kM, m}, {kN, n}}).value_or(INT64_MAX) <= INT32_MAX;
        });
    };
    EXPECT_TRUE(within(1000, 1000));
    EXPECT_FALSE(within(1 << 20, 1 << 20));
}

}  // namespace
}  // namespace fornax::graph::loop
