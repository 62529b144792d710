// Times loop kernels from a file on the first device of the loader, beside a copy of the same bytes
// by two threads:  fornax_kernel_bench [--flat] FILE...
#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>
#include <thread>

#include <fmt/format.h>

#include "tests/graph/kernel_runner.h"

namespace fornax::test {
namespace {

double CpuTime() {
    timespec time = {};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

KernelRunner::Timing CopyTime(size_t bytes, uint32_t repeats) {
    using Clock = std::chrono::steady_clock;
    // Read and written bytes together are those of the kernel.
    const size_t half = std::max<size_t>(bytes / 4, 64);
    std::vector<uint8_t> from(2 * half, 1), to(2 * half, 2);
    KernelRunner::Timing least;
    constexpr int kInner = 2;
    for (uint32_t i = 0; i < repeats; ++i) {
        const double cpu_start = CpuTime();
        const Clock::time_point start = Clock::now();
        const auto copy = [&](size_t first) {
            for (int k = 0; k < kInner; ++k) {
                std::memcpy(to.data() + first, from.data() + first, half);
                asm volatile("" ::: "memory");
            }
        };
        std::thread other(copy, half);
        copy(0);
        other.join();
        const std::chrono::duration<double, std::nano> time = Clock::now() - start;
        least.wall_ns = std::min(least.wall_ns, time.count() / kInner);
        least.cpu_ns = std::min(least.cpu_ns, (CpuTime() - cpu_start) / kInner);
    }
    return least;
}

int Main(int argc, char** argv) {
    Result<std::unique_ptr<KernelRunner>> runner = KernelRunner::Open();
    if (!runner.ok()) {
        fmt::print(stderr, "{}\n", runner.error().message);
        return 1;
    }
    fmt::print("{}\n{:<20} {:>9} {:>9} {:>9} {:>6} {:>9} {:>9} {:>6}\n", (*runner)->device_name(),
               "kernel", "us", "GB/s", "copy", "share", "CPU us", "copy", "share");
    for (int i = 1; i < argc; ++i) {
        std::ifstream file(argv[i]);
        std::stringstream text;
        text << file.rdbuf();
        const Result<graph::loop::Kernel> kernel = graph::loop::ParseKernel(text.str());
        if (!kernel.ok()) {
            fmt::print(stderr, "{}: {}\n", argv[i], kernel.error().message);
            return 1;
        }
        const Result<graph::loop::Module> module = EmitSpirv(*kernel, (*runner)->target());
        if (!module.ok()) {
            fmt::print(stderr, "{}: {}\n", argv[i], module.error().message);
            return 1;
        }
        std::ofstream(fmt::format("{}.spv", argv[i]), std::ios::binary)
            .write(reinterpret_cast<const char*>(module->words.data()),
                   static_cast<std::streamsize>(module->words.size() * 4));
        std::vector<std::vector<uint8_t>> buffers;
        size_t bytes = 0;
        for (const graph::loop::Buffer& buffer : kernel->buffers) {
            const int64_t count = buffer.type.shape.Volume().Evaluate({}).value_or(0);
            buffers.emplace_back(static_cast<size_t>(count) * BytesOf(buffer.type.element));
            bytes += buffers.back().size();
        }
        const Result<KernelRunner::Dispatch> dispatch = DispatchOf(*kernel, *module, {});
        if (!dispatch.ok()) {
            return 1;
        }
        // The first runs are those of the baseline tier.
        (void)(*runner)->Time(*dispatch, buffers, 5);
        std::this_thread::sleep_for(std::chrono::milliseconds(700));
        const Result<KernelRunner::Timing> time = (*runner)->Time(*dispatch, buffers, 150);
        if (!time.ok()) {
            fmt::print(stderr, "{}: {}\n", argv[i], time.error().message);
            return 1;
        }
        const KernelRunner::Timing copy = CopyTime(bytes, 150);
        const auto size = static_cast<double>(bytes);
        fmt::print("{:<20} {:>9.1f} {:>9.2f} {:>9.2f} {:>5.0f}% {:>9.1f} {:>9.1f} {:>5.0f}%\n",
                   kernel->name, time->wall_ns / 1e3, size / time->wall_ns, size / copy.wall_ns,
                   100 * copy.wall_ns / time->wall_ns, time->cpu_ns / 1e3, copy.cpu_ns / 1e3,
                   100 * copy.cpu_ns / time->cpu_ns);
    }
    return 0;
}

}  // namespace
}  // namespace fornax::test

int main(int argc, char** argv) {
    return fornax::test::Main(argc, argv);
}
