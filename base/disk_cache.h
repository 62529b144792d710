// Compiled results kept between processes: native kernels, plans, pipeline data.
//
// One file an entry, named <kind>-<32 hex digits of the key>.<extension>, in the cache directory:
// header (magic, versions, key, payload size, XXH3-128 digest, keyed digest), then the payload, in
// kinds that are mapped into memory from the second page on.
// Entries are written atomically and every field is checked on reading. A damaged entry is removed
// with a warning and counts as missing; so does, without being touched, one that another user owns
// or may write to. A cache that cannot be used (no directory, full disk) costs a warning and
// nothing else. A process warns once for each directory and cause (storing, an entry's owner, its
// contents, its keyed digest) and tells the rest at level info.
//
// The directory has a limit. When enough has been written, what was not used for longest goes; a
// file's time of modification is the time of its last use, to the hour.
//
// Native code is dangerous: whoever can plant an entry could run code as this user. Entries of an
// executable kind therefore also carry a BLAKE2b digest keyed with a random secret that only this
// user can read (<directory>/fornax-secret, mode 0600) and are returned only if it matches.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/keyed_digest.h"
#include "base/result.h"

namespace fornax {

// The directory for this user's cache entries, created if need be: FORNAX_CACHE_DIR, else
// $XDG_CACHE_HOME/fornax, else ~/.cache/fornax, else fornax-<uid> in the temporary directory, which
// must be this user's and closed to others. FORNAX_CACHE_DIR is never fallen back from.
Result<std::string> CacheDirectory();

// The bytes that the directory's entries may take: FORNAX_CACHE_MIB MiB, 1024 unless it is set to a
// number. 0: no limit.
uint64_t CacheLimitBytes();

// What one client of the cache stores. `name` and `extension` are lower-case letters and digits.
struct CacheKind {
    std::string_view name;       // e.g. "kernel"
    std::string_view extension;  // e.g. "o"
    uint32_t version;            // of the payload's format; entries of another version are missing
    bool executable;             // the payload is code that will be run in this process
    bool mapped = false;         // the payload begins with a page of the file, for Map()
};

struct CacheEntry {
    std::string file_name;
    std::string kind;
    Hash128 key;
    uint64_t size_bytes = 0;  // of the file
    std::time_t modified = 0;
};

// Bytes that stay what they are as long as `owner` lives, whatever becomes of the entry.
struct MappedPayload {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
};

struct CacheClearResult {
    size_t removed_count = 0;
    uint64_t removed_bytes = 0;
    size_t failed_count = 0;  // each was warned about
};

// Thread-safe; several processes may use one directory.
class DiskCache {
  public:
    // Uses `directory`, which must exist for anything to be stored.
    explicit DiskCache(std::string directory, uint64_t limit_bytes = CacheLimitBytes());
    // Uses CacheDirectory(). Without one, a warning is logged and nothing is ever found or stored.
    static DiskCache OpenDefault();

    DiskCache(const DiskCache&) = delete;
    DiskCache& operator=(const DiskCache&) = delete;

    // Empty if there is none.
    const std::string& directory() const { return directory_; }
    // What all entries may take; 0: no limit.
    uint64_t limit_bytes() const { return limit_bytes_; }

    // The payload stored under the key, or nothing.
    std::optional<std::vector<std::byte>> Get(const CacheKind& kind, const Hash128& key);

    // The same without a copy, for kinds that are mapped and not executable: a file in memory,
    // whose pages are the system's until they are read. Begins with a page.
    std::optional<MappedPayload> Map(const CacheKind& kind, const Hash128& key);

    // Stores the payload, replacing an older one. False if that is not possible; the first time,
    // after a warning.
    bool Put(const CacheKind& kind, const Hash128& key, std::span<const std::byte> payload);

    // Our own entries, by name and magic, in order of their file names.
    std::vector<CacheEntry> List() const;

    // Removes what List lists and what interrupted writes of entries left. The secret stays.
    CacheClearResult Clear();

    // Brings the entries of all processes below seven eighths of the limit if they are above it.
    // Put calls it now and then.
    CacheClearResult Trim();

  private:
    struct OpenEntry;
    // `check` becomes the one that failed.
    Result<OpenEntry> Open(const CacheKind& kind,
                           const Hash128& key,
                           const std::string& file_name,
                           const char** check);
    Result<std::vector<std::byte>> Load(const CacheKind& kind,
                                        const Hash128& key,
                                        const std::string& file_name,
                                        const char** check);
    Result<MappedPayload> LoadMapped(const CacheKind& kind,
                                     const Hash128& key,
                                     const std::string& file_name,
                                     const char** check);
    // Tells the user what matters, and removes what is damaged.
    void Report(const Error& error, const std::string& file_name, const char* check);
    Status Store(const CacheKind& kind,
                 const Hash128& key,
                 const std::string& file_name,
                 std::span<const std::byte> payload);
    Result<UserSecret> Secret();
    std::string Path(const std::string& file_name) const { return directory_ + "/" + file_name; }

    void NoteWritten(uint64_t bytes);

    std::string directory_;
    const uint64_t limit_bytes_;
    std::atomic<uint64_t> written_bytes_ = 0;   // since the last Trim
    std::mutex mutex_;                          // guards secret_
    std::optional<Result<UserSecret>> secret_;  // read when the first executable entry is used
};

}  // namespace fornax
