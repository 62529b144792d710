// Random integer arithmetic: whatever an index expression says of a value has to be what the
// interpreter computes, in every invocation and iteration.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <optional>

#include "compiler/kernel/index/index_builder.h"
#include "compiler/kernel/interpret/interpret.h"
#include "compiler/kernel/interpret/random_kernel.h"
#include "compiler/kernel/ir/builder.h"
#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/ir/verify.h"

namespace fornax::kernel {
namespace {

using ir::BuiltinId;
using ir::Op;
using ir::Type;
using ir::ValueId;

constexpr uint32_t kIterations = 3;
constexpr uint32_t kWorkgroups = 2;
constexpr uint32_t kPushWords = 4;
constexpr std::array<uint32_t, 3> kSize = {8, 2, 1};
constexpr uint32_t kInvocations = kSize[0] * kSize[1] * kSize[2];

// A kernel that stores each integer that it computes: those of a loop once an iteration.
class RandomArithmetic {
  public:
    explicit RandomArithmetic(uint64_t seed) : random_(seed), b_(kernel_, ir::BlockId{}) {
        kernel_.name = "arithmetic";
        kernel_.workgroup_size = kSize;
        kernel_.subgroup_size = 8;
        kernel_.push_constant_bytes = 4 * (kPushWords + 1);
        ir::Binding binding;
        binding.layout.kind = BindingLayout::Kind::kStorageBuffer;
        binding.layout.count = 1;
        kernel_.bindings.push_back(binding);
        kernel_.body = kernel_.NewBlock({});
        b_.SetBlock(kernel_.body);
        Inputs();
        for (uint32_t i = 0; i < 14; ++i) {
            Operation();
        }
        Loop();
        StoreAll(outside_, b_.ConstI32(0));
        b_.Append(Op::kReturn, {}, {});
    }

    const ir::Kernel& kernel() const { return kernel_; }
    // Stored, in this order, behind one another; what the loop computes comes last.
    std::vector<ValueId> Stored() const {
        std::vector<ValueId> all = outside_;
        all.insert(all.end(), inside_.begin(), inside_.end());
        return all;
    }
    bool InLoop(ValueId value) const { return std::ranges::count(inside_, value) != 0; }
    ir::InstId loop() const { return loop_; }
    static uint64_t PlaceOf(size_t slot, uint32_t iteration, uint32_t invocation) {
        return (uint64_t{invocation} * kIterations + iteration) * kMaxSlots + slot;
    }
    static constexpr size_t kMaxSlots = 64;

  private:
    void Inputs() {
        const ValueId zero = b_.ConstI32(0);
        buffer_ = b_.Emit(Op::kBuffer, Type::kBuffer, {zero});
        for (BuiltinId builtin : {BuiltinId::kWorkgroupIdX, BuiltinId::kLocalIdX,
                                  BuiltinId::kLocalIdY, BuiltinId::kLocalIndex}) {
            Keep(b_.Emit(Op::kBuiltin, Type::kI32, {}, static_cast<uint64_t>(builtin)));
        }
        for (uint32_t i = 0; i < kPushWords; ++i) {
            Type type = Type::kI32;
            const ValueId offset = b_.ConstI32(4 * i);
            const ir::InstId load = b_.Append(Op::kLoadPush, {&offset, 1}, {&type, 1}, 4);
            ValueId value = kernel_.inst(load).results[0];
            Keep(value);
            // Some of them are small, or multiples.
            if (random_.Chance(50)) {
                Keep(b_.Emit(Op::kAnd, type, {value, b_.ConstI32(random_.Chance(50) ? 63 : ~63u)}));
            }
        }
        const ValueId base_at = b_.ConstI32(4 * kPushWords);
        Type type = Type::kI32;
        const ir::InstId base = b_.Append(Op::kLoadPush, {&base_at, 1}, {&type, 1}, 4);
        const ValueId group =
            b_.Emit(Op::kISub, type, {outside_[0], kernel_.inst(base).results[0]});
        const ValueId first = b_.Emit(Op::kIMul, type, {group, b_.ConstI32(kInvocations)});
        invocation_ = b_.Emit(Op::kIAdd, type, {first, outside_[3]});
    }

    void Keep(ValueId value) {
        if (outside_.size() + inside_.size() < kMaxSlots) {
            (loop_.valid() ? inside_ : outside_).push_back(value);
        }
    }

