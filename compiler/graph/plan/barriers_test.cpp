#include "compiler/graph/plan/barriers.h"

#include <random>

#include <gtest/gtest.h>

namespace fornax::graph {
namespace {

using Barriers = std::vector<bool>;

TEST(PlanBarriersTest, IndependentDispatchesNeedNone) {
    const DispatchAccess dispatches[] = {
        {{{0, 0, 100}}, {{1, 0, 100}}},
        {{{0, 0, 100}}, {{1, 100, 200}}},
        {{{0, 50, 60}}, {{2, 0, 100}}},
    };
    EXPECT_EQ(PlanBarriers(dispatches), (Barriers{false, false, false}));
}

TEST(PlanBarriersTest, EachHazardNeedsOne) {
    const DispatchAccess read_after_write[] = {{{}, {{1, 0, 4}}}, {{{1, 0, 4}}, {{1, 8, 12}}}};
    EXPECT_EQ(PlanBarriers(read_after_write), (Barriers{false, true}));
    const DispatchAccess write_after_read[] = {{{{1, 0, 4}}, {{1, 8, 12}}}, {{}, {{1, 0, 4}}}};
    EXPECT_EQ(PlanBarriers(write_after_read), (Barriers{false, true}));
    const DispatchAccess write_after_write[] = {{{}, {{1, 0, 4}}}, {{}, {{1, 0, 4}}}};
    EXPECT_EQ(PlanBarriers(write_after_write), (Barriers{false, true}));
}

TEST(PlanBarriersTest, SharedBytesCountAndTouchingRangesDoNot) {
    const DispatchAccess sharing[] = {{{{1, 0, 512}}, {}}, {{}, {{1, 256, 300}}}};
    EXPECT_EQ(PlanBarriers(sharing), (Barriers{false, true}));
    const DispatchAccess touching[] = {{{{1, 0, 256}}, {}}, {{}, {{1, 256, 300}}}};
    EXPECT_EQ(PlanBarriers(touching), (Barriers{false, false}));
    const DispatchAccess empty[] = {{{}, {{1, 0, 256}}}, {{{1, 100, 100}}, {{1, 7, 7}}}};
    EXPECT_EQ(PlanBarriers(empty), (Barriers{false, false}));
}

TEST(PlanBarriersTest, OneBarrierServesAllBeforeIt) {
    const DispatchAccess dispatches[] = {
        {{}, {{1, 0, 4}}},           {{}, {{1, 4, 8}}},
        {{{1, 0, 4}}, {{1, 8, 12}}}, {{{1, 4, 8}}, {{1, 12, 16}}},
        {{{1, 8, 16}}, {{1, 0, 4}}},
    };
    EXPECT_EQ(PlanBarriers(dispatches), (Barriers{false, false, true, false, true}));
}

TEST(PlanBarriersTest, AgreesWithComparingAllPairs) {
    std::mt19937 random(3);
    const auto overlap = [](const std::vector<ByteRange>& a, const std::vector<ByteRange>& b) {
        for (const ByteRange& x : a) {
            for (const ByteRange& y : b) {
                if (x.region == y.region && std::max(x.begin, y.begin) < std::min(x.end, y.end)) {
                    return true;
                }
            }
        }
        return false;
    };
    for (int repeat = 0; repeat < 300; ++repeat) {
        std::vector<DispatchAccess> dispatches(20);
        for (DispatchAccess& dispatch : dispatches) {
            for (auto* ranges : {&dispatch.reads, &dispatch.writes}) {
                ranges->resize(random() % 3);
                for (ByteRange& range : *ranges) {
                    range.region = random() % 2;
                    range.begin = random() % 100;
                    range.end = range.begin + random() % 12;
                }
            }
        }
        Barriers expected;
        size_t since = 0;
        for (size_t i = 0; i < dispatches.size(); ++i) {
            bool barrier = false;
            for (size_t j = since; j < i; ++j) {
                barrier |= overlap(dispatches[j].writes, dispatches[i].reads) ||
                           overlap(dispatches[j].writes, dispatches[i].writes) ||
                           overlap(dispatches[j].reads, dispatches[i].writes);
            }
            since = barrier ? i : since;
            expected.push_back(barrier);
        }
        EXPECT_EQ(PlanBarriers(dispatches), expected);
    }
}

}  // namespace
}  // namespace fornax::graph
