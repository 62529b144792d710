// What few elements in memory become that many lanes use, as LLVM's text before and after.
#include "compiler/kernel/codegen/shared_loads.h"

#include <gtest/gtest.h>

#include "compiler/kernel/codegen/pass_text.h"

namespace fornax::kernel {
namespace {

// Both halves of the words of two blocks, for eight lanes.
constexpr char kBothHalves[] =
    R"(  %high = lshr <2 x i32> %a, <i32 16, i32 16>
  %high16 = trunc nuw <2 x i32> %high to <2 x i16>
  %upper = bitcast <2 x i16> %high16 to <2 x half>
  %offset = fpext <2 x half> %upper to <2 x float>
  %low16 = trunc <2 x i32> %a to <2 x i16>
  %lower = bitcast <2 x i16> %low16 to <2 x half>
  %scale = fpext <2 x half> %lower to <2 x float>
  %low16b = trunc <2 x i32> %b to <2 x i16>
  %lowerb = bitcast <2 x i16> %low16b to <2 x half>
  %scaleb = fpext <2 x half> %lowerb to <2 x float>
  %high2 = lshr <2 x i32> %b, <i32 16, i32 16>
  %high16b = trunc nuw <2 x i32> %high2 to <2 x i16>
  %upperb = bitcast <2 x i16> %high16b to <2 x half>
  %offsetb = fpext <2 x half> %upperb to <2 x float>
  %scales = shufflevector <2 x float> %scale, <2 x float> %scaleb, <8 x i32> <i32 0, i32 0, i32 1, i32 1, i32 2, i32 2, i32 3, i32 poison>
  %offsets = shufflevector <2 x float> %offset, <2 x float> poison, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 1, i32 1, i32 1, i32 1>
  store <8 x float> %scales, ptr %p, align 4
  store <8 x float> %offsets, ptr %p, align 4
  store <2 x float> %offsetb, ptr %p, align 4
  ret void
)";

constexpr char kParameters[] = "<2 x i32> %a, <2 x i32> %b, ptr %p";

TEST(PairedHalves, BothHalvesAreExtendedTogether) {
    EXPECT_EQ(BodyAfter(kParameters, kBothHalves, 512, PairedHalvesPass()),
              R"(  %1 = bitcast <2 x i32> %a to <4 x half>
  %2 = fpext <4 x half> %1 to <4 x float>
  %3 = bitcast <2 x i32> %b to <4 x half>
  %4 = fpext <4 x half> %3 to <4 x float>
  %5 = shufflevector <4 x float> %4, <4 x float> poison, <2 x i32> <i32 1, i32 3>
  %6 = shufflevector <4 x float> %2, <4 x float> %4, <8 x i32> <i32 0, i32 0, i32 2, i32 2, i32 4, i32 4, i32 6, i32 poison>
  %7 = shufflevector <4 x float> %2, <4 x float> poison, <8 x i32> <i32 1, i32 1, i32 1, i32 1, i32 3, i32 3, i32 3, i32 3>
  store <8 x float> %6, ptr %p, align 4
  store <8 x float> %7, ptr %p, align 4
  store <2 x float> %5, ptr %p, align 4
  ret void
)");
}

// Vectors of 128 bits would need two of them for twice the elements.
TEST(PairedHalves, RegistersAreWideEnough) {
    EXPECT_EQ(BodyAfter(kParameters, kBothHalves, 64, PairedHalvesPass()), kBothHalves);
}

TEST(PairedHalves, OneHalfStays) {
    constexpr char kOne[] = R"(  %low16 = trunc <2 x i32> %a to <2 x i16>
  %lower = bitcast <2 x i16> %low16 to <2 x half>
  %scale = fpext <2 x half> %lower to <2 x float>
  store <2 x float> %scale, ptr %p, align 4
  ret void
)";
    EXPECT_EQ(BodyAfter(kParameters, kOne, 512, PairedHalvesPass()), kOne);
}

TEST(SplatLoads, AnElementALoad) {
    EXPECT_EQ(BodyAfter("ptr %a, ptr %p",
                        R"(  %both = load <2 x i32>, ptr %a, align 8
  %first = shufflevector <2 x i32> %both, <2 x i32> poison, <4 x i32> zeroinitializer
  %second = shufflevector <2 x i32> %both, <2 x i32> poison, <4 x i32> <i32 1, i32 1, i32 1, i32 1>
  store <4 x i32> %first, ptr %p, align 4
  store <4 x i32> %second, ptr %p, align 4
  ret void
)",
                        512, SplatLoadsPass()),
              R"(  %1 = getelementptr i8, ptr %a, i64 4
  %2 = load i32, ptr %1, align 4
  %3 = load i32, ptr %a, align 8
  %.splatinsert1 = insertelement <4 x i32> poison, i32 %3, i64 0
  %.splat2 = shufflevector <4 x i32> %.splatinsert1, <4 x i32> poison, <4 x i32> zeroinitializer
  %.splatinsert = insertelement <4 x i32> poison, i32 %2, i64 0
  %.splat = shufflevector <4 x i32> %.splatinsert, <4 x i32> poison, <4 x i32> zeroinitializer
  store <4 x i32> %.splat2, ptr %p, align 4
  store <4 x i32> %.splat, ptr %p, align 4
  ret void
)");
}

// A load that is seen, one whose elements lanes choose from, and one whose elements are as many.
TEST(SplatLoads, OthersStay) {
    const auto after = [](const std::string& body) {
        return BodyAfter("ptr %a, ptr %p", body, 512, SplatLoadsPass()) == body;
    };
    EXPECT_TRUE(after(R"(  %both = load volatile <2 x i32>, ptr %a, align 8
  %first = shufflevector <2 x i32> %both, <2 x i32> poison, <4 x i32> zeroinitializer
  store <4 x i32> %first, ptr %p, align 4
  ret void
)"));
    EXPECT_TRUE(after(R"(  %both = load <2 x i32>, ptr %a, align 8
  %first = shufflevector <2 x i32> %both, <2 x i32> poison, <4 x i32> zeroinitializer
  %mixed = shufflevector <2 x i32> %both, <2 x i32> poison, <4 x i32> <i32 0, i32 1, i32 0, i32 1>
  store <4 x i32> %first, ptr %p, align 4
  store <4 x i32> %mixed, ptr %p, align 4
  ret void
)"));
    EXPECT_TRUE(after(R"(  %both = load <2 x i32>, ptr %a, align 8
  %first = shufflevector <2 x i32> %both, <2 x i32> poison, <2 x i32> zeroinitializer
  store <2 x i32> %first, ptr %p, align 4
  ret void
)"));
}

}  // namespace
}  // namespace fornax::kernel
