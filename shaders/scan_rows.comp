// Running combinations of rows of ELEMENT: result i combines values 0 to i, or 0 to i - 1 if it is
// exclusive, counted from the row's end if it is reverse.
//
// A workgroup goes along a row by tiles. In each, an invocation combines a run of values by itself;
// what stands before its run are the totals of earlier runs and tiles.
#version 450
#if defined(OF_I32)
#define ELEMENT int
#define LEAST ELEMENT(0x80000000)
#define GREATEST ELEMENT(0x7fffffff)
#elif defined(OF_I64)
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#define ELEMENT int64_t
#define LEAST ELEMENT(0x8000000000000000UL)
#define GREATEST ELEMENT(0x7fffffffffffffffL)
#elif defined(OF_F32)
#define ELEMENT float
#define LEAST uintBitsToFloat(0xff800000)
#define GREATEST uintBitsToFloat(0x7f800000)
#elif defined(OF_F64)
#define ELEMENT double
#define LEAST packDouble2x32(uvec2(0, 0xfff00000))
#define GREATEST packDouble2x32(uvec2(0, 0x7ff00000))
#endif

const uint kRuns = 16;
const uint kRun = 16;

layout(local_size_x = 16) in;

layout(constant_id = 0) const uint kCombine = 0;  // sum, product, least, greatest
layout(constant_id = 1) const uint kExclusive = 0;
layout(constant_id = 2) const uint kReverse = 0;

layout(push_constant) uniform Sizes {
    uint rows;
    uint length;
};

layout(set = 0, binding = 0) readonly buffer Values {  // [row][element]
    ELEMENT values[];
};
layout(set = 0, binding = 1) writeonly buffer Results {  // [row][element]
    ELEMENT results[];
};

shared ELEMENT totals[2][kRuns];  // for every second tile, so that one barrier is enough

bool IsNan(ELEMENT x) {
#if defined(OF_F32) || defined(OF_F64)
    return isnan(x);
#else
    return false;
#endif
}

ELEMENT Combined(ELEMENT a, ELEMENT b) {
    if (kCombine == 0) {
        return a + b;
    }
    if (kCombine == 1) {
        return a * b;
    }
    const bool takes_a = kCombine == 2 ? a < b : a > b;
    return takes_a || IsNan(a) ? a : b;
}

void main() {
    const uint run = gl_LocalInvocationIndex;
    const ELEMENT neutral = kCombine == 0   ? ELEMENT(0)
                            : kCombine == 1 ? ELEMENT(1)
                            : kCombine == 2 ? GREATEST
                                            : LEAST;
    for (uint row = gl_WorkGroupID.x; row < rows; row += gl_NumWorkGroups.x) {
        const uint first = row * length;
        ELEMENT carried = neutral;
        uint parity = 0;
        for (uint begin = 0; begin < length; begin += kRuns * kRun) {
            ELEMENT before[kRun];
            ELEMENT total = neutral;
            const uint run_begin = begin + run * kRun;
            for (uint k = 0; k < kRun; ++k) {
                const uint i = run_begin + k;
                ELEMENT value = neutral;
                if (i < length) {
                    value = values[first + (kReverse != 0 ? length - 1 - i : i)];
                }
                const ELEMENT with = Combined(total, value);
                before[k] = kExclusive != 0 ? total : with;
                total = with;
            }
            totals[parity][run] = total;
            barrier();
            ELEMENT earlier = carried;
            for (uint other = 0; other < kRuns; ++other) {
                const ELEMENT its = totals[parity][other];
                carried = Combined(carried, its);
                earlier = other < run ? carried : earlier;
            }
            for (uint k = 0; k < kRun; ++k) {
                const uint i = run_begin + k;
                if (i < length) {
                    results[first + (kReverse != 0 ? length - 1 - i : i)] =
                        Combined(earlier, before[k]);
                }
            }
            parity = 1 - parity;
        }
        barrier();  // the next row begins with the same parity perhaps
    }
}
