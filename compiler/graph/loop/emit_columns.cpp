// Reductions over sliding windows of tensors whose channels come last.
//
// Neighbouring invocations take neighbouring channels. Each computes a column of points along one
// of the window's axes: it loads an element once for all points whose windows cover it, and what
// depends on the window's place alone, such as a weight, once for all points. Where the windows of
// a column are inside of the image nothing is checked.
#include <algorithm>
#include <cmath>

#include "compiler/graph/loop/emitter.h"
#include "compiler/graph/loop/window.h"

namespace fornax::graph::loop {

namespace {

constexpr int64_t kLeastLanes = 16;
constexpr int64_t kMostPoints = 8;
constexpr int64_t kMostUnrolled = 200;   // scalars of all points at all places of the window
constexpr int64_t kMostScalars = 600;    // of all points in a row of the window
constexpr int64_t kUnknownExtent = 960;  // stands for an extent that is known at run time only
constexpr int64_t kMostOutside = 32;     // points on each side whose windows are partly outside

}  // namespace

class ColumnEmitter {
  public:
    ColumnEmitter(Emitter& emitter, const Window& window)
        : e_(emitter),
          b_(emitter.b_),
          window_(window),
          x_(window.axes.back()),
          y_(window.axes.size() > 1 ? &window.axes.front() : nullptr),
          reduce_(std::get<Reduce>(emitter.kernel_[window.main].value)) {}

