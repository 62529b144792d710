#include "tools/replay/sweep_page.h"

#include "tools/replay/html.h"
#include "tools/replay/page_files.h"
#include "tools/replay/table.h"

namespace fornax::tool {
namespace {

using nlohmann::json;

constexpr uint64_t kMostBeaten = 4'000;

json RowOf(const npu::Space& space, const npu::SweepRow& row, uint64_t index, bool is_best) {
    json values = json::array();
    for (size_t axis = 0; axis < space.axes.size(); ++axis) {
        const npu::Field& field = *space.axes[axis].field;
        const double value = space.ValueOf(axis, index);
        values.push_back(field.kind == npu::FieldKind::kWord ? json(npu::TextOf(field, value))
                                                             : json(value));
    }
    return {{"values", values},           {"time_ns", row.time_ns},
            {"energy_nj", row.energy_nj}, {"area_mm2", row.area_mm2},
            {"is_best", is_best},         {"hash", row.description.ToHex()}};
}

}  // namespace

std::string SweepPageOf(const npu::Space& space, std::span<const npu::SweepRow> rows) {
    std::vector<bool> is_best(rows.size());
    for (const uint64_t i : npu::ParetoFront(rows)) {
        is_best[i] = true;
    }
    json data = {{"axes", json::array()}, {"rows", json::array()}};
    for (const npu::SpaceAxis& axis : space.axes) {
        data["axes"].push_back(axis.name());
    }
    uint64_t left_out = 0, beaten = 0;
    const uint64_t every = npu::CeilDivide(rows.size(), kMostBeaten);
    for (uint64_t i = 0; i < rows.size(); ++i) {
        if (!rows[i].failure.empty()) {
            continue;
        }
        if (!is_best[i] && beaten++ % every != 0) {
            ++left_out;
            continue;
        }
        data["rows"].push_back(RowOf(space, rows[i], i, is_best[i]));
    }
    data["left_out"] = left_out;
    return HtmlOf({.title = "Sweep of " + space.base.name,
                   .stamp = SweepStamp(space),
                   .body = SweepBody(),
                   .script = SweepScript()},
                  data);
}

}  // namespace fornax::tool
