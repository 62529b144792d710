// The cache directory's files: naming, the header of an entry, and the checks on the way in and
// out.
#include "base/disk_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <utility>

#include "base/environment.h"
#include "base/file.h"
#include "base/log.h"

namespace fornax {
namespace {

constexpr std::array<char, 8> kMagic = {'F', 'R', 'N', 'X', 'C', 'A', 'C', 'H'};
constexpr uint32_t kHeaderVersion = 1;
constexpr uint64_t kMaxPayloadBytes = uint64_t{2} << 30;
constexpr uint64_t kPageBytes = 4096;
constexpr std::string_view kTemporaryMark = ".tmp-";  // of WriteFileAtomically
constexpr size_t kTemporaryRandomLetters = 6;
constexpr uint64_t kBytesBetweenTrims = 16 << 20;
constexpr std::time_t kUseGranularitySeconds = 3600;

// The first bytes of an entry, in the host's byte order: entries do not travel between machines.
struct EntryHeader {
    std::array<char, 8> magic = kMagic;
    uint32_t header_version = kHeaderVersion;
    uint32_t payload_version = 0;
    uint64_t key_high = 0;
    uint64_t key_low = 0;
    uint64_t payload_bytes = 0;
    uint64_t digest_high = 0;  // XXH3-128 of the payload
    uint64_t digest_low = 0;
    KeyedDigest keyed_digest = {};  // zero in kinds that are not executable
};
static_assert(sizeof(EntryHeader) == 88 && std::has_unique_object_representations_v<EntryHeader>);

uint64_t PayloadOffset(const CacheKind& kind) {
    return kind.mapped ? kPageBytes : sizeof(EntryHeader);
}

std::span<const std::byte> BytesOf(const EntryHeader& header) {
    return std::as_bytes(std::span(&header, 1));
}

bool IsNamePart(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    });
}

std::string EntryFileName(const CacheKind& kind, const Hash128& key) {
    assert(IsNamePart(kind.name) && IsNamePart(kind.extension));
    return fmt::format("{}-{}.{}", kind.name, key.ToHex(), kind.extension);
}

// The inverse of EntryFileName; nothing for names that are not ours.
std::optional<CacheEntry> ParseEntryFileName(std::string_view name) {
    const size_t dash = name.find('-');
    const size_t dot = name.find('.');
    if (dash == std::string_view::npos || dot == std::string_view::npos || dot < dash) {
        return std::nullopt;
    }
    const auto key = Hash128::FromHex(name.substr(dash + 1, dot - dash - 1));
    if (!key || !IsNamePart(name.substr(0, dash)) || !IsNamePart(name.substr(dot + 1))) {
        return std::nullopt;
    }
    return CacheEntry{
        .file_name = std::string(name), .kind = std::string(name.substr(0, dash)), .key = *key};
}

// Whether the name is what WriteFileAtomically gives an entry before the rename.
bool IsTemporaryOfEntry(std::string_view name) {
    const size_t mark = name.rfind(kTemporaryMark);
    return mark != std::string_view::npos &&
           name.size() - mark == kTemporaryMark.size() + kTemporaryRandomLetters &&
           ParseEntryFileName(name.substr(0, mark)).has_value();
}

// What the keyed digest covers: the name (so that an entry cannot serve as another), the header
// with the digest's own field zero, and the payload.
KeyedDigest SignEntry(const UserSecret& secret,
                      const std::string& file_name,
                      EntryHeader header,
                      std::span<const std::byte> payload) {
    header.keyed_digest = {};
    const std::span<const std::byte> parts[] = {std::as_bytes(std::span(file_name)),
                                                BytesOf(header), payload};
    return ComputeKeyedDigest(secret, parts);
}

bool OwnedAndPrivate(const struct stat& info) {
    return S_ISREG(info.st_mode) && info.st_uid == ::geteuid() && (info.st_mode & 022) == 0;
}

