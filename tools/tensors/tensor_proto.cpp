// The reverse of the ONNX frontend's ReadTensor().
#include "tools/tensors/tensor_proto.h"

#include <bit>

#include "compiler/frontends/onnx/tensor_proto.h"

namespace fornax::tensors {
namespace {

using graph::ElementType;

static_assert(std::endian::native == std::endian::little, "raw data are little-endian");

// Types of 2 and 4 bits share bytes, the first element in the low bits.
void Pack(ElementType element, const uint8_t* data, int64_t count, std::string& out) {
    const uint32_t bits = graph::BitsOf(element);
    const uint32_t per_byte = 8 / bits;
    out.assign((static_cast<size_t>(count) * bits + 7) / 8, '\0');
    for (int64_t i = 0; i < count; ++i) {
        const uint64_t index = static_cast<uint64_t>(i);
        const uint32_t value = data[i] & ((1U << bits) - 1);
        out[index / per_byte] = static_cast<char>(static_cast<uint8_t>(out[index / per_byte]) |
                                                  value << (index % per_byte * bits));
    }
}

}  // namespace

void WriteTensor(const graph::Tensor& tensor, onnx::TensorProto& proto) {
    proto.set_data_type(onnx_frontend::DataTypeOf(tensor.element));
    for (const int64_t dim : tensor.dims) {
        proto.add_dims(dim);
    }
    if (tensor.element == ElementType::kString) {
        for (const std::string& text : *tensor.strings) {
            proto.add_string_data(text);
        }
    } else if (graph::BitsOf(tensor.element) < 8 && tensor.element != ElementType::kBool) {
        Pack(tensor.element, tensor.data->data(), tensor.count(), *proto.mutable_raw_data());
    } else {
        proto.set_raw_data(tensor.data->data(), tensor.data->size());
    }
}

}  // namespace fornax::tensors
