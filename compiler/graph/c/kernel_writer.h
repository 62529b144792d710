// A loop kernel as a function of C: one invocation that goes through all points in order.
#pragma once

#include <string>

#include "base/result.h"
#include "compiler/graph/loop/kernel.h"

namespace fornax::graph::c {

// The definition of `static void NAME(void* const* blocks)`, whose argument are the kernel's
// buffers in order. The kernel passes Verify(), and has no sizes (see WithSizes()). It may have any
// mapping; what the function computes differs from Interpret() by the order and rounding of sums of
// floats and by the functions of <math.h>. Kernels that C has no form for give a clause.
Result<std::string> WriteKernel(const loop::Kernel& kernel, const std::string& name);

}  // namespace fornax::graph::c
