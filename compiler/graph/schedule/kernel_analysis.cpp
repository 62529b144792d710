// Chooses between an invocation a point, a workgroup a row, and tiles of a product.
#include "compiler/graph/schedule/kernel_analysis.h"

#include <algorithm>

#include "compiler/graph/loop/attention.h"
#include "compiler/graph/loop/block_product.h"
#include "compiler/graph/loop/byte_product.h"
#include "compiler/graph/loop/few_dots.h"
#include "compiler/graph/loop/few_rows.h"
#include "compiler/graph/loop/product.h"
#include "compiler/graph/loop/scope.h"
#include "compiler/graph/loop/window.h"
#include "compiler/graph/schedule/split_loops.h"

namespace fornax::graph {
namespace {

using loop::Kernel;
using loop::Loop;
using loop::ScalarId;
using loop::Scope;
using loop::VariableSet;

// Rows with fewer points than this go to one invocation each.
constexpr double kShortRow = 16;
// Reductions over fewer points than this stay in one invocation.
constexpr double kShortReduction = 32;
// Rows that lie across the memory are not shared by a workgroup if there are so many.
constexpr double kManyRows = 64;
// Rows that lie side by side fill vectors if there are so many.
constexpr double kVector = 16;
// Products with fewer columns, or fewer products a sum, are not worth a tile.
constexpr double kLeastColumns = 8;
constexpr double kLeastRows = 4;
constexpr double kLeastDepth = 8;

double Points(std::span<const Loop> loops, const SizeFacts& sizes) {
    double points = 1;
    for (const Loop& loop : loops) {
        points *= std::max<double>(1, static_cast<double>(sizes.Hint(loop.extent)));
    }
    return points;
}

double Points(VariableSet set, const Scope& scope, const SizeFacts& sizes) {
    double points = 1;
    for (size_t i = 0; i < scope.variables.size(); ++i) {
        if (((set >> i) & 1) != 0) {
            points *= Points({&scope.variables[i], 1}, sizes);
        }
    }
    return points;
}

// The distance in the buffer between neighbours along `variable`: 0, 1, or 2 for anything else.
int StrideClass(const Kernel& kernel,
                const loop::Load& load,
                const Symbol& variable,
                const Domain& domain) {
    const Shape& shape = kernel[load.buffer].type.shape;
    Expr offset, stride(1);
    for (size_t axis = load.index.size(); axis-- > 0;) {
        offset += load.index[axis] * stride;
        stride *= shape[axis];
    }
    const std::optional<Expr> coefficient = offset.Simplify(domain).Coefficient(variable);
    return coefficient == Expr(0) ? 0 : coefficient == Expr(1) ? 1 : 2;
}

// Loads of the kernel that lie side by side along `variable`, less those that lie apart.
int Contiguity(const Kernel& kernel, const Symbol& variable) {
    Domain domain;
    domain.ranges = kernel.sizes;
    const Scope scope = loop::FindScope(kernel);
    for (const Loop& loop : scope.variables) {
        domain.AddVariable(loop.variable, loop.extent);
    }
    int score = 0;
    for (const loop::ScalarNode& scalar : kernel.scalars) {
        if (const auto* load = std::get_if<loop::Load>(&scalar.value)) {
            const int stride = StrideClass(kernel, *load, variable, domain);
            score += stride == 1 ? 1 : stride == 2 ? -1 : 0;
        }
    }
    return score;
}

// Whether neighbouring rows lie side by side in memory, and a row's own points do not.
bool LieAcross(const Kernel& kernel, VariableSet rows) {
    std::optional<size_t> row, lane;
    for (size_t i = 0; i < kernel.parallel.size(); ++i) {
        (((rows >> i) & 1) != 0 ? row : lane) = i;
    }
    return row && lane &&
           Contiguity(kernel, kernel.parallel[*row].variable) >
               Contiguity(kernel, kernel.parallel[*lane].variable);
}

std::vector<ScalarId> Reductions(const Kernel& kernel) {
    std::vector<ScalarId> reductions;
    for (size_t i = 0; i < kernel.scalars.size(); ++i) {
        if (!loop::LoopsOf(kernel.scalars[i]).empty()) {
            reductions.emplace_back(i);
        }
    }
    return reductions;
}

bool IsWorthTiles(const Kernel& kernel, const Scope& scope, const SizeFacts& sizes) {
    const std::optional<loop::Product> product = loop::FindProduct(kernel, scope);
    if (!product || Points(product->n, sizes) < kLeastColumns ||
        Points(product->k, sizes) < kLeastDepth) {
        return false;
    }
    return loop::FindByteProduct(kernel, scope, *product).has_value() ||
           loop::HasFewRows(kernel, scope, *product) || loop::HasFewDots(kernel, scope, *product) ||
           (kernel[product->sum].type == ElementType::kF32 &&
            Points(product->m, sizes) >= kLeastRows);
}

// The parallel loops with those of `rows` first.
void PutRowsFirst(Kernel& kernel, VariableSet rows) {
    std::vector<Loop> outer, inner;
    for (size_t i = 0; i < kernel.parallel.size(); ++i) {
        (((rows >> i) & 1) != 0 ? outer : inner).push_back(kernel.parallel[i]);
    }
    kernel.parallel = std::move(outer);
    kernel.parallel.insert(kernel.parallel.end(), inner.begin(), inner.end());
}

}  // namespace

bool FitsOneKernel(const loop::Kernel& kernel) {
    constexpr size_t kMaxReductionLoops = 24;
    size_t loops = 0;
    for (const loop::ScalarNode& node : kernel.scalars) {
        loops += loop::LoopsOf(node).size();
    }
    return loops <= kMaxReductionLoops && kernel.buffers.size() <= kMaxReadBuffers;
}

ReductionCost ChooseMapping(Kernel& kernel, const SizeFacts& sizes) {
    kernel.mapping = loop::Mapping::kFlat;
    kernel.row_loops = 0;
    ReductionCost cost;
    const std::vector<ScalarId> reductions = Reductions(kernel);
    if (reductions.empty() || !kernel.sequential.empty()) {
        return cost;
    }
    SplitLoopsOfProduct(kernel);
    const Scope scope = loop::FindScope(kernel);
    if (loop::FindAttention(kernel, scope)) {
        kernel.mapping = loop::Mapping::kAttention;
        return cost;
    }
    // The rows: the parallel loops that reductions depend on.
    VariableSet rows = 0;
    double longest = 0;
    for (const ScalarId id : reductions) {
        rows |= scope.free[id.value()] & scope.parallel;
        longest = std::max(longest, Points(loop::LoopsOf(kernel[id]), sizes));
    }
    const double row_points = Points(rows, scope, sizes);
    const double lane_points = Points(scope.parallel & ~rows, scope, sizes);
    for (const ScalarId id : reductions) {
        const VariableSet free = scope.free[id.value()];
        const double points = Points(loop::LoopsOf(kernel[id]), sizes);
        cost.least += points * Points(free & scope.parallel, scope, sizes);
        // In another reduction's loop it is evaluated at each of its points, and neighbouring ones
        // may well ask for the same.
        cost.evaluations += points * row_points * Points(free & ~scope.parallel, scope, sizes);
    }

    if (lane_points == 1 && loop::FindWindow(kernel, scope)) {
        return cost;
    }
    if (loop::FindBlockProduct(kernel, scope)) {
        kernel.mapping = loop::Mapping::kProduct;
        return {};  // the inner sum has its own value for each block
    }
    if (IsWorthTiles(kernel, scope, sizes)) {
        kernel.mapping = loop::Mapping::kProduct;
        return cost;
    }
    bool cooperative = longest >= kShortReduction;
    if (cooperative && lane_points == 1 && !kernel.parallel.empty()) {
        // Both ways evaluate each reduction once; what lies side by side in memory decides.
        const int along_row =
            Contiguity(kernel, loop::LoopsOf(kernel[reductions.back()]).back().variable);
        const int across = Contiguity(kernel, kernel.parallel.back().variable);
        cooperative = along_row >= across || row_points < kVector;
    }
    // Invocations side by side take rows that lie side by side, each goes along its own.
    const bool across = lane_points > 1 && LieAcross(kernel, rows) && row_points >= kManyRows;
    if (!across && (cooperative || lane_points > kShortRow)) {
        PutRowsFirst(kernel, rows);
        kernel.mapping = loop::Mapping::kRow;
        kernel.row_loops = static_cast<uint32_t>(__builtin_popcountll(rows));
    } else if (lane_points > 1) {
        // A short row: its points follow each other in one invocation.
        PutRowsFirst(kernel, rows);
        const auto first = kernel.parallel.begin() + __builtin_popcountll(rows);
        kernel.sequential.assign(first, kernel.parallel.end());
        kernel.parallel.erase(first, kernel.parallel.end());
    }
    return cost;
}

}  // namespace fornax::graph
