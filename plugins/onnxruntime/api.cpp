#include "plugins/onnxruntime/api.h"

#include <algorithm>

namespace fornax::onnxruntime_plugin {
namespace {

ErrorCode CodeOf(OrtErrorCode code) {
    switch (code) {
        case ORT_INVALID_ARGUMENT:
        case ORT_INVALID_GRAPH:
        case ORT_INVALID_PROTOBUF:
            return ErrorCode::kInvalidArgument;
        case ORT_NO_SUCHFILE:
        case ORT_NOT_FOUND:
            return ErrorCode::kNotFound;
        case ORT_NOT_IMPLEMENTED:
            return ErrorCode::kUnsupported;
        default:
            return ErrorCode::kInternal;
    }
}

OrtErrorCode CodeOf(ErrorCode code) {
    switch (code) {
        case ErrorCode::kInvalidArgument:
            return ORT_INVALID_ARGUMENT;
        case ErrorCode::kNotFound:
            return ORT_NO_SUCHFILE;
        case ErrorCode::kUnsupported:
            return ORT_NOT_IMPLEMENTED;
        case ErrorCode::kDataLoss:
            return ORT_INVALID_GRAPH;
        default:
            return ORT_EP_FAIL;
    }
}

template <typename T, typename Count, typename Get>
Result<std::vector<T>> ArrayOf(const Api& api, const Count& count, const Get& get) {
    size_t size = 0;
    FORNAX_RETURN_IF_ERROR(api.Take(count(&size)));
    std::vector<T> array(size);
    if (size != 0) {
        FORNAX_RETURN_IF_ERROR(api.Take(get(array.data(), size)));
    }
    return array;
}

Result<ValueType> TypeOfTensor(const Api& api, const OrtTensorTypeAndShapeInfo* info) {
    ValueType type;
    type.kind = ONNX_TYPE_TENSOR;
    size_t rank = 0;
    FORNAX_ORT(api, GetTensorElementType(info, &type.number));
    FORNAX_ORT(api, GetDimensionsCount(info, &rank));
    type.dims.resize(rank);
    std::vector<const char*> names(rank, nullptr);
    if (rank != 0) {
        FORNAX_ORT(api, GetDimensions(info, type.dims.data(), rank));
        FORNAX_ORT(api, GetSymbolicDimensions(info, names.data(), rank));
    }
    for (const char* name : names) {
        type.names.emplace_back(name == nullptr ? "" : name);
    }
    return type;
}

}  // namespace

Status Api::Take(OrtStatus* status) const {
    if (status == nullptr) {
        return OkStatus();
    }
    Error error{CodeOf(ort->GetErrorCode(status)), ort->GetErrorMessage(status)};
    ort->ReleaseStatus(status);
    return error;
}

OrtStatus* Api::Give(const Status& status) const {
    return status.ok()
               ? nullptr
               : ort->CreateStatus(CodeOf(status.error().code), status.error().message.c_str());
}

bool Logger::Writes(OrtLoggingLevel level) const {
    OrtLoggingLevel least = ORT_LOGGING_LEVEL_FATAL;
    return api_->Take(api_->ort->Logger_GetLoggingSeverityLevel(logger_, &least)).ok() &&
           level >= least;
}

void Logger::Write(OrtLoggingLevel level, const std::string& message) const {
    if (Writes(level)) {
        // A message that cannot be written is no reason to fail.
        [[maybe_unused]] const Status written = api_->Take(api_->ort->Logger_LogMessage(
            logger_, level, message.c_str(), "plugins/onnxruntime", 0, "Fornax"));
    }
}

bool ValueType::is_static() const {
    return is_tensor() && std::ranges::all_of(dims, [](int64_t dim) { return dim >= 0; });
}

Result<std::string> NameOf(const Api& api, const OrtValueInfo* value) {
    const char* name = nullptr;
    if (value != nullptr) {
        FORNAX_ORT(api, GetValueInfoName(value, &name));
    }
    return std::string(name == nullptr ? "" : name);
}

Result<ValueType> TypeOf(const Api& api, const OrtValueInfo* value) {
    ValueType type;
    const OrtTypeInfo* info = nullptr;
    FORNAX_ORT(api, GetValueInfoTypeInfo(value, &info));
    if (info == nullptr) {
        return type;
    }
    FORNAX_ORT(api, GetOnnxTypeFromTypeInfo(info, &type.kind));
    if (!type.is_tensor()) {
        return type;
    }
    const OrtTensorTypeAndShapeInfo* tensor = nullptr;
    FORNAX_ORT(api, CastTypeInfoToTensorInfo(info, &tensor));
    return TypeOfTensor(api, tensor);
}

Result<TensorView> ViewOf(const Api& api, const OrtValue* value) {
    TensorView view;
    OrtTensorTypeAndShapeInfo* raw = nullptr;
    FORNAX_ORT(api, GetTensorTypeAndShape(value, &raw));
    const std::unique_ptr<OrtTensorTypeAndShapeInfo, void (*)(OrtTensorTypeAndShapeInfo*)> info(
        raw, api.ort->ReleaseTensorTypeAndShapeInfo);
    size_t rank = 0;
    FORNAX_ORT(api, GetTensorElementType(info.get(), &view.number));
    FORNAX_ORT(api, GetDimensionsCount(info.get(), &rank));
    view.dims.resize(rank);
    if (rank != 0) {
        FORNAX_ORT(api, GetDimensions(info.get(), view.dims.data(), rank));
    }
    if (view.number != ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
        FORNAX_ORT(api, GetTensorData(value, &view.data));
        FORNAX_ORT(api, GetTensorSizeInBytes(value, &view.size_bytes));
    }
    return view;
}

std::optional<graph::ElementType> ElementOf(ONNXTensorElementDataType number) {
    using graph::ElementType;
    // Those behind the last that the header knows have the numbers of ONNX as well.
    static constexpr std::optional<ElementType> kElements[] = {std::nullopt,
                                                               ElementType::kF32,
                                                               ElementType::kU8,
                                                               ElementType::kI8,
                                                               ElementType::kU16,
                                                               ElementType::kI16,
                                                               ElementType::kI32,
                                                               ElementType::kI64,
                                                               std::nullopt,
                                                               ElementType::kBool,
                                                               ElementType::kF16,
                                                               ElementType::kF64,
                                                               ElementType::kU32,
                                                               ElementType::kU64,
                                                               std::nullopt,
                                                               std::nullopt,
                                                               ElementType::kBF16,
                                                               ElementType::kF8E4M3FN,
                                                               ElementType::kF8E4M3FNUZ,
                                                               ElementType::kF8E5M2,
                                                               ElementType::kF8E5M2FNUZ,
                                                               ElementType::kU4,
                                                               ElementType::kI4};
    static_assert(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4 == 22);
    const auto index = static_cast<size_t>(number);
    return index < std::size(kElements) ? kElements[index] : std::nullopt;
}

bool HasWholeBytes(graph::ElementType element) {
    return element == graph::ElementType::kBool || graph::BitsOf(element) >= 8;
}

Result<std::vector<const OrtNode*>> NodesOf(const Api& api, const OrtGraph* graph) {
    return ArrayOf<const OrtNode*>(
        api, [&](size_t* count) { return api.ort->Graph_GetNumNodes(graph, count); },
        [&](const OrtNode** nodes, size_t count) {
            return api.ort->Graph_GetNodes(graph, nodes, count);
        });
}

Result<std::vector<const OrtValueInfo*>> InputsOf(const Api& api, const OrtNode* node) {
    return ArrayOf<const OrtValueInfo*>(
        api, [&](size_t* count) { return api.ort->Node_GetNumInputs(node, count); },
        [&](const OrtValueInfo** values, size_t count) {
            return api.ort->Node_GetInputs(node, values, count);
        });
}

Result<std::vector<const OrtValueInfo*>> ImplicitInputsOf(const Api& api, const OrtNode* node) {
    return ArrayOf<const OrtValueInfo*>(
        api, [&](size_t* count) { return api.ort->Node_GetNumImplicitInputs(node, count); },
        [&](const OrtValueInfo** values, size_t count) {
            return api.ort->Node_GetImplicitInputs(node, values, count);
        });
}

Result<std::vector<const OrtValueInfo*>> OutputsOf(const Api& api, const OrtNode* node) {
    return ArrayOf<const OrtValueInfo*>(
        api, [&](size_t* count) { return api.ort->Node_GetNumOutputs(node, count); },
        [&](const OrtValueInfo** values, size_t count) {
            return api.ort->Node_GetOutputs(node, values, count);
        });
}

Result<std::string> OperatorOf(const Api& api, const OrtNode* node) {
    const char* name = nullptr;
    FORNAX_ORT(api, Node_GetOperatorType(node, &name));
    return std::string(name == nullptr ? "" : name);
}

Result<std::string> DomainOf(const Api& api, const OrtNode* node) {
    const char* name = nullptr;
    FORNAX_ORT(api, Node_GetDomain(node, &name));
    return std::string(name == nullptr ? "" : name);
}

}  // namespace fornax::onnxruntime_plugin
