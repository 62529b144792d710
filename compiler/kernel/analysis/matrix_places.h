// Sums of products of matrices that can be made where they are kept: an array of matrices in
// private memory whose element is loaded, added to and stored again.
#pragma once

#include <cstdint>
#include <set>

#include "compiler/kernel/ir/ir.h"

namespace fornax::kernel {

// First results of each matrix_muladd whose C is a run of one local, loaded by constant indices,
// and whose results go to the same elements of it, and nothing in between looks at them: the sums
// may be written there when they are made. Runs begin at multiples of a matrix's elements.
std::set<uint32_t> FindMatrixPlaces(const ir::Kernel& kernel);

}  // namespace fornax::kernel
