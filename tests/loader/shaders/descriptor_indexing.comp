#version 460
#extension GL_EXT_nonuniform_qualifier : require
// Buffers chosen from arrays of descriptors, invocation by invocation: loads, stores, atomics and
// lengths; a run-time array of variable count with gaps, an inline uniform block, accesses behind
// the end.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) uniform Inline { uvec4 inline_words[4]; };
layout(set = 0, binding = 1) uniform Uniforms { uvec4 value; } uniforms[5];
layout(set = 0, binding = 2) buffer Out { uint result[]; };
layout(set = 0, binding = 3) buffer Storage { uint count; uint pad; uvec2 pairs[]; } buffers[];
layout(push_constant) uniform Push { uint uniform_index; uint odd_index; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint which = i * 7u % 5u;
    uint o = i * 8u;
    result[o] = buffers[nonuniformEXT(which)].pairs[i & 7u].y;
    result[o + 1u] = uniforms[nonuniformEXT(i % 5u)].value[i & 3u];
    result[o + 2u] = uint(buffers[nonuniformEXT(which)].pairs.length());
    result[o + 3u] = inline_words[i & 3u][i >> 2 & 3u];
    result[o + 4u] = buffers[uniform_index].pairs[1].x + uniforms[uniform_index].value.y;
    atomicAdd(buffers[nonuniformEXT(which)].count, i);
    buffers[nonuniformEXT(which)].pairs[8u + i] = uvec2(i, 2u * i);
    uvec2 behind = buffers[nonuniformEXT(which)].pairs[71u + (i & 1u)];
    result[o + 5u] = behind.x;
    result[o + 6u] = behind.y;
    result[o + 7u] = buffers[nonuniformEXT(which + odd_index)].pairs[0].x;
}
