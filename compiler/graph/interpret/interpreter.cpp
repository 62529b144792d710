// Runs graphs, bodies and host calls, with the values of symbols, states and the limits of a run.
#include "compiler/graph/interpret/interpreter.h"

#include <algorithm>

#include <fmt/format.h>

#include "compiler/graph/interpret/evaluation.h"

namespace fornax::graph {
namespace {

using interpret::Budget;
using interpret::Context;
using interpret::Invalid;
using interpret::Tensors;

// Bodies in bodies in bodies.
constexpr int kMaxDepth = 64;

// What lasts for a whole call of Interpret or EvaluateNode.
struct Run {
    const InterpretOptions& options;
    States* states;  // null: refused
    Budget budget;
    int depth = 0;
};

// The values of a graph's symbols. Those that are not known yet have a default, which a tensor's
// size replaces.
struct SymbolTable {
    Bindings known;
    Bindings values;  // known ones and defaults

    // Whether the tensor's size fits the expression; a symbol that is not known becomes known.
    bool Match(const Expr& expr, int64_t size) {
        if (std::optional<Symbol> symbol = SymbolOf(expr); symbol && !known.contains(*symbol)) {
            known[*symbol] = size;
            values[*symbol] = size;
        }
        return expr.Evaluate(values) == size;
    }

    // The symbol, if the expression is nothing else.
    static std::optional<Symbol> SymbolOf(const Expr& expr) {
        if (expr.constant_part() != 0 || expr.terms().size() != 1 ||
            expr.terms()[0].coefficient != 1 || expr.terms()[0].factors.size() != 1) {
            return std::nullopt;
        }
        return expr.terms()[0].factors[0]->symbol;
    }
};

Error WithContext(const Error& error, const std::string& what) {
    return {error.code, fmt::format("{}: {}.", what, error.message)};
}

// Whether a tensor has the data that its type says.
Status CheckWhole(const Tensor& tensor) {
    FORNAX_ASSIGN_OR_RETURN(const int64_t count, interpret::CountElements(tensor.dims));
    const auto elements = static_cast<uint64_t>(count);
    if (tensor.element == ElementType::kString) {
        if (!tensor.strings || tensor.strings->size() != elements) {
            return Invalid(fmt::format("it does not hold the {} strings of its type", elements));
        }
        return OkStatus();
    }
    const uint64_t bytes = elements * BytesOf(tensor.element);
    if (!tensor.data || tensor.data->size() != bytes) {
        return Invalid(fmt::format("it holds {} bytes, its type has {}",
                                   tensor.data ? tensor.data->size() : 0, bytes));
    }
    return OkStatus();
}

// Checks a tensor against its type in the graph, and binds symbols by it.
Status MatchType(const TensorType& type, const Tensor& tensor, SymbolTable& symbols) {
    bool fits = type.element == tensor.element && type.shape.rank() == tensor.dims.size();
    for (size_t axis = 0; fits && axis < tensor.dims.size(); ++axis) {
        fits = symbols.Match(type.shape[axis], tensor.dims[axis]);
    }
    if (!fits) {
        return Invalid(fmt::format("it is {}{}, not {}", Name(tensor.element),
                                   interpret::ToString(tensor.dims), type.ToString()));
    }
    return OkStatus();
}

Result<Tensors> RunGraph(const Graph& graph,
                         std::span<const Tensor> inputs,
                         const Bindings& outer,
                         Run& run);

// Evaluates one node. Errors are clauses, but for those in bodies, which are sentences.
class NodeEvaluator {
  public:
    NodeEvaluator(std::span<const Tensor> operands,
                  std::span<const Body> bodies,
                  const SymbolTable& symbols,
                  Run& run)
        : operands_(operands), bodies_(bodies), symbols_(symbols), run_(run) {}

    bool failed_in_body() const { return failed_in_body_; }

    template <typename T>
    Result<Tensors> operator()(const T& operation) {
        const Context context{symbols_.values, run_.budget};
        return AsTensors(interpret::Evaluate(operation, operands_, context));
    }

