// What does not compile with strong ids, and how they compare.
#include "base/strong_id.h"

#include <gtest/gtest.h>

#include <type_traits>
#include <unordered_map>

namespace fornax {
namespace {

using BlockId = StrongId<struct BlockTag>;
using ValueId = StrongId<struct ValueTag, uint16_t>;

static_assert(!std::is_convertible_v<int, BlockId>);
static_assert(!std::is_convertible_v<BlockId, uint32_t>);
static_assert(!std::is_constructible_v<BlockId, ValueId>);
static_assert(sizeof(BlockId) == 4 && sizeof(ValueId) == 2);

TEST(StrongIdTest, DefaultNamesNothing) {
    EXPECT_FALSE(BlockId().valid());
    EXPECT_TRUE(BlockId(0).valid());
    EXPECT_NE(BlockId(), BlockId(0));
}

TEST(StrongIdTest, OrdersAndHashesByItsIndex) {
    EXPECT_LT(BlockId(1), BlockId(2));
    std::unordered_map<ValueId, int> map = {{ValueId(1), 10}, {ValueId(2), 20}};
    EXPECT_EQ(map.at(ValueId(2)), 20);
    EXPECT_EQ(ValueId(2).value(), 2);
}

}  // namespace
}  // namespace fornax
