// Long basic blocks, cut before instruction selection.
#pragma once

#include <llvm/Pass.h>

namespace fornax::kernel {

// Cuts blocks into pieces of some thousand instructions. LLVM selects and schedules instructions
// block by block, in a time that grows with the square of a block's size. What follows a cut sees
// the values before it in registers.
llvm::FunctionPass* CreateSplitBlocksPass();

}  // namespace fornax::kernel
