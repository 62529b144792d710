// All operators by overload.
#include <cassert>
#include <map>

#include "compiler/frontends/torch/import_quantised.h"
#include "compiler/frontends/torch/operator_families.h"

namespace fornax::torch_frontend {
namespace {

using Table = std::map<std::string_view, ImportFunction>;

Table MakeTable() {
    Table table;
    for (const std::span<const OperatorEntry> family : OperatorFamilies()) {
        for (const OperatorEntry& entry : family) {
            [[maybe_unused]] const bool inserted = table.emplace(entry.name, entry.import).second;
            assert(inserted);
        }
    }
    return table;
}

}  // namespace

std::vector<std::span<const OperatorEntry>> OperatorFamilies() {
    return {ArithmeticOperators(), ActivationOperators(),    SourceOperators(),
            ViewOperators(),       ReductionOperators(),     SortOperators(),
            IndexOperators(),      NormalisationOperators(), ProductOperators(),
            WindowOperators(),     PadOperators(),           ResampleOperators(),
            RecurrentOperators(),  SignalOperators(),        LinearAlgebraOperators(),
            BackwardOperators(),   QuantisedOperators()};
}

ImportFunction FindOperator(std::string_view target) {
    static const Table table = MakeTable();
    constexpr std::string_view kNamespace = "aten.";
    // Operators of other namespaces are in the table with theirs.
    const auto found =
        table.find(target.starts_with(kNamespace) ? target.substr(kNamespace.size()) : target);
    return found == table.end() ? nullptr : found->second;
}

Val AtLeastOne(Val x) {
    return x.rank() == 0 ? graph::Reshape(x, Shape{1}) : x;
}

int64_t AxisOf(int64_t axis, Val x) {
    return Builder::Axis(axis, std::max<int64_t>(x.rank(), 1));
}

}  // namespace fornax::torch_frontend
