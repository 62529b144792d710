// Multiply-adds: exact text before and after.
#include <gtest/gtest.h>

#include "compiler/kernel/transform/pass_test_util.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {
namespace {

constexpr char kPrologue[] = R"(
    %z:i32 = const 0
    %l:i32 = builtin local_id_x
    %b:bool = ieq %l, %z
    %x:f32 = utof %l
    %y:f32 = stof %l
    %o:buffer = buffer 0, %z
)";

void ExpectFused(const std::string& before, const std::string& after) {
    ExpectPassAndCompact([](ir::Kernel& kernel) { FuseSums(kernel); }, kPrologue + before,
                         kPrologue + after);
}

TEST(FuseSums, SumsAndDifferences) {
    const std::string end = " store_buffer %o, %z, %s align(4) return";
    ExpectFused("%p:f32 = fmul %x, %y %s:f32 = fadd %p, %x" + end, "%s:f32 = fma %x, %y, %x" + end);
    ExpectFused("%p:f32 = fmul %x, %y %s:f32 = fadd %y, %p" + end, "%s:f32 = fma %x, %y, %y" + end);
    ExpectFused("%p:f32 = fmul %x, %y %s:f32 = fsub %p, %y" + end,
                "%n:f32 = fneg %y %s:f32 = fma %x, %y, %n" + end);
    ExpectFused("%p:f32 = fmul %x, %y %s:f32 = fsub %y, %p" + end,
                "%n:f32 = fneg %x %s:f32 = fma %n, %y, %y" + end);
    ExpectFused("%p:f32 = fmul %x, %y %m:f32 = fneg %p %s:f32 = fadd %m, %y" + end,
                "%n:f32 = fneg %x %s:f32 = fma %n, %y, %y" + end);
    ExpectFused("%p:f32 = fmul %x, %y %m:f32 = fneg %p %s:f32 = fsub %y, %m" + end,
                "%s:f32 = fma %x, %y, %y" + end);
}

TEST(FuseSums, AProductOfSeveralSumsGoesIntoEach) {
    ExpectFused(R"(
        %p:f32 = fmul %x, %y
        %s:f32 = fadd %p, %x
        %t:f32 = fadd %p, %y
        store_buffer %o, %z, %s align(4)
        store_buffer %o, %z, %t align(4)
        return)",
                R"(
        %s:f32 = fma %x, %y, %x
        %t:f32 = fma %x, %y, %y
        store_buffer %o, %z, %s align(4)
        store_buffer %o, %z, %t align(4)
        return)");
}

// What is not fused is marked, so that nothing fuses it later.
TEST(FuseSums, OthersAreLeftAndMarked) {
    auto unfused = [](const std::string& product, const std::string& sum, const std::string& rest) {
        ExpectFused(product + " " + sum + rest, product + " " + sum + " no_contraction" + rest);
    };
    const std::string end = " store_buffer %o, %z, %s align(4) return";
    unfused("", "%s:f32 = fadd %x, %y", end);
    unfused("%p:f32 = fmul %x, %y no_contraction", "%s:f32 = fadd %p, %y", end);
    unfused("%p:f32 = fmul %x, %y", "%s:f32 = fadd %p, %p", end);
    // The product is needed anyway.
    unfused("%p:f32 = fmul %x, %y", "%s:f32 = fadd %p, %y",
            " store_buffer %o, %z, %p align(4)" + end);
    // Two factors would have to be kept across the barrier.
    unfused("%p:f32 = fmul %x, %y barrier", "%s:f32 = fadd %p, %y", end);
    const std::string forbidden = "%p:f32 = fmul %x, %y %s:f32 = fadd %p, %y no_contraction" + end;
    ExpectFused(forbidden, forbidden);
}

TEST(FuseSums, AProductThatIsAddedToItselfIsComputedOnce) {
    const std::string end =
        " store_buffer %o, %z, %p align(4) store_buffer %o, %z, %s align(4) return";
    for (const char* product : {"%p:f32 = fmul %x, %y ", "%p:f32 = fmul %y, %x no_contraction "}) {
        ExpectFused(product + ("%s:f32 = fma %x, %y, %p" + end),
                    product + ("%s:f32 = fadd %p, %p no_contraction" + end));
        // It is asked for one rounding, or of other factors.
        for (const char* other :
             {"%s:f32 = fma %x, %y, %p no_contraction", "%s:f32 = fma %x, %x, %p"}) {
            ExpectFused(product + (other + end), product + (other + end));
        }
    }
}

// An accumulator to which `sum` adds in each iteration.
std::string InLoop(const std::string& type, const std::string& before, const std::string& sum) {
    return before + "%r:" + type + " = loop @0 (%k:i32 = %z, %a:" + type + R"( = %c) {
            %end:bool = ieq %k, %l
            if %end { exit @0 %a } else { yield }
            )" +
           sum + R"(
            continue @0 %s
        } continuing (%v:)" +
           type + R"() {
            %n:i32 = iadd %k, %l
            next %n, %v
        }
        store_buffer %o, %z, %r align()" +
           (type == "f16" ? "2)" : "4)") + "\nreturn";
}

TEST(FuseSums, AProductThatIsTheSameInEachIterationIsComputedBefore) {
    auto in_loop = [](const std::string& before, const std::string& sum) {
        return InLoop("f32", "%c:f32 = fneg %y " + before, sum);
    };
    const std::string before = "%p:f32 = fmul %x, %y no_contraction ";
    ExpectFused(in_loop("", "%s:f32 = fma %x, %y, %a"),
                in_loop(before, "%s:f32 = fadd %p, %a no_contraction"));
    ExpectFused(in_loop("", "%p:f32 = fmul %x, %y %s:f32 = fadd %a, %p"),
                in_loop(before, "%s:f32 = fadd %a, %p no_contraction"));
    ExpectFused(in_loop("", "%p:f32 = fmul %x, %y %s:f32 = fsub %p, %a"),
                in_loop(before, "%s:f32 = fsub %p, %a no_contraction"));
    // A factor changes, or one rounding is asked for.
    for (const char* sum : {"%s:f32 = fma %x, %a, %a", "%s:f32 = fma %x, %y, %a no_contraction"}) {
        ExpectFused(in_loop("", sum), in_loop("", sum));
    }
    // It would have to be kept across a barrier.
    const std::string sum = "barrier %s:f32 = fma %x, %y, %a";
    ExpectFused(in_loop("", sum), in_loop("", sum));
    // A half would lose digits.
    const std::string half = InLoop("f16", "%c:f16 = fconvert %x ", "%s:f16 = fma %c, %c, %a");
    ExpectFused(half, half);
}

}  // namespace
}  // namespace fornax::kernel
