// The families of operators; each import_*.cpp has the table of its own.
#pragma once

#include <span>
#include <vector>

#include "compiler/frontends/torch/node.h"

namespace fornax::torch_frontend {

std::span<const OperatorEntry> ArithmeticOperators();
std::span<const OperatorEntry> ActivationOperators();
std::span<const OperatorEntry> SourceOperators();
std::span<const OperatorEntry> ViewOperators();
std::span<const OperatorEntry> ReductionOperators();
std::span<const OperatorEntry> SortOperators();
std::span<const OperatorEntry> IndexOperators();
std::span<const OperatorEntry> NormalisationOperators();
std::span<const OperatorEntry> ProductOperators();
std::span<const OperatorEntry> WindowOperators();
std::span<const OperatorEntry> PadOperators();
std::span<const OperatorEntry> ResampleOperators();
std::span<const OperatorEntry> RecurrentOperators();
std::span<const OperatorEntry> SignalOperators();
std::span<const OperatorEntry> LinearAlgebraOperators();
std::span<const OperatorEntry> BackwardOperators();

// All of them. An overload is in one family, once.
std::vector<std::span<const OperatorEntry>> OperatorFamilies();

// --- What families have in common ---

// A tensor without dimensions as one of one element.
Val AtLeastOne(Val x);
// An axis as torch counts it: a tensor without dimensions has an axis 0.
int64_t AxisOf(int64_t axis, Val x);

}  // namespace fornax::torch_frontend
