// Texels to components and back. The order of the cases is that of hal/image_abi.h; conversions
// follow "Format" and "Texel Input/Output Operations" of the Vulkan specification, and the Khronos
// Data Format specification for shared exponents, small floats and sRGB.
#include "compiler/kernel/spirv/image_code.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

namespace fornax::kernel::spirv {

using hal::ComponentBits;
using hal::TexelClass;
using hal::TexelLayout;
using ir::Op;
using Id = ImageCode::Id;
using Ids = ImageCode::Ids;

namespace {

constexpr ir::Type kI32 = ir::Type::kI32;
constexpr ir::Type kF32 = ir::Type::kF32;
constexpr std::array<ir::Type, 4> kFourInts = {kI32, kI32, kI32, kI32};
constexpr std::array<ir::Type, 4> kFourFloats = {kF32, kF32, kF32, kF32};

// Most frequent last: it is the switches' default.
template <uint32_t kCount>
constexpr auto FirstLayouts() {
    std::array<uint32_t, kCount> all{};
    for (uint32_t i = 0; i < all.size(); ++i) {
        all[i] = i;
    }
    std::swap(all[static_cast<size_t>(TexelLayout::k32x4)], all.back());
    return all;
}
constexpr auto kStorageLayouts = FirstLayouts<hal::kStorageLayoutCount>();
constexpr auto kPlainLayouts = FirstLayouts<hal::kTexelLayoutCount>();
// The last number stands for all compressed ones.
constexpr auto kSampledLayouts = FirstLayouts<hal::kTexelLayoutCount + 1>();
static_assert(static_cast<uint32_t>(TexelLayout::kEtc2) == hal::kTexelLayoutCount);

// Bytes of the elements that a texel is loaded and stored in, and how many there are.
struct Elements {
    ir::Type type;
    uint32_t count;
};
Elements ElementsOf(TexelLayout layout) {
    switch (layout) {
        case TexelLayout::k8:
        case TexelLayout::k4x2:
            return {ir::Type::kI8, 1};
        case TexelLayout::k8x2:
        case TexelLayout::k16:
        case TexelLayout::k5_6_5:
        case TexelLayout::k5_5_5_1:
        case TexelLayout::k4x4:
        case TexelLayout::k1_5_5_5:
            return {ir::Type::kI16, 1};
        case TexelLayout::k16x4:
            return {ir::Type::kI16, 4};  // conversions of halves stay in the order of memory
        case TexelLayout::k32x2:
            return {kI32, 2};
        case TexelLayout::k32x4:
            return {kI32, 4};
        case TexelLayout::k8x3:
            return {ir::Type::kI8, 3};
        case TexelLayout::k16x3:
            return {ir::Type::kI16, 3};
        case TexelLayout::k32x3:
            return {kI32, 3};
        default:
            return {kI32, 1};
    }
}

constexpr uint32_t kTableEntries = 256;

float SrgbValue(uint32_t code) {
    const double c = code / 255.0;
    return static_cast<float>(c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4));
}

}  // namespace

Ids ImageCode::Zeros(std::span<const ir::Type> types) {
    Ids zeros;
    for (ir::Type type : types) {
        zeros.push_back(builder_.Const(type, 0));
    }
    return zeros;
}

Ids ImageCode::LoadElements(Id buffer, Id offset, ir::Type type, size_t count, uint8_t flags) {
    const Id operands[] = {buffer, offset};
    const std::vector<ir::Type> types(count, type);
    // Texels are aligned as much as their size is, and those of three elements as these are.
    const size_t bytes = ir::ByteSize(type) * count;
    const ir::InstId load =
        builder_.Append(Op::kLoadBuffer, operands, types, bytes & -bytes, flags);
    return kernel_.inst(load).results;
}

Id ImageCode::TexelOffset(const Texel& texel, TexelLayout layout) {
    const uint32_t bytes = hal::MakeTexelFormat(layout, TexelClass::kUint).bytes;
    const Id in_row =
        std::has_single_bit(bytes)
            ? I(Op::kShl, texel.column, Int(static_cast<uint32_t>(std::countr_zero(bytes))))
            : I(Op::kIMul, texel.column, Int(bytes));
    return I(Op::kIAdd, texel.row_offset, in_row);
}

Id ImageCode::BlockLog2(Id layout) {
    const Id compressed = Test(Op::kULe, Int(static_cast<uint32_t>(TexelLayout::kEtc2)), layout);
    return Select(compressed, Int(hal::kBlockLog2), Int(0));
}

Id ImageCode::Blocks(Id texels, Id block_log2) {
    const Id up = I(Op::kISub, I(Op::kShl, Int(1), block_log2), Int(1));
    return I(Op::kLShr, I(Op::kIAdd, texels, up), block_log2);
}

