// Sockets as events, and the thread that polls those of others.
#include "hal/support/sync_file.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <system_error>

#include <fmt/format.h>

#include "hal/support/host_timeline.h"
#include "hal/support/shared_file.h"
#include "hal/support/wait_hub.h"

namespace fornax::hal {

namespace {

// Readable, hung up or broken: nothing else will come.
bool Ready(short events) {
    return (events & (POLLIN | POLLHUP | POLLERR | POLLNVAL)) != 0;
}

}  // namespace

Result<SyncPair> CreateSyncPair() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
        return SystemError(ErrorCode::kOutOfHostMemory, "The system gives no socket to signal by");
    }
    return SyncPair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

void SignalSyncPair(UniqueFd& signal_end) {
    // That nobody listens any more is no error.
    const char byte = 1;
    (void)send(signal_end.get(), &byte, 1, MSG_NOSIGNAL);
    signal_end.Reset();
}

SyncFileWatcher::~SyncFileWatcher() {
    if (hub_->Forked()) {
        (void)thread_.release();  // it exists in the parent only
        return;
    }
    Stop();
}

void SyncFileWatcher::Stop() {
    if (!thread_) {
        return;
    }
    {
        std::lock_guard lock(mutex_);
        stop_ = true;
    }
    eventfd_write(bell_.get(), 1);
    thread_->join();
    thread_.reset();
}

Result<std::shared_ptr<Timeline>> SyncFileWatcher::Import(int file) {
    if (hub_->Forked()) {
        return hub_->status().error();
    }
    pollfd now = {.fd = file, .events = POLLIN, .revents = 0};
    if (file < 0 || poll(&now, 1, 0) < 0 || (now.revents & POLLNVAL) != 0) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("The imported sync file {} is no file.", file)};
    }
    if (Ready(now.revents)) {
        return HostTimeline::Make(hub_, 1);
    }
    auto timeline = HostTimeline::Make(hub_, 0);
    FORNAX_ASSIGN_OR_RETURN(UniqueFd copy, DuplicateFile(file));
    std::lock_guard lock(mutex_);
    if (!thread_) {
        FORNAX_RETURN_IF_ERROR(StartThread());
    }
    arrived_.push_back({std::move(copy), timeline});
    eventfd_write(bell_.get(), 1);
    return timeline;
}

Status SyncFileWatcher::StartThread() {
    bell_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (bell_.get() < 0) {
        return SystemError(ErrorCode::kOutOfHostMemory, "The system gives no event for sync files");
    }
    // Signals belong to the application's threads.
    sigset_t all;
    sigset_t previous;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &previous);
    Status status;
    try {
        thread_ = std::make_unique<std::thread>([this] { ThreadMain(); });
    } catch (const std::system_error& failure) {
        status =
            Error{ErrorCode::kOutOfHostMemory,
                  fmt::format("The system gives no thread for sync files: {}.", failure.what())};
    }
    pthread_sigmask(SIG_SETMASK, &previous, nullptr);
    return status;
}

void SyncFileWatcher::ThreadMain() {
    pthread_setname_np(pthread_self(), "fornax-sync");
    std::vector<Watched> watched;
    std::vector<pollfd> polled;
    for (;;) {
        // Who dropped the timeline waits no more.
        std::erase_if(watched, [](const Watched& one) { return one.timeline.expired(); });
        {
            std::lock_guard lock(mutex_);
            if (stop_) {
                return;
            }
            for (Watched& one : arrived_) {
                watched.push_back(std::move(one));
            }
            arrived_.clear();
        }
        polled.assign(1, {.fd = bell_.get(), .events = POLLIN, .revents = 0});
        for (const Watched& one : watched) {
            polled.push_back({.fd = one.file.get(), .events = POLLIN, .revents = 0});
        }
        if (poll(polled.data(), polled.size(), -1) <= 0) {
            continue;
        }
        eventfd_t rung = 0;
        eventfd_read(bell_.get(), &rung);
        for (size_t i = watched.size(); i-- > 0;) {
            if (!Ready(polled[i + 1].revents)) {
                continue;
            }
            if (const auto timeline = watched[i].timeline.lock()) {
                timeline->Advance(1);
            }
            watched.erase(watched.begin() + static_cast<std::ptrdiff_t>(i));
        }
    }
}

}  // namespace fornax::hal
