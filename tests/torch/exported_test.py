"""Programs of torch.export that run without Python and torch: from C, and by the command.

PYTHONPATH has the package, VK_DRIVER_FILES is the driver's manifest, FORNAX_RUN_PROGRAM is examples/run_program.c.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import torch

import fornax
import fornax.torch

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
PROGRAM = os.environ["FORNAX_RUN_PROGRAM"]


def run(*command, status=0):
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
    if result.returncode != status:
        raise AssertionError(f"{command} ended with {result.returncode}:\n{result.stdout}{result.stderr}")
    return result.stdout if status == 0 else result.stderr


class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="fornax_exported_")
        cls.path = pathlib.Path(cls.folder.name)
        cls.program = cls.path / "program.fnx"
        cls.said = run(sys.executable, EXAMPLES / "export_program.py", cls.program)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_c_computes_what_python_does(self):
        self.assertIn("inputs: b_calls, image\n", self.said)
        sys.path.insert(0, str(EXAMPLES))
        import export_program
        torch.manual_seed(1)
        model = export_program.Classifier().eval()
        session = fornax.load(self.program, cache=False)
        self.assertEqual([port.shape for port in session.inputs], [(1,), ("pictures", 3, 32, 32)])
        names = [port.name for port in session.outputs]
        for pictures in (2, 5):
            x = np.random.default_rng(pictures).random((pictures, 3, 32, 32), dtype=np.float32)
            (self.path / "image.bin").write_bytes(x.tobytes())
            said = run(PROGRAM, self.program, 3, self.path, f"image:{pictures},3,32,32={self.path / 'image.bin'}")
            self.assertIn(f"{names[0]}: f32[{pictures},10]\n", said)
            got = np.frombuffer((self.path / f"{names[0]}.bin").read_bytes(), np.float32).reshape(pictures, 10)
            here = session.run({"b_calls": np.zeros(1, np.float32), "image": x})
            np.testing.assert_array_equal(got, here[names[0]])
            with torch.no_grad():
                np.testing.assert_allclose(got, model(torch.from_numpy(x)).numpy(), rtol=1e-4, atol=1e-6)
            # Three runs, each with what the one before left.
            np.testing.assert_array_equal(np.fromfile(self.path / "mutated.b_calls.bin", np.float32), [3])

    def test_c_says_what_is_wrong(self):
        image = self.path / "image.bin"
        image.write_bytes(bytes(100 * 3 * 32 * 32 * 4))
        self.assertRegex(run(PROGRAM, self.program, 1, self.path, f"image:100,3,32,32={image}", status=1),
                         r"^run_program: .*pictures.*64.*\.\n$")
        self.assertRegex(run(PROGRAM, self.program, 1, self.path, f"image:1,3,32={image}", status=1),
                         r"^run_program: .*as many dimensions.*image\.\n$")
        self.assertRegex(run(PROGRAM, self.path / "none.fnx", 1, self.path, status=1), r"none\.fnx")

    def test_the_command_takes_it(self):
        command = pathlib.Path(fornax.__file__).parent / "_native" / "bin" / "fornax"
        plan = self.path / "program.plan"
        self.assertIn("written to", run(command, "compile", self.program, "-o", plan, "--dim", "pictures=3"))
        x = np.random.default_rng(1).random((3, 3, 32, 32), dtype=np.float32)
        inputs = {"b_calls": np.ones(1, np.float32), "image": x}
        ours, theirs = fornax.load(plan).run(inputs), fornax.load(self.program, cache=False).run(inputs)
        for name, value in theirs.items():
            np.testing.assert_array_equal(ours[name], value)
        self.assertIn("pictures", run(command, "compile", self.program, "-o", plan, "--dim", "rows=3", status=1))
        self.assertIn("output     mutated.b_calls: f32[1]", run(command, "run", self.program, "--dim", "pictures=3",
                                                                 "--no-cache"))


if __name__ == "__main__":
    unittest.main()
