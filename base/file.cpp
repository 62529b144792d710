// Whole-file reading and atomic writing over the POSIX calls.
#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace fornax {
namespace {

// A read or write of more than this is refused or split by Linux.
constexpr size_t kMaxTransferBytes = 0x7ffff000;

Error IoError(const std::string& path, const char* action, int error) {
    const ErrorCode code = error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
    return {code, fmt::format("{} cannot be {}: {}.", path, action, ErrnoMessage(error))};
}

Status WriteAll(int fd, std::span<const std::byte> bytes, const std::string& path) {
    while (!bytes.empty()) {
        const ssize_t count = ::write(fd, bytes.data(), std::min(bytes.size(), kMaxTransferBytes));
        if (count < 0) {
            if (errno == EINTR) {
                continue;
            }
            return IoError(path, "written", errno);
        }
        bytes = bytes.subspan(static_cast<size_t>(count));
    }
    return OkStatus();
}

template <typename Container>
Result<Container> ReadInto(const std::string& path, size_t limit_bytes) {
    // O_NONBLOCK: opening a pipe must not wait for a writer before it is refused.
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!fd.valid()) {
        return IoError(path, "opened", errno);
    }
    struct stat info;
    if (::fstat(fd.get(), &info) != 0) {
        return IoError(path, "read", errno);
    }
    if (!S_ISREG(info.st_mode)) {
        return Error{ErrorCode::kInvalidArgument, fmt::format("{} is not a regular file.", path)};
    }
    const auto size = static_cast<uint64_t>(info.st_size);
    if (size > limit_bytes) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{} has {} bytes; at most {} are read.", path, size, limit_bytes)};
    }
    Container contents;
    contents.resize(static_cast<size_t>(size));
    FORNAX_RETURN_IF_ERROR(
        ReadExactly(fd.get(), std::as_writable_bytes(std::span(contents)), path));
    return contents;
}

}  // namespace

void UniqueFd::Reset() {
    if (fd_ >= 0) {
        ::close(fd_);
    }
    fd_ = -1;
}

std::string ErrnoMessage(int error) {
    return std::generic_category().message(error);
}

Status ReadExactly(int fd, std::span<std::byte> into, const std::string& path_for_messages) {
    const size_t size = into.size();
    while (!into.empty()) {
        const ssize_t count = ::read(fd, into.data(), std::min(into.size(), kMaxTransferBytes));
        if (count < 0) {
            if (errno == EINTR) {
                continue;
            }
            return IoError(path_for_messages, "read", errno);
        }
        if (count == 0) {
            return Error{ErrorCode::kDataLoss,
                         fmt::format("{} ends {} bytes before the {} expected.", path_for_messages,
                                     into.size(), size)};
        }
        into = into.subspan(static_cast<size_t>(count));
    }
    return OkStatus();
}

Result<std::vector<std::byte>> ReadFile(const std::string& path, size_t limit_bytes) {
    return ReadInto<std::vector<std::byte>>(path, limit_bytes);
}

Result<std::string> ReadTextFile(const std::string& path, size_t limit_bytes) {
    return ReadInto<std::string>(path, limit_bytes);
}

Status WriteFileAtomically(const std::string& path,
                           std::span<const std::span<const std::byte>> parts,
                           mode_t mode) {
    // Beyond this limit the system sends SIGXFSZ, which ends a process that does not expect it.
    uint64_t size_bytes = 0;
    for (const auto& part : parts) {
        size_bytes += part.size();
    }
    rlimit limit;
    if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        size_bytes > limit.rlim_cur) {
        return Error{
            ErrorCode::kIo,
            fmt::format(
                "{} cannot be written: it would have {} bytes, and this process may write {}.",
                path, size_bytes, limit.rlim_cur)};
    }

    std::string temporary = path + ".tmp-XXXXXX";
    UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
    if (!fd.valid()) {
        return IoError(path, "created", errno);
    }

    Status status = OkStatus();
    for (const auto& part : parts) {
        status = WriteAll(fd.get(), part, path);
        if (!status.ok()) {
            break;
        }
    }
    if (status.ok() && ::fchmod(fd.get(), mode) != 0) {
        status = IoError(path, "given its mode", errno);
    }
    // Some file systems report a full disk only here.
    if (::close(fd.Release()) != 0 && status.ok()) {
        status = IoError(path, "written", errno);
    }
    if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) {
        status = IoError(path, "replaced", errno);
    }
    if (!status.ok()) {
        ::unlink(temporary.c_str());
    }
    return status;
}

Status WriteFileAtomically(const std::string& path, std::span<const std::byte> bytes, mode_t mode) {
    return WriteFileAtomically(path, std::span(&bytes, 1), mode);
}

Status WriteFileAtomically(const std::string& path, const std::string& text, mode_t mode) {
    return WriteFileAtomically(path, std::as_bytes(std::span(text)), mode);
}

Status CreateDirectories(const std::string& path, mode_t mode) {
    for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
        const std::string part = path.substr(0, end);
        if (::mkdir(part.c_str(), mode) != 0 && errno != EEXIST) {
            const int error = errno;
            // A parent that exists but may not be written to (or is on a read-only disk) is no
            // obstacle.
            struct stat info;
            if (::stat(part.c_str(), &info) != 0) {
                return IoError(part, "created", error);
            }
        }
        if (end == std::string::npos) {
            break;
        }
    }
    struct stat info;
    if (::stat(path.c_str(), &info) != 0) {
        return IoError(path, "created", errno);
    }
    if (!S_ISDIR(info.st_mode)) {
        return Error{ErrorCode::kIo, fmt::format("{} is not a directory.", path)};
    }
    return OkStatus();
}

}  // namespace fornax
