// Dispatches, with kernels written by hand against hal/kernel_abi.h.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>
#include <numeric>

#include "hal/conformance/conformance.h"
#include "hal/matrix_unit.h"

namespace fornax::hal::conformance {
namespace {

constexpr std::array<uint32_t, 3> kOne = {1, 1, 1};

std::atomic_ref<uint32_t> AtomicWord(uint32_t* words, uint64_t index) {
    return std::atomic_ref<uint32_t>(words[index]);
}

// The words of binding `index` of set 0.
uint32_t* Words(const DispatchFrame* frame, int index = 0) {
    const auto* set = static_cast<const BufferDescriptor*>(frame->descriptor_sets[0]);
    return reinterpret_cast<uint32_t*>(set[index].address);
}

// Adds 1 to the word of each workgroup.
void CountKernel(const DispatchFrame* frame, WorkerFrame*, uint64_t first, uint64_t count) {
    for (uint64_t i = first; i < first + count; ++i) {
        AtomicWord(Words(frame), i).fetch_add(1, std::memory_order_relaxed);
    }
}

// A memory with one descriptor, for binding 0 of a set, of `memory`.
std::shared_ptr<Memory> MakeSet(Bench& bench, const std::shared_ptr<Memory>& memory) {
    auto set = bench.Allocate(64);
    View<BufferDescriptor>(set)[0] = {memory->address(), memory->size_bytes()};
    return set;
}

void Bind(CommandStreamBuilder& builder,
          const std::shared_ptr<const Executable>& executable,
          const std::shared_ptr<Memory>& set) {
    const uint64_t sets[] = {set->address()};
    builder.Bind(executable, sets, {});
}

HAL_CASE(DispatchRunsEveryWorkgroupOnce) {
    const auto memory = bench.Allocate(64 * 1024 * 4);
    const auto set = MakeSet(bench, memory);
    const auto count = bench.NewExecutable({.entry = &CountKernel, .descriptor_set_mask = 1});
    for (const std::array<uint32_t, 3> grid :
         {kOne, {7, 1, 1}, {1, 3, 1}, {5, 7, 11}, {16, 16, 256}, {0, 5, 5}}) {
        std::ranges::fill(View<uint32_t>(memory), 0);
        CommandStreamBuilder builder;
        Bind(builder, count, set);
        builder.Dispatch(grid);
        bench.Run(builder);
        const uint64_t workgroups = uint64_t{grid[0]} * grid[1] * grid[2];
        const auto words = View<uint32_t>(memory);
        for (uint64_t i = 0; i < words.size(); ++i) {
            ASSERT_EQ(words[i], i < workgroups ? 1u : 0u) << i << " of " << workgroups;
        }
    }
}

// A count holds what runs between its ends, in chained streams too, and nothing else.
HAL_CASE(CountsInvocations) {
    const auto memory = bench.Allocate(4096);
    const auto queries = bench.Allocate(4 * sizeof(QuerySlot));
    const auto slots = View<QuerySlot>(queries);
    const auto slot = [&](uint64_t index) {
        return queries->address() + index * sizeof(QuerySlot);
    };
    const auto count = bench.NewExecutable(
        {.entry = &CountKernel, .workgroup_size = {4, 2, 3}, .descriptor_set_mask = 1});
    const auto set = MakeSet(bench, memory);
    constexpr CounterId kInvocations[] = {CounterId::kInvocations};
    CommandStreamBuilder nested;
    Bind(nested, count, set);
    nested.Dispatch({5, 1, 1});
    const auto chained = nested.Finish();
    CommandStreamBuilder builder;
    builder.ResetQueries(queries->address(), 4);
    Bind(builder, count, set);
    builder.Dispatch({100, 1, 1});
    builder.BeginCounts(slot(1), kInvocations);
    builder.Dispatch({7, 2, 1});
    builder.Dispatch({0, 2, 1});
    builder.BeginCounts(slot(2), kInvocations);
    builder.Chain(*chained);
    builder.EndCounts(slot(2), kInvocations);
    builder.EndCounts(slot(1), kInvocations);
    Bind(builder, count, set);
    builder.Dispatch({100, 1, 1});
    builder.BeginCounts(slot(3), kInvocations);
    bench.Run(builder);
    EXPECT_FALSE(QueryAvailable(slots[0]));
    EXPECT_TRUE(QueryAvailable(slots[1]));
    EXPECT_EQ(slots[1].value, (7u * 2 + 5) * 24);
    EXPECT_EQ(slots[2].value, 5u * 24);
    EXPECT_FALSE(QueryAvailable(slots[3]));
}

// Writes down everything that the frame holds.
void FrameKernel(const DispatchFrame* frame, WorkerFrame*, uint64_t, uint64_t) {
    auto* out = reinterpret_cast<uint32_t*>(
        static_cast<const BufferDescriptor*>(frame->descriptor_sets[2])->address);
    std::memcpy(out, frame->workgroup_count, 12);
    std::memcpy(out + 3, frame->base_workgroup, 12);
    std::memcpy(out + 6, frame->dynamic_offsets, 8);
    std::memcpy(out + 8, frame->push_constants, 256);
    out[72] = frame->descriptor_sets[0] != nullptr;
    out[73] = frame->descriptor_sets[1] != nullptr;
}

HAL_CASE(DispatchPassesItsFrame) {
    const auto memory = bench.Allocate(1024);
    const auto set = MakeSet(bench, memory);
    const auto executable = bench.NewExecutable(
        {.entry = &FrameKernel, .push_constant_bytes = 256, .descriptor_set_mask = 0b100});
    uint32_t constants[64];
    std::iota(std::begin(constants), std::end(constants), 1000);
    CommandStreamBuilder builder;
    // The third set lies in the stream's side data, like a pushed descriptor.
    const BufferDescriptor pushed = {memory->address(), memory->size_bytes()};
    const uint64_t sets[] = {set->address(), 0, builder.StoreSideData(&pushed, sizeof(pushed))};
    const uint32_t offsets[] = {77, 88};
    builder.Constants(constants, sizeof(constants));
    builder.Bind(executable, sets, offsets);
    builder.Dispatch({1, 1, 1}, {5, 6, 7});
    bench.Run(builder);
    const auto words = View<uint32_t>(memory);
    std::vector<uint32_t> expected = {1, 1, 1, 5, 6, 7, 77, 88};
    expected.insert(expected.end(), std::begin(constants), std::end(constants));
    expected.insert(expected.end(), {1, 0});
    EXPECT_EQ(std::vector<uint32_t>(words.begin(), words.begin() + 74), expected);
}

HAL_CASE(DispatchIndirectReadsAtExecution) {
    const auto memory = bench.Allocate(64 * 4);
    const auto set = MakeSet(bench, memory);
    const auto parameters = bench.Allocate(64);
    const auto count = bench.NewExecutable({.entry = &CountKernel});
    CommandStreamBuilder builder;
    Bind(builder, count, set);
    const uint32_t grid[] = {2, 3, 4};
    builder.Update(parameters->address() + 4, std::as_bytes(std::span(grid)));
    builder.Barrier();
    builder.DispatchIndirect(parameters->address() + 4);
    builder.DispatchIndirect(parameters->address() + 32);  // zeros: an empty grid
    bench.Run(builder);
    const auto words = View<uint32_t>(memory);
    EXPECT_EQ(std::ranges::count(words, 1u), 24);
    EXPECT_EQ(words[24], 0u);
}

// word[i] = word[0] of the previous dispatch + 1, after a barrier.
void ChainKernel(const DispatchFrame* frame, WorkerFrame*, uint64_t first, uint64_t count) {
    uint32_t step;
    std::memcpy(&step, frame->push_constants, 4);
    uint32_t* from = Words(frame) + (step % 2) * 512;
    uint32_t* to = Words(frame) + ((step + 1) % 2) * 512;
    for (uint64_t i = first; i < first + count; ++i) {
        to[i] = from[511 - i] + 1;
    }
}

HAL_CASE(DispatchSeesPreviousWrites) {
    const auto memory = bench.Allocate(1024 * 4);
    const auto set = MakeSet(bench, memory);
    const auto chain = bench.NewExecutable({.entry = &ChainKernel, .push_constant_bytes = 4});
    CommandStreamBuilder builder;
    Bind(builder, chain, set);
    constexpr uint32_t kSteps = 1'000;
    for (uint32_t step = 0; step < kSteps; ++step) {
        builder.Constants(&step, sizeof(step));
        builder.Dispatch({512, 1, 1});
        builder.Barrier();
    }
    bench.Run(builder);
    const auto words = View<uint32_t>(memory);
    for (uint32_t i = 0; i < 512; ++i) {
        ASSERT_EQ(words[i], kSteps) << i;
    }
}

constexpr uint32_t kGatheringWorkers = 4;

// Counts its workgroups, slowly at first, so that the grid proves worth every worker; the later
// ones wait until all workers have come, however long the host takes to schedule them.
void GatherKernel(const DispatchFrame* frame, WorkerFrame* worker, uint64_t first, uint64_t count) {
    uint32_t* present = Words(frame) + 4096;
    AtomicWord(present, worker->worker_index).store(1, std::memory_order_relaxed);
    const auto all_present = [&] {
        for (uint32_t index = 0; index < kGatheringWorkers; ++index) {
            if (AtomicWord(present, index).load(std::memory_order_relaxed) == 0) {
                return false;
            }
        }
        return true;
    };
    for (uint64_t i = first; i < first + count; ++i) {
        constexpr uint64_t kAlone = 64;
        const auto begin = std::chrono::steady_clock::now();
        const auto patience = i < kAlone ? std::chrono::nanoseconds(20'000)
                                         : std::chrono::nanoseconds(kPatienceNs / 2);
        while ((i < kAlone || !all_present()) &&
               std::chrono::steady_clock::now() - begin < patience) {
        }
        CountKernel(frame, worker, i, 1);
    }
}

HAL_CASE(DispatchLargeGridOnAllWorkers) {
    Bench wide(bench.backend(), {.worker_count = kGatheringWorkers});
    const auto memory = wide.Allocate((4096 + kGatheringWorkers) * 4);
    const auto set = MakeSet(wide, memory);
    const auto count = wide.NewExecutable({.entry = &GatherKernel});
    CommandStreamBuilder builder;
    Bind(builder, count, set);
    builder.Dispatch({4096, 1, 1});
    wide.Run(builder);
    const auto words = View<uint32_t>(memory);
    EXPECT_TRUE(std::ranges::all_of(words.first(4096), [](uint32_t word) { return word == 1; }));
    EXPECT_EQ(std::ranges::count(words.last(4), 1u), 4) << "every worker took part";
    EXPECT_EQ(wide.device().counters().parallel_dispatches, 1u);
}

// Each worker writes how far it has come; whoever starts a chunk must find all earlier workgroups
// started, which decoupled look-back kernels rely on.
void OrderKernel(const DispatchFrame* frame, WorkerFrame*, uint64_t first, uint64_t count) {
    for (uint64_t i = first; i < first + count; ++i) {
        AtomicWord(Words(frame), i).store(1, std::memory_order_release);
        // Waiting for a predecessor ends, because predecessors are claimed earlier.
        while (i != 0 && AtomicWord(Words(frame), i - 1).load(std::memory_order_acquire) == 0) {
        }
    }
}

HAL_CASE(DispatchOrderIsIncreasing) {
    Bench wide(bench.backend(), {.worker_count = 4});
    const auto memory = wide.Allocate(100'000 * 4);
    const auto set = MakeSet(wide, memory);
    const auto order = wide.NewExecutable({.entry = &OrderKernel});
    CommandStreamBuilder builder;
    Bind(builder, order, set);
    builder.Dispatch({100'000, 1, 1});
    wide.Run(builder);
    const auto words = View<uint32_t>(memory);
    EXPECT_TRUE(std::ranges::all_of(words, [](uint32_t word) { return word == 1; }));
}

// Writes its shared memory and scratch from end to end and counts wrong alignments and values.
template <uint32_t kShared, uint32_t kScratch>
void ArenaKernel(const DispatchFrame* frame, WorkerFrame* worker, uint64_t first, uint64_t count) {
    for (uint64_t i = first; i < first + count; ++i) {
        const auto value = static_cast<uint8_t>(i + 1);
        std::memset(worker->shared_memory, value, kShared);
        std::memset(worker->scratch, value, kScratch);
        const auto* shared = static_cast<const uint8_t*>(worker->shared_memory);
        const auto* scratch = static_cast<const uint8_t*>(worker->scratch);
        const bool aligned = reinterpret_cast<uint64_t>(shared) % 64 == 0 &&
                             reinterpret_cast<uint64_t>(scratch) % 64 == 0;
        const bool intact =
            std::all_of(shared, shared + kShared, [&](uint8_t b) { return b == value; }) &&
            std::all_of(scratch, scratch + kScratch, [&](uint8_t b) { return b == value; });
        AtomicWord(Words(frame), aligned && intact ? 0 : 1).fetch_add(1);
    }
}

HAL_CASE(SharedMemoryAndScratchAreUsable) {
    Bench wide(bench.backend(), {.worker_count = 4});
    const auto memory = wide.Allocate(64);
    const auto set = MakeSet(wide, memory);
    const auto small = wide.NewExecutable(
        {.entry = &ArenaKernel<65'536, 1'000>, .shared_bytes = 65'536, .scratch_bytes = 1'000});
    const auto large = wide.NewExecutable(
        {.entry = &ArenaKernel<65'536, 300'000>, .shared_bytes = 65'536, .scratch_bytes = 300'000});
    CommandStreamBuilder builder;
    for (int round = 0; round < 3; ++round) {
        Bind(builder, small, set);
        builder.Dispatch({50, 1, 1});
        Bind(builder, large, set);
        builder.Dispatch({50, 1, 1});
    }
    wide.Run(builder);
    EXPECT_EQ(View<uint32_t>(memory)[0], 300u);
    EXPECT_EQ(View<uint32_t>(memory)[1], 0u);
}

// Rounds to nearest even and keeps denormals.
void FloatKernel(const DispatchFrame* frame, WorkerFrame*, uint64_t first, uint64_t count) {
    for (uint64_t i = first; i < first + count; ++i) {
        volatile float denormal = std::numeric_limits<float>::denorm_min();
        volatile float one = 1.0f;
        volatile float half_ulp = 0x1p-24f;
        const bool right = denormal * one != 0.0f && one + half_ulp == 1.0f &&
                           -one - half_ulp == -1.0f &&
                           (one + 0x1p-23f) + half_ulp == 1.0f + 0x1p-22f;
        AtomicWord(Words(frame), right ? 0 : 1).fetch_add(1);
    }
}

HAL_CASE(KernelFloatModeIsDefault) {
    Bench wide(bench.backend(), {.worker_count = 4});
    const auto memory = wide.Allocate(64);
    const auto set = MakeSet(wide, memory);
    const auto executable = wide.NewExecutable({.entry = &FloatKernel});
    CommandStreamBuilder builder;
    Bind(builder, executable, set);
    builder.Dispatch({100'000, 1, 1});
    wide.Run(builder);
    EXPECT_EQ(View<uint32_t>(memory)[0], 100'000u);
    EXPECT_EQ(View<uint32_t>(memory)[1], 0u);
}

HAL_CASE(ChainRunsNestedStreams) {
    const auto memory = bench.Allocate(64);
    const auto set = MakeSet(bench, memory);
    const auto count = bench.NewExecutable({.entry = &CountKernel});
    std::shared_ptr<const CommandStream> inner;
    for (uint32_t depth = 0; depth < kMaxChainDepth - 1; ++depth) {
        CommandStreamBuilder builder;
        if (inner) {
            builder.Chain(inner);
            builder.Chain(inner);
        } else {
            Bind(builder, count, set);
            builder.Dispatch(kOne);
        }
        inner = *builder.Finish();
    }
    CommandStreamBuilder outer;
    Bind(outer, count, set);
    outer.Dispatch(kOne);
    outer.Chain(inner);
    Bind(outer, count, set);
    outer.Dispatch(kOne);
    bench.Run(outer);
    EXPECT_EQ(View<uint32_t>(memory)[0], 2u + (1u << (kMaxChainDepth - 2)));
}

HAL_CASE(ChainClearsState) {
    const auto memory = bench.Allocate(64);
    const auto set = MakeSet(bench, memory);
    const auto count = bench.NewExecutable({.entry = &CountKernel});
    CommandStreamBuilder inner;
    inner.Barrier();
    CommandStreamBuilder outer;
    Bind(outer, count, set);
    outer.Chain(*inner.Finish());
    outer.Dispatch(kOne);
    const auto stream = outer.Finish();
    const auto done = bench.NewTimeline();
    ASSERT_TRUE(bench.Submit(bench.queue(), {}, {*stream}, {{done, 1}}).ok());
    EXPECT_FALSE(done->Wait(1, kPatienceNs).ok());
    EXPECT_EQ(View<uint32_t>(memory)[0], 0u);
}

void FaultKernel(const DispatchFrame*, WorkerFrame* worker, uint64_t first, uint64_t count) {
    if (first <= 3'000 && 3'000 < first + count) {
        worker->fault = static_cast<uint32_t>(KernelFault::kUnreachable);
    }
}

HAL_CASE(FaultLosesTheDevice) {
    const auto fault = bench.NewExecutable({.entry = &FaultKernel, .name = "faulty"});
    CommandStreamBuilder builder;
    builder.Bind(fault, {}, {});
    builder.Dispatch({100, 1, 1});  // does not reach the workgroup that faults
    builder.Dispatch({65'535, 100, 1});
    const auto stream = builder.Finish();
    const auto done = bench.NewTimeline();
    ASSERT_TRUE(bench.Submit(bench.queue(), {}, {*stream}, {{done, 1}}).ok());
    const Status waited = done->Wait(1, kPatienceNs);
    ASSERT_FALSE(waited.ok());  // a backend that runs no kernel sees no fault
    EXPECT_EQ(waited.error().code, ErrorCode::kDeviceLost);
    ASSERT_TRUE(bench.device().lost());
    const std::string message = bench.device().status().error().message;
    EXPECT_NE(message.find("'faulty'"), std::string::npos) << message;
    EXPECT_NE(message.find("OpUnreachable"), std::string::npos) << message;
    EXPECT_EQ(bench.queue().Submit({}).error().code, ErrorCode::kDeviceLost);
}

HAL_CASE(CountersCountWork) {
    const auto memory = bench.Allocate(4096);
    const auto set = MakeSet(bench, memory);
    const auto count = bench.NewExecutable({.entry = &CountKernel});
    CommandStreamBuilder builder;
    Bind(builder, count, set);
    builder.Dispatch({10, 2, 1});
    builder.Barrier();
    builder.Dispatch({3, 1, 1});
    builder.Fill(memory->address(), 128, 0);
    builder.Copy(memory->address(), memory->address() + 256, 64);
    bench.Run(builder);
    const Counters counters = bench.device().counters();
    EXPECT_EQ(counters.dispatches, 2u);
    EXPECT_EQ(counters.workgroups, 23u);
    EXPECT_EQ(counters.barriers, 1u);
    EXPECT_EQ(counters.bytes_filled, 128u);
    EXPECT_EQ(counters.bytes_copied, 64u);
    EXPECT_EQ(counters.packets, 6u + 2u) << "the stream's, CHAIN and TIMELINE_SIGNAL";
}

// Every counter, in any order, one of them twice; another queue's work meanwhile is not seen.
HAL_CASE(CountsWhatAQueueDoes) {
    const auto memory = bench.Allocate(8192);
    const auto queries = bench.Allocate(64 * sizeof(QuerySlot));
    const auto slots = View<QuerySlot>(queries);
    const auto set = MakeSet(bench, memory);
    const auto count = bench.NewExecutable(
        {.entry = &CountKernel, .workgroup_size = {2, 1, 1}, .descriptor_set_mask = 1});
    std::vector<CounterId> ids;
    for (const CounterInfo& info : kCounterInfos) {
        ids.insert(ids.begin(), info.id);
    }
    while (ids.size() < 60) {  // of more than a packet
        ids.push_back(CounterId::kWorkgroups);
    }
    CommandStreamBuilder builder;
    builder.ResetQueries(queries->address(), 64);
    Bind(builder, count, set);
    builder.Dispatch({9, 1, 1});
    builder.BeginCounts(queries->address(), ids);
    builder.Dispatch({5, 2, 1});
    builder.Dispatch({0, 2, 1});
    builder.Barrier();
    builder.Fill(memory->address() + 4096, 64, 0);
    builder.Copy(memory->address() + 4096, memory->address() + 4608, 32);
    builder.Barrier();
    builder.EndCounts(queries->address(), ids);
    builder.Dispatch({100, 1, 1});
    CommandStreamBuilder other;
    Bind(other, count, set);
    for (int i = 0; i < 500; ++i) {
        other.Dispatch({3, 1, 1});
    }
    const auto others = other.Finish();
    const auto queue = bench.NewQueue();
    const auto done = bench.NewTimeline();
    ASSERT_TRUE(bench.Submit(*queue, {}, {*others}, {{done, 1}}).ok());
    bench.Run(builder);
    ASSERT_TRUE(done->Wait(1, kPatienceNs).ok());
    for (size_t i = 0; i < ids.size(); ++i) {
        EXPECT_TRUE(QueryAvailable(slots[i])) << i;
        uint64_t expected = 0;
        switch (ids[i]) {
            case CounterId::kInvocations:
                expected = 20;
                break;
            case CounterId::kDispatches:
                expected = 1;
                break;
            case CounterId::kWorkgroups:
                expected = 10;
                break;
            case CounterId::kBarriers:
                expected = 2;
                break;
            case CounterId::kBytesFilled:
                expected = 64;
                break;
            case CounterId::kBytesCopied:
                expected = 32;
                break;
            case CounterId::kParallelDispatches:
                expected = slots[i].value <= 1 ? slots[i].value : 1;
                break;
            default:
                break;
        }
        EXPECT_EQ(slots[i].value, expected) << i;
    }
    EXPECT_FALSE(QueryAvailable(slots[ids.size()]));
}

// Each workgroup tells its number of commands of every kind.
void MatrixKernel(const DispatchFrame* frame, WorkerFrame* worker, uint64_t first, uint64_t count) {
    GatherKernel(frame, worker, first, count);
    MatrixCounts counts;
    for (uint64_t i = first; i < first + count; ++i) {
        counts.mmas[i % kMatrixFormats] += i;
        counts.operands_loaded += 2;
        counts.accumulators_loaded += 3;
        counts.accumulators_stored += 5;
    }
    worker->unit_counts += UnitCountsOf(counts);
}

HAL_CASE(CountersSumUpTheMatrixUnits) {
    Bench wide(bench.backend(), {.worker_count = kGatheringWorkers});
    const auto memory = wide.Allocate((4096 + kGatheringWorkers) * 4);
    const auto set = MakeSet(wide, memory);
    const auto count = wide.NewExecutable({.entry = &MatrixKernel});
    uint64_t products[kMatrixFormats] = {};
    for (uint64_t i = 0; i < 4096; ++i) {
        products[i % kMatrixFormats] += i;
    }
    for (uint64_t round = 1; round <= 2; ++round) {
        CommandStreamBuilder builder;
        Bind(builder, count, set);
        builder.Dispatch({4096, 1, 1});
        wide.Run(builder);
        const Counters counters = wide.device().counters();
        for (uint32_t format = 0; format < kMatrixFormats; ++format) {
            EXPECT_EQ(counters.of(MultiplyAddsOf(format)),
                      round * products[format] * kMultiplyAddsPerMma);
        }
        EXPECT_EQ(counters.matrix_operands_loaded, round * 4096 * 2);
        EXPECT_EQ(counters.matrix_accumulators_loaded, round * 4096 * 3);
        EXPECT_EQ(counters.matrix_accumulators_stored, round * 4096 * 5);
        EXPECT_EQ(counters.matrix_commands,
                  round * (4096 * 10 + products[0] + products[1] + products[2] + products[3]));
    }
}

HAL_CASE(QueuesShareTheWorkers) {
    Bench wide(bench.backend(), {.worker_count = 3});
    const auto count = wide.NewExecutable({.entry = &CountKernel});
    constexpr uint32_t kQueues = 3;
    constexpr uint32_t kRounds = 20;
    constexpr uint32_t kWords = 50'000;
    std::vector<std::shared_ptr<Queue>> queues;
    std::vector<std::shared_ptr<Memory>> memories;
    std::vector<TimelinePoint> points;
    for (uint32_t q = 0; q < kQueues; ++q) {
        queues.push_back(wide.NewQueue());
        memories.push_back(wide.Allocate(kWords * 4));
        points.push_back({wide.NewTimeline(), kRounds});
    }
    for (uint32_t round = 1; round <= kRounds; ++round) {
        for (uint32_t q = 0; q < kQueues; ++q) {
            CommandStreamBuilder builder;
            const BufferDescriptor descriptor = {memories[q]->address(), kWords * 4};
            const uint64_t sets[] = {builder.StoreSideData(&descriptor, sizeof(descriptor))};
            builder.Bind(count, sets, {});
            builder.Dispatch({kWords, 1, 1});
            ASSERT_TRUE(
                wide.Submit(*queues[q], {}, {*builder.Finish()}, {{points[q].timeline, round}})
                    .ok());
        }
    }
    EXPECT_TRUE(WaitAll(points, kPatienceNs).ok());
    for (const auto& memory : memories) {
        EXPECT_TRUE(std::ranges::all_of(View<uint32_t>(memory),
                                        [](uint32_t word) { return word == kRounds; }));
    }
}

}  // namespace
}  // namespace fornax::hal::conformance
