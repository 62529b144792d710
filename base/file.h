// Files read whole and written whole.
//
// Files are written under a temporary name in the same directory and renamed, so that a reader
// never sees half of a file and a failed write leaves the old one. Files that a user named may be
// something else than plain files, and then are written as any program would. Nothing is synced to
// disk: after a power cut a file may be damaged, and its reader checks.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
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

struct OpenFile {
    UniqueFd fd;
    uint64_t size_bytes = 0;
};

// A file to read from. Fails with kNotFound, kIo, or kInvalidArgument for what is not a regular
// file.
Result<OpenFile> OpenRegular(const std::string& path);

// The whole file. Fails with kNotFound, kIo, or kInvalidArgument for what is not a regular file or
// is larger than `limit_bytes`.
Result<std::vector<std::byte>> ReadFile(const std::string& path, size_t limit_bytes);
Result<std::string> ReadTextFile(const std::string& path, size_t limit_bytes);

// HashBytes() of the whole file, of which no more than a small part is in memory at a time. Fails
// as ReadFile().
Result<Hash128> HashFile(const std::string& path);
// The same of the next `size_bytes` of an open file; kDataLoss if it ends earlier.
Result<Hash128> HashFile(int fd, uint64_t size_bytes, const std::string& path_for_messages);

// A file in memory, read-only, without reading it. Overwriting the file in place changes the bytes,
// and shortening it makes reading them a fault; replacing it by another of its name does neither.
class MappedFile {
  public:
    // Fails with kNotFound, kIo, or kInvalidArgument for what is not a regular file.
    static Result<std::shared_ptr<const MappedFile>> Open(const std::string& path);
    explicit MappedFile(std::span<const std::byte> mapping) : bytes_(mapping) {}
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    // Begins with a page.
    std::span<const std::byte> bytes() const { return bytes_; }

  private:
    const std::span<const std::byte> bytes_;
};

// The rest of an open file from its position, `size_bytes` of it; kDataLoss if it ends earlier.
Status ReadExactly(int fd, std::span<std::byte> into, const std::string& path_for_messages);

// For files that Fornax itself names, those of the cache: replaces or creates `path` with the
// parts, one after the other, and mode bits `mode` (the process's umask is not applied). Whatever
// was there goes, links and read-only files included. On failure `path` is as it was and no
// temporary file remains.
Status WriteFileAtomically(const std::string& path,
                           std::span<const std::span<const std::byte>> parts,
                           mode_t mode);
Status WriteFileAtomically(const std::string& path, std::span<const std::byte> bytes, mode_t mode);
Status WriteFileAtomically(const std::string& path, const std::string& text, mode_t mode);

// For files that a user named, such as `fornax compile -o FILE`.
// - A new file has the mode that the process's umask leaves of 0666.
// - A file that exists must be writable for the process. It is replaced with its mode, owner and
//   group, and a failed write leaves it as it was. Its other hard links keep the old contents: they
//   may be somebody's copy. Where the file cannot be replaced without a loss (its directory may not
//   be written, it is a mount point, its owner or access list would be lost), it is overwritten
//   instead, and a failed write damages it.
// - A symbolic link stays, and what it leads to is written so. If that does not exist, it is
//   created.
// - Devices and pipes are written into; the latter wait for a reader. So are /dev/stdout and
//   /dev/fd/N, from where that descriptor stands. Directories and sockets are refused.
Status WriteOutputFile(const std::string& path, std::span<const std::byte> bytes);
Status WriteOutputFile(const std::string& path, const std::string& text);

// Creates the directory and its missing parents with mode bits `mode`; one that exists is success.
Status CreateDirectories(const std::string& path, mode_t mode);

// "No such file or directory", for the errno value; thread-safe.
std::string ErrnoMessage(int error);

}  // namespace fornax
