// Performance counters beside queries: what FORNAX_COUNTERS asks for.
#pragma once

#include <string>

#include "hal/counters.h"
#include "hal/device.h"

namespace fornax::driver {

class PhysicalDevice;

// How many counters queries may name.
uint32_t CounterCount(const PhysicalDevice& device);

// A line for each counter that is not 0.
std::string FormatCounters(const hal::Counters& counters);

// If FORNAX_COUNTERS is set and not 0, a device's counters go to standard error when it ends, or
// when the process does: for programs that ask no queries. Thread-safe.
void BeginCounterReport(const hal::Device& device);
void EndCounterReport(const hal::Device& device);

}  // namespace fornax::driver
