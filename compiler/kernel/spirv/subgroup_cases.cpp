#include "compiler/kernel/spirv/subgroup_cases.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace fornax::kernel {

namespace {

using State = SubgroupState;
using Needs = SubgroupCase::Needs;
using Answer = std::optional<uint32_t>;

enum class Which : uint8_t { kReduce, kInclusive, kExclusive, kCluster4, kCluster8, kPartition };

// The lanes that a reduction or scan takes in.
template <Which which>
bool TakesPart(const State& s, uint32_t lane, uint32_t other) {
    if (!s.Has(other)) {
        return false;
    }
    switch (which) {
        case Which::kReduce:
            return true;
        case Which::kInclusive:
            return other <= lane;
        case Which::kExclusive:
            return other < lane;
        case Which::kCluster4:
            return other / 4 == lane / 4;
        case Which::kCluster8:
            return other / 8 == lane / 8;
        case Which::kPartition:
            return s.values[other] % 3 == s.values[lane] % 3;
    }
    return false;
}

template <Which which, typename T, typename Combine, typename Value>
T Fold(const State& s, uint32_t lane, T identity, Combine combine, Value value) {
    T result = identity;
    for (uint32_t other = 0; other < s.size; ++other) {
        if (TakesPart<which>(s, lane, other)) {
            result = static_cast<T>(combine(result, value(s.values[other])));
        }
    }
    return result;
}

uint32_t Same(uint32_t x) {
    return x;
}
int32_t Signed(uint32_t x) {
    return static_cast<int32_t>(x);
}
float Float(uint32_t x) {
    return static_cast<float>(x & 15) - 4;
}
float Power(uint32_t x) {
    return (x & 7) == 0 ? -2.0f : 1.0f;
}
bool Odd(uint32_t x) {
    return (x & 1) != 0;
}
uint32_t Bits(float value) {
    return std::bit_cast<uint32_t>(value);
}

template <Which which>
Answer IAdd(const State& s, uint32_t lane) {
    return Fold<which>(s, lane, 0u, [](uint32_t a, uint32_t b) { return a + b; }, Same);
}
template <Which which>
Answer IMul(const State& s, uint32_t lane) {
    return Fold<which>(s, lane, 1u, [](uint32_t a, uint32_t b) { return a * (b | 1); }, Same);
}
template <Which which>
Answer UMin(const State& s, uint32_t lane) {
    return Fold<which>(s, lane, ~0u, [](uint32_t a, uint32_t b) { return std::min(a, b); }, Same);
}
template <Which which>
Answer UMax(const State& s, uint32_t lane) {
    return Fold<which>(s, lane, 0u, [](uint32_t a, uint32_t b) { return std::max(a, b); }, Same);
}
template <Which which>
Answer SMin(const State& s, uint32_t lane) {
    return static_cast<uint32_t>(Fold<which>(
        s, lane, INT32_MAX, [](int32_t a, int32_t b) { return std::min(a, b); }, Signed));
}
template <Which which>
Answer SMax(const State& s, uint32_t lane) {
    return static_cast<uint32_t>(Fold<which>(
        s, lane, INT32_MIN, [](int32_t a, int32_t b) { return std::max(a, b); }, Signed));
}
template <Which which>
Answer And(const State& s, uint32_t lane) {
    return Fold<which>(s, lane, ~0u, [](uint32_t a, uint32_t b) { return a & (b | 0xf0); }, Same);
}
template <Which which>
Answer Or(const State& s, uint32_t lane) {
    return Fold<which>(s, lane, 0u, [](uint32_t a, uint32_t b) { return a | (b & 0x3f1f); }, Same);
}
template <Which which>
Answer Xor(const State& s, uint32_t lane) {
    return Fold<which>(s, lane, 0u, [](uint32_t a, uint32_t b) { return a ^ b; }, Same);
}
template <Which which>
Answer FAdd(const State& s, uint32_t lane) {
    return Bits(Fold<which>(s, lane, 0.0f, [](float a, float b) { return a + b; }, Float));
}
template <Which which>
Answer FMul(const State& s, uint32_t lane) {
    return Bits(Fold<which>(s, lane, 1.0f, [](float a, float b) { return a * b; }, Power));
}
template <Which which>
Answer FMin(const State& s, uint32_t lane) {
    return Bits(
        Fold<which>(s, lane, HUGE_VALF, [](float a, float b) { return std::min(a, b); }, Float));
}
template <Which which>
Answer FMax(const State& s, uint32_t lane) {
    return Bits(
        Fold<which>(s, lane, -HUGE_VALF, [](float a, float b) { return std::max(a, b); }, Float));
}
template <Which which>
Answer LogicalAnd(const State& s, uint32_t lane) {
    return Fold<which>(
        s, lane, true, [](bool a, bool b) { return a && b; },
        [](uint32_t x) { return (x & 7) != 0; });
}
template <Which which>
Answer LogicalOr(const State& s, uint32_t lane) {
    return Fold<which>(
        s, lane, false, [](bool a, bool b) { return a || b; },
        [](uint32_t x) { return (x & 7) == 0; });
}
template <Which which>
Answer LogicalXor(const State& s, uint32_t lane) {
    return Fold<which>(s, lane, false, [](bool a, bool b) { return a != b; }, Odd);
}

Answer From(const State& s, uint32_t lane) {
    return s.Has(lane) ? Answer(s.values[lane]) : std::nullopt;
}
uint64_t OddLanes(const State& s) {
    uint64_t set = 0;
    for (uint32_t lane = 0; lane < s.size; ++lane) {
        set |= uint64_t{s.Has(lane) && Odd(s.values[lane])} << lane;
    }
    return set;
}
uint32_t First(const State& s) {
    return static_cast<uint32_t>(std::countr_zero(s.active));
}
// As the shaders fold a ballot into one word.
uint32_t Folded(uint64_t set) {
    return static_cast<uint32_t>(set) ^ static_cast<uint32_t>(set >> 32) * 3;
}
uint64_t Below(uint32_t lane) {
    return (uint64_t{1} << lane) - 1;
}
uint64_t AllOf(const State& s) {
    return ~uint64_t{0} >> (64 - s.size);
}

#define FOLD "r = b.x ^ b.y * 3 ^ b.z * 5 ^ b.w * 7;"
// The functions of GLSL, of the cases' names.
#define GROUP(prefix, needs, which, extra)                                                    \
    {prefix "Add(uint)", needs, "r = " prefix "Add(x" extra ");", IAdd<which>},               \
        {prefix "Add(int)", needs, "r = uint(" prefix "Add(int(x)" extra "));", IAdd<which>}, \
        {prefix "Mul(uint)", needs, "r = " prefix "Mul(x | 1" extra ");", IMul<which>},       \
        {prefix "Min(uint)", needs, "r = " prefix "Min(x" extra ");", UMin<which>},           \
        {prefix "Max(uint)", needs, "r = " prefix "Max(x" extra ");", UMax<which>},           \
        {prefix "Min(int)", needs, "r = uint(" prefix "Min(int(x)" extra "));", SMin<which>}, \
        {prefix "Max(int)", needs, "r = uint(" prefix "Max(int(x)" extra "));", SMax<which>}, \
        {prefix "And(uint)", needs, "r = " prefix "And(x | 0xf0" extra ");", And<which>},     \
        {prefix "Or(uint)", needs, "r = " prefix "Or(x & 0x3f1f" extra ");", Or<which>},      \
        {prefix "Xor(uint)", needs, "r = " prefix "Xor(x" extra ");", Xor<which>},            \
        {prefix "Add(float)", needs, "r = floatBitsToUint(" prefix "Add(f" extra "));",       \
         FAdd<which>},                                                                        \
        {prefix "Mul(float)", needs, "r = floatBitsToUint(" prefix "Mul(g" extra "));",       \
         FMul<which>},                                                                        \
        {prefix "Min(float)", needs, "r = floatBitsToUint(" prefix "Min(f" extra "));",       \
         FMin<which>},                                                                        \
        {prefix "Max(float)", needs, "r = floatBitsToUint(" prefix "Max(f" extra "));",       \
         FMax<which>},                                                                        \
        {prefix "And(bool)", needs, "r = uint(" prefix "And((x & 7) != 0" extra "));",        \
         LogicalAnd<which>},                                                                  \
        {prefix "Or(bool)", needs, "r = uint(" prefix "Or((x & 7) == 0" extra "));",          \
         LogicalOr<which>},                                                                   \
    {                                                                                         \
        prefix "Xor(bool)", needs, "r = uint(" prefix "Xor((x & 1) != 0" extra "));",         \
            LogicalXor<which>                                                                 \
    }

constexpr SubgroupCase kCases[] = {
    // --- basic and vote
    {"subgroupElect", Needs::kCore, "r = uint(subgroupElect());",
     [](const State& s, uint32_t lane) -> Answer { return lane == First(s); }},
    {"gl_SubgroupSize", Needs::kCore, "r = gl_SubgroupSize;",
     [](const State& s, uint32_t) -> Answer { return s.size; }},
    {"subgroupAll", Needs::kCore, "r = uint(subgroupAll(x < 90));",
     [](const State& s, uint32_t lane) -> Answer {
         return Fold<Which::kReduce>(
             s, lane, true, [](bool a, bool b) { return a && b; },
             [](uint32_t x) { return x < 90; });
     }},
    {"subgroupAny", Needs::kCore, "r = uint(subgroupAny(x > 95));",
     [](const State& s, uint32_t lane) -> Answer {
         return Fold<Which::kReduce>(
             s, lane, false, [](bool a, bool b) { return a || b; },
             [](uint32_t x) { return x > 95; });
     }},
    {"subgroupAllEqual", Needs::kCore,
     "r = uint(subgroupAllEqual(x)) + 2 * uint(subgroupAllEqual(vec2(x < 1000, 3))) + "
     "4 * uint(subgroupAllEqual(x < 1000)) + 8 * uint(subgroupAllEqual(f / (f - f)));",
     [](const State& s, uint32_t) -> Answer {
         // f / 0 is an infinity of one sign or the other, or NaN, which equals nothing.
         uint32_t equal = 0;
         uint32_t signs = 0;
         bool nan = false;
         for (uint32_t lane = 0; lane < s.size; ++lane) {
             if (!s.Has(lane)) {
                 continue;
             }
             equal |= s.values[lane] ^ s.values[First(s)];
             const float f = Float(s.values[lane]);
             nan |= f == 0;
             signs |= f > 0 ? 1 : 2;
         }
         return (equal == 0 ? 1 : 0) + 6 + (!nan && signs != 3 ? 8 : 0);
     }},
    // --- ballot
    {"subgroupBallot", Needs::kCore, "uvec4 b = subgroupBallot((x & 1) != 0); " FOLD,
     [](const State& s, uint32_t) -> Answer { return Folded(OddLanes(s)); }},
    {"subgroupInverseBallot", Needs::kCore,
     "r = uint(subgroupInverseBallot(uvec4(x * 77777, x * 99991, 0, 0)));",
     [](const State& s, uint32_t lane) -> Answer {
         const uint32_t x = s.values[lane];
         return (lane < 32 ? x * 77777 : x * 99991) >> lane % 32 & 1;
     }},
    {"subgroupBallotBitExtract", Needs::kCore,
     "r = uint(subgroupBallotBitExtract(subgroupBallot((x & 1) != 0), x % gl_SubgroupSize));",
     [](const State& s, uint32_t lane) -> Answer {
         return static_cast<uint32_t>(OddLanes(s) >> s.values[lane] % s.size & 1);
     }},
    {"subgroupBallotBitCount", Needs::kCore,
     "r = subgroupBallotBitCount(uvec4(x * 77777, x * 99991, ~0u, ~0u));",
     [](const State& s, uint32_t lane) -> Answer {
         const uint64_t set = s.values[lane] * 77777u | uint64_t{s.values[lane] * 99991u} << 32;
         return static_cast<uint32_t>(std::popcount(set & AllOf(s)));
     }},
    {"subgroupBallotInclusiveBitCount", Needs::kCore,
     "r = subgroupBallotInclusiveBitCount(subgroupBallot((x & 1) != 0));",
     [](const State& s, uint32_t lane) -> Answer {
         return static_cast<uint32_t>(std::popcount(OddLanes(s) << (63 - lane)));
     }},
    {"subgroupBallotExclusiveBitCount", Needs::kCore,
     "r = subgroupBallotExclusiveBitCount(subgroupBallot((x & 1) != 0));",
     [](const State& s, uint32_t lane) -> Answer {
         return static_cast<uint32_t>(std::popcount(OddLanes(s) & Below(lane)));
     }},
    {"subgroupBallotFindLSB", Needs::kCore,
     "r = subgroupBallotFindLSB(uvec4(x | 0x80, x, 0, 0) & gl_SubgroupGeMask | gl_SubgroupEqMask);",
     [](const State& s, uint32_t lane) -> Answer {
         return s.Has(lane) ? Answer(lane) : std::nullopt;
     }},
    {"subgroupBallotFindMSB", Needs::kCore, "r = subgroupBallotFindMSB(uvec4(x | 1, x, 0, 0));",
     [](const State& s, uint32_t lane) -> Answer {
         const uint64_t x = s.values[lane];
         return static_cast<uint32_t>(63 - std::countl_zero(((x << 32 | x) | 1) & AllOf(s)));
     }},
    {"gl_SubgroupEqMask", Needs::kCore, "uvec4 b = gl_SubgroupEqMask; " FOLD,
     [](const State&, uint32_t lane) -> Answer { return Folded(uint64_t{1} << lane); }},
    {"gl_SubgroupGeMask", Needs::kCore, "uvec4 b = gl_SubgroupGeMask; " FOLD,
     [](const State& s, uint32_t lane) -> Answer { return Folded(AllOf(s) & ~Below(lane)); }},
    {"gl_SubgroupGtMask", Needs::kCore, "uvec4 b = gl_SubgroupGtMask; " FOLD,
     [](const State& s, uint32_t lane) -> Answer {
         return Folded(AllOf(s) & ~Below(lane) & ~(uint64_t{1} << lane));
     }},
    {"gl_SubgroupLeMask", Needs::kCore, "uvec4 b = gl_SubgroupLeMask; " FOLD,
     [](const State&, uint32_t lane) -> Answer {
         return Folded(Below(lane) | uint64_t{1} << lane);
     }},
    {"gl_SubgroupLtMask", Needs::kCore,
     "uvec4 b = gl_SubgroupLtMask; r = gl_SubgroupLtMask[x & 1];",
     [](const State& s, uint32_t lane) -> Answer {
         return static_cast<uint32_t>(Below(lane) >> (s.values[lane] & 1) * 32);
     }},
    {"subgroupBroadcast", Needs::kCore, "r = subgroupBroadcast(x, 5);",
     [](const State& s, uint32_t) { return From(s, 5); }},
    {"subgroupBroadcast(vec3)", Needs::kCore,
     "vec3 v = subgroupBroadcast(vec3(x, f, x + 3), 3); r = uint(v.x + v.z) + uint(v.y + 4);",
     [](const State& s, uint32_t) -> Answer {
         if (!s.Has(3)) {
             return std::nullopt;
         }
         return 2 * s.values[3] + 3 + (s.values[3] & 15);
     }},
    {"subgroupBroadcast(bool)", Needs::kCore, "r = uint(subgroupBroadcast((x & 1) != 0, 7));",
     [](const State& s, uint32_t) -> Answer {
         return s.Has(7) ? Answer(s.values[7] & 1) : std::nullopt;
     }},
    {"subgroupBroadcast of a dynamic lane", Needs::kSpirv15,
     "uint from = in_[0] % gl_SubgroupSize; r = subgroupBroadcast(x, from);",
     [](const State& s, uint32_t) { return From(s, SubgroupValue(0) % s.size); }},
    {"subgroupBroadcastFirst", Needs::kCore,
     "r = subgroupBroadcastFirst(x) + 1000 * uint(subgroupBroadcastFirst((x & 1) != 0));",
     [](const State& s, uint32_t) -> Answer {
         const uint32_t x = s.values[First(s)];
         return x + 1000 * (x & 1);
     }},
    // --- shuffles
    {"subgroupShuffle", Needs::kCore, "r = subgroupShuffle(x, (x * 7) % gl_SubgroupSize);",
     [](const State& s, uint32_t lane) { return From(s, s.values[lane] * 7 % s.size); }},
    {"subgroupShuffle(bool)", Needs::kCore,
     "r = uint(subgroupShuffle((x & 1) != 0, x % gl_SubgroupSize));",
     [](const State& s, uint32_t lane) -> Answer {
         const Answer x = From(s, s.values[lane] % s.size);
         return x ? Answer(*x & 1) : std::nullopt;
     }},
    {"subgroupShuffle to the other end", Needs::kCore,
     "r = floatBitsToUint(subgroupShuffle(f, gl_SubgroupSize - 1 - lane));",
     [](const State& s, uint32_t lane) -> Answer {
         const Answer x = From(s, s.size - 1 - lane);
         return x ? Answer(Bits(Float(*x))) : std::nullopt;
     }},
    {"subgroupShuffleXor", Needs::kCore, "r = subgroupShuffleXor(x, 5);",
     [](const State& s, uint32_t lane) { return From(s, lane ^ 5); }},
    {"subgroupShuffleXor of a dynamic mask", Needs::kCore,
     "r = subgroupShuffleXor(x, in_[0] % gl_SubgroupSize);",
     [](const State& s, uint32_t lane) { return From(s, lane ^ SubgroupValue(0) % s.size); }},
    {"subgroupShuffleUp", Needs::kCore, "r = subgroupShuffleUp(x, 3);",
     [](const State& s, uint32_t lane) { return From(s, lane - 3); }},
    {"subgroupShuffleDown", Needs::kCore, "r = subgroupShuffleDown(x, in_[1] % 5);",
     [](const State& s, uint32_t lane) { return From(s, lane + SubgroupValue(1) % 5); }},
    // --- quads
    {"subgroupQuadBroadcast", Needs::kCore, "r = subgroupQuadBroadcast(x, 2);",
     [](const State& s, uint32_t lane) { return From(s, (lane & ~3u) | 2); }},
    {"subgroupQuadBroadcast of a dynamic lane", Needs::kSpirv15,
     "r = subgroupQuadBroadcast(x, in_[1] % 4);",
     [](const State& s, uint32_t lane) { return From(s, (lane & ~3u) | SubgroupValue(1) % 4); }},
    {"subgroupQuadSwapHorizontal", Needs::kCore, "r = subgroupQuadSwapHorizontal(x);",
     [](const State& s, uint32_t lane) { return From(s, lane ^ 1); }},
    {"subgroupQuadSwapVertical", Needs::kCore, "r = subgroupQuadSwapVertical(x);",
     [](const State& s, uint32_t lane) { return From(s, lane ^ 2); }},
    {"subgroupQuadSwapDiagonal", Needs::kCore, "r = uint(subgroupQuadSwapDiagonal((x & 1) != 0));",
     [](const State& s, uint32_t lane) -> Answer {
         const Answer x = From(s, lane ^ 3);
         return x ? Answer(*x & 1) : std::nullopt;
     }},
    // --- arithmetic
    GROUP("subgroup", Needs::kCore, Which::kReduce, ""),
    GROUP("subgroupInclusive", Needs::kCore, Which::kInclusive, ""),
    GROUP("subgroupExclusive", Needs::kCore, Which::kExclusive, ""),
    GROUP("subgroupClustered", Needs::kCore, Which::kCluster4, ", 4"),
    {"subgroupClusteredAdd of 8", Needs::kCore, "r = subgroupClusteredAdd(x, 8);",
     IAdd<Which::kCluster8>},
    {"subgroupClusteredMax of 1", Needs::kCore, "r = subgroupClusteredMax(x, 1);",
     [](const State& s, uint32_t lane) { return From(s, lane); }},
    {"subgroupAdd(uvec2)", Needs::kCore,
     "uvec2 v = subgroupAdd(uvec2(x, 1)); r = v.x + 100000 * v.y;",
     [](const State& s, uint32_t lane) -> Answer {
         return *IAdd<Which::kReduce>(s, lane) +
                100000 * static_cast<uint32_t>(std::popcount(s.active));
     }},
    // --- the forms of SPV_KHR_shader_ballot and SPV_KHR_subgroup_vote
    {"ballotARB", Needs::kKhrForms,
     "uvec2 b = unpackUint2x32(ballotARB((x & 1) != 0)); r = b.x ^ b.y * 3;",
     [](const State& s, uint32_t) -> Answer { return Folded(OddLanes(s)); }},
    {"readInvocationARB", Needs::kKhrForms, "r = readInvocationARB(x, 6u);",
     [](const State& s, uint32_t) { return From(s, 6); }},
    {"readFirstInvocationARB", Needs::kKhrForms, "r = readFirstInvocationARB(x);",
     [](const State& s, uint32_t) { return From(s, First(s)); }},
    {"anyInvocationARB", Needs::kKhrForms,
     "r = uint(anyInvocationARB(x > 95)) + 2 * uint(allInvocationsARB(x < 90)) + "
     "4 * uint(allInvocationsEqualARB(x < 90));",
     [](const State& s, uint32_t) -> Answer {
         uint32_t any = 0, all = 2, below = 0, not_below = 0;
         for (uint32_t lane = 0; lane < s.size; ++lane) {
             if (!s.Has(lane)) {
                 continue;
             }
             any |= s.values[lane] > 95 ? 1 : 0;
             (s.values[lane] < 90 ? below : not_below) = 1;
         }
         all = not_below ? 0 : 2;
         return any + all + (below + not_below == 1 ? 4 : 0);
     }},
    // --- rotate
    {"subgroupRotate", Needs::kRotate, "r = subgroupRotate(x, 3);",
     [](const State& s, uint32_t lane) { return From(s, (lane + 3) % s.size); }},
    {"subgroupRotate by a dynamic amount", Needs::kRotate, "r = subgroupRotate(x, in_[0]);",
     [](const State& s, uint32_t lane) { return From(s, (lane + SubgroupValue(0)) % s.size); }},
    {"subgroupClusteredRotate", Needs::kRotate, "r = subgroupClusteredRotate(x, 5, 8);",
     [](const State& s, uint32_t lane) { return From(s, (lane & ~7u) | ((lane + 5) & 7)); }},
    // --- partitioned
    {"subgroupPartitionNV", Needs::kPartitioned, "uvec4 b = subgroupPartitionNV(x % 3); " FOLD,
     [](const State& s, uint32_t lane) -> Answer {
         uint64_t set = 0;
         for (uint32_t other = 0; other < s.size; ++other) {
             set |= uint64_t{TakesPart<Which::kPartition>(s, lane, other)} << other;
         }
         return Folded(set);
     }},
    {"subgroupPartitionNV(vec2)", Needs::kPartitioned,
     "uvec4 b = subgroupPartitionNV(vec2(x % 3, (x % 3) * 2)); " FOLD,
     [](const State& s, uint32_t lane) -> Answer {
         uint64_t set = 0;
         for (uint32_t other = 0; other < s.size; ++other) {
             set |= uint64_t{TakesPart<Which::kPartition>(s, lane, other)} << other;
         }
         return Folded(set);
     }},
    {"subgroupPartitionedAddNV", Needs::kPartitioned, "r = subgroupPartitionedAddNV(x, set);",
     IAdd<Which::kPartition>},
    {"subgroupPartitionedMinNV", Needs::kPartitioned, "r = subgroupPartitionedMinNV(x, set);",
     UMin<Which::kPartition>},
    {"subgroupPartitionedMulNV", Needs::kPartitioned,
     "r = floatBitsToUint(subgroupPartitionedMulNV(g, set));", FMul<Which::kPartition>},
    {"subgroupPartitionedXorNV", Needs::kPartitioned,
     "r = uint(subgroupPartitionedXorNV((x & 1) != 0, set));", LogicalXor<Which::kPartition>},
    {"subgroupPartitionedInclusiveAddNV", Needs::kPartitioned,
     "r = subgroupPartitionedInclusiveAddNV(x, set);",
     [](const State& s, uint32_t lane) -> Answer {
         uint32_t sum = 0;
         for (uint32_t other = 0; other <= lane; ++other) {
             sum += TakesPart<Which::kPartition>(s, lane, other) ? s.values[other] : 0;
         }
         return sum;
     }},
    {"subgroupPartitionedExclusiveMaxNV", Needs::kPartitioned,
     "r = subgroupPartitionedExclusiveMaxNV(x, set) + "
     "1000 * uint(subgroupPartitionedExclusiveOrNV(x > 50, set));",
     [](const State& s, uint32_t lane) -> Answer {
         uint32_t max = 0;
         for (uint32_t other = 0; other < lane; ++other) {
             if (TakesPart<Which::kPartition>(s, lane, other)) {
                 max = std::max(max, s.values[other]);
             }
         }
         return max + 1000 * (max > 50 ? 1 : 0);
     }},
    // --- quad control
    {"subgroupQuadAll", Needs::kQuadControl, "r = uint(subgroupQuadAll((x & 3) != 0));",
     [](const State& s, uint32_t lane) -> Answer {
         return Fold<Which::kCluster4>(
             s, lane, true, [](bool a, bool b) { return a && b; },
             [](uint32_t x) { return (x & 3) != 0; });
     }},
    {"subgroupQuadAny", Needs::kQuadControl, "r = uint(subgroupQuadAny((x & 7) == 0));",
     LogicalOr<Which::kCluster4>},
    // --- other widths
    {"subgroupAdd(uint8_t)", Needs::kSmallTypes, "r = uint(subgroupAdd(uint8_t(x)));",
     [](const State& s, uint32_t lane) -> Answer { return *IAdd<Which::kReduce>(s, lane) & 0xff; }},
    {"subgroupInclusiveAdd(uint16_t)", Needs::kSmallTypes,
     "r = uint(subgroupInclusiveAdd(uint16_t(x * 999)));",
     [](const State& s, uint32_t lane) -> Answer {
         return *IAdd<Which::kInclusive>(s, lane) * 999 & 0xffff;
     }},
    {"subgroupMin(int8_t)", Needs::kSmallTypes, "r = uint(int(subgroupMin(int8_t(x * 2))));",
     [](const State& s, uint32_t lane) -> Answer {
         return static_cast<uint32_t>(Fold<Which::kReduce>(
             s, lane, 127, [](int a, int b) { return std::min(a, b); },
             [](uint32_t x) { return int{static_cast<int8_t>(x * 2)}; }));
     }},
    {"subgroupExclusiveAdd(uint64_t)", Needs::kSmallTypes,
     "uint64_t q = subgroupExclusiveAdd(uint64_t(x) * 0x123456789ul); r = uint(q) ^ uint(q >> 32);",
     [](const State& s, uint32_t lane) -> Answer {
         const uint64_t q = *IAdd<Which::kExclusive>(s, lane) * uint64_t{0x123456789};
         return static_cast<uint32_t>(q) ^ static_cast<uint32_t>(q >> 32);
     }},
    {"subgroupShuffle(uint64_t)", Needs::kSmallTypes,
     "uint64_t q = subgroupShuffle(uint64_t(x) * 0x123456789ul, (x * 7) % gl_SubgroupSize); "
     "r = uint(q) ^ uint(q >> 32);",
     [](const State& s, uint32_t lane) -> Answer {
         const Answer x = From(s, s.values[lane] * 7 % s.size);
         if (!x) {
             return std::nullopt;
         }
         const uint64_t q = *x * uint64_t{0x123456789};
         return static_cast<uint32_t>(q) ^ static_cast<uint32_t>(q >> 32);
     }},
    {"subgroupShuffle(float16_t)", Needs::kSmallTypes,
     "r = uint(float(subgroupShuffle(float16_t(x), x % gl_SubgroupSize)));",
     [](const State& s, uint32_t lane) { return From(s, s.values[lane] % s.size); }},
    {"subgroupShuffleXor(uint8_t)", Needs::kSmallTypes,
     "r = uint(subgroupShuffleXor(uint8_t(x), 6));",
     [](const State& s, uint32_t lane) { return From(s, lane ^ 6); }},
    {"subgroupAdd(float16_t)", Needs::kSmallTypes,
     "r = floatBitsToUint(float(subgroupAdd(float16_t(f))));", FAdd<Which::kReduce>},
    {"subgroupMax(float64_t)", Needs::kSmallTypes,
     "r = floatBitsToUint(float(subgroupMax(float64_t(f))));", FMax<Which::kReduce>},
    {"subgroupAllEqual(int16_t)", Needs::kSmallTypes,
     "r = uint(subgroupAllEqual(int16_t(x >> 10))) + "
     "2 * uint(subgroupBroadcastFirst(int16_t(x)));",
     [](const State& s, uint32_t) -> Answer { return 1 + 2 * s.values[First(s)]; }},
};

}  // namespace

std::span<const SubgroupCase> SubgroupCases() {
    return kCases;
}

uint32_t SubgroupValue(uint32_t i) {
    const uint32_t hash = (i + 1) * 2654435761u;
    return (hash >> 16) % 100;
}

}  // namespace fornax::kernel
