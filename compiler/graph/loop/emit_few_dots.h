// Sums of products of few rows, of a matrix whose columns lie along k.
//
// Such a product is bound by reading b once. A workgroup computes one or two columns for all rows:
// its invocations take neighbouring ks, and the next workgroup goes on where it ends, so that b is
// read in order. Each element of b is used for several rows while it is in a register, and each of
// a for the columns: a few long rows do not fit into the first cache. What the invocations have is
// added up at the end.
#pragma once

#include "compiler/graph/loop/mapping_part.h"
#include "compiler/graph/loop/product.h"

namespace fornax::graph::loop {

// A product that HasFewDots().
void EmitFewDots(KernelParts& parts, const Product& product);

}  // namespace fornax::graph::loop
