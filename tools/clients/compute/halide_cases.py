"""Halide: pipelines with a schedule for GPUs on its Vulkan target, compared with its CPU target and timed on both."""

import case_runner
import halide as hl
import numpy as np

GPU = hl.Target("host-vulkan-vk_v13-vk_int8-vk_int16-vk_int64-vk_float16")
CPU = hl.Target("host")
kept = []  # arrays that Halide's buffers only refer to
x, y, xo, yo, xi, yi = (hl.Var(name) for name in ("x", "y", "xo", "yo", "xi", "yi"))


def buffer_of(array):
    kept.append(np.ascontiguousarray(array))
    return hl.Buffer(kept[-1])


def on_gpu(function, width=16, height=8):
    function.gpu_tile(x, y, xo, yo, xi, yi, width, height)


def on_cpu(function):
    function.vectorize(x, 16).parallel(y)


def images():
    random = np.random.default_rng(7)
    return random.uniform(0, 1, (1024, 1536)).astype(np.float32)


def pointwise(gpu):
    picture = buffer_of(images())
    out = hl.Func("pointwise")
    out[x, y] = hl.sqrt(picture[x, y]) * 0.75 + hl.sin(picture[x, y])
    on_gpu(out) if gpu else on_cpu(out)
    return out, (1536, 1024), hl.Float(32)


def blur(gpu):
    picture = hl.BoundaryConditions.repeat_edge(buffer_of(images()))
    across, out = hl.Func("across"), hl.Func("blur")
    across[x, y] = (picture[x - 1, y] + picture[x, y] + picture[x + 1, y]) / 3
    out[x, y] = (across[x, y - 1] + across[x, y] + across[x, y + 1]) / 3
    if gpu:
        on_gpu(out)
        across.compute_at(out, xo).gpu_threads(x, y)
    else:
        on_cpu(out)
        across.compute_at(out, y).vectorize(x, 16)
    return out, (1536, 1024), hl.Float(32)


def bytes_blur(gpu):
    """Sums of bytes in 16 bits."""
    picture = hl.BoundaryConditions.repeat_edge(buffer_of((images() * 255).astype(np.uint8)))
    wide, out = hl.Func("wide"), hl.Func("bytes_blur")
    wide[x, y] = hl.cast(hl.UInt(16), picture[x, y])
    total = sum((wide[x + i, y + j] for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)), wide[x, y])
    out[x, y] = hl.cast(hl.UInt(8), total / hl.cast(hl.UInt(16), 9))
    on_gpu(out) if gpu else on_cpu(out)
    return out, (1536, 1024), hl.UInt(8)


def matmul(gpu):
    n = 512
    random = np.random.default_rng(8)
    a, b = (buffer_of(random.standard_normal((n, n), np.float32)) for _ in range(2))
    product, out = hl.Func("product"), hl.Func("matmul")
    k = hl.RDom([(0, n)])
    product[x, y] = 0.0
    product[x, y] += a[k.x, y] * b[x, k.x]
    out[x, y] = product[x, y]
    if gpu:
        out.gpu_tile(x, y, xo, yo, xi, yi, 32, 16)
        product.compute_at(out, xi)
    else:
        tile_x, tile_y = hl.Var("tile_x"), hl.Var("tile_y")
        out.tile(x, y, tile_x, tile_y, xi, yi, 32, 8).vectorize(xi, 16).parallel(tile_y)
        product.compute_at(out, tile_x).vectorize(x, 16)
        product.update().reorder(x, y, k.x).vectorize(x, 16).unroll(x).unroll(y)
    return out, (n, n), hl.Float(32)


def histogram(gpu):
    """One for each row, which one invocation adds up."""
    picture = buffer_of((images() * 255).astype(np.uint8))
    out = hl.Func("histogram")
    r = hl.RDom([(0, 1536)])
    out[x, y] = hl.cast(hl.Int(32), 0)
    out[hl.cast(hl.Int(32), picture[r.x, y]), y] += 1
    if gpu:
        on_gpu(out)
        out.update().gpu_tile(y, yo, yi, 8)
    else:
        out.update().parallel(y, 16)
    return out, (256, 1024), hl.Int(32)


def halves(gpu):
    """Arithmetic of f16."""
    picture = buffer_of(images())
    out = hl.Func("halves")
    value = hl.cast(hl.Float(16), picture[x, y])
    out[x, y] = hl.cast(hl.Float(32), value * hl.cast(hl.Float(16), hl.f32(0.5)) + value)
    on_gpu(out) if gpu else on_cpu(out)
    return out, (1536, 1024), hl.Float(32)


# Each with the tolerance of case_runner.is_close.
CASES = {"pointwise": (pointwise, 1e-5), "blur": (blur, 1e-6), "bytes blur": (bytes_blur, 0), "matmul": (matmul, 1e-5),
         "histogram": (histogram, 0), "halves": (halves, 1e-3)}


def on(case, gpu):
    """A function that runs a case and waits, and its result's."""
    function, sizes, element = CASES[case][0](gpu)
    function.compile_jit(GPU if gpu else CPU)
    out = hl.Buffer(element, list(sizes))

    def run():
        function.realize(out)
        if gpu:
            out.device_sync()

    def result():
        out.copy_to_host()
        return np.array(out)

    return run, result


def main():
    for case, (_, tolerance) in CASES.items():
        try:
            run, result = on(case, False)
            run()
            expected = result()
            cpu_seconds = case_runner.measure(run)
            run, result = on(case, True)
            run()
            right = case_runner.is_close(result(), expected, tolerance)
            case_runner.report(case, right=right, **case_runner.measured(run), cpu_seconds=cpu_seconds)
        except Exception as error:  # whatever a client raises is its answer
            case_runner.report_error(case, error)


if __name__ == "__main__":
    main()
