// Copies, fills and updates, at odd places and large.
#include <algorithm>
#include <cstring>

#include "hal/conformance/conformance.h"

namespace fornax::hal::conformance {
namespace {

std::vector<uint8_t> Bytes(const std::shared_ptr<Memory>& memory) {
    const auto view = View<uint8_t>(memory);
    return {view.begin(), view.end()};
}

// Something that repeats with no power of two.
void FillTestBytes(std::span<uint8_t> bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<uint8_t>(i % 251 + 1);
    }
}

HAL_CASE(CopyMovesBytes) {
    const auto source = bench.Allocate(1000);
    const auto destination = bench.Allocate(1000);
    FillTestBytes(View<uint8_t>(source));
    std::vector<uint8_t> expected(1000, 0);
    std::copy_n(View<uint8_t>(source).begin() + 3, 501, expected.begin() + 7);
    std::copy_n(View<uint8_t>(source).begin(), 1, expected.begin() + 999);
    CommandStreamBuilder builder;
    builder.Copy(source->address() + 3, destination->address() + 7, 501);
    builder.Copy(source->address(), destination->address() + 999, 1);
    builder.Copy(source->address(), destination->address() + 600, 0);
    bench.Run(builder);
    EXPECT_EQ(Bytes(destination), expected);
}

HAL_CASE(CopyOverlapping) {
    for (const int64_t shift : {-5, 5}) {
        const auto memory = bench.Allocate(3 << 20);
        FillTestBytes(View<uint8_t>(memory));
        auto expected = Bytes(memory);
        const uint64_t size_bytes = (2 << 20) + 3;
        std::memmove(expected.data() + 100 + shift, expected.data() + 100, size_bytes);
        CommandStreamBuilder builder;
        builder.Copy(memory->address() + 100, memory->address() + 100 + shift, size_bytes);
        bench.Run(builder);
        EXPECT_TRUE(Bytes(memory) == expected) << shift;
    }
}

HAL_CASE(CopyLarge) {
    constexpr uint64_t kBytes = (40 << 20) + 13;
    const auto source = bench.Allocate(kBytes + 64);
    const auto destination = bench.Allocate(kBytes + 64);
    FillTestBytes(View<uint8_t>(source));
    CommandStreamBuilder builder;
    builder.Copy(source->address() + 9, destination->address() + 21, kBytes);
    bench.Run(builder);
    std::vector<uint8_t> expected(kBytes + 64, 0);
    std::copy_n(View<uint8_t>(source).begin() + 9, kBytes, expected.begin() + 21);
    EXPECT_TRUE(Bytes(destination) == expected);
}

// What COPY_ROWS states, byte by byte.
void CopyRowsOnHost(const CopyRowsPayload& copy,
                    std::span<const uint8_t> source,
                    std::span<uint8_t> destination) {
    for (uint32_t slice = 0; slice < copy.slices; ++slice) {
        for (uint32_t row = 0; row < copy.rows; ++row) {
            std::copy_n(
                source.begin() + static_cast<ptrdiff_t>(slice * copy.source_slice_pitch +
                                                        row * copy.source_row_pitch),
                copy.row_bytes,
                destination.begin() + static_cast<ptrdiff_t>(slice * copy.destination_slice_pitch +
                                                             row * copy.destination_row_pitch));
        }
    }
}

void TestCopyRows(Bench& bench, CopyRowsPayload copy, uint64_t bytes) {
    const auto source = bench.Allocate(bytes);
    const auto destination = bench.Allocate(bytes);
    FillTestBytes(View<uint8_t>(source));
    std::vector<uint8_t> expected(bytes, 0);
    CopyRowsOnHost(copy, View<uint8_t>(source).subspan(5), std::span(expected).subspan(3));
    copy.source = source->address() + 5;
    copy.destination = destination->address() + 3;
    CommandStreamBuilder builder;
    builder.CopyRows(copy);
    copy.slices = 0;
    builder.CopyRows(copy);
    bench.Run(builder);
    EXPECT_TRUE(Bytes(destination) == expected);
}

HAL_CASE(CopyRowsBetweenPitches) {
    TestCopyRows(bench,
                 {.source_slice_pitch = 200,
                  .destination_slice_pitch = 150,
                  .source_row_pitch = 40,
                  .destination_row_pitch = 23,
                  .row_bytes = 19,
                  .rows = 5,
                  .slices = 6},
                 2000);
    // Rows and slices that adjoin.
    TestCopyRows(bench,
                 {.source_slice_pitch = 60,
                  .destination_slice_pitch = 60,
                  .source_row_pitch = 20,
                  .destination_row_pitch = 20,
                  .row_bytes = 20,
                  .rows = 3,
                  .slices = 4},
                 400);
}

HAL_CASE(CopyRowsRepeatsSideData) {
    const auto destination = bench.Allocate(64);
    const uint8_t pattern[] = {1, 2, 3};
    CommandStreamBuilder builder;
    const CopyRowsPayload copy{.source = builder.StoreSideData(pattern, sizeof(pattern)),
                               .destination = destination->address() + 1,
                               .destination_slice_pitch = 16,
                               .destination_row_pitch = 4,
                               .row_bytes = 3,
                               .rows = 2,
                               .slices = 3};
    builder.CopyRows(copy);
    bench.Run(builder);
    std::vector<uint8_t> expected(64, 0);
    CopyRowsOnHost(copy, pattern, std::span(expected).subspan(1));
    EXPECT_EQ(Bytes(destination), expected);
}

HAL_CASE(CopyRowsLarge) {
    TestCopyRows(bench,
                 {.source_slice_pitch = 3 << 20,
                  .destination_slice_pitch = 1100 * 1500,
                  .source_row_pitch = 1111,
                  .destination_row_pitch = 1500,
                  .row_bytes = 1100,
                  .rows = 1100,
                  .slices = 3},
                 10 << 20);
}

HAL_CASE(FillRepeatsPattern) {
    const auto memory = bench.Allocate(256);
    CommandStreamBuilder builder;
    builder.Fill(memory->address(), 256, 0x77777777);
    builder.Barrier();
    builder.Fill(memory->address() + 12, 40, 0x12345678);
    builder.Fill(memory->address() + 80, 0, 0xdeadbeef);
    bench.Run(builder);
    std::vector<uint32_t> expected(64, 0x77777777);
    std::fill_n(expected.begin() + 3, 10, 0x12345678);
    EXPECT_TRUE(std::ranges::equal(View<uint32_t>(memory), expected));
}

HAL_CASE(FillLarge) {
    constexpr uint64_t kWords = (9 << 20) + 3;
    const auto memory = bench.Allocate((kWords + 32) * 4);
    CommandStreamBuilder builder;
    builder.Fill(memory->address() + 20, kWords * 4, 0xcafef00d);
    bench.Run(builder);
    std::vector<uint32_t> expected(kWords + 32, 0);
    std::fill_n(expected.begin() + 5, kWords, 0xcafef00d);
    EXPECT_TRUE(std::ranges::equal(View<uint32_t>(memory), expected));
}

HAL_CASE(UpdateWritesRecordedData) {
    const auto memory = bench.Allocate(100'000);
    std::vector<uint8_t> data(65'536);
    FillTestBytes(data);
    std::vector<uint8_t> expected(100'000, 0);
    CommandStreamBuilder builder;
    uint64_t offset = 5;
    for (const size_t size_bytes : {0, 1, 39, 40, 41, 1000, 65'536}) {
        builder.Update(memory->address() + offset,
                       std::as_bytes(std::span(data).first(size_bytes)));
        std::copy_n(data.begin(), size_bytes, expected.begin() + static_cast<int64_t>(offset));
        offset += size_bytes + 3;
    }
    std::fill(data.begin(), data.end(), 0);  // it was copied when it was recorded
    bench.Run(builder);
    EXPECT_TRUE(Bytes(memory) == expected);
}

HAL_CASE(BuilderReusesStorageAfterWait) {
    const auto memory = bench.Allocate(4096);
    CommandStreamBuilder builder;
    const Packet* storage = nullptr;
    for (uint32_t round = 0; round < 50; ++round) {
        builder.Reset();
        for (uint64_t i = 0; i < 100; ++i) {
            builder.Fill(memory->address() + i * 4, 4, static_cast<uint32_t>(i) * round);
        }
        {
            const auto stream = builder.Finish();
            ASSERT_TRUE(stream.ok());
            if (round != 0) {
                EXPECT_EQ((*stream)->packets().data(), storage) << "round " << round;
            }
            storage = (*stream)->packets().data();
            const auto done = bench.NewTimeline();
            ASSERT_TRUE(bench.Submit(bench.queue(), {}, {*stream}, {{done, 1}}).ok());
            ASSERT_TRUE(done->Wait(1, kPatienceNs).ok());
        }
        EXPECT_EQ(View<uint32_t>(memory)[99], 99 * round);
    }
}

}  // namespace
}  // namespace fornax::hal::conformance
