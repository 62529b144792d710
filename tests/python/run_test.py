"""The Python package runs models: arrays in and out, without copies, from threads, in the background."""

import gc
import threading
import unittest
import weakref

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper

import fornax
from support import DIGITS, FLOAT, Exporter, add, model

RANDOM = np.random.default_rng(3)


def floats(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


class Case(unittest.TestCase):
    def load(self, source, **options):
        session = fornax.load(source, cache=False, **options)
        self.addCleanup(session.close)
        return session


class Description(Case):
    def test_ports_have_names_dtypes_and_shapes(self):
        session = self.load(DIGITS)
        self.assertEqual(session.inputs, (fornax.Port("image", np.dtype(np.float32), ("N", 1, 8, 8)),))
        self.assertEqual(session.outputs, (fornax.Port("probabilities", np.dtype(np.float32), ("N", 10)),))
        self.assertIn("Fornax", session.device)
        self.assertIn("image: float32['N', 1, 8, 8]", repr(session))

    def test_formulas_of_sizes(self):
        session = self.load(model([helper.make_node("Concat", ["x", "x"], ["y"], axis=0)], {"x": (FLOAT, ["n", 3])},
                                  {"y": (FLOAT, ["m", 3])}))
        self.assertEqual(session.outputs[0].shape, ("2*n", 3))

    def test_devices(self):
        devices = fornax.devices()
        ours = [device for device in devices if device.is_fornax]
        self.assertEqual(len(ours), 1)
        self.assertEqual(ours[0], devices[ours[0].index])
        self.assertGreater(ours[0].memory_bytes, 1 << 20)
        self.assertGreaterEqual(ours[0].vulkan, (1, 2))
        self.assertEqual(self.load(DIGITS, device=ours[0].index).device, ours[0].name)

    def test_versions(self):
        self.assertEqual(len(fornax.version()), 2)
        self.assertRegex(fornax.__version__, r"^\d+\.\d+\.\d+$")

    def test_everything_public_is_documented(self):
        for name in fornax.__all__:
            if not name.startswith("__"):
                self.assertTrue(getattr(fornax, name).__doc__, name)
        for name in dir(fornax.Session):
            if not name.startswith("_"):
                self.assertTrue(getattr(fornax.Session, name).__doc__, name)


class Running(Case):
    def test_by_name_and_in_order(self):
        session = self.load(add())
        for rows in (1, 3, 0, 3, 700):
            a, b = floats(rows, 4), floats(rows, 4)
            results = session.run({"b": b, "a": a})
            self.assertEqual(list(results), ["y"])
            np.testing.assert_array_equal(results["y"], a + b)
            np.testing.assert_array_equal(session(a, b), a + b)

    def test_results_are_the_callers(self):
        session = self.load(add())
        a = floats(2, 4)
        first = session(a, a)
        session(a + 1, a)
        np.testing.assert_array_equal(first, a + a)

    def test_several_outputs(self):
        session = self.load(model(
            [helper.make_node("TopK", ["x", "k"], ["v", "i"])], {"x": (FLOAT, ["n", 6])},
            {"v": (FLOAT, ["n", 2]), "i": (TensorProto.INT64, ["n", 2])}, {"k": np.array([2], np.int64)}))
        x = RANDOM.permutation(18).reshape(3, 6).astype(np.float32)
        values, positions = session(x)
        order = np.argsort(-x, axis=1)[:, :2]
        np.testing.assert_array_equal(positions, order)
        np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))
        self.assertEqual(list(session.run({"x": x})), ["v", "i"])

    def test_arrays_of_every_make(self):
        session = self.load(add())
        a, zeros = floats(3, 4), np.zeros((3, 4), np.float32)
        read_only = a.copy()
        read_only.flags.writeable = False
        for made in (np.asfortranarray(a), np.repeat(a, 2, 1)[:, ::2], a.astype(">f4"), a.tolist(), read_only,
                     Exporter(a), Exporter(np.asfortranarray(a)), np.frombuffer(b"1" + a.tobytes(), np.uint8)[1:].view(
                         np.float32).reshape(3, 4)):
            np.testing.assert_array_equal(session(made, zeros), a)
        scalar = self.load(add([]))
        self.assertEqual(scalar(np.float32(2), 3).shape, ())
        self.assertEqual(scalar(np.array(2, np.float32), np.array(3, np.float32)), 5)

    def test_every_dtype(self):
        names = {np.bool_: "BOOL", np.int8: "INT8", np.int16: "INT16", np.int32: "INT32", np.int64: "INT64",
                 np.uint8: "UINT8", np.uint16: "UINT16", np.uint32: "UINT32", np.uint64: "UINT64", np.float16: "FLOAT16",
                 np.float32: "FLOAT", np.float64: "DOUBLE", ml_dtypes.bfloat16: "BFLOAT16"}
        for dtype, name in names.items():
            with self.subTest(name):
                kind = getattr(TensorProto, name)
                session = self.load(model([helper.make_node("Transpose", ["x"], ["y"])], {"x": (kind, [3, 5])},
                                          {"y": (kind, [5, 3])}))
                x = RANDOM.integers(0, 2, (3, 5)).astype(dtype)
                result = session(x)
                self.assertEqual(result.dtype, np.dtype(dtype))
                np.testing.assert_array_equal(result, x.T)

    def test_raw_bits_of_types_that_numpy_lacks(self):
        session = self.load(model([helper.make_node("Transpose", ["x"], ["y"])], {"x": (TensorProto.BFLOAT16, [3, 5])},
                                  {"y": (TensorProto.BFLOAT16, [5, 3])}))
        x = floats(3, 5).astype(ml_dtypes.bfloat16)
        np.testing.assert_array_equal(session(x.view(np.uint16)), x.T)

    def test_strings(self):
        session = self.load(model([helper.make_node("Concat", ["a", "b"], ["y"], axis=0)],
                                  {"a": (TensorProto.STRING, ["n"]), "b": (TensorProto.STRING, ["m"])},
                                  {"y": (TensorProto.STRING, ["k"])}))
        result = session(np.array(["eins", "zwei"]), np.array(["drei", "vier \u00e4"], object))
        self.assertEqual(result.tolist(), ["eins", "zwei", "drei", "vier \u00e4"])
        self.assertEqual(session(["x"], [""]).tolist(), ["x", ""])

    def test_values_that_decide_shapes(self):
        session = self.load(model([helper.make_node("Reshape", ["x", "s"], ["y"])],
                                  {"x": (FLOAT, [12]), "s": (TensorProto.INT64, [2])}, {"y": (FLOAT, ["m", "k"])}),
                            inputs={"s": np.array([3, 4])})
        x = floats(12)
        for shape in ((3, 4), (2, 6), (3, 4), (12, 1)):
            np.testing.assert_array_equal(session(x, np.array(shape)), x.reshape(shape))

    def test_sizes_that_the_run_gives(self):
        session = self.load(model([helper.make_node("NonZero", ["x"], ["i"]), helper.make_node("Neg", ["i"], ["y"])],
                                  {"x": (FLOAT, ["n"])}, {"y": (TensorProto.INT64, [1, "k"])}))
        for x in (np.array([0, 1, 2], np.float32), np.array([1, 1, 2], np.float32), np.array([0, 0, 2], np.float32)):
            expected = -np.array(np.nonzero(x))
            np.testing.assert_array_equal(session(x), expected)
            out = np.empty(expected.shape, np.int64)
            self.assertIs(session.run({"x": x}, out={"y": out})["y"], out)
            np.testing.assert_array_equal(out, expected)

    def test_options(self):
        a = floats(5, 4)
        for options in ({"precision": "medium"}, {"strict": True}, {"dynamic": True}, {"dynamic": ["n"]}, {"dynamic": "n"},
                        {"dims": {"n": 5}}, {"inputs": {"a": a, "b": a}}, {"kept_plans": 1, "kept_sizes": 1}):
            np.testing.assert_array_equal(self.load(add(), **options)(a, a), a + a)

    def test_plans_as_files_and_other_bytes(self):
        a = floats(5, 4)
        np.testing.assert_array_equal(self.load(bytearray(add()))(a, a), a + a)
        np.testing.assert_array_equal(self.load(memoryview(add()))(a, a), a + a)
        self.assertEqual(self.load(str(DIGITS))(floats(2, 1, 8, 8)).shape, (2, 10))

    def test_profiles(self):
        a = floats(5, 4)
        steps = self.load(add()).profile({"a": a, "b": a})
        self.assertTrue(steps)
        self.assertTrue(all(step.name and step.nanoseconds >= 0 and not step.on_host for step in steps))
        self.assertEqual(steps[0].bytes_written, a.nbytes)


    def test_reports(self):
        session = fornax.load(add(), cache=False, report=True)
        a = floats(5, 4)
        session(a, a)
        report = session.report()
        self.assertEqual(report["sizes"], {})  # a plan for each size
        self.assertEqual([step["bytes_written"] for step in report["steps"]], [a.nbytes])
        self.assertEqual([block["kind"] for block in report["blocks"]], ["input", "input", "output"])
        self.assertEqual([port["type"] for port in report["inputs"]], ["f32[5,4]", "f32[5,4]"])
        self.assertEqual(report["times"], [])
        self.assertEqual([boundary["readers"] for boundary in report["boundaries"]], [["outputs"]])
        self.assertIn('input "a" f32', report["graph"])
        session.profile({"a": a, "b": a})
        self.assertEqual([time["step"] for time in session.report()["times"]], [0])


