// Shifts of fields that are multiplied, as LLVM's text before and after.
#include "compiler/kernel/codegen/dot_shifts.h"

#include <gtest/gtest.h>

#include <llvm/Transforms/Scalar/EarlyCSE.h>

#include "compiler/kernel/codegen/pass_text.h"

namespace fornax::kernel {
namespace {

constexpr char kParameters[] =
    "<4 x i32> %w0, <4 x i32> %w1, <4 x i32> %y0, <4 x i32> %y1, <4 x i32> %place, <4 x i32> "
    "%start, ptr %p";

// Two words of four fields each, `bits` long, `distance` made of the lanes' places.
std::string Dots(const std::string& mask, const std::string& distance, const std::string& start) {
    const std::string masks =
        "<i32 " + mask + ", i32 " + mask + ", i32 " + mask + ", i32 " + mask + ">";
    return "  %s = " + distance + R"(
  %a0 = lshr <4 x i32> %w0, %s
  %f0 = freeze <4 x i32> %a0
  %b0 = and <4 x i32> %f0, )" +
           masks + R"(
  %a1 = lshr <4 x i32> %w1, %s
  %b1 = and <4 x i32> %a1, )" +
           masks + R"(
  %d0 = call <4 x i32> @llvm.x86.avx512.vpdpbusd.128(<4 x i32> )" +
           start + R"(, <4 x i32> %b0, <4 x i32> %y0)
  %d1 = call <4 x i32> @llvm.x86.avx512.vpdpbusd.128(<4 x i32> %d0, <4 x i32> %b1, <4 x i32> %y1)
  store <4 x i32> %d1, ptr %p, align 4
  ret void
)";
}

constexpr char kNibbles[] = "252645135";  // 0x0f0f0f0f
constexpr char kUpTo4[] = "and <4 x i32> %place, <i32 4, i32 4, i32 4, i32 4>";

std::string After(const std::string& body) {
    return BodyAfter(kParameters, body, 512, DotShiftsPass());
}

TEST(DotShifts, NibblesInPlace) {
    EXPECT_EQ(After(Dots(kNibbles, kUpTo4, "zeroinitializer")),
              R"(  %s = and <4 x i32> %place, <i32 4, i32 4, i32 4, i32 4>
  %1 = shl <4 x i32> <i32 252645135, i32 252645135, i32 252645135, i32 252645135>, %s
  %2 = freeze <4 x i32> %w0
  %3 = and <4 x i32> %2, %1
  %4 = freeze <4 x i32> %w1
  %5 = and <4 x i32> %4, %1
  %6 = call <4 x i32> @llvm.x86.avx512.vpdpbusd.128(<4 x i32> zeroinitializer, <4 x i32> %3, <4 x i32> %y0)
  %7 = call <4 x i32> @llvm.x86.avx512.vpdpbusd.128(<4 x i32> %6, <4 x i32> %5, <4 x i32> %y1)
  %8 = ashr <4 x i32> %7, %s
  store <4 x i32> %8, ptr %p, align 4
  ret void
)");
}

// Registers of which one vector of lanes takes two.
TEST(DotShifts, PartsOfVectors) {
    EXPECT_EQ(
        BodyAfter(
            "<8 x i32> %w0, <8 x i32> %w1, <4 x i32> %y, <8 x i32> %place, ptr %p",
            R"(  %s = and <8 x i32> %place, <i32 4, i32 4, i32 4, i32 4, i32 4, i32 4, i32 4, i32 4>
  %a0 = lshr <8 x i32> %w0, %s
  %b0 = and <8 x i32> %a0, <i32 252645135, i32 252645135, i32 252645135, i32 252645135, i32 252645135, i32 252645135, i32 252645135, i32 252645135>
  %a1 = lshr <8 x i32> %w1, %s
  %b1 = and <8 x i32> %a1, <i32 252645135, i32 252645135, i32 252645135, i32 252645135, i32 252645135, i32 252645135, i32 252645135, i32 252645135>
  %c0 = shufflevector <8 x i32> %b0, <8 x i32> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %c1 = shufflevector <8 x i32> %b1, <8 x i32> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %d0 = call <4 x i32> @llvm.x86.avx512.vpdpbusd.128(<4 x i32> zeroinitializer, <4 x i32> %c0, <4 x i32> %y)
  %d1 = call <4 x i32> @llvm.x86.avx512.vpdpbusd.128(<4 x i32> %d0, <4 x i32> %c1, <4 x i32> %y)
  store <4 x i32> %d1, ptr %p, align 4
  ret void
)",
            512, DotShiftsPass()),
        R"(  %s = and <8 x i32> %place, <i32 4, i32 4, i32 4, i32 4, i32 4, i32 4, i32 4, i32 4>
  %1 = shl <8 x i32> <i32 252645135, i32 252645135, i32 252645135, i32 252645135, i32 252645135, i32 252645135, i32 252645135, i32 252645135>, %s
  %2 = freeze <8 x i32> %w0
  %3 = and <8 x i32> %2, %1
  %4 = freeze <8 x i32> %w1
  %5 = and <8 x i32> %4, %1
  %6 = shufflevector <8 x i32> %3, <8 x i32> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %7 = call <4 x i32> @llvm.x86.avx512.vpdpbusd.128(<4 x i32> zeroinitializer, <4 x i32> %6, <4 x i32> %y)
  %8 = shufflevector <8 x i32> %5, <8 x i32> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %9 = call <4 x i32> @llvm.x86.avx512.vpdpbusd.128(<4 x i32> %7, <4 x i32> %8, <4 x i32> %y)
  %10 = shufflevector <8 x i32> %s, <8 x i32> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %11 = ashr <4 x i32> %9, %10
  store <4 x i32> %11, ptr %p, align 4
  ret void
)");
}

// Distances at which a field would leave its byte, fields of half words, sums that begin with
// something else than zero, of which nobody knows how long it is, and fields that are used
// otherwise.
TEST(DotShifts, OthersStay) {
    constexpr char kUpTo7[] = "and <4 x i32> %place, <i32 7, i32 7, i32 7, i32 7>";
    for (const std::string& body :
         {Dots(kNibbles, kUpTo7, "zeroinitializer"), Dots("983055", kUpTo4, "zeroinitializer"),
          Dots(kNibbles, kUpTo4, "%start")}) {
        EXPECT_EQ(After(body), body);
    }
    std::string stored = Dots(kNibbles, kUpTo4, "zeroinitializer");
    stored.insert(stored.find("  ret void"), "  store <4 x i32> %b1, ptr %p, align 4\n");
    EXPECT_EQ(After(stored), stored);
}

}  // namespace
}  // namespace fornax::kernel
