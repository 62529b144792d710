// The packets that move or compute data: dispatches, copies, fills and updates.
#include <algorithm>
#include <csignal>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "hal/device.h"
#include "hal/model/command_processor.h"

namespace fornax::hal::model {

namespace {

Error Malformed(std::string message) {
    return Error{ErrorCode::kInvalidArgument, std::move(message)};
}

bool HasAddress(const Trap& trap) {
    return (trap.signal == SIGSEGV || trap.signal == SIGBUS) && trap.code != SI_KERNEL;
}

// "wrote to the address 0x10, where there is no memory".
std::string TrapText(const Trap& trap) {
    switch (trap.signal) {
        case SIGILL:
            return fmt::format("came to an instruction at {:#x} that this processor does not have",
                               trap.instruction_address);
        case SIGFPE:
            return "did arithmetic that this processor has no result for";
        case SIGSEGV:
        case SIGBUS:
            break;
        default:
            return fmt::format("was stopped by signal {}", trap.signal);
    }
    // Without an address the processor has refused one that is not in any range (SI_KERNEL).
    if (!HasAddress(trap)) {
        return "used an address that no memory can have";
    }
    const char* used = trap.access == FaultReport::Access::kWrite     ? "wrote to"
                       : trap.access == FaultReport::Access::kExecute ? "jumped to"
                                                                      : "read from";
    const char* why = trap.signal == SIGBUS      ? "which nothing stands behind"
                      : trap.code == SEGV_ACCERR ? "where memory does not allow it"
                                                 : "where there is no memory";
    return fmt::format("{} the address {:#x}, {}", used, trap.address, why);
}

// What the kernel did, after "the kernel '...'".
std::string FaultText(const GridResult& result, uint64_t watchdog_ms) {
    switch (static_cast<KernelFault>(result.fault)) {
        case KernelFault::kUnreachable:
            return "stopped because control reached OpUnreachable";
        case KernelFault::kInterpreter:
            return "stopped because the interpreter gave up";
        case KernelFault::kTrap:
            return TrapText(result.trap);
        case KernelFault::kWatchdog:
            return fmt::format(
                "was stopped by the watchdog, because a workgroup used more than {} ms of a "
                "processor's time (FORNAX_WATCHDOG_MS)",
                watchdog_ms);
        case KernelFault::kAbandoned:
            return "was stopped because the device was lost";
        case KernelFault::kNoCode:
            return "stopped because its code could not be made";
        case KernelFault::kNone:
            break;
    }
    return fmt::format("stopped with the unknown fault {}", result.fault);
}

}  // namespace

Status CommandProcessor::Dispatch(const Packet& packet, Scope& scope) {
    if (scope.discards) {
        return OkStatus();
    }
    return RunGrid(packet.dispatch.workgroup_count, packet.dispatch.base_workgroup, scope);
}

Status CommandProcessor::DispatchIndirect(const Packet& packet, Scope& scope) {
    if (scope.discards) {
        return OkStatus();
    }
    const uint64_t address = packet.dispatch_indirect.address;
    uint32_t count[3];
    FORNAX_RETURN_IF_ERROR(
        CheckMemory("the indirect parameters", address, sizeof(count), alignof(uint32_t)));
    FORNAX_RETURN_IF_ERROR(Read(address, &count));
    constexpr uint32_t kNoBase[3] = {0, 0, 0};
    return RunGrid(count, kNoBase, scope);
}

Status CommandProcessor::RunGrid(const uint32_t (&count)[3],
                                 const uint32_t (&base)[3],
                                 Scope& scope) {
    if (scope.executable == nullptr) [[unlikely]] {
        return Malformed("no executable is bound.");
    }
    uint64_t workgroups = 1;
    for (int axis = 0; axis < 3; ++axis) {
        if (count[axis] > kMaxWorkgroupCount[axis]) [[unlikely]] {
            return Malformed(fmt::format("{} workgroups in {} are more than {}.", count[axis],
                                         "xyz"[axis], kMaxWorkgroupCount[axis]));
        }
        if (base[axis] > UINT32_MAX - count[axis]) [[unlikely]] {
            return Malformed(fmt::format("base {} with {} workgroups in {} does not fit 32 bits.",
                                         base[axis], count[axis], "xyz"[axis]));
        }
        workgroups *= count[axis];
    }
    const KernelDesc& kernel = scope.executable->desc();
    if (kernel.push_constant_bytes > scope.constant_bytes) [[unlikely]] {
        return Malformed(fmt::format("the kernel '{}' reads {} bytes of constants, and {} are set.",
                                     kernel.name, kernel.push_constant_bytes,
                                     scope.constant_bytes));
    }
    if ((kernel.descriptor_set_mask & ~scope.bound_sets) != 0) [[unlikely]] {
        return Malformed(
            fmt::format("the kernel '{}' uses the descriptor sets {:#x}, and {:#x} are "
                        "bound.",
                        kernel.name, kernel.descriptor_set_mask, scope.bound_sets));
    }
    scope.frame.push_constants = scope.constants.data();
    if (workgroups == 0) {
        return OkStatus();
    }
    std::memcpy(scope.frame.workgroup_count, count, sizeof(count));
    std::memcpy(scope.frame.base_workgroup, base, sizeof(base));
    scope.frame.kernel_context = kernel.context;
    FORNAX_ASSIGN_OR_RETURN(
        const GridResult result,
        context_.pool.Run(worker_, {.entry = kernel.entry,
                                    .frame = &scope.frame,
                                    .workgroup_count = workgroups,
                                    .scratch_bytes = kernel.scratch_bytes,
                                    .region_counters = kernel.region_counters,
                                    .workgroup_cost_ns = &scope.executable->workgroup_cost_ns(),
                                    .independent = kernel.independent_workgroups,
                                    .interruptible = kernel.interruptible}));
    context_.counters.dispatches.Add(1);
    context_.counters.workgroups.Add(workgroups);
    const auto& size = kernel.workgroup_size;
    context_.counters.invocations.Add(workgroups * size[0] * size[1] * size[2]);
    context_.counters.parallel_dispatches.Add(result.was_parallel ? 1 : 0);
    if (UnitCounts& counts = worker_.frame().unit_counts; !counts.empty()) {
        context_.counters.AddMatrix(MatrixCountsOf(std::exchange(counts, {})));
    }
    if (result.fault != 0) [[unlikely]] {
        return DescribeFault(scope, result);
    }
    if (context_.observer != nullptr) {
        context_.observer->Dispatch(context_.queue, *scope.executable, scope.frame, workgroups,
                                    {worker_.frame().region_counts, kernel.region_counters});
    }
    return OkStatus();
}

void CommandProcessor::Observe(ObservedCopy kind, uint64_t bytes) {
    if (context_.observer != nullptr) {
        context_.observer->Copy(context_.queue, kind, bytes);
    }
}

Error CommandProcessor::DescribeFault(const Scope& scope, const GridResult& result) {
    const DispatchFrame& frame = scope.frame;
    const uint64_t row = result.workgroup / frame.workgroup_count[0];
    const uint64_t position[] = {result.workgroup % frame.workgroup_count[0],
                                 row % frame.workgroup_count[1], row / frame.workgroup_count[1]};
    const std::string& name = scope.executable->desc().name;
    FaultReport report{.kind = static_cast<KernelFault>(result.fault), .kernel = name};
    for (int axis = 0; axis < 3; ++axis) {
        report.workgroup[axis] = static_cast<uint32_t>(position[axis]) + frame.base_workgroup[axis];
    }
    if (report.kind == KernelFault::kTrap) {
        report.instruction_address = result.trap.instruction_address;
        report.access = result.trap.access;
        if (HasAddress(result.trap)) {
            report.address = result.trap.address;
            report.address_bytes = 1;
        }
    }
    report.message = fmt::format("the kernel '{}' {}, in workgroup ({}, {}, {}).", name,
                                 FaultText(result, context_.pool.watchdog_ms()),
                                 report.workgroup[0], report.workgroup[1], report.workgroup[2]);
    Error error{ErrorCode::kDeviceLost, report.message};
    report.message[0] = 'T';
    if (report.kind != KernelFault::kAbandoned) {
        context_.hub.Describe(std::move(report));
    }
    return error;
}

Status CommandProcessor::Copy(const CopyPayload& copy) {
    if (copy.size_bytes == 0) {
        return OkStatus();
    }
    FORNAX_RETURN_IF_ERROR(CheckMemory("the source", copy.source, copy.size_bytes, 1));
    FORNAX_RETURN_IF_ERROR(CheckMemory("the destination", copy.destination, copy.size_bytes, 1));
    FORNAX_RETURN_IF_ERROR(
        CopyBytes(context_.pool, worker_, copy.source, copy.destination, copy.size_bytes));
    context_.counters.bytes_copied.Add(copy.size_bytes);
    Observe(ObservedCopy::kCopy, copy.size_bytes);
    return OkStatus();
}

Status CommandProcessor::CopyIndirect(const Packet& packet) {
    const auto [address, stride_bytes] = packet.copy_indirect;
    const uint64_t count = packet.header.operand;
    if (count == 0) {
        return OkStatus();
    }
    // Bounded first, so that the product below cannot overflow.
    if (stride_bytes < sizeof(IndirectCopy) || stride_bytes > CopyIndirectPayload::kMaxStride ||
        stride_bytes % sizeof(uint32_t) != 0) {
        return Malformed(
            fmt::format("the stride {} between copies is not a multiple of 4 from {} to {}.",
                        stride_bytes, sizeof(IndirectCopy), CopyIndirectPayload::kMaxStride));
    }
    FORNAX_RETURN_IF_ERROR(CheckMemory("the list of copies", address,
                                       (count - 1) * stride_bytes + sizeof(IndirectCopy),
                                       alignof(uint32_t)));
    for (uint64_t i = 0; i < count; ++i) {
        IndirectCopy copy;
        FORNAX_RETURN_IF_ERROR(Read(address + i * stride_bytes, &copy));
        FORNAX_RETURN_IF_ERROR(Copy({copy.source, copy.destination, copy.size_bytes}));
    }
    return OkStatus();
}

Status CommandProcessor::CopyRows(const CopyRowsPayload& copy, const Scope& scope) {
    if (copy.row_bytes == 0 || copy.rows == 0 || copy.slices == 0) {
        return OkStatus();
    }
    if (copy.rows > CopyRowsPayload::kMaxCount || copy.slices > CopyRowsPayload::kMaxCount) {
        return Malformed(fmt::format("{} rows in {} slices are more than {} of either.", copy.rows,
                                     copy.slices, CopyRowsPayload::kMaxCount));
    }
    if (std::max(copy.source_slice_pitch, copy.destination_slice_pitch) >
        CopyRowsPayload::kMaxSlicePitch) {
        return Malformed(fmt::format("the slice pitches {} and {} are not both at most {}.",
                                     copy.source_slice_pitch, copy.destination_slice_pitch,
                                     CopyRowsPayload::kMaxSlicePitch));
    }
    const auto span_bytes = [&copy](uint64_t row_pitch, uint64_t slice_pitch) {
        return (copy.rows - 1) * row_pitch + (copy.slices - 1) * slice_pitch + copy.row_bytes;
    };
    const uint64_t source_bytes = span_bytes(copy.source_row_pitch, copy.source_slice_pitch);
    if (scope.stream == nullptr || !scope.stream->OwnsSideData(copy.source, source_bytes)) {
        FORNAX_RETURN_IF_ERROR(CheckMemory("the source", copy.source, source_bytes, 1));
    }
    FORNAX_RETURN_IF_ERROR(
        CheckMemory("the destination", copy.destination,
                    span_bytes(copy.destination_row_pitch, copy.destination_slice_pitch), 1));
    FORNAX_RETURN_IF_ERROR(model::CopyRows(context_.pool, worker_, copy));
    const uint64_t bytes = uint64_t{copy.row_bytes} * copy.rows * copy.slices;
    context_.counters.bytes_copied.Add(bytes);
    Observe(ObservedCopy::kCopy, bytes);
    return OkStatus();
}

Status CommandProcessor::CopyRowsIndirect(const CopyRowsIndirectPayload& copy, const Scope& scope) {
    if (copy.bytes > 16 || copy.block_log2 > 4) {
        return Malformed(
            fmt::format("a block of 2^{} texels each way and {} bytes is not one of "
                        "at most 2^4 and 16.",
                        copy.block_log2, copy.bytes));
    }
    FORNAX_RETURN_IF_ERROR(
        CheckMemory("the rows of a copy", copy.source, sizeof(IndirectRows), alignof(uint32_t)));
    FORNAX_RETURN_IF_ERROR(
        CheckMemory("the box of a copy", copy.box, sizeof(IndirectBox), alignof(uint32_t)));
    IndirectRows rows;
    FORNAX_RETURN_IF_ERROR(Read(copy.source, &rows));
    IndirectBox box;
    FORNAX_RETURN_IF_ERROR(Read(copy.box, &box));
    const auto inside = [](int32_t first, uint32_t count, uint32_t size) {
        return first >= 0 && static_cast<uint64_t>(first) + count <= size;
    };
    if (!inside(box.x, box.width, copy.width) || !inside(box.y, box.height, copy.height)) {
        return Malformed(
            fmt::format("a box of {} x {} texels at ({}, {}) is not inside of {} x {}.", box.width,
                        box.height, box.x, box.y, copy.width, copy.height));
    }
    const auto blocks = [&copy](uint64_t texels) {
        return (texels + (1u << copy.block_log2) - 1) >> copy.block_log2;
    };
    const uint64_t source_row_pitch =
        blocks(rows.row_texels ? rows.row_texels : box.width) * copy.bytes;
    const uint64_t source_slice_pitch =
        source_row_pitch * blocks(rows.slice_rows ? rows.slice_rows : box.height);
    if (source_row_pitch > UINT32_MAX) {
        return Malformed(fmt::format("rows of {} texels are {} bytes, more than {}.",
                                     rows.row_texels, source_row_pitch, UINT32_MAX));
    }
    const uint64_t row = static_cast<uint32_t>(box.y) >> copy.block_log2;
    const uint64_t column = static_cast<uint32_t>(box.x) >> copy.block_log2;
    return CopyRows({.source = rows.source,
                     .destination = copy.destination + row * copy.row_pitch + column * copy.bytes,
                     .source_slice_pitch = source_slice_pitch,
                     .destination_slice_pitch = copy.slice_pitch,
                     .source_row_pitch = static_cast<uint32_t>(source_row_pitch),
                     .destination_row_pitch = copy.row_pitch,
                     .row_bytes = static_cast<uint32_t>(blocks(box.width) * copy.bytes),
                     .rows = static_cast<uint32_t>(blocks(box.height)),
                     .slices = copy.slices},
                    scope);
}

Status CommandProcessor::Fill(const FillPayload& fill) {
    if (fill.size_bytes % sizeof(uint32_t) != 0) {
        return Malformed(
            fmt::format("the size {} of a fill is not a multiple of 4.", fill.size_bytes));
    }
    if (fill.size_bytes == 0) {
        return OkStatus();
    }
    FORNAX_RETURN_IF_ERROR(
        CheckMemory("the destination", fill.destination, fill.size_bytes, sizeof(uint32_t)));
    FORNAX_RETURN_IF_ERROR(
        FillBytes(context_.pool, worker_, fill.destination, fill.size_bytes, fill.pattern));
    context_.counters.bytes_filled.Add(fill.size_bytes);
    Observe(ObservedCopy::kFill, fill.size_bytes);
    return OkStatus();
}

Status CommandProcessor::Update(const Packet& packet, const Scope& scope) {
    const UpdatePayload& update = packet.update;
    if (update.size_bytes == 0) {
        return OkStatus();
    }
    const void* data = update.data;
    if ((packet.header.flags & kUpdateInline) == 0) {
        FORNAX_RETURN_IF_ERROR(
            CheckSideData("the data", update.source, update.size_bytes, 1, scope));
        data = reinterpret_cast<const void*>(update.source);
    } else if (update.size_bytes > UpdatePayload::kInlineBytes) {
        return Malformed(fmt::format("{} bytes of data in a packet are more than {}.",
                                     update.size_bytes, UpdatePayload::kInlineBytes));
    }
    FORNAX_RETURN_IF_ERROR(
        CheckMemory("the destination", update.destination, update.size_bytes, 1));
    FORNAX_RETURN_IF_ERROR(Guarded(worker_, [&update, data] {
        std::memcpy(reinterpret_cast<void*>(update.destination), data, update.size_bytes);
    }));
    context_.counters.bytes_copied.Add(update.size_bytes);
    Observe(ObservedCopy::kUpdate, update.size_bytes);
    return OkStatus();
}

}  // namespace fornax::hal::model
