// Exact text before and after simplification, rule by rule.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>

#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/ir/verify.h"
#include "compiler/kernel/transform/pass_test_util.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {
namespace {

// `%i` and `%j` are integers, `%b` a bool, `%x` a float that are not known; `%o` takes results.
constexpr char kPrologue[] = R"(
    %z:i32 = const 0
    %four:i32 = const 4
    %i:i32 = builtin workgroup_id_x
    %j:i32 = builtin workgroup_id_y
    %b:bool = ult %i, %j
    %x:f32 = load_push %i align(4)
    %o:buffer = buffer 0, %z
)";

void Expect(const std::string& in, const std::string& out, const std::string& locals = "") {
    auto pass = [](ir::Kernel& kernel) { Simplify(kernel); };
    ir::Kernel kernel = Parsed(KernelText(locals, kPrologue + in));
    pass(kernel);
    Status status = ir::Verify(kernel);
    ASSERT_TRUE(status.ok()) << status.error().message << "\n" << ir::PrintKernel(kernel);
    // What is expected is in simplest form already: only constants move.
    ir::Kernel expected = Parsed(KernelText(locals, kPrologue + out));
    pass(expected);
    EXPECT_EQ(ir::PrintKernel(kernel), ir::PrintKernel(expected)) << in;
}

// `literal` must stand in the printed kernel that stores `result`, simplified.
void ExpectValue(const std::string& in, const std::string& result, const std::string& literal) {
    ir::Kernel kernel = Parsed(
        KernelText("", kPrologue + in + "\nstore_buffer %o, %z, %" + result + " align(4) return"));
    Simplify(kernel);
    ASSERT_TRUE(ir::Verify(kernel).ok());
    std::string text = ir::PrintKernel(kernel);
    EXPECT_NE(text.find(literal), std::string::npos) << in << "\n" << text;
}

TEST(Simplify, FoldsIntegers) {
    Expect(R"(
        %k:i32 = const 6 %m:i32 = const -2
        %p:i32 = imul %k, %m
        %q:i32 = sdiv %p, %four
        %r:i32 = iadd %q, %i
        store_buffer %o, %z, %r align(4) return)",
           R"(%m:i32 = const -3 %r:i32 = iadd %i, %m
        store_buffer %o, %z, %r align(4) return)");
}

TEST(Simplify, SmallPowersAreProducts) {
    const auto power = [](const char* exponent) {
        return std::string("%y:f32 = const ") + exponent +
               " %p:f32 = pow %x, %y store_buffer %o, %z, %p align(4) return";
    };
    constexpr char kStore[] = " store_buffer %o, %z, %p align(4) return";
    Expect(power("2.0"), std::string("%p:f32 = fmul %x, %x") + kStore);
    Expect(power("3.0"), std::string("%s:f32 = fmul %x, %x %p:f32 = fmul %s, %x") + kStore);
    Expect(power("4.0"), std::string("%s:f32 = fmul %x, %x %p:f32 = fmul %s, %s") + kStore);
    Expect(power("1.5"), std::string("%r:f32 = sqrt %x %p:f32 = fmul %x, %r") + kStore);
    Expect(power("2.5"),
           std::string("%s:f32 = fmul %x, %x %r:f32 = sqrt %x %p:f32 = fmul %s, %r") + kStore);
    for (const char* exponent : {"0.5", "0.0", "-1.0", "-2.0", "2.25", "4.5", "1e30"}) {
        Expect(power(exponent), power(exponent));
    }
}

std::string Number(float value) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.9g", value);
    return text;
}

