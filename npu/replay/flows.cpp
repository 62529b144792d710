#include "npu/replay/flows.h"

#include "npu/units/fair_share.h"

namespace fornax::npu {

void Flows::Add(uint32_t owner, uint64_t bytes, double cap) {
    const auto left = static_cast<double>(bytes);
    flows_.push_back({.owner = owner, .left = left, .cap = cap, .slack = 1e-9 * left});
    bytes_ += left;
    is_shared_ = false;
}

void Flows::Share() {
    if (is_shared_) {
        return;
    }
    std::vector<double> caps;
    caps.reserve(flows_.size());
    for (const Flow& flow : flows_) {
        caps.push_back(flow.cap);
    }
    const std::vector<double> rates = MaxMinFair(bandwidth_, caps);
    for (size_t i = 0; i < flows_.size(); ++i) {
        flows_[i].rate = rates[i];
    }
    is_shared_ = true;
}

std::optional<Cycles> Flows::UntilNextEnd() {
    Share();
    std::optional<Cycles> least;
    for (const Flow& flow : flows_) {
        const Cycles cycles =
            std::max<Cycles>(1, WholeCycles((flow.left - flow.slack) / flow.rate));
        least = std::min(least.value_or(cycles), cycles);
    }
    return least;
}

void Flows::Advance(Cycles cycles, std::vector<uint32_t>& ended) {
    if (flows_.empty() || cycles == 0) {
        return;
    }
    Share();
    active_ += cycles;
    for (Flow& flow : flows_) {
        flow.left -= flow.rate * static_cast<double>(cycles);
        if (flow.left <= flow.slack) {
            ended.push_back(flow.owner);
        }
    }
    if (std::erase_if(flows_, [](const Flow& flow) { return flow.left <= flow.slack; }) > 0) {
        is_shared_ = false;
    }
}

Cycles Flows::busy() const {
    return std::min(active_, WholeCycles(bytes_ / peak_));
}

}  // namespace fornax::npu
