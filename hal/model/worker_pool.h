// The workers: threads that run a grid's workgroups beside the command processor that started it.
//
// A grid is a range of workgroup indices, from whose front chunks are claimed by adding to an
// atomic counter; chunks shrink with what is left (guided self-scheduling), so there is no lock and
// little traffic per workgroup, and the end of a grid is balanced. A grid whose workgroups do not
// wait for each other is cut into as many ranges as workers are wanted: each begins with its own,
// the same one in grid after grid, so that its core's caches still hold what the last grid left
// there, and then helps with the lowest range that is not finished. Where workgroups may wait for
// lower ones, there is one range for all.
//
// The command processor begins every grid alone and publishes it to the others only when the work
// is worth waking them: a small grid never leaves its thread.
//
// A workgroup that waits for lower ones never waits for ever, even with several ranges: of all
// workgroups that are not finished, the lowest is either running, and waits for nothing, or not
// claimed; the command processor, which takes the lowest that it finds, has then not gone past it.
//
// Threads start with the first published grid and live as long as the pool.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/result.h"
#include "hal/kernel_abi.h"
#include "hal/model/kernel_guard.h"
#include "hal/support/adaptive_spin.h"
#include "hal/support/wait_hub.h"

namespace fornax::hal::model {

// What one worker runs kernels with. Command processors own one each, the pool's threads too.
class Worker {
  public:
    // `lost` as KernelGuard's.
    explicit Worker(uint32_t index, const std::atomic<bool>* lost = nullptr) : guard_(lost) {
        frame_.worker_index = index;
    }
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    // Whether the frame's memory is sufficient: the whole shared-memory arena, scratch_bytes, and
    // words for counters of regions.
    bool IsPrepared(uint32_t scratch_bytes, uint32_t region_counters) const {
        return frame_.shared_memory != nullptr && scratch_bytes <= scratch_bytes_ &&
               region_counters <= region_counts_.size();
    }
    // Makes it sufficient; new counters are 0. kOutOfDeviceMemory without memory. Not while the
    // worker runs a kernel.
    Status Prepare(uint32_t scratch_bytes, uint32_t region_counters);

    WorkerFrame& frame() { return frame_; }
    KernelGuard& guard() { return guard_; }

  private:
    alignas(64) WorkerFrame frame_;
    KernelGuard guard_;
    std::byte* shared_pages_ = nullptr;  // shared memory between its margins
    uint64_t scratch_bytes_ = 0;
    std::vector<uint64_t> region_counts_;
};

// One grid. The referenced objects live until Run returns.
struct Grid {
    KernelEntry entry = nullptr;
    const DispatchFrame* frame = nullptr;
    uint64_t workgroup_count = 0;
    uint32_t scratch_bytes = 0;
    uint32_t region_counters = 0;  // KernelDesc's
    // Read and updated: what one workgroup took lately, 0 for not known.
    std::atomic<uint32_t>* workgroup_cost_ns = nullptr;
    bool independent = false;    // workgroups do not wait for each other
    bool interruptible = false;  // KernelDesc's
};

struct GridResult {
    uint32_t fault = 0;         // a KernelFault, 0 for none
    bool was_parallel = false;  // published to other workers
    // With a fault: the workgroup, by its linear index, and what the processor said of a kTrap.
    uint64_t workgroup = 0;
    Trap trap;
};

// Run may be called by several command processors at once; one of them has the threads at a time,
// and the others run their grids alone rather than wait.
class WorkerPool {
  public:
    // worker_count includes the command processor. The hub tells a forked child.
    // watchdog_ms as KernelThread's, for the pool's threads.
    WorkerPool(uint32_t worker_count, std::shared_ptr<WaitHub> hub, uint64_t watchdog_ms = 0);
    ~WorkerPool();
    WorkerPool(const WorkerPool&) = delete;
    WorkerPool& operator=(const WorkerPool&) = delete;

    uint32_t worker_count() const { return worker_count_; }
    uint64_t watchdog_ms() const { return watchdog_ms_; }

    // Ends the threads. No grid may run.
    void Stop();

    // Runs the whole grid; returns when every workgroup has finished, or earlier after a fault or
    // when the device is lost. The calling thread is in the kernels' float mode (float_mode.h).
    // `self` is the calling command processor's; its frame's counts gain those of all workers, and
    // its counts of regions are the grid's.
    // kOutOfDeviceMemory when scratch cannot be had.
    Result<GridResult> Run(Worker& self, const Grid& grid);

  private:
    // The published grid's state: the number of those taking part or about to look (low half) and
    // an epoch that is odd while a grid is open (high half).
    static constexpr uint64_t kEpoch = uint64_t{1} << 32;
    static bool IsOpen(uint64_t state) { return (state & kEpoch) != 0; }
    static uint32_t Participants(uint64_t state) { return static_cast<uint32_t>(state); }

    Status StartThreads();
    Status RunPublished(Worker& self, const Grid& grid, uint64_t first, GridResult& result);
    void ThreadMain(Worker& worker);
    void TakePart(Worker& worker);
    void Leave();
    void CutIntoRanges(uint64_t first, uint32_t count, uint64_t cost_ns);
    uint64_t RunClaims(Worker& worker, uint32_t home);
    uint64_t RunRange(Worker& worker, uint32_t index);
    void WakeSleepers(int32_t count);
    bool RunAlone(Worker& self,
                  const Grid& grid,
                  uint64_t first,
                  uint64_t count,
                  GridResult& result);

    const uint32_t worker_count_;
    const uint64_t watchdog_ms_;
    const std::shared_ptr<WaitHub> hub_;

    std::mutex owner_;  // held by the command processor that has the threads
    bool threads_started_ = false;
    uint32_t pool_scratch_bytes_ = 0;
    uint32_t pool_region_counters_ = 0;
    std::vector<std::unique_ptr<Worker>> workers_;
    std::vector<std::thread> threads_;

    // Part of the published grid. Whoever has it as its own is nearly alone on this cache line.
    struct alignas(64) Range {
        std::atomic<uint64_t> next{0};  // the first workgroup that nobody has claimed
        uint64_t end = 0;
    };

    // Written before a grid is opened, constant while it is open. On the doorbell's cache line, so
    // that who hears the bell has read the grid as well.
    alignas(64) std::atomic<uint32_t> doorbell_{0};  // changes with every published grid
    uint32_t range_count_ = 0;
    Grid grid_;
    uint64_t least_chunk_ = 1;    // claims of fewer workgroups are not worth the call
    uint64_t chunk_divisor_ = 1;  // claims are this part of what a range has left
    // Claims of more workgroups would keep a lost device waiting; follows what calls take.
    std::atomic<uint64_t> most_chunk_{1};
    const std::unique_ptr<Range[]> ranges_;

    alignas(64) std::atomic<uint64_t> state_{0};
    // Ranges below are finished; a hint, which may lag behind.
    alignas(64) std::atomic<uint32_t> first_open_{0};
    std::atomic<bool> stop_{false};
    std::atomic<uint32_t> sleepers_{0};
    std::atomic<uint64_t> rung_ns_{0};     // when the doorbell was rung last while workers slept
    std::atomic<int32_t> wake_budget_{0};  // how many more threads the grid is worth waking
    std::atomic<uint32_t> fault_{0};
    GridResult first_fault_;  // written by who sets fault_
    std::mutex counts_mutex_;
    // The counts of the threads that have left the grid.
    UnitCounts unit_counts_;
    std::vector<uint64_t> region_counts_;
    alignas(64) std::atomic<uint32_t> owner_asleep_{0};
    std::atomic<uint32_t> drained_{0};
};

}  // namespace fornax::hal::model
