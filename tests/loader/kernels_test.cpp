// Kernels through the loader whose results are exact: built-in ids, control flow, integer
// functions, shared memory and atomics, each compared with a reference on the host.
#include <algorithm>
#include <array>
#include <bit>
#include <random>

#include "tests/loader/shaders/atomics.spv.h"
#include "tests/loader/shaders/barrier_branches.spv.h"
#include "tests/loader/shaders/barrier_ends.spv.h"
#include "tests/loader/shaders/barrier_returns.spv.h"
#include "tests/loader/shaders/builtin_ids.spv.h"
#include "tests/loader/shaders/control.spv.h"
#include "tests/loader/shaders/integers.spv.h"
#include "tests/loader/shaders/one_row.spv.h"
#include "tests/loader/shaders/shared_sums.spv.h"
#include "tests/loader/shaders/shared_tiles.spv.h"
#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

namespace control {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wimplicit-fallthrough"
using uint = uint32_t;
#include "tests/loader/shaders/control_functions.glsl"
#pragma GCC diagnostic pop
}  // namespace control

using KernelsTest = VulkanTest;

void FillRandomly(const TestBuffer& buffer, uint32_t seed) {
    std::mt19937 random(seed);
    for (uint32_t& word : buffer.span()) {
        word = static_cast<uint32_t>(random());
    }
}

TEST_F(KernelsTest, EveryInvocationSeesItsIds) {
    constexpr uint32_t kSizes[][3] = {{7, 3, 2},  {24, 5, 1},   {1, 1, 1}, {33, 1, 1},
                                      {3, 5, 64}, {1024, 1, 1}, {1, 17, 1}};
    constexpr uint32_t kGroups[3] = {2, 3, 2};
    for (const auto& size : kSizes) {
        SCOPED_TRACE(testing::Message() << size[0] << "x" << size[1] << "x" << size[2]);
        const VkSpecializationMapEntry entries[] = {{0, 0, 4}, {1, 4, 4}, {2, 8, 4}};
        const VkSpecializationInfo sizes{3, entries, sizeof(size), size};
        const uint32_t in_group = size[0] * size[1] * size[2];
        std::array buffers = {MakeBuffer(size_t{in_group} * 12 * 16)};
        TestPipeline pipeline = MakePipeline(spirv::kBuiltinIds, buffers, &sizes);
        Run(pipeline, kGroups[0], kGroups[1], kGroups[2]);
        for (uint32_t slot = 0; slot < in_group * 12; ++slot) {
            const uint32_t index = slot % in_group;
            const uint32_t group = slot / in_group;
            const uint32_t local[] = {index % size[0], index / size[0] % size[1],
                                      index / size[0] / size[1]};
            const uint32_t groups[] = {group % 2, group / 2 % 3, group / 6};
            const std::array expected = {groups[0] * size[0] + local[0],
                                         groups[1] * size[1] + local[1],
                                         groups[2] * size[2] + local[2],
                                         index,
                                         local[0],
                                         local[1],
                                         local[2],
                                         in_group,
                                         groups[0],
                                         groups[1],
                                         groups[2],
                                         size[1],
                                         kGroups[0],
                                         kGroups[1],
                                         kGroups[2],
                                         1u};
            for (uint32_t i = 0; i < 16; ++i) {
                ASSERT_EQ(buffers[0].words[slot * 16 + i], expected[i])
                    << "word " << i << " of invocation " << slot;
            }
        }
    }
}

TEST_F(KernelsTest, ControlFlowIsTheHosts) {
    constexpr uint32_t kInvocations = 60 * 20;
    std::array buffers = {MakeBuffer(kInvocations * (CONTROL_FUNCTIONS + 1))};
    Run(MakePipeline(spirv::kControl, buffers), 20);
    const uint32_t* result = buffers[0].words;
    for (uint32_t i = 0; i < kInvocations; ++i) {
        for (uint32_t which = 0; which < CONTROL_FUNCTIONS; ++which) {
            ASSERT_EQ(result[i * CONTROL_FUNCTIONS + which], control::Control(which, i))
                << "function " << which << " of " << i;
        }
        const uint32_t mixed = i % CONTROL_FUNCTIONS;
        ASSERT_EQ(result[kInvocations * CONTROL_FUNCTIONS + i], control::Control(mixed, i))
            << "diverging function " << mixed << " of " << i;
    }
}

