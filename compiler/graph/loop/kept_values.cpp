// Compares what reductions compute with what stores compute, up to the names of their variables.
#include "compiler/graph/loop/kept_values.h"

#include <algorithm>

namespace fornax::graph::loop {
namespace {

constexpr int64_t kMostPoints = 4096;
constexpr size_t kMostValues = 1;

class Finder {
  public:
    Finder(const Kernel& kernel, const Scope& scope, const Symbol& lane)
        : kernel_(kernel), scope_(scope), lane_(lane) {}

    // Whether b is a at the lane's point instead of the reduction's `point`.
    bool IsSame(ScalarId a, ScalarId b, const Symbol& point) const {
        const ScalarNode &x = kernel_[a], &y = kernel_[b];
        if (a == b) {
            return (scope_.free[a.value()] & Bit(point)) == 0;
        }
        if (x.type != y.type || x.value.index() != y.value.index()) {
            return false;
        }
        const std::vector<Expr> ours = ExpressionsOf(x), theirs = ExpressionsOf(y);
        const std::vector<ScalarId> operands = OperandsOf(x), others = OperandsOf(y);
        if (ours.size() != theirs.size() || operands.size() != others.size() || !IsSameKind(x, y)) {
            return false;
        }
        for (size_t i = 0; i < ours.size(); ++i) {
            if (ours[i].Substitute({{point, Expr(lane_)}}) != theirs[i]) {
                return false;
            }
        }
        for (size_t i = 0; i < operands.size(); ++i) {
            if (!IsSame(operands[i], others[i], point)) {
                return false;
            }
        }
        return true;
    }

  private:
    VariableSet Bit(const Symbol& variable) const {
        return VariableSet{1} << *scope_.Find(variable);
    }

    // What nodes have beside operands and expressions.
    static bool IsSameKind(const ScalarNode& x, const ScalarNode& y) {
        if (const auto* load = std::get_if<Load>(&x.value)) {
            const auto& other = std::get<Load>(y.value);
            return load->buffer == other.buffer &&
                   load->otherwise.valid() == other.otherwise.valid();
        }
        if (const auto* map = std::get_if<Map>(&x.value)) {
            return map->function == std::get<Map>(y.value).function;
        }
        if (const auto* cast = std::get_if<Cast>(&x.value)) {
            const auto& other = std::get<Cast>(y.value);
            return cast->overflow == other.overflow && cast->rounding == other.rounding;
        }
        return std::holds_alternative<Index>(x.value) || std::holds_alternative<InRange>(x.value);
    }

    const Kernel& kernel_;
    const Scope& scope_;
    const Symbol& lane_;
};

bool IsCostly(const ScalarNode& node) {
    const auto* map = std::get_if<Map>(&node.value);
    return map != nullptr && IsTranscendental(map->function) && node.type == ElementType::kF32;
}

}  // namespace

std::vector<KeptValue> FindKeptValues(const Kernel& kernel, const Scope& scope) {
    std::vector<KeptValue> kept;
    if (kernel.mapping != Mapping::kRow || kernel.parallel.size() != kernel.row_loops + 1) {
        return kept;
    }
    const Loop& lane = kernel.parallel.back();
    const std::optional<int64_t> points = lane.extent.constant();
    if (!points || *points > kMostPoints) {
        return kept;
    }
    const VariableSet lane_bit = VariableSet{1} << (kernel.parallel.size() - 1);
    const VariableSet rows = scope.parallel & ~lane_bit;
    const Finder finder(kernel, scope, lane.variable);
    for (size_t i = 0; i < kernel.scalars.size(); ++i) {
        const auto* reduce = std::get_if<Reduce>(&kernel.scalars[i].value);
        if (reduce == nullptr || reduce->loops.size() != 1 ||
            reduce->loops[0].extent != lane.extent || (scope.free[i] & ~rows) != 0) {
            continue;
        }
        const Symbol& point = reduce->loops[0].variable;
        const VariableSet inside = rows | VariableSet{1} << *scope.Find(point);
        const std::vector<bool> needed = Needed(kernel, {&reduce->body, 1});
        for (size_t a = 0; a < needed.size(); ++a) {
            if (!needed[a] || !IsCostly(kernel.scalars[a]) || (scope.free[a] & ~inside) != 0 ||
                scope.free[a] == (scope.free[a] & rows)) {
                continue;
            }
            for (size_t b = 0; b < kernel.scalars.size() && kept.size() < kMostValues; ++b) {
                if ((scope.free[b] & lane_bit) != 0 && IsCostly(kernel.scalars[b]) &&
                    finder.IsSame(ScalarId(a), ScalarId(b), point)) {
                    kept.push_back({ScalarId(a), point, ScalarId(b)});
                }
            }
        }
    }
    return kept;
}

}  // namespace fornax::graph::loop
