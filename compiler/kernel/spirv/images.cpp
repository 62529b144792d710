// Images and texel buffers: reading and writing texels, queries. A value of an image type is the
// place of its descriptor; its texels are loaded from and stored to the memory that the descriptor
// names (hal/image_abi.h), which for the rest of the compiler is a buffer.
#include "compiler/kernel/spirv/images.h"

#include "compiler/kernel/spirv/image_formats.h"

namespace fornax::kernel::spirv {

using hal::ComponentBits;
using hal::TexelClass;
using hal::TexelLayout;
using ir::ValueId;
using spv::Op;
using Kind = BindingLayout::Kind;

namespace {

constexpr uint32_t kFormatAt = offsetof(hal::ImageDescriptor, format);
constexpr uint32_t kWidthAt = offsetof(hal::ImageDescriptor, width);
constexpr uint32_t kHeightAt = offsetof(hal::ImageDescriptor, height);
constexpr uint32_t kDepthAt = offsetof(hal::ImageDescriptor, depth);
constexpr uint32_t kRowPitchAt = offsetof(hal::ImageDescriptor, row_pitch);
constexpr uint32_t kSlicePitchAt = offsetof(hal::ImageDescriptor, slice_pitch);
constexpr uint32_t kLevelsAt = offsetof(hal::ImageDescriptor, levels);
constexpr uint32_t kSwizzleAt = offsetof(hal::ImageDescriptor, swizzle);
constexpr uint32_t kScaleAt = offsetof(hal::ImageDescriptor, scale);
constexpr uint32_t kLevelOffsetsAt = offsetof(hal::SampledImageDescriptor, level_offsets);

// Operands of OpTypeImage.
constexpr size_t kSampledType = 0;
constexpr size_t kDim = 1;
constexpr size_t kArrayed = 3;
constexpr size_t kMultisampled = 4;
constexpr size_t kSampled = 5;
constexpr size_t kFormat = 6;

}  // namespace

Result<Image> Images::UseImage(const Inst& inst, uint32_t id) {
    FORNAX_ASSIGN_OR_RETURN(Pointer pointer, values_.UsePointer(inst, id));
    return UseImageAt(inst, std::move(pointer));
}

Result<Image> Images::UseImageAt(const Inst& inst, Pointer pointer) {
    Image image;
    heaps_.ResolveHeap(pointer);
    image.pointer = std::move(pointer);
    const Inst* type = module_.Find(image.pointer.type);
    if (type && type->op == Op::OpTypeSampledImage) {
        type = module_.Find((*type)[0]);
    }
    if (image.pointer.space != Pointer::Space::kImage || image.pointer.needs_element || !type ||
        type->op != Op::OpTypeImage) {
        return Invalid(inst, "uses as an image what is none");
    }
    image.type = type->result;
    image.dim = static_cast<spv::Dim>((*type)[kDim]);
    image.arrayed = (*type)[kArrayed] != 0;
    image.storage = (*type)[kSampled] == 2;
    image.multisampled = (*type)[kMultisampled] != 0;
    if (image.multisampled && image.dim != spv::Dim::Dim2D) {
        return Unsupported(inst, "uses a multisampled image that is not two-dimensional");
    }
    if (image.dim == spv::Dim::Rect || image.dim == spv::Dim::SubpassData) {
        return Unsupported(inst, "uses an image of a dimension that is not supported");
    }
    FORNAX_ASSIGN_OR_RETURN(const Type* component, TypeOf(inst, (*type)[kSampledType]));
    image.component = component->scalar;
    const bool wide = image.component == ir::Type::kI64;
    if (image.component != ir::Type::kF32 && image.component != ir::Type::kI32 && !wide) {
        return Unsupported(inst,
                           "uses an image whose components are neither of 32 bits nor integers of "
                           "64");
    }
    const BindingLayout& layout = kernel_.bindings[image.pointer.binding].layout;
    if (layout.kind == Kind::kSampler) {
        return Invalid(inst, "uses as an image what is none");
    }

    image.descriptor.binding = image.pointer.binding;
    image.descriptor.is_short = request_.layout.heaps && layout.kind == Kind::kSampledImage;
    if (image.pointer.element.valid()) {
        image.descriptor.start =
            Emit(ir::Op::kIMul, ir::Type::kI32, {image.pointer.element, Int(layout.Stride())});
    }
    ImageCode code(builder_);
    const auto format = static_cast<spv::ImageFormat>((*type)[kFormat]);
    // Only one layout has components of 64 bits, and views of storage images move none.
    const auto known = wide && image.storage && format == spv::ImageFormat::Unknown
                           ? FormatOf(spv::ImageFormat::R64ui)
                           : FormatOf(format);
    if ((format == spv::ImageFormat::Unknown && !known) || !image.storage) {
        image.format = code.Word(image.descriptor, kFormatAt);
        return image;
    }
    if (!known) {
        return Unsupported(
            inst, "uses an image of the format " + std::to_string(static_cast<uint32_t>(format)));
    }
    const bool integer =
        known->texel_class == TexelClass::kUint || known->texel_class == TexelClass::kSint;
    const bool wide_format = format == spv::ImageFormat::R64ui ||
                             format == spv::ImageFormat::R64i ||
                             (format == spv::ImageFormat::Unknown && wide);
    if (integer != ir::IsInteger(image.component) || wide != wide_format) {
        return Invalid(inst, "uses an image whose format is not of its sampled type");
    }
    image.known_format = true;
    image.format = Int(WordOf(*known));
    return image;
}

Result<ImageOperands> Images::ReadImageOperands(const Inst& inst, size_t at) {
    ImageOperands operands;
    if (at >= inst.size()) {
        return operands;
    }
    const uint32_t mask = inst[at++];
    // In the order of the bits, which is that of their operands.
    auto next = [&](const char* name) -> Result<Tuple> {
        if (at >= inst.size()) {
            return Invalid(inst, std::string("lacks the operand of ") + name);
        }
        return values_.UseTuple(inst, inst[at++]);
    };
    auto scalar = [&](uint32_t bit, const char* name, ValueId& into) -> Status {
        if (!(mask & bit)) {
            return OkStatus();
        }
        FORNAX_ASSIGN_OR_RETURN(Tuple tuple, next(name));
        if (tuple.size() != 1) {
            return Invalid(inst, std::string("has no scalar as ") + name);
        }
        into = tuple[0];
        return OkStatus();
    };
    auto tuple = [&](uint32_t bit, const char* name, Tuple& into) -> Status {
        if (!(mask & bit)) {
            return OkStatus();
        }
        FORNAX_ASSIGN_OR_RETURN(into, next(name));
        return OkStatus();
    };
    FORNAX_RETURN_IF_ERROR(scalar(0x1, "Bias", operands.bias));
    FORNAX_RETURN_IF_ERROR(scalar(0x2, "Lod", operands.lod));
    FORNAX_RETURN_IF_ERROR(tuple(0x4, "Grad", operands.grad_x));
    FORNAX_RETURN_IF_ERROR(tuple(0x4, "Grad", operands.grad_y));
    FORNAX_RETURN_IF_ERROR(tuple(0x8, "ConstOffset", operands.offset));
    FORNAX_RETURN_IF_ERROR(tuple(0x10, "Offset", operands.offset));
    FORNAX_RETURN_IF_ERROR(tuple(0x20, "ConstOffsets", operands.offsets));
    FORNAX_RETURN_IF_ERROR(scalar(0x40, "Sample", operands.sample));
    FORNAX_RETURN_IF_ERROR(scalar(0x80, "MinLod", operands.min_lod));
    // What is left (memory model, extension of signs, non-temporal) needs nothing done.
    return operands;
}

// Integer coordinates, as i32: x, y, z as far as the dimension has them, then the layer.
Result<Tuple> Images::TexelCoordinates(const Inst& inst, const Image& image, uint32_t id) {
    FORNAX_ASSIGN_OR_RETURN(Tuple coordinates, values_.UseTuple(inst, id));
    const bool face = image.dim == spv::Dim::Cube;  // u, v and the face with its layer
    const size_t wanted = image.Dimensions() + (image.arrayed && !face ? 1 : 0);
    if (coordinates.size() < wanted) {
        return Invalid(inst, "has fewer coordinates than its image's type wants");
    }
    coordinates.resize(wanted);
    for (ValueId& coordinate : coordinates) {
        if (!ir::IsInteger(kernel_.type(coordinate))) {
            return Invalid(inst, "has coordinates that are no integers");
        }
        coordinate = ToI32(coordinate, true);
    }
    return coordinates;
}

// Where a texel is, from the descriptor's address, and whether there is one. `level` is invalid for
// the base level, `sample` for images of one sample.
ImageCode::Texel Images::TexelPlace(const Image& image,
                                    const Tuple& coordinates,
                                    ValueId level,
                                    ValueId sample,
                                    ValueId& inside) {
    ImageCode code(builder_);
    const auto word = [&](uint32_t at) { return code.Word(image.descriptor, at); };
    uint64_t known = 0;
    if (level.valid() && kernel_.IsConst(level, &known) && known == 0) {
        level = {};
    }
    const ValueId texel_bytes = code.Bits(image.format, hal::kTexelBytesShift, 8);
    const bool has_rows = image.Dimensions() >= 2;
    const bool has_slices = coordinates.size() > (has_rows ? 2 : 1);
    const bool is_3d = image.dim == spv::Dim::Dim3D;
    const bool may_be_compressed = image.MayBeCompressed();
    ValueId block_log2;
    if (may_be_compressed) {
        block_log2 = code.BlockLog2(code.Bits(image.format, hal::kTexelLayoutShift, 8));
    }
    const auto block = [&](ValueId at) {
        return block_log2.valid() ? code.I(ir::Op::kLShr, at, block_log2) : at;
    };
    // Extents and pitches of the level.
    auto extent = [&](uint32_t at) {
        const ValueId base = word(at);
        return level.valid() ? code.I(ir::Op::kUMax, code.I(ir::Op::kLShr, base, level), Int(1))
                             : base;
    };
    const ValueId width = extent(kWidthAt);
    const ValueId height = has_rows ? extent(kHeightAt) : ValueId();
    ValueId offset = Int(0);
    inside = code.Test(ir::Op::kULt, coordinates[0], width);
    auto also = [&](ValueId coordinate, ValueId limit) {
        inside = Emit(ir::Op::kAnd, ir::Type::kBool,
                      {inside, code.Test(ir::Op::kULt, coordinate, limit)});
    };
    auto step = [&](ValueId coordinate, ValueId pitch) {
        offset = code.I(ir::Op::kIAdd, offset, code.I(ir::Op::kIMul, coordinate, pitch));
    };
    if (level.valid()) {
        also(level, word(kLevelsAt));
        const ValueId entry =
            code.I(ir::Op::kIAdd, code.I(ir::Op::kShl, level, Int(2)), Int(kLevelOffsetsAt));
        offset = code.I(ir::Op::kIAdd, offset, code.WordAt(image.descriptor, entry));
    }
    // The base level may have any pitches.
    auto pitch_of = [&](ValueId of_base, ValueId of_others) {
        return code.Select(code.Test(ir::Op::kIEq, level, Int(0)), of_base, of_others);
    };
    ValueId row_pitch;
    if (has_rows) {
        row_pitch = word(kRowPitchAt);
        if (level.valid()) {
            const ValueId blocks = may_be_compressed ? code.Blocks(width, block_log2) : width;
            const ValueId bytes = code.I(ir::Op::kIMul, blocks, texel_bytes);
            const ValueId padded = code.I(ir::Op::kIAdd, bytes, Int(hal::kRowAlignment - 1));
            row_pitch =
                pitch_of(row_pitch, code.I(ir::Op::kAnd, padded, Int(~(hal::kRowAlignment - 1))));
        }
        also(coordinates[1], height);
        step(block(coordinates[1]), row_pitch);
    }
    if (has_slices) {
        const ValueId z = coordinates.back();
        also(z, is_3d ? extent(kDepthAt) : word(kDepthAt));
        ValueId slice_pitch;
        if (is_3d && level.valid()) {
            const ValueId rows = may_be_compressed ? code.Blocks(height, block_log2) : height;
            slice_pitch = pitch_of(word(kSlicePitchAt), code.I(ir::Op::kIMul, row_pitch, rows));
        } else {
            slice_pitch = word(kSlicePitchAt);
        }
        step(z, slice_pitch);
    }
    ValueId column = block(coordinates[0]);
    if (sample.valid()) {
        const ValueId samples = word(kLevelsAt);
        also(sample, samples);
        column = code.I(ir::Op::kIAdd, code.I(ir::Op::kIMul, column, samples), sample);
    }
    return {offset, column, may_be_compressed ? coordinates[0] : ValueId(),
            may_be_compressed ? coordinates[1] : ValueId()};
}

// The number of the sample that an instruction names, as i32; invalid for images of one sample.
Result<ValueId> Images::SampleNumber(const Inst& inst, const Image& image, ValueId sample) {
    if (sample.valid() != image.multisampled) {
        return Invalid(inst, "names a sample, or does not, unlike what its image's type wants");
    }
    if (!sample.valid()) {
        return sample;
    }
    if (!ir::IsInteger(kernel_.type(sample))) {
        return Invalid(inst, "has a sample that is no integer");
    }
    return ToI32(sample, true);
}

Status Images::DefineTexel(const Inst& inst, const Image& image, const Tuple& components) {
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, inst.type));
    if (type->scalars == 0 || type->scalars > components.size() ||
        types_.ScalarOf(*type) != image.component) {
        return Invalid(inst, "has a result type that is not of its image's components");
    }
    return values_.Define(
        inst, {components.begin(), components.begin() + static_cast<ptrdiff_t>(type->scalars)});
}

