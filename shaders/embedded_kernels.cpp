// The one place that includes the generated arrays.
#include "shaders/embedded_kernels.h"

#include "shaders/binary.spv.h"
#include "shaders/concat.spv.h"
#include "shaders/conv2d.spv.h"
#include "shaders/conv2d_depthwise.spv.h"
#include "shaders/matmul.spv.h"
#include "shaders/matmul_few_rows.spv.h"
#include "shaders/pool2d.spv.h"
#include "shaders/reduce.spv.h"
#include "shaders/softmax.spv.h"
#include "shaders/transpose.spv.h"
#include "shaders/unary.spv.h"

namespace fornax::shaders {

std::span<const EmbeddedKernel> EmbeddedKernels() {
    static constexpr EmbeddedKernel kKernels[] = {
        {"binary", spirv::kBinary},   {"concat", spirv::kConcat},
        {"conv2d", spirv::kConv2d},   {"conv2d_depthwise", spirv::kConv2dDepthwise},
        {"matmul", spirv::kMatmul},   {"matmul_few_rows", spirv::kMatmulFewRows},
        {"pool2d", spirv::kPool2d},   {"reduce", spirv::kReduce},
        {"softmax", spirv::kSoftmax}, {"transpose", spirv::kTranspose},
        {"unary", spirv::kUnary},
    };
    return kKernels;
}

}  // namespace fornax::shaders
