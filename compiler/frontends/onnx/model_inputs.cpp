// Walks the fields of the file, which the classes of protobuf would read whole.
#include "compiler/frontends/onnx/model_inputs.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>
#include <onnx/onnx_pb.h>

#include <functional>
#include <set>

#include <fmt/format.h>

#include "compiler/frontends/onnx/tensor_proto.h"
#include "compiler/graph/build/build_error.h"

namespace fornax::onnx_frontend {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// Calls `field` for each field of a message that has a length, with the stream at its contents, and
// skips the others and what `field` leaves. False if the message is not whole.
bool ForEachField(CodedInputStream& stream, const std::function<bool(int number)>& field) {
    while (const uint32_t tag = stream.ReadTag()) {
        if (WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
            if (!WireFormatLite::SkipField(&stream, tag)) {
                return false;
            }
            continue;
        }
        uint32_t length = 0;
        if (!stream.ReadVarint32(&length) || length > INT32_MAX) {
            return false;
        }
        const CodedInputStream::Limit limit = stream.PushLimit(static_cast<int>(length));
        if (!field(WireFormatLite::GetTagFieldNumber(tag)) ||
            !stream.Skip(std::max(stream.BytesUntilLimit(), 0))) {
            return false;
        }
        stream.PopLimit(limit);
    }
    return stream.ConsumedEntireMessage();
}

bool ReadRest(CodedInputStream& stream, std::string& text) {
    return stream.ReadString(&text, stream.BytesUntilLimit());
}

class PortReader {
  public:
    explicit PortReader(std::span<const std::byte> bytes)
        : array_(bytes.data(), static_cast<int>(bytes.size())), stream_(&array_) {
        stream_.SetTotalBytesLimit(INT32_MAX);
    }

    // False if it is no model.
    bool Read() {
        const bool whole = ForEachField(stream_, [&](int number) {
            if (number != onnx::ModelProto::kGraphFieldNumber) {
                return true;
            }
            has_graph_ = true;
            return ForEachField(stream_, [&](int field) { return ReadGraphField(field); });
        });
        return whole && has_graph_;
    }

    const std::vector<onnx::ValueInfoProto>& inputs() const { return inputs_; }
    const std::vector<onnx::ValueInfoProto>& outputs() const { return outputs_; }
    bool IsConstant(const std::string& name) const { return constants_.contains(name); }

  private:
    bool ReadGraphField(int field) {
        if (field == onnx::GraphProto::kInputFieldNumber) {
            std::string text;
            return ReadRest(stream_, text) && inputs_.emplace_back().ParseFromString(text);
        }
        if (field == onnx::GraphProto::kOutputFieldNumber) {
            std::string text;
            return ReadRest(stream_, text) && outputs_.emplace_back().ParseFromString(text);
        }
        if (field == onnx::GraphProto::kInitializerFieldNumber) {
            return ForEachField(stream_, [&](int number) { return ReadConstantName(number); });
        }
        if (field == onnx::GraphProto::kSparseInitializerFieldNumber) {
            return ForEachField(stream_, [&](int number) {
                return number != onnx::SparseTensorProto::kValuesFieldNumber ||
                       ForEachField(stream_, [&](int inner) { return ReadConstantName(inner); });
            });
        }
        return true;
    }

    bool ReadConstantName(int field) {
        std::string name;
        if (field != onnx::TensorProto::kNameFieldNumber) {
            return true;
        }
        return ReadRest(stream_, name) && (constants_.insert(name), true);
    }

    google::protobuf::io::ArrayInputStream array_;
    CodedInputStream stream_;
    bool has_graph_ = false;
    std::vector<onnx::ValueInfoProto> inputs_, outputs_;
    std::set<std::string> constants_;
};

ModelInput DescribeInput(const onnx::ValueInfoProto& info) {
    ModelInput input;
    input.name = info.name();
    if (!info.type().has_tensor_type()) {
        return input;
    }
    const onnx::TypeProto::Tensor& tensor = info.type().tensor_type();
    graph::TensorType& type = input.type.emplace();
    type.element = ElementTypeOf(tensor.elem_type());
    input.has_shape = tensor.has_shape();
    for (int i = 0; i < tensor.shape().dim_size(); ++i) {
        const onnx::TensorShapeProto::Dimension& dim = tensor.shape().dim(i);
        // Some exporters write -1 or "?" for a size that may change.
        if (dim.has_dim_value() && dim.dim_value() != -1) {
            type.shape.mutable_dims().emplace_back(dim.dim_value());
        } else {
            type.shape.mutable_dims().emplace_back(
                graph::Symbol(dim.dim_param().empty() || dim.dim_param() == "?"
                                  ? fmt::format("{}.{}", info.name(), i)
                                  : dim.dim_param()));
        }
    }
    return input;
}

}  // namespace

Result<ModelPorts> ReadModelPorts(std::span<const std::byte> bytes, const std::string& name) {
    const Error no_model{ErrorCode::kInvalidArgument,
                         fmt::format("{}: it is not an ONNX model, or it is cut short.", name)};
    if (bytes.size() > INT32_MAX) {
        return no_model;
    }
    PortReader reader(bytes);
    if (!reader.Read()) {
        return no_model;
    }
    ModelPorts ports;
    try {
        for (const onnx::ValueInfoProto& info : reader.inputs()) {
            if (!reader.IsConstant(info.name())) {
                ports.inputs.push_back(DescribeInput(info));
                ports.has_only_tensors &= info.type().has_tensor_type();
            }
        }
        for (const onnx::ValueInfoProto& info : reader.outputs()) {
            ports.has_only_tensors &=
                !info.type().has_sequence_type() && !info.type().has_optional_type();
            ++ports.output_count;
        }
    } catch (const graph::BuildError& error) {
        return Error{error.code(), fmt::format("{}: {}.", name, error.what())};
    }
    return ports;
}

}  // namespace fornax::onnx_frontend
