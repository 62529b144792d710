// Sliding windows of tensors whose channels come last, on a device against the interpreter: columns
// of points at all edges of the image, and which kernels have them.
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/graph/loop/emit_spirv.h"
#include "compiler/graph/loop/window.h"
#include "tests/graph/kernel_check.h"

namespace fornax::graph::loop {
namespace {

using test::Tolerance;

class EmitColumnsTest : public test::KernelCheck {
  protected:
    static std::optional<Window> Find(const std::string& text) {
        const Kernel kernel = Parse(text);
        return FindWindow(kernel, FindScope(kernel));
    }
    static void CheckColumns(const std::string& text, const Bindings& sizes = {}) {
        const std::optional<Window> window = Find(text);
        EXPECT_TRUE(window && window->lanes) << text;
        Check(text, sizes, {1e-5, 1});
    }
    static int64_t Workgroups(const std::string& text) {
        const Result<Module> module = EmitSpirv(Parse(text), runner_->target());
        EXPECT_TRUE(module.ok()) << module.error().message;
        return module.ok() ? module->workgroups[0].constant().value_or(0) : 0;
    }
};

struct Convolution {
    int64_t channels = 32, height = 9, width = 9;
    int64_t rows = 3, columns = 3;  // of the window
    int64_t stride_y = 1, stride_x = 1, padding = 1;

    int64_t out_height() const { return (height + 2 * padding - rows) / stride_y + 1; }
    int64_t out_width() const { return (width + 2 * padding - columns) / stride_x + 1; }

