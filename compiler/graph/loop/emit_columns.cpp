// Reductions over sliding windows of tensors whose channels come last (emit_columns.h).
#include "compiler/graph/loop/emit_columns.h"

#include <algorithm>
#include <cmath>

namespace fornax::graph::loop {

namespace {

constexpr int64_t kLeastLanes = 16;
constexpr int64_t kMostPoints = 8;
constexpr int64_t kMostUnrolled = 200;   // scalars of all points at all places of the window
constexpr int64_t kMostScalars = 600;    // of all points in a row of the window
constexpr int64_t kUnknownExtent = 960;  // stands for an extent that is known at run time only
constexpr int64_t kMostOutside = 32;     // points on each side whose windows are partly outside

class ColumnMapping : MappingPart {
  public:
    ColumnMapping(KernelParts& parts, const Window& window)
        : MappingPart(parts),
          window_(window),
          x_(window.axes.back()),
          y_(window.axes.size() > 1 ? &window.axes.front() : nullptr),
          reduce_(std::get<Reduce>(kernel_[window.main].value)) {}

    // False if the code would be too long.
    bool ChoosePoints() {
        const std::vector<bool> needed = loop::Needed(kernel_, {&reduce_.body, 1}, {});
        for (size_t i = 0; i < needed.size(); ++i) {
            place_scalars_ +=
                needed[i] && (scope_.free[i] & scope_.VariablesOf(*x_.offset)) != 0 ? 1 : 0;
        }
        const int64_t extent = x_.point.extent.constant().value_or(kUnknownExtent);
        double best = INFINITY;
        for (int64_t points = 1; points <= kMostPoints; ++points) {
            // About the instructions of a row of all windows.
            const int64_t columns = (extent + points - 1) / points;
            const int64_t loads = x_.stride * (points - 1) + 2 * x_.width;
            const auto cost = static_cast<double>(columns * (2 * loads + points * x_.width + 10));
            if (points * x_.width * place_scalars_ <= kMostScalars && cost < best) {
                best = cost;
                points_ = points;
            }
        }
        return best < INFINITY;
    }

    void Run() {
        std::vector<Loop> outer = window_.outer;
        if (y_ != nullptr) {
            outer.push_back(y_->point);
        }
        grid_.SetLocalSize(LocalSizeFor(window_.lanes->extent));
        const Expr columns = CeilDiv(x_.point.extent, points_).Simplify(domain_);
        const Expr chunks = CeilDiv(window_.lanes->extent, grid_.local_size()).Simplify(domain_);
        const Id workgroup = grid_.WorkgroupIndex(PointsOf(outer) * columns * chunks);
        grid_.LoadLane();
        b_.If(grid_.inside(), [&] {
            const ValueScope scope(point_);
            const Id chunk_count = index_.Emit(chunks), column_count = index_.Emit(columns);
            const Id chunk = b_.UMod(workgroup, chunk_count);
            const Id rest = b_.UDiv(workgroup, chunk_count);
            only_ = columns == Expr(1);
            first_ = only_ ? b_.Uint(0)
                           : b_.Mul(b_.UMod(rest, column_count),
                                    b_.Uint(static_cast<uint32_t>(points_)));
            if (!outer.empty()) {
                index_.BindFromIndex(outer, b_.UDiv(rest, column_count));
            }
            point_.AddVariables(scope_.VariablesOf(outer));
            const Loop& lanes = *window_.lanes;
            const Id lane = b_.Add(b_.Mul(chunk, b_.Uint(grid_.local_size())), grid_.lane());
            b_.If(grid_.IsBelow(lane, lanes.extent, grid_.local_size()), [&] {
                const ValueScope scope(point_);
                index_.Bind(lanes.variable, lanes.extent, lane);
                point_.AddVariables(scope_.VariablesOf(lanes));
                EmitVersions();
            });
        });
    }

  private:
    // --- Where windows are inside

