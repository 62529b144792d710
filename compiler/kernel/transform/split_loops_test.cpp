// Loops that carry many independent values become several loops, and no others do.
#include <gtest/gtest.h>

#include <array>

#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/ir/verify.h"
#include "compiler/kernel/transform/pass_test_util.h"
#include "compiler/kernel/transform/passes.h"
#include "compiler/kernel/transform/structure.h"

namespace fornax::kernel {
namespace {

// A loop of eight iterations with four sums of what it reads; `step` makes the next ones %e0 to %e3
// from %s0 to %s3 and the values read %a and %b.
std::string Loop(const std::string& step) {
    return R"(
    %z:i32 = const 0
    %one:i32 = const 1
    %eight:i32 = const 8
    %f:f32 = const 0.0
    %i:i32 = builtin local_id_x
    %o:buffer = buffer 0, %z
    %r0:f32, %r1:f32, %r2:f32, %r3:f32 = loop @0 (%n:i32 = %z, %s0:f32 = %f, %s1:f32 = %f, %s2:f32 = %f, %s3:f32 = %f) {
      %more:bool = ult %n, %eight
      if %more {
        yield
      } else {
        exit @0 %s0, %s1, %s2, %s3
      }
      %four:i32 = const 4
      %at:i32 = imul %n, %four
      %a:f32 = load_shared %at align(4)
      %bt:i32 = iadd %at, %i
      %b0:i32 = imul %bt, %four
      %b:f32 = load_shared %b0 align(4)
)" + step + R"(
      continue @0 %e0, %e1, %e2, %e3
    } continuing (%c0:f32, %c1:f32, %c2:f32, %c3:f32) {
      %m:i32 = iadd %n, %one
      next %m, %c0, %c1, %c2, %c3
    }
    %k0:i32 = const 0
    %k4:i32 = const 4
    %k8:i32 = const 8
    %k12:i32 = const 12
    store_buffer %o, %k0, %r0 align(4)
    store_buffer %o, %k4, %r1 align(4)
    store_buffer %o, %k8, %r2 align(4)
    store_buffer %o, %k12, %r3 align(4)
    return
)";
}

// Four operations for each sum, so that what all of them share counts little.
std::string Step(const std::array<int, 4>& from) {
    std::string text;
    for (int i = 0; i < 4; ++i) {
        const std::string n = std::to_string(i);
        text += "%t" + n + ":f32 = fadd %s" + std::to_string(from[static_cast<size_t>(i)]) +
                ", %a\n%u" + n + ":f32 = fmul %t" + n + ", %a\n%v" + n + ":f32 = fadd %u" + n +
                ", %b\n%e" + n + ":f32 = fmul %v" + n + ", %b\n";
    }
    return text;
}

const std::string kIndependent = Step({0, 1, 2, 3});

struct LoopFacts {
    size_t loops = 0;
    std::vector<size_t> carried;
    size_t counts = 0;  // instructions that count
};

LoopFacts Split(const std::string& step, uint32_t registers) {
    ir::Kernel kernel = Parsed(KernelText("", Loop(step)));
    if (SplitLoops(kernel, registers)) {
        Simplify(kernel);
    }
    Status status = ir::Verify(kernel);
    EXPECT_TRUE(status.ok()) << status.error().message << "\n" << ir::PrintKernel(kernel);
    LoopFacts facts;
    for (ir::InstId id : Structure(kernel).preorder) {
        const ir::Instruction& inst = kernel.inst(id);
        facts.counts += inst.op == ir::Op::kCount ? 1 : 0;
        if (inst.op != ir::Op::kLoop) {
            continue;
        }
        ++facts.loops;
        facts.carried.push_back(kernel.block(inst.blocks[0]).params.size());
    }
    return facts;
}

TEST(SplitLoops, IndependentSumsInHalves) {
    const LoopFacts facts = Split(kIndependent, 4);
    EXPECT_EQ(facts.loops, 2u);
    // Two sums and the counter each.
    EXPECT_EQ(facts.carried, (std::vector<size_t>{3, 3}));
}

// Iterations that are run in two parts are counted in one.
TEST(SplitLoops, CountsStayExact) {
    const LoopFacts facts = Split(kIndependent + "count 0\n", 4);
    EXPECT_EQ(facts.loops, 2u);
    EXPECT_EQ(facts.counts, 1u);
}

TEST(SplitLoops, ValuesThatFitStayTogether) {
    EXPECT_EQ(Split(kIndependent, 16).loops, 1u);
}

TEST(SplitLoops, SumsThatNeedEachOtherStayTogether) {
    EXPECT_EQ(Split(Step({1, 0, 3, 2}), 4).carried, (std::vector<size_t>{3, 3}));
    EXPECT_EQ(Split(Step({1, 2, 3, 0}), 4).loops, 1u);
}

TEST(SplitLoops, LoopsThatWriteStayWhole) {
    EXPECT_EQ(Split(kIndependent + "store_shared %b0, %a align(4)\n", 4).loops, 1u);
    EXPECT_EQ(Split(kIndependent + "barrier\n", 4).loops, 1u);
}

TEST(SplitLoops, ManySharedOperationsAreNotDoubled) {
    std::string step = "%q0:f32 = fmul %a, %b\n";
    for (int i = 0; i < 30; ++i) {
        step += "%q" + std::to_string(i + 1) + ":f32 = fadd %q" + std::to_string(i) + ", %a\n";
    }
    step += R"(
      %e0:f32 = fadd %s0, %q30
      %e1:f32 = fsub %s1, %q30
      %e2:f32 = fmul %s2, %q30
      %e3:f32 = fdiv %s3, %q30
)";
    EXPECT_EQ(Split(step, 4).loops, 1u);
}

}  // namespace
}  // namespace fornax::kernel
