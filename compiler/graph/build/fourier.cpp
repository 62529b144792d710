// Lengths that the template has no room for are transformed in two steps, those with other prime
// factors than 2, 3, 5 and 7 as a convolution of a length that has none (Bluestein's form). Both
// are transforms by the template with multiplications between them.
#include "compiler/graph/build/fourier.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <optional>

namespace fornax::graph {
namespace {

using Complex = std::complex<double>;

// The template's limit, declared in templates/template.h.
constexpr int64_t kMostPoints = 2048;
constexpr size_t kMostRadices = 5;
// Shorter ones are faster as products, as measured on two cores of a Zen 4. A product of few rows
// pays for its matrix of cosines and sines, which each run computes.
constexpr int64_t kLeastLength = 32;
constexpr int64_t kLeastOfManyRows = 64;
constexpr int64_t kLeastOfManyRealRows = 120;
// The same for lengths that take a convolution.
constexpr int64_t kLeastConvolved = 64;
constexpr int64_t kLeastConvolvedOfManyRows = 500;
// Tables grow with the length.
constexpr int64_t kMostLength = int64_t{1} << 22;

// exp(-2 pi i number / of), exact at multiples of an eighth of a turn.
Complex Root(int64_t number, int64_t of) {
    const int64_t n = (number % of + of) % of;
    const int64_t quarter = 4 * n / of;
    const int64_t rest = 4 * n - quarter * of;  // of 4 of
    const bool swaps = 2 * rest > of;
    const double angle = std::numbers::pi / 2 * static_cast<double>(swaps ? of - rest : rest) /
                         static_cast<double>(of);
    const double near = std::cos(angle), far = std::sin(angle);
    const Complex first = swaps ? Complex(far, -near) : Complex(near, -far);
    constexpr Complex kQuarters[] = {{1, 0}, {0, -1}, {-1, 0}, {0, 1}};
    return first * kQuarters[quarter];
}

// The transform of a power of two or another product of small factors, on the host.
std::vector<Complex> TransformOf(const std::vector<Complex>& numbers) {
    const auto length = static_cast<int64_t>(numbers.size());
    int64_t factor = 2;
    while (factor < length && length % factor != 0) {
        ++factor;
    }
    if (length <= 1) {
        return numbers;
    }
    // Every factor-th number from each of the first ones on.
    std::vector<std::vector<Complex>> parts;
    for (int64_t first = 0; first < factor; ++first) {
        std::vector<Complex> part;
        for (int64_t i = first; i < length; i += factor) {
            part.push_back(numbers[static_cast<size_t>(i)]);
        }
        parts.push_back(TransformOf(part));
    }
    std::vector<Complex> result(numbers.size());
    for (int64_t k = 0; k < length; ++k) {
        for (int64_t first = 0; first < factor; ++first) {
            result[static_cast<size_t>(k)] +=
                parts[static_cast<size_t>(first)][static_cast<size_t>(k % (length / factor))] *
                Root(first * k, length);
        }
    }
    return result;
}

bool HasSmallFactors(int64_t length) {
    for (const int64_t factor : {2, 3, 5, 7}) {
        while (length % factor == 0) {
            length /= factor;
        }
    }
    return length == 1;
}

// The radices of a row of the template's, in the order of its passes; none if it has no such row.
// Passes of 16 points or more a block load and store whole vectors, so a large radix is the last.
std::vector<int64_t> RadicesOf(int64_t points) {
    std::vector<int64_t> radices;
    if (points < 2 || points > kMostPoints || !HasSmallFactors(points)) {
        return {};
    }
    for (const int64_t radix : {7, 5, 3}) {
        for (; points % radix == 0; points /= radix) {
            radices.push_back(radix);
        }
    }
    int64_t twos = 0;
    for (; points % 2 == 0; points /= 2) {
        ++twos;
    }
    // Few passes of radices that differ little.
    const int64_t passes = (twos + 3) / 4;
    for (int64_t i = 0; i < passes; ++i) {
        radices.push_back(int64_t{1} << ((twos + i) / passes));
    }
    return radices.size() <= kMostRadices ? radices : std::vector<int64_t>();
}

Val Constant(Builder& b, const std::vector<int64_t>& dims, const std::vector<float>& values) {
    return b.Constant(Tensor::FromFloats(dims, values));
}

// The table that the template reads, as fourier_rows.comp says.
Val Roots(Builder& b, int64_t points, const std::vector<int64_t>& radices, bool packed) {
    std::vector<float> roots(static_cast<size_t>(2 * points + (packed ? 2 * points + 2 : 0)), 0);
    const auto set = [&](int64_t at, int64_t apart, Complex value) {
        roots[static_cast<size_t>(at)] = static_cast<float>(value.real());
        roots[static_cast<size_t>(at + apart)] = static_cast<float>(value.imag());
    };
    int64_t before = radices[0];
    for (size_t pass = 1; pass < radices.size(); before *= radices[pass++]) {
        for (int64_t k = 1; k < radices[pass]; ++k) {
            for (int64_t f = 0; f < before; ++f) {
                set(2 * before * k + f, before, Root(f * k, before * radices[pass]));
            }
        }
    }
    for (int64_t k = 0; packed && k <= points; ++k) {
        set(2 * points + k, points + 1, Root(k, 2 * points));
    }
    return Constant(b, {static_cast<int64_t>(roots.size())}, roots);
}

bool IsInverse(Transform transform) {
    return transform == Transform::kInverse || transform == Transform::kInverseHalf;
}

// Each complex number [..., 2] times one of `factors`, whose dimensions are `dims`.
Val Times(Val x, const std::vector<Complex>& factors, std::vector<int64_t> dims) {
    std::vector<float> real, imaginary;
    for (const Complex& factor : factors) {
        for (const double sign : {-1.0, 1.0}) {
            real.push_back(static_cast<float>(factor.real()));
            imaginary.push_back(static_cast<float>(sign * factor.imag()));
        }
    }
    dims.push_back(2);
    Builder& b = x.builder();
    return x * Constant(b, dims, real) + Reverse(x, -1) * Constant(b, dims, imaginary);
}

// The dimensions of x before the last two, and these behind them.
Shape WithLast(Val x, const std::vector<Expr>& last) {
    const Shape shape = x.shape();
    std::vector<Expr> dims(shape.dims().begin(), shape.dims().end() - 2);
    dims.insert(dims.end(), last.begin(), last.end());
    return Shape(std::move(dims));
}

// One row of the template's, if the length has one.
Val TransformRows(Val x, int64_t length, Transform transform) {
    const bool real = x.dim(-1) == Expr(1);
    const bool from_half = transform == Transform::kInverseHalf;
    if (from_half && real) {
        return {};
    }
    const bool packed =
        length % 2 == 0 && (from_half || (real && transform != Transform::kInverse));
    const int64_t points = packed ? length / 2 : length, half = length / 2 + 1;
    std::vector<int64_t> radices = RadicesOf(points);
    if (radices.empty()) {
        return {};
    }
    Attributes attributes = {
        {"points", points},
        {"packed", int64_t{packed}},
        {"inverse", int64_t{IsInverse(transform)}},
        {"given", (from_half ? half : length) * (real ? 1 : 2)},
        {"made", from_half                              ? length
                 : transform == Transform::kForwardHalf ? 2 * half
                                                        : 2 * length},
    };
    const Val roots = Roots(x.builder(), points, radices, packed);
    radices.resize(kMostRadices, 1);
    for (size_t i = 0; i < kMostRadices; ++i) {
        attributes["radix" + std::to_string(i)] = radices[i];
    }
    return x.builder().Composite(
        "fourier_rows", std::move(attributes), {x, roots}, [&](Builder&, Vals in) -> Vals {
            return {FourierProduct(in[0], in[0].rank() - 2, length, transform)};
        })[0];
}

Val ForwardTransform(Val x, int64_t length);

// [a b] numbers as a rows of b: transforms of the columns, roots of unity, transforms of the rows.
Val TransformInSteps(Val x, int64_t a, int64_t b) {
    const int64_t rank = x.rank(), parts = *x.dim(-1).constant();
    const Val columns = MoveAxis(Reshape(x, WithLast(x, {a, b, parts})), rank - 1, rank - 2);
    std::vector<Complex> factors;
    for (int64_t i = 0; i < b; ++i) {
        for (int64_t k = 0; k < a; ++k) {
            factors.push_back(Root(i * k, a * b));
        }
    }
    const Val turned = Times(ForwardTransform(columns, a), factors, {b, a});
    const Val rows = ForwardTransform(MoveAxis(turned, rank - 1, rank - 2), b);
    return Reshape(MoveAxis(rows, rank - 1, rank - 2), WithLast(x, {a * b, 2}));
}

// The length's divisors that are next to its root and have a row each.
std::optional<int64_t> DivisorOf(int64_t length) {
    for (auto a = static_cast<int64_t>(std::sqrt(static_cast<double>(length))); a > 1; --a) {
        if (length % a == 0 && !RadicesOf(a).empty() && !RadicesOf(length / a).empty()) {
            return a;
        }
    }
    return std::nullopt;
}

bool HasSteps(int64_t length) {
    return !RadicesOf(length).empty() || DivisorOf(length).has_value();
}

// The least length for the convolution of Bluestein's form.
int64_t ConvolutionLength(int64_t length) {
    int64_t wanted = 2 * length - 1;
    // A row of a power of two or three times one is made of the fewest passes.
    int64_t best = 1;
    while (best < wanted) {
        best *= 2;
    }
    for (const int64_t quarters : {5, 6, 7}) {
        if (best % 8 == 0 && best / 8 * quarters >= wanted && HasSteps(best / 8 * quarters)) {
            return best / 8 * quarters;
        }
    }
    return best;
}

// k n = (k^2 + n^2 - (k - n)^2) / 2, so that a transform is a convolution with exp(pi i n^2 /
// length).
Val TransformByConvolution(Val x, int64_t length) {
    const int64_t size = ConvolutionLength(length);
    std::vector<Complex> chirp, kernel(static_cast<size_t>(size)), spectrum;
    for (int64_t i = 0; i < length; ++i) {
        chirp.push_back(Root(i * i % (2 * length), 2 * length));
        kernel[static_cast<size_t>(i)] = kernel[static_cast<size_t>((size - i) % size)] =
            std::conj(chirp.back());
    }
    spectrum = TransformOf(kernel);
    for (Complex& value : spectrum) {
        value = std::conj(value / static_cast<double>(size));
    }
    std::vector<Expr> low(static_cast<size_t>(x.rank()), Expr(0)), high = low;
    high[high.size() - 2] = size - length;
    const Val padded = Pad(Times(x, chirp, {length}), 0, low, high);
    // The inverse transform is the conjugate of a forward one of conjugates.
    Builder& b = x.builder();
    const Val conjugate = Constant(b, {2}, {1, -1});
    const Val product = Times(ForwardTransform(padded, size) * conjugate, spectrum, {size});
    const Val convolved = ForwardTransform(product, size) * conjugate;
    return Times(SliceAxis(convolved, -2, 0, length), chirp, {length});
}

// [..., length, 1 or 2] to [..., length, 2].
Val ForwardTransform(Val x, int64_t length) {
    if (const Val rows = TransformRows(x, length, Transform::kForward)) {
        return rows;
    }
    if (const std::optional<int64_t> divisor = DivisorOf(length)) {
        return TransformInSteps(x, *divisor, length / *divisor);
    }
    return TransformByConvolution(x, length);
}

// A zero for each number's imaginary part.
Val MadeComplex(Val x) {
    std::vector<Expr> low(static_cast<size_t>(x.rank()), Expr(0)), high = low;
    high.back() = 2 - x.dim(-1);
    return Pad(x, 0, low, high);
}

}  // namespace

bool HasFastTransform(int64_t length, int64_t rows, bool real) {
    const bool many = rows > length / 4;
    if (length > kMostLength) {
        return false;
    }
    if (HasSteps(length)) {
        return length >= (!many ? kLeastLength : real ? kLeastOfManyRealRows : kLeastOfManyRows);
    }
    return length >= (many ? kLeastConvolvedOfManyRows : kLeastConvolved) &&
           HasSteps(ConvolutionLength(length));
}

Val FastTransform(Val x, int64_t length, Transform transform) {
    if (const Val rows = TransformRows(x, length, transform)) {
        return rows;
    }
    const bool steps = HasSteps(length);
    if (!steps || IsInverse(transform)) {
        x = MadeComplex(x);
    }
    if (transform == Transform::kInverseHalf) {
        // The other frequencies are mirror images.
        const int64_t half = length / 2 + 1;
        const Val others = Reverse(SliceAxis(x, -2, 1, length - half), -2);
        x = Concat({x, others * Constant(x.builder(), {2}, {1, -1})}, -2);
    }
    const Val y = ForwardTransform(IsInverse(transform) ? Reverse(x, -1) : x, length);
    switch (transform) {
        case Transform::kForward:
            return y;
        case Transform::kForwardHalf:
            return SliceAxis(y, -2, 0, length / 2 + 1);
        case Transform::kInverse:
            return Reverse(y, -1) * (1.0 / static_cast<double>(length));
        case Transform::kInverseHalf:
            return SliceAxis(y, -1, 1, 1) * (1.0 / static_cast<double>(length));
    }
    return y;
}

}  // namespace fornax::graph
