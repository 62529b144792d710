// Each primitive's value on operands small enough to compute by hand.
#include "compiler/graph/interpret/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fornax::graph {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Tensor Floats(std::vector<int64_t> dims, std::vector<float> values) {
    return Tensor::FromFloats(std::move(dims), values);
}

Tensor Integers(std::vector<int64_t> dims, std::vector<int64_t> values) {
    return Tensor::FromIntegers(std::move(dims), values);
}

// A tensor of any element type, from numbers.
Tensor Of(ElementType element, std::vector<int64_t> dims, const std::vector<double>& values) {
    uint8_t* data = nullptr;
    Tensor tensor = Tensor::Zeros(element, std::move(dims), &data);
    for (size_t i = 0; i < values.size(); ++i) {
        WriteElement(element, Scalar::Float(values[i]), data + i * BytesOf(element));
    }
    return tensor;
}

Tensor Texts(std::vector<int64_t> dims, std::vector<std::string> values) {
    return {ElementType::kString, std::move(dims), nullptr,
            std::make_shared<const std::vector<std::string>>(std::move(values))};
}

std::vector<double> Values(const Tensor& tensor) {
    std::vector<double> values;
    for (int64_t i = 0; i < tensor.count(); ++i) {
        values.push_back(tensor.At(i).ToDouble(tensor.element));
    }
    return values;
}

Result<std::vector<Tensor>> Try(const Operation& operation,
                                std::vector<Tensor> operands,
                                const Bindings& bindings = {}) {
    return EvaluateNode(operation, operands, {}, bindings);
}

// The first result; an error fails the test and gives a tensor without elements.
Tensor ValueOf(const Operation& operation,
               std::vector<Tensor> operands,
               const Bindings& bindings = {}) {
    Result<std::vector<Tensor>> results = Try(operation, std::move(operands), bindings);
    if (!results.ok()) {
        ADD_FAILURE() << results.error().message;
        return Floats({0}, {});
    }
    return (*results)[0];
}

std::string ErrorOf(const Operation& operation,
                    std::vector<Tensor> operands,
                    const Bindings& bindings = {}) {
    Result<std::vector<Tensor>> results = Try(operation, std::move(operands), bindings);
    return results.ok() ? "no error" : results.error().message;
}

TEST(Interpreter, MapsFloatsAndIntegers) {
    const Tensor a = Floats({3}, {1, -2, kNan}), b = Floats({3}, {3, 2, 1});
    EXPECT_THAT(Values(ValueOf(op::Map{ScalarFunction::kAbs}, {b})), ElementsAre(3, 2, 1));
    const std::vector<double> sums = Values(ValueOf(op::Map{ScalarFunction::kAdd}, {a, b}));
    EXPECT_EQ(sums[0], 4);
    EXPECT_TRUE(std::isnan(sums[2]));
    const std::vector<double> least = Values(ValueOf(op::Map{ScalarFunction::kMin}, {b, a}));
    EXPECT_EQ(least[1], -2);
    EXPECT_TRUE(std::isnan(least[2]));
    const Tensor less = ValueOf(op::Map{ScalarFunction::kLess}, {a, b});
    EXPECT_EQ(less.element, ElementType::kBool);
    EXPECT_THAT(Values(less), ElementsAre(1, 1, 0));
    EXPECT_THAT(Values(ValueOf(op::Map{ScalarFunction::kAdd},
                               {Integers({2}, {INT64_MAX, 5}), Integers({2}, {1, -7})})),
                ElementsAre(static_cast<double>(INT64_MIN), -2));
    EXPECT_THAT(ErrorOf(op::Map{ScalarFunction::kAdd}, {a, Floats({1}, {1})}),
                HasSubstr("shapes are [3] and [1]"));
}

