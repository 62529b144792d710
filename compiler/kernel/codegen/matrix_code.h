// LLVM functions that multiply matrices in memory: each is made once a module and called for every
// product, because the code of one product is as long as many a kernel.
#pragma once

#include <llvm/IR/Module.h>

#include <cstdint>

namespace fornax::kernel {

// void(ptr c, ptr a, ptr b): c += a * b, of 16 x 16 elements, aligned to 64 bytes. f32: all three
// are rows of f32. Otherwise c is i32, a is i16, and b, of i16, has the elements of two rows
// alternating.
llvm::Function* MatrixMulAddFunction(llvm::Module& module, bool integers, uint32_t vector_bits);

}  // namespace fornax::kernel
