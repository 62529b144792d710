// Reductions over sliding windows, in tiles (emit_window.h).
#include "compiler/graph/loop/emit_window.h"

#include <algorithm>
#include <cmath>

#include "compiler/graph/loop/emit_columns.h"
#include "compiler/graph/loop/window.h"

namespace fornax::graph::loop {

using spv::Op;

namespace {

constexpr int64_t kLanes = 16;            // invocations along a row that is staged
constexpr int64_t kMaxInvocations = 512;  // of a workgroup
constexpr int64_t kMaxLanes = 128;        // of them along the innermost axis
constexpr int64_t kMaxRows = 8;           // points of an invocation
constexpr int64_t kMaxOperations = 160;   // of all points of an invocation, unrolled
constexpr int64_t kMaxStagedBytes = 16384;
constexpr int64_t kMaxUnrolledParts = 8;  // of a row that is staged
constexpr int64_t kUnknownExtent = 960;   // stands for an extent that is known at run time only

int64_t RoundUp(int64_t value, int64_t to) {
    return (value + to - 1) / to * to;
}

class WindowMapping final : MappingPart, ScalarStorage {
  public:
    WindowMapping(KernelParts& parts, const Window& window)
        : MappingPart(parts),
          window_(window),
          x_(window.axes.back()),
          y_(window.axes.size() > 1 ? window.axes.front() : WindowAxis{{Symbol("$ y"), 1}}) {
        for (const ScalarId id : window.staged) {
            bytes_ = std::max<int64_t>(bytes_, BytesOf(id));
        }
    }

    // False if no tile fits.
    bool ChooseTile() {
        double best = INFINITY;
        for (int64_t lanes = 8; lanes <= kMaxLanes; lanes += lanes == 8 ? 8 : kLanes) {
            for (int64_t rows = 1; rows <= kMaxRows; ++rows) {
                for (int64_t groups = 1; groups * lanes <= kMaxInvocations; ++groups) {
                    const Tile tile = TileOf(lanes, groups, rows);
                    const double cost = CostOf(tile);
                    if (cost < best) {
                        best = cost;
                        tile_ = tile;
                    }
                }
            }
        }
        return best < INFINITY;
    }

    void Run() {
        grid_.SetLocalSize(static_cast<uint32_t>(tile_.lanes), static_cast<uint32_t>(tile_.groups));
        const Expr x_tiles = CeilDiv(x_.point.extent, tile_.lanes).Simplify(domain_);
        const Expr y_tiles = CeilDiv(y_.point.extent, tile_.groups * tile_.rows).Simplify(domain_);
        const Id workgroup = grid_.WorkgroupIndex(PointsOf(window_.outer) * x_tiles * y_tiles);
        grid_.LoadLane();
        local_ = b_.BuiltIn(spv::BuiltIn::LocalInvocationId);
        for (const ScalarId id : window_.staged) {
            const int64_t behind = x_.stride * (tile_.lanes - 1) + x_.width - tile_.staged_columns;
            const int64_t elements =
                tile_.staged_rows * tile_.staged_columns + std::max<int64_t>(behind, 0);
            arrays_.push_back(
                b_.WorkgroupArray(TypeFor(kernel_[id].type), static_cast<uint32_t>(elements)));
        }
        b_.If(grid_.inside(), [&] {
            const ValueScope scope(point_);
            const Id x_count = index_.Emit(x_tiles), y_count = index_.Emit(y_tiles);
            const Id rest = b_.UDiv(workgroup, x_count);
            x_first_ = b_.Mul(b_.UMod(workgroup, x_count), U(tile_.lanes));
            y_first_ = b_.Mul(b_.UMod(rest, y_count), U(tile_.groups * tile_.rows));
            index_.BindFromIndex(window_.outer, b_.UDiv(rest, y_count));
            point_.AddVariables(scope_.VariablesOf(window_.outer));
            EmitStaging();
            b_.WorkgroupBarrier();
            EmitPoints();
        });
    }

