// The layout of products' constant operands: panels of 16 columns, each column's k after k, where k
// counts all that is summed over.
//
// A product takes 16 columns and some ks at a time. In a row-major matrix each k of these lies in
// another row, often in another page; in a panel they follow each other. Where there are no
// columns, as in a depthwise convolution, what the result has last is put last.
#include <algorithm>
#include <compare>
#include <cstring>
#include <map>
#include <optional>

#include "compiler/graph/passes/cloner.h"
#include "compiler/graph/passes/passes.h"

namespace fornax::graph {
namespace {

constexpr int64_t kPanel = 16;
// Cache lines so many bytes apart share a set of the first cache.
constexpr int64_t kSetDistance = 4096;
// Smaller matrices stay in the first cache as they are.
constexpr int64_t kLeastElements = 4096;

class WeightPacking {
  public:
    WeightPacking(Graph& from, Cloner& cloner, Graph& to)
        : from_(from), cloner_(cloner), to_(to), uses_(from.CountUses()) {}

    Status Visit(const Node& node) {
        if (Is<op::Loop>(node.operation)) {
            return VisitLoop(node);
        }
        const auto* contract = std::get_if<op::Contract>(&node.operation);
        if (contract == nullptr || contract->result.empty()) {
            return cloner_.CopyNode(node);
        }
        std::vector<ValueId> operands = cloner_.Map(node.operands);
        const std::string* labels[] = {&contract->a, &contract->b};
        for (size_t i = 0; i < 2; ++i) {
            const ValueId whole = operands[i];
            FORNAX_ASSIGN_OR_RETURN(operands[i],
                                    Packed(node, whole, *labels[i], *labels[1 - i],
                                           to_.ShapeOf(operands[1 - i]), *contract, false));
            if (operands[i] != whole && uses_[node.operands[i].value()] == 1) {
                LetGo(node.operands[i], whole);
            }
        }
        FORNAX_ASSIGN_OR_RETURN(const NodeId copy,
                                to_.AddNode(node.name, node.operation, std::move(operands)));
        cloner_.Set(node.results[0], to_[copy].results[0]);
        return OkStatus();
    }

  private:
    // Nobody will read the constant again: a network's weights need not be in memory twice.
    void LetGo(ValueId in_from, ValueId in_to) {
        const Tensor& constant = to_[in_to].constant;
        const Tensor nothing = {constant.element, constant.dims, nullptr, nullptr};
        from_.MakeConstant(in_from, nothing);
        to_.MakeConstant(in_to, nothing);
    }

    // A loop whose body multiplies by a constant that it reads, or by parts of one.
    Status VisitLoop(const Node& node) {
        const Graph& body = *node.bodies[0];
        std::vector<ValueId> operands = cloner_.Map(node.operands);
        for (const Node& inner : body.nodes()) {
            const auto* contract = std::get_if<op::Contract>(&inner.operation);
            if (contract == nullptr || contract->result.empty()) {
                continue;
            }
            const std::string* labels[] = {&contract->a, &contract->b};
            for (size_t i = 0; i < 2; ++i) {
                ValueId matrix = inner.operands[i];
                while (body.ProducerAs<op::Slice>(matrix) != nullptr) {
                    matrix = body.Producer(matrix)->operands[0];
                }
                // The body's inputs are the loop's operands behind the number of iterations.
                const auto input = std::find(body.inputs().begin(), body.inputs().end(), matrix);
                if (input == body.inputs().end() || input == body.inputs().begin()) {
                    continue;
                }
                ValueId& operand = operands[static_cast<size_t>(input - body.inputs().begin()) + 1];
                FORNAX_ASSIGN_OR_RETURN(
                    operand, Packed(node, operand, *labels[i], *labels[1 - i],
                                    body.ShapeOf(inner.operands[1 - i]), *contract, true));
            }
        }
        FORNAX_ASSIGN_OR_RETURN(const NodeId copy, to_.AddNode(node.name, node.operation,
                                                               std::move(operands), node.bodies));
        for (size_t i = 0; i < node.results.size(); ++i) {
            cloner_.Set(node.results[i], to_[copy].results[i]);
        }
        return OkStatus();
    }

    // The axes of an operand by what they are to the product: those that the result has, but for
    // the columns; those that are summed over, in the order of the sum's loops; and the columns.
    struct Arrangement {
        Axes batch, depth;
        size_t columns = 0;
        bool panels = false;
        bool side_by_side = false;  // several panels, of gates, are read at once

        auto operator<=>(const Arrangement&) const = default;
    };

