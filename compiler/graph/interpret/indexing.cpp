// Gather and Scatter.
#include <cstring>

#include <fmt/format.h>

#include "compiler/graph/interpret/evaluation.h"

namespace fornax::graph::interpret {
namespace {

// Where in the data the element at a position of the result, or of the updates, lies.
class Coordinates {
  public:
    Coordinates(const Dims& data, const std::vector<int64_t>& sources, Operands indices)
        : data_(data), strides_(RowMajorStrides(data)), sources_(sources), indices_(indices) {}

    // The element's index, or -1 outside of the data. `number` counts positions in row-major order.
    int64_t At(std::span<const int64_t> position, int64_t number) const {
        int64_t offset = 0;
        for (size_t axis = 0; axis < data_.size(); ++axis) {
            const int64_t source = sources_[axis];
            int64_t coordinate = 0;
            if (source >= 0) {
                coordinate = position[static_cast<size_t>(source)];
            } else {
                const Tensor& index = indices_[static_cast<size_t>(-1 - source)];
                coordinate = index.At(number).integer;
                if (index.element == ElementType::kU64 && coordinate < 0) {
                    return -1;  // above 2^63
                }
            }
            if (coordinate < 0 || coordinate >= data_[axis]) {
                return -1;
            }
            offset += coordinate * strides_[axis];
        }
        return offset;
    }

  private:
    const Dims& data_;
    std::vector<int64_t> strides_;
    const std::vector<int64_t>& sources_;
    Operands indices_;
};

Status CheckIndices(Operands indices, const Dims& dims) {
    for (const Tensor& index : indices) {
        if (index.dims != dims) {
            return Invalid(fmt::format("an index has the shape {}, the elements {}",
                                       ToString(index.dims), ToString(dims)));
        }
    }
    return OkStatus();
}

}  // namespace

Result<Tensor> Evaluate(const op::Gather& gather, Operands operands, const Context& context) {
    const Tensor& data = operands[0];
    FORNAX_ASSIGN_OR_RETURN(Dims dims, context.Sizes(gather.shape.dims()));
    FORNAX_RETURN_IF_ERROR(CheckIndices(operands.subspan(1), dims));
    FORNAX_ASSIGN_OR_RETURN(NewTensor result, context.Allocate(data.element, std::move(dims)));
    const Coordinates coordinates(data.dims, gather.sources, operands.subspan(1));
    const std::vector<int64_t> strides = RowMajorStrides(result.tensor.dims);
    for (Walk walk(result.tensor.dims, strides); walk.valid(); walk.Next()) {
        const int64_t from = coordinates.At(walk.position(), walk.offset());
        if (from >= 0) {  // else the new tensor's 0 stays
            CopyElement(data, from, result, walk.offset());
        }
    }
    return std::move(result.tensor);
}

Result<Tensor> Evaluate(const op::Scatter& scatter, Operands operands, const Context& context) {
    const Tensor &data = operands[0], &updates = operands[1];
    FORNAX_RETURN_IF_ERROR(CheckIndices(operands.subspan(2), updates.dims));
    FORNAX_ASSIGN_OR_RETURN(NewTensor result, context.Allocate(data.element, data.dims));
    const std::vector<int64_t> data_strides = RowMajorStrides(data.dims);
    CopyElements(data, {0, data_strides}, result, {0, data_strides}, data.dims);
    const Coordinates coordinates(data.dims, scatter.sources, operands.subspan(2));
    const std::vector<int64_t> strides = RowMajorStrides(updates.dims);
    const uint32_t bytes = BytesOf(data.element);
    for (Walk walk(updates.dims, strides); walk.valid(); walk.Next()) {
        const int64_t at = coordinates.At(walk.position(), walk.offset());
        if (at < 0) {
            continue;
        }
        if (scatter.combine == Combine::kReplace) {
            CopyElement(updates, walk.offset(), result, at);
            continue;
        }
        uint8_t* to = result.data + at * bytes;
        WriteElement(data.element,
                     EvaluateCombine(scatter.combine, data.element, ReadElement(data.element, to),
                                     updates.At(walk.offset())),
                     to);
    }
    return std::move(result.tensor);
}

}  // namespace fornax::graph::interpret
