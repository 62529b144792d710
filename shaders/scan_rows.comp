// Running combinations of rows: result i combines values 0 to i, or 0 to i - 1 if it is exclusive,
// counted from the row's end if it is reverse.
//
// A workgroup goes along a row by tiles of a value for each invocation. With PLAIN it does without
// arithmetic of subgroups.
#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : enable
#ifndef PLAIN
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_EXT_shader_subgroup_extended_types_int64 : enable
#endif

#if defined(OF_I32)
#define ELEMENT int
#define LEAST ELEMENT(0x80000000)
#define GREATEST ELEMENT(0x7fffffff)
#elif defined(OF_I64)
#define ELEMENT int64_t
#define LEAST ELEMENT(0x8000000000000000UL)
#define GREATEST ELEMENT(0x7fffffffffffffffL)
#elif defined(OF_F32)
#define FLOAT
#define ELEMENT float
#define LEAST uintBitsToFloat(0xff800000)
#define GREATEST uintBitsToFloat(0x7f800000)
#elif defined(OF_F64)
#define FLOAT
#define ELEMENT double
#define LEAST packDouble2x32(uvec2(0, 0xfff00000))
#define GREATEST packDouble2x32(uvec2(0, 0x7ff00000))
#endif

const uint kTile = 32;

layout(local_size_x = 32) in;

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

shared ELEMENT parts[kTile];

ELEMENT Neutral() {
    return kCombine == 0 ? ELEMENT(0) : kCombine == 1 ? ELEMENT(1) : kCombine == 2 ? GREATEST : LEAST;
}

bool IsNan(ELEMENT x) {
#ifdef FLOAT
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

#ifdef PLAIN

uint Lane() {
    return gl_LocalInvocationIndex;
}

// The combination of the tile's values up to the invocation's; `all` becomes that of all.
ELEMENT Scanned(ELEMENT value, out ELEMENT all) {
    const uint lane = Lane();
    for (uint distance = 1; distance < kTile; distance *= 2) {
        parts[lane] = value;
        barrier();
        if (lane >= distance) {
            value = Combined(parts[lane - distance], value);
        }
        barrier();
    }
    parts[lane] = value;
    barrier();
    all = parts[kTile - 1];
    barrier();
    return value;
}

#else

uint Lane() {
    return gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
}

ELEMENT ScannedInSubgroup(ELEMENT value, out ELEMENT all) {
    if (kCombine == 0) {
        all = subgroupAdd(value);
        return subgroupInclusiveAdd(value);
    }
    if (kCombine == 1) {
        all = subgroupMul(value);
        return subgroupInclusiveMul(value);
    }
    // What subgroups make of NaN is not defined.
    const ELEMENT number = IsNan(value) ? Neutral() : value;
    const uint nan = IsNan(value) ? 1 : 0;
    ELEMENT scanned;
    if (kCombine == 2) {
        all = subgroupMin(number);
        scanned = subgroupInclusiveMin(number);
    } else {
        all = subgroupMax(number);
        scanned = subgroupInclusiveMax(number);
    }
#ifdef FLOAT
    const ELEMENT not_a_number = ELEMENT(uintBitsToFloat(0x7fc00000));
    all = subgroupMax(nan) != 0 ? not_a_number : all;
    scanned = subgroupInclusiveMax(nan) != 0 ? not_a_number : scanned;
#endif
    return scanned;
}

ELEMENT Scanned(ELEMENT value, out ELEMENT all) {
    ELEMENT scanned = ScannedInSubgroup(value, all);
    if (gl_NumSubgroups == 1) {
        return scanned;
    }
    if (subgroupElect()) {
        parts[gl_SubgroupID] = all;
    }
    barrier();
    ELEMENT before = Neutral();
    all = Neutral();
    for (uint i = 0; i < gl_NumSubgroups; ++i) {
        before = i == gl_SubgroupID ? all : before;
        all = Combined(all, parts[i]);
    }
    barrier();
    return Combined(before, scanned);
}

#endif

void main() {
    const uint lane = Lane();
    for (uint row = gl_WorkGroupID.x; row < rows; row += gl_NumWorkGroups.x) {
        const uint first = row * length;
        ELEMENT carried = Neutral();
        if (kExclusive != 0 && lane == 0 && length != 0) {
            results[first + (kReverse != 0 ? length - 1 : 0)] = carried;
        }
        for (uint begin = 0; begin < length; begin += kTile) {
            const uint i = begin + lane;
            ELEMENT value = Neutral();
            if (i < length) {
                value = values[first + (kReverse != 0 ? length - 1 - i : i)];
            }
            ELEMENT all;
            const ELEMENT result = Combined(carried, Scanned(value, all));
            const uint at = kExclusive != 0 ? i + 1 : i;
            if (at < length) {
                results[first + (kReverse != 0 ? length - 1 - at : at)] = result;
            }
            carried = Combined(carried, all);
        }
    }
}
