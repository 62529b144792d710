// NumPy's .npy files: one array each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "compiler/graph/ir/types.h"

namespace fornax::tensors {

// The array in the bytes of an .npy file of version 1 to 3, in row-major order and little-endian,
// whatever the file has. Strings (<U, S) become kString, and elements of two bytes without a type
// (V2) bf16, which is how NumPy stores ml_dtypes' bfloat16. The error is a clause.
Result<graph::Tensor> ParseNpy(std::span<const uint8_t> file);

// The bytes of an .npy file. NumPy has no types of 2, 4 and 8 bits beside the integers of 8: those
// integers are stored in 8 bits, floats of 8 and 4 bits as V1, and bf16 as V2.
std::string FormatNpy(const graph::Tensor& tensor);

}  // namespace fornax::tensors
