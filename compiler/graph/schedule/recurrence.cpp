// The kernel of a loop: one iteration as a graph, cut into phases.
#include "compiler/graph/schedule/recurrence.h"

#include <algorithm>
#include <map>
#include <optional>

#include "compiler/graph/loop/limits.h"
#include "compiler/graph/loop/scope.h"
#include "compiler/graph/passes/cloner.h"
#include "compiler/graph/schedule/realize.h"
#include "compiler/graph/schedule/recurrence_groups.h"
#include "compiler/graph/schedule/recurrence_kept.h"

namespace fornax::graph {
namespace {

using loop::ScalarId;
using loop::When;
using Indices = std::vector<Expr>;

// More scalars are not worth one kernel.
constexpr size_t kMaxScalars = 1000;
constexpr size_t kMaxNodes = 400;
constexpr size_t kMaxConcatOperands = 8;
// Points of a batch that share what they load.
constexpr int64_t kTile = 4;

bool IsTrue(const Value& value) {
    return value.kind == ValueKind::kConstant && value.type.shape.rank() == 0 &&
           value.constant.At(0).integer == 1;
}

// The number of iterations, if it is known when the loop begins and nothing ends the loop earlier.
std::optional<Expr> CountOf(const Graph& graph, const Node& node) {
    const Graph& body = *node.bodies[0];
    if (!IsTrue(graph[node.operands[1]]) || !IsTrue(body[body.outputs()[0].value])) {
        return std::nullopt;
    }
    const ValueId count = StorageOf(graph, node.operands[0]);
    if (const auto* size = graph.ProducerAs<op::SizeOf>(count)) {
        return size->value;
    }
    const Value& value = graph[count];
    if (value.kind != ValueKind::kConstant) {
        return std::nullopt;
    }
    return Expr(std::max<int64_t>(value.constant.At(0).integer, 0));
}

// What a local tensor holds in place of a type that workgroup memory may lack.
ElementType LocalTypeOf(ElementType type) {
    if (IsFloat(type)) {
        return type == ElementType::kF64 ? type : ElementType::kF32;
    }
    return BytesOf(type) >= 4 ? type : IsSigned(type) ? ElementType::kI32 : ElementType::kU32;
}

// --- One iteration as a graph --------------------------------------------------------------------

// Whether a carried value is what iterations write parts of, and never read.
const op::Scatter* WrittenBy(const Graph& body, size_t carried) {
    const ValueId before = body.inputs()[1 + carried];
    const ValueId after = body.outputs()[1 + carried].value;
    const auto* scatter = body.ProducerAs<op::Scatter>(after);
    const std::vector<uint32_t> uses = body.CountUses();
    if (scatter == nullptr || scatter->combine != Combine::kReplace ||
        body.Producer(after)->operands[0] != before || uses[before.value()] != 1 ||
        uses[after.value()] != 1) {
        return nullptr;
    }
    // Each update has its own place.
    const size_t rank = body.ShapeOf(body.Producer(after)->operands[1]).rank();
    for (size_t i = 0; i < rank; ++i) {
        if (std::find(scatter->sources.begin(), scatter->sources.end(), static_cast<int64_t>(i)) ==
            scatter->sources.end()) {
            return nullptr;
        }
    }
    return scatter;
}

class Iteration {
  public:
    Iteration(const Graph& graph, const Node& node) : graph_(graph), node_(node) {
        step.sizes().Merge(graph.sizes());
    }