// Opens an entry that is safe to read: not through a link, a regular file of this user that no one
// else may write to. The file's data is `info`.
Result<UniqueFd> OpenOwned(const std::string& path, struct stat* info) {
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd.valid()) {
        const ErrorCode code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
        return Error{code, fmt::format("{} cannot be opened: {}.", path, ErrnoMessage(errno))};
    }
    if (::fstat(fd.get(), info) != 0) {
        return Error{ErrorCode::kIo,
                     fmt::format("{} cannot be read: {}.", path, ErrnoMessage(errno))};
    }
    if (!OwnedAndPrivate(*info)) {
        return Error{ErrorCode::kIo,
                     fmt::format("{} is not a regular file that only user {} may write to.", path,
                                 ::geteuid())};
    }
    return fd;
}

// Whether the file is empty or begins as our entries do.
bool HasOurMagic(const std::string& path, bool accept_empty) {
    struct stat info;
    Result<UniqueFd> fd = OpenOwned(path, &info);
    if (!fd.ok()) {
        return false;
    }
    if (info.st_size == 0) {
        return accept_empty;
    }
    std::array<char, kMagic.size()> magic;
    return ReadExactly(fd->get(), std::as_writable_bytes(std::span(magic)), path).ok() &&
           magic == kMagic;
}

// The names in a directory, sorted; empty if it cannot be read.
std::vector<std::string> FileNames(const std::string& directory) {
    std::vector<std::string> names;
    if (directory.empty()) {
        return names;
    }
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(directory.c_str()), ::closedir);
    if (!stream) {
        return names;
    }
    while (const dirent* item = ::readdir(stream.get())) {
        names.emplace_back(item->d_name);
    }
    std::sort(names.begin(), names.end());
    return names;
}

// A directory in a place that everyone may write to: it is used only if nobody else can have made
// it.
Result<std::string> PrivateTemporaryDirectory() {
    const std::string path =
        fmt::format("{}/fornax-{}", EnvironmentText("TMPDIR").value_or("/tmp"), ::geteuid());
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
        return Error{ErrorCode::kIo,
                     fmt::format("{} cannot be created: {}.", path, ErrnoMessage(errno))};
    }
    struct stat info;
    if (::lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() ||
        (info.st_mode & 077) != 0) {
        return Error{
            ErrorCode::kIo,
            fmt::format("{} is not a directory of user {} alone (mode 0700).", path, ::geteuid())};
    }
    return path;
}

}  // namespace

Result<std::string> CacheDirectory() {
    if (auto chosen = EnvironmentText("FORNAX_CACHE_DIR")) {
        FORNAX_RETURN_IF_ERROR(CreateDirectories(*chosen, 0700));
        return *chosen;
    }
    std::vector<std::string> candidates;
    // The XDG specification has relative paths ignored.
    if (auto xdg = EnvironmentText("XDG_CACHE_HOME"); xdg && xdg->front() == '/') {
        candidates.push_back(*xdg + "/fornax");
    }
    if (auto home = EnvironmentText("HOME"); home && home->front() == '/') {
        candidates.push_back(*home + "/.cache/fornax");
    }
    for (const std::string& candidate : candidates) {
        const Status status = CreateDirectories(candidate, 0700);
        if (status.ok() && ::access(candidate.c_str(), W_OK | X_OK) == 0) {
            return candidate;
        }
        LogInfo("{} is not used for the cache: {}", candidate,
                status.ok() ? "it is not writable." : status.error().message);
    }
    return PrivateTemporaryDirectory();
}

uint64_t CacheLimitBytes() {
    constexpr uint64_t kDefaultMib = 4096;
    constexpr NumberLimits kLimits = {.least = 0, .most = UINT32_MAX};
    const Result<uint64_t> mib = EnvironmentNumber("FORNAX_CACHE_MIB", kLimits, kDefaultMib);
    if (!mib.ok()) {
        LogWarningOnce("FORNAX_CACHE_MIB", "{} The cache may take {} MiB.", mib.error().message,
                       kDefaultMib);
    }
    return (mib.ok() ? *mib : kDefaultMib) << 20;
}

