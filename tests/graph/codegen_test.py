"""`fornax compile --emit c`: programs in C compute what onnxruntime does, on this machine and on RISC-V in QEMU.

Every case is compiled, built by the Makefile that comes with it, and run by `make run`, which reads the inputs and
writes the outputs as files. The RISC-V half is skipped where there is no toolchain or QEMU (packages
gcc-riscv64-unknown-elf, picolibc-riscv64-unknown-elf, qemu-system-misc). Results may be as far from onnxruntime's as
a case says, RELATIVE and ABSOLUTE otherwise; both machines agree to the last bit where no function of <math.h> but
the exact ones is used.

Environment: FORNAX_COMMAND. CODEGEN_ONLY, a regular expression, chooses cases.
"""

import ctypes
import os
import re
import subprocess
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from codegen_tools import CROSS, QEMU, has_riscv, missing_riscv
from fornax_command import DIGITS, IMAGES, FornaxCase, make_model, onnxruntime_outputs, random_array

RELATIVE, ABSOLUTE = 1e-4, 1e-5


def node(operator, inputs, outputs, **attributes):
    return helper.make_node(operator, inputs.split(), outputs.split(), **attributes)


class Case:
    """A model, its inputs by name, and how it is compared."""

    def __init__(self, name, model, inputs, exact=False, relative=RELATIVE, dims=()):
        self.name, self.model, self.inputs, self.exact = name, model, inputs, exact
        self.relative, self.dims = relative, dims


def elementwise(rng):
    x, y = random_array(rng, (3, 5)), random_array(rng, (3, 5), 0.5, 2.0)
    for operator, inputs, exact in [
            ("Relu", "x", True), ("Add", "x y", True), ("Sub", "x y", True), ("Mul", "x y", True), ("Div", "x y", True),
            ("Neg", "x", True), ("Sigmoid", "x", False), ("Tanh", "x", False), ("Exp", "x", False), ("Erf", "x", False),
            ("Sqrt", "y", True), ("Log", "y", False), ("Pow", "y x", False)]:
        names = inputs.split()
        arrays = {name: {"x": x, "y": y}[name] for name in names}
        model = make_model([node(operator, inputs, "z")], {name: (3, 5) for name in names}, {"z": (3, 5)})
        yield Case(operator.lower(), model, arrays, exact)
    four = np.array([-1.5, 0.0, 2.25, -0.0], np.float32)
    yield Case("relu_of_4", make_model([node("Relu", "x", "y")], {"x": (4,)}, {"y": (4,)}), {"x": four}, True)
    model = make_model([node("Gelu", "x", "y")], {"x": (3, 5)}, {"y": (3, 5)}, opset=20)
    yield Case("gelu", model, {"x": x})


def reductions(rng):
    x = random_array(rng, (2, 3, 7))
    axes = {"axes": np.array([1], np.int64)}
    for operator, exact in [("ReduceSum", True), ("ReduceMean", True), ("ReduceMax", True), ("ReduceMin", True)]:
        for keep in (0, 1):
            shape = (2, 1, 7) if keep else (2, 7)
            model = make_model([node(operator, "x axes", "y", keepdims=keep)], {"x": (2, 3, 7)}, {"y": shape}, axes,
                               opset=18)
            yield Case(f"{operator.lower()}_{keep}", model, {"x": x}, exact)
    for axis in (1, 2):
        model = make_model([node("Softmax", "x", "y", axis=axis)], {"x": (2, 3, 7)}, {"y": (2, 3, 7)})
        yield Case(f"softmax_{axis}", model, {"x": x})
    model = make_model([node("LayerNormalization", "x s b", "y", axis=-1)], {"x": (2, 3, 7)}, {"y": (2, 3, 7)},
                       {"s": random_array(rng, 7), "b": random_array(rng, 7)}, opset=17)
    yield Case("layer_norm", model, {"x": x})
    statistics = {"s": random_array(rng, 3), "b": random_array(rng, 3), "m": random_array(rng, 3),
                  "v": random_array(rng, 3, 0.5, 2)}
    model = make_model([node("BatchNormalization", "x s b m v", "y")], {"x": (2, 3, 7)}, {"y": (2, 3, 7)}, statistics,
                       opset=15)
    yield Case("batch_norm", model, {"x": x})


