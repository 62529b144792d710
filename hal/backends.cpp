// The factory: the one place that knows the backends' names and the environment.
#include <sched.h>

#include <algorithm>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/environment.h"
#include "hal/backend.h"
#include "hal/device.h"
#include "hal/model/device.h"
#include "hal/null/device.h"
#include "hal/support/host_heap.h"

namespace fornax::hal {

namespace {

struct Backend {
    const char* name;
    Result<std::shared_ptr<Device>> (*create)(const BackendOptions&);
};

constexpr Backend kBackends[] = {
    {"model", &model::CreateModelDevice},
    {"null", &null::CreateNullDevice},
};
constexpr uint64_t kMaxWorkers = 1024;
constexpr uint64_t kMaxHeapBytes = uint64_t{1} << 46;
constexpr uint64_t kMaxWatchdogMs = uint64_t{1} << 40;

uint64_t UsableHardwareThreads() {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0) {
        return static_cast<uint64_t>(CPU_COUNT(&set));
    }
    return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

std::vector<std::string> BackendNames() {
    std::vector<std::string> names;
    for (const Backend& backend : kBackends) {
        names.emplace_back(backend.name);
    }
    return names;
}

Result<std::shared_ptr<Device>> CreateDevice(std::string_view backend, DeviceOptions options) {
    std::string name(backend);
    if (name.empty()) {
        name = EnvironmentText("FORNAX_BACKEND").value_or("model");
    }
    BackendOptions filled;
    filled.on_lost = std::move(options.on_lost);
    filled.observer = std::move(options.observer);
    filled.worker_count = options.worker_count;
    if (filled.worker_count == 0) {
        const uint64_t machine = std::min(UsableHardwareThreads(), kMaxWorkers);
        FORNAX_ASSIGN_OR_RETURN(const uint64_t workers,
                                EnvironmentNumber("FORNAX_THREADS", {1, kMaxWorkers}, machine));
        filled.worker_count = static_cast<uint32_t>(workers);
    }
    filled.heap_bytes = options.heap_bytes;
    if (filled.heap_bytes == 0) {
        FORNAX_ASSIGN_OR_RETURN(
            filled.heap_bytes,
            EnvironmentNumber("FORNAX_HEAP_BYTES", {1, kMaxHeapBytes}, DefaultHeapBytes()));
    }
    if (options.watchdog_ms) {
        filled.watchdog_ms = *options.watchdog_ms;
    } else {
        FORNAX_ASSIGN_OR_RETURN(
            filled.watchdog_ms,
            EnvironmentNumber("FORNAX_WATCHDOG_MS", {0, kMaxWatchdogMs}, kDefaultWatchdogMs));
    }
    FORNAX_ASSIGN_OR_RETURN(const uint64_t catch_faults,
                            EnvironmentNumber("FORNAX_CATCH_FAULTS", {0, 1}, 1));
    filled.catch_faults = catch_faults != 0;
    FORNAX_ASSIGN_OR_RETURN(const uint64_t guard, EnvironmentNumber("FORNAX_GUARD", {0, 1}, 0));
    filled.guard = guard != 0;
    for (const Backend& candidate : kBackends) {
        if (name == candidate.name) {
            return candidate.create(filled);
        }
    }
    return Error{ErrorCode::kNotFound,
                 fmt::format("There is no device backend '{}'; there are: {}.", name,
                             fmt::join(BackendNames(), ", "))};
}

}  // namespace fornax::hal
