// The table of image instructions, and those that sample: their operands, checked, for
// image_sampling.cpp.
#include "compiler/kernel/spirv/sampled_images.h"

namespace fornax::kernel::spirv {

using ir::ValueId;
using spv::Op;
using Kind = BindingLayout::Kind;

Status SampledImages::SampledImage(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Pointer image, values_.UsePointer(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(const Pointer sampler, values_.UsePointer(inst, inst[1]));
    if (image.space != Pointer::Space::kImage || sampler.space != Pointer::Space::kImage) {
        return Invalid(inst, "is made of another thing than an image and a sampler");
    }
    image.type = inst.type;
    image.nonuniform |= module_.FindDecoration(inst.result, spv::Decoration::NonUniform) != nullptr;
    image.has_sampler = true;
    image.sampler_binding = sampler.binding;
    image.sampler_element = sampler.element;
    image.sampler_nonuniform = sampler.nonuniform;
    return values_.DefinePointer(inst, std::move(image));
}

Status SampledImages::ImageOf(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(Pointer image, values_.UsePointer(inst, inst[0]));
    if (image.space != Pointer::Space::kImage) {
        return Invalid(inst, "takes the image of what has none");
    }
    image.type = inst.type;
    return values_.DefinePointer(inst, std::move(image));
}

// The image and the sampler of an OpTypeSampledImage, as sampling wants them.
Result<SampledPlace> SampledImages::UseSampledImage(const Inst& inst, const Image& image) {
    if (!image.pointer.has_sampler || image.storage || image.multisampled ||
        image.dim == spv::Dim::Buffer) {
        return Invalid(inst, "samples what is no sampled image");
    }
    if (image.component == ir::Type::kI64) {
        return Unsupported(inst, "samples an image of 64-bit integers, which can only be fetched");
    }
    const BindingLayout& layout = kernel_.bindings[image.pointer.sampler_binding].layout;
    const Kind kind = layout.kind;
    if (kind != Kind::kSampler && kind != Kind::kCombinedImageSampler) {
        return Invalid(inst, "samples with what is no sampler");
    }
    const bool own = image.pointer.sampler_binding == image.pointer.binding;
    const ValueId element = own && !image.pointer.sampler_element.valid()
                                ? image.pointer.element
                                : image.pointer.sampler_element;
    SampledPlace place{.image = image.descriptor,
                       .sampler = {.binding = image.pointer.sampler_binding},
                       .buffer = access_.BufferOf(image.pointer),
                       .format = image.format,
                       .scales = images_.TexelScales(image),
                       .dim = image.dim,
                       .arrayed = image.arrayed,
                       .integer = image.component == ir::Type::kI32};
    if (element.valid()) {
        place.sampler.start = Emit(ir::Op::kIMul, ir::Type::kI32, {element, Int(layout.Stride())});
    }
    if (kind == Kind::kCombinedImageSampler) {
        place.sampler.base = offsetof(hal::CombinedImageSamplerDescriptor, sampler);
    }
    return place;
}

// Float coordinates, with the layer last if the instruction has one.
Result<Tuple> SampledImages::SamplePosition(const Inst& inst, const Image& image, bool projected) {
    FORNAX_ASSIGN_OR_RETURN(Tuple position, values_.UseTuple(inst, inst[1]));
    const bool layered = image.arrayed && inst.op != Op::OpImageQueryLod;
    const size_t wanted = image.Dimensions() + (layered ? 1 : 0);
    if (position.size() < wanted + (projected ? 1 : 0)) {
        return Invalid(inst, "has fewer coordinates than its image's type wants");
    }
    for (ValueId coordinate : position) {
        if (kernel_.type(coordinate) != ir::Type::kF32) {
            return Unsupported(inst, "has coordinates that are no 32-bit floats");
        }
    }
    const ValueId divisor = position[wanted < position.size() ? wanted : 0];
    position.resize(wanted);
    for (ValueId& coordinate : position) {
        if (projected) {
            coordinate = Emit(ir::Op::kFDiv, ir::Type::kF32, {coordinate, divisor});
        }
    }
    return position;
}

// Checks operands of samples and gathers, and makes offsets i32.
Status SampledImages::SampleOffsets(const Inst& inst, ImageOperands& operands) {
    for (Tuple* offsets : {&operands.offset, &operands.offsets}) {
        for (ValueId& offset : *offsets) {
            if (!ir::IsInteger(kernel_.type(offset))) {
                return Invalid(inst, "has an offset that is no integer");
            }
            offset = ToI32(offset, true);
        }
    }
    for (const Tuple& floats :
         {operands.grad_x, operands.grad_y, operands.lod.valid() ? Tuple{operands.lod} : Tuple(),
          operands.bias.valid() ? Tuple{operands.bias} : Tuple(),
          operands.min_lod.valid() ? Tuple{operands.min_lod} : Tuple()}) {
        for (ValueId value : floats) {
            if (kernel_.type(value) != ir::Type::kF32) {
                return Unsupported(inst, "has image operands that are no 32-bit floats");
            }
        }
    }
    return OkStatus();
}

// "Derivative Image Operations": of the coordinates as they are after the projection.
Status SampledImages::ImplicitGradients(const Inst& inst,
                                        size_t axes,
                                        ImageSampling::Inputs& inputs) {
    FORNAX_RETURN_IF_ERROR(derivatives_.NeedsDerivatives(inst));
    for (size_t i = 0; i < axes; ++i) {
        inputs.grad_x.push_back(derivatives_.Difference(inputs.coordinates[i], false, false));
        inputs.grad_y.push_back(derivatives_.Difference(inputs.coordinates[i], true, false));
    }
    return OkStatus();
}

Status SampledImages::ImageQueryLod(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(const Image image, images_.UseImage(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(SampledPlace place, UseSampledImage(inst, image));
    place.arrayed = false;
    ImageSampling::Inputs inputs;
    FORNAX_ASSIGN_OR_RETURN(inputs.coordinates, SamplePosition(inst, image, false));
    FORNAX_RETURN_IF_ERROR(ImplicitGradients(inst, image.Dimensions(), inputs));
    ImageCode code(builder_);
    return values_.Define(inst, ImageSampling(code, place).QueryLod(inputs));
}

Status SampledImages::ImageSample(const Inst& inst) {
    const bool projected = inst.op == Op::OpImageSampleProjExplicitLod ||
                           inst.op == Op::OpImageSampleProjDrefExplicitLod ||
                           inst.op == Op::OpImageSampleProjImplicitLod ||
                           inst.op == Op::OpImageSampleProjDrefImplicitLod;
    const bool compares = inst.op == Op::OpImageSampleDrefExplicitLod ||
                          inst.op == Op::OpImageSampleProjDrefExplicitLod ||
                          inst.op == Op::OpImageSampleDrefImplicitLod ||
                          inst.op == Op::OpImageSampleProjDrefImplicitLod;
    const bool implicit = inst.op == Op::OpImageSampleImplicitLod ||
                          inst.op == Op::OpImageSampleDrefImplicitLod ||
                          inst.op == Op::OpImageSampleProjImplicitLod ||
                          inst.op == Op::OpImageSampleProjDrefImplicitLod;
    FORNAX_ASSIGN_OR_RETURN(const Image image, images_.UseImage(inst, inst[0]));
    FORNAX_ASSIGN_OR_RETURN(const SampledPlace place, UseSampledImage(inst, image));
    FORNAX_ASSIGN_OR_RETURN(Tuple position, SamplePosition(inst, image, projected));
    FORNAX_ASSIGN_OR_RETURN(ImageOperands operands,
                            images_.ReadImageOperands(inst, compares ? 3 : 2));
    FORNAX_RETURN_IF_ERROR(SampleOffsets(inst, operands));
    const size_t axes = image.Dimensions();
    if (operands.grad_x.size() != operands.grad_y.size() ||
        (!operands.grad_x.empty() && operands.grad_x.size() < axes) ||
        (implicit ? operands.lod.valid() || !operands.grad_x.empty() : operands.bias.valid())) {
        return Invalid(inst, "has image operands that do not fit its image");
    }
    ImageSampling::Inputs inputs{.coordinates = std::move(position),
                                 .reference = {},
                                 .lod = operands.lod,
                                 .bias = operands.bias,
                                 .grad_x = operands.grad_x,
                                 .grad_y = operands.grad_y,
                                 .min_lod = operands.min_lod,
                                 .offset = operands.offset,
                                 .offsets = {}};
    if (implicit) {
        FORNAX_RETURN_IF_ERROR(ImplicitGradients(inst, axes, inputs));
    }
    if (compares) {
        FORNAX_ASSIGN_OR_RETURN(inputs.reference, values_.UseScalar(inst, inst[2]));
        if (kernel_.type(inputs.reference) != ir::Type::kF32 || place.integer) {
            return Invalid(inst, "compares with what is no 32-bit float");
        }
        if (projected) {
            FORNAX_ASSIGN_OR_RETURN(const Tuple given, values_.UseTuple(inst, inst[1]));
            inputs.reference = Emit(ir::Op::kFDiv, ir::Type::kF32,
                                    {inputs.reference, given[inputs.coordinates.size()]});
        }
    }
    ImageCode code(builder_);
    Tuple values = ImageSampling(code, place).Sample(inputs);
    values =
        code.Swizzled(values, code.Word(image.descriptor, offsetof(hal::ImageDescriptor, swizzle)),
                      place.integer ? Int(1) : code.Float(1));
    if (compares) {
        return values_.Define(inst, {values[0]});
    }
    return images_.DefineTexel(inst, image, values);
}

Status SampledImages::ImageGather(const Inst& inst) {
    const bool compares = inst.op == Op::OpImageDrefGather;
    FORNAX_ASSIGN_OR_RETURN(const Image image, images_.UseImage(inst, inst[0]));
    if (image.dim != spv::Dim::Dim2D && image.dim != spv::Dim::Cube) {
        return Invalid(inst, "gathers from an image that is neither two-dimensional nor a cube");
    }
    FORNAX_ASSIGN_OR_RETURN(const SampledPlace place, UseSampledImage(inst, image));
    FORNAX_ASSIGN_OR_RETURN(Tuple position, SamplePosition(inst, image, false));
    FORNAX_ASSIGN_OR_RETURN(ImageOperands operands, images_.ReadImageOperands(inst, 3));
    FORNAX_RETURN_IF_ERROR(SampleOffsets(inst, operands));
    if (!operands.offsets.empty() && operands.offsets.size() != 8) {
        return Invalid(inst, "has other offsets than four pairs");
    }
    ImageSampling::Inputs inputs{.coordinates = std::move(position),
                                 .reference = {},
                                 .lod = {},
                                 .bias = {},
                                 .grad_x = {},
                                 .grad_y = {},
                                 .min_lod = {},
                                 .offset = operands.offset,
                                 .offsets = operands.offsets};
    uint64_t component = 0;
    if (compares) {
        FORNAX_ASSIGN_OR_RETURN(inputs.reference, values_.UseScalar(inst, inst[2]));
        if (kernel_.type(inputs.reference) != ir::Type::kF32 || place.integer) {
            return Invalid(inst, "compares with what is no 32-bit float");
        }
    } else {
        FORNAX_ASSIGN_OR_RETURN(component, constants_.Integer(inst, inst[2]));
        if (component > 3) {
            return Invalid(inst, "gathers component " + std::to_string(component));
        }
    }
    ImageCode code(builder_);
    return images_.DefineTexel(
        inst, image, ImageSampling(code, place).Gather(inputs, static_cast<uint32_t>(component)));
}

}  // namespace fornax::kernel::spirv
