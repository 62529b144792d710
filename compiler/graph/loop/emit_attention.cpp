// Attention: scores that nobody keeps, in one pass over the keys.
//
// A workgroup of one subgroup takes a tile of queries. For each tile of keys it multiplies keys by
// queries, so that the scores of a query lie along a column; each invocation has a query, and finds
// the greatest score so far, the exponentials and their sum. What was summed up with a smaller
// maximum is scaled before the tile's values, times the exponentials, are added. Operands of the
// products are loaded as matrices where they lie, if they lie so; those of a tile that is not whole
// and all others are computed into workgroup memory, with 0 where there is nothing.
//
// Devices without matrices of f32 give each query to an invocation, key after key.
#include <algorithm>
#include <limits>

#include <spirv/unified1/GLSL.std.450.h>

#include "compiler/graph/loop/attention.h"
#include "compiler/graph/loop/emitter.h"
#include "compiler/graph/loop/product_tiles.h"

namespace fornax::graph::loop {

using spv::Op;

namespace {

constexpr uint32_t kSide = 16;  // of a matrix
constexpr uint32_t kMostKeys = 64;
constexpr uint32_t kMostQueries = 32;
constexpr uint32_t kSteps = 4;  // that are multiplied at once
constexpr uint32_t kSerialSize = 64;
constexpr uint32_t kMaxSharedFloats = 12 * 1024;  // most devices have more

Expr PointsOf(std::span<const Loop> loops) {
    Expr points(1);
    for (const Loop& loop : loops) {
        points *= loop.extent;
    }
    return points;
}

uint32_t WholeMatrices(int64_t count) {
    return static_cast<uint32_t>((count + kSide - 1) / kSide * kSide);
}

}  // namespace

// Emits one attention; the state that its parts share.
class AttentionEmitter {
  public:
    AttentionEmitter(Emitter& emitter, const Attention& attention)
        : e_(emitter),
          b_(emitter.b_),
          attention_(attention),
          m_(PointsOf(attention.m)),
          n_(static_cast<uint32_t>(*PointsOf(attention.n).constant())),
          depth_(static_cast<uint32_t>(*PointsOf(attention.depth).constant())),
          keys_(attention.keys.extent),
          whole_depth_(WholeMatrices(depth_)),
          whole_n_(WholeMatrices(n_)) {
        for (const std::vector<Loop>* loops : {&attention.batch, &attention.m}) {
            for (const Loop& loop : *loops) {
                row_variables_ |= VariableSet{1} << *e_.scope_.Find(loop.variable);
            }
        }
    }

    // False if the tiles do not fit into workgroup memory.
    bool RunTiles() {
        if (!ChooseTiles()) {
            return false;
        }
        const Expr tiles = CeilDiv(m_, tile_m_).Simplify(e_.domain_);
        const Id workgroup = e_.WorkgroupIndex(PointsOf(attention_.batch) * tiles);
        e_.lane_ = b_.BuiltIn(spv::BuiltIn::LocalInvocationIndex);
        b_.If(e_.in_grid_ == 0 ? b_.True() : e_.in_grid_, [&] {
            e_.OpenScope();
            const Id count = e_.EmitExpr(tiles);
            e_.BindFromIndex(attention_.batch, b_.UDiv(workgroup, count));
            m_first_ = b_.Mul(b_.UMod(workgroup, count), e_.U(tile_m_));
            Declare();
            Begin();
            EmitKeys();
            EmitResults();
            e_.CloseScope();
        });
        e_.local_size_ = e_.target_.subgroup_size;
        e_.group_ = {e_.local_size_, 1, 1};
        return true;
    }

    void RunSerially() {
        const Expr chunks = CeilDiv(m_, kSerialSize).Simplify(e_.domain_);
        const Id workgroup = e_.WorkgroupIndex(PointsOf(attention_.batch) * chunks);
        e_.lane_ = b_.BuiltIn(spv::BuiltIn::LocalInvocationIndex);
        const Id count = e_.EmitExpr(chunks);
        const Id m = b_.Add(b_.Mul(b_.UMod(workgroup, count), e_.U(kSerialSize)), e_.lane_);
        const Id inside = b_.ULess(m, e_.EmitExpr(e_.Simplified(m_)));
        b_.If(e_.in_grid_ == 0 ? inside : b_.And(inside, e_.in_grid_), [&] {
            e_.OpenScope();
            e_.BindFromIndex(attention_.batch, b_.UDiv(workgroup, count));
            EmitSerial(m);
            e_.CloseScope();
        });
        e_.local_size_ = kSerialSize;
        e_.group_ = {kSerialSize, 1, 1};
    }

