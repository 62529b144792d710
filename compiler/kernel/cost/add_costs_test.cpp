// What regions of small kernels cost, as text; and that the counts are those of the interpreter.
#include "compiler/kernel/cost/add_costs.h"

#include <gtest/gtest.h>

#include "compiler/kernel/interpret/interpret.h"
#include "compiler/kernel/interpret/random_kernel.h"
#include "compiler/kernel/interpret/test_dispatch.h"
#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/ir/verify.h"
#include "compiler/kernel/transform/pass_test_util.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {
namespace {

// A workgroup of 16 x 4. %i counts invocations along x, %a and %b are buffers, %n is a size.
ir::Kernel KernelOf(const std::string& body) {
    return Parsed(
        "kernel \"k\" workgroup_size(16, 4, 1) subgroup_size(32) shared(4096) push_constants(16) "
        "{\n"
        "binding 0: storage_buffer set(0) binding(0) count(1) offset(0)\n"
        "binding 1: storage_buffer set(0) binding(1) count(1) offset(16)\n"
        "body {\n"
        "%c0:i32 = const 0 %c1:i32 = const 1 %c2:i32 = const 2 %c4:i32 = const 4\n"
        "%c10:i32 = const 10 %c16:i32 = const 16\n"
        "%x:i32 = builtin local_id_x %y:i32 = builtin local_id_y\n"
        "%group:i32 = builtin workgroup_id_x\n"
        "%g:i32 = imul %group, %c16 %i:i32 = iadd %g, %x\n"
        "%n:i32 = load_push %c0 align(4)\n"
        "%a:buffer = buffer 0, %c0 %b:buffer = buffer 1, %c0\n"
        "%i4:i32 = shl %i, %c2 %n4:i32 = shl %n, %c2\n" +
        body + "\n}\n}\n");
}

std::string CostOf(const std::string& body) {
    ir::Kernel kernel = KernelOf(body);
    const KernelCost cost = AddCosts(kernel);
    const Status status = ir::Verify(kernel);
    EXPECT_TRUE(status.ok()) << status.error().message;
    const std::string text = CostText(cost);
    return text.substr(0, text.find("scalar:"));
}

// Rows' addresses and conditions that a workgroup has once; not those of lanes.
TEST(AddCosts, WhatIsOneForTheWorkgroupIsTheScalarUnits) {
    ir::Kernel kernel = KernelOf(
        "%row:i32 = imul %group, %n %row4:i32 = shl %row, %c2 %x4:i32 = shl %x, %c2\n"
        "%o:i32 = iadd %row4, %x4 %v:f32 = load_buffer %a, %o align(4)\n"
        "%in:bool = ult %group, %n if %in { %k:i32 = imul %n, %n4 %k4:i32 = shl %k, %c2\n"
        "store_buffer %b, %k4, %v align(4) yield } else { return }\n"
        "return");
    const std::string text = CostText(AddCosts(kernel));
    EXPECT_EQ(text.substr(text.find("scalar:")),
              "scalar:\n"
              "  2 of c0\n"
              "  5 of invocations\n");
}

TEST(AddCosts, ElementsAreStreamsAndAddressesCostNothing) {
    EXPECT_EQ(CostOf("%r:i32 = imul %y, %n4 %o:i32 = iadd %r, %i4\n"
                     "%v:f32 = load_buffer %a, %o align(4) %w:f32 = exp %v\n"
                     "%s:f32 = fadd %v, %w %q:f32 = fdiv %s, %v\n"
                     "store_buffer %b, %o, %q align(4) return"),
              "invocations:\n"
              "  operations 1 simple, 1 division, 1 special, 32 bits\n"
              "  read stream 4\n"
              "  write stream 4\n");
}

// Each instruction with a line counts on it; buffers are those of the descriptor sets.
TEST(AddCosts, LinesAndBuffersAreKept) {
    ir::Kernel kernel = KernelOf(
        "%v:f32 = load_buffer %a, %i4 align(4) %w:f32 = exp %v %s:f32 = fadd %v, %w\n"
        "store_buffer %b, %i4, %s align(4) return");
    for (uint32_t i = 0; i < kernel.num_insts(); ++i) {
        kernel.inst(ir::InstId{i}).origin = 100 + i;
    }
    std::map<uint32_t, std::string> lines;
    for (uint32_t i = 0; i < kernel.num_insts(); ++i) {
        const ir::Op op = kernel.inst(ir::InstId{i}).op;
        lines[100 + i] = op == ir::Op::kExp          ? "k.comp:7"
                         : op == ir::Op::kFAdd       ? "k.comp:8"
                         : op == ir::Op::kLoadBuffer ? "k.comp:6"
                                                     : "";
    }
    const KernelCost cost = AddCosts(kernel, [&](uint32_t word) { return lines.at(word); });
    EXPECT_EQ(cost.buffers, (std::vector<CostBuffer>{{.set = 0, .offset_bytes = 0},
                                                     {.set = 0, .offset_bytes = 16}}));
    EXPECT_EQ(cost.sources, (std::vector<std::string>{"k.comp:6", "k.comp:7", "k.comp:8"}));
    ASSERT_EQ(cost.regions.size(), 1u);
    const CostRegion& region = cost.regions[0];
    ASSERT_EQ(region.accesses.size(), 2u);
    EXPECT_EQ(region.accesses[0].buffer, 0u);
    EXPECT_EQ(region.accesses[0].source, 0u);
    EXPECT_EQ(region.accesses[1].buffer, 1u);
    EXPECT_EQ(region.accesses[1].source, kNone);
    EXPECT_EQ(region.lines.at(1).operations.special, 1u);
    EXPECT_EQ(region.lines.at(2).operations.simple, 1u);
}

TEST(AddCosts, KindsOfAccessesFollowFromOffsets) {
    // The same for all, for a row, for a column; rows of a symbolic stride; by data.
    EXPECT_EQ(CostOf("%v:f32 = load_buffer %a, %c0 align(4)\n"
                     "%t:i32 = iadd %group, %y %t4:i32 = shl %t, %c2\n"
                     "%w:f32 = load_buffer %a, %t4 align(4)\n"
                     "%z:f32 = load_buffer %a, %i4 align(4)\n"
                     "%m:i32 = imul %i, %n4 %my:i32 = iadd %m, %y\n"
                     "%p:f32 = load_buffer %a, %my align(4)\n"
                     "%d:i32 = load_buffer %b, %i4 align(4) %d4:i32 = shl %d, %c2\n"
                     "%e:f32 = load_buffer %a, %d4 align(4)\n"
                     "%s:f32 = fadd %v, %w %s2:f32 = fadd %s, %z\n"
                     "%s3:f32 = fadd %p, %e %s4:f32 = fadd %s2, %s3\n"
                     "%f:i32 = atomic_buffer add, %b, %d4, %c1\n"
                     "store_buffer %a, %d4, %s4 align(4) return"),
              "invocations:\n"
              "  operations 4 simple, 0 division, 0 special, 32 bits\n"
              "  read broadcast 4/64 once\n"
              "  read reuse 4/16\n"
              "  read reuse 4/4\n"
              "  read gather 4 by 4\n"
              "  read reuse 4/4\n"
              "  read gather 4 by 4\n"
              "  write atomic 4 by 4\n"
              "  write scatter 4 by 4\n");
}

// What a branch gives is one for the workgroup if its condition is.
TEST(AddCosts, UniformResultsOfBranchesKeepStreams) {
    EXPECT_EQ(CostOf("%c:bool = ult %group, %n\n"
                     "%row:i32 = if %c { yield %n4 } else { yield %c4 }\n"
                     "%o:i32 = iadd %row, %i4 %v:f32 = load_buffer %a, %o align(4)\n"
                     "store_buffer %b, %i4, %v align(4) return"),
              "invocations:\n"
              "  read reuse 4/4\n"
              "  write reuse 4/4\n");
}

// Blocks of 18 bytes with 16 of weights, found through a division by a size of the kernel's: rows
// of blocks are streams.
TEST(AddCosts, BlocksAreStreams) {
    EXPECT_EQ(CostOf("%c18:i32 = const 18 %c5:i32 = const 5 %c15:i32 = const 15\n"
                     "%r:i32 = imul %y, %n %t:i32 = iadd %r, %x %q:i32 = lshr %t, %c4\n"
                     "%p:i32 = imul %q, %c18 %l:i32 = and %t, %c15 %o:i32 = iadd %p, %l\n"
                     "%o2:i32 = iadd %o, %c2 %v:i8 = load_buffer %a, %o2 align(1)\n"
                     "%w:i32 = zext %v store_buffer %b, %i4, %w align(4) return"),
              "invocations:\n"
              "  operations 1 simple, 0 division, 0 special, 32 bits\n"
              "  read broadcast 1 once\n"
              "  write reuse 4/4\n");
}

// A place that workgroups draw from an atomic is another one for each.
// Somebody hostile divides sums of quotients again: each is looked at once.
TEST(AddCosts, OffsetsOfDeepDivisionsAreBounded) {
    std::string body = "%v0:i32 = load_buffer %a, %i4 align(4)\n";
    const int divisors[] = {3, 5, 7, 11, 13, 17, 19, 23, 29, 31};
    for (int divisor : divisors) {
        body += "%d" + std::to_string(divisor) + ":i32 = const " + std::to_string(divisor) + "\n";
    }
    for (int level = 0; level < 11; ++level) {
        const std::string in = "%v" + std::to_string(level);
        std::string sum = "%c0";
        for (int divisor : divisors) {
            const std::string name = divisor == divisors[9]
                                         ? std::to_string(level + 1)
                                         : std::to_string(level) + "_" + std::to_string(divisor);
            body += "%q" + name + ":i32 = udiv " + in + ", %d" + std::to_string(divisor) + "\n%v" +
                    name + ":i32 = iadd " + sum + ", %q" + name + "\n";
            sum = "%v" + name;
        }
    }
    EXPECT_NE(CostOf(body + "%w:f32 = load_buffer %a, %v11 align(4)\n"
                            "store_buffer %b, %i4, %w align(4) return"),
              "");
}

TEST(AddCosts, WhatWorkgroupsDrawIsNoBroadcast) {
    EXPECT_EQ(CostOf("%t:i32 = load_shared %c0 align(4) %r:i32 = shl %t, %c10\n"
                     "%x4:i32 = shl %x, %c2 %o:i32 = iadd %r, %x4\n"
                     "%v:f32 = load_buffer %a, %o align(4)\n"
                     "store_buffer %b, %i4, %v align(4) return"),
              "invocations:\n"
              "  read reuse 4/4\n"
              "  write reuse 4/4\n"
              "  workgroup memory 4, stride 1\n");
}

// A transpose: the lanes are rows apart, and the workgroup's other dimension fills each row's
// bursts.
TEST(AddCosts, TheOtherDimensionOfAWorkgroupFillsBursts) {
    EXPECT_EQ(CostOf("%r:i32 = imul %x, %n4 %y4:i32 = shl %y, %c2 %o:i32 = iadd %r, %y4\n"
                     "%v:f32 = load_buffer %a, %i4 align(4)\n"
                     "store_buffer %b, %o, %v align(4) return"),
              "invocations:\n"
              "  read reuse 4/4\n"
              "  write scatter 4 by 4\n");
    // Four invocations that store 16 bytes each fill a burst.
    EXPECT_EQ(CostOf("%r:i32 = imul %x, %n4 %y16:i32 = shl %y, %c4 %o:i32 = iadd %r, %y16\n"
                     "%v:f32 = load_buffer %a, %i4 align(4)\n"
                     "store_buffer %b, %o, %v, %v, %v, %v align(4) return"),
              "invocations:\n"
              "  read reuse 4/4\n"
              "  write stream 16 far in parts\n");
}

// The lanes of a subgroup run a loop by themselves, so that what follows is not what lies behind
// their bytes; at a barrier all wait for each other.
TEST(AddCosts, LoopsThatLeapReadBurstsApart) {
    const auto loop = [](const std::string& step, const std::string& more) {
        return "%zero:f32 = const 0 %c64:i32 = const 64 %c1024:i32 = const 1024\n"
               "%sum:f32 = loop @0 (%k:i32 = %i4, %acc:f32 = %zero) {\n"
               "  %more:bool = ult %k, %n if %more { yield } else { exit @0 %acc }\n"
               "  %v:f32 = load_buffer %a, %k align(4) %s:f32 = fadd %acc, %v " +
               more +
               "  continue @0 %s\n"
               "} continuing (%t:f32) { %k1:i32 = iadd %k, " +
               step + " next %k1, %t }\nstore_buffer %b, %i4, %sum align(4) return";
    };
    EXPECT_NE(CostOf(loop("%c1024", "\n")).find("read reuse 4/4 apart\n"), std::string::npos);
    EXPECT_EQ(CostOf(loop("%c64", "\n")).find("apart"), std::string::npos);
    EXPECT_EQ(CostOf(loop("%c1024", "barrier\n")).find("apart"), std::string::npos);
}

TEST(AddCosts, NeighboursOfAStencilAreBroughtOnce) {
    EXPECT_EQ(CostOf("%r:i32 = imul %y, %n4 %o:i32 = iadd %r, %i4 %o1:i32 = iadd %o, %c4\n"
                     "%v:f32 = load_buffer %a, %o align(4) %w:f32 = load_buffer %a, %o1 align(4)\n"
                     "%s:f32 = fadd %v, %w store_buffer %b, %o, %s align(4) return"),
              "invocations:\n"
              "  operations 1 simple, 0 division, 0 special, 32 bits\n"
              "  read stream 4\n"
              "  write stream 4\n");
}

// The instructions of the body behind what all tests have, with counters.
std::string Counted(const std::string& body) {
    ir::Kernel kernel = KernelOf(body);
    AddCosts(kernel);
    const std::string text = ir::PrintKernel(kernel);
    std::string counted;
    size_t begin = 0;
    while (begin < text.size()) {
        const size_t end = text.find('\n', begin);
        const std::string line = text.substr(begin, end - begin);
        const size_t first = line.find_first_not_of(' ');
        for (const char* word : {"if", "} else", "loop", "} continuing", "count", "return", "exit",
                                 "continue", "next", "yield", "}", "switch", "case"}) {
            if (first != std::string::npos && line.substr(first).starts_with(word)) {
                counted += line.substr(first, line.find_first_of("%(", first) - first) + "\n";
                break;
            }
        }
        begin = end + 1;
    }
    return counted;
}

const char kGuard[] =
    "%in:bool = ult %i, %n if %in { yield } else { return }\n"
    "%v:f32 = load_buffer %a, %i4 align(4) store_buffer %b, %i4, %v align(4) return";

// A guard that returns: who stays is counted behind it, because code looks for sides that only
// leave.
TEST(AddCosts, GuardsAreCountedBehindThem) {
    EXPECT_EQ(CostOf(kGuard),
              "invocations:\n"
              "  operations 2 simple, 0 division, 0 special, 32 bits\n"
              "c0:\n"
              "  read reuse 4/4\n"
              "  write reuse 4/4\n");
    EXPECT_EQ(Counted(kGuard), "if \nyield\n} else {\nreturn\n}\ncount 0\nreturn\n}\n}\n");
}

std::string Loop(const std::string& bound, const std::string& body) {
    return "%zero:f32 = const 0\n"
           "%sum:f32 = loop @0 (%k:i32 = %c0, %acc:f32 = %zero) {\n"
           "  %more:bool = ult %k, " +
           bound +
           "\n"
           "  if %more { yield } else { exit @0 %acc }\n" +
           body +
           "  continue @0 %s\n"
           "} continuing (%t:f32) {\n"
           "  %k1:i32 = iadd %k, %c1 next %k1, %t\n"
           "}\n"
           "store_buffer %b, %i4, %sum align(4) return";
}

const char kColumn[] =
    "  %p:i32 = imul %k, %n4 %o:i32 = iadd %p, %i4\n"
    "  %v:f32 = load_buffer %a, %o align(4) %s:f32 = fadd %acc, %v\n";

TEST(AddCosts, LoopsOfConstantLengthNeedNoCounter) {
    EXPECT_EQ(CostOf(Loop("%c10", kColumn)),
              "10*invocations:\n"
              "  operations 1 simple, 0 division, 0 special, 32 bits\n"
              "  read reuse 4/4 apart\n"
              "invocations:\n"
              "  write reuse 4/4\n");
}

TEST(AddCosts, LoopsOfUnknownLengthCountWhoContinues) {
    EXPECT_EQ(CostOf(Loop("%n", kColumn)),
              "c0:\n"
              "  operations 1 simple, 0 division, 0 special, 32 bits\n"
              "  read reuse 4/4 apart\n"
              "invocations:\n"
              "  write reuse 4/4\n");
    EXPECT_EQ(Counted(Loop("%n", kColumn)),
              "if \nyield\n} else {\nexit @0 \n}\ncount 0\ncontinue @0 \n} continuing \nnext \n}\n"
              "return\n}\n}\n");
}

// What all iterations access alike is accessed once; rows stream though lanes are far apart.
TEST(AddCosts, LoopsAreLookedThrough) {
    EXPECT_EQ(CostOf(Loop("%n",
                          "  %r:i32 = imul %i, %n4 %k4:i32 = shl %k, %c2 %o:i32 = iadd %r, %k4\n"
                          "  %v:f32 = load_buffer %a, %o align(4)\n"
                          "  %w:f32 = load_buffer %b, %i4 align(4) %s:f32 = fma %v, %w, %acc\n")),
              "c0:\n"
              "  operations 0 simple, 1 multiply-add, 0 division, 0 special, 32 bits\n"
              "  read reuse 4/4\n"
              "invocations:\n"
              "  read reuse 4/4\n"
              "  write reuse 4/4\n");
}

// Blocks of 18 bytes a lane, of which an iteration reads one: the iterations together read each
// once.
TEST(AddCosts, WhatIterationsReadBetweenTheLanesIsBroughtOnce) {
    EXPECT_EQ(CostOf("%c18:i32 = const 18\n" +
                     Loop("%n",
                          "  %r:i32 = imul %i, %c18 %o:i32 = iadd %r, %k\n"
                          "  %h:i8 = load_buffer %a, %o align(1) %w:i32 = zext %h\n"
                          "  %v:f32 = utof %w %s:f32 = fadd %acc, %v\n")),
              "c0:\n"
              "  operations 3 simple, 0 division, 0 special, 32 bits\n"
              "  read reuse 1/4\n"
              "invocations:\n"
              "  write reuse 4/4\n");
}

// Loops that begin at each lane's own place and go on by a size that is not known, as ggml's
// products with vectors do: of elements, and of blocks of 18 bytes for 32 weights.
TEST(AddCosts, LoopsThatBeginAtEachLanesPlaceStream) {
    const std::string begin =
        "%c5:i32 = const 5 %c18:i32 = const 18\n"
        "%zero:f32 = const 0 %x8:i32 = shl %x, %c4\n"
        "%sum:f32 = loop @0 (%k:i32 = %x8, %acc:f32 = %zero) {\n"
        "  %more:bool = ult %k, %n\n"
        "  if %more { yield } else { exit @0 %acc }\n";
    const std::string end =
        "  continue @0 %s\n"
        "} continuing (%t:f32) {\n"
        "  %k1:i32 = iadd %k, %n4 next %k1, %t\n"
        "}\n"
        "store_buffer %b, %i4, %sum align(4) return";
    EXPECT_EQ(
        CostOf(begin + "  %v:f32 = load_buffer %a, %k align(4) %s:f32 = fadd %acc, %v\n" + end),
        "invocations:\n"
        "  operations 1 simple, 0 division, 0 special, 32 bits\n"
        "  write reuse 4/4\n"
        "invocations + c0:\n"
        "  operations 1 simple, 0 division, 0 special, 32 bits\n"
        "c0:\n"
        "  operations 2 simple, 0 division, 0 special, 32 bits\n"
        "  read broadcast 16/4 once\n");
    EXPECT_EQ(CostOf(begin +
                     "  %q:i32 = lshr %k, %c5 %o:i32 = imul %q, %c18\n"
                     "  %h:i16 = load_buffer %a, %o align(2) %w:i32 = zext %h\n"
                     "  %v:f32 = utof %w %s:f32 = fadd %acc, %v\n" +
                     end),
              "invocations:\n"
              "  operations 1 simple, 0 division, 0 special, 32 bits\n"
              "  write reuse 4/4\n"
              "invocations + c0:\n"
              "  operations 1 simple, 0 division, 0 special, 32 bits\n"
              "c0:\n"
              "  operations 4 simple, 0 division, 0 special, 32 bits\n"
              "  read broadcast 1/4 once\n");
}

TEST(AddCosts, BranchesCountOneSideUnlessBothAreShort) {
    const std::string test = "%c:bool = ult %x, %y\n";
    EXPECT_EQ(CostOf(test + "%v:f32 = if %c { %l:f32 = load_buffer %a, %i4 align(4) yield %l } "
                            "else { %m:f32 = stof %i yield %m }\n"
                            "store_buffer %b, %i4, %v align(4) return"),
              "invocations:\n"
              "  operations 2 simple, 0 division, 0 special, 32 bits\n"
              "  write reuse 4/4\n"
              "c0:\n"
              "  read reuse 4/4\n"
              "invocations - c0:\n"
              "  operations 1 simple, 0 division, 0 special, 32 bits\n");
    EXPECT_EQ(CostOf(test + "%v:f32 = if %c { %l:f32 = utof %i yield %l } "
                            "else { %m:f32 = stof %i yield %m }\n"
                            "store_buffer %b, %i4, %v align(4) return"),
              "invocations:\n"
              "  operations 4 simple, 0 division, 0 special, 32 bits\n"
              "  write reuse 4/4\n");
}

TEST(AddCosts, WorkgroupMemoryHasItsStrides) {
    EXPECT_EQ(CostOf("%x4:i32 = shl %x, %c2 %x64:i32 = imul %x4, %c16\n"
                     "%v:f32 = load_buffer %a, %i4 align(4) store_shared %x4, %v align(4)\n"
                     "barrier %w:f32 = load_shared %x64 align(4)\n"
                     "store_buffer %b, %i4, %w align(4) return"),
              "invocations:\n"
              "  read reuse 4/4\n"
              "  workgroup memory 4, stride 1\n"
              "  barriers 1\n"
              "invocations, pass 1:\n"
              "  write reuse 4/4\n"
              "  workgroup memory 4, stride 16\n");
}

// Those of a loop are passes of all of its iterations; neighbours of a burst are brought once,
// whatever barriers are between them.
TEST(AddCosts, BarriersDivideAKernelIntoPasses) {
    EXPECT_EQ(CostOf(Loop("%c10",
                          "  %p:i32 = imul %k, %n4 %o:i32 = iadd %p, %i4 %x4:i32 = shl %x, %c2\n"
                          "  %v:f32 = load_buffer %a, %o align(4) store_shared %x4, %v align(4)\n"
                          "  barrier %w:f32 = load_shared %x4 align(4) barrier\n"
                          "  %s:f32 = fadd %acc, %w\n")),
              "10*invocations:\n"
              "  read reuse 4/4\n"
              "  workgroup memory 4, stride 1\n"
              "  barriers 1\n"
              "10*invocations, pass 1:\n"
              "  workgroup memory 4, stride 1\n"
              "  barriers 1\n"
              "10*invocations, pass 2:\n"
              "  operations 1 simple, 0 division, 0 special, 32 bits\n"
              "invocations, pass 2:\n"
              "  write reuse 4/4\n");
    EXPECT_EQ(CostOf("%r:i32 = imul %y, %n4 %o:i32 = iadd %r, %i4 %o1:i32 = iadd %o, %c4\n"
                     "%v:f32 = load_buffer %a, %o align(4) barrier\n"
                     "%w:f32 = load_buffer %a, %o1 align(4)\n"
                     "%s:f32 = fadd %v, %w store_buffer %b, %o, %s align(4) return"),
              "invocations:\n"
              "  read stream 4\n"
              "  barriers 1\n"
              "invocations, pass 1:\n"
              "  operations 1 simple, 0 division, 0 special, 32 bits\n"
              "  write stream 4\n");
}

TEST(AddCosts, AtomicsOfWorkgroupMemoryAreSingleAccesses) {
    EXPECT_EQ(CostOf("%v:i32 = load_buffer %a, %i4 align(4) %o:i32 = shl %v, %c2\n"
                     "%w:i32 = atomic_shared add, %o, %c1 return"),
              "invocations:\n"
              "  read reuse 4/4\n"
              "  workgroup memory, 1 atomics\n");
}

// Who comes to a block, counted by brute force.
TEST(AddCosts, CountsAreTheInterpreters) {
    for (uint64_t seed = 0; seed < 150; ++seed) {
        RandomKernelOptions options;
        options.statements = 40;
        options.subgroup_operations = seed % 3 == 0;
        ir::Kernel kernel = RandomKernel(seed, options);
        RunFirstPasses(kernel);
        std::map<ir::BlockId, CostCount> blocks;
        const KernelCost cost = AddCosts(kernel, nullptr, &blocks);
        const Status valid = ir::Verify(kernel);
        ASSERT_TRUE(valid.ok()) << valid.error().message;
        uint32_t next = cost.counters;
        std::map<ir::BlockId, uint32_t> own;
        for (const auto& [block, count] : blocks) {
            own[block] = next;
            const ir::InstId id = kernel.NewInst(ir::Op::kCount, {}, {});
            kernel.inst(id).imm = next++;
            auto& insts = kernel.block(block).insts;
            insts.insert(insts.begin(), id);
        }
        std::vector<uint64_t> counts(next);
        hal::WorkerFrame worker = {.region_counts = counts.data()};
        TestDispatch dispatch(kernel, seed, /*overlap=*/false);
        const Status status = Interpret(kernel, dispatch.frame(), 0, TestDispatch::kWorkgroups,
                                        {.steps = 50'000'000, .worker = &worker});
        ASSERT_TRUE(status.ok()) << status.error().message;
        const uint64_t invocations =
            uint64_t{TestDispatch::kWorkgroups} * cost.workgroup_invocations;
        for (const auto& [block, count] : blocks) {
            ASSERT_EQ(count.Evaluate(invocations, counts), counts[own[block]])
                << "seed " << seed << ", block " << block.value() << "\n"
                << ir::PrintKernel(kernel);
        }
    }
}

}  // namespace
}  // namespace fornax::kernel