    // The operand, or a view of its packed copy.
    Result<ValueId> Packed(const Node& node,
                           ValueId id,
                           const std::string& labels,
                           const std::string& others,
                           const Shape& other_shape,
                           const op::Contract& contract,
                           bool in_loop) {
        const Value& value = to_[id];
        const ElementType element = value.type.element;
        if (value.kind != ValueKind::kConstant ||
            (element != ElementType::kF32 && element != ElementType::kF16 &&
             element != ElementType::kBF16) ||
            labels.size() < 2 ||
            ((labels.size() == 2 || in_loop) && value.constant.count() < kLeastElements) ||
            value.constant.count() == 0) {
            return id;
        }
        // Columns are what the result has last, dimensions of 1 aside.
        Arrangement arrangement;
        std::optional<size_t> columns;
        for (const char label : contract.result) {
            const size_t axis = labels.find(label);
            const size_t other = others.find(label);
            if (axis == std::string::npos) {
                if (other_shape[other] != Expr(1)) {
                    columns.reset();
                }
                continue;
            }
            if (columns && value.constant.dims[*columns] != 1 &&
                others.find(labels[*columns]) == std::string::npos) {
                return id;  // two loops of columns
            }
            arrangement.batch.push_back(static_cast<int64_t>(axis));
            if (value.constant.dims[axis] != 1) {
                columns = axis;
            }
        }
        if (!columns) {
            return id;
        }
        std::erase(arrangement.batch, static_cast<int64_t>(*columns));
        arrangement.columns = *columns;
        arrangement.panels = others.find(labels[*columns]) == std::string::npos;
        for (const char label : contract.a + contract.b) {
            const size_t axis = labels.find(label);
            const bool summed = contract.result.find(label) == std::string::npos;
            if (axis != std::string::npos && summed &&
                std::find(arrangement.depth.begin(), arrangement.depth.end(),
                          static_cast<int64_t>(axis)) == arrangement.depth.end()) {
                arrangement.depth.push_back(static_cast<int64_t>(axis));
            }
        }
        if (arrangement.depth.empty()) {
            return id;
        }
        if (in_loop) {
            // Invocations load whole panels only if the parts of the columns, gates, begin with
            // panels; such a part has as many columns as there are ks.
            const Axes all = {static_cast<int64_t>(arrangement.columns), arrangement.depth[0]};
            arrangement.panels = std::all_of(all.begin(), all.end(), [&](int64_t axis) {
                return value.constant.dims[static_cast<size_t>(axis)] % kPanel == 0;
            });
            arrangement.side_by_side = true;
        }
        ValueId& view = packed_[{id, arrangement}];
        if (!view.valid()) {
            FORNAX_ASSIGN_OR_RETURN(view, Pack(node.name, value.constant, arrangement));
        }
        return view;
    }

    Result<ValueId> Pack(const std::string& name,
                         const Tensor& from,
                         const Arrangement& arrangement) {
        const int64_t columns = from.dims[arrangement.columns];
        const int64_t width = arrangement.panels ? kPanel : columns;
        const int64_t panels = (columns + width - 1) / width;
        // The packed axes are batch, panels, depth, place in a panel.
        std::vector<int64_t> dims;
        for (const int64_t axis : arrangement.batch) {
            dims.push_back(from.dims[static_cast<size_t>(axis)]);
        }
        dims.push_back(panels);
        int64_t depth = 1;
        for (const int64_t axis : arrangement.depth) {
            dims.push_back(from.dims[static_cast<size_t>(axis)]);
            depth *= dims.back();
        }
        dims.push_back(width);
        const size_t batch = arrangement.batch.size(), rank = dims.size();
        // Panels of a multiple of 4 KiB compete for the same sets of the first cache.
        const bool aliased = arrangement.panels && arrangement.side_by_side &&
                             depth * width * BytesOf(from.element) % kSetDistance == 0;
        const int64_t stored = aliased ? depth + 1 : depth;
        std::vector<int64_t> packed = dims;
        std::vector<Operation> views;
        if (aliased) {
            packed.erase(packed.begin() + static_cast<int64_t>(batch) + 1, packed.end());
            packed.insert(packed.end(), {depth, width});
            const Shape part(std::vector<Expr>(packed.begin(), packed.end()));
            packed[batch + 1] = stored;
            views = {op::Slice{std::vector<Expr>(part.rank(), Expr(0)),
                               std::vector<int64_t>(part.rank(), 1), part},
                     op::Reshape{Shape(std::vector<Expr>(dims.begin(), dims.end()))}};
        }
        ValueId view = to_.AddConstant(name + ".packed", Copy(from, arrangement, packed, stored));
        // Back to the operand's own indices.
        Axes columns_last;
        for (size_t i = 0; i < rank; ++i) {
            if (i != batch) {
                columns_last.push_back(static_cast<int64_t>(i));
            }
        }
        columns_last.insert(columns_last.end() - 1, static_cast<int64_t>(batch));
        std::vector<Expr> shape;
        for (const int64_t axis : columns_last) {
            shape.emplace_back(dims[static_cast<size_t>(axis)]);
        }
        shape.pop_back();
        shape.back() = panels * width;
        views.insert(views.end(), {op::Permute{columns_last}, op::Reshape{Shape(shape)}});
        if (panels * width != columns) {
            shape.back() = columns;
            views.emplace_back(op::Slice{std::vector<Expr>(shape.size(), Expr(0)),
                                         std::vector<int64_t>(shape.size(), 1), Shape(shape)});
        }
        Axes axes = arrangement.batch;
        axes.insert(axes.end(), arrangement.depth.begin(), arrangement.depth.end());
        axes.push_back(static_cast<int64_t>(arrangement.columns));
        Axes inverse(axes.size());
        for (size_t i = 0; i < axes.size(); ++i) {
            inverse[static_cast<size_t>(axes[i])] = static_cast<int64_t>(i);
        }
        if (!std::is_sorted(inverse.begin(), inverse.end())) {
            views.emplace_back(op::Permute{inverse});
        }
        for (Operation& operation : views) {
            FORNAX_ASSIGN_OR_RETURN(const NodeId node,
                                    to_.AddNode(name + ".packed", std::move(operation), {view}));
            view = to_[node].results[0];
        }
        return view;
    }

