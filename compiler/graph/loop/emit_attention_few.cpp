// An attention of few queries, such as a token's (emit_attention.h).
//
// It is bound by reading keys and values once. A workgroup of one subgroup takes all queries of a
// batch: its invocations take neighbouring keys, so that each element of a key is multiplied by all
// queries while it is in a register, and exponentials are computed for as many keys as there are
// invocations. Then they take neighbouring columns of the values, key after key.
#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <utility>

#include "compiler/graph/loop/emit_attention.h"
#include "compiler/graph/loop/few_dots.h"

namespace fornax::graph::loop {

using spv::Op;

namespace {

// With more queries tiles of matrices are as fast.
constexpr int64_t kMostQueriesAtOnce = 8;
// Elements of a key whose code is written out: what their loads have in common is loaded once.
constexpr uint32_t kDepthAtOnce = 16;
// Sums that are kept at once. Fewer, which 16 registers of 256 bits would hold, take 1.5 times as
// long with them: keys and values are then read and converted more often.
constexpr uint32_t kSumsAtOnce = 8;
constexpr float kNever = -std::numeric_limits<float>::infinity();

}  // namespace

bool AttentionMapping::RunFewQueries() {
    const std::optional<int64_t> queries = m_.constant();
    const uint32_t lanes = target_.subgroup_size;
    if (!queries || *queries < 1 || *queries > kMostQueriesAtOnce || attention_.n.empty() ||
        n_ < lanes || !target_.subgroup_arithmetic ||
        !LiesAlong(kernel_, attention_.value, attention_.n.back(), domain_)) {
        return false;
    }
    tile_m_ = static_cast<uint32_t>(*queries);
    tile_keys_ = lanes;
    chunks_ = (n_ + lanes - 1) / lanes;
    grid_.SetLocalSize(lanes);
    const Id workgroup = grid_.WorkgroupIndex(PointsOf(attention_.batch));
    grid_.LoadLane();
    b_.If(grid_.inside(), [&] {
        const ValueScope scope(point_);
        index_.BindFromIndex(attention_.batch, workgroup);
        point_.AddVariables(scope_.VariablesOf(attention_.batch));
        EmitFewQueries();
    });
    return true;
}

void AttentionMapping::AtQuery(uint32_t query, const std::function<void()>& code) {
    const BoundVariables bound(point_);
    const ValueScope scope(point_);
    index_.BindFromIndex(attention_.m, U(query));
    point_.AddVariables(row_variables_);
    code();
    index_.Unbind(attention_.m);
}

void AttentionMapping::EmitFewQueries() {
    queries_ = b_.WorkgroupArray(b_.F32(), tile_m_ * depth_);
    scores_ = b_.WorkgroupArray(b_.F32(), tile_m_ * tile_keys_);
    const auto private_array = [&](uint32_t count, const std::function<Id()>& first) {
        const Id array = b_.FunctionArray(b_.F32(), count);
        for (uint32_t i = 0; i < count; ++i) {
            b_.Store(b_.ElementPointer(array, U(i)), first());
        }
        return array;
    };
    sums_ = private_array(tile_m_ * chunks_, [&] { return F(0); });
    greatest_ = private_array(tile_m_, [&] { return F(kNever); });
    denominators_ = private_array(tile_m_, [&] { return F(0); });
    ForEach(tile_m_, depth_, [&](Id query, Id k) {
        index_.BindFromIndex(attention_.m, query);
        index_.BindFromIndex(attention_.depth, k);
        b_.Store(b_.ElementPointer(queries_, b_.Add(b_.Mul(query, U(depth_)), k)),
                 scalars_.Value(attention_.query));
        index_.Unbind(attention_.depth);
        index_.Unbind(attention_.m);
    });
    b_.WorkgroupBarrier();
    const Id all = index_.EmitSimplified(keys_);
    const Id whole = b_.Mul(b_.UDiv(all, U(tile_keys_)), U(tile_keys_));
    b_.For(U(0), whole, U(tile_keys_), {}, [&](Id first, std::span<const Id>) -> Ids {
        EmitFewKeys(first, 0);
        return {};
    });
    const std::optional<int64_t> rest = Mod(keys_, tile_keys_).Simplify(domain_).constant();
    if (rest != 0) {
        const Id count = b_.Sub(all, whole);
        b_.If(b_.ULess(U(0), count), [&] { EmitFewKeys(whole, count); });
    }
    EmitFewResults();
}

// The scores of this invocation's key with all queries.
Ids AttentionMapping::FewScores() {
    const Ids zeros(tile_m_, F(0));
    const auto step = [&](Id k, std::span<const Id> carried) {
        const ValueScope scope(point_);
        index_.BindFromIndex(attention_.depth, k);
        const Id key = scalars_.Value(attention_.key);
        Ids next;
        for (uint32_t query = 0; query < tile_m_; ++query) {
            const Id at = b_.Add(k, U(query * depth_));
            const Id other = b_.Load(b_.ElementPointer(queries_, at));
            next.push_back(Fma(key, other, carried[next.size()]));
        }
        index_.Unbind(attention_.depth);
        return next;
    };
    const uint32_t whole = depth_ / kDepthAtOnce * kDepthAtOnce;
    Ids products =
        b_.For(U(0), U(whole), U(kDepthAtOnce), zeros, [&](Id k, std::span<const Id> carried) {
            Ids values(carried.begin(), carried.end());
            for (uint32_t i = 0; i < kDepthAtOnce; ++i) {
                values = step(b_.Add(k, U(i)), values);
            }
            return values;
        });
    for (uint32_t k = whole; k < depth_; ++k) {
        products = step(U(k), products);
    }
    Ids scores;
    for (uint32_t query = 0; query < tile_m_; ++query) {
        AtQuery(query, [&] {
            const Id product = products[query];
            point_.Add(attention_.product, attention_.factor == 1
                                               ? product
                                               : Binary(Op::OpFMul, product, F(attention_.factor)));
            scores.push_back(scalars_.Value(attention_.score));
        });
    }
    return scores;
}

Ids AttentionMapping::AtKey(Id key, const std::function<Ids()>& code) {
    const BoundVariables bound(point_);
    const ValueScope scope(point_);
    index_.Bind(attention_.keys.variable, keys_, key);
    point_.AddVariables(scope_.VariablesOf(attention_.keys));
    Ids result = code();
    index_.Unbind(attention_.keys.variable);
    return result;
}

// As many keys as there are invocations, from `first` on, or only `count` if that is not 0.
void AttentionMapping::EmitFewKeys(Id first, Id count) {
    const auto scores_of_key = [&] {
        return AtKey(b_.Add(first, grid_.lane()), [&] { return FewScores(); });
    };
    const Ids scores = count == 0 ? scores_of_key()
                                  : b_.If(b_.ULess(grid_.lane(), count), scores_of_key,
                                          [&] { return Ids(tile_m_, F(kNever)); });
    const auto update = [&](Id array, uint32_t index, const std::function<Id(Id)>& change) {
        const Id pointer = b_.ElementPointer(array, U(index));
        b_.Store(pointer, change(b_.Load(pointer)));
    };
    for (uint32_t query = 0; query < tile_m_; ++query) {
        const Id old = b_.Load(b_.ElementPointer(greatest_, U(query)));
        const Id highest =
            workgroup_.Combined(Combine::kMax, ElementType::kF32, scores[query], false);
        const Id greatest = Greater(old, highest);
        const Id subtracted = Subtracted(greatest);
        const Id power = Exp(Binary(Op::OpFSub, scores[query], subtracted));
        const Id factor = Exp(Binary(Op::OpFSub, old, subtracted));
        b_.Store(b_.ElementPointer(greatest_, U(query)), greatest);
        b_.Store(b_.ElementPointer(scores_, b_.Add(grid_.lane(), U(query * tile_keys_))), power);
        update(denominators_, query, [&](Id sum) { return Fma(sum, factor, power); });
        for (uint32_t chunk = 0; chunk < chunks_; ++chunk) {
            update(sums_, query * chunks_ + chunk,
                   [&](Id sum) { return Binary(Op::OpFMul, sum, factor); });
        }
    }
    b_.WorkgroupBarrier();
    const uint32_t chunks = std::min(chunks_, kSumsAtOnce);
    const uint32_t queries = kSumsAtOnce / chunks;
    for (uint32_t query = 0; query < tile_m_; query += queries) {
        for (uint32_t chunk = 0; chunk < chunks_; chunk += chunks) {
            AddFewValues({query, std::min(query + queries, tile_m_)},
                         {chunk, std::min(chunk + chunks, chunks_)}, first,
                         count == 0 ? U(tile_keys_) : count);
        }
    }
    b_.WorkgroupBarrier();
}

void AttentionMapping::AddFewValues(Part queries, Part chunks, Id first, Id count) {
    Ids pointers, sums;
    for (uint32_t query = queries.begin; query < queries.end; ++query) {
        for (uint32_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
            pointers.push_back(b_.ElementPointer(sums_, U(query * chunks_ + chunk)));
            sums.push_back(b_.Load(pointers.back()));
        }
    }
    sums = b_.For(U(0), count, U(1), sums, [&](Id key, std::span<const Id> carried) {
        return AtKey(b_.Add(first, key), [&] {
            Ids values, next;
            for (uint32_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
                values.push_back(AtColumn(chunk, [&](Id inside) {
                    return inside == b_.True() ? scalars_.Value(attention_.value)
                                               : ValueOrZero(inside, attention_.value);
                }));
            }
            for (uint32_t query = queries.begin; query < queries.end; ++query) {
                const Id at = b_.Add(key, U(query * tile_keys_));
                const Id power = b_.Load(b_.ElementPointer(scores_, at));
                for (const Id value : values) {
                    next.push_back(Fma(power, value, carried[next.size()]));
                }
            }
            return next;
        });
    });
    for (size_t i = 0; i < sums.size(); ++i) {
        b_.Store(pointers[i], sums[i]);
    }
}

Id AttentionMapping::AtColumn(uint32_t chunk, const std::function<Id(Id)>& code) {
    const uint32_t lanes = target_.subgroup_size;
    const Id column = b_.Add(grid_.lane(), U(chunk * lanes));
    const Id inside = (chunk + 1) * lanes <= n_ ? b_.True() : b_.ULess(column, U(n_));
    const ValueScope scope(point_);
    index_.BindFromIndex(attention_.n, column);
    const Id result = code(inside);
    index_.Unbind(attention_.n);
    return result;
}

void AttentionMapping::EmitFewResults() {
    for (uint32_t query = 0; query < tile_m_; ++query) {
        const Id sum = workgroup_.Combined(Combine::kSum, ElementType::kF32,
                                           b_.Load(b_.ElementPointer(denominators_, U(query))));
        AtQuery(query, [&] {
            Id denominator = Binary(Op::OpFAdd, sum, FirstDenominator());
            if (attention_.none.valid()) {
                // It may be a reduction over the keys, which the invocations share.
                const UniformCode together(point_, true);
                denominator = b_.Select(scalars_.Value(attention_.none), F(-1), denominator);
            }
            for (uint32_t chunk = 0; chunk < chunks_; ++chunk) {
                AtColumn(chunk, [&](Id inside) {
                    b_.If(inside, [&] {
                        const Id at = U(query * chunks_ + chunk);
                        const ValueScope scope(point_);
                        EmitStores(b_.Load(b_.ElementPointer(sums_, at)), denominator);
                    });
                    return inside;
                });
            }
        });
    }
}

}  // namespace fornax::graph::loop
