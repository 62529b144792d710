// Device: the root of the hardware abstraction layer, and the factory that finds a backend by name,
// so that nothing above the HAL names one.
//
// Ownership: everything is reference-counted. A queue keeps its device alive; memory, executables
// and timelines keep alive what they need and may outlive the Device object.
// Threads: every member of Device may be called from any thread. A device starts no threads before
// the first submission.
// Fork: a child process must not use a device of its parent (its threads do not exist there); such
// use is noticed and reported as kDeviceLost, and releasing the objects there is safe. The child
// may create devices of its own.
// End: releasing a queue or a device takes bounded time, whatever it is doing (hal/queue.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hal/counters.h"
#include "hal/executable.h"
#include "hal/fault.h"
#include "hal/memory.h"
#include "hal/queue.h"
#include "hal/timeline.h"
#include "hal/work_observer.h"

namespace fornax::hal {

// The limits that hold for every backend. Packets beyond them are malformed.
inline constexpr uint32_t kMaxProgramSharedBytes = 64 * 1024;  // a program's own workgroup memory
// With what a compiler keeps there for itself, such as whether a workgroup agrees on a branch.
inline constexpr uint32_t kMaxSharedBytes = kMaxProgramSharedBytes + 64;
inline constexpr uint32_t kMaxScratchBytes = 1024 * 1024 * 1024;
inline constexpr uint32_t kMaxWorkgroupInvocations = 1024;
inline constexpr uint32_t kMaxWorkgroupSize[3] = {1024, 1024, 1024};
inline constexpr uint32_t kMaxWorkgroupCount[3] = {0x7fffffff, 65535, 65535};

struct DeviceCapabilities {
    std::string backend;        // "model", "null"
    std::string name;           // for people
    bool executes = true;       // false: kernels, copies and fills are accepted and not run
    uint32_t worker_count = 1;  // threads that run workgroups
    uint64_t heap_bytes = 0;
    uint64_t max_allocation_bytes = 0;
    uint32_t max_shared_bytes = kMaxProgramSharedBytes;
    uint32_t max_push_constant_bytes = kMaxPushConstantBytes;
    uint32_t max_workgroup_invocations = kMaxWorkgroupInvocations;
    double timestamp_period_ns = 1.0;
    uint32_t timestamp_valid_bits = 64;
};

// Ten minutes. Drivers of GPUs give a whole submission two to ten seconds, and the core that one
// workgroup runs on is up to some forty times as slow as a multiprocessor that it would have there.
inline constexpr uint64_t kDefaultWatchdogMs = 600'000;

struct DeviceOptions {
    // 0: FORNAX_THREADS, else the hardware threads that this process may use.
    uint32_t worker_count = 0;
    // 0: FORNAX_HEAP_BYTES, else a share of the machine's memory (or of its control group's).
    uint64_t heap_bytes = 0;
    // The processor time that one workgroup may take, in milliseconds; a kernel that takes more
    // loses the device. Nothing: FORNAX_WATCHDOG_MS, else kDefaultWatchdogMs. 0: as much as it
    // likes.
    std::optional<uint64_t> watchdog_ms;
    // Called at most once, when the device is lost, with the message, on the thread that noticed.
    // It must not block, nor release the last reference to anything of the device.
    std::function<void(const std::string& message)> on_lost;
    // Told of all work, where a backend does any; may be null.
    std::shared_ptr<WorkObserver> observer;
};

class Device : public std::enable_shared_from_this<Device> {
  public:
    virtual ~Device() = default;
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    const DeviceCapabilities& capabilities() const { return capabilities_; }

    // Memory of `size_bytes` (not 0), aligned as hal/memory.h says. kOutOfDeviceMemory beyond the
    // heap's limit or when the machine has no more, with both numbers in the message.
    virtual Result<std::shared_ptr<Memory>> AllocateMemory(uint64_t size_bytes,
                                                           const MemoryOptions& options = {}) = 0;
    // The first `size_bytes` of the memory behind a file of Memory::ExportFile, which stays the
    // caller's. kInvalidArgument for another file, or a shorter one.
    virtual Result<std::shared_ptr<Memory>> ImportMemoryFile(int file, uint64_t size_bytes) = 0;
    // The host's own memory, which the caller keeps mapped, readable and writable, for as long as
    // the device's memory lives. Both are multiples of kMemoryPageBytes; ranges may overlap.
    // kInvalidArgument where nothing is mapped.
    virtual Result<std::shared_ptr<Memory>> ImportHostMemory(void* pointer,
                                                             uint64_t size_bytes) = 0;
    virtual HeapState heap() const = 0;

    // kInvalidArgument, naming the limit, when the kernel asks for more than a device has.
    virtual Result<std::shared_ptr<const Executable>> CreateExecutable(KernelDesc desc) = 0;

    virtual Result<std::shared_ptr<Timeline>> CreateTimeline(uint64_t initial_value) = 0;
    // One that other devices and processes can take part in by ImportTimeline, and one that is
    // such a part: the same value, signalled and waited for by all.
    virtual Result<std::shared_ptr<Timeline>> CreateSharedTimeline(uint64_t initial_value) = 0;
    virtual Result<std::shared_ptr<Timeline>> ImportTimeline(int file) = 0;
    // A timeline that goes from 0 to 1 once `file`, which stays the caller's, can be read or its
    // other end is gone: a sync file of Timeline::ExportSyncFile, or of any other driver.
    virtual Result<std::shared_ptr<Timeline>> ImportSyncFile(int file) = 0;

    virtual Result<std::shared_ptr<Queue>> CreateQueue() = 0;

    // The clock of TIMESTAMP packets, in ticks of timestamp_period_ns. In the model it is
    // CLOCK_MONOTONIC in nanoseconds.
    virtual uint64_t TimestampNow() const = 0;

    virtual Counters counters() const = 0;

    // True from the moment the device is lost, for good. One atomic load.
    virtual bool lost() const = 0;
    // OK, or kDeviceLost with the message of what happened first.
    virtual Status status() const = 0;
    // Loses the device on purpose (driver-level failures, tests). The first message stays.
    virtual void Lose(std::string message) = 0;
    // Loses the device and ends its threads, for an owner that will not release it: kernels that
    // run are left in their middle. No other thread may be in a call of the device or its queues,
    // but for waits, which end with kDeviceLost.
    virtual void Shutdown(std::string message) = 0;
    // What is known of the kernel's fault that the device was lost by; nothing for other reasons.
    virtual std::optional<FaultReport> fault() const = 0;

  protected:
    explicit Device(DeviceCapabilities capabilities) : capabilities_(std::move(capabilities)) {}

  private:
    DeviceCapabilities capabilities_;
};

// Creates a device of the named backend; "" means FORNAX_BACKEND, else "model". Cheap (no threads,
// no memory to speak of), so it also serves to ask for capabilities. kNotFound for a name that does
// not exist, with the names that do; kInvalidArgument for a FORNAX_* variable that is not a number.
Result<std::shared_ptr<Device>> CreateDevice(std::string_view backend, DeviceOptions options = {});

// The names that CreateDevice knows.
std::vector<std::string> BackendNames();

}  // namespace fornax::hal
