// Keeping, writing and reading back compiled kernels.
#include "driver/pipeline_cache.h"

#include <cstring>
#include <mutex>
#include <vector>

#include <fmt/format.h>

#include "compiler/kernel/kernel_compiler.h"
#include "driver/device.h"
#include "driver/entry_point.h"
#include "driver/report.h"

namespace fornax::driver {
namespace {

// Before each kernel in the block. Unaligned there, so only ever copied.
struct CacheRecord {
    static constexpr uint32_t kMagic = 0x31584e46;  // "FNX1"
    uint32_t magic;
    uint32_t key_bytes;
    uint64_t kernel_bytes;
    Hash128 digest;  // of the key and the kernel's bytes
};
static_assert(sizeof(CacheRecord) == 32);

// What one warning is enough for.
constexpr std::string_view kDamagedData = "damaged data of a pipeline cache";
static_assert(sizeof(VkPipelineCacheHeaderVersionOne) == 32);

std::span<const std::byte> AsBytes(std::string_view text) {
    return std::as_bytes(std::span(text));
}

Hash128 HashKey(std::string_view key) {
    return HashBytes(AsBytes(key));
}

Hash128 DigestOf(std::span<const std::byte> key, std::span<const std::byte> bytes) {
    return Hasher().AppendBytes(key).AppendBytes(bytes).Finish();
}

VkPipelineCacheHeaderVersionOne MakeHeader(const VkPhysicalDeviceProperties& properties) {
    VkPipelineCacheHeaderVersionOne header{
        .headerSize = sizeof(header),
        .headerVersion = VK_PIPELINE_CACHE_HEADER_VERSION_ONE,
        .vendorID = properties.vendorID,
        .deviceID = properties.deviceID,
    };
    std::memcpy(header.pipelineCacheUUID, properties.pipelineCacheUUID, VK_UUID_SIZE);
    return header;
}

}  // namespace

// One kernel. Behind it lie the key and, until the kernel is loaded, its bytes.
struct PipelineCache::Entry {
    Entry* next;
    Hash128 hash;  // of the key
    size_t key_bytes;
    size_t stored_bytes;
    std::shared_ptr<const kernel::CompiledKernel> kernel;  // null: not loaded yet

