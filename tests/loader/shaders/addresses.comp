#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
// Memory by device address in every form of address: contiguous, reversed, scattered, through
// integers and pairs of words, pointers in memory, pointers chosen at run time, masked by a bound
// that cuts a vector, and atomics.
layout(local_size_x = 64) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint w[]; };
layout(buffer_reference) buffer Node;
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Node {
    uvec4 value;
    Node next;
    uint hits;
    uint pad;
};
layout(push_constant) uniform Push {
    Words source;
    Words target;
    Node list;
    uvec2 pair;
    uint64_t number;
    uint count;
};
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= count)
        return;
    uint results[10];
    results[0] = source.w[i];
    results[1] = source.w[255u - i];
    results[2] = source.w[i * 37u & 255u];
    Node node = list;
    for (uint k = 0u; k < i % 5u; ++k)
        node = node.next;
    results[3] = node.value.x + node.value.w;
    results[4] = Words(pair).w[i];
    results[5] = Words(number + uint64_t(i) * 4u).w[0];
    results[6] = (list + int(i & 3u)).value[i & 3u];
    Words both[2] = Words[2](source, Words(pair));
    results[7] = both[i & 1u].w[i];
    results[8] = Words(number + 400u).w[-1 - int(i & 7u)];
    results[9] = atomicAdd(node.hits, i);
    atomicMax(list.hits, 1u);
    for (uint k = 0u; k < 9u; ++k)
        target.w[k * 256u + i] = results[k];
    uint64_t place = uint64_t(target) + 4u * (9u * 256u + i);
    Words(place).w[0] = uint(uint64_t(node) - uint64_t(list));
}
