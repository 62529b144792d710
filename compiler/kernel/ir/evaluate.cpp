// Evaluation of pure operations. Floats are computed in double and rounded once more: for + - * /
// and sqrt of f16 and f32 that equals rounding directly, because double has more than twice their
// digits.
#include "compiler/kernel/ir/evaluate.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>

#include "base/half.h"

namespace fornax::kernel::ir {

namespace {

uint64_t Mask(uint32_t width) {
    return width >= 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
}

double ToDouble(Type type, uint64_t bits) {
    switch (type) {
        case Type::kF16:
            return HalfToDouble(static_cast<uint16_t>(bits));
        case Type::kF32:
            return std::bit_cast<float>(static_cast<uint32_t>(bits));
        default:
            return std::bit_cast<double>(bits);
    }
}
uint64_t FromDouble(Type type, double value) {
    if (std::isnan(value)) {
        value = std::numeric_limits<double>::quiet_NaN();
    }
    switch (type) {
        case Type::kF16:
            return DoubleToHalf(value);
        case Type::kF32:
            return std::bit_cast<uint32_t>(static_cast<float>(value));
        default:
            return std::bit_cast<uint64_t>(value);
    }
}

// A NaN loses against a number. Of two zeros the second, as code has it.
double Minimum(double a, double b) {
    if (std::isnan(b)) {
        return a;
    }
    return a < b ? a : b;
}

uint64_t MultiplyHigh(uint64_t a, uint64_t b, uint32_t width, bool is_signed) {
    if (is_signed) {
        __int128 product = static_cast<__int128>(SignExtend(a, width)) * SignExtend(b, width);
        return static_cast<uint64_t>(product >> width);
    }
    return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b >> width);
}

uint64_t Divide(Op op, uint64_t a, uint64_t b, uint32_t width) {
    bool wants_quotient = op == Op::kUDiv || op == Op::kSDiv;
    if (b == 0) {
        return wants_quotient ? ~uint64_t{0} : a;
    }
    if (op == Op::kUDiv || op == Op::kURem) {
        return op == Op::kUDiv ? a / b : a % b;
    }
    int64_t x = SignExtend(a, width);
    int64_t y = SignExtend(b, width);
    if (y == -1) {
        return wants_quotient ? 0 - static_cast<uint64_t>(x) : 0;
    }
    if (op == Op::kSDiv) {
        return static_cast<uint64_t>(x / y);
    }
    int64_t remainder = x % y;
    if (op == Op::kSMod && remainder != 0 && (remainder < 0) != (y < 0)) {
        remainder += y;
    }
    return static_cast<uint64_t>(remainder);
}

// Offsets and counts beyond the width are clamped (SPIR-V: undefined).
uint64_t BitField(Op op, std::span<const uint64_t> in, uint32_t width) {
    bool insert = op == Op::kBitFieldInsert;
    uint64_t offset = std::min<uint64_t>(in[insert ? 2 : 1], width);
    uint64_t count = std::min<uint64_t>(in[insert ? 3 : 2], width - offset);
    if (count == 0) {
        return insert ? in[0] : 0;
    }
    uint64_t field = Mask(static_cast<uint32_t>(count));
    if (insert) {
        return (in[0] & ~(field << offset)) | (in[1] & field) << offset;
    }
    uint64_t value = in[0] >> offset & field;
    return op == Op::kBitFieldSExtract
               ? static_cast<uint64_t>(SignExtend(value, static_cast<uint32_t>(count)))
               : value;
}

uint64_t Reverse(uint64_t bits, uint32_t width) {
    uint64_t reversed = 0;
    for (uint32_t i = 0; i < width; ++i) {
        reversed |= (bits >> i & 1) << (width - 1 - i);
    }
    return reversed;
}

uint64_t HighestBit(uint64_t bits) {
    return bits == 0 ? ~uint64_t{0} : 63 - static_cast<uint64_t>(std::countl_zero(bits));
}

// Saturates; a NaN gives 0.
uint64_t FloatToInteger(double value, uint32_t width, bool is_signed) {
    if (std::isnan(value)) {
        return 0;
    }
    value = std::trunc(value);
    double limit = std::ldexp(1.0, static_cast<int>(is_signed ? width - 1 : width));
    if (value >= limit) {
        return is_signed ? Mask(width - 1) : Mask(width);
    }
    if (value < (is_signed ? -limit : 0.0)) {
        return is_signed ? uint64_t{1} << (width - 1) : 0;
    }
    return is_signed ? static_cast<uint64_t>(static_cast<int64_t>(value))
                     : static_cast<uint64_t>(value);
}

uint64_t IntegerToFloat(Type type, uint64_t bits, uint32_t width, bool is_signed) {
    int64_t value = SignExtend(bits, width);
    if (type == Type::kF32) {  // directly: 64 bits through double would round twice
        float rounded = is_signed ? static_cast<float>(value) : static_cast<float>(bits);
        return std::bit_cast<uint32_t>(rounded);
    }
    return FromDouble(type, is_signed ? static_cast<double>(value) : static_cast<double>(bits));
}

bool Compare(Op op, double a, double b) {
    bool unordered = std::isnan(a) || std::isnan(b);
    switch (op) {
        case Op::kFOEq:
            return a == b;
        case Op::kFONe:
            return !unordered && a != b;
        case Op::kFOLt:
            return a < b;
        case Op::kFOLe:
            return a <= b;
        case Op::kFUEq:
            return unordered || a == b;
        case Op::kFUNe:
            return a != b;
        case Op::kFULt:
            return unordered || a < b;
        default:
            return unordered || a <= b;
    }
}

// One-operand and two-operand float functions.
double EvaluateFloat(Op op, double a, double b) {
    switch (op) {
        case Op::kFAdd:
            return a + b;
        case Op::kFSub:
            return a - b;
        case Op::kFMul:
            return a * b;
        case Op::kFDiv:
            return a / b;
        case Op::kFRem:
            return std::fmod(a, b);
        case Op::kFMod: {
            double remainder = std::fmod(a, b);
            return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
        }
        case Op::kFSign:
            return a > 0 ? 1.0 : a < 0 ? -1.0 : a == 0 ? a : 0.0;
        case Op::kFloor:
            return std::floor(a);
        case Op::kCeil:
            return std::ceil(a);
        case Op::kRoundEven:
            return std::nearbyint(a);
        case Op::kFTruncate:
            return std::trunc(a);
        case Op::kFract:
            return a - std::floor(a);
        case Op::kFMin:
        case Op::kNMin:
            return Minimum(a, b);
        case Op::kFMax:
        case Op::kNMax:
            return -Minimum(-a, -b);
        case Op::kSqrt:
            return std::sqrt(a);
        case Op::kRSqrt:
            return 1.0 / std::sqrt(a);
        case Op::kExp:
            return std::exp(a);
        case Op::kExp2:
            return std::exp2(a);
        case Op::kLog:
            return std::log(a);
        case Op::kLog2:
            return std::log2(a);
        case Op::kPow:
            return std::pow(a, b);
        case Op::kSin:
            return std::sin(a);
        case Op::kCos:
            return std::cos(a);
        case Op::kTan:
            return std::tan(a);
        case Op::kASin:
            return std::asin(a);
        case Op::kACos:
            return std::acos(a);
        case Op::kATan:
            return std::atan(a);
        case Op::kATan2:
            return std::atan2(a, b);
        case Op::kSinh:
            return std::sinh(a);
        case Op::kCosh:
            return std::cosh(a);
        case Op::kTanh:
            return std::tanh(a);
        case Op::kASinh:
            return std::asinh(a);
        case Op::kACosh:
            return std::acosh(a);
        default:
            assert(op == Op::kATanh);
            return std::atanh(a);
    }
}

uint64_t EvaluateFma(Type type, std::span<const uint64_t> in) {
    if (type == Type::kF32) {
        float value = std::fma(std::bit_cast<float>(static_cast<uint32_t>(in[0])),
                               std::bit_cast<float>(static_cast<uint32_t>(in[1])),
                               std::bit_cast<float>(static_cast<uint32_t>(in[2])));
        return FromDouble(type, value);
    }
    return FromDouble(
        type, std::fma(ToDouble(type, in[0]), ToDouble(type, in[1]), ToDouble(type, in[2])));
}

uint64_t EvaluateInteger(Op op, std::span<const uint64_t> in, uint32_t width) {
    uint64_t a = in[0];
    uint64_t b = in.size() > 1 ? in[1] : 0;
    uint32_t amount = static_cast<uint32_t>(b & (width - 1));
    int64_t x = SignExtend(a, width);
    int64_t y = SignExtend(b, width);
    switch (op) {
        case Op::kIAdd:
            return a + b;
        case Op::kISub:
            return a - b;
        case Op::kIMul:
            return a * b;
        case Op::kUDiv:
        case Op::kSDiv:
        case Op::kURem:
        case Op::kSRem:
        case Op::kSMod:
            return Divide(op, a, b, width);
        case Op::kINeg:
            return 0 - a;
        case Op::kShl:
            return a << amount;
        case Op::kLShr:
            return a >> amount;
        case Op::kAShr:
            return static_cast<uint64_t>(x >> amount);
        case Op::kAnd:
            return a & b;
        case Op::kOr:
            return a | b;
        case Op::kXor:
            return a ^ b;
        case Op::kNot:
            return ~a;
        case Op::kBitFieldInsert:
        case Op::kBitFieldSExtract:
        case Op::kBitFieldUExtract:
            return BitField(op, in, width);
        case Op::kBitReverse:
            return Reverse(a, width);
        case Op::kBitCount:
            return static_cast<uint64_t>(std::popcount(a));
        case Op::kFindLsb:
            return a == 0 ? ~uint64_t{0} : static_cast<uint64_t>(std::countr_zero(a));
        case Op::kFindUMsb:
            return HighestBit(a);
        case Op::kFindSMsb:
            return HighestBit(static_cast<uint64_t>(x < 0 ? ~x : x));
        case Op::kUMin:
            return std::min(a, b);
        case Op::kUMax:
            return std::max(a, b);
        case Op::kSMin:
            return static_cast<uint64_t>(std::min(x, y));
        case Op::kSMax:
            return static_cast<uint64_t>(std::max(x, y));
        case Op::kSAbs:
            return x < 0 ? 0 - a : a;
        case Op::kSSign:
            return static_cast<uint64_t>((x > 0) - (x < 0));
        case Op::kIEq:
            return a == b;
        case Op::kINe:
            return a != b;
        case Op::kULt:
            return a < b;
        case Op::kULe:
            return a <= b;
        case Op::kSLt:
            return x < y;
        default:
            assert(op == Op::kSLe);
            return x <= y;
    }
}

uint64_t Dot4(Op op, std::span<const uint64_t> in) {
    uint64_t sum = in[2];
    for (uint32_t i = 0; i < 32; i += 8) {
        uint64_t a = in[0] >> i & 0xff;
        uint64_t b = in[1] >> i & 0xff;
        if (op != Op::kUDot4) {
            a = static_cast<uint64_t>(SignExtend(a, 8));
        }
        if (op == Op::kSDot4) {
            b = static_cast<uint64_t>(SignExtend(b, 8));
        }
        sum += a * b;
    }
    return sum & Mask(32);
}

uint64_t BFloatDot2(std::span<const uint64_t> in) {
    uint64_t sum = in[2];
    for (const uint32_t shift : {0U, 16U}) {
        const uint64_t operands[] = {in[0] << (16 - shift) & 0xffff0000U,
                                     in[1] << (16 - shift) & 0xffff0000U, sum};
        sum = EvaluateFma(Type::kF32, operands);
    }
    return sum;
}

// Operations with two results.
bool EvaluatePair(Op op, Type type, std::span<const uint64_t> in, std::span<uint64_t> out) {
    uint32_t width = BitWidth(type);
    switch (op) {
        case Op::kUAddCarry:
            out[0] = (in[0] + in[1]) & Mask(width);
            out[1] = out[0] < in[0];
            return true;
        case Op::kUSubBorrow:
            out[0] = (in[0] - in[1]) & Mask(width);
            out[1] = in[0] < in[1];
            return true;
        case Op::kUMulExtended:
        case Op::kSMulExtended:
            out[0] = (in[0] * in[1]) & Mask(width);
            out[1] = MultiplyHigh(in[0], in[1], width, op == Op::kSMulExtended) & Mask(width);
            return true;
        case Op::kLaneRange:
            out[0] = in[0];
            out[1] = 0;
            return true;
        case Op::kFrexp: {
            int exponent = 0;
            double value = ToDouble(type, in[0]);
            double significand = std::frexp(value, &exponent);
            out[0] = FromDouble(type, significand);
            out[1] = std::isfinite(value) ? static_cast<uint32_t>(exponent) : 0;
            return true;
        }
        case Op::kModf: {
            double whole = 0;
            double fraction = std::modf(ToDouble(type, in[0]), &whole);
            out[0] = FromDouble(type, fraction);
            out[1] = FromDouble(type, whole);
            return true;
        }
        default:
            return false;
    }
}

}  // namespace