    Result<Tensors> operator()(const op::Composite&) { return RunBody(*bodies_[0], operands_); }

    Result<Tensors> operator()(const op::If&) {
        const bool condition = operands_[0].At(0).integer != 0;
        return RunBody(*bodies_[condition ? 0 : 1], operands_.subspan(1));
    }

    Result<Tensors> operator()(const op::Loop& loop) {
        const int64_t most = operands_[0].At(0).integer;
        bool go_on = operands_[1].At(0).integer != 0;
        const auto carried = static_cast<size_t>(loop.carried);
        const std::span<const Tensor> begin = operands_.subspan(2, carried);
        const std::span<const Tensor> read = operands_.subspan(2 + carried);
        Tensors values(begin.begin(), begin.end());
        for (int64_t iteration = 0; go_on && iteration < most; ++iteration) {
            FORNAX_RETURN_IF_ERROR(run_.budget.Spend(1));
            Tensors inputs = {Tensor::FromIntegers({}, {&iteration, 1})};
            inputs.insert(inputs.end(), values.begin(), values.end());
            inputs.insert(inputs.end(), read.begin(), read.end());
            values.clear();
            uint64_t bytes = 0;
            for (size_t i = 0; i < carried; ++i) {
                bytes += interpret::SizeInBytes(inputs[1 + i]);
            }
            run_.budget.live_bytes += bytes;
            Result<Tensors> outputs = RunBody(*bodies_[0], inputs);
            run_.budget.live_bytes -= bytes;
            if (!outputs.ok()) {
                return outputs;
            }
            go_on = (*outputs)[0].At(0).integer != 0;
            values.assign(outputs->begin() + 1, outputs->end());
        }
        return values;
    }

    Result<Tensors> operator()(const op::HostCall& call) {
        const HostFunctions* functions = run_.options.host_functions;
        const auto found =
            functions == nullptr ? HostFunctions::const_iterator() : functions->find(call.name);
        if (functions == nullptr || found == functions->end()) {
            return Error{ErrorCode::kUnsupported,
                         fmt::format("there is no host function {}", call.name)};
        }
        FORNAX_ASSIGN_OR_RETURN(Tensors results, found->second(call, operands_));
        if (results.size() != call.types.size()) {
            return Invalid(fmt::format("the host function {} gave {} results, not {}", call.name,
                                       results.size(), call.types.size()));
        }
        for (const Tensor& result : results) {
            FORNAX_RETURN_IF_ERROR(CheckWhole(result));
            FORNAX_RETURN_IF_ERROR(run_.budget.Check(interpret::SizeInBytes(result)));
        }
        return results;
    }

    Result<Tensors> operator()(const op::ReadState& read) {
        if (run_.states == nullptr) {
            return Invalid("states have no values here");
        }
        const auto found = run_.states->find(read.state);
        if (found != run_.states->end()) {
            return Tensors{found->second};
        }
        const Context context{symbols_.values, run_.budget};
        FORNAX_ASSIGN_OR_RETURN(interpret::Dims dims, context.Sizes(read.type.shape.dims()));
        FORNAX_ASSIGN_OR_RETURN(interpret::NewTensor zeros,
                                context.Allocate(read.type.element, std::move(dims)));
        return Tensors{std::move(zeros.tensor)};
    }

    Result<Tensors> operator()(const op::WriteState& write) {
        if (run_.states == nullptr) {
            return Invalid("states have no values here");
        }
        (*run_.states)[write.state] = operands_[0];
        return Tensors{};
    }

  private:
    static Result<Tensors> AsTensors(Result<Tensor> tensor) {
        if (!tensor.ok()) {
            return std::move(tensor).error();
        }
        return Tensors{std::move(tensor).value()};
    }
    static Result<Tensors> AsTensors(Result<Tensors> tensors) { return tensors; }

