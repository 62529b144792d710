// Compares scalars operand by operand, with other names for the variables of loops.
#include "compiler/graph/c/shared_values.h"

#include <map>
#include <optional>

namespace fornax::graph::c {

using loop::ScalarId;
using loop::ScalarNode;
using loop::VariableSet;

namespace {

// Scalars have many paths to one operand.
constexpr int kMostComparisons = 1000;
// Elements of one table.
constexpr int64_t kMostElements = 1 << 16;

class Comparison {
  public:
    Comparison(const TableChoice& choice, const Symbol& x, const Symbol& y) : choice_(choice) {
        Rename(x, y);
    }

    bool IsSame(ScalarId a, ScalarId b) {
        const ScalarNode &one = choice_.kernel[a], &other = choice_.kernel[b];
        if (a == b && (choice_.scope.free[a.value()] & renamed_) == 0) {
            return true;
        }
        if (a == b || ++comparisons_ > kMostComparisons || one.type != other.type ||
            one.value.index() != other.value.index()) {
            return false;
        }
        const std::vector<Expr> ours = loop::ExpressionsOf(one);
        const std::vector<Expr> theirs = loop::ExpressionsOf(other);
        const std::vector<ScalarId> operands = loop::OperandsOf(one);
        const std::vector<ScalarId> others = loop::OperandsOf(other);
        if (ours.size() != theirs.size() || operands.size() != others.size()) {
            return false;
        }
        // Names of a reduction's loops are those of its body only.
        const std::map<Symbol, Expr> outer = names_;
        if (!IsSameKind(one, other)) {
            return false;
        }
        bool same = true;
        for (size_t i = 0; same && i < ours.size(); ++i) {
            same = ours[i].Substitute(names_) == theirs[i];
        }
        for (size_t i = 0; same && i < operands.size(); ++i) {
            same = IsSame(operands[i], others[i]);
        }
        names_ = outer;
        return same;
    }

  private:
    void Rename(const Symbol& x, const Symbol& y) {
        names_.insert_or_assign(x, Expr(y));
        renamed_ |= VariableSet{1} << *choice_.scope.Find(x);
    }

    // What nodes have beside operands and expressions. Loops of reductions get names.
    bool IsSameKind(const ScalarNode& x, const ScalarNode& y) {
        if (const auto* constant = std::get_if<loop::Constant>(&x.value)) {
            return constant->value == std::get<loop::Constant>(y.value).value;
        }
        if (const auto* load = std::get_if<loop::Load>(&x.value)) {
            const auto& other = std::get<loop::Load>(y.value);
            return load->buffer == other.buffer &&
                   load->otherwise.valid() == other.otherwise.valid();
        }
        if (const auto* map = std::get_if<loop::Map>(&x.value)) {
            return map->function == std::get<loop::Map>(y.value).function;
        }
        if (const auto* cast = std::get_if<loop::Cast>(&x.value)) {
            const auto& other = std::get<loop::Cast>(y.value);
            return cast->overflow == other.overflow && cast->rounding == other.rounding;
        }
        if (const auto* reduce = std::get_if<loop::Reduce>(&x.value)) {
            const auto& other = std::get<loop::Reduce>(y.value);
            if (reduce->combine != other.combine || reduce->loops.size() != other.loops.size()) {
                return false;
            }
            for (size_t i = 0; i < reduce->loops.size(); ++i) {
                Rename(reduce->loops[i].variable, other.loops[i].variable);
            }
            return true;
        }
        return !std::holds_alternative<loop::ArgReduce>(x.value);
    }

    const TableChoice& choice_;
    std::map<Symbol, Expr> names_;
    VariableSet renamed_ = 0;
    int comparisons_ = 0;
};

class Finder {
  public:
    explicit Finder(const TableChoice& choice)
        : choice_(choice), count_(choice.kernel.scalars.size()), group_(count_, kNone) {}

    std::vector<SharedValues> Find() {
        const std::vector<bool> dear = DearScalars(choice_);
        for (size_t i = 0; i < count_; ++i) {
            if (choice_.needed[i] && dear[i] && !choice_.computed[i] && !choice_.excluded[i]) {
                AddToGroup(i);
            }
        }
        // A scalar that only others of groups use is a part of what their tables hold.
        std::vector<bool> is_used(groups_.size());
        for (size_t i = 0; i < count_; ++i) {
            if (!choice_.needed[i] || choice_.computed[i] || IsShared(i)) {
                continue;
            }
            for (const ScalarId operand : loop::OperandsOf(choice_.kernel.scalars[i])) {
                if (group_[operand.value()] != kNone) {
                    is_used[group_[operand.value()]] = true;
                }
            }
        }
        for (const ScalarId root : choice_.roots) {
            if (group_[root.value()] != kNone) {
                is_used[group_[root.value()]] = true;
            }
        }
        std::vector<SharedValues> shared;
        for (size_t i = 0; i < groups_.size(); ++i) {
            if (groups_[i].size() > 1 && is_used[i]) {
                shared.push_back(std::move(groups_[i]));
            }
        }
        return shared;
    }

  private:
    static constexpr size_t kNone = SIZE_MAX;

    bool IsShared(size_t scalar) const {
        return group_[scalar] != kNone && groups_[group_[scalar]].size() > 1;
    }

    void AddToGroup(size_t scalar) {
        const VariableSet unbound = choice_.scope.free[scalar] & ~choice_.bound;
        if (unbound == 0 || (unbound & (unbound - 1)) != 0 ||
            (unbound & choice_.scope.lanes) != 0) {
            return;
        }
        size_t variable = 0;
        while ((unbound >> variable & 1) == 0) {
            ++variable;
        }
        const loop::Loop& loop = choice_.scope.variables[variable];
        const std::optional<int64_t> extent = loop.extent.constant();
        if (!extent || *extent < 1 || *extent > kMostElements) {
            return;
        }
        const ValueOfLoop value = {ScalarId(scalar), loop};
        for (size_t i = 0; i < groups_.size(); ++i) {
            const ValueOfLoop& first = groups_[i].front();
            if (first.loop.extent == loop.extent && first.loop.variable != loop.variable &&
                Comparison(choice_, first.loop.variable, loop.variable)
                    .IsSame(first.scalar, value.scalar)) {
                group_[scalar] = i;
                groups_[i].push_back(value);
                return;
            }
        }
        group_[scalar] = groups_.size();
        groups_.push_back({value});
    }

    const TableChoice& choice_;
    const size_t count_;
    std::vector<size_t> group_;  // of each scalar
    std::vector<SharedValues> groups_;
};

}  // namespace

std::vector<SharedValues> FindSharedValues(const TableChoice& choice) {
    return Finder(choice).Find();
}

}  // namespace fornax::graph::c
