// Random kernels for differential tests: the same seed gives the same kernel on every machine.
#pragma once

#include <cstdint>

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

struct RandomKernelOptions {
    uint32_t statements = 60;
    // Every correct implementation gives the same bytes: no race, no "any value", only float
    // operations that are rounded correctly (and not contracted). Otherwise only runs of one
    // interpreter compare: anything goes, buffers overlap, offsets are wild.
    bool portable = true;
    // Anywhere, also where lanes parted. Those that are not portable besides show in which order
    // lanes run.
    bool subgroup_operations = false;
};

// Bindings 0 and 1 of set 0 are written, 2 is only read; see TestDispatch for their sizes. Always
// ends; barriers are reached uniformly. Workgroups of 1 to 80 invocations in up to three
// dimensions.
ir::Kernel RandomKernel(uint64_t seed, const RandomKernelOptions& options = {});

// A small generator of its own: the standard library's distributions differ between libraries.
class Random {
  public:
    explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du) {}
    uint64_t Next() {  // splitmix64
        uint64_t z = state_ += 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
    }
    uint32_t Below(uint32_t limit) { return static_cast<uint32_t>((Next() >> 32) * limit >> 32); }
    bool Chance(uint32_t percent) { return Below(100) < percent; }

  private:
    uint64_t state_;
};

}  // namespace fornax::kernel