uint32_t LowBits(uint32_t bits) {
    return bits >= 32 ? ~0u : (1u << bits) - 1;
}

// The record that integers.comp writes for a pair.
std::array<uint32_t, 32> IntegerRecord(uint32_t a, uint32_t b) {
    const auto sa = static_cast<int32_t>(a);
    const auto sb = static_cast<int32_t>(b);
    const auto word = [](int64_t value) { return static_cast<uint32_t>(value); };
    const bool overflows = a == 0x80000000u && sb == -1;
    const uint32_t offset = b & 31;
    const uint32_t bits = (b >> 5) % (33 - offset);
    const uint32_t field = a >> offset & LowBits(bits);
    const uint32_t mask = LowBits(bits) << offset;
    const bool negative_field = bits > 0 && (field >> (bits - 1) & 1);
    uint32_t reversed = 0;
    for (uint32_t i = 0; i < 32; ++i) {
        reversed |= (a >> i & 1) << (31 - i);
    }
    const uint64_t product = uint64_t{a} * b;
    const int64_t signed_product = int64_t{sa} * sb;
    const int32_t sign = (sa > 0) - (sa < 0);
    return {
        b ? a / b : 0,
        b ? a % b : 0,
        sb && !overflows ? word(sa / sb) : 0,
        sa >= 0 && sb > 0 ? word(sa % sb) : 0,
        word(std::popcount(a)),
        a ? word(std::countr_zero(a)) : ~0u,
        word(31 - std::countl_zero(a)),
        word(31 - std::countl_zero(sa < 0 ? ~a : a)),
        field,
        negative_field ? field | ~LowBits(bits) : field,
        (a & ~mask) | (b << offset & mask),
        reversed,
        a + b,
        word((uint64_t{a} + b) >> 32),
        a - b,
        a < b ? 1u : 0u,
        word(static_cast<int64_t>(product >> 32)),
        static_cast<uint32_t>(product),
        word(signed_product >> 32),
        word(signed_product),
        a << (b & 31),
        a >> (b & 31),
        word(sa >> (b & 31)),
        // The absolute value of the least integer is itself.
        word(sign * 4 + (sa >= 0 || a == 0x80000000u ? 1 : 0)),
        std::min(a, b),
        std::max(a, b),
        word(std::min(sa, sb)),
        word(std::max(sa, sb)),
        std::clamp(a, 5u, 0x80000001u),
        word(std::clamp(sa, -7, 0x7ffffffe)),
        uint32_t{a < b} | uint32_t{a <= b} << 1 | uint32_t{sa < sb} << 2 | uint32_t{sa >= sb} << 3 |
            uint32_t{a == b} << 4,
        a << 31 | ~a >> 1,
    };
}

TEST_F(KernelsTest, IntegerFunctionsAreExact) {
    std::vector<uint32_t> values = {
        0,          1,           2,           3,           5,           7,           31,
        32,         63,          255,         256,         1000,        0x7fff,      0x8000,
        0xffff,     0x10000,     0x3fffffff,  0x40000000,  0x7ffffffe,  0x7fffffff,  0x80000000,
        0x80000001, 0xaaaaaaaau, 0xfffffff0u, 0xfffffffdu, 0xfffffffeu, 0xffffffffu, 0x12345678};
    std::mt19937 random(2);
    for (int i = 0; i < 37; ++i) {
        values.push_back(static_cast<uint32_t>(random()) >> (i % 31));
    }
    const size_t count = values.size() * values.size();
    std::array buffers = {MakeBuffer(count * 2), MakeBuffer(count * 32)};
    for (size_t i = 0; i < count; ++i) {
        buffers[0].words[i * 2] = values[i / values.size()];
        buffers[0].words[i * 2 + 1] = values[i % values.size()];
    }
    Run(MakePipeline(spirv::kIntegers, buffers), static_cast<uint32_t>(count + 63) / 64);
    for (size_t i = 0; i < count; ++i) {
        const uint32_t a = buffers[0].words[i * 2];
        const uint32_t b = buffers[0].words[i * 2 + 1];
        const std::array expected = IntegerRecord(a, b);
        for (size_t j = 0; j < expected.size(); ++j) {
            ASSERT_EQ(buffers[1].words[i * 32 + j], expected[j])
                << "member " << j << " of " << a << " and " << b;
        }
    }
}

