// The one place that includes the generated arrays.
#include "shaders/embedded_kernels.h"

#include "shaders/select_rows.spv.h"
#include "shaders/sort_rows.spv.h"

namespace fornax::shaders {

std::span<const EmbeddedKernel> EmbeddedKernels() {
    static constexpr EmbeddedKernel kKernels[] = {
        {"select_rows", spirv::kSelectRows},
        {"sort_rows", spirv::kSortRows},
    };
    return kKernels;
}

}  // namespace fornax::shaders
