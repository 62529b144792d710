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


class OfConstants(nn.Module):
    """A function of x and constants."""

    def __init__(self, function, *constants):
        super().__init__()
        self.function = function
        self.names = [f"constant{place}" for place in range(len(constants))]
        for name, constant in zip(self.names, constants):
            self.register_buffer(name, constant)

    def forward(self, x):
        return self.function(x, *(getattr(self, name) for name in self.names))


def product_of_groups(group):
    """x times codes that have a scale and perhaps a zero point for each group, between -8 and 7."""
    def function(x, codes, scales, zeros=None):
        return nn.functional.linear(x, PT2E.dequantize_per_channel_group.default(
            codes, scales, zeros, -8, 7, torch.int8, group, torch.float32))
    return function


def integers(low, high, shape, dtype=torch.int8):
    return torch.randint(low, high, shape, dtype=dtype)


class BesideTorch(unittest.TestCase):
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


class Networks(BesideTorch):
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


class Constants(BesideTorch):
    """Constants of more elements than the builder computes with, and those that do not fit."""

    def test_great_matrices_stay_narrow(self):
        # More than 2^16 codes; and more than 2^16 scales and factors, of columns in blocks of 16.
        for form, depth, columns, most in (("groups", 512, 512, 0.7), ("before", 528, 1024, 1.4)):
            torch._dynamo.reset()
            with self.subTest(form=form):
                plan, constants = self.plan_of(WeightOnly(form, depth, columns), torch.randn(1, depth), 2e-5)
                self.assertIn("constant u32[", plan)
                self.assertLess(constants, most * depth * columns)

    def test_scales_and_zero_points_of_many_groups(self):
        # Products by torch's f16 are exact here.
        rows, depth = 1024, 1040
        groups = rows * depth // 16
        codes, zeros = integers(-8, 8, (rows, depth)), integers(-8, 8, (groups,), torch.int32)
        scales = integers(1, 16, (groups,)) / 64
        for of in (torch.float16, torch.float32):
            torch._dynamo.reset()
            with self.subTest(of=of):
                model = OfConstants(product_of_groups(16), codes, scales.to(of), zeros)
                plan, constants = self.plan_of(model, torch.randn(1, depth), 2e-5)
                self.assertIn("constant u32[", plan)
                self.assertLess(constants, 1.1 * rows * depth)

    def test_groups_longer_than_rows(self):
        model = OfConstants(product_of_groups(128), integers(-8, 8, (64, 32)), torch.rand(64, 1))
        self.plan_of(model, torch.randn(3, 32), 1e-5)

    def test_codes_outside_their_bounds(self):
        for codes, zeros in ((torch.full((16, 32), 20, dtype=torch.int8), None),
                             (integers(-8, 8, (16, 32)), torch.full((16, 2), 20))):
            torch._dynamo.reset()
            constants = [codes, torch.rand(16, 2) + 0.5] + ([] if zeros is None else [zeros])
            with self.subTest(zeros=zeros is not None):
                self.plan_of(OfConstants(product_of_groups(16), *constants), torch.randn(3, 32), 1e-5)

    def test_zero_points_outside_the_codes_type(self):
        def of_tensor(codes):
            return PT2E.dequantize_per_tensor.default(codes, 0.5, -5, 0, 255, torch.uint8)

        def of_channels(codes, zeros):
            return PT2E.dequantize_per_channel.default(codes, torch.tensor([0.5, 0.25]), zeros, 1, 0, 255, torch.uint8)

        codes = torch.tensor([[0, 10]], dtype=torch.uint8)
        for model in (OfConstants(of_tensor), OfConstants(of_channels, torch.tensor([300, -5]))):
            torch._dynamo.reset()
            with self.subTest(function=model.function.__name__):
                self.plan_of(model, codes, 0)

        def product(x, codes, scales, zeros):
            return nn.functional.linear(x, PT2E.dequantize_per_channel.default(codes, scales, zeros, 0, 0, 255,
                                                                              torch.uint8))

        torch._dynamo.reset()
        weights = [integers(0, 256, (128, 128), torch.uint8), torch.rand(128), integers(-400, 400, (128,), torch.int64)]
        constants = self.plan_of(OfConstants(product, *weights), torch.randn(3, 128), 1e-5)[1]
        self.assertLess(constants, 1.3 * 128 * 128)
        torch._dynamo.reset()
        model = Quantised(False)
        model.zero = -5
        self.plan_of(model, torch.randn(5, 64), 1e-5)

    def test_reciprocals_of_scales(self):
        # Each is halfway between two integers in one of the ways to round.
        def of_number(x):
            return PT2E.quantize_per_tensor.default(x, 0.03, 0, -128, 127, torch.int8)

        def of_tensor(x, scale):
            return PT2E.quantize_per_tensor.tensor(x, scale, torch.tensor(0), -128, 127, torch.int8)

        x = torch.tensor([-3.795, -3.735])
        for scale in (0.03, torch.tensor(0.03), torch.tensor(0.03, dtype=torch.float64)):
            torch._dynamo.reset()
            with self.subTest(scale=scale):
                self.plan_of(OfConstants(of_number) if isinstance(scale, float) else OfConstants(of_tensor, scale), x, 0)

        def of_channels(x, scales):
            return PT2E.quantize_per_channel.default(x, scales, torch.zeros(2, dtype=torch.int64), 1, -128, 127,
                                                     torch.int8)

        for of in (torch.float32, torch.float16):
            torch._dynamo.reset()
            with self.subTest(of=of):
                self.plan_of(OfConstants(of_channels, torch.tensor([0.03, 0.07]).to(of)), 2 * torch.randn(200, 2), 0)


if __name__ == "__main__":
    unittest.main()