// What a sum of squares is compared with in place of its root; nothing if there is still a root.
std::optional<float> LimitOf(const std::string& comparison, float bound) {
    ir::Kernel kernel = Parsed(KernelText("", kPrologue + std::string("%c:f32 = const ") +
                                                  Number(bound) + R"(
        %s:f32 = fmul %x, %x
        %t:f32 = fadd %s, %s
        %r:f32 = sqrt %t
        %d:bool = )" + comparison + R"(
        %v:i32 = select %d, %i, %j
        store_buffer %o, %z, %v align(4) return)"));
    Simplify(kernel);
    EXPECT_TRUE(ir::Verify(kernel).ok());
    if (ir::PrintKernel(kernel).find("sqrt") != std::string::npos) {
        return std::nullopt;
    }
    kernel.Compact();
    for (uint32_t i = 0; i < kernel.num_insts(); ++i) {
        const ir::Instruction& inst = kernel.inst(ir::InstId{i});
        for (const ir::ValueId operand : inst.operands) {
            uint64_t bits = 0;
            if (inst.op >= ir::Op::kFOLt && inst.op <= ir::Op::kFULe &&
                kernel.IsConst(operand, &bits)) {
                return std::bit_cast<float>(static_cast<uint32_t>(bits));
            }
        }
    }
    ADD_FAILURE() << "There is no comparison.";
    return std::nullopt;
}

TEST(Simplify, RootsAreNotTakenToBeCompared) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (const float c :
         {2e-15f, 0.1f, 1.0f, 1.4142135f, 1.7320508f, 2.0f, 20.0f, 12345.678f, 9e14f}) {
        for (const char* comparison : {"folt %r, %c", "fole %c, %r", "fult %r, %c"}) {
            const float least = LimitOf(comparison, c).value();
            EXPECT_GE(std::sqrt(least), c);
            EXPECT_LT(std::sqrt(std::nextafter(least, 0.0f)), c);
        }
        for (const char* comparison : {"fole %r, %c", "folt %c, %r", "fule %r, %c"}) {
            const float greatest = LimitOf(comparison, c).value();
            EXPECT_LE(std::sqrt(greatest), c);
            EXPECT_GT(std::sqrt(std::nextafter(greatest, kInfinity)), c);
        }
    }
    for (const float c : {-1.0f, 0.0f, 1e-16f, 1e16f}) {
        EXPECT_FALSE(LimitOf("folt %r, %c", c)) << c;
    }
    // x may be negative, and its root no number.
    Expect(
        "%c:f32 = const 2.0 %r:f32 = sqrt %x %d:bool = folt %r, %c %v:i32 = select %d, %i, %j "
        "store_buffer %o, %z, %v align(4) return",
        "%c:f32 = const 2.0 %r:f32 = sqrt %x %d:bool = folt %r, %c %v:i32 = select %d, %i, %j "
        "store_buffer %o, %z, %v align(4) return");
}

TEST(Simplify, DotProductsTakeTheirAccumulator) {
    Expect(R"(
        %d:i32 = sudot4 %i, %j, %z
        %r:i32 = iadd %i, %d
        store_buffer %o, %z, %r align(4) return)",
           R"(%r:i32 = sudot4 %i, %j, %i
        store_buffer %o, %z, %r align(4) return)");
}

TEST(Simplify, AddressesBecomeSumsOfProductsAndAConstant) {
    Expect(R"(
        %one:i32 = const 1 %two:i32 = const 2 %eight:i32 = const 8
        %i1:i32 = iadd %one, %i
        %row:i32 = imul %i1, %eight
        %e:i32 = iadd %row, %j
        %e2:i32 = isub %e, %two
        %a:i32 = shl %e2, %two
        store_buffer %o, %a, %x align(4) return)",
           R"(
        %eight:i32 = const 8 %k24:i32 = const 24
        %q:i32 = imul %i, %eight
        %e:i32 = iadd %j, %q
        %s:i32 = imul %e, %four
        %a:i32 = iadd %s, %k24
        store_buffer %o, %a, %x align(4) return)");
}

