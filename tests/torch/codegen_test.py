"""Networks of PyTorch as programs in C: export and `fornax compile --emit c`, or mode="codegen" of torch.compile's backend;
make, and the results beside torch's.

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
import warnings

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


class Counter(nn.Module):
    """Has a buffer that it changes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(2))

    def forward(self, x):
        self.calls.add_(1)
        return x * self.calls


class ProgramCase(unittest.TestCase):
    def run_program(self, folder, expected, *arguments, name="net"):
        outputs = folder / f"{name}_outputs.bin"
        outputs.unlink(missing_ok=True)
        done = subprocess.run(["make", "-C", str(folder), *arguments, "run"], capture_output=True, text=True, timeout=300,
                              env=dict(os.environ, CROSS_COMPILE=CROSS))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("warning", done.stderr)
        data = outputs.read_bytes()
        self.assertEqual(len(data), sum(array.nbytes for array in expected))
        for array in expected:
            actual = np.frombuffer(data[:array.nbytes], array.dtype).reshape(array.shape)
            np.testing.assert_allclose(actual, array, rtol=RELATIVE, atol=ABSOLUTE)
            data = data[array.nbytes:]
        return done.stdout


class Codegen(ProgramCase):
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


class CodegenMode(ProgramCase):
    """fornax.torch.Backend(mode="codegen")."""

    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(7)
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="fornax-codegen-")))

    def compiled(self, model, *args, dynamic=None, **options):
        """The backend and the results of torch.compile's model, which are eager's."""
        chosen = fornax.torch.Backend("codegen", output_dir=self.folder, options={"cache": False}, **options)
        compiled = torch.compile(model, backend=chosen, dynamic=dynamic)
        with torch.no_grad():
            actual = compiled(*args)
        return chosen, actual

    def test_networks(self):
        for name, model, args in cases():
            if not isinstance(model, (Mlp, ConvNet, Attention)):
                continue
            with self.subTest(name):
                torch._dynamo.reset()
                model = model.eval()
                with torch.no_grad():
                    expected = model(*args)
                chosen, actual = self.compiled(model, *args, strict=True)
                torch.testing.assert_close(actual, expected, rtol=RELATIVE, atol=ABSOLUTE)
                self.assertEqual(chosen.programs, [self.folder / "graph_0"])
                self.assertEqual({path.name.removeprefix("graph_0") for path in chosen.programs[0].iterdir()},
                                 {".c", ".h", "_weights.c", "_weights.bin", ".ld", "Makefile", ".fnx", "_inputs.bin"})
                # The program runs with the inputs of the first call.
                self.run_program(chosen.programs[0], [expected.numpy()], "HOST=1", name="graph_0")
                shutil.rmtree(chosen.programs[0])

    def test_in_qemu(self):
        if not has_riscv():
            self.skipTest(missing_riscv())
        model, x = Mlp().eval(), torch.randn(4, 16)
        chosen, _ = self.compiled(model, x)
        with torch.no_grad():
            said = self.run_program(chosen.programs[0], [model(x).numpy()], name="graph_0")
        self.assertRegex(said, r"(?m)^cycles: \d+$")

    def test_buffers_that_change_are_inputs_and_outputs(self):
        model = Counter()
        chosen, actual = self.compiled(model, torch.ones(3, 2))
        torch.testing.assert_close(actual, torch.ones(3, 2))
        torch.testing.assert_close(model.calls, torch.ones(2))
        data = self.run_and_read(chosen.programs[0])
        np.testing.assert_array_equal(data, np.ones(6 + 2, np.float32))

    def run_and_read(self, folder):
        subprocess.run(["make", "-C", str(folder), "HOST=1", "run"], capture_output=True, text=True, check=True)
        return np.fromfile(folder / f"{folder.name}_outputs.bin", np.float32)

    def test_parts_of_graphs_have_programs_of_their_own(self):
        def function(x):
            return torch.linalg.eigvals(x.relu() + 1).abs() * 2

        x = torch.randn(4, 4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            chosen, actual = self.compiled(function, x)
        torch.testing.assert_close(actual, function(x), rtol=RELATIVE, atol=ABSOLUTE)
        self.assertGreaterEqual(len(chosen.programs), 1)
        self.assertRegex(chosen.programs[0].name, r"^graph_0_fused_\d+$")
        np.testing.assert_allclose(self.run_and_read(chosen.programs[0]), (x.relu() + 1).reshape(-1), rtol=RELATIVE)

    def test_open_sizes_have_no_program(self):
        x = torch.randn(3, 16)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            chosen, actual = self.compiled(Mlp().eval(), x, dynamic=True)
        self.assertEqual(actual.shape, (3, 10))
        self.assertEqual(chosen.programs, [])
        text, = [str(w.message) for w in told if "program in C" in str(w.message)]
        self.assertRegex(text, r"^There is no program in C for graph_0: it has open sizes \(s\d+ of \w+\) and programs in C "
                               r"have fixed ones, which torch\.compile\(dynamic=False\) gives\.$")
        torch._dynamo.reset()
        with self.assertRaisesRegex(Exception, "There is no program in C for graph_0"):
            self.compiled(Mlp().eval(), x, dynamic=True, strict=True)


if __name__ == "__main__":
    if not shutil.which("make"):
        sys.exit("make is not there.")
    unittest.main(verbosity=2)