  private:
    bool ChooseTiles() {
        tile_m_ = m_.Bounds(e_.domain_.ranges).high > kSide ? kMostQueries : kSide;
        const int64_t most_keys = keys_.Bounds(e_.domain_.ranges).high;
        tile_keys_ =
            most_keys >= kMostKeys ? kMostKeys : WholeMatrices(std::max<int64_t>(most_keys, 1));
        key_access_ = FindTileAccess(e_.kernel_, e_.domain_, attention_.key, {&attention_.keys, 1},
                                     attention_.depth);
        if (whole_depth_ != depth_) {
            key_access_.reset();
        }
        value_access_ = FindTileAccess(e_.kernel_, e_.domain_, attention_.value, attention_.n,
                                       {&attention_.keys, 1});
        if (whole_n_ != n_ || (value_access_ && value_access_->padded_rows)) {
            value_access_.reset();
        }
        const std::optional<int64_t> count = keys_.constant();
        rest_keys_ = count ? static_cast<uint32_t>(*count % tile_keys_) : tile_keys_;
        // Tiles of fewer keys until all arrays fit.
        for (; tile_keys_ >= kSide; tile_keys_ -= kSide) {
            rest_keys_ = count ? static_cast<uint32_t>(*count % tile_keys_) : tile_keys_;
            if (SharedFloats() <= kMaxSharedFloats) {
                return true;
            }
        }
        return false;
    }

    // The keys of the largest tile of which an operand is computed.
    uint32_t StagedKeys(bool in_place) const {
        return in_place ? WholeMatrices(rest_keys_) : tile_keys_;
    }
    // What is computed of keys, and of values, and at last the results, have one array.
    uint32_t StagedFloats() const {
        return std::max({StagedKeys(key_access_.has_value()) * whole_depth_ +
                             StagedKeys(value_access_.has_value()) * whole_n_,
                         whole_n_ * tile_m_});
    }
    uint32_t SharedFloats() const {
        return (whole_depth_ + tile_keys_ + kSide + 2) * tile_m_ + StagedFloats();
    }

    void Declare() {
        const Id type = b_.F32();
        queries_ = b_.WorkgroupArray(type, whole_depth_ * tile_m_);
        scores_ = b_.WorkgroupArray(type, tile_keys_ * tile_m_);
        factors_ = b_.WorkgroupArray(type, kSide * tile_m_);
        greatest_ = b_.WorkgroupArray(type, tile_m_);
        denominators_ = b_.WorkgroupArray(type, tile_m_);
        staged_ = b_.WorkgroupArray(type, StagedFloats());
        values_at_ = StagedKeys(key_access_.has_value()) * whole_depth_;
    }

    // --- Matrices

    Id MatrixType(spv::CooperativeMatrixUse use) {
        return b_.CooperativeMatrix(b_.F32(), kSide, kSide, use);
    }
    Id SumType() { return MatrixType(spv::CooperativeMatrixUse::MatrixAccumulatorKHR); }

    Id LoadMatrix(spv::CooperativeMatrixUse use, Id pointer, bool by_rows, Id stride) {
        const auto layout = by_rows ? spv::CooperativeMatrixLayout::RowMajorKHR
                                    : spv::CooperativeMatrixLayout::ColumnMajorKHR;
        return b_.Emit(Op::OpCooperativeMatrixLoadKHR, MatrixType(use),
                       {pointer, e_.U(static_cast<uint32_t>(layout)), stride});
    }

