// All operators of the host by name.
#include "compiler/graph/host/host_functions.h"

#include <fmt/format.h>

#include "compiler/graph/host/tensors.h"

namespace fornax::graph {
namespace host {

Error Invalid(std::string message) {
    return {ErrorCode::kInvalidArgument, std::move(message)};
}

Status CheckCount(Arguments arguments, size_t count) {
    if (arguments.size() != count) {
        return Invalid(fmt::format("it has {} operands, not {}", arguments.size(), count));
    }
    return OkStatus();
}

Status CheckStrings(const Tensor& tensor) {
    if (tensor.element != ElementType::kString || tensor.strings == nullptr) {
        return Invalid(fmt::format("an operand is {}, not strings", Name(tensor.element)));
    }
    return OkStatus();
}

Tensor FromStrings(std::vector<int64_t> dims, std::vector<std::string> strings) {
    Tensor tensor{ElementType::kString, std::move(dims), nullptr, nullptr};
    tensor.strings = std::make_shared<const std::vector<std::string>>(std::move(strings));
    return tensor;
}

}  // namespace host

const HostFunctions& StandardHostFunctions() {
    static const HostFunctions functions = {
        {"first", host::First},
        {"from_string", host::FromString},
        {"label_encode", host::LabelEncode},
        {"non_max_suppression", host::NonMaxSuppression},
        {"nonzero", host::NonZero},
        {"roi_align", host::RoiAlign},
        {"roi_max_pool", host::RoiMaxPool},
        {"string_concat", host::StringConcat},
        {"string_equal", host::StringEqual},
        {"string_match", host::StringMatch},
        {"string_normalise", host::StringNormalise},
        {"string_split", host::StringSplit},
        {"tf_idf", host::TfIdf},
        {"to_string", host::ToString},
        {"unique", host::Unique},
    };
    return functions;
}

}  // namespace fornax::graph
