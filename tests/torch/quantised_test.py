"""Quantised networks on Fornax, beside torch: the operators of PT2E, and weights of bytes and of four bits.

PYTHONPATH has the package, VK_DRIVER_FILES is the driver's manifest.
"""

import pathlib
import tempfile
import unittest

import torch
from torch import nn
from torch.ao.quantization.fx import _decomposed  # noqa: F401  (the operators of PT2E)

import fornax
import fornax.torch

PT2E = torch.ops.quantized_decomposed


def codes_of(weights, bits=8):
    """(codes, scale of each row) of a matrix."""
    most = 2 ** (bits - 1) - 1
    scales = weights.abs().amax(1) / most
    return torch.clamp(torch.round(weights / scales[:, None]), -most - 1, most).to(torch.int8), scales


class Quantised(nn.Module):
    """Two layers as PT2E writes them: activations of bytes, weights with a scale for each row."""

    def __init__(self, signed, depth=64, hidden=96):
        super().__init__()
        self.dtype = torch.int8 if signed else torch.uint8
        self.low, self.high = (-128, 127) if signed else (0, 127)
        self.zero = -3 if signed else 60
        for name, rows, columns in (("first", hidden, depth), ("second", 40, hidden)):
            codes, scales = codes_of(torch.randn(rows, columns))
            self.register_buffer(name, codes)
            self.register_buffer(f"{name}_scales", scales)
            self.register_buffer(f"{name}_zeros", torch.zeros(rows, dtype=torch.int64))
        self.register_buffer("bias", torch.randn(hidden))

    def rounded(self, x, scale):
        x = PT2E.quantize_per_tensor.default(x, scale, self.zero, self.low, self.high, self.dtype)
        return PT2E.dequantize_per_tensor.default(x, scale, self.zero, self.low, self.high, self.dtype)

    def weights(self, name):
        return PT2E.dequantize_per_channel.default(getattr(self, name), getattr(self, f"{name}_scales"),
                                                   getattr(self, f"{name}_zeros"), 0, -127, 127, torch.int8)

    def forward(self, x):
        y = nn.functional.linear(self.rounded(x, 0.04), self.weights("first"), self.bias)
        return nn.functional.linear(self.rounded(y.relu(), 0.3), self.weights("second"))


class QuantisedConvolution(nn.Module):
    def __init__(self):
        super().__init__()
        codes, scales = codes_of(torch.randn(24, 16 * 9))
        self.register_buffer("codes", codes.reshape(24, 16, 3, 3))
        self.register_buffer("scales", scales)
        self.register_buffer("zeros", torch.zeros(24, dtype=torch.int64))

    def forward(self, x):
        scale, zero = torch.tensor(0.03), torch.tensor(120)
        x = PT2E.quantize_per_tensor.tensor(x, scale, zero, 0, 255, torch.uint8)
        x = PT2E.dequantize_per_tensor.tensor(x, scale, zero, 0, 255, torch.uint8)
        w = PT2E.dequantize_per_channel.default(self.codes, self.scales, self.zeros, 0, -127, 127, torch.int8)
        return nn.functional.conv2d(x, w, padding=1)


class WeightOnly(nn.Module):
    """A product by weights of bytes or of four bits, in one of the forms in which networks write it."""

    def __init__(self, form, depth=256, columns=192):
        super().__init__()
        self.form = form
        codes, scales = codes_of(torch.randn(columns, depth), 4 if form == "groups" else 8)
        self.register_buffer("codes", codes)
        self.register_buffer("scales", scales)
        self.register_buffer("group_scales", scales[:, None] * torch.rand(columns, depth // 32))

    def forward(self, x):
        if self.form == "behind":
            return nn.functional.linear(x, self.codes.to(x.dtype)) * self.scales
        if self.form == "before":
            return nn.functional.linear(x, self.codes.to(x.dtype) * self.scales[:, None])
        if self.form == "packed":
            return torch.ops.aten._weight_int8pack_mm(x, self.codes, self.scales)
        weights = PT2E.dequantize_per_channel_group.default(self.codes, self.group_scales, None, -8, 7, torch.int8, 32,
                                                            torch.float32)
        return nn.functional.linear(x, weights)


class Networks(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(7)

    def plan_of(self, model, x, tolerance):
        """The plan's text and the bytes of its constants, of a model that computes what torch does."""
        reports = []
        backend = fornax.torch.Backend(strict=True, options={"cache": False},
                                       observe=lambda name, module, report: reports.append(report))
        compiled = torch.compile(model.eval(), backend=backend, fullgraph=True)
        with torch.no_grad():
            expected = model(x)
            torch.testing.assert_close(compiled(x), expected, rtol=0, atol=tolerance * expected.abs().max().item())
        return reports[-1]["plan"], reports[-1]["memory"]["constants"]

    def test_products_of_bytes(self):
        for signed in (False, True):
            torch._dynamo.reset()
            plan, constants = self.plan_of(Quantised(signed), torch.randn(5, 64), 1e-5)
            self.assertIn("cast i32", plan)
            self.assertLess(constants, 2 * (64 * 96 + 96 * 48))

    def test_convolutions_of_bytes(self):
        self.assertIn("cast i32", self.plan_of(QuantisedConvolution(), torch.randn(2, 16, 9, 9), 1e-5)[0])

    def test_weights_alone(self):
        # A byte or half of one for each weight, and scales.
        for form, most in (("behind", 1.3), ("before", 1.3), ("packed", 1.3), ("groups", 0.7)):
            for rows in (1, 20):
                torch._dynamo.reset()
                with self.subTest(form=form, rows=rows):
                    plan, constants = self.plan_of(WeightOnly(form), torch.randn(rows, 256), 2e-5)
                    self.assertIn("constant u32[12,", plan)
                    self.assertLess(constants, most * 256 * 192)

    def test_small_matrices_are_floats(self):
        self.assertNotIn("u32[", self.plan_of(WeightOnly("behind", 32, 48), torch.randn(2, 32), 1e-5)[0])

    def test_bytes_that_are_no_weights(self):
        class Table(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("rows", torch.randint(-128, 127, (300, 64), dtype=torch.int8))

            def forward(self, x):
                return self.rows.to(torch.float32)[x] + self.rows.float().sum(0)

        self.plan_of(Table(), torch.tensor([0, 299, 5]), 1e-6)

    def test_exported(self):
        for model, x in ((Quantised(True), torch.randn(5, 64)), (WeightOnly("groups"), torch.randn(3, 256))):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "model.fnx"
                fornax.torch.export(model.eval(), (x,), path)
                with torch.no_grad():
                    expected = model(x)
                torch.testing.assert_close(torch.from_numpy(fornax.load(path, cache=False)(x)), expected, rtol=0,
                                           atol=2e-5 * expected.abs().max().item())


if __name__ == "__main__":
    unittest.main()
