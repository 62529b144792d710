// Recognises products of few rows by the places that neighbouring columns have in memory.
#include "compiler/graph/loop/few_rows.h"

#include <algorithm>

namespace fornax::graph::loop {
namespace {

constexpr int64_t kPanel = 16;

// Whether neighbours along `variable`, within 16 of them, have the same place or follow each other.
bool LiesAlong(const Kernel& kernel, const Load& load, const Loop& loop, const Domain& domain) {
    Expr offset, stride(1);
    const Shape& shape = kernel[load.buffer].type.shape;
    for (size_t axis = shape.rank(); axis-- > 0;) {
        offset += load.index[axis] * stride;
        stride *= shape[axis];
    }
    const Symbol panel("$panel"), place("$place");
    Domain inner = domain;
    inner.AddVariable(panel, CeilDiv(loop.extent, kPanel));
    inner.AddVariable(place, kPanel);
    const Expr apart =
        offset.Substitute({{loop.variable, kPanel * Expr(panel) + Expr(place)}}).Simplify(inner);
    const std::optional<Expr> coefficient = apart.Coefficient(place);
    return coefficient && (*coefficient == Expr(0) || *coefficient == Expr(1));
}

}  // namespace

bool HasFewRows(const Kernel& kernel, const Scope& scope, const Product& product) {
    int64_t rows = 1;
    for (const Loop& loop : product.m) {
        const std::optional<int64_t> extent = loop.extent.constant();
        if (!extent || *extent < 1 || *extent > kMostFewRows / rows) {
            return false;
        }
        rows *= *extent;
    }
    if (product.n.empty()) {
        return false;
    }
    Domain domain;
    domain.ranges = kernel.sizes;
    for (const Loop& loop : scope.variables) {
        domain.AddVariable(loop.variable, loop.extent);
    }
    std::vector<bool> needed(product.b.value() + 1);
    needed[product.b.value()] = true;
    for (size_t i = needed.size(); i-- > 0;) {
        if (!needed[i]) {
            continue;
        }
        const ScalarNode& node = kernel.scalars[i];
        for (const ScalarId operand : OperandsOf(node)) {
            needed[operand.value()] = true;
        }
        const auto* load = std::get_if<Load>(&node.value);
        if (load != nullptr && !LiesAlong(kernel, *load, product.n.back(), domain)) {
            return false;
        }
    }
    return true;
}

}  // namespace fornax::graph::loop
