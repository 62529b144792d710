#include "compiler/graph/generalize/generalize.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/graph/generalize/sizes_of_graph.h"

namespace fornax::graph {
namespace {

using ::testing::HasSubstr;

Graph Parse(const std::string& text) {
    Result<Graph> graph = ParseGraph(text);
    EXPECT_TRUE(graph.ok()) << graph.error().message << "\n" << text;
    return graph.ok() ? *std::move(graph) : Graph();
}

// Scores of `keys` keys in a cache of 1024 rows, as a frontend with constant sizes says it.
Graph Attention(int64_t keys, std::string_view more = "") {
    return Parse(fmt::format(R"(graph "of {0} keys" {{
    %0 = input "query" f32[4,8]
    %1 = input "mask" f32[4,{0}]
    %2 = read_state "cache" () {{state = "cache", type = f32[8192]}}
    %3 = slice "part" (%2) {{starts = [0], steps = [1], shape = [{1}]}}
    %4 = reshape "keys" (%3) {{shape = [{0},8]}}
    %5 = contract "scores" (%0, %4) {{a = "qd", b = "kd", result = "qk", accumulate = f32}}
    %6 = map "masked" (%5, %1) {{function = add}}
    %7 = reduce "result" (%6) {{combine = max, axes = [1]}}
    {2}
    output "result" %7
}})",
                             keys, keys * 8, more));
}

std::vector<int64_t> SizesOf(const Graph& graph) {
    const std::optional<FamilyMember> member = SplitSizes(graph);
    EXPECT_TRUE(member);
    return member ? member->sizes : std::vector<int64_t>();
}

Hash128 FamilyOf(const Graph& graph) {
    const std::optional<FamilyMember> member = SplitSizes(graph);
    EXPECT_TRUE(member);
    return member ? member->family : Hash128();
}

std::optional<Generalization> Between(const Graph& a, const Graph& b) {
    EXPECT_EQ(FamilyOf(a), FamilyOf(b));
    return Generalization::Between(b, SizesOf(a), SizesOf(b));
}

// Two graphs of which a part, a text for fmt with one number, is another.
std::optional<Generalization> BetweenTexts(std::string_view text, int64_t a, int64_t b) {
    return Between(Parse(fmt::format(fmt::runtime(text), a)),
                   Parse(fmt::format(fmt::runtime(text), b)));
}

TEST(SizesOfGraph, OnlySizesTellMembersApart) {
    const Hash128 family = FamilyOf(Attention(64));
    EXPECT_EQ(family, FamilyOf(Attention(128)));
    EXPECT_NE(family,
              FamilyOf(Attention(64, R"(%8 = reduce "x" (%6) {combine = sum, axes = [0]})")));
}

TEST(SizesOfGraph, InputsComeFirst) {
    EXPECT_THAT(SizesOf(Attention(64)), ::testing::ElementsAre(4, 8, 4, 64, 8192, 0, 512, 64, 8));
}

TEST(SizesOfGraph, SymbolsBelongToNoFamily) {
    EXPECT_FALSE(SplitSizes(Parse(R"(graph "g" {
    symbol n = 3 in 0..9
    %0 = input "x" f32[n]
    output "y" %0
})")));
}

TEST(SizesOfGraph, BodiesHaveSizesToo) {
    const auto graph = [](int64_t n) {
        return Parse(fmt::format(R"(graph "g" {{
    %0 = input "x" f32[{0}]
    %1 = composite "c" (%0) {{name = "c", attributes = {{}}}}
        graph "body" {{
            %0 = input "x" f32[{0}]
            %1 = map "twice" (%0, %0) {{function = add}}
            output "y" %1
        }}
    output "y" %1
}})",
                                 n));
    };
    EXPECT_EQ(FamilyOf(graph(3)), FamilyOf(graph(5)));
    EXPECT_THAT(SizesOf(graph(3)), ::testing::ElementsAre(3, 3));
    const std::optional<Generalization> made = Between(graph(3), graph(5));
    ASSERT_TRUE(made);
    const Result<Graph> general = made->Apply(graph(3), "general", {});
    ASSERT_TRUE(general.ok()) << general.error().message;
    EXPECT_EQ(general->TypeOf(general->outputs()[0].value).ToString(), "f32[size0]");
}

