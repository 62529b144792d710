// Reads and writes files of tensors by their ending.
#include "tools/tensors/tensor_file.h"

#include <onnx/onnx_pb.h>

#include <fmt/format.h>

#include "base/file.h"
#include "compiler/frontends/onnx/tensor_proto.h"
#include "compiler/graph/build/build_error.h"
#include "tools/tensors/npy.h"
#include "tools/tensors/npz.h"
#include "tools/tensors/tensor_proto.h"

namespace fornax::tensors {
namespace {

constexpr size_t kMaxFileBytes = size_t{16} << 30;

std::span<const uint8_t> BytesOf(const std::vector<std::byte>& file) {
    return {reinterpret_cast<const uint8_t*>(file.data()), file.size()};
}

Result<NamedTensor> ParsePb(std::span<const uint8_t> file) {
    onnx::TensorProto proto;
    if (file.size() > INT32_MAX ||
        !proto.ParseFromArray(file.data(), static_cast<int>(file.size())) ||
        proto.data_type() == onnx::TensorProto::UNDEFINED) {
        return Error{ErrorCode::kInvalidArgument, "it is not an ONNX tensor"};
    }
    try {
        return NamedTensor{proto.name(), onnx_frontend::ReadTensor(proto, "")};
    } catch (const graph::BuildError& error) {
        return Error{error.code(), error.what()};
    }
}

Result<std::vector<NamedTensor>> Parse(TensorFormat format, std::span<const uint8_t> file) {
    switch (format) {
        case TensorFormat::kNpz:
            return ParseNpz(file);
        case TensorFormat::kNpy: {
            FORNAX_ASSIGN_OR_RETURN(graph::Tensor tensor, ParseNpy(file));
            return std::vector<NamedTensor>{{"", std::move(tensor)}};
        }
        case TensorFormat::kPb:
            break;
    }
    FORNAX_ASSIGN_OR_RETURN(NamedTensor tensor, ParsePb(file));
    return std::vector<NamedTensor>{std::move(tensor)};
}

Result<std::string> Format(TensorFormat format, const std::vector<NamedTensor>& tensors) {
    if (format == TensorFormat::kNpz) {
        return FormatNpz(tensors);
    }
    if (tensors.size() != 1) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("it holds one tensor, not {}", tensors.size())};
    }
    if (format == TensorFormat::kNpy) {
        return FormatNpy(tensors[0].tensor);
    }
    onnx::TensorProto proto;
    WriteTensor(tensors[0].tensor, proto);
    proto.set_name(tensors[0].name);
    std::string bytes;
    if (!proto.SerializeToString(&bytes)) {
        return Error{ErrorCode::kUnsupported, "a .pb file holds less than 2 GiB"};
    }
    return bytes;
}

}  // namespace

Result<TensorFormat> FormatOf(const std::string& path) {
    if (path.ends_with(".npy")) {
        return TensorFormat::kNpy;
    }
    if (path.ends_with(".npz")) {
        return TensorFormat::kNpz;
    }
    if (path.ends_with(".pb")) {
        return TensorFormat::kPb;
    }
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{} does not end in .npy, .npz or .pb, the formats of tensors.", path)};
}

Result<std::vector<NamedTensor>> ReadTensorFile(const std::string& path) {
    FORNAX_ASSIGN_OR_RETURN(const TensorFormat format, FormatOf(path));
    FORNAX_ASSIGN_OR_RETURN(const std::vector<std::byte> file, ReadFile(path, kMaxFileBytes));
    Result<std::vector<NamedTensor>> tensors = Parse(format, BytesOf(file));
    if (!tensors.ok()) {
        return Error{tensors.error().code,
                     fmt::format("The file {} cannot be read: {}.", path, tensors.error().message)};
    }
    return tensors;
}

Status WriteTensorFile(const std::string& path, const std::vector<NamedTensor>& tensors) {
    FORNAX_ASSIGN_OR_RETURN(const TensorFormat format, FormatOf(path));
    const Result<std::string> file = Format(format, tensors);
    if (!file.ok()) {
        return Error{file.error().code,
                     fmt::format("The file {} cannot be written: {}.", path, file.error().message)};
    }
    return WriteOutputFile(path, *file);
}

}  // namespace fornax::tensors
