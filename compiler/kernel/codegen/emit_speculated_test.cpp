// Index arithmetic with divisions by sizes that are known at run time only, and the accesses that
// use it.
#include <gtest/gtest.h>

#include <limits>

#include "compiler/kernel/codegen/two_buffer_kernel.h"

namespace fornax::kernel {
namespace {

// out[i] = in[i % s * (count / s) + i / s], or with the roles of the two exchanged.
std::string Permutation(bool stores) {
    return std::string(R"(
    %four:i32 = const 4
    %n:i32 = load_push %four align(4)
    %inside:bool = ult %i, %n
    if %inside {
      %high:i32 = udiv %i, %s
      %whole:i32 = imul %high, %s
      %low:i32 = isub %i, %whole
      %eight:i32 = const 8
      %t0:i32 = load_push %eight align(4)
      %twelve:i32 = const 12
      %t1:i32 = load_push %twelve align(4)
      %p0:i32 = imul %high, %t0
      %p1:i32 = imul %low, %t1
      %p:i32 = iadd %p0, %p1
      %far:i32 = shl %p, %two
      %near:i32 = shl %i, %two
)") +
           (stores ? R"(
      %v:i32 = load_buffer %in, %near align(4)
      store_buffer %out, %far, %v align(4)
)"
                   : R"(
      %v:i32 = load_buffer %in, %far align(4)
      store_buffer %out, %near, %v align(4)
)") + R"(
      yield
    }
    return
)";
}

TEST(EmitSpeculated, RowsOfAnyLengthAndOrder) {
    struct Case {
        uint32_t row;         // elements
        uint32_t count;       // of invocations that do anything
        uint32_t strides[2];  // of the row's number, of the place in it
    };
    for (const char* attributes : {"workgroup_size(64, 1, 1) push_constants(16)",
                                   "workgroup_size(64, 1, 1) push_constants(16) robust"}) {
        for (const bool stores : {false, true}) {
            const ir::Kernel kernel =
                TwoBufferKernel(attributes, kInvocationsOf64, Permutation(stores));
            for (const Case& at :
                 {Case{64, 256, {64, 1}}, Case{100, 250, {100, 1}}, Case{16, 256, {1, 16}},
                  Case{7, 256, {9, 1}}, Case{64, 256, {96, 1}}, Case{1, 130, {1, 5}}}) {
                SCOPED_TRACE(testing::Message() << attributes << (stores ? ", stores" : ", loads")
                                                << ", rows of " << at.row);
                // Robust buffers are too short for some.
                const bool robust = kernel.robust_buffer_access;
                const uint32_t size = robust ? 200 : 512;
                const Buffers buffers = {Counting(size), std::vector<uint32_t>(size, 7)};
                std::vector<uint32_t> wanted = buffers[1];
                for (uint32_t i = 0; i < at.count; ++i) {
                    const uint32_t far = i / at.row * at.strides[0] + i % at.row * at.strides[1];
                    const uint32_t to = stores ? far : i;
                    const uint32_t from = stores ? i : far;
                    if (to < size) {
                        wanted[to] = from < size ? buffers[0][from] : 0;
                    }
                }
                ForEachWidth(kernel, buffers,
                             {.groups = {4, 1, 1},
                              .push_constants = {at.row, at.count, at.strides[0], at.strides[1]}},
                             [&](const Buffers& results) { ASSERT_EQ(results[1], wanted); });
            }
        }
    }
}

// Weights in blocks of 18 bytes, whose number is a sum shifted down: sums that are divisible, and
// such that do not.
TEST(EmitSpeculated, BlocksBehindASumThatIsShifted) {
    constexpr char kBody[] = R"(
    %three:i32 = const 3
    %seven:i32 = const 7
    %bytes:i32 = const 18
    %sum:i32 = iadd %i, %s
    %block:i32 = lshr %sum, %three
    %place:i32 = and %i, %seven
    %from0:i32 = imul %block, %bytes
    %from1:i32 = shl %place, %one
    %from2:i32 = iadd %from0, %from1
    %from:i32 = iadd %from2, %two
    %v:i16 = load_buffer %in, %from align(2)
    %w:i32 = zext %v
    %at:i32 = shl %i, %two
    store_buffer %out, %at, %w align(4)
    return
)";
    const ir::Kernel kernel =
        TwoBufferKernel("workgroup_size(64, 1, 1) push_constants(4) robust",
                        std::string(kInvocationsOf64) + "    %one:i32 = const 1\n", kBody);
    const std::vector<uint32_t> in = Counting(100, 0x01020304);
    for (const uint32_t sum : {0u, 8u, 64u, 3u, 70u, 0xfffffff8u, 0xfffffffdu}) {
        ForEachWidth(kernel, {in, std::vector<uint32_t>(128, 7)},
                     {.groups = {2, 1, 1}, .push_constants = {sum}}, [&](const Buffers& results) {
                         for (uint32_t i = 0; i < 128; ++i) {
                             const uint32_t from = (i + sum) / 8 * 18 + i % 8 * 2 + 2;
                             const uint32_t word = from < 400 ? in[from / 4] : 0;
                             ASSERT_EQ(results[1][i], word >> from % 4 * 8 & 0xffff)
                                 << i << " + " << sum;
                         }
                     });
    }
}

