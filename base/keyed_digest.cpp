// The per-user secret file and the keyed digest of keyed_digest.h.
#include "base/keyed_digest.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"
#include "base/log.h"

namespace fornax {
namespace {

static_assert(std::tuple_size_v<KeyedDigest> >= crypto_generichash_BYTES_MIN &&
              std::tuple_size_v<KeyedDigest> <= crypto_generichash_BYTES_MAX);
static_assert(sizeof(UserSecret) >= crypto_generichash_KEYBYTES_MIN &&
              sizeof(UserSecret) <= crypto_generichash_KEYBYTES_MAX);

const unsigned char* AsUnsigned(const std::byte* bytes) {
    return reinterpret_cast<const unsigned char*>(bytes);
}

// Fails with kNotFound if there is none and with kDataLoss if it is ours but must be replaced.
Result<UserSecret> Load(const std::string& path) {
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd.valid()) {
        const ErrorCode code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
        return Error{code, fmt::format("{} cannot be opened: {}.", path, ErrnoMessage(errno))};
    }
    struct stat info;
    if (::fstat(fd.get(), &info) != 0) {
        return Error{ErrorCode::kIo,
                     fmt::format("{} cannot be read: {}.", path, ErrnoMessage(errno))};
    }
    if (!S_ISREG(info.st_mode) || info.st_uid != ::geteuid()) {
        return Error{ErrorCode::kIo,
                     fmt::format("{} is not a regular file of user {}.", path, ::geteuid())};
    }
    if ((info.st_mode & 077) != 0) {
        return Error{ErrorCode::kDataLoss, fmt::format("{} is open to other users (mode {:o}).",
                                                       path, info.st_mode & 07777)};
    }
    UserSecret secret;
    if (info.st_size != static_cast<off_t>(secret.bytes.size())) {
        return Error{ErrorCode::kDataLoss, fmt::format("{} has {} bytes instead of {}.", path,
                                                       info.st_size, secret.bytes.size())};
    }
    FORNAX_RETURN_IF_ERROR(ReadExactly(fd.get(), secret.bytes, path));
    return secret;
}

// Creates the file with a fresh secret unless there is one by then.
Status Create(const std::string& path) {
    UserSecret secret;
    ::randombytes_buf(secret.bytes.data(), secret.bytes.size());
    // Written under its own name first, then linked: unlike rename, link does not replace a secret
    // that another process has made (and used) in the meantime.
    const std::string own_path =
        fmt::format("{}.{}-{:08x}", path, ::getpid(), ::randombytes_random());
    FORNAX_RETURN_IF_ERROR(WriteFileAtomically(own_path, secret.bytes, 0600));
    const int link_error = ::link(own_path.c_str(), path.c_str()) == 0 ? 0 : errno;
    ::unlink(own_path.c_str());
    if (link_error != 0 && link_error != EEXIST) {
        return Error{ErrorCode::kIo,
                     fmt::format("{} cannot be created: {}.", path, ErrnoMessage(link_error))};
    }
    return OkStatus();
}

}  // namespace

Result<UserSecret> LoadOrCreateUserSecret(const std::string& directory) {
    if (::sodium_init() < 0) {
        return Error{ErrorCode::kInternal, "libsodium cannot be initialised."};
    }
    const std::string path = directory + "/" + kUserSecretFileName;
    Result<UserSecret> loaded = Load(path);
    if (loaded.ok()) {
        return loaded;
    }
    if (loaded.error().code == ErrorCode::kDataLoss) {
        LogWarning("{} It is replaced; compiled kernels in the cache are compiled again.",
                   loaded.error().message);
        ::unlink(path.c_str());
    } else if (loaded.error().code != ErrorCode::kNotFound) {
        return loaded;
    }
    FORNAX_RETURN_IF_ERROR(Create(path));
    return Load(path);
}

KeyedDigest ComputeKeyedDigest(const UserSecret& secret,
                               std::span<const std::span<const std::byte>> parts) {
    KeyedDigest digest;
    crypto_generichash_state state;
    ::crypto_generichash_init(&state, AsUnsigned(secret.bytes.data()), secret.bytes.size(),
                              digest.size());
    for (const auto& part : parts) {
        ::crypto_generichash_update(&state, AsUnsigned(part.data()), part.size());
    }
    ::crypto_generichash_final(&state, reinterpret_cast<unsigned char*>(digest.data()),
                               digest.size());
    return digest;
}

bool SameDigest(const KeyedDigest& a, const KeyedDigest& b) {
    return ::sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace fornax
