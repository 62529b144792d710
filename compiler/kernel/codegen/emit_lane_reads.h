// Every lane reads the lane that it names, at run time.
#pragma once

#include "compiler/kernel/codegen/function_code.h"

namespace fornax::kernel {

// `lanes`: a number for each, modulo the width.
llvm::Value* PermuteLanes(FunctionCode& code, llvm::Value* vector, llvm::Value* lanes);

}  // namespace fornax::kernel
