#version 450
// Vector and matrix functions, and the packing functions, on sixteen small numbers each.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer In { float numbers[]; };
layout(set = 0, binding = 1) writeonly buffer Out { float results[]; };
layout(set = 0, binding = 2) writeonly buffer Packed { uint packed_words[]; };
uint at;
void Put(float value) { results[at++] = value; }
void Put(vec3 v) { for (int i = 0; i < 3; ++i) Put(v[i]); }
void Put(mat2 m) { for (int i = 0; i < 4; ++i) Put(m[i >> 1][i & 1]); }
void Put(mat3 m) { for (int i = 0; i < 3; ++i) Put(m[i]); }
void Put(mat4 m) { for (int i = 0; i < 16; ++i) Put(m[i >> 2][i & 3]); }
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint from = i * 16u;
    if (from >= numbers.length())
        return;
    float n[16];
    for (uint j = 0u; j < 16u; ++j)
        n[j] = numbers[from + j];
    vec3 a = vec3(n[0], n[1], n[2]);
    vec3 b = vec3(n[3], n[4], n[5]);
    vec3 c = normalize(vec3(n[6], n[7], n[8]));
    mat4 m4 = mat4(n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7],
                   n[8], n[9], n[10], n[11], n[12], n[13], n[14], n[15]);
    mat3 m3 = mat3(m4);
    mat2 m2 = mat2(m4);
    at = i * 96u;
    Put(length(a));
    Put(distance(a, b));
    Put(dot(a, b));
    Put(c);
    Put(cross(a, b));
    Put(faceforward(a, b, c));
    Put(reflect(a, c));
    Put(refract(normalize(a), c, 0.75));
    Put(determinant(m2));
    Put(determinant(m3));
    Put(determinant(m4));
    Put(transpose(m3));
    Put(outerProduct(a, b));
    // What a matrix and its inverse give is known without computing the inverse.
    Put(inverse(m2) * m2);
    Put(m3 * inverse(m3));
    Put(inverse(m4) * m4);
    Put(matrixCompMult(m3, m3));
    Put(m3 * a);
    Put(a * m3);
    vec4 v = vec4(n[9], n[10], n[11], n[12]) * 0.5;
    uint p = i * 16u;
    packed_words[p] = packSnorm4x8(v);
    packed_words[p + 1u] = packUnorm4x8(v);
    packed_words[p + 2u] = packSnorm2x16(v.xy);
    packed_words[p + 3u] = packUnorm2x16(v.xy);
    packed_words[p + 4u] = packHalf2x16(v.zw);
    uint bits = floatBitsToUint(n[13]) * 2654435761u;
    packed_words[p + 5u] = bits;
    vec4 s = unpackSnorm4x8(bits);
    vec4 u = unpackUnorm4x8(bits);
    packed_words[p + 6u] = floatBitsToUint(s.x);
    packed_words[p + 7u] = floatBitsToUint(s.w);
    packed_words[p + 8u] = floatBitsToUint(u.y);
    packed_words[p + 9u] = floatBitsToUint(u.z);
    packed_words[p + 10u] = floatBitsToUint(unpackSnorm2x16(bits).y);
    packed_words[p + 11u] = floatBitsToUint(unpackUnorm2x16(bits).x);
    packed_words[p + 12u] = floatBitsToUint(unpackHalf2x16(bits & 0xbfffbfffu).x);
    packed_words[p + 13u] = floatBitsToUint(unpackHalf2x16(bits & 0xbfffbfffu).y);
}
