#include "plugins/onnxruntime/grouping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace fornax::onnxruntime_plugin {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Groups = std::vector<std::vector<size_t>>;

TEST(Grouping, OneGroupOfAll) {
    EXPECT_THAT(GroupNodes(std::vector<GroupNode>{{{}, true}, {{0}, true}, {{0, 1}, true}}),
                ElementsAre(ElementsAre(0, 1, 2)));
}

TEST(Grouping, NothingIsTaken) {
    EXPECT_THAT(GroupNodes(std::vector<GroupNode>{{{}, false}, {{0}, false}}), IsEmpty());
    EXPECT_THAT(GroupNodes({}), IsEmpty());
}

TEST(Grouping, APathThroughAnotherProviderPartsThem) {
    EXPECT_THAT(GroupNodes(std::vector<GroupNode>{{{}, true}, {{0}, false}, {{0, 1}, true}}),
                ElementsAre(ElementsAre(0), ElementsAre(2)));
}

// 0 -> 1 (not taken) -> 3, and 0 -> 2 -> nothing: 2 stays with 0.
TEST(Grouping, BranchesBesideItStayTogether) {
    EXPECT_THAT(
        GroupNodes(std::vector<GroupNode>{{{}, true}, {{0}, false}, {{0}, true}, {{1}, true}}),
        ElementsAre(ElementsAre(0, 2), ElementsAre(3)));
}

// 1 and 2 are read behind the node that is not taken only.
TEST(Grouping, WhatIsReadLaterIsInTheLaterGroup) {
    EXPECT_THAT(GroupNodes(std::vector<GroupNode>{
                    {{}, true}, {{}, true}, {{1}, true}, {{0}, false}, {{2, 3}, true}}),
                ElementsAre(ElementsAre(0), ElementsAre(1, 2, 4)));
}

// No group may depend on itself through others, whatever the graph is.
TEST(Grouping, GroupsOfRandomGraphsHaveAnOrder) {
    std::mt19937 random(3);
    for (int round = 0; round < 500; ++round) {
        std::vector<GroupNode> nodes(1 + random() % 30);
        for (size_t i = 0; i < nodes.size(); ++i) {
            nodes[i].is_taken = random() % 4 != 0;
            for (size_t count = i == 0 ? 0 : random() % 3; count > 0; --count) {
                nodes[i].sources.push_back(random() % i);
            }
        }
        const Groups groups = GroupNodes(nodes);
        constexpr size_t kNone = SIZE_MAX;
        std::vector<size_t> group_of(nodes.size(), kNone);
        for (size_t g = 0; g < groups.size(); ++g) {
            for (const size_t node : groups[g]) {
                ASSERT_TRUE(nodes[node].is_taken);
                ASSERT_EQ(group_of[node], kNone);
                group_of[node] = g;
            }
        }
        // By node, the groups that lie on paths to it, and those of them that a path has left.
        std::vector<std::set<size_t>> left(nodes.size());
        for (size_t i = 0; i < nodes.size(); ++i) {
            ASSERT_EQ(group_of[i] != kNone, nodes[i].is_taken);
            for (const size_t source : nodes[i].sources) {
                left[i].insert(left[source].begin(), left[source].end());
                if (group_of[source] != kNone && group_of[source] != group_of[i]) {
                    left[i].insert(group_of[source]);
                }
            }
            ASSERT_FALSE(nodes[i].is_taken && left[i].contains(group_of[i])) << round;
        }
    }
}

}  // namespace
}  // namespace fornax::onnxruntime_plugin
