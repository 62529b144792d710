// What the software device costs: recording, submission, dispatch, workgroups, copies.
//
// A spinning host thread and the device's threads need a core each; on a busy machine the latencies
// measure the scheduler.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <vector>

#include "hal/command_stream_builder.h"
#include "hal/device.h"

namespace fornax::hal {
namespace {

// Ends the program with the message: a benchmark has nobody to hand an error to.
template <typename T>
T Must(Result<T> result) {
    if (!result.ok()) {
        std::fprintf(stderr, "%s\n", result.error().message.c_str());
        std::exit(1);
    }
    return std::move(result).value();
}

void Must(const Status& status) {
    if (!status.ok()) {
        std::fprintf(stderr, "%s\n", status.error().message.c_str());
        std::exit(1);
    }
}

void EmptyKernel(const DispatchFrame*, WorkerFrame*, uint64_t first, uint64_t count) {
    benchmark::DoNotOptimize(first + count);
}

struct Setup {
    std::shared_ptr<Device> device = Must(CreateDevice("model"));
    std::shared_ptr<Queue> queue = Must(device->CreateQueue());
    std::shared_ptr<Timeline> done = Must(device->CreateTimeline(0));
    std::shared_ptr<const Executable> empty =
        Must(device->CreateExecutable({.entry = &EmptyKernel, .name = "empty"}));
    uint64_t value = 0;

