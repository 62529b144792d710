// Regions between barriers: widths of their own, and what loops carry from one to the next.
#include <gtest/gtest.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>

#include <functional>

#include "compiler/kernel/codegen/emit.h"
#include "compiler/kernel/codegen/two_buffer_kernel.h"
#include "compiler/kernel/explain/explain.h"

namespace fornax::kernel {
namespace {

constexpr char kPrologue[] = R"(
    %one:i32 = const 1
    %four:i32 = const 4
    %li:i32 = builtin local_index
    %o:i32 = shl %li, %two
)";

ir::Kernel Parse(const std::string& attributes, const std::string& body) {
    return TwoBufferKernel(attributes, kPrologue, body);
}

// A tile of 16 x 16 goes through workgroup memory and comes out with rows and columns exchanged.
// `%row` is made before the first barrier and used behind it.
constexpr char kTile[] = R"(
    %sixteen:i32 = const 16
    %fifteen:i32 = const 15
    %x:i32 = and %li, %fifteen
    %y:i32 = lshr %li, %four
    %row:i32 = imul %y, %y
    %a:i32 = load_buffer %in, %o align(4)
    %b:i32 = imul %a, %row
    store_shared %o, %b align(4)
    barrier
    %c:i32 = load_shared %o align(4)
    %to0:i32 = imul %x, %sixteen
    %to1:i32 = iadd %to0, %y
    %to2:i32 = shl %to1, %two
    %base:i32 = const 1024
    %to:i32 = iadd %to2, %base
    %d:i32 = iadd %c, %row
    store_shared %to, %d align(4)
    barrier
    %from:i32 = iadd %o, %base
    %e:i32 = load_shared %from align(4)
    store_buffer %out, %o, %e align(4)
    return
)";

TEST(EmitRegions, TransposedTile) {
    ir::Kernel kernel = Parse("workgroup_size(256, 1, 1) push_constants(4) shared(2048)", kTile);
    ForEachWidth(kernel, {Counting(256), std::vector<uint32_t>(256, 7)}, {}, [&](const Buffers& b) {
        for (uint32_t y = 0; y < 16; ++y) {
            for (uint32_t x = 0; x < 16; ++x) {
                ASSERT_EQ(b[1][x * 16 + y], (100 + y * 16 + x) * y * y + y * y) << x << "," << y;
            }
        }
    });
}

// The region that stores columns takes four rows at once; its neighbours keep the kernel's width.
TEST(EmitRegions, RegionThatStoresColumnsIsWider) {
    ir::Kernel kernel = Parse("workgroup_size(256, 1, 1) push_constants(4) shared(2048)", kTile);
    llvm::LLVMContext context;
    llvm::Module module("test", context);
    KernelExplanation explanation;
    explanation.vector_bits = 512;
    EmitOptions options;
    options.force_lanes = 16;
    options.explain = &explanation;
    Result<EmittedKernel> emitted = EmitKernel(kernel, options, "kernel", module);
    ASSERT_TRUE(emitted.ok()) << emitted.error().message;
    EXPECT_EQ(emitted->lanes, 16u);
    ASSERT_EQ(explanation.regions.size(), 3u);
    EXPECT_EQ(explanation.regions[0].lanes, 16u);
    EXPECT_EQ(explanation.regions[1].lanes, 64u);
    EXPECT_EQ(explanation.regions[2].lanes, 16u);
    for (const AccessRecord& access : explanation.accesses) {
        EXPECT_NE(access.form, AccessForm::kGather) << access.operation << " " << access.pattern;
    }
}

// What four iterations of `made = sum + the neighbour's sum` give, and every iteration's sums.
std::vector<std::vector<uint32_t>> Iterations() {
    std::vector<std::vector<uint32_t>> iterations(1, Counting(64));
    for (int iteration = 0; iteration < 4; ++iteration) {
        std::vector<uint32_t> made(64);
        for (uint32_t i = 0; i < 64; ++i) {
            made[i] = iterations.back()[i] + iterations.back()[63 - i];
        }
        iterations.push_back(made);
    }
    return iterations;
}

