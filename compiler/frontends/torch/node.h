// What the import function of one ATen operator sees: the node's arguments by the names of the
// operator's schema, and its results.
//
// To add an operator: its function in an import_*.cpp and its line in the table there. A function
// throws BuildError with a clause ("the axis 4 is not in -3..2"); the importer puts the file, the
// node and its line in front.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/graph/build/builder.h"

namespace fornax::torch_frontend {

namespace stored {
struct Argument;
struct Node;
}  // namespace stored

using graph::Builder;
using graph::ElementType;
using graph::Expr;
using graph::FailInvalid;
using graph::FailUnsupported;
using graph::Shape;
using graph::Tensor;
using graph::TensorType;
using graph::Val;
using graph::Vals;

// What references in arguments stand for.
class NodeScope {
  public:
    virtual ~NodeScope() = default;
    // Fails for what is no number of a value that is known.
    virtual Val ValueOf(uint32_t index) const = 0;
    virtual Expr SizeOf(uint32_t index) const = 0;
    virtual TensorType TypeOf(uint32_t index) const = 0;
};

// One operand of an arithmetic operator: a tensor, or a number of the program.
struct Operand {
    Val tensor;
    bool is_float = false;  // of a number
    bool is_bool = false;
    double number = 0;
    int64_t integer = 0;

    ElementType element() const;
};

class Node {
  public:
    Node(Builder& builder, const NodeScope& scope, const stored::Node& stored);

    std::string_view target() const;
    Builder& builder() const { return builder_; }

    // Arguments. Those that are None count as not there; what must be there and is not fails, as
    // what is of another kind does.
    bool Has(std::string_view name) const;
    Val In(std::string_view name) const;
    Val Opt(std::string_view name) const { return Has(name) ? In(name) : Val(); }
    Operand Number(std::string_view name) const;
    // The operand as a tensor of the type.
    Val As(std::string_view name, ElementType element) const;
    // Vals of nothing stand for None.
    Vals List(std::string_view name) const;
    Expr Size(std::string_view name) const;
    Expr Size(std::string_view name, const Expr& otherwise) const;
    // One size stands for a list of it.
    std::vector<Expr> Sizes(std::string_view name) const;
    // Symbols become what they are expected to be, with a guard.
    int64_t Int(std::string_view name) const;
    int64_t Int(std::string_view name, int64_t otherwise) const;
    std::vector<int64_t> Ints(std::string_view name) const;
    double Float(std::string_view name) const;
    double Float(std::string_view name, double otherwise) const;
    std::vector<double> Floats(std::string_view name) const;
    bool Bool(std::string_view name) const;
    bool Bool(std::string_view name, bool otherwise) const;
    std::string Text(std::string_view name, std::string_view otherwise) const;
    std::vector<bool> Bools(std::string_view name) const;
    // Axes of `x`; all if there are none or the list is empty.
    std::vector<int64_t> AxesOrAll(std::string_view name, Val x) const;

    // Results, of the types that the file says.
    size_t result_count() const;
    bool Wants(size_t index) const;
    TensorType ResultType(size_t index = 0) const;
    // Converts to the result's element type and checks the shape.
    void Out(Val value) { Out(0, value); }
    void Out(size_t index, Val value);
    const Vals& results() const { return results_; }

  private:
    const stored::Argument* Find(std::string_view name) const;
    const stored::Argument& Require(std::string_view name) const;
    Operand ReadNumber(std::string_view name, const stored::Argument& argument) const;
    Expr ReadSize(std::string_view name, const stored::Argument& argument) const;
    double ReadFloat(std::string_view name, const stored::Argument& argument) const;

    Builder& builder_;
    const NodeScope& scope_;
    const stored::Node& stored_;
    Vals results_;
};

using ImportFunction = void (*)(Node& node);

struct OperatorEntry {
    std::string_view name;  // without "aten.", but with any other namespace
    ImportFunction import = nullptr;
};

// The function of an overload "aten.add.Tensor", or null.
ImportFunction FindOperator(std::string_view target);

// The type that torch computes with operands of these types in.
ElementType Promote(std::span<const Operand> operands);
// An operand as a tensor of the type.
Val ToTensor(Builder& b, const Operand& operand, ElementType element);
// The element types as they are numbered in files; fails for others.
ElementType ElementOf(uint32_t number);

}  // namespace fornax::torch_frontend
