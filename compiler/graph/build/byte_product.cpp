// Products of quantised tensors in integers.
//
// A format that describes quantised networks by dequantise, product, quantise means the product of
// integers. Here it is that: exact sums of bytes, for which kernels have instructions, and one
// scale behind them. Operators of integers are the sums alone. k lies innermost and in words of
// four bytes in both operands: images have their channels last, and constant weights lie in panels
// of 16 columns.
#include "compiler/graph/build/byte_product.h"

#include <string>

#include "compiler/graph/build/product.h"

namespace fornax::graph {
namespace {

constexpr int64_t kPanel = 16;
constexpr int64_t kWord = 4;

// (codes - zero) * scale. The scale, if there is one, and the zero point, if there is one, are one
// number or run along `axis` of the codes.
struct Quantised {
    Val codes, scale, zero;
    int64_t axis = 0;
};

std::optional<Quantised> QuantisedOf(Val x) {
    Builder& b = x.builder();
    const auto* composite = b.graph().ProducerAs<op::Composite>(x.id());
    if (composite == nullptr || composite->name != "dequantise" ||
        x.element() != ElementType::kF32 ||
        std::get<int64_t>(composite->attributes.at("block")) != 0) {
        return std::nullopt;
    }
    const std::vector<ValueId> operands = b.graph().Producer(x.id())->operands;
    Quantised result;
    result.codes = Val(b, operands[0]);
    result.scale = Val(b, operands[1]);
    result.zero = operands.size() > 2 ? Val(b, operands[2]) : Val();
    result.axis = std::get<int64_t>(composite->attributes.at("axis"));
    result.axis += result.axis < 0 ? x.rank() : 0;
    return result;
}

bool IsOneNumber(Val value) {
    return value.shape().Volume() == Expr(1);
}

// Activations: u8 with one scale and zero point; signed ones become that.
std::optional<Quantised> Activations(std::optional<Quantised> x) {
    if (!x || (x->codes.element() != ElementType::kU8 && x->codes.element() != ElementType::kI8) ||
        (x->scale && !IsOneNumber(x->scale)) ||
        (x->zero && (!IsOneNumber(x->zero) || x->zero.element() != x->codes.element()))) {
        return std::nullopt;
    }
    const ElementType element = x->codes.element();
    x->zero = x->zero ? Reshape(x->zero, Shape{}) : x->codes.builder().Scalar(element, 0);
    if (element == ElementType::kI8) {
        x->codes = FlipSign(x->codes, ElementType::kU8);
        x->zero = FlipSign(x->zero, ElementType::kU8);
    }
    return x;
}

// Constant weights less their zero points, if these fit a signed byte.
struct Weights {
    std::vector<int64_t> dims;
    std::vector<int8_t> codes;
};

std::optional<Weights> WeightsOf(const std::optional<Quantised>& quantised, int64_t column_axis) {
    if (!quantised || (quantised->scale && !IsOneNumber(quantised->scale) &&
                       (quantised->scale.rank() != 1 || quantised->axis != column_axis))) {
        return std::nullopt;
    }
    Builder& b = quantised->codes.builder();
    const Tensor* codes = b.ConstantOf(quantised->codes);
    const Tensor* zero = quantised->zero ? b.ConstantOf(quantised->zero) : nullptr;
    if (codes == nullptr ||
        (quantised->zero && (zero == nullptr || zero->element != codes->element)) ||
        (codes->element != ElementType::kI8 && codes->element != ElementType::kU8)) {
        return std::nullopt;
    }
    Weights result;
    result.dims = codes->dims;
    int64_t inner = 1;
    for (size_t axis = static_cast<size_t>(column_axis) + 1; axis < codes->dims.size(); ++axis) {
        inner *= codes->dims[axis];
    }
    const int64_t columns = codes->dims[static_cast<size_t>(column_axis)];
    const bool zeros_of_columns = zero != nullptr && zero->count() == columns &&
                                  zero->dims.size() == 1 && quantised->axis == column_axis;
    if (zero != nullptr && zero->count() != 1 && !zeros_of_columns) {
        return std::nullopt;
    }
    std::vector<int64_t> zeros(static_cast<size_t>(columns), 0);
    for (int64_t i = 0; zero != nullptr && i < columns; ++i) {
        zeros[static_cast<size_t>(i)] = zero->At(zero->count() == 1 ? 0 : i).integer;
    }
    const bool is_signed = codes->element == ElementType::kI8;
    for (int64_t i = 0; i < codes->count(); ++i) {
        const uint8_t byte = codes->data->data()[i];
        const int64_t code = (is_signed ? static_cast<int8_t>(byte) : int64_t{byte}) -
                             zeros[static_cast<size_t>(i / inner % columns)];
        if (code < INT8_MIN || code > INT8_MAX) {
            return std::nullopt;
        }
        result.codes.push_back(static_cast<int8_t>(code));
    }
    return result;
}

Tensor ByteTensor(std::vector<int64_t> dims, uint8_t** data) {
    return Tensor::Zeros(ElementType::kI8, std::move(dims), data);
}

// i32 [outer..., columns] of words [outer..., k dims..., 4]: the sums over k less the zero point's
// part. `at` gives the weights of (word of k, place in it, column).
template <typename At>
Val Multiply(const Quantised& x, Val words, size_t outer_rank, int64_t columns, At at) {
    Builder& b = words.builder();
    const Shape shape = words.shape();
    const int64_t panels = (columns + kPanel - 1) / kPanel;
    std::vector<int64_t> dims = {panels};
    std::string outer, inner;
    int64_t depth = 1;  // in words
    for (size_t axis = 0; axis + 1 < shape.rank(); ++axis) {
        if (axis < outer_rank) {
            outer += static_cast<char>('A' + axis);
            continue;
        }
        inner += static_cast<char>('a' + (axis - outer_rank));
        dims.push_back(*shape[axis].constant());
        depth *= dims.back();
    }
    dims.push_back(kPanel);
    dims.push_back(kWord);
    uint8_t* data = nullptr;
    Tensor packed = ByteTensor(dims, &data);
    std::vector<int64_t> totals(static_cast<size_t>(columns), 0);
    for (int64_t column = 0; column < columns; ++column) {
        uint8_t* panel = data + (column / kPanel * depth * kPanel + column % kPanel) * kWord;
        for (int64_t word = 0; word < depth; ++word) {
            for (int64_t place = 0; place < kWord; ++place) {
                const int8_t code = at(word, place, column);
                panel[word * kPanel * kWord + place] = static_cast<uint8_t>(code);
                totals[static_cast<size_t>(column)] += code;
            }
        }
    }
    Val sums = Contract(words, b.Constant(std::move(packed), b.name() + ".packed"),
                        outer + inner + "u,p" + inner + "qu->" + outer + "pq", ElementType::kI32);
    std::vector<Expr> sum_dims(shape.dims().begin(),
                               shape.dims().begin() + static_cast<std::ptrdiff_t>(outer_rank));
    sum_dims.push_back(panels * kPanel);
    sums = SliceAxis(Reshape(sums, Shape(std::move(sum_dims))), -1, 0, columns);
    uint8_t* total_data = nullptr;
    Tensor total = Tensor::Zeros(ElementType::kI32, {columns}, &total_data);
    for (int64_t column = 0; column < columns; ++column) {
        WriteElement(ElementType::kI32, Scalar::Integer(totals[static_cast<size_t>(column)]),
                     total_data + column * BytesOf(ElementType::kI32));
    }
    return sums - Cast(x.zero, ElementType::kI32) * b.Constant(std::move(total));
}

// The sums as floats. Their columns are last.
Val Scaled(Val sums, const Quantised& x, const Quantised& weights) {
    const Val scale = IsOneNumber(weights.scale) ? Reshape(weights.scale, Shape{}) : weights.scale;
    return Cast(sums, ElementType::kF32) * (scale * Reshape(x.scale, Shape{}));
}

std::vector<Expr> DimsOf(const Shape& shape) {
    return {shape.dims().begin(), shape.dims().end()};
}

// The axes of [batch, channels, spatial...] with the channels last, and back.
std::vector<int64_t> ChannelsLast(int64_t rank) {
    std::vector<int64_t> order = {0};
    for (int64_t axis = 2; axis < rank; ++axis) {
        order.push_back(axis);
    }
    order.push_back(1);
    return order;
}

std::vector<int64_t> ChannelsSecond(int64_t rank) {
    std::vector<int64_t> order = {0, rank - 1};
    for (int64_t axis = 1; axis + 1 < rank; ++axis) {
        order.push_back(axis);
    }
    return order;
}

// [batch, out..., channels, window...] of the padded codes. Channels are filled up to `channels`.
Val Windows(const Quantised& x, const SpatialWindow& window, const Expr& channels) {
    const int64_t rank = x.codes.rank();
    Val codes = Permute(x.codes, ChannelsLast(rank));
    std::vector<Expr> none(static_cast<size_t>(rank), Expr(0)), more = none;
    more.back() = channels - codes.dim(-1);
    if (!(more.back() == Expr(0))) {
        codes = Pad(codes, x.zero, none, std::move(more));
    }
    std::vector<Expr> low = {0}, high = {0};
    low.insert(low.end(), window.low.begin(), window.low.end());
    high.insert(high.end(), window.high.begin(), window.high.end());
    low.emplace_back(0);
    high.emplace_back(0);
    codes = Pad(codes, x.zero, std::move(low), std::move(high));
    for (size_t i = 0; i < window.rank(); ++i) {
        codes = Window(codes, static_cast<int64_t>(i) + 1, window.size[i], window.strides[i],
                       window.dilations[i]);
    }
    return codes;
}

// The sums of MultiplyBytes().
std::optional<Val> MatrixSums(const std::optional<Quantised>& a,
                              const std::optional<Quantised>& b,
                              bool transpose_b) {
    if (!a || !b || a->codes.rank() < 2 || b->codes.rank() != 2) {
        return std::nullopt;
    }
    const int64_t depth_axis = transpose_b ? 1 : 0, column_axis = 1 - depth_axis;
    const std::optional<Quantised> x = Activations(a);
    const std::optional<Weights> w = x ? WeightsOf(b, column_axis) : std::nullopt;
    if (!w || !(a->codes.dim(-1) == b->codes.dim(depth_axis))) {
        return std::nullopt;
    }
    const int64_t depth = w->dims[static_cast<size_t>(depth_axis)];
    const int64_t columns = w->dims[static_cast<size_t>(column_axis)];
    if (depth % kWord != 0 || depth == 0 || columns == 0) {
        return std::nullopt;
    }
    std::vector<Expr> dims = DimsOf(x->codes.shape());
    const size_t outer = dims.size() - 1;
    dims.back() = depth / kWord;
    dims.emplace_back(kWord);
    const Val words = Reshape(x->codes, Shape(std::move(dims)));
    return Multiply(*x, words, outer, columns, [&](int64_t word, int64_t place, int64_t column) {
        const int64_t k = word * kWord + place;
        const int64_t at = transpose_b ? column * depth + k : k * columns + column;
        return w->codes[static_cast<size_t>(at)];
    });
}

// The sums of ConvolveBytes(), with the channels last.
std::optional<Val> ImageSums(const std::optional<Quantised>& x,
                             const std::optional<Quantised>& w,
                             const SpatialWindow& window,
                             int64_t groups) {
    const std::optional<Quantised> codes = Activations(x);
    const std::optional<Weights> weights = codes ? WeightsOf(w, 0) : std::nullopt;
    if (!weights) {
        return std::nullopt;
    }
    const int64_t columns = weights->dims[0], channels = weights->dims[1];
    int64_t places = 1;  // of the window
    for (size_t axis = 2; axis < weights->dims.size(); ++axis) {
        places *= weights->dims[axis];
    }
    const int64_t rank = codes->codes.rank();
    const Expr all_channels = codes->codes.dim(1);
    const bool each = channels == 1 && groups == columns && all_channels == Expr(columns);
    if (!each && (groups != 1 || !(all_channels == Expr(channels)))) {
        return std::nullopt;
    }
    if (columns == 0 || channels == 0 || places == 0) {
        return std::nullopt;
    }
    const int64_t words = (channels + kWord - 1) / kWord;
    const Val windows = Windows(*codes, window, each ? columns : words * kWord);
    const size_t outer = static_cast<size_t>(rank) - 1;  // batch and places
    Val y;
    if (each) {
        // A sum a channel: channels lie side by side in both operands.
        uint8_t* data = nullptr;
        std::vector<int64_t> dims(weights->dims.begin() + 2, weights->dims.end());
        dims.push_back(columns);
        Tensor packed = ByteTensor(dims, &data);
        std::string out, in;
        for (size_t axis = 0; axis < outer; ++axis) {
            out += static_cast<char>('A' + axis);
        }
        for (size_t axis = 0; axis < window.rank(); ++axis) {
            in += static_cast<char>('a' + axis);
        }
        for (int64_t column = 0; column < columns; ++column) {
            for (int64_t place = 0; place < places; ++place) {
                data[place * columns + column] = static_cast<uint8_t>(
                    weights->codes[static_cast<size_t>(column * places + place)]);
            }
        }
        Builder& b = windows.builder();
        const Val part = Cast(codes->zero, ElementType::kI32);
        y = Contract(Cast(windows, ElementType::kI32) - part,
                     Cast(b.Constant(std::move(packed)), ElementType::kI32),
                     out + "z" + in + "," + in + "z->" + out + "z", ElementType::kI32);
    } else {
        // [batch, out..., window..., words, 4]
        std::vector<int64_t> order;
        for (int64_t axis = 0; axis < static_cast<int64_t>(outer); ++axis) {
            order.push_back(axis);
        }
        for (int64_t axis = rank; axis < windows.rank(); ++axis) {
            order.push_back(axis);
        }
        order.push_back(rank - 1);
        const Val inner = Permute(windows, order);
        std::vector<Expr> dims = DimsOf(inner.shape());
        dims.back() = words;
        dims.emplace_back(kWord);
        y = Multiply(*codes, Reshape(inner, Shape(std::move(dims))), outer, columns,
                     [&](int64_t word, int64_t at, int64_t column) {
                         const int64_t place = word / words, channel = word % words * kWord + at;
                         const int64_t index = (column * channels + channel) * places + place;
                         return channel < channels ? weights->codes[static_cast<size_t>(index)]
                                                   : int8_t{0};
                     });
    }
    return y;
}

}  // namespace

std::optional<Val> MultiplyBytes(Val a, Val b, bool transpose_b) {
    const std::optional<Quantised> x = QuantisedOf(a), w = QuantisedOf(b);
    const std::optional<Val> sums = MatrixSums(x, w, transpose_b);
    return sums ? std::optional(Scaled(*sums, *x, *w)) : std::nullopt;
}

std::optional<Val> MultiplyCodes(Val a, Val a_zero, Val b, Val b_zero) {
    return MatrixSums(Quantised{a, Val(), a_zero}, Quantised{b, Val(), b_zero, 1}, false);
}

std::optional<Val> ConvolveBytes(Val x, Val w, const SpatialWindow& window, int64_t groups) {
    const std::optional<Quantised> codes = QuantisedOf(x), weights = QuantisedOf(w);
    const std::optional<Val> sums = ImageSums(codes, weights, window, groups);
    return sums ? std::optional(Permute(Scaled(*sums, *codes, *weights), ChannelsSecond(x.rank())))
                : std::nullopt;
}

std::optional<Val> ConvolveCodes(Val x,
                                 Val x_zero,
                                 Val w,
                                 Val w_zero,
                                 const SpatialWindow& window,
                                 int64_t groups) {
    const std::optional<Val> sums =
        ImageSums(Quantised{x, Val(), x_zero}, Quantised{w, Val(), w_zero}, window, groups);
    return sums ? std::optional(Permute(*sums, ChannelsSecond(x.rank()))) : std::nullopt;
}

}  // namespace fornax::graph
