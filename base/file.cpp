// Whole-file reading and writing over the POSIX calls.
#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

namespace fornax {
namespace {

// A read or write of more than this is refused or split by Linux.
constexpr size_t kMaxTransferBytes = 0x7ffff000;

Error IoError(const std::string& path, const char* action, int error) {
    const ErrorCode code = error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
    return {code, fmt::format("{} cannot be {}: {}.", path, action, ErrnoMessage(error))};
}

using Parts = std::span<const std::span<const std::byte>>;

// In one call where the system takes it: file systems then lay large files out in huge pages, of
// which mappings profit.
Status WriteParts(int fd, Parts parts, const std::string& path) {
    std::vector<iovec> left;
    for (const auto& part : parts) {
        if (!part.empty()) {
            left.push_back({const_cast<std::byte*>(part.data()), part.size()});
        }
    }
    for (size_t first = 0; first < left.size();) {
        const size_t count = std::min<size_t>(left.size() - first, IOV_MAX);
        ssize_t written = ::writev(fd, &left[first], static_cast<int>(count));
        if (written < 0) {
            if (errno == EINTR) {
                continue;
            }
            if (errno == EAGAIN) {
                // A pipe or terminal that somebody made non-blocking.
                pollfd ready{.fd = fd, .events = POLLOUT, .revents = 0};
                ::poll(&ready, 1, -1);
                continue;
            }
            return IoError(path, "written", errno);
        }
        for (; first < left.size() && written > 0; ++first) {
            iovec& part = left[first];
            const size_t step = std::min(part.iov_len, static_cast<size_t>(written));
            part.iov_base = static_cast<std::byte*>(part.iov_base) + step;
            part.iov_len -= step;
            written -= static_cast<ssize_t>(step);
            if (part.iov_len != 0) {
                break;
            }
        }
    }
    return OkStatus();
}

// Beyond this limit the system sends SIGXFSZ, which ends a process that does not expect it.
Status CheckSizeLimit(const std::string& path, Parts parts) {
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
    return OkStatus();
}

// Creates a file beside `path` whose name is the path with ".tmp-" and six letters. The umask takes
// from its mode. Where the descriptor is not valid, errno tells why.
UniqueFd CreateTemporary(const std::string& path, mode_t mode, std::string* name) {
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz012345";
    for (int attempt = 0; attempt < 100; ++attempt) {
        std::array<uint8_t, 6> random;
        if (::getrandom(random.data(), random.size(), 0) != ssize_t{random.size()}) {
            break;
        }
        *name = path + ".tmp-";
        for (const uint8_t number : random) {
            *name += kLetters[number % kLetters.size()];
        }
        UniqueFd fd(::open(name->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
        if (fd.valid() || errno != EEXIST) {
            return fd;
        }
    }
    return {};
}

Status Close(UniqueFd fd, const std::string& path) {
    // Some file systems report a full disk only here.
    return ::close(fd.Release()) == 0 ? OkStatus() : Status(IoError(path, "written", errno));
}

// Closes the finished file and gives it its name.
Status Publish(UniqueFd fd, const std::string& temporary, const std::string& path) {
    FORNAX_RETURN_IF_ERROR(Close(std::move(fd), path));
    return ::rename(temporary.c_str(), path.c_str()) == 0
               ? OkStatus()
               : Status(IoError(path, "replaced", errno));
}

bool IsSameFile(const struct stat& a, const struct stat& b) {
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// The descriptor of this process that a path such as /dev/stdout or /dev/fd/3 stands for. Opening
// that path would open the file anew, from its beginning, or fail (a socket).
std::optional<int> OwnDescriptor(std::string path) {
    const UniqueFd folder_of_own(::open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC));
    struct stat own;
    if (!folder_of_own.valid() || ::fstat(folder_of_own.get(), &own) != 0) {
        return std::nullopt;
    }
    // /dev/stdout is a link to /proc/self/fd/1. That is a link, too, but not to follow.
    constexpr int kMaxLinks = 40;  // as in path_resolution(7)
    for (int links = 0; links < kMaxLinks; ++links) {
        const size_t slash = path.rfind('/');
        const std::string folder =
            slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
        const std::string_view name =
            slash == std::string::npos ? path : std::string_view(path).substr(slash + 1);
        struct stat info;
        if (::stat(folder.c_str(), &info) != 0) {
            return std::nullopt;
        }
        if (IsSameFile(info, own)) {
            int fd = -1;
            const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), fd);
            const bool whole = error == std::errc() && rest == name.data() + name.size();
            return whole ? std::optional(fd) : std::nullopt;
        }
        std::array<char, PATH_MAX> target;
        const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
        if (size <= 0) {
            return std::nullopt;
        }
        const std::string_view text(target.data(), static_cast<size_t>(size));
        path = text.front() == '/' ? std::string(text) : folder + "/" + std::string(text);
    }
    return std::nullopt;
}

// The path without links of the file that `path` leads to, if that is the one that `info` tells of.
std::optional<std::string> NameOf(const std::string& path, const struct stat& info) {
    const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
    struct stat found;
    if (!real || ::lstat(real.get(), &found) != 0 || !IsSameFile(info, found)) {
        return std::nullopt;
    }
    return real.get();
}

// Gives the new file what the old one has. False where something would be lost.
bool TakeOver(int fd, const std::string& old_path, const struct stat& old_info) {
    struct stat info;
    if (::fstat(fd, &info) != 0) {
        return false;
    }
    const bool other_owner = info.st_uid != old_info.st_uid || info.st_gid != old_info.st_gid;
    if (other_owner && ::fchown(fd, old_info.st_uid, old_info.st_gid) != 0) {
        return false;
    }
    // Where there is an access list, the mode does not say who may do what.
    return ::getxattr(old_path.c_str(), "system.posix_acl_access", nullptr, 0) < 0 &&
           ::fchmod(fd, old_info.st_mode & 0777) == 0;
}

// Whether the error says that a file may not be replaced, although it may be written: its folder
// may not be, it is another user's in a folder such as /tmp, or a mount point.
bool MayNotReplace(int error) {
    return error == EACCES || error == EPERM || error == EROFS || error == EBUSY ||
           error == ENAMETOOLONG;
}

// Writes into an open file: what another name, mount or owner stands for stays.
Status WriteInPlace(const std::string& path, int fd, Parts parts) {
    if (::ftruncate(fd, 0) != 0) {
        return IoError(path, "emptied", errno);
    }
    return WriteParts(fd, parts, path);
}

// A regular file that is open for writing.
Status WriteExisting(const std::string& path, int fd, const struct stat& info, Parts parts) {
    FORNAX_RETURN_IF_ERROR(CheckSizeLimit(path, parts));
    const std::optional<std::string> target = NameOf(path, info);
    if (!target) {
        return WriteInPlace(path, fd, parts);
    }
    std::string temporary;
    UniqueFd next = CreateTemporary(*target, 0600, &temporary);
    if (!next.valid()) {
        // The folder may not be written, but the file may. A full disk must leave the file alone.
        const int error = errno;
        return MayNotReplace(error) ? WriteInPlace(path, fd, parts)
                                    : Status(IoError(path, "replaced", error));
    }
    bool in_place = !TakeOver(next.get(), *target, info);
    Status status = OkStatus();
    if (!in_place) {
        status = WriteParts(next.get(), parts, path);
        if (status.ok()) {
            status = Close(std::move(next), path);
        }
        if (status.ok() && ::rename(temporary.c_str(), target->c_str()) == 0) {
            return status;
        }
        const int error = errno;
        in_place = status.ok() && MayNotReplace(error);
        if (status.ok() && !in_place) {
            status = IoError(path, "replaced", error);
        }
    }
    ::unlink(temporary.c_str());
    return in_place ? WriteInPlace(path, fd, parts) : status;
}

Status WriteNewFile(const std::string& path, Parts parts) {
    FORNAX_RETURN_IF_ERROR(CheckSizeLimit(path, parts));
    std::string temporary;
    UniqueFd fd = CreateTemporary(path, 0666, &temporary);
    if (!fd.valid()) {
        return IoError(path, "created", errno);
    }
    Status status = WriteParts(fd.get(), parts, path);
    if (status.ok()) {
        status = Publish(std::move(fd), temporary, path);
    }
    if (!status.ok()) {
        ::unlink(temporary.c_str());
    }
    return status;
}

template <typename Container>
Result<Container> ReadInto(const std::string& path, size_t limit_bytes) {
    FORNAX_ASSIGN_OR_RETURN(const OpenFile file, OpenRegular(path));
    const uint64_t size = file.size_bytes;
    if (size > limit_bytes) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{} has {} bytes; at most {} are read.", path, size, limit_bytes)};
    }
    Container contents;
    contents.resize(static_cast<size_t>(size));
    FORNAX_RETURN_IF_ERROR(
        ReadExactly(file.fd.get(), std::as_writable_bytes(std::span(contents)), path));
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

Result<OpenFile> OpenRegular(const std::string& path) {
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
    return OpenFile{std::move(fd), static_cast<uint64_t>(info.st_size)};
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

Result<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
    FORNAX_ASSIGN_OR_RETURN(const OpenFile file, OpenRegular(path));
    if (file.size_bytes == 0) {
        return std::make_shared<const MappedFile>(std::span<const std::byte>());
    }
    void* mapping = ::mmap(nullptr, file.size_bytes, PROT_READ, MAP_PRIVATE, file.fd.get(), 0);
    if (mapping == MAP_FAILED) {
        return IoError(path, "mapped", errno);
    }
    return std::make_shared<const MappedFile>(
        std::span(static_cast<const std::byte*>(mapping), file.size_bytes));
}

MappedFile::~MappedFile() {
    if (!bytes_.empty()) {
        ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
    }
}

Result<Hash128> HashFile(const std::string& path) {
    FORNAX_ASSIGN_OR_RETURN(const OpenFile file, OpenRegular(path));
    return HashFile(file.fd.get(), file.size_bytes, path);
}

Result<Hash128> HashFile(int fd, uint64_t size_bytes, const std::string& path) {
    constexpr uint64_t kPartBytes = 256 << 10;  // stays in the cache of a core
    std::vector<std::byte> part(std::min(size_bytes, kPartBytes));
    ByteHasher hasher;
    while (size_bytes != 0) {
        const std::span<std::byte> next(part.data(), std::min<uint64_t>(size_bytes, part.size()));
        FORNAX_RETURN_IF_ERROR(ReadExactly(fd, next, path));
        hasher.Append(next);
        size_bytes -= next.size();
    }
    return hasher.Finish();
}

Result<std::string> ReadTextFile(const std::string& path, size_t limit_bytes) {
    return ReadInto<std::string>(path, limit_bytes);
}

Status WriteFileAtomically(const std::string& path, Parts parts, mode_t mode) {
    FORNAX_RETURN_IF_ERROR(CheckSizeLimit(path, parts));
    std::string temporary;
    UniqueFd fd = CreateTemporary(path, 0600, &temporary);
    if (!fd.valid()) {
        return IoError(path, "created", errno);
    }
    Status status = WriteParts(fd.get(), parts, path);
    if (status.ok() && ::fchmod(fd.get(), mode) != 0) {
        status = IoError(path, "given its mode", errno);
    }
    if (status.ok()) {
        status = Publish(std::move(fd), temporary, path);
    }
    if (!status.ok()) {
        ::unlink(temporary.c_str());
    }
    return status;
}

Status WriteFileAtomically(const std::string& path, std::span<const std::byte> bytes, mode_t mode) {
    return WriteFileAtomically(path, Parts(&bytes, 1), mode);
}

Status WriteFileAtomically(const std::string& path, const std::string& text, mode_t mode) {
    return WriteFileAtomically(path, std::as_bytes(std::span(text)), mode);
}

Status WriteOutputFile(const std::string& path, std::span<const std::byte> bytes) {
    const Parts parts(&bytes, 1);
    if (const std::optional<int> own = OwnDescriptor(path)) {
        std::fflush(stdout);  // what was printed before comes first
        return WriteParts(*own, parts, path);
    }
    // What may be written, which links may be followed and where they lead is for the system to
    // say, so the file is opened as it would be to write into it.
    constexpr int kFlags = O_WRONLY | O_CLOEXEC | O_NOCTTY;
    UniqueFd fd(::open(path.c_str(), kFlags));
    bool created = false;
    if (!fd.valid() && errno == ENOENT) {
        struct stat link;
        if (::lstat(path.c_str(), &link) != 0) {
            return WriteNewFile(path, parts);
        }
        // A link to what does not exist yet.
        fd = UniqueFd(::open(path.c_str(), kFlags | O_CREAT, 0666));
        created = fd.valid();
    }
    if (!fd.valid()) {
        struct stat info;
        if (errno == ENXIO && ::stat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode)) {
            return Error{ErrorCode::kIo,
                         fmt::format("{} cannot be written: it is a socket.", path)};
        }
        return IoError(path, "written", errno);
    }
    struct stat info;
    if (::fstat(fd.get(), &info) != 0) {
        return IoError(path, "written", errno);
    }
    if (!S_ISREG(info.st_mode)) {
        return WriteParts(fd.get(), parts, path);
    }
    const Status status = WriteExisting(path, fd.get(), info, parts);
    if (!status.ok() && created) {
        if (const std::optional<std::string> target = NameOf(path, info)) {
            ::unlink(target->c_str());
        }
    }
    return status;
}

Status WriteOutputFile(const std::string& path, const std::string& text) {
    return WriteOutputFile(path, std::as_bytes(std::span(text)));
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
