// Shapes: checked construction, broadcasting, printing.
#include "compiler/legacy_graph/types.h"

#include <algorithm>

#include <fmt/format.h>

namespace fornax::legacy_graph {

uint32_t SizeBytes(DataType type) {
    return type == DataType::kF32 ? 4 : 8;
}

std::string_view Name(DataType type) {
    return type == DataType::kF32 ? "f32" : "i64";
}

Result<Shape> Shape::Make(std::span<const int64_t> dims) {
    if (dims.size() > kMaxRank) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("a tensor of rank {} exceeds the greatest rank, {}", dims.size(),
                                 kMaxRank)};
    }
    Shape shape;
    int64_t elements = 1;
    for (int64_t dim : dims) {
        if (dim < 1) {
            return Error{ErrorCode::kUnsupported,
                         fmt::format("a dimension of {} is not at least 1", dim)};
        }
        if (dim > kMaxElements / elements) {
            return Error{ErrorCode::kUnsupported,
                         fmt::format("a tensor of {} elements or more exceeds the limit of {}",
                                     fmt::join(dims, "x"), kMaxElements)};
        }
        elements *= dim;
        shape.dims_.push_back(static_cast<uint32_t>(dim));
    }
    return shape;
}

uint32_t Shape::ElementsBetween(size_t first, size_t last) const {
    uint32_t elements = 1;
    for (size_t axis = first; axis < last; ++axis) {
        elements *= dims_[axis];
    }
    return elements;
}

std::string Shape::ToString() const {
    return dims_.empty() ? "scalar" : fmt::format("{}", fmt::join(dims_, "x"));
}

Result<Shape> Broadcast(const Shape& a, const Shape& b) {
    const size_t rank = std::max(a.rank(), b.rank());
    std::vector<int64_t> dims(rank);
    for (size_t i = 0; i < rank; ++i) {  // from the innermost axis outwards
        const uint32_t x = i < a.rank() ? a[a.rank() - 1 - i] : 1;
        const uint32_t y = i < b.rank() ? b[b.rank() - 1 - i] : 1;
        if (x != y && x != 1 && y != 1) {
            return Error{
                ErrorCode::kInvalidArgument,
                fmt::format("the shapes {} and {} do not broadcast", a.ToString(), b.ToString())};
        }
        dims[rank - 1 - i] = std::max(x, y);
    }
    return Shape::Make(dims);
}

std::vector<uint32_t> BroadcastStrides(const Shape& operand, const Shape& result) {
    std::vector<uint32_t> strides(result.rank(), 0);
    const size_t missing = result.rank() - operand.rank();
    for (size_t axis = 0; axis < operand.rank(); ++axis) {
        if (operand[axis] > 1) {
            strides[missing + axis] = operand.ElementsBetween(axis + 1, operand.rank());
        }
    }
    return strides;
}

Result<uint32_t> ResolveAxis(int64_t axis, size_t rank) {
    const auto signed_rank = static_cast<int64_t>(rank);
    if (axis < -signed_rank || axis >= signed_rank) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("axis {} is outside a tensor of rank {}", axis, rank)};
    }
    return static_cast<uint32_t>(axis < 0 ? axis + signed_rank : axis);
}

std::string TensorType::ToString() const {
    return fmt::format("{}[{}]", Name(type), shape.ToString());
}

}  // namespace fornax::legacy_graph