TEST(Simplify, MergesEqualInstructionsInScope) {
    Expect(R"(
        %p:i32 = iadd %i, %j
        if %b {
            %q:i32 = iadd %j, %i
            store_buffer %o, %z, %q align(4)
            %e1:f32 = exp %x store_buffer %o, %p, %e1 align(4) yield
        } else {
            %e2:f32 = exp %x store_buffer %o, %p, %e2 align(4) yield
        }
        return)",
           R"(
        %p:i32 = iadd %i, %j
        if %b {
            store_buffer %o, %z, %p align(4)
            %e1:f32 = exp %x store_buffer %o, %p, %e1 align(4) yield
        } else {
            %e2:f32 = exp %x store_buffer %o, %p, %e2 align(4) yield
        }
        return)");
}

TEST(Simplify, LoadsMergeUntilAWrite) {
    Expect(R"(
        %p:f32 = load_buffer %o, %i align(4)
        %q:f32 = load_buffer %o, %i align(4)
        %s:f32 = fadd %p, %q
        store_buffer %o, %i, %s align(4)
        %r:f32 = load_buffer %o, %i align(4)
        store_buffer %o, %j, %r align(4)
        %c1:i32 = load_push %four align(4)
        %c2:i32 = load_push %four align(4)
        %t:i32 = iadd %c1, %c2
        store_buffer %o, %j, %t align(4)
        return)",
           R"(
        %p:f32 = load_buffer %o, %i align(4)
        %s:f32 = fadd %p, %p
        store_buffer %o, %i, %s align(4)
        %r:f32 = load_buffer %o, %i align(4)
        store_buffer %o, %j, %r align(4)
        %c1:i32 = load_push %four align(4)
        %t:i32 = iadd %c1, %c1
        store_buffer %o, %j, %t align(4)
        return)");
}

// What is timed stands between two readings, and a reading that nobody uses may end a pause.
TEST(Pipeline, ClocksAreReadWhereTheyStand) {
    ir::Kernel kernel = Parsed(KernelText("", std::string(kPrologue) + R"(
        %first:i64 = read_clock
        %before:i32 = load_buffer %o, %z align(4)
        %unused:i64 = read_clock
        %after:i32 = load_buffer %o, %i align(4)
        %second:i64 = read_clock
        %time:i64 = isub %second, %first
        %sum:i32 = iadd %before, %after
        store_buffer %o, %four, %sum align(4)
        %eight:i32 = const 8
        store_buffer %o, %eight, %time align(8) return)"));
    RunPipeline(kernel);
    ASSERT_TRUE(ir::Verify(kernel).ok());
    const std::string text = ir::PrintKernel(kernel);
    size_t at = 0;
    for (const char* next : {"read_clock", "load_buffer", "read_clock", "load_buffer", "read_clock",
                             "isub", "store_buffer"}) {
        at = text.find(next, at + 1);
        ASSERT_NE(at, std::string::npos) << next << "\n" << text;
    }
}

TEST(Simplify, LoadsInALoopDoNotMergeWithThoseBefore) {
    const char* kText = R"(
        %p:f32 = load_buffer %o, %i align(4)
        loop @0 () {
            %q:f32 = load_buffer %o, %i align(4)
            %s:f32 = fadd %p, %q
            store_buffer %o, %i, %s align(4)
            if %b { exit @0 }
            continue @0
        } continuing () { next }
        return)";
    ir::Kernel kernel = Parsed(KernelText("", std::string(kPrologue) + kText));
    Simplify(kernel);
    std::string text = ir::PrintKernel(kernel);
    size_t first = text.find("load_buffer");
    EXPECT_NE(text.find("load_buffer", first + 1), std::string::npos) << text;
}

