// Recognises attention.
//
// Each reduction of a kernel may have variables of its own, so that the scores under the maximum,
// under the sum and beside the values are different scalars. They are compared with the variables
// renamed.
#include "compiler/graph/loop/attention.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace fornax::graph::loop {
namespace {

// The limit of depth and of n: the sums of a tile of queries are in private memory.
constexpr int64_t kMaxColumns = 256;

bool Has(VariableSet set, size_t variable) {
    return ((set >> variable) & 1) != 0;
}

// Compares scalars as functions of their variables.
class Comparison {
  public:
    Comparison(const Kernel& kernel, const Scope& scope) : kernel_(kernel), scope_(scope) {}

    // Renames a variable of the first scalar; false if it has another name already, or another
    // variable this one.
    bool Rename(const Symbol& from, const Symbol& to) {
        const auto [found, inserted] = names_.emplace(from, Expr(to));
        if (!inserted) {
            return found->second == Expr(to);
        }
        if (from != to) {
            renamed_ |= VariableSet{1} << *scope_.Find(from);
        }
        return taken_.insert(to).second;
    }

    bool AreSame(ScalarId a, ScalarId b) {
        if (a == b) {
            return (scope_.free[a.value()] & renamed_) == 0;
        }
        if (!a.valid() || !b.valid()) {
            return false;
        }
        if (same_.contains({a.value(), b.value()})) {
            return true;
        }
        const ScalarNode &left = kernel_[a], &right = kernel_[b];
        if (left.type != right.type || left.value.index() != right.value.index()) {
            return false;
        }
        const bool same = std::visit(
            [&](const auto& value) {
                return Compare(value, std::get<std::decay_t<decltype(value)>>(right.value));
            },
            left.value);
        if (same) {
            same_.emplace(a.value(), b.value());
        }
        return same;
    }

  private:
    bool AreSame(const Expr& a, const Expr& b) const {
        const std::vector<Symbol> symbols = a.Symbols();
        const bool uses_scalars =
            std::any_of(symbols.begin(), symbols.end(),
                        [](const Symbol& symbol) { return ScalarOfSymbol(symbol).has_value(); });
        return !uses_scalars && a.Substitute(names_) == b;
    }

    bool Compare(const Constant& a, const Constant& b) const {
        return a.value.is_float == b.value.is_float && a.value.integer == b.value.integer &&
               a.value.number == b.value.number;
    }
    bool Compare(const Load& a, const Load& b) {
        return a.buffer == b.buffer &&
               std::equal(a.index.begin(), a.index.end(), b.index.begin(), b.index.end(),
                          [&](const Expr& x, const Expr& y) { return AreSame(x, y); }) &&
               (a.otherwise.valid() == b.otherwise.valid()) &&
               (!a.otherwise.valid() || AreSame(a.otherwise, b.otherwise));
    }
    bool Compare(const Index& a, const Index& b) const { return AreSame(a.value, b.value); }
    bool Compare(const InRange& a, const InRange& b) const {
        return AreSame(a.value, b.value) && AreSame(a.extent, b.extent);
    }
    bool Compare(const Map& a, const Map& b) {
        return a.function == b.function &&
               std::equal(a.arguments.begin(), a.arguments.end(), b.arguments.begin(),
                          b.arguments.end(), [&](ScalarId x, ScalarId y) { return AreSame(x, y); });
    }
    bool Compare(const Cast& a, const Cast& b) {
        return a.overflow == b.overflow && a.rounding == b.rounding &&
               AreSame(a.argument, b.argument);
    }
    bool Compare(const Bitcast& a, const Bitcast& b) { return AreSame(a.argument, b.argument); }
    bool Compare(const Reduce& a, const Reduce& b) {
        if (a.combine != b.combine || a.loops.size() != b.loops.size()) {
            return false;
        }
        for (size_t i = 0; i < a.loops.size(); ++i) {
            if (!AreSame(a.loops[i].extent, b.loops[i].extent) ||
                !Rename(a.loops[i].variable, b.loops[i].variable)) {
                return false;
            }
        }
        return AreSame(a.body, b.body);
    }
    bool Compare(const ArgReduce&, const ArgReduce&) const { return false; }

