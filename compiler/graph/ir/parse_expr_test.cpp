// Expressions as text: what is printed reads back as the same expression.
#include "compiler/graph/ir/parse_expr.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fornax::graph {
namespace {

using ::testing::HasSubstr;

Expr RandomExpr(std::mt19937& random, int depth) {
    const auto below = [&](uint32_t n) { return static_cast<int64_t>(random() % n); };
    if (depth == 0) {
        constexpr const char* kNames[] = {"n", "m_2", "$i0", "$v7", "batch.size"};
        return below(3) == 0 ? Expr(below(9) - 4) : Expr(Symbol(kNames[below(5)]));
    }
    const Expr a = RandomExpr(random, depth - 1), b = RandomExpr(random, depth - 1);
    switch (below(8)) {
        case 0:
            return FloorDiv(a, b);
        case 1:
            return Mod(a, b);
        case 2:
            return Min(a, b);
        case 3:
            return Max(a, b);
        case 4:
            return a * b;
        case 5:
            return a - 3 * b;
        default:
            return a + b;
    }
}

TEST(ParseExpr, ReadsBackWhatIsPrinted) {
    std::mt19937 random(5);
    for (int i = 0; i < 2000; ++i) {
        const Expr expr = RandomExpr(random, 1 + i % 5);
        const std::string text = expr.ToString();
        if (text.size() > kMaxExprText) {
            continue;
        }
        const Result<Expr> parsed = ParseExpr(text);
        ASSERT_TRUE(parsed.ok()) << text << ": " << parsed.error().message;
        EXPECT_EQ(parsed->ToString(), text);
        EXPECT_TRUE(*parsed == expr) << text;
    }
}

TEST(ParseExpr, TakesWhatAPersonWrites) {
    const Expr n(Symbol("n")), m(Symbol("m"));
    EXPECT_EQ(*ParseExpr(" ( n+2 )*3 + 1 * m"), 3 * n + 6 + m);
    EXPECT_EQ(*ParseExpr("floor(n + 1,2)"), FloorDiv(n + 1, 2));
    EXPECT_EQ(*ParseExpr("-9223372036854775808"), Expr(INT64_MIN));
    EXPECT_EQ(*ParseExpr("9223372036854775807"), Expr(INT64_MAX));
    EXPECT_EQ(*ParseExpr("-9223372036854775808*n"), Expr(INT64_MIN) * n);
}

TEST(ParseExpr, RefusesWithTheReason) {
    const std::pair<std::string, const char*> cases[] = {
        {"", "a number or a name is missing at ''"},
        {"n +", "a number or a name is missing at ''"},
        {"n m", "an operator or the end is missing at 'm'"},
        {"(n", "')' is missing"},
        {"floor(n)", "',' is missing"},
        {"floor", "'(' is missing"},
        {"$", "a number or a name is missing at '$'"},
        {"n$", "an operator or the end is missing at '$'"},
        {"9223372036854775808", "does not fit 64 bits"},
        {"-9223372036854775809", "does not fit 64 bits"},
        {std::string(100, '('), "nested deeper than 64 levels"},
        {std::string(5000, '1'), "5000 bytes, more than 4096"},
    };
    for (const auto& [text, message] : cases) {
        const Result<Expr> parsed = ParseExpr(text);
        ASSERT_FALSE(parsed.ok()) << text;
        EXPECT_THAT(parsed.error().message, HasSubstr(message)) << text;
    }
}

TEST(ParseExpr, StaysSmallOnHostileText) {
    // Each level would double the expression if its parts were written out.
    std::string text = "n";
    while (2 * text.size() + 20 < kMaxExprText) {
        text = "floor((" + text + " + 1)*(" + text + " + m), 3)";
    }
    EXPECT_TRUE(ParseExpr(text).ok());
    std::string sums = "1";
    for (int i = 0; i < 12; ++i) {
        sums = "(" + sums + ")*(a" + std::to_string(i) + " + b + c + d)";
    }
    EXPECT_TRUE(ParseExpr(sums).ok());
}

}  // namespace
}  // namespace fornax::graph
