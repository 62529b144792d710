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

bool AttentionEmitter::RunFewQueries() {
    const std::optional<int64_t> queries = m_.constant();
    const uint32_t lanes = e_.target_.subgroup_size;
    if (!queries || *queries < 1 || *queries > kMostQueriesAtOnce || attention_.n.empty() ||
        n_ < lanes || !e_.target_.subgroup_arithmetic ||
        !LiesAlong(e_.kernel_, attention_.value, attention_.n.back(), e_.domain_)) {
        return false;
    }
    tile_m_ = static_cast<uint32_t>(*queries);
    tile_keys_ = lanes;
    chunks_ = (n_ + lanes - 1) / lanes;
    e_.local_size_ = lanes;
    e_.group_ = {lanes, 1, 1};
    const Id workgroup = e_.WorkgroupIndex(PointsOf(attention_.batch));
    e_.lane_ = b_.BuiltIn(spv::BuiltIn::LocalInvocationIndex);
    b_.If(e_.in_grid_ == 0 ? b_.True() : e_.in_grid_, [&] {
        e_.OpenScope();
        e_.BindFromIndex(attention_.batch, workgroup);
        for (const Loop& loop : attention_.batch) {
            e_.bound_variables_ |= VariableSet{1} << *e_.scope_.Find(loop.variable);
        }
        EmitFewQueries();
        e_.CloseScope();
    });
    return true;
}

void AttentionEmitter::AtQuery(uint32_t query, const std::function<void()>& code) {
    const VariableSet saved = e_.bound_variables_;
    e_.OpenScope();
    e_.BindFromIndex(attention_.m, e_.U(query));
    e_.bound_variables_ |= row_variables_;
    code();
    Unbind(attention_.m);
    e_.CloseScope();
    e_.bound_variables_ = saved;
}

void AttentionEmitter::EmitFewQueries() {
    queries_ = b_.WorkgroupArray(b_.F32(), tile_m_ * depth_);
    scores_ = b_.WorkgroupArray(b_.F32(), tile_m_ * tile_keys_);
    const auto private_array = [&](uint32_t count, const std::function<Id()>& first) {
        const Id array = b_.FunctionArray(b_.F32(), count);
        for (uint32_t i = 0; i < count; ++i) {
            b_.Store(b_.ElementPointer(array, e_.U(i)), first());
        }
        return array;
    };
    sums_ = private_array(tile_m_ * chunks_, [&] { return e_.F(0); });
    greatest_ = private_array(tile_m_, [&] { return e_.F(kNever); });
    denominators_ = private_array(tile_m_, [&] { return e_.F(0); });
    ForEach(tile_m_, depth_, [&](Id query, Id k) {
        e_.BindFromIndex(attention_.m, query);
        e_.BindFromIndex(attention_.depth, k);
        b_.Store(b_.ElementPointer(queries_, b_.Add(b_.Mul(query, e_.U(depth_)), k)),
                 e_.Value(attention_.query));
        Unbind(attention_.depth);
        Unbind(attention_.m);
    });
    b_.WorkgroupBarrier();
    const Id all = e_.EmitExpr(e_.Simplified(keys_));
    const Id whole = b_.Mul(b_.UDiv(all, e_.U(tile_keys_)), e_.U(tile_keys_));
    b_.For(e_.U(0), whole, e_.U(tile_keys_), {}, [&](Id first, std::span<const Id>) -> Ids {
        EmitFewKeys(first, 0);
        return {};
    });
    const std::optional<int64_t> rest = Mod(keys_, tile_keys_).Simplify(e_.domain_).constant();
    if (rest != 0) {
        const Id count = b_.Sub(all, whole);
        b_.If(b_.ULess(e_.U(0), count), [&] { EmitFewKeys(whole, count); });
    }
    EmitFewResults();
}

// The scores of this invocation's key with all queries.
Ids AttentionEmitter::FewScores() {
    const Ids zeros(tile_m_, e_.F(0));
    const auto step = [&](Id k, std::span<const Id> carried) {
        e_.OpenScope();
        e_.BindFromIndex(attention_.depth, k);
        const Id key = e_.Value(attention_.key);
        Ids next;
        for (uint32_t query = 0; query < tile_m_; ++query) {
            const Id at = b_.Add(k, e_.U(query * depth_));
            const Id other = b_.Load(b_.ElementPointer(queries_, at));
            next.push_back(e_.Fma(key, other, carried[next.size()]));
        }
        Unbind(attention_.depth);
        e_.CloseScope();
        return next;
    };
    const uint32_t whole = depth_ / kDepthAtOnce * kDepthAtOnce;
    Ids products = b_.For(e_.U(0), e_.U(whole), e_.U(kDepthAtOnce), zeros,
                          [&](Id k, std::span<const Id> carried) {
                              Ids values(carried.begin(), carried.end());
                              for (uint32_t i = 0; i < kDepthAtOnce; ++i) {
                                  values = step(b_.Add(k, e_.U(i)), values);
                              }
                              return values;
                          });
    for (uint32_t k = whole; k < depth_; ++k) {
        products = step(e_.U(k), products);
    }
    Ids scores;
    for (uint32_t query = 0; query < tile_m_; ++query) {
        AtQuery(query, [&] {
            const Id product = products[query];
            e_.scopes_.back().emplace(
                attention_.product.value(),
                attention_.factor == 1 ? product
                                       : e_.Binary(Op::OpFMul, product, e_.F(attention_.factor)));
            scores.push_back(e_.Value(attention_.score));
        });
    }
    return scores;
}

