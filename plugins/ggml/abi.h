// ggml's structures as a backend in a shared library meets them, declared from what its interface
// is known to be: ggml publishes no header for them. They differ between versions; layouts.cpp says
// which versions have which layout.
//
// Names of members follow ggml's. Nothing here depends on ggml's files.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fornax::ggml_plugin::abi {

struct Buffer;
struct BufferType;
struct Device;
struct Backend;
struct Registry;
struct Graph;
struct Event;

enum Status : int { kStatusAllocFailed = -2, kStatusFailed = -1, kStatusSuccess = 0 };

inline constexpr int kDeviceTypeCpu = 0, kDeviceTypeGpu = 1;
inline constexpr int32_t kFlagCompute = 16;
inline constexpr int kUsageWeights = 1;

// The same in all supported versions; checked on loading against ggml_tensor_overhead().
struct Tensor {
    int type;
    Buffer* buffer;
    int64_t ne[4];
    size_t nb[4];
    int op;
    int32_t op_params[16];
    int32_t flags;
    Tensor* src[10];
    Tensor* view_src;
    size_t view_offs;
    void* data;
    char name[64];
    void* extra;
    char padding[8];
};
static_assert(sizeof(Tensor) == 336 && offsetof(Tensor, op) == 80 && offsetof(Tensor, data) == 248);
// What precedes a tensor in ggml's memory, part of ggml_tensor_overhead().
inline constexpr size_t kObjectBytes = 32;

// --- Buffers -------------------------------------------------------------------------------------

struct BufferFunctions {
    void (*free_buffer)(Buffer*);
    void* (*get_base)(Buffer*);
    Status (*init_tensor)(Buffer*, Tensor*);
    void (*memset_tensor)(Buffer*, Tensor*, uint8_t value, size_t offset, size_t size);
    void (*set_tensor)(Buffer*, Tensor*, const void* data, size_t offset, size_t size);
    void (*get_tensor)(Buffer*, const Tensor*, void* data, size_t offset, size_t size);
    void (*set_tensor_2d)();
    void (*get_tensor_2d)();
    bool (*cpy_tensor)(Buffer*, const Tensor* src, Tensor* dst);
    void (*clear)(Buffer*, uint8_t value);
    void (*reset)(Buffer*);
};

// Made by ggml_backend_buffer_init(), as members behind these are of some versions only.
struct Buffer {
    BufferFunctions functions;
    BufferType* type;
    void* context;
    size_t size;
    int usage;
};

using GetBufferTypeName = const char* (*)(BufferType*);
using AllocBuffer = Buffer* (*)(BufferType*, size_t size);
using GetAlignment = size_t (*)(BufferType*);
using GetMaxSize = size_t (*)(BufferType*);
using GetAllocSize = size_t (*)(BufferType*, const Tensor*);
using IsHost = bool (*)(BufferType*);

// API version 2.
struct BufferType2 {
    GetBufferTypeName get_name;
    AllocBuffer alloc_buffer;
    GetAlignment get_alignment;
    GetMaxSize get_max_size;
    GetAllocSize get_alloc_size;
    IsHost is_host;
    Device* device;
    void* context;
};

// API version 3: lists of tensors may be allocated together.
struct BufferType3 {
    GetBufferTypeName get_name;
    AllocBuffer alloc_buffer;
    Buffer* (*alloc_buffer_n)(BufferType*, Tensor**, int count);
    GetAlignment get_alignment;
    GetMaxSize get_max_size;
    GetAllocSize get_alloc_size;
    size_t (*get_alloc_size_n)(BufferType*, Tensor**, int count);
    IsHost is_host;
    Device* device;
    void* context;
};

// --- Backends ------------------------------------------------------------------------------------

struct BackendFunctions {
    const char* (*get_name)(Backend*);
    void (*free)(Backend*);
    void (*set_tensor_async)(Backend*, Tensor*, const void* data, size_t offset, size_t size);
    void (*get_tensor_async)(Backend*, const Tensor*, void* data, size_t offset, size_t size);
    void (*set_tensor_2d_async)();
    void (*get_tensor_2d_async)();
    bool (*cpy_tensor_async)(Backend* from, Backend* to, const Tensor* src, Tensor* dst);
    void (*synchronize)(Backend*);
    void* (*graph_plan_create)(Backend*, const Graph*);
    void (*graph_plan_free)(Backend*, void* plan);
    void (*graph_plan_update)(Backend*, void* plan, const Graph*);
    Status (*graph_plan_compute)(Backend*, void* plan);
    Status (*graph_compute)(Backend*, Graph*);
    void (*event_record)(Backend*, Event*);
    void (*event_wait)(Backend*, Event*);
    // Its parameters differ between versions of one API version.
    void (*graph_optimize)();
};

// Nodes are read through functions; this is for what has none.
struct Graph {
    int size, n_nodes, n_leafs;
    Tensor **nodes, **grads, **grad_accs, **leafs;
    int32_t* use_counts;
    struct {
        size_t size;
        uint32_t* used;
        Tensor** keys;
    } visited;
    int order;
    // Graphs with the same number are the same graph, unchanged; 0 says nothing. Not in all
    // versions: see Host::IdentifierOf().
    uint64_t identifier;
};
// What a graph of two nodes takes in a version that has the number: lists of two nodes and two
// leaves, and a hash table of five slots with counts, keys and bits, in all a multiple of 16. A
// structure without the number would take 16 bytes less.
inline constexpr size_t kGraphOfTwoBytes = sizeof(Graph) + 112;

struct Backend {
    const uint8_t* guid;  // 16 bytes
    BackendFunctions functions;
    Device* device;
    void* context;
};

struct Event {
    Device* device;
    void* context;
};

struct DeviceCapabilities {
    bool async;
    bool host_buffer;
    bool buffer_from_host_ptr;
    bool events;
    bool mmap_support;  // padding before ggml 0.27
};

struct DeviceProperties {
    const char* name;
    const char* description;
    size_t memory_free;
    size_t memory_total;
    int type;
    const char* device_id;
    DeviceCapabilities capabilities;
};

struct DeviceFunctions {
    const char* (*get_name)(Device*);
    const char* (*get_description)(Device*);
    void (*get_memory)(Device*, size_t* free, size_t* total);
    int (*get_type)(Device*);
    void (*get_props)(Device*, DeviceProperties*);
    Backend* (*init_backend)(Device*, const char* parameters);
    BufferType* (*get_buffer_type)(Device*);
    BufferType* (*get_host_buffer_type)(Device*);
    Buffer* (*buffer_from_host_ptr)(Device*, void* data, size_t size, size_t max_tensor_size);
    bool (*supports_op)(Device*, const Tensor*);
    bool (*supports_buft)(Device*, BufferType*);
    bool (*offload_op)(Device*, const Tensor*);
    Event* (*event_new)(Device*);
    void (*event_free)(Device*, Event*);
    void (*event_synchronize)(Device*, Event*);
};

struct Device {
    DeviceFunctions functions;
    Registry* registry;
    void* context;
};

struct RegistryFunctions {
    const char* (*get_name)(Registry*);
    size_t (*get_device_count)(Registry*);
    Device* (*get_device)(Registry*, size_t index);
    void* (*get_proc_address)(Registry*, const char* name);
};

struct Registry {
    int api_version;
    RegistryFunctions functions;
    void* context;
};

}  // namespace fornax::ggml_plugin::abi
