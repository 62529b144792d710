// Blocks of 256 elements in groups with scales of few bits: the k-quants and the ternary types.
#include "compiler/frontends/ggml/blocks.h"

namespace fornax::ggml_frontend {
namespace {

using graph::ElementType;
using graph::Expr;
using graph::Shape;
using graph::Val;

// The place along an axis times `step`, as bytes.
Val Shift(Val like, int64_t axis, int64_t step = 1) {
    return like.builder().Iota(ElementType::kU8, like.shape(), axis) * static_cast<double>(step);
}

// Eight groups of 32 elements; 12 bytes hold 6 bits of scale and 6 of least value for each: bytes 0
// to 3 those of groups 0 to 3, bytes 4 to 7 their least values, and the last ones have what is
// missing in the two highest bits of the first eight.
struct GroupScales {
    Val scale, least;  // [rows, blocks, 8]
};
GroupScales SixBitScales(Val blocks, int64_t start) {
    const Val a = BytesAt(blocks, start, 4), b = BytesAt(blocks, start + 4, 4),
              c = BytesAt(blocks, start + 8, 4);
    const auto joined = [](Val low, Val high) { return Or(low, high * 16.0); };
    // Without a concatenation, which would be in memory.
    const auto both = [&](Val first, Val second) {
        const Shape shape = BlockShape(first, {2, 4});
        const Val half = first.builder().Iota(ElementType::kU8, shape, 2);
        const Val selected = Where(graph::Equal(half, 0), BroadcastTo(Unsqueeze(first, 2), shape),
                                   BroadcastTo(Unsqueeze(second, 2), shape));
        return Reshape(selected, BlockShape(first, {8}));
    };
    return {both(Bits(a, 0, 6), joined(Bits(c, 0, 4), Bits(a, 6, 2))),
            both(Bits(b, 0, 6), joined(Bits(c, 4, 4), Bits(b, 6, 2)))};
}

// Codes [.., 4, 2, 32] of eight groups with their scales and least values.
Val WithGroupScales(Val blocks, Val codes) {
    const GroupScales groups = SixBitScales(blocks, 4);
    const auto spread = [&](Val group) { return Spread(group, {4, 2, 1}, {4, 2, 32}); };
    const Val scale = spread(HalfAt(blocks, 0) * Number(groups.scale));
    const Val least = spread(HalfAt(blocks, 2) * Number(groups.least));
    return Reshape(Number(codes) * scale - least, BlockShape(blocks, {256}));
}

// 128 bytes hold two groups each: the low halves of 32 bytes one, the high halves the next.
Val GroupNibbles(Val blocks, int64_t start) {
    const Val bytes = Spread(BytesAt(blocks, start, 128), {4, 1, 32}, {4, 2, 32});
    return Bits(bytes, Shift(bytes, 3, 4), 4);
}

Val DecodeQ4K(Val blocks) {
    return WithGroupScales(blocks, GroupNibbles(blocks, 16));
}

// The fifth bits of group g are the bits g of 32 bytes.
Val DecodeQ5K(Val blocks) {
    const Val high = Spread(BytesAt(blocks, 16, 32), {1, 1, 32}, {4, 2, 32});
    const Val fifth = Bits(high, Shift(high, 2, 2) + Shift(high, 3), 1) * 16.0;
    return WithGroupScales(blocks, Or(GroupNibbles(blocks, 48), fifth));
}

// Two halves of 128 elements in four runs of 32: 64 bytes of low halves, 32 of pairs of high bits,
// and a signed scale for 16 elements each.
Val DecodeQ6K(Val blocks) {
    const Expr rows = blocks.dim(0), count = blocks.dim(1);
    // [.., half, run / 2, run % 2, element]
    const Shape shape({rows, count, 2, 2, 2, 32});
    const Val low =
        BroadcastTo(Reshape(BytesAt(blocks, 0, 128), Shape({rows, count, 2, 1, 2, 32})), shape);
    const Val high =
        BroadcastTo(Reshape(BytesAt(blocks, 128, 64), Shape({rows, count, 2, 1, 1, 32})), shape);
    graph::Builder& builder = blocks.builder();
    const Val pair = builder.Iota(ElementType::kU8, shape, 3);
    const Val of_pair = builder.Iota(ElementType::kU8, shape, 4);
    const Val four = And(map::ShiftRight(low, pair * 4.0), Like(low, 15));
    const Val two = And(map::ShiftRight(high, pair * 4.0 + of_pair * 2.0), Like(high, 3));
    const Val codes = Number(Or(four, two * 16.0)) - 32.0;
    const Val scale = Cast(Bitcast(BytesAt(blocks, 192, 16), ElementType::kI8), ElementType::kF32) *
                      HalfAt(blocks, 208);
    const Val spread =
        BroadcastTo(Reshape(scale, Shape({rows, count, 16, 1})), Shape({rows, count, 16, 16}));
    return Reshape(codes, Shape({rows, count, 256})) * Reshape(spread, Shape({rows, count, 256}));
}

// Pairs of bits [.., half, run, 32]: 32 bytes hold four runs of 32 elements.
Val Pairs(Val blocks, int64_t start) {
    const Val bytes = Spread(BytesAt(blocks, start, 64), {2, 1, 32}, {2, 4, 32});
    return Bits(bytes, Shift(bytes, 3, 2), 2);
}

// A scale for 16 elements each.
Val BySixteen(Val scale) {
    return Reshape(Spread(scale, {16, 1}, {16, 16}), BlockShape(scale, {256}));
}

Val DecodeQ2K(Val blocks) {
    const Val scales = BytesAt(blocks, 0, 16);
    const Val scale = HalfAt(blocks, 80) * Number(Bits(scales, 0, 4));
    const Val least = HalfAt(blocks, 82) * Number(Bits(scales, 4, 4));
    const Val codes = Number(Reshape(Pairs(blocks, 16), BlockShape(blocks, {256})));
    return codes * BySixteen(scale) - BySixteen(least);
}

// Bit 4 * half + run of 32 bytes is the third bit, which counts less 4 where it is missing. Scales
// have four bits in the halves of eight bytes and two in four more.
Val DecodeQ3K(Val blocks) {
    const Val high = Spread(BytesAt(blocks, 0, 32), {1, 1, 32}, {2, 4, 32});
    const Val third = Bits(high, Shift(high, 2, 4) + Shift(high, 3), 1) * 4.0;
    const Val codes = Number(Or(Pairs(blocks, 32), third)) - 4.0;
    const Val four = Spread(BytesAt(blocks, 96, 8), {1, 8}, {2, 8});
    const Val low = Reshape(Bits(four, Shift(four, 2, 4), 4), BlockShape(blocks, {16}));
    const Val two = Spread(BytesAt(blocks, 104, 4), {1, 4}, {4, 4});
    const Val upper = Reshape(Bits(two, Shift(two, 2, 2), 2) * 16.0, BlockShape(blocks, {16}));
    const Val scale = HalfAt(blocks, 108) * (Number(Or(low, upper)) - 32.0);
    return Reshape(codes, BlockShape(blocks, {256})) * BySixteen(scale);
}

// Ternary digits: the digit n of a byte is what 3^n times it has above eight bits when it is
// multiplied by 3 again. The bytes hold `digits` digits of `count` elements each.
Val Digits(Val bytes, int64_t count, int64_t digits) {
    const Val spread = Cast(Spread(bytes, {1, count}, {digits, count}), ElementType::kI32);
    std::vector<int64_t> powers;
    for (int64_t n = 0, power = 1; n < digits; ++n, power *= 3) {
        powers.push_back(power);
    }
    const Val power = Reshape(Cast(bytes.builder().Integers(powers), ElementType::kI32),
                              Shape({1, 1, digits, 1}));
    const Val rest = And(spread * power, Like(spread, 255));
    return Reshape(Bits(rest * 3.0, 8, 2), BlockShape(bytes, {digits * count}));
}

Val DecodeTq1(Val blocks) {
    const Val digits = graph::Concat(
        {Digits(BytesAt(blocks, 0, 32), 32, 5), Digits(BytesAt(blocks, 32, 16), 16, 5),
         Digits(BytesAt(blocks, 48, 4), 4, 4)},
        2);
    return (Number(digits) - 1.0) * HalfAt(blocks, 52);
}

Val DecodeTq2(Val blocks) {
    const Val codes = Reshape(Pairs(blocks, 0), BlockShape(blocks, {256}));
    return (Number(codes) - 1.0) * HalfAt(blocks, 64);
}

}  // namespace

Val DecodeGroups(Val blocks, Blocks kind) {
    switch (kind) {
        case Blocks::kQ2K:
            return DecodeQ2K(blocks);
        case Blocks::kQ3K:
            return DecodeQ3K(blocks);
        case Blocks::kQ4K:
            return DecodeQ4K(blocks);
        case Blocks::kQ5K:
            return DecodeQ5K(blocks);
        case Blocks::kQ6K:
            return DecodeQ6K(blocks);
        case Blocks::kTq1_0:
            return DecodeTq1(blocks);
        case Blocks::kTq2_0:
            return DecodeTq2(blocks);
        default:
            return {};
    }
}

}  // namespace fornax::ggml_frontend
