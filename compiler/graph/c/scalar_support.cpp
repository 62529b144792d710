// The text of the functions that kernels use.
#include "compiler/graph/c/support.h"

namespace fornax::graph::c {

std::string_view ScalarSupport() {
    return R"(// --- Arithmetic ---------------------------------------------------------------------------------

#define FX static inline __attribute__((unused))

FX uint32_t fx_bits_of_f32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
FX uint64_t fx_bits_of_f64(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
FX float fx_f32_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
FX double fx_f64_of_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// Integers divided by 0 give 0; the least number divided by -1 wraps.
FX int64_t fx_div_signed(int64_t a, int64_t b) {
    return b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}
FX int64_t fx_rem_signed(int64_t a, int64_t b) {
    return b == 0 || b == -1 ? 0 : a % b;
}
FX uint64_t fx_div_unsigned(uint64_t a, uint64_t b) {
    return b == 0 ? 0 : a / b;
}
FX uint64_t fx_rem_unsigned(uint64_t a, uint64_t b) {
    return b == 0 ? 0 : a % b;
}
FX int64_t fx_floor_div(int64_t a, int64_t b) {
    const int64_t remainder = fx_rem_signed(a, b);
    return fx_div_signed(a, b) - (remainder != 0 && (remainder < 0) != (b < 0));
}
FX int64_t fx_floor_mod(int64_t a, int64_t b) {
    const int64_t remainder = fx_rem_signed(a, b);
    return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}
FX int64_t fx_least_index(int64_t a, int64_t b) {
    return b < a ? b : a;
}
FX int64_t fx_greatest_index(int64_t a, int64_t b) {
    return a < b ? b : a;
}

// The same for indices that may leave 64 bits.
typedef __int128 fx_wide;
FX fx_wide fx_wide_floor_div(fx_wide a, fx_wide b) {
    const fx_wide quotient = a / b, remainder = a % b;
    return quotient - (remainder != 0 && (remainder < 0) != (b < 0));
}
FX fx_wide fx_wide_floor_mod(fx_wide a, fx_wide b) {
    const fx_wide remainder = a % b;
    return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}
FX fx_wide fx_wide_least(fx_wide a, fx_wide b) {
    return b < a ? b : a;
}
FX fx_wide fx_wide_greatest(fx_wide a, fx_wide b) {
    return a < b ? b : a;
}
FX int64_t fx_narrow(fx_wide value, int64_t otherwise) {
    return value < INT64_MIN || value > INT64_MAX ? otherwise : (int64_t)value;
}

FX uint64_t fx_power(int64_t base, int64_t exponent, int is_signed) {
    if (is_signed && exponent < 0) {
        return base == 1 || base == -1 ? (uint64_t)((exponent & 1) != 0 ? base : 1) : 0;
    }
    uint64_t square = (uint64_t)base, power = 1;
    for (uint64_t bits = (uint64_t)exponent; bits != 0; bits >>= 1) {
        power = (bits & 1) != 0 ? power * square : power;
        square *= square;
    }
    return power;
}
FX int fx_popcount(uint64_t bits) {
    int count = 0;
    for (; bits != 0; bits &= bits - 1) {
        ++count;
    }
    return count;
}
FX uint64_t fx_shift_left(uint64_t value, uint64_t distance, unsigned bits) {
    return distance >= bits ? 0 : value << distance;
}
FX uint64_t fx_shift_right_unsigned(uint64_t value, uint64_t distance, unsigned bits) {
    return distance >= bits ? 0 : value >> distance;
}
FX int64_t fx_shift_right_signed(int64_t value, uint64_t distance, unsigned bits) {
    return value >> (distance >= bits ? 63 : distance);
}

// NaN where one argument is NaN.
FX float fx_least_float(float a, float b) {
    return isnan(a) || a < b ? a : b;
}
FX float fx_greatest_float(float a, float b) {
    return isnan(a) || a > b ? a : b;
}
FX double fx_least_double(double a, double b) {
    return isnan(a) || a < b ? a : b;
}
FX double fx_greatest_double(double a, double b) {
    return isnan(a) || a > b ? a : b;
}
// Whether `a` stands before `b` where the greatest or least number is looked for. NaN comes first.
FX bool fx_precedes(double a, double b, bool greatest, bool last) {
    if (isnan(a) || isnan(b)) {
        return isnan(a) && (last || !isnan(b));
    }
    return a == b ? last : greatest ? a > b : a < b;
}
FX float fx_sigmoid_float(float x) {
    const float e = expf(-fabsf(x));
    return (x >= 0 ? 1 : e) / (1 + e);
}
FX double fx_sigmoid_double(double x) {
    const double e = exp(-fabs(x));
    return (x >= 0 ? 1 : e) / (1 + e);
}
// A quotient that was rounded up to a whole number is told by the exact remainder.
FX double fx_floor_quotient(double a, double b) {
    const double quotient = floor(a / b), remainder = fma(-quotient, b, a);
    return (remainder < 0 && b > 0) || (remainder > 0 && b < 0) ? quotient - 1 : quotient;
}
FX double fx_modulo(double a, double b) {
    const double remainder = fmod(a, b);
    if (remainder == 0) {
        return copysign(0.0, b);
    }
    return (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

// --- Conversions ---------------------------------------------------------------------------------

FX double fx_power_of_two(int exponent) {
    return fx_f64_of_bits((uint64_t)(exponent + 1023) << 52);
}
FX int fx_exponent_of(double value) {
    return (int)((fx_bits_of_f64(value) >> 52) & 0x7ff) - 1023;
}

// Numbers truncate and saturate; NaN gives 0.
FX int64_t fx_to_signed(double value, int bits) {
    const double bound = fx_power_of_two(bits - 1), truncated = trunc(value);
    const int64_t least = (int64_t)-bound;
    if (isnan(value)) {
        return 0;
    }
    return truncated >= bound ? ~least : truncated <= -bound ? least : (int64_t)truncated;
}
FX uint64_t fx_to_unsigned(double value, int bits) {
    const double truncated = trunc(value);
    if (!(truncated > 0)) {
        return 0;
    }
    return truncated >= fx_power_of_two(bits) ? ~UINT64_C(0) >> (64 - bits) : (uint64_t)truncated;
}
// An integer of which what is lost sets the last bit, so that rounding again is rounding once.
FX double fx_odd(int64_t value, int is_unsigned) {
    const bool negative = !is_unsigned && value < 0;
    const uint64_t magnitude = negative ? 0 - (uint64_t)value : (uint64_t)value;
    int lost = 0;
    while (magnitude >> lost >> 53 != 0) {
        ++lost;
    }
    uint64_t kept = magnitude >> lost;
    kept |= (kept << lost) != magnitude;
    const double result = (double)kept * fx_power_of_two(lost);
    return negative ? -result : result;
}
FX double fx_finite(double value) {
    return isinf(value) ? copysign(0x1.fffffffffffffp1023, value) : value;
}
// `rounding`: 0 to the nearest, ties to even; 1 up; 2 down.
FX float fx_round_f32(double value, int saturate, int rounding) {
    float rounded = (float)value;
    if (rounding == 1 && rounded < value) {
        rounded = nextafterf(rounded, INFINITY);
    } else if (rounding == 2 && rounded > value) {
        rounded = nextafterf(rounded, -INFINITY);
    }
    return isinf(rounded) && saturate ? (float)copysign(0x1.fffffep127, value) : rounded;
}

// Floats of at most 16 bits. `specials`: 0 infinities and NaNs, 1 a NaN of all ones, 2 the NaN in
// the place of -0, 3 none, 4 powers of two.
typedef struct {
    int exponent_bits, mantissa_bits, bias, specials;
} fx_format;
static const fx_format fx_f4e2m1 __attribute__((unused)) = {2, 1, 1, 3};
static const fx_format fx_f8e4m3fn __attribute__((unused)) = {4, 3, 7, 1};
static const fx_format fx_f8e4m3fnuz __attribute__((unused)) = {4, 3, 8, 2};
static const fx_format fx_f8e5m2 __attribute__((unused)) = {5, 2, 15, 0};
static const fx_format fx_f8e5m2fnuz __attribute__((unused)) = {5, 2, 16, 2};
static const fx_format fx_f8e8m0 __attribute__((unused)) = {8, 0, 127, 4};
static const fx_format fx_f16 __attribute__((unused)) = {5, 10, 15, 0};
static const fx_format fx_bf16 __attribute__((unused)) = {8, 7, 127, 0};

FX double fx_greatest_of(fx_format f) {
    const int exponent = (1 << f.exponent_bits) - 1 - f.bias - (f.specials == 0);
    const int last = (1 << f.mantissa_bits) - 1 - (f.specials == 1);
    return ((1 << f.mantissa_bits) + last) * fx_power_of_two(exponent - f.mantissa_bits);
}
FX double fx_overflowed(double value, fx_format f, int saturate) {
    if (saturate || f.specials == 3) {
        return copysign(fx_greatest_of(f), value);
    }
    return copysign(f.specials == 0 ? (double)INFINITY : (double)NAN, value);
}
FX double fx_round_e8m0(double value, int saturate, int rounding) {
    const double least = fx_power_of_two(-127), greatest = fx_power_of_two(127);
    if (isnan(value) || value < 0) {
        return NAN;
    }
    if (value < fx_power_of_two(-128)) {
        return saturate || (rounding == 1 && value > 0) ? least : (double)NAN;
    }
    if (isinf(value)) {
        return saturate ? greatest : (double)NAN;
    }
    const int exponent = fx_exponent_of(value);
    const double significand = value * fx_power_of_two(-exponent);
    bool up = significand > 1.5 || (significand == 1.5 && ((exponent + 127) & 1) != 0);
    if (rounding != 0) {
        up = rounding == 1 && significand > 1;
    }
    const int rounded = exponent + up;
    if (rounded < -127 || rounded > 127) {
        const bool towards_bound = rounding == 2 && rounded > 0;
        return saturate || towards_bound ? (rounded < 0 ? least : greatest) : (double)NAN;
    }
    return fx_power_of_two(rounded);
}
FX double fx_round(double value, fx_format f, int saturate, int rounding) {
    if (f.specials == 4) {
        return fx_round_e8m0(value, saturate, rounding);
    }
    if (isnan(value)) {
        return f.specials == 3 ? -0.0 : value;
    }
    if (isinf(value)) {
        return fx_overflowed(value, f, saturate);
    }
    const int least = 1 - f.bias, own = fx_exponent_of(value);
    const int scale = (own < least ? least : own) - f.mantissa_bits;
    const double scaled = value * fx_power_of_two(-scale);
    const double whole = rounding == 1 ? ceil(scaled) : rounding == 2 ? floor(scaled) : nearbyint(scaled);
    const double rounded = whole * fx_power_of_two(scale);
    if (fabs(rounded) > fx_greatest_of(f)) {
        const bool towards_zero = rounding == (value > 0 ? 2 : 1);
        return fx_overflowed(value, f, towards_zero || saturate);
    }
    return rounded == 0 && f.specials == 2 ? 0.0 : rounded;
}
FX uint32_t fx_encode(double number, fx_format f) {
    const double value = fx_round(number, f, 0, 0);
    if (f.specials == 4) {
        return isnan(value) ? 0xff : (uint32_t)(fx_exponent_of(value) + 127);
    }
    const uint32_t sign_bit = 1u << (f.exponent_bits + f.mantissa_bits);
    const uint32_t sign = signbit(value) ? sign_bit : 0;
    const uint32_t top = ((1u << f.exponent_bits) - 1) << f.mantissa_bits;
    if (isnan(value)) {
        return f.specials == 0   ? sign | top | (1u << (f.mantissa_bits - 1))
               : f.specials == 1 ? sign | (sign_bit - 1)
                                 : sign_bit;
    }
    if (isinf(value)) {
        return sign | top;
    }
    const int least = 1 - f.bias, own = fx_exponent_of(value);
    const int exponent = own < least ? least : own;
    const uint32_t significand =
        (uint32_t)(fabs(value) * fx_power_of_two(f.mantissa_bits - exponent));
    const uint32_t hidden = 1u << f.mantissa_bits;
    if (significand < hidden) {
        return sign | significand;
    }
    return sign | ((uint32_t)(exponent + f.bias) << f.mantissa_bits) | (significand - hidden);
}
FX double fx_decode(uint32_t code, fx_format f) {
    if (f.specials == 4) {
        return code == 0xff ? (double)NAN : fx_power_of_two((int)code - 127);
    }
    const uint32_t sign_bit = 1u << (f.exponent_bits + f.mantissa_bits);
    const bool negative = (code & sign_bit) != 0;
    const uint32_t magnitude = code & (sign_bit - 1);
    const int exponent = (int)(magnitude >> f.mantissa_bits);
    const uint32_t mantissa = magnitude & ((1u << f.mantissa_bits) - 1);
    const bool top = exponent == (1 << f.exponent_bits) - 1;
    double value;
    if ((f.specials == 1 && magnitude == sign_bit - 1) ||
        (f.specials == 2 && negative && magnitude == 0) ||
        (f.specials == 0 && top && mantissa != 0)) {
        value = NAN;
    } else if (f.specials == 0 && top) {
        value = INFINITY;
    } else if (exponent == 0) {
        value = mantissa * fx_power_of_two(1 - f.bias - f.mantissa_bits);
    } else {
        value = (mantissa + (1u << f.mantissa_bits)) *
                fx_power_of_two(exponent - f.bias - f.mantissa_bits);
    }
    return negative ? -value : value;
}
FX float fx_from_bf16(uint16_t code) {
    return fx_f32_of_bits((uint32_t)code << 16);
}
)";
}

}  // namespace fornax::graph::c
