// The software device's objects.
#include "hal/model/device.h"

#include <fmt/format.h>

#include "hal/model/queue.h"
#include "hal/support/host_timeline.h"
#include "hal/support/kernel_checks.h"
#include "hal/support/shared_timeline.h"

namespace fornax::hal::model {

namespace {

DeviceCapabilities MakeCapabilities(const BackendOptions& options) {
    DeviceCapabilities capabilities;
    capabilities.backend = "model";
    capabilities.name = fmt::format("software NPU, {} workers", options.worker_count);
    capabilities.worker_count = options.worker_count;
    capabilities.heap_bytes = options.heap_bytes;
    capabilities.max_allocation_bytes = options.heap_bytes;
    return capabilities;
}

}  // namespace

Result<std::shared_ptr<Device>> CreateModelDevice(const BackendOptions& options) {
    return std::shared_ptr<Device>(std::make_shared<ModelDevice>(options));
}

ModelDevice::ModelDevice(const BackendOptions& options)
    : Device(MakeCapabilities(options)),
      hub_(std::make_shared<WaitHub>(options.on_lost)),
      heap_(std::make_shared<HostHeap>(options.heap_bytes, options.guard)),
      catch_faults_(options.catch_faults),
      observer_(options.observer),
      pool_(options.worker_count, hub_, options.watchdog_ms) {}

ModelDevice::~ModelDevice() {
    if (hub_->Forked()) {
        // They are the parent's, and so may be the lock of who puts them back.
        (void)fault_handlers_.release();
    }
}

void ModelDevice::InstallFaultHandlers() {
    if (!catch_faults_) {
        return;
    }
    std::lock_guard lock(mutex_);
    if (!fault_handlers_) {
        fault_handlers_ = FaultHandlers::Acquire();
    }
}

Result<std::shared_ptr<Memory>> ModelDevice::AllocateMemory(uint64_t size_bytes,
                                                            const MemoryOptions& options) {
    return heap_->Allocate(size_bytes, options);
}

Result<std::shared_ptr<Memory>> ModelDevice::ImportMemoryFile(int file, uint64_t size_bytes) {
    return heap_->ImportFile(file, size_bytes);
}

Result<std::shared_ptr<Memory>> ModelDevice::ImportHostMemory(void* pointer, uint64_t size_bytes) {
    return heap_->ImportHost(pointer, size_bytes);
}

Result<std::shared_ptr<const Executable>> ModelDevice::CreateExecutable(KernelDesc desc) {
    FORNAX_RETURN_IF_ERROR(ValidateKernelDesc(desc));
    return std::shared_ptr<const Executable>(std::make_shared<Executable>(std::move(desc)));
}

Result<std::shared_ptr<Timeline>> ModelDevice::CreateTimeline(uint64_t initial_value) {
    return HostTimeline::Make(hub_, initial_value);
}

Result<std::shared_ptr<Timeline>> ModelDevice::CreateSharedTimeline(uint64_t initial_value) {
    FORNAX_ASSIGN_OR_RETURN(auto shared, SharedTimeline::Create(initial_value));
    return HostTimeline::Make(hub_, std::move(shared));
}

Result<std::shared_ptr<Timeline>> ModelDevice::ImportTimeline(int file) {
    FORNAX_ASSIGN_OR_RETURN(auto shared, SharedTimeline::Import(file));
    return HostTimeline::Make(hub_, std::move(shared));
}

Result<std::shared_ptr<Timeline>> ModelDevice::ImportSyncFile(int file) {
    return sync_files_.Import(file);
}

Result<std::shared_ptr<Queue>> ModelDevice::CreateQueue() {
    auto queue =
        std::make_shared<ModelQueue>(std::static_pointer_cast<ModelDevice>(shared_from_this()));
    std::lock_guard lock(mutex_);
    counter_blocks_.push_back(queue->counters());
    std::erase_if(queues_, [](const auto& other) { return other.expired(); });
    queues_.push_back(queue);
    return std::shared_ptr<Queue>(std::move(queue));
}

void ModelDevice::Shutdown(std::string message) {
    if (hub_->Forked()) {
        return;
    }
    hub_->Lose(std::move(message));
    std::vector<std::weak_ptr<ModelQueue>> queues;
    {
        std::lock_guard lock(mutex_);
        queues = queues_;
    }
    for (const std::weak_ptr<ModelQueue>& weak : queues) {
        if (const std::shared_ptr<ModelQueue> queue = weak.lock()) {
            queue->Stop();
        }
    }
    pool_.Stop();
    sync_files_.Stop();
    std::lock_guard lock(mutex_);
    fault_handlers_.reset();
}

uint64_t ModelDevice::TimestampNow() const {
    const std::optional<uint64_t> observed = observer_ ? observer_->Now() : std::nullopt;
    return observed.value_or(MonotonicNanoseconds());
}

Counters ModelDevice::counters() const {
    Counters totals;
    std::lock_guard lock(mutex_);
    for (const std::shared_ptr<CounterBlock>& block : counter_blocks_) {
        block->AddTo(totals);
    }
    return totals;
}

}  // namespace fornax::hal::model
