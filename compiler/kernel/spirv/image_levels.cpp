// Levels of detail of samples: image_sampling.cpp's part about which levels they are of.
#include "compiler/kernel/spirv/image_sampling.h"

namespace fornax::kernel::spirv {

using ir::Op;
using Id = ImageCode::Id;
using Ids = ImageCode::Ids;

namespace {

constexpr ir::Type kF32 = ir::Type::kF32;

constexpr uint32_t kLodBiasAt = offsetof(hal::SamplerDescriptor, lod_bias);
constexpr uint32_t kMinLodAt = offsetof(hal::SamplerDescriptor, min_lod);
constexpr uint32_t kMaxLodAt = offsetof(hal::SamplerDescriptor, max_lod);

}  // namespace

// "LOD Operation", up to the clamp.
Id ImageSampling::LevelOfDetail(const Inputs& inputs) {
    auto& c = code_;
    Id lod = inputs.lod.valid() ? inputs.lod : c.Float(0);
    if (!inputs.grad_x.empty()) {
        constexpr uint32_t kExtents[] = {offsetof(hal::ImageDescriptor, width),
                                         offsetof(hal::ImageDescriptor, height),
                                         offsetof(hal::ImageDescriptor, depth)};
        Id longest;
        for (const Ids& gradient : gradients_) {
            Id squares = c.Float(0);
            for (size_t i = 0; i < axes_; ++i) {
                const Id extent = c.Emit(Op::kUToF, kF32, {c.Word(place_.image, kExtents[i])});
                const Id texels = c.F(Op::kFMul, gradient[i], extent);
                squares = c.Emit(Op::kFma, kF32, {texels, texels, squares});
            }
            longest = longest.valid() ? c.F(Op::kNMax, longest, squares) : squares;
        }
        // The logarithm of the square's root.
        lod = c.F(Op::kFMul, c.F(Op::kLog2, longest), c.Float(0.5f));
    }
    Id bias = c.AsFloat(c.Word(place_.sampler, kLodBiasAt));
    if (inputs.bias.valid()) {
        const Id sum = c.F(Op::kFAdd, bias, inputs.bias);
        bias = c.F(Op::kNMin, c.F(Op::kNMax, sum, c.Float(-hal::kMaxSamplerLodBias)),
                   c.Float(hal::kMaxSamplerLodBias));
    }
    return c.F(Op::kFAdd, lod, bias);
}

Id ImageSampling::Clamped(Id lod, const Inputs& inputs) {
    auto& c = code_;
    Id least = c.AsFloat(c.Word(place_.sampler, kMinLodAt));
    if (inputs.min_lod.valid()) {
        least = c.F(Op::kNMax, least, inputs.min_lod);
    }
    const Id most = c.AsFloat(c.Word(place_.sampler, kMaxLodAt));
    return c.F(Op::kNMin, c.F(Op::kNMax, lod, least), most);
}

ImageSampling::LevelPosition ImageSampling::FindLevel(Id lod) {
    auto& c = code_;
    LevelPosition found;
    found.levels = c.Word(place_.image, offsetof(hal::ImageDescriptor, levels));
    found.last =
        c.Emit(Op::kUToF, kF32, {c.I(Op::kISub, c.I(Op::kUMax, found.levels, c.Int(1)), c.Int(1))});
    uint64_t last = 0;
    const bool one_level = c.IsConst(found.last, &last) && last == 0;
    found.between =
        one_level ? found.last : c.F(Op::kNMin, c.F(Op::kNMax, lod, c.Float(0)), found.last);
    found.nearest =
        c.F(Op::kFSub, c.F(Op::kCeil, c.F(Op::kFAdd, found.between, c.Float(0.5f))), c.Float(1));
    return found;
}

// "LOD Query".
Ids ImageSampling::QueryLod(const Inputs& inputs) {
    auto& c = code_;
    FindPosition(inputs);
    const Id lod = LevelOfDetail(inputs);
    const LevelPosition found = FindLevel(Clamped(lod, inputs));
    const Id level = c.Select(Flag(hal::kSamplerMipLinear), found.between, found.nearest);
    // A null descriptor has no levels.
    const Id exists = c.Test(Op::kINe, found.levels, c.Int(0));
    return {c.Select(exists, level, c.Float(0)), c.Select(exists, lod, c.Float(0))};
}

}  // namespace fornax::kernel::spirv