// Frequent functions have code of their own, which must agree with the definition.
TEST(Interpreter, MapsLikeEvaluateScalar) {
    const std::vector<float> values = {0.1F, -0.3F, 1e30F, -1e30F, kInf, kNan, 3e-39F, 7.0F};
    for (const ElementType type : {ElementType::kF32, ElementType::kI64, ElementType::kU64,
                                   ElementType::kF16, ElementType::kI8}) {
        const std::vector<double> numbers(values.begin(), values.end());
        const Tensor a = Of(type, {8}, numbers);
        const Tensor b = Of(type, {8}, {numbers.rbegin(), numbers.rend()});
        for (size_t f = 0; f <= static_cast<size_t>(kLastScalarFunction); ++f) {
            const auto function = static_cast<ScalarFunction>(f);
            if (ArgumentCount(function) != 2 || !Accepts(function, type)) {
                continue;
            }
            const Tensor result = ValueOf(op::Map{function}, {a, b});
            for (int64_t i = 0; i < 8; ++i) {
                const std::vector<Scalar> arguments = {a.At(i), b.At(i)};
                const Scalar expected = EvaluateScalar(function, type, arguments);
                const Scalar actual = result.At(i);
                EXPECT_TRUE(actual == expected ||
                            (std::isnan(actual.number) && std::isnan(expected.number)))
                    << Name(function) << " " << Name(type) << " " << i;
            }
        }
    }
}

TEST(Interpreter, SelectsByBytes) {
    const Tensor condition = Of(ElementType::kBool, {3}, {1, 0, 1});
    EXPECT_THAT(Values(ValueOf(op::Map{ScalarFunction::kSelect},
                               {condition, Integers({3}, {1, 2, 3}), Integers({3}, {4, 5, 6})})),
                ElementsAre(1, 5, 3));
}

TEST(Interpreter, CastsAndBitcasts) {
    EXPECT_THAT(Values(ValueOf(op::Cast{ElementType::kI8}, {Floats({3}, {-1.9F, 300, kNan})})),
                ElementsAre(-1, 127, 0));
    const Tensor e4m3 = ValueOf(op::Cast{ElementType::kF8E4M3FN, Overflow::kSaturate},
                                {Floats({2}, {1000, -kInf})});
    EXPECT_THAT(Values(e4m3), ElementsAre(448, -448));
    EXPECT_THAT(
        Values(ValueOf(op::Cast{ElementType::kF32, Overflow::kSaturate}, {Floats({1}, {kInf})})),
        ElementsAre(std::numeric_limits<float>::max()));
    EXPECT_THAT(Values(ValueOf(op::Bitcast{ElementType::kU32}, {Floats({2}, {1, -0.0F})})),
                ElementsAre(0x3F800000, 0x80000000));
    EXPECT_THAT(Values(ValueOf(op::Bitcast{ElementType::kU4}, {Of(ElementType::kI8, {1}, {-1})})),
                ElementsAre(15));
}

TEST(Interpreter, Reduces) {
    const Tensor a = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
    EXPECT_THAT(Values(ValueOf(op::Reduce{Combine::kSum, {1}}, {a})), ElementsAre(6, 15));
    EXPECT_THAT(Values(ValueOf(op::Reduce{Combine::kMax, {0}}, {a})), ElementsAre(4, 5, 6));
    const Tensor all = ValueOf(op::Reduce{Combine::kProduct, {0, 1}}, {a});
    EXPECT_THAT(all.dims, IsEmpty());
    EXPECT_THAT(Values(all), ElementsAre(720));
    EXPECT_THAT(Values(ValueOf(op::Reduce{Combine::kSum, {}}, {a})), ElementsAre(1, 2, 3, 4, 5, 6));
    EXPECT_TRUE(
        std::isnan(Values(ValueOf(op::Reduce{Combine::kMin, {0}}, {Floats({2}, {kNan, 1})}))[0]));
    EXPECT_THAT(
        Values(ValueOf(op::Reduce{Combine::kAnd, {0}}, {Of(ElementType::kBool, {2}, {1, 0})})),
        ElementsAre(0));
    EXPECT_THAT(
        Values(ValueOf(op::Reduce{Combine::kSum, {0}}, {Of(ElementType::kI8, {2}, {100, 100})})),
        ElementsAre(-56));
}

