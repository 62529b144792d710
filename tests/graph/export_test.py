"""`fornax compile --emit`: what onnxruntime or PyTorch computes from it is what the models' own tests expect.

The models are the single operators of the onnx package. Models of whose meaning the export has none must be
refused with a sentence; what is exported must be right.

Environment: FORNAX_COMMAND. Usage: export_test.py [--torch] [--at-least N] [--verbose] [NAME...]. With --torch and without PyTorch: status 77.
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


def check(case, form):
    """What became of a model: "equal", "refused", "not run" or "different", and why."""
    with tempfile.TemporaryDirectory(prefix="fornax-export-") as temporary:
        exported = pathlib.Path(temporary) / f"exported.{form}"
        model = pathlib.Path(temporary) / "model.onnx"
        model.write_bytes(case.model.SerializeToString())
        done = subprocess.run([os.environ["FORNAX_COMMAND"], "compile", model, "--emit", form.replace("py", "torch"),
                               "-o", exported], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            assert done.returncode == 1 and done.stderr.startswith("fornax: "), done.stderr
            return "refused", done.stderr.strip()
        inputs, outputs = case.data_sets[0]
        try:
            results = (run_onnx if form == "onnx" else run_torch)(exported, [to_array(tensor) for tensor in inputs])
        except Exception as error:  # bf16, which NumPy lacks, above all
            return "not run", f"{type(error).__name__}: {error}"
        for actual, expected in zip(results, map(to_array, outputs), strict=True):
            if actual.shape != expected.shape or actual.dtype != expected.dtype:
                return "different", f"{actual.dtype}{actual.shape}, not {expected.dtype}{expected.shape}"
            tolerance = 1e-2 if expected.dtype == np.float16 else 1e-3
            try:
                np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=1e-5)
            except AssertionError as error:
                return "different", str(error)
        return "equal", ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--at-least", type=int, default=1250)
    parser.add_argument("--torch", action="store_true")
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
        for case, (state, reason) in zip(cases, pool.map(check, cases, [form] * len(cases)), strict=True):
            counts[state] += 1
            if state in ("different", "not run") or arguments.verbose:
                print(f"{case.name}: {state}: {' '.join(reason.split())[:400]}")
    print(dict(counts))
    if counts["different"] or counts["equal"] < arguments.at_least:
        sys.exit(1)


if __name__ == "__main__":
    main()
