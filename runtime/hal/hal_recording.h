// A plan for given sizes, written into a command stream of the HAL.
//
//     HalRecording::Create(program, bindings) -> memory().arena_bytes and the sizes of ports
//     Record(addresses, builder)              -> packets, as often as wanted
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "compiler/graph/plan/plan.h"
#include "hal/command_stream_builder.h"
#include "runtime/hal/hal_program.h"

namespace fornax::runtime {

// Memory of the program's device, which the caller owns and keeps until what is recorded is done.
// Addresses are multiples of 16, and may be 0 for tensors without elements. No two of these share
// bytes, except inputs among themselves, which are read only.
struct PlanAddresses {
    uint64_t arena = 0;            // of MemoryPlan::arena_bytes, for temporaries
    std::vector<uint64_t> inputs;  // by number
    std::vector<uint64_t> outputs;
    std::vector<uint64_t> states;  // in the order of states(); they keep their bytes between runs
};

// Immutable, so any thread may record with it.
class HalRecording {
  public:
    // `bindings` fit the plan (FitSizes).
    static Result<HalRecording> Create(std::shared_ptr<const HalProgram> program,
                                       graph::Bindings bindings);

    const graph::MemoryPlan& memory() const { return memory_; }
    uint64_t InputBytes(size_t index) const {
        return BytesOf(program_->plan().inputs[index].block);
    }
    uint64_t OutputBytes(size_t index) const {
        return BytesOf(program_->plan().outputs[index].block);
    }
    const std::vector<graph::BlockId>& states() const { return states_; }
    uint64_t BytesOf(graph::BlockId id) const { return memory_.sizes[id.value()]; }

    // Appends the run. The caller puts a BARRIER before it, if something before writes what it
    // reads or reads what it writes, and one behind it before its results are used: packets before
    // and behind may run at the same time else. Leaves the stream's binding and constants as it
    // likes. The stream keeps the executables, and the caller the program.
    Status Record(const PlanAddresses& addresses, hal::CommandStreamBuilder& builder) const;

    // Appends what gives states the values that they have before the first run; the caller puts a
    // BARRIER behind it.
    Status RecordInitialStates(const PlanAddresses& addresses,
                               hal::CommandStreamBuilder& builder) const;

  private:
    struct Copy {
        uint64_t source, destination, size_bytes;
    };
    HalRecording() = default;
    // Where each block lies, and what is to be copied behind the last dispatch, since one block may
    // be several outputs, or an input, too.
    Result<std::vector<Place>> PlaceBlocks(const PlanAddresses& addresses,
                                           std::vector<Copy>& copies) const;

    std::shared_ptr<const HalProgram> program_;
    graph::Bindings bindings_;
    graph::MemoryPlan memory_;
    std::vector<graph::BlockId> states_;
};

}  // namespace fornax::runtime
