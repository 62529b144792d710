// Scalars: where they are emitted, constants, loads and what reads memory (emit_scalars.h).
#include "compiler/graph/loop/emit_scalars.h"

#include <algorithm>

#include <fmt/format.h>

#include "compiler/graph/loop/quantised.h"
#include "compiler/graph/loop/value_ranges.h"

namespace fornax::graph::loop {

using spv::Op;

namespace {

// In scopes, beside the id of a scalar: its whole quotient, and its reciprocal.
constexpr uint32_t kWhole = 1U << 31;
constexpr uint32_t kReciprocal = 1U << 30;

ScalarId IdOf(const Kernel& kernel, const ScalarNode& node) {
    return ScalarId(static_cast<uint32_t>(&node - kernel.scalars.data()));
}

}  // namespace

Id ScalarCode::Value(ScalarId id) {
    if (const Id known = point_.Find(id); known != 0) {
        return known;
    }
    if (storage_ != nullptr) {
        if (const Id kept = storage_->Find(id); kept != 0) {
            return kept;
        }
    }
    const ScalarNode& node = kernel_[id];
    // A scalar is emitted in each reduction that uses it, which in kernels from files could be
    // many.
    constexpr size_t kMaxCodeWords = size_t{1} << 20;
    if (b_.code_words() > kMaxCodeWords) {
        Reject(fmt::format("its code is longer than {} words", kMaxCodeWords));
        return b_.Constant(TypeFor(node.type), 0);
    }
    const Id value =
        std::visit([&](const auto& contents) { return Compute(node, contents); }, node.value);
    point_.Add(id, value);
    if (storage_ != nullptr) {
        storage_->Keep(id, value);
    }
    return value;
}

std::vector<bool> ScalarCode::Needed(std::span<const ScalarId> roots) const {
    return loop::Needed(kernel_, roots, staged_);
}

std::vector<bool> ScalarCode::NeededBefore(std::span<const ScalarId> roots, ScalarId end) const {
    std::vector<bool> needed = loop::Needed(kernel_, roots, {&end, 1});
    needed[end.value()] = false;
    return needed;
}

void ScalarCode::HoistScalar(ScalarId id) {
    const Id value = Value(id);
    if (IsSumOfSoftmax(id) && HoistedReciprocal(id) == 0) {
        point_.Add(id.value() | kReciprocal, Binary(Op::OpFDiv, F(1), value));
    }
}

void ScalarCode::Hoist(const std::vector<bool>& needed) {
    // Bodies of reductions are their own business: they have variables that are not bound.
    for (size_t i = 0; i < needed.size(); ++i) {
        const ScalarNode& node = kernel_.scalars[i];
        if (!needed[i]) {
            continue;
        }
        if ((scope_.free[i] & ~point_.variables()) == 0) {
            HoistScalar(ScalarId(i));
            continue;
        }
        const auto* load = std::get_if<Load>(&node.value);
        if (load == nullptr) {
            continue;
        }
        // The part of the offset that the loop does not change.
        const Expr offset = nests_.Simplified(nests_.Offset(load->buffer, load->index));
        Expr fixed = offset;
        for (const Symbol& symbol : offset.Symbols()) {
            if (point_.ValueOf(symbol) == 0) {
                fixed = fixed.Coefficient(symbol) ? fixed.Without(symbol) : Expr(0);
            }
        }
        index_.Emit(fixed - fixed.constant_part());
    }
}

// --- Nodes ---------------------------------------------------------------------------------------

Id ScalarCode::Compute(const ScalarNode& node, const Constant& constant) {
    return ConstantOf(node.type, constant.value);
}

Id ScalarCode::Compute(const ScalarNode& node, const Load& load) {
    const Access access = index_.AccessOf(load.buffer, load.index);
    const Id inside = index_.EmitChecks(access);
    const Id offset = index_.Emit(access.offset);
    const auto read = [&] {
        const Id pointer = b_.ElementPointer(code_.ArrayOf(load.buffer), offset);
        return conversions_.FromStorage(b_.Load(pointer), node.type);
    };
    if (b_.ConstantBits(inside) == 1U) {
        return read();
    }
    Id otherwise = 0;
    if (load.otherwise.valid()) {
        otherwise = Value(load.otherwise);
    } else {
        otherwise = b_.Constant(TypeFor(node.type), 0);
    }
    return b_.If(inside, [&] { return Ids{read()}; }, [&] { return Ids{otherwise}; })[0];
}

Id ScalarCode::Compute(const ScalarNode&, const Index& index) {
    const Expr value = UsesScalar(index.value) ? index.value : nests_.Simplified(index.value);
    if (UsesScalar(index.value) || !nests_.FitsI32(value)) {
        return index_.EmitWide(value);
    }
    return Widen(Op::OpSConvert, index_.Emit(value));
}

Id ScalarCode::Compute(const ScalarNode&, const InRange& range) {
    return index_.EmitInRange(range);
}

Id ScalarCode::HoistedReciprocal(ScalarId sum) const {
    return point_.Find(sum.value() | kReciprocal);
}

bool ScalarCode::IsSumOfSoftmax(ScalarId id) const {
    return std::find(code_.softmax.sums.begin(), code_.softmax.sums.end(), id) !=
           code_.softmax.sums.end();
}

Id ScalarCode::Compute(const ScalarNode&, const Map& map) {
    // The sum is of an ordinary magnitude, so this is within the precision of a division.
    if (map.function == ScalarFunction::kDiv) {
        if (const Id reciprocal = HoistedReciprocal(map.arguments[1]); reciprocal != 0) {
            return Binary(Op::OpFMul, Value(map.arguments[0]), reciprocal);
        }
    }
    Ids arguments;
    for (const ScalarId argument : map.arguments) {
        arguments.push_back(Value(argument));
    }
    return functions_.Apply(map.function, kernel_[map.arguments.back()].type, arguments);
}

Id ScalarCode::Compute(const ScalarNode& node, const Cast& cast) {
    const ElementType from = kernel_[cast.argument].type;
    if (node.type == ElementType::kF32) {
        if (const Id value = Dequantised(cast); value != 0) {
            return value;
        }
    }
    const Id value = Value(cast.argument);
    // A value whose range fits, as that of a quantised value does, needs a test for NaN only.
    const std::optional<ValueRange> range = RangeOf(kernel_, cast.argument);
    if (range && IsInteger(node.type) && node.type != ElementType::kBool &&
        from != ElementType::kBool && Fits(*range, node.type)) {
        if (from == ElementType::kF32 && HeldAs(node.type) == Held::kI32) {
            if (const std::optional<Quantised> quantised = FindQuantised(kernel_, cast.argument)) {
                const Id whole = WholeQuotient(cast.argument, *quantised);
                return b_.Add(b_.Op(Op::OpConvertFToS, b_.U32(), {whole}),
                              U(static_cast<uint32_t>(quantised->zero)));
            }
            const Id safe = b_.Select(IsNan(value), F(0), value);
            return b_.Op(IsSigned(node.type) ? Op::OpConvertFToS : Op::OpConvertFToU,
                         TypeFor(node.type), {safe});
        }
        if (IsInteger(from) && HeldAs(from) == Held::kI32 && HeldAs(node.type) == Held::kI32) {
            return value;
        }
    }
    return conversions_.Convert(value, from, node.type, cast.overflow, cast.rounding);
}

// In 0 there is no sign, as in an integer.
Id ScalarCode::Dequantised(const Cast& cast) {
    if (!IsInteger(kernel_[cast.argument].type)) {
        return 0;
    }
    const std::optional<WholeNumber> whole = FindWholeNumber(kernel_, cast.argument);
    const std::optional<Quantised> quantised =
        whole ? FindQuantised(kernel_, whole->number) : std::nullopt;
    if (!quantised) {
        return 0;
    }
    const auto plus = static_cast<float>(quantised->zero + whole->plus);
    // Adding 0 clears the sign of 0, which tells the kernel compiler that the quotient's is not
    // needed. Some drivers leave that sum out; a selection clears the sign there, too.
    const Id sum = Binary(Op::OpFAdd, WholeQuotient(whole->number, *quantised), F(plus));
    const bool may_be_negative_zero = plus == 0 && quantised->low < 0;
    return may_be_negative_zero ? b_.Select(Test(Op::OpFUnordNotEqual, sum, F(0)), sum, F(0)) : sum;
}

// Clamped before it is divided, a quotient has the range for which kernels divide by multiplying.
Id ScalarCode::WholeQuotient(ScalarId id, const Quantised& quantised) {
    const uint32_t key = id.value() | kWhole;
    if (const Id known = point_.Find(key); known != 0) {
        return known;
    }
    Id dividend = Value(quantised.dividend);
    const auto times_divisor = [&](float whole) { return F(whole * quantised.divisor); };
    const auto zero = static_cast<float>(quantised.zero);
    // NaN becomes the integer 0. The selection below makes it the least number, which may be that.
    if (quantised.low != -zero) {
        dividend = b_.Select(IsNan(dividend), times_divisor(-zero), dividend);
    }
    const Id low = times_divisor(quantised.low), high = times_divisor(quantised.high);
    dividend = b_.Select(Test(Op::OpFOrdGreaterThan, dividend, low), dividend, low);
    dividend = b_.Select(Test(Op::OpFOrdLessThan, dividend, high), dividend, high);
    const Id quotient = Binary(Op::OpFDiv, dividend, F(quantised.divisor));
    const Id whole = functions_.Apply(ScalarFunction::kRound, ElementType::kF32, Ids{quotient});
    point_.Add(key, whole);
    return whole;
}

Id ScalarCode::Compute(const ScalarNode& node, const Bitcast& cast) {
    return conversions_.FromCode(
        conversions_.CodeOf(Value(cast.argument), kernel_[cast.argument].type), node.type);
}

Id ScalarCode::Compute(const ScalarNode& node, const Reduce&) {
    return reductions_->ReductionValue(IdOf(kernel_, node));
}

Id ScalarCode::Compute(const ScalarNode& node, const ArgReduce&) {
    return reductions_->ReductionValue(IdOf(kernel_, node));
}

}  // namespace fornax::graph::loop
