// Matrix products: batches, the shape of workgroups, and the choice between the kernels.
#include <algorithm>
#include <bit>

#include "compiler/legacy_graph/lowering/emitter.h"

namespace fornax::legacy_graph {
namespace {

// The strides, in elements, with which the batch coordinates of the result move through an operand
// whose outer dimensions broadcast to them; aligned at the right, four coordinates.
std::array<uint32_t, 4> BatchStrides(const Shape& operand) {
    std::array<uint32_t, 4> strides = {};
    for (size_t axis = 0; axis + 2 < operand.rank(); ++axis) {
        const size_t from_right = operand.rank() - 2 - axis;  // 1 is the innermost batch dimension
        if (operand[axis] > 1) {
            strides[4 - from_right] = operand.ElementsBetween(axis + 1, operand.rank());
        }
    }
    return strides;
}

}  // namespace

Status Lower(const op::MatMul& matmul, Emitter& emitter) {
    const Shape &a = emitter.OperandShape(0), &b = emitter.OperandShape(1);
    const Shape& result = emitter.ResultShape();
    parameters::MatMul p;
    p.activation = parameters::Activation(matmul.activation);
    p.rows = a[a.rank() - 2];
    p.depth = a[a.rank() - 1];
    p.columns = b[b.rank() - 1];
    p.has_bias = emitter.operand_count() == 3;
    if (b.ElementsBetween(0, b.rank() - 2) == 1) {
        // One right matrix for all batches: the batches are further rows of one product.
        p.rows = a.ElementsBetween(0, a.rank() - 1);
    } else {
        static_assert(Shape::kMaxRank - 2 == 4);
        for (size_t axis = 0; axis + 2 < result.rank(); ++axis) {
            p.batch[4 - (result.rank() - 2 - axis)] = result[axis];
        }
        p.strides_a = BatchStrides(a);
        p.strides_b = BatchStrides(b);
    }
    p.workgroup.width = std::min(std::bit_ceil(p.columns), kWorkgroupInvocations);
    p.workgroup.height = kWorkgroupInvocations / p.workgroup.width;
    const uint32_t bias = p.has_bias ? emitter.Operand(2) : emitter.Operand(1);
    // A tile of eight rows pays off as soon as half of it is used.
    return emitter.Emit(p.rows < 4 ? KernelId::kMatMulFewRows : KernelId::kMatMul, ToWords(p),
                        {emitter.Operand(0), emitter.Operand(1), bias, emitter.ResultTensor()});
}

}  // namespace fornax::legacy_graph
