// The families of operators; each import_*.cpp has the table of its own.
#pragma once

#include <span>
#include <vector>

#include "compiler/frontends/onnx/node.h"

namespace fornax::onnx_frontend {

std::span<const OperatorEntry> ElementwiseOperators();
std::span<const OperatorEntry> CastOperators();
std::span<const OperatorEntry> ShapeOperators();
std::span<const OperatorEntry> IndexOperators();
std::span<const OperatorEntry> ReductionOperators();
std::span<const OperatorEntry> NormalisationOperators();
std::span<const OperatorEntry> WindowOperators();
std::span<const OperatorEntry> ProductOperators();
std::span<const OperatorEntry> QuantisedOperators();
std::span<const OperatorEntry> AttentionOperators();
std::span<const OperatorEntry> ResampleOperators();
std::span<const OperatorEntry> RecurrentOperators();
std::span<const OperatorEntry> ControlOperators();
std::span<const OperatorEntry> SequenceOperators();
std::span<const OperatorEntry> LossOperators();
std::span<const OperatorEntry> SignalOperators();
std::span<const OperatorEntry> RandomOperators();
std::span<const OperatorEntry> HostOperators();
std::span<const OperatorEntry> ClassicOperators();    // ai.onnx.ml
std::span<const OperatorEntry> MicrosoftOperators();  // com.microsoft

// All of them. An operator is in one family, once.
std::vector<std::span<const OperatorEntry>> OperatorFamilies();

}  // namespace fornax::onnx_frontend