    // A depthwise convolution with a clamp before and a bias behind it.
    std::string Text() const {
        return fmt::format(
            "kernel conv(in x: f32[2,{1},{2},{0}], in w: f32[{3},{4},{0}], in b: f32[{0}], "
            "in z: f32[2,{8},{9},{0}], out y: f32[2,{8},{9},{0}])\n"
            "  parallel $n < 2, $i < {8}, $j < {9}, $c < {0}\n"
            "%0 = constant f32 0\n"
            "%1 = inrange {5}*$i + $r - {7} < {1}\n"
            "%2 = inrange {6}*$j + $s - {7} < {2}\n"
            "%3 = and %1, %2\n"
            "%4 = load x[$n,{5}*$i + $r - {7},{6}*$j + $s - {7},$c]\n"
            "%5 = load b[$c]\n"
            "%6 = add %4, %5\n"
            "%7 = max %6, %0\n"
            "%8 = select %3, %7, %0\n"
            "%9 = load w[$r,$s,$c]\n"
            "%10 = mul %8, %9\n"
            "%11 = reduce sum $r < {3}, $s < {4} of %10\n"
            "%12 = load z[$n,$i,$j,$c]\n"
            "%13 = add %11, %12\n"
            "store y[$n,$i,$j,$c] = %13\n",
            channels, height, width, rows, columns, stride_y, stride_x, padding, out_height(),
            out_width());
    }
};

TEST_F(EmitColumnsTest, ImagesOfAllWidths) {
    for (const int64_t side : {3, 7, 8, 13, 14, 20, 21, 28, 57}) {
        CheckColumns(Convolution{.height = std::min<int64_t>(side, 15), .width = side}.Text());
    }
}

TEST_F(EmitColumnsTest, WindowsOfAllSizes) {
    for (const auto& [rows, columns] :
         {std::pair(5, 5), {7, 7}, {1, 5}, {5, 1}, {2, 3}, {11, 11}}) {
        const int64_t padding = rows == 1 || columns == 1 ? 0 : columns / 2;
        CheckColumns(Convolution{
            .height = 13, .width = 19, .rows = rows, .columns = columns, .padding = padding}
                         .Text());
    }
}

TEST_F(EmitColumnsTest, ChannelsOfAllNumbers) {
    for (const int64_t channels : {16, 17, 40, 96, 300}) {
        CheckColumns(Convolution{.channels = channels, .height = 4, .width = 11}.Text());
    }
    // Too few to be lanes: the other mappings compute them.
    CheckColumns(Convolution{.channels = 3, .height = 4, .width = 11}.Text());
}

TEST_F(EmitColumnsTest, Strides) {
    for (const int64_t side : {7, 14, 28, 57}) {
        CheckColumns(Convolution{.height = 9, .width = side, .stride_y = 2, .stride_x = 2}.Text());
    }
    CheckColumns(Convolution{.height = 12,
                             .width = 20,
                             .rows = 5,
                             .columns = 5,
                             .stride_y = 1,
                             .stride_x = 3,
                             .padding = 2}
                     .Text());
}

// The last column has points that do not exist; the element behind the image is that of the
// padding.
TEST_F(EmitColumnsTest, Pooling) {
    for (const int64_t width : {5, 20, 23}) {
        CheckColumns(
            fmt::format("kernel pool(in x: f32[9,{0},32], out y: f32[9,{0},32])\n"
                        "  parallel $i < 9, $j < {0}, $c < 32\n"
                        "%0 = constant f32 -inf\n"
                        "%1 = load x[$i + $r - 2,$j + $s - 2,$c] otherwise %0\n"
                        "%2 = reduce max $r < 5, $s < 5 of %1\n"
                        "store y[$i,$j,$c] = %2\n",
                        width));
        // Along one axis, and what a second reduction counts.
        CheckColumns(
            fmt::format("kernel mean(in x: f32[{0},20], out y: f32[{0},20])\n"
                        "  parallel $j < {0}, $c < 20\n"
                        "%0 = load x[$j + $s - 1,$c]\n"
                        "%1 = reduce sum $s < 3 of %0\n"
                        "%2 = inrange $j + $s - 1 < {0}\n"
                        "%3 = cast f32 %2\n"
                        "%4 = reduce sum $s < 3 of %3\n"
                        "%5 = div %1, %4\n"
                        "store y[$j,$c] = %5\n",
                        width));
    }
}

TEST_F(EmitColumnsTest, SizesAtRunTime) {
    const std::string text =
        "kernel conv(in x: f32[h,w,c], in k: f32[3,3,c], out y: f32[h,w,c])\n"
        "  sizes c in 0..2147483647, h in 0..2147483647, w in 0..2147483647\n"
        "  parallel $i < h, $j < w, $c < c\n"
        "%0 = load x[$i + $r - 1,$j + $s - 1,$c]\n"
        "%1 = load k[$r,$s,$c]\n"
        "%2 = mul %0, %1\n"
        "%3 = reduce sum $r < 3, $s < 3 of %2\n"
        "store y[$i,$j,$c] = %3\n";
    const Symbol c("c"), h("h"), w("w");
    for (const auto& [height, width] : {std::pair(5, 7), {12, 16}, {3, 50}, {0, 3}, {3, 0}}) {
        CheckColumns(text, {{c, 35}, {h, height}, {w, width}});
    }
}

TEST_F(EmitColumnsTest, OtherTypes) {
    for (const auto& [type, sum] :
         {std::pair("i8", "i32"), {"u8", "u8"}, {"f16", "f32"}, {"i64", "i64"}, {"bf16", "f32"}}) {
        CheckColumns(
            fmt::format("kernel conv(in x: {0}[10,18,24], in w: {0}[3,3,24], "
                        "out y: {1}[10,18,24])\n"
                        "  parallel $i < 10, $j < 18, $c < 24\n"
                        "%0 = load x[$i + $r - 1,$j + $s - 1,$c]\n"
                        "%1 = cast {1} %0\n"
                        "%2 = load w[$r,$s,$c]\n"
                        "%3 = cast {1} %2\n"
                        "%4 = mul %1, %3\n"
                        "%5 = reduce sum $r < 3, $s < 3 of %4\n"
                        "store y[$i,$j,$c] = %5\n",
                        type, sum));
    }
}

TEST_F(EmitColumnsTest, ColumnsDivideTheImage) {
    // 14 points are two columns of 7, and 64 channels one workgroup.
    EXPECT_EQ(Workgroups(Convolution{.channels = 64, .height = 14, .width = 14}.Text()),
              2 * 14 * 2);
}

// The channels of an image that has one are no lanes: a convolution to many is a product.
TEST_F(EmitColumnsTest, WhatHasNoLanes) {
    const std::string text =
        "kernel conv(in x: f32[10,18], in w: f32[3,3,64], out y: f32[8,16,64])\n"
        "  parallel $i < 8, $j < 16, $c < 64\n"
        "%0 = load x[$i + $r,$j + $s]\n"
        "%1 = load w[$r,$s,$c]\n"
        "%2 = mul %0, %1\n"
        "%3 = reduce sum $r < 3, $s < 3 of %2\n"
        "store y[$i,$j,$c] = %3\n";
    EXPECT_FALSE(Find(text));
    Check(text, {}, {1e-5, 1});
}

TEST_F(EmitColumnsTest, RandomWindows) {
    std::mt19937 random(7);
    const auto between = [&](int64_t low, int64_t high) {
        return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    for (int i = 0; i < 16; ++i) {
        Convolution conv;
        conv.channels = between(16, 40);
        conv.rows = between(1, 6);
        conv.columns = between(1, 6);
        conv.padding = between(0, std::min(conv.rows, conv.columns) - 1);
        conv.height = between(conv.rows, 20);
        conv.width = between(conv.columns, 40);
        conv.stride_y = between(1, 3);
        conv.stride_x = between(1, 3);
        Check(conv.Text(), {}, {1e-5, 1});
    }
}

}  // namespace
}  // namespace fornax::graph::loop
