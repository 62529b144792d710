#include "npu/replay/records.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/printable.h"

namespace fornax::npu {
namespace {

// a * b where it is at most `most`, else a number beyond.
uint64_t Times(uint64_t a, uint64_t b, uint64_t most) {
    return b != 0 && a > most / b ? most + 1 : a * b;
}

Status CheckDispatch(const DispatchRecord& dispatch, const std::string& where) {
    const auto fail = [&](std::string_view what, uint64_t value, uint64_t least, uint64_t most) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{} has {} {}; it must be from {} to {}.", where, value, what,
                                 least, most)};
    };
    if (dispatch.workgroups == 0 || dispatch.workgroups > kMaxCount) {
        return fail("workgroups", dispatch.workgroups, 1, kMaxCount);
    }
    const Operations& operations = dispatch.operations;
    for (const uint64_t count : {operations.simple, operations.multiply_add, operations.division,
                                 operations.special, dispatch.scalar_operations}) {
        if (count > kMaxCount) {
            return fail("operations of one kind", count, 0, kMaxCount);
        }
    }
    if (dispatch.scratchpad_bytes > kMaxCount) {
        return fail("scratchpad bytes", dispatch.scratchpad_bytes, 0, kMaxCount);
    }
    if (dispatch.scratchpad_accesses > kMaxCount) {
        return fail("single accesses of scratchpads", dispatch.scratchpad_accesses, 0, kMaxCount);
    }
    if (dispatch.passes.size() > kMaxPasses) {
        return fail("passes", dispatch.passes.size(), 0, kMaxPasses);
    }
    for (const Pass& pass : dispatch.passes) {
        for (const uint64_t count :
             {pass.operations.simple, pass.operations.multiply_add, pass.operations.division,
              pass.operations.special, pass.scratchpad_bytes, pass.scratchpad_accesses}) {
            if (count > kMaxCount) {
                return fail("operations or bytes of a pass", count, 0, kMaxCount);
            }
        }
    }
    const uint64_t last_pass = std::max<uint64_t>(1, dispatch.passes.size()) - 1;
    uint64_t bytes = 0;
    for (const Access& access : dispatch.accesses) {
        if (access.pass > last_pass) {
            return fail("as the pass of an access", access.pass, 0, last_pass);
        }
        bytes += std::min(access.bytes, kMaxCount + 1);
        if (bytes > kMaxCount) {
            return fail("bytes of accesses", bytes, 0, kMaxCount);
        }
        if (access.repeated_bytes > access.bytes) {
            return fail("repeated bytes of an access", access.repeated_bytes, 0, access.bytes);
        }
        const uint64_t end = std::max(access.range.begin, access.range.bytes);
        if (end > kMaxCount) {
            return fail("for the begin or the bytes of a range", end, 0, kMaxCount);
        }
    }
    uint64_t total = 0;
    for (const Product& product : dispatch.products) {
        if (product.pass > last_pass) {
            return fail("as the pass of a product", product.pass, 0, last_pass);
        }
        const uint64_t most = kMaxMultiplyAccumulates;
        uint64_t macs = Times(product.shape.m, product.shape.n, most);
        macs = Times(Times(macs, product.shape.k, most), product.batch, most);
        if (dispatch.split == ProductSplit::kWorkgroup) {
            macs = Times(macs, dispatch.workgroups, most);
        }
        total += macs;
        if (total > most) {
            return fail("multiply-accumulates or more", total, 0, most);
        }
        if (std::max(product.a_bytes, product.b_bytes) > kMaxCount) {
            return fail("bytes of an operand", std::max(product.a_bytes, product.b_bytes), 0,
                        kMaxCount);
        }
    }
    const uint64_t preferred = dispatch.scratchpad.preferred_bytes;
    if (Times(preferred, dispatch.workgroups, kMaxCount) > kMaxCount) {
        return fail("bytes of scratchpad in all workgroups or more", preferred, 0, kMaxCount);
    }
    if (dispatch.scratchpad.least_bytes > dispatch.scratchpad.preferred_bytes) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{} asks for at least {} bytes of scratchpad and prefers {}, "
                                 "which is less.",
                                 where, dispatch.scratchpad.least_bytes,
                                 dispatch.scratchpad.preferred_bytes)};
    }
    return OkStatus();
}

}  // namespace

const std::string& Record::name() const {
    return std::visit([](const auto& it) -> const std::string& { return it.name; }, work);
}

Status CheckRecords(std::span<const Record> records) {
    for (size_t i = 0; i < records.size(); ++i) {
        const Record& record = records[i];
        const std::string where = fmt::format("Record {} ({})", i, Printable(record.name()));
        if (!record.queue.valid() || record.queue.value() >= kMaxQueues) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("{} is of queue {}; there are {}.", where,
                                     record.queue.value(), kMaxQueues)};
        }
        for (const RecordId before : record.after) {
            if (!before.valid() || before.value() >= i) {
                return Error{ErrorCode::kInvalidArgument,
                             fmt::format("{} waits for record {}, which is not an earlier one.",
                                         where, before.value())};
            }
        }
        if (const auto* dispatch = std::get_if<DispatchRecord>(&record.work)) {
            FORNAX_RETURN_IF_ERROR(CheckDispatch(*dispatch, where));
        } else if (const uint64_t bytes = std::get<CopyRecord>(record.work).bytes;
                   bytes > kMaxCount) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("{} copies {} bytes; at most {} are allowed.", where, bytes,
                                     kMaxCount)};
        }
    }
    return OkStatus();
}

}  // namespace fornax::npu
