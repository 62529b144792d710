// Events, timestamps and queries.
#include <chrono>
#include <cstring>
#include <thread>

#include "hal/conformance/conformance.h"

namespace fornax::hal::conformance {
namespace {

HAL_CASE(EventsHoldTheQueue) {
    const auto memory = bench.Allocate(4096);
    // Not at the start of the allocation, between neighbours that must stay as they are.
    auto cells = View<EventCell>(memory);
    cells[16] = cells[18] = 0x5a5a5a5a;
    EventCell& cell = cells[17];
    const uint64_t address = memory->address() + 17 * sizeof(EventCell);
    CommandStreamBuilder builder;
    builder.WaitEvent(address);
    builder.ResetEvent(address);
    const auto stream = builder.Finish();
    const auto done = bench.NewTimeline();
    ASSERT_TRUE(bench.Submit(bench.queue(), {}, {*stream}, {{done, 1}}).ok());
    EXPECT_EQ(done->Wait(1, 3'000'000).error().code, ErrorCode::kTimeout);
    SetEvent(cell);
    ASSERT_TRUE(done->Wait(1, kPatienceNs).ok());
    EXPECT_FALSE(EventIsSet(cell));
    CommandStreamBuilder setter;
    setter.SetEvent(address);
    setter.WaitEvent(address);
    bench.Run(setter);
    EXPECT_TRUE(EventIsSet(cell));
    EXPECT_EQ(cells[16], 0x5a5a5a5au);
    EXPECT_EQ(cells[18], 0x5a5a5a5au);
}

HAL_CASE(TimestampsGrowWithTheClock) {
    const auto memory = bench.Allocate(8 * sizeof(QuerySlot));
    const auto slots = View<QuerySlot>(memory);
    const uint64_t before = bench.device().TimestampNow();
    CommandStreamBuilder builder;
    builder.ResetQueries(memory->address(), 8);
    for (uint64_t i = 0; i < 7; ++i) {
        builder.Timestamp(memory->address() + i * sizeof(QuerySlot));
        builder.Barrier();
    }
    bench.Run(builder);
    const uint64_t after = bench.device().TimestampNow();
    uint64_t previous = before;
    for (uint64_t i = 0; i < 7; ++i) {
        EXPECT_TRUE(QueryAvailable(slots[i]));
        EXPECT_GE(slots[i].value, previous);
        previous = slots[i].value;
    }
    EXPECT_LE(previous, after);
    EXPECT_FALSE(QueryAvailable(slots[7]));
}

// Runs QUERY_COPY of four slots, of which the third is unavailable, into words of 0xee.
std::vector<uint8_t> CopyFour(Bench& bench, uint64_t stride_bytes, uint8_t flags) {
    const auto queries = bench.Allocate(64 + 4 * sizeof(QuerySlot));
    const auto results = bench.Allocate(256);
    const uint64_t first = queries->address() + 32;
    auto* slots = reinterpret_cast<QuerySlot*>(queries->host_pointer() + 32);
    for (uint64_t i = 0; i < 4; ++i) {
        if (i != 2) {
            WriteQuery(slots[i], 0x1'0000'0001 * (i + 1));
        }
    }
    std::memset(results->host_pointer(), 0xee, 256);
    CommandStreamBuilder builder;
    builder.CopyQueries(first, 4, results->address() + 16, stride_bytes, flags);
    bench.Run(builder);
    const auto bytes = View<uint8_t>(results);
    EXPECT_EQ(bytes[15], 0xee);
    return {bytes.begin() + 16, bytes.end()};
}

template <typename T>
T WordAt(const std::vector<uint8_t>& bytes, size_t offset) {
    T word;
    std::memcpy(&word, bytes.data() + offset, sizeof(T));
    return word;
}

HAL_CASE(QueryCopyWrites32Bit) {
    const auto bytes = CopyFour(bench, 8, 0);
    EXPECT_EQ(WordAt<uint32_t>(bytes, 0), 1u);
    EXPECT_EQ(WordAt<uint32_t>(bytes, 4), 0xeeeeeeeeu);
    EXPECT_EQ(WordAt<uint32_t>(bytes, 8), 2u);
    EXPECT_EQ(WordAt<uint32_t>(bytes, 16), 0xeeeeeeeeu) << "unavailable stays unwritten";
    EXPECT_EQ(WordAt<uint32_t>(bytes, 24), 4u);
    EXPECT_EQ(WordAt<uint32_t>(bytes, 28), 0xeeeeeeeeu);
}

HAL_CASE(QueryCopyWrites64BitWithAvailability) {
    const auto bytes = CopyFour(bench, 16, kQuery64Bit | kQueryWithAvailability);
    for (uint64_t i = 0; i < 4; ++i) {
        EXPECT_EQ(WordAt<uint64_t>(bytes, i * 16),
                  i == 2 ? 0xeeeeeeeeeeeeeeee : 0x1'0000'0001 * (i + 1));
        EXPECT_EQ(WordAt<uint64_t>(bytes, i * 16 + 8), i == 2 ? 0u : 1u);
    }
}

HAL_CASE(QueryCopyWritesPartialResults) {
    const auto bytes = CopyFour(bench, 4, kQueryPartial);
    EXPECT_EQ(WordAt<uint32_t>(bytes, 4), 2u);
    EXPECT_EQ(WordAt<uint32_t>(bytes, 8), 0u);
    EXPECT_EQ(WordAt<uint32_t>(bytes, 12), 4u);
    EXPECT_EQ(WordAt<uint32_t>(bytes, 16), 0xeeeeeeeeu);
}

HAL_CASE(QueryCopyWaits) {
    const auto memory = bench.Allocate(4096);
    auto* slot = reinterpret_cast<QuerySlot*>(memory->host_pointer());
    CommandStreamBuilder builder;
    builder.CopyQueries(memory->address(), 1, memory->address() + 64, 0, kQuery64Bit | kQueryWait);
    const auto stream = builder.Finish();
    const auto done = bench.NewTimeline();
    ASSERT_TRUE(bench.Submit(bench.queue(), {}, {*stream}, {{done, 1}}).ok());
    EXPECT_EQ(done->Wait(1, 3'000'000).error().code, ErrorCode::kTimeout);
    WriteQuery(*slot, 77);
    ASSERT_TRUE(done->Wait(1, kPatienceNs).ok());
    EXPECT_EQ(View<uint64_t>(memory)[8], 77u);
}

}  // namespace
}  // namespace fornax::hal::conformance