  private:
    struct Tile {
        int64_t lanes = 0;   // points along x: one for each invocation
        int64_t groups = 0;  // invocations along y
        int64_t rows = 0;    // points along y of each
        int64_t staged_rows = 0, staged_columns = 0;
    };

    Id U(int64_t value) { return b_.Uint(static_cast<uint32_t>(value)); }

    int64_t BytesOf(ScalarId id) const {
        const Held held = HeldAs(kernel_[id].type);
        return held == Held::kI64 || held == Held::kF64 ? 8 : 4;
    }

    Tile TileOf(int64_t lanes, int64_t groups, int64_t rows) const {
        Tile tile = {lanes, groups, rows, 0, 0};
        tile.staged_rows = y_.stride * (groups * rows - 1) + y_.width;
        // Where the points end within the tile nothing behind them is staged: the invocations there
        // read what comes next, and store nothing.
        const int64_t points = std::min(lanes, x_.point.extent.constant().value_or(lanes));
        tile.staged_columns =
            RoundUp(x_.stride * (std::max<int64_t>(points, 1) - 1) + x_.width, kLanes);
        return tile;
    }

    // About the instructions of whole vectors for all tiles of the axes; infinite if the tile is
    // not possible.
    double CostOf(const Tile& tile) const {
        const bool unrolled = window_.taps() <= kMaxOperations;
        const int64_t invocations = tile.lanes * tile.groups;
        const int64_t elements = tile.staged_rows * tile.staged_columns;
        const auto staged = static_cast<int64_t>(window_.staged.size());
        if (invocations % kLanes != 0 || elements * bytes_ * staged > kMaxStagedBytes ||
            (tile.rows > 1 && (!unrolled || window_.taps() * tile.rows > kMaxOperations)) ||
            (window_.axes.size() == 1 && tile.groups * tile.rows > 1 && tile.lanes != 8)) {
            return INFINITY;
        }
        const int64_t whole_vectors = invocations / kLanes;
        const int64_t staged_vectors = staged * elements / kLanes;
        const auto vectors = static_cast<double>(whole_vectors);
        const double staging = 8.0 * static_cast<double>(staged_vectors);
        const double load = x_.stride > 1 ? 3 : tile.lanes == 8 ? 2 : 1.3;
        const auto reads = static_cast<double>((y_.stride * (tile.rows - 1) + y_.width) * x_.width);
        const auto rows = static_cast<double>(tile.rows);
        const double point = static_cast<double>(window_.taps() + 6) * rows + load * reads + 10;
        constexpr double kWorkgroup = 60;
        const auto extent_of = [](const Loop& loop) {
            return std::max<int64_t>(loop.extent.constant().value_or(kUnknownExtent), 1);
        };
        const int64_t tiles =
            (extent_of(x_.point) + tile.lanes - 1) / tile.lanes *
            ((extent_of(y_.point) + tile.groups * tile.rows - 1) / (tile.groups * tile.rows));
        return static_cast<double>(tiles) * (staging + vectors * point + kWorkgroup);
    }

    // Along an axis a staged element is the first point's, at an offset that is the element's
    // number in the tile.
    void BindElement(const WindowAxis& axis, Id first, Id number, int64_t count) {
        if (axis.offset) {
            index_.Bind(axis.offset->variable, count, number);
        } else {
            index_.Bind(axis.point.variable, axis.point.extent + count, b_.Add(first, number));
        }
    }

