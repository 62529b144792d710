// What the command prints of described machines, and of plans on them.
#pragma once

#include <string>

#include "npu/description/description.h"
#include "runtime/npu/modelled.h"

namespace fornax::tool {

// A picture of its blocks and a table of all keys with units and meanings.
std::string DescribeMachine(const npu::Description& description);

// The picture alone.
std::string MachinePicture(const npu::Description& description);

// A stamp, totals, how busy the units were, and the `top` records that take longest.
std::string ModelledTable(const runtime::Modelled& modelled, size_t top);

}  // namespace fornax::tool
