// Window functions and Fourier transforms, the latter as products with cosines and sines.
#include "compiler/graph/build/signal.h"

#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "compiler/graph/build/activations.h"

namespace fornax::graph {
namespace {

// The sine of 2 pi t / (4 length), where t is in 0..4 length - 1: exact at multiples of a quarter,
// because the argument is brought to -pi/2..pi/2 in integers.
Val SineOfTurns(Val t, Val length, ElementType compute) {
    const Val half = length * 2.0, whole = length * 4.0;
    const Val centred = Where(map::Less(half, t), t - whole, t);
    const Val upper = Where(map::Less(length, centred), half - centred, centred);
    const Val folded = Where(map::Less(upper, -length), -half - upper, upper);
    return map::Sin(Cast(folded, compute) * (std::numbers::pi / 2) / Cast(length, compute));
}

}  // namespace

Val CosineWindow(Builder& b,
                 const Expr& size,
                 bool periodic,
                 double a0,
                 double a1,
                 double a2,
                 ElementType element) {
    const ElementType compute = ComputeType(element);
    const Val place = b.Iota(compute, Shape{size}, 0);
    const Val period = Max(Cast(b.Size(periodic ? size : size - 1), compute), 1);
    const Val angle = place * (2 * std::numbers::pi) / period;
    Val window = a0 - map::Cos(angle) * a1;
    if (a2 != 0) {
        window = window + map::Cos(angle * 2.0) * a2;
    }
    return Cast(window, element);
}

Val FourierTransform(Val x, int64_t axis, const Expr& length, Transform transform) {
    axis = Builder::Axis(axis, x.rank());
    if (axis == x.rank() - 1 || x.rank() > 20) {
        FailInvalid(
            fmt::format("the axis {} of {} cannot be transformed", axis, x.shape().ToString()));
    }
    const Expr parts = x.dim(-1);
    SizeFacts& sizes = x.builder().sizes();
    const bool real = sizes.Equal(parts, 1);
    if (!real && !sizes.Equal(parts, 2)) {
        FailInvalid(fmt::format("the last dimension of {} is {}, neither 1 (real) nor 2 (complex)",
                                x.shape().ToString(), parts.ToString()));
    }
    if (!parts.constant()) {
        x = SliceAxis(x, -1, 0, real ? 1 : 2);  // of an open size, which has one value from here on
    }
    return x.builder().Composite("dft",
                                 {{"axis", axis}, {"transform", static_cast<int64_t>(transform)}},
                                 {x, x.builder().Size(length)}, [&](Builder&, Vals in) -> Vals {
                                     return {FourierProduct(in[0], axis, length, transform)};
                                 })[0];
}

Val FourierProduct(Val x, int64_t axis, const Expr& length, Transform transform) {
    Builder& b = x.builder();
    const bool inverse = transform == Transform::kInverse || transform == Transform::kInverseHalf;
    const bool from_half = transform == Transform::kInverseHalf;
    const Expr half = FloorDiv(length, 2) + 1;
    const Expr rows = from_half ? half : length;
    const Expr columns = transform == Transform::kForwardHalf ? half : length;
    const ElementType type = x.element(), compute = ComputeType(type);
    std::vector<Expr> low(static_cast<size_t>(x.rank()), Expr(0)), high = low;
    high[static_cast<size_t>(axis)] = rows - x.dim(axis);
    const Val padded = Cast(Pad(x, 0, low, high), compute);
    const bool complex = b.sizes().Equal(padded.dim(-1), 2);
    const Val real = Select(padded, -1, 0);
    const Val imaginary = complex ? Select(padded, -1, 1) : Val();
    // The angle of row i and column j is 2 pi (i j mod length) / length.
    const Shape square{rows, columns};
    const Val whole = b.Size(length);
    const Val quarters =
        map::Mod(b.Iota(ElementType::kI64, square, 0) * b.Iota(ElementType::kI64, square, 1),
                 whole) *
        4.0;
    const Val count = Cast(whole, compute);
    Val sine = SineOfTurns(quarters, whole, compute);
    Val cosine = SineOfTurns(map::Mod(quarters + whole, whole * 4.0), whole, compute);
    if (inverse) {
        cosine = cosine / count;
        sine = -(sine / count);
    }
    if (from_half) {
        // Frequencies between the first and the middle stand for their mirror images, too.
        const Val row = b.Iota(ElementType::kI64, Shape{rows, 1}, 0);
        const Val single = Or(Equal(row, 0), map::Equal(row * 2.0, b.Size(length)));
        const Val weight = Where(single, Like(cosine, 1), Like(cosine, 2));
        cosine = cosine * weight;
        sine = sine * weight;
    }
    std::string labels, result;
    for (int64_t i = 0; i < x.rank() - 1; ++i) {
        const char label = static_cast<char>('a' + i);
        labels += i == axis ? 'Y' : label;
        result += i == axis ? 'Z' : label;
    }
    const auto times = [&](Val v, Val matrix) {
        return Contract(v, matrix, labels + ",YZ->" + result);
    };
    Val out_real = times(real, cosine);
    if (complex) {
        out_real = out_real + times(imaginary, sine);
    }
    if (from_half) {
        return Cast(Unsqueeze(out_real, -1), type);
    }
    Val out_imaginary = -times(real, sine);
    if (complex) {
        out_imaginary = out_imaginary + times(imaginary, cosine);
    }
    return Cast(Stack({out_real, out_imaginary}, -1), type);
}

Val ShortTimeTransform(Val signal, int64_t step, Val window, const Expr& length, bool half) {
    if (signal.rank() != 3 || step < 1) {
        FailInvalid(
            fmt::format("the signal is {} and the step {}", signal.shape().ToString(), step));
    }
    // [batch, frames, parts, length] to [batch, frames, length, parts].
    Val frames = MoveAxis(Window(signal, 1, length, step, 1), 2, 3);
    if (window) {
        frames = frames * Reshape(Cast(window, signal.element()), {length, 1});
    }
    return FourierTransform(frames, 2, length,
                            half ? Transform::kForwardHalf : Transform::kForward);
}

Val MelWeights(Builder& b,
               int64_t bins,
               int64_t length,
               int64_t sample_rate,
               double lowest,
               double highest,
               ElementType element) {
    constexpr int64_t kMaxElements = int64_t{1} << 24;
    const int64_t rows = length / 2 + 1;
    if (bins < 1 || length < 1 || sample_rate < 1 || rows > kMaxElements / bins || lowest < 0 ||
        !(highest >= lowest) || !std::isfinite(highest)) {
        FailInvalid(fmt::format("{} bins of {} to {} Hz are wanted of {} samples at {} Hz", bins,
                                lowest, highest, length, sample_rate));
    }
    const auto to_mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
    const double low = to_mel(lowest);
    const double spacing = (to_mel(highest) - low) / static_cast<double>(bins + 2);
    std::vector<int64_t> edges;
    for (int64_t i = 0; i < bins + 2; ++i) {
        const double hertz =
            700 * (std::pow(10, (static_cast<double>(i) * spacing + low) / 2595) - 1);
        const double edge =
            std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(sample_rate));
        edges.push_back(
            static_cast<int64_t>(std::min(edge, static_cast<double>(fornax::graph::kMaxElements))));
    }
    std::vector<float> weights(static_cast<size_t>(rows * bins), 0);
    for (int64_t i = 0; i < bins; ++i) {
        const size_t bin = static_cast<size_t>(i);
        const int64_t begin = edges[bin], centre = edges[bin + 1], end = edges[bin + 2];
        const auto set = [&](int64_t row, int64_t part, int64_t whole) {
            if (row >= 0 && row < rows) {
                weights[static_cast<size_t>(row * bins + i)] =
                    static_cast<float>(static_cast<double>(part) / static_cast<double>(whole));
            }
        };
        if (centre == begin) {
            set(centre, 1, 1);
        }
        for (int64_t row = begin; centre != begin && row <= std::min(centre, rows); ++row) {
            set(row, row - begin, centre - begin);
        }
        for (int64_t row = centre; row < std::min(end, rows); ++row) {
            set(row, end - row, end - centre);
        }
    }
    return Cast(b.Constant(Tensor::FromFloats({rows, bins}, weights)), element);
}

}  // namespace fornax::graph
