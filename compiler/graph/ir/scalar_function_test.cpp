// Values of the scalar functions and combinations, with the edge cases that their table promises.
#include "compiler/graph/ir/scalar_function.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace fornax::graph {
namespace {

using F = ScalarFunction;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double Float(F function,
             const std::vector<double>& arguments,
             ElementType type = ElementType::kF32) {
    std::vector<Scalar> scalars;
    for (const double argument : arguments) {
        scalars.push_back(Scalar::Float(argument));
    }
    const Scalar result = EvaluateScalar(function, type, scalars);
    return result.is_float ? result.number : static_cast<double>(result.integer);
}

int64_t Int(F function,
            const std::vector<int64_t>& arguments,
            ElementType type = ElementType::kI32) {
    std::vector<Scalar> scalars;
    for (const int64_t argument : arguments) {
        scalars.push_back(Scalar::Integer(argument));
    }
    return EvaluateScalar(function, type, scalars).integer;
}

TEST(ScalarFunction, HasANameThatFindsIt) {
    for (size_t i = 0; i <= static_cast<size_t>(kLastScalarFunction); ++i) {
        const auto function = static_cast<F>(i);
        EXPECT_EQ(ScalarFunctionByName(Name(function)), function);
    }
    EXPECT_EQ(ScalarFunctionByName("nothing"), std::nullopt);
    EXPECT_EQ(ArgumentCount(F::kNeg), 1U);
    EXPECT_EQ(ArgumentCount(F::kAtan2), 2U);
    EXPECT_EQ(ArgumentCount(F::kSelect), 3U);
}

TEST(ScalarFunction, SaysItsTypes) {
    EXPECT_TRUE(Accepts(F::kAdd, ElementType::kI4));
    EXPECT_FALSE(Accepts(F::kAdd, ElementType::kBool));
    EXPECT_TRUE(Accepts(F::kNot, ElementType::kBool));
    EXPECT_FALSE(Accepts(F::kAnd, ElementType::kF32));
    EXPECT_FALSE(Accepts(F::kExp, ElementType::kI32));
    EXPECT_FALSE(Accepts(F::kShiftLeft, ElementType::kBool));
    EXPECT_TRUE(Accepts(F::kSelect, ElementType::kBool));
    EXPECT_FALSE(Accepts(F::kSelect, ElementType::kString));
    EXPECT_EQ(ResultType(F::kLess, ElementType::kF32), ElementType::kBool);
    EXPECT_EQ(ResultType(F::kSelect, ElementType::kI8), ElementType::kI8);
    EXPECT_EQ(ResultType(F::kErf, ElementType::kF16), ElementType::kF16);
}

TEST(ScalarFunction, EveryFunctionHasAValueForWhatItAccepts) {
    for (size_t i = 0; i <= static_cast<size_t>(kLastScalarFunction); ++i) {
        const auto function = static_cast<F>(i);
        for (const ElementType type : {ElementType::kF32, ElementType::kI32, ElementType::kBool}) {
            if (!Accepts(function, type)) {
                continue;
            }
            const Scalar one = IsFloat(type) ? Scalar::Float(1) : Scalar::Integer(1);
            std::vector<Scalar> arguments(ArgumentCount(function), one);
            if (function == F::kSelect) {
                arguments[0] = Scalar::Integer(1);
            }
            const Scalar result = EvaluateScalar(function, type, arguments);
            EXPECT_EQ(result.is_float, IsFloat(ResultType(function, type))) << Name(function);
        }
    }
}

TEST(ScalarFunction, FloatsAreRoundedToTheirType) {
    EXPECT_EQ(Float(F::kAdd, {1, 0x1p-11}, ElementType::kF16), 1);
    EXPECT_EQ(Float(F::kAdd, {1, 0x1p-11}), 1 + 0x1p-11);
    EXPECT_EQ(Float(F::kExp, {1}), static_cast<double>(static_cast<float>(std::exp(1.0))));
    EXPECT_EQ(Float(F::kExp, {1}, ElementType::kF64), std::exp(1.0));
    EXPECT_EQ(Float(F::kMul, {300, 300}, ElementType::kF16), kInf);
}

TEST(ScalarFunction, RoundingFunctions) {
    EXPECT_EQ(Float(F::kRound, {0.5}), 0);
    EXPECT_EQ(Float(F::kRound, {1.5}), 2);
    EXPECT_EQ(Float(F::kRound, {-2.5}), -2);
    EXPECT_EQ(Float(F::kFloor, {-0.5}), -1);
    EXPECT_EQ(Float(F::kCeil, {0.5}), 1);
    EXPECT_EQ(Float(F::kTrunc, {-1.5}), -1);
    EXPECT_EQ(Float(F::kSign, {-3}), -1);
    EXPECT_TRUE(std::isnan(Float(F::kSign, {kNan})));
    EXPECT_TRUE(std::signbit(Float(F::kNeg, {0})));
}

TEST(ScalarFunction, Transcendentals) {
    EXPECT_EQ(Float(F::kSigmoid, {0}), 0.5);
    EXPECT_EQ(Float(F::kSigmoid, {-1000}), 0);
    EXPECT_EQ(Float(F::kSigmoid, {1000}), 1);
    EXPECT_EQ(Float(F::kRsqrt, {4}), 0.5);
    EXPECT_EQ(Float(F::kRsqrt, {0}), kInf);
    EXPECT_EQ(Float(F::kReciprocal, {-0.0}), -kInf);
    EXPECT_NEAR(Float(F::kErf, {0.5}), 0.5204998778, 1e-7);
    EXPECT_NEAR(Float(F::kAtan2, {1, -1}), 2.35619449, 1e-6);
    EXPECT_EQ(Float(F::kExpm1, {1e-10}), static_cast<double>(1e-10F));
    EXPECT_TRUE(std::isnan(Float(F::kLog, {-1})));
    EXPECT_EQ(Float(F::kPow, {2, -1}), 0.5);
}

TEST(ScalarFunction, MinAndMaxKeepNan) {
    for (const F function : {F::kMin, F::kMax}) {
        EXPECT_TRUE(std::isnan(Float(function, {kNan, 1})));
        EXPECT_TRUE(std::isnan(Float(function, {1, kNan})));
    }
    EXPECT_EQ(Float(F::kMin, {-kInf, 1}), -kInf);
    EXPECT_EQ(Float(F::kMax, {2, 1}), 2);
    EXPECT_EQ(Int(F::kMax, {-1, 1}, ElementType::kU64), -1);  // 2^64 - 1
    EXPECT_EQ(Int(F::kMin, {-1, 1}, ElementType::kI64), -1);
}

TEST(ScalarFunction, FloatDivisions) {
    EXPECT_EQ(Float(F::kDiv, {1, 0}), kInf);
    EXPECT_EQ(Float(F::kFloorDiv, {-7, 2}), -4);
    EXPECT_EQ(Float(F::kRem, {-7, 3}), -1);
    EXPECT_EQ(Float(F::kMod, {-7, 3}), 2);
    EXPECT_EQ(Float(F::kMod, {7, -3}), -2);
    EXPECT_EQ(Float(F::kMod, {-1, kInf}), kInf);
    EXPECT_TRUE(std::signbit(Float(F::kMod, {6, -3})));
    // The quotient of the two doubles is less than 10 and rounds to it.
    EXPECT_EQ(Float(F::kFloorDiv, {1, 0.1}, ElementType::kF64), 9);
    EXPECT_EQ(Float(F::kFloorDiv, {1, 0}, ElementType::kF64), kInf);
}

TEST(ScalarFunction, IntegerDivisions) {
    EXPECT_EQ(Int(F::kDiv, {-7, 2}), -3);
    EXPECT_EQ(Int(F::kFloorDiv, {-7, 2}), -4);
    EXPECT_EQ(Int(F::kFloorDiv, {7, -2}), -4);
    EXPECT_EQ(Int(F::kRem, {-7, 2}), -1);
    EXPECT_EQ(Int(F::kMod, {-7, 2}), 1);
    EXPECT_EQ(Int(F::kMod, {7, -2}), -1);
    for (const F function : {F::kDiv, F::kFloorDiv, F::kRem, F::kMod}) {
        EXPECT_EQ(Int(function, {5, 0}), 0);
        EXPECT_EQ(Int(function, {5, 0}, ElementType::kU64), 0);
    }
    EXPECT_EQ(Int(F::kDiv, {INT64_MIN, -1}, ElementType::kI64), INT64_MIN);
    EXPECT_EQ(Int(F::kDiv, {INT32_MIN, -1}), INT32_MIN);
    EXPECT_EQ(Int(F::kMod, {INT64_MIN, -1}, ElementType::kI64), 0);
    EXPECT_EQ(Int(F::kDiv, {-2, 2}, ElementType::kU64), INT64_MAX);
    EXPECT_EQ(Int(F::kMod, {-1, 10}, ElementType::kU64), 5);  // 18446744073709551615 mod 10
}

TEST(ScalarFunction, IntegersWrap) {
    EXPECT_EQ(Int(F::kAdd, {INT32_MAX, 1}), INT32_MIN);
    EXPECT_EQ(Int(F::kMul, {100, 100}, ElementType::kI8), 16);
    EXPECT_EQ(Int(F::kNeg, {1}, ElementType::kU8), 255);
    EXPECT_EQ(Int(F::kAbs, {INT64_MIN}, ElementType::kI64), INT64_MIN);
    EXPECT_EQ(Int(F::kAbs, {-8}, ElementType::kI4), -8);
    EXPECT_EQ(Int(F::kSub, {0, 1}, ElementType::kU4), 15);
    EXPECT_EQ(Int(F::kSign, {-1}, ElementType::kU64), 1);
    EXPECT_EQ(Int(F::kSign, {-9}), -1);
}

TEST(ScalarFunction, IntegerPowers) {
    EXPECT_EQ(Int(F::kPow, {3, 4}), 81);
    EXPECT_EQ(Int(F::kPow, {0, 0}), 1);
    EXPECT_EQ(Int(F::kPow, {2, -1}), 0);
    EXPECT_EQ(Int(F::kPow, {-1, -3}), -1);
    EXPECT_EQ(Int(F::kPow, {-1, -2}), 1);
    EXPECT_EQ(Int(F::kPow, {2, 40}), 0);
    EXPECT_EQ(Int(F::kPow, {3, -1}, ElementType::kU64),
              static_cast<int64_t>(0xAAAAAAAAAAAAAAABU));  // 3^-1 = 3^(2^64 - 1) modulo 2^64
}

TEST(ScalarFunction, BitsAndShifts) {
    EXPECT_EQ(Int(F::kNot, {5}, ElementType::kU8), 250);
    EXPECT_EQ(Int(F::kNot, {1}, ElementType::kBool), 0);
    EXPECT_EQ(Int(F::kNot, {0}, ElementType::kBool), 1);
    EXPECT_EQ(Int(F::kXor, {1, 1}, ElementType::kBool), 0);
    EXPECT_EQ(Int(F::kPopCount, {-1}, ElementType::kI4), 4);
    EXPECT_EQ(Int(F::kPopCount, {-1}, ElementType::kI64), 64);
    EXPECT_EQ(Int(F::kShiftLeft, {1, 31}), INT32_MIN);
    EXPECT_EQ(Int(F::kShiftLeft, {1, 32}), 0);
    EXPECT_EQ(Int(F::kShiftLeft, {1, -1}), 0);
    EXPECT_EQ(Int(F::kShiftRight, {-8, 1}), -4);
    EXPECT_EQ(Int(F::kShiftRight, {-8, 40}), -1);
    EXPECT_EQ(Int(F::kShiftRight, {255, 4}, ElementType::kU8), 15);
    EXPECT_EQ(Int(F::kShiftRight, {255, 8}, ElementType::kU8), 0);
    EXPECT_EQ(Int(F::kShiftRight, {-1, 63}, ElementType::kU64), 1);
}

TEST(ScalarFunction, ComparisonsAndSelection) {
    EXPECT_EQ(Float(F::kEqual, {kNan, kNan}), 0);
    EXPECT_EQ(Float(F::kLessEqual, {kNan, 1}), 0);
    EXPECT_EQ(Float(F::kLess, {1, 2}), 1);
    EXPECT_EQ(Float(F::kEqual, {0.0, -0.0}), 1);
    EXPECT_EQ(Int(F::kLess, {1, -1}, ElementType::kU64), 1);
    EXPECT_EQ(Int(F::kLess, {1, -1}, ElementType::kI64), 0);
    EXPECT_EQ(Int(F::kLessEqual, {-1, -1}, ElementType::kU64), 1);
    EXPECT_EQ(Float(F::kIsNan, {kNan}), 1);
    EXPECT_EQ(Float(F::kIsInf, {-kInf}), 1);
    EXPECT_EQ(Float(F::kIsInf, {kNan}), 0);
    EXPECT_EQ(Int(F::kSelect, {1, 10, 20}), 10);
    EXPECT_EQ(Int(F::kSelect, {0, 10, 20}), 20);
}

TEST(Combine, HasANameThatFindsIt) {
    for (size_t i = 0; i <= static_cast<size_t>(kLastCombine); ++i) {
        const auto combine = static_cast<Combine>(i);
        EXPECT_EQ(CombineByName(Name(combine)), combine);
    }
    EXPECT_EQ(CombineByName("mean"), std::nullopt);
}

TEST(Combine, NeutralElementsChangeNothing) {
    for (size_t t = 0; t < static_cast<size_t>(kLastElementType); ++t) {
        const auto type = static_cast<ElementType>(t);
        for (size_t c = 0; c <= static_cast<size_t>(kLastCombine); ++c) {
            const auto combine = static_cast<Combine>(c);
            if (!Accepts(combine, type)) {
                continue;
            }
            const Scalar neutral = NeutralElement(combine, type);
            for (const int64_t value : {0, 1}) {
                const Scalar number = ConvertScalar(Scalar::Integer(value), ElementType::kI64, type,
                                                    Overflow::kSaturate);
                if (type == ElementType::kF8E8M0 && combine == Combine::kSum) {
                    continue;  // it has no 0
                }
                EXPECT_EQ(EvaluateCombine(combine, type, neutral, number), number)
                    << Name(combine) << " " << Name(type);
            }
        }
    }
}

TEST(Combine, NeutralElementsOfTypes) {
    EXPECT_EQ(NeutralElement(Combine::kMin, ElementType::kF32).number, kInf);
    EXPECT_EQ(NeutralElement(Combine::kMax, ElementType::kF8E4M3FN).number, -448);
    EXPECT_EQ(NeutralElement(Combine::kMax, ElementType::kF8E8M0).number, 0x1p-127);
    EXPECT_EQ(NeutralElement(Combine::kMax, ElementType::kI4).integer, -8);
    EXPECT_EQ(NeutralElement(Combine::kMin, ElementType::kI64).integer, INT64_MAX);
    EXPECT_EQ(NeutralElement(Combine::kMin, ElementType::kU64).integer, -1);
    EXPECT_EQ(NeutralElement(Combine::kAnd, ElementType::kU8).integer, 255);
    EXPECT_EQ(NeutralElement(Combine::kAnd, ElementType::kBool).integer, 1);
    EXPECT_FALSE(Accepts(Combine::kSum, ElementType::kBool));
    EXPECT_FALSE(Accepts(Combine::kXor, ElementType::kF16));
    EXPECT_FALSE(Accepts(Combine::kReplace, ElementType::kF32));
}

TEST(Combine, ReplaceGivesTheSecond) {
    EXPECT_EQ(EvaluateCombine(Combine::kReplace, ElementType::kI32, Scalar::Integer(1),
                              Scalar::Integer(2)),
              Scalar::Integer(2));
    EXPECT_EQ(EvaluateCombine(Combine::kProduct, ElementType::kI8, Scalar::Integer(64),
                              Scalar::Integer(4)),
              Scalar::Integer(0));
}

}  // namespace
}  // namespace fornax::graph
