// Tiles of an attention (emit_attention.h).
#include "compiler/graph/loop/emit_attention.h"

#include <algorithm>
#include <limits>

namespace fornax::graph::loop {

using spv::Op;

namespace {

constexpr uint32_t kSteps = 4;  // that are multiplied at once

uint32_t WholeMatrices(int64_t count) {
    constexpr int64_t kSide = AttentionMapping::kSide;
    return static_cast<uint32_t>((count + kSide - 1) / kSide * kSide);
}

}  // namespace

AttentionMapping::AttentionMapping(KernelParts& parts, const Attention& attention)
    : MappingPart(parts),
      attention_(attention),
      m_(PointsOf(attention.m)),
      n_(static_cast<uint32_t>(*PointsOf(attention.n).constant())),
      depth_(static_cast<uint32_t>(*PointsOf(attention.depth).constant())),
      keys_(attention.keys.extent),
      whole_depth_(WholeMatrices(depth_)),
      whole_n_(WholeMatrices(n_)),
      row_variables_(scope_.VariablesOf(attention.batch) | scope_.VariablesOf(attention.m)) {}

bool AttentionMapping::RunTiles() {
    if (!ChooseTiles()) {
        return false;
    }
    const Expr tiles = CeilDiv(m_, tile_m_).Simplify(domain_);
    const Id workgroup = grid_.WorkgroupIndex(PointsOf(attention_.batch) * tiles);
    grid_.LoadLane();
    b_.If(grid_.inside(), [&] {
        const ValueScope scope(point_);
        const Id count = index_.Emit(tiles);
        index_.BindFromIndex(attention_.batch, b_.UDiv(workgroup, count));
        m_first_ = b_.Mul(b_.UMod(workgroup, count), U(tile_m_));
        Declare();
        Begin();
        EmitKeys();
        EmitResults();
    });
    grid_.SetLocalSize(target_.subgroup_size);
    return true;
}

bool AttentionMapping::ChooseTiles() {
    const int64_t most_keys = keys_.Bounds(domain_.ranges).high;
    key_access_ =
        FindTileAccess(kernel_, domain_, attention_.key, {&attention_.keys, 1}, attention_.depth);
    if (whole_depth_ != depth_) {
        key_access_.reset();
    }
    value_access_ =
        FindTileAccess(kernel_, domain_, attention_.value, attention_.n, {&attention_.keys, 1});
    if (whole_n_ != n_ || (value_access_ && value_access_->padded_rows)) {
        value_access_.reset();
    }
    // Tiles of fewer keys, then of fewer queries, until all arrays fit.
    const uint32_t queries = m_.Bounds(domain_.ranges).high > kSide ? kMostQueries : kSide;
    const uint32_t keys =
        most_keys >= kMostKeys ? kMostKeys : WholeMatrices(std::max<int64_t>(most_keys, 1));
    const uint32_t most_floats = target_.max_workgroup_memory / sizeof(float);
    for (tile_m_ = queries; tile_m_ >= kSide; tile_m_ -= kSide) {
        for (tile_keys_ = keys; tile_keys_ >= kSide; tile_keys_ -= kSide) {
            // A symbolic number of keys may be known to be divisible.
            const std::optional<int64_t> rest = Mod(keys_, tile_keys_).Simplify(domain_).constant();
            rest_keys_ = rest ? static_cast<uint32_t>(*rest) : tile_keys_;
            if (SharedFloats() <= most_floats) {
                return true;
            }
        }
    }
    return false;
}

uint32_t AttentionMapping::StagedKeys(bool in_place) const {
    return in_place ? WholeMatrices(rest_keys_) : tile_keys_;
}

uint32_t AttentionMapping::StagedFloats() const {
    return std::max({StagedKeys(key_access_.has_value()) * whole_depth_ +
                         StagedKeys(value_access_.has_value()) * whole_n_,
                     whole_n_ * tile_m_});
}

uint32_t AttentionMapping::SharedFloats() const {
    return (whole_depth_ + tile_keys_ + kSide + 2) * tile_m_ + StagedFloats();
}

void AttentionMapping::Declare() {
    const Id type = b_.F32();
    queries_ = b_.WorkgroupArray(type, whole_depth_ * tile_m_);
    scores_ = b_.WorkgroupArray(type, tile_keys_ * tile_m_);
    factors_ = b_.WorkgroupArray(type, kSide * tile_m_);
    greatest_ = b_.WorkgroupArray(type, tile_m_);
    denominators_ = b_.WorkgroupArray(type, tile_m_);
    staged_ = b_.WorkgroupArray(type, StagedFloats());
    values_at_ = StagedKeys(key_access_.has_value()) * whole_depth_;
}

Id AttentionMapping::MatrixType(spv::CooperativeMatrixUse use) {
    return b_.CooperativeMatrix(b_.F32(), kSide, kSide, use);
}

Id AttentionMapping::LoadMatrix(spv::CooperativeMatrixUse use,
                                Id pointer,
                                bool by_rows,
                                Id stride) {
    const auto layout = by_rows ? spv::CooperativeMatrixLayout::RowMajorKHR
                                : spv::CooperativeMatrixLayout::ColumnMajorKHR;
    return b_.Emit(Op::OpCooperativeMatrixLoadKHR, MatrixType(use),
                   {pointer, U(static_cast<uint32_t>(layout)), stride});
}

Id AttentionMapping::LoadInPlace(const TileAccess& access, Id row, Id depth) {
    index_.Bind(access.row, Expr(INT32_MAX), row);
    index_.Bind(access.depth, Expr(INT32_MAX), depth);
    const Id offset = index_.Emit(access.offset);
    index_.Unbind(access.row);
    index_.Unbind(access.depth);
    const Id pointer = b_.ElementPointer(code_.ArrayOf(access.buffer), offset);
    return LoadMatrix(spv::CooperativeMatrixUse::MatrixAKHR, pointer, access.unit_depth,
                      index_.Emit(access.stride));
}

Id AttentionMapping::LoadShared(spv::CooperativeMatrixUse use,
                                Id array,
                                uint32_t place,
                                uint32_t width,
                                bool by_rows) {
    return LoadMatrix(use, b_.ElementPointer(array, U(place)), by_rows, U(width));
}

void AttentionMapping::StoreShared(Id array, uint32_t place, uint32_t width, Id matrix) {
    const auto layout = U(static_cast<uint32_t>(spv::CooperativeMatrixLayout::RowMajorKHR));
    b_.EmitVoid(Op::OpCooperativeMatrixStoreKHR,
                {b_.ElementPointer(array, U(place)), matrix, layout, U(width)});
}

void AttentionMapping::Clear(Id sums, uint32_t count) {
    const Id zero = F(0);
    for (uint32_t i = 0; i < count; ++i) {
        b_.Store(b_.ElementPointer(sums, U(i)),
                 b_.Emit(Op::OpCompositeConstruct, SumType(), {zero}));
    }
}

template <typename Load>
void AttentionMapping::Multiply(Id sums, uint32_t rows, uint32_t depth, Id b, const Load& load) {
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
                    const Id pointer = b_.ElementPointer(sums, U(i * columns + j));
                    const Id sum = b_.Emit(Op::OpLoad, SumType(), {pointer});
                    b_.Store(pointer, b_.Emit(Op::OpCooperativeMatrixMulAddKHR, SumType(),
                                              {left[i], right[j], sum}));
                }
            }
        }
    }
}

