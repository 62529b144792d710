#version 450
// The float functions of GLSL 4.5 on triples of numbers: one record for each triple.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer In { float numbers[]; };
layout(set = 0, binding = 1) writeonly buffer Out { float results[]; };
const uint kResults = 48u;
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i * 3u >= numbers.length())
        return;
    float x = numbers[i * 3u];
    float y = numbers[i * 3u + 1u];
    float z = numbers[i * 3u + 2u];
    int exponent;
    float whole;
    float r[kResults] = float[](
        sin(x), cos(x), tan(x), asin(x), acos(x), atan(x), atan(x, y), sinh(x),
        cosh(x), tanh(x), asinh(x), acosh(x), atanh(x), pow(x, y), exp(x), log(x),
        exp2(x), log2(x), sqrt(x), inversesqrt(x), floor(x), ceil(x), fract(x), round(x),
        roundEven(x), trunc(x), mod(x, y), mix(x, y, z), step(x, y), smoothstep(x, y, z),
        fma(x, y, z), abs(x), sign(x), min(x, y), max(x, y), clamp(x, -2.0, 3.0),
        radians(x), degrees(x), x / y, mix(x, y, z > 0.0), isnan(x) ? 1.0 : 0.0,
        isinf(x) ? 1.0 : 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
    r[42] = frexp(x, exponent);
    r[43] = float(exponent);
    r[44] = modf(x, whole);
    r[45] = whole;
    r[46] = ldexp(y, int(clamp(z, -100.0, 100.0)));
    r[47] = uintBitsToFloat(floatBitsToUint(x) ^ 0x80000000u);
    for (uint j = 0u; j < kResults; ++j)
        results[i * kResults + j] = r[j];
}
