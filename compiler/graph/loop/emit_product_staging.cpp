// Operands that no matrix load can take from where they lie: their elements are computed into
// workgroup memory.
#include <algorithm>

#include "compiler/graph/loop/emit_product.h"

namespace fornax::graph::loop {

namespace {

// How many ks that lie side by side one staging takes at least and at most.
constexpr uint32_t kLeastRun = 16;
constexpr uint32_t kMaxRun = 64;

}  // namespace

int64_t ProductMapping::StrideAlong(ScalarId operand, const Loop& loop, int64_t most) const {
    const std::vector<bool> needed = scalars_.Needed(std::vector<ScalarId>{operand});
    int64_t greatest = 0;
    for (size_t i = 0; i < needed.size(); ++i) {
        const auto* load = std::get_if<Load>(&kernel_.scalars[i].value);
        if (!needed[i] || load == nullptr) {
            continue;
        }
        const Expr offset = nests_.Offset(load->buffer, load->index).Simplify(domain_);
        if (!offset.Uses(loop.variable)) {
            continue;
        }
        const std::optional<Expr> coefficient = offset.Coefficient(loop.variable);
        const int64_t stride = coefficient ? coefficient->constant().value_or(0) : 0;
        if (stride < 1 || stride > most) {
            return 0;
        }
        greatest = std::max(greatest, stride);
    }
    return greatest;
}

bool ProductMapping::HasRowStride(ScalarId operand) const {
    constexpr int64_t kMostStride = 4;
    return StrideAlong(operand, product_.m.back(), kMostStride) != 0;
}

uint32_t ProductMapping::RunOf(ScalarId operand) const {
    const Loop& innermost = product_.k.back();
    const std::optional<int64_t> extent = innermost.extent.constant();
    if (!extent || !k_.constant() || StrideAlong(operand, innermost, 1) == 0) {
        return 0;
    }
    for (uint32_t run = kMaxRun; run >= kLeastRun; run /= 2) {
        if (*extent % run == 0) {
            return run;
        }
    }
    return 0;
}

void ProductMapping::Stage(const Operand& operand, bool is_a, Id k, uint32_t steps) {
    if (is_a && operand.run != 0) {
        StageRuns(k, steps);
    } else {
        StageElements(operand, is_a, k, steps);
    }
}

// Neighbouring invocations take neighbours in the array's inner dimension.
void ProductMapping::StageElements(const Operand& operand, bool is_a, Id k, uint32_t steps) {
    const bool unit_depth = operand.unit_depth;
    const uint32_t depth = steps * kSide, rows = is_a ? tile_m_ + extra_rows_ : tile_n_;
    const uint32_t inner = unit_depth ? depth : rows, outer = unit_depth ? rows : depth;
    // `across` of the invocations lie along the inner dimension.
    const uint32_t across = std::min(inner, invocations());
    const uint32_t along = invocations() / across;
    const Id inner_lane = along == 1 ? grid_.lane() : b_.UMod(grid_.lane(), U(across));
    const Id outer_lane = along == 1 ? U(0) : b_.UDiv(grid_.lane(), U(across));
    const Id row_first = is_a ? m_first_ : n_first_;
    const Expr& row_count = is_a ? m_ : n_;
    const std::vector<Loop>& row_loops = is_a ? product_.m : product_.n;
    for (uint32_t part = 0; part < inner; part += across) {
        const Id at_inner = b_.Add(inner_lane, U(part));
        const ValueScope scope(point_);
        const auto bind_row = [&](Id row) {
            const Id index = b_.Add(row_first, row);
            if (operand.in_place) {
                index_.BindFromIndex(row_loops, index);
            } else {
                BindRow(row_loops, row_first, row);
            }
            return b_.ULess(index, index_.EmitSimplified(row_count));
        };
        const auto bind_depth = [&](Id offset) {
            const Id index = b_.Add(k, offset);
            index_.BindFromIndex(product_.k, index);
            return b_.ULess(index, index_.EmitSimplified(k_));
        };
        const Id inner_inside = unit_depth ? bind_depth(at_inner) : bind_row(at_inner);
        b_.For(U(0), U(outer), U(along), {}, [&](Id base, std::span<const Id>) -> Ids {
            const Id at_outer = b_.Add(base, outer_lane);
            const ValueScope scope(point_);
            const Id outer_inside = unit_depth ? bind_row(at_outer) : bind_depth(at_outer);
            const Ids value = b_.If(
                b_.And(inner_inside, outer_inside),
                [&] {
                    const ValueScope scope(point_);
                    Ids computed = {scalars_.Value(is_a ? product_.a : product_.b)};
                    return computed;
                },
                [&] { return Ids{F(0)}; });
            const Id place = b_.Add(b_.Mul(at_outer, U(operand.shared_stride)), at_inner);
            Id in_array = b_.ULess(at_outer, U(outer));
            if (inner % across != 0 || invocations() % across != 0) {
                in_array = b_.And(in_array, b_.ULess(at_inner, U(inner)));
            }
            b_.If(in_array, [&] { b_.Store(b_.ElementPointer(operand.shared, place), value[0]); });
            return {};
        });
    }
}

void ProductMapping::BindRow(std::span<const Loop> loops, Id first, Id row) {
    const std::optional<int64_t> extent =
        loops.empty() ? std::nullopt : loops.back().extent.constant();
    if (!extent || *extent % kSide != 0) {
        index_.BindFromIndex(loops, b_.Add(first, row));
        return;
    }
    // Tiles of an operand that is not in place begin at a multiple of 16, so only the innermost
    // variable differs in 16 rows.
    const Id place = b_.UMod(row, U(kSide));
    Ids variables = index_.VariablesAt(loops, b_.Add(first, b_.Sub(row, place)));
    variables.back() = b_.Add(variables.back(), place);
    for (size_t i = 0; i < loops.size(); ++i) {
        index_.Bind(loops[i].variable, loops[i].extent, variables[i]);
    }
}

// Stages operand a in runs of k. All loops of k but the innermost one have one value in it, so that
// what depends on these, such as whether a window's place is inside of an image, is the same for
// all invocations of a row.
void ProductMapping::StageRuns(Id k, uint32_t steps) {
    const uint32_t depth = steps * kSide;
    uint32_t run = a_.run;
    while (depth % run != 0) {
        run /= 2;
    }
    uint32_t across = run;
    while (invocations() % across != 0) {
        across /= 2;
    }
    const uint32_t along = invocations() / across;
    const Id lane = along == 1 ? grid_.lane() : b_.UMod(grid_.lane(), U(across));
    const Id row_lane = along == 1 ? U(0) : b_.UDiv(grid_.lane(), U(across));
    const Loop& innermost = product_.k.back();
    const bool counts = CanCount(product_.m, along);
    const std::optional<int64_t> m = m_.constant();
    const bool whole_rows = m && *m % tile_m_ == 0;
    for (uint32_t begin = 0; begin < depth; begin += run) {
        const ValueScope scope(point_);
        const Ids first = index_.VariablesAt(product_.k, b_.Add(k, U(begin)));
        for (size_t i = 0; i + 1 < product_.k.size(); ++i) {
            index_.Bind(product_.k[i].variable, product_.k[i].extent, first[i]);
        }
        const Id first_row = b_.Add(m_first_, row_lane);
        const Ids start = counts ? index_.VariablesAt(product_.m, first_row) : Ids();
        b_.For(U(0), rows_, U(along), start, [&](Id base, std::span<const Id> variables) -> Ids {
            const Id row = b_.Add(base, row_lane);
            const Id index = b_.Add(m_first_, row);
            const ValueScope scope(point_);
            if (counts) {
                for (size_t i = 0; i < product_.m.size(); ++i) {
                    index_.Bind(product_.m[i].variable, product_.m[i].extent, variables[i]);
                }
            } else {
                index_.BindFromIndex(product_.m, index);
            }
            const Id inside = whole_rows ? b_.True() : b_.ULess(index, index_.EmitSimplified(m_));
            for (uint32_t part = 0; part < run; part += across) {
                const Id at = b_.Add(lane, U(part));
                const ValueScope scope(point_);
                index_.Bind(innermost.variable, innermost.extent, b_.Add(first.back(), at));
                const Ids value = b_.If(
                    inside,
                    [&] {
                        const ValueScope scope(point_);
                        Ids computed = {scalars_.Value(product_.a)};
                        return computed;
                    },
                    [&] { return Ids{F(0)}; });
                const Id place = b_.Add(b_.Mul(row, U(a_.shared_stride)), b_.Add(at, U(begin)));
                const Id pointer = b_.ElementPointer(a_.shared, place);
                if (is_last_ == 0 && tile_m_ % along == 0) {
                    b_.Store(pointer, value[0]);
                } else {
                    b_.If(b_.ULess(row, rows_), [&] { b_.Store(pointer, value[0]); });
                }
            }
            return counts ? NextVariables(product_.m, variables, along) : Ids();
        });
    }
}

bool ProductMapping::CanCount(std::span<const Loop> loops, uint32_t stride) const {
    return !loops.empty() && loops.back().extent.Bounds(domain_.ranges).low >= stride;
}

Ids ProductMapping::NextVariables(std::span<const Loop> loops,
                                  std::span<const Id> variables,
                                  uint32_t stride) {
    Ids next(variables.begin(), variables.end());
    Id more = U(stride);
    for (size_t i = loops.size(); i-- > 0;) {
        next[i] = b_.Add(next[i], more);
        if (i == 0) {
            break;
        }
        const Id extent = index_.Emit(loops[i].extent);
        const Id below = b_.ULess(next[i], extent);
        more = b_.Select(below, U(0), U(1));
        next[i] = b_.Select(below, next[i], b_.Sub(next[i], extent));
    }
    return next;
}

}  // namespace fornax::graph::loop
