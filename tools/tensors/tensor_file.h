// Files of tensors: .npy, .npz and .pb (ONNX's TensorProto).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/graph/ir/types.h"

namespace fornax::tensors {

struct NamedTensor {
    std::string name;  // "" if the file does not say
    graph::Tensor tensor;
};

// The format that the ending of a path names.
enum class TensorFormat { kNpy, kNpz, kPb };
// Fails for other endings than .npy, .npz and .pb.
Result<TensorFormat> FormatOf(const std::string& path);

// What the file holds: one tensor, or all of an .npz in their order. Files are not trusted. The
// error is a sentence that names the file.
Result<std::vector<NamedTensor>> ReadTensorFile(const std::string& path);

// Writes tensors to a new or existing file (WriteOutputFile); one alone to .npy and .pb.
Status WriteTensorFile(const std::string& path, const std::vector<NamedTensor>& tensors);

}  // namespace fornax::tensors
