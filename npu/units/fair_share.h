// Max-min fair sharing: how flows with caps of their own share one bandwidth.
//
// Source: D. Bertsekas and R. Gallager, "Data Networks", section 6.5.2 (progressive filling): all
// rates rise together; a flow that reaches its cap stops there, and the others share what is left.
// So no flow's rate can rise without that of one with no more falling, and the bandwidth is used up
// unless every flow has its cap.
#pragma once

#include <span>
#include <vector>

namespace fornax::npu {

// The rate of each flow, in the order of `caps`; none exceeds its cap, their sum not `bandwidth`.
std::vector<double> MaxMinFair(double bandwidth, std::span<const double> caps);

}  // namespace fornax::npu
