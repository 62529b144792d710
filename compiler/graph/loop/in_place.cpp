// One store, whose index has each parallel loop once, and loads at the same offset.
#include "compiler/graph/loop/in_place.h"

#include <algorithm>

#include "compiler/graph/loop/scope.h"

namespace fornax::graph::loop {
namespace {

Domain DomainOf(const Kernel& kernel) {
    Domain domain;
    domain.ranges = kernel.sizes;
    for (const Loop& loop : kernel.parallel) {
        domain.AddVariable(loop.variable, loop.extent);
    }
    return domain;
}

Expr OffsetOf(const Buffer& buffer, const std::vector<Expr>& index, const Domain& domain) {
    Expr offset;
    for (size_t i = 0; i < index.size(); ++i) {
        offset = offset * buffer.type.shape[i] + index[i];
    }
    return offset.Simplify(domain);
}

// Whether all points store, each to an element of its own.
bool StoresOnceEach(const Kernel& kernel, const Store& store, const Domain& domain) {
    const Shape& shape = kernel[store.buffer].type.shape;
    std::vector<bool> has(kernel.parallel.size(), false);
    for (size_t i = 0; i < store.index.size(); ++i) {
        const Expr& index = store.index[i];
        if (!domain.IsNotNegative(index) || !domain.IsLess(index, shape[i])) {
            return false;
        }
        if (index.is_constant()) {
            continue;
        }
        const auto loop =
            std::find_if(kernel.parallel.begin(), kernel.parallel.end(),
                         [&](const Loop& one) { return index == Expr(one.variable); });
        if (loop == kernel.parallel.end()) {
            return false;
        }
        has[static_cast<size_t>(loop - kernel.parallel.begin())] = true;
    }
    return std::find(has.begin(), has.end(), false) == has.end();
}

// The scalars that reductions combine or take their extents from: other invocations may compute
// them.
std::vector<bool> InReductions(const Kernel& kernel) {
    std::vector<ScalarId> roots;
    for (const ScalarNode& node : kernel.scalars) {
        if (LoopsOf(node).empty()) {
            continue;
        }
        const std::vector<ScalarId> operands = OperandsOf(node);
        roots.insert(roots.end(), operands.begin(), operands.end());
        for (const Expr& expr : ExpressionsOf(node)) {
            for (const Symbol& symbol : expr.Symbols()) {
                if (const std::optional<ScalarId> scalar = ScalarOfSymbol(symbol)) {
                    roots.push_back(*scalar);
                }
            }
        }
    }
    return Needed(kernel, roots);
}

}  // namespace

bool MayShareBytes(const Kernel& kernel, BufferId read, BufferId written) {
    const bool by_points = kernel.mapping == Mapping::kFlat || kernel.mapping == Mapping::kProduct;
    if (!by_points || !kernel.sequential.empty() || !kernel.phases.empty() ||
        kernel.stores.size() != 1 || kernel.stores[0].buffer != written || kernel[read].written ||
        kernel[read].type.element != kernel[written].type.element) {
        return false;
    }
    const Store& store = kernel.stores[0];
    const Domain domain = DomainOf(kernel);
    if (!StoresOnceEach(kernel, store, domain)) {
        return false;
    }
    const Expr offset = OffsetOf(kernel[written], store.index, domain);
    const std::vector<bool> in_reductions = InReductions(kernel);
    for (size_t i = 0; i < kernel.scalars.size(); ++i) {
        const auto* load = std::get_if<Load>(&kernel.scalars[i].value);
        if (load == nullptr) {
            continue;
        }
        // Points that see what earlier ones stored have no invocation of their own.
        if (load->buffer == written) {
            return false;
        }
        if (load->buffer == read &&
            (in_reductions[i] || OffsetOf(kernel[read], load->index, domain) != offset)) {
            return false;
        }
    }
    return true;
}

bool CopiesInPlace(const Kernel& kernel, BufferId read, BufferId written) {
    if (!MayShareBytes(kernel, read, written)) {
        return false;
    }
    const auto* load = std::get_if<Load>(&kernel[kernel.stores[0].value].value);
    if (load == nullptr || load->buffer != read) {
        return false;
    }
    const Domain domain = DomainOf(kernel);
    for (size_t i = 0; i < load->index.size(); ++i) {
        if (!domain.IsNotNegative(load->index[i]) ||
            !domain.IsLess(load->index[i], kernel[read].type.shape[i])) {
            return false;
        }
    }
    return true;
}

}  // namespace fornax::graph::loop