    // Whether no access and no check of the reduction fails for the axis at a point in the range.
    bool IsInside(const WindowAxis& axis, Range range) {
        RangeScope points(domain_, axis.point.variable);
        points.Set(range);
        bool inside = true;
        const auto check = [&](const Expr& index, const Expr& extent) {
            if (index.Uses(axis.point.variable)) {
                inside = inside && nests_.Proven(index.Simplify(domain_), extent);
            }
        };
        const std::vector<bool> needed = loop::Needed(kernel_, {&reduce_.body, 1}, {});
        for (size_t i = 0; i < needed.size(); ++i) {
            const ScalarNode& node = kernel_.scalars[i];
            if (!needed[i]) {
                continue;
            }
            if (const auto* load = std::get_if<Load>(&node.value)) {
                for (size_t d = 0; d < load->index.size(); ++d) {
                    check(load->index[d], kernel_[load->buffer].type.shape[d]);
                }
            } else if (const auto* in_range = std::get_if<InRange>(&node.value)) {
                check(in_range->value, in_range->extent);
            }
        }
        return inside;
    }

    // The points whose windows are inside; nullopt if there are none, or they are not known.
    std::optional<Range> Inside(const WindowAxis& axis) {
        const std::optional<int64_t> extent = axis.point.extent.constant();
        if (!extent) {
            return std::nullopt;
        }
        Range range = {0, *extent - 1};
        const auto is_outside = [&](int64_t point) { return !IsInside(axis, {point, point}); };
        while (range.low < range.high && range.low < kMostOutside && is_outside(range.low)) {
            ++range.low;
        }
        while (range.high > range.low && *extent - range.high <= kMostOutside &&
               is_outside(range.high)) {
            --range.high;
        }
        return range.low <= range.high && IsInside(axis, range) ? std::optional(range)
                                                                : std::nullopt;
    }

    // Code for columns inside of the image, and for others.
    void EmitVersions() {
        const std::optional<Range> x = only_ ? std::nullopt : Inside(x_);
        const std::optional<Range> y = y_ == nullptr ? std::nullopt : Inside(*y_);
        if ((!only_ && !x) || (y_ != nullptr && !y)) {
            EmitColumn({}, {});
            return;
        }
        Id inside = b_.True();
        const auto at_least = [&](Id value, int64_t low) {
            if (low > 0) {
                inside = b_.And(inside, b_.ULess(b_.Uint(static_cast<uint32_t>(low - 1)), value));
            }
        };
        const auto at_most = [&](Id value, int64_t high, const Loop& loop) {
            if (Expr(high + 1) != loop.extent) {
                inside = b_.And(inside, b_.ULess(value, b_.Uint(static_cast<uint32_t>(high + 1))));
            }
        };
        if (!only_) {
            at_least(first_, x->low);
            const Id last = b_.Add(first_, b_.Uint(static_cast<uint32_t>(points_ - 1)));
            if (*x_.point.extent.constant() % points_ != 0) {
                inside =
                    b_.And(inside, b_.ULess(last, b_.Uint(static_cast<uint32_t>(x->high + 1))));
            } else {
                at_most(last, x->high, x_.point);
            }
        }
        if (y) {
            const Id value = point_.ValueOf(y_->point.variable);
            at_least(value, y->low);
            at_most(value, y->high, y_->point);
        }
        b_.If(
            inside,
            [&] {
                EmitColumn(x, y);
                return Ids();
            },
            [&] {
                EmitColumn({}, {});
                return Ids();
            });
    }

    // --- A column

    void EmitColumn(const std::optional<Range>& x, const std::optional<Range>& y) {
        const DomainScope domain(domain_);
        const BoundVariables bound(point_);
        x_range_ = x;
        if (y) {
            domain_.ranges[y_->point.variable] = *y;
        }
        const ValueScope scope(point_);
        Ids sums;
        {
            const StagedScope staged(scalars_, window_.staged);
            sums = Sums();
        }
        EmitResults(sums);
    }

    // The last points of a column may lie behind `extent`.
    void AtPoint(int64_t point, const Expr& extent, const std::function<void()>& code) {
        const ValueScope scope(point_);
        const Symbol& variable = x_.point.variable;
        index_.Bind(variable, extent, b_.Add(first_, b_.Uint(static_cast<uint32_t>(point))));
        if (only_) {
            domain_.ranges[variable] = {point, point};
        } else if (x_range_) {
            domain_.ranges[variable] = *x_range_;
        }
        const BoundVariables bound(point_, scope_.VariablesOf(x_.point));
        code();
        index_.Unbind(variable);
    }