    Result<Tensors> RunBody(const Graph& body, std::span<const Tensor> inputs) {
        if (run_.depth >= kMaxDepth) {
            return Invalid(fmt::format("it lies in {} bodies, which is the limit", kMaxDepth));
        }
        ++run_.depth;
        Result<Tensors> outputs = RunGraph(body, inputs, symbols_.known, run_);
        --run_.depth;
        failed_in_body_ = failed_in_body_ || !outputs.ok();
        return outputs;
    }

    std::span<const Tensor> operands_;
    std::span<const Body> bodies_;
    const SymbolTable& symbols_;
    Run& run_;
    bool failed_in_body_ = false;
};

// The values of one run of one graph, each held until its last use.
class GraphRun {
  public:
    GraphRun(const Graph& graph, Run& run)
        : graph_(graph), run_(run), uses_(graph.CountUses()), values_(graph.values().size()) {}
    ~GraphRun() { run_.budget.live_bytes -= live_bytes_; }
    GraphRun(const GraphRun&) = delete;
    GraphRun& operator=(const GraphRun&) = delete;

    Status Bind(std::span<const Tensor> inputs, const Bindings& outer);
    Status RunNode(const Node& node);
    Tensors Outputs() const;

  private:
    Status CheckGuards() const;
    void Release(ValueId id);

