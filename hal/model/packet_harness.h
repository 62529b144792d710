// Runs arbitrary bytes as packets, for the fuzz target and for its bounded run as a test.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <span>

#include "hal/command_stream_builder.h"
#include "hal/model/command_processor.h"
#include "hal/model/counter_block.h"
#include "hal/model/worker_pool.h"
#include "hal/support/host_heap.h"
#include "hal/support/wait_hub.h"

namespace fornax::hal::model {

// A command processor with something to name: a memory, side data, executables, streams, timelines.
// Waits end at once, because the processor is told to stop.
class PacketHarness {
  public:
    static constexpr uint64_t kMemoryBytes = 8192;
    static constexpr uint64_t kSideBytes = 512;
    // Words of a payload with this top byte become addresses of something that exists, displaced by
    // the word's low bits: random bytes alone would never hit one.
    static constexpr uint8_t kMemoryMark = 0xa1;
    static constexpr uint8_t kSideMark = 0xa2;

    PacketHarness();

    // A packet of random content, most of it nearly right.
    static Packet RandomPacket(std::mt19937_64& random);

    // What became of the packets with each opcode that exists.
    struct Outcomes {
        std::array<uint64_t, kOpcodeCount> done{};
        std::array<uint64_t, kOpcodeCount> refused{};
    };

    // The first byte says whether the rest, taken as packets, runs one by one in a ring or as one
    // stream. A remainder that is no whole packet is ignored.
    void Run(std::span<const uint8_t> bytes, Outcomes* outcomes = nullptr);

    // Runs one packet in a stream of its own.
    Status RunOne(const Packet& packet);

    const std::shared_ptr<Memory>& memory() const { return memory_; }

  private:
    void Relocate(Packet& packet, uint64_t side_address) const;
    uint64_t BeginStream(CommandStreamBuilder& builder) const;

    std::shared_ptr<WaitHub> hub_;
    std::shared_ptr<HostHeap> heap_;
    WorkerPool pool_;
    CounterBlock counters_;
    std::atomic<bool> stop_{true};
    CommandProcessor processor_;
    std::shared_ptr<Memory> memory_;
    ResourceTable resources_;
};

}  // namespace fornax::hal::model
