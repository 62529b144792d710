// NumPy's .npz files: archives of .npy files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "tools/tensors/tensor_file.h"

namespace fornax::tensors {

// The arrays in the bytes of an archive, in its order, compressed or not. The error is a clause.
Result<std::vector<NamedTensor>> ParseNpz(std::span<const uint8_t> file);

// The bytes of an archive that is not compressed, as numpy.savez writes it.
Result<std::string> FormatNpz(const std::vector<NamedTensor>& tensors);

}  // namespace fornax::tensors
