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

// Four bits of one word and a fifth bit of another.
TEST(DotShifts, FieldsOfTwoWords) {
    std::string body =
        "  %s = and <4 x i32> %place, <i32 4, i32 4, i32 4, i32 4>\n"
        "  %t = and <4 x i32> %place, <i32 7, i32 7, i32 7, i32 7>\n";
    std::string sum = "zeroinitializer";
    for (const std::string i : {"0", "1", "2", "3"}) {
        body += "  %a" + i + " = lshr <4 x i32> %w" + i + ", %s\n  %b" + i + " = and <4 x i32> %a" +
                i + ", <i32 252645135, i32 252645135, i32 252645135, i32 252645135>\n  %h" + i +
                " = lshr <4 x i32> %v" + i + ", %t\n  %f" + i + " = freeze <4 x i32> %h" + i +
                "\n  %u" + i + " = shl <4 x i32> %f" + i + ", <i32 4, i32 4, i32 4, i32 4>\n  %o" +
                i + " = and <4 x i32> %u" + i +
                ", <i32 269488144, i32 269488144, i32 269488144, i32 269488144>\n  %c" + i +
                " = or disjoint <4 x i32> %b" + i + ", %o" + i + "\n  %d" + i +
                " = call <4 x i32> @llvm.x86.avx512.vpdpbusd.128(<4 x i32> " + sum +
                ", <4 x i32> %c" + i + ", <4 x i32> %y)\n";
        sum = "%d" + i;
    }
    body += "  store <4 x i32> %d3, ptr %p, align 4\n  ret void\n";
    const std::string after = BodyAfter(
        "<4 x i32> %w0, <4 x i32> %w1, <4 x i32> %w2, <4 x i32> %w3, <4 x i32> %v0, <4 x i32> %v1, "
        "<4 x i32> %v2, <4 x i32> %v3, <4 x i32> %y, <4 x i32> %place, ptr %p",
        body, 512, DotShiftsPass());
    EXPECT_EQ(after, R"(  %s = and <4 x i32> %place, <i32 4, i32 4, i32 4, i32 4>
  %1 = shl <4 x i32> <i32 252645135, i32 252645135, i32 252645135, i32 252645135>, %s
  %t = and <4 x i32> %place, <i32 7, i32 7, i32 7, i32 7>
  %2 = shl <4 x i32> <i32 16843009, i32 16843009, i32 16843009, i32 16843009>, %t
  %3 = freeze <4 x i32> %w0
  %4 = and <4 x i32> %3, %1
  %5 = freeze <4 x i32> %v0
  %6 = and <4 x i32> %5, %2
  %7 = freeze <4 x i32> %w1
  %8 = and <4 x i32> %7, %1
  %9 = freeze <4 x i32> %v1
  %10 = and <4 x i32> %9, %2
  %11 = freeze <4 x i32> %w2
  %12 = and <4 x i32> %11, %1
  %13 = freeze <4 x i32> %v2
  %14 = and <4 x i32> %13, %2
  %15 = freeze <4 x i32> %w3
  %16 = and <4 x i32> %15, %1
  %17 = freeze <4 x i32> %v3
  %18 = and <4 x i32> %17, %2
  %19 = call <4 x i32> @llvm.x86.avx512.vpdpbusd.128(<4 x i32> zeroinitializer, <4 x i32> %4, <4 x i32> %y)
  %20 = call <4 x i32> @llvm.x86.avx512.vpdpbusd.128(<4 x i32> %19, <4 x i32> %8, <4 x i32> %y)
  %21 = call <4 x i32> @llvm.x86.avx512.vpdpbusd.128(<4 x i32> %20, <4 x i32> %12, <4 x i32> %y)
  %22 = call <4 x i32> @llvm.x86.avx512.vpdpbusd.128(<4 x i32> %21, <4 x i32> %16, <4 x i32> %y)
  %23 = ashr <4 x i32> %22, %s
  %24 = call <4 x i32> @llvm.x86.avx512.vpdpbusd.128(<4 x i32> zeroinitializer, <4 x i32> %6, <4 x i32> %y)
  %25 = call <4 x i32> @llvm.x86.avx512.vpdpbusd.128(<4 x i32> %24, <4 x i32> %10, <4 x i32> %y)
  %26 = call <4 x i32> @llvm.x86.avx512.vpdpbusd.128(<4 x i32> %25, <4 x i32> %14, <4 x i32> %y)
  %27 = call <4 x i32> @llvm.x86.avx512.vpdpbusd.128(<4 x i32> %26, <4 x i32> %18, <4 x i32> %y)
  %28 = ashr <4 x i32> %27, %t
  %29 = shl <4 x i32> %28, <i32 4, i32 4, i32 4, i32 4>
  %30 = add <4 x i32> %23, %29
  store <4 x i32> %30, ptr %p, align 4
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
