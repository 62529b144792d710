// This machine as a device whose time is modelled: what `fornax npu host` measures and writes.
#pragma once

#include <string>

#include "base/result.h"
#include "npu/description/description.h"

namespace fornax::tool {

// Runs on the Fornax driver and on the host itself, for about fifteen seconds; with `quick` about
// one, and less exactly. The loader must have been told of the driver (SelectDriver()).
Result<npu::Description> MeasureHostDescription(bool quick);

// The text of a file with all keys, each with its meaning.
std::string DescriptionText(const npu::Description& description, const std::string& comment);

}  // namespace fornax::tool