Id AttentionMapping::ValueOrZero(Id inside, ScalarId scalar) {
    return b_.If(
        inside,
        [&] {
            const ValueScope scope(point_);
            Ids value = {scalars_.Value(scalar)};
            return value;
        },
        [&] { return Ids{F(0)}; })[0];
}

Id AttentionMapping::FirstDenominator() {
    const Id keys = index_.EmitSimplified(keys_);
    return b_.Select(b_.ULess(U(0), keys), F(0), F(1));
}

void AttentionMapping::HoistRow() {
    std::vector<bool> needed = scalars_.Needed({&attention_.score, 1});
    const std::vector<bool> products = scalars_.Needed({&attention_.product, 1});
    for (size_t i = 0; i < needed.size(); ++i) {
        needed[i] = needed[i] && !products[i];
    }
    scalars_.Hoist(needed);
}

void AttentionMapping::Begin() {
    ForEach(tile_m_, whole_depth_, [&](Id query, Id k) {
        const Id m = b_.Add(m_first_, query);
        index_.BindFromIndex(attention_.m, m);
        index_.BindFromIndex(attention_.depth, k);
        const Id inside = b_.And(Below(m, m_), Below(k, Expr(depth_)));
        const Id value = ValueOrZero(inside, attention_.query);
        b_.Store(b_.ElementPointer(queries_, b_.Add(b_.Mul(k, U(tile_m_)), query)), value);
        index_.Unbind(attention_.depth);
    });
    ForEach(1, tile_m_, [&](Id, Id query) {
        b_.Store(b_.ElementPointer(greatest_, query), F(-std::numeric_limits<float>::infinity()));
        b_.Store(b_.ElementPointer(denominators_, query), FirstDenominator());
    });
    sums_ = b_.FunctionArray(SumType(), whole_n_ / kSide * (tile_m_ / kSide));
    products_ = b_.FunctionArray(SumType(), tile_keys_ / kSide * (tile_m_ / kSide));
    Clear(sums_, whole_n_ / kSide * (tile_m_ / kSide));
    b_.WorkgroupBarrier();
}

