// Blocks of quantised weights as numbers, in terms of the graph IR.
//
// The forms of the blocks are those of ggml's documentation of its types: a block has a scale, for
// some types a least value, and its elements' bits in halves.
#include <cmath>

#include <fmt/format.h>

#include "compiler/frontends/ggml/node.h"

namespace fornax::ggml_frontend {
namespace {

using graph::ElementType;
using graph::Expr;
using graph::Shape;
using graph::Val;

// Bytes [rows, blocks, bytes of a block]: `count` of each block from `start` on.
Val Part(Val blocks, int64_t start, int64_t count) {
    return SliceAxis(blocks, 2, start, count);
}

// The f16 at byte `start` of each block as f32 [rows, blocks, 1].
Val HalfAt(Val blocks, int64_t start) {
    const Val low = Cast(Part(blocks, start, 1), ElementType::kU16);
    const Val high = Cast(Part(blocks, start + 1, 1), ElementType::kU16);
    const Val eight = Like(high, 8);
    return Cast(Bitcast(Or(low, map::ShiftLeft(high, eight)), ElementType::kF16),
                ElementType::kF32);
}

Val Bits(Val bytes, int64_t first, int64_t count) {
    return And(map::ShiftRight(bytes, Like(bytes, static_cast<double>(first))),
               Like(bytes, static_cast<double>((1 << count) - 1)));
}

// The halves of 16 bytes: the low ones are elements 0 to 15, the high ones 16 to 31.
Val Nibbles(Val bytes) {
    const Shape shape({bytes.dim(0), bytes.dim(1), 2, 16});
    const Val spread = BroadcastTo(Unsqueeze(bytes, 2), shape);
    const Val shift = bytes.builder().Iota(ElementType::kU8, shape, 2) * 4.0;
    const Val nibbles = And(map::ShiftRight(spread, shift), Like(spread, 15));
    return Reshape(nibbles, Shape({bytes.dim(0), bytes.dim(1), 32}));
}

// The fifth bits: bit i of four bytes belongs to element i. Already at its place, 0 or 16.
Val FifthBits(Val bytes) {
    const Shape shape({bytes.dim(0), bytes.dim(1), 4, 8});
    const Val spread = BroadcastTo(Unsqueeze(bytes, 3), shape);
    const Val shift = bytes.builder().Iota(ElementType::kU8, shape, 3);
    const Val bits = And(map::ShiftRight(spread, shift), Like(spread, 1)) * 16.0;
    return Reshape(bits, Shape({bytes.dim(0), bytes.dim(1), 32}));
}

Val Number(Val bytes) {
    return Cast(bytes, ElementType::kF32);
}

// Eight groups of 32 elements; 12 bytes hold 6 bits of scale and 6 of least value for each: bytes 0
// to 3 those of groups 0 to 3, bytes 4 to 7 their least values, and the last ones have what is
// missing in the two highest bits of the first eight.
struct GroupScales {
    Val scale, least;  // [rows, blocks, 8]
};
GroupScales SixBitScales(Val blocks, int64_t start) {
    const Val a = Part(blocks, start, 4), b = Part(blocks, start + 4, 4),
              c = Part(blocks, start + 8, 4);
    const auto joined = [](Val low, Val high) { return Or(low, high * 16.0); };
    // Without a concatenation, which would be in memory.
    const auto both = [&](Val first, Val second) {
        const Shape shape({first.dim(0), first.dim(1), 2, 4});
        const Val half = first.builder().Iota(ElementType::kU8, shape, 2);
        const Val selected = Where(graph::Equal(half, 0), BroadcastTo(Unsqueeze(first, 2), shape),
                                   BroadcastTo(Unsqueeze(second, 2), shape));
        return Reshape(selected, Shape({first.dim(0), first.dim(1), 8}));
    };
    return {both(Bits(a, 0, 6), joined(Bits(c, 0, 4), Bits(a, 6, 2))),
            both(Bits(b, 0, 6), joined(Bits(c, 4, 4), Bits(b, 6, 2)))};
}

Val DecodeQ4K(Val blocks) {
    const Expr rows = blocks.dim(0), count = blocks.dim(1);
    const GroupScales groups = SixBitScales(blocks, 4);
    const Shape shape({rows, count, 4, 2, 32});
    // 32 bytes hold two groups: the low halves one, the high halves the next.
    const Val bytes =
        BroadcastTo(Reshape(Part(blocks, 16, 128), Shape({rows, count, 4, 1, 32})), shape);
    const Val shift = bytes.builder().Iota(ElementType::kU8, shape, 3) * 4.0;
    const Val codes = Number(And(map::ShiftRight(bytes, shift), Like(bytes, 15)));
    const auto spread = [&](Val group) {
        return BroadcastTo(Reshape(group, Shape({rows, count, 4, 2, 1})), shape);
    };
    const Val scale = spread(HalfAt(blocks, 0) * Number(groups.scale));
    const Val least = spread(HalfAt(blocks, 2) * Number(groups.least));
    return Reshape(codes * scale - least, Shape({rows, count, 256}));
}

// Two halves of 128 elements in four runs of 32: 64 bytes of low halves, 32 of pairs of high bits,
// and a signed scale for 16 elements each.
Val DecodeQ6K(Val blocks) {
    const Expr rows = blocks.dim(0), count = blocks.dim(1);
    // [.., half, run / 2, run % 2, element]
    const Shape shape({rows, count, 2, 2, 2, 32});
    const Val low =
        BroadcastTo(Reshape(Part(blocks, 0, 128), Shape({rows, count, 2, 1, 2, 32})), shape);
    const Val high =
        BroadcastTo(Reshape(Part(blocks, 128, 64), Shape({rows, count, 2, 1, 1, 32})), shape);
    graph::Builder& builder = blocks.builder();
    const Val pair = builder.Iota(ElementType::kU8, shape, 3);
    const Val of_pair = builder.Iota(ElementType::kU8, shape, 4);
    const Val four = And(map::ShiftRight(low, pair * 4.0), Like(low, 15));
    const Val two = And(map::ShiftRight(high, pair * 4.0 + of_pair * 2.0), Like(high, 3));
    const Val codes = Number(Or(four, two * 16.0)) - 32.0;
    const Val scale = Cast(Bitcast(Part(blocks, 192, 16), ElementType::kI8), ElementType::kF32) *
                      HalfAt(blocks, 208);
    const Val spread =
        BroadcastTo(Reshape(scale, Shape({rows, count, 16, 1})), Shape({rows, count, 16, 16}));
    return Reshape(codes, Shape({rows, count, 256})) * Reshape(spread, Shape({rows, count, 256}));
}

Val DecodeBlocks(Val blocks, Blocks kind) {
    switch (kind) {
        case Blocks::kQ4_0:
            return (Number(Nibbles(Part(blocks, 2, 16))) - 8.0) * HalfAt(blocks, 0);
        case Blocks::kQ4_1:
            return Number(Nibbles(Part(blocks, 4, 16))) * HalfAt(blocks, 0) + HalfAt(blocks, 2);
        case Blocks::kQ5_0:
            return (Number(Or(Nibbles(Part(blocks, 6, 16)), FifthBits(Part(blocks, 2, 4)))) -
                    16.0) *
                   HalfAt(blocks, 0);
        case Blocks::kQ5_1:
            return Number(Or(Nibbles(Part(blocks, 8, 16)), FifthBits(Part(blocks, 4, 4)))) *
                       HalfAt(blocks, 0) +
                   HalfAt(blocks, 2);
        case Blocks::kQ8_0:
            return Cast(Bitcast(Part(blocks, 2, 32), ElementType::kI8), ElementType::kF32) *
                   HalfAt(blocks, 0);
        case Blocks::kQ4K:
            return DecodeQ4K(blocks);
        case Blocks::kQ6K:
            return DecodeQ6K(blocks);
        case Blocks::kNone:
            break;
    }
    graph::FailUnsupported("the type has no blocks");
}

}  // namespace

Val Decode(Val bytes, const TypeInfo& type) {
    Shape shape = bytes.shape();
    const int64_t blocks = shape.Constants()->back() / type.block_bytes;
    Expr rows(1);
    for (size_t axis = 0; axis + 1 < shape.rank(); ++axis) {
        rows *= shape[axis];
    }
    const Val decoded =
        DecodeBlocks(Reshape(bytes, Shape({rows, blocks, type.block_bytes})), type.blocks);
    shape[shape.rank() - 1] = blocks * type.block_elements;
    return Reshape(decoded, shape);
}

}  // namespace fornax::ggml_frontend
