// This machine as a device whose time is modelled: what `fornax npu host` measures and writes.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "npu/description/description.h"

namespace fornax::tool {

struct HostMeasurement {
    // Everything is measured in so many passes over all of it, and the fastest counts: what else
    // runs on the machine only makes things slower, and seldom for all of the passes.
    uint32_t passes = 3;
    bool quick = false;  // one pass of about a second, and less exactly
};

// Runs on the Fornax driver and on the host itself, about five seconds a pass. The loader must have
// been told of the driver (SelectDriver()).
Result<npu::Description> MeasureHostDescription(const HostMeasurement& how);

// The text of a file with all keys, each with its meaning.
std::string DescriptionText(const npu::Description& description, const std::string& comment);

}  // namespace fornax::tool
