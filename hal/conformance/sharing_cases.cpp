// What devices and processes share: memory, timelines and sync files; and the host's own memory.
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "hal/conformance/conformance.h"

namespace fornax::hal::conformance {
namespace {

constexpr uint64_t kShortNs = 20'000'000;

bool Readable(const UniqueFd& file, int timeout_ms = 0) {
    pollfd polled = {.fd = file.get(), .events = POLLIN, .revents = 0};
    return poll(&polled, 1, timeout_ms) == 1 && (polled.revents & POLLIN) != 0;
}

// Pages of the host that go with the object.
class Pages {
  public:
    explicit Pages(uint64_t size_bytes, int protection = PROT_READ | PROT_WRITE)
        : size_bytes_(size_bytes),
          address_(mmap(nullptr, size_bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
        EXPECT_NE(address_, MAP_FAILED);
    }
    ~Pages() { munmap(address_, size_bytes_); }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;

    std::byte* get() const { return static_cast<std::byte*>(address_); }

  private:
    uint64_t size_bytes_;
    void* address_;
};

HAL_CASE(MemoryIsExportedToOtherDevices) {
    Bench other(bench.backend());
    for (const uint64_t size_bytes : {uint64_t{100}, uint64_t{5'000'001}}) {
        auto memory = bench.device().AllocateMemory(size_bytes, {.exportable = true});
        ASSERT_TRUE(memory.ok());
        const auto bytes = View<uint8_t>(*memory);
        EXPECT_EQ(bytes.size(), size_bytes);
        EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](uint8_t b) { return b == 0; }));
        bytes[size_bytes - 1] = 7;
        auto file = (*memory)->ExportFile();
        ASSERT_TRUE(file.ok());
        const uint64_t used_bytes = other.device().heap().used_bytes;
        auto imported = other.device().ImportMemoryFile(file->get(), size_bytes);
        ASSERT_TRUE(imported.ok()) << imported.error().message;
        file->Reset();
        EXPECT_EQ(other.device().heap().used_bytes, used_bytes);
        EXPECT_EQ((*imported)->size_bytes(), size_bytes);
        EXPECT_EQ(View<uint8_t>(*imported)[size_bytes - 1], 7);
        View<uint8_t>(*imported)[0] = 9;
        EXPECT_EQ(bytes[0], 9);
        // It outlives what exported it, and can be handed on.
        memory = Error{ErrorCode::kNotFound, ""};
        auto again = (*imported)->ExportFile();
        ASSERT_TRUE(again.ok());
        auto third = bench.device().ImportMemoryFile(again->get(), size_bytes);
        ASSERT_TRUE(third.ok());
        EXPECT_EQ(View<uint8_t>(*third)[size_bytes - 1], 7);
        EXPECT_EQ(View<uint8_t>(*third)[0], 9);
    }
}

HAL_CASE(OnlyExportedMemoryIsImported) {
    Device& device = bench.device();
    const auto refused = [](const auto& result, ErrorCode code) {
        return !result.ok() && result.error().code == code;
    };
    EXPECT_TRUE(refused(bench.Allocate(4096)->ExportFile(), ErrorCode::kUnsupported));
    EXPECT_TRUE(refused(device.ImportMemoryFile(-1, 1), ErrorCode::kInvalidArgument));
    EXPECT_TRUE(refused(device.ImportTimeline(-1), ErrorCode::kInvalidArgument));
    EXPECT_TRUE(refused(device.ImportSyncFile(-1), ErrorCode::kInvalidArgument));
    // Somebody's file, which may shrink under the device.
    UniqueFd foreign(memfd_create("foreign", MFD_CLOEXEC));
    ASSERT_EQ(ftruncate(foreign.get(), 8192), 0);
    EXPECT_TRUE(refused(device.ImportMemoryFile(foreign.get(), 4096), ErrorCode::kInvalidArgument));
    EXPECT_TRUE(refused(device.ImportTimeline(foreign.get()), ErrorCode::kInvalidArgument));
    auto memory = device.AllocateMemory(4096, {.exportable = true});
    ASSERT_TRUE(memory.ok());
    auto file = (*memory)->ExportFile();
    ASSERT_TRUE(file.ok());
    EXPECT_TRUE(refused(device.ImportMemoryFile(file->get(), 4097), ErrorCode::kInvalidArgument));
    EXPECT_TRUE(
        refused(device.ImportMemoryFile(file->get(), UINT64_MAX), ErrorCode::kInvalidArgument));
    EXPECT_TRUE(refused(device.ImportTimeline(file->get()), ErrorCode::kInvalidArgument));
    // Nobody can take it away from who imported it.
    EXPECT_NE(ftruncate(file->get(), 0), 0);
    EXPECT_TRUE(refused(bench.NewTimeline()->ExportFile(), ErrorCode::kUnsupported));
}

