// What the functions of the operators get: a node, its sources as values, its parameters.
#pragma once

#include <bit>
#include <string_view>

#include "compiler/frontends/ggml/graph.h"
#include "compiler/frontends/ggml/pack.h"
#include "compiler/graph/build/builder.h"

namespace fornax::ggml_frontend {

namespace map = graph::map;

class Importer;

// A node that is being imported.
class Node {
  public:
    Node(Importer& importer, const Tensor& tensor) : importer_(importer), tensor_(tensor) {}

    const Tensor& tensor() const { return tensor_; }
    graph::Builder& builder() const;
    // [i3, i2, i1, i0] of the result.
    graph::Shape shape() const;
    // The same, of a quantised result with the bytes of a row.
    graph::Shape memory_shape() const;

    bool has(size_t source) const;
    // Fails if the source is left out.
    const Tensor& source(size_t index) const;
    // A source as it lies in memory: of a quantised one the bytes.
    graph::Val Raw(size_t source) const;
    // A source's numbers as f32.
    graph::Val Float(size_t source) const;
    // A source of integers as i64.
    graph::Val Integer(size_t source) const;

    // The result's storage holds this behind the node: the operator writes its source too.
    void WriteSource(size_t source, graph::Val value) const;

    // Whether a source is a matrix of weights of which the graph may read a pack.
    bool IsPacked(size_t source) const;
    // Whether a source is one of the matrices that the graph multiplies by where they lie.
    bool IsInPlace(size_t source) const;
    // An input that is a part of the pack of a source's storage, of the element type and shape.
    graph::Val PackPart(size_t source,
                        Part part,
                        graph::ElementType element,
                        graph::Shape shape) const;

    int32_t integer(size_t parameter) const { return tensor_.parameters.at(parameter); }
    float number(size_t parameter) const {
        return std::bit_cast<float>(tensor_.parameters.at(parameter));
    }

  private:
    Importer& importer_;
    const Tensor& tensor_;
};

graph::Shape ShapeOf(const Tensor& tensor);
// Quantised tensors have bytes in the last dimension.
graph::Shape MemoryShape(const TypeInfo& type, const std::array<int64_t, kDims>& ne);
// The rows of a quantised tensor [.., bytes of a row] as f32 [.., elements].
graph::Val Decode(graph::Val bytes, const TypeInfo& type);
// The same as [rows, blocks of a row, elements of a block].
graph::Val DecodeBlocks(graph::Val bytes, const TypeInfo& type);
// Numbers [.., elements] as rows of a quantised type [.., bytes of a row], as ggml's reference
// converts them. Fails for types that are not written.
graph::Val Encode(graph::Val numbers, const TypeInfo& type);
// Repeats whole tensors until they have these dimensions, of which theirs are divisors.
graph::Val RepeatTo(graph::Val value, const graph::Shape& shape);

// The result, of the node's shape; its type may be another one than the node's.
using OperatorFunction = graph::Val (*)(const Node& node);
struct Operator {
    std::string_view name;
    OperatorFunction function;
};

// The tables of the families.
std::span<const Operator> ElementwiseOperators();
std::span<const Operator> ReductionOperators();
std::span<const Operator> RowOperators();
std::span<const Operator> AttentionOperators();
std::span<const Operator> ProductOperators();
std::span<const Operator> WindowOperators();
std::span<const Operator> TrainingOperators();
std::span<const Operator> PlaceOperators();
std::span<const Operator> ResizeOperators();
std::span<const Operator> RecurrentOperators();
std::span<const Operator> IndexerOperators();

}  // namespace fornax::ggml_frontend
