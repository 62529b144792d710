// The text form of loop kernels: the same text comes back, mistakes name their line.
#include "compiler/graph/loop/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/graph/loop/kernel.h"
#include "compiler/graph/loop/limits.h"

namespace fornax::graph::loop {
namespace {

using ::testing::HasSubstr;

// Every kind of line and scalar, as printed.
constexpr char kEverything[] =
    R"(kernel "all \x22of\x22 it"(in x: f32[n,8], in "y 2": u64[], out z: f16[n + 2,8], out c: i8[m])
  sizes m in 1..4, n in 0..4294967295
  parallel $i0 < n + 2, $i1 < 8
  sequential $s0 < m
  rows 1
  %0 = constant f32 1.5
  %1 = load x[$i0 - 1,$i1] otherwise %0
  %2 = index 8*$i0 + floor($i1, 3)
  %3 = inrange $i0 + mod($i1, 2) - 1 < n
  %4 = add %1, %0
  %5 = select %3, %4, %0
  %6 = cast f16 %5 saturate up
  %7 = bitcast u32 %0
  %8 = load x[$v2,$r0]
  %9 = reduce sum $r0 < 8, $r1 < min($i0, m) of %8
  %10 = position max last $r0 < 8 of %8
  %11 = cast f8e4m3fn %9 down
  %12 = constant u64 18446744073709551615
  %13 = constant f64 -inf
  %14 = constant f32 nan
  %15 = constant bool 1
  %16 = constant i8 -128
  %17 = load "y 2"[]
  %18 = position min $r0 < 8 of %8
  store z[$i0,$i1] = %6 if %3
  store c[$s0] = %16
)";

TEST(LoopText, EverythingReadsBackToTheSameText) {
    const Result<Kernel> kernel = ParseKernel(kEverything);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_EQ(ToText(*kernel), kEverything);
    EXPECT_EQ(kernel->name, "all \"of\" it");
    EXPECT_EQ(kernel->mapping, Mapping::kRow);
    EXPECT_EQ(kernel->row_loops, 1u);
    EXPECT_EQ(kernel->scalars[11].type, ElementType::kF8E4M3FN);
    EXPECT_EQ(std::get<Cast>(kernel->scalars[11].value).rounding, Rounding::kDown);
    EXPECT_EQ(std::get<Constant>(kernel->scalars[12].value).value.integer, -1);
    EXPECT_TRUE(std::get<ArgReduce>(kernel->scalars[10].value).last);
    EXPECT_EQ(SizeSymbols(*kernel), (std::vector{Symbol("m"), Symbol("n")}));
}

TEST(LoopText, AKernelWithoutAnything) {
    const Result<Kernel> kernel = ParseKernel("kernel k()");
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_EQ(ToText(*kernel), "kernel k()\n");
}

TEST(LoopText, MistakesNameTheirLine) {
    const std::string head = "kernel k(in x: f32[4], out y: f32[4])\n";
    const std::pair<std::string, const char*> cases[] = {
        {"", "is empty"},
        {"colonel k()",
         "Line 1 of a kernel's text is wrong: 'kernel' is missing at 'colonel k()'."},
        {"kernel ()", "Line 1 of a kernel's text is wrong: a name is missing at '()'."},
        {"kernel k(in x: f33[4])", "'f33' is no element type"},
        {"kernel k(in x: f32[4)", "']' is missing"},
        {"kernel \"k\\x4(", "a byte of two digits is missing"},
        {"kernel \"k", "'\"' is missing at ''"},
        {head + "  parallel $i0 4", "Line 2 of a kernel's text is wrong: '<' is missing at '4'."},
        {head + "  sizes n in 0..", "a number that fits is missing"},
        {head + "  sizes n in 0..1, n in 0..2", "the size n is there twice"},
        {head + "  parallel $i < 4\n  parallel $j < 4", "Line 3"},
        {head + "  %1 = constant f32 1", "%1 comes where %0 has to"},
        {head + "  %0 = neg %0", "%0 is not computed before"},
        {head + "  %0 = negate %0", "'negate' is no scalar"},
        {head + "  %0 = load z[0]", "there is no buffer 'z'"},
        {head + "  %0 = load x[0] or %1", "the end of the line is missing at 'or %1'"},
        {head + "  %0 = load x[*]", "a number or a name is missing at '*'"},
        {head + "\n\n  %0 = constant i8 x", "Line 4"},
        {head + "  %0 = load x[0]\n  %1 = reduce most $r < 2 of %0", "'most' is no combination"},
        {head + "  %0 = load x[0]\n  %1 = position max $r < 2, $q < 2 of %0", "one loop, not 2"},
        {head + "  %0 = load x[0]\n  rows 1", "'%' or 'store' is missing"},
        {head + "  %0 = load x[0]\n  store y[0] = %0\n  %1 = load x[0]",
         "'store', or a phase is missing"},
    };
    for (const auto& [text, message] : cases) {
        const Result<Kernel> kernel = ParseKernel(text);
        ASSERT_FALSE(kernel.ok()) << text;
        EXPECT_THAT(kernel.error().message, HasSubstr(message)) << text;
    }
}

TEST(LoopText, ReadsOnlyKernelsThatAreValid) {
    const Result<Kernel> kernel =
        ParseKernel("kernel k(in x: f32[4])\n  %0 = load x[0]\n  store x[0] = %0\n");
    ASSERT_FALSE(kernel.ok());
    EXPECT_EQ(kernel.error().message,
              "The kernel k is wrong in store 0: the buffer x is not written.");
}

TEST(LoopText, HostileTextIsBounded) {
    EXPECT_THAT(ParseKernel(std::string(kMaxKernelText + 1, ' ')).error().message,
                HasSubstr("bytes, more than"));
    std::string text = "kernel k(out y: f32[])\n";
    for (size_t i = 0; i <= kMaxScalars; ++i) {
        text += "%" + std::to_string(i) + " = constant f32 1\n";
    }
    EXPECT_THAT(ParseKernel(text).error().message, HasSubstr("more than 4096 scalars"));
    std::string buffers = "kernel k(in b: f32[]";
    for (size_t i = 0; i < kMaxBuffers; ++i) {
        buffers += ", in b" + std::to_string(i) + ": f32[]";
    }
    EXPECT_THAT(ParseKernel(buffers + ")").error().message, HasSubstr("more than 32 buffers"));
    EXPECT_FALSE(ParseKernel("kernel " + std::string(100000, 'a') + "()").ok());
    EXPECT_FALSE(ParseKernel("kernel \"" + std::string(100000, 'a') + "\"()").ok());
}

TEST(LoopText, EveryPrefixIsReadOrRefused) {
    const std::string text = kEverything;
    for (size_t length = 0; length < text.size(); ++length) {
        const Result<Kernel> kernel = ParseKernel(text.substr(0, length));
        if (kernel.ok()) {
            EXPECT_TRUE(ParseKernel(ToText(*kernel)).ok()) << length;
        }
    }
}

}  // namespace
}  // namespace fornax::graph::loop
