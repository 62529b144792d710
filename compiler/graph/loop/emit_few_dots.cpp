// Sums of products of few rows, of a matrix whose columns lie along k.
//
// Such a product is bound by reading b once. A workgroup computes a column for all rows: its
// invocations take neighbouring ks, and the next workgroup goes on where it ends, so that b is read
// in order. Each element of b is used for all rows while it is in a register. What the invocations
// have is added up at the end.
#include <array>

#include "compiler/graph/loop/emitter.h"
#include "compiler/graph/loop/few_dots.h"

namespace fornax::graph::loop {

using spv::Op;

namespace {

// Sums of an invocation that do not wait for each other.
constexpr size_t kLeastSums = 4;

}  // namespace

void Emitter::EmitFewDots(const Product& product) {
    const auto rows = static_cast<uint32_t>(*PointsOf(product.m).constant());
    local_size_ = target_.subgroup_size;
    group_ = {local_size_, 1, 1};
    const Expr columns = PointsOf(product.n);
    const Id workgroup = WorkgroupIndex(PointsOf(product.batch) * columns);
    lane_ = b_.BuiltIn(spv::BuiltIn::LocalInvocationIndex);
    const AtRow at_row = [&](uint32_t row, const std::function<void()>& code) {
        OpenScope();
        BindFromIndex(product.m, U(row));
        code();
        for (const Loop& loop : product.m) {
            Unbind(loop.variable);
        }
        CloseScope();
    };
    b_.If(in_grid_ == 0 ? b_.True() : in_grid_, [&] {
        OpenScope();
        const Id count = EmitExpr(Simplified(columns));
        BindFromIndex(product.batch, b_.UDiv(workgroup, count));
        BindFromIndex(product.n, b_.UMod(workgroup, count));
        for (const std::vector<Loop>* loops : {&product.batch, &product.n}) {
            for (const Loop& loop : *loops) {
                bound_variables_ |= VariableSet{1} << *scope_.Find(loop.variable);
            }
        }
        const size_t ways =
            WaysOf({&product.k.back(), 1}) == 1 || rows > kLeastSums / 2 ? 1 : kLeastSums / rows;
        const std::array bodies = {product.a, product.b};
        const std::vector<const Store*> stores = AllStores();
        const Ids initial(ways * rows, F(0));
        const Ids sums = Reduction(
            product.k, bodies, initial, true,
            [&](std::span<const Id> carried) {
                const Id b = Value(product.b);
                Ids next;
                for (uint32_t row = 0; row < rows; ++row) {
                    at_row(row, [&] { next.push_back(Fma(Value(product.a), b, carried[row])); });
                }
                return next;
            },
            ways);
        Ids results;
        for (uint32_t row = 0; row < rows; ++row) {
            Id sum = sums[row];
            for (size_t way = 1; way < ways; ++way) {
                sum = b_.Op(Op::OpFAdd, b_.F32(), {sum, sums[way * rows + row]});
            }
            results.push_back(AcrossInvocations(Combine::kSum, ElementType::kF32, sum));
        }
        b_.If(Test(Op::OpIEqual, lane_, U(0)), [&] {
            for (uint32_t row = 0; row < rows; ++row) {
                at_row(row, [&] {
                    scopes_.back().emplace(product.sum.value(), results[row]);
                    EmitStores(stores);
                });
            }
        });
        CloseScope();
    });
}

}  // namespace fornax::graph::loop