    // False if it cannot be one.
    bool Build(const std::vector<bool>* realized) {
        const Graph& body = *node_.bodies[0];
        if (body.nodes().size() > kMaxNodes) {
            return false;
        }
        const size_t count = static_cast<size_t>(std::get<op::Loop>(node_.operation).carried);
        number = step.AddInput("iteration", {ElementType::kI64, {}});
        std::vector<ValueId> inputs = {number};
        for (size_t i = 0; i < count; ++i) {
            inputs.push_back(step.AddInput("carried", body.TypeOf(body.inputs()[1 + i])));
            carried.push_back(inputs.back());
            initial.push_back(Operand(node_.operands[2 + i], realized));
        }
        for (size_t i = 2 + count; i < node_.operands.size(); ++i) {
            inputs.push_back(Operand(node_.operands[i], realized));
        }
        Result<std::vector<ValueId>> outputs = InlineBody(body, inputs, step);
        if (!outputs.ok()) {
            return false;
        }
        for (size_t i = 0; i < count; ++i) {
            next.push_back((*outputs)[1 + i]);
            written.push_back(WrittenBy(body, i) != nullptr);
        }
        in_memory.assign(step.values().size(), false);
        for (const auto& [value, origin] : origins) {
            in_memory[value] = true;
        }
        for (size_t v = 0; v < in_memory.size(); ++v) {
            in_memory[v] = in_memory[v] || step.values()[v].kind == ValueKind::kConstant;
        }
        return std::all_of(step.nodes().begin(), step.nodes().end(),
                           [&](const Node& node) { return MayContain(node); });
    }

    Graph step;
    ValueId number;
    std::vector<ValueId> carried, initial, next;
    std::vector<bool> written;            // carried values that are WrittenBy() iterations
    std::map<uint32_t, ValueId> origins;  // of values that are the outer graph's
    std::vector<bool> in_memory;          // by value

  private:
    bool MayContain(const Node& node) const {
        // A loop that LowerControlFlow() left alone has its body as it was.
        if (Is<op::Composite>(node.operation)) {
            return false;
        }
        for (const ValueId operand : node.operands) {
            if (step.TypeOf(operand).element == ElementType::kString) {
                return false;
            }
        }
        if (Is<op::Concat>(node.operation)) {
            return node.operands.size() <= kMaxConcatOperands;
        }
        if (Is<op::Scatter>(node.operation)) {
            for (size_t i = 0; i < next.size(); ++i) {
                if (written[i] && next[i] == node.results[0]) {
                    return true;
                }
            }
            return false;
        }
        const NodeClass node_class = Classify(step, node).node_class;
        return node_class == NodeClass::kInline || node_class == NodeClass::kReduction;
    }

    // A value of the outer graph, with the views that lead to it.
    ValueId Operand(ValueId value, const std::vector<bool>* realized) {
        ValueId& mapped = operands_[value.value()];
        if (mapped.valid()) {
            return mapped;
        }
        const Value& source = graph_[value];
        const Node* producer = graph_.Producer(value);
        if (realized != nullptr && !(*realized)[value.value()] && producer != nullptr &&
            IsPlainView(producer->operation)) {
            const ValueId operand = Operand(producer->operands[0], realized);
            const Result<NodeId> view =
                step.AddNode(producer->name, producer->operation, {operand});
            return operands_[value.value()] = step[*view].results[0];
        }
        mapped = source.kind == ValueKind::kConstant
                     ? step.AddConstant(source.name, source.constant)
                     : step.AddInput(source.name, source.type);
        origins.emplace(mapped.value(), value);
        return mapped;
    }

    const Graph& graph_;
    const Node& node_;
    std::map<uint32_t, ValueId> operands_;
};

// --- The kernel ----------------------------------------------------------------------------------

class KernelMaker {
  public:
    KernelMaker(const Graph& graph, const Node& node, Iteration& iteration, Expr count)
        : graph_(graph),
          node_(node),
          it_(iteration),
          count_(std::move(count)),
          builder_(iteration.step, iteration.in_memory, "recurrence"),
          used_(graph.CountUses()) {}

