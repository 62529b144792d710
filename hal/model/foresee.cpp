#include "hal/model/foresee.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>

#include "hal/foresight.h"

namespace fornax::hal::model {

namespace {

bool Wants(const std::shared_ptr<const Executable>& executable) {
    const Foresight* foresight = executable ? executable->desc().foresight : nullptr;
    return foresight != nullptr && foresight->WantsToForesee();
}

void ForeseeBind(const CommandStream& stream, const Packet& packet, HeapView& heap) {
    const BindPayload& bind = packet.bind;
    const auto& executables = stream.resources().executables;
    const uint32_t index = packet.header.operand;
    if (index >= executables.size() || !Wants(executables[index]) ||
        bind.set_count > kMaxDescriptorSets || bind.descriptor_sets % alignof(uint64_t) != 0 ||
        !stream.OwnsSideData(bind.descriptor_sets, bind.set_count * sizeof(uint64_t))) {
        return;
    }
    const auto* sets = reinterpret_cast<const uint64_t*>(bind.descriptor_sets);
    const auto read = [&](uint32_t set, uint32_t offset_bytes, uint32_t& word) {
        if (set >= bind.set_count || sets[set] == 0) {
            return false;
        }
        const uint64_t address = sets[set] + offset_bytes;
        if (address < sets[set] || (!stream.OwnsSideData(address, sizeof(word)) &&
                                    !heap.Contains(address, sizeof(word)))) {
            return false;
        }
        std::memcpy(&word, reinterpret_cast<const void*>(address), sizeof(word));
        return true;
    };
    executables[index]->desc().foresight->Foresee(std::cref(read));  // takes no memory
}

void Foresee(const CommandStream& stream, const HostHeap& heap, uint32_t depth) {
    if (std::ranges::any_of(stream.resources().executables, Wants)) {
        HeapView view(heap);
        for (const Packet& packet : stream.packets()) {
            if (packet.header.opcode == Opcode::kBind) {
                ForeseeBind(stream, packet, view);
            }
        }
    }
    if (depth == kMaxChainDepth) {
        return;
    }
    for (const std::shared_ptr<const CommandStream>& chained : stream.resources().streams) {
        if (chained) {
            Foresee(*chained, heap, depth + 1);
        }
    }
}

}  // namespace

void ForeseeDispatches(const CommandStream& stream, const HostHeap& heap) {
    Foresee(stream, heap, 1);
}

}  // namespace fornax::hal::model
