// Loads that end where a buffer ends, and where memory does: nothing beyond may be touched,
// whatever an application promises (without robust access no bounds are tested).
#include <gtest/gtest.h>

#include <cstring>

#include "compiler/kernel/codegen/two_buffer_kernel.h"

namespace fornax::kernel {
namespace {

constexpr uint32_t kLanes = 64;
constexpr uint32_t kInWords = 2 * kLanes;

struct Element {
    const char* type;
    uint32_t bytes;
};

// out[i] = the sum of `count` elements at the offset that in[i] holds.
ir::Kernel SumOfRun(const Element& element, uint32_t count, uint32_t align) {
    std::string names;
    std::string sums;
    for (uint32_t i = 0; i < count; ++i) {
        const std::string n = std::to_string(i);
        names += (i ? ", %v" : "%v") + n + ":" + element.type;
        sums += "%w" + n +
                ":i32 = " + (element.bytes == 4 ? "iadd %v" + n + ", %zero" : "zext %v" + n) +
                "\n%s" + std::to_string(i + 1) + ":i32 = iadd %s" + n + ", %w" + n + "\n";
    }
    return TwoBufferKernel("workgroup_size(64, 1, 1) push_constants(4)", R"(
    %lane:i32 = builtin local_index
    %slot:i32 = shl %lane, %two
    %at:i32 = load_buffer %in, %slot align(4)
    %s0:i32 = iadd %zero, %zero
)",
                           names + " = load_buffer %in, %at align(" + std::to_string(align) +
                               ")\n" + sums + "store_buffer %out, %slot, %s" +
                               std::to_string(count) + " align(4)\nreturn\n");
}

TEST(EmitEnds, RunsAtAnyPlace) {
    for (const Element& element : {Element{"i8", 1}, Element{"i16", 2}, Element{"i32", 4}}) {
        for (const uint32_t count : {1u, 2u, 3u, 4u, 5u, 8u}) {
            const uint32_t bytes = element.bytes * count;
            std::vector<uint32_t> in = Counting(kInWords, 0x01020304);
            for (uint32_t lane = 0; lane < kLanes; ++lane) {
                in[lane] = kInWords * 4 - bytes - (lane * 7 % 11) * element.bytes;
            }
            const ir::Kernel kernel = SumOfRun(element, count, element.bytes);
            ForEachWidth(kernel, {in, std::vector<uint32_t>(kLanes, 7)}, {}, [&](const Buffers& b) {
                for (uint32_t lane = 0; lane < kLanes; ++lane) {
                    uint32_t sum = 0;
                    for (uint32_t i = 0; i < count; ++i) {
                        uint32_t value = 0;
                        const auto* data = reinterpret_cast<const uint8_t*>(in.data());
                        std::memcpy(&value, data + in[lane] + i * element.bytes, element.bytes);
                        sum += value;
                    }
                    ASSERT_EQ(b[1][lane], sum) << lane << ": " << count << " of " << element.type;
                }
            });
            if (HasFailure()) {
                return;
            }
        }
    }
}

}  // namespace
}  // namespace fornax::kernel
