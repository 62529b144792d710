// Channels last: the layout of activations around convolutions.
//
// A convolution is a product of places by channels. With channels last an operand's rows are
// contiguous for every place of the window, so is the result, and the channels of constant weights
// lie in panels. A value whose elements lie in another order than its dimensions say is a value of
// that order and a note of the permutation; nodes for which the order is a matter of their axes'
// numbers take it over, all others get a view in the old order.
#include <algorithm>
#include <map>

#include "compiler/graph/passes/cloner.h"
#include "compiler/graph/passes/passes.h"

namespace fornax::graph {
namespace {

// A value of the old graph in another order: axis i of `value` is axis order[i] of it.
struct Layout {
    ValueId value;
    Axes order;
    size_t innermost = 0;  // the axis of `value` whose elements are next to each other in memory
};

Axes Inverse(const Axes& order) {
    Axes inverse(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
        inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    }
    return inverse;
}

template <typename T>
std::vector<T> Reordered(std::span<const T> values, const Axes& order) {
    std::vector<T> result;
    for (const int64_t axis : order) {
        result.push_back(values[static_cast<size_t>(axis)]);
    }
    return result;
}

// Axes of two shapes of one volume that hold the same elements.
struct ReshapeGroup {
    std::vector<size_t> from, to;
};

// The smallest such groups, in order; nothing where sizes are not constant.
std::vector<ReshapeGroup> ReshapeGroups(const Shape& from, const Shape& to) {
    const auto from_dims = from.Constants(), to_dims = to.Constants();
    std::vector<ReshapeGroup> groups;
    if (!from_dims || !to_dims || from.Volume() == Expr(0)) {
        return groups;
    }
    size_t i = 0, j = 0;
    while (i < from.rank() || j < to.rank()) {
        ReshapeGroup group;
        int64_t from_volume = 1, to_volume = 1;
        const auto take_from = [&] {
            group.from.push_back(i);
            from_volume *= (*from_dims)[i++];
        };
        const auto take_to = [&] {
            group.to.push_back(j);
            to_volume *= (*to_dims)[j++];
        };
        if (i < from.rank()) {
            take_from();
        }
        if (j < to.rank()) {
            take_to();
        }
        while (from_volume != to_volume) {
            if ((from_volume < to_volume && i < from.rank()) || j == to.rank()) {
                take_from();
            } else {
                take_to();
            }
        }
        groups.push_back(std::move(group));
    }
    return groups;
}

class LayoutChooser {
  public:
    LayoutChooser(const Graph& from, Cloner& cloner, Graph& to)
        : from_(from), cloner_(cloner), to_(to) {}

    Status Visit(const Node& node) {
        FORNAX_ASSIGN_OR_RETURN(
            const bool done,
            std::visit([&](const auto& operation) { return Keep(node, operation); },
                       node.operation));
        if (done) {
            return OkStatus();
        }
        FORNAX_RETURN_IF_ERROR(Restore(node));
        return cloner_.CopyNode(node);
    }

    // Gives outputs the order of the old graph.
    Status RestoreOutputs() {
        for (const Output& output : from_.outputs()) {
            FORNAX_RETURN_IF_ERROR(Restore(output.value));
        }
        return OkStatus();
    }

  private:
    // Each Keep() adds a node's result in the order of its operands and says whether it did.
    Result<bool> Keep(const Node&, const auto&) { return false; }
    Result<bool> Keep(const Node& node, const op::Map&) { return KeepElementwise(node); }
    Result<bool> Keep(const Node& node, const op::Cast&) { return KeepElementwise(node); }
    Result<bool> Keep(const Node& node, const op::Bitcast&) { return KeepElementwise(node); }

    Result<bool> KeepElementwise(const Node& node) {
        const Layout* layout = LayoutOf(node.operands);
        if (layout == nullptr) {
            return false;
        }
        return AddAlike(node, node.operation, Layout(*layout), node.operands.size());
    }

