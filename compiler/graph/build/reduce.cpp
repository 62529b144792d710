// Reductions that are more than one primitive.
#include "compiler/graph/build/reduce.h"

#include <limits>

#include "compiler/graph/build/activations.h"

namespace fornax::graph {

Val ReduceMean(Val x, std::span<const int64_t> axes, bool keep) {
    return Widened(x, [&](Val v) { return Mean(v, axes, keep); });
}

Val ReduceL1(Val x, std::span<const int64_t> axes, bool keep) {
    return Widened(x, [&](Val v) { return Reduce(Combine::kSum, map::Abs(v), axes, keep); });
}

Val ReduceL2(Val x, std::span<const int64_t> axes, bool keep) {
    const ElementType compute = IsFloat(x.element()) ? ComputeType(x.element()) : ElementType::kF64;
    const Val v = Cast(x, compute);
    return Cast(map::Sqrt(Reduce(Combine::kSum, v * v, axes, keep)), x.element());
}

Val ReduceSumSquare(Val x, std::span<const int64_t> axes, bool keep) {
    return Widened(x, [&](Val v) { return Reduce(Combine::kSum, v * v, axes, keep); });
}

Val ReduceLogSum(Val x, std::span<const int64_t> axes, bool keep) {
    const ElementType compute = IsFloat(x.element()) ? ComputeType(x.element()) : ElementType::kF64;
    return Cast(map::Log(Reduce(Combine::kSum, Cast(x, compute), axes, keep)), x.element());
}

Val ReduceLogSumExp(Val x, std::span<const int64_t> axes, bool keep) {
    const ElementType compute = IsFloat(x.element()) ? ComputeType(x.element()) : ElementType::kF64;
    const Val v = Cast(x, compute);
    const Val greatest = Reduce(Combine::kMax, v, axes, true);
    // An infinite greatest element, also that of no elements, is not subtracted from itself.
    const Val shift = Where(map::IsInf(greatest), Like(v, 0), greatest);
    const Val sum = Reduce(Combine::kSum, map::Exp(v - shift), axes, true);
    const Val result = Cast(map::Log(sum) + shift, x.element());
    return keep ? result : Squeeze(result, axes);
}

}  // namespace fornax::graph
