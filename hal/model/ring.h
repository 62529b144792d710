// The ring between Submit and the command processor: a power of two of packets, a tail that the
// host moves and a head that the device moves. Both only grow; a position's slot is its low bits.
//
// One producer at a time (the queue's lock) and one consumer. Beside each packet stands the
// submission that it belongs to, whose resource table its operands index.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "hal/command_stream.h"

namespace fornax::hal::model {

struct Submission;

class Ring {
  public:
    static constexpr uint32_t kPackets = 256;
    static_assert((kPackets & (kPackets - 1)) == 0);

    struct Entry {
        const Packet& packet;
        Submission* submission;
    };

    // Producer: false when the ring is full. The packet is not visible before Publish.
    bool TryWrite(const Packet& packet, Submission* submission) {
        if (written_ - head_.load(std::memory_order_acquire) == kPackets) {
            return false;
        }
        packets_[written_ & kMask] = packet;
        submissions_[written_ & kMask] = submission;
        ++written_;
        return true;
    }

    // Producer: makes all that was written visible.
    void Publish() { tail_.store(written_, std::memory_order_seq_cst); }

    // Consumer.
    bool Empty() const {
        return head_.load(std::memory_order_relaxed) == tail_.load(std::memory_order_seq_cst);
    }
    Entry Front() const {
        const uint64_t slot = head_.load(std::memory_order_relaxed) & kMask;
        return {packets_[slot], submissions_[slot]};
    }
    void Pop() {
        head_.store(head_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }

  private:
    static constexpr uint64_t kMask = kPackets - 1;

    std::array<Packet, kPackets> packets_;
    std::array<Submission*, kPackets> submissions_{};
    uint64_t written_ = 0;  // the producer's: tail_, plus what is not published yet
    alignas(64) std::atomic<uint64_t> tail_{0};
    alignas(64) std::atomic<uint64_t> head_{0};
};

}  // namespace fornax::hal::model
