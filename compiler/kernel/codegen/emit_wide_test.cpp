// Offsets of 64 bits in buffers, run natively at every width: what lies 2^32 bytes and more beyond
// the range, and rows at a symbolic stride whose indices are narrow.
#include <gtest/gtest.h>

#include "compiler/kernel/codegen/two_buffer_kernel.h"

namespace fornax::kernel {
namespace {

// Lane l is at x = l % 8, y = l / 8; %s is the first push constant.
constexpr char kPrologue[] = R"(
    %three:i32 = const 3
    %seven:i32 = const 7
    %size:i64 = const 4
    %li:i32 = builtin local_index
    %x:i32 = and %li, %seven
    %y:i32 = lshr %li, %three
    %s:i32 = load_push %zero align(4)
    %li64:i64 = zext %li
    %own:i64 = imul %li64, %size
)";

ir::Kernel Parse(const std::string& body) {
    return TwoBufferKernel("workgroup_size(61, 1, 1) push_constants(4) robust", kPrologue,
                           body + "    return\n");
}

template <typename Check>
void ForEachStride(const ir::Kernel& kernel, const std::vector<uint32_t>& strides, Check check) {
    for (uint32_t stride : strides) {
        SCOPED_TRACE(stride);
        ForEachWidth(kernel, {Counting(200, 1000), Counting(200, 5000)},
                     {.push_constants = {stride}}, [&](const Buffers& b) { check(stride, b); });
    }
}

const std::vector<uint32_t> kStrides = {0,          1,           8,           20,         25,
                                        0x10000000, 0x40000000u, 0x80000000u, 0xfffffff8u};

// The word index of lane l, read as signed.
int64_t Index(uint32_t lane, uint32_t stride) {
    return static_cast<int32_t>(lane % 8 + lane / 8 * stride + 56);
}

constexpr char kRow[] = R"(
    %base:i32 = const 56
    %row:i32 = imul %y, %s
    %sum:i32 = iadd %row, %x
    %index:i32 = iadd %sum, %base
    %wide:i64 = sext %index no_lane_wrap
    %at:i64 = imul %wide, %size
)";

TEST(EmitWide, RowsOfNarrowIndicesAreLoaded) {
    const ir::Kernel kernel = Parse(std::string(kRow) + R"(
    %v:i32 = load_buffer %in, %at align(4)
    store_buffer %out, %own, %v align(4)
)");
    ForEachStride(kernel, kStrides, [](uint32_t stride, const Buffers& b) {
        for (uint32_t i = 0; i < 61; ++i) {
            const int64_t at = Index(i, stride);
            ASSERT_EQ(b[1][i], at >= 0 && at < 200 ? 1000 + at : 0) << i;
        }
    });
}

// Where no two lanes have one place.
TEST(EmitWide, RowsOfNarrowIndicesAreStored) {
    const ir::Kernel kernel = Parse(std::string(kRow) + R"(
    store_buffer %out, %at, %li align(4)
)");
    ForEachStride(kernel, {8, 20, 25, 0x10000000, 0xfffffff8u},
                  [](uint32_t stride, const Buffers& b) {
                      std::vector<uint32_t> expected(200);
                      for (uint32_t i = 0; i < 200; ++i) {
                          expected[i] = 5000 + i;
                      }
                      for (uint32_t i = 0; i < 61; ++i) {
                          const int64_t at = Index(i, stride);
                          if (at >= 0 && at < 200) {
                              expected[static_cast<size_t>(at)] = i;
                          }
                      }
                      ASSERT_EQ(b[1], expected);
                  });
}

// Contiguous, uniform, scattered and narrow accesses and atomics, each 2^32 bytes too far.
TEST(EmitWide, NothingBeyondFourGiBWraps) {
    const ir::Kernel kernel = Parse(R"(
    %beyond:i64 = const 4294967296
    %far:i64 = iadd %own, %beyond
    %a:i32 = load_buffer %in, %far align(4)
    %b:i32 = load_buffer %in, %beyond align(4)
    %prime:i64 = const 36
    %mixed:i64 = imul %own, %prime
    %mask:i64 = const 508
    %low:i64 = and %mixed, %mask
    %high:i64 = iadd %low, %beyond
    %c:i32 = load_buffer %in, %high align(4)
    %d:i8 = load_buffer %in, %high align(1)
    %e:i32 = atomic_buffer add, %out, %high, %seven
    %f:i32 = atomic_buffer add, %out, %beyond, %seven
    %d32:i32 = zext %d
    %ab:i32 = or %a, %b
    %cd:i32 = or %c, %d32
    %ef:i32 = or %e, %f
    %abcd:i32 = or %ab, %cd
    %all:i32 = or %abcd, %ef
    store_buffer %out, %far, %seven align(4)
    store_buffer %out, %high, %seven, %seven align(4)
    store_buffer %out, %high, %d align(1)
    store_buffer %out, %beyond, %seven align(4)
    store_buffer %out, %own, %all align(4)
)");
    ForEachStride(kernel, {0}, [](uint32_t, const Buffers& b) {
        for (uint32_t i = 0; i < 200; ++i) {
            ASSERT_EQ(b[1][i], i < 61 ? 0 : 5000 + i) << i;
        }
    });
}

}  // namespace
}  // namespace fornax::kernel