    const Graph& graph_;
    Run& run_;
    std::vector<uint32_t> uses_;
    Tensors values_;
    SymbolTable symbols_;
    uint64_t live_bytes_ = 0;
};

Status GraphRun::Bind(std::span<const Tensor> inputs, const Bindings& outer) {
    if (inputs.size() != graph_.inputs().size()) {
        return Invalid(fmt::format("The graph {} has {} inputs, {} are given.", graph_.name(),
                                   graph_.inputs().size(), inputs.size()));
    }
    const auto wrong_input = [&](size_t i, const Error& error) {
        return WithContext(error, fmt::format("The input {} of the graph {} does not fit",
                                              graph_[graph_.inputs()[i]].name, graph_.name()));
    };
    // Symbols first, whose values other inputs' dimensions may be computed from.
    for (size_t i = 0; i < inputs.size(); ++i) {
        if (Status status = CheckWhole(inputs[i]); !status.ok()) {
            return wrong_input(i, status.error());
        }
        const Shape& shape = graph_.ShapeOf(graph_.inputs()[i]);
        for (size_t axis = 0; axis < std::min(shape.rank(), inputs[i].dims.size()); ++axis) {
            if (SymbolTable::SymbolOf(shape[axis])) {
                symbols_.Match(shape[axis], inputs[i].dims[axis]);
            }
        }
    }
    // What a body's inputs do not say has the value that it has around the body.
    symbols_.known.insert(outer.begin(), outer.end());
    symbols_.values = symbols_.known;
    symbols_.values.insert(graph_.sizes().hints().begin(), graph_.sizes().hints().end());
    for (size_t i = 0; i < inputs.size(); ++i) {
        const ValueId id = graph_.inputs()[i];
        if (Status status = MatchType(graph_.TypeOf(id), inputs[i], symbols_); !status.ok()) {
            return wrong_input(i, status.error());
        }
        values_[id.value()] = inputs[i];
    }
    return CheckGuards();
}

// Guards whose symbols are all known must hold.
Status GraphRun::CheckGuards() const {
    for (const Guard& guard : graph_.sizes().guards()) {
        const auto is_known = [&](const Expr& expr) {
            const std::vector<Symbol> used = expr.Symbols();
            return std::all_of(used.begin(), used.end(), [&](const Symbol& symbol) {
                return symbols_.known.contains(symbol);
            });
        };
        if (is_known(guard.a) && is_known(guard.b) && !guard.Holds(symbols_.known)) {
            return Invalid(fmt::format("The guard {} of the graph {} does not hold.",
                                       guard.ToString(), graph_.name()));
        }
    }
    return OkStatus();
}

Status GraphRun::RunNode(const Node& node) {
    const auto failed = [&](const Error& error) {
        return WithContext(error, fmt::format("The node {} ({}) of the graph {} cannot be computed",
                                              node.name, Name(node.operation), graph_.name()));
    };
    Tensors operands;
    uint64_t elements = 1;
    for (const ValueId operand : node.operands) {
        const Value& value = graph_[operand];
        operands.push_back(value.kind == ValueKind::kConstant ? value.constant
                                                              : values_[operand.value()]);
        elements += static_cast<uint64_t>(operands.back().count());
    }
    if (Status status = run_.budget.Spend(elements); !status.ok()) {
        return failed(status.error());
    }
    NodeEvaluator evaluator(operands, node.bodies, symbols_, run_);
    Result<Tensors> results = std::visit(evaluator, node.operation);
    if (!results.ok()) {
        return evaluator.failed_in_body() ? std::move(results).error() : failed(results.error());
    }
    const size_t known = symbols_.known.size();
    for (size_t i = 0; i < node.results.size(); ++i) {
        const ValueId id = node.results[i];
        Tensor& result = (*results)[i];
        if (Status status = MatchType(graph_.TypeOf(id), result, symbols_); !status.ok()) {
            return failed({status.error().code,
                           fmt::format("result {} does not fit, {}", i, status.error().message)});
        }
        if (uses_[id.value()] > 0 && graph_[id].kind == ValueKind::kResult) {
            const uint64_t bytes = interpret::SizeInBytes(result);
            live_bytes_ += bytes;
            run_.budget.live_bytes += bytes;
            values_[id.value()] = std::move(result);
        }
    }
    for (const ValueId operand : node.operands) {
        Release(operand);
    }
    return symbols_.known.size() == known ? OkStatus() : CheckGuards();
}

void GraphRun::Release(ValueId id) {
    if (--uses_[id.value()] > 0 || graph_[id].kind == ValueKind::kConstant) {
        return;
    }
    Tensor& tensor = values_[id.value()];
    if (graph_[id].kind == ValueKind::kResult) {
        const uint64_t bytes = interpret::SizeInBytes(tensor);
        live_bytes_ -= bytes;
        run_.budget.live_bytes -= bytes;
    }
    tensor = {};
}

Tensors GraphRun::Outputs() const {
    Tensors outputs;
    for (const Output& output : graph_.outputs()) {
        const Value& value = graph_[output.value];
        outputs.push_back(value.kind == ValueKind::kConstant ? value.constant
                                                             : values_[output.value.value()]);
    }
    return outputs;
}

Result<Tensors> RunGraph(const Graph& graph,
                         std::span<const Tensor> inputs,
                         const Bindings& outer,
                         Run& run) {
    GraphRun graph_run(graph, run);
    FORNAX_RETURN_IF_ERROR(graph_run.Bind(inputs, outer));
    for (const Node& node : graph.nodes()) {
        FORNAX_RETURN_IF_ERROR(graph_run.RunNode(node));
    }
    return graph_run.Outputs();
}

Budget BudgetOf(const InterpretOptions& options) {
    return {options.max_bytes, options.max_steps, 0, 0};
}

}  // namespace

Result<std::vector<Tensor>> Interpret(const Graph& graph,
                                      std::span<const Tensor> inputs,
                                      const InterpretOptions& options) {
    States states;
    Run run{options, options.states != nullptr ? options.states : &states, BudgetOf(options)};
    return RunGraph(graph, inputs, {}, run);
}

Result<std::vector<Tensor>> EvaluateNode(const Operation& operation,
                                         std::span<const Tensor> operands,
                                         std::span<const Body> bodies,
                                         const Bindings& bindings,
                                         const InterpretOptions& options) {
    Run run{options, options.states, BudgetOf(options)};
    const SymbolTable symbols{bindings, bindings};
    NodeEvaluator evaluator(operands, bodies, symbols, run);
    Result<Tensors> results = std::visit(evaluator, operation);
    if (!results.ok() && !evaluator.failed_in_body()) {
        return WithContext(results.error(),
                           fmt::format("The operation {} cannot be computed", Name(operation)));
    }
    return results;
}

}  // namespace fornax::graph
