// Every pure operation with an exact result, for every type it takes, on every target and several
// vector widths, against the evaluator of the kernel IR (ir/evaluate.h).
#include "compiler/kernel/codegen/pure_ops.h"

#include <cmath>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "base/half.h"
#include "compiler/kernel/codegen/op_harness.h"
#include "compiler/kernel/codegen/test_targets.h"
#include "compiler/kernel/ir/builder.h"
#include "compiler/kernel/ir/evaluate.h"
#include "compiler/kernel/ir/signature.h"

namespace fornax::kernel {
namespace {

using ir::Op;
using ir::Type;

constexpr size_t kCount = 4096;
constexpr Type kTypes[] = {Type::kBool, Type::kI8,  Type::kI16, Type::kI32,
                           Type::kI64,  Type::kF16, Type::kF32, Type::kF64};

size_t StoredBytes(Type type) {
    return type == Type::kBool ? 1 : ir::ByteSize(type);
}

double ToDouble(Type type, uint64_t bits) {
    switch (type) {
        case Type::kF16:
            return HalfToDouble(static_cast<uint16_t>(bits));
        case Type::kF32:
            return std::bit_cast<float>(static_cast<uint32_t>(bits));
        default:
            return std::bit_cast<double>(bits);
    }
}

int64_t SignExtend(Type type, uint64_t bits) {
    uint32_t unused = 64 - ir::BitWidth(type);
    return static_cast<int64_t>(bits << unused) >> unused;
}

// Arrays of bits, one uint64_t an element, and as the kernel sees them.
struct Column {
    Type type;
    std::vector<uint64_t> bits;
    std::vector<uint8_t> stored;

