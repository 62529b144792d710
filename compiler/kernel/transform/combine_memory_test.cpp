// Neighbouring loads and stores become one run, and what keeps them apart: exact text.
#include <gtest/gtest.h>

#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/ir/verify.h"
#include "compiler/kernel/transform/pass_test_util.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {
namespace {

constexpr char kPrologue[] = R"(
    %z:i32 = const 0
    %four:i32 = const 4
    %eight:i32 = const 8
    %twelve:i32 = const 12
    %i:i32 = builtin local_id_x
    %a:i32 = imul %i, %eight
    %b:i32 = iadd %a, %four
    %c:i32 = iadd %a, %eight
    %d:i32 = iadd %a, %twelve
    %o:buffer = buffer 0, %z
    %p:buffer = buffer 1, %z
    %x:f32 = load_push %z align(4)
    %y:f32 = load_push %four align(4)
)";

void Expect(const std::string& in, const std::string& out) {
    ir::Kernel kernel = Parsed(KernelText("", kPrologue + in));
    CombineMemoryAccesses(kernel);
    Simplify(kernel);
    ASSERT_TRUE(ir::Verify(kernel).ok()) << ir::PrintKernel(kernel);
    ir::Kernel expected = Parsed(KernelText("", kPrologue + out));
    Simplify(expected);
    EXPECT_EQ(ir::PrintKernel(kernel), ir::PrintKernel(expected)) << in;
}
void ExpectUnchanged(const std::string& body) {
    Expect(body, body);
}

TEST(CombineMemory, LoadsInAnyOrderBecomeARunAtTheFirst) {
    Expect(R"(
        %v:f32 = load_buffer %o, %c align(4)
        %s:f32 = exp %v
        %u:f32 = load_buffer %o, %a align(8)
        %w:f32 = load_buffer %o, %b align(4)
        %t:f32 = fsub %u, %w
        store_buffer %p, %a, %s align(4)
        store_buffer %p, %z, %t align(4) return)",
           R"(
        %u:f32, %w:f32, %v:f32 = load_buffer %o, %a align(8)
        %s:f32 = exp %v
        %t:f32 = fsub %u, %w
        store_buffer %p, %a, %s align(4)
        store_buffer %p, %z, %t align(4) return)");
}

// The second load reads what was stored, which the first one's neighbourhood does not show.
TEST(CombineMemory, LoadsDoNotPassAStoreThatTheyRead) {
    ExpectUnchanged(R"(
        %u:f32 = load_buffer %o, %b align(4)
        store_buffer %o, %a, %u align(4)
        %v:f32 = load_buffer %o, %a align(4)
        store_buffer %p, %a, %v align(4) return)");
    // Behind it, loads join again, and others still join those before it.
    Expect(R"(
        %u:f32 = load_buffer %o, %b align(4)
        store_buffer %o, %a, %x align(4)
        %w:f32 = load_buffer %o, %c align(4)
        %v:f32 = load_buffer %o, %a align(4)
        %t:f32 = load_buffer %o, %b align(4)
        store_buffer %p, %a, %u, %v align(4)
        store_buffer %p, %c, %w, %t align(4) return)",
           R"(
        %u:f32, %w:f32 = load_buffer %o, %b align(4)
        store_buffer %o, %a, %x align(4)
        %v:f32, %t:f32 = load_buffer %o, %a align(4)
        store_buffer %p, %a, %u, %v, %w, %t align(4) return)");
}

TEST(CombineMemory, RunsJoinRunsAndConstantOffsets) {
    Expect(R"(
        %v:f32, %w:f32 = load_shared %z align(4)
        %u:f32, %t:f32 = load_shared %eight align(8)
        store_shared %z, %w, %u align(4)
        %q:i32 = const 8
        store_shared %q, %t, %v align(4) return)",
           R"(
        %v:f32, %w:f32, %u:f32, %t:f32 = load_shared %z align(8)
        store_shared %z, %w, %u, %t, %v align(4) return)");
}