// OpImageRead and OpImageFetch. A texel that is outside reads as zeros before the components that
// the format lacks are filled in ("Component Substitution", robustImageAccess2).
Status Images::ImageRead(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(const Image image, UseImage(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(Tuple coordinates, TexelCoordinates(inst, image, inst[1]));
    FORNAX_ASSIGN_OR_RETURN(const ImageOperands operands, ReadImageOperands(inst, 2));
    ImageCode code(builder_);
    for (size_t i = 0; i < operands.offset.size() && i < coordinates.size(); ++i) {
        coordinates[i] = code.I(ir::Op::kIAdd, coordinates[i], ToI32(operands.offset[i], true));
    }
    // Only sampled images have more levels in their descriptors.
    const bool leveled = inst.op == Op::OpImageFetch && image.dim != spv::Dim::Buffer;
    ValueId level;
    if (leveled && operands.lod.valid()) {
        if (!ir::IsInteger(kernel_.type(operands.lod))) {
            return Invalid(inst, "has a level that is no integer");
        }
        level = ToI32(operands.lod, true);
    }
    FORNAX_ASSIGN_OR_RETURN(const ValueId sample, SampleNumber(inst, image, operands.sample));
    ValueId inside;
    const ImageCode::Texel texel_place = TexelPlace(image, coordinates, level, sample, inside);
    const ValueId buffer = access_.BufferOf(image.pointer);
    if (image.component == ir::Type::kI64) {
        const ValueId zero = builder_.Const(ir::Type::kI64, 0);
        constexpr ir::Type kWide[] = {ir::Type::kI64};
        const ValueId texel = code.If(inside, kWide, [&] {
            return code.LoadElements(buffer, code.TexelOffset(texel_place, TexelLayout::k32x2),
                                     ir::Type::kI64, 1,
                                     image.pointer.is_volatile ? ir::kVolatile : 0);
        })[0];
        // A null descriptor gives zeros only, and has no level.
        const ValueId exists =
            code.Test(ir::Op::kINe, code.Word(image.descriptor, kLevelsAt), Int(0));
        const ValueId one = code.Select(exists, builder_.Const(ir::Type::kI64, 1), zero);
        return DefineTexel(inst, image, {texel, zero, zero, one});
    }
    const std::vector<ir::Type> ints(4, ir::Type::kI32);
    const Tuple raw = code.If(inside, ints, [&] {
        return code.LoadRaw(buffer, texel_place, image.format, !image.storage,
                            image.pointer.is_volatile ? ir::kVolatile : 0);
    });
    const bool integer = image.component == ir::Type::kI32;
    Tuple components = integer ? code.DecodeInt(raw, image.format)
                               : code.DecodeFloat(raw, image.format, TexelScales(image));
    const ValueId one = integer ? Int(1) : code.Float(1);
    if (image.known_format) {
        const auto bits = ComponentBits(KnownLayout(image));
        const ValueId zero = integer ? Int(0) : code.Float(0);
        for (size_t i = 0; i < 4; ++i) {
            if (bits[i] == 0) {
                components[i] = i == 3 ? one : zero;
            }
        }
    } else {
        components = code.Swizzled(components, code.Word(image.descriptor, kSwizzleAt), one);
    }
    return DefineTexel(inst, image, components);
}

hal::TexelLayout Images::KnownLayout(const Image& image) const {
    uint64_t format = 0;
    kernel_.IsConst(image.format, &format);
    return static_cast<TexelLayout>(format >> hal::kTexelLayoutShift & 0xff);
}

// The factors of normalised components.
Tuple Images::TexelScales(const Image& image) {
    ImageCode code(builder_);
    if (image.known_format) {
        uint64_t format = 0;
        kernel_.IsConst(image.format, &format);
        return code.KnownScales(
            {.layout = KnownLayout(image),
             .texel_class = static_cast<TexelClass>(format >> hal::kTexelClassShift & 0xff)});
    }
    Tuple scales;
    for (uint32_t i = 0; i < 4; ++i) {
        scales.push_back(code.AsFloat(code.Word(image.descriptor, kScaleAt + 4 * i)));
    }
    return scales;
}

Status Images::ImageWrite(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(const Image image, UseImage(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(const Tuple coordinates, TexelCoordinates(inst, image, inst[1]));
    FORNAX_ASSIGN_OR_RETURN(Tuple texel, values_.UseTuple(inst, inst[2]));
    FORNAX_ASSIGN_OR_RETURN(const ImageOperands operands, ReadImageOperands(inst, 3));
    FORNAX_ASSIGN_OR_RETURN(const ValueId sample, SampleNumber(inst, image, operands.sample));
    if (!image.storage || !kernel_.bindings[image.pointer.binding].writable) {
        return Invalid(inst, "writes to an image that is not writable");
    }
    if (texel.empty()) {
        return Invalid(inst, "writes a texel without components");
    }
    for (ValueId component : texel) {
        if (kernel_.type(component) != image.component) {
            return Invalid(inst, "writes components of another type than its image's");
        }
    }
    // Formats may lack some of four, and long vectors have more, which nobody stores.
    texel.resize(4, texel.back());
    ImageCode code(builder_);
    ValueId inside;
    const ImageCode::Texel texel_place = TexelPlace(image, coordinates, {}, sample, inside);
    const ValueId buffer = access_.BufferOf(image.pointer);
    if (image.component == ir::Type::kI64) {
        code.If(inside, {}, [&] {
            const ValueId operands[] = {buffer, code.TexelOffset(texel_place, TexelLayout::k32x2),
                                        texel[0]};
            builder_.Append(ir::Op::kStoreBuffer, operands, {}, ir::ByteSize(ir::Type::kI64),
                            image.pointer.is_volatile ? ir::kVolatile : 0);
            return ImageCode::Ids();
        });
        return OkStatus();
    }
    if (!image.known_format) {
        // The only order of components that storage images have beside red first is blue first.
        const ValueId first =
            code.Bits(code.Word(image.descriptor, kSwizzleAt), 0, hal::kSwizzleBits);
        const ValueId blue_first =
            code.Test(ir::Op::kIEq, first, Int(static_cast<uint32_t>(hal::Swizzle::kBlue)));
        const ValueId red = texel[0];
        texel[0] = code.Select(blue_first, texel[2], red);
        texel[2] = code.Select(blue_first, red, texel[2]);
    }
    const Tuple raw = image.component == ir::Type::kI32
                          ? texel
                          : code.EncodeFloat(texel, image.format, TexelScales(image));
    code.If(inside, {}, [&] {
        code.StoreRaw(buffer, texel_place, code.Bits(image.format, hal::kTexelLayoutShift, 8), raw,
                      image.pointer.is_volatile ? ir::kVolatile : 0);
        return ImageCode::Ids();
    });
    return OkStatus();
}

// OpImageQuerySize, OpImageQuerySizeLod, OpImageQueryLevels, OpImageQuerySamples.
Status Images::ImageQuery(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(const Image image, UseImage(inst, inst[0]));
    ImageCode code(builder_);
    const auto word = [&](uint32_t at) { return code.Word(image.descriptor, at); };
    // The number of samples is where others have their levels.
    if (image.multisampled != (inst.op == Op::OpImageQuerySamples) &&
        inst.op != Op::OpImageQuerySize) {
        return Invalid(inst, "asks for what its image does not have");
    }
    if (inst.op == Op::OpImageQueryLevels || inst.op == Op::OpImageQuerySamples) {
        return values_.Define(inst, {word(kLevelsAt)});
    }
    ValueId level;
    if (inst.op == Op::OpImageQuerySizeLod) {
        FORNAX_ASSIGN_OR_RETURN(level, values_.UseScalar(inst, inst[1]));
        if (!ir::IsInteger(kernel_.type(level))) {
            return Invalid(inst, "has a level that is no integer");
        }
        level = code.I(ir::Op::kUMin, ToI32(level, true), Int(31));  // as far as shifts go
    }
    auto extent = [&](uint32_t at) {
        const ValueId base = word(at);
        if (!level.valid()) {
            return base;
        }
        // A null descriptor has no size in any level.
        const ValueId at_least = code.I(ir::Op::kUMin, base, Int(1));
        return code.I(ir::Op::kUMax, code.I(ir::Op::kLShr, base, level), at_least);
    };
    const bool cube = image.dim == spv::Dim::Cube;
    Tuple size = {extent(kWidthAt)};
    if (image.Dimensions() >= 2) {
        size.push_back(extent(kHeightAt));
    }
    if (image.dim == spv::Dim::Dim3D) {
        size.push_back(extent(kDepthAt));
    }
    if (image.arrayed) {
        const ValueId layers = word(kDepthAt);
        size.push_back(cube ? code.I(ir::Op::kUDiv, layers, Int(6)) : layers);
    }
    return values_.Define(inst, std::move(size));
}

}  // namespace fornax::kernel::spirv
