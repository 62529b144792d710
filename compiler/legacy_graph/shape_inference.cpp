// Types of results from types of operands: one Infer overload an operator.
//
// Every rule about operands that an operator has is checked here and nowhere else; the verifier
// calls it again after passes, and lowering relies on it.
#include <algorithm>

#include <fmt/format.h>

#include "compiler/legacy_graph/operators.h"

namespace fornax::legacy_graph {
namespace {

using Types = std::span<const TensorType>;

Error Invalid(std::string message) {
    return {ErrorCode::kInvalidArgument, std::move(message)};
}

Status CheckFloat(Types operands) {
    for (const TensorType& operand : operands) {
        if (operand.type != DataType::kF32) {
            return Error{ErrorCode::kUnsupported,
                         fmt::format("an operand is {}, and only f32 can be computed with",
                                     operand.ToString())};
        }
    }
    return OkStatus();
}

Result<TensorType> MakeType(std::span<const int64_t> dims) {
    FORNAX_ASSIGN_OR_RETURN(Shape shape, Shape::Make(dims));
    return TensorType{DataType::kF32, std::move(shape)};
}

// Bounds that keep window arithmetic within 32 bits in kernels: far above any real network.
constexpr uint32_t kMaxWindowParameter = 1 << 15;

// The number of window positions along one spatial axis (0 is height, 1 width).
Result<int64_t> WindowCount(const Window& window, size_t axis, int64_t extent, bool ceil_mode) {
    const int64_t kernel = window.kernel[axis], stride = window.strides[axis];
    const int64_t dilation = window.dilations[axis];
    const int64_t before = window.pads[axis], after = window.pads[axis + 2];
    for (int64_t value : {kernel, stride, dilation}) {
        if (value < 1 || value > kMaxWindowParameter) {
            return Invalid(fmt::format("a kernel size, stride or dilation of {} is not in 1..{}",
                                       value, kMaxWindowParameter));
        }
    }
    if (std::max(before, after) > kMaxWindowParameter) {
        return Invalid(
            fmt::format("padding by {} exceeds {}", std::max(before, after), kMaxWindowParameter));
    }
    const int64_t reach = dilation * (kernel - 1) + 1;
    const int64_t room = extent + before + after - reach;
    if (room < 0) {
        return Invalid(fmt::format("a window that reaches {} does not fit a padded extent of {}",
                                   reach, extent + before + after));
    }
    int64_t count = (ceil_mode ? (room + stride - 1) / stride : room / stride) + 1;
    // With ceil_mode, a window that would begin in the padding behind the plane is left out.
    if (ceil_mode && (count - 1) * stride >= extent + before) {
        --count;
    }
    return count;
}

Result<TensorType> Infer(const op::Conv& conv, Types operands) {
    const Shape &x = operands[0].shape, &weight = operands[1].shape;
    if (x.rank() != 4 || weight.rank() != 4) {
        return Invalid(fmt::format("input {} and weight {} must both have rank 4", x.ToString(),
                                   weight.ToString()));
    }
    if (conv.group == 0 || x[1] % conv.group != 0 || weight[0] % conv.group != 0) {
        return Invalid(fmt::format("{} input and {} output channels cannot be split into {} groups",
                                   x[1], weight[0], conv.group));
    }
    if (weight[1] != x[1] / conv.group) {
        return Invalid(fmt::format("the weight takes {} channels a group, the input has {}",
                                   weight[1], x[1] / conv.group));
    }
    if (weight[2] != conv.window.kernel[0] || weight[3] != conv.window.kernel[1]) {
        return Invalid(fmt::format("the weight {} does not match a kernel of {}x{}",
                                   weight.ToString(), conv.window.kernel[0],
                                   conv.window.kernel[1]));
    }
    if (operands.size() == 3 &&
        (operands[2].shape.rank() != 1 || operands[2].shape[0] != weight[0])) {
        return Invalid(fmt::format("a bias of shape {} does not match {} output channels",
                                   operands[2].shape.ToString(), weight[0]));
    }
    FORNAX_ASSIGN_OR_RETURN(const int64_t rows, WindowCount(conv.window, 0, x[2], false));
    FORNAX_ASSIGN_OR_RETURN(const int64_t columns, WindowCount(conv.window, 1, x[3], false));
    return MakeType(std::array<int64_t, 4>{x[0], weight[0], rows, columns});
}

Result<TensorType> Infer(const op::Pool& pool, Types operands) {
    const Shape& x = operands[0].shape;
    if (x.rank() != 4) {
        return Invalid(fmt::format("the input {} must have rank 4", x.ToString()));
    }
    for (size_t side = 0; side < 4; ++side) {
        // Every window must hold at least one element that is not padding.
        const size_t axis = side % 2;
        if (pool.window.pads[side] > pool.window.dilations[axis] * (pool.window.kernel[axis] - 1)) {
            return Invalid(fmt::format("padding by {} leaves a window of {} without any element",
                                       pool.window.pads[side], pool.window.kernel[axis]));
        }
    }
    FORNAX_ASSIGN_OR_RETURN(const int64_t rows, WindowCount(pool.window, 0, x[2], pool.ceil_mode));
    FORNAX_ASSIGN_OR_RETURN(const int64_t columns,
                            WindowCount(pool.window, 1, x[3], pool.ceil_mode));
    return MakeType(std::array<int64_t, 4>{x[0], x[1], rows, columns});
}

Result<TensorType> Infer(const op::MatMul&, Types operands) {
    const Shape &a = operands[0].shape, &b = operands[1].shape;
    if (a.rank() < 2 || b.rank() < 2) {
        return Invalid(fmt::format("the operands {} and {} must have rank 2 or more", a.ToString(),
                                   b.ToString()));
    }
    const uint32_t rows = a[a.rank() - 2], columns = b[b.rank() - 1];
    if (a[a.rank() - 1] != b[b.rank() - 2]) {
        return Invalid(
            fmt::format("the inner dimensions of {} and {} differ", a.ToString(), b.ToString()));
    }
    if (operands.size() == 3 &&
        (operands[2].shape.rank() != 1 || operands[2].shape[0] != columns)) {
        return Invalid(fmt::format("a bias of shape {} does not match {} columns",
                                   operands[2].shape.ToString(), columns));
    }
    auto outer = [](const Shape& shape) {
        return Shape::Make(std::vector<int64_t>(shape.dims().begin(), shape.dims().end() - 2));
    };
    FORNAX_ASSIGN_OR_RETURN(const Shape outer_a, outer(a));
    FORNAX_ASSIGN_OR_RETURN(const Shape outer_b, outer(b));
    FORNAX_ASSIGN_OR_RETURN(const Shape batch, Broadcast(outer_a, outer_b));
    std::vector<int64_t> dims(batch.dims().begin(), batch.dims().end());
    dims.push_back(rows);
    dims.push_back(columns);
    return MakeType(dims);
}

Result<TensorType> Infer(const op::Unary&, Types operands) {
    return operands[0];
}

Result<TensorType> Infer(const op::Binary&, Types operands) {
    FORNAX_ASSIGN_OR_RETURN(Shape shape, Broadcast(operands[0].shape, operands[1].shape));
    return TensorType{DataType::kF32, std::move(shape)};
}

Result<TensorType> Infer(const op::Softmax& softmax, Types operands) {
    FORNAX_RETURN_IF_ERROR(ResolveAxis(softmax.axis, operands[0].shape.rank()));
    return operands[0];
}

Result<TensorType> Infer(const op::Reduce& reduce, Types operands) {
    const Shape& x = operands[0].shape;
    if (reduce.axes < 1 || reduce.axes > x.rank() || reduce.first_axis > x.rank() - reduce.axes) {
        return Invalid(fmt::format("axes {} to {} are outside a tensor of rank {}",
                                   reduce.first_axis, uint64_t{reduce.first_axis} + reduce.axes,
                                   x.rank()));
    }
    std::vector<int64_t> dims(x.dims().begin(), x.dims().end());
    std::fill_n(dims.begin() + reduce.first_axis, reduce.axes, 1);
    return MakeType(dims);
}

Result<TensorType> Infer(const op::Reshape& reshape, Types operands) {
    if (reshape.shape.elements() != operands[0].shape.elements()) {
        return Invalid(fmt::format("{} cannot be reshaped to {}: {} elements against {}",
                                   operands[0].shape.ToString(), reshape.shape.ToString(),
                                   operands[0].shape.elements(), reshape.shape.elements()));
    }
    return TensorType{operands[0].type, reshape.shape};
}

Result<TensorType> Infer(const op::Transpose& transpose, Types operands) {
    const Shape& x = operands[0].shape;
    std::vector<uint32_t> sorted = transpose.permutation;
    std::sort(sorted.begin(), sorted.end());
    bool valid = sorted.size() == x.rank();
    for (size_t i = 0; valid && i < sorted.size(); ++i) {
        valid = sorted[i] == i;
    }
    if (!valid) {
        return Invalid(fmt::format("[{}] is not a permutation of the axes of a tensor of rank {}",
                                   fmt::join(transpose.permutation, ","), x.rank()));
    }
    std::vector<int64_t> dims;
    for (uint32_t axis : transpose.permutation) {
        dims.push_back(x[axis]);
    }
    FORNAX_ASSIGN_OR_RETURN(Shape shape, Shape::Make(dims));
    return TensorType{operands[0].type, std::move(shape)};
}

Result<TensorType> Infer(const op::Concat& concat, Types operands) {
    const Shape& first = operands[0].shape;
    FORNAX_RETURN_IF_ERROR(ResolveAxis(concat.axis, first.rank()));
    std::vector<int64_t> dims(first.dims().begin(), first.dims().end());
    for (const TensorType& operand : operands.subspan(1)) {
        const Shape& shape = operand.shape;
        bool fits = shape.rank() == first.rank();
        for (size_t axis = 0; fits && axis < shape.rank(); ++axis) {
            fits = axis == concat.axis || shape[axis] == first[axis];
        }
        if (!fits) {
            return Invalid(fmt::format("{} and {} cannot be joined along axis {}", first.ToString(),
                                       shape.ToString(), concat.axis));
        }
        dims[concat.axis] += shape[concat.axis];
    }
    return MakeType(dims);
}

}  // namespace

Result<TensorType> InferType(const Operator& operation, Types operands) {
    return std::visit(
        [&](const auto& alternative) -> Result<TensorType> {
            if (operands.size() < alternative.kMinOperands ||
                operands.size() > alternative.kMaxOperands) {
                return Invalid(fmt::format("{} operands are not in {}..{}", operands.size(),
                                           alternative.kMinOperands, alternative.kMaxOperands));
            }
            // Only data movement is defined for integers.
            using T = std::decay_t<decltype(alternative)>;
            if constexpr (!std::is_same_v<T, op::Reshape> && !std::is_same_v<T, op::Transpose>) {
                FORNAX_RETURN_IF_ERROR(CheckFloat(operands));
            }
            return Infer(alternative, operands);
        },
        operation);
}

}  // namespace fornax::legacy_graph
