// Sums of products of f32 in registers: tiles of some rows by the columns of a subgroup.
//
// An invocation computes one column of a few rows. Along k it takes an element of b of its own and
// for each row one of a, which is the same for all invocations. So any number of ks costs what it
// is, operands of windows are read where they lie, and what follows the sums finds them in
// registers. Matrices read b less often, so long sums of many columns are theirs where registers
// are few.
#pragma once

#include "compiler/graph/loop/mapping_part.h"
#include "compiler/graph/loop/product.h"

namespace fornax::graph::loop {

// False if matrices are as fast, or the product is no such one.
bool EmitRegisterProduct(KernelParts& parts, const Product& product);

}  // namespace fornax::graph::loop
