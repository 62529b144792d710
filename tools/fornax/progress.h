// An indicator of progress on a terminal: one line of standard error, gone when the work is done.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fornax::tool {

// Shows nothing if standard error is no terminal. Not thread-safe.
class ProgressLine {
  public:
    ProgressLine();
    ~ProgressLine();
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;

    // A bar if `total` is not 0.
    void Show(std::string_view stage, size_t done, size_t total);

  private:
    bool is_terminal_ = false;
    std::string shown_;
};

// "making kernels [#####-----] 5/10".
std::string ProgressText(std::string_view stage, size_t done, size_t total);

}  // namespace fornax::tool
