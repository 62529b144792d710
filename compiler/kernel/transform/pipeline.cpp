// The order of the passes.
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {

void RunPipeline(ir::Kernel& kernel) {
    PromoteLocals(kernel);
    Simplify(kernel);
}

}  // namespace fornax::kernel
