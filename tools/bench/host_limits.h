// What the host itself can do, measured by plain C++ code in the same run as the drivers.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace fornax::bench {

// A measured limit of the host that bounds a benchmark.
enum class Limit { kNone, kFmaAllThreads, kTriad, kTriadCached, kCopy, kRead };

// Bandwidths count the bytes that the program names (STREAM's convention): lines that a store
// fetches first are not counted. Rates are in 1e9 a second.
struct HostLimits {
    int threads = 0;
    std::string vector_unit;  // the instruction set that reached the f32 peak
    double fma_one_thread_gflops = 0;
    double fma_all_threads_gflops = 0;
    double triad_gbs = 0;
    double triad_cached_gbs = 0;
    double copy_gbs = 0;
    double read_gbs = 0;

    // The limit's value, or 0 for Limit::kNone.
    double Value(Limit limit) const;
};

// Takes a second or two; with `quick`, about a tenth of one, and is less exact. Only instruction
// sets with vectors of at most `max_vector_bits` count.
HostLimits MeasureHostLimits(bool quick, uint32_t max_vector_bits = 512);

// What else a description of the host as a device has (fornax npu host). In 1e9 a second.
struct HostUnits {
    double clock_ghz = 0;      // dependent additions
    uint32_t vector_bits = 0;  // of the vectors that reached the f32 peak
    double product_gmacs = 0;  // f32, of all threads: products of panels in the cores' own caches
    double int8_gmacs = 0;     // of all threads; 0: no instruction has them
    double scalar_gops = 0;    // integer operations that are not vectors', of one thread
    // Copies in memory with stores of whole lines, and with stores that bypass the caches: 1.5
    // times as fast where others read the lines that they write.
    double copy_plain_gbs = 0;
    double copy_streaming_gbs = 0;
    // Copies and triads in memory, of which three quarters take longer: less than the best, because
    // others use memory as well.
    double sustained_gbs = 0;
    std::map<uint64_t, double> triad_gbs;  // by bytes of the three arrays together
    double core_cache_gbs = 0;             // triad of one thread, in its own caches
    // What one thread reads of memory, while all do, if each line is 1 KiB behind the one before,
    // within 16 KiB until all of it is read: lines that no prefetcher expects.
    double apart_gbs = 0;
    double far_gbs = 0;  // the same of lines in random order

    // Three arrays of this size together are still served by caches; 0: there is no such size.
    uint64_t CacheBytes(const HostLimits& limits) const;
    // A triad in half of that.
    double CacheGbs(const HostLimits& limits) const;
};

// About two seconds.
HostUnits MeasureHostUnits(bool quick, const HostLimits& limits);

// Each limit as the better of the two measurements, for several interleaved with other work.
HostLimits BestOf(const HostLimits& a, const HostLimits& b);
HostUnits BestOf(const HostUnits& a, const HostUnits& b);

// Threads that may run at the same time in this process.
int AvailableThreads();

// The processor's name, or "unknown".
std::string HostProcessorName();

}  // namespace fornax::bench
