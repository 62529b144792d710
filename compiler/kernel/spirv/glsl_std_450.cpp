// The extended instruction set GLSL.std.450. Most map to one IR operation a component; geometry and
// packing are written out; matrices are in glsl_matrix.cpp.
#include "compiler/kernel/spirv/glsl_std_450.h"

#include <algorithm>
#include <span>

#include <spirv/unified1/GLSL.std.450.h>

namespace fornax::kernel::spirv {

namespace {

struct Simple {
    uint32_t number;
    ir::Op op;
};

constexpr Simple kSimple[] = {
    {GLSLstd450Round, ir::Op::kRoundEven},   {GLSLstd450RoundEven, ir::Op::kRoundEven},
    {GLSLstd450Trunc, ir::Op::kFTruncate},   {GLSLstd450FAbs, ir::Op::kFAbs},
    {GLSLstd450SAbs, ir::Op::kSAbs},         {GLSLstd450FSign, ir::Op::kFSign},
    {GLSLstd450SSign, ir::Op::kSSign},       {GLSLstd450Floor, ir::Op::kFloor},
    {GLSLstd450Ceil, ir::Op::kCeil},         {GLSLstd450Fract, ir::Op::kFract},
    {GLSLstd450Sin, ir::Op::kSin},           {GLSLstd450Cos, ir::Op::kCos},
    {GLSLstd450Tan, ir::Op::kTan},           {GLSLstd450Asin, ir::Op::kASin},
    {GLSLstd450Acos, ir::Op::kACos},         {GLSLstd450Atan, ir::Op::kATan},
    {GLSLstd450Sinh, ir::Op::kSinh},         {GLSLstd450Cosh, ir::Op::kCosh},
    {GLSLstd450Tanh, ir::Op::kTanh},         {GLSLstd450Asinh, ir::Op::kASinh},
    {GLSLstd450Acosh, ir::Op::kACosh},       {GLSLstd450Atanh, ir::Op::kATanh},
    {GLSLstd450Atan2, ir::Op::kATan2},       {GLSLstd450Pow, ir::Op::kPow},
    {GLSLstd450Exp, ir::Op::kExp},           {GLSLstd450Log, ir::Op::kLog},
    {GLSLstd450Exp2, ir::Op::kExp2},         {GLSLstd450Log2, ir::Op::kLog2},
    {GLSLstd450Sqrt, ir::Op::kSqrt},         {GLSLstd450InverseSqrt, ir::Op::kRSqrt},
    {GLSLstd450FMin, ir::Op::kFMin},         {GLSLstd450UMin, ir::Op::kUMin},
    {GLSLstd450SMin, ir::Op::kSMin},         {GLSLstd450FMax, ir::Op::kFMax},
    {GLSLstd450UMax, ir::Op::kUMax},         {GLSLstd450SMax, ir::Op::kSMax},
    {GLSLstd450NMin, ir::Op::kNMin},         {GLSLstd450NMax, ir::Op::kNMax},
    {GLSLstd450Fma, ir::Op::kFma},           {GLSLstd450Ldexp, ir::Op::kLdexp},
    {GLSLstd450FindILsb, ir::Op::kFindLsb},  {GLSLstd450FindSMsb, ir::Op::kFindSMsb},
    {GLSLstd450FindUMsb, ir::Op::kFindUMsb},
};

struct ClampOps {
    uint32_t number;
    ir::Op max;
    ir::Op min;
};

constexpr ClampOps kClamps[] = {
    {GLSLstd450FClamp, ir::Op::kFMax, ir::Op::kFMin},
    {GLSLstd450NClamp, ir::Op::kNMax, ir::Op::kNMin},
    {GLSLstd450UClamp, ir::Op::kUMax, ir::Op::kUMin},
    {GLSLstd450SClamp, ir::Op::kSMax, ir::Op::kSMin},
};

// Packed formats: `count` values of `bits` bits each, signed or not, scaled by `scale`.
struct Packing {
    uint32_t pack;
    uint32_t unpack;
    uint32_t count;
    bool is_signed;
    double scale;
};

constexpr Packing kPackings[] = {
    {GLSLstd450PackSnorm4x8, GLSLstd450UnpackSnorm4x8, 4, true, 127.0},
    {GLSLstd450PackUnorm4x8, GLSLstd450UnpackUnorm4x8, 4, false, 255.0},
    {GLSLstd450PackSnorm2x16, GLSLstd450UnpackSnorm2x16, 2, true, 32767.0},
    {GLSLstd450PackUnorm2x16, GLSLstd450UnpackUnorm2x16, 2, false, 65535.0},
};

bool IsExtreme(ir::Op op) {
    return op == ir::Op::kFMin || op == ir::Op::kFMax || op == ir::Op::kNMin || op == ir::Op::kNMax;
}

}  // namespace

Status GlslInstructions::ExtInst(const Inst& inst) {
    if (!module_.IsGlslImport(inst[0]) || inst.op != spv::Op::OpExtInst) {
        if (inst.op == spv::Op::OpExtInst && printf_.IsDebugPrintf(inst)) {
            return printf_.DebugPrintf(inst);
        }
        // Other NonSemantic sets may be removed (SPV_KHR_non_semantic_info).
        if (module_.IsNonSemantic(inst)) {
            return OkStatus();
        }
        const Inst* import = module_.Find(inst[0]);
        const std::string name = import ? LiteralString(import->operands) : "";
        return Unsupported(inst, "uses the instruction set \"" + name + "\"");
    }
    return GlslInst(inst, inst[1]);
}

ir::ValueId GlslInstructions::Clamp(ir::ValueId x,
                                    ir::ValueId low,
                                    ir::ValueId high,
                                    ir::Op max,
                                    ir::Op min,
                                    ir::Type type,
                                    bool zero_signs) {
    auto extreme = [&](ir::Op op, ir::ValueId a, ir::ValueId b) {
        const ir::ValueId result = Emit(op, type, {a, b});
        return zero_signs ? modes_.ExtremeOfZeros(op, a, b, result) : result;
    };
    return extreme(min, extreme(max, x, low), high);
}

// Ldexp: "exp must be a scalar or vector with integer component type", of any width. What an i32
// cannot hold gives zero and infinity as its extremes do.
ir::ValueId GlslInstructions::LdexpExponent(ir::ValueId exponent) {
    const ir::Type wide = ir::Type::kI64;
    if (kernel_.type(exponent) == wide) {
        exponent = Emit(ir::Op::kSMin, wide, {exponent, builder_.Const(wide, INT32_MAX)});
        const auto least = static_cast<uint64_t>(int64_t{INT32_MIN});
        exponent = Emit(ir::Op::kSMax, wide, {exponent, builder_.Const(wide, least)});
    }
    return ToI32(exponent, true);
}

Status GlslInstructions::GlslInst(const Inst& inst, uint32_t number) {
    auto fails = [&](const std::string& what) {
        return Error{ErrorCode::kUnsupported, GlslName(number) + " at word " +
                                                  std::to_string(inst.offset) + " " + what + "."};
    };
    const InstructionInfo* info = FindGlslInstruction(number);
    if (!info || inst.size() != size_t{2} + info->num_operands) {
        return fails("is not known with " + std::to_string(inst.size() - 2) + " operands");
    }
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, inst.type));
    const ir::Type scalar = types_.ScalarOf(*type);
    const uint8_t flags = FloatFlags(inst.result);
    const bool zero_signs = ir::IsFloat(scalar) && KeepsZeroSigns(inst.result, scalar);

    // Modf and Frexp write their second result through a pointer.
    const bool through_pointer = number == GLSLstd450Modf || number == GLSLstd450Frexp;
    std::vector<Tuple> args;
    for (size_t i = 2; i < inst.size(); ++i) {
        if (through_pointer && i == 3) {
            break;
        }
        FORNAX_ASSIGN_OR_RETURN(Tuple arg, values_.UseTuple(inst, inst[i]));
        args.push_back(std::move(arg));
    }
    const Tuple& a = args[0];
    auto each = [&](ir::Op op, bool swap = false) -> Result<Tuple> {
        Tuple result;
        for (size_t i = 0; i < type->scalars; ++i) {
            std::vector<ir::ValueId> operands;
            for (const Tuple& arg : args) {
                if (arg.size() != type->scalars) {
                    return fails("has operands that do not fit its result type");
                }
                operands.push_back(arg[i]);
            }
            if (swap) {
                std::swap(operands[0], operands[1]);
            }
            if (op == ir::Op::kLdexp) {
                operands[1] = LdexpExponent(operands[1]);
            }
            // On Fma the flag asks for one rounding, as OpFmaKHR does. GLSL.std.450: where Fma is
            // decorated with NoContraction it is a single operation, elsewhere it may be two.
            result.push_back(EmitSpan(op, scalar, operands, flags));
            if (zero_signs && IsExtreme(op)) {
                result.back() = modes_.ExtremeOfZeros(op, operands[0], operands[1], result.back());
            }
        }
        return result;
    };
    auto one_size = [&] {
        return std::ranges::all_of(args,
                                   [&](const Tuple& arg) { return arg.size() == type->scalars; });
    };

    if (auto simple = std::ranges::find(kSimple, number, &Simple::number);
        simple != std::end(kSimple)) {
        FORNAX_ASSIGN_OR_RETURN(Tuple result, each(simple->op));
        return values_.Define(inst, std::move(result));
    }
    if (auto clamp = std::ranges::find(kClamps, number, &ClampOps::number);
        clamp != std::end(kClamps)) {
        if (!one_size()) {
            return fails("has operands that do not fit its result type");
        }
        Tuple result;
        for (size_t i = 0; i < a.size(); ++i) {
            result.push_back(
                Clamp(a[i], args[1][i], args[2][i], clamp->max, clamp->min, scalar, zero_signs));
        }
        return values_.Define(inst, std::move(result));
    }
    switch (number) {
        case GLSLstd450Radians:
        case GLSLstd450Degrees: {
            const double pi = 3.14159265358979323846;
            const double factor = number == GLSLstd450Radians ? pi / 180 : 180 / pi;
            Tuple result;
            for (ir::ValueId x : a) {
                result.push_back(Emit(ir::Op::kFMul, scalar, {x, Float(scalar, factor)}, flags));
            }
            return values_.Define(inst, std::move(result));
        }
        case GLSLstd450Modf:
        case GLSLstd450Frexp:
        case GLSLstd450ModfStruct:
        case GLSLstd450FrexpStruct: {
            const bool modf = number == GLSLstd450Modf || number == GLSLstd450ModfStruct;
            const ir::Type value_type = kernel_.type(a[0]);
            Tuple first;
            Tuple second;
            for (ir::ValueId x : a) {
                const ir::Type results[] = {value_type, modf ? value_type : ir::Type::kI32};
                ir::InstId id =
                    builder_.Append(modf ? ir::Op::kModf : ir::Op::kFrexp, {&x, 1}, results);
                first.push_back(kernel_.inst(id).results[0]);
                second.push_back(kernel_.inst(id).results[1]);
            }
            if (through_pointer) {
                FORNAX_ASSIGN_OR_RETURN(Pointer pointer, values_.UsePointer(inst, inst[3]));
                FORNAX_RETURN_IF_ERROR(access_.StoreTo(inst, pointer, second));
            } else {
                first.insert(first.end(), second.begin(), second.end());
            }
            return values_.Define(inst, std::move(first));
        }
        case GLSLstd450FMix: {
            // x * (1 - a) + y * a.
            if (!one_size()) {
                return fails("has operands that do not fit its result type");
            }
            Tuple result;
            for (size_t i = 0; i < a.size(); ++i) {
                ir::ValueId rest =
                    Emit(ir::Op::kFSub, scalar, {Float(scalar, 1), args[2][i]}, flags);
                ir::ValueId x = Emit(ir::Op::kFMul, scalar, {a[i], rest}, flags);
                ir::ValueId y = Emit(ir::Op::kFMul, scalar, {args[1][i], args[2][i]}, flags);
                result.push_back(Emit(ir::Op::kFAdd, scalar, {x, y}, flags));
            }
            return values_.Define(inst, std::move(result));
        }
        case GLSLstd450Step: {
            // x < edge ? 0 : 1.
            if (!one_size()) {
                return fails("has operands that do not fit its result type");
            }
            Tuple result;
            for (size_t i = 0; i < a.size(); ++i) {
                ir::ValueId below = Emit(ir::Op::kFOLt, ir::Type::kBool, {args[1][i], a[i]});
                result.push_back(
                    Emit(ir::Op::kSelect, scalar, {below, Float(scalar, 0), Float(scalar, 1)}));
            }
            return values_.Define(inst, std::move(result));
        }
        case GLSLstd450SmoothStep: {
            // t = clamp((x - low) / (high - low), 0, 1); t * t * (3 - 2 * t).
            if (!one_size()) {
                return fails("has operands that do not fit its result type");
            }
            Tuple result;
            for (size_t i = 0; i < a.size(); ++i) {
                ir::ValueId x = Emit(ir::Op::kFSub, scalar, {args[2][i], a[i]}, flags);
                ir::ValueId width = Emit(ir::Op::kFSub, scalar, {args[1][i], a[i]}, flags);
                ir::ValueId t =
                    Clamp(Emit(ir::Op::kFDiv, scalar, {x, width}, flags), Float(scalar, 0),
                          Float(scalar, 1), ir::Op::kFMax, ir::Op::kFMin, scalar);
                ir::ValueId twice = Emit(ir::Op::kFMul, scalar, {Float(scalar, 2), t}, flags);
                ir::ValueId rest = Emit(ir::Op::kFSub, scalar, {Float(scalar, 3), twice}, flags);
                ir::ValueId square = Emit(ir::Op::kFMul, scalar, {t, t}, flags);
                result.push_back(Emit(ir::Op::kFMul, scalar, {square, rest}, flags));
            }
            return values_.Define(inst, std::move(result));
        }
        case GLSLstd450Length:
        case GLSLstd450Distance:
        case GLSLstd450Normalize:
        case GLSLstd450Cross:
        case GLSLstd450FaceForward:
        case GLSLstd450Reflect:
        case GLSLstd450Refract: {
            FORNAX_ASSIGN_OR_RETURN(Tuple result,
                                    GlslGeometry(inst, number, args, kernel_.type(a[0])));
            return values_.Define(inst, std::move(result));
        }
        case GLSLstd450Determinant:
        case GLSLstd450MatrixInverse:
            return GlslMatrix(inst, number, a);
        default:
            return GlslPack(inst, number, a);
    }
}

