// Sums of products in tiles, by cooperative matrices of 16 x 16.
//
// A workgroup computes a tile of sums: rows m, columns n. Along k it takes matrices of its operands
// and multiplies them. An operand whose elements lie as a matrix load wants them is loaded where it
// is; any other is computed element by element into workgroup memory first, with 0 where there is
// no row, column or k, so that what follows needs no conditions. At the end the sums go through
// workgroup memory to the epilogue, the scalars and stores of each point.
//
// Tiles that would go over the edge of an operand that is loaded in place begin earlier instead,
// and leave the stores of rows that the tile before has to that one.
#include <algorithm>

#include "compiler/graph/loop/emitter.h"
#include "compiler/graph/loop/few_rows.h"
#include "compiler/graph/loop/product.h"
#include "compiler/graph/loop/product_tiles.h"

namespace fornax::graph::loop {

using spv::Op;

namespace {

constexpr uint32_t kSide = 16;  // of a matrix
constexpr uint32_t kMaxSteps = 4;
constexpr uint32_t kMaxSubgroups = 4;

Expr PointsOf(std::span<const Loop> loops) {
    Expr points(1);
    for (const Loop& loop : loops) {
        points *= loop.extent;
    }
    return points;
}

}  // namespace

// Emits one product; the state that its parts share.
class ProductEmitter {
  public:
    ProductEmitter(Emitter& emitter, const Product& product)
        : e_(emitter),
          b_(emitter.b_),
          product_(product),
          m_(PointsOf(product.m)),
          n_(PointsOf(product.n)),
          k_(PointsOf(product.k)) {}

    void Run() {
        ChooseTiles();
        const Expr m_tiles = CeilDiv(m_, tile_m_).Simplify(e_.domain_);
        const Expr n_tiles = CeilDiv(n_, tile_n_).Simplify(e_.domain_);
        const Id workgroup = e_.WorkgroupIndex(PointsOf(product_.batch) * m_tiles * n_tiles);
        e_.lane_ = b_.BuiltIn(spv::BuiltIn::LocalInvocationIndex);
        b_.If(e_.in_grid_ == 0 ? b_.True() : e_.in_grid_, [&] {
            e_.OpenScope();
            // Neighbouring workgroups share the columns, so that those of b stay in a cache.
            const Id m_count = e_.EmitExpr(m_tiles), n_count = e_.EmitExpr(n_tiles);
            const Id rest = b_.UDiv(workgroup, m_count);
            e_.BindFromIndex(product_.batch, b_.UDiv(rest, n_count));
            m_nominal_ = b_.Mul(b_.UMod(workgroup, m_count), e_.U(tile_m_));
            n_nominal_ = b_.Mul(b_.UMod(rest, n_count), e_.U(tile_n_));
            m_first_ = a_.in_place ? NotBehind(m_nominal_, a_.rows - Expr(tile_m_)) : m_nominal_;
            n_first_ = b_operand_.in_place ? NotBehind(n_nominal_, b_operand_.rows - Expr(tile_n_))
                                           : n_nominal_;
            EmitSums();
            EmitEpilogue();
            e_.CloseScope();
        });
        e_.local_size_ = subgroups_ * e_.target_.subgroup_size;
        e_.group_ = {e_.local_size_, 1, 1};
    }

  private:
    // An operand: where its matrices come from.
    struct Operand {
        bool in_place = false;
        TileAccess access;  // of an operand in place
        Expr rows;          // its rows (or columns), with those that only memory has
        Id shared = 0;      // of an operand that is computed
        uint32_t shared_stride = 0;
    };

