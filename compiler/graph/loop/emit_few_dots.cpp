// Sums of products of few rows, of a matrix whose columns lie along k.
//
// Such a product is bound by reading b once. A workgroup computes one or two columns for all rows:
// its invocations take neighbouring ks, and the next workgroup goes on where it ends, so that b is
// read in order. Each element of b is used for several rows while it is in a register, and each of
// a for the columns: a few long rows do not fit into the first cache. What the invocations have is
// added up at the end.
#include <algorithm>
#include <array>

#include "compiler/graph/loop/emitter.h"
#include "compiler/graph/loop/few_dots.h"

namespace fornax::graph::loop {

using spv::Op;

namespace {

// Sums of an invocation that do not wait for each other.
constexpr size_t kLeastSums = 4;
// Sums of an invocation that registers hold. For more rows columns are read again, from a cache.
constexpr uint32_t kMostSums = 12;

// Fewer rows are read again from the first cache, and memory gives one column faster than two.
constexpr uint32_t kLeastRowsOfTwoColumns = 5;

// Columns that a workgroup computes side by side.
uint32_t ColumnsAtOnce(uint32_t rows, const Expr& columns) {
    const std::optional<int64_t> constant = columns.constant();
    return rows >= kLeastRowsOfTwoColumns && constant && *constant % 2 == 0 ? 2 : 1;
}

}  // namespace

void Emitter::EmitFewDots(const Product& product) {
    const auto rows = static_cast<uint32_t>(*PointsOf(product.m).constant());
    const Expr all_columns = PointsOf(product.n);
    const uint32_t columns = ColumnsAtOnce(rows, all_columns);
    const uint32_t groups = (rows * columns + kMostSums - 1) / kMostSums;
    const uint32_t rows_of_group = (rows + groups - 1) / groups;
    local_size_ = target_.subgroup_size;
    group_ = {local_size_, 1, 1};
    const Expr tiles = FloorDiv(all_columns, columns).Simplify(domain_);
    const Id workgroup = WorkgroupIndex(PointsOf(product.batch) * tiles);
    lane_ = b_.BuiltIn(spv::BuiltIn::LocalInvocationIndex);
    const auto at = [&](const std::vector<Loop>& loops, Id index,
                        const std::function<void()>& code) {
        OpenScope();
        BindFromIndex(loops, index);
        code();
        for (const Loop& loop : loops) {
            Unbind(loop.variable);
        }
        CloseScope();
    };
    const auto bound = [&](const std::vector<Loop>& loops) {
        for (const Loop& loop : loops) {
            bound_variables_ |= VariableSet{1} << *scope_.Find(loop.variable);
        }
    };
    b_.If(in_grid_ == 0 ? b_.True() : in_grid_, [&] {
        OpenScope();
        const Id count = EmitExpr(Simplified(tiles));
        BindFromIndex(product.batch, b_.UDiv(workgroup, count));
        bound(product.batch);
        const Id tile = b_.UMod(workgroup, count);
        if (columns == 1) {
            BindFromIndex(product.n, tile);
            bound(product.n);
        }
        const AtRow at_column = [&](uint32_t column, const std::function<void()>& code) {
            if (columns == 1) {
                code();
            } else {
                at(product.n, b_.Add(b_.Mul(tile, U(columns)), U(column)), code);
            }
        };
        const AtRow at_row = [&](uint32_t row, const std::function<void()>& code) {
            at(product.m, U(row), code);
        };
        for (uint32_t first = 0; first < rows; first += rows_of_group) {
            const uint32_t end = std::min(first + rows_of_group, rows);
            const Ids results = FewDotsSums(product, {first, end}, columns, at_row, at_column);
            b_.If(Test(Op::OpIEqual, lane_, U(0)), [&] {
                for (size_t i = 0; i < results.size(); ++i) {
                    at_row(first + static_cast<uint32_t>(i) / columns, [&] {
                        at_column(static_cast<uint32_t>(i) % columns, [&] {
                            scopes_.back().emplace(product.sum.value(), results[i]);
                            EmitStores(AllStores());
                        });
                    });
                }
            });
        }
        CloseScope();
    });
}

// The sums of rows [first, end) with each of the columns, a row after the other.
Ids Emitter::FewDotsSums(const Product& product,
                         std::pair<uint32_t, uint32_t> rows,
                         uint32_t columns,
                         const AtRow& at_row,
                         const AtRow& at_column) {
    const size_t each = (rows.second - rows.first) * size_t{columns};
    const size_t ways =
        WaysOf({&product.k.back(), 1}) == 1 || each > kLeastSums / 2 ? 1 : kLeastSums / each;
    const std::array bodies = {product.a, product.b};
    const Ids initial(ways * each, F(0));
    const Ids sums = Reduction(
        product.k, bodies, initial, true,
        [&](std::span<const Id> carried) {
            Ids b, next;
            for (uint32_t column = 0; column < columns; ++column) {
                at_column(column, [&] { b.push_back(Value(product.b)); });
            }
            for (uint32_t row = rows.first; row < rows.second; ++row) {
                at_row(row, [&] {
                    const Id a = Value(product.a);
                    for (const Id element : b) {
                        next.push_back(Fma(a, element, carried[next.size()]));
                    }
                });
            }
            return next;
        },
        ways);
    Ids results;
    for (size_t i = 0; i < each; ++i) {
        Id sum = sums[i];
        for (size_t way = 1; way < ways; ++way) {
            sum = b_.Op(Op::OpFAdd, b_.F32(), {sum, sums[way * each + i]});
        }
        results.push_back(AcrossInvocations(Combine::kSum, ElementType::kF32, sum));
    }
    return results;
}

}  // namespace fornax::graph::loop