bool Evaluate(const Kernel& kernel,
              const Instruction& inst,
              std::span<const uint64_t> in,
              std::span<uint64_t> out) {
    if (!HasProperty(inst.op, kPure) || in.empty()) {
        return false;
    }
    Type from = kernel.type(inst.operands[0]);
    Type to = kernel.type(inst.results[0]);
    uint32_t from_width = BitWidth(from);
    uint32_t to_width = BitWidth(to);
    switch (inst.op) {
        case Op::kBuffer:
        case Op::kBufferSize:
        case Op::kLoadDescriptor:
        case Op::kBufferAddress:
        case Op::kBufferFrom:
        case Op::kLoadPush:
        case Op::kLoadConstant:
            return false;
        case Op::kSelect:
            out[0] = in[0] ? in[1] : in[2];
            return true;
        case Op::kFOEq:
        case Op::kFONe:
        case Op::kFOLt:
        case Op::kFOLe:
        case Op::kFUEq:
        case Op::kFUNe:
        case Op::kFULt:
        case Op::kFULe:
            out[0] = Compare(inst.op, ToDouble(from, in[0]), ToDouble(from, in[1]));
            return true;
        case Op::kIsNan:
            out[0] = std::isnan(ToDouble(from, in[0]));
            return true;
        case Op::kIsInf:
            out[0] = std::isinf(ToDouble(from, in[0]));
            return true;
        case Op::kTrunc:
        case Op::kZExt:
        case Op::kBitcast:
            out[0] = in[0] & Mask(to_width);
            return true;
        case Op::kSExt:
            out[0] = static_cast<uint64_t>(SignExtend(in[0], from_width)) & Mask(to_width);
            return true;
        case Op::kFConvert:
            out[0] = FromDouble(to, ToDouble(from, in[0]));
            return true;
        case Op::kFToS:
        case Op::kFToU:
            out[0] = FloatToInteger(ToDouble(from, in[0]), to_width, inst.op == Op::kFToS) &
                     Mask(to_width);
            return true;
        case Op::kSToF:
        case Op::kUToF:
            out[0] = IntegerToFloat(to, in[0], from_width, inst.op == Op::kSToF);
            return true;
        case Op::kQuantizeF16: {
            uint64_t half = FromDouble(Type::kF16, ToDouble(from, in[0]));
            if ((half & 0x7c00) == 0) {  // too small for a normal f16: zero
                half &= 0x8000;
            }
            out[0] = FromDouble(to, ToDouble(Type::kF16, half));
            return true;
        }
        case Op::kFNeg:
            out[0] = in[0] ^ uint64_t { 1 } << (to_width - 1);
            return true;
        case Op::kFAbs:
            out[0] = in[0] & Mask(to_width - 1);
            return true;
        case Op::kFma:
            out[0] = EvaluateFma(to, in);
            return true;
        case Op::kSDot4:
        case Op::kUDot4:
        case Op::kSUDot4:
            out[0] = Dot4(inst.op, in);
            return true;
        case Op::kBFloatDot2:
            out[0] = BFloatDot2(in);
            return true;
        case Op::kLdexp: {
            auto exponent = static_cast<int32_t>(in[1]);
            // A double's own exponent range is below 2^12.
            exponent = std::clamp(exponent, -8192, 8192);
            out[0] = FromDouble(to, std::ldexp(ToDouble(to, in[0]), exponent));
            return true;
        }
        default:
            break;
    }
    if (inst.results.size() == 2) {
        return EvaluatePair(inst.op, from, in, out);
    }
    if (IsFloat(from)) {
        const double a = ToDouble(from, in[0]);
        const double b = in.size() > 1 ? ToDouble(from, in[1]) : 0;
        double result = EvaluateFloat(inst.op, a, b);
        // "Inherited from (exp(x) - exp(-x)) * 0.5" (Vulkan, Precision of GLSL.std.450
        // Instructions), so infinite where the exponential is.
        if ((inst.op == Op::kSinh || inst.op == Op::kCosh) &&
            std::isinf(ToDouble(to, FromDouble(to, std::exp(std::fabs(a)))))) {
            result = std::copysign(std::numeric_limits<double>::infinity(), result);
        }
        out[0] = FromDouble(to, result);
    } else {
        // A shift's amount may be of another type; its own width does not matter.
        out[0] = EvaluateInteger(inst.op, in, from_width) & Mask(to_width);
    }
    return true;
}

bool IsExact(const Kernel& kernel, const Instruction& inst) {
    if (!HasProperty(inst.op, kPure) || inst.operands.empty()) {
        return false;
    }
    switch (inst.op) {
        case Op::kBuffer:
        case Op::kBufferSize:
        case Op::kLoadDescriptor:
        case Op::kBufferAddress:
        case Op::kBufferFrom:
        case Op::kLoadPush:
        case Op::kLoadConstant:
        case Op::kFRem:
        case Op::kFMod:
        case Op::kRSqrt:
            return false;
        case Op::kFma:  // f16 through double would round twice
            return kernel.type(inst.operands[0]) != Type::kF16;
        default:
            return inst.op < Op::kExp || inst.op > Op::kATanh;
    }
}

}  // namespace fornax::kernel::ir
