// The primitives of the graph IR, one structure each, and the variant that a node holds.
//
// There are few on purpose: a frontend's operators are built from these by build/, everything
// behind the graph knows only these. A structure's fields are listed once, in Visit(), from which
// printing, parsing, hashing and comparing follow. To add a primitive: its structure and its line
// in the variant here, its rule in infer.cpp, its value in interpret/, and what it becomes in
// loop/.
//
// Broadcasting is never implicit: operands of Map have one shape, and Broadcast is a view that
// costs nothing.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "compiler/graph/ir/scalar_function.h"
#include "compiler/graph/ir/types.h"

namespace fornax::graph {

using Axes = std::vector<int64_t>;

// What composites and host calls carry for whoever recognises them.
using Attribute = std::variant<int64_t,
                               double,
                               std::string,
                               std::vector<int64_t>,
                               std::vector<double>,
                               std::vector<std::string>>;
using Attributes = std::map<std::string, Attribute>;

namespace op {

// --- Elementwise ---------------------------------------------------------------------------------

// One scalar function on one to three operands of one shape.
struct Map {
    static constexpr std::string_view kName = "map";
    ScalarFunction function = ScalarFunction::kNeg;
    static void Visit(auto& v, auto& s) { v("function", s.function); }
};

// Conversion to another element type, as ConvertScalar.
struct Cast {
    static constexpr std::string_view kName = "cast";
    ElementType to = ElementType::kF32;
    Overflow overflow = Overflow::kSpecial;
    Rounding rounding = Rounding::kNearestEven;
    static void Visit(auto& v, auto& s) {
        v("to", s.to);
        v("overflow", s.overflow);
        v("rounding", s.rounding);
    }
};

// The same bits as another element type of the same width.
struct Bitcast {
    static constexpr std::string_view kName = "bitcast";
    ElementType to = ElementType::kU32;
    static void Visit(auto& v, auto& s) { v("to", s.to); }
};

// --- Along axes ----------------------------------------------------------------------------------

// Combines the elements along `axes`, which the result lacks. Not kReplace. An empty axis gives the
// neutral element. Floats are summed in f32 or wider, in any order.
struct Reduce {
    static constexpr std::string_view kName = "reduce";
    Combine combine = Combine::kSum;
    Axes axes;  // ascending
    static void Visit(auto& v, auto& s) {
        v("combine", s.combine);
        v("axes", s.axes);
    }
};

// The i64 position along `axis`, which the result lacks, of the greatest or least element: of the
// first such, or of the last. NaN counts as greatest and as least.
struct ArgReduce {
    static constexpr std::string_view kName = "arg_reduce";
    Combine combine = Combine::kMax;  // or kMin
    int64_t axis = 0;
    bool last = false;
    static void Visit(auto& v, auto& s) {
        v("combine", s.combine);
        v("axis", s.axis);
        v("last", s.last);
    }
};

// Element i of the result combines elements 0..i along `axis`; exclusive: 0..i-1; reverse: from the
// end.
struct Scan {
    static constexpr std::string_view kName = "scan";
    Combine combine = Combine::kSum;
    int64_t axis = 0;
    bool exclusive = false;
    bool reverse = false;
    static void Visit(auto& v, auto& s) {
        v("combine", s.combine);
        v("axis", s.axis);
        v("exclusive", s.exclusive);
        v("reverse", s.reverse);
    }
};

// Results: the first `count` elements along `axis` in order, and their i64 positions. Equal
// elements keep their order; NaN is greater than every number.
struct Sort {
    static constexpr std::string_view kName = "sort";
    int64_t axis = 0;
    bool descending = false;
    Expr count;
    static void Visit(auto& v, auto& s) {
        v("axis", s.axis);
        v("descending", s.descending);
        v("count", s.count);
    }
};

// --- Views: they move no data --------------------------------------------------------------------

// The same elements in row-major order under another shape of the same volume.
struct Reshape {
    static constexpr std::string_view kName = "reshape";
    Shape shape;
    static void Visit(auto& v, auto& s) { v("shape", s.shape); }
};

// Axis i of the result is axis order[i] of the operand.
struct Permute {
    static constexpr std::string_view kName = "permute";
    Axes order;
    static void Visit(auto& v, auto& s) { v("order", s.order); }
};

// Repeats dimensions of 1; the rank stays.
struct Broadcast {
    static constexpr std::string_view kName = "broadcast";
    Shape shape;
    static void Visit(auto& v, auto& s) { v("shape", s.shape); }
};

// Element i along an axis of the result is element start + i * step of the operand, which must
// exist. Steps are not 0 and may be negative.
struct Slice {
    static constexpr std::string_view kName = "slice";
    std::vector<Expr> starts;
    std::vector<int64_t> steps;
    Shape shape;  // of the result
    static void Visit(auto& v, auto& s) {
        v("starts", s.starts);
        v("steps", s.steps);
        v("shape", s.shape);
    }
};

// Surrounds the operand with the second operand's one element: low and high, not negative, elements
// before and behind along each axis, and `interior` between neighbours.
struct Pad {
    static constexpr std::string_view kName = "pad";
    std::vector<Expr> low;
    std::vector<Expr> high;
    std::vector<int64_t> interior;
    static void Visit(auto& v, auto& s) {
        v("low", s.low);
        v("high", s.high);
        v("interior", s.interior);
    }
};

// Windows of `size` elements along `axis`: the axis becomes the window's number, and a last
// dimension is added, the place in the window: result[.., o, .., k] = operand[.., o * stride + k *
// dilation, ..]. There are floor((n - dilation * (size - 1) - 1) / stride) + 1 windows, or none.
struct Window {
    static constexpr std::string_view kName = "window";
    int64_t axis = 0;
    Expr size;
    int64_t stride = 1;
    int64_t dilation = 1;
    static void Visit(auto& v, auto& s) {
        v("axis", s.axis);
        v("size", s.size);
        v("stride", s.stride);
        v("dilation", s.dilation);
    }
};

// --- Several operands ----------------------------------------------------------------------------

struct Concat {
    static constexpr std::string_view kName = "concat";
    int64_t axis = 0;
    static void Visit(auto& v, auto& s) { v("axis", s.axis); }
};

// result[r] = data[c], where coordinate c[d] is r[sources[d]] if sources[d] >= 0, else the element
// of index operand -1 - sources[d] at r. Operands: data, then the index operands, integers of the
// result's shape. A coordinate outside of the data gives 0.
struct Gather {
    static constexpr std::string_view kName = "gather";
    std::vector<int64_t> sources;  // one per dimension of data
    Shape shape;                   // of the result
    static void Visit(auto& v, auto& s) {
        v("sources", s.sources);
        v("shape", s.shape);
    }
};

// A copy of data with data[c] = combine(data[c], updates[u]) for each u in row-major order, where c
// comes from u and the index operands as in Gather. Operands: data, updates, then the index
// operands, of the updates' shape. A coordinate outside of the data changes nothing.
struct Scatter {
    static constexpr std::string_view kName = "scatter";
    std::vector<int64_t> sources;
    Combine combine = Combine::kReplace;
    static void Visit(auto& v, auto& s) {
        v("sources", s.sources);
        v("combine", s.combine);
    }
};

// A product summed over labels, as einsum: every dimension has a label, dimensions of one label
// have one size, no label twice in one tensor. Labels that the result lacks are summed over; a
// label of the result is in an operand. Products and sums are computed in `accumulate`, which is
// the result's type.
struct Contract {
    static constexpr std::string_view kName = "contract";
    std::string a;       // "bik"
    std::string b;       // "bkj"
    std::string result;  // "bij"
    ElementType accumulate = ElementType::kF32;
    static void Visit(auto& v, auto& s) {
        v("a", s.a);
        v("b", s.b);
        v("result", s.result);
        v("accumulate", s.accumulate);
    }
};

// --- Sources -------------------------------------------------------------------------------------

// The position along `axis`; any numeric type.
struct Iota {
    static constexpr std::string_view kName = "iota";
    ElementType element = ElementType::kI64;
    Shape shape;
    int64_t axis = 0;
    static void Visit(auto& v, auto& s) {
        v("element", s.element);
        v("shape", s.shape);
        v("axis", s.axis);
    }
};

// The value of a size, an i64 without dimensions: how a kernel sees what a shape says.
struct SizeOf {
    static constexpr std::string_view kName = "size";
    Expr value;
    static void Visit(auto& v, auto& s) { v("value", s.value); }
};

// u32 random bits: Philox 4x32-10 of the key (the operand's two u32) and each element's number.
struct RandomBits {
    static constexpr std::string_view kName = "random_bits";
    Shape shape;
    static void Visit(auto& v, auto& s) { v("shape", s.shape); }
};

// --- Bodies --------------------------------------------------------------------------------------
// A body is a graph of its own, closed: what it needs are its inputs.

// A named operator with its meaning: the body computes the results from the operands. A kernel
// template may take it as it is; else the body is put in its place.
struct Composite {
    static constexpr std::string_view kName = "composite";
    std::string name;  // "softmax"
    Attributes attributes;
    static void Visit(auto& v, auto& s) {
        v("name", s.name);
        v("attributes", s.attributes);
    }
};

// Bodies: then, else. Operands: the condition, a bool without dimensions, then both bodies' inputs.
struct If {
    static constexpr std::string_view kName = "if";
    static void Visit(auto&, auto&) {}
};

// Operands: the greatest number of iterations (i64), whether to begin (bool), then the carried
// values, then what every iteration reads. The body: inputs (i64 iteration, carried..., read...),
// outputs (bool whether to go on, carried...). Results: the carried values at the end, of the types
// that they began with.
struct Loop {
    static constexpr std::string_view kName = "loop";
    int64_t carried = 0;
    static void Visit(auto& v, auto& s) { v("carried", s.carried); }
};

// An operator that runs on the host between dispatches. A dimension of a result may be a symbol
// that the call gives its value.
struct HostCall {
    static constexpr std::string_view kName = "host_call";
    std::string name;
    Attributes attributes;
    std::vector<TensorType> types;  // of the results
    static void Visit(auto& v, auto& s) {
        v("name", s.name);
        v("attributes", s.attributes);
        v("types", s.types);
    }
};

// --- State ---------------------------------------------------------------------------------------

// The named state's value now; reads and writes of one state keep their order.
struct ReadState {
    static constexpr std::string_view kName = "read_state";
    std::string state;
    TensorType type;
    static void Visit(auto& v, auto& s) {
        v("state", s.state);
        v("type", s.type);
    }
};

// Replaces the state's value by the operand; no result.
struct WriteState {
    static constexpr std::string_view kName = "write_state";
    std::string state;
    static void Visit(auto& v, auto& s) { v("state", s.state); }
};

}  // namespace op

using Operation = std::variant<op::Map,
                               op::Cast,
                               op::Bitcast,
                               op::Reduce,
                               op::ArgReduce,
                               op::Scan,
                               op::Sort,
                               op::Reshape,
                               op::Permute,
                               op::Broadcast,
                               op::Slice,
                               op::Pad,
                               op::Window,
                               op::Concat,
                               op::Gather,
                               op::Scatter,
                               op::Contract,
                               op::Iota,
                               op::SizeOf,
                               op::RandomBits,
                               op::Composite,
                               op::If,
                               op::Loop,
                               op::HostCall,
                               op::ReadState,
                               op::WriteState>;

// "reduce".
std::string_view Name(const Operation& operation);

template <typename T>
bool Is(const Operation& operation) {
    return std::holds_alternative<T>(operation);
}

}  // namespace fornax::graph
