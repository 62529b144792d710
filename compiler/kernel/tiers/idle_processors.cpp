#include "compiler/kernel/tiers/idle_processors.h"

#include <unistd.h>

#include <fstream>
#include <sstream>

namespace fornax::kernel {

std::optional<std::chrono::milliseconds> ParseIdleTime(const std::string& proc_stat) {
    std::istringstream line(proc_stat.substr(0, proc_stat.find('\n')));
    std::string name;
    uint64_t user = 0;
    uint64_t nice = 0;
    uint64_t system = 0;
    uint64_t idle = 0;
    uint64_t iowait = 0;
    const long ticks_per_second = sysconf(_SC_CLK_TCK);
    if (!(line >> name >> user >> nice >> system >> idle >> iowait) || name != "cpu" ||
        ticks_per_second <= 0) {
        return std::nullopt;
    }
    return std::chrono::milliseconds((idle + iowait) * 1000 /
                                     static_cast<uint64_t>(ticks_per_second));
}

bool IdleProcessors::Any() {
    const auto now = std::chrono::steady_clock::now();
    const auto window = now - since_;
    if (window < kWindow) {
        return answer_;
    }
    std::ifstream file("/proc/stat");
    std::string line;
    std::getline(file, line);
    const std::optional<std::chrono::milliseconds> idle = ParseIdleTime(line);
    if (!idle) {
        return true;
    }
    answer_ = idle_then_ && window <= 10 * kWindow && *idle - *idle_then_ >= window * 3 / 4;
    since_ = now;
    idle_then_ = idle;
    return answer_;
}

}  // namespace fornax::kernel
