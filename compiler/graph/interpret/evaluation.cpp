// Limits, new tensors and walks over elements for the interpreter.
#include "compiler/graph/interpret/evaluation.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace fornax::graph::interpret {

Error Invalid(std::string message) {
    return {ErrorCode::kInvalidArgument, std::move(message)};
}

std::string ToString(const Dims& dims) {
    return fmt::format("[{}]", fmt::join(dims, ","));
}

uint64_t SizeInBytes(const Tensor& tensor) {
    uint64_t bytes = tensor.data ? tensor.data->size() : 0;
    if (tensor.strings) {
        for (const std::string& text : *tensor.strings) {
            bytes += sizeof(std::string) + text.size();
        }
    }
    return bytes;
}

Status Budget::Spend(uint64_t more_steps) {
    if (more_steps > max_steps || steps > max_steps - more_steps) {
        return Error{ErrorCode::kTimeout,
                     fmt::format("{} steps more than the {} so far exceed the limit of {}",
                                 more_steps, steps, max_steps)};
    }
    steps += more_steps;
    return OkStatus();
}

Status Budget::Check(uint64_t bytes) const {
    if (bytes > max_bytes || live_bytes > max_bytes - bytes) {
        return Error{ErrorCode::kOutOfHostMemory,
                     fmt::format("{} bytes beside the {} in use exceed the limit of {}", bytes,
                                 live_bytes, max_bytes)};
    }
    return OkStatus();
}

Result<int64_t> CountElements(const Dims& dims) {
    int64_t count = 1;
    for (const int64_t dim : dims) {
        if (dim < 0) {
            return Invalid(fmt::format("the shape {} has a negative size", ToString(dims)));
        }
        // A size of 0 must not hide others whose product overflows.
        if (__builtin_mul_overflow(count, std::max<int64_t>(dim, 1), &count) ||
            count > kMaxElements) {
            return Invalid(fmt::format("the shape {} has more than {} elements", ToString(dims),
                                       kMaxElements));
        }
    }
    return std::find(dims.begin(), dims.end(), 0) == dims.end() ? count : 0;
}

Status CheckSameDims(std::span<const Tensor> tensors) {
    for (const Tensor& tensor : tensors) {
        if (tensor.dims != tensors[0].dims) {
            return Invalid(fmt::format("the operands' shapes are {} and {}",
                                       ToString(tensors[0].dims), ToString(tensor.dims)));
        }
    }
    return OkStatus();
}

Result<int64_t> Context::Size(const Expr& expr) const {
    const std::optional<int64_t> value = expr.Evaluate(bindings);
    if (!value) {
        return Invalid(fmt::format("the size {} has no value", expr.ToString()));
    }
    return *value;
}

Result<Dims> Context::Sizes(std::span<const Expr> exprs) const {
    Dims sizes;
    for (const Expr& expr : exprs) {
        FORNAX_ASSIGN_OR_RETURN(const int64_t size, Size(expr));
        sizes.push_back(size);
    }
    return sizes;
}

Result<NewTensor> Context::Allocate(ElementType element, Dims dims) const {
    FORNAX_ASSIGN_OR_RETURN(const int64_t count, CountElements(dims));
    const auto elements = static_cast<uint64_t>(count);
    const bool is_string = element == ElementType::kString;
    FORNAX_RETURN_IF_ERROR(
        budget.Check(elements * (is_string ? sizeof(std::string) : BytesOf(element))));
    FORNAX_RETURN_IF_ERROR(budget.Spend(elements));
    NewTensor result;
    if (is_string) {
        auto strings = std::make_shared<std::vector<std::string>>(elements);
        result.strings = strings.get();
        result.tensor = {element, std::move(dims), nullptr, std::move(strings)};
    } else {
        result.tensor = Tensor::Zeros(element, std::move(dims), &result.data);
    }
    return result;
}

std::vector<int64_t> RowMajorStrides(const Dims& dims) {
    std::vector<int64_t> strides(dims.size());
    int64_t stride = 1;
    for (size_t axis = dims.size(); axis-- > 0;) {
        strides[axis] = stride;
        stride *= std::max<int64_t>(dims[axis], 1);
    }
    return strides;
}

