#include "runtime/npu/plan_records.h"

#include <algorithm>

#include "compiler/graph/loop/costs.h"
#include "compiler/graph/plan/barriers.h"
#include "compiler/graph/plan/plan_kernel.h"

namespace fornax::runtime {
namespace {

// A workgroup's tile of what passes through its scratchpad: no more than this is asked for.
constexpr uint64_t kMostTileBytes = 64 * 1024;

// Expressions of one dispatch; remembers whether all had values.
class Evaluation {
  public:
    explicit Evaluation(const graph::Bindings& sizes) : sizes_(sizes) {}

    uint64_t operator()(const graph::Expr& expr) {
        const std::optional<int64_t> value = expr.Evaluate(sizes_);
        ok_ = ok_ && value.has_value() && *value >= 0;
        return ok_ ? static_cast<uint64_t>(*value) : 0;
    }
    bool ok() const { return ok_; }

  private:
    const graph::Bindings& sizes_;
    bool ok_ = true;
};

std::optional<npu::MatrixType> MatrixTypeOf(graph::ElementType element) {
    switch (element) {
        case graph::ElementType::kI8:
        case graph::ElementType::kU8:
            return npu::MatrixType::kInt8;
        case graph::ElementType::kF16:
            return npu::MatrixType::kF16;
        case graph::ElementType::kBF16:
            return npu::MatrixType::kBF16;
        case graph::ElementType::kF32:
            return npu::MatrixType::kF32;
        default:
            return std::nullopt;
    }
}

// The type in which both operands are exact.
npu::MatrixType MatrixTypeOf(const graph::loop::ProductWork& product) {
    const std::optional<npu::MatrixType> a = MatrixTypeOf(product.a), b = MatrixTypeOf(product.b);
    return a && a == b ? *a : npu::MatrixType::kF32;
}

void AddLoopWork(const graph::loop::Kernel& kernel,
                 std::span<const npu::MemoryRange> ranges,
                 Evaluation& number,
                 npu::DispatchRecord& record) {
    const graph::loop::KernelWork work = graph::loop::WorkOf(kernel);
    for (const graph::loop::ProductWork& product : work.products) {
        record.products.push_back(
            {.shape = {number(product.m), number(product.n), number(product.k)},
             .batch = number(product.batch),
             .type = MatrixTypeOf(product),
             .a_bytes = number(product.a_bytes),
             .b_bytes = number(product.b_bytes)});
    }
    record.operations = {.simple = number(work.simple),
                         .division = number(work.division),
                         .special = number(work.special)};
    for (const graph::loop::AccessWork& access : work.accesses) {
        npu::Access made = {.writes = access.writes,
                            .bytes = number(access.bytes),
                            .range = ranges[access.buffer.value()]};
        if (access.by_data) {
            made.kind = access.writes ? npu::AccessKind::kScatter : npu::AccessKind::kGather;
            // Rows that are gathered lie together in their last dimension.
            const graph::TensorType& type = kernel[access.buffer].type;
            const uint64_t row =
                type.shape.rank() > 1 ? number(type.shape[type.shape.rank() - 1]) : 1;
            made.element_bytes = static_cast<uint32_t>(
                std::clamp<uint64_t>(row * graph::BytesOf(type.element), 1, 1 << 20));
        }
        record.accesses.push_back(made);
    }
}

void AddTemplateWork(const graph::DispatchStep& step,
                     Evaluation& number,
                     npu::DispatchRecord& record) {
    record.operations.simple = number(step.operations);
    record.accesses = {{.writes = false, .bytes = number(step.bytes_read)},
                       {.writes = true, .bytes = number(step.bytes_written)}};
}

// Where a block lies, for caches. Blocks of a region whose lives do not meet share bytes.
npu::MemoryRange RangeOf(const graph::Plan& plan, const graph::MemoryPlan& memory, size_t block) {
    if (memory.sizes[block] == graph::kUnknownSize) {
        return {};
    }
    npu::MemoryRange range = {.begin = memory.offsets[block], .bytes = memory.sizes[block]};
    switch (plan.blocks[block].kind) {
        case graph::BlockKind::kConstant:
            range.memory = 1;
            break;
        case graph::BlockKind::kInput:
        case graph::BlockKind::kOutput:
            range.memory = 2;
            break;
        case graph::BlockKind::kTemporary:
            range.memory = 3;
            break;
        case graph::BlockKind::kState:
            range.memory = 4 + block;
            range.begin = 0;
            break;
    }
    return range;
}

graph::DispatchAccess AccessOf(const graph::Plan& plan,
                               const graph::DispatchStep& step,
                               const graph::MemoryPlan& memory) {
    graph::DispatchAccess access;
    const auto buffers = graph::BuffersOf(plan.kernels[step.kernel.value()]);
    for (size_t i = 0; i < step.bindings.size(); ++i) {
        const size_t block = step.bindings[i].value();
        const bool is_known = memory.sizes[block] != graph::kUnknownSize;
        graph::ByteRange range;
        switch (plan.blocks[block].kind) {
            case graph::BlockKind::kConstant:
                continue;
            case graph::BlockKind::kTemporary:
                range.region = 0;
                break;
            case graph::BlockKind::kInput:
            case graph::BlockKind::kOutput:
                range.region = 1;
                break;
            case graph::BlockKind::kState:
                range.region = static_cast<uint32_t>(2 + block);
                break;
        }
        // A block that has no place yet may lie anywhere.
        range.begin = is_known && range.region < 2 ? memory.offsets[block] : 0;
        range.end = is_known ? range.begin + memory.sizes[block] : UINT64_MAX;
        access.reads.push_back(range);
        if (buffers[i].written) {
            access.writes.push_back(range);
        }
    }
    return access;
}

void AddDependencies(const std::vector<bool>& barriers, std::vector<npu::Record>& records) {
    size_t before = 0, begin = 0;  // the records between the last two barriers, and behind the last
    for (size_t i = 0; i < records.size(); ++i) {
        if (barriers[i]) {
            before = begin;
            begin = i;
        }
        for (size_t other = before; other < begin; ++other) {
            records[i].after.emplace_back(other);
        }
    }
}

}  // namespace

PlanRecords RecordsOf(const graph::Plan& plan,
                      const graph::Bindings& sizes,
                      const graph::MemoryPlan& memory,
                      std::span<const KernelInterface> kernels) {
    PlanRecords made;
    std::vector<graph::DispatchAccess> accesses;
    for (uint32_t i = 0; i < plan.steps.size(); ++i) {
        const auto* step = std::get_if<graph::DispatchStep>(&plan.steps[i]);
        if (step == nullptr) {
            ++made.host_steps;
            continue;
        }
        Evaluation number(sizes);
        npu::DispatchRecord record = {.name = step->name};
        for (const graph::Expr& count : kernels[step->kernel.value()].workgroups) {
            record.workgroups *= number(count);
        }
        const graph::PlanKernel& kernel = plan.kernels[step->kernel.value()];
        if (kernel.of_template) {
            AddTemplateWork(*step, number, record);
        } else {
            std::vector<npu::MemoryRange> ranges;
            for (const graph::BlockId block : step->bindings) {
                ranges.push_back(RangeOf(plan, memory, block.value()));
            }
            AddLoopWork(kernel.loop, ranges, number, record);
        }
        if (!number.ok()) {
            ++made.unknown_steps;
            continue;
        }
        if (record.workgroups == 0) {
            continue;
        }
        uint64_t bytes = 0;
        for (const npu::Access& access : record.accesses) {
            bytes += access.bytes;
        }
        const uint64_t tile = std::min(kMostTileBytes, npu::CeilDivide(bytes, record.workgroups));
        record.scratchpad = {.least_bytes = std::min<uint64_t>(tile, 1024),
                             .preferred_bytes = tile};
        made.records.push_back({.work = std::move(record)});
        made.steps.push_back(i);
        accesses.push_back(AccessOf(plan, *step, memory));
    }
    AddDependencies(graph::PlanBarriers(accesses), made.records);
    return made;
}

}  // namespace fornax::runtime