    explicit Column(Type t) : type(t), bits(kCount), stored(kCount * StoredBytes(t)) {}
    void Store() {
        for (size_t i = 0; i < kCount; ++i) {
            std::memcpy(&stored[i * StoredBytes(type)], &bits[i], StoredBytes(type));
        }
    }
    void Load() {
        for (size_t i = 0; i < kCount; ++i) {
            bits[i] = 0;
            std::memcpy(&bits[i], &stored[i * StoredBytes(type)], StoredBytes(type));
        }
    }
};

// Values with special bits, small integers, and random bits of every magnitude. Operand `index`
// runs through its list at its own pace, so that pairs meet.
Column MakeColumn(Type type, size_t index, size_t operands, std::mt19937_64& random) {
    uint32_t width = ir::BitWidth(type);
    uint64_t mask = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
    std::vector<uint64_t> specials = {0,   1,       2,    3,        5,         7,
                                      8,   15,      16,   31,       32,        33,
                                      63,  64,      mask, mask - 1, mask >> 1, (mask >> 1) + 1,
                                      100, mask - 6};
    if (ir::IsFloat(type)) {
        uint32_t digits = width == 16 ? 10 : width == 32 ? 23 : 52;
        uint64_t infinity = ((mask >> 1) >> digits) << digits;
        uint64_t one = ((mask >> 2) >> digits) << digits;
        for (uint64_t magnitude :
             {uint64_t{0}, uint64_t{1}, infinity, infinity - 1, infinity + 1, one,
              uint64_t{1} << digits, (uint64_t{1} << digits) - 1, one + 1, one - 1,
              one + (uint64_t{1} << (digits - 1)), one + (uint64_t{1} << digits)}) {
            specials.push_back(magnitude);
            specials.push_back(magnitude | ((mask >> 1) + 1));
        }
    }
    Column column(type);
    for (size_t i = 0; i < kCount; ++i) {
        uint64_t& value = column.bits[i];
        if (operands == 1 ? i < specials.size() : i < specials.size() * specials.size()) {
            value = specials[index == 0 ? i % specials.size()
                                        : (i / specials.size()) % specials.size()];
        } else if (i % 3 == 0) {
            value = random() >> (random() % 64);
        } else if (i % 3 == 1) {
            value = ir::IsFloat(type) ? specials[random() % specials.size()] ^ (random() % 4)
                                      : random() % 64;
        } else {
            value = random();
        }
        value &= mask;
    }
    column.Store();
    return column;
}

// Whether SPIR-V (or ops.def) says what the result is.
bool IsDefined(const OpSignature& signature, const uint64_t* in) {
    Type type = signature.operands[0];
    uint32_t width = ir::BitWidth(type);
    switch (signature.op) {
        case Op::kSDiv:
        case Op::kSRem:
        case Op::kSMod:
            if (SignExtend(type, in[1]) == -1 && in[0] == uint64_t{1} << (width - 1)) {
                return false;
            }
            return in[1] != 0;
        case Op::kUDiv:
        case Op::kURem:
            return in[1] != 0;
        case Op::kShl:
        case Op::kLShr:
        case Op::kAShr:
            return in[1] < width;
        case Op::kBitFieldInsert:
            return in[2] + in[3] <= width;
        case Op::kBitFieldSExtract:
        case Op::kBitFieldUExtract:
            return in[1] + in[2] <= width;
        case Op::kFToS: {
            double limit =
                std::ldexp(1.0, static_cast<int>(ir::BitWidth(signature.results[0])) - 1);
            double value = std::trunc(ToDouble(type, in[0]));
            return value >= -limit && value < limit;
        }
        case Op::kFMin:
        case Op::kFMax:
            return !std::isnan(ToDouble(type, in[0])) && !std::isnan(ToDouble(type, in[1]));
        case Op::kFrexp:
            return std::isfinite(ToDouble(type, in[0]));
        default:
            return true;
    }
}

bool SameBits(Type type, uint64_t a, uint64_t b) {
    if (ir::IsFloat(type) && std::isnan(ToDouble(type, a)) && std::isnan(ToDouble(type, b))) {
        return true;
    }
    return a == b;
}

// Every combination of types that the verifier accepts.
std::vector<OpSignature> Signatures(Op op) {
    const ir::OpInfo& info = ir::InfoOf(op);
    size_t places = info.operands + info.results;
    std::vector<OpSignature> list;
    std::vector<size_t> choice(places, 0);
    while (true) {
        OpSignature signature{op, {}, {}, {}};
        for (size_t i = 0; i < places; ++i) {
            (i < info.operands ? signature.operands : signature.results)
                .push_back(kTypes[choice[i]]);
        }
        ir::Kernel kernel;
        ir::Builder builder(kernel, kernel.NewBlock({}));
        std::vector<ir::ValueId> ids;
        for (Type type : signature.operands) {
            ids.push_back(builder.Const(type, 0));
        }
        ir::InstId inst = builder.Append(op, ids, signature.results);
        if (ir::SignatureFault(kernel, kernel.inst(inst)).empty() &&
            ir::IsExact(kernel, kernel.inst(inst))) {
            list.push_back(signature);
        }
        size_t i = 0;
        while (i < places && ++choice[i] == std::size(kTypes)) {
            choice[i++] = 0;
        }
        if (i == places) {
            return list;
        }
    }
}

std::string Describe(const OpSignature& signature) {
    std::string text = ir::InfoOf(signature.op).text;
    for (Type type : signature.operands) {
        text += std::string(" ") + ir::TypeName(type);
    }
    text += " ->";
    for (Type type : signature.results) {
        text += std::string(" ") + ir::TypeName(type);
    }
    return text;
}

class PureOpTest : public testing::TestWithParam<Op> {
  protected:
    void Check(const OpSignature& signature, const TargetInfo& target, uint32_t lanes);
};

void PureOpTest::Check(const OpSignature& signature, const TargetInfo& target, uint32_t lanes) {
    std::string what =
        Describe(signature) + ", " + std::to_string(lanes) + " lanes, " + target.cpu_name;
    auto compiled = CompiledOp::Create(target, signature, lanes);
    ASSERT_TRUE(compiled.ok()) << what << ": " << compiled.error().message;
    std::mt19937_64 random(7);
    std::vector<Column> in, out;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (size_t k = 0; k < signature.operands.size(); ++k) {
        in.push_back(MakeColumn(signature.operands[k], k, signature.operands.size(), random));
        for (auto [index, bits] : signature.constants) {
            if (index == k) {
                in.back().bits.assign(kCount, bits);
            }
        }
    }
    for (Type type : signature.results) {
        out.emplace_back(type);
    }
    for (Column& column : in) {
        inputs.push_back(column.stored.data());
    }
    for (Column& column : out) {
        outputs.push_back(column.stored.data());
    }
    compiled->Run(inputs, outputs, kCount);
    for (Column& column : out) {
        column.Load();
    }

    ir::Kernel kernel;
    ir::Builder builder(kernel, kernel.NewBlock({}));
    std::vector<ir::ValueId> ids;
    for (Type type : signature.operands) {
        ids.push_back(builder.Const(type, 0));
    }
    const ir::Instruction inst = kernel.inst(builder.Append(signature.op, ids, signature.results));
    size_t checked = 0;
    for (size_t i = 0; i < kCount; ++i) {
        uint64_t operands[4] = {}, results[2] = {};
        for (size_t k = 0; k < in.size(); ++k) {
            operands[k] = in[k].bits[i];
        }
        if (!IsDefined(signature, operands)) {
            continue;
        }
        ASSERT_TRUE(ir::Evaluate(kernel, inst, {operands, in.size()}, {results, out.size()}));
        ++checked;
        for (size_t k = 0; k < out.size(); ++k) {
            ASSERT_TRUE(SameBits(out[k].type, out[k].bits[i], results[k]))
                << what << ": operands " << std::hex << operands[0] << " " << operands[1] << " "
                << operands[2] << " " << operands[3] << " give " << out[k].bits[i] << " instead of "
                << results[k] << " as result " << k;
        }
    }
    EXPECT_GT(checked, kCount / 64) << what;
}

TEST_P(PureOpTest, GivesWhatTheEvaluatorGives) {
    std::vector<OpSignature> signatures = Signatures(GetParam());
    ASSERT_FALSE(signatures.empty());
    for (const OpSignature& signature : signatures) {
        for (const TargetInfo& target : TestTargets()) {
            // Without the instruction, an fma that may be contracted is a product and a sum.
            if (signature.op == Op::kFma && target.vector_bits < 256) {
                continue;
            }
            for (uint32_t lanes : {0u, 16u, 64u}) {
                if (lanes == 64 && target.vector_bits < 512) {
                    continue;
                }
                Check(signature, target, lanes);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

// Exponents and digits that make ties, cancellation, overflow and underflow likely; every other sum
// is the negative product, rounded, or a step beside it.
void FillFusedOperands(Type type, std::vector<Column>& in) {
    std::mt19937_64 random(31);
    const uint32_t width = ir::BitWidth(type);
    const uint32_t digits = width == 32 ? 23 : 52;
    const uint64_t exponents = (uint64_t{1} << (width - 1 - digits)) - 1;
    auto operand = [&] {
        const uint64_t near = random() % 3 * (exponents / 2) + random() % 5 - 2;
        const uint64_t exponent = random() % 3 == 0 ? near & exponents : random() % exponents;
        uint64_t fraction = random() & ((uint64_t{1} << digits) - 1);
        fraction = random() % 2 == 0 ? fraction >> random() % digits
                                     : fraction >> random() % digits << random() % digits;
        fraction &= (uint64_t{1} << digits) - 1;
        return (random() & 1) << (width - 1) | exponent << digits | fraction;
    };
    for (size_t i = 0; i < kCount; ++i) {
        for (Column& column : in) {
            column.bits[i] = operand();
        }
        if (i % 2 == 0) {
            const double product = -(ToDouble(type, in[0].bits[i]) * ToDouble(type, in[1].bits[i]));
            const uint64_t bits = width == 32 ? std::bit_cast<uint32_t>(static_cast<float>(product))
                                              : std::bit_cast<uint64_t>(product);
            in[2].bits[i] = (bits + random() % 3 - 1) & (~uint64_t{0} >> (64 - width));
        }
    }
    for (Column& column : in) {
        column.Store();
    }
}

// Products and sums that must not be rounded in between, with an instruction for it and without.
TEST(FusedOp, RoundsOnceOnEveryTarget) {
    for (Type type : {Type::kF32, Type::kF64}) {
        const OpSignature signature{Op::kFma, {type, type, type}, {type}, {}, ir::kNoContraction};
        std::vector<Column> in(3, Column(type));
        for (const TargetInfo& target : TestTargets()) {
            for (uint32_t lanes : {0u, 16u}) {
                auto compiled = CompiledOp::Create(target, signature, lanes);
                ASSERT_TRUE(compiled.ok()) << compiled.error().message;
                FillFusedOperands(type, in);
                Column out(type);
                const void* const inputs[] = {in[0].stored.data(), in[1].stored.data(),
                                              in[2].stored.data()};
                void* const outputs[] = {out.stored.data()};
                compiled->Run(inputs, outputs, kCount);
                out.Load();
                for (size_t i = 0; i < kCount; ++i) {
                    const double a = ToDouble(type, in[0].bits[i]);
                    const double b = ToDouble(type, in[1].bits[i]);
                    const double c = ToDouble(type, in[2].bits[i]);
                    const uint64_t expected =
                        type == Type::kF32 ? std::bit_cast<uint32_t>(std::fma(
                                                 static_cast<float>(a), static_cast<float>(b),
                                                 static_cast<float>(c)))
                                           : std::bit_cast<uint64_t>(std::fma(a, b, c));
                    ASSERT_TRUE(SameBits(type, out.bits[i], expected))
                        << std::hexfloat << a << " * " << b << " + " << c << " is "
                        << ToDouble(type, out.bits[i]) << " and not " << ToDouble(type, expected)
                        << ", " << std::dec << lanes << " lanes, " << target.cpu_name;
                }
            }
        }
    }
}

// Numbers far from the ends of f32, whose products and sums are not: one rounding is as good as
// two.
TEST(BFloatDot, AddsTwoProductsOnEveryTarget) {
    const OpSignature signature{
        Op::kBFloatDot2, {Type::kI32, Type::kI32, Type::kF32}, {Type::kF32}, {}, 0};
    std::mt19937_64 random(9);
    const auto exponent = [&] { return 100 + random() % 50; };
    std::vector<Column> in = {Column(Type::kI32), Column(Type::kI32), Column(Type::kF32)};
    for (size_t i = 0; i < kCount; ++i) {
        for (Column& column : in) {
            const uint64_t numbers = exponent() << 7 | exponent() << 23;
            column.bits[i] = numbers | (random() & 0x807f807fU);
        }
    }
    for (Column& column : in) {
        column.Store();
    }
    const auto number = [](uint64_t bits) {
        return double{std::bit_cast<float>(static_cast<uint32_t>(bits))};
    };
    for (const TargetInfo& target : TestTargets()) {
        for (const uint32_t lanes : {0U, 4U, 16U, 32U}) {
            auto compiled = CompiledOp::Create(target, signature, lanes);
            ASSERT_TRUE(compiled.ok()) << compiled.error().message;
            Column out(Type::kF32);
            const void* const inputs[] = {in[0].stored.data(), in[1].stored.data(),
                                          in[2].stored.data()};
            void* const outputs[] = {out.stored.data()};
            compiled->Run(inputs, outputs, kCount);
            out.Load();
            for (size_t i = 0; i < kCount; ++i) {
                const uint64_t a = in[0].bits[i], b = in[1].bits[i];
                const double low = number(a << 16) * number(b << 16);
                const double high = number(a & 0xffff0000U) * number(b & 0xffff0000U);
                const double sum = number(in[2].bits[i]);
                const double scale = std::abs(low) + std::abs(high) + std::abs(sum);
                ASSERT_NEAR(number(out.bits[i]), low + high + sum, scale * 0x1p-22)
                    << std::hex << a << " " << b << ", " << std::dec << lanes << " lanes, "
                    << target.cpu_name;
            }
        }
    }
}

std::vector<Op> ExactOps() {
    std::vector<Op> list;
    for (Op op = Op::kIAdd; op <= Op::kModf; op = static_cast<Op>(static_cast<int>(op) + 1)) {
        bool inexact = (op >= Op::kExp && op <= Op::kATanh) || op == Op::kFRem || op == Op::kFMod ||
                       op == Op::kRSqrt || op == Op::kBFloatDot2;
        if (!inexact) {
            list.push_back(op);
        }
    }
    return list;
}

INSTANTIATE_TEST_SUITE_P(Ops, PureOpTest, testing::ValuesIn(ExactOps()), [](const auto& info) {
    return std::string(ir::InfoOf(info.param).text);
});

// LLVM turns these into multiplications and shifts, and folds what is undefined.
class ConstantDivisorTest : public PureOpTest {};

TEST_P(ConstantDivisorTest, GivesWhatTheEvaluatorGives) {
    for (Type type : {Type::kI8, Type::kI16, Type::kI32, Type::kI64}) {
        for (int64_t divisor : {0, 1, 2, 3, 7, 10, 64, -1, -2, -7, -128}) {
            OpSignature signature{GetParam(), {type, type}, {type}, {}};
            uint32_t unused = 64 - ir::BitWidth(type);
            signature.constants = {{1, static_cast<uint64_t>(divisor) << unused >> unused}};
            auto compiled = CompiledOp::Create(TestTargets()[0], signature, 16);
            ASSERT_TRUE(compiled.ok()) << compiled.error().message;
            if (divisor != 0) {
                Check(signature, TestTargets()[0], 16);
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Ops,
                         ConstantDivisorTest,
                         testing::Values(Op::kUDiv, Op::kSDiv, Op::kURem, Op::kSRem, Op::kSMod),
                         [](const auto& info) { return std::string(ir::InfoOf(info.param).text); });

}  // namespace
}  // namespace fornax::kernel
