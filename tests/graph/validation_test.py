"""The Khronos validation layers, with synchronisation validation, have nothing to say about `fornax run`."""

import os
import unittest
from unittest import mock

import numpy as np
from onnx import helper

from fornax_command import DIGITS, IMAGES, FornaxCase, make_model

LAYER = "VK_LAYER_KHRONOS_validation"
LAYER_ENVIRONMENT = {
    "VK_INSTANCE_LAYERS": LAYER,
    "VK_LAYER_ENABLES": "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT",
    "VK_LOADER_DEBUG": "layer",
}


class Validation(FornaxCase):
    def check(self, *arguments):
        with mock.patch.dict(os.environ, LAYER_ENVIRONMENT):
            result = self.fornax("run", *arguments)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        # The loader reports on standard error that the layer is in; the layer itself writes to standard output.
        self.assertRegex(result.stderr, rf"(?i)insert(ed|ing)?[^\n]*{LAYER}")
        self.assertNotRegex(result.stdout, r"Validation|VUID|SYNC-HAZARD|UNASSIGNED")

    def test_digits(self):
        self.check(DIGITS, "--input", IMAGES)
        self.check(DIGITS, "--input", IMAGES)  # with pipelines from the cache
        self.check(DIGITS, "--dim", "N=16", "--repeat", "3")

    def test_graph_with_shared_values_and_parts(self):
        nodes = [
            helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["a"], ["r"]),
            helper.make_node("Transpose", ["r"], ["t"], perm=[0, 1, 3, 2]),
            helper.make_node("Concat", ["a", "t", "r"], ["c"], axis=1),
            helper.make_node("Add", ["c", "k"], ["s"]),
            helper.make_node("GlobalAveragePool", ["s"], ["y"]),
        ]
        model = make_model(nodes, {"x": (2, 3, 6, 6)}, {"y": None},
                           {"w": np.ones((3, 3, 3, 3), np.float32), "k": np.ones((6, 1), np.float32)})
        path = self.directory / "model.onnx"
        path.write_bytes(model.SerializeToString())
        self.check(path)


if __name__ == "__main__":
    unittest.main()