    void EmitStaging() {
        const DomainScope domain(domain_);
        const BoundVariables bound(point_);
        const ValueScope scope(point_);
        for (const auto& [axis, first] : {std::pair(&y_, y_first_), {&x_, x_first_}}) {
            index_.Bind(axis->point.variable, axis->point.extent, first);
            if (axis->offset) {
                point_.AddVariables(scope_.VariablesOf(axis->point));
            }
        }
        scalars_.Hoist(scalars_.Needed(window_.staged));
        const int64_t along = tile_.lanes * tile_.groups / kLanes;
        const Id lane_x = b_.UMod(grid_.lane(), U(kLanes)),
                 lane_y = b_.UDiv(grid_.lane(), U(kLanes));
        const int64_t parts = tile_.staged_columns / kLanes;
        const auto store_part = [&](Id row, Id part) {
            const Id column = b_.Add(part, lane_x);
            const ValueScope scope(point_);
            BindElement(x_, x_first_, column, tile_.staged_columns);
            const Id place = b_.Add(b_.Mul(row, U(tile_.staged_columns)), column);
            for (size_t i = 0; i < window_.staged.size(); ++i) {
                const Id value = scalars_.Value(window_.staged[i]);
                b_.Store(b_.ElementPointer(arrays_[i], place), value);
            }
        };
        const auto store_row = [&](Id row) {
            const ValueScope scope(point_);
            BindElement(y_, y_first_, row, tile_.staged_rows);
            if (parts <= kMaxUnrolledParts) {
                for (int64_t part = 0; part < parts; ++part) {
                    store_part(row, U(part * kLanes));
                }
            } else {
                b_.For(U(0), U(tile_.staged_columns), U(kLanes), {},
                       [&](Id part, std::span<const Id>) -> Ids {
                           store_part(row, part);
                           return {};
                       });
            }
        };
        b_.For(U(0), U(tile_.staged_rows), U(along), {}, [&](Id base, std::span<const Id>) -> Ids {
            const Id row = b_.Add(base, lane_y);
            const bool whole = tile_.staged_rows % along == 0;
            b_.If(whole ? b_.True() : b_.ULess(row, U(tile_.staged_rows)), [&] { store_row(row); });
            return {};
        });
        for (const WindowAxis* axis : {&y_, &x_}) {
            index_.Unbind(axis->point.variable);
            if (axis->offset) {
                index_.Unbind(axis->offset->variable);
            }
        }
    }

    void EmitPoints() {
        const Id lane_x = b_.Component(local_, 0), lane_y = b_.Component(local_, 1);
        const Id y = b_.Add(y_first_, b_.Mul(lane_y, U(tile_.rows)));
        const Id x = b_.Add(x_first_, lane_x);
        first_ = b_.Add(b_.Mul(lane_y, U(tile_.rows * y_.stride * tile_.staged_columns)),
                        b_.Mul(lane_x, U(x_.stride)));
        const ValueScope scope(point_);
        index_.Bind(x_.point.variable, x_.point.extent, x);
        point_.AddVariables(scope_.VariablesOf(x_.point) | scope_.VariablesOf(y_.point));
        const StagedScope staged(scalars_, window_.staged);
        const auto in_row = [&](int64_t row, const std::function<void()>& code) {
            row_ = row;
            const ValueScope scope(point_);
            index_.Bind(y_.point.variable, y_.point.extent, b_.Add(y, U(row)));
            code();
            index_.Unbind(y_.point.variable);
        };
        std::vector<Ids> values(static_cast<size_t>(tile_.rows));
        for (int64_t row = 0; row < tile_.rows; ++row) {
            const StorageScope shared(scalars_, *this);
            in_row(row, [&] {
                for (const ScalarId reduction : window_.reductions) {
                    values[static_cast<size_t>(row)].push_back(scalars_.Value(reduction));
                }
            });
        }
        const std::vector<const Store*> stores = StoresOf(kernel_);
        const Id x_inside = Inside(x, x_.point.extent, tile_.lanes);
        for (int64_t row = 0; row < tile_.rows; ++row) {
            const Id y_inside =
                Inside(b_.Add(y, U(row)), y_.point.extent, tile_.groups * tile_.rows);
            b_.If(b_.And(y_inside, x_inside), [&] {
                in_row(row, [&] {
                    for (size_t i = 0; i < window_.reductions.size(); ++i) {
                        point_.Add(window_.reductions[i], values[static_cast<size_t>(row)][i]);
                    }
                    stores_.Emit(stores);
                });
            });
        }
    }

