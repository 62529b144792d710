// Loop kernels: what the scheduler makes of a group of graph nodes, and what SPIR-V is written
// from.
//
// A kernel is an iteration space, scalars computed at each of its points, and stores:
//
//     kernel softmax(in x: f32[n,128], out y: f32[n,128])
//       parallel $i0 < n, $i1 < 128
//       %0 = load x[$i0, $r0]
//       %1 = reduce max $r0 < 128 of %0
//       ...
//       store y[$i0, $i1] = %9
//
// Meaning: for every point of the parallel loops, in any order and at once, and there for every
// point of the sequential loops in order, all scalars are computed and then the stores happen one
// after the other. Scalars are pure but for loads from buffers that the kernel writes, which see
// what this point of the parallel loops stored in earlier iterations; no point may read what
// another one stores. scope.h says which variables a scalar depends on.
//
// A kernel may have phases instead of stores, for recurrences: a point of the parallel loops is
// then a group of invocations that shares local tensors and goes through the phases together:
//
//     kernel rnn(in x: f32[n,64], in r: f32[64,64], out y: f32[n,64])
//       local h: f32[2,64]
//       sequential $s0 < n
//       ...
//       before $i0 < 64                              once, before the sequential loops
//         store h[0, $i0] = %0
//       each $i1 < 64                                in each of their iterations; also: after
//         store h[mod($s0 + 1, 2), $i1] = %9
//         store y[$s0, $i1] = %9
//
// A phase stores at all points of its own loops, in any order and at once. What it stores to local
// tensors is seen by the group's later phases and iterations; no phase may read what it stores
// itself, but for what one and the same point does. What a local tensor holds before it is stored
// to is not defined.
//
// Every access is safe whatever a kernel says: an index outside of its dimension loads 0 (or
// `otherwise`) and stores nothing. The code that is made from a kernel leaves a check out only
// where the ranges of the index's symbols prove it. So kernels may come from files, and the
// footprint of a dispatch are the shapes of its buffers.
//
// Expressions use three kinds of symbols: the tensors' sizes by their names, and, beginning with
// '$', loop variables ("$i0", "$r3") and scalars used as an index ("$v7" is the integer scalar 7).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/strong_id.h"
#include "compiler/graph/ir/expr.h"
#include "compiler/graph/ir/scalar_function.h"
#include "compiler/graph/ir/types.h"

namespace fornax::graph::loop {

using BufferId = StrongId<struct LoopBufferTag>;
using ScalarId = StrongId<struct LoopScalarTag>;

// A tensor in row-major order, bound as storage buffer `BufferId` of set 0, or local to a group.
struct Buffer {
    std::string name;
    TensorType type;
    bool written = false;
};

struct Loop {
    Symbol variable;
    Expr extent;  // 0 <= variable < extent
};

// --- Scalars -------------------------------------------------------------------------------------

struct Load {
    BufferId buffer;
    std::vector<Expr> index;  // one per dimension of the buffer
    ScalarId otherwise;       // the value where an index is outside; if not valid: 0
};

// An integer expression as an i64 scalar.
struct Index {
    Expr value;
};

struct Constant {
    Scalar value;
};

// Whether 0 <= value < extent: a bool.
struct InRange {
    Expr value;
    Expr extent;
};

struct Map {
    ScalarFunction function = ScalarFunction::kNeg;
    std::vector<ScalarId> arguments;
};

struct Cast {
    ScalarId argument;
    Overflow overflow = Overflow::kSpecial;
    Rounding rounding = Rounding::kNearestEven;
};

struct Bitcast {
    ScalarId argument;
};

// The combination of `body` at all points of `loops`; the neutral element if there is none. Scalars
// that use a variable of `loops` exist inside only.
struct Reduce {
    Combine combine = Combine::kSum;
    std::vector<Loop> loops;
    ScalarId body;
};

// The first (or last) position in the loop of the greatest or least `body`: an i64, 0 if there is
// none. NaN is greater and less than every number.
struct ArgReduce {
    Combine combine = Combine::kMax;
    bool last = false;
    Loop loop;
    ScalarId body;
};

struct ScalarNode {
    // The value's type. f16, bf16 and narrower floats are computed in f32 and rounded by casts and
    // stores; integers wrap in their type.
    ElementType type = ElementType::kF32;
    std::variant<Constant, Load, Index, InRange, Map, Cast, Bitcast, Reduce, ArgReduce> value;
};

// --- Kernels -------------------------------------------------------------------------------------

struct Store {
    BufferId buffer;
    std::vector<Expr> index;
    ScalarId value;
    ScalarId condition;  // a bool; if not valid: always
};

// How the points of the parallel loops are distributed over invocations. It changes no result but
// for the order of floating-point sums, and keeps what in_place.h relies on.
enum class Mapping : uint8_t {
    kFlat,  // an invocation a point; reductions run in it one after the other
    kRow,   // a workgroup for each point of the first `row_loops` loops; its invocations share the
            // points of the others, and the reductions that do not depend on these
    kProduct,  // a sum of products (product.h): tiles for each workgroup; of few rows (few_rows.h,
               // few_dots.h), columns of all rows for each invocation or workgroup
    kAttention,  // tiles of scores (attention.h), which are not kept
};

// When a phase runs: before the sequential loops, in each iteration, or after them.
enum class When : uint8_t { kBefore, kEach, kAfter };

struct Phase {
    When when = When::kEach;
    std::vector<Loop> lanes;
    std::vector<Store> stores;
};

// The ids of local tensors begin here.
inline constexpr uint32_t kFirstLocal = 1U << 16;

struct Kernel {
    std::string name;
    std::vector<Buffer> buffers;
    std::vector<Buffer> locals;  // of constant shapes; id kFirstLocal + i
    std::vector<Loop> parallel;
    std::vector<Loop> sequential;
    std::vector<ScalarNode> scalars;  // operands come first
    std::vector<Store> stores;
    std::vector<Phase> phases;  // instead of stores, in the order of their `when`
    Mapping mapping = Mapping::kFlat;
    uint32_t row_loops = 0;
    Ranges sizes;  // of the symbols that are sizes

    const ScalarNode& operator[](ScalarId id) const { return scalars[id.value()]; }
    const Buffer& operator[](BufferId id) const {
        return IsLocal(id) ? locals[id.value() - kFirstLocal] : buffers[id.value()];
    }
    static bool IsLocal(BufferId id) { return id.value() >= kFirstLocal; }
};

// The symbols of sizes that the kernel's code takes as push constants, in the order of their names:
// u32 each.
std::vector<Symbol> SizeSymbols(const Kernel& kernel);

// The rules above: ids in range and operands first, variables in scope, types that fit, and the
// bounds of limits.h. For kernels from files; the error is a sentence.
Status Verify(const Kernel& kernel);

// A valid kernel as text (text.cpp shows the form), and the same kernel from it. What is parsed
// passes Verify(); the error of other text is a sentence with the line's number.
std::string ToText(const Kernel& kernel);
Result<Kernel> ParseKernel(std::string_view text);

// The kernel on host buffers: the definition that generated code is tested against. `buffers` are
// bound in order and have the shapes that the kernel's have under `sizes`, which has a value within
// its range for each of the kernel's. Takes as long as the loops' extents say.
Status Interpret(const Kernel& kernel,
                 const Bindings& sizes,
                 std::span<std::vector<uint8_t>> buffers);

}  // namespace fornax::graph::loop
