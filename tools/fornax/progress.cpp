// Overwrites its line.
#include "tools/fornax/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

namespace fornax::tool {

std::string ProgressText(std::string_view stage, size_t done, size_t total) {
    if (total == 0) {
        return fmt::format("{} ...", stage);
    }
    constexpr size_t kWidth = 30;
    const size_t filled = std::min(done, total) * kWidth / total;
    return fmt::format("{} [{:#<{}}{:-<{}}] {}/{}", stage, "", filled, "", kWidth - filled, done,
                       total);
}

ProgressLine::ProgressLine() : is_terminal_(::isatty(STDERR_FILENO) != 0) {}

ProgressLine::~ProgressLine() {
    if (!shown_.empty()) {
        fmt::print(stderr, "\r\033[K");
        std::fflush(stderr);
    }
}

void ProgressLine::Show(std::string_view stage, size_t done, size_t total) {
    std::string text = ProgressText(stage, done, total);
    if (is_terminal_ && text != shown_) {
        fmt::print(stderr, "\r\033[K{}", text);
        std::fflush(stderr);
        shown_ = std::move(text);
    }
}

}  // namespace fornax::tool
