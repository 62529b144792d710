// First what must be in memory, then what is better there, then reductions join the kernels of
// their readers where they would not be computed twice.
#include "compiler/graph/schedule/realize.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/graph/loop/attention.h"
#include "compiler/graph/loop/scope.h"
#include "compiler/graph/schedule/block_sums.h"
#include "compiler/graph/schedule/kernel_analysis.h"
#include "compiler/graph/schedule/kernel_builder.h"
#include "compiler/graph/schedule/own_kernels.h"
#include "compiler/graph/schedule/readers.h"
#include "compiler/graph/schedule/recurrence.h"

namespace fornax::graph {
namespace {

// The price of keeping a value and loading it again, in simple operations an element.
constexpr double kPriceOfMemory = 40;
// What takes no more simple operations and reads nothing is never kept.
constexpr double kCheap = 4;
// An element whose place along a row comes from memory: neighbours are loaded one by one.
constexpr double kCostOfGather = 12;
// The most simple operations that are inlined into one value.
constexpr double kMaxInlinedCost = 160;

class Realizer {
  public:
    Realizer(const Graph& graph, bool serial)
        : graph_(graph), readers_(graph, result_.realized), together_(ElementsTogether(graph)) {
        result_.serial = serial;
        const size_t count = graph.values().size();
        result_.realized.assign(count, false);
        result_.reasons.assign(count, RealizeReason::kInlined);
        result_.obstacles.assign(count, Obstacle::kNone);
        cost_.assign(count, 1);
        buffers_.assign(count, 0);
        reads_.assign(count, 0);
        from_nothing_.assign(graph.nodes().size(), false);
        for (const Node& node : graph.nodes()) {
            classes_.push_back(Classify(graph, node, serial).node_class);
        }
    }

    Realization Run() {
        RealizeWhatMust();
        CountOwnReads();
        EstimateCosts();
        RealizeWhatIsReadOften();
        JoinReductions();
        return std::move(result_);
    }

  private:
    bool realized(ValueId value) const { return result_.realized[value.value()]; }
    // A reduction that must be in memory for another reason too does not join its readers.
    void Realize(ValueId value, RealizeReason reason) {
        if (!realized(value) || result_.reasons[value.value()] == RealizeReason::kReduction) {
            result_.realized[value.value()] = true;
            result_.reasons[value.value()] = reason;
        }
    }
    // A number that follows from its position alone is computed again sooner than it is loaded.
    bool IsCheap(size_t node) const {
        return from_nothing_[node] && cost_[graph_.nodes()[node].results[0].value()] <= kCheap;
    }
    double Volume(ValueId value) const {
        return std::max<double>(
            1, static_cast<double>(graph_.sizes().Hint(graph_.ShapeOf(value).Volume())));
    }
    NodeClass ClassOf(size_t node) const { return classes_[node]; }
    double ReadsOf(size_t node, size_t operand) const {
        return ReadsOfOperand(graph_, graph_.nodes()[node], ClassOf(node), operand) /
               together_[node];
    }

    void RealizeWhatMust() {
        for (size_t v = 0; v < graph_.values().size(); ++v) {
            if (graph_.values()[v].kind != ValueKind::kResult) {
                Realize(ValueId(v), RealizeReason::kGiven);
            }
        }
        for (size_t n = 0; n < graph_.nodes().size(); ++n) {
            const Node& node = graph_.nodes()[n];
            if (ClassOf(n) == NodeClass::kInline) {
                continue;
            }
            const RealizeReason reason = ClassOf(n) == NodeClass::kReduction
                                             ? RealizeReason::kReduction
                                             : RealizeReason::kOwnKernel;
            for (const ValueId result : node.results) {
                Realize(result, reason);
            }
            if (ClassOf(n) == NodeClass::kHost) {
                for (const ValueId operand : node.operands) {
                    Realize(StorageOf(graph_, operand), RealizeReason::kHostOperand);
                }
            }
            if (Is<op::Loop>(node.operation) && ClassOf(n) == NodeClass::kOwnKernel) {
                for (const ValueId operand : RecurrenceOperands(graph_, node)) {
                    Realize(operand, RealizeReason::kLoopOperand);
                }
            }
            if (Is<op::WriteState>(node.operation)) {
                Realize(StorageOf(graph_, node.operands[0]), RealizeReason::kState);
            }
        }
        for (const Output& output : graph_.outputs()) {
            Realize(StorageOf(graph_, output.value), RealizeReason::kOutput);
        }
    }

