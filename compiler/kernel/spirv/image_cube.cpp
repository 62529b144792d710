// Which face of a cube a direction meets.
#include "compiler/kernel/spirv/image_sampling.h"

namespace fornax::kernel::spirv {

using ir::Op;
using Id = ImageCode::Id;
using Ids = ImageCode::Ids;

namespace {

constexpr ir::Type kBool = ir::Type::kBool;

}  // namespace

// "Cube Map Face Selection": the face that the direction meets, the position on it from 0 to 1, and
// how that changes along the gradients of the direction.
void ImageSampling::SelectFace(const Ids& direction, const Ids* gradient_x, const Ids* gradient_y) {
    auto& c = code_;
    const Id zero = c.Float(0);
    Ids magnitude;
    for (Id component : direction) {
        magnitude.push_back(c.F(Op::kFAbs, component));
    }
    // z goes before y before x where magnitudes are equal.
    const Id is_z = c.Emit(Op::kAnd, kBool,
                           {c.Test(Op::kFOLe, magnitude[0], magnitude[2]),
                            c.Test(Op::kFOLe, magnitude[1], magnitude[2])});
    const Id y_over_x = c.Test(Op::kFOLe, magnitude[0], magnitude[1]);
    auto by_axis = [&](Id x, Id y, Id z) { return c.Select(is_z, z, c.Select(y_over_x, y, x)); };
    const Id major = by_axis(direction[0], direction[1], direction[2]);
    const Id negative = c.Test(Op::kFOLt, major, zero);
    face_ = c.I(Op::kIAdd, by_axis(c.Int(0), c.Int(2), c.Int(4)),
                c.Select(negative, c.Int(1), c.Int(0)));
    auto minus = [&](Id value) { return c.F(Op::kFNeg, value); };
    // The table of the specification: s, t and the major axis, pointing outwards.
    auto on_face = [&](const Ids& v) {
        const Id s = by_axis(c.Select(negative, v[2], minus(v[2])), v[0],
                             c.Select(negative, minus(v[0]), v[0]));
        const Id t = by_axis(minus(v[1]), c.Select(negative, minus(v[2]), v[2]), minus(v[1]));
        const Id along = by_axis(v[0], v[1], v[2]);
        return Ids{s, t, c.Select(negative, minus(along), along)};
    };
    const Ids at = on_face(direction);
    const Id half = c.Float(0.5f);
    const Id scale = c.F(Op::kFDiv, half, at[2]);
    position_ = {c.F(Op::kFAdd, c.F(Op::kFMul, at[0], scale), half),
                 c.F(Op::kFAdd, c.F(Op::kFMul, at[1], scale), half)};
    const Ids* gradients[] = {gradient_x, gradient_y};
    for (size_t i = 0; i < 2; ++i) {
        if (!gradients[i]) {
            continue;
        }
        // The derivative of the quotient.
        const Ids change = on_face(*gradients[i]);
        for (size_t k = 0; k < 2; ++k) {
            const Id quotient = c.F(Op::kFDiv, at[k], at[2]);
            const Id moved = c.F(Op::kFSub, change[k], c.F(Op::kFMul, quotient, change[2]));
            gradients_[i].push_back(c.F(Op::kFMul, moved, scale));
        }
    }
}

}  // namespace fornax::kernel::spirv
