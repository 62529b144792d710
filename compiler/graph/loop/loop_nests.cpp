// Loops that become one (loop_nests.h).
#include "compiler/graph/loop/loop_nests.h"

#include <algorithm>

#include <fmt/format.h>

namespace fornax::graph::loop {

bool UsesScalar(const Expr& expr) {
    const std::vector<Symbol> symbols = expr.Symbols();
    return std::any_of(symbols.begin(), symbols.end(),
                       [](const Symbol& symbol) { return ScalarOfSymbol(symbol).has_value(); });
}

bool LoopNests::Proven(const Expr& index, const Expr& extent) const {
    return domain_.IsNotNegative(index) && domain_.IsLess(index, extent);
}

bool LoopNests::FitsI32(const Expr& expr) const {
    const Range range = expr.Bounds(domain_.ranges);
    return range.low >= INT32_MIN && range.high <= INT32_MAX;
}

Expr LoopNests::Offset(BufferId buffer, const std::vector<Expr>& index) const {
    const Shape& shape = kernel_[buffer].type.shape;
    Expr offset, stride(1);
    for (size_t axis = shape.rank(); axis-- > 0;) {
        if (!UsesScalar(index[axis])) {
            offset += index[axis] * stride;
        }
        stride *= shape[axis];
    }
    return offset;
}

bool LoopNests::HasNoNegativeExtents() const {
    return std::all_of(scope_.variables.begin(), scope_.variables.end(), [&](const Loop& loop) {
        return domain_.IsNotNegative(Simplified(loop.extent));
    });
}

std::vector<Expr> LoopNests::UsesIn(const std::vector<bool>& scalars,
                                    std::span<const Store> stores) const {
    std::vector<Expr> uses;
    const auto access = [&](BufferId buffer, const std::vector<Expr>& index) {
        uses.push_back(Simplified(Offset(buffer, index)));
        for (size_t axis = 0; axis < index.size(); ++axis) {
            const Expr simple = Simplified(index[axis]);
            if (!Proven(simple, kernel_[buffer].type.shape[axis])) {
                uses.push_back(simple);
            }
        }
    };
    for (size_t i = 0; i < kernel_.scalars.size(); ++i) {
        const ScalarNode& node = kernel_.scalars[i];
        if (!scalars[i]) {
            continue;
        }
        if (const auto* load = std::get_if<Load>(&node.value)) {
            access(load->buffer, load->index);
            continue;
        }
        for (const Expr& expr : ExpressionsOf(node)) {
            uses.push_back(Simplified(expr));
        }
    }
    for (const Store& store : stores) {
        access(store.buffer, store.index);
    }
    return uses;
}

Nest LoopNests::Collapse(std::span<const Loop> loops, std::span<const Expr> users) {
    Nest nest;
    std::vector<Expr> uses(users.begin(), users.end());
    for (size_t i = loops.size(); i-- > 0;) {
        const Loop& outer = loops[i];
        nest.variables |= VariableSet{1} << *scope_.Find(outer.variable);
        if (outer.extent == Expr(1) && (i > 0 || !nest.loops.empty())) {
            continue;  // its variable is 0, which simplifying knows
        }
        if (!nest.loops.empty()) {
            const Loop inner = nest.loops.back();
            const Symbol merged(fmt::format("$ m{}", merge_count_++));
            const std::map<Symbol, Expr> substitution = {
                {inner.variable, Expr(merged) - inner.extent * Expr(outer.variable)}};
            std::vector<Expr> after;
            for (const Expr& use : uses) {
                after.push_back(use.Substitute(substitution));
                if (after.back().Uses(outer.variable)) {
                    break;
                }
            }
            if (after.empty() || !after.back().Uses(outer.variable)) {
                uses = std::move(after);
                merges_.push_back({outer.variable, inner.variable, merged, inner.extent});
                nest.loops.back() = {merged, outer.extent * inner.extent};
                domain_.AddVariable(merged, nest.loops.back().extent);
                continue;
            }
        }
        nest.loops.push_back(outer);
    }
    std::reverse(nest.loops.begin(), nest.loops.end());
    return nest;
}

void LoopNests::DropMerges(size_t from) {
    merges_.erase(merges_.begin() + static_cast<std::ptrdiff_t>(from), merges_.end());
}

Expr LoopNests::UnmergedValue(const Symbol& symbol) const {
    for (const Merge& merge : merges_) {
        if (merge.inner == symbol) {
            return Mod(UnmergedValue(merge.merged), merge.inner_extent);
        }
        if (merge.outer == symbol) {
            return FloorDiv(UnmergedValue(merge.merged), merge.inner_extent);
        }
    }
    return {symbol};
}

Expr LoopNests::Simplified(const Expr& expr) const {
    Expr result = expr.Simplify(domain_);
    bool changed = false;
    for (const Merge& merge : merges_) {
        if (result.Uses(merge.inner)) {
            result = result.Substitute(
                {{merge.inner, Expr(merge.merged) - merge.inner_extent * Expr(merge.outer)}});
            changed = true;
        }
    }
    // What is left of an outer variable was not a use that Collapse() has seen.
    for (const Merge& merge : merges_) {
        if (result.Uses(merge.outer)) {
            result = result.Substitute({{merge.outer, UnmergedValue(merge.outer)}});
            changed = true;
        }
    }
    return changed ? result.Simplify(domain_) : result;
}

}  // namespace fornax::graph::loop
