"""Small networks through torch.compile and torch.export on Fornax, beside eager torch.

PYTHONPATH has the package, VK_DRIVER_FILES is the driver's manifest.
"""

import pathlib
import tempfile
import unittest
import warnings

import torch
from torch import nn

import fornax
import fornax.torch

torch.manual_seed(3)


class Mlp(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 10))


class ConvNet(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(8, 8, 3, groups=4, padding=1), nn.SiLU(), nn.AdaptiveAvgPool2d((3, 3)),
                         nn.Upsample(scale_factor=2), nn.Flatten(), nn.Linear(288, 5))


class Attention(nn.Module):
    """A block of a transformer, with a mask if causal."""

    def __init__(self, causal=False):
        super().__init__()
        self.norm, self.after = nn.LayerNorm(32), nn.LayerNorm(32)
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)
        self.causal = causal

    def forward(self, x):
        batch, positions, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(batch, positions, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.out(y.transpose(1, 2).reshape(batch, positions, width))
        return x + self.down(nn.functional.gelu(self.up(self.after(x))))


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.lstm, self.head = nn.Embedding(50, 12), nn.LSTM(12, 16, batch_first=True), nn.Linear(16, 7)

    def forward(self, tokens):
        return self.head(self.lstm(self.embedding(tokens))[0]).softmax(-1)


class Cache(nn.Module):
    """Writes a row of a buffer at each call."""

    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(4, 8))

    def forward(self, x, place):
        self.rows.index_copy_(0, place, x)
        return self.rows.sum(0)


def backend(**options):
    return fornax.torch.Backend(strict=True, options={"cache": False}, **options)


