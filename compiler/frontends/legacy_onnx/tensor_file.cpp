// Reads and writes TensorProto files.
#include "compiler/frontends/legacy_onnx/tensor_file.h"

#include <fmt/format.h>

#include "base/file.h"
#include "compiler/frontends/legacy_onnx/tensor_proto.h"

namespace fornax::legacy_onnx {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 30;

Result<HostTensor> ReadTensor(const std::string& bytes) {
    onnx::TensorProto proto;
    if (!proto.ParseFromString(bytes)) {
        return Error{ErrorCode::kInvalidArgument, "it is not an ONNX tensor"};
    }
    HostTensor tensor;
    tensor.dims.assign(proto.dims().begin(), proto.dims().end());
    if (proto.data_type() == onnx::TensorProto::FLOAT) {
        FORNAX_ASSIGN_OR_RETURN(tensor.floats, ReadFloats(proto));
    } else {
        FORNAX_ASSIGN_OR_RETURN(tensor.integers, ReadIntegers(proto));
    }
    return tensor;
}

}  // namespace

Result<HostTensor> ReadTensorFile(const std::string& path) {
    FORNAX_ASSIGN_OR_RETURN(const std::string bytes, ReadTextFile(path, kMaxFileBytes));
    Result<HostTensor> tensor = ReadTensor(bytes);
    if (!tensor.ok()) {
        return Error{tensor.error().code, fmt::format("The file {} cannot be read as a tensor: {}.",
                                                      path, tensor.error().message)};
    }
    return tensor;
}

Status WriteTensorFile(const std::string& path, const std::string& name, const HostTensor& tensor) {
    onnx::TensorProto proto;
    proto.set_name(name);
    proto.set_data_type(onnx::TensorProto::FLOAT);
    for (int64_t dim : tensor.dims) {
        proto.add_dims(dim);
    }
    proto.set_raw_data(tensor.floats.data(), tensor.floats.size() * sizeof(float));
    return WriteOutputFile(path, proto.SerializeAsString());
}

}  // namespace fornax::legacy_onnx