    Ids Sums() {
        const ElementType type = kernel_[window_.main].type;
        const Ids initial(static_cast<size_t>(points_),
                          ConstantOf(type, NeutralElement(reduce_.combine, type)));
        std::vector<Loop> rows;
        int64_t places = x_.width * points_ * place_scalars_;
        for (const Loop& loop : reduce_.loops) {
            if (loop.variable != x_.offset->variable) {
                rows.push_back(loop);
                places *= *loop.extent.constant();
            }
        }
        scalars_.Hoist(scalars_.Needed({&reduce_.body, 1}));
        const BoundVariables bound(point_, scope_.VariablesOf(rows));
        const LoopCode::PointBody row = [&](std::span<const Id> carried) { return Row(carried); };
        Ids sums = places <= kMostUnrolled ? loops_.Unrolled(rows, initial, row)
                                           : loops_.ForNest(rows, initial, row);
        if (!IsFloat(type)) {
            for (Id& sum : sums) {
                sum = Wrap(type, sum);
            }
        }
        return sums;
    }

    // One row of the window at all points.
    Ids Row(std::span<const Id> carried) {
        const ElementType type = kernel_[window_.main].type;
        const std::vector<bool> needed = scalars_.Needed({&reduce_.body, 1});
        elements_.clear();
        Ids sums(carried.begin(), carried.end());
        RangeScope range(domain_, x_.offset->variable);
        const BoundVariables bound(point_);
        scalars_.Hoist(needed);
        point_.AddVariables(scope_.VariablesOf(*x_.offset));
        for (int64_t place = 0; place < x_.width; ++place) {
            range.Set({place, place});
            const ValueScope scope(point_);
            // Elements are not to be hoisted: they have the point's variable.
            scalars_.Hoist(needed);
            for (int64_t point = 0; point < points_; ++point) {
                AtPoint(point, x_.point.extent + (points_ - 1), [&] {
                    for (size_t i = 0; i < window_.staged.size(); ++i) {
                        const Id element = Element(i, x_.stride * point + place);
                        point_.Replace(window_.staged[i], element);
                    }
                    Id& sum = sums[static_cast<size_t>(point)];
                    sum = functions_.CombineValues(reduce_.combine, type, sum,
                                                   scalars_.Value(reduce_.body));
                });
            }
        }
        return sums;
    }

    Id Element(size_t staged, int64_t place) {
        Id& element = elements_[{staged, place}];
        if (element == 0) {
            element = scalars_.Value(window_.staged[staged]);
        }
        return element;
    }

    void EmitResults(const Ids& sums) {
        const std::optional<int64_t> extent = x_.point.extent.constant();
        const bool whole = x_range_ || (extent && *extent % points_ == 0);
        for (int64_t point = 0; point < points_; ++point) {
            const Id x = b_.Add(first_, b_.Uint(static_cast<uint32_t>(point)));
            const Id exists =
                whole ? b_.True() : b_.ULess(x, index_.EmitSimplified(x_.point.extent));
            b_.If(exists, [&] {
                AtPoint(point, x_.point.extent, [&] {
                    point_.Add(window_.main, sums[static_cast<size_t>(point)]);
                    stores_.Emit(StoresOf(kernel_));
                });
            });
        }
    }

    const Window& window_;
    const WindowAxis& x_;  // along which columns are
    const WindowAxis* y_;
    const Reduce& reduce_;
    int64_t place_scalars_ = 0;     // at each place of the window
    int64_t points_ = 1;            // of a column
    bool only_ = false;             // there is one column
    Id first_ = 0;                  // the column's first point
    std::optional<Range> x_range_;  // of the column's points, if their windows are inside
    // The elements of the window's row that are loaded, by staged scalar and place.
    std::map<std::pair<size_t, int64_t>, Id> elements_;
};

}  // namespace

bool EmitColumns(KernelParts& parts, const Window& window) {
    if (window.lanes->extent.constant().value_or(kLeastLanes) < kLeastLanes ||
        !window.axes.back().offset) {
        return false;
    }
    ColumnMapping mapping(parts, window);
    if (!mapping.ChoosePoints()) {
        return false;
    }
    mapping.Run();
    return true;
}

}  // namespace fornax::graph::loop
