// The kinds of kernels in plans.
#include "compiler/graph/plan/plan_kernel.h"

namespace fornax::graph {

const std::string& NameOf(const PlanKernel& kernel) {
    return kernel.loop.name;
}

std::span<const loop::Buffer> BuffersOf(const PlanKernel& kernel) {
    return kernel.loop.buffers;
}

const Ranges& SizesOf(const PlanKernel& kernel) {
    return kernel.loop.sizes;
}

Status VerifyKernel(const PlanKernel& kernel) {
    return loop::Verify(kernel.loop);
}

std::string ToText(const PlanKernel& kernel) {
    return loop::ToText(kernel.loop);
}

Result<PlanKernel> ParsePlanKernel(std::string_view text) {
    FORNAX_ASSIGN_OR_RETURN(loop::Kernel kernel, loop::ParseKernel(text));
    return PlanKernel{std::move(kernel)};
}

}  // namespace fornax::graph
