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
#include <iterator>
#include <memory>
#include <new>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include <sched.h>
#include <sys/mman.h>

#include "tools/bench/host_kernels.h"

namespace fornax::bench {
namespace {

constexpr size_t kHugePageBytes = 2u << 20;
constexpr size_t kCountMultiple = 256;
// Narrower vectors are taken where they are so much faster, and not where two times are about
// equal.
constexpr double kBetter = 1.05;

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

// Threads that have just begun often share a core for a while, where others have work as well.
void PinToCore(int thread) {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        return;
    }
    for (int core = 0; core < CPU_SETSIZE; ++core) {
        if (CPU_ISSET(core, &allowed) && thread-- == 0) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(core, &one);
            sched_setaffinity(0, sizeof one, &one);
            return;
        }
    }
}

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
            PinToCore(thread);
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

    size_t of_thread() const { return slice_; }

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
        if (one > kBetter * limits.fma_one_thread_gflops) {
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

double ApartGbs(int threads, bool quick) {
    constexpr size_t kLine = 64 / sizeof(float), kStep = 1024 / sizeof(float);
    constexpr size_t kBlock = (16u << 10) / sizeof(float);
    const Arrays arrays((quick ? 4u << 20 : 64u << 20) / sizeof(float), threads);
    const auto read = [](float*, const float* a, const float*, size_t count) {
        float sum = 0;
        for (size_t block = 0; block + kBlock <= count; block += kBlock) {
            for (size_t first = 0; first < kStep; first += kLine) {
                for (size_t i = first; i < kBlock; i += kStep) {
                    sum += a[block + i];
                }
            }
        }
        g_sink = sum;
    };
    return arrays.Gbs(quick ? 2 : 5, 1, 1, read) / threads;
}

double FarGbs(int threads, bool quick) {
    constexpr size_t kLine = 64 / sizeof(float);
    const Arrays arrays((quick ? 4u << 20 : 64u << 20) / sizeof(float), threads);
    std::vector<uint32_t> lines(arrays.of_thread() / kLine);
    std::iota(lines.begin(), lines.end(), 0);
    std::ranges::shuffle(lines, std::mt19937(1));
    const auto read = [&](float*, const float* a, const float*, size_t) {
        float sum = 0;
        for (const uint32_t line : lines) {
            sum += a[line * kLine];
        }
        g_sink = sum;
    };
    return arrays.Gbs(quick ? 2 : 5, 1, 1, read) / threads;
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

// Copies with both kinds of stores and triads, in turns. What disturbs some of them does no harm.
void MeasureStreams(const HostKernels& kernels, int threads, bool quick, HostUnits& units) {
    const Arrays arrays((quick ? 4u << 20 : 64u << 20) / sizeof(float), threads);
    const auto gbs_of = [&](auto copy) {
        return arrays.Gbs(1, 1, 2, [copy](float* out, const float* a, const float*, size_t count) {
            copy(out, a, count);
        });
    };
    const auto triad = [&](float* out, const float* a, const float* b, size_t count) {
        kernels.triad_streaming(out, a, b, 0.5f, count);
    };
    std::vector<double> seconds(quick ? 3 : 40);  // for a GB of each
    for (double& of_turn : seconds) {
        const double copied = gbs_of(kernels.copy_streaming);
        units.copy_streaming_gbs = std::max(units.copy_streaming_gbs, copied);
        units.copy_plain_gbs = std::max(units.copy_plain_gbs, gbs_of(kernels.copy));
        of_turn = 1 / copied + 1 / arrays.Gbs(1, 1, 3, triad);
    }
    const auto quarter = seconds.begin() + static_cast<ptrdiff_t>(seconds.size() / 4);
    std::ranges::nth_element(seconds, quarter);
    units.sustained_gbs = 2 / *quarter;
}

}  // namespace

HostUnits MeasureHostUnits(bool quick, const HostLimits& limits) {
    const int rounds = quick ? 2 : 5;
    // Less than a slice of what else wants a core.
    const int short_rounds = quick ? 2 : 50;
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
            units.product_gmacs =
                ProductGmacs(kernels, limits.threads, short_rounds, quick ? 5 : 100);
        }
        units.int8_gmacs =
            std::max(units.int8_gmacs,
                     Int8Gmacs(kernels, limits.threads, short_rounds, quick ? 100'000 : 500'000));
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
    units.apart_gbs = ApartGbs(limits.threads, quick);
    units.far_gbs = FarGbs(limits.threads, quick);
    MeasureStreams(*widest, limits.threads, quick, units);
    for (uint64_t bytes = 1u << 20; bytes <= 256u << 20; bytes += bytes / 2) {
        units.triad_gbs[bytes] = triad(bytes, limits.threads);
    }
    return units;
}

uint64_t HostUnits::CacheBytes(const HostLimits& limits) const {
    const double least = std::sqrt(limits.triad_cached_gbs * sustained_gbs);
    uint64_t most = 0;
    for (const auto& [bytes, gbs] : triad_gbs) {
        most = gbs >= least ? bytes : most;
    }
    return most;
}

double HostUnits::CacheGbs(const HostLimits& limits) const {
    const uint64_t bytes = CacheBytes(limits);
    if (bytes == 0) {
        return limits.triad_cached_gbs;
    }
    const auto above = triad_gbs.upper_bound(bytes / 2);
    return above == triad_gbs.begin() ? above->second : std::prev(above)->second;
}

HostLimits BestOf(const HostLimits& a, const HostLimits& b) {
    HostLimits best = b.fma_all_threads_gflops > kBetter * a.fma_all_threads_gflops ? b : a;
    best.fma_all_threads_gflops = std::max(a.fma_all_threads_gflops, b.fma_all_threads_gflops);
    best.fma_one_thread_gflops = std::max(a.fma_one_thread_gflops, b.fma_one_thread_gflops);
    best.triad_gbs = std::max(a.triad_gbs, b.triad_gbs);
    best.triad_cached_gbs = std::max(a.triad_cached_gbs, b.triad_cached_gbs);
    best.copy_gbs = std::max(a.copy_gbs, b.copy_gbs);
    best.read_gbs = std::max(a.read_gbs, b.read_gbs);
    return best;
}

HostUnits BestOf(const HostUnits& a, const HostUnits& b) {
    HostUnits best = b.product_gmacs > kBetter * a.product_gmacs ? b : a;
    if (a.vector_bits == b.vector_bits) {
        best.product_gmacs = std::max(a.product_gmacs, b.product_gmacs);
    }
    best.clock_ghz = std::max(a.clock_ghz, b.clock_ghz);
    best.int8_gmacs = std::max(a.int8_gmacs, b.int8_gmacs);
    best.scalar_gops = std::max(a.scalar_gops, b.scalar_gops);
    best.copy_plain_gbs = std::max(a.copy_plain_gbs, b.copy_plain_gbs);
    best.copy_streaming_gbs = std::max(a.copy_streaming_gbs, b.copy_streaming_gbs);
    best.sustained_gbs = std::max(a.sustained_gbs, b.sustained_gbs);
    best.core_cache_gbs = std::max(a.core_cache_gbs, b.core_cache_gbs);
    best.apart_gbs = std::max(a.apart_gbs, b.apart_gbs);
    best.far_gbs = std::max(a.far_gbs, b.far_gbs);
    best.triad_gbs = a.triad_gbs;
    for (const auto& [bytes, gbs] : b.triad_gbs) {
        double& most = best.triad_gbs[bytes];
        most = std::max(most, gbs);
    }
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
