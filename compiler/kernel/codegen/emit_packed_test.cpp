// Runs of elements that stay in the order of memory, regions that only the first invocations work
// in, and loads that prefetch later lines.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "compiler/kernel/codegen/two_buffer_kernel.h"

namespace fornax::kernel {
namespace {

constexpr char kPrologue[] = R"(
    %one:i32 = const 1
    %four:i32 = const 4
    %eight:i32 = const 8
    %lx:i32 = builtin local_id_x
    %wx:i32 = builtin workgroup_id_x
    %size:i32 = const 64
    %start:i32 = imul %wx, %size
    %i:i32 = iadd %start, %lx
    %o:i32 = shl %i, %two
)";

ir::Kernel Parse(const std::string& attributes, const std::string& body) {
    return TwoBufferKernel("workgroup_size(64, 1, 1) " + attributes, kPrologue, body);
}

// In vectors that begin at lines, and that do not.
Launch Groups(uint32_t groups) {
    return {.groups = {groups, 1, 1}, .misaligned_words = {0, 1, 8}};
}

bool Prefetches(const ir::Kernel& kernel) {
    Result<RunnableKernel> native = RunnableKernel::Create(kernel, 0);
    EXPECT_TRUE(native.ok());
    return native.ok() && native->llvm_ir().find(", i32 0, i32 3, i32 1)") != std::string::npos;
}

TEST(EmitPacked, PrefetchesWhereMuchIsComputed) {
    std::string body = "%v0:i32 = load_buffer %in, %o align(4)\n";
    for (int i = 1; i <= 20; ++i) {
        const std::string before = "%v" + std::to_string(i - 1);
        body += "%m" + std::to_string(i) + ":i32 = imul " + before + ", " + before + "\n";
        body += "%v" + std::to_string(i) + ":i32 = iadd %m" + std::to_string(i) + ", %lx\n";
    }
    body += "store_buffer %out, %o, %v20 align(4)\nreturn\n";
    const ir::Kernel kernel = Parse("", body);
    EXPECT_TRUE(Prefetches(kernel));
    ForEachWidth(kernel, {Counting(128, 1), std::vector<uint32_t>(128, 7)}, Groups(2),
                 [](const Buffers& b) {
                     for (uint32_t i = 0; i < 128; ++i) {
                         uint32_t value = i + 1;
                         for (int k = 0; k < 20; ++k) {
                             value = value * value + i % 64;
                         }
                         ASSERT_EQ(b[1][i], value) << i;
                     }
                 });
}

// Eight bytes a lane become eight words in a row of 64 of its own.
constexpr char kWiden[] = R"(
    %n:i32 = load_push %zero align(4)
    %c:bool = ult %i, %n
    if %c {
      %five:i32 = const 5
      %stride:i32 = const 36
      %mask:i32 = const 15
      %row:i32 = imul %i, %stride
      %at:i32 = iadd %row, %two
      %scale:i32 = load_buffer %in, %row align(4)
      %b0:i8, %b1:i8, %b2:i8, %b3:i8, %b4:i8, %b5:i8, %b6:i8, %b7:i8 = load_buffer %in, %at align(1)
)";

TEST(EmitPacked, RunsFarApart) {
    std::string body = kWiden;
    for (int i = 0; i < 8; ++i) {
        const std::string n = std::to_string(i);
        body += "%w" + n + ":i32 = zext %b" + n + "\n%a" + n + ":i32 = and %w" + n + ", %mask\n%r" +
                n + ":i32 = imul %a" + n + ", %scale\n";
    }
    body += R"(
      %bytes:i32 = const 128
      %to:i32 = imul %i, %bytes
      store_buffer %out, %to, %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7 align(4)
      yield
    }
    return
)";
    constexpr uint32_t kRows = 100;
    const auto in = Counting(kRows * 9, 1);
    Launch launch = Groups(2);
    launch.push_constants = {kRows};
    for (const char* attributes : {"push_constants(4)", "push_constants(4) robust"}) {
        ForEachWidth(Parse(attributes, body), {in, std::vector<uint32_t>(kRows * 32, 7)}, launch,
                     [&](const Buffers& b) {
                         const auto* bytes = reinterpret_cast<const uint8_t*>(in.data());
                         for (uint32_t row = 0; row < kRows; ++row) {
                             for (uint32_t k = 0; k < 32; ++k) {
                                 const uint32_t expected =
                                     k < 8 ? (bytes[row * 36 + 2 + k] & 15) * in[row * 9] : 7;
                                 ASSERT_EQ(b[1][row * 32 + k], expected) << row << " " << k;
                             }
                         }
                     });
    }
}