Result<Tuple> GlslInstructions::GlslGeometry(const Inst& inst,
                                             uint32_t number,
                                             const std::vector<Tuple>& args,
                                             ir::Type type) {
    const uint8_t flags = FloatFlags(inst.result);
    auto binary = [&](ir::Op op, ir::ValueId x, ir::ValueId y) {
        return Emit(op, type, {x, y}, flags);
    };
    const Tuple& a = args[0];
    const size_t vectors = number == GLSLstd450Refract ? 2 : args.size();
    for (size_t i = 0; i < vectors; ++i) {
        if (args[i].size() != a.size()) {
            return Invalid(inst, "has operands of different sizes");
        }
    }
    Tuple result;
    switch (number) {
        case GLSLstd450Length:
            return Tuple{Emit(ir::Op::kSqrt, type, {DotOf(a, a, flags)})};
        case GLSLstd450Distance: {
            for (size_t i = 0; i < a.size(); ++i) {
                result.push_back(binary(ir::Op::kFSub, a[i], args[1][i]));
            }
            return Tuple{Emit(ir::Op::kSqrt, type, {DotOf(result, result, flags)})};
        }
        case GLSLstd450Normalize: {
            ir::ValueId inverse = Emit(ir::Op::kRSqrt, type, {DotOf(a, a, flags)});
            for (ir::ValueId x : a) {
                result.push_back(binary(ir::Op::kFMul, x, inverse));
            }
            return result;
        }
        case GLSLstd450Cross:
            if (a.size() != 3) {
                return Invalid(inst, "is no vector of three components");
            }
            for (size_t i = 0; i < 3; ++i) {
                const size_t j = (i + 1) % 3;
                const size_t k = (i + 2) % 3;
                result.push_back(binary(ir::Op::kFSub, binary(ir::Op::kFMul, a[j], args[1][k]),
                                        binary(ir::Op::kFMul, args[1][j], a[k])));
            }
            return result;
        case GLSLstd450FaceForward: {
            // dot(Nref, I) < 0 ? N : -N.
            ir::ValueId dot = DotOf(args[2], args[1], flags);
            ir::ValueId keep = Emit(ir::Op::kFOLt, ir::Type::kBool, {dot, Float(type, 0)});
            for (ir::ValueId n : a) {
                result.push_back(
                    Emit(ir::Op::kSelect, type, {keep, n, Emit(ir::Op::kFNeg, type, {n})}));
            }
            return result;
        }
        case GLSLstd450Reflect: {
            // I - 2 * dot(N, I) * N.
            ir::ValueId twice = binary(ir::Op::kFMul, Float(type, 2), DotOf(args[1], a, flags));
            for (size_t i = 0; i < a.size(); ++i) {
                result.push_back(
                    binary(ir::Op::kFSub, a[i], binary(ir::Op::kFMul, twice, args[1][i])));
            }
            return result;
        }
        default: {
            // k = 1 - eta^2 * (1 - dot(N, I)^2); k < 0 ? 0 : eta * I - (eta * dot(N, I) + sqrt(k))
            // * N.
            if (args[2].size() != 1) {
                return Invalid(inst, "has an eta that is no scalar");
            }
            ir::ValueId eta = args[2][0];
            if (kernel_.type(eta) != type) {
                eta = Emit(ir::Op::kFConvert, type, {eta});
            }
            ir::ValueId one = Float(type, 1);
            ir::ValueId dot = DotOf(args[1], a, flags);
            ir::ValueId sine = binary(ir::Op::kFSub, one, binary(ir::Op::kFMul, dot, dot));
            ir::ValueId k = binary(ir::Op::kFSub, one,
                                   binary(ir::Op::kFMul, binary(ir::Op::kFMul, eta, eta), sine));
            ir::ValueId none = Emit(ir::Op::kFOLt, ir::Type::kBool, {k, Float(type, 0)});
            ir::ValueId along = binary(ir::Op::kFAdd, binary(ir::Op::kFMul, eta, dot),
                                       Emit(ir::Op::kSqrt, type, {k}));
            for (size_t i = 0; i < a.size(); ++i) {
                ir::ValueId bent = binary(ir::Op::kFSub, binary(ir::Op::kFMul, eta, a[i]),
                                          binary(ir::Op::kFMul, along, args[1][i]));
                result.push_back(Emit(ir::Op::kSelect, type, {none, Float(type, 0), bent}));
            }
            return result;
        }
    }
}

