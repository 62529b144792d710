// Counts the operations and bytes of kernels.
#include "compiler/graph/loop/costs.h"

#include <span>
#include <vector>

#include "compiler/graph/loop/attention.h"
#include "compiler/graph/loop/product.h"
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

    // No buffer counts more bytes than it has.
    Expr BytesOf(const Kernel& kernel, BufferId buffer) const {
        const TensorType& type = kernel[buffer].type;
        return Min(elements_[buffer.value()], type.shape.Volume()) * graph::BytesOf(type.element);
    }
    bool IsUsed(BufferId buffer) const { return elements_[buffer.value()] != Expr(0); }

    // The sum over all buffers.
    Expr Bytes(const Kernel& kernel) const {
        Expr bytes(0);
        for (size_t i = 0; i < elements_.size(); ++i) {
            bytes += BytesOf(kernel, BufferId(i));
        }
        return bytes;
    }

  private:
    const Scope& scope_;
    std::vector<Expr> elements_;
};

struct AccessedElements {
    ElementCounter read, written;
};

AccessedElements Accessed(const Kernel& kernel, const Scope& scope) {
    AccessedElements accessed = {{kernel, scope}, {kernel, scope}};
    for (const ScalarNode& scalar : kernel.scalars) {
        if (const auto* load = std::get_if<Load>(&scalar.value)) {
            accessed.read.Count(load->buffer, load->index);
        }
    }
    for (const Store* store : StoresOf(kernel)) {
        accessed.written.Count(store->buffer, store->index);
    }
    return accessed;
}

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

bool IsCounted(const ScalarNode& scalar) {
    return !LoopsOf(scalar).empty() || std::holds_alternative<Map>(scalar.value);
}

// How often the scalar number `index` is computed, or a reduction gains a term.
Expr TimesOf(const Kernel& kernel, const Scope& scope, const std::vector<bool>& each, size_t i) {
    const bool reduces = !LoopsOf(kernel.scalars[i]).empty();
    const size_t body = reduces ? OperandsOf(kernel.scalars[i]).front().value() : i;
    return PointsOf(scope.free[body] | (each[i] ? scope.sequential : 0), scope);
}

Expr OperationsOf(const Kernel& kernel, const Scope& scope) {
    const std::vector<bool> each = ComputedInEachIteration(kernel);
    Expr operations(0);
    for (size_t i = 0; i < kernel.scalars.size(); ++i) {
        if (IsCounted(kernel.scalars[i])) {
            operations += TimesOf(kernel, scope, each, i);
        }
    }
    return operations;
}

// --- By kind

ElementType Narrower(ElementType a, ElementType b) {
    return graph::BytesOf(b) < graph::BytesOf(a) ? b : a;
}

// The narrowest type on the way from memory to an operand: through casts, and the zero that is
// subtracted from quantised integers.
ElementType NarrowestOf(const Kernel& kernel, ScalarId id) {
    ElementType narrowest = kernel[id].type;
    while (true) {
        const ScalarNode& node = kernel[id];
        narrowest = Narrower(narrowest, node.type);
        if (const auto* cast = std::get_if<Cast>(&node.value)) {
            id = cast->argument;
        } else if (const auto* map = std::get_if<Map>(&node.value);
                   map != nullptr && map->function == ScalarFunction::kSub && !IsFloat(node.type)) {
            id = map->arguments[0];
        } else {
            return narrowest;
        }
    }
}

// Bytes of the buffers that these scalars load.
Expr BytesLoadedBy(const Kernel& kernel,
                   const ElementCounter& read,
                   std::span<const ScalarId> roots) {
    const std::vector<bool> needed = Needed(kernel, roots);
    std::vector<bool> seen(kernel.buffers.size(), false);
    Expr bytes(0);
    for (size_t i = 0; i < kernel.scalars.size(); ++i) {
        const auto* load = std::get_if<Load>(&kernel.scalars[i].value);
        if (!needed[i] || load == nullptr || Kernel::IsLocal(load->buffer) ||
            seen[load->buffer.value()]) {
            continue;
        }
        seen[load->buffer.value()] = true;
        bytes += read.BytesOf(kernel, load->buffer);
    }
    return bytes;
}

bool IsByData(std::span<const Expr> index) {
    for (const Expr& expr : index) {
        for (const Symbol& symbol : expr.Symbols()) {
            if (ScalarOfSymbol(symbol)) {
                return true;
            }
        }
    }
    return false;
}

