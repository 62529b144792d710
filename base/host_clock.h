// How a program asks the driver for the host's clock although FORNAX_NPU describes a machine: by
// the name of the engine in its VkApplicationInfo. For those that show both beside each other.
#pragma once

namespace fornax {

inline constexpr char kHostClockEngine[] = "fornax-host-clock";

}  // namespace fornax
