/* Fornax: neural networks on any Vulkan device.
 *
 * A model is loaded and compiled once; sessions run it, each with a state and memory of its own:
 *
 *     fornax_model* model;
 *     fornax_session* session;
 *     if (fornax_model_load("net.onnx", NULL, &model) != FORNAX_OK) {
 *         puts(fornax_error_message());
 *     }
 *     fornax_session_create(model, &session);
 *     fornax_tensor in = {FORNAX_F32, 2, {1, 10}, data, sizeof data};
 *     fornax_tensor out = {0};
 *     fornax_run(session, &in, 1, &out, 1);
 *     ... out.data ...
 *     fornax_tensor_release(&out);
 *
 * Every function that can fail returns a fornax_status, and leaves what it was to fill untouched if
 * it fails. No function ends the process or throws. Strings are UTF-8. Pointers that functions give
 * belong to the object that they are asked of, unless said otherwise. Null objects may be
 * destroyed.
 *
 * Threads: options and tensors are used by one thread at a time. All functions of a model, and
 * fornax_run(), may be called from several threads at once. The other functions of one session are
 * for one thread at a time, and not while another one calls fornax_run() on it; sessions of one
 * model run at once. One thread may have many runs under way, each of a session of its own:
 * fornax_session_start() and fornax_session_wait().
 *
 * The interface only grows: a program that is built with an older header works with a newer
 * library of the same major version.
 */
#ifndef FORNAX_H
#define FORNAX_H

#include <stddef.h>
#include <stdint.h>

#if defined(FORNAX_BUILDING_LIBRARY)
#define FORNAX_API __attribute__((visibility("default")))
#else
#define FORNAX_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define FORNAX_VERSION_MAJOR 0
#define FORNAX_VERSION_MINOR 1

/* The library's version: major * 1000 + minor. */
FORNAX_API uint32_t fornax_version(void);

/* --- Errors ----------------------------------------------------------------------------------- */

typedef enum fornax_status {
    FORNAX_OK = 0,
    FORNAX_INVALID_ARGUMENT = 1, /* the caller or the model breaks a rule */
    FORNAX_UNSUPPORTED = 2,      /* valid, but not covered */
    FORNAX_NOT_FOUND = 3,        /* a file, device or name that does not exist */
    FORNAX_OUT_OF_HOST_MEMORY = 4,
    FORNAX_OUT_OF_DEVICE_MEMORY = 5,
    FORNAX_DEVICE_LOST = 6,
    FORNAX_TIMEOUT = 7,
    FORNAX_IO = 8,        /* the operating system refused a file operation */
    FORNAX_DATA_LOSS = 9, /* a file is damaged or of another version */
    FORNAX_INTERNAL = 10
} fornax_status;

/* A sentence about the last call of this thread that failed; "" before. Valid until the next one
 * fails. */
FORNAX_API const char* fornax_error_message(void);

/* --- Devices ---------------------------------------------------------------------------------- */

/* The numbers of VkPhysicalDeviceType. */
typedef enum fornax_device_type {
    FORNAX_DEVICE_OTHER = 0,
    FORNAX_DEVICE_INTEGRATED_GPU = 1,
    FORNAX_DEVICE_DISCRETE_GPU = 2,
    FORNAX_DEVICE_VIRTUAL_GPU = 3,
    FORNAX_DEVICE_CPU = 4
} fornax_device_type;

typedef struct fornax_device {
    char name[256];
    fornax_device_type type;
    uint32_t vulkan_major; /* of the Vulkan version that it implements; 1.2 is needed */
    uint32_t vulkan_minor;
    uint64_t memory_bytes; /* of its largest heap */
} fornax_device;

/* The devices that the Vulkan loader offers, in the order in which the option `device` counts them.
 * Fills the first `capacity` of `devices`, which may be null if that is 0, and `count` with how
 * many there are. */
FORNAX_API fornax_status fornax_devices(fornax_device* devices, size_t capacity, size_t* count);

/* --- Tensors ---------------------------------------------------------------------------------- */

