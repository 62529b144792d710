// The null device's objects.
#include "hal/null/device.h"

#include <mutex>
#include <vector>

#include "hal/null/queue.h"
#include "hal/support/futex.h"
#include "hal/support/host_heap.h"
#include "hal/support/host_timeline.h"
#include "hal/support/kernel_checks.h"
#include "hal/support/shared_timeline.h"
#include "hal/support/sync_file.h"
#include "hal/support/wait_hub.h"

namespace fornax::hal::null {

namespace {

DeviceCapabilities MakeCapabilities(const BackendOptions& options) {
    DeviceCapabilities capabilities;
    capabilities.backend = "null";
    capabilities.name = "null device";
    capabilities.executes = false;
    capabilities.heap_bytes = options.heap_bytes;
    capabilities.max_allocation_bytes = options.heap_bytes;
    return capabilities;
}

class NullDevice : public Device {
  public:
    explicit NullDevice(const BackendOptions& options)
        : Device(MakeCapabilities(options)),
          hub_(std::make_shared<WaitHub>(options.on_lost)),
          heap_(std::make_shared<HostHeap>(options.heap_bytes, options.guard)) {}

    Result<std::shared_ptr<Memory>> AllocateMemory(uint64_t size_bytes,
                                                   const MemoryOptions& options) override {
        return heap_->Allocate(size_bytes, options);
    }
    Result<std::shared_ptr<Memory>> ImportMemoryFile(int file, uint64_t size_bytes) override {
        return heap_->ImportFile(file, size_bytes);
    }
    Result<std::shared_ptr<Memory>> ImportHostMemory(void* pointer, uint64_t size_bytes) override {
        return heap_->ImportHost(pointer, size_bytes);
    }
    HeapState heap() const override { return heap_->state(); }

    Result<std::shared_ptr<const Executable>> CreateExecutable(KernelDesc desc) override {
        FORNAX_RETURN_IF_ERROR(ValidateKernelDesc(desc));
        return std::shared_ptr<const Executable>(std::make_shared<Executable>(std::move(desc)));
    }

    Result<std::shared_ptr<Timeline>> CreateTimeline(uint64_t initial_value) override {
        return HostTimeline::Make(hub_, initial_value);
    }

    Result<std::shared_ptr<Timeline>> CreateSharedTimeline(uint64_t initial_value) override {
        FORNAX_ASSIGN_OR_RETURN(auto shared, SharedTimeline::Create(initial_value));
        return HostTimeline::Make(hub_, std::move(shared));
    }

    Result<std::shared_ptr<Timeline>> ImportTimeline(int file) override {
        FORNAX_ASSIGN_OR_RETURN(auto shared, SharedTimeline::Import(file));
        return HostTimeline::Make(hub_, std::move(shared));
    }

    Result<std::shared_ptr<Timeline>> ImportSyncFile(int file) override {
        return sync_files_.Import(file);
    }

    Result<std::shared_ptr<Queue>> CreateQueue() override {
        auto queue = std::make_shared<NullQueue>(shared_from_this(), hub_);
        std::lock_guard lock(mutex_);
        queues_.push_back(queue);
        return std::shared_ptr<Queue>(std::move(queue));
    }

    uint64_t TimestampNow() const override { return MonotonicNanoseconds(); }

    // The sum over the queues that live.
    Counters counters() const override {
        Counters totals;
        std::lock_guard lock(mutex_);
        for (const std::weak_ptr<NullQueue>& weak : queues_) {
            if (const auto queue = weak.lock()) {
                const Counters counters = queue->counters();
                totals.submissions += counters.submissions;
                totals.packets += counters.packets;
                totals.barriers += counters.barriers;
            }
        }
        return totals;
    }

    bool lost() const override { return hub_->lost(); }
    Status status() const override { return hub_->status(); }
    void Lose(std::string message) override { hub_->Lose(std::move(message)); }
    void Shutdown(std::string message) override {
        if (hub_->Forked()) {
            return;
        }
        hub_->Lose(std::move(message));
        std::vector<std::weak_ptr<NullQueue>> queues;
        {
            std::lock_guard lock(mutex_);
            queues = queues_;
        }
        for (const std::weak_ptr<NullQueue>& weak : queues) {
            if (const auto queue = weak.lock()) {
                queue->Stop();
            }
        }
        sync_files_.Stop();
    }
    std::optional<FaultReport> fault() const override { return hub_->fault(); }

  private:
    const std::shared_ptr<WaitHub> hub_;
    const std::shared_ptr<HostHeap> heap_;
    SyncFileWatcher sync_files_{hub_};
    mutable std::mutex mutex_;
    std::vector<std::weak_ptr<NullQueue>> queues_;
};

}  // namespace

Result<std::shared_ptr<Device>> CreateNullDevice(const BackendOptions& options) {
    return std::shared_ptr<Device>(std::make_shared<NullDevice>(options));
}

}  // namespace fornax::hal::null
