// What the sizes of a run's inputs mean for a plan: values of its symbols, and whether it serves.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/graph/plan/plan.h"

namespace fornax::runtime {

using Dims = std::vector<int64_t>;

// Whether a plan serves given sizes. If it does not, a plan that is compiled for them may.
struct Fit {
    bool ok = true;
    std::string reason;  // if not: a sentence, "The plan is for n <= 512; n is 600."
    graph::Bindings bindings;
};

// `dims` are those of the plan's inputs, in order. An error only if no plan of the same graph can
// serve them: a wrong number of inputs or of dimensions, or a negative dimension.
Result<Fit> FitSizes(const graph::Plan& plan, std::span<const Dims> dims);

// The first guard that does not hold, as such a sentence, or "". Guards of symbols that have no
// value yet are not looked at.
std::string FailedGuard(const graph::Plan& plan, const graph::Bindings& bindings);

// "n is 600 and m is 3", of the symbols that the expressions use.
std::string DescribeSymbols(std::span<const graph::Expr> expressions,
                            const graph::Bindings& bindings);

// Names of sizes that plans are to hold for whatever they are.
struct DynamicSizes {
    std::set<std::string> names;
    bool all = false;  // besides those named

    friend bool operator==(const DynamicSizes&, const DynamicSizes&) = default;
};

// The names of the sizes that inputs of these types leave open.
std::set<std::string> OpenSizes(std::span<const graph::TensorType> inputs);

// Fails if one of the names is of no such size, with all that there are.
Status CheckSizeNames(const std::string& model,
                      const std::set<std::string>& names,
                      std::span<const graph::TensorType> inputs);

// The dimensions of a shape; an error, with the shape, if one has no value or is below 0.
Result<Dims> EvaluateShape(const graph::Shape& shape, const graph::Bindings& bindings);

// How many bytes of a constant a device holds: none of strings. An error if it is given with more
// or fewer than its type says.
Result<uint64_t> ConstantBytes(const graph::PlanBlock& block);

}  // namespace fornax::runtime
