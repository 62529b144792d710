// Vectors of several registers, taken apart before the code generator of the baseline tier.
#pragma once

#include <llvm/IR/Function.h>

namespace fornax::kernel {

// Makes of each operation on vectors of `lanes` lanes one for each `part_lanes` of them, as far as
// lanes do not meet in it. Both are powers of two. LLVM would do the same later, with values of
// types that no register has: its combiner then spends most of the time on putting masks and narrow
// elements together and taking them apart again.
void SplitVectors(llvm::Function& function, unsigned lanes, unsigned part_lanes);

}  // namespace fornax::kernel
