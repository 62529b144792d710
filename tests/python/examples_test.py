"""The examples run, and say what they say they do."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import fornax
from support import DIGITS, ROOT

EXAMPLES = ROOT / "examples"


def run(*command):
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
    if result.returncode != 0:
        raise AssertionError(f"{command} ended with {result.returncode}:\n{result.stdout}{result.stderr}")
    return result.stdout


class Examples(unittest.TestCase):
    def test_classify_digits(self):
        text = run(sys.executable, EXAMPLES / "classify_digits.py")
        self.assertGreaterEqual(float(re.search(r"accuracy: ([\d.]+) % of 450", text)[1]), 97)
        self.assertIn("input image: float32 ('N', 1, 8, 8)", text)

    def test_without_copies(self):
        text = run(sys.executable, EXAMPLES / "without_copies.py")
        self.assertIn("used in place: image, probabilities\n", text)
        self.assertIn("all rows are equal now: True\n", text)
        self.assertIn("both are done: (4096, 10) (2, 10)\n", text)

    def test_run_model_in_c(self):
        program = os.environ["FORNAX_RUN_MODEL"]
        x = np.random.default_rng(2).random((1, 1, 8, 8), dtype=np.float32)
        with tempfile.TemporaryDirectory(prefix="fornax_python_") as folder:
            path = pathlib.Path(folder, "image.bin")
            path.write_bytes(x.tobytes())
            text = run(program, DIGITS, f"image={path}")
            values = re.search(r"^probabilities: f32\[1,10\]((?: \S+){10})$", text, re.MULTILINE)[1].split()
            np.testing.assert_array_equal(np.array(values, np.float32), fornax.load(DIGITS)(x)[0])
            path.write_bytes(x.tobytes()[:-1])
            result = subprocess.run([program, DIGITS, f"image={path}"], capture_output=True, text=True)
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr, r"^run_model: .*image\.bin\.\n$")
        result = subprocess.run([program, "no-model.onnx"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"^run_model: .*no-model\.onnx.*\.\n$")


if __name__ == "__main__":
    unittest.main()