void AttentionMapping::Stage(ScalarId operand,
                             std::span<const Loop> column_loops,
                             uint32_t columns,
                             uint32_t whole_columns,
                             uint32_t place,
                             Id first,
                             Id count,
                             uint32_t tile_keys) {
    ForEach(tile_keys, whole_columns, [&](Id key, Id column) {
        index_.Bind(attention_.keys.variable, keys_, b_.Add(first, key));
        index_.BindFromIndex(column_loops, column);
        const Id inside = b_.And(b_.ULess(key, count), Below(column, Expr(columns)));
        const Id value = ValueOrZero(inside, operand);
        const Id at = b_.Add(b_.Mul(key, U(whole_columns)), b_.Add(column, U(place)));
        b_.Store(b_.ElementPointer(staged_, at), value);
        index_.Unbind(attention_.keys.variable);
        index_.Unbind(column_loops);
    });
}

void AttentionMapping::EmitKeys() {
    const std::optional<int64_t> constant = keys_.constant();
    const Id all = index_.EmitSimplified(keys_);
    const Id whole = b_.Mul(b_.UDiv(all, U(tile_keys_)), U(tile_keys_));
    if (!constant || *constant >= tile_keys_) {
        b_.For(U(0), whole, U(tile_keys_), {}, [&](Id first, std::span<const Id>) -> Ids {
            const ValueScope scope(point_);
            EmitTile(first, U(tile_keys_), tile_keys_, key_access_.has_value(),
                     value_access_.has_value());
            return {};
        });
    }
    if (rest_keys_ != 0) {
        const Id rest = b_.Sub(all, whole);
        b_.If(b_.ULess(U(0), rest), [&] {
            const ValueScope scope(point_);
            EmitTile(whole, rest, WholeMatrices(rest_keys_), false, false);
        });
    }
}

void AttentionMapping::EmitTile(Id first,
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
        return keys_in_place ? LoadInPlace(*key_access_, b_.Add(first, U(key)), U(k))
                             : LoadShared(kA, staged_, key * whole_depth_ + k, whole_depth_);
    });
    for (uint32_t i = 0; i < tile_keys / kSide; ++i) {
        for (uint32_t j = 0; j < columns; ++j) {
            const Id pointer = b_.ElementPointer(products_, U(i * columns + j));
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
            const Id pointer = b_.ElementPointer(sums_, U(i * columns + j));
            const Id sum = b_.Emit(Op::OpLoad, SumType(), {pointer});
            b_.Store(pointer, b_.Emit(Op::OpFMul, SumType(), {sum, factor}));
        }
    }
    Multiply(sums_, whole_n_, tile_keys, scores_, [&](uint32_t n, uint32_t key) {
        return values_in_place
                   ? LoadInPlace(*value_access_, U(n), b_.Add(first, U(key)))
                   : LoadShared(kA, staged_, values_at_ + key * whole_n_ + n, whole_n_, false);
    });
    b_.WorkgroupBarrier();
}

Id AttentionMapping::Exp(Id x) {
    const Ids arguments = {x};
    return functions_.Apply(ScalarFunction::kExp, ElementType::kF32, arguments);
}

Id AttentionMapping::Subtracted(Id greatest) {
    const Id never = F(-std::numeric_limits<float>::infinity());
    return b_.Select(Test(Op::OpFOrdEqual, greatest, never), F(0), greatest);
}

