// How many iterations of z * z + p stay within 2, at most 200, for 512 x 512 points.
const N = 512u;
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<u32>;

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) g: vec3u) {
    let p = vec2f(a[g.x], b[g.y]);
    var z = vec2f(0.0);
    var count = 0u;
    for (; count < 200u && dot(z, z) < 4.0; count++) {
        z = vec2f(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + p;
    }
    c[g.y * N + g.x] = count;
}
