// Finds the least unsigned keys of rows: the positions of a row's first `count` keys in ascending
// order. Equal keys keep their order. For few of many: at most 1,024.
//
// A workgroup has a row. The least keys of groups of elements give a bound: as many groups as keys
// are wanted have one that is not above it. What is within the bound, few more than are wanted if
// the keys are in no special order, is collected, and each is put behind all that are before it.
// Where too many are within it, the greatest key that is wanted and, among equal ones, the last
// position are found bit by bit, by counting the keys of the whole row below candidates.
#version 450

const uint kInvocations = 32;
const uint kMost = 1024;
const uint kRoom = 2 * kMost;

layout(local_size_x = 32) in;

layout(push_constant) uniform Sizes {
    uint rows;
    uint length;
    uint count;
};

layout(set = 0, binding = 0) readonly buffer Keys {  // [row][element]
    uint keys[];
};
layout(set = 0, binding = 1) writeonly buffer Positions {  // [row][count]
    uint positions[];
};

shared uvec3 counts[kInvocations];
shared uint chosen;
shared uint chosen_keys[kRoom];  // first the least of each group
shared uint chosen_positions[kRoom];

// The sum over all invocations.
uvec3 Sum(uvec3 mine) {
    counts[gl_LocalInvocationIndex] = mine;
    barrier();
    uvec3 sum = uvec3(0);
    for (uint i = 0; i < kInvocations; ++i) {
        sum += counts[i];
    }
    barrier();
    return sum;
}

// How many keys of the row are below each bound.
uvec3 CountBelow(uint row_keys, uvec3 bounds) {
    uint a = 0, b = 0, c = 0;
    for (uint i = gl_LocalInvocationIndex; i < length; i += kInvocations) {
        const uint key = keys[row_keys + i];
        a += key < bounds.x ? 1 : 0;
        b += key < bounds.y ? 1 : 0;
        c += key < bounds.z ? 1 : 0;
    }
    return Sum(uvec3(a, b, c));
}

// How many keys are equal to `last`, before position `end`.
uint CountEqual(uint row_keys, uint last, uint end) {
    uint equal = 0;
    for (uint i = gl_LocalInvocationIndex; i < end; i += kInvocations) {
        equal += keys[row_keys + i] == last ? 1 : 0;
    }
    return Sum(uvec3(equal, 0, 0)).x;
}

// How many of the first keys in workgroup memory are below each bound.
uvec3 CountChosenBelow(uint end, uvec3 bounds) {
    uvec3 below = uvec3(0);
    for (uint i = gl_LocalInvocationIndex; i < end; i += kInvocations) {
        const uint key = chosen_keys[i];
        below.x += key < bounds.x ? 1 : 0;
        below.y += key < bounds.y ? 1 : 0;
        below.z += key < bounds.z ? 1 : 0;
    }
    return Sum(below);
}

// Two more bits of the greatest key below which are at most `place` keys; `below` is their number.
void Refine(uvec3 counted, uint unit, uint place, inout uint key, inout uint below) {
    if (counted.z <= place) {
        key += 3 * unit;
        below = counted.z;
    } else if (counted.y <= place) {
        key += 2 * unit;
        below = counted.y;
    } else if (counted.x <= place) {
        key += unit;
        below = counted.x;
    }
}

// The least end so that `wanted` keys equal to `last` are before it.
uint EndOfEqual(uint row_keys, uint last, uint wanted) {
    if (CountEqual(row_keys, last, length) <= wanted) {
        return length;
    }
    uint low = 0, high = length;  // too few are before `low`, enough before `high`
    while (high - low > 1) {
        const uint middle = low + (high - low) / 2;
        if (CountEqual(row_keys, last, middle) < wanted) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return high;
}

// Collects the keys below `last`, and those equal to it before position `end`; gives their number.
uint Collect(uint row_keys, uint last, uint end) {
    if (gl_LocalInvocationIndex == 0) {
        chosen = 0;
    }
    barrier();
    for (uint i = gl_LocalInvocationIndex; i < length; i += kInvocations) {
        const uint key = keys[row_keys + i];
        if (key < last || (key == last && i < end)) {
            const uint slot = atomicAdd(chosen, 1);
            if (slot < kRoom) {
                chosen_keys[slot] = key;
                chosen_positions[slot] = i;
            }
        }
    }
    barrier();
    return chosen;
}

uint CollectWithinBound(uint row_keys, uint wanted) {
    const uint groups = min(min(4 * wanted, kMost), length);
    for (uint group = gl_LocalInvocationIndex; group < groups; group += kInvocations) {
        uint least = 0xffffffff;
        for (uint i = group; i < length; i += groups) {
            least = min(least, keys[row_keys + i]);
        }
        chosen_keys[group] = least;
    }
    barrier();
    uint bound = 0, below = 0;
    for (int shift = 30; shift >= 0; shift -= 2) {
        const uint unit = 1u << shift;
        const uvec3 counted = CountChosenBelow(groups, uvec3(bound) + uvec3(1, 2, 3) * unit);
        Refine(counted, unit, wanted - 1, bound, below);
    }
    return Collect(row_keys, bound, length);
}

uint CollectExactly(uint row_keys, uint wanted) {
    uint last = 0, below = 0;
    for (int shift = 30; shift >= 0; shift -= 2) {
        const uint unit = 1u << shift;
        const uvec3 counted = CountBelow(row_keys, uvec3(last) + uvec3(1, 2, 3) * unit);
        Refine(counted, unit, wanted - 1, last, below);
    }
    return Collect(row_keys, last, EndOfEqual(row_keys, last, wanted - below));
}

void SelectRow(uint row, uint wanted) {
    const uint row_keys = row * length;
    uint collected = CollectWithinBound(row_keys, wanted);
    if (collected > min(2 * wanted + 64, kRoom)) {
        barrier();  // `chosen` has been read
        collected = CollectExactly(row_keys, wanted);
    }
    collected = min(collected, kRoom);
    for (uint i = gl_LocalInvocationIndex; i < collected; i += kInvocations) {
        const uint key = chosen_keys[i], position = chosen_positions[i];
        uint place = 0;
        for (uint other = 0; other < collected; ++other) {
            const uint its = chosen_keys[other];
            const bool earlier = chosen_positions[other] < position;
            place += its < key || (its == key && earlier) ? 1 : 0;
        }
        if (place < wanted) {
            positions[row * count + place] = position;
        }
    }
    barrier();
}

void main() {
    const uint wanted = min(min(count, length), kMost);
    if (wanted == 0) {
        return;
    }
    for (uint row = gl_WorkGroupID.x; row < rows; row += gl_NumWorkGroups.x) {
        SelectRow(row, wanted);
    }
}
