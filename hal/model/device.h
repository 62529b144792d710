// The software device: the host's memory as its heap, the host's cores as its workers.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "hal/backend.h"
#include "hal/device.h"
#include "hal/model/counter_block.h"
#include "hal/model/kernel_guard.h"
#include "hal/model/worker_pool.h"
#include "hal/support/host_heap.h"
#include "hal/support/sync_file.h"
#include "hal/support/wait_hub.h"

namespace fornax::hal::model {

class ModelQueue;

Result<std::shared_ptr<Device>> CreateModelDevice(const BackendOptions& options);

class ModelDevice : public Device {
  public:
    explicit ModelDevice(const BackendOptions& options);
    ~ModelDevice() override;

    Result<std::shared_ptr<Memory>> AllocateMemory(uint64_t size_bytes,
                                                   const MemoryOptions& options) override;
    Result<std::shared_ptr<Memory>> ImportMemoryFile(int file, uint64_t size_bytes) override;
    Result<std::shared_ptr<Memory>> ImportHostMemory(void* pointer, uint64_t size_bytes) override;
    HeapState heap() const override { return heap_->state(); }
    Result<std::shared_ptr<const Executable>> CreateExecutable(KernelDesc desc) override;
    Result<std::shared_ptr<Timeline>> CreateTimeline(uint64_t initial_value) override;
    Result<std::shared_ptr<Timeline>> CreateSharedTimeline(uint64_t initial_value) override;
    Result<std::shared_ptr<Timeline>> ImportTimeline(int file) override;
    Result<std::shared_ptr<Timeline>> ImportSyncFile(int file) override;
    Result<std::shared_ptr<Queue>> CreateQueue() override;
    uint64_t TimestampNow() const override;
    Counters counters() const override;
    bool lost() const override { return hub_->lost(); }
    Status status() const override { return hub_->status(); }
    void Lose(std::string message) override { hub_->Lose(std::move(message)); }
    void Shutdown(std::string message) override;
    std::optional<FaultReport> fault() const override { return hub_->fault(); }

    // For the queues.
    const std::shared_ptr<WaitHub>& hub() const { return hub_; }
    const HostHeap& host_heap() const { return *heap_; }
    WorkerPool& pool() { return pool_; }
    uint64_t watchdog_ms() const { return pool_.watchdog_ms(); }
    WorkObserver* observer() const { return observer_.get(); }
    // By order of creation.
    uint32_t NextQueueIndex() { return next_queue_.fetch_add(1, std::memory_order_relaxed); }
    // Before the first thread: what its kernels do wrong must not end the process.
    void InstallFaultHandlers();

  private:
    const std::shared_ptr<WaitHub> hub_;
    const std::shared_ptr<HostHeap> heap_;
    const bool catch_faults_;
    const std::shared_ptr<WorkObserver> observer_;
    std::atomic<uint32_t> next_queue_{0};
    std::unique_ptr<FaultHandlers> fault_handlers_;  // under mutex_; goes after the threads
    WorkerPool pool_;
    SyncFileWatcher sync_files_{hub_};

    mutable std::mutex mutex_;
    // The counters of every queue there was, so that totals do not shrink when a queue goes.
    std::vector<std::shared_ptr<CounterBlock>> counter_blocks_;
    std::vector<std::weak_ptr<ModelQueue>> queues_;
};

}  // namespace fornax::hal::model