// Words of 32 bits that are loaded as halves, from blocks of 18 bytes with 16 of them: pieces of
// four lanes where the sum is divisible.
TEST(EmitSpeculated, HalvesOfWordsInBlocks) {
    constexpr char kBody[] = R"(
    %three:i32 = const 3
    %bytes:i32 = const 18
    %sixteen:i32 = const 16
    %sum:i32 = iadd %i, %s
    %block:i32 = lshr %sum, %two
    %place:i32 = and %i, %three
    %from0:i32 = imul %block, %bytes
    %from1:i32 = shl %place, %two
    %from2:i32 = iadd %from0, %from1
    %from:i32 = iadd %from2, %two
    %v:i16, %u:i16 = load_buffer %in, %from align(2)
    %low:i32 = zext %v
    %high0:i32 = zext %u
    %high:i32 = shl %high0, %sixteen
    %w:i32 = or %low, %high
    %at:i32 = shl %i, %two
    store_buffer %out, %at, %w align(4)
    return
)";
    for (const char* robust : {"", " robust"}) {
        const ir::Kernel kernel =
            TwoBufferKernel(std::string("workgroup_size(64, 1, 1) push_constants(4)") + robust,
                            kInvocationsOf64, kBody);
        const std::vector<uint32_t> in = Counting(*robust ? 100 : 400, 0x01020304);
        for (const uint32_t sum : {0u, 4u, 64u, 3u, 70u}) {
            ForEachWidth(
                kernel, {in, std::vector<uint32_t>(128, 7)},
                {.groups = {2, 1, 1}, .push_constants = {sum}}, [&](const Buffers& results) {
                    for (uint32_t i = 0; i < 128; ++i) {
                        const uint32_t from = (i + sum) / 4 * 18 + i % 4 * 4 + 2;
                        const auto half = [&](uint32_t at) {
                            return at < in.size() * 4 ? in[at / 4] >> at % 4 * 8 & 0xffff : 0;
                        };
                        ASSERT_EQ(results[1][i], half(from) | half(from + 2) << 16)
                            << i << " + " << sum;
                    }
                });
        }
    }
}

