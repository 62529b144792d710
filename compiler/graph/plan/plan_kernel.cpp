// The kinds of kernels in plans: loop kernels and templates.
#include "compiler/graph/plan/plan_kernel.h"

#include <fmt/format.h>

#include "compiler/graph/loop/in_place.h"

namespace fornax::graph {

const std::string& NameOf(const PlanKernel& kernel) {
    return kernel.of_template ? kernel.of_template->name() : kernel.loop.name;
}

std::span<const loop::Buffer> BuffersOf(const PlanKernel& kernel) {
    if (kernel.of_template) {
        return kernel.of_template->buffers();
    }
    return kernel.loop.buffers;
}

const Ranges& SizesOf(const PlanKernel& kernel) {
    return kernel.of_template ? kernel.of_template->sizes() : kernel.loop.sizes;
}

Status VerifyKernel(const PlanKernel& kernel) {
    // There are no templates with arguments that are wrong.
    return kernel.of_template ? OkStatus() : loop::Verify(kernel.loop);
}

Status CheckSharedBlocks(const PlanKernel& kernel, std::span<const BlockId> bindings) {
    const std::span<const loop::Buffer> buffers = BuffersOf(kernel);
    for (size_t written = 0; written < buffers.size(); ++written) {
        for (size_t other = 0; other < buffers.size(); ++other) {
            if (!buffers[written].written || other == written ||
                bindings[other] != bindings[written]) {
                continue;
            }
            const bool proven =
                !kernel.of_template &&
                loop::MayShareBytes(kernel.loop, loop::BufferId(other), loop::BufferId(written));
            if (!proven) {
                return Error{ErrorCode::kInvalidArgument,
                             fmt::format("its buffers {} and {} are one block, of which it might "
                                         "read elements that it has written",
                                         buffers[other].name, buffers[written].name)};
            }
        }
    }
    return OkStatus();
}

std::string ToText(const PlanKernel& kernel) {
    return kernel.of_template ? ToText(*kernel.of_template) : loop::ToText(kernel.loop);
}

Result<PlanKernel> ParsePlanKernel(std::string_view text) {
    PlanKernel kernel;
    if (text.starts_with("template ")) {
        FORNAX_ASSIGN_OR_RETURN(kernel.of_template, ParseTemplateKernel(text));
    } else {
        FORNAX_ASSIGN_OR_RETURN(kernel.loop, loop::ParseKernel(text));
    }
    return kernel;
}

Result<KernelCode> CodeOf(const PlanKernel& kernel, const loop::Target& target) {
    KernelCode code;
    if (kernel.of_template) {
        FORNAX_ASSIGN_OR_RETURN(code.module, kernel.of_template->Module(target));
        code.push_constants = kernel.of_template->PushConstants();
        code.constants = kernel.of_template->Choices();
        return code;
    }
    FORNAX_ASSIGN_OR_RETURN(code.module, loop::EmitSpirv(kernel.loop, target));
    for (const Symbol& symbol : loop::SizeSymbols(kernel.loop)) {
        code.push_constants.emplace_back(symbol);
    }
    return code;
}

Status Interpret(const PlanKernel& kernel,
                 const Bindings& sizes,
                 std::span<std::vector<uint8_t>> buffers) {
    return kernel.of_template ? kernel.of_template->Interpret(sizes, buffers)
                              : loop::Interpret(kernel.loop, sizes, buffers);
}

}  // namespace fornax::graph
