"""`fornax compile --emit c` of ONNX's operator tests: programs for this machine give the results that onnx expects.

Models that have no form in C must be refused with a sentence; what is written must compile without a warning and
compute the right values.

Environment: FORNAX_COMMAND. Usage: codegen_nodes_test.py [--every N] [--at-least N] [--verbose] [NAME...].
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
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

import onnx_nodes

FLAGS = ["-O1", "-std=gnu11", "-Wall", "-Werror", "-Wno-unused-variable", "-Wno-tautological-compare", "-ffp-contract=off",
         "-fwrapv", "-fno-strict-aliasing", "-DNET_HOST", "-fsanitize=undefined", "-fno-sanitize-recover=undefined"]


def to_array(value):
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


def in_bytes(array):
    """An element a byte where numpy packs none, as programs have them."""
    return np.ascontiguousarray(array).tobytes()


def difference(data, expected):
    """What differs, or None; `data` begins with the output's elements."""
    actual = np.frombuffer(data[:expected.nbytes], expected.dtype).reshape(expected.shape)
    name = expected.dtype.name
    if name in ("bfloat16", "float16") or name.startswith("float8") or name.startswith("float4"):
        actual, expected = actual.astype(np.float64), expected.astype(np.float64)
        tolerance = {"bfloat16": 2e-2, "float16": 1e-2}.get(name, 0.15)
    else:
        tolerance = 1e-3
    try:
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=1e-5)
    except AssertionError as error:
        return str(error)
    return None


def check(case):
    """What became of a model: "equal", "refused", "not run" or "different", and why."""
    with tempfile.TemporaryDirectory(prefix="fornax-codegen-") as temporary:
        folder = pathlib.Path(temporary)
        (folder / "model.onnx").write_bytes(case.model.SerializeToString())
        command = [os.environ["FORNAX_COMMAND"], "compile", folder / "model.onnx", "--emit", "c", "-o", folder, "--name",
                   "net"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            assert done.returncode == 1 and done.stderr.startswith("fornax: "), done.stderr
            return "refused", done.stderr.strip()
        inputs, outputs = case.data_sets[0]
        try:
            inputs, outputs = [list(map(to_array, arrays)) for arrays in (inputs, outputs)]
            data = b"".join(map(in_bytes, inputs))
            expected = sum(array.nbytes for array in outputs)
        except Exception as error:  # sequences
            return "not run", f"{type(error).__name__}: {error}"
        (folder / "net_inputs.bin").write_bytes(data)
        built = subprocess.run(["cc", *FLAGS, "net.c", "net_weights.c", "-lm", "-o", "net"], cwd=folder,
                               capture_output=True, text=True, check=False)
        if built.returncode != 0:
            return "different", built.stderr
        ran = subprocess.run(["./net"], cwd=folder, capture_output=True, text=True, check=False, timeout=120)
        if ran.returncode != 0:
            return "different", ran.stdout + ran.stderr
        if data and "inputs: net_inputs.bin" not in ran.stdout:
            return "different", ran.stdout
        results = (folder / "net_outputs.bin").read_bytes()
        if len(results) != expected:
            return "different", f"the outputs have {len(results)} bytes, not {expected}"
        for array in outputs:
            if reason := difference(results, array):
                return "different", reason
            results = results[array.nbytes:]
        return "equal", ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--at-least", type=int, default=0)
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    cases = [case for case in load_model_tests(kind="node")
             if case.name not in onnx_nodes.RANDOM_CASES
             and not any(node.op_type in onnx_nodes.RANDOM for node in case.model.graph.node)
             and (not arguments.names or case.name in arguments.names)][::arguments.every]
    counts = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for case, (state, reason) in zip(cases, pool.map(check, cases), strict=True):
            counts[state] += 1
            if state in ("different", "not run") or arguments.verbose:
                print(f"{case.name}: {state}: {' '.join(reason.split())[:400]}", flush=True)
    print(dict(counts))
    if counts["different"] or counts["equal"] < arguments.at_least:
        sys.exit(1)


if __name__ == "__main__":
    main()
