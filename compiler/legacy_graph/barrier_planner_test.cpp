// Barriers exactly where hazards are: every kind by hand, random cases by brute force.
#include "compiler/legacy_graph/barrier_planner.h"

#include <random>

#include <gtest/gtest.h>

namespace fornax::legacy_graph {
namespace {

using Accesses = std::vector<DispatchAccess>;
using Barriers = std::vector<bool>;

DispatchAccess Access(std::vector<ByteRange> reads, ByteRange write, uint32_t group) {
    return {std::move(reads), write, group};
}

TEST(BarrierPlanner, ReadAfterWrite) {
    const Accesses accesses = {Access({{0, 10}}, {10, 20}, 1), Access({{19, 25}}, {30, 40}, 2)};
    EXPECT_EQ(PlanBarriers(accesses), (Barriers{false, true}));
}

TEST(BarrierPlanner, WriteAfterRead) {
    const Accesses accesses = {Access({{0, 10}}, {10, 20}, 1), Access({{50, 60}}, {5, 6}, 2)};
    EXPECT_EQ(PlanBarriers(accesses), (Barriers{false, true}));
}

TEST(BarrierPlanner, WriteAfterWriteUnlessOfOneGroup) {
    const Accesses other = {Access({}, {10, 20}, 1), Access({}, {10, 20}, 2)};
    EXPECT_EQ(PlanBarriers(other), (Barriers{false, true}));
    const Accesses same = {Access({}, {10, 20}, 1), Access({}, {10, 20}, 1)};
    EXPECT_EQ(PlanBarriers(same), (Barriers{false, false}));
}

TEST(BarrierPlanner, NeighboursAndSharedReadsAreNoHazard) {
    const Accesses accesses = {Access({{0, 10}}, {10, 20}, 1), Access({{0, 10}}, {20, 30}, 2)};
    EXPECT_EQ(PlanBarriers(accesses), (Barriers{false, false}));
}

TEST(BarrierPlanner, OneBarrierServesAllBeforeIt) {
    const Accesses accesses = {Access({}, {0, 10}, 1), Access({}, {10, 20}, 2),
                               Access({{0, 10}}, {20, 30}, 3), Access({{10, 20}}, {30, 40}, 4)};
    EXPECT_EQ(PlanBarriers(accesses), (Barriers{false, false, true, false}));
}

// Byte by byte: whether two dispatches touch a byte that one of them writes.
bool SlowConflict(const DispatchAccess& a, const DispatchAccess& b) {
    auto touches = [](const ByteRange& range, uint64_t byte) {
        return range.begin <= byte && byte < range.end;
    };
    for (uint64_t byte = 0; byte < 64; ++byte) {
        bool a_reads = false, b_reads = false;
        for (const ByteRange& range : a.reads) {
            a_reads = a_reads || touches(range, byte);
        }
        for (const ByteRange& range : b.reads) {
            b_reads = b_reads || touches(range, byte);
        }
        const bool a_writes = touches(a.write, byte), b_writes = touches(b.write, byte);
        if ((a_writes && b_reads) || (a_reads && b_writes) ||
            (a_writes && b_writes && a.write_group != b.write_group)) {
            return true;
        }
    }
    return false;
}

TEST(BarrierPlanner, RandomDispatchesAreOrderedAndNotMore) {
    std::mt19937 generator(3);
    auto range = [&] {
        const uint64_t begin = generator() % 60;
        return ByteRange{begin, begin + 1 + generator() % 4};
    };
    for (int round = 0; round < 500; ++round) {
        Accesses accesses;
        for (uint32_t i = 0; i < 12; ++i) {
            accesses.push_back(Access({range(), range()}, range(), uint32_t(generator() % 10)));
        }
        const Barriers barriers = PlanBarriers(accesses);
        size_t open = 0;  // the first dispatch behind the last barrier
        for (size_t i = 0; i < accesses.size(); ++i) {
            bool conflict = false;
            for (size_t j = open; j < i; ++j) {
                conflict = conflict || SlowConflict(accesses[j], accesses[i]);
            }
            ASSERT_EQ(barriers[i], conflict) << "round " << round << ", dispatch " << i;
            if (barriers[i]) {
                open = i;
            }
        }
    }
}

}  // namespace
}  // namespace fornax::legacy_graph
