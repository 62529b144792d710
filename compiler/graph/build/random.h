// Random numbers: functions of a seed and the element's number, the same on every device.
#pragma once

#include "compiler/graph/build/builder.h"

namespace fornax::graph {

// In 0..1, without 1.
Val RandomUniform(Builder& b, const Shape& shape, uint64_t seed, ElementType element);
// Normally distributed numbers with mean 0 and standard deviation 1.
Val RandomNormal(Builder& b, const Shape& shape, uint64_t seed, ElementType element);
// `count` indices a row, drawn from [batch, classes] unnormalised log probabilities.
Val Multinomial(Val logits, int64_t count, uint64_t seed, ElementType element);

}  // namespace fornax::graph