Ids AttentionEmitter::AtKey(Id key, const std::function<Ids()>& code) {
    const VariableSet saved = e_.bound_variables_;
    e_.OpenScope();
    e_.Bind(attention_.keys.variable, keys_, key);
    e_.bound_variables_ |= VariableSet{1} << *e_.scope_.Find(attention_.keys.variable);
    Ids result = code();
    e_.Unbind(attention_.keys.variable);
    e_.CloseScope();
    e_.bound_variables_ = saved;
    return result;
}

// As many keys as there are invocations, from `first` on, or only `count` if that is not 0.
void AttentionEmitter::EmitFewKeys(Id first, Id count) {
    const auto scores_of_key = [&] {
        return AtKey(b_.Add(first, e_.lane_), [&] { return FewScores(); });
    };
    const Ids scores = count == 0 ? scores_of_key()
                                  : b_.If(b_.ULess(e_.lane_, count), scores_of_key,
                                          [&] { return Ids(tile_m_, e_.F(kNever)); });
    const auto update = [&](Id array, uint32_t index, const std::function<Id(Id)>& change) {
        const Id pointer = b_.ElementPointer(array, e_.U(index));
        b_.Store(pointer, change(b_.Load(pointer)));
    };
    for (uint32_t query = 0; query < tile_m_; ++query) {
        const Id old = b_.Load(b_.ElementPointer(greatest_, e_.U(query)));
        const Id highest =
            e_.AcrossInvocations(Combine::kMax, ElementType::kF32, scores[query], false);
        const Id greatest = Greater(old, highest);
        const Id subtracted = Subtracted(greatest);
        const Id power = Exp(e_.Binary(Op::OpFSub, scores[query], subtracted));
        const Id factor = Exp(e_.Binary(Op::OpFSub, old, subtracted));
        b_.Store(b_.ElementPointer(greatest_, e_.U(query)), greatest);
        b_.Store(b_.ElementPointer(scores_, b_.Add(e_.lane_, e_.U(query * tile_keys_))), power);
        update(denominators_, query, [&](Id sum) { return e_.Fma(sum, factor, power); });
        for (uint32_t chunk = 0; chunk < chunks_; ++chunk) {
            update(sums_, query * chunks_ + chunk,
                   [&](Id sum) { return e_.Binary(Op::OpFMul, sum, factor); });
        }
    }
    b_.WorkgroupBarrier();
    const uint32_t chunks = std::min(chunks_, kSumsAtOnce);
    const uint32_t queries = kSumsAtOnce / chunks;
    for (uint32_t query = 0; query < tile_m_; query += queries) {
        for (uint32_t chunk = 0; chunk < chunks_; chunk += chunks) {
            AddFewValues({query, std::min(query + queries, tile_m_)},
                         {chunk, std::min(chunk + chunks, chunks_)}, first,
                         count == 0 ? e_.U(tile_keys_) : count);
        }
    }
    b_.WorkgroupBarrier();
}

void AttentionEmitter::AddFewValues(Part queries, Part chunks, Id first, Id count) {
    Ids pointers, sums;
    for (uint32_t query = queries.begin; query < queries.end; ++query) {
        for (uint32_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
            pointers.push_back(b_.ElementPointer(sums_, e_.U(query * chunks_ + chunk)));
            sums.push_back(b_.Load(pointers.back()));
        }
    }
    sums = b_.For(e_.U(0), count, e_.U(1), sums, [&](Id key, std::span<const Id> carried) {
        return AtKey(b_.Add(first, key), [&] {
            Ids values, next;
            for (uint32_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
                values.push_back(AtColumn(chunk, [&](Id inside) {
                    return inside == b_.True() ? e_.Value(attention_.value)
                                               : ValueOrZero(inside, attention_.value);
                }));
            }
            for (uint32_t query = queries.begin; query < queries.end; ++query) {
                const Id at = b_.Add(key, e_.U(query * tile_keys_));
                const Id power = b_.Load(b_.ElementPointer(scores_, at));
                for (const Id value : values) {
                    next.push_back(e_.Fma(power, value, carried[next.size()]));
                }
            }
            return next;
        });
    });
    for (size_t i = 0; i < sums.size(); ++i) {
        b_.Store(pointers[i], sums[i]);
    }
}

Id AttentionEmitter::AtColumn(uint32_t chunk, const std::function<Id(Id)>& code) {
    const uint32_t lanes = e_.target_.subgroup_size;
    const Id column = b_.Add(e_.lane_, e_.U(chunk * lanes));
    const Id inside = (chunk + 1) * lanes <= n_ ? b_.True() : b_.ULess(column, e_.U(n_));
    e_.OpenScope();
    e_.BindFromIndex(attention_.n, column);
    const Id result = code(inside);
    Unbind(attention_.n);
    e_.CloseScope();
    return result;
}

void AttentionEmitter::EmitFewResults() {
    for (uint32_t query = 0; query < tile_m_; ++query) {
        const Id sum = e_.AcrossInvocations(Combine::kSum, ElementType::kF32,
                                            b_.Load(b_.ElementPointer(denominators_, e_.U(query))));
        AtQuery(query, [&] {
            Id denominator = e_.Binary(Op::OpFAdd, sum, FirstDenominator());
            if (attention_.none.valid()) {
                // It may be a reduction over the keys, which the invocations share.
                const bool saved = std::exchange(e_.uniform_, true);
                denominator = b_.Select(e_.Value(attention_.none), e_.F(-1), denominator);
                e_.uniform_ = saved;
            }
            for (uint32_t chunk = 0; chunk < chunks_; ++chunk) {
                AtColumn(chunk, [&](Id inside) {
                    b_.If(inside, [&] {
                        const Id at = e_.U(query * chunks_ + chunk);
                        e_.OpenScope();
                        EmitStores(b_.Load(b_.ElementPointer(sums_, at)), denominator);
                        e_.CloseScope();
                    });
                    return inside;
                });
            }
        });
    }
}

}  // namespace fornax::graph::loop
