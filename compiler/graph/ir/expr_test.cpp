// Expressions: normal forms, bounds, simplification. Random expressions keep their value.
#include "compiler/graph/ir/expr.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace fornax::graph {
namespace {

const Symbol kI("$i"), kJ("$j"), kN("n");

Domain LoopsOf(int64_t i, int64_t j) {
    Domain domain;
    domain.ranges[kN] = {1, 1000};
    domain.AddVariable(kI, i);
    domain.AddVariable(kJ, j);
    return domain;
}

TEST(Expr, SumsAndProductsAreInNormalForm) {
    const Expr i(kI), j(kJ), n(kN);
    EXPECT_EQ((i + 2) * (j - 1), i * j - i + 2 * j - 2);
    EXPECT_EQ(n * i + i * n, 2 * i * n);
    EXPECT_EQ((i - i).constant(), 0);
    EXPECT_EQ((3 * i * n + 4).ToString(), "3*$i*n + 4");
    EXPECT_EQ((-i - 5).ToString(), "-$i - 5");
}

TEST(Expr, DivisionTakesOutWhatDivides) {
    const Expr i(kI), j(kJ), n(kN);
    EXPECT_EQ(FloorDiv(6 * i + j + 13, 6), i + 2 + FloorDiv(j + 1, 6));
    EXPECT_EQ(Mod(6 * i + 7, 6), Expr(1));
    EXPECT_EQ(FloorDiv(n * i + j, n), i + FloorDiv(j, n));
    EXPECT_EQ(FloorDiv(4 * i, 8), FloorDiv(i, 2));
    EXPECT_EQ(FloorDiv(FloorDiv(i, 4), 3), FloorDiv(i, 12));
    EXPECT_EQ(FloorDiv(Expr(-7), 2), Expr(-4));
    EXPECT_EQ(Mod(Expr(-7), 2), Expr(1));
    EXPECT_EQ(CeilDiv(Expr(7), 2), Expr(4));
}

TEST(Expr, MinAndMaxOfKnownDifference) {
    const Expr n(kN);
    EXPECT_EQ(Min(n, n + 1), n);
    EXPECT_EQ(Max(n, n + 1), n + 1);
    EXPECT_EQ(Min(n, Expr(kI)), Min(Expr(kI), n));
}

TEST(Expr, CoefficientsAreStrides) {
    const Expr i(kI), j(kJ), n(kN);
    const Expr index = 4 * n * i + j + 3;
    EXPECT_EQ(index.Coefficient(kI), 4 * n);
    EXPECT_EQ(index.Coefficient(kJ), Expr(1));
    EXPECT_EQ(index.Coefficient(Symbol("other")), Expr(0));
    EXPECT_EQ(index.Without(kI), j + 3);
    EXPECT_EQ(FloorDiv(i, 3).Coefficient(kI), std::nullopt);
    EXPECT_EQ((i * i).Coefficient(kI), std::nullopt);
}

TEST(Expr, BoundsOfFunctions) {
    const Domain domain = LoopsOf(8, 4);
    const Expr i(kI), j(kJ);
    EXPECT_EQ((4 * i - j).Bounds(domain.ranges), (Range{-3, 28}));
    EXPECT_EQ(FloorDiv(i - 1, 2).Bounds(domain.ranges), (Range{-1, 3}));
    EXPECT_EQ(Mod(i, 5).Bounds(domain.ranges), (Range{0, 4}));
    EXPECT_EQ(Min(i, 3).Bounds(domain.ranges), (Range{0, 3}));
    EXPECT_EQ(Expr(Symbol("unknown")).Bounds(domain.ranges), Range{});
}

TEST(Expr, RangesSimplifyDivisions) {
    const Domain domain = LoopsOf(8, 4);
    const Expr i(kI), j(kJ);
    EXPECT_EQ(FloorDiv(4 * i + j, 4).Simplify(domain), i);
    EXPECT_EQ(Mod(4 * i + j, 4).Simplify(domain), j);
    EXPECT_EQ(FloorDiv(4 * i + j, 8).Simplify(domain), FloorDiv(i, 2));
    EXPECT_EQ(Mod(4 * i + j, 8).Simplify(domain), 4 * Mod(i, 2) + j);
    EXPECT_EQ(FloorDiv(4 * i + j, 32).Simplify(domain), Expr(0));
    EXPECT_EQ(Max(i, Expr(0)).Simplify(domain), i);
}

TEST(Expr, QuotientsAndRemaindersAreRecomposed) {
    const Expr i(kI), j(kJ), n(kN);
    const Domain domain = LoopsOf(7744, 32);
    EXPECT_EQ((44 * FloorDiv(i, 44) + Mod(i, 44)).Simplify(domain), i);
    const Expr offset =
        (4 * j + FloorDiv(i, 1936)) * 1936 + 44 * Mod(FloorDiv(i, 44), 44) + Mod(i, 44);
    EXPECT_EQ(offset.Simplify(domain), 7744 * j + i);
    EXPECT_EQ((-88 * FloorDiv(i + j, 44) - 2 * Mod(i + j, 44)).Simplify(domain), -2 * i - 2 * j);
    EXPECT_EQ((43 * FloorDiv(i, 44) + Mod(i, 44)).Simplify(domain),
              43 * FloorDiv(i, 44) + Mod(i, 44));
    EXPECT_EQ((n * FloorDiv(i, 44) + Mod(i, 44)).Simplify(domain),
              n * FloorDiv(i, 44) + Mod(i, 44));
}

TEST(Expr, SymbolicExtentsSimplifyDivisions) {
    Domain domain;
    domain.ranges[kN] = {1, INT32_MAX};
    domain.AddVariable(kI, 8);
    domain.AddVariable(kJ, Expr(kN));
    const Expr i(kI), j(kJ), n(kN);
    EXPECT_EQ(FloorDiv(n * i + j, n).Simplify(domain), i);
    EXPECT_EQ(Mod(n * i + j, n).Simplify(domain), j);
    EXPECT_TRUE(domain.IsLess(n * i + j, 8 * n));
    EXPECT_FALSE(domain.IsLess(n * i + j, 8 * n - 1));
}

TEST(Expr, ArithmeticSaturates) {
    EXPECT_EQ(Expr(INT64_MAX) + 1, Expr(INT64_MAX));
    EXPECT_EQ(Expr(INT64_MIN) * 2, Expr(INT64_MIN));
    EXPECT_EQ((Expr(kI) * INT64_MAX * 2).Evaluate({{kI, 2}}), std::nullopt);
    EXPECT_EQ(FloorDiv(Expr(kI), 0).Evaluate({{kI, 2}}), std::nullopt);
}

TEST(Expr, LargeProductsStaySmall) {
    Expr product(1);
    Bindings values;
    int64_t expected = 1;
    for (int i = 0; i < 20; ++i) {
        const Symbol symbol("s" + std::to_string(i));
        product *= Expr(symbol) + 1;
        values[symbol] = i % 2;
        expected *= i % 2 + 1;
    }
    EXPECT_LE(product.terms().size(), 64U);
    EXPECT_EQ(product.Evaluate(values), expected);
}

// An expression beside a function that computes it, without normal forms.
struct Pair {
    Expr expr;
    std::function<std::optional<int64_t>(const Bindings&)> value;
};

Pair RandomPair(std::mt19937& random, int depth) {
    if (depth == 0 || random() % 5 == 0) {
        if (random() % 3 == 0) {
            const int64_t constant = static_cast<int64_t>(random() % 13) - 3;
            return {constant, [=](const Bindings&) { return constant; }};
        }
        const Symbol symbol = random() % 2 == 0 ? kI : random() % 2 == 0 ? kJ : kN;
        return {symbol, [=](const Bindings& values) { return values.at(symbol); }};
    }
    const Pair a = RandomPair(random, depth - 1), b = RandomPair(random, depth - 1);
    using Function = int64_t (*)(int64_t, int64_t);
    const auto join = [&](const Expr& expr, Function function, bool divides = false) -> Pair {
        return {expr, [=](const Bindings& values) -> std::optional<int64_t> {
                    const auto x = a.value(values), y = b.value(values);
                    return x && y && !(divides && *y == 0) ? std::optional(function(*x, *y))
                                                           : std::nullopt;
                }};
    };
    switch (random() % 7) {
        case 0:
            return join(a.expr + b.expr, [](int64_t x, int64_t y) { return x + y; });
        case 1:
            return join(a.expr - b.expr, [](int64_t x, int64_t y) { return x - y; });
        case 2:
            return join(a.expr * b.expr, [](int64_t x, int64_t y) { return x * y; });
        case 3:
            return join(FloorDiv(a.expr, b.expr), FloorDivide, true);
        case 4:
            return join(Mod(a.expr, b.expr), FloorModulo, true);
        case 5:
            return join(Min(a.expr, b.expr), [](int64_t x, int64_t y) { return std::min(x, y); });
        default:
            return join(Max(a.expr, b.expr), [](int64_t x, int64_t y) { return std::max(x, y); });
    }
}

TEST(Expr, RandomExpressionsKeepTheirValue) {
    std::mt19937 random(7);
    for (int round = 0; round < 4000; ++round) {
        const Pair pair = RandomPair(random, 4);
        const Domain domain = LoopsOf(6, 5);
        const Expr simple = pair.expr.Simplify(domain);
        const Range bounds = pair.expr.Bounds(domain.ranges);
        for (int sample = 0; sample < 8; ++sample) {
            const Bindings values = {{kI, random() % 6},
                                     {kJ, random() % 5},
                                     {kN, 1 + random() % (sample % 2 == 0 ? 4 : 1000)}};
            const std::optional<int64_t> expected = pair.value(values);
            if (!expected) {
                continue;  // a division by 0 somewhere, which a form may lose
            }
            EXPECT_EQ(pair.expr.Evaluate(values), expected) << pair.expr.ToString();
            EXPECT_EQ(simple.Evaluate(values), expected)
                << pair.expr.ToString() << " -> " << simple.ToString();
            EXPECT_LE(bounds.low, *expected) << pair.expr.ToString();
            EXPECT_GE(bounds.high, *expected) << pair.expr.ToString();
        }
    }
}

}  // namespace
}  // namespace fornax::graph
