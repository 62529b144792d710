"""OpenCL by clvk: kernels of PyOpenCL and its library, transforms of VkFFT and the measurements of clpeak, compared with NumPy and timed
beside PoCL, which runs OpenCL on the processor. Arrays stay on the device between runs.

Usage: clvk_cases.py FOLDER

FORNAX_CLVK names clvk's libOpenCL.so, which is built elsewhere with a clspv that it finds. FOLDER is the client's: compute_clients.py fills it.
"""

import os
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import case_runner
import numpy as np

FOLDER = Path(sys.argv[1])
vendors = tempfile.TemporaryDirectory()
library = Path(os.environ["FORNAX_CLVK"]).absolute()
if not library.is_file():
    sys.exit(f"FORNAX_CLVK names {library}, which is no file.")
(Path(vendors.name) / "clvk.icd").write_text(str(library))
# PyOpenCL's loader reads the first when it is loaded; PoCL's package brings its own entry. Nothing is written outside of the folder.
os.environ.update(OCL_ICD_VENDORS=f"{vendors.name}/", PYOPENCL_NO_CACHE="1", POCL_CACHE_DIR=vendors.name,
                  CLVK_COMPILER_TEMP_DIR=vendors.name)

import pyopencl as cl  # noqa: E402
import pyopencl.array  # noqa: E402
import pyopencl.bitonic_sort  # noqa: E402
import pyopencl.elementwise  # noqa: E402
import pyopencl.reduction  # noqa: E402
import pyopencl.scan  # noqa: E402
from pyvkfft.opencl import VkFFTApp  # noqa: E402

warnings.simplefilter("ignore", cl.CompilerWarning)  # clspv says what it rounds
random = np.random.default_rng(12)

MATMUL = """
#define TILE 16
kernel void matmul(global const float* a, global const float* b, global float* c, int n) {
    local float left[TILE][TILE], right[TILE][TILE];
    int x = get_global_id(0), y = get_global_id(1), i = get_local_id(0), j = get_local_id(1);
    float sum = 0;
    for (int k = 0; k < n; k += TILE) {
        left[j][i] = a[y * n + k + i];
        right[j][i] = b[(k + j) * n + x];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int t = 0; t < TILE; ++t) sum += left[j][t] * right[t][i];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[y * n + x] = sum;
}
"""
BODIES = """
kernel void forces(global const float4* at, global float4* out, int count) {
    int i = get_global_id(0);
    float4 own = at[i], sum = 0;
    for (int j = 0; j < count; ++j) {
        float4 way = at[j] - own;
        float inverse = rsqrt(dot(way.xyz, way.xyz) + 0.01f);
        sum.xyz += way.xyz * (at[j].w * inverse * inverse * inverse);
    }
    out[i] = sum;
}
"""
MANDELBROT = """
kernel void steps(global int* out, int width, int most) {
    int x = get_global_id(0), y = get_global_id(1), step = 0;
    float cr = x * (3.0f / width) - 2.0f, ci = y * (3.0f / width) - 1.5f, zr = 0, zi = 0;
    for (; step < most && zr * zr + zi * zi < 4.0f; ++step) {
        float real = zr * zr - zi * zi + cr;
        zi = 2 * zr * zi + ci;
        zr = real;
    }
    out[y * width + x] = step;
}
"""
HISTOGRAM = """
kernel void histogram(global const uchar* in, global uint* bins, int count) {
    local uint own[256];
    own[get_local_id(0)] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = get_global_id(0); i < count; i += get_global_size(0)) atomic_inc(own + in[i]);
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_add(bins + get_local_id(0), own[get_local_id(0)]);
}
"""
BLUR = """
constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
kernel void blur(read_only image2d_t in, write_only image2d_t out) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    float4 sum = 0;
    for (int y = -1; y <= 1; ++y)
        for (int x = -1; x <= 1; ++x) sum += read_imagef(in, nearest, at + (int2)(x, y));
    write_imagef(out, at, sum / 9);
}
"""


def kernel_of(queue, source, name):
    return getattr(cl.Program(queue.context, source).build(), name)


def array_of(queue, values):
    return cl.array.to_device(queue, np.ascontiguousarray(values))


def saxpy():
    x, y = (random.standard_normal(1 << 22).astype(np.float32) for _ in range(2))

    def make(queue):
        a, b, out = array_of(queue, x), array_of(queue, y), cl.array.empty(queue, x.shape, np.float32)
        kernel = cl.elementwise.ElementwiseKernel(queue.context, "float f, float *x, float *y, float *out", "out[i] = f * x[i] + y[i]")
        return lambda: kernel(np.float32(2.5), a, b, out), out.get

    return make, np.float32(2.5) * x + y, 1e-6


