// Loops with a small known trip count are unrolled, and no others: exact text.
#include <gtest/gtest.h>

#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/ir/verify.h"
#include "compiler/kernel/transform/pass_test_util.h"
#include "compiler/kernel/transform/passes.h"
#include "compiler/kernel/transform/trip_count.h"

namespace fornax::kernel {
namespace {

constexpr char kPrologue[] = R"(
    %z:i32 = const 0
    %one:i32 = const 1
    %two:i32 = const 2
    %four:i32 = const 4
    %i:i32 = builtin local_id_x
    %b:bool = ieq %i, %z
    %o:buffer = buffer 0, %z
)";

void UnrollAndSimplify(ir::Kernel& kernel) {
    UnrollLoops(kernel, 5000);
    Simplify(kernel);
}

void Expect(const std::string& in, const std::string& out) {
    ir::Kernel kernel = Parsed(KernelText("", kPrologue + in));
    UnrollAndSimplify(kernel);
    ASSERT_TRUE(ir::Verify(kernel).ok()) << ir::PrintKernel(kernel);
    ir::Kernel expected = Parsed(KernelText("", kPrologue + out));
    Simplify(expected);
    EXPECT_EQ(ir::PrintKernel(kernel), ir::PrintKernel(expected)) << in;
}

std::optional<uint32_t> Trips(const std::string& loop) {
    ir::Kernel kernel = Parsed(KernelText("", kPrologue + loop));
    Structure structure(kernel);
    TripCounter counter(kernel, structure);
    for (ir::InstId id : structure.preorder) {
        if (kernel.inst(id).op == ir::Op::kLoop) {
            return counter.Count(id, 100);
        }
    }
    return {};
}

TEST(TripCount, CountersOfAllKinds) {
    // Test at the top: the last trip begun only tests.
    EXPECT_EQ(
        Trips("loop @0 (%n:i32 = %z) { %c:bool = slt %n, %four if %c { yield } else { exit @0 } "
              "continue @0 } continuing () { %m:i32 = iadd %n, %one next %m } return"),
        5u);
    // Downward, by two, test inverted.
    EXPECT_EQ(Trips("loop @0 (%n:i32 = %four) { %c:bool = sle %n, %z if %c { exit @0 } "
                    "continue @0 } continuing () { %m:i32 = isub %n, %two next %m } return"),
              3u);
    // Doubling, tested in the continuing block.
    EXPECT_EQ(
        Trips("loop @0 (%n:i32 = %one) { continue @0 } continuing () { %m:i32 = imul %n, %two "
              "%k:i32 = const 64 %c:bool = ult %m, %k if %c { yield } else { exit @0 } "
              "next %m } return"),
        6u);
    // The test says when to go on, and exits stand behind it.
    EXPECT_EQ(Trips("loop @0 (%n:i32 = %z) { %c:bool = slt %n, %four if %c { continue @0 } "
                    "exit @0 } continuing () { %m:i32 = iadd %n, %one next %m } return"),
              5u);
    EXPECT_EQ(Trips("loop @0 (%n:i32 = %z) { %c:bool = ieq %n, %two "
                    "if %c { if %b { exit @0 } yield } else { continue @0 } exit @0 } "
                    "continuing () { %m:i32 = iadd %n, %one next %m } return"),
              3u);
    // Through the continuing block's parameter.
    EXPECT_EQ(
        Trips("loop @0 (%n:i32 = %z) { %c:bool = ine %n, %four if %c { yield } else { exit @0 } "
              "%m:i32 = iadd %n, %one continue @0 %m } continuing (%p:i32) { next %p } return"),
        5u);
}

TEST(TripCount, UnknownOnes) {
    EXPECT_EQ(
        Trips("loop @0 (%n:i32 = %i) { %c:bool = slt %n, %four if %c { yield } else { exit @0 } "
              "continue @0 } continuing () { %m:i32 = iadd %n, %one next %m } return"),
        std::nullopt);
    EXPECT_EQ(Trips("loop @0 (%n:i32 = %z) { if %b { exit @0 } "
                    "continue @0 } continuing () { %m:i32 = iadd %n, %one next %m } return"),
              std::nullopt);
    // The test is skipped where the loop continues before it.
    EXPECT_EQ(Trips("loop @0 (%n:i32 = %z) { if %b { continue @0 } "
                    "%c:bool = slt %n, %four if %c { yield } else { exit @0 } "
                    "continue @0 } continuing () { %m:i32 = iadd %n, %one next %m } return"),
              std::nullopt);
    EXPECT_EQ(Trips("loop @0 (%n:i32 = %z) { if %b { continue @0 } "
                    "%c:bool = slt %n, %four if %c { continue @0 } exit @0 } "
                    "continuing () { %m:i32 = iadd %n, %one next %m } return"),
              std::nullopt);
    // Beyond the limit.
    EXPECT_EQ(Trips("loop @0 (%n:i32 = %z) { %k:i32 = const 1000 %c:bool = slt %n, %k "
                    "if %c { yield } else { exit @0 } "
                    "continue @0 } continuing () { %m:i32 = iadd %n, %one next %m } return"),
              std::nullopt);
}

TEST(Unroll, CarriesValuesFromTripToTrip) {
    Expect(R"(
        %r:i32 = loop @0 (%n:i32 = %z, %s:i32 = %i) {
            %c:bool = ult %n, %two
            if %c { yield } else { exit @0 %s }
            %v:i32 = load_buffer %o, %n align(4)
            %t:i32 = xor %s, %v
            continue @0 %t
        } continuing (%p:i32) { %m:i32 = iadd %n, %one next %m, %p }
        store_buffer %o, %z, %r align(4) return)",
           R"(
        %v:i32 = load_buffer %o, %z align(4)
        %t:i32 = xor %i, %v
        %w:i32 = load_buffer %o, %one align(4)
        %r:i32 = xor %t, %w
        store_buffer %o, %z, %r align(4) return)");
}