TEST(Simplify, Values) {
    ExpectValue("%m:f32 = const -0.0 %r:f32 = fadd %x, %m", "r", "store_buffer %3, %0, %2 ");
    // x + 0 is not x for x = -0.
    ExpectValue("%m:f32 = const 0.0 %r:f32 = fadd %x, %m", "r", "= fadd ");
    ExpectValue("%m:f32 = const 0.0 %r:f32 = fmul %x, %m", "r", "= fmul ");
    ExpectValue("%m:f32 = const 8.0 %r:f32 = fdiv %x, %m", "r", "const 0.125");
    ExpectValue("%m:f32 = const -0.5 %r:f32 = fdiv %x, %m", "r", "const -2.0");
    ExpectValue("%m:f32 = const 3.0 %r:f32 = fdiv %x, %m", "r", "= fdiv ");
    ExpectValue("%m:f32 = const 0x7f000000 %r:f32 = fdiv %x, %m", "r", "= fdiv ");
    ExpectValue("%m:f32 = const 0.1 %n:f32 = const 0.2 %r:f32 = fadd %m, %n", "r", "const 0.3");
    ExpectValue("%m:i32 = const 16 %r:i32 = udiv %i, %m", "r", "= lshr ");
    ExpectValue("%m:i32 = const 16 %r:i32 = urem %i, %m", "r", "const 15");
    ExpectValue("%m:i32 = const 16 %r:i32 = sdiv %i, %m", "r", "= sdiv ");
    ExpectValue(
        "%c:i32 = const 1 %t:i32 = select %b, %c, %z %c2:bool = ine %t, %z "
        "%r:i32 = select %c2, %i, %j",
        "r", "= select %3, %1, %2");
    ExpectValue("%e:bool = subgroup_elect %n:bool = not %e %r:i32 = select %n, %i, %j", "r",
                "= select %4, %2, %1");
    ExpectValue("%n:bool = not %b %r:i32 = select %n, %i, %j", "r", "= ule %2, %1");
    ExpectValue("%m:i32 = const 8 %r:i32 = bitfield_uextract %i, %m, %four", "r", "= lshr ");
    ExpectValue("%r:i32, %s:i32 = umul_extended %four, %four", "r", "const 16");
}

// local_id_x is below 4, local_id_y is 0, and the workgroup is one subgroup.
TEST(Simplify, BoundsOfIndices) {
    Expect(R"(
        %k:i32 = const 256 %m:i32 = const 15 %n:i32 = const 3
        %l:i32 = builtin local_id_x
        %y:i32 = builtin local_id_y
        %s:i32 = iadd %l, %k
        %row:i32 = lshr %s, %four
        %column:i32 = and %s, %m
        %q:i32 = sdiv %s, %n
        %e:i32 = srem %l, %k
        %lt:bool = slt %l, %k
        %g:i32 = select %lt, %e, %q
        store_buffer %o, %z, %row, %column, %q, %g, %y align(4)
        %u:i32 = iadd %i, %k
        %v:i32 = lshr %u, %four
        %c:i32 = and %u, %m
        %t:i32 = sdiv %i, %n
        store_buffer %o, %k, %v, %c, %t align(4)
        %num:i32 = builtin num_subgroups
        %size:i32 = builtin subgroup_size
        store_buffer %o, %z, %num, %size align(4) return)",
           R"(
        %k:i32 = const 256 %m:i32 = const 15 %n:i32 = const 3
        %k16:i32 = const 16 %one:i32 = const 1 %eight:i32 = const 8
        %l:i32 = builtin local_id_x
        %s:i32 = iadd %l, %k
        %q:i32 = udiv %s, %n
        store_buffer %o, %z, %k16, %l, %q, %l, %z align(4)
        %u:i32 = iadd %i, %k
        %v:i32 = lshr %u, %four
        %c:i32 = and %i, %m
        %t:i32 = sdiv %i, %n
        store_buffer %o, %k, %v, %c, %t align(4)
        store_buffer %o, %z, %one, %eight align(4) return)");
}