/* Elements have whole bytes: those of 2 and 4 bits take one byte each, bool is a byte, 0 or 1. */
typedef enum fornax_type {
    FORNAX_BOOL = 0,
    FORNAX_I2 = 1,
    FORNAX_I4 = 2,
    FORNAX_I8 = 3,
    FORNAX_I16 = 4,
    FORNAX_I32 = 5,
    FORNAX_I64 = 6,
    FORNAX_U2 = 7,
    FORNAX_U4 = 8,
    FORNAX_U8 = 9,
    FORNAX_U16 = 10,
    FORNAX_U32 = 11,
    FORNAX_U64 = 12,
    FORNAX_F4E2M1 = 13,
    FORNAX_F8E4M3FN = 14,
    FORNAX_F8E4M3FNUZ = 15,
    FORNAX_F8E5M2 = 16,
    FORNAX_F8E5M2FNUZ = 17,
    FORNAX_F8E8M0 = 18,
    FORNAX_F16 = 19,
    FORNAX_BF16 = 20,
    FORNAX_F32 = 21,
    FORNAX_F64 = 22,
    FORNAX_STRING = 23 /* data is an array of pointers to strings that end with 0 */
} fornax_type;

/* "f32"; null for another number. */
FORNAX_API const char* fornax_type_name(fornax_type type);
/* The bytes of an element; of strings, of a pointer. */
FORNAX_API size_t fornax_type_bytes(fornax_type type);

#define FORNAX_MAX_RANK 16

/* Elements in row-major order. */
typedef struct fornax_tensor {
    fornax_type type;
    size_t rank;
    int64_t dims[FORNAX_MAX_RANK];
    void* data; /* may be null where there are no elements */
    size_t size_bytes;
    void* owner; /* the library's: null, or what fornax_tensor_release() frees */
} fornax_tensor;

/* Frees what fornax_run() allocated for an output, and sets the tensor to zeros. */
FORNAX_API void fornax_tensor_release(fornax_tensor* tensor);

/* --- Options ---------------------------------------------------------------------------------- */

typedef struct fornax_options fornax_options;

/* Null only if memory is exhausted. */
FORNAX_API fornax_options* fornax_options_create(void);
FORNAX_API void fornax_options_destroy(fornax_options* options);

/* key: value
 *   device: an index into the Vulkan loader's list or a part of a device's name; without it, a
 *     device of Fornax, else the loader's first
 *   driver: the path of a Vulkan driver's library, which then is called without the Vulkan
 *     loader, unless the environment asks for layers. Without it, the loader loads all drivers
 *     that it finds
 *   dim.NAME: what the model's dimension NAME is expected to be
 *   dynamic.NAME: 1 keeps the model's dimension NAME open: one plan is for whatever it is, where
 *     else each size gets a plan of its own, which runs faster. For models whose sizes are new at
 *     nearly each run. Dimensions without a name are called INPUT.AXIS. A name that the model does
 *     not have is an error of loading
 *   dynamic: 1 keeps all dimensions open that the model does; 0 is the default
 *   precision: of products of f32: highest (f32, the default), high, or medium (operands may be
 *     rounded to bf16, sums are of f32)
 *   strict: 1 refuses models of which a part would run on the host; 0 is the default
 *   report: 1 keeps why values lie in memory, for fornax_session_report(); 0 is the default
 *   cache: a directory for plans, their weights and pipelines, or none; without it, the user's
 *     cache directory (FORNAX_CACHE_DIR). FORNAX_CACHE_MIB limits what it takes
 *   kept_plans, kept_sizes: how many plans of a model, and sizes of a plan in each session, are
 *     kept for runs to come (8 and 4); those not used for longest go */
FORNAX_API fornax_status fornax_options_set(fornax_options* options,
                                            const char* key,
                                            const char* value);

/* What an input is expected to hold: its sizes, and its values for models in which they decide
 * shapes. Copies it. */
FORNAX_API fornax_status fornax_options_set_input(fornax_options* options,
                                                  const char* name,
                                                  const fornax_tensor* value);