TEST(Interpreter, ReducesNothingToTheNeutralElement) {
    const Tensor empty = Floats({2, 0}, {});
    EXPECT_THAT(Values(ValueOf(op::Reduce{Combine::kSum, {1}}, {empty})), ElementsAre(0, 0));
    EXPECT_THAT(Values(ValueOf(op::Reduce{Combine::kMax, {1}}, {empty})),
                ElementsAre(-kInf, -kInf));
    EXPECT_THAT(Values(ValueOf(op::Reduce{Combine::kSum, {0}}, {empty})), IsEmpty());
}

TEST(Interpreter, SumsFloatsInDouble) {
    std::vector<float> values(4097, 0x1p-12F);
    values[0] = 0x1p12F;  // in f32 each of the others would be lost
    EXPECT_THAT(Values(ValueOf(op::Reduce{Combine::kSum, {0}}, {Floats({4097}, values)})),
                ElementsAre(4097));
    const Tensor halves = Of(ElementType::kF16, {3}, {2048, 1, 1});
    EXPECT_THAT(Values(ValueOf(op::Reduce{Combine::kSum, {0}}, {halves})), ElementsAre(2050));
    EXPECT_THAT(Values(ValueOf(op::Scan{Combine::kSum, 0}, {halves})),
                ElementsAre(2048, 2048, 2050));
}

TEST(Interpreter, FindsPositions) {
    const Tensor a = Floats({2, 3}, {1, 3, 3, 2, 2, 1});
    EXPECT_THAT(Values(ValueOf(op::ArgReduce{Combine::kMax, 1, false}, {a})), ElementsAre(1, 0));
    EXPECT_THAT(Values(ValueOf(op::ArgReduce{Combine::kMax, 1, true}, {a})), ElementsAre(2, 1));
    EXPECT_THAT(Values(ValueOf(op::ArgReduce{Combine::kMin, 0, false}, {a})), ElementsAre(0, 1, 1));
    const Tensor nans = Floats({4}, {kInf, kNan, -kInf, kNan});
    EXPECT_THAT(Values(ValueOf(op::ArgReduce{Combine::kMax, 0, false}, {nans})), ElementsAre(1));
    EXPECT_THAT(Values(ValueOf(op::ArgReduce{Combine::kMin, 0, true}, {nans})), ElementsAre(3));
    EXPECT_THAT(Values(ValueOf(op::ArgReduce{Combine::kMax, 0, false},
                               {Of(ElementType::kU64, {2}, {1, 0x1p63})})),
                ElementsAre(1));
    EXPECT_THAT(ErrorOf(op::ArgReduce{Combine::kMax, 0, false}, {Floats({0}, {})}),
                HasSubstr("no elements to choose from"));
    EXPECT_THAT(Values(ValueOf(op::ArgReduce{Combine::kMax, 0, false}, {Floats({0, 0}, {})})),
                IsEmpty());
}

TEST(Interpreter, Scans) {
    const Tensor a = Integers({2, 3}, {1, 2, 3, 4, 5, 6});
    EXPECT_THAT(Values(ValueOf(op::Scan{Combine::kSum, 1}, {a})), ElementsAre(1, 3, 6, 4, 9, 15));
    EXPECT_THAT(Values(ValueOf(op::Scan{Combine::kSum, 0}, {a})), ElementsAre(1, 2, 3, 5, 7, 9));
    EXPECT_THAT(Values(ValueOf(op::Scan{Combine::kSum, 1, true}, {a})),
                ElementsAre(0, 1, 3, 0, 4, 9));
    EXPECT_THAT(Values(ValueOf(op::Scan{Combine::kSum, 1, false, true}, {a})),
                ElementsAre(6, 5, 3, 15, 11, 6));
    EXPECT_THAT(Values(ValueOf(op::Scan{Combine::kProduct, 1, true, true}, {a})),
                ElementsAre(6, 3, 1, 30, 6, 1));
    EXPECT_THAT(Values(ValueOf(op::Scan{Combine::kMax, 0}, {Floats({0}, {})})), IsEmpty());
}