def moves(rng):
    x = random_array(rng, (2, 3, 4))
    shape = {"shape": np.array([4, 6], np.int64)}
    yield Case("reshape", make_model([node("Reshape", "x shape", "y")], {"x": (2, 3, 4)}, {"y": (4, 6)}, shape),
               {"x": x}, True)
    yield Case("transpose", make_model([node("Transpose", "x", "y", perm=[2, 0, 1])], {"x": (2, 3, 4)},
                                       {"y": (4, 2, 3)}), {"x": x}, True)
    yield Case("flatten", make_model([node("Flatten", "x", "y")], {"x": (2, 3, 4)}, {"y": (2, 12)}), {"x": x}, True)
    yield Case("concat", make_model([node("Concat", "x x x", "y", axis=1)], {"x": (2, 3, 4)}, {"y": (2, 9, 4)}),
               {"x": x}, True)
    model = make_model([node("Gather", "table at", "y", axis=0)], {}, {"y": (2, 5)}, {"table": random_array(rng, (9, 5))})
    model.graph.input.append(helper.make_tensor_value_info("at", TensorProto.INT64, (2,)))
    yield Case("gather", model, {"at": np.array([7, -2], np.int64)}, True)
    model = make_model([node("TopK", "x k", "y at", axis=2)], {"x": (2, 3, 4)}, {"y": (2, 3, 2)},
                       {"k": np.array([2], np.int64)})
    model.graph.output.append(helper.make_tensor_value_info("at", TensorProto.INT64, (2, 3, 2)))
    yield Case("top_k", model, {"x": x}, True)
    rows = random_array(rng, (2, 300))
    model = make_model([node("TopK", "x k", "y at", axis=1)], {"x": (2, 300)}, {"y": (2, 5)},
                       {"k": np.array([5], np.int64)})
    model.graph.output.append(helper.make_tensor_value_info("at", TensorProto.INT64, (2, 5)))
    yield Case("top_k_of_300", model, {"x": rows}, True)
    model = make_model([node("CumSum", "x axis", "y")], {"x": (2, 300)}, {"y": (2, 300)},
                       {"axis": np.array(1, np.int64)})
    yield Case("cumulative_sum", model, {"x": rows}, True)


