// How large a kernel may be. Kernels come from files too: these bound the time and memory of
// everything that is done with one but to run it.
#pragma once

#include <cstddef>

#include "base/result.h"
#include "compiler/graph/ir/expr.h"

namespace fornax::graph::loop {

inline constexpr size_t kMaxBuffers = 32;
inline constexpr size_t kMaxLoops = 32;  // parallel and sequential ones; of one reduction
inline constexpr size_t kMaxScalars = 4096;
inline constexpr size_t kMaxStores = 64;
inline constexpr size_t kMaxPhases = 16;
inline constexpr size_t kMaxLocals = 32;
// The local tensors of a kernel share this much; nearly all devices have it.
inline constexpr int64_t kMaxLocalBytes = 32 << 10;
inline constexpr size_t kMaxSizes = 32;  // the 128 bytes of push constants that every device has
inline constexpr size_t kMaxExprParts = 4096;
inline constexpr int kMaxNestedVariables = 32;  // of reductions, on which one scalar depends
inline constexpr size_t kMaxName = 256;         // bytes
inline constexpr size_t kMaxKernelText = size_t{4} << 20;  // bytes

// Whether the expression is small enough to be printed, and for ParseExpr to read it back; what is
// built from shared parts may be too large to print. The error is a clause.
Status CheckExprSize(const Expr& expr);

}  // namespace fornax::graph::loop
