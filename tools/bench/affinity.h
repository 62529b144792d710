// Restricts this process, and those that it starts, to some of its processors.
#pragma once

#include <sched.h>

#include "base/result.h"

namespace fornax::bench {

// While it lives; the calling thread's choice comes back afterwards.
class ScopedAffinity {
  public:
    // The first `threads` processors that the process may use; 0 for all of them. An error if there
    // are fewer.
    static Result<ScopedAffinity> Create(int threads);
    ScopedAffinity(ScopedAffinity&& other) noexcept;
    ScopedAffinity& operator=(ScopedAffinity&&) = delete;
    ~ScopedAffinity();

  private:
    ScopedAffinity() = default;

    cpu_set_t previous_ = {};
    bool changed_ = false;
};

}  // namespace fornax::bench
