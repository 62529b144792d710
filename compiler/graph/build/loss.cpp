// Losses.
#include "compiler/graph/build/loss.h"

#include "compiler/graph/build/index.h"

namespace fornax::graph {

Val NegativeLogLikelihood(Val x, Val target, Val weight, const LossOptions& options) {
    Builder& b = x.builder();
    const Val index = Cast(target, ElementType::kI64);
    // Classes that do not exist read 0, as the ignored one has to.
    std::vector<int64_t> sources = {0, -1};
    for (int64_t i = 2; i < x.rank(); ++i) {
        sources.push_back(i - 1);
    }
    Val loss = -Gather(x, sources, {index}, target.shape());
    Val weights;
    if (weight) {
        weights = Gather(weight, {-1}, {index}, target.shape());
    }
    if (options.ignored.has_value()) {
        const Val ignored = map::Equal(index, b.Integer(ElementType::kI64, *options.ignored));
        weights = Where(ignored, Like(x, 0), weights ? weights : Like(x, 1));
    }
    if (weights) {
        loss = Where(Equal(weights, 0), Like(x, 0), loss * weights);
    }
    switch (options.reduction) {
        case LossReduction::kNone:
            return loss;
        case LossReduction::kSum:
            return SumAll(loss);
        case LossReduction::kMean:
            break;
    }
    const Val total = weights ? SumAll(weights) : Cast(b.Size(loss.shape().Volume()), x.element());
    return SumAll(loss) / total;
}

}  // namespace fornax::graph
