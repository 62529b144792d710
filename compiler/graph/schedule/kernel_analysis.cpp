// Chooses between an invocation a point and a workgroup a row.
#include "compiler/graph/schedule/kernel_analysis.h"

#include <algorithm>
#include <map>

#include "compiler/graph/loop/kernel_symbols.h"

namespace fornax::graph {
namespace {

using loop::Kernel;
using loop::Loop;
using loop::ScalarId;

// Rows with fewer points than this go to one invocation each.
constexpr double kShortRow = 16;
// Reductions over fewer points than this stay in one invocation.
constexpr double kShortReduction = 32;

void AddSymbols(const Expr& expr,
                const Kernel& kernel,
                const std::vector<std::set<Symbol>>& free,
                std::set<Symbol>& into) {
    for (const Symbol& symbol : expr.Symbols()) {
        if (const auto scalar = loop::ScalarOfSymbol(symbol)) {
            if (scalar->value() < free.size()) {
                into.insert(free[scalar->value()].begin(), free[scalar->value()].end());
            }
        } else if (!kernel.sizes.contains(symbol)) {
            into.insert(symbol);
        }
    }
}

struct Dependences {
    const Kernel& kernel;
    const std::vector<std::set<Symbol>>& free;
    std::set<Symbol>& into;

    void Scalar(ScalarId id) const {
        if (id.valid()) {
            into.insert(free[id.value()].begin(), free[id.value()].end());
        }
    }
    void Expression(const Expr& expr) const { AddSymbols(expr, kernel, free, into); }

