// What the functions of the host share.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/graph/interpret/interpreter.h"

namespace fornax::graph::host {

using Arguments = std::span<const Tensor>;
using Results = Result<std::vector<Tensor>>;

Error Invalid(std::string message);
// Fails unless there are `count` arguments.
Status CheckCount(Arguments arguments, size_t count);
Status CheckStrings(const Tensor& tensor);
Tensor FromStrings(std::vector<int64_t> dims, std::vector<std::string> strings);
// The attribute, or the default value of its type.
template <typename T>
T Attribute(const op::HostCall& call, std::string_view name) {
    const auto found = call.attributes.find(std::string(name));
    if (found == call.attributes.end()) {
        return T{};
    }
    const T* value = std::get_if<T>(&found->second);
    return value == nullptr ? T{} : *value;
}

// regions.cpp
Results RoiAlign(const op::HostCall& call, Arguments arguments);
Results RoiMaxPool(const op::HostCall& call, Arguments arguments);
// selection.cpp
Results First(const op::HostCall& call, Arguments arguments);
Results NonZero(const op::HostCall& call, Arguments arguments);
Results Unique(const op::HostCall& call, Arguments arguments);
Results NonMaxSuppression(const op::HostCall& call, Arguments arguments);
// strings.cpp
Results StringEqual(const op::HostCall& call, Arguments arguments);
Results StringConcat(const op::HostCall& call, Arguments arguments);
Results StringSplit(const op::HostCall& call, Arguments arguments);
Results StringNormalise(const op::HostCall& call, Arguments arguments);
Results StringMatch(const op::HostCall& call, Arguments arguments);
Results ToString(const op::HostCall& call, Arguments arguments);
Results FromString(const op::HostCall& call, Arguments arguments);
// tables.cpp
Results TfIdf(const op::HostCall& call, Arguments arguments);
Results LabelEncode(const op::HostCall& call, Arguments arguments);

}  // namespace fornax::graph::host
