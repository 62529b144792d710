// The operators of the graph IR: one structure each, and the variant of all of them.
//
// An operator's structure holds its parameters, never its operands. It names itself, says how many
// operands it takes, and shows its parameters to a visitor through Fields(), from which the text
// dump, the hash and comparison come. To add one: add the structure and its name in Operator here,
// then the compiler asks for an Infer overload (shape_inference.cpp) and a Lower overload
// (lowering/); frontends map to it in their tables.
//
// Frontends lower what they can to these few: a Gemm becomes MatMul, a batch normalisation Mul and
// Add.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler/legacy_graph/types.h"

namespace fornax::legacy_graph {

// A function of one value. The numbers are those of shaders/include/unary.glsl.
enum class UnaryFunction : uint32_t {
    kIdentity = 0,
    kRelu = 1,
    kClip = 2,  // min(max(x, a), b)
    kSigmoid = 3,
    kTanh = 4,
    kExp = 5,
    kSqrt = 6,
    kNegate = 7,
    kAbs = 8,
    kErf = 9,
    kLeakyRelu = 10,  // x < 0 ? a * x : x
    kLog = 11,
    kReciprocal = 12,
    kSilu = 13,  // x * sigmoid(x)
};
inline constexpr UnaryFunction kLastUnaryFunction = UnaryFunction::kSilu;
std::string_view Name(UnaryFunction function);

// A function of two values. The numbers are those of shaders/binary.comp.
enum class BinaryFunction : uint32_t {
    kAdd = 0,
    kSub = 1,
    kMul = 2,
    kDiv = 3,
    kMax = 4,
    kMin = 5,
    kPow = 6,
};
inline constexpr BinaryFunction kLastBinaryFunction = BinaryFunction::kPow;
std::string_view Name(BinaryFunction function);

// A unary function with its parameters; fused behind other operators it is their activation.
struct Activation {
    UnaryFunction function = UnaryFunction::kIdentity;
    float a = 0;
    float b = 0;

    bool operator==(const Activation&) const = default;
};

// Where windows lie on a plane of [height, width].
struct Window {
    std::array<uint32_t, 2> kernel = {1, 1};
    std::array<uint32_t, 2> strides = {1, 1};
    std::array<uint32_t, 2> dilations = {1, 1};
    std::array<uint32_t, 4> pads = {0, 0, 0, 0};  // top, left, bottom, right

    bool operator==(const Window&) const = default;
};

namespace op {

// Operands x [N,C,H,W], weight [M,C/group,KH,KW], optional bias [M]. Result [N,M,OH,OW].
struct Conv {
    static constexpr std::string_view kName = "conv";
    static constexpr size_t kMinOperands = 2, kMaxOperands = 3;
    Window window;
    uint32_t group = 1;
    Activation activation;

    void Fields(auto&& visit) const {
        visit("window", window);
        visit("group", group);
        visit("activation", activation);
    }
    bool operator==(const Conv&) const = default;
};

enum class PoolKind : uint32_t { kMax = 0, kAverage = 1 };

// Operand x [N,C,H,W]. Result [N,C,OH,OW].
struct Pool {
    static constexpr std::string_view kName = "pool";
    static constexpr size_t kMinOperands = 1, kMaxOperands = 1;
    PoolKind kind = PoolKind::kMax;
    Window window;
    bool ceil_mode = false;  // a last window may begin inside and end outside of the padded plane
    bool count_include_pad = false;  // an average counts padding as zeros

    void Fields(auto&& visit) const {
        visit("kind", static_cast<uint32_t>(kind));
        visit("window", window);
        visit("ceil_mode", static_cast<uint32_t>(ceil_mode));
        visit("count_include_pad", static_cast<uint32_t>(count_include_pad));
    }
    bool operator==(const Pool&) const = default;
};

// Operands a [...,M,K], b [...,K,N], optional bias [N] (then b has rank 2 or more as a). The outer
// dimensions broadcast. Result [...,M,N].
struct MatMul {
    static constexpr std::string_view kName = "matmul";
    static constexpr size_t kMinOperands = 2, kMaxOperands = 3;
    Activation activation;

    void Fields(auto&& visit) const { visit("activation", activation); }
    bool operator==(const MatMul&) const = default;
};

struct Unary {
    static constexpr std::string_view kName = "unary";
    static constexpr size_t kMinOperands = 1, kMaxOperands = 1;
    Activation activation;

    void Fields(auto&& visit) const { visit("activation", activation); }
    bool operator==(const Unary&) const = default;
};

// Operands broadcast.
struct Binary {
    static constexpr std::string_view kName = "binary";
    static constexpr size_t kMinOperands = 2, kMaxOperands = 2;
    BinaryFunction function = BinaryFunction::kAdd;
    Activation activation;

    void Fields(auto&& visit) const {
        visit("function", function);
        visit("activation", activation);
    }
    bool operator==(const Binary&) const = default;
};

// Normalises along one axis.
struct Softmax {
    static constexpr std::string_view kName = "softmax";
    static constexpr size_t kMinOperands = 1, kMaxOperands = 1;
    uint32_t axis = 0;

    void Fields(auto&& visit) const { visit("axis", axis); }
    bool operator==(const Softmax&) const = default;
};

enum class ReduceKind : uint32_t { kSum = 0, kMean = 1, kMax = 2, kMin = 3 };
inline constexpr ReduceKind kLastReduceKind = ReduceKind::kMin;
std::string_view Name(ReduceKind kind);

// Reduces the adjacent axes [first_axis, first_axis + axes) to dimensions of 1.
struct Reduce {
    static constexpr std::string_view kName = "reduce";
    static constexpr size_t kMinOperands = 1, kMaxOperands = 1;
    ReduceKind kind = ReduceKind::kSum;
    uint32_t first_axis = 0;
    uint32_t axes = 1;

    void Fields(auto&& visit) const {
        visit("kind", kind);
        visit("first_axis", first_axis);
        visit("axes", axes);
    }
    bool operator==(const Reduce&) const = default;
};

// The same elements in the same order under another shape; costs nothing.
struct Reshape {
    static constexpr std::string_view kName = "reshape";
    static constexpr size_t kMinOperands = 1, kMaxOperands = 1;
    Shape shape;

    void Fields(auto&& visit) const { visit("shape", shape); }
    bool operator==(const Reshape&) const = default;
};

// Result axis i is operand axis permutation[i].
struct Transpose {
    static constexpr std::string_view kName = "transpose";
    static constexpr size_t kMinOperands = 1, kMaxOperands = 1;
    std::vector<uint32_t> permutation;

    void Fields(auto&& visit) const { visit("permutation", permutation); }
    bool operator==(const Transpose&) const = default;
};

struct Concat {
    static constexpr std::string_view kName = "concat";
    static constexpr size_t kMinOperands = 1, kMaxOperands = 1024;
    uint32_t axis = 0;

    void Fields(auto&& visit) const { visit("axis", axis); }
    bool operator==(const Concat&) const = default;
};

}  // namespace op

using Operator = std::variant<op::Conv,
                              op::Pool,
                              op::MatMul,
                              op::Unary,
                              op::Binary,
                              op::Softmax,
                              op::Reduce,
                              op::Reshape,
                              op::Transpose,
                              op::Concat>;

std::string_view Name(const Operator& operation);

// The type of the result of `operation` on operands of the given types, or why they do not fit. The
// message is a clause without the node's name; callers put that in front.
Result<TensorType> InferType(const Operator& operation, std::span<const TensorType> operands);

}  // namespace fornax::legacy_graph
