// What the interpreter's families of primitives share: limits, new tensors, walks over elements.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/graph/ir/operation.h"
#include "compiler/graph/ir/types.h"

namespace fornax::graph::interpret {

using Dims = std::vector<int64_t>;

// What one run may use, and has used.
struct Budget {
    uint64_t max_bytes = 0;
    uint64_t max_steps = 0;
    uint64_t live_bytes = 0;
    uint64_t steps = 0;

    Status Spend(uint64_t more_steps);
    // Whether `bytes` more may be allocated.
    Status Check(uint64_t bytes) const;
};

// A tensor that is being written. Strings are in `strings`, everything else in `data`.
struct NewTensor {
    Tensor tensor;
    uint8_t* data = nullptr;
    std::vector<std::string>* strings = nullptr;
};

// The sizes and the budget that a node is evaluated with.
struct Context {
    const Bindings& bindings;
    Budget& budget;

    Result<int64_t> Size(const Expr& expr) const;
    Result<Dims> Sizes(std::span<const Expr> exprs) const;
    // A tensor of zeros, or of empty strings.
    Result<NewTensor> Allocate(ElementType element, Dims dims) const;
};

Error Invalid(std::string message);
// "[2,3]".
std::string ToString(const Dims& dims);
uint64_t SizeInBytes(const Tensor& tensor);
// The number of elements, or an error if it is negative or too great.
Result<int64_t> CountElements(const Dims& dims);
Status CheckSameDims(std::span<const Tensor> tensors);

// Distances between neighbours along each axis, in elements.
std::vector<int64_t> RowMajorStrides(const Dims& dims);

// Visits all positions of `dims` in row-major order, and keeps the offset that strides give each.
//   for (Walk walk(dims, strides); walk.valid(); walk.Next())
class Walk {
  public:
    Walk(std::span<const int64_t> dims, std::span<const int64_t> strides, int64_t offset = 0);
    bool valid() const { return valid_; }
    int64_t offset() const { return offset_; }
    std::span<const int64_t> position() const { return position_; }
    void Next();

  private:
    std::span<const int64_t> dims_, strides_;
    std::vector<int64_t> position_;
    int64_t offset_;
    bool valid_ = true;
};

// Where elements lie in a tensor: that at position p at offset + sum of p[i] * strides[i].
struct Layout {
    int64_t offset = 0;
    std::vector<int64_t> strides;
};

// to[p] = from[p] for each position p of `dims`. Both have one element type.
void CopyElements(const Tensor& from,
                  const Layout& from_layout,
                  NewTensor& to,
                  const Layout& to_layout,
                  const Dims& dims);
// Copies one element; indices in elements.
void CopyElement(const Tensor& from, int64_t from_index, NewTensor& to, int64_t to_index);

// Combines elements of one type as reductions do: floats in double, rounded at the end.
class Accumulator {
  public:
    Accumulator(Combine combine, ElementType type);
    void Add(const Scalar& value);
    Scalar value() const;

  private:
    Combine combine_;
    ElementType type_;
    bool in_double_;
    Scalar total_;
};

using Tensors = std::vector<Tensor>;
using Operands = std::span<const Tensor>;

Result<Tensor> Evaluate(const op::Map& map, Operands operands, const Context& context);
Result<Tensor> Evaluate(const op::Cast& cast, Operands operands, const Context& context);
Result<Tensor> Evaluate(const op::Bitcast& cast, Operands operands, const Context& context);
Result<Tensor> Evaluate(const op::Reduce& reduce, Operands operands, const Context& context);
Result<Tensor> Evaluate(const op::ArgReduce& reduce, Operands operands, const Context& context);
Result<Tensor> Evaluate(const op::Scan& scan, Operands operands, const Context& context);
Result<Tensors> Evaluate(const op::Sort& sort, Operands operands, const Context& context);
Result<Tensor> Evaluate(const op::Reshape& reshape, Operands operands, const Context& context);
Result<Tensor> Evaluate(const op::Permute& permute, Operands operands, const Context& context);
Result<Tensor> Evaluate(const op::Broadcast& broadcast, Operands operands, const Context& context);
Result<Tensor> Evaluate(const op::Slice& slice, Operands operands, const Context& context);
Result<Tensor> Evaluate(const op::Pad& pad, Operands operands, const Context& context);
Result<Tensor> Evaluate(const op::Window& window, Operands operands, const Context& context);
Result<Tensor> Evaluate(const op::Concat& concat, Operands operands, const Context& context);
Result<Tensor> Evaluate(const op::Gather& gather, Operands operands, const Context& context);
Result<Tensor> Evaluate(const op::Scatter& scatter, Operands operands, const Context& context);
Result<Tensor> Evaluate(const op::Contract& contract, Operands operands, const Context& context);
Result<Tensor> Evaluate(const op::Iota& iota, Operands operands, const Context& context);
Result<Tensor> Evaluate(const op::SizeOf& size, Operands operands, const Context& context);
Result<Tensor> Evaluate(const op::RandomBits& random, Operands operands, const Context& context);

}  // namespace fornax::graph::interpret
