// What generated programs have of C beside their kernels.
#pragma once

#include <string_view>

namespace fornax::graph::c {

// Functions that kernels use (prefix "fx_"): the arithmetic of ir/scalar_function.cpp and the
// conversions of ir/element_type.cpp where C's own differ.
std::string_view ScalarSupport();

// A program around the network: reads inputs, runs, writes outputs, prints cycles. NAME is the
// network's name, NAME_UPPER the same in capitals; Filled() puts them in.
std::string_view MainProgram();
// The start of a bare-metal program, its traps, semihosting, and the devices' registers.
std::string_view BareMetalSupport();

}  // namespace fornax::graph::c
