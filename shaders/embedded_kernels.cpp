// The one place that includes the generated arrays.
#include "shaders/embedded_kernels.h"

#include "shaders/scan_rows_f32.spv.h"
#include "shaders/scan_rows_f64.spv.h"
#include "shaders/scan_rows_i32.spv.h"
#include "shaders/scan_rows_i64.spv.h"
#include "shaders/select_rows.spv.h"
#include "shaders/sort_rows.spv.h"

namespace fornax::shaders {

std::span<const EmbeddedKernel> EmbeddedKernels() {
    static constexpr EmbeddedKernel kKernels[] = {
        {"scan_rows_f32", spirv::kScanRowsF32}, {"scan_rows_f64", spirv::kScanRowsF64},
        {"scan_rows_i32", spirv::kScanRowsI32}, {"scan_rows_i64", spirv::kScanRowsI64},
        {"select_rows", spirv::kSelectRows},    {"sort_rows", spirv::kSortRows},
    };
    return kKernels;
}

}  // namespace fornax::shaders
