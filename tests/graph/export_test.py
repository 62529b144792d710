"""`fornax compile --emit`: what onnxruntime or PyTorch computes from it is what the models' own tests expect.

The models are the single operators of the onnx package. Models of whose meaning the export has none must be
refused with a sentence; what is exported must be right.

With --open sizes above 1 of inputs are symbols, equal ones the same, and stay open in what is exported, which has to
be right for the sizes that it was compiled with and for others, for which onnxruntime computes the model itself.

Environment: FORNAX_COMMAND. Usage: export_test.py [--torch] [--open] [--at-least N] [--verbose] [NAME...]. With --torch
and without PyTorch: status 77.
"""

import argparse
import collections
import concurrent.futures
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

import onnx_nodes

def to_array(value):
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


def run_onnx(path, inputs):
    onnx.checker.check_model(onnx.load(path), full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options)
    names = [port.name for port in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs, strict=True)))


def run_torch(path, inputs):
    import torch  # not on every machine
    spec = importlib.util.spec_from_file_location("exported", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    tensors = [torch.from_numpy(np.array(array)) for array in inputs]
    with torch.no_grad():
        return [result.numpy() for result in script.load()(*tensors)]


def with_open_sizes(model):
    """The model with symbols n2, n3, ... in place of sizes of 2, 3, ..., and their values."""
    opened = onnx.ModelProto()
    opened.CopyFrom(model)
    sizes = {}
    for port in opened.graph.input:
        for dim in port.type.tensor_type.shape.dim:
            if dim.dim_value > 1:
                sizes[f"n{dim.dim_value}"] = dim.dim_value
                dim.dim_param = f"n{dim.dim_value}"
    for port in [*opened.graph.output, *opened.graph.value_info]:
        port.type.tensor_type.ClearField("shape")
    return opened, sizes


def difference(actual, expected):
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return f"{actual.dtype}{actual.shape}, not {expected.dtype}{expected.shape}"
    tolerance = 1e-2 if expected.dtype == np.float16 else 1e-3
    try:
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=1e-5)
    except AssertionError as error:
        return str(error)
    return None


def check_other_sizes(model, sizes, inputs, exported, run):
    """What differs for sizes that are larger by one or two; None also where onnxruntime does not run the model."""
    for more in (1, 2):
        changed = [np.resize(array, [size if f"n{size}" not in sizes else size + more for size in array.shape])
                   for array in inputs]
        try:
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 4
            session = onnxruntime.InferenceSession(model.SerializeToString(), options)
            expected = session.run(None, {port.name: array for port, array in zip(model.graph.input, changed)})
        except Exception:  # sizes that depend on each other, types that it lacks
            return None
        for one, other in zip(run(exported, changed), expected, strict=True):
            if reason := difference(one, other):
                return f"with sizes larger by {more}: {reason}"
    return None


def check(case, form, is_open):
    """What became of a model: "equal", "refused", "not run" or "different", and why."""
    with tempfile.TemporaryDirectory(prefix="fornax-export-") as temporary:
        exported = pathlib.Path(temporary) / f"exported.{form}"
        path = pathlib.Path(temporary) / "model.onnx"
        model, sizes = with_open_sizes(case.model) if is_open else (case.model, {})
        if is_open and not sizes:
            return "no sizes", ""
        path.write_bytes(model.SerializeToString())
        command = [os.environ["FORNAX_COMMAND"], "compile", path, "--emit", form.replace("py", "torch"), "-o", exported]
        for name, size in sizes.items():
            command += ["--dim", f"{name}={size}", "--dynamic", name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            assert done.returncode == 1 and done.stderr.startswith("fornax: "), done.stderr
            return "refused", done.stderr.strip()
        run = run_onnx if form == "onnx" else run_torch
        inputs, outputs = case.data_sets[0]
        inputs = [to_array(tensor) for tensor in inputs]
        try:
            results = run(exported, inputs)
        except Exception as error:  # bf16, which NumPy lacks, above all
            return "not run", f"{type(error).__name__}: {error}"
        for actual, expected in zip(results, map(to_array, outputs), strict=True):
            if reason := difference(actual, expected):
                return "different", reason
        # Conditions are told in the file; what they leave out is not compared.
        if is_open and b"For sizes for which" not in exported.read_bytes():
            if reason := check_other_sizes(model, sizes, inputs, exported, run):
                return "different", reason
        return "equal", ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--at-least", type=int, default=1250)
    parser.add_argument("--torch", action="store_true")
    parser.add_argument("--open", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    if arguments.torch and importlib.util.find_spec("torch") is None:
        print("PyTorch is not installed.")
        sys.exit(77)
    form = "py" if arguments.torch else "onnx"
    cases = [case for case in load_model_tests(kind="node")
             if case.name not in onnx_nodes.RANDOM_CASES
             and not any(node.op_type in onnx_nodes.RANDOM for node in case.model.graph.node) and (not arguments.names or case.name in arguments.names)]
    counts = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for case, (state, reason) in zip(cases, pool.map(lambda case: check(case, form, arguments.open), cases), strict=True):
            counts[state] += 1
            if state in ("different", "not run") or arguments.verbose:
                print(f"{case.name}: {state}: {' '.join(reason.split())[:400]}")
    print(dict(counts))
    if counts["different"] or counts["equal"] < arguments.at_least:
        sys.exit(1)


if __name__ == "__main__":
    main()
