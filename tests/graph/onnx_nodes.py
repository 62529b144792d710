"""Runs ONNX's own node tests through the ONNX frontend and the graph interpreter.

    python3 onnx_nodes.py path/to/fornax_evaluate_model [--only REGEX] [--list-failures]

Needs the Python packages onnx, numpy and ml_dtypes. Every case is a model, inputs and the outputs that onnx's
reference gives. Prints how many cases pass, are wrong, are refused as unsupported, fail otherwise or crash, and a
table by operator. Exits with 1 if a case is wrong or crashes, or fewer than --at-least pass.

--device NAME runs them on a Vulkan device. On lavapipe (--device llvmpipe) cases that it gets wrong itself are counted
apart: KNOWN says which and why. With --validate spirv-val checks the modules of all kernels that are made, and a case
with one that is not valid is another reason to exit with 1.
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

KINDS = ("pass", "wrong", "unsupported", "error", "crash", "known", "invalid")
CASE_SECONDS = 60


class Evaluator:
    """The program, started again when it dies."""

    def __init__(self, program, device, validate=False):
        self.command = [program] + (["--device", device] if device is not None else [])
        self.command += ["--validate"] if validate else []
        self.process = None
        self.validated = 0  # modules

    def run(self, line):
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            return ["crash", f"The program ended with {self.process.wait()}."]
        return answer.rstrip("\n").split("\t")


def to_proto(value):
    if isinstance(value, onnx.TensorProto):
        return value
    array = np.asarray(value)
    return numpy_helper.from_array(array)


def write_value(folder, name, value, fields):
    """Writes an input's files and adds its fields to the job."""
    if value is None:
        fields.append(f"{name}#-1")
    elif isinstance(value, (list, tuple)):
        fields.append(f"{name}#{len(value)}")
        for i, item in enumerate(value):
            write_value(folder, f"{name}.{i}", item, fields)
    else:
        path = folder / f"in_{len(fields)}.pb"
        path.write_bytes(to_proto(value).SerializeToString())
        fields.append(f"{name}={path}")


def read_tensor(folder, name):
    proto = onnx.TensorProto()
    proto.ParseFromString((folder / f"{name}.pb").read_bytes())
    return proto


def numbers(array):
    """An array that numpy can compare: narrow floats as f32, narrow integers as they are."""
    if array.dtype == object or array.dtype.kind in "USOb":
        return array
    try:
        if array.dtype.kind in "iuf" and array.dtype.itemsize >= 2:
            return array
    except AttributeError:
        pass
    return array.astype(np.float32)


def compare(expected, actual, rtol, atol):
    """A reason why they differ, or None."""
    expected_proto, expected_array = to_proto(expected), None
    if expected_proto.data_type != actual.data_type:
        return f"element type {actual.data_type} instead of {expected_proto.data_type}"
    expected_array, actual_array = numpy_helper.to_array(expected_proto), numpy_helper.to_array(actual)
    if expected_array.shape != actual_array.shape:
        return f"shape {actual_array.shape} instead of {expected_array.shape}"
    if expected_array.dtype.kind in "OUS":
        def text(items):
            return [i.decode() if isinstance(i, bytes) else str(i) for i in items.ravel()]
        return None if text(expected_array) == text(actual_array) else "other strings"
    a, b = numbers(expected_array), numbers(actual_array)
    if a.dtype.kind in "f":
        # The reference rounds every intermediate value of these types: it is off by as much as two units itself.
        units = {onnx.TensorProto.BFLOAT16: 2.0**-6, onnx.TensorProto.FLOAT16: 2.0**-9}.get(actual.data_type, 0)
        a, b = a.astype(np.float64), b.astype(np.float64)
        close = np.isclose(b, a, rtol=max(rtol, units), atol=atol, equal_nan=True)
        if close.all():
            return None
        worst = np.argmax(~close.ravel())
        return f"{(~close).sum()} of {close.size} elements, first {b.ravel()[worst]} instead of {a.ravel()[worst]}"
    if (a == b).all():
        return None
    worst = np.argmax((a != b).ravel())
    return f"{(a != b).sum()} of {a.size} elements, first {b.ravel()[worst]} instead of {a.ravel()[worst]}"


def compare_value(folder, name, expected, lengths, rtol, atol):
    length = lengths.get(name, -1)
    if expected is None:
        return None if length == -2 else "a value instead of nothing"
    if isinstance(expected, (list, tuple)):
        if length != len(expected):
            return f"{length} items instead of {len(expected)}"
        for i, item in enumerate(expected):
            reason = compare_value(folder, f"{name}.{i}", item, lengths, rtol, atol)
            if reason:
                return reason
        return None
    if length != -1:
        return "not a tensor"
    return compare(expected, read_tensor(folder, name), rtol, atol)


