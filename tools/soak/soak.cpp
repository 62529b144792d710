// The threads of the soak and the samples.
#include "tools/soak/soak.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <thread>

#include <fmt/format.h>

#include "tools/soak/client.h"

namespace fornax::soak {

namespace {

uint64_t MeanKib(std::span<const SoakSample> samples) {
    uint64_t sum = 0;
    for (const SoakSample& sample : samples) {
        sum += sample.resident_kib;
    }
    return sum / samples.size();
}

}  // namespace

Result<SoakReport> RunSoak(const SoakOptions& options,
                           const std::function<void(const SoakReport&)>& progress) {
    using Clock = std::chrono::steady_clock;
    using Seconds = std::chrono::duration<double>;
    SoakReport report;
    for (const Load& load : AllLoads()) {
        if (options.loads.empty() ||
            std::ranges::find(options.loads, std::string(load.name)) != options.loads.end()) {
            report.loads.push_back(&load);
        }
    }
    if (report.loads.size() != (options.loads.empty() ? AllLoads().size() : options.loads.size())) {
        return Error{ErrorCode::kInvalidArgument, "There is no such load."};
    }

    std::atomic<bool> stop{false};
    std::deque<LoadCounters> counters;
    std::vector<std::thread> threads;
    const Clock::time_point begin = Clock::now();
    const Clock::time_point end =
        begin + std::chrono::duration_cast<Clock::duration>(Seconds(options.minutes * 60));
    for (const Load* load : report.loads) {
        LoadCounters& own = counters.emplace_back();
        threads.emplace_back([load, &own, &stop] { load->run(stop, own); });
    }
    Clock::time_point next = begin;
    for (bool last = false; !last;) {
        next += std::chrono::duration_cast<Clock::duration>(Seconds(options.interval_seconds));
        last = next >= end;
        std::this_thread::sleep_until(std::min(next, end));
        SoakSample sample{.minutes = Seconds(Clock::now() - begin).count() / 60,
                          .resident_kib = ResidentKib()};
        for (const LoadCounters& load : counters) {
            sample.rounds.push_back(load.rounds.load());
            last = last || load.failed.load();
        }
        report.samples.push_back(std::move(sample));
        progress(report);
    }
    stop = true;
    for (std::thread& thread : threads) {
        thread.join();
    }

    for (size_t i = 0; i < counters.size(); ++i) {
        if (counters[i].failed) {
            report.failures.push_back(
                fmt::format("{}: {}", report.loads[i]->name, counters[i].failure));
        } else if (counters[i].rounds == 0) {
            report.failures.push_back(
                fmt::format("{} has not done one round.", report.loads[i]->name));
        }
    }
    const size_t count = report.samples.size();
    report.memory_judged = count >= kLeastSamples;
    if (!report.memory_judged) {
        return report;
    }
    const size_t warm = count / 6;
    const size_t middle = warm + (count - warm) / 2;
    report.first_kib = MeanKib(std::span(report.samples).subspan(warm, middle - warm));
    report.second_kib = MeanKib(std::span(report.samples).subspan(middle));
    if (report.second_kib > report.first_kib + options.most_growth_mib * 1024) {
        report.failures.push_back(
            fmt::format("Memory grew from {} to {} KiB on average, by more than {} MiB.",
                        report.first_kib, report.second_kib, options.most_growth_mib));
    }
    return report;
}

}  // namespace fornax::soak
