// The names of operations.
#include "compiler/graph/ir/operation.h"

namespace fornax::graph {

std::string_view Name(const Operation& operation) {
    return std::visit([](const auto& held) { return held.kName; }, operation);
}

}  // namespace fornax::graph