    Id Inside(Id index, const Expr& extent, int64_t tile) {
        const std::optional<int64_t> constant = extent.constant();
        return constant && *constant % tile == 0 ? b_.True()
                                                 : b_.ULess(index, index_.EmitSimplified(extent));
    }

    // --- Values that points share

    Id Find(ScalarId id) override {
        const auto staged = std::find(window_.staged.begin(), window_.staged.end(), id);
        if (staged != window_.staged.end()) {
            return Element(static_cast<size_t>(staged - window_.staged.begin()));
        }
        const std::optional<std::vector<int64_t>> place = UnrolledPlace(id);
        const auto known = place ? unrolled_.find({id.value(), *place}) : unrolled_.end();
        return known == unrolled_.end() ? 0 : known->second;
    }

    void Keep(ScalarId id, Id value) override {
        if (const std::optional<std::vector<int64_t>> place = UnrolledPlace(id)) {
            unrolled_.emplace(std::pair(id.value(), *place), value);
        }
    }

    // Where the loops of unrolled reductions that the scalar depends on are; nullopt if it depends
    // on the point too, or on loops that are not unrolled.
    std::optional<std::vector<int64_t>> UnrolledPlace(ScalarId id) const {
        std::vector<int64_t> place;
        for (size_t i = 0; i < scope_.variables.size(); ++i) {
            if (((scope_.free[id.value()] >> i) & 1) == 0) {
                continue;
            }
            const Symbol& variable = scope_.variables[i].variable;
            for (const WindowAxis& axis : window_.axes) {
                if (axis.point.variable == variable) {
                    return std::nullopt;
                }
            }
            if (((scope_.parallel >> i) & 1) == 0) {
                const Range range = domain_.ranges.at(variable);
                if (!range.is_one()) {
                    return std::nullopt;
                }
                place.push_back(range.low);
            }
        }
        return place.empty() ? std::nullopt : std::optional(place);
    }

    // The element of a staged scalar that the point and the window's place say.
    Id Element(size_t staged) {
        const Expr y = y_.offset ? Expr(y_.offset->variable) : Expr(0);
        const Expr x = x_.offset ? Expr(x_.offset->variable) : Expr(0);
        const Expr place = nests_.Simplified((y_.stride * row_ + y) * tile_.staged_columns + x);
        if (!place.is_constant()) {
            return Read(staged, place);
        }
        const auto [element, is_new] =
            elements_.try_emplace({staged, place.constant_part()}, Id{0});
        if (is_new) {
            element->second = Read(staged, place);
        }
        return element->second;
    }

    Id Read(size_t staged, const Expr& place) {
        const Id index = b_.Add(first_, index_.Emit(place));
        return b_.Load(b_.ElementPointer(arrays_[staged], index));
    }

    const Window& window_;
    WindowAxis x_, y_;
    int64_t bytes_ = 4;  // of a staged element
    Tile tile_;
    Ids arrays_;  // of the staged scalars
    Id local_ = 0;
    Id x_first_ = 0, y_first_ = 0;  // the tile's first point
    Id first_ = 0;                  // the invocation's first element
    int64_t row_ = 0;               // which of the invocation's points is being computed
    std::map<std::pair<size_t, int64_t>, Id> elements_;  // that have been read
    // Values in unrolled reductions that do not depend on the point, by scalar and place.
    std::map<std::pair<uint32_t, std::vector<int64_t>>, Id> unrolled_;
};

}  // namespace

bool EmitWindow(KernelParts& parts) {
    const std::optional<Window> window = FindWindow(parts.code.kernel, parts.code.scope);
    if (!window) {
        return false;
    }
    if (window->lanes) {
        return EmitColumns(parts, *window);
    }
    WindowMapping mapping(parts, *window);
    if (!mapping.ChooseTile()) {
        return false;
    }
    mapping.Run();
    return true;
}

}  // namespace fornax::graph::loop
