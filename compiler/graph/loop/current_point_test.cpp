// What is known in which scope.
#include "compiler/graph/loop/current_point.h"

#include <gtest/gtest.h>

namespace fornax::graph::loop {
namespace {

TEST(CurrentPointTest, ValuesAreKnownInTheirScopeAndInside) {
    CurrentPoint point;
    const ValueScope outer(point);
    point.Add(ScalarId(1), 10);
    {
        const ValueScope inner(point, {{3, 30}});
        point.Add(ScalarId(2), 20);
        EXPECT_EQ(point.Find(ScalarId(1)), 10);
        EXPECT_EQ(point.Find(ScalarId(2)), 20);
        EXPECT_EQ(point.Find(ScalarId(3)), 30);
    }
    EXPECT_EQ(point.Find(ScalarId(1)), 10);
    EXPECT_EQ(point.Find(ScalarId(2)), 0);
    EXPECT_EQ(point.Find(ScalarId(3)), 0);
}

TEST(CurrentPointTest, AScopeKeepsItsFirstValueUnlessItIsReplaced) {
    CurrentPoint point;
    const ValueScope scope(point);
    point.Add(ScalarId(1), 10);
    point.Add(ScalarId(1), 11);
    EXPECT_EQ(point.Find(ScalarId(1)), 10);
    point.Replace(ScalarId(1), 12);
    EXPECT_EQ(point.Find(ScalarId(1)), 12);
}

TEST(CurrentPointTest, AnExpressionIsAsDeepAsItsInnermostSymbol) {
    CurrentPoint point;
    const ValueScope outer(point);
    const Symbol n("n"), i("$i"), j("$j");
    point.BindSize(n, 1);
    point.Bind(i, 2);
    const ValueScope inner(point);
    EXPECT_EQ(point.DepthOf(Expr(n)), 0);
    EXPECT_EQ(point.DepthOf(Expr(n) * Expr(i)), 1);
    EXPECT_EQ(point.DepthOf(Expr(i) + Expr(j)), 2);  // $j will be bound here, at the soonest
    point.Unbind(i);
    EXPECT_EQ(point.ValueOf(i), 0);
    EXPECT_EQ(point.ValueOf(n), 1);
}

TEST(CurrentPointTest, VariablesAndUniformityEndWithTheirScope) {
    CurrentPoint point;
    point.AddVariables(1);
    {
        const BoundVariables bound(point, 2);
        const UniformCode uniform(point, true);
        point.AddVariables(4);
        EXPECT_EQ(point.variables(), 7);
        EXPECT_TRUE(point.uniform());
    }
    EXPECT_EQ(point.variables(), 1);
    EXPECT_FALSE(point.uniform());
}

}  // namespace
}  // namespace fornax::graph::loop