def dot():
    x, y = (random.uniform(0, 1, 1 << 22).astype(np.float32) for _ in range(2))

    def make(queue):
        a, b = array_of(queue, x), array_of(queue, y)
        kernel = cl.reduction.ReductionKernel(queue.context, np.float32, neutral="0", reduce_expr="a+b", map_expr="x[i]*y[i]",
                                              arguments="__global const float *x, __global const float *y")
        return lambda: kernel(a, b).get(), kernel(a, b).get

    return make, np.dot(x.astype(np.float64), y), 1e-5


def scan():
    x = random.integers(0, 100, 1 << 21, dtype=np.int32)

    def make(queue):
        a, out = array_of(queue, x), cl.array.empty(queue, x.shape, np.int32)
        kernel = cl.scan.GenericScanKernel(queue.context, np.int32, arguments="__global const int *x, __global int *out", input_expr="x[i]",
                                           scan_expr="a+b", neutral="0", output_statement="out[i] = item;")
        return lambda: kernel(a, out), out.get

    return make, np.cumsum(x, dtype=np.int32), 0


def sort():
    x = random.integers(0, 1 << 31, 1 << 18, dtype=np.int32)

    def make(queue):
        a, work = array_of(queue, x), cl.array.empty(queue, x.shape, np.int32)
        kernel = cl.bitonic_sort.BitonicSort(queue.context)

        def run():
            cl.enqueue_copy(queue, work.data, a.data)
            kernel(work)

        return run, work.get

    return make, np.sort(x), 0


def matmul():
    n = 512
    x, y = (random.standard_normal((n, n)).astype(np.float32) for _ in range(2))

    def make(queue):
        a, b, out = array_of(queue, x), array_of(queue, y), cl.array.empty(queue, x.shape, np.float32)
        kernel = kernel_of(queue, MATMUL, "matmul")
        return lambda: kernel(queue, (n, n), (16, 16), a.data, b.data, out.data, np.int32(n)), out.get

    return make, x @ y, 1e-5


def bodies():
    count = 4096
    x = random.uniform(-1, 1, (count, 4)).astype(np.float32)
    way = x[None, :, :3].astype(np.float64) - x[:, None, :3]
    weight = x[None, :, 3] / (np.sum(way * way, axis=2) + 0.01) ** 1.5
    expected = np.concatenate([np.einsum("ij,ijk->ik", weight, way), np.zeros((count, 1))], axis=1)

    def make(queue):
        a, out = array_of(queue, x), cl.array.empty(queue, x.shape, np.float32)
        kernel = kernel_of(queue, BODIES, "forces")
        return lambda: kernel(queue, (count,), (64,), a.data, out.data, np.int32(count)), out.get

    return make, expected, 1e-4


def mandelbrot():
    width, most = 1024, 256
    axis = np.arange(width, dtype=np.float32) * np.float32(3 / width)
    c = (axis - np.float32(2))[None, :] + np.complex64(1j) * (axis - np.float32(1.5))[:, None]
    z, expected = np.zeros_like(c), np.zeros(c.shape, np.int32)
    for _ in range(most):
        inside = z.real * z.real + z.imag * z.imag < 4
        expected += inside
        z = np.where(inside, z * z + c, z)

    def make(queue):
        out = cl.array.empty(queue, c.shape, np.int32)
        kernel = kernel_of(queue, MANDELBROT, "steps")
        return lambda: kernel(queue, c.shape, (16, 16), out.data, np.int32(width), np.int32(most)), out.get

    return make, expected, 0, 0.01


def histogram():
    x = random.integers(0, 256, 1 << 24).astype(np.uint8)

    def make(queue):
        a, bins = array_of(queue, x), cl.array.empty(queue, 256, np.uint32)
        kernel = kernel_of(queue, HISTOGRAM, "histogram")

        def run():
            bins.fill(0)
            kernel(queue, (256 * 64,), (256,), a.data, bins.data, np.int32(x.size))

        return run, bins.get

    return make, np.bincount(x, minlength=256), 0


def blur():
    height, width = 768, 1024
    x = random.uniform(0, 1, (height, width, 4)).astype(np.float32)
    padded = np.pad(x, ((1, 1), (1, 1), (0, 0)), mode="edge")
    expected = sum(padded[j:j + height, i:i + width].astype(np.float64) for j in range(3) for i in range(3)) / 9

    def make(queue):
        form = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.FLOAT)
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        source = cl.create_image(queue.context, flags, form, shape=(width, height), hostbuf=x)
        out = cl.create_image(queue.context, cl.mem_flags.WRITE_ONLY, form, shape=(width, height))
        kernel = kernel_of(queue, BLUR, "blur")

        def result():
            values = np.empty_like(x)
            cl.enqueue_copy(queue, values, out, origin=(0, 0), region=(width, height))
            return values

        return lambda: kernel(queue, (width, height), (16, 16), source, out), result

    return make, expected, 1e-6