    ValueId RandomConst(Type type) {
        static constexpr uint64_t kNumbers[] = {0,  1,  2,  3,  4,  5,  6,   7,   8,  12,
                                                15, 16, 31, 32, 34, 60, 255, 256, 240};
        const uint32_t width = ir::BitWidth(type);
        switch (random_.Below(8)) {
            case 0:
                return b_.Const(type, uint64_t{1} << random_.Below(width));
            case 1:
                return b_.Const(type, 0 - (uint64_t{1} << random_.Below(width)));
            case 2:
                return b_.Const(type, 0 - uint64_t{random_.Below(20)});
            case 3:
                return b_.Const(type, random_.Next());
            default:
                return b_.Const(type, kNumbers[random_.Below(std::size(kNumbers))]);
        }
    }

    ValueId Pick(Type type) {
        if (random_.Chance(25)) {
            return RandomConst(type);
        }
        std::vector<ValueId> fitting;
        for (const std::vector<ValueId>* pool : {&outside_, &inside_}) {
            for (ValueId value : *pool) {
                if (kernel_.type(value) == type) {
                    fitting.push_back(value);
                }
            }
        }
        if (fitting.empty()) {
            return RandomConst(type);
        }
        const auto count = static_cast<uint32_t>(fitting.size());
        const uint32_t recent = random_.Chance(60) ? std::min(count, 6u) : count;
        return fitting[count - 1 - random_.Below(recent)];
    }

    void Operation() {
        static constexpr Type kTypes[] = {Type::kI32, Type::kI32, Type::kI32, Type::kI32,
                                          Type::kI64, Type::kI16, Type::kI8};
        static constexpr Op kAny[] = {Op::kIAdd, Op::kIAdd, Op::kIAdd, Op::kISub, Op::kIMul,
                                      Op::kIMul, Op::kUDiv, Op::kURem, Op::kAnd,  Op::kOr,
                                      Op::kXor,  Op::kUMin, Op::kUMax, Op::kSMin, Op::kSMax,
                                      Op::kSDiv, Op::kSRem, Op::kSMod};
        static constexpr Op kByConstant[] = {Op::kIMul, Op::kUDiv, Op::kURem, Op::kSDiv,
                                             Op::kSRem, Op::kAnd,  Op::kOr,   Op::kXor,
                                             Op::kShl,  Op::kLShr, Op::kAShr, Op::kLShr};
        const Type type = kTypes[random_.Below(std::size(kTypes))];
        switch (random_.Below(8)) {
            case 0:
                Keep(b_.Emit(random_.Chance(50) ? Op::kINeg : Op::kNot, type, {Pick(type)}));
                break;
            case 1:
            case 2: {
                const Type from = kTypes[random_.Below(std::size(kTypes))];
                const uint32_t width = ir::BitWidth(type);
                if (width != ir::BitWidth(from)) {
                    const Op widen = random_.Chance(50) ? Op::kZExt : Op::kSExt;
                    const Op op = width < ir::BitWidth(from) ? Op::kTrunc : widen;
                    Keep(b_.Emit(op, type, {Pick(from)}));
                }
                break;
            }
            case 3:
            case 4: {
                const Op op = kByConstant[random_.Below(std::size(kByConstant))];
                const bool shift = op == Op::kShl || op == Op::kLShr || op == Op::kAShr;
                const ValueId by =
                    shift ? b_.Const(type, random_.Below(ir::BitWidth(type))) : RandomConst(type);
                Keep(b_.Emit(op, type, {Pick(type), by}));
                break;
            }
            case 5: {
                const uint32_t first = random_.Below(ir::BitWidth(type));
                const uint32_t count = random_.Below(ir::BitWidth(type) - first + 1);
                Keep(b_.Emit(Op::kBitFieldUExtract, type,
                             {Pick(type), b_.ConstI32(first), b_.ConstI32(count)}));
                break;
            }
            default:
                Keep(b_.Emit(kAny[random_.Below(std::size(kAny))], type, {Pick(type), Pick(type)}));
                break;
        }
    }

