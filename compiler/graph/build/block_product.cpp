// Products with weights of 2 to 8 bits in blocks that have a scale each.
//
// The weights are put into panels of 16 columns, whose words of 32 bits follow each other along k:
// so invocations side by side read neighbouring words, decode them in registers and have the scales
// beside each other too.
#include <fmt/format.h>

#include "compiler/graph/build/index.h"
#include "compiler/graph/build/product.h"

namespace fornax::graph {
namespace {

constexpr int64_t kPanel = kPanelColumns;
constexpr int64_t kWordBits = 32;

int64_t Divided(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

uint32_t ElementOf(const uint8_t* bytes, int64_t index, int64_t bits) {
    const int64_t bit = index * bits;
    return (uint32_t{bytes[bit / 8]} >> (bit % 8)) & ((1U << bits) - 1);
}

// u32 [panels, words of a row, 16] of u8 [n, blocks, bytes of a block].
Tensor PackWords(const Tensor& weights, const BlockWeights& form) {
    const int64_t panels = Divided(form.n, kPanel), per_word = kWordBits / form.bits;
    const int64_t row_bytes = form.blocks() * form.block * form.bits / 8;
    const int64_t words = form.blocks() * form.block / per_word;
    uint8_t* data = nullptr;
    Tensor packed = Tensor::Zeros(ElementType::kU32, {panels, words, kPanel}, &data);
    auto* to = reinterpret_cast<uint32_t*>(data);
    for (int64_t n = 0; n < form.n; ++n) {
        const uint8_t* row = weights.data->data() + n * row_bytes;
        uint32_t* column = to + n / kPanel * words * kPanel + n % kPanel;
        for (int64_t word = 0; word < words; ++word) {
            uint32_t value = 0;
            for (int64_t byte = 0; byte < 4; ++byte) {
                value |= uint32_t{row[word * 4 + byte]} << (8 * byte);
            }
            column[word * kPanel] = value;
        }
    }
    return packed;
}

// f32 [panels, blocks, 16] of the elements that `of` gives.
template <typename Function>
Tensor PackBlocks(const BlockWeights& form, Function of) {
    const int64_t panels = Divided(form.n, kPanel), blocks = form.blocks();
    uint8_t* data = nullptr;
    Tensor packed = Tensor::Zeros(ElementType::kF32, {panels, blocks, kPanel}, &data);
    auto* to = reinterpret_cast<float*>(data);
    for (int64_t n = 0; n < form.n; ++n) {
        for (int64_t block = 0; block < blocks; ++block) {
            to[(n / kPanel * blocks + block) * kPanel + n % kPanel] =
                static_cast<float>(of(n, block));
        }
    }
    return packed;
}

void RequireCount(Val value, int64_t count, std::string_view what) {
    if (value.shape().Volume() != Expr(count)) {
        FailInvalid(
            fmt::format("{} are {}, not {} elements", what, value.type().ToString(), count));
    }
}

void CheckForm(const BlockWeights& form) {
    if (form.k < 1 || form.n < 1 || (form.bits != 2 && form.bits != 4 && form.bits != 8) ||
        form.block < 16 || (form.block & (form.block - 1)) != 0) {
        FailInvalid(fmt::format("weights of {} x {} with {} bits in blocks of {} do not exist",
                                form.n, form.k, form.bits, form.block));
    }
}

}  // namespace

Val MatMulPanels(Val x, Val words, Val scales, Val zero, Val least, const BlockWeights& form) {
    CheckForm(form);
    Builder& builder = x.builder();
    const int64_t blocks = form.blocks(), per_word = kWordBits / form.bits;
    const int64_t panels = Divided(form.n, kPanel), padded = blocks * form.block;
    // A block has one scale and one zero point, which its elements share.
    const Shape shape({panels, blocks, form.block / per_word, per_word, kPanel});
    const auto spread = [&](Val value) {
        return value.rank() == 0 ? value : BroadcastTo(Unsqueeze(Unsqueeze(value, 2), 3), shape);
    };
    const Val spread_words = BroadcastTo(
        Reshape(words, Shape({panels, blocks, form.block / per_word, 1, kPanel})), shape);
    const Val place = builder.Iota(ElementType::kU32, shape, 3) * static_cast<double>(form.bits);
    const Val codes = And(map::ShiftRight(spread_words, place),
                          builder.Integer(ElementType::kU32, (int64_t{1} << form.bits) - 1));
    Val decoded = Cast(codes, ElementType::kF32);
    if (zero) {
        decoded = decoded - spread(zero);
    }
    decoded = decoded * spread(scales);
    if (least) {
        decoded = decoded + spread(least);
    }

    // x as [m, block, word, place], 0 where only the blocks have elements.
    const int64_t rank = x.rank();
    Shape outer = x.shape();
    Expr rows(1);
    for (int64_t axis = 0; axis + 1 < rank; ++axis) {
        rows *= x.dim(axis);
    }
    Val flat = Reshape(Cast(x, ElementType::kF32), Shape({rows, form.k}));
    if (padded != form.k) {
        flat = Pad(flat, 0, {0, 0}, {0, padded - form.k});
    }
    flat = Reshape(flat, Shape({rows, blocks, form.block / per_word, per_word}));
    Val y = Contract(flat, decoded, "mbju,pbjuc->mpc");
    y = Reshape(y, Shape({rows, panels * kPanel}));
    if (panels * kPanel != form.n) {
        y = SliceAxis(y, 1, 0, form.n);
    }
    outer[static_cast<size_t>(rank - 1)] = form.n;
    return Cast(Reshape(y, outer), x.element());
}

namespace {

// `bits` of bytes, from a place on.
Val BitsAt(Val bytes, Val place, int64_t bits) {
    return And(map::ShiftRight(bytes, place),
               bytes.builder().Integer(ElementType::kU8, (int64_t{1} << bits) - 1));
}

}  // namespace

Val MatMulByteBlocks(Val x,
                     Val codes,
                     Val high,
                     Val scales,
                     double zero,
                     Val least,
                     const BlockWeights& form) {
    constexpr int64_t kWordBytes = 4;
    constexpr double kGreatest = 127;
    CheckForm(form);
    if (form.k % form.block != 0) {
        FailInvalid(fmt::format("{} elements are not whole blocks of {}", form.k, form.block));
    }
    if (form.high_bits != 0 &&
        (form.block * form.high_bits != kWordBits || form.bits + form.high_bits > 8)) {
        FailInvalid(fmt::format("{} elements of {} and {} bits are not one word of high bits",
                                form.block, form.bits, form.high_bits));
    }
    const int64_t panels = Divided(form.n, kPanel), blocks = form.blocks();
    const int64_t parts = 8 / form.bits, words = form.block / parts / kWordBytes;
    Shape outer = x.shape();
    Expr rows(1);
    for (int64_t axis = 0; axis + 1 < x.rank(); ++axis) {
        rows *= x.dim(axis);
    }
    // The rows: codes, their sums, and the greatest magnitude of each block.
    const Val flat = Reshape(Cast(x, ElementType::kF32), Shape({rows, blocks, form.block}));
    const Val greatest = Reduce(Combine::kMax, map::Abs(flat), {2}, true);
    // Elements of blocks of zeros are 0, not 0 / 0.
    const Val shares = Where(Equal(flat, 0), flat, flat / greatest);
    const Val rounded = Cast(map::Round(shares * kGreatest), ElementType::kI8);
    const Val total = Sum(Cast(rounded, ElementType::kF32), {2}) * greatest;

    const Shape shape({panels, blocks, parts, words, kPanel, kWordBytes});
    Builder& builder = x.builder();
    Val elements = BroadcastTo(Unsqueeze(codes, 2), shape);
    if (parts > 1) {
        const Val place = builder.Iota(ElementType::kU8, shape, 2) * static_cast<double>(form.bits);
        elements = BitsAt(elements, place, form.bits);
    }
    if (form.high_bits != 0) {
        // One axis for parts and words: the place then is as cheap as that of the low bits, and the
        // products that share it compute it each for themselves.
        const Shape words_of_all({panels, blocks, parts * words, kPanel, kWordBytes});
        const Val place =
            builder.Iota(ElementType::kU8, words_of_all, 2) * static_cast<double>(form.high_bits);
        const Val above =
            Reshape(BitsAt(BroadcastTo(high, words_of_all), place, form.high_bits), shape);
        elements =
            Or(elements, map::ShiftLeft(above, builder.Integer(ElementType::kU8, form.bits)));
    }
    const Val sums = Contract(Reshape(rounded, Shape({rows, blocks, parts, words, kWordBytes})),
                              elements, "mbhji,pbhjci->mpbc", ElementType::kI32);
    const auto of_row = [&](Val value) { return Reshape(value, Shape({rows, 1, blocks, 1})); };
    const auto of_column = [&](Val value) { return Unsqueeze(Cast(value, ElementType::kF32), 0); };
    Val term = Cast(sums, ElementType::kF32) * of_row(greatest);
    if (zero != 0) {
        term = term - of_row(total) * zero;
    }
    term = term * of_column(scales);
    if (least) {
        term = term + of_row(total) * of_column(least);
    }
    Val y = Sum(term, {2}, false) * (1 / kGreatest);
    y = Reshape(y, Shape({rows, panels * kPanel}));
    if (panels * kPanel != form.n) {
        y = SliceAxis(y, 1, 0, form.n);
    }
    outer[static_cast<size_t>(x.rank() - 1)] = form.n;
    return Cast(Reshape(y, outer), x.element());
}

namespace {

// Elements of `bits`, from the lowest bits of each byte on: u8 [n, elements] of u8 with `bytes` a
// row.
Val Unpacked(Val packed, int64_t n, int64_t bytes, int64_t bits) {
    Builder& builder = packed.builder();
    const int64_t in_byte = 8 / bits;
    const Val place =
        builder.Iota(ElementType::kU8, Shape{in_byte}, 0) * builder.Integer(ElementType::kU8, bits);
    const Val mask = builder.Integer(ElementType::kU8, (int64_t{1} << bits) - 1);
    const Val codes = map::And(map::ShiftRight(Reshape(packed, {n, bytes, 1}), place), mask);
    return Reshape(codes, {n, bytes * in_byte});
}

// The weights as f32 [n, k].
Val DecodedBlocks(Val weights, Val scales, Val zeros, Val groups, const BlockWeights& form) {
    const int64_t blocks = form.blocks(), padded = blocks * form.block;
    const Val block_of_row =
        groups ? SliceAxis(Flatten(groups, 0, groups.rank()), 0, 0, form.k) : Val();
    // [n, blocks] to [n, k].
    const auto spread = [&](Val value) {
        if (groups) {
            return Take(value, block_of_row, 1);
        }
        const Val all = BroadcastTo(Unsqueeze(value, 2), Shape({form.n, blocks, form.block}));
        return SliceAxis(Reshape(all, {form.n, padded}), 1, 0, form.k);
    };
    const auto number = [&](Val value) {
        return Cast(Reshape(value, {form.n, blocks}), ElementType::kF32);
    };
    const Val codes = Unpacked(weights, form.n, padded * form.bits / 8, form.bits);
    const Val decoded = Cast(SliceAxis(codes, 1, 0, form.k), ElementType::kF32);
    if (!zeros) {
        return (decoded - static_cast<double>(1 << (form.bits - 1))) * spread(number(scales));
    }
    const bool packed = zeros.element() == ElementType::kU8;
    const Val points =
        packed ? SliceAxis(Unpacked(zeros, form.n, Divided(blocks * form.bits, 8), form.bits), 1, 0,
                           blocks)
               : zeros;
    return (decoded - spread(number(points))) * spread(number(scales));
}

}  // namespace

Val MatMulBlocks(Val x, Val weights, Val scales, Val zeros, Val groups, const BlockWeights& form) {
    CheckForm(form);
    Builder& builder = x.builder();
    const int64_t blocks = form.blocks(), padded = blocks * form.block;
    const int64_t zero_bytes = Divided(blocks * form.bits, 8);
    if (weights.element() != ElementType::kU8) {
        FailInvalid(fmt::format("the weights are of {}, not of u8", Name(weights.element())));
    }
    RequireCount(weights, form.n * padded * form.bits / 8, "the weights");
    RequireCount(scales, form.n * blocks, "the scales");
    const bool packed_zeros = zeros && zeros.element() == ElementType::kU8;
    if (zeros) {
        RequireCount(zeros, form.n * (packed_zeros ? zero_bytes : blocks), "the zero points");
    }
    if (groups && groups.shape().Volume() != Expr(form.k)) {
        RequireCount(groups, padded, "the blocks of the rows");
    }
    const std::optional<Tensor> bytes = builder.TryEvaluate(weights);
    const std::optional<Tensor> factors = builder.TryEvaluate(scales);
    const std::optional<Tensor> known = zeros ? builder.TryEvaluate(zeros) : std::nullopt;
    if (groups || !bytes || !factors || (zeros && !known)) {
        const Val decoded = DecodedBlocks(weights, scales, zeros, groups, form);
        const Val y = MatMul(Cast(x, ElementType::kF32), Permute(decoded, {1, 0}));
        return Cast(y, x.element());
    }
    const auto number = [&](const Tensor& tensor, int64_t n, int64_t block) {
        return ReadElement(tensor.element,
                           tensor.data->data() + (n * blocks + block) * BytesOf(tensor.element))
            .number;
    };
    Val zero = builder.Scalar(ElementType::kF32, static_cast<double>(1 << (form.bits - 1)));
    if (packed_zeros) {
        zero = builder.Constant(PackBlocks(form, [&](int64_t n, int64_t block) {
            return ElementOf(known->data->data() + n * zero_bytes, block, form.bits);
        }));
    } else if (zeros) {
        zero = builder.Constant(
            PackBlocks(form, [&](int64_t n, int64_t block) { return number(*known, n, block); }));
    }
    const Val scale = builder.Constant(
        PackBlocks(form, [&](int64_t n, int64_t block) { return number(*factors, n, block); }));
    const Val words = builder.Constant(PackWords(*bytes, form), builder.name() + ".packed");
    return MatMulPanels(x, words, scale, zero, {}, form);
}

namespace {

// Constants of a matrix [k, n] or [n, k] that is dequantised in blocks along k.
struct BlockCodes {
    Tensor codes, scales;
    std::optional<Tensor> zeros;
    BlockWeights form;
    bool columns_first = false;  // [n, k]

