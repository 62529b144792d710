// Types, constants and pure operations (emit_values.h).
#include "compiler/graph/loop/emit_values.h"

#include <bit>

#include <spirv/unified1/GLSL.std.450.h>

namespace fornax::graph::loop {

using spv::Op;

Held HeldAs(ElementType type) {
    switch (type) {
        case ElementType::kBool:
            return Held::kBool;
        case ElementType::kI64:
        case ElementType::kU64:
            return Held::kI64;
        case ElementType::kF64:
            return Held::kF64;
        default:
            return IsFloat(type) ? Held::kF32 : Held::kI32;
    }
}

Id ModuleCode::Reject(const std::string& why) {
    if (!rejection) {
        rejection = why;
    }
    return builder.Uint(0);
}

Id ValueOps::TypeOf(Held held) {
    switch (held) {
        case Held::kBool:
            return b_.Bool();
        case Held::kI32:
            return b_.U32();
        case Held::kI64:
            if (!target_.int64) {
                Reject("the device has no 64-bit integers");
                return b_.U32();
            }
            return b_.Int(64);
        case Held::kF32:
            return b_.F32();
        case Held::kF64:
            break;
    }
    if (!target_.float64) {
        Reject("the device has no 64-bit floats");
        return b_.F32();
    }
    return b_.Float(64);
}

Id ValueOps::ConstantOf(ElementType type, const Scalar& value) {
    switch (HeldAs(type)) {
        case Held::kF32:
            return F(static_cast<float>(value.number));
        case Held::kF64:
            return b_.Constant(TypeFor(type), std::bit_cast<uint64_t>(value.number));
        default:
            return b_.Constant(TypeFor(type), static_cast<uint64_t>(value.integer));
    }
}

Id ValueOps::Fma(Id a, Id b, Id c) {
    return b_.Ext(b_.TypeOf(a), GLSLstd450Fma, {a, b, c});
}

Id ValueOps::CopySign(Id magnitude, Id sign) {
    const bool is_long = b_.BitsOf(b_.TypeOf(magnitude)) == 64;
    const Id type = b_.Int(is_long ? 64 : 32);
    const uint64_t bit = is_long ? uint64_t{1} << 63 : uint64_t{1} << 31;
    const Id bits = Binary(Op::OpBitwiseAnd, BitsAs(type, magnitude), b_.Constant(type, ~bit));
    const Id sign_bit = Binary(Op::OpBitwiseAnd, BitsAs(type, sign), b_.Constant(type, bit));
    return BitsAs(b_.TypeOf(magnitude), Binary(Op::OpBitwiseOr, bits, sign_bit));
}

Id ValueOps::Wrap(ElementType type, Id value) {
    const uint32_t bits = BitsOf(type);
    if (bits >= 32 || type == ElementType::kBool) {
        return value;
    }
    if (!IsSigned(type)) {
        return Binary(Op::OpBitwiseAnd, value, U((1U << bits) - 1));
    }
    const Id distance = U(32 - bits);
    return Binary(Op::OpShiftRightArithmetic, Binary(Op::OpShiftLeftLogical, value, distance),
                  distance);
}

Id ValueOps::Widen(Op op, Id narrow) {
    const Id wide = b_.Op(op, TypeOf(Held::kI64), {narrow});
    module_.narrow[wide] = narrow;
    return wide;
}

std::optional<Id> ValueOps::NarrowOf(Id wide) const {
    const auto found = module_.narrow.find(wide);
    return found == module_.narrow.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace fornax::graph::loop
