// Sums of products of f32 in registers (emit_register_product.h).
#include "compiler/graph/loop/emit_register_product.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "compiler/graph/loop/product_tiles.h"

namespace fornax::graph::loop {

namespace {

constexpr uint32_t kPanel = 16;
// Rows of a tile, the best first; the first that divides the innermost loop of rows is taken. With
// few rows a device may take more columns at once.
constexpr std::array<uint32_t, 5> kRows = {6, 5, 4, 7, 8};
// Points of the innermost loops of k that are written out.
constexpr int64_t kMostUnrolled = 49;
// Ks side by side that are a loop.
constexpr int64_t kLeastRun = 8;
// Products of more ks, or elements of b than the second cache holds beside the rest, are long:
// matrices read b less often. Registers of 512 bits hold so many sums that this does not count
// where b is panels, or has no more ks.
constexpr int64_t kMostDepth = 256;
constexpr int64_t kMostElements = 96 << 10;
// Tiles of long products.
constexpr uint32_t kLeastRows = 5, kMostRows = 8;
constexpr uint32_t kMostSums = 288;
constexpr double kPriceOfColumns = 0.3;  // in rows

class RegisterProductMapping : MappingPart {
  public:
    RegisterProductMapping(KernelParts& parts, const Product& product)
        : MappingPart(parts), product_(product), unrolled_from_(product.k.size()) {}

    // Whether the product is one for registers.
    bool Suits() {
        a_ = std::get_if<Load>(&kernel_[product_.a].value);
        if (a_ == nullptr || kernel_[product_.a].type != ElementType::kF32 ||
            kernel_[product_.sum].type != ElementType::kF32 || product_.m.empty() ||
            (a_->otherwise.valid() &&
             !std::holds_alternative<Constant>(kernel_[a_->otherwise].value))) {
            return false;
        }
        if (std::any_of(a_->index.begin(), a_->index.end(), UsesScalar)) {
            return false;
        }
        b_access_ = FindTileAccess(kernel_, domain_, product_.b, product_.n, product_.k);
        const std::optional<int64_t> m = PointsOf(product_.m).constant();
        const std::optional<int64_t> n = PointsOf(product_.n).constant();
        const std::optional<int64_t> k = PointsOf(product_.k).constant();
        if (!b_access_ || b_access_->unit_depth || !m || !n || !k || *m < kPanel) {
            return false;
        }
        // Windows with runs of ks are staged for matrices instead: with vectors of 256 bits the
        // conditions here cost more.
        const bool in_place =
            FindTileAccess(kernel_, domain_, product_.a, product_.m, product_.k).has_value();
        is_long_ = *k > kMostDepth || *n * *k > kMostElements;
        if (is_long_) {
            // The ks of few rows of b stay in the caches without panels, too.
            return target_.wide_registers && in_place &&
                   (b_access_->padded_rows || *k <= kMostDepth) && TileColumns() != kPanel;
        }
        return in_place || !HasRuns();
    }

    void Run() {
        ChooseTile();
        const Expr m = PointsOf(product_.m), n = PointsOf(product_.n);
        grid_.SetLocalSize(columns_);
        const Expr m_tiles = CeilDiv(m, rows_).Simplify(domain_);
        const Expr n_tiles = CeilDiv(n, columns_).Simplify(domain_);
        const TileGrid grid = OpenGrid(m_tiles, n_tiles);
        grid_.LoadLane();
        b_.If(grid.inside, [&] {
            const ValueScope scope(point_);
            index_.BindFromIndex(product_.batch, grid.batch);
            m_first_ = b_.Mul(grid.m, U(rows_));
            if (rows_divide_) {
                first_ = index_.VariablesAt(product_.m, m_first_);
            }
            n_first_ = b_.Mul(grid.n, U(columns_));
            n_end_ = index_.EmitSimplified(n);
            // Memory has all columns of a tile, or only those that there are.
            const Expr& stored = b_access_->padded_rows.value_or(n);
            const bool whole = *n.constant() % columns_ == 0;
            const bool all_stored = *stored.constant() % columns_ == 0;
            const Id inside = whole ? b_.True() : b_.ULess(b_.Add(n_first_, grid_.lane()), n_end_);
            if (all_stored) {
                const Ids sums = Sums();
                b_.If(inside, [&] { EmitStores(sums); });
            } else {
                b_.If(inside, [&] { EmitStores(Sums()); });
            }
        });
    }

  private:
    // Whether neighbours in k lie side by side in a.
    bool HasRuns() const {
        const Loop& innermost = product_.k.back();
        const Expr offset = nests_.Offset(a_->buffer, a_->index).Simplify(domain_);
        return offset.Coefficient(innermost.variable) == Expr(1) &&
               innermost.extent.Bounds(domain_.ranges).low >= kLeastRun;
    }

