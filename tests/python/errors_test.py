"""What is wrong is said in a sentence, and the session goes on."""

import os
import pickle
import tempfile
import unittest

import numpy as np
from onnx import TensorProto, helper

import fornax
from support import DIGITS, FLOAT, Exporter, add, model, python

SENTENCE = r"^[^\n]*\w[^\n]*\.$"


class Errors(unittest.TestCase):
    def assert_fails(self, status, pattern, call, *arguments, **options):
        with self.assertRaisesRegex(fornax.Error, pattern) as caught:
            call(*arguments, **options)
        self.assertEqual(caught.exception.status, status, caught.exception)
        self.assertRegex(str(caught.exception), SENTENCE)

    def setUp(self):
        self.session = fornax.load(add(), cache=False)
        self.a = np.ones((2, 4), np.float32)
        self.addCleanup(self.session.close)

    def tearDown(self):
        np.testing.assert_array_equal(self.session(self.a, self.a), self.a + self.a)  # it goes on

    def test_names(self):
        run, a = self.session.run, self.a
        invalid = fornax.Status.INVALID_ARGUMENT
        self.assert_fails(invalid, r"^The input b is missing; the model's inputs are: a, b\.$", run, {"a": a})
        self.assert_fails(invalid, r"^The model has no input c; it has: a, b\.$", run, {"a": a, "c": a})
        self.assert_fails(invalid, r"^The model has no input c; it has: a, b\.$", run, {"a": a, "b": a, "c": a})
        self.assert_fails(invalid, r"^The model has no output z; it has: y\.$", run, {"a": a, "b": a}, out={"z": a})
        self.assert_fails(invalid, r"^1 inputs are given; the model has 2: a, b\.$", self.session, a)
        for wrong in (a, None, "a", 3):
            with self.assertRaises(TypeError):
                run(wrong)
        with self.assertRaises(TypeError):
            self.session(a, b=a)

    def test_dtypes(self):
        invalid = fornax.Status.INVALID_ARGUMENT
        for wrong, name in ((self.a.astype(np.float64), "float64"), (self.a.astype(np.int32), "int32"),
                            (self.a.astype(np.complex64), "complex64"), (Exporter(self.a.astype(np.int8)), ".*")):
            self.assert_fails(invalid, rf"^a has elements of type f32 and is given as {name}\.$", self.session, wrong, self.a)
        with self.assertRaises(TypeError):
            fornax.load(model([helper.make_node("Neg", ["x"], ["y"])], {"x": (TensorProto.INT64, [1])},
                              {"y": (TensorProto.INT64, [1])}), cache=False)([1.5])

    def test_shapes(self):
        invalid = fornax.Status.INVALID_ARGUMENT
        self.assert_fails(invalid, "a is given with 1 dimensions; it has 2", self.session, np.ones(4, np.float32), self.a)
        self.assert_fails(invalid, ".", self.session, self.a, np.ones((3, 4), np.float32))
        self.assert_fails(invalid, ".", self.session, self.a[:, :3], self.a[:, :3])

    def test_arrays_to_write_to(self):
        invalid = fornax.Status.INVALID_ARGUMENT

        def run(out):
            return self.session.run({"a": self.a, "b": self.a}, out={"y": out})

        read_only = np.ones((2, 4), np.float32)
        read_only.flags.writeable = False
        for wrong, pattern in (
                (np.ones((3, 4), np.float32), r"^The output y is f32\[2,4\]; the array .* is f32\[3,4\]\.$"),
                (np.ones((8,), np.float32), r"f32\[8\]"), (read_only, "read only"),
                (np.ones((2, 8), np.float32)[:, ::2], "not contiguous"), (np.ones((2, 4)), "float64")):
            self.assert_fails(invalid, pattern, run, wrong)
        for wrong in (None, [[1.0] * 4] * 2):
            with self.assertRaises(TypeError):
                run(wrong)

    def test_files(self):
        status = fornax.Status
        with tempfile.TemporaryDirectory(prefix="fornax_python_") as folder:
            path = os.path.join(folder, "model.onnx")
            self.assert_fails(status.NOT_FOUND, "model.onnx", fornax.load, path)
            whole = DIGITS.read_bytes()
            for damaged in (b"", b"no model", whole[:-1000], whole[:100]):
                with open(path, "wb") as file:
                    file.write(damaged)
                for source in (path, damaged):
                    with self.assertRaisesRegex(fornax.Error, SENTENCE):
                        fornax.load(source, cache=False)
            self.assert_fails(status.IO, ".", fornax.load, folder)
        with self.assertRaises(TypeError):
            fornax.load(3)
        with self.assertRaises(ValueError):
            fornax.load("a\0b")

    def test_options(self):
        invalid = fornax.Status.INVALID_ARGUMENT
        self.assert_fails(invalid, "highest, high or medium", fornax.load, add(), precision="low")
        self.assert_fails(invalid, "no size m open", fornax.load, add(), dynamic="m")
        self.assert_fails(fornax.Status.NOT_FOUND, "There is no Vulkan device nothing; there are: ", fornax.load, add(),
                          device="nothing")
        for wrong in ({"strict": 2}, {"dynamic": 3}, {"kept_plans": "many"}):
            with self.assertRaises((TypeError, ValueError)):
                fornax.load(add(), **wrong)
        with self.assertRaises(TypeError):
            fornax.load(add(), prescision="medium")

    def test_closed_sessions(self):
        session = fornax.load(add(), cache=False)
        session.close()
        session.close()
        for call in (lambda: session(self.a, self.a), session.reset, session.wait, session.clone, lambda: session.device,
                     lambda: session.inputs, lambda: session.outputs):
            self.assert_fails(fornax.Status.INVALID_ARGUMENT, r"^The session is closed\.$", call)
        self.assertIn("closed", repr(session))
        with fornax.load(add(), cache=False) as other:
            other(self.a, self.a)
        self.assertIn("closed", repr(other))

    def test_sessions_are_not_made_or_copied_otherwise(self):
        with self.assertRaises(TypeError):
            fornax.Session()
        with self.assertRaises(TypeError):
            pickle.dumps(self.session)

    def test_no_device(self):
        result = python("""
            import fornax
            for call in (fornax.devices, lambda: fornax.load(b"x")):
                try:
                    call()
                except fornax.Error as error:
                    print(error.status.name, error)
            """, VK_DRIVER_FILES="/nothing.json", VK_LOADER_DEBUG="none")
        lines = result.stdout.splitlines()
        self.assertEqual(len(lines), 2, result.stdout)
        for line in lines:
            self.assertRegex(line, r"^NOT_FOUND .*\w.*\.$")

    def test_errors_are_values(self):
        error = fornax.Error("A sentence.", 2)
        self.assertEqual((str(error), error.status), ("A sentence.", fornax.Status.UNSUPPORTED))
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(again), again.status), (str(error), error.status))
        with self.assertRaisesRegex(fornax.Error, SENTENCE):
            fornax.load(model([helper.make_node("Neg", ["x"], ["y"])], {"x": (FLOAT, [4])}, {"y": (FLOAT, [4])}),
                        inputs={"x": np.zeros(4, np.complex64)})


if __name__ == "__main__":
    unittest.main()