// GLSL.std.450, Pack* and Unpack*: the first component is in the lowest bits.
Status GlslInstructions::GlslPack(const Inst& inst, uint32_t number, const Tuple& a) {
    const ir::Type i32 = ir::Type::kI32;
    const ir::Type f32 = ir::Type::kF32;
    const ir::Type f16 = ir::Type::kF16;
    const ir::Type i16 = ir::Type::kI16;
    auto join = [&](const Tuple& parts, uint32_t bits) {
        ir::ValueId word = parts[0];
        for (uint32_t i = 1; i < parts.size(); ++i) {
            word =
                Emit(ir::Op::kOr, i32, {word, Emit(ir::Op::kShl, i32, {parts[i], Int(i * bits)})});
        }
        return word;
    };
    if (number == GLSLstd450PackHalf2x16 && a.size() == 2) {
        Tuple parts;
        for (ir::ValueId x : a) {
            const ir::ValueId half = modes_.Flush(Emit(ir::Op::kFConvert, f16, {x}));
            parts.push_back(Emit(ir::Op::kZExt, i32, {Emit(ir::Op::kBitcast, i16, {half})}));
        }
        return values_.Define(inst, {join(parts, 16)});
    }
    if (number == GLSLstd450UnpackHalf2x16 && a.size() == 1) {
        Tuple result;
        for (uint32_t i = 0; i < 2; ++i) {
            ir::ValueId bits =
                Emit(ir::Op::kTrunc, i16, {Emit(ir::Op::kLShr, i32, {a[0], Int(16 * i)})});
            const ir::ValueId half = modes_.Flush(Emit(ir::Op::kBitcast, f16, {bits}));
            result.push_back(Emit(ir::Op::kFConvert, f32, {half}));
        }
        return values_.Define(inst, std::move(result));
    }
    const ir::Type i64 = ir::Type::kI64;
    if (number == GLSLstd450PackDouble2x32 && a.size() == 2) {
        ir::ValueId low = Emit(ir::Op::kZExt, i64, {a[0]});
        ir::ValueId high = Emit(ir::Op::kZExt, i64, {a[1]});
        high = Emit(ir::Op::kShl, i64, {high, builder_.Const(i64, 32)});
        ir::ValueId bits = Emit(ir::Op::kOr, i64, {low, high});
        return values_.Define(inst, {Emit(ir::Op::kBitcast, ir::Type::kF64, {bits})});
    }
    if (number == GLSLstd450UnpackDouble2x32 && a.size() == 1) {
        ir::ValueId bits = Emit(ir::Op::kBitcast, i64, {a[0]});
        ir::ValueId high = Emit(ir::Op::kLShr, i64, {bits, builder_.Const(i64, 32)});
        return values_.Define(
            inst, {Emit(ir::Op::kTrunc, i32, {bits}), Emit(ir::Op::kTrunc, i32, {high})});
    }
    for (const Packing& packing : kPackings) {
        const uint32_t bits = 32 / packing.count;
        if (number == packing.pack && a.size() == packing.count) {
            Tuple parts;
            for (ir::ValueId x : a) {
                ir::ValueId low = Float(f32, packing.is_signed ? -1 : 0);
                ir::ValueId clamped =
                    Clamp(x, low, Float(f32, 1), ir::Op::kNMax, ir::Op::kNMin, f32);
                ir::ValueId scaled =
                    Emit(ir::Op::kRoundEven, f32,
                         {Emit(ir::Op::kFMul, f32, {clamped, Float(f32, packing.scale)})});
                ir::ValueId whole = Emit(ir::Op::kFToS, i32, {scaled});  // of 17 bits at most
                parts.push_back(Emit(ir::Op::kAnd, i32, {whole, Int((1u << bits) - 1)}));
            }
            return values_.Define(inst, {join(parts, bits)});
        }
        if (number == packing.unpack && a.size() == 1) {
            Tuple result;
            for (uint32_t i = 0; i < packing.count; ++i) {
                ir::ValueId part =
                    Emit(packing.is_signed ? ir::Op::kBitFieldSExtract : ir::Op::kBitFieldUExtract,
                         i32, {a[0], Int(i * bits), Int(bits)});
                ir::ValueId whole =
                    Emit(packing.is_signed ? ir::Op::kSToF : ir::Op::kUToF, f32, {part});
                ir::ValueId x = Emit(ir::Op::kFDiv, f32, {whole, Float(f32, packing.scale)});
                result.push_back(packing.is_signed ? Clamp(x, Float(f32, -1), Float(f32, 1),
                                                           ir::Op::kFMax, ir::Op::kFMin, f32)
                                                   : x);
            }
            return values_.Define(inst, std::move(result));
        }
    }
    return Error{ErrorCode::kUnsupported, GlslName(number) + " at word " +
                                              std::to_string(inst.offset) + " is not supported."};
}

}  // namespace fornax::kernel::spirv
