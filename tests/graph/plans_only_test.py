"""A libfornax.so without the graph compiler: plan files give what the whole library gives, models are refused.

Environment: FORNAX_LIBRARY, the whole library; FORNAX_LIBRARY_WITHOUT_COMPILER; FORNAX_COMMAND; FORNAX_MODEL,
an ONNX file; VK_DRIVER_FILES, the driver's manifest.
"""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np

import libfornax

MODEL = Path(os.environ["FORNAX_MODEL"])


class PlansOnly(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.whole, cls.plans_only = (libfornax.Library(os.environ[name]) for name in (
            "FORNAX_LIBRARY", "FORNAX_LIBRARY_WITHOUT_COMPILER"))

    def test_a_plan_file_runs_as_in_the_whole_library(self):
        with tempfile.TemporaryDirectory() as folder:
            plan = Path(folder) / "plan"
            subprocess.run([os.environ["FORNAX_COMMAND"], "compile", MODEL, "-o", plan], check=True,
                           stdout=subprocess.DEVNULL)
            results = []
            for library in (self.whole, self.plans_only):
                for file in (plan, plan.read_bytes()):
                    with libfornax.Model(library, file, cache="none") as model:
                        (_, _, dims), = model.inputs()
                        x = np.random.default_rng(1).random([1 if dim < 0 else dim for dim in dims], np.float32)
                        results.append(model.run(x))
            self.assertGreater(np.ptp(results[0][0]), 0)
            for result in results[1:]:
                np.testing.assert_array_equal(result[0], results[0][0])

    def test_models_are_refused_with_a_sentence(self):
        for cache in ("none", ""):
            for model, name in ((MODEL, str(MODEL)), (MODEL.read_bytes(), "model")):
                with self.assertRaises(libfornax.FornaxError) as raised:
                    libfornax.Model(self.plans_only, model, **({"cache": cache} if cache else {}))
                self.assertIn(f"{name} is no plan file, and this build has no graph compiler", str(raised.exception))


if __name__ == "__main__":
    unittest.main()