    Result<bool> Keep(const Node& node, const op::Broadcast& broadcast) {
        const Layout* layout = LayoutOf(node.operands);
        if (layout == nullptr) {
            return false;
        }
        Shape shape(Reordered(broadcast.shape.dims(), layout->order));
        return AddAlike(node, op::Broadcast{std::move(shape)}, Layout(*layout), 1);
    }

    Result<bool> Keep(const Node& node, const op::Slice& slice) {
        const Layout* layout = LayoutOf(node.operands);
        if (layout == nullptr) {
            return false;
        }
        const Axes& order = layout->order;
        op::Slice inner{Reordered(std::span<const Expr>(slice.starts), order),
                        Reordered(std::span<const int64_t>(slice.steps), order),
                        Shape(Reordered(slice.shape.dims(), order))};
        return AddAlike(node, std::move(inner), Layout(*layout), 1);
    }

    Result<bool> Keep(const Node& node, const op::Pad& pad) {
        const Layout* layout = LayoutOf({node.operands.data(), 1});
        if (layout == nullptr) {
            return false;
        }
        const Axes& order = layout->order;
        op::Pad inner{Reordered(std::span<const Expr>(pad.low), order),
                      Reordered(std::span<const Expr>(pad.high), order),
                      Reordered(std::span<const int64_t>(pad.interior), order)};
        return AddAlike(node, std::move(inner), Layout(*layout), 1);
    }

    Result<bool> Keep(const Node& node, const op::Concat& concat) {
        if (const std::optional<ValueId> whole = CopiedBy(node, concat)) {
            const ValueId value = cloner_.Map(*whole);
            if (!layouts_.contains(*whole) && IsInOrder(value)) {
                cloner_.Set(node.results[0], value);
                return true;
            }
        }
        const Layout* layout = LayoutOf(node.operands);
        if (layout == nullptr) {
            return false;
        }
        const int64_t axis = Inverse(layout->order)[static_cast<size_t>(concat.axis)];
        return AddAlike(node, op::Concat{axis}, Layout(*layout), node.operands.size());
    }

    // The value of which a concatenation has all parts one after the other: such a copy puts it
    // into memory in the order of its axes.
    std::optional<ValueId> CopiedBy(const Node& node, const op::Concat& concat) const {
        const auto axis = static_cast<size_t>(concat.axis);
        std::optional<ValueId> whole;
        Expr next;
        for (const ValueId operand : node.operands) {
            const auto* slice = from_.ProducerAs<op::Slice>(operand);
            if (slice == nullptr) {
                return std::nullopt;
            }
            const ValueId source = from_.Producer(operand)->operands[0];
            whole = whole.value_or(source);
            const Shape& shape = from_.ShapeOf(source);
            for (size_t i = 0; i < shape.rank(); ++i) {
                const bool is_part = slice->starts[i] == (i == axis ? next : Expr(0)) &&
                                     (slice->shape[i] == Expr(1) || slice->steps[i] == 1) &&
                                     (i == axis || slice->shape[i] == shape[i]);
                if (*whole != source || !is_part) {
                    return std::nullopt;
                }
            }
            next += slice->shape[axis];
        }
        return whole && from_.ShapeOf(*whole)[axis] == next ? whole : std::nullopt;
    }

    // Whether a value of the new graph is computed, or given, in the order of its axes.
    bool IsInOrder(ValueId value) const {
        const Node* node = to_.Producer(value);
        while (node != nullptr &&
               (Is<op::Reshape>(node->operation) || Is<op::Pad>(node->operation))) {
            node = to_.Producer(node->operands[0]);
        }
        return node == nullptr ||
               !(Is<op::Permute>(node->operation) || Is<op::Slice>(node->operation) ||
                 Is<op::Window>(node->operation) || Is<op::Broadcast>(node->operation));
    }

    Result<bool> Keep(const Node& node, const op::Window& window) {
        const Layout* found = LayoutOf(node.operands);
        if (found == nullptr) {
            return false;
        }
        Layout layout = *found;
        op::Window inner = window;
        inner.axis = Inverse(layout.order)[static_cast<size_t>(window.axis)];
        FORNAX_ASSIGN_OR_RETURN(layout.value, AddNode(node, inner, {layout.value}));
        layout.order.push_back(static_cast<int64_t>(layout.order.size()));
        return Set(node, std::move(layout));
    }

