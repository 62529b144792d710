// Loops, buffers and plain scalars of a kernel; inline_values.cpp says what each primitive becomes.
#include "compiler/graph/schedule/kernel_builder.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "compiler/graph/loop/scope.h"

namespace fornax::graph {

bool KernelBuilder::KeyLess::operator()(const Key& a, const Key& b) const {
    if (a.first != b.first) {
        return a.first < b.first;
    }
    if (a.second.size() != b.second.size()) {
        return a.second.size() < b.second.size();
    }
    for (size_t i = 0; i < a.second.size(); ++i) {
        if (const int order = Expr::Compare(a.second[i], b.second[i]); order != 0) {
            return order < 0;
        }
    }
    return false;
}

KernelBuilder::KernelBuilder(const Graph& graph,
                             const std::vector<bool>& realized,
                             std::string name,
                             size_t most_scalars)
    : graph_(graph), realized_(realized), most_scalars_(most_scalars) {
    kernel_.name = std::move(name);
    kernel_.sizes = graph.sizes().ranges();
    domain_.ranges = graph.sizes().ranges();
}

Expr KernelBuilder::AddParallel(const Expr& extent) {
    if (extent == Expr(1)) {
        return 0;
    }
    const Symbol variable(fmt::format("$i{}", next_loop_++));
    kernel_.parallel.push_back({variable, extent});
    domain_.AddVariable(variable, extent);
    return variable;
}

Expr KernelBuilder::AddSequential(const Expr& extent) {
    if (extent == Expr(1)) {
        return 0;
    }
    const Symbol variable(fmt::format("$i{}", next_loop_++));
    kernel_.sequential.push_back({variable, extent});
    domain_.AddVariable(variable, extent);
    return variable;
}

std::vector<Expr> KernelBuilder::AddParallel(const Shape& shape) {
    std::vector<Expr> index;
    for (const Expr& extent : shape.dims()) {
        index.push_back(AddParallel(extent));
    }
    return index;
}

loop::ScalarId KernelBuilder::Add(ElementType type, decltype(loop::ScalarNode::value) value) {
    const loop::ScalarId id(kernel_.scalars.size());
    kernel_.scalars.push_back({type, std::move(value)});
    return id;
}

loop::BufferId KernelBuilder::BufferOf(ValueId value) {
    const auto [found, inserted] =
        buffers_.emplace(value.value(), loop::BufferId(kernel_.buffers.size()));
    if (inserted) {
        kernel_.buffers.push_back(
            {fmt::format("b{}", kernel_.buffers.size()), graph_.TypeOf(value), false});
        buffer_values_.push_back(value);
    }
    return found->second;
}

loop::ScalarId KernelBuilder::FreshLoad(ValueId value,
                                        std::vector<Expr> index,
                                        loop::ScalarId otherwise) {
    for (Expr& expr : index) {
        expr = Simplified(expr);
    }
    return Add(graph_.TypeOf(value).element,
               loop::Load{BufferOf(value), std::move(index), otherwise});
}

loop::ScalarId KernelBuilder::LoadFrom(ValueId value,
                                       std::vector<Expr> index,
                                       loop::ScalarId otherwise) {
    Key key{value.value(), index};
    key.second.push_back(otherwise.valid() ? Expr(otherwise.value()) : Expr(-1));
    const auto found = loads_.find(key);
    if (found != loads_.end()) {
        return found->second;
    }
    const loop::ScalarId load = FreshLoad(value, std::move(index), otherwise);
    loads_.emplace(std::move(key), load);
    return load;
}

void KernelBuilder::Store(ValueId value,
                          std::vector<Expr> index,
                          loop::ScalarId scalar,
                          loop::ScalarId condition) {
    Store(BufferOf(value), std::move(index), scalar, condition);
}

void KernelBuilder::Store(loop::BufferId buffer,
                          std::vector<Expr> index,
                          loop::ScalarId scalar,
                          loop::ScalarId condition) {
    for (Expr& expr : index) {
        expr = Simplified(expr);
    }
    if (!loop::Kernel::IsLocal(buffer)) {
        kernel_.buffers[buffer.value()].written = true;
    }
    std::vector<loop::Store>& stores =
        kernel_.phases.empty() ? kernel_.stores : kernel_.phases.back().stores;
    stores.push_back({buffer, std::move(index), scalar, condition});
}

std::vector<Expr> KernelBuilder::BeginPhase(loop::When when, const Shape& shape) {
    loop::Phase& phase = kernel_.phases.emplace_back();
    phase.when = when;
    std::vector<Expr> index;
    for (const Expr& extent : shape.dims()) {
        if (extent == Expr(1)) {
            index.emplace_back(0);
            continue;
        }
        const Symbol variable(fmt::format("$i{}", next_loop_++));
        phase.lanes.push_back({variable, extent});
        domain_.AddVariable(variable, extent);
        index.emplace_back(variable);
    }
    return index;
}

loop::BufferId KernelBuilder::AddLocal(TensorType type) {
    const size_t number = kernel_.locals.size();
    kernel_.locals.push_back({fmt::format("l{}", number), std::move(type), true});
    return loop::BufferId(loop::kFirstLocal + number);
}

void KernelBuilder::Forget(ValueId value) {
    std::erase_if(scalars_, [&](const auto& known) { return known.first.first == value.value(); });
}

void KernelBuilder::SetSource(ValueId value, Source source) {
    sources_[value.value()] = std::move(source);
}

loop::BufferId KernelBuilder::AddBuffer(TensorType type) {
    const loop::BufferId id(kernel_.buffers.size());
    kernel_.buffers.push_back({fmt::format("b{}", id.value()), std::move(type), false});
    buffer_values_.emplace_back();
    return id;
}

loop::ScalarId KernelBuilder::LoadFrom(loop::BufferId buffer, std::vector<Expr> index) {
    for (Expr& expr : index) {
        expr = Simplified(expr);
    }
    return Add(kernel_[buffer].type.element, loop::Load{buffer, std::move(index), {}});
}

loop::ScalarId KernelBuilder::Constant(ElementType type, const Scalar& value) {
    const auto [found, inserted] = constants_.emplace(
        std::tuple{type, value.is_float, std::bit_cast<uint64_t>(value.number), value.integer},
        loop::ScalarId());
    if (inserted) {
        found->second = Add(type, loop::Constant{value});
    }
    return found->second;
}

loop::ScalarId KernelBuilder::Integer(const Expr& value) {
    const Expr simple = Simplified(value);
    if (simple.is_constant()) {
        return Constant(ElementType::kI64, Scalar::Integer(simple.constant_part()));
    }
    return Add(ElementType::kI64, loop::Index{simple});
}

// Index arithmetic on what are index expressions already, so that accesses see it.
std::optional<Expr> KernelBuilder::AsExpression(
    ScalarFunction function,
    const std::vector<loop::ScalarId>& arguments) const {
    std::vector<Expr> values;
    for (const loop::ScalarId argument : arguments) {
        const loop::ScalarNode& node = kernel_[argument];
        const auto* index = std::get_if<loop::Index>(&node.value);
        const auto* constant = std::get_if<loop::Constant>(&node.value);
        if (node.type != ElementType::kI64 || (index == nullptr && constant == nullptr)) {
            return std::nullopt;
        }
        values.push_back(index != nullptr ? index->value : Expr(constant->value.integer));
    }
    switch (function) {
        case ScalarFunction::kAdd:
            return values[0] + values[1];
        case ScalarFunction::kSub:
            return values[0] - values[1];
        case ScalarFunction::kMul:
            return values[0] * values[1];
        default:
            return std::nullopt;
    }
}

loop::ScalarId KernelBuilder::Map(ScalarFunction function, std::vector<loop::ScalarId> arguments) {
    if (const std::optional<Expr> value = AsExpression(function, arguments)) {
        return Integer(*value);
    }
    const size_t typed = function == ScalarFunction::kSelect ? 1 : 0;
    const ElementType type = ResultType(function, TypeOf(arguments[typed]));
    return Add(type, loop::Map{function, std::move(arguments)});
}

loop::ScalarId KernelBuilder::Bitcast(loop::ScalarId argument, ElementType type) {
    return TypeOf(argument) == type ? argument : Add(type, loop::Bitcast{argument});
}

loop::ScalarId KernelBuilder::Cast(loop::ScalarId argument, ElementType type) {
    if (TypeOf(argument) == type) {
        return argument;
    }
    if (const auto* constant = std::get_if<loop::Constant>(&kernel_[argument].value)) {
        return Constant(type, ConvertScalar(constant->value, TypeOf(argument), type));
    }
    return Add(type, loop::Cast{argument});
}

loop::ScalarId KernelBuilder::Combined(Combine combine, loop::ScalarId a, loop::ScalarId b) {
    constexpr ScalarFunction kFunctions[] = {
        ScalarFunction::kAdd, ScalarFunction::kAdd, ScalarFunction::kMul, ScalarFunction::kMin,
        ScalarFunction::kMax, ScalarFunction::kAnd, ScalarFunction::kOr,  ScalarFunction::kXor};
    return Map(kFunctions[static_cast<size_t>(combine)], {a, b});
}

loop::ScalarId KernelBuilder::InRange(const Expr& value, const Expr& extent) {
    const Expr simple = Simplified(value);
    if (domain_.IsNotNegative(simple) && domain_.IsLess(simple, extent)) {
        return Constant(ElementType::kBool, Scalar::Integer(1));
    }
    return Add(ElementType::kBool, loop::InRange{simple, extent});
}

bool KernelBuilder::IsTrue(loop::ScalarId id) const {
    const auto* constant = std::get_if<loop::Constant>(&kernel_[id].value);
    return constant != nullptr && constant->value.integer == 1;
}

bool KernelBuilder::IsComputedOnce(ValueId value, const SizeFacts& sizes) const {
    const loop::Scope scope = loop::FindScope(kernel_);
    double evaluations = 0;
    for (const auto& [key, scalar] : scalars_) {
        if (key.first != value.value()) {
            continue;
        }
        const loop::VariableSet free = scope.free[scalar.value()];
        loop::VariableSet rows = 0;
        for (size_t i = 0; i < kernel_.row_loops; ++i) {
            rows |= loop::VariableSet{1} << i;
        }
        const bool in_rows = kernel_.mapping == loop::Mapping::kRow && (free & ~rows) == 0;
        const loop::VariableSet counted = in_rows ? rows : free | scope.parallel;
        double points = 1;
        for (size_t i = 0; i < scope.variables.size(); ++i) {
            if (((counted >> i) & 1) != 0) {
                points *= static_cast<double>(sizes.Hint(scope.variables[i].extent));
            }
        }
        evaluations += points;
    }
    return evaluations <= 1.01 * static_cast<double>(sizes.Hint(graph_.ShapeOf(value).Volume()));
}

Expr KernelBuilder::AsIndex(loop::ScalarId scalar) {
    const loop::ScalarNode& node = kernel_[scalar];
    if (const auto* constant = std::get_if<loop::Constant>(&node.value)) {
        return constant->value.integer;
    }
    if (const auto* index = std::get_if<loop::Index>(&node.value)) {
        return index->value;
    }
    return loop::SymbolOfScalar(scalar);
}

loop::Loop KernelBuilder::NewReductionLoop(const Expr& extent) {
    const Symbol variable(fmt::format("$r{}", next_reduction_++));
    domain_.AddVariable(variable, extent);
    return {variable, extent};
}

loop::Loop KernelBuilder::ReductionLoop(const Expr& extent, std::span<const loop::Loop> siblings) {
    if (kernel_.phases.empty()) {
        return NewReductionLoop(extent);
    }
    for (const loop::Loop& loop : shared_loops_) {
        const bool taken = std::any_of(
            siblings.begin(), siblings.end(),
            [&](const loop::Loop& sibling) { return sibling.variable == loop.variable; });
        if (loop.extent == extent && !taken) {
            return loop;
        }
    }
    shared_loops_.push_back(NewReductionLoop(extent));
    return shared_loops_.back();
}

loop::ScalarId KernelBuilder::Reduce(Combine combine,
                                     std::vector<loop::Loop> loops,
                                     loop::ScalarId body) {
    return Add(TypeOf(body), loop::Reduce{combine, std::move(loops), body});
}

}  // namespace fornax::graph