// Four words of each lane, those of eight lanes behind another header each: whole registers with
// gaps between them.
TEST(EmitSpeculated, WordsInBlocks) {
    constexpr char kBody[] = R"(
    %three:i32 = const 3
    %four:i32 = const 4
    %seven:i32 = const 7
    %sixteen:i32 = const 16
    %bytes:i32 = const 144
    %sum:i32 = iadd %i, %s
    %block:i32 = lshr %sum, %three
    %place:i32 = and %i, %seven
    %from0:i32 = imul %block, %bytes
    %from1:i32 = shl %place, %four
    %from2:i32 = iadd %from0, %from1
    %from:i32 = iadd %from2, %sixteen
    %a:i32, %b:i32, %c:i32, %d:i32 = load_buffer %in, %from align(4)
    %ab:i32 = isub %b, %a
    %t0:i32 = imul %ab, %seven
    %t1:i32 = iadd %t0, %c
    %t2:i32 = imul %t1, %seven
    %w:i32 = iadd %t2, %d
    %at:i32 = shl %i, %two
    store_buffer %out, %at, %w align(4)
    return
)";
    for (const char* robust : {"", " robust"}) {
        const ir::Kernel kernel =
            TwoBufferKernel(std::string("workgroup_size(64, 1, 1) push_constants(4)") + robust,
                            kInvocationsOf64, kBody);
        std::vector<uint32_t> in = Counting(*robust ? 300 : 1000);
        for (uint32_t& word : in) {
            word *= word;
        }
        for (const uint32_t sum : {0u, 8u, 64u, 3u, 70u}) {
            ForEachWidth(
                kernel, {in, std::vector<uint32_t>(128, 7)},
                {.groups = {2, 1, 1}, .push_constants = {sum}}, [&](const Buffers& results) {
                    for (uint32_t i = 0; i < 128; ++i) {
                        const uint32_t from = (i + sum) / 8 * 36 + i % 8 * 4 + 4;
                        const auto word = [&](uint32_t at) { return at < in.size() ? in[at] : 0; };
                        const uint32_t wanted =
                            ((word(from + 1) - word(from)) * 7 + word(from + 2)) * 7 +
                            word(from + 3);
                        ASSERT_EQ(results[1][i], wanted) << i << " + " << sum;
                    }
                });
        }
    }
}

uint32_t Pos(uint32_t i, uint32_t s) {
    return (i >> 4) * s + (i & 15);
}

