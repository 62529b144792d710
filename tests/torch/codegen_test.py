"""Networks of PyTorch as programs in C: export, `fornax compile --emit c`, make, and the results beside torch's.

The programs run on this machine and, where there is a toolchain, on RISC-V in QEMU (tests/graph/codegen_test.py).
PYTHONPATH has the package, FORNAX_COMMAND is the command.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import torch
from torch import nn

import fornax.torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "graph"))
from codegen_tools import CROSS, has_riscv, missing_riscv  # noqa: E402

RELATIVE, ABSOLUTE = 1e-4, 1e-5


class Mlp(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 10))


class ConvNet(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(8, 8, 3, groups=4, padding=1), nn.SiLU(), nn.AdaptiveAvgPool2d((3, 3)), nn.Flatten(),
                         nn.Linear(72, 5))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.after = nn.LayerNorm(32), nn.LayerNorm(32)
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x):
        batch, positions, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(batch, positions, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, positions, width))
        return x + self.down(nn.functional.gelu(self.up(self.after(x))))


class Functional(nn.Module):
    """A function of tensors as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def operators():
    """By line of the list of operators that an earlier system had, every one of them."""
    x, y, positive = torch.randn(3, 5), torch.randn(3, 5), torch.rand(3, 5) + 0.5
    a, b, square = torch.randn(4, 6), torch.randn(6, 3), torch.randn(2, 3, 4)
    batch, other = torch.randn(2, 3, 4), torch.randn(2, 4, 5)
    weight, bias = torch.randn(7, 6), torch.randn(7)
    return {
        "d11_elementwise": (lambda p, q, r: (p + q, p - q, p * q, p / r, -p), (x, y, positive)),
        "d12_matmul_mm": (lambda p, q: (torch.matmul(p, q), torch.mm(p, q)), (a, b)),
        "d12_bmm": (torch.bmm, (batch, other)),
        "d12_linear": (lambda p: nn.functional.linear(p, weight, bias), (a,)),
        "d13_activations": (lambda p: (torch.relu(p), torch.sigmoid(p), torch.tanh(p), nn.functional.gelu(p),
                                       torch.softmax(p, -1), torch.softmax(p, 0)), (x,)),
        "d14_views": (lambda p: (p.reshape(4, 6), p.view(6, 4).t(), p.permute(2, 0, 1), p.transpose(0, 1).contiguous(),
                                 p.flatten(1)), (square,)),
        "d16_reductions": (lambda p: (p.sum(1), p.mean(1, keepdim=True), p.amax(2), p.amin(0, keepdim=True), p.sum(),
                                      p.max(1)[0], p.max(1)[1], p.min(2, keepdim=True)[0]), (square,)),
    }


def cases():
    torch.manual_seed(7)
    yield "simple_mlp", Mlp(), (torch.randn(4, 16),)
    yield "matmul_demo", Functional(torch.matmul), (torch.randn(32, 48), torch.randn(48, 24))
    yield "transformer_attention", Attention(), (torch.randn(1, 6, 32),)
    yield "d17_conv_net", ConvNet(), (torch.randn(1, 3, 12, 12),)
    yield "d15_batch_norm", nn.BatchNorm2d(3), (torch.randn(2, 3, 4, 4),)
    yield "d15_layer_norm", nn.LayerNorm(9), (torch.randn(4, 9),)
    for name, (function, args) in operators().items():
        yield name, Functional(function), args


class Codegen(unittest.TestCase):
    def run_program(self, folder, expected, *arguments):
        (folder / "net_outputs.bin").unlink(missing_ok=True)
        done = subprocess.run(["make", "-C", str(folder), *arguments, "run"], capture_output=True, text=True, timeout=300,
                              env=dict(os.environ, CROSS_COMPILE=CROSS))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("warning", done.stderr)
        data = (folder / "net_outputs.bin").read_bytes()
        self.assertEqual(len(data), sum(array.nbytes for array in expected))
        for array in expected:
            actual = np.frombuffer(data[:array.nbytes], array.dtype).reshape(array.shape)
            np.testing.assert_allclose(actual, array, rtol=RELATIVE, atol=ABSOLUTE)
            data = data[array.nbytes:]
        return done.stdout

    def test_equal_to_torch(self):
        for name, model, args in cases():
            with self.subTest(name), tempfile.TemporaryDirectory(prefix="fornax-codegen-") as temporary:
                folder = pathlib.Path(temporary)
                model = model.eval()
                with torch.no_grad():
                    expected = model(*args)
                expected = [expected] if isinstance(expected, torch.Tensor) else expected
                expected = [tensor.contiguous().numpy() for tensor in expected]
                fornax.torch.export(model, args, folder / "net.fx")
                done = subprocess.run([os.environ["FORNAX_COMMAND"], "compile", folder / "net.fx", "--emit", "c", "-o",
                                       folder], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                (folder / "net_inputs.bin").write_bytes(b"".join(tensor.numpy().tobytes() for tensor in args))
                self.run_program(folder, expected, "HOST=1")
                if has_riscv():
                    said = self.run_program(folder, expected)
                    cycles = re.search(r"^cycles: (\d+)$", said, re.MULTILINE)
                    print(f"{name:24} {cycles.group(1):>10} cycles")
        if not has_riscv():
            self.skipTest(missing_riscv())


if __name__ == "__main__":
    if not shutil.which("make"):
        sys.exit("make is not there.")
    unittest.main(verbosity=2)
