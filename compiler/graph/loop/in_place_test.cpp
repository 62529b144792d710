// Which kernels may have an operand and a result in the same bytes.
#include "compiler/graph/loop/in_place.h"

#include <string>

#include <gtest/gtest.h>

namespace fornax::graph::loop {
namespace {

Kernel Parsed(const std::string& text) {
    const Result<Kernel> kernel = ParseKernel(text);
    EXPECT_TRUE(kernel.ok()) << (kernel.ok() ? "" : kernel.error().message);
    return kernel.ok() ? *kernel : Kernel();
}

// Buffers 0 and 2: x and y.
bool MayShare(const std::string& text) {
    const Kernel kernel = Parsed(text);
    return kernel.buffers.size() == 3 && MayShareBytes(kernel, BufferId(0), BufferId(2));
}

// With lines that compute %2 and store it.
std::string KernelOf(const std::string& lines,
                     const std::string& x = "f32[n,8]",
                     const std::string& y = "f32[n,8]",
                     const std::string& loops = "parallel $i < n, $j < 8") {
    return "kernel k(in x: " + x + ", in w: f32[8,8], out y: " + y + ")\n  sizes n in 0..64\n  " +
           loops + "\n" + lines;
}

TEST(LoopInPlace, ElementByElement) {
    EXPECT_TRUE(
        MayShare(KernelOf("  %0 = load x[$i,$j]\n"
                          "  %1 = load w[$j,$j]\n"
                          "  %2 = add %0, %1\n"
                          "  store y[$i,$j] = %2\n")));
    // The same elements in another shape, and read twice.
    EXPECT_TRUE(
        MayShare(KernelOf("  %0 = load x[8*$i + $j]\n"
                          "  %1 = load x[8*$i + $j] otherwise %0\n"
                          "  %2 = mul %0, %1\n"
                          "  store y[$i,$j] = %2\n",
                          "f32[8*n]")));
    // Stored at all points or at some.
    EXPECT_TRUE(
        MayShare(KernelOf("  %0 = load x[$i,$j]\n"
                          "  %1 = inrange $i - 1 < 4\n"
                          "  store y[$i,$j] = %0 if %1\n")));
    EXPECT_TRUE(
        MayShare(KernelOf("  %0 = load x[0,$j]\n"
                          "  store y[0,$j] = %0\n",
                          "f32[n,8]", "f32[1,8]", "parallel $j < 8")));
}

TEST(LoopInPlace, BehindASum) {
    const auto product = [](const std::string& a, const std::string& after) {
        return "kernel k(in x: f32[16,16], in w: f32[16,16], out y: f32[16,16])\n"
               "  parallel $i < 16, $j < 16\n"
               "  product\n"
               "  %0 = load " +
               a +
               "\n"
               "  %1 = load w[$r,$j]\n"
               "  %2 = mul %0, %1\n"
               "  %3 = reduce sum $r < 16 of %2\n" +
               after + "  store y[$i,$j] = %5\n";
    };
    const std::string rest = "  %4 = load x[$i,$j]\n  %5 = add %3, %4\n";
    EXPECT_TRUE(MayShare(product("w[$i,$r]", rest)));
    // The sum reads it too, at other elements or at its own: other invocations may do that.
    EXPECT_FALSE(MayShare(product("x[$i,$r]", rest)));
    EXPECT_FALSE(MayShare(product("x[$i,$j]", rest)));
    EXPECT_FALSE(MayShare(product("x[$i,$r]", "  %4 = load w[$i,$j]\n  %5 = add %3, %4\n")));
    // By an index.
    EXPECT_FALSE(
        MayShare("kernel k(in x: i32[16], in w: f32[16,16], out y: i32[16])\n"
                 "  parallel $i < 16\n"
                 "  %0 = load x[$i]\n"
                 "  %1 = load w[$r,$v0]\n"
                 "  %2 = reduce sum $r < 16 of %1\n"
                 "  %3 = cast i32 %2\n"
                 "  store y[$i] = %3\n"));
}

TEST(LoopInPlace, OtherElementsAreRefused) {
    for (const char* index : {"$i,0", "$i,7 - $j", "$i - 1,$j", "mod($i + 1, n),$j", "0,$j"}) {
        EXPECT_FALSE(MayShare(KernelOf(std::string("  %0 = load x[$i,$j]\n  %1 = load x[") + index +
                                       "]\n  %2 = add %0, %1\n  store y[$i,$j] = %2\n")))
            << index;
    }
    // A transposition.
    EXPECT_FALSE(MayShare(KernelOf("  %0 = load x[$j,$i]\n  store y[$i,$j] = %0\n", "f32[8,8]",
                                   "f32[8,8]", "parallel $i < 8, $j < 8")));
    // The same indices of rows of another length.
    EXPECT_FALSE(MayShare(KernelOf("  %0 = load x[$i,$j]\n  store y[$i,$j] = %0\n", "f32[n,16]")));
    // By data.
    EXPECT_FALSE(
        MayShare("kernel k(in x: i32[8], in w: i32[8], out y: i32[8])\n"
                 "  parallel $i < 8\n"
                 "  %0 = load w[$i]\n"
                 "  %1 = load x[$v0]\n"
                 "  store y[$v0] = %1\n"));
}

TEST(LoopInPlace, PointsThatShareElementsAreRefused) {
    // Two points store to one element.
    EXPECT_FALSE(MayShare(KernelOf("  %0 = load x[$i,0]\n  store y[$i,0] = %0\n")));
    EXPECT_FALSE(
        MayShare("kernel k(in x: f32[9], in w: f32[9], out y: f32[9])\n"
                 "  parallel $i < 8, $j < 2\n"
                 "  %0 = load x[$i + $j]\n"
                 "  store y[$i + $j] = %0\n"));
    // Outside of the result, but inside of the operand, where another point stores.
    EXPECT_FALSE(MayShare(
        KernelOf("  %0 = load x[4*$i + $j]\n  store y[$i,$j] = %0\n", "f32[4*n]", "f32[n,4]")));
}

TEST(LoopInPlace, OtherFormsAreRefused) {
    const std::string copy = "  %0 = load x[$i,$j]\n  store y[$i,$j] = %0\n";
    EXPECT_TRUE(MayShare(KernelOf(copy)));
    EXPECT_FALSE(
        MayShare(KernelOf(copy, "f32[n,8]", "f32[n,8]", "parallel $i < n\n  sequential $j < 8")));
    EXPECT_FALSE(
        MayShare(KernelOf(copy, "f32[n,8]", "f32[n,8]", "parallel $i < n, $j < 8\n  rows 1")));
    EXPECT_FALSE(MayShare(KernelOf(copy + "  store y[$i,7] = %0\n")));
    EXPECT_FALSE(
        MayShare(KernelOf("  %0 = load x[$i,$j]\n  %1 = load y[$i,$j]\n"
                          "  %2 = add %0, %1\n  store y[$i,$j] = %2\n")));
    // Elements of other sizes.
    EXPECT_FALSE(
        MayShare(KernelOf("  %0 = load x[$i,$j]\n  %1 = cast f32 %0\n"
                          "  store y[$i,$j] = %1\n",
                          "f16[n,8]")));
    // The operand is no result, and the result no operand.
    const Kernel kernel = Parsed(KernelOf(copy));
    EXPECT_FALSE(MayShareBytes(kernel, BufferId(2), BufferId(0)));
    EXPECT_FALSE(MayShareBytes(kernel, BufferId(2), BufferId(2)));
    EXPECT_TRUE(MayShareBytes(kernel, BufferId(1), BufferId(2)));  // it is not read at all
}

TEST(LoopInPlace, Copies) {
    const auto copies = [](const std::string& text) {
        return CopiesInPlace(Parsed(text), BufferId(0), BufferId(2));
    };
    EXPECT_TRUE(copies(KernelOf("  %0 = load x[$i,$j]\n  store y[$i,$j] = %0\n")));
    EXPECT_TRUE(copies(KernelOf("  %0 = load x[8*$i + $j]\n  store y[$i,$j] = %0\n", "f32[8*n]")));
    EXPECT_FALSE(copies(KernelOf("  %0 = load x[$j,$i]\n  store y[$i,$j] = %0\n", "f32[8,n]")));
    EXPECT_FALSE(
        copies(KernelOf("  %0 = load x[$i,$j]\n  %1 = exp %0\n"
                        "  store y[$i,$j] = %1\n")));
    EXPECT_FALSE(copies(KernelOf("  %0 = load w[$i,$j]\n  store y[$i,$j] = %0\n")));
    // Zeros behind the operand's last row.
    EXPECT_FALSE(copies(KernelOf("  %0 = load x[$i,$j]\n  store y[$i,$j] = %0\n", "f32[4,8]")));
}

}  // namespace
}  // namespace fornax::graph::loop