// `behind`: after the new sum is made; `continuing`: in the loop's continuing block. Both may use
// the old one, which shares its memory with the new one only where they do not.
void TestCarried(const std::string& behind,
                 const std::string& continuing,
                 uint32_t words,
                 const std::function<void(const std::vector<uint32_t>&)>& check) {
    ir::Kernel kernel = Parse("workgroup_size(64, 1, 1) push_constants(4) shared(512)", R"(
    %last:i32 = const 63
    %start:i32 = load_buffer %in, %o align(4)
    %other:i32 = isub %last, %li
    %p:i32 = shl %other, %two
    %rowbytes:i32 = const 256
    %sums:i32 = loop @0 (%n:i32 = %zero, %sum:i32 = %start) {
      %more:bool = ult %n, %four
      if %more {
        yield
      } else {
        exit @0 %sum
      }
      store_shared %o, %sum align(4)
      barrier
      %neighbour:i32 = load_shared %p align(4)
      %made:i32 = iadd %sum, %neighbour
      barrier
)" + behind + R"(
      continue @0 %made
    } continuing (%carried:i32) {
      %n2:i32 = iadd %n, %one
)" + continuing + R"(
      next %n2, %carried
    }
    store_buffer %out, %o, %sums align(4)
    return
)");
    ForEachWidth(kernel, {Counting(64), std::vector<uint32_t>(words, 7)}, {},
                 [&](const Buffers& b) { check(b[1]); });
}

TEST(EmitRegions, SumsThatALoopCarriesAcrossBarriers) {
    TestCarried("", "", 64,
                [&](const std::vector<uint32_t>& out) { EXPECT_EQ(out, Iterations()[4]); });
}

constexpr char kStoreOld[] = R"(
      %nn:i32 = iadd %n, %one
      %at0:i32 = imul %nn, %rowbytes
      %at:i32 = iadd %at0, %o
      store_buffer %out, %at, %sum align(4)
)";

void ExpectAllIterations(const std::vector<uint32_t>& out) {
    const std::vector<std::vector<uint32_t>> iterations = Iterations();
    for (uint32_t iteration = 0; iteration < 4; ++iteration) {
        for (uint32_t i = 0; i < 64; ++i) {
            ASSERT_EQ(out[64 * (iteration + 1) + i], iterations[iteration][i])
                << iteration << " " << i;
        }
    }
    for (uint32_t i = 0; i < 64; ++i) {
        ASSERT_EQ(out[i], iterations[4][i]) << i;
    }
}

TEST(EmitRegions, OldSumIsUsedBehindTheNewOne) {
    TestCarried(std::string(kStoreOld) + "barrier\n", "", 320, ExpectAllIterations);
}

TEST(EmitRegions, OldSumIsUsedInTheContinuingBlock) {
    TestCarried("", kStoreOld, 320, ExpectAllIterations);
}

// All invocations of a workgroup may end before conditions are made that only invocations make: of
// a branch with a barrier, and of a loop that lasts until they find something in workgroup memory.
TEST(EmitRegions, WorkgroupsThatEndBeforeTheirBarriers) {
    ir::Kernel kernel = Parse("workgroup_size(64, 1, 1) push_constants(4) shared(256)", R"(
    %group:i32 = builtin workgroup_id_x
    %size:i32 = const 64
    %first:i32 = imul %group, %size
    %i:i32 = iadd %first, %li
    %place:i32 = shl %i, %two
    %v:i32 = load_buffer %in, %place align(4)
    %none:bool = ieq %v, %zero
    if %none {
      return
    }
    store_shared %o, %v align(4)
    barrier
    %some:i32 = load_shared %zero align(4)
    %odd:i32 = and %some, %one
    %is_odd:bool = ine %odd, %zero
    if %is_odd {
      barrier
      yield
    }
    loop @0 () {
      %w:i32 = load_shared %zero align(4)
      %more:bool = ult %w, %size
      if %more {
        yield
      } else {
        exit @0
      }
      barrier
      %mine:i32 = load_shared %o align(4)
      %grown:i32 = iadd %mine, %four
      store_shared %o, %grown align(4)
      barrier
      continue @0
    } continuing () {
      next
    }
    %end:i32 = load_shared %o align(4)
    store_buffer %out, %place, %end align(4)
    return
)");
    // The workgroups that end come first, in the middle and last.
    constexpr uint32_t kBegins[] = {0, 1, 0, 2, 0};
    std::vector<uint32_t> in;
    std::vector<uint32_t> expected;
    for (uint32_t begin : kBegins) {
        for (uint32_t i = 0; i < 64; ++i) {
            in.push_back(begin == 0 ? 0 : begin + i);
            expected.push_back(begin == 0 ? 7 : begin + i + (64 - begin + 3) / 4 * 4);
        }
    }
    ForEachWidth(kernel, {in, std::vector<uint32_t>(in.size(), 7)}, {.groups = {5, 1, 1}},
                 [&](const Buffers& b) { ASSERT_EQ(b[1], expected); });
}

