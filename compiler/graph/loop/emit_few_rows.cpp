// Sums of products of few rows (emit_few_rows.h).
#include "compiler/graph/loop/emit_few_rows.h"

namespace fornax::graph::loop {

namespace {

// Points of the innermost loops.
constexpr int64_t kMostUnrolled = 32;

class FewRowsMapping : MappingPart {
  public:
    FewRowsMapping(KernelParts& parts, const Product& product)
        : MappingPart(parts), product_(product) {}
    void Emit();

  private:
    // Runs code with the variables of one row.
    void AtRow(uint32_t row, const std::function<void()>& code);
    void EmitColumn(Id column);
    Ids Sums(const Ids& initial);
    size_t UnrolledFrom(std::span<const Loop> loops) const;

    const Product& product_;
};

}  // namespace

// The innermost loops are written out: what weights of few bits have in common there, words and
// scales, is loaded once.
size_t FewRowsMapping::UnrolledFrom(std::span<const Loop> loops) const {
    size_t first = loops.size();
    int64_t points = 1;
    while (first > 0) {
        const std::optional<int64_t> extent = loops[first - 1].extent.constant();
        if (!extent || *extent < 1 || points * *extent > kMostUnrolled) {
            break;
        }
        points *= *extent;
        --first;
    }
    return first;
}

// The sums of all rows, in the column that is bound.
Ids FewRowsMapping::Sums(const Ids& initial) {
    const ElementType type = kernel_[product_.sum].type;
    const size_t first_unrolled = UnrolledFrom(product_.k);
    const std::span<const Loop> all(product_.k);
    const std::span<const Loop> outer = all.first(first_unrolled);
    const std::span<const Loop> inner = all.subspan(first_unrolled);
    // A factor of b that is the same at all points that are written out, such as the scale of a
    // block, multiplies their sum.
    const VariableSet inside = scope_.VariablesOf(inner);
    ScalarId term_of_b = product_.b, factor;
    const auto* map = std::get_if<Map>(&kernel_[product_.b].value);
    if (map != nullptr && map->function == ScalarFunction::kMul && type == ElementType::kF32) {
        for (size_t i = 0; i < 2; ++i) {
            if ((scope_.free[map->arguments[i].value()] & inside) == 0 && inside != 0) {
                factor = map->arguments[i];
                term_of_b = map->arguments[1 - i];
            }
        }
    }
    const auto point = [&](std::span<const Id> carried) {
        Ids next;
        const Id b = scalars_.Value(term_of_b);
        for (uint32_t row = 0; row < carried.size(); ++row) {
            AtRow(row, [&] {
                const Ids operands = {scalars_.Value(product_.a), b};
                const Id term = functions_.Apply(ScalarFunction::kMul, type, operands);
                next.push_back(functions_.CombineValues(Combine::kSum, type, carried[row], term));
            });
        }
        return next;
    };
    const std::vector<bool> needed = scalars_.Needed(std::vector{product_.a, product_.b});
    const auto unrolled = [&](std::span<const Id> carried) {
        scalars_.Hoist(needed);
        const Ids zeros(carried.size(), F(0));
        Ids next;
        {
            const BoundVariables bound(point_, inside);
            next = loops_.Unrolled(inner, factor.valid() ? std::span<const Id>(zeros) : carried,
                                   point);
        }
        for (size_t row = 0; factor.valid() && row < next.size(); ++row) {
            next[row] =
                b_.Op(spv::Op::OpFAdd, b_.F32(),
                      {carried[row], Binary(spv::Op::OpFMul, next[row], scalars_.Value(factor))});
        }
        return next;
    };
    if (outer.empty()) {
        return unrolled(initial);
    }
    const MergeScope merges(nests_);
    const VariableSet variables = scope_.VariablesOf(outer);
    const std::vector<bool> varying = scope_.VaryingWith(variables, needed);
    const Nest nest = nests_.Collapse(outer, nests_.UsesIn(varying, {}));
    scalars_.Hoist(needed);
    const BoundVariables bound(point_, variables);
    return loops_.ForNest(nest.loops, initial, unrolled);
}

void FewRowsMapping::AtRow(uint32_t row, const std::function<void()>& code) {
    const ValueScope scope(point_);
    index_.BindFromIndex(product_.m, U(row));
    code();
    index_.Unbind(product_.m);
}

void FewRowsMapping::EmitColumn(Id column) {
    const ElementType type = kernel_[product_.sum].type;
    const auto rows = static_cast<uint32_t>(*PointsOf(product_.m).constant());
    const ValueScope scope(point_);
    index_.BindFromIndex(product_.n, column);
    const Ids sums = Sums(Ids(rows, ConstantOf(type, NeutralElement(Combine::kSum, type))));
    for (uint32_t row = 0; row < rows; ++row) {
        AtRow(row, [&] {
            point_.Add(product_.sum, IsFloat(type) ? sums[row] : Wrap(type, sums[row]));
            stores_.Emit(StoresOf(kernel_));
        });
    }
}

void FewRowsMapping::Emit() {
    grid_.SetLocalSize(target_.subgroup_size);
    const Expr columns = PointsOf(product_.n);
    const Expr chunks = CeilDiv(columns, grid_.local_size()).Simplify(domain_);
    const Id workgroup = grid_.WorkgroupIndex(PointsOf(product_.batch) * chunks);
    grid_.LoadLane();
    b_.If(grid_.inside(), [&] {
        const ValueScope scope(point_);
        const Id count = index_.Emit(chunks);
        index_.BindFromIndex(product_.batch, b_.UDiv(workgroup, count));
        point_.AddVariables(scope_.VariablesOf(product_.batch) | scope_.VariablesOf(product_.n));
        const Id first = b_.Mul(b_.UMod(workgroup, count), U(grid_.local_size()));
        grid_.AtLanePoint(first, columns, [&](Id column) { EmitColumn(column); });
    });
}

void EmitFewRows(KernelParts& parts, const Product& product) {
    FewRowsMapping(parts, product).Emit();
}

}  // namespace fornax::graph::loop
