// Submission, the ring's two ends, and the life of the command processor's thread.
#include "hal/model/queue.h"

#include <pthread.h>
#include <signal.h>

#include <system_error>

#include <fmt/format.h>

#include "hal/model/device.h"
#include "hal/model/float_mode.h"
#include "hal/model/foresee.h"
#include "hal/model/kernel_guard.h"

namespace fornax::hal::model {

namespace {

// Who submits faster than the device works is held back when so many submissions are pending, for
// some milliseconds each: memory stays bounded for all practical purposes, and yet nobody waits for
// what only the same thread can do.
constexpr uint64_t kManyPending = 16'384;
constexpr uint64_t kMostPatienceNs = 10'000'000;
// How long a queue that is destroyed waits for the kernel that runs, before it loses the device.
constexpr uint64_t kPatienceAtEndNs = 100'000'000;

}  // namespace

size_t Submission::packet_count() const {
    return std::max<size_t>(1, values.size() + stream_count);
}

// Waits, chains and signals in this order; a submission of nothing is one NOP.
Packet Submission::MakePacket(size_t index) const {
    Packet packet;
    if (index < wait_count) {
        packet.header = {.opcode = Opcode::kTimelineWait, .operand = static_cast<uint32_t>(index)};
        packet.timeline = {values[index]};
    } else if (index < wait_count + stream_count) {
        packet.header = {.opcode = Opcode::kChain,
                         .operand = static_cast<uint32_t>(index - wait_count)};
    } else if (const size_t timeline = index - stream_count; timeline < values.size()) {
        packet.header = {.opcode = Opcode::kTimelineSignal,
                         .operand = static_cast<uint32_t>(timeline)};
        packet.timeline = {values[timeline]};
    }
    if (index + 1 == packet_count()) {
        packet.header.flags |= kRingEndOfSubmission;
    }
    return packet;
}

ModelQueue::ModelQueue(std::shared_ptr<ModelDevice> device)
    : device_(std::move(device)),
      hub_(device_->hub()),
      counters_(std::make_shared<CounterBlock>()),
      progress_(hub_, 0),
      ring_(std::make_unique<Ring>()),
      processor_(std::make_unique<CommandProcessor>(
          ProcessorContext{.hub = *hub_,
                           .heap = device_->host_heap(),
                           .pool = device_->pool(),
                           .counters = *counters_,
                           .stop = stop_,
                           .observer = device_->observer(),
                           .queue = device_->NextQueueIndex()})) {}

ModelQueue::~ModelQueue() {
    if (hub_->Forked()) {
        // The thread exists in the parent only. What it was working on is left alone.
        (void)thread_.release();
        (void)ring_.release();
        (void)processor_.release();
        new std::deque<Submission*>(std::move(backlog_));
        return;
    }
    Stop();
    // The thread has gone without the packets that it did not run; each submission is released with
    // its last packet, or here when that never came into the ring.
    while (!ring_->Empty()) {
        const Ring::Entry entry = ring_->Front();
        if ((entry.packet.header.flags & kRingEndOfSubmission) != 0) {
            delete entry.submission;
        }
        ring_->Pop();
    }
    for (Submission* submission : backlog_) {
        delete submission;
    }
}

void ModelQueue::Stop() {
    stop_.store(true, std::memory_order_seq_cst);
    RingDoorbell();
    hub_->Notify();
    if (thread_) {
        const uint64_t begin_ns = MonotonicNanoseconds();
        uint64_t waited_ns = 0;
        while (ended_.load(std::memory_order_acquire) == 0 && waited_ns < kPatienceAtEndNs &&
               !hub_->lost()) {
            FutexWait(ended_, 0, kPatienceAtEndNs - waited_ns);
            waited_ns = MonotonicNanoseconds() - begin_ns;
        }
    }
    // Before the thread is waited for: a lost device leaves the kernel that runs.
    if (const uint64_t left = last_serial_ - progress_.value(); left != 0) {
        hub_->Lose(fmt::format("A queue was destroyed while {} of its submissions were unfinished.",
                               left));
    }
    if (thread_) {
        thread_->join();
        thread_.reset();
    }
}

Status ModelQueue::Submit(const SubmitInfo& info) {
    if (hub_->lost()) {
        return hub_->status();
    }
    auto submission = std::make_unique<Submission>();
    submission->wait_count = info.waits.size();
    const size_t timeline_count = info.waits.size() + info.signals.size();
    submission->resources.timelines.reserve(timeline_count);
    submission->values.reserve(timeline_count);
    for (const std::span<const TimelinePoint> points : {info.waits, info.signals}) {
        for (const TimelinePoint& point : points) {
            if (!HostTimeline::BelongsTo(point.timeline.get(), *hub_)) {
                return Error{ErrorCode::kInvalidArgument,
                             "A submission names a timeline that is null or of another device."};
            }
            submission->resources.timelines.push_back(point.timeline);
            submission->values.push_back(point.value);
        }
    }
    for (const std::shared_ptr<const CommandStream>& stream : info.streams) {
        if (stream == nullptr) {
            return Error{ErrorCode::kInvalidArgument,
                         "A submission names a command stream that is null."};
        }
    }
    for (const std::shared_ptr<const CommandStream>& stream : info.streams) {
        ForeseeDispatches(*stream, device_->host_heap());
    }
    submission->stream_count = info.streams.size();
    submission->resources.streams.assign(info.streams.begin(), info.streams.end());

    uint64_t serial = 0;
    {
        std::lock_guard lock(mutex_);
        if (!thread_) {
            FORNAX_RETURN_IF_ERROR(StartThread());
        }
        serial = submission->serial = ++last_serial_;
        backlog_.push_back(submission.release());
        FillRing();
    }
    RingDoorbell();
    if (serial > kManyPending && progress_.value() < serial - kManyPending &&
        !processor_->blocked()) {
        (void)progress_.Wait(serial - kManyPending, kMostPatienceNs);
    }
    return OkStatus();
}

Status ModelQueue::WaitIdle(uint64_t timeout_ns) {
    if (hub_->Forked()) {
        return hub_->status();
    }
    uint64_t serial;
    {
        std::lock_guard lock(mutex_);
        serial = last_serial_;
    }
    return progress_.Wait(serial, timeout_ns);
}

Status ModelQueue::StartThread() {
    device_->InstallFaultHandlers();
    // Signals belong to the application's threads.
    sigset_t all;
    sigset_t previous;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &previous);
    Status status;
    try {
        thread_ = std::make_unique<std::thread>([this] {
            ThreadMain();
            ended_.store(1, std::memory_order_seq_cst);
            FutexWake(ended_);
        });
    } catch (const std::system_error& failure) {
        status = Error{ErrorCode::kOutOfHostMemory,
                       fmt::format("The system gives no thread for a queue: {}.", failure.what())};
    }
    pthread_sigmask(SIG_SETMASK, &previous, nullptr);
    return status;
}