// Many short processes write little each, so each begins somewhere between two looks at the whole.
DiskCache::DiskCache(std::string directory, uint64_t limit_bytes)
    : directory_(std::move(directory)), limit_bytes_(limit_bytes) {
    if (limit_bytes_ >= kBytesBetweenTrims) {
        written_bytes_ = std::random_device()() % kBytesBetweenTrims;
    }
}

DiskCache DiskCache::OpenDefault() {
    Result<std::string> directory = CacheDirectory();
    if (!directory.ok()) {
        LogWarningOnce(directory.error().message,
                       "There is no cache directory, so nothing compiled is kept: {}",
                       directory.error().message);
        return DiskCache(std::string());
    }
    return DiskCache(*directory);
}

std::optional<std::vector<std::byte>> DiskCache::Get(const CacheKind& kind, const Hash128& key) {
    if (directory_.empty()) {
        return std::nullopt;
    }
    const std::string file_name = EntryFileName(kind, key);
    const char* check = "";
    Result<std::vector<std::byte>> payload = Load(kind, key, file_name, &check);
    if (payload.ok()) {
        return std::move(payload).value();
    }
    Report(payload.error(), file_name, check);
    return std::nullopt;
}

std::optional<MappedPayload> DiskCache::Map(const CacheKind& kind, const Hash128& key) {
    assert(kind.mapped && !kind.executable);
    if (directory_.empty()) {
        return std::nullopt;
    }
    const std::string file_name = EntryFileName(kind, key);
    const char* check = "";
    Result<MappedPayload> payload = LoadMapped(kind, key, file_name, &check);
    if (payload.ok()) {
        return std::move(payload).value();
    }
    Report(payload.error(), file_name, check);
    return std::nullopt;
}

void DiskCache::Report(const Error& error, const std::string& file_name, const char* check) {
    const std::string cause = fmt::format("{} {}", directory_, check);
    switch (error.code) {
        case ErrorCode::kNotFound:
            break;
        case ErrorCode::kUnsupported:
            LogDebug("{}", error.message);
            break;
        case ErrorCode::kDataLoss:
            LogWarningOnce(cause, "{} The entry is removed and made again.", error.message);
            ::unlink(Path(file_name).c_str());
            break;
        default:
            LogWarningOnce(cause, "{} The entry is ignored.", error.message);
    }
}

struct DiskCache::OpenEntry {
    UniqueFd fd;  // at the payload
    EntryHeader header;
    std::string path;
};

Result<DiskCache::OpenEntry> DiskCache::Open(const CacheKind& kind,
                                             const Hash128& key,
                                             const std::string& file_name,
                                             const char** check) {
    const std::string path = Path(file_name);
    struct stat info;
    *check = "owner";
    FORNAX_ASSIGN_OR_RETURN(UniqueFd fd, OpenOwned(path, &info));

    EntryHeader header;
    *check = "contents";
    FORNAX_RETURN_IF_ERROR(
        ReadExactly(fd.get(), std::as_writable_bytes(std::span(&header, 1)), path));
    if (header.magic != kMagic) {
        return Error{ErrorCode::kDataLoss, fmt::format("{} is not a cache entry.", path)};
    }
    if (header.header_version != kHeaderVersion || header.payload_version != kind.version) {
        return Error{
            ErrorCode::kUnsupported,
            fmt::format("{} is of format {}.{}; {}.{} is wanted.", path, header.header_version,
                        header.payload_version, kHeaderVersion, kind.version)};
    }
    if (Hash128{header.key_high, header.key_low} != key) {
        return Error{ErrorCode::kDataLoss, fmt::format("{} was stored under another key.", path)};
    }
    const uint64_t offset = PayloadOffset(kind);
    if (static_cast<uint64_t>(info.st_size) < offset ||
        ::lseek(fd.get(), static_cast<off_t>(offset), SEEK_SET) < 0) {
        return Error{ErrorCode::kDataLoss, fmt::format("{} ends before its payload.", path)};
    }
    const uint64_t stored_bytes = static_cast<uint64_t>(info.st_size) - offset;
    if (header.payload_bytes != stored_bytes || stored_bytes > kMaxPayloadBytes) {
        return Error{ErrorCode::kDataLoss, fmt::format("{} has {} bytes of payload instead of {}.",
                                                       path, stored_bytes, header.payload_bytes)};
    }

    // It is used. Whether that can be written down does not matter.
    if (std::time(nullptr) - info.st_mtime > kUseGranularitySeconds) {
        ::futimens(fd.get(), nullptr);
    }
    return OpenEntry{std::move(fd), header, path};
}