class WithoutCopies(Case):
    def test_large_arrays_are_used_in_place(self):
        session = self.load(add())
        a, b, y = fornax.empty((1 << 16, 4)), floats(1 << 16, 4), np.empty((1 << 16, 4), np.float32)
        a[:] = 1
        result = session.run({"a": a, "b": b}, out={"y": y})
        self.assertEqual(session.in_place, ["a", "b", "y"])
        self.assertIs(result["y"], y)
        np.testing.assert_array_equal(y, a + b)
        a[:] = 2  # seen by the next run
        session.run({"a": a, "b": b}, out={"y": y})
        np.testing.assert_array_equal(y, a + b)
        np.testing.assert_array_equal(session.run({"a": Exporter(a), "b": b})["y"], a + b)
        self.assertEqual(session.in_place, ["a", "b"])

    def test_smaller_ones_when_they_come_again(self):
        session = self.load(add())
        a, y = fornax.empty((1000, 4)), fornax.empty((1000, 4))
        for expected in ([], ["a", "b", "y"], ["a", "b", "y"]):
            a[:] = RANDOM.standard_normal(a.shape)
            session.run({"a": a, "b": a}, out={"y": y})
            self.assertLessEqual(set(session.in_place), set(expected))
            np.testing.assert_array_equal(y, a + a)
        self.assertIn("a", session.in_place)
        other = floats(1000, 4)
        np.testing.assert_array_equal(session(other, a), other + a)

    def test_an_output_that_is_an_input(self):
        session = self.load(add())
        for shape in ((1, 4), (1000, 4), (1 << 16, 4)):
            a = floats(*shape)
            expected = a + a
            session.run({"a": a, "b": a}, out={"y": a})
            np.testing.assert_array_equal(a, expected)

    def test_arrays_are_let_go(self):
        class Array(np.ndarray):
            pass

        session = self.load(add())
        for release in (lambda: session(floats(1 << 16, 4), floats(1 << 16, 4)), lambda: session(floats(1, 4), floats(1, 4)),
                        session.reset, session.close):
            a = floats(1 << 16, 4).view(Array)
            session(a, a)
            alive = weakref.ref(a)
            del a
            self.assertIsNotNone(alive())  # the session has it
            release()
            gc.collect()
            self.assertIsNone(alive())

    def test_writing_to_what_dlpack_gives(self):
        session = self.load(add())
        a, y = floats(3, 4), np.zeros((3, 4), np.float32)
        made = Exporter(y)
        self.assertIs(session.run({"a": a, "b": a}, out={"y": made})["y"], made)
        np.testing.assert_array_equal(y, a + a)

    def test_empty_arrays_begin_at_pages(self):
        for shape, dtype in ((3, np.int8), ((2, 3), np.float64), ((), np.float32), ((0, 4), np.float32),
                             ((5,), ml_dtypes.bfloat16)):
            made = fornax.empty(shape, dtype)
            self.assertEqual(made.ctypes.data % 4096 if made.size else 0, 0)
            self.assertEqual((made.shape, made.dtype), (np.empty(shape).shape, np.dtype(dtype)))
            self.assertTrue(made.flags.c_contiguous and made.flags.writeable)


