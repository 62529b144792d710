// Sizes and quotients of complex numbers.
#include "compiler/graph/build/complex.h"

namespace fornax::graph {
namespace {

// The greater part's size, and 1 where both are zero.
Val ScaleOf(const Complex& x) {
    const Val greater = map::Max(map::Abs(x.real), map::Abs(x.imaginary));
    return Where(Equal(greater, 0), Like(greater, 1), greater);
}

}  // namespace

Val Size(const Complex& x) {
    const Val scale = ScaleOf(x);
    return scale * map::Sqrt(SquaredSize(x / scale));
}

Complex operator/(const Complex& a, const Complex& b) {
    const Val scale = ScaleOf(b);
    const Complex divisor = b / scale;
    return a / scale * (Conjugate(divisor) / SquaredSize(divisor));
}

}  // namespace fornax::graph
