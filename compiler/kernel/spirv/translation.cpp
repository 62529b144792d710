// Emission, conversions, locals and scopes: what all parts of the translator do.
#include "compiler/kernel/spirv/translation.h"

#include <algorithm>
#include <bit>

#include "base/half.h"

namespace fornax::kernel::spirv {

namespace {

// Scalars that all instructions together define and use, with inlined calls: instructions that only
// rearrange large composites make no IR, whose size would bound them.
constexpr uint64_t kMaxScalars = uint64_t{32} << 20;

}  // namespace

ir::ValueId TranslationPart::Float(ir::Type type, double value) {
    switch (type) {
        case ir::Type::kF64:
            return builder_.Const(type, std::bit_cast<uint64_t>(value));
        case ir::Type::kF16:
            return builder_.Const(type, FloatToHalf(static_cast<float>(value)));
        default:
            return builder_.Const(type, std::bit_cast<uint32_t>(static_cast<float>(value)));
    }
}

ir::ValueId TranslationPart::SelectComponent(std::span<const ir::ValueId> components,
                                             ir::ValueId index) {
    uint64_t known = 0;
    if (kernel_.IsConst(index, &known)) {
        return components[std::min<uint64_t>(known, components.size() - 1)];
    }
    ir::ValueId result = components[0];
    const ir::Type type = kernel_.type(index);
    for (size_t i = 1; i < components.size(); ++i) {
        ir::ValueId here = Emit(ir::Op::kIEq, ir::Type::kBool, {index, builder_.Const(type, i)});
        result = Emit(ir::Op::kSelect, kernel_.type(result), {here, components[i], result});
    }
    return result;
}

ir::ValueId TranslationPart::DotOf(std::span<const ir::ValueId> a,
                                   std::span<const ir::ValueId> b,
                                   uint8_t flags) {
    const ir::Type type = kernel_.type(a[0]);
    ir::ValueId sum = Emit(ir::Op::kFMul, type, {a[0], b[0]}, flags);
    for (size_t i = 1; i < a.size(); ++i) {
        ir::ValueId product = Emit(ir::Op::kFMul, type, {a[i], b[i]}, flags);
        sum = Emit(ir::Op::kFAdd, type, {sum, product}, flags);
    }
    return sum;
}

// The IR's flags for the result `id`.
uint8_t TranslationPart::FloatFlags(uint32_t id) const {
    constexpr auto kAllowContract = static_cast<uint32_t>(spv::FPFastMathModeMask::AllowContract);
    if (module_.FindDecoration(id, spv::Decoration::NoContraction)) {
        return ir::kNoContraction;
    }
    if (const Decoration* mode = module_.FindDecoration(id, spv::Decoration::FPFastMathMode)) {
        return mode->params[0] & kAllowContract ? 0 : ir::kNoContraction;
    }
    if (code_.fast_math_defaults.empty()) {
        return 0;
    }
    const Inst* inst = module_.Find(id);
    const Type* type = inst ? types_.Find(inst->type) : nullptr;
    const auto found = type ? code_.fast_math_defaults.find(types_.ScalarOf(*type))
                            : code_.fast_math_defaults.end();
    if (found == code_.fast_math_defaults.end()) {
        return 0;
    }
    return found->second & kAllowContract ? 0 : ir::kNoContraction;
}

// Whether the sign of a zero that the instruction `id` gives matters: "NSZ" is not among its flags.
bool TranslationPart::KeepsZeroSigns(uint32_t id, ir::Type scalar) const {
    constexpr auto kNoSigns = static_cast<uint32_t>(spv::FPFastMathModeMask::NSZ);
    if (const Decoration* mode = module_.FindDecoration(id, spv::Decoration::FPFastMathMode)) {
        return !(mode->params[0] & kNoSigns);
    }
    if (const auto found = code_.fast_math_defaults.find(scalar);
        found != code_.fast_math_defaults.end()) {
        return !(found->second & kNoSigns);
    }
    return modes_.KeepsZeroSigns(scalar);
}

// SPV_KHR_bfloat16: the upper half of a binary32.
ir::ValueId TranslationPart::FromBFloat16(ir::ValueId bits) {
    const ir::ValueId wide = Emit(ir::Op::kZExt, ir::Type::kI32, {bits});
    const ir::ValueId shifted = Emit(ir::Op::kShl, ir::Type::kI32, {wide, Int(16)});
    return Emit(ir::Op::kBitcast, ir::Type::kF32, {shifted});
}

// Rounds to nearest even; a NaN stays one, also if only its lower half told.
ir::ValueId TranslationPart::ToBFloat16(ir::ValueId value) {
    using ir::Op;
    using ir::Type;
    const ir::ValueId bits = Emit(Op::kBitcast, Type::kI32, {value});
    const ir::ValueId upper = Emit(Op::kLShr, Type::kI32, {bits, Int(16)});
    const ir::ValueId odd = Emit(Op::kAnd, Type::kI32, {upper, Int(1)});
    const ir::ValueId half = Emit(Op::kIAdd, Type::kI32, {odd, Int(0x7fff)});
    const ir::ValueId sum = Emit(Op::kIAdd, Type::kI32, {bits, half});
    const ir::ValueId rounded = Emit(Op::kLShr, Type::kI32, {sum, Int(16)});
    const ir::ValueId quiet = Emit(Op::kOr, Type::kI32, {upper, Int(0x40)});
    const ir::ValueId is_nan = Emit(Op::kIsNan, Type::kBool, {value});
    const ir::ValueId chosen = Emit(Op::kSelect, Type::kI32, {is_nan, quiet, rounded});
    return Emit(Op::kTrunc, Type::kI16, {chosen});
}

Status TranslationPart::CheckComposite(const Inst& inst, const Type& type) {
    if (type.scalars == 0 && !type.empty) {
        return Invalid(inst, "has a type that has no value");
    }
    if (type.scalars > kReaderLimits.composite_scalars) {
        return Unsupported(inst, "has a value of " + std::to_string(type.scalars) +
                                     " scalars, and the limit is " +
                                     std::to_string(kReaderLimits.composite_scalars));
    }
    return OkStatus();
}

ir::ValueId TranslationPart::ToI32(ir::ValueId value, bool is_signed) {
    const uint32_t bits = ir::BitWidth(kernel_.type(value));
    if (bits == 32) {
        return value;
    }
    const ir::Op op = bits > 32 ? ir::Op::kTrunc : is_signed ? ir::Op::kSExt : ir::Op::kZExt;
    return Emit(op, ir::Type::kI32, {value});
}

ir::ValueId TranslationPart::BoolNot(ir::ValueId value) {
    return Emit(ir::Op::kNot, ir::Type::kBool, {value});
}

ir::ValueId TranslationPart::EmitSpan(ir::Op op,
                                      ir::Type type,
                                      std::span<const ir::ValueId> operands,
                                      uint8_t flags,
                                      uint64_t imm) {
    if (code_.in_modes && modes_.RoundsTowardsZero(type)) {
        const ir::ValueId rounded = modes_.Rounded(op, type, operands);
        if (rounded.valid()) {
            return rounded;
        }
    }
    const ir::InstId inst = builder_.Append(op, operands, {&type, 1}, imm, flags);
    return kernel_.inst(inst).results[0];
}

ir::BlockId TranslationPart::NewChild(ir::InstId parent) {
    ir::BlockId block = kernel_.NewBlock(parent);
    code_.outer.resize(kernel_.num_blocks());
    code_.outer[block.value()] = builder_.block();
    return block;
}

bool TranslationPart::InScope(ir::BlockId block) const {
    for (ir::BlockId at = builder_.block(); at.valid(); at = code_.outer[at.value()]) {
        if (at == block) {
            return true;
        }
    }
    return false;
}

uint32_t TranslationPart::NewLocal(ir::Type type, uint32_t count) {
    kernel_.locals.push_back({type, count});
    return static_cast<uint32_t>(kernel_.locals.size() - 1);
}

void TranslationPart::StoreLocal(uint32_t local, ir::ValueId value) {
    ir::ValueId operands[] = {Int(0), value};
    builder_.Append(ir::Op::kStoreLocal, operands, {}, local);
}

ir::ValueId TranslationPart::LoadLocal(uint32_t local) {
    return Emit(ir::Op::kLoadLocal, kernel_.locals[local].type, {Int(0)}, 0, local);
}

Tuple TranslationPart::Materialize(const Constant& constant) {
    std::vector<ir::Type> scalar_types;
    types_.Flatten(types_.Get(constant.type), scalar_types);
    Tuple tuple;
    tuple.reserve(constant.bits.size());
    for (size_t i = 0; i < constant.bits.size(); ++i) {
        tuple.push_back(builder_.Const(scalar_types[i], constant.bits[i]));
    }
    return tuple;
}

Status TranslationPart::Spend(const Inst& inst, uint64_t scalars) {
    code_.spent_scalars += scalars + 1;
    if (code_.spent_scalars > kMaxScalars) {
        return Unsupported(inst, "takes the translation beyond the limit of " +
                                     std::to_string(kMaxScalars) + " scalars in all values");
    }
    return OkStatus();
}

Result<const Type*> TranslationPart::TypeOf(const Inst& user, uint32_t type_id) {
    const Type* type = types_.Find(type_id);
    if (!type) {
        return Invalid(user, "names id " + std::to_string(type_id) + " as a type");
    }
    return type;
}

}  // namespace fornax::kernel::spirv
