// Numbers as quantised blocks, as ggml's reference rounds them; q8_0 as its CPU backend does.
#include "compiler/frontends/ggml/blocks.h"
#include "compiler/graph/build/index.h"

#include <fmt/format.h>

namespace fornax::ggml_frontend {
namespace {

using graph::Combine;
using graph::ElementType;
using graph::Shape;
using graph::Val;

Val Bytes(Val integers) {
    return Cast(Cast(integers, ElementType::kI32), ElementType::kU8);
}

// f32 [rows, blocks, 1] as the two bytes of its f16.
Val HalfBytes(Val number) {
    const Val word =
        Cast(Bitcast(Cast(number, ElementType::kF16), ElementType::kU16), ElementType::kI32);
    return graph::Concat({Bytes(Bits(word, 0, 8)), Bytes(Bits(word, 8, 8))}, 2);
}

Val Inverse(Val number) {
    const Val none = Equal(number, 0);
    return Where(none, Like(number, 0), 1.0 / Where(none, Like(number, 1), number));
}

// The element that is farthest from 0, with its sign; the first of several.
Val Farthest(Val x) {
    const Val place = ArgReduce(Combine::kMax, map::Abs(x), 2, true);
    return graph::TakeAlong(x, Cast(place, ElementType::kI64), 2);
}

Val GreatestMagnitude(Val x) {
    return Reduce(Combine::kMax, map::Abs(x), {2}, true);
}

// Halves go away from zero.
Val Rounded(Val x) {
    return map::Sign(x) * map::Floor(map::Abs(x) + 0.5);
}

// Codes of 32 elements: the low halves of 16 bytes are the first ones.
Val JoinedNibbles(Val codes) {
    return Bytes(Or(SliceAxis(codes, 2, 0, 16), SliceAxis(codes, 2, 16, 16) * 16.0));
}

// `bits` bits an element, one after the other from the lowest bits of each byte on.
Val JoinedBits(Val codes, int64_t bits) {
    const int64_t each = 8 / bits, count = *codes.dim(2).constant() / each;
    const Val split = Reshape(codes, BlockShape(codes, {count, each}));
    const Val shift =
        codes.builder().Iota(ElementType::kI32, split.shape(), 3) * static_cast<double>(bits);
    return Bytes(Reshape(Sum(map::ShiftLeft(split, shift), {3}), BlockShape(codes, {count})));
}

Val Limited(Val x, double greatest) {
    return Cast(Min(map::Trunc(x), greatest), ElementType::kI32);
}

// Codes of `bits` bits around the middle of their range.
struct Scaled {
    Val scale, least, codes;
};
Scaled Centred(Val x, int64_t bits) {
    const double middle = static_cast<double>(int64_t{1} << (bits - 1));
    const Val scale = Farthest(x) / -middle;
    return {scale, {}, Limited(x * Inverse(scale) + (middle + 0.5), 2 * middle - 1)};
}
// Codes above the least element.
Scaled FromLeast(Val x, int64_t bits) {
    const double greatest = static_cast<double>((int64_t{1} << bits) - 1);
    const Val least = Reduce(Combine::kMin, x, {2}, true);
    const Val scale = (Reduce(Combine::kMax, x, {2}, true) - least) / greatest;
    return {scale, least, Limited((x - least) * Inverse(scale) + 0.5, greatest)};
}

Val WithHeads(const Scaled& scaled, graph::Vals bytes) {
    graph::Vals parts = {HalfBytes(scaled.scale)};
    if (scaled.least) {
        parts.push_back(HalfBytes(scaled.least));
    }
    parts.insert(parts.end(), bytes.begin(), bytes.end());
    return graph::Concat(parts, 2);
}

Val FourBits(const Scaled& scaled) {
    return WithHeads(scaled, {JoinedNibbles(scaled.codes)});
}
Val FiveBits(const Scaled& scaled) {
    return WithHeads(
        scaled, {JoinedBits(Bits(scaled.codes, 4, 1), 1), JoinedNibbles(Bits(scaled.codes, 0, 4))});
}

Val EncodeQ8_0(Val x) {
    const Val greatest = GreatestMagnitude(x);
    const Val scale = greatest / 127.0;
    const Val codes = map::Round(x * (Inverse(greatest) * 127.0));
    const Val bytes = Bitcast(Cast(codes, ElementType::kI8), ElementType::kU8);
    return graph::Concat({HalfBytes(scale), bytes}, 2);
}

Val EncodeQ1_0(Val x) {
    const Val scale = Mean(map::Abs(x), {2});
    const Val codes = Cast(GreaterEqual(x, 0), ElementType::kI32);
    return graph::Concat({HalfBytes(scale), JoinedBits(codes, 1)}, 2);
}

Val EncodeQ2_0(Val x) {
    const Val scale = GreatestMagnitude(x);
    const Val codes = Min(Max(Rounded(x * Inverse(scale)) + 1.0, 0), 3);
    return graph::Concat({HalfBytes(scale), JoinedBits(Cast(codes, ElementType::kI32), 2)}, 2);
}

// The nearest of 16 numbers each; the scale is then the one of the least squared error, in which an
// element counts by its square.
Val EncodeIq4Nl(Val x) {
    const std::span<const float> numbers = UnevenNumbers();
    const Val rough = Farthest(x) / numbers[0];
    const Val scaled = x * Inverse(rough);
    Val codes;
    for (size_t i = 0; i + 1 < numbers.size(); ++i) {
        const Val above =
            Cast(GreaterEqual(scaled, (numbers[i] + numbers[i + 1]) / 2.0), ElementType::kI32);
        codes = codes ? codes + above : above;
    }
    const Val q = LookUp(numbers, codes);
    const Val weight = x * x;
    const Val products = Sum(weight * q * x, {2}), squares = Sum(weight * q * q, {2});
    // What is next to nothing is 0.
    constexpr double kNothing = 1e-15;
    const Val none = Less(GreatestMagnitude(x), kNothing);
    const Val scale = Where(none, Like(products, 0), products * Inverse(squares));
    return WithHeads({scale, {}, codes}, {JoinedNibbles(codes)});
}

Val EncodeBlocks(Val x, const TypeInfo& type) {
    switch (type.blocks) {
        case Blocks::kQ1_0:
            return EncodeQ1_0(x);
        case Blocks::kQ2_0:
            return EncodeQ2_0(x);
        case Blocks::kQ4_0:
            return FourBits(Centred(x, 4));
        case Blocks::kQ4_1:
            return FourBits(FromLeast(x, 4));
        case Blocks::kQ5_0:
            return FiveBits(Centred(x, 5));
        case Blocks::kQ5_1:
            return FiveBits(FromLeast(x, 5));
        case Blocks::kQ8_0:
            return EncodeQ8_0(x);
        case Blocks::kIq4Nl:
            return EncodeIq4Nl(x);
        default:
            graph::FailUnsupported(fmt::format("results of type {} are not covered", type.name));
    }
}

}  // namespace

Val Encode(Val numbers, const TypeInfo& type) {
    Shape shape = numbers.shape();
    const int64_t elements = shape.Constants()->back();
    if (elements % type.block_elements != 0) {
        graph::FailUnsupported("rows of parts of blocks are not covered");
    }
    const int64_t count = elements / type.block_elements;
    graph::Expr rows(1);
    for (size_t axis = 0; axis + 1 < shape.rank(); ++axis) {
        rows *= shape[axis];
    }
    const Val bytes = EncodeBlocks(
        Reshape(Cast(numbers, ElementType::kF32), Shape({rows, count, type.block_elements})), type);
    shape[shape.rank() - 1] = count * type.block_bytes;
    return Reshape(bytes, shape);
}

}  // namespace fornax::ggml_frontend