TEST_F(KernelsTest, SumsThroughSharedMemory) {
    constexpr uint32_t kGroups = 9;
    std::array buffers = {MakeBuffer(kGroups * 256), MakeBuffer(kGroups),
                          MakeBuffer(kGroups * 256)};
    FillRandomly(buffers[0], 3);
    Run(MakePipeline(spirv::kSharedSums, buffers), kGroups);
    for (uint32_t group = 0; group < kGroups; ++group) {
        uint32_t sum = 0;
        for (uint32_t i = group * 256; i < (group + 1) * 256; ++i) {
            sum += buffers[0].words[i];
            ASSERT_EQ(buffers[2].words[i], sum) << i;
        }
        ASSERT_EQ(buffers[1].words[group], sum) << group;
    }
}

// Legal: where invocations go different ways, none meets the barrier inside.
TEST_F(KernelsTest, BranchesThatHoldABarrierMayGoDifferentWays) {
    constexpr uint32_t kSize = 64;
    constexpr uint32_t kGroups = 4;
    std::array buffers = {MakeBuffer(kGroups * kSize), MakeBuffer(kGroups * kSize),
                          MakeBuffer(kGroups * kSize)};
    auto outer = buffers[0].span();
    auto inner = buffers[1].span();
    for (uint32_t i = 0; i < kGroups * kSize; ++i) {
        const uint32_t group = i / kSize;
        outer[i] = group == 0 ? i % 3 : group == 1 ? 1 : group == 2 ? 2 : i / 32 % 2;
        inner[i] = group == 1 || group == 2 ? 7 * i : 0;
    }
    Run(MakePipeline(spirv::kBarrierBranches, buffers), kGroups);
    for (uint32_t i = 0; i < kGroups * kSize; ++i) {
        const uint32_t group = i / kSize;
        const uint32_t mirrored = group * kSize + kSize - 1 - i % kSize;
        const uint32_t way = outer[i];
        uint32_t expected = 0;
        for (uint32_t round = 0; round < 3; ++round) {
            uint32_t value = way == 0 ? 1000 + i : 2000 * way + i;
            if (inner[mirrored] != 0) {
                value = way * inner[mirrored] + round;
            }
            expected = 3 * expected + value;
        }
        ASSERT_EQ(buffers[2].words[i], expected) << "invocation " << i << " of group " << group;
    }
}

TEST_F(KernelsTest, EarlyReturnsBetweenBarriers) {
    constexpr uint32_t kGroups = 4;
    constexpr uint32_t kSize = 96;
    std::array buffers = {MakeBuffer(kGroups), MakeBuffer(kGroups * kSize),
                          MakeBuffer(kGroups * kSize)};
    FillRandomly(buffers[1], 5);
    for (uint32_t group = 0; group < kGroups; ++group) {
        buffers[0].words[group] = group;
    }
    // Words without low bits, whose invocations do not return early.
    for (uint32_t i = 0; i < kGroups * kSize; i += 3) {
        buffers[1].words[i] &= ~0xffu;
    }
    Run(MakePipeline(spirv::kBarrierReturns, buffers), kGroups);
    for (uint32_t group = 0; group < kGroups; ++group) {
        const uint32_t* words = buffers[1].words + size_t{group} * kSize;
        std::array<uint32_t, kSize> sums;
        std::copy_n(words, kSize, sums.begin());
        for (uint32_t round = 0; round < group; ++round) {
            const std::array<uint32_t, kSize> before = sums;
            for (uint32_t l = 0; l < kSize; ++l) {
                sums[l] = 3 * before[l] + before[(l + 7) % kSize];
            }
        }
        std::array<uint32_t, kSize> found;
        for (uint32_t l = 0; l < kSize; ++l) {
            const uint32_t looked_at = sums[l] & ((2u << ((l & 3) + 4)) - 1);
            found[l] = looked_at == 0
                           ? ~sums[l]
                           : sums[l] + static_cast<uint32_t>(std::countr_zero(looked_at));
        }
        for (uint32_t l = 0; l < kSize; ++l) {
            ASSERT_EQ(buffers[2].words[group * kSize + l], found[l] ^ found[kSize - 1 - l])
                << "invocation " << l << " of group " << group;
        }
    }
}

