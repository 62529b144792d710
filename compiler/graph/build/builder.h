// Builds a graph from primitives: what every frontend and every decomposition is written with.
//
// A Val is a value of the graph that is being built. Functions of Vals broadcast as numpy does and
// add the views that this takes; they throw BuildError where operands do not fit. Small constants
// are folded at once. Of small integer tensors the builder remembers the elements as expressions of
// sizes, so that a shape that a model computes stays symbolic.
//
// The operators of neural networks are functions of Vals in the other headers of this folder.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/graph/build/build_error.h"
#include "compiler/graph/ir/graph.h"

namespace fornax::graph {

class Builder;

// A value and its builder, or nothing (an operand that is left out).
class Val {
  public:
    Val() = default;
    Val(Builder& builder, ValueId id) : builder_(&builder), id_(id) {}

    explicit operator bool() const { return builder_ != nullptr; }
    Builder& builder() const { return *builder_; }
    ValueId id() const { return id_; }

    // Copies, because the graph's tables move as it grows.
    TensorType type() const;
    ElementType element() const;
    Shape shape() const { return type().shape; }
    int64_t rank() const;
    // Negative axes count from the end; fails for others than -rank..rank-1.
    Expr dim(int64_t axis) const;

  private:
    Builder* builder_ = nullptr;
    ValueId id_;
};

using Vals = std::vector<Val>;
// Builds a body from its inputs. An operand that was left out is a Val of nothing.
using BodyFunction = std::function<Vals(Builder& body, Vals inputs)>;

class Builder {
  public:
    explicit Builder(Graph& graph) : graph_(graph) {}
    Builder(const Builder&) = delete;
    Builder& operator=(const Builder&) = delete;

    Graph& graph() { return graph_; }
    SizeFacts& sizes() { return graph_.sizes(); }
    // The name of the nodes that are added from here on.
    void SetName(std::string name) { name_ = std::move(name); }
    const std::string& name() const { return name_; }

    // --- Sources ---
    Val Input(std::string name, TensorType type);
    Val Constant(Tensor tensor, std::string name = "");
    // One number without dimensions; `Integer` for values that a double does not hold.
    Val Scalar(ElementType element, double value);
    Val Integer(ElementType element, int64_t value);
    Val Text(std::string value);
    // i64 vectors.
    Val Integers(std::span<const int64_t> values);
    Val Sizes(std::span<const Expr> values);
    // A tensor of known elements, in row-major order.
    Val FromContents(ElementType element, const Shape& shape, std::span<const Expr> values);
    Val Size(const Expr& value);
    Val Full(ElementType element, const Shape& shape, double value);
    Val Iota(ElementType element, const Shape& shape, int64_t axis);
    Val RandomBits(Val key, const Shape& shape);

    // --- What is known of values ---
    // The elements of a small integer tensor, where they are constants or expressions of sizes.
    std::optional<std::vector<Expr>> KnownIntegers(Val value);
    // The value, if it can be computed now. Sizes and given inputs that it depends on become fixed.
    std::optional<Tensor> TryEvaluate(Val value);
    // As KnownIntegers or TryEvaluate; fails with a clause that calls the value `what`.
    std::vector<Expr> RequireSizes(Val value, std::string_view what);
    std::vector<int64_t> RequireIntegers(Val value, std::string_view what);
    std::vector<double> RequireNumbers(Val value, std::string_view what);
    int64_t RequireInteger(Val value, std::string_view what);
    // The constant that a value is, if it is one.
    const Tensor* ConstantOf(Val value) const;
    // Declares what an input's elements will be; asked for when something depends on it.
    void SetInputValue(std::function<std::optional<Tensor>(ValueId)> value) {
        input_value_ = std::move(value);
    }
    // From here on nothing is known of inputs; what was declared, to be declared again.
    std::function<std::optional<Tensor>(ValueId)> TakeInputValue() {
        return std::exchange(input_value_, nullptr);
    }

