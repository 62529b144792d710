// Constants of vectors, in the form that takes the code generator of the baseline tier least time.
#pragma once

#include <llvm/IR/Module.h>

namespace fornax::kernel {

// Makes loads of the vector constants that LLVM's instruction selection would look through, lane by
// lane, again and again: it spends several times as long on `x & constant` as on `x & loaded`, and
// loads the constant from memory in either case. After all passes, which would rather see
// constants.
void LoadVectorConstants(llvm::Module& module);

}  // namespace fornax::kernel
