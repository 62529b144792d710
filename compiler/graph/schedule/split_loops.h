// Loops that a product's operands see as two.
#pragma once

#include "compiler/graph/loop/kernel.h"

namespace fornax::graph {

// Where one operand of a product depends on floor(i, c) of a loop and the other one on mod(i, c),
// as in a transposed convolution whose windows lie side by side, c*o + p takes the place of i: then
// the product has rows and columns and not a batch of small ones. Other kernels stay as they are.
void SplitLoopsOfProduct(loop::Kernel& kernel);

}  // namespace fornax::graph
