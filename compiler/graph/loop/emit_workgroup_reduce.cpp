// Values of all invocations of a workgroup, combined (emit_workgroup_reduce.h).
#include "compiler/graph/loop/emit_workgroup_reduce.h"

namespace fornax::graph::loop {

using spv::Op;

Id WorkgroupReduction::OfSubgroup(Combine combine, ElementType type, Id value, bool with_nan) {
    b_.Capability(spv::Capability::GroupNonUniformArithmetic);
    const Id scope = U(static_cast<uint32_t>(spv::Scope::Subgroup));
    const auto reduce = [&](Op op, Id operand) {
        return b_.Emit(op, b_.TypeOf(operand),
                       {scope, static_cast<uint32_t>(spv::GroupOperation::Reduce), operand});
    };
    if (type == ElementType::kBool) {
        const Id word = b_.Select(value, U(1), U(0));
        const Op op = combine == Combine::kAnd  ? Op::OpGroupNonUniformBitwiseAnd
                      : combine == Combine::kOr ? Op::OpGroupNonUniformBitwiseOr
                                                : Op::OpGroupNonUniformBitwiseXor;
        return Test(Op::OpINotEqual, reduce(op, word), U(0));
    }
    const bool is_float = IsFloat(type), is_signed = IsSigned(type);
    switch (combine) {
        case Combine::kSum:
            return reduce(is_float ? Op::OpGroupNonUniformFAdd : Op::OpGroupNonUniformIAdd, value);
        case Combine::kProduct:
            return reduce(is_float ? Op::OpGroupNonUniformFMul : Op::OpGroupNonUniformIMul, value);
        case Combine::kMin:
        case Combine::kMax: {
            const bool least = combine == Combine::kMin;
            if (!is_float) {
                return reduce(
                    least ? (is_signed ? Op::OpGroupNonUniformSMin : Op::OpGroupNonUniformUMin)
                          : (is_signed ? Op::OpGroupNonUniformSMax : Op::OpGroupNonUniformUMax),
                    value);
            }
            const Id number =
                reduce(least ? Op::OpGroupNonUniformFMin : Op::OpGroupNonUniformFMax, value);
            if (!with_nan) {
                return number;
            }
            b_.Capability(spv::Capability::GroupNonUniformVote);
            const Id nan = b_.Emit(Op::OpGroupNonUniformAny, b_.Bool(), {scope, IsNan(value)});
            const Id nan_value = b_.BitsOf(b_.TypeOf(value)) == 64
                                     ? b_.Constant(b_.TypeOf(value), 0x7FF8000000000000)
                                     : b_.Constant(b_.TypeOf(value), 0x7FC00000);
            return b_.Select(nan, nan_value, number);
        }
        case Combine::kAnd:
            return reduce(Op::OpGroupNonUniformBitwiseAnd, value);
        case Combine::kOr:
            return reduce(Op::OpGroupNonUniformBitwiseOr, value);
        case Combine::kXor:
            return reduce(Op::OpGroupNonUniformBitwiseXor, value);
        case Combine::kReplace:
            break;
    }
    return value;
}

// Any subgroup size is right: what the subgroups have is combined through workgroup memory, unless
// there is but one.
Id WorkgroupReduction::Combined(Combine combine, ElementType type, Id value, bool with_nan) {
    const Id element = type == ElementType::kBool ? b_.U32() : b_.TypeOf(value);
    auto [array, is_new] = shared_.try_emplace(element, 0);
    if (is_new) {
        array->second = b_.WorkgroupArray(element, grid_.local_size());
    }
    const Id shared = array->second;
    const auto to_memory = [&](Id v) {
        return type == ElementType::kBool ? b_.Select(v, U(1), U(0)) : v;
    };
    const auto from_memory = [&](Id v) {
        return type == ElementType::kBool ? Test(Op::OpINotEqual, v, U(0)) : v;
    };
    const Id neutral = ConstantOf(type, NeutralElement(combine, type));
    const auto combine_memory = [&](Id count) {
        const Ids initial = {neutral};
        b_.WorkgroupBarrier();
        const Id all =
            b_.For(U(0), count, U(1), initial, [&](Id index, std::span<const Id> carried) -> Ids {
                const Id other = b_.Load(b_.ElementPointer(shared, index));
                return {functions_.CombineValues(combine, type, carried[0], from_memory(other))};
            })[0];
        b_.WorkgroupBarrier();
        return all;
    };
    if (!target_.subgroup_arithmetic) {
        b_.Store(b_.ElementPointer(shared, grid_.lane()), to_memory(value));
        return combine_memory(U(grid_.local_size()));
    }
    const Id subgroup = OfSubgroup(combine, type, value, with_nan);
    const Id count = b_.BuiltIn(spv::BuiltIn::NumSubgroups);
    return b_.If(
        Test(Op::OpIEqual, count, U(1)), [&] { return Ids{subgroup}; },
        [&] {
            const Id first = b_.Emit(Op::OpGroupNonUniformElect, b_.Bool(),
                                     {U(static_cast<uint32_t>(spv::Scope::Subgroup))});
            const Id which = b_.BuiltIn(spv::BuiltIn::SubgroupId);
            b_.If(first, [&] { b_.Store(b_.ElementPointer(shared, which), to_memory(subgroup)); });
            return Ids{combine_memory(count)};
        })[0];
}

}  // namespace fornax::graph::loop
