// What changes only shapes and the order of elements.
#include <algorithm>

#include <fmt/format.h>

#include "compiler/frontends/onnx/operator_families.h"

namespace fornax::onnx_frontend {
namespace {

using graph::CeilDiv;
using graph::FloorDiv;
namespace map = graph::map;

void ImportShape(Node& node) {
    const Shape shape = node.In(0).shape();
    const int64_t rank = static_cast<int64_t>(shape.rank());
    const auto bound = [&](int64_t at) {
        return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
    };
    const int64_t start = bound(node.Int("start", 0));
    const int64_t end = std::max(start, bound(node.Int("end", rank)));
    node.Out(node.builder().Sizes(
        shape.dims().subspan(static_cast<size_t>(start), static_cast<size_t>(end - start))));
}

void ImportSize(Node& node) {
    node.Out(node.builder().Size(node.In(0).shape().Volume()));
}

// The shape that ONNX's Reshape means: one -1 is what is left, 0 keeps a dimension.
Shape ResolveShape(Builder& b, const Shape& from, std::vector<Expr> dims, bool zero_is_zero) {
    std::optional<size_t> open;
    for (size_t i = 0; i < dims.size(); ++i) {
        if (dims[i] == Expr(0) && !zero_is_zero) {
            if (i >= from.rank()) {
                FailInvalid(fmt::format("dimension {} of {} is to be kept", i, from.ToString()));
            }
            dims[i] = from[i];
        } else if (dims[i] == Expr(-1)) {
            if (open.has_value()) {
                FailInvalid("the shape has more than one -1");
            }
            open = i;
        } else if (b.sizes().Less(dims[i], 0)) {
            FailInvalid(fmt::format("the shape has a dimension of {}", dims[i].ToString()));
        }
    }
    if (open.has_value()) {
        // What both shapes have cancels, so that symbols do.
        std::vector<Expr> left(from.dims().begin(), from.dims().end());
        Expr others = 1;
        for (size_t i = 0; i < dims.size(); ++i) {
            if (i == *open) {
                continue;
            }
            const auto same = std::ranges::find(left, dims[i]);
            if (same != left.end() && !(dims[i] == Expr(0))) {
                left.erase(same);
            } else {
                others *= dims[i];
            }
        }
        const Expr volume = Shape(std::move(left)).Volume();
        if (others.constant() == 0) {
            FailInvalid("the shape has a -1 beside a 0");
        }
        dims[*open] = others == Expr(1)
                          ? volume
                          : FloorDiv(volume, others).Simplify({b.sizes().ranges(), {}});
    }
    return Shape(std::move(dims));
}

void ImportReshape(Node& node) {
    const Val x = node.In(0);
    node.Out(graph::Reshape(x, ResolveShape(node.builder(), x.shape(), node.Sizes(1, "the shape"),
                                            node.Int("allowzero", 0) != 0)));
}

void ImportFlatten(Node& node) {
    const Val x = node.In(0);
    const int64_t rank = x.rank();
    int64_t axis = node.Int("axis", 1);
    if (axis < -rank || axis > rank) {
        FailInvalid(fmt::format("the axis {} is not in {}..{}", axis, -rank, rank));
    }
    axis = axis < 0 ? axis + rank : axis;
    const Shape shape = x.shape();
    Expr rows = 1, columns = 1;
    for (int64_t i = 0; i < rank; ++i) {
        (i < axis ? rows : columns) *= shape[static_cast<size_t>(i)];
    }
    node.Out(graph::Reshape(x, Shape{rows, columns}));
}

std::vector<int64_t> AxesInput(Node& node, int64_t since, size_t input = 1) {
    return node.version() >= since && node.Has(input) ? node.Integers(input, "the axes")
                                                      : node.Ints("axes");
}

void ImportSqueeze(Node& node) {
    const Val x = node.In(0);
    std::vector<int64_t> axes = AxesInput(node, 13);
    if (!node.Has(1) && !node.HasAttribute("axes")) {
        for (int64_t i = 0; i < x.rank(); ++i) {
            if (node.builder().sizes().Equal(x.dim(i), 1)) {
                axes.push_back(i);
            }
        }
    }
    node.Out(graph::Squeeze(x, axes));
}

void ImportUnsqueeze(Node& node) {
    node.Out(graph::Unsqueeze(node.In(0), AxesInput(node, 13)));
}

void ImportTranspose(Node& node) {
    const Val x = node.In(0);
    std::vector<int64_t> order = node.Ints("perm");
    if (!node.HasAttribute("perm")) {
        for (int64_t i = x.rank(); i-- > 0;) {
            order.push_back(i);
        }
    }
    if (order.size() != static_cast<size_t>(x.rank())) {
        FailInvalid(
            fmt::format("it has an order of {} axes for {}", order.size(), x.shape().ToString()));
    }
    node.Out(graph::Permute(x, order));
}

void ImportConcat(Node& node) {
    node.Out(
        graph::Concat(node.All(), node.version() < 4 ? node.Int("axis", 1) : node.Int("axis")));
}

void ImportExpand(Node& node) {
    const Val x = node.In(0);
    const Shape shapes[] = {x.shape(), Shape(node.Sizes(1, "the shape"))};
    node.Out(graph::BroadcastTo(x, node.builder().CommonShape(shapes)));
}

void ImportTile(Node& node) {
    const Val x = node.In(0);
    const std::vector<Expr> repeats = node.Sizes(1, "the repeats");
    const Shape shape = x.shape();
    if (repeats.size() != shape.rank()) {
        FailInvalid(fmt::format("it has {} repeats for {}", repeats.size(), shape.ToString()));
    }
    std::vector<Expr> split, repeated, dims;
    for (size_t i = 0; i < repeats.size(); ++i) {
        dims.push_back(shape[i] * repeats[i]);
        if (!(repeats[i] == Expr(1))) {
            split.emplace_back(1);
            repeated.push_back(repeats[i]);
        }
        split.push_back(shape[i]);
        repeated.push_back(shape[i]);
    }
    const Val spread = graph::BroadcastTo(graph::Reshape(x, Shape(split)), Shape(repeated));
    node.Out(graph::Reshape(spread, Shape(dims)));
}

// --- Slice ---------------------------------------------------------------------------------------

// From ONNX's bound, which may be negative or out of range, to low..high.
Expr ClampBound(Builder& b,
                const Expr& bound,
                const Expr& size,
                const Expr& low,
                const Expr& high) {
    graph::SizeFacts& sizes = b.sizes();
    if (bound.is_constant() && (*bound.constant() > INT32_MAX || *bound.constant() < -INT32_MAX)) {
        return *bound.constant() > 0 ? high : low;
    }
    const Expr at = sizes.Less(bound, 0) ? bound + size : bound;
    if (sizes.Less(at, low)) {
        return low;
    }
    return sizes.Less(high, at) ? high : at;
}

void ImportSlice(Node& node) {
    Builder& b = node.builder();
    Val x = node.In(0);
    std::vector<Expr> starts, ends;
    std::vector<int64_t> axes, steps;
    if (node.version() >= 10) {
        starts = node.Sizes(1, "the starts");
        ends = node.Sizes(2, "the ends");
        if (node.Has(3)) {
            axes = node.Integers(3, "the axes");
        }
        if (node.Has(4)) {
            steps = node.Integers(4, "the steps");
        }
    } else {
        for (const int64_t start : node.Ints("starts")) {
            starts.emplace_back(start);
        }
        for (const int64_t end : node.Ints("ends")) {
            ends.emplace_back(end);
        }
        axes = node.Ints("axes");
    }
    if (axes.empty()) {
        for (size_t i = 0; i < starts.size(); ++i) {
            axes.push_back(static_cast<int64_t>(i));
        }
    }
    steps.resize(steps.empty() ? starts.size() : steps.size(), 1);
    if (ends.size() != starts.size() || axes.size() != starts.size() ||
        steps.size() != starts.size()) {
        FailInvalid(fmt::format("it has {} starts, {} ends, {} axes and {} steps", starts.size(),
                                ends.size(), axes.size(), steps.size()));
    }
    for (size_t i = 0; i < starts.size(); ++i) {
        const Expr size = x.dim(axes[i]);
        const int64_t step = steps[i];
        if (step == 0 || step == INT64_MIN) {
            FailInvalid(fmt::format("a step is {}", step));
        }
        Expr start, count;
        if (step > 0) {
            start = ClampBound(b, starts[i], size, 0, size);
            const Expr end = ClampBound(b, ends[i], size, 0, size);
            count = b.sizes().Less(start, end) ? CeilDiv(end - start, step) : Expr(0);
        } else {
            start = ClampBound(b, starts[i], size, 0, size - 1);
            const Expr end = ClampBound(b, ends[i], size, -1, size - 1);
            count = b.sizes().Less(end, start) ? CeilDiv(start - end, -step) : Expr(0);
        }
        const bool empty = count == Expr(0);
        x = graph::SliceAxis(x, axes[i], empty ? Expr(0) : start, count, empty ? 1 : step);
    }
    node.Out(x);
}

std::vector<Expr> SplitSizes(Node& node, Val x, int64_t axis) {
    if (node.version() >= 13 ? node.Has(1) : node.HasAttribute("split")) {
        if (node.version() >= 13) {
            return node.Sizes(1, "the split");
        }
        const std::vector<int64_t> split = node.Ints("split");
        return {split.begin(), split.end()};
    }
    const int64_t parts = node.Int("num_outputs", static_cast<int64_t>(node.output_count()));
    if (parts < 1 || static_cast<size_t>(parts) != node.output_count()) {
        FailInvalid(
            fmt::format("it splits into {} parts and has {} outputs", parts, node.output_count()));
    }
    const Expr size = x.dim(axis), part = CeilDiv(size, parts);
    std::vector<Expr> sizes(static_cast<size_t>(parts), part);
    sizes.back() = size - part * (parts - 1);
    return sizes;
}

void ImportSplit(Node& node) {
    const Val x = node.In(0);
    const int64_t axis = node.Int("axis", 0);
    const Vals parts = graph::Split(x, axis, SplitSizes(node, x, axis));
    for (size_t i = 0; i < parts.size(); ++i) {
        node.Out(i, parts[i]);
    }
}

// --- Pad -----------------------------------------------------------------------------------------

// Repeats what is at the edges: the index of each place along an axis, then a gather.
// Rows of known sizes and what is put beside them as two concatenations, which kernels read without
// indices from memory; nothing for others.
Val PadRows(Val x, const Expr& low, const Expr& high, const std::string& mode) {
    const std::optional<int64_t> n = x.dim(-1).constant(), before = low.constant(),
                                 behind = high.constant();
    if (!n || !before || !behind || *before < 0 || *behind < 0) {
        return {};
    }
    const int64_t most = mode == "edge" ? INT64_MAX : mode == "wrap" ? *n : *n - 1;
    if (*n == 0 || *before > most || *behind > most) {
        return {};
    }
    const auto part = [&](int64_t begin, int64_t count) {
        if (mode == "edge") {
            Shape shape = x.shape();
            shape[shape.rank() - 1] = count;
            return graph::BroadcastTo(graph::SliceAxis(x, -1, begin, 1), shape);
        }
        const Val slice = graph::SliceAxis(x, -1, begin, count);
        return mode == "wrap" ? slice : graph::Reverse(slice, -1);
    };
    Val y = x;
    if (*before > 0) {
        const int64_t begin = mode == "edge" ? 0 : mode == "wrap" ? *n - *before : 1;
        y = graph::Concat({part(begin, *before), y}, -1);
    }
    if (*behind > 0) {
        const int64_t begin = mode == "edge" ? *n - 1 : mode == "wrap" ? 0 : *n - 1 - *behind;
        y = graph::Concat({y, part(begin, *behind)}, -1);
    }
    return y;
}

Val PadByIndex(Val x, int64_t axis, const Expr& low, const Expr& high, const std::string& mode) {
    if (axis == x.rank() - 1) {
        if (const Val rows = PadRows(x, low, high, mode)) {
            return rows;
        }
    }
    Builder& b = x.builder();
    const Expr size = x.dim(axis), total = low + size + high;
    Val place = b.Iota(ElementType::kI64, Shape{total}, 0) - b.Size(low);
    const Val n = b.Size(size);
    const Val zero = b.Integer(ElementType::kI64, 0);
    if (mode == "edge") {
        place = map::Min(map::Max(place, zero), n - 1.0);
    } else if (mode == "wrap") {
        place = map::Mod(place, n);
    } else {
        // Back and forth with a period of 2 (n - 1).
        const Val period = map::Max((n - 1.0) * 2.0, b.Integer(ElementType::kI64, 1));
        const Val within = map::Mod(place, period);
        place = map::Min(within, period - within);
        place = map::Min(place, n - 1.0);
    }
    Shape shape = x.shape();
    axis = Builder::Axis(axis, x.rank());
    shape[static_cast<size_t>(axis)] = total;
    std::vector<int64_t> sources;
    for (int64_t i = 0; i < x.rank(); ++i) {
        sources.push_back(i == axis ? -1 : i);
    }
    std::vector<Expr> dims(static_cast<size_t>(x.rank() - axis), Expr(1));
    dims[0] = total;
    return graph::Gather(x, sources, {graph::Reshape(place, Shape(dims))}, shape);
}

void ImportPad(Node& node) {
    Builder& b = node.builder();
    Val x = node.In(0);
    const std::string mode = node.Text("mode", "constant");
    std::vector<Expr> pads;
    if (node.version() >= 11) {
        pads = node.Sizes(1, "the pads");
    } else {
        const std::vector<int64_t> fixed = node.Ints("pads");
        pads.assign(fixed.begin(), fixed.end());
    }
    std::vector<int64_t> axes;
    if (node.version() >= 18 && node.Has(3)) {
        axes = node.Integers(3, "the axes");
    } else {
        for (int64_t i = 0; i < x.rank(); ++i) {
            axes.push_back(i);
        }
    }
    if (pads.size() != 2 * axes.size()) {
        FailInvalid(fmt::format("it has {} pads for {} axes", pads.size(), axes.size()));
    }
    const size_t rank = static_cast<size_t>(x.rank());
    std::vector<Expr> low(rank, Expr(0)), high(rank, Expr(0));
    for (size_t i = 0; i < axes.size(); ++i) {
        const size_t axis = static_cast<size_t>(Builder::Axis(axes[i], x.rank()));
        low[axis] = pads[i];
        high[axis] = pads[i + axes.size()];
    }
    if (mode == "constant") {
        Val with = node.version() >= 11 ? (node.Has(2) ? node.In(2) : Val())
                                        : graph::Like(x, node.Float("value", 0));
        with = with ? with : graph::Like(x, 0);
        node.Out(graph::Pad(x, with, low, high));
        return;
    }
    if (mode != "reflect" && mode != "edge" && mode != "wrap") {
        FailUnsupported(fmt::format("its mode is \"{}\"", mode));
    }
    for (size_t i = 0; i < rank; ++i) {
        if (!b.sizes().Equal(low[i], 0) || !b.sizes().Equal(high[i], 0)) {
            x = PadByIndex(x, static_cast<int64_t>(i), low[i], high[i], mode);
        }
    }
    node.Out(x);
}

void ImportCenterCropPad(Node& node) {
    Builder& b = node.builder();
    Val x = node.In(0);
    const std::vector<Expr> wanted = node.Sizes(1, "the shape");
    std::vector<int64_t> axes = node.Ints("axes");
    if (axes.empty()) {
        for (int64_t i = 0; i < x.rank(); ++i) {
            axes.push_back(i);
        }
    }
    if (axes.size() != wanted.size()) {
        FailInvalid(fmt::format("it has {} sizes for {} axes", wanted.size(), axes.size()));
    }
    const size_t rank = static_cast<size_t>(x.rank());
    std::vector<Expr> low(rank, Expr(0)), high(rank, Expr(0));
    for (size_t i = 0; i < axes.size(); ++i) {
        const size_t axis = static_cast<size_t>(Builder::Axis(axes[i], x.rank()));
        const Expr size = x.dim(axes[i]);
        if (b.sizes().Less(wanted[i], size)) {
            low[axis] = -FloorDiv(size - wanted[i], 2);
        } else {
            low[axis] = FloorDiv(wanted[i] - size, 2);
        }
        high[axis] = wanted[i] - size - low[axis];
    }
    node.Out(graph::Pad(x, 0, low, high));
}

// --- Blocks of space and depth -------------------------------------------------------------------

void ImportDepthToSpace(Node& node) {
    const Val x = node.In(0);
    const int64_t block = node.Int("blocksize");
    if (x.rank() != 4 || block < 1 || block > INT16_MAX) {
        FailInvalid(
            fmt::format("the input is {} and the block size {}", x.shape().ToString(), block));
    }
    const Shape s = x.shape();
    const Expr depth = FloorDiv(s[1], block * block);
    const bool columns_first = node.Text("mode", "DCR") == "CRD";
    const Val split =
        columns_first ? graph::Permute(graph::Reshape(x, {s[0], depth, block, block, s[2], s[3]}),
                                       {0, 1, 4, 2, 5, 3})
                      : graph::Permute(graph::Reshape(x, {s[0], block, block, depth, s[2], s[3]}),
                                       {0, 3, 4, 1, 5, 2});
    node.Out(graph::Reshape(split, {s[0], depth, s[2] * block, s[3] * block}));
}

void ImportSpaceToDepth(Node& node) {
    const Val x = node.In(0);
    const int64_t block = node.Int("blocksize");
    if (x.rank() != 4 || block < 1 || block > INT16_MAX) {
        FailInvalid(
            fmt::format("the input is {} and the block size {}", x.shape().ToString(), block));
    }
    const Shape s = x.shape();
    const Expr height = FloorDiv(s[2], block), width = FloorDiv(s[3], block);
    const Val split = graph::Reshape(x, {s[0], s[1], height, block, width, block});
    const bool columns_first = node.Text("mode", "DCR") == "CRD";
    const Val moved = columns_first ? graph::Permute(split, {0, 1, 3, 5, 2, 4})
                                    : graph::Permute(split, {0, 3, 5, 1, 2, 4});
    node.Out(graph::Reshape(moved, {s[0], s[1] * (block * block), height, width}));
}

void ImportTrilu(Node& node) {
    Builder& b = node.builder();
    const Val x = node.In(0);
    if (x.rank() < 2) {
        FailInvalid(fmt::format("the input {} is not of matrices", x.shape().ToString()));
    }
    const Shape shape{x.dim(-2), x.dim(-1)};
    const Val k = node.Has(1) ? graph::Reshape(graph::Cast(node.In(1), ElementType::kI64), Shape{})
                              : b.Integer(ElementType::kI64, 0);
    const Val diagonal = b.Iota(ElementType::kI64, shape, 0) + k;
    const Val column = b.Iota(ElementType::kI64, shape, 1);
    const Val keep = node.Int("upper", 1) != 0 ? map::LessEqual(diagonal, column)
                                               : map::LessEqual(column, diagonal);
    const Val zero =
        x.element() == ElementType::kBool ? b.Integer(ElementType::kBool, 0) : graph::Like(x, 0);
    node.Out(graph::Where(keep, x, zero));
}

void ImportReverseSequence(Node& node) {
    Builder& b = node.builder();
    const Val x = node.In(0);
    const int64_t batch = Builder::Axis(node.Int("batch_axis", 1), x.rank());
    const int64_t time = Builder::Axis(node.Int("time_axis", 0), x.rank());
    std::vector<Expr> dims(static_cast<size_t>(x.rank()), Expr(1));
    dims[static_cast<size_t>(batch)] = x.dim(batch);
    const Val length = graph::Reshape(graph::Cast(node.In(1), ElementType::kI64), Shape(dims));
    const Val place = b.Iota(ElementType::kI64, x.shape(), time);
    const Val mirrored = graph::Where(map::Less(place, length), length - 1.0 - place, place);
    std::vector<int64_t> sources;
    for (int64_t i = 0; i < x.rank(); ++i) {
        sources.push_back(i == time ? -1 : i);
    }
    node.Out(graph::Gather(x, sources, {mirrored}, x.shape()));
}

void ImportRange(Node& node) {
    Builder& b = node.builder();
    const Val start = node.In(0), delta = node.In(2);
    const ElementType type = start.element();
    if (graph::IsInteger(type)) {
        const std::optional<std::vector<Expr>> from = b.KnownIntegers(start);
        const std::optional<std::vector<Expr>> to = b.KnownIntegers(node.In(1));
        const int64_t step = node.Integer(2, "the step");
        if (step == 0) {
            FailInvalid("the step is 0");
        }
        const Expr low = from && from->size() == 1 ? (*from)[0] : node.Integer(0, "the start");
        const Expr high = to && to->size() == 1 ? (*to)[0] : node.Integer(1, "the limit");
        const Expr length = step > 0 ? high - low : low - high;
        const Expr count =
            b.sizes().Less(0, length) ? CeilDiv(length, step > 0 ? step : -step) : Expr(0);
        if (const auto known = count.constant();
            known.has_value() && *known > graph::kMaxElements) {
            FailInvalid(fmt::format("it has {} elements", *known));
        }
        node.Out(
            b.Iota(type, Shape{count}, 0) * b.Integer(type, step) +
            graph::Reshape(from && low.is_constant() ? b.Integer(type, *low.constant()) : start,
                           Shape{}));
        return;
    }
    const std::vector<double> from = node.Numbers(0, "the start"),
                              to = node.Numbers(1, "the limit"), step = node.Numbers(2, "the step");
    if (from.size() != 1 || to.size() != 1 || step.size() != 1 || step[0] == 0) {
        FailInvalid("the start, limit and step are not one number each, or the step is 0");
    }
    const double count = std::ceil((to[0] - from[0]) / step[0]);
    if (!(count <= static_cast<double>(INT32_MAX))) {
        FailInvalid(fmt::format("it has {} elements", count));
    }
    const Shape shape{static_cast<int64_t>(std::max(count, 0.0))};
    const ElementType compute =
        graph::IsFloat(type) && graph::BitsOf(type) < 32 ? ElementType::kF32 : type;
    node.Out(graph::Cast(
        b.Iota(compute, shape, 0) * graph::Cast(graph::Reshape(delta, Shape{}), compute) +
            graph::Cast(graph::Reshape(start, Shape{}), compute),
        type));
}

constexpr OperatorEntry kOperators[] = {
    {"CenterCropPad", 2, ImportCenterCropPad},
    {"Concat", 1, ImportConcat},
    {"DepthToSpace", 1, ImportDepthToSpace},
    {"Expand", 2, ImportExpand},
    {"Flatten", 1, ImportFlatten},
    {"Pad", 1, ImportPad},
    {"Range", 3, ImportRange},
    {"Reshape", 2, ImportReshape},
    {"ReverseSequence", 2, ImportReverseSequence},
    {"Shape", 1, ImportShape},
    {"Size", 1, ImportSize},
    {"Slice", 1, ImportSlice},
    {"SpaceToDepth", 1, ImportSpaceToDepth},
    {"Split", 1, ImportSplit},
    {"Squeeze", 1, ImportSqueeze},
    {"Tile", 2, ImportTile},
    {"Transpose", 1, ImportTranspose},
    {"Trilu", 1, ImportTrilu},
    {"Unsqueeze", 1, ImportUnsqueeze},
};

}  // namespace

std::span<const OperatorEntry> ShapeOperators() {
    return kOperators;
}

}  // namespace fornax::onnx_frontend
