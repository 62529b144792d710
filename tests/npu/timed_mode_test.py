"""tools/replay/timed_mode.py, with a program that says what it was started with."""

import contextlib
import io
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tools.replay import timed_mode  # noqa: E402

# Twice as slow where there is a described machine.
PROGRAM = "import os; print('took', 4 if os.environ.get('FORNAX_NPU') else 2, os.environ.get('FORNAX_NPU_RECORDS', 'none'))"


class TimedModeCase(unittest.TestCase):
    def ran(self, *options, program=PROGRAM):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            timed_mode.main([*options, "--", sys.executable, "-c", program])
        return output.getvalue()

    def test_both_kinds_of_runs_are_compared(self):
        self.assertEqual(self.ran("--runs", "2", "--number", r"took (\d)"),
                         "host   2  (2 to 2, 2 runs)\ntimed  4  (4 to 4, 2 runs)\ntimed mode is +100.0 % slower\n")
        self.assertIn("-50.0 % slower", self.ran("--runs", "1", "--number", r"took (\d)", "--rate"))
        self.assertIn("% slower", self.ran("--runs", "1"))
        self.assertIn("% slower", self.ran("--runs", "1", "--cpu"))

    def test_records_have_a_file_of_each_process(self):
        options = timed_mode.parse(["--records", "--npu", "edge-4", "--", "x"])
        kinds = timed_mode.environments(options, "r.%p")
        self.assertEqual((kinds["timed"]["FORNAX_NPU"], kinds["timed"]["FORNAX_NPU_RECORDS"]), ("edge-4", "r.%p"))
        self.assertFalse({"FORNAX_NPU", "FORNAX_NPU_RECORDS"} & set(kinds["host"]))

    def test_mistakes_are_sentences(self):
        with self.assertRaisesRegex(SystemExit, "printed nothing that matches"):
            self.ran("--runs", "1", "--number", r"speed (\d)")
        with self.assertRaisesRegex(SystemExit, "ended with 3: It said nothing."):
            self.ran("--runs", "1", program="raise SystemExit(3)")


if __name__ == "__main__":
    unittest.main()
