// Branches that hold a barrier and may go different ways: exact text, and what such kernels give.
#include <gtest/gtest.h>

#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/ir/verify.h"
#include "compiler/kernel/transform/pass_test_util.h"
#include "compiler/kernel/transform/passes.h"
#include "hal/device.h"

namespace fornax::kernel {
namespace {

void Split(ir::Kernel& kernel) {
    SplitBarrierBranches(kernel);
}

constexpr char kPrologue[] = R"(
    %z:i32 = const 0
    %i:i32 = builtin local_id_x
    %p:i32 = load_push %z align(4)
    %mine:bool = ieq %i, %p
    %ours:bool = ieq %z, %p
    %o:buffer = buffer 0, %z
)";

void Expect(const std::string& in, const std::string& out) {
    ExpectPass(Split, "", kPrologue + in, "", kPrologue + out);
}

TEST(BarrierBranches, ABranchThatMayGoDifferentWaysIsSplit) {
    ir::Kernel kernel = Parsed(KernelText("", std::string(kPrologue) + R"(
        %r:i32 = if %mine {
            if %ours { barrier store_shared %z, %i align(4) yield } else { yield }
            yield %i
        } else { yield %z }
        store_buffer %o, %z, %r align(4)
        return)"));
    SplitBarrierBranches(kernel);
    Status status = ir::Verify(kernel);
    ASSERT_TRUE(status.ok()) << status.error().message;
    // The value and the mark stand behind the 256 bytes of the kernel's own workgroup memory.
    EXPECT_EQ(kernel.shared_bytes, 272u);
    ir::Kernel expected = Parsed(KernelText("", std::string(kPrologue) + R"(
        %one:i32 = const 1
        %zero:i32 = const 0
        %value:i32 = const 256
        %mark:i32 = const 264
        %v:i32 = select %mine, %one, %zero
        store_shared %value, %v align(8) vote
        barrier vote
        %w:i32 = load_shared %value align(8) vote
        store_shared %mark, %zero align(8) vote
        barrier vote
        %differs:bool = ine %w, %v
        if vote %differs { store_shared %mark, %one align(8) vote yield } else { yield }
        barrier vote
        %marked:i32 = load_shared %mark align(8) vote
        %same:bool = ieq %marked, %zero
        %first:bool = ine %w, %zero
        %r:i32 = if %same {
            %a:i32 = if %first {
                if %ours { barrier store_shared %z, %i align(4) yield } else { yield }
                yield %i
            } else { yield %z }
            yield %a
        } else {
            %b:i32 = if %mine {
                if %ours { memory_barrier store_shared %z, %i align(4) yield } else { yield }
                yield %i
            } else { yield %z }
            yield %b
        }
        store_buffer %o, %z, %r align(4)
        return)"));
    expected.shared_bytes = 272;
    Simplify(kernel);
    Simplify(expected);
    EXPECT_EQ(ir::PrintKernel(kernel), ir::PrintKernel(expected));
}

// A program may have all workgroup memory there is for programs; the compiler's is behind it.
TEST(BarrierBranches, ABranchIsSplitWhereTheProgramHasAllWorkgroupMemory) {
    ir::Kernel kernel = Parsed(KernelText("", std::string(kPrologue) + R"(
        if %mine {
            if %ours { barrier store_shared %z, %i align(4) yield } else { yield }
            yield
        } else { yield }
        return)"));
    kernel.shared_bytes = hal::kMaxProgramSharedBytes;
    SplitBarrierBranches(kernel);
    const Status status = ir::Verify(kernel);
    ASSERT_TRUE(status.ok()) << status.error().message;
    EXPECT_EQ(kernel.shared_bytes, hal::kMaxProgramSharedBytes + 16);
    EXPECT_LE(kernel.shared_bytes, hal::kMaxSharedBytes);
}

// Who returned is left out and counts as arrived. A way that is taken together stays, and one
// behind which something happens.
TEST(BarrierBranches, WaysToTheEndOfTheKernelAreReturns) {
    const char kBody[] = R"(
        %r:i32 = scope @0 {
            if %ours { exit @0 %z } else { yield }
            scope @1 {
                if %mine { LEAVE } else { yield }
                barrier
                store_shared %z, %i align(4)
                yield
            }
            yield %i
        }
        REST
        return)";
    auto body = [&](const std::string& leave, const std::string& rest) {
        std::string text = kBody;
        text.replace(text.find("LEAVE"), 5, leave);
        return text.replace(text.find("REST"), 4, rest);
    };
    for (const char* way : {"exit @1", "exit @0 %z"}) {
        Expect(body(way, ""), body("return", ""));
    }
    Expect(body("exit @1", "%s:i32 = iadd %r, %i"), body("return", "%s:i32 = iadd %r, %i"));
    const std::string stays = body("exit @1", "store_buffer %o, %z, %r align(4)");
    Expect(stays, stays);
}

TEST(BarrierBranches, OthersStay) {
    const std::string kBody = R"(
        if %ours { barrier yield } else { yield }
        if %mine { store_shared %z, %i align(4) yield } else { yield }
        loop @0 () {
            if %mine { barrier exit @0 } else { yield }
            continue @0
        } continuing () { next }
        return)";
    Expect(kBody, kBody);
}

}  // namespace
}  // namespace fornax::kernel
