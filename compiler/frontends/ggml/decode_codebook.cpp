// Blocks of 256 elements that name vectors of a codebook, with signs and scales; and iq4_xs.
#include "compiler/frontends/ggml/blocks.h"
#include "compiler/frontends/ggml/codebooks.h"

namespace fornax::ggml_frontend {
namespace {

using graph::ElementType;
using graph::Shape;
using graph::Val;

// 0, step, 2 * step, .. along an axis of an integer value's shape.
Val Places(Val like, int64_t axis, int64_t step) {
    return like.builder().Iota(like.element(), like.shape(), axis) * static_cast<double>(step);
}

// The value's shape with one more axis.
Shape WithAxis(Val value, int64_t size) {
    const Shape shape = value.shape();
    std::vector<graph::Expr> dims(shape.dims().begin(), shape.dims().end());
    dims.emplace_back(size);
    return Shape(std::move(dims));
}

// The vectors [.., elements] of a codebook at the places that integers name.
Val VectorsAt(Vectors vectors, Val places) {
    const Codebook book = CodebookOf(vectors);
    std::vector<float> numbers;
    for (const uint16_t code : book.codes) {
        for (int i = 0; i < book.elements; ++i) {
            numbers.push_back(book.numbers[static_cast<size_t>(code >> (i * book.bits) &
                                                               ((1 << book.bits) - 1))]);
        }
    }
    const Val table = places.builder().Constant(graph::Tensor::FromFloats(
        {static_cast<int64_t>(book.codes.size()), book.elements}, numbers));
    const int64_t rank = places.rank();
    return Gather(table, {-1, rank}, {Unsqueeze(Cast(places, ElementType::kI64), rank)},
                  WithAxis(places, book.elements));
}

// 1 or -1 for each of the eight bits of integers, as a new last axis.
Val SignsOf(Val bits) {
    const Val spread = BroadcastTo(Unsqueeze(bits, bits.rank()), WithAxis(bits, 8));
    return 1.0 - Number(Bits(spread, Places(spread, bits.rank(), 1), 1)) * 2.0;
}

// Seven signs, of which the eighth is the parity.
Val SignsOfSeven(Val bits) {
    const Val parity = And(map::PopCount(bits), Like(bits, 1));
    return SignsOf(Or(bits, parity * 128.0));
}

// The scale of whole blocks, for numbers [rows, blocks, .., ..].
Val ScaleOf(Val blocks) {
    return Reshape(HalfAt(blocks, 0), BlockShape(blocks, {1, 1}));
}

Val Whole(Val numbers) {
    return Reshape(numbers, BlockShape(numbers, {256}));
}

Val Integers(Val bytes) {
    return Cast(bytes, ElementType::kI32);
}

// The halves of bytes, the low one first, as a new last axis.
Val Halves(Val bytes) {
    const int64_t count = *bytes.dim(2).constant();
    const Val spread = Spread(bytes, {count, 1}, {count, 2});
    return Bits(spread, Places(spread, 3, 4), 4);
}

// Eight times four vectors of eight elements. 32 bits for four of them: seven signs each and four
// bits of scale.
Val DecodeIq2Xxs(Val blocks) {
    const Val bytes = Reshape(BytesAt(blocks, 2, 64), BlockShape(blocks, {8, 8}));
    const Val word =
        Spread(LongWordsAt(Reshape(bytes, BlockShape(blocks, {64})), 0, 16), {8, 2}, {8, 2});
    const Val packed = Spread(Select(word, 3, 1), {8, 1}, {8, 4});
    const Val signs = SignsOfSeven(Bits(packed, Places(packed, 3, 7), 7));
    const Val scale = (Number(Bits(packed, 28, 4)) + 0.5) * ScaleOf(blocks) * 0.25;
    const Val grid = VectorsAt(Vectors::kIq2Xxs, SliceAxis(bytes, 3, 0, 4));
    return Whole(grid * signs * Unsqueeze(scale, 4));
}

// Scales of four bits for two vectors each, as [rows, blocks, 8, 4, 1].
Val QuarterScales(Val blocks, int64_t start) {
    const Val four = Halves(BytesAt(blocks, start, 8));
    const Val scale = Spread(four, {8, 2, 1}, {8, 2, 2});
    return (Number(Reshape(scale, BlockShape(blocks, {8, 4, 1}))) + 0.5) *
           Reshape(HalfAt(blocks, 0), BlockShape(blocks, {1, 1, 1})) * 0.25;
}

Val DecodeIq2Xs(Val blocks) {
    const Val word = Reshape(WordsAt(blocks, 2, 32), BlockShape(blocks, {8, 4}));
    const Val grid = VectorsAt(Vectors::kIq2Xs, Bits(word, 0, 9));
    return Whole(grid * SignsOfSeven(Bits(word, 9, 7)) * QuarterScales(blocks, 66));
}

Val DecodeIq2S(Val blocks) {
    const Val low = Integers(Reshape(BytesAt(blocks, 2, 32), BlockShape(blocks, {8, 4})));
    const Val high = Spread(Integers(BytesAt(blocks, 66, 8)), {8, 1}, {8, 4});
    const Val place = Or(low, Bits(high, Places(high, 3, 2), 2) * 256.0);
    const Val signs = SignsOf(Reshape(BytesAt(blocks, 34, 32), BlockShape(blocks, {8, 4})));
    return Whole(VectorsAt(Vectors::kIq2S, place) * signs * QuarterScales(blocks, 74));
}

// Two vectors of four elements for eight signs.
Val DecodeIq3Xxs(Val blocks) {
    const Val place = Reshape(BytesAt(blocks, 2, 64), BlockShape(blocks, {8, 4, 2}));
    const Val packed = Spread(LongWordsAt(blocks, 66, 8), {8, 1}, {8, 4});
    const Val signs = SignsOfSeven(Bits(packed, Places(packed, 3, 7), 7));
    const Val scale = (Number(Bits(packed, 28, 4)) + 0.5) * ScaleOf(blocks) * 0.5;
    const Val grid = Reshape(VectorsAt(Vectors::kIq3Xxs, place), BlockShape(blocks, {8, 4, 8}));
    return Whole(grid * signs * Unsqueeze(scale, 4));
}

Val DecodeIq3S(Val blocks) {
    const Val low = Integers(Reshape(BytesAt(blocks, 2, 64), BlockShape(blocks, {8, 8})));
    const Val high = Spread(Integers(BytesAt(blocks, 66, 8)), {8, 1}, {8, 8});
    const Val place = Or(low, Bits(high, Places(high, 3, 1), 1) * 256.0);
    const Val signs = SignsOf(Reshape(BytesAt(blocks, 74, 32), BlockShape(blocks, {8, 4})));
    const Val four = Reshape(Halves(BytesAt(blocks, 106, 4)), BlockShape(blocks, {8, 1, 1}));
    const Val scale =
        (Number(four) * 2.0 + 1.0) * Reshape(HalfAt(blocks, 0), BlockShape(blocks, {1, 1, 1}));
    const Val grid = Reshape(VectorsAt(Vectors::kIq3S, place), BlockShape(blocks, {8, 4, 8}));
    return Whole(grid * signs * scale);
}

// A step of an eighth up or down, [.., 1], from a bit.
Val EighthOf(Val bit) {
    return Unsqueeze(0.125 - Number(bit) * 0.25, bit.rank());
}

Val DecodeIq1S(Val blocks) {
    const Val low = Integers(Reshape(BytesAt(blocks, 2, 32), BlockShape(blocks, {8, 4})));
    const Val word = Spread(WordsAt(blocks, 34, 8), {8, 1}, {8, 4});
    const Val place = Or(low, Bits(word, Places(word, 3, 3), 3) * 256.0);
    const Val scale = (Number(Bits(word, 12, 3)) * 2.0 + 1.0) * ScaleOf(blocks);
    return Whole((VectorsAt(Vectors::kIq1, place) + EighthOf(Bits(word, 15, 1))) *
                 Unsqueeze(scale, 4));
}

// The scale of the block is in the highest four bits of four words of scales.
Val DecodeIq1M(Val blocks) {
    const Val words = WordsAt(blocks, 48, 4);
    const Val nibbles = Bits(words, 12, 4);
    const Val whole = map::ShiftLeft(nibbles, Places(nibbles, 2, 4));
    const Val half = Bitcast(Cast(Sum(whole, {2}), ElementType::kU16), ElementType::kF16);
    // Three bits for two vectors each.
    const Val three = Spread(words, {4, 1}, {4, 4});
    const Val scale = (Number(Bits(three, Places(three, 3, 3), 3)) * 2.0 + 1.0) *
                      Unsqueeze(Cast(half, ElementType::kF32), 3);
    const Val low = Integers(Reshape(BytesAt(blocks, 0, 32), BlockShape(blocks, {8, 4})));
    const Val high = Reshape(Integers(Halves(BytesAt(blocks, 32, 16))), BlockShape(blocks, {8, 4}));
    const Val place = Or(low, Bits(high, 0, 3) * 256.0);
    const Val numbers = VectorsAt(Vectors::kIq1, place) + EighthOf(Bits(high, 3, 1));
    return Whole(Reshape(numbers, BlockShape(blocks, {16, 16})) *
                 Reshape(scale, BlockShape(blocks, {16, 1})));
}

// Eight groups of 32 elements; scales have four bits in bytes and two in a word.
Val DecodeIq4Xs(Val blocks) {
    const Val low = Reshape(Integers(Halves(BytesAt(blocks, 4, 4))), BlockShape(blocks, {8}));
    const Val word = Spread(WordsAt(blocks, 2, 1), {1}, {8});
    const Val six = Or(low, Bits(word, Places(word, 2, 2), 2) * 16.0);
    const Val scale = (Number(six) - 32.0) * HalfAt(blocks, 0);
    const Val bytes = Spread(BytesAt(blocks, 8, 128), {8, 1, 16}, {8, 2, 16});
    const Val numbers = LookUp(UnevenNumbers(), Bits(bytes, Places(bytes, 3, 4), 4));
    return Whole(numbers * Reshape(scale, BlockShape(blocks, {8, 1, 1})));
}

}  // namespace

Val DecodeCodebook(Val blocks, Blocks kind) {
    switch (kind) {
        case Blocks::kIq1S:
            return DecodeIq1S(blocks);
        case Blocks::kIq1M:
            return DecodeIq1M(blocks);
        case Blocks::kIq2Xxs:
            return DecodeIq2Xxs(blocks);
        case Blocks::kIq2Xs:
            return DecodeIq2Xs(blocks);
        case Blocks::kIq2S:
            return DecodeIq2S(blocks);
        case Blocks::kIq3Xxs:
            return DecodeIq3Xxs(blocks);
        case Blocks::kIq3S:
            return DecodeIq3S(blocks);
        case Blocks::kIq4Xs:
            return DecodeIq4Xs(blocks);
        default:
            return {};
    }
}

}  // namespace fornax::ggml_frontend
