// What flows at a time through a shared bandwidth, and how far it is.
#pragma once

#include <optional>
#include <vector>

#include "npu/units/cycles.h"

namespace fornax::npu {

class Flows {
  public:
    // Bytes in a cycle that all flows share, and the most that the unit could move.
    Flows(double bandwidth, double peak) : bandwidth_(bandwidth), peak_(peak) {}

    // `bytes` and `cap` are positive.
    void Add(uint32_t owner, uint64_t bytes, double cap);
    // Cycles until the first flow ends, at least 1; nullopt if nothing flows.
    std::optional<Cycles> UntilNextEnd();
    // Lets so many cycles pass, at most UntilNextEnd(), and appends the owners whose flows have
    // ended, in the order in which these began.
    void Advance(Cycles cycles, std::vector<uint32_t>& ended);

    // Cycles in which anything flowed, and in which the unit would have moved all at its peak.
    Cycles active() const { return active_; }
    Cycles busy() const;

  private:
    struct Flow {
        uint32_t owner = 0;
        double left = 0;
        double cap = 0;
        double rate = 0;
        double slack = 0;  // what rounding may leave of it
    };

    void Share();

    double bandwidth_;
    double peak_;
    std::vector<Flow> flows_;
    bool is_shared_ = true;
    Cycles active_ = 0;
    double bytes_ = 0;  // of all flows
};

}  // namespace fornax::npu
