// Sums of products of few rows, of a matrix whose columns lie along k (emit_few_dots.h).
#include "compiler/graph/loop/emit_few_dots.h"

#include <algorithm>
#include <array>

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

class FewDotsMapping : MappingPart {
  public:
    FewDotsMapping(KernelParts& parts, const Product& product);
    void Emit();

  private:
    // Runs code with the variables of one row, or of one of the workgroup's columns.
    void AtRow(uint32_t row, const std::function<void()>& code);
    void AtColumn(uint32_t column, const std::function<void()>& code);
    void At(std::span<const Loop> loops, Id index, const std::function<void()>& code);
    Ids Sums(uint32_t first_row, uint32_t end_row);

    const Product& product_;
    uint32_t rows_ = 1;
    uint32_t columns_ = 1;  // of a workgroup, side by side
    Id tile_ = 0;           // its number among those of columns
};

}  // namespace

FewDotsMapping::FewDotsMapping(KernelParts& parts, const Product& product)
    : MappingPart(parts),
      product_(product),
      rows_(static_cast<uint32_t>(*PointsOf(product.m).constant())),
      columns_(ColumnsAtOnce(rows_, PointsOf(product.n))) {}

void FewDotsMapping::Emit() {
    const uint32_t groups = (rows_ * columns_ + kMostSums - 1) / kMostSums;
    const uint32_t rows_of_group = (rows_ + groups - 1) / groups;
    grid_.SetLocalSize(target_.subgroup_size);
    const Expr tiles = FloorDiv(PointsOf(product_.n), columns_).Simplify(domain_);
    const Id workgroup = grid_.WorkgroupIndex(PointsOf(product_.batch) * tiles);
    grid_.LoadLane();
    b_.If(grid_.inside(), [&] {
        const ValueScope scope(point_);
        const Id count = index_.EmitSimplified(tiles);
        index_.BindFromIndex(product_.batch, b_.UDiv(workgroup, count));
        point_.AddVariables(scope_.VariablesOf(product_.batch));
        tile_ = b_.UMod(workgroup, count);
        if (columns_ == 1) {
            index_.BindFromIndex(product_.n, tile_);
            point_.AddVariables(scope_.VariablesOf(product_.n));
        }
        for (uint32_t first = 0; first < rows_; first += rows_of_group) {
            const Ids results = Sums(first, std::min(first + rows_of_group, rows_));
            b_.If(Test(Op::OpIEqual, grid_.lane(), U(0)), [&] {
                for (size_t i = 0; i < results.size(); ++i) {
                    AtRow(first + static_cast<uint32_t>(i) / columns_, [&] {
                        AtColumn(static_cast<uint32_t>(i) % columns_, [&] {
                            point_.Add(product_.sum, results[i]);
                            stores_.Emit(StoresOf(kernel_));
                        });
                    });
                }
            });
        }
    });
}

void FewDotsMapping::At(std::span<const Loop> loops, Id index, const std::function<void()>& code) {
    const ValueScope scope(point_);
    index_.BindFromIndex(loops, index);
    code();
    index_.Unbind(loops);
}

void FewDotsMapping::AtRow(uint32_t row, const std::function<void()>& code) {
    At(product_.m, U(row), code);
}

void FewDotsMapping::AtColumn(uint32_t column, const std::function<void()>& code) {
    if (columns_ == 1) {
        code();
    } else {
        At(product_.n, b_.Add(b_.Mul(tile_, U(columns_)), U(column)), code);
    }
}

// The sums of rows [first_row, end_row) with each of the columns, a row after the other.
Ids FewDotsMapping::Sums(uint32_t first_row, uint32_t end_row) {
    const size_t each = (end_row - first_row) * size_t{columns_};
    const size_t ways = loops_.WaysOf({&product_.k.back(), 1}) == 1 || each > kLeastSums / 2
                            ? 1
                            : kLeastSums / each;
    const std::array bodies = {product_.a, product_.b};
    const Ids initial(ways * each, F(0));
    const Ids sums = reductions_.Reduction(
        product_.k, bodies, initial, true,
        [&](std::span<const Id> carried) {
            Ids b, next;
            for (uint32_t column = 0; column < columns_; ++column) {
                AtColumn(column, [&] { b.push_back(scalars_.Value(product_.b)); });
            }
            for (uint32_t row = first_row; row < end_row; ++row) {
                AtRow(row, [&] {
                    const Id a = scalars_.Value(product_.a);
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
        results.push_back(workgroup_.Combined(Combine::kSum, ElementType::kF32, sum));
    }
    return results;
}

void EmitFewDots(KernelParts& parts, const Product& product) {
    FewDotsMapping(parts, product).Emit();
}

}  // namespace fornax::graph::loop
