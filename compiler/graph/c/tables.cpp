// What is dear: reductions and functions that take a series.
#include "compiler/graph/c/tables.h"

#include <optional>

namespace fornax::graph::c {

using loop::ScalarId;
using loop::ScalarNode;
using loop::VariableSet;

namespace {

// Elements of one table; programs have all of them in memory.
constexpr int64_t kMostElements = 1 << 16;

class Chooser {
  public:
    explicit Chooser(const TableChoice& choice)
        : choice_(choice),
          count_(choice.kernel.scalars.size()),
          dear_(DearScalars(choice)),
          is_candidate_(count_) {}

    std::vector<Table> Choose() {
        const std::optional<int64_t> extent = choice_.inner.front().extent.constant();
        if (!extent || *extent < 2) {
            return {};
        }
        for (size_t i = 0; i < count_; ++i) {
            is_candidate_[i] = choice_.needed[i] && IsCandidate(i);
        }
        const std::vector<bool> used = UsedByOthers();
        std::vector<Table> tables;
        for (size_t i = 0; i < count_; ++i) {
            if (is_candidate_[i] && used[i]) {
                if (std::optional<Table> table = TableOf(i)) {
                    tables.push_back(*std::move(table));
                }
            }
        }
        return tables;
    }

  private:
    VariableSet Unbound(size_t scalar) const { return choice_.scope.free[scalar] & ~choice_.bound; }

    // Whether it depends on nothing unknown but variables of reductions.
    bool IsCandidate(size_t scalar) const {
        const VariableSet outer =
            choice_.scope.parallel | choice_.scope.sequential | choice_.scope.lanes;
        return dear_[scalar] && !choice_.excluded[scalar] && !choice_.computed[scalar] &&
               (Unbound(scalar) & outer) == 0;
    }

    // Scalars that something needs which is no candidate itself.
    std::vector<bool> UsedByOthers() const {
        std::vector<bool> used(count_);
        for (size_t i = 0; i < count_; ++i) {
            if (!choice_.needed[i] || is_candidate_[i] || choice_.computed[i] || Unbound(i) == 0) {
                continue;
            }
            for (const ScalarId operand : loop::OperandsOf(choice_.kernel.scalars[i])) {
                used[operand.value()] = true;
            }
        }
        return used;
    }

    std::optional<Table> TableOf(size_t scalar) const {
        Table table;
        table.scalar = ScalarId(scalar);
        const VariableSet variables = Unbound(scalar);
        for (size_t i = 0; i < choice_.scope.variables.size(); ++i) {
            if ((variables >> i & 1) == 0) {
                continue;
            }
            const loop::Loop& loop = choice_.scope.variables[i];
            const std::optional<int64_t> extent = loop.extent.constant();
            if (!extent || *extent < 1 || (table.count *= *extent) > kMostElements) {
                return std::nullopt;
            }
            table.loops.push_back(loop);
        }
        return table;
    }

    const TableChoice& choice_;
    const size_t count_;
    const std::vector<bool> dear_;
    std::vector<bool> is_candidate_;
};

}  // namespace

std::vector<bool> DearScalars(const TableChoice& choice) {
    std::vector<bool> dear(choice.kernel.scalars.size());
    for (size_t i = 0; i < dear.size(); ++i) {
        const ScalarNode& node = choice.kernel.scalars[i];
        if ((choice.scope.free[i] & ~choice.bound) == 0) {
            continue;
        }
        const auto* map = std::get_if<loop::Map>(&node.value);
        dear[i] =
            !loop::LoopsOf(node).empty() || (map != nullptr && IsTranscendental(map->function));
        for (const ScalarId operand : loop::OperandsOf(node)) {
            dear[i] = dear[i] || dear[operand.value()];
        }
    }
    return dear;
}

std::vector<Table> ChooseTables(const TableChoice& choice) {
    return Chooser(choice).Choose();
}

}  // namespace fornax::graph::c
