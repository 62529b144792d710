// Whether the machine has a processor to spare.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace fornax::kernel {

// The time for which the machine's processors, all together, have done nothing since it started,
// from the first line of /proc/stat (proc_stat(5): idle and iowait); nothing for other text.
std::optional<std::chrono::milliseconds> ParseIdleTime(const std::string& proc_stat);

// Watches the machine from call to call. For one thread.
class IdleProcessors {
  public:
    // What an answer looks back on is at least this; the system counts in steps of 10 ms.
    static constexpr std::chrono::milliseconds kWindow{200};

    // Whether one processor, or several in sum, did nothing in three quarters of the time since an
    // earlier call. False as long as no call is kWindow old, and after a pause of ten of them; true
    // where the system does not tell.
    bool Any();

  private:
    std::chrono::steady_clock::time_point since_;
    std::optional<std::chrono::milliseconds> idle_then_;
    bool answer_ = false;
};

}  // namespace fornax::kernel
