// From a loop kernel to a module: its buffers, and the mapping that writes its code.
#include "compiler/graph/loop/emit_spirv.h"

#include <optional>
#include <set>

#include <fmt/format.h>

#include "compiler/graph/loop/emit_attention.h"
#include "compiler/graph/loop/emit_flat.h"
#include "compiler/graph/loop/emit_phases.h"
#include "compiler/graph/loop/emit_product.h"
#include "compiler/graph/loop/emit_rows.h"
#include "compiler/graph/loop/emit_window.h"
#include "compiler/graph/loop/in_place.h"
#include "compiler/graph/loop/mapping_part.h"

namespace fornax::graph::loop {
namespace {

// Offsets are 32 bits: buffers have no more elements. Where the sizes decide it is a limit.
Status AddBufferLimits(const Kernel& kernel, IndexCode& index) {
    for (const Buffer& buffer : kernel.buffers) {
        const Expr volume = buffer.type.shape.Volume();
        const std::optional<int64_t> constant = volume.constant();
        if (constant && *constant > INT32_MAX) {
            return Error{
                ErrorCode::kUnsupported,
                fmt::format("The buffer {} of the kernel {} has {} elements, more than {}.",
                            buffer.name, kernel.name, *constant, INT32_MAX)};
        }
        if (!constant) {
            index.AddLimit(volume);
        }
    }
    return {};
}

void DeclareModes(ModuleCode& module) {
    if (module.target.signed_zero_inf_nan_preserve) {
        module.builder.Capability(spv::Capability::SignedZeroInfNanPreserve);
        module.builder.Extension("SPV_KHR_float_controls");
        module.builder.ExecutionMode(spv::ExecutionMode::SignedZeroInfNanPreserve, {32});
    }
}

void DeclareBuffers(KernelParts& parts) {
    KernelCode& code = parts.code;
    spirv::ModuleBuilder& builder = code.module.builder;
    for (uint32_t i = 0; i < code.kernel.buffers.size(); ++i) {
        const Buffer& buffer = code.kernel.buffers[i];
        code.buffers.push_back(builder.StorageBuffer(
            i, parts.conversions.StorageType(buffer.type.element), buffer.written));
    }
    for (const Buffer& local : code.kernel.locals) {
        const int64_t count = *local.type.shape.Volume().constant();
        code.locals.push_back(builder.WorkgroupArray(
            parts.conversions.StorageType(local.type.element), static_cast<uint32_t>(count)));
    }
    const std::vector<Symbol> sizes = SizeSymbols(code.kernel);
    const Ids values = builder.PushConstants(static_cast<uint32_t>(sizes.size()));
    for (size_t i = 0; i < sizes.size(); ++i) {
        code.point.BindSize(sizes[i], values[i]);
    }
}

// In Vulkan's memory model, buffers share no bytes unless they say so.
void MarkAliases(KernelCode& code) {
    spirv::ModuleBuilder& builder = code.module.builder;
    if (!builder.HasVulkanMemoryModel()) {
        return;
    }
    std::set<size_t> aliased;
    for (size_t read = 0; read < code.buffers.size(); ++read) {
        for (size_t written = 0; written < code.buffers.size(); ++written) {
            if (code.kernel.buffers[written].written &&
                MayShareBytes(code.kernel, BufferId(read), BufferId(written))) {
                aliased.insert({read, written});
            }
        }
    }
    for (const size_t buffer : aliased) {
        builder.Decorate(code.buffers[buffer], spv::Decoration::Aliased);
    }
}

void EmitPoints(KernelParts& parts) {
    const bool done = EmitPhases(parts) || EmitProduct(parts) || EmitAttention(parts) ||
                      EmitRows(parts) || EmitWindow(parts);
    if (!done) {
        EmitFlat(parts);
    }
}

}  // namespace

Result<Module> EmitSpirv(const Kernel& kernel, const Target& target) {
    KernelParts parts(kernel, target);
    KernelCode& code = parts.code;
    spirv::ModuleBuilder& builder = code.module.builder;
    FORNAX_RETURN_IF_ERROR(AddBufferLimits(kernel, parts.index));
    builder.Begin();
    DeclareModes(code.module);
    const ValueScope entry_point(code.point);
    DeclareBuffers(parts);
    EmitPoints(parts);
    MarkAliases(code);
    builder.SetLocalSize(parts.grid.local_sizes());
    if (code.module.rejection) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("The kernel {} is not for the device: {}.", kernel.name,
                                 *code.module.rejection)};
    }
    return Module{builder.Finish(), parts.grid.workgroups(), parts.index.Limits(),
                  parts.grid.local_size()};
}

}  // namespace fornax::graph::loop
