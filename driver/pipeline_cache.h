// Pipeline cache: compiled kernels by key, which the application can keep as a block of bytes.
//
// The block is VkPipelineCacheHeaderVersionOne, then for each kernel a CacheRecord, the key and the
// kernel's serialised bytes. What an application gives back is not trusted: records are checked
// against their digest, and native code is only accepted by KernelCompiler::Load, which demands
// proof that this user's driver wrote it.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include <vulkan/vulkan_core.h>

#include "base/hash.h"
#include "base/per_process.h"
#include "compiler/kernel/interface/compiled_kernel.h"
#include "driver/object.h"

namespace fornax::kernel {
class KernelCompiler;
}

namespace fornax::driver {

// Thread-safe, also where the application promised to synchronise.
class PipelineCache : public DeviceObject {
  public:
    using Handle = VkPipelineCache;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_PIPELINE_CACHE;

    PipelineCache(Device& device, const Allocator& allocator)
        : DeviceObject(device, kObjectType), allocator_(allocator) {}
    ~PipelineCache();

    // Takes over what is sound in data from an earlier cache; the rest is ignored.
    void Read(std::span<const std::byte> data);

    // The kernel of the key, or null.
    std::shared_ptr<const kernel::CompiledKernel> Find(kernel::KernelCompiler& compiler,
                                                       const std::string& key);
    // Without memory the kernel is not kept, which costs nothing but time later.
    void Add(std::string_view key, const std::shared_ptr<const kernel::CompiledKernel>& kernel);

    void MergeFrom(PipelineCache& source);

    // vkGetPipelineCacheData: the size, or as many whole records as fit. Waits for kernels that are
    // still compiled in the background; in a child process, where that does not go on, it leaves
    // them out.
    VkResult Write(size_t* size_bytes, void* data);

  private:
    struct Entry;

    // Empties a cache that a thread of the parent process was changing at the fork.
    void ForgetIfAbandoned();
    void WaitForKernels();
    Entry* FindEntry(std::string_view key, const Hash128& hash);
    // Links a new entry with a copy of the key and of the bytes.
    void Insert(std::string_view key,
                const Hash128& hash,
                const std::shared_ptr<const kernel::CompiledKernel>& kernel,
                std::span<const std::byte> bytes);

    Allocator allocator_;
    ProcessMutex mutex_;  // guards the entries
    Entry* first_ = nullptr;
};

}  // namespace fornax::driver