void AttentionMapping::EmitSoftmax(Id first, Id count, uint32_t tile_keys) {
    const BoundVariables bound(point_);
    ForEach(1, tile_m_, [&](Id, Id query) {
        const Id old = b_.Load(b_.ElementPointer(greatest_, query));
        BindRow(b_.Add(m_first_, query));
        HoistRow();
        const auto at = [&](Id key) {
            return b_.ElementPointer(scores_, b_.Add(b_.Mul(key, U(tile_m_)), query));
        };
        const Ids initial = {old};
        const Id greatest =
            b_.For(U(0), count, U(1), initial, [&](Id key, std::span<const Id> carried) -> Ids {
                const ValueScope scope(point_);
                index_.Bind(attention_.keys.variable, keys_, b_.Add(first, key));
                Id product = b_.Load(at(key));
                if (attention_.factor != 1) {
                    product = Binary(Op::OpFMul, product, F(attention_.factor));
                }
                point_.Add(attention_.product, product);
                const Id score = scalars_.Value(attention_.score);
                b_.Store(at(key), score);
                index_.Unbind(attention_.keys.variable);
                return {Greater(carried[0], score)};
            })[0];
        const Id subtracted = Subtracted(greatest);
        const Ids zero = {F(0)};
        const Id sum =
            b_.For(U(0), count, U(1), zero, [&](Id key, std::span<const Id> carried) -> Ids {
                const Id power = Exp(Binary(Op::OpFSub, b_.Load(at(key)), subtracted));
                b_.Store(at(key), power);
                return {Binary(Op::OpFAdd, carried[0], power)};
            })[0];
        b_.For(count, U(tile_keys), U(1), {}, [&](Id key, std::span<const Id>) -> Ids {
            b_.Store(at(key), F(0));
            return {};
        });
        const Id factor = Exp(Binary(Op::OpFSub, old, subtracted));
        const Id pointer = b_.ElementPointer(denominators_, query);
        const Id before = Binary(Op::OpFMul, b_.Load(pointer), factor);
        b_.Store(pointer, Binary(Op::OpFAdd, before, sum));
        b_.Store(b_.ElementPointer(greatest_, query), greatest);
        for (uint32_t i = 0; i < kSide; ++i) {
            b_.Store(b_.ElementPointer(factors_, b_.Add(query, U(i * tile_m_))), factor);
        }
    });
}

void AttentionMapping::BindRow(Id m) {
    const Id last = b_.Sub(index_.EmitSimplified(m_), U(1));
    index_.BindFromIndex(attention_.m, b_.Select(b_.ULess(m, last), m, last));
    point_.AddVariables(row_variables_);
}

void AttentionMapping::EmitResults() {
    const uint32_t columns = tile_m_ / kSide;
    for (uint32_t i = 0; i < whole_n_ / kSide; ++i) {
        for (uint32_t j = 0; j < columns; ++j) {
            const Id pointer = b_.ElementPointer(sums_, U(i * columns + j));
            StoreShared(staged_, i * kSide * tile_m_ + j * kSide, tile_m_,
                        b_.Emit(Op::OpLoad, SumType(), {pointer}));
        }
    }
    if (attention_.none.valid()) {
        const BoundVariables bound(point_);
        // A sum of exponentials is never less than 0.
        ForEach(1, tile_m_, [&](Id, Id query) {
            BindRow(b_.Add(m_first_, query));
            b_.If(scalars_.Value(attention_.none),
                  [&] { b_.Store(b_.ElementPointer(denominators_, query), F(-1)); });
        });
    }
    b_.WorkgroupBarrier();
    ForEach(tile_m_, n_, [&](Id query, Id n) {
        const Id m = b_.Add(m_first_, query);
        b_.If(Below(m, m_), [&] {
            const ValueScope scope(point_);
            index_.BindFromIndex(attention_.m, m);
            index_.BindFromIndex(attention_.n, n);
            const Id place = b_.Add(b_.Mul(n, U(tile_m_)), query);
            EmitStores(b_.Load(b_.ElementPointer(staged_, place)),
                       b_.Load(b_.ElementPointer(denominators_, query)));
            index_.Unbind(attention_.n);
        });
    });
}

void AttentionMapping::EmitStores(Id sum, Id denominator) {
    Id result = Binary(Op::OpFDiv, sum, denominator);
    if (attention_.none.valid()) {
        result = b_.Select(Test(Op::OpFOrdLessThan, denominator, F(0)), F(0), result);
    }
    point_.Add(attention_.sum, result);
    const std::vector<const Store*> stores = StoresOf(kernel_);
    stores_.Emit(stores);
}

bool EmitAttention(KernelParts& parts) {
    const KernelCode& code = parts.code;
    if (code.kernel.mapping != Mapping::kAttention) {
        return false;
    }
    const std::optional<Attention> attention = FindAttention(code.kernel, code.scope);
    if (!attention || !code.nests.HasNoNegativeExtents() || LoadsWhatIsWritten(code.kernel)) {
        return false;
    }
    AttentionMapping mapping(parts, *attention);
    if (!mapping.RunFewQueries() && (!code.module.target.matrices_f32 || !mapping.RunTiles())) {
        mapping.RunSerially();
    }
    return true;
}

}  // namespace fornax::graph::loop
