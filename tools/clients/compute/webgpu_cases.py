"""The inputs, sizes and expected results of kernels/*.wgsl, which wgpu-py and Dawn run alike.

As a program it writes them into a folder, for clients in other languages: NAME.a, NAME.b (inputs), NAME.expected (raw
little-endian words) and cases.json.
"""

import json
import sys
from pathlib import Path

import numpy as np

KERNELS = Path(__file__).resolve().parent / "kernels"
MANDELBROT_LIMIT = 200


def _mandelbrot(a, b):
    x, y = np.zeros((b.size, a.size), np.float32), np.zeros((b.size, a.size), np.float32)
    counts = np.zeros(x.shape, np.uint32)
    inside = np.ones(x.shape, bool)
    for _ in range(MANDELBROT_LIMIT):
        inside &= x * x + y * y < 4
        counts += inside
        x, y = np.where(inside, x * x - y * y + a[None, :], x), np.where(inside, 2 * x * y + b[:, None], y)
    return counts


def cases():
    """(name, workgroups, input a, input b, expected result, tolerance, share) of each kernel, as in case_runner.py."""
    random = np.random.default_rng(5)
    a = random.standard_normal((512, 512), np.float32)
    b = random.standard_normal((512, 512), np.float32)
    yield "matmul", (32, 32, 1), a, b, a @ b, 1e-5, 0
    words = random.integers(0, 2**32, 1 << 20, np.uint32)
    key = np.array([0x5a5a1234], np.uint32)
    yield "histogram", (256, 1, 1), words, key, np.bincount(
        (words ^ key).view(np.uint8), minlength=256).astype(np.uint32), 0, 0
    columns = np.linspace(-2, 0.5, 512, dtype=np.float32)
    rows = np.linspace(-1.2, 1.2, 512, dtype=np.float32)
    yield "mandelbrot", (64, 64, 1), columns, rows, _mandelbrot(columns, rows), 0, 0.02
    one = np.array([1], np.uint32)
    sums = np.cumsum((words % 1000 + 1).reshape(-1, 1024), axis=1, dtype=np.uint32)
    yield "scan", (1024, 1, 1), words % 1000, one, sums, 0, 0


def write(folder: Path):
    listed = []
    for name, workgroups, a, b, expected, tolerance, share in cases():
        for suffix, array in (("a", a), ("b", b), ("expected", expected)):
            (folder / f"{name}.{suffix}").write_bytes(np.ascontiguousarray(array).tobytes())
        listed.append({"name": name, "kernel": str(KERNELS / f"{name}.wgsl"), "workgroups": workgroups,
                       "floats": expected.dtype == np.float32, "tolerance": tolerance, "share": share})
    (folder / "cases.json").write_text(json.dumps(listed))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
