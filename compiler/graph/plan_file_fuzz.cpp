// Coverage-guided fuzzing of the plan reader: any payload behind a right header.
//   cmake -DFORNAX_FUZZ=ON -DFORNAX_SANITIZE=address,undefined ...; fornax_graph_plan_file_fuzz
#include "compiler/graph/plan_file.h"

#include <cstdlib>
#include <cstring>

#include "base/hash.h"
#include "compiler/graph/graph.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    // The header's fields in the order of plan_file.cpp, so that the checksum stops nothing.
    const std::span<const std::byte> payload = std::as_bytes(std::span(data, size));
    const fornax::Hash128 checksum = fornax::HashBytes(payload);
    const uint32_t version_and_reserved[2] = {fornax::graph::kPlanFormatVersion, 0};
    const uint64_t payload_bytes = size;
    std::vector<std::byte> file(40 + size);
    std::memcpy(file.data(), "FNXPLAN\n", 8);
    std::memcpy(file.data() + 8, version_and_reserved, 8);
    std::memcpy(file.data() + 16, &payload_bytes, 8);
    std::memcpy(file.data() + 24, &checksum, 16);
    if (size != 0) {
        std::memcpy(file.data() + 40, data, size);
    }
    const fornax::Result<fornax::graph::Plan> plan = fornax::graph::ParsePlan(file);
    // What is accepted can be printed and written again.
    if (plan.ok() &&
        (fornax::graph::ToText(*plan).empty() || !fornax::graph::SerializePlan(*plan).ok())) {
        std::abort();
    }
    return 0;
}
