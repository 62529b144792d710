// Statements of random modules that several invocations take part in: atomics, and values that they
// exchange through workgroup memory.
#include "compiler/kernel/fuzz/generator_atomics.h"

#include <iterator>

namespace fornax::kernel::fuzz {

namespace {

constexpr uint32_t kOwnWords = kOwnBytes / 4;

}  // namespace

void AtomicStatements::OwnAtomic() {
    if (!state_.own_index) {
        return;
    }
    static constexpr Op kOps[] = {Op::OpAtomicIAdd,    Op::OpAtomicISub, Op::OpAtomicSMin,
                                  Op::OpAtomicUMin,    Op::OpAtomicSMax, Op::OpAtomicUMax,
                                  Op::OpAtomicAnd,     Op::OpAtomicOr,   Op::OpAtomicXor,
                                  Op::OpAtomicExchange};
    Id scope = b_.Uint(static_cast<uint32_t>(spv::Scope::Device));
    Id relaxed = b_.Uint(0);
    state_.depth = 1;
    Id index = Chance(60) ? b_.Uint(Below(kOwnWords)) : values_.Masked(kUint, kOwnWords - 1);
    Id value = values_.Any(kUint);
    Id comparand = Chance(50) ? b_.Uint(0) : values_.Any(kUint);
    state_.depth = 0;
    Id word = Emit(Op::OpIAdd, kUint,
                   {Emit(Op::OpIMul, kUint, {state_.own_index, b_.Uint(kOwnWords)}), index});
    Id pointer = b_.Emit(Op::OpAccessChain, b_.Pointer(state_.own_words.storage, b_.Type(kUint)),
                         {state_.own_words.id, b_.Uint(0), word});
    switch (Below(8)) {
        case 0:
            Add(kUint, Emit(Op::OpAtomicCompareExchange, kUint,
                            {pointer, scope, relaxed, relaxed, value, comparand}));
            break;
        case 1:
            Add(kUint, Emit(Chance(50) ? Op::OpAtomicIIncrement : Op::OpAtomicIDecrement, kUint,
                            {pointer, scope, relaxed}));
            break;
        case 2:
            Add(kUint, Emit(Op::OpAtomicLoad, kUint, {pointer, scope, relaxed}));
            break;
        case 3:
            b_.EmitVoid(Op::OpAtomicStore, {pointer, scope, relaxed, value});
            break;
        default:
            Add(kUint, Emit(kOps[Below(std::size(kOps))], kUint, {pointer, scope, relaxed, value}));
            break;
    }
}

// A counter only ever takes one operation, whose order does not matter.
void AtomicStatements::CounterAtomic() {
    static constexpr Op kOps[kCounters] = {Op::OpAtomicIAdd, Op::OpAtomicOr,   Op::OpAtomicAnd,
                                           Op::OpAtomicXor,  Op::OpAtomicUMin, Op::OpAtomicUMax,
                                           Op::OpAtomicSMin, Op::OpAtomicSMax};
    const uint32_t counter = Below(kCounters);
    Id value = values_.Value(kUint, 1);
    Id pointer =
        b_.Emit(Op::OpAccessChain, b_.Pointer(state_.own_words.storage, b_.Type(kUint)),
                {state_.own_words.id, b_.Uint(0), b_.Uint(kOutputBytes / 4 - kCounters + counter)});
    Emit(kOps[counter], kUint,
         {pointer, b_.Uint(static_cast<uint32_t>(spv::Scope::Device)), b_.Uint(0), value});
}

// Every invocation writes its own element, then reads anybody's.
void AtomicStatements::Exchange() {
    if (state_.shared.empty()) {
        return;
    }
    const Variable& variable = state_.shared[Below(static_cast<uint32_t>(state_.shared.size()))];
    const MemoryType& element = variable.type.parts[0];
    Id local = b_.Emit(Op::OpLoad, b_.Type(kUint), {state_.local_index});
    Id pointer_type = b_.Pointer(spv::StorageClass::Workgroup, element.id);
    state_.depth = 1;
    Id value = access_.ValueFor(element, false);
    state_.depth = 0;
    Id own = b_.Emit(Op::OpAccessChain, pointer_type, {variable.id, local});
    b_.EmitVoid(Op::OpStore, {own, value});
    ControlBarrier();
    Id other =
        Chance(60)
            ? Emit(Op::OpIAdd, kUint,
                   {Emit(Op::OpIMul, kUint, {local, b_.Uint(1 + Below(7))}), b_.Uint(Below(9))})
            : values_.Value(kUint, 1);
    other = Emit(Op::OpUMod, kUint, {other, b_.Uint(variable.type.count)});
    Id theirs = b_.Emit(Op::OpAccessChain, pointer_type, {variable.id, other});
    auto [type, leaf] = access_.ExtractLeaf(element, b_.Emit(Op::OpLoad, element.id, {theirs}));
    Add(type, leaf);
    ControlBarrier();
}

// A word of workgroup memory that some invocations change in any order.
void AtomicStatements::Tally() {
    static constexpr Op kOps[] = {Op::OpAtomicIAdd, Op::OpAtomicOr,   Op::OpAtomicAnd,
                                  Op::OpAtomicXor,  Op::OpAtomicUMin, Op::OpAtomicUMax,
                                  Op::OpAtomicSMin, Op::OpAtomicSMax};
    Id workgroup = b_.Uint(static_cast<uint32_t>(spv::Scope::Workgroup));
    Id local = b_.Emit(Op::OpLoad, b_.Type(kUint), {state_.local_index});
    Id first = Emit(Op::OpIEqual, {Kind::kBool, 1, 1}, {local, b_.Uint(0)});
    OnlyIf(first, [&] { b_.EmitVoid(Op::OpStore, {state_.tally, b_.Uint(Chance(50) ? 0 : 77)}); });
    ControlBarrier();
    Id value = values_.Value(kUint, 2);
    const Op op = kOps[Below(std::size(kOps))];
    OnlyIf(values_.Condition(),
           [&] { Emit(op, kUint, {state_.tally, workgroup, b_.Uint(0), value}); });
    ControlBarrier();
    Add(kUint, b_.Emit(Op::OpLoad, b_.Type(kUint), {state_.tally}));
    ControlBarrier();
}

}  // namespace fornax::kernel::fuzz
