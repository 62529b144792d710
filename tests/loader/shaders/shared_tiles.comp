#version 450
// A transposition of a square matrix by 16 x 16 tiles, a histogram of each tile's words, and a
// structure in shared memory that one invocation fills and all read.
layout(local_size_x = 16, local_size_y = 16) in;
layout(set = 0, binding = 0) readonly buffer In { uint words[]; };
layout(set = 0, binding = 1) writeonly buffer Out { uint transposed[]; };
layout(set = 0, binding = 2) buffer Histogram { uint bins[32]; };
layout(set = 0, binding = 3) writeonly buffer Checks { uint checks[]; };
struct Tile { uvec2 origin; uint row[16]; mat2x3 scale; bool odd; };
shared uint tile[16][17];
shared uint counts[32];
shared Tile info;
void main() {
    uvec2 local = gl_LocalInvocationID.xy;
    uvec2 size = gl_NumWorkGroups.xy * 16u;
    uvec2 at = gl_GlobalInvocationID.xy;
    uint word = words[at.y * size.x + at.x];
    tile[local.y][local.x] = word;
    if (gl_LocalInvocationIndex < 32u)
        counts[gl_LocalInvocationIndex] = 0u;
    if (gl_LocalInvocationIndex == 77u) {
        info.origin = gl_WorkGroupID.xy * 16u;
        info.scale = mat2x3(1.0, 2.0, 3.0, 4.0, 5.0, 6.0);
        info.odd = (gl_WorkGroupID.x & 1u) != 0u;
    }
    if (local.y == 3u)
        info.row[local.x] = word;
    barrier();
    atomicAdd(counts[word & 31u], 1u);
    uvec2 to = info.origin.yx + local;
    transposed[to.y * size.y + to.x] = tile[local.x][local.y];
    uint check = info.row[15u - local.x] + uint(info.scale[local.x & 1u][local.y % 3u]);
    checks[at.y * size.x + at.x] = info.odd ? ~check : check;
    barrier();
    if (gl_LocalInvocationIndex < 32u)
        atomicAdd(bins[gl_LocalInvocationIndex], counts[gl_LocalInvocationIndex]);
}
