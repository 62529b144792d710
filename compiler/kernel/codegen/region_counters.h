// Code for `count`: a counter is a value of the function, which LLVM keeps in a register or makes
// a loop's number of iterations of, and is added to the worker's words before the kernel returns.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <map>

namespace fornax::kernel {

class RegionCounters {
  public:
    // At the builder's place: so many invocations, an i64, are here.
    void Count(llvm::IRBuilder<>& builder,
               llvm::BasicBlock& entry,
               uint64_t counter,
               llvm::Value* invocations);
    // When all of the kernel's code is there.
    void Finish(llvm::Function& kernel) const;

  private:
    std::map<uint64_t, llvm::AllocaInst*> counters_;
};

}  // namespace fornax::kernel
