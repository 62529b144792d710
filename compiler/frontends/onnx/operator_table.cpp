// All operators by domain and name.
#include <cassert>
#include <map>

#include "compiler/frontends/onnx/operator_families.h"

namespace fornax::onnx_frontend {
namespace {

using Table = std::map<std::pair<std::string_view, std::string_view>, const OperatorEntry*>;

Table MakeTable() {
    Table table;
    for (const std::span<const OperatorEntry> family : OperatorFamilies()) {
        for (const OperatorEntry& entry : family) {
            [[maybe_unused]] const bool inserted =
                table.emplace(std::pair(entry.domain, entry.name), &entry).second;
            assert(inserted);
        }
    }
    return table;
}

}  // namespace

std::vector<std::span<const OperatorEntry>> OperatorFamilies() {
    return {ElementwiseOperators(), CastOperators(),      ShapeOperators(),
            IndexOperators(),       ReductionOperators(), NormalisationOperators(),
            WindowOperators(),      ProductOperators(),   QuantisedOperators(),
            AttentionOperators(),   ResampleOperators(),  RecurrentOperators(),
            ControlOperators(),     SequenceOperators(),  LossOperators(),
            SignalOperators(),      RandomOperators(),    HostOperators(),
            ClassicOperators(),     MicrosoftOperators()};
}

const OperatorEntry* FindOperator(std::string_view domain, std::string_view name) {
    static const Table table = MakeTable();
    const auto found = table.find({domain, name});
    return found == table.end() ? nullptr : found->second;
}

}  // namespace fornax::onnx_frontend