TEST(Generalize, AffineSizesBecomeExpressions) {
    const std::optional<Generalization> made = Between(Attention(64), Attention(192));
    ASSERT_TRUE(made);
    EXPECT_TRUE(made->Covers(SizesOf(Attention(64))));
    EXPECT_TRUE(made->Covers(SizesOf(Attention(320))));
    EXPECT_FALSE(made->Covers(SizesOf(Attention(100))));
    const Result<Graph> graph = made->Apply(Attention(64), "general", {});
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    EXPECT_EQ(graph->ShapeOf(graph->inputs()[1]).ToString(), "[4,64*size0]");
    EXPECT_EQ(graph->sizes().hints().at(Symbol("size0")), 3);
    // What the cache has is a guard: no more than 1024 keys.
    const auto holds = [&](int64_t value) {
        return std::ranges::all_of(graph->sizes().guards(), [&](const Guard& guard) {
            return guard.Holds({{Symbol("size0"), value}});
        });
    };
    EXPECT_TRUE(holds(16));
    EXPECT_FALSE(holds(17));
}

TEST(Generalize, OneSizeMayGrowAsAnotherShrinks) {
    const std::string text = R"(graph "g" {{
    %0 = input "x" f32[{0}]
    %1 = input "y" f32[100]
    %2 = slice "s" (%1) {{starts = [{0}], steps = [1], shape = [1]}}
    output "x" %0
    output "y" %2
}})";
    const std::optional<Generalization> made = BetweenTexts(text, 3, 7);
    ASSERT_TRUE(made);
    EXPECT_TRUE(made->Apply(Parse(fmt::format(fmt::runtime(text), 9)), "g", {}).ok());
}

// Kernels are slower where an extent may be negative, and no size is.
TEST(Generalize, SizesAreNotNegative) {
    const std::string text = R"(graph "g" {{
    %0 = input "x" f32[{0},{1}]
    output "x" %0
}})";
    const auto graph = [&](int64_t a, int64_t b) {
        return Parse(fmt::format(fmt::runtime(text), a, b));
    };
    // 7 * size0 - 12, and 12 - 2 * size0.
    for (const auto& [first, second, low, high] :
         {std::tuple{graph(3, 9), graph(5, 23), 2, INT32_MAX},
          std::tuple{graph(3, 6), graph(5, 2), 1, 6}}) {
        const std::optional<Generalization> made = Between(first, second);
        ASSERT_TRUE(made);
        const Result<Graph> general = made->Apply(second, "general", {});
        ASSERT_TRUE(general.ok()) << general.error().message;
        EXPECT_EQ(general->sizes().ranges().at(Symbol("size0")), (Range{low, high}));
        EXPECT_FALSE(made->Covers(std::vector<int64_t>{1, -5}));
        EXPECT_FALSE(made->Covers(std::vector<int64_t>{7, -2}));
    }
    const std::vector<int64_t> a = {3, 9, 20}, b = {5, 9, 18}, c = {5, 12, 15};
    const auto with_two = [](std::span<const int64_t> sizes) {
        return Parse(fmt::format(R"(graph "g" {{
    %0 = input "x" f32[{},{},{}]
    output "x" %0
}})",
                                 sizes[0], sizes[1], sizes[2]));
    };
    const std::optional<Generalization> two = Generalization::Among(with_two(c), a, b, c);
    ASSERT_TRUE(two);
    EXPECT_EQ(two->Apply(with_two(c), "general", {}).error().message,
              "The size -size0 - size1 + 32 would have to be no less than 0.");
}

TEST(Generalize, EqualSizesHaveNothingToGeneralize) {
    EXPECT_FALSE(Between(Attention(64), Attention(64)));
    // No input grows.
    EXPECT_FALSE(BetweenTexts(R"(graph "g" {{
    %0 = input "x" f32[100]
    %1 = slice "s" (%0) {{starts = [0], steps = [1], shape = [{0}]}}
    output "y" %1
}})",
                              3, 7));
}