    // Counters that grow by constants, and what is computed of them.
    void Loop() {
        const ValueId zero = b_.ConstI32(0);
        std::vector<ValueId> starts = {zero};
        for (uint32_t i = 0; i < 3; ++i) {
            starts.push_back(Pick(i == 2 ? Type::kI64 : Type::kI32));
        }
        loop_ = kernel_.NewInst(Op::kLoop, starts, {});
        kernel_.block(b_.block()).insts.push_back(loop_);
        const ir::BlockId body = kernel_.NewBlock(loop_);
        const ir::BlockId next = kernel_.NewBlock(loop_);
        kernel_.inst(loop_).blocks = {body, next};
        for (ValueId start : starts) {
            Keep(kernel_.AddParam(body, kernel_.type(start)));
        }
        const ir::BlockId outer = b_.block();
        b_.SetBlock(body);
        const ValueId counter = kernel_.block(body).params[0];
        const ValueId done = b_.Emit(Op::kULe, Type::kBool, {b_.ConstI32(kIterations), counter});
        const ir::InstId test = b_.Append(Op::kIf, {&done, 1}, {});
        kernel_.inst(test).blocks = {kernel_.NewBlock(test), kernel_.NewBlock(test)};
        const std::vector<ir::BlockId> sides = kernel_.inst(test).blocks;
        b_.SetBlock(sides[0]);
        const ir::InstId exit = b_.Append(Op::kExit, {}, {});
        kernel_.inst(exit).target = loop_;
        b_.SetBlock(sides[1]);
        b_.Append(Op::kYield, {}, {});
        b_.SetBlock(body);
        for (uint32_t i = 0; i < 14; ++i) {
            Operation();
        }
        StoreAll(inside_, counter);
        std::vector<ValueId> passed;
        const bool through = random_.Chance(50);
        if (through) {
            const ValueId param = kernel_.block(body).params[1];
            kernel_.AddParam(next, Type::kI32);
            passed.push_back(b_.Emit(Op::kISub, Type::kI32, {param, RandomConst(Type::kI32)}));
        }
        const ir::InstId jump = b_.Append(Op::kContinue, passed, {});
        kernel_.inst(jump).target = loop_;
        b_.SetBlock(next);
        std::vector<ValueId> following;
        for (size_t i = 0; i < starts.size(); ++i) {
            ValueId value = kernel_.block(body).params[i];
            if (i == 1 && through) {
                value = kernel_.block(next).params[0];
            }
            const Type type = kernel_.type(value);
            const ValueId step = i == 0 ? b_.ConstI32(1) : RandomConst(type);
            following.push_back(b_.Emit(Op::kIAdd, type, {value, step}));
        }
        b_.Append(Op::kNext, following, {});
        b_.SetBlock(outer);
    }

    void StoreAll(const std::vector<ValueId>& values, ValueId iteration) {
        const size_t first = &values == &inside_ ? outside_.size() : 0;
        const ValueId rows =
            b_.Emit(Op::kIMul, Type::kI32, {invocation_, b_.ConstI32(kIterations)});
        const ValueId row = b_.Emit(Op::kIAdd, Type::kI32, {rows, iteration});
        const ValueId begin = b_.Emit(Op::kIMul, Type::kI32, {row, b_.ConstI32(8 * kMaxSlots)});
        for (size_t i = 0; i < values.size(); ++i) {
            const auto at = static_cast<uint32_t>(8 * (first + i));
            const ValueId offset = b_.Emit(Op::kIAdd, Type::kI32, {begin, b_.ConstI32(at)});
            ValueId value = values[i];
            if (kernel_.type(value) != Type::kI64) {
                value = b_.Emit(Op::kZExt, Type::kI64, {value});
            }
            const ValueId operands[] = {buffer_, offset, value};
            b_.Append(Op::kStoreBuffer, operands, {}, 8);
        }
    }

    Random random_;
    ir::Kernel kernel_;
    ir::Builder b_;
    ValueId buffer_;
    ValueId invocation_;
    std::vector<ValueId> outside_;
    std::vector<ValueId> inside_;
    ir::InstId loop_;
};

// The value of an expression, where the symbols have the given ones. Nothing if a divisor is 0 or
// a number is too large to be computed with here.
class Evaluation {
  public:
    using Symbols = std::function<std::optional<uint64_t>(const IndexSymbol&)>;
    Evaluation(const IndexAlgebra& algebra, Symbols symbols)
        : algebra_(algebra), symbols_(std::move(symbols)) {}

    std::optional<WideInteger> Of(IndexExpr expr) {
        const IndexSum& sum = algebra_.sum(expr);
        WideInteger result = sum.constant;
        for (const IndexSum::Part& part : sum.parts) {
            const auto term = OfTerm(part.term);
            WideInteger product = 0;
            if (!term || __builtin_mul_overflow(*term, WideInteger{part.factor}, &product) ||
                __builtin_add_overflow(result, product, &result)) {
                return std::nullopt;
            }
        }
        return result;
    }

