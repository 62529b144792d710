"""llama.cpp, unmodified and prebuilt, on Fornax and on its own CPU backend: through its Vulkan backend, or
through libggml-fornax.so if FORNAX_GGML_BACKEND names it.

Environment: FORNAX_MANIFEST, the driver's; FORNAX_NODE_MODULES, the folder that tools/setup/node.sh fills.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path.append(str(HERE.parents[1] / "tools/clients"))
from write_llama import SHAPES, write_model  # noqa: E402  (the folder must be known first)

STEPS = 12
# Squared error of the logits relative to their squares. The CPU backend rounds activations to 8 bits
# where weights are quantised.
MOST_ERROR = {"f16": 1e-4, "q8_0": 2e-3, "q4_0": 2e-3}
# Tokens whose logits are this near each other on the CPU backend are equally likely; the logits'
# standard deviation is 4.
TIE = {"f16": 0.05, "q8_0": 0.4, "q4_0": 0.4}


class Llama(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="fornax-llama-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def generate(self, model, device, forced=()):
        environment = dict(os.environ, FORNAX_CACHE_DIR=str(self.folder / "cache"))
        manifest = os.environ["FORNAX_MANIFEST"]
        environment.update(VK_DRIVER_FILES=manifest, VK_ICD_FILENAMES=manifest)
        if backend := os.environ.get("FORNAX_GGML_BACKEND"):
            environment.update(GGML_BACKEND_PATH=backend, GGML_VK_VISIBLE_DEVICES="")
        node = pathlib.Path(sys.executable).with_name("node")
        command = [node, HERE / "generate.mjs", os.environ["FORNAX_NODE_MODULES"], model, device, str(STEPS)]
        if forced:
            command.append(",".join(map(str, forced)))
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)

    def check_type(self, type_name, shape="tiny"):
        model = self.folder / f"{type_name}.gguf"
        write_model(model, type_name, SHAPES[shape])
        cpu = self.generate(model, "cpu")
        tokens = [step["token"] for step in cpu["steps"]]
        self.assertGreater(len(set(tokens)), STEPS // 3, "The model says always the same.")
        npu = self.generate(model, "vulkan", forced=tokens)
        self.assertEqual(len(npu["devices"]), 1)
        self.assertIn("Fornax", npu["devices"][0])
        self.assertEqual(npu["layers"], SHAPES[shape].layers + 1)  # with the output layer
        equal = 0
        for number, (expected, actual) in enumerate(zip(cpu["steps"], npu["steps"], strict=True)):
            with self.subTest(step=number):
                logits = np.array(expected["logits"])
                error = np.array(actual["logits"]) - logits
                self.assertLess(np.sum(error**2) / np.sum(logits**2), MOST_ERROR[type_name])
                self.assertLess(logits[expected["token"]] - logits[actual["token"]], TIE[type_name])
            equal += actual["token"] == expected["token"]
        self.assertGreaterEqual(equal, STEPS - 2)

    def test_f16(self):
        self.check_type("f16")

    def test_q8_0(self):
        self.check_type("q8_0")

    def test_q4_0(self):
        self.check_type("q4_0")

    def test_gemma(self):
        self.check_type("f16", "tiny-gemma")


if __name__ == "__main__":
    unittest.main()