    void ChooseTiles() {
        const std::optional<TileAccess> a =
            FindTileAccess(e_.kernel_, e_.domain_, product_.a, product_.m, product_.k);
        const std::optional<TileAccess> b =
            FindTileAccess(e_.kernel_, e_.domain_, product_.b, product_.n, product_.k);
        const int64_t m_least = m_.Bounds(e_.domain_.ranges).low;
        const int64_t n_least = n_.Bounds(e_.domain_.ranges).low;
        const int64_t k_least = k_.Bounds(e_.domain_.ranges).low;
        matrix_rows_ = m_least >= 2 * kSide ? 2 : 1;
        matrix_columns_ = n_least >= 4 * kSide ? 4 : n_least >= 2 * kSide ? 2 : 1;
        const auto can_be_in_place = [&](const std::optional<TileAccess>& access, const Expr& rows,
                                         uint32_t tile) {
            const Expr all = access ? access->padded_rows.value_or(rows) : rows;
            return access && k_least >= kSide && all.Bounds(e_.domain_.ranges).low >= tile;
        };
        if (can_be_in_place(a, m_, matrix_rows_ * kSide)) {
            a_ = {true, *a, a->padded_rows.value_or(m_)};
        }
        // Columns whose ks lie side by side would be transposed for each multiplication; in
        // workgroup memory they are once.
        if (can_be_in_place(b, n_, matrix_columns_ * kSide) && !b->unit_depth) {
            b_operand_ = {true, *b, b->padded_rows.value_or(n_)};
        }
        // More rows for each element of b that is computed, more steps for each barrier.
        const std::optional<int64_t> depth = k_.constant();
        const auto choose = [&](uint32_t subgroups, uint32_t steps) {
            const bool exists =
                (subgroups == 1 || m_least >= int64_t{subgroups} * matrix_rows_ * kSide) &&
                (steps == 1 || (depth && *depth >= kSide && *depth / kSide % steps == 0));
            if (!exists) {
                return false;
            }
            subgroups_ = subgroups;
            steps_ = steps;
            tile_m_ = subgroups_ * matrix_rows_ * kSide;
            tile_n_ = matrix_columns_ * kSide;
            return SharedBytes() <= e_.target_.max_workgroup_memory;
        };
        for (uint32_t subgroups = b_operand_.in_place ? 1 : kMaxSubgroups; subgroups > 0;
             subgroups /= 2) {
            for (uint32_t steps = kMaxSteps; steps > 0; --steps) {
                if (choose(subgroups, steps)) {
                    return;
                }
            }
        }
        e_.Reject("its tiles do not fit into the workgroup's memory");
    }

    // Whether the last ks of a sum are fewer than a matrix has.
    bool HasRest() const {
        const std::optional<int64_t> depth = k_.constant();
        return !depth || *depth % kSide != 0;
    }

    // The ks of an operand that workgroup memory holds: those of one iteration, or of the rest.
    uint32_t SharedDepth(const Operand& operand) const {
        return !operand.in_place ? steps_ * kSide : HasRest() ? kSide : 0;
    }

    uint32_t SharedBytes() const {
        return 4 *
               (tile_m_ * SharedDepth(a_) + tile_n_ * SharedDepth(b_operand_) + tile_m_ * tile_n_);
    }

    // The lesser of an index and the last place where a tile begins.
    Id NotBehind(Id first, const Expr& last) {
        const Id limit = e_.EmitExpr(e_.Simplified(last));
        return b_.Select(b_.ULess(limit, first), limit, first);
    }

    Id MatrixType(spv::CooperativeMatrixUse use) {
        return b_.CooperativeMatrix(b_.F32(), kSide, kSide, use);
    }

    Id LoadMatrix(spv::CooperativeMatrixUse use, Id pointer, bool by_rows, Id stride) {
        const auto layout = by_rows ? spv::CooperativeMatrixLayout::RowMajorKHR
                                    : spv::CooperativeMatrixLayout::ColumnMajorKHR;
        return b_.Emit(Op::OpCooperativeMatrixLoadKHR, MatrixType(use),
                       {pointer, e_.U(static_cast<uint32_t>(layout)), stride});
    }

