// Rows by their numbers.
#include "compiler/frontends/ggml/node.h"

namespace fornax::ggml_frontend {
namespace {

using graph::Shape;
using graph::Val;

// Row i10 of result (i12, i11) is the row of that number of matrix (i12, i11).
Val GetRows(const Node& node) {
    const Val data = node.Raw(0);  // [i3, i2, rows, elements]
    Val index = node.Integer(1);   // [1, i12, i11, i10]
    const Shape of_index = index.shape();
    Shape shape({of_index[1], of_index[2], of_index[3], data.dim(3)});
    if (of_index[0] != graph::Expr(1) || data.dim(0) != shape[0] || data.dim(1) != shape[1]) {
        graph::FailUnsupported("the indices do not have the dimensions of the matrices");
    }
    index = BroadcastTo(Reshape(index, Shape({shape[0], shape[1], shape[2], 1})), shape);
    const Val rows = Gather(data, {0, 1, -1, 3}, {index}, shape);
    const TypeInfo& type = *node.source(0).type;
    return type.is_quantised() ? Decode(rows, type) : rows;
}

// The importer writes the rows; this entry only makes the operator known.
Val SetRows(const Node&) {
    graph::FailUnsupported("rows are written by the importer");
}

constexpr Operator kOperators[] = {
    {"GET_ROWS", GetRows},
    {"SET_ROWS", SetRows},
};

}  // namespace

std::span<const Operator> RowOperators() {
    return kOperators;
}

}  // namespace fornax::ggml_frontend
