// What guards prove, and what numbers that do not fit must not seem to prove.
#include "compiler/graph/plan/size_proofs.h"

#include <gtest/gtest.h>

namespace fornax::graph {
namespace {

const Symbol n("n"), m("m"), k("k"), j("j");

TEST(SizeProofs, FormsOfTheSameValue) {
    const SizeProofs none({});
    EXPECT_TRUE(none.AreEqual(2 * Expr(n) + 4, 2 * (Expr(n) + 2)));
    EXPECT_FALSE(none.AreEqual(n, m));
    EXPECT_TRUE(none.HaveEqualVolumes(Shape({n, 8}), Shape({2, n, 4})));
    EXPECT_FALSE(none.HaveEqualVolumes(Shape({n, 8}), Shape({n, 9})));
    EXPECT_TRUE(none.HaveEqualVolumes(Shape({}), Shape({1, 1})));
}

TEST(SizeProofs, GuardsMakeSymbolsEqual) {
    const std::vector<Guard> guards = {{Relation::kEqual, n, m},
                                       {Relation::kEqual, k, m},
                                       {Relation::kEqual, 8, j},
                                       {Relation::kLessEqual, Symbol("a"), Symbol("b")}};
    const SizeProofs proofs(guards);
    EXPECT_TRUE(proofs.AreEqual(Expr(n) * n, Expr(k) * m));
    EXPECT_TRUE(proofs.HaveEqualVolumes(Shape({k, 4, 2}), Shape({j, n})));
    EXPECT_FALSE(proofs.AreEqual(Symbol("a"), Symbol("b")));
    EXPECT_TRUE(proofs.Holds({Relation::kLessEqual, Symbol("a"), Symbol("b")}));
    EXPECT_TRUE(proofs.Holds({Relation::kEqual, k, n}));
    EXPECT_FALSE(proofs.Holds({Relation::kLess, k, n}));
}

TEST(SizeProofs, GuardsOfExpressions) {
    const std::vector<Guard> guards = {{Relation::kEqual, 2 * Expr(n), m},
                                       {Relation::kEqual, Expr(n) * m, FloorDiv(k, 2)},
                                       {Relation::kEqual, FloorDiv(k, 2), Expr(j) + 1}};
    const SizeProofs proofs(guards);
    EXPECT_TRUE(proofs.AreEqual(Expr(m) + 3, 2 * Expr(n) + 3));
    EXPECT_TRUE(proofs.AreEqual(Expr(n) * m, Expr(j) + 1));
    EXPECT_FALSE(proofs.AreEqual(Expr(n) * m, j));
}

// Saturated numbers compare equal; nothing may follow from that.
TEST(SizeProofs, NumbersThatDoNotFitProveNothing) {
    const SizeProofs none({});
    const int64_t large = int64_t{1} << 40;
    EXPECT_EQ(Shape({large, large}).Volume(), Shape({large, large, 2}).Volume());
    EXPECT_FALSE(none.HaveEqualVolumes(Shape({large, large}), Shape({large, large, 2})));
    EXPECT_FALSE(none.HaveEqualVolumes(Shape({large * Expr(n), large * Expr(n)}),
                                       Shape({large * Expr(n), large * Expr(n), 2})));
    const std::vector<Guard> guards = {{Relation::kEqual, n, large}, {Relation::kEqual, m, n}};
    const SizeProofs proofs(guards);
    EXPECT_TRUE(proofs.AreEqual(m, large));
    EXPECT_FALSE(proofs.AreEqual(Expr(n) * n, Expr(n) * n * 2));
    EXPECT_FALSE(proofs.HaveEqualVolumes(Shape({n, m}), Shape({n, n, 2})));
}

}  // namespace
}  // namespace fornax::graph
