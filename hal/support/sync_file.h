// Sync files: one-shot events as files, to be polled, handed to other processes and imported.
//
// A sync file is one end of a pair of sockets. The signal writes a byte and closes the other end,
// so the file can be read from then on; if the signaller goes without that, the file is hung up,
// which ends waits, too. It is no sync_file of the kernel: poll() works, that type's ioctls do not.
#pragma once

#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "hal/timeline.h"

namespace fornax::hal {

class WaitHub;

struct SyncPair {
    UniqueFd file;
    UniqueFd signal_end;
};

Result<SyncPair> CreateSyncPair();
// Consumes the end.
void SignalSyncPair(UniqueFd& signal_end);

// Turns files that become readable into timelines of one device. Starts a thread with the first
// file that is not readable yet. Thread-safe.
class SyncFileWatcher {
  public:
    explicit SyncFileWatcher(std::shared_ptr<WaitHub> hub) : hub_(std::move(hub)) {}
    ~SyncFileWatcher();
    SyncFileWatcher(const SyncFileWatcher&) = delete;
    SyncFileWatcher& operator=(const SyncFileWatcher&) = delete;

    // Ends the thread, as the destructor does.
    void Stop();

    // Device::ImportSyncFile.
    Result<std::shared_ptr<Timeline>> Import(int file);

  private:
    struct Watched {
        UniqueFd file;
        std::weak_ptr<Timeline> timeline;
    };

    Status StartThread();
    void ThreadMain();

    const std::shared_ptr<WaitHub> hub_;
    std::mutex mutex_;
    std::unique_ptr<std::thread> thread_;
    std::vector<Watched> arrived_;  // not seen by the thread yet
    bool stop_ = false;
    UniqueFd bell_;  // an eventfd
};

}  // namespace fornax::hal
