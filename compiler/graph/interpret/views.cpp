// Reshape, Permute, Broadcast, Slice, Pad, Window and Concat: elements move as bytes.
#include <fmt/format.h>

#include "compiler/graph/interpret/evaluation.h"

namespace fornax::graph::interpret {
namespace {

// The elements of `from` at `layout`, as a new tensor of `dims`.
Result<Tensor> Copy(const Tensor& from, const Layout& layout, Dims dims, const Context& context) {
    FORNAX_ASSIGN_OR_RETURN(NewTensor result, context.Allocate(from.element, std::move(dims)));
    CopyElements(from, layout, result, {0, RowMajorStrides(result.tensor.dims)},
                 result.tensor.dims);
    return std::move(result.tensor);
}

// Whether the elements start, start + step, ... of an axis of `size` elements exist.
bool InRange(int64_t start, int64_t step, int64_t count, int64_t size) {
    if (count == 0) {
        return true;
    }
    int64_t end = 0;
    return step != 0 && count > 0 && start >= 0 && start < size &&
           !__builtin_mul_overflow(count - 1, step, &end) &&
           !__builtin_add_overflow(start, end, &end) && end >= 0 && end < size;
}

}  // namespace

Result<Tensor> Evaluate(const op::Reshape& reshape, Operands operands, const Context& context) {
    Tensor result = operands[0];
    FORNAX_ASSIGN_OR_RETURN(result.dims, context.Sizes(reshape.shape.dims()));
    FORNAX_ASSIGN_OR_RETURN(const int64_t count, CountElements(result.dims));
    if (count != operands[0].count()) {
        return Invalid(fmt::format("{} and {} have different numbers of elements",
                                   ToString(operands[0].dims), ToString(result.dims)));
    }
    return result;
}

Result<Tensor> Evaluate(const op::Permute& permute, Operands operands, const Context& context) {
    const Tensor& from = operands[0];
    const std::vector<int64_t> strides = RowMajorStrides(from.dims);
    Layout layout;
    Dims dims;
    for (const int64_t axis : permute.order) {
        layout.strides.push_back(strides[static_cast<size_t>(axis)]);
        dims.push_back(from.dims[static_cast<size_t>(axis)]);
    }
    return Copy(from, layout, std::move(dims), context);
}

Result<Tensor> Evaluate(const op::Broadcast& broadcast, Operands operands, const Context& context) {
    const Tensor& from = operands[0];
    FORNAX_ASSIGN_OR_RETURN(Dims dims, context.Sizes(broadcast.shape.dims()));
    Layout layout{0, RowMajorStrides(from.dims)};
    bool fits = dims.size() == from.dims.size();
    for (size_t axis = 0; fits && axis < dims.size(); ++axis) {
        fits = from.dims[axis] == dims[axis] || from.dims[axis] == 1;
        if (from.dims[axis] == 1) {
            layout.strides[axis] = 0;
        }
    }
    if (!fits) {
        return Invalid(
            fmt::format("{} does not repeat to {}", ToString(from.dims), ToString(dims)));
    }
    return Copy(from, layout, std::move(dims), context);
}

Result<Tensor> Evaluate(const op::Slice& slice, Operands operands, const Context& context) {
    const Tensor& from = operands[0];
    FORNAX_ASSIGN_OR_RETURN(const Dims starts, context.Sizes(slice.starts));
    FORNAX_ASSIGN_OR_RETURN(Dims dims, context.Sizes(slice.shape.dims()));
    const std::vector<int64_t> strides = RowMajorStrides(from.dims);
    Layout layout{0, strides};
    FORNAX_ASSIGN_OR_RETURN(const int64_t count, CountElements(dims));
    for (size_t axis = 0; axis < dims.size(); ++axis) {
        const int64_t step = slice.steps[axis];
        if (!InRange(starts[axis], step, dims[axis], from.dims[axis])) {
            return Invalid(fmt::format("axis {} of {} has no {} elements from {} on in steps of {}",
                                       axis, ToString(from.dims), dims[axis], starts[axis], step));
        }
        if (count != 0) {  // else starts and steps may be anything
            layout.offset += starts[axis] * strides[axis];
            layout.strides[axis] = dims[axis] == 1 ? 0 : step * strides[axis];
        }
    }
    return Copy(from, layout, std::move(dims), context);
}

Result<Tensor> Evaluate(const op::Pad& pad, Operands operands, const Context& context) {
    const Tensor &from = operands[0], &filler = operands[1];
    FORNAX_ASSIGN_OR_RETURN(const Dims low, context.Sizes(pad.low));
    FORNAX_ASSIGN_OR_RETURN(const Dims high, context.Sizes(pad.high));
    Dims dims = from.dims;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
        const int64_t interior = pad.interior[axis];
        int64_t between = 0;
        bool fits = low[axis] >= 0 && high[axis] >= 0 && interior >= 0;
        fits = fits &&
               !__builtin_mul_overflow(std::max<int64_t>(dims[axis] - 1, 0), interior, &between);
        fits = fits && !__builtin_add_overflow(dims[axis], between, &dims[axis]) &&
               !__builtin_add_overflow(dims[axis], low[axis], &dims[axis]) &&
               !__builtin_add_overflow(dims[axis], high[axis], &dims[axis]);
        if (!fits) {
            return Invalid(fmt::format("axis {} of {} is padded by {}, {} and {} between", axis,
                                       ToString(from.dims), low[axis], high[axis], interior));
        }
    }
    FORNAX_ASSIGN_OR_RETURN(NewTensor result, context.Allocate(from.element, std::move(dims)));
    const Dims& padded = result.tensor.dims;
    const std::vector<int64_t> strides = RowMajorStrides(padded);
    CopyElements(filler, {0, std::vector<int64_t>(padded.size(), 0)}, result, {0, strides}, padded);
    Layout inside{0, strides};
    for (size_t axis = 0; axis < padded.size() && from.count() != 0; ++axis) {
        inside.offset += low[axis] * strides[axis];
        inside.strides[axis] = from.dims[axis] == 1 ? 0 : strides[axis] * (pad.interior[axis] + 1);
    }
    CopyElements(from, {0, RowMajorStrides(from.dims)}, result, inside, from.dims);
    return std::move(result.tensor);
}