    Id LoadInPlace(const TileAccess& access, Id row, Id depth) {
        e_.Bind(access.row, Expr(INT32_MAX), row);
        e_.Bind(access.depth, Expr(INT32_MAX), depth);
        const Id offset = e_.EmitExpr(access.offset);
        e_.Unbind(access.row);
        e_.Unbind(access.depth);
        const Id pointer = b_.ElementPointer(e_.buffers_[access.buffer.value()], offset);
        return LoadMatrix(spv::CooperativeMatrixUse::MatrixAKHR, pointer, access.unit_depth,
                          e_.EmitExpr(access.stride));
    }

    // Of an array of rows of `width` floats.
    Id LoadShared(spv::CooperativeMatrixUse use,
                  Id array,
                  uint32_t place,
                  uint32_t width,
                  bool by_rows = true) {
        return LoadMatrix(use, b_.ElementPointer(array, e_.U(place)), by_rows, e_.U(width));
    }

    void StoreShared(Id array, uint32_t place, uint32_t width, Id matrix) {
        const auto layout = e_.U(static_cast<uint32_t>(spv::CooperativeMatrixLayout::RowMajorKHR));
        b_.EmitVoid(Op::OpCooperativeMatrixStoreKHR,
                    {b_.ElementPointer(array, e_.U(place)), matrix, layout, e_.U(width)});
    }

    void Clear(Id sums, uint32_t count) {
        const Id zero = e_.F(0);
        for (uint32_t i = 0; i < count; ++i) {
            b_.Store(b_.ElementPointer(sums, e_.U(i)),
                     b_.Emit(Op::OpCompositeConstruct, SumType(), {zero}));
        }
    }

    // sums += a * b, of rows x depth and depth x tile_m matrices. `load` gives a's (row, depth).
    template <typename Load>
    void Multiply(Id sums, uint32_t rows, uint32_t depth, Id b, const Load& load) {
        const uint32_t columns = tile_m_ / kSide;
        for (uint32_t first = 0; first < depth; first += kSteps * kSide) {
            for (uint32_t k = first; k < std::min(depth, first + kSteps * kSide); k += kSide) {
                Ids left, right;
                for (uint32_t row = 0; row < rows; row += kSide) {
                    left.push_back(load(row, k));
                }
                for (uint32_t j = 0; j < columns; ++j) {
                    right.push_back(LoadShared(spv::CooperativeMatrixUse::MatrixBKHR, b,
                                               k * tile_m_ + j * kSide, tile_m_));
                }
                for (uint32_t i = 0; i < left.size(); ++i) {
                    for (uint32_t j = 0; j < columns; ++j) {
                        const Id pointer = b_.ElementPointer(sums, e_.U(i * columns + j));
                        const Id sum = b_.Emit(Op::OpLoad, SumType(), {pointer});
                        b_.Store(pointer, b_.Emit(Op::OpCooperativeMatrixMulAddKHR, SumType(),
                                                  {left[i], right[j], sum}));
                    }
                }
            }
        }
    }

    // --- What is computed into workgroup memory

    // Calls `store` with each (row, column), in bounds of the array; neighbouring invocations have
    // neighbouring columns.
    template <typename Body>
    void ForEach(uint32_t rows, uint32_t columns, const Body& body) {
        const uint32_t invocations = e_.target_.subgroup_size;
        const Id end = e_.U(rows * columns);
        b_.For(e_.U(0), end, e_.U(invocations), {}, [&](Id base, std::span<const Id>) -> Ids {
            const Id index = b_.Add(base, e_.lane_);
            const auto point = [&] {
                e_.OpenScope();
                body(b_.UDiv(index, e_.U(columns)), b_.UMod(index, e_.U(columns)));
                e_.CloseScope();
            };
            b_.If(rows * columns % invocations == 0 ? b_.True() : b_.ULess(index, end), point);
            return {};
        });
    }

    Id ValueOrZero(Id inside, ScalarId scalar) {
        return b_.If(
            inside,
            [&] {
                e_.OpenScope();
                Ids value = {e_.Value(scalar)};
                e_.CloseScope();
                return value;
            },
            [&] { return Ids{e_.F(0)}; })[0];
    }

    // A sum over no keys is 0, whatever its terms would be.
    Id FirstDenominator() {
        const Id keys = e_.EmitExpr(e_.Simplified(keys_));
        return b_.Select(b_.ULess(e_.U(0), keys), e_.F(0), e_.F(1));
    }