    // --- Nodes ---
    // Any primitive; folds what is constant.
    Vals Add(Operation operation, const Vals& operands, std::vector<Body> bodies = {});
    Val AddOne(Operation operation, const Vals& operands) {
        return Add(std::move(operation), operands)[0];
    }
    // The shape that numpy's rules give for these.
    Shape CommonShape(std::span<const Shape> shapes);
    Val Map(ScalarFunction function, Vals operands);
    // A composite with the body that `function` builds.
    Vals Composite(std::string name,
                   Attributes attributes,
                   const Vals& operands,
                   const BodyFunction& function);
    // The body's inputs are like the operands; nothing is known of the first `varying` of them.
    // For loops and branches: what has a size that only the body's host calls tell fails outside.
    Body MakeBody(const std::string& name,
                  const Vals& operands,
                  const BodyFunction& function,
                  size_t varying = 0);
    // A loop over i64 0..count-1; the function gets (iteration, carried..., read...) and returns
    // the carried values' next ones.
    Vals Loop(Val count, const Vals& carried, const Vals& read, const BodyFunction& function);
    Vals HostCall(std::string name,
                  Attributes attributes,
                  const Vals& operands,
                  std::vector<TensorType> types);
    // A new symbol for a dimension that only running tells.
    Expr UnknownSize(std::string_view what, int64_t hint, Range range);

    // An axis from 0 on; fails for others than -rank..rank-1.
    static int64_t Axis(int64_t axis, int64_t rank);
    static std::vector<int64_t> AxesOf(std::span<const int64_t> axes, int64_t rank);

  private:
    friend class Val;
    void Fold(NodeId node);
    Body BuildBody(const std::string& name,
                   const Vals& operands,
                   const BodyFunction& function,
                   size_t varying);
    void RequireVisibleSizes(const TensorType& type) const;
    bool IsFoldable(const Node& node, std::vector<Tensor>& operands) const;
    std::optional<std::vector<Expr>> ContentsOf(const Node& node);

