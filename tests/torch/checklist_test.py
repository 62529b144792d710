"""What docs/torch-checklist.md says of earlier systems' features: that each line names tests that exist, and the tests
of those lines that no other file has.

PYTHONPATH has the package, VK_DRIVER_FILES is the driver's manifest, FORNAX_COMMAND is the command.
"""

import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import numpy as np
import torch
from torch import fx, nn

import fornax
import fornax.torch
from fornax.torch import reports

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "torch-checklist.md"
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


class Document(unittest.TestCase):
    def setUp(self):
        rows = [[cell.strip() for cell in line.strip()[1:-1].split("|")]
                for line in DOCUMENT.read_text(encoding="utf-8").splitlines() if re.match(r"\| [BCD]\d+ ", line)]
        self.rows = {row[0]: row[1:] for row in rows}
        self.assertEqual(len(self.rows), len(rows))

    def test_every_line_is_there(self):
        wanted = [f"{letter}{number}" for letter, count in (("B", 19), ("C", 13), ("D", 19))
                  for number in range(1, count + 1)]
        self.assertEqual(list(self.rows), wanted)

    def test_the_tests_exist(self):
        for name, (_, holds, tests) in self.rows.items():
            with self.subTest(name):
                self.assertIn(holds.split(":")[0], ("yes", "in part", "no"))
                named = re.findall(r"`([\w/]+\.(?:py|cpp)) (\w+)\.(\w+)`", tests)
                self.assertTrue(named or holds.startswith("no"))
                for path, suite, test in named:
                    text = (ROOT / path).read_text(encoding="utf-8")
                    if path.endswith(".cpp"):
                        self.assertIn(f"({suite}, {test})", text)
                    else:
                        self.assertRegex(text, rf"class {suite}\(")
                        self.assertRegex(text, rf"def {test}\(")


