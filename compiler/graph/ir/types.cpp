// Shapes, tensor types and host tensors.
#include "compiler/graph/ir/types.h"

#include <cassert>
#include <cstring>

#include <fmt/format.h>

namespace fornax::graph {

Shape Shape::Of(std::span<const int64_t> dims) {
    return Shape(std::vector<Expr>(dims.begin(), dims.end()));
}

Expr Shape::Volume() const {
    Expr volume(1);
    for (const Expr& dim : dims_) {
        volume *= dim;
    }
    return volume;
}

std::optional<std::vector<int64_t>> Shape::Constants() const {
    std::vector<int64_t> constants;
    for (const Expr& dim : dims_) {
        if (!dim.is_constant()) {
            return std::nullopt;
        }
        constants.push_back(dim.constant_part());
    }
    return constants;
}

std::string Shape::ToString() const {
    std::string text = "[";
    for (size_t i = 0; i < dims_.size(); ++i) {
        text += (i == 0 ? "" : ",") + dims_[i].ToString();
    }
    return text + "]";
}

std::string TensorType::ToString() const {
    return fmt::format("{}{}", Name(element), shape.ToString());
}

int64_t Tensor::count() const {
    int64_t count = 1;
    for (const int64_t dim : dims) {
        count *= dim;
    }
    return count;
}

Tensor Tensor::Zeros(ElementType element, std::vector<int64_t> dims, uint8_t** writable) {
    Tensor tensor{element, std::move(dims), nullptr, nullptr};
    auto data = std::make_shared<std::vector<uint8_t>>(static_cast<size_t>(tensor.count()) *
                                                       BytesOf(element));
    *writable = data->data();
    tensor.data = std::move(data);
    return tensor;
}

Tensor Tensor::FromFloats(std::vector<int64_t> dims, std::span<const float> values) {
    uint8_t* data = nullptr;
    Tensor tensor = Zeros(ElementType::kF32, std::move(dims), &data);
    assert(static_cast<size_t>(tensor.count()) == values.size());
    if (!values.empty()) {
        std::memcpy(data, values.data(), values.size_bytes());
    }
    return tensor;
}

Tensor Tensor::FromIntegers(std::vector<int64_t> dims, std::span<const int64_t> values) {
    uint8_t* data = nullptr;
    Tensor tensor = Zeros(ElementType::kI64, std::move(dims), &data);
    assert(static_cast<size_t>(tensor.count()) == values.size());
    if (!values.empty()) {
        std::memcpy(data, values.data(), values.size_bytes());
    }
    return tensor;
}

}  // namespace fornax::graph
