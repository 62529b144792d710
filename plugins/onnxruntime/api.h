// onnxruntime's interface in the version that this library is built for, and how its errors and
// ours become each other's.
//
// The interface is stable: a newer onnxruntime gives the functions of every older version.
#pragma once

#include <onnxruntime/onnxruntime_c_api.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/graph/ir/types.h"

namespace fornax::onnxruntime_plugin {

// The name of the execution provider, which options and compiled models use too, however the
// library is registered.
inline constexpr char kProviderName[] = "FornaxExecutionProvider";

// onnxruntime's functions; they live as long as it is loaded.
struct Api {
    const OrtApi* ort = nullptr;
    const OrtEpApi* ep = nullptr;
    const OrtModelEditorApi* editor = nullptr;

    // Takes the status.
    Status Take(OrtStatus* status) const;
    // What onnxruntime shows as its exception.
    OrtStatus* Give(const Status& status) const;
};

// Calls one of onnxruntime's functions and returns its error from the enclosing function.
#define FORNAX_ORT(api, call) FORNAX_RETURN_IF_ERROR((api).Take((api).ort->call))

// Calls `function`, which gives a Status; no exception of ours passes the border of the library.
template <typename Function>
OrtStatus* Guarded(const Api& api, const Function& function) {
    try {
        return api.Give(function());
    } catch (const std::bad_alloc&) {
        return api.Give(Error{ErrorCode::kOutOfHostMemory, "There is not enough memory."});
    } catch (const std::exception& error) {
        return api.Give(Error{ErrorCode::kInternal, error.what()});
    }
}

// Writes to a logger of onnxruntime.
class Logger {
  public:
    Logger(const Api& api, const OrtLogger* logger) : api_(&api), logger_(logger) {}
    bool Writes(OrtLoggingLevel level) const;
    void Write(OrtLoggingLevel level, const std::string& message) const;
    void Info(const std::string& message) const { Write(ORT_LOGGING_LEVEL_INFO, message); }
    void Warning(const std::string& message) const { Write(ORT_LOGGING_LEVEL_WARNING, message); }

  private:
    const Api* api_;
    const OrtLogger* logger_;
};

// The type of a value; `element` is nothing where there is none of ours.
struct ValueType {
    ONNXType kind = ONNX_TYPE_UNKNOWN;
    // For tensors only.
    ONNXTensorElementDataType number = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    std::vector<int64_t> dims;       // -1 where the size is open
    std::vector<std::string> names;  // of open sizes; "" where there is none

    bool is_tensor() const { return kind == ONNX_TYPE_TENSOR; }
    bool is_static() const;
};

Result<std::string> NameOf(const Api& api, const OrtValueInfo* value);
Result<ValueType> TypeOf(const Api& api, const OrtValueInfo* value);

// A tensor's type, dimensions and bytes where they are.
struct TensorView {
    ONNXTensorElementDataType number = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    std::vector<int64_t> dims;
    const void* data = nullptr;
    size_t size_bytes = 0;
};
// Not of strings, of which there are no bytes.
Result<TensorView> ViewOf(const Api& api, const OrtValue* value);

// Our element type. onnxruntime's numbers are those of ONNX. Nothing for strings, complex numbers
// and what is not known.
std::optional<graph::ElementType> ElementOf(ONNXTensorElementDataType number);
// Whether its elements are whole bytes, in onnxruntime's memory as in ours.
bool HasWholeBytes(graph::ElementType element);

// The arrays that functions of onnxruntime fill.
Result<std::vector<const OrtNode*>> NodesOf(const Api& api, const OrtGraph* graph);
Result<std::vector<const OrtValueInfo*>> InputsOf(const Api& api, const OrtNode* node);
Result<std::vector<const OrtValueInfo*>> ImplicitInputsOf(const Api& api, const OrtNode* node);
Result<std::vector<const OrtValueInfo*>> OutputsOf(const Api& api, const OrtNode* node);
Result<std::string> OperatorOf(const Api& api, const OrtNode* node);
Result<std::string> DomainOf(const Api& api, const OrtNode* node);

}  // namespace fornax::onnxruntime_plugin