    // False if there is no kernel.
    bool Make() {
        time_ = builder_.AddSequential(count_);
        builder_.SetSource(it_.number, [&](const Indices&) { return builder_.Integer(time_); });
        for (size_t i = 0; i < it_.carried.size(); ++i) {
            locals_.emplace_back();
            if (!it_.written[i]) {
                AddState(i);
            }
        }
        BeginStates();
        AddKeptValues();
        AddNextValues();
        EndStates();
        if (builder_.size() > kMaxScalars) {
            return false;
        }
        loop::Kernel& kernel = builder_.kernel();
        DropCopies(kernel, CopiedLocals());
        const loop::Kernel whole = kernel;
        for (int64_t tile = kTile; tile > 0; tile /= 2) {
            kernel = whole;
            FormGroups(kernel, it_.step.sizes(), tile);
            if (Fits(kernel)) {
                return true;
            }
        }
        return false;
    }

    const std::vector<size_t>& partly_written() const { return partly_written_; }
    KernelBuilder& builder() { return builder_; }
    // What is bound as the kernel's buffers: values of the outer graph, and constants of the body.
    std::vector<BlockId> Blocks(PlanBuilder& plan) const {
        std::vector<BlockId> blocks;
        size_t next_result = 0;
        for (const ValueId value : builder_.buffer_values()) {
            if (!value.valid()) {
                blocks.push_back(plan.BlockOf(result_buffers_[next_result++]));
                continue;
            }
            if (const auto origin = it_.origins.find(value.value()); origin != it_.origins.end()) {
                blocks.push_back(plan.BlockOf(origin->second));
                continue;
            }
            const Value& constant = it_.step[value];
            blocks.push_back(plan.AddBlock(constant.name, constant.type, BlockKind::kConstant));
            plan.block(blocks.back()).data = constant.constant.data;
        }
        return blocks;
    }

  private:
    static bool Fits(const loop::Kernel& kernel) {
        if (kernel.buffers.size() > loop::kMaxBuffers || kernel.phases.empty() ||
            !loop::Verify(kernel).ok()) {
            return false;
        }
        // No reduction inside of another.
        for (const loop::ScalarNode& node : kernel.scalars) {
            const std::vector<ScalarId> operands = loop::OperandsOf(node);
            if (loop::LoopsOf(node).empty()) {
                continue;
            }
            const std::vector<bool> inside = loop::Needed(kernel, operands);
            for (size_t i = 0; i < inside.size(); ++i) {
                if (inside[i] && !loop::LoopsOf(kernel.scalars[i]).empty()) {
                    return false;
                }
            }
        }
        return true;
    }

    bool IsUsed(size_t i) const { return used_[node_.results[i].value()] != 0; }

    static TensorType LocalType(const TensorType& type, int64_t copies) {
        std::vector<Expr> dims(type.shape.dims().begin(), type.shape.dims().end());
        dims.insert(dims.begin(), Expr(copies));
        return {LocalTypeOf(type.element), Shape(std::move(dims))};
    }

    static Indices Place(const Expr& copy, const Indices& index) {
        Indices place = index;
        place.insert(place.begin(), copy);
        return place;
    }

    ScalarId LoadLocal(loop::BufferId local,
                       ElementType type,
                       const Expr& copy,
                       const Indices& index) {
        return builder_.Cast(builder_.LoadFrom(local, Place(copy, index)), type);
    }

    void StoreLocal(loop::BufferId local, ScalarId value, const Expr& copy, const Indices& index) {
        const ElementType type = builder_.kernel()[local].type.element;
        builder_.Store(local, Place(copy, index), builder_.Cast(value, type));
    }

    void AddState(size_t i) {
        const TensorType type = it_.step.TypeOf(it_.carried[i]);
        const loop::BufferId local = builder_.AddLocal(LocalType(type, 2));
        locals_[i] = local;
        builder_.SetSource(it_.carried[i], [this, local, type](const Indices& index) {
            return LoadLocal(local, type.element, Mod(time_, 2), index);
        });
    }

    std::vector<loop::BufferId> CopiedLocals() const {
        std::vector<loop::BufferId> copied;
        std::copy_if(locals_.begin(), locals_.end(), std::back_inserter(copied),
                     [](loop::BufferId id) { return id.valid(); });
        return copied;
    }

