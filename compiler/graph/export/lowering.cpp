// Graphs to ONNX's operators: names, constants, states, and which family a node is of.
#include "compiler/graph/export/lowering.h"

#include <algorithm>

#include <fmt/format.h>

#include "compiler/graph/build/build_error.h"
#include "compiler/graph/interpret/interpreter.h"
#include "compiler/graph/ir/operation_sizes.h"

namespace fornax::graph {
namespace {

// By primitive.
struct Families {
    Lowering& to;
    const Node& node;
    Names operator()(const op::Map& it) const { return LowerMap(to, node, it); }
    Names operator()(const op::Cast& it) const { return LowerCast(to, node, it); }
    Names operator()(const op::Reduce& it) const { return LowerReduce(to, node, it); }
    Names operator()(const op::ArgReduce& it) const { return LowerArgReduce(to, node, it); }
    Names operator()(const op::Scan& it) const { return LowerScan(to, node, it); }
    Names operator()(const op::Sort& it) const { return LowerSort(to, node, it); }
    Names operator()(const op::Contract& it) const { return LowerContract(to, node, it); }
    Names operator()(const op::Slice& it) const { return LowerSlice(to, node, it); }
    Names operator()(const op::Pad& it) const { return LowerPad(to, node, it); }
    Names operator()(const op::Window& it) const { return LowerWindow(to, node, it); }
    Names operator()(const op::Gather& it) const { return LowerGather(to, node, it); }
    Names operator()(const op::Scatter& it) const { return LowerScatter(to, node, it); }
    Names operator()(const op::Iota& it) const { return LowerIota(to, node, it); }
    Names operator()(const op::Reshape& it) const {
        return {to.ReshapeTo(to.NameOf(node.operands[0]), Lowering::DimsOf(it.shape))};
    }
    Names operator()(const op::Broadcast& it) const {
        return {to.ExpandTo(to.NameOf(node.operands[0]), Lowering::DimsOf(it.shape))};
    }
    Names operator()(const op::Permute& it) const {
        return {to.Emit("Transpose", {to.NameOf(node.operands[0])}, {{"perm", it.order}})};
    }
    Names operator()(const op::Concat& it) const {
        Names inputs;
        for (const ValueId operand : node.operands) {
            inputs.push_back(to.NameOf(operand));
        }
        return {to.Emit("Concat", std::move(inputs), {{"axis", it.axis}})};
    }
    Names operator()(const auto& it) const {
        FailUnsupported(fmt::format("the primitive {} has no operator of ONNX",
                                    std::decay_t<decltype(it)>::kName));
    }
};

}  // namespace

Lowering::Lowering(const Graph& graph, const ExportOptions& options)
    : graph_(graph), options_(options) {
    model_.name = graph.name();
}

std::string Lowering::UniqueName(std::string wanted) {
    std::string name = wanted;
    for (int i = 2; !taken_.insert(name).second; ++i) {
        name = fmt::format("{}_{}", wanted, i);
    }
    return name;
}

std::string Lowering::ExternalName(const std::string& name) {
    const auto found = options_.names.find(name);
    return UniqueName(found == options_.names.end() ? name : found->second);
}

std::string Lowering::Emit(std::string_view op, Names inputs, Attributes attributes) {
    std::string name = UniqueName(fmt::format("t{}", next_++));
    model_.nodes.push_back({std::string(op), std::move(inputs), {name}, std::move(attributes)});
    return name;
}

Names Lowering::EmitTwo(std::string_view op, Names inputs, Attributes attributes) {
    const std::string first = Emit(op, std::move(inputs), std::move(attributes));
    const std::string second = UniqueName(fmt::format("t{}", next_++));
    model_.nodes.back().outputs.push_back(second);
    return {first, second};
}

std::string Lowering::Weight(Tensor tensor) {
    std::string name = UniqueName(fmt::format("w{}", next_++));
    model_.weights.emplace_back(name, std::move(tensor));
    return name;
}

std::string Lowering::Ints(const std::vector<int64_t>& values) {
    std::string& name = numbers_[fmt::format("ints {}", fmt::join(values, ","))];
    if (name.empty()) {
        name = Weight(Tensor::FromIntegers({static_cast<int64_t>(values.size())}, values));
    }
    return name;
}

std::string Lowering::OpenSizes(const Sizes& sizes, bool is_number) {
    std::string key = is_number ? "size" : "sizes";
    for (const Expr& size : sizes) {
        key += fmt::format(" {},", size.ToString());
        for (const Symbol& symbol : size.Symbols()) {
            if (std::ranges::find(model_.symbols, symbol, &ExportedSymbol::symbol) ==
                model_.symbols.end()) {
                FailUnsupported(fmt::format("the size {} is that of no input", size.ToString()));
            }
        }
    }
    std::string& name = numbers_[std::move(key)];
    if (name.empty()) {
        name = UniqueName(fmt::format("s{}", next_++));
        model_.sizes.push_back({name, is_number, sizes});
    }
    return name;
}

std::string Lowering::IntsOf(const Sizes& sizes) {
    std::vector<int64_t> values;
    for (const Expr& size : sizes) {
        if (!size.is_constant()) {
            return OpenSizes(sizes, false);
        }
        values.push_back(*size.constant());
    }
    return Ints(values);
}

std::string Lowering::Size(const Expr& size) {
    return size.is_constant() ? Integer(ElementType::kI64, *size.constant())
                              : OpenSizes({size}, true);
}

std::string Lowering::Number(ElementType element, double value) {
    return ScalarWeight(element, Scalar::Float(value), fmt::format("{} {}", Name(element), value));
}

std::string Lowering::Integer(ElementType element, int64_t value) {
    return ScalarWeight(element, Scalar::Integer(value),
                        fmt::format("{} int {}", Name(element), value));
}

// The weight of a number, which is written once for each `key`.
std::string Lowering::ScalarWeight(ElementType element, const Scalar& value, std::string key) {
    std::string& name = numbers_[std::move(key)];
    if (name.empty()) {
        uint8_t* data = nullptr;
        Tensor tensor = Tensor::Zeros(element, {}, &data);
        WriteElement(element, value, data);
        name = Weight(std::move(tensor));
    }
    return name;
}

std::string Lowering::CastTo(const std::string& name, ElementType from, ElementType to) {
    if (from == to) {
        return name;
    }
    // Not kept across casts that round: each pair of names and types is one conversion.
    std::string& result = casts_[fmt::format("{} {}", name, Name(to))];
    if (result.empty()) {
        Result<int32_t> type = OnnxTypeOf(to);
        if (!type.ok()) {
            FailUnsupported(type.error().message);
        }
        result = Emit("Cast", {name}, {{"to", int64_t{*type}}});
    }
    return result;
}

std::string Lowering::ReshapeTo(const std::string& name, const Sizes& dims) {
    return Emit("Reshape", {name, IntsOf(dims)}, {{"allowzero", int64_t{1}}});
}

std::string Lowering::ExpandTo(const std::string& name, const Sizes& dims) {
    return Emit("Expand", {name, IntsOf(dims)});
}

bool Lowering::IsKnown(ValueId value) {
    const auto found = known_.find(value.value());
    if (found != known_.end()) {
        return found->second;
    }
    const Value& it = graph_[value];
    bool known = it.kind == ValueKind::kConstant || constants_.contains(value.value());
    if (const Node* producer = graph_.Producer(value)) {
        known = !Is<op::ReadState>(producer->operation) && !Is<op::HostCall>(producer->operation) &&
                std::ranges::all_of(producer->operands, [&](ValueId id) { return IsKnown(id); });
    }
    return known_[value.value()] = known;
}

bool Lowering::IsCheap(const Node& node) const {
    if (const auto* cast = std::get_if<op::Cast>(&node.operation)) {
        const ElementType from = TypeOf(node.operands[0]).element;
        return cast->to == ElementType::kF32 &&
               (from == ElementType::kF16 || from == ElementType::kBF16);
    }
    return Is<op::Broadcast>(node.operation) || Is<op::Reshape>(node.operation) ||
           Is<op::Permute>(node.operation) || Is<op::Iota>(node.operation);
}

bool Lowering::IsOpen(const Node& node) const {
    bool is_open = false;
    const auto look = [&](const Expr& size) { is_open |= !size.is_constant(); };
    Operation operation = node.operation;
    ForEachSize(operation, look);
    for (const ValueId result : node.results) {
        std::ranges::for_each(TypeOf(result).shape.dims(), look);
    }
    return is_open;
}

const Tensor& Lowering::Evaluate(ValueId value, std::map<uint32_t, Tensor>& memo) {
    if (const auto found = memo.find(value.value()); found != memo.end()) {
        return found->second;
    }
    if (const auto found = constants_.find(value.value()); found != constants_.end()) {
        return found->second;
    }
    const Node* producer = graph_.Producer(value);
    if (producer == nullptr) {
        return graph_[value].constant;
    }
    std::vector<Tensor> operands;
    for (const ValueId operand : producer->operands) {
        operands.push_back(Evaluate(operand, memo));
    }
    InterpretOptions options;
    options.max_bytes = uint64_t{64} << 30;
    Result<std::vector<Tensor>> results =
        EvaluateNode(producer->operation, operands, producer->bodies, {}, options);
    if (!results.ok()) {
        throw BuildError(results.error().code, results.error().message);
    }
    for (size_t i = 0; i < producer->results.size(); ++i) {
        memo[producer->results[i].value()] = std::move((*results)[i]);
    }
    return memo.at(value.value());
}

std::string Lowering::NameOf(ValueId value) {
    if (const auto found = names_.find(value.value()); found != names_.end()) {
        return found->second;
    }
    if (!IsKnown(value)) {
        FailInvalid(fmt::format("its operand {} is not computed before it", graph_[value].name));
    }
    const Node* producer = graph_.Producer(value);
    if (producer != nullptr && (IsCheap(*producer) || IsOpen(*producer))) {
        LowerNode(*producer);
        return names_.at(value.value());
    }
    std::map<uint32_t, Tensor> memo;
    return names_[value.value()] = Weight(Evaluate(value, memo));
}

void Lowering::LowerNode(const Node& node) {
    const Node* const outer = node_;
    node_ = &node;
    if (const auto* read = std::get_if<op::ReadState>(&node.operation)) {
        // After ForwardState() there is one read, before the write.
        names_[node.results[0].value()] = states_.at(read->state);
    } else if (const auto* write = std::get_if<op::WriteState>(&node.operation)) {
        states_[write->state] = NameOf(node.operands[0]);
        if (state_types_.try_emplace(write->state, TypeOf(node.operands[0])).second) {
            state_order_.push_back(write->state);
        }
    } else {
        const Names results = std::visit(Families{*this, node}, node.operation);
        for (size_t i = 0; i < results.size(); ++i) {
            names_[node.results[i].value()] = results[i];
        }
    }
    node_ = outer;
}

// The symbols that the dimensions of an input tell.
void Lowering::AddSymbols(const ExportedPort& input) {
    for (size_t axis = 0; axis < input.dims.size(); ++axis) {
        const Expr& dim = input.dims[axis];
        if (dim.terms().size() != 1 || dim.terms()[0].factors.size() != 1 ||
            dim.terms()[0].factors[0]->kind != AtomKind::kSymbol) {
            continue;
        }
        const ExprTerm& term = dim.terms()[0];
        const Symbol& symbol = *term.factors[0]->symbol;
        if (std::ranges::find(model_.symbols, symbol, &ExportedSymbol::symbol) !=
            model_.symbols.end()) {
            continue;
        }
        model_.symbols.push_back({symbol, input.name, static_cast<int64_t>(axis), term.coefficient,
                                  dim.constant_part(), graph_.sizes().Hint(Expr(symbol))});
    }
}

// What the graph takes for granted of sizes that stay open.
void Lowering::AddConditions() {
    for (const Guard& guard : graph_.sizes().guards()) {
        if (guard.a.is_constant() && guard.b.is_constant()) {
            continue;
        }
        if (guard.relation == Relation::kEqual) {
            FailUnsupported(fmt::format("it is for sizes alone for which {}", guard.ToString()));
        }
        model_.conditions.push_back(guard.ToString());
    }
}

ExportedModel Lowering::Run() {
    const auto port = [](const std::string& name, const TensorType& type) {
        return ExportedPort{name, type.element, DimsOf(type.shape)};
    };
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
        const ValueId input = graph_.inputs()[i];
        const std::string name = ExternalName(graph_[input].name);
        if (const auto weight = options_.weights.find(i); weight != options_.weights.end()) {
            constants_[input.value()] = weight->second;
            continue;
        }
        names_[input.value()] = name;
        model_.inputs.push_back(port(name, TypeOf(input)));
        AddSymbols(model_.inputs.back());
    }
    for (const Node& node : graph_.nodes()) {
        const auto* read = std::get_if<op::ReadState>(&node.operation);
        if (read != nullptr && !states_.contains(read->state)) {
            const std::string name = ExternalName(read->state);
            states_[read->state] = name;
            state_types_[read->state] = read->type;
            state_order_.push_back(read->state);
            model_.inputs.push_back(port(name, read->type));
            AddSymbols(model_.inputs.back());
        }
    }
    AddConditions();
    for (const Node& node : graph_.nodes()) {
        const bool is_write = Is<op::WriteState>(node.operation);
        const bool is_known =
            std::ranges::all_of(node.results, [&](ValueId result) { return IsKnown(result); });
        if (is_write || !is_known) {
            LowerNode(node);
        }
    }
    const auto add_output = [&](const std::string& name, const std::string& value,
                                const TensorType& type) {
        // An output has a name of its own: a value may be several outputs, or an input.
        model_.nodes.push_back({"Identity", {value}, {name}, {}});
        model_.outputs.push_back(port(name, type));
    };
    for (const Output& output : graph_.outputs()) {
        const std::string value = NameOf(output.value);
        add_output(ExternalName(output.name), value, TypeOf(output.value));
    }
    for (const std::string& state : state_order_) {
        const auto found = options_.names.find(state);
        const std::string& name = found == options_.names.end() ? state : found->second;
        add_output(UniqueName(name + "_new"), states_.at(state), state_types_.at(state));
    }
    return std::move(model_);
}

Result<ExportedModel> ExportGraph(const Graph& graph, const ExportOptions& options) {
    Lowering lowering(graph, options);
    try {
        return lowering.Run();
    } catch (const BuildError& error) {
        const Node* node = lowering.node();
        return Error{
            error.code(),
            fmt::format("{}{}: {}.", graph.name(),
                        node == nullptr ? "" : fmt::format(", node {}", node->name), error.what())};
    }
}

}  // namespace fornax::graph
