// Fused multiply-adds, chosen before code is generated.
#pragma once

#include <llvm/IR/Module.h>

namespace fornax::kernel {

// Joins multiplications and additions that may be contracted. LLVM's optimizing code generator
// would do that by itself and its fast one would not, so that results would change in the last
// digit when a kernel's optimized tier arrives.
void ContractMultiplyAdds(llvm::Module& module);

}  // namespace fornax::kernel
