// Free variables, from each scalar's operands on.
#include "compiler/graph/loop/scope.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace fornax::graph::loop {
namespace {

constexpr std::string_view kScalarPrefix = "$v";

VariableSet Bit(size_t variable) {
    return VariableSet{1} << variable;
}

void AddLoops(std::span<const Loop> loops, Scope& scope) {
    for (const Loop& loop : loops) {
        if (!scope.Find(loop.variable)) {
            scope.variables.push_back(loop);
        }
    }
}

VariableSet FreeVariables(const Kernel& kernel, const ScalarNode& node, const Scope& scope) {
    VariableSet free = 0;
    for (const ScalarId operand : OperandsOf(node)) {
        free |= scope.free[operand.value()];
    }
    for (const Expr& expr : ExpressionsOf(node)) {
        free |= scope.FreeIn(expr);
    }
    if (const auto* load = std::get_if<Load>(&node.value);
        load != nullptr && (kernel[load->buffer].written || Kernel::IsLocal(load->buffer))) {
        const bool local = Kernel::IsLocal(load->buffer);
        free |= local ? scope.parallel : scope.parallel | scope.sequential;
    }
    return free & ~scope.VariablesOf(LoopsOf(node));
}

}  // namespace

std::optional<size_t> Scope::Find(const Symbol& variable) const {
    for (size_t i = 0; i < variables.size(); ++i) {
        if (variables[i].variable == variable) {
            return i;
        }
    }
    return std::nullopt;
}

VariableSet Scope::VariablesOf(std::span<const Loop> loops) const {
    VariableSet set = 0;
    for (const Loop& loop : loops) {
        if (const std::optional<size_t> variable = Find(loop.variable)) {
            set |= Bit(*variable);
        }
    }
    return set;
}

std::vector<bool> Scope::VaryingWith(VariableSet set, std::vector<bool> scalars) const {
    for (size_t i = 0; i < scalars.size(); ++i) {
        scalars[i] = scalars[i] && (free[i] & set) != 0;
    }
    return scalars;
}

VariableSet Scope::FreeIn(const Expr& expr) const {
    VariableSet set = 0;
    for (const Symbol& symbol : expr.Symbols()) {
        if (const std::optional<ScalarId> scalar = ScalarOfSymbol(symbol)) {
            set |= free[scalar->value()];
        } else if (const std::optional<size_t> variable = Find(symbol)) {
            set |= Bit(*variable);
        }
    }
    return set;
}

std::optional<ScalarId> ScalarOfSymbol(const Symbol& symbol) {
    std::string_view name = symbol.name();
    if (!name.starts_with(kScalarPrefix)) {
        return std::nullopt;
    }
    name.remove_prefix(kScalarPrefix.size());
    uint32_t index = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
    // One scalar has one name: "$v07" is none.
    if (error != std::errc() || fmt::format("{}", index) != name) {
        return std::nullopt;
    }
    return ScalarId(index);
}

Symbol SymbolOfScalar(ScalarId scalar) {
    return Symbol(fmt::format("{}{}", kScalarPrefix, scalar.value()));
}

Scope FindScope(const Kernel& kernel) {
    Scope scope;
    AddLoops(kernel.parallel, scope);
    scope.parallel = Bit(kernel.parallel.size()) - 1;
    AddLoops(kernel.sequential, scope);
    scope.sequential = (Bit(scope.variables.size()) - 1) & ~scope.parallel;
    for (const Phase& phase : kernel.phases) {
        AddLoops(phase.lanes, scope);
        scope.lanes |= scope.VariablesOf(phase.lanes);
    }
    for (const ScalarNode& node : kernel.scalars) {
        AddLoops(LoopsOf(node), scope);
    }
    for (const ScalarNode& node : kernel.scalars) {
        scope.free.push_back(FreeVariables(kernel, node, scope));
    }
    return scope;
}

namespace {

void AddStores(std::span<const Store> more, std::vector<const Store*>& stores) {
    for (const Store& store : more) {
        stores.push_back(&store);
    }
}

}  // namespace

std::vector<const Store*> StoresOf(const Kernel& kernel) {
    std::vector<const Store*> stores;
    AddStores(kernel.stores, stores);
    for (const Phase& phase : kernel.phases) {
        AddStores(phase.stores, stores);
    }
    return stores;
}

