// What follows from all of a description's values.
#include "npu/description/description.h"

#include <fmt/format.h>

#include "npu/description/fields.h"

namespace fornax::npu {

double Description::PeakTops(MatrixType type) const {
    const auto elements =
        static_cast<double>(cores.count() * matrix.units * matrix.rows * matrix.columns);
    return 2 * elements * matrix.rate(type) * cores.clock_ghz / 1e3;
}

Hash128 Description::Hash() const {
    Hasher hasher;
    hasher.Append("npu description");
    hasher.AppendListSize(Fields().size());
    for (const Field& field : Fields()) {
        hasher.Append(field.table).Append(field.key).Append(field.get(*this));
    }
    return hasher.Finish();
}

std::string StampOf(const Description& description) {
    return fmt::format("modelled, uncalibrated ({}, description {}, model {})", description.name,
                       description.Hash().ToHex().substr(0, 16), kModelVersion);
}

}  // namespace fornax::npu
