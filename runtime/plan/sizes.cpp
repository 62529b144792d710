#include "runtime/plan/sizes.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fornax::runtime {
namespace {

bool AllBound(const graph::Expr& expression, const graph::Bindings& bindings) {
    const std::vector<graph::Symbol> symbols = expression.Symbols();
    return std::all_of(symbols.begin(), symbols.end(),
                       [&](const graph::Symbol& symbol) { return bindings.contains(symbol); });
}

}  // namespace

std::string DescribeSymbols(std::span<const graph::Expr> expressions,
                            const graph::Bindings& bindings) {
    std::string text;
    std::vector<graph::Symbol> told;
    for (const graph::Expr& expression : expressions) {
        for (const graph::Symbol& symbol : expression.Symbols()) {
            const auto value = bindings.find(symbol);
            if (value == bindings.end() ||
                std::find(told.begin(), told.end(), symbol) != told.end()) {
                continue;
            }
            told.push_back(symbol);
            fmt::format_to(std::back_inserter(text), "{}{} is {}", text.empty() ? "" : " and ",
                           symbol.name(), value->second);
        }
    }
    return text;
}

std::string FailedGuard(const graph::Plan& plan, const graph::Bindings& bindings) {
    for (const graph::Guard& guard : plan.guards) {
        if (AllBound(guard.a, bindings) && AllBound(guard.b, bindings) && !guard.Holds(bindings)) {
            const graph::Expr sides[] = {guard.a, guard.b};
            return fmt::format("The plan is for {}; {}.", guard.ToString(),
                               DescribeSymbols(sides, bindings));
        }
    }
    return "";
}

Result<Fit> FitSizes(const graph::Plan& plan, std::span<const Dims> dims) {
    if (dims.size() != plan.inputs.size()) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{} inputs are given; {} has {}.", dims.size(), plan.name,
                                 plan.inputs.size())};
    }
    for (size_t i = 0; i < dims.size(); ++i) {
        const graph::PlanPort& port = plan.inputs[i];
        if (dims[i].size() != port.type.shape.rank()) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("The input {} is given with {} dimensions; it is {}.",
                                     port.name, dims[i].size(), port.type.ToString())};
        }
        for (const int64_t dim : dims[i]) {
            if (dim < 0) {
                return Error{
                    ErrorCode::kInvalidArgument,
                    fmt::format("A dimension of the input {} is {}, below 0.", port.name, dim)};
            }
        }
    }
    Fit fit;
    for (const graph::SymbolSource& source : plan.sources) {
        const std::optional<int64_t> value =
            source.port >= dims.size() || source.axis >= dims[source.port].size()
                ? std::nullopt
                : graph::ValueOf(plan, source, dims[source.port][source.axis]);
        if (!value) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("The plan takes {} from an input that it does not have.",
                                     source.symbol.name())};
        }
        fit.bindings.emplace(source.symbol, *value);
    }
    const auto misfit = [&](std::string reason) {
        fit.ok = false;
        fit.reason = std::move(reason);
        return fit;
    };
    for (size_t i = 0; i < dims.size(); ++i) {
        const graph::PlanPort& port = plan.inputs[i];
        for (size_t axis = 0; axis < dims[i].size(); ++axis) {
            const graph::Expr& dim = port.type.shape[axis];
            const std::optional<int64_t> value = dim.Evaluate(fit.bindings);
            if (value != dims[i][axis]) {
                std::string symbols = DescribeSymbols({&dim, 1}, fit.bindings);
                return misfit(
                    fmt::format("The plan's input {} is {}{}; its dimension {} is given "
                                "as {}.",
                                port.name, port.type.ToString(),
                                symbols.empty() ? "" : ", where " + symbols, axis, dims[i][axis]));
            }
        }
    }
    for (const auto& [symbol, range] : plan.ranges) {
        const auto value = fit.bindings.find(symbol);
        if (value != fit.bindings.end() &&
            (value->second < range.low || value->second > range.high)) {
            return misfit(fmt::format("The plan is for {} from {} to {}; it is {}.", symbol.name(),
                                      range.low, range.high, value->second));
        }
    }
    std::string guard = FailedGuard(plan, fit.bindings);
    return guard.empty() ? fit : misfit(std::move(guard));
}

std::set<std::string> OpenSizes(std::span<const graph::TensorType> inputs) {
    std::set<std::string> open;
    for (const graph::TensorType& type : inputs) {
        for (const graph::Expr& dim : type.shape.dims()) {
            for (const graph::Symbol& symbol : dim.Symbols()) {
                open.insert(std::string(symbol.name()));
            }
        }
    }
    return open;
}

Status CheckSizeNames(const std::string& model,
                      const std::set<std::string>& names,
                      std::span<const graph::TensorType> inputs) {
    const std::set<std::string> open = OpenSizes(inputs);
    for (const std::string& name : names) {
        if (!open.contains(name)) {
            return Error{
                ErrorCode::kInvalidArgument,
                fmt::format("{} leaves no size {} open; those that it does are: {}.", model, name,
                            open.empty() ? "none" : fmt::to_string(fmt::join(open, ", ")))};
        }
    }
    return OkStatus();
}

Result<Dims> EvaluateShape(const graph::Shape& shape, const graph::Bindings& bindings) {
    Dims dims;
    for (const graph::Expr& dim : shape.dims()) {
        const std::optional<int64_t> value = dim.Evaluate(bindings);
        if (!value || *value < 0) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("A tensor of shape {} has no size if {}.", shape.ToString(),
                                     DescribeSymbols(shape.dims(), bindings))};
        }
        dims.push_back(*value);
    }
    return dims;
}

Result<uint64_t> ConstantBytes(const graph::PlanBlock& block) {
    FORNAX_ASSIGN_OR_RETURN(const Dims dims, EvaluateShape(block.type.shape, {}));
    uint64_t count = 1;
    for (const int64_t dim : dims) {
        count *= static_cast<uint64_t>(dim);
    }
    const bool is_string = block.type.element == graph::ElementType::kString;
    const uint64_t needed = is_string ? count : count * graph::BytesOf(block.type.element);
    const uint64_t given = is_string ? (block.strings == nullptr ? 0 : block.strings->size())
                                     : (block.data == nullptr ? 0 : block.data->size());
    if (given != needed) {
        return Error{
            ErrorCode::kInvalidArgument,
            fmt::format("The constant {} of type {} is given with {} {} instead of {}.", block.name,
                        block.type.ToString(), given, is_string ? "strings" : "bytes", needed)};
    }
    return is_string ? 0 : given;
}

}  // namespace fornax::runtime
