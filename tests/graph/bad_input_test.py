"""Bad models, data and plan files: one sentence that names file and reason, an exit status, nothing written."""

import os
import random
import unittest
from unittest import mock

import numpy as np
from onnx import TensorProto, helper

from fornax_command import DIGITS, IMAGES, LABELS, FornaxCase, make_model


class BadInput(FornaxCase):
    def fails(self, *arguments, status=1):
        """Runs a command that must fail with one line on standard error; returns that line."""
        result = self.fornax(*arguments)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        self.assertRegex(result.stderr, r"\Afornax: [^\n]+\.\n\Z")
        return result.stderr

    def refuses(self, model, *words):
        """A model that must not compile: the message holds the words, and no file appears."""
        path = self.directory / "bad.onnx"
        path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
        plan = self.directory / "bad.plan"
        message = self.fails("compile", path, "-o", plan)
        for word in ("bad.onnx", *words):
            self.assertIn(word, message)
        self.assertFalse(plan.exists())

    def one_node(self, operator, inputs, opset=13, constants=None, shape=(2, 3, 8, 8), **attributes):
        node = helper.make_node(operator, inputs, ["y"], "culprit", **attributes)
        return make_model([node], {"x": shape}, {"y": None}, constants, opset)

    # --- Models ----------------------------------------------------------------------------------

    def test_files_that_are_no_models(self):
        for data in (b"", b"hello", bytes(100), DIGITS.read_bytes()[:1000], IMAGES.read_bytes(),
                     b"\x0a" * 1000):
            self.refuses(data)
        self.assertIn("nowhere.onnx", self.fails("compile", "nowhere.onnx", "-o", "x"))
        self.assertIn(str(self.directory), self.fails("run", self.directory))

    def test_unknown_operators_are_told_at_once(self):
        model = self.one_node("Relu", ["x"])
        model.graph.node[0].domain = "com.example"
        self.refuses(model, "com.example.Relu")
        nodes = [helper.make_node(name, ["x"], [f"y{i}"]) for i, name in enumerate(("Strange", "Odd", "Strange"))]
        self.refuses(make_model(nodes, {"x": (2, 3)}, {"y0": None}), "Odd (1)", "Strange (2)", "3 nodes")

    def test_wrong_versions(self):
        for opset in (29, 10**9):
            self.refuses(self.one_node("Relu", ["x"], opset=opset), str(opset))
        self.refuses(self.one_node("Clip", ["x"], opset=0), "0")

    def test_wrong_shapes(self):
        weight = np.ones((4, 2, 3, 3), np.float32)
        self.refuses(self.one_node("Conv", ["x", "w"], constants={"w": weight}), "culprit", "channels")
        self.refuses(self.one_node("Conv", ["x", "w"], constants={"w": weight}, shape=(2, 3)), "culprit")
        self.refuses(self.one_node("MatMul", ["x", "w"], constants={"w": weight}), "culprit")
        self.refuses(self.one_node("Add", ["x", "w"], constants={"w": weight}), "culprit")
        self.refuses(self.one_node("Reshape", ["x", "s"], constants={"s": np.array([7, -1])}), "culprit")
        self.refuses(self.one_node("Transpose", ["x"], perm=[0, 0, 1, 2]), "culprit")
        self.refuses(self.one_node("Softmax", ["x"], axis=4), "culprit", "axis")

    def test_wrong_attributes(self):
        self.refuses(self.one_node("MaxPool", ["x"], kernel_shape=[2, 2], strides=[0, 1]), "culprit")
        self.refuses(self.one_node("MaxPool", ["x"], kernel_shape=[2, 2], pads=[1, 1]), "culprit", "pads")
        self.refuses(self.one_node("MaxPool", ["x"], kernel_shape=[2, -2]), "culprit", "-2")

    def test_gigantic_dimensions(self):
        for shape in ((2**40, 2), (2**62, 2**62), (-4, 3)):
            self.refuses(self.one_node("Relu", ["x"], shape=shape))
        self.refuses(self.one_node("Reshape", ["x", "s"], constants={"s": np.array([2**62, 4, -1])}),
                     "culprit")
        huge = [2**31 - 1] * 2
        self.fails("run", self.save(self.one_node("Relu", ["x"], shape=(2**30, 2**8))))
        for attributes in (dict(dilations=huge), dict(strides=huge), dict(pads=huge * 2)):
            with self.subTest(**attributes):
                self.refuses(self.one_node("MaxPool", ["x"], kernel_shape=huge, **attributes))

    def test_wrong_wiring(self):
        self.refuses(self.one_node("Relu", ["nothing"]), "culprit", "nothing")
        self.refuses(self.one_node("Add", ["x"]), "culprit")
        self.refuses(make_model([helper.make_node("Relu", ["b"], ["a"], "first"),
                                 helper.make_node("Relu", ["a"], ["b"], "second")],
                                {"x": (2, 3)}, {"b": None}), "first")
        self.refuses(make_model([helper.make_node("Relu", ["x"], ["y"], "one"),
                                 helper.make_node("Relu", ["x"], ["y"], "two")],
                                {"x": (2, 3)}, {"y": None}), "two")
        self.refuses(make_model([], {"x": (2, 3)}, {"y": None}), "y")

    def test_wrong_types_and_data(self):
        model = self.one_node("Relu", ["x"])
        model.graph.input[0].type.tensor_type.elem_type = 99
        self.refuses(model, "99")
        model = self.one_node("Add", ["x", "w"], constants={"w": np.ones(8, np.float64)})
        self.refuses(model, "culprit", "f64")
        model = self.one_node("Add", ["x", "w"], constants={"w": np.ones(8, np.float32)})
        model.graph.initializer[0].raw_data = b"abc"
        self.refuses(model, "w", "3 bytes")
        model = self.one_node("Add", ["x", "w"], constants={"w": np.ones(8, np.float32)})
        model.graph.initializer[0].data_location = TensorProto.EXTERNAL
        self.refuses(model, "w")
        self.refuses(self.one_node("MaxPool", ["x"], kernel_shape=[2, 2], opset=13).SerializeToString()
                     .replace(b"MaxPool", b"MaxPo\xff\xfe"))

    def save(self, model):
        path = self.directory / "model.onnx"
        path.write_bytes(model.SerializeToString())
        return path

    def test_sizes_by_name(self):
        path = self.save(make_model([helper.make_node("Relu", ["x"], ["y"], "relu")], {"x": ("N", "width")},
                                    {"y": None}))
        self.fornax_ok("compile", path, "--dim", "width=5", "--explain")
        self.assertIn("f32[1,5]", self.fornax_ok("run", path, "--dim", "width=5"))
        for command in (("compile", path, "--explain"), ("run", path)):
            for size in ("width=none", "width=", "=3", "width=-1", "width=99999999999"):
                self.fails(*command, "--dim", size, status=2)
            self.assertIn("N, width", self.fails(*command, "--dim", "height=5"))
        image = self.save_tensor("x.pb", np.zeros((2, 5), np.float32))
        self.assertIn("it is 5", self.fails("run", path, "--input", image, "--dim", "width=4"))

    def test_strict_names_what_runs_on_the_host(self):
        model = self.save(make_model([helper.make_node("NonZero", ["x"], ["y"], "find")], {"x": (4,)}, {"y": None}))
        self.assertRegex(self.fornax_ok("run", model), r"(?m)^on the host find: ")
        self.assertIn("on the host", self.fails("run", model, "--strict"))
        self.assertIn("on the host", self.fails("compile", model, "--strict", "--explain"))

    def test_damaged_models_do_not_crash(self):
        good = bytearray(DIGITS.read_bytes()[:2000] + DIGITS.read_bytes()[-2000:])
        generator = random.Random(5)
        path = self.directory / "damaged.onnx"
        for _ in range(100):
            data = bytearray(good)
            for _ in range(generator.randint(1, 20)):
                data[generator.randrange(len(data))] = generator.randrange(256)
            path.write_bytes(data)
            self.assertIn(self.fornax("compile", path, "--explain").returncode, (0, 1))

    # --- Data ------------------------------------------------------------------------------------

    def test_wrong_data(self):
        wrong = self.save_tensor("wrong.pb", np.zeros((3, 1, 8, 9), np.float32))
        self.assertIn("f32[3,1,8,9]", self.fails("run", DIGITS, "--input", wrong))
        self.assertIn("takes f32", self.fails("run", DIGITS, "--input", LABELS))
        self.assertIn("one more than", self.fails("run", DIGITS, "--input", IMAGES, "--input", IMAGES))
        self.assertIn("second", self.fails("run", DIGITS, "--input", IMAGES, "--input", f"image={IMAGES}"))
        self.assertIn("digits.onnx", self.fails("run", DIGITS, "--input", DIGITS))
        few = self.save_tensor("few.pb", np.zeros(3, np.int64))
        self.assertIn("3 classes for 450", self.fails("run", DIGITS, "--input", IMAGES, "--truth", few))

    def test_wrong_files(self):
        good = np.zeros((3, 1, 8, 8), np.float32)
        np.save(self.directory / "good.npy", good)
        data = (self.directory / "good.npy").read_bytes()
        for damaged in (b"", data[:5], data[:60], data[:-1], data + b"x", data.replace(b"<f4", b"<c8"),
                        data.replace(b"(3, 1,", b"(9, 1,"), data.replace(b"(3, 1,", b"(-3,1,")):
            path = self.directory / "bad.npy"
            path.write_bytes(damaged)
            self.assertIn("bad.npy", self.fails("run", DIGITS, "--input", path))
        np.savez(self.directory / "x.npz", other=good)
        self.assertIn("an array other, and the inputs", self.fails("run", DIGITS, "--input", self.directory / "x.npz"))
        archive = self.directory / "cut.npz"
        archive.write_bytes((self.directory / "x.npz").read_bytes()[:300])
        self.assertIn("cut.npz", self.fails("run", DIGITS, "--input", archive))
        self.assertIn(".npz", self.fails("run", DIGITS, "--input", "image.tiff"))
        self.assertIn("none.npy", self.fails("run", DIGITS, "--input", "none.npy"))

    def test_wrong_labels(self):
        few = self.directory / "few.txt"
        few.write_text("zero\none\n")
        self.assertIn("names 2 classes", self.fails("run", DIGITS, "--labels", few))
        self.assertIn("none.txt", self.fails("run", DIGITS, "--labels", "none.txt"))

    def test_a_python_without_onnxruntime(self):
        message = self.fails("run", DIGITS, "--compare", "onnxruntime", "--python", "/bin/false")
        self.assertIn("/bin/false", message)

    def test_outputs_that_cannot_be_written(self):
        self.assertIn(str(IMAGES), self.fails("run", DIGITS, "--output-dir", IMAGES))

    def test_device_that_does_not_exist(self):
        with mock.patch.dict(os.environ, FORNAX_TEST_DEVICE=""):
            message = self.fails("run", DIGITS, "--device", "Voodoo")
        self.assertRegex(message, r"no Vulkan device Voodoo; there are: 0 \w+")

    # --- Plan files ------------------------------------------------------------------------------

    def test_damaged_plans(self):
        plan = self.directory / "digits.plan"
        self.fornax_ok("compile", DIGITS, "-o", plan)
        good = plan.read_bytes()
        for size in (0, 7, 8, 39, 40, 1000, len(good) - 1):
            plan.write_bytes(good[:size])
            self.assertIn("digits.plan", self.fails("run", plan))
        for position in (9, 17, 25, 50, 2000, len(good) // 2, len(good) - 1):
            data = bytearray(good)
            data[position] ^= 0x10
            plan.write_bytes(data)
            self.assertIn("digits.plan", self.fails("run", plan))


if __name__ == "__main__":
    unittest.main()