class Together(Case):
    def test_threads_run_one_session(self):
        session = self.load(add())
        wrong = []

        def work(seed):
            random = np.random.default_rng(seed)
            for _ in range(60):
                a, b = random.standard_normal((2, int(random.integers(1, 5)) * 300, 4)).astype(np.float32)
                if not np.array_equal(session(a, b), a + b):
                    wrong.append(a.shape)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_python_goes_on_while_a_model_runs(self):
        size = 900
        session = self.load(model([helper.make_node("MatMul", ["x", "x"], ["a"]), helper.make_node("MatMul", ["a", "x"], ["y"])],
                                  {"x": (FLOAT, [size, size])}, {"y": (FLOAT, [size, size])}))
        x = floats(size, size)
        session(x)
        count, stop = [0], threading.Event()

        def spin():
            while not stop.is_set():
                count[0] += 1

        thread = threading.Thread(target=spin)
        thread.start()
        before = count[0]
        for _ in range(5):
            session(x)
        stop.set()
        thread.join()
        self.assertGreater(count[0] - before, 100)

    def test_clones_have_states_of_their_own(self):
        session = self.load(add())
        other = session.clone()
        session.close()
        a = floats(2, 4)
        np.testing.assert_array_equal(other(a, a), a + a)
        other.close()

    def test_runs_in_the_background(self):
        session = self.load(add())
        for rows in (2, 1000, 1 << 16):
            a, y = floats(rows, 4), np.empty((rows, 4), np.float32)
            session.start({"a": a, "b": a}, out={"y": y})
            with self.assertRaisesRegex(fornax.Error, r"wait\(\) ends it"):
                session(a, a)
            with self.assertRaisesRegex(fornax.Error, r"wait\(\) ends it"):
                session.reset()
            self.assertIs(session.wait()["y"], y)
            np.testing.assert_array_equal(y, a + a)
            session.start({"a": a, "b": a})
            np.testing.assert_array_equal(session.wait(timeout=60)["y"], a + a)
        with self.assertRaisesRegex(fornax.Error, r"start\(\) begins one"):
            session.wait()

    def test_waiting_ends_after_a_time(self):
        size = 1500
        session = self.load(model([helper.make_node("MatMul", ["x", "x"], ["y"])], {"x": (FLOAT, [size, size])},
                                  {"y": (FLOAT, [size, size])}))
        x = floats(size, size)
        session.start({"x": x})
        try:
            session.wait(timeout=0)
        except fornax.Error as error:
            self.assertEqual(error.status, fornax.Status.TIMEOUT)
            session.wait()
        session.start({"x": x})
        session.close()  # waits


if __name__ == "__main__":
    unittest.main()
