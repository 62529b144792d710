// Operators along axes, and those that only move data.
#include "compiler/legacy_graph/lowering/emitter.h"

namespace fornax::legacy_graph {

Status Lower(const op::Softmax& softmax, Emitter& emitter) {
    const Shape& shape = emitter.ResultShape();
    parameters::Softmax p;
    p.outer = shape.ElementsBetween(0, softmax.axis);
    p.axis = shape[softmax.axis];
    p.inner = shape.ElementsBetween(softmax.axis + 1, shape.rank());
    return emitter.Emit(KernelId::kSoftmax, ToWords(p),
                        {emitter.Operand(0), emitter.ResultTensor()});
}

Status Lower(const op::Reduce& reduce, Emitter& emitter) {
    const Shape& shape = emitter.OperandShape(0);
    parameters::Reduce p;
    p.outer = shape.ElementsBetween(0, reduce.first_axis);
    p.axis = shape.ElementsBetween(reduce.first_axis, reduce.first_axis + reduce.axes);
    p.inner = shape.ElementsBetween(reduce.first_axis + reduce.axes, shape.rank());
    p.kind = static_cast<uint32_t>(reduce.kind);
    return emitter.Emit(KernelId::kReduce, ToWords(p),
                        {emitter.Operand(0), emitter.ResultTensor()});
}

Status Lower(const op::Reshape&, Emitter& emitter) {
    emitter.AliasResult(0);
    return OkStatus();
}

Status Lower(const op::Transpose& transpose, Emitter& emitter) {
    const Shape &input = emitter.OperandShape(0), &result = emitter.ResultShape();
    parameters::Transpose p;
    for (size_t axis = 0; axis < result.rank(); ++axis) {
        const size_t slot = 6 - result.rank() + axis;
        const uint32_t source = transpose.permutation[axis];
        p.dims[slot] = result[axis];
        p.strides[slot] = input.ElementsBetween(source + 1, input.rank());
    }
    return emitter.Emit(KernelId::kTranspose, ToWords(p),
                        {emitter.Operand(0), emitter.ResultTensor()});
}

Status Lower(const op::Concat& concat, Emitter& emitter) {
    const Shape& result = emitter.ResultShape();
    parameters::Concat p;
    p.outer = result.ElementsBetween(0, concat.axis);
    p.row = result.ElementsBetween(concat.axis, result.rank());
    for (size_t i = 0; i < emitter.operand_count(); ++i) {
        const Shape& shape = emitter.OperandShape(i);
        p.part = shape.ElementsBetween(concat.axis, shape.rank());
        FORNAX_RETURN_IF_ERROR(emitter.Emit(KernelId::kConcat, ToWords(p),
                                            {emitter.Operand(i), emitter.ResultTensor()}));
        p.first += p.part;
    }
    return OkStatus();
}

}  // namespace fornax::legacy_graph