    Result<bool> Keep(const Node& node, const op::Reduce& reduce) {
        const Layout* found = LayoutOf(node.operands);
        if (found == nullptr) {
            return false;
        }
        const Axes inverse = Inverse(found->order);
        op::Reduce inner{reduce.combine, {}};
        for (const int64_t axis : reduce.axes) {
            inner.axes.push_back(inverse[static_cast<size_t>(axis)]);
        }
        std::sort(inner.axes.begin(), inner.axes.end());
        Layout layout;
        for (const int64_t axis : found->order) {
            if (!std::binary_search(reduce.axes.begin(), reduce.axes.end(), axis)) {
                const auto before = std::lower_bound(reduce.axes.begin(), reduce.axes.end(), axis);
                layout.order.push_back(axis - (before - reduce.axes.begin()));
            }
        }
        layout.innermost = layout.order.empty() ? 0 : layout.order.size() - 1;
        FORNAX_ASSIGN_OR_RETURN(layout.value, AddNode(node, inner, {found->value}));
        return Set(node, std::move(layout));
    }

    Result<bool> Keep(const Node& node, const op::Permute& permute) {
        const Layout* found = LayoutOf(node.operands);
        if (found == nullptr && PutsLastSecond(permute.order)) {
            // Channels are last already.
            const ValueId value = cloner_.Map(node.operands[0]);
            return Set(node, {value, Inverse(permute.order), permute.order.size() - 1}, false);
        }
        if (found == nullptr) {
            return false;
        }
        Layout layout = *found;
        layout.order = Reordered(std::span<const int64_t>(Inverse(permute.order)), found->order);
        return Set(node, std::move(layout), false);
    }

    Result<bool> Keep(const Node& node, const op::Reshape& reshape) {
        const Layout* found = LayoutOf(node.operands);
        if (found == nullptr) {
            return false;
        }
        const Shape& from = from_.ShapeOf(node.operands[0]);
        const std::vector<ReshapeGroup> groups = ReshapeGroups(from, reshape.shape);
        std::vector<size_t> group_of(from.rank());
        for (size_t g = 0; g < groups.size(); ++g) {
            for (const size_t axis : groups[g].from) {
                group_of[axis] = g;
            }
        }
        // The axes of a group have to follow each other in the operand's order, too.
        std::vector<size_t> order, inner_order;  // of the groups; of the axes in them
        for (const int64_t axis : found->order) {
            const auto at = static_cast<size_t>(axis);
            if (groups.empty() || from[at] == Expr(1)) {
                continue;
            }
            inner_order.push_back(at);
            if (order.empty() || order.back() != group_of[at]) {
                order.push_back(group_of[at]);
            }
        }
        std::vector<size_t> expected;
        for (const size_t group : order) {
            for (const size_t axis : groups[group].from) {
                if (from[axis] != Expr(1)) {
                    expected.push_back(axis);
                }
            }
        }
        if (groups.empty() || inner_order != expected) {
            return false;
        }
        Layout layout;
        for (size_t g = 0; g < groups.size(); ++g) {
            if (std::find(order.begin(), order.end(), g) == order.end()) {
                layout.order.insert(layout.order.end(), groups[g].to.begin(), groups[g].to.end());
            }
        }
        for (const size_t group : order) {
            layout.order.insert(layout.order.end(), groups[group].to.begin(),
                                groups[group].to.end());
        }
        layout.innermost = layout.order.empty() ? 0 : layout.order.size() - 1;
        Shape shape(Reordered(reshape.shape.dims(), layout.order));
        FORNAX_ASSIGN_OR_RETURN(layout.value,
                                AddNode(node, op::Reshape{std::move(shape)}, {found->value}));
        return Set(node, std::move(layout));
    }

