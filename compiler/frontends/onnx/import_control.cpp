// If, Loop and Scan.
//
// What is known at import is done at import: the branch of a known condition is put in place, short
// loops are unrolled, and so are those whose values change their shapes. The rest become If and
// Loop nodes. Where data end a loop, its results have as many slices as it had iterations: the
// host cuts them from results of the greatest number.
#include <algorithm>
#include <exception>

#include <fmt/format.h>

#include "compiler/frontends/onnx/graph_importer.h"
#include "compiler/frontends/onnx/node_errors.h"
#include "compiler/frontends/onnx/operator_families.h"
#include "compiler/graph/build/index.h"

namespace fornax::onnx_frontend {
namespace {

// Loops of at most this many iterations are unrolled.
constexpr int64_t kUnrolledIterations = 8;
// And those that have to be, because they are not loops over tensors of fixed types.
constexpr int64_t kMaxUnrolledIterations = 1024;

std::optional<bool> KnownBool(Builder& b, Val value) {
    const auto known = b.KnownIntegers(value);
    if (!known.has_value() || known->size() != 1 || !(*known)[0].is_constant()) {
        return std::nullopt;
    }
    return !((*known)[0] == Expr(0));
}

bool RequireBool(Builder& b, Val value) {
    return b.RequireInteger(value, "the condition") != 0;
}

bool AreTensors(const std::vector<Item>& items) {
    return std::ranges::all_of(items,
                               [](const Item& item) { return item.kind == Item::Kind::kTensor; });
}

Vals TensorsOf(const std::vector<Item>& items) {
    Vals values;
    for (const Item& item : items) {
        if (item.kind != Item::Kind::kTensor) {
            FailUnsupported("its subgraph gives something that is not a tensor");
        }
        values.push_back(item.tensor);
    }
    return values;
}

void OutAll(Node& node, const std::vector<Item>& items) {
    for (size_t i = 0; i < items.size(); ++i) {
        node.Out(i, items[i]);
    }
}

// --- If ------------------------------------------------------------------------------------------

// An If node, if both branches give tensors of the same types. `problems` receives the nodes of
// both that are not supported.
std::optional<Vals> TryIfNode(Node& node, Val condition, std::vector<NodeProblem>& problems) {
    GraphImporter& importer = node.importer();
    const onnx::GraphProto* graphs[] = {&node.Subgraph("then_branch"),
                                        &node.Subgraph("else_branch")};
    std::set<std::string> names = OuterNames(*graphs[0]);
    names.merge(OuterNames(*graphs[1]));
    const GraphImporter::Captures captures = importer.Capture(names);
    std::vector<graph::Body> bodies;
    try {
        for (const onnx::GraphProto* graph : graphs) {
            try {
                bodies.push_back(importer.MakeBody("branch", {}, captures, 0,
                                                   [&](GraphImporter& body, const Vals&) {
                                                       return TensorsOf(body.Inline(*graph, {}));
                                                   }));
            } catch (const NodeErrors& errors) {
                if (errors.code() != ErrorCode::kUnsupported) {
                    throw;
                }
                problems.insert(problems.end(), errors.problems().begin(), errors.problems().end());
            }
        }
        if (!problems.empty()) {
            return std::nullopt;
        }
        Vals operands = {graph::Reshape(condition, Shape{})};
        operands.insert(operands.end(), captures.operands.begin(), captures.operands.end());
        return node.builder().Add(graph::op::If{}, operands, std::move(bodies));
    } catch (const graph::BuildError&) {
        return std::nullopt;
    }
}

void ImportIf(Node& node) {
    Builder& b = node.builder();
    const Val condition = node.In(0);
    std::optional<bool> known = KnownBool(b, condition);
    if (!known.has_value()) {
        std::vector<NodeProblem> problems;
        if (const std::optional<Vals> results = TryIfNode(node, condition, problems)) {
            for (size_t i = 0; i < results->size(); ++i) {
                node.Out(i, (*results)[i]);
            }
            return;
        }
        try {
            known = RequireBool(b, condition);
        } catch (const graph::DependsOnData&) {
            if (!problems.empty()) {
                throw NodeErrors(ErrorCode::kUnsupported, std::move(problems));
            }
            throw;
        }
    }
    OutAll(node, node.importer().Inline(node.Subgraph(*known ? "then_branch" : "else_branch"), {}));
}

// --- Loop ----------------------------------------------------------------------------------------

void UnrollLoop(Node& node,
                std::vector<Item> carried,
                std::optional<int64_t> count,
                Val condition) {
    Builder& b = node.builder();
    const onnx::GraphProto& graph = node.Subgraph("body");
    const size_t outputs = static_cast<size_t>(graph.output_size());
    if (outputs < 1 + carried.size()) {
        FailInvalid(
            fmt::format("its body has {} outputs for {} carried values", outputs, carried.size()));
    }
    std::vector<Vals> scans(outputs - 1 - carried.size());
    bool runs = !condition || RequireBool(b, condition);
    for (int64_t i = 0; runs && i < count.value_or(INT64_MAX); ++i) {
        if (i >= kMaxUnrolledIterations) {
            FailUnsupported(
                fmt::format("it has more than {} iterations, and is not a loop over "
                            "tensors of fixed shapes",
                            kMaxUnrolledIterations));
        }
        std::vector<Item> inputs = {Item(b.Integer(ElementType::kI64, i)),
                                    Item(b.Integer(ElementType::kBool, 1))};
        inputs.insert(inputs.end(), carried.begin(), carried.end());
        const std::vector<Item> results = node.importer().Inline(graph, inputs);
        std::copy_n(results.begin() + 1, carried.size(), carried.begin());
        for (size_t s = 0; s < scans.size(); ++s) {
            scans[s].push_back(TensorsOf({results[1 + carried.size() + s]})[0]);
        }
        // A condition that does not end the loop early needs no value behind the last iteration.
        if (i + 1 < count.value_or(INT64_MAX)) {
            runs = RequireBool(b, TensorsOf({results[0]})[0]);
        }
    }
    OutAll(node, carried);
    for (size_t s = 0; s < scans.size(); ++s) {
        if (scans[s].empty()) {
            FailUnsupported("it has no iteration, so that the shapes of its results are not known");
        }
        node.Out(carried.size() + s, graph::Stack(scans[s], 0));
    }
}

// What is in a loop over tensors, for Loop and Scan.
struct LoopPlan {
    const onnx::GraphProto* body = nullptr;
    Val count;        // i64
    Expr count_size;  // the same, where scan outputs need it
    Val condition;    // or nothing
    Vals carried;
    Vals scanned;  // inputs of which each iteration gets a slice
    std::vector<int64_t> input_axes, output_axes;
    std::vector<bool> input_reversed, output_reversed;
    bool has_condition = false;  // the body has the iteration and a condition, as in Loop
    bool may_end_early = false;  // scan outputs have count_size slices at most
};

// Runs the body of a plan: gives whether to go on (or nothing), the carried values, then the slices
// of scan outputs.
Vals RunBody(GraphImporter& importer,
             const LoopPlan& plan,
             Val i,
             const Vals& carried,
             const Vals& scanned) {
    Builder& b = importer.builder();
    std::vector<Item> inputs;
    if (plan.has_condition) {
        inputs = {Item(i), Item(b.Integer(ElementType::kBool, 1))};
    }
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    const Val last = scanned.empty() ? Val() : b.Size(plan.count_size) - 1.0;
    for (size_t s = 0; s < scanned.size(); ++s) {
        const Val at = plan.input_reversed[s] ? last - i : i;
        inputs.emplace_back(graph::TakeOne(scanned[s], at, plan.input_axes[s]));
    }
    return TensorsOf(importer.Inline(*plan.body, inputs));
}

Vals MakeLoop(Node& node, const LoopPlan& plan) {
    GraphImporter& importer = node.importer();
    Builder& b = node.builder();
    const size_t own = plan.has_condition ? 1 : 0;
    const size_t outputs = static_cast<size_t>(plan.body->output_size());
    if (outputs < own + plan.carried.size()) {
        FailInvalid(fmt::format("its body has {} outputs for {} carried values", outputs,
                                plan.carried.size()));
    }
    const size_t scans = outputs - own - plan.carried.size();
    const GraphImporter::Captures captures = importer.Capture(OuterNames(*plan.body));
    Vals carried = plan.carried;
    const auto inputs_of = [&](const Vals& all_carried) {
        Vals inputs = {b.Integer(ElementType::kI64, 0)};
        inputs.insert(inputs.end(), all_carried.begin(), all_carried.end());
        inputs.insert(inputs.end(), plan.scanned.begin(), plan.scanned.end());
        return inputs;
    };
    const auto part = [](const Vals& values, size_t first, size_t count) {
        const auto begin = values.begin() + static_cast<int64_t>(first);
        return Vals(begin, begin + static_cast<int64_t>(count));
    };
    bool stops = false;
    if (scans != 0) {
        // The types of the slices are only known when the body is built once.
        std::vector<graph::TensorType> types;
        const auto probe = [&](GraphImporter& body, const Vals& values) {
            const Vals results = RunBody(body, plan, values[0], part(values, 1, carried.size()),
                                         part(values, 1 + carried.size(), plan.scanned.size()));
            for (size_t s = 0; s < scans; ++s) {
                types.push_back(results[own + carried.size() + s].type());
            }
            stops = plan.has_condition && KnownBool(body.builder(), results[0]) != true;
            return results;
        };
        importer.MakeBody("loop", inputs_of(carried), captures, 1 + carried.size(), probe);
        stops |= plan.condition && KnownBool(b, plan.condition) != true;
        if (stops && !plan.may_end_early) {
            throw graph::DependsOnData(
                "the number of its iterations, and with it the size of its results, "
                "depends on the data");
        }
        for (size_t s = 0; s < scans; ++s) {
            std::vector<Expr> dims(types[s].shape.dims().begin(), types[s].shape.dims().end());
            const int64_t axis =
                Builder::Axis(plan.output_axes[s], static_cast<int64_t>(dims.size()) + 1);
            dims.insert(dims.begin() + axis, plan.count_size);
            const Shape shape(std::move(dims));
            carried.push_back(types[s].element == ElementType::kBool
                                  ? graph::BroadcastTo(b.Integer(ElementType::kBool, 0), shape)
                                  : b.Full(types[s].element, shape, 0));
        }
        if (stops) {
            carried.push_back(b.Integer(ElementType::kI64, 0));
        }
    }
    const auto iterate = [&](GraphImporter& body, const Vals& values) {
        Builder& inner = body.builder();
        const Val i = values[0];
        const Vals results = RunBody(body, plan, i, part(values, 1, plan.carried.size()),
                                     part(values, 1 + carried.size(), plan.scanned.size()));
        Vals next = {plan.has_condition ? graph::Reshape(results[0], Shape{})
                                        : inner.Integer(ElementType::kBool, 1)};
        for (size_t c = 0; c < plan.carried.size(); ++c) {
            const Val value = results[own + c];
            if (value.element() != values[1 + c].element() ||
                value.rank() != values[1 + c].rank()) {
                FailUnsupported("a carried value changes its type");
            }
            next.push_back(value);
        }
        for (size_t s = 0; s < scans; ++s) {
            const Val at = plan.output_reversed[s] ? inner.Size(plan.count_size) - 1.0 - i : i;
            next.push_back(graph::PutOne(values[1 + plan.carried.size() + s], at,
                                         results[own + plan.carried.size() + s],
                                         plan.output_axes[s]));
        }
        if (stops) {
            next.push_back(i + 1.0);
        }
        return next;
    };
    graph::Body body =
        importer.MakeBody("loop", inputs_of(carried), captures, 1 + carried.size(), iterate);
    Vals operands = {plan.count, plan.condition ? graph::Reshape(plan.condition, Shape{})
                                                : b.Integer(ElementType::kBool, 1)};
    operands.insert(operands.end(), carried.begin(), carried.end());
    operands.insert(operands.end(), plan.scanned.begin(), plan.scanned.end());
    operands.insert(operands.end(), captures.operands.begin(), captures.operands.end());
    Vals results =
        b.Add(graph::op::Loop{static_cast<int64_t>(carried.size())}, operands, {std::move(body)});
    if (!stops) {
        return results;
    }
    // The last one is how many iterations there were, and so slices of the scan outputs.
    const auto first_scan = results.begin() + static_cast<int64_t>(plan.carried.size());
    Vals cut = {results.back()};
    cut.insert(cut.end(), first_scan, results.end() - 1);
    const Expr count = b.UnknownSize(
        "iterations", std::clamp<int64_t>(b.sizes().Hint(plan.count_size), 0, INT32_MAX),
        {0, INT32_MAX});
    std::vector<graph::TensorType> types;
    for (size_t s = 1; s < cut.size(); ++s) {
        types.push_back(cut[s].type());
        types.back().shape[0] = count;
    }
    const Vals slices = b.HostCall("first", {}, cut, std::move(types));
    results.pop_back();
    std::ranges::copy(slices, results.begin() + static_cast<int64_t>(plan.carried.size()));
    return results;
}

// Inputs have no values while it lives, so that no plan becomes one for these values.
class UnknownInputs {
  public:
    explicit UnknownInputs(Builder& builder)
        : builder_(builder), value_(builder.TakeInputValue()) {}
    UnknownInputs(const UnknownInputs&) = delete;
    UnknownInputs& operator=(const UnknownInputs&) = delete;
    ~UnknownInputs() { builder_.SetInputValue(std::move(value_)); }

