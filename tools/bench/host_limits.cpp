// Runs the host loops on one and on all threads and keeps the best of several rounds.
#include "tools/bench/host_limits.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include <sched.h>
#include <sys/mman.h>

#include "tools/bench/host_kernels.h"

namespace fornax::bench {
namespace {

constexpr size_t kHugePageBytes = 2u << 20;
constexpr size_t kCountMultiple = 256;

struct FreeDeleter {
    void operator()(float* memory) const { std::free(memory); }
};
using FloatArray = std::unique_ptr<float[], FreeDeleter>;

// In huge pages where the system has them, or address translation would limit before memory does.
FloatArray AllocateFloats(size_t count) {
    const size_t size_bytes =
        (count * sizeof(float) + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
    void* memory = std::aligned_alloc(kHugePageBytes, size_bytes);
    if (memory == nullptr) {
        throw std::bad_alloc();
    }
    madvise(memory, size_bytes, MADV_HUGEPAGE);
    return FloatArray(static_cast<float*>(memory));
}

// Keeps results alive that nothing else uses.
std::atomic<float> g_sink;

// Runs work(thread) on `threads` threads at once, `rounds` times, and returns the seconds of the
// fastest round. Threads start together and the slowest one counts.
double BestSeconds(int threads, int rounds, const std::function<void(int thread)>& work) {
    using Clock = std::chrono::steady_clock;
    Clock::time_point start;
    double best = 1e30;
    // The completion function runs once, when the last thread has arrived: before and after each
    // round.
    bool is_running = false;
    std::barrier barrier(threads, [&]() noexcept {
        const Clock::time_point now = Clock::now();
        if (is_running) {
            best = std::min(best, std::chrono::duration<double>(now - start).count());
        }
        is_running = !is_running;
        start = now;
    });
    std::vector<std::thread> team;
    for (int thread = 0; thread < threads; ++thread) {
        team.emplace_back([&, thread] {
            for (int round = 0; round < rounds; ++round) {
                barrier.arrive_and_wait();
                work(thread);
                barrier.arrive_and_wait();
            }
        });
    }
    for (std::thread& member : team) {
        member.join();
    }
    return best;
}

double FmaGflops(const HostKernels& kernels, int threads, int rounds, uint64_t steps) {
    std::vector<float> sinks(threads * kCountMultiple);  // far apart: no shared cache lines
    std::vector<double> operations(threads);
    const double seconds = BestSeconds(threads, rounds, [&](int thread) {
        operations[thread] = kernels.fma(steps, &sinks[thread * kCountMultiple]);
    });
    double total = 0;
    for (int thread = 0; thread < threads; ++thread) {
        total += operations[thread];
        g_sink = g_sink + sinks[thread * kCountMultiple];
    }
    return total / seconds / 1e9;
}

// Three arrays of `count` floats that all threads share, each working on a slice of its own.
class Arrays {
  public:
    Arrays(size_t count, int threads)
        : threads_(threads), slice_(RoundUp(count / threads)), count_(slice_ * threads) {
        for (FloatArray& array : arrays_) {
            array = AllocateFloats(count_);
        }
        BestSeconds(threads, 1, [&](int thread) {
            for (FloatArray& array : arrays_) {
                std::fill_n(array.get() + thread * slice_, slice_, 1.0f);
            }
        });
    }

    // GB/s of `repeats` runs of loop(out, a, b, count) over all slices, `arrays_touched` arrays
    // each.
    template <typename Loop>
    double Gbs(int rounds, int repeats, int arrays_touched, Loop loop) const {
        const double seconds = BestSeconds(threads_, rounds, [&](int thread) {
            const size_t offset = thread * slice_;
            for (int i = 0; i < repeats; ++i) {
                loop(arrays_[0].get() + offset, arrays_[1].get() + offset,
                     arrays_[2].get() + offset, slice_);
            }
        });
        return 1.0 * repeats * arrays_touched * sizeof(float) * count_ / seconds / 1e9;
    }

  private:
    static size_t RoundUp(size_t count) {
        return std::max<size_t>(1, (count + kCountMultiple - 1) / kCountMultiple) * kCountMultiple;
    }

    int threads_;
    size_t slice_;
    size_t count_;
    FloatArray arrays_[3];
};

void MeasureBandwidth(const HostKernels& kernels, bool quick, HostLimits& limits) {
    const int rounds = quick ? 2 : 7;
    const size_t large_count = (quick ? 4u << 20 : 64u << 20) / sizeof(float);
    constexpr size_t kCachedCount = (256u << 10) / sizeof(float);
    const int cached_repeats = quick ? 10 : 1000;
    auto triad = [&](float* out, const float* a, const float* b, size_t count) {
        kernels.triad(out, a, b, 0.5f, count);
    };
    auto triad_streaming = [&](float* out, const float* a, const float* b, size_t count) {
        kernels.triad_streaming(out, a, b, 0.5f, count);
    };
    auto copy = [&](float* out, const float* a, const float*, size_t count) {
        kernels.copy(out, a, count);
    };
    auto copy_streaming = [&](float* out, const float* a, const float*, size_t count) {
        kernels.copy_streaming(out, a, count);
    };
    auto read = [&](float*, const float* a, const float*, size_t count) {
        g_sink = kernels.read(a, count);
    };
    const Arrays large(large_count, limits.threads);
    limits.triad_gbs =
        std::max(large.Gbs(rounds, 1, 3, triad), large.Gbs(rounds, 1, 3, triad_streaming));
    limits.copy_gbs =
        std::max(large.Gbs(rounds, 1, 2, copy), large.Gbs(rounds, 1, 2, copy_streaming));
    limits.read_gbs = large.Gbs(rounds, 1, 1, read);
    const Arrays cached(kCachedCount, limits.threads);
    limits.triad_cached_gbs = cached.Gbs(rounds, cached_repeats, 3, triad);
}

}  // namespace

double HostLimits::Value(Limit limit) const {
    switch (limit) {
        case Limit::kNone:
            return 0;
        case Limit::kFmaAllThreads:
            return fma_all_threads_gflops;
        case Limit::kTriad:
            return triad_gbs;
        case Limit::kTriadCached:
            return triad_cached_gbs;
        case Limit::kCopy:
            return copy_gbs;
        case Limit::kRead:
            return read_gbs;
    }
    return 0;
}

HostLimits MeasureHostLimits(bool quick, uint32_t max_vector_bits) {
    const int rounds = quick ? 2 : 5;
    const uint64_t steps = quick ? 100'000 : 10'000'000;
    HostLimits limits;
    limits.threads = AvailableThreads();
    const HostKernels* widest = nullptr;
    const std::vector<HostKernels> all = AllHostKernels();
    for (const HostKernels& kernels : all) {
        if (!kernels.is_supported() || kernels.vector_bits > max_vector_bits) {
            continue;
        }
        if (widest == nullptr) {
            widest = &kernels;
        }
        // Not every processor is fastest with its widest vectors.
        const double one = FmaGflops(kernels, 1, rounds, steps);
        if (one > limits.fma_one_thread_gflops) {
            limits.fma_one_thread_gflops = one;
            limits.fma_all_threads_gflops = FmaGflops(kernels, limits.threads, rounds, steps);
            limits.vector_unit = kernels.name;
        }
    }
    MeasureBandwidth(*widest, quick, limits);
    return limits;
}

namespace {

// Additions that wait for each other take a cycle each.
double ClockGhz(bool quick) {
    const uint64_t steps = quick ? 1'000'000 : 20'000'000;
    constexpr int kAdditions = 16;
    const double seconds = BestSeconds(1, quick ? 2 : 5, [&](int) {
        uint64_t value = 1;
        for (uint64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 16
            for (int i = 0; i < kAdditions; ++i) {
                // Else the compiler adds up all of them at once.
                value += step;
                __asm__ volatile("" : "+r"(value));
            }
        }
        g_sink = static_cast<float>(value);
    });
    return static_cast<double>(steps) * kAdditions / seconds / 1e9;
}

// Independent operations of the kinds that addresses and conditions take.
double ScalarGops(bool quick) {
    const uint64_t steps = quick ? 200'000 : 5'000'000;
    constexpr int kChains = 8;
    const double seconds = BestSeconds(1, quick ? 2 : 5, [&](int) {
        uint64_t chains[kChains] = {1, 2, 3, 4, 5, 6, 7, 8};
        for (uint64_t step = 0; step < steps; ++step) {
            // Else the compiler computes several operations, or vectors of them, at once.
#pragma GCC unroll 8
            for (uint64_t& chain : chains) {
                chain += step;
                __asm__ volatile("" : "+r"(chain));
            }
#pragma GCC unroll 8
            for (uint64_t& chain : chains) {
                chain ^= chain >> 7;  // two
                __asm__ volatile("" : "+r"(chain));
            }
#pragma GCC unroll 8
            for (uint64_t& chain : chains) {
                chain *= 5000;
                __asm__ volatile("" : "+r"(chain));
            }
        }
        for (const uint64_t chain : chains) {
            g_sink = g_sink + static_cast<float>(chain);
        }
    });
    return static_cast<double>(steps) * kChains * 4 / seconds / 1e9;
}

double ProductGmacs(const HostKernels& kernels, int threads, int rounds, uint64_t steps) {
    std::vector<FloatArray> panels, tiles;
    for (int thread = 0; thread < threads; ++thread) {
        panels.push_back(AllocateFloats(kProductFloats));
        tiles.push_back(AllocateFloats(kProductTileFloats));
        std::fill_n(panels.back().get(), kProductFloats, 1.0f / 1024);
        std::fill_n(tiles.back().get(), kProductTileFloats, 0.0f);
    }
    std::vector<double> done(threads);
    const double seconds = BestSeconds(threads, rounds, [&](int thread) {
        done[thread] = kernels.product(steps, panels[thread].get(), tiles[thread].get());
    });
    double total = 0;
    for (int thread = 0; thread < threads; ++thread) {
        total += done[thread];
        g_sink = g_sink + tiles[thread][0];
    }
    return total / seconds / 1e9;
}

// The median of several, in turns.
double PlainCopyRatio(const HostKernels& kernels, int threads, bool quick) {
    const Arrays arrays((quick ? 4u << 20 : 64u << 20) / sizeof(float), threads);
    std::vector<double> ratios(quick ? 3 : 9);
    for (double& ratio : ratios) {
        const auto gbs = [&](auto copy) {
            return arrays.Gbs(2, 1, 2, [copy](float* out, const float* a, const float*, size_t n) {
                copy(out, a, n);
            });
        };
        ratio = gbs(kernels.copy_streaming) / gbs(kernels.copy);
    }
    std::ranges::sort(ratios);
    return ratios[ratios.size() / 2];
}

double Int8Gmacs(const HostKernels& kernels, int threads, int rounds, uint64_t steps) {
    std::vector<int32_t> sinks(threads * kCountMultiple);
    std::vector<double> done(threads);
    const double seconds = BestSeconds(threads, rounds, [&](int thread) {
        done[thread] = kernels.dot(steps, &sinks[thread * kCountMultiple]);
    });
    double total = 0;
    for (int thread = 0; thread < threads; ++thread) {
        total += done[thread];
        g_sink = g_sink + static_cast<float>(sinks[thread * kCountMultiple]);
    }
    return total / seconds / 1e9;
}

// Copies and triads in turns, with the stores that are the fastest.
double SustainedGbs(const HostKernels& kernels, int threads, bool quick) {
    const Arrays arrays((quick ? 4u << 20 : 64u << 20) / sizeof(float), threads);
    const auto copy = [&](float* out, const float* a, const float*, size_t count) {
        kernels.copy_streaming(out, a, count);
    };
    const auto triad = [&](float* out, const float* a, const float* b, size_t count) {
        kernels.triad_streaming(out, a, b, 0.5f, count);
    };
    const int turns = quick ? 3 : 120;
    double seconds = 0;  // for a GB of each
    for (int turn = 0; turn < turns; ++turn) {
        seconds += 1 / arrays.Gbs(1, 1, 2, copy) + 1 / arrays.Gbs(1, 1, 3, triad);
    }
    return 2 * turns / seconds;
}

}  // namespace

HostUnits MeasureHostUnits(bool quick, const HostLimits& limits) {
    const int rounds = quick ? 2 : 5;
    HostUnits units;
    units.clock_ghz = ClockGhz(quick);
    units.scalar_gops = ScalarGops(quick);
    const HostKernels* widest = nullptr;
    const std::vector<HostKernels> all = AllHostKernels();
    for (const HostKernels& kernels : all) {
        if (!kernels.is_supported()) {
            continue;
        }
        widest = widest == nullptr ? &kernels : widest;
        if (kernels.name == limits.vector_unit) {
            units.vector_bits = kernels.vector_bits;
            units.product_gmacs = ProductGmacs(kernels, limits.threads, rounds, quick ? 5 : 500);
        }
        units.int8_gmacs = std::max(units.int8_gmacs, Int8Gmacs(kernels, limits.threads, rounds,
                                                                quick ? 100'000 : 5'000'000));
    }
    // From sizes that the nearest caches hold to those that none does.
    const auto triad = [&](uint64_t bytes, int threads) {
        const Arrays arrays(bytes / sizeof(float) / 3, threads);
        const int repeats = static_cast<int>((quick ? 1u << 20 : 64u << 20) / bytes) + 1;
        return arrays.Gbs(rounds, repeats, 3,
                          [&](float* out, const float* a, const float* b, size_t count) {
                              widest->triad(out, a, b, 0.5f, count);
                          });
    };
    units.core_cache_gbs = triad(24u << 10, 1);
    units.plain_copy_ratio = PlainCopyRatio(*widest, limits.threads, quick);
    units.sustained_gbs = SustainedGbs(*widest, limits.threads, quick);
    const double least = std::sqrt(limits.triad_cached_gbs * units.sustained_gbs);
    for (uint64_t bytes = 1u << 20; bytes <= 256u << 20; bytes += bytes / 2) {
        if (triad(bytes, limits.threads) >= least) {
            units.cache_bytes = bytes;
        }
    }
    units.cache_gbs =
        units.cache_bytes == 0
            ? limits.triad_cached_gbs
            : triad(std::max<uint64_t>(1u << 20, units.cache_bytes / 2), limits.threads);
    return units;
}

HostLimits BestOf(const HostLimits& a, const HostLimits& b) {
    HostLimits best = a.fma_all_threads_gflops >= b.fma_all_threads_gflops ? a : b;
    best.fma_one_thread_gflops = std::max(a.fma_one_thread_gflops, b.fma_one_thread_gflops);
    best.triad_gbs = std::max(a.triad_gbs, b.triad_gbs);
    best.triad_cached_gbs = std::max(a.triad_cached_gbs, b.triad_cached_gbs);
    best.copy_gbs = std::max(a.copy_gbs, b.copy_gbs);
    best.read_gbs = std::max(a.read_gbs, b.read_gbs);
    return best;
}

int AvailableThreads() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        return std::max(1, CPU_COUNT(&set));
    }
    return std::max(1u, std::thread::hardware_concurrency());
}

std::string HostProcessorName() {
    std::ifstream cpuinfo("/proc/cpuinfo");
    for (std::string line; std::getline(cpuinfo, line);) {
        const size_t colon = line.find(": ");
        if (line.starts_with("model name") && colon != std::string::npos) {
            return line.substr(colon + 2);
        }
    }
    return "unknown";
}

}  // namespace fornax::bench
