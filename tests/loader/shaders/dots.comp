#version 450
// Every form of the integer dot product; one record for each pair of source quadruples.
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_integer_dot_product : require
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer In { u64vec4 vectors[]; };
layout(set = 0, binding = 1) writeonly buffer Out { uint64_t results[]; };

uint at;
void put(uint x) { results[at++] = uint64_t(x); }
void put(int x) { results[at++] = uint64_t(uint(x)); }
void put(uint64_t x) { results[at++] = x; }
void put(int64_t x) { results[at++] = uint64_t(x); }

// The components' low bits; unsigned, signed, mixed in both orders; with an accumulator.
#define FORMS(a, b, sa, sb, acc, sacc)                                                                        \
    {                                                                                                         \
        put(dotEXT(a, b));                                                                                    \
        put(dotEXT(sa, sb));                                                                                  \
        put(dotEXT(sa, b));                                                                                   \
        put(dotEXT(a, sb));                                                                                   \
        put(dotAccSatEXT(a, b, acc));                                                                         \
        put(dotAccSatEXT(sa, sb, sacc));                                                                      \
        put(dotAccSatEXT(sa, b, sacc));                                                                       \
        put(dotAccSatEXT(a, sb, sacc));                                                                       \
    }
#define WIDTHS(U2, U3, U4, S2, S3, S4, acc, sacc)                                                             \
    FORMS(U2(x.xy), U2(y.xy), S2(x.xy), S2(y.xy), acc, sacc)                                                  \
    FORMS(U3(x.xyz), U3(y.xyz), S3(x.xyz), S3(y.xyz), acc, sacc)                                              \
    FORMS(U4(x), U4(y), S4(x), S4(y), acc, sacc)

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (2u * i >= vectors.length())
        return;
    u64vec4 x = vectors[2u * i];
    u64vec4 y = vectors[2u * i + 1u];
    at = i * 104u;
    uint acc = uint(x.w >> 32);
    int sacc = int(acc);
    WIDTHS(u8vec2, u8vec3, u8vec4, i8vec2, i8vec3, i8vec4, acc, sacc)
    WIDTHS(u16vec2, u16vec3, u16vec4, i16vec2, i16vec3, i16vec4, acc, sacc)
    WIDTHS(uvec2, uvec3, uvec4, ivec2, ivec3, ivec4, acc, sacc)
    WIDTHS(u64vec2, u64vec3, u64vec4, i64vec2, i64vec3, i64vec4, x.w, int64_t(x.w))
    uint a = uint(x.x);
    uint b = uint(y.x);
    put(dotPacked4x8EXT(a, b));
    put(dotPacked4x8EXT(int(a), int(b)));
    put(dotPacked4x8EXT(int(a), b));
    // As ggml does: onto a sum.
    put(dotPacked4x8EXT(a, int(b)) + sacc);
    put(dotPacked4x8AccSatEXT(a, b, acc));
    put(dotPacked4x8AccSatEXT(int(a), int(b), sacc));
    put(dotPacked4x8AccSatEXT(int(a), b, sacc));
    put(dotPacked4x8AccSatEXT(a, int(b), sacc));
}
