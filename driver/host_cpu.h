// The name of the processor that plays the NPU.
#pragma once

#include <string>

namespace fornax::driver {

// For instance "Intel(R) Xeon(R) Processor @ 2.10GHz"; "unknown processor" where it does not say.
const std::string& HostCpuName();

}  // namespace fornax::driver
