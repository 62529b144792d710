// The functions of Vals that are one primitive with its operands made to fit.
#include <algorithm>

#include <fmt/format.h>

#include "compiler/graph/build/builder.h"

namespace fornax::graph {

Val Like(Val value, double number) {
    return value.builder().Scalar(value.element(), number);
}

Val Cast(Val value, ElementType to, Overflow overflow, Rounding rounding) {
    if (value.element() == to) {
        return value;
    }
    return value.builder().AddOne(op::Cast{to, overflow, rounding}, {value});
}

Val Bitcast(Val value, ElementType to) {
    return value.element() == to ? value : value.builder().AddOne(op::Bitcast{to}, {value});
}

Val Reshape(Val value, const Shape& shape) {
    return value.shape() == shape ? value : value.builder().AddOne(op::Reshape{shape}, {value});
}

Val Permute(Val value, std::span<const int64_t> order) {
    bool same = true;
    for (size_t i = 0; i < order.size(); ++i) {
        same = same && order[i] == static_cast<int64_t>(i);
    }
    return same ? value
                : value.builder().AddOne(op::Permute{Axes(order.begin(), order.end())}, {value});
}

Val Permute(Val value, std::initializer_list<int64_t> order) {
    return Permute(value, std::span<const int64_t>(order.begin(), order.size()));
}

Val MoveAxis(Val value, int64_t from, int64_t to) {
    from = Builder::Axis(from, value.rank());
    to = Builder::Axis(to, value.rank());
    std::vector<int64_t> order;
    for (int64_t i = 0; i < value.rank(); ++i) {
        if (i != from) {
            order.push_back(i);
        }
    }
    order.insert(order.begin() + to, from);
    return Permute(value, order);
}

Val TransposeMatrix(Val value) {
    return MoveAxis(value, -1, -2);
}

Val BroadcastTo(Val value, const Shape& shape) {
    const Shape from = value.shape();
    if (from == shape) {
        return value;
    }
    if (from.rank() > shape.rank()) {
        FailInvalid(fmt::format("{} cannot be broadcast to {}", from.ToString(), shape.ToString()));
    }
    std::vector<Expr> dims(shape.rank() - from.rank(), Expr(1));
    dims.insert(dims.end(), from.dims().begin(), from.dims().end());
    SizeFacts& sizes = value.builder().sizes();
    bool repeats = false;
    for (size_t i = 0; i < dims.size(); ++i) {
        if (!(dims[i] == Expr(1)) && !sizes.Equal(dims[i], shape[i]) && sizes.Equal(dims[i], 1)) {
            // A symbol that is assumed to be 1.
            dims[i] = 1;
        }
        repeats = repeats || !(dims[i] == shape[i]);
    }
    value = Reshape(value, Shape(std::move(dims)));
    return repeats ? value.builder().AddOne(op::Broadcast{shape}, {value}) : value;
}

Val Unsqueeze(Val value, std::span<const int64_t> axes) {
    const Shape shape = value.shape();
    const int64_t rank = value.rank() + static_cast<int64_t>(axes.size());
    const std::vector<int64_t> places = Builder::AxesOf(axes, rank);
    std::vector<Expr> dims(shape.dims().begin(), shape.dims().end());
    for (const int64_t place : places) {
        dims.insert(dims.begin() + place, Expr(1));
    }
    return Reshape(value, Shape(std::move(dims)));
}

Val Unsqueeze(Val value, int64_t axis) {
    return Unsqueeze(value, std::span<const int64_t>(&axis, 1));
}

Val Squeeze(Val value, std::span<const int64_t> axes) {
    const Shape shape = value.shape();
    const std::vector<int64_t> places = Builder::AxesOf(axes, value.rank());
    std::vector<Expr> dims;
    for (int64_t i = 0; i < value.rank(); ++i) {
        const Expr& dim = shape[static_cast<size_t>(i)];
        if (!std::ranges::binary_search(places, i)) {
            dims.push_back(dim);
        } else if (!value.builder().sizes().Equal(dim, 1)) {
            FailInvalid(fmt::format("dimension {} is {}, not 1", i, dim.ToString()));
        }
    }
    return Reshape(value, Shape(std::move(dims)));
}

Val Squeeze(Val value, int64_t axis) {
    return Squeeze(value, std::span<const int64_t>(&axis, 1));
}

Val Slice(Val value, std::vector<Expr> starts, std::vector<int64_t> steps, Shape shape) {
    const bool same = shape == value.shape() &&
                      std::ranges::all_of(starts, [](const Expr& e) { return e == Expr(0); }) &&
                      std::ranges::all_of(steps, [](int64_t step) { return step == 1; });
    return same ? value
                : value.builder().AddOne(
                      op::Slice{std::move(starts), std::move(steps), std::move(shape)}, {value});
}

Val SliceAxis(Val value, int64_t axis, const Expr& start, const Expr& count, int64_t step) {
    const size_t place = static_cast<size_t>(Builder::Axis(axis, value.rank()));
    const size_t rank = static_cast<size_t>(value.rank());
    std::vector<Expr> starts(rank, Expr(0));
    std::vector<int64_t> steps(rank, 1);
    Shape shape = value.shape();
    starts[place] = start;
    steps[place] = step;
    shape[place] = count;
    return Slice(value, std::move(starts), std::move(steps), std::move(shape));
}

Val Select(Val value, int64_t axis, const Expr& index) {
    return Squeeze(SliceAxis(value, axis, index, 1), axis);
}

Val Reverse(Val value, int64_t axis) {
    const Expr size = value.dim(axis);
    return SliceAxis(value, axis, size - 1, size, -1);
}

Val Pad(Val value,
        Val with,
        std::vector<Expr> low,
        std::vector<Expr> high,
        std::vector<int64_t> interior) {
    const size_t rank = static_cast<size_t>(value.rank());
    interior.resize(rank, 0);
    SizeFacts& sizes = value.builder().sizes();
    bool pads = false;
    for (size_t i = 0; i < rank; ++i) {
        const auto cut = [&](Expr& side) {
            Expr amount = 0;
            if (sizes.Less(side, 0)) {
                amount = -side;
                side = 0;
            }
            return amount;
        };
        const Expr from_low = cut(low[i]);
        const Expr from_high = cut(high[i]);
        if (!(from_low == Expr(0)) || !(from_high == Expr(0))) {
            const Expr size = value.dim(static_cast<int64_t>(i));
            value =
                SliceAxis(value, static_cast<int64_t>(i), from_low, size - from_low - from_high);
        }
        pads = pads || !(low[i] == Expr(0)) || !(high[i] == Expr(0)) || interior[i] != 0;
    }
    return pads ? value.builder().AddOne(
                      op::Pad{std::move(low), std::move(high), std::move(interior)},
                      {value, Reshape(with, Shape{})})
                : value;
}

Val Pad(Val value, double with, std::vector<Expr> low, std::vector<Expr> high) {
    return Pad(value, Like(value, with), std::move(low), std::move(high));
}

Val Window(Val value, int64_t axis, const Expr& size, int64_t stride, int64_t dilation) {
    axis = Builder::Axis(axis, value.rank());
    return value.builder().AddOne(op::Window{axis, size, stride, dilation}, {value});
}

Val Concat(const Vals& values, int64_t axis) {
    if (values.size() == 1) {
        return values[0];
    }
    axis = Builder::Axis(axis, values[0].rank());
    return values[0].builder().AddOne(op::Concat{axis}, values);
}

Val Stack(const Vals& values, int64_t axis) {
    Vals parts;
    for (const Val& value : values) {
        parts.push_back(Unsqueeze(value, axis));
    }
    return Concat(parts, axis);
}

Vals Split(Val value, int64_t axis, std::span<const Expr> sizes) {
    Vals parts;
    Expr start = 0;
    for (const Expr& size : sizes) {
        parts.push_back(SliceAxis(value, axis, start, size));
        start += size;
    }
    if (!value.builder().sizes().Equal(start, value.dim(axis))) {
        FailInvalid(fmt::format("the parts' sizes sum to {}, the axis has {}", start.ToString(),
                                value.dim(axis).ToString()));
    }
    return parts;
}

Val Flatten(Val value, int64_t from, int64_t to) {
    const Shape shape = value.shape();
    std::vector<Expr> dims(shape.dims().begin(), shape.dims().begin() + from);
    Expr volume = 1;
    for (int64_t i = from; i < to; ++i) {
        volume *= shape[static_cast<size_t>(i)];
    }
    dims.push_back(volume);
    dims.insert(dims.end(), shape.dims().begin() + to, shape.dims().end());
    return Reshape(value, Shape(std::move(dims)));
}

// --- Along axes ----------------------------------------------------------------------------------

Val Reduce(Combine combine, Val value, std::span<const int64_t> axes, bool keep) {
    const std::vector<int64_t> places = Builder::AxesOf(axes, value.rank());
    if (places.empty()) {
        return value;
    }
    if (!Accepts(combine, value.element())) {
        FailUnsupported(fmt::format("the reduction {} is not defined for {}", Name(combine),
                                    Name(value.element())));
    }
    const Val result = value.builder().AddOne(op::Reduce{combine, places}, {value});
    return keep ? Unsqueeze(result, places) : result;
}

Val Reduce(Combine combine, Val value, std::initializer_list<int64_t> axes, bool keep) {
    return Reduce(combine, value, std::span<const int64_t>(axes.begin(), axes.size()), keep);
}

Val Sum(Val value, std::initializer_list<int64_t> axes, bool keep) {
    return Reduce(Combine::kSum, value, axes, keep);
}

Val Mean(Val value, std::span<const int64_t> axes, bool keep) {
    Expr count = 1;
    for (const int64_t axis : axes) {
        count *= value.dim(axis);
    }
    const Val sum = Reduce(Combine::kSum, value, axes, keep);
    return sum / Cast(value.builder().Size(count), value.element());
}

Val Mean(Val value, std::initializer_list<int64_t> axes, bool keep) {
    return Mean(value, std::span<const int64_t>(axes.begin(), axes.size()), keep);
}

Val SumAll(Val value) {
    std::vector<int64_t> axes;
    for (int64_t i = 0; i < value.rank(); ++i) {
        axes.push_back(i);
    }
    return Reduce(Combine::kSum, value, axes, false);
}

Val ArgReduce(Combine combine, Val value, int64_t axis, bool keep, bool last) {
    axis = Builder::Axis(axis, value.rank());
    const Val result = value.builder().AddOne(op::ArgReduce{combine, axis, last}, {value});
    return keep ? Unsqueeze(result, axis) : result;
}

Val Scan(Combine combine, Val value, int64_t axis, bool exclusive, bool reverse) {
    axis = Builder::Axis(axis, value.rank());
    return value.builder().AddOne(op::Scan{combine, axis, exclusive, reverse}, {value});
}

Sorted Sort(Val value, int64_t axis, bool descending, const Expr& count) {
    axis = Builder::Axis(axis, value.rank());
    const Vals results = value.builder().Add(op::Sort{axis, descending, count}, {value});
    return {results[0], results[1]};
}

// --- Indices and products ------------------------------------------------------------------------

Val Gather(Val data, std::vector<int64_t> sources, const Vals& indices, const Shape& shape) {
    Vals operands = {data};
    for (const Val& index : indices) {
        operands.push_back(BroadcastTo(index, shape));
    }
    return data.builder().AddOne(op::Gather{std::move(sources), shape}, operands);
}

Val Scatter(Val data,
            Val updates,
            std::vector<int64_t> sources,
            const Vals& indices,
            Combine combine) {
    Vals operands = {data, updates};
    for (const Val& index : indices) {
        operands.push_back(BroadcastTo(index, updates.shape()));
    }
    return data.builder().AddOne(op::Scatter{std::move(sources), combine}, operands);
}

Val Contract(Val a, Val b, std::string_view labels, std::optional<ElementType> accumulate) {
    const size_t comma = labels.find(',');
    const size_t arrow = labels.find("->");
    op::Contract contract;
    contract.a = labels.substr(0, comma);
    contract.b = labels.substr(comma + 1, arrow - comma - 1);
    contract.result = labels.substr(arrow + 2);
    contract.accumulate = accumulate.value_or(a.element());
    return a.builder().AddOne(std::move(contract), {a, b});
}

}  // namespace fornax::graph