    // Index operands have the result's shape, which may be the data's in the same order.
    Result<bool> Keep(const Node& node, const op::Gather& gather) {
        const Layout* found = LayoutOf({node.operands.data(), 1});
        if (found == nullptr || gather.shape.rank() != gather.sources.size()) {
            return false;
        }
        const Axes inverse = Inverse(found->order);
        op::Gather inner{{}, Shape(Reordered(gather.shape.dims(), found->order))};
        for (const int64_t axis : found->order) {
            const int64_t source = gather.sources[static_cast<size_t>(axis)];
            inner.sources.push_back(source < 0 ? source : inverse[static_cast<size_t>(source)]);
        }
        return AddAlike(node, std::move(inner), Layout(*found), node.operands.size());
    }

    // Labels take any order. The channels of a convolution's result become the last.
    Result<bool> Keep(const Node& node, const op::Contract& contract) {
        const std::optional<size_t> weights = ConvolutionWeights(node, contract);
        if (!weights && LayoutOf(node.operands) == nullptr) {
            return false;
        }
        const std::string* old_labels[] = {&contract.a, &contract.b};
        std::string labels[2];
        std::vector<ValueId> operands(2);
        for (size_t i = 0; i < 2; ++i) {
            const auto found = layouts_.find(node.operands[i]);
            if (found == layouts_.end()) {
                operands[i] = cloner_.Map(node.operands[i]);
                labels[i] = *old_labels[i];
                continue;
            }
            operands[i] = found->second.value;
            for (const int64_t axis : found->second.order) {
                labels[i] += (*old_labels[i])[static_cast<size_t>(axis)];
            }
            if (weights == 1 - i) {
                FORNAX_RETURN_IF_ERROR(PutChannelsLast(
                    node, contract.result, found->second.innermost, labels[i], operands[i]));
            }
        }
        Layout layout;
        std::string result = contract.result;
        if (weights) {
            result.clear();
            for (const bool of_weights : {false, true}) {
                for (const char label : contract.result) {
                    const bool found = labels[*weights].find(label) != std::string::npos;
                    if (found == of_weights) {
                        result += label;
                    }
                }
            }
            // The order of the summed labels is that of the first operand.
            if (*weights == 0) {
                std::swap(labels[0], labels[1]);
                std::swap(operands[0], operands[1]);
            }
        }
        for (const char label : result) {
            layout.order.push_back(static_cast<int64_t>(contract.result.find(label)));
        }
        layout.innermost = layout.order.empty() ? 0 : layout.order.size() - 1;
        FORNAX_ASSIGN_OR_RETURN(
            layout.value,
            AddNode(node, op::Contract{labels[0], labels[1], result, contract.accumulate},
                    std::move(operands)));
        return Set(node, std::move(layout));
    }

    // Which operand of a convolution, or of a product whose columns are places in an image, holds
    // constant weights.
    std::optional<size_t> ConvolutionWeights(const Node& node, const op::Contract& contract) const {
        const std::string* labels[] = {&contract.a, &contract.b};
        for (size_t i = 0; i < 2; ++i) {
            const std::string& of_weights = *labels[i];
            if (from_[node.operands[i]].kind == ValueKind::kConstant && of_weights.size() > 2 &&
                !contract.result.empty() &&
                of_weights.find(contract.result.back()) == std::string::npos) {
                return i;
            }
        }
        return std::nullopt;
    }

    // A view of an image and its windows in the order of the result's labels, then of those that
    // are summed over, with the innermost axis last.
    Status PutChannelsLast(const Node& node,
                           const std::string& result,
                           size_t innermost,
                           std::string& labels,
                           ValueId& operand) {
        const char channels = labels[innermost];
        const auto rank = [&](char label) {
            return result.find(label) != std::string::npos ? 0 : label != channels ? 1 : 2;
        };
        Axes order;
        std::string ordered;
        for (const int wanted : {0, 1, 2}) {
            for (size_t axis = 0; axis < labels.size(); ++axis) {
                if (rank(labels[axis]) == wanted) {
                    order.push_back(static_cast<int64_t>(axis));
                    ordered += labels[axis];
                }
            }
        }
        labels = std::move(ordered);
        FORNAX_ASSIGN_OR_RETURN(operand, AddNode(node, op::Permute{std::move(order)}, {operand}));
        return OkStatus();
    }