class Networks(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()

    def check(self, model, *inputs, **options):
        model = model.eval()
        chosen = backend(**options)
        compiled = torch.compile(model, backend=chosen, fullgraph=True)
        with torch.no_grad():
            for given in inputs:
                torch.testing.assert_close(compiled(*given), model(*given), rtol=2e-4, atol=2e-5)
        self.assertGreater(chosen.segments, 0)
        return chosen

    def test_mlp(self):
        self.check(Mlp(), (torch.randn(4, 16),))

    def test_found_by_name(self):
        model = Mlp().eval()
        with torch.no_grad():
            x = torch.randn(4, 16)
            torch.testing.assert_close(torch.compile(model, backend=fornax.torch.fornax)(x), model(x), rtol=2e-4,
                                       atol=2e-5)

    def test_convolutions(self):
        self.check(ConvNet(), (torch.randn(2, 3, 12, 12),))

    def test_channels_last(self):
        self.check(ConvNet(), (torch.randn(2, 3, 12, 12).to(memory_format=torch.channels_last),))

    def test_attention(self):
        self.check(Attention(), (torch.randn(2, 9, 32),))
        self.check(Attention(causal=True), (torch.randn(2, 9, 32),))

    def test_lstm(self):
        with torch._dynamo.config.patch(allow_rnn=True):
            self.check(Tagger(), (torch.randint(0, 50, (3, 6)),))

    def test_half_precision(self):
        model = Mlp().eval().to(torch.bfloat16)
        x = torch.randn(4, 16, dtype=torch.bfloat16)
        with torch.no_grad():
            got = torch.compile(model, backend=backend(), fullgraph=True)(x)
            torch.testing.assert_close(got, model(x), rtol=3e-2, atol=3e-2)

    def test_new_sizes(self):
        for dynamic in (True, False):
            torch._dynamo.reset()
            model = Attention().eval()
            chosen = backend(dynamic=dynamic)
            compiled = torch.compile(model, backend=chosen, fullgraph=True, dynamic=True)
            with torch.no_grad():
                for positions in (5, 9, 17, 4):
                    x = torch.randn(3, positions, 32)
                    torch.testing.assert_close(compiled(x), model(x), rtol=2e-4, atol=2e-5)
            self.assertEqual(chosen.segments, 1)

    def test_numbers_as_arguments(self):
        function = lambda x, count: x[:, :count] * count  # noqa: E731
        compiled = torch.compile(function, backend=backend(), fullgraph=True, dynamic=True)
        for count in (3, 5, 2):
            x = torch.randn(4, 8)
            torch.testing.assert_close(compiled(x, count), function(x, count))

    def test_buffers_that_change(self):
        ours, theirs = Cache(), Cache()
        compiled = torch.compile(ours, backend=backend(), fullgraph=True)
        with torch.no_grad():
            for i in range(4):
                x, place = torch.randn(1, 8), torch.tensor([i])
                torch.testing.assert_close(compiled(x, place), theirs(x, place))
        torch.testing.assert_close(ours.rows, theirs.rows)

    def test_parameters_that_change(self):
        model = Mlp().eval()
        compiled = torch.compile(model, backend=backend(), fullgraph=True)
        x = torch.randn(4, 16)
        with torch.no_grad():
            compiled(x)
            model[0].weight.mul_(2)
            torch.testing.assert_close(compiled(x), model(x), rtol=2e-4, atol=2e-5)

    def test_training(self):
        losses = {}
        for name in ("eager", "fornax"):
            torch.manual_seed(5)
            model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                                  nn.Linear(64, 10))
            optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
            run = model if name == "eager" else torch.compile(model, backend=backend(), fullgraph=True)
            losses[name] = []
            for _ in range(8):
                x, target = torch.randn(6, 1, 8, 8), torch.randint(0, 10, (6,))
                loss = nn.functional.cross_entropy(run(x), target)
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                losses[name].append(loss.item())
        torch.testing.assert_close(losses["fornax"], losses["eager"], rtol=1e-4, atol=1e-5)

    def test_gradients_of_convolutions(self):
        for channels, outputs, size, window, settings in (
                (32, 48, (14, 13), (3, 3), {"padding": 1}),
                (48, 32, (15, 14), (3, 3), {"padding": 1, "stride": 2}),
                (3, 64, (56, 57), (7, 7), {"padding": 3, "stride": 2}),
                (64, 64, (12, 11), (3, 2), {"padding": (2, 1), "dilation": (2, 1)})):
            x = torch.randn(4, channels, *size)
            weights = torch.randn(outputs, channels, *window)

            def gradient(x, weights):
                y = nn.functional.conv2d(x, weights, **settings)
                return torch.autograd.grad(y.sin().sum(), weights)[0]

            expected = gradient(x.double(), weights.double().requires_grad_())
            torch._dynamo.reset()
            convolve = torch.compile(lambda x, w: nn.functional.conv2d(x, w, **settings).sin().sum(),
                                     backend=backend(), dynamic=False)
            held = weights.clone().requires_grad_()
            convolve(x, held).backward()
            difference = (held.grad.double() - expected).norm() / expected.norm()
            self.assertLess(difference.item(), 3e-5, settings)

    def test_what_is_not_supported_runs_in_torch(self):
        def function(x):
            return torch.linalg.eigvals(x.relu() + 1).abs() * 2

        chosen = fornax.torch.Backend(options={"cache": False})
        compiled = torch.compile(function, backend=chosen, fullgraph=True)
        x = torch.randn(4, 4)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            torch.testing.assert_close(compiled(x), function(x), rtol=1e-4, atol=1e-5)
        self.assertGreater(chosen.segments, 0)
        self.assertTrue(chosen.fallbacks)
        self.assertTrue(any("Fornax leaves a part of the graph to torch" in str(w.message) for w in told))

    def test_strict_names_node_and_line(self):
        def function(x):
            return torch.linalg.eigvals(x.relu())

        with self.assertRaises(Exception) as raised:
            torch.compile(function, backend=backend(), fullgraph=True)(torch.randn(4, 4))
        message = str(raised.exception)
        self.assertIn("Fornax does not run the graph as a whole", message)
        self.assertRegex(message, r"networks_test\.py:\d+")


class Export(unittest.TestCase):
    def test_runs_without_torch(self):
        model, sizes = Attention().eval(), torch.export.Dim("positions", min=2, max=64)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "attention.fnx"
            writer = fornax.torch.export(model, (torch.randn(2, 7, 32),), path, dynamic_shapes=({1: sizes},))
            session = fornax.load(path, cache=False)
            for positions in (7, 12, 3):
                x = torch.randn(2, positions, 32)
                with torch.no_grad():
                    torch.testing.assert_close(torch.from_numpy(session(x)), model(x), rtol=2e-4, atol=2e-5)
            self.assertEqual([node.name for node in writer.inputs], ["x"])

    def test_refuses_with_node_and_line(self):
        class Eigenvalues(nn.Module):
            def forward(self, x):
                return torch.linalg.eigvals(x).abs()

        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(fornax.torch.UnsupportedGraph, r"networks_test\.py:\d+"):
                fornax.torch.export(Eigenvalues(), (torch.randn(4, 4),), pathlib.Path(folder) / "values.fnx")

    def test_a_damaged_file_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "mlp.fnx"
            fornax.torch.export(Mlp().eval(), (torch.randn(4, 16),), path)
            whole = path.read_bytes()
        for damaged in (whole[:len(whole) // 2], whole[:40], whole[:70] + b"\xff" + whole[71:]):
            with self.assertRaisesRegex(fornax.Error, "damaged"):
                fornax.load(damaged, cache=False)


if __name__ == "__main__":
    unittest.main()