TEST(Generalize, HalvesOfOddSizesAreNoAffineFunction) {
    const auto graph = [](int64_t n) {
        return Parse(fmt::format(R"(graph "g" {{
    %0 = input "x" f32[{}]
    %1 = slice "s" (%0) {{starts = [0], steps = [1], shape = [{}]}}
    output "y" %1
}})",
                                 n, n / 2));
    };
    EXPECT_FALSE(Between(graph(3), graph(6)));
    const std::optional<Generalization> made = Between(graph(4), graph(6));  // n / 2 of even n
    ASSERT_TRUE(made);
    EXPECT_TRUE(made->Covers(SizesOf(graph(20))));
    EXPECT_FALSE(made->Covers(SizesOf(graph(7))));
}

// n * n happens to be 14 * n - 40 for 4 and 10, which would hold for these two alone.
TEST(Generalize, SquaresAreRefused) {
    const std::string text = R"(graph "g" {{
    %0 = input "x" f32[{0},{0}]
    %1 = reshape "flat" (%0) {{shape = [{1}]}}
    output "y" %1
}})";
    const auto graph = [&](int64_t n) { return Parse(fmt::format(fmt::runtime(text), n, n * n)); };
    const std::optional<Generalization> made = Between(graph(4), graph(10));
    ASSERT_TRUE(made);
    EXPECT_FALSE(made->Covers(SizesOf(graph(6))));
    const Result<Graph> general = made->Apply(graph(4), "g", {});
    ASSERT_FALSE(general.ok());
    EXPECT_THAT(general.error().message, HasSubstr("The sizes would have to be such that"));
}

// A prompt of another length is another number of rows.
TEST(Generalize, RowsOfProductsWithWeightsMayDifferWhereThatIsAsFast) {
    const std::string text = R"(graph "g" {{
    %0 = input "x" f32[{0},8]
    %1 = input "weights" f16[16,8]
    %2 = cast "decoded" (%1) {{to = f32, overflow = special, rounding = nearest_even}}
    %3 = contract "product" (%0, %2) {{a = "mk", b = "nk", result = "mn", accumulate = f32}}
    output "y" %3
}})";
    const Graph member = Parse(fmt::format(fmt::runtime(text), 9));
    const auto apply = [&](int64_t a, int64_t b, std::vector<WeightInput> weights) {
        const std::optional<Generalization> made = BetweenTexts(text, a, b);
        return made ? made->Apply(member, "g", weights)
                    : Error{ErrorCode::kInternal, "It is not generalized."};
    };
    EXPECT_TRUE(apply(3, 17, {}).ok());
    const Result<Graph> fixed = apply(3, 17, {{.input = 1, .any_rows = false}});
    ASSERT_FALSE(fixed.ok());
    EXPECT_THAT(fixed.error().message, HasSubstr("multiplies by weights differs"));
    const Result<Graph> free = apply(3, 17, {{.input = 1, .any_rows = true}});
    ASSERT_TRUE(free.ok()) << free.error().message;
    ASSERT_EQ(free->sizes().guards().size(), 1U);
    EXPECT_EQ(free->sizes().guards()[0].ToString(), "8 < size0");
    const Result<Graph> few = apply(17, 3, {{.input = 1, .any_rows = true}});
    ASSERT_FALSE(few.ok());
    EXPECT_THAT(few.error().message, HasSubstr("3 rows"));
}

TEST(Generalize, WeightsKeepTheirSizes) {
    const std::string text = R"(graph "g" {{
    %0 = input "weights" f32[{0}]
    output "y" %0
}})";
    const std::optional<Generalization> made = BetweenTexts(text, 3, 7);
    ASSERT_TRUE(made);
    EXPECT_FALSE(made->Apply(Parse(fmt::format(fmt::runtime(text), 3)), "g",
                             std::vector<WeightInput>{{.input = 0, .any_rows = true}})
                     .ok());
}

