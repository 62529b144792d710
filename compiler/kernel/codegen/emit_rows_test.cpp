// Accesses whose lanes differ by multiples of a stride that is known at run time only, lanes in
// tiles, and several workgroups in one vector.
#include <gtest/gtest.h>

#include "compiler/kernel/codegen/two_buffer_kernel.h"

namespace fornax::kernel {
namespace {

constexpr char kPrologue[] = R"(
    %lx:i32 = builtin local_id_x
    %ly:i32 = builtin local_id_y
    %li:i32 = builtin local_index
    %wx:i32 = builtin workgroup_id_x
    %wy:i32 = builtin workgroup_id_y
    %s:i32 = load_push %zero align(4)
)";

// out[x][y] = in[y][x] with rows of %s elements, in workgroups of 16 x 16.
constexpr char kTranspose[] = R"(
    %tile:i32 = const 16
    %x0:i32 = imul %wx, %tile
    %y0:i32 = imul %wy, %tile
    %x:i32 = iadd %x0, %lx
    %y:i32 = iadd %y0, %ly
    %cx:bool = ult %x, %s
    %cy:bool = ult %y, %s
    %c:bool = and %cx, %cy
    if %c {
      %from0:i32 = imul %y, %s
      %from1:i32 = iadd %from0, %x
      %from:i32 = shl %from1, %two
      %v:i32 = load_buffer %in, %from align(4)
      %to0:i32 = imul %x, %s
      %to1:i32 = iadd %to0, %y
      %to:i32 = shl %to1, %two
      store_buffer %out, %to, %v align(4)
      yield
    }
    return
)";

ir::Kernel Parse(const std::string& attributes, const std::string& body) {
    return TwoBufferKernel(attributes, kPrologue, body);
}

void TestTranspose(const std::string& attributes, uint32_t side) {
    ir::Kernel kernel = Parse(attributes, kTranspose);
    ForEachWidth(kernel, {Counting(side * side), std::vector<uint32_t>(side * side, 7)},
                 {.groups = {2, 2, 1}, .push_constants = {side}}, [&](const Buffers& b) {
                     for (uint32_t y = 0; y < side; ++y) {
                         for (uint32_t x = 0; x < side; ++x) {
                             ASSERT_EQ(b[1][x * side + y], 100 + y * side + x) << x << "," << y;
                         }
                     }
                 });
}

TEST(EmitRows, Transpose) {
    TestTranspose("workgroup_size(16, 16, 1) push_constants(4)", 32);
}

TEST(EmitRows, TransposeWithLanesOutside) {
    TestTranspose("workgroup_size(16, 16, 1) push_constants(4)", 27);
}

TEST(EmitRows, TransposeOfRobustBuffers) {
    TestTranspose("workgroup_size(16, 16, 1) push_constants(4) robust", 32);
    TestTranspose("workgroup_size(16, 16, 1) push_constants(4) robust", 21);
}

// Rows that start at (y * stride) >> 3, so that no stride is known: lanes with the same y share the
// start. What is outside reads 0 and writes nothing.
TEST(EmitRows, StartsThatLanesShare) {
    constexpr char kBody[] = R"(
    %three:i32 = const 3
    %a:i32 = imul %ly, %s
    %b:i32 = lshr %a, %three
    %c:i32 = iadd %lx, %b
    %from:i32 = shl %c, %two
    %v:i32 = load_buffer %in, %from align(4)
    %o:i32 = shl %li, %two
    store_buffer %out, %o, %v align(4)
    %size:i32 = const 128
    %to:i32 = iadd %from, %size
    store_buffer %out, %to, %v align(4)
    return
)";
    for (const char* attributes : {"workgroup_size(4, 8, 1) push_constants(4)",
                                   "workgroup_size(4, 8, 1) push_constants(4) robust"}) {
        const ir::Kernel kernel = Parse(attributes, kBody);
        for (const uint32_t stride : {32u, 67u, 77u, 0xfffffff0u}) {
            const bool robust = kernel.robust_buffer_access;
            const uint32_t count = robust ? 60 : 72;
            if (!robust && stride > 100) {
                continue;
            }
            SCOPED_TRACE(testing::Message() << attributes << ", stride " << stride);
            const std::vector<uint32_t> in = Counting(count);
            ForEachWidth(kernel, {in, std::vector<uint32_t>(32 + count, 7)},
                         {.push_constants = {stride}}, [&](const Buffers& b) {
                             std::vector<uint32_t> out(32 + count, 7);
                             for (uint32_t i = 0; i < 32; ++i) {
                                 const uint32_t word = (i / 4 * stride >> 3) + i % 4;
                                 const uint32_t at = word & 0x3fffffff;  // bytes wrap
                                 out[i] = at < count ? in[at] : 0;
                             }
                             for (uint32_t i = 0; i < 32; ++i) {
                                 const uint32_t word = (i / 4 * stride >> 3) + i % 4 + 32;
                                 const uint32_t at = word & 0x3fffffff;
                                 if (at >= 32 && at < out.size()) {
                                     EXPECT_EQ(b[1][at], out[i]) << i;
                                 }
                             }
                             for (uint32_t i = 0; i < 32; ++i) {
                                 ASSERT_EQ(b[1][i], out[i]) << i;
                             }
                         });
        }
    }
}