TEST(Interpreter, SortsStablyWithNanLast) {
    const Tensor a = Floats({5}, {2, kNan, -0.0F, 0, kInf});
    Result<std::vector<Tensor>> up = Try(op::Sort{0, false, 5}, {a});
    ASSERT_TRUE(up.ok());
    EXPECT_THAT(Values((*up)[1]), ElementsAre(2, 3, 0, 4, 1));
    EXPECT_TRUE(std::signbit((*up)[0].At(0).number));  // elements move as they are
    Result<std::vector<Tensor>> down = Try(op::Sort{0, true, 3}, {a});
    ASSERT_TRUE(down.ok());
    EXPECT_THAT(Values((*down)[1]), ElementsAre(1, 4, 0));
    Result<std::vector<Tensor>> columns =
        Try(op::Sort{0, true, 2}, {Integers({3, 2}, {1, 5, 3, 5, 2, 9})});
    ASSERT_TRUE(columns.ok());
    EXPECT_THAT((*columns)[0].dims, ElementsAre(2, 2));
    EXPECT_THAT(Values((*columns)[0]), ElementsAre(3, 9, 2, 5));
    EXPECT_THAT(Values((*columns)[1]), ElementsAre(1, 2, 2, 0));
    EXPECT_THAT(ErrorOf(op::Sort{0, true, 6}, {a}), HasSubstr("6 elements are wanted of 5"));
    EXPECT_THAT(Values(ValueOf(op::Sort{0, true, 0}, {a})), IsEmpty());
}

TEST(Interpreter, ViewsMoveElements) {
    const Tensor a = Integers({2, 3}, {1, 2, 3, 4, 5, 6});
    EXPECT_THAT(ValueOf(op::Reshape{{3, 2}}, {a}).dims, ElementsAre(3, 2));
    EXPECT_EQ(ValueOf(op::Reshape{{6}}, {a}).data->data(), a.data->data());
    EXPECT_THAT(ErrorOf(op::Reshape{{4}}, {a}), HasSubstr("[2,3] and [4]"));
    EXPECT_THAT(Values(ValueOf(op::Permute{{1, 0}}, {a})), ElementsAre(1, 4, 2, 5, 3, 6));
    EXPECT_THAT(Values(ValueOf(op::Broadcast{{2, 3}}, {Integers({2, 1}, {7, 8})})),
                ElementsAre(7, 7, 7, 8, 8, 8));
    EXPECT_THAT(ValueOf(op::Broadcast{{0, 3}}, {Integers({1, 3}, {7, 8, 9})}).dims,
                ElementsAre(0, 3));
    EXPECT_THAT(ErrorOf(op::Broadcast{{2, 4}}, {a}), HasSubstr("does not repeat"));
}

TEST(Interpreter, ViewsTakeSizesOfSymbols) {
    const Symbol n("n");
    const Tensor a = Integers({2, 3}, {1, 2, 3, 4, 5, 6});
    EXPECT_THAT(ValueOf(op::Reshape{{Expr(n) * 3}}, {a}, {{n, 2}}).dims, ElementsAre(6));
    EXPECT_THAT(ErrorOf(op::Reshape{{Expr(n)}}, {a}), HasSubstr("the size n has no value"));
    EXPECT_THAT(ErrorOf(op::Broadcast{{Expr(n), 3}}, {Integers({1, 3}, {1, 2, 3})}, {{n, -1}}),
                HasSubstr("negative size"));
}

