// Anonymous files with seals.
#include "hal/support/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace fornax::hal {

namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

Error SystemError(ErrorCode code, const std::string& what) {
    return Error{code, fmt::format("{}: {}.", what, std::strerror(errno))};
}

Result<UniqueFd> CreateSharedFile(const char* what, uint64_t size_bytes) {
    UniqueFd file(memfd_create(what, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (file.get() < 0) {
        return SystemError(ErrorCode::kOutOfHostMemory, "The system gives no file to share");
    }
    if (ftruncate(file.get(), static_cast<off_t>(size_bytes)) != 0 ||
        fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) {
        return SystemError(ErrorCode::kOutOfDeviceMemory,
                           fmt::format("A shared file cannot have {} bytes", size_bytes));
    }
    return file;
}

Status CheckSharedFile(int file, uint64_t size_bytes) {
    struct stat status;
    if (fstat(file, &status) != 0) {
        return SystemError(ErrorCode::kInvalidArgument, "The imported file is none");
    }
    const int seals = fcntl(file, F_GET_SEALS);
    if (seals < 0 || (seals & kSeals) != kSeals) {
        return Error{ErrorCode::kInvalidArgument,
                     "The imported file was not exported by a device of this driver."};
    }
    if (static_cast<uint64_t>(status.st_size) < size_bytes) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{} bytes are to be imported of a file that has {}.", size_bytes,
                                 status.st_size)};
    }
    return OkStatus();
}

Result<UniqueFd> DuplicateFile(int file) {
    UniqueFd copy(fcntl(file, F_DUPFD_CLOEXEC, 0));
    if (copy.get() < 0) {
        return SystemError(
            errno == EBADF ? ErrorCode::kInvalidArgument : ErrorCode::kOutOfHostMemory,
            "A file cannot be opened once more");
    }
    return copy;
}

}  // namespace fornax::hal
