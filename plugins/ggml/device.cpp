// What the host asks of a device before it gives it work.
#include "plugins/ggml/device.h"

#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/log.h"
#include "plugins/ggml/trace.h"

namespace fornax::ggml_plugin {
namespace {

// Indices in kernels are of 32 bits.
constexpr int64_t kMaxElements = int64_t{1} << 31;

const char* GetName(abi::Device* device) {
    return DeviceOf(device).name().c_str();
}

const char* GetDescription(abi::Device* device) {
    return DeviceOf(device).description().c_str();
}

// The device computes in the host's memory.
void GetMemory(abi::Device*, size_t* free, size_t* total) {
    const auto page = static_cast<size_t>(std::max(sysconf(_SC_PAGESIZE), 0L));
    *total = static_cast<size_t>(std::max(sysconf(_SC_PHYS_PAGES), 0L)) * page;
    *free = static_cast<size_t>(std::max(sysconf(_SC_AVPHYS_PAGES), 0L)) * page;
}

int GetType(abi::Device*) {
    return abi::kDeviceTypeGpu;
}

void GetProperties(abi::Device* device, abi::DeviceProperties* properties) {
    properties->name = GetName(device);
    properties->description = GetDescription(device);
    GetMemory(device, &properties->memory_free, &properties->memory_total);
    properties->type = GetType(device);
    properties->device_id = nullptr;
    properties->capabilities = {};
    properties->capabilities.async = true;
    properties->capabilities.buffer_from_host_ptr = true;
    properties->capabilities.events = true;
    properties->capabilities.mmap_support = true;  // models stay where the file is mapped
}

abi::Backend* InitBackend(abi::Device* device, const char*) {
    return NewBackend(DeviceOf(device));
}

abi::BufferType* GetBufferType(abi::Device* device) {
    return DeviceOf(device).buffer_type();
}

abi::Buffer* BufferFromPointer(abi::Device* device, void* data, size_t size, size_t) {
    return BufferOfPointer(DeviceOf(device), data, size);
}

abi::Event* NewEvent(abi::Device* device) {
    return new abi::Event{device, nullptr};
}
void FreeEvent(abi::Device*, abi::Event* event) {
    delete event;
}
void WaitOnHost(abi::Device*, abi::Event*) {}

bool SupportsOperator(abi::Device* device, const abi::Tensor* tensor) {
    return DeviceOf(device).IsSupported(*tensor);
}

bool SupportsBufferType(abi::Device* device, abi::BufferType* type) {
    return type == DeviceOf(device).buffer_type();
}

}  // namespace

PluginDevice& DeviceOf(const abi::Device* device) {
    return *static_cast<PluginDevice*>(device->context);
}

PluginDevice::PluginDevice(const Host& host, std::shared_ptr<vulkan::Device> device, size_t index)
    : host_(host), name_(fmt::format("FORNAX{}", index)), description_(device->name()) {
    alignment_ = std::max<size_t>(alignment_, device->limits().minStorageBufferOffsetAlignment);
    compiler_ = std::make_shared<Compiler>(std::move(device));
    abi::DeviceFunctions& functions = handle_.functions;
    functions.get_name = kTraced<"device_get_name", GetName>;
    functions.get_description = kTraced<"get_description", GetDescription>;
    functions.get_memory = kTraced<"get_memory", GetMemory>;
    functions.get_type = kTraced<"get_type", GetType>;
    functions.get_props = kTraced<"get_props", GetProperties>;
    functions.init_backend = kTraced<"init_backend", InitBackend>;
    functions.get_buffer_type = kTraced<"get_buffer_type", GetBufferType>;
    functions.buffer_from_host_ptr = kTraced<"buffer_from_host_ptr", BufferFromPointer>;
    functions.supports_op = kTraced<"supports_op", SupportsOperator>;
    functions.supports_buft = kTraced<"supports_buft", SupportsBufferType>;
    functions.event_new = kTraced<"event_new", NewEvent>;
    functions.event_free = kTraced<"event_free", FreeEvent>;
    functions.event_synchronize = kTraced<"event_synchronize", WaitOnHost>;
    handle_.context = this;
    FillBufferType(buffer_type_2_, *this);
    FillBufferType(buffer_type_3_, *this);
}

Result<std::unique_ptr<PluginDevice>> PluginDevice::Open(const Host& host,
                                                         abi::Registry* registry,
                                                         const std::string& choice,
                                                         size_t index) {
    // Another driver's device is slower than the host's own backend: it has to be chosen by name.
    FORNAX_ASSIGN_OR_RETURN(std::shared_ptr<vulkan::Device> opened,
                            vulkan::Device::Open(choice.empty() ? "Fornax" : choice));
    if (opened->features().host_import_alignment == 0) {
        return Error{ErrorCode::kUnsupported,
                     "The device " + opened->name() +
                         " cannot use memory of the host in place: it lacks "
                         "VK_EXT_external_memory_host."};
    }
    std::unique_ptr<PluginDevice> device(new PluginDevice(host, std::move(opened), index));
    device->handle_.registry = registry;
    return device;
}

abi::BufferType* PluginDevice::buffer_type() {
    return host_.layout().api_version == 2 ? reinterpret_cast<abi::BufferType*>(&buffer_type_2_)
                                           : reinterpret_cast<abi::BufferType*>(&buffer_type_3_);
}

bool PluginDevice::IsSupported(const abi::Tensor& tensor) {
    try {
        abi::Tensor copy = tensor;  // to be computed, whatever the host says at this time
        copy.flags |= abi::kFlagCompute;
        abi::Tensor* const nodes[] = {&copy};
        const Capture capture = CaptureNodes(host_, nodes);
        const bool small = std::all_of(capture.graph.tensors.begin(), capture.graph.tensors.end(),
                                       [](const auto& one) { return one.count() < kMaxElements; });
        return small && compiler_->IsSupported(capture.graph);
    } catch (const std::exception& error) {
        LogError("ggml: an operator could not be looked at: {}", error.what());
        return false;
    }
}

std::shared_ptr<Executor> PluginDevice::AddExecutor() {
    auto executor = std::make_shared<Executor>(host_, compiler_);
    const std::lock_guard lock(mutex_);
    std::erase_if(executors_, [](const auto& other) { return other.expired(); });
    executors_.push_back(executor);
    return executor;
}

void PluginDevice::Forget(const void* begin, uint64_t size) {
    compiler_->weights().Forget(begin, size);
    const std::lock_guard lock(mutex_);
    for (const std::weak_ptr<Executor>& weak : executors_) {
        if (const std::shared_ptr<Executor> executor = weak.lock()) {
            executor->Forget(begin, size);
        }
    }
}

}  // namespace fornax::ggml_plugin