Ids ImageCode::LoadRaw(Id buffer, const Texel& texel, Id format, bool sampled, uint8_t flags) {
    constexpr auto kCompressed = static_cast<uint32_t>(TexelLayout::kEtc2);
    std::span<const uint32_t> layouts = kStorageLayouts;
    Id layout = Bits(format, hal::kTexelLayoutShift, 8);
    if (sampled && texel.x.valid()) {
        layouts = kSampledLayouts;
        layout = I(Op::kUMin, layout, Int(kCompressed));
    } else if (sampled) {
        layouts = kPlainLayouts;
    }
    return Switch(layout, layouts, kFourInts, [&](uint32_t which) {
        const auto known = static_cast<TexelLayout>(which);
        if (which == kCompressed) {
            return LoadBlockTexel(buffer, texel, format, flags);
        }
        const Elements elements = ElementsOf(known);
        const Id offset = TexelOffset(texel, known);
        Ids words = LoadElements(buffer, offset, elements.type, elements.count, flags);
        if (elements.type != kI32) {
            for (Id& word : words) {
                word = Emit(Op::kZExt, kI32, {word});
            }
        }
        if (elements.count > 1 && ir::BitWidth(elements.type) == ComponentBits(known)[0]) {
            words.resize(4, Int(0));  // an element a component
            return words;
        }
        Ids raw;
        uint32_t at = 0;
        for (uint8_t bits : ComponentBits(known)) {
            raw.push_back(bits == 0 ? Int(0) : Bits(words[at / 32], at % 32, bits));
            at += bits;
        }
        if (known == TexelLayout::k11_11_10) {
            // The sign and the lower mantissa bits of a half are missing.
            raw[0] = I(Op::kShl, raw[0], Int(4));
            raw[1] = I(Op::kShl, raw[1], Int(4));
            raw[2] = I(Op::kShl, raw[2], Int(5));
        }
        // Narrower than what DecodeInt takes all components for.
        if (known == TexelLayout::kInt10x3_2) {
            raw[3] = I(Op::kAShr, I(Op::kShl, raw[3], Int(30)), Int(30));
        }
        return raw;
    });
}

void ImageCode::StoreRaw(Id buffer,
                         const Texel& texel,
                         Id layout,
                         std::span<const Id> raw,
                         uint8_t flags) {
    Switch(layout, kStorageLayouts, {}, [&](uint32_t which) {
        const auto known = static_cast<TexelLayout>(which);
        const Elements elements = ElementsOf(known);
        const uint32_t element_bits = std::min(ir::BitWidth(elements.type), 32u);
        std::array<Id, 4> words;
        uint32_t at = 0;
        const std::array<uint8_t, 4> all_bits = ComponentBits(known);
        for (size_t i = 0; i < all_bits.size() && all_bits[i] != 0; ++i) {
            const uint32_t bits = all_bits[i];
            Id part = raw[i];
            if (known == TexelLayout::k11_11_10) {
                part = I(Op::kLShr, part, Int(i == 2 ? 5 : 4));
            }
            part = Bits(part, 0, bits);
            if (at % element_bits != 0) {
                part = I(Op::kShl, part, Int(at % element_bits));
            }
            Id& word = words[at / element_bits];
            word = word.valid() ? I(Op::kOr, word, part) : part;
            at += bits;
        }
        Ids operands = {buffer, TexelOffset(texel, known)};
        for (uint32_t i = 0; i < elements.count; ++i) {
            operands.push_back(elements.type == kI32 ? words[i]
                                                     : Emit(Op::kTrunc, elements.type, {words[i]}));
        }
        builder_.Append(Op::kStoreBuffer, operands, {},
                        uint64_t{ir::ByteSize(elements.type)} * elements.count, flags);
        return Ids();
    });
}

Id ImageCode::HalfToFloat(Id bits) {
    const Id half = Emit(Op::kBitcast, ir::Type::kF16, {Emit(Op::kTrunc, ir::Type::kI16, {bits})});
    return Emit(Op::kFConvert, kF32, {half});
}

Id ImageCode::FloatToHalf(Id value) {
    const Id half = Emit(Op::kFConvert, ir::Type::kF16, {value});
    return Emit(Op::kZExt, kI32, {Emit(Op::kBitcast, ir::Type::kI16, {half})});
}

