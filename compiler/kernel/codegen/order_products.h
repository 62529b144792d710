// Sums of products that a kernel adds up in registers, in an order that registers suffice for.
#pragma once

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/IR/Function.h>
#include <llvm/Pass.h>

namespace fornax::kernel {

// A kernel that multiplies tiles of matrices out of workgroup memory loads the operands of several
// steps first and then finishes one sum after the other, so that more operands are alive than there
// are registers. Here as many sums as registers hold, with the operands that they share, take their
// first steps, then their second ones and so on; then come the next sums. Operands are loaded
// where they are first used, once for each such part of the sums. Each part is a block of its own,
// because LLVM would make one of equal loads of a block.
//
// Only blocks where more values are alive than registers exist are changed. A sum's own additions
// keep their order.
bool OrderProducts(llvm::Function& function, llvm::AAResults& aliases, unsigned vector_bits);

// The same as a pass, for the end of LLVM's passes over IR.
llvm::FunctionPass* CreateOrderProductsPass(unsigned vector_bits);

}  // namespace fornax::kernel