TEST(CombineMemory, StoresStandWhereTheLastOneDid) {
    Expect(R"(
        store_buffer %o, %b, %x align(4)
        store_buffer %o, %a, %y align(4)
        %v:f32 = load_shared %a align(4)
        store_buffer %o, %c, %v align(4)
        return)",
           R"(
        %v:f32 = load_shared %a align(4)
        store_buffer %o, %a, %y, %x, %v align(4)
        return)");
}

TEST(CombineMemory, AliasingAccessesKeepThemApart) {
    // A store to another binding may change what is loaded.
    ExpectUnchanged(R"(
        %u:f32 = load_buffer %o, %a align(4)
        store_buffer %p, %a, %u align(4)
        %w:f32 = load_buffer %o, %b align(4)
        store_buffer %p, %c, %w align(4)
        return)");
    // A load from another place may see the first store.
    ExpectUnchanged(R"(
        store_buffer %o, %a, %x align(4)
        %v:f32 = load_buffer %o, %i align(4)
        store_buffer %o, %b, %v align(4)
        return)");
    // The same place twice: the later store wins.
    ExpectUnchanged(R"(
        store_buffer %o, %a, %x align(4)
        store_buffer %o, %i, %y align(4)
        store_buffer %o, %b, %y align(4)
        return)");
    for (const char* between :
         {"barrier", "memory_barrier", "%old:i32 = atomic_buffer add, %p, %z, %i",
          "%f:f32 = load_buffer %p, %i align(4) volatile"}) {
        ExpectUnchanged("%u:f32 = load_buffer %o, %a align(4)\n" + std::string(between) +
                        "\n%w:f32 = load_buffer %o, %b align(4)\n"
                        "%r:f32 = fadd %u, %w store_buffer %p, %a, %r align(4) return");
    }
}

TEST(CombineMemory, DisjointAccessesOfOnePlaceDoNot) {
    Expect(R"(
        %u:f32 = load_buffer %o, %a align(4)
        store_buffer %o, %c, %u align(4)
        %w:f32 = load_buffer %o, %b align(4)
        store_buffer %o, %d, %w align(4)
        return)",
           R"(
        %u:f32, %w:f32 = load_buffer %o, %a align(4)
        store_buffer %o, %c, %u, %w align(4)
        return)");
}

TEST(CombineMemory, TypesAndGapsKeepThemApart) {
    ExpectUnchanged(R"(
        %u:f32 = load_buffer %o, %a align(4)
        %w:i32 = load_buffer %o, %b align(4)
        %g:f32 = load_buffer %o, %c align(4)
        %s:f32 = fadd %u, %g
        store_buffer %p, %a, %s align(4)
        store_buffer %p, %b, %w align(4)
        return)");
}

TEST(CombineMemory, LongRunsAreCut) {
    std::string in = kPrologue;
    for (int i = 0; i < 40; ++i) {
        std::string n = std::to_string(i);
        in += "%k" + n + ":i32 = const " + std::to_string(i * 4) + "\n%v" + n +
              ":f32 = load_buffer %o, %k" + n + " align(4)\n";
    }
    for (int i = 0; i < 40; ++i) {
        in += "store_shared %a, %v" + std::to_string(i) + " align(4)\n";
    }
    ir::Kernel kernel = Parsed(KernelText("", in + "return\n"));
    CombineMemoryAccesses(kernel);
    ASSERT_TRUE(ir::Verify(kernel).ok());
    std::vector<size_t> runs;
    for (ir::InstId id : kernel.block(kernel.body).insts) {
        if (kernel.inst(id).op == ir::Op::kLoadBuffer) {
            runs.push_back(kernel.inst(id).results.size());
        }
    }
    EXPECT_EQ(runs, (std::vector<size_t>{16, 16, 8}));
}

}  // namespace
}  // namespace fornax::kernel
