// Compiled kernels that are kept: on disk between processes, and as bytes that an application takes
// away and brings back.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/disk_cache.h"
#include "base/hash.h"
#include "base/keyed_digest.h"
#include "base/result.h"
#include "compiler/kernel/cache/cache_entry.h"
#include "compiler/kernel/interface/compiled_kernel.h"

namespace fornax::kernel {

// The secret that stored kernels are signed with: the cache directory's, so that other processes
// accept them, or without one a secret that dies with this process.
Result<UserSecret> SigningSecret(const std::string& directory);

// Checks the bytes and maps their code. A kernel whose entry has no code has no `entry`, and
// nothing to serialize.
Result<std::shared_ptr<const CompiledKernel>> LoadKernel(const UserSecret& secret,
                                                         const Hash128& key,
                                                         std::vector<uint8_t> bytes,
                                                         bool from_disk_cache);

// Thread-safe.
class StoredKernels {
  public:
    // Without a directory nothing is stored or found.
    StoredKernels(const std::string& directory, const UserSecret& secret)
        : secret_(secret), disk_(directory) {}

    // As LoadKernel gives it; null when there is no usable entry.
    std::shared_ptr<const CompiledKernel> Read(const Hash128& key);
    void Write(const Hash128& key, std::span<const uint8_t> entry);

  private:
    const UserSecret secret_;
    DiskCache disk_;
};

}  // namespace fornax::kernel
