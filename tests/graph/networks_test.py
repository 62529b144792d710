"""What networks.py takes for equal and for wrong; with onnxruntime alone."""

import pathlib
import tempfile
import unittest
import unittest.mock

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import networks
import selection


def save(folder, name, nodes, inputs, outputs, constants):
    def described(entries):
        return [helper.make_tensor_value_info(key, kind, shape) for key, kind, shape in entries]

    graph = helper.make_graph(nodes, "net", described(inputs), described(outputs),
                              [numpy_helper.from_array(array, key) for key, array in constants.items()])
    path = pathlib.Path(folder) / name
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), path)
    return path


class Choices(unittest.TestCase):
    """Two boxes that overlap, whose scores nearly tie: one of them is kept."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        path = save(
            self.folder.name, "choose.onnx",
            [helper.make_node("Relu", ["x"], ["scores"]),
             helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "overlap"], ["found"]),
             helper.make_node("GatherND", ["scores", "found"], ["kept"])],
            [("boxes", TensorProto.FLOAT, [1, 2, 4]), ("x", TensorProto.FLOAT, [1, 1, 2])],
            [("found", TensorProto.INT64, ["n", 3]), ("kept", TensorProto.FLOAT, ["n"])],
            {"most": np.array([5], np.int64), "overlap": np.array([0.5], np.float32)})
        self.parts = selection.cut(path, pathlib.Path(self.folder.name))
        self.inputs = {"boxes": np.array([[[0, 0, 4, 4], [0, 0, 4, 4.1]]], np.float32),
                       "x": np.array([[[0.5, 0.5000001]]], np.float32)}

    def within(self, scores, kept):
        scores = np.array([[scores]], np.float32)
        found = np.array([[0, 0, index] for index in kept], np.int64)
        actual = {"scores": scores, "found": found, "kept": scores[0, 0, list(kept)]}
        return networks.selected_difference(self.parts, self.inputs, actual)[1]

    def test_the_cut_is_in_front_of_the_choice(self):
        self.assertEqual([value.name for value in onnx.load(self.parts[0]).graph.output], ["found", "kept", "scores"])
        self.assertEqual(self.parts[2], ["scores"])

    def test_nearly_equal_scores_may_choose_otherwise(self):
        self.assertTrue(self.within([0.5, 0.5000001], [1]))
        self.assertTrue(self.within([0.5000001, 0.5], [0]))

    def test_a_choice_against_its_own_scores_is_wrong(self):
        self.assertFalse(self.within([0.5, 0.5000001], [0]))
        self.assertFalse(self.within([0.5, 0.5000001], [0, 1]))

    def test_other_scores_are_wrong(self):
        self.assertFalse(self.within([0.6, 0.5], [0]))


class Noise(unittest.TestCase):
    """A sum that nearly cancels, so that onnxruntime differs from itself."""

    def within(self, actual, plain):
        def output(last):
            return {"y": np.array([1000] * 99 + [last], np.float32)}

        def reference(path, arrays, optimized=True):
            return output(1 if optimized else plain)

        with unittest.mock.patch.object(networks.compare, "reference", reference):
            return networks.worst_difference("", {}, output(actual), False)[1]

    def test_as_far_off_as_onnxruntime_from_itself(self):
        self.assertTrue(self.within(1.2, 1.15))
        self.assertTrue(self.within(1.2, 0.85))
        self.assertFalse(self.within(1.4, 1.15))
        self.assertFalse(self.within(1.2, 1))

    def test_up_to_a_limit(self):
        self.assertTrue(self.within(1.9, 3))
        self.assertFalse(self.within(2.1, 3))


class Modules(unittest.TestCase):
    """A validator that takes what contains the word good."""

    def test_what_the_validator_refuses_is_counted_and_named(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            validator = folder / "validator"
            validator.write_text("#!/bin/sh\ngrep -q good \"$3\" || { echo lacks OpFunctionEnd; exit 1; }\n")
            validator.chmod(0o700)
            (folder / "first.spv").write_text("good")
            (folder / "second.spv").write_text("bad")
            count, invalid = networks.invalid_modules(str(validator), folder)
        self.assertEqual(count, 2)
        self.assertEqual(invalid, ["second: ['lacks OpFunctionEnd']"])


if __name__ == "__main__":
    unittest.main()