    // How often an element of each value is read if each node but views is evaluated once: less
    // than in the end, so what this puts into memory is there for good.
    void CountOwnReads() {
        own_reads_.assign(graph_.values().size(), 0);
        for (size_t n = graph_.nodes().size(); n-- > 0;) {
            const Node& node = graph_.nodes()[n];
            double evaluations = 1;
            if (IsView(node.operation) && !realized(node.results[0])) {
                evaluations = own_reads_[node.results[0].value()];
            }
            for (size_t i = 0; i < node.operands.size(); ++i) {
                own_reads_[node.operands[i].value()] += evaluations * ReadsOf(n, i);
            }
        }
    }

    // The simple operations that computing one element takes, from what is in memory so far. What
    // is read so often that it will be in memory anyway is there for all that follows: else costs
    // would add up through the whole graph.
    void EstimateCosts() {
        for (size_t n = 0; n < graph_.nodes().size(); ++n) {
            const Node& node = graph_.nodes()[n];
            const size_t buffers = CountBuffers(node);
            if (ClassOf(n) != NodeClass::kInline) {
                if (buffers > kMaxReadBuffers && !Is<op::Concat>(node.operation)) {
                    std::ranges::for_each(node.operands, [this](ValueId operand) {
                        Realize(StorageOf(graph_, operand), RealizeReason::kTooLarge);
                    });
                }
                continue;
            }
            double cost = Is<op::RandomBits>(node.operation) ? 60 : 1;
            if (const auto* map = std::get_if<op::Map>(&node.operation)) {
                cost = FunctionCost(map->function);
            } else if (const auto* gather = std::get_if<op::Gather>(&node.operation)) {
                const bool along_rows = gather->shape.rank() > 1 && !gather->sources.empty() &&
                                        gather->sources.back() < 0;
                cost = along_rows ? kCostOfGather : 1;
            } else if (IsView(node.operation)) {
                cost = 0;
            }
            bool from_nothing = true;
            for (const ValueId operand : node.operands) {
                cost += realized(operand) ? 1 : cost_[operand.value()];
                const Value& value = graph_[operand];
                const bool is_number =
                    value.kind == ValueKind::kConstant && value.type.shape.Volume() == Expr(1);
                from_nothing =
                    from_nothing && (is_number || (value.kind == ValueKind::kResult &&
                                                   from_nothing_[value.producer.value()]));
            }
            from_nothing_[n] = from_nothing;
            for (const ValueId result : node.results) {
                buffers_[result.value()] = buffers;
                if (cost > kMaxInlinedCost || buffers > kMaxReadBuffers) {
                    Realize(StorageOf(graph_, result), RealizeReason::kTooLarge);
                } else if (!IsView(node.operation) && (cost > kCheap || !from_nothing) &&
                           (own_reads_[result.value()] - 1) * cost > kPriceOfMemory &&
                           !IsReadAtOnePoint(result)) {
                    Realize(result, RealizeReason::kReadOften);
                }
                cost_[result.value()] = cost;
            }
        }
    }

    size_t CountBuffers(const Node& node) const {
        size_t most = 0;
        for (const ValueId operand : node.operands) {
            most += realized(operand) ? 1 : buffers_[operand.value()];
        }
        return most > kMaxReadBuffers ? readers_.BuffersOf(node.operands).size() : most;
    }

    // Backwards, so that it is known how often each reader is evaluated.
    void RealizeWhatIsReadOften() {
        for (const Output& output : graph_.outputs()) {
            reads_[output.value.value()] += 1;
        }
        for (size_t n = graph_.nodes().size(); n-- > 0;) {
            const Node& node = graph_.nodes()[n];
            double evaluations = 0;
            for (const ValueId result : node.results) {
                const bool computed_only = !realized(result) && ClassOf(n) == NodeClass::kInline;
                if (computed_only && reads_[result.value()] > 1.01 && IsReadAtOnePoint(result)) {
                    reads_[result.value()] = 1;
                }
                if (computed_only && !IsView(node.operation) && !IsCheap(n) &&
                    (reads_[result.value()] - 1) * cost_[result.value()] > kPriceOfMemory) {
                    Realize(result, RealizeReason::kReadOften);
                } else if (computed_only && Is<op::Map>(node.operation) &&
                           (reads_[result.value()] > 1.01 || readers_.OnlyConcatenate(result))) {
                    RealizeInstead(result);
                }
                evaluations =
                    std::max(evaluations, realized(result) ? 1.0 : reads_[result.value()]);
            }
            for (size_t i = 0; i < node.operands.size(); ++i) {
                reads_[node.operands[i].value()] += std::max(1.0, evaluations) * ReadsOf(n, i);
            }
        }
    }