    void Unbind(std::span<const Loop> loops) {
        for (const Loop& loop : loops) {
            e_.Unbind(loop.variable);
        }
    }

    // Emits what the score needs of its row, before the loop over the keys.
    void HoistRow() {
        std::vector<bool> needed = e_.Needed({&attention_.score, 1});
        const std::vector<bool> products = e_.Needed({&attention_.product, 1});
        for (size_t i = 0; i < needed.size(); ++i) {
            needed[i] = needed[i] && !products[i];
        }
        e_.Hoist(needed);
    }

    Id Below(Id index, const Expr& end) { return b_.ULess(index, e_.EmitExpr(e_.Simplified(end))); }

    // The queries, one along a column; no maximum yet.
    void Begin() {
        ForEach(tile_m_, whole_depth_, [&](Id query, Id k) {
            const Id m = b_.Add(m_first_, query);
            e_.BindFromIndex(attention_.m, m);
            e_.BindFromIndex(attention_.depth, k);
            const Id inside = b_.And(Below(m, m_), Below(k, Expr(depth_)));
            const Id value = ValueOrZero(inside, attention_.query);
            b_.Store(b_.ElementPointer(queries_, b_.Add(b_.Mul(k, e_.U(tile_m_)), query)), value);
            Unbind(attention_.depth);
        });
        ForEach(1, tile_m_, [&](Id, Id query) {
            b_.Store(b_.ElementPointer(greatest_, query),
                     e_.F(-std::numeric_limits<float>::infinity()));
            b_.Store(b_.ElementPointer(denominators_, query), FirstDenominator());
        });
        sums_ = b_.FunctionArray(SumType(), whole_n_ / kSide * (tile_m_ / kSide));
        products_ = b_.FunctionArray(SumType(), tile_keys_ / kSide * (tile_m_ / kSide));
        Clear(sums_, whole_n_ / kSide * (tile_m_ / kSide));
        b_.WorkgroupBarrier();
    }

    // [keys][columns] of an operand from key `first` on, `count` of them.
    void Stage(ScalarId operand,
               std::span<const Loop> column_loops,
               uint32_t columns,
               uint32_t whole_columns,
               uint32_t place,
               Id first,
               Id count,
               uint32_t tile_keys) {
        ForEach(tile_keys, whole_columns, [&](Id key, Id column) {
            e_.Bind(attention_.keys.variable, keys_, b_.Add(first, key));
            e_.BindFromIndex(column_loops, column);
            const Id inside = b_.And(b_.ULess(key, count), Below(column, Expr(columns)));
            const Id value = ValueOrZero(inside, operand);
            const Id at = b_.Add(b_.Mul(key, e_.U(whole_columns)), b_.Add(column, e_.U(place)));
            b_.Store(b_.ElementPointer(staged_, at), value);
            e_.Unbind(attention_.keys.variable);
            Unbind(column_loops);
        });
    }

    // --- Tiles of keys

    void EmitKeys() {
        const std::optional<int64_t> constant = keys_.constant();
        const Id all = e_.EmitExpr(e_.Simplified(keys_));
        const Id whole = b_.Mul(b_.UDiv(all, e_.U(tile_keys_)), e_.U(tile_keys_));
        if (!constant || *constant >= tile_keys_) {
            b_.For(e_.U(0), whole, e_.U(tile_keys_), {}, [&](Id first, std::span<const Id>) -> Ids {
                e_.OpenScope();
                EmitTile(first, e_.U(tile_keys_), tile_keys_, key_access_.has_value(),
                         value_access_.has_value());
                e_.CloseScope();
                return {};
            });
        }
        if (rest_keys_ != 0) {
            const Id rest = b_.Sub(all, whole);
            b_.If(b_.ULess(e_.U(0), rest), [&] {
                e_.OpenScope();
                EmitTile(whole, rest, WholeMatrices(rest_keys_), false, false);
                e_.CloseScope();
            });
        }
    }