// Moves packets from the backlog into the ring while there is room. Under mutex_.
void ModelQueue::FillRing() {
    while (!backlog_.empty()) {
        Submission* submission = backlog_.front();
        const size_t count = submission->packet_count();
        while (submission->next_packet < count &&
               ring_->TryWrite(submission->MakePacket(submission->next_packet), submission)) {
            ++submission->next_packet;
        }
        if (submission->next_packet < count) {
            break;
        }
        backlog_.pop_front();
    }
    // A submission that is partly in the ring is neither released by the consumer (its last packet
    // is missing) nor here.
    has_backlog_.store(!backlog_.empty(), std::memory_order_seq_cst);
    ring_->Publish();
}

void ModelQueue::RingDoorbell() {
    if (asleep_.load(std::memory_order_seq_cst) != 0) {
        rung_ns_.store(MonotonicNanoseconds(), std::memory_order_relaxed);
        doorbell_.fetch_add(1, std::memory_order_seq_cst);
        FutexWake(doorbell_);
    }
}

// Returns false when the queue is to stop.
bool ModelQueue::WaitForWork() {
    const auto ready = [this] {
        return !ring_->Empty() || has_backlog_.load(std::memory_order_seq_cst) ||
               stop_.load(std::memory_order_seq_cst);
    };
    while (!ready() && processor_->IdleObserver()) {
    }
    if (ready()) {
        return !stop_.load(std::memory_order_seq_cst);
    }
    const uint64_t begin_ns = MonotonicNanoseconds();
    if (!spin_.Until(ready)) {
        const uint32_t seen = doorbell_.load(std::memory_order_seq_cst);
        asleep_.store(1, std::memory_order_seq_cst);
        while (!ready()) {
            FutexWait(doorbell_, seen);
            if (doorbell_.load(std::memory_order_seq_cst) != seen) {
                spin_.EventCame(begin_ns, rung_ns_.load(std::memory_order_relaxed));
                break;
            }
        }
        asleep_.store(0, std::memory_order_relaxed);
    }
    return !stop_.load(std::memory_order_seq_cst);
}

void ModelQueue::ThreadMain() {
    pthread_setname_np(pthread_self(), "fornax-queue");
    const KernelThread watched(device_->watchdog_ms());
    ScopedKernelFloatMode float_mode;
    for (;;) {
        if (has_backlog_.load(std::memory_order_seq_cst)) {
            std::lock_guard lock(mutex_);
            FillRing();
        }
        if (ring_->Empty()) {
            if (!WaitForWork()) {
                return;
            }
            continue;
        }
        if (stop_.load(std::memory_order_seq_cst)) {
            return;
        }
        Process(ring_->Front());
    }
}

void ModelQueue::Process(const Ring::Entry& entry) {
    Submission& submission = *entry.submission;
    const PacketHeader header = entry.packet.header;
    const bool last = (header.flags & kRingEndOfSubmission) != 0;
    if (&submission != begun_) {
        begun_ = &submission;
        processor_->BeginSubmission();
    }
    if (header.opcode == Opcode::kTimelineSignal || (last && header.opcode == Opcode::kNop)) {
        // Before anybody hears of the end, so that the streams' storage can be reused then.
        submission.resources.streams.clear();
    }
    // After a loss packets only pass through, so that what they hold is released.
    if (!hub_->lost()) {
        Status status = processor_->RunRingPacket(entry.packet, submission.resources);
        if (!status.ok()) {
            if (stop_.load(std::memory_order_seq_cst)) {
                return;  // the destructor deals with what is left
            }
            hub_->Lose(std::move(status).error().message);
        }
    }
    ring_->Pop();
    if (last) {
        processor_->FlushObserver();
        begun_ = nullptr;
        const uint64_t serial = submission.serial;
        counters_->submissions.Add(1);
        delete &submission;
        if (!hub_->lost()) {
            progress_.Advance(serial);
        }
    }
}

}  // namespace fornax::hal::model
