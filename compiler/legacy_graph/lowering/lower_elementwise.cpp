// Functions of one and of two values.
#include "compiler/legacy_graph/lowering/emitter.h"

namespace fornax::legacy_graph {
namespace {

// A dimension of a broadcast operation with each operand's stride in elements.
struct Dim {
    uint32_t size, stride_a, stride_b;
};

// Merges neighbouring dimensions that both operands walk through without a gap.
std::vector<Dim> MergedDims(const Shape& a, const Shape& b, const Shape& result) {
    const std::vector<uint32_t> strides_a = BroadcastStrides(a, result);
    const std::vector<uint32_t> strides_b = BroadcastStrides(b, result);
    std::vector<Dim> dims;
    for (size_t axis = 0; axis < result.rank(); ++axis) {
        if (result[axis] == 1) {
            continue;
        }
        const Dim dim = {result[axis], strides_a[axis], strides_b[axis]};
        if (!dims.empty() && dims.back().stride_a == dim.stride_a * dim.size &&
            dims.back().stride_b == dim.stride_b * dim.size) {
            dims.back() = {dims.back().size * dim.size, dim.stride_a, dim.stride_b};
        } else {
            dims.push_back(dim);
        }
    }
    return dims;
}

}  // namespace

Status Lower(const op::Unary& unary, Emitter& emitter) {
    parameters::Unary p;
    p.activation = parameters::Activation(unary.activation);
    p.elements = emitter.ResultShape().elements();
    return emitter.Emit(KernelId::kUnary, ToWords(p), {emitter.Operand(0), emitter.ResultTensor()});
}

Status Lower(const op::Binary& binary, Emitter& emitter) {
    parameters::Binary p;
    p.activation = parameters::Activation(binary.activation);
    p.function = static_cast<uint32_t>(binary.function);
    const std::vector<Dim> dims =
        MergedDims(emitter.OperandShape(0), emitter.OperandShape(1), emitter.ResultShape());
    for (size_t i = 0; i < dims.size(); ++i) {
        const size_t slot = 6 - dims.size() + i;
        p.dims[slot] = dims[i].size;
        p.strides_a[slot] = dims[i].stride_a;
        p.strides_b[slot] = dims[i].stride_b;
    }
    return emitter.Emit(KernelId::kBinary, ToWords(p),
                        {emitter.Operand(0), emitter.Operand(1), emitter.ResultTensor()});
}

}  // namespace fornax::legacy_graph
