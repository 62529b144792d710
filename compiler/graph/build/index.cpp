// Reading and writing elements by indices.
#include "compiler/graph/build/index.h"

#include <algorithm>

#include <fmt/format.h>

namespace fornax::graph {
namespace {

// 0, 1, ... with the operand `place` at `axis`.
std::vector<int64_t> SourcesWith(int64_t rank, int64_t axis) {
    std::vector<int64_t> sources;
    for (int64_t i = 0; i < rank; ++i) {
        sources.push_back(i == axis ? -1 : i);
    }
    return sources;
}

// The value with dimensions of 1 behind, to `rank` dimensions.
Val WithTrailing(Val value, int64_t rank) {
    const Shape shape = value.shape();
    std::vector<Expr> dims(shape.dims().begin(), shape.dims().end());
    dims.resize(static_cast<size_t>(rank), Expr(1));
    return Reshape(value, Shape(std::move(dims)));
}

struct Coordinates {
    std::vector<int64_t> sources;
    Vals indices;
    Shape shape;  // of the elements
};

// Coordinates of `data` from the last dimension of `indices`.
Coordinates CoordinatesOf(Val data, Val indices, int64_t batch) {
    if (indices.rank() < 1 || batch < 0 || batch >= indices.rank() || batch > data.rank()) {
        FailInvalid(fmt::format("the indices {} do not fit {} common dimensions",
                                indices.shape().ToString(), batch));
    }
    const int64_t count = data.builder().sizes().Fix(indices.dim(-1));
    if (count < 0 || batch + count > data.rank()) {
        FailInvalid(fmt::format("the indices {} do not fit the data {}", indices.shape().ToString(),
                                data.shape().ToString()));
    }
    Coordinates result;
    const Shape index_shape = indices.shape(), data_shape = data.shape();
    std::vector<Expr> dims(index_shape.dims().begin(), index_shape.dims().end() - 1);
    const int64_t lead = static_cast<int64_t>(dims.size());
    for (int64_t i = 0; i < data.rank(); ++i) {
        if (i < batch) {
            result.sources.push_back(i);
        } else if (i < batch + count) {
            result.sources.push_back(-1 - (i - batch));
        } else {
            result.sources.push_back(lead + i - batch - count);
            dims.push_back(data_shape[static_cast<size_t>(i)]);
        }
    }
    for (int64_t i = 0; i < count; ++i) {
        const Val index = WrapIndex(Select(indices, -1, i), data.dim(batch + i));
        result.indices.push_back(WithTrailing(index, static_cast<int64_t>(dims.size())));
    }
    result.shape = Shape(std::move(dims));
    return result;
}

}  // namespace

Val WrapIndex(Val index, const Expr& size) {
    Builder& b = index.builder();
    const Val wide = Cast(index, ElementType::kI64);
    const std::optional<std::vector<Expr>> known = b.KnownIntegers(wide);
    if (known.has_value() && std::ranges::all_of(*known, [](const Expr& e) {
            return e.is_constant() && *e.constant() >= 0;
        })) {
        return wide;
    }
    return Where(Less(wide, 0), wide + b.Size(size), wide);
}

Val Take(Val data, Val indices, int64_t axis) {
    axis = Builder::Axis(axis, data.rank());
    Builder& b = data.builder();
    if (const auto known = b.KnownIntegers(indices); known.has_value() && indices.rank() == 0) {
        // One known element is a view.
        const Expr size = data.dim(axis);
        const Expr index = b.sizes().Less((*known)[0], 0) ? (*known)[0] + size : (*known)[0];
        if (!b.sizes().Less(index, 0) && b.sizes().Less(index, size)) {
            return Select(data, axis, index);
        }
    }
    const Shape data_shape = data.shape(), index_shape = indices.shape();
    std::vector<Expr> dims(data_shape.dims().begin(), data_shape.dims().begin() + axis);
    dims.insert(dims.end(), index_shape.dims().begin(), index_shape.dims().end());
    dims.insert(dims.end(), data_shape.dims().begin() + axis + 1, data_shape.dims().end());
    std::vector<int64_t> sources;
    for (int64_t i = 0; i < data.rank(); ++i) {
        sources.push_back(i < axis ? i : i == axis ? -1 : i - 1 + indices.rank());
    }
    const Val index =
        WithTrailing(WrapIndex(indices, data.dim(axis)), indices.rank() + data.rank() - 1 - axis);
    return Gather(data, sources, {index}, Shape(std::move(dims)));
}

Val TakeAlong(Val data, Val indices, int64_t axis) {
    axis = Builder::Axis(axis, data.rank());
    if (indices.rank() != data.rank()) {
        FailInvalid(fmt::format("the indices {} and the data {} have different ranks",
                                indices.shape().ToString(), data.shape().ToString()));
    }
    return Gather(data, SourcesWith(data.rank(), axis), {WrapIndex(indices, data.dim(axis))},
                  indices.shape());
}

Val TakeNd(Val data, Val indices, int64_t batch) {
    const Coordinates c = CoordinatesOf(data, indices, batch);
    return Gather(data, c.sources, c.indices, c.shape);
}

Val PutAlong(Val data, Val indices, Val updates, int64_t axis, Combine combine) {
    axis = Builder::Axis(axis, data.rank());
    if (indices.rank() != data.rank()) {
        FailInvalid(fmt::format("the indices {} and the data {} have different ranks",
                                indices.shape().ToString(), data.shape().ToString()));
    }
    return Scatter(data, updates, SourcesWith(data.rank(), axis),
                   {WrapIndex(indices, data.dim(axis))}, combine);
}

Val PutNd(Val data, Val indices, Val updates, Combine combine) {
    const Coordinates c = CoordinatesOf(data, indices, 0);
    return Scatter(data, Reshape(updates, c.shape), c.sources, c.indices, combine);
}

Val TakeOne(Val data, Val index, int64_t axis) {
    axis = Builder::Axis(axis, data.rank());
    const Shape shape = data.shape();
    std::vector<Expr> dims(shape.dims().begin(), shape.dims().end());
    dims.erase(dims.begin() + axis);
    std::vector<int64_t> sources;
    for (int64_t i = 0; i < data.rank(); ++i) {
        sources.push_back(i < axis ? i : i == axis ? -1 : i - 1);
    }
    return Gather(data, sources, {index}, Shape(std::move(dims)));
}

Val PutOne(Val data, Val index, Val slice, int64_t axis) {
    axis = Builder::Axis(axis, data.rank());
    std::vector<int64_t> sources;
    for (int64_t i = 0; i < data.rank(); ++i) {
        sources.push_back(i < axis ? i : i == axis ? -1 : i - 1);
    }
    return Scatter(data, slice, sources, {index});
}

Val OneHot(Val indices, const Expr& depth, Val off, Val on, int64_t axis) {
    axis = Builder::Axis(axis, indices.rank() + 1);
    Builder& b = indices.builder();
    const Val index = Unsqueeze(WrapIndex(indices, depth), axis);
    Shape shape = index.shape();
    shape[static_cast<size_t>(axis)] = depth;
    return Where(map::Equal(b.Iota(ElementType::kI64, shape, axis), index), on, off);
}

}  // namespace fornax::graph