// An invocation that surely ends leaves nothing undefined behind: the next workgroup runs, too.
TEST(EmitRegions, EveryInvocationEndsBeforeABarrier) {
    ir::Kernel kernel = Parse("workgroup_size(8, 1, 1) push_constants(4)", R"(
    %group:i32 = builtin workgroup_id_x
    %eight:i32 = const 8
    %first:i32 = imul %group, %eight
    %i:i32 = iadd %first, %li
    %place:i32 = shl %i, %two
    %bit:i32 = and %group, %two
    %always:bool = ine %bit, %one
    if %always {
      store_buffer %out, %place, %i align(4)
      return
    }
    %v:i32 = load_buffer %in, %zero align(4)
    %c:bool = ieq %v, %one
    if %c {
      barrier
      yield
    }
    store_buffer %out, %place, %zero align(4)
    return
)");
    ForEachWidth(kernel, {{1}, std::vector<uint32_t>(40, 7)}, {.groups = {5, 1, 1}},
                 [&](const Buffers& b) { ASSERT_EQ(b[1], Counting(40, 0)); });
}

// Tiles of 64 words go through workgroup memory; each invocation adds eight words of each.
constexpr char kTiles[] = R"(
    %eight:i32 = const 8
    %sixty_four:i32 = const 64
    %all:i32 = const 256
    %mask:i32 = const 63
    %sums:i32 = loop @0 (%at:i32 = %zero, %sum:i32 = %zero) {
      %more:bool = ult %at, %all
      if %more {
        yield
      } else {
        exit @0 %sum
      }
      %word:i32 = iadd %at, %li
      %byte:i32 = shl %word, %two
      %v:i32 = load_buffer %in, %byte align(4)
      store_shared %o, %v align(4)
      barrier
      %added:i32 = loop @1 (%n:i32 = %zero, %s:i32 = %sum) {
        %inside:bool = ult %n, %eight
        if %inside {
          yield
        } else {
          exit @1 %s
        }
        %i0:i32 = imul %n, %li
        %i1:i32 = and %i0, %mask
        %i2:i32 = shl %i1, %two
        %w:i32 = load_shared %i2 align(4)
        %t:i32 = iadd %s, %w
        continue @1 %t
      } continuing (%u:i32) {
        %n2:i32 = iadd %n, %one
        next %n2, %u
      }
      barrier
      continue @0 %added
    } continuing (%carried:i32) {
      %at2:i32 = iadd %at, %sixty_four
      next %at2, %carried
    }
    store_buffer %out, %o, %sums align(4)
    return
)";