Walk::Walk(std::span<const int64_t> dims, std::span<const int64_t> strides, int64_t offset)
    : dims_(dims), strides_(strides), position_(dims.size(), 0), offset_(offset) {
    valid_ = std::find(dims.begin(), dims.end(), 0) == dims.end();
}

void Walk::Next() {
    for (size_t axis = dims_.size(); axis-- > 0;) {
        offset_ += strides_[axis];
        if (++position_[axis] < dims_[axis]) {
            return;
        }
        offset_ -= strides_[axis] * dims_[axis];
        position_[axis] = 0;
    }
    valid_ = false;
}

namespace {

template <size_t kBytes>
void CopyLine(const uint8_t* from, int64_t from_stride, uint8_t* to, int64_t to_stride, int64_t n) {
    constexpr auto kStep = static_cast<int64_t>(kBytes);
    for (int64_t i = 0; i < n; ++i) {
        std::memcpy(to + i * to_stride * kStep, from + i * from_stride * kStep, kBytes);
    }
}

void CopyLine(uint32_t bytes,
              const uint8_t* from,
              int64_t from_stride,
              uint8_t* to,
              int64_t to_stride,
              int64_t n) {
    if (from_stride == 1 && to_stride == 1) {
        std::memcpy(to, from, static_cast<size_t>(n) * bytes);
        return;
    }
    switch (bytes) {
        case 1:
            return CopyLine<1>(from, from_stride, to, to_stride, n);
        case 2:
            return CopyLine<2>(from, from_stride, to, to_stride, n);
        case 4:
            return CopyLine<4>(from, from_stride, to, to_stride, n);
        default:
            return CopyLine<8>(from, from_stride, to, to_stride, n);
    }
}

}  // namespace

void CopyElements(const Tensor& from,
                  const Layout& from_layout,
                  NewTensor& to,
                  const Layout& to_layout,
                  const Dims& dims) {
    // The last axis is a line; without axes, one element is.
    const size_t outer = dims.empty() ? 0 : dims.size() - 1;
    const int64_t line = dims.empty() ? 1 : dims[outer];
    const int64_t from_stride = dims.empty() ? 1 : from_layout.strides[outer];
    const int64_t to_stride = dims.empty() ? 1 : to_layout.strides[outer];
    if (line == 0) {
        return;
    }
    const std::span<const int64_t> lines(dims.data(), outer);
    const uint32_t bytes = BytesOf(from.element);
    Walk source(lines, from_layout.strides, from_layout.offset);
    Walk target(lines, to_layout.strides, to_layout.offset);
    for (; source.valid(); source.Next(), target.Next()) {
        if (to.strings != nullptr) {
            for (int64_t i = 0; i < line; ++i) {
                CopyElement(from, source.offset() + i * from_stride, to,
                            target.offset() + i * to_stride);
            }
        } else {
            CopyLine(bytes, from.data->data() + source.offset() * bytes, from_stride,
                     to.data + target.offset() * bytes, to_stride, line);
        }
    }
}

void CopyElement(const Tensor& from, int64_t from_index, NewTensor& to, int64_t to_index) {
    if (to.strings != nullptr) {
        (*to.strings)[static_cast<size_t>(to_index)] =
            (*from.strings)[static_cast<size_t>(from_index)];
        return;
    }
    const uint32_t bytes = BytesOf(from.element);
    std::memcpy(to.data + to_index * bytes, from.data->data() + from_index * bytes, bytes);
}

Accumulator::Accumulator(Combine combine, ElementType type)
    : combine_(combine), type_(type), total_(NeutralElement(combine, type)) {
    in_double_ = IsFloat(type) && (combine == Combine::kSum || combine == Combine::kProduct);
}

void Accumulator::Add(const Scalar& value) {
    if (!in_double_) {
        total_ = EvaluateCombine(combine_, type_, total_, value);
    } else if (combine_ == Combine::kSum) {
        total_.number += value.number;
    } else {
        total_.number *= value.number;
    }
}

Scalar Accumulator::value() const {
    return in_double_ ? Scalar::Float(RoundToType(total_.number, type_)) : total_;
}

}  // namespace fornax::graph::interpret