    std::string_view key() const {
        return {TrailingOf<const char>(this, key_bytes).data(), key_bytes};
    }
    // What the block holds of the kernel.
    std::span<const std::byte> bytes() const {
        if (kernel) {
            return std::as_bytes(std::span(kernel->Serialized()));
        }
        return TrailingOf<const std::byte>(this, stored_bytes, key_bytes);
    }
};

PipelineCache::~PipelineCache() {
    std::lock_guard lock(mutex_);
    ForgetIfAbandoned();
    while (first_) {
        Entry* entry = first_;
        first_ = entry->next;
        allocator_.Delete(entry);
    }
}

void PipelineCache::ForgetIfAbandoned() {
    if (mutex_.TakeAbandoned()) {
        first_ = nullptr;
    }
}

// Without the lock, so that nobody else has to wait.
void PipelineCache::WaitForKernels() {
    std::vector<std::shared_ptr<const kernel::CompiledKernel>> kernels;
    {
        std::lock_guard lock(mutex_);
        ForgetIfAbandoned();
        for (const Entry* entry = first_; entry; entry = entry->next) {
            if (entry->kernel) {
                kernels.push_back(entry->kernel);
            }
        }
    }
    for (const auto& kernel : kernels) {
        (void)kernel->Serialized();
    }
}

PipelineCache::Entry* PipelineCache::FindEntry(std::string_view key, const Hash128& hash) {
    for (Entry* entry = first_; entry; entry = entry->next) {
        if (entry->hash == hash && entry->key() == key) {
            return entry;
        }
    }
    return nullptr;
}

void PipelineCache::Insert(std::string_view key,
                           const Hash128& hash,
                           const std::shared_ptr<const kernel::CompiledKernel>& kernel,
                           std::span<const std::byte> bytes) {
    auto* entry = allocator_.New<Entry>(VK_SYSTEM_ALLOCATION_SCOPE_CACHE, key.size() + bytes.size(),
                                        Entry{first_, hash, key.size(), bytes.size(), kernel});
    if (!entry) {
        return;
    }
    std::ranges::copy(key, TrailingOf<char>(entry, key.size()).begin());
    std::ranges::copy(bytes, TrailingOf<std::byte>(entry, bytes.size(), key.size()).begin());
    first_ = entry;
}

void PipelineCache::Read(std::span<const std::byte> data) {
    const auto expected = MakeHeader(device().physical_device().properties());
    if (data.size() < sizeof(expected) ||
        std::memcmp(data.data(), &expected, sizeof(expected)) != 0) {
        return;  // of another driver, version or machine: "must ignore"
    }
    data = data.subspan(sizeof(expected));

    std::lock_guard lock(mutex_);
    ForgetIfAbandoned();
    while (!data.empty()) {
        CacheRecord record;
        const size_t left_bytes = data.size();
        if (left_bytes >= sizeof(record)) {
            std::memcpy(&record, data.data(), sizeof(record));
            data = data.subspan(sizeof(record));
        }
        if (left_bytes < sizeof(record) || record.magic != CacheRecord::kMagic ||
            record.key_bytes > data.size() ||
            record.kernel_bytes > data.size() - record.key_bytes) {
            Warn(*this,
                 fmt::format("The initial data of a pipeline cache is damaged: its last {} bytes "
                             "do not begin with a whole record. They are ignored.",
                             left_bytes),
                 kDamagedData);
            return;
        }
        const auto key = data.first(record.key_bytes);
        const auto bytes = data.subspan(record.key_bytes, record.kernel_bytes);
        data = data.subspan(record.key_bytes + record.kernel_bytes);
        if (DigestOf(key, bytes) != record.digest) {
            // The next one may be whole.
            Warn(*this,
                 fmt::format("A record of {} bytes in the initial data of a pipeline cache is "
                             "damaged: its digest differs. The record is ignored.",
                             record.kernel_bytes),
                 kDamagedData);
            continue;
        }
        const std::string_view key_text(reinterpret_cast<const char*>(key.data()), key.size());
        const Hash128 hash = HashKey(key_text);
        if (!FindEntry(key_text, hash)) {
            Insert(key_text, hash, nullptr, bytes);
        }
    }
}

std::shared_ptr<const kernel::CompiledKernel> PipelineCache::Find(kernel::KernelCompiler& compiler,
                                                                  const std::string& key) {
    std::lock_guard lock(mutex_);
    ForgetIfAbandoned();
    Entry* entry = FindEntry(key, HashKey(key));
    if (!entry) {
        return nullptr;
    }
    if (!entry->kernel) {
        const auto bytes = entry->bytes();
        auto loaded =
            compiler.Load(key, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
        if (!loaded) {
            // Not from here, or not for this machine. It is compiled anew and then replaces this.
            Warn(*this,
                 loaded.error().message +
                     " It came from the initial data of a pipeline cache and is compiled again.",
                 "a record of a pipeline cache");
            return nullptr;
        }
        entry->kernel = std::move(*loaded);
    }
    return entry->kernel;
}

void PipelineCache::Add(std::string_view key,
                        const std::shared_ptr<const kernel::CompiledKernel>& kernel) {
    const Hash128 hash = HashKey(key);
    std::lock_guard lock(mutex_);
    ForgetIfAbandoned();
    if (Entry* entry = FindEntry(key, hash)) {
        entry->kernel = kernel;
    } else {
        Insert(key, hash, kernel, {});
    }
}

void PipelineCache::MergeFrom(PipelineCache& source) {
    // VUID-vkMergePipelineCaches-dstCache-00770: never the same cache.
    std::scoped_lock lock(mutex_, source.mutex_);
    ForgetIfAbandoned();
    source.ForgetIfAbandoned();
    for (const Entry* entry = source.first_; entry; entry = entry->next) {
        if (!FindEntry(entry->key(), entry->hash)) {
            Insert(entry->key(), entry->hash, entry->kernel,
                   entry->kernel ? std::span<const std::byte>() : entry->bytes());
        }
    }
}

VkResult PipelineCache::Write(size_t* size_bytes, void* data) {
    WaitForKernels();
    std::lock_guard lock(mutex_);
    // Nothing for a kernel whose code was given up at the end of its compiler.
    const auto record_bytes = [](const Entry& entry) {
        const size_t bytes = entry.bytes().size();
        return bytes == 0 ? 0 : sizeof(CacheRecord) + entry.key_bytes + bytes;
    };
    size_t total = sizeof(VkPipelineCacheHeaderVersionOne);
    for (const Entry* entry = first_; entry; entry = entry->next) {
        total += record_bytes(*entry);
    }
    if (!data) {
        *size_bytes = total;
        return VK_SUCCESS;
    }

    size_t room = *size_bytes;
    auto* out = static_cast<std::byte*>(data);
    const auto append = [&](const void* from, size_t size) {
        if (size > 0) {
            std::memcpy(out, from, size);
        }
        out += size;
        room -= size;
    };
    // "If the size is too small for the header, nothing is written and the size becomes zero."
    *size_bytes = 0;
    const auto header = MakeHeader(device().physical_device().properties());
    if (room < sizeof(header)) {
        return VK_INCOMPLETE;
    }
    append(&header, sizeof(header));
    for (const Entry* entry = first_; entry; entry = entry->next) {
        if (record_bytes(*entry) == 0 || room < record_bytes(*entry)) {
            continue;
        }
        const auto bytes = entry->bytes();
        const CacheRecord record{
            .magic = CacheRecord::kMagic,
            .key_bytes = static_cast<uint32_t>(entry->key_bytes),
            .kernel_bytes = bytes.size(),
            .digest = DigestOf(AsBytes(entry->key()), bytes),
        };
        append(&record, sizeof(record));
        append(entry->key().data(), entry->key_bytes);
        append(bytes.data(), bytes.size());
    }
    *size_bytes = static_cast<size_t>(out - static_cast<std::byte*>(data));
    return *size_bytes == total ? VK_SUCCESS : VK_INCOMPLETE;
}

FORNAX_ENTRY_POINT(VkResult)
vkCreatePipelineCache(VkDevice device_handle,
                      const VkPipelineCacheCreateInfo* info,
                      const VkAllocationCallbacks* callbacks,
                      VkPipelineCache* handle) {
    auto& device = *FromHandle<Device>(device_handle);
    const Allocator allocator(callbacks, device.allocator());
    Owned cache(allocator, NewObject<PipelineCache>(device, callbacks, 0, allocator));
    if (!cache) {
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    cache->Read({static_cast<const std::byte*>(info->pInitialData), info->initialDataSize});
    *handle = ToHandle(cache.Release());
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(void)
vkDestroyPipelineCache(VkDevice device,
                       VkPipelineCache cache,
                       const VkAllocationCallbacks* callbacks) {
    DestroyObject<PipelineCache>(device, callbacks, cache);
}

FORNAX_ENTRY_POINT(VkResult)
vkGetPipelineCacheData(VkDevice, VkPipelineCache cache, size_t* size_bytes, void* data) {
    return FromHandle<PipelineCache>(cache)->Write(size_bytes, data);
}

FORNAX_ENTRY_POINT(VkResult)
vkMergePipelineCaches(VkDevice,
                      VkPipelineCache destination,
                      uint32_t count,
                      const VkPipelineCache* sources) {
    for (uint32_t i = 0; i < count; ++i) {
        FromHandle<PipelineCache>(destination)->MergeFrom(*FromHandle<PipelineCache>(sources[i]));
    }
    return VK_SUCCESS;
}

}  // namespace fornax::driver