// Lanes are columns of a matrix whose row length is a multiple of the vector: a stride of its own
// per lane, and one that changes in a loop, where the address must be that of the iteration.
TEST(EmitRows, StrideOfALoop) {
    ir::Kernel kernel = Parse("workgroup_size(8, 4, 1) push_constants(4)", R"(
    %one:i32 = const 1
    %four:i32 = const 4
    %sum:i32 = loop @0 (%i:i32 = %zero, %total:i32 = %zero) {
      %more:bool = ult %i, %four
      if %more {
        yield
      } else {
        exit @0 %total
      }
      %a:i32 = imul %ly, %i
      %b:i32 = iadd %a, %lx
      %c:i32 = shl %b, %two
      %v:i32 = load_buffer %in, %c align(4)
      %t:i32 = iadd %total, %v
      %next:i32 = iadd %i, %one
      continue @0 %next, %t
    } continuing (%i2:i32, %t2:i32) {
      next %i2, %t2
    }
    %o:i32 = shl %li, %two
    store_buffer %out, %o, %sum align(4)
    return
)");
    ForEachWidth(kernel, {Counting(64), std::vector<uint32_t>(32, 7)}, {}, [&](const Buffers& b) {
        for (uint32_t y = 0; y < 4; ++y) {
            for (uint32_t x = 0; x < 8; ++x) {
                uint32_t sum = 0;
                for (uint32_t i = 0; i < 4; ++i) {
                    sum += 100 + y * i + x;
                }
                ASSERT_EQ(b[1][y * 8 + x], sum) << x << "," << y;
            }
        }
    });
}

// The row length lives across a barrier with the offset that it belongs to.
TEST(EmitRows, StrideAcrossABarrier) {
    ir::Kernel kernel = Parse("workgroup_size(8, 8, 1) push_constants(4) shared(256)", R"(
    %row:i32 = load_buffer %in, %zero align(4)
    %a:i32 = imul %lx, %row
    %b:i32 = iadd %a, %ly
    %c:i32 = shl %b, %two
    %v:i32 = load_buffer %in, %c align(4)
    %o:i32 = shl %li, %two
    store_shared %o, %v align(4)
    barrier
    %last:i32 = const 63
    %other:i32 = isub %last, %li
    %p:i32 = shl %other, %two
    %w:i32 = load_shared %p align(4)
    store_buffer %out, %c, %w align(4)
    return
)");
    std::vector<uint32_t> in = Counting(64);
    in[0] = 8;
    ForEachWidth(kernel, {in, std::vector<uint32_t>(64, 7)}, {}, [&](const Buffers& b) {
        for (uint32_t y = 0; y < 8; ++y) {
            for (uint32_t x = 0; x < 8; ++x) {
                ASSERT_EQ(b[1][x * 8 + y], in[(7 - x) * 8 + 7 - y]) << x << "," << y;
            }
        }
    });
}

TEST(EmitRows, SmallWorkgroupsShareAVector) {
    for (const char* size : {"1, 1, 1", "4, 1, 1", "2, 2, 1", "3, 1, 1"}) {
        SCOPED_TRACE(size);
        ir::Kernel kernel = Parse("workgroup_size(" + std::string(size) + ") push_constants(4)", R"(
    %nx:i32 = builtin num_workgroups_x
    %row:i32 = imul %wy, %nx
    %group:i32 = iadd %row, %wx
    %first:i32 = imul %group, %s
    %i:i32 = iadd %first, %li
    %o:i32 = shl %i, %two
    %v:i32 = load_buffer %in, %o align(4)
    %w0:i32 = imul %wx, %v
    %w:i32 = iadd %w0, %ly
    store_buffer %out, %o, %w align(4)
    return
)");
        const uint32_t width = kernel.workgroup_size[0];
        const uint32_t total = width * kernel.workgroup_size[1];
        const uint32_t count = total * 21 * 3;
        ForEachWidth(kernel, {Counting(count), std::vector<uint32_t>(count, 7)},
                     {.groups = {21, 3, 1}, .push_constants = {total}}, [&](const Buffers& b) {
                         for (uint32_t i = 0; i < count; ++i) {
                             const uint32_t group = i / total % 21;
                             ASSERT_EQ(b[1][i], group * (100 + i) + i % total / width) << i;
                         }
                     });
    }
}

}  // namespace
}  // namespace fornax::kernel
