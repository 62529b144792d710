// All operators by domain and name.
#include <map>

#include "compiler/frontends/onnx/operator_families.h"

namespace fornax::onnx_frontend {
namespace {

using Table = std::map<std::pair<std::string_view, std::string_view>, const OperatorEntry*>;

Table MakeTable() {
    Table table;
    for (const std::span<const OperatorEntry> family :
         {ElementwiseOperators(), CastOperators(),      ShapeOperators(),
          IndexOperators(),       ReductionOperators(), NormalisationOperators(),
          WindowOperators(),      ProductOperators(),   QuantisedOperators(),
          AttentionOperators(),   ResampleOperators(),  RecurrentOperators(),
          ControlOperators(),     SequenceOperators(),  LossOperators(),
          SignalOperators(),      RandomOperators(),    HostOperators(),
          ClassicOperators(),     MicrosoftOperators()}) {
        for (const OperatorEntry& entry : family) {
            table.emplace(std::pair(entry.domain, entry.name), &entry);
        }
    }
    return table;
}

}  // namespace

const OperatorEntry* FindOperator(std::string_view domain, std::string_view name) {
    static const Table table = MakeTable();
    const auto found = table.find({domain, name});
    return found == table.end() ? nullptr : found->second;
}

}  // namespace fornax::onnx_frontend