Result<std::vector<std::byte>> DiskCache::Load(const CacheKind& kind,
                                               const Hash128& key,
                                               const std::string& file_name,
                                               const char** check) {
    FORNAX_ASSIGN_OR_RETURN(const OpenEntry entry, Open(kind, key, file_name, check));
    const EntryHeader& header = entry.header;
    std::vector<std::byte> payload(header.payload_bytes);
    FORNAX_RETURN_IF_ERROR(ReadExactly(entry.fd.get(), payload, entry.path));
    if (HashBytes(payload) != Hash128{header.digest_high, header.digest_low}) {
        return Error{ErrorCode::kDataLoss,
                     fmt::format("{} is damaged: its digest differs.", entry.path)};
    }
    KeyedDigest expected = {};
    *check = "keyed digest";
    if (kind.executable) {
        FORNAX_ASSIGN_OR_RETURN(const UserSecret secret, Secret());
        expected = SignEntry(secret, file_name, header, payload);
    }
    if (!SameDigest(header.keyed_digest, expected)) {
        return Error{ErrorCode::kDataLoss, fmt::format("{} does not prove that user {} wrote it.",
                                                       entry.path, ::geteuid())};
    }
    return payload;
}

Result<MappedPayload> DiskCache::LoadMapped(const CacheKind& kind,
                                            const Hash128& key,
                                            const std::string& file_name,
                                            const char** check) {
    FORNAX_ASSIGN_OR_RETURN(const OpenEntry entry, Open(kind, key, file_name, check));
    const EntryHeader& header = entry.header;
    // Read, not through the mapping, so that its pages take no memory before they are used.
    FORNAX_ASSIGN_OR_RETURN(const Hash128 digest,
                            HashFile(entry.fd.get(), header.payload_bytes, entry.path));
    if (digest != Hash128{header.digest_high, header.digest_low}) {
        return Error{ErrorCode::kDataLoss,
                     fmt::format("{} is damaged: its digest differs.", entry.path)};
    }
    const size_t size_bytes = PayloadOffset(kind) + header.payload_bytes;
    void* mapping = ::mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, entry.fd.get(), 0);
    if (mapping == MAP_FAILED) {
        return Error{ErrorCode::kIo,
                     fmt::format("{} cannot be mapped: {}.", entry.path, ErrnoMessage(errno))};
    }
    const std::span bytes(static_cast<const std::byte*>(mapping), size_bytes);
    return MappedPayload{bytes.subspan(PayloadOffset(kind)),
                         std::make_shared<const MappedFile>(bytes)};
}

bool DiskCache::Put(const CacheKind& kind, const Hash128& key, std::span<const std::byte> payload) {
    if (directory_.empty()) {
        return false;  // whoever found no directory has warned
    }
    const Status status = Store(kind, key, EntryFileName(kind, key), payload);
    if (status.ok()) {
        NoteWritten(sizeof(EntryHeader) + payload.size());
        return true;
    }
    LogWarningOnce(fmt::format("{} storing", directory_), "A cache entry cannot be stored: {}",
                   status.error().message);
    return false;
}

Status DiskCache::Store(const CacheKind& kind,
                        const Hash128& key,
                        const std::string& file_name,
                        std::span<const std::byte> payload) {
    if (payload.size() > kMaxPayloadBytes) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{} would have {} bytes; at most {} are stored.", file_name,
                                 payload.size(), kMaxPayloadBytes)};
    }
    const Hash128 digest = HashBytes(payload);
    EntryHeader header{
        .payload_version = kind.version,
        .key_high = key.high,
        .key_low = key.low,
        .payload_bytes = payload.size(),
        .digest_high = digest.high,
        .digest_low = digest.low,
    };
    if (kind.executable) {
        FORNAX_ASSIGN_OR_RETURN(const UserSecret secret, Secret());
        header.keyed_digest = SignEntry(secret, file_name, header, payload);
    }
    const std::array<std::byte, kPageBytes> padding = {};
    const size_t padding_bytes = PayloadOffset(kind) - sizeof(header);
    const std::span<const std::byte> parts[] = {BytesOf(header),
                                                std::span(padding).first(padding_bytes), payload};
    return WriteFileAtomically(Path(file_name), parts, 0600);
}

