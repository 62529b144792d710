#include "compiler/graph/schedule/row_groups.h"

#include <algorithm>
#include <string>
#include <utility>

#include "compiler/graph/loop/scope.h"
#include "compiler/graph/schedule/kernel_analysis.h"
#include "compiler/graph/schedule/realize.h"

namespace fornax::graph {
namespace {

// A row is a workgroup's, so longer ones would leave processors idle.
constexpr int64_t kMostLanes = 1024;
// Fewer rows are worth a kernel if they are short, too.
constexpr int64_t kLeastRows = 32;
constexpr int64_t kFewPoints = 4096;
// With more points, a sum of values of the row takes longer to compute them again than to load
// them.
constexpr int64_t kMostPointsTwice = 16384;
constexpr size_t kMostValues = 4;
// What is looked at to find the members of a group.
constexpr size_t kMostReads = 128;
constexpr size_t kMostRoots = 16;

// A value's dimensions but for those of 1.
std::vector<Expr> Dimensions(const Shape& shape) {
    std::vector<Expr> dimensions;
    for (const Expr& size : shape.dims()) {
        if (size.constant() != 1) {
            dimensions.push_back(size);
        }
    }
    return dimensions;
}

bool BeginsWith(const Shape& shape, std::span<const Expr> rows) {
    const std::vector<Expr> all = Dimensions(shape);
    return all.size() >= rows.size() && std::equal(rows.begin(), rows.end(), all.begin());
}

// The index into a shape whose dimensions but for those of 1 are those of `place`, in order.
std::vector<Expr> IndexOf(const Shape& shape, std::span<const Expr> place) {
    std::vector<Expr> index;
    size_t next = 0;
    for (const Expr& size : shape.dims()) {
        index.push_back(size.constant() == 1 ? Expr(0) : place[next++]);
    }
    return index;
}

std::optional<int64_t> Volume(std::span<const Expr> dimensions) {
    int64_t volume = 1;
    for (const Expr& size : dimensions) {
        const std::optional<int64_t> constant = size.constant();
        if (!constant || *constant <= 0 || *constant > INT32_MAX ||
            volume > INT32_MAX / *constant) {
            return std::nullopt;
        }
        volume *= *constant;
    }
    return volume;
}

}  // namespace

RowGroups::RowGroups(const Graph& graph, std::vector<bool>& realized, bool serial)
    : graph_(graph),
      realized_(realized),
      place_(graph.values().size()),
      readers_(graph.values().size()),
      stored_(graph.values().size()) {
    if (serial) {
        return;
    }
    size_t place = 0;
    for (const Node& node : graph.nodes()) {
        ++place;  // 0 is what no node computes
        for (const ValueId result : node.results) {
            place_[result.value()] = place;
        }
        const NodeClass node_class = Classify(graph, node).node_class;
        if (node_class == NodeClass::kInline || node_class == NodeClass::kReduction) {
            members_.emplace(&node, node_class);
            for (const ValueId operand : node.operands) {
                readers_[operand.value()].push_back(&node);
            }
        }
    }
}

std::optional<KernelBuilder> RowGroups::KernelOf(const Node& node) {
    if (!Reduces(node) || HasTiles(node)) {
        return std::nullopt;
    }
    std::vector<const Node*> group = {&node};
    std::optional<KernelBuilder> kernel;
    for (const Node* root : RootsThatRead(node.results[0])) {
        if (group.size() == kMostValues) {
            break;
        }
        if (Reduces(*root) && HasTiles(*root)) {
            continue;
        }
        group.push_back(root);
        std::optional<KernelBuilder> grown = Build(group);
        if (grown && HasOperands(*grown, node)) {
            kernel.emplace(std::move(*grown));
        } else {
            group.pop_back();
        }
    }
    if (kernel) {
        for (const Node* member : group) {
            stored_[member->results[0].value()] = true;
        }
    }
    return kernel;
}

bool RowGroups::Reduces(const Node& node) const {
    const auto found = members_.find(&node);
    return found != members_.end() && found->second == NodeClass::kReduction;
}

bool RowGroups::HasTiles(const Node& node) {
    const ValueId value = node.results[0];
    KernelBuilder builder(graph_, realized_, "", kMostScalars);
    const std::vector<Expr> index = builder.AddParallel(graph_.ShapeOf(value));
    realized_[value.value()] = false;
    builder.Store(value, index, builder.At(value, index));
    realized_[value.value()] = true;
    ChooseMapping(builder.kernel(), graph_.sizes());
    const loop::Mapping mapping = builder.kernel().mapping;
    return mapping == loop::Mapping::kProduct || mapping == loop::Mapping::kAttention;
}

std::vector<const Node*> RowGroups::RootsThatRead(ValueId value) const {
    const std::vector<Expr> rows = Dimensions(graph_.ShapeOf(value));
    std::vector<const Node*> roots;
    std::vector<ValueId> seen = {value};
    size_t reads = 0;
    for (size_t i = 0; i < seen.size() && reads < kMostReads; ++i) {
        for (const Node* reader : readers_[seen[i].value()]) {
            if (++reads > kMostReads) {
                break;
            }
            const ValueId result = reader->results[0];
            if (std::ranges::find(seen, result) != seen.end()) {
                continue;
            }
            if (realized_[result.value()]) {
                if (stored_[result.value()] || !BeginsWith(graph_.ShapeOf(result), rows)) {
                    continue;
                }
                roots.push_back(reader);
            }
            seen.push_back(result);
        }
    }
    std::ranges::sort(roots, {},
                      [&](const Node* root) { return place_[root->results[0].value()]; });
    roots.resize(std::min(roots.size(), kMostRoots));
    return roots;
}

std::optional<KernelBuilder> RowGroups::Build(const std::vector<const Node*>& group) {
    const ValueId first = group.front()->results[0];
    const std::vector<Expr> rows = Dimensions(graph_.ShapeOf(first));
    std::vector<Expr> lanes;
    for (const Node* node : group) {
        const std::vector<Expr> all = Dimensions(graph_.ShapeOf(node->results[0]));
        const std::vector<Expr> rest(all.begin() + static_cast<std::ptrdiff_t>(rows.size()),
                                     all.end());
        if (rest.empty()) {
            continue;
        }
        if (!lanes.empty() && lanes != rest) {
            return std::nullopt;
        }
        lanes = rest;
    }
    const std::optional<int64_t> lane_points = Volume(lanes);
    const std::optional<int64_t> row_points = Volume(rows);
    const int64_t points = row_points.value_or(INT32_MAX) * lane_points.value_or(INT32_MAX);
    if (lanes.empty() || !lane_points || *lane_points > kMostLanes ||
        (row_points && *row_points < kLeastRows && points > kFewPoints)) {
        return std::nullopt;
    }
    bool has_lanes = false;
    for (const Node* node : group) {
        if (Reduces(*node) && has_lanes && points > kMostPointsTwice) {
            return std::nullopt;
        }
        has_lanes = has_lanes || Dimensions(graph_.ShapeOf(node->results[0])).size() > rows.size();
    }

    KernelBuilder builder(graph_, realized_, std::string(Name(group.back()->operation)),
                          kMostScalars);
    std::vector<Expr> place;
    for (const Expr& size : rows) {
        place.push_back(builder.AddParallel(size));
    }
    for (const Expr& size : lanes) {
        place.push_back(builder.AddParallel(size));
    }
    for (const Node* node : group) {
        realized_[node->results[0].value()] = false;
    }
    for (const Node* node : group) {
        const ValueId value = node->results[0];
        const std::vector<Expr> index = IndexOf(graph_.ShapeOf(value), place);
        builder.Store(value, index, builder.At(value, index));
    }
    for (const Node* node : group) {
        realized_[node->results[0].value()] = true;
    }
    loop::Kernel& kernel = builder.kernel();
    if (builder.size() > kMostScalars || !FitsOneKernel(kernel) ||
        ChooseMapping(kernel, graph_.sizes()).Recomputes() ||
        kernel.mapping != loop::Mapping::kRow || kernel.row_loops != rows.size() ||
        !builder.IsComputedOnce(first, graph_.sizes())) {
        return std::nullopt;
    }
    return builder;
}

bool RowGroups::HasOperands(const KernelBuilder& builder, const Node& node) const {
    const size_t place = place_[node.results[0].value()];
    const std::vector<loop::Buffer>& buffers = builder.kernel().buffers;
    for (size_t i = 0; i < buffers.size(); ++i) {
        const ValueId value = builder.buffer_values()[i];
        if (!buffers[i].written && place_[value.value()] >= place && !IsStored(value)) {
            return false;
        }
    }
    return true;
}

}  // namespace fornax::graph
