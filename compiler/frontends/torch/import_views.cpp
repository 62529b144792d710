// Shapes: views, slices, concatenations, and writing into slices.
#include <algorithm>

#include <fmt/format.h>

#include "compiler/frontends/torch/operator_families.h"

namespace fornax::torch_frontend {
namespace {

// The shape that the file says of the result is the one that is wanted.
void ImportReshape(Node& node) {
    node.Out(graph::Reshape(node.In("self"), node.ResultType().shape));
}

void ImportExpand(Node& node) {
    node.Out(graph::BroadcastTo(node.In("self"), node.ResultType().shape));
}

void ImportPermute(Node& node) {
    const Val x = node.In("self");
    std::vector<int64_t> order = node.Ints("dims");
    for (int64_t& axis : order) {
        axis = Builder::Axis(axis, x.rank());
    }
    node.Out(graph::Permute(x, order));
}

void ImportTranspose(Node& node) {
    const Val x = node.In("self");
    if (x.rank() == 0) {
        return node.Out(x);
    }
    std::vector<int64_t> order;
    for (int64_t axis = 0; axis < x.rank(); ++axis) {
        order.push_back(axis);
    }
    std::swap(order[static_cast<size_t>(AxisOf(node.Int("dim0"), x))],
              order[static_cast<size_t>(AxisOf(node.Int("dim1"), x))]);
    node.Out(graph::Permute(x, order));
}

void ImportT(Node& node) {
    const Val x = node.In("self");
    node.Out(x.rank() < 2 ? x : graph::TransposeMatrix(x));
}

// A position along an axis of this size as Python counts it.
Expr Wrapped(Builder& b, const Expr& position, const Expr& size) {
    const Expr from_zero = b.sizes().Less(position, 0) ? position + size : position;
    if (b.sizes().Less(from_zero, 0)) {
        return 0;
    }
    return b.sizes().Less(size, from_zero) ? size : from_zero;
}

int64_t StepOf(Node& node) {
    const int64_t step = node.Int("step", 1);
    if (step < 1 || step > INT32_MAX) {
        FailInvalid(fmt::format("its step is {}", step));
    }
    return step;
}

void ImportSlice(Node& node) {
    const Val x = node.In("self");
    const int64_t axis = Builder::Axis(node.Int("dim", 0), x.rank());
    const Expr start = Wrapped(node.builder(), node.Size("start", 0), x.dim(axis));
    const Shape shape = node.ResultType().shape;
    if (shape.rank() != static_cast<size_t>(x.rank())) {
        FailInvalid(fmt::format("its result {} has other dimensions than {}", shape.ToString(),
                                x.shape().ToString()));
    }
    node.Out(graph::SliceAxis(x, axis, start, shape[static_cast<size_t>(axis)], StepOf(node)));
}

Expr IndexOf(Node& node, const Expr& size) {
    Builder& b = node.builder();
    const Expr index = node.Size("index");
    const Expr place = b.sizes().Less(index, 0) ? index + size : index;
    if (b.sizes().Less(place, 0) || !b.sizes().Less(place, size)) {
        FailInvalid(
            fmt::format("the index {} is not in an axis of {}", index.ToString(), size.ToString()));
    }
    return place;
}

void ImportSelect(Node& node) {
    const Val x = node.In("self");
    const int64_t axis = Builder::Axis(node.Int("dim"), x.rank());
    node.Out(graph::Select(x, axis, IndexOf(node, x.dim(axis))));
}

// `x` with the slice from `start` on, of every step-th element, replaced by `src`.
Val Replaced(Val x, Val src, int64_t axis, const Expr& start, int64_t step) {
    Builder& b = x.builder();
    const size_t place = static_cast<size_t>(axis);
    const Expr size = x.dim(axis), count = src.dim(axis);
    if (step == 1) {
        const Expr end = start + count;
        Vals parts;
        if (!b.sizes().Equal(start, 0)) {
            parts.push_back(graph::SliceAxis(x, axis, 0, start));
        }
        parts.push_back(src);
        if (!b.sizes().Equal(end, size)) {
            parts.push_back(graph::SliceAxis(x, axis, end, size - end));
        }
        return graph::Concat(parts, axis);
    }
    std::vector<int64_t> sources;
    for (size_t i = 0; i < static_cast<size_t>(x.rank()); ++i) {
        sources.push_back(i == place ? -1 : static_cast<int64_t>(i));
    }
    const Val index =
        b.Iota(ElementType::kI64, src.shape(), axis) * b.Integer(ElementType::kI64, step) +
        b.Size(start);
    return graph::Scatter(x, src, sources, {index});
}

void ImportSliceScatter(Node& node) {
    const Val x = node.In("self");
    const Val src = node.As("src", x.element());
    const int64_t axis = Builder::Axis(node.Int("dim", 0), x.rank());
    const Expr start = Wrapped(node.builder(), node.Size("start", 0), x.dim(axis));
    if (src.rank() != x.rank()) {
        FailInvalid(
            fmt::format("{} cannot be put into {}", src.shape().ToString(), x.shape().ToString()));
    }
    if (node.builder().sizes().Equal(src.dim(axis), 0)) {
        return node.Out(x);
    }
    node.Out(Replaced(x, src, axis, start, StepOf(node)));
}

void ImportSelectScatter(Node& node) {
    const Val x = node.In("self");
    const int64_t axis = Builder::Axis(node.Int("dim"), x.rank());
    const Val src = graph::Unsqueeze(node.As("src", x.element()), axis);
    node.Out(Replaced(x, src, axis, IndexOf(node, x.dim(axis)), 1));
}

void OutParts(Node& node, Val x, int64_t axis, const std::vector<Expr>& sizes) {
    const Vals parts = graph::Split(x, axis, sizes);
    if (parts.size() != node.result_count()) {
        FailInvalid(fmt::format("it has {} results, where the file says {}", parts.size(),
                                node.result_count()));
    }
    for (size_t i = 0; i < parts.size(); ++i) {
        node.Out(i, parts[i]);
    }
}

void ImportSplitWithSizes(Node& node) {
    const Val x = node.In("self");
    OutParts(node, x, Builder::Axis(node.Int("dim", 0), x.rank()), node.Sizes("split_sizes"));
}

void ImportSplit(Node& node) {
    const Val x = node.In("self");
    const int64_t axis = Builder::Axis(node.Int("dim", 0), x.rank());
    const Expr size = node.Size("split_size");
    // All parts but the last one have the size.
    std::vector<Expr> sizes(std::max<size_t>(node.result_count(), 1), size);
    sizes.back() = x.dim(axis) - size * static_cast<int64_t>(sizes.size() - 1);
    OutParts(node, x, axis, sizes);
}

void ImportUnbind(Node& node) {
    const Val x = node.In("self");
    const int64_t axis = Builder::Axis(node.Int("dim", 0), x.rank());
    if (!node.builder().sizes().Equal(x.dim(axis), static_cast<int64_t>(node.result_count()))) {
        FailInvalid(fmt::format("it has {} results of an axis of {}", node.result_count(),
                                x.dim(axis).ToString()));
    }
    for (size_t i = 0; i < node.result_count(); ++i) {
        if (node.Wants(i)) {
            node.Out(i, graph::Select(x, axis, static_cast<int64_t>(i)));
        }
    }
}

void ImportCat(Node& node) {
    const TensorType type = node.ResultType();
    Vals parts;
    for (const Val& part : node.List("tensors")) {
        if (!part) {
            FailInvalid("a tensor of its list is missing");
        }
        // A vector without elements counts as nothing.
        if (part.rank() == 1 && type.shape.rank() != 1) {
            continue;
        }
        parts.push_back(graph::Cast(part, type.element));
    }
    if (parts.empty()) {
        return node.Out(node.builder().Full(type.element, type.shape, 0));
    }
    node.Out(graph::Concat(parts, Builder::Axis(node.Int("dim", 0), parts[0].rank())));
}

void ImportStack(Node& node) {
    const TensorType type = node.ResultType();
    Vals parts;
    for (const Val& part : node.List("tensors")) {
        if (!part) {
            FailInvalid("a tensor of its list is missing");
        }
        parts.push_back(graph::Cast(part, type.element));
    }
    if (parts.empty()) {
        FailInvalid("it stacks nothing");
    }
    node.Out(graph::Stack(parts, Builder::Axis(node.Int("dim", 0), parts[0].rank() + 1)));
}

// [a, b] repeated (2, 3) times is [2, a, 3, b] of one value.
void ImportRepeat(Node& node) {
    Val x = node.In("self");
    const std::vector<Expr> repeats = node.Sizes("repeats");
    const Shape shape = x.shape();
    if (repeats.size() < shape.rank() || repeats.size() * 2 > graph::kMaxRank) {
        FailUnsupported(
            fmt::format("{} dimensions are repeated along {}", shape.rank(), repeats.size()));
    }
    std::vector<Expr> ones(repeats.size() - shape.rank(), Expr(1));
    ones.insert(ones.end(), shape.dims().begin(), shape.dims().end());
    std::vector<Expr> from, to;
    for (size_t i = 0; i < repeats.size(); ++i) {
        from.emplace_back(1);
        from.push_back(ones[i]);
        to.push_back(repeats[i]);
        to.push_back(ones[i]);
    }
    x = graph::BroadcastTo(graph::Reshape(x, Shape(std::move(from))), Shape(std::move(to)));
    node.Out(graph::Reshape(x, node.ResultType().shape));
}

void ImportFlip(Node& node) {
    Val x = node.In("self");
    for (const int64_t axis : node.Ints("dims")) {
        if (x.rank() != 0) {
            x = graph::Reverse(x, axis);
        }
    }
    node.Out(x);
}

void ImportRoll(Node& node) {
    Val x = node.In("self");
    const Shape shape = x.shape();
    const std::vector<int64_t> shifts = node.Ints("shifts");
    std::vector<int64_t> axes = node.Has("dims") ? node.Ints("dims") : std::vector<int64_t>();
    const bool flat = axes.empty();
    if (flat) {
        x = graph::Reshape(x, Shape{shape.Volume()});
        axes = {0};
    }
    if (axes.size() != shifts.size()) {
        FailInvalid(fmt::format("it has {} shifts along {} axes", shifts.size(), axes.size()));
    }
    for (size_t i = 0; i < axes.size(); ++i) {
        const int64_t size = node.builder().sizes().Fix(x.dim(axes[i]));
        const int64_t shift = size == 0 ? 0 : graph::FloorModulo(shifts[i], size);
        if (shift != 0) {
            x = graph::Concat({graph::SliceAxis(x, axes[i], size - shift, shift),
                               graph::SliceAxis(x, axes[i], 0, size - shift)},
                              axes[i]);
        }
    }
    node.Out(flat ? graph::Reshape(x, shape) : x);
}

// Element i of the new last axis is at [i - low offset, i + offset] of two axes.
void ImportDiagonal(Node& node) {
    const Val x = node.In("self");
    Builder& b = node.builder();
    const int64_t offset = node.Int("offset", 0);
    const int64_t first = Builder::Axis(node.Int("dim1", 0), x.rank());
    const int64_t second = Builder::Axis(node.Int("dim2", 1), x.rank());
    if (first == second || offset < -INT32_MAX || offset > INT32_MAX) {
        FailInvalid(fmt::format("its axes are {} and {}, its offset is {}", first, second, offset));
    }
    const Shape shape = node.ResultType().shape;
    std::vector<int64_t> sources;
    int64_t next = 0;
    for (int64_t axis = 0; axis < x.rank(); ++axis) {
        sources.push_back(axis == first ? -1 : axis == second ? -2 : next++);
    }
    if (shape.rank() != static_cast<size_t>(next) + 1) {
        FailInvalid(fmt::format("its result is {}", shape.ToString()));
    }
    const Val place = b.Iota(ElementType::kI64, shape, next);
    node.Out(graph::Gather(x, sources,
                           {place + b.Integer(ElementType::kI64, std::max<int64_t>(-offset, 0)),
                            place + b.Integer(ElementType::kI64, std::max<int64_t>(offset, 0))},
                           shape));
}

// The position in memory of each element of a strided view, [size...].
Val StridedPositions(Node& node) {
    Builder& b = node.builder();
    const std::vector<Expr> sizes = node.Sizes("size"), strides = node.Sizes("stride");
    if (sizes.size() != strides.size() || sizes.size() > graph::kMaxRank) {
        FailInvalid(fmt::format("it has {} sizes and {} strides", sizes.size(), strides.size()));
    }
    const Shape shape{std::vector<Expr>(sizes)};
    Val position = graph::BroadcastTo(b.Size(node.Size("storage_offset", 0)), shape);
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
        position = position + b.Iota(ElementType::kI64, shape, static_cast<int64_t>(axis)) *
                                  b.Size(strides[axis]);
    }
    return position;
}

// The tensor lies in memory in row-major order: the writer of the file has seen to that.
void ImportAsStrided(Node& node) {
    const Val x = node.In("self");
    const Val position = StridedPositions(node);
    node.Out(graph::Gather(graph::Reshape(x, Shape{x.shape().Volume()}), {-1}, {position},
                           position.shape()));
}

void ImportAsStridedScatter(Node& node) {
    const Val x = node.In("self");
    const Val position = StridedPositions(node);
    const Val flat = graph::Reshape(x, Shape{x.shape().Volume()});
    node.Out(graph::Reshape(graph::Scatter(flat, node.As("src", x.element()), {-1}, {position}),
                            x.shape()));
}

void ImportUnfold(Node& node) {
    const Val x = node.In("self");
    const int64_t axis = AxisOf(node.Int("dimension"), x);
    const int64_t step = StepOf(node);
    const Val windows = graph::Window(AtLeastOne(x), axis, node.Size("size"), step, 1);
    // A tensor without dimensions has one window of one element, and no dimension for windows.
    node.Out(x.rank() == 0 ? graph::Reshape(windows, node.ResultType().shape) : windows);
}

constexpr OperatorEntry kOperators[] = {
    {"_unsafe_view.default", ImportReshape},
    {"as_strided.default", ImportAsStrided},
    {"as_strided_copy.default", ImportAsStrided},
    {"as_strided_scatter.default", ImportAsStridedScatter},
    {"cat.default", ImportCat},
    {"diagonal.default", ImportDiagonal},
    {"diagonal_copy.default", ImportDiagonal},
    {"expand.default", ImportExpand},
    {"expand_copy.default", ImportExpand},
    {"flip.default", ImportFlip},
    {"permute.default", ImportPermute},
    {"permute_copy.default", ImportPermute},
    {"repeat.default", ImportRepeat},
    {"reshape.default", ImportReshape},
    {"roll.default", ImportRoll},
    {"select.int", ImportSelect},
    {"select_copy.int", ImportSelect},
    {"select_scatter.default", ImportSelectScatter},
    {"slice.Tensor", ImportSlice},
    {"slice_copy.Tensor", ImportSlice},
    {"slice_scatter.default", ImportSliceScatter},
    {"split.Tensor", ImportSplit},
    {"split_copy.Tensor", ImportSplit},
    {"split_with_sizes.default", ImportSplitWithSizes},
    {"split_with_sizes_copy.default", ImportSplitWithSizes},
    {"squeeze.default", ImportReshape},
    {"squeeze.dim", ImportReshape},
    {"squeeze.dims", ImportReshape},
    {"squeeze_copy.dim", ImportReshape},
    {"squeeze_copy.dims", ImportReshape},
    {"stack.default", ImportStack},
    {"squeeze_copy.default", ImportReshape},
    {"t.default", ImportT},
    {"t_copy.default", ImportT},
    {"transpose.int", ImportTranspose},
    {"transpose_copy.int", ImportTranspose},
    {"unbind.int", ImportUnbind},
    {"unbind_copy.int", ImportUnbind},
    {"unfold.default", ImportUnfold},
    {"unfold_copy.default", ImportUnfold},
    {"unsqueeze.default", ImportReshape},
    {"unsqueeze_copy.default", ImportReshape},
    {"view.default", ImportReshape},
    {"view_copy.default", ImportReshape},
};

}  // namespace

std::span<const OperatorEntry> ViewOperators() {
    return kOperators;
}

}  // namespace fornax::torch_frontend
