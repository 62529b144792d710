// Element types, shapes and tensor types of the graph IR.
//
// A Shape can only be built within limits, so later stages never meet a dimension of zero, a rank
// or an element count that overflows their arithmetic: frontends turn untrusted dimensions into
// Shapes here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fornax::legacy_graph {

enum class DataType : uint8_t {
    kF32,
    kI64,  // shapes and indices known when the graph is compiled; no kernel computes with it
};
inline constexpr DataType kLastDataType = DataType::kI64;

uint32_t SizeBytes(DataType type);
std::string_view Name(DataType type);

// Dimensions of a tensor, outermost first, row-major. Rank 0 is a scalar.
class Shape {
  public:
    static constexpr size_t kMaxRank = 6;
    static constexpr int64_t kMaxElements = int64_t{1} << 30;

    Shape() = default;

    // Fails unless 1 <= every dimension, rank <= kMaxRank and the product <= kMaxElements.
    static Result<Shape> Make(std::span<const int64_t> dims);

    size_t rank() const { return dims_.size(); }
    uint32_t operator[](size_t axis) const { return dims_[axis]; }
    std::span<const uint32_t> dims() const { return dims_; }
    // The product of all dimensions; 1 for a scalar.
    uint32_t elements() const { return ElementsBetween(0, rank()); }
    // The product of the dimensions [first, last).
    uint32_t ElementsBetween(size_t first, size_t last) const;

    // "2x3x4"; "scalar" for rank 0.
    std::string ToString() const;

    bool operator==(const Shape&) const = default;

  private:
    std::vector<uint32_t> dims_;
};

// The shape that two operands broadcast to (ONNX and NumPy rules: align at the right, 1 stretches).
Result<Shape> Broadcast(const Shape& a, const Shape& b);

// For each axis of `result`, how many elements lie between neighbours along it in `operand`, which
// broadcasts to `result`: 0 where it is repeated.
std::vector<uint32_t> BroadcastStrides(const Shape& operand, const Shape& result);

// Resolves an axis that counts from the end when negative. Fails outside [-rank, rank).
Result<uint32_t> ResolveAxis(int64_t axis, size_t rank);

struct TensorType {
    DataType type = DataType::kF32;
    Shape shape;

    uint64_t size_bytes() const { return uint64_t{shape.elements()} * SizeBytes(type); }
    // "f32[2x3x4]"
    std::string ToString() const;

    bool operator==(const TensorType&) const = default;
};

}  // namespace fornax::legacy_graph
