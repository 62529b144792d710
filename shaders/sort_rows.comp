// Sorts rows of unsigned keys: the positions of a row's first `count` keys in ascending order. Equal
// keys keep their order. A key has one word or two, the less significant one first.
//
// A radix sort by digits of 8 bits, least significant first. A workgroup sorts a row. Each
// invocation has a run of the row and counters of its own, so that an element's place depends on no
// other invocation and order is kept: counters in the order of digits and then of runs, summed up,
// are the places at which the elements of each run go on. Digits that all keys of a row share are
// left out.
#version 450

const uint kRuns = 16;
const uint kDigits = 256;

layout(local_size_x = 16) in;

layout(constant_id = 0) const uint kWords = 1;

layout(push_constant) uniform Sizes {
    uint rows;
    uint length;
    uint count;
};

layout(set = 0, binding = 0) readonly buffer Keys {  // [word][row][element]
    uint keys[];
};
// Two halves, each the keys and then the positions; elements go from one to the other.
layout(set = 0, binding = 1) buffer Scratch {  // [row][half][2][element]
    uint scratch[];
};
layout(set = 0, binding = 2) writeonly buffer Positions {  // [row][count]
    uint positions[];
};

shared uint counters[kDigits * kRuns];  // [digit][run]
shared uint of_runs[2 * kRuns];

// Bits in which keys of the row differ. The invocation knows those that are in all of its keys
// and those that are in any.
uint Differing(uint in_all, uint in_any) {
    const uint run = gl_LocalInvocationIndex;
    of_runs[2 * run] = in_all;
    of_runs[2 * run + 1] = in_any;
    memoryBarrierBuffer();  // the scratch is read by others from here on
    barrier();
    for (uint i = 0; i < kRuns; ++i) {
        in_all &= of_runs[2 * i];
        in_any |= of_runs[2 * i + 1];
    }
    barrier();
    return in_all ^ in_any;
}

// Counters become the sums of all counters before them.
void SumUp() {
    const uint run = gl_LocalInvocationIndex;
    const uint first = run * kDigits;
    uint sum = 0;
    for (uint i = 0; i < kDigits; ++i) {
        sum += counters[first + i];
    }
    of_runs[run] = sum;
    barrier();
    sum = 0;
    for (uint i = 0; i < kRuns; ++i) {
        sum += i < run ? of_runs[i] : 0;
    }
    for (uint i = 0; i < kDigits; ++i) {
        const uint here = counters[first + i];
        counters[first + i] = sum;
        sum += here;
    }
    barrier();
}

void SortRow(uint row) {
    const uint run = gl_LocalInvocationIndex;
    const uint run_length = (length + kRuns - 1) / kRuns;
    const uint begin = min(run * run_length, length);
    const uint end = min(begin + run_length, length);
    uint from = row * 4 * length;
    uint to = from + 2 * length;
    for (uint i = run; i < length; i += kRuns) {
        scratch[from + length + i] = i;
    }
    for (uint word = 0; word < kWords; ++word) {
        const uint word_keys = (word * rows + row) * length;
        uint in_all = 0xffffffff, in_any = 0;
        for (uint i = run; i < length; i += kRuns) {
            // Whoever shares memory with the scratch may have changed it.
            const uint at = min(scratch[from + length + i], length - 1);
            const uint key = keys[word_keys + at];
            scratch[from + i] = key;
            in_all &= key;
            in_any |= key;
        }
        const uint differing = Differing(in_all, in_any);
        for (uint shift = 0; shift < 32; shift += 8) {
            if (((differing >> shift) & 0xff) == 0) {
                continue;
            }
            for (uint digit = 0; digit < kDigits; ++digit) {
                counters[digit * kRuns + run] = 0;
            }
            for (uint i = begin; i < end; ++i) {
                const uint digit = (scratch[from + i] >> shift) & 0xff;
                ++counters[digit * kRuns + run];
            }
            barrier();
            SumUp();
            for (uint i = begin; i < end; ++i) {
                const uint key = scratch[from + i];
                const uint counter = ((key >> shift) & 0xff) * kRuns + run;
                const uint place = counters[counter];
                counters[counter] = place + 1;
                if (place < length) {
                    scratch[to + place] = key;
                    scratch[to + length + place] = scratch[from + length + i];
                }
            }
            memoryBarrierBuffer();
            barrier();
            const uint other = from;
            from = to;
            to = other;
        }
    }
    for (uint i = run; i < min(count, length); i += kRuns) {
        positions[row * count + i] = scratch[from + length + i];
    }
    barrier();
}

void main() {
    for (uint row = gl_WorkGroupID.x; row < rows; row += gl_NumWorkGroups.x) {
        SortRow(row);
    }
}
