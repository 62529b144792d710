// Sums of products in tiles, by cooperative matrices of 16 x 16: the tiles' sizes, the sums, and
// what becomes of them.
#include "compiler/graph/loop/emit_product.h"

#include <algorithm>

#include "compiler/graph/loop/emit_bytes.h"
#include "compiler/graph/loop/emit_few_dots.h"
#include "compiler/graph/loop/emit_few_rows.h"
#include "compiler/graph/loop/emit_register_product.h"
#include "compiler/graph/loop/few_dots.h"
#include "compiler/graph/loop/few_rows.h"

namespace fornax::graph::loop {

using spv::Op;

namespace {

// Steps of 16 in an iteration, the best first: sums are loaded and stored once for all of them.
constexpr uint32_t kSteps[] = {4, 6, 5, 3, 2, 1};
constexpr uint32_t kMaxSubgroups = 4;
// More rows than these are worth a matrix.
constexpr uint32_t kMaxExtraRows = 8;

}  // namespace

ProductMapping::ProductMapping(KernelParts& parts, const Product& product)
    : MappingPart(parts),
      product_(product),
      m_(PointsOf(product.m)),
      n_(PointsOf(product.n)),
      k_(PointsOf(product.k)) {}

void ProductMapping::Run() {
    ChooseTiles();
    ChooseLastRows();
    const Expr n_tiles = CeilDiv(n_, tile_n_).Simplify(domain_);
    const TileGrid grid = grid_.OpenTiles(PointsOf(product_.batch), m_tiles_, n_tiles);
    grid_.LoadLane();
    b_.If(grid.inside, [&] {
        const ValueScope scope(point_);
        index_.BindFromIndex(product_.batch, grid.batch);
        m_nominal_ = b_.Mul(grid.m, U(tile_m_));
        n_nominal_ = b_.Mul(grid.n, U(tile_n_));
        m_first_ = m_nominal_;
        rows_ = U(tile_m_);
        const uint32_t last_rows = subgroup_rows_ * last_rows_ * kSide + extra_rows_;
        if (last_rows != tile_m_) {
            is_last_ =
                b_.Op(Op::OpIEqual, b_.Bool(), {grid.m, b_.Sub(index_.Emit(m_tiles_), U(1))});
            rows_ = b_.Select(is_last_, U(last_rows), rows_);
        }
        if (a_.in_place) {
            m_first_ = NotBehind(m_nominal_, a_.rows - Expr(last_rows));
        }
        n_first_ = b_operand_.in_place ? NotBehind(n_nominal_, b_operand_.rows - Expr(tile_n_))
                                       : n_nominal_;
        EmitSums();
        EmitEpilogue();
    });
    grid_.SetLocalSize(invocations());
}

void ProductMapping::ChooseTiles() {
    const std::optional<TileAccess> a =
        FindTileAccess(kernel_, domain_, product_.a, product_.m, product_.k);
    const std::optional<TileAccess> b =
        FindTileAccess(kernel_, domain_, product_.b, product_.n, product_.k);
    const int64_t m_least = m_.Bounds(domain_.ranges).low;
    const int64_t k_least = k_.Bounds(domain_.ranges).low;
    const uint32_t rows = m_least >= 2 * kSide ? 2 : 1;
    const auto can_be_in_place = [&](const std::optional<TileAccess>& access, const Expr& rows,
                                     int64_t tile) {
        const Expr all = access ? access->padded_rows.value_or(rows) : rows;
        return access && k_least >= kSide && all.Bounds(domain_.ranges).low >= tile;
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
    Reject("its tiles do not fit into the workgroup's memory");
}

// The numbers of matrices in a row of a subgroup's, and of subgroups in a row, at most so many,
// that take the least time: columns behind the last one, operands that fewer columns share, and odd
// matrices, which are not multiplied two by two, cost some.
std::pair<uint32_t, uint32_t> ProductMapping::ChooseColumns(uint32_t most_subgroups) const {
    constexpr double kPriceOfStaging = 0.3;  // of a tile's operand, in columns of matrices
    constexpr std::pair<uint32_t, double> kPrices[] = {{4, 1},    {6, 1.02}, {5, 1.03},
                                                       {3, 1.04}, {2, 1.01}, {1, 1.1}};
    const Expr& stored = b_operand_.in_place ? b_operand_.rows : n_;
    const int64_t least = std::max<int64_t>(stored.Bounds(domain_.ranges).low / kSide, 1);
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

bool ProductMapping::TryTiles(uint32_t matrix_rows,
                              uint32_t matrix_columns,
                              uint32_t subgroup_rows,
                              uint32_t subgroup_columns,
                              uint32_t steps) {
    // More subgroups than one have no tile that is less than half full.
    const auto suits = [&](const Expr& points, uint32_t subgroups, uint32_t tile) {
        const int64_t least = points.Bounds(domain_.ranges).low;
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
           SharedBytes() <= target_.max_workgroup_memory;
}

void ProductMapping::ChooseLastRows() {
    m_tiles_ = CeilDiv(m_, tile_m_).Simplify(domain_);
    last_rows_ = matrix_rows_;
    extra_rows_ = 0;
    const std::optional<int64_t> m = m_.constant();
    if (!m || *m < tile_m_ || subgroup_rows_ > 1 ||
        matrix_columns_ * kSide % target_.subgroup_size != 0) {
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
    if (SharedBytes() > target_.max_workgroup_memory) {
        m_tiles_ = CeilDiv(m_, tile_m_).Simplify(domain_);
        last_rows_ = matrix_rows_;
        extra_rows_ = 0;
    }
}

bool ProductMapping::HasRest() const {
    const std::optional<int64_t> depth = k_.constant();
    return !depth || *depth % kSide != 0;
}

uint32_t ProductMapping::SharedDepth(const Operand& operand) const {
    return !operand.in_place ? steps_ * kSide : HasRest() ? kSide : 0;
}

uint32_t ProductMapping::SharedBytes() const {
    const uint32_t rows = tile_m_ + extra_rows_;
    return 4 * (rows * SharedDepth(a_) + tile_n_ * SharedDepth(b_operand_) + rows * tile_n_);
}

Id ProductMapping::NotBehind(Id first, const Expr& last) {
    const Id limit = index_.EmitSimplified(last);
    return b_.Select(b_.ULess(limit, first), limit, first);
}

Id ProductMapping::MatrixType(spv::CooperativeMatrixUse use) {
    return b_.CooperativeMatrix(b_.F32(), kSide, kSide, use);
}

Id ProductMapping::LoadMatrix(bool is_a, Id pointer, bool by_rows, Id stride) {
    const auto layout = by_rows ? spv::CooperativeMatrixLayout::RowMajorKHR
                                : spv::CooperativeMatrixLayout::ColumnMajorKHR;
    const auto use =
        is_a ? spv::CooperativeMatrixUse::MatrixAKHR : spv::CooperativeMatrixUse::MatrixBKHR;
    return b_.Emit(Op::OpCooperativeMatrixLoadKHR, MatrixType(use),
                   {pointer, U(static_cast<uint32_t>(layout)), stride});
}

Id ProductMapping::LoadInPlace(const Operand& operand, bool is_a, Id row, Id k) {
    const TileAccess& access = operand.access;
    index_.Bind(access.row, m_ + n_, row);
    index_.Bind(access.depth, k_, k);
    const Id offset = index_.Emit(access.offset);
    index_.Unbind(access.row);
    index_.Unbind(access.depth);
    const Id pointer = b_.ElementPointer(code_.ArrayOf(access.buffer), offset);
    return LoadMatrix(is_a, pointer, access.unit_depth == is_a, index_.Emit(access.stride));
}

Id ProductMapping::LoadShared(const Operand& operand, bool is_a, Id row, Id k) {
    const Id outer = operand.unit_depth ? row : k, inner = operand.unit_depth ? k : row;
    const Id place = b_.Add(b_.Mul(outer, U(operand.shared_stride)), inner);
    return LoadMatrix(is_a, b_.ElementPointer(operand.shared, place), operand.unit_depth == is_a,
                      U(operand.shared_stride));
}

void ProductMapping::Multiply(Id k,
                              uint32_t steps,
                              uint32_t rows,
                              bool a_in_place,
                              bool b_in_place) {
    const bool several = subgroup_rows_ * subgroup_columns_ > 1;
    const Id subgroup = several ? b_.UDiv(grid_.lane(), U(target_.subgroup_size)) : U(0);
    const Id first_row = subgroup_rows_ == 1 ? U(0) : b_.Mul(subgroup, U(matrix_rows_ * kSide));
    const Id first_column =
        subgroup_columns_ == 1 ? U(0) : b_.Mul(subgroup, U(matrix_columns_ * kSide));
    for (uint32_t step = 0; step < steps; ++step) {
        const Id offset = U(step * kSide);
        Ids left, right;
        for (uint32_t i = 0; i < rows; ++i) {
            const Id row = b_.Add(first_row, U(i * kSide));
            left.push_back(a_in_place
                               ? LoadInPlace(a_, true, b_.Add(m_first_, row), b_.Add(k, offset))
                               : LoadShared(a_, true, row, offset));
        }
        for (uint32_t j = 0; j < matrix_columns_; ++j) {
            const Id column = b_.Add(first_column, U(j * kSide));
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

Id ProductMapping::LaneOfSubgroup() {
    const bool several = subgroup_rows_ * subgroup_columns_ > 1;
    return several ? b_.UMod(grid_.lane(), U(target_.subgroup_size)) : grid_.lane();
}

// The first column of this subgroup in the tile.
Id ProductMapping::SubgroupColumn() {
    if (subgroup_columns_ == 1) {
        return U(0);
    }
    const Id subgroup = b_.UDiv(grid_.lane(), U(target_.subgroup_size));
    return b_.Mul(subgroup, U(matrix_columns_ * kSide));
}

// Element (row, k + offset), where a row of b is a column of the tile.
Id ProductMapping::LoadElement(const Operand& operand,
                               bool is_a,
                               bool in_place,
                               Id row,
                               Id k,
                               Id offset) {
    if (!in_place) {
        const Id outer = operand.unit_depth ? row : offset,
                 inner = operand.unit_depth ? offset : row;
        const Id place = b_.Add(b_.Mul(outer, U(operand.shared_stride)), inner);
        return b_.Load(b_.ElementPointer(operand.shared, place));
    }
    // The access is that of a matrix whose first row and k are multiples of its side.
    const TileAccess& access = operand.access;
    const Id in_matrix = b_.UMod(row, U(kSide));
    index_.Bind(access.row, m_ + n_, b_.Add(is_a ? m_first_ : n_first_, b_.Sub(row, in_matrix)));
    index_.Bind(access.depth, k_, k);
    const Id first = index_.Emit(access.offset), stride = index_.Emit(access.stride);
    index_.Unbind(access.row);
    index_.Unbind(access.depth);
    const Id place = access.unit_depth ? b_.Add(b_.Mul(in_matrix, stride), offset)
                                       : b_.Add(b_.Mul(offset, stride), in_matrix);
    return b_.Load(b_.ElementPointer(code_.ArrayOf(access.buffer), b_.Add(first, place)));
}

void ProductMapping::MultiplyExtraRows(Id k, uint32_t steps, bool a_in_place, bool b_in_place) {
    const uint32_t lanes = target_.subgroup_size;
    const uint32_t first_row = last_rows_ * kSide;
    const Id first_column = b_.Add(SubgroupColumn(), LaneOfSubgroup());
    for (uint32_t column = 0; column < matrix_columns_ * kSide; column += lanes) {
        const Id at_column = b_.Add(first_column, U(column));
        const auto place = [&](uint32_t row) {
            return b_.ElementPointer(extra_sums_, U(column / lanes * extra_rows_ + row));
        };
        Ids sums;
        for (uint32_t row = 0; row < extra_rows_; ++row) {
            sums.push_back(b_.Load(place(row)));
        }
        sums = b_.For(
            U(0), U(steps * kSide), U(1), sums, [&](Id offset, std::span<const Id> carried) -> Ids {
                const Id right = LoadElement(b_operand_, false, b_in_place, at_column, k, offset);
                Ids next;
                for (uint32_t row = 0; row < extra_rows_; ++row) {
                    const Id left =
                        LoadElement(a_, true, a_in_place, U(first_row + row), k, offset);
                    next.push_back(Fma(left, right, carried[row]));
                }
                return next;
            });
        for (uint32_t row = 0; row < extra_rows_; ++row) {
            b_.Store(place(row), sums[row]);
        }
    }
}

void ProductMapping::StoreExtraRows(Id results) {
    const uint32_t lanes = target_.subgroup_size;
    const Id first_column = b_.Add(SubgroupColumn(), LaneOfSubgroup());
    for (uint32_t column = 0; column < matrix_columns_ * kSide; column += lanes) {
        for (uint32_t row = 0; row < extra_rows_; ++row) {
            const Id sum =
                b_.Load(b_.ElementPointer(extra_sums_, U(column / lanes * extra_rows_ + row)));
            const Id place =
                b_.Add(b_.Add(first_column, U(column)), U((last_rows_ * kSide + row) * tile_n_));
            b_.Store(b_.ElementPointer(results, place), sum);
        }
    }
}

void ProductMapping::EmitStep(Id k, uint32_t steps, bool a_in_place, bool b_in_place) {
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

void ProductMapping::EmitSums() {
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
    const Id zero = F(0);
    for (uint32_t i = 0; i < count; ++i) {
        b_.Store(SumPointer(i), b_.Emit(Op::OpCompositeConstruct, type, {zero}));
    }
    if (extra_rows_ > 0) {
        const uint32_t sums = extra_rows_ * matrix_columns_ * kSide / target_.subgroup_size;
        extra_sums_ = b_.FunctionArray(b_.F32(), sums);
        for (uint32_t i = 0; i < sums; ++i) {
            b_.Store(b_.ElementPointer(extra_sums_, U(i)), zero);
        }
    }
    scalars_.Hoist(scalars_.Needed(std::vector<ScalarId>{product_.a, product_.b}));
    const Id whole = b_.Mul(b_.UDiv(index_.EmitSimplified(k_), U(kSide)), U(kSide));
    const std::optional<int64_t> depth = k_.constant();
    if (!depth || *depth >= kSide) {
        b_.For(U(0), whole, U(steps_ * kSide), {}, [&](Id k, std::span<const Id>) -> Ids {
            const ValueScope scope(point_);
            EmitStep(k, steps_, a_.in_place, b_operand_.in_place);
            return {};
        });
    }
    if (HasRest()) {
        const Id rest = b_.ULess(whole, index_.EmitSimplified(k_));
        b_.If(rest, [&] {
            const ValueScope scope(point_);
            EmitStep(whole, 1, false, false);
        });
    }
}

void ProductMapping::EmitEpilogue() {
    const Id results = b_.WorkgroupArray(b_.F32(), (tile_m_ + extra_rows_) * tile_n_);
    const Id type = MatrixType(spv::CooperativeMatrixUse::MatrixAccumulatorKHR);
    const bool several = subgroup_rows_ * subgroup_columns_ > 1;
    const Id subgroup = several ? b_.UDiv(grid_.lane(), U(target_.subgroup_size)) : U(0);
    const uint32_t rows = subgroup_rows_ == 1 ? 0 : matrix_rows_ * kSide;
    const uint32_t columns = subgroup_columns_ == 1 ? 0 : matrix_columns_ * kSide;
    const Id first = b_.Mul(subgroup, U(rows * tile_n_ + columns));
    for (uint32_t i = 0; i < matrix_rows_; ++i) {
        for (uint32_t j = 0; j < matrix_columns_; ++j) {
            const Id sum = b_.Emit(Op::OpLoad, type, {SumPointer(i * matrix_columns_ + j)});
            const Id place = b_.Add(first, U((i * tile_n_ + j) * kSide));
            const auto layout = U(static_cast<uint32_t>(spv::CooperativeMatrixLayout::RowMajorKHR));
            b_.EmitVoid(Op::OpCooperativeMatrixStoreKHR,
                        {b_.ElementPointer(results, place), sum, layout, U(tile_n_)});
        }
    }
    if (extra_rows_ > 0) {
        b_.If(is_last_, [&] { StoreExtraRows(results); });
    }
    b_.WorkgroupBarrier();
    const std::vector<const Store*> stores = StoresOf(kernel_);
    // Row loops that all accesses of the epilogue see as one are one.
    const std::vector<bool> needed = scalars_.NeededBefore(RootsOf(stores), product_.sum);
    const Nest row_nest = nests_.Collapse(product_.m, nests_.UsesIn(needed, kernel_.stores));
    const uint32_t across = std::min(tile_n_, invocations());
    const uint32_t along = invocations() / across;
    const Id column_lane = along == 1 ? grid_.lane() : b_.UMod(grid_.lane(), U(across));
    const Id row_lane = along == 1 ? U(0) : b_.UDiv(grid_.lane(), U(across));
    for (uint32_t part = 0; part < tile_n_; part += across) {
        const Id column = b_.Add(column_lane, U(part));
        const Id n = b_.Add(n_first_, column);
        Id n_inside = Between(n_nominal_, n, n_);
        if (tile_n_ % across != 0) {
            n_inside = b_.And(n_inside, b_.ULess(column, U(tile_n_)));
        }
        if (invocations() % across != 0) {  // those left over belong to no row of the tile
            n_inside = b_.And(n_inside, b_.ULess(grid_.lane(), U(along * across)));
        }
        const ValueScope scope(point_);
        index_.BindFromIndex(product_.n, n);
        b_.For(U(0), rows_, U(along), {}, [&](Id base, std::span<const Id>) -> Ids {
            const Id row = b_.Add(base, row_lane);
            const Id m = b_.Add(m_first_, row);
            const Id inside = b_.And(n_inside, Between(m_nominal_, m, m_));
            const bool whole = is_last_ == 0 && tile_m_ % along == 0;
            b_.If(whole ? inside : b_.And(inside, b_.ULess(row, rows_)), [&] {
                const ValueScope scope(point_);
                index_.BindFromIndex(row_nest.loops, m);
                const Id place = b_.Add(b_.Mul(row, U(tile_n_)), column);
                const Id sum = b_.Load(b_.ElementPointer(results, place));
                point_.Add(product_.sum, sum);
                stores_.Emit(stores);
            });
            return {};
        });
    }
}

Id ProductMapping::Between(Id first, Id index, const Expr& end) {
    const Id below = b_.ULess(index, index_.EmitSimplified(end));
    return first == index ? below : b_.And(below, b_.Not(b_.ULess(index, first)));
}

bool EmitProduct(KernelParts& parts) {
    const Kernel& kernel = parts.code.kernel;
    const Scope& scope = parts.code.scope;
    const Target& target = parts.code.module.target;
    if (kernel.mapping != Mapping::kProduct || !parts.code.nests.HasNoNegativeExtents() ||
        LoadsWhatIsWritten(kernel)) {
        return false;
    }
    if (EmitBlockProduct(parts)) {
        return true;
    }
    const std::optional<Product> product = FindProduct(kernel, scope);
    if (!product) {
        return false;
    }
    if (EmitByteProduct(parts, *product)) {
        return true;
    }
    if (HasFewRows(kernel, scope, *product)) {
        EmitFewRows(parts, *product);
        return true;
    }
    if (HasFewDots(kernel, scope, *product)) {
        EmitFewDots(parts, *product);
        return true;
    }
    if (EmitRegisterProduct(parts, *product)) {
        return true;
    }
    if (!target.matrices_f32 || kernel[product->sum].type != ElementType::kF32) {
        return false;
    }
    ProductMapping(parts, *product).Run();
    return true;
}

}  // namespace fornax::graph::loop