std::vector<const Store*> StoresOf(const Phase& phase) {
    std::vector<const Store*> stores;
    AddStores(phase.stores, stores);
    return stores;
}

bool LoadsWhatIsWritten(const Kernel& kernel) {
    return std::any_of(kernel.scalars.begin(), kernel.scalars.end(), [&](const ScalarNode& node) {
        const auto* load = std::get_if<Load>(&node.value);
        return load != nullptr && kernel[load->buffer].written;
    });
}

std::span<const Loop> LoopsOf(const ScalarNode& node) {
    if (const auto* reduce = std::get_if<Reduce>(&node.value)) {
        return reduce->loops;
    }
    if (const auto* reduce = std::get_if<ArgReduce>(&node.value)) {
        return {&reduce->loop, 1};
    }
    return {};
}

std::vector<ScalarId> OperandsOf(const ScalarNode& node) {
    struct Visitor {
        std::vector<ScalarId> operator()(const Constant&) const { return {}; }
        std::vector<ScalarId> operator()(const Load& load) const {
            return load.otherwise.valid() ? std::vector{load.otherwise} : std::vector<ScalarId>();
        }
        std::vector<ScalarId> operator()(const Index&) const { return {}; }
        std::vector<ScalarId> operator()(const InRange&) const { return {}; }
        std::vector<ScalarId> operator()(const Map& map) const { return map.arguments; }
        std::vector<ScalarId> operator()(const Cast& cast) const { return {cast.argument}; }
        std::vector<ScalarId> operator()(const Bitcast& cast) const { return {cast.argument}; }
        std::vector<ScalarId> operator()(const Reduce& reduce) const { return {reduce.body}; }
        std::vector<ScalarId> operator()(const ArgReduce& reduce) const { return {reduce.body}; }
    };
    return std::visit(Visitor(), node.value);
}

std::vector<Expr> ExpressionsOf(const ScalarNode& node) {
    if (const auto* load = std::get_if<Load>(&node.value)) {
        return load->index;
    }
    if (const auto* index = std::get_if<Index>(&node.value)) {
        return {index->value};
    }
    if (const auto* range = std::get_if<InRange>(&node.value)) {
        return {range->value, range->extent};
    }
    std::vector<Expr> extents;
    for (const Loop& loop : LoopsOf(node)) {
        extents.push_back(loop.extent);
    }
    return extents;
}

Expr PointsOf(std::span<const Loop> loops) {
    Expr points(1);
    for (const Loop& loop : loops) {
        points *= loop.extent;
    }
    return points;
}

std::vector<bool> Needed(const Kernel& kernel,
                         std::span<const ScalarId> roots,
                         std::span<const ScalarId> given) {
    std::vector<bool> needed(kernel.scalars.size());
    for (const ScalarId root : roots) {
        needed[root.value()] = true;
    }
    for (size_t i = needed.size(); i-- > 0;) {
        if (!needed[i] || std::find(given.begin(), given.end(), ScalarId(i)) != given.end()) {
            continue;
        }
        const ScalarNode& node = kernel.scalars[i];
        for (const ScalarId operand : OperandsOf(node)) {
            needed[operand.value()] = true;
        }
        for (const Expr& expr : ExpressionsOf(node)) {
            for (const Symbol& symbol : expr.Symbols()) {
                if (const std::optional<ScalarId> scalar = ScalarOfSymbol(symbol)) {
                    needed[scalar->value()] = true;
                }
            }
        }
    }
    return needed;
}

std::vector<ScalarId> RootsOf(std::span<const Store* const> stores) {
    std::vector<ScalarId> roots;
    for (const Store* store : stores) {
        roots.push_back(store->value);
        if (store->condition.valid()) {
            roots.push_back(store->condition);
        }
        for (const Expr& expr : store->index) {
            for (const Symbol& symbol : expr.Symbols()) {
                if (const std::optional<ScalarId> scalar = ScalarOfSymbol(symbol)) {
                    roots.push_back(*scalar);
                }
            }
        }
    }
    return roots;
}

}  // namespace fornax::graph::loop