Result<UserSecret> DiskCache::Secret() {
    const std::scoped_lock lock(mutex_);
    if (!secret_) {
        secret_ = LoadOrCreateUserSecret(directory_);
    }
    return *secret_;
}

std::vector<CacheEntry> DiskCache::List() const {
    std::vector<CacheEntry> entries;
    for (const std::string& name : FileNames(directory_)) {
        std::optional<CacheEntry> entry = ParseEntryFileName(name);
        if (!entry || !HasOurMagic(Path(name), /*accept_empty=*/false)) {
            continue;
        }
        struct stat info;
        if (::lstat(Path(name).c_str(), &info) != 0) {
            continue;  // removed meanwhile
        }
        entry->size_bytes = static_cast<uint64_t>(info.st_size);
        entry->modified = info.st_mtime;
        entries.push_back(std::move(*entry));
    }
    return entries;
}

CacheClearResult DiskCache::Clear() {
    CacheClearResult result;
    for (const std::string& name : FileNames(directory_)) {
        const bool temporary = IsTemporaryOfEntry(name);
        if ((!temporary && !ParseEntryFileName(name)) || !HasOurMagic(Path(name), temporary)) {
            continue;
        }
        struct stat info;
        if (::lstat(Path(name).c_str(), &info) != 0) {
            continue;
        }
        if (::unlink(Path(name).c_str()) == 0) {
            ++result.removed_count;
            result.removed_bytes += static_cast<uint64_t>(info.st_size);
        } else if (errno != ENOENT) {
            ++result.failed_count;
            LogWarning("{} cannot be removed: {}.", Path(name), ErrnoMessage(errno));
        }
    }
    return result;
}

CacheClearResult DiskCache::Trim() {
    CacheClearResult result;
    if (limit_bytes_ == 0) {
        return result;
    }
    struct File {
        std::string name;
        uint64_t bytes;
        struct timespec used;
    };
    std::vector<File> files;
    uint64_t total = 0;
    for (std::string& name : FileNames(directory_)) {
        struct stat info;
        if (!ParseEntryFileName(name) || ::lstat(Path(name).c_str(), &info) != 0 ||
            !OwnedAndPrivate(info)) {
            continue;
        }
        const auto bytes = static_cast<uint64_t>(info.st_size);
        files.push_back({std::move(name), bytes, info.st_mtim});
        total += bytes;
    }
    if (total <= limit_bytes_) {
        return result;
    }
    std::ranges::sort(files, [](const File& a, const File& b) {
        return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
    });
    for (const File& file : files) {
        if (total <= limit_bytes_ - limit_bytes_ / 8) {
            break;
        }
        if (!HasOurMagic(Path(file.name), /*accept_empty=*/false)) {
            continue;
        }
        if (::unlink(Path(file.name).c_str()) == 0) {
            ++result.removed_count;
            result.removed_bytes += file.bytes;
        } else if (errno != ENOENT) {
            ++result.failed_count;
            continue;
        }
        total -= file.bytes;
    }
    LogDebug("{} cache entries of {} bytes were not used for longest and are removed.",
             result.removed_count, result.removed_bytes);
    return result;
}

void DiskCache::NoteWritten(uint64_t bytes) {
    const uint64_t before = written_bytes_.fetch_add(bytes);
    const uint64_t step = std::min(kBytesBetweenTrims, limit_bytes_ / 8);
    if (limit_bytes_ == 0 || before + bytes < step) {
        return;
    }
    written_bytes_ = 0;
    Trim();
}

}  // namespace fornax