HAL_CASE(ExportableMemoryIsCharged) {
    Bench small(bench.backend(), {.heap_bytes = 1 << 20});
    auto memory = small.device().AllocateMemory(1 << 19, {.exportable = true});
    ASSERT_TRUE(memory.ok());
    EXPECT_EQ(small.device().heap().used_bytes, 1u << 19);
    auto second = small.device().AllocateMemory((1 << 19) + 1, {.placeable = true});
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, ErrorCode::kOutOfDeviceMemory);
    memory = Error{ErrorCode::kNotFound, ""};
    EXPECT_EQ(small.device().heap().used_bytes, 0u);
}

HAL_CASE(MemoryIsMappedWhereTheCallerWants) {
    constexpr uint64_t kBytes = 5 * kMemoryPageBytes;
    for (const bool exportable : {false, true}) {
        auto memory =
            bench.device().AllocateMemory(kBytes, {.exportable = exportable, .placeable = true});
        ASSERT_TRUE(memory.ok());
        View<uint8_t>(*memory)[2 * kMemoryPageBytes] = 5;
        const Pages place(kBytes);
        const Status mapped =
            (*memory)->MapAt(place.get(), 2 * kMemoryPageBytes, 3 * kMemoryPageBytes);
        ASSERT_TRUE(mapped.ok()) << mapped.error().message;
        EXPECT_EQ(place.get()[0], std::byte{5});
        place.get()[1] = std::byte{6};
        EXPECT_EQ(View<uint8_t>(*memory)[2 * kMemoryPageBytes + 1], 6);
        ASSERT_TRUE(UnmapAt(place.get(), 3 * kMemoryPageBytes, true).ok());
        // The place is kept: nothing else comes there, and it can be used again.
        ASSERT_TRUE((*memory)->MapAt(place.get(), 0, kBytes).ok());
        EXPECT_EQ(place.get()[2 * kMemoryPageBytes + 1], std::byte{6});
        ASSERT_TRUE(UnmapAt(place.get(), kBytes, false).ok());
        // Mapped again for ~Pages.
        ASSERT_EQ(
            mmap(place.get(), kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            place.get());
    }
    EXPECT_FALSE(bench.Allocate(kBytes)->MapAt(nullptr, 0, kBytes).ok());
}

HAL_CASE(HostMemoryIsImported) {
    constexpr uint64_t kBytes = 4 * kMemoryPageBytes;
    const Pages pages(kBytes);
    const uint64_t used_bytes = bench.device().heap().used_bytes;
    auto whole = bench.device().ImportHostMemory(pages.get(), kBytes);
    ASSERT_TRUE(whole.ok()) << whole.error().message;
    auto tail =
        bench.device().ImportHostMemory(pages.get() + kMemoryPageBytes, kBytes - kMemoryPageBytes);
    ASSERT_TRUE(tail.ok());
    auto again = bench.device().ImportHostMemory(pages.get(), kBytes);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(bench.device().heap().used_bytes, used_bytes);
    EXPECT_EQ((*whole)->host_pointer(), pages.get());
    EXPECT_EQ((*tail)->size_bytes(), kBytes - kMemoryPageBytes);
    EXPECT_FALSE((*whole)->ExportFile().ok());
    // The device uses what is left when one of them goes.
    whole = Error{ErrorCode::kNotFound, ""};
    CommandStreamBuilder builder;
    builder.SetEvent((*again)->address());
    bench.Run(builder);
    EXPECT_EQ(pages.get()[0], std::byte{1});

    Device& device = bench.device();
    EXPECT_FALSE(device.ImportHostMemory(pages.get() + 64, kMemoryPageBytes).ok());
    EXPECT_FALSE(device.ImportHostMemory(pages.get(), 100).ok());
    EXPECT_FALSE(device.ImportHostMemory(pages.get(), 0).ok());
    EXPECT_FALSE(device.ImportHostMemory(nullptr, kMemoryPageBytes).ok());
}

HAL_CASE(SharedTimelinesOrderDevices) {
    Bench other(bench.backend());
    auto here = bench.device().CreateSharedTimeline(5);
    ASSERT_TRUE(here.ok());
    auto file = (*here)->ExportFile();
    ASSERT_TRUE(file.ok());
    auto there = other.device().ImportTimeline(file->get());
    ASSERT_TRUE(there.ok()) << there.error().message;
    EXPECT_EQ((*there)->value(), 5u);
    (*there)->target() = 17;
    EXPECT_EQ((*here)->target(), 17u);
    // A queue here waits for a queue there, which waits for the host.
    const auto done = bench.NewTimeline();
    ASSERT_TRUE(bench.Submit(bench.queue(), {{*here, 7}}, {}, {{done, 1}}).ok());
    ASSERT_TRUE(bench.Submit(other.queue(), {{*there, 6}}, {}, {{*there, 7}}).ok());
    EXPECT_FALSE(done->Wait(1, kShortNs).ok());
    ASSERT_TRUE((*here)->Signal(6).ok());
    EXPECT_FALSE((*here)->Signal(6).ok());
    const Status waited = done->Wait(1, kPatienceNs);
    EXPECT_TRUE(waited.ok()) << waited.error().message;
    EXPECT_EQ((*there)->value(), 7u);
    // A timeline of another device is refused as well.
    EXPECT_FALSE(bench.Submit(bench.queue(), {{*there, 7}}, {}, {}).ok());
}

HAL_CASE(WaitsMixSharedTimelinesAndOwn) {
    Bench other(bench.backend());
    auto shared = bench.device().CreateSharedTimeline(0);
    ASSERT_TRUE(shared.ok());
    auto file = (*shared)->ExportFile();
    auto there = other.device().ImportTimeline(file->get());
    ASSERT_TRUE(there.ok());
    const auto own = bench.NewTimeline();
    const TimelinePoint points[] = {{own, 1}, {*shared, 1}};
    EXPECT_EQ(WaitAny(points, kShortNs).error().code, ErrorCode::kTimeout);
    std::thread first([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        EXPECT_TRUE((*there)->Signal(1).ok());
    });
    EXPECT_TRUE(WaitAny(points, kPatienceNs).ok());
    first.join();
    EXPECT_EQ(WaitAll(points, kShortNs).error().code, ErrorCode::kTimeout);
    std::thread second([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        EXPECT_TRUE(own->Signal(1).ok());
    });
    EXPECT_TRUE(WaitAll(points, kPatienceNs).ok());
    second.join();
    // The loss of the device ends a wait for a shared timeline.
    std::thread third([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        bench.device().Lose("on purpose");
    });
    EXPECT_EQ((*shared)->Wait(2, kPatienceNs).error().code, ErrorCode::kDeviceLost);
    third.join();
}

HAL_CASE(SharedTimelinesCrossProcesses) {
    auto timeline = bench.device().CreateSharedTimeline(0);
    ASSERT_TRUE(timeline.ok());
    auto file = (*timeline)->ExportFile();
    ASSERT_TRUE(file.ok());
    const pid_t child = fork();
    if (child == 0) {
        // A device of the child's own: that of the parent must not be used here.
        auto device = CreateDevice(bench.backend());
        if (!device.ok()) {
            _exit(1);
        }
        auto mine = (*device)->ImportTimeline(file->get());
        _exit(mine.ok() && (*mine)->Wait(1, kPatienceNs).ok() && (*mine)->Signal(2).ok() ? 0 : 2);
    }
    ASSERT_GT(child, 0);
    EXPECT_EQ((*timeline)->Wait(2, kShortNs).error().code, ErrorCode::kTimeout);
    EXPECT_TRUE((*timeline)->Signal(1).ok());
    EXPECT_TRUE((*timeline)->Wait(2, kPatienceNs).ok());
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

HAL_CASE(SyncFilesBecomeReadable) {
    const auto timeline = bench.NewTimeline();
    auto second = timeline->ExportSyncFile(2);
    auto first = timeline->ExportSyncFile(1);
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_FALSE(Readable(*first));
    EXPECT_FALSE(Readable(*second));
    // The device's signal, and the host's.
    ASSERT_TRUE(bench.Submit(bench.queue(), {}, {}, {{timeline, 1}}).ok());
    EXPECT_TRUE(Readable(*first, 60'000));
    EXPECT_FALSE(Readable(*second));
    ASSERT_TRUE(timeline->Signal(2).ok());
    EXPECT_TRUE(Readable(*second));
    auto late = timeline->ExportSyncFile(2);
    ASSERT_TRUE(late.ok());
    EXPECT_TRUE(Readable(*late));
    auto shared = bench.device().CreateSharedTimeline(0);
    EXPECT_EQ((*shared)->ExportSyncFile(1).error().code, ErrorCode::kUnsupported);
}

HAL_CASE(SyncFilesAreImported) {
    Bench other(bench.backend());
    const auto timeline = bench.NewTimeline();
    auto file = timeline->ExportSyncFile(1);
    ASSERT_TRUE(file.ok());
    auto there = other.device().ImportSyncFile(file->get());
    auto also = other.device().ImportSyncFile(file->get());
    ASSERT_TRUE(there.ok() && also.ok());
    file->Reset();
    const auto done = other.NewTimeline();
    ASSERT_TRUE(other.Submit(other.queue(), {{*there, 1}}, {}, {{done, 1}}).ok());
    EXPECT_FALSE(done->Wait(1, kShortNs).ok());
    ASSERT_TRUE(bench.Submit(bench.queue(), {}, {}, {{timeline, 1}}).ok());
    EXPECT_TRUE(done->Wait(1, kPatienceNs).ok());
    EXPECT_TRUE((*also)->Wait(1, kPatienceNs).ok());
    // One that is readable needs no thread.
    auto late = timeline->ExportSyncFile(1);
    EXPECT_EQ((*bench.device().ImportSyncFile(late->get()))->value(), 1u);
}

// Nobody waits forever for a signaller that is gone.
HAL_CASE(SyncFilesAreHungUp) {
    Bench other(bench.backend());
    auto timeline = bench.NewTimeline();
    auto file = timeline->ExportSyncFile(1);
    auto there = other.device().ImportSyncFile(file->get());
    ASSERT_TRUE(there.ok());
    timeline.reset();
    EXPECT_TRUE((*there)->Wait(1, kPatienceNs).ok());

    timeline = bench.NewTimeline();
    file = timeline->ExportSyncFile(1);
    there = other.device().ImportSyncFile(file->get());
    ASSERT_TRUE(there.ok());
    bench.device().Lose("on purpose");
    EXPECT_TRUE((*there)->Wait(1, kPatienceNs).ok());
}

}  // namespace
}  // namespace fornax::hal::conformance