/* A device of the caller, with VkInstance, PFN_vkGetInstanceProcAddr, VkPhysicalDevice, VkDevice
 * and VkQueue. They must outlive the model. The caller says which features it switched on; models
 * that need others are refused. `queue` may be null if sessions only record; else it may not be
 * used by others while a session runs. */
typedef struct fornax_vulkan_device {
    void* instance;
    void* get_instance_proc_addr;
    void* physical_device;
    void* device;
    void* queue;
    uint32_t queue_family;
    uint32_t features; /* of fornax_vulkan_feature */
} fornax_vulkan_device;

typedef enum fornax_vulkan_feature {
    FORNAX_VULKAN_INT64 = 1,          /* shaderInt64 */
    FORNAX_VULKAN_FLOAT64 = 2,        /* shaderFloat64 */
    FORNAX_VULKAN_STORAGE_8BIT = 4,   /* storageBuffer8BitAccess and shaderInt8 */
    FORNAX_VULKAN_STORAGE_16BIT = 8,  /* storageBuffer16BitAccess and shaderInt16 */
    FORNAX_VULKAN_HOST_IMPORT = 16,   /* VK_EXT_external_memory_host */
    FORNAX_VULKAN_SUBGROUP_TYPES = 32 /* shaderSubgroupExtendedTypes */
} fornax_vulkan_feature;

FORNAX_API fornax_status fornax_options_set_vulkan_device(fornax_options* options,
                                                          const fornax_vulkan_device* device);

/* --- Models ----------------------------------------------------------------------------------- */

typedef struct fornax_model fornax_model;

/* Loads an ONNX file, an FX graph of PyTorch, or a plan file of `fornax compile`. A model whose
 * sizes are known, by itself or by the options, is compiled now, or found in the cache; else that
 * is done for the first sizes that it is run with, which then may fail for what the model is.
 * `options` may be null, and may be destroyed afterwards. The file is read again when other sizes
 * need another plan. A plan file stays mapped: replace it by another rather than overwrite it. */
FORNAX_API fornax_status fornax_model_load(const char* path,
                                           const fornax_options* options,
                                           fornax_model** model);
/* The same of the file's bytes, which are copied. */
FORNAX_API fornax_status fornax_model_load_bytes(const void* data,
                                                 size_t size_bytes,
                                                 const fornax_options* options,
                                                 fornax_model** model);
/* A part of a file in memory. */
typedef struct fornax_piece {
    const void* data;
    size_t size_bytes;
} fornax_piece;

/* The same of an FX graph in pieces, which together are its file: header and structure are in the
 * first, and each weight is in one of them.
 * Pieces behind the first are not copied: they stay as they are until the model and all sessions
 * of it are destroyed. Another file has one piece. */
FORNAX_API fornax_status fornax_model_load_pieces(const fornax_piece* pieces,
                                                  size_t count,
                                                  const fornax_options* options,
                                                  fornax_model** model);
/* Sessions keep what they need of a model that is destroyed. */
FORNAX_API void fornax_model_destroy(fornax_model* model);

/* An input or output of the model. Asking for an output of a model that is not compiled yet
 * compiles it, for sizes of 1 where nothing else is known. */
typedef struct fornax_port {
    const char* name; /* the model's */
    fornax_type type;
    size_t rank;
    int64_t dims[FORNAX_MAX_RANK]; /* -1 where the size may change */
} fornax_port;

FORNAX_API size_t fornax_model_input_count(const fornax_model* model);
FORNAX_API size_t fornax_model_output_count(const fornax_model* model);
FORNAX_API fornax_status fornax_model_input(const fornax_model* model,
                                            size_t index,
                                            fornax_port* port);
FORNAX_API fornax_status fornax_model_output(const fornax_model* model,
                                             size_t index,
                                             fornax_port* port);
/* What a dimension is called that may change: the model's name of it, as in the option dim.NAME, or
 * a formula of such names ("2*n + 1"). "" of a constant, and where there is no such dimension. */
FORNAX_API const char* fornax_model_input_dim_name(const fornax_model* model,
                                                   size_t index,
                                                   size_t axis);
