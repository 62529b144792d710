// Rows of a sweep as lines of JSON: how the processes of a cluster give them to the one that asked.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "npu/sweep/sweep.h"

namespace fornax::tool {

std::string RowLine(uint64_t index, const npu::SweepRow& row);

// Fills `rows`, of which each has to have its line. Fails (kDataLoss) where a line is no row, is of
// none of them or of one that was there.
Status ReadRowLines(std::string_view text, size_t programs, std::vector<npu::SweepRow>& rows);

}  // namespace fornax::tool
