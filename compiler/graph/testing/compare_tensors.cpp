// The first difference of two tensors, as a sentence.
#include "compiler/graph/testing/compare_tensors.h"

#include <cmath>

#include <fmt/format.h>

namespace fornax::graph::testing {

std::string Difference(const Tensor& actual, const Tensor& expected, double tolerance) {
    if (actual.type() != expected.type()) {
        return fmt::format("The tensor is {}, not {}.", actual.type().ToString(),
                           expected.type().ToString());
    }
    for (int64_t i = 0; i < expected.count(); ++i) {
        const Scalar a = actual.At(i), b = expected.At(i);
        const bool equal = b.is_float ? a.number == b.number ||
                                            (std::isnan(a.number) && std::isnan(b.number)) ||
                                            std::abs(a.number - b.number) <= tolerance
                                      : a.integer == b.integer;
        if (!equal) {
            return b.is_float
                       ? fmt::format("Element {} of {} is {}, not {} (tolerance {}).", i,
                                     expected.type().ToString(), a.number, b.number, tolerance)
                       : fmt::format("Element {} of {} is {}, not {}.", i,
                                     expected.type().ToString(), a.integer, b.integer);
        }
    }
    return "";
}

}  // namespace fornax::graph::testing
