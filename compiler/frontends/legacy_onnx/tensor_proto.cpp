// The two encodings of a tensor's elements: raw little-endian bytes, or a repeated field of its
// type.
#include "compiler/frontends/legacy_onnx/tensor_proto.h"

#include <bit>
#include <cstring>

#include <fmt/format.h>

namespace fornax::legacy_onnx {
namespace {

static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");

// Copies the elements from raw_data, stored as `Stored`, or from the repeated field.
template <typename Stored, typename Element, typename Field>
Result<std::vector<Element>> ReadElements(const onnx::TensorProto& tensor, const Field& field) {
    FORNAX_ASSIGN_OR_RETURN(const legacy_graph::Shape shape, ReadShape(tensor));
    const size_t elements = shape.elements();
    if (tensor.data_location() == onnx::TensorProto::EXTERNAL) {
        return Error{ErrorCode::kUnsupported, "its data are in another file"};
    }
    if (tensor.has_raw_data()) {
        const std::string& raw = tensor.raw_data();
        if (raw.size() != elements * sizeof(Stored)) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("{} bytes of data do not hold the {} elements of {}",
                                     raw.size(), elements, shape.ToString())};
        }
        std::vector<Element> result(elements);
        for (size_t i = 0; i < elements; ++i) {
            Stored value;
            std::memcpy(&value, raw.data() + i * sizeof(Stored), sizeof(Stored));
            result[i] = static_cast<Element>(value);
        }
        return result;
    }
    if (static_cast<size_t>(field.size()) != elements) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{} values do not fill the {} elements of {}", field.size(),
                                 elements, shape.ToString())};
    }
    return std::vector<Element>(field.begin(), field.end());
}

}  // namespace

std::string DataTypeName(int32_t data_type) {
    return onnx::TensorProto::DataType_IsValid(data_type)
               ? onnx::TensorProto::DataType_Name(
                     static_cast<onnx::TensorProto::DataType>(data_type))
               : fmt::format("data type {}", data_type);
}

Result<legacy_graph::Shape> ReadShape(const onnx::TensorProto& tensor) {
    return legacy_graph::Shape::Make(
        std::vector<int64_t>(tensor.dims().begin(), tensor.dims().end()));
}

Result<std::vector<float>> ReadFloats(const onnx::TensorProto& tensor) {
    if (tensor.data_type() != onnx::TensorProto::FLOAT) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("its type {} is not FLOAT", DataTypeName(tensor.data_type()))};
    }
    return ReadElements<float, float>(tensor, tensor.float_data());
}

Result<std::vector<int64_t>> ReadIntegers(const onnx::TensorProto& tensor) {
    switch (tensor.data_type()) {
        case onnx::TensorProto::INT64:
            return ReadElements<int64_t, int64_t>(tensor, tensor.int64_data());
        case onnx::TensorProto::INT32:
            return ReadElements<int32_t, int64_t>(tensor, tensor.int32_data());
        case onnx::TensorProto::UINT8:
        case onnx::TensorProto::BOOL:
            return ReadElements<uint8_t, int64_t>(tensor, tensor.int32_data());
        default:
            return Error{ErrorCode::kUnsupported,
                         fmt::format("its type {} is none of INT64, INT32, UINT8 and BOOL",
                                     DataTypeName(tensor.data_type()))};
    }
}

}  // namespace fornax::legacy_onnx
