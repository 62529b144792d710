// Locals become values across each kind of construct: exact text before and after.
#include <gtest/gtest.h>

#include "compiler/kernel/ir/verify.h"
#include "compiler/kernel/transform/pass_test_util.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {
namespace {

// `%z` is 0, `%b` a condition, `%i` an index that is not constant, `%o` a buffer for results.
constexpr char kPrologue[] = R"(
    %z:i32 = const 0
    %i:i32 = builtin local_id_x
    %b:bool = ieq %i, %z
    %o:buffer = buffer 0, %z
)";

void Expect(const std::string& in,
            const std::string& out,
            const std::string& locals = "local 0: i32[1]\n",
            const std::string& out_locals = "") {
    ExpectPass(PromoteLocals, locals, kPrologue + in, out_locals, kPrologue + out);
}

TEST(PromoteLocals, StraightLine) {
    Expect(R"(
        store_local 0, %z, %i
        %x:i32 = load_local 0, %z
        %y:i32 = iadd %x, %x
        store_local 0, %z, %y
        %w:i32 = load_local 0, %z
        store_buffer %o, %z, %w align(4)
        return)",
           R"(
        %y:i32 = iadd %i, %i
        store_buffer %o, %z, %y align(4)
        return)");
}

TEST(PromoteLocals, OneOfTwoElements) {
    Expect(R"(
        %one:i32 = const 1
        store_local 0, %z, %i
        store_local 0, %one, %z
        %n:i32 = select %b, %one, %z
        %x:i32 = load_local 0, %n
        store_buffer %o, %z, %x align(4)
        return)",
           R"(
        %x:i32 = select %b, %z, %i
        store_buffer %o, %z, %x align(4)
        return)",
           "local 0: i32[2]\n");
}

TEST(PromoteLocals, LoadBeforeAnyStoreIsUndef) {
    ExpectPass(PromoteLocals, "local 0: f32[1]\n",
               R"(%z:i32 = const 0
                  %o:buffer = buffer 0, %z
                  %x:f32 = load_local 0, %z
                  store_buffer %o, %z, %x align(4)
                  return)",
               "", R"(
                  %x:f32 = undef
                  %z:i32 = const 0
                  %o:buffer = buffer 0, %z
                  store_buffer %o, %z, %x align(4)
                  return)");
}

TEST(PromoteLocals, IfGivesAResult) {
    Expect(R"(
        store_local 0, %z, %z
        if %b { store_local 0, %z, %i yield }
        %x:i32 = load_local 0, %z
        store_buffer %o, %z, %x align(4)
        return)",
           R"(
        %x:i32 = if %b { yield %i } else { yield %z }
        store_buffer %o, %z, %x align(4)
        return)");
}

TEST(PromoteLocals, StoresThatNothingLoadsVanishWithTheirConstructs) {
    Expect(R"(
        store_local 0, %z, %i
        if %b { store_local 0, %z, %z yield }
        return)",
           "return");
    ExpectPass(PromoteLocals, "local 0: i32[1]\n", std::string(kPrologue) + R"(
        store_local 0, %z, %i return)",
               "", "return");
}

TEST(PromoteLocals, LoopCarriesOnlyWhatItChanges) {
    Expect(R"(
        %one:i32 = const 1
        store_local 0, %z, %z
        store_local 1, %z, %i
        loop @0 () {
            %n:i32 = load_local 0, %z
            %limit:i32 = load_local 1, %z
            %c:bool = ult %n, %limit
            if %c { yield } else { exit @0 }
            store_local 2, %z, %n
            %t:i32 = load_local 2, %z
            store_buffer %o, %t, %t align(4)
            continue @0
        } continuing () {
            %n2:i32 = load_local 0, %z
            %n3:i32 = iadd %n2, %one
            store_local 0, %z, %n3
            next
        }
        %last:i32 = load_local 0, %z
        store_buffer %o, %z, %last align(4)
        return)",
           R"(
        %one:i32 = const 1
        %last:i32 = loop @0 (%n:i32 = %z) {
            %c:bool = ult %n, %i
            if %c { yield } else { exit @0 %n }
            store_buffer %o, %n, %n align(4)
            continue @0
        } continuing () {
            %n3:i32 = iadd %n, %one
            next %n3
        }
        store_buffer %o, %z, %last align(4)
        return)",
           "local 0: i32[1]\nlocal 1: i32[1]\nlocal 2: i32[1]\n");
}

TEST(PromoteLocals, ValuesPassThroughExitsOfSeveralLevels) {
    Expect(R"(
        store_local 0, %z, %z
        scope @0 {
            loop @1 () {
                if %b { store_local 0, %z, %i exit @0 } else { yield }
                switch @2 %i default { yield } case 1 { exit @1 } case 2 {
                    %n:i32 = load_local 0, %z
                    %m:i32 = iadd %n, %i
                    store_local 0, %z, %m
                    continue @1
                }
                continue @1
            } continuing () { next }
            yield
        }
        %x:i32 = load_local 0, %z
        store_buffer %o, %z, %x align(4)
        return)",
           R"(
        %x:i32 = scope @0 {
            %y:i32 = loop @1 (%n:i32 = %z) {
                if %b { exit @0 %i } else { yield }
                switch %i default { yield } case 1 { exit @1 %n } case 2 {
                    %m:i32 = iadd %n, %i
                    continue @1 %m
                }
                continue @1 %n
            } continuing (%p:i32) { next %p }
            yield %y
        }
        store_buffer %o, %z, %x align(4)
        return)");
}

