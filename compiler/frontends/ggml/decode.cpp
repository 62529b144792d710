// Blocks of quantised weights as numbers, in terms of the graph IR: blocks with one scale, and what
// the other families are written with.
//
// The forms of the blocks are those of ggml's documentation of its types: a block has a scale, for
// some types a least value, and its elements' bits in halves.
#include <cmath>

#include "compiler/frontends/ggml/blocks.h"

namespace fornax::ggml_frontend {

using graph::ElementType;
using graph::Expr;
using graph::Shape;
using graph::Val;

Val BytesAt(Val blocks, int64_t start, int64_t count) {
    return SliceAxis(blocks, 2, start, count);
}

Val HalfAt(Val blocks, int64_t start) {
    const Val low = Cast(BytesAt(blocks, start, 1), ElementType::kU16);
    const Val high = Cast(BytesAt(blocks, start + 1, 1), ElementType::kU16);
    const Val eight = Like(high, 8);
    return Cast(Bitcast(Or(low, map::ShiftLeft(high, eight)), ElementType::kF16),
                ElementType::kF32);
}

Shape BlockShape(Val blocks, std::initializer_list<int64_t> dims) {
    std::vector<Expr> all = {blocks.dim(0), blocks.dim(1)};
    for (const int64_t dim : dims) {
        all.emplace_back(dim);
    }
    return Shape(std::move(all));
}

Val Spread(Val value, std::initializer_list<int64_t> dims, std::initializer_list<int64_t> to) {
    return BroadcastTo(Reshape(value, BlockShape(value, dims)), BlockShape(value, to));
}

namespace {

Val Words(Val blocks, int64_t start, int64_t count, int64_t bytes, ElementType type) {
    const Val split =
        Reshape(BytesAt(blocks, start, count * bytes), BlockShape(blocks, {count, bytes}));
    Val word;
    for (int64_t i = 0; i < bytes; ++i) {
        const Val byte = Cast(Select(split, 3, i), type);
        word =
            i == 0 ? byte : Or(word, map::ShiftLeft(byte, Like(byte, static_cast<double>(8 * i))));
    }
    return word;
}

}  // namespace

Val WordsAt(Val blocks, int64_t start, int64_t count) {
    return Words(blocks, start, count, 2, ElementType::kI32);
}

Val LongWordsAt(Val blocks, int64_t start, int64_t count) {
    return Words(blocks, start, count, 4, ElementType::kU32);
}

Val Bits(Val value, int64_t first, int64_t count) {
    return Bits(value, Like(value, static_cast<double>(first)), count);
}

Val Bits(Val value, Val first, int64_t count) {
    return And(map::ShiftRight(value, first),
               Like(value, static_cast<double>((int64_t{1} << count) - 1)));
}

Val Nibbles(Val bytes) {
    const Shape shape = BlockShape(bytes, {2, 16});
    const Val spread = BroadcastTo(Unsqueeze(bytes, 2), shape);
    const Val shift = bytes.builder().Iota(ElementType::kU8, shape, 2) * 4.0;
    const Val nibbles = And(map::ShiftRight(spread, shift), Like(spread, 15));
    return Reshape(nibbles, BlockShape(bytes, {32}));
}

Val Number(Val integers) {
    return Cast(integers, ElementType::kF32);
}

Val LookUp(std::span<const float> table, Val places) {
    const Val constant = places.builder().Constant(graph::Tensor::FromFloats(
        {static_cast<int64_t>(table.size())}, std::vector<float>(table.begin(), table.end())));
    return Gather(constant, {-1}, {Cast(places, ElementType::kI64)}, places.shape());
}

std::span<const float> UnevenNumbers() {
    static constexpr float kNumbers[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113};
    return kNumbers;
}

namespace {

// The fifth bits: bit i of four bytes belongs to element i. Already at its place, 0 or 16.
Val FifthBits(Val bytes) {
    const Shape shape = BlockShape(bytes, {4, 8});
    const Val spread = BroadcastTo(Unsqueeze(bytes, 3), shape);
    const Val shift = bytes.builder().Iota(ElementType::kU8, shape, 3);
    const Val bits = And(map::ShiftRight(spread, shift), Like(spread, 1)) * 16.0;
    return Reshape(bits, BlockShape(bytes, {32}));
}

// Elements of `bits` bits one after the other, from the lowest bits of each byte on.
Val InOrder(Val bytes, int64_t count, int64_t bits) {
    const Shape shape = BlockShape(bytes, {count, 8 / bits});
    const Val shift = bytes.builder().Iota(ElementType::kU8, shape, 3) * static_cast<double>(bits);
    return Reshape(Bits(BroadcastTo(Unsqueeze(bytes, 3), shape), shift, bits),
                   BlockShape(bytes, {count * 8 / bits}));
}

// Floats of a sign, two bits of exponent and one of mantissa, doubled.
constexpr float kFourBitFloats[] = {0, 1, 2, 3, 4, 6, 8, 12, -0.0F, -1, -2, -3, -4, -6, -8, -12};

// A power of two by its exponent of eight bits, halved.
Val HalfPower(Val exponent) {
    const Val wide = Cast(exponent, ElementType::kU32);
    const Val small = map::ShiftLeft(Like(wide, 0x00200000), wide);  // two are denormal
    const Val normal = map::ShiftLeft(wide - 1.0, Like(wide, 23));
    return Bitcast(Where(Less(wide, 2), small, normal), ElementType::kF32);
}

// Half of a float without sign, with four bits of exponent and three of mantissa.
std::vector<float> HalvedByteFloats() {
    std::vector<float> numbers;
    for (int code = 0; code < 256; ++code) {
        const int exponent = code >> 3 & 15, mantissa = code & 7;
        const float number = exponent == 0
                                 ? std::ldexp(static_cast<float>(mantissa), -9)
                                 : std::ldexp(1 + static_cast<float>(mantissa) / 8, exponent - 7);
        numbers.push_back(code == 0 || code == 0x7F ? 0 : number / 2);
    }
    return numbers;
}

// Four groups of 16 elements, each with a scale.
Val DecodeNvFp4(Val blocks) {
    const Val bytes = Spread(BytesAt(blocks, 4, 32), {4, 1, 8}, {4, 2, 8});
    const Val shift = blocks.builder().Iota(ElementType::kU8, bytes.shape(), 3) * 4.0;
    const Val scale = LookUp(HalvedByteFloats(), BytesAt(blocks, 0, 4));
    const Val numbers = LookUp(kFourBitFloats, Bits(bytes, shift, 4)) *
                        Reshape(scale, BlockShape(blocks, {4, 1, 1}));
    return Reshape(numbers, BlockShape(blocks, {64}));
}

}  // namespace

Val DecodeScaled(Val blocks, Blocks kind) {
    switch (kind) {
        case Blocks::kQ1_0:
            return (Number(InOrder(BytesAt(blocks, 2, 16), 16, 1)) * 2.0 - 1.0) * HalfAt(blocks, 0);
        case Blocks::kQ2_0:
            return (Number(InOrder(BytesAt(blocks, 2, 16), 16, 2)) - 1.0) * HalfAt(blocks, 0);
        case Blocks::kQ4_0:
            return (Number(Nibbles(BytesAt(blocks, 2, 16))) - 8.0) * HalfAt(blocks, 0);
        case Blocks::kQ4_1:
            return Number(Nibbles(BytesAt(blocks, 4, 16))) * HalfAt(blocks, 0) + HalfAt(blocks, 2);
        case Blocks::kQ5_0:
            return (Number(Or(Nibbles(BytesAt(blocks, 6, 16)), FifthBits(BytesAt(blocks, 2, 4)))) -
                    16.0) *
                   HalfAt(blocks, 0);
        case Blocks::kQ5_1:
            return Number(Or(Nibbles(BytesAt(blocks, 8, 16)), FifthBits(BytesAt(blocks, 4, 4)))) *
                       HalfAt(blocks, 0) +
                   HalfAt(blocks, 2);
        case Blocks::kQ8_0:
            return Cast(Bitcast(BytesAt(blocks, 2, 32), ElementType::kI8), ElementType::kF32) *
                   HalfAt(blocks, 0);
        case Blocks::kIq4Nl:
            return LookUp(UnevenNumbers(), Nibbles(BytesAt(blocks, 2, 16))) * HalfAt(blocks, 0);
        case Blocks::kMxFp4:
            return LookUp(kFourBitFloats, Nibbles(BytesAt(blocks, 1, 16))) *
                   HalfPower(BytesAt(blocks, 0, 1));
        case Blocks::kNvFp4:
            return DecodeNvFp4(blocks);
        default:
            return {};
    }
}

Val DecodeBlocks(Val bytes, const TypeInfo& type) {
    const Shape shape = bytes.shape();
    const int64_t count = shape.Constants()->back() / type.block_bytes;
    Expr rows(1);
    for (size_t axis = 0; axis + 1 < shape.rank(); ++axis) {
        rows *= shape[axis];
    }
    const Val blocks = Reshape(bytes, Shape({rows, count, type.block_bytes}));
    Val decoded;
    for (const auto& family : {DecodeScaled, DecodeGroups, DecodeCodebook}) {
        decoded = decoded ? decoded : family(blocks, type.blocks);
    }
    if (!decoded) {
        graph::FailUnsupported("the type has no blocks");
    }
    return decoded;
}

Val Decode(Val bytes, const TypeInfo& type) {
    Shape shape = bytes.shape();
    shape[shape.rank() - 1] = shape.Constants()->back() / type.block_bytes * type.block_elements;
    return Reshape(DecodeBlocks(bytes, type), shape);
}

}  // namespace fornax::ggml_frontend
