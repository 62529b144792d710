"""Taichi on ti.vulkan: kernels of its users' kinds, compared with ti.cpu and timed on both."""

import case_runner
import numpy as np
import taichi as ti


def matmul():
    n = 512
    random = np.random.default_rng(1)
    a, b, c = (ti.ndarray(ti.f32, (n, n)) for _ in range(3))
    a.from_numpy(random.standard_normal((n, n)).astype(np.float32))
    b.from_numpy(random.standard_normal((n, n)).astype(np.float32))

    @ti.kernel
    def multiply(a: ti.types.ndarray(ndim=2), b: ti.types.ndarray(ndim=2), c: ti.types.ndarray(ndim=2)):
        for i, j in c:
            total = 0.0
            for k in range(n):
                total += a[i, k] * b[k, j]
            c[i, j] = total

    return lambda: multiply(a, b, c), c.to_numpy


def julia():
    n = 320
    pixels = ti.field(ti.f32, (n * 2, n))

    @ti.kernel
    def paint(t: ti.f32):
        for i, j in pixels:
            c = ti.Vector([-0.8, ti.cos(t) * 0.2])
            z = ti.Vector([i / n - 1.0, j / n - 0.5]) * 2.0
            iterations = 0
            while z.norm() < 20.0 and iterations < 50:
                z = ti.Vector([z[0] * z[0] - z[1] * z[1], z[0] * z[1] * 2.0]) + c
                iterations += 1
            pixels[i, j] = 1.0 - iterations * 0.02

    return lambda: paint(0.9), pixels.to_numpy


def heat():
    n = 512
    grids = [ti.field(ti.f32, (n, n)) for _ in range(2)]
    start = np.zeros((n, n), np.float32)
    start[100:300, 200:260] = 1.0

    @ti.kernel
    def diffuse(source: ti.template(), target: ti.template()):
        for i, j in source:
            if 0 < i < n - 1 and 0 < j < n - 1:
                target[i, j] = 0.25 * (source[i - 1, j] + source[i + 1, j] + source[i, j - 1] + source[i, j + 1])

    def run():
        grids[0].from_numpy(start)
        grids[1].fill(0)
        for _ in range(20):
            diffuse(grids[0], grids[1])
            diffuse(grids[1], grids[0])

    return run, grids[0].to_numpy


def scatter():
    """Particles add their mass to the cells of a grid, with float atomics."""
    count, n = 1 << 16, 128
    places = ti.Vector.field(2, ti.f32, count)
    grid = ti.field(ti.f32, (n, n))
    places.from_numpy(np.random.default_rng(2).uniform(0.05, 0.95, (count, 2)).astype(np.float32))

    @ti.kernel
    def deposit():
        for i, j in grid:
            grid[i, j] = 0.0
        for p in places:
            base = ti.cast(places[p] * n - 0.5, ti.i32)
            offset = places[p] * n - base.cast(ti.f32)
            weights = [0.5 * (1.5 - offset) ** 2, 0.75 - (offset - 1) ** 2, 0.5 * (offset - 0.5) ** 2]
            for i, j in ti.static(ti.ndrange(3, 3)):
                grid[base + ti.Vector([i, j])] += weights[i][0] * weights[j][1]

    return deposit, grid.to_numpy


def n_body():
    count = 4096
    places, forces = (ti.Vector.field(3, ti.f32, count) for _ in range(2))
    places.from_numpy(np.random.default_rng(3).standard_normal((count, 3)).astype(np.float32))

    @ti.kernel
    def attract():
        for i in places:
            force = ti.Vector([0.0, 0.0, 0.0])
            for j in range(count):
                away = places[j] - places[i]
                force += away / (away.norm_sqr() + 0.01) ** 1.5
            forces[i] = force

    return attract, forces.to_numpy


def reduction():
    count = 1 << 22
    values = ti.field(ti.i32, count)
    total = ti.field(ti.i32, ())
    values.from_numpy(np.random.default_rng(4).integers(-100, 100, count, np.int32))

    @ti.kernel
    def add_up():
        total[None] = 0
        for i in values:
            total[None] += values[i] * (i % 7)

    return add_up, total.to_numpy


def printing():
    """printf of Taichi's kernels, and asserts of bounds, go through storage buffers of their own."""
    done = ti.field(ti.i32, 8)

    @ti.kernel
    def tell():
        for i in done:
            print("element", i)
            done[i] = i + 1

    return tell, done.to_numpy


# Each with the tolerance and the share of case_runner.is_close.
CASES = {"matmul": (matmul, 1e-5, 0), "julia": (julia, 1e-6, 0.02), "heat": (heat, 1e-5, 0), "scatter": (scatter, 1e-4, 0),
         "n-body": (n_body, 1e-4, 0), "reduction": (reduction, 0, 0), "printf": (printing, 0, 0)}


def on(arch, name, then):
    """Makes a case on an architecture and gives `then` a function that runs it and waits, and its result's."""
    ti.init(arch=arch, offline_cache=False, log_level=ti.ERROR, random_seed=7)
    assert ti.lang.impl.current_cfg().arch == arch, f"Taichi refused {arch}."
    run, result = CASES[name][0]()

    def run_and_wait():
        run()
        ti.sync()

    answer = then(run_and_wait, result)
    ti.reset()
    return answer


def once(run, result):
    run()
    return result()


def main():
    for name, (_, tolerance, share) in CASES.items():
        expected = on(ti.cpu, name, once)
        cpu_seconds = on(ti.cpu, name, lambda run, result: case_runner.measure(run))

        def judge(run, result):
            right = case_runner.is_close(once(run, result), expected, tolerance, share)
            case_runner.report(name, right=right, **case_runner.measured(run), cpu_seconds=cpu_seconds)

        try:
            on(ti.vulkan, name, judge)
        except Exception as error:  # whatever a client raises is its answer
            case_runner.report_error(name, error)


if __name__ == "__main__":
    main()
