// Buffers in the host's memory, which the device uses in place.
#include <cstdlib>
#include <cstring>

#include "base/log.h"
#include "plugins/ggml/device.h"
#include "plugins/ggml/fault.h"
#include "plugins/ggml/trace.h"

namespace fornax::ggml_plugin {
namespace {

struct Memory {
    PluginDevice* device = nullptr;
    uint8_t* data = nullptr;
    std::unique_ptr<Pages> pages;  // null: the memory is the caller's
};

Memory& MemoryOf(const abi::Buffer* buffer) {
    return *static_cast<Memory*>(buffer->context);
}

void FreeBuffer(abi::Buffer* buffer) {
    const std::unique_ptr<Memory> memory(&MemoryOf(buffer));
    memory->device->Forget(memory->data, buffer->size);
}

void* GetBase(abi::Buffer* buffer) {
    return MemoryOf(buffer).data;
}

// Packs of weights that change are made anew.
void NoteWritten(abi::Buffer* buffer, const void* begin, size_t size) {
    if (buffer->usage == abi::kUsageWeights) {
        MemoryOf(buffer).device->Forget(begin, size);
    }
}

void FillTensor(abi::Buffer* buffer,
                abi::Tensor* tensor,
                uint8_t value,
                size_t offset,
                size_t size) {
    uint8_t* begin = static_cast<uint8_t*>(tensor->data) + offset;
    std::memset(begin, value, size);
    NoteWritten(buffer, begin, size);
}

void SetTensor(abi::Buffer* buffer,
               abi::Tensor* tensor,
               const void* data,
               size_t offset,
               size_t size) {
    uint8_t* begin = static_cast<uint8_t*>(tensor->data) + offset;
    std::memcpy(begin, data, size);
    NoteWritten(buffer, begin, size);
}

void GetTensor(abi::Buffer*, const abi::Tensor* tensor, void* data, size_t offset, size_t size) {
    std::memcpy(data, static_cast<const uint8_t*>(tensor->data) + offset, size);
}

void Clear(abi::Buffer* buffer, uint8_t value) {
    std::memset(MemoryOf(buffer).data, value, buffer->size);
    NoteWritten(buffer, MemoryOf(buffer).data, buffer->size);
}

// From any memory that the host's processor reads; false: the host copies by itself.
bool CopyTensor(abi::Buffer* buffer, const abi::Tensor* source, abi::Tensor* target) {
    const Host& host = MemoryOf(buffer).device->host();
    const size_t size = host.tensor_bytes(target);
    if (source->buffer == nullptr || !host.buffer_is_host(BufferOf(*source)) ||
        source->type != target->type || size != host.tensor_bytes(source) ||
        std::memcmp(source->nb, target->nb, sizeof(source->nb)) != 0) {
        return false;
    }
    std::memmove(target->data, source->data, size);
    NoteWritten(buffer, target->data, size);
    return true;
}

abi::Buffer* NewBuffer(std::unique_ptr<Memory> memory, size_t size) {
    abi::BufferFunctions functions = {};
    functions.free_buffer = kTraced<"free_buffer", FreeBuffer>;
    functions.get_base = kTraced<"get_base", GetBase>;
    functions.memset_tensor = kTraced<"memset_tensor", FillTensor>;
    functions.set_tensor = kTraced<"set_tensor", SetTensor>;
    functions.get_tensor = kTraced<"get_tensor", GetTensor>;
    functions.cpy_tensor = kTraced<"cpy_tensor", CopyTensor>;
    functions.clear = kTraced<"clear", Clear>;
    PluginDevice& device = *memory->device;
    return device.host().buffer_init(device.buffer_type(), functions, memory.release(), size);
}

template <typename Table>
PluginDevice& DeviceOfType(abi::BufferType* type) {
    return DeviceOf(reinterpret_cast<Table*>(type)->device);
}

template <typename Table>
abi::Buffer* AllocBuffer(abi::BufferType* type, size_t size) {
    const Status fault = InjectedFault("buffer", ErrorCode::kOutOfHostMemory);
    Result<std::unique_ptr<Pages>> pages =
        fault.ok() ? Pages::Allocate(size) : Result<std::unique_ptr<Pages>>(fault.error());
    if (!pages.ok()) {
        LogError("ggml: a buffer could not be made. {}", pages.error().message);
        return nullptr;
    }
    auto memory = std::make_unique<Memory>();
    memory->device = &DeviceOfType<Table>(type);
    memory->pages = std::move(*pages);
    memory->data = memory->pages->data();
    return NewBuffer(std::move(memory), size);
}

template <typename Table>
size_t Alignment(abi::BufferType* type) {
    return DeviceOfType<Table>(type).alignment();
}

template <typename Table>
const char* TypeName(abi::BufferType* type) {
    return DeviceOfType<Table>(type).name().c_str();
}

bool IsHost(abi::BufferType*) {
    return true;
}

}  // namespace

template <typename Table>
void FillBufferType(Table& table, PluginDevice& device) {
    table.get_name = kTraced<"buffer_type_get_name", TypeName<Table>>;
    table.alloc_buffer = kTraced<"alloc_buffer", AllocBuffer<Table>>;
    table.get_alignment = kTraced<"get_alignment", Alignment<Table>>;
    table.is_host = kTraced<"is_host", IsHost>;
    table.device = device.handle();
}
template void FillBufferType(abi::BufferType2&, PluginDevice&);
template void FillBufferType(abi::BufferType3&, PluginDevice&);

abi::Buffer* BufferOf(const abi::Tensor& tensor) {
    return tensor.view_src == nullptr ? tensor.buffer : tensor.view_src->buffer;
}

abi::Device* DeviceHandleOf(const abi::Buffer* buffer) {
    return buffer->functions.get_base == kTraced<"get_base", GetBase>
               ? MemoryOf(buffer).device->handle()
               : nullptr;
}

abi::Buffer* BufferOfPointer(PluginDevice& device, void* data, size_t size) {
    auto memory = std::make_unique<Memory>();
    memory->device = &device;
    memory->data = static_cast<uint8_t*>(data);
    return NewBuffer(std::move(memory), size);
}

}  // namespace fornax::ggml_plugin