// From a table: the curve is not worth computing for 256 values.
Id ImageCode::SrgbToLinear(Id raw) {
    static const std::vector<uint8_t> table = [] {
        std::vector<uint8_t> bytes(kTableEntries * sizeof(float));
        for (uint32_t i = 0; i < kTableEntries; ++i) {
            const float value = SrgbValue(i);
            std::memcpy(bytes.data() + i * sizeof(float), &value, sizeof(value));
        }
        return bytes;
    }();
    return FromTable(kF32, table.data(), kTableEntries, raw);
}

Id ImageCode::FromTable(ir::Type type, const void* table, size_t entries, Id index) {
    const auto* first = static_cast<const uint8_t*>(table);
    const uint8_t* last = first + entries * sizeof(uint32_t);
    std::vector<uint8_t>& data = kernel_.constant_data;
    auto found = std::search(data.begin(), data.end(), first, last);
    if (found == data.end() || (found - data.begin()) % 4 != 0) {
        data.resize((data.size() + 3) / 4 * 4);
        found = data.insert(data.end(), first, last);
    }
    const auto start = static_cast<uint32_t>(found - data.begin());
    const Id offset = I(Op::kIAdd, I(Op::kShl, index, Int(2)), Int(start));
    return builder_.Emit(Op::kLoadConstant, type, {offset}, sizeof(uint32_t));
}

Ids ImageCode::DecodeFloat(std::span<const Id> raw, Id format, std::span<const Id> scales) {
    static constexpr uint32_t kClasses[] = {static_cast<uint32_t>(TexelClass::kUnorm),
                                            static_cast<uint32_t>(TexelClass::kSnorm),
                                            static_cast<uint32_t>(TexelClass::kSrgb),
                                            static_cast<uint32_t>(TexelClass::kHalf),
                                            static_cast<uint32_t>(TexelClass::kSharedExponent),
                                            static_cast<uint32_t>(TexelClass::kUscaled),
                                            static_cast<uint32_t>(TexelClass::kSscaled),
                                            static_cast<uint32_t>(TexelClass::kFloat)};
    const Id texel_class = Bits(format, hal::kTexelClassShift, 8);
    return Switch(texel_class, kClasses, kFourFloats, [&](uint32_t which) {
        Ids values;
        switch (static_cast<TexelClass>(which)) {
            case TexelClass::kUnorm:
                for (size_t i = 0; i < 4; ++i) {
                    const Id steps = F(Op::kUToF, raw[i]);
                    values.push_back(scales[i].valid() ? F(Op::kFMul, steps, scales[i]) : steps);
                }
                break;
            case TexelClass::kSnorm: {
                const Ids ints = DecodeInt(raw, format);
                for (size_t i = 0; i < 4; ++i) {
                    const Id value = F(Op::kFMul, F(Op::kSToF, ints[i]), scales[i]);
                    values.push_back(F(Op::kFMax, value, Float(-1)));
                }
                break;
            }
            case TexelClass::kUscaled:
                for (Id bits : raw) {
                    values.push_back(F(Op::kUToF, bits));
                }
                break;
            case TexelClass::kSscaled:
                for (Id value : DecodeInt(raw, format)) {
                    values.push_back(F(Op::kSToF, value));
                }
                break;
            case TexelClass::kSrgb:
                for (size_t i = 0; i < 3; ++i) {
                    values.push_back(SrgbToLinear(raw[i]));
                }
                values.push_back(F(Op::kFMul, F(Op::kUToF, raw[3]), scales[3]));
                break;
            case TexelClass::kHalf:
                for (Id bits : raw) {
                    values.push_back(HalfToFloat(bits));
                }
                break;
            case TexelClass::kSharedExponent: {
                // 2^(exponent - 15 - 9), made from its bits.
                const Id exponent = I(Op::kIAdd, raw[3], Int(127 - 15 - 9));
                const Id scale = AsFloat(I(Op::kShl, exponent, Int(23)));
                for (size_t i = 0; i < 3; ++i) {
                    values.push_back(F(Op::kFMul, F(Op::kUToF, raw[i]), scale));
                }
                values.push_back(Float(0));
                break;
            }
            default:
                for (Id bits : raw) {
                    values.push_back(AsFloat(bits));
                }
                break;
        }
        return values;
    });
}

Ids ImageCode::DecodeInt(std::span<const Id> raw, Id format) {
    const Id shift = Bits(format, hal::kTexelSignShiftShift, 8);
    uint64_t known = 0;
    Ids values(raw.begin(), raw.end());
    if (IsConst(shift, &known) && known == 0) {
        return values;
    }
    for (Id& value : values) {
        value = I(Op::kAShr, I(Op::kShl, value, shift), shift);
    }
    return values;
}