    // Whether several uses are one evaluation: all compute the same point of one kernel.
    bool IsReadAtOnePoint(ValueId value) const {
        for (const size_t user : readers_.UsersOf(value)) {
            const Node& node = graph_.nodes()[user];
            const bool pointwise = Is<op::Map>(node.operation) || Is<op::Cast>(node.operation);
            if (!pointwise ||
                (!realized(node.results[0]) && reads_[node.results[0].value()] > 1.01)) {
                return false;
            }
        }
        return readers_.ResultsOf(value).size() == 1;
    }

    // What a reduction's readers make of it element by element takes its place in memory, if it is
    // all that they read of it: then it is computed once, in the reduction's kernel.
    void RealizeInstead(ValueId value) {
        const std::vector<ValueId> readers = readers_.ResultsOf(value);
        if (readers.size() == 1 && readers[0].valid() &&
            ClassOf(graph_[readers[0]].producer.value()) == NodeClass::kInline &&
            Volume(readers[0]) == Volume(value)) {
            return;  // one kernel, which computes it once
        }
        std::set<ValueId> seen, reductions;
        std::vector<ValueId> pending = {value};
        while (!pending.empty()) {
            const ValueId current = pending.back();
            pending.pop_back();
            if (!seen.insert(current).second) {
                continue;
            }
            if (realized(current)) {
                const bool is_reduction =
                    result_.reasons[current.value()] == RealizeReason::kReduction;
                if (is_reduction && Volume(current) == Volume(value)) {
                    reductions.insert(current);
                }
                continue;
            }
            if (const Node* node = graph_.Producer(current)) {
                pending.insert(pending.end(), node->operands.begin(), node->operands.end());
            }
        }
        if (reductions.size() != 1 || BytesOf(graph_.TypeOf(value).element) >
                                          BytesOf(graph_.TypeOf(*reductions.begin()).element)) {
            return;
        }
        result_.realized[value.value()] = true;
        const bool is_all = readers_.ResultsOf(*reductions.begin()) == std::vector{value};
        result_.realized[value.value()] = false;
        if (is_all) {
            Realize(value, RealizeReason::kReadOften);
        }
    }

    // Readers first, so that what a reduction joins is settled.
    void JoinReductions() {
        for (const Node& node : graph_.nodes()) {
            if (Is<op::Contract>(node.operation) && MayJoin(node.results[0])) {
                TryBlocks(node.results[0]);
            }
        }
        for (size_t n = graph_.nodes().size(); n-- > 0;) {
            const Node& node = graph_.nodes()[n];
            if (node.results.empty()) {
                continue;
            }
            if (Is<op::Contract>(node.operation) && realized(node.results[0])) {
                TryAttention(node);
            }
            if (MayJoin(node.results[0])) {
                TryToJoin(node.results[0]);
            }
        }
    }

    // A sum over blocks takes the integer product in it, before it joins a reader itself: the sums
    // of all blocks would fill a memory.
    void TryBlocks(ValueId product) {
        if (graph_.TypeOf(product).element == ElementType::kI32) {
            Join({product});
        }
    }

    // A product of probabilities and values takes what lies between it and the product that the
    // probabilities come from, if all becomes an attention.
    void TryAttention(const Node& node) {
        const ValueId value = node.results[0];
        for (const ValueId operand : node.operands) {
            std::set<ValueId> products;
            std::set<ValueId> seen;
            FindProducts(operand, seen, products);
            for (const ValueId product : products) {
                std::set<ValueId> between;
                std::map<ValueId, bool> depends;
                if (DependsOn(operand, product, depends, between) &&
                    BecomesAttention(value, between)) {
                    for (const ValueId factor : graph_.Producer(product)->operands) {
                        InlineOperand(value, factor);
                    }
                    StoreInReadersOrder(value);
                    return;
                }
            }
        }
    }

    // The nearest products that a value is computed from.
    void FindProducts(ValueId value, std::set<ValueId>& seen, std::set<ValueId>& products) const {
        constexpr size_t kMostValues = 100;
        const Node* node = graph_.Producer(value);
        if (node == nullptr || seen.size() > kMostValues || !seen.insert(value).second) {
            return;
        }
        if (Is<op::Contract>(node->operation)) {
            products.insert(value);
            return;
        }
        for (const ValueId operand : node->operands) {
            FindProducts(operand, seen, products);
        }
    }