    void operator()(const loop::Constant&) const {}
    void operator()(const loop::Load& load) const {
        for (const Expr& expr : load.index) {
            Expression(expr);
        }
        Scalar(load.otherwise);
    }
    void operator()(const loop::Index& index) const { Expression(index.value); }
    void operator()(const loop::InRange& range) const {
        Expression(range.value);
        Expression(range.extent);
    }
    void operator()(const loop::Map& map) const {
        for (const ScalarId argument : map.arguments) {
            Scalar(argument);
        }
    }
    void operator()(const loop::Cast& cast) const { Scalar(cast.argument); }
    void operator()(const loop::Bitcast& cast) const { Scalar(cast.argument); }
    void operator()(const loop::Reduce& reduce) const {
        Scalar(reduce.body);
        for (const Loop& loop : reduce.loops) {
            into.erase(loop.variable);
        }
    }
    void operator()(const loop::ArgReduce& reduce) const {
        Scalar(reduce.body);
        into.erase(reduce.loop.variable);
    }
};

double Extent(const Loop& loop, const SizeFacts& sizes) {
    return std::max<double>(1, static_cast<double>(sizes.Hint(loop.extent)));
}

// A reduction of a kernel: its loops and what it depends on.
struct Reduction {
    ScalarId id;
    double points = 1;
    std::set<Symbol> depends;
    Symbol innermost;
};

std::vector<Reduction> Reductions(const Kernel& kernel,
                                  const std::vector<std::set<Symbol>>& free,
                                  const SizeFacts& sizes) {
    std::vector<Reduction> reductions;
    for (size_t i = 0; i < kernel.scalars.size(); ++i) {
        const auto& value = kernel.scalars[i].value;
        if (const auto* reduce = std::get_if<loop::Reduce>(&value)) {
            double points = 1;
            for (const Loop& loop : reduce->loops) {
                points *= Extent(loop, sizes);
            }
            reductions.push_back({ScalarId(i), points, free[i], reduce->loops.back().variable});
        } else if (const auto* arg = std::get_if<loop::ArgReduce>(&value)) {
            reductions.push_back(
                {ScalarId(i), Extent(arg->loop, sizes), free[i], arg->loop.variable});
        }
    }
    return reductions;
}

// The distance in the buffer between neighbours along `variable`: 0, 1, or 2 for anything else.
int StrideClass(const Kernel& kernel, const loop::Load& load, const Symbol& variable) {
    const Shape& shape = kernel[load.buffer].type.shape;
    int stride = 0;
    for (size_t axis = 0; axis < load.index.size(); ++axis) {
        const std::optional<Expr> coefficient = load.index[axis].Coefficient(variable);
        if (!coefficient) {
            return 2;
        }
        if (*coefficient == Expr(0)) {
            continue;
        }
        const bool last =
            axis + 1 == load.index.size() ||
            std::all_of(shape.dims().begin() + static_cast<ptrdiff_t>(axis) + 1, shape.dims().end(),
                        [](const Expr& dim) { return dim == Expr(1); });
        stride = std::max(stride, last && *coefficient == Expr(1) ? 1 : 2);
    }
    return stride;
}

// Loads of the kernel that lie side by side along `variable`, less those that lie apart.
int Contiguity(const Kernel& kernel, const Symbol& variable) {
    int score = 0;
    for (const loop::ScalarNode& scalar : kernel.scalars) {
        if (const auto* load = std::get_if<loop::Load>(&scalar.value)) {
            const int stride = StrideClass(kernel, *load, variable);
            score += stride == 1 ? 1 : stride == 2 ? -1 : 0;
        }
    }
    return score;
}

}  // namespace

std::vector<std::set<Symbol>> FreeVariables(const Kernel& kernel) {
    std::vector<std::set<Symbol>> free;
    free.reserve(kernel.scalars.size());
    for (const loop::ScalarNode& scalar : kernel.scalars) {
        std::set<Symbol> depends;
        std::visit(Dependences{kernel, free, depends}, scalar.value);
        free.push_back(std::move(depends));
    }
    return free;
}

ReductionCost ChooseMapping(Kernel& kernel, const SizeFacts& sizes) {
    kernel.mapping = loop::Mapping::kFlat;
    kernel.row_loops = 0;
    const std::vector<std::set<Symbol>> free = FreeVariables(kernel);
    const std::vector<Reduction> reductions = Reductions(kernel, free, sizes);
    ReductionCost cost;
    if (reductions.empty() || !kernel.sequential.empty()) {
        cost.evaluations = cost.least = 1;
        return cost;
    }
    std::map<Symbol, double> extents;
    double all_points = 1;
    for (const Loop& loop : kernel.parallel) {
        extents[loop.variable] = Extent(loop, sizes);
        all_points *= extents[loop.variable];
    }
    // The rows: the parallel loops that the outermost reductions depend on.
    std::set<Symbol> rows;
    double longest = 0;
    for (const Reduction& reduction : reductions) {
        for (const Symbol& symbol : reduction.depends) {
            if (extents.contains(symbol)) {
                rows.insert(symbol);
            }
        }
        longest = std::max(longest, reduction.points);
    }
    double row_points = 1;
    for (const Symbol& symbol : rows) {
        row_points *= extents[symbol];
    }
    const double lane_points = all_points / row_points;

    bool cooperative = longest >= kShortReduction;
    if (cooperative && lane_points == 1 && !kernel.parallel.empty()) {
        // Both ways evaluate each reduction once; what lies side by side in memory decides.
        const int along_row = Contiguity(kernel, reductions.back().innermost);
        const int across = Contiguity(kernel, kernel.parallel.back().variable);
        cooperative = along_row >= across || row_points < 64;
    }
    if (lane_points > 1 || cooperative) {
        std::vector<Loop> outer, inner;
        for (const Loop& loop : kernel.parallel) {
            (rows.contains(loop.variable) ? outer : inner).push_back(loop);
        }
        if (cooperative || lane_points > kShortRow) {
            kernel.mapping = loop::Mapping::kRow;
            kernel.row_loops = static_cast<uint32_t>(rows.size());
            outer.insert(outer.end(), inner.begin(), inner.end());
        } else {
            // A short row: its points follow each other in one invocation.
            kernel.sequential = std::move(inner);
        }
        kernel.parallel = std::move(outer);
    }
    for (const Reduction& reduction : reductions) {
        double least = reduction.points, evaluations = reduction.points * row_points;
        for (const Symbol& symbol : reduction.depends) {
            const auto found = extents.find(symbol);
            if (found != extents.end()) {
                least *= found->second;
            } else {
                // It lies in another reduction's loop.
                for (const Reduction& outer : reductions) {
                    if (const auto* reduce = std::get_if<loop::Reduce>(&kernel[outer.id].value)) {
                        for (const Loop& loop : reduce->loops) {
                            if (loop.variable == symbol) {
                                const double extent = Extent(loop, sizes);
                                least *= extent;
                                evaluations *= extent;
                            }
                        }
                    }
                }
            }
        }
        cost.least += least;
        cost.evaluations += evaluations;
    }
    return cost;
}

}  // namespace fornax::graph
