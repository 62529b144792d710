// Kernels from IR text, run natively at every width: patterns, memory selection, masks, loops and
// barriers.
#include <gtest/gtest.h>

#include <numeric>

#include "compiler/kernel/codegen/kernel_harness.h"
#include "compiler/kernel/ir/text.h"

namespace fornax::kernel {
namespace {

using Buffers = std::vector<std::vector<uint32_t>>;

constexpr uint32_t kWidths[] = {0, 1, 4, 8, 16, 32, 64};

std::vector<uint32_t> Iota(uint32_t count) {
    std::vector<uint32_t> words(count);
    std::iota(words.begin(), words.end(), 0u);
    return words;
}

// Wraps a body in a kernel with storage buffers 0 and 1 at bindings 0 and 1.
ir::Kernel Parse(const std::string& attributes,
                 const std::string& body,
                 const std::string& head = "") {
    std::string text = "kernel \"test\" " + attributes +
                       " {\n"
                       "binding 0: storage_buffer set(0) binding(0) count(1) offset(0)\n"
                       "binding 1: storage_buffer set(0) binding(1) count(1) offset(16)\n" +
                       head + "body {\n" + body + "}\n}\n";
    Result<ir::Kernel> kernel = ir::ParseKernel(text);
    EXPECT_TRUE(kernel.ok()) << kernel.error().message << "\n" << text;
    return kernel.ok() ? std::move(*kernel) : ir::Kernel();
}

constexpr char kPrologue[] = R"(
    %zero:i32 = const 0
    %one:i32 = const 1
    %two:i32 = const 2
    %in:buffer = buffer 0, %zero
    %out:buffer = buffer 1, %zero
    %lx:i32 = builtin local_id_x
    %ly:i32 = builtin local_id_y
    %li:i32 = builtin local_index
    %wx:i32 = builtin workgroup_id_x
)";

template <typename Check>
void ForEachWidth(const ir::Kernel& kernel,
                  const Buffers& buffers,
                  const uint32_t (&groups)[3],
                  Check check,
                  const std::vector<uint32_t>& push = {}) {
    for (uint32_t lanes : kWidths) {
        for (const char* cpu : {"", "x86-64-v3"}) {
            SCOPED_TRACE(testing::Message() << "lanes " << lanes << " cpu " << cpu);
            Result<RunnableKernel> native = RunnableKernel::Create(kernel, lanes, cpu);
            ASSERT_TRUE(native.ok()) << native.error().message;
            Buffers copy = buffers;
            Status status = native->Run(copy, push, groups);
            ASSERT_TRUE(status.ok()) << status.error().message << native->llvm_ir();
            check(copy);
            if (testing::Test::HasFailure()) {
                ADD_FAILURE() << native->llvm_ir();
                return;
            }
        }
    }
}

TEST(Emit, ContiguousCopyWithAGuard) {
    ir::Kernel kernel =
        Parse("workgroup_size(64, 1, 1) push_constants(4)", std::string(kPrologue) + R"(
    %n:i32 = load_push %zero align(4)
    %size:i32 = const 64
    %start:i32 = imul %wx, %size
    %i:i32 = iadd %start, %lx
    %c:bool = ult %i, %n
    if %c {
      %o:i32 = shl %i, %two
      %v:i32 = load_buffer %in, %o align(4)
      %w:i32 = iadd %v, %one
      store_buffer %out, %o, %w align(4)
      yield
    }
    return
)");
    ForEachWidth(kernel, {Iota(200), std::vector<uint32_t>(200, 7)}, {4, 1, 1},
                 [](const Buffers& b) {
                     for (uint32_t i = 0; i < 200; ++i) {
                         EXPECT_EQ(b[1][i], i < 150 ? i + 1 : 7) << i;
                     }
                 },
                 {150});
}

TEST(Emit, InactiveLanesMayLieBelowTheBuffer) {
    // Each invocation but the first reads its left neighbour and each but the last writes its right
    // one.
    ir::Kernel kernel = Parse("workgroup_size(32, 1, 1)", std::string(kPrologue) + R"(
    %four:i32 = const 4
    %last:i32 = const 31
    %o:i32 = shl %lx, %two
    %left:i32 = isub %o, %four
    %right:i32 = iadd %o, %four
    %inner:bool = ult %zero, %lx
    %v:i32 = if %inner {
      %w:i32 = load_buffer %in, %left align(4)
      yield %w
    } else {
      yield %lx
    }
    %before:bool = ult %lx, %last
    if %before {
      store_buffer %out, %right, %v align(4)
      yield
    } else {
      store_buffer %out, %zero, %v align(4)
      yield
    }
    return
)");
    ForEachWidth(kernel, {Iota(32), std::vector<uint32_t>(32)}, {1, 1, 1}, [](const Buffers& b) {
        EXPECT_EQ(b[1][0], 30u);
        for (uint32_t i = 1; i < 32; ++i) {
            EXPECT_EQ(b[1][i], i == 1 ? 0 : i - 2) << i;
        }
    });
}

TEST(Emit, RobustAccessAtTheEdge) {
    ir::Kernel kernel = Parse("workgroup_size(64, 1, 1) robust", std::string(kPrologue) + R"(
    %o:i32 = shl %lx, %two
    %v:i32 = load_buffer %in, %o align(4)
    %w:i32 = iadd %v, %one
    store_buffer %out, %o, %w align(4)
    return
)");
    ForEachWidth(kernel, {Iota(21), std::vector<uint32_t>(37, 7)}, {1, 1, 1}, [](const Buffers& b) {
        for (uint32_t i = 0; i < 37; ++i) {
            EXPECT_EQ(b[1][i], i < 21 ? i + 1 : 1) << i;
        }
    });
}

TEST(Emit, VectorsOfFourAreTransposed) {
    ir::Kernel kernel = Parse("workgroup_size(8, 8, 1)", std::string(kPrologue) + R"(
    %four:i32 = const 4
    %o:i32 = shl %li, %four
    %a:i32, %b:i32, %c:i32, %d:i32 = load_buffer %in, %o align(16)
    %s:i32 = iadd %a, %d
    store_buffer %out, %o, %d, %c, %b, %s align(16)
    return
)");
    ForEachWidth(kernel, {Iota(256), std::vector<uint32_t>(256)}, {1, 1, 1}, [](const Buffers& b) {
        for (uint32_t i = 0; i < 256; i += 4) {
            EXPECT_EQ(b[1][i], i + 3);
            EXPECT_EQ(b[1][i + 1], i + 2);
            EXPECT_EQ(b[1][i + 2], i + 1);
            EXPECT_EQ(b[1][i + 3], i + i + 3);
        }
    });
}

TEST(Emit, TransposeThroughPatterns) {
    // out[x * 16 + y] = in[y * 16 + x] over a 16 x 16 workgroup.
    ir::Kernel kernel = Parse("workgroup_size(16, 16, 1)", std::string(kPrologue) + R"(
    %sixteen:i32 = const 64
    %four:i32 = const 4
    %row:i32 = imul %ly, %sixteen
    %col:i32 = imul %lx, %four
    %from:i32 = iadd %row, %col
    %trow:i32 = imul %lx, %sixteen
    %tcol:i32 = imul %ly, %four
    %to:i32 = iadd %trow, %tcol
    %v:i32 = load_buffer %in, %from align(4)
    store_buffer %out, %to, %v align(4)
    return
)");
    ForEachWidth(kernel, {Iota(256), std::vector<uint32_t>(256)}, {1, 1, 1}, [](const Buffers& b) {
        for (uint32_t x = 0; x < 16; ++x) {
            for (uint32_t y = 0; y < 16; ++y) {
                EXPECT_EQ(b[1][x * 16 + y], y * 16 + x);
            }
        }
    });
}

// out[x * 5 + y] = in[y * 4 + x]: vectors of whole rows, the last of which end behind the
// workgroup.
TEST(Emit, LastRowsMayEndBeforeTheVector) {
    ir::Kernel kernel = Parse("workgroup_size(4, 5, 1)", std::string(kPrologue) + R"(
    %column_bytes:i32 = const 20
    %from:i32 = shl %li, %two
    %column:i32 = imul %lx, %column_bytes
    %row:i32 = shl %ly, %two
    %to:i32 = iadd %column, %row
    %v:i32 = load_buffer %in, %from align(4)
    store_buffer %out, %to, %v align(4)
    return
)");
    ForEachWidth(kernel, {Iota(20), std::vector<uint32_t>(24, 7)}, {1, 1, 1}, [](const Buffers& b) {
        for (uint32_t i = 0; i < 24; ++i) {
            EXPECT_EQ(b[1][i], i < 20 ? i % 5 * 4 + i / 5 : 7) << i;
        }
    });
}

TEST(Emit, DivergentLoopWithBreakAndContinue) {
    // Collatz-like: counts steps until the value is 1; odd steps are counted twice through a
    // continue.
    ir::Kernel kernel = Parse("workgroup_size(40, 1, 1)", std::string(kPrologue) + R"(
    %o:i32 = shl %lx, %two
    %v:i32 = load_buffer %in, %o align(4)
    %three:i32 = const 3
    %r:i32 = loop @0 (%n:i32 = %v, %steps:i32 = %zero) {
      %small:bool = ule %n, %one
      if %small {
        exit @0 %steps
      } else {
        yield
      }
      %bit:i32 = and %n, %one
      %odd:bool = ine %bit, %zero
      if %odd {
        %m:i32 = imul %n, %three
        %m1:i32 = iadd %m, %one
        %s2:i32 = iadd %steps, %two
        continue @0 %m1, %s2
      } else {
        yield
      }
      %h:i32 = lshr %n, %one
      %s1:i32 = iadd %steps, %one
      continue @0 %h, %s1
    } continuing (%cn:i32, %cs:i32) {
      next %cn, %cs
    }
    store_buffer %out, %o, %r align(4)
    return
)");
    auto expected = [](uint32_t n) {
        uint32_t steps = 0;
        while (n > 1) {
            steps += n % 2 ? 2 : 1;
            n = n % 2 ? 3 * n + 1 : n / 2;
        }
        return steps;
    };
    ForEachWidth(kernel, {Iota(40), std::vector<uint32_t>(40)}, {1, 1, 1}, [&](const Buffers& b) {
        for (uint32_t i = 0; i < 40; ++i) {
            EXPECT_EQ(b[1][i], expected(i)) << i;
        }
    });
}

TEST(Emit, TreeReductionWithBarriers) {
    ir::Kernel kernel = Parse("workgroup_size(256, 1, 1) shared(1024)", std::string(kPrologue) + R"(
    %size:i32 = const 256
    %start:i32 = imul %wx, %size
    %i:i32 = iadd %start, %lx
    %o:i32 = shl %i, %two
    %v:i32 = load_buffer %in, %o align(4)
    %so:i32 = shl %lx, %two
    store_shared %so, %v align(4)
    %half:i32 = const 128
    loop @0 (%s:i32 = %half) {
      %done:bool = ieq %s, %zero
      if %done {
        exit @0
      } else {
        yield
      }
      barrier
      %mine:bool = ult %lx, %s
      if %mine {
        %sb:i32 = shl %s, %two
        %other:i32 = iadd %so, %sb
        %a:i32 = load_shared %so align(4)
        %b:i32 = load_shared %other align(4)
        %sum:i32 = iadd %a, %b
        store_shared %so, %sum align(4)
        yield
      }
      continue @0
    } continuing () {
      %next:i32 = lshr %s, %one
      next %next
    }
    barrier
    %first:bool = ieq %lx, %zero
    if %first {
      %total:i32 = load_shared %zero align(4)
      %to:i32 = shl %wx, %two
      store_buffer %out, %to, %total align(4)
      yield
    }
    return
)");
    ForEachWidth(kernel, {Iota(1024), std::vector<uint32_t>(4)}, {4, 1, 1}, [](const Buffers& b) {
        for (uint32_t g = 0; g < 4; ++g) {
            EXPECT_EQ(b[1][g], 256 * (256 * g) + 255 * 128) << g;
        }
    });
}

TEST(Emit, ValuesLiveAcrossBarriersAndEarlyReturns) {
    // Invocations past 100 return before the barrier; the others swap values with a neighbour.
    ir::Kernel kernel = Parse("workgroup_size(128, 1, 1) shared(512)", std::string(kPrologue) + R"(
    %limit:i32 = const 99
    %past:bool = ult %limit, %lx
    if %past {
      return
    }
    %o:i32 = shl %lx, %two
    %v:i32 = load_buffer %in, %o align(4)
    %twice:i32 = imul %v, %v
    store_shared %o, %v align(4)
    barrier
    %neighbour:i32 = xor %lx, %one
    %no:i32 = shl %neighbour, %two
    %w:i32 = load_shared %no align(4)
    %sum:i32 = iadd %w, %twice
    store_buffer %out, %o, %sum align(4)
    return
)");
    ForEachWidth(kernel, {Iota(128), std::vector<uint32_t>(128, 7)}, {1, 1, 1},
                 [](const Buffers& b) {
                     for (uint32_t i = 0; i < 128; ++i) {
                         EXPECT_EQ(b[1][i], i < 100 ? i * i + (i ^ 1) : 7) << i;
                     }
                 });
}

TEST(Emit, AtomicsAndPrivateArrays) {
    ir::Kernel kernel = Parse("workgroup_size(64, 1, 1) shared(64)", std::string(kPrologue) + R"(
    %seven:i32 = const 7
    %o:i32 = shl %lx, %two
    %v:i32 = load_buffer %in, %o align(4)
    %slot:i32 = and %v, %seven
    store_local 0, %slot, %v
    %other:i32 = xor %slot, %one
    store_local 0, %other, %one
    %back:i32 = load_local 0, %slot
    %bo:i32 = shl %slot, %two
    %old:i32 = atomic_buffer add, %out, %bo, %back
    %count:i32 = const 32
    %tot:i32 = atomic_buffer add, %out, %count, %one
    return
)",
                              "local 0: i32[8]\n");
    ForEachWidth(kernel, {Iota(64), std::vector<uint32_t>(9)}, {3, 1, 1}, [](const Buffers& b) {
        for (uint32_t s = 0; s < 8; ++s) {
            uint32_t sum = 0;
            for (uint32_t i = s; i < 64; i += 8) {
                sum += i;
            }
            EXPECT_EQ(b[1][s], 3 * sum) << s;
        }
        EXPECT_EQ(b[1][8], 3u * 64);
    });
}

}  // namespace
}  // namespace fornax::kernel
