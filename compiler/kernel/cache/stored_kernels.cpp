#include "compiler/kernel/cache/stored_kernels.h"

#include <sys/random.h>

#include <cstring>
#include <optional>
#include <utility>

#include "base/log.h"
#include "compiler/kernel/codegen/jit_loader.h"

namespace fornax::kernel {

namespace {

constexpr CacheKind kDiskKind = {.name = "kernel",
                                 .extension = "bin",
                                 .version = kCacheEntryVersion,
                                 .executable = true};

class LoadedKernel : public CompiledKernel {
  public:
    // Null for a kernel that has no code yet.
    explicit LoadedKernel(std::unique_ptr<LoadedObject> object) : object_(std::move(object)) {
        if (object_) {
            entry = reinterpret_cast<hal::KernelEntry>(const_cast<void*>(object_->entry()));
        }
        interruptible = true;
    }

  private:
    std::unique_ptr<LoadedObject> object_;
};

}  // namespace

Result<UserSecret> SigningSecret(const std::string& directory) {
    if (!directory.empty()) {
        Result<UserSecret> secret = LoadOrCreateUserSecret(directory);
        if (secret.ok()) {
            return secret;
        }
        LogDebug("Stored kernels are signed for this process only: {}", secret.error().message);
    }
    UserSecret secret;
    if (getrandom(secret.bytes.data(), secret.bytes.size(), 0) !=
        static_cast<ssize_t>(secret.bytes.size())) {
        return Error{ErrorCode::kInternal, "The system gives no random numbers."};
    }
    return secret;
}

Result<std::shared_ptr<const CompiledKernel>> LoadKernel(const UserSecret& secret,
                                                         const Hash128& key,
                                                         std::vector<uint8_t> bytes,
                                                         bool from_disk_cache) {
    FORNAX_ASSIGN_OR_RETURN(ParsedEntry entry, ParseEntry(secret, key, bytes));
    std::unique_ptr<LoadedObject> object;
    if (!entry.object.empty()) {
        FORNAX_ASSIGN_OR_RETURN(object, LoadedObject::Load(entry.object, kKernelSymbol));
    }
    auto kernel = std::make_shared<LoadedKernel>(std::move(object));
    kernel->workgroup_size = entry.facts.workgroup_size;
    kernel->shared_bytes = entry.facts.shared_bytes;
    kernel->scratch_bytes = entry.facts.scratch_bytes;
    kernel->used_sets = entry.facts.used_sets;
    kernel->independent_workgroups = entry.facts.independent_workgroups;
    kernel->name = entry.facts.name;
    kernel->deciding_words = entry.facts.deciding_words;
    kernel->cost = entry.facts.cost;
    kernel->from_disk_cache = from_disk_cache;
    if (kernel->entry) {
        kernel->serialized = std::move(bytes);
    }
    return std::shared_ptr<const CompiledKernel>(std::move(kernel));
}

std::shared_ptr<const CompiledKernel> StoredKernels::Read(const Hash128& key) {
    std::optional<std::vector<std::byte>> payload = disk_.Get(kDiskKind, key);
    if (!payload) {
        return nullptr;
    }
    std::vector<uint8_t> bytes(payload->size());
    if (!bytes.empty()) {
        std::memcpy(bytes.data(), payload->data(), bytes.size());
    }
    auto kernel = LoadKernel(secret_, key, std::move(bytes), /*from_disk_cache=*/true);
    if (!kernel.ok()) {
        LogWarning("{} It is compiled anew.", kernel.error().message);
        return nullptr;
    }
    return std::move(kernel).value();
}

void StoredKernels::Write(const Hash128& key, std::span<const uint8_t> entry) {
    disk_.Put(kDiskKind, key, std::as_bytes(entry));
}

}  // namespace fornax::kernel