    const Kernel& kernel_;
    const Scope& scope_;
    std::map<Symbol, Expr> names_;
    std::set<Symbol> taken_;
    VariableSet renamed_ = 0;
    std::set<std::pair<uint32_t, uint32_t>> same_;
};

class Finder {
  public:
    Finder(const Kernel& kernel, const Scope& scope) : kernel_(kernel), scope_(scope) {}

    std::optional<Attention> Find() {
        if (!kernel_.sequential.empty() || kernel_.stores.empty()) {
            return std::nullopt;
        }
        // The stores' one reduction.
        std::vector<ScalarId> roots;
        for (const Store& store : kernel_.stores) {
            roots.push_back(store.value);
            if (store.condition.valid()) {
                roots.push_back(store.condition);
            }
            for (const Expr& expr : store.index) {
                AddScalarsOf(expr, roots);
            }
        }
        const std::optional<ScalarId> sum = OnlyReduction(roots);
        if (!sum || !IsSum(*sum) || LoopsOf(kernel_[*sum]).size() != 1) {
            return std::nullopt;
        }
        found_.sum = *sum;
        found_.keys = LoopsOf(kernel_[*sum])[0];
        keys_ = *scope_.Find(found_.keys.variable);
        const auto* product =
            AsMap(std::get<Reduce>(kernel_[*sum].value).body, ScalarFunction::kMul);
        if (product == nullptr) {
            return std::nullopt;
        }
        for (const size_t side : {0, 1}) {
            found_.value = product->arguments[1 - side];
            found_.none = {};
            if (IsProbability(product->arguments[side]) && FindProduct() &&
                SplitLoops(product->arguments[side])) {
                return found_;
            }
        }
        return std::nullopt;
    }

  private:
    const Map* AsMap(ScalarId id, ScalarFunction function) const {
        const auto* map = std::get_if<Map>(&kernel_[id].value);
        return map != nullptr && map->function == function && kernel_[id].type == ElementType::kF32
                   ? map
                   : nullptr;
    }
    const Reduce* AsReduce(ScalarId id, Combine combine) const {
        const auto* reduce = std::get_if<Reduce>(&kernel_[id].value);
        return reduce != nullptr && reduce->combine == combine &&
                       kernel_[id].type == ElementType::kF32
                   ? reduce
                   : nullptr;
    }
    bool IsSum(ScalarId id) const { return AsReduce(id, Combine::kSum) != nullptr; }

    static void AddScalarsOf(const Expr& expr, std::vector<ScalarId>& scalars) {
        for (const Symbol& symbol : expr.Symbols()) {
            if (const std::optional<ScalarId> scalar = ScalarOfSymbol(symbol)) {
                scalars.push_back(*scalar);
            }
        }
    }

    // The only reduction that the scalars need, but for those that it needs itself.
    std::optional<ScalarId> OnlyReduction(std::vector<ScalarId> pending) const {
        std::optional<ScalarId> found;
        std::vector<bool> seen(kernel_.scalars.size());
        while (!pending.empty()) {
            const ScalarId id = pending.back();
            pending.pop_back();
            if (seen[id.value()]) {
                continue;
            }
            seen[id.value()] = true;
            const ScalarNode& node = kernel_[id];
            if (!LoopsOf(node).empty()) {
                if (found) {
                    return std::nullopt;
                }
                found = id;
                continue;
            }
            for (const ScalarId operand : OperandsOf(node)) {
                pending.push_back(operand);
            }
            for (const Expr& expr : ExpressionsOf(node)) {
                AddScalarsOf(expr, pending);
            }
        }
        return found;
    }

    // Whether a reduction over one loop as long as that of the keys has the body `body`.
    bool IsOverKeys(const Reduce& reduce, ScalarId body) const {
        if (reduce.loops.size() != 1 || reduce.loops[0].extent != found_.keys.extent) {
            return false;
        }
        Comparison comparison(kernel_, scope_);
        return comparison.Rename(reduce.loops[0].variable, found_.keys.variable) &&
               comparison.AreSame(reduce.body, body);
    }