// Stored in every iteration with the value it had: the parameter must vanish.
TEST(PromoteLocals, InvariantParametersVanish) {
    Expect(R"(
        store_local 0, %z, %i
        loop @0 () {
            loop @1 () {
                %x:i32 = load_local 0, %z
                store_local 0, %z, %x
                store_shared %i, %i align(4)
                if %b { exit @1 }
                continue @1
            } continuing () { next }
            continue @0
        } continuing () {
            if %b { %y:i32 = load_local 0, %z store_buffer %o, %z, %y align(4) exit @0 }
            next
        }
        return)",
           R"(
        loop @0 () {
            loop @1 () {
                store_shared %i, %i align(4)
                if %b { exit @1 }
                continue @1
            } continuing () { next }
            continue @0
        } continuing () {
            if %b { store_buffer %o, %z, %i align(4) exit @0 }
            next
        }
        return)");
}

TEST(PromoteLocals, SplitsArraysIndexedByConstants) {
    Expect(R"(
        %one:i32 = const 1
        %two:i32 = const 2
        store_local 0, %z, %i
        store_local 0, %one, %one
        store_local 0, %two, %i
        %x:i32 = load_local 0, %one
        %y:i32 = load_local 0, %z
        %s:i32 = isub %x, %y
        store_buffer %o, %z, %s align(4)
        %k:i32 = load_local 1, %one
        store_local 1, %i, %k
        %m:i32 = load_local 1, %i
        store_buffer %o, %one, %m align(4)
        return)",
           R"(
        %one:i32 = const 1
        %s:i32 = isub %one, %i
        store_buffer %o, %z, %s align(4)
        %k:i32 = load_local 0, %one
        store_local 0, %i, %k
        %m:i32 = load_local 0, %i
        store_buffer %o, %one, %m align(4)
        return)",
           "local 0: i32[2]\nlocal 1: i32[8]\n", "local 0: i32[8]\n");
}

// What products of f32 are added to stays where they wait for one another; other sums become
// values.
TEST(PromoteLocals, SumsOfFloatProductsStayInMemory) {
    for (const bool floats : {true, false}) {
        const std::string type = floats ? "f32" : "f16";
        std::string body = kPrologue;
        auto list = [](const std::string& name, const char* suffix = "") {
            std::string all;
            for (int i = 0; i < 32; ++i) {
                all += (i != 0 ? ", %" : "%") + name + std::to_string(i) + suffix;
            }
            return all;
        };
        for (int i = 0; i < 32; ++i) {
            const std::string n = std::to_string(i);
            body += "%n" + n + ":i32 = const " + n + "\n%a" + n + ":" + type + " = const 1.0\n%c" +
                    n + ":f32 = const 2.0\nstore_local 0, %n" + n + ", %c" + n + "\n";
        }
        for (int i = 0; i < 32; ++i) {
            const std::string n = std::to_string(i);
            body += "%x" + n + ":f32 = load_local 0, %n" + n + "\n";
        }
        body += list("r", ":f32") + " = matrix_muladd 0, " + list("a") + ", " + list("a") + ", " +
                list("x") + "\n";
        for (int i = 0; i < 32; ++i) {
            const std::string n = std::to_string(i);
            body += "store_local 0, %n" + n + ", %r" + n + "\n%y" + n + ":f32 = load_local 0, %n" +
                    n + "\nstore_buffer %o, %z, %y" + n + " align(4)\n";
        }
        ir::Kernel kernel = Parsed(KernelText("local 0: f32[32]\n", body + "return\n"));
        PromoteLocals(kernel);
        ASSERT_TRUE(ir::Verify(kernel).ok());
        EXPECT_EQ(kernel.locals.size(), floats ? 1u : 0u);
    }
}

// Many variables in many sequential constructs: a quadratic pass would take minutes.
TEST(PromoteLocals, ScalesToLargeKernels) {
    constexpr int kLocals = 4000;
    std::string locals, body = kPrologue;
    for (int i = 0; i < kLocals; ++i) {
        std::string n = std::to_string(i);
        locals += "local " + n + ": i32[1]\n";
        body += "store_local " + n + ", %z, %i\n";
    }
    for (int round = 0; round < 4; ++round) {
        for (int i = 0; i < kLocals; ++i) {
            std::string n = std::to_string(i);
            std::string u = n + "_" + std::to_string(round);
            body += "if %b { %l" + u + ":i32 = load_local " + n + ", %z %k" + u + ":i32 = iadd %l" +
                    u + ", %i store_local " + n + ", %z, %k" + u + " yield }\n";
        }
    }
    for (int i = 0; i < kLocals; ++i) {
        std::string n = std::to_string(i);
        body += "%e" + n + ":i32 = load_local " + n + ", %z store_buffer %o, %z, %e" + n +
                " align(4)\n";
    }
    ir::Kernel kernel = Parsed(KernelText(locals, body + "return\n"));
    PromoteLocals(kernel);
    ASSERT_TRUE(ir::Verify(kernel).ok());
    EXPECT_TRUE(kernel.locals.empty());
}

}  // namespace
}  // namespace fornax::kernel
