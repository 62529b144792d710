// Shapes and types of tensors, and tensors on the host.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/graph/ir/element_type.h"
#include "compiler/graph/ir/expr.h"

namespace fornax::graph {

// The greatest number of dimensions, and of elements of one tensor.
inline constexpr size_t kMaxRank = 16;
inline constexpr int64_t kMaxElements = int64_t{1} << 40;

// The dimensions of a tensor, outermost first. A dimension may be 0 and may be an expression.
class Shape {
  public:
    Shape() = default;
    Shape(std::initializer_list<Expr> dims) : dims_(dims) {}
    explicit Shape(std::vector<Expr> dims) : dims_(std::move(dims)) {}
    static Shape Of(std::span<const int64_t> dims);

    size_t rank() const { return dims_.size(); }
    const Expr& operator[](size_t axis) const { return dims_[axis]; }
    Expr& operator[](size_t axis) { return dims_[axis]; }
    std::span<const Expr> dims() const { return dims_; }
    std::vector<Expr>& mutable_dims() { return dims_; }

    // The number of elements.
    Expr Volume() const;
    // All dimensions, when none holds a symbol.
    std::optional<std::vector<int64_t>> Constants() const;
    bool operator==(const Shape&) const = default;
    std::string ToString() const;  // "[2,n + 1,8]"

  private:
    std::vector<Expr> dims_;
};

struct TensorType {
    ElementType element = ElementType::kF32;
    Shape shape;
    bool operator==(const TensorType&) const = default;
    std::string ToString() const;  // "f32[2,8]"
};

// Bytes that compare by their values.
class ByteSpan : public std::span<const uint8_t> {
  public:
    using std::span<const uint8_t>::span;
    ByteSpan(std::span<const uint8_t> bytes) : std::span<const uint8_t>(bytes) {}
    friend bool operator==(const ByteSpan& a, const ByteSpan& b) {
        return std::equal(a.begin(), a.end(), b.begin(), b.end());
    }
};

// Bytes that do not change, with a share in what keeps them alive: a vector, or a whole file of
// which they are a part. It is used like a pointer to a span; null holds nothing.
class Bytes {
  public:
    Bytes() = default;
    Bytes(std::nullptr_t) {}
    Bytes(std::shared_ptr<const std::vector<uint8_t>> vector) {
        if (vector != nullptr) {
            bytes_ = *vector;
            owner_ = std::move(vector);
        }
    }
    Bytes(std::shared_ptr<std::vector<uint8_t>> vector)
        : Bytes(std::shared_ptr<const std::vector<uint8_t>>(std::move(vector))) {}
    // `owner`, which is not null, keeps `bytes` alive and as they are.
    Bytes(ByteSpan bytes, std::shared_ptr<const void> owner)
        : bytes_(bytes), owner_(std::move(owner)) {}

    const ByteSpan& operator*() const { return bytes_; }
    const ByteSpan* operator->() const { return &bytes_; }
    explicit operator bool() const { return owner_ != nullptr; }
    bool operator==(std::nullptr_t) const { return owner_ == nullptr; }
    // Whether they are the same bytes in memory.
    bool operator==(const Bytes& other) const {
        return owner_ == other.owner_ && bytes_.data() == other.bytes_.data() &&
               bytes_.size() == other.bytes_.size();
    }
    void reset() { *this = nullptr; }
    // `size_bytes` of them from `offset` on, kept alive by the same owner.
    Bytes Part(size_t offset, size_t size_bytes) const {
        return {bytes_.subspan(offset, size_bytes), owner_};
    }

  private:
    ByteSpan bytes_;
    std::shared_ptr<const void> owner_;
};
using Strings = std::shared_ptr<const std::vector<std::string>>;

// A tensor on the host: elements in row-major order, as element_type.h says.
struct Tensor {
    ElementType element = ElementType::kF32;
    std::vector<int64_t> dims;
    Bytes data;       // null for strings
    Strings strings;  // of kString

    int64_t count() const;
    Scalar At(int64_t index) const {
        return ReadElement(element, data->data() + index * BytesOf(element));
    }
    TensorType type() const { return {element, Shape::Of(dims)}; }

    // A tensor whose elements are all 0 and may be written to through the second pointer until the
    // tensor is copied.
    static Tensor Zeros(ElementType element, std::vector<int64_t> dims, uint8_t** writable);
    static Tensor FromFloats(std::vector<int64_t> dims, std::span<const float> values);
    static Tensor FromIntegers(std::vector<int64_t> dims, std::span<const int64_t> values);
};

}  // namespace fornax::graph
