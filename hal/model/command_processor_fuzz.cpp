// Coverage-guided fuzzing of the command processor: any bytes as packets.
#include <algorithm>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "base/fuzz_outcomes.h"
#include "hal/model/packet_harness.h"

namespace {

using fornax::hal::Packet;
using fornax::hal::model::PacketHarness;

// Inserts, replaces, removes or exchanges a whole packet.
void ChangePackets(std::vector<Packet>& packets, std::mt19937_64& random) {
    const auto any = [&] { return static_cast<ptrdiff_t>(random() % packets.size()); };
    const uint64_t change = packets.empty() ? 0 : random() % 4;
    switch (change) {
        case 0:
            packets.insert(packets.begin() + (packets.empty() ? 0 : any()),
                           PacketHarness::RandomPacket(random));
            return;
        case 1:
            packets[static_cast<size_t>(any())] = PacketHarness::RandomPacket(random);
            return;
        case 2:
            packets.erase(packets.begin() + any());
            return;
        default:
            std::swap(packets[static_cast<size_t>(any())], packets[static_cast<size_t>(any())]);
            return;
    }
}

}  // namespace

// libFuzzer's own change of bytes.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

// Changed bytes seldom name an opcode and an address at once, random packets do.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data,
                                          size_t size,
                                          size_t max_size,
                                          unsigned seed) {
    std::mt19937_64 random(seed);
    if (random() % 2 == 0 || max_size < 1 + sizeof(Packet)) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
    if (size == 0) {
        data[0] = static_cast<uint8_t>(random());
    }
    std::vector<Packet> packets(size == 0 ? 0 : (size - 1) / sizeof(Packet));
    if (!packets.empty()) {
        std::memcpy(static_cast<void*>(packets.data()), data + 1, packets.size() * sizeof(Packet));
    }
    ChangePackets(packets, random);
    packets.resize(std::min(packets.size(), (max_size - 1) / sizeof(Packet)));
    if (!packets.empty()) {
        std::memcpy(data + 1, packets.data(), packets.size() * sizeof(Packet));
    }
    return 1 + packets.size() * sizeof(Packet);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static auto* harness = new PacketHarness;
    PacketHarness::Outcomes outcomes;
    harness->Run({data, size}, &outcomes);
    fornax::FuzzOutcomes::Count(std::any_of(outcomes.done.begin(), outcomes.done.end(),
                                            [](uint64_t done) { return done != 0; }));
    return 0;
}
