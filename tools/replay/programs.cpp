#include "tools/replay/programs.h"

#include <algorithm>

#include <fmt/format.h>

namespace fornax::tool {

Result<std::vector<npu::Record>> Together(std::span<const Program> programs) {
    std::vector<npu::Record> all;
    size_t queues = 0;
    for (const Program& program : programs) {
        const size_t first = all.size(), first_queue = queues;
        for (const npu::Record& record : program.records) {
            npu::Record& made = all.emplace_back(record);
            for (npu::RecordId& before : made.after) {
                before = npu::RecordId(first + before.value());
            }
            made.queue = npu::QueueId(first_queue + record.queue.value());
            queues = std::max<size_t>(queues, made.queue.value() + 1);
            if (programs.size() > 1) {
                std::visit(
                    [&](auto& work) { work.name = fmt::format("{}: {}", program.name, work.name); },
                    made.work);
            }
        }
    }
    if (queues > npu::kMaxQueues) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("The programs have {} queues together; there are {}.", queues,
                                 npu::kMaxQueues)};
    }
    return all;
}

Result<std::vector<ProgramTime>> ProgramTimesOf(std::span<const Program> programs,
                                                const Profile& profile) {
    std::vector<ProgramTime> times;
    size_t first = 0;
    for (const Program& program : programs) {
        if (programs.size() < 2) {
            break;
        }
        FORNAX_ASSIGN_OR_RETURN(const npu::ReplayResult alone,
                                npu::Replay(profile.description, program.records));
        npu::Cycles last = 0;
        for (size_t i = 0; i < program.records.size(); ++i) {
            last = std::max(last, profile.result.records[first + i].ended);
        }
        first += program.records.size();
        times.push_back({.name = program.name,
                         .records = program.records.size(),
                         .alone_ns = profile.Nanoseconds(alone.total),
                         .together_ns = profile.Nanoseconds(last)});
    }
    return times;
}

}  // namespace fornax::tool
