#version 450
// Two records of five words of eight in each invocation, and halves of them: what lies between is
// more than what is wanted.
layout(local_size_x = 1) in;
struct Record { uint words[5]; uint rest[3]; };
layout(set = 0, binding = 0) readonly buffer In { Record records[]; };
layout(set = 0, binding = 1) writeonly buffer Out { Record results[]; };

uint remainder_of(uint a, uint b) {
    return packHalf2x16(vec2(mod(unpackHalf2x16(a).x, unpackHalf2x16(b).x), -1.0));
}

void main() {
    uint i = gl_WorkGroupID.x;
    Record a = records[2u * i];
    Record b = records[2u * i + 1u];
    results[i].words[0] = remainder_of(a.words[0], b.words[0]);
    results[i].words[1] = remainder_of(a.words[1], b.words[1]);
    results[i].words[2] = remainder_of(a.words[2], b.words[2]);
    results[i].words[3] = remainder_of(a.words[3], b.words[3]);
    results[i].words[4] = remainder_of(a.words[4], b.words[4]);
}