TEST_F(KernelsTest, InvocationsThatAreDoneCountAsArrivedAtBarriers) {
    constexpr uint32_t kSize = 64;
    constexpr std::array<uint32_t, 6> kLengths = {kSize, 40, 1, 0, 33, 17};
    std::array buffers = {MakeBuffer(kLengths.size()), MakeBuffer(kLengths.size() * kSize),
                          MakeBuffer(kLengths.size() * kSize)};
    std::ranges::copy(kLengths, buffers[0].words);
    FillRandomly(buffers[1], 6);
    Run(MakePipeline(spirv::kBarrierEnds, buffers), kLengths.size());
    for (uint32_t group = 0; group < kLengths.size(); ++group) {
        const uint32_t* words = buffers[1].words + size_t{group} * kSize;
        const uint32_t first = kSize - kLengths[group];  // the ones before are done
        std::array<uint32_t, kSize> sums = {};
        std::copy(words + first, words + kSize, sums.begin() + first);
        for (uint32_t step = kSize / 2; step > 0; step /= 2) {
            const std::array<uint32_t, kSize> before = sums;
            for (uint32_t l = first; l < kSize; ++l) {
                sums[l] = l < step ? before[l] + before[l + step] : before[l] ^ step;
            }
        }
        const uint32_t before = sums[kSize - 1];
        sums[kSize - 1] = words[kSize - 1] + 1;
        for (uint32_t l = 0; l < kSize; ++l) {
            const uint32_t expected = l < first ? 0 : before + sums[kSize - 1] * sums[l];
            ASSERT_EQ(buffers[2].words[group * kSize + l], expected)
                << "invocation " << l << " of group " << group;
        }
    }
}

// Vectors of invocations end behind the row.
TEST_F(KernelsTest, ARowOfAnyLengthStaysInItsMemory) {
    constexpr uint32_t kGroups = 3;
    for (uint32_t size : {1u, 3u, 15u, 17u, 33u, 100u, 243u, 500u}) {
        SCOPED_TRACE(size);
        const std::array<uint32_t, 2> constants = {size, size};
        const VkSpecializationMapEntry entries[] = {{0, 0, 4}, {1, 4, 4}};
        const VkSpecializationInfo sizes{2, entries, sizeof(constants), constants.data()};
        std::array buffers = {MakeBuffer(size_t{size} * kGroups),
                              MakeBuffer(size_t{size} * kGroups)};
        FillRandomly(buffers[0], size);
        FillRandomly(buffers[1], size + 1);
        const uint32_t* in = buffers[0].words;
        const std::vector<uint32_t> before(buffers[1].words, buffers[1].words + size * kGroups);
        Run(MakePipeline(spirv::kOneRow, buffers, &sizes), kGroups);
        for (uint32_t at = 0; at < size * kGroups; ++at) {
            const uint32_t x = at % size;
            const uint32_t* row = in + (at - x);
            const uint32_t opposite = size - 1 - x;
            const uint32_t expected =
                before[at] + row[opposite] + opposite * 3 + (row[opposite] ^ opposite) + row[x / 2];
            ASSERT_EQ(buffers[1].words[at], expected) << "invocation " << at;
        }
    }
}

