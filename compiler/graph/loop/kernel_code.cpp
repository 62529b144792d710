// What all parts of a kernel's code share (kernel_code.h).
#include "compiler/graph/loop/kernel_code.h"

namespace fornax::graph::loop {

KernelCode::KernelCode(const Kernel& loop_kernel, const Target& target)
    : kernel(loop_kernel),
      scope(FindScope(loop_kernel)),
      softmax(FindSoftmaxReductions(loop_kernel, scope)),
      module(target),
      nests(loop_kernel, scope, domain) {
    domain.ranges = kernel.sizes;
    // Twice, because extents may have variables that come later.
    for (int i = 0; i < 2; ++i) {
        for (const Loop& loop : scope.variables) {
            domain.AddVariable(loop.variable, loop.extent);
        }
    }
}

Id KernelCode::ArrayOf(BufferId buffer) const {
    return Kernel::IsLocal(buffer) ? locals[buffer.value() - kFirstLocal] : buffers[buffer.value()];
}

}  // namespace fornax::graph::loop
