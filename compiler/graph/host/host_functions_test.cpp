// The operators of the host, and patterns of texts.
#include "compiler/graph/host/host_functions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>

#include "compiler/graph/host/tensors.h"
#include "compiler/graph/host/text_pattern.h"

namespace fornax::graph::host {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> Integers(const Tensor& tensor) {
    std::vector<int64_t> values;
    for (int64_t i = 0; i < tensor.count(); ++i) {
        values.push_back(tensor.At(i).integer);
    }
    return values;
}

std::vector<Tensor> Call(const std::string& name,
                         const std::vector<Tensor>& operands,
                         const Attributes& attributes = {},
                         std::vector<TensorType> types = {}) {
    const op::HostCall call{name, attributes, std::move(types)};
    Results results = StandardHostFunctions().at(name)(call, operands);
    EXPECT_EQ(results.ok() ? "" : results.error().message, "");
    return results.ok() ? *results : std::vector<Tensor>(4);
}

TEST(HostFunctions, NonZeroGivesCoordinatesByAxis) {
    const Tensor x = Tensor::FromFloats({2, 2}, std::vector<float>{0, 5, -1, 0});
    const Tensor places = Call("nonzero", {x})[0];
    EXPECT_THAT(places.dims, ElementsAre(2, 2));
    EXPECT_THAT(Integers(places), ElementsAre(0, 1, 1, 0));
}

TEST(HostFunctions, UniqueSortsOrKeepsTheOrder) {
    const Tensor x = Tensor::FromIntegers({5}, std::vector<int64_t>{7, 3, 7, 1, 3});
    const std::vector<Tensor> sorted = Call("unique", {x}, {{"sorted", int64_t{1}}});
    EXPECT_THAT(Integers(sorted[0]), ElementsAre(1, 3, 7));
    EXPECT_THAT(Integers(sorted[1]), ElementsAre(3, 1, 0));
    EXPECT_THAT(Integers(sorted[2]), ElementsAre(2, 1, 2, 0, 1));
    EXPECT_THAT(Integers(sorted[3]), ElementsAre(1, 2, 2));
    const std::vector<Tensor> kept = Call("unique", {x}, {{"sorted", int64_t{0}}});
    EXPECT_THAT(Integers(kept[0]), ElementsAre(7, 3, 1));
    EXPECT_THAT(Integers(kept[2]), ElementsAre(0, 1, 0, 2, 1));
}

TEST(HostFunctions, UniqueOfRows) {
    const Tensor x = Tensor::FromIntegers({3, 2}, std::vector<int64_t>{1, 0, 1, 0, 0, 9});
    const std::vector<Tensor> rows =
        Call("unique", {x}, {{"sorted", int64_t{1}}, {"axis", int64_t{0}}});
    EXPECT_THAT(rows[0].dims, ElementsAre(2, 2));
    EXPECT_THAT(Integers(rows[0]), ElementsAre(0, 9, 1, 0));
}

TEST(HostFunctions, FirstCutsAllAlike) {
    const Tensor count = Tensor::FromIntegers({}, std::vector<int64_t>{2});
    const Tensor x = Tensor::FromIntegers({3, 2}, std::vector<int64_t>{1, 2, 3, 4, 5, 6});
    const std::vector<Tensor> cut = Call("first", {count, x, FromStrings({2}, {"a", "b"})});
    EXPECT_THAT(cut[0].dims, ElementsAre(2, 2));
    EXPECT_THAT(Integers(cut[0]), ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(*cut[1].strings, ElementsAre("a", "b"));
    const Results more = StandardHostFunctions().at("first")(
        {"first", {}, {}},
        std::vector<Tensor>{Tensor::FromIntegers({}, std::vector<int64_t>{4}), x});
    ASSERT_FALSE(more.ok());
    EXPECT_EQ(more.error().message, "4 slices of i64[3,2] are wanted");
}

// A plane whose numbers are 10 a row and 1 a column.
TEST(HostFunctions, BoxesAreSampledAsOftenAsTheyAreLarge) {
    std::vector<float> plane(40);
    for (size_t i = 0; i < plane.size(); ++i) {
        const size_t row = i / 8, column = i % 8;
        plane[i] = static_cast<float>(row * 10 + column);
    }
    const Tensor x = Tensor::FromFloats({1, 1, 5, 8}, plane);
    const Attributes attributes = {
        {"height", int64_t{1}}, {"width", int64_t{2}}, {"half_pixel", int64_t{1}}, {"scale", 0.5}};
    const auto align = [&](const std::vector<float>& box, int64_t image) {
        return StandardHostFunctions().at("roi_align")(
            {"roi_align", attributes, {}},
            std::vector<Tensor>{x, Tensor::FromFloats({1, 4}, box),
                                Tensor::FromIntegers({1}, std::vector<int64_t>{image})});
    };
    // From 0.5 to 6.5 along rows and to 3.5 along columns: two bins of 3 by 3 samples.
    const Results means = align({2, 2, 14, 8}, 0);
    ASSERT_TRUE(means.ok()) << means.error().message;
    EXPECT_THAT(means->at(0).dims, ElementsAre(1, 1, 1, 2));
    EXPECT_FLOAT_EQ(static_cast<float>(means->at(0).At(0).number), 22);
    EXPECT_FLOAT_EQ(static_cast<float>(means->at(0).At(1).number), 25);
    // Nothing is sampled in a box whose end is before its beginning.
    EXPECT_EQ(align({14, 8, 2, 2}, 0)->at(0).At(0).number, 0);
    EXPECT_EQ(align({2, 2, 14, 8}, 1).error().message, "box 0 is of the image 1; there are 1");
    EXPECT_THAT(align({0, 0, 1e30F, 8}, 0).error().message, HasSubstr("too large"));
    EXPECT_FALSE(align({NAN, 0, 1, 8}, 0).ok());
}

TEST(HostFunctions, StringsSplitAtWhiteSpaceOrDelimiters) {
    const Tensor x = FromStrings({2}, {"  a bc ", "d"});
    const std::vector<Tensor> words = Call("string_split", {x}, {{"most", int64_t{-1}}});
    EXPECT_THAT(words[0].dims, ElementsAre(2, 2));
    EXPECT_THAT(*words[0].strings, ElementsAre("a", "bc", "d", ""));
    EXPECT_THAT(Integers(words[1]), ElementsAre(2, 1));
    const std::vector<Tensor> once = Call("string_split", {FromStrings({1}, {"a.b.c"})},
                                          {{"most", int64_t{1}}, {"delimiter", std::string(".")}});
    EXPECT_THAT(*once[0].strings, ElementsAre("a", "b.c"));
}

TEST(HostFunctions, NumbersToTextAndBack) {
    const Tensor x = Tensor::FromFloats({3}, std::vector<float>{0.5, -3, 1e20F});
    const Tensor texts = Call("to_string", {x})[0];
    EXPECT_THAT(*texts.strings, ElementsAre("0.5", "-3", "1e+20"));
    const Tensor back = Call("from_string", {texts}, {}, {{ElementType::kF32, {3}}})[0];
    EXPECT_TRUE(std::ranges::equal(*back.data, *x.data));
}

TEST(HostFunctions, WrongOperandsAreRefused) {
    const op::HostCall call{"string_concat", {}, {}};
    const Results results = StandardHostFunctions().at("string_concat")(call, {});
    ASSERT_FALSE(results.ok());
    EXPECT_EQ(results.error().message, "it has 0 operands, not 2");
}

bool Matches(std::string_view pattern, std::string_view text) {
    const Result<TextPattern> parsed = TextPattern::Parse(pattern);
    EXPECT_TRUE(parsed.ok()) << parsed.error().message;
    return parsed.ok() && parsed->Matches(text);
}

TEST(TextPattern, MatchesWholeTexts) {
    EXPECT_TRUE(Matches("a|bc", "bc"));
    EXPECT_FALSE(Matches("a|bc", "bcc"));
    EXPECT_TRUE(Matches("(?:ab)+c?", "ababc"));
    EXPECT_FALSE(Matches("(?:ab)+c?", "abac"));
    EXPECT_TRUE(Matches("[^0-9]{2,3}", "abc"));
    EXPECT_FALSE(Matches("[^0-9]{2,3}", "abcd"));
    EXPECT_TRUE(Matches("\\w+@\\w+\\.com", "me@here.com"));
    EXPECT_FALSE(Matches("\\w+@\\w+\\.com", "me@herexcom"));
    EXPECT_TRUE(Matches("", ""));
    EXPECT_TRUE(Matches("^x{3}$", "xxx"));
    EXPECT_TRUE(Matches("(\\W|^)a\\b.*", "a b"));
    EXPECT_FALSE(Matches("(\\W|^)a\\b.*", "ab"));
    EXPECT_FALSE(Matches("a^b", "ab"));
}

TEST(TextPattern, TakesNoLongerForNestedRepetitions) {
    EXPECT_FALSE(Matches("(a*)*b", std::string(10'000, 'a')));
}

TEST(TextPattern, RefusesWhatItDoesNotKnow) {
    for (const char* pattern :
         {"(a", "a)", "[a", "*", "(?=a)", "\\1", "a**", "x{2000}", "[[:alpha:]]"}) {
        const Result<TextPattern> parsed = TextPattern::Parse(pattern);
        ASSERT_FALSE(parsed.ok()) << pattern;
        EXPECT_THAT(parsed.error().message, HasSubstr(pattern));
    }
    EXPECT_FALSE(TextPattern::Parse("((((a{1000}){1000}){1000}){1000})").ok());
}

}  // namespace
}  // namespace fornax::graph::host