TEST_F(KernelsTest, TilesHistogramsAndStructuresInSharedMemory) {
    constexpr uint32_t kWidth = 16 * 5;
    constexpr uint32_t kHeight = 16 * 3;
    std::array buffers = {MakeBuffer(kWidth * kHeight), MakeBuffer(kWidth * kHeight),
                          MakeBuffer(32), MakeBuffer(kWidth * kHeight)};
    FillRandomly(buffers[0], 4);
    const uint32_t* in = buffers[0].words;
    Run(MakePipeline(spirv::kSharedTiles, buffers), kWidth / 16, kHeight / 16);
    uint32_t bins[32] = {};
    for (uint32_t y = 0; y < kHeight; ++y) {
        for (uint32_t x = 0; x < kWidth; ++x) {
            ++bins[in[y * kWidth + x] & 31];
            ASSERT_EQ(buffers[1].words[x * kHeight + y], in[y * kWidth + x]) << x << "," << y;
            // The third row of the tile from right to left, and an element of the matrix.
            const uint32_t row = in[(y / 16 * 16 + 3) * kWidth + x / 16 * 16 + 15 - x % 16];
            const uint32_t check = row + (x % 2) * 3 + y % 16 % 3 + 1;
            ASSERT_EQ(buffers[3].words[y * kWidth + x], x / 16 % 2 ? ~check : check)
                << x << "," << y;
        }
    }
    for (uint32_t i = 0; i < 32; ++i) {
        EXPECT_EQ(buffers[2].words[i], bins[i]) << i;
    }
}

struct AtomicCells {
    uint32_t add = 0;
    uint32_t umin = 0xffffffff;
    uint32_t umax = 0;
    int32_t smin = 0x7fffffff;
    int32_t smax = -0x7fffffff;
    uint32_t conjunction = 0xffffffff;
    uint32_t disjunction = 0;
    uint32_t parity = 0;
    uint32_t exchange = 0;
    uint32_t returned = 0;
    uint32_t product = 1;
    int32_t sub = 0;
};

AtomicCells CellsAt(const uint32_t* words) {
    std::array<uint32_t, sizeof(AtomicCells) / 4> cells;
    std::copy_n(words, cells.size(), cells.begin());
    return std::bit_cast<AtomicCells>(cells);
}

void ExpectAtomics(std::span<const uint32_t> words, const AtomicCells& found) {
    AtomicCells want;
    uint32_t sum = 0;
    for (uint32_t word : words) {
        ++want.add;
        want.umin = std::min(want.umin, word);
        want.umax = std::max(want.umax, word);
        want.smin = std::min(want.smin, static_cast<int32_t>(word));
        want.smax = std::max(want.smax, static_cast<int32_t>(word));
        want.conjunction &= word | 0xff00;
        want.disjunction |= word & 0xf0f0;
        want.parity ^= word;
        sum += word;
        want.product *= word | 1;
        want.sub -= static_cast<int32_t>(word & 0xff);
    }
    EXPECT_EQ(found.add, want.add);
    EXPECT_EQ(found.umin, want.umin);
    EXPECT_EQ(found.umax, want.umax);
    EXPECT_EQ(found.smin, want.smin);
    EXPECT_EQ(found.smax, want.smax);
    EXPECT_EQ(found.conjunction, want.conjunction);
    EXPECT_EQ(found.disjunction, want.disjunction);
    EXPECT_EQ(found.parity, want.parity);
    // Each exchanged word was handed on once, but for the last.
    EXPECT_EQ(found.returned + found.exchange, sum);
    EXPECT_EQ(found.product, want.product);
    EXPECT_EQ(found.sub, want.sub);
}

TEST_F(KernelsTest, AtomicsOnBuffersAndSharedMemory) {
    constexpr uint32_t kGroups = 13;
    constexpr uint32_t kCount = kGroups * 96;
    constexpr uint32_t kCells = sizeof(AtomicCells) / 4;
    std::array buffers = {MakeBuffer(kCount), MakeBuffer(kCells), MakeBuffer(kGroups * kCells),
                          MakeBuffer(kCount * 2)};
    FillRandomly(buffers[0], 5);
    const AtomicCells cells;
    std::memcpy(buffers[1].words, &cells, sizeof(cells));
    Run(MakePipeline(spirv::kAtomics, buffers), kGroups);
    ExpectAtomics(buffers[0].span(), CellsAt(buffers[1].words));
    for (uint32_t group = 0; group < kGroups; ++group) {
        SCOPED_TRACE(group);
        ExpectAtomics(buffers[0].span().subspan(group * 96, 96),
                      CellsAt(buffers[2].words + group * kCells));
    }
    // What atomicAdd returned numbers the invocations, each once.
    for (uint32_t i = 0; i < kCount * 2; ++i) {
        ASSERT_EQ(buffers[3].words[i], 1u) << i;
    }
}

}  // namespace
}  // namespace fornax::test