    // Whether a value is computed from `product`; puts those in memory that are into `between`.
    bool DependsOn(ValueId value,
                   ValueId product,
                   std::map<ValueId, bool>& known,
                   std::set<ValueId>& between) const {
        const auto [found, inserted] = known.emplace(value, value == product);
        if (!inserted) {
            return found->second;
        }
        const Node* node = graph_.Producer(value);
        if (node != nullptr && !Is<op::Contract>(node->operation)) {
            for (const ValueId operand : node->operands) {
                found->second |= DependsOn(operand, product, known, between);
            }
        }
        if (found->second && realized(value)) {
            between.insert(value);
        }
        return found->second;
    }

    bool BecomesAttention(ValueId value, const std::set<ValueId>& between) {
        if (between.empty() || OnlyReader(between) != value ||
            !std::all_of(between.begin(), between.end(), [&](ValueId v) { return MayJoin(v); })) {
            return false;
        }
        for (const ValueId inner : between) {
            result_.realized[inner.value()] = false;
        }
        const bool is_attention = MappingOf(value, {}).mapping == loop::Mapping::kAttention;
        for (const ValueId inner : between) {
            result_.realized[inner.value()] = !is_attention;
            if (is_attention) {
                result_.reasons[inner.value()] = RealizeReason::kInlined;
            }
        }
        return is_attention;
    }

    // What scales the queries or the keys costs less in the attention than as a kernel of its own,
    // as long as keys are multiplied where they lie. A sum stays in the mapping that it has.
    void InlineOperand(ValueId attention, ValueId operand) {
        while (!realized(operand) && IsView(graph_.Producer(operand)->operation)) {
            operand = graph_.Producer(operand)->operands[0];
        }
        if (!realized(operand) || result_.reasons[operand.value()] != RealizeReason::kReadOften ||
            OnlyReader({operand}) != attention) {
            return;
        }
        const KernelBuilder own = BuilderOf(operand);
        if (std::ranges::any_of(own.kernel().scalars, [](const loop::ScalarNode& scalar) {
                return std::holds_alternative<loop::Reduce>(scalar.value);
            })) {
            return;
        }
        const auto loads_keys = [&] {
            const KernelBuilder builder = BuilderOf(attention);
            const loop::Kernel& kernel = builder.kernel();
            const auto found = loop::FindAttention(kernel, loop::FindScope(kernel));
            return found && std::holds_alternative<loop::Load>(kernel[found->key].value);
        };
        const bool before = loads_keys();
        result_.realized[operand.value()] = false;
        if (MappingOf(attention, {}).mapping == loop::Mapping::kAttention &&
            loads_keys() >= before) {
            result_.reasons[operand.value()] = RealizeReason::kInlined;
        } else {
            result_.realized[operand.value()] = true;
        }
    }

    // A result that is only read in another order is stored in that.
    void StoreInReadersOrder(ValueId value) {
        const std::span<const size_t> users = readers_.UsersOf(value);
        if (users.size() != 1 || result_.reasons[value.value()] != RealizeReason::kReduction ||
            !Is<op::Permute>(graph_.nodes()[users[0]].operation)) {
            return;
        }
        const ValueId permuted = graph_.nodes()[users[0]].results[0];
        if (!realized(permuted)) {
            Realize(permuted, RealizeReason::kReduction);
            result_.realized[value.value()] = false;
            result_.reasons[value.value()] = RealizeReason::kInlined;
        }
    }

    // The value with what it is computed from at the same points: the parts of a row's statistics,
    // which join the row together or not at all.
    std::set<ValueId> WithItsParts(ValueId value) const {
        const double volume = Volume(value);
        std::set<ValueId> parts = {value}, seen;
        std::vector<ValueId> pending = {value};
        while (!pending.empty()) {
            const ValueId current = pending.back();
            pending.pop_back();
            const Node* node = graph_.Producer(current);
            if (node == nullptr || !seen.insert(current).second) {
                continue;
            }
            for (const ValueId operand : node->operands) {
                if (!realized(operand)) {
                    pending.push_back(operand);
                } else if (Volume(operand) == volume && MayJoin(operand)) {
                    parts.insert(operand);
                    pending.push_back(operand);
                }
            }
        }
        return parts;
    }

    bool MayJoin(ValueId value) const {
        const RealizeReason reason = result_.reasons[value.value()];
        return reason == RealizeReason::kReduction || reason == RealizeReason::kReadOften;
    }

