// What moves elements.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "compiler/graph/build/build_error.h"
#include "compiler/graph/export/lowering.h"

namespace fornax::graph {
namespace {

int64_t Constant(const Expr& size) {
    if (!size.is_constant()) {
        FailUnsupported(fmt::format("the size {} is open", size.ToString()));
    }
    return *size.constant();
}

Expr Volume(const Sizes& dims) {
    Expr volume = 1;
    for (const Expr& dim : dims) {
        volume *= dim;
    }
    return volume;
}

std::vector<int64_t> AllAxes(size_t rank) {
    std::vector<int64_t> axes(rank);
    for (size_t i = 0; i < rank; ++i) {
        axes[i] = static_cast<int64_t>(i);
    }
    return axes;
}

// The vector 0, 1, ...
std::string Count(Lowering& to, const Expr& size) {
    if (!size.is_constant()) {
        return to.Emit("Range", {to.Integer(ElementType::kI64, 0), to.Size(size),
                                 to.Integer(ElementType::kI64, 1)});
    }
    std::vector<int64_t> values(static_cast<size_t>(*size.constant()));
    std::iota(values.begin(), values.end(), 0);
    return to.Ints(values);
}

// Positions 0, 1, ... along an axis, of size 1 along the others.
std::string Positions(Lowering& to, const Expr& size, size_t axis, size_t rank) {
    Sizes dims(rank, 1);
    dims[axis] = size;
    return to.ReshapeTo(Count(to, size), dims);
}

// The elements' numbers in data of `data_dims`, with dimensions that broadcast to `dims`, and where
// they are within the data ("": everywhere).
struct Places {
    std::string number, is_within;
};

Places PlacesOf(Lowering& to,
                const Sizes& data_dims,
                const std::vector<int64_t>& sources,
                std::span<const ValueId> indices,
                const Sizes& dims) {
    constexpr ElementType kIndex = ElementType::kI64;
    Places places;
    Expr stride = 1;
    for (size_t axis = data_dims.size(); axis-- > 0;) {
        std::string coordinate, within;
        if (sources[axis] >= 0) {
            const auto source = static_cast<size_t>(sources[axis]);
            coordinate = Positions(to, dims[source], source, dims.size());
            const Expr more = dims[source] - data_dims[axis];
            if (more.constant().value_or(1) > 0) {
                within = to.Emit("Less", {coordinate, to.Size(data_dims[axis])});
            }
        } else {
            const ValueId index = indices[static_cast<size_t>(-1 - sources[axis])];
            WorkType(to.TypeOf(index).element);  // not u64
            coordinate = to.CastTo(to.NameOf(index), to.TypeOf(index).element, kIndex);
            within = to.Emit("And", {to.Emit("Less", {coordinate, to.Size(data_dims[axis])}),
                                     to.Emit("LessOrEqual", {to.Integer(kIndex, 0), coordinate})});
        }
        if (stride != Expr(1)) {
            coordinate = to.Emit("Mul", {coordinate, to.Size(stride)});
        }
        places.number =
            places.number.empty() ? coordinate : to.Emit("Add", {places.number, coordinate});
        if (!within.empty()) {
            places.is_within =
                places.is_within.empty() ? within : to.Emit("And", {places.is_within, within});
        }
        stride *= data_dims[axis];
    }
    if (places.number.empty()) {
        places.number = to.Integer(kIndex, 0);
    }
    return places;
}

std::string Zero(Lowering& to, ElementType element) {
    uint8_t* data = nullptr;
    return to.Weight(Tensor::Zeros(element, {}, &data));
}

}  // namespace

Names LowerSlice(Lowering& to, const Node& node, const op::Slice& slice) {
    const Sizes dims = Lowering::DimsOf(slice.shape);
    Sizes ends;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
        const Expr& start = slice.starts[axis];
        const int64_t step = slice.steps[axis];
        // Behind the last element, in the direction of the step; before element 0 is INT64_MIN.
        const Expr last = start + (dims[axis] - 1) * step;
        if (dims[axis] == Expr(0)) {
            ends.push_back(start);
        } else if (step > 0) {  // an open size may be 0
            ends.push_back(dims[axis].is_constant() ? last + 1 : Max(last + 1, start));
        } else {
            const int64_t before = Constant(last) - 1;
            ends.push_back(before < 0 ? INT64_MIN : before);
        }
    }
    return {to.Emit("Slice", {to.NameOf(node.operands[0]), to.IntsOf(slice.starts), to.IntsOf(ends),
                              to.Ints(AllAxes(dims.size())), to.Ints(slice.steps)})};
}

Names LowerPad(Lowering& to, const Node& node, const op::Pad& pad) {
    const ElementType element = to.TypeOf(node.operands[0]).element;
    const ElementType work = element == ElementType::kBool ? ElementType::kI32 : WorkType(element);
    Sizes dims = to.DimsOf(node.operands[0]);
    std::string x = to.CastTo(to.NameOf(node.operands[0]), element, work);
    const std::string value =
        to.ReshapeTo(to.CastTo(to.NameOf(node.operands[1]), element, work), Sizes{});
    // Between neighbours: behind each element in an axis of its own, without the last ones.
    for (size_t axis = 0; axis < dims.size(); ++axis) {
        const int64_t interior = pad.interior[axis];
        if (interior == 0 || dims[axis] == Expr(0)) {
            continue;
        }
        Sizes split = dims;
        split.insert(split.begin() + static_cast<int64_t>(axis) + 1, 1);
        std::vector<int64_t> pads(split.size() * 2);
        pads[split.size() + axis + 1] = interior;
        x = to.Emit("Pad", {to.ReshapeTo(x, split), to.Ints(pads), value},
                    {{"mode", std::string("constant")}});
        Sizes joined = dims;
        joined[axis] = dims[axis] * (interior + 1);
        const auto along = static_cast<int64_t>(axis);
        dims[axis] = joined[axis] - interior;
        x = to.Emit("Slice", {to.ReshapeTo(x, joined), to.Ints({0}), to.IntsOf({dims[axis]}),
                              to.Ints({along})});
    }
    Sizes pads = pad.low;
    pads.insert(pads.end(), pad.high.begin(), pad.high.end());
    if (std::ranges::any_of(pads, [](const Expr& count) { return count != Expr(0); })) {
        x = to.Emit("Pad", {x, to.IntsOf(pads), value}, {{"mode", std::string("constant")}});
    }
    return {to.CastTo(x, work, element)};
}