// local_id_x is at most 3; of workgroup_id_x nothing is known.
TEST(Simplify, IndicesThatAreInRangeAreNotClamped) {
    const std::string constants = "%k:i32 = const 3 %n:i32 = const 2 %m:i32 = const -1 ";
    Expect(constants + R"(%l:i32 = builtin local_id_x
        %a:i32 = umin %l, %k %b2:i32 = smin %k, %l %c:i32 = umax %l, %k %d:i32 = smax %l, %k
        store_buffer %o, %z, %a, %b2, %c, %d align(4) return)",
           constants + R"(%l:i32 = builtin local_id_x
        store_buffer %o, %z, %l, %l, %k, %k align(4) return)");
    // A lower limit, a negative one, and what may be negative itself.
    const std::string stay = constants + R"(%l:i32 = builtin local_id_x
        %a:i32 = umin %l, %n %b2:i32 = smin %l, %m %c:i32 = smax %i, %k %d:i32 = umin %i, %k
        store_buffer %o, %z, %a, %b2, %c, %d align(4) return)";
    Expect(stay, stay);
}

TEST(Simplify, ConditionsBoundWhatTheyCompare) {
    const std::string constants = "%k:i32 = const 64 %m:i32 = const 63 %n:i32 = const 62 ";
    const std::string begin = constants + "%c:bool = ult %i, %k if %c { ";
    // i is at most 63 where i < 64, at least 64 elsewhere, and anything behind both.
    Expect(begin + R"(
            %a:i32 = umin %i, %m %b2:i32 = umin %i, %n
            store_buffer %o, %z, %a, %b2 align(4) yield
        } else {
            %d:i32 = umin %i, %m
            store_buffer %o, %z, %d align(4) yield
        }
        %e:i32 = umin %i, %m
        store_buffer %o, %four, %e align(4) return)",
           begin + R"(
            %b2:i32 = umin %i, %n
            store_buffer %o, %z, %i, %b2 align(4) yield
        } else {
            %d:i32 = umin %i, %m
            store_buffer %o, %z, %d align(4) yield
        }
        %e:i32 = umin %i, %m
        store_buffer %o, %four, %e align(4) return)");
    // The other three forms, and a loop's test, which holds for the rest of the body.
    Expect(constants + R"(
        %c:bool = ule %i, %m if %c { %a:i32 = umin %i, %m store_buffer %o, %z, %a align(4) yield }
        %d:bool = ult %m, %j if %d { yield } else {
            %e:i32 = umin %j, %m store_buffer %o, %z, %e align(4) yield }
        loop @0 (%r:i32 = %z) {
            %f:bool = ult %r, %k
            if %f { yield } else { exit @0 }
            %g:i32 = umin %r, %m
            store_buffer %o, %g, %g align(4)
            continue @0
        } continuing () {
            %h:i32 = iadd %r, %four
            next %h
        }
        return)",
           constants + R"(
        %c:bool = ule %i, %m if %c { store_buffer %o, %z, %i align(4) yield }
        %d:bool = ult %m, %j if %d { yield } else { store_buffer %o, %z, %j align(4) yield }
        loop @0 (%r:i32 = %z) {
            %f:bool = ult %r, %k
            if %f { yield } else { exit @0 }
            store_buffer %o, %r, %r align(4)
            continue @0
        } continuing () {
            %h:i32 = iadd %r, %four
            next %h
        }
        return)");
}

TEST(Simplify, TableLoadsFromKnownPlaces) {
    Expect(R"(
        %v:i32, %w:i32 = load_constant %four align(4)
        %s:i32 = iadd %v, %w
        store_buffer %o, %z, %s align(4) return)",
           "%s:i32 = const 5 store_buffer %o, %z, %s align(4) return",
           "data \"010000000200000003000000\"\n");
}

