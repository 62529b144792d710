// Recognises sums of products.
#include "compiler/graph/loop/product.h"

#include <utility>

namespace fornax::graph::loop {
namespace {

bool Has(VariableSet set, size_t variable) {
    return ((set >> variable) & 1) != 0;
}

// The only reduction of the kernel.
std::optional<ScalarId> OnlySum(const Kernel& kernel) {
    std::optional<ScalarId> sum;
    for (size_t i = 0; i < kernel.scalars.size(); ++i) {
        if (LoopsOf(kernel.scalars[i]).empty()) {
            continue;
        }
        const auto* reduce = std::get_if<Reduce>(&kernel.scalars[i].value);
        if (sum || reduce == nullptr || reduce->combine != Combine::kSum) {
            return std::nullopt;
        }
        sum = ScalarId(i);
    }
    return sum;
}

}  // namespace

std::optional<Product> FindProduct(const Kernel& kernel, const Scope& scope) {
    const std::optional<ScalarId> sum = OnlySum(kernel);
    return sum ? ProductOf(kernel, scope, *sum) : std::nullopt;
}

std::optional<Product> ProductOf(const Kernel& kernel, const Scope& scope, ScalarId sum) {
    if (!kernel.sequential.empty()) {
        return std::nullopt;
    }
    const auto& reduce = std::get<Reduce>(kernel[sum].value);
    const auto* multiplication = std::get_if<Map>(&kernel[reduce.body].value);
    if (multiplication == nullptr || multiplication->function != ScalarFunction::kMul) {
        return std::nullopt;
    }
    Product product;
    product.sum = sum;
    product.a = multiplication->arguments[0];
    product.b = multiplication->arguments[1];
    product.k = reduce.loops;
    if (!kernel.parallel.empty() &&
        Has(scope.free[product.a.value()], kernel.parallel.size() - 1)) {
        std::swap(product.a, product.b);
    }
    const VariableSet a = scope.free[product.a.value()], b = scope.free[product.b.value()];
    for (size_t i = 0; i < kernel.parallel.size(); ++i) {
        const Loop& loop = kernel.parallel[i];
        if (Has(a, i) && Has(b, i)) {
            product.batch.push_back(loop);
        } else if (Has(a, i)) {
            product.m.push_back(loop);
        } else if (Has(b, i)) {
            product.n.push_back(loop);
        } else {
            return std::nullopt;  // the sum would be computed again along this loop
        }
    }
    return product;
}

}  // namespace fornax::graph::loop
