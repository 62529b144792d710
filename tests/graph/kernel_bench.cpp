// Times loop kernels from a file on the first device of the loader, beside a copy of the same bytes
// by two threads:  fornax_kernel_bench [--repeats N] FILE...
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string_view>
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
    fmt::print("{}\n{:<20} {:>9} {:>9} {:>9} {:>6}\n", (*runner)->device_name(), "kernel", "us",
               "GB/s", "copy", "share");
    uint32_t repeats = 150;
    int first = 1;
    if (argc > 2 && std::string_view(argv[1]) == "--repeats") {
        repeats = static_cast<uint32_t>(std::max(std::atoi(argv[2]), 1));
        first = 3;
    }
    for (int i = first; i < argc; ++i) {
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
        // In turns with the copy: both slow down where others use the memory.
        KernelRunner::Timing least, least_copy;
        std::vector<double> shares;
        constexpr uint32_t kTurns = 9;
        for (uint32_t turn = 0; turn < kTurns; ++turn) {
            const uint32_t count = (repeats + kTurns - 1) / kTurns;
            const Result<KernelRunner::Timing> time = (*runner)->Time(*dispatch, buffers, count);
            if (!time.ok()) {
                fmt::print(stderr, "{}: {}\n", argv[i], time.error().message);
                return 1;
            }
            const KernelRunner::Timing copy = CopyTime(bytes, count);
            shares.push_back(100 * copy.wall_ns / time->wall_ns);
            least = {std::min(least.wall_ns, time->wall_ns), std::min(least.cpu_ns, time->cpu_ns)};
            least_copy.wall_ns = std::min(least_copy.wall_ns, copy.wall_ns);
        }
        std::sort(shares.begin(), shares.end());
        const auto size = static_cast<double>(bytes);
        fmt::print("{:<20} {:>9.1f} {:>9.2f} {:>9.2f} {:>5.0f}% {:>4.0f} to {:.0f}%\n",
                   kernel->name, least.wall_ns / 1e3, size / least.wall_ns,
                   size / least_copy.wall_ns, shares[kTurns / 2], shares[1], shares[kTurns - 2]);
    }
    return 0;
}

}  // namespace
}  // namespace fornax::test

int main(int argc, char** argv) {
    return fornax::test::Main(argc, argv);
}
