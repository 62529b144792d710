// Tiles of an attention (emit_attention.h).
#include "compiler/graph/loop/emit_attention.h"

#include <algorithm>
#include <limits>

namespace fornax::graph::loop {

using spv::Op;

namespace {

constexpr uint32_t kSteps = 4;  // that are multiplied at once

uint32_t WholeMatrices(int64_t count) {
    constexpr int64_t kSide = AttentionEmitter::kSide;
    return static_cast<uint32_t>((count + kSide - 1) / kSide * kSide);
}

}  // namespace

AttentionEmitter::AttentionEmitter(Emitter& emitter, const Attention& attention)
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

bool AttentionEmitter::RunTiles() {
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

bool AttentionEmitter::ChooseTiles() {
    const int64_t most_keys = keys_.Bounds(e_.domain_.ranges).high;
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
    // Tiles of fewer keys, then of fewer queries, until all arrays fit.
    const uint32_t queries = m_.Bounds(e_.domain_.ranges).high > kSide ? kMostQueries : kSide;
    const uint32_t keys =
        most_keys >= kMostKeys ? kMostKeys : WholeMatrices(std::max<int64_t>(most_keys, 1));
    const uint32_t most_floats = e_.target_.max_workgroup_memory / sizeof(float);
    for (tile_m_ = queries; tile_m_ >= kSide; tile_m_ -= kSide) {
        for (tile_keys_ = keys; tile_keys_ >= kSide; tile_keys_ -= kSide) {
            // A symbolic number of keys may be known to be divisible.
            const std::optional<int64_t> rest =
                Mod(keys_, tile_keys_).Simplify(e_.domain_).constant();
            rest_keys_ = rest ? static_cast<uint32_t>(*rest) : tile_keys_;
            if (SharedFloats() <= most_floats) {
                return true;
            }
        }
    }
    return false;
}

uint32_t AttentionEmitter::StagedKeys(bool in_place) const {
    return in_place ? WholeMatrices(rest_keys_) : tile_keys_;
}

uint32_t AttentionEmitter::StagedFloats() const {
    return std::max({StagedKeys(key_access_.has_value()) * whole_depth_ +
                         StagedKeys(value_access_.has_value()) * whole_n_,
                     whole_n_ * tile_m_});
}

uint32_t AttentionEmitter::SharedFloats() const {
    return (whole_depth_ + tile_keys_ + kSide + 2) * tile_m_ + StagedFloats();
}

void AttentionEmitter::Declare() {
    const Id type = b_.F32();
    queries_ = b_.WorkgroupArray(type, whole_depth_ * tile_m_);
    scores_ = b_.WorkgroupArray(type, tile_keys_ * tile_m_);
    factors_ = b_.WorkgroupArray(type, kSide * tile_m_);
    greatest_ = b_.WorkgroupArray(type, tile_m_);
    denominators_ = b_.WorkgroupArray(type, tile_m_);
    staged_ = b_.WorkgroupArray(type, StagedFloats());
    values_at_ = StagedKeys(key_access_.has_value()) * whole_depth_;
}

Id AttentionEmitter::MatrixType(spv::CooperativeMatrixUse use) {
    return b_.CooperativeMatrix(b_.F32(), kSide, kSide, use);
}

Id AttentionEmitter::LoadMatrix(spv::CooperativeMatrixUse use,
                                Id pointer,
                                bool by_rows,
                                Id stride) {
    const auto layout = by_rows ? spv::CooperativeMatrixLayout::RowMajorKHR
                                : spv::CooperativeMatrixLayout::ColumnMajorKHR;
    return b_.Emit(Op::OpCooperativeMatrixLoadKHR, MatrixType(use),
                   {pointer, e_.U(static_cast<uint32_t>(layout)), stride});
}

Id AttentionEmitter::LoadInPlace(const TileAccess& access, Id row, Id depth) {
    e_.Bind(access.row, Expr(INT32_MAX), row);
    e_.Bind(access.depth, Expr(INT32_MAX), depth);
    const Id offset = e_.EmitExpr(access.offset);
    e_.Unbind(access.row);
    e_.Unbind(access.depth);
    const Id pointer = b_.ElementPointer(e_.buffers_[access.buffer.value()], offset);
    return LoadMatrix(spv::CooperativeMatrixUse::MatrixAKHR, pointer, access.unit_depth,
                      e_.EmitExpr(access.stride));
}

Id AttentionEmitter::LoadShared(spv::CooperativeMatrixUse use,
                                Id array,
                                uint32_t place,
                                uint32_t width,
                                bool by_rows) {
    return LoadMatrix(use, b_.ElementPointer(array, e_.U(place)), by_rows, e_.U(width));
}

void AttentionEmitter::StoreShared(Id array, uint32_t place, uint32_t width, Id matrix) {
    const auto layout = e_.U(static_cast<uint32_t>(spv::CooperativeMatrixLayout::RowMajorKHR));
    b_.EmitVoid(Op::OpCooperativeMatrixStoreKHR,
                {b_.ElementPointer(array, e_.U(place)), matrix, layout, e_.U(width)});
}

void AttentionEmitter::Clear(Id sums, uint32_t count) {
    const Id zero = e_.F(0);
    for (uint32_t i = 0; i < count; ++i) {
        b_.Store(b_.ElementPointer(sums, e_.U(i)),
                 b_.Emit(Op::OpCompositeConstruct, SumType(), {zero}));
    }
}

template <typename Load>
void AttentionEmitter::Multiply(Id sums, uint32_t rows, uint32_t depth, Id b, const Load& load) {
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

Id AttentionEmitter::ValueOrZero(Id inside, ScalarId scalar) {
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

Id AttentionEmitter::FirstDenominator() {
    const Id keys = e_.EmitExpr(e_.Simplified(keys_));
    return b_.Select(b_.ULess(e_.U(0), keys), e_.F(0), e_.F(1));
}

void AttentionEmitter::Unbind(std::span<const Loop> loops) {
    for (const Loop& loop : loops) {
        e_.Unbind(loop.variable);
    }
}

void AttentionEmitter::HoistRow() {
    std::vector<bool> needed = e_.Needed({&attention_.score, 1});
    const std::vector<bool> products = e_.Needed({&attention_.product, 1});
    for (size_t i = 0; i < needed.size(); ++i) {
        needed[i] = needed[i] && !products[i];
    }
    e_.Hoist(needed);
}

void AttentionEmitter::Begin() {
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

void AttentionEmitter::Stage(ScalarId operand,
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

void AttentionEmitter::EmitKeys() {
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

void AttentionEmitter::EmitTile(Id first,
                                Id count,
                                uint32_t tile_keys,
                                bool keys_in_place,
                                bool values_in_place) {
    if (!keys_in_place) {
        Stage(attention_.key, attention_.depth, depth_, whole_depth_, 0, first, count, tile_keys);
    }
    if (!values_in_place) {
        Stage(attention_.value, attention_.n, n_, whole_n_, values_at_, first, count, tile_keys);
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

Id AttentionEmitter::Exp(Id x) {
    const Ids arguments = {x};
    return e_.functions_.Apply(ScalarFunction::kExp, ElementType::kF32, arguments);
}

Id AttentionEmitter::Subtracted(Id greatest) {
    const Id never = e_.F(-std::numeric_limits<float>::infinity());
    return b_.Select(e_.Test(Op::OpFOrdEqual, greatest, never), e_.F(0), greatest);
}

void AttentionEmitter::EmitSoftmax(Id first, Id count, uint32_t tile_keys) {
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
                Id product = b_.Load(at(key));
                if (attention_.factor != 1) {
                    product = e_.Binary(Op::OpFMul, product, e_.F(attention_.factor));
                }
                e_.scopes_.back().emplace(attention_.product.value(), product);
                const Id score = e_.Value(attention_.score);
                b_.Store(at(key), score);
                e_.Unbind(attention_.keys.variable);
                e_.CloseScope();
                return {Greater(carried[0], score)};
            })[0];
        const Id subtracted = Subtracted(greatest);
        const Ids zero = {e_.F(0)};
        const Id sum =
            b_.For(e_.U(0), count, e_.U(1), zero, [&](Id key, std::span<const Id> carried) -> Ids {
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

void AttentionEmitter::BindRow(Id m) {
    const Id last = b_.Sub(e_.EmitExpr(e_.Simplified(m_)), e_.U(1));
    e_.BindFromIndex(attention_.m, b_.Select(b_.ULess(m, last), m, last));
    e_.bound_variables_ |= row_variables_;
}

void AttentionEmitter::EmitResults() {
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

void AttentionEmitter::EmitStores(Id sum, Id denominator) {
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

bool Emitter::EmitAttention() {
    if (kernel_.mapping != Mapping::kAttention) {
        return false;
    }
    const std::optional<Attention> attention = FindAttention(kernel_, scope_);
    if (!attention || !HasNoNegativeExtents()) {
        return false;
    }
    for (const ScalarNode& node : kernel_.scalars) {
        const auto* load = std::get_if<Load>(&node.value);
        if (load != nullptr && kernel_[load->buffer].written) {
            return false;
        }
    }
    AttentionEmitter emitter(*this, *attention);
    if (!emitter.RunFewQueries() && (!target_.matrices_f32 || !emitter.RunTiles())) {
        emitter.RunSerially();
    }
    return true;
}

}  // namespace fornax::graph::loop
