// Loops that carry values and run a known number of times take several iterations at once.
#include <gtest/gtest.h>

#include "compiler/kernel/interpret/interpret.h"
#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/ir/verify.h"
#include "compiler/kernel/transform/pass_test_util.h"
#include "compiler/kernel/transform/passes.h"
#include "compiler/kernel/transform/structure.h"

namespace fornax::kernel {
namespace {

// `iterations` iterations; each adds to two sums what it reads at its number, and hands them on to
// the continuing block, which changes one of them once more by the old and the new number.
std::string Loop(int iterations, const std::string& inside = "") {
    return R"(
    %z:i32 = const 0
    %one:i32 = const 1
    %three:i32 = const 3
    %four:i32 = const 4
    %iterations:i32 = const )" +
           std::to_string(iterations) + R"(
    %in:buffer = buffer 0, %z
    %out:buffer = buffer 1, %z
    %r0:i32, %r1:i32 = loop @0 (%n:i32 = %z, %s0:i32 = %one, %s1:i32 = %three) {
      %more:bool = ult %n, %iterations
      if %more {
        yield
      } else {
        exit @0 %s0, %s1
      }
      %at:i32 = imul %n, %four
      %v:i32 = load_buffer %in, %at align(4)
      %t:i32 = imul %s0, %three
      %e0:i32 = iadd %t, %v
      %e1:i32 = xor %s1, %e0
)" + inside +
           R"(
      continue @0 %e0, %e1
    } continuing (%c0:i32, %c1:i32) {
      %m:i32 = iadd %n, %one
      %k:i32 = iadd %n, %m
      %d:i32 = iadd %c1, %k
      next %m, %c0, %d
    }
    store_buffer %out, %z, %r0 align(4)
    store_buffer %out, %four, %r1 align(4)
    return
)";
}

// Tests of the loop's end in the text, after the pass.
size_t CountLoads(const ir::Kernel& kernel) {
    size_t loads = 0;
    for (ir::InstId id : Structure(kernel).preorder) {
        loads += kernel.inst(id).op == ir::Op::kLoadBuffer;
    }
    return loads;
}

size_t LoadsAfter(const std::string& text, uint32_t least_carried) {
    ir::Kernel kernel = Parsed(KernelText("", text));
    if (UnrollPartly(kernel, least_carried)) {
        Simplify(kernel);
    }
    Status status = ir::Verify(kernel);
    EXPECT_TRUE(status.ok()) << status.error().message << "\n" << ir::PrintKernel(kernel);
    return CountLoads(kernel);
}

TEST(UnrollPartly, IterationsInGroups) {
    EXPECT_EQ(LoadsAfter(Loop(16), 1), 4u);
    EXPECT_EQ(LoadsAfter(Loop(10), 1), 2u);  // four do not divide ten
    EXPECT_EQ(LoadsAfter(Loop(9), 1), 1u);
    EXPECT_EQ(LoadsAfter(Loop(4), 1), 1u);    // too few
    EXPECT_EQ(LoadsAfter(Loop(400), 1), 1u);  // too many to count
    EXPECT_EQ(LoadsAfter(Loop(16), 3), 1u);   // it carries too little
}

TEST(UnrollPartly, BarriersAndBranchesStay) {
    EXPECT_EQ(LoadsAfter(Loop(16, "barrier\n"), 1), 1u);
    EXPECT_EQ(LoadsAfter(Loop(16, "%b:bool = ult %v, %four if %b { yield } else { yield }\n"), 1),
              1u);
}

TEST(UnrollPartly, ComputesTheSame) {
    for (int iterations : {8, 12, 16, 18, 64}) {
        ir::Kernel kernel = Parsed(KernelText("", Loop(iterations)));
        std::vector<uint32_t> in(64);
        for (uint32_t i = 0; i < 64; ++i) {
            in[i] = i * 2654435761u;
        }
        std::vector<std::vector<uint32_t>> outs;
        for (bool unrolled : {false, true}) {
            if (unrolled) {
                EXPECT_TRUE(UnrollPartly(kernel, 1));
            }
            std::vector<uint32_t> out(2);
            const hal::BufferDescriptor set[] = {{reinterpret_cast<uint64_t>(in.data()), 256},
                                                 {reinterpret_cast<uint64_t>(out.data()), 8}};
            const void* sets[] = {set};
            uint32_t push[16] = {};
            hal::DispatchFrame frame = {};
            frame.descriptor_sets = sets;
            frame.push_constants = push;
            for (uint32_t& count : frame.workgroup_count) {
                count = 1;
            }
            ASSERT_TRUE(Interpret(kernel, frame, 0, 1, InterpretLimits{.steps = 100'000}).ok());
            outs.push_back(out);
        }
        EXPECT_EQ(outs[0], outs[1]) << iterations;
        EXPECT_NE(outs[0][0], 0u);
    }
}

}  // namespace
}  // namespace fornax::kernel