TEST(Simplify, KnownBranchesAreTaken) {
    Expect(R"(
        %c:bool = ieq %z, %four
        %r:i32 = if %c { store_buffer %o, %z, %i align(4) yield %i } else { yield %j }
        %q:i32 = switch %four default { yield %z } case 4 { yield %r } case 5 { yield %i }
        store_buffer %o, %z, %q align(4) return)",
           "store_buffer %o, %z, %j align(4) return");
    // With an exit to it from deeper inside, a scope remains.
    Expect(R"(
        %t:bool = const true
        %r:i32 = if @0 %t {
            if %b { store_buffer %o, %z, %i align(4) exit @0 %i }
            store_buffer %o, %four, %i align(4)
            yield %four
        } else { yield %j }
        store_buffer %o, %z, %r align(4) return)",
           R"(
        %r:i32 = scope @0 {
            if %b { store_buffer %o, %z, %i align(4) exit @0 %i }
            store_buffer %o, %four, %i align(4)
            yield %four
        }
        store_buffer %o, %z, %r align(4) return)");
}

TEST(Simplify, WhatFollowsALeavingBranchIsNotNested) {
    Expect(R"(
        if %b { return } else {
            store_buffer %o, %z, %i align(4)
            yield
        }
        return)",
           R"(
        if %b { return }
        store_buffer %o, %z, %i align(4)
        return)");
    Expect(R"(
        loop @0 () {
            if %b { exit @0 } else { store_buffer %o, %z, %i align(4) continue @0 }
            unreachable
        } continuing () { next }
        return)",
           R"(
        loop @0 () {
            if %b { exit @0 }
            store_buffer %o, %z, %i align(4)
            continue @0
        } continuing () { next }
        return)");
}

TEST(Simplify, ConditionsAreKnownInside) {
    Expect(R"(
        %e:bool = ieq %i, %four
        if %e {
            if %e { store_buffer %o, %z, %i align(4) yield }
            if %b { yield } else { return }
            store_buffer %o, %four, %j align(4)
            if %b { store_buffer %o, %four, %x align(4) yield }
            yield
        }
        return)",
           R"(
        %e:bool = ieq %i, %four
        if %e {
            store_buffer %o, %z, %four align(4)
            %b2:bool = ult %four, %j
            if %b { yield } else { return }
            store_buffer %o, %four, %j align(4)
            store_buffer %o, %four, %x align(4)
            yield
        }
        return)");
}

TEST(Simplify, ShortPureBranchesBecomeSelects) {
    Expect(R"(
        %r:i32, %q:i32 = if %b {
            %p:i32 = iadd %i, %four yield %p, %i
        } else { yield %j, %i }
        %s:i32 = iadd %r, %q
        store_buffer %o, %z, %s align(4) return)",
           R"(
        %p:i32 = iadd %i, %four
        %r:i32 = select %b, %p, %j
        %s:i32 = iadd %i, %r
        store_buffer %o, %z, %s align(4) return)");
    // Not where the source asks for a branch, and not around memory.
    for (const char* text :
         {"%r:i32 = if dont_flatten %b { yield %i } else { yield %j } "
          "store_buffer %o, %z, %r align(4) return",
          "%r:i32 = if %b { %l:i32 = load_buffer %o, %i align(4) yield %l } else { yield %j } "
          "store_buffer %o, %z, %r align(4) return"}) {
        ir::Kernel kernel = Parsed(KernelText("", std::string(kPrologue) + text));
        Simplify(kernel);
        EXPECT_EQ(ir::PrintKernel(kernel).find("select"), std::string::npos) << text;
    }
}

TEST(Simplify, LoopsThatRunOnceVanish) {
    Expect(R"(
        %r:i32 = loop @0 (%n:i32 = %i) {
            store_buffer %o, %n, %x align(4)
            exit @0 %n
        } continuing () { next %z }
        store_buffer %o, %z, %r align(4) return)",
           R"(
        store_buffer %o, %i, %x align(4)
        store_buffer %o, %z, %i align(4) return)");
}