    // Calls `store` with the index for each number in a phase of its shape; equal shapes share one.
    void ByShape(When when,
                 const std::vector<std::pair<size_t, Shape>>& stored,
                 const std::function<void(size_t, const Indices&)>& store) {
        std::vector<bool> done(stored.size(), false);
        for (size_t i = 0; i < stored.size(); ++i) {
            if (done[i]) {
                continue;
            }
            const Indices index = builder_.BeginPhase(when, stored[i].second);
            for (size_t j = i; j < stored.size(); ++j) {
                if (stored[j].second == stored[i].second) {
                    store(stored[j].first, index);
                    done[j] = true;
                }
            }
        }
    }

    std::vector<std::pair<size_t, Shape>> States(bool results_only) const {
        std::vector<std::pair<size_t, Shape>> states;
        for (size_t i = 0; i < it_.carried.size(); ++i) {
            if (!it_.written[i] && (!results_only || IsUsed(i))) {
                states.emplace_back(i, it_.step.ShapeOf(it_.carried[i]));
            }
        }
        return states;
    }

    void BeginStates() {
        ByShape(When::kBefore, States(false), [&](size_t i, const Indices& index) {
            StoreLocal(locals_[i], builder_.At(it_.initial[i], index), 0, index);
        });
    }

    void EndStates() {
        ByShape(When::kAfter, States(true), [&](size_t i, const Indices& index) {
            const TensorType type = graph_.TypeOf(node_.results[i]);
            const ScalarId value = LoadLocal(locals_[i], type.element, Mod(count_, 2), index);
            builder_.Store(ResultBuffer(i), index, value);
        });
    }

    loop::BufferId ResultBuffer(size_t i) {
        result_buffers_.push_back(node_.results[i]);
        return builder_.AddBuffer(graph_.TypeOf(node_.results[i]));
    }

    // What is computed at the end of an iteration: of a state its next value, else what is written.
    ValueId Sink(size_t i) const {
        return it_.written[i] ? it_.step.Producer(it_.next[i])->operands[1] : it_.next[i];
    }

    void AddKeptValues() {
        std::vector<ValueId> sinks;
        for (size_t i = 0; i < it_.next.size(); ++i) {
            sinks.push_back(Sink(i));
        }
        for (const ValueId value : FindKeptValues(it_.step, sinks)) {
            const TensorType type = it_.step.TypeOf(value);
            const loop::BufferId local = builder_.AddLocal(LocalType(type, 1));
            const Indices index = builder_.BeginPhase(When::kEach, type.shape);
            StoreLocal(local, builder_.At(value, index), 0, index);
            builder_.Forget(value);
            builder_.SetSource(value, [this, local, type](const Indices& at) {
                return LoadLocal(local, type.element, 0, at);
            });
        }
    }

    void AddNextValues() {
        std::vector<std::pair<size_t, Shape>> stored;
        for (size_t i = 0; i < it_.next.size(); ++i) {
            if (!it_.written[i] || IsUsed(i)) {
                stored.emplace_back(i, it_.step.ShapeOf(Sink(i)));
            }
        }
        ByShape(When::kEach, stored, [&](size_t i, const Indices& index) {
            const ScalarId value = builder_.At(Sink(i), index);
            if (!it_.written[i]) {
                StoreLocal(locals_[i], value, Mod(time_ + 1, 2), index);
                return;
            }
            const Node& node = *it_.step.Producer(it_.next[i]);
            Indices place;
            for (const int64_t source : std::get<op::Scatter>(node.operation).sources) {
                if (source >= 0) {
                    place.push_back(index[static_cast<size_t>(source)]);
                } else {
                    const ValueId at = node.operands[static_cast<size_t>(1 - source)];
                    place.push_back(
                        builder_.AsIndex(builder_.Cast(builder_.At(at, index), ElementType::kI64)));
                }
            }
            if (!IsWhole(i, index, place)) {
                partly_written_.push_back(i);
            }
            builder_.Store(ResultBuffer(i), std::move(place), value);
        });
    }

