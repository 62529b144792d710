// Kernel IR in; the lanes' probable offsets, and what is assumed for them, out.
#include "compiler/kernel/analysis/lane_speculation.h"

#include <gtest/gtest.h>

#include "compiler/kernel/analysis/barrier_regions.h"
#include "compiler/kernel/analysis/test_kernel.h"

namespace fornax::kernel {
namespace {

// Describes the last value that is stored, with 16 lanes.
std::string Speculated(const std::string& body,
                       const std::string& attributes = "workgroup_size(64, 1, 1)") {
    const ir::Kernel kernel = TestKernel(body, attributes);
    const LaneAnalysis patterns(kernel, 16, FindWorkgroupLevel(kernel));
    LaneSpeculation lanes(kernel, patterns);
    const std::vector<ir::ValueId> stored = StoredValues(kernel);
    return stored.empty() ? "" : lanes.Text(stored.back());
}

std::string OfValue(const std::string& body) {
    return Speculated(body + "\n" + Stores({"v"}));
}

constexpr char kSum[] = "%sum:i32 = iadd %i, %n\n";  // value 10

TEST(LaneSpeculation, WhatPatternsFollowNeedsNoAssumption) {
    EXPECT_EQ(OfValue("%v:i32 = iadd %n, %n"), "16*0");
    EXPECT_EQ(OfValue("%v:i32 = iadd %i, %n"), "0..15");
    EXPECT_EQ(OfValue("%v:i32 = imul %i, %eight"), "0..120/8");
}

TEST(LaneSpeculation, QuotientsByConstants) {
    const std::string sum = kSum;
    EXPECT_EQ(OfValue(sum + "%c:i32 = const 3\n%v:i32 = lshr %sum, %c"),
              "8*0 8*1; if %10 <= 4294967280, %10 % 8 + 7 < 8");
    EXPECT_EQ(OfValue(sum + "%v:i32 = udiv %sum, %eight"),
              "8*0 8*1; if %10 <= 4294967280, %10 % 8 + 7 < 8");
    EXPECT_EQ(OfValue(sum + "%c:i32 = const 3\n%v:i32 = ashr %sum, %c"),
              "8*0 8*1; if %10 <= 2147483632, %10 % 8 + 7 < 8");
    EXPECT_EQ(OfValue(sum + "%c:i32 = const 12\n%v:i32 = urem %sum, %c"),
              "0..11 0..3; if %10 <= 4294967280, %10 % 12 + 11 < 12");
}

// Low bits do not care what wraps.
TEST(LaneSpeculation, LowBits) {
    EXPECT_EQ(OfValue(std::string(kSum) + "%c:i32 = const 7\n%v:i32 = and %sum, %c"),
              "0..7 0..7; if %10 % 8 + 7 < 8");
}

TEST(LaneSpeculation, QuotientsBySizesOfRunTime) {
    EXPECT_EQ(OfValue("%v:i32 = udiv %i, %n"), "16*0; if %5 % %7 + 15 < %7");
    EXPECT_EQ(OfValue("%v:i32 = urem %i, %n"), "0..15; if %5 % %7 + 15 < %7");
    // Nothing is known of signs.
    EXPECT_EQ(OfValue("%v:i32 = sdiv %i, %n"), "16*0; if %10 has them");
}

// Blocks of 18 bytes for eight lanes, whose number is a sum shifted down.
TEST(LaneSpeculation, AssumptionsOfAllOperands) {
    EXPECT_EQ(OfValue(std::string(kSum) + R"(
        %three:i32 = const 3
        %seven:i32 = const 7
        %bytes:i32 = const 18
        %block:i32 = lshr %sum, %three
        %place:i32 = and %sum, %seven
        %from:i32 = imul %block, %bytes
        %v:i32 = iadd %from, %place)"),
              "0..7 18..25; if %10 <= 4294967280, %10 % 8 + 7 < 8");
}

TEST(LaneSpeculation, ProductsByUniformValuesAreByOne) {
    EXPECT_EQ(OfValue("%q:i32 = udiv %i, %n\n%r:i32 = urem %i, %n\n%v:i32 = imul %r, %n"),
              "0..15; if %5 % %7 + 15 < %7, %7 == 1");
}

TEST(LaneSpeculation, ProductsByNegativeNumbers) {
    EXPECT_EQ(OfValue("%r:i32 = urem %i, %n\n%m:i32 = const -4\n%v:i32 = imul %r, %m"),
              "0..-60/-4; if %5 % %7 + 15 < %7");
}

TEST(LaneSpeculation, BitsBesideEachOther) {
    EXPECT_EQ(OfValue("%r:i32 = urem %i, %n\n%v:i32 = or %r, %group"),
              "0..15; if %5 % %7 + 15 < %7, (%10 | %6) & 15 == 0");
    EXPECT_EQ(OfValue("%r:i32 = urem %i, %n\n%v:i32 = or %r, %i"), "0..30/2; if %11 has them");
}

TEST(LaneSpeculation, WhatLanesLoad) {
    // All lanes load from one place if the quotient is one.
    EXPECT_EQ(OfValue("%q:i32 = udiv %i, %n\n%v:i32 = load_buffer %in, %q align(4)"),
              "16*0; if %11 has them");
    EXPECT_EQ(OfValue("%v:i32 = load_buffer %in, %i align(4)"), "unknown");
}

TEST(LaneSpeculation, Branches) {
    const std::string both = R"(
        %c:bool = ult %n, %group
        %q:i32 = urem %i, %n
        %v:i32 = if %c {
          %a:i32 = iadd %q, %one
          yield %a
        } else {
          %b:i32 = iadd %q, %)";
    EXPECT_EQ(OfValue(both + "four\n yield %b\n }"), "0..15; if %12 has them");
    EXPECT_EQ(OfValue(both + "q\n yield %b\n }"), "unknown");
}

TEST(LaneSpeculation, RowsStayRows) {
    const auto rows = [](const std::string& body) {
        return Speculated(R"(
            %x:i32 = builtin local_id_x
            %y:i32 = builtin local_id_y
            %row:i32 = imul %y, %n
            %at:i32 = iadd %row, %x
)" + body + "\n" + Stores({"v"}),
                          "workgroup_size(8, 8, 1)");
    };
    EXPECT_EQ(rows("%v:i32 = iadd %at, %one"), "0..7 0..7 + rows * %7");
    EXPECT_EQ(
        rows("%v:i32 = udiv %at, %eight"),
        "16*0 + rows * %7 / 8; if %13 <= 4294967288, %13 % 8 + 7 < 8, stride of %13 % 8 == 0");
    // Factors of strides are bounded, however large the numbers are.
    const std::string wide = "%q:i32 = udiv %at, %eight\n%w:i64 = zext %q\n%k:i64 = const 32768\n";
    EXPECT_EQ(rows(wide + "%v:i64 = imul %w, %k"),
              "16*0 + rows * %7 * 4096; if %13 <= 4294967288, %13 % 8 + 7 < 8, "
              "stride of %13 % 8 == 0, %14 <= 4294967295");
    EXPECT_EQ(rows(wide + "%big:i64 = const 1152921504606846976\n%m:i64 = imul %w, %k\n"
                          "%v:i64 = imul %m, %big"),
              "unknown");
}

// Positions of windows: those of one row follow each other if the stride is 1, and the rows are a
// pitch apart.
TEST(LaneSpeculation, Windows) {
    const auto window = [](const std::string& body) {
        return Speculated(R"(
            %x:i32 = builtin local_id_x
            %y:i32 = builtin local_id_y
            %sx:i32 = imul %x, %n
            %m:i32 = load_push %four align(4)
            %sy:i32 = imul %y, %m
            %ux:i32 = isub %sx, %one
            %vx:i32 = smax %ux, %zero
            %vy:i32 = smax %sy, %one
)" + body + "\n" + Stores({"v"}),
                          "workgroup_size(4, 16, 1)");
    };
    EXPECT_EQ(window("%v:i32 = iadd %vx, %one"), "0..3 0..3 0..3 0..3; if %16 has them");
    EXPECT_EQ(window("%v:i32 = isub %vx, %ux"), "16*0; if %18 has them");
    EXPECT_EQ(window("%v:i32 = imul %vy, %c64"), "4*0 4*64 4*128 4*192; if %17 has them");
    EXPECT_EQ(window("%v:i32 = imul %vy, %m"), "16*0 + rows * %13; if %17 has them");
    const std::string rows = "%p:i32 = load_push %eight align(4)\n%r:i32 = imul %sy, %p\n";
    EXPECT_EQ(window(rows + "%v:i32 = iadd %r, %one"), "16*0 + rows * %19");
    EXPECT_EQ(window(rows + "%v:i32 = iadd %r, %ux"), "0..3 0..3 0..3 0..3 + rows * %19");
    EXPECT_EQ(window(rows + "%w:i32 = imul %ux, %eight\n%v:i32 = iadd %w, %r"),
              "0..24/8 0..24/8 0..24/8 0..24/8 + rows * %19");
}

}  // namespace
}  // namespace fornax::kernel
