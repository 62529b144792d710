// An attention for devices without matrices of f32 (emit_attention.h).
#include <functional>
#include <limits>

#include "compiler/graph/loop/emit_attention.h"

namespace fornax::graph::loop {

using spv::Op;

namespace {

constexpr uint32_t kSerialSize = 64;

}  // namespace

void AttentionEmitter::RunSerially() {
    const Expr chunks = CeilDiv(m_, kSerialSize).Simplify(e_.domain_);
    const Id workgroup = e_.WorkgroupIndex(PointsOf(attention_.batch) * chunks);
    e_.lane_ = b_.BuiltIn(spv::BuiltIn::LocalInvocationIndex);
    const Id count = e_.EmitExpr(chunks);
    const Id m = b_.Add(b_.Mul(b_.UMod(workgroup, count), e_.U(kSerialSize)), e_.lane_);
    const Id inside = b_.ULess(m, e_.EmitExpr(e_.Simplified(m_)));
    b_.If(e_.in_grid_ == 0 ? inside : b_.And(inside, e_.in_grid_), [&] {
        e_.OpenScope();
        e_.BindFromIndex(attention_.batch, b_.UDiv(workgroup, count));
        EmitSerial(m);
        e_.CloseScope();
    });
    e_.local_size_ = kSerialSize;
    e_.group_ = {kSerialSize, 1, 1};
}

void AttentionEmitter::EmitSerial(Id m) {
    const VariableSet saved = e_.bound_variables_;
    e_.BindFromIndex(attention_.m, m);
    e_.bound_variables_ |= row_variables_;
    HoistRow();
    const Id sums = b_.FunctionArray(b_.F32(), n_);
    const auto for_n = [&](const std::function<void(Id)>& body) {
        b_.For(e_.U(0), e_.U(n_), e_.U(1), {}, [&](Id n, std::span<const Id>) -> Ids {
            e_.OpenScope();
            e_.BindFromIndex(attention_.n, n);
            body(b_.ElementPointer(sums, n));
            Unbind(attention_.n);
            e_.CloseScope();
            return {};
        });
    };
    for_n([&](Id pointer) { b_.Store(pointer, e_.F(0)); });
    const Ids initial = {e_.F(-std::numeric_limits<float>::infinity()), FirstDenominator()};
    const VariableSet key_variable = VariableSet{1} << *e_.scope_.Find(attention_.keys.variable);
    const Ids last = b_.For(
        e_.U(0), e_.EmitExpr(e_.Simplified(keys_)), e_.U(1), initial,
        [&](Id key, std::span<const Id> carried) -> Ids {
            e_.OpenScope();
            e_.Bind(attention_.keys.variable, keys_, key);
            e_.bound_variables_ |= key_variable;
            const Id score = e_.Value(attention_.score);
            const Id greatest = Greater(carried[0], score);
            const Id subtracted = Subtracted(greatest);
            const Id factor = Exp(e_.Binary(Op::OpFSub, carried[0], subtracted));
            const Id power = Exp(e_.Binary(Op::OpFSub, score, subtracted));
            for_n([&](Id pointer) {
                const Id before = e_.Binary(Op::OpFMul, b_.Load(pointer), factor);
                const Id value = e_.Binary(Op::OpFMul, power, e_.Value(attention_.value));
                b_.Store(pointer, e_.Binary(Op::OpFAdd, before, value));
            });
            const Id sum = e_.Binary(Op::OpFAdd, e_.Binary(Op::OpFMul, carried[1], factor), power);
            e_.bound_variables_ &= ~key_variable;
            e_.Unbind(attention_.keys.variable);
            e_.CloseScope();
            return {greatest, sum};
        });
    Id denominator = last[1];
    if (attention_.none.valid()) {
        denominator = b_.Select(e_.Value(attention_.none), e_.F(-1), denominator);
    }
    e_.bound_variables_ = saved;
    for_n([&](Id pointer) { EmitStores(b_.Load(pointer), denominator); });
}

}  // namespace fornax::graph::loop
