// Products of floats in tiles, of bytes and of few rows on a device, against the interpreter; every
// module passes spirv-val.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/graph/loop/byte_product.h"
#include "compiler/graph/loop/few_rows.h"
#include "tests/graph/kernel_check.h"

namespace fornax::graph::loop {
namespace {

class EmitProductsTest : public test::KernelCheck {
  protected:
    static bool IsByteProduct(const std::string& text) {
        const Kernel kernel = Parse(text);
        const Scope scope = FindScope(kernel);
        const std::optional<Product> product = FindProduct(kernel, scope);
        return product && FindByteProduct(kernel, scope, *product);
    }
    static bool IsOfFewRows(const std::string& text) {
        const Kernel kernel = Parse(text);
        const Scope scope = FindScope(kernel);
        const std::optional<Product> product = FindProduct(kernel, scope);
        return product && HasFewRows(kernel, scope, *product);
    }
};

// m x n with k words, columns in panels of 16.
std::string ByteMatrices(int m, int n, int k, const char* a, const char* b) {
    return fmt::format(
        "kernel bytes(in a: {3}[{0},{5}], in b: {4}[{6},{2},16,4], in s: f32[{1}], "
        "out y: f32[{0},{1}])\n"
        "  parallel $i < {0}, $j < {1}\n"
        "  product\n"
        "%0 = load a[$i,4*$r + $u]\n"
        "%1 = cast i32 %0\n"
        "%2 = load b[floor($j, 16),$r,mod($j, 16),$u]\n"
        "%3 = cast i32 %2\n"
        "%4 = mul %1, %3\n"
        "%5 = reduce sum $r < {2}, $u < 4 of %4\n"
        "%6 = cast f32 %5\n"
        "%7 = load s[$j]\n"
        "%8 = mul %6, %7\n"
        "store y[$i,$j] = %8\n",
        m, n, k, a, b, 4 * k, (n + 15) / 16);
}

TEST_F(EmitProductsTest, BytesOfAllSigns) {
    for (const char* a : {"u8", "i8"}) {
        for (const char* b : {"u8", "i8"}) {
            const std::string text = ByteMatrices(9, 40, 5, a, b);
            EXPECT_TRUE(IsByteProduct(text));
            Check(text);
        }
    }
}

TEST_F(EmitProductsTest, BytesOfAllSizes) {
    for (const auto& [m, n, k] :
         {std::tuple(1, 16, 1), {3, 5, 7}, {8, 64, 3}, {16, 31, 2}, {65, 33, 16}}) {
        SCOPED_TRACE(fmt::format("{} {} {}", m, n, k));
        Check(ByteMatrices(m, n, k, "u8", "i8"));
    }
}

// A window of 3 x 3 with padding; what is outside is 7.
TEST_F(EmitProductsTest, BytesOfWindows) {
    for (const int stride : {1, 2}) {
        const std::string text = fmt::format(
            "kernel conv(in x: u8[2,9,11,8], in w: i8[2,3,3,2,16,4], out y: i32[2,{0},{1},20])\n"
            "  parallel $b < 2, $i < {0}, $j < {1}, $o < 20\n"
            "  product\n"
            "%0 = constant u8 7\n"
            "%1 = load x[$b,{2}*$i + $r - 1,{2}*$j + $s - 1,4*$t + $u] otherwise %0\n"
            "%2 = cast i32 %1\n"
            "%3 = load w[floor($o, 16),$r,$s,$t,mod($o, 16),$u]\n"
            "%4 = cast i32 %3\n"
            "%5 = mul %2, %4\n"
            "%6 = reduce sum $r < 3, $s < 3, $t < 2, $u < 4 of %5\n"
            "store y[$b,$i,$j,$o] = %6\n",
            stride == 1 ? 9 : 5, stride == 1 ? 11 : 6, stride);
        EXPECT_TRUE(IsByteProduct(text));
        Check(text);
    }
}

// Places of one word: whether a tile's windows are inside is decided for each of their rows.
TEST_F(EmitProductsTest, BytesOfWindowsOfOneWord) {
    for (const auto& [stride, before] : {std::pair(1, 2), std::pair(2, 3), std::pair(1, 0)}) {
        SCOPED_TRACE(fmt::format("stride {}, {} before", stride, before));
        const int height = (12 + 2 * before - 3) / stride + 1;
        const int width = (40 + 2 * before - 5) / stride + 1;
        const std::string text = fmt::format(
            "kernel conv(in x: u8[2,12,40,4], in w: i8[2,3,5,16,4], out y: i32[2,{0},{1},20])\n"
            "  parallel $b < 2, $i < {0}, $j < {1}, $o < 20\n"
            "  product\n"
            "%0 = constant u8 9\n"
            "%1 = load x[$b,{2}*$i + $r - {3},{2}*$j + $s - {3},$u] otherwise %0\n"
            "%2 = cast i32 %1\n"
            "%3 = load w[floor($o, 16),$r,$s,mod($o, 16),$u]\n"
            "%4 = cast i32 %3\n"
            "%5 = mul %2, %4\n"
            "%6 = reduce sum $r < 3, $s < 5, $u < 4 of %5\n"
            "store y[$b,$i,$j,$o] = %6\n",
            height, width, stride, before);
        EXPECT_TRUE(IsByteProduct(text));
        Check(text);
    }
}

// The same of bf16, two in a word, with code for devices that multiply them and for others. Windows
// are outside of the image here and there.
TEST_F(EmitProductsTest, WordsOfBf16) {
    std::vector<std::string> texts;
    for (const auto& [m, n, k] : {std::tuple(9, 16, 5), {16, 40, 64}, {65, 33, 16}}) {
        texts.push_back(fmt::format(
            "kernel words(in a: bf16[{0},{3}], in b: bf16[{4},{2},16,2], in s: f32[{1}], "
            "out y: f32[{0},{1}])\n"
            "  parallel $i < {0}, $j < {1}\n"
            "  product\n"
            "%0 = load a[$i,2*$r + $u]\n"
            "%1 = cast f32 %0\n"
            "%2 = load b[floor($j, 16),$r,mod($j, 16),$u]\n"
            "%3 = cast f32 %2\n"
            "%4 = mul %1, %3\n"
            "%5 = reduce sum $r < {2}, $u < 2 of %4\n"
            "%6 = load s[$j]\n"
            "%7 = add %5, %6\n"
            "store y[$i,$j] = %7\n",
            m, n, k, 2 * k, (n + 15) / 16));
    }
    texts.push_back(
        "kernel conv(in x: bf16[2,9,11,8], in w: bf16[2,3,3,4,16,2], out y: f32[2,5,6,20])\n"
        "  parallel $b < 2, $i < 5, $j < 6, $o < 20\n"
        "  product\n"
        "%0 = constant bf16 0.5\n"
        "%1 = load x[$b,2*$i + $r - 1,2*$j + $s - 1,2*$t + $u] otherwise %0\n"
        "%2 = cast f32 %1\n"
        "%3 = load w[floor($o, 16),$r,$s,$t,mod($o, 16),$u]\n"
        "%4 = cast f32 %3\n"
        "%5 = mul %2, %4\n"
        "%6 = reduce sum $r < 3, $s < 3, $t < 4, $u < 2 of %5\n"
        "store y[$b,$i,$j,$o] = %6\n");
    for (const std::string& text : texts) {
        SCOPED_TRACE(text);
        EXPECT_TRUE(IsByteProduct(text));
        Check(text, {}, {.relative = 1e-4, .floor = 1});
        if (runner_->target().bfloat16_dot) {
            runner_->target().bfloat16_dot = false;
            Check(text, {}, {.relative = 1e-4, .floor = 1});
            runner_->target().bfloat16_dot = true;
        }
    }
}

TEST_F(EmitProductsTest, BytesThatAreNoWords) {
    // A word that begins at an odd place, three bytes, and an edge within a word.
    const auto text = [](const char* index, int places) {
        return fmt::format(
            "kernel bytes(in a: u8[5,40], in b: i8[3,9,16,4], out y: i32[5,40])\n"
            "  parallel $i < 5, $j < 40\n"
            "  product\n"
            "%0 = load a[$i,{0}]\n"
            "%1 = cast i32 %0\n"
            "%2 = load b[floor($j, 16),$r,mod($j, 16),$u]\n"
            "%3 = cast i32 %2\n"
            "%4 = mul %1, %3\n"
            "%5 = reduce sum $r < 9, $u < {1} of %4\n"
            "store y[$i,$j] = %5\n",
            index, places);
    };
    EXPECT_TRUE(IsByteProduct(text("4*$r + $u", 4)));
    for (const auto& [index, places] : {std::pair("4*$r + $u + 1", 4),
                                        {"3*$r + $u", 4},
                                        {"4*$r + $u", 3},
                                        {"4*$r + $u + 6", 4},
                                        {"4*$r + 2*$u", 4}}) {
        EXPECT_FALSE(IsByteProduct(text(index, places))) << index;
        Check(text(index, places));
    }
}

// Sums of products of about 1 nearly cancel here and there, so differences are measured against
// 0.1. Tiles of all shapes: rows that are no multiple of a matrix, columns of odd numbers of
// matrices.
TEST_F(EmitProductsTest, FloatsInTiles) {
    for (const auto& [m, n, k] : {std::tuple(49, 64, 64),
                                  {36, 80, 96},
                                  {72, 48, 70},
                                  {45, 512, 32},
                                  {16, 16, 16},
                                  {23, 40, 48}}) {
        SCOPED_TRACE(fmt::format("{} {} {}", m, n, k));
        Check(
            fmt::format("kernel floats(in a: f32[{0},{2}], in b: f32[{3},{2},16], in s: f32[{1}], "
                        "out y: f32[{0},{1}])\n"
                        "  parallel $i < {0}, $j < {1}\n"
                        "  product\n"
                        "%0 = load a[$i,$r]\n"
                        "%1 = load b[floor($j, 16),$r,mod($j, 16)]\n"
                        "%2 = mul %0, %1\n"
                        "%3 = reduce sum $r < {2} of %2\n"
                        "%4 = load s[$j]\n"
                        "%5 = add %3, %4\n"
                        "store y[$i,$j] = %5\n",
                        m, n, k, (n + 15) / 16),
            {}, {.relative = 1e-4, .floor = 1});
    }
}

// So many tiles that their rows are in groups: whole ones, and ones with tiles that do not exist,
// also of bytes, in batches and of sizes that are known at run time only.
TEST_F(EmitProductsTest, TilesInGroupsOfRows) {
    for (const auto& [m, n] : {std::pair(256, 200), {300, 200}, {170, 90}}) {
        SCOPED_TRACE(fmt::format("{} {}", m, n));
        Check(fmt::format("kernel grid(in a: f32[3,{0},16], in b: f32[3,16,{1}], "
                          "out y: f32[3,{0},{1}])\n"
                          "  parallel $h < 3, $i < {0}, $j < {1}\n"
                          "  product\n"
                          "%0 = load a[$h,$i,$r]\n"
                          "%1 = load b[$h,$r,$j]\n"
                          "%2 = mul %0, %1\n"
                          "%3 = reduce sum $r < 16 of %2\n"
                          "store y[$h,$i,$j] = %3\n",
                          m, n),
              {}, {.relative = 1e-4, .floor = 1});
        Check(ByteMatrices(m, n, 3, "u8", "i8"));
    }
    Check(
        "kernel grid(in a: f32[s,16], in b: f32[16,200], out y: f32[s,200])\n"
        "  parallel $i < s, $j < 200\n"
        "  product\n"
        "  sizes s in 65..300\n"
        "%0 = load a[$i,$r]\n"
        "%1 = load b[$r,$j]\n"
        "%2 = mul %0, %1\n"
        "%3 = reduce sum $r < 16 of %2\n"
        "store y[$i,$j] = %3\n",
        {{Symbol("s"), 170}}, {.relative = 1e-4, .floor = 1});
}

// Products that are computed in registers: rows that no tile divides, columns of half a vector, of
// memory that has no more of them and that has whole panels, and any number of ks. Three panels,
// and seventeen, of which none is behind the last. Long ones only in wide registers.
TEST_F(EmitProductsTest, FloatsInRegisters) {
    for (const auto& [m, n, k] : {std::tuple(49, 24, 24),
                                  {20, 272, 9},
                                  {23, 64, 257},
                                  {40, 32, 258},
                                  {17, 48, 260},
                                  {23, 40, 9},
                                  {30, 16, 144},
                                  {112, 96, 16},
                                  {17, 33, 50},
                                  {64, 144, 7}}) {
        SCOPED_TRACE(fmt::format("{} {} {}", m, n, k));
        for (const bool panels : {true, false}) {
            const bool wide = runner_->target().wide_registers;
            for (const bool wide_registers : {false, true}) {
                runner_->target().wide_registers = wide_registers;
                Check(fmt::format(
                          "kernel floats(in a: f32[2,{0},{2}], in b: f32[{3}], in s: f32[{1}], "
                          "out y: f32[2,{0},{1}])\n"
                          "  parallel $h < 2, $i < {0}, $j < {1}\n"
                          "  product\n"
                          "%0 = load a[$h,$i,$r]\n"
                          "%1 = load b[{4}]\n"
                          "%2 = mul %0, %1\n"
                          "%3 = reduce sum $r < {2} of %2\n"
                          "%4 = load s[$j]\n"
                          "%5 = add %3, %4\n"
                          "store y[$h,$i,$j] = %5\n",
                          m, n, k,
                          panels ? fmt::format("{},{},16", (n + 15) / 16, k)
                                 : fmt::format("{},{}", k, n),
                          panels ? "floor($j, 16),$r,mod($j, 16)" : "$r,$j"),
                      {}, {.relative = 1e-4, .floor = 1});
            }
            runner_->target().wide_registers = wide;
        }
    }
}

// Rows, columns and batches that other memory names have no strides.
TEST_F(EmitProductsTest, RowsThatMemoryNames) {
    for (const auto& [m, n, k] :
         {std::tuple(48, 64, 32), {2, 64, 64}, {49, 24, 24}, {32, 256, 256}}) {
        for (const auto& [a, b] : {std::pair("0,mod($v0, 24),$r", "0,$r,$j"),
                                   {"0,$i,$r", "mod($v0, 3),$r,$j"},
                                   {"0,$i,$r", "0,$r,mod($v1, 24)"},
                                   {"0,mod($v0, 24),$r", "0,$r,mod($v1, 24)"},
                                   {"0,mod($v0, 24),floor($r, 2)", "mod($v0, 3),$r,$j"}}) {
            SCOPED_TRACE(fmt::format("{} {} {}: {}, {}", m, n, k, a, b));
            Check(fmt::format("kernel rows(in u: i64[{0}], in v: i64[{1}], in a: f32[1,{0},{2}], "
                              "in b: f32[3,{2},{1}], out y: f32[{0},{1}])\n"
                              "  parallel $i < {0}, $j < {1}\n"
                              "  product\n"
                              "%0 = load u[$i]\n"
                              "%1 = load v[$j]\n"
                              "%2 = load a[{3}]\n"
                              "%3 = load b[{4}]\n"
                              "%4 = mul %2, %3\n"
                              "%5 = reduce sum $r < {2} of %4\n"
                              "store y[$i,$j] = %5\n",
                              m, n, k, a, b),
                  {}, {.relative = 1e-4, .floor = 1});
        }
    }
}

// Windows over three planes: written out, some rows and columns of which are outside of the image,
// where there is another value than 0. Of 7 x 7 one plane after the other.
TEST_F(EmitProductsTest, WindowsOfPlanes) {
    for (const auto& [side, stride, width] : {std::tuple(3, 2, 24), {3, 1, 23}, {7, 2, 30}}) {
        SCOPED_TRACE(fmt::format("{} {} {}", side, stride, width));
        Check(fmt::format("kernel conv(in x: f32[2,3,9,{2}], in w: f32[2,3,{0},{0},16], "
                          "out y: f32[2,{3},{4},20])\n"
                          "  parallel $b < 2, $i < {3}, $j < {4}, $o < 20\n"
                          "  product\n"
                          "%0 = constant f32 0.5\n"
                          "%1 = load x[$b,$c,{1}*$i + $r - {5},{1}*$j + $s - {5}] otherwise %0\n"
                          "%2 = load w[floor($o, 16),$c,$r,$s,mod($o, 16)]\n"
                          "%3 = mul %1, %2\n"
                          "%4 = reduce sum $c < 3, $r < {0}, $s < {0} of %3\n"
                          "store y[$b,$i,$j,$o] = %4\n",
                          side, stride, width, (9 + stride - 1) / stride,
                          (width + stride - 1) / stride, side / 2),
              {}, {.relative = 1e-4, .floor = 1});
    }
}

// Windows of 3 x 3 with padding: runs of channels, and of places where channels are few and come
// first.
TEST_F(EmitProductsTest, FloatsOfWindows) {
    for (const int channels : {3, 16, 32, 48}) {
        for (const int stride : {1, 2}) {
            SCOPED_TRACE(fmt::format("{} channels, stride {}", channels, stride));
            const bool first = channels < 16;
            const std::string index =
                fmt::format("{1}*$i + $r - 1,{1}*$j + $s - 1", channels, stride);
            const int columns = first ? 16 : 11;
            Check(
                fmt::format(
                    "kernel conv(in x: f32[{0}], in w: f32[5,3,3,{1},16], out y: f32[{2},{3},80])\n"
                    "  parallel $i < {2}, $j < {3}, $o < 80\n"
                    "  product\n"
                    "%0 = constant f32 0\n"
                    "%1 = load x[{4}] otherwise %0\n"
                    "%2 = load w[floor($o, 16),$r,$s,$t,mod($o, 16)]\n"
                    "%3 = mul %1, %2\n"
                    "%4 = reduce sum $r < 3, $s < 3, $t < {1} of %3\n"
                    "store y[$i,$j,$o] = %4\n",
                    first ? fmt::format("{},20,40", channels) : fmt::format("20,40,{}", channels),
                    channels, 7, columns, first ? "$t," + index : index + ",$t"),
                {}, {.relative = 1e-4, .floor = 1});
        }
    }
}

// Codes of four bits in words, of which each block of eight columns of k has a scale.
TEST_F(EmitProductsTest, FewRowsOfDecodedWords) {
    for (const int rows : {1, 4, 8}) {
        const std::string text = fmt::format(
            "kernel words(in x: f32[{0},48], in w: u32[3,6,16], in s: f32[3,6,16], "
            "out y: f32[{0},40])\n"
            "  parallel $i < {0}, $j < 40\n"
            "  product\n"
            "%0 = load x[$i,8*$r + $u]\n"
            "%1 = load w[floor($j, 16),$r,mod($j, 16)]\n"
            "%2 = index 4*$u\n"
            "%3 = cast u32 %2\n"
            "%4 = shr %1, %3\n"
            "%5 = constant u32 15\n"
            "%6 = and %4, %5\n"
            "%7 = cast f32 %6\n"
            "%8 = load s[floor($j, 16),$r,mod($j, 16)]\n"
            "%9 = mul %7, %8\n"
            "%10 = mul %0, %9\n"
            "%11 = reduce sum $r < 6, $u < 8 of %10\n"
            "store y[$i,$j] = %11\n",
            rows);
        EXPECT_TRUE(IsOfFewRows(text));
        Check(text, {}, {.relative = 1e-4, .floor = 1e-3});
    }
}

// Operands of 16 bits are widened where they are loaded, the sum is rounded once: in tiles, in
// registers and with few rows; b in panels and as it lies.
TEST_F(EmitProductsTest, NarrowFloats) {
    for (const char* type : {"f16", "bf16"}) {
        for (const auto& [m, n, k] :
             {std::tuple(3, 48, 40), {17, 33, 21}, {32, 48, 32}, {49, 40, 24}}) {
            for (const bool panels : {false, true}) {
                SCOPED_TRACE(fmt::format("{} {} {} {} {}", type, m, n, k, panels));
                const std::string b =
                    panels ? fmt::format("{},{},16", (n + 15) / 16, k) : fmt::format("{},{}", k, n);
                Check(fmt::format("kernel narrow(in a: {3}[{0},{2}], in b: {3}[{4}], "
                                  "out y: {3}[{0},{1}])\n"
                                  "  parallel $i < {0}, $j < {1}\n"
                                  "  product\n"
                                  "%0 = load a[$i,$r]\n"
                                  "%1 = cast f32 %0\n"
                                  "%2 = load b[{5}]\n"
                                  "%3 = cast f32 %2\n"
                                  "%4 = mul %1, %3\n"
                                  "%5 = reduce sum $r < {2} of %4\n"
                                  "%6 = cast {3} %5\n"
                                  "store y[$i,$j] = %6\n",
                                  m, n, k, type, b,
                                  panels ? "floor($j, 16),$r,mod($j, 16)" : "$r,$j"),
                      {}, {.relative = 1e-2, .floor = 1});
            }
        }
    }
}

// Where the columns of a tile do not divide its invocations, some of these are left over, and must
// not store to the next workgroup's rows.
TEST_F(EmitProductsTest, AWorkgroupStoresWholeRowsOnly) {
    if (!runner_->target().matrices_f32) {
        GTEST_SKIP() << "The device has no matrices of f32.";
    }
    const Kernel kernel = Parse(
        "kernel k(in a: f32[1024,8], in b: f32[3,8,16], out y: f32[1024,48])\n"
        "  parallel $m < 1024, $n < 48\n"
        "  product\n"
        "%0 = load a[$m,$k]\n"
        "%1 = neg %0\n"  // so the operand is staged
        "%2 = load b[floor($n, 16),$k,mod($n, 16)]\n"
        "%3 = mul %1, %2\n"
        "%4 = reduce sum $k < 8 of %3\n"
        "store y[$m,$n] = %4\n");
    const Result<Module> module = EmitSpirv(kernel, runner_->target());
    ASSERT_TRUE(module.ok()) << module.error().message;
    test::Buffers buffers = RandomBuffers(kernel, {});
    constexpr float kUntouched = 1e30F;
    std::vector<float> y(1024 * 48, kUntouched);
    buffers[2].assign(reinterpret_cast<const uint8_t*>(y.data()),
                      reinterpret_cast<const uint8_t*>(y.data() + y.size()));
    auto dispatch = test::DispatchOf(kernel, *module, {});
    ASSERT_TRUE(dispatch.ok()) << dispatch.error().message;
    dispatch->workgroups = {1, 1, 1};
    const Status ran = runner_->Run(*dispatch, buffers);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    std::memcpy(y.data(), buffers[2].data(), buffers[2].size());
    size_t rows = 0;
    for (size_t row = 0; row < 1024; ++row) {
        const auto untouched =
            std::count(y.begin() + row * 48, y.begin() + (row + 1) * 48, kUntouched);
        EXPECT_TRUE(untouched == 0 || untouched == 48) << "row " << row;
        rows += untouched == 0 ? 1 : 0;
    }
    EXPECT_GT(rows, 0U);
    EXPECT_LT(rows, 1024U);
}

// The same where one row of the tile takes more than half of the invocations: those that are left
// over must not store to the next workgroup's columns.
TEST_F(EmitProductsTest, AWorkgroupStoresItsColumnsOnly) {
    if (!runner_->target().matrices_f32) {
        GTEST_SKIP() << "The device has no matrices of f32.";
    }
    constexpr size_t kRows = 96;
    constexpr size_t kColumns = 4096;
    const Kernel kernel = Parse(
        "kernel k(in a: f32[96,64], in b: f32[64,4096], out y: f32[96,4096])\n"
        "  parallel $m < 96, $n < 4096\n"
        "  product\n"
        "%0 = load a[$m,$k]\n"
        "%1 = load b[$k,$n]\n"
        "%2 = neg %1\n"  // so the operand is staged
        "%3 = mul %0, %2\n"
        "%4 = reduce sum $k < 64 of %3\n"
        "store y[$m,$n] = %4\n");
    const Result<Module> module = EmitSpirv(kernel, runner_->target());
    ASSERT_TRUE(module.ok()) << module.error().message;
    test::Buffers buffers = RandomBuffers(kernel, {});
    constexpr float kUntouched = 1e30F;
    std::vector<float> y(kRows * kColumns, kUntouched);
    buffers[2].assign(reinterpret_cast<const uint8_t*>(y.data()),
                      reinterpret_cast<const uint8_t*>(y.data() + y.size()));
    auto dispatch = test::DispatchOf(kernel, *module, {});
    ASSERT_TRUE(dispatch.ok()) << dispatch.error().message;
    const size_t workgroups = dispatch->workgroups[0];
    dispatch->workgroups = {1, 1, 1};
    const Status ran = runner_->Run(*dispatch, buffers);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    std::memcpy(y.data(), buffers[2].data(), buffers[2].size());
    const auto touched = y.size() - static_cast<size_t>(std::count(y.begin(), y.end(), kUntouched));
    EXPECT_EQ(touched * workgroups, y.size());
}

}  // namespace
}  // namespace fornax::graph::loop
