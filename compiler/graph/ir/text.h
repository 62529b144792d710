// Graphs as text, for tests, dumps and bug reports.
//
//   graph "example" {
//       symbol n = 4 in 0..2147483647
//       guard n <= 512
//       %0 = input "x" f32[n,8]
//       %1 = constant "scale" f32[2] {1, 2.5}
//       %2 = constant "zeros" f32[1024] fill 0
//       %3 = constant "weights" u8[3] hex "00ff10"
//       %4, %5 = sort "top" (%0) {axis = 1, descending = true, count = 2} : f32[n,2], i64[n,2]
//       %6 = composite "twice" (%4) {name = "twice", attributes = {}} : f32[n,2]
//           graph "body" {
//               ...
//           }
//       write_state "save" (%6) {state = "cache"}
//       name %5 "positions"
//       fold %5 i64[4,2] {0, 1, 0, 1, 0, 1, 0, 1}
//       output "y" %6
//   }
//
// Statements are in the order of the values, which are numbered from 0. A node's fields are those
// of its structure in operation.h, in any order; a field that is left out has its default. The
// results' types may be left out, too; those that are there must be the inferred ones. Bodies
// follow their node. `name` gives a value another name than its node's, `fold` says that a result
// became a constant. Lists of integers, numbers and strings in attributes are ints[1, 2],
// floats[0.5] and strings["a"], and a number of type double has a point, an exponent or is inf or
// nan.
//
// Sizes are sums of products: 3*n*m - floor(k, 2) + 4, with mod, min, max and product. A symbol
// whose name is not an identifier is in quotation marks. `#` begins a comment.
//
// Constants of up to TextOptions::listed_elements elements are listed, those whose elements are all
// equal are filled, others are in hexadecimal, little-endian; so are numbers that their decimal
// form does not give exactly (NaNs with a payload).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "compiler/graph/ir/graph.h"

namespace fornax::graph {

// What a text's filled constants may take together; more are written in hexadecimal.
inline constexpr size_t kMaxFilledBytes = size_t{64} << 20;
// How deep bodies may be nested in a text, and functions and parentheses in a size.
inline constexpr int kMaxTextDepth = 64;

struct TextOptions {
    size_t listed_elements = 64;
    // Writes constants with more elements as their number of bytes. Such a text is for readers: it
    // does not parse.
    bool elide_constants = false;
};

// ToText(graph) of graph.h writes with the default options, which ParseGraph reads: the parsed
// graph has the same text.
std::string ToText(const Graph& graph, const TextOptions& options);
// "sort {axis = 1, descending = true, count = 2}".
std::string ToText(const Operation& operation);

}  // namespace fornax::graph
