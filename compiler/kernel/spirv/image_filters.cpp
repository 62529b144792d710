// The last steps of a sample: "Texel Filtering" and "Texel Reduction" of texels that come one after
// the other, and levels between which there is a filter.
#include "compiler/kernel/spirv/image_sampling.h"

#include <cmath>

namespace fornax::kernel::spirv {

using hal::Reduction;
using ir::Op;
using Id = ImageCode::Id;
using Ids = ImageCode::Ids;

namespace {

constexpr ir::Type kF32 = ir::Type::kF32;
constexpr ir::Type kBool = ir::Type::kBool;

}  // namespace

// `body(reduction)`, which returns the next state.
template <typename Body>
Ids ImageSampling::ByReduction(const Ids& state, Body&& body) {
    static constexpr uint32_t kModes[] = {static_cast<uint32_t>(Reduction::kMin),
                                          static_cast<uint32_t>(Reduction::kMax),
                                          static_cast<uint32_t>(Reduction::kAverage)};
    const std::vector<ir::Type> floats(state.size(), kF32);
    return code_.Switch(code_.Bits(flags_, hal::kSamplerReductionShift, 4), kModes, floats,
                        [&](uint32_t mode) { return body(static_cast<Reduction>(mode)); });
}

// Four components of the reduction so far, and behind them what averages keep: on each axis the
// first of two, and the first of two levels. On cubes, the first texel.
Ids ImageSampling::FirstState() {
    auto& c = code_;
    const Id reduction = c.Bits(flags_, hal::kSamplerReductionShift, 4);
    const auto reduces = [&](Reduction which) {
        return c.Test(Op::kIEq, reduction, c.Int(static_cast<uint32_t>(which)));
    };
    const Id start = c.Select(reduces(Reduction::kMin), c.Float(INFINITY),
                              c.Select(reduces(Reduction::kMax), c.Float(-INFINITY), c.Float(0)));
    Ids state(4, start);
    state.resize(4 * (cube_ ? 2 : 2 + axes_), c.Float(0));
    return state;
}

// Whether the tap is the second one of an axis.
Id ImageSampling::IsSecond(Id tap, uint32_t axis) {
    auto& c = code_;
    return c.Test(Op::kINe, c.I(Op::kAnd, tap, c.Int(1u << axis)), c.Int(0));
}

Id ImageSampling::WeightOf(const Tap& tap) {
    auto& c = code_;
    Id weight = tap.level_weight;
    for (uint32_t i = 0; i < axes_; ++i) {
        const Axis& axis = tap.axes[i];
        const Id part = c.Select(IsSecond(tap.number, i), axis.second_weight, axis.first_weight);
        weight = c.F(Op::kFMul, weight, part);
    }
    if (tap.corner.tap.valid()) {
        const Id is_corner = c.Test(Op::kIEq, tap.number, tap.corner.tap);
        const Id share = c.F(Op::kFMul, tap.corner.share, tap.level_weight);
        weight = c.Select(is_corner, c.Float(0), c.F(Op::kFAdd, weight, share));
    }
    return weight;
}

Ids ImageSampling::Reduced(const Ids& state, const Ids& values, const Tap& tap) {
    auto& c = code_;
    return ByReduction(state, [&](Reduction mode) {
        if (mode == Reduction::kAverage) {
            return cube_ ? AveragedOnCube(state, values, tap) : Averaged(state, values, tap);
        }
        // A texel without weight has no part.
        const Id counts = c.Test(Op::kFUNe, WeightOf(tap), c.Float(0));
        Ids results = state;
        for (size_t i = 0; i < 4; ++i) {
            const Op op = mode == Reduction::kMin ? Op::kFMin : Op::kFMax;
            results[i] = c.Select(counts, c.F(op, state[i], values[i]), state[i]);
        }
        return results;
    });
}

// The first and a part of its distance to the second; of what may be infinite the weighted sum,
// whose weights add up to 1 without error (MakeAxis), so that what lies between equal values is
// exact in either way. The second has no part without weight, even if it is infinite.
Id ImageSampling::Between(Id first, Id second, Id first_weight, Id second_weight) {
    auto& c = code_;
    if (IsFinite()) {
        return c.Emit(Op::kFma, kF32, {second_weight, c.F(Op::kFSub, second, first), first});
    }
    const Id part = c.F(Op::kFMul, first_weight, first);
    return c.Select(c.Test(Op::kFUNe, second_weight, c.Float(0)),
                    c.Emit(Op::kFma, kF32, {second_weight, second, part}), part);
}

// Axis by axis: the second of two on an axis completes what is the first or second of the next one.
Ids ImageSampling::Averaged(const Ids& state, const Ids& values, const Tap& tap) {
    auto& c = code_;
    Ids results = state;
    for (size_t i = 0; i < 4; ++i) {
        Id value = values[i];
        for (uint32_t axis = 0; axis < axes_; ++axis) {
            const Id second = IsSecond(tap.number, axis);
            const size_t kept = 4 * (1 + size_t{axis}) + i;
            results[kept] = c.Select(second, state[kept], value);
            if (!c.IsZero(second)) {
                const Axis& weights = tap.axes[axis];
                const Id between =
                    Between(state[kept], value, weights.first_weight, weights.second_weight);
                value = c.Select(second, between, value);
            }
        }
        results[i] = value;
    }
    return results;
}

// Where three faces meet, texels have any weights. An average is the first texel and the weighted
// differences to it. The state is their sum and that texel, or 0 where it is infinite or none and
// has no differences.
Ids ImageSampling::AveragedOnCube(const Ids& state, const Ids& values, const Tap& tap) {
    auto& c = code_;
    const Id weight = WeightOf(tap);
    const Id counts = c.Test(Op::kFUNe, weight, c.Float(0));
    const Id is_first =
        c.Emit(Op::kAnd, kBool, {tap.is_finer, c.Test(Op::kIEq, tap.number, c.Int(0))});
    Ids results = state;
    for (size_t i = 0; i < 4; ++i) {
        if (c.IsOne(is_first) && (c.IsOne(weight) || IsFinite())) {
            // One texel, or one that has no difference to itself.
            results[i] = c.IsOne(weight) ? values[i] : state[i];
            results[4 + i] = c.IsOne(weight) ? c.Float(0) : values[i];
            continue;
        }
        const Id finite = c.Test(Op::kFOLt, c.F(Op::kFAbs, values[i]), c.Float(INFINITY));
        const Id base = IsFinite() ? values[i] : c.Select(finite, values[i], c.Float(0));
        results[4 + i] = c.Select(is_first, base, state[4 + i]);
        const Id difference = c.F(Op::kFSub, values[i], results[4 + i]);
        const Id sum = c.Emit(Op::kFma, kF32, {weight, difference, state[i]});
        results[i] = c.Select(counts, sum, state[i]);
    }
    return results;
}

// Between the level that is now complete and the finer one before it.
Ids ImageSampling::Blended(const Ids& state, Id weight, Id is_finer) {
    auto& c = code_;
    if (cube_) {
        return state;  // all weights are in the sum
    }
    return ByReduction(state, [&](Reduction mode) {
        Ids results = state;
        for (size_t i = 0; mode == Reduction::kAverage && i < 4; ++i) {
            const size_t kept = 4 * (1 + axes_) + i;
            results[kept] = state[i];
            if (!c.IsOne(is_finer)) {
                const Id between = Between(state[kept], state[i], Complement(weight), weight);
                results[i] = c.Select(is_finer, state[i], between);
            }
        }
        return results;
    });
}

Ids ImageSampling::ResultOf(const Ids& state) {
    auto& c = code_;
    const Id reduction = c.Bits(flags_, hal::kSamplerReductionShift, 4);
    const Id averages =
        c.Test(Op::kIEq, reduction, c.Int(static_cast<uint32_t>(Reduction::kAverage)));
    Ids results(state.begin(), state.begin() + 4);
    for (size_t i = 0; cube_ && i < 4; ++i) {
        results[i] = c.Select(averages, c.F(Op::kFAdd, state[i], state[4 + i]), state[i]);
    }
    return results;
}

}  // namespace fornax::kernel::spirv
