// The command processor: decodes packets, checks every operand, and carries them out.
//
// It trusts nothing in a packet: whatever it holds, the outcome is the stated effect or an Error
// whose message names the packet, and which loses the device. What a kernel does with addresses
// that it finds in descriptors is outside its sight.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "base/result.h"
#include "hal/command_stream.h"
#include "hal/model/counter_block.h"
#include "hal/model/transfer.h"
#include "hal/model/worker_pool.h"
#include "hal/support/host_heap.h"
#include "hal/support/wait_hub.h"
#include "hal/work_observer.h"

namespace fornax::hal::model {

// What a command processor works with. All outlive it.
struct ProcessorContext {
    WaitHub& hub;
    const HostHeap& heap;
    WorkerPool& pool;
    CounterBlock& counters;
    const std::atomic<bool>& stop;  // ends waits; set before WaitHub::Notify
    WorkObserver* observer = nullptr;
    uint32_t queue = 0;  // for the observer
};

// Used by one thread, its queue's.
class CommandProcessor {
  public:
    explicit CommandProcessor(const ProcessorContext& context);

    // Runs one packet of a ring, whose operands are in `resources`. An Error either is a reason to
    // lose the device or says that the device was lost or stopped during a wait.
    Status RunRingPacket(const Packet& packet, const ResourceTable& resources);

    // Runs a stream as CHAIN from a ring does.
    Status RunStream(const CommandStream& stream);

    // For the observer: a submission begins; what it owes is seen from now on.
    void BeginSubmission();
    void FlushObserver();
    // Nothing is to be done: gives the observer a moment. False: it needs none.
    bool IdleObserver();

    // Whether it waits for somebody else: a timeline, an event or a query. For any thread.
    bool blocked() const { return blocked_.load(std::memory_order_relaxed); }

  private:
    // Where packets come from, with the state that lives as long as their stream runs.
    struct Scope {
        const ResourceTable& resources;
        const CommandStream* stream;  // null in a ring
        uint32_t depth;               // 0 in a ring
        // BIND and CONSTANTS.
        const Executable* executable = nullptr;
        uint32_t bound_sets = 0;  // bit n: set n is not null
        uint32_t constant_bytes = 0;
        alignas(16) std::array<std::byte, kPushConstantBytes> constants = {};
        DispatchFrame frame = {};
        // CONDITION: of the streams that chained to this one, and of either.
        bool outer_discards = false;
        bool discards = outer_discards;
    };

    Status Run(const Packet& packet, Scope& scope);
    Status RunPackets(Scope& scope);

    Status Bind(const Packet& packet, Scope& scope);
    Status Constants(const Packet& packet, Scope& scope);
    Status Dispatch(const Packet& packet, Scope& scope);
    Status DispatchIndirect(const Packet& packet, Scope& scope);
    Error DescribeFault(const Scope& scope, const GridResult& result);
    Status RunGrid(const uint32_t (&count)[3], const uint32_t (&base)[3], Scope& scope);
    void Observe(ObservedCopy kind, uint64_t bytes);
    Status Copy(const CopyPayload& copy);
    Status CopyIndirect(const Packet& packet);
    Status CopyRows(const CopyRowsPayload& copy, const Scope& scope);
    Status CopyRowsIndirect(const CopyRowsIndirectPayload& copy, const Scope& scope);
    Status Condition(const Packet& packet, Scope& scope);
    Status Fill(const FillPayload& fill);
    Status Update(const Packet& packet, const Scope& scope);
    Status Timeline(const Packet& packet, const Scope& scope);
    Status Event(const Packet& packet);
    Status Timestamp(const QueryPayload& query);
    Status Count(const Packet& packet);
    Status QueryReset(const Packet& packet);
    Status QueryCopy(const Packet& packet);
    Status Chain(const Packet& packet, Scope& scope);

    // An Error unless all of the range is device memory and `address` is aligned.
    Status CheckMemory(const char* what, uint64_t address, uint64_t size_bytes, uint64_t alignment);
    // Reads parameters once, so that what is checked is what is used. The range was checked.
    template <typename T>
    Status Read(uint64_t address, T* value) {
        return Guarded(worker_, [=] {
            std::memcpy(value, reinterpret_cast<const void*>(address), sizeof(T));
        });
    }
    // As CheckMemory, in the stream's side data.
    Status CheckSideData(const char* what,
                         uint64_t address,
                         uint64_t size_bytes,
                         uint64_t alignment,
                         const Scope& scope) const;
    // Blocks until done() is true, without holding anything; an Error when lost or stopped.
    template <typename Done>
    Status Poll(Done done);

    ProcessorContext context_;
    std::atomic<bool> blocked_{false};
    HeapView memory_;
    Worker worker_;
};

}  // namespace fornax::hal::model