    // Whether the iterations together write every element: one place is the iteration, forwards or
    // backwards, for each value of small loops' variables, and the others are whole dimensions.
    bool IsWhole(size_t i, const Indices& index, const Indices& place) const {
        const Shape& shape = it_.step.ShapeOf(it_.carried[i]);
        const Shape& part = it_.step.ShapeOf(Sink(i));
        bool by_time = false;
        for (size_t d = 0; d < place.size(); ++d) {
            const auto whole = std::find(index.begin(), index.end(), place[d]);
            if (shape[d] == Expr(1) && place[d] == Expr(0)) {
                continue;
            }
            if (whole != index.end() &&
                part[static_cast<size_t>(whole - index.begin())] == shape[d]) {
                continue;
            }
            if (by_time || shape[d] != count_ || !IsEachTime(place[d])) {
                return false;
            }
            by_time = true;
        }
        return by_time || count_.constant().value_or(0) > 0;
    }

    bool IsEachTime(const Expr& place) const {
        const Expr simple = place.Simplify({});
        if (simple == time_ || simple == count_ - 1 - time_) {
            return true;
        }
        for (const Symbol& symbol : simple.Symbols()) {
            const loop::Phase& phase = builder_.kernel().phases.back();
            const auto lane =
                std::find_if(phase.lanes.begin(), phase.lanes.end(),
                             [&](const loop::Loop& l) { return l.variable == symbol; });
            constexpr int64_t kFew = 4;
            if (lane == phase.lanes.end() || lane->extent.constant().value_or(kFew + 1) > kFew) {
                continue;
            }
            for (int64_t value = 0; value < *lane->extent.constant(); ++value) {
                if (!IsEachTime(simple.Substitute({{symbol, Expr(value)}}))) {
                    return false;
                }
            }
            return true;
        }
        return false;
    }

    const Graph& graph_;
    const Node& node_;
    Iteration& it_;
    Expr count_, time_;
    KernelBuilder builder_;
    std::vector<uint32_t> used_;  // of the outer graph's values: how often
    std::vector<loop::BufferId> locals_;
    std::vector<ValueId> result_buffers_;
    std::vector<size_t> partly_written_;
};

}  // namespace

bool IsRecurrence(const Graph& graph, const Node& node) {
    const std::optional<Expr> count = CountOf(graph, node);
    if (!count) {
        return false;
    }
    Iteration iteration(graph, node);
    return iteration.Build(nullptr) && KernelMaker(graph, node, iteration, *count).Make();
}

std::vector<ValueId> RecurrenceOperands(const Graph& graph, const Node& node) {
    std::vector<ValueId> operands;
    for (size_t i = 2; i < node.operands.size(); ++i) {
        ValueId base = node.operands[i];
        while (graph.Producer(base) != nullptr && IsPlainView(graph.Producer(base)->operation)) {
            base = graph.Producer(base)->operands[0];
        }
        operands.push_back(base);
    }
    return operands;
}

void AddRecurrence(const Graph& graph,
                   std::vector<bool>& realized,
                   const Node& node,
                   PlanBuilder& plan) {
    Iteration iteration(graph, node);
    iteration.Build(&realized);
    KernelMaker maker(graph, node, iteration, *CountOf(graph, node));
    maker.Make();
    for (const size_t i : maker.partly_written()) {
        const ValueId initial = node.operands[2 + i], result = node.results[i];
        KernelBuilder builder(graph, realized, "loop_initial");
        const Indices index = builder.AddParallel(graph.ShapeOf(result));
        builder.Store(result, index, builder.At(initial, index));
        plan.AddDispatch(node.name, builder);
    }
    plan.AddDispatch(node.name, maker.builder().kernel(), maker.Blocks(plan));
}

}  // namespace fornax::graph
