"""`fornax bench torch`: a table of small networks beside eager torch and Inductor, and its numbers as JSON.

FORNAX_COMMAND is the command, FORNAX_STAGE the folder of the Python package. Without transformers there is nothing to test.
"""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

HAS_MODELS = importlib.util.find_spec("transformers") is not None
HAS_COMPILER = shutil.which(os.environ.get("CXX") or "g++") is not None  # which Inductor calls


def bench(*arguments):
    return subprocess.run([os.environ["FORNAX_COMMAND"], "bench", "torch", *map(str, arguments)], capture_output=True,
                          text=True, timeout=900)


@unittest.skipUnless(HAS_MODELS and HAS_COMPILER, "transformers or a C++ compiler is not there")
class BenchTorch(unittest.TestCase):
    def test_networks_and_calls(self):
        with tempfile.TemporaryDirectory(prefix="fornax_bench_test_") as folder:
            numbers = pathlib.Path(folder) / "bench.json"
            result = bench("llama_dynamic", "bert_mini_training", "calls", "--small", "--rounds", 2, "--seconds", 0.1,
                           "--warm-up", 0.05, "--first-calls", "fornax", "precompiled", "--json", numbers, "--package",
                           os.environ["FORNAX_STAGE"])
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            report = json.loads(numbers.read_text())
        decode, training = report["rows"]
        self.assertEqual((decode["network"], training["network"]), ("llama_dynamic", "bert_mini_training"))
        self.assertEqual(set(decode["median_ms"]), {"eager", "inductor", "fornax", "fornax_medium"})
        self.assertEqual(set(training["median_ms"]), {"eager", "inductor", "fornax"})
        for row in report["rows"]:
            self.assertEqual(row["errors"], {})
            self.assertEqual(row["in_torch"]["fornax"], [])
            self.assertGreaterEqual(row["graphs"]["fornax"], 2)  # another one for open sizes; forward and backward
            self.assertLess(row["difference"]["fornax"], 1e-4)
            self.assertAlmostEqual(row["ratio"]["fornax"], row["median_ms"]["inductor"] / row["median_ms"]["fornax"])
            self.assertLessEqual({"eager", "inductor", "fornax"}, set(row["first_ms"]))
            # The last one is there if what torch keeps of Dynamo's work was found.
            self.assertEqual(set(row["cached_ms"]), {"eager", "fornax", "precompiled"})
        self.assertEqual(set(report["calls"]), {"eager", "aot_eager", "inductor", "fornax", "fornax_graph"})
        for text in ("| llama_dynamic | ", "geometric mean of 1 networks, inference, x Inductor: ",
                     "geometric mean of 1 networks, training, x eager: ", "a call of a graph of one kernel, us: eager "):
            self.assertIn(text, result.stdout)

    def test_what_cannot_be_measured_is_said(self):
        self.assertIn("There is nothing called nobody to measure", bench("nobody").stderr)
        with tempfile.TemporaryDirectory(prefix="fornax_bench_test_") as folder:  # holds no package
            result = bench("bert", "--small", "--package", folder)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"\| bert \| its process ended with 1: .*fornax")
        self.assertIn("lstm ", bench("--list").stdout)


if __name__ == "__main__":
    unittest.main()