// What each operation needs for an assumption about its operands to hold for its result: with sums
// that fulfil it and such that do not, the lanes load from where they should.
TEST(EmitSpeculated, EveryRule) {
    struct Rule {
        const char* code;  // computes %word:i32 of %i and %s
        uint32_t (*word)(uint32_t i, uint32_t s);
    };
    constexpr Rule kRules[] = {
        {"%a:i32 = iadd %i, %s %b:i32 = lshr %a, %two %word:i32 = iadd %b, %i",
         [](uint32_t i, uint32_t s) { return ((i + s) >> 2) + i; }},
        {"%a:i32 = iadd %i, %s %b:i32 = ashr %a, %two %word:i32 = iadd %b, %i",
         [](uint32_t i, uint32_t s) {
             return static_cast<uint32_t>(static_cast<int32_t>(i + s) >> 2) + i;
         }},
        {"%a:i32 = iadd %i, %s %k:i32 = const 15 %word:i32 = and %a, %k",
         [](uint32_t i, uint32_t s) { return (i + s) & 15; }},
        {"%a:i32 = iadd %i, %s %k:i32 = const 20 %word:i32 = and %a, %k",
         [](uint32_t i, uint32_t s) { return (i + s) & 20; }},
        {"%k:i32 = const 3 %a:i32 = and %i, %k %b:i32 = iadd %i, %s %c:i32 = lshr %b, %two "
         "%d:i32 = shl %c, %two %word:i32 = or %d, %a",
         [](uint32_t i, uint32_t s) { return ((i + s) >> 2 << 2) | (i & 3); }},
        {"%k:i32 = const 3 %a:i32 = and %i, %k %word:i32 = or %s, %a",
         [](uint32_t i, uint32_t s) { return s | (i & 3); }},
        {"%k:i32 = const 7 %a:i32 = and %i, %k %word:i32 = xor %a, %s",
         [](uint32_t i, uint32_t s) { return (i & 7) ^ s; }},
        {"%a:i32 = iadd %i, %s %k:i32 = const 5 %word:i32 = udiv %a, %k",
         [](uint32_t i, uint32_t s) { return (i + s) / 5; }},
        {"%a:i32 = iadd %i, %s %k:i32 = const 48 %word:i32 = urem %a, %k",
         [](uint32_t i, uint32_t s) { return (i + s) % 48; }},
        {"%a:i32 = iadd %i, %s %k:i32 = const 48 %word:i32 = srem %a, %k",
         [](uint32_t i, uint32_t s) {
             return static_cast<uint32_t>(static_cast<int32_t>(i + s) % 48);
         }},
        {"%a:i32 = iadd %i, %s %k:i32 = const 48 %word:i32 = sdiv %a, %k",
         [](uint32_t i, uint32_t s) {
             return static_cast<uint32_t>(static_cast<int32_t>(i + s) / 48);
         }},
        // Divisors below 0, which are large numbers without a sign.
        {"%k:i32 = const 0xfffffffc %a:i32 = sdiv %i, %k %c:i32 = const 40 %b:i32 = iadd %a, %i "
         "%d:i32 = iadd %b, %c %word:i32 = iadd %d, %s",
         [](uint32_t i, uint32_t s) { return i - i / 4 + 40 + s; }},
        {"%k:i32 = const 0xfffffffc %a:i32 = srem %i, %k %word:i32 = iadd %a, %s",
         [](uint32_t i, uint32_t s) { return i % 4 + s; }},
        {"%k:i32 = iadd %s, %two %a:i32 = udiv %i, %k %word:i32 = iadd %a, %i",
         [](uint32_t i, uint32_t s) { return s + 2 == 0 ? UINT32_MAX : i / (s + 2) + i; }},
        {"%k:i32 = iadd %s, %two %word:i32 = urem %i, %k",
         [](uint32_t i, uint32_t s) { return s + 2 == 0 ? UINT32_MAX : i % (s + 2); }},
        {"%a:i32 = iadd %i, %s %b:i32 = lshr %a, %two %c:i32 = imul %b, %s "
         "%word:i32 = iadd %c, %i",
         [](uint32_t i, uint32_t s) { return ((i + s) >> 2) * s + i; }},
        {"%a:i32 = iadd %i, %s %b:i16 = trunc %a %c:i32 = zext %b %word:i32 = lshr %c, %two",
         [](uint32_t i, uint32_t s) { return ((i + s) & 0xffff) >> 2; }},
        {"%a:i32 = iadd %i, %s %b:i16 = trunc %a %c:i32 = sext %b %word:i32 = iadd %c, %two",
         [](uint32_t i, uint32_t s) {
             return static_cast<uint32_t>(static_cast<int16_t>(i + s)) + 2;
         }},
        {"%k:i32 = const 9 %a:i32 = lshr %i, %two %b:i32 = isub %s, %a %c:i32 = iadd %b, %k "
         "%word:i32 = lshr %c, %two",
         [](uint32_t i, uint32_t s) { return (s - (i >> 2) + 9) >> 2; }},
        {"%a:i32 = iadd %i, %s %b:i32 = lshr %a, %two %c:bool = ult %s, %two "
         "%word:i32 = select %c, %b, %i",
         [](uint32_t i, uint32_t s) { return s < 2 ? (i + s) >> 2 : i; }},
        // Positions that go through floats and come back as they were, or halved.
        {"%f:f32 = stof %i %h:f32 = const 1.5 %g:f32 = fadd %f, %h %l:f32 = floor %g "
         "%m:i32 = ftos %l %word:i32 = iadd %m, %s",
         [](uint32_t i, uint32_t s) { return i + 1 + s; }},
        {"%f:f32 = utof %i %h:f32 = const 0.5 %z:f32 = const 0.0 %g:f32 = fma %f, %h, %z "
         "%m:i32 = ftou %g %word:i32 = iadd %m, %s",
         [](uint32_t i, uint32_t s) { return i / 2 + s; }},
        {"%f:f32 = stof %i %h:f32 = const 0.25 %g:f32 = fmul %f, %h %d:f32 = fdiv %g, %h "
         "%e:f32 = fsub %d, %h %m:i32 = ftos %e %n:i32 = smax %m, %two %k:i32 = const 40 "
         "%o2:i32 = smin %n, %k %word:i32 = iadd %o2, %s",
         [](uint32_t i, uint32_t s) { return std::clamp(i == 0 ? 0u : i - 1, 2u, 40u) + s; }},
        // A float that all lanes read alike, if they divide alike.
        {"%k:i32 = iadd %s, %two %q:i32 = udiv %i, %k %o4:i32 = and %q, %one %o5:i32 = shl %o4, "
         "%two "
         "%l:i32 = load_buffer %in, %o5 align(4) %x:f32 = utof %l %c:f32 = const 0.0 "
         "%g:f32 = fmul %x, %c %m:i32 = ftou %g %word:i32 = iadd %m, %i",
         [](uint32_t i, uint32_t s) { return s + 2 == 0 ? UINT32_MAX : i; }},
        {"%k:i32 = iadd %s, %two %q:i32 = udiv %i, %k %o4:i32 = and %q, %one %o5:i32 = shl %o4, "
         "%two "
         "%x:f32 = load_buffer %in, %o5 align(4) %m:i32 = ftou %x %word:i32 = iadd %m, %i",
         [](uint32_t i, uint32_t s) { return s + 2 == 0 ? UINT32_MAX : i; }},
        {"%a:i32 = umin %i, %s %word:i32 = umax %a, %two",
         [](uint32_t i, uint32_t s) { return std::max(std::min(i, s), 2u); }},
        {"%k:i32 = const 48 %a:i32 = smod %i, %k %word:i32 = iadd %a, %s",
         [](uint32_t i, uint32_t s) { return i % 48 + s; }},
        // Rows of 16 lanes, each a stride away.
        {"%p:i32 = lshr %pos, %two %k:i32 = const 3 %q:i32 = and %pos, %k %f:i32 = const 5 "
         "%m:i32 = imul %p, %f %word:i32 = iadd %m, %q",
         [](uint32_t i, uint32_t s) { return (Pos(i, s) >> 2) * 5 + (Pos(i, s) & 3); }},
        {"%k:i32 = const 3 %word:i32 = udiv %pos, %k",
         [](uint32_t i, uint32_t s) { return Pos(i, s) / 3; }},
        {"%k:i32 = const 48 %a:i32 = sdiv %pos, %k %b:i32 = srem %pos, %k %word:i32 = iadd %a, %b",
         [](uint32_t i, uint32_t s) {
             const auto pos = static_cast<int32_t>(Pos(i, s));
             return static_cast<uint32_t>(pos / 48 + pos % 48);
         }},
        {"%a:i32 = shl %pos, %two %k:i32 = const 3 %b:i32 = lshr %a, %k %c:i32 = lshr %pos, %two "
         "%d:i32 = shl %c, %one %word:i32 = iadd %b, %d",
         [](uint32_t i, uint32_t s) { return (Pos(i, s) << 2 >> 3) + (Pos(i, s) >> 2 << 1); }},
        {"%a:i16 = trunc %pos %b:i32 = zext %a %word:i32 = lshr %b, %two",
         [](uint32_t i, uint32_t s) { return (Pos(i, s) & 0xffff) >> 2; }},
        {"%a:i16 = trunc %pos %b:i32 = sext %a %c:i32 = ashr %b, %two %word:i32 = isub %c, %s",
         [](uint32_t i, uint32_t s) {
             return static_cast<uint32_t>(static_cast<int16_t>(Pos(i, s)) >> 2) - s;
         }},
        {"%k:i32 = const 6 %a:i32 = iadd %pos, %k %b:i32 = lshr %a, %two %word:i32 = xor %b, %one",
         [](uint32_t i, uint32_t s) { return ((Pos(i, s) + 6) >> 2) ^ 1; }},
        {"%k:i32 = const 20 %a:i32 = and %pos, %k %b:i32 = lshr %pos, %two "
         "%word:i32 = isub %b, %a",
         [](uint32_t i, uint32_t s) { return (Pos(i, s) >> 2) - (Pos(i, s) & 20); }},
    };
    // A workgroup for each sum.
    const std::vector<uint32_t> sums = {
        0,           1,           2,           3,           4,           16,         48,
        61,          64,          96,          0xffc0u,     0xfff8u,     0x7ff8u,    0x7fffffc0u,
        0x7ffffff0u, 0x80000000u, 0xfffffff8u, 0xfffffffeu, 0xffffffffu, 0x40000008u};
    const auto count = static_cast<uint32_t>(sums.size());
    constexpr uint32_t kSize = 256;
    const std::vector<uint32_t> in = Counting(kSize, 0x01020304);
    for (const Rule& rule : kRules) {
        const ir::Kernel kernel =
            TwoBufferKernel("workgroup_size(64, 1, 1) push_constants(80) robust", R"(
    %wx:i32 = builtin workgroup_id_x
    %i:i32 = builtin local_index
    %six:i32 = const 6
    %first:i32 = shl %wx, %six
    %o:i32 = iadd %first, %i
    %which:i32 = shl %wx, %two
    %s:i32 = load_push %which align(4)
    %n4:i32 = const 4
    %fifteen:i32 = const 15
    %row:i32 = lshr %i, %n4
    %column:i32 = and %i, %fifteen
    %start:i32 = imul %row, %s
    %pos:i32 = iadd %start, %column
    %one:i32 = const 1
)",
                            std::string(rule.code) + R"(
    %from:i32 = shl %word, %two
    %v:i32 = load_buffer %in, %from align(4)
    %at:i32 = shl %o, %two
    store_buffer %out, %at, %v align(4)
    return
)");
        ForEachWidth(kernel, {in, std::vector<uint32_t>(64 * count, 7)},
                     {.groups = {count, 1, 1}, .push_constants = sums},
                     [&](const Buffers& results) {
                         for (uint32_t o = 0; o < 64 * count; ++o) {
                             const uint32_t word = rule.word(o % 64, sums[o / 64]);
                             if (word == UINT32_MAX) {
                                 continue;  // divided by 0
                             }
                             // Offsets have 32 bits.
                             const uint32_t place = word << 2 >> 2;
                             ASSERT_EQ(results[1][o], place < kSize ? in[place] : 0)
                                 << rule.code << ", " << o % 64 << " and " << sums[o / 64];
                         }
                     });
    }
}

