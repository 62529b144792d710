// Counts the bytes of the words of `a` in `c`, first in workgroup memory.
@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read> b: array<u32>;
@group(0) @binding(2) var<storage, read_write> c: array<atomic<u32>>;
var<workgroup> bins: array<atomic<u32>, 256>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) g: vec3u, @builtin(local_invocation_index) l: u32) {
    atomicStore(&bins[l], 0u);
    workgroupBarrier();
    for (var i = 0u; i < 16u; i++) {
        let word = a[g.x * 16u + i] ^ b[0];
        for (var shift = 0u; shift < 32u; shift += 8u) {
            atomicAdd(&bins[(word >> shift) & 255u], 1u);
        }
    }
    workgroupBarrier();
    atomicAdd(&c[l], atomicLoad(&bins[l]));
}
