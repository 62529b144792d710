// Kernels whose work is a sum of products: what Mapping::kProduct asks for.
//
// A matrix product, a convolution and every other contraction are one loop nest: a sum over k of
// a(batch, m, k) * b(batch, n, k), where each of the four stands for any number of loops. What the
// kernel does with the sum, its epilogue, may be anything.
#pragma once

#include <optional>
#include <vector>

#include "compiler/graph/loop/kernel.h"
#include "compiler/graph/loop/scope.h"

namespace fornax::graph::loop {

struct Product {
    ScalarId sum;   // the reduction
    ScalarId a, b;  // the operands of the multiplication in it
    // Parallel loops in their order: those that both operands depend on, only a, only b. The loops
    // of the reduction.
    std::vector<Loop> batch, m, n, k;
};

// Finds the product of a kernel that has one sum, on which every store depends, and no other
// reduction and no sequential loop. Of the two operands b is the one that depends on the last
// parallel loop.
std::optional<Product> FindProduct(const Kernel& kernel, const Scope& scope);

// The product that a reduction of the kernel is, whatever else the kernel has.
std::optional<Product> ProductOf(const Kernel& kernel, const Scope& scope, ScalarId sum);

}  // namespace fornax::graph::loop
