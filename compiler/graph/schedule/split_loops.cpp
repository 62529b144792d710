// Splits loops of products by what their operands divide them by.
#include "compiler/graph/schedule/split_loops.h"

#include <algorithm>
#include <map>
#include <optional>

#include "compiler/graph/loop/limits.h"
#include "compiler/graph/loop/product.h"
#include "compiler/graph/loop/scope.h"

namespace fornax::graph {
namespace {

using loop::Kernel;
using loop::Loop;

// By what the expression divides the variable, if it is a constant.
std::optional<int64_t> DivisorOf(const Expr& expr, const Symbol& variable) {
    for (const ExprTerm& term : expr.terms()) {
        for (const AtomRef& atom : term.factors) {
            const bool divides = atom->kind == AtomKind::kFloorDiv || atom->kind == AtomKind::kMod;
            if (divides && atom->a == Expr(variable)) {
                return atom->b.constant();
            }
        }
    }
    return std::nullopt;
}

void Replace(Kernel& kernel, const Symbol& variable, const Expr& by) {
    Domain domain;
    domain.ranges = kernel.sizes;
    for (const Loop& loop : kernel.parallel) {
        domain.AddVariable(loop.variable, loop.extent);
    }
    for (const loop::ScalarNode& node : kernel.scalars) {
        for (const Loop& loop : loop::LoopsOf(node)) {
            domain.AddVariable(loop.variable, loop.extent);
        }
    }
    const std::map<Symbol, Expr> values = {{variable, by}};
    const auto replace = [&](Expr& expr) { expr = expr.Substitute(values).Simplify(domain); };
    for (loop::ScalarNode& node : kernel.scalars) {
        if (auto* load = std::get_if<loop::Load>(&node.value)) {
            std::for_each(load->index.begin(), load->index.end(), replace);
        } else if (auto* index = std::get_if<loop::Index>(&node.value)) {
            replace(index->value);
        } else if (auto* range = std::get_if<loop::InRange>(&node.value)) {
            replace(range->value);
            replace(range->extent);
        }
    }
    for (loop::Store& store : kernel.stores) {
        std::for_each(store.index.begin(), store.index.end(), replace);
    }
}

// The kernel with the loop in two parts, the inner one of `divisor` points.
Kernel Split(const Kernel& kernel, size_t position, int64_t divisor) {
    Kernel split = kernel;
    const Loop loop = kernel.parallel[position];
    const Loop outer = {Symbol(loop.variable.name() + "o"), *loop.extent.constant() / divisor};
    const Loop inner = {Symbol(loop.variable.name() + "p"), divisor};
    split.parallel[position] = outer;
    split.parallel.insert(split.parallel.begin() + static_cast<std::ptrdiff_t>(position) + 1,
                          inner);
    Replace(split, loop.variable, divisor * Expr(outer.variable) + Expr(inner.variable));
    return split;
}

std::optional<int64_t> DivisorOf(const Kernel& kernel, const Symbol& variable) {
    for (const loop::ScalarNode& node : kernel.scalars) {
        for (const Expr& expr : loop::ExpressionsOf(node)) {
            if (const std::optional<int64_t> divisor = DivisorOf(expr, variable)) {
                return divisor;
            }
        }
    }
    return std::nullopt;
}

}  // namespace

void SplitLoopsOfProduct(Kernel& kernel) {
    for (size_t i = kernel.parallel.size(); i-- > 0;) {
        const loop::Scope scope = loop::FindScope(kernel);
        const std::optional<loop::Product> product = loop::FindProduct(kernel, scope);
        if (!product) {
            return;
        }
        const Loop& loop = kernel.parallel[i];
        const std::optional<int64_t> extent = loop.extent.constant();
        const bool is_batch =
            std::any_of(product->batch.begin(), product->batch.end(),
                        [&](const Loop& other) { return other.variable == loop.variable; });
        const std::optional<int64_t> divisor = DivisorOf(kernel, loop.variable);
        if (!is_batch || !extent || !divisor || *divisor < 2 || *extent % *divisor != 0 ||
            kernel.parallel.size() == loop::kMaxLoops) {
            continue;
        }
        Kernel split = Split(kernel, i, *divisor);
        const std::optional<loop::Product> parts = loop::FindProduct(split, loop::FindScope(split));
        if (parts && parts->batch.size() + 1 == product->batch.size()) {
            kernel = std::move(split);
        }
    }
}

}  // namespace fornax::graph
