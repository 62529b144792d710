// Counts the operations and bytes of kernels.
#include "compiler/graph/loop/costs.h"

#include <span>
#include <vector>

#include "compiler/graph/loop/attention.h"
#include "compiler/graph/loop/scope.h"

namespace fornax::graph::loop {
namespace {

Expr PointsOf(VariableSet set, const Scope& scope) {
    Expr points(1);
    for (size_t i = 0; i < scope.variables.size(); ++i) {
        if (((set >> i) & 1) != 0) {
            points *= scope.variables[i].extent;
        }
    }
    return points;
}

// Adds the accesses' elements to those of their buffer, `elements[buffer]`.
class ElementCounter {
  public:
    ElementCounter(const Kernel& kernel, const Scope& scope)
        : scope_(scope), elements_(kernel.buffers.size(), Expr(0)) {}

    void Count(BufferId buffer, std::span<const Expr> index) {
        if (Kernel::IsLocal(buffer)) {
            return;
        }
        VariableSet variables = 0;
        for (const Expr& expr : index) {
            variables |= scope_.FreeIn(expr);
        }
        elements_[buffer.value()] += PointsOf(variables, scope_);
    }

    // The sum over all buffers, none of which counts more bytes than it has.
    Expr Bytes(const Kernel& kernel) const {
        Expr bytes(0);
        for (size_t i = 0; i < elements_.size(); ++i) {
            const TensorType& type = kernel.buffers[i].type;
            bytes += Min(elements_[i], type.shape.Volume()) * graph::BytesOf(type.element);
        }
        return bytes;
    }

  private:
    const Scope& scope_;
    std::vector<Expr> elements_;
};

// Each product and each sum once, whatever the kernel's form says.
Expr OperationsOf(const Attention& attention) {
    const Expr scores = PointsOf(attention.batch) * PointsOf(attention.m) * attention.keys.extent;
    return scores * (2 * PointsOf(attention.depth) + 2 * PointsOf(attention.n));
}

// The scalars of phases that run in each iteration are computed in each, whatever they depend on.
std::vector<bool> ComputedInEachIteration(const Kernel& kernel) {
    std::vector<const Store*> stores;
    for (const Phase& phase : kernel.phases) {
        for (const Store& store : phase.stores) {
            if (phase.when == When::kEach) {
                stores.push_back(&store);
            }
        }
    }
    return Needed(kernel, RootsOf(stores));
}

Expr OperationsOf(const Kernel& kernel, const Scope& scope) {
    const std::vector<bool> each = ComputedInEachIteration(kernel);
    Expr operations(0);
    for (size_t i = 0; i < kernel.scalars.size(); ++i) {
        const ScalarNode& scalar = kernel.scalars[i];
        const bool reduces = !LoopsOf(scalar).empty();
        if (!reduces && !std::holds_alternative<Map>(scalar.value)) {
            continue;
        }
        const size_t body = reduces ? OperandsOf(scalar).front().value() : i;
        operations += PointsOf(scope.free[body] | (each[i] ? scope.sequential : 0), scope);
    }
    return operations;
}

}  // namespace

KernelCosts EstimateCosts(const Kernel& kernel) {
    const Scope scope = FindScope(kernel);
    ElementCounter read(kernel, scope), written(kernel, scope);
    for (const ScalarNode& scalar : kernel.scalars) {
        if (const auto* load = std::get_if<Load>(&scalar.value)) {
            read.Count(load->buffer, load->index);
        }
    }
    for (const Store* store : StoresOf(kernel)) {
        written.Count(store->buffer, store->index);
    }
    const auto attention = FindAttention(kernel, scope);
    return {attention ? OperationsOf(*attention) : OperationsOf(kernel, scope), read.Bytes(kernel),
            written.Bytes(kernel)};
}

}  // namespace fornax::graph::loop