FORNAX_API const char* fornax_model_output_dim_name(const fornax_model* model,
                                                    size_t index,
                                                    size_t axis);
/* The name of the device that it runs on. */
FORNAX_API const char* fornax_model_device(const fornax_model* model);

/* --- Running ---------------------------------------------------------------------------------- */

typedef struct fornax_session fornax_session;

FORNAX_API fornax_status fornax_session_create(fornax_model* model, fornax_session** session);
FORNAX_API void fornax_session_destroy(fornax_session* session);
/* The model's states begin anew. Memory that the session gave is gone, bindings have ended, and
 * sizes have to be set again. */
FORNAX_API fornax_status fornax_session_reset(fornax_session* session);

/* Runs the model and waits. `inputs` are all of the model's, in order. Of each of the model's
 * outputs, type, rank and dims are set. If its data is null, the library allocates it, and
 * fornax_tensor_release() frees it; else it is where the caller wants the elements, of `size_bytes`
 * at least, and strings are not possible. If the sizes or values need another plan, it is compiled
 * first. */
FORNAX_API fornax_status fornax_run(fornax_session* session,
                                    const fornax_tensor* inputs,
                                    size_t input_count,
                                    fornax_tensor* outputs,
                                    size_t output_count);

/* --- Running in steps, without copies ------------------------------------------------------------
 * fornax_session_set_sizes(), then the memory of inputs and outputs, then any number of
 * fornax_session_run(). Memory and bindings are those of the sizes: they end with other sizes. */

/* The inputs' sizes (rank and dims; type and data are not looked at, but for inputs whose values
 * decide shapes, which have to be given). */
FORNAX_API fornax_status fornax_session_set_sizes(fornax_session* session,
                                                  const fornax_tensor* inputs,
                                                  size_t input_count);
/* 1 if the sizes are set for one value of the input, which decides shapes: another value needs
 * fornax_session_set_sizes() again. Else 0. */
FORNAX_API int fornax_session_input_decides(const fornax_session* session, size_t index);
/* The memory that runs read an input from. It keeps what is written to it. Not of strings. */
FORNAX_API fornax_status fornax_session_input_memory(fornax_session* session,
                                                     size_t index,
                                                     void** data,
                                                     size_t* size_bytes);
/* Lets runs read an input from, or write an output to, the caller's memory: in place where the
 * device can (the address a multiple of 64 serves most), else with one copy a run. `in_place` may
 * be null. It must stay until the binding ends: with another one, with null, with other sizes, or
 * with the session. */
FORNAX_API fornax_status fornax_session_bind_input(fornax_session* session,
                                                   size_t index,
                                                   const void* data,
                                                   size_t size_bytes,
                                                   int* in_place);
FORNAX_API fornax_status fornax_session_bind_output(fornax_session* session,
                                                    size_t index,
                                                    void* data,
                                                    size_t size_bytes,
                                                    int* in_place);
/* Lets runs keep a state of the model in the caller's memory, which holds its value before a run
 * and after it, by the same rules. `size_bytes` is what the state has. FX graphs of PyTorch whose
 * inputs change in place have states of these inputs' names. FORNAX_NOT_FOUND if there is none of
 * the name. */
FORNAX_API fornax_status fornax_session_bind_state(fornax_session* session,
                                                   const char* name,
                                                   void* data,
                                                   size_t size_bytes,
                                                   int* in_place);
FORNAX_API fornax_status fornax_session_run(fornax_session* session);

/* fornax_session_run() in two halves. fornax_session_start() begins a run and returns. It goes on
 * by itself, parts on the host in a thread of the library. fornax_session_wait() ends it, and
 * returns what fornax_session_run() would have; or FORNAX_TIMEOUT if the run is not done after the
 * time, and then it goes on and is waited for again (0: only asks; UINT64_MAX: until it is done).
 * The two may be called by different threads.
 *
 * In between the memory of inputs, also the caller's, stays as it is, and that of outputs is the
 * run's. A session has one run under way at most: its other functions, fornax_run() among them,
 * return FORNAX_INVALID_ARGUMENT, except for fornax_session_destroy(), which waits first, and what
 * fornax_session_step() tells of an earlier profile. The model may be used, and destroyed. If
 * fornax_session_start() fails, no run is under way. */