    int64_t PlaceOf(int64_t n, int64_t k, int64_t depth) const {
        return columns_first ? n * depth + k : k * form.n + n;
    }
    // What the integers are less by than the codes from 0 on.
    int64_t Offset() const { return IsSigned(codes.element) ? int64_t{1} << (form.bits - 1) : 0; }
};

std::optional<BlockCodes> BlockCodesOf(Val b, bool columns_first) {
    Builder& builder = b.builder();
    const Graph& graph = builder.graph();
    ValueId matrix = b.id();
    if (const auto* permute = graph.ProducerAs<op::Permute>(matrix);
        permute != nullptr && permute->order == std::vector<int64_t>{1, 0}) {
        matrix = graph.Producer(matrix)->operands[0];
        columns_first = !columns_first;
    }
    const auto* composite = graph.ProducerAs<op::Composite>(matrix);
    if (composite == nullptr || composite->name != "dequantise" || b.rank() != 2) {
        return std::nullopt;
    }
    const int64_t block = std::get<int64_t>(composite->attributes.at("block"));
    const int64_t axis = std::get<int64_t>(composite->attributes.at("axis"));
    if (block < 16 || (block & (block - 1)) != 0 ||
        Builder::Axis(axis, 2) != (columns_first ? 1 : 0)) {
        return std::nullopt;
    }
    std::vector<Tensor> constants;
    for (const ValueId operand : graph.Producer(matrix)->operands) {
        const Tensor* constant = builder.ConstantOf(Val(builder, operand));
        if (constant == nullptr) {
            return std::nullopt;
        }
        constants.push_back(*constant);
    }
    BlockCodes result{constants[0], constants[1], std::nullopt, {}, columns_first};
    if (constants.size() > 2) {
        result.zeros = constants[2];
    }
    const ElementType element = result.codes.element;
    const int64_t bits = BitsOf(element);
    const size_t depth_axis = columns_first ? 1 : 0;
    result.form = {result.codes.dims[depth_axis], result.codes.dims[1 - depth_axis], bits, block};
    const int64_t scale_count = result.form.n * result.form.blocks();
    if (!IsInteger(element) || (bits != 2 && bits != 4 && bits != 8) || result.form.k < 1 ||
        result.form.n < 1 || result.scales.count() != scale_count ||
        (result.zeros && result.zeros->count() != scale_count)) {
        return std::nullopt;
    }
    return result;
}

}  // namespace

std::optional<Val> MultiplyBlocks(Val a, Val b, bool transpose_b) {
    const bool can_be = a.rank() > 0 && a.element() == b.element() && IsFloat(a.element()) &&
                        a.element() != ElementType::kF64;
    const std::optional<BlockCodes> from =
        can_be ? BlockCodesOf(b, transpose_b) : std::optional<BlockCodes>();
    if (!from || !(a.dim(-1) == Expr(from->form.k))) {
        return std::nullopt;
    }
    const BlockWeights& form = from->form;
    const int64_t blocks = form.blocks(), row_bytes = blocks * form.block * form.bits / 8;
    const auto mask = static_cast<uint8_t>((1U << form.bits) - 1);
    uint8_t *bytes = nullptr, *scale_data = nullptr, *zero_data = nullptr;
    Tensor packed =
        Tensor::Zeros(ElementType::kU8, {form.n, blocks, form.block * form.bits / 8}, &bytes);
    Tensor scales = Tensor::Zeros(ElementType::kF32, {form.n, blocks}, &scale_data);
    Tensor zeros = Tensor::Zeros(ElementType::kF32, {form.n, blocks}, &zero_data);
    bool all_middle = true;  // what MatMulBlocks() takes without zero points
    for (int64_t n = 0; n < form.n; ++n) {
        for (int64_t k = 0; k < form.k; ++k) {
            const uint8_t code = from->codes.data->data()[from->PlaceOf(n, k, form.k)];
            const auto moved = static_cast<uint8_t>((code + from->Offset()) & mask);
            const int64_t bit = k * form.bits;
            bytes[n * row_bytes + bit / 8] |= static_cast<uint8_t>(moved << (bit % 8));
        }
        for (int64_t block = 0; block < blocks; ++block) {
            const int64_t place = from->PlaceOf(n, block, blocks), at = 4 * (n * blocks + block);
            const int64_t zero =
                (from->zeros ? from->zeros->At(place).integer : 0) + from->Offset();
            WriteElement(ElementType::kF32, Scalar::Float(from->scales.At(place).number),
                         scale_data + at);
            WriteElement(ElementType::kF32, Scalar::Float(static_cast<double>(zero)),
                         zero_data + at);
            all_middle = all_middle && zero == int64_t{1} << (form.bits - 1);
        }
    }
    Builder& builder = a.builder();
    return MatMulBlocks(a, builder.Constant(std::move(packed)), builder.Constant(std::move(scales)),
                        all_middle ? Val() : builder.Constant(std::move(zeros)), Val(), form);
}

}  // namespace fornax::graph
