// The one place that includes the generated arrays.
#include "shaders/embedded_kernels.h"

#include "shaders/fourier_rows.spv.h"
#include "shaders/scan_rows_f32.spv.h"
#include "shaders/scan_rows_f32_plain.spv.h"
#include "shaders/scan_rows_f64.spv.h"
#include "shaders/scan_rows_f64_plain.spv.h"
#include "shaders/scan_rows_i32.spv.h"
#include "shaders/scan_rows_i32_plain.spv.h"
#include "shaders/scan_rows_i64.spv.h"
#include "shaders/scan_rows_i64_plain.spv.h"
#include "shaders/select_rows.spv.h"
#include "shaders/sort_rows.spv.h"

namespace fornax::shaders {

std::span<const EmbeddedKernel> EmbeddedKernels() {
    static constexpr EmbeddedKernel kKernels[] = {
        {"fourier_rows", spirv::kFourierRows},
        {"scan_rows_f32", spirv::kScanRowsF32},
        {"scan_rows_f32_plain", spirv::kScanRowsF32Plain},
        {"scan_rows_f64", spirv::kScanRowsF64},
        {"scan_rows_f64_plain", spirv::kScanRowsF64Plain},
        {"scan_rows_i32", spirv::kScanRowsI32},
        {"scan_rows_i32_plain", spirv::kScanRowsI32Plain},
        {"scan_rows_i64", spirv::kScanRowsI64},
        {"scan_rows_i64_plain", spirv::kScanRowsI64Plain},
        {"select_rows", spirv::kSelectRows},
        {"sort_rows", spirv::kSortRows},
    };
    return kKernels;
}

}  // namespace fornax::shaders
