// An attention for devices without matrices of f32 (emit_attention.h).
#include <functional>
#include <limits>

#include "compiler/graph/loop/emit_attention.h"

namespace fornax::graph::loop {

using spv::Op;

namespace {

constexpr uint32_t kSerialSize = 64;

}  // namespace

void AttentionMapping::RunSerially() {
    const Expr chunks = CeilDiv(m_, kSerialSize).Simplify(domain_);
    const Id workgroup = grid_.WorkgroupIndex(PointsOf(attention_.batch) * chunks);
    grid_.LoadLane();
    const Id count = index_.Emit(chunks);
    const Id m = b_.Add(b_.Mul(b_.UMod(workgroup, count), U(kSerialSize)), grid_.lane());
    const Id inside = b_.ULess(m, index_.EmitSimplified(m_));
    b_.If(grid_.InsideAnd(inside), [&] {
        const ValueScope scope(point_);
        index_.BindFromIndex(attention_.batch, b_.UDiv(workgroup, count));
        EmitSerial(m);
    });
    grid_.SetLocalSize(kSerialSize);
}

void AttentionMapping::EmitSerial(Id m) {
    const Id denominator = SumSerially(m);
    ForColumns([&](Id pointer) { EmitStores(b_.Load(pointer), denominator); });
}

// The sums of a query, in its order of keys. The result is their denominator.
Id AttentionMapping::SumSerially(Id m) {
    const BoundVariables bound(point_);
    index_.BindFromIndex(attention_.m, m);
    point_.AddVariables(row_variables_);
    HoistRow();
    sums_ = b_.FunctionArray(b_.F32(), n_);
    ForColumns([&](Id pointer) { b_.Store(pointer, F(0)); });
    const Ids initial = {F(-std::numeric_limits<float>::infinity()), FirstDenominator()};
    const Ids last =
        b_.For(U(0), index_.EmitSimplified(keys_), U(1), initial,
               [&](Id key, std::span<const Id> carried) -> Ids {
                   const ValueScope scope(point_);
                   index_.Bind(attention_.keys.variable, keys_, key);
                   const BoundVariables with_key(point_, scope_.VariablesOf(attention_.keys));
                   const Id score = scalars_.Value(attention_.score);
                   const Id greatest = Greater(carried[0], score);
                   const Id subtracted = Subtracted(greatest);
                   const Id factor = Exp(Binary(Op::OpFSub, carried[0], subtracted));
                   const Id power = Exp(Binary(Op::OpFSub, score, subtracted));
                   ForColumns([&](Id pointer) {
                       const Id before = Binary(Op::OpFMul, b_.Load(pointer), factor);
                       const Id value = Binary(Op::OpFMul, power, scalars_.Value(attention_.value));
                       b_.Store(pointer, Binary(Op::OpFAdd, before, value));
                   });
                   const Id sum = Binary(Op::OpFAdd, Binary(Op::OpFMul, carried[1], factor), power);
                   index_.Unbind(attention_.keys.variable);
                   return {greatest, sum};
               });
    Id denominator = last[1];
    if (attention_.none.valid()) {
        denominator = b_.Select(scalars_.Value(attention_.none), F(-1), denominator);
    }
    return denominator;
}

void AttentionMapping::ForColumns(const std::function<void(Id)>& body) {
    b_.For(U(0), U(n_), U(1), {}, [&](Id n, std::span<const Id>) -> Ids {
        const ValueScope scope(point_);
        index_.BindFromIndex(attention_.n, n);
        body(b_.ElementPointer(sums_, n));
        index_.Unbind(attention_.n);
        return {};
    });
}

}  // namespace fornax::graph::loop