  private:
    std::optional<WideInteger> OfTerm(IndexTermId id) {
        const IndexTerm& term = algebra_.term(id);
        if (term.kind == IndexTerm::Kind::kSymbol) {
            const auto bits = symbols_(term.symbol);
            return bits ? std::optional<WideInteger>(*bits) : std::nullopt;
        }
        WideInteger result = 1;
        if (term.kind == IndexTerm::Kind::kProduct) {
            for (IndexTermId factor : term.factors) {
                const auto value = OfTerm(factor);
                if (!value || __builtin_mul_overflow(result, *value, &result)) {
                    return std::nullopt;
                }
            }
            return result;
        }
        const auto operand = Of(term.operand);
        WideInteger by = term.kind == IndexTerm::Kind::kLowBits ? WideInteger{1} << term.divisor
                                                                : WideInteger{term.divisor};
        if (term.by.valid()) {
            by = Of(term.by).value_or(0);
        }
        if (!operand || by == 0) {
            return std::nullopt;
        }
        const WideInteger quotient = *operand / by - (*operand % by < 0 ? 1 : 0);
        result = term.kind == IndexTerm::Kind::kQuotient ? quotient : *operand - quotient * by;
        EXPECT_GE(result, term.range.low);
        EXPECT_LE(result, term.range.high);
        return result;
    }

    const IndexAlgebra& algebra_;
    Symbols symbols_;
};

uint64_t Masked(WideInteger value, uint32_t bits) {
    return static_cast<uint64_t>(value) & (~uint64_t{0} >> (64 - bits));
}

class Comparison {
  public:
    explicit Comparison(uint64_t seed)
        : seed_(seed), arithmetic_(seed), random_(seed + 1), index_(arithmetic_.kernel()) {
        stored_ = arithmetic_.Stored();
        for (size_t i = 0; i < stored_.size(); ++i) {
            slots_[stored_[i].value()] = i;
        }
    }

    void Run() {
        const ir::Kernel& kernel = arithmetic_.kernel();
        const Status valid = ir::Verify(kernel);
        ASSERT_TRUE(valid.ok()) << valid.error().message << ir::PrintKernel(kernel);
        Interpretation();
        for (uint32_t at = 0; at < kWorkgroups * kInvocations && !::testing::Test::HasFailure();
             ++at) {
            for (uint32_t iteration = 0; iteration < kIterations; ++iteration) {
                Compare(at, iteration);
            }
        }
        if (::testing::Test::HasFailure()) {
            ADD_FAILURE() << "seed " << seed_ << "\n" << ir::PrintKernel(kernel);
        }
    }
    uint64_t compared() const { return compared_; }
    uint64_t differences() const { return differences_; }

  private:
    void Interpretation() {
        const size_t size = RandomArithmetic::PlaceOf(0, 0, kWorkgroups * kInvocations);
        memory_.assign(size, 0);
        static constexpr uint32_t kBases[] = {0, 0, 5, 64, 1u << 20, 0x7fffffff, 0xfffffff0};
        base_ = kBases[random_.Below(std::size(kBases))];
        std::array<uint32_t, kPushWords + 1> push = {};
        for (uint32_t i = 0; i < kPushWords; ++i) {
            push[i] = static_cast<uint32_t>(random_.Next()) >> random_.Below(32);
        }
        push[kPushWords] = base_;
        hal::BufferDescriptor descriptor{reinterpret_cast<uint64_t>(memory_.data()), size * 8};
        const void* sets[] = {&descriptor};
        hal::DispatchFrame frame;
        frame.descriptor_sets = sets;
        frame.push_constants = push.data();
        frame.workgroup_count[0] = kWorkgroups;
        frame.workgroup_count[1] = frame.workgroup_count[2] = 1;
        frame.base_workgroup[0] = base_;
        const Status status = Interpret(arithmetic_.kernel(), frame, 0, kWorkgroups);
        ASSERT_TRUE(status.ok()) << status.error().message;
    }

    uint64_t BitsOf(ValueId value, uint32_t invocation, uint32_t iteration) const {
        const uint32_t row = arithmetic_.InLoop(value) ? iteration : 0;
        return memory_[RandomArithmetic::PlaceOf(slots_.at(value.value()), row, invocation)];
    }