// Rows of blocks of 18 bytes, 8 lanes each, whose stride is known at run time only: read from such
// blocks, and written to others.
TEST(EmitSpeculated, RowsOfBlocks) {
    constexpr char kBody[] = R"(
    %one:i32 = const 1
    %three:i32 = const 3
    %seven:i32 = const 7
    %bytes:i32 = const 18
    %row:i32 = lshr %li, %three
    %column:i32 = and %li, %seven
    %start:i32 = imul %row, %s
    %pos:i32 = iadd %start, %column
    %block:i32 = lshr %pos, %three
    %place:i32 = and %pos, %seven
    %from0:i32 = imul %block, %bytes
    %from1:i32 = shl %place, %one
    %from2:i32 = iadd %from0, %from1
    %from:i32 = iadd %from2, %two
    %v:i16 = load_buffer %in, %from align(2)
    store_buffer %out, %from, %v align(2)
    return
)";
    constexpr uint32_t kWords = 300;
    const ir::Kernel kernel = TwoBufferKernel("workgroup_size(64, 1, 1) push_constants(4) robust",
                                              kInvocationsOf64, kBody);
    const std::vector<uint32_t> in = Counting(kWords, 0x01020304);
    for (const uint32_t stride : {8u, 16u, 64u, 96u, 9u, 30u, 120u, 0x80000000u, 0xfffffff8u}) {
        std::vector<uint32_t> expected(kWords, 7);
        auto* to = reinterpret_cast<uint16_t*>(expected.data());
        for (uint32_t i = 0; i < 64; ++i) {
            const uint32_t pos = i / 8 * stride + i % 8;
            const uint64_t half = uint64_t{pos / 8} * 9 % (uint64_t{1} << 31) + 1 + pos % 8;
            if (half < kWords * 2) {
                to[half] = reinterpret_cast<const uint16_t*>(in.data())[half];
            }
        }
        ForEachWidth(kernel, {in, std::vector<uint32_t>(kWords, 7)}, {.push_constants = {stride}},
                     [&](const Buffers& results) { ASSERT_EQ(results[1], expected) << stride; });
    }
}

