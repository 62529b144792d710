// Conversions before shuffles, as LLVM's text before and after.
#include <gtest/gtest.h>

#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>

#include <memory>
#include <string>

#include "compiler/kernel/codegen/casts_before_shuffles.h"

namespace fornax::kernel {
namespace {

// What becomes of a function's body, from its first line on.
std::string After(const std::string& parameters, const std::string& body) {
    llvm::LLVMContext context;
    llvm::SMDiagnostic problem;
    const std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(
        "define void @f(" + parameters + ") {\n" + body + "}\n", problem, context);
    if (!module) {
        return problem.getMessage().str();
    }
    llvm::Function& function = *module->begin();
    llvm::FunctionAnalysisManager none;
    CastsBeforeShufflesPass().run(function, none);
    std::string text;
    llvm::raw_string_ostream stream(text);
    if (llvm::verifyFunction(function, &stream)) {
        return text;
    }
    function.print(stream);
    const size_t begin = text.find("{\n") + 2;
    return text.substr(begin, text.rfind('}') - begin);
}

// Scales of two blocks for eight lanes: a word each, whose upper half is one of f16.
TEST(CastsBeforeShuffles, AChainOfCasts) {
    EXPECT_EQ(
        After(
            "<2 x i32> %a, ptr %p",
            R"(  %all = shufflevector <2 x i32> %a, <2 x i32> poison, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 1, i32 1, i32 1, i32 1>
  %high = lshr <8 x i32> %all, <i32 16, i32 16, i32 16, i32 16, i32 16, i32 16, i32 16, i32 16>
  %bits = trunc <8 x i32> %high to <8 x i16>
  %half = bitcast <8 x i16> %bits to <8 x half>
  %scale = fpext <8 x half> %half to <8 x float>
  store <8 x float> %scale, ptr %p, align 4
  ret void
)"),
        R"(  %all = shufflevector <2 x i32> %a, <2 x i32> poison, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 1, i32 1, i32 1, i32 1>
  %1 = lshr <2 x i32> %a, <i32 16, i32 16>
  %2 = shufflevector <2 x i32> %1, <2 x i32> poison, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 1, i32 1, i32 1, i32 1>
  %3 = trunc <2 x i32> %1 to <2 x i16>
  %4 = shufflevector <2 x i16> %3, <2 x i16> poison, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 1, i32 1, i32 1, i32 1>
  %5 = bitcast <2 x i16> %3 to <2 x half>
  %6 = shufflevector <2 x half> %5, <2 x half> poison, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 1, i32 1, i32 1, i32 1>
  %7 = fpext <2 x half> %5 to <2 x float>
  %8 = shufflevector <2 x float> %7, <2 x float> poison, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 1, i32 1, i32 1, i32 1>
  store <8 x float> %8, ptr %p, align 4
  ret void
)");
}

TEST(CastsBeforeShuffles, BothHalvesOfAVector) {
    EXPECT_EQ(
        After(
            "<2 x half> %a, <2 x half> %b, ptr %p",
            R"(  %x = shufflevector <2 x half> %a, <2 x half> poison, <4 x i32> <i32 0, i32 0, i32 1, i32 1>
  %y = shufflevector <2 x half> %b, <2 x half> poison, <4 x i32> <i32 1, i32 1, i32 0, i32 0>
  %all = shufflevector <4 x half> %x, <4 x half> %y, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %wide = fpext <8 x half> %all to <8 x float>
  store <8 x float> %wide, ptr %p, align 4
  ret void
)"),
        R"(  %x = shufflevector <2 x half> %a, <2 x half> poison, <4 x i32> <i32 0, i32 0, i32 1, i32 1>
  %y = shufflevector <2 x half> %b, <2 x half> poison, <4 x i32> <i32 1, i32 1, i32 0, i32 0>
  %all = shufflevector <4 x half> %x, <4 x half> %y, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %1 = fpext <2 x half> %a to <2 x float>
  %2 = shufflevector <2 x float> %1, <2 x float> poison, <4 x i32> <i32 0, i32 0, i32 1, i32 1>
  %3 = fpext <2 x half> %b to <2 x float>
  %4 = shufflevector <2 x float> %3, <2 x float> poison, <4 x i32> <i32 1, i32 1, i32 0, i32 0>
  %5 = shufflevector <4 x float> %2, <4 x float> %4, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  store <8 x float> %5, ptr %p, align 4
  ret void
)");
}

// The usual way of an access and the other one.
TEST(CastsBeforeShuffles, OneOfTwoWays) {
    EXPECT_EQ(After("<2 x half> %a, <4 x half> %b, i1 %c, ptr %p", R"(entry:
  br i1 %c, label %usual, label %other

usual:                                            ; preds = %entry
  %all = shufflevector <2 x half> %a, <2 x half> poison, <4 x i32> <i32 0, i32 0, i32 1, i32 1>
  br label %end

other:                                            ; preds = %entry
  br label %end

end:                                              ; preds = %other, %usual
  %either = phi <4 x half> [ %all, %usual ], [ %b, %other ]
  %wide = fpext <4 x half> %either to <4 x float>
  store <4 x float> %wide, ptr %p, align 4
  ret void
)"),
              R"(entry:
  br i1 %c, label %usual, label %other

usual:                                            ; preds = %entry
  %all = shufflevector <2 x half> %a, <2 x half> poison, <4 x i32> <i32 0, i32 0, i32 1, i32 1>
  %0 = fpext <2 x half> %a to <2 x float>
  %1 = shufflevector <2 x float> %0, <2 x float> poison, <4 x i32> <i32 0, i32 0, i32 1, i32 1>
  br label %end

other:                                            ; preds = %entry
  %2 = fpext <4 x half> %b to <4 x float>
  br label %end

end:                                              ; preds = %other, %usual
  %3 = phi <4 x float> [ %1, %usual ], [ %2, %other ]
  %either = phi <4 x half> [ %all, %usual ], [ %b, %other ]
  store <4 x float> %3, ptr %p, align 4
  ret void
)");
}

// Two ways to a value, of which one loads it, with more code on each and behind them.
std::string Loaded(const std::string& type,
                   const std::string& usual,
                   const std::string& other,
                   const std::string& end) {
    return "entry:\n"
           "  br i1 %c, label %usual, label %other\n\n"
           "usual:                                            ; preds = %entry\n"
           "  %all = load " +
           type + ", ptr %q, align 8\n" + usual +
           "  br label %end\n\n"
           "other:                                            ; preds = %entry\n" +
           other +
           "  br label %end\n\n"
           "end:                                              ; preds = %other, %usual\n" +
           end + "  ret void\n";
}

// What one way loads is extended there, for all that take it.
TEST(CastsBeforeShuffles, LoadedOnOneWay) {
    EXPECT_EQ(After("<4 x i16> %b, i1 %c, ptr %p, ptr %q",
                    Loaded("<4 x i16>", "", "",
                           R"(  %either = phi <4 x i16> [ %all, %usual ], [ %b, %other ]
  %half = bitcast <4 x i16> %either to <4 x half>
  %wide = fpext <4 x half> %half to <4 x float>
  store <4 x float> %wide, ptr %p, align 4
  %again = bitcast <4 x i16> %either to <4 x half>
  %same = fpext <4 x half> %again to <4 x float>
  store <4 x float> %same, ptr %p, align 4
)")),
              Loaded("<4 x i16>",
                     "  %0 = bitcast <4 x i16> %all to <4 x half>\n"
                     "  %1 = fpext <4 x half> %0 to <4 x float>\n",
                     "  %2 = bitcast <4 x i16> %b to <4 x half>\n"
                     "  %3 = fpext <4 x half> %2 to <4 x float>\n",
                     R"(  %4 = phi <4 x float> [ %1, %usual ], [ %3, %other ]
  store <4 x float> %4, ptr %p, align 4
  store <4 x float> %4, ptr %p, align 4
)"));
}

// What is loaded is also stored as it is: nothing changes.
TEST(CastsBeforeShuffles, LoadedAndUsedAsItIs) {
    const std::string body =
        Loaded("<4 x half>", "", "", R"(  %either = phi <4 x half> [ %all, %usual ], [ %b, %other ]
  %wide = fpext <4 x half> %either to <4 x float>
  store <4 x float> %wide, ptr %p, align 4
  store <4 x half> %either, ptr %q, align 4
)");
    EXPECT_EQ(After("<4 x half> %b, i1 %c, ptr %p, ptr %q", body), body);
}

TEST(CastsBeforeShuffles, LoadedScalar) {
    EXPECT_EQ(After("i16 %b, i1 %c, ptr %p, ptr %q",
                    Loaded("i16", "", "", R"(  %either = phi i16 [ %all, %usual ], [ %b, %other ]
  %wide = sext i16 %either to i64
  store i64 %wide, ptr %p, align 4
)")),
              Loaded("i16", "  %0 = sext i16 %all to i64\n", "  %1 = sext i16 %b to i64\n",
                     R"(  %2 = phi i64 [ %0, %usual ], [ %1, %other ]
  store i64 %2, ptr %p, align 4
)"));
}

// One extension is defined for all values, the other one, whose result is not always taken, only
// for those that are not negative.
TEST(CastsBeforeShuffles, LoadedAndExtendedUnderACondition) {
    const std::string first = "  %either = phi <4 x i16> [ %all, %usual ], [ %b, %other ]\n";
    const std::string any = R"(  %wide = zext <4 x i16> %either to <4 x i32>
  store <4 x i32> %wide, ptr %p, align 4
)";
    const std::string positive = R"(  %small = zext nneg <4 x i16> %either to <4 x i32>
  %chosen = select i1 %d, <4 x i32> %small, <4 x i32> zeroinitializer
  store <4 x i32> %chosen, ptr %p, align 4
)";
    const auto has_flag = [&](const std::string& end) {
        const std::string after = After("<4 x i16> %b, i1 %c, i1 %d, ptr %p, ptr %q",
                                        Loaded("<4 x i16>", "", "", first + end));
        EXPECT_NE(after.find(" <4 x i16> %all to <4 x i32>\n  br"), std::string::npos) << after;
        return after.find("nneg") != std::string::npos;
    };
    EXPECT_FALSE(has_flag(any + positive));
    EXPECT_FALSE(has_flag(positive + any));
    EXPECT_TRUE(has_flag(positive));
}

// An undefined value that is extended is a small one, not any.
TEST(CastsBeforeShuffles, LoadedOrUndefined) {
    EXPECT_EQ(After("i1 %c, ptr %p, ptr %q",
                    Loaded("<4 x i8>", "", "",
                           R"(  %either = phi <4 x i8> [ %all, %usual ], [ undef, %other ]
  %wide = zext <4 x i8> %either to <4 x i32>
  store <4 x i32> %wide, ptr %p, align 4
)")),
              Loaded("<4 x i8>", "  %0 = zext <4 x i8> %all to <4 x i32>\n",
                     "  %1 = zext <4 x i8> undef to <4 x i32>\n",
                     R"(  %2 = phi <4 x i32> [ %0, %usual ], [ %1, %other ]
  store <4 x i32> %2, ptr %p, align 4
)"));
}

// Both ways come from one block, so that what joins them has to be the same: nothing changes.
TEST(CastsBeforeShuffles, BothWaysFromOneBlock) {
    const std::string body = R"(entry:
  %all = shufflevector <2 x half> %h, <2 x half> poison, <4 x i32> <i32 0, i32 0, i32 1, i32 1>
  switch i32 %i, label %other [
    i32 0, label %end
    i32 1, label %end
  ]

other:                                            ; preds = %entry
  ret void

end:                                              ; preds = %entry, %entry
  %either = phi <4 x half> [ %all, %entry ], [ %all, %entry ]
  %wide = fpext <4 x half> %either to <4 x float>
  store <4 x float> %wide, ptr %p, align 4
  ret void
)";
    EXPECT_EQ(After("<2 x half> %h, i32 %i, ptr %p", body), body);
}

// As many elements before the shuffle as behind it, a shift by what lanes differ in, and a vector
// that is taken to have other elements: nothing changes.
TEST(CastsBeforeShuffles, WhatStays) {
    for (
        const char* body :
        {R"(  %all = shufflevector <4 x half> %h, <4 x half> poison, <4 x i32> <i32 3, i32 2, i32 1, i32 0>
  %wide = fpext <4 x half> %all to <4 x float>
  store <4 x float> %wide, ptr %p, align 4
  ret void
)",
         R"(  %all = shufflevector <2 x i32> %a, <2 x i32> poison, <4 x i32> <i32 0, i32 0, i32 1, i32 1>
  %low = lshr <4 x i32> %all, <i32 0, i32 8, i32 0, i32 8>
  store <4 x i32> %low, ptr %p, align 4
  ret void
)",
         R"(  %all = shufflevector <2 x i32> %a, <2 x i32> poison, <4 x i32> <i32 0, i32 0, i32 1, i32 1>
  %halves = bitcast <4 x i32> %all to <8 x half>
  store <8 x half> %halves, ptr %p, align 4
  ret void
)"}) {
        EXPECT_EQ(After("<2 x i32> %a, <4 x half> %h, ptr %p", body), body);
    }
}

}  // namespace
}  // namespace fornax::kernel
