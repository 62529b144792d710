// A recorded stream's storage, and the names of opcodes.
#include "hal/command_stream.h"

#include <cstdlib>

namespace fornax::hal {

const char* OpcodeName(Opcode opcode) {
    static constexpr const char* kNames[kOpcodeCount] = {
        "NOP",         "DISPATCH",      "DISPATCH_INDIRECT",
        "COPY",        "FILL",          "UPDATE",
        "BARRIER",     "TIMELINE_WAIT", "TIMELINE_SIGNAL",
        "EVENT_SET",   "EVENT_RESET",   "EVENT_WAIT",
        "TIMESTAMP",   "QUERY_RESET",   "QUERY_COPY",
        "BIND",        "CONSTANTS",     "CHAIN",
        "COPY_ROWS",   "CONDITION",     "COPY_INDIRECT",
        "COUNT_BEGIN", "COUNT_END",     "COPY_ROWS_INDIRECT"};
    const auto index = static_cast<uint32_t>(opcode);
    return index < kOpcodeCount ? kNames[index] : "UNKNOWN";
}

CommandStream::~CommandStream() {
    std::free(packets_);
    for (const SideChunk& chunk : side_) {
        std::free(chunk.data);
    }
}

bool CommandStream::OwnsSideData(uint64_t address, uint64_t size_bytes) const {
    for (const SideChunk& chunk : side_) {
        const uint64_t begin = reinterpret_cast<uint64_t>(chunk.data);
        if (address >= begin && address - begin <= chunk.used_bytes &&
            size_bytes <= chunk.used_bytes - (address - begin)) {
            return true;
        }
    }
    return false;
}

}  // namespace fornax::hal
