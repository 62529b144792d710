"""`fornax bench --drivers`: drivers that are named by their manifest."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path


def bench(*arguments):
    return subprocess.run([os.environ["FORNAX_COMMAND"], "bench", "--quick", "--repetitions", "1", "--filter", "^saxpy_cached$", *map(str, arguments)],
                          capture_output=True, text=True, check=False)


class NamedDrivers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def manifest(self, library):
        path = self.folder / "other.json"
        path.write_text(json.dumps({"file_format_version": "1.0.1", "ICD": {"library_path": str(library), "api_version": "1.4.0"}}))
        return path

    def test_another_build_is_measured_beside_this_one(self):
        report = self.folder / "report.json"
        ran = bench("--drivers", f"fornax,{self.manifest(os.environ['FORNAX_DRIVER'])}", "--json", report)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        results = json.loads(report.read_text())["benchmarks"][0]["results"]
        self.assertEqual(sorted(results), ["Fornax", "Fornax build 2"])
        self.assertTrue(all(result["median"] > 0 for result in results.values()))

    def test_a_driver_that_does_not_start_is_told(self):
        path = self.manifest(self.folder / "absent.so")
        ran = bench("--drivers", f"fornax,{path}")
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn(f"The driver of {path} does not start", ran.stderr)


if __name__ == "__main__":
    unittest.main()