    // The elements in the packed order, `stored` ks a panel; 0 behind the last column and k.
    static Tensor Copy(const Tensor& from,
                       const Arrangement& arrangement,
                       const std::vector<int64_t>& dims,
                       int64_t stored) {
        std::vector<int64_t> strides(from.dims.size(), 1);
        for (size_t axis = strides.size() - 1; axis-- > 0;) {
            strides[axis] = strides[axis + 1] * from.dims[axis + 1];
        }
        const int64_t column_stride = strides[arrangement.columns];
        const int64_t columns = from.dims[arrangement.columns];
        const int64_t width = dims.back(), panels = dims[arrangement.batch.size()];
        const std::vector<int64_t> batch = Offsets(from, strides, arrangement.batch);
        const std::vector<int64_t> depth = Offsets(from, strides, arrangement.depth);
        const auto depth_count = static_cast<int64_t>(depth.size());
        uint8_t* data = nullptr;
        Tensor packed = Tensor::Zeros(from.element, dims, &data);
        const auto copy = [&]<typename T>(T) {
            constexpr auto bytes = static_cast<int64_t>(sizeof(T));
            for (size_t b = 0; b < batch.size(); ++b) {
                uint8_t* to = data + bytes * static_cast<int64_t>(b) * panels * stored * width;
                for (int64_t column = 0; column < columns; ++column) {
                    const uint8_t* source =
                        from.data->data() + bytes * (batch[b] + column * column_stride);
                    const int64_t panel = column / width, place = column % width;
                    for (int64_t k = 0; k < depth_count; ++k) {
                        std::memcpy(to + bytes * ((panel * stored + k) * width + place),
                                    source + bytes * depth[static_cast<size_t>(k)], sizeof(T));
                    }
                }
            }
        };
        if (BytesOf(from.element) == sizeof(uint16_t)) {
            copy(uint16_t{});
        } else {
            copy(uint32_t{});
        }
        return packed;
    }

    // Where the elements along some axes lie, the last axis innermost.
    static std::vector<int64_t> Offsets(const Tensor& tensor,
                                        const std::vector<int64_t>& strides,
                                        const Axes& axes) {
        std::vector<int64_t> offsets = {0};
        for (const int64_t axis : axes) {
            const auto at = static_cast<size_t>(axis);
            std::vector<int64_t> next;
            next.reserve(offsets.size() * static_cast<size_t>(tensor.dims[at]));
            for (const int64_t offset : offsets) {
                for (int64_t i = 0; i < tensor.dims[at]; ++i) {
                    next.push_back(offset + i * strides[at]);
                }
            }
            offsets = std::move(next);
        }
        return offsets;
    }

    Graph& from_;
    Cloner& cloner_;
    Graph& to_;
    const std::vector<uint32_t> uses_;  // by value of from_
    std::map<std::pair<ValueId, Arrangement>, ValueId> packed_;
};

}  // namespace

Result<Graph> PackWeights(Graph graph) {
    std::optional<WeightPacking> packing;
    return RewriteGraph(graph, [&](const Node& node, Cloner& cloner, Graph& to) {
        if (!packing) {
            packing.emplace(graph, cloner, to);
        }
        return packing->Visit(node);
    });
}

}  // namespace fornax::graph
