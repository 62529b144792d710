// Sums of products of f32 in registers: tiles of some rows by the columns of a subgroup.
//
// An invocation computes one column of a few rows. Along k it takes an element of b of its own and
// for each row one of a, which is the same for all invocations. So any number of ks costs what it
// is, operands of windows are read where they lie, and what follows the sums finds them in
// registers. Matrices read b less often, so long sums of many columns are theirs where registers
// are few.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "compiler/graph/loop/emitter.h"
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

}  // namespace

class RegisterProductEmitter {
  public:
    RegisterProductEmitter(Emitter& emitter, const Product& product)
        : e_(emitter), b_(emitter.b_), product_(product), unrolled_from_(product.k.size()) {}

    // Whether the product is one for registers.
    bool Suits() {
        const Kernel& kernel = e_.kernel_;
        a_ = std::get_if<Load>(&kernel[product_.a].value);
        if (a_ == nullptr || kernel[product_.a].type != ElementType::kF32 ||
            kernel[product_.sum].type != ElementType::kF32 || product_.m.empty() ||
            (a_->otherwise.valid() &&
             !std::holds_alternative<Constant>(kernel[a_->otherwise].value))) {
            return false;
        }
        for (const Expr& index : a_->index) {
            for (const Symbol& symbol : index.Symbols()) {
                if (ScalarOfSymbol(symbol)) {
                    return false;
                }
            }
        }
        b_access_ = FindTileAccess(kernel, e_.domain_, product_.b, product_.n, product_.k);
        const std::optional<int64_t> m = PointsOf(product_.m).constant();
        const std::optional<int64_t> n = PointsOf(product_.n).constant();
        const std::optional<int64_t> k = PointsOf(product_.k).constant();
        if (!b_access_ || b_access_->unit_depth || !m || !n || !k || *m < kPanel) {
            return false;
        }
        // Windows with runs of ks are staged for matrices instead: with vectors of 256 bits the
        // conditions here cost more.
        const bool in_place =
            FindTileAccess(kernel, e_.domain_, product_.a, product_.m, product_.k).has_value();
        is_long_ = *k > kMostDepth || *n * *k > kMostElements;
        if (is_long_) {
            // The ks of few rows of b stay in the caches without panels, too.
            return e_.target_.wide_registers && in_place &&
                   (b_access_->padded_rows || *k <= kMostDepth) && TileColumns() != kPanel;
        }
        return in_place || !HasRuns();
    }

    void Run() {
        ChooseTile();
        const Expr m = PointsOf(product_.m), n = PointsOf(product_.n);
        e_.local_size_ = columns_;
        e_.group_ = {columns_, 1, 1};
        const Expr m_tiles = CeilDiv(m, rows_).Simplify(e_.domain_);
        const Expr n_tiles = CeilDiv(n, columns_).Simplify(e_.domain_);
        const TileGrid grid = OpenGrid(m_tiles, n_tiles);
        e_.lane_ = b_.BuiltIn(spv::BuiltIn::LocalInvocationIndex);
        b_.If(grid.inside, [&] {
            e_.OpenScope();
            e_.BindFromIndex(product_.batch, grid.batch);
            m_first_ = b_.Mul(grid.m, e_.U(rows_));
            if (rows_divide_) {
                first_ = Variables(product_.m, m_first_);
            }
            n_first_ = b_.Mul(grid.n, e_.U(columns_));
            n_end_ = e_.EmitExpr(e_.Simplified(n));
            // Memory has all columns of a tile, or only those that there are.
            const Expr& stored = b_access_->padded_rows.value_or(n);
            const bool whole = *n.constant() % columns_ == 0;
            const bool all_stored = *stored.constant() % columns_ == 0;
            const Id inside = whole ? b_.True() : b_.ULess(b_.Add(n_first_, e_.lane_), n_end_);
            if (all_stored) {
                const Ids sums = Sums();
                b_.If(inside, [&] { EmitStores(sums); });
            } else {
                b_.If(inside, [&] { EmitStores(Sums()); });
            }
            e_.CloseScope();
        });
    }

