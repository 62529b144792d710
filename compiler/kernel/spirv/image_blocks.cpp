// Texels of compressed blocks: ETC2 and EAC as the Khronos Data Format specification describes
// them; image_bc_blocks.cpp has the others. All texels of a kernel's lanes are decoded where they
// are sampled; nothing keeps decoded images.
#include "compiler/kernel/spirv/image_code.h"

#include <iterator>

namespace fornax::kernel::spirv {

using hal::TexelClass;
using hal::TexelLayout;
using ir::Op;
using Id = ImageCode::Id;
using Ids = ImageCode::Ids;

namespace {

constexpr ir::Type kI32 = ir::Type::kI32;
constexpr ir::Type kBool = ir::Type::kBool;
constexpr uint32_t kBlockBytes = 8;

// "ETC1S/ETC2 intensity modifiers": of the lower bit of a texel's index, for each table.
constexpr uint32_t kIntensities[] = {2, 8, 5, 17, 9, 29, 13, 42, 18, 60, 24, 80, 33, 106, 47, 183};
// "Distance table for T and H modes".
constexpr uint32_t kDistances[] = {3, 6, 11, 16, 23, 32, 41, 64};
// "Intensity modifiers for alpha components": eight for each table.
constexpr int32_t kModifiers[] = {
    -3, -6, -9, -15, 2, 5, 8, 14, -3, -7, -10, -13, 2, 6, 9, 12, -2, -5, -8, -13, 1, 4, 7, 12,
    -2, -4, -6, -13, 1, 3, 5, 12, -3, -6, -8,  -12, 2, 5, 7, 11, -3, -7, -9, -11, 2, 6, 8, 10,
    -4, -7, -8, -11, 3, 6, 7, 10, -3, -5, -8,  -11, 2, 4, 7, 10, -2, -6, -8, -10, 1, 5, 7, 9,
    -2, -5, -8, -10, 1, 4, 7, 9,  -2, -4, -8,  -10, 1, 3, 7, 9,  -2, -5, -7, -10, 1, 4, 6, 9,
    -3, -4, -7, -10, 2, 3, 6, 9,  -1, -2, -3,  -10, 0, 1, 2, 9,  -4, -6, -8, -9,  3, 5, 7, 8,
    -3, -5, -7, -9,  2, 4, 6, 8};

}  // namespace

// The upper and the lower half of eight bytes in big-endian order.
Ids ImageCode::LoadBlockWords(Id buffer, Id offset, uint8_t flags) {
    Ids words = LoadElements(buffer, offset, kI32, 2, flags);
    for (Id& word : words) {
        const Id outer = I(Op::kOr, I(Op::kShl, word, Int(24)), I(Op::kLShr, word, Int(24)));
        const Id second = I(Op::kShl, I(Op::kAnd, word, Int(0xff00)), Int(8));
        const Id third = I(Op::kAnd, I(Op::kLShr, word, Int(8)), Int(0xff00));
        word = I(Op::kOr, outer, I(Op::kOr, second, third));
    }
    return words;
}

Ids ImageCode::LoadBlockTexel(Id buffer, const Texel& texel, Id format, uint8_t flags) {
    const Id layout = Bits(format, hal::kTexelLayoutShift, 8);
    const auto is = [&](TexelLayout which) {
        return Test(Op::kIEq, layout, Int(static_cast<uint32_t>(which)));
    };
    const Id bytes = Bits(format, hal::kTexelBytesShift, 8);
    const Id offset = I(Op::kIAdd, texel.row_offset, I(Op::kIMul, texel.column, bytes));
    const Id next = I(Op::kIAdd, offset, Int(kBlockBytes));
    const Id x = I(Op::kAnd, texel.x, Int(3));
    const Id y = I(Op::kAnd, texel.y, Int(3));
    const Id index = I(Op::kOr, I(Op::kShl, x, Int(2)), y);
    // Families follow one another.
    const auto from = [&](TexelLayout first) {
        return Select(Test(Op::kULe, Int(static_cast<uint32_t>(first)), layout), Int(1), Int(0));
    };
    Id family = from(TexelLayout::kEac);
    for (TexelLayout first : {TexelLayout::kBc1, TexelLayout::kBc6, TexelLayout::kBc7}) {
        family = I(Op::kIAdd, family, from(first));
    }
    constexpr uint32_t kFamilies[] = {1, 2, 3, 4, 0};
    constexpr ir::Type kOne[] = {kI32};
    constexpr std::array<ir::Type, 4> kFour = {kI32, kI32, kI32, kI32};
    return Switch(family, kFamilies, kFour, [&](uint32_t kind) -> Ids {
        if (kind >= 2) {
            const Id row_major = I(Op::kOr, I(Op::kShl, y, Int(2)), x);
            if (kind == 2) {
                return LoadRampTexel(buffer, offset, format, row_major, flags);
            }
            const Ids block = LoadElements(buffer, offset, kI32, 4, flags);
            return kind == 3 ? Bc6Texel(block, row_major, is(TexelLayout::kBc6Signed))
                             : Bc7Texel(block, row_major);
        }
        if (kind == 1) {
            const Id is_signed = Test(Op::kIEq, Bits(format, hal::kTexelClassShift, 8),
                                      Int(static_cast<uint32_t>(TexelClass::kSnorm)));
            const Id red = EacComponent(LoadBlockWords(buffer, offset, flags), index, is_signed);
            const Id green = If(is(TexelLayout::kEacX2), kOne, [&] {
                return Ids{EacComponent(LoadBlockWords(buffer, next, flags), index, is_signed)};
            })[0];
            return {red, green, Int(0), Int(0)};
        }
        const Id has_alpha = is(TexelLayout::kEtc2Alpha8);
        const Ids color = LoadBlockWords(buffer, Select(has_alpha, next, offset), flags);
        Ids values = EtcColor(color, x, y, is(TexelLayout::kEtc2Alpha1));
        const Id alpha = If(has_alpha, kOne, [&] {
            return Ids{EacAlpha(LoadBlockWords(buffer, offset, flags), index)};
        })[0];
        values[3] = Select(has_alpha, alpha, values[3]);
        return values;
    });
}

// The modifier of a texel of an EAC block, and what it is multiplied by.
Id ImageCode::EacModifier(const Ids& block, Id texel, Id* multiplier) {
    *multiplier = Bits(block[0], 20, 4);
    // Indices of three bits from bit 47 downwards: eight texels, then another eight.
    const Id first = I(Op::kOr, I(Op::kShl, I(Op::kAnd, block[0], Int(0xffff)), Int(8)),
                       I(Op::kLShr, block[1], Int(24)));
    const Id eight = Select(Test(Op::kULt, texel, Int(8)), first, block[1]);
    const Id at = I(Op::kIMul, I(Op::kISub, Int(7), I(Op::kAnd, texel, Int(7))), Int(3));
    const Id index = I(Op::kAnd, I(Op::kLShr, eight, at), Int(7));
    const Id row = I(Op::kShl, Bits(block[0], 16, 4), Int(3));
    return FromTable(kI32, kModifiers, std::size(kModifiers), I(Op::kOr, row, index));
}

// The alpha of ETC2.
Id ImageCode::EacAlpha(const Ids& block, Id texel) {
    Id multiplier;
    const Id modifier = EacModifier(block, texel, &multiplier);
    const Id sum = I(Op::kIAdd, Bits(block[0], 24, 8), I(Op::kIMul, modifier, multiplier));
    return I(Op::kSMax, I(Op::kSMin, sum, Int(255)), Int(0));
}

// "R11 EAC": eleven bits, of which a multiplier of 0 leaves the lowest to the modifier.
Id ImageCode::EacComponent(const Ids& block, Id texel, Id is_signed) {
    Id multiplier;
    const Id modifier = EacModifier(block, texel, &multiplier);
    const Id none = Test(Op::kIEq, multiplier, Int(0));
    const Id scale = Select(none, Int(1), I(Op::kShl, multiplier, Int(3)));
    const Id change = I(Op::kIMul, modifier, scale);
    const Id base = Bits(block[0], 24, 8);
    const Id plain = I(Op::kIAdd, I(Op::kShl, base, Int(3)), Int(4));
    // -128 is -127 written another way.
    const Id extended = I(Op::kAShr, I(Op::kShl, base, Int(24)), Int(24));
    const Id with_sign =
        I(Op::kShl, I(Op::kSMax, extended, Int(static_cast<uint32_t>(-127))), Int(3));
    const Id sum = I(Op::kIAdd, Select(is_signed, with_sign, plain), change);
    const Id least = Select(is_signed, Int(static_cast<uint32_t>(-1023)), Int(0));
    const Id most = Select(is_signed, Int(1023), Int(2047));
    return I(Op::kSMax, I(Op::kSMin, sum, most), least);
}

// Red, green, blue and alpha of eight bits each. In blocks that may be transparent the bit that
// elsewhere tells two modes apart says that none of the texels is.
Ids ImageCode::EtcColor(const Ids& block, Id x, Id y, Id may_be_transparent) {
    const Id hi = block[0];
    const auto flag = [&](uint32_t bit) {
        return Test(Op::kINe, I(Op::kAnd, hi, Int(1u << bit)), Int(0));
    };
    const auto both = [&](Id a, Id b) { return Emit(Op::kAnd, kBool, {a, b}); };
    const auto either = [&](Id a, Id b) { return Emit(Op::kOr, kBool, {a, b}); };
    const auto isnt = [&](Id a) { return Emit(Op::kNot, kBool, {a}); };
    const auto clamped = [&](Id value) {
        return I(Op::kSMax, I(Op::kSMin, value, Int(255)), Int(0));
    };
    const auto negated = [&](Id value) { return I(Op::kISub, Int(0), value); };

    // Which of four a texel is.
    const Id at = I(Op::kOr, I(Op::kShl, x, Int(2)), y);
    const Id low_bit = Bits(I(Op::kLShr, block[1], at), 0, 1);
    const Id low = Test(Op::kINe, low_bit, Int(0));
    const Id high = Test(Op::kINe, Bits(I(Op::kLShr, block[1], at), 16, 1), Int(0));
    const Id bit = flag(1);
    const Id differential = either(may_be_transparent, bit);
    const Id opaque = either(isnt(may_be_transparent), bit);
    const Id is_clear = both(isnt(opaque), both(high, isnt(low)));

    // "Individual" and "differential": one of two colors and a change that the components share.
    const Id along = Select(flag(0), y, x);
    const Id second = Test(Op::kULe, Int(2), along);
    const Id row = Select(second, Bits(hi, 2, 3), Bits(hi, 5, 3));
    Id amount = FromTable(kI32, kIntensities, std::size(kIntensities),
                          I(Op::kOr, I(Op::kShl, row, Int(1)), low_bit));
    amount = Select(both(isnt(opaque), isnt(low)), Int(0), amount);
    const Id change = Select(high, negated(amount), amount);
    Ids colors;
    Ids overflows;
    for (uint32_t shift : {24u, 16u, 8u}) {
        const Id base = Bits(hi, shift + 3, 5);
        const Id difference = I(Op::kAShr, I(Op::kShl, hi, Int(29 - shift)), Int(29));
        const Id sum = I(Op::kIAdd, base, difference);
        overflows.push_back(Test(Op::kULt, Int(31), sum));
        const Id five = Select(second, sum, base);
        const Id wide = I(Op::kOr, I(Op::kShl, five, Int(3)), I(Op::kLShr, five, Int(2)));
        const Id four = Select(second, Bits(hi, shift, 4), Bits(hi, shift + 4, 4));
        const Id color = Select(differential, wide, I(Op::kIMul, four, Int(17)));
        colors.push_back(clamped(I(Op::kIAdd, color, change)));
    }
    // What overflows chooses the modes that need no differences.
    const Id is_t = both(differential, overflows[0]);
    const Id is_h = both(both(differential, isnt(overflows[0])), overflows[1]);
    const Id is_planar =
        both(both(differential, isnt(either(overflows[0], overflows[1]))), overflows[2]);

    // "T" and "H": four colors of two and a distance.
    const auto joined = [&](Id upper, uint32_t bits, Id lower) {
        return I(Op::kOr, I(Op::kShl, upper, Int(bits)), lower);
    };
    const Ids t_colors = {joined(Bits(hi, 27, 2), 2, Bits(hi, 24, 2)),
                          Bits(hi, 20, 4),
                          Bits(hi, 16, 4),
                          Bits(hi, 12, 4),
                          Bits(hi, 8, 4),
                          Bits(hi, 4, 4)};
    const Ids h_colors = {Bits(hi, 27, 4),
                          joined(Bits(hi, 24, 3), 1, Bits(hi, 20, 1)),
                          joined(Bits(hi, 19, 1), 3, Bits(hi, 15, 3)),
                          Bits(hi, 11, 4),
                          Bits(hi, 7, 4),
                          Bits(hi, 3, 4)};
    const auto packed = [&](size_t first) {
        return joined(joined(h_colors[first], 4, h_colors[first + 1]), 4, h_colors[first + 2]);
    };
    const Id order = Select(Test(Op::kULe, packed(3), packed(0)), Int(1), Int(0));
    const Id t_distance = joined(Bits(hi, 2, 2), 1, Bits(hi, 0, 1));
    const Id h_distance = joined(joined(Bits(hi, 2, 1), 1, Bits(hi, 0, 1)), 1, order);
    const Id distance =
        FromTable(kI32, kDistances, std::size(kDistances), Select(is_h, h_distance, t_distance));
    const Id t_step = Select(low, Select(high, negated(distance), distance), Int(0));
    const Id h_step = Select(low, negated(distance), distance);
    const Id step = Select(is_h, h_step, t_step);
    const Id takes_second =
        Select(is_h, Select(high, Int(1), Int(0)), Select(either(high, low), Int(1), Int(0)));
    const Id other = Test(Op::kINe, takes_second, Int(0));

    // "Planar": colors at three corners.
    const auto wide6 = [&](Id v) { return joined(v, 2, I(Op::kLShr, v, Int(4))); };
    const auto wide7 = [&](Id v) { return joined(v, 1, I(Op::kLShr, v, Int(6))); };
    const Id lo = block[1];
    const Ids origin = {
        wide6(Bits(hi, 25, 6)), wide7(joined(Bits(hi, 24, 1), 6, Bits(hi, 17, 6))),
        wide6(joined(joined(Bits(hi, 16, 1), 2, Bits(hi, 11, 2)), 3, Bits(hi, 7, 3)))};
    const Ids across = {wide6(joined(Bits(hi, 2, 5), 1, Bits(hi, 0, 1))), wide7(Bits(lo, 25, 7)),
                        wide6(Bits(lo, 19, 6))};
    const Ids down = {wide6(Bits(lo, 13, 6)), wide7(Bits(lo, 6, 7)), wide6(Bits(lo, 0, 6))};

    const Id paints = either(is_t, is_h);
    const Id clear = both(is_clear, isnt(is_planar));
    Ids values;
    for (size_t i = 0; i < 3; ++i) {
        const Id t_color = Select(other, t_colors[i + 3], t_colors[i]);
        const Id h_color = Select(other, h_colors[i + 3], h_colors[i]);
        const Id base = I(Op::kIMul, Select(is_h, h_color, t_color), Int(17));
        const Id painted = clamped(I(Op::kIAdd, base, step));
        Id sum = I(Op::kIAdd, I(Op::kShl, origin[i], Int(2)), Int(2));
        sum = I(Op::kIAdd, sum, I(Op::kIMul, x, I(Op::kISub, across[i], origin[i])));
        sum = I(Op::kIAdd, sum, I(Op::kIMul, y, I(Op::kISub, down[i], origin[i])));
        const Id planar = clamped(I(Op::kAShr, sum, Int(2)));
        const Id value = Select(is_planar, planar, Select(paints, painted, colors[i]));
        values.push_back(Select(clear, Int(0), value));
    }
    values.push_back(Select(clear, Int(0), Int(255)));
    return values;
}

}  // namespace fornax::kernel::spirv