# Operators whose results are random: only types and shapes are compared.
RANDOM = {"Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial"}
# Dropouts that drop by numpy's generator.
RANDOM_CASES = {
    "test_training_dropout",
    "test_training_dropout_default",
    "test_training_dropout_default_mask",
    "test_training_dropout_mask",
}
# Absolute tolerances of cases whose expected outputs are the rounding errors of the reference, where exact results
# are 0.
ABSOLUTE = {"test_dft_inverse": 1e-6, "test_dft_inverse_opset19": 1e-6}

# What devices other than ours get wrong themselves, by a part of the device's name.
KNOWN = {
    "llvmpipe": {
        # A 32-bit integer that is widened to 64 bits compares wrongly with a constant: the first element's position, 0,
        # is not less than 1 (Mesa 22.3).
        "test_cumprod_1d_exclusive", "test_cumprod_1d_int32_exclusive", "test_cumprod_1d_reverse_exclusive",
        # The logarithm of numbers near 1 is off by 1e-7.
        "test_mish", "test_mish_expanded",
    },
}


def name_dimensions(model):
    """Gives every dimension of the inputs a name: sizes become symbols."""
    for value in model.graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.dim_param = f"{value.name}_{axis}"


def run_case(evaluator, case, folder, symbolic):
    for old in folder.iterdir():
        old.unlink()
    model = folder / "model.onnx"
    proto = case.model
    if symbolic:
        proto = onnx.ModelProto()
        proto.CopyFrom(case.model)
        name_dimensions(proto)
    model.write_bytes(proto.SerializeToString())
    inputs, outputs = case.data_sets[0]
    fields = []
    names = [i.name for i in case.model.graph.input]
    for name, value in zip(names, inputs):
        write_value(folder, name, value, fields)
    answer = evaluator.run("\t".join([str(model), str(folder)] + fields))
    if answer[0] != "ok":
        return answer[0], answer[1]
    evaluator.validated += int(answer[1])
    lengths = {field.rsplit("#", 1)[0]: int(field.rsplit("#", 1)[1]) for field in answer[2:]}
    random = case.name in RANDOM_CASES or any(node.op_type in RANDOM for node in case.model.graph.node)
    for output, expected in zip(case.model.graph.output, outputs):
        rtol = case.rtol
        if random:
            expected_proto, actual = to_proto(expected), read_tensor(folder, output.name)
            same = expected_proto.data_type == actual.data_type and list(expected_proto.dims) == list(actual.dims)
            reason = None if same else "another type"
        else:
            reason = compare_value(folder, output.name, expected, lengths, rtol, ABSOLUTE.get(case.name, case.atol))
        if reason:
            return "wrong", f"{output.name}: {reason}"
    return "pass", ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--only", default="", help="cases whose name matches this")
    parser.add_argument("--list-failures", action="store_true")
    parser.add_argument("--symbolic", action="store_true", help="with names for the inputs' dimensions")
    parser.add_argument("--at-least", type=int, default=0, help="fail if fewer cases pass")
    parser.add_argument("--device", help="run on the Vulkan device of this name, not in the interpreter")
    parser.add_argument("--every", type=int, default=1, help="run each Nth case only")
    parser.add_argument("--validate", action="store_true", help="check the device's kernels with spirv-val")
    arguments = parser.parse_args()
    if arguments.validate and arguments.device is None:
        parser.error("--validate needs --device: the interpreter has no kernels.")
    warnings.filterwarnings("ignore")
    with np.errstate(all="ignore"):
        cases = [c for c in load_model_tests(kind="node") if re.search(arguments.only, c.name)][::arguments.every]
    known = KNOWN.get(arguments.device, set())
    evaluator = Evaluator(arguments.program, arguments.device, arguments.validate)
    totals = collections.Counter()
    by_operator = collections.defaultdict(collections.Counter)
    failures = []
    with tempfile.TemporaryDirectory() as name:
        for case in cases:
            kind, reason = run_case(evaluator, case, pathlib.Path(name), arguments.symbolic)
            kind = "known" if kind == "wrong" and case.name in known else kind
            totals[kind] += 1
            operators = {node.op_type for node in case.model.graph.node}
            by_operator[operators.pop() if len(operators) == 1 else "(several)"][kind] += 1
            if kind != "pass":
                failures.append((kind, case.name, reason))
    if arguments.list_failures:
        for kind, case, reason in sorted(failures):
            print(f"{kind}\t{case}\t{reason}")
    print(f"{'operator':28}" + "".join(f"{kind:>13}" for kind in KINDS))
    for operator, counts in sorted(by_operator.items()):
        if sum(counts.values()) != counts["pass"]:
            print(f"{operator:28}" + "".join(f"{counts[kind]:>13}" for kind in KINDS))
    print(f"{'all ' + str(len(cases)):28}" + "".join(f"{totals[kind]:>13}" for kind in KINDS))
    if arguments.validate:
        print(f"{evaluator.validated} modules are valid.")
    unsound = totals["wrong"] + totals["crash"] + totals["invalid"] + (arguments.validate and not evaluator.validated)
    return 1 if unsound or totals["pass"] < arguments.at_least else 0


if __name__ == "__main__":
    sys.exit(main())
