// Compares what reductions compute with what stores compute, up to the names of their variables.
#include "compiler/graph/loop/kept_values.h"

#include "compiler/graph/loop/same_values.h"

namespace fornax::graph::loop {
namespace {

constexpr int64_t kMostPoints = 4096;
constexpr size_t kMostValues = 1;

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
                    IsSameAt(kernel, scope, ScalarId(a), point, ScalarId(b), lane.variable)) {
                    kept.push_back({ScalarId(a), point, ScalarId(b)});
                }
            }
        }
    }
    return kept;
}

}  // namespace fornax::graph::loop