    // All columns of some rows, and then the next rows, as long as b stays in a cache: what is
    // stored lies side by side.
    TileGrid OpenGrid(const Expr& m_tiles, const Expr& n_tiles) {
        if (is_long_) {
            return grid_.OpenTiles(PointsOf(product_.batch), m_tiles, n_tiles, rows_);
        }
        const Id workgroup = grid_.WorkgroupIndex(PointsOf(product_.batch) * m_tiles * n_tiles);
        const Id rows = index_.Emit(m_tiles), columns = index_.Emit(n_tiles);
        const Id rest = b_.UDiv(workgroup, columns);
        return {.batch = b_.UDiv(rest, rows),
                .m = b_.UMod(rest, rows),
                .n = b_.UMod(workgroup, columns),
                .inside = grid_.inside()};
    }

    // The columns of a tile: of two vectors if these have panels, of three if they divide the
    // panels, or of one. Loads of a panel that does not exist would be made lane by lane.
    uint32_t TileColumns() const {
        const int64_t panels = (*PointsOf(product_.n).constant() + kPanel - 1) / kPanel;
        return panels % 2 == 0 ? 2 * kPanel : panels % 3 == 0 ? 3 * kPanel : kPanel;
    }

    void ChooseTile() {
        columns_ = TileColumns();
        if (is_long_) {
            ChooseLongTile();
        } else {
            const std::optional<int64_t> extent = product_.m.back().extent.constant();
            const auto rows = std::find_if(kRows.begin(), kRows.end(), [&](uint32_t rows) {
                return extent && *extent % rows == 0;
            });
            rows_divide_ = rows != kRows.end();
            rows_ = rows_divide_ ? *rows : rows_;
        }
        // Elements side by side would be loaded together and taken apart again, if they were
        // written out.
        const bool runs = HasRuns();
        int64_t points = 1;
        while (!runs && unrolled_from_ > 0) {
            const std::optional<int64_t> loop = product_.k[unrolled_from_ - 1].extent.constant();
            if (!loop || *loop < 1 || points * *loop > kMostUnrolled) {
                break;
            }
            points *= *loop;
            --unrolled_from_;
        }
    }

    // The rows of a tile that take the least time: those that are computed in vain, and elements of
    // b that fewer rows share, cost some.
    void ChooseLongTile() {
        const int64_t m = *PointsOf(product_.m).constant();
        const std::optional<int64_t> extent = product_.m.back().extent.constant();
        double best = INFINITY;
        for (uint32_t rows = std::min(kMostRows, kMostSums / columns_); rows >= kLeastRows;
             --rows) {
            const int64_t tiles = (m + rows - 1) / rows;
            const double cost = static_cast<double>(tiles) * (rows + kPriceOfColumns);
            if (cost < best) {
                best = cost;
                rows_ = rows;
                rows_divide_ = extent && *extent % rows == 0;
            }
        }
    }

    // Runs code with the variables of a row. Behind the last row it is the last one, whose sums are
    // not stored again.
    void AtRow(uint32_t row, const std::function<void()>& code) {
        const ValueScope scope(point_);
        const std::vector<Loop>& loops = product_.m;
        if (rows_divide_) {
            for (size_t i = 0; i < loops.size(); ++i) {
                const bool last = i + 1 == loops.size();
                index_.Bind(loops[i].variable, loops[i].extent,
                            last ? b_.Add(first_[i], U(row)) : first_[i]);
            }
        } else {
            const Id index = b_.Add(m_first_, U(row));
            const Id end = index_.EmitSimplified(PointsOf(loops));
            index_.BindFromIndex(loops, b_.Select(b_.ULess(index, end), index, b_.Sub(end, U(1))));
        }
        code();
        index_.Unbind(loops);
    }

    Ids Sums() {
        const Ids zeros(rows_, F(0));
        return Along(0, zeros);
    }

    // The loops of k from `depth` on.
    Ids Along(size_t depth, std::span<const Id> carried) {
        if (depth == unrolled_from_) {
            const Id inside = AllInside();
            if (inside == 0) {
                return Points(depth, carried, false);
            }
            return b_.If(
                inside, [&] { return Points(depth, carried, true); },
                [&] { return Points(depth, carried, false); });
        }
        return loops_.ForLoop(product_.k[depth], carried,
                              [&](std::span<const Id> values) { return Along(depth + 1, values); });
    }

    // The loops that are written out.
    Ids Points(size_t depth, std::span<const Id> carried, bool inside) {
        if (depth == product_.k.size()) {
            return Point(carried, inside);
        }
        const Loop& loop = product_.k[depth];
        Ids sums(carried.begin(), carried.end());
        for (int64_t i = 0; i < *loop.extent.constant(); ++i) {
            const ValueScope scope(point_);
            index_.Bind(loop.variable, loop.extent, U(static_cast<uint32_t>(i)));
            sums = Points(depth + 1, sums, inside);
            index_.Unbind(loop.variable);
        }
        return sums;
    }