  private:
    Builder& builder_;
    std::function<std::optional<Tensor>(graph::ValueId)> value_;
};

// Whether a way of building it does; `error` receives why the first one does not.
template <typename Function>
bool Succeeds(std::exception_ptr& error, const Function& build) {
    try {
        build();
        return true;
    } catch (const LimitError&) {
        throw;
    } catch (const graph::BuildError&) {
        if (error == nullptr) {
            error = std::current_exception();
        }
        return false;
    }
}

void ImportLoop(Node& node) {
    Builder& b = node.builder();
    std::vector<Item> carried;
    for (size_t i = 2; i < node.input_count(); ++i) {
        carried.push_back(node.InItem(i));
    }
    const Val limit = node.Opt(0), condition = node.Opt(1);
    LoopPlan plan;
    plan.body = &node.Subgraph("body");
    plan.has_condition = true;
    const size_t scans =
        static_cast<size_t>(std::max(plan.body->output_size() - 1, 0)) - carried.size();
    const bool scanning = static_cast<size_t>(plan.body->output_size()) > 1 + carried.size();
    std::optional<int64_t> count;
    if (limit) {
        const auto known = b.KnownIntegers(limit);
        if (known.has_value() && known->size() == 1) {
            plan.count_size = (*known)[0];
            count = (*known)[0].constant();
        } else if (scanning) {
            count = b.RequireInteger(limit, "the number of iterations");
            plan.count_size = *count;
        }
        plan.count = count.has_value() ? b.Integer(ElementType::kI64, *count)
                                       : graph::Reshape(limit, Shape{});
    } else {
        plan.count = b.Integer(ElementType::kI64, INT64_MAX);
    }
    const bool is_short = count.has_value() && *count <= kUnrolledIterations;
    const bool is_loop = AreTensors(carried) && (limit || !scanning);
    if (is_loop) {
        plan.condition = condition;
        plan.carried = TensorsOf(carried);
        plan.output_axes.assign(scanning ? scans : 0, 0);
        plan.output_reversed.assign(plan.output_axes.size(), false);
    }
    const auto as_loop = [&](bool may_end_early) {
        plan.may_end_early = may_end_early;
        const Vals results = MakeLoop(node, plan);
        for (size_t i = 0; i < results.size(); ++i) {
            node.Out(i, results[i]);
        }
    };
    std::exception_ptr error;
    if (is_loop && !is_short && Succeeds(error, [&] { as_loop(false); })) {
        return;
    }
    // Sizes and constants may end it early, iteration by iteration.
    const bool is_counted = !limit || count.has_value();
    if (is_loop && is_counted && Succeeds(error, [&] {
            const UnknownInputs unknown(b);
            UnrollLoop(node, carried, count, condition);
        })) {
        return;
    }
    // Or data do, on the host.
    if (is_loop && (is_short || scanning) && Succeeds(error, [&] { as_loop(true); })) {
        return;
    }
    if (limit && !count.has_value()) {
        if (error != nullptr && !b.TryEvaluate(limit).has_value()) {
            std::rethrow_exception(error);
        }
        count = b.RequireInteger(limit, "the number of iterations");
    }
    UnrollLoop(node, std::move(carried), count, condition);
}

// --- Scan ----------------------------------------------------------------------------------------

std::vector<bool> ReadDirections(Node& node, std::string_view name, size_t count) {
    const std::vector<int64_t> directions = node.Ints(name);
    std::vector<bool> reversed;
    for (const int64_t direction : directions) {
        reversed.push_back(direction != 0);
    }
    reversed.resize(directions.empty() ? count : directions.size(), false);
    if (reversed.size() != count) {
        FailInvalid(fmt::format("it has {} directions for {} values", directions.size(), count));
    }
    return reversed;
}

std::vector<int64_t> ReadAxes(Node& node, std::string_view name, size_t count) {
    std::vector<int64_t> axes = node.Ints(name);
    axes.resize(axes.empty() ? count : axes.size(), 0);
    if (axes.size() != count) {
        FailInvalid(fmt::format("it has {} axes for {} values", axes.size(), count));
    }
    return axes;
}

Vals RunScan(Node& node, LoopPlan plan, const Vals& inputs, size_t scanned) {
    Builder& b = node.builder();
    if (scanned == 0 || scanned > inputs.size()) {
        FailInvalid(
            fmt::format("it has {} inputs, of which {} are scanned", inputs.size(), scanned));
    }
    const int64_t states = static_cast<int64_t>(inputs.size() - scanned);
    plan.carried.assign(inputs.begin(), inputs.begin() + states);
    plan.scanned.assign(inputs.begin() + states, inputs.end());
    for (size_t i = 0; i < scanned; ++i) {
        plan.input_axes[i] = Builder::Axis(plan.input_axes[i], plan.scanned[i].rank());
    }
    plan.count_size = plan.scanned[0].dim(plan.input_axes[0]);
    plan.count = b.Size(plan.count_size);
    return MakeLoop(node, plan);
}

void ImportScan(Node& node) {
    Builder& b = node.builder();
    LoopPlan plan;
    plan.body = &node.Subgraph("body");
    const int64_t given = node.Int("num_scan_inputs");
    const size_t scanned = given < 0 ? 0 : static_cast<size_t>(given);
    const bool batched = node.version() < 9;
    const size_t inputs = node.input_count() - (batched ? 1 : 0);
    const size_t states = inputs < scanned ? 0 : inputs - scanned;
    const size_t outputs = static_cast<size_t>(plan.body->output_size());
    const size_t scans = outputs < states ? 0 : outputs - states;
    plan.output_axes = ReadAxes(node, "scan_output_axes", scans);
    plan.output_reversed = ReadDirections(node, "scan_output_directions", scans);
    plan.input_axes = ReadAxes(node, "scan_input_axes", scanned);
    if (!batched) {
        plan.input_reversed = ReadDirections(node, "scan_input_directions", scanned);
        const Vals results = RunScan(node, plan, node.All(), scanned);
        for (size_t i = 0; i < results.size(); ++i) {
            node.Out(i, results[i]);
        }
        return;
    }
    // Opset 8 scans each batch by itself.
    plan.input_reversed = ReadDirections(node, "directions", scanned);
    if (node.Has(0)) {
        FailUnsupported("it has lengths of sequences");
    }
    constexpr int64_t kMaxBatches = 64;
    const int64_t batches = b.sizes().Fix(node.In(1).dim(0));
    if (batches < 1 || batches > kMaxBatches) {
        FailUnsupported(fmt::format("it has {} batches; the limit is {}", batches, kMaxBatches));
    }
    std::vector<Vals> all(outputs);
    for (int64_t batch = 0; batch < batches; ++batch) {
        Vals slices;
        for (size_t i = 1; i < node.input_count(); ++i) {
            slices.push_back(graph::Select(node.In(i), 0, batch));
        }
        const Vals results = RunScan(node, plan, slices, scanned);
        for (size_t i = 0; i < results.size(); ++i) {
            all[i].push_back(results[i]);
        }
    }
    for (size_t i = 0; i < outputs; ++i) {
        node.Out(i, graph::Stack(all[i], 0));
    }
}

constexpr OperatorEntry kOperators[] = {
    {"If", 1, ImportIf},
    {"Loop", 0, ImportLoop},
    {"Scan", 0, ImportScan},
};

}  // namespace

std::span<const OperatorEntry> ControlOperators() {
    return kOperators;
}

}  // namespace fornax::onnx_frontend
