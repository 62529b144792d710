#version 450
// Copies the members of std140 and std430 structures, scalar by scalar, so that the test can
// number the words of the sources and tell which word each member lies at.
layout(local_size_x = 64) in;
struct Inner { vec3 a; float b; vec2 c[2]; };
struct Mixed {
    float first;
    vec3 padded;
    mat3 columns;
    mat2x3 tall;
    Inner inner[2];
    float scalars[3];
    mat4x2 wide;
    vec2 last;
};
layout(set = 0, binding = 0, std140) uniform Uniform {
    Mixed mixed;
    layout(row_major) mat4x3 extra;
} u;
layout(set = 0, binding = 1, std430) readonly buffer Storage { Mixed items[]; } s;
layout(set = 0, binding = 2, std140) readonly buffer Rows { layout(row_major) Mixed items[]; } t;
layout(set = 0, binding = 3) writeonly buffer Out { float results[]; };
layout(set = 0, binding = 4) readonly buffer Parts { float words[]; } parts[3];
layout(set = 0, binding = 5) writeonly buffer Lengths { uint lengths[]; };

float Pick(Mixed m, uint which) {
    if (which == 0u) return m.first;
    which -= 1u;
    if (which < 3u) return m.padded[which];
    which -= 3u;
    if (which < 9u) return m.columns[which / 3u][which % 3u];
    which -= 9u;
    if (which < 6u) return m.tall[which / 3u][which % 3u];
    which -= 6u;
    if (which < 16u) {
        uint member = which % 8u;
        uint at = which / 8u;
        if (member < 3u) return m.inner[at].a[member];
        if (member == 3u) return m.inner[at].b;
        return m.inner[at].c[(member - 4u) / 2u][member % 2u];
    }
    which -= 16u;
    if (which < 3u) return m.scalars[which];
    which -= 3u;
    if (which < 8u) return m.wide[which / 2u][which % 2u];
    which -= 8u;
    return m.last[which % 2u];
}

void main() {
    uint i = gl_LocalInvocationIndex;
    // Whole structures by value.
    if (i < 48u) {
        results[i] = Pick(u.mixed, i);
        for (uint item = 0u; item < 3u; ++item) {
            results[64u + item * 64u + i] = Pick(s.items[item], i);
            results[256u + item * 64u + i] = Pick(t.items[item], i);
        }
    }
    // Dynamic indices straight into memory, column and row different in each invocation.
    uint item = i % 3u;
    results[448u + i] = s.items[item].columns[(i / 3u) % 3u][(i / 9u) % 3u];
    results[512u + i] = t.items[item].tall[i & 1u][(i / 2u) % 3u];
    results[576u + i] = u.extra[i & 3u][(i / 4u) % 3u];
    // Whole columns and products.
    vec3 product = u.extra * vec4(1.0, 2.0, 3.0, 4.0);
    results[640u + i] = product[i % 3u];
    vec3 column = s.items[item].columns[(i / 3u) % 3u];
    results[704u + i] = column.x + 1000.0 * column.y + 1000000.0 * column.z;
    // Arrays of descriptors.
    results[768u + i] = parts[1].words[i];
    results[832u + i] = parts[2].words[i];
    if (i == 0u) {
        lengths[0] = parts[0].words.length();
        lengths[1] = parts[2].words.length();
        lengths[2] = s.items.length();
        lengths[3] = t.items.length();
    }
}