Names LowerWindow(Lowering& to, const Node& node, const op::Window& window) {
    const Sizes result = to.DimsOf(node.results[0]);
    const auto axis = static_cast<size_t>(window.axis);
    const Expr& windows = result[axis];
    const int64_t size = Constant(result.back());
    std::vector<int64_t> within;
    for (int64_t k = 0; k < size; ++k) {
        within.push_back(k * window.dilation);
    }
    std::string places;
    if (windows.is_constant()) {
        std::vector<int64_t> all;
        for (int64_t o = 0; o < *windows.constant(); ++o) {
            std::ranges::transform(within, std::back_inserter(all),
                                   [&](int64_t k) { return o * window.stride + k; });
        }
        places = to.ReshapeTo(to.Ints(all), {windows, size});
    } else {
        const std::string begins =
            to.Emit("Mul", {Count(to, windows), to.Integer(ElementType::kI64, window.stride)});
        places = to.Emit("Add", {to.ReshapeTo(begins, {windows, 1}), to.Ints(within)});
    }
    const std::string gathered =
        to.Emit("Gather", {to.NameOf(node.operands[0]), places}, {{"axis", window.axis}});
    // The place in the window comes last.
    std::vector<int64_t> order = AllAxes(result.size());
    order.erase(order.begin() + window.axis + 1);
    order.push_back(window.axis + 1);
    return {to.Emit("Transpose", {gathered}, {{"perm", order}})};
}

Names LowerGather(Lowering& to, const Node& node, const op::Gather& gather) {
    const ElementType element = to.TypeOf(node.operands[0]).element;
    const Sizes data = to.DimsOf(node.operands[0]);
    const Sizes dims = Lowering::DimsOf(gather.shape);
    const Expr count = Volume(data);
    if (count == Expr(0)) {
        return {to.ExpandTo(Zero(to, element), dims)};
    }
    Places places = PlacesOf(to, data, gather.sources, std::span(node.operands).subspan(1), dims);
    if (!places.is_within.empty()) {
        places.number =
            to.Emit("Where", {places.is_within, places.number, to.Integer(ElementType::kI64, 0)});
    }
    std::string x =
        to.Emit("Gather", {to.ReshapeTo(to.NameOf(node.operands[0]), {count}), places.number},
                {{"axis", int64_t{0}}});
    if (!places.is_within.empty()) {
        x = to.Choose(places.is_within, x, Zero(to, element), element);
    }
    return {to.ExpandTo(x, dims)};
}

Names LowerScatter(Lowering& to, const Node& node, const op::Scatter& scatter) {
    const ElementType element = to.TypeOf(node.operands[0]).element;
    const Sizes data = to.DimsOf(node.operands[0]);
    const Sizes dims = to.DimsOf(node.operands[1]);
    const Expr count = Volume(data), updates = Volume(dims);
    std::string reduction;
    switch (scatter.combine) {
        case Combine::kReplace:
            reduction = "none";
            break;
        case Combine::kSum:
            reduction = "add";
            break;
        case Combine::kProduct:
            reduction = "mul";
            break;
        case Combine::kMin:
            reduction = "min";
            break;
        case Combine::kMax:
            reduction = "max";
            break;
        default:
            FailUnsupported(
                fmt::format("a scatter by {} has no operator of ONNX", Name(scatter.combine)));
    }
    const ElementType work = reduction == "none" ? element : WorkType(element);
    Places places = PlacesOf(to, data, scatter.sources, std::span(node.operands).subspan(2), dims);
    std::string number = places.number;
    if (!places.is_within.empty()) {  // what is outside goes to an element behind the data
        number = to.Emit("Where", {places.is_within, number, to.Size(count)});
    }
    number = to.ReshapeTo(to.ExpandTo(number, dims), {updates});
    const auto flat = [&](ValueId value, const Expr& size) {
        return to.CastTo(to.ReshapeTo(to.NameOf(value), {size}), element, work);
    };
    const std::string longer =
        to.Emit("Concat", {flat(node.operands[0], count), to.ReshapeTo(Zero(to, work), {1})},
                {{"axis", int64_t{0}}});
    const std::string written =
        to.Emit("ScatterElements", {longer, number, flat(node.operands[1], updates)},
                {{"axis", int64_t{0}}, {"reduction", reduction}});
    const std::string cut =
        to.Emit("Slice", {written, to.Ints({0}), to.IntsOf({count}), to.Ints({0})});
    return {to.ReshapeTo(to.CastTo(cut, work, element), data)};
}

Names LowerIota(Lowering& to, const Node&, const op::Iota& iota) {
    const Sizes dims = Lowering::DimsOf(iota.shape);
    const auto axis = static_cast<size_t>(iota.axis);
    const std::string positions = Positions(to, dims[axis], axis, dims.size());
    return {to.ExpandTo(to.CastTo(positions, ElementType::kI64, iota.element), dims)};
}

}  // namespace fornax::graph