TEST(Unroll, ExitsAndContinuesInTheMiddle) {
    Expect(R"(
        %r:i32 = loop @0 (%n:i32 = %z, %s:i32 = %i) {
            %c:bool = ult %n, %two
            if %c { yield } else { exit @0 %s }
            %v:i32 = load_buffer %o, %n align(4)
            %d:bool = ieq %v, %z
            if %d { continue @0 %s }
            %e:bool = ieq %v, %one
            if %e { exit @0 %n }
            store_buffer %o, %n, %i align(4)
            %t:i32 = xor %s, %v
            continue @0 %t
        } continuing (%p:i32) { %m:i32 = iadd %n, %one next %m, %p }
        store_buffer %o, %z, %r align(4) return)",
           R"(
        %r:i32 = scope @0 {
            %p:i32 = scope @1 {
                %v:i32 = load_buffer %o, %z align(4)
                %d:bool = ieq %v, %z
                if %d { exit @1 %i }
                %e:bool = ieq %v, %one
                if %e { exit @0 %z }
                store_buffer %o, %z, %i align(4)
                %t:i32 = xor %i, %v
                yield %t
            }
            %q:i32 = scope @2 {
                %v2:i32 = load_buffer %o, %one align(4)
                %d2:bool = ieq %v2, %z
                if %d2 { exit @2 %p }
                %e2:bool = ieq %v2, %one
                if %e2 { exit @0 %one }
                store_buffer %o, %one, %i align(4)
                %t2:i32 = xor %p, %v2
                yield %t2
            }
            yield %q
        }
        store_buffer %o, %z, %r align(4) return)");
}

TEST(Unroll, PrivateArraysLeaveMemory) {
    ir::Kernel kernel = Parsed(KernelText("local 0: i32[16]\n", std::string(kPrologue) + R"(
        %k16:i32 = const 16
        loop @0 (%n:i32 = %z) {
            %c:bool = ult %n, %four
            if %c { yield } else { exit @0 }
            loop @1 (%j:i32 = %z) {
                %d:bool = ult %j, %four
                if %d { yield } else { exit @1 }
                %r:i32 = imul %n, %four
                %k:i32 = iadd %r, %j
                %v:i32 = imul %k, %i
                store_local 0, %k, %v
                continue @1
            } continuing () { %m:i32 = iadd %j, %one next %m }
            continue @0
        } continuing () { %m2:i32 = iadd %n, %one next %m2 }
        %w:i32 = load_local 0, %four
        store_buffer %o, %z, %w align(4) return)"));
    RunPipeline(kernel);
    ASSERT_TRUE(ir::Verify(kernel).ok());
    EXPECT_TRUE(kernel.locals.empty());
    EXPECT_EQ(ir::PrintKernel(kernel).find("loop"), std::string::npos);
}

TEST(Unroll, LimitsAndHints) {
    auto loop = [](const char* hint, int trips) {
        return std::string(kPrologue) + "%k:i32 = const " + std::to_string(trips) + R"(
        loop @0 )" +
               hint + R"((%n:i32 = %z) {
            %c:bool = ult %n, %k
            if %c { yield } else { exit @0 }
            store_buffer %o, %n, %i align(4)
            continue @0
        } continuing () { %m:i32 = iadd %n, %one next %m }
        return)";
    };
    auto remains = [&](const char* hint, int trips, uint32_t limit) {
        ir::Kernel kernel = Parsed(KernelText("", loop(hint, trips)));
        bool unrolled = UnrollLoops(kernel, limit);
        EXPECT_TRUE(ir::Verify(kernel).ok());
        bool has_loop = ir::PrintKernel(kernel).find("loop") != std::string::npos;
        EXPECT_EQ(unrolled, !has_loop);
        return has_loop;
    };
    EXPECT_FALSE(remains("", 4, 5000));
    EXPECT_TRUE(remains("dont_unroll ", 4, 5000));
    EXPECT_TRUE(remains("", 100, 5000));
    EXPECT_FALSE(remains("unroll ", 100, 5000));
    EXPECT_TRUE(remains("unroll ", 100, 500));
    EXPECT_TRUE(remains("unroll ", 1000, 50000));
}

}  // namespace
}  // namespace fornax::kernel
