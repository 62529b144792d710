#version 450
// A search that a workgroup makes in rounds with barriers between them. In its last round some invocations
// return at once, from inside of two loops, others look on for as many steps as each has; all meet again
// behind it.
layout(local_size_x = 96) in;
layout(set = 0, binding = 0) readonly buffer Rounds { uint rounds[]; };  // a word for each workgroup
layout(set = 0, binding = 1) readonly buffer In { uint words[]; };
layout(set = 0, binding = 2) writeonly buffer Out { uint result[]; };
shared uint shared_words[96];
uint Search(uint i, uint last) {
    uint l = gl_LocalInvocationIndex;
    uint sum = words[i];
    for (uint round = 0u;; ++round) {
        shared_words[l] = sum;
        barrier();
        uint other = shared_words[(l + 7u) % 96u];
        barrier();
        if (round == last) {
            for (uint step = 0u; step < 8u; ++step) {
                if (((sum >> step) & 1u) != 0u)
                    return sum + step;  // some never come here
                if (step == (l & 3u) + 4u)
                    break;
            }
            break;
        }
        sum = 3u * sum + other;
    }
    return ~sum;
}
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint l = gl_LocalInvocationIndex;
    uint mine = Search(i, rounds[gl_WorkGroupID.x]);
    barrier();
    shared_words[l] = mine;
    barrier();
    result[i] = mine ^ shared_words[95u - l];
}
