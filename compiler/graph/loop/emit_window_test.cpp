// Sliding windows on a device against the interpreter: which kernels are recognised, tiles at all
// edges, and random windows.
#include "compiler/graph/loop/window.h"

#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/graph/loop/emit_spirv.h"
#include "tests/graph/kernel_check.h"

namespace fornax::graph::loop {
namespace {

using test::Tolerance;

class EmitWindowTest : public test::KernelCheck {
  protected:
    static std::optional<Window> Find(const std::string& text) {
        const Kernel kernel = Parse(text);
        return FindWindow(kernel, FindScope(kernel));
    }
    // Checks a kernel of the form, and that it is one.
    static void CheckWindow(const std::string& text,
                            const Bindings& sizes = {},
                            Tolerance tolerance = {1e-5, 1}) {
        EXPECT_TRUE(Find(text)) << text;
        Check(text, sizes, tolerance);
    }
};

struct Convolution {
    int64_t channels = 3, height = 9, width = 9;
    int64_t rows = 3, columns = 3;  // of the window
    int64_t stride_y = 1, stride_x = 1, padding = 1;

    int64_t out_height() const { return (height + 2 * padding - rows) / stride_y + 1; }
    int64_t out_width() const { return (width + 2 * padding - columns) / stride_x + 1; }

