// Small private arrays with an index that is known at run time only: exact text before and after.
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
    %o:buffer = buffer 0, %z
)";

TEST(SelectElements, LoadsChoose) {
    ir::Kernel kernel = Parsed(KernelText("local 0: i32[3]\n", std::string(kPrologue) + R"(
        %k:i32 = load_buffer %o, %z align(4)
        store_local 0, %z, %k
        store_local 0, %one, %i
        store_local 0, %two, %two
        %v:i32 = load_local 0, %i
        store_buffer %o, %z, %v align(4)
        return)"));
    EXPECT_TRUE(SelectElements(kernel));
    ASSERT_TRUE(ir::Verify(kernel).ok()) << ir::PrintKernel(kernel);
    PromoteLocals(kernel);
    Simplify(kernel);
    ir::Kernel expected = Parsed(KernelText("local 0: i32[3]\n", R"(
        %z:i32 = const 0
        %two:i32 = const 2
        %one:i32 = const 1
        %i:i32 = builtin local_id_x
        %o:buffer = buffer 0, %z
        %k:i32 = load_buffer %o, %z align(4)
        %a:bool = ieq %i, %one
        %b:i32 = select %a, %i, %k
        %c:bool = ieq %i, %two
        %v:i32 = select %c, %two, %b
        store_buffer %o, %z, %v align(4)
        return)"));
    PromoteLocals(expected);
    Simplify(expected);
    EXPECT_EQ(ir::PrintKernel(kernel), ir::PrintKernel(expected));
}

TEST(SelectElements, OthersStayInMemory) {
    const std::pair<const char*, const char*> kOthers[] = {
        // long
        {"local 0: i32[5]\n", "store_local 0, %z, %i %v:i32 = load_local 0, %i "},
        // stored to where nobody knows
        {"local 0: i32[3]\n", "store_local 0, %i, %i %v:i32 = load_local 0, %i "},
        // known already
        {"local 0: i32[3]\n", "store_local 0, %z, %i %v:i32 = load_local 0, %two "},
    };
    for (const auto& [locals, code] : kOthers) {
        ir::Kernel kernel = Parsed(KernelText(
            locals, std::string(kPrologue) + code + "store_buffer %o, %z, %v align(4) return"));
        const std::string before = ir::PrintKernel(kernel);
        EXPECT_FALSE(SelectElements(kernel)) << code;
        EXPECT_EQ(ir::PrintKernel(kernel), before);
    }
}

}  // namespace
}  // namespace fornax::kernel