def transform(shape, dimensions, real=False):
    x = random.standard_normal(shape).astype(np.float32)
    if not real:
        x = x + 1j * random.standard_normal(shape).astype(np.float32)
    axes = tuple(range(len(shape) - dimensions, len(shape)))
    expected = (np.fft.rfftn if real else np.fft.fftn)(x, axes=axes)

    def make(queue):
        a, out = array_of(queue, x), cl.array.empty(queue, expected.shape, np.complex64)
        plan = VkFFTApp(x.shape, x.dtype, queue, ndim=dimensions, inplace=False, r2c=real)
        return lambda: plan.fft(a, out), out.get

    return make, expected, 1e-5


CASES = {
    "saxpy, 4 M": saxpy, "dot, 4 M": dot, "scan, 2 M": scan, "bitonic sort, 256 K": sort, "matmul, 512": matmul, "n-body, 4096": bodies,
    "Mandelbrot, 1024": mandelbrot, "histogram, 16 M": histogram, "image blur": blur,
    "VkFFT 1D, 1024 x 1024": lambda: transform((1024, 1024), 1), "VkFFT 1D, 512 x 2187": lambda: transform((512, 2187), 1),
    "VkFFT 1D, 64 x 10007": lambda: transform((64, 10007), 1), "VkFFT 2D, 1024 x 1024": lambda: transform((1024, 1024), 2),
    "VkFFT 3D, 128": lambda: transform((128, 128, 128), 3), "VkFFT 2D real, 1024 x 1024": lambda: transform((1024, 1024), 2, True),
}


def queue_of(platform: str):
    device = next(p for p in cl.get_platforms() if p.name == platform).get_devices()[0]
    return cl.CommandQueue(cl.Context([device]))


def seconds_and_result(queue, make):
    run, result = make(queue)

    def whole():
        run()
        queue.finish()

    whole()
    values = result()
    return values, case_runner.measured(whole)


def close(values, expected, tolerance, share=0.0):
    if np.iscomplexobj(expected):
        values, expected = (np.stack([part.real, part.imag]) for part in (values, expected))
    return case_runner.is_close(values, expected, tolerance, share)


def peaks():
    """clpeak's best figure of each of its sections. It checks no results, so a case is right if it has that figure."""
    sections = {"Global memory bandwidth": "GB of memory read", "Single-precision": "GFLOP of float",
                "Integer compute (": "billion operations of int"}
    platform = [platform.name for platform in cl.get_platforms()].index("clvk")
    command = [FOLDER / "debian/usr/bin/clpeak", "-p", str(platform), "--global-bandwidth", "--compute-sp", "--compute-integer"]
    done = subprocess.run(command, env={**os.environ, "LD_LIBRARY_PATH": str(FOLDER / "opencl")}, capture_output=True, text=True, check=False,
                          timeout=600)
    for title, unit in sections.items():
        found = re.search(re.escape(title) + r"[^\n]*\n((?: +\w+ +: [\d.]+\n)+)", done.stdout)
        figures = [float(figure) for figure in re.findall(r": ([\d.]+)", found[1])] if found else []
        if figures:
            case_runner.report(f"clpeak, a {unit}", right=True, seconds=1 / max(figures))
        else:
            case_runner.report_error(f"clpeak, a {unit}", RuntimeError(f"no figures: {done.stderr[-100:] or done.stdout[-100:]}"))


def main():
    devices = {name: queue_of(platform) for name, platform in (("clvk", "clvk"), ("pocl", "Portable Computing Language"))}
    for case, function in CASES.items():
        try:
            make, expected, *tolerance = function()
            values, times = seconds_and_result(devices["clvk"], make)
            right = close(values, expected, *tolerance)
        except Exception as error:  # whatever a client raises is its answer
            case_runner.report_error(case, error)
            continue
        try:
            if not case_runner.ONCE:
                times["cpu_seconds"] = seconds_and_result(devices["pocl"], make)[1]["seconds"]
        except Exception as error:
            print(f"{case}: PoCL: {error}", file=sys.stderr)
        case_runner.report(case, right=right, **times)
    if not case_runner.ONCE:
        peaks()


if __name__ == "__main__":
    main()
