"""Numbers with a fraction that depend on open sizes, beside eager torch: one graph for all sizes, on the device as a whole.

PYTHONPATH has the package, VK_DRIVER_FILES is the driver's manifest.
"""

import copy
import math
import operator
import pathlib
import tempfile
import unittest
import warnings

import torch
from torch import nn
from torch._functorch.aot_autograd import aot_module_simplified

import fornax
import fornax.torch

SIZES = ((8, 5), (13, 7), (26, 6), (200, 3))
CLOSE = {torch.float16: {"rtol": 2e-3, "atol": 2e-3}}


class Floats(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(5)
        self.graphs = 0

    def compiled(self, function, strict=True):
        """The function, whose graphs torch hands over once."""
        chosen = fornax.torch.Backend(strict=strict, options={"cache": False})

        def counted(module, inputs, **keywords):
            self.graphs += 1
            return chosen(module, inputs, **keywords)

        return torch.compile(function, backend=counted, fullgraph=True, dynamic=True), chosen

    def check(self, function, dtype=torch.float32, sizes=SIZES, reason=None):
        """Compares with eager torch. `reason` is why torch computes a part, which no function needs without it."""
        torch._dynamo.reset()
        self.graphs = 0
        run, chosen = self.compiled(function, strict=reason is None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for size in sizes:
                x = torch.randn(size).to(dtype) if dtype.is_floating_point else torch.randint(-9, 9, size, dtype=dtype)
                got, wanted = run(x), function(x)
                torch.testing.assert_close(got, wanted, **CLOSE.get(dtype, {}))
                self.assertEqual(type(got), type(wanted))
        self.assertEqual(self.graphs, 1)
        self.assertEqual({text for _, text in chosen.fallbacks} & {reason}, {reason} - {None})
        return chosen

    def test_arithmetic(self):
        for function in (lambda x: x * (x.shape[0] / 3), lambda x: x + x.shape[1] / x.shape[0],
                         lambda x: x / (x.shape[0] / 3 - 0.7), lambda x: x - (0.25 + x.shape[0] / 7),
                         lambda x: x * -(x.shape[0] / 3), lambda x: x * abs(x.shape[0] / 3 - 2.1),
                         lambda x: x * max(x.shape[0] / 3, 1.7) + min(x.shape[1] / 7, 0.8),
                         lambda x: x * (float(x.shape[0]) * 0.3), lambda x: x * (1 / (x.shape[0] * x.shape[1])),
                         lambda x: x * ((x.shape[0] / 3) // 0.5)):
            for dtype in (torch.float32, torch.float64, torch.float16, torch.int64):
                self.check(function, dtype)

    def test_powers_and_functions(self):
        for function in (lambda x: x * x.shape[0] ** -0.5, lambda x: x * float(x.shape[1]) ** 3,
                         lambda x: x + 2.0 ** (x.shape[0] / 30), lambda x: x / math.sqrt(x.shape[1]),
                         lambda x: x * math.sqrt(x.shape[0] / 3), lambda x: x * math.cos(x.shape[0] / 3),
                         lambda x: x + math.log2(x.shape[1])):
            self.check(function)
            self.check(function, torch.float64)

    def test_arguments_of_operators(self):
        self.check(lambda x: torch.full((3,), x.shape[0] / 3))
        self.check(lambda x: (x > x.shape[0] / 30, x.clamp(max=x.shape[0] / 9), torch.where(x > 0, x, x.shape[0] / 3)))
        self.check(lambda x: (x > x.shape[0] / 3, x == x.shape[0] / 2), torch.int64)
        self.check(lambda x: torch.add(x, x, alpha=x.shape[0] / 3))
        self.check(lambda x: torch.linspace(0, x.shape[0] / 3, 7) + x[0, 0])
        self.check(lambda x: x ** (x.shape[0] / 4), sizes=((8, 5), (16, 5)))
        self.check(lambda x: x.abs() ** (x.shape[0] / 200))

    def test_numbers_of_integers(self):
        """What torch's integers are compared with is rounded to f32, and what f64 is compared with is not."""
        third = torch.tensor([1 / 3, float(torch.tensor(1 / 3))], dtype=torch.float64)
        run, _ = self.compiled(lambda x, y: (x == x.shape[0] / 6, y == y.shape[0] / 33554434))
        for count in (2, 4):
            x = third * (count / 2)
            y = torch.full((count + 1,), 1)
            for got, wanted in zip(run(x, y), (x == x.shape[0] / 6, y == y.shape[0] / 33554434)):
                self.assertEqual(got.tolist(), wanted.tolist())

    def test_rounded_to_sizes(self):
        for function in (lambda x: x[:int(x.shape[0] / 2)] * 2, lambda x: x[:math.floor(x.shape[0] / 3)] * 2,
                         lambda x: x[:math.ceil(x.shape[0] / 3)] * 2, lambda x: x[:int(x.shape[0] * 0.75)] * 2,
                         lambda x: x[:math.ceil(x.shape[0] * 0.375)] * 2,
                         lambda x: nn.functional.interpolate(x[None, None], scale_factor=1.5, mode="bilinear"),
                         lambda x: nn.functional.interpolate(x[None, None], scale_factor=(2.0, 1.25), mode="nearest")):
            self.check(function)

    def test_sizes_that_f64_rounds_otherwise(self):
        """0.3 is less than three tenths, and its products are rounded: quotients of whole numbers would be other sizes."""
        for function in (lambda x: x[:math.ceil(x.shape[0] * 0.3)] * 2, lambda x: x[:int(x.shape[0] * 0.7)] * 2):
            run, chosen = self.compiled(function, strict=False)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for rows in (10, 20, 30, 40, 70, 90, 100):
                    x = torch.randn(rows, 3)
                    torch.testing.assert_close(run(x), function(x))
            self.assertTrue(any("is not made of sums, products and quotients" in reason for _, reason in chosen.fallbacks))
            torch._dynamo.reset()

    def test_rounded_to_numbers(self):
        for function in (lambda x: x * math.ceil(x.shape[0] * 0.3), lambda x: x + math.floor(x.shape[0] * 1.1),
                         lambda x: x * round(x.shape[0] / 2), lambda x: x * int(x.shape[0] * 0.7),
                         lambda x: x * float(math.floor(x.shape[0] * 1.1))):
            self.check(function, sizes=((4, 5), (10, 3), (70, 3), (5, 2), (100, 2)))
            self.check(function, torch.int64)

    def test_what_torch_computes(self):
        """Such a number is an input of what is behind it."""
        self.assertGreater(self.check(lambda x: x * round(x.shape[0] / 3, 1),
                                      reason="its number depends on sizes by round").segments, 0)
        self.assertGreater(self.check(lambda x: x * (x.shape[0] / 3 % 0.5),
                                      reason="its number depends on sizes by mod").segments, 0)
        self.check(lambda x: nn.functional.elu(x, alpha=x.shape[0] / 30),
                   reason="its argument alpha is a number that a run computes")
        self.check(lambda x: x[:round(x.shape[0] / 2)] * 3,
                   reason="the size RoundToInt(IntTrueDiv(s77, 2)) is not made of sums, products and quotients")

    def test_divisions_that_torch_makes_tensors_of(self):
        chosen = self.check(lambda x: nn.functional.interpolate(x[None, None], scale_factor=(x.shape[0] / 3, 2.0)), sizes=((8, 5), (8, 7)),
                            reason="the size TruncToInt(2.66666666666667*ToFloat(s77)) is not made of sums, products and quotients")
        self.assertNotIn("aten.true_divide.Tensor", {target for target, _ in chosen.fallbacks})

    def test_returned(self):
        self.check(lambda x: (x * 2, x.shape[0] / 3))

    def test_saved_for_gradients(self):
        class Scaled(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.scale = x.shape[0] / 3 + x.shape[1] * 0.1
                return x * ctx.scale

            @staticmethod
            def backward(ctx, gradient):
                return gradient * ctx.scale

        run, _ = self.compiled(lambda x: Scaled.apply(x).sin().mean())
        for size in SIZES:
            x = torch.randn(size)
            gradients = []
            for function in (run, lambda x: Scaled.apply(x).sin().mean()):
                held = x.clone().requires_grad_()
                function(held).backward()
                gradients.append(held.grad)
            torch.testing.assert_close(*gradients)
        self.assertEqual(self.graphs, 1)

    def test_statistics(self):
        self.check(lambda x: (x.mean(), x.mean(1), x.var(), x.std(0)))
        self.check(lambda x: (x.mean(), x.mean(1), x.var(), x.std(0)), torch.float64)

    def test_training_with_batch_norm(self):
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 3, bias=False), nn.BatchNorm2d(4))
        reference = copy.deepcopy(model)
        run, chosen = self.compiled(model)
        for batch, size in ((2, 20), (5, 20), (3, 31)):
            x = torch.randn(batch, 3, size, size)
            for network in (run, reference):
                network.zero_grad()
                network(x).square().mean().backward()
            for ours, theirs in zip(model.parameters(), reference.parameters()):
                torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-3, atol=1e-4)
            for ours, theirs in zip(model.buffers(), reference.buffers()):
                torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
        self.assertEqual(chosen.segments, 2)

    def test_products_of_sizes_that_nothing_else_tells(self):
        """A graph that is called with n * m, and with neither n nor m, computes with the number of each call."""
        graphs = []

        def keep(module, inputs):
            return aot_module_simplified(module, inputs, fw_compiler=lambda graph, _: graphs.append(graph) or graph)

        def function(x, y):
            count = x.shape[0] * x.shape[1]
            return y * count / (2 * count + 1)

        with torch.no_grad():
            torch.compile(function, backend=keep, dynamic=True)(torch.ones(4, 5), torch.ones(()))
        graph = graphs[0].graph
        product = next(node for node in graph.nodes if node.target is operator.mul)
        with graph.inserting_before(product):
            given = graph.placeholder("count")
        given.meta = product.meta
        product.replace_all_uses_with(given)
        graph.erase_node(product)
        for node in list(graph.nodes):
            if node.op == "placeholder" and not node.users:
                graph.erase_node(node)
        graphs[0].recompile()
        run = fornax.torch.Backend(strict=True, options={"cache": False}).compile_graph(graphs[0])
        for count in (20, 21, 6):
            y, = torch.randn(1)
            arguments = [count if node is given else y for node in graph.nodes if node.op == "placeholder"]
            torch.testing.assert_close(run(*arguments)[0], y * count / (2 * count + 1))

    def test_exported(self):
        class Scaled(nn.Module):
            def forward(self, x):
                return x * (x.shape[0] / 3) + x.mean()

        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "scaled.fnx"
            fornax.torch.export(Scaled(), (torch.randn(4, 5),), path,
                                dynamic_shapes=({0: torch.export.Dim("rows", min=2, max=64)},))
            session = fornax.load(path, cache=False)
            for rows in (4, 7, 3):
                x = torch.randn(rows, 5)
                torch.testing.assert_close(torch.from_numpy(session(x)), Scaled()(x))


if __name__ == "__main__":
    unittest.main()
