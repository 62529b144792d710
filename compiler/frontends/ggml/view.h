// Strided views of ggml's tensors as views of the graph IR.
#pragma once

#include <array>
#include <cstdint>

#include "compiler/graph/build/builder.h"

namespace fornax::ggml_frontend {

// Element (i3, i2, i1, i0) is element offset + sum of i[d] * strides[d] of a flat tensor; ggml's
// order, the innermost dimension first.
struct StridedView {
    std::array<int64_t, 4> sizes = {};
    std::array<int64_t, 4> strides = {};
    int64_t offset = 0;
};

// The view's elements as a value [i3, i2, i1, i0]. `flat` has one dimension of constant size. Fails
// if an element is outside of it. Without elements that overlap it is views alone; else a gather.
// A view that may grow is cut out even if it is all of the memory: so it is the same graph then.
graph::Val ReadView(graph::Val flat, const StridedView& view, bool may_grow = false);

// `flat` with the view's elements replaced by `value` [i3, i2, i1, i0].
graph::Val WriteView(graph::Val flat, const StridedView& view, graph::Val value);

}  // namespace fornax::ggml_frontend