TEST(EmitPacked, RunsSideBySide) {
    // Four words a lane, with a different constant for each and a value of the lane's own.
    const ir::Kernel kernel = Parse("", R"(
    %three:i32 = const 3
    %o4:i32 = shl %o, %two
    %a:i32, %b:i32, %c:i32, %d:i32 = load_buffer %in, %o4 align(16)
    %a1:i32 = imul %a, %one
    %b1:i32 = imul %b, %two
    %c1:i32 = imul %c, %three
    %d1:i32 = imul %d, %four
    %a2:i32 = xor %a1, %lx
    %b2:i32 = xor %b1, %lx
    %c2:i32 = xor %c1, %lx
    %d2:i32 = xor %d1, %lx
    store_buffer %out, %o4, %a2, %b2, %c2, %d2 align(16)
    return
)");
    ForEachWidth(kernel, {Counting(512, 1), std::vector<uint32_t>(512, 7)}, Groups(2),
                 [](const Buffers& b) {
                     for (uint32_t i = 0; i < 512; ++i) {
                         ASSERT_EQ(b[1][i], (i + 1) * (i % 4 + 1) ^ i / 4 % 64) << i;
                     }
                 });
}

TEST(EmitPacked, ValuesThatAreAlsoUsedByThemselves) {
    const ir::Kernel kernel = Parse("", R"(
    %o4:i32 = shl %o, %two
    %a:i32, %b:i32 = load_buffer %in, %o4 align(8)
    %a1:i32 = imul %a, %four
    %b1:i32 = imul %b, %four
    store_buffer %out, %o4, %a1, %b1 align(8)
    %more:i32 = iadd %o4, %eight
    %sum:i32 = iadd %a1, %b
    store_buffer %out, %more, %sum, %a align(8)
    return
)");
    ForEachWidth(kernel, {Counting(256, 1), std::vector<uint32_t>(256, 7)}, Groups(1),
                 [](const Buffers& b) {
                     for (uint32_t i = 0; i < 64; ++i) {
                         ASSERT_EQ(b[1][4 * i], (4 * i + 1) * 4) << i;
                         ASSERT_EQ(b[1][4 * i + 1], (4 * i + 2) * 4) << i;
                         ASSERT_EQ(b[1][4 * i + 2], (4 * i + 1) * 4 + 4 * i + 2) << i;
                         ASSERT_EQ(b[1][4 * i + 3], 4 * i + 1) << i;
                     }
                 });
}

// Rows of 64 bytes of a stride that is known at run time only, copied into padded rows of workgroup
// memory. The last rows may lie outside of the buffer, whose reads then give 0.
TEST(EmitPacked, RowsAreCopied) {
    const ir::Kernel kernel = Parse("push_constants(4) robust shared(640)", R"(
    %three:i32 = const 3
    %padded:i32 = const 80
    %stride:i32 = load_push %zero align(4)
    %row:i32 = lshr %lx, %three
    %seven:i32 = const 7
    %column:i32 = and %lx, %seven
    %in_row:i32 = shl %column, %three
    %away:i32 = imul %row, %stride
    %from:i32 = iadd %away, %in_row
    %line:i32 = imul %row, %padded
    %to:i32 = iadd %line, %in_row
    %a:i16, %b:i16, %c:i16, %d:i16 = load_buffer %in, %from align(2)
    store_shared %to, %a, %b, %c, %d align(2)
    barrier
    %x:i32, %y:i32 = load_shared %to align(4)
    %o8:i32 = shl %lx, %three
    store_buffer %out, %o8, %x, %y align(4)
    return
)");
    const std::vector<uint32_t> in = Counting(256, 0x10001);
    for (uint32_t stride : {64u, 100u, 128u, 300u, 0u, 0x80000000u}) {
        Launch launch = Groups(1);
        launch.push_constants = {stride};
        ForEachWidth(kernel, {in, std::vector<uint32_t>(128, 7)}, launch, [&](const Buffers& b) {
            for (uint32_t word = 0; word < 128; ++word) {
                const uint32_t at = word / 16 * stride + word % 16 * 4;
                const uint32_t expected = at < in.size() * 4 ? in[at / 4] : 0;
                ASSERT_EQ(b[1][word], expected) << stride << " " << word;
            }
        });
    }
}