TEST(Interpreter, Slices) {
    const Tensor a = Integers({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
    EXPECT_THAT(Values(ValueOf(op::Slice{{0, 1}, {1, 2}, {2, 2}}, {a})), ElementsAre(1, 3, 5, 7));
    EXPECT_THAT(Values(ValueOf(op::Slice{{1, 3}, {-1, -2}, {2, 2}}, {a})), ElementsAre(7, 5, 3, 1));
    EXPECT_THAT(Values(ValueOf(op::Slice{{1, 3}, {INT64_MAX, 1}, {1, 1}}, {a})), ElementsAre(7));
    EXPECT_THAT(Values(ValueOf(op::Slice{{0, 99}, {1, 1}, {2, 0}}, {a})), IsEmpty());
    EXPECT_THAT(ErrorOf(op::Slice{{0, 2}, {1, 2}, {2, 2}}, {a}),
                HasSubstr("axis 1 of [2,4] has no 2 elements from 2 on in steps of 2"));
    EXPECT_THAT(ErrorOf(op::Slice{{0, 0}, {1, -1}, {2, 2}}, {a}), HasSubstr("axis 1"));
    EXPECT_THAT(ErrorOf(op::Slice{{0, 0}, {1, INT64_MAX}, {2, 3}}, {a}), HasSubstr("axis 1"));
}

TEST(Interpreter, Pads) {
    const Tensor zero = Integers({}, {9});
    EXPECT_THAT(Values(ValueOf(op::Pad{{1}, {2}, {0}}, {Integers({2}, {1, 2}), zero})),
                ElementsAre(9, 1, 2, 9, 9));
    EXPECT_THAT(Values(ValueOf(op::Pad{{0}, {1}, {2}}, {Integers({2}, {1, 2}), zero})),
                ElementsAre(1, 9, 9, 2, 9));
    EXPECT_THAT(Values(ValueOf(op::Pad{{0, 1}, {1, 0}, {0, 1}}, {Integers({1, 2}, {1, 2}), zero})),
                ElementsAre(9, 1, 9, 2, 9, 9, 9, 9));
    EXPECT_THAT(Values(ValueOf(op::Pad{{1}, {1}, {5}}, {Integers({0}, {}), zero})),
                ElementsAre(9, 9));
    EXPECT_THAT(Values(ValueOf(op::Pad{{}, {}, {}}, {Integers({}, {3}), zero})), ElementsAre(3));
    EXPECT_THAT(ErrorOf(op::Pad{{-1}, {0}, {0}}, {Integers({2}, {1, 2}), zero}),
                HasSubstr("padded by -1"));
}

TEST(Interpreter, Windows) {
    const Tensor a = Integers({5}, {0, 1, 2, 3, 4});
    const Tensor pairs = ValueOf(op::Window{0, 2, 2, 1}, {a});
    EXPECT_THAT(pairs.dims, ElementsAre(2, 2));
    EXPECT_THAT(Values(pairs), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(Values(ValueOf(op::Window{0, 2, 1, 3}, {a})), ElementsAre(0, 3, 1, 4));
    EXPECT_THAT(ValueOf(op::Window{0, 6, 1, 1}, {a}).dims, ElementsAre(0, 6));
    const Tensor rows = ValueOf(op::Window{0, 2, 1, 1}, {Integers({3, 2}, {1, 2, 3, 4, 5, 6})});
    EXPECT_THAT(rows.dims, ElementsAre(2, 2, 2));
    EXPECT_THAT(Values(rows), ElementsAre(1, 3, 2, 4, 3, 5, 4, 6));
}

TEST(Interpreter, Concatenates) {
    const Tensor a = Integers({2, 1}, {1, 2}), b = Integers({2, 2}, {3, 4, 5, 6});
    EXPECT_THAT(Values(ValueOf(op::Concat{1}, {a, b, Integers({2, 0}, {})})),
                ElementsAre(1, 3, 4, 2, 5, 6));
    EXPECT_THAT(ErrorOf(op::Concat{0}, {a, b}), HasSubstr("do not join along axis 0"));
}

TEST(Interpreter, StringsMoveToo) {
    const Tensor a = Texts({2, 2}, {"a", "b", "c", "d"});
    EXPECT_THAT(*ValueOf(op::Permute{{1, 0}}, {a}).strings, ElementsAre("a", "c", "b", "d"));
    EXPECT_THAT(*ValueOf(op::Concat{0}, {a, Texts({1, 2}, {"e", "f"})}).strings,
                ElementsAre("a", "b", "c", "d", "e", "f"));
    EXPECT_THAT(*ValueOf(op::Gather{{-1, 1}, {2, 2}}, {a, Integers({2, 2}, {1, 0, 5, 1})}).strings,
                ElementsAre("c", "b", "", "d"));
}

TEST(Interpreter, Gathers) {
    const Tensor data = Integers({3, 2}, {1, 2, 3, 4, 5, 6});
    // Rows 2, 0 and one that does not exist.
    EXPECT_THAT(
        Values(ValueOf(op::Gather{{-1, 1}, {3, 2}}, {data, Integers({3, 2}, {2, 2, 0, 0, 3, -1})})),
        ElementsAre(5, 6, 1, 2, 0, 0));
    EXPECT_THAT(Values(ValueOf(op::Gather{{-1, -2}, {2}},
                               {data, Of(ElementType::kU8, {2}, {1, 2}), Integers({2}, {1, 0})})),
                ElementsAre(4, 5));
    EXPECT_THAT(Values(ValueOf(op::Gather{{0, 0}, {2}}, {data})), ElementsAre(1, 4));
    EXPECT_THAT(Values(ValueOf(op::Gather{{-1}, {1}},
                               {Integers({1}, {7}), Of(ElementType::kU64, {1}, {0x1p63})})),
                ElementsAre(0));
    EXPECT_THAT(ErrorOf(op::Gather{{-1, 1}, {3, 2}}, {data, Integers({2}, {1, 2})}),
                HasSubstr("an index has the shape [2]"));
}

TEST(Interpreter, Scatters) {
    const Tensor data = Integers({4}, {1, 1, 1, 1});
    const Tensor updates = Integers({3}, {5, 6, 7}), index = Integers({3}, {2, 2, 9});
    EXPECT_THAT(Values(ValueOf(op::Scatter{{-1}, Combine::kReplace}, {data, updates, index})),
                ElementsAre(1, 1, 6, 1));
    EXPECT_THAT(Values(ValueOf(op::Scatter{{-1}, Combine::kSum}, {data, updates, index})),
                ElementsAre(1, 1, 12, 1));
    EXPECT_THAT(Values(ValueOf(op::Scatter{{-1}, Combine::kMax}, {data, updates, index})),
                ElementsAre(1, 1, 6, 1));
    EXPECT_THAT(Values(data), ElementsAre(1, 1, 1, 1));
    // A row of a matrix, by the updates' own second coordinate.
    EXPECT_THAT(Values(ValueOf(op::Scatter{{-1, 1}, Combine::kReplace},
                               {Integers({2, 2}, {1, 2, 3, 4}), Integers({1, 2}, {8, 9}),
                                Integers({1, 2}, {1, 1})})),
                ElementsAre(1, 2, 8, 9));
}

TEST(Interpreter, Contracts) {
    const Tensor a = Floats({2, 3}, {1, 2, 3, 4, 5, 6}), b = Floats({3, 2}, {1, 0, 0, 1, 1, 1});
    EXPECT_THAT(Values(ValueOf(op::Contract{"ik", "kj", "ij"}, {a, b})), ElementsAre(4, 5, 10, 11));
    EXPECT_THAT(Values(ValueOf(op::Contract{"ik", "kj", "ji"}, {a, b})), ElementsAre(4, 10, 5, 11));
    EXPECT_THAT(Values(ValueOf(op::Contract{"ik", "ik", "i"}, {a, a})), ElementsAre(14, 77));
    EXPECT_THAT(
        Values(ValueOf(op::Contract{"i", "j", "ij"}, {Floats({2}, {1, 2}), Floats({2}, {3, 4})})),
        ElementsAre(3, 4, 6, 8));
    // Labels of one operand alone that the result lacks: the sums' product.
    EXPECT_THAT(Values(ValueOf(op::Contract{"ip", "q", "i"}, {a, Floats({2}, {10, 100})})),
                ElementsAre(660, 1650));
    const Tensor batch =
        ValueOf(op::Contract{"bik", "bkj", "bij"},
                {Floats({2, 1, 2}, {1, 2, 3, 4}), Floats({2, 2, 1}, {1, 1, 2, 2})});
    EXPECT_THAT(batch.dims, ElementsAre(2, 1, 1));
    EXPECT_THAT(Values(batch), ElementsAre(3, 14));
    EXPECT_THAT(ErrorOf(op::Contract{"ik", "kj", "ij"}, {a, a}),
                HasSubstr("the label k has the sizes 3 and 2"));
}

TEST(Interpreter, ContractsInTheAccumulatorsType) {
    const Tensor bytes = Of(ElementType::kU8, {2}, {255, 255});
    const Tensor signs = Of(ElementType::kI8, {2}, {-1, -1});
    EXPECT_THAT(Values(ValueOf(op::Contract{"k", "k", "", ElementType::kI32}, {bytes, signs})),
                ElementsAre(-510));
    const Tensor halves = Of(ElementType::kF16, {2}, {300, 300});
    EXPECT_THAT(Values(ValueOf(op::Contract{"k", "k", "", ElementType::kF16}, {halves, halves})),
                ElementsAre(kInf));
    EXPECT_THAT(Values(ValueOf(op::Contract{"k", "k", "", ElementType::kF32}, {halves, halves})),
                ElementsAre(180000));
}

TEST(Interpreter, ContractsNothing) {
    EXPECT_THAT(
        Values(ValueOf(op::Contract{"ik", "kj", "ij"}, {Floats({2, 0}, {}), Floats({0, 1}, {})})),
        ElementsAre(0, 0));
    EXPECT_THAT(Values(ValueOf(op::Contract{"ik", "kj", "ij"},
                               {Floats({0, 2}, {}), Floats({2, 1}, {1, 1})})),
                IsEmpty());
    EXPECT_THAT(
        ValueOf(op::Contract{"ik", "kj", "ij"}, {Floats({2, 1}, {1, 1}), Floats({1, 0}, {})}).dims,
        ElementsAre(2, 0));
}

TEST(Interpreter, CountsAndSizes) {
    EXPECT_THAT(Values(ValueOf(op::Iota{ElementType::kI32, {2, 3}, 1}, {})),
                ElementsAre(0, 1, 2, 0, 1, 2));
    EXPECT_THAT(Values(ValueOf(op::Iota{ElementType::kF16, {3, 1}, 0}, {})), ElementsAre(0, 1, 2));
    const Symbol n("n");
    const Tensor size = ValueOf(op::SizeOf{Expr(n) * 2 + 1}, {}, {{n, 5}});
    EXPECT_EQ(size.element, ElementType::kI64);
    EXPECT_THAT(size.dims, IsEmpty());
    EXPECT_THAT(Values(size), ElementsAre(11));
}

// Known answers of the generator's authors, and the second block of the first key.
TEST(Interpreter, RandomBitsArePhilox) {
    const Tensor zero = Of(ElementType::kU32, {2}, {0, 0});
    EXPECT_THAT(
        Values(ValueOf(op::RandomBits{{2, 3}}, {zero})),
        ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8, 0xf8e4cca4, 0x5cb200db));
    const Tensor key = Of(ElementType::kU32, {2}, {0xa4093822, 0x299f31d0});
    EXPECT_THAT(Values(ValueOf(op::RandomBits{{2}}, {key})), ElementsAre(0x0e847852, 0xaddb136a));
    EXPECT_THAT(Values(ValueOf(op::RandomBits{{0}}, {key})), IsEmpty());
}

TEST(Interpreter, LimitsBytesAndSteps) {
    InterpretOptions options;
    options.max_bytes = 1000;
    const Operation iota = op::Iota{ElementType::kI64, {200}, 0};
    Result<std::vector<Tensor>> result = EvaluateNode(iota, {}, {}, {}, options);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::kOutOfHostMemory);
    EXPECT_THAT(result.error().message,
                HasSubstr("1600 bytes beside the 0 in use exceed the limit"));
    options = {};
    options.max_steps = 100;
    result = EvaluateNode(iota, {}, {}, {}, options);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::kTimeout);
    EXPECT_THAT(ErrorOf(op::Iota{ElementType::kI64, {int64_t{1} << 40, 0, 2}, 0}, {}),
                HasSubstr("more than"));
}

}  // namespace
}  // namespace fornax::graph
