// What a queue must do on any device: keep order, wait, signal, stop.
#include "hal/null/queue.h"

#include <algorithm>
#include <chrono>
#include <system_error>

#include <fmt/format.h>

#include "hal/support/futex.h"

namespace fornax::hal::null {

NullQueue::NullQueue(std::shared_ptr<Device> device, std::shared_ptr<WaitHub> hub)
    : device_(std::move(device)), hub_(std::move(hub)), progress_(hub_, 0) {}

NullQueue::~NullQueue() {
    if (hub_->Forked()) {
        // The thread exists in the parent only. What it was waiting for is left alone: the
        // condition would wait for the thread to take notice of its end.
        (void)thread_.release();
        (void)inbox_.release();
        return;
    }
    Stop();
}

void NullQueue::Stop() {
    {
        std::lock_guard lock(inbox_->mutex);
        stop_.store(true, std::memory_order_seq_cst);
    }
    inbox_->arrived.notify_one();
    hub_->Notify();
    if (thread_) {
        thread_->join();
        thread_.reset();
    }
    if (const uint64_t left = inbox_->last_serial - progress_.value(); left != 0) {
        hub_->Lose(fmt::format("A queue was destroyed while {} of its submissions were unfinished.",
                               left));
    }
}

Status NullQueue::Submit(const SubmitInfo& info) {
    if (hub_->lost()) {
        return hub_->status();
    }
    for (const std::span<const TimelinePoint> points : {info.waits, info.signals}) {
        for (const TimelinePoint& point : points) {
            if (!HostTimeline::BelongsTo(point.timeline.get(), *hub_)) {
                return Error{ErrorCode::kInvalidArgument,
                             "A submission names a timeline that is null or of another device."};
            }
        }
    }
    if (std::count(info.streams.begin(), info.streams.end(), nullptr) != 0) {
        return Error{ErrorCode::kInvalidArgument,
                     "A submission names a command stream that is null."};
    }
    {
        std::lock_guard lock(inbox_->mutex);
        if (!thread_) {
            try {
                thread_ = std::make_unique<std::thread>([this] { ThreadMain(); });
            } catch (const std::system_error& failure) {
                return Error{
                    ErrorCode::kOutOfHostMemory,
                    fmt::format("The system gives no thread for a queue: {}.", failure.what())};
            }
        }
        inbox_->works.push_back({.waits = {info.waits.begin(), info.waits.end()},
                                 .streams = {info.streams.begin(), info.streams.end()},
                                 .signals = {info.signals.begin(), info.signals.end()},
                                 .serial = ++inbox_->last_serial});
    }
    inbox_->arrived.notify_one();
    return OkStatus();
}

Status NullQueue::WaitIdle(uint64_t timeout_ns) {
    if (hub_->Forked()) {
        return hub_->status();
    }
    uint64_t serial;
    {
        std::lock_guard lock(inbox_->mutex);
        serial = inbox_->last_serial;
    }
    return progress_.Wait(serial, timeout_ns);
}

Counters NullQueue::counters() const {
    return {.submissions = submissions_.load(),
            .packets = packets_.load(),
            .barriers = barriers_.load()};
}

void NullQueue::ThreadMain() {
    for (;;) {
        Work work;
        {
            std::unique_lock lock(inbox_->mutex);
            inbox_->arrived.wait(lock, [this] { return stop_.load() || !inbox_->works.empty(); });
            if (stop_.load()) {
                return;
            }
            work = std::move(inbox_->works.front());
            inbox_->works.pop_front();
        }
        if (hub_->lost()) {
            continue;  // released without being run
        }
        Status status = RunWork(work);
        if (stop_.load()) {
            return;
        }
        if (!status.ok()) {
            hub_->Lose(std::move(status).error().message);
            continue;
        }
        submissions_.fetch_add(1);
        const uint64_t serial = work.serial;
        work = {};
        progress_.Advance(serial);
    }
}

Status NullQueue::RunWork(Work& work) {
    FORNAX_RETURN_IF_ERROR(hub_->Wait(work.waits, WaitHub::Mode::kAll, kWaitForever, &stop_));
    for (const std::shared_ptr<const CommandStream>& stream : work.streams) {
        FORNAX_RETURN_IF_ERROR(RunStream(*stream));
    }
    work.streams.clear();  // before anybody hears of the end
    for (const TimelinePoint& signal : work.signals) {
        signal.timeline->Advance(signal.value);
    }
    return OkStatus();
}

template <typename Done>
Status NullQueue::Poll(Done done) const {
    while (!done()) {
        if (hub_->lost()) {
            return hub_->status();
        }
        if (stop_.load()) {
            return Error{ErrorCode::kTimeout, "The queue was stopped during a wait."};
        }
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return OkStatus();
}

Status NullQueue::RunStream(const CommandStream& stream) {
    for (const Packet& packet : stream.packets()) {
        packets_.fetch_add(1, std::memory_order_relaxed);
        const uint32_t operand = packet.header.operand;
        auto* cell = reinterpret_cast<EventCell*>(packet.event.address);
        auto* slots = reinterpret_cast<QuerySlot*>(packet.query.slots);
        switch (packet.header.opcode) {
            case Opcode::kEventSet:
                SetEvent(*cell);
                break;
            case Opcode::kEventReset:
                ResetEvent(*cell);
                break;
            case Opcode::kEventWait:
                FORNAX_RETURN_IF_ERROR(Poll([&] { return EventIsSet(*cell); }));
                break;
            case Opcode::kTimestamp:
                WriteQuery(*slots, MonotonicNanoseconds());
                break;
            case Opcode::kCountEnd:
                for (uint32_t i = 0; i < operand; ++i) {
                    WriteQuery(slots[i], 0);  // no kernel runs, and nothing is moved
                }
                break;
            case Opcode::kQueryReset:
                ResetQueries({slots, operand});
                break;
            case Opcode::kQueryCopy: {
                const std::span<const QuerySlot> queries(slots, operand);
                if ((packet.header.flags & kQueryWait) != 0) {
                    FORNAX_RETURN_IF_ERROR(Poll([&] {
                        return std::all_of(queries.begin(), queries.end(), QueryAvailable);
                    }));
                }
                WriteQueryResults(queries, reinterpret_cast<std::byte*>(packet.query.destination),
                                  packet.query.stride_bytes, packet.header.flags);
                break;
            }
            case Opcode::kChain:
                FORNAX_RETURN_IF_ERROR(RunStream(*stream.resources().streams[operand]));
                break;
            case Opcode::kBarrier:
                barriers_.fetch_add(1, std::memory_order_relaxed);
                break;
            default:
                break;  // kernels and data: accepted, not run
        }
    }
    return OkStatus();
}

}  // namespace fornax::hal::null
