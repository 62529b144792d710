// Coverage-guided fuzzing of the command processor: any bytes as packets.
//   cmake -DFORNAX_FUZZ=ON -DFORNAX_SANITIZE=address,undefined ...;
//   fornax_hal_command_processor_fuzz
#include "hal/model/packet_harness.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static auto* harness = new fornax::hal::model::PacketHarness;
    harness->Run({data, size});
    return 0;
}