    // Adds the operation on the first `count` operands in the layout's order and the others as they
    // are; the result has that order.
    Result<bool> AddAlike(const Node& node, Operation operation, Layout layout, size_t count) {
        std::vector<ValueId> operands;
        for (size_t i = 0; i < node.operands.size(); ++i) {
            const ValueId operand = node.operands[i];
            if (i >= count) {
                FORNAX_RETURN_IF_ERROR(Restore(operand));
                operands.push_back(cloner_.Map(operand));
                continue;
            }
            FORNAX_ASSIGN_OR_RETURN(const ValueId laid, InOrder(node, operand, layout.order));
            operands.push_back(laid);
        }
        FORNAX_ASSIGN_OR_RETURN(layout.value,
                                AddNode(node, std::move(operation), std::move(operands)));
        return Set(node, std::move(layout));
    }

    Result<ValueId> InOrder(const Node& node, ValueId value, const Axes& order) {
        const auto found = layouts_.find(value);
        if (found == layouts_.end()) {
            return AddNode(node, op::Permute{order}, {cloner_.Map(value)});
        }
        if (found->second.order == order) {
            return found->second.value;
        }
        Axes between = Reordered(std::span<const int64_t>(Inverse(found->second.order)), order);
        return AddNode(node, op::Permute{std::move(between)}, {found->second.value});
    }

    const Layout* LayoutOf(std::span<const ValueId> operands) const {
        for (const ValueId operand : operands) {
            const auto found = layouts_.find(operand);
            if (found != layouts_.end()) {
                return &found->second;
            }
        }
        return nullptr;
    }

    static bool PutsLastSecond(const Axes& order) {
        const auto rank = static_cast<int64_t>(order.size());
        if (rank < 4 || order[0] != 0 || order[1] != rank - 1) {
            return false;
        }
        return std::is_sorted(order.begin() + 2, order.end());
    }

    Result<bool> Set(const Node& node, Layout layout, bool is_new = true) {
        if (is_new) {
            to_.Rename(layout.value, from_[node.results[0]].name);
        }
        if (std::is_sorted(layout.order.begin(), layout.order.end())) {
            cloner_.Set(node.results[0], layout.value);
        } else {
            layouts_.insert_or_assign(node.results[0], std::move(layout));
        }
        return true;
    }

    Result<ValueId> AddNode(const Node& node, Operation operation, std::vector<ValueId> operands) {
        FORNAX_ASSIGN_OR_RETURN(const NodeId id,
                                to_.AddNode(node.name, std::move(operation), std::move(operands)));
        return to_[id].results[0];
    }

    // Makes a view in the old order, once.
    Status Restore(ValueId value) {
        const auto found = layouts_.find(value);
        if (found == layouts_.end() || !restored_.insert(value).second) {
            return OkStatus();
        }
        FORNAX_ASSIGN_OR_RETURN(
            const NodeId id,
            to_.AddNode(from_[value].name, op::Permute{Inverse(found->second.order)},
                        {found->second.value}));
        cloner_.Set(value, to_[id].results[0]);
        return OkStatus();
    }

    Status Restore(const Node& node) {
        for (const ValueId operand : node.operands) {
            FORNAX_RETURN_IF_ERROR(Restore(operand));
        }
        return OkStatus();
    }

    const Graph& from_;
    Cloner& cloner_;
    Graph& to_;
    std::map<ValueId, Layout> layouts_;  // by values of the old graph
    std::set<ValueId> restored_;
};

}  // namespace

Result<Graph> ChooseLayouts(const Graph& graph) {
    Graph result(graph.name());
    Cloner cloner(graph, result);
    cloner.CopyInputs();
    LayoutChooser chooser(graph, cloner, result);
    for (const Node& node : graph.nodes()) {
        FORNAX_RETURN_IF_ERROR(chooser.Visit(node));
    }
    FORNAX_RETURN_IF_ERROR(chooser.RestoreOutputs());
    cloner.CopyOutputs();
    result.Compact();
    return result;
}

}  // namespace fornax::graph
