"""`fornax compile --emit onnx`: what onnxruntime computes from it is what the models' own tests expect.

The models are the single operators of the onnx package. Models of whose meaning the export has none must be
refused with a sentence; what is exported must be right.

Environment: FORNAX_COMMAND. Usage: export_test.py [--at-least N] [--verbose] [NAME...]
"""

import argparse
import collections
import concurrent.futures
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


def check(case):
    """What became of a model: "equal", "refused", "not run" (by onnxruntime) or "different", and why."""
    with tempfile.TemporaryDirectory(prefix="fornax-export-") as temporary:
        exported = pathlib.Path(temporary) / "exported.onnx"
        model = pathlib.Path(temporary) / "model.onnx"
        model.write_bytes(case.model.SerializeToString())
        done = subprocess.run([os.environ["FORNAX_COMMAND"], "compile", model, "--emit", "onnx", "-o", exported], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            assert done.returncode == 1 and done.stderr.startswith("fornax: "), done.stderr
            return "refused", done.stderr.strip()
        inputs, outputs = case.data_sets[0]
        try:
            model = onnx.load(exported)
            onnx.checker.check_model(model, full_check=True)
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 4
            session = onnxruntime.InferenceSession(str(exported), options)
            names = [port.name for port in session.get_inputs()]
            inputs = [to_array(tensor) for tensor in inputs]
            results = session.run(None, dict(zip(names, inputs, strict=True)))
        except Exception as error:  # bf16, which NumPy lacks, above all
            return "not run", str(error)
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
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    cases = [case for case in load_model_tests(kind="node")
             if case.name not in onnx_nodes.RANDOM_CASES
             and not any(node.op_type in onnx_nodes.RANDOM for node in case.model.graph.node) and (not arguments.names or case.name in arguments.names)]
    counts = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for case, (state, reason) in zip(cases, pool.map(check, cases), strict=True):
            counts[state] += 1
            if state in ("different", "not run") or arguments.verbose:
                print(f"{case.name}: {state}: {' '.join(reason.split())[:400]}")
    print(dict(counts))
    if counts["different"] or counts["equal"] < arguments.at_least:
        sys.exit(1)


if __name__ == "__main__":
    main()