// Four words a lane: two of the four results share each shuffle of two registers.
TEST(EmitPacked, WordsOfRunsShareShuffles) {
    const ir::Kernel kernel = TwoBufferKernel("workgroup_size(8, 1, 1) push_constants(4)", R"(
    %li:i32 = builtin local_index
    %c16:i32 = const 16
    %c32:i32 = const 32
    %c64:i32 = const 64
    %c96:i32 = const 96
    %run:i32 = imul %li, %c16
    %o0:i32 = shl %li, %two
    %o1:i32 = iadd %o0, %c32
    %o2:i32 = iadd %o0, %c64
    %o3:i32 = iadd %o0, %c96
)",
                                              R"(
    %v0:i32, %v1:i32, %v2:i32, %v3:i32 = load_buffer %in, %run align(4)
    store_buffer %out, %o0, %v0 align(4)
    store_buffer %out, %o1, %v1 align(4)
    store_buffer %out, %o2, %v2 align(4)
    store_buffer %out, %o3, %v3 align(4)
    return
)");
    ForEachWidth(kernel, {Counting(32), std::vector<uint32_t>(32, 7)}, {}, [](const Buffers& b) {
        for (uint32_t i = 0; i < 32; ++i) {
            ASSERT_EQ(b[1][i], 100 + i % 8 * 4 + i / 8) << i;
        }
    });
    auto native = RunnableKernel::Create(kernel, 8, "haswell");
    ASSERT_TRUE(native.ok()) << native.error().message;
    const std::string& text = native->optimized_llvm_ir();
    size_t shuffles = 0;
    for (size_t at = text.find("= shufflevector"); at != std::string::npos;
         at = text.find("= shufflevector", at + 1)) {
        ++shuffles;
    }
    EXPECT_EQ(shuffles, 8u + 2u) << text;  // two take registers out of one long vector
}

// A tree in workgroup memory, whose conditions are written in every way that is known.
TEST(EmitRegions, FewInvocationsWork) {
    std::string body = R"(
    %lo:i32 = shl %lx, %two
    %v:i32 = load_buffer %in, %o align(4)
    store_shared %lo, %v align(4)
    barrier
)";
    const char* const conditions[] = {"ult %lx, %h0", "slt %lx, %h1", "ule %lx, %h2",
                                      "ult %lx, %h3", "sle %lx, %h4", "ieq %h5, %lx"};
    const uint32_t bounds[] = {32, 16, 7, 4, 1, 0};
    for (uint32_t i = 0; i < 6; ++i) {
        const std::string n = std::to_string(i);
        body += "%h" + n + ":i32 = const " + std::to_string(bounds[i]) + "\n%d" + n +
                ":i32 = const " + std::to_string(128u >> i) + "\n%c" + n +
                ":bool = " + conditions[i] + "\nif %c" + n + " {\n%p" + n + ":i32 = iadd %lo, %d" +
                n + "\n%x" + n + ":i32 = load_shared %lo align(4)\n%y" + n +
                ":i32 = load_shared %p" + n + " align(4)\n%s" + n + ":i32 = iadd %x" + n + ", %y" +
                n + "\nstore_shared %lo, %s" + n + " align(4)\nyield\n}\nbarrier\n";
    }
    body += R"(
    %all:i32 = load_shared %lo align(4)
    store_buffer %out, %o, %all align(4)
    return
)";
    ForEachWidth(Parse("shared(256)", body), {Counting(192, 1), std::vector<uint32_t>(192, 7)},
                 Groups(3), [](const Buffers& b) {
                     for (uint32_t group = 0; group < 3; ++group) {
                         std::vector<uint32_t> tree(64);
                         std::iota(tree.begin(), tree.end(), group * 64 + 1);
                         for (uint32_t width = 32; width > 0; width /= 2) {
                             for (uint32_t i = 0; i < width; ++i) {
                                 tree[i] += tree[i + width];
                             }
                         }
                         for (uint32_t i = 0; i < 64; ++i) {
                             ASSERT_EQ(b[1][group * 64 + i], tree[i]) << group << " " << i;
                         }
                     }
                 });
}

