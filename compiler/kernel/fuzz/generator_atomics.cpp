// Statements of random modules that several invocations take part in: atomics, and values that they
// exchange through workgroup memory.
#include <algorithm>
#include <iterator>

#include "compiler/kernel/fuzz/generator.h"

namespace fornax::kernel::fuzz {

namespace {

constexpr uint32_t kOwnWords = kOwnBytes / 4;
constexpr ValueType kUint{Kind::kU32, 1, 1};

}  // namespace

void Generator::OwnAtomic() {
    if (!own_index_) {
        return;
    }
    static constexpr Op kOps[] = {Op::OpAtomicIAdd,    Op::OpAtomicISub, Op::OpAtomicSMin,
                                  Op::OpAtomicUMin,    Op::OpAtomicSMax, Op::OpAtomicUMax,
                                  Op::OpAtomicAnd,     Op::OpAtomicOr,   Op::OpAtomicXor,
                                  Op::OpAtomicExchange};
    Id scope = b_.Uint(static_cast<uint32_t>(spv::Scope::Device));
    Id relaxed = b_.Uint(0);
    depth_ = 1;
    Id index = Chance(60) ? b_.Uint(Below(kOwnWords)) : Masked(kUint, kOwnWords - 1);
    Id value = Any(kUint);
    Id comparand = Chance(50) ? b_.Uint(0) : Any(kUint);
    depth_ = 0;
    Id word =
        Emit(Op::OpIAdd, kUint, {Emit(Op::OpIMul, kUint, {own_index_, b_.Uint(kOwnWords)}), index});
    Id pointer = b_.Emit(Op::OpAccessChain, b_.Pointer(own_words_.storage, b_.Type(kUint)),
                         {own_words_.id, b_.Uint(0), word});
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
void Generator::CounterAtomic() {
    static constexpr Op kOps[kCounters] = {Op::OpAtomicIAdd, Op::OpAtomicOr,   Op::OpAtomicAnd,
                                           Op::OpAtomicXor,  Op::OpAtomicUMin, Op::OpAtomicUMax,
                                           Op::OpAtomicSMin, Op::OpAtomicSMax};
    const uint32_t counter = Below(kCounters);
    Id value = Value(kUint, 1);
    Id pointer =
        b_.Emit(Op::OpAccessChain, b_.Pointer(own_words_.storage, b_.Type(kUint)),
                {own_words_.id, b_.Uint(0), b_.Uint(kOutputBytes / 4 - kCounters + counter)});
    Emit(kOps[counter], kUint,
         {pointer, b_.Uint(static_cast<uint32_t>(spv::Scope::Device)), b_.Uint(0), value});
}

void Generator::ControlBarrier() {
    Id workgroup = b_.Uint(static_cast<uint32_t>(spv::Scope::Workgroup));
    const auto semantics = static_cast<uint32_t>(spv::MemorySemanticsMask::AcquireRelease |
                                                 spv::MemorySemanticsMask::WorkgroupMemory);
    b_.EmitVoid(Op::OpControlBarrier, {workgroup, workgroup, b_.Uint(semantics)});
}

// Every invocation writes its own element, then reads anybody's.
void Generator::Exchange() {
    if (shared_.empty()) {
        return;
    }
    const Variable& variable = shared_[Below(static_cast<uint32_t>(shared_.size()))];
    const MemoryType& element = variable.type.parts[0];
    Id local = b_.Emit(Op::OpLoad, b_.Type(kUint), {local_index_});
    Id pointer_type = b_.Pointer(spv::StorageClass::Workgroup, element.id);
    depth_ = 1;
    Id value = ValueFor(element, false);
    depth_ = 0;
    Id own = b_.Emit(Op::OpAccessChain, pointer_type, {variable.id, local});
    b_.EmitVoid(Op::OpStore, {own, value});
    ControlBarrier();
    Id other =
        Chance(60)
            ? Emit(Op::OpIAdd, kUint,
                   {Emit(Op::OpIMul, kUint, {local, b_.Uint(1 + Below(7))}), b_.Uint(Below(9))})
            : Value(kUint, 1);
    other = Emit(Op::OpUMod, kUint, {other, b_.Uint(variable.type.count)});
    Id theirs = b_.Emit(Op::OpAccessChain, pointer_type, {variable.id, other});
    auto [type, leaf] = ExtractLeaf(element, b_.Emit(Op::OpLoad, element.id, {theirs}));
    Add(type, leaf);
    ControlBarrier();
}

void Generator::OnlyIf(Id condition, const std::function<void()>& body) {
    Id inside = b_.NewId();
    Id behind = b_.NewId();
    b_.EmitVoid(Op::OpSelectionMerge, {behind, 0});
    b_.EmitVoid(Op::OpBranchConditional, {condition, inside, behind});
    StartBlock(inside);
    body();
    b_.EmitVoid(Op::OpBranch, {behind});
    StartBlock(behind);
}

// A word of workgroup memory that some invocations change in any order.
void Generator::Tally() {
    static constexpr Op kOps[] = {Op::OpAtomicIAdd, Op::OpAtomicOr,   Op::OpAtomicAnd,
                                  Op::OpAtomicXor,  Op::OpAtomicUMin, Op::OpAtomicUMax,
                                  Op::OpAtomicSMin, Op::OpAtomicSMax};
    Id workgroup = b_.Uint(static_cast<uint32_t>(spv::Scope::Workgroup));
    Id local = b_.Emit(Op::OpLoad, b_.Type(kUint), {local_index_});
    Id first = Emit(Op::OpIEqual, {Kind::kBool, 1, 1}, {local, b_.Uint(0)});
    OnlyIf(first, [&] { b_.EmitVoid(Op::OpStore, {tally_, b_.Uint(Chance(50) ? 0 : 77)}); });
    ControlBarrier();
    Id value = Value(kUint, 2);
    const Op op = kOps[Below(std::size(kOps))];
    OnlyIf(Condition(), [&] { Emit(op, kUint, {tally_, workgroup, b_.Uint(0), value}); });
    ControlBarrier();
    Add(kUint, b_.Emit(Op::OpLoad, b_.Type(kUint), {tally_}));
    ControlBarrier();
}

}  // namespace fornax::kernel::fuzz