// A variable that a loop sets to what it carries, and that has no value before it.
TEST(Simplify, ParametersOfALoopThatGoOnAlikeAreOne) {
    const auto loop = [](const std::string& params, const std::string& result,
                         const std::string& next) {
        return "%u:f32 = undef %r:f32 = loop @0 (%n:i32 = %z, " + params +
               ") { %more:bool = ult %n, %i if %more { continue @0 } exit @0 " + result +
               " } continuing () { %n2:i32 = iadd %n, %four %s2:f32 = fadd %s, %x next %n2, " +
               next + " } store_buffer %o, %z, %r align(4) return";
    };
    const std::string one = loop("%s:f32 = %x", "%s", "%s2");
    Expect(loop("%s:f32 = %x, %t:f32 = %u", "%t", "%s2, %s2"), one);
    Expect(loop("%t:f32 = %u, %s:f32 = %x", "%t", "%s2, %s2"), one);
    Expect(loop("%s:f32 = %x, %t:f32 = %x", "%t", "%s2, %s2"), one);
    const std::string two = loop("%s:f32 = %x, %t:f32 = %y", "%t", "%s2, %s2");
    const std::string other = "%y:f32 = load_push %j align(4) ";
    ir::Kernel kernel = Parsed(KernelText("", kPrologue + other + two));
    Simplify(kernel);
    EXPECT_NE(ir::PrintKernel(kernel).find("exit @0 %10"), std::string::npos)
        << ir::PrintKernel(kernel);
}

TEST(Simplify, LoopsThatNeverGoRoundUnwind) {
    Expect(R"(
        %r:i32 = loop @0 (%n:i32 = %i) {
            if %b { store_buffer %o, %n, %x align(4) continue @0 %n }
            %m:i32 = iadd %n, %four
            continue @0 %m
        } continuing (%p:i32) {
            store_buffer %o, %p, %x align(4)
            %t:bool = const true
            if %t { exit @0 %p }
            next %p
        }
        store_buffer %o, %z, %r align(4) return)",
           R"(
        %p:i32 = scope @1 {
            if %b { store_buffer %o, %i, %x align(4) exit @1 %i }
            %m:i32 = iadd %i, %four
            yield %m
        }
        store_buffer %o, %p, %x align(4)
        store_buffer %o, %z, %p align(4) return)");
}

// So that neighbours are seen to be neighbours. Without the promise the sum may wrap.
TEST(Simplify, ConstantsLeaveWidenedIndices) {
    Expect(R"(
        %k:i32 = const 3 %m:i32 = const -3
        %s:i32 = iadd %i, %k %t:i32 = iadd %i, %m
        %a:i64 = sext %s no_lane_wrap
        %g:i64 = sext %t no_lane_wrap
        %c:i64 = sext %s
        store_buffer %o, %a, %x align(1)
        store_buffer %o, %g, %x align(1)
        store_buffer %o, %c, %x align(1) return)",
           R"(
        %k:i32 = const 3 %m:i32 = const -3 %k64:i64 = const 3
        %s:i32 = iadd %i, %k %t:i32 = iadd %i, %m
        %w:i64 = sext %i no_lane_wrap
        %a:i64 = iadd %w, %k64
        %g:i64 = sext %t no_lane_wrap
        %c:i64 = sext %s
        store_buffer %o, %a, %x align(1)
        store_buffer %o, %g, %x align(1)
        store_buffer %o, %c, %x align(1) return)");
}

TEST(Simplify, EmptyConstructsVanish) {
    Expect(R"(
        if %b { yield } else { yield }
        switch %i default { yield } case 1 { yield } case 2 { yield }
        scope @0 { if %b { exit @0 } yield }
        loop @1 (%n:i32 = %z) {
            %c:bool = ult %n, %j
            if %c { yield } else { exit @1 }
            continue @1
        } continuing () { %m:i32 = iadd %n, %four next %m }
        store_buffer %o, %z, %x align(4) return)",
           "store_buffer %o, %z, %x align(4) return");
}

}  // namespace
}  // namespace fornax::kernel
