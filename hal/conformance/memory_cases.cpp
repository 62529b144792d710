// Memory: alignment, limits, contents.
#include <algorithm>

#include "hal/conformance/conformance.h"

namespace fornax::hal::conformance {
namespace {

HAL_CASE(MemoryIsAlignedZeroedAndWritable) {
    for (const uint64_t size_bytes : {uint64_t{1}, uint64_t{63}, uint64_t{4095}, uint64_t{4096},
                                      uint64_t{200'001}, uint64_t{5'000'001}}) {
        const auto memory = bench.Allocate(size_bytes);
        ASSERT_NE(memory, nullptr);
        EXPECT_EQ(memory->size_bytes(), size_bytes);
        EXPECT_EQ(memory->address() % kMemoryAlignment, 0u);
        if (size_bytes >= kMemoryPageBytes) {
            EXPECT_EQ(memory->address() % kMemoryPageBytes, 0u);
        }
        const auto bytes = View<uint8_t>(memory);
        EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](uint8_t b) { return b == 0; }));
        std::fill(bytes.begin(), bytes.end(), 0xa5);
    }
}

HAL_CASE(MemoryHeapHasALimit) {
    constexpr uint64_t kHeap = 1 << 20;
    Bench small(bench.backend(), {.heap_bytes = kHeap});
    EXPECT_EQ(small.device().heap().size_bytes, kHeap);
    EXPECT_EQ(small.device().capabilities().heap_bytes, kHeap);
    auto first = small.device().AllocateMemory(kHeap / 2);
    ASSERT_TRUE(first.ok());
    EXPECT_EQ(small.device().heap().used_bytes, kHeap / 2);
    const auto second = small.device().AllocateMemory(kHeap / 2 + 1);
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, ErrorCode::kOutOfDeviceMemory);
    EXPECT_NE(second.error().message.find("524289"), std::string::npos) << second.error().message;
    EXPECT_FALSE(small.device().AllocateMemory(UINT64_MAX).ok());
    EXPECT_FALSE(small.device().AllocateMemory(0).ok());
    first = Error{ErrorCode::kNotFound, ""};  // frees it
    EXPECT_EQ(small.device().heap().used_bytes, 0u);
    EXPECT_TRUE(small.device().AllocateMemory(kHeap).ok());
}

HAL_CASE(MemoryOutlivesItsDevice) {
    const auto memory = bench.Allocate(1 << 20);
    bench.Close();
    View<uint8_t>(memory)[12345] = 1;
}

HAL_CASE(ExecutablesBeyondLimitsAreRefused) {
    const KernelEntry entry = [](const DispatchFrame*, WorkerFrame*, uint64_t, uint64_t) {};
    const auto refused = [&](KernelDesc desc) {
        const auto result = bench.device().CreateExecutable(std::move(desc));
        return !result.ok() && result.error().code == ErrorCode::kInvalidArgument;
    };
    EXPECT_FALSE(refused({.entry = entry, .workgroup_size = {1024, 1, 1}}));
    EXPECT_FALSE(refused({.entry = entry, .shared_bytes = kMaxSharedBytes}));
    EXPECT_TRUE(refused({.entry = nullptr}));
    EXPECT_TRUE(refused({.entry = entry, .workgroup_size = {1, 0, 1}}));
    EXPECT_TRUE(refused({.entry = entry, .workgroup_size = {1025, 1, 1}}));
    EXPECT_TRUE(refused({.entry = entry, .workgroup_size = {32, 32, 2}}));
    EXPECT_TRUE(refused({.entry = entry, .shared_bytes = kMaxSharedBytes + 1}));
    EXPECT_TRUE(refused({.entry = entry, .scratch_bytes = kMaxScratchBytes + 1}));
    EXPECT_TRUE(refused({.entry = entry, .push_constant_bytes = kMaxPushConstantBytes + 1}));
}

}  // namespace
}  // namespace fornax::hal::conformance
