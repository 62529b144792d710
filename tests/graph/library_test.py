"""ONNX models through libfornax.so, beside onnxruntime.

FORNAX_LIBRARY is the library's path, VK_DRIVER_FILES the driver's manifest.
"""

import os
import re
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import libfornax

HEADER = os.path.join(os.path.dirname(__file__), "..", "..", "runtime", "fornax.h")
LIBRARY = os.environ["FORNAX_LIBRARY"]
RANDOM = np.random.default_rng(5)


def make_model(nodes, inputs, outputs, weights=None):
    """Inputs and outputs are {name: (type, dimensions)}, dimensions numbers or names."""
    graph = helper.make_graph(
        nodes, "test",
        [helper.make_tensor_value_info(name, *spec) for name, spec in inputs.items()],
        [helper.make_tensor_value_info(name, *spec) for name, spec in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def perceptron():
    return make_model(
        [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Add", ["a", "b"], ["s"]),
         helper.make_node("Relu", ["s"], ["r"]), helper.make_node("Softmax", ["r"], ["y"])],
        {"x": (TensorProto.FLOAT, ["batch", 8])}, {"y": (TensorProto.FLOAT, ["batch", 5])},
        {"w": RANDOM.standard_normal((8, 5)).astype(np.float32),
         "b": RANDOM.standard_normal(5).astype(np.float32)})


class LibraryTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.library = libfornax.Library(LIBRARY)

    def load(self, model, **options):
        loaded = libfornax.Model(self.library, model.SerializeToString(), cache="none", **options)
        self.addCleanup(loaded.close)
        return loaded

    def test_sizes_change_between_runs(self):
        model = perceptron()
        reference = onnxruntime.InferenceSession(model.SerializeToString())
        loaded = self.load(model)
        # The model's, also where the first plan is for a batch of 1.
        self.assertEqual(loaded.inputs(), [("x", 21, (-1, 8))])
        self.assertEqual(loaded.outputs(), [("y", 21, (-1, 5))])
        for batch in (1, 3, 200, 3, 0, 1):
            x = RANDOM.standard_normal((batch, 8)).astype(np.float32)
            (actual,) = loaded.run(x)
            self.assertEqual(actual.shape, (batch, 5))
            if batch != 0:
                np.testing.assert_allclose(actual, reference.run(None, {"x": x})[0], rtol=1e-5, atol=1e-6)

    def test_one_plan_serves_sizes_that_stay_open(self):
        model = perceptron()
        reference = onnxruntime.InferenceSession(model.SerializeToString())
        for options, plans in (({}, 4), ({"dynamic_sizes": ["batch"]}, 1), ({"dynamic": 1}, 1)):
            with tempfile.TemporaryDirectory(prefix="fornax_library_") as directory:
                with libfornax.Model(self.library, model.SerializeToString(), cache=directory, **options) as loaded:
                    for batch in (2, 3, 200, 33):
                        x = RANDOM.standard_normal((batch, 8)).astype(np.float32)
                        np.testing.assert_allclose(loaded.run(x)[0], reference.run(None, {"x": x})[0], rtol=1e-5, atol=1e-6)
                kinds = [name.split("-")[0] for name in os.listdir(directory)]
                self.assertEqual(kinds.count("graphplan"), plans, options)
        with self.assertRaisesRegex(libfornax.FornaxError, "no size n open; those that it does are: batch."):
            self.load(model, dynamic_sizes=["n"])

    def test_profiles_name_the_steps(self):
        loaded = self.load(perceptron())
        steps = loaded.profile(np.ones((4, 8), np.float32))
        self.assertTrue(steps)
        self.assertTrue(all(name and nanoseconds >= 0 for name, nanoseconds, _, _ in steps), steps)
        # After it, runs use copies of what they are given again.
        zeros, ones = loaded.run(np.zeros((4, 8), np.float32)), loaded.run(np.ones((4, 8), np.float32))
        self.assertFalse(np.array_equal(zeros[0], ones[0]))

    def test_several_results_and_types(self):
        model = make_model(
            [helper.make_node("TopK", ["x", "k"], ["v", "i"]), helper.make_node("Cast", ["v"], ["h"], to=TensorProto.BFLOAT16)],
            {"x": (TensorProto.FLOAT, ["n", 6])},
            {"h": (TensorProto.BFLOAT16, ["n", 2]), "i": (TensorProto.INT64, ["n", 2])},
            {"k": np.array([2], np.int64)})
        x = RANDOM.permutation(18).reshape(3, 6).astype(np.float32)
        values, positions = self.load(model).run(x)
        order = np.argsort(-x, axis=1)[:, :2]
        np.testing.assert_array_equal(positions, order)
        np.testing.assert_array_equal(values.astype(np.float32), np.take_along_axis(x, order, 1))

    def test_files_with_external_data(self):
        model = perceptron()
        with tempfile.TemporaryDirectory(prefix="fornax_library_") as directory:
            path = os.path.join(directory, "model.onnx")
            onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
            x = RANDOM.standard_normal((2, 8)).astype(np.float32)
            expected = onnxruntime.InferenceSession(path).run(None, {"x": x})[0]
            for _ in range(2):  # compiled, then found in the cache
                with libfornax.Model(self.library, path, cache=directory) as loaded:
                    np.testing.assert_allclose(loaded.run(x)[0], expected, rtol=1e-5, atol=1e-6)
            # Other weights are another plan, though the model's file is the same.
            weights = np.fromfile(os.path.join(directory, "weights.bin"), np.float32)
            (-weights).tofile(os.path.join(directory, "weights.bin"))
            expected = onnxruntime.InferenceSession(path).run(None, {"x": x})[0]
            with libfornax.Model(self.library, path, cache=directory) as loaded:
                np.testing.assert_allclose(loaded.run(x)[0], expected, rtol=1e-5, atol=1e-6)

    def test_plans_are_found_in_the_cache(self):
        model = make_model(
            [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("TopK", ["a", "k"], ["v", "i"])],
            {"x": (TensorProto.FLOAT, ["n", 256]), "k": (TensorProto.INT64, [1])},
            {"v": (TensorProto.FLOAT, ["n", "m"]), "i": (TensorProto.INT64, ["n", "m"])},
            {"w": RANDOM.standard_normal((256, 300)).astype(np.float32)})
        reference = onnxruntime.InferenceSession(model.SerializeToString())
        with tempfile.TemporaryDirectory(prefix="fornax_library_") as directory:
            for rows, count in ((3, 2), (4, 2), (3, 5), (3, 2), (4, 2), (3, 5)):
                x = RANDOM.standard_normal((rows, 256)).astype(np.float32)
                k = np.array([count], np.int64)
                with libfornax.Model(self.library, model.SerializeToString(), cache=directory) as loaded:
                    values, positions = loaded.run(x, k)
                expected = reference.run(None, {"x": x, "k": k})
                np.testing.assert_allclose(values, expected[0], rtol=1e-4, atol=1e-4)
                np.testing.assert_array_equal(positions, expected[1])
            kinds = [name.split("-")[0] for name in os.listdir(directory)]
            self.assertEqual(kinds.count("graphplan"), 3)
            self.assertEqual(kinds.count("graphweight"), 1)  # in all of the plans

    def test_sizes_that_cannot_be_are_told_when_they_come(self):
        model = make_model(
            [helper.make_node("Reshape", ["x", "shape"], ["y"])],
            {"x": (TensorProto.FLOAT, ["n"])}, {"y": (TensorProto.FLOAT, [2, "m"])},
            {"shape": np.array([2, -1], np.int64)})
        loaded = self.load(model)  # not for n = 1, for which there is no y
        x = np.arange(6, dtype=np.float32)
        np.testing.assert_array_equal(loaded.run(x)[0], x.reshape(2, 3))
        with self.assertRaises(libfornax.FornaxError):
            loaded.run(x[:5])
        np.testing.assert_array_equal(loaded.run(x[:4])[0], x[:4].reshape(2, 2))

    def test_many_threads_run_one_session(self):
        model = perceptron()
        reference = onnxruntime.InferenceSession(model.SerializeToString())
        loaded = self.load(model)
        wrong = []

        def work(seed):
            random = np.random.default_rng(seed)
            for _ in range(10):
                x = random.standard_normal((int(random.integers(1, 6)), 8)).astype(np.float32)
                if not np.allclose(loaded.run(x)[0], reference.run(None, {"x": x})[0], rtol=1e-5, atol=1e-6):
                    wrong.append(x.shape)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_mistakes_are_sentences(self):
        with self.assertRaisesRegex(libfornax.FornaxError, r"\w.*\.$"):
            libfornax.Model(self.library, b"no model", cache="none")
        loaded = self.load(perceptron())
        with self.assertRaisesRegex(libfornax.FornaxError, "x is given with 1 dimensions"):
            loaded.run(np.zeros(8, np.float32))
        with self.assertRaises(libfornax.FornaxError):
            loaded.run(np.zeros((2, 9), np.float32))
        with self.assertRaisesRegex(libfornax.FornaxError, "f64"):
            loaded.run(np.zeros((2, 8), np.float64))

    def limited(self, program, **environment):
        """Runs a program on a device with other limits, in a process of its own."""
        result = subprocess.run([sys.executable, "-c", "from library_test import *\n" + textwrap.dedent(program)],
                                env={**os.environ, **environment}, cwd=os.path.dirname(os.path.abspath(__file__)),
                                capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_a_lost_device_is_an_error_of_the_run(self):
        self.limited("""
            model = make_model([helper.make_node("CumSum", ["x", "axis"], ["y"])], {"x": (TensorProto.FLOAT, [1, "n"])},
                               {"y": (TensorProto.FLOAT, [1, "n"])}, {"axis": np.array(1)})
            library = libfornax.Library(LIBRARY)
            loaded = libfornax.Model(library, model.SerializeToString(), cache="none")
            for _ in range(2):
                try:
                    loaded.run(np.ones((1, 1 << 24), np.float32))  # one workgroup
                    sys.exit("It ran.")
                except libfornax.FornaxError as error:
                    assert error.status == 6 and str(error).endswith("."), (error.status, error)
            loaded.close()
            # Another device of the process is none the worse.
            with libfornax.Model(library, model.SerializeToString(), cache="none") as again:
                assert again.run(np.ones((1, 3), np.float32))[0].tolist() == [[1, 2, 3]]
            """, FORNAX_WATCHDOG_MS="1")

    def test_a_full_device_is_an_error_of_the_run(self):
        self.limited("""
            model = make_model([helper.make_node("CumSum", ["x", "axis"], ["sums"]),
                                helper.make_node("ReduceMax", ["sums"], ["y"], keepdims=0)],
                               {"x": (TensorProto.FLOAT, ["n"])}, {"y": (TensorProto.FLOAT, [])}, {"axis": np.array(0)})
            library = libfornax.Library(LIBRARY)
            with libfornax.Model(library, model.SerializeToString(), cache="none") as loaded:
                # A buffer larger than the device's greatest; and one that does not fit beside the input.
                for size, status, text in ((1 << 25, 2, "at most 67108864"), (1 << 23, 5, "OUT_OF_DEVICE_MEMORY")):
                    assert loaded.run(np.ones(10, np.float32))[0] == 10
                    try:
                        loaded.run(np.ones(size, np.float32))
                        sys.exit("It ran.")
                    except libfornax.FornaxError as error:
                        assert error.status == status and text in str(error), (error.status, error)
                assert loaded.run(np.ones(1 << 22, np.float32))[0] == 1 << 22
            """, FORNAX_HEAP_BYTES=str(64 << 20))

    def test_only_the_interface_is_exported(self):
        with open(HEADER, encoding="utf-8") as header:
            declared = set(re.findall(r"^FORNAX_API[^;(]*?(fornax_\w+)\(", header.read(), re.MULTILINE))
        symbols = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], check=True, capture_output=True,
                                 text=True).stdout.splitlines()
        exported = {line.split()[-1].split("@")[0] for line in symbols}
        self.assertGreater(len(declared), 20)
        self.assertEqual(exported, declared)


if __name__ == "__main__":
    unittest.main()
