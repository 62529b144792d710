// The scalar functions of elementwise nodes and of loop kernels; scalar_functions.def lists them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "compiler/graph/ir/element_type.h"

namespace fornax::graph {

enum class ScalarFunction : uint8_t {
#define FORNAX_SCALAR(name, text, arguments, result) k##name,
#include "compiler/graph/ir/scalar_functions.def"
#undef FORNAX_SCALAR
};
inline constexpr ScalarFunction kLastScalarFunction = ScalarFunction::kSelect;

std::string_view Name(ScalarFunction function);
std::optional<ScalarFunction> ScalarFunctionByName(std::string_view name);
size_t ArgumentCount(ScalarFunction function);
// Whether the function is defined for arguments of `type` (of Select: the chosen ones).
bool Accepts(ScalarFunction function, ElementType type);
// The result's type for arguments of `type` (of Select: the chosen ones).
ElementType ResultType(ScalarFunction function, ElementType type);

// Whether the function takes a series or a table: ten times the time of an addition, and shaders
// have none for f64.
bool IsTranscendental(ScalarFunction function);

// The function's value on elements of `type`, rounded to the result's type. f32 and narrower floats
// are computed in double. This is the definition that kernels are tested against.
Scalar EvaluateScalar(ScalarFunction function, ElementType type, std::span<const Scalar> arguments);

// The combinations of reductions, scans and scatters.
enum class Combine : uint8_t { kReplace, kSum, kProduct, kMin, kMax, kAnd, kOr, kXor };
inline constexpr Combine kLastCombine = Combine::kXor;
std::string_view Name(Combine combine);
std::optional<Combine> CombineByName(std::string_view name);
// The value that changes nothing: 0, 1, the type's greatest or least value, all bits. Not of
// kReplace.
Scalar NeutralElement(Combine combine, ElementType type);
bool Accepts(Combine combine, ElementType type);
Scalar EvaluateCombine(Combine combine, ElementType type, const Scalar& a, const Scalar& b);

}  // namespace fornax::graph