    // The one value in memory outside of the set whose kernel reads it; not valid if there are
    // several.
    ValueId OnlyReader(const std::set<ValueId>& values) const {
        ValueId only;
        for (const ValueId value : values) {
            for (const ValueId reader : readers_.ResultsOf(value)) {
                if (!reader.valid()) {
                    return {};
                }
                if (values.contains(reader)) {
                    continue;
                }
                if (only.valid() && only != reader) {
                    return {};
                }
                only = reader;
            }
        }
        return only;
    }

    void TryToJoin(ValueId value) {
        if (Join({value})) {
            return;
        }
        const Obstacle obstacle = result_.obstacles[value.value()];
        const std::set<ValueId> parts = WithItsParts(value);
        if (parts.size() > 1 && !Join(parts)) {
            result_.obstacles[value.value()] = obstacle;  // alone
        }
    }

    bool Join(const std::set<ValueId>& values) {
        const ValueId reader = OnlyReader(values);
        if (!reader.valid()) {
            return false;
        }
        const NodeClass reader_class = ClassOf(graph_[reader].producer.value());
        if (reader_class != NodeClass::kInline && reader_class != NodeClass::kReduction) {
            return false;
        }
        std::optional<loop::Mapping> tiles;
        bool pointwise = false;
        for (const ValueId value : values) {
            const std::optional<loop::Mapping> alone = MappingOf(value, {}).mapping;
            if (alone == loop::Mapping::kProduct || alone == loop::Mapping::kAttention) {
                tiles = alone;
            }
            pointwise = pointwise || result_.reasons[value.value()] == RealizeReason::kReadOften;
        }
        for (const ValueId value : values) {
            result_.realized[value.value()] = false;
        }
        auto [mapping, obstacle] = MappingOf(reader, values);
        // A product of tiles stays one: it may have an epilogue, but no second product in it. What
        // was kept because it is read often joins a row, which computes it once.
        if (mapping && tiles && mapping != tiles) {
            obstacle = Obstacle::kLosesTiles;
        } else if (mapping && pointwise && *mapping != loop::Mapping::kRow) {
            obstacle = Obstacle::kNoRow;
        }
        const bool joins = obstacle == Obstacle::kNone;
        for (const ValueId value : values) {
            result_.realized[value.value()] = !joins;
            result_.obstacles[value.value()] = obstacle;
            if (joins) {
                result_.reasons[value.value()] = RealizeReason::kInlined;
            }
        }
        return joins;
    }

    // The kernel that computes a value.
    KernelBuilder BuilderOf(ValueId value) {
        result_.realized[value.value()] = false;  // computed, not loaded
        KernelBuilder builder(graph_, result_.realized, "", kMostScalars);
        const std::vector<Expr> index = builder.AddParallel(graph_.ShapeOf(value));
        builder.Store(value, index, builder.At(value, index));
        result_.realized[value.value()] = true;
        return builder;
    }

    // The mapping of the kernel that computes a value, or why there is none that is worth it. The
    // kernel may compute no element of the values `once` twice.
    struct MappingChoice {
        std::optional<loop::Mapping> mapping;
        Obstacle obstacle = Obstacle::kNone;
    };
    MappingChoice MappingOf(ValueId value, const std::set<ValueId>& once) {
        KernelBuilder builder = BuilderOf(value);
        if (builder.size() > kMostScalars) {
            return {std::nullopt, Obstacle::kTooLarge};
        }
        if (!FitsOneKernel(builder.kernel())) {
            return {std::nullopt, Obstacle::kTooManyBuffers};
        }
        if (ChooseMapping(builder.kernel(), graph_.sizes()).Recomputes()) {
            return {std::nullopt, Obstacle::kRepeated};
        }
        for (const ValueId one : once) {
            if (!builder.IsComputedOnce(one, graph_.sizes())) {
                return {std::nullopt, Obstacle::kRepeated};
            }
        }
        return {builder.kernel().mapping, Obstacle::kNone};
    }

    const Graph& graph_;
    Realization result_;
    std::vector<NodeClass> classes_;         // by node index
    std::vector<bool> from_nothing_;         // by node index: nothing in memory is read
    std::vector<double> cost_;               // by value index
    std::vector<size_t> buffers_;            // by value index, at least those that it reads
    std::vector<double> own_reads_, reads_;  // by value index, an element
    const Readers readers_;
    const std::vector<double> together_;  // by node index, ElementsTogether()
};

}  // namespace

Realization ChooseRealized(const Graph& graph, bool serial) {
    return Realizer(graph, serial).Run();
}

}  // namespace fornax::graph
