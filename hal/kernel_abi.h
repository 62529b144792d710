// The binary contract between a compiled kernel and the device that runs it.
//
// The kernel compiler emits code against these structures and the device model's workers call it;
// neither includes the other. Every field offset is part of the contract: the static_asserts below
// and kKernelAbiVersion (which is part of the key of cached native code) change together.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fornax::hal {

inline constexpr uint32_t kKernelAbiVersion = 8;

// Bytes that DispatchFrame::push_constants always points to.
inline constexpr uint32_t kPushConstantBytes = 256;

// Bytes before and behind workgroup memory that a kernel may read and write without effect: where
// only some lanes of a vector access are inside, the others fall there.
inline constexpr uint32_t kSharedMemoryMargin = 8192;

// One buffer as a kernel sees it: a device address and the bound range. A null descriptor has size
// 0.
struct BufferDescriptor {
    uint64_t address = 0;
    uint64_t size_bytes = 0;
};

// What one dispatch passes to its kernel. Read-only while the dispatch runs; shared by all workers.
struct DispatchFrame {
    const void* const* descriptor_sets =
        nullptr;                                // by set number; each points to packed descriptors
    const uint32_t* dynamic_offsets = nullptr;  // bytes, in the order of the pipeline layout
    const void* push_constants = nullptr;       // kPushConstantBytes bytes
    uint32_t workgroup_count[3] = {0, 0, 0};    // NumWorkgroups
    uint32_t base_workgroup[3] = {0, 0, 0};     // added to the workgroup's position
    const void* kernel_context = nullptr;       // the executable's KernelDesc::context
};

// Why a kernel stopped early. A kernel writes the first fault into its WorkerFrame and returns;
// what the device finds wrong with a kernel that is still running it writes itself.
enum class KernelFault : uint32_t {
    kNone = 0,
    kUnreachable = 1,  // control reached OpUnreachable
    kInterpreter = 2,  // the interpreter gave up; it has told why
    kTrap = 3,         // the processor refused an instruction: an address without memory, mostly
    kWatchdog = 4,     // a workgroup took too long
    kAbandoned = 5,    // another worker's fault ended the grid
    kNoCode = 6,       // code that is made when it is needed could not be made
};

// Words that a core's units count in. They are the worker's to add up; the unit's header says what
// they mean (hal/matrix_unit.h).
struct UnitCounts {
    static constexpr uint32_t kWords = 7;
    uint64_t words[kWords] = {};

    bool empty() const {
        for (const uint64_t word : words) {
            if (word != 0) {
                return false;
            }
        }
        return true;
    }
    UnitCounts& operator+=(const UnitCounts& other) {
        for (uint32_t i = 0; i < kWords; ++i) {
            words[i] += other.words[i];
        }
        return *this;
    }
};

// What one worker thread owns while it runs kernels. Never shared between workers.
struct WorkerFrame {
    // Workgroup memory: at least KernelDesc::shared_bytes, 64-byte aligned, and kSharedMemoryMargin
    // bytes of the same allocation on both sides.
    void* shared_memory = nullptr;
    void* scratch =
        nullptr;  // at least KernelDesc::scratch_bytes, 64-byte aligned, contents undefined
    uint32_t worker_index = 0;
    uint32_t fault = 0;  // a KernelFault
    // Kernels write the linear index of each workgroup that they begin, before anything else of it:
    // what a watchdog sees of their progress, and a report of a fault.
    uint64_t workgroup = 0;
    // Not 0: the device wants the kernel to return. For kernels that KernelDesc does not call
    // interruptible; looked at atomically and now and then.
    uint32_t stop_request = 0;
    // Kernels add what they had the core's units do, before they return.
    UnitCounts unit_counts;
    // Where kernels that count what their regions do add it up: KernelDesc::region_counters words.
    uint64_t* region_counts = nullptr;
};

// Runs the workgroups [first, first + count) in increasing order. A workgroup's linear index counts
// x fastest: index = x + workgroup_count[0] * (y + workgroup_count[1] * z).
using KernelEntry = void (*)(const DispatchFrame* dispatch,
                             WorkerFrame* worker,
                             uint64_t first_workgroup,
                             uint64_t count);

static_assert(sizeof(BufferDescriptor) == 16);
static_assert(offsetof(DispatchFrame, dynamic_offsets) == 8);
static_assert(offsetof(DispatchFrame, push_constants) == 16);
static_assert(offsetof(DispatchFrame, workgroup_count) == 24);
static_assert(offsetof(DispatchFrame, base_workgroup) == 36);
static_assert(offsetof(DispatchFrame, kernel_context) == 48);
static_assert(offsetof(WorkerFrame, scratch) == 8);
static_assert(offsetof(WorkerFrame, worker_index) == 16);
static_assert(offsetof(WorkerFrame, fault) == 20);
static_assert(offsetof(WorkerFrame, workgroup) == 24);
static_assert(offsetof(WorkerFrame, stop_request) == 32);
static_assert(offsetof(WorkerFrame, unit_counts) == 40);
static_assert(sizeof(UnitCounts) == 56);
static_assert(offsetof(WorkerFrame, region_counts) == 96);

}  // namespace fornax::hal
