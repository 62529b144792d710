"""SlangPy: kernels in Slang, compiled by it with and without debug information, on its Vulkan device."""

import case_runner
import numpy as np
import slangpy as spy

MATMUL = """
RWStructuredBuffer<float> c;
StructuredBuffer<float> a;
StructuredBuffer<float> b;
uniform uint n;
groupshared float ta[16][16];
groupshared float tb[16][16];
[shader("compute")]
[numthreads(16, 16, 1)]
void main(uint3 g : SV_DispatchThreadID, uint3 l : SV_GroupThreadID)
{
    float sum = 0;
    for (uint k = 0; k < n; k += 16) {
        ta[l.y][l.x] = a[g.y * n + k + l.x];
        tb[l.y][l.x] = b[(k + l.y) * n + g.x];
        GroupMemoryBarrierWithGroupSync();
        for (uint i = 0; i < 16; ++i)
            sum += ta[l.y][i] * tb[i][l.x];
        GroupMemoryBarrierWithGroupSync();
    }
    c[g.y * n + g.x] = sum;
}
"""

# A derivative that Slang makes, through functions with loops.
GRADIENT = """
RWStructuredBuffer<float> c;
StructuredBuffer<float> a;
StructuredBuffer<float> b;
uniform uint n;
[Differentiable]
float polynomial(float x)
{
    float sum = 0;
    [MaxIters(8)]
    for (int k = 0; k < 8; ++k)
        sum = sum * x + (k % 3);
    return sum + sin(x);
}
[shader("compute")]
[numthreads(64, 1, 1)]
void main(uint3 g : SV_DispatchThreadID)
{
    DifferentialPair<float> x = diffPair(a[g.x], 1.0);
    c[g.x] = fwd_diff(polynomial)(x).d + b[g.x];
}
"""


def gradient(a, b):
    x = a.astype(np.float64)
    total, slope = np.zeros_like(x), np.zeros_like(x)
    for k in range(8):
        slope = slope * x + total
        total = total * x + k % 3
    return slope + np.cos(x) + b


def make_case(device, name, source, a, b, n, threads):
    module = device.load_module_from_source(f"{name}_module", source)
    kernel = device.create_compute_kernel(device.link_program([module], [module.entry_point("main")]))
    usage = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access
    buffers = [device.create_buffer(element_count=array.size, struct_size=4, usage=usage, data=array.ravel())
               for array in (a, b, np.zeros_like(a))]

    def once():
        kernel.dispatch(threads, vars={"a": buffers[0], "b": buffers[1], "c": buffers[2], "n": n})
        device.wait()

    def with_result():
        once()
        return buffers[2].to_numpy().view(np.float32).reshape(a.shape)

    return once, with_result


def main():
    random = np.random.default_rng(6)
    n = 512
    a, b = (random.standard_normal((n, n), np.float32) for _ in range(2))
    x = random.uniform(-1, 1, 1 << 20).astype(np.float32)
    y = random.standard_normal(1 << 20, np.float32)
    for debug in (False, True):
        options = spy.SlangCompilerOptions()
        options.debug_info = spy.SlangDebugInfoLevel.maximal if debug else spy.SlangDebugInfoLevel.none
        device = spy.Device(type=spy.DeviceType.vulkan, compiler_options=options)
        for name, source, inputs, n_constant, threads, expected in (
                ("matmul", MATMUL, (a, b), n, [n, n, 1], a @ b),
                ("gradient", GRADIENT, (x, y), x.size, [x.size, 1, 1], gradient(x, y))):
            label = f"{name}, debug" if debug else name
            try:
                once, with_result = make_case(device, name, source, *inputs, n_constant, threads)
                right = case_runner.is_close(with_result(), expected, 1e-4)
                case_runner.report(label, right=right, **case_runner.measured(once))
            except Exception as error:  # whatever a client raises is its answer
                case_runner.report_error(label, error)
        device.close()


if __name__ == "__main__":
    main()