    bool IsProbability(ScalarId id) {
        if (const Map* select = AsMap(id, ScalarFunction::kSelect)) {
            const auto* zero = std::get_if<Constant>(&kernel_[select->arguments[1]].value);
            if (zero == nullptr || zero->value.number != 0 ||
                Has(scope_.free[select->arguments[0].value()], keys_)) {
                return false;
            }
            found_.none = select->arguments[0];
            id = select->arguments[2];
        }
        const Map* quotient = AsMap(id, ScalarFunction::kDiv);
        if (quotient == nullptr) {
            return false;
        }
        const ScalarId power = quotient->arguments[0];
        const Reduce* sum = AsReduce(quotient->arguments[1], Combine::kSum);
        const Map* exp = AsMap(power, ScalarFunction::kExp);
        const Map* difference =
            exp == nullptr ? nullptr : AsMap(exp->arguments[0], ScalarFunction::kSub);
        if (sum == nullptr || difference == nullptr) {
            return false;
        }
        found_.score = difference->arguments[0];
        const Reduce* greatest = AsReduce(difference->arguments[1], Combine::kMax);
        return greatest != nullptr && IsOverKeys(*greatest, found_.score) &&
               IsOverKeys(*sum, power);
    }

    bool FindProduct() {
        const std::optional<ScalarId> product = OnlyReduction({found_.score});
        if (!product || !IsSum(*product)) {
            return false;
        }
        const auto& reduce = std::get<Reduce>(kernel_[*product].value);
        const Map* multiplication = AsMap(reduce.body, ScalarFunction::kMul);
        if (multiplication == nullptr) {
            return false;
        }
        found_.product = *product;
        found_.factor = 1;
        found_.depth = reduce.loops;
        found_.query = multiplication->arguments[0];
        found_.key = multiplication->arguments[1];
        if (Has(scope_.free[found_.query.value()], keys_)) {
            std::swap(found_.query, found_.key);
        }
        // Keys that are loads can be multiplied where they lie.
        if (const Map* scaled = AsMap(found_.key, ScalarFunction::kMul)) {
            for (const size_t side : {0, 1}) {
                const auto* factor = std::get_if<Constant>(&kernel_[scaled->arguments[side]].value);
                if (factor != nullptr) {
                    found_.factor = static_cast<float>(factor->value.number);
                    found_.key = scaled->arguments[1 - side];
                    break;
                }
            }
        }
        return true;
    }

    bool SplitLoops(ScalarId probability) {
        VariableSet depth = 0;
        for (const Loop& loop : found_.depth) {
            depth |= VariableSet{1} << *scope_.Find(loop.variable);
        }
        const VariableSet keys = VariableSet{1} << keys_;
        const VariableSet query = scope_.free[found_.query.value()];
        const VariableSet key = scope_.free[found_.key.value()];
        const VariableSet value = scope_.free[found_.value.value()];
        const VariableSet shared = (key | value) & scope_.parallel;
        const VariableSet row = scope_.free[probability.value()] & scope_.parallel;
        if ((query & ~(scope_.parallel | depth)) != 0 ||
            (key & ~(scope_.parallel | depth | keys)) != 0 ||
            (value & ~(scope_.parallel | keys)) != 0 || (depth & keys) != 0 ||
            (key & scope_.parallel & ~row) != 0) {
            return false;
        }
        for (size_t i = 0; i < kernel_.parallel.size(); ++i) {
            const Loop& loop = kernel_.parallel[i];
            if (Has(row, i)) {
                (Has(shared, i) ? found_.batch : found_.m).push_back(loop);
            } else if (Has(value, i)) {
                found_.n.push_back(loop);
            } else {
                return false;  // all would be computed again along this loop
            }
        }
        return AreSmall(found_.n) && AreSmall(found_.depth);
    }

    static bool AreSmall(std::span<const Loop> loops) {
        Expr points(1);
        for (const Loop& loop : loops) {
            points *= loop.extent;
        }
        const std::optional<int64_t> constant = points.constant();
        return constant && *constant > 0 && *constant <= kMaxColumns;
    }

    const Kernel& kernel_;
    const Scope& scope_;
    Attention found_;
    size_t keys_ = 0;  // the variable of the keys' loop
};

}  // namespace

std::optional<Attention> FindAttention(const Kernel& kernel, const Scope& scope) {
    return Finder(kernel, scope).Find();
}

}  // namespace fornax::graph::loop