    // A matrix of an operand in place, whose first row (or column, of b) and k are given.
    Id LoadInPlace(const Operand& operand, bool is_a, Id row, Id k) {
        const TileAccess& access = operand.access;
        e_.Bind(access.row, m_ + n_, row);
        e_.Bind(access.depth, k_, k);
        const Id offset = e_.EmitExpr(access.offset);
        e_.Unbind(access.row);
        e_.Unbind(access.depth);
        const Id pointer = b_.ElementPointer(e_.buffers_[access.buffer.value()], offset);
        return LoadMatrix(
            is_a ? spv::CooperativeMatrixUse::MatrixAKHR : spv::CooperativeMatrixUse::MatrixBKHR,
            pointer, access.unit_depth == is_a, e_.EmitExpr(access.stride));
    }

    Id LoadShared(const Operand& operand, bool is_a, Id row, Id k) {
        // a lies as [m][k], b as [k][n].
        const Id outer = is_a ? row : k, inner = is_a ? k : row;
        const Id place = b_.Add(b_.Mul(outer, e_.U(operand.shared_stride)), inner);
        return LoadMatrix(
            is_a ? spv::CooperativeMatrixUse::MatrixAKHR : spv::CooperativeMatrixUse::MatrixBKHR,
            b_.ElementPointer(operand.shared, place), true, e_.U(operand.shared_stride));
    }

    Id SumPointer(uint32_t i) { return b_.ElementPointer(sums_, e_.U(i)); }