// How many steps of a scale there are up to 1: a whole number, which the quotient may miss by a
// bit.
Id ImageCode::Inverse(Id scale) {
    uint64_t known = 0;
    if (!IsConst(scale, &known)) {
        return F(Op::kRoundEven, F(Op::kFDiv, Float(1), scale));
    }
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(known));
    return Float(value == 0 ? 0.0f : std::round(1 / value));
}

Ids ImageCode::EncodeFloat(std::span<const Id> values, Id format, std::span<const Id> scales) {
    static constexpr uint32_t kClasses[] = {
        static_cast<uint32_t>(TexelClass::kUnorm), static_cast<uint32_t>(TexelClass::kSnorm),
        static_cast<uint32_t>(TexelClass::kHalf), static_cast<uint32_t>(TexelClass::kFloat)};
    const Id texel_class = Bits(format, hal::kTexelClassShift, 8);
    auto normalized = [&](size_t i, float low) {
        // A NaN becomes the lower end. A scale of 0 is of a component that is not stored.
        const Id clamped = F(Op::kFMin, F(Op::kNMax, values[i], Float(low)), Float(1));
        const Id steps = F(Op::kFMul, clamped, Inverse(scales[i]));
        return Emit(Op::kFToS, kI32, {F(Op::kRoundEven, steps)});  // of 17 bits at most
    };
    return Switch(texel_class, kClasses, kFourInts, [&](uint32_t which) {
        Ids raw;
        switch (static_cast<TexelClass>(which)) {
            case TexelClass::kUnorm:
                for (size_t i = 0; i < 4; ++i) {
                    raw.push_back(normalized(i, 0));
                }
                break;
            case TexelClass::kSnorm:
                for (size_t i = 0; i < 4; ++i) {
                    raw.push_back(normalized(i, -1));
                }
                break;
            case TexelClass::kHalf: {
                // Small floats have no sign, and no finite value overflows to infinity.
                const Id layout = Bits(format, hal::kTexelLayoutShift, 8);
                const Id small =
                    Test(Op::kIEq, layout, Int(static_cast<uint32_t>(TexelLayout::k11_11_10)));
                for (size_t i = 0; i < 4; ++i) {
                    const Id largest = Float(i == 2 ? 64512.0f : 65024.0f);
                    const Id infinite = Test(Op::kFOEq, values[i], Float(INFINITY));
                    const Id is_nan = Emit(Op::kIsNan, ir::Type::kBool, {values[i]});
                    Id limited = F(Op::kNMin, F(Op::kNMax, values[i], Float(0)), largest);
                    limited = Select(Emit(Op::kOr, ir::Type::kBool, {infinite, is_nan}), values[i],
                                     limited);
                    raw.push_back(FloatToHalf(Select(small, limited, values[i])));
                }
                break;
            }
            default:
                for (Id value : values) {
                    raw.push_back(AsInt(value));
                }
                break;
        }
        return raw;
    });
}

Ids ImageCode::KnownScales(const hal::TexelFormat& format) {
    Ids scales;
    for (uint8_t bits : ComponentBits(format.layout)) {
        scales.push_back(Float(hal::NormalizedScale(format.texel_class, bits)));
    }
    return scales;
}

Ids ImageCode::Swizzled(std::span<const Id> components, Id swizzle, Id one) {
    std::vector<ir::Type> types(4, kernel_.type(one));
    const Id zero = builder_.Const(types[0], 0);
    // An image whose components stay where they are is the common case.
    const Id moves =
        Test(Op::kINe, Bits(swizzle, 0, hal::kSwizzleOrderShift), Int(hal::kIdentitySwizzle));
    const auto move = [&] {
        Ids moved;
        for (uint32_t i = 0; i < 4; ++i) {
            const Id from = Bits(swizzle, i * hal::kSwizzleBits, hal::kSwizzleBits);
            auto is = [&](hal::Swizzle which) {
                return Test(Op::kIEq, from, Int(static_cast<uint32_t>(which)));
            };
            Id value = Select(is(hal::Swizzle::kOne), one, zero);
            value = Select(is(hal::Swizzle::kAlpha), components[3], value);
            value = Select(is(hal::Swizzle::kBlue), components[2], value);
            value = Select(is(hal::Swizzle::kGreen), components[1], value);
            moved.push_back(Select(is(hal::Swizzle::kRed), components[0], value));
        }
        return moved;
    };
    const auto stay = [&] { return Ids(components.begin(), components.end()); };
    uint64_t known = 0;
    if (IsConst(moves, &known)) {
        return known != 0 ? move() : stay();
    }
    const ir::InstId inst = builder_.Append(Op::kIf, {&moves, 1}, types);
    AddBlock(inst, move);
    AddBlock(inst, stay);
    return kernel_.inst(inst).results;
}

}  // namespace fornax::kernel::spirv
