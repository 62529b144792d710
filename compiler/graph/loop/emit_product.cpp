// Sums of products in tiles, by cooperative matrices of 16 x 16: the tiles' sizes, the sums, and
// what becomes of them.
#include "compiler/graph/loop/emit_product.h"

#include <algorithm>

#include "compiler/graph/loop/few_dots.h"
#include "compiler/graph/loop/few_rows.h"

namespace fornax::graph::loop {

using spv::Op;

namespace {

// Steps of 16 in an iteration, the best first: sums are loaded and stored once for all of them.
constexpr uint32_t kSteps[] = {4, 6, 5, 3, 2, 1};
constexpr uint32_t kMaxSubgroups = 4;
// Groups of rows, each of which is worth reading all of b once more, and the least rows of one.
constexpr int64_t kMaxRowGroups = 8;
constexpr int64_t kLeastRowsOfGroup = 64;
// More rows than these are worth a matrix.
constexpr uint32_t kMaxExtraRows = 8;

}  // namespace

ProductEmitter::ProductEmitter(Emitter& emitter, const Product& product)
    : e_(emitter),
      b_(emitter.b_),
      product_(product),
      m_(PointsOf(product.m)),
      n_(PointsOf(product.n)),
      k_(PointsOf(product.k)) {}

void ProductEmitter::Run() {
    ChooseTiles();
    ChooseLastRows();
    const Expr n_tiles = CeilDiv(n_, tile_n_).Simplify(e_.domain_);
    const TileGrid grid = e_.OpenTileGrid(product_, m_tiles_, n_tiles);
    e_.lane_ = b_.BuiltIn(spv::BuiltIn::LocalInvocationIndex);
    b_.If(grid.inside, [&] {
        e_.OpenScope();
        e_.BindFromIndex(product_.batch, grid.batch);
        m_nominal_ = b_.Mul(grid.m, e_.U(tile_m_));
        n_nominal_ = b_.Mul(grid.n, e_.U(tile_n_));
        m_first_ = m_nominal_;
        rows_ = e_.U(tile_m_);
        const uint32_t last_rows = subgroup_rows_ * last_rows_ * kSide + extra_rows_;
        if (last_rows != tile_m_) {
            is_last_ =
                b_.Op(Op::OpIEqual, b_.Bool(), {grid.m, b_.Sub(e_.EmitExpr(m_tiles_), e_.U(1))});
            rows_ = b_.Select(is_last_, e_.U(last_rows), rows_);
        }
        if (a_.in_place) {
            m_first_ = NotBehind(m_nominal_, a_.rows - Expr(last_rows));
        }
        n_first_ = b_operand_.in_place ? NotBehind(n_nominal_, b_operand_.rows - Expr(tile_n_))
                                       : n_nominal_;
        EmitSums();
        EmitEpilogue();
        e_.CloseScope();
    });
    e_.local_size_ = invocations();
    e_.group_ = {e_.local_size_, 1, 1};
}

// Neighbouring workgroups share the columns, so that those of b stay in a cache, but only within a
// group of rows: workers take contiguous parts of the grid, so what a worker writes are rows, which
// it reads again in the next kernel. A line that another processor has read takes long to be
// written again.
TileGrid Emitter::OpenTileGrid(const Product& product,
                               const Expr& m_tiles,
                               const Expr& n_tiles,
                               uint32_t tile_rows) {
    int64_t groups = 1;
    if (n_tiles != Expr(1)) {
        const int64_t least = m_tiles.Bounds(domain_.ranges).low;
        groups = kMaxRowGroups;
        while (groups > 1 && least < groups * (kLeastRowsOfGroup / tile_rows)) {
            groups /= 2;
        }
    }
    // The last group may have tiles that do not exist.
    const Expr group_tiles = CeilDiv(m_tiles, groups).Simplify(domain_);
    const Expr all = groups == 1 ? m_tiles : group_tiles * groups;
    const Id workgroup = WorkgroupIndex(PointsOf(product.batch) * all * n_tiles);
    TileGrid grid;
    const Id tiles = EmitExpr(group_tiles), columns = EmitExpr(n_tiles);
    const Id strip = b_.UDiv(workgroup, tiles), group = b_.UDiv(strip, columns);
    grid.n = b_.UMod(strip, columns);
    grid.batch = groups == 1 ? group : b_.UDiv(group, U(groups));
    const Id first = groups == 1 ? U(0) : b_.Mul(b_.UMod(group, U(groups)), tiles);
    grid.m = b_.Add(first, b_.UMod(workgroup, tiles));
    grid.inside = in_grid_ == 0 ? b_.True() : in_grid_;
    if (all.Simplify(domain_) != m_tiles) {
        grid.inside = b_.And(grid.inside, b_.ULess(grid.m, EmitExpr(m_tiles)));
    }
    return grid;
}

void ProductEmitter::ChooseTiles() {
    const std::optional<TileAccess> a =
        FindTileAccess(e_.kernel_, e_.domain_, product_.a, product_.m, product_.k);
    const std::optional<TileAccess> b =
        FindTileAccess(e_.kernel_, e_.domain_, product_.b, product_.n, product_.k);
    const int64_t m_least = m_.Bounds(e_.domain_.ranges).low;
    const int64_t k_least = k_.Bounds(e_.domain_.ranges).low;
    const uint32_t rows = m_least >= 2 * kSide ? 2 : 1;
    const auto can_be_in_place = [&](const std::optional<TileAccess>& access, const Expr& rows,
                                     int64_t tile) {
        const Expr all = access ? access->padded_rows.value_or(rows) : rows;
        return access && k_least >= kSide && all.Bounds(e_.domain_.ranges).low >= tile;
    };
    if (can_be_in_place(a, m_, rows * kSide)) {
        a_.in_place = true;
        a_.access = *a;
        a_.unit_depth = a->unit_depth;
        a_.rows = a->padded_rows.value_or(m_);
    } else {
        a_.run = RunOf(product_.a);
        // Rows are computed side by side if ks do not lie so, or rows do.
        a_.unit_depth = a_.run != 0 || product_.m.empty() || !HasRowStride(product_.a);
    }
    // Columns whose ks lie side by side would be transposed for each multiplication; in
    // workgroup memory they are once.
    if (can_be_in_place(b, n_, kSide) && !b->unit_depth) {
        b_operand_.in_place = true;
        b_operand_.access = *b;
        b_operand_.rows = b->padded_rows.value_or(n_);
    }
    // Subgroups share what is computed, and more steps a barrier.
    for (uint32_t subgroups = kMaxSubgroups; subgroups > 0; --subgroups) {
        const bool share_a = !a_.in_place && b_operand_.in_place, share_b = !b_operand_.in_place;
        const uint32_t subgroup_rows = share_b ? subgroups : 1;
        const auto [columns, subgroup_columns] = ChooseColumns(share_a ? subgroups : 1);
        // An iteration of whole runs stages them whole.
        for (const bool whole_runs : {true, false}) {
            for (const uint32_t steps : kSteps) {
                const bool whole = a_.run == 0 || steps * kSide % a_.run == 0;
                if (whole == whole_runs &&
                    TryTiles(rows, columns, subgroup_rows, subgroup_columns, steps)) {
                    return;
                }
            }
        }
    }
    e_.Reject("its tiles do not fit into the workgroup's memory");
}

// The numbers of matrices in a row of a subgroup's, and of subgroups in a row, at most so many,
// that take the least time: columns behind the last one, operands that fewer columns share, and odd
// matrices, which are not multiplied two by two, cost some.
std::pair<uint32_t, uint32_t> ProductEmitter::ChooseColumns(uint32_t most_subgroups) const {
    constexpr double kPriceOfStaging = 0.3;  // of a tile's operand, in columns of matrices
    constexpr std::pair<uint32_t, double> kPrices[] = {{4, 1},    {6, 1.02}, {5, 1.03},
                                                       {3, 1.04}, {2, 1.01}, {1, 1.1}};
    const Expr& stored = b_operand_.in_place ? b_operand_.rows : n_;
    const int64_t least = std::max<int64_t>(stored.Bounds(e_.domain_.ranges).low / kSide, 1);
    const int64_t all = (n_.constant().value_or(least * kSide) + kSide - 1) / kSide;
    std::pair<uint32_t, uint32_t> best = {1, 1};
    double best_cost = -1;
    for (uint32_t subgroups = most_subgroups; subgroups > 0; --subgroups) {
        for (const auto& [columns, price] : kPrices) {
            const int64_t tile = int64_t{columns} * subgroups;
            const int64_t tiles = (all + tile - 1) / tile;
            const double cost = static_cast<double>(tiles) * (static_cast<double>(tile) * price +
                                                              (a_.in_place ? 0 : kPriceOfStaging));
            if (tile <= least && (best_cost < 0 || cost < best_cost)) {
                best = {columns, subgroups};
                best_cost = cost;
            }
        }
    }
    return best;
}

bool ProductEmitter::TryTiles(uint32_t matrix_rows,
                              uint32_t matrix_columns,
                              uint32_t subgroup_rows,
                              uint32_t subgroup_columns,
                              uint32_t steps) {
    // More subgroups than one have no tile that is less than half full.
    const auto suits = [&](const Expr& points, uint32_t subgroups, uint32_t tile) {
        const int64_t least = points.Bounds(e_.domain_.ranges).low;
        const int64_t tiles = (least + tile - 1) / tile;
        return subgroups == 1 || (least >= tile && 8 * (tiles * tile - least) <= tile * tiles);
    };
    const std::optional<int64_t> depth = k_.constant();
    matrix_rows_ = matrix_rows;
    matrix_columns_ = matrix_columns;
    subgroup_rows_ = subgroup_rows;
    subgroup_columns_ = subgroup_columns;
    steps_ = steps;
    tile_m_ = subgroup_rows * matrix_rows * kSide;
    tile_n_ = subgroup_columns * matrix_columns * kSide;
    return suits(m_, subgroup_rows, tile_m_) &&
           (steps == 1 || (depth && *depth >= kSide && *depth / kSide % steps == 0)) &&
           SharedBytes() <= e_.target_.max_workgroup_memory;
}

void ProductEmitter::ChooseLastRows() {
    m_tiles_ = CeilDiv(m_, tile_m_).Simplify(e_.domain_);
    last_rows_ = matrix_rows_;
    extra_rows_ = 0;
    const std::optional<int64_t> m = m_.constant();
    if (!m || *m < tile_m_ || subgroup_rows_ > 1 ||
        matrix_columns_ * kSide % e_.target_.subgroup_size != 0) {
        return;
    }
    const auto rest = static_cast<uint32_t>(*m % tile_m_);
    uint32_t rows = rest / kSide;
    extra_rows_ = rest % kSide;
    if (extra_rows_ > kMaxExtraRows) {
        ++rows;
        extra_rows_ = 0;
    }
    if (rows == 0 || rows == matrix_rows_) {
        // Nothing is left, or it joins the tile before.
        m_tiles_ = rows == 0 ? Expr(*m / tile_m_) : m_tiles_;
        rows = matrix_rows_;
    }
    last_rows_ = rows;
    if (SharedBytes() > e_.target_.max_workgroup_memory) {
        m_tiles_ = CeilDiv(m_, tile_m_).Simplify(e_.domain_);
        last_rows_ = matrix_rows_;
        extra_rows_ = 0;
    }
}

bool ProductEmitter::HasRest() const {
    const std::optional<int64_t> depth = k_.constant();
    return !depth || *depth % kSide != 0;
}

uint32_t ProductEmitter::SharedDepth(const Operand& operand) const {
    return !operand.in_place ? steps_ * kSide : HasRest() ? kSide : 0;
}

uint32_t ProductEmitter::SharedBytes() const {
    const uint32_t rows = tile_m_ + extra_rows_;
    return 4 * (rows * SharedDepth(a_) + tile_n_ * SharedDepth(b_operand_) + rows * tile_n_);
}

Id ProductEmitter::NotBehind(Id first, const Expr& last) {
    const Id limit = e_.EmitExpr(e_.Simplified(last));
    return b_.Select(b_.ULess(limit, first), limit, first);
}

Id ProductEmitter::MatrixType(spv::CooperativeMatrixUse use) {
    return b_.CooperativeMatrix(b_.F32(), kSide, kSide, use);
}

Id ProductEmitter::LoadMatrix(bool is_a, Id pointer, bool by_rows, Id stride) {
    const auto layout = by_rows ? spv::CooperativeMatrixLayout::RowMajorKHR
                                : spv::CooperativeMatrixLayout::ColumnMajorKHR;
    const auto use =
        is_a ? spv::CooperativeMatrixUse::MatrixAKHR : spv::CooperativeMatrixUse::MatrixBKHR;
    return b_.Emit(Op::OpCooperativeMatrixLoadKHR, MatrixType(use),
                   {pointer, e_.U(static_cast<uint32_t>(layout)), stride});
}

Id ProductEmitter::LoadInPlace(const Operand& operand, bool is_a, Id row, Id k) {
    const TileAccess& access = operand.access;
    e_.Bind(access.row, m_ + n_, row);
    e_.Bind(access.depth, k_, k);
    const Id offset = e_.EmitExpr(access.offset);
    e_.Unbind(access.row);
    e_.Unbind(access.depth);
    const Id pointer = b_.ElementPointer(e_.buffers_[access.buffer.value()], offset);
    return LoadMatrix(is_a, pointer, access.unit_depth == is_a, e_.EmitExpr(access.stride));
}

Id ProductEmitter::LoadShared(const Operand& operand, bool is_a, Id row, Id k) {
    const Id outer = operand.unit_depth ? row : k, inner = operand.unit_depth ? k : row;
    const Id place = b_.Add(b_.Mul(outer, e_.U(operand.shared_stride)), inner);
    return LoadMatrix(is_a, b_.ElementPointer(operand.shared, place), operand.unit_depth == is_a,
                      e_.U(operand.shared_stride));
}

void ProductEmitter::Multiply(Id k,
                              uint32_t steps,
                              uint32_t rows,
                              bool a_in_place,
                              bool b_in_place) {
    const bool several = subgroup_rows_ * subgroup_columns_ > 1;
    const Id subgroup = several ? b_.UDiv(e_.lane_, e_.U(e_.target_.subgroup_size)) : e_.U(0);
    const Id first_row =
        subgroup_rows_ == 1 ? e_.U(0) : b_.Mul(subgroup, e_.U(matrix_rows_ * kSide));
    const Id first_column =
        subgroup_columns_ == 1 ? e_.U(0) : b_.Mul(subgroup, e_.U(matrix_columns_ * kSide));
    for (uint32_t step = 0; step < steps; ++step) {
        const Id offset = e_.U(step * kSide);
        Ids left, right;
        for (uint32_t i = 0; i < rows; ++i) {
            const Id row = b_.Add(first_row, e_.U(i * kSide));
            left.push_back(a_in_place
                               ? LoadInPlace(a_, true, b_.Add(m_first_, row), b_.Add(k, offset))
                               : LoadShared(a_, true, row, offset));
        }
        for (uint32_t j = 0; j < matrix_columns_; ++j) {
            const Id column = b_.Add(first_column, e_.U(j * kSide));
            right.push_back(b_in_place ? LoadInPlace(b_operand_, false, b_.Add(n_first_, column),
                                                     b_.Add(k, offset))
                                       : LoadShared(b_operand_, false, column, offset));
        }
        for (uint32_t i = 0; i < rows; ++i) {
            for (uint32_t j = 0; j < matrix_columns_; ++j) {
                const Id pointer = SumPointer(i * matrix_columns_ + j);
                const Id type = MatrixType(spv::CooperativeMatrixUse::MatrixAccumulatorKHR);
                const Id sum = b_.Emit(Op::OpLoad, type, {pointer});
                const Id next =
                    b_.Emit(Op::OpCooperativeMatrixMulAddKHR, type, {left[i], right[j], sum});
                b_.Store(pointer, next);
            }
        }
    }
}

Id ProductEmitter::LaneOfSubgroup() {
    const bool several = subgroup_rows_ * subgroup_columns_ > 1;
    return several ? b_.UMod(e_.lane_, e_.U(e_.target_.subgroup_size)) : e_.lane_;
}

// The first column of this subgroup in the tile.
Id ProductEmitter::SubgroupColumn() {
    if (subgroup_columns_ == 1) {
        return e_.U(0);
    }
    const Id subgroup = b_.UDiv(e_.lane_, e_.U(e_.target_.subgroup_size));
    return b_.Mul(subgroup, e_.U(matrix_columns_ * kSide));
}

// Element (row, k + offset), where a row of b is a column of the tile.
Id ProductEmitter::LoadElement(const Operand& operand,
                               bool is_a,
                               bool in_place,
                               Id row,
                               Id k,
                               Id offset) {
    if (!in_place) {
        const Id outer = operand.unit_depth ? row : offset,
                 inner = operand.unit_depth ? offset : row;
        const Id place = b_.Add(b_.Mul(outer, e_.U(operand.shared_stride)), inner);
        return b_.Load(b_.ElementPointer(operand.shared, place));
    }
    // The access is that of a matrix whose first row and k are multiples of its side.
    const TileAccess& access = operand.access;
    const Id in_matrix = b_.UMod(row, e_.U(kSide));
    e_.Bind(access.row, m_ + n_, b_.Add(is_a ? m_first_ : n_first_, b_.Sub(row, in_matrix)));
    e_.Bind(access.depth, k_, k);
    const Id first = e_.EmitExpr(access.offset), stride = e_.EmitExpr(access.stride);
    e_.Unbind(access.row);
    e_.Unbind(access.depth);
    const Id place = access.unit_depth ? b_.Add(b_.Mul(in_matrix, stride), offset)
                                       : b_.Add(b_.Mul(offset, stride), in_matrix);
    return b_.Load(b_.ElementPointer(e_.buffers_[access.buffer.value()], b_.Add(first, place)));
}

void ProductEmitter::MultiplyExtraRows(Id k, uint32_t steps, bool a_in_place, bool b_in_place) {
    const uint32_t lanes = e_.target_.subgroup_size;
    const uint32_t first_row = last_rows_ * kSide;
    const Id first_column = b_.Add(SubgroupColumn(), LaneOfSubgroup());
    for (uint32_t column = 0; column < matrix_columns_ * kSide; column += lanes) {
        const Id at_column = b_.Add(first_column, e_.U(column));
        const auto place = [&](uint32_t row) {
            return b_.ElementPointer(extra_sums_, e_.U(column / lanes * extra_rows_ + row));
        };
        Ids sums;
        for (uint32_t row = 0; row < extra_rows_; ++row) {
            sums.push_back(b_.Load(place(row)));
        }
        sums = b_.For(e_.U(0), e_.U(steps * kSide), e_.U(1), sums,
                      [&](Id offset, std::span<const Id> carried) -> Ids {
                          const Id right =
                              LoadElement(b_operand_, false, b_in_place, at_column, k, offset);
                          Ids next;
                          for (uint32_t row = 0; row < extra_rows_; ++row) {
                              const Id left = LoadElement(a_, true, a_in_place,
                                                          e_.U(first_row + row), k, offset);
                              next.push_back(e_.Fma(left, right, carried[row]));
                          }
                          return next;
                      });
        for (uint32_t row = 0; row < extra_rows_; ++row) {
            b_.Store(place(row), sums[row]);
        }
    }
}

void ProductEmitter::StoreExtraRows(Id results) {
    const uint32_t lanes = e_.target_.subgroup_size;
    const Id first_column = b_.Add(SubgroupColumn(), LaneOfSubgroup());
    for (uint32_t column = 0; column < matrix_columns_ * kSide; column += lanes) {
        for (uint32_t row = 0; row < extra_rows_; ++row) {
            const Id sum =
                b_.Load(b_.ElementPointer(extra_sums_, e_.U(column / lanes * extra_rows_ + row)));
            const Id place = b_.Add(b_.Add(first_column, e_.U(column)),
                                    e_.U((last_rows_ * kSide + row) * tile_n_));
            b_.Store(b_.ElementPointer(results, place), sum);
        }
    }
}

void ProductEmitter::EmitStep(Id k, uint32_t steps, bool a_in_place, bool b_in_place) {
    if (!a_in_place) {
        Stage(a_, true, k, steps);
    }
    if (!b_in_place) {
        Stage(b_operand_, false, k, steps);
    }
    if (!a_in_place || !b_in_place) {
        b_.WorkgroupBarrier();
    }
    if (last_rows_ == matrix_rows_) {
        Multiply(k, steps, matrix_rows_, a_in_place, b_in_place);
    } else {
        b_.If(
            is_last_,
            [&] {
                Multiply(k, steps, last_rows_, a_in_place, b_in_place);
                return Ids();
            },
            [&] {
                Multiply(k, steps, matrix_rows_, a_in_place, b_in_place);
                return Ids();
            });
    }
    if (extra_rows_ > 0) {
        b_.If(is_last_, [&] { MultiplyExtraRows(k, steps, a_in_place, b_in_place); });
    }
    if (!a_in_place || !b_in_place) {
        b_.WorkgroupBarrier();
    }
}

void ProductEmitter::EmitSums() {
    const auto allocate = [&](Operand& operand, uint32_t rows) {
        if (const uint32_t depth = SharedDepth(operand); depth != 0) {
            operand.shared_stride = operand.unit_depth ? depth : rows;
            operand.shared = b_.WorkgroupArray(b_.F32(), rows * depth);
        }
    };
    allocate(a_, tile_m_ + extra_rows_);
    allocate(b_operand_, tile_n_);
    const Id type = MatrixType(spv::CooperativeMatrixUse::MatrixAccumulatorKHR);
    const uint32_t count = matrix_rows_ * matrix_columns_;
    sums_ = b_.FunctionArray(type, count);
    const Id zero = e_.F(0);
    for (uint32_t i = 0; i < count; ++i) {
        b_.Store(SumPointer(i), b_.Emit(Op::OpCompositeConstruct, type, {zero}));
    }
    if (extra_rows_ > 0) {
        const uint32_t sums = extra_rows_ * matrix_columns_ * kSide / e_.target_.subgroup_size;
        extra_sums_ = b_.FunctionArray(b_.F32(), sums);
        for (uint32_t i = 0; i < sums; ++i) {
            b_.Store(b_.ElementPointer(extra_sums_, e_.U(i)), zero);
        }
    }
    e_.Hoist(e_.Needed(std::vector<ScalarId>{product_.a, product_.b}));
    const Id whole = b_.Mul(b_.UDiv(e_.EmitExpr(e_.Simplified(k_)), e_.U(kSide)), e_.U(kSide));
    const std::optional<int64_t> depth = k_.constant();
    if (!depth || *depth >= kSide) {
        b_.For(e_.U(0), whole, e_.U(steps_ * kSide), {}, [&](Id k, std::span<const Id>) -> Ids {
            e_.OpenScope();
            EmitStep(k, steps_, a_.in_place, b_operand_.in_place);
            e_.CloseScope();
            return {};
        });
    }
    if (HasRest()) {
        const Id rest = b_.ULess(whole, e_.EmitExpr(e_.Simplified(k_)));
        b_.If(rest, [&] {
            e_.OpenScope();
            EmitStep(whole, 1, false, false);
            e_.CloseScope();
        });
    }
}

void ProductEmitter::EmitEpilogue() {
    const Id results = b_.WorkgroupArray(b_.F32(), (tile_m_ + extra_rows_) * tile_n_);
    const Id type = MatrixType(spv::CooperativeMatrixUse::MatrixAccumulatorKHR);
    const bool several = subgroup_rows_ * subgroup_columns_ > 1;
    const Id subgroup = several ? b_.UDiv(e_.lane_, e_.U(e_.target_.subgroup_size)) : e_.U(0);
    const uint32_t rows = subgroup_rows_ == 1 ? 0 : matrix_rows_ * kSide;
    const uint32_t columns = subgroup_columns_ == 1 ? 0 : matrix_columns_ * kSide;
    const Id first = b_.Mul(subgroup, e_.U(rows * tile_n_ + columns));
    for (uint32_t i = 0; i < matrix_rows_; ++i) {
        for (uint32_t j = 0; j < matrix_columns_; ++j) {
            const Id sum = b_.Emit(Op::OpLoad, type, {SumPointer(i * matrix_columns_ + j)});
            const Id place = b_.Add(first, e_.U((i * tile_n_ + j) * kSide));
            const auto layout =
                e_.U(static_cast<uint32_t>(spv::CooperativeMatrixLayout::RowMajorKHR));
            b_.EmitVoid(Op::OpCooperativeMatrixStoreKHR,
                        {b_.ElementPointer(results, place), sum, layout, e_.U(tile_n_)});
        }
    }
    if (extra_rows_ > 0) {
        b_.If(is_last_, [&] { StoreExtraRows(results); });
    }
    b_.WorkgroupBarrier();
    std::vector<const Store*> stores;
    for (const Store& store : e_.kernel_.stores) {
        stores.push_back(&store);
    }
    // Row loops that all accesses of the epilogue see as one are one.
    const std::vector<bool> needed = e_.NeededBefore(RootsOf(stores), product_.sum);
    const Nest row_nest = e_.Collapse(product_.m, e_.UsesIn(needed, e_.kernel_.stores));
    const uint32_t across = std::min(tile_n_, invocations());
    const uint32_t along = invocations() / across;
    const Id column_lane = along == 1 ? e_.lane_ : b_.UMod(e_.lane_, e_.U(across));
    const Id row_lane = along == 1 ? e_.U(0) : b_.UDiv(e_.lane_, e_.U(across));
    for (uint32_t part = 0; part < tile_n_; part += across) {
        const Id column = b_.Add(column_lane, e_.U(part));
        const Id n = b_.Add(n_first_, column);
        Id n_inside = Between(n_nominal_, n, n_);
        if (tile_n_ % across != 0) {
            n_inside = b_.And(n_inside, b_.ULess(column, e_.U(tile_n_)));
        }
        if (invocations() % across != 0) {  // those left over belong to no row of the tile
            n_inside = b_.And(n_inside, b_.ULess(e_.lane_, e_.U(along * across)));
        }
        e_.OpenScope();
        e_.BindFromIndex(product_.n, n);
        b_.For(e_.U(0), rows_, e_.U(along), {}, [&](Id base, std::span<const Id>) -> Ids {
            const Id row = b_.Add(base, row_lane);
            const Id m = b_.Add(m_first_, row);
            const Id inside = b_.And(n_inside, Between(m_nominal_, m, m_));
            const bool whole = is_last_ == 0 && tile_m_ % along == 0;
            b_.If(whole ? inside : b_.And(inside, b_.ULess(row, rows_)), [&] {
                e_.OpenScope();
                e_.BindFromIndex(row_nest.loops, m);
                const Id place = b_.Add(b_.Mul(row, e_.U(tile_n_)), column);
                const Id sum = b_.Load(b_.ElementPointer(results, place));
                e_.scopes_.back().emplace(product_.sum.value(), sum);
                e_.EmitStores(stores);
                e_.CloseScope();
            });
            return {};
        });
        e_.CloseScope();
    }
}

Id ProductEmitter::Between(Id first, Id index, const Expr& end) {
    const Id below = b_.ULess(index, e_.EmitExpr(e_.Simplified(end)));
    return first == index ? below : b_.And(below, b_.Not(b_.ULess(index, first)));
}

bool Emitter::EmitProduct() {
    if (kernel_.mapping != Mapping::kProduct) {
        return false;
    }
    if (!HasNoNegativeExtents()) {
        return false;
    }
    for (const ScalarNode& node : kernel_.scalars) {
        const auto* load = std::get_if<Load>(&node.value);
        if (load != nullptr && kernel_[load->buffer].written) {
            return false;
        }
    }
    if (EmitBlockProduct()) {
        return true;
    }
    const std::optional<Product> product = FindProduct(kernel_, scope_);
    if (!product) {
        return false;
    }
    if (EmitByteProduct(*product)) {
        return true;
    }
    if (HasFewRows(kernel_, scope_, *product)) {
        EmitFewRows(*product);
        return true;
    }
    if (HasFewDots(kernel_, scope_, *product)) {
        EmitFewDots(*product);
        return true;
    }
    if (EmitRegisterProduct(*product)) {
        return true;
    }
    if (!target_.matrices_f32 || kernel_[product->sum].type != ElementType::kF32) {
        return false;
    }
    ProductEmitter(*this, *product).Run();
    return true;
}

}  // namespace fornax::graph::loop