  private:
    // Whether neighbours in k lie side by side in a.
    bool HasRuns() const {
        const Loop& innermost = product_.k.back();
        const Expr offset = e_.Offset(a_->buffer, a_->index).Simplify(e_.domain_);
        return offset.Coefficient(innermost.variable) == Expr(1) &&
               innermost.extent.Bounds(e_.domain_.ranges).low >= kLeastRun;
    }

    // All columns of some rows, and then the next rows, as long as b stays in a cache: what is
    // stored lies side by side.
    TileGrid OpenGrid(const Expr& m_tiles, const Expr& n_tiles) {
        if (is_long_) {
            return e_.OpenTileGrid(product_, m_tiles, n_tiles, rows_);
        }
        const Id workgroup = e_.WorkgroupIndex(PointsOf(product_.batch) * m_tiles * n_tiles);
        const Id rows = e_.EmitExpr(m_tiles), columns = e_.EmitExpr(n_tiles);
        const Id rest = b_.UDiv(workgroup, columns);
        return {.batch = b_.UDiv(rest, rows),
                .m = b_.UMod(rest, rows),
                .n = b_.UMod(workgroup, columns),
                .inside = e_.in_grid_ == 0 ? b_.True() : e_.in_grid_};
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

    // The loops' variables at an index.
    Ids Variables(std::span<const Loop> loops, Id index) {
        Ids variables(loops.size());
        for (size_t i = loops.size(); i-- > 0;) {
            const Id extent = e_.EmitExpr(loops[i].extent);
            variables[i] = i == 0 ? index : b_.UMod(index, extent);
            index = i == 0 ? index : b_.UDiv(index, extent);
        }
        return variables;
    }

    // Runs code with the variables of a row. Behind the last row it is the last one, whose sums are
    // not stored again.
    void AtRow(uint32_t row, const std::function<void()>& code) {
        e_.OpenScope();
        const std::vector<Loop>& loops = product_.m;
        if (rows_divide_) {
            for (size_t i = 0; i < loops.size(); ++i) {
                const bool last = i + 1 == loops.size();
                e_.Bind(loops[i].variable, loops[i].extent,
                        last ? b_.Add(first_[i], e_.U(row)) : first_[i]);
            }
        } else {
            const Id index = b_.Add(m_first_, e_.U(row));
            const Id end = e_.EmitExpr(e_.Simplified(PointsOf(loops)));
            e_.BindFromIndex(loops, b_.Select(b_.ULess(index, end), index, b_.Sub(end, e_.U(1))));
        }
        code();
        for (const Loop& loop : loops) {
            e_.Unbind(loop.variable);
        }
        e_.CloseScope();
    }

    Ids Sums() {
        const Ids zeros(rows_, e_.F(0));
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
        const Loop& loop = product_.k[depth];
        return b_.For(e_.U(0), e_.EmitExtent(loop.extent), e_.U(1), carried,
                      [&](Id index, std::span<const Id> values) {
                          e_.OpenScope();
                          e_.Bind(loop.variable, loop.extent, index);
                          Ids next = Along(depth + 1, values);
                          e_.Unbind(loop.variable);
                          e_.CloseScope();
                          return next;
                      });
    }

    // The loops that are written out.
    Ids Points(size_t depth, std::span<const Id> carried, bool inside) {
        if (depth == product_.k.size()) {
            return Point(carried, inside);
        }
        const Loop& loop = product_.k[depth];
        Ids sums(carried.begin(), carried.end());
        for (int64_t i = 0; i < *loop.extent.constant(); ++i) {
            e_.OpenScope();
            e_.Bind(loop.variable, loop.extent, e_.U(static_cast<uint32_t>(i)));
            sums = Points(depth + 1, sums, inside);
            e_.Unbind(loop.variable);
            e_.CloseScope();
        }
        return sums;
    }

    Ids Point(std::span<const Id> sums, bool inside) {
        const Id b = LoadB();
        Ids next;
        for (uint32_t row = 0; row < rows_; ++row) {
            AtRow(row, [&] {
                const Emitter::Access access = e_.AccessOf(a_->buffer, a_->index);
                const auto load = [&] {
                    const Id place = e_.EmitExpr(e_.Simplified(access.offset));
                    return Ids{b_.Load(b_.ElementPointer(e_.buffers_[a_->buffer.value()], place))};
                };
                const Id checks = inside ? b_.True() : e_.EmitChecks(access);
                const Id a = b_.If(checks, load, [&] { return Ids{Otherwise()}; })[0];
                next.push_back(e_.Fma(a, b, sums[row]));
            });
        }
        return next;
    }

    Id Otherwise() { return a_->otherwise.valid() ? e_.Value(a_->otherwise) : e_.F(0); }

    // The element of b in the invocation's column.
    Id LoadB() {
        Id depth = e_.U(0);
        for (const Loop& loop : product_.k) {
            depth = b_.Add(b_.Mul(depth, e_.EmitExpr(loop.extent)), e_.EmitExpr(loop.variable));
        }
        const Id in_panel = b_.UMod(e_.lane_, e_.U(kPanel));
        e_.Bind(b_access_->row, *PointsOf(product_.n).constant() + 2 * kPanel,
                b_.Add(n_first_, b_.Sub(e_.lane_, in_panel)));
        e_.Bind(b_access_->depth, PointsOf(product_.k), depth);
        const Id first = e_.EmitExpr(b_access_->offset);
        e_.Unbind(b_access_->row);
        e_.Unbind(b_access_->depth);
        return b_.Load(
            b_.ElementPointer(e_.buffers_[b_access_->buffer.value()], b_.Add(first, in_panel)));
    }

    // Whether all rows are inside of a at all points that are written out; 0 if each has to be
    // asked. Indices grow evenly along loops, so it is enough to ask at the ends of these, and of
    // the rows.
    Id AllInside() {
        const Emitter::Access access = e_.AccessOf(a_->buffer, a_->index);
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

    Id AllCorners(const Emitter::Access& access, size_t depth, Id all) {
        if (depth == product_.k.size()) {
            return b_.And(all, e_.EmitChecks(access));
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
            e_.OpenScope();
            e_.Bind(loop.variable, loop.extent, e_.U(static_cast<uint32_t>(at)));
            all = AllCorners(access, depth + 1, all);
            e_.Unbind(loop.variable);
            e_.CloseScope();
            if (last == 0) {
                break;
            }
        }
        return all;
    }

    void EmitStores(const Ids& sums) {
        e_.OpenScope();
        e_.BindFromIndex(product_.n, b_.Add(n_first_, e_.lane_));
        std::vector<const Store*> stores;
        for (const Store& store : e_.kernel_.stores) {
            stores.push_back(&store);
        }
        e_.Hoist(e_.NeededBefore(RootsOf(stores), product_.sum));
        const Id end = e_.EmitExpr(e_.Simplified(PointsOf(product_.m)));
        for (uint32_t row = 0; row < rows_; ++row) {
            const auto store = [&] {
                AtRow(row, [&] {
                    e_.scopes_.back().emplace(product_.sum.value(), sums[row]);
                    e_.EmitStores(stores);
                });
            };
            if (rows_divide_) {
                store();
            } else {
                b_.If(b_.ULess(b_.Add(m_first_, e_.U(row)), end), store);
            }
        }
        e_.CloseScope();
    }

    Emitter& e_;
    spirv::ModuleBuilder& b_;
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

bool Emitter::EmitRegisterProduct(const Product& product) {
    RegisterProductEmitter tiles(*this, product);
    if (!tiles.Suits()) {
        return false;
    }
    tiles.Run();
    return true;
}

}  // namespace fornax::graph::loop
