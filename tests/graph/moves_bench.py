"""Times operators that are bound by memory, in models of one or a few nodes, beside onnxruntime and a copy of the same bytes.

    python tests/graph/moves_bench.py libfornax.so [--only PART] [--large] [--markdown]

Inputs and outputs stay where each of the two keeps them, so nothing is copied in or out. A copy reads and writes as
many bytes as the operator's inputs and outputs have, by two threads. With `--large` it is elementwise chains, normalisations,
softmax and reductions with an input of 128 MB, which no cache holds.
"""

import argparse
import ctypes
import itertools
import pathlib
import re
import sys
import threading
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import libfornax  # noqa: E402

NUMPY = {TensorProto.FLOAT: np.float32, TensorProto.FLOAT16: np.float16, TensorProto.INT8: np.int8,
         TensorProto.INT64: np.int64}
F32, F16, I8 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT8


class Case:
    """A model: nodes from x (and y) to the output. With `channels_last` the tensors of Fornax's model have their channels
    last, as in the middle of a network, where each of the two has them as it likes."""

    def __init__(self, name, shapes, nodes, element=F32, constants=None, opset=20, channels_last=False):
        self.name, self.element, self.channels_last = name, element, channels_last
        self.feeds = {}
        generator = np.random.default_rng(1)
        inputs = []
        for key, shape in zip("xy", shapes):
            array = generator.standard_normal(shape, np.float32)
            array = (array * 40).astype(np.int8) if element == I8 else array.astype(NUMPY[element])
            self.feeds[key] = array
            inputs.append(helper.make_tensor_value_info(key, element, shape))
        initializers = [onnx.numpy_helper.from_array(value, key) for key, value in (constants or {}).items()]
        graph = helper.make_graph(nodes, name, inputs, [helper.make_value_info("out", helper.TypeProto())], initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
        self.bytes = self.fornax_bytes = model.SerializeToString()
        if channels_last:
            operator = graph.node[0]
            operator.input[0], operator.output[0] = "first", "result"
            graph.node.insert(0, node("Transpose", "x", "first", perm=(0, 3, 1, 2)))
            graph.node.append(node("Transpose", "result", perm=(0, 2, 3, 1)))
            graph.input[0].CopyFrom(helper.make_tensor_value_info("x", element, [shapes[0][i] for i in (0, 2, 3, 1)]))
            model.graph.CopyFrom(graph)
            self.fornax_bytes = model.SerializeToString()


def node(operator, inputs, output="out", **attributes):
    return helper.make_node(operator, inputs.split(" "), [output], **attributes)


def chains(scale):
    """Elementwise operators, normalisations, softmax, reductions: `scale` times as many rows, images or columns."""
    rng = np.random.default_rng(2)

    def weights(*shape):
        return rng.standard_normal(shape, np.float32)

    def positive(*shape):
        return np.abs(weights(*shape)) + 0.5

    rows, image = 2048 * scale, (8 * scale, 64, 56, 56)
    yield Case("add of two", [(rows, 1024)] * 2, [node("Add", "x y")])
    yield Case("chain: mul, add, sigmoid, mul", [(rows, 1024)] * 2,
               [node("Mul", "x y", "a"), node("Add", "a y", "b"), node("Sigmoid", "b", "c"), node("Mul", "c b")])
    yield Case("gelu", [(rows, 1024)], [node("Gelu", "x")])
    yield Case("add of a row", [(rows, 1024)], [node("Add", "x w")], constants={"w": weights(1024)})
    yield Case("add of a column", [(rows, 1024)], [node("Add", "x w")], constants={"w": weights(rows, 1)})
    yield Case("add of channels, NCHW", [image], [node("Add", "x w")], constants={"w": weights(64, 1, 1)})
    yield Case("batch normalisation", [image], [node("BatchNormalization", "x s b m v")],
               constants={"s": weights(64), "b": weights(64), "m": weights(64), "v": positive(64)})
    for axis, shape in ((-1, (rows, 1024)), (1, (16 * scale, 128, 1024)), (1, (16 * scale, 128, 1021)), (0, (1024, rows)),
                        (1, (8 * scale, 21, 128, 128)), (2, (8 * scale, 512, 16, 32))):
        yield Case(f"softmax, axis {axis % len(shape)} of {shape}", [shape], [node("Softmax", "x", axis=axis)])
    yield Case("softmax of 77", [(24576 * scale, 77)], [node("Softmax", "x")])
    yield Case("layer normalisation, 768", [(rows, 768)], [node("LayerNormalization", "x s b")],
               constants={"s": weights(768), "b": weights(768)})
    yield Case("layer normalisation, 96", [(8 * rows, 96)], [node("LayerNormalization", "x s b")],
               constants={"s": weights(96), "b": weights(96)})
    yield Case("RMS normalisation, 1024", [(rows, 1024)],
               [node("Mul", "x x", "q"), node("ReduceMean", "q axes", "m"), node("Add", "m e", "n"), node("Sqrt", "n", "r"),
                node("Div", "x r", "d"), node("Mul", "d s")],
               constants={"axes": np.array([-1]), "e": np.float32([1e-5]), "s": weights(1024)})
    yield Case("group normalisation, 32 groups", [(8 * scale, 128, 44, 44)],
               [node("Reshape", "x s1", "r"), node("InstanceNormalization", "r s b", "n"), node("Reshape", "n s2", "o"),
                node("Mul", "o w", "m"), node("Add", "m a")],
               constants={"s1": np.array([8 * scale, 32, -1]), "s2": np.array([8 * scale, 128, 44, 44]), "s": np.ones(32, np.float32),
                          "b": np.zeros(32, np.float32), "w": weights(128, 1, 1), "a": weights(128, 1, 1)})
    yield Case("instance normalisation", [image], [node("InstanceNormalization", "x s b")],
               constants={"s": weights(64), "b": weights(64)})
    for axes, shape in (((0,), (rows, 1024)), ((1,), (16 * scale, 128, 1024)), ((1,), (16 * scale, 128, 1021)), ((1,), (rows, 1024)),
                        ((0, 1), (rows, 1024)), ((0, 2, 3), image), ((1,), (8 * scale, 256, 28, 36))):
        yield Case(f"sum over {axes} of {shape}", [shape], [node("ReduceSum", "x axes", keepdims=0)],
                   constants={"axes": np.array(axes)})
    yield Case("max over (1,) of (16, 128, 1024)", [(16 * scale, 128, 1024)], [node("ReduceMax", "x axes", keepdims=0)],
               constants={"axes": np.array([1])})
    yield Case("argmax over 1 of (8, 21, 128, 128)", [(8 * scale, 21, 128, 128)], [node("ArgMax", "x", axis=1, keepdims=0)])
    yield Case("argmax over 1 of (2048, 1024)", [(rows, 1024)], [node("ArgMax", "x", axis=1, keepdims=0)])
    yield Case("global average pool", [image], [node("GlobalAveragePool", "x")])


def moves():
    rng = np.random.default_rng(2)

    def weights(*shape):
        return rng.standard_normal(shape, np.float32)

    image, odd_image = (8, 64, 56, 56), (8, 61, 55, 57)
    for order, shape in (((1, 0), (2048, 1024)), ((1, 0), (2047, 1023)), ((0, 2, 1), (16, 256, 512)), ((0, 2, 1), (16, 197, 768)),
                         ((0, 2, 1), (17, 255, 511)), ((0, 2, 3, 1), image), ((0, 2, 3, 1), odd_image),
                         ((0, 3, 1, 2), (8, 56, 56, 64)), ((0, 3, 1, 2), (8, 55, 57, 61)), ((0, 3, 1, 2), (4, 384, 384, 3)),
                         ((0, 2, 3, 1), (4, 3, 384, 384)), ((0, 2, 1, 3), (8, 128, 12, 64)), ((0, 2, 1, 3), (8, 197, 12, 64)),
                         ((2, 1, 0), (128, 96, 160)), ((0, 2, 1, 3), (8, 116, 2, 784))):
        yield Case(f"transpose {order} of {shape}", [shape], [node("Transpose", "x", perm=order)])
    for element, label in ((F16, "f16"), (I8, "i8")):
        yield Case(f"transpose (1, 0) of (2048, 1024), {label}", [(2048, 1024)], [node("Transpose", "x", perm=(1, 0))], element)
        yield Case(f"transpose (0, 2, 1) of (17, 255, 511), {label}", [(17, 255, 511)],
                   [node("Transpose", "x", perm=(0, 2, 1))], element)
        yield Case(f"transpose (0, 3, 1, 2) of (4, 384, 384, 3), {label}", [(4, 384, 384, 3)],
                   [node("Transpose", "x", perm=(0, 3, 1, 2))], element)
        if element == F16:
            yield Case(f"add of two, {label}", [(2048, 1024)] * 2, [node("Add", "x y")], element)
    yield Case("channel shuffle", [(8, 116, 28, 28)],
               [node("Reshape", "x s1", "r"), node("Transpose", "r", "t", perm=(0, 2, 1, 3, 4)), node("Reshape", "t s2")],
               constants={"s1": np.array([8, 2, 58, 28, 28]), "s2": np.array([8, 116, 28, 28])})
    yield Case("pixel shuffle", [(2, 64, 96, 96)], [node("DepthToSpace", "x", blocksize=2, mode="CRD")])
    yield Case("concat of channels", [(8, 64, 40, 40), (8, 96, 40, 40)], [node("Concat", "x y", axis=1)])
    yield Case("concat, last axis", [(2048, 512), (2048, 384)], [node("Concat", "x y", axis=1)])
    yield Case("SiLU, then concat", [(8, 64, 40, 40), (8, 96, 40, 40)],
               [node("Sigmoid", "x", "s"), node("Mul", "x s", "a"), node("Concat", "a y", axis=1)])
    yield Case("slice of every second", [(2048, 2048)], [node("Slice", "x s e a t")],
               constants={"s": np.array([0]), "e": np.array([2048]), "a": np.array([1]), "t": np.array([2])})
    yield Case("slice of columns", [(2048, 2048)], [node("Slice", "x s e a")],
               constants={"s": np.array([5]), "e": np.array([1029]), "a": np.array([1])})
    yield Case("pad of images", [image], [node("Pad", "x p")], constants={"p": np.array([0, 0, 1, 1, 0, 0, 1, 1])})
    yield Case("reflection pad", [image], [node("Pad", "x p", mode="reflect")],
               constants={"p": np.array([0, 0, 3, 3, 0, 0, 3, 3])})
    yield Case("gather of rows", [(2048, 768)], [node("Gather", "x i")], constants={"i": rng.integers(0, 2048, 2048)})
    yield Case("resize, nearest 2x", [(2, 64, 40, 40)],
               [node("Resize", "x  f", mode="nearest", coordinate_transformation_mode="asymmetric",
                     nearest_mode="floor")],
               constants={"f": np.float32([1, 1, 2, 2])})
    yield Case("resize, linear 2x", [(2, 64, 40, 40)], [node("Resize", "x  f", mode="linear")],
               constants={"f": np.float32([1, 1, 2, 2])})
    for label, sizes, attributes in (("linear 2x, align corners", (80, 80), dict(coordinate_transformation_mode="align_corners")),
                                     ("linear to 56x60", (56, 60), {}), ("linear to half", (20, 20), {}),
                                     ("cubic 2x", (80, 80), dict(mode="cubic"))):
        yield Case(f"resize, {label}", [(2, 64, 40, 40)], [node("Resize", "x   s", **dict(dict(mode="linear"), **attributes))],
                   constants={"s": np.int64([2, 64, *sizes])})
    for mode, size, scale in (("nearest", 40, 0.5), ("nearest", 160, 0.5), ("nearest", 40, 1.5), ("nearest", 120, 1 / 3), ("linear", 160, 0.5)):
        yield Case(f"resize, {mode} of {size} by {scale:.3g}", [(2, 64, size, size)], [node("Resize", "x  f", mode=mode)],
                   constants={"f": np.float32([1, 1, scale, scale])})
    for size, stride, shape in ((2, 2, (4, 64, 112, 112)), (3, 2, (4, 64, 112, 112)), (3, 1, (4, 64, 56, 56)), (5, 1, (1, 128, 20, 20)),
                                (5, 1, (4, 128, 40, 40)), (13, 1, (1, 256, 20, 20))):
        before = (size - 1) // 2 if size != 2 else 0
        for last in (False, True):
            yield Case(f"max pool {size}x{size}, stride {stride}, of {shape}" + ", channels last" * last, [shape],
                       [node("MaxPool", "x", kernel_shape=[size, size], strides=[stride] * 2, pads=[before] * 4)],
                       channels_last=last)
    yield Case("average pool 3x3", [(4, 64, 56, 56)], [node("AveragePool", "x", kernel_shape=[3, 3], pads=[1] * 4)])
    for size, stride, shape in ((3, 1, (1, 144, 56, 56)), (3, 2, (1, 96, 112, 112)), (5, 1, (1, 240, 28, 28)), (5, 1, (1, 1152, 7, 7)),
                                (3, 1, (1, 960, 7, 7)), (7, 1, (1, 96, 56, 56)), (5, 1, (1, 672, 14, 14))):
        channels = shape[1]
        for last in (False, True):
            yield Case(f"depthwise {size}x{size}, stride {stride}, of {shape}" + ", channels last" * last, [shape],
                       [node("Conv", "x w", kernel_shape=[size] * 2, strides=[stride] * 2, pads=[size // 2] * 4,
                             group=channels)],
                       constants={"w": weights(channels, 1, size, size)}, channels_last=last)


def fornax_session(library, case):
    model = libfornax.Model(library, case.fornax_bytes)
    arrays = [array.transpose(0, 2, 3, 1) if case.channels_last else array for array in case.feeds.values()]
    tensors, keep = zip(*map(libfornax.to_tensor, arrays))
    library.call("fornax_session_set_sizes", model.session, (libfornax.Tensor * len(tensors))(*tensors), ctypes.c_size_t(len(tensors)))
    for index, array in enumerate(keep):
        memory, size = ctypes.c_void_p(), ctypes.c_size_t()
        library.call("fornax_session_input_memory", model.session, ctypes.c_size_t(index), ctypes.byref(memory), ctypes.byref(size))
        ctypes.memmove(memory, array.ctypes.data, array.nbytes)

    def run():
        library.call("fornax_session_run", model.session)

    def output():
        tensor = libfornax.Tensor()
        library.call("fornax_session_output", model.session, ctypes.c_size_t(0), ctypes.byref(tensor))
        array = libfornax.from_tensor(tensor)
        return array.transpose(0, 3, 1, 2) if case.channels_last else array
    return model, run, output


def onnxruntime_session(case):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 2, 3
    session = onnxruntime.InferenceSession(case.bytes, options, providers=["CPUExecutionProvider"])
    result = session.run(None, case.feeds)[0]
    binding = session.io_binding()
    for key, array in case.feeds.items():
        binding.bind_ortvalue_input(key, onnxruntime.OrtValue.ortvalue_from_numpy(array))
    binding.bind_ortvalue_output("out", onnxruntime.OrtValue.ortvalue_from_numpy(np.empty_like(result)))
    return result, lambda: session.run_with_iobinding(binding)


def copier(size_bytes):
    half = max(size_bytes // 4, 64)
    source, target = np.ones(2 * half, np.uint8), np.zeros(2 * half, np.uint8)
    parts = [(target[:half], source[:half]), (target[half:], source[half:])]
    begin, end = threading.Barrier(2), threading.Barrier(2)
    repeats = 8

    def work():
        begin.wait()
        for _ in range(repeats):
            np.copyto(*parts[1])
        end.wait()

    def run():
        thread = threading.Thread(target=work)
        thread.start()
        begin.wait()
        start = time.perf_counter()
        for _ in range(repeats):
            np.copyto(*parts[0])
        end.wait()
        elapsed = time.perf_counter() - start
        thread.join()
        return elapsed / repeats
    return run


def seconds_of(run, budget):
    times = []
    start = time.perf_counter()
    while len(times) < 5 or time.perf_counter() - start < budget:
        before = time.perf_counter()
        run()
        times.append(time.perf_counter() - before)
    return float(np.median(times))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("--only", default="", help="cases in whose names this expression is found")
    parser.add_argument("--seconds", type=float, default=0.15, help="for each measurement")
    parser.add_argument("--large", action="store_true", help="an input of 128 MB")
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    library = libfornax.Library(arguments.library)
    cases = chains(16) if arguments.large else itertools.chain(chains(1), moves())
    chosen = [case for case in cases if re.search(arguments.only, case.name)]
    line = "| {:48} | {:>7} | {:>7} | {:>7} | {:>5} | {:>6} |" if arguments.markdown else "{:48} {:>8} {:>8} {:>8} {:>6} {:>6}"
    print(line.format("operator", "us", "ort us", "GB/s", "copy", "ratio"))
    if arguments.markdown:
        print("|---|---|---|---|---|---|")
    together = 1 if arguments.large else len(chosen)
    for first in range(0, len(chosen), together):
        sessions = []
        for case in chosen[first:first + together]:
            expected, runtime_run = onnxruntime_session(case)
            model, run, output = fornax_session(library, case)
            run()
            sessions.append((case, expected, runtime_run, model, run, output))
        time.sleep(1)  # the optimized tier is compiled in the background
        for case, expected, runtime_run, model, run, output in sessions:
            measure(case, expected, runtime_run, run, output, arguments.seconds, line)
            del model


def measure(case, expected, runtime_run, run, output, seconds, line):
    size_bytes = sum(array.nbytes for array in case.feeds.values()) + expected.nbytes
    for _ in range(3):
        run()
    copy = copier(size_bytes)
    copy()
    ours, theirs, copied = [], [], []
    for _ in range(3):
        ours.append(seconds_of(run, seconds / 3))
        theirs.append(seconds_of(runtime_run, seconds / 3))
        copied.append(min(copy() for _ in range(2)))
    got = output()
    wrong = ""
    if expected.size and not np.allclose(got.astype(np.float64), expected.astype(np.float64), rtol=1e-3, atol=1e-3):
        wrong = "  WRONG"
    time_s = min(ours)
    print(line.format(case.name, f"{time_s * 1e6:.0f}", f"{min(theirs) * 1e6:.0f}", f"{size_bytes / time_s / 1e9:.1f}",
                      f"{100 * min(copied) / time_s:.0f} %", f"{min(theirs) / time_s:.2f}") + wrong, flush=True)


if __name__ == "__main__":
    main()
