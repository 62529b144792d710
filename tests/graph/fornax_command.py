"""What the graph suites share: running the `fornax` command on models and tensors in a scratch directory.

The path of the command is in FORNAX_COMMAND, the device to run on in FORNAX_TEST_DEVICE (none means the
command's own choice).
"""

import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "models" / "digits.onnx"
IMAGES = ROOT / "models" / "digits_test_images.pb"
LABELS = ROOT / "models" / "digits_test_labels.pb"


class FornaxCase(unittest.TestCase):
    """A test with a directory and a cache of its own."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="fornax_graph_")
        self.addCleanup(scratch.cleanup)
        self.directory = pathlib.Path(scratch.name)
        self.cache = self.directory / "cache"

    def fornax(self, *arguments):
        """Runs the command and returns the finished process; never raises for its exit status."""
        environment = dict(os.environ, FORNAX_CACHE_DIR=str(self.cache))
        command = [os.environ["FORNAX_COMMAND"], *map(str, arguments)]
        device = os.environ.get("FORNAX_TEST_DEVICE")
        if device and arguments[0] == "run":
            command += ["--device", device]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)

    def fornax_ok(self, *arguments):
        result = self.fornax(*arguments)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def save_tensor(self, name, array):
        path = self.directory / name
        path.write_bytes(numpy_helper.from_array(array).SerializeToString())
        return path

    def run_model(self, model, inputs, *options):
        """Runs a model or plan file on arrays by name and returns its outputs as a dictionary of arrays."""
        np.savez(self.directory / "inputs.npz", **inputs)
        self.fornax_ok("run", model, "--input", self.directory / "inputs.npz", "--output-dir", self.directory / "results",
                       "--format", "npz", *options)
        with np.load(self.directory / "results" / "outputs.npz") as outputs:
            return dict(outputs)


def make_model(nodes, inputs, outputs, constants=None, opset=13):
    """A checked model. `inputs` and `outputs` map names to shapes, `constants` names to arrays."""
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    return model


def onnxruntime_outputs(model, inputs):
    """What onnxruntime computes; `inputs` maps names to arrays."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def random_array(rng, shape, low=-1.0, high=1.0):
    return rng.uniform(low, high, shape).astype(np.float32)
