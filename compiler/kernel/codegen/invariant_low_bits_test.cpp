// Low bits that are the same in each iteration, as LLVM's text before and after.
#include "compiler/kernel/codegen/invariant_low_bits.h"

#include <gtest/gtest.h>

#include <llvm/Transforms/Scalar/EarlyCSE.h>

#include "compiler/kernel/codegen/pass_text.h"

namespace fornax::kernel {
namespace {

// A loop of four lanes that share `%x`, which grows by `stride`. `of_lanes` makes `%r` of `%lanes`.
std::string Loop(const std::string& stride, const std::string& of_lanes) {
    return R"(entry:
  br label %loop

loop:                                             ; preds = %loop, %entry
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %x = add i32 %i, %base
  %one = insertelement <4 x i32> poison, i32 %x, i64 0
  %all = shufflevector <4 x i32> %one, <4 x i32> poison, <4 x i32> zeroinitializer
  %fixed = freeze <4 x i32> %all
  %lanes = add nuw nsw <4 x i32> %fixed, <i32 0, i32 4, i32 8, i32 12>
)" + of_lanes +
           R"(  store <4 x i32> %r, ptr %p, align 4
  %next = add i32 %i, )" +
           stride + R"(
  %goes = icmp ult i32 %next, %end
  br i1 %goes, label %loop, label %done

done:                                             ; preds = %loop
  ret void
)";
}

std::string After(const std::string& text) {
    return BodyAfter("ptr %p, i32 %base, i32 %end", text, 512, InvariantLowBitsPass(),
                     llvm::EarlyCSEPass());
}

constexpr char kPlaceInBlock[] =
    R"(  %word = lshr exact <4 x i32> %lanes, <i32 2, i32 2, i32 2, i32 2>
  %r = and <4 x i32> %word, <i32 3, i32 3, i32 3, i32 3>
)";

// The four low bits of a value that grows by 16. Bits that nobody asked for are others now, so the
// sum may wrap.
TEST(InvariantLowBits, PlacesWithinABlock) {
    EXPECT_EQ(After(Loop("16", kPlaceInBlock)), R"(entry:
  %.splatinsert = insertelement <4 x i32> poison, i32 %base, i64 0
  %.splat = shufflevector <4 x i32> %.splatinsert, <4 x i32> poison, <4 x i32> zeroinitializer
  %0 = freeze <4 x i32> %.splat
  %lanes = add <4 x i32> %0, <i32 0, i32 4, i32 8, i32 12>
  %word = lshr <4 x i32> %lanes, <i32 2, i32 2, i32 2, i32 2>
  %r = and <4 x i32> %word, <i32 3, i32 3, i32 3, i32 3>
  br label %loop

loop:                                             ; preds = %loop, %entry
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %x = add i32 %i, %base
  %one = insertelement <4 x i32> poison, i32 %x, i64 0
  %all = shufflevector <4 x i32> %one, <4 x i32> poison, <4 x i32> zeroinitializer
  store <4 x i32> %r, ptr %p, align 4
  %next = add i32 %i, 16
  %goes = icmp ult i32 %next, %end
  br i1 %goes, label %loop, label %done

done:                                             ; preds = %loop
  ret void
)");
}

// Values an iteration apart by a multiple of 16 are one value.
TEST(InvariantLowBits, MultiplesOfABlockFartherOn) {
    EXPECT_EQ(After(Loop("32", R"(  %y = add i32 %x, 48
  %one2 = insertelement <4 x i32> poison, i32 %y, i64 0
  %all2 = shufflevector <4 x i32> %one2, <4 x i32> poison, <4 x i32> zeroinitializer
  %a = and <4 x i32> %all, <i32 15, i32 15, i32 15, i32 15>
  %b = and <4 x i32> %all2, <i32 15, i32 15, i32 15, i32 15>
  %r = sub <4 x i32> %a, %b
)")),
              R"(entry:
  %.splatinsert = insertelement <4 x i32> poison, i32 %base, i64 0
  %.splat = shufflevector <4 x i32> %.splatinsert, <4 x i32> poison, <4 x i32> zeroinitializer
  %fixed = freeze <4 x i32> %.splat
  %a = and <4 x i32> %.splat, <i32 15, i32 15, i32 15, i32 15>
  br label %loop

loop:                                             ; preds = %loop, %entry
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %x = add i32 %i, %base
  %one = insertelement <4 x i32> poison, i32 %x, i64 0
  %y = add i32 %x, 48
  %one2 = insertelement <4 x i32> poison, i32 %y, i64 0
  store <4 x i32> zeroinitializer, ptr %p, align 4
  %next = add i32 %i, 32
  %goes = icmp ult i32 %next, %end
  br i1 %goes, label %loop, label %done

done:                                             ; preds = %loop
  ret void
)");
}

TEST(InvariantLowBits, OtherBitsStay) {
    for (const std::string& text :
         {Loop("8", kPlaceInBlock),
          Loop("16", R"(  %r = lshr <4 x i32> %lanes, <i32 2, i32 2, i32 2, i32 2>
)")}) {
        EXPECT_NE(After(text).find("%x = add i32 %i, %base\n  %one = insertelement"),
                  std::string::npos)
            << After(text);
    }
}

}  // namespace
}  // namespace fornax::kernel
