// Names of operators and functions, for text dumps, tables and messages.
#include "compiler/legacy_graph/operators.h"

namespace fornax::legacy_graph {

std::string_view Name(UnaryFunction function) {
    static constexpr std::string_view kNames[] = {
        "identity", "relu", "clip", "sigmoid",    "tanh", "exp",        "sqrt",
        "negate",   "abs",  "erf",  "leaky_relu", "log",  "reciprocal", "silu",
    };
    static_assert(std::size(kNames) == static_cast<size_t>(kLastUnaryFunction) + 1);
    return kNames[static_cast<size_t>(function)];
}

std::string_view Name(BinaryFunction function) {
    static constexpr std::string_view kNames[] = {"add", "sub", "mul", "div", "max", "min", "pow"};
    static_assert(std::size(kNames) == static_cast<size_t>(kLastBinaryFunction) + 1);
    return kNames[static_cast<size_t>(function)];
}

std::string_view op::Name(ReduceKind kind) {
    static constexpr std::string_view kNames[] = {"sum", "mean", "max", "min"};
    static_assert(std::size(kNames) == static_cast<size_t>(kLastReduceKind) + 1);
    return kNames[static_cast<size_t>(kind)];
}

std::string_view Name(const Operator& operation) {
    return std::visit([](const auto& alternative) { return alternative.kName; }, operation);
}

}  // namespace fornax::legacy_graph
