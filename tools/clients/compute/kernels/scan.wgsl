// Inclusive sums of 1,024 words a workgroup: each invocation adds up four, and they exchange theirs.
@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read> b: array<u32>;
@group(0) @binding(2) var<storage, read_write> c: array<u32>;
var<workgroup> sums: array<u32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) g: vec3u, @builtin(local_invocation_index) l: u32) {
    var own: array<u32, 4>;
    var total = 0u;
    for (var i = 0u; i < 4u; i++) {
        total += a[g.x * 4u + i] + b[0];
        own[i] = total;
    }
    sums[l] = total;
    workgroupBarrier();
    for (var stride = 1u; stride < 256u; stride *= 2u) {
        var before = 0u;
        if (l >= stride) {
            before = sums[l - stride];
        }
        workgroupBarrier();
        sums[l] += before;
        workgroupBarrier();
    }
    for (var i = 0u; i < 4u; i++) {
        c[g.x * 4u + i] = sums[l] - total + own[i];
    }
}