    void EmitTile(Id first,
                  Id count,
                  uint32_t tile_keys,
                  bool keys_in_place,
                  bool values_in_place) {
        if (!keys_in_place) {
            Stage(attention_.key, attention_.depth, depth_, whole_depth_, 0, first, count,
                  tile_keys);
        }
        if (!values_in_place) {
            Stage(attention_.value, attention_.n, n_, whole_n_, values_at_, first, count,
                  tile_keys);
        }
        if (!keys_in_place || !values_in_place) {
            b_.WorkgroupBarrier();
        }
        const uint32_t columns = tile_m_ / kSide;
        Clear(products_, tile_keys / kSide * columns);
        constexpr auto kA = spv::CooperativeMatrixUse::MatrixAKHR;
        Multiply(products_, tile_keys, whole_depth_, queries_, [&](uint32_t key, uint32_t k) {
            return keys_in_place ? LoadInPlace(*key_access_, b_.Add(first, e_.U(key)), e_.U(k))
                                 : LoadShared(kA, staged_, key * whole_depth_ + k, whole_depth_);
        });
        for (uint32_t i = 0; i < tile_keys / kSide; ++i) {
            for (uint32_t j = 0; j < columns; ++j) {
                const Id pointer = b_.ElementPointer(products_, e_.U(i * columns + j));
                StoreShared(scores_, i * kSide * tile_m_ + j * kSide, tile_m_,
                            b_.Emit(Op::OpLoad, SumType(), {pointer}));
            }
        }
        b_.WorkgroupBarrier();
        EmitSoftmax(first, count, tile_keys);
        b_.WorkgroupBarrier();
        for (uint32_t j = 0; j < columns; ++j) {
            const Id factor = LoadShared(spv::CooperativeMatrixUse::MatrixAccumulatorKHR, factors_,
                                         j * kSide, tile_m_);
            for (uint32_t i = 0; i < whole_n_ / kSide; ++i) {
                const Id pointer = b_.ElementPointer(sums_, e_.U(i * columns + j));
                const Id sum = b_.Emit(Op::OpLoad, SumType(), {pointer});
                b_.Store(pointer, b_.Emit(Op::OpFMul, SumType(), {sum, factor}));
            }
        }
        Multiply(sums_, whole_n_, tile_keys, scores_, [&](uint32_t n, uint32_t key) {
            return values_in_place
                       ? LoadInPlace(*value_access_, e_.U(n), b_.Add(first, e_.U(key)))
                       : LoadShared(kA, staged_, values_at_ + key * whole_n_ + n, whole_n_, false);
        });
        b_.WorkgroupBarrier();
    }

    // --- The softmax

    Id Exp(Id x) {
        const Ids arguments = {x};
        return e_.Function(ScalarFunction::kExp, ElementType::kF32, arguments);
    }
    // NaN may or may not win: its exponential makes the sum NaN anyway.
    Id Greater(Id a, Id b) { return b_.Ext(b_.F32(), GLSLstd450FMax, {a, b}); }
    // What is subtracted from scores. While all are -inf that is 0, so that their exponentials are
    // 0; if they all stay -inf the sum is 0 and the result 0 / 0, as by the definition.
    Id Subtracted(Id greatest) {
        const Id never = e_.F(-std::numeric_limits<float>::infinity());
        return b_.Select(e_.Test(Op::OpFOrdEqual, greatest, never), e_.F(0), greatest);
    }

