// The steps of a sample in the order of the specification: position, level of detail, levels, texel
// coordinates, wrapping, texels, comparison, filter. (Levels of detail: image_levels.cpp.)
#include "compiler/kernel/spirv/image_sampling.h"

#include <algorithm>
#include <cmath>

namespace fornax::kernel::spirv {

using ir::Op;
using Id = ImageCode::Id;
using Ids = ImageCode::Ids;

namespace {

constexpr ir::Type kI32 = ir::Type::kI32;
constexpr ir::Type kF32 = ir::Type::kF32;
constexpr ir::Type kBool = ir::Type::kBool;

constexpr uint32_t kFlagsAt = offsetof(hal::SamplerDescriptor, flags);
constexpr uint32_t kBorderAt = offsetof(hal::SamplerDescriptor, border);

constexpr uint32_t kMostTaps = 8;  // of a linear filter in three dimensions

// What 1 minus a weight is a multiple of. So is 1 minus that, without error.
constexpr float kLeastWeight = 0x1p-24f;

}  // namespace

ImageSampling::ImageSampling(ImageCode& code, const SampledPlace& place)
    : code_(code), place_(place), cube_(place.dim == spv::Dim::Cube) {
    axes_ = place.dim == spv::Dim::Dim1D ? 1 : place.dim == spv::Dim::Dim3D ? 3 : 2;
    flags_ = code_.Word(place.sampler, kFlagsAt);
    scales_ = place.scales;
    // A null descriptor has no level.
    uint64_t levels = 0;
    exists_ =
        code_.IsConst(code_.Word(place.image, offsetof(hal::ImageDescriptor, levels)), &levels) &&
        levels != 0;
    if (axes_ >= 2) {
        block_log2_ = code_.BlockLog2(code_.Bits(place.format, hal::kTexelLayoutShift, 8));
    }
}

// Whether texels may lie in blocks.
bool ImageSampling::IsCompressed() const {
    uint64_t block_log2 = 0;
    return block_log2_.valid() && !(code_.IsConst(block_log2_, &block_log2) && block_log2 == 0);
}

// Whether texels may lie outside on an axis: all other modes wrap them to where the image is.
bool ImageSampling::MayHitBorder(size_t axis) const {
    uint64_t mode = 0;
    const uint32_t shift = hal::kSamplerAddressShift + 4 * static_cast<uint32_t>(axis);
    return !code_.IsConst(code_.Bits(flags_, shift, 4), &mode) ||
           mode == static_cast<uint64_t>(hal::AddressMode::kClampToBorder);
}

bool ImageSampling::MayHitBorder() const {
    for (size_t i = 0; i < axes_; ++i) {
        if (MayHitBorder(i)) {
            return true;
        }
    }
    return false;
}

// Whether no component can be infinite or a NaN, as those of custom borders can.
bool ImageSampling::IsFinite() const {
    uint64_t known = 0;
    return !MayHitBorder() &&
           code_.IsConst(code_.Bits(place_.format, hal::kTexelClassShift, 8), &known) &&
           known != static_cast<uint64_t>(hal::TexelClass::kHalf) &&
           known != static_cast<uint64_t>(hal::TexelClass::kFloat);
}

// Whether components are so many steps of their scales, which an average can be multiplied by as
// well as each texel.
bool ImageSampling::HasSteps() const {
    uint64_t known = 0;
    return code_.IsConst(code_.Bits(place_.format, hal::kTexelClassShift, 8), &known) &&
           known == static_cast<uint64_t>(hal::TexelClass::kUnorm);
}

Id ImageSampling::Flag(uint32_t bit) {
    return code_.Test(Op::kINe, code_.I(Op::kAnd, flags_, code_.Int(bit)), code_.Int(0));
}

void ImageSampling::FindPosition(const Inputs& inputs) {
    auto& c = code_;
    const size_t components = cube_ ? 3 : axes_;
    const Ids given(inputs.coordinates.begin(),
                    inputs.coordinates.begin() + static_cast<ptrdiff_t>(components));
    const bool graded = !inputs.grad_x.empty();
    if (cube_) {
        SelectFace(given, graded ? &inputs.grad_x : nullptr, graded ? &inputs.grad_y : nullptr);
    } else {
        position_ = given;
        if (graded) {
            gradients_[0] = inputs.grad_x;
            gradients_[1] = inputs.grad_y;
        }
    }
    slice_ = {};
    if (place_.arrayed) {
        // "The layer is rounded to the nearest even and clamped."
        const Id layers = c.Word(place_.image, offsetof(hal::ImageDescriptor, depth));
        Id last = c.I(Op::kISub, cube_ ? c.I(Op::kUDiv, layers, c.Int(6)) : layers, c.Int(1));
        const Id rounded = c.F(Op::kRoundEven, inputs.coordinates[components]);
        const Id limited =
            c.F(Op::kNMin, c.F(Op::kNMax, rounded, c.Float(0)), c.Emit(Op::kSToF, kF32, {last}));
        slice_ = c.Emit(Op::kFToS, kI32, {limited});
    }
    if (cube_ && slice_.valid()) {
        slice_ = c.I(Op::kIMul, slice_, c.Int(6));
    }
}

// Which block a texel is in, or how many there are of so many texels.
Id ImageSampling::Block(Id texels, bool count) {
    if (!IsCompressed()) {
        return texels;
    }
    return count ? code_.Blocks(texels, block_log2_) : code_.I(Op::kLShr, texels, block_log2_);
}

ImageSampling::Level ImageSampling::MakeLevel(Id index) {
    auto& c = code_;
    constexpr uint32_t kExtents[] = {offsetof(hal::ImageDescriptor, width),
                                     offsetof(hal::ImageDescriptor, height),
                                     offsetof(hal::ImageDescriptor, depth)};
    uint64_t known = 0;
    const bool is_base = c.IsConst(index, &known) && known == 0;
    Level level;
    for (size_t i = 0; i < axes_; ++i) {
        const Id base = c.Word(place_.image, kExtents[i]);
        // A null descriptor has no texels in any level.
        const Id at_least = c.I(Op::kUMin, base, c.Int(1));
        level.extent.push_back(is_base ? base
                                       : c.I(Op::kUMax, c.I(Op::kLShr, base, index), at_least));
    }
    level.row_pitch = c.Word(place_.image, offsetof(hal::ImageDescriptor, row_pitch));
    level.slice_pitch = c.Word(place_.image, offsetof(hal::ImageDescriptor, slice_pitch));
    level.offset = c.Int(0);
    if (is_base) {
        return level;
    }
    const Id texel_bytes = c.Bits(place_.format, hal::kTexelBytesShift, 8);
    const Id bytes = c.I(Op::kIMul, Block(level.extent[0], true), texel_bytes);
    const Id padded = c.I(Op::kIAdd, bytes, c.Int(hal::kRowAlignment - 1));
    const Id pitch = c.I(Op::kAnd, padded, c.Int(~(hal::kRowAlignment - 1)));
    // The base level may have any.
    const Id at_base = c.Test(Op::kIEq, index, c.Int(0));
    level.row_pitch = c.Select(at_base, level.row_pitch, pitch);
    if (axes_ == 3) {
        level.slice_pitch = c.Select(at_base, level.slice_pitch,
                                     c.I(Op::kIMul, pitch, Block(level.extent[1], true)));
    }
    const Id entry = c.I(Op::kIAdd, c.I(Op::kShl, index, c.Int(2)),
                         c.Int(offsetof(hal::SampledImageDescriptor, level_offsets)));
    level.offset = c.WordAt(place_.image, entry);
    return level;
}

// "Unnormalized Texel Coordinate Operations": the texel below the position, or at it.
ImageSampling::Axis ImageSampling::MakeAxis(const Level& level,
                                            size_t axis,
                                            Id linear,
                                            const Ids& offset) {
    auto& c = code_;
    const Id extent = c.Emit(Op::kSToF, kF32, {level.extent[axis]});
    const Id scale = cube_ ? extent : c.Select(Flag(hal::kSamplerUnnormalized), c.Float(1), extent);
    const Id shift = c.Select(linear, c.Float(-0.5f), c.Float(0));
    const Id at = c.F(Op::kFAdd, c.F(Op::kFMul, position_[axis], scale), shift);
    const Id below = c.F(Op::kFloor, at);
    Axis made;
    made.first = c.Emit(Op::kFToS, kI32, {below});
    if (axis < offset.size()) {
        made.first = c.I(Op::kIAdd, made.first, offset[axis]);
    }
    Id above = c.F(Op::kFSub, at, below);
    Id rest = c.F(Op::kFSub, c.Float(1), above);
    if (!IsFinite()) {
        // Rounding does not take the first texel's weight away: it may be infinite.
        const Id least = c.Float(kLeastWeight);
        rest = c.Select(c.Test(Op::kFOLt, rest, least), least, rest);
        above = Complement(rest);
    }
    made.first_weight = c.Select(linear, rest, c.Float(1));
    made.second_weight = c.Select(linear, above, c.Float(0));
    return made;
}

// "Wrapping Operation". With the border's mode, coordinates outside stay there. On seamless cubes
// nearest texels are those of the face's edge, and those of a linear filter are on the next face
// ("Cube Map Edge Handling").
Id ImageSampling::Wrapped(Id index, Id extent, size_t axis, Id linear) {
    using hal::AddressMode;
    auto& c = code_;
    const Id last = c.I(Op::kISub, extent, c.Int(1));
    auto clamped = [&](Id value) { return c.I(Op::kSMax, c.I(Op::kSMin, value, last), c.Int(0)); };
    static constexpr uint32_t kModes[] = {static_cast<uint32_t>(AddressMode::kRepeat),
                                          static_cast<uint32_t>(AddressMode::kMirroredRepeat),
                                          static_cast<uint32_t>(AddressMode::kClampToBorder),
                                          static_cast<uint32_t>(AddressMode::kMirrorClampToEdge),
                                          static_cast<uint32_t>(AddressMode::kClampToEdge)};
    const Id mode = c.Bits(flags_, hal::kSamplerAddressShift + 4 * static_cast<uint32_t>(axis), 4);
    // -1 is the mirror image of 0.
    auto mirrored = [&](Id value) {
        return c.Select(c.Test(Op::kSLt, value, c.Int(0)), c.Emit(Op::kNot, kI32, {value}), value);
    };
    constexpr ir::Type kResult[] = {kI32};
    const Id wrapped = c.Switch(mode, kModes, kResult, [&](uint32_t which) -> Ids {
        switch (static_cast<AddressMode>(which)) {
            case AddressMode::kRepeat:
                return {c.I(Op::kSMod, index, extent)};
            case AddressMode::kMirroredRepeat: {
                const Id period = c.I(Op::kShl, extent, c.Int(1));
                const Id in_period = c.I(Op::kSMod, index, period);
                return {c.I(Op::kISub, last, mirrored(c.I(Op::kISub, in_period, extent)))};
            }
            case AddressMode::kClampToBorder:
                return {index};
            case AddressMode::kMirrorClampToEdge:
                return {clamped(mirrored(index))};
            default:
                return {clamped(index)};
        }
    })[0];
    if (!cube_) {
        return wrapped;
    }
    const Id crossing = c.Select(linear, index, clamped(index));
    return c.Select(Flag(hal::kSamplerNonSeamless), wrapped, crossing);
}

void ImageSampling::CrossEdges(Id& x, Id& y, Id& face, Id extent) {
    auto& c = code_;
    // The direction of the texel's centre, on the plane of its face; then its own face.
    const Id size = c.Emit(Op::kSToF, kF32, {extent});
    auto centre = [&](Id index) {
        const Id doubled = c.I(Op::kIAdd, c.I(Op::kShl, index, c.Int(1)), c.Int(1));
        return c.F(Op::kFSub, c.F(Op::kFDiv, c.Emit(Op::kSToF, kF32, {doubled}), size), c.Float(1));
    };
    const Id s = centre(x);
    const Id t = centre(y);
    auto minus = [&](Id value) { return c.F(Op::kFNeg, value); };
    const Id negative = c.Test(Op::kINe, c.I(Op::kAnd, face, c.Int(1)), c.Int(0));
    const Id one = c.Select(negative, c.Float(-1), c.Float(1));
    const Id axis = c.I(Op::kLShr, face, c.Int(1));
    const Id is_x = c.Test(Op::kIEq, axis, c.Int(0));
    const Id is_y = c.Test(Op::kIEq, axis, c.Int(1));
    auto by_axis = [&](Id on_x, Id on_y, Id on_z) {
        return c.Select(is_x, on_x, c.Select(is_y, on_y, on_z));
    };
    const Id flipped_s = c.Select(negative, minus(s), s);
    const Ids direction = {by_axis(one, s, flipped_s), by_axis(minus(t), one, minus(t)),
                           by_axis(minus(flipped_s), c.Select(negative, minus(t), t), one)};
    const Ids kept_position = position_;
    const Id kept_face = face_;
    SelectFace(direction, nullptr, nullptr);
    Id inside = c.Emit(Op::kAnd, kBool, {c.Test(Op::kULt, x, extent), c.Test(Op::kULt, y, extent)});
    inside = c.Emit(Op::kOr, kBool, {inside, Flag(hal::kSamplerNonSeamless)});
    auto moved = [&](Id position) {
        const Id index = c.Emit(Op::kFToS, kI32, {c.F(Op::kFloor, c.F(Op::kFMul, position, size))});
        return c.I(Op::kSMax, c.I(Op::kSMin, index, c.I(Op::kISub, extent, c.Int(1))), c.Int(0));
    };
    x = c.Select(inside, x, moved(position_[0]));
    y = c.Select(inside, y, moved(position_[1]));
    face = c.Select(inside, face, face_);
    position_ = kept_position;
    face_ = kept_face;
}

// "Depth Compare Operation", if there is one. A comparison's number has a bit for each of less,
// equal and greater.
Ids ImageSampling::Compared(Ids values, const Inputs& inputs) {
    auto& c = code_;
    Id reference = inputs.reference;
    if (!reference.valid()) {
        return values;
    }
    const Id depth = values[0];
    const Id format_class = c.Bits(place_.format, hal::kTexelClassShift, 8);
    const Id fixed =
        c.Test(Op::kIEq, format_class, c.Int(static_cast<uint32_t>(hal::TexelClass::kUnorm)));
    const Id limited = c.F(Op::kNMin, c.F(Op::kNMax, reference, c.Float(0)), c.Float(1));
    reference = c.Select(fixed, limited, reference);
    const Id results[] = {c.Test(Op::kFOLt, reference, depth), c.Test(Op::kFOEq, reference, depth),
                          c.Test(Op::kFOLt, depth, reference)};
    Id passes = c.Test(Op::kINe, c.Int(0), c.Int(0));
    for (uint32_t bit = 0; bit < 3; ++bit) {
        const Id asked = Flag(1u << (hal::kSamplerCompareShift + bit));
        passes = c.Emit(Op::kOr, kBool, {passes, c.Emit(Op::kAnd, kBool, {asked, results[bit]})});
    }
    // A NaN is unlike everything, and "always" asks for nothing.
    const Id comparison = c.Bits(flags_, hal::kSamplerCompareShift, 3);
    const Id always = c.Test(Op::kIEq, comparison, c.Int(7));
    passes = c.Emit(Op::kOr, kBool, {passes, always});
    values[0] = c.Select(passes, c.Float(1), c.Float(0));
    return values;
}

Ids ImageSampling::Fetch(const Level& level, const Ids& texel, const Inputs& inputs) {
    auto& c = code_;
    // What is known to be inside is loaded without a test.
    Id inside = c.Test(Op::kIEq, c.Int(0), c.Int(0));
    Id offset = level.offset;
    for (size_t i = 0; i < texel.size(); ++i) {
        // Slices of an array are in range by construction, but those of a null descriptor.
        const bool slice = i >= axes_;
        if (!exists_ || (!slice && MayHitBorder(i))) {
            const Id extent = slice ? c.Word(place_.image, offsetof(hal::ImageDescriptor, depth))
                                    : level.extent[i];
            inside = c.Emit(Op::kAnd, kBool, {inside, c.Test(Op::kULt, texel[i], extent)});
        }
        if (i > 0) {
            const bool row = !slice && i == 1;
            const Id pitch = row ? level.row_pitch : level.slice_pitch;
            const Id steps = row ? Block(texel[i], false) : texel[i];
            offset = c.I(Op::kIAdd, offset, c.I(Op::kIMul, steps, pitch));
        }
    }
    const std::vector<ir::Type> ints(4, kI32);
    const Ids raw = c.If(inside, ints, [&] {
        ImageCode::Texel at{offset, Block(texel[0], false)};
        if (block_log2_.valid()) {
            at.x = texel[0];
            at.y = texel[1];
        }
        return c.LoadRaw(place_.buffer, at, place_.format, true, 0);
    });
    Ids values = place_.integer ? c.DecodeInt(raw, place_.format)
                                : c.DecodeFloat(raw, place_.format, scales_);
    if (c.IsOne(inside)) {
        return Compared(std::move(values), inputs);
    }
    // Outside there is only the border, or nothing at all.
    Id border;
    for (uint32_t i = 0; i < axes_; ++i) {
        const Id mode = c.Bits(flags_, hal::kSamplerAddressShift + 4 * i, 4);
        const Id is_border =
            c.Test(Op::kIEq, mode, c.Int(static_cast<uint32_t>(hal::AddressMode::kClampToBorder)));
        border = border.valid() ? c.Emit(Op::kOr, kBool, {border, is_border}) : is_border;
    }
    border = c.Emit(Op::kAnd, kBool, {border, c.Emit(Op::kNot, kBool, {inside})});
    Ids colors;
    for (uint32_t i = 0; i < 4; ++i) {
        colors.push_back(c.Word(place_.sampler, kBorderAt + 4 * i));
    }
    const Id swizzle = c.Word(place_.image, offsetof(hal::ImageDescriptor, swizzle));
    for (uint32_t i = 0; i < 4; ++i) {
        // The component may be another than the i-th of red, green, blue and alpha.
        const Id channel =
            c.Bits(swizzle, hal::kSwizzleOrderShift + i * hal::kSwizzleBits, hal::kSwizzleBits);
        Id color = colors[3];
        for (uint32_t k = 0; k < 3; ++k) {
            color = c.Select(c.Test(Op::kIEq, channel, c.Int(k)), colors[k], color);
        }
        values[i] = c.Select(border, place_.integer ? color : c.AsFloat(color), values[i]);
    }
    return Compared(std::move(values), inputs);
}

// "Cube Map Edge Handling": where three faces meet there is no fourth texel, so the three share its
// weight, which makes it their average.
ImageSampling::Corner ImageSampling::FindCorner(const Level& level,
                                                std::span<const Axis> axes,
                                                std::span<const std::array<Id, 2>> wrapped) {
    auto& c = code_;
    Id exists = c.Emit(Op::kNot, kBool, {Flag(hal::kSamplerNonSeamless)});
    Id tap = c.Int(0);
    Id weight = c.Float(1.0f / 3);
    for (uint32_t i = 0; i < 2; ++i) {
        const auto outside = [&](Id index) { return c.Test(Op::kULe, level.extent[i], index); };
        const Id second = outside(wrapped[i][1]);
        const Id either = c.Emit(Op::kOr, kBool, {outside(wrapped[i][0]), second});
        exists = c.Emit(Op::kAnd, kBool, {exists, either});
        tap = c.I(Op::kOr, tap, c.Select(second, c.Int(1u << i), c.Int(0)));
        const Id first_weight = c.F(Op::kFSub, c.Float(1), axes[i].second_weight);
        weight = c.F(Op::kFMul, weight, c.Select(second, axes[i].second_weight, first_weight));
    }
    return {c.Select(exists, tap, c.Int(UINT32_MAX)), c.Select(exists, weight, c.Float(0))};
}

Ids ImageSampling::Sample(const Inputs& inputs) {
    auto& c = code_;
    FindPosition(inputs);
    const Id lod = Clamped(LevelOfDetail(inputs), inputs);
    const Id is_magnified = c.Test(Op::kFOLe, lod, c.Float(0));
    // Integers are not filtered.
    const Id never = c.Test(Op::kINe, c.Int(0), c.Int(0));
    const Id linear = place_.integer ? never
                                     : c.Select(is_magnified, Flag(hal::kSamplerMagLinear),
                                                Flag(hal::kSamplerMinLinear));
    const Id linear_anywhere =
        place_.integer ? never : Flag(hal::kSamplerMagLinear | hal::kSamplerMinLinear);
    const auto [levels, last, level_position, nearest] = FindLevel(lod);
    const Id blended = c.Emit(Op::kAnd, kBool,
                              {place_.integer ? never : Flag(hal::kSamplerMipLinear),
                               c.Test(Op::kULt, c.Int(1), levels)});
    const Id finer = c.F(Op::kFloor, level_position);
    Id between_levels = c.F(Op::kFSub, level_position, finer);
    if (!IsFinite()) {
        between_levels = Complement(Complement(between_levels));
    }
    const Id coarse_weight = c.Select(blended, between_levels, c.Float(0));
    const Id first_level = c.Select(blended, finer, nearest);
    const Id taps = c.Select(linear_anywhere, c.Int(1u << axes_), c.Int(1));

    // An average of finite steps is scaled once.
    static_assert(hal::Reduction::kAverage == hal::Reduction{});
    const bool averages_steps = IsFinite() && HasSteps() && !inputs.reference.valid() &&
                                !place_.integer &&
                                c.IsZero(c.Bits(flags_, hal::kSamplerReductionShift, 4));
    if (averages_steps) {
        scales_.assign(4, Id());
    }
    // Integers have one level and one texel.
    const bool filtered = !place_.integer;
    auto sample_level = [&](Id level_value, Id level_weight, Id is_finer, const Ids& before) {
        const Level level = MakeLevel(c.Emit(Op::kFToS, kI32, {level_value}));
        std::vector<Axis> axes;
        std::vector<std::array<Id, 2>> wrapped;
        for (size_t i = 0; i < axes_; ++i) {
            axes.push_back(MakeAxis(level, i, linear, inputs.offset));
            wrapped.push_back({Wrapped(axes[i].first, level.extent[i], i, linear), Id()});
            if (filtered) {
                const Id second = c.I(Op::kIAdd, axes[i].first, c.Int(1));
                wrapped[i][1] = Wrapped(second, level.extent[i], i, linear);
            }
        }
        const Corner corner = cube_ && filtered ? FindCorner(level, axes, wrapped) : Corner();
        auto take = [&](Id tap, const Ids& state) {
            Ids texel;
            for (uint32_t i = 0; i < axes_; ++i) {
                texel.push_back(filtered ? c.Select(IsSecond(tap, i), wrapped[i][1], wrapped[i][0])
                                         : wrapped[i][0]);
            }
            Id slice = slice_;
            if (cube_) {
                Id face = face_;
                if (filtered) {
                    CrossEdges(texel[0], texel[1], face, level.extent[0]);
                }
                slice = slice.valid() ? c.I(Op::kIAdd, slice, face) : face;
            }
            if (slice.valid()) {
                texel.push_back(slice);
            }
            const Ids values = Fetch(level, texel, inputs);
            return filtered ? Reduced(state, values, {tap, axes, corner, level_weight, is_finer})
                            : values;
        };
        // The code of a compressed texel is long.
        const uint32_t unrolled = IsCompressed() ? 1 : kMostTaps;
        if (!filtered) {
            return take(c.Int(0), before);
        }
        return Blended(c.Repeat(taps, before, take, unrolled), level_weight, is_finer);
    };
    if (!filtered) {
        return sample_level(first_level, c.Float(1), {}, {});
    }
    const Id passes = c.Select(blended, c.Int(2), c.Int(1));
    const Ids reduced = c.Repeat(passes, FirstState(), [&](Id pass, const Ids& before) {
        const Id is_first = c.Test(Op::kIEq, pass, c.Int(0));
        const Id coarser = c.F(Op::kFMin, c.F(Op::kFAdd, first_level, c.Float(1)), last);
        const Id weight =
            c.Select(is_first, c.F(Op::kFSub, c.Float(1), coarse_weight), coarse_weight);
        return sample_level(c.Select(is_first, first_level, coarser), weight, is_first, before);
    });
    Ids results = ResultOf(reduced);
    for (size_t i = 0; averages_steps && i < 4; ++i) {
        results[i] = c.F(Op::kFMul, results[i], place_.scales[i]);
    }
    return results;
}

}  // namespace fornax::kernel::spirv