// A loop that takes two steps at a time, and the step that may be left: lanes have as many steps as
// each other or one more, and are then at places of their own.
TEST(EmitSpeculated, WhatALoopLeftOver) {
    const ir::Kernel kernel =
        TwoBufferKernel("workgroup_size(64, 1, 1) push_constants(8) robust", kInvocationsOf64, R"(
    %one:i32 = const 1
    %four:i32 = const 4
    %stride:i32 = const 128
    %minus2:i32 = const -2
    %longer:i32 = load_push %four align(4)
    %more:bool = ult %li, %longer
    %extra:i32 = select %more, %one, %zero
    %turns:i32 = iadd %s, %extra
    %at:i32, %left:i32, %sum:i32 = loop @1 (%k:i32 = %li, %t:i32 = %turns, %v:i32 = %zero) {
      %c:bool = ule %two, %t
      if %c {
        yield
      } else {
        exit @1 %k, %t, %v
      }
      %o:i32 = shl %k, %two
      %x:i32 = load_buffer %in, %o align(4)
      %w:i32 = iadd %v, %x
      %k1:i32 = iadd %k, %stride
      %t1:i32 = iadd %t, %minus2
      continue @1 %k1, %t1, %w
    } continuing (%p:i32, %q:i32, %r:i32) {
      next %p, %q, %r
    }
    %d:bool = ine %left, %zero
    %all:i32 = if %d {
      %o1:i32 = shl %at, %two
      %y:i32 = load_buffer %in, %o1 align(4)
      %z:i32 = iadd %sum, %y
      yield %z
    } else {
      yield %sum
    }
    %to:i32 = shl %li, %two
    store_buffer %out, %to, %all align(4)
    return
)");
    const Result<RunnableKernel> native = RunnableKernel::Create(kernel, 16);
    ASSERT_TRUE(native.ok()) << native.error().message;
    EXPECT_NE(native->llvm_ir().find("load_speculated"), std::string::npos) << native->llvm_ir();
    const std::vector<uint32_t> in = Counting(64 * 6);
    for (const uint32_t steps : {0u, 1u, 4u, 5u}) {
        for (const uint32_t longer : {0u, 1u, 20u, 63u, 64u}) {
            ForEachWidth(kernel, {in, std::vector<uint32_t>(64, 7)},
                         {.push_constants = {steps, longer}}, [&](const Buffers& results) {
                             for (uint32_t i = 0; i < 64; ++i) {
                                 const uint32_t own = steps + (i < longer ? 1 : 0);
                                 uint32_t sum = own % 2 == 0 ? 0 : in[i + own / 2 * 128];
                                 for (uint32_t k = 0; k < own / 2; ++k) {
                                     sum += in[i + k * 128];
                                 }
                                 ASSERT_EQ(results[1][i], sum) << i << ", " << steps << " steps";
                             }
                         });
        }
    }
}