class Layers(nn.Module):
    """Calls modules, methods and functions, and has a constant, a parameter of its own and numbers."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 6)
        self.scale = nn.Parameter(torch.rand(6))
        self.register_buffer("offsets", torch.arange(6.0))

    def forward(self, x):
        return self.linear(x).relu().mul(self.scale) * 0.5 + self.offsets


class Graphs(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(3)

    def test_the_backend_is_called_once_for_each_graph(self):
        calls = []

        class Counting(fornax.torch.Backend):
            def __call__(self, graph_module, example_inputs, **keywords):
                calls.append(graph_module)
                return super().__call__(graph_module, example_inputs, **keywords)

        def function(x):
            y = x.relu() + 1
            torch._dynamo.graph_break()
            return y * 2

        x = torch.randn(4)
        backend = Counting(options={"cache": False})
        compiled = torch.compile(function, backend=backend)
        for _ in range(3):
            torch.testing.assert_close(compiled(x), function(x))
        self.assertEqual(len(calls), 2)
        self.assertEqual((backend.segments, len(backend.graphs)), (2, 2))

    def test_every_form_of_a_backend(self):
        x = torch.randn(3, 8)
        model = Layers().eval()
        for backend in ("fornax_by_name", fornax.torch.fornax, fornax.torch.Backend(),
                        fornax.torch.Backend(mode="trace", verbose=False, output_dir=None)):
            if backend == "fornax_by_name":
                # What the package's entry point does, which only an installed package has.
                torch._dynamo.register_backend(compiler_fn=fornax.torch.fornax, name=backend)
            torch._dynamo.reset()
            with torch.no_grad():
                torch.testing.assert_close(torch.compile(model, backend=backend)(x), model(x), **CLOSE)

    def test_symbolic_trace(self):
        model, x = Layers().eval(), torch.randn(3, 8)
        traced = fx.symbolic_trace(model)
        self.assertLessEqual({"call_module", "call_method", "call_function", "get_attr"},
                             {node.op for node in traced.graph.nodes})
        backend = fornax.torch.Backend(strict=True, options={"cache": False})
        with torch.no_grad():
            torch.testing.assert_close(torch.compile(traced, backend=backend, fullgraph=True)(x), model(x), **CLOSE)

        class InTuple(Layers):
            def forward(self, x):
                return (super().forward(x),)

        # Without Dynamo, whose graphs give tuples.
        model = InTuple().eval()
        with torch.no_grad():
            torch.testing.assert_close(backend(fx.symbolic_trace(model), [x])(x)[0], model(x)[0], **CLOSE)

    def test_what_the_file_of_a_graph_holds(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "layers.fnx"
            writer = fornax.torch.export(Layers().eval(), (torch.randn(3, 8),), path)
            fields = writer.program.fields
            session = fornax.load(path, cache=False)
        values = fields["values"]
        self.assertEqual([(port["name"], len(values[port["value"]]["dims"])) for port in fields["inputs"]], [("x", 2)])
        self.assertEqual({values[weight["value"]]["name"] for weight in fields["weights"]},
                         {"p_linear_weight", "p_linear_bias", "p_scale", "b_offsets"})
        targets = [node["target"] for node in fields["nodes"]]
        self.assertIn("aten.relu.default", targets)
        numbers = [argument["number"] for node in fields["nodes"] for argument in node["arguments"]]
        self.assertIn(0.5, numbers)
        self.assertEqual([(port.name, str(port.dtype), port.shape) for port in session.inputs], [("x", "float32", (3, 8))])

    def test_reports_name_nodes_types_and_lines(self):
        backend = fornax.torch.Backend(options={"cache": False})
        with torch.no_grad():
            torch.compile(Layers(), backend=backend)(torch.randn(3, 8))
        _, graph_module, _ = backend.graphs[0]
        relu, = [row for row in reports.nodes(graph_module) if row[0] == "relu"]
        self.assertEqual(relu[2], "f32[3,6]")
        self.assertRegex(relu[4], r"checklist_test\.py:\d+")


class Memory(unittest.TestCase):
    def test_a_program_runs_from_memory_of_the_device(self):
        """The file may go once it is loaded, and its constants are in buffers of the device."""
        model, x = Layers().eval(), torch.randn(3, 8)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "layers.fnx"
            fornax.torch.export(model, (x,), path)
            file = bytearray(path.read_bytes())
        session = fornax.load(file, cache=False)
        file[:] = bytes(len(file))
        with torch.no_grad():
            torch.testing.assert_close(torch.from_numpy(session(x.numpy())), model(x), **CLOSE)
        memory = session.report()["memory"]
        self.assertGreaterEqual(memory["constants"], 4 * (8 * 6 + 6))


KERNELS = {
    "gemm": (torch.matmul, [(5, 7), (7, 3)]), "relu": (torch.relu, [(4, 6)]),
    "softmax": (lambda x: torch.softmax(x, -1), [(4, 6)]), "add": (torch.add, [(4, 6), (6,)]),
    "sub": (torch.sub, [(4, 6), (4, 6)]), "mul": (torch.mul, [(4, 6), (4, 1)]),
    "transpose": (lambda x: x.transpose(0, 1).contiguous(), [(4, 6)]),
    "layer_norm": (lambda x: nn.functional.layer_norm(x, (6,)), [(4, 6)]),
}


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


@unittest.skipUnless(shutil.which("make") and shutil.which("cc"), "there is no C compiler")
class Kernels(unittest.TestCase):
    def test_kernels_by_name_over_a_c_abi(self):
        """A shared library with a function for each kernel, called with pointers."""
        torch.manual_seed(3)
        with tempfile.TemporaryDirectory(prefix="fornax_kernels_") as temporary:
            for name, (function, shapes) in KERNELS.items():
                with self.subTest(name):
                    folder = pathlib.Path(temporary) / name
                    inputs = [torch.randn(shape) for shape in shapes]
                    expected = function(*inputs).numpy()
                    folder.mkdir()
                    fornax.torch.export(Function(function), tuple(inputs), folder / "kernel.fnx")
                    for command in ([os.environ["FORNAX_COMMAND"], "compile", folder / "kernel.fnx", "--emit", "c",
                                     "-o", folder, "--name", name], ["make", "-C", folder, "HOST=1", "shared"]):
                        done = subprocess.run(command, capture_output=True, text=True)
                        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                    library = ctypes.CDLL(str(folder / f"lib{name}.so"))
                    result = np.zeros(expected.shape, np.float32)
                    arrays = [tensor.numpy() for tensor in inputs]
                    given = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
                    getattr(library, f"{name}_reset")()
                    getattr(library, f"{name}_run")(given, ctypes.byref(ctypes.c_void_p(result.ctypes.data)))
                    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    unittest.main()
