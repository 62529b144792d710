// SharedTimeline: the words of a timeline in a file, where the devices of all processes see them.
//
// Whoever signals wakes the sleepers of all processes through a futex in the same page. Nobody
// notices when a process dies before it signals, as with semaphores of any driver.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/file.h"
#include "base/result.h"
#include "hal/timeline.h"

namespace fornax::hal {

class SharedTimeline {
  public:
    static Result<std::shared_ptr<SharedTimeline>> Create(uint64_t initial_value);
    // The file stays the caller's. kInvalidArgument when it is no timeline's.
    static Result<std::shared_ptr<SharedTimeline>> Import(int file);
    ~SharedTimeline();
    SharedTimeline(const SharedTimeline&) = delete;
    SharedTimeline& operator=(const SharedTimeline&) = delete;

    Timeline::Words& words() const { return page_->words; }
    int file() const { return file_.get(); }

    // Changes with every signal: to be read before the value, and slept on.
    const std::atomic<uint32_t>& sequence() const { return page_->sequence; }
    // After the value was changed.
    void Wake() const;

  private:
    struct Page {
        std::atomic<uint64_t> magic;
        Timeline::Words words;
        std::atomic<uint32_t> sequence;
    };
    static_assert(std::atomic<uint64_t>::is_always_lock_free);

    SharedTimeline(UniqueFd file, Page* page) : file_(std::move(file)), page_(page) {}
    static Result<std::shared_ptr<SharedTimeline>> Map(UniqueFd file);

    UniqueFd file_;
    Page* page_;
};

}  // namespace fornax::hal
