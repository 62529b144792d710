// Files read whole and written whole.
//
// Everything Fornax stores (plans, cache entries, reports) is written under a temporary name in the
// same directory and renamed, so that a reader never sees half of a file and a failed write leaves
// the old one. Nothing is synced to disk: after a power cut a file may be damaged, and its reader
// checks.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace fornax {

// Owns an open file descriptor.
class UniqueFd {
  public:
    UniqueFd() = default;
    explicit UniqueFd(int fd) : fd_(fd) {}
    ~UniqueFd() { Reset(); }
    UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    UniqueFd& operator=(UniqueFd&& other) noexcept {
        if (this != &other) {
            Reset();
            fd_ = std::exchange(other.fd_, -1);
        }
        return *this;
    }

    bool valid() const { return fd_ >= 0; }
    int get() const { return fd_; }
    void Reset();
    // Gives the descriptor up to the caller, who closes it.
    int Release() { return std::exchange(fd_, -1); }

  private:
    int fd_ = -1;
};

// The whole file. Fails with kNotFound, kIo, or kInvalidArgument for what is not a regular file or
// is larger than `limit_bytes`.
Result<std::vector<std::byte>> ReadFile(const std::string& path, size_t limit_bytes);
Result<std::string> ReadTextFile(const std::string& path, size_t limit_bytes);

// The rest of an open file from its position, `size_bytes` of it; kDataLoss if it ends earlier.
Status ReadExactly(int fd, std::span<std::byte> into, const std::string& path_for_messages);

// Replaces or creates `path` with the parts, one after the other, and mode bits `mode` (the
// process's umask is not applied). On failure `path` is as it was and no temporary file remains.
Status WriteFileAtomically(const std::string& path,
                           std::span<const std::span<const std::byte>> parts,
                           mode_t mode = 0644);
Status WriteFileAtomically(const std::string& path,
                           std::span<const std::byte> bytes,
                           mode_t mode = 0644);
Status WriteFileAtomically(const std::string& path, const std::string& text, mode_t mode = 0644);

// Creates the directory and its missing parents with mode bits `mode`; one that exists is success.
Status CreateDirectories(const std::string& path, mode_t mode);

// "No such file or directory", for the errno value; thread-safe.
std::string ErrnoMessage(int error);

}  // namespace fornax
