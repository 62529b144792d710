#version 450
// One row of invocations of any length: all memory is as long as the row.
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint kSize = 1;
layout(set = 0, binding = 0) buffer In { uint values[]; };
layout(set = 0, binding = 1) buffer Out { uint sums[]; };
shared uint row[kSize];
shared uvec2 pairs[kSize];
void main() {
    uint x = gl_LocalInvocationID.x;
    uint at = gl_WorkGroupID.x * kSize + x;
    row[x] = values[at];
    pairs[kSize - 1 - x] = uvec2(x, values[at] ^ x);
    barrier();
    uvec2 pair = pairs[x];
    sums[at] += row[kSize - 1 - x] + pair.x * 3 + pair.y + row[x / 2];
}