    // A depthwise convolution with a clamp before and a bias behind it.
    std::string Text() const {
        return fmt::format(
            "kernel conv(in x: f32[2,{0},{1},{2}], in w: f32[{0},{3},{4}], in b: f32[{0}], "
            "in z: f32[2,{0},{8},{9}], out y: f32[2,{0},{8},{9}])\n"
            "  parallel $n < 2, $c < {0}, $i < {8}, $j < {9}\n"
            "%0 = constant f32 0\n"
            "%1 = inrange {5}*$i + $r - {7} < {1}\n"
            "%2 = inrange {6}*$j + $s - {7} < {2}\n"
            "%3 = and %1, %2\n"
            "%4 = load x[$n,$c,{5}*$i + $r - {7},{6}*$j + $s - {7}]\n"
            "%5 = load b[$c]\n"
            "%6 = add %4, %5\n"
            "%7 = max %6, %0\n"
            "%8 = select %3, %7, %0\n"
            "%9 = load w[$c,$r,$s]\n"
            "%10 = mul %8, %9\n"
            "%11 = reduce sum $r < {3}, $s < {4} of %10\n"
            "%12 = load z[$n,$c,$i,$j]\n"
            "%13 = add %11, %12\n"
            "store y[$n,$c,$i,$j] = %13\n",
            channels, height, width, rows, columns, stride_y, stride_x, padding, out_height(),
            out_width());
    }
};

TEST_F(EmitWindowTest, ConvolutionsOfAllWidths) {
    for (const int64_t side : {2, 7, 8, 14, 20, 28, 56, 112, 130}) {
        CheckWindow(Convolution{.channels = 2, .height = std::min<int64_t>(side, 30), .width = side}
                        .Text());
    }
}

TEST_F(EmitWindowTest, ConvolutionsOfAllWindows) {
    for (const auto& [rows, columns] : {std::pair(5, 5), {7, 7}, {1, 5}, {5, 1}, {2, 3}, {9, 9}}) {
        const int64_t padding = rows == 1 || columns == 1 ? 0 : columns / 2;
        CheckWindow(Convolution{
            .height = 17, .width = 19, .rows = rows, .columns = columns, .padding = padding}
                        .Text());
    }
}

TEST_F(EmitWindowTest, ConvolutionsWithStrides) {
    for (const int64_t side : {7, 14, 28, 57, 113}) {
        CheckWindow(
            Convolution{.channels = 2, .height = 15, .width = side, .stride_y = 2, .stride_x = 2}
                .Text());
    }
    CheckWindow(Convolution{.height = 30,
                            .width = 20,
                            .rows = 5,
                            .columns = 5,
                            .stride_y = 1,
                            .stride_x = 3,
                            .padding = 2}
                    .Text());
    CheckWindow(Convolution{.height = 12,
                            .width = 40,
                            .rows = 5,
                            .columns = 5,
                            .stride_y = 4,
                            .stride_x = 1,
                            .padding = 0}
                    .Text());
}

TEST_F(EmitWindowTest, OneDimension) {
    for (const int n : {2, 15, 100, 1000}) {
        CheckWindow(
            fmt::format("kernel conv(in x: f32[6,{0}], in w: f32[6,15], out y: f32[6,{0}])\n"
                        "  parallel $c < 6, $i < {0}\n"
                        "%0 = load x[$c,$i + $r - 7]\n"
                        "%1 = load w[$c,$r]\n"
                        "%2 = mul %0, %1\n"
                        "%3 = reduce sum $r < 15 of %2\n"
                        "store y[$c,$i] = %3\n",
                        n));
    }
}

TEST_F(EmitWindowTest, Pooling) {
    CheckWindow(
        "kernel pool(in x: f32[1,6,14,14], out y: f32[1,6,7,7])\n"
        "  parallel $b < 1, $c < 6, $i < 7, $j < 7\n"
        "%0 = constant f32 -inf\n"
        "%1 = load x[$b,$c,2*$i + $r - 1,2*$j + $s - 1] otherwise %0\n"
        "%2 = reduce max $r < 3, $s < 3 of %1\n"
        "store y[$b,$c,$i,$j] = %2\n");
    // The mean of the elements that exist: a second reduction counts them.
    CheckWindow(
        "kernel mean(in x: f32[5,20,33], out y: f32[5,20,33])\n"
        "  parallel $c < 5, $i < 20, $j < 33\n"
        "%0 = load x[$c,$i + $r - 1,$j + $s - 1]\n"
        "%1 = reduce sum $r < 3, $s < 3 of %0\n"
        "%2 = inrange $i + $r - 1 < 20\n"
        "%3 = inrange $j + $s - 1 < 33\n"
        "%4 = and %2, %3\n"
        "%5 = cast f32 %4\n"
        "%6 = reduce sum $r < 3, $s < 3 of %5\n"
        "%7 = div %1, %6\n"
        "store y[$c,$i,$j] = %7\n");
}

// Rows that a window along one axis does not share are in one tile nevertheless.
TEST_F(EmitWindowTest, PoolingAlongRows) {
    for (const int64_t width : {5, 20, 130}) {
        const std::string text = fmt::format(
            "kernel pool(in x: f32[3,21,{0}], out y: f32[3,21,{0}])\n"
            "  parallel $c < 3, $i < 21, $j < {0}\n"
            "%0 = constant f32 -inf\n"
            "%1 = load x[$c,$i,$j + $s - 2] otherwise %0\n"
            "%2 = reduce max $s < 5 of %1\n"
            "store y[$c,$i,$j] = %2\n",
            width);
        const std::optional<Window> window = Find(text);
        ASSERT_TRUE(window);
        ASSERT_EQ(window->axes.size(), 2U);
        EXPECT_EQ(window->axes[0].point.variable, Symbol("$i"));
        Check(text);
    }
}

TEST_F(EmitWindowTest, SizesAtRunTime) {
    const std::string text =
        "kernel conv(in x: f32[c,h,w], in k: f32[c,3,3], out y: f32[c,h,w])\n"
        "  sizes c in 0..2147483647, h in 0..2147483647, w in 0..2147483647\n"
        "  parallel $c < c, $i < h, $j < w\n"
        "%0 = load x[$c,$i + $r - 1,$j + $s - 1]\n"
        "%1 = load k[$c,$r,$s]\n"
        "%2 = mul %0, %1\n"
        "%3 = reduce sum $r < 3, $s < 3 of %2\n"
        "store y[$c,$i,$j] = %3\n";
    const Symbol c("c"), h("h"), w("w");
    for (const auto& [height, width] : {std::pair(5, 7), {40, 16}, {33, 200}, {0, 3}, {3, 0}}) {
        CheckWindow(text, {{c, 3}, {h, height}, {w, width}});
    }
}

TEST_F(EmitWindowTest, OtherTypes) {
    for (const auto& [type, sum] :
         {std::pair("i8", "i32"), {"u8", "i32"}, {"f16", "f32"}, {"i64", "i64"}, {"bf16", "f32"}}) {
        CheckWindow(
            fmt::format("kernel conv(in x: {0}[4,10,18], in w: {0}[4,3,3], "
                        "out y: {1}[4,10,18])\n"
                        "  parallel $c < 4, $i < 10, $j < 18\n"
                        "%0 = load x[$c,$i + $r - 1,$j + $s - 1]\n"
                        "%1 = cast {1} %0\n"
                        "%2 = load w[$c,$r,$s]\n"
                        "%3 = cast {1} %2\n"
                        "%4 = mul %1, %3\n"
                        "%5 = reduce sum $r < 3, $s < 3 of %4\n"
                        "store y[$c,$i,$j] = %5\n",
                        type, sum));
    }
}

TEST_F(EmitWindowTest, WhatIsNoWindow) {
    const auto conv = [](const std::string& place, const std::string& factor) {
        return fmt::format(
            "kernel conv(in x: f32[4,10,18], in w: f32[4,3,3], out y: f32[4,10,18])\n"
            "  parallel $c < 4, $i < 10, $j < 18\n"
            "%0 = load x[{}]\n"
            "%1 = load {}\n"
            "%2 = mul %0, %1\n"
            "%3 = reduce sum $r < 3, $s < 3 of %2\n"
            "store y[$c,$i,$j] = %3\n",
            place, factor);
    };
    EXPECT_TRUE(Find(conv("$c,$i + $r,$j + $s", "w[$c,$r,$s]")));
    const std::string others[] = {
        conv("$c,$i + 2*$r,$j + $s", "w[$c,$r,$s]"),       // spread
        conv("$c,$i + $r,2*$i + $j + $s", "w[$c,$r,$s]"),  // two loops in one place
        conv("$c,$i + $r,$j + $r", "w[$c,$r,$s]"),         // one offset in two places
        conv("$c,$i + $r,$j + $s", "w[$c,$i,$s]"),         // a factor of the point
        conv("$c,3*$i + $r,3*$j + $s", "w[$c,$r,$s]"),     // nothing is shared
        conv("$c + $r,$i,$j + $s", "y[$c,$i,$j]"),         // reads what is written
    };
    for (const std::string& text : others) {
        EXPECT_FALSE(Find(text)) << text;
    }
    Check(others[0], {}, {1e-5, 1});
    Check(others[3], {}, {1e-5, 1});
}

TEST_F(EmitWindowTest, RandomWindows) {
    std::mt19937 random(7);
    const auto between = [&](int64_t low, int64_t high) {
        return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    int windows = 0;
    for (int i = 0; i < 24; ++i) {
        Convolution conv;
        conv.channels = between(1, 4);
        conv.rows = between(1, 6);
        conv.columns = between(1, 6);
        conv.padding = between(0, std::min(conv.rows, conv.columns) - 1);
        conv.height = between(conv.rows, 40);
        conv.width = between(conv.columns, i % 4 == 0 ? 300 : 40);
        conv.stride_y = between(1, 3);
        conv.stride_x = between(1, 3);
        windows += Find(conv.Text()) ? 1 : 0;
        Check(conv.Text(), {}, {1e-5, 1});
    }
    EXPECT_GE(windows, 12);
}

}  // namespace
}  // namespace fornax::graph::loop