    Graph& graph_;
    std::string name_;
    std::map<ValueId, std::vector<Expr>> contents_;
    std::map<std::string, Val> sizes_;  // by the expression's text
    std::map<ValueId, Tensor> evaluated_;
    std::function<std::optional<Tensor>(ValueId)> input_value_;
    std::set<Symbol> hidden_sizes_;  // of host calls within the bodies of loops and branches
    int64_t unknown_sizes_ = 0;
    bool building_contents_ = false;
};

// --- Elementwise ---------------------------------------------------------------------------------

#define FORNAX_SCALAR(name, text, arguments, result) FORNAX_SCALAR_##arguments(name)
#define FORNAX_SCALAR_1(name)                                 \
    inline Val name(Val a) {                                  \
        return a.builder().Map(ScalarFunction::k##name, {a}); \
    }
#define FORNAX_SCALAR_2(name)                                    \
    inline Val name(Val a, Val b) {                              \
        return a.builder().Map(ScalarFunction::k##name, {a, b}); \
    }
#define FORNAX_SCALAR_3(name)                                       \
    inline Val name(Val a, Val b, Val c) {                          \
        return a.builder().Map(ScalarFunction::k##name, {a, b, c}); \
    }
namespace map {
#include "compiler/graph/ir/scalar_functions.def"
}
#undef FORNAX_SCALAR
#undef FORNAX_SCALAR_1
#undef FORNAX_SCALAR_2
#undef FORNAX_SCALAR_3

// A number of the value's element type.
Val Like(Val value, double number);

inline Val operator+(Val a, Val b) {
    return map::Add(a, b);
}
inline Val operator-(Val a, Val b) {
    return map::Sub(a, b);
}
inline Val operator*(Val a, Val b) {
    return map::Mul(a, b);
}
inline Val operator/(Val a, Val b) {
    return map::Div(a, b);
}
inline Val operator+(Val a, double b) {
    return a + Like(a, b);
}
inline Val operator-(Val a, double b) {
    return a - Like(a, b);
}
inline Val operator*(Val a, double b) {
    return a * Like(a, b);
}
inline Val operator/(Val a, double b) {
    return a / Like(a, b);
}
inline Val operator+(double a, Val b) {
    return Like(b, a) + b;
}
inline Val operator-(double a, Val b) {
    return Like(b, a) - b;
}
inline Val operator*(double a, Val b) {
    return Like(b, a) * b;
}
inline Val operator/(double a, Val b) {
    return Like(b, a) / b;
}
inline Val operator-(Val a) {
    return map::Neg(a);
}
inline Val Less(Val a, double b) {
    return map::Less(a, Like(a, b));
}
inline Val LessEqual(Val a, double b) {
    return map::LessEqual(a, Like(a, b));
}
inline Val Greater(Val a, Val b) {
    return map::Less(b, a);
}
inline Val Greater(Val a, double b) {
    return map::Less(Like(a, b), a);
}
inline Val GreaterEqual(Val a, Val b) {
    return map::LessEqual(b, a);
}
inline Val GreaterEqual(Val a, double b) {
    return map::LessEqual(Like(a, b), a);
}
inline Val Equal(Val a, double b) {
    return map::Equal(a, Like(a, b));
}
inline Val Max(Val a, double b) {
    return map::Max(a, Like(a, b));
}
inline Val Min(Val a, double b) {
    return map::Min(a, Like(a, b));
}
inline Val Where(Val condition, Val a, Val b) {
    return map::Select(condition, a, b);
}
inline Val And(Val a, Val b) {
    return map::And(a, b);
}
inline Val Or(Val a, Val b) {
    return map::Or(a, b);
}
inline Val Not(Val a) {
    return map::Not(a);
}

// The value itself where it has that type already.
Val Cast(Val value,
         ElementType to,
         Overflow overflow = Overflow::kSpecial,
         Rounding rounding = Rounding::kNearestEven);
Val Bitcast(Val value, ElementType to);

// --- Views ---------------------------------------------------------------------------------------

Val Reshape(Val value, const Shape& shape);
Val Permute(Val value, std::span<const int64_t> order);
Val Permute(Val value, std::initializer_list<int64_t> order);
// The axis `from` comes to be at `to`.
Val MoveAxis(Val value, int64_t from, int64_t to);
// Swaps the last two axes.
Val TransposeMatrix(Val value);
// To a shape that the value's is broadcast to by numpy's rules.
Val BroadcastTo(Val value, const Shape& shape);
// New dimensions of 1; axes count in the result.
Val Unsqueeze(Val value, std::span<const int64_t> axes);
Val Unsqueeze(Val value, int64_t axis);
Val Squeeze(Val value, std::span<const int64_t> axes);
Val Squeeze(Val value, int64_t axis);
Val Slice(Val value, std::vector<Expr> starts, std::vector<int64_t> steps, Shape shape);
// `count` elements from `start` along one axis.
Val SliceAxis(Val value, int64_t axis, const Expr& start, const Expr& count, int64_t step = 1);
// One element along an axis, which the result lacks.
Val Select(Val value, int64_t axis, const Expr& index);
Val Reverse(Val value, int64_t axis);
// Negative low and high cut.
Val Pad(Val value,
        Val with,
        std::vector<Expr> low,
        std::vector<Expr> high,
        std::vector<int64_t> interior = {});
Val Pad(Val value, double with, std::vector<Expr> low, std::vector<Expr> high);
Val Window(Val value, int64_t axis, const Expr& size, int64_t stride, int64_t dilation);
Val Concat(const Vals& values, int64_t axis);
// Values of one shape as the slices along a new axis.
Val Stack(const Vals& values, int64_t axis);
// The parts of these sizes along an axis.
Vals Split(Val value, int64_t axis, std::span<const Expr> sizes);
// Dimensions [from, to) become one.
Val Flatten(Val value, int64_t from, int64_t to);

// --- Along axes ----------------------------------------------------------------------------------

// Axes may be negative and in any order.
Val Reduce(Combine combine, Val value, std::span<const int64_t> axes, bool keep);
Val Reduce(Combine combine, Val value, std::initializer_list<int64_t> axes, bool keep);
Val Sum(Val value, std::initializer_list<int64_t> axes, bool keep = true);
Val Mean(Val value, std::span<const int64_t> axes, bool keep = true);
Val Mean(Val value, std::initializer_list<int64_t> axes, bool keep = true);
// Sums along all axes: a value without dimensions.
Val SumAll(Val value);
Val ArgReduce(Combine combine, Val value, int64_t axis, bool keep, bool last = false);
Val Scan(Combine combine, Val value, int64_t axis, bool exclusive = false, bool reverse = false);
struct Sorted {
    Val values;
    Val positions;  // i64
};
Sorted Sort(Val value, int64_t axis, bool descending, const Expr& count);

// --- Indices -------------------------------------------------------------------------------------

// op::Gather and op::Scatter; the indices are broadcast to the result's (the updates') shape.
Val Gather(Val data, std::vector<int64_t> sources, const Vals& indices, const Shape& shape);
Val Scatter(Val data,
            Val updates,
            std::vector<int64_t> sources,
            const Vals& indices,
            Combine combine = Combine::kReplace);

// --- Products ------------------------------------------------------------------------------------

// "bik,bkj->bij". The result is of type `accumulate`, that of the operands if they differ not and
// it is left out.
Val Contract(Val a,
             Val b,
             std::string_view labels,
             std::optional<ElementType> accumulate = std::nullopt);

}  // namespace fornax::graph