Result<Tensor> Evaluate(const op::Window& window, Operands operands, const Context& context) {
    const Tensor& from = operands[0];
    const auto axis = static_cast<size_t>(window.axis);
    FORNAX_ASSIGN_OR_RETURN(const int64_t size, context.Size(window.size));
    int64_t reach = 0;  // from the first element of a window to its last
    if (size < 1 || window.stride < 1 || window.dilation < 1 ||
        __builtin_mul_overflow(size - 1, window.dilation, &reach)) {
        return Invalid(fmt::format("windows of {} elements have the stride {}, the dilation {}",
                                   size, window.stride, window.dilation));
    }
    Dims dims = from.dims;
    Layout layout{0, RowMajorStrides(from.dims)};
    dims[axis] = from.dims[axis] > reach ? (from.dims[axis] - reach - 1) / window.stride + 1 : 0;
    dims.push_back(size);
    const int64_t stride = layout.strides[axis];
    // What has one place or none takes no stride, which might overflow.
    layout.strides.push_back(size > 1 && dims[axis] > 0 ? stride * window.dilation : 0);
    layout.strides[axis] = dims[axis] > 1 ? stride * window.stride : 0;
    return Copy(from, layout, std::move(dims), context);
}

Result<Tensor> Evaluate(const op::Concat& concat, Operands operands, const Context& context) {
    const auto axis = static_cast<size_t>(concat.axis);
    Dims dims = operands[0].dims;
    dims[axis] = 0;
    for (const Tensor& operand : operands) {
        Dims expected = dims;
        expected[axis] = operand.dims[axis];
        if (operand.dims != expected ||
            __builtin_add_overflow(dims[axis], operand.dims[axis], &dims[axis])) {
            return Invalid(fmt::format("{} and {} do not join along axis {}",
                                       ToString(operands[0].dims), ToString(operand.dims), axis));
        }
    }
    FORNAX_ASSIGN_OR_RETURN(NewTensor result,
                            context.Allocate(operands[0].element, std::move(dims)));
    Layout target{0, RowMajorStrides(result.tensor.dims)};
    for (const Tensor& operand : operands) {
        CopyElements(operand, {0, RowMajorStrides(operand.dims)}, result, target, operand.dims);
        target.offset += operand.dims[axis] * target.strides[axis];
    }
    return std::move(result.tensor);
}

}  // namespace fornax::graph::interpret