    // The scores of the keys of a tile become exponentials.
    void EmitSoftmax(Id first, Id count, uint32_t tile_keys) {
        const VariableSet saved = e_.bound_variables_;
        ForEach(1, tile_m_, [&](Id, Id query) {
            const Id old = b_.Load(b_.ElementPointer(greatest_, query));
            BindRow(b_.Add(m_first_, query));
            HoistRow();
            const auto at = [&](Id key) {
                return b_.ElementPointer(scores_, b_.Add(b_.Mul(key, e_.U(tile_m_)), query));
            };
            const Ids initial = {old};
            const Id greatest = b_.For(
                e_.U(0), count, e_.U(1), initial, [&](Id key, std::span<const Id> carried) -> Ids {
                    e_.OpenScope();
                    e_.Bind(attention_.keys.variable, keys_, b_.Add(first, key));
                    e_.scopes_.back().emplace(attention_.product.value(), b_.Load(at(key)));
                    const Id score = e_.Value(attention_.score);
                    b_.Store(at(key), score);
                    e_.Unbind(attention_.keys.variable);
                    e_.CloseScope();
                    return {Greater(carried[0], score)};
                })[0];
            const Id subtracted = Subtracted(greatest);
            const Ids zero = {e_.F(0)};
            const Id sum = b_.For(
                e_.U(0), count, e_.U(1), zero, [&](Id key, std::span<const Id> carried) -> Ids {
                    const Id power = Exp(e_.Binary(Op::OpFSub, b_.Load(at(key)), subtracted));
                    b_.Store(at(key), power);
                    return {e_.Binary(Op::OpFAdd, carried[0], power)};
                })[0];
            b_.For(count, e_.U(tile_keys), e_.U(1), {}, [&](Id key, std::span<const Id>) -> Ids {
                b_.Store(at(key), e_.F(0));
                return {};
            });
            const Id factor = Exp(e_.Binary(Op::OpFSub, old, subtracted));
            const Id pointer = b_.ElementPointer(denominators_, query);
            const Id before = e_.Binary(Op::OpFMul, b_.Load(pointer), factor);
            b_.Store(pointer, e_.Binary(Op::OpFAdd, before, sum));
            b_.Store(b_.ElementPointer(greatest_, query), greatest);
            for (uint32_t i = 0; i < kSide; ++i) {
                b_.Store(b_.ElementPointer(factors_, b_.Add(query, e_.U(i * tile_m_))), factor);
            }
        });
        e_.bound_variables_ = saved;
    }

    // Queries behind the last one compute what the last one does: no load may leave its buffer.
    void BindRow(Id m) {
        const Id last = b_.Sub(e_.EmitExpr(e_.Simplified(m_)), e_.U(1));
        e_.BindFromIndex(attention_.m, b_.Select(b_.ULess(m, last), m, last));
        e_.bound_variables_ |= row_variables_;
    }

    // --- The results

    void EmitResults() {
        const uint32_t columns = tile_m_ / kSide;
        for (uint32_t i = 0; i < whole_n_ / kSide; ++i) {
            for (uint32_t j = 0; j < columns; ++j) {
                const Id pointer = b_.ElementPointer(sums_, e_.U(i * columns + j));
                StoreShared(staged_, i * kSide * tile_m_ + j * kSide, tile_m_,
                            b_.Emit(Op::OpLoad, SumType(), {pointer}));
            }
        }
        const VariableSet saved = e_.bound_variables_;
        if (attention_.none.valid()) {
            // A sum of exponentials is never less than 0.
            ForEach(1, tile_m_, [&](Id, Id query) {
                BindRow(b_.Add(m_first_, query));
                b_.If(e_.Value(attention_.none),
                      [&] { b_.Store(b_.ElementPointer(denominators_, query), e_.F(-1)); });
            });
        }
        e_.bound_variables_ = saved;
        b_.WorkgroupBarrier();
        ForEach(tile_m_, n_, [&](Id query, Id n) {
            const Id m = b_.Add(m_first_, query);
            b_.If(Below(m, m_), [&] {
                e_.OpenScope();
                e_.BindFromIndex(attention_.m, m);
                e_.BindFromIndex(attention_.n, n);
                const Id place = b_.Add(b_.Mul(n, e_.U(tile_m_)), query);
                EmitStores(b_.Load(b_.ElementPointer(staged_, place)),
                           b_.Load(b_.ElementPointer(denominators_, query)));
                Unbind(attention_.n);
                e_.CloseScope();
            });
        });
    }

    // A denominator below 0 is that of a row without keys.
    void EmitStores(Id sum, Id denominator) {
        Id result = e_.Binary(Op::OpFDiv, sum, denominator);
        if (attention_.none.valid()) {
            result = b_.Select(e_.Test(Op::OpFOrdLessThan, denominator, e_.F(0)), e_.F(0), result);
        }
        e_.scopes_.back().emplace(attention_.sum.value(), result);
        std::vector<const Store*> stores;
        for (const Store& store : e_.kernel_.stores) {
            stores.push_back(&store);
        }
        e_.EmitStores(stores);
    }

    // --- One query an invocation

