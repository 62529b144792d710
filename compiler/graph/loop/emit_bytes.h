// Sums of products of bytes and of bf16: tiles of rows by columns in registers.
//
// An invocation computes one column of a few rows. Along k it takes words, four bytes or two bf16
// at a time: of b its own, of a one for all invocations, and adds their dot product to the row's
// sum. So a multiplication costs a quarter or half of one of f32, and nothing is converted.
//
// A sum over blocks takes the words of b of a block into registers, which all rows multiply by.
#pragma once

#include "compiler/graph/loop/mapping_part.h"
#include "compiler/graph/loop/product.h"

namespace fornax::graph::loop {

// False if the product or the device is not made for it.
bool EmitByteProduct(KernelParts& parts, const Product& product);
// A sum over blocks of such products. False if the kernel is none, or the device not made for it.
bool EmitBlockProduct(KernelParts& parts);

}  // namespace fornax::graph::loop
