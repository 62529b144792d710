// ONNX files, written field by field: the numbers are those of onnx.proto3.
#include <fmt/format.h>

#include <filesystem>

#include "base/file.h"
#include "compiler/graph/export/exported_model.h"

namespace fornax::graph {
namespace {

// A message of protobuf as it is encoded: fields one after the other, in any order.
class Message {
  public:
    Message& Number(uint32_t field, int64_t value) {
        Varint(uint64_t{field} << 3);
        Varint(static_cast<uint64_t>(value));
        return *this;
    }
    Message& Text(uint32_t field, std::string_view text) {
        Varint((uint64_t{field} << 3) | 2);
        Varint(text.size());
        bytes_ += text;
        return *this;
    }
    Message& Inner(uint32_t field, const Message& message) { return Text(field, message.bytes_); }
    const std::string& bytes() const { return bytes_; }

  private:
    void Varint(uint64_t value) {
        for (; value >= 0x80; value >>= 7) {
            bytes_ += static_cast<char>((value & 0x7f) | 0x80);
        }
        bytes_ += static_cast<char>(value);
    }

    std::string bytes_;
};

constexpr int64_t kIrVersion = 10;  // the first with all types and operators that are used

Message PortMessage(const ExportedPort& port, int32_t type) {
    Message shape;
    for (const Expr& dim : port.dims) {
        shape.Inner(1, dim.is_constant() ? Message().Number(1, *dim.constant())
                                         : Message().Text(2, dim.ToString()));
    }
    const Message tensor = Message().Number(1, type).Inner(2, shape);
    return Message().Text(1, port.name).Inner(2, Message().Inner(1, tensor));
}

Message AttributeMessage(const std::string& name, const ExportedNode::Attribute& attribute) {
    constexpr int64_t kInt = 2, kString = 3, kInts = 7;
    Message message;
    message.Text(1, name);
    if (const auto* number = std::get_if<int64_t>(&attribute)) {
        message.Number(3, *number).Number(20, kInt);
    } else if (const auto* text = std::get_if<std::string>(&attribute)) {
        message.Text(4, *text).Number(20, kString);
    } else {
        for (const int64_t value : std::get<std::vector<int64_t>>(attribute)) {
            message.Number(8, value);
        }
        message.Number(20, kInts);
    }
    return message;
}

Message NodeMessage(const ExportedNode& node) {
    Message message;
    for (const std::string& input : node.inputs) {
        message.Text(1, input);
    }
    for (const std::string& output : node.outputs) {
        message.Text(2, output);
    }
    message.Text(3, node.outputs[0]).Text(4, node.op);
    for (const auto& [name, attribute] : node.attributes) {
        message.Inner(5, AttributeMessage(name, attribute));
    }
    return message;
}

std::string_view TextOf(const Tensor& tensor) {
    return tensor.data ? std::string_view(reinterpret_cast<const char*>(tensor.data->data()),
                                          tensor.data->size())
                       : std::string_view();
}

}  // namespace

Result<int32_t> OnnxTypeOf(ElementType element) {
    switch (element) {
        case ElementType::kF32:
            return 1;
        case ElementType::kU8:
            return 2;
        case ElementType::kI8:
            return 3;
        case ElementType::kU16:
            return 4;
        case ElementType::kI16:
            return 5;
        case ElementType::kI32:
            return 6;
        case ElementType::kI64:
            return 7;
        case ElementType::kBool:
            return 9;
        case ElementType::kF16:
            return 10;
        case ElementType::kF64:
            return 11;
        case ElementType::kU32:
            return 12;
        case ElementType::kU64:
            return 13;
        case ElementType::kBF16:
            return 16;
        default:
            return Error{ErrorCode::kUnsupported,
                         fmt::format("tensors of {} are not exported", Name(element))};
    }
}

Status WriteOnnx(const ExportedModel& exported, const std::string& path, uint64_t inline_bytes) {
    const ExportedModel model = WithSizeOperators(exported);
    uint64_t total = 0;
    for (const auto& [name, tensor] : model.weights) {
        total += TextOf(tensor).size();
    }
    const bool is_external = total > inline_bytes;
    constexpr uint64_t kLeastExternal = 1024;  // runtimes read small ones for shapes
    const std::string data_path = path + ".data";
    std::vector<std::span<const std::byte>> data;
    uint64_t data_bytes = 0;

    Message graph;
    graph.Text(2, model.name);
    if (!model.conditions.empty()) {
        graph.Text(10, fmt::format("For sizes for which {}.", fmt::join(model.conditions, ", ")));
    }
    for (const ExportedNode& node : model.nodes) {
        graph.Inner(1, NodeMessage(node));
    }
    for (const auto& [name, tensor] : model.weights) {
        FORNAX_ASSIGN_OR_RETURN(const int32_t type, OnnxTypeOf(tensor.element));
        const std::string_view bytes = TextOf(tensor);
        Message message;
        for (const int64_t dim : tensor.dims) {
            message.Number(1, dim);
        }
        message.Number(2, type).Text(8, name);
        if (is_external && bytes.size() >= kLeastExternal) {
            const auto add = [&](const char* key, const std::string& value) {
                message.Inner(13, Message().Text(1, key).Text(2, value));
            };
            add("location", std::filesystem::path(data_path).filename());
            add("offset", fmt::to_string(data_bytes));
            add("length", fmt::to_string(bytes.size()));
            message.Number(14, 1);
            data.push_back(std::as_bytes(std::span(bytes)));
            data_bytes += bytes.size();
        } else {
            message.Text(9, bytes);
        }
        graph.Inner(5, message);
    }
    for (const auto& [field, ports] : {std::pair(11u, &model.inputs), {12u, &model.outputs}}) {
        for (const ExportedPort& port : *ports) {
            FORNAX_ASSIGN_OR_RETURN(const int32_t type, OnnxTypeOf(port.element));
            graph.Inner(field, PortMessage(port, type));
        }
    }
    const Message whole = Message()
                              .Number(1, kIrVersion)
                              .Text(2, "fornax")
                              .Inner(8, Message().Text(1, "").Number(2, kExportedOpset))
                              .Inner(7, graph);
    if (is_external) {
        FORNAX_RETURN_IF_ERROR(WriteFileAtomically(data_path, data, 0644));
    }
    return WriteFileAtomically(path, whole.bytes(), 0644);
}

}  // namespace fornax::graph
