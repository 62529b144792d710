#include "driver/dispatch_records.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>

#include "base/per_process.h"
#include "compiler/kernel/interface/kernel_desc.h"

namespace fornax::driver {

namespace {

// All are forgotten when their keys have more words than this, which are 8 MiB.
constexpr size_t kMostWords = size_t{1} << 20;

struct Memories {
    std::mutex mutex;
    std::map<uint64_t, uint64_t> numbers;  // by address
};

// A memory for each address at which a buffer begins, numbered by when it was first accessed, so
// that records do not depend on where memory happens to lie. Buffers that overlap are taken for
// different ones.
uint64_t MemoryOf(uint64_t address) {
    static auto* const memories = new PerProcess<Memories>;
    Memories& all = memories->Get();
    std::lock_guard lock(all.mutex);
    return all.numbers.try_emplace(address, all.numbers.size() + 1).first->second;
}

// Bit n: there are several workgroups along axis n.
uint32_t GridAxesOf(const hal::DispatchFrame& frame) {
    uint32_t axes = 0;
    for (uint32_t axis = 0; axis < 3; ++axis) {
        axes |= frame.workgroup_count[axis] > 1 ? 1U << axis : 0;
    }
    return axes;
}

// Where the buffers lie that the kernel accesses; 0 bytes of those that were not bound.
hal::BufferDescriptor DescriptorOf(const kernel::CostBuffer& buffer,
                                   const hal::KernelDesc& desc,
                                   const hal::DispatchFrame& frame) {
    hal::BufferDescriptor descriptor = {};
    if (buffer.set >= 32 || (desc.descriptor_set_mask >> buffer.set & 1) == 0) {
        return descriptor;
    }
    std::memcpy(
        &descriptor,
        static_cast<const std::byte*>(frame.descriptor_sets[buffer.set]) + buffer.offset_bytes,
        sizeof(descriptor));
    if (buffer.dynamic_offset != kernel::kNone) {
        descriptor.address += frame.dynamic_offsets[buffer.dynamic_offset];
    }
    return descriptor;
}

}  // namespace

npu::DispatchRecord DispatchRecords::Of(const hal::Executable& executable,
                                        const hal::DispatchFrame& frame,
                                        uint64_t workgroups,
                                        std::span<const uint64_t> region_counts) {
    const hal::KernelDesc& desc = executable.desc();
    const auto& cost = kernel::KernelOf(executable).cost;
    if (!cost) {
        return {.name = desc.name, .workgroups = workgroups};
    }
    const uint32_t grid_axes = GridAxesOf(frame);
    key_.assign({reinterpret_cast<uintptr_t>(desc.code.get()), workgroups, grid_axes});
    key_.insert(key_.end(), region_counts.begin(), region_counts.end());
    const size_t buffers_begin = key_.size();
    for (const kernel::CostBuffer& buffer : cost->buffers) {
        const hal::BufferDescriptor descriptor = DescriptorOf(buffer, desc, frame);
        key_.push_back(descriptor.address);
        key_.push_back(descriptor.size_bytes);
    }
    if (const auto found = records_.find(key_);
        found != records_.end() && found->second.kernel.lock() == desc.code) {
        npu::DispatchRecord record = found->second.record;
        record.name = desc.name;
        return record;
    }
    std::vector<npu::MemoryRange> ranges(cost->buffers.size());
    for (size_t i = 0; i < ranges.size(); ++i) {
        const uint64_t address = key_[buffers_begin + 2 * i],
                       bytes = key_[buffers_begin + 2 * i + 1];
        if (bytes > 0) {
            ranges[i] = {.memory = MemoryOf(address), .bytes = std::min(bytes, npu::kMaxCount)};
        }
    }
    npu::DispatchRecord record = kernel::DispatchRecordOf(
        *cost, desc.name, workgroups, region_counts, ranges, grid_axes, with_lines_);
    if (kept_words_ + key_.size() > kMostWords) {
        records_.clear();
        kept_words_ = 0;
    }
    kept_words_ += key_.size();
    records_.insert_or_assign(key_, Kept{.kernel = desc.code, .record = record});
    return record;
}

}  // namespace fornax::driver
