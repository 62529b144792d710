"""wgpu-py on Fornax: every case of tools/clients/compute/wgpu_cases.py is right with FORNAX_COMPAT, and no adapter is there without.

Usage: wgpu_test.py, with FORNAX_MANIFEST set. Exits with 77 where wgpu is not installed.
"""

import importlib.util
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "tools/clients/compute/wgpu_cases.py"
CASES = {"matmul", "histogram", "mandelbrot", "scan", "storage texture"}


def run(**environment):
    manifest = os.environ["FORNAX_MANIFEST"]
    return subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, timeout=250, stdin=subprocess.DEVNULL, env={
        **os.environ, "VK_DRIVER_FILES": manifest, "VK_ICD_FILENAMES": manifest, "WGPU_BACKEND_TYPE": "Vulkan",
        "FORNAX_CLIENT_CASES_ONCE": "1", **environment})


class WgpuTest(unittest.TestCase):
    def test_every_case_is_right(self):
        result = run(FORNAX_COMPAT="graphics,conformance")
        answers = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
        self.assertEqual({answer["case"] for answer in answers}, CASES, result.stderr)
        for answer in answers:
            self.assertTrue(answer["right"], answer)

    def test_by_default_there_is_no_adapter(self):
        result = run(FORNAX_COMPAT="")
        self.assertNotEqual(result.returncode, 0)
        self.assertNotIn('"right": true', result.stdout)


if __name__ == "__main__":
    if importlib.util.find_spec("wgpu") is None:
        print("wgpu is not installed; tools/setup/python.sh does that.")
        sys.exit(77)
    unittest.main()
