#include "npu/units/fair_share.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace fornax::npu {

std::vector<double> MaxMinFair(double bandwidth, std::span<const double> caps) {
    std::vector<size_t> order(caps.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::sort(order, {}, [&](size_t flow) { return std::pair(caps[flow], flow); });
    std::vector<double> rates(caps.size(), 0);
    double left = bandwidth;
    for (size_t i = 0; i < order.size(); ++i) {
        const double share = left / static_cast<double>(order.size() - i);
        rates[order[i]] = std::min(caps[order[i]], share);
        left = std::max(0.0, left - rates[order[i]]);
    }
    return rates;
}

}  // namespace fornax::npu