// Queries and keys in numbers that do not depend on each other, and a size that is their product.
Graph Scores(int64_t queries, int64_t keys) {
    return Parse(fmt::format(R"(graph "g" {{
    %0 = input "query" f32[{0},8]
    %1 = input "keys" f32[{1},8]
    %2 = contract "scores" (%0, %1) {{a = "qd", b = "kd", result = "qk", accumulate = f32}}
    %3 = reshape "flat" (%2) {{shape = [{2}]}}
    output "y" %3
}})",
                             queries, keys, queries * keys));
}

TEST(Generalize, TwoSizesMayGrow) {
    const auto sizes = [](int64_t queries, int64_t keys) { return SizesOf(Scores(queries, keys)); };
    const Graph member = Scores(40, 192);
    // One symbol does not explain both.
    EXPECT_FALSE(Generalization::Between(member, sizes(16, 64), sizes(40, 192)));
    const std::optional<Generalization> made =
        Generalization::Among(member, sizes(16, 64), sizes(16, 128), sizes(40, 192));
    ASSERT_TRUE(made);
    EXPECT_TRUE(made->Covers(sizes(16, 64)));
    EXPECT_TRUE(made->Covers(sizes(24, 320)));
    EXPECT_FALSE(made->Covers(sizes(12, 64)));
    EXPECT_FALSE(made->Covers(sizes(16, 96)));
    EXPECT_THAT(made->symbols(), ::testing::ElementsAre("size0", "size1"));
    const Result<Graph> graph = made->Apply(member, "general", {});
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    EXPECT_EQ(graph->ShapeOf(graph->inputs()[0]).ToString(), "[8*size0,8]");
    EXPECT_EQ(graph->ShapeOf(graph->inputs()[1]).ToString(), "[64*size1,8]");
    EXPECT_EQ(graph->ShapeOf(graph->outputs()[0].value).ToString(), "[512*size0*size1]");
    EXPECT_EQ(graph->sizes().hints().at(Symbol("size0")), 5);
    EXPECT_EQ(graph->sizes().hints().at(Symbol("size1")), 3);
}

TEST(Generalize, ThreeMembersOnALineHaveOneSymbol) {
    const auto sizes = [](int64_t n) { return SizesOf(Scores(n, n)); };
    EXPECT_FALSE(Generalization::Among(Scores(24, 24), sizes(8), sizes(16), sizes(24)));
    EXPECT_FALSE(Generalization::Among(Scores(24, 24), sizes(8), sizes(8), sizes(8)));
    EXPECT_FALSE(Generalization::Among(Scores(24, 24), sizes(8), sizes(8), {}));
}

// Sizes from a damaged or hostile record.
TEST(Generalize, WrongSizesAreRefused) {
    const Graph graph = Attention(64);
    const std::vector<int64_t> right = SizesOf(graph);
    const auto with = [&](size_t place, int64_t size) {
        std::vector<int64_t> sizes = right;
        sizes[place] = size;
        return sizes;
    };
    EXPECT_FALSE(Generalization::Between(graph, {}, {}));
    EXPECT_FALSE(Generalization::Between(graph, right, std::vector<int64_t>{1, 2}));
    for (const int64_t size : {INT64_MIN, INT64_MAX, int64_t{-1}, int64_t{0}}) {
        EXPECT_FALSE(Generalization::Between(graph, right, with(3, size))) << size;
        EXPECT_FALSE(Generalization::Among(graph, right, with(3, size), with(0, 8))) << size;
    }
    // The whole graph has no operand of such a size.
    const std::optional<Generalization> made = Generalization::Between(graph, right, with(1, 16));
    ASSERT_TRUE(made);
    EXPECT_FALSE(made->Covers(SizesOf(Attention(128))));
    EXPECT_FALSE(made->Apply(graph, "g", {}).ok());
    EXPECT_FALSE(made->Covers(std::vector<int64_t>{1}));
}

}  // namespace
}  // namespace fornax::graph