    std::optional<uint64_t> SymbolAt(const IndexSymbol& symbol,
                                     uint32_t invocation,
                                     uint32_t iteration) const {
        std::optional<uint64_t> bits;
        if (symbol.kind == IndexSymbol::Kind::kIteration) {
            bits = iteration;
        } else if (symbol.kind == IndexSymbol::Kind::kBuiltin) {
            const uint32_t local = invocation % kInvocations;
            switch (static_cast<BuiltinId>(symbol.number)) {
                case BuiltinId::kWorkgroupIdX:
                    bits = base_ + invocation / kInvocations;
                    break;
                case BuiltinId::kLocalIdX:
                    bits = local % kSize[0];
                    break;
                case BuiltinId::kLocalIdY:
                    bits = local / kSize[0];
                    break;
                default:
                    bits = local;
                    break;
            }
        } else if (slots_.contains(symbol.number)) {
            bits = BitsOf(ValueId{symbol.number}, invocation, iteration);
        }
        if (bits) {
            EXPECT_LE(*bits, symbol.max);
            EXPECT_EQ(*bits & ((uint64_t{1} << symbol.zeros) - 1), 0u);
        }
        return bits;
    }

    void Compare(uint32_t invocation, uint32_t iteration) {
        IndexAlgebra& algebra = index_.algebra();
        Evaluation here(algebra, [&](const IndexSymbol& symbol) {
            return SymbolAt(symbol, invocation, iteration);
        });
        for (ValueId value : stored_) {
            const bool in_loop = arithmetic_.InLoop(value);
            if (!in_loop && iteration != 0) {
                continue;
            }
            const uint32_t bits = ir::BitWidth(arithmetic_.kernel().type(value));
            const uint64_t expected = BitsOf(value, invocation, iteration);
            const IndexExpr expr = index_.Of(value);
            SCOPED_TRACE("%" + std::to_string(value.value()) + " = " + algebra.Text(expr));
            if (const auto result = here.Of(expr)) {
                EXPECT_EQ(Masked(*result, bits), expected);
                ++compared_;
            }
            const IndexExpr exact = index_.Unsigned(value);
            const auto result = exact.valid() ? here.Of(exact) : std::nullopt;
            if (result) {
                EXPECT_TRUE(*result == WideInteger{expected}) << algebra.Text(exact);
            }
            const IndexRange range = index_.UnsignedRange(value);
            EXPECT_TRUE(range.low <= expected && range.high >= expected);
            const uint32_t zeros = std::min(algebra.TrailingZeros(expr), bits - 1);
            EXPECT_EQ(expected & ((uint64_t{1} << zeros) - 1), 0u);
            // Differences are equal to those of the interpreter's values.
            if (in_loop && iteration + 1 < kIterations) {
                CompareStep(value, index_.AlongIteration(value, arithmetic_.loop()), here,
                            BitsOf(value, invocation, iteration + 1) - expected);
            }
            if (invocation < kInvocations) {
                CompareStep(value, index_.AlongWorkgroupX(value), here,
                            BitsOf(value, invocation + kInvocations, iteration) - expected);
            }
        }
    }

    void CompareStep(ValueId value, IndexExpr step, Evaluation& here, uint64_t expected) {
        if (!step.valid()) {
            return;
        }
        const uint32_t bits = ir::BitWidth(arithmetic_.kernel().type(value));
        if (const auto result = here.Of(step)) {
            EXPECT_EQ(Masked(*result, bits), Masked(expected, bits)) << index_.algebra().Text(step);
            ++differences_;
        }
    }

    const uint64_t seed_;
    RandomArithmetic arithmetic_;
    Random random_;
    IndexBuilder index_;
    std::vector<ValueId> stored_;
    std::map<uint32_t, size_t> slots_;
    std::vector<uint64_t> memory_;
    uint32_t base_ = 0;
    uint64_t compared_ = 0;
    uint64_t differences_ = 0;
};

TEST(IndexProperty, RandomArithmeticIsWhatTheInterpreterComputes) {
    constexpr uint64_t kSeeds = 500;
    uint64_t compared = 0;
    uint64_t differences = 0;
    for (uint64_t seed = 1; seed <= kSeeds && !HasFailure(); ++seed) {
        Comparison comparison(seed);
        comparison.Run();
        compared += comparison.compared();
        differences += comparison.differences();
    }
    // Most values are compared, not left out.
    EXPECT_GT(compared, kSeeds * 1000);
    EXPECT_GT(differences, kSeeds * 200);
}

}  // namespace
}  // namespace fornax::kernel
