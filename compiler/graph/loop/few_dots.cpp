// Recognises products of few rows by the places that neighbours in k have in memory.
#include "compiler/graph/loop/few_dots.h"

namespace fornax::graph::loop {

bool LiesAlong(const Kernel& kernel, ScalarId operand, const Loop& loop, const Domain& domain) {
    const std::vector<bool> needed = Needed(kernel, {&operand, 1});
    bool any = false;
    for (size_t i = 0; i < needed.size(); ++i) {
        const auto* load = std::get_if<Load>(&kernel.scalars[i].value);
        if (!needed[i] || load == nullptr) {
            continue;
        }
        Expr offset, stride(1);
        const Shape& shape = kernel[load->buffer].type.shape;
        for (size_t axis = shape.rank(); axis-- > 0;) {
            offset += load->index[axis] * stride;
            stride *= shape[axis];
        }
        const std::optional<Expr> apart = offset.Simplify(domain).Coefficient(loop.variable);
        if (!apart || (*apart != Expr(0) && *apart != Expr(1))) {
            return false;
        }
        any = any || *apart == Expr(1);
    }
    return any;
}

bool HasFewDots(const Kernel& kernel, const Scope& scope, const Product& product) {
    const std::optional<int64_t> rows = PointsOf(product.m).constant();
    const std::optional<int64_t> depth = PointsOf(product.k).constant();
    if (!rows || *rows < 1 || *rows > kMostDotRows || product.n.empty() || !depth ||
        *depth < kLeastDotDepth || kernel[product.sum].type != ElementType::kF32) {
        return false;
    }
    const Loop& innermost = product.k.back();
    if (*innermost.extent.constant() < kLeastDotRun) {
        return false;
    }
    Domain domain;
    domain.ranges = kernel.sizes;
    for (const Loop& loop : scope.variables) {
        domain.AddVariable(loop.variable, loop.extent);
    }
    return LiesAlong(kernel, product.a, innermost, domain) &&
           LiesAlong(kernel, product.b, innermost, domain);
}

}  // namespace fornax::graph::loop
