// Recognises an integer product within a sum over blocks.
#include "compiler/graph/loop/block_product.h"

#include <algorithm>

namespace fornax::graph::loop {

std::optional<BlockProduct> FindBlockProduct(const Kernel& kernel, const Scope& scope) {
    std::vector<ScalarId> sums;
    for (size_t i = 0; i < kernel.scalars.size(); ++i) {
        if (LoopsOf(kernel.scalars[i]).empty()) {
            continue;
        }
        const auto* reduce = std::get_if<Reduce>(&kernel.scalars[i].value);
        if (reduce == nullptr || reduce->combine != Combine::kSum || sums.size() == 2) {
            return std::nullopt;
        }
        sums.emplace_back(i);
    }
    // Operands come first, so the inner sum does.
    if (sums.size() != 2 || kernel[sums[0]].type != ElementType::kI32 ||
        kernel[sums[1]].type != ElementType::kF32) {
        return std::nullopt;
    }
    BlockProduct found;
    found.sum = sums[1];
    const auto& outer = std::get<Reduce>(kernel[found.sum].value);
    found.blocks = outer.loops;
    found.term = outer.body;
    std::optional<Product> product = ProductOf(kernel, scope, sums[0]);
    if (!product || !Needed(kernel, {&found.term, 1})[sums[0].value()]) {
        return std::nullopt;
    }
    VariableSet blocks = 0;
    for (const Loop& loop : found.blocks) {
        blocks |= VariableSet{1} << *scope.Find(loop.variable);
    }
    // Else it would be computed again for each block.
    if ((scope.free[sums[0].value()] & blocks) != blocks) {
        return std::nullopt;
    }
    int64_t words = 1;
    for (size_t i = 0; i + 1 < product->k.size(); ++i) {
        const std::optional<int64_t> extent = product->k[i].extent.constant();
        if (!extent || *extent < 1 || *extent > kMostBlockWords / words) {
            return std::nullopt;
        }
        words *= *extent;
    }
    std::optional<ByteProduct> bytes = FindByteProduct(kernel, scope, *product);
    if (!bytes || bytes->floats) {
        return std::nullopt;
    }
    Domain domain;
    domain.ranges = kernel.sizes;
    for (const Loop& loop : scope.variables) {
        domain.AddVariable(loop.variable, loop.extent);
    }
    for (size_t axis = 0; axis < bytes->a.index.size(); ++axis) {
        const Expr index = bytes->a.index[axis].Simplify(domain);
        if (!domain.IsNotNegative(index) ||
            !domain.IsLess(index, kernel[bytes->a.buffer].type.shape[axis])) {
            return std::nullopt;
        }
    }
    found.product = *std::move(product);
    found.bytes = *std::move(bytes);
    return found;
}

}  // namespace fornax::graph::loop