    void RunAndWait(const std::shared_ptr<const CommandStream>& stream) {
        const TimelinePoint signal[] = {{done, ++value}};
        Must(queue->Submit({.streams = {&stream, stream ? 1u : 0u}, .signals = signal}));
        Must(done->Wait(value));
    }
};

void SubmitAndWait(benchmark::State& state) {
    Setup setup;
    for (auto _ : state) {
        setup.RunAndWait(nullptr);
    }
}
BENCHMARK(SubmitAndWait)->UseRealTime()->Unit(benchmark::kMicrosecond);

// As a client does that polls its fence.
void SubmitAndPoll(benchmark::State& state) {
    Setup setup;
    for (auto _ : state) {
        const TimelinePoint signal[] = {{setup.done, ++setup.value}};
        Must(setup.queue->Submit({.signals = signal}));
        while (!signal[0].Reached()) {
        }
    }
}
BENCHMARK(SubmitAndPoll)->UseRealTime()->Unit(benchmark::kMicrosecond);

void SubmitOnly(benchmark::State& state) {
    Setup setup;
    for (auto _ : state) {
        const TimelinePoint signal[] = {{setup.done, ++setup.value}};
        Must(setup.queue->Submit({.signals = signal}));
        if (setup.value % 128 == 0) {
            Must(setup.done->Wait(setup.value));
        }
    }
}
BENCHMARK(SubmitOnly)->UseRealTime()->Unit(benchmark::kMicrosecond);

constexpr uint32_t kDispatches = 1'000;

// One small workgroup, bound, with constants and a barrier each.
void DispatchWithBarrier(benchmark::State& state) {
    Setup setup;
    CommandStreamBuilder builder;
    const uint32_t constants[8] = {};
    for (uint32_t i = 0; i < kDispatches; ++i) {
        builder.Bind(setup.empty, {}, {});
        builder.Constants(constants, sizeof(constants));
        builder.Dispatch({1, 1, 1});
        builder.Barrier();
    }
    const auto stream = Must(builder.Finish());
    for (auto _ : state) {
        setup.RunAndWait(stream);
    }
    state.counters["per_dispatch"] = benchmark::Counter(
        kDispatches, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(DispatchWithBarrier)->UseRealTime()->Unit(benchmark::kMicrosecond);

// A grid of empty kernels, called once per workgroup as a kernel that does not loop would be.
void PerWorkgroupKernel(const DispatchFrame*, WorkerFrame*, uint64_t first, uint64_t count) {
    for (uint64_t i = first; i < first + count; ++i) {
        benchmark::DoNotOptimize(i);
    }
}

void EmptyWorkgroups(benchmark::State& state) {
    Setup setup;
    const auto kernel = Must(setup.device->CreateExecutable({.entry = &PerWorkgroupKernel}));
    const auto workgroups = static_cast<uint32_t>(state.range(0));
    CommandStreamBuilder builder;
    builder.Bind(kernel, {}, {});
    builder.Dispatch({workgroups, 1, 1});
    const auto stream = Must(builder.Finish());
    for (auto _ : state) {
        setup.RunAndWait(stream);
    }
    state.counters["per_workgroup"] = benchmark::Counter(
        workgroups, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(EmptyWorkgroups)->Arg(64)->Arg(65'536)->Arg(1 << 20)->UseRealTime();

// Grids of about 5 microseconds of work a workgroup: how soon the other workers help.
void WorkKernel(const DispatchFrame*, WorkerFrame*, uint64_t first, uint64_t count) {
    for (uint64_t i = first; i < first + count; ++i) {
        for (int k = 0; k < 5'000; ++k) {
            benchmark::DoNotOptimize(k);
        }
    }
}

void ParallelGrid(benchmark::State& state) {
    Setup setup;
    const auto kernel = Must(setup.device->CreateExecutable({.entry = &WorkKernel}));
    CommandStreamBuilder builder;
    builder.Bind(kernel, {}, {});
    builder.Dispatch({static_cast<uint32_t>(state.range(0)), 1, 1});
    const auto stream = Must(builder.Finish());
    for (auto _ : state) {
        setup.RunAndWait(stream);
    }
}
BENCHMARK(ParallelGrid)
    ->RangeMultiplier(4)
    ->Range(1, 256)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

void RecordDispatch(benchmark::State& state) {
    Setup setup;
    const auto memory = Must(setup.device->AllocateMemory(256));
    CommandStreamBuilder builder;
    uint32_t constants[16] = {};
    const uint64_t sets[] = {memory->address()};
    for (auto _ : state) {
        builder.Reset();
        for (uint32_t i = 0; i < kDispatches; ++i) {
            constants[0] = i;
            builder.Bind(setup.empty, sets, {});
            builder.Constants(constants, sizeof(constants));
            builder.Dispatch({i, 1, 1});
        }
    }
    state.counters["per_dispatch"] = benchmark::Counter(
        kDispatches, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(RecordDispatch);

void Copy(benchmark::State& state) {
    Setup setup;
    const auto size_bytes = static_cast<uint64_t>(state.range(0));
    const auto source = Must(setup.device->AllocateMemory(size_bytes));
    const auto destination = Must(setup.device->AllocateMemory(size_bytes));
    CommandStreamBuilder builder;
    builder.Fill(source->address(), size_bytes, 0x01020304);
    builder.Copy(source->address(), destination->address(), size_bytes);
    setup.RunAndWait(Must(builder.Finish()));
    builder.Reset();
    builder.Copy(source->address(), destination->address(), size_bytes);
    const auto stream = Must(builder.Finish());
    for (auto _ : state) {
        setup.RunAndWait(stream);
    }
    // Read and written.
    state.SetBytesProcessed(static_cast<int64_t>(2 * size_bytes) * state.iterations());
}
BENCHMARK(Copy)->Arg(4 << 10)->Arg(256 << 10)->Arg(4 << 20)->Arg(64 << 20)->UseRealTime();

// Many in one submission: what a small copy costs itself.
void SmallCopies(benchmark::State& state) {
    constexpr int64_t kCopies = 10'000;
    Setup setup;
    const auto size_bytes = static_cast<uint64_t>(state.range(0));
    const auto memory = Must(setup.device->AllocateMemory(2 * size_bytes));
    CommandStreamBuilder builder;
    for (int64_t i = 0; i < kCopies; ++i) {
        builder.Copy(memory->address(), memory->address() + size_bytes, size_bytes);
    }
    const auto stream = Must(builder.Finish());
    for (auto _ : state) {
        setup.RunAndWait(stream);
    }
    state.SetItemsProcessed(kCopies * state.iterations());
}
BENCHMARK(SmallCopies)->Arg(64)->Arg(4 << 10)->UseRealTime();

void Fill(benchmark::State& state) {
    Setup setup;
    const auto size_bytes = static_cast<uint64_t>(state.range(0));
    const auto memory = Must(setup.device->AllocateMemory(size_bytes));
    CommandStreamBuilder builder;
    builder.Fill(memory->address(), size_bytes, 0x01020304);
    const auto stream = Must(builder.Finish());
    for (auto _ : state) {
        setup.RunAndWait(stream);
    }
    state.SetBytesProcessed(static_cast<int64_t>(size_bytes) * state.iterations());
}
BENCHMARK(Fill)->Arg(256 << 10)->Arg(64 << 20)->UseRealTime();

// The limit for the copy above: one thread's memcpy.
void HostMemcpy(benchmark::State& state) {
    const auto size_bytes = static_cast<size_t>(state.range(0));
    std::vector<char> source(size_bytes, 1);
    std::vector<char> destination(size_bytes, 2);
    for (auto _ : state) {
        __builtin_memcpy(destination.data(), source.data(), size_bytes);
        benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(static_cast<int64_t>(2 * size_bytes) * state.iterations());
}
BENCHMARK(HostMemcpy)->Arg(4 << 20)->Arg(64 << 20)->UseRealTime();

}  // namespace
}  // namespace fornax::hal

BENCHMARK_MAIN();
