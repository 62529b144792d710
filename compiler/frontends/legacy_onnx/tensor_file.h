// Tensors in files of their own: ONNX TensorProto messages (.pb), as ONNX's own test data has them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace fornax::legacy_onnx {

// A tensor in host memory, as wide as its file may hold it: floats for f32, integers for int64,
// int32 and uint8. One of the two vectors is empty, the other has as many elements as the
// dimensions say.
struct HostTensor {
    std::vector<int64_t> dims;
    std::vector<float> floats;
    std::vector<int64_t> integers;

    bool is_float() const { return integers.empty(); }
};

// Reads an untrusted file. The error names the file.
Result<HostTensor> ReadTensorFile(const std::string& path);

// Writes a tensor of floats atomically.
Status WriteTensorFile(const std::string& path, const std::string& name, const HostTensor& tensor);

}  // namespace fornax::legacy_onnx
