// Reading and writing elements by indices from tensors: ONNX's and torch's families.
//
// Negative indices count from the end where the operator says so; what is out of range then reads
// 0 and writes nothing.
#pragma once

#include "compiler/graph/build/builder.h"

namespace fornax::graph {

// i64, with the axis' size added to what is negative.
Val WrapIndex(Val index, const Expr& size);
// The slices of `data` along `axis` at the indices, whose dimensions take the axis' place.
Val Take(Val data, Val indices, int64_t axis);
// result[.., i, ..] = data[.., indices[.., i, ..], ..]
Val TakeAlong(Val data, Val indices, int64_t axis);
// The last dimension of indices holds coordinates; the first `batch` dimensions are common.
Val TakeNd(Val data, Val indices, int64_t batch);
Val PutAlong(Val data, Val indices, Val updates, int64_t axis, Combine combine);
Val PutNd(Val data, Val indices, Val updates, Combine combine);
// The slice at one index, an i64 without dimensions; the result lacks the axis.
Val TakeOne(Val data, Val index, int64_t axis);
// Data with the slice at one index replaced.
Val PutOne(Val data, Val index, Val slice, int64_t axis);
// `on` where the position along a new axis of `depth` is the index, else `off`.
Val OneHot(Val indices, const Expr& depth, Val off, Val on, int64_t axis);

}  // namespace fornax::graph
