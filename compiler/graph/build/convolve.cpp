// Convolutions: padding, windows and a contraction.
#include "compiler/graph/build/convolve.h"

#include <fmt/format.h>

#include "compiler/graph/build/activations.h"
#include "compiler/graph/build/byte_product.h"
#include "compiler/graph/build/product.h"

namespace fornax::graph {
namespace {

constexpr std::string_view kOutputLabels = "ABCDEFGHIJ";
constexpr std::string_view kWindowLabels = "KLMNOPQRST";

std::vector<int64_t> Hints(const SizeFacts& sizes, std::span<const Expr> values) {
    std::vector<int64_t> numbers;
    for (const Expr& value : values) {
        numbers.push_back(sizes.Hint(value));
    }
    return numbers;
}

Attributes AttributesOf(const SizeFacts& sizes, const SpatialWindow& window, int64_t groups) {
    return {{"strides", window.strides},
            {"dilations", window.dilations},
            {"low", Hints(sizes, window.low)},
            {"high", Hints(sizes, window.high)},
            {"groups", groups}};
}

// Axis 1 as [groups, channels / groups].
Val SplitChannels(Val x, int64_t groups, int64_t axis = 1) {
    const Shape shape = x.shape();
    std::vector<Expr> dims(shape.dims().begin(), shape.dims().end());
    const Expr channels = dims[static_cast<size_t>(axis)];
    if (groups < 1 || !x.builder().sizes().Equal(Mod(channels, groups), 0)) {
        FailInvalid(fmt::format("{} channels are not divisible into {} groups", channels.ToString(),
                                groups));
    }
    dims[static_cast<size_t>(axis)] = FloorDiv(channels, groups);
    dims.insert(dims.begin() + axis, Expr(groups));
    return Reshape(x, Shape(std::move(dims)));
}

void CheckImage(Val x, Val w, size_t spatial) {
    if (x.rank() != static_cast<int64_t>(spatial) + 2 || w.rank() != x.rank()) {
        FailInvalid(
            fmt::format("the input {} and the weights {} are not [batch, channels, ...] "
                        "with {} spatial dimensions",
                        x.shape().ToString(), w.shape().ToString(), spatial));
    }
}

Val AddBias(Val y, Val bias) {
    if (!bias) {
        return y;
    }
    std::vector<Expr> dims(static_cast<size_t>(y.rank() - 1), Expr(1));
    dims[0] = bias.dim(0);
    return y + Cast(Reshape(bias, Shape(std::move(dims))), y.element());
}

std::vector<Expr> WithLeading(std::span<const Expr> values) {
    std::vector<Expr> all = {0, 0};
    all.insert(all.end(), values.begin(), values.end());
    return all;
}

// Padded input [batch, channels, spatial...] and weights [out, channels / groups, window...] (or,
// with `swapped`, [channels, out / groups, window...]) to [batch, out, windows...].
Val ContractWindows(Val x,
                    Val w,
                    const SpatialWindow& window,
                    int64_t groups,
                    bool swapped,
                    ElementType accumulate) {
    for (size_t i = 0; i < window.rank(); ++i) {
        x = Window(x, static_cast<int64_t>(i) + 2, window.size[i], window.strides[i],
                   window.dilations[i]);
    }
    const std::string out(kOutputLabels.substr(0, window.rank()));
    const std::string in(kWindowLabels.substr(0, window.rank()));
    const Shape shape = w.shape();
    const Expr channels = swapped ? shape[1] * groups : shape[0];
    if (!x.builder().sizes().Equal(x.dim(1), swapped ? shape[0] : shape[1] * groups)) {
        FailInvalid(fmt::format("the input has {} channels, the weights are {} in {} groups",
                                x.dim(1).ToString(), shape.ToString(), groups));
    }
    Val y;
    if (groups == 1) {
        y = Contract(x, w, "nc" + out + in + (swapped ? ",co" : ",oc") + in + "->no" + out,
                     accumulate);
        return y;
    }
    y = Contract(SplitChannels(x, groups), SplitChannels(w, groups, 0),
                 "ngc" + out + in + (swapped ? ",gco" : ",goc") + in + "->ngo" + out, accumulate);
    const Shape split = y.shape();
    std::vector<Expr> dims(split.dims().begin(), split.dims().end());
    dims.erase(dims.begin() + 1);
    dims[1] = channels;
    return Reshape(y, Shape(std::move(dims)));
}

}  // namespace

void SpatialWindow::Check(size_t rank) const {
    if (rank == 0 || rank > kOutputLabels.size()) {
        FailInvalid(fmt::format("it has {} spatial dimensions; 1 to {} are supported", rank,
                                kOutputLabels.size()));
    }
    if (size.size() != rank || strides.size() != rank || dilations.size() != rank ||
        low.size() != rank || high.size() != rank) {
        FailInvalid(fmt::format(
            "the window's size, strides, dilations and padding have {}, {}, {} and {} + {} entries "
            "for {} spatial dimensions",
            size.size(), strides.size(), dilations.size(), low.size(), high.size(), rank));
    }
    for (size_t i = 0; i < rank; ++i) {
        if (strides[i] < 1 || dilations[i] < 1 || size[i].constant().value_or(1) < 1 ||
            strides[i] > INT32_MAX || dilations[i] > INT32_MAX) {
            FailInvalid(
                fmt::format("the window has a size of {}, a stride of {} and a dilation of "
                            "{}, which have to be positive",
                            size[i].ToString(), strides[i], dilations[i]));
        }
    }
}

void ApplyAutoPad(SpatialWindow& window, AutoPad mode, const Shape& input) {
    if (mode == AutoPad::kNone) {
        return;
    }
    for (size_t i = 0; i < window.rank(); ++i) {
        window.low[i] = 0;
        window.high[i] = 0;
        if (mode == AutoPad::kValid) {
            continue;
        }
        const Expr& n = input[i + 2];
        const Expr covered = (CeilDiv(n, window.strides[i]) - 1) * window.strides[i] +
                             (window.size[i] - 1) * window.dilations[i] + 1;
        const Expr total = Max(covered - n, 0);
        const Expr less = FloorDiv(total, 2);
        window.low[i] = mode == AutoPad::kSameUpper ? less : total - less;
        window.high[i] = total - window.low[i];
    }
}

Val Convolve(Val x,
             Val w,
             Val bias,
             const SpatialWindow& window,
             int64_t groups,
             ElementType accumulate) {
    CheckImage(x, w, window.rank());
    window.Check(window.rank());
    if (const std::optional<Val> y = ConvolveBytes(x, w, window, groups)) {
        return AddBias(*y, bias);
    }
    return x.builder().Composite(
        "conv", AttributesOf(x.builder().sizes(), window, groups), {x, w, bias},
        [&](Builder&, Vals in) -> Vals {
            const Val padded = Pad(in[0], 0, WithLeading(window.low), WithLeading(window.high));
            return {
                AddBias(ContractWindows(padded, in[1], window, groups, false, accumulate), in[2])};
        })[0];
}

namespace {

// A transposed convolution whose windows lie side by side: each place of x gives one window.
Val ScatterWindows(Val x, Val w) {
    const auto rank = static_cast<size_t>(x.rank() - 2);
    std::string interleaved = "n";
    std::vector<Expr> dims = {x.dim(0)};
    Axes channels_last = {0}, channels_second = {0, x.rank() - 1};
    for (size_t i = 0; i < rank; ++i) {
        const auto axis = static_cast<int64_t>(i) + 2;
        interleaved += {kOutputLabels[i], kWindowLabels[i]};
        dims.push_back(x.dim(axis) * w.dim(axis));
        channels_last.push_back(axis);
        channels_second.push_back(axis - 1);
    }
    channels_last.push_back(1);
    dims.push_back(w.dim(1));
    const std::string out(kOutputLabels.substr(0, rank)), in(kWindowLabels.substr(0, rank));
    const Val y = Contract(x, Permute(w, channels_last),
                           "nc" + out + ",c" + in + "o->" + interleaved + "o", x.element());
    return Permute(Reshape(y, Shape(std::move(dims))), channels_second);
}

// Whether computing the places between strides, where nothing but zeros is multiplied, costs more
// than a convolution for each place of a stride.
bool IsWorthPhases(Val x, Val w, const SpatialWindow& window, int64_t groups) {
    constexpr double kLeastOperations = 4e6;
    constexpr int64_t kMostPhases = 9;
    const SizeFacts& sizes = x.builder().sizes();
    int64_t phases = 1;
    for (size_t i = 0; i < window.rank(); ++i) {
        if (window.dilations[i] != 1 || !window.size[i].constant() ||
            window.strides[i] > kMostPhases) {
            return false;
        }
        phases *= window.strides[i];
    }
    const double products = 2 * static_cast<double>(sizes.Hint(x.shape().Volume())) *
                            static_cast<double>(sizes.Hint(w.shape().Volume())) /
                            static_cast<double>(std::max<int64_t>(sizes.Hint(x.dim(1)), 1));
    return groups == 1 && phases > 1 && phases <= kMostPhases && products >= kLeastOperations;
}

// A transposed convolution as convolutions of x with stride 1, one for each place of a stride: it
// takes every stride-th element of the window.
Val ConvolvePhases(Val x, Val w, const SpatialWindow& window, std::span<const Expr> extra) {
    Builder& b = x.builder();
    const size_t rank = window.rank();
    std::vector<Expr> first, count, size;  // strides that the result reaches into; its size
    int64_t phases = 1;
    for (size_t i = 0; i < rank; ++i) {
        const Expr all = (x.dim(static_cast<int64_t>(i) + 2) - 1) * window.strides[i] +
                         window.size[i] + extra[i];
        size.push_back(all - window.low[i] - window.high[i]);
        first.push_back(FloorDiv(window.low[i], window.strides[i]));
        count.push_back(CeilDiv(window.low[i] + size[i], window.strides[i]) - first[i]);
        phases *= window.strides[i];
    }
    Vals parts;
    for (int64_t phase = 0; phase < phases; ++phase) {
        SpatialWindow inner = window;
        std::vector<Expr> low, high;
        Val weights = w;
        bool is_empty = false;
        int64_t rest = phase;
        for (size_t i = rank; i-- > 0;) {
            const int64_t axis = static_cast<int64_t>(i) + 2, stride = window.strides[i];
            const int64_t place = rest % stride;
            rest /= stride;
            const int64_t taps = (*window.size[i].constant() - place + stride - 1) / stride;
            is_empty |= taps <= 0;
            if (taps > 0) {
                weights = Reverse(SliceAxis(weights, axis, place, taps, stride), axis);
            }
            inner.size[i] = taps;
            inner.strides[i] = 1;
            low.insert(low.begin(), taps - 1 - first[i]);
            high.insert(high.begin(), first[i] + count[i] - x.dim(axis));
        }
        std::vector<Expr> dims = {x.dim(0), w.dim(1)};
        dims.insert(dims.end(), count.begin(), count.end());
        if (is_empty) {
            parts.push_back(b.Full(x.element(), Shape(std::move(dims)), 0));
            continue;
        }
        const Val padded = Pad(x, 0, WithLeading(low), WithLeading(high));
        parts.push_back(ContractWindows(padded, weights, inner, 1, true, x.element()));
    }
    // [places of strides..., batch, channels, strides...] to [batch, channels, elements...].
    std::vector<Expr> apart, joined = {x.dim(0), w.dim(1)};
    Axes order = {static_cast<int64_t>(rank), static_cast<int64_t>(rank) + 1};
    for (size_t i = 0; i < rank; ++i) {
        apart.emplace_back(window.strides[i]);
        joined.push_back(count[i] * window.strides[i]);
        order.push_back(static_cast<int64_t>(rank + 2 + i));
        order.push_back(static_cast<int64_t>(i));
    }
    apart.insert(apart.end(), {x.dim(0), w.dim(1)});
    apart.insert(apart.end(), count.begin(), count.end());
    Val y = Reshape(Permute(Reshape(Stack(parts, 0), Shape(std::move(apart))), order),
                    Shape(std::move(joined)));
    for (size_t i = 0; i < rank; ++i) {
        y = SliceAxis(y, static_cast<int64_t>(i) + 2, window.low[i] - first[i] * window.strides[i],
                      size[i]);
    }
    return y;
}

bool AreSideBySide(const SpatialWindow& window, std::span<const Expr> extra) {
    for (size_t i = 0; i < window.rank(); ++i) {
        if (window.size[i] != Expr(window.strides[i]) || window.dilations[i] != 1 ||
            window.low[i] != Expr(0) || window.high[i] != Expr(0) || extra[i] != Expr(0)) {
            return false;
        }
    }
    return true;
}

}  // namespace

Val ConvolveIntegers(Val x,
                     Val x_zero,
                     Val w,
                     Val w_zero,
                     const SpatialWindow& window,
                     int64_t groups) {
    CheckImage(x, w, window.rank());
    window.Check(window.rank());
    if (const auto sums = ConvolveCodes(x, x_zero, w, w_zero, window, groups)) {
        return *sums;
    }
    Val left = Cast(x, ElementType::kI32), right = Cast(w, ElementType::kI32);
    if (x_zero) {
        left = left - Cast(Reshape(x_zero, Shape{}), ElementType::kI32);
    }
    if (w_zero) {
        right = right - SpreadScale(Cast(w_zero, ElementType::kI32), w, {0, 0});
    }
    return Convolve(left, right, Val(), window, groups, ElementType::kI32);
}

Val ConvolveTransposed(Val x,
                       Val w,
                       Val bias,
                       const SpatialWindow& window,
                       std::span<const Expr> extra,
                       int64_t groups) {
    CheckImage(x, w, window.rank());
    window.Check(window.rank());
    Attributes attributes = AttributesOf(x.builder().sizes(), window, groups);
    attributes["extra"] = Hints(x.builder().sizes(), extra);
    return x.builder().Composite(
        "conv_transpose", std::move(attributes), {x, w, bias}, [&](Builder&, Vals in) -> Vals {
            if (groups == 1 && AreSideBySide(window, extra)) {
                return {AddBias(ScatterWindows(in[0], in[1]), in[2])};
            }
            if (IsWorthPhases(in[0], in[1], window, groups)) {
                return {AddBias(ConvolvePhases(in[0], in[1], window, extra), in[2])};
            }
            // A convolution with stride 1 of the input with zeros between, with the mirrored
            // weights.
            std::vector<Expr> none(static_cast<size_t>(in[0].rank()), Expr(0)), low, high;
            std::vector<int64_t> between = {0, 0};
            SpatialWindow inner = window;
            Val weights = in[1];
            for (size_t i = 0; i < window.rank(); ++i) {
                between.push_back(window.strides[i] - 1);
                inner.strides[i] = 1;
                const Expr reach = (window.size[i] - 1) * window.dilations[i];
                low.push_back(reach - window.low[i]);
                high.push_back(reach - window.high[i] + extra[i]);
                weights = Reverse(weights, static_cast<int64_t>(i) + 2);
            }
            const Val spread = Pad(in[0], Like(in[0], 0), none, none, between);
            const Val padded = Pad(spread, 0, WithLeading(low), WithLeading(high));
            return {
                AddBias(ContractWindows(padded, weights, inner, groups, true, x.element()), in[2])};
        })[0];
}

Val DeformableConvolve(Val x,
                       Val w,
                       Val offset,
                       Val bias,
                       Val mask,
                       const SpatialWindow& window,
                       int64_t groups,
                       int64_t offset_groups) {
    CheckImage(x, w, window.rank());
    window.Check(window.rank());
    const size_t rank = window.rank();
    return x.builder().Composite(
        "deform_conv", AttributesOf(x.builder().sizes(), window, groups),
        {x, w, offset, bias, mask}, [&](Builder& b, Vals in) -> Vals {
            // Everything is [batch, offset groups, window..., output...]; corners of the cell
            // around a place are read where they exist.
            std::vector<Expr> place_dims = {in[2].dim(0), offset_groups};
            place_dims.insert(place_dims.end(), window.size.begin(), window.size.end());
            for (size_t i = 0; i < rank; ++i) {
                place_dims.push_back(in[2].dim(static_cast<int64_t>(i) + 2));
            }
            const Shape place_shape{place_dims};
            std::vector<Expr> offset_dims = place_dims;
            offset_dims.insert(offset_dims.begin() + 2 + static_cast<int64_t>(rank),
                               Expr(static_cast<int64_t>(rank)));
            const Val offsets = Reshape(in[2], Shape(offset_dims));
            const Val data = SplitChannels(in[0], offset_groups);
            std::vector<Expr> out_dims = place_dims;
            out_dims.insert(out_dims.begin() + 2, data.dim(2));
            const Shape out_shape{out_dims};
            std::vector<Val> base, fraction;
            for (size_t i = 0; i < rank; ++i) {
                const int64_t at = static_cast<int64_t>(i);
                const Val output =
                    b.Iota(ElementType::kF32, place_shape, 2 + static_cast<int64_t>(rank) + at);
                const Val inside = b.Iota(ElementType::kF32, place_shape, 2 + at);
                const Val low = Cast(b.Size(window.low[i]), ElementType::kF32);
                const Val place =
                    output * static_cast<double>(window.strides[i]) +
                    inside * static_cast<double>(window.dilations[i]) - low +
                    Cast(Select(offsets, 2 + static_cast<int64_t>(rank), at), ElementType::kF32);
                base.push_back(map::Floor(place));
                fraction.push_back(place - base.back());
            }
            std::vector<int64_t> sources = {0, 1, 2};
            for (size_t i = 0; i < rank; ++i) {
                sources.push_back(-1 - static_cast<int64_t>(i));
            }
            Val sum;
            for (size_t corner = 0; corner < (size_t{1} << rank); ++corner) {
                Vals indices;
                Val weight;
                for (size_t i = 0; i < rank; ++i) {
                    const bool far = (corner >> i & 1) != 0;
                    indices.push_back(
                        Unsqueeze(Cast(far ? base[i] + 1.0 : base[i], ElementType::kI64), 2));
                    const Val part = far ? fraction[i] : 1.0 - fraction[i];
                    weight = weight ? weight * part : part;
                }
                const Val value =
                    Cast(Gather(data, sources, indices, out_shape), ElementType::kF32) *
                    Unsqueeze(weight, 2);
                sum = sum ? sum + value : value;
            }
            if (in[4]) {
                sum = sum * Unsqueeze(Reshape(Cast(in[4], ElementType::kF32), place_shape), 2);
            }
            // [batch, channels, window..., output...]
            std::vector<Expr> column_dims = place_dims;
            column_dims[1] = in[0].dim(1);
            const Val columns = SplitChannels(Reshape(sum, Shape(column_dims)), groups);
            const std::string out(kOutputLabels.substr(0, rank)), k(kWindowLabels.substr(0, rank));
            const Val y =
                Contract(columns, SplitChannels(Cast(in[1], ElementType::kF32), groups, 0),
                         "ngc" + k + out + ",goc" + k + "->ngo" + out);
            const Shape split = y.shape();
            std::vector<Expr> dims(split.dims().begin(), split.dims().end());
            dims.erase(dims.begin() + 1);
            dims[1] = in[1].dim(0);
            return {AddBias(Cast(Reshape(y, Shape(std::move(dims))), in[0].element()), in[3])};
        })[0];
}

Val ColumnsToImage(Val columns, const SpatialWindow& window, std::span<const Expr> image) {
    const size_t rank = window.rank();
    window.Check(rank);
    if (image.size() != rank) {
        FailInvalid(fmt::format("the image has {} sizes, the window {}", image.size(), rank));
    }
    Builder& b = columns.builder();
    Expr volume = 1;
    for (const Expr& size : window.size) {
        volume *= size;
    }
    const Expr channels = FloorDiv(columns.dim(1), volume);
    std::vector<Expr> dims = {columns.dim(0), channels}, image_dims = dims;
    dims.insert(dims.end(), window.size.begin(), window.size.end());
    for (size_t i = 0; i < rank; ++i) {
        const Expr covered = (window.size[i] - 1) * window.dilations[i] + 1;
        dims.push_back(
            FloorDiv(image[i] + window.low[i] + window.high[i] - covered, window.strides[i]) + 1);
        image_dims.push_back(image[i]);
    }
    const Shape shape{dims};
    std::vector<int64_t> sources = {0, 1};
    Vals places;
    for (size_t i = 0; i < rank; ++i) {
        const int64_t at = static_cast<int64_t>(i);
        places.push_back(b.Iota(ElementType::kI64, shape, 2 + static_cast<int64_t>(rank) + at) *
                             static_cast<double>(window.strides[i]) +
                         b.Iota(ElementType::kI64, shape, 2 + at) *
                             static_cast<double>(window.dilations[i]) -
                         b.Size(window.low[i]));
        sources.push_back(-1 - at);
    }
    return Scatter(b.Full(columns.element(), Shape(image_dims), 0), Reshape(columns, shape),
                   sources, places, Combine::kSum);
}

}  // namespace fornax::graph
