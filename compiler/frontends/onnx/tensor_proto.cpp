// Reading TensorProto messages.
#include "compiler/frontends/onnx/tensor_proto.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "compiler/graph/build/build_error.h"

namespace fornax::onnx_frontend {
namespace {

using graph::ElementType;
using graph::FailInvalid;
using graph::FailUnsupported;
using graph::Tensor;

static_assert(std::endian::native == std::endian::little, "raw data are little-endian");

// By TensorProto.DataType; kString stands for what there is no element type for, too.
struct DataType {
    int32_t number;
    ElementType element;
};
constexpr DataType kDataTypes[] = {
    {1, ElementType::kF32},         {2, ElementType::kU8},      {3, ElementType::kI8},
    {4, ElementType::kU16},         {5, ElementType::kI16},     {6, ElementType::kI32},
    {7, ElementType::kI64},         {8, ElementType::kString},  {9, ElementType::kBool},
    {10, ElementType::kF16},        {11, ElementType::kF64},    {12, ElementType::kU32},
    {13, ElementType::kU64},        {16, ElementType::kBF16},   {17, ElementType::kF8E4M3FN},
    {18, ElementType::kF8E4M3FNUZ}, {19, ElementType::kF8E5M2}, {20, ElementType::kF8E5M2FNUZ},
    {21, ElementType::kU4},         {22, ElementType::kI4},     {23, ElementType::kF4E2M1},
    {24, ElementType::kF8E8M0},     {25, ElementType::kU2},     {26, ElementType::kI2},
};

std::vector<int64_t> ReadDims(const google::protobuf::RepeatedField<int64_t>& dims) {
    if (static_cast<size_t>(dims.size()) > graph::kMaxRank) {
        FailUnsupported(
            fmt::format("its {} dimensions exceed the limit of {}", dims.size(), graph::kMaxRank));
    }
    int64_t volume = 1;
    for (const int64_t dim : dims) {
        if (dim < 0) {
            FailInvalid(fmt::format("a dimension is {}", dim));
        }
        if (dim != 0 && volume > graph::kMaxElements / dim) {
            FailInvalid(fmt::format("it has more than {} elements", graph::kMaxElements));
        }
        volume *= dim;
    }
    return {dims.begin(), dims.end()};
}

// The number of bytes that a file takes for `count` elements: types of 2 and 4 bits are packed.
uint64_t PackedBytes(ElementType element, int64_t count) {
    const uint64_t bits = element == ElementType::kBool ? 8 : graph::BitsOf(element);
    return (static_cast<uint64_t>(count) * bits + 7) / 8;
}

// Elements that are packed, the first in the low bits, to one byte each.
void Unpack(ElementType element, const uint8_t* packed, int64_t count, uint8_t* out) {
    const uint32_t bits = graph::BitsOf(element);
    const uint32_t per_byte = 8 / bits;
    for (int64_t i = 0; i < count; ++i) {
        const uint64_t index = static_cast<uint64_t>(i);
        const uint32_t value =
            (packed[index / per_byte] >> (index % per_byte * bits)) & ((1U << bits) - 1);
        if (graph::IsInteger(element)) {
            const bool negative = graph::IsSigned(element) && (value >> (bits - 1)) != 0;
            const int64_t number =
                static_cast<int64_t>(value) - (negative ? int64_t{1} << bits : 0);
            graph::WriteElement(element, graph::Scalar::Integer(number), out + i);
        } else {
            out[i] = static_cast<uint8_t>(value);
        }
    }
}

void FromBytes(ElementType element, std::string_view bytes, int64_t count, uint8_t* out) {
    const uint64_t needed = PackedBytes(element, count);
    if (bytes.size() != needed) {
        FailInvalid(fmt::format("its data are {} bytes, its shape takes {}", bytes.size(), needed));
    }
    const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
    if (graph::BitsOf(element) < 8 && element != ElementType::kBool) {
        Unpack(element, data, count, out);
        return;
    }
    if (needed != 0) {
        std::memcpy(out, data, needed);
    }
    if (element == ElementType::kBool) {
        std::transform(out, out + count, out, [](uint8_t byte) -> uint8_t { return byte != 0; });
    }
}

template <typename To>
void FromField(const auto& field, int64_t count, uint8_t* out) {
    if (field.size() != count) {
        FailInvalid(fmt::format("it has {} elements, its shape takes {}", field.size(), count));
    }
    for (int64_t i = 0; i < count; ++i) {
        const To value = static_cast<To>(field.Get(static_cast<int>(i)));
        std::memcpy(out + i * static_cast<int64_t>(sizeof(To)), &value, sizeof(To));
    }
}

void FromTypedField(const onnx::TensorProto& proto,
                    ElementType element,
                    int64_t count,
                    uint8_t* out) {
    switch (element) {
        case ElementType::kF32:
            return FromField<float>(proto.float_data(), count, out);
        case ElementType::kF64:
            return FromField<double>(proto.double_data(), count, out);
        case ElementType::kI64:
            return FromField<int64_t>(proto.int64_data(), count, out);
        case ElementType::kU64:
            return FromField<uint64_t>(proto.uint64_data(), count, out);
        case ElementType::kU32:
            return FromField<uint32_t>(proto.uint64_data(), count, out);
        case ElementType::kI32:
            return FromField<int32_t>(proto.int32_data(), count, out);
        case ElementType::kBool:
            return FromField<bool>(proto.int32_data(), count, out);
        default:
            break;
    }
    // Narrow types are the low bits of int32_data; packed ones are bytes of it.
    if (graph::BitsOf(element) < 8) {
        std::vector<uint8_t> packed(PackedBytes(element, count));
        FromField<uint8_t>(proto.int32_data(), static_cast<int64_t>(packed.size()), packed.data());
        Unpack(element, packed.data(), count, out);
    } else if (graph::BytesOf(element) == 1) {
        FromField<uint8_t>(proto.int32_data(), count, out);
    } else {
        FromField<uint16_t>(proto.int32_data(), count, out);
    }
}

// The number of an entry of external_data.
uint64_t ParseNumber(const std::string& text) {
    uint64_t value = 0;
    if (text.empty() || text.size() > 18) {
        FailInvalid(fmt::format("its external data have the offset or length \"{}\"", text));
    }
    for (const char c : text) {
        if (c < '0' || c > '9') {
            FailInvalid(fmt::format("its external data have the offset or length \"{}\"", text));
        }
        value = value * 10 + static_cast<uint64_t>(c - '0');
    }
    return value;
}

// The file of external data: below the model's directory, also when links are followed.
std::filesystem::path ExternalFile(const std::string& location, const std::string& directory) {
    if (directory.empty()) {
        FailInvalid("its data are in another file, and the model's directory is not known");
    }
    std::error_code error;
    const std::filesystem::path base = std::filesystem::canonical(directory, error);
    if (error) {
        FailInvalid(fmt::format("the model's directory cannot be opened ({})", error.message()));
    }
    const std::filesystem::path file = std::filesystem::canonical(base / location, error);
    if (error) {
        FailInvalid(
            fmt::format("its data file \"{}\" cannot be opened ({})", location, error.message()));
    }
    const auto [end, rest] = std::mismatch(base.begin(), base.end(), file.begin(), file.end());
    if (end != base.end() || rest == file.end()) {
        FailInvalid(fmt::format("its data file \"{}\" is not in the model's directory", location));
    }
    return file;
}

void FromExternalFile(const onnx::TensorProto& proto,
                      const std::string& directory,
                      ElementType element,
                      int64_t count,
                      std::vector<uint8_t>& bytes) {
    std::string location;
    uint64_t offset = 0;
    std::optional<uint64_t> length;
    for (const onnx::StringStringEntryProto& entry : proto.external_data()) {
        if (entry.key() == "location") {
            location = entry.value();
        } else if (entry.key() == "offset") {
            offset = ParseNumber(entry.value());
        } else if (entry.key() == "length") {
            length = ParseNumber(entry.value());
        }
    }
    const uint64_t needed = PackedBytes(element, count);
    if (length.value_or(needed) != needed) {
        FailInvalid(
            fmt::format("its external data are {} bytes, its shape takes {}", *length, needed));
    }
    const std::filesystem::path path = ExternalFile(location, directory);
    std::error_code error;
    const uint64_t size = std::filesystem::file_size(path, error);
    if (error || offset > size || needed > size - offset) {
        FailInvalid(fmt::format("its data file \"{}\" has {} bytes, but the tensor is {} at {}",
                                location, error ? 0 : size, needed, offset));
    }
    std::string data(needed, '\0');
    std::ifstream file(path, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    file.read(data.data(), static_cast<std::streamsize>(needed));
    if (!file) {
        FailInvalid(fmt::format("its data file \"{}\" cannot be read", location));
    }
    bytes.resize(static_cast<size_t>(count) * graph::BytesOf(element));
    FromBytes(element, data, count, bytes.data());
}

}  // namespace

ElementType ElementTypeOf(int64_t data_type) {
    for (const DataType& entry : kDataTypes) {
        if (entry.number == data_type) {
            return entry.element;
        }
    }
    FailUnsupported(data_type == 14 || data_type == 15
                        ? std::string("complex numbers are not supported")
                        : fmt::format("the data type {} is not known", data_type));
}

int32_t DataTypeOf(ElementType element) {
    for (const DataType& entry : kDataTypes) {
        if (entry.element == element) {
            return entry.number;
        }
    }
    return 0;
}

Tensor ReadTensor(const onnx::TensorProto& proto, const std::string& directory) {
    Tensor tensor;
    tensor.element = ElementTypeOf(proto.data_type());
    tensor.dims = ReadDims(proto.dims());
    if (proto.has_segment()) {
        FailUnsupported("it is a segment of a tensor");
    }
    const int64_t count = tensor.count();
    if (tensor.element == ElementType::kString) {
        if (proto.string_data_size() != count) {
            FailInvalid(fmt::format("it has {} strings, its shape takes {}",
                                    proto.string_data_size(), count));
        }
        tensor.strings = std::make_shared<const std::vector<std::string>>(
            proto.string_data().begin(), proto.string_data().end());
        return tensor;
    }
    auto data = std::make_shared<std::vector<uint8_t>>();
    if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
        FromExternalFile(proto, directory, tensor.element, count, *data);
    } else if (proto.has_raw_data()) {
        // The size is checked before so much is allocated.
        if (proto.raw_data().size() != PackedBytes(tensor.element, count)) {
            FailInvalid(fmt::format("its data are {} bytes, its shape takes {}",
                                    proto.raw_data().size(), PackedBytes(tensor.element, count)));
        }
        data->resize(static_cast<size_t>(count) * graph::BytesOf(tensor.element));
        FromBytes(tensor.element, proto.raw_data(), count, data->data());
    } else {
        const int64_t present =
            std::max({proto.float_data_size(), proto.double_data_size(), proto.int32_data_size(),
                      proto.int64_data_size(), proto.uint64_data_size()});
        if (count > 4 * present) {
            FailInvalid(fmt::format("it has {} elements, its shape takes {}", present, count));
        }
        data->resize(static_cast<size_t>(count) * graph::BytesOf(tensor.element));
        FromTypedField(proto, tensor.element, count, data->data());
    }
    tensor.data = std::move(data);
    return tensor;
}

Tensor TakeTensor(onnx::TensorProto& proto, const std::string& directory) {
    const ElementType element = ElementTypeOf(proto.data_type());
    // Types that lie in memory as they do in files; bools are made 0 or 1.
    const bool is_plain = graph::BitsOf(element) >= 8 && element != ElementType::kBool;
    if (!is_plain || !proto.has_raw_data() || proto.has_segment() ||
        proto.data_location() == onnx::TensorProto::EXTERNAL) {
        return ReadTensor(proto, directory);
    }
    Tensor tensor{element, ReadDims(proto.dims()), nullptr, nullptr};
    const uint64_t needed = PackedBytes(element, tensor.count());
    if (proto.raw_data().size() != needed) {
        return ReadTensor(proto, directory);  // which says what is wrong
    }
    const auto data = std::make_shared<const std::string>(std::move(*proto.mutable_raw_data()));
    proto.clear_raw_data();
    tensor.data =
        graph::Bytes(std::span(reinterpret_cast<const uint8_t*>(data->data()), data->size()), data);
    return tensor;
}

Tensor ReadSparseTensor(const onnx::SparseTensorProto& proto, const std::string& directory) {
    // A dense tensor of this many elements is made of a few bytes.
    constexpr int64_t kMaxSparseElements = int64_t{1} << 28;
    const Tensor values = ReadTensor(proto.values(), directory);
    const Tensor indices = ReadTensor(proto.indices(), directory);
    std::vector<int64_t> dims = ReadDims(proto.dims());
    int64_t volume = 1;
    for (const int64_t dim : dims) {
        volume *= dim;
    }
    const int64_t rank = static_cast<int64_t>(dims.size());
    const bool linear = indices.dims.size() == 1;
    if (values.dims.size() != 1 || indices.element != ElementType::kI64 ||
        values.element == ElementType::kString || indices.dims.empty() || indices.dims.size() > 2 ||
        indices.dims[0] != values.dims[0] || (!linear && indices.dims[1] != rank)) {
        FailInvalid("its sparse tensor's values and indices do not fit");
    }
    if (volume > kMaxSparseElements) {
        FailUnsupported(fmt::format("its sparse tensor has {} elements; the limit is {}", volume,
                                    kMaxSparseElements));
    }
    uint8_t* data = nullptr;
    Tensor tensor = Tensor::Zeros(values.element, dims, &data);
    const uint32_t size = graph::BytesOf(values.element);
    for (int64_t i = 0; i < values.dims[0]; ++i) {
        int64_t place = 0;
        if (linear) {
            place = indices.At(i).integer;
        }
        for (int64_t axis = 0; !linear && axis < rank; ++axis) {
            const int64_t at = indices.At(i * rank + axis).integer;
            if (at < 0 || at >= dims[static_cast<size_t>(axis)]) {
                FailInvalid(fmt::format("its sparse tensor's index {} is not in its shape", at));
            }
            place = place * dims[static_cast<size_t>(axis)] + at;
        }
        if (place < 0 || place >= volume) {
            FailInvalid(fmt::format("its sparse tensor's index {} is not in its shape", place));
        }
        std::memcpy(data + place * size, values.data->data() + i * size, size);
    }
    return tensor;
}

}  // namespace fornax::onnx_frontend
