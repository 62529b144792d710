// Gathers of sampled images: image_sampling.cpp's other half.
#include "compiler/kernel/spirv/image_sampling.h"

#include <algorithm>
#include <cmath>

namespace fornax::kernel::spirv {

using ir::Op;
using Id = ImageCode::Id;
using Ids = ImageCode::Ids;

// "Texel Gathering": the four texels of a linear filter in the base level.
Ids ImageSampling::Gather(const Inputs& inputs, uint32_t component) {
    auto& c = code_;
    FindPosition(inputs);
    const Level level = MakeLevel(c.Int(0));
    const Id linear = c.Test(Op::kIEq, c.Int(0), c.Int(0));
    const Id swizzle = c.Word(place_.image, offsetof(hal::ImageDescriptor, swizzle));
    Axis axes[2] = {MakeAxis(level, 0, linear, inputs.offset),
                    MakeAxis(level, 1, linear, inputs.offset)};
    constexpr uint32_t kOrder[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
    Ids results;
    for (size_t i = 0; i < 4; ++i) {
        Ids texel;
        for (size_t k = 0; k < 2; ++k) {
            // With an offset for each, all four are the texel below the position.
            const Id step =
                inputs.offsets.empty() ? c.Int(kOrder[i][k]) : inputs.offsets[2 * i + k];
            texel.push_back(
                Wrapped(c.I(Op::kIAdd, axes[k].first, step), level.extent[k], k, linear));
        }
        Id slice = slice_;
        if (cube_) {
            Id face = face_;
            CrossEdges(texel[0], texel[1], face, level.extent[0]);
            slice = slice.valid() ? c.I(Op::kIAdd, slice, face) : face;
        }
        if (slice.valid()) {
            texel.push_back(slice);
        }
        Ids values = Fetch(level, texel, inputs);
        values = c.Swizzled(values, swizzle, place_.integer ? c.Int(1) : c.Float(1));
        results.push_back(values[inputs.reference.valid() ? 0 : component]);
    }
    return results;
}

}  // namespace fornax::kernel::spirv
