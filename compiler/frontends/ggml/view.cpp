// Strides are undone by cutting the memory into nested pieces, the largest stride first.
#include "compiler/frontends/ggml/view.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include <fmt/format.h>

namespace fornax::ggml_frontend {
namespace {

using graph::Expr;
using graph::Shape;
using graph::Val;

Shape SizesOf(const StridedView& view) {
    return Shape({view.sizes[3], view.sizes[2], view.sizes[1], view.sizes[0]});
}

void CheckBounds(const StridedView& view, int64_t elements) {
    int64_t last = view.offset;
    for (size_t d = 0; d < 4; ++d) {
        last += (view.sizes[d] - 1) * view.strides[d];
    }
    if (view.offset < 0 || last >= elements) {
        graph::FailInvalid(fmt::format("a view reaches from element {} to element {} of {}",
                                       view.offset, last, elements));
    }
}

// A piece of memory for each dimension that has more than one element, the outermost first.
struct Nest {
    std::vector<size_t> dims;      // of the view
    std::vector<Expr> levels;      // the memory's dimensions
    std::vector<Expr> starts;      // of the view in them
    int64_t begin = 0, count = 0;  // of the memory that is cut up
};

std::optional<Nest> FindNest(const StridedView& view, int64_t elements) {
    Nest nest;
    for (size_t d = 0; d < 4; ++d) {
        if (view.sizes[d] > 1) {
            nest.dims.push_back(d);
        }
    }
    std::sort(nest.dims.begin(), nest.dims.end(), [&](size_t a, size_t b) {
        return std::pair(view.strides[a], a) > std::pair(view.strides[b], b);
    });
    if (nest.dims.empty()) {
        nest.begin = view.offset;
        nest.count = 1;
        return nest;
    }
    const int64_t outer = view.strides[nest.dims[0]];
    if (outer <= 0) {
        return std::nullopt;
    }
    // The memory from a multiple of the outermost stride on, if its last piece is whole: then equal
    // cuts of several views are equal views. Else from the first element on.
    int64_t rest = view.offset % outer;
    const int64_t count = view.sizes[nest.dims[0]] * outer;
    nest.begin = view.offset - rest;
    if (nest.begin + count > elements) {
        nest.begin = view.offset;
        rest = 0;
        if (nest.begin + count > elements) {
            return std::nullopt;
        }
    }
    nest.count = count;
    nest.levels.emplace_back(view.sizes[nest.dims[0]]);
    nest.starts.emplace_back(0);
    int64_t piece = outer;
    for (size_t i = 1; i < nest.dims.size(); ++i) {
        const int64_t stride = view.strides[nest.dims[i]];
        if (stride <= 0 || piece % stride != 0) {
            return std::nullopt;
        }
        const int64_t level = piece / stride, start = rest / stride;
        if (start + view.sizes[nest.dims[i]] > level) {
            return std::nullopt;
        }
        nest.levels.emplace_back(level);
        nest.starts.emplace_back(start);
        rest %= stride;
        piece = stride;
    }
    if (piece != 1) {
        nest.levels.emplace_back(piece);
        nest.starts.emplace_back(rest);
    }
    return nest;
}

// The position in memory of each of the view's elements.
Val Positions(graph::Builder& builder, const StridedView& view) {
    const Shape shape = SizesOf(view);
    Val position = builder.Full(graph::ElementType::kI64, shape, static_cast<double>(view.offset));
    for (int64_t d = 0; d < 4; ++d) {
        const auto at = static_cast<size_t>(d);
        if (view.sizes[at] > 1) {
            position = position + builder.Iota(graph::ElementType::kI64, shape, 3 - d) *
                                      static_cast<double>(view.strides[at]);
        }
    }
    return position;
}

// A slice with steps of 1, if it is not all that is there.
Val Cut(Val value, const std::vector<Expr>& starts, const Shape& shape, bool always) {
    const std::vector<int64_t> steps(starts.size(), 1);
    return always ? value.builder().AddOne(graph::op::Slice{starts, steps, shape}, {value})
                  : Slice(value, starts, steps, shape);
}

int64_t ElementsOf(Val flat) {
    return flat.shape().Constants()->at(0);
}

}  // namespace

Val ReadView(Val flat, const StridedView& view, bool may_grow) {
    const int64_t elements = ElementsOf(flat);
    CheckBounds(view, elements);
    const std::optional<Nest> nest = FindNest(view, elements);
    if (!nest) {
        return Gather(flat, {-1}, {Positions(flat.builder(), view)}, SizesOf(view));
    }
    Val value = Cut(flat, {nest->begin}, Shape({nest->count}), may_grow);
    if (nest->dims.empty()) {
        return Reshape(value, SizesOf(view));
    }
    value = Reshape(value, Shape(nest->levels));
    std::vector<Expr> sizes;
    for (const size_t d : nest->dims) {
        sizes.emplace_back(view.sizes[d]);
    }
    if (sizes.size() < nest->levels.size()) {
        sizes.emplace_back(1);
    }
    value = Cut(value, nest->starts, Shape(sizes), may_grow);
    sizes.resize(nest->dims.size());
    value = Reshape(value, Shape(sizes));
    // Into the view's order, the outermost dimension first.
    std::vector<int64_t> order(nest->dims.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return nest->dims[static_cast<size_t>(a)] > nest->dims[static_cast<size_t>(b)];
    });
    return Reshape(Permute(value, order), SizesOf(view));
}

Val WriteView(Val flat, const StridedView& view, Val value) {
    const int64_t elements = ElementsOf(flat);
    CheckBounds(view, elements);
    const std::optional<Nest> nest = FindNest(view, elements);
    int64_t written = 1;
    for (const int64_t size : view.sizes) {
        written *= size;
    }
    if (nest && written == elements) {
        // All of it: the order of ReadView undone.
        std::vector<int64_t> place(nest->dims.size());
        std::vector<size_t> present = nest->dims;
        std::sort(present.begin(), present.end(), std::greater<>());
        std::vector<Expr> sizes;
        for (const size_t d : present) {
            sizes.emplace_back(view.sizes[d]);
        }
        for (size_t i = 0; i < place.size(); ++i) {
            place[i] = std::find(present.begin(), present.end(), nest->dims[i]) - present.begin();
        }
        if (!sizes.empty()) {
            value = Permute(Reshape(value, Shape(sizes)), place);
        }
        return Reshape(value, Shape({elements}));
    }
    return Scatter(flat, value, {-1}, {Positions(flat.builder(), view)});
}

}  // namespace fornax::ggml_frontend