    // Multiplies `depth` steps of 16 from k on. What is not in place has been computed.
    void Multiply(Id k, uint32_t steps, bool a_in_place, bool b_in_place) {
        const Id subgroup_row = subgroups_ == 1
                                    ? e_.U(0)
                                    : b_.Mul(b_.UDiv(e_.lane_, e_.U(e_.target_.subgroup_size)),
                                             e_.U(matrix_rows_ * kSide));
        for (uint32_t step = 0; step < steps; ++step) {
            Ids left, right;
            for (uint32_t i = 0; i < matrix_rows_; ++i) {
                const Id row = b_.Add(subgroup_row, e_.U(i * kSide));
                left.push_back(a_in_place ? LoadInPlace(a_, true, b_.Add(m_first_, row),
                                                        b_.Add(k, e_.U(step * kSide)))
                                          : LoadShared(a_, true, row, e_.U(step * kSide)));
            }
            for (uint32_t j = 0; j < matrix_columns_; ++j) {
                const Id column = e_.U(j * kSide);
                right.push_back(b_in_place
                                    ? LoadInPlace(b_operand_, false, b_.Add(n_first_, column),
                                                  b_.Add(k, e_.U(step * kSide)))
                                    : LoadShared(b_operand_, false, column, e_.U(step * kSide)));
            }
            for (uint32_t i = 0; i < matrix_rows_; ++i) {
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

    // Computes an operand's elements for `steps` steps of 16 into workgroup memory. Neighbouring
    // invocations take neighbours in the array's inner dimension.
    void Stage(const Operand& operand, bool is_a, Id k, uint32_t steps) {
        const uint32_t depth = steps * kSide, rows = is_a ? tile_m_ : tile_n_;
        const uint32_t inner = is_a ? depth : rows, outer = is_a ? rows : depth;
        const uint32_t invocations = subgroups_ * e_.target_.subgroup_size;
        // Of the invocations, `across` lie along the inner dimension.
        const uint32_t across = std::min(inner, invocations);
        const uint32_t along = invocations / across;
        const Id inner_lane = along == 1 ? e_.lane_ : b_.UMod(e_.lane_, e_.U(across));
        const Id outer_lane = along == 1 ? e_.U(0) : b_.UDiv(e_.lane_, e_.U(across));
        const Id row_first = is_a ? m_first_ : n_first_;
        const Expr& row_count = is_a ? m_ : n_;
        const std::vector<Loop>& row_loops = is_a ? product_.m : product_.n;
        for (uint32_t part = 0; part < inner; part += across) {
            const Id at_inner = b_.Add(inner_lane, e_.U(part));
            e_.OpenScope();
            const auto bind_row = [&](Id row) {
                const Id index = b_.Add(row_first, row);
                e_.BindFromIndex(row_loops, index);
                return b_.ULess(index, e_.EmitExpr(e_.Simplified(row_count)));
            };
            const auto bind_depth = [&](Id offset) {
                const Id index = b_.Add(k, offset);
                e_.BindFromIndex(product_.k, index);
                return b_.ULess(index, e_.EmitExpr(e_.Simplified(k_)));
            };
            const Id inner_inside = is_a ? bind_depth(at_inner) : bind_row(at_inner);
            b_.For(e_.U(0), e_.U(outer), e_.U(along), {}, [&](Id base, std::span<const Id>) -> Ids {
                const Id at_outer = b_.Add(base, outer_lane);
                e_.OpenScope();
                const Id outer_inside = is_a ? bind_row(at_outer) : bind_depth(at_outer);
                const Ids value = b_.If(
                    b_.And(inner_inside, outer_inside),
                    [&] {
                        e_.OpenScope();
                        Ids computed = {e_.Value(is_a ? product_.a : product_.b)};
                        e_.CloseScope();
                        return computed;
                    },
                    [&] { return Ids{e_.F(0)}; });
                const Id place = b_.Add(b_.Mul(at_outer, e_.U(operand.shared_stride)), at_inner);
                // The last invocations can be behind the end of either dimension.
                const Id in_array =
                    b_.And(b_.ULess(at_outer, e_.U(outer)), b_.ULess(at_inner, e_.U(inner)));
                b_.If(in_array,
                      [&] { b_.Store(b_.ElementPointer(operand.shared, place), value[0]); });
                e_.CloseScope();
                return {};
            });
            e_.CloseScope();
        }
    }

    void EmitStep(Id k, uint32_t steps, bool a_in_place, bool b_in_place) {
        if (!a_in_place) {
            Stage(a_, true, k, steps);
        }
        if (!b_in_place) {
            Stage(b_operand_, false, k, steps);
        }
        if (!a_in_place || !b_in_place) {
            b_.WorkgroupBarrier();
        }
        Multiply(k, steps, a_in_place, b_in_place);
        if (!a_in_place || !b_in_place) {
            b_.WorkgroupBarrier();
        }
    }

    void EmitSums() {
        const std::optional<int64_t> depth = k_.constant();
        if (const uint32_t shared_depth = SharedDepth(a_); shared_depth != 0) {
            a_.shared_stride = shared_depth;
            a_.shared = b_.WorkgroupArray(b_.F32(), tile_m_ * shared_depth);
        }
        if (const uint32_t shared_depth = SharedDepth(b_operand_); shared_depth != 0) {
            b_operand_.shared_stride = tile_n_;
            b_operand_.shared = b_.WorkgroupArray(b_.F32(), tile_n_ * shared_depth);
        }
        const Id type = MatrixType(spv::CooperativeMatrixUse::MatrixAccumulatorKHR);
        const uint32_t count = matrix_rows_ * matrix_columns_;
        sums_ = b_.FunctionArray(type, count);
        const Id zero = e_.F(0);
        for (uint32_t i = 0; i < count; ++i) {
            b_.Store(SumPointer(i), b_.Emit(Op::OpCompositeConstruct, type, {zero}));
        }
        e_.Hoist(e_.Needed(std::vector<ScalarId>{product_.a, product_.b}));
        const Id whole = b_.Mul(b_.UDiv(e_.EmitExpr(e_.Simplified(k_)), e_.U(kSide)), e_.U(kSide));
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

    void EmitEpilogue() {
        const Id results = b_.WorkgroupArray(b_.F32(), tile_m_ * tile_n_);
        const Id type = MatrixType(spv::CooperativeMatrixUse::MatrixAccumulatorKHR);
        const Id subgroup_row = subgroups_ == 1
                                    ? e_.U(0)
                                    : b_.Mul(b_.UDiv(e_.lane_, e_.U(e_.target_.subgroup_size)),
                                             e_.U(matrix_rows_ * kSide));
        for (uint32_t i = 0; i < matrix_rows_; ++i) {
            for (uint32_t j = 0; j < matrix_columns_; ++j) {
                const Id sum = b_.Emit(Op::OpLoad, type, {SumPointer(i * matrix_columns_ + j)});
                const Id row = b_.Add(subgroup_row, e_.U(i * kSide));
                const Id place = b_.Add(b_.Mul(row, e_.U(tile_n_)), e_.U(j * kSide));
                const auto layout =
                    e_.U(static_cast<uint32_t>(spv::CooperativeMatrixLayout::RowMajorKHR));
                b_.EmitVoid(Op::OpCooperativeMatrixStoreKHR,
                            {b_.ElementPointer(results, place), sum, layout, e_.U(tile_n_)});
            }
        }
        b_.WorkgroupBarrier();
        const uint32_t invocations = subgroups_ * e_.target_.subgroup_size;
        const uint32_t across = std::min(tile_n_, invocations);
        const uint32_t along = invocations / across;
        const Id column_lane = along == 1 ? e_.lane_ : b_.UMod(e_.lane_, e_.U(across));
        const Id row_lane = along == 1 ? e_.U(0) : b_.UDiv(e_.lane_, e_.U(across));
        for (uint32_t part = 0; part < tile_n_; part += across) {
            const Id column = b_.Add(column_lane, e_.U(part));
            const Id n = b_.Add(n_first_, column);
            const Id n_inside = Between(n_nominal_, n, n_);
            e_.OpenScope();
            e_.BindFromIndex(product_.n, n);
            b_.For(e_.U(0), e_.U(tile_m_), e_.U(along), {},
                   [&](Id base, std::span<const Id>) -> Ids {
                       const Id row = b_.Add(base, row_lane);
                       const Id m = b_.Add(m_first_, row);
                       b_.If(b_.And(n_inside, Between(m_nominal_, m, m_)), [&] {
                           e_.OpenScope();
                           e_.BindFromIndex(product_.m, m);
                           const Id place = b_.Add(b_.Mul(row, e_.U(tile_n_)), column);
                           const Id sum = b_.Load(b_.ElementPointer(results, place));
                           e_.scopes_.back().emplace(product_.sum.value(), sum);
                           std::vector<const Store*> stores;
                           for (const Store& store : e_.kernel_.stores) {
                               stores.push_back(&store);
                           }
                           e_.EmitStores(stores);
                           e_.CloseScope();
                       });
                       return {};
                   });
            e_.CloseScope();
        }
    }

    // Whether first <= index < end.
    Id Between(Id first, Id index, const Expr& end) {
        const Id below = b_.ULess(index, e_.EmitExpr(e_.Simplified(end)));
        return first == index ? below : b_.And(below, b_.Not(b_.ULess(index, first)));
    }

    Emitter& e_;
    spirv::ModuleBuilder& b_;
    const Product& product_;
    Expr m_, n_, k_;
    Operand a_, b_operand_;
    uint32_t matrix_rows_ = 1, matrix_columns_ = 1, subgroups_ = 1, steps_ = 1;
    uint32_t tile_m_ = kSide, tile_n_ = kSide;
    Id m_nominal_ = 0, n_nominal_ = 0;  // where the tile's own rows and columns begin
    Id m_first_ = 0, n_first_ = 0;      // where the tile begins
    Id sums_ = 0;
};

bool Emitter::EmitProduct() {
    if (kernel_.mapping != Mapping::kProduct) {
        return false;
    }
    const std::optional<Product> product = FindProduct(kernel_, scope_);
    if (!product) {
        return false;
    }
    for (const ScalarNode& node : kernel_.scalars) {
        const auto* load = std::get_if<Load>(&node.value);
        if (load != nullptr && kernel_[load->buffer].written) {
            return false;
        }
    }
    if (EmitByteProduct(*product)) {
        return true;
    }
    if (HasFewRows(kernel_, scope_, *product)) {
        EmitFewRows(*product);
        return true;
    }
    if (!target_.matrices_f32 || kernel_[product->sum].type != ElementType::kF32) {
        return false;
    }
    ProductEmitter(*this, *product).Run();
    return true;
}

}  // namespace fornax::graph::loop
