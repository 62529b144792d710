"""The examples of PyTorch run, and print what they say they do.

PYTHONPATH has the package, VK_DRIVER_FILES is the driver's manifest.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


def run(name, *arguments):
    result = subprocess.run([sys.executable, str(EXAMPLES / f"{name}.py"), *map(str, arguments)], capture_output=True,
                            text=True, timeout=500, env=dict(os.environ, PYTHONWARNINGS="ignore"))
    if result.returncode != 0:
        raise AssertionError(f"{name} ended with {result.returncode}:\n{result.stdout}{result.stderr}")
    return result.stdout


class Exported(unittest.TestCase):
    def test_export_basics(self):
        text = run("export_basics")
        self.assertRegex(text, r"^torch \d+\.\d+")
        first, second, third = re.split(r"\n\d\. ", text)[1:]
        self.assertIn("relu(x @ y.T): shape [128, 128], equal to torch's: True\n", first)
        for part in ("aten.linear.default", "aten.relu.default", "torch.ops.aten.relu.default(",
                     "relu(linear(x)): shape [32, 64], equal to torch's: True\n"):
            self.assertIn(part, second)
        self.assertRegex(second, r"  call_function +relu +aten\.relu\.default\n")  # the list
        self.assertRegex(second, r"\nrelu +aten\.relu\.default +f32\[32,64\] +linear ")  # the table
        for name in ("sin", "cos"):
            self.assertRegex(third, rf"\n{name} +aten\.{name}\.default\n")
        self.assertRegex(third, r"\nadd +aten\.add\.Tensor\n")
        # The sum of sin(i / 7) + cos(i / 7), i from 0 to 7.
        self.assertIn("sum: 10.2836\n", third)

    def test_explore_fx_graph(self):
        text = run("explore_fx_graph")
        self.assertRegex(text, r"\nsoftmax +aten\.softmax\.int +f32\[4,8\] +add ")
        self.assertIn("softmax\n  op: call_function\n  target: aten.softmax.int\n  args: (add, -1)\n  kwargs: {}\n", text)
        self.assertIn("x\n  op: placeholder\n  target: x\n  args: ()\n  kwargs: {}\n", text)
        self.assertRegex(text, r"def forward\(self, .*\bx, scale\)")
        self.assertIn("Kernels on ", text)


class Prototype(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="fornax_prototype_"))
        cls.supported, cls.mixed = run("backend_prototype", pathlib.Path(folder) / "program.blob").split("\nMixed\n")

    def test_registry_report_and_totals(self):
        for name in ("relu.default", "matmul.default", "softmax.int"):
            self.assertRegex(self.supported, rf"  aten\.{name} +supported\n")
        self.assertIn("  total: 3 supported, 0 fallback\n", self.supported)
        self.assertRegex(self.mixed, r"  aten\.cumsum\.default +fallback\n")
        self.assertIn("  total: 5 supported, 1 fallback\n", self.mixed)

    def test_counts_and_segments(self):
        self.assertIn("Compiling graph -> 3 call_function nodes\nSegment 0: accelerator (3 ops)\nProgram length: 6\n",
                      self.supported)
        self.assertIn("Segment 0: accelerator (2 ops)\nSegment 1: torch (1 ops)\nSegment 2: accelerator (3 ops)\n",
                      self.mixed)

    def test_log_of_a_run(self):
        self.assertIn("=== executing ===\n  [accelerator] aten.relu.default [4, 8] -> [4, 8]\n", self.supported)
        self.assertIn("  [accelerator] aten.softmax.int matmul -> [4, 16], dim -1\n", self.supported)
        self.assertRegex(self.mixed, r"  \[torch\] aten\.cumsum\.default .*-> \[4, 16\]")

    def test_second_call_uses_the_program_again(self):
        for text, segments in ((self.supported, 1), (self.mixed, 2)):
            self.assertIn(f"first call: shape [4, 16], sum 4.0000, segments loaded: {segments}\n", text)
            self.assertIn(f"second call: shape [4, 16], sum 4.0000, segments loaded: {segments}\n", text)

    def test_blob_runs_in_another_process(self):
        self.assertRegex(self.supported, r"\nBlob: \d+ bytes\n")
        self.assertIn("torch is loaded: False\nequal bits there: True\n", self.supported)
        # What is not supported is called in torch.
        self.assertIn("torch is loaded: True\nequal bits there: True\n", self.mixed)


class Networks(unittest.TestCase):
    def test_simple_mlp(self):
        with tempfile.TemporaryDirectory(prefix="fornax_examples_") as folder:
            text = run("simple_mlp", folder)
            files = {path.name for path in pathlib.Path(folder).rglob("*") if path.is_file()}
        parts = re.split(r"--- mode (\w+)\n", text)
        modes = dict(zip(parts[1::2], parts[2::2]))
        self.assertEqual(list(modes), ["trace", "compile", "codegen", "simulate", "eager"])
        for said in modes.values():
            difference = re.search(r"shape \[4, 10\], difference from torch (\S+)\n", said)[1]
            self.assertLess(float(difference), 1e-5)
        self.assertRegex(modes["trace"], r"relu +aten\.relu\.default +f32\[4,32\]")
        self.assertRegex(modes["simulate"], r"step +kind +operations")
        self.assertLessEqual({"graph_0.ir.txt", "graph_0.plan.txt", "graph_0.c", "graph_0_weights.bin", "Makefile"}, files)

    def test_matmul_demo(self):
        text = run("matmul_demo")
        for name, shape in (("matmul", "[256, 192]"), ("mm", "[64, 16]"), ("bmm", "[8, 48, 32]"), ("linear", "[32, 64]"),
                            ("broadcast", "[3, 5, 32, 16]"), ("matmul of a vector", "[192]")):
            line = re.search(rf"^{name}: .* -> {re.escape(shape)}, difference (\S+), \d+ us, torch \d+ us$", text,
                             re.MULTILINE)
            self.assertLess(float(line[1]), 1e-5)
        self.assertLess(float(re.search(r"^bf16: .*difference (\S+),", text, re.MULTILINE)[1]), 2e-2)

    def test_transformer_attention(self):
        text = run("transformer_attention")
        for where in ("on the device: shape [1, 16, 64]", "in C"):
            self.assertLess(float(re.search(rf"{re.escape(where)}[,:] difference from torch (\S+)", text)[1]), 1e-4)
        self.assertIn("only the last position sees a change of it: True\n", text)
        self.assertIn("files: Makefile graph_0.c graph_0.fnx graph_0.h graph_0.ld graph_0_inputs.bin graph_0_weights.bin "
                      "graph_0_weights.c\n", text)

    def test_finetune(self):
        text = run("finetune")
        before = float(re.search(r"before: ([\d.]+) % of all", text)[1])
        after = float(re.search(r"after: ([\d.]+) % of all", text)[1])
        self.assertLess(before, 60)
        self.assertGreater(after, 85)
        self.assertLess(float(re.search(r"eager torch's losses: (\S+)", text)[1]), 1e-2)
        self.assertIn(", in torch: 0\n", text)

    def test_generate_text(self):
        text = run("generate_text", "Beautiful is", 40)
        self.assertRegex(text, r"written: 'Beautiful is better than ugly\.")
        self.assertIn("the same as eager torch writes: True\n", text)
        self.assertIn("the same as without a cache: True\n", text)


if __name__ == "__main__":
    unittest.main()