// Halves between those of two runs, as a filter of texels takes them: a weight that the elements of
// a lane share, which chooses as well, and infinite ones.
TEST(EmitPacked, WhatElementsShareChoosesBetweenRuns) {
    std::string body = R"(
    %three:i32 = const 3
    %nothing:f32 = const 0.0
    %quarter:f32 = const 0.25
    %infinity:f32 = const 0x7f800000
    %at:i32 = shl %i, %three
    %behind:i32 = iadd %at, %eight
    %part:i32 = and %lx, %three
    %part_f:f32 = stof %part
    %w:f32 = fmul %part_f, %quarter
    %counts:bool = fune %w, %nothing
    %a0:i16, %a1:i16, %a2:i16, %a3:i16 = load_buffer %in, %at align(8)
    %b0:i16, %b1:i16, %b2:i16, %b3:i16 = load_buffer %in, %behind align(8)
)";
    for (const std::string k : {"0", "1", "2", "3"}) {
        body += "%ah" + k + ":f16 = bitcast %a" + k + "\n%af" + k + ":f32 = fconvert %ah" + k +
                "\n%bh" + k + ":f16 = bitcast %b" + k + "\n%bf" + k + ":f32 = fconvert %bh" + k +
                "\n%abs" + k + ":f32 = fabs %af" + k + "\n%fin" + k + ":bool = folt %abs" + k +
                ", %infinity\n%base" + k + ":f32 = select %fin" + k + ", %af" + k +
                ", %nothing\n%d" + k + ":f32 = fsub %bf" + k + ", %base" + k + "\n%r" + k +
                ":f32 = fma %w, %d" + k + ", %af" + k + "\n%c" + k + ":f32 = select %counts, %r" +
                k + ", %af" + k + "\n%h" + k + ":f16 = fconvert %c" + k + "\n%s" + k +
                ":i16 = bitcast %h" + k + "\n";
    }
    body += "store_buffer %out, %at, %s0, %s1, %s2, %s3 align(8)\nreturn\n";
    const ir::Kernel kernel = Parse("", body);
    const Result<RunnableKernel> native = RunnableKernel::Create(kernel, 16, "x86-64-v4");
    ASSERT_TRUE(native.ok());
    EXPECT_NE(native->optimized_llvm_ir().find("to <64 x half>"), std::string::npos);
    // 1, 2, 4, infinity, ... in the order of memory.
    constexpr uint16_t kHalves[] = {0x3c00, 0x4000, 0x4400, 0x7c00, 0x4800, 0x0000, 0xfc00};
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    constexpr float kValues[] = {1, 2, 4, kInfinity, 8, 0, -kInfinity};
    std::vector<uint32_t> words;
    for (uint32_t i = 0; i < 2 * 129; ++i) {
        words.push_back(kHalves[2 * i % 7] | uint32_t{kHalves[(2 * i + 1) % 7]} << 16);
    }
    const auto expected = [&](uint32_t i) {
        const uint32_t lane = i / 4 % 64;
        const float weight = static_cast<float>(lane % 4) / 4;
        const float first = kValues[i % 7];
        const float second = kValues[(i + 4) % 7];
        return weight == 0         ? first
               : std::isinf(first) ? weight * second + first
                                   : weight * (second - first) + first;
    };
    const auto value_of = [](uint16_t half) {
        const int exponent = half >> 10 & 31;
        const float fraction = static_cast<float>(half & 1023) / 1024;
        float value = exponent == 31  ? (fraction == 0 ? kInfinity : NAN)
                      : exponent == 0 ? std::ldexp(fraction, -14)
                                      : std::ldexp(1 + fraction, exponent - 15);
        return (half & 0x8000) != 0 ? -value : value;
    };
    ForEachWidth(kernel, {words, std::vector<uint32_t>(256, 7)}, Groups(2), [&](const Buffers& b) {
        for (uint32_t i = 0; i < 512; ++i) {
            const float value = value_of(static_cast<uint16_t>(b[1][i / 2] >> (i % 2 * 16)));
            const float wanted = expected(i);
            ASSERT_TRUE(value == wanted || (std::isnan(value) && std::isnan(wanted)))
                << i << ": " << value << " in place of " << wanted;
        }
    });
}

}  // namespace
}  // namespace fornax::kernel
