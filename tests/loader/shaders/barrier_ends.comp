#version 450
// Rows of a table that end inside of a workgroup: whoever is behind a row's end is done before the
// barriers of the others, as where compilers make one way out of a program's returns.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Lengths { uint lengths[]; };  // for each workgroup
layout(set = 0, binding = 1) readonly buffer In { uint words[]; };
layout(set = 0, binding = 2) buffer Out { uint result[]; };
shared uint shared_words[64];
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint l = gl_LocalInvocationIndex;
    shared_words[l] = 0u;
    barrier();
    switch (0u) {
        default:
            if (63u - l >= lengths[gl_WorkGroupID.x])
                break;
            shared_words[l] = words[i];
            barrier();
            for (uint step = 32u; step > 0u; step >>= 1) {
                if (l < step)
                    shared_words[l] += shared_words[l + step];
                else
                    shared_words[l] ^= step;
                barrier();
            }
            result[i] = shared_words[63u];
            barrier();
            shared_words[63] = words[i - l + 63u] + 1u;
            barrier();
            result[i] += shared_words[63] * shared_words[l];
    }
}
