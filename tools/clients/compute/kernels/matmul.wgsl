// c = a * b of N x N floats, in tiles of 16 x 16 in workgroup memory.
const N = 512u;
const T = 16u;
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;
var<workgroup> ta: array<f32, 256>;
var<workgroup> tb: array<f32, 256>;

@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) g: vec3u, @builtin(local_invocation_id) l: vec3u) {
    var sum = 0.0;
    for (var k = 0u; k < N; k += T) {
        ta[l.y * T + l.x] = a[g.y * N + k + l.x];
        tb[l.y * T + l.x] = b[(k + l.y) * N + g.x];
        workgroupBarrier();
        for (var i = 0u; i < T; i++) {
            sum += ta[l.y * T + i] * tb[i * T + l.x];
        }
        workgroupBarrier();
    }
    c[g.y * N + g.x] = sum;
}