TEST(EmitRegions, NextTileIsFetchedWhileThisOneIsComputed) {
    ir::Kernel kernel = Parse("workgroup_size(64, 1, 1) push_constants(4) shared(256)", kTiles);
    auto fetches_of = [](const ir::Kernel& kernel, bool prefetch) {
        llvm::LLVMContext context;
        llvm::Module module("test", context);
        EmitOptions options;
        options.force_lanes = 16;
        options.prefetch = prefetch;
        Result<EmittedKernel> emitted = EmitKernel(kernel, options, "kernel", module);
        EXPECT_TRUE(emitted.ok()) << emitted.error().message;
        const llvm::Function* fetch = module.getFunction("llvm.prefetch.p0");
        return fetch ? fetch->getNumUses() : 0;
    };
    // Accesses may fetch more themselves.
    auto fetches = [&](const ir::Kernel& of) {
        return fetches_of(of, true) - fetches_of(of, false);
    };
    EXPECT_EQ(fetches(kernel), 1u);
    // Halves of the same words are in that line, the next words are not.
    std::string text = kTiles;
    text.replace(text.find("store_shared"), 0,
                 "%half:i32 = iadd %byte, %two\n%h:i16 = load_buffer %in, %half align(2)\n");
    EXPECT_EQ(fetches(Parse("workgroup_size(64, 1, 1) push_constants(4) shared(256)", text)), 1u);
    text = kTiles;
    text.replace(text.find("store_shared"), 0,
                 "%next:i32 = iadd %byte, %sixty_four\n%x:i32 = load_buffer %in, %next align(4)\n");
    EXPECT_EQ(fetches(Parse("workgroup_size(64, 1, 1) push_constants(4) shared(256)", text)), 2u);
    ForEachWidth(kernel, {Counting(256), std::vector<uint32_t>(64, 7)}, {}, [&](const Buffers& b) {
        for (uint32_t i = 0; i < 64; ++i) {
            uint32_t sum = 0;
            for (uint32_t at = 0; at < 256; at += 64) {
                for (uint32_t n = 0; n < 8; ++n) {
                    sum += 100 + at + (n * i) % 64;
                }
            }
            ASSERT_EQ(b[1][i], sum) << i;
        }
    });
}

// The same tiles, with all that an iteration does behind the loop's test, as compilers write loops
// that test first. `behind` follows the new sum.
std::string TilesBehindTheTest(const std::string& behind) {
    std::string text = kTiles;
    const auto replace = [&](const std::string& from, const std::string& to) {
        text.replace(text.find(from), from.size(), to);
    };
    replace(R"(        yield
      } else {
        exit @0 %sum
      }
      %word)",
            R"(        continue @0
      }
      exit @0 %sum
    } continuing () {
      %word)");
    replace(R"(      continue @0 %added
    } continuing (%carried:i32) {
)",
            behind);
    replace("next %at2, %carried", "next %at2, %added");
    return text;
}

std::string LlvmIr(const ir::Kernel& kernel, bool prefetch) {
    llvm::LLVMContext context;
    llvm::Module module("test", context);
    EmitOptions options;
    options.force_lanes = 16;
    options.prefetch = prefetch;
    Result<EmittedKernel> emitted = EmitKernel(kernel, options, "kernel", module);
    EXPECT_TRUE(emitted.ok()) << emitted.error().message;
    std::string text;
    llvm::raw_string_ostream stream(text);
    module.print(stream, nullptr);
    return text;
}

size_t CountOf(const std::string& text, const std::string& what) {
    size_t count = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
        ++count;
    }
    return count;
}

TEST(EmitRegions, TilesBehindTheTestOfALoop) {
    const char* header = "workgroup_size(64, 1, 1) push_constants(4) shared(256)";
    const ir::Kernel kernel = Parse(header, TilesBehindTheTest("barrier\n"));
    const std::string fetch = "call void @llvm.prefetch";
    EXPECT_EQ(CountOf(LlvmIr(kernel, true), fetch), CountOf(LlvmIr(kernel, false), fetch) + 1);
    // The sum has one place, unless the old one is used behind the new one.
    const ir::Kernel uses_old =
        Parse(header, TilesBehindTheTest("barrier\n%old:i32 = iadd %sum, %one\n"
                                         "store_buffer %out, %o, %old align(4)\n"));
    const std::string store = "store <16 x i32>";
    EXPECT_EQ(CountOf(LlvmIr(kernel, false), store), 12u);
    EXPECT_EQ(CountOf(LlvmIr(uses_old, false), store), 15u);  // one of them to the buffer
    ForEachWidth(kernel, {Counting(256), std::vector<uint32_t>(64, 7)}, {}, [&](const Buffers& b) {
        for (uint32_t i = 0; i < 64; ++i) {
            uint32_t sum = 0;
            for (uint32_t at = 0; at < 256; at += 64) {
                for (uint32_t n = 0; n < 8; ++n) {
                    sum += 100 + at + (n * i) % 64;
                }
            }
            ASSERT_EQ(b[1][i], sum) << i;
        }
    });
}

}  // namespace
}  // namespace fornax::kernel