    void EmitSerial(Id m) {
        const VariableSet saved = e_.bound_variables_;
        e_.BindFromIndex(attention_.m, m);
        e_.bound_variables_ |= row_variables_;
        HoistRow();
        const Id sums = b_.FunctionArray(b_.F32(), n_);
        const auto for_n = [&](const std::function<void(Id)>& body) {
            b_.For(e_.U(0), e_.U(n_), e_.U(1), {}, [&](Id n, std::span<const Id>) -> Ids {
                e_.OpenScope();
                e_.BindFromIndex(attention_.n, n);
                body(b_.ElementPointer(sums, n));
                Unbind(attention_.n);
                e_.CloseScope();
                return {};
            });
        };
        for_n([&](Id pointer) { b_.Store(pointer, e_.F(0)); });
        const Ids initial = {e_.F(-std::numeric_limits<float>::infinity()), FirstDenominator()};
        const VariableSet key_variable = VariableSet{1}
                                         << *e_.scope_.Find(attention_.keys.variable);
        const Ids last = b_.For(
            e_.U(0), e_.EmitExpr(e_.Simplified(keys_)), e_.U(1), initial,
            [&](Id key, std::span<const Id> carried) -> Ids {
                e_.OpenScope();
                e_.Bind(attention_.keys.variable, keys_, key);
                e_.bound_variables_ |= key_variable;
                const Id score = e_.Value(attention_.score);
                const Id greatest = Greater(carried[0], score);
                const Id subtracted = Subtracted(greatest);
                const Id factor = Exp(e_.Binary(Op::OpFSub, carried[0], subtracted));
                const Id power = Exp(e_.Binary(Op::OpFSub, score, subtracted));
                for_n([&](Id pointer) {
                    const Id before = e_.Binary(Op::OpFMul, b_.Load(pointer), factor);
                    const Id value = e_.Binary(Op::OpFMul, power, e_.Value(attention_.value));
                    b_.Store(pointer, e_.Binary(Op::OpFAdd, before, value));
                });
                const Id sum =
                    e_.Binary(Op::OpFAdd, e_.Binary(Op::OpFMul, carried[1], factor), power);
                e_.bound_variables_ &= ~key_variable;
                e_.Unbind(attention_.keys.variable);
                e_.CloseScope();
                return {greatest, sum};
            });
        Id denominator = last[1];
        if (attention_.none.valid()) {
            denominator = b_.Select(e_.Value(attention_.none), e_.F(-1), denominator);
        }
        e_.bound_variables_ = saved;
        for_n([&](Id pointer) { EmitStores(b_.Load(pointer), denominator); });
    }

    Emitter& e_;
    spirv::ModuleBuilder& b_;
    const Attention& attention_;
    Expr m_;
    uint32_t n_, depth_;
    Expr keys_;
    uint32_t whole_depth_, whole_n_;  // with rows and columns that matrices have and operands not
    VariableSet row_variables_ = 0;
    uint32_t tile_m_ = kMostQueries, tile_keys_ = kMostKeys;
    uint32_t rest_keys_ = 0;  // of the last tile, at most
    std::optional<TileAccess> key_access_, value_access_;
    Id m_first_ = 0;
    // In workgroup memory: [depth][query], [key][query], 16 equal rows of factors of the sums so
    // far, one number a query, and what is computed of keys [key][depth] and values [key][n].
    Id queries_ = 0, scores_ = 0, factors_ = 0, greatest_ = 0, denominators_ = 0, staged_ = 0;
    uint32_t values_at_ = 0;      // in staged_
    Id sums_ = 0, products_ = 0;  // private arrays of matrices
};

bool Emitter::EmitAttention() {
    if (kernel_.mapping != Mapping::kAttention) {
        return false;
    }
    const std::optional<Attention> attention = FindAttention(kernel_, scope_);
    if (!attention) {
        return false;
    }
    for (const ScalarNode& node : kernel_.scalars) {
        const auto* load = std::get_if<Load>(&node.value);
        if (load != nullptr && kernel_[load->buffer].written) {
            return false;
        }
    }
    AttentionEmitter emitter(*this, *attention);
    if (!target_.matrices_f32 || !emitter.RunTiles()) {
        emitter.RunSerially();
    }
    return true;
}

}  // namespace fornax::graph::loop