// A shift that is out of range in lanes that are not in use: at compile time, where the vector is
// wider than the workgroup. A branch on it is taken all the same.
// The lanes' part of an offset comes out of a table, or is an operation's second result: what lanes
// share is no arithmetic of what their places share.
TEST(EmitSpeculated, PlacesOutOfTables) {
    for (const char* place :
         {"%t:i32 = load_constant %place align(4)", "%t:i32 = load_push %behind align(4)",
          "%low:i32, %t:i32 = umul_extended %which, %large"}) {
        ir::Kernel kernel = TwoBufferKernel("workgroup_size(64, 1, 1) push_constants(20)",
                                            kInvocationsOf64, std::string(R"(
    %four:i32 = const 4
    %three:i32 = const 3
    %large:i32 = const 2147483648
    %row:i32 = udiv %i, %s
    %which:i32 = and %row, %three
    %place:i32 = shl %which, %two
    %behind:i32 = iadd %place, %four
    )") + place + R"(
    %column:i32 = and %t, %three
    %byte:i32 = shl %column, %two
    %at:i32 = shl %i, %two
    %from:i32 = iadd %at, %byte
    %w:i32 = load_buffer %in, %from align(4)
    store_buffer %out, %at, %w align(4)
    return
)");
        // By which: the high word of which times 2^31.
        kernel.constant_data = {0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0};
        for (const uint32_t row : {64U, 1U, 3U}) {
            const Buffers buffers = {Counting(256), std::vector<uint32_t>(128)};
            ForEachWidth(kernel, buffers,
                         {.groups = {2, 1, 1}, .push_constants = {row, 0, 0, 1, 1}},
                         [&](const Buffers& results) {
                             for (uint32_t i = 0; i < 128; ++i) {
                                 ASSERT_EQ(results[1][i], 100 + i + i / row % 4 / 2)
                                     << place << ", rows of " << row;
                             }
                         });
        }
    }
}

// A row that only one workgroup reads is prefetched for the next one, into the second cache. A row
// that all of them read is not.
TEST(EmitSpeculated, RowsOfTheNextWorkgroupGoToTheSecondCache) {
    auto llvm_ir = [](const std::string& row) {
        const ir::Kernel kernel =
            TwoBufferKernel("workgroup_size(64, 1, 1) push_constants(8)", kInvocationsOf64, R"(
    %high:i32 = udiv %li, %s
    %whole:i32 = imul %high, %s
    %low:i32 = isub %li, %whole
    %four:i32 = const 4
    %stride:i32 = load_push %four align(4)
    %start:i32 = imul %high, %stride
    %place:i32 = iadd %start, %low
    %at:i32 = iadd %place, )" + row + R"(
    %far:i32 = shl %at, %two
    %near:i32 = shl %i, %two
    %v:i32 = load_buffer %in, %far align(4)
    store_buffer %out, %near, %v align(4)
    return
)");
        const Result<RunnableKernel> native = RunnableKernel::Create(kernel, 16);
        return native.ok() ? native->llvm_ir() : native.error().message;
    };
    const std::string to_all = ", i32 0, i32 3, i32 1)";
    const std::string to_second = ", i32 0, i32 2, i32 1)";
    const std::string own = llvm_ir("%first");
    EXPECT_NE(own.find(to_second), std::string::npos) << own;
    EXPECT_EQ(own.find(to_all), std::string::npos) << own;
    const std::string shared = llvm_ir("%zero");
    EXPECT_NE(shared.find("load_speculated"), std::string::npos) << shared;
    EXPECT_EQ(shared.find(to_second), std::string::npos) << shared;
    EXPECT_EQ(shared.find(to_all), std::string::npos) << shared;
}

TEST(EmitSpeculated, LanesThatAreNotInUseDecideNothing) {
    const ir::Kernel kernel = TwoBufferKernel(
        "workgroup_size(32, 1, 1) subgroup_size(64) push_constants(4)", kInvocationsOf64, R"(
    %none:i32 = lshr %li, %li
    %at:i32 = shl %li, %two
    switch %none default {
      store_buffer %out, %at, %li align(4)
      yield
    } case 2 {
      store_buffer %out, %at, %two align(4)
      yield
    }
    %all:i32 = subgroup_reduce iadd, %li
    return
)");
    const Result<RunnableKernel> widest = RunnableKernel::Create(kernel, 64);
    ASSERT_TRUE(widest.ok()) << widest.error().message;
    EXPECT_EQ(widest->llvm_ir().find("i1 poison,"), std::string::npos) << widest->llvm_ir();
    ForEachWidth(kernel, {Counting(32), std::vector<uint32_t>(32, 77)}, {},
                 [&](const Buffers& results) {
                     for (uint32_t i = 0; i < 32; ++i) {
                         ASSERT_EQ(results[1][i], i);
                     }
                 });
}

}  // namespace
}  // namespace fornax::kernel
