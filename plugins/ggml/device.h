// A device that this backend reports, and what the host's functions get at it by.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "plugins/ggml/abi.h"
#include "plugins/ggml/executor.h"
#include "plugins/ggml/host.h"

namespace fornax::ggml_plugin {

// Lives as long as the process: the host keeps pointers into it.
class PluginDevice {
  public:
    // Opens the Vulkan device that `choice` names, as `fornax run --device`; empty: the first of
    // Fornax. The host gets it as FORNAX and the index.
    static Result<std::unique_ptr<PluginDevice>> Open(const Host& host,
                                                      abi::Registry* registry,
                                                      const std::string& choice,
                                                      size_t index);

    const Host& host() const { return host_; }
    const std::string& name() const { return name_; }
    const std::string& description() const { return description_; }
    abi::Device* handle() { return &handle_; }
    abi::BufferType* buffer_type();
    size_t alignment() const { return alignment_; }
    Compiler& compiler() { return *compiler_; }

    bool IsSupported(const abi::Tensor& tensor);
    // Streams of the device, so that they let go of memory that goes.
    std::shared_ptr<Executor> AddExecutor();
    void Forget(const void* begin, uint64_t size);

  private:
    PluginDevice(const Host& host, std::shared_ptr<vulkan::Device> device, size_t index);

    const Host& host_;
    std::string name_, description_;
    size_t alignment_ = 64;
    std::shared_ptr<Compiler> compiler_;
    abi::Device handle_ = {};
    abi::BufferType2 buffer_type_2_ = {};
    abi::BufferType3 buffer_type_3_ = {};
    std::mutex mutex_;
    std::vector<std::weak_ptr<Executor>> executors_;
};

// The device behind the host's pointers.
PluginDevice& DeviceOf(const abi::Device* device);

// The functions of the host's tables, by file: buffers.cpp and backend.cpp.
template <typename BufferTypeTable>
void FillBufferType(BufferTypeTable& table, PluginDevice& device);
extern template void FillBufferType(abi::BufferType2&, PluginDevice&);
extern template void FillBufferType(abi::BufferType3&, PluginDevice&);
// The buffer of a tensor or of what it is a view of.
abi::Buffer* BufferOf(const abi::Tensor& tensor);
// The device of a buffer of ours; null for another's.
abi::Device* DeviceHandleOf(const abi::Buffer* buffer);
// A buffer of memory that the caller keeps.
abi::Buffer* BufferOfPointer(PluginDevice& device, void* data, size_t size);
// Null after an error, which is logged.
abi::Backend* NewBackend(PluginDevice& device);

}  // namespace fornax::ggml_plugin