    // False if the code would be too long.
    bool ChoosePoints() {
        const std::vector<bool> needed = loop::Needed(e_.kernel_, {&reduce_.body, 1}, {});
        for (size_t i = 0; i < needed.size(); ++i) {
            scalars_ += needed[i] && (e_.scope_.free[i] & Bit(*x_.offset)) != 0 ? 1 : 0;
        }
        const int64_t extent = x_.point.extent.constant().value_or(kUnknownExtent);
        double best = INFINITY;
        for (int64_t points = 1; points <= kMostPoints; ++points) {
            // About the instructions of a row of all windows.
            const int64_t columns = (extent + points - 1) / points;
            const int64_t loads = x_.stride * (points - 1) + 2 * x_.width;
            const auto cost = static_cast<double>(columns * (2 * loads + points * x_.width + 10));
            if (points * x_.width * scalars_ <= kMostScalars && cost < best) {
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
        e_.local_size_ = LocalSizeFor(window_.lanes->extent);
        e_.group_ = {e_.local_size_, 1, 1};
        const Expr columns = CeilDiv(x_.point.extent, points_).Simplify(e_.domain_);
        const Expr chunks = CeilDiv(window_.lanes->extent, e_.local_size_).Simplify(e_.domain_);
        const Id workgroup = e_.WorkgroupIndex(PointsOf(outer) * columns * chunks);
        e_.lane_ = b_.BuiltIn(spv::BuiltIn::LocalInvocationIndex);
        b_.If(e_.in_grid_ == 0 ? b_.True() : e_.in_grid_, [&] {
            e_.OpenScope();
            const Id chunk_count = e_.EmitExpr(chunks), column_count = e_.EmitExpr(columns);
            const Id chunk = b_.UMod(workgroup, chunk_count);
            const Id rest = b_.UDiv(workgroup, chunk_count);
            only_ = columns == Expr(1);
            first_ = only_ ? b_.Uint(0)
                           : b_.Mul(b_.UMod(rest, column_count),
                                    b_.Uint(static_cast<uint32_t>(points_)));
            if (!outer.empty()) {
                e_.BindFromIndex(outer, b_.UDiv(rest, column_count));
            }
            for (const Loop& loop : outer) {
                e_.bound_variables_ |= Bit(loop);
            }
            const Loop& lanes = *window_.lanes;
            const Id lane = b_.Add(b_.Mul(chunk, b_.Uint(e_.local_size_)), e_.lane_);
            b_.If(e_.EmitBelow(lane, lanes.extent, e_.local_size_), [&] {
                e_.OpenScope();
                e_.Bind(lanes.variable, lanes.extent, lane);
                e_.bound_variables_ |= Bit(lanes);
                EmitVersions();
                e_.CloseScope();
            });
            e_.CloseScope();
        });
    }

  private:
    VariableSet Bit(const Loop& loop) const {
        return VariableSet{1} << *e_.scope_.Find(loop.variable);
    }

    // --- Where windows are inside

    // Whether no access and no check of the reduction fails for the axis at a point in the range.
    bool IsInside(const WindowAxis& axis, Range range) {
        const Range saved = e_.domain_.ranges.at(axis.point.variable);
        e_.domain_.ranges[axis.point.variable] = range;
        bool inside = true;
        const auto check = [&](const Expr& index, const Expr& extent) {
            if (index.Uses(axis.point.variable)) {
                inside = inside && e_.Proven(index.Simplify(e_.domain_), extent);
            }
        };
        const std::vector<bool> needed = loop::Needed(e_.kernel_, {&reduce_.body, 1}, {});
        for (size_t i = 0; i < needed.size(); ++i) {
            const ScalarNode& node = e_.kernel_.scalars[i];
            if (!needed[i]) {
                continue;
            }
            if (const auto* load = std::get_if<Load>(&node.value)) {
                for (size_t d = 0; d < load->index.size(); ++d) {
                    check(load->index[d], e_.kernel_[load->buffer].type.shape[d]);
                }
            } else if (const auto* in_range = std::get_if<InRange>(&node.value)) {
                check(in_range->value, in_range->extent);
            }
        }
        e_.domain_.ranges[axis.point.variable] = saved;
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
            const Id value = e_.bound_.at(y_->point.variable).value;
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
        const Domain domain = e_.domain_;
        const VariableSet bound = e_.bound_variables_;
        x_range_ = x;
        if (y) {
            e_.domain_.ranges[y_->point.variable] = *y;
        }
        e_.OpenScope();
        e_.staged_ = window_.staged;
        const Ids sums = Sums();
        e_.staged_.clear();
        EmitResults(sums);
        e_.CloseScope();
        e_.bound_variables_ = bound;
        e_.domain_ = domain;
    }

    // The last points of a column may lie behind `extent`.
    void AtPoint(int64_t point, const Expr& extent, const std::function<void()>& code) {
        e_.OpenScope();
        const Symbol& variable = x_.point.variable;
        e_.Bind(variable, extent, b_.Add(first_, b_.Uint(static_cast<uint32_t>(point))));
        if (only_) {
            e_.domain_.ranges[variable] = {point, point};
        } else if (x_range_) {
            e_.domain_.ranges[variable] = *x_range_;
        }
        const VariableSet bound = e_.bound_variables_;
        e_.bound_variables_ |= Bit(x_.point);
        code();
        e_.bound_variables_ = bound;
        e_.Unbind(variable);
        e_.CloseScope();
    }

    Ids Sums() {
        const ElementType type = e_.kernel_[window_.main].type;
        const Ids initial(static_cast<size_t>(points_),
                          e_.ConstantOf(type, NeutralElement(reduce_.combine, type)));
        std::vector<Loop> rows;
        int64_t places = x_.width * points_ * scalars_;
        VariableSet variables = 0;
        for (const Loop& loop : reduce_.loops) {
            if (loop.variable != x_.offset->variable) {
                rows.push_back(loop);
                places *= *loop.extent.constant();
                variables |= Bit(loop);
            }
        }
        e_.Hoist(e_.Needed({&reduce_.body, 1}));
        const VariableSet bound = e_.bound_variables_;
        e_.bound_variables_ |= variables;
        const Emitter::PointBody row = [&](std::span<const Id> carried) { return Row(carried); };
        Ids sums = places <= kMostUnrolled ? e_.Unrolled(rows, initial, row)
                                           : e_.ForNest({rows, variables}, 0, initial, row);
        e_.bound_variables_ = bound;
        if (!IsFloat(type)) {
            for (Id& sum : sums) {
                sum = e_.Wrap(type, sum);
            }
        }
        return sums;
    }

    // One row of the window at all points.
    Ids Row(std::span<const Id> carried) {
        const ElementType type = e_.kernel_[window_.main].type;
        const std::vector<bool> needed = e_.Needed({&reduce_.body, 1});
        elements_.clear();
        Ids sums(carried.begin(), carried.end());
        const Symbol& offset = x_.offset->variable;
        const Range saved = e_.domain_.ranges.at(offset);
        const VariableSet bound = e_.bound_variables_;
        e_.Hoist(needed);
        e_.bound_variables_ |= Bit(*x_.offset);
        for (int64_t place = 0; place < x_.width; ++place) {
            e_.domain_.ranges[offset] = {place, place};
            e_.OpenScope();
            // Elements are not to be hoisted: they have the point's variable.
            e_.Hoist(needed);
            for (int64_t point = 0; point < points_; ++point) {
                AtPoint(point, x_.point.extent + (points_ - 1), [&] {
                    for (size_t i = 0; i < window_.staged.size(); ++i) {
                        const Id element = Element(i, x_.stride * point + place);
                        e_.scopes_.back()[window_.staged[i].value()] = element;
                    }
                    Id& sum = sums[static_cast<size_t>(point)];
                    sum = e_.functions_.CombineValues(reduce_.combine, type, sum,
                                                      e_.Value(reduce_.body));
                });
            }
            e_.CloseScope();
        }
        e_.domain_.ranges[offset] = saved;
        e_.bound_variables_ = bound;
        return sums;
    }

    Id Element(size_t staged, int64_t place) {
        Id& element = elements_[{staged, place}];
        if (element == 0) {
            element = e_.Value(window_.staged[staged]);
        }
        return element;
    }

    void EmitResults(const Ids& sums) {
        const std::optional<int64_t> extent = x_.point.extent.constant();
        const bool whole = x_range_ || (extent && *extent % points_ == 0);
        for (int64_t point = 0; point < points_; ++point) {
            const Id x = b_.Add(first_, b_.Uint(static_cast<uint32_t>(point)));
            const Id exists =
                whole ? b_.True() : b_.ULess(x, e_.EmitExpr(e_.Simplified(x_.point.extent)));
            b_.If(exists, [&] {
                AtPoint(point, x_.point.extent, [&] {
                    e_.scopes_.back().emplace(window_.main.value(),
                                              sums[static_cast<size_t>(point)]);
                    e_.EmitStores(e_.AllStores());
                });
            });
        }
    }

    Emitter& e_;
    spirv::ModuleBuilder& b_;
    const Window& window_;
    const WindowAxis& x_;  // along which columns are
    const WindowAxis* y_;
    const Reduce& reduce_;
    int64_t scalars_ = 0;           // at each place of the window
    int64_t points_ = 1;            // of a column
    bool only_ = false;             // there is one column
    Id first_ = 0;                  // the column's first point
    std::optional<Range> x_range_;  // of the column's points, if their windows are inside
    // The elements of the window's row that are loaded, by staged scalar and place.
    std::map<std::pair<size_t, int64_t>, Id> elements_;
};

bool Emitter::EmitColumns(const Window& window) {
    if (window.lanes->extent.constant().value_or(kLeastLanes) < kLeastLanes ||
        !window.axes.back().offset) {
        return false;
    }
    ColumnEmitter emitter(*this, window);
    if (!emitter.ChoosePoints()) {
        return false;
    }
    emitter.Run();
    return true;
}

}  // namespace fornax::graph::loop