    Ids Point(std::span<const Id> sums, bool inside) {
        const Id b = LoadB();
        Ids next;
        for (uint32_t row = 0; row < rows_; ++row) {
            AtRow(row, [&] {
                const Access access = index_.AccessOf(a_->buffer, a_->index);
                const auto load = [&] {
                    const Id place = index_.EmitSimplified(access.offset);
                    return Ids{b_.Load(b_.ElementPointer(code_.ArrayOf(a_->buffer), place))};
                };
                const Id checks = inside ? b_.True() : index_.EmitChecks(access);
                const Id a = b_.If(checks, load, [&] { return Ids{Otherwise()}; })[0];
                next.push_back(Fma(a, b, sums[row]));
            });
        }
        return next;
    }

    Id Otherwise() { return a_->otherwise.valid() ? scalars_.Value(a_->otherwise) : F(0); }

    // The element of b in the invocation's column.
    Id LoadB() {
        Id depth = U(0);
        for (const Loop& loop : product_.k) {
            depth = b_.Add(b_.Mul(depth, index_.Emit(loop.extent)), index_.Emit(loop.variable));
        }
        const Id in_panel = b_.UMod(grid_.lane(), U(kPanel));
        index_.Bind(b_access_->row, *PointsOf(product_.n).constant() + 2 * kPanel,
                    b_.Add(n_first_, b_.Sub(grid_.lane(), in_panel)));
        index_.Bind(b_access_->depth, PointsOf(product_.k), depth);
        const Id first = index_.Emit(b_access_->offset);
        index_.Unbind(b_access_->row);
        index_.Unbind(b_access_->depth);
        return b_.Load(
            b_.ElementPointer(code_.ArrayOf(b_access_->buffer), b_.Add(first, in_panel)));
    }

    // Whether all rows are inside of a at all points that are written out; 0 if each has to be
    // asked. Indices grow evenly along loops, so it is enough to ask at the ends of these, and of
    // the rows.
    Id AllInside() {
        const Access access = index_.AccessOf(a_->buffer, a_->index);
        if (access.inside != 0) {
            return 0;
        }
        for (const auto& [index, extent] : access.checks) {
            for (size_t i = unrolled_from_; i < product_.k.size(); ++i) {
                if (!index.Coefficient(product_.k[i].variable)) {
                    return 0;
                }
            }
        }
        if (access.checks.empty()) {
            return 0;
        }
        bool even_rows = rows_divide_;
        for (const auto& [index, extent] : access.checks) {
            even_rows = even_rows && index.Coefficient(product_.m.back().variable).has_value();
        }
        Id all = b_.True();
        const uint32_t step = even_rows ? std::max<uint32_t>(rows_ - 1, 1) : 1;
        for (uint32_t row = 0; row < rows_; row += step) {
            AtRow(row, [&] { all = AllCorners(access, unrolled_from_, all); });
        }
        return all;
    }

    Id AllCorners(const Access& access, size_t depth, Id all) {
        if (depth == product_.k.size()) {
            return b_.And(all, index_.EmitChecks(access));
        }
        const Loop& loop = product_.k[depth];
        bool matters = false;
        for (const auto& [index, extent] : access.checks) {
            matters = matters || index.Uses(loop.variable);
        }
        const int64_t last = *loop.extent.constant() - 1;
        for (const int64_t at : {int64_t{0}, last}) {
            if (at == 0 && last != 0 && !matters) {
                continue;
            }
            const ValueScope scope(point_);
            index_.Bind(loop.variable, loop.extent, U(static_cast<uint32_t>(at)));
            all = AllCorners(access, depth + 1, all);
            index_.Unbind(loop.variable);
            if (last == 0) {
                break;
            }
        }
        return all;
    }

    void EmitStores(const Ids& sums) {
        const ValueScope scope(point_);
        index_.BindFromIndex(product_.n, b_.Add(n_first_, grid_.lane()));
        const std::vector<const Store*> stores = StoresOf(kernel_);
        scalars_.Hoist(scalars_.NeededBefore(RootsOf(stores), product_.sum));
        const Id end = index_.EmitSimplified(PointsOf(product_.m));
        for (uint32_t row = 0; row < rows_; ++row) {
            const auto store = [&] {
                AtRow(row, [&] {
                    point_.Add(product_.sum, sums[row]);
                    stores_.Emit(stores);
                });
            };
            if (rows_divide_) {
                store();
            } else {
                b_.If(b_.ULess(b_.Add(m_first_, U(row)), end), store);
            }
        }
    }

    const Product& product_;
    const Load* a_ = nullptr;
    std::optional<TileAccess> b_access_;
    uint32_t rows_ = 8, columns_ = 2 * kPanel;
    bool is_long_ = false;      // b does not stay in the second cache
    bool rows_divide_ = false;  // the innermost loop of rows
    size_t unrolled_from_;      // the first of k's loops that is written out
    Ids first_;                 // if so: the variables of the tile's first row
    Id m_first_ = 0, n_first_ = 0, n_end_ = 0;
};

}  // namespace

bool EmitRegisterProduct(KernelParts& parts, const Product& product) {
    RegisterProductMapping tiles(parts, product);
    if (!tiles.Suits()) {
        return false;
    }
    tiles.Run();
    return true;
}

}  // namespace fornax::graph::loop
