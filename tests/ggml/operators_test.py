"""Operators and types of the checklist in docs/ggml.md, each beside ggml's own CPU backend; test-backend-ops
(tools/clients/backend_ops.py) goes through all cases, which takes a quarter of an hour.

Environment: as of backend_test.py.
"""

import os
import sys
import unittest
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parent))
from ggml_library import BF16, F16, F32, I8, I16, I32, NUMPY, Ggml  # noqa: E402  (the folder must be known first)

HOST = Path(os.environ["FORNAX_GGML_HOST"])
NEOX = 2
UNARY = "abs cos dup elu exp gelu neg relu sigmoid silu sin sqr tanh".split()


def to_bf16(array):
    return (np.ascontiguousarray(array, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def from_bits(kind, array):
    return (array.astype(np.uint32) << 16).view(np.float32) if kind == BF16 else array


class Operators(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ggml = ggml = Ggml(HOST)
        registry = ggml.backend_load(os.environ["FORNAX_GGML_BACKEND"].encode())
        cls.device = ggml.backend_reg_dev_get(registry, 0)
        assert ggml.backend_load(str(HOST / "libggml-cpu-x64.so").encode())
        cls.backends = [ggml.backend_dev_init(cls.device, None), ggml.backend_init_by_type(0, None)]

    def setUp(self):
        self.random = np.random.default_rng(3)

    def floats(self, *shape):
        return self.random.standard_normal(shape).astype(np.float32)

    def check(self, build, *arrays, kinds=None, out=F32, tolerance=2e-3):
        """`build` makes the result from tensors of the arrays, whose last axis is ggml's first."""
        ggml = self.ggml
        kinds = kinds or [{np.dtype(np.int32): I32}.get(array.dtype, F32) for array in arrays]
        results = []
        for backend in self.backends:
            context = ggml.context()
            tensors = [ggml.tensor(context, kind, *reversed(array.shape)) for kind, array in zip(kinds, arrays)]
            result = build(context, *tensors)
            if backend is self.backends[0]:
                self.assertTrue(ggml.backend_dev_supports_op(self.device, result))
            graph = ggml.graph(context, result)
            buffer = ggml.backend_alloc_ctx_tensors(context, backend)
            for tensor, kind, array in zip(tensors, kinds, arrays):
                ggml.set(tensor, to_bf16(array) if kind == BF16 else array.astype(NUMPY[kind]))
            self.assertEqual(ggml.backend_graph_compute(backend, graph), 0)
            size = ggml.nbytes(result) // np.dtype(NUMPY[out]).itemsize
            results.append(from_bits(out, ggml.get(result, out, (size,))))
            ggml.backend_buffer_free(buffer)
            ggml.free(context)
        ours, expected = (np.asarray(result, np.float64) for result in results)
        self.assertTrue(np.isfinite(expected).all())
        self.assertGreater(np.abs(expected).max(), 0)
        np.testing.assert_allclose(ours, expected, rtol=tolerance, atol=tolerance)

    def test_elementwise(self):
        ggml = self.ggml
        x, y = self.floats(3, 4, 7), self.floats(3, 4, 7)
        for name in UNARY:
            with self.subTest(name):
                self.check(getattr(ggml, name), x)
        for name in ("sqrt", "log"):
            with self.subTest(name):
                self.check(getattr(ggml, name), np.abs(x) + 0.5)
        for name in ("add", "sub", "mul", "div"):
            with self.subTest(name):
                self.check(getattr(ggml, name), x, np.abs(y) + 0.5)
                self.check(getattr(ggml, name), x, np.abs(y[:1, :, :1]) + 0.5)  # repeated
        for factor in (0.5, -3.0):
            self.check(lambda c, a, factor=factor: ggml.scale(c, a, factor), x)
        for low, high in ((-0.5, 0.25), (0.0, 1.0)):
            self.check(lambda c, a, low=low, high=high: ggml.clamp(c, a, low, high), x)

    def test_products(self):
        ggml = self.ggml
        self.check(ggml.mul_mat, self.floats(3, 4), self.floats(2, 4))
        # Rows of the second operand share matrices of the first.
        self.check(ggml.mul_mat, self.floats(2, 17, 32), self.floats(4, 5, 32))
        # The CPU backend rounds the second operand to the first one's type.
        for kind, tolerance in ((F16, 2e-2), (BF16, 0.1)):
            self.check(ggml.mul_mat, self.floats(24, 64), self.floats(9, 64), kinds=[kind, F32], tolerance=tolerance)

    def test_along_rows(self):
        ggml = self.ggml
        x = self.floats(2, 3, 5, 33)
        for epsilon in (1e-6, 0.5):
            self.check(lambda c, a, e=epsilon: ggml.norm(c, a, e), x)
            self.check(lambda c, a, e=epsilon: ggml.rms_norm(c, a, e), x)
        self.check(ggml.soft_max, x)
        self.check(ggml.sum_rows, x)
        self.check(ggml.argmax, x[0, 0], out=I32)
        mask = np.where(self.random.random((5, 33)) < 0.3, -1e4, 0).astype(np.float32)
        for kind in (F32, F16):
            for scale, bias in ((1.0, 0.0), (0.125, 0.0), (0.5, 8.0)):
                self.check(lambda c, a, m, s=scale, b=bias: ggml.soft_max_ext(c, a, m, s, b), x[:1], mask,
                           kinds=[F32, kind])
        labels = self.random.integers(0, 4, 40).astype(np.int32)
        self.check(ggml.count_equal, labels, self.random.integers(0, 4, 40).astype(np.int32), out=I32)
        shares = np.abs(self.floats(5, 33)) + 0.1
        self.check(ggml.cross_entropy_loss, self.floats(5, 33), shares / shares.sum(-1, keepdims=True))

    def test_moves(self):
        ggml = self.ggml
        x = self.floats(3, 4, 6)
        self.check(lambda c, a: ggml.cont(c, ggml.transpose(c, a)), x)
        for order in ((0, 2, 1, 3), (1, 2, 0, 3), (2, 0, 1, 3)):
            self.check(lambda c, a, order=order: ggml.cont(c, ggml.permute(c, a, *order)), x)
        self.check(lambda c, a: ggml.sqr(c, ggml.reshape_2d(c, a, 8, 9)), x)
        self.check(lambda c, a: ggml.sqr(c, ggml.view_2d(c, a, 3, 5, 24, 28)), x)

    def test_rope(self):
        """Modes, numbers of dimensions, bases and scales are honoured."""
        ggml = self.ggml
        x, places = self.floats(6, 4, 32), np.array([0, 1, 5, 9, 100, 101], np.int32)
        for mode in (0, NEOX):
            for dimensions in (32, 16):
                for base, scale in ((1e4, 1.0), (5e5, 0.25)):
                    self.check(lambda c, a, p, m=mode, d=dimensions, b=base, s=scale: ggml.rope_ext(
                        c, a, p, None, d, m, 0, b, s, 0.0, 1.0, 32.0, 1.0), x, places)
        self.check(lambda c, a, p: ggml.rope_ext(c, a, p, None, 32, 0, 64, 1e4, 0.25, 1.0, 1.0, 32.0, 1.0), x, places)

    def test_windows(self):
        ggml = self.ggml
        for stride, padding, dilation in ((1, 1, 1), (2, 0, 1), (1, 2, 2)):
            self.check(lambda c, k, d, s=stride, p=padding, e=dilation: ggml.conv_2d(c, k, d, s, s, p, p, e, e),
                       self.floats(4, 3, 3, 3), self.floats(2, 3, 10, 9), kinds=[F16, F32], tolerance=1e-2)

    def test_types(self):
        """Conversions between all types of numbers that ggml converts, copies of the others."""
        ggml = self.ggml
        x = self.floats(5, 32) * 3
        for kind in (F32, F16, BF16):
            for to in (F32, F16, BF16):
                with self.subTest(kind=kind, to=to):
                    self.check(lambda c, a, to=to: ggml.cast(c, a, to), x, kinds=[kind], out=to, tolerance=1e-2)
        self.check(lambda c, a: ggml.cast(c, a, I32), x, out=I32, tolerance=0)
        whole = np.round(x * 10)
        self.check(lambda c, a: ggml.cast(c, a, F32), whole, kinds=[I32])
        for kind in (I8, I16, I32):
            with self.subTest(kind=kind):
                self.check(lambda c, a: ggml.cont(c, ggml.transpose(c, a)), whole, kinds=[kind], out=kind, tolerance=0)
        for kinds in ([F16, F16], [F16, F32], [BF16, BF16]):
            with self.subTest(kinds=kinds):
                self.check(ggml.add, x, x[:, ::-1], kinds=kinds, out=kinds[0], tolerance=2e-2)


if __name__ == "__main__":
    unittest.main()
