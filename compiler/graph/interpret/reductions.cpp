// Reduce, ArgReduce, Scan and Sort: what combines or orders elements along axes.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "compiler/graph/interpret/evaluation.h"

namespace fornax::graph::interpret {
namespace {

// The axes of a tensor in two groups: those that are walked outside and those inside.
struct SplitAxes {
    Dims outer_dims, inner_dims;
    std::vector<int64_t> outer_strides, inner_strides;

    SplitAxes(const Dims& dims, const Axes& inner) {
        const std::vector<int64_t> strides = RowMajorStrides(dims);
        for (size_t axis = 0; axis < dims.size(); ++axis) {
            const bool inside =
                std::find(inner.begin(), inner.end(), static_cast<int64_t>(axis)) != inner.end();
            (inside ? inner_dims : outer_dims).push_back(dims[axis]);
            (inside ? inner_strides : outer_strides).push_back(strides[axis]);
        }
    }
};

bool IsNan(const Scalar& scalar) {
    return scalar.is_float && std::isnan(scalar.number);
}

// Whether a < b, where NaN is greater than every number.
bool Less(ElementType type, const Scalar& a, const Scalar& b) {
    if (IsNan(a) || IsNan(b)) {
        return !IsNan(a) && IsNan(b);
    }
    if (a.is_float) {
        return a.number < b.number;
    }
    return type == ElementType::kU64
               ? static_cast<uint64_t>(a.integer) < static_cast<uint64_t>(b.integer)
               : a.integer < b.integer;
}

// Whether `candidate` takes the place of `best` as the greatest or least element.
bool Beats(const op::ArgReduce& reduce,
           ElementType type,
           const Scalar& candidate,
           const Scalar& best) {
    if (IsNan(candidate) || IsNan(best)) {
        return IsNan(candidate) && (!IsNan(best) || reduce.last);
    }
    const bool greatest = reduce.combine == Combine::kMax;
    if (greatest ? Less(type, best, candidate) : Less(type, candidate, best)) {
        return true;
    }
    return reduce.last && !Less(type, best, candidate) && !Less(type, candidate, best);
}

}  // namespace

Result<Tensor> Evaluate(const op::Reduce& reduce, Operands operands, const Context& context) {
    const Tensor& from = operands[0];
    if (!Accepts(reduce.combine, from.element)) {
        return Invalid(
            fmt::format("{} of {} is not defined", Name(reduce.combine), Name(from.element)));
    }
    const SplitAxes axes(from.dims, reduce.axes);
    FORNAX_ASSIGN_OR_RETURN(NewTensor result, context.Allocate(from.element, axes.outer_dims));
    uint8_t* to = result.data;
    for (Walk outer(axes.outer_dims, axes.outer_strides); outer.valid(); outer.Next()) {
        Accumulator total(reduce.combine, from.element);
        for (Walk inner(axes.inner_dims, axes.inner_strides, outer.offset()); inner.valid();
             inner.Next()) {
            total.Add(from.At(inner.offset()));
        }
        WriteElement(from.element, total.value(), to);
        to += BytesOf(from.element);
    }
    return std::move(result.tensor);
}

Result<Tensor> Evaluate(const op::ArgReduce& reduce, Operands operands, const Context& context) {
    const Tensor& from = operands[0];
    const SplitAxes axes(from.dims, {reduce.axis});
    FORNAX_ASSIGN_OR_RETURN(NewTensor result, context.Allocate(ElementType::kI64, axes.outer_dims));
    const int64_t size = axes.inner_dims[0], stride = axes.inner_strides[0];
    if (size == 0 && result.tensor.count() != 0) {
        return Invalid(fmt::format("axis {} of {} has no elements to choose from", reduce.axis,
                                   ToString(from.dims)));
    }
    uint8_t* to = result.data;
    for (Walk outer(axes.outer_dims, axes.outer_strides); outer.valid(); outer.Next()) {
        int64_t position = 0;
        Scalar best = from.At(outer.offset());
        for (int64_t i = 1; i < size; ++i) {
            const Scalar candidate = from.At(outer.offset() + i * stride);
            if (Beats(reduce, from.element, candidate, best)) {
                best = candidate;
                position = i;
            }
        }
        WriteElement(ElementType::kI64, Scalar::Integer(position), to);
        to += sizeof(int64_t);
    }
    return std::move(result.tensor);
}

Result<Tensor> Evaluate(const op::Scan& scan, Operands operands, const Context& context) {
    const Tensor& from = operands[0];
    if (!Accepts(scan.combine, from.element)) {
        return Invalid(fmt::format("a scan by {} of {} is not defined", Name(scan.combine),
                                   Name(from.element)));
    }
    const SplitAxes axes(from.dims, {scan.axis});
    FORNAX_ASSIGN_OR_RETURN(NewTensor result, context.Allocate(from.element, from.dims));
    const int64_t size = axes.inner_dims[0], stride = axes.inner_strides[0];
    const uint32_t bytes = BytesOf(from.element);
    for (Walk outer(axes.outer_dims, axes.outer_strides); outer.valid(); outer.Next()) {
        Accumulator total(scan.combine, from.element);
        for (int64_t i = 0; i < size; ++i) {
            const int64_t at = outer.offset() + (scan.reverse ? size - 1 - i : i) * stride;
            if (scan.exclusive) {
                WriteElement(from.element, total.value(), result.data + at * bytes);
            }
            total.Add(from.At(at));
            if (!scan.exclusive) {
                WriteElement(from.element, total.value(), result.data + at * bytes);
            }
        }
    }
    return std::move(result.tensor);
}

Result<Tensors> Evaluate(const op::Sort& sort, Operands operands, const Context& context) {
    const Tensor& from = operands[0];
    const auto axis = static_cast<size_t>(sort.axis);
    FORNAX_ASSIGN_OR_RETURN(const int64_t count, context.Size(sort.count));
    const int64_t size = from.dims[axis];
    if (count < 0 || count > size) {
        return Invalid(fmt::format("{} elements are wanted of {}", count, size));
    }
    Dims dims = from.dims;
    dims[axis] = count;
    const SplitAxes axes(from.dims, {sort.axis}), result_axes(dims, {sort.axis});
    FORNAX_ASSIGN_OR_RETURN(NewTensor values, context.Allocate(from.element, dims));
    FORNAX_ASSIGN_OR_RETURN(NewTensor positions, context.Allocate(ElementType::kI64, dims));
    if (count == 0) {
        return Tensors{std::move(values.tensor), std::move(positions.tensor)};
    }
    FORNAX_RETURN_IF_ERROR(context.budget.Check(static_cast<uint64_t>(size) * sizeof(Scalar)));
    std::vector<Scalar> line(static_cast<size_t>(size));
    std::vector<int64_t> order(static_cast<size_t>(size));
    const int64_t stride = axes.inner_strides[0], result_stride = result_axes.inner_strides[0];
    Walk target(result_axes.outer_dims, result_axes.outer_strides);
    for (Walk outer(axes.outer_dims, axes.outer_strides); outer.valid();
         outer.Next(), target.Next()) {
        for (int64_t i = 0; i < size; ++i) {
            line[static_cast<size_t>(i)] = from.At(outer.offset() + i * stride);
        }
        std::iota(order.begin(), order.end(), int64_t{0});
        std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
            const Scalar &a = line[static_cast<size_t>(i)], &b = line[static_cast<size_t>(j)];
            if (Less(from.element, a, b)) {
                return !sort.descending;
            }
            if (Less(from.element, b, a)) {
                return sort.descending;
            }
            return i < j;  // equal elements keep their order
        });
        for (int64_t i = 0; i < count; ++i) {
            const int64_t position = order[static_cast<size_t>(i)];
            const int64_t at = target.offset() + i * result_stride;
            CopyElement(from, outer.offset() + position * stride, values, at);
            WriteElement(ElementType::kI64, Scalar::Integer(position),
                         positions.data + at * static_cast<int64_t>(sizeof(int64_t)));
        }
    }
    return Tensors{std::move(values.tensor), std::move(positions.tensor)};
}

}  // namespace fornax::graph::interpret