def products(rng):
    x, y = random_array(rng, (5, 8)), random_array(rng, (8, 13))
    yield Case("matmul", make_model([node("MatMul", "x y", "z")], {"x": (5, 8), "y": (8, 13)}, {"z": (5, 13)}),
               {"x": x, "y": y}, True)
    a, b = random_array(rng, (3, 5, 6)), random_array(rng, (3, 6, 7))
    yield Case("bmm", make_model([node("MatMul", "a b", "c")], {"a": (3, 5, 6), "b": (3, 6, 7)}, {"c": (3, 5, 7)}),
               {"a": a, "b": b}, True)
    weights = {"w": random_array(rng, (13, 8)), "b": random_array(rng, 13)}
    yield Case("linear", make_model([node("Gemm", "x w b", "z", transB=1)], {"x": (5, 8)}, {"z": (5, 13)}, weights),
               {"x": x}, True)
    image = random_array(rng, (1, 3, 9, 11))
    for name, shape, w, attributes in [
            ("conv", (1, 4, 9, 11), (4, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
            ("conv_strided", (1, 4, 4, 5), (4, 3, 3, 3), {"strides": [2, 2]}),
            ("conv_depthwise", (1, 3, 9, 11), (3, 1, 3, 3), {"pads": [1, 1, 1, 1], "group": 3}),
            ("conv_dilated", (1, 4, 5, 7), (4, 3, 3, 3), {"dilations": [2, 2]})]:
        model = make_model([node("Conv", "x w", "y", **attributes)], {"x": (1, 3, 9, 11)}, {"y": shape},
                           {"w": random_array(rng, w)})
        yield Case(name, model, {"x": image}, True)
    model = make_model([node("MaxPool", "x", "y", kernel_shape=[3, 3], strides=[2, 2])], {"x": (1, 3, 9, 11)},
                       {"y": (1, 3, 4, 5)})
    yield Case("max_pool", model, {"x": image}, True)


def networks(rng):
    weights = {"w1": random_array(rng, (16, 32)), "b1": random_array(rng, 32), "w2": random_array(rng, (32, 10)),
               "b2": random_array(rng, 10)}
    model = make_model([node("Gemm", "x w1 b1", "h"), node("Relu", "h", "r"), node("Gemm", "r w2 b2", "y")],
                       {"x": (4, 16)}, {"y": (4, 10)}, weights)
    yield Case("simple_mlp", model, {"x": random_array(rng, (4, 16))}, True)
    digits = onnx.load(DIGITS)
    images = numpy_helper.to_array(onnx.load_tensor(IMAGES))[:1].astype(np.float32)
    name = digits.graph.input[0].name
    size = digits.graph.input[0].type.tensor_type.shape.dim[0].dim_param
    yield Case("digits", digits, {name: images}, dims=(f"{size}=1",) if size else ())
    # Two heads of 8 over 6 positions, with a residual and a normalisation.
    model = make_model(
        [node("MatMul", "x wq", "q0"), node("MatMul", "x wk", "k0"), node("MatMul", "x wv", "v0"),
         node("Reshape", "q0 split", "q1"), node("Transpose", "q1", "q", perm=[1, 0, 2]),
         node("Reshape", "k0 split", "k1"), node("Transpose", "k1", "k", perm=[1, 2, 0]),
         node("Reshape", "v0 split", "v1"), node("Transpose", "v1", "v", perm=[1, 0, 2]),
         node("MatMul", "q k", "s0"), node("Mul", "s0 scale", "s"), node("Softmax", "s", "p", axis=-1),
         node("MatMul", "p v", "o0"), node("Transpose", "o0", "o1", perm=[1, 0, 2]), node("Reshape", "o1 join", "o2"),
         node("MatMul", "o2 wo", "o3"), node("Add", "o3 x", "o4"), node("LayerNormalization", "o4 g", "y", axis=-1)],
        {"x": (6, 16)}, {"y": (6, 16)},
        {**{w: random_array(rng, (16, 16)) for w in ("wq", "wk", "wv", "wo")},
         "split": np.array([6, 2, 8], np.int64), "join": np.array([6, 16], np.int64),
         "scale": np.array(8**-0.5, np.float32), "g": random_array(rng, 16)}, opset=17)
    yield Case("transformer_attention", model, {"x": random_array(rng, (6, 16))})
    recurrent = {"w": random_array(rng, (1, 32, 5)), "r": random_array(rng, (1, 32, 8))}
    model = make_model([node("LSTM", "x w r", "y", hidden_size=8)], {"x": (7, 2, 5)}, {"y": (7, 1, 2, 8)}, recurrent)
    yield Case("lstm", model, {"x": random_array(rng, (7, 2, 5))})


def all_cases():
    rng = np.random.default_rng(23)
    only = re.compile(os.environ.get("CODEGEN_ONLY", ""))
    for group in (elementwise, reductions, moves, products, networks):
        yield from (case for case in group(rng) if only.search(case.name))


class Codegen(FornaxCase):
    def make(self, folder, *arguments):
        environment = dict(os.environ, CROSS_COMPILE=CROSS)
        result = subprocess.run(["make", "-C", str(folder), *arguments], env=environment, capture_output=True, text=True,
                                timeout=300)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertNotIn("warning", result.stderr)
        return result.stdout

    def emit(self, case):
        model, folder = self.directory / f"{case.name}.onnx", self.directory / case.name
        onnx.save(case.model, model)
        dims = [argument for dim in case.dims for argument in ("--dim", dim)]
        self.fornax_ok("compile", model, "--emit", "c", "-o", folder, "--name", "net", *dims)
        order = [port.name for port in case.model.graph.input]
        order = [name for name in order if name in case.inputs]
        (folder / "net_inputs.bin").write_bytes(b"".join(case.inputs[name].tobytes() for name in order))
        return folder

    def run_program(self, folder, expected, *arguments):
        (folder / "net_outputs.bin").unlink(missing_ok=True)
        said = self.make(folder, *arguments, "run")
        self.assertIn("inputs: net_inputs.bin", said)
        data = (folder / "net_outputs.bin").read_bytes()
        self.assertEqual(len(data), sum(array.nbytes for array in expected))
        outputs = []
        for array in expected:
            outputs.append(np.frombuffer(data[:array.nbytes], array.dtype).reshape(array.shape))
            data = data[array.nbytes:]
        return outputs, said

    def check(self, case, actual, expected):
        for one, other in zip(actual, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=case.relative, atol=ABSOLUTE)

    def test_host_and_riscv(self):
        riscv = has_riscv()
        print(f"{'case':24} {'cycles':>10} {'instructions':>12}")
        for case in all_cases():
            with self.subTest(case.name):
                expected = onnxruntime_outputs(case.model.SerializeToString(), case.inputs)
                folder = self.emit(case)
                on_host, _ = self.run_program(folder, expected, "HOST=1")
                self.check(case, on_host, expected)
                if not riscv:
                    continue
                on_riscv, said = self.run_program(folder, expected)
                self.check(case, on_riscv, expected)
                if case.exact:
                    for one, other in zip(on_riscv, on_host, strict=True):
                        self.assertEqual(one.tobytes(), other.tobytes())
                numbers = dict(re.findall(r"^(cycles|instructions|steps): (\d+)$", said, re.MULTILINE))
                self.assertGreater(int(numbers["cycles"]), 0)
                print(f"{case.name:24} {numbers['cycles']:>10} {numbers['instructions']:>12}")
        if not riscv:
            self.skipTest(missing_riscv())

    def test_a_plan_file_as_a_library(self):
        """What `fornax compile` wrote before, built as a shared library and called."""
        plan, folder = self.directory / "digits.plan", self.directory / "digits"
        self.fornax_ok("compile", DIGITS, "-o", plan)
        self.fornax_ok("compile", plan, "--emit", "c", "-o", folder)
        self.make(folder, "HOST=1", "shared")
        library = ctypes.CDLL(str(folder / "libdigits.so"))
        image = np.random.default_rng(2).random((1, 1, 8, 8), np.float32)
        result = np.zeros((1, 10), np.float32)
        library.digits_reset()
        library.digits_run(ctypes.byref(ctypes.c_void_p(image.ctypes.data)),
                           ctypes.byref(ctypes.c_void_p(result.ctypes.data)))
        expected, = onnxruntime_outputs(DIGITS.read_bytes(), {"image": image})
        np.testing.assert_allclose(result, expected, rtol=RELATIVE, atol=ABSOLUTE)

    def test_devices_and_a_machine_without_files(self):
        """The addresses of the devices, and a run without semihosting: zeros come in, and nothing can be written."""
        case = next(case for case in elementwise(np.random.default_rng(1)) if case.name == "relu_of_4")
        folder = self.emit(case)
        header = (folder / "net.h").read_text()
        for name, value in (("ECHO_DEVICE", "0x10200000"), ("COMPUTE_DEVICE", "0x10300000"), ("DEVICE_BYTES", "0x1000")):
            self.assertIn(f"#define NET_{name} UINT64_C({value})", header)
        self.assertIn("ORIGIN = 0x80000000", (folder / "net.ld").read_text())
        if not has_riscv():
            self.skipTest(missing_riscv())
        self.make(folder)
        ran = subprocess.run([QEMU, "-machine", "virt", "-bios", "none", "-nographic", "-kernel", folder / "net.elf"],
                             capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        self.assertIn("inputs: zeros", ran.stdout)
        self.assertIn("steps: 1\n", ran.stdout)
        self.assertIn("cannot be written", ran.stdout)
        self.assertEqual(ran.returncode, 1)

    def test_refusals(self):
        """A model of ours that has no form in C says which node; a name that C does not take is refused."""
        model = make_model([node("Relu", "x", "y")], {"x": (4,)}, {"y": (4,)})
        path = self.directory / "model.onnx"
        onnx.save(model, path)
        result = self.fornax("compile", path, "--emit", "c", "-o", self.directory / "c", "--name", "9")
        self.assertEqual(result.returncode, 1)
        self.assertIn("'9' is no name for a program in C", result.stderr)
        model = make_model([node("NonZero", "x", "y")], {"x": (4,)}, {})
        model.graph.output.append(helper.make_tensor_value_info("y", TensorProto.INT64, (1, "n")))
        onnx.save(model, path)
        result = self.fornax("compile", path, "--emit", "c", "-o", self.directory / "c")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, "The node .* has no form in C")


if __name__ == "__main__":
    unittest.main(verbosity=2)