std::vector<AccessWork> AccessesOf(const Kernel& kernel,
                                   const ElementCounter& read,
                                   const ElementCounter& written) {
    std::vector<bool> gathered(kernel.buffers.size(), false);
    std::vector<bool> scattered(kernel.buffers.size(), false);
    for (const ScalarNode& scalar : kernel.scalars) {
        const auto* load = std::get_if<Load>(&scalar.value);
        if (load != nullptr && !Kernel::IsLocal(load->buffer) && IsByData(load->index)) {
            gathered[load->buffer.value()] = true;
        }
    }
    for (const Store* store : StoresOf(kernel)) {
        if (!Kernel::IsLocal(store->buffer) && IsByData(store->index)) {
            scattered[store->buffer.value()] = true;
        }
    }
    std::vector<AccessWork> accesses;
    for (size_t i = 0; i < kernel.buffers.size(); ++i) {
        const BufferId buffer(i);
        if (read.IsUsed(buffer)) {
            accesses.push_back({buffer, false, gathered[i], read.BytesOf(kernel, buffer)});
        }
        if (written.IsUsed(buffer)) {
            accesses.push_back({buffer, true, scattered[i], written.BytesOf(kernel, buffer)});
        }
    }
    return accesses;
}

// Both products, and of each score its exponential and a few functions of its row.
void AddAttention(const Kernel& kernel,
                  const Attention& attention,
                  const ElementCounter& read,
                  KernelWork& work) {
    const Expr batch = PointsOf(attention.batch), m = PointsOf(attention.m);
    const Expr n = PointsOf(attention.n), depth = PointsOf(attention.depth);
    const Expr keys = attention.keys.extent;
    const ScalarId query[] = {attention.query}, key[] = {attention.key};
    const ScalarId value[] = {attention.value};
    work.products.push_back({batch, m, keys, depth, NarrowestOf(kernel, attention.query),
                             NarrowestOf(kernel, attention.key), BytesLoadedBy(kernel, read, query),
                             BytesLoadedBy(kernel, read, key)});
    // The probabilities are where they were computed.
    const ElementType narrowest = NarrowestOf(kernel, attention.value);
    work.products.push_back(
        {batch, m, n, keys, narrowest, narrowest, Expr(0), BytesLoadedBy(kernel, read, value)});
    const Expr scores = batch * m * keys;
    work.special = scores;
    work.simple = scores * 3;
    work.division = batch * m * n;
}

void AddOperations(const Kernel& kernel,
                   const Scope& scope,
                   const std::optional<Product>& product,
                   KernelWork& work) {
    const std::vector<bool> each = ComputedInEachIteration(kernel);
    const auto is_of_product = [&](size_t i) {
        return product &&
               (i == product->sum.value() || i == OperandsOf(kernel[product->sum]).front().value());
    };
    for (size_t i = 0; i < kernel.scalars.size(); ++i) {
        if (!IsCounted(kernel.scalars[i]) || is_of_product(i)) {
            continue;
        }
        const Expr times = TimesOf(kernel, scope, each, i);
        const auto* map = std::get_if<Map>(&kernel.scalars[i].value);
        if (map == nullptr) {
            work.simple += times;
            continue;
        }
        switch (map->function) {
            case ScalarFunction::kDiv:
            case ScalarFunction::kFloorDiv:
            case ScalarFunction::kRem:
            case ScalarFunction::kMod:
                work.division += times;
                break;
            case ScalarFunction::kSqrt:
            case ScalarFunction::kRsqrt:
            case ScalarFunction::kReciprocal:
                work.special += times;
                break;
            default:
                (IsTranscendental(map->function) ? work.special : work.simple) += times;
                break;
        }
    }
}

}  // namespace

KernelCosts EstimateCosts(const Kernel& kernel) {
    const Scope scope = FindScope(kernel);
    const auto [read, written] = Accessed(kernel, scope);
    const auto attention = FindAttention(kernel, scope);
    return {attention ? OperationsOf(*attention) : OperationsOf(kernel, scope), read.Bytes(kernel),
            written.Bytes(kernel)};
}

KernelWork WorkOf(const Kernel& kernel) {
    const Scope scope = FindScope(kernel);
    const auto [read, written] = Accessed(kernel, scope);
    KernelWork work;
    work.accesses = AccessesOf(kernel, read, written);
    if (const auto attention = FindAttention(kernel, scope)) {
        AddAttention(kernel, *attention, read, work);
        return work;
    }
    std::optional<Product> product = FindProduct(kernel, scope);
    if (product) {
        ProductWork of = {PointsOf(product->batch),
                          PointsOf(product->m),
                          PointsOf(product->n),
                          PointsOf(product->k),
                          {},
                          {},
                          {},
                          {}};
        const bool is_vector = of.m == Expr(1) || of.n == Expr(1);
        if (is_vector && of.batch != Expr(1)) {
            product.reset();
        } else {
            const ScalarId a[] = {product->a}, b[] = {product->b};
            of.a = NarrowestOf(kernel, product->a);
            of.b = NarrowestOf(kernel, product->b);
            of.a_bytes = BytesLoadedBy(kernel, read, a);
            of.b_bytes = BytesLoadedBy(kernel, read, b);
            work.products.push_back(std::move(of));
        }
    }
    AddOperations(kernel, scope, product, work);
    return work;
}

}  // namespace fornax::graph::loop