FORNAX_API fornax_status fornax_session_start(fornax_session* session);
FORNAX_API fornax_status fornax_session_wait(fornax_session* session, uint64_t timeout_nanoseconds);
/* An output of the last run, where it is: valid until the next run or other sizes. Before a run
 * there are type and dims only, if they do not depend on values (else FORNAX_NOT_FOUND). Not of
 * strings. */
FORNAX_API fornax_status fornax_session_output(const fornax_session* session,
                                               size_t index,
                                               fornax_tensor* output);

/* Records the model into a VkCommandBuffer of the model's device (see
 * fornax_options_set_vulkan_device), for the sizes that are set. FORNAX_UNSUPPORTED if a part runs
 * on the host. Earlier writes of inputs have to be visible to compute shaders; the outputs become
 * visible to the host, to compute shaders and to copies. The session, its sizes and bindings stay
 * as they are until the command buffer is done. */
FORNAX_API fornax_status fornax_session_record(fornax_session* session, void* command_buffer);

/* --- Profiling -------------------------------------------------------------------------------- */

/* What a step of the last fornax_session_profile() took. */
typedef struct fornax_step {
    const char* name;   /* the model's nodes that it computes; valid until the next profile */
    double nanoseconds; /* on the device, or on the host */
    int on_host;
    const char* reason; /* why on the host; "" on the device */
    int64_t operations; /* -1 where unknown, and so the others */
    int64_t bytes_read;
    int64_t bytes_written;
} fornax_step;

/* As fornax_session_run(), and takes the time of each step, which makes the run slower. */
FORNAX_API fornax_status fornax_session_profile(fornax_session* session);
FORNAX_API size_t fornax_session_step_count(const fornax_session* session);
FORNAX_API fornax_status fornax_session_step(const fornax_session* session,
                                             size_t index,
                                             fornax_step* step);

/* What the model was made to for the sizes that are set, as JSON in UTF-8: an object of
 *   name, device, sizes: {symbol: value}
 *   graph: the text of the graph as it was read, with the option `report`, else ""
 *   plan: the text of the plan
 *   inputs, outputs: [{name, type, block}], with numbers of blocks
 *   kernels: [{name, kind}], kind flat, row, product, attention or template
 *   steps, in the order of a run: [{name, kernel (null on the host), reason (why on the host),
 *     operations, bytes_read, bytes_written (null where unknown), reads, writes (of blocks)}]
 *   blocks, pieces of memory: [{name, type, kind, first, last (steps), offset, size (null where
 *     a run gives it)}], kind constant, input, output, temporary or state
 *   memory, in bytes: {constants, ports, arena, lower_bound}
 *   boundaries, why values lie in memory, with the option `report`: [{node, operation, type,
 *     reason, nodes, readers}]
 *   times, of the last fornax_session_profile() with these sizes: [{step, nanoseconds}]
 *   modelled, where the environment variable FORNAX_NPU describes a machine, else null: the same
 *     steps on it, {stamp, total_ns, energy_nj, records: [{step, run_ns, bound, ...}], ...}, or
 *     {error}, a sentence
 *
 * Members may be added. The text is valid until the next report, and as long as the session. */
FORNAX_API fornax_status fornax_session_report(fornax_session* session, const char** json);

/* --- PyTorch ---------------------------------------------------------------------------------- */

/* Gets the number of a node of an FX graph, from 0 on, and why it is not supported: a clause that
 * is valid during the call. */
typedef void (*fornax_node_callback)(void* user, uint32_t node, const char* reason);

/* Calls back for each node, in order, that Fornax does not have: the pieces are what the Python
 * package writes of a graph (docs/torch.md). Without such nodes fornax_model_load_pieces() takes
 * them. */
FORNAX_API fornax_status fornax_torch_check(const fornax_piece* pieces,
                                            size_t count,
                                            fornax_node_callback callback,
                                            void* user);

#ifdef __cplusplus
}
#endif

#endif
