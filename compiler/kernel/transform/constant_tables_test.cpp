// Constant arrays that are only read become tables: exact text before and after.
#include <gtest/gtest.h>

#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/ir/verify.h"
#include "compiler/kernel/transform/pass_test_util.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {
namespace {

constexpr char kPrologue[] = R"(
    %z:i32 = const 0
    %one:i32 = const 1
    %two:i32 = const 2
    %i:i32 = builtin local_id_x
    %b:bool = ieq %i, %z
    %o:buffer = buffer 0, %z
)";

TEST(ConstantTables, StoredConstantsBecomeData) {
    ir::Kernel kernel =
        Parsed(KernelText("local 0: i16[4]\nlocal 1: i16[4]\n", std::string(kPrologue) + R"(
        %k:i16 = const 258 %m:i16 = const -1
        store_local 0, %z, %k
        store_local 0, %two, %m
        if %b {
            %v:i16 = load_local 0, %i
            store_buffer %o, %z, %v align(2)
            yield
        }
        store_local 1, %z, %k
        store_local 1, %two, %m
        %w:i16 = load_local 1, %i
        store_buffer %o, %z, %w align(2)
        return)"));
    MakeConstantTables(kernel);
    ASSERT_TRUE(ir::Verify(kernel).ok());
    Simplify(kernel);
    // Both tables are the same one.
    ir::Kernel expected =
        Parsed(KernelText("data \"02010000ffff0000\"\n", std::string(kPrologue) + R"(
        if %b {
            %s:i32 = imul %i, %two
            %v:i16 = load_constant %s align(2)
            store_buffer %o, %z, %v align(2)
            yield
        }
        %t:i32 = imul %i, %two
        %w:i16 = load_constant %t align(2)
        store_buffer %o, %z, %w align(2)
        return)"));
    Simplify(expected);
    EXPECT_EQ(ir::PrintKernel(kernel), ir::PrintKernel(expected));
}

// A function that is called twice stores its array twice, and nothing else stores to it.
TEST(ConstantTables, EqualStoresMayStandAnywhere) {
    const char* kBodies[] = {
        // in different blocks
        "if %b { store_local 0, %z, %two %v:i32 = load_local 0, %i "
        "store_buffer %o, %z, %v align(4) yield } store_local 0, %z, %two "
        "%w:i32 = load_local 0, %i store_buffer %o, %z, %w align(4) return",
        // again, after a load
        "store_local 0, %z, %two %v:i32 = load_local 0, %i store_buffer %o, %z, %v align(4) "
        "store_local 0, %z, %two %w:i32 = load_local 0, %i store_buffer %o, %z, %w align(4) return",
    };
    for (const char* body : kBodies) {
        ir::Kernel kernel = Parsed(KernelText("local 0: i32[2]\n", std::string(kPrologue) + body));
        MakeConstantTables(kernel);
        ASSERT_TRUE(ir::Verify(kernel).ok());
        EXPECT_TRUE(kernel.locals.empty()) << body;
        EXPECT_EQ(kernel.constant_data, (std::vector<uint8_t>{2, 0, 0, 0, 0, 0, 0, 0})) << body;
    }
}

// Each of these must stay in private memory.
TEST(ConstantTables, OtherArraysStay) {
    const char* kBodies[] = {
        // a value that is not constant
        "store_local 0, %z, %i %v:i32 = load_local 0, %i store_buffer %o, %z, %v align(4) return",
        // a place that is not constant
        "store_local 0, %i, %z %v:i32 = load_local 0, %i store_buffer %o, %z, %v align(4) return",
        // a load before a store
        "store_local 0, %z, %one %v:i32 = load_local 0, %i store_local 0, %z, %two "
        "%w:i32 = load_local 0, %i store_buffer %o, %v, %w align(4) return",
        // other values in different blocks
        "store_local 0, %z, %one if %b { store_local 0, %z, %two yield } "
        "%w:i32 = load_local 0, %i store_buffer %o, %z, %w align(4) return",
        // a load outside of the stores' block
        "if %b { store_local 0, %z, %two yield } "
        "%w:i32 = load_local 0, %i store_buffer %o, %z, %w align(4) return",
        // less is stored before the first load
        "if %b { store_local 0, %z, %two %v:i32 = load_local 0, %i "
        "store_buffer %o, %z, %v align(4) yield } "
        "store_local 0, %z, %two store_local 0, %one, %one "
        "%w:i32 = load_local 0, %i store_buffer %o, %z, %w align(4) return",
    };
    for (const char* body : kBodies) {
        ir::Kernel kernel = Parsed(KernelText("local 0: i32[4]\n", std::string(kPrologue) + body));
        MakeConstantTables(kernel);
        ASSERT_TRUE(ir::Verify(kernel).ok());
        EXPECT_EQ(kernel.locals.size(), 1u) << body;
        EXPECT_TRUE(kernel.constant_data.empty()) << body;
    }
}

}  // namespace
}  // namespace fornax::kernel
