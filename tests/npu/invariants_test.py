"""What holds for every program (`fornax npu check`), of what real programs do: the loader's tests, the kernels of `fornax bench`
and a network.

FORNAX_COMMAND is the command, FORNAX_LOADER_TEST the loader's tests; VK_DRIVER_FILES is the driver's manifest.
"""

import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "models" / "digits.onnx"
PRESETS = ("edge-4", "laptop-45", "dc-400")


def run(*command, records=None):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("FORNAX_NPU")}
    if records:
        clean["FORNAX_NPU_RECORDS"] = str(records)
    return subprocess.run([*map(str, command)], env=clean, capture_output=True, text=True, timeout=280)


def fornax(*arguments, **keywords):
    return run(os.environ["FORNAX_COMMAND"], *arguments, **keywords)


class Invariants(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="fornax_invariants_")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def holds(self, least):
        """Checks all files of records, which have so many records at least."""
        files = sorted(self.folder.glob("*.jsonl"))
        checked = fornax("npu", "check", *files)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        lines = checked.stdout.splitlines()
        self.assertEqual(len(lines), len(files) * len(PRESETS))
        for number, line in enumerate(lines):
            self.assertRegex(line, r": \d+ records, [1-9]\d* invariants hold; modelled, uncalibrated "
                                   rf"\({PRESETS[number % 3]}, description [0-9a-f]{{16}}, model \d+\)$")
        self.assertGreaterEqual(sum(int(line.split(": ")[1].split()[0]) for line in lines), least * len(PRESETS))

    def test_the_loaders_tests(self):
        ran = run(os.environ["FORNAX_LOADER_TEST"], "--gtest_filter=AddTest.*:Kernels*Test.*:CommandsTest.*",
                  records=self.folder / "%p.jsonl")
        self.assertEqual(ran.returncode, 0, ran.stdout[-2000:] + ran.stderr[-2000:])
        self.holds(100)

    def test_kernels_of_the_benchmark(self):
        ran = fornax("bench", "--quick", "--repetitions", "1", "--drivers", "fornax", "--filter", "saxpy|row_sums|softmax|sgemm|histogram",
                     records=self.folder / "%p.jsonl")
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.holds(5)

    def test_a_network(self):
        ran = fornax("run", DIGITS, "--dim", "N=16", "--no-cache", "--records", self.folder / "digits.jsonl")
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.holds(4)

    def test_what_cannot_be_checked(self):
        damaged = self.folder / "damaged.jsonl"
        damaged.write_text('{"fornax_npu_records":1,"model":2,"records":2}\n{"dispatch":"a"}\n')
        for arguments, said in (((self.folder / "none.jsonl",), "none.jsonl"), ((damaged,), "damaged.jsonl"),
                                ((damaged, "--npu", "laptop-46"), "laptop-46")):
            ran = fornax("npu", "check", *arguments)
            self.assertEqual(ran.returncode, 1, ran.stdout + ran.stderr)
            self.assertIn(said, ran.stderr)
            self.assertEqual(len(ran.stderr.splitlines()), 1, ran.stderr)


if __name__ == "__main__":
    unittest.main()
