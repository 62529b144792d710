// Known answers of constant evaluation: the interpreter shares the code, so it proves nothing here.
#include "compiler/kernel/ir/evaluate.h"
#include "compiler/kernel/ir/builder.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>

namespace fornax::kernel::ir {
namespace {

uint64_t F(float value) {
    return std::bit_cast<uint32_t>(value);
}
uint64_t D(double value) {
    return std::bit_cast<uint64_t>(value);
}
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Case {
    Op op;
    Type in;
    std::vector<uint64_t> operands;
    Type out;
    std::vector<uint64_t> results;
};

void Check(const Case& c) {
    Kernel kernel;
    kernel.body = kernel.NewBlock({});
    Builder builder(kernel, kernel.body);
    std::vector<ValueId> operands;
    for (size_t i = 0; i < c.operands.size(); ++i) {
        operands.push_back(builder.Const(c.op == Op::kSelect && i == 0 ? Type::kBool : c.in, 0));
    }
    std::vector<Type> types(c.results.size(), c.out);
    InstId id = builder.Append(c.op, operands, types);
    std::vector<uint64_t> results(c.results.size());
    ASSERT_TRUE(Evaluate(kernel, kernel.inst(id), c.operands, results));
    EXPECT_EQ(results, c.results) << InfoOf(c.op).text << " " << c.operands[0];
}

TEST(Evaluate, Integers) {
    constexpr Type i32 = Type::kI32, i8 = Type::kI8, i64 = Type::kI64, b = Type::kBool;
    const Case kCases[] = {
        {Op::kIAdd, i32, {0xffffffff, 2}, i32, {1}},
        {Op::kISub, i8, {1, 2}, i8, {0xff}},
        {Op::kIMul, i32, {0x10001, 0x10001}, i32, {0x20001}},
        {Op::kUDiv, i32, {0xfffffffe, 3}, i32, {0x55555554}},
        {Op::kSDiv, i32, {0xfffffff9, 2}, i32, {0xfffffffd}},
        {Op::kSDiv, i32, {0x80000000, 0xffffffff}, i32, {0x80000000}},
        {Op::kSDiv, i64, {uint64_t{1} << 63, ~uint64_t{0}}, i64, {uint64_t{1} << 63}},
        {Op::kSRem, i32, {0xfffffff9, 3}, i32, {0xffffffff}},
        {Op::kSMod, i32, {0xfffffff9, 3}, i32, {2}},
        {Op::kSMod, i32, {7, 0xfffffffd}, i32, {0xfffffffe}},
        {Op::kSRem, i32, {0x80000000, 0xffffffff}, i32, {0}},
        {Op::kINeg, i8, {0x80}, i8, {0x80}},
        {Op::kUAddCarry, i32, {0xffffffff, 1}, i32, {0, 1}},
        {Op::kUSubBorrow, i32, {0, 1}, i32, {0xffffffff, 1}},
        {Op::kUMulExtended, i32, {0xffffffff, 0xffffffff}, i32, {1, 0xfffffffe}},
        {Op::kSMulExtended, i32, {0xffffffff, 3}, i32, {0xfffffffd, 0xffffffff}},
        {Op::kUMulExtended, i64, {~uint64_t{0}, 2}, i64, {~uint64_t{1}, 1}},
        {Op::kShl, i8, {0x81, 1}, i8, {2}},
        {Op::kLShr, i8, {0x81, 7}, i8, {1}},
        {Op::kAShr, i8, {0x81, 7}, i8, {0xff}},
        {Op::kNot, b, {1}, b, {0}},
        {Op::kXor, b, {1, 1}, b, {0}},
        {Op::kBitFieldInsert, i32, {0xffffffff, 0, 8, 8}, i32, {0xffff00ff}},
        {Op::kBitFieldInsert, i32, {1, 0xabcdef01, 0, 32}, i32, {0xabcdef01}},
        {Op::kBitFieldSExtract, i32, {0x0000f000, 12, 4}, i32, {0xffffffff}},
        {Op::kBitFieldUExtract, i32, {0x0000f000, 12, 4}, i32, {15}},
        {Op::kBitFieldUExtract, i32, {0x80000000, 0, 32}, i32, {0x80000000}},
        {Op::kBitReverse, i8, {0x01}, i8, {0x80}},
        {Op::kBitCount, i32, {0xf0f0}, i32, {8}},
        {Op::kFindLsb, i32, {0}, i32, {0xffffffff}},
        {Op::kFindLsb, i32, {0x60}, i32, {5}},
        {Op::kFindUMsb, i32, {0x80000000}, i32, {31}},
        {Op::kFindSMsb, i32, {0xffffffff}, i32, {0xffffffff}},
        {Op::kFindSMsb, i32, {0xfffffff0}, i32, {3}},
        {Op::kSMin, i32, {0xffffffff, 1}, i32, {0xffffffff}},
        {Op::kUMin, i32, {0xffffffff, 1}, i32, {1}},
        {Op::kSAbs, i32, {0xfffffffb}, i32, {5}},
        {Op::kSSign, i32, {0xfffffffb}, i32, {0xffffffff}},
        {Op::kSLt, i32, {0xffffffff, 0}, b, {1}},
        {Op::kULt, i32, {0xffffffff, 0}, b, {0}},
        {Op::kSLe, i8, {0x80, 0x7f}, b, {1}},
        {Op::kSExt, i8, {0x80}, i32, {0xffffff80}},
        {Op::kZExt, i8, {0x80}, i32, {0x80}},
        {Op::kTrunc, i32, {0x12345678}, i8, {0x78}},
        {Op::kSelect, i32, {0, 7, 9}, i32, {9}},
    };
    for (const Case& c : kCases) {
        Check(c);
    }
}

TEST(Evaluate, Floats) {
    constexpr Type i32 = Type::kI32, f16 = Type::kF16, f32 = Type::kF32, f64 = Type::kF64,
                   i64 = Type::kI64, b = Type::kBool;
    const Case kCases[] = {
        {Op::kFAdd, f32, {F(1), F(0x1p-24f)}, f32, {F(1)}},
        {Op::kFAdd, f32, {F(kInf), F(-kInf)}, f32, {F(kNan)}},
        {Op::kFMul, f32, {F(0x1p-100f), F(0x1p-49f)}, f32, {1}},
        {Op::kFDiv, f32, {F(1), F(-0.0f)}, f32, {F(-kInf)}},
        {Op::kFAdd, f16, {0x3c00, 0x3c00}, f16, {0x4000}},
        {Op::kFMul, f16, {0x7bff, 0x4000}, f16, {0x7c00}},
        {Op::kFma, f32, {F(1 + 0x1p-23f), F(1 - 0x1p-23f), F(-1)}, f32, {F(-0x1p-46f)}},
        {Op::kFNeg, f32, {F(kNan)}, f32, {0xffc00000}},
        {Op::kFAbs, f32, {F(-2)}, f32, {F(2)}},
        {Op::kFMin, f32, {F(kNan), F(1)}, f32, {F(1)}},
        {Op::kNMax, f32, {F(1), F(kNan)}, f32, {F(1)}},
        {Op::kFMin, f32, {F(0), F(-0.0f)}, f32, {F(-0.0f)}},
        {Op::kFMin, f32, {F(-0.0f), F(0)}, f32, {F(0)}},
        {Op::kNMax, f32, {F(-0.0f), F(0)}, f32, {F(0)}},
        {Op::kNMax, f32, {F(0), F(-0.0f)}, f32, {F(-0.0f)}},
        {Op::kFRem, f32, {F(-7), F(3)}, f32, {F(-1)}},
        {Op::kFMod, f32, {F(-7), F(3)}, f32, {F(2)}},
        {Op::kRoundEven, f32, {F(2.5f)}, f32, {F(2)}},
        {Op::kRoundEven, f32, {F(-0.4f)}, f32, {F(-0.0f)}},
        {Op::kFTruncate, f32, {F(-2.7f)}, f32, {F(-2)}},
        {Op::kFract, f32, {F(-0.25f)}, f32, {F(0.75f)}},
        {Op::kFSign, f32, {F(-0.5f)}, f32, {F(-1)}},
        {Op::kFSign, f32, {F(-0.0f)}, f32, {F(-0.0f)}},
        {Op::kSinh, f32, {F(-89)}, f32, {F(-kInf)}},
        {Op::kCosh, f32, {F(-89)}, f32, {F(kInf)}},
        {Op::kSinh, f16, {0x498c}, f16, {0x7c00}},  // 11.09375
        {Op::kCosh, f16, {0x498b}, f16, {0x77f7}},
        {Op::kFSign, f32, {F(kNan)}, f32, {F(0)}},
        {Op::kSqrt, f32, {F(2)}, f32, {F(1.41421356f)}},
        {Op::kModf, f32, {F(-2.5f)}, f32, {F(-0.5f), F(-2)}},
        {Op::kFOLt, f32, {F(kNan), F(1)}, b, {0}},
        {Op::kFULt, f32, {F(kNan), F(1)}, b, {1}},
        {Op::kFUNe, f32, {F(kNan), F(kNan)}, b, {1}},
        {Op::kFONe, f32, {F(kNan), F(kNan)}, b, {0}},
        {Op::kFUEq, f32, {F(0), F(-0.0f)}, b, {1}},
        {Op::kIsInf, f32, {F(-kInf)}, b, {1}},
        {Op::kFToS, f32, {F(-1e20f)}, i32, {0x80000000}},
        {Op::kFToS, f32, {F(2147483648.0f)}, i32, {0x7fffffff}},
        {Op::kFToS, f32, {F(-1.9f)}, i32, {0xffffffff}},
        {Op::kFToU, f32, {F(-0.9f)}, i32, {0}},
        {Op::kFToU, f32, {F(-1)}, i32, {0}},
        {Op::kFToU, f32, {F(4294967040.0f)}, i32, {4294967040}},
        {Op::kFToU, f32, {F(kNan)}, i32, {0}},
        {Op::kSToF, i32, {0xffffffff}, f32, {F(-1)}},
        {Op::kUToF, i32, {0xffffffff}, f32, {F(4294967296.0f)}},
        // 2^53 + 2^29 + 1 rounds up in f32, but would tie and round down after a stop in f64.
        {Op::kUToF,
         i64,
         {(uint64_t{1} << 53) + (uint64_t{1} << 29) + 1},
         f32,
         {F(0x1p53f + 0x1p30f)}},
        {Op::kFConvert, f64, {D(1.0 + 0x1p-11 + 0x1p-40)}, f16, {0x3c01}},
        {Op::kFConvert, f32, {F(65520)}, f16, {0x7c00}},
        {Op::kQuantizeF16, f32, {F(0x1p-20f)}, f32, {F(0)}},
        {Op::kQuantizeF16, f32, {F(1 + 0x1p-12f)}, f32, {F(1)}},
        {Op::kBitcast, f32, {F(1)}, i32, {0x3f800000}},
    };
    for (const Case& c : kCases) {
        Check(c);
    }
}

TEST(Evaluate, LdexpAndFrexpMixTypes) {
    Kernel kernel;
    kernel.body = kernel.NewBlock({});
    Builder builder(kernel, kernel.body);
    ValueId x = builder.ConstF32(0);
    ValueId e = builder.ConstI32(0);
    Type types[] = {Type::kF32, Type::kI32};
    InstId ldexp = builder.Append(Op::kLdexp, std::vector{x, e}, {types, 1});
    InstId frexp = builder.Append(Op::kFrexp, {&x, 1}, types);
    uint64_t out[2];
    ASSERT_TRUE(Evaluate(kernel, kernel.inst(ldexp), std::vector<uint64_t>{F(3), 0xfffffffe}, out));
    EXPECT_EQ(out[0], F(0.75f));
    ASSERT_TRUE(Evaluate(kernel, kernel.inst(ldexp), std::vector<uint64_t>{F(3), 0x7fffffff}, out));
    EXPECT_EQ(out[0], F(kInf));
    ASSERT_TRUE(Evaluate(kernel, kernel.inst(frexp), std::vector<uint64_t>{F(-6)}, out));
    EXPECT_EQ(out[0], F(-0.75f));
    EXPECT_EQ(out[1], 3u);
}

}  // namespace
}  // namespace fornax::kernel::ir
