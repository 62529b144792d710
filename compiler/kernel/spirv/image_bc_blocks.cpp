// Texels of the blocks of BC1 to BC7, as the Khronos Data Format specification describes them in
// "S3TC", "RGTC" and "BPTC Compressed Texture Image Formats". As in image_blocks.cpp, all texels of
// a kernel's lanes are decoded where they are sampled.
//
// Blocks are little-endian words. Colors of BC1 to BC3 and BC7 come out as eight bits, which is
// what drivers for graphics interpolate in; those of BC4 and BC5 as thirty-fifths of eight bits, so
// that nothing is lost; those of BC6 as halves.
#include <array>
#include <iterator>

#include "compiler/kernel/spirv/bptc_tables.h"
#include "compiler/kernel/spirv/image_code.h"

namespace fornax::kernel::spirv {

using hal::TexelClass;
using hal::TexelLayout;
using ir::Op;
using Id = ImageCode::Id;
using Ids = ImageCode::Ids;

namespace {

constexpr ir::Type kI32 = ir::Type::kI32;
constexpr ir::Type kBool = ir::Type::kBool;
constexpr uint32_t kHalfBlockBytes = 8;

}  // namespace

// `mask` bits of a block of four words from a place on.
Id ImageCode::BlockBits(const Ids& block, Id place, Id mask) {
    const Id word = I(Op::kLShr, place, Int(5));
    const Id shift = I(Op::kAnd, place, Int(31));
    const auto is = [&](uint32_t which) { return Test(Op::kIEq, word, Int(which)); };
    const Id is_0 = is(0);
    const Id is_1 = is(1);
    const Id is_2 = is(2);
    const Id low = Select(is_0, block[0], Select(is_1, block[1], Select(is_2, block[2], block[3])));
    const Id high = Select(is_0, block[1], Select(is_1, block[2], block[3]));
    // In two steps, because a shift by 32 has no meaning.
    const Id above = I(Op::kShl, I(Op::kShl, high, I(Op::kISub, Int(31), shift)), Int(1));
    return I(Op::kAnd, I(Op::kOr, I(Op::kLShr, low, shift), above), mask);
}

Id ImageCode::LowMask(Id bits) {
    return I(Op::kISub, I(Op::kShl, Int(1), bits), Int(1));
}

Id ImageCode::SignExtended(Id value, Id bits) {
    const Id shift = I(Op::kISub, Int(32), bits);
    return I(Op::kAShr, I(Op::kShl, value, shift), shift);
}

// A component of BC4, times 35. Signed -128 is -127 written another way.
Id ImageCode::BcRamp(const Ids& block, Id texel, Id is_signed) {
    const auto end = [&](uint32_t shift) {
        const Id byte = Bits(block[0], shift, 8);
        const Id extended =
            I(Op::kSMax, SignExtended(byte, Int(8)), Int(static_cast<uint32_t>(-127)));
        return Select(is_signed, extended, byte);
    };
    const Id first = end(0);
    const Id second = end(8);
    const Id low = I(Op::kOr, I(Op::kLShr, block[0], Int(16)), I(Op::kShl, block[1], Int(16)));
    const Id eight = Select(Test(Op::kULt, texel, Int(8)), low, I(Op::kLShr, block[1], Int(8)));
    const Id at = I(Op::kIMul, I(Op::kAnd, texel, Int(7)), Int(3));
    const Id code = I(Op::kAnd, I(Op::kLShr, eight, at), Int(7));
    const Id in_sevenths = Test(Op::kSLt, second, first);
    const Id steps = Select(in_sevenths, Int(7), Int(5));
    Id weight = I(Op::kISub, code, Int(1));
    weight = Select(Test(Op::kIEq, code, Int(1)), steps, weight);
    weight = Select(Test(Op::kIEq, code, Int(0)), Int(0), weight);
    const Id sum = I(Op::kIAdd, I(Op::kIMul, first, I(Op::kISub, steps, weight)),
                     I(Op::kIMul, second, weight));
    const Id value = I(Op::kIMul, sum, Select(in_sevenths, Int(5), Int(7)));
    const Id least = Select(is_signed, Int(static_cast<uint32_t>(-127 * 35)), Int(0));
    const Id most = Select(is_signed, Int(127 * 35), Int(255 * 35));
    const Id bound = Select(Test(Op::kIEq, code, Int(6)), least, most);
    const Id is_bound =
        Emit(Op::kAnd, kBool, {Emit(Op::kNot, kBool, {in_sevenths}), Test(Op::kULe, Int(6), code)});
    return Select(is_bound, bound, value);
}

// Red, green, blue and alpha of BC1, with four colors for all if there is alpha elsewhere.
Ids ImageCode::BcColor(const Ids& block, Id texel, Id always_four) {
    const Id first = I(Op::kAnd, block[0], Int(0xffff));
    const Id second = I(Op::kLShr, block[0], Int(16));
    const Id four = Emit(Op::kOr, kBool, {always_four, Test(Op::kULt, second, first)});
    const Id code = I(Op::kAnd, I(Op::kLShr, block[1], I(Op::kShl, texel, Int(1))), Int(3));
    const auto is = [&](uint32_t which) { return Test(Op::kIEq, code, Int(which)); };
    const Id is_0 = is(0);
    const Id is_1 = is(1);
    const Id is_3 = is(3);
    const Id clear = Emit(Op::kAnd, kBool, {is_3, Emit(Op::kNot, kBool, {four})});
    Ids values;
    for (uint32_t shift : {11u, 5u, 0u}) {
        const auto wide = [&](Id color) {
            const uint32_t bits = shift == 5 ? 6 : 5;
            const Id value = Bits(color, shift, bits);
            return I(Op::kOr, I(Op::kShl, value, Int(8 - bits)),
                     I(Op::kLShr, value, Int(2 * bits - 8)));
        };
        const Id a = wide(first);
        const Id b = wide(second);
        const Id sum = I(Op::kIAdd, a, b);
        // Thirds, by a product: 43691 / 2^17 is exact for sums of three bytes.
        const Id thirds = I(Op::kIMul, I(Op::kIAdd, sum, Select(is_3, b, a)), Int(43691));
        const Id between = Select(four, I(Op::kLShr, thirds, Int(17)), I(Op::kLShr, sum, Int(1)));
        const Id value = Select(is_0, a, Select(is_1, b, between));
        values.push_back(Select(clear, Int(0), value));
    }
    values.push_back(Select(clear, Int(0), Int(255)));
    return values;
}

// BC1 to BC5.
Ids ImageCode::LoadRampTexel(Id buffer, Id offset, Id format, Id texel, uint8_t flags) {
    const Id layout = Bits(format, hal::kTexelLayoutShift, 8);
    const auto is = [&](TexelLayout which) {
        return Test(Op::kIEq, layout, Int(static_cast<uint32_t>(which)));
    };
    constexpr ir::Type kOne[] = {kI32};
    constexpr std::array<ir::Type, 4> kFour = {kI32, kI32, kI32, kI32};
    const Id next = I(Op::kIAdd, offset, Int(kHalfBlockBytes));
    // The components of BC4 and BC5, and the alpha of BC3; what the others have there is of no use.
    const Id is_signed = Test(Op::kIEq, Bits(format, hal::kTexelClassShift, 8),
                              Int(static_cast<uint32_t>(TexelClass::kSnorm)));
    const Id has_green = is(TexelLayout::kBc5);
    const Ids ramps = Repeat(
        Select(has_green, Int(2), Int(1)), {Int(0), Int(0)}, [&](Id step, const Ids& before) {
            const Id at = I(Op::kIAdd, offset, I(Op::kShl, step, Int(3)));
            const Id ramp = BcRamp(LoadElements(buffer, at, kI32, 2, flags), texel, is_signed);
            const Id is_red = Test(Op::kIEq, step, Int(0));
            return Ids{Select(is_red, ramp, before[0]), Select(is_red, Int(0), ramp)};
        });
    const Id has_colors = Test(Op::kULt, layout, Int(static_cast<uint32_t>(TexelLayout::kBc4)));
    const Ids colors = If(has_colors, kFour, [&]() -> Ids {
        const Id has_alpha = Emit(Op::kNot, kBool, {is(TexelLayout::kBc1)});
        const Id at = Select(has_alpha, next, offset);
        Ids values = BcColor(LoadElements(buffer, at, kI32, 2, flags), texel, has_alpha);
        const Id plain = If(is(TexelLayout::kBc2), kOne, [&] {
            const Ids block = LoadElements(buffer, offset, kI32, 2, flags);
            const Id half = Select(Test(Op::kULt, texel, Int(8)), block[0], block[1]);
            const Id nibble = I(Op::kShl, I(Op::kAnd, texel, Int(7)), Int(2));
            return Ids{I(Op::kIMul, I(Op::kAnd, I(Op::kLShr, half, nibble), Int(15)), Int(17))};
        })[0];
        // A thirty-fifth, by a product that is exact for what a ramp can be.
        const Id ramp = I(Op::kLShr, I(Op::kIMul, ramps[0], Int(59919)), Int(21));
        const Id alpha = Select(is(TexelLayout::kBc2), plain, ramp);
        values[3] = Select(has_alpha, alpha, values[3]);
        return values;
    });
    return {Select(has_colors, colors[0], ramps[0]), Select(has_colors, colors[1], ramps[1]),
            colors[2], colors[3]};
}

// "BPTC interpolation factors" of indices of two to four bits.
Id ImageCode::BptcWeight(Id index, Id bits) {
    const auto shifted = [&](uint32_t by) { return I(Op::kLShr, index, Int(by)); };
    const Id two = I(Op::kIAdd, I(Op::kIMul, index, Int(21)), shifted(1));
    const Id three = I(Op::kIAdd, I(Op::kIMul, index, Int(9)), shifted(2));
    const Id four = I(Op::kIAdd, I(Op::kIAdd, I(Op::kShl, index, Int(2)), shifted(2)),
                      I(Op::kAnd, shifted(1), Int(1)));
    return Select(Test(Op::kIEq, bits, Int(2)), two,
                  Select(Test(Op::kIEq, bits, Int(3)), three, four));
}

Id ImageCode::BptcBetween(Id first, Id second, Id weight) {
    const Id sum = I(Op::kIAdd, I(Op::kIMul, first, I(Op::kISub, Int(64), weight)),
                     I(Op::kIMul, second, weight));
    return I(Op::kAShr, I(Op::kIAdd, sum, Int(32)), Int(6));
}

// A texel's index. The highest bit of each subset's anchor is 0 and left out.
Id ImageCode::BptcIndex(const Ids& block, Id start, Id texel, Id bits, Id anchors) {
    const Id anchor[] = {Int(0), Bits(anchors, 0, 8), Bits(anchors, 8, 8)};
    Id place = I(Op::kIAdd, start, I(Op::kIMul, texel, bits));
    Id width = bits;
    for (Id at : anchor) {
        place = I(Op::kISub, place, Select(Test(Op::kULt, at, texel), Int(1), Int(0)));
        width = I(Op::kISub, width, Select(Test(Op::kIEq, at, texel), Int(1), Int(0)));
    }
    return BlockBits(block, place, LowMask(width));
}

Ids ImageCode::Bc7Texel(const Ids& block, Id texel) {
    // Behind the eight modes there is a reserved one, whose texels are zeros.
    const Id mode = Emit(Op::kFindLsb, kI32, {I(Op::kOr, block[0], Int(0x100))});
    const Id reserved = Test(Op::kULe, Int(std::size(kBc7Modes)), mode);
    const Id entry = I(Op::kShl, I(Op::kAnd, mode, Int(7)), Int(1));
    const auto look_up = [&](Id index) {
        return FromTable(kI32, kBc7Counts.data(), kBc7Counts.size(), index);
    };
    const Id counts = look_up(entry);
    const Id places = look_up(I(Op::kIAdd, entry, Int(1)));
    const Id subsets = Bits(counts, 0, 2);
    const Id partition_bits = Bits(counts, 2, 3);
    const Id rotation_bits = Bits(counts, 5, 2);
    const Id color_bits = Bits(counts, 8, 4);
    const Id alpha_bits = Bits(counts, 12, 4);
    const Id p_of_endpoints = Bits(counts, 16, 1);
    const Id has_p = I(Op::kOr, p_of_endpoints, Bits(counts, 17, 1));
    const Id index_bits = Bits(counts, 18, 3);
    const Id second_bits = Bits(counts, 21, 2);

    const Id behind_mode = I(Op::kLShr, block[0], I(Op::kIAdd, mode, Int(1)));
    const Id partition = I(Op::kAnd, behind_mode, LowMask(partition_bits));
    const Id rotation = I(Op::kAnd, behind_mode, LowMask(rotation_bits));  // not with partitions
    const Id selection = I(Op::kAnd, I(Op::kLShr, behind_mode, rotation_bits), Bits(counts, 7, 1));
    const Id pattern = Select(
        Test(Op::kIEq, subsets, Int(1)), Int(kOfOne),
        I(Op::kIAdd, partition, Select(Test(Op::kIEq, subsets, Int(3)), Int(kOfThree), Int(0))));
    const Id subset = BptcSubset(pattern, texel);
    const Id anchors = FromTable(kI32, kAnchors, std::size(kAnchors), pattern);
    const Id start = Bits(places, 24, 8);
    const Id first_index = BptcIndex(block, start, texel, index_bits, anchors);
    // The other index, of modes with one subset, lies behind 31 bits of the first.
    const Id has_second = Test(Op::kINe, second_bits, Int(0));
    const Id second_index = BptcIndex(block, I(Op::kIAdd, start, Int(31)), texel,
                                      I(Op::kUMax, second_bits, Int(1)), anchors);
    const Id first_weight = BptcWeight(first_index, index_bits);
    const Id second_weight =
        Select(has_second, BptcWeight(second_index, second_bits), first_weight);
    const Id swapped = Test(Op::kINe, selection, Int(0));
    const Id color_weight = Select(swapped, second_weight, first_weight);
    const Id alpha_weight = Select(swapped, first_weight, second_weight);

    // Bits below those of each endpoint, of its own or for both.
    const Id own = Test(Op::kINe, p_of_endpoints, Int(0));
    const Id p_at = I(Op::kIAdd, Bits(places, 16, 8), I(Op::kShl, subset, p_of_endpoints));
    const Id p_pair = BlockBits(block, p_at, Int(3));
    const Id p_first = Bits(p_pair, 0, 1);
    const Id p_second = Select(own, Bits(p_pair, 1, 1), p_first);
    // Endpoints are grouped by subset, then by channel. A loop, because a channel is much code.
    const Id endpoint = I(Op::kShl, subset, Int(1));
    const Id channel_bits = I(Op::kIMul, color_bits, I(Op::kShl, subsets, Int(1)));
    const Id zero = Int(0);
    Ids values = Repeat(Int(4), {zero, zero, zero, zero}, [&](Id channel, const Ids& before) {
        const Id is_alpha = Test(Op::kIEq, channel, Int(3));
        const Id bits = Select(is_alpha, alpha_bits, color_bits);
        const Id field =
            Select(is_alpha, Bits(places, 8, 8),
                   I(Op::kIAdd, Bits(places, 0, 8), I(Op::kIMul, channel, channel_bits)));
        const Id pair = BlockBits(block, I(Op::kIAdd, field, I(Op::kIMul, endpoint, bits)),
                                  LowMask(I(Op::kShl, bits, Int(1))));
        const auto wide = [&](Id value, Id p) {
            value = I(Op::kOr, I(Op::kShl, value, has_p), I(Op::kAnd, p, has_p));
            const Id all = I(Op::kIAdd, bits, has_p);
            const Id high = I(Op::kShl, value, I(Op::kISub, Int(8), all));
            return I(Op::kOr, high, I(Op::kLShr, high, all));
        };
        const Id between = BptcBetween(wide(I(Op::kAnd, pair, LowMask(bits)), p_first),
                                       wide(I(Op::kLShr, pair, bits), p_second),
                                       Select(is_alpha, alpha_weight, color_weight));
        // No bits of alpha stand for an opaque one.
        const Id value = Select(Test(Op::kIEq, bits, Int(0)), Int(255), between);
        Ids after;
        for (uint32_t i = 0; i < 4; ++i) {
            after.push_back(Select(Test(Op::kIEq, channel, Int(i)), value, before[i]));
        }
        return after;
    });
    // "BPTC Rotation bits": alpha changes places with one of the colors.
    const Id alpha = values[3];
    for (uint32_t i = 0; i < 3; ++i) {
        const Id rotated = Test(Op::kIEq, rotation, Int(i + 1));
        const Id color = values[i];
        values[i] = Select(rotated, alpha, color);
        values[3] = Select(rotated, color, values[3]);
    }
    for (Id& value : values) {
        value = Select(reserved, Int(0), value);
    }
    return values;
}

Id ImageCode::BptcSubset(Id pattern, Id texel) {
    const Id subsets = FromTable(kI32, kPartitions, std::size(kPartitions), pattern);
    return I(Op::kAnd, I(Op::kLShr, subsets, I(Op::kShl, texel, Int(1))), Int(3));
}

// A variable of the block descriptions. Its single bits are gathered one after the other.
Id ImageCode::Bc6Variable(const Ids& block, Id index) {
    const Id entry = I(Op::kShl, index, Int(1));
    const auto look_up = [&](Id at) {
        return FromTable(kI32, kBc6Places.data(), kBc6Places.size(), at);
    };
    const Id low = look_up(entry);
    const Id high = look_up(I(Op::kIAdd, entry, Int(1)));
    const Id run = Bits(low, 7, 5);
    const Id count = Bits(low, 12, 3);
    const Id value = BlockBits(block, Bits(low, 0, 7), LowMask(run));
    return Repeat(Int(kSingleBits), {value}, [&](Id step, const Ids& before) {
        const Id in_high = Test(Op::kULt, step, Int(4));
        const Id at = I(Op::kIMul, I(Op::kAnd, step, Int(3)), Int(7));
        const Id word = Select(in_high, high, I(Op::kLShr, low, Int(18)));
        const Id place = I(Op::kAnd, I(Op::kLShr, word, at), Int(127));
        const Id bit = I(Op::kShl, BlockBits(block, place, Int(1)), I(Op::kIAdd, run, step));
        const Id exists = Test(Op::kULt, step, count);
        return Ids{I(Op::kOr, before[0], Select(exists, bit, Int(0)))};
    })[0];
}

// An endpoint's component on the scale of 16 bits; `value` is sign extended if it has a sign.
Id ImageCode::Bc6Unquantized(Id value, Id bits, Id is_signed) {
    const Id negative = Test(Op::kSLt, value, Int(0));
    const Id magnitude = Select(negative, I(Op::kISub, Int(0), value), value);
    const Id most = LowMask(I(Op::kISub, bits, Select(is_signed, Int(1), Int(0))));
    const Id scaled = I(Op::kLShr, I(Op::kIAdd, I(Op::kShl, magnitude, Int(15)), Int(0x4000)),
                        I(Op::kISub, bits, Int(1)));
    Id wide = Select(Test(Op::kULe, most, magnitude), Select(is_signed, Int(0x7fff), Int(0xffff)),
                     scaled);
    wide = Select(Test(Op::kIEq, magnitude, Int(0)), Int(0), wide);
    wide = Select(negative, I(Op::kISub, Int(0), wide), wide);
    const Id whole = Test(Op::kULe, Select(is_signed, Int(16), Int(15)), bits);
    return Select(whole, value, wide);
}

// Halves.
Ids ImageCode::Bc6Texel(const Ids& block, Id texel, Id is_signed) {
    const Id mode =
        FromTable(kI32, kBc6ModeWords.data(), kBc6ModeWords.size(), I(Op::kAnd, block[0], Int(31)));
    const Id number = Bits(mode, 0, 4);
    const Id reserved = Test(Op::kIEq, number, Int(kReservedBc6));
    const Id transformed = Test(Op::kINe, Bits(mode, 4, 1), Int(0));
    const Id two = Test(Op::kINe, Bits(mode, 5, 1), Int(0));
    const Id bits = Bits(mode, 8, 5);
    const Id mask = LowMask(bits);
    const Id pattern = Select(two, Bits(block[2], 13, 5), Int(kOfOne));
    const Id subset = BptcSubset(pattern, texel);
    const Id index_bits = Select(two, Int(3), Int(4));
    const Id index = BptcIndex(block, Select(two, Int(82), Int(65)), texel, index_bits,
                               FromTable(kI32, kAnchors, std::size(kAnchors), pattern));
    const Id weight = BptcWeight(index, index_bits);
    const Id variables = I(Op::kIMul, Select(reserved, Int(0), number), Int(kBc6Variables));
    // A loop, because a channel is much code.
    Ids values = Repeat(Int(3), {Int(0), Int(0), Int(0)}, [&](Id channel, const Ids& before) {
        const Id delta_bits =
            I(Op::kAnd, I(Op::kLShr, mode, I(Op::kIAdd, Int(16), I(Op::kShl, channel, Int(2)))),
              Int(15));
        const Id first = I(Op::kIAdd, variables, channel);
        // The base, which is the first endpoint, and then the two of the subset.
        const Ids ends = Repeat(Int(3), {Int(0), Int(0), Int(0)}, [&](Id step, const Ids& seen) {
            const Id of_subset = I(Op::kIAdd, I(Op::kShl, subset, Int(1)), step);
            const Id is_base = Test(Op::kIEq, step, Int(0));
            const Id endpoint = Select(is_base, Int(0), I(Op::kISub, of_subset, Int(1)));
            Id value = Bc6Variable(block, I(Op::kIAdd, first, I(Op::kIMul, endpoint, Int(3))));
            const Id base = Select(is_base, value, seen[0]);
            // All but the first are differences to it.
            const Id is_delta =
                Emit(Op::kAnd, kBool, {transformed, Test(Op::kINe, endpoint, Int(0))});
            const Id sum = I(Op::kIAdd, base, SignExtended(value, delta_bits));
            value = Select(is_delta, I(Op::kAnd, sum, mask), value);
            value = Select(is_signed, SignExtended(value, bits), value);
            return Ids{base, seen[2], Bc6Unquantized(value, bits, is_signed)};
        });
        const Id between = BptcBetween(ends[1], ends[2], weight);
        // "The final unquantization step".
        const Id negative = Test(Op::kSLt, between, Int(0));
        const Id magnitude = Select(negative, I(Op::kISub, Int(0), between), between);
        const Id product = I(Op::kIMul, magnitude, Int(31));
        const Id with_sign =
            I(Op::kOr, I(Op::kLShr, product, Int(5)), Select(negative, Int(0x8000), Int(0)));
        const Id half =
            Select(reserved, Int(0), Select(is_signed, with_sign, I(Op::kLShr, product, Int(6))));
        Ids after;
        for (uint32_t i = 0; i < 3; ++i) {
            after.push_back(Select(Test(Op::kIEq, channel, Int(i)), half, before[i]));
        }
        return after;
    });
    values.push_back(Int(0));
    return values;
}

}  // namespace fornax::kernel::spirv
