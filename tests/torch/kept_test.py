"""Graphs that torch's cache of AOTAutograd keeps: what finds them computes what it should, and what differs does not find them."""

import copy
import os
import subprocess
import sys
import tempfile
import unittest

if __name__ == "__main__":
    _FOLDER = tempfile.TemporaryDirectory(prefix="fornax_kept_test_")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = _FOLDER.name

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch._dynamo.utils import counters  # noqa: E402

import fornax.torch  # noqa: E402

CLOSE = {"rtol": 1e-4, "atol": 1e-4}


class Net(nn.Module):
    def __init__(self, width=8, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.first, self.second = nn.Linear(6, width), nn.Linear(width, 3)
        self.register_buffer("scale", torch.tensor([1.0, 2.0, 3.0]))

    def forward(self, x):
        return self.second(torch.relu(self.first(x)) + torch.tensor([0.25])) * self.scale


class Counted(nn.Module):
    """Writes to a buffer in each call."""

    def __init__(self):
        super().__init__()
        self.register_buffer("sum", torch.zeros(4))

    def forward(self, x):
        self.sum += x
        return self.sum * 2


# A process that torch's cache of what Dynamo does is for.
_PRECOMPILED = """
import logging, sys, torch, fornax.torch
from torch._dynamo.utils import counters
logging.disable(logging.WARNING)  # torch names the guards that it drops
torch._dynamo.config.caching_precompile = True
sys.path.insert(0, sys.argv[1])
from kept_test import CLOSE, Net
from fornax.torch import kept
if sys.argv[3:]:
    kept._digest = lambda: sys.argv[3]
x = torch.arange(12.0).reshape(2, 6) / 8
with torch.no_grad():
    model = Net(seed=int(sys.argv[2])).eval()
    compiled = torch.compile(model, backend=fornax.torch.Backend(strict=True))
    for _ in range(2):
        torch.testing.assert_close(compiled(x), model(x), **CLOSE)
    model.second.bias += 1
    torch.testing.assert_close(compiled(x), model(x), **CLOSE)
torch.compiler.save_cache_artifacts()
print(counters["dynamo_cache"].get("dynamo_cache_hit", 0), counters["stats"].get("unique_graphs", 0))
"""


class Kept(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)

    def compile(self, model, backend=None, **keywords):
        """(compiled model, its backend) as a process does that has compiled nothing yet."""
        torch._dynamo.reset()
        counters.clear()
        backend = backend or fornax.torch.Backend(strict=True)
        return torch.compile(model, backend=backend, **keywords), backend

    def check_found(self, hits, misses=0):
        aot = counters["aot_autograd"]
        self.assertEqual((aot["autograd_cache_hit"], aot["autograd_cache_miss"]), (hits, misses), dict(aot))

    def test_other_weights_find_the_same_graph(self):
        x = torch.randn(5, 6)
        with torch.no_grad():
            for seed in range(3):
                model = Net(seed=seed).eval()
                compiled, backend = self.compile(model, fullgraph=True)
                for _ in range(2):
                    torch.testing.assert_close(compiled(x), model(x), **CLOSE)
                self.check_found(seed > 0, seed == 0)
                self.assertEqual((backend.segments, len(backend.graphs)), (1, 1))
                self.assertEqual(backend.graphs[0][1] is None, seed > 0)

    def test_what_differs_does_not_find_it(self):
        x = torch.randn(4, 6)
        backends = {
            "first": {}, "precision": {"precision": "medium"}, "parameters as inputs": {"freeze": False},
            "a plan for each size": {"dynamic": False}, "an option": {"options": {"kept_plans": 2}},
        }
        with torch.no_grad():
            model = Net(seed=7).eval()
            for name, options in backends.items():
                with self.subTest(name):
                    compiled, _ = self.compile(model, fornax.torch.Backend(**options))
                    torch.testing.assert_close(compiled(x), model(x), rtol=0.05, atol=0.05)
                    self.check_found(0, 1)
            compiled, _ = self.compile(Net(width=9).eval())
            compiled(x)
            self.check_found(0, 1)
            torch.set_float32_matmul_precision("high")
            try:
                compiled, _ = self.compile(model)
                torch.testing.assert_close(compiled(x), model(x), rtol=0.05, atol=0.05)
                self.check_found(0, 1)
            finally:
                torch.set_float32_matmul_precision("highest")

    def test_parameters_that_change(self):
        x = torch.randn(3, 6)
        with torch.no_grad():
            for found in (False, True):
                model = Net(seed=11).eval()
                compiled, _ = self.compile(model)
                torch.testing.assert_close(compiled(x), model(x), **CLOSE)
                self.check_found(found, not found)
                for _ in range(2):
                    model.first.weight.add_(0.5)
                    torch.testing.assert_close(compiled(x), model(x), **CLOSE)
                self.check_found(found, not found)

    def test_training(self):
        x = torch.randn(7, 6)
        for found in (False, True):
            model, reference = Net(seed=5), Net(seed=5)
            compiled, backend = self.compile(model, fullgraph=True)
            for step in range(3):
                for network, run in ((model, compiled), (reference, reference)):
                    network.zero_grad()
                    run(x).square().mean().backward()
                    with torch.no_grad():
                        for parameter in network.parameters():
                            parameter -= 0.1 * parameter.grad
                self.check_found(found, not found)
                for ours, theirs in zip(model.parameters(), reference.parameters()):
                    torch.testing.assert_close(ours.grad, theirs.grad, **CLOSE)
            self.assertEqual(backend.segments, 2)

    def test_training_with_channels_last(self):
        x = torch.randn(2, 3, 13, 9)
        for found in (False, True):
            torch.manual_seed(6)
            model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3, stride=2), nn.Sigmoid())
            reference = copy.deepcopy(model)
            compiled, _ = self.compile(model, fullgraph=True)
            saved = []
            with torch.autograd.graph.saved_tensors_hooks(lambda tensor: saved.append(tensor) or tensor, lambda tensor: tensor):
                result = compiled(x)
            self.check_found(found, not found)
            self.assertTrue(any(tensor.dim() == 4 and tensor.stride(1) == 1 for tensor in saved))
            for run in (result, reference(x)):
                run.square().sum().backward()
            for ours, theirs in zip(model.parameters(), reference.parameters()):
                torch.testing.assert_close(ours.grad, theirs.grad, **CLOSE)

    def test_a_backward_graph_that_nobody_calls_is_not_compiled(self):
        for found in (False, True):
            compiled, backend = self.compile(Net(width=12))
            compiled(torch.randn(2, 6))
            self.check_found(found, not found)
            self.assertEqual(backend.segments, 2 if found else 1)

    def test_open_sizes(self):
        with torch.no_grad():
            model = Net(seed=2).eval()
            for found in (False, True):
                compiled, backend = self.compile(model, dynamic=True)
                for rows in (9, 2, 17):
                    x = torch.randn(rows, 6)
                    torch.testing.assert_close(compiled(x), model(x), **CLOSE)
                self.check_found(found, not found)
                self.assertEqual(len(backend.graphs), 1)

    def test_buffers_that_change(self):
        x = torch.randn(4)
        with torch.no_grad():
            for found in (False, True):
                model, reference = Counted(), Counted()
                compiled, _ = self.compile(model)
                for _ in range(3):
                    torch.testing.assert_close(compiled(x), reference(x), **CLOSE)
                torch.testing.assert_close(model.sum, reference.sum, **CLOSE)
                self.check_found(found, not found)

    def test_what_dynamo_does_is_kept_too(self):
        found = []
        for seed in range(2):
            result = subprocess.run([sys.executable, "-c", _PRECOMPILED, os.path.dirname(os.path.abspath(__file__)), str(seed)],
                                    capture_output=True, text=True, timeout=300)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            found.append(result.stdout.split()[-2:])
        self.assertEqual(found, [["0", "1"], ["1", "0"]])
        # torch looks at nothing but the function's name and line.
        result = subprocess.run([sys.executable, "-c", _PRECOMPILED, os.path.dirname(os.path.abspath(__file__)), "0", "other"],
                                capture_output=True, text=True, timeout=300)
        self.assertNotEqual(result.returncode, 0, result.stdout)
        self.assertIn("torch has kept a graph that another version of Fornax made", result.stderr)

    def test_what_is_not_kept(self):
        x = torch.randn(6)

        def partly(x):
            return torch.igamma(x.abs() + 1, x.abs()) + 1

        def checked(x):
            return torch.linalg.inv(x.reshape(2, 3)[:, :2] + 3 * torch.eye(2))

        with torch.no_grad():
            for function in (partly, checked):
                for _ in range(2):
                    compiled, _ = self.compile(function, fornax.torch.Backend())
                    torch.testing.assert_close(compiled(x), function(x), **CLOSE)
                    self.assertEqual(counters["aot_autograd"]["autograd_cache_hit"], 0)
                    self.assertEqual(counters["aot_autograd"]["autograd_cache_saved"], 0)
            compiled, _ = self.compile(torch.relu, fornax.torch.Backend(options={"cache": False}))
            compiled(x)
            self.assertFalse(counters["aot_autograd"]["autograd_cache_miss"])


if __name__ == "__main__":
    unittest.main()
